/*
 * COLMAP's cameras, rigs and frames, and the choice of a camera for an image: a new camera, one shared with other
 * images, or one given by its id.
 */
#include "pipeline/formats/colmap/colmap_internal.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/formats/common/feature_codec.h"

enum { PARAMETER_BYTES = 8 };

/* ------------------------------------------------------------------ cameras */

void colmap_camera_columns(sqlite3_stmt *statement, int first, hs_colmap_camera *camera) {
  camera->model = sqlite3_column_int(statement, first);
  camera->width = sqlite3_column_int(statement, first + 1);
  camera->height = sqlite3_column_int(statement, first + 2);
  camera->prior_focal_length = sqlite3_column_int(statement, first + 3) != 0;
  const uint8_t *bytes = sqlite3_column_blob(statement, first + 4);
  const int size = sqlite3_column_bytes(statement, first + 4);
  camera->parameter_count = bytes != NULL && size % PARAMETER_BYTES == 0 ? size / PARAMETER_BYTES : 0;
  if (camera->parameter_count > HS_COLMAP_PARAMETERS) camera->parameter_count = 0;
  for (int32_t i = 0; i < camera->parameter_count; i++) {
    const uint64_t bits = bytes_get_u64(bytes + PARAMETER_BYTES * i);
    memcpy(&camera->parameters[i], &bits, sizeof bits);
  }
}

/* Binds ?1 to ?5. `parameters` must stay valid until the statement ends. */
static int bind_camera(sqlite3_stmt *statement, const hs_colmap_camera *camera,
                       uint8_t parameters[HS_COLMAP_PARAMETERS * PARAMETER_BYTES]) {
  for (int32_t i = 0; i < camera->parameter_count; i++) {
    uint64_t bits;
    memcpy(&bits, &camera->parameters[i], sizeof bits);
    bytes_put_u64(parameters + PARAMETER_BYTES * i, bits);
  }
  int code = sqlite3_bind_int(statement, 1, camera->model);
  code |= sqlite3_bind_int(statement, 2, camera->width);
  code |= sqlite3_bind_int(statement, 3, camera->height);
  code |= sqlite3_bind_blob(statement, 4, parameters, PARAMETER_BYTES * camera->parameter_count, SQLITE_STATIC);
  return code | sqlite3_bind_int(statement, 5, camera->prior_focal_length);
}

hs_status colmap_read_camera(hs_colmap_database *database, int64_t camera_id, hs_colmap_camera *camera, bool *found) {
  sqlite3_stmt *statement;
  *found = false;
  *camera = (hs_colmap_camera){0};
  hs_status status = colmap_prepare(
      database, "SELECT model, width, height, prior_focal_length, params FROM cameras WHERE camera_id = ?", &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, camera_id), found);
  if (status == HS_OK && *found) colmap_camera_columns(statement, 0, camera);
  colmap_done(database, statement);
  return status;
}

hs_status colmap_find_camera(hs_colmap_database *database, const hs_colmap_camera *camera, bool outside_rigs,
                             int64_t *camera_id) {
  static const char plain[] =
      "SELECT camera_id FROM cameras WHERE model = ?1 AND width = ?2 AND height = ?3 AND params = ?4"
      " AND (prior_focal_length <> 0) = ?5 ORDER BY camera_id";
  static const char outside[] = "SELECT camera_id FROM cameras WHERE model = ?1 AND width = ?2 AND height = ?3"
                                " AND params = ?4 AND (prior_focal_length <> 0) = ?5 AND camera_id NOT IN"
                                " (SELECT sensor_id FROM rig_sensors WHERE sensor_type = 0"
                                "  UNION SELECT ref_sensor_id FROM rigs WHERE ref_sensor_type = 0"
                                "  AND rig_id IN (SELECT rig_id FROM rig_sensors)) ORDER BY camera_id";
  uint8_t parameters[HS_COLMAP_PARAMETERS * PARAMETER_BYTES];
  sqlite3_stmt *statement;
  bool has_row = false;
  const char *sql = outside_rigs && database->schema.has_frames ? outside : plain;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, bind_camera(statement, camera, parameters), &has_row);
  *camera_id = has_row ? sqlite3_column_int64(statement, 0) : -1;
  colmap_done(database, statement);
  return status;
}

