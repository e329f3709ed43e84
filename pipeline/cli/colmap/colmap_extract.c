/*
 * feature_extractor, feature_importer and database_creator of hartsift-colmap.
 */
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/colmap/colmap_pictures.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/cli/common/progress.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/include/hartsift_batch.h"

enum {
  /* interval of commits: a commit waits for the disk, but images that are not committed are lost if the process is
   * killed */
  COMMIT_EACH_MS = 1000,
  TICK_MS = 100,        /* interval of signal checks */
  MAX_SIZE_USUAL = 3200 /* COLMAP's max_image_size */
};

typedef struct extract_job {
  const colmap_options *options;
  colmap_images images;
  colmap_cameras cameras;
  hs_colmap_database *database;
  size_t *wanted; /* images without features in the database */
  size_t wanted_count, reported, done, failed;
  colmap_gpus gpus;
  hs_options features, device_options[COLMAP_GPUS_MAX];
  const hs_options *device_pointers[COLMAP_GPUS_MAX];
  hs_load_options load;
  image_masks own_masks, camera_mask;
  hs_image camera_pixels;
  hs_batch *run;
  double committed_ms;
  bool has_uncommitted, is_lost; /* is_lost: the database can store nothing more */
  int stopped_by;                /* signal that stopped the run; 0: none */
} extract_job;

static cli_exit fail(const char *about, const char *reason) {
  return cli_fail(CLI_FAILED, COMMAND_TOP, "%s%s%s", about, about[0] != '\0' ? ": " : "", reason);
}

/* ------------------------------------------------------------------ the database */

static cli_exit open_database(const colmap_options *options, hs_colmap_database **database) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_colmap_options opening;
  (void)hs_colmap_options_init(&opening);
  opening.message = message;
  opening.message_bytes = sizeof message;
  const char *path = options->values[COLMAP_DATABASE_PATH].text;
  database_list_begin(path);
  const hs_status status = hs_colmap_open(database, path, &opening);
  database_list_new(*database);
  return status == HS_OK ? CLI_DONE : fail("", message[0] != '\0' ? message : hs_status_string(status));
}

/* From the first commit on, a signal leaves a new database. After a failure signals are kept until the database is
 * closed, which removes it. */
static cli_exit commit(hs_colmap_database *database) {
  database_unlist();
  if (hs_colmap_commit(database) != HS_OK) return fail("", hs_colmap_last_error(database));
  database_list_end();
  return CLI_DONE;
}

static void close_database(hs_colmap_database *database) {
  database_unlist();
  hs_colmap_close(database);
  database_list_end();
}

cli_exit colmap_create_database(const colmap_options *options) {
  hs_colmap_database *database = NULL;
  cli_exit result = open_database(options, &database);
  if (result == CLI_DONE) result = commit(database);
  close_database(database);
  return result;
}

/* ------------------------------------------------------------------ options of extraction */

/* Limits of COLMAP's options that hartsift's options of the same meaning have. */
enum { FEATURES_END = 1 << 30, OCTAVE_FIRST = -1, OCTAVE_LAST = 3, SCALES_END = 8, SIZES_FIRST = 2, SIZES_END = 16 };
enum { THREADS_END = 1024, OCTAVES_END = 32, ORIENTATIONS_END = 18 }; /* more has no effect */
static const double dsp_first = 0.125, dsp_middle = 1.0, dsp_end = 4.0, edge_first = 1.0, edge_end = 1000.0;

static int32_t at_most(int64_t value, int32_t most) { return value > most ? most : (int32_t)value; }

static bool read_normalization(const colmap_value *value, hs_options *features) {
  const bool is_root = os_compare_caseless(value->text, "l1_root") == 0;
  features->norm = is_root ? HS_NORM_ROOT : HS_NORM_L2;
  return colmap_expect(value, is_root || os_compare_caseless(value->text, "l2") == 0, "l1_root or l2");
}

