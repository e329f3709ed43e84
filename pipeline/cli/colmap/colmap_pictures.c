/*
 * Names of the images of COLMAP's commands, their cameras by COLMAP's rules, and their rows in the database; see
 * colmap_pictures.h.
 */
#include "pipeline/cli/colmap/colmap_pictures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/formats/common/text_cursor.h"

/* ------------------------------------------------------------------ names */

typedef struct name_receiver {
  colmap_images *images;
  size_t skip; /* length of the folder's prefix */
} name_receiver;

static int32_t take_name(void *user, const char *path) {
  const name_receiver *receiver = user;
  colmap_images *images = receiver->images;
  if (images->count == images->capacity) {
    const size_t capacity = images->capacity == 0 ? 64 : 2 * images->capacity;
    char **names = realloc(images->names, capacity * sizeof *names);
    if (!names) return 0;
    images->names = names;
    images->capacity = capacity;
  }
  char *name = strdup(path + receiver->skip);
  if (!name) return 0;
  images->names[images->count++] = name;
  return 1;
}

static void warn_of_unreadable(void *user, const char *message) {
  (void)user;
  cli_error(COMMAND_TOP, "%s", message);
}

static int compare_names(const void *one, const void *other) {
  return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Removes white space at the ends of a list's names, as COLMAP does. Names of files keep theirs. */
static void trim_names(const colmap_images *images) {
  for (size_t i = 0; i < images->count; i++) {
    char *name = images->names[i];
    size_t length = strlen(name);
    while (length > 0 && strchr(" \t\r", name[length - 1])) name[--length] = '\0';
    memmove(name, name + strspn(name, " \t"), strlen(name + strspn(name, " \t")) + 1);
  }
}

/* Sorts the names, and removes empty and repeated ones. */
static void settle_names(colmap_images *images) {
  size_t kept = 0;
  if (images->count > 1) qsort(images->names, images->count, sizeof *images->names, compare_names);
  for (size_t i = 0; i < images->count; i++) {
    char *name = images->names[i];
    if (name[0] == '\0' || (kept > 0 && strcmp(images->names[kept - 1], name) == 0))
      free(name);
    else
      images->names[kept++] = name;
  }
  images->count = kept;
}

/* Reads a whole file into memory from malloc; returns null with errno set on failure. */
static char *read_whole(const char *path, size_t *size) {
  FILE *file = os_open_stream(path, "rb");
  char *text = NULL, *whole = NULL;
  size_t capacity = 0;
  *size = 0;
  while (file && !feof(file) && !ferror(file)) {
    capacity += 65536;
    char *larger = realloc(text, capacity);
    if (!larger) break;
    text = larger;
    *size += fread(text + *size, 1, capacity - *size, file);
  }
  if (file && feof(file)) whole = text;
  if (!whole) free(text);
  if (file) (void)fclose(file);
  return whole;
}

static cli_exit read_listed(colmap_images *images, const char *list) {
  char message[CLI_MESSAGE_BYTES] = "";
  size_t size = 0;
  name_receiver receiver = {images, 0};
  const hs_image_search search = {.take = take_name, .user = &receiver};
  char *text = read_whole(list, &size);
  if (!text)
    return cli_fail(CLI_FAILED, COMMAND_TOP, "--image_list_path '%s': cannot be read: %s", list, strerror(errno));
  const hs_status status = hs_read_image_list(text, size, list, 0, &search, message, sizeof message);
  free(text);
  trim_names(images);
  if (status != HS_OK) cli_error(COMMAND_TOP, "%s", message[0] != '\0' ? message : hs_status_string(status));
  return status == HS_OK ? CLI_DONE : CLI_FAILED;
}

static cli_exit read_folder(colmap_images *images, const char *folder, const char *masks) {
  const size_t length = strlen(folder);
  hs_image_findings found;
  name_receiver receiver = {images, length + (folder[length - 1] == '/' ? 0 : 1)};
  const hs_image_search search = {
      .take = take_name, .warn = warn_of_unreadable, .user = &receiver, .left_out = masks[0] != '\0' ? masks : NULL};
  if (hs_find_images(folder, &search, &found) != HS_OK)
    return cli_fail(CLI_FAILED, COMMAND_TOP, "out of memory for the names of the images");
  if (found.passed_over_text[0] != '\0') cli_note("%s: %s", folder, found.passed_over_text);
  if (images->count > 0) return CLI_DONE;
  return cli_fail(CLI_FAILED, COMMAND_TOP, "%s: no images there: none of its files ends in %s", folder, found.endings);
}

cli_exit colmap_images_read(colmap_images *images, const colmap_options *options) {
  const colmap_value *values = options->values;
  const char *list = values[COLMAP_IMAGE_LIST_PATH].text;
  *images = (colmap_images){.folder = values[COLMAP_IMAGE_PATH].text};
  if (!os_is_folder(images->folder))
    return cli_fail(CLI_FAILED, COMMAND_TOP, "--image_path '%s': expected a folder of images", images->folder);
  const cli_exit result =
      list[0] != '\0' ? read_listed(images, list) : read_folder(images, images->folder, values[COLMAP_MASK_PATH].text);
  if (result == CLI_DONE) settle_names(images);
  if (result == CLI_DONE && images->count == 0)
    cli_error(COMMAND_TOP, "%s: no images there", list); /* as COLMAP: done */
  return result;
}

void colmap_images_free(colmap_images *images) {
  for (size_t i = 0; i < images->count; i++) free(images->names[i]);
  free(images->names);
  *images = (colmap_images){0};
}

char *colmap_image_file(const colmap_images *images, size_t image) {
  return cli_join(images->folder, "/", images->names[image]);
}

/* ------------------------------------------------------------------ cameras */

/* Parses numbers separated by commas or spaces. Returns how many there are; -1 if the text has anything else or too
 * many. */
static int32_t parse_parameters(const char *text, double parameters[HS_COLMAP_PARAMETERS]) {
  int32_t count = 0;
  text += strspn(text, " ");
  if (text[0] == '\0') return 0;
  for (;;) {
    text += strspn(text, " ");
    const size_t span = strcspn(text, ", ");
    if (count == HS_COLMAP_PARAMETERS || !number_to_double(text, span, &parameters[count])) return -1;
    count++;
    text += span;
    text += strspn(text, " ");
    if (text[0] == '\0') return count;
    if (*text++ != ',') return -1;
  }
}

static bool choose_sharing(colmap_cameras *cameras, const colmap_value *values) {
  const int64_t mode = values[COLMAP_CAMERA_MODE].integer;
  cameras->sharing = COLMAP_CAMERAS_BY_EXIF;
  if (values[COLMAP_SINGLE_CAMERA].flag) cameras->sharing = COLMAP_CAMERAS_SINGLE;
  if (values[COLMAP_CAMERA_PER_FOLDER].flag) cameras->sharing = COLMAP_CAMERAS_PER_FOLDER;
  if (values[COLMAP_CAMERA_PER_IMAGE].flag) cameras->sharing = COLMAP_CAMERAS_PER_IMAGE;
  if (mode >= 0 && mode <= 3) cameras->sharing = (colmap_sharing)mode;
  if (mode <= 3) return true;
  cli_error(COMMAND_TOP, "--camera_mode '%s': expected -1, 0, 1, 2 or 3", values[COLMAP_CAMERA_MODE].text);
  return false;
}

bool colmap_cameras_choose(colmap_cameras *cameras, const colmap_options *options) {
  const colmap_value *values = options->values;
  const char *model = values[COLMAP_CAMERA_MODEL].text, *parameters = values[COLMAP_CAMERA_PARAMS].text;
  const int64_t existing = values[COLMAP_EXISTING_CAMERA].integer;
  hs_colmap_camera camera;
  *cameras = (colmap_cameras){.model = hs_colmap_model_of_name(model),
                              .existing = existing > 0 ? (uint32_t)existing : 0,
                              .focal_factor = values[COLMAP_FOCAL_FACTOR].number};
  if (!choose_sharing(cameras, values)) return false;
  if (cameras->model < 0) {
    cli_error(COMMAND_TOP, "--ImageReader.camera_model '%s': is no camera model of COLMAP", model);
    return false;
  }
  if (!(cameras->focal_factor > 0.0)) {
    cli_error(COMMAND_TOP, "--ImageReader.default_focal_length_factor '%s': expected a number above 0",
              values[COLMAP_FOCAL_FACTOR].text);
    return false;
  }
  (void)hs_colmap_camera_init_model(&camera, cameras->model, 1, 1, 0.0);
  cameras->parameter_count = parse_parameters(parameters, cameras->parameters);
  if (cameras->parameter_count == 0 || cameras->parameter_count == camera.parameter_count) return true;
  cli_error(COMMAND_TOP, "--ImageReader.camera_params '%s': expected the %d numbers of %s, with commas between",
            parameters, (int)camera.parameter_count, model);
  return false;
}

void colmap_cameras_free(colmap_cameras *cameras) {
  for (size_t i = 0; i < cameras->count; i++) free(cameras->groups[i].folder);
  free(cameras->groups);
}

static size_t folder_length(const char *name) {
  const char *slash = strrchr(name, '/');
  return slash ? (size_t)(slash - name) : 0;
}

/* Returns the group of images with one camera to which an image belongs; null if there is none yet. */
static colmap_camera_group *find_group(const colmap_cameras *cameras, const char *name, const colmap_picture *picture) {
  const size_t length = folder_length(name);
  for (size_t i = 0; i < cameras->count; i++) {
    colmap_camera_group *group = &cameras->groups[i];
    const bool same_size = group->width == picture->width && group->height == picture->height;
    if (cameras->sharing == COLMAP_CAMERAS_SINGLE) return group;
    if (cameras->sharing == COLMAP_CAMERAS_PER_FOLDER && strlen(group->folder) == length &&
        strncmp(group->folder, name, length) == 0)
      return group;
    if (cameras->sharing == COLMAP_CAMERAS_BY_EXIF && same_size && group->camera != 0 &&
        group->camera == picture->exif->camera)
      return group;
  }
  return NULL;
}

static bool add_group(colmap_cameras *cameras, const char *name, const hs_colmap_camera *camera, uint64_t exif_camera,
                      uint32_t camera_id) {
  if ((cameras->count & (cameras->count - 1)) == 0) {
    const size_t capacity = cameras->count == 0 ? 1 : 2 * cameras->count;
    colmap_camera_group *groups = realloc(cameras->groups, capacity * sizeof *groups);
    if (!groups) return false;
    cameras->groups = groups;
  }
  char *folder = os_copy_text(name, folder_length(name));
  if (!folder) return false;
  cameras->groups[cameras->count++] =
      (colmap_camera_group){folder, exif_camera, camera->width, camera->height, camera_id};
  return true;
}

/* Makes the camera that COLMAP would make for an image without a shared camera. */
static hs_status make_camera(const colmap_cameras *cameras, const colmap_picture *picture, hs_colmap_camera *camera) {
  const double focal = picture->exif->focal_length;
  const int32_t larger = picture->width > picture->height ? picture->width : picture->height;
  const double guess = cameras->focal_factor * (double)larger;
  const hs_status status =
      hs_colmap_camera_init_model(camera, cameras->model, picture->width, picture->height, focal > 0.0 ? focal : guess);
  camera->prior_focal_length = focal > 0.0;
  camera->tentative = HS_TENTATIVE_CAMERA;
  if (cameras->parameter_count == 0 || status != HS_OK) return status;
  memcpy(camera->parameters, cameras->parameters, sizeof camera->parameters);
  camera->prior_focal_length = 1;
  return HS_OK;
}

/* ------------------------------------------------------------------ rows */

/* Stores the GPS position of the EXIF, if it has a height: COLMAP accepts no position without one. */
static hs_status add_position(hs_colmap_database *database, uint32_t image_id, const hs_exif *exif) {
  hs_colmap_position position;
  if (exif->has_place == 0 || exif->has_altitude == 0) return HS_OK;
  const hs_status status = hs_colmap_read_position(database, image_id, &position);
  if (status != HS_OK || position.found != 0) return status;
  position = (hs_colmap_position){.coordinates = {exif->latitude, exif->longitude, exif->altitude}};
  return hs_colmap_set_position(database, image_id, &position);
}

bool colmap_has_features(colmap_cameras *cameras, hs_colmap_database *database, const char *name) {
  hs_colmap_image image;
  if (hs_colmap_find_image(database, name, &image) != HS_OK || image.found == 0) return false;
  const colmap_picture picture = {image.camera.width, image.camera.height, &(hs_exif){0}};
  const bool by_name = cameras->sharing == COLMAP_CAMERAS_SINGLE || cameras->sharing == COLMAP_CAMERAS_PER_FOLDER;
  if (by_name && !find_group(cameras, name, &picture))
    (void)add_group(cameras, name, &image.camera, 0, image.camera_id);
  return image.features >= 0;
}

hs_status colmap_add_picture(colmap_cameras *cameras, hs_colmap_database *database, const char *name,
                             const colmap_picture *picture, const hs_features *features, hs_colmap_image *added,
                             char message[CLI_MESSAGE_BYTES]) {
  hs_colmap_camera camera = {.camera_id = cameras->existing, .tentative = HS_TENTATIVE_CAMERA};
  const colmap_camera_group *group = find_group(cameras, name, picture);
  uint32_t image_id = 0;
  hs_status status = hs_colmap_find_image(database, name, added);
  const bool is_new = status == HS_OK && added->found == 0;
  if (status == HS_OK && is_new && camera.camera_id == 0 && group &&
      (group->width != picture->width || group->height != picture->height)) {
    snprintf(message, CLI_MESSAGE_BYTES, "is %dx%d, and the camera that it shares is %dx%d: it is left out",
             (int)picture->width, (int)picture->height, (int)group->width, (int)group->height);
    return HS_ERR_ARGUMENT;
  }
  if (camera.camera_id == 0 && group) camera.camera_id = group->camera_id;
  if (status == HS_OK && camera.camera_id == 0) status = make_camera(cameras, picture, &camera);
  if (status == HS_OK) status = hs_colmap_add_image(database, name, is_new ? &camera : NULL, features, &image_id);
  if (status == HS_OK) status = add_position(database, image_id, picture->exif);
  if (status == HS_OK) status = hs_colmap_find_image(database, name, added);
  if (status != HS_OK) snprintf(message, CLI_MESSAGE_BYTES, "%s", hs_colmap_last_error(database));
  if (status == HS_OK && !group && cameras->sharing != COLMAP_CAMERAS_PER_IMAGE &&
      !add_group(cameras, name, &added->camera, picture->exif->camera, added->camera_id))
    status = HS_ERR_MEMORY;
  if (status != HS_OK && message[0] == '\0') snprintf(message, CLI_MESSAGE_BYTES, "%s", hs_status_string(status));
  return status;
}
