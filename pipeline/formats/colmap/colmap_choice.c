/*
 * Which camera an image of COLMAP's database gets: its own, one shared with other images, or one by number.
 */
#include <stdio.h>
#include <string.h>

#include "pipeline/formats/colmap/colmap_camera.h"
#include "pipeline/formats/colmap/colmap_cameras.h"

/* ------------------------------------------------------------------ choices that are remembered */

/* Finding the cameras of a folder reads all its images, so that the last choices are kept. */
static colmap_choice *slot_of(hs_colmap_database *database, const char *folder) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (const char *at = folder; at && *at != '\0'; at++) hash = (hash ^ (unsigned char)*at) * 16777619u;
  return &database->choices[hash % COLMAP_CHOICES];
}

/* The fields that choose among the cameras of a folder: all that are not tentative. */
static hs_colmap_camera key_of(const hs_colmap_camera *camera) {
  hs_colmap_camera key = *camera;
  if (camera->tentative != HS_TENTATIVE_NOTHING) {
    memset(key.parameters, 0, sizeof key.parameters);
    key.prior_focal_length = 0;
  }
  if (camera->tentative == HS_TENTATIVE_CAMERA) key.model = key.parameter_count = 0;
  return key;
}

static bool is_remembered(const colmap_choice *choice, const char *folder, const hs_colmap_camera *camera) {
  const hs_colmap_camera key = key_of(camera);
  return choice->is_taken && !choice->folder == !folder && (!folder || strcmp(choice->folder, folder) == 0) &&
         memcmp(&choice->key, &key, sizeof key) == 0;
}

/* Without memory it is not remembered. */
static void remember(hs_colmap_database *database, const char *folder, const hs_colmap_camera *camera,
                     int64_t camera_id) {
  colmap_choice *choice = slot_of(database, folder);
  sqlite3_free(choice->folder);
  *choice = (colmap_choice){.camera_id = camera_id, .key = key_of(camera)};
  if (folder) choice->folder = sqlite3_mprintf("%s", folder);
  choice->is_taken = !folder || choice->folder != NULL;
}

/* Forgets the choice of a camera that changes or loses an image. */
static void forget_camera(hs_colmap_database *database, int64_t camera_id) {
  for (int i = 0; i < COLMAP_CHOICES; i++)
    if (database->choices[i].camera_id == camera_id) database->choices[i].is_taken = false;
}

void colmap_forget_choices(hs_colmap_database *database) {
  for (int i = 0; i < COLMAP_CHOICES; i++) {
    sqlite3_free(database->choices[i].folder);
    database->choices[i] = (colmap_choice){0};
  }
}

/* ------------------------------------------------------------------ choosing */

/* The camera of a number, if an image of the size may have it. */
static hs_status check_numbered(hs_colmap_database *database, const char *name, const hs_colmap_camera *wanted) {
  hs_colmap_camera there;
  bool found = false;
  hs_status status = colmap_read_camera(database, wanted->camera_id, &there, &found);
  if (status != HS_OK) return status;
  if (!found)
    return colmap_fail(database, HS_ERR_ARGUMENT, "there is no camera of the number %lu",
                       (unsigned long)wanted->camera_id);
  if (wanted->width == 0 || (there.width == wanted->width && there.height == wanted->height)) return HS_OK;
  return colmap_fail(database, HS_ERR_ARGUMENT, "camera %lu is of %ldx%ld, and the image %s of %ldx%ld",
                     (unsigned long)wanted->camera_id, (long)there.width, (long)there.height, name, (long)wanted->width,
                     (long)wanted->height);
}

static hs_status fail_rig(hs_colmap_database *database, const char *name, int64_t camera_id) {
  return colmap_fail(
      database, HS_ERR_ARGUMENT,
      "the image %s would share camera %lld, one of a rig of several, and which of them took it is not "
      "known: expected one camera per folder (--single-camera-per-folder) or one by number (--camera-id)",
      name, (long long)camera_id);
}

static hs_status fail_several(hs_colmap_database *database, const char *name, const char *folder,
                              const hs_colmap_camera *wanted, const colmap_group *group) {
  char others[96] = "";
  if (!group->has_rigs)
    snprintf(others, sizeof others, ", or the option replace (--replace), with which it takes the first, %lld",
             (long long)group->first);
  return colmap_fail(
      database, HS_ERR_ARGUMENT,
      "the image %s cannot share a camera: the images of %ldx%ld%s have %lld cameras already; expected one "
      "by number (--camera-id)%s",
      name, (long)wanted->width, (long)wanted->height, folder ? " in its folder" : "", (long long)group->count, others);
}

/* Null without memory. */
static char *folder_of(const char *name) {
  const char *slash = strrchr(name, '/');
  return sqlite3_mprintf("%.*s", slash ? (int)(slash - name) : 0, name);
}

/* Refuses to choose by an image's size or folder alone where that leaves several cameras. */
static hs_status check_group(hs_colmap_database *database, const char *name, const char *folder,
                             const hs_colmap_camera *wanted, const colmap_group *group) {
  const bool by_value = wanted->tentative == HS_TENTATIVE_NOTHING && !group->has_rigs;
  if (group->is_in_rig && !folder) return fail_rig(database, name, group->first);
  if (group->count < 2 || by_value || (database->options.replace != 0 && !group->has_rigs)) return HS_OK;
  return fail_several(database, name, folder, wanted, group);
}

