/* Images, failures and results of `match --database`; see pair_output.h. */
#include "pipeline/cli/pairs/pair_output.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/formats/colmap/colmap_pairs.h"

/* ---- the images of a database */

/* Converts COLMAP's camera to a pinhole camera. False if it has distortion or its focal length is unknown. */
static bool pinhole_of(const hs_colmap_camera *camera, hs_camera *pinhole) {
  const double *p = camera->parameters;
  if (camera->prior_focal_length == 0 || camera->model < 0 || camera->model > 4) return false;
  const bool two_focal_lengths = camera->model == 1 || camera->model == 4;
  const int32_t center = two_focal_lengths ? 2 : 1;
  for (int32_t i = center + 2; i < camera->parameter_count; i++)
    if (p[i] != 0.0) return false;
  /* COLMAP's pixel origin is the corner of the first pixel */
  *pinhole = (hs_camera){p[0], p[two_focal_lengths ? 1 : 0], p[center] - 0.5, p[center + 1] - 0.5};
  return camera->parameter_count > center + 1 && pinhole->fx > 0.0 && pinhole->fy > 0.0 && isfinite(pinhole->fx) &&
         isfinite(pinhole->fy) && isfinite(pinhole->cx) && isfinite(pinhole->cy);
}

static bool add_image(database_images *images, const hs_colmap_image *image) {
  /* the capacity doubles when count reaches a power of two */
  if ((images->count & (images->count - 1)) == 0) {
    const size_t capacity = images->count == 0 ? 1 : 2 * images->count;
    database_image *larger = realloc(images->each, capacity * sizeof *larger);
    if (!larger) return false;
    images->each = larger;
  }
  database_image *added = &images->each[images->count];
  *added = (database_image){
      .image_id = image->image_id, .name = malloc(strlen(image->name) + 1), .features = (size_t)image->features};
  if (!added->name) return false;
  strcpy(added->name, image->name);
  added->is_calibrated = pinhole_of(&image->camera, &added->camera);
  images->count++;
  return true;
}

cli_exit database_images_read(hs_colmap_database *database, database_images *images) {
  hs_colmap_image image = {.found = 1};
  for (int64_t after = -1; image.found != 0; after = image.image_id) {
    if (hs_colmap_next_image(database, after, &image) != HS_OK)
      return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s", hs_colmap_last_error(database));
    images->without += image.found != 0 && image.features < 0;
    if (image.found != 0 && image.features >= 0 && !add_image(images, &image))
      return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s: out of memory for the images", images->path);
  }
  return CLI_DONE;
}

bool database_images_find(const database_images *images, uint32_t image_id, size_t *index) {
  size_t low = 0;
  for (size_t high = images->count; low < high;) {
    const size_t middle = low + (high - low) / 2;
    if (images->each[middle].image_id < image_id)
      low = middle + 1;
    else
      high = middle;
  }
  *index = low;
  return low < images->count && images->each[low].image_id == image_id;
}

void database_images_free(database_images *images) {
  for (size_t i = 0; i < images->count; i++) free(images->each[i].name);
  free(images->each);
  *images = (database_images){.path = images->path};
}

cli_exit database_images_fail(const database_images *images, const char *reason) {
  return cli_fail(CLI_FAILED, COMMAND_MATCH, "%s: %s", images->path, reason);
}

cli_exit database_images_fail_status(const database_images *images, const hs_context *context, hs_status status) {
  char message[CLI_MESSAGE_BYTES];
  cli_explain(context, status, message, sizeof message);
  return database_images_fail(images, message);
}

hs_status database_image_read(hs_colmap_database *database, const database_image *image, hs_features *features,
                              char *message, size_t message_bytes) {
  const hs_status status = hs_colmap_read_features(database, image->image_id, features);
  if (status != HS_OK)
    return hs_message_fail(status, message, message_bytes, "%s: %s", image->name, hs_colmap_last_error(database));
  if (features->count == image->features) return HS_OK;
  return hs_message_fail(HS_ERR_ARGUMENT, message, message_bytes,
                         "%s: another program has changed its features: start again", image->name);
}

/* ---- reasons of failed pairs */

