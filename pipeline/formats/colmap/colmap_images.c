/*
 * Cameras, images and their features in COLMAP's database.
 */
#include <string.h>

#include "cpu/float_environment.h"
#include "pipeline/base/features.h"
#include "pipeline/formats/common/byte_order.h"
#include "pipeline/formats/colmap/colmap_camera.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_keypoints.h"
#include "pipeline/formats/colmap/colmap_rows.h"
#include "pipeline/formats/common/feature_file.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"

enum { DESCRIPTOR_TYPE_SIFT = 0, PARAMETER_BYTES = 8 };

/* ------------------------------------------------------------------ looking images up */

static void read_camera(sqlite3_stmt *statement, int first, hs_colmap_camera *camera) {
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

/* A row of `select_image`. */
static hs_status read_image(hs_colmap_database *database, sqlite3_stmt *statement, hs_colmap_image *image) {
  const int64_t image_id = sqlite3_column_int64(statement, 0);
  const int64_t camera_id = sqlite3_column_int64(statement, 1);
  const char *name = (const char *)sqlite3_column_text(statement, 2);
  if (image_id < 0 || image_id >= COLMAP_PAIR_BASE || camera_id < 0 || camera_id > UINT32_MAX || !name)
    return colmap_fail(database, HS_ERR_FORMAT, "image %lld is damaged", (long long)image_id);
  sqlite3_free(database->name_text);
  database->name_text = sqlite3_mprintf("%s", name);
  if (!database->name_text) return colmap_fail(database, HS_ERR_MEMORY, "no memory for the name of an image");
  image->found = 1;
  image->image_id = (uint32_t)image_id;
  image->camera_id = (uint32_t)camera_id;
  image->name = database->name_text;
  image->features = sqlite3_column_type(statement, 3) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, 3);
  /* Fewer than none are damage, which reading them tells, and not an image without any. */
  if (image->features < 0 && sqlite3_column_type(statement, 3) != SQLITE_NULL) image->features = 0;
  read_camera(statement, 4, &image->camera);
  return HS_OK;
}

#define SELECT_IMAGE                                                                                                   \
  "SELECT images.image_id, images.camera_id, images.name, keypoints.rows, cameras.model, cameras.width,"               \
  " cameras.height, cameras.prior_focal_length, cameras.params FROM images"                                            \
  " LEFT JOIN cameras ON cameras.camera_id = images.camera_id"                                                         \
  " LEFT JOIN keypoints ON keypoints.image_id = images.image_id "

/* name null: the first image above `after`. */
static hs_status find_image(hs_colmap_database *database, const char *name, int64_t after, hs_colmap_image *image) {
  sqlite3_stmt *statement;
  bool has_row = false;
  memset(image, 0, sizeof *image);
  hs_status status = colmap_prepare(database,
                                    name != NULL ? SELECT_IMAGE "WHERE images.name = ?"
                                                 : SELECT_IMAGE "WHERE images.image_id > ? ORDER BY images.image_id",
                                    &statement);
  if (status == HS_OK) {
    const int code =
        name ? sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC) : sqlite3_bind_int64(statement, 1, after);
    status = colmap_step(database, statement, code, &has_row);
  }
  if (status == HS_OK && has_row) status = read_image(database, statement, image);
  if (status != HS_OK) memset(image, 0, sizeof *image);
  colmap_done(database, statement);
  return status;
}

hs_status hs_colmap_find_image(hs_colmap_database *database, const char *name, hs_colmap_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!name || !image) return colmap_fail(database, HS_ERR_ARGUMENT, "name or image is null");
  return find_image(database, name, 0, image);
}

hs_status hs_colmap_next_image(hs_colmap_database *database, int64_t after, hs_colmap_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!image) return colmap_fail(database, HS_ERR_ARGUMENT, "image is null");
  return find_image(database, NULL, after, image);
}

