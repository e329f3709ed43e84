/*
 * hartsift batch: extracts features of many images; an interrupted run can be resumed.
 */
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"
#include "os/os_threads.h"
#include "pipeline/cli/batch/batch_images.h"
#include "pipeline/cli/batch/batch_report.h"
#include "pipeline/cli/batch/batch_rows.h"
#include "pipeline/cli/common/progress.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"

enum {
  BATCH_TICK_MS = 100, /* interval of signal checks and progress line updates */
  /* images in flight on the CPU if there is also a GPU, which at the end should not wait for many of them */
  BATCH_CPU_WITH_GPU = 2
};

/* ---- preparing */

static cli_exit usage(const char *message) { return cli_fail(CLI_USAGE, COMMAND_BATCH, "%s", message); }

/* Chooses the format from --format and the output's name. False, with a message, if the output is of another kind, or a
   folder with the name of a feature file. */
static bool choose_format(batch_job *job, char *message, size_t message_bytes) {
  const option_value *values = job->set->values;
  const char *path = values[OPTION_OUTPUT].text, *dot = strrchr(path, '.');
  os_info info;
  const bool is_there = os_info_of(path, &info), is_folder = is_there && info.kind == OS_FOLDER;
  const hs_format named = hs_format_of_name(path);
  job->format = values[OPTION_FORMAT].is_set ? format_by_name(values[OPTION_FORMAT].text)->id : HS_FORMAT_NPZ;
  if (!values[OPTION_FORMAT].is_set && !is_folder && named == HS_FORMAT_COLMAP_DB) job->format = HS_FORMAT_COLMAP_DB;
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
    snprintf(message, message_bytes, "--output '%s': expected a directory (append '/') or a database NAME.db", path);
    return false;
  }
  return true;
}

static bool counts_gpus(const batch_job *job) {
  const option_value *devices = &job->set->values[OPTION_DEVICES];
  return devices->is_set && strstr(devices->text, "all");
}

static cli_exit read_devices(batch_job *job) {
  char message[CLI_MESSAGE_BYTES] = "";
  const cli_exit result = cli_parse_devices(job->set, &job->devices, message, sizeof message);
  if (result != CLI_DONE) cli_error(COMMAND_BATCH, "%s", message);
  return result;
}

static cli_exit read_own_options(batch_job *job) {
  const option_value *values = job->set->values;
  char message[CLI_MESSAGE_BYTES] = "";
  job->shard = job->shards = 1;
  if (values[OPTION_SHARD].is_set &&
      hs_find_shard(values[OPTION_SHARD].text, NULL, NULL, &job->shard, &job->shards, message, sizeof message) != HS_OK)
    return usage(message);
  if (!values[OPTION_OUTPUT].is_set || strcmp(values[OPTION_OUTPUT].text, "-") == 0)
    return usage("--output is missing: expected a directory or a database for the features");
  if (!choose_format(job, message, sizeof message)) return usage(message);
  if (values[OPTION_MAX_IMAGE_SIZE].is_set && values[OPTION_REGION].is_set)
    return usage("--region refers to the original image: expected without --max-image-size");
  database_camera camera;
  if (!database_options_are_used(job->set, job->format == HS_FORMAT_COLMAP_DB, message, sizeof message) ||
      !database_camera_choose(job->set, &camera, message, sizeof message))
    return usage(message);
  return counts_gpus(job) ? CLI_DONE : read_devices(job);
}

/* Returns the common start of the paths of an output's manifests; null: out of memory. */
static char *manifest_prefix(const char *location, bool is_database) {
  const size_t bytes = strlen(location) + sizeof "/manifest";
  char *prefix = malloc(bytes);
  if (prefix) snprintf(prefix, bytes, "%s%smanifest", location, is_database ? "." : "/");
  return prefix;
}

