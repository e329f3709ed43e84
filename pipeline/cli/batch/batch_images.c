/*
 * The images of a batch as its threads meet them; see batch_images.h.
 */
#include "pipeline/cli/batch/batch_images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/message.h"
#include "pipeline/formats/common/content_digest.h"

static size_t place_in_list(const batch_job *job, size_t index) {
  return (size_t)(job->shard - 1) + index * (size_t)job->shards;
}

static const char *path_of(void *user, size_t index) {
  const batch_job *job = user;
  return job->list.images[place_in_list(job, index)].path;
}

/* Stores, reports and, unless it was kept, journals an image's record. Takes record->message over. */
static void conclude(batch_job *job, size_t place, const batch_record *record, int32_t device, double milliseconds) {
  pthread_mutex_lock(&job->lock);
  job->manifest.records[place] = *record;
  batch_report_image(&job->report, job->list.images[place].name, record, device, milliseconds);
  if (record->state != BATCH_KEPT && job->fatal[0] == '\0' &&
      !batch_manifest_append(&job->manifest, place, milliseconds)) {
    snprintf(job->fatal, sizeof job->fatal, "%s: cannot be written: %s", job->manifest.journal_path, strerror(errno));
    batch_stop(job->run);
  }
  pthread_mutex_unlock(&job->lock);
}

void batch_images_note_gone(batch_job *job, const char *name) {
  pthread_mutex_lock(&job->lock);
  batch_report_gone(&job->report, name, job->store.place);
  pthread_mutex_unlock(&job->lock);
}

static void note_changed(batch_job *job) {
  pthread_mutex_lock(&job->lock);
  job->report.changed++;
  pthread_mutex_unlock(&job->lock);
}

static void conclude_failed(batch_job *job, size_t place, batch_record record, hs_status status, const char *message) {
  record.state = BATCH_FAILED;
  record.status = status;
  record.source = (batch_source){0}; /* rows of failures do not depend on how far reading came */
  char text[CLI_MESSAGE_BYTES];
  snprintf(text, sizeof text, "%s", message);
  cli_name_options(COMMAND_BATCH, text, sizeof text);
  record.message = strdup(text);
  conclude(job, place, &record, -1, 0);
}

/* The manifest's own name in the folder of the outputs. */
static bool is_manifest_output(const char *output) {
  const size_t length = strlen(output);
  return strncmp(output, "manifest", 8) == 0 && !strchr(output, '/') && length >= 12 &&
         strcmp(output + length - 4, ".csv") == 0;
}

/* Keeps an image of an earlier run if its output is there and picture and mask have not changed. Otherwise notes what
   is to be done with the output. */
static bool keep_claimed(batch_job *job, size_t place, batch_record record) {
  const batch_image_name *image = &job->list.images[place];
  const uint64_t mask_digest = image_masks_digest(&job->masks, image->name);
  batch_source now;
  const batch_source_state source = batch_source_compare(image->path, &record.source, &now);
  const bool is_there = batch_store_verify(&job->store, image, record.output_digest, source == SOURCE_UNKNOWN);
  if (is_there && mask_digest == record.mask_digest && source != SOURCE_CHANGED) {
    record.state = BATCH_KEPT;
    if (now.is_recorded) record.source = now;
    conclude(job, place, &record, -1, 0);
    if (source == SOURCE_GONE) batch_images_note_gone(job, image->name);
    return true;
  }
  job->manifest.records[place].replaces = is_there;
  if (source == SOURCE_CHANGED) note_changed(job);
  return false;
}

static bool is_wanted(void *user, size_t index) {
  batch_job *job = user;
  const size_t place = place_in_list(job, index);
  const batch_image_name *image = &job->list.images[place];
  batch_record record = job->manifest.records[place];
  char *output = batch_store_output(image->name, &job->store);
  char message[CLI_MESSAGE_BYTES] = "";
  hs_status status = HS_OK;
  if (!output) {
    status = HS_ERR_MEMORY;
    snprintf(message, sizeof message, "no memory for the name of the output");
  } else if (image->shares_output) {
    status = HS_ERR_ARGUMENT;
    hs_message_set(message, sizeof message, "an earlier image has the same output %s", output);
  } else if (!batch_store_is_database(&job->store) && is_manifest_output(output)) {
    status = HS_ERR_ARGUMENT;
    hs_message_set(message, sizeof message, "the output %s has the name of a manifest", output);
  }
  free(output);
  if (status != HS_OK) {
    conclude_failed(job, place, (batch_record){0}, status, message);
    return false;
  }
  if (record.state == BATCH_CLAIMED && keep_claimed(job, place, record)) return false;
  batch_source_begin(image->path, &job->manifest.records[place].source);
  job->manifest.records[place].mask_digest = image_masks_digest(&job->masks, image->name);
  return true;
}

/* Nothing more can be stored. Only the first reason is reported. */
static void end_run(batch_job *job, const char *message) {
  pthread_mutex_lock(&job->lock);
  if (job->fatal[0] == '\0') snprintf(job->fatal, sizeof job->fatal, "%s", message);
  pthread_mutex_unlock(&job->lock);
  batch_stop(job->run);
}