hs_status colmap_count_keypoints(hs_colmap_database *database, uint32_t image_id, int64_t *count) {
  bool found = false;
  *count = -1;
  hs_status status = colmap_query(database, "SELECT image_id FROM images WHERE image_id = ?", image_id, NULL, &found);
  if (status == HS_OK && !found)
    return colmap_fail(database, HS_ERR_ARGUMENT, "there is no image of the number %lu", (unsigned long)image_id);
  if (status != HS_OK) return status;
  return colmap_query(database, "SELECT rows FROM keypoints WHERE image_id = ?", image_id, count, NULL);
}

/* ------------------------------------------------------------------ cameras, rigs and frames */

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

/* *camera_id: the first camera that is the same, unless another sensor leads its rig; -1: none. */
static hs_status find_camera(hs_colmap_database *database, const hs_colmap_camera *camera, int64_t *camera_id) {
  static const char plain[] =
      "SELECT camera_id FROM cameras WHERE model = ? AND width = ? AND height = ? AND params = ?"
      " AND (prior_focal_length <> 0) = ? ORDER BY camera_id";
  static const char leading[] = "SELECT camera_id FROM cameras WHERE model = ? AND width = ? AND height = ?"
                                " AND params = ? AND (prior_focal_length <> 0) = ? AND camera_id NOT IN"
                                " (SELECT sensor_id FROM rig_sensors WHERE sensor_type = 0) ORDER BY camera_id";
  uint8_t parameters[HS_COLMAP_PARAMETERS * PARAMETER_BYTES];
  sqlite3_stmt *statement;
  bool has_row = false;
  hs_status status = colmap_prepare(database, database->schema.has_frames ? leading : plain, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, bind_camera(statement, camera, parameters), &has_row);
  *camera_id = has_row ? sqlite3_column_int64(statement, 0) : -1;
  colmap_done(database, statement);
  return status;
}

static hs_status insert_camera(hs_colmap_database *database, const hs_colmap_camera *camera, int64_t *camera_id) {
  uint8_t parameters[HS_COLMAP_PARAMETERS * PARAMETER_BYTES];
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(
      database, "INSERT INTO cameras(model, width, height, params, prior_focal_length) VALUES(?, ?, ?, ?, ?)",
      &statement);
  if (status == HS_OK) status = colmap_step(database, statement, bind_camera(statement, camera, parameters), NULL);
  *camera_id = sqlite3_last_insert_rowid(database->sqlite);
  colmap_done(database, statement);
  return status;
}

/* Runs an INSERT of integers. */
static hs_status insert_integers(hs_colmap_database *database, const char *sql, const int64_t *values, int count) {
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(database, sql, &statement);
  int code = SQLITE_OK;
  for (int i = 0; status == HS_OK && i < count; i++) code |= sqlite3_bind_int64(statement, i + 1, values[i]);
  if (status == HS_OK) status = colmap_step(database, statement, code, NULL);
  colmap_done(database, statement);
  return status;
}

/* Every image of these databases belongs to a frame, the picture that a rig took; a camera alone is a rig too. */
static hs_status insert_frame(hs_colmap_database *database, int64_t image_id, int64_t camera_id) {
  int64_t rig_id = 0;
  bool found = false;
  hs_status status = colmap_query(database, "SELECT rig_id FROM rigs WHERE ref_sensor_type = 0 AND ref_sensor_id = ?",
                                  camera_id, &rig_id, &found);
  if (status == HS_OK && !found) {
    const int64_t rig[] = {camera_id, COLMAP_SENSOR_CAMERA};
    status = insert_integers(database, "INSERT INTO rigs(ref_sensor_id, ref_sensor_type) VALUES(?, ?)", rig, 2);
    rig_id = sqlite3_last_insert_rowid(database->sqlite);
  }
  if (status == HS_OK) status = insert_integers(database, "INSERT INTO frames(rig_id) VALUES(?)", &rig_id, 1);
  if (status != HS_OK) return status;
  const int64_t data[] = {sqlite3_last_insert_rowid(database->sqlite), image_id, camera_id, COLMAP_SENSOR_CAMERA};
  return insert_integers(
      database, "INSERT INTO frame_data(frame_id, data_id, sensor_id, sensor_type) VALUES(?, ?, ?, ?)", data, 4);
}