/* Returns the number of images that this run will process. */
static size_t count_left(const batch_job *job) {
  const option_value *values = job->set->values;
  const size_t shards = (size_t)job->shards;
  if (!values[OPTION_RESUME].is_set) return job->list.count / shards;
  char *prefix = manifest_prefix(values[OPTION_OUTPUT].text, job->format == HS_FORMAT_COLMAP_DB);
  const size_t left =
      prefix ? batch_count_left(&job->list, prefix, (size_t)job->shard - 1, shards) : job->list.count / shards;
  free(prefix);
  return left;
}

/* Chooses hardware queues for the images to process, then counts the GPUs if --devices names all. */
static cli_exit choose_queues(batch_job *job) {
  cli_choose_gpu_queues(count_left(job));
  return counts_gpus(job) ? read_devices(job) : CLI_DONE;
}

static const char *listed_name(const void *list, size_t index) {
  return ((const batch_list *)list)->images[index].name;
}

static cli_exit load_mask(batch_job *job) {
  const option_value *mask = &job->set->values[OPTION_MASK];
  char message[CLI_MESSAGE_BYTES] = "";
  if (mask->is_set && cli_load_mask(&job->input, mask->text, &job->mask, message, sizeof message) != HS_OK)
    return cli_fail(CLI_FAILED, COMMAND_BATCH, "--mask: %s", message);
  if (image_masks_make(&job->masks, &job->input, &job->mask, message, sizeof message) &&
      image_masks_count(&job->masks, job->list.count, listed_name, &job->list, message, sizeof message)) {
    if (message[0] != '\0' && !job->set->values[OPTION_QUIET].is_set) cli_note("%s", message);
    return CLI_DONE;
  }
  return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s", message);
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

/* Prepares the folder and the records. Files of an earlier run are not changed yet. */
static cli_exit prepare_outputs(batch_job *job) {
  const option_value *values = job->set->values;
  const hs_format format = job->format;
  if (job->options.descriptor == HS_DESCRIPTOR_NONE && !format_by_id(format)->without_descriptors)
    return cli_fail(CLI_USAGE, COMMAND_BATCH, "--format %s has no place for features without descriptors",
                    format_by_id(format)->name);
  cli_exit result = batch_store_open(&job->store, values[OPTION_OUTPUT].text, format, job->options.layout);
  if (result != CLI_DONE) return result;
  const batch_inputs inputs = {job->input.load.ignore_exif != 0, digest_of_mask(&job->mask)};
  char *settings = batch_settings_text(job->set, &job->options, format_by_id(format)->name, &inputs);
  char *prefix = manifest_prefix(job->store.location, batch_store_is_database(&job->store));
  if (!settings || !prefix || !batch_list_mark_shared(&job->list, batch_store_output, &job->store)) {
    cli_error(COMMAND_BATCH, "out of memory for the names of the outputs");
    result = CLI_FAILED;
  } else {
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
      options->in_flight = BATCH_CPU_WITH_GPU;
      options->decoder = HS_DECODER_AUTO; /* a GPU decoder was requested, but this device has none */
    }
  }
}

static cli_exit make_run(batch_job *job) {
  char message[CLI_MESSAGE_BYTES] = "";
  fill_device_options(job);
  /* the driver of a GPU starts threads here; signals must stay blocked in them, because wait_for_end takes them */
  stop_signals signals;
  stop_signals_block(&signals);
  const hs_status status = batch_images_open(job, message, sizeof message);
  stop_signals_restore(&signals);
  if (status != HS_OK)
    cli_print_create_error(COMMAND_BATCH, message);
  else if (message[0] != '\0')
    cli_error(COMMAND_BATCH, "%s", message);
  for (int32_t i = 0; status == HS_OK && i < job->devices.count; i++)
    cli_device_resolve(&job->devices.each[i], hs_batch_backend_report(job->run, i));
  return status == HS_OK ? cli_check_devices(COMMAND_BATCH, &job->devices) : cli_exit_of_create(status);
}

