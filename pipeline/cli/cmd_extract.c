/*
 * hartsift extract: extracts features of images, to standard output or to one file per image.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/cli/common/cli_input.h"
#include "pipeline/cli/common/database_output.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/formats.h"
#include "pipeline/image_io/image_io.h"

enum { EXTRACT_NAMED_KEYPOINTS = 10 }; /* maximum number of keypoints without a descriptor that are listed */

/* State of the command across images. */
typedef struct extract_job {
  const option_set *set;
  hs_options options;
  hs_context *context; /* context; null after it could not be created again for a device that failed */
  cli_input input;
  output_plan plan;
  hs_colmap_database *database; /* output database; null: the output is files */
  database_camera camera;       /* camera of new images */
  hs_exif exif;                 /* EXIF of the current image */
  int added;                    /* number of images in the database that are not committed */
  hs_image mask;                /* image of --mask; data null: no mask */
  image_masks masks;
  hs_features user;        /* features of --keypoints */
  hs_features features;    /* features of the current image; the capacity is reused */
  hs_status shared_status; /* status of --mask and --keypoints; if it is a failure, every image fails */
  char shared_message[CLI_MESSAGE_BYTES];
} extract_job;

/* Result of one image. */
typedef struct extract_result {
  const char *image, *output; /* output null: there is none */
  int32_t width, height;      /* 0: the image could not be read */
  size_t features;
  double milliseconds;
  const char *way, *way_reason; /* way of its frame, and the reason for it */
  hs_status status;
  char message[CLI_MESSAGE_BYTES];
} extract_result;

static bool has_option(const extract_job *job, option_id id) { return job->set->values[id].is_set; }

/* Checks that images in several folders have different names. Without --image-path the name of an image is its file
   name. */
static bool check_folders(const extract_job *job) {
  if (!has_option(job, OPTION_SINGLE_CAMERA_PER_FOLDER) || has_option(job, OPTION_IMAGE_PATH)) return true;
  for (int i = 0; i < job->set->operand_count; i++) {
    const char *image = job->set->operands[i];
    if (!strchr(image, '/') || output_is_scene(image)) continue;
    cli_error(
        COMMAND_EXTRACT,
        "--single-camera-per-folder needs image names with folders, but the name of %s is %s: expected --image-path DIR, where DIR contains these folders",
        image, strrchr(image, '/') + 1);
    return false;
  }
  return true;
}

static bool is_binary(hs_format format) {
  return format == HS_FORMAT_NPZ || format == HS_FORMAT_BIN || format == HS_FORMAT_VISUALSFM;
}

/* Checks combinations of options that the option table cannot express. */
static bool check_combinations(extract_job *job) {
  char message[CLI_MESSAGE_BYTES];
  if (!database_options_are_used(job->set, job->plan.to_database, message, sizeof message) ||
      !database_camera_choose(job->set, &job->camera, message, sizeof message)) {
    cli_error(COMMAND_EXTRACT, "%s", message);
    return false;
  }
  if (!check_folders(job)) return false;
  if (job->set->operand_count == 1 && os_is_folder(job->set->operands[0])) {
    cli_error(COMMAND_EXTRACT,
              "'%s' is a folder: expected images; 'hartsift batch DIR -o DIR' takes all images of a folder",
              job->set->operands[0]);
    return false;
  }
  if (has_option(job, OPTION_JSON) && job->plan.to_stdout) {
    cli_error(COMMAND_EXTRACT, "--json and the features cannot share standard output: expected -o FILE or -o DIR");
    return false;
  }
  if (job->plan.to_stdout && is_binary(job->plan.format)) {
    char what[64];
    snprintf(what, sizeof what, "--format %s", format_by_id(job->plan.format)->name);
    if (cli_refuses_terminal(COMMAND_EXTRACT, what)) return false;
  }
  const option_id without_detection[] = {OPTION_MASK,         OPTION_MASKS,     OPTION_REGION,
                                         OPTION_MAX_FEATURES, OPTION_SELECTION, OPTION_GRID};
  for (size_t i = 0; i < sizeof without_detection / sizeof without_detection[0]; i++) {
    if (has_option(job, OPTION_KEYPOINTS) && has_option(job, without_detection[i])) {
      cli_error(COMMAND_EXTRACT, "--%s selects among detected keypoints: expected without --keypoints",
                option_get(without_detection[i])->name);
      return false;
    }
  }
  if (has_option(job, OPTION_MAX_IMAGE_SIZE) && (has_option(job, OPTION_KEYPOINTS) || has_option(job, OPTION_REGION))) {
    cli_error(COMMAND_EXTRACT, "--%s refers to the original image: expected without --max-image-size",
              has_option(job, OPTION_KEYPOINTS) ? "keypoints" : "region");
    return false;
  }
  return true;
}