/* Reads the options of domain-size pooling. COLMAP's last size is a step below dsp_max_scale. */
static bool read_sizes(const colmap_value *values, hs_options *features) {
  const double smallest = values[COLMAP_DSP_SMALLEST].number, end = values[COLMAP_DSP_LARGEST].number;
  features->dsp = 1;
  if (!colmap_expect_integer(&values[COLMAP_DSP_SIZES], SIZES_FIRST, SIZES_END, &features->dsp_sizes) ||
      !colmap_expect_number(&values[COLMAP_DSP_SMALLEST], dsp_first, dsp_middle))
    return false;
  const double sizes = (double)features->dsp_sizes, share = 1.0 - 1.0 / sizes;
  features->dsp_smallest = (float)smallest;
  features->dsp_largest = (float)(end - (end - smallest) / sizes);
  return colmap_expect_number(&values[COLMAP_DSP_LARGEST], (dsp_middle - smallest / sizes) / share,
                              (dsp_end - smallest / sizes) / share);
}

/* Reads the thresholds; a peak_threshold counts for one of the scales of an octave. */
static bool read_thresholds(const colmap_value *values, hs_options *features) {
  char what[64];
  const double peak = values[COLMAP_PEAK_THRESHOLD].number, most = 1.0 / (double)features->scales;
  snprintf(what, sizeof what, "a number above 0, at most %.4g", most);
  features->contrast = (float)(peak * (double)features->scales);
  features->edge = (float)values[COLMAP_EDGE_THRESHOLD].number;
  return colmap_expect(&values[COLMAP_PEAK_THRESHOLD], peak > 0.0 && features->contrast <= 1.0f, what) &&
         colmap_expect_number(&values[COLMAP_EDGE_THRESHOLD], edge_first, edge_end);
}

static cli_exit fill_features(const colmap_value *values, hs_options *features) {
  hs_options_init(features, HS_PROFILE_COLMAP);
  const int64_t threads = values[COLMAP_EXTRACTION_THREADS].integer, octaves = values[COLMAP_OCTAVES].integer;
  const int64_t orientations = values[COLMAP_MAX_ORIENTATIONS].integer, size = values[COLMAP_MAX_IMAGE_SIZE].integer;
  features->threads = threads > 0 ? at_most(threads, THREADS_END) : 0;
  features->max_pixels = UINT64_MAX;
  features->octaves = octaves > 0 ? at_most(octaves, OCTAVES_END) : 0; /* 0: as many as the image allows */
  features->affine = values[COLMAP_AFFINE].flag;
  features->max_orientations = at_most(orientations, ORIENTATIONS_END);
  features->upright = values[COLMAP_UPRIGHT].flag;
  const bool is_right =
      colmap_expect(&values[COLMAP_MAX_IMAGE_SIZE], size == -1 || size > 0, "-1, or a whole number above 0") &&
      colmap_expect_integer(&values[COLMAP_MAX_FEATURES], 1, FEATURES_END, &features->max_features) &&
      colmap_expect_integer(&values[COLMAP_FIRST_OCTAVE], OCTAVE_FIRST, OCTAVE_LAST, &features->first_octave) &&
      colmap_expect(&values[COLMAP_OCTAVES], octaves == -1 || octaves > 0, "-1 (all), or a whole number above 0") &&
      colmap_expect_integer(&values[COLMAP_OCTAVE_RESOLUTION], 1, SCALES_END, &features->scales) &&
      read_thresholds(values, features) &&
      colmap_expect(&values[COLMAP_MAX_ORIENTATIONS], orientations > 0, "a whole number above 0") &&
      (!values[COLMAP_DSP].flag || read_sizes(values, features)) &&
      read_normalization(&values[COLMAP_NORMALIZATION], features);
  return is_right ? CLI_DONE : CLI_FAILED;
}