static hs_status find_group(hs_colmap_database *database, const char *folder, const hs_colmap_camera *wanted,
                            colmap_group *group) {
  hs_status status = HS_OK;
  if (folder || wanted->tentative != HS_TENTATIVE_NOTHING) {
    status = colmap_find_group(database, folder, wanted, group);
  } else {
    *group = (colmap_group){.first = -1};
    status = colmap_find_camera(database, wanted, true, &group->first);
    if (status == HS_OK && group->first < 0) status = colmap_find_camera(database, wanted, false, &group->first);
    group->count = group->first >= 0;
  }
  if (status == HS_OK && group->count > 0) status = colmap_is_in_rig(database, group->first, &group->is_in_rig);
  if (status == HS_OK && database->schema.has_frames)
    status = colmap_query(database, "SELECT 1 FROM rig_sensors WHERE sensor_type = ?1", COLMAP_SENSOR_CAMERA, NULL,
                          &group->has_rigs);
  return status;
}

/* *camera_id: the camera of the images of the same size, in the image's folder or everywhere; -1: there is none. own:
   the camera that the image has; -1: it is new. */
static hs_status choose_shared(hs_colmap_database *database, const char *name, const hs_colmap_camera *wanted,
                               int64_t own, int64_t *camera_id) {
  const bool by_folder = database->options.share_cameras == HS_CAMERAS_BY_FOLDER;
  colmap_group group;
  char *folder = by_folder ? folder_of(name) : NULL;
  if (by_folder && !folder) return colmap_fail(database, HS_ERR_MEMORY, "no memory for the folder of %s", name);
  const colmap_choice *choice = slot_of(database, folder);
  if (is_remembered(choice, folder, wanted)) {
    *camera_id = choice->camera_id;
    sqlite3_free(folder);
    return HS_OK;
  }
  hs_status status = find_group(database, folder, wanted, &group);
  if (status == HS_OK && (group.count > 1 || group.first != own))
    status = check_group(database, name, folder, wanted, &group);
  /* With the option replace the first of several cameras is taken. */
  if (status == HS_OK && group.count > 0 && (folder || !group.is_in_rig))
    remember(database, folder, wanted, group.first);
  *camera_id = group.first;
  sqlite3_free(folder);
  return status;
}

static bool shares_by_size(const hs_colmap_database *database) {
  return database->options.share_cameras >= HS_CAMERAS_BY_SIZE;
}

hs_status colmap_camera_for_new(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                                int64_t *camera_id) {
  hs_status status = HS_OK;
  *camera_id = camera->camera_id != 0 ? (int64_t)camera->camera_id : -1;
  if (camera->camera_id != 0) return check_numbered(database, name, camera);
  if (shares_by_size(database))
    status = choose_shared(database, name, camera, -1, camera_id);
  else if (database->options.share_cameras == HS_CAMERAS_BY_VALUE)
    status = colmap_find_camera(database, camera, true, camera_id);
  if (status != HS_OK || *camera_id >= 0) return status;
  return colmap_insert_camera(database, camera, camera_id);
}

/* ------------------------------------------------------------------ images that are there */

/* Whether a camera is the one asked for, so far as that is not tentative. */
static bool is_as_wanted(const hs_colmap_camera *there, const hs_colmap_camera *wanted) {
  if (wanted->tentative == HS_TENTATIVE_CAMERA) return true;
  if (there->model != wanted->model || there->width != wanted->width || there->height != wanted->height) return false;
  return wanted->tentative == HS_TENTATIVE_PARAMETERS ||
         (there->prior_focal_length == wanted->prior_focal_length &&
          there->parameter_count == wanted->parameter_count &&
          memcmp(there->parameters, wanted->parameters, sizeof(double) * (size_t)wanted->parameter_count) == 0);
}

/* *camera_id: the camera that the image is to have; -1: a new one. */
static hs_status choose_for_old(hs_colmap_database *database, const hs_colmap_image *image,
                                const hs_colmap_camera *wanted, int64_t *camera_id) {
  const bool is_wanted = is_as_wanted(&image->camera, wanted);
  const bool is_sized = image->camera.width == wanted->width && image->camera.height == wanted->height;
  *camera_id = wanted->camera_id != 0 ? (int64_t)wanted->camera_id : is_wanted ? (int64_t)image->camera_id : -1;
  if (wanted->camera_id != 0) return check_numbered(database, image->name, wanted);
  /* A picture of another size than its camera is refused later, with that as the reason. */
  if (wanted->tentative == HS_TENTATIVE_CAMERA && !is_sized && image->camera.width > 0) return HS_OK;
  if (shares_by_size(database)) return choose_shared(database, image->name, wanted, image->camera_id, camera_id);
  if (database->options.share_cameras != HS_CAMERAS_BY_VALUE) return HS_OK;
  bool is_in_rig = false;
  const hs_status status = colmap_is_in_rig(database, image->camera_id, &is_in_rig);
  if (status != HS_OK || (is_in_rig && is_wanted)) return status;
  return colmap_find_camera(database, is_wanted ? &image->camera : wanted, true, camera_id);
}

hs_status colmap_camera_of_old(hs_colmap_database *database, const hs_colmap_image *image,
                               const hs_colmap_camera *camera, bool *changed) {
  int64_t camera_id = -1;
  *changed = false;
  hs_status status = choose_for_old(database, image, camera, &camera_id);
  if (status != HS_OK || camera_id == (int64_t)image->camera_id) return status;
  if (database->options.replace == 0)
    return colmap_fail(
        database, HS_ERR_ARGUMENT,
        "the image %s is there already with camera %lu (%s), not the one asked for, and stays as it is; with the "
        "option replace (--replace) it gets that camera",
        image->name, (unsigned long)image->camera_id,
        image->camera.width > 0 ? colmap_model_name(image->camera.model) : "which is missing");
  status = colmap_change_camera(database, image, camera, camera_id);
  *changed = status == HS_OK;
  forget_camera(database, image->camera_id);
  return status;
}