/* Returns the name by which an image's mask is looked up: the image's name in the database, else its path. */
static const char *mask_name(const output_target *target, const char *path) {
  const char *slash = strrchr(path, '/');
  return target->name ? target->name : slash ? slash + 1 : path;
}

static const char *planned_name(const void *user, size_t index) {
  const extract_job *job = user;
  return mask_name(&job->plan.targets[index], job->set->operands[index]);
}

/* Opens the folder of --masks, and counts the images that have a mask. */
static void find_masks(extract_job *job) {
  char message[CLI_MESSAGE_BYTES];
  if (!image_masks_make(&job->masks, &job->input, &job->mask, message, sizeof message) ||
      !image_masks_count(&job->masks, (size_t)job->plan.count, planned_name, job, message, sizeof message)) {
    job->shared_status = HS_ERR_ARGUMENT;
    snprintf(job->shared_message, sizeof job->shared_message, "%s", message);
  } else if (message[0] != '\0' && !has_option(job, OPTION_QUIET)) {
    cli_note("%s", message);
  }
}

static void load_shared(extract_job *job) {
  const option_value *values = job->set->values;
  char message[CLI_MESSAGE_BYTES - 64] = ""; /* shorter than a message, because the option's name is added */
  const char *option = "";
  if (values[OPTION_MASK].is_set) {
    option = "--mask: ";
    job->shared_status = cli_load_mask(&job->input, values[OPTION_MASK].text, &job->mask, message, sizeof message);
  } else if (values[OPTION_KEYPOINTS].is_set) {
    option = "--keypoints: ";
    job->shared_status =
        cli_load_features(&job->input, values[OPTION_KEYPOINTS].text, &job->user, message, sizeof message);
  }
  snprintf(job->shared_message, sizeof job->shared_message, "%s%s", option, message);
  if (job->shared_status == HS_OK) find_masks(job);
}

/* Reports the keypoints of --keypoints that have no descriptor. */
static void report_undescribed(const extract_job *job, const char *image, const hs_status *statuses) {
  size_t count = 0;
  char names[EXTRACT_NAMED_KEYPOINTS * 24] = "";
  size_t used = 0;
  for (size_t i = 0; i < job->user.count; i++) {
    if (statuses[i] == HS_OK) continue;
    if (count < EXTRACT_NAMED_KEYPOINTS)
      used += (size_t)snprintf(names + used, sizeof names - used, "%s%zu", count > 0 ? ", " : "", i + 1);
    count++;
  }
  if (count > 0) {
    cli_error(COMMAND_EXTRACT,
              "%s: %zu of %zu keypoints cannot be described (outside the picture or without a size), their descriptors "
              "are 0: number %s%s",
              image, count, job->user.count, names, count > EXTRACT_NAMED_KEYPOINTS ? ", ..." : "");
  }
}

static hs_status describe_user(extract_job *job, const hs_image *image, const char *name) {
  hs_status *statuses = malloc((job->user.count + 1) * sizeof *statuses);
  if (!statuses) return HS_ERR_MEMORY;
  const hs_status status =
      hs_describe(job->context, image, job->user.keypoints, job->user.count, &job->features, statuses);
  if (status == HS_OK) report_undescribed(job, name, statuses);
  free(statuses);
  return status;
}

/* True if mask and keypoints have the picture's size. For keypoints only swapped sides count as a mismatch. */
static bool check_sizes(const extract_job *job, const hs_image *image, extract_result *result) {
  const hs_image *mask = &job->mask;
  const hs_features *keypoints = &job->user;
  if (mask->data && image->original_width == 0 && (mask->width != image->width || mask->height != image->height)) {
    cli_explain_size(&job->input, "the mask is", mask->width, mask->height, image, result->message);
    return false;
  }
  if (image->width != image->height && keypoints->image_width == image->height &&
      keypoints->image_height == image->width) {
    cli_explain_size(&job->input, "the keypoints of --keypoints are of a picture of", keypoints->image_width,
                     keypoints->image_height, image, result->message);
    return false;
  }
  return true;
}