/* Fills in one device for each GPU, or the CPU. */
static int32_t fill_devices(extract_job *job, const colmap_gpus *gpus) {
  const int32_t count = gpus->count > 0 ? gpus->count : 1;
  for (int32_t i = 0; i < count; i++) {
    job->device_options[i] = job->features;
    job->device_options[i].device = gpus->count > 0 ? HS_DEVICE_CUDA : HS_DEVICE_CPU;
    job->device_options[i].device_index = gpus->count > 0 ? gpus->each[i] : 0;
    job->device_pointers[i] = &job->device_options[i];
  }
  return count;
}

static cli_exit read_masks(extract_job *job) {
  const colmap_value *values = job->options->values;
  const char *folder = values[COLMAP_MASK_PATH].text, *shared = values[COLMAP_CAMERA_MASK_PATH].text;
  char message[CLI_MESSAGE_BYTES] = "";
  cli_input input = {.load = job->load, .command = COMMAND_TOP};
  const bool has_shared = shared[0] != '\0';
  const hs_status loaded =
      has_shared ? cli_load_mask(&input, shared, &job->camera_pixels, message, sizeof message) : HS_OK;
  cli_input_free(&input);
  if (loaded != HS_OK) return fail("--ImageReader.camera_mask_path", message);
  (void)image_masks_make(&job->camera_mask, &input, has_shared ? &job->camera_pixels : NULL, message, sizeof message);
  input.masks = folder[0] != '\0' ? folder : NULL;
  if (image_masks_make(&job->own_masks, &input, NULL, message, sizeof message)) return CLI_DONE;
  return cli_fail(CLI_FAILED, COMMAND_TOP,
                  "--ImageReader.mask_path '%s': expected a folder with NAME.png for the image NAME", folder);
}

/* ------------------------------------------------------------------ masks */

/* Makes *mask black where `other`, of the same size, is black. */
static void blacken(hs_image *mask, const hs_image *other) {
  const size_t width = (size_t)mask->width;
  const size_t stride = mask->stride_bytes != 0 ? mask->stride_bytes : width;
  const size_t other_stride = other->stride_bytes != 0 ? other->stride_bytes : width;
  for (size_t row = 0; row < (size_t)mask->height; row++) {
    /* the cast is allowed, because this file allocated the pixels */
    unsigned char *pixels = (unsigned char *)mask->data + row * stride;
    const unsigned char *others = (const unsigned char *)other->data + row * other_stride;
    for (size_t column = 0; column < width; column++)
      if (others[column] == 0) pixels[column] = 0;
  }
}

/* hs_batch_options.mask */
static hs_status mask_of(void *user, size_t index, void *image_user, const hs_image *image, hs_image *mask,
                         char *message, size_t message_bytes) {
  const extract_job *job = user;
  const char *name = job->images.names[job->wanted[index]];
  hs_image shared = {0};
  (void)image_user;
  hs_status status = image_masks_of(&job->own_masks, name, image, mask, message, message_bytes);
  if (status == HS_OK && job->own_masks.folder && !mask->data) {
    hs_message_set(message, message_bytes, "has no mask in %s: it is left out", job->own_masks.folder);
    status = HS_ERR_IO;
  }
  if (status == HS_OK && job->camera_mask.shared)
    status = image_masks_of(&job->camera_mask, name, image, &shared, message, message_bytes);
  if (status == HS_OK && shared.data && mask->data) blacken(mask, &shared);
  if (status == HS_OK && !mask->data) {
    *mask = shared;
    return HS_OK;
  }
  hs_image_free(&shared);
  if (status != HS_OK) hs_image_free(mask);
  return status;
}

/* ------------------------------------------------------------------ results */

static cli_exit commit_when_due(extract_job *job, bool at_once) {
  const double now = cli_milliseconds();
  if (!job->has_uncommitted || job->is_lost || (!at_once && now - job->committed_ms < COMMIT_EACH_MS)) return CLI_DONE;
  job->committed_ms = now;
  job->has_uncommitted = false;
  const cli_exit result = commit(job->database);
  job->is_lost = result != CLI_DONE;
  return result;
}

/* Prints COLMAP's lines, which programs show as progress. */
static void report_image(extract_job *job, const char *name) {
  job->reported++;
  cli_note("Processed file [%zu/%zu]", job->reported, job->images.count);
  cli_note("  Name:            %s", name);
}