/* Adds the images and waits for the end. Returns the signal that stopped it, or 0. */
static int wait_for_end(batch_job *job, const stop_signals *signals, hs_status *status) {
  int stopped_by = 0;
  while (!batch_images_wait(job, BATCH_TICK_MS)) {
    if (*status == HS_OK && job->added < job->count) {
      *status = batch_images_add(job);
      if (*status != HS_OK) hs_batch_stop(job->run);
    }
    if (stopped_by == 0) {
      stopped_by = stop_signals_take(signals);
      if (stopped_by != 0) hs_batch_stop(job->run);
    }
    /* does not wait: a thread may hold the lock while its output is blocked, and signals must be handled */
    if (pthread_mutex_trylock(&job->lock) == 0) {
      batch_report_progress(&job->report);
      pthread_mutex_unlock(&job->lock);
    }
  }
  return stopped_by;
}

static batch_times count_times(const batch_job *job, double start_s) {
  const hs_colmap_database *database = job->store.database.handle;
  hs_batch_statistics numbers = {.struct_size = sizeof numbers};
  (void)hs_batch_get_statistics(job->run, &numbers);
  const double write_cpu_s = job->write_cpu_s + (database ? colmap_writer_cpu_s(database) : 0);
  const double all = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start_s;
  const double extract = all - numbers.read_cpu_s - write_cpu_s;
  batch_times times = {.read_cpu_s = numbers.read_cpu_s,
                       .extract_cpu_s = extract > 0 ? extract : 0,
                       .write_cpu_s = write_cpu_s,
                       .first_s = job->first_s,
                       .read_busy = numbers.read_busy,
                       .write_busy = job->lived_s > 0 ? 1 - job->waited_s / job->lived_s : 0};
  for (int32_t i = 0; i < job->devices.count; i++) times.device_busy[i] = hs_batch_device_busy(job->run, i);
  return times;
}

static cli_exit conclude_batch(batch_job *job, hs_status status, int stopped_by) {
  const batch_report *report = &job->report;
  const size_t ended = report->done + report->kept + report->failed;
  const bool is_untouched = job->manifest.has_old && report->done == 0;
  const char *outlook = is_untouched ? "no image processed, the earlier run's results stay" : "--resume continues";
  if (status != HS_OK) {
    cli_error(COMMAND_BATCH, "%s", hs_status_string(status));
  } else if (job->fatal[0] != '\0') {
    cli_error(COMMAND_BATCH, "%s; stopped, %s", job->fatal, outlook);
  } else if (ended < report->total) {
    cli_error(COMMAND_BATCH, "stopped by %s with %zu of %zu images left; %s", stop_signal_name(stopped_by),
              report->total - ended, report->total, outlook);
  } else {
    batch_store_end(&job->store); /* while the journal exists, which keeps other processes out */
    const cli_exit result = batch_manifest_finish(&job->manifest, (size_t)(job->shard - 1), (size_t)job->shards);
    return report->failed > 0 || job->list.found.unreadable > 0 ? CLI_FAILED : result;
  }
  return CLI_FAILED;
}

