/*
 * Writes the output of merge; see merge.h.
 */
#include "os/os_files.h"
#include "pipeline/cli/merge/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/batch/batch_rows.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"

enum { OUTPUT_FILES = 2 };

/* Files of an image's output: one, or two. */
typedef struct output_files {
  char *paths[OUTPUT_FILES];
  char *bytes[OUTPUT_FILES];
  size_t sizes[OUTPUT_FILES];
  int count;
} output_files;

/* ---- opening */

bool merge_makes_database(const merge_output *output) { return output->format == HS_FORMAT_COLMAP_DB; }

/* True if batch read all JPEGs as stored. */
static bool is_as_stored(const merge_inputs *inputs) {
  size_t length = 0;
  const char *value = merge_setting(&inputs->shards[0], "no-exif=", &length);
  return length == 1 && value[0] == '1';
}

static bool keeps_origin(hs_format format) {
  return format == HS_FORMAT_NPZ || format == HS_FORMAT_JSON || format == HS_FORMAT_OPENCV || format == HS_FORMAT_BIN;
}

/* True if the features suit COLMAP, which does not rotate JPEGs. Files whose features have a known origin are checked
 * one by one. */
static bool fits_colmap(const option_set *set, const merge_inputs *inputs) {
  return inputs->format == HS_FORMAT_COLMAP_DB || keeps_origin(inputs->format) || is_as_stored(inputs) ||
         set->values[OPTION_EXIF].is_set;
}

/* Returns how the images of the inputs share cameras: as in one run over all images. */
static int32_t sharing_of_inputs(const merge_inputs *inputs) {
  size_t length = 0;
  const char *value = merge_setting(&inputs->shards[0], "single-camera=", &length);
  if (length == 1 && value[0] == '1') return HS_CAMERAS_BY_SIZE;
  (void)merge_setting(&inputs->shards[0], "single-camera-per-folder=", &length);
  if (length > 0) return HS_CAMERAS_BY_FOLDER;
  (void)merge_setting(&inputs->shards[0], "camera-id=", &length);
  return length > 0 ? HS_CAMERAS_BY_VALUE : HS_CAMERAS_OWN;
}

static bool choose_cameras(merge_output *output, const merge_inputs *inputs) {
  static const option_id options[] = {OPTION_SINGLE_CAMERA, OPTION_SINGLE_CAMERA_PER_FOLDER, OPTION_CAMERA_ID};
  const option_value *values = output->set->values;
  char message[CLI_MESSAGE_BYTES];
  bool is_set = false;
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    is_set = is_set || values[options[i]].is_set;
    if (merge_makes_database(output) || !values[options[i]].is_set) continue;
    cli_error(COMMAND_MERGE, "--%s is for databases: expected -o NAME.db", option_get(options[i])->name);
    return false;
  }
  if (!database_camera_choose(output->set, &output->camera, message, sizeof message)) {
    cli_error(COMMAND_MERGE, "%s", message);
    return false;
  }
  const int32_t before = inputs->format == HS_FORMAT_COLMAP_DB ? sharing_of_inputs(inputs) : HS_CAMERAS_OWN;
  output->sharing = is_set ? output->camera.sharing : before;
  if (!is_set || before == HS_CAMERAS_OWN || (before == output->sharing && output->camera.camera_id == 0)) return true;
  cli_error(
      COMMAND_MERGE,
      "images of the databases share cameras in another way: expected a merge without camera options, which keeps the cameras");
  return false;
}

cli_exit merge_plan_output(merge_output *output, const option_set *set, const merge_inputs *inputs) {
  const char *location = set->values[OPTION_OUTPUT].text;
  const bool is_folder = os_is_folder(location);
  *output = (merge_output){.set = set, .location = location, .format = inputs->format};
  if (!is_folder && hs_format_of_name(location) == HS_FORMAT_COLMAP_DB) output->format = HS_FORMAT_COLMAP_DB;
  if (!choose_cameras(output, inputs)) return CLI_USAGE;
  if (!merge_makes_database(output)) return CLI_DONE;
  if (is_folder)
    return cli_fail(CLI_USAGE, COMMAND_MERGE, "--output '%s': is a directory, and databases are merged into a database",
                    location);
  if (!fits_colmap(set, inputs))
    return cli_fail(
        CLI_USAGE, COMMAND_MERGE,
        "--output '%s': batch turned JPEG files by their EXIF orientation, and COLMAP reads them as stored: expected "
        "'batch --no-exif', or --exif here where COLMAP gets turned copies",
        location);
  for (size_t i = 0; i < inputs->shard_count; i++)
    if (merge_is_same_location(inputs->shards[i].location, location))
      return cli_fail(CLI_USAGE, COMMAND_MERGE, "--output '%s': is one of the databases to be merged", location);
  return CLI_DONE;
}