static hs_status insert_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                              int64_t *image_id) {
  int64_t camera_id = -1;
  sqlite3_stmt *statement;
  hs_status status = HS_OK;
  if (database->options.share_cameras != 0) status = find_camera(database, camera, &camera_id);
  if (status == HS_OK && camera_id < 0) status = insert_camera(database, camera, &camera_id);
  if (status != HS_OK) return status;
  status = colmap_prepare(database, "INSERT INTO images(name, camera_id) VALUES(?, ?)", &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 2, camera_id);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  *image_id = sqlite3_last_insert_rowid(database->sqlite);
  if (status != HS_OK || !database->schema.gives_frames) return status;
  return insert_frame(database, *image_id, camera_id);
}

/* ------------------------------------------------------------------ features */

/* What the columns rows, cols and data of keypoints or descriptors hold. */
typedef struct blob_content {
  const uint8_t *bytes;
  int columns;
  size_t row_bytes, count;
} blob_content;

/* Whether a row of keypoints or descriptors (rows, cols, data) holds exactly this; no row: only if bytes is null. */
static hs_status holds_blob(hs_colmap_database *database, const char *sql, int64_t image_id, blob_content wanted,
                            bool *there, bool *same) {
  sqlite3_stmt *statement;
  *there = false;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, image_id), there);
  if (status == HS_OK && *there) {
    const void *data = sqlite3_column_blob(statement, 2);
    const size_t size = (size_t)sqlite3_column_bytes(statement, 2);
    *same = wanted.bytes != NULL && sqlite3_column_int64(statement, 0) == (int64_t)wanted.count &&
            sqlite3_column_int64(statement, 1) == wanted.columns && size == wanted.count * wanted.row_bytes &&
            (size == 0 || (data && memcmp(data, wanted.bytes, size) == 0));
  } else {
    *same = !wanted.bytes;
  }
  colmap_done(database, statement);
  return status;
}

static hs_status insert_blob(hs_colmap_database *database, const char *sql, int64_t image_id, const uint8_t *bytes,
                             int columns, size_t row_bytes, size_t count) {
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_int64(statement, 1, image_id);
    code |= sqlite3_bind_int64(statement, 2, (int64_t)count);
    code |= sqlite3_bind_int(statement, 3, columns);
    code |= sqlite3_bind_blob64(statement, 4, bytes, count * row_bytes, SQLITE_STATIC);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  return status;
}

static hs_status insert_features(hs_colmap_database *database, int64_t image_id, const colmap_rows *blobs) {
  hs_status status = insert_blob(database, "INSERT INTO keypoints(image_id, rows, cols, data) VALUES(?, ?, ?, ?)",
                                 image_id, blobs->keypoints, COLMAP_COLUMNS, COLMAP_KEYPOINT_BYTES, blobs->count);
  if (status != HS_OK || !blobs->descriptors) return status;
  const char *sql = database->schema.has_descriptor_type
                        ? "INSERT INTO descriptors(image_id, rows, cols, data, type) VALUES(?, ?, ?, ?, 0)"
                        : "INSERT INTO descriptors(image_id, rows, cols, data) VALUES(?, ?, ?, ?)";
  return insert_blob(database, sql, image_id, blobs->descriptors, HS_DESCRIPTOR_LENGTH, HS_DESCRIPTOR_LENGTH,
                     blobs->count);
}

/* Drops an image's features, and the matches of every pair that it is in: they count in the old features. */
static hs_status drop_features(hs_colmap_database *database, int64_t image_id) {
  static const char *const statements[] = {
      "DELETE FROM keypoints WHERE image_id = ?",
      "DELETE FROM descriptors WHERE image_id = ?",
      "DELETE FROM matches WHERE ? IN (pair_id / 2147483647, pair_id % 2147483647)",
      "DELETE FROM two_view_geometries WHERE ? IN (pair_id / 2147483647, pair_id % 2147483647)",
  };
  hs_status status = HS_OK;
  for (size_t i = 0; status == HS_OK && i < sizeof statements / sizeof statements[0]; i++)
    status = colmap_query(database, statements[i], image_id, NULL, NULL);
  return status == HS_OK ? colmap_drop_origin(database, image_id) : status;
}

