/*
 * Images and their features in COLMAP's database. Cameras are in colmap_cameras.c.
 */
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/common/feature_file.h"

/* ---- finding images */

/* Reads a row that SELECT_IMAGE returns. */
static hs_status read_image(hs_colmap_database *database, sqlite3_stmt *statement, hs_colmap_image *image) {
  const int64_t image_id = sqlite3_column_int64(statement, 0);
  const int64_t camera_id = sqlite3_column_int64(statement, 1);
  const char *name = (const char *)sqlite3_column_text(statement, 2);
  if (image_id < 0 || image_id >= COLMAP_PAIR_BASE || camera_id < 0 || camera_id > UINT32_MAX || !name)
    return colmap_fail(database, HS_ERR_FORMAT, "image %lld is damaged", (long long)image_id);
  sqlite3_free(database->name_text);
  database->name_text = sqlite3_mprintf("%s", name);
  if (!database->name_text) return colmap_fail(database, HS_ERR_MEMORY, "out of memory for the name of an image");
  image->found = 1;
  image->image_id = (uint32_t)image_id;
  image->camera_id = (uint32_t)camera_id;
  image->name = database->name_text;
  image->features = sqlite3_column_type(statement, 3) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, 3);
  /* a negative count is damage, which is reported when the features are read; it does not mean "no features" */
  if (image->features < 0 && sqlite3_column_type(statement, 3) != SQLITE_NULL) image->features = 0;
  colmap_camera_columns(statement, 4, &image->camera);
  return HS_OK;
}

#define SELECT_IMAGE                                                                                                   \
  "SELECT images.image_id, images.camera_id, images.name, keypoints.rows, cameras.model, cameras.width,"               \
  " cameras.height, cameras.prior_focal_length, cameras.params FROM images"                                            \
  " LEFT JOIN cameras ON cameras.camera_id = images.camera_id"                                                         \
  " LEFT JOIN keypoints ON keypoints.image_id = images.image_id "

hs_status colmap_find_image(hs_colmap_database *database, const char *name, int64_t after, hs_colmap_image *image) {
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
  /* rows of a damaged file may be out of order, and a loop over the images would not end */
  if (status == HS_OK && has_row && !name && image->image_id <= after)
    status = colmap_fail(database, HS_ERR_FORMAT, "image %lu stands behind image %lld: the file is damaged",
                         (unsigned long)image->image_id, (long long)after);
  if (status != HS_OK) memset(image, 0, sizeof *image);
  colmap_done(database, statement);
  return status;
}

hs_status hs_colmap_find_image(hs_colmap_database *database, const char *name, hs_colmap_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!name || !image) return colmap_fail(database, HS_ERR_ARGUMENT, "name or image is null");
  return colmap_find_image(database, name, 0, image);
}

hs_status hs_colmap_next_image(hs_colmap_database *database, int64_t after, hs_colmap_image *image) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!image) return colmap_fail(database, HS_ERR_ARGUMENT, "image is null");
  return colmap_find_image(database, NULL, after, image);
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

hs_status colmap_count_once(hs_colmap_database *database, uint32_t image_id, int64_t *count) {
  colmap_count *known = &database->counts[image_id % COLMAP_COUNTS];
  if (!database->has_counts) memset(database->counts, 0, sizeof database->counts);
  database->has_counts = true;
  if (known->is_known && known->image_id == image_id) {
    *count = known->count;
    return HS_OK;
  }
  const hs_status status = colmap_count_keypoints(database, image_id, count);
  if (status == HS_OK) *known = (colmap_count){image_id, true, *count};
  return status;
}

static hs_status insert_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                              int64_t *image_id) {
  int64_t camera_id = -1;
  sqlite3_stmt *statement;
  hs_status status = colmap_camera_for_new(database, name, camera, &camera_id);
  if (status != HS_OK) return status;
  status = colmap_prepare(database, "INSERT INTO images(name, camera_id) VALUES(?, ?)", &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 2, camera_id);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  *image_id = sqlite3_last_insert_rowid(database->sqlite);
  return status == HS_OK ? colmap_insert_frame(database, *image_id, camera_id) : status;
}

/* ------------------------------------------------------------------ features */

/* Values of the columns rows, cols and data of keypoints or descriptors. */
typedef struct blob_content {
  const uint8_t *bytes;
  int columns;
  size_t row_bytes, count;
} blob_content;

/* True if a row of keypoints or descriptors (rows, cols, data) has exactly this content. If the row does not exist, the
   content with bytes null matches. */
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