cli_exit merge_open_output(merge_output *output) {
  char message[CLI_MESSAGE_BYTES] = "";
  if (!merge_makes_database(output)) {
    if (output_make_directories(output->location)) return CLI_DONE;
    return cli_fail(CLI_FAILED, COMMAND_MERGE, "cannot make the directory %s: %s", output->location, strerror(errno));
  }
  database_list_begin(output->location);
  const hs_status status = database_open_sharing(output->set, output->location, HS_LAYOUT_UBC, output->sharing,
                                                 &output->database, message, sizeof message);
  database_list_new(output->database);
  return status == HS_OK ? CLI_DONE : cli_fail(CLI_FAILED, COMMAND_MERGE, "%s", message);
}

cli_exit merge_commit(merge_output *output) {
  database_unlist();
  if (!output->database || hs_colmap_commit(output->database) == HS_OK) return CLI_DONE;
  return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s", hs_colmap_last_error(output->database));
}

void merge_close_output(merge_output *output) {
  database_unlist();
  hs_colmap_close(output->database);
  database_list_end();
  hs_colmap_close(output->source);
  hs_features_free(&output->features);
  free(output->merged);
  *output = (merge_output){0};
}

/* ---- files */

static void free_files(output_files *files) {
  for (int i = 0; i < OUTPUT_FILES; i++) {
    free(files->paths[i]);
    free(files->bytes[i]);
  }
}

/* Sets the paths of an image's output below `location`; the first one is the file that readers open. */
static bool name_files(output_files *files, const char *location, const char *name, hs_format id) {
  const feature_format *format = format_by_id(id);
  char *relative = batch_output_name(name, id);
  *files = (output_files){.count = format->second_ending ? 2 : 1};
  char *path = relative ? cli_join(location, location[strlen(location) - 1] == '/' ? "" : "/", relative) : NULL;
  files->paths[0] = path;
  if (path && files->count == 2) {
    char *stem = os_copy_text(path, strlen(path) - strlen(format->endings[0]));
    files->paths[1] = stem ? cli_join(stem, "", format->second_ending) : NULL;
    free(stem);
  }
  free(relative);
  return path != NULL && (files->count == 1 || files->paths[1] != NULL);
}

/* Reads the files. False with errno, and with the index of the unreadable file. */
static bool read_files(output_files *files, int *failed) {
  for (int i = 0; i < files->count; i++) {
    os_info info;
    *failed = i;
    const int descriptor = os_open(files->paths[i], OS_READ);
    const bool is_file = descriptor >= 0 && os_info_of_open(descriptor, &info) && info.kind == OS_REGULAR;
    if (descriptor >= 0 && !is_file) errno = EINVAL;
    files->bytes[i] = is_file ? batch_read_whole(descriptor, &files->sizes[i]) : NULL;
    const int error = errno;
    if (descriptor >= 0) os_close(descriptor);
    errno = error;
    if (!files->bytes[i]) return false;
  }
  return true;
}

static uint64_t digest_of_files(const output_files *files) {
  digest_state state;
  digest_start(&state);
  for (int i = 0; i < files->count; i++) digest_add(&state, files->bytes[i], files->sizes[i]);
  return digest_end(&state);
}

/* Reads an image's files and compares them with the manifest. */
static bool read_source(output_files *files, const merge_inputs *inputs, const merge_image *image, char *message,
                        size_t bytes) {
  int failed = 0;
  if (!name_files(files, inputs->shards[image->shard].location, image->name, inputs->format)) {
    hs_message_set(message, bytes, "out of memory for the names of the outputs");
  } else if (!read_files(files, &failed)) {
    hs_message_set(message, bytes, "%s: cannot be read: %s; 'hartsift batch --resume' makes it again",
                   files->paths[failed], strerror(errno));
  } else if (digest_of_files(files) != image->record.output_digest) {
    hs_message_set(message, bytes, "%s: is not what %s says; 'hartsift batch --resume' makes it again", files->paths[0],
                   inputs->shards[image->shard].manifest);
  } else {
    return true;
  }
  return false;
}