/* Features for an image that was there already. */
static hs_status renew_features(hs_colmap_database *database, const hs_colmap_image *image, const colmap_rows *blobs) {
  const int64_t image_id = image->image_id;
  bool has_keypoints = false, has_descriptors = false;
  bool same_keypoints = false, same_descriptors = false;
  const blob_content keypoints = {blobs->keypoints, COLMAP_COLUMNS, COLMAP_KEYPOINT_BYTES, blobs->count};
  const blob_content descriptors = {blobs->descriptors, HS_DESCRIPTOR_LENGTH, HS_DESCRIPTOR_LENGTH, blobs->count};
  hs_status status = holds_blob(database, "SELECT rows, cols, data FROM keypoints WHERE image_id = ?", image_id,
                                keypoints, &has_keypoints, &same_keypoints);
  if (status == HS_OK)
    status = holds_blob(database, "SELECT rows, cols, data FROM descriptors WHERE image_id = ?", image_id, descriptors,
                        &has_descriptors, &same_descriptors);
  if (status != HS_OK) return status;
  if (has_keypoints && same_keypoints && same_descriptors) return HS_OK;
  if (has_keypoints || has_descriptors) {
    if (database->options.replace == 0) {
      return colmap_fail(
          database, HS_ERR_ARGUMENT,
          "has other features of the image %s already; with the option replace (--replace) they are overwritten",
          image->name);
    }
    status = drop_features(database, image_id);
  }
  return status == HS_OK ? insert_features(database, image_id, blobs) : status;
}

static hs_status check_size(hs_colmap_database *database, const hs_colmap_image *image, const hs_features *features) {
  if (features->image_width == 0 || features->image_height == 0 || image->camera.width == 0) return HS_OK;
  if (features->image_width == image->camera.width && features->image_height == image->camera.height) return HS_OK;
  return colmap_fail(database, HS_ERR_ARGUMENT, "the image %s is already there with a camera of %ldx%ld, not %ldx%ld",
                     image->name, (long)image->camera.width, (long)image->camera.height, (long)features->image_width,
                     (long)features->image_height);
}

static hs_status add_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                           const colmap_rows *blobs, const hs_features *features, int64_t *image_id) {
  hs_colmap_image image;
  hs_status status = find_image(database, name, 0, &image);
  if (status != HS_OK) return status;
  if (image.found != 0) {
    *image_id = image.image_id;
    status = check_size(database, &image, features);
    if (status == HS_OK) status = renew_features(database, &image, blobs);
    return status == HS_OK ? colmap_renew_origin(database, image.image_id, features) : status;
  }
  hs_colmap_camera usual;
  if (!camera) {
    if (hs_colmap_camera_init(&usual, features->image_width, features->image_height, 0.0) != HS_OK)
      return colmap_fail(database, HS_ERR_ARGUMENT, "the size of the image %s is not known", name);
    camera = &usual;
  }
  status = insert_image(database, name, camera, image_id);
  if (status == HS_OK) status = insert_features(database, *image_id, blobs);
  return status == HS_OK ? colmap_write_origin(database, *image_id, features) : status;
}

hs_status hs_colmap_add_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                              const hs_features *features, uint32_t *image_id) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!name || name[0] == '\0' || !features)
    return colmap_fail(database, HS_ERR_ARGUMENT, "name or features is null or empty");
  const feature_target target = {.path = database->shown_path,
                                 .features = features,
                                 .layout = database->options.layout,
                                 .allocator = database->options.allocator,
                                 .message = database->message,
                                 .message_bytes = sizeof database->message};
  colmap_rows rows;
  status = colmap_rows_make(&target, &rows);
  if (status != HS_OK) return status;
  status = colmap_add_rows(database, name, camera, &rows, image_id);
  colmap_rows_free(&rows);
  return status;
}