static hs_status insert_features(hs_colmap_database *database, int64_t image_id, colmap_rows *blobs) {
  const bool has_type = database->schema.has_descriptor_type;
  const colmap_blob_table keypoints = {"keypoints",
                                       "INSERT INTO keypoints(image_id, rows, cols, data) VALUES(?, ?, ?, ?)",
                                       0,
                                       0,
                                       COLMAP_COLUMNS,
                                       COLMAP_KEYPOINT_BYTES};
  const colmap_blob_table descriptors = {
      "descriptors",
      has_type ? "INSERT INTO descriptors(image_id, rows, cols, data, type) VALUES(?, ?, ?, ?, 0)"
               : "INSERT INTO descriptors(image_id, rows, cols, data) VALUES(?, ?, ?, ?)",
      1,
      has_type,
      HS_DESCRIPTOR_LENGTH,
      HS_DESCRIPTOR_LENGTH};
  const size_t count = blobs->count;
  hs_status status = colmap_insert_blob(database, &keypoints, image_id, &blobs->keypoints, count, blobs->allocator);
  if (status != HS_OK || !blobs->descriptors) return status;
  return colmap_insert_blob(database, &descriptors, image_id, &blobs->descriptors, count, blobs->allocator);
}

/* Drops an image's features, their provenance, and the matches of all its pairs, because these index the features.
   Matches may exist without features: COLMAP's database_cleaner leaves them. */
static hs_status drop_features(hs_colmap_database *database, int64_t image_id, bool is_new) {
  hs_status status = colmap_query(database, "DELETE FROM keypoints WHERE image_id = ?", image_id, NULL, NULL);
  if (status == HS_OK)
    status = colmap_query(database, "DELETE FROM descriptors WHERE image_id = ?", image_id, NULL, NULL);
  if (status == HS_OK)
    status = is_new ? colmap_drop_orphans_of(database, image_id) : colmap_drop_pairs_of(database, image_id);
  return status == HS_OK ? colmap_drop_origin(database, image_id) : status;
}

/* Adds features to an existing image. */
static hs_status renew_features(hs_colmap_database *database, const hs_colmap_image *image, colmap_rows *blobs) {
  const int64_t image_id = image->image_id;
  bool has_keypoints = false, has_descriptors = false;
  bool same_keypoints = false, same_descriptors = false;
  const blob_content keypoints = {blobs->keypoints, COLMAP_COLUMNS, COLMAP_KEYPOINT_BYTES, blobs->count};
  const blob_content descriptors = {blobs->descriptors, HS_DESCRIPTOR_LENGTH, HS_DESCRIPTOR_LENGTH, blobs->count};
  hs_status status = colmap_fill_blobs(database);
  if (status == HS_OK)
    status = holds_blob(database, "SELECT rows, cols, data FROM keypoints WHERE image_id = ?", image_id, keypoints,
                        &has_keypoints, &same_keypoints);
  if (status == HS_OK)
    status = holds_blob(database, "SELECT rows, cols, data FROM descriptors WHERE image_id = ?", image_id, descriptors,
                        &has_descriptors, &same_descriptors);
  if (status != HS_OK) return status;
  if (has_keypoints && same_keypoints && same_descriptors) return HS_OK;
  if ((has_keypoints || has_descriptors) && database->options.replace == 0) {
    return colmap_fail(
        database, HS_ERR_ARGUMENT,
        "has other features of the image %s already; with the option replace (--replace) they are overwritten",
        image->name);
  }
  status = drop_features(database, image_id, false);
  return status == HS_OK ? insert_features(database, image_id, blobs) : status;
}

static hs_status check_size(hs_colmap_database *database, const hs_colmap_image *image, const hs_features *features) {
  if (features->image_width == 0 || features->image_height == 0 || image->camera.width == 0) return HS_OK;
  if (features->image_width == image->camera.width && features->image_height == image->camera.height) return HS_OK;
  return colmap_fail(
      database, HS_ERR_ARGUMENT,
      "the image %s is already there with a camera of %ldx%ld, not %ldx%ld; a camera that is given with the "
      "option replace (--camera-model with --replace) takes its place",
      image->name, (long)image->camera.width, (long)image->camera.height, (long)features->image_width,
      (long)features->image_height);
}

/* Completes the requested camera; if none is requested, makes the default one for the size of the features or of the
   image's camera. */
