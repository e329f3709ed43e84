/*
 * hartsift batch: features of many images, resumable.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "pipeline/base/message.h"
#include "pipeline/cli/batch/batch_engine.h"
#include "pipeline/cli/batch/batch_feeder.h"
#include "pipeline/cli/batch/batch_list.h"
#include "pipeline/cli/batch/batch_manifest.h"
#include "pipeline/cli/batch/batch_report.h"
#include "pipeline/cli/batch/batch_settings.h"
#include "pipeline/cli/batch/batch_shard.h"
#include "pipeline/cli/batch/batch_store.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/image_masks.h"
#include "pipeline/cli/common/stop_signals.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"

enum {
  BATCH_TICK_MS = 100,     /* how often signals are looked for and the progress line is drawn */
  BATCH_CPU_BESIDE_GPU = 2 /* images in flight there: at the end a GPU must not wait for many of them */
};

/* An image in the database that is not permanent yet. */
typedef struct batch_pending {
  size_t place;
  batch_record record;
  int32_t device;
  double milliseconds;
} batch_pending;

typedef struct batch_job {
  const option_set *set;
  int32_t shard, shards;
  hs_format format;
  batch_devices devices;
  hs_options options;       /* but for the device */
  hs_expert_options expert; /* of options */
  hs_options device_options[BATCH_DEVICES_MOST];
  cli_input input;
  hs_image mask; /* of --mask; data null: none */
  image_masks masks;
  batch_list list;
  batch_store store;
  batch_manifest manifest;
  batch_run *run;
  pthread_mutex_t lock; /* of what follows, and of the manifest */
  batch_report report;
  char fatal[CLI_MESSAGE_BYTES];                 /* why nothing more can be recorded or written: the batch stops; "" */
  batch_pending pending[BATCH_DATABASE_PENDING]; /* of the one writer of a database */
  size_t pending_count;
} batch_job;

/* ---- what the threads call */

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

static void conclude_failed(batch_job *job, size_t place, batch_record record, hs_status status, const char *message) {
  record.state = BATCH_FAILED;
  record.status = status;
  record.message = strdup(message);
  conclude(job, place, &record, -1, 0);
}

/* The manifest's own name in the folder of the outputs. */
static bool is_manifest_output(const char *output) {
  const size_t length = strlen(output);
  return strncmp(output, "manifest", 8) == 0 && !strchr(output, '/') && length >= 12 &&
         strcmp(output + length - 4, ".csv") == 0;
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
  const uint64_t mask_digest = image_masks_digest(&job->masks, image->name);
  job->manifest.records[place].mask_digest = mask_digest;
  if (record.state == BATCH_CLAIMED && record.mask_digest == mask_digest &&
      batch_store_verify(&job->store, image, record.output_digest)) {
    record.state = BATCH_KEPT;
    conclude(job, place, &record, -1, 0);
    return false;
  }
  return true;
}