#define GROUP_OF_IMAGES                                                                                                \
  "SELECT images.camera_id FROM images JOIN cameras ON cameras.camera_id = images.camera_id"                           \
  " WHERE (?1 < 0 OR cameras.model = ?1) AND cameras.width = ?2 AND cameras.height = ?3"                               \
  " AND (?4 IS NULL OR (cameras.params = ?4 AND (cameras.prior_focal_length <> 0) = ?5))"
#define GROUP_ORDER " GROUP BY images.camera_id ORDER BY min(images.image_id)"

/* Binds a folder and its end as bytes, because SQLite cannot count the characters of invalid UTF-8. */
static int bind_folder(sqlite3_stmt *statement, const char *folder, size_t length) {
  char *from = sqlite3_mprintf("%.*s/", (int)length, folder);
  /* the character '0' follows '/', so this is the end of the folder's names */
  char *to = sqlite3_mprintf("%.*s0", (int)length, folder);
  int code = from && to ? SQLITE_OK : SQLITE_NOMEM;
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 6, from, -1, SQLITE_TRANSIENT);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 7, to, -1, SQLITE_TRANSIENT);
  sqlite3_free(from);
  sqlite3_free(to);
  return code | sqlite3_bind_int64(statement, 8, (int64_t)length + 2);
}

hs_status colmap_find_group(hs_colmap_database *database, const char *folder, const hs_colmap_camera *camera,
                            colmap_group *group) {
  static const char everywhere[] = GROUP_OF_IMAGES GROUP_ORDER;
  static const char at_top[] = GROUP_OF_IMAGES " AND instr(CAST(images.name AS BLOB), X'2F') = 0" GROUP_ORDER;
  static const char in_folder[] =
      GROUP_OF_IMAGES " AND images.name >= ?6 AND images.name < ?7"
                      " AND instr(substr(CAST(images.name AS BLOB), ?8), X'2F') = 0" GROUP_ORDER;
  uint8_t parameters[HS_COLMAP_PARAMETERS * PARAMETER_BYTES];
  sqlite3_stmt *statement;
  bool has_row = true;
  int code = SQLITE_OK;
  *group = (colmap_group){.first = -1};
  const size_t length = folder ? strlen(folder) : 0;
  hs_status status = colmap_prepare(database, !folder ? everywhere : length == 0 ? at_top : in_folder, &statement);
  if (status == HS_OK) code = bind_camera(statement, camera, parameters);
  if (status == HS_OK && camera->tentative != HS_TENTATIVE_NOTHING) code |= sqlite3_bind_null(statement, 4);
  if (status == HS_OK && camera->tentative == HS_TENTATIVE_CAMERA) code |= sqlite3_bind_int(statement, 1, -1);
  if (status == HS_OK && length > 0) code |= bind_folder(statement, folder, length);
  while (status == HS_OK && has_row) {
    status = colmap_step(database, statement, code, &has_row);
    if (status != HS_OK || !has_row) break;
    if (group->count++ == 0) group->first = sqlite3_column_int64(statement, 0);
  }
  colmap_done(database, statement);
  return status;
}

hs_status colmap_insert_camera(hs_colmap_database *database, const hs_colmap_camera *camera, int64_t *camera_id) {
  uint8_t parameters[HS_COLMAP_PARAMETERS * PARAMETER_BYTES];
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(
      database, "INSERT INTO cameras(model, width, height, params, prior_focal_length) VALUES(?1, ?2, ?3, ?4, ?5)",
      &statement);
  if (status == HS_OK) status = colmap_step(database, statement, bind_camera(statement, camera, parameters), NULL);
  *camera_id = sqlite3_last_insert_rowid(database->sqlite);
  colmap_done(database, statement);
  return status;
}

