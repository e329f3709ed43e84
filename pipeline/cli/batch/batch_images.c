/*
 * Reads, extracts and stores the images of a batch, on several threads; see batch_images.h.
 */
#include "os/os_threads.h"
#include "pipeline/cli/batch/batch_images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/formats/common/content_digest.h"

static size_t position_in_list(const batch_job *job, size_t index) {
  return (size_t)(job->shard - 1) + index * (size_t)job->shards;
}

static const batch_computed not_computed = {.device = -1};

static batch_computed computed_of(const hs_batch_result *r) {
  return (batch_computed){r->device, r->milliseconds, r->way, r->way_reason};
}

/* Stores and reports an image's record, and writes it to the journal unless it was kept from an earlier run. Takes
   ownership of record->message. */
static void conclude(batch_job *job, size_t position, const batch_record *record, const batch_computed *computed) {
  pthread_mutex_lock(&job->lock);
  job->manifest.records[position] = *record;
  batch_report_image(&job->report, job->list.images[position].name, record, computed);
  if (record->state != BATCH_KEPT && job->fatal[0] == '\0' &&
      !batch_manifest_append(&job->manifest, position, computed->milliseconds)) {
    snprintf(job->fatal, sizeof job->fatal, "%s: cannot be written: %s", job->manifest.journal_path, strerror(errno));
    hs_batch_stop(job->run);
  }
  pthread_mutex_unlock(&job->lock);
}

void batch_images_note_gone(batch_job *job, const char *name) {
  pthread_mutex_lock(&job->lock);
  batch_report_gone(&job->report, name, job->store.location);
  pthread_mutex_unlock(&job->lock);
}

static void note_changed(batch_job *job) {
  pthread_mutex_lock(&job->lock);
  job->report.changed++;
  pthread_mutex_unlock(&job->lock);
}

static void conclude_failed(batch_job *job, size_t position, batch_record record, hs_status status,
                            const char *message) {
  record.state = BATCH_FAILED;
  record.status = status;
  /* clears it, because rows of failures must not depend on how much of the file was read */
  record.source = (batch_source){0};
  char text[CLI_MESSAGE_BYTES];
  snprintf(text, sizeof text, "%s", message);
  cli_name_options(COMMAND_BATCH, text, sizeof text);
  record.message = strdup(text);
  conclude(job, position, &record, &not_computed);
}

/* True if an output has a name that a manifest may have. */
static bool is_manifest_output(const char *output) {
  const size_t length = strlen(output);
  return strncmp(output, "manifest", 8) == 0 && !strchr(output, '/') && length >= 12 &&
         strcmp(output + length - 4, ".csv") == 0;
}

/* Keeps an image of an earlier run if its output exists and picture and mask are unchanged. Otherwise prepares its
   output for writing. */
static bool keep_claimed(batch_job *job, size_t position, batch_record record) {
  const batch_image_name *image = &job->list.images[position];
  const uint64_t mask_digest = image_masks_digest(&job->masks, image->name);
  batch_source now;
  const batch_source_state source = batch_source_compare(image->path, &record.source, &now);
  const bool is_there = batch_store_verify(&job->store, image, record.output_digest, source == SOURCE_UNKNOWN);
  if (is_there && mask_digest == record.mask_digest && source != SOURCE_CHANGED) {
    record.state = BATCH_KEPT;
    if (now.is_recorded) record.source = now;
    conclude(job, position, &record, &not_computed);
    if (source == SOURCE_GONE) batch_images_note_gone(job, image->name);
    return true;
  }
  job->manifest.records[position].replaces = is_there;
  if (source == SOURCE_CHANGED) note_changed(job);
  return false;
}

