/* hartsift stats and hartsift hist: statistics and histogram of one image. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/draw/drawing.h"
#include "pipeline/formats/common/text_cursor.h"

/* ---- image, context and output of both */

typedef struct gray_array_job {
  const option_set *set;
  hs_context *context;
  cli_input input;
  hs_image image; /* gray, 8 or 16 bits */
  hs_array array; /* its pixels */
  bool json;      /* from --json or the output's name */
  char message[CLI_MESSAGE_BYTES];
} gray_array_job;

/* The pixels of a gray image. */
static hs_array gray_array_of(const hs_image *image) {
  const hs_array array = {.data = image->data,
                          .width = (size_t)image->width,
                          .height = (size_t)image->height,
                          .stride_bytes = image->stride_bytes,
                          .type = image->type == HS_F32   ? HS_ELEMENT_F32
                                  : image->type == HS_U16 ? HS_ELEMENT_U16
                                                          : HS_ELEMENT_U8};
  return array;
}

/* Prints "NAME: message" and returns CLI_FAILED. */
static cli_exit gray_array_job_fail(const gray_array_job *job, const char *name) {
  const size_t length = strlen(name);
  const bool named = strncmp(job->message, name, length) == 0 && job->message[length] == ':';
  if (named)
    cli_error(job->set->command, "%s", job->message);
  else
    cli_error(job->set->command, "%s: %s", name, job->message);
  return CLI_FAILED;
}

/* Loads the image and creates the context (on the CPU). Prints the reason of a failure; gray_array_job_free is
   needed in any case. */
static cli_exit gray_array_job_open(gray_array_job *job, const option_set *set) {
  hs_options options;
  hs_expert_options expert;
  const option_value *output = &set->values[OPTION_OUTPUT];
  memset(job, 0, sizeof *job);
  job->set = set;
  job->json = set->values[OPTION_JSON].given || (output->given && path_ends_with(output->text, ".json"));
  cli_fill_options(set, &options, &expert);
  options.device = HS_DEVICE_CPU;
  cli_input_init(&job->input, set, &options);
  const hs_status created = hs_create_explained(&job->context, &options, job->message, sizeof job->message);
  if (created != HS_OK) {
    cli_print_create_error(set->command, job->message);
    return cli_exit_of_create(created);
  }
  const char *path = set->operands[0];
  if (cli_load_image(&job->input, path, false, &job->image, job->message, sizeof job->message) != HS_OK)
    return gray_array_job_fail(job, strcmp(path, "-") == 0 ? "standard input" : path);
  job->array = gray_array_of(&job->image);
  return CLI_DONE;
}

static void gray_array_job_free(gray_array_job *job) {
  hs_image_free(&job->image);
  cli_input_free(&job->input);
  hs_destroy(job->context);
}

/* Calls `write` with the output of -o, or standard output; the file is written atomically. */
static cli_exit gray_array_job_write(gray_array_job *job, void (*write)(FILE *out, const void *result),
                                     const void *result) {
  const option_value *output = &job->set->values[OPTION_OUTPUT];
  if (!output->given || strcmp(output->text, "-") == 0) {
    write(stdout, result);
    return CLI_DONE; /* main checks that all was written */
  }
  if (cli_is_same_file(job->set->operands[0], output->text)) {
    snprintf(job->message, sizeof job->message, "the output would overwrite the input");
    return gray_array_job_fail(job, output->text);
  }
  atomic_file file;
  FILE *stream = atomic_file_open(&file, output->text);
  if (stream) write(stream, result);
  if (!stream || atomic_file_commit(&file) != HS_OK) {
    cli_error(job->set->command, "%s", file.message); /* names the file */
    return CLI_FAILED;
  }
  return CLI_DONE;
}

/* ---- hartsift stats: sum, mean, minimum, maximum of an image or its tiles */

typedef struct stats_result {
  hs_array array;
  hs_tiling tiling;
  hs_tile *tiles;
  size_t count;
  bool json;
} stats_result;

/* Sum, minimum and maximum are integers below 2^53. */
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

/* ---- hartsift hist: histogram of an image, and the equalised image */

enum { HIST_LEVELS = 256 };

typedef struct hist_result {
  uint64_t counts[HIST_LEVELS];
  bool json;
} hist_result;

