/*
 * hartsift merge: combines the outputs of several batches, or of the shards of one batch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/cli/merge/merge.h"
#include "pipeline/formats/formats.h"

typedef struct merge_job {
  const option_set *set;
  merge_inputs inputs;
  merge_output output;
  merge_match_totals matches;
  batch_list list; /* names of the images for the manifest */
  batch_manifest manifest;
} merge_job;

static cli_exit no_memory(void) { return cli_fail(CLI_FAILED, COMMAND_MERGE, "out of memory for the list of images"); }

/* ---- duplicates */

typedef struct named_output {
  char *output;
  size_t image;
} named_output;

static int compare_outputs(const void *one, const void *other) {
  const named_output *a = one, *b = other;
  const int order = strcmp(a->output, b->output);
  return order != 0 ? order : (a->image > b->image) - (a->image < b->image);
}

static cli_exit refuse_duplicates(const merge_job *job, const named_output *outputs, size_t count) {
  const merge_image *images = job->inputs.images;
  for (size_t i = 1; i < count; i++) {
    if (strcmp(outputs[i].output, outputs[i - 1].output) != 0) continue;
    const merge_image *first = &images[outputs[i - 1].image], *second = &images[outputs[i].image];
    return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s of %s and %s of %s would both be %s: expected each image once",
                    first->name, job->inputs.shards[first->shard].manifest, second->name,
                    job->inputs.shards[second->shard].manifest, outputs[i].output);
  }
  return CLI_DONE;
}

/* Refuses two images that would have the same output, because one would be lost. */
static cli_exit check_outputs(const merge_job *job) {
  named_output *outputs = calloc(job->inputs.count + 1, sizeof *outputs);
  size_t count = 0;
  cli_exit result = outputs ? CLI_DONE : no_memory();
  for (size_t i = 0; result == CLI_DONE && i < job->inputs.count; i++) {
    const merge_image *image = &job->inputs.images[i];
    if (image->record.state == BATCH_FAILED) continue;
    outputs[count] = (named_output){batch_output_name(image->name, job->output.format), i};
    if (!outputs[count++].output) result = no_memory();
  }
  if (result == CLI_DONE && count > 0) {
    qsort(outputs, count, sizeof *outputs, compare_outputs);
    result = refuse_duplicates(job, outputs, count);
  }
  for (size_t i = 0; i < count; i++) free(outputs[i].output);
  free(outputs);
  return result;
}

/* ---- the common manifest */

/* Writes how the images of a database share cameras, as batch does; write it before the settings of the shards. */
static void write_cameras(FILE *out, const merge_job *job) {
  const merge_output *output = &job->output;
  size_t length = 0;
  fprintf(out, "single-camera=%d", output->sharing == HS_CAMERAS_BY_SIZE);
  (void)merge_setting(&job->inputs.shards[0], "single-camera-per-folder=", &length);
  if (output->sharing == HS_CAMERAS_BY_FOLDER && length == 0) fprintf(out, " single-camera-per-folder=1");
  if (output->camera.camera_id != 0) fprintf(out, " camera-id=%lu", (unsigned long)output->camera.camera_id);
}

/* Returns the settings of the merged output: those of the shards, plus those of a database. */
static char *make_settings(const merge_job *job) {
  const merge_shard *shard = &job->inputs.shards[0];
  os_text text;
  if (!os_text_open(&text)) return NULL;
  FILE *out = text.stream;
  const char *end = shard->settings + shard->settings_length;
  for (const char *at = shard->settings; at < end;) {
    const char *space = memchr(at, ' ', (size_t)(end - at));
    const size_t span = (size_t)((space ? space : end) - at);
    if (at != shard->settings) fputc(' ', out);
    if (merge_makes_database(&job->output) && strncmp(at, "format=", 7) == 0)
      fprintf(out, "format=%s", format_by_id(job->output.format)->name);
    else if (merge_makes_database(&job->output) && strncmp(at, "single-camera=", 14) == 0)
      write_cameras(out, job);
    else
      fwrite(at, 1, span, out);
    at += span + 1;
  }
  return os_text_close(&text) ? text.text : NULL;
}