bool pair_failures_begin(pair_failures *failures, const database_images *images) {
  *failures = (pair_failures){.images = images,
                              .of_image = calloc(images->count + 1, sizeof *failures->of_image),
                              .is_reported = calloc(images->count + 1, sizeof *failures->is_reported)};
  return failures->of_image && failures->is_reported;
}

void pair_failures_free(pair_failures *failures) {
  for (size_t i = 0; failures->of_image && i < failures->images->count; i++) free(failures->of_image[i]);
  for (size_t i = 0; i < failures->reason_count; i++) free(failures->reasons[i].text);
  free(failures->of_image);
  free(failures->is_reported);
  *failures = (pair_failures){0};
}

void pair_failures_blame(pair_failures *failures, uint32_t image, const char *sentence) {
  if (!failures->of_image[image])
    failures->of_image[image] = strdup(sentence); /* if this is null, the pair's message is printed instead */
}

/* True if two sentences differ only in numbers: they are one reason. */
static bool is_same_reason(const char *one, const char *other) {
  while (*one != '\0' && *other != '\0') {
    const bool numbers = isdigit((unsigned char)*one) && isdigit((unsigned char)*other);
    if (!numbers && *one != *other) return false;
    if (numbers) {
      one += strspn(one, "0123456789");
      other += strspn(other, "0123456789");
    } else {
      one++;
      other++;
    }
  }
  return *one == *other;
}

/* Returns the entry of a reason; null: the table is full. *is_new: the entry is new. */
static pair_reason *find_reason(pair_failures *failures, const char *message, bool *is_new) {
  *is_new = false;
  for (size_t i = 0; i < failures->reason_count; i++)
    if (is_same_reason(failures->reasons[i].text, message)) return &failures->reasons[i];
  char *text = failures->reason_count < PAIR_REASONS_MAX ? strdup(message) : NULL;
  if (!text) return NULL;
  *is_new = true;
  failures->reasons[failures->reason_count] = (pair_reason){.text = text};
  return &failures->reasons[failures->reason_count++];
}

void pair_failures_report(pair_failures *failures, hs_image_pair pair, const char *message) {
  const uint32_t both[2] = {pair.first, pair.second};
  bool is_blamed = false, is_new;
  for (int i = 0; i < 2; i++) {
    const uint32_t image = both[i];
    if (!failures->of_image[image]) continue;
    is_blamed = true;
    if (!failures->is_reported[image])
      cli_error(COMMAND_MATCH, "%s: none of its pairs can be matched", failures->of_image[image]);
    failures->is_reported[image] = true;
  }
  if (is_blamed) return;
  pair_reason *reason = find_reason(failures, message, &is_new);
  if (!reason)
    failures->further++;
  else if (!is_new)
    reason->further++;
  else
    cli_error(COMMAND_MATCH, "%s and %s: %s", failures->images->each[pair.first].name,
              failures->images->each[pair.second].name, message);
}

void pair_failures_end(const pair_failures *failures) {
  for (size_t i = 0; i < failures->reason_count; i++) {
    const pair_reason *reason = &failures->reasons[i];
    if (reason->further > 0)
      cli_error(COMMAND_MATCH, "%zu more pair%s: %s", reason->further, reason->further == 1 ? "" : "s", reason->text);
  }
  if (failures->further > 0)
    cli_error(COMMAND_MATCH, "%zu more pair%s failed for other reasons", failures->further,
              failures->further == 1 ? "" : "s");
}

/* ---- results */

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

bool pair_output_begin(pair_output *output) {
  if (output->has_json) output->records = calloc(PAIR_RECORDS_MAX, sizeof *output->records);
  return !output->has_json || output->records;
}

void pair_output_free(pair_output *output) {
  free(output->records);
  output->records = NULL;
}

static void print_record(const pair_output *output, const pair_record *record) {
  static const char *const models[] = {"null", "\"homography\"", "\"fundamental\"", "\"essential\""};
  printf("{\"image_a\": ");
  cli_write_json_string(stdout, output->images->each[record->images.first].name);
  printf(", \"image_b\": ");
  cli_write_json_string(stdout, output->images->each[record->images.second].name);
  printf(", \"matches\": %zu, \"inliers\": ", record->matches);
  if (record->is_verified)
    printf("%zu, \"model\": %s}\n", record->inliers, models[record->model]);
  else
    printf("null, \"model\": null}\n");
}