static int32_t is_wanted(void *user, size_t index, void *image_user) {
  batch_job *job = user;
  (void)image_user;
  const size_t position = position_in_list(job, index);
  const batch_image_name *image = &job->list.images[position];
  batch_record record = job->manifest.records[position];
  char *output = batch_store_output(image->name, &job->store);
  char message[CLI_MESSAGE_BYTES] = "";
  hs_status status = HS_OK;
  if (!output) {
    status = HS_ERR_MEMORY;
    snprintf(message, sizeof message, "out of memory for the name of the output");
  } else if (image->shares_output) {
    status = HS_ERR_ARGUMENT;
    hs_message_set(message, sizeof message, "an earlier image has the same output %s", output);
  } else if (!batch_store_is_database(&job->store) && is_manifest_output(output)) {
    status = HS_ERR_ARGUMENT;
    hs_message_set(message, sizeof message, "the output %s has the name of a manifest", output);
  }
  free(output);
  if (status != HS_OK) {
    conclude_failed(job, position, (batch_record){0}, status, message);
    return 0;
  }
  if (record.state == BATCH_CLAIMED && keep_claimed(job, position, record)) return 0;
  batch_source_begin(image->path, &job->manifest.records[position].source);
  job->manifest.records[position].mask_digest = image_masks_digest(&job->masks, image->name);
  return 1;
}

/* Stops the run, because nothing more can be stored. Only the first reason is reported. */
static void end_run(batch_job *job, const char *message) {
  pthread_mutex_lock(&job->lock);
  if (job->fatal[0] == '\0') snprintf(job->fatal, sizeof job->fatal, "%s", message);
  pthread_mutex_unlock(&job->lock);
  hs_batch_stop(job->run);
}

/* Records the state of an image's file (size, times, digest). */
static hs_status note_loaded(void *user, size_t index, void *image_user, char *message, size_t message_bytes) {
  batch_job *job = user;
  (void)image_user;
  const size_t position = position_in_list(job, index);
  const char *path = job->list.images[position].path;
  batch_source *source = &job->manifest.records[position].source;
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
    conclude(job, one->position, &one->record, &one->computed);
  }
  job->pending_count = 0;
}

/* Adds the next image to the database, in the order of images. */
static hs_status add_prepared(batch_job *job, size_t position, const batch_prepared_result *one, batch_record *record,
                              char message[CLI_MESSAGE_BYTES]) {
  batch_prepared *prepared = one->prepared;
  const hs_batch_result *result = one->result;
  const hs_status status = batch_store_add(&job->store, job->list.images[position].name, prepared, result->exif,
                                           record->replaces, message, CLI_MESSAGE_BYTES);
  if (status != HS_OK && batch_database_is_lost(&job->store.database)) {
    /* images that were not committed are lost too; the next run processes them again */
    job->pending_count = 0;
    end_run(job, message);
    return HS_OK;
  }
  if (status != HS_OK) return status;
  record->output_digest = prepared->output_digest;
  record->state = BATCH_DONE;
  record->features = prepared->features;
  record->digest = prepared->digest;
  job->pending[job->pending_count++] = (batch_pending){position, *record, computed_of(result)};
  if (job->pending_count == BATCH_DATABASE_PENDING || batch_database_wants_commit(&job->store.database))
    batch_images_commit(job);
  return HS_OK;
}

static hs_status write_file(batch_job *job, size_t position, int32_t writer, const hs_batch_result *result,
                            batch_record *record, char message[CLI_MESSAGE_BYTES]) {
  const hs_status status = batch_store_put(&job->store, writer, job->list.images[position].name, result->features,
                                           &record->output_digest, message, CLI_MESSAGE_BYTES);
  if (status != HS_OK) {
    record->output_digest = 0;
    return status;
  }
  record->state = BATCH_DONE;
  record->features = result->features->count;
  record->digest = digest_features(result->features);
  const batch_computed computed = computed_of(result);
  conclude(job, position, record, &computed);
  return HS_OK;
}

/* Stores the result of an image. */
static void write_result(batch_job *job, int32_t writer, const batch_prepared_result *one) {
  const hs_batch_result *result = one->result;
  const size_t position = position_in_list(job, result->index);
  const batch_record *known = &job->manifest.records[position];
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
    status = add_prepared(job, position, one, &record, message);
  else
    status = write_file(job, position, writer, result, &record, message);
  pthread_mutex_lock(&job->lock);
  if (status == HS_OK) batch_report_notes(&job->report, result->notes);
  if (result->status == HS_OK && job->first_s == 0) job->first_s = clock_s(CLOCK_MONOTONIC) - job->started_s;
  pthread_mutex_unlock(&job->lock);
  batch_prepared_free(one->prepared);
  if (status != HS_OK) conclude_failed(job, position, record, status, message);
}

