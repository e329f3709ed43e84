/*
 * hartsift stats: sum, mean, minimum, maximum and count above a threshold, of an image or each of its tiles.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "pipeline/cli/common/gray_array_job.h"
#include "pipeline/formats/common/number_text.h"

typedef struct stats_result {
  hs_array array;
  hs_tiling tiling;
  hs_tile *tiles;
  size_t count;
  bool json;
} stats_result;

/* Sum, minimum and maximum are whole numbers below 2^53. */
static void write_tile(FILE *out, const stats_result *r, size_t index) {
  const hs_tile *tile = &r->tiles[index];
  const size_t columns = (r->array.width - 1) / r->tiling.width + 1;
  const size_t x = index % columns * r->tiling.width;
  const size_t y = index / columns * r->tiling.height;
  const size_t width = r->array.width - x < r->tiling.width ? r->array.width - x : r->tiling.width;
  const size_t height = r->array.height - y < r->tiling.height ? r->array.height - y : r->tiling.height;
  char mean[NUMBER_TEXT_BYTES];
  number_from_double(tile->mean, mean);
  const char *form = r->json ? "{\"x\": %zu, \"y\": %zu, \"width\": %zu, \"height\": %zu, \"sum\": %.0f, \"mean\": %s, "
                               "\"min\": %.0f, \"max\": %.0f, \"above\": %" PRIu64 "}"
                             : "%zu,%zu,%zu,%zu,%.0f,%s,%.0f,%.0f,%" PRIu64 "\n";
  fprintf(out, form, x, y, width, height, tile->sum, mean, tile->min, tile->max, tile->above);
}

static void write_stats(FILE *out, const void *result) {
  const stats_result *r = result;
  fputs(r->json ? "{\"tiles\": [" : "x,y,width,height,sum,mean,min,max,above\n", out);
  for (size_t i = 0; i < r->count; i++) {
    if (r->json) fputs(i > 0 ? ",\n  " : "\n  ", out);
    write_tile(out, r, i);
  }
  if (r->json) fputs("\n]}\n", out);
}

static cli_exit compute(gray_array_job *job, stats_result *r) {
  const option_value *values = job->set->values;
  r->array = job->array;
  r->json = job->json;
  r->tiling = (hs_tiling){r->array.width, r->array.height, 0.0};
  if (values[OPTION_TILE].given) {
    r->tiling.width = (size_t)values[OPTION_TILE].numbers[0];
    r->tiling.height = (size_t)values[OPTION_TILE].numbers[1];
  }
  if (values[OPTION_THRESHOLD].given) r->tiling.threshold = values[OPTION_THRESHOLD].number;
  hs_status status = hs_tile_stats(job->context, &r->array, &r->tiling, NULL, 0, &r->count);
  if (status == HS_ERR_CAPACITY) {
    r->tiles = calloc(r->count, sizeof *r->tiles);
    status =
        r->tiles ? hs_tile_stats(job->context, &r->array, &r->tiling, r->tiles, r->count, &r->count) : HS_ERR_MEMORY;
  }
  if (status != HS_OK) {
    snprintf(job->message, sizeof job->message, "%s", hs_status_string(status));
    return gray_array_job_fail(job, job->set->operands[0]);
  }
  return CLI_DONE;
}

cli_exit cmd_stats(const option_set *set) {
  gray_array_job job;
  stats_result result = {.tiles = NULL};
  cli_exit done = gray_array_job_open(&job, set);
  if (done == CLI_DONE) done = compute(&job, &result);
  if (done == CLI_DONE) done = gray_array_job_write(&job, write_stats, &result);
  free(result.tiles);
  gray_array_job_free(&job);
  return done;
}