static void report_failed(extract_job *job, const char *name, const char *message) {
  job->failed++;
  cli_error_about(COMMAND_TOP, name, message);
}

/* Writes COLMAP's name of a camera model. The choices of --camera-model are in the order of COLMAP's numbers. */
static void name_model(int32_t model, char *name, size_t bytes) {
  const char *choice = option_get(OPTION_CAMERA_MODEL)->choices;
  for (int32_t i = 0; i < model && *choice != '\0'; i++) {
    choice += strcspn(choice, "|");
    choice += *choice == '|';
  }
  snprintf(name, bytes, "%.*s", (int)strcspn(choice, "|"), choice);
}

static void report_added(const hs_colmap_image *image, size_t features) {
  cli_note("  Dimensions:      %d x %d", (int)image->camera.width, (int)image->camera.height);
  char model[64];
  name_model(image->camera.model, model, sizeof model);
  cli_note("  Camera:          #%u - %s", (unsigned)image->camera_id, model);
  cli_note("  Focal Length:    %.2fpx%s", image->camera.parameters[0],
           image->camera.prior_focal_length != 0 ? " (Prior)" : "");
  cli_note("  Features:        %zu", features);
}

static void take_features(extract_job *job, const char *name, const colmap_picture *picture,
                          const hs_features *features) {
  char message[CLI_MESSAGE_BYTES] = "";
  hs_colmap_image added;
  if (!job->has_uncommitted) job->committed_ms = cli_milliseconds();
  const hs_status status = colmap_add_picture(&job->cameras, job->database, name, picture, features, &added, message);
  if (status == HS_OK) {
    job->done++;
    job->has_uncommitted = true;
    report_added(&added, features->count);
    return;
  }
  job->is_lost = colmap_is_lost(job->database);
  report_failed(job, name, message);
}

static void take_result(extract_job *job, const hs_batch_result *result) {
  const char *name = job->images.names[job->wanted[result->index]];
  report_image(job, name);
  if (result->status != HS_OK) {
    report_failed(job, name, result->message[0] != '\0' ? result->message : hs_status_string(result->status));
    return;
  }
  if (result->notes->damages > 0) cli_error(COMMAND_TOP, "warning: %s: pixels may be wrong", result->notes->damage);
  const colmap_picture picture = {result->width, result->height, result->exif};
  take_features(job, name, &picture, result->features);
}

/* ------------------------------------------------------------------ the run */

/* Checks that the database has the camera of existing_camera_id. */
static cli_exit check_camera(const extract_job *job) {
  const colmap_value *value = &job->options->values[COLMAP_EXISTING_CAMERA];
  hs_colmap_camera camera;
  bool found = true;
  if (value->integer != -1 && colmap_read_camera(job->database, value->integer, &camera, &found) != HS_OK)
    return fail("", hs_colmap_last_error(job->database));
  return colmap_expect(value, found, "-1, or the number of a camera in the database") ? CLI_DONE : CLI_FAILED;
}

/* Lists the images without features. */
static cli_exit choose_images(extract_job *job) {
  job->wanted = calloc(job->images.count + 1, sizeof *job->wanted);
  if (!job->wanted) return fail("", hs_status_string(HS_ERR_MEMORY));
  for (size_t i = 0; i < job->images.count; i++) {
    if (!colmap_has_features(&job->cameras, job->database, job->images.names[i])) {
      job->wanted[job->wanted_count++] = i;
      continue;
    }
    report_image(job, job->images.names[i]);
    cli_note("  IMAGE_EXISTS: Features for image were already extracted.");
  }
  return CLI_DONE;
}