static hs_status mask_of(void *user, size_t index, void *image_user, const hs_image *image, hs_image *mask,
                         char *message, size_t message_bytes) {
  const batch_job *job = user;
  (void)image_user;
  return image_masks_of(&job->masks, job->list.images[position_in_list(job, index)].name, image, mask, message,
                        message_bytes);
}

/* ---- threads that take results */

static void count_wait(batch_writer *writer, double before_s) {
  writer->waited_s += clock_s(CLOCK_MONOTONIC) - before_s;
}

/* Returns the next result; null: there are no more. If all results wait for earlier images of the database, waits
   too. */
static const hs_batch_result *take_result(batch_writer *writer) {
  enum { LOOK_AGAIN_NS = 5000000 };
  const hs_batch_result *result = NULL;
  const double before_s = clock_s(CLOCK_MONOTONIC);
  while (hs_batch_next(writer->job->run, -1, &result) == HS_ERR_CAPACITY) os_sleep_ns(LOOK_AGAIN_NS);
  count_wait(writer, before_s);
  return result;
}

static void write_files(batch_writer *writer) {
  batch_job *job = writer->job;
  for (const hs_batch_result *result; (result = take_result(writer)) != NULL;) {
    const batch_prepared_result one = {.result = result};
    if (!result->skipped) write_result(job, writer->number, &one);
    (void)hs_batch_release(job->run, result);
  }
}

/* Converts results to rows of the database. This frees the features, but not the slots, which bound the number of
   rows. */
static void prepare_rows(batch_writer *writer) {
  batch_job *job = writer->job;
  for (const hs_batch_result *result; (result = take_result(writer)) != NULL;) {
    batch_prepared *prepared = result->features ? batch_store_prepare(&job->store, result->features) : NULL;
    (void)hs_batch_take_features(job->run, result, NULL);
    pthread_mutex_lock(&job->flow);
    job->prepared[result->index % job->capacity] = (batch_prepared_result){result, prepared};
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->flow);
  }
}

/* Takes the rows of image `next`. False: there will be none (the image was dropped, or all are written). */
static bool take_prepared(batch_writer *writer, size_t next, batch_prepared_result *one) {
  batch_job *job = writer->job;
  batch_prepared_result *position = &job->prepared[next % job->capacity];
  const double before_s = clock_s(CLOCK_MONOTONIC);
  pthread_mutex_lock(&job->flow);
  while (!position->result && job->writers_running > 1) pthread_cond_wait(&job->changed, &job->flow);
  *one = *position;
  *position = (batch_prepared_result){0};
  pthread_mutex_unlock(&job->flow);
  count_wait(writer, before_s);
  return one->result != NULL;
}

/* Writes rows to the database in the order of the images, on a single thread. */
static void write_rows(batch_writer *writer) {
  batch_job *job = writer->job;
  batch_prepared_result one;
  for (size_t next = 0; take_prepared(writer, next, &one); next++) {
    if (!one.result->skipped) write_result(job, 0, &one);
    (void)hs_batch_release(job->run, one.result);
  }
}

static void writer_ended(batch_writer *writer, double cpu_s, bool writes) {
  batch_job *job = writer->job;
  pthread_mutex_lock(&job->flow);
  job->writers_running--;
  job->write_cpu_s += cpu_s;
  if (writes) job->waited_s += writer->waited_s;
  if (writes) job->lived_s += clock_s(CLOCK_MONOTONIC) - job->started_s;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->flow);
}

static void *run_writer(void *argument) {
  batch_writer *writer = argument;
  const bool is_database = batch_store_is_database(&writer->job->store);
  const bool is_last = writer->number == writer->job->writer_count - 1;
  if (!is_database)
    write_files(writer);
  else if (is_last)
    write_rows(writer);
  else
    prepare_rows(writer);
  writer_ended(writer, clock_s(CLOCK_THREAD_CPUTIME_ID), !is_database || is_last);
  return NULL;
}