hs_status colmap_add_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                          const colmap_rows *rows, uint32_t *image_id) {
  const hs_features known = {
      .count = rows->count, .image_width = rows->width, .image_height = rows->height, .origin = rows->origin};
  const char *fault = camera ? colmap_camera_fault(camera) : NULL;
  int64_t number = 0;
  if (fault) return colmap_fail(database, HS_ERR_ARGUMENT, "%s", fault);
  if (rows->count > (size_t)sqlite3_limit(database->sqlite, SQLITE_LIMIT_LENGTH, -1) / HS_DESCRIPTOR_LENGTH)
    return colmap_fail(database, HS_ERR_LIMIT, "%zu features of one image are more than SQLite can hold", rows->count);
  hs_status status = colmap_enter(database);
  if (status != HS_OK) return status;
  status = colmap_leave(database, add_image(database, name, camera, rows, &known, &number));
  if (status == HS_OK && image_id) *image_id = (uint32_t)number;
  return status;
}

/* ------------------------------------------------------------------ reading */

static hs_status damaged(hs_colmap_database *database, uint32_t image_id, const char *what) {
  return colmap_fail(database, HS_ERR_FORMAT, "%s of image %lu are damaged", what, (unsigned long)image_id);
}

/* A row of (rows, cols, data): *count features, checked against the size of the data. */
static hs_status read_counts(hs_colmap_database *database, sqlite3_stmt *statement, uint32_t image_id, size_t unit,
                             const char *what, size_t *count) {
  const int64_t rows = sqlite3_column_int64(statement, 0);
  const int64_t columns = sqlite3_column_int64(statement, 1);
  const int64_t size = sqlite3_column_bytes(statement, 2);
  if (rows < 0 || columns < 1 || columns > HS_DESCRIPTOR_LENGTH || rows > INT32_MAX ||
      size != rows * columns * (int64_t)unit)
    return damaged(database, image_id, what);
  if ((uint64_t)rows > database->options.max_features) {
    return colmap_fail(database, HS_ERR_LIMIT, "image %lu has %lld features, more than the limit of %llu",
                       (unsigned long)image_id, (long long)rows, (unsigned long long)database->options.max_features);
  }
  *count = (size_t)rows;
  return HS_OK;
}

static hs_status fill_keypoints(hs_colmap_database *database, sqlite3_stmt *statement, uint32_t image_id,
                                hs_features *features) {
  size_t count = 0;
  hs_status status = read_counts(database, statement, image_id, sizeof(float), "the keypoints", &count);
  const int64_t columns = sqlite3_column_int64(statement, 1);
  if (status != HS_OK) return status;
  if (columns != 2 && columns != 4 && columns != COLMAP_COLUMNS) return damaged(database, image_id, "the keypoints");
  const uint8_t *bytes = sqlite3_column_blob(statement, 2);
  if (count > 0 && !bytes) return colmap_fail(database, HS_ERR_MEMORY, "no memory for %zu keypoints", count);
  const bool framed = columns == COLMAP_COLUMNS && colmap_rows_are_framed(bytes, count);
  if ((framed ? features_reserve_framed : features_reserve)(features, count, HS_DESCRIPTOR_NONE,
                                                            database->options.allocator) != HS_OK)
    return colmap_fail(database, HS_ERR_MEMORY, "no memory for %zu keypoints", count);
  for (size_t i = 0; i < count; i++) {
    const uint8_t *row = bytes + i * 4 * (size_t)columns;
    const char *fault = colmap_keypoint_get(row, columns, &features->keypoints[i]);
    if (framed) colmap_frame_get(row, &features->frames[i]);
    if (fault)
      return colmap_fail(database, HS_ERR_FORMAT, "keypoint %zu of image %lu: %s", i, (unsigned long)image_id, fault);
  }
  features->count = count;
  return HS_OK;
}