static hs_status update_camera(hs_colmap_database *database, int64_t camera_id, const hs_colmap_camera *camera) {
  uint8_t parameters[HS_COLMAP_PARAMETERS * PARAMETER_BYTES];
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(database,
                                    "UPDATE cameras SET model = ?1, width = ?2, height = ?3, params = ?4,"
                                    " prior_focal_length = ?5 WHERE camera_id = ?6",
                                    &statement);
  if (status == HS_OK) {
    const int code = bind_camera(statement, camera, parameters);
    status = colmap_step(database, statement, code | sqlite3_bind_int64(statement, 6, camera_id), NULL);
  }
  colmap_done(database, statement);
  return status;
}

/* ------------------------------------------------------------------ rigs and frames */

/* Runs a statement that has integer parameters and returns no rows. */
static hs_status run_integers(hs_colmap_database *database, const char *sql, const int64_t *values, int count) {
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(database, sql, &statement);
  int code = SQLITE_OK;
  for (int i = 0; status == HS_OK && i < count; i++) code |= sqlite3_bind_int64(statement, i + 1, values[i]);
  if (status == HS_OK) status = colmap_step(database, statement, code, NULL);
  colmap_done(database, statement);
  return status;
}

hs_status colmap_is_in_rig(hs_colmap_database *database, int64_t camera_id, bool *is_in_rig) {
  static const char sql[] = "SELECT 1 FROM rig_sensors WHERE sensor_type = 0 AND sensor_id = ?1 UNION ALL"
                            " SELECT 1 FROM rigs WHERE ref_sensor_type = 0 AND ref_sensor_id = ?1"
                            " AND rig_id IN (SELECT rig_id FROM rig_sensors)";
  *is_in_rig = false;
  return database->schema.has_frames ? colmap_query(database, sql, camera_id, NULL, is_in_rig) : HS_OK;
}

/* Finds the camera's rig. If it has none, adds a rig. */
static hs_status rig_of(hs_colmap_database *database, int64_t camera_id, int64_t *rig_id) {
  static const char sql[] = "SELECT rig_id FROM rigs WHERE ref_sensor_type = 0 AND ref_sensor_id = ?1 UNION ALL"
                            " SELECT rig_id FROM rig_sensors WHERE sensor_type = 0 AND sensor_id = ?1";
  bool found = false;
  hs_status status = colmap_query(database, sql, camera_id, rig_id, &found);
  if (status != HS_OK || found) return status;
  const int64_t rig[] = {camera_id, COLMAP_SENSOR_CAMERA};
  status = run_integers(database, "INSERT INTO rigs(ref_sensor_id, ref_sensor_type) VALUES(?, ?)", rig, 2);
  *rig_id = sqlite3_last_insert_rowid(database->sqlite);
  return status;
}

hs_status colmap_insert_frame(hs_colmap_database *database, int64_t image_id, int64_t camera_id) {
  int64_t rig_id = 0;
  if (!database->schema.gives_frames) return HS_OK;
  hs_status status = rig_of(database, camera_id, &rig_id);
  if (status == HS_OK) status = run_integers(database, "INSERT INTO frames(rig_id) VALUES(?)", &rig_id, 1);
  if (status != HS_OK) return status;
  const int64_t data[] = {sqlite3_last_insert_rowid(database->sqlite), image_id, camera_id, COLMAP_SENSOR_CAMERA};
  return run_integers(database, "INSERT INTO frame_data(frame_id, data_id, sensor_id, sensor_type) VALUES(?, ?, ?, ?)",
                      data, 4);
}

/* ------------------------------------------------------------------ another camera for an image */

/* Refuses to change the camera of an image whose rig has several cameras. */
static hs_status check_alone(hs_colmap_database *database, const hs_colmap_image *image) {
  static const char others[] = "SELECT 1 FROM frame_data WHERE NOT (data_id = ?1 AND sensor_type = 0) AND frame_id IN"
                               " (SELECT frame_id FROM frame_data WHERE data_id = ?1 AND sensor_type = 0)";
  bool is_in_rig = false, has_others = false;
  if (!database->schema.has_frames) return HS_OK;
  hs_status status = colmap_is_in_rig(database, image->camera_id, &is_in_rig);
  if (status == HS_OK) status = colmap_query(database, others, image->image_id, NULL, &has_others);
  if (status != HS_OK || (!is_in_rig && !has_others)) return status;
  return colmap_fail(
      database, HS_ERR_ARGUMENT,
      "the camera of image %s, camera %lu, is part of a rig that other images share, so it was not changed: change it "
      "with COLMAP (rig_configurator)",
      image->name, (unsigned long)image->camera_id);
}