static hs_status compute(extract_job *job, const hs_source *loaded, const output_target *target,
                         extract_result *result) {
  const hs_image *image = &loaded->image;
  hs_source source = *loaded;
  hs_image mask;
  if (!check_sizes(job, image, result)) return HS_ERR_ARGUMENT;
  hs_status status = image_masks_of(&job->masks, mask_name(target, result->image), image, &mask, result->message,
                                    sizeof result->message);
  if (status != HS_OK) return status;
  const double start = cli_milliseconds();
  source.mask = mask.data ? &mask : NULL;
  if (has_option(job, OPTION_KEYPOINTS))
    status = describe_user(job, image, result->image);
  else
    status = hs_extract_source(job->context, &source, &job->features);
  hs_image_free(&mask);
  if (status == HS_OK) status = hs_features_to_original(&job->features, image);
  result->milliseconds = cli_milliseconds() - start;
  if (status != HS_OK) cli_explain(job->context, status, result->message, sizeof result->message);
  return status;
}

static hs_status save_to_database(extract_job *job, extract_result *result, const output_target *target) {
  const hs_status status = database_add_image(job->database, &job->camera, target->name, &job->features, &job->exif);
  if (status == HS_OK) {
    result->output = target->path;
    job->added++;
  } else {
    const char *reason = hs_colmap_last_error(job->database);
    snprintf(result->message, sizeof result->message, "%s", reason[0] != '\0' ? reason : hs_status_string(status));
  }
  return status;
}

static hs_status save(extract_job *job, extract_result *result, const output_target *target) {
  const char *path = target->path;
  hs_file_options options = {.struct_size = sizeof options,
                             .format = job->plan.format,
                             .layout = job->options.layout,
                             .image_name = result->image,
                             .message = result->message,
                             .message_bytes = sizeof result->message};
  if (cli_is_same_file(result->image, path)) {
    snprintf(result->message, sizeof result->message, "the output %s would overwrite the image itself", path);
    return HS_ERR_ARGUMENT;
  }
  /* the program that reads the features gets rotated pictures too */
  if (has_option(job, OPTION_EXIF)) job->features.origin.exif_orientation = 0;
  if (job->database) return save_to_database(job, result, target);
  const hs_status status = hs_save_features(path, &job->features, &options);
  if (status == HS_OK)
    result->output = path;
  else if (result->message[0] == '\0')
    snprintf(result->message, sizeof result->message, "%s: %s", path, hs_status_string(status));
  return status;
}

/* Replaces the context after a failure of the device. */
static void renew_context(extract_job *job) {
  hs_destroy(job->context);
  job->context = NULL;
  job->shared_status =
      hs_create_explained(&job->context, &job->options, job->shared_message, sizeof job->shared_message);
}

/* Extracts from the file in one call, which with a memory limit may read the picture row by row. False: load and
   extract in two calls, because the picture is needed, or because the file must be loaded again to find the reason of a
   failure. */
static bool extract_file(extract_job *job, extract_result *result) {
  const double start = cli_milliseconds();
  hs_load_notes notes;
  hs_load_options load = job->input.load;
  load.notes = &notes;
  if (job->options.max_memory_bytes == 0 || image_is_no_file(result->image) || !image_is_regular_file(result->image) ||
      has_option(job, OPTION_MASK) || has_option(job, OPTION_MASKS) || has_option(job, OPTION_KEYPOINTS) ||
      hs_extract_file(job->context, result->image, &load, NULL, &job->features) != HS_OK)
    return false;
  cli_print_notes(&job->input, result->image, &notes);
  result->milliseconds = cli_milliseconds() - start;
  result->width = job->features.image_width;
  result->height = job->features.image_height;
  return true;
}

/* If decoding a picture exceeds --max-memory: adds to the message how much memory suffices for decoding and frame. */
static void name_enough(const extract_job *job, extract_result *result) {
  if (!has_option(job, OPTION_MAX_MEMORY)) return;
  const uint64_t enough = enough_memory(&job->options, &job->input.load, result->image);
  const size_t used = strlen(result->message);
  if (enough > 0)
    snprintf(result->message + used, sizeof result->message - used,
             "; for decoding and the smallest tiles %" PRIu64 " are enough", enough);
}