static hs_status complete_camera(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                                 const hs_features *features, const hs_colmap_image *there, hs_colmap_camera *wanted) {
  const bool sized = features->image_width > 0 && features->image_height > 0;
  const int32_t width = sized ? features->image_width : there->camera.width;
  const int32_t height = sized ? features->image_height : there->camera.height;
  if (camera && camera->camera_id == 0) {
    const char *misfit = camera->tentative == HS_TENTATIVE_NOTHING ? colmap_camera_misfit(camera) : NULL;
    *wanted = *camera;
    if (misfit)
      return colmap_fail(database, HS_ERR_ARGUMENT, "%s of %ldx%ld", misfit, (long)camera->width, (long)camera->height);
    if (!sized || (camera->width == width && camera->height == height)) return HS_OK;
    return colmap_fail(database, HS_ERR_ARGUMENT,
                       "the camera given for the image %s has the size %ldx%ld, but the image has %ldx%ld", name,
                       (long)camera->width, (long)camera->height, (long)width, (long)height);
  }
  if (hs_colmap_camera_init(wanted, width, height, 0.0) != HS_OK && !camera && there->found == 0)
    return colmap_fail(database, HS_ERR_ARGUMENT, "the size of the image %s is not known", name);
  wanted->tentative = HS_TENTATIVE_CAMERA;
  wanted->camera_id = camera ? camera->camera_id : 0;
  return HS_OK;
}

hs_status colmap_add_image(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                           colmap_rows *blobs, const hs_features *features, int64_t *image_id) {
  hs_colmap_image image;
  hs_colmap_camera wanted;
  hs_status status = colmap_find_image(database, name, 0, &image);
  if (status == HS_OK) status = complete_camera(database, name, camera, features, &image, &wanted);
  if (status != HS_OK) return status;
  if (image.found != 0) {
    bool changed = false;
    *image_id = image.image_id;
    status = colmap_camera_of_old(database, &image, &wanted, &changed);
    if (status == HS_OK && changed) status = colmap_find_image(database, name, 0, &image);
    if (status == HS_OK) status = check_size(database, &image, features);
    if (status == HS_OK) status = renew_features(database, &image, blobs);
    return status == HS_OK ? colmap_renew_origin(database, image.image_id, features) : status;
  }
  status = insert_image(database, name, &wanted, image_id);
  if (status == HS_OK) status = drop_features(database, *image_id, true);
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

static hs_status enter_rows(hs_colmap_database *database, const hs_colmap_camera *camera, const colmap_rows *rows) {
  const char *fault = camera ? colmap_camera_fault(camera) : NULL;
  if (fault) return colmap_fail(database, HS_ERR_ARGUMENT, "%s", fault);
  if (rows->count > (size_t)sqlite3_limit(database->sqlite, SQLITE_LIMIT_LENGTH, -1) / HS_DESCRIPTOR_LENGTH)
    return colmap_fail(database, HS_ERR_LIMIT, "%zu features of one image are more than SQLite can hold", rows->count);
  return colmap_enter(database);
}

hs_status colmap_add_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                          colmap_rows *rows, uint32_t *image_id) {
  const hs_features known = {
      .count = rows->count, .image_width = rows->width, .image_height = rows->height, .origin = rows->origin};
  int64_t number = 0;
  hs_status status = enter_rows(database, camera, rows);
  if (status != HS_OK) return status;
  status = colmap_leave(database, colmap_add_image(database, name, camera, rows, &known, &number));
  if (status == HS_OK && image_id) *image_id = (uint32_t)number;
  return status;
}

hs_status colmap_replace_rows(hs_colmap_database *database, const char *name, const hs_colmap_camera *camera,
                              colmap_rows *rows, uint32_t *image_id) {
  const hs_features known = {
      .count = rows->count, .image_width = rows->width, .image_height = rows->height, .origin = rows->origin};
  const int32_t replace = database->options.replace;
  int64_t number = 0;
  hs_colmap_image there;
  hs_colmap_camera renewed;
  hs_status status = enter_rows(database, camera, rows);
  if (status != HS_OK) return status;
  status = colmap_find_image(database, name, 0, &there);
  /* a picture of another size under an existing name gets a camera as a new image does */
  if (status == HS_OK && camera && camera->camera_id == 0 && there.found != 0 && there.camera.width > 0 &&
      (there.camera.width != rows->width || there.camera.height != rows->height)) {
    renewed = *camera;
    if (renewed.tentative == HS_TENTATIVE_CAMERA) renewed.tentative = HS_TENTATIVE_PARAMETERS;
    camera = &renewed;
  }
  database->options.replace = 1;
  if (status == HS_OK) status = colmap_add_image(database, name, camera, rows, &known, &number);
  database->options.replace = replace;
  status = colmap_leave(database, status);
  if (status == HS_OK && image_id) *image_id = (uint32_t)number;
  return status;
}
