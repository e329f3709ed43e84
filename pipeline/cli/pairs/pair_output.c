/*
 * Results of pairs; see pair_output.h.
 */
#include "pipeline/cli/pairs/pair_output.h"

#include <inttypes.h>

#include "pipeline/formats/colmap/colmap_pairs.h"

hs_status pair_output_store(pair_output *output, const hs_pair_result *result, bool is_stale,
                            char message[CLI_MESSAGE_BYTES]) {
  const database_image *images = output->images->each;
  const hs_geometry *model = result->geometry;
  hs_colmap_matches entry = {.pairs = result->matches,
                             .pair_stride_bytes = sizeof *result->matches,
                             .count = result->match_count,
                             .inliers = result->inliers};
  if (model && model->model == HS_HOMOGRAPHY) entry.homography = model;
  if (model && model->model == HS_FUNDAMENTAL) entry.fundamental = model;
  if (model && model->model == HS_ESSENTIAL) entry.essential = model;
  if (result->fundamental) entry.fundamental = result->fundamental;
  if (result->plane) entry.homography = result->plane;
  entry.pose = result->pose;
  entry.watermark = result->watermark;
  const uint32_t first = images[result->images.first].image_id, second = images[result->images.second].image_id;
  hs_status status = is_stale ? colmap_drop_pair(output->database, first, second) : HS_OK;
  if (status == HS_OK) status = hs_colmap_add_matches(output->database, first, second, &entry);
  if (status == HS_OK && result->unguided_matches > 0)
    status =
        colmap_note_first_pass(output->database, first, second, result->unguided_matches, result->unguided_inliers);
  if (status != HS_OK) snprintf(message, CLI_MESSAGE_BYTES, "%s", hs_colmap_last_error(output->database));
  return status;
}

static void print_record(const pair_output *output, const hs_pair_result *result) {
  static const char *const models[] = {"null", "\"homography\"", "\"fundamental\"", "\"essential\""};
  printf("{\"image_a\": ");
  cli_write_json_string(stdout, output->images->each[result->images.first].name);
  printf(", \"image_b\": ");
  cli_write_json_string(stdout, output->images->each[result->images.second].name);
  printf(", \"matches\": %zu, \"inliers\": ", result->match_count);
  if (result->geometry) {
    printf("%zu, \"model\": %s}\n", result->geometry->inlier_count,
           models[result->geometry->found != 0 ? (int)result->geometry->model : 0]);
  } else {
    printf("null, \"model\": null}\n");
  }
}

void pair_output_tell(pair_output *output, const hs_pair_result *result, hs_status status, const char *message) {
  pair_totals *totals = &output->totals;
  if (status != HS_OK) {
    progress_line_clear(&output->line);
    pair_failures_tell(&output->failures, result->images, message[0] != '\0' ? message : hs_status_string(status));
    totals->failed++;
    return;
  }
  totals->done++;
  totals->matches += result->match_count;
  if (result->geometry && result->geometry->found != 0) {
    totals->verified++;
    totals->inliers += result->geometry->inlier_count;
  }
  if (output->has_json) print_record(output, result);
}

void pair_output_progress(pair_output *output) {
  const pair_totals *t = &output->totals;
  progress_line_draw(&output->line, t->kept + t->done + t->failed, t->pairs, t->done + t->failed, t->failed);
}

void pair_output_end(pair_output *output) {
  const pair_totals *totals = &output->totals;
  char verified[96] = "", rate[48] = "", given[64] = "";
  progress_line_clear(&output->line);
  pair_failures_end(&output->failures);
  if (output->is_quiet) return;
  if (output->is_verified) {
    snprintf(verified, sizeof verified, ", %zu pair%s verified with %" PRIu64 " inliers", totals->verified,
             totals->verified == 1 ? "" : "s", totals->inliers);
  }
  if (totals->given > 0) snprintf(given, sizeof given, "%zu had matches without geometry, ", totals->given);
  const double seconds = progress_line_seconds(&output->line);
  if (totals->done > 0)
    snprintf(rate, sizeof rate, ", %.0f pairs a second", progress_line_rate(&output->line, totals->done));
  cli_note("%s: %zu image%s, %zu pair%s (%zu already had matches, %s%zu failed), %" PRIu64 " matches%s, %.0f ms%s",
           output->images->path, output->images->count, output->images->count == 1 ? "" : "s", totals->pairs,
           totals->pairs == 1 ? "" : "s", totals->kept, given, totals->failed, totals->matches, verified, seconds * 1e3,
           rate);
}