/* Loads an image. If keypoints are given, it must not stay encoded, because they are described neither in tiles nor
   from a JPEG that the GPU decodes. */
static hs_status load_source(extract_job *job, extract_result *result, bool keep_encoded, hs_source *loaded) {
  cli_input *input = &job->input;
  const bool has_keypoints = has_option(job, OPTION_KEYPOINTS);
  if (!has_keypoints &&
      scene_wants_more(&job->options, &input->load, result->image, result->message, sizeof result->message))
    return HS_ERR_LIMIT;
  const int32_t keeps = input->load.keep_encoded;
  if (!keep_encoded || has_keypoints) input->load.keep_encoded = 0;
  const hs_status status = cli_load_source(input, result->image, loaded, result->message, sizeof result->message);
  input->load.keep_encoded = keeps;
  if (status == HS_ERR_LIMIT) name_enough(job, result);
  return status;
}

/* Decodes a JPEG on the host after the GPU failed: this gives the reason, or pixels with which extraction succeeds. */
static void compute_again(extract_job *job, const output_target *target, hs_source *loaded, extract_result *result) {
  if (loaded->kind != HS_SOURCE_JPEG || hs_status_class_of(result->status) != HS_CLASS_ARGUMENT) return;
  hs_source_free(loaded);
  result->status = load_source(job, result, false, loaded);
  if (result->status == HS_OK) result->status = compute(job, loaded, target, result);
}

static void save_found(extract_job *job, const output_target *target, extract_result *result) {
  hs_statistics statistics = {.struct_size = sizeof statistics};
  (void)hs_get_statistics(job->context, &statistics);
  result->features = job->features.count;
  result->way = hs_frame_way_name(statistics.way);
  result->way_reason = statistics.way_reason;
  result->status = save(job, result, target);
}

static void extract_one(extract_job *job, const output_target *target, extract_result *result) {
  hs_source loaded = hs_source_of(HS_SOURCE_PIXELS);
  const hs_image *image = &loaded.image;
  if (job->shared_status != HS_OK) {
    result->status = job->shared_status;
    snprintf(result->message, sizeof result->message, "%s", job->shared_message);
    return;
  }
  if (target->is_duplicate) {
    result->status = HS_ERR_ARGUMENT;
    const char *advice = target->name && !has_option(job, OPTION_IMAGE_PATH)
                             ? "; --image-path DIR tells images of several folders apart"
                             : "";
    snprintf(result->message, sizeof result->message, "an earlier image has the same %s %s%s",
             target->name != NULL ? "name" : "output", target->name ? target->name : target->path, advice);
    return;
  }
  if (extract_file(job, result)) {
    save_found(job, target, result);
    return;
  }
  result->status = load_source(job, result, true, &loaded);
  if (result->status != HS_OK) return;
  result->width = image->original_width ? image->original_width : image->width;
  result->height = image->original_height ? image->original_height : image->height;
  result->status = compute(job, &loaded, target, result);
  compute_again(job, target, &loaded, result);
  if (result->status == HS_OK)
    save_found(job, target, result);
  else if (hs_status_class_of(result->status) == HS_CLASS_DEVICE)
    renew_context(job);
  hs_source_free(&loaded);
  cli_input_free(&job->input);
}

static void print_json(const extract_result *result) {
  const bool done = result->status == HS_OK;
  printf("{\"image\": ");
  cli_write_json_string(stdout, result->image);
  if (result->width > 0)
    printf(", \"width\": %" PRId32 ", \"height\": %" PRId32, result->width, result->height);
  else
    printf(", \"width\": null, \"height\": null");
  if (done)
    printf(", \"features\": %zu, \"milliseconds\": %.3f, \"way\": \"%s\", \"way_reason\": \"%s\"", result->features,
           result->milliseconds, result->way, result->way_reason);
  else
    printf(", \"features\": null, \"milliseconds\": null, \"way\": null, \"way_reason\": null");
  printf(", \"output\": ");
  cli_write_json_string(stdout, result->output);
  printf(", \"status\": \"%s\", \"error\": ", hs_status_name(result->status));
  char message[CLI_MESSAGE_BYTES];
  snprintf(message, sizeof message, "%s", result->message);
  cli_name_options(COMMAND_EXTRACT, message, sizeof message);
  cli_write_json_string(stdout, done ? NULL : message);
  printf("}\n");
  fflush(stdout);
}