/* The list has its keypoints; the descriptors are given room of their own. */
static hs_status fill_descriptors(hs_colmap_database *database, sqlite3_stmt *statement, uint32_t image_id,
                                  hs_features *features) {
  size_t count = 0;
  hs_status status = read_counts(database, statement, image_id, 1, "the descriptors", &count);
  if (status != HS_OK) return status;
  if (database->schema.has_descriptor_type && sqlite3_column_int64(statement, 3) != DESCRIPTOR_TYPE_SIFT) {
    return colmap_fail(database, HS_ERR_UNSUPPORTED, "the descriptors of image %lu are not SIFT's",
                       (unsigned long)image_id);
  }
  if (count == 0 && features->count > 0) return HS_OK;
  if (count != features->count || sqlite3_column_int64(statement, 1) != HS_DESCRIPTOR_LENGTH)
    return damaged(database, image_id, "the descriptors");
  const void *bytes = sqlite3_column_blob(statement, 2);
  void *room = hs_memory_alloc(features->allocator, count * HS_DESCRIPTOR_LENGTH);
  if (!room || (!bytes && count > 0)) {
    hs_memory_release(features->allocator, room);
    return colmap_fail(database, HS_ERR_MEMORY, "no memory for %zu descriptors", count);
  }
  if (count > 0) memcpy(room, bytes, count * HS_DESCRIPTOR_LENGTH);
  features->descriptors = room;
  features->descriptor_capacity_bytes = count * HS_DESCRIPTOR_LENGTH;
  features->descriptor_type = HS_DESCRIPTOR_U8;
  return HS_OK;
}

typedef hs_status (*fill_function)(hs_colmap_database *, sqlite3_stmt *, uint32_t, hs_features *);

static hs_status fill_from(hs_colmap_database *database, const char *sql, uint32_t image_id, fill_function fill,
                           hs_features *features) {
  sqlite3_stmt *statement;
  bool has_row = false;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, image_id), &has_row);
  if (status == HS_OK && has_row) status = fill(database, statement, image_id, features);
  colmap_done(database, statement);
  return status;
}

/* Image size; also finds out whether the image is there. */
static hs_status read_size(hs_colmap_database *database, uint32_t image_id, hs_features *features) {
  hs_colmap_image image;
  hs_status status = find_image(database, NULL, (int64_t)image_id - 1, &image);
  if (status != HS_OK) return status;
  if (image.found == 0 || image.image_id != image_id)
    return colmap_fail(database, HS_ERR_ARGUMENT, "there is no image of the number %lu", (unsigned long)image_id);
  const bool known = image.camera.width > 0 && image.camera.height > 0;
  features->image_width = known ? image.camera.width : 0;
  features->image_height = known ? image.camera.height : 0;
  return HS_OK;
}

hs_status hs_colmap_read_features(hs_colmap_database *database, uint32_t image_id, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!features) return colmap_fail(database, HS_ERR_ARGUMENT, "features is null");
  hs_features fresh = {.descriptor_type = HS_DESCRIPTOR_NONE};
  status = read_size(database, image_id, &fresh);
  if (status == HS_OK) {
    status = fill_from(database, "SELECT rows, cols, data FROM keypoints WHERE image_id = ?", image_id, fill_keypoints,
                       &fresh);
  }
  if (status == HS_OK) {
    const char *sql = database->schema.has_descriptor_type
                          ? "SELECT rows, cols, data, type FROM descriptors WHERE image_id = ?"
                          : "SELECT rows, cols, data FROM descriptors WHERE image_id = ?";
    status = fill_from(database, sql, image_id, fill_descriptors, &fresh);
  }
  if (status == HS_OK) status = colmap_read_origin(database, image_id, &fresh);
  if (status != HS_OK) {
    hs_features_free(&fresh);
    return status;
  }
  hs_features_free(features);
  *features = fresh;
  return HS_OK;
}

/* ------------------------------------------------------------------ copying */

/* A table with a row (rows, cols, data) for each image, and what a row of hs_colmap_add_image holds. */
typedef struct blob_table {
  const char *sql, *what;
  int64_t columns;
  size_t unit;
} blob_table;

static const blob_table keypoint_table = {"SELECT rows, cols, data FROM keypoints WHERE image_id = ?", "the keypoints",
                                          COLMAP_COLUMNS, sizeof(float)};
static const blob_table descriptor_table = {"SELECT rows, cols, data FROM descriptors WHERE image_id = ?",
                                            "the descriptors", HS_DESCRIPTOR_LENGTH, 1};