static cli_exit start_batch(extract_job *job) {
  char message[CLI_MESSAGE_BYTES] = "";
  const bool has_masks = job->own_masks.folder || job->camera_mask.shared;
  const hs_batch_options options = {.struct_size = sizeof options,
                                    .devices = job->device_pointers,
                                    .device_count = fill_devices(job, &job->gpus),
                                    .in_order = 1,
                                    .load = &job->load,
                                    .mask = has_masks ? mask_of : NULL,
                                    .user = job};
  hs_status status = hs_batch_open(&job->run, &options, message, sizeof message);
  if (message[0] != '\0') cli_error(COMMAND_TOP, "%s", message);
  for (size_t i = 0; i < job->wanted_count && status == HS_OK; i++) {
    char *path = colmap_image_file(&job->images, job->wanted[i]);
    status = path ? hs_batch_add(job->run, &(hs_batch_image){.source = hs_source_file(path)}) : HS_ERR_MEMORY;
    free(path);
  }
  if (status == HS_OK) status = hs_batch_end(job->run);
  return status == HS_OK ? CLI_DONE : message[0] != '\0' ? CLI_FAILED : fail("", hs_status_string(status));
}

static bool has_ended(hs_batch *run) {
  hs_batch_progress progress = {.struct_size = sizeof progress};
  return hs_batch_get_progress(run, &progress) != HS_OK || progress.ended != 0;
}

static cli_exit take_results(extract_job *job, const stop_signals *signals) {
  cli_exit result = CLI_DONE;
  for (bool ended = false; !ended && result == CLI_DONE && !job->is_lost;) {
    const hs_batch_result *next = NULL;
    ended = has_ended(job->run); /* tested before the call, because a result after the end is the last one */
    if (hs_batch_next(job->run, TICK_MS, &next) != HS_OK) return fail("", "the extraction cannot continue");
    ended = ended && !next;
    if (next) take_result(job, next);
    (void)hs_batch_release(job->run, next);
    result = commit_when_due(job, false);
    if (job->stopped_by == 0) job->stopped_by = stop_signals_take(signals);
    if (job->stopped_by != 0) hs_batch_stop(job->run);
  }
  return result;
}

static cli_exit conclude(const extract_job *job) {
  const size_t left = job->wanted_count - job->done - job->failed;
  hs_batch_statistics numbers = {.struct_size = sizeof numbers};
  if (job->run && hs_batch_get_statistics(job->run, &numbers) == HS_OK && numbers.fallback)
    cli_error(COMMAND_TOP, "images that do not fit were processed by the CPU (%s)", numbers.fallback);
  if (job->stopped_by != 0)
    return cli_fail(CLI_FAILED, COMMAND_TOP, "stopped by %s with %zu of %zu images left; the same command continues",
                    stop_signal_name(job->stopped_by), left, job->images.count);
  if (job->failed > 0)
    cli_error(COMMAND_TOP, "%zu of %zu images could not be processed", job->failed, job->images.count);
  return job->is_lost || (job->failed > 0 && job->failed == job->images.count) ? CLI_FAILED : CLI_DONE;
}

/* Counting GPUs starts the driver, so the number of images must be known. */
static cli_exit choose_gpus(extract_job *job) {
  const colmap_value *values = job->options->values;
  cli_choose_gpu_queues(job->images.count);
  const bool is_right = colmap_choose_gpus(&values[COLMAP_EXTRACTION_GPU], &values[COLMAP_EXTRACTION_GPUS], &job->gpus);
  return is_right ? CLI_DONE : CLI_FAILED;
}

static cli_exit prepare(extract_job *job) {
  const colmap_value *values = job->options->values;
  const int64_t size = values[COLMAP_MAX_IMAGE_SIZE].integer;
  job->load = (hs_load_options){.struct_size = sizeof job->load,
                                .max_pixels = UINT64_MAX,
                                .ignore_exif = 1,
                                .max_image_size = size > 0 ? size : MAX_SIZE_USUAL,
                                .only_files = 1};
  if (!colmap_cameras_choose(&job->cameras, job->options)) return CLI_FAILED;
  cli_exit result = fill_features(values, &job->features);
  if (result == CLI_DONE) result = colmap_images_read(&job->images, job->options);
  if (result == CLI_DONE) result = choose_gpus(job);
  if (result == CLI_DONE) result = read_masks(job);
  if (result == CLI_DONE) result = open_database(job->options, &job->database);
  if (result == CLI_DONE) result = check_camera(job);
  if (result == CLI_DONE) result = choose_images(job);
  job->has_uncommitted = result == CLI_DONE; /* a new database is made even without images */
  return result;
}