static bool write_file(char *path, const char *bytes, size_t size, char *message, size_t message_bytes) {
  atomic_file file;
  char *slash = strrchr(path, '/');
  *slash = '\0';
  const bool made = output_make_directories(path);
  *slash = '/';
  if (!made) {
    hs_message_set(message, message_bytes, "cannot make the directory of %s: %s", path, strerror(errno));
    return false;
  }
  FILE *stream = atomic_file_open_over_links(&file, path);
  if (stream) {
    fwrite(bytes, 1, size, stream);
    atomic_file_commit(&file);
  }
  if (file.status != HS_OK) hs_message_set(message, message_bytes, "%s", file.message);
  return file.status == HS_OK;
}

/* True if the target may be written: it does not exist, is identical, or may be replaced. */
static bool check_target(const merge_output *output, output_files *target, uint64_t digest, bool *is_there,
                         char *message, size_t bytes) {
  int failed = 0;
  os_info info;
  *is_there = read_files(target, &failed) && digest_of_files(target) == digest;
  if (*is_there || !os_info_of_link(target->paths[failed], &info) || output->set->values[OPTION_REPLACE].is_set)
    return true;
  hs_message_set(message, bytes, "%s: is there already and differs; with --replace it is overwritten",
                 target->paths[failed]);
  return false;
}

static bool put_files(const merge_output *output, const merge_inputs *inputs, const merge_image *image, char *message,
                      size_t bytes) {
  output_files source = {0}, target = {0};
  bool is_there = merge_is_same_location(inputs->shards[image->shard].location, output->location);
  bool done = read_source(&source, inputs, image, message, bytes);
  if (done && !is_there) {
    done = name_files(&target, output->location, image->name, output->format);
    if (!done) hs_message_set(message, bytes, "out of memory for the names of the outputs");
    done = done && check_target(output, &target, image->record.output_digest, &is_there, message, bytes);
  }
  /* writes the second file first, because readers open the other one */
  for (int i = source.count - 1; done && !is_there && i >= 0; i--)
    done = write_file(target.paths[i], source.bytes[i], source.sizes[i], message, bytes);
  free_files(&source);
  free_files(&target);
  return done;
}

/* ---- databases */

bool merge_open_source(merge_output *output, const merge_inputs *inputs, size_t shard, char *message, size_t bytes) {
  if (output->source && output->source_shard == shard) return true;
  hs_colmap_close(output->source);
  output->source = NULL;
  const char *location = inputs->shards[shard].location;
  const hs_colmap_options options = {
      .struct_size = sizeof options, .read_only = 1, .message = message, .message_bytes = bytes};
  message[0] = '\0';
  const hs_status status = hs_colmap_open(&output->source, location, &options);
  output->source_shard = shard;
  if (status != HS_OK && message[0] == '\0')
    hs_message_set(message, bytes, "%s: %s", location, hs_status_string(status));
  return status == HS_OK;
}

static bool fail_database(hs_colmap_database *database, char *message, size_t bytes) {
  hs_message_set(message, bytes, "%s", hs_colmap_last_error(database));
  return false;
}

/* Copies an image's position, if it has one. */
static bool copy_position(merge_output *output, uint32_t from_id, uint32_t to_id, char *message, size_t bytes) {
  hs_colmap_position position;
  if (hs_colmap_read_position(output->source, from_id, &position) != HS_OK)
    return fail_database(output->source, message, bytes);
  if (position.found == 0 || hs_colmap_set_position(output->database, to_id, &position) == HS_OK) return true;
  return fail_database(output->database, message, bytes);
}

/* Stores the ids of an image in source and output, which are needed to copy its matches. */
static bool note_merged(merge_output *output, merged_image image, char *message, size_t bytes) {
  if (output->merged_count == output->merged_capacity) {
    const size_t capacity = output->merged_capacity == 0 ? 256 : 2 * output->merged_capacity;
    merged_image *larger = realloc(output->merged, capacity * sizeof *larger);
    if (!larger) {
      hs_message_set(message, bytes, "out of memory for the numbers of the images");
      return false;
    }
    output->merged = larger;
    output->merged_capacity = capacity;
  }
  output->merged[output->merged_count++] = image;
  return true;
}

/* Returns the camera of --camera-id; null: the option is not given. */
static const hs_colmap_camera *camera_by_number(merge_output *output) {
  output->numbered = (hs_colmap_camera){.camera_id = output->camera.camera_id};
  return output->camera.camera_id != 0 ? &output->numbered : NULL;
}