static hs_status move_frame(hs_colmap_database *database, int64_t image_id, int64_t camera_id) {
  bool found = false;
  int64_t rig_id = 0;
  hs_status status =
      colmap_query(database, "SELECT 1 FROM frame_data WHERE data_id = ?1 AND sensor_type = 0", image_id, NULL, &found);
  if (status != HS_OK || !found) return status;
  status = rig_of(database, camera_id, &rig_id);
  const int64_t to_rig[] = {rig_id, image_id}, to_camera[] = {camera_id, image_id};
  if (status == HS_OK)
    status = run_integers(database,
                          "UPDATE frames SET rig_id = ?1 WHERE frame_id IN"
                          " (SELECT frame_id FROM frame_data WHERE data_id = ?2 AND sensor_type = 0)",
                          to_rig, 2);
  if (status == HS_OK)
    status = run_integers(database, "UPDATE frame_data SET sensor_id = ?1 WHERE data_id = ?2 AND sensor_type = 0",
                          to_camera, 2);
  return status;
}

/* Removes a camera without images, and its rig if the rig has no other camera. */
static hs_status drop_unused(hs_colmap_database *database, int64_t camera_id) {
  bool is_used = false;
  hs_status status = colmap_query(database, "SELECT 1 FROM images WHERE camera_id = ?1", camera_id, NULL, &is_used);
  if (status != HS_OK || is_used) return status;
  status = colmap_query(database, "DELETE FROM cameras WHERE camera_id = ?1", camera_id, NULL, NULL);
  if (status != HS_OK || !database->schema.has_frames) return status;
  return colmap_query(database,
                      "DELETE FROM rigs WHERE ref_sensor_type = 0 AND ref_sensor_id = ?1 AND rig_id NOT IN"
                      " (SELECT rig_id FROM frames) AND rig_id NOT IN (SELECT rig_id FROM rig_sensors)",
                      camera_id, NULL, NULL);
}

static hs_status move_image(hs_colmap_database *database, const hs_colmap_image *image, int64_t camera_id) {
  const int64_t values[] = {camera_id, image->image_id};
  hs_status status = run_integers(database, "UPDATE images SET camera_id = ?1 WHERE image_id = ?2", values, 2);
  if (status == HS_OK && database->schema.has_frames) status = move_frame(database, image->image_id, camera_id);
  if (status == HS_OK && database->schema.priors == COLMAP_PRIORS_BY_DATA)
    status = run_integers(database,
                          "UPDATE pose_priors SET corr_sensor_id = ?1 WHERE corr_data_id = ?2 AND corr_sensor_type = 0",
                          values, 2);
  return status == HS_OK ? drop_unused(database, image->camera_id) : status;
}

hs_status colmap_change_camera(hs_colmap_database *database, const hs_colmap_image *image,
                               const hs_colmap_camera *camera, int64_t camera_id) {
  int64_t users = 0;
  hs_status status = HS_OK;
  if (camera_id < 0)
    status = colmap_query(database, "SELECT count(*) FROM (SELECT 1 FROM images WHERE camera_id = ?1 LIMIT 2)",
                          image->camera_id, &users, NULL);
  if (status != HS_OK) return status;
  if (camera_id < 0 && users == 1 && image->camera.width > 0) {
    status = update_camera(database, image->camera_id, camera);
  } else {
    status = check_alone(database, image);
    if (status == HS_OK && camera_id < 0) status = colmap_insert_camera(database, camera, &camera_id);
    if (status == HS_OK) status = move_image(database, image, camera_id);
  }
  if (status != HS_OK) return status;
  return colmap_query(database,
                      "DELETE FROM two_view_geometries WHERE ?1 IN (pair_id / 2147483647, pair_id % 2147483647)",
                      image->image_id, NULL, NULL);
}