static int compare_names(const void *one, const void *other) {
  return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Reports images of earlier runs whose files were removed. */
static void note_gone_images(batch_job *job) {
  char **names = job->manifest.gone;
  const size_t count = job->manifest.gone_count;
  if (count > 0) qsort(names, count, sizeof *names, compare_names);
  for (size_t i = 0; i < count; i++)
    if (i == 0 || strcmp(names[i], names[i - 1]) != 0) batch_images_note_gone(job, names[i]);
}

static cli_exit run_batch(batch_job *job) {
  stop_signals signals;
  const double start_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
  stop_signals_block(&signals); /* threads inherit this, so that only wait_for_end takes signals */
  batch_report_begin(&job->report, job->set, job->count);
  if (job->count == 0 && !job->report.is_quiet && job->list.count == 0)
    cli_error(COMMAND_BATCH, "%s: no images there", job->set->operands[0]);
  note_gone_images(job);
  hs_status status = batch_images_start(job);
  if (status == HS_OK) status = batch_images_add(job);
  const int stopped_by = wait_for_end(job, &signals, &status);
  batch_images_commit(job);
  const batch_times times = count_times(job, start_s);
  batch_report_end(&job->report, &job->devices, &times);
  hs_batch_statistics numbers = {.struct_size = sizeof numbers};
  (void)hs_batch_get_statistics(job->run, &numbers);
  if (!job->report.is_quiet) database_report_cameras(COMMAND_BATCH, &job->store.database.camera);
  if (numbers.fallback)
    cli_error(COMMAND_BATCH, "images that do not fit were processed by the CPU (%s)", numbers.fallback);
  const cli_exit result = conclude_batch(job, status, stopped_by);
  stop_signals_restore(&signals);
  return result;
}

/* Reports files of the folders that were not listed. */
static void note_findings(const batch_job *job) {
  const hs_image_findings *found = &job->list.found;
  if (job->set->values[OPTION_QUIET].is_set) return;
  if (found->passed_over_text[0] != '\0') cli_note("%s: %s", job->set->operands[0], found->passed_over_text);
  if (found->has_left_out)
    cli_note("%s: is the folder of --masks: its files are not taken for images", job->set->values[OPTION_MASKS].text);
  if (found->repeated > 0)
    cli_note("%s: is skipped, because it was already searched under another name%s", found->repeated_path,
             found->repeated > 1 ? ", as other links to folders were" : "");
}

static cli_exit prepare_and_run(batch_job *job) {
  char tag[64] = "";
  const char line_end = job->set->values[OPTION_NULL].is_set ? '\0' : '\n';
  cli_exit result = read_own_options(job);
  const option_value *masks = &job->set->values[OPTION_MASKS];
  const char *mask_folder = masks->is_set ? masks->text : NULL;
  result = result == CLI_DONE ? batch_list_read(&job->list, job->set->operands[0], mask_folder, line_end) : result;
  result = result == CLI_DONE ? choose_queues(job) : result;
  if (result == CLI_DONE) {
    note_findings(job);
    cli_fill_options(job->set, &job->options, &job->expert);
    cli_input_init(&job->input, job->set, &job->options);
    cli_input_for(&job->input, job->set, hs_format_ignores_exif(job->format) != 0);
    result = load_mask(job);
  }
  result = result == CLI_DONE ? make_run(job) : result;
  result = result == CLI_DONE ? prepare_outputs(job) : result;
  const bool resume = job->set->values[OPTION_RESUME].is_set;
  result = result == CLI_DONE ? batch_manifest_open(&job->manifest, resume) : result;
  if (job->shards > 1) snprintf(tag, sizeof tag, "-%ld-of-%ld", (long)job->shard, (long)job->shards);
  result = result == CLI_DONE ? batch_store_begin(&job->store, job->set, tag) : result;
  return result == CLI_DONE ? run_batch(job) : result;
}

static bool make_locks(batch_job *job) {
  if (!os_condition_make(&job->changed)) return false;
  const bool has_flow = pthread_mutex_init(&job->flow, NULL) == 0;
  if (has_flow && pthread_mutex_init(&job->lock, NULL) == 0) return true;
  if (has_flow) pthread_mutex_destroy(&job->flow);
  pthread_cond_destroy(&job->changed);
  return false;
}

cli_exit cmd_batch(const option_set *set) {
  batch_job *job = calloc(1, sizeof *job);
  cli_exit result = CLI_FAILED;
  if (!job || !make_locks(job)) {
    cli_error(COMMAND_BATCH, "%s", hs_status_string(HS_ERR_MEMORY));
    free(job);
    return result;
  }
  job->set = set;
  job->manifest.journal = -1;
  result = prepare_and_run(job);
  batch_images_end(job);
  batch_store_close(&job->store);
  batch_manifest_free(&job->manifest);
  batch_list_free(&job->list);
  hs_image_free(&job->mask);
  cli_input_free(&job->input);
  pthread_mutex_destroy(&job->lock);
  pthread_mutex_destroy(&job->flow);
  pthread_cond_destroy(&job->changed);
  free(job);
  return result;
}