static bool copy_from_database(merge_output *output, const merge_inputs *inputs, const merge_image *image,
                               uint32_t *image_id, char *message, size_t bytes) {
  hs_colmap_image found;
  char *name = batch_output_name(image->name, HS_FORMAT_COLMAP_DB);
  bool done = name != NULL && merge_open_source(output, inputs, image->shard, message, bytes);
  if (!name) hs_message_set(message, bytes, "out of memory for the names of the images");
  if (done && hs_colmap_find_image(output->source, name, &found) != HS_OK)
    done = fail_database(output->source, message, bytes);
  if (done && found.found == 0) {
    hs_message_set(message, bytes, "%s: has no image %s; 'hartsift batch --resume' adds it",
                   inputs->shards[image->shard].location, name);
    done = false;
  }
  if (done &&
      colmap_copy_image(output->database, output->source, found.image_id, camera_by_number(output), image_id) != HS_OK)
    done = fail_database(output->database, message, bytes);
  done = done && copy_position(output, found.image_id, *image_id, message, bytes) &&
         note_merged(output, (merged_image){image->shard, found.image_id, *image_id}, message, bytes);
  free(name);
  return done;
}

/* Checks that the features may be added to COLMAP's database: they are not of a rotated picture. */
static bool check_unturned(merge_output *output, const merge_inputs *inputs, const merge_image *image, char *message,
                           size_t bytes) {
  hs_origin *origin = &output->features.origin;
  if (output->set->values[OPTION_EXIF].is_set) origin->exif_orientation = 0; /* COLMAP gets rotated copies */
  const bool is_known = origin->method_version != 0 || is_as_stored(inputs) || output->set->values[OPTION_EXIF].is_set;
  if (is_known && origin->exif_orientation == 0) return true;
  hs_message_set(message, bytes,
                 "%s: batch %s it by its EXIF orientation, and COLMAP reads it as stored: expected 'batch --no-exif', "
                 "or --exif here where COLMAP gets turned copies",
                 image->name, is_known ? "turned" : "may have turned");
  return false;
}

static bool add_from_file(merge_output *output, const merge_inputs *inputs, const merge_image *image,
                          uint32_t *image_id, char *message, size_t bytes) {
  output_files files = {0};
  hs_file_options options = {
      .struct_size = sizeof options, .format = inputs->format, .message = message, .message_bytes = bytes};
  char *name = batch_output_name(image->name, HS_FORMAT_COLMAP_DB);
  bool done = name != NULL && read_source(&files, inputs, image, message, bytes) &&
              hs_load_features(files.paths[0], &output->features, &options) == HS_OK;
  if (!name) hs_message_set(message, bytes, "out of memory for the names of the images");
  done = done && check_unturned(output, inputs, image, message, bytes);
  if (done) {
    output->features.image_width = image->record.width;
    output->features.image_height = image->record.height;
    done =
        hs_colmap_add_image(output->database, name, camera_by_number(output), &output->features, image_id) == HS_OK ||
        fail_database(output->database, message, bytes);
  }
  free(name);
  free_files(&files);
  return done;
}

static bool put_in_database(merge_output *output, const merge_inputs *inputs, merge_image *image, char *message,
                            size_t bytes) {
  uint32_t image_id = 0;
  const bool from_database = inputs->format == HS_FORMAT_COLMAP_DB;
  if (!(from_database ? copy_from_database : add_from_file)(output, inputs, image, &image_id, message, bytes))
    return false;
  if (hs_colmap_read_features(output->database, image_id, &output->features) != HS_OK)
    return fail_database(output->database, message, bytes);
  const uint64_t digest = digest_features(&output->features);
  if (from_database && digest != image->record.output_digest) {
    hs_message_set(message, bytes, "%s: image %s is not what %s says; 'hartsift batch --resume' makes it again",
                   inputs->shards[image->shard].location, image->name, inputs->shards[image->shard].manifest);
    return false;
  }
  image->record.output_digest = digest;
  return true;
}

bool merge_put(merge_output *output, const merge_inputs *inputs, merge_image *image, char *message,
               size_t message_bytes) {
  return merge_makes_database(output) ? put_in_database(output, inputs, image, message, message_bytes)
                                      : put_files(output, inputs, image, message, message_bytes);
}

/* ---- matches */

/* The merged images of one database. */
typedef struct source_images {
  const merged_image *first; /* images sorted by their ids in that database */
  size_t count;
  const char *location;
} source_images;

/* Compares by database, then by id. */
static int compare_merged(const void *one, const void *other) {
  const merged_image *a = one, *b = other;
  if (a->shard != b->shard) return a->shard < b->shard ? -1 : 1;
  return (a->from > b->from) - (a->from < b->from);
}

static int compare_numbers(const void *key, const void *entry) {
  const uint32_t number = *(const uint32_t *)key, from = ((const merged_image *)entry)->from;
  return (number > from) - (number < from);
}