hs_status batch_images_start(batch_job *job) {
  hs_batch_progress progress = {.struct_size = sizeof progress};
  hs_status status = hs_batch_get_progress(job->run, &progress);
  const bool is_database = batch_store_is_database(&job->store);
  job->capacity = progress.capacity;
  job->writer_count = progress.held + is_database;
  job->writers = calloc((size_t)job->writer_count, sizeof *job->writers);
  job->prepared = is_database ? calloc(job->capacity, sizeof *job->prepared) : NULL;
  if (!job->writers || (is_database && !job->prepared)) status = HS_ERR_MEMORY;
  job->started_s = clock_s(CLOCK_MONOTONIC);
  job->writers_running = job->writers ? job->writer_count : 0;
  for (int32_t i = 0; i < job->writers_running && status == HS_OK; i++) {
    batch_writer *writer = &job->writers[i];
    *writer = (batch_writer){.job = job, .number = i};
    writer->started = os_thread_start(&writer->handle, run_writer, writer);
    if (!writer->started) status = HS_ERR_THREAD;
  }
  if (status == HS_OK) return HS_OK;
  hs_batch_stop(job->run);
  pthread_mutex_lock(&job->flow);
  for (int32_t i = 0; job->writers && i < job->writer_count; i++) job->writers_running -= !job->writers[i].started;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->flow);
  return status;
}

hs_status batch_images_add(batch_job *job) {
  enum { WAITING_MAX = 8192 }; /* maximum number of waiting images: more than the threads take between two calls */
  hs_batch_progress progress = {.struct_size = sizeof progress};
  hs_status status = hs_batch_get_progress(job->run, &progress);
  while (status == HS_OK && job->added < job->count && progress.added - progress.begun < WAITING_MAX) {
    const char *path = job->list.images[position_in_list(job, job->added)].path;
    status = hs_batch_add(job->run, &(hs_batch_image){.source = hs_source_file(path)});
    job->added += status == HS_OK;
    progress.added++;
  }
  if (status == HS_OK && job->added == job->count) status = hs_batch_end(job->run);
  return status == HS_ERR_CANCELLED ? HS_OK : status; /* it is no failure if the user stopped the batch */
}

bool batch_images_wait(batch_job *job, int32_t milliseconds) {
  const struct timespec until = os_deadline(milliseconds);
  int error = 0;
  pthread_mutex_lock(&job->flow);
  while (job->writers_running > 0 && error == 0) error = os_condition_wait(&job->changed, &job->flow, &until);
  const bool ended = job->writers_running == 0;
  pthread_mutex_unlock(&job->flow);
  return ended;
}

void batch_images_end(batch_job *job) {
  hs_batch_stop(job->run);
  for (int32_t i = 0; job->writers && i < job->writer_count; i++)
    if (job->writers[i].started) pthread_join(job->writers[i].handle, NULL);
  for (size_t i = 0; job->prepared && i < job->capacity; i++) batch_prepared_free(job->prepared[i].prepared);
  hs_batch_destroy(job->run);
  free(job->prepared);
  free(job->writers);
}

hs_status batch_images_open(batch_job *job, char *message, size_t message_bytes) {
  const int32_t jobs = (int32_t)job->set->values[OPTION_JOBS].integer;
  const size_t listed = job->list.count, skipped = (size_t)(job->shard - 1), step = (size_t)job->shards;
  job->count = listed > skipped ? (listed - skipped + step - 1) / step : 0;
  for (int32_t i = 0; i < job->devices.count; i++) job->device_pointers[i] = &job->device_options[i];
  const hs_batch_options options = {.struct_size = sizeof options,
                                    .devices = job->device_pointers,
                                    .device_count = job->devices.count,
                                    .readers = jobs,
                                    .held = jobs,
                                    .load = &job->input.load,
                                    .wanted = is_wanted,
                                    .loaded = note_loaded,
                                    .mask = job->masks.shared || job->masks.folder ? mask_of : NULL,
                                    .user = job};
  return hs_batch_open(&job->run, &options, message, message_bytes);
}