static void free_job(extract_job *job) {
  hs_batch_destroy(job->run);
  close_database(job->database);
  hs_image_free(&job->camera_pixels);
  colmap_cameras_free(&job->cameras);
  colmap_images_free(&job->images);
  free(job->wanted);
  free(job);
}

cli_exit colmap_extract(const colmap_options *options) {
  stop_signals signals;
  extract_job *job = calloc(1, sizeof *job);
  if (!job) return fail("", hs_status_string(HS_ERR_MEMORY));
  job->options = options;
  cli_exit result = prepare(job);
  stop_signals_block(&signals); /* the signals stay blocked in threads that are started later */
  if (result == CLI_DONE && job->wanted_count > 0) {
    result = start_batch(job);
    if (result == CLI_DONE) result = take_results(job, &signals);
  }
  if (result == CLI_DONE) result = commit_when_due(job, true);
  if (result == CLI_DONE) result = conclude(job);
  free_job(job);
  stop_signals_restore(&signals);
  return result;
}

/* ------------------------------------------------------------------ feature_importer */

/* Reads size and EXIF of the picture, and its features from IMPORT/NAME.txt, whose coordinates are those of the
 * picture. */
static void import_image(extract_job *job, size_t image) {
  char message[CLI_MESSAGE_BYTES] = "";
  const char *name = job->images.names[image];
  char *folder = cli_join(job->options->values[COLMAP_IMPORT_PATH].text, "/", name);
  char *features_path = folder ? cli_join(folder, ".txt", "") : NULL;
  char *path = colmap_image_file(&job->images, image);
  const cli_input input = {.load = job->load};
  hs_load_options load = job->load;
  hs_exif exif = {0};
  hs_image picture = {0};
  hs_features features = {0};
  load.exif = &exif;
  load.message = message;
  load.message_bytes = sizeof message;
  hs_status status = path && features_path ? hs_load_image(path, &load, &picture) : HS_ERR_MEMORY;
  if (status == HS_OK) status = cli_load_features(&input, features_path, &features, message, sizeof message);
  if (status == HS_OK) {
    features.image_width = picture.width;
    features.image_height = picture.height;
    take_features(job, name, &(colmap_picture){picture.width, picture.height, &exif}, &features);
  } else {
    report_failed(job, name, message[0] != '\0' ? message : hs_status_string(status));
  }
  hs_features_free(&features);
  hs_image_free(&picture);
  free(folder);
  free(features_path);
  free(path);
}

cli_exit colmap_import_features(const colmap_options *options) {
  stop_signals signals;
  const colmap_value *folder = &options->values[COLMAP_IMPORT_PATH];
  if (!colmap_expect(folder, os_is_folder(folder->text), "a folder with NAME.txt for the image NAME"))
    return CLI_FAILED;
  extract_job *job = calloc(1, sizeof *job);
  if (!job) return fail("", hs_status_string(HS_ERR_MEMORY));
  job->options = options;
  cli_exit result = prepare(job);
  job->load.max_image_size = 0;
  stop_signals_block(&signals);
  for (size_t i = 0; i < job->wanted_count && result == CLI_DONE && job->stopped_by == 0 && !job->is_lost; i++) {
    report_image(job, job->images.names[job->wanted[i]]);
    import_image(job, job->wanted[i]);
    result = commit_when_due(job, false);
    job->stopped_by = stop_signals_take(&signals);
  }
  if (result == CLI_DONE) result = commit_when_due(job, true);
  if (result == CLI_DONE) result = conclude(job);
  free_job(job);
  stop_signals_restore(&signals);
  return result;
}