static cli_exit report(const extract_job *job, const extract_result *result) {
  const bool done = result->status == HS_OK;
  if (has_option(job, OPTION_JSON)) print_json(result);
  if (!done && !(job->plan.to_stdout && cli_stdout_is_gone())) {
    cli_error_about(COMMAND_EXTRACT, result->image, result->message);
  } else if (done && !has_option(job, OPTION_QUIET)) {
    cli_note("%s: %" PRId32 "x%" PRId32 ", %zu features, %.0f ms -> %s", result->image, result->width, result->height,
             result->features, result->milliseconds, job->plan.to_stdout ? "standard output" : result->output);
  }
  return done ? CLI_DONE : CLI_FAILED;
}

static cli_exit open_database(extract_job *job) {
  char message[CLI_MESSAGE_BYTES];
  if (!job->plan.to_database) return CLI_DONE;
  const char *path = job->plan.targets[0].path;
  database_list_begin(path);
  const hs_status status = database_open(job->set, path, job->options.layout, &job->database, message, sizeof message);
  database_list_new(job->database);
  return status == HS_OK ? CLI_DONE : cli_fail(CLI_FAILED, COMMAND_EXTRACT, "%s", message);
}

/* True if a failure (a full disk) has removed the added images, so that no more can be added. */
static bool is_lost(const extract_job *job) { return job->database && colmap_is_lost(job->database); }

/* Commits the added images. If there are none, no new database is created. */
static cli_exit close_database(extract_job *job, cli_exit result) {
  if (!has_option(job, OPTION_QUIET)) database_report_cameras(COMMAND_EXTRACT, &job->camera);
  database_unlist();
  if (!is_lost(job) && job->added > 0 && hs_colmap_commit(job->database) != HS_OK) {
    cli_error(COMMAND_EXTRACT, "%s", hs_colmap_last_error(job->database));
    result = CLI_FAILED;
  }
  hs_colmap_close(job->database);
  database_list_end();
  return result;
}

static cli_exit extract_all(extract_job *job) {
  cli_exit result = CLI_DONE;
  load_shared(job);
  for (int i = 0; i < job->plan.count; i++) {
    extract_result one = {.image = job->set->operands[i]};
    extract_one(job, &job->plan.targets[i], &one);
    if (report(job, &one) != CLI_DONE) result = CLI_FAILED;
    if (is_lost(job)) {
      cli_error(COMMAND_EXTRACT, "%s: the run ends at image %d of %d, and none of them was added",
                job->plan.targets[i].path, i + 1, job->plan.count);
      break;
    }
    /* the reader of the records has closed the pipe, so the other images are not processed */
    if (ferror(stdout)) break;
  }
  return result;
}

cli_exit cmd_extract(const option_set *set) {
  extract_job job = {.set = set};
  char message[CLI_MESSAGE_BYTES] = "";
  cli_exit result = output_plan_make(&job.plan, set, message, sizeof message);
  if (result != CLI_DONE) {
    cli_error(COMMAND_EXTRACT, "%s", message);
    return result;
  }
  result = check_combinations(&job) ? cli_make_context(set, &job.options, &job.context) : CLI_USAGE;
  if (result == CLI_DONE) {
    result = output_plan_make_directory(&job.plan, message, sizeof message);
    if (result != CLI_DONE) cli_error(COMMAND_EXTRACT, "%s", message);
  }
  if (result == CLI_DONE) result = open_database(&job);
  if (result == CLI_DONE) {
    cli_input_init(&job.input, set, &job.options);
    cli_input_for(&job.input, set, hs_format_ignores_exif(job.plan.format) != 0);
    job.input.load.exif = &job.exif;
    result = close_database(&job, extract_all(&job));
    if (cli_fallback_of(job.context)) cli_error(COMMAND_EXTRACT, "%s", cli_fallback_of(job.context));
    cli_input_free(&job.input);
  }
  hs_image_free(&job.mask);
  hs_features_free(&job.user);
  hs_features_free(&job.features);
  hs_destroy(job.context);
  output_plan_free(&job.plan);
  return result;
}
