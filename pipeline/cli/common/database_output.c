/*
 * COLMAP's database as the output of subcommands; see database_output.h.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "pipeline/cli/common/database_output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/formats/common/text_cursor.h"

/* Maximum relative difference between the focal lengths of one lens. */
#define FOCAL_LENGTH_SLACK 0.01

static int32_t sharing_of(const option_set *set) {
  if (set->values[OPTION_SINGLE_CAMERA_PER_FOLDER].is_set) return HS_CAMERAS_BY_FOLDER;
  return set->values[OPTION_SINGLE_CAMERA].is_set ? HS_CAMERAS_BY_SIZE : HS_CAMERAS_OWN;
}

hs_status database_open(const option_set *set, const char *path, hs_bin_layout layout, hs_colmap_database **database,
                        char *message, size_t message_bytes) {
  return database_open_sharing(set, path, layout, sharing_of(set), database, message, message_bytes);
}

hs_status database_open_sharing(const option_set *set, const char *path, hs_bin_layout layout, int32_t share_cameras,
                                hs_colmap_database **database, char *message, size_t message_bytes) {
  const hs_colmap_options options = {.struct_size = sizeof options,
                                     .replace = set->values[OPTION_REPLACE].is_set,
                                     .share_cameras = share_cameras,
                                     .layout = layout,
                                     .message = message,
                                     .message_bytes = message_bytes};
  message[0] = '\0';
  const hs_status status = colmap_open_behind(database, path, &options);
  if (status != HS_OK && message[0] == '\0') snprintf(message, message_bytes, "%s: %s", path, hs_status_string(status));
  return status;
}

/* ------------------------------------------------------------------ cameras and positions */

/* Parses comma-separated numbers. Returns how many there are; 0: invalid, or too many. */
static int32_t parse_parameters(const char *text, double parameters[HS_COLMAP_PARAMETERS]) {
  for (int32_t count = 0; count < HS_COLMAP_PARAMETERS;) {
    text += strspn(text, " ");
    const size_t length = strcspn(text, ",");
    size_t used = length;
    while (used > 0 && text[used - 1] == ' ') used--;
    if (!number_to_double(text, used, &parameters[count++])) return 0;
    if (text[length] == '\0') return count;
    text += length + 1;
  }
  return 0;
}

/* Checks that at most one option that chooses the camera is given. */
static bool is_one_choice(const option_set *set, char *message, size_t message_bytes) {
  static const option_id choices[] = {OPTION_CAMERA_ID, OPTION_SINGLE_CAMERA, OPTION_SINGLE_CAMERA_PER_FOLDER,
                                      OPTION_CAMERA_MODEL, OPTION_CAMERA_PARAMS};
  enum { SHARING_FROM = 1, SHARING_TO = 2, CHOICES = sizeof choices / sizeof choices[0] };
  option_id first = OPTION_COUNT;
  for (int i = 0; i < CHOICES; i++) {
    if (!set->values[choices[i]].is_set) continue;
    /* --camera-id excludes all other options of cameras; of the options for sharing only one is allowed */
    if (first != OPTION_COUNT && (first == OPTION_CAMERA_ID || (i >= SHARING_FROM && i <= SHARING_TO))) {
      hs_message_set(message, message_bytes, "--%s and --%s: expected one of them", option_get(first)->name,
                     option_get(choices[i])->name);
      return false;
    }
    first = choices[i];
  }
  return true;
}

bool database_camera_choose(const option_set *set, database_camera *choice, char *message, size_t message_bytes) {
  const option_value *model = &set->values[OPTION_CAMERA_MODEL];
  const option_value *parameters = &set->values[OPTION_CAMERA_PARAMS];
  hs_colmap_camera camera;
  const option_value *number = &set->values[OPTION_CAMERA_ID];
  *choice = (database_camera){
      .camera_id = number->is_set ? (uint32_t)number->integer : 0,
      .sharing = sharing_of(set),
      .tentative = model->is_set ? HS_TENTATIVE_PARAMETERS : HS_TENTATIVE_CAMERA,
      .model = hs_colmap_model_of_name(model->is_set ? model->text : "SIMPLE_RADIAL"),
  };
  if (!is_one_choice(set, message, message_bytes)) return false;
  if (!parameters->is_set) return true;
  choice->tentative = HS_TENTATIVE_NOTHING;
  (void)hs_colmap_camera_init_model(&camera, choice->model, 1, 1, 0.0);
  choice->parameter_count = parse_parameters(parameters->text, choice->parameters);
  if (choice->parameter_count == camera.parameter_count) return true;
  hs_message_set(message, message_bytes, "--camera-params '%s': expected the %d numbers of %s, with commas between",
                 parameters->text, (int)camera.parameter_count, model->is_set ? model->text : "SIMPLE_RADIAL");
  return false;
}