/* *bytes: the row's, in memory from `allocator`; null where there is no row. */
static hs_status copy_blob(hs_colmap_database *source, const blob_table *table, uint32_t image_id,
                           const hs_allocator *allocator, size_t *count, uint8_t **bytes) {
  sqlite3_stmt *statement;
  bool has_row = false;
  hs_status status = colmap_prepare(source, table->sql, &statement);
  if (status == HS_OK) status = colmap_step(source, statement, sqlite3_bind_int64(statement, 1, image_id), &has_row);
  if (status == HS_OK && has_row) status = read_counts(source, statement, image_id, table->unit, table->what, count);
  if (status == HS_OK && has_row && sqlite3_column_int64(statement, 1) != table->columns)
    status = colmap_fail(source, HS_ERR_UNSUPPORTED, "%s of image %lu have other columns than hartsift's", table->what,
                         (unsigned long)image_id);
  if (status == HS_OK && has_row) {
    const size_t size = *count * (size_t)table->columns * table->unit;
    const void *data = sqlite3_column_blob(statement, 2);
    *bytes = hs_memory_alloc(allocator, size);
    if (!*bytes || (!data && size > 0))
      status =
          colmap_fail(source, HS_ERR_MEMORY, "no memory for %s of image %lu", table->what, (unsigned long)image_id);
    else if (size > 0)
      memcpy(*bytes, data, size);
  }
  colmap_done(source, statement);
  return status;
}

static hs_status copy_blobs(hs_colmap_database *source, uint32_t image_id, const hs_allocator *allocator,
                            colmap_rows *blobs) {
  int64_t type = DESCRIPTOR_TYPE_SIFT;
  size_t described = 0;
  *blobs = (colmap_rows){.allocator = allocator};
  hs_status status = copy_blob(source, &keypoint_table, image_id, allocator, &blobs->count, &blobs->keypoints);
  if (status == HS_OK && !blobs->keypoints)
    status = colmap_fail(source, HS_ERR_ARGUMENT, "image %lu has no features", (unsigned long)image_id);
  if (status == HS_OK)
    status = copy_blob(source, &descriptor_table, image_id, allocator, &described, &blobs->descriptors);
  if (status == HS_OK && blobs->descriptors && source->schema.has_descriptor_type)
    status = colmap_query(source, "SELECT type FROM descriptors WHERE image_id = ?", image_id, &type, NULL);
  if (status != HS_OK) return status;
  if (type != DESCRIPTOR_TYPE_SIFT) {
    return colmap_fail(source, HS_ERR_UNSUPPORTED, "the descriptors of image %lu are not SIFT's",
                       (unsigned long)image_id);
  }
  return blobs->descriptors && described != blobs->count ? damaged(source, image_id, "the descriptors") : HS_OK;
}

hs_status hs_colmap_copy_image(hs_colmap_database *database, hs_colmap_database *source, uint32_t image_id,
                               uint32_t *new_id) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!source || source == database)
    return colmap_fail(database, HS_ERR_ARGUMENT, "source is null or the database itself");
  colmap_rows blobs = {.allocator = database->options.allocator};
  hs_colmap_image image = {0};
  int64_t number = 0;
  (void)colmap_enter_reading(source);
  status = find_image(source, NULL, (int64_t)image_id - 1, &image);
  if (status == HS_OK && (image.found == 0 || image.image_id != image_id))
    status = colmap_fail(source, HS_ERR_ARGUMENT, "there is no image of the number %lu", (unsigned long)image_id);
  if (status == HS_OK) status = copy_blobs(source, image_id, database->options.allocator, &blobs);
  hs_features known = {.count = blobs.count, .image_width = image.camera.width, .image_height = image.camera.height};
  if (status == HS_OK) status = colmap_read_origin(source, image_id, &known);
  const char *fault = status == HS_OK ? colmap_camera_fault(&image.camera) : NULL;
  if (fault) status = colmap_fail(source, HS_ERR_FORMAT, "image %lu: %s", (unsigned long)image_id, fault);
  if (status != HS_OK) hs_message_set(database->message, sizeof database->message, "%s", source->message);
  if (status == HS_OK) status = colmap_enter(database);
  if (status == HS_OK) {
    status = add_image(database, image.name, &image.camera, &blobs, &known, &number);
    status = colmap_leave(database, status);
  }
  colmap_rows_free(&blobs);
  if (status == HS_OK && new_id) *new_id = (uint32_t)number;
  return status;
}