static void write_histogram(FILE *out, const void *result) {
  const hist_result *r = result;
  fputs(r->json ? "{\"histogram\": [" : "level,count\n", out);
  for (int level = 0; level < HIST_LEVELS; level++)
    if (r->json)
      fprintf(out, "%s%" PRIu64, level > 0 ? ", " : "", r->counts[level]);
    else
      fprintf(out, "%d,%" PRIu64 "\n", level, r->counts[level]);
  if (r->json) fputs("]}\n", out);
}

static cli_exit count(gray_array_job *job, hist_result *r) {
  const option_value *mask_value = &job->set->values[OPTION_MASK];
  hs_image mask = {0};
  hs_array kept = {0};
  hs_status status = HS_OK;
  r->json = job->json;
  if (job->image.type != HS_U8) {
    snprintf(job->message, sizeof job->message, "the image has 16 bits a sample: expected 8");
    return gray_array_job_fail(job, job->set->operands[0]);
  }
  if (mask_value->given) {
    status = cli_load_mask(&job->input, mask_value->text, &mask, job->message, sizeof job->message);
    kept = gray_array_of(&mask);
  }
  if (status == HS_OK) {
    status = hs_histogram256(job->context, &job->array, mask_value->given ? &kept : NULL, r->counts);
    if (status != HS_OK) cli_explain(job->context, status, job->message, sizeof job->message);
  }
  hs_image_free(&mask);
  return status == HS_OK ? CLI_DONE : gray_array_job_fail(job, mask_value->given ? mask_value->text : "histogram");
}

/* Checks the output of the equalised image. */
static cli_exit check_equalized(gray_array_job *job) {
  const option_set *set = job->set;
  const char *path = set->values[OPTION_EQUALIZED_FILE].text;
  const bool to_stdout = strcmp(path, "-") == 0;
  const option_value *output = &set->values[OPTION_OUTPUT];
  if (to_stdout && (!output->given || strcmp(output->text, "-") == 0)) {
    cli_error(COMMAND_HIST,
              "--equalize '-': the image and the histogram cannot share standard output: expected -o FILE");
    return CLI_USAGE;
  }
  if (to_stdout && cli_refuses_terminal(COMMAND_HIST, "--equalize '-'")) return CLI_USAGE;
  if (output->given && (strcmp(output->text, path) == 0 || cli_is_same_file(output->text, path))) {
    cli_error(COMMAND_HIST, "--equalize and --output name one file");
    return CLI_USAGE;
  }
  return CLI_DONE;
}

static cli_exit equalize(gray_array_job *job) {
  const char *path = job->set->values[OPTION_EQUALIZED_FILE].text;
  const hs_array *in = &job->array;
  if (cli_is_same_file(job->set->operands[0], path)) {
    snprintf(job->message, sizeof job->message, "the output would overwrite the input");
    return gray_array_job_fail(job, path);
  }
  uint8_t *pixels = malloc(in->width * in->height);
  const hs_image image = {.data = pixels, .width = job->image.width, .height = job->image.height};
  hs_status status = pixels ? hs_equalize(job->context, in, pixels, 0) : HS_ERR_MEMORY;
  snprintf(job->message, sizeof job->message, "%s", hs_status_string(status));
  if (status == HS_OK) status = image_save(path, &image, job->message, sizeof job->message);
  free(pixels);
  return status == HS_OK ? CLI_DONE : gray_array_job_fail(job, strcmp(path, "-") == 0 ? "standard output" : path);
}

/* Two spellings of one path, detectable only once the image is written: the histogram must not replace it. */
static cli_exit check_output(gray_array_job *job) {
  const option_value *output = &job->set->values[OPTION_OUTPUT];
  if (output->given && cli_is_same_file(output->text, job->set->values[OPTION_EQUALIZED_FILE].text)) {
    snprintf(job->message, sizeof job->message, "the histogram would overwrite the equalised image");
    return gray_array_job_fail(job, output->text);
  }
  return CLI_DONE;
}

cli_exit cmd_hist(const option_set *set) {
  gray_array_job job = {.set = set};
  hist_result result = {.json = false};
  const bool equalized = set->values[OPTION_EQUALIZED_FILE].given;
  cli_exit done = equalized ? check_equalized(&job) : CLI_DONE;
  if (done != CLI_DONE) return done;
  done = gray_array_job_open(&job, set);
  if (done == CLI_DONE) done = count(&job, &result);
  if (done == CLI_DONE && equalized) {
    done = equalize(&job);
    done = done == CLI_DONE ? check_output(&job) : done;
  }
  if (done == CLI_DONE) done = gray_array_job_write(&job, write_histogram, &result);
  gray_array_job_free(&job);
  return done;
}