/* Maps an id of the source to one of the output. False: the image was not merged. */
static bool new_number(const source_images *images, uint32_t from, uint32_t *to) {
  const merged_image *found = bsearch(&from, images->first, images->count, sizeof *images->first, compare_numbers);
  if (found) *to = found->to;
  return found != NULL;
}

static cli_exit fail(const hs_colmap_database *database) {
  return cli_fail(CLI_FAILED, COMMAND_MERGE, "%s", hs_colmap_last_error(database));
}

static cli_exit copy_pairs(merge_output *output, const source_images *images, merge_match_totals *totals) {
  size_t unknown = 0, unfit = 0;
  char why[CLI_MESSAGE_BYTES] = "";
  for (int64_t pair = -1;;) {
    uint32_t from[2], to[2];
    if (colmap_next_pair(output->source, pair, &pair, from) != HS_OK) return fail(output->source);
    if (pair < 0) break;
    if (!new_number(images, from[0], &to[0]) || !new_number(images, from[1], &to[1])) {
      unknown++;
      continue;
    }
    const hs_status status = colmap_copy_pair(output->database, to, output->source, from);
    if (status != HS_OK && status != HS_ERR_FORMAT) return fail(output->database);
    totals->copied += status == HS_OK;
    if (status == HS_OK) continue;
    if (unfit++ == 0) snprintf(why, sizeof why, "%s", hs_colmap_last_error(output->database));
  }
  totals->left += unknown + unfit;
  if (unknown > 0)
    cli_error(COMMAND_MERGE, "%s: the matches of %zu pair%s with images that its manifest does not list are left out",
              images->location, unknown, unknown == 1 ? "" : "s");
  if (unfit > 0)
    cli_error(COMMAND_MERGE, "%s; the matches of %zu pair%s are left out: 'hartsift match --database' makes them anew",
              why, unfit, unfit == 1 ? "" : "s");
  return CLI_DONE;
}

/* Reports how many images lost their rig, because it has several cameras. */
static cli_exit report_lost_rigs(const merge_output *output, const source_images *images) {
  size_t lost = 0;
  for (size_t i = 0; i < images->count; i++) {
    colmap_frame before, after;
    if (colmap_read_frame(output->source, images->first[i].from, &before) != HS_OK) return fail(output->source);
    if (colmap_read_frame(output->database, images->first[i].to, &after) != HS_OK) return fail(output->database);
    lost += before.frame_id >= 0 && before.is_of_rig && !(after.frame_id >= 0 && after.is_of_rig);
  }
  if (lost > 0)
    cli_error(COMMAND_MERGE,
              "%s: rigs and frames are not merged: %zu image%s of rigs there: configure the rigs again with COLMAP "
              "(rig_configurator)",
              images->location, lost, lost == 1 ? " is" : "s are");
  return CLI_DONE;
}

/* Stores the name of each shard's database; several shards of one database count as the first of them. */
static bool name_databases(merge_output *output, const merge_inputs *inputs) {
  size_t *first = calloc(inputs->shard_count, sizeof *first);
  if (!first) return false;
  for (size_t i = 0; i < inputs->shard_count; i++)
    while (first[i] < i && !merge_is_same_location(inputs->shards[first[i]].location, inputs->shards[i].location))
      first[i]++;
  for (size_t i = 0; i < output->merged_count; i++) output->merged[i].shard = first[output->merged[i].shard];
  free(first);
  return true;
}

cli_exit merge_copy_matches(merge_output *output, const merge_inputs *inputs, merge_match_totals *totals) {
  char message[CLI_MESSAGE_BYTES] = "";
  cli_exit result = CLI_DONE;
  *totals = (merge_match_totals){0};
  if (output->merged_count == 0) return CLI_DONE;
  if (!name_databases(output, inputs))
    return cli_fail(CLI_FAILED, COMMAND_MERGE, "out of memory for the names of the databases");
  qsort(output->merged, output->merged_count, sizeof *output->merged, compare_merged);
  for (size_t i = 0, next; result == CLI_DONE && i < output->merged_count; i = next) {
    const size_t shard = output->merged[i].shard;
    for (next = i; next < output->merged_count && output->merged[next].shard == shard;) next++;
    const source_images images = {&output->merged[i], next - i, inputs->shards[shard].location};
    if (merge_open_source(output, inputs, shard, message, sizeof message)) {
      result = report_lost_rigs(output, &images);
      if (result == CLI_DONE) result = copy_pairs(output, &images, totals);
    } else {
      cli_error(COMMAND_MERGE, "%s", message);
      result = CLI_FAILED;
    }
  }
  return result;
}