/* Makes permanent what is in the database, and only then calls it done. */
static void commit_pending(batch_job *job) {
  char message[CLI_MESSAGE_BYTES] = "";
  const bool failed =
      job->pending_count > 0 && batch_database_commit(&job->store.database, message, sizeof message) != HS_OK;
  if (failed) {
    pthread_mutex_lock(&job->lock);
    snprintf(job->fatal, sizeof job->fatal, "%s", message);
    pthread_mutex_unlock(&job->lock);
    batch_stop(job->run);
  }
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
  const hs_status status =
      batch_store_add(&job->store, job->list.images[place].name, prepared, result->exif, message, CLI_MESSAGE_BYTES);
  if (status != HS_OK) return status;
  record->output_digest = prepared->output_digest;
  record->state = BATCH_DONE;
  record->features = prepared->features;
  record->digest = prepared->digest;
  job->pending[job->pending_count++] = (batch_pending){place, *record, result->device, result->milliseconds};
  if (job->pending_count == BATCH_DATABASE_PENDING || batch_database_wants_commit(&job->store.database))
    commit_pending(job);
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
  batch_record record = {
      .width = result->width, .height = result->height, .mask_digest = job->manifest.records[place].mask_digest};
  char message[CLI_MESSAGE_BYTES] = "";
  hs_status status = result->status;
  if (status != HS_OK)
    snprintf(message, sizeof message, "%s", result->message);
  else if (batch_store_is_database(&job->store))
    status = add_prepared(job, place, result, &record, message);
  else
    status = write_file(job, place, writer, result, &record, message);
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

/* ---- preparing */

static cli_exit usage(const char *message) {
  cli_error(COMMAND_BATCH, "%s", message);
  return CLI_USAGE;
}

/* The format by --format and the output's name. False, with a message, where the output is of another kind, or would be a
   folder with the name of a file of features. */
static bool choose_format(batch_job *job, char *message, size_t message_bytes) {
  const option_value *values = job->set->values;
  const char *path = values[OPTION_OUTPUT].text, *dot = strrchr(path, '.');
  struct stat info;
  const bool is_there = stat(path, &info) == 0, is_folder = is_there && S_ISDIR(info.st_mode);
  const hs_format named = hs_format_of_name(path);
  job->format = values[OPTION_FORMAT].given ? format_by_name(values[OPTION_FORMAT].text)->id : HS_FORMAT_NPZ;
  if (!values[OPTION_FORMAT].given && !is_folder && named == HS_FORMAT_COLMAP_DB) job->format = HS_FORMAT_COLMAP_DB;
  if (is_there && is_folder == (job->format == HS_FORMAT_COLMAP_DB)) {
    snprintf(message, message_bytes, "--output '%s': is a %s: expected a %s", path, is_folder ? "directory" : "file",
             is_folder ? "database" : "directory");
    return false;
  }
  if (is_there || job->format == HS_FORMAT_COLMAP_DB) return true;
  if (dot && strcmp(dot, ".parquet") == 0) {
    snprintf(message, message_bytes, "--output '%s': Parquet files are written by 'python -m hartsift batch'", path);
    return false;
  }
  if (named != HS_FORMAT_AUTO && named != HS_FORMAT_COLMAP_DB) {
    snprintf(message, message_bytes,
             "--output '%s': expected a directory, which such a name is with '/' behind it, or a database NAME.db",
             path);
    return false;
  }
  return true;
}

static cli_exit read_own_options(batch_job *job) {
  const option_value *values = job->set->values;
  char message[CLI_MESSAGE_BYTES] = "";
  job->shard = job->shards = 1;
  if (values[OPTION_SHARD].given &&
      !batch_find_shard(values[OPTION_SHARD].text, &job->shard, &job->shards, message, sizeof message))
    return usage(message);
  if (!values[OPTION_OUTPUT].given || strcmp(values[OPTION_OUTPUT].text, "-") == 0)
    return usage("--output is missing: expected a directory or a database for the features");
  if (!choose_format(job, message, sizeof message)) return usage(message);
  if (values[OPTION_MAX_IMAGE_SIZE].given && values[OPTION_REGION].given)
    return usage("--region is of the image as it is: expected without --max-image-size");
  database_camera camera;
  if (!database_options_are_used(job->set, job->format == HS_FORMAT_COLMAP_DB, message, sizeof message) ||
      !database_camera_choose(job->set, &camera, message, sizeof message))
    return usage(message);
  const cli_exit result = batch_parse_devices(job->set, &job->devices, message, sizeof message);
  if (result != CLI_DONE) cli_error(COMMAND_BATCH, "%s", message);
  return result;
}

static cli_exit load_mask(batch_job *job) {
  const option_value *mask = &job->set->values[OPTION_MASK];
  char message[CLI_MESSAGE_BYTES] = "";
  if (mask->given && cli_load_mask(&job->input, mask->text, &job->mask, message, sizeof message) != HS_OK) {
    cli_error(COMMAND_BATCH, "--mask: %s", message);
    return CLI_FAILED;
  }
  if (image_masks_make(&job->masks, &job->input, &job->mask, message, sizeof message)) return CLI_DONE;
  cli_error(COMMAND_BATCH, "%s", message);
  return CLI_FAILED;
}

static hs_status mask_of(void *user, size_t index, const hs_image *image, hs_image *mask, char *message,
                         size_t message_bytes) {
  const batch_job *job = user;
  return image_masks_of(&job->masks, job->list.images[place_in_list(job, index)].name, image, mask, message,
                        message_bytes);
}

static uint64_t digest_of_mask(const hs_image *mask) {
  digest_state state;
  const size_t width = (size_t)mask->width;
  const size_t stride = mask->stride_bytes != 0 ? mask->stride_bytes : width;
  if (!mask->data) return 0;
  digest_start(&state);
  for (int32_t row = 0; row < mask->height; row++)
    digest_add(&state, (const unsigned char *)mask->data + (size_t)row * stride, width);
  return digest_end(&state);
}

/* The folder and the records; nothing of an earlier run is touched yet. */
static cli_exit prepare_outputs(batch_job *job) {
  const option_value *values = job->set->values;
  const hs_format format = job->format;
  if (job->options.descriptor == HS_DESCRIPTOR_NONE && !format_by_id(format)->without_descriptors) {
    cli_error(COMMAND_BATCH, "--format %s has no place for features without descriptors", format_by_id(format)->name);
    return CLI_USAGE;
  }
  cli_exit result = batch_store_open(&job->store, values[OPTION_OUTPUT].text, format, job->options.layout);
  if (result != CLI_DONE) return result;
  const batch_inputs inputs = {job->input.load.ignore_exif != 0, digest_of_mask(&job->mask)};
  char *settings = batch_settings_text(job->set, &job->options, format_by_id(format)->name, &inputs);
  const size_t room = strlen(job->store.place) + sizeof "/manifest";
  char *prefix = malloc(room);
  if (!settings || !prefix || !batch_list_mark_shared(&job->list, batch_store_output, &job->store)) {
    cli_error(COMMAND_BATCH, "no memory for the names of the outputs");
    result = CLI_FAILED;
  } else {
    snprintf(prefix, room, "%s%smanifest", job->store.place, batch_store_is_database(&job->store) ? "." : "/");
    result = batch_manifest_make(&job->manifest, &job->list, prefix, job->shard, job->shards, settings);
  }
  free(settings);
  free(prefix);
  return result;
}

/* ---- running */

static void fill_device_options(batch_job *job) {
  bool any_gpu = false;
  for (int32_t i = 0; i < job->devices.count; i++) any_gpu = any_gpu || job->devices.each[i].kind != HS_DEVICE_CPU;
  for (int32_t i = 0; i < job->devices.count; i++) {
    hs_options *options = &job->device_options[i];
    *options = job->options;
    options->device = job->devices.each[i].kind;
    options->device_index = job->devices.each[i].index;
    if (any_gpu && options->device == HS_DEVICE_CPU) {
      options->in_flight = BATCH_CPU_BESIDE_GPU;
      options->decoder = HS_DECODER_AUTO; /* the GPU's is what was asked for */
    }
  }
}

static cli_exit make_run(batch_job *job, batch_work *work) {
  char message[CLI_MESSAGE_BYTES] = "";
  const int32_t jobs = (int32_t)job->set->values[OPTION_JOBS].integer;
  fill_device_options(job);
  const size_t listed = job->list.count, skipped = (size_t)(job->shard - 1), step = (size_t)job->shards;
  *work = (batch_work){.count = listed > skipped ? (listed - skipped + step - 1) / step : 0,
                       .path = path_of,
                       .wanted = is_wanted,
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
  /* A GPU's driver starts threads of its own here, which must leave these signals to wait_for_end. */
  stop_signals signals;
  stop_signals_block(&signals);
  const hs_status status = batch_make(&job->run, work, message, sizeof message);
  stop_signals_restore(&signals);
  if (status != HS_OK)
    cli_print_create_error(COMMAND_BATCH, message);
  else if (message[0] != '\0')
    cli_error(COMMAND_BATCH, "%s", message);
  for (int32_t i = 0; status == HS_OK && i < job->devices.count; i++)
    batch_device_resolve(&job->devices.each[i], batch_backend(job->run, i));
  return cli_exit_of_create(status);
}

/* Until everything has ended; returns the signal that stopped it, 0 for none. */
static int wait_for_end(batch_job *job, const stop_signals *signals) {
  int stopped_by = 0;
  while (!batch_wait(job->run, BATCH_TICK_MS)) {
    if (stopped_by == 0) {
      stopped_by = stop_signals_take(signals);
      if (stopped_by != 0) batch_stop(job->run);
    }
    /* A try-lock, because a thread may hold the lock for as long as its output is blocked, and signals must be seen. */
    if (pthread_mutex_trylock(&job->lock) == 0) {
      batch_report_progress(&job->report);
      pthread_mutex_unlock(&job->lock);
    }
  }
  return stopped_by;
}

static batch_times count_times(const batch_job *job, double start_s) {
  struct timespec now;
  const hs_colmap_database *database = job->store.database.handle;
  batch_numbers numbers = batch_get_numbers(job->run);
  if (database) numbers.write_cpu_s += colmap_writer_cpu_s(database);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  const double all = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - start_s;
  const double extract = all - numbers.read_cpu_s - numbers.write_cpu_s;
  batch_times times = {.read_cpu_s = numbers.read_cpu_s,
                       .extract_cpu_s = extract > 0 ? extract : 0,
                       .write_cpu_s = numbers.write_cpu_s,
                       .first_s = numbers.first_s,
                       .read_busy = numbers.read_busy,
                       .write_busy = numbers.write_busy};
  for (int32_t i = 0; i < job->devices.count; i++) times.device_busy[i] = batch_device_busy(job->run, i);
  return times;
}

static cli_exit conclude_batch(batch_job *job, hs_status status, int stopped_by) {
  const batch_report *report = &job->report;
  const size_t ended = report->done + report->kept + report->failed;
  const bool is_untouched = job->manifest.has_old && report->done == 0;
  const char *outlook = is_untouched ? "no image was done, the earlier run's results stay" : "--resume goes on";
  if (status != HS_OK) {
    cli_error(COMMAND_BATCH, "%s", hs_status_string(status));
  } else if (job->fatal[0] != '\0') {
    cli_error(COMMAND_BATCH, "%s; stopped, %s", job->fatal, outlook);
  } else if (ended < report->total) {
    cli_error(COMMAND_BATCH, "stopped by %s with %zu of %zu images left; %s", stop_signal_name(stopped_by),
              report->total - ended, report->total, outlook);
  } else {
    batch_store_end(&job->store); /* before the journal goes, which keeps others away */
    const cli_exit result = batch_manifest_finish(&job->manifest, (size_t)(job->shard - 1), (size_t)job->shards);
    return report->failed > 0 || job->list.unreadable > 0 ? CLI_FAILED : result;
  }
  return CLI_FAILED;
}

static cli_exit run_batch(batch_job *job, const batch_work *work) {
  stop_signals signals;
  struct timespec start;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  stop_signals_block(&signals); /* the threads inherit this: signals wait for wait_for_end */
  batch_report_begin(&job->report, job->set, work->count);
  if (work->count == 0 && !job->report.is_quiet && job->list.count == 0)
    cli_error(COMMAND_BATCH, "%s: no images there", job->set->operands[0]);
  const hs_status status = batch_start(job->run);
  const int stopped_by = wait_for_end(job, &signals);
  commit_pending(job);
  const batch_times times = count_times(job, (double)start.tv_sec + (double)start.tv_nsec * 1e-9);
  batch_report_end(&job->report, &job->devices, &times);
  const char *fallback = batch_get_numbers(job->run).fallback;
  if (fallback) cli_error(COMMAND_BATCH, "images that do not fit were processed by the CPU (%s)", fallback);
  const cli_exit result = conclude_batch(job, status, stopped_by);
  stop_signals_restore(&signals);
  return result;
}

static cli_exit prepare_and_run(batch_job *job) {
  batch_work work;
  char tag[64] = "";
  const char line_end = job->set->values[OPTION_NULL].given ? '\0' : '\n';
  cli_exit result = read_own_options(job);
  result = result == CLI_DONE ? batch_list_read(&job->list, job->set->operands[0], line_end) : result;
  if (result == CLI_DONE) {
    cli_fill_options(job->set, &job->options, &job->expert);
    cli_input_init(&job->input, job->set, &job->options);
    cli_input_for(&job->input, job->set, hs_format_ignores_exif(job->format) != 0);
    result = load_mask(job);
  }
  result = result == CLI_DONE ? make_run(job, &work) : result;
  result = result == CLI_DONE ? prepare_outputs(job) : result;
  const bool resume = job->set->values[OPTION_RESUME].given;
  result = result == CLI_DONE ? batch_manifest_open(&job->manifest, resume) : result;
  if (job->shards > 1) snprintf(tag, sizeof tag, "-%ld-of-%ld", (long)job->shard, (long)job->shards);
  result = result == CLI_DONE ? batch_store_begin(&job->store, job->set, tag) : result;
  return result == CLI_DONE ? run_batch(job, &work) : result;
}

cli_exit cmd_batch(const option_set *set) {
  batch_job *job = calloc(1, sizeof *job);
  cli_exit result = CLI_FAILED;
  if (!job || pthread_mutex_init(&job->lock, NULL) != 0) {
    cli_error(COMMAND_BATCH, "%s", hs_status_string(HS_ERR_MEMORY));
    free(job);
    return result;
  }
  batch_want_queues();
  job->set = set;
  job->manifest.journal = -1;
  result = prepare_and_run(job);
  batch_free(job->run);
  batch_store_close(&job->store);
  batch_manifest_free(&job->manifest);
  batch_list_free(&job->list);
  hs_image_free(&job->mask);
  cli_input_free(&job->input);
  pthread_mutex_destroy(&job->lock);
  free(job);
  return result;
}