/* Records the file that an image was read from. */
static hs_status note_loaded(void *user, size_t index, char *message, size_t message_bytes) {
  batch_job *job = user;
  const size_t place = place_in_list(job, index);
  const char *path = job->list.images[place].path;
  batch_source *source = &job->manifest.records[place].source;
  const hs_status status = batch_source_finish(path, source);
  if (status != HS_OK)
    hs_message_set_errno(message, message_bytes, source->error, "%s: cannot be read a second time, for its digest",
                         path);
  return status;
}

void batch_images_commit(batch_job *job) {
  char message[CLI_MESSAGE_BYTES] = "";
  const bool failed =
      job->pending_count > 0 && batch_database_commit(&job->store.database, message, sizeof message) != HS_OK;
  if (failed) end_run(job, message);
  for (size_t i = 0; i < job->pending_count && !failed; i++) {
    const batch_pending *one = &job->pending[i];
    conclude(job, one->place, &one->record, one->device, one->milliseconds);
  }
  job->pending_count = 0;
}

/* An image for the database, at its turn. */
static hs_status add_prepared(batch_job *job, size_t place, const batch_result *result, batch_record *record,
                              char message[CLI_MESSAGE_BYTES]) {
  const batch_prepared *prepared = result->prepared;
  const hs_status status = batch_store_add(&job->store, job->list.images[place].name, prepared, result->exif,
                                           record->replaces, message, CLI_MESSAGE_BYTES);
  if (status != HS_OK && batch_database_is_lost(&job->store.database)) {
    /* Images that wait for the commit are lost too: the next run makes them and this one. */
    job->pending_count = 0;
    end_run(job, message);
    return HS_OK;
  }
  if (status != HS_OK) return status;
  record->output_digest = prepared->output_digest;
  record->state = BATCH_DONE;
  record->features = prepared->features;
  record->digest = prepared->digest;
  job->pending[job->pending_count++] = (batch_pending){place, *record, result->device, result->milliseconds};
  if (job->pending_count == BATCH_DATABASE_PENDING || batch_database_wants_commit(&job->store.database))
    batch_images_commit(job);
  return HS_OK;
}

static hs_status write_file(batch_job *job, size_t place, int32_t writer, const batch_result *result,
                            batch_record *record, char message[CLI_MESSAGE_BYTES]) {
  const hs_status status = batch_store_put(&job->store, writer, job->list.images[place].name, result->features,
                                           &record->output_digest, message, CLI_MESSAGE_BYTES);
  if (status != HS_OK) {
    record->output_digest = 0;
    return status;
  }
  record->state = BATCH_DONE;
  record->features = result->features->count;
  record->digest = digest_features(result->features);
  conclude(job, place, record, result->device, result->milliseconds);
  return HS_OK;
}

static void on_done(void *user, int32_t writer, const batch_result *result) {
  batch_job *job = user;
  const size_t place = place_in_list(job, result->index);
  const batch_record *known = &job->manifest.records[place];
  batch_record record = {.width = result->width,
                         .height = result->height,
                         .mask_digest = known->mask_digest,
                         .source = known->source,
                         .replaces = known->replaces};
  char message[CLI_MESSAGE_BYTES] = "";
  hs_status status = result->status;
  if (status != HS_OK)
    snprintf(message, sizeof message, "%s", result->message);
  else if (batch_store_is_database(&job->store))
    status = add_prepared(job, place, result, &record, message);
  else
    status = write_file(job, place, writer, result, &record, message);
  if (status == HS_OK) {
    pthread_mutex_lock(&job->lock);
    batch_report_notes(&job->report, result->notes);
    pthread_mutex_unlock(&job->lock);
  }
  batch_prepared_free(result->prepared);
  if (status != HS_OK) conclude_failed(job, place, record, status, message);
}

static void *prepare_result(void *user, const batch_result *result) {
  const batch_job *job = user;
  return batch_store_prepare(&job->store, result->features);
}

static void discard_prepared(void *user, void *prepared) {
  (void)user;
  batch_prepared_free(prepared);
}

static hs_status mask_of(void *user, size_t index, const hs_image *image, hs_image *mask, char *message,
                         size_t message_bytes) {
  const batch_job *job = user;
  return image_masks_of(&job->masks, job->list.images[place_in_list(job, index)].name, image, mask, message,
                        message_bytes);
}

void batch_images_work(batch_job *job, batch_work *work) {
  const int32_t jobs = (int32_t)job->set->values[OPTION_JOBS].integer;
  const size_t listed = job->list.count, skipped = (size_t)(job->shard - 1), step = (size_t)job->shards;
  *work = (batch_work){.count = listed > skipped ? (listed - skipped + step - 1) / step : 0,
                       .path = path_of,
                       .wanted = is_wanted,
                       .loaded = note_loaded,
                       .done = on_done,
                       .prepare = job->format == HS_FORMAT_COLMAP_DB ? prepare_result : NULL,
                       .discard = discard_prepared,
                       .user = job,
                       .load = &job->input.load,
                       .mask = job->masks.shared || job->masks.folder ? mask_of : NULL,
                       .devices = job->device_options,
                       .device_count = job->devices.count,
                       .in_order = job->format == HS_FORMAT_COLMAP_DB,
                       .readers = jobs,
                       .writers = jobs};
}