bool database_options_are_used(const option_set *set, bool to_database, char *message, size_t message_bytes) {
  static const option_id for_databases[] = {OPTION_REPLACE,   OPTION_SINGLE_CAMERA, OPTION_SINGLE_CAMERA_PER_FOLDER,
                                            OPTION_CAMERA_ID, OPTION_CAMERA_MODEL,  OPTION_CAMERA_PARAMS,
                                            OPTION_IMAGE_PATH};
  for (size_t i = 0; !to_database && i < sizeof for_databases / sizeof for_databases[0]; i++) {
    if (!set->values[for_databases[i]].is_set) continue;
    hs_message_set(message, message_bytes, "--%s is for databases: expected -o NAME.db or --format colmap-db",
                   option_get(for_databases[i])->name);
    return false;
  }
  return true;
}

/* Adds an image's position. renews: the position in the database belongs to another picture. */
static hs_status add_position(hs_colmap_database *database, uint32_t image_id, const hs_exif *exif, bool renews) {
  hs_colmap_position position;
  /* COLMAP refuses a position without altitude */
  if (exif->has_altitude == 0) return HS_OK;
  const hs_status status = hs_colmap_read_position(database, image_id, &position);
  if (status != HS_OK || (position.found != 0 && !renews)) return status;
  position = (hs_colmap_position){.coordinates = {exif->latitude, exif->longitude, exif->altitude}};
  return hs_colmap_set_position(database, image_id, &position);
}

/* Sets the camera for an image. False: the size is unknown, so the database chooses the camera. */
static bool camera_of(const database_camera *choice, int32_t width, int32_t height, const hs_exif *exif,
                      hs_colmap_camera *camera) {
  const hs_status status = hs_colmap_camera_init_model(camera, choice->model, width, height, exif->focal_length);
  if (choice->parameter_count > 0) {
    memcpy(camera->parameters, choice->parameters, sizeof camera->parameters);
    camera->prior_focal_length = 1;
  }
  camera->tentative = choice->tentative;
  camera->camera_id = choice->camera_id;
  return status == HS_OK || choice->camera_id != 0;
}

/* Counts an image if its EXIF focal length differs from that of its shared camera. */
static hs_status compare_focal_length(hs_colmap_database *database, database_camera *choice, const char *name,
                                      const hs_exif *exif) {
  hs_colmap_image image;
  if (!(exif->focal_length > 0.0) || choice->sharing == HS_CAMERAS_OWN || choice->tentative == HS_TENTATIVE_NOTHING)
    return HS_OK;
  const hs_status status = hs_colmap_find_image(database, name, &image);
  if (status != HS_OK) return status;
  const double focal = image.camera.parameters[0];
  choice->other_focal_lengths += fabs(focal - exif->focal_length) > FOCAL_LENGTH_SLACK * exif->focal_length;
  return HS_OK;
}

/* Counts an image if its size differs from the first image's: the two do not share a camera, and given parameters are
 * valid for one size only. */
static void compare_size(database_camera *choice, int32_t width, int32_t height) {
  if (choice->sharing != HS_CAMERAS_BY_SIZE && choice->parameter_count == 0) return;
  if (choice->width == 0) {
    choice->width = width;
    choice->height = height;
  }
  choice->other_sizes += width != choice->width || height != choice->height;
}

void database_report_cameras(command_id command, const database_camera *choice) {
  if (choice->other_sizes > 0)
    cli_error(command, "%zu image%s of another size than the first, %ldx%ld: %s", choice->other_sizes,
              choice->other_sizes == 1 ? " is" : "s are", (long)choice->width, (long)choice->height,
              choice->parameter_count > 0 ? "--camera-params describe a camera of one size"
                                          : "only images of one size share a camera");
  const size_t count = choice->other_focal_lengths;
  if (count > 0)
    cli_error(command, "%zu image%s in EXIF a focal length that differs by more than 1 %% from the shared camera's",
              count, count == 1 ? " has" : "s have");
}

hs_status database_add_image(hs_colmap_database *database, database_camera *choice, const char *name,
                             const hs_features *features, const hs_exif *exif) {
  hs_colmap_camera camera;
  uint32_t added = 0;
  const bool has_camera = camera_of(choice, features->image_width, features->image_height, exif, &camera);
  hs_status status = hs_colmap_add_image(database, name, has_camera ? &camera : NULL, features, &added);
  if (status == HS_OK) compare_size(choice, features->image_width, features->image_height);
  if (status == HS_OK) status = compare_focal_length(database, choice, name, exif);
  return status == HS_OK ? add_position(database, added, exif, false) : status;
}

/* Adds an image's rows. replaces: the picture has changed since its image was added. */
static hs_status put_rows(hs_colmap_database *database, database_camera *choice, const char *name, colmap_rows *rows,
                          const hs_exif *exif, bool replaces) {
  hs_colmap_camera camera;
  uint32_t added = 0;
  const hs_colmap_camera *const wanted = camera_of(choice, rows->width, rows->height, exif, &camera) ? &camera : NULL;
  hs_status status = replaces ? colmap_replace_rows(database, name, wanted, rows, &added)
                              : colmap_add_rows(database, name, wanted, rows, &added);
  if (status == HS_OK) compare_size(choice, rows->width, rows->height);
  if (status == HS_OK) status = compare_focal_length(database, choice, name, exif);
  return status == HS_OK ? add_position(database, added, exif, replaces) : status;
}