static cli_exit make_manifest(merge_job *job) {
  const merge_inputs *inputs = &job->inputs;
  const char *location = job->output.location;
  const bool closed = location[strlen(location) - 1] == '/';
  char *prefix = cli_join(location, merge_makes_database(&job->output) ? "." : closed ? "" : "/", "manifest");
  char *settings = make_settings(job);
  cli_exit result = prefix && settings ? CLI_DONE : no_memory();
  for (size_t i = 0; result == CLI_DONE && i < inputs->count; i++)
    if (!batch_list_add(&job->list, inputs->images[i].name)) result = no_memory();
  if (result == CLI_DONE) result = batch_manifest_make(&job->manifest, &job->list, prefix, 1, 1, settings);
  job->manifest.command = COMMAND_MERGE;
  if (result == CLI_DONE) result = batch_manifest_check_old(&job->manifest);
  free(prefix);
  free(settings);
  return result;
}

static cli_exit write_manifest(merge_job *job, size_t *failed) {
  *failed = 0;
  for (size_t i = 0; i < job->inputs.count; i++) {
    merge_image *image = &job->inputs.images[i];
    job->manifest.records[i] = image->record;
    image->record.message = NULL; /* the manifest owns it now */
    *failed += image->record.state == BATCH_FAILED;
  }
  return batch_manifest_finish(&job->manifest, 0, 1);
}

/* ---- the command */

static cli_exit put_all(merge_job *job) {
  char message[CLI_MESSAGE_BYTES] = "";
  for (size_t i = 0; i < job->inputs.count; i++) {
    merge_image *image = &job->inputs.images[i];
    if (image->record.state == BATCH_FAILED) continue;
    if (!merge_put(&job->output, &job->inputs, image, message, sizeof message))
      return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s", message);
  }
  const cli_exit result = merge_copy_matches(&job->output, &job->inputs, &job->matches);
  return result == CLI_DONE ? merge_commit(&job->output) : result;
}

static cli_exit run_merge(merge_job *job) {
  const option_value *values = job->set->values;
  size_t failed = 0;
  if (!values[OPTION_OUTPUT].is_set || strcmp(values[OPTION_OUTPUT].text, "-") == 0 ||
      values[OPTION_OUTPUT].text[0] == '\0')
    return cli_fail(CLI_USAGE, COMMAND_MERGE, "--output is missing: expected a directory or a database");
  cli_exit result =
      merge_read_inputs(&job->inputs, job->set->operands, job->set->operand_count, values[OPTION_OUTPUT].text);
  result = result == CLI_DONE ? merge_plan_output(&job->output, job->set, &job->inputs) : result;
  result = result == CLI_DONE ? check_outputs(job) : result;
  result = result == CLI_DONE ? make_manifest(job) : result;
  result = result == CLI_DONE ? merge_open_output(&job->output) : result;
  result = result == CLI_DONE ? put_all(job) : result;
  result = result == CLI_DONE ? write_manifest(job, &failed) : result;
  char matches[64] = "";
  if (job->matches.copied > 0)
    snprintf(matches, sizeof matches, ", the matches of %zu pair%s", job->matches.copied,
             job->matches.copied == 1 ? "" : "s");
  const bool has_guesses = merge_makes_database(&job->output) && job->inputs.format != HS_FORMAT_COLMAP_DB &&
                           job->output.camera.camera_id == 0;
  if (result == CLI_DONE && !values[OPTION_QUIET].is_set && has_guesses)
    cli_note("files of features have no focal lengths and positions from EXIF: new cameras are guesses");
  if (result == CLI_DONE && !values[OPTION_QUIET].is_set)
    cli_note("%zu image%s of %zu manifest%s, %zu of them failed there%s: %s", job->inputs.count,
             job->inputs.count == 1 ? "" : "s", job->inputs.shard_count, job->inputs.shard_count == 1 ? "" : "s",
             failed, matches, job->manifest.csv_path);
  return result;
}

cli_exit cmd_merge(const option_set *set) {
  merge_job job = {.set = set, .manifest = {.journal = -1}};
  const cli_exit result = run_merge(&job);
  merge_close_output(&job.output);
  batch_manifest_free(&job.manifest);
  batch_list_free(&job.list);
  merge_free_inputs(&job.inputs);
  return result;
}