/* ---- choice of an image's camera */

/* ---- cache of choices */

/* Returns the cache entry of a folder. Choices are cached, because finding the cameras of a folder reads all its
 * images. */
static colmap_choice *slot_of(hs_colmap_database *database, const char *folder) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (const char *at = folder; at && *at != '\0'; at++) hash = (hash ^ (unsigned char)*at) * 16777619u;
  return &database->choices[hash % COLMAP_CHOICES];
}

/* Returns the fields that select a camera of a folder: all fields that are not tentative. */
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

/* Caches a choice. Does nothing if out of memory. */
static void remember(hs_colmap_database *database, const char *folder, const hs_colmap_camera *camera,
                     int64_t camera_id) {
  colmap_choice *choice = slot_of(database, folder);
  sqlite3_free(choice->folder);
  *choice = (colmap_choice){.camera_id = camera_id, .key = key_of(camera)};
  if (folder) choice->folder = sqlite3_mprintf("%s", folder);
  choice->is_taken = !folder || choice->folder != NULL;
}

/* Drops cached choices of a camera, because its images change. */
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

/* Checks that the camera with the requested id exists and fits the image's size. */
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

/* Returns the folder of a name; null: out of memory. */
static char *folder_of(const char *name) {
  const char *slash = strrchr(name, '/');
  return sqlite3_mprintf("%.*s", slash ? (int)(slash - name) : 0, name);
}

/* Refuses the choice if several cameras have this size or folder. */
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

/* Finds the camera of images of the same size, in the image's folder or in all folders; *camera_id -1: none. own: the
   image's current camera; -1: the image is new. */
static hs_status choose_shared(hs_colmap_database *database, const char *name, const hs_colmap_camera *wanted,
                               int64_t own, int64_t *camera_id) {
  const bool by_folder = database->options.share_cameras == HS_CAMERAS_BY_FOLDER;
  colmap_group group;
  char *folder = by_folder ? folder_of(name) : NULL;
  if (by_folder && !folder) return colmap_fail(database, HS_ERR_MEMORY, "out of memory for the folder of %s", name);
  const colmap_choice *choice = slot_of(database, folder);
  if (is_remembered(choice, folder, wanted)) {
    *camera_id = choice->camera_id;
    sqlite3_free(folder);
    return HS_OK;
  }
  hs_status status = find_group(database, folder, wanted, &group);
  if (status == HS_OK && (group.count > 1 || group.first != own))
    status = check_group(database, name, folder, wanted, &group);
  /* with the option replace, the first of several cameras is used */
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

/* ---- existing images */

/* True if a camera equals the requested one in all fields that are not tentative. */
static bool is_as_wanted(const hs_colmap_camera *there, const hs_colmap_camera *wanted) {
  if (wanted->tentative == HS_TENTATIVE_CAMERA) return true;
  if (there->model != wanted->model || there->width != wanted->width || there->height != wanted->height) return false;
  return wanted->tentative == HS_TENTATIVE_PARAMETERS ||
         (there->prior_focal_length == wanted->prior_focal_length &&
          there->parameter_count == wanted->parameter_count &&
          memcmp(there->parameters, wanted->parameters, sizeof(double) * (size_t)wanted->parameter_count) == 0);
}

/* Chooses the camera of an existing image; *camera_id -1: a new camera. */
static hs_status choose_for_old(hs_colmap_database *database, const hs_colmap_image *image,
                                const hs_colmap_camera *wanted, int64_t *camera_id) {
  const bool is_wanted = is_as_wanted(&image->camera, wanted);
  const bool is_sized = image->camera.width == wanted->width && image->camera.height == wanted->height;
  *camera_id = wanted->camera_id != 0 ? (int64_t)wanted->camera_id : is_wanted ? (int64_t)image->camera_id : -1;
  if (wanted->camera_id != 0) return check_numbered(database, image->name, wanted);
  /* if the picture's size differs from its camera's, it is refused later, for that reason */
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