hs_status database_add_rows(hs_colmap_database *database, database_camera *choice, const char *name, colmap_rows *rows,
                            const hs_exif *exif) {
  return put_rows(database, choice, name, rows, exif, false);
}

hs_status database_replace_rows(hs_colmap_database *database, database_camera *choice, const char *name,
                                colmap_rows *rows, const hs_exif *exif) {
  return put_rows(database, choice, name, rows, exif, true);
}

/* ------------------------------------------------------------------ names */

/* Returns the image's folder with links resolved and a final slash. The caller frees it; null with errno. */
static char *resolved_folder(const char *image) {
  const char *slash = strrchr(image, '/');
  const size_t length = slash ? (size_t)(slash - image) + 1 : 0;
  char *folder = malloc(length + 3);
  if (!folder) return NULL;
  memcpy(folder, image, length);
  strcpy(folder + length, ".");
  char *resolved = os_real_path(folder);
  free(folder);
  if (!resolved) return NULL;
  const size_t size = strlen(resolved);
  char *closed = realloc(resolved, size + 2);
  if (!closed) {
    free(resolved);
    return NULL;
  }
  if (size == 0 || closed[size - 1] != '/') strcpy(closed + size, "/");
  return closed;
}

static char *name_below(const char *image, const char *folder, char *message, size_t message_bytes) {
  char *top = NULL;
  char *name = NULL;
  const size_t size = strlen(folder) + 2;
  char *closed = malloc(size);
  char *folder_of_image = resolved_folder(image);
  if (closed) {
    snprintf(closed, size, "%s/", folder);
    top = resolved_folder(closed);
  }
  if (!closed || !folder_of_image || !top) {
    snprintf(message, message_bytes, "cannot find the path of %s below %s: %s", image, folder, strerror(errno));
  } else if (strncmp(folder_of_image, top, strlen(top)) != 0) {
    snprintf(message, message_bytes, "is not in the folder of --image-path, %s", folder);
  } else {
    const char *slash = strrchr(image, '/');
    const char *below = folder_of_image + strlen(top);
    const char *last = slash ? slash + 1 : image;
    const size_t bytes = strlen(below) + strlen(last) + 1;
    name = malloc(bytes);
    if (name) snprintf(name, bytes, "%s%s", below, last);
  }
  free(closed);
  free(folder_of_image);
  free(top);
  return name;
}

char *database_image_name(const char *image, const char *folder, char *message, size_t message_bytes) {
  const bool is_file = strcmp(image, "-") != 0 && !output_is_scene(image);
  snprintf(message, message_bytes, "out of memory for the image's name");
  if (is_file && folder) return name_below(image, folder, message, message_bytes);
  return output_name(image, HS_FORMAT_COLMAP_DB);
}

/* Returns the length of the common prefix of both paths, up to a slash. */
static size_t common_folder(const char *one, const char *other) {
  size_t common = 0;
  for (size_t i = 0; one[i] != '\0' && one[i] == other[i]; i++)
    if (one[i] == '/') common = i + 1;
  return common;
}

/* Returns the path of an image without the first `above` bytes of its folder; null: out of memory. */
static char *name_after(const char *image, const char *folder, size_t above) {
  const char *slash = strrchr(image, '/');
  return cli_join(folder + above, slash ? slash + 1 : image, "");
}

bool database_pair_names(char *const images[2], const char *folder, char *names[2], char *message,
                         size_t message_bytes) {
  char *folders[2] = {NULL, NULL};
  bool are_files = true;
  names[0] = names[1] = NULL;
  for (int i = 0; i < 2; i++) are_files = are_files && strcmp(images[i], "-") != 0 && !output_is_scene(images[i]);
  if (!folder && !are_files) return true;
  if (folder) {
    for (int i = 0; i < 2; i++) {
      char reason[CLI_MESSAGE_BYTES];
      names[i] = database_image_name(images[i], folder, reason, sizeof reason);
      hs_message_set(message, message_bytes, "%s: %s", images[i], reason);
      if (!names[i]) return false;
    }
    return true;
  }
  snprintf(message, message_bytes, "out of memory for the names of the images");
  for (int i = 0; i < 2; i++) {
    folders[i] = resolved_folder(images[i]);
    if (!folders[i]) snprintf(message, message_bytes, "cannot find the path of %s: %s", images[i], strerror(errno));
  }
  if (folders[0] && folders[1])
    for (int i = 0; i < 2; i++) names[i] = name_after(images[i], folders[i], common_folder(folders[0], folders[1]));
  free(folders[0]);
  free(folders[1]);
  return names[0] && names[1];
}
