/* Features of COLMAP's database: read into lists, and copied to another database. */
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/colmap/colmap_records.h"

enum { DESCRIPTOR_TYPE_SIFT = 0 };

#define SELECT_KEYPOINTS "SELECT rows, cols, data FROM keypoints WHERE image_id = ?"

/* ------------------------------------------------------------------ reading */

static hs_status damaged(hs_colmap_database *database, uint32_t image_id, const char *what) {
  return colmap_fail(database, HS_ERR_FORMAT, "%s of image %lu are damaged", what, (unsigned long)image_id);
}

/* Reads a row (rows, cols, data). *count: number of features, checked against the size of the data. */
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
  if (count > 0 && !bytes) return colmap_fail(database, HS_ERR_MEMORY, "out of memory for %zu keypoints", count);
  const bool framed = columns == COLMAP_COLUMNS && colmap_rows_are_framed(bytes, count);
  if (features_reserve_framed(features, count, HS_DESCRIPTOR_NONE, framed, database->options.allocator) != HS_OK)
    return colmap_fail(database, HS_ERR_MEMORY, "out of memory for %zu keypoints", count);
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

/* Adds descriptors to a list that already has its keypoints. */
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
  void *memory = hs_memory_alloc(features->allocator, count * HS_DESCRIPTOR_LENGTH);
  if (!memory || (!bytes && count > 0)) {
    hs_memory_release(features->allocator, memory);
    return colmap_fail(database, HS_ERR_MEMORY, "out of memory for %zu descriptors", count);
  }
  if (count > 0) memcpy(memory, bytes, count * HS_DESCRIPTOR_LENGTH);
  features->descriptors = memory;
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

/* Reads the image's size. Fails if the image does not exist. */
static hs_status read_size(hs_colmap_database *database, uint32_t image_id, hs_features *features) {
  hs_colmap_image image;
  hs_status status = colmap_find_image(database, NULL, (int64_t)image_id - 1, &image);
  if (status != HS_OK) return status;
  if (image.found == 0 || image.image_id != image_id)
    return colmap_fail(database, HS_ERR_ARGUMENT, "there is no image of the number %lu", (unsigned long)image_id);
  const bool known = image.camera.width > 0 && image.camera.height > 0;
  features->image_width = known ? image.camera.width : 0;
  features->image_height = known ? image.camera.height : 0;
  return HS_OK;
}

hs_status colmap_read_keypoints(hs_colmap_database *database, uint32_t image_id, hs_features *features) {
  hs_features fresh = {.descriptor_type = HS_DESCRIPTOR_NONE};
  hs_status status = colmap_enter_reading(database);
  if (status == HS_OK) status = colmap_fill_blobs(database);
  if (status == HS_OK) status = read_size(database, image_id, &fresh);
  if (status == HS_OK) status = fill_from(database, SELECT_KEYPOINTS, image_id, fill_keypoints, &fresh);
  if (status != HS_OK) {
    hs_features_free(&fresh);
    return status;
  }
  hs_features_free(features);
  *features = fresh;
  return HS_OK;
}

hs_status hs_colmap_read_features(hs_colmap_database *database, uint32_t image_id, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!features) return colmap_fail(database, HS_ERR_ARGUMENT, "features is null");
  hs_features fresh = {.descriptor_type = HS_DESCRIPTOR_NONE};
  status = colmap_fill_blobs(database);
  if (status == HS_OK) status = read_size(database, image_id, &fresh);
  if (status == HS_OK) status = fill_from(database, SELECT_KEYPOINTS, image_id, fill_keypoints, &fresh);
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

/* A table with one row (rows, cols, data) per image, and its field in hs_colmap_add_image's input. */
typedef struct blob_table {
  const char *sql, *what;
  int64_t columns;
  size_t unit;
} blob_table;

static const blob_table keypoint_table = {SELECT_KEYPOINTS, "the keypoints", COLMAP_COLUMNS, sizeof(float)};
static const blob_table descriptor_table = {"SELECT rows, cols, data FROM descriptors WHERE image_id = ?",
                                            "the descriptors", HS_DESCRIPTOR_LENGTH, 1};

/* Copies the data of a row. *bytes: from `allocator`; null: the row does not exist. */
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
          colmap_fail(source, HS_ERR_MEMORY, "out of memory for %s of image %lu", table->what, (unsigned long)image_id);
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
  hs_status status = colmap_fill_blobs(source);
  if (status == HS_OK)
    status = copy_blob(source, &keypoint_table, image_id, allocator, &blobs->count, &blobs->keypoints);
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
  return colmap_copy_image(database, source, image_id, NULL, new_id);
}

hs_status colmap_copy_image(hs_colmap_database *database, hs_colmap_database *source, uint32_t image_id,
                            const hs_colmap_camera *camera, uint32_t *new_id) {
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!source || source == database)
    return colmap_fail(database, HS_ERR_ARGUMENT, "source is null or the database itself");
  colmap_rows blobs = {.allocator = database->options.allocator};
  hs_colmap_image image = {0};
  int64_t number = 0;
  (void)colmap_enter_reading(source);
  status = colmap_find_image(source, NULL, (int64_t)image_id - 1, &image);
  if (status == HS_OK && (image.found == 0 || image.image_id != image_id))
    status = colmap_fail(source, HS_ERR_ARGUMENT, "there is no image of the number %lu", (unsigned long)image_id);
  if (status == HS_OK) status = copy_blobs(source, image_id, database->options.allocator, &blobs);
  hs_features known = {.count = blobs.count, .image_width = image.camera.width, .image_height = image.camera.height};
  if (status == HS_OK) status = colmap_read_origin(source, image_id, &known);
  const char *fault = status == HS_OK ? colmap_camera_fault(&image.camera) : NULL;
  if (fault) status = colmap_fail(source, HS_ERR_FORMAT, "image %lu: %s", (unsigned long)image_id, fault);
  if (status != HS_OK) hs_message_set(database->message, sizeof database->message, "%s", source->message);
  image.camera.tentative = HS_TENTATIVE_CAMERA;
  if (status == HS_OK) status = colmap_enter(database);
  if (status == HS_OK) {
    status = colmap_add_image(database, image.name, camera ? camera : &image.camera, &blobs, &known, &number);
    status = colmap_leave(database, status);
  }
  colmap_rows_free(&blobs);
  if (status == HS_OK && new_id) *new_id = (uint32_t)number;
  return status;
}