void pair_output_report(pair_output *output, const hs_pair_result *result, hs_status status, const char *message) {
  pair_totals *totals = &output->totals;
  const hs_geometry *geometry = result->geometry;
  if (status != HS_OK) {
    progress_line_clear(&output->line);
    pair_failures_report(&output->failures, result->images, message[0] != '\0' ? message : hs_status_string(status));
    totals->failed++;
    return;
  }
  totals->done++;
  totals->of_device[result->device]++;
  totals->matches += result->match_count;
  if (geometry && geometry->found != 0) {
    totals->verified++;
    totals->inliers += geometry->inlier_count;
  }
  if (!output->records) return;
  pair_record record = {.images = result->images, .matches = result->match_count, .is_verified = geometry != NULL};
  if (geometry) record.inliers = geometry->inlier_count;
  if (geometry && geometry->found != 0) record.model = (int32_t)geometry->model;
  output->records[output->record_count++] = record;
}

bool pair_output_is_full(const pair_output *output) { return output->record_count == PAIR_RECORDS_MAX; }

void pair_output_commit(pair_output *output) {
  for (size_t i = 0; i < output->record_count; i++) print_record(output, &output->records[i]);
  output->record_count = 0;
  output->committed = output->totals;
}

void pair_output_drop(pair_output *output) {
  const pair_totals all = output->totals;
  output->totals = output->committed;
  output->totals.pairs = all.pairs;
  output->totals.kept = all.kept;
  output->totals.failed = all.failed;
  output->record_count = 0;
}

void pair_output_progress(pair_output *output) {
  const pair_totals *t = &output->totals;
  progress_line_draw(&output->line, t->kept + t->done + t->failed, t->pairs, t->done + t->failed, t->failed);
}

/* Prints the summary as JSON, with the numbers of pairs of each device. */
static void print_summary(const pair_output *output) {
  const pair_totals *t = &output->totals;
  printf("{\"summary\": {\"pairs\": %zu, \"done\": %zu, \"kept\": %zu, \"failed\": %zu, \"seconds\": %.3f, "
         "\"pairs_per_second\": %.3f, \"devices\": [",
         t->pairs, t->done, t->kept, t->failed, progress_line_seconds(&output->line),
         progress_line_rate(&output->line, t->done));
  for (int32_t i = 0; i < output->devices->count; i++) {
    char name[32];
    cli_device_name(&output->devices->each[i], name, sizeof name);
    printf("%s{\"device\": \"%s\", \"pairs\": %zu}", i > 0 ? ", " : "", name, t->of_device[i]);
  }
  printf("]}}\n");
}

/* Writes " on cuda:0, cuda:1". */
static void name_devices(const cli_devices *devices, char *text, size_t bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (int32_t i = 0; devices && i < devices->count && used < bytes; i++) {
    char name[32];
    cli_device_name(&devices->each[i], name, sizeof name);
    used += (size_t)snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : " on ", name);
  }
}

void pair_output_end(pair_output *output) {
  const pair_totals *totals = &output->totals;
  char verified[96] = "", rate[48] = "", stored[64] = "", devices[CLI_MESSAGE_BYTES];
  progress_line_clear(&output->line);
  pair_failures_end(&output->failures);
  if (output->has_json && output->devices) print_summary(output);
  if (output->is_quiet) return;
  if (output->is_verified) {
    snprintf(verified, sizeof verified, ", %zu pair%s verified with %" PRIu64 " inliers", totals->verified,
             totals->verified == 1 ? "" : "s", totals->inliers);
  }
  if (totals->stored > 0) snprintf(stored, sizeof stored, "%zu had matches without geometry, ", totals->stored);
  const double seconds = progress_line_seconds(&output->line);
  name_devices(totals->done > 0 ? output->devices : NULL, devices, sizeof devices);
  if (totals->done > 0)
    snprintf(rate, sizeof rate, ", %.1f pairs a second", progress_line_rate(&output->line, totals->done));
  cli_note("%s: %zu image%s, %zu pair%s (%zu already had matches, %s%zu failed), %" PRIu64 " matches%s, %.0f ms%s%s",
           output->images->path, output->images->count, output->images->count == 1 ? "" : "s", totals->pairs,
           totals->pairs == 1 ? "" : "s", totals->kept, stored, totals->failed, totals->matches, verified,
           seconds * 1e3, rate, devices);
}
