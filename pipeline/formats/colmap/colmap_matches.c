/*
 * Matches and verified geometry of image pairs in COLMAP's database: adding them, counting them, and copying them to
 * another database.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/number_tools.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/feature_codec.h"

enum {
  MATRIX_BYTES = 9 * 8,
  QUATERNION_NUMBERS = 4,
  POSE_NUMBERS = 7,
  PAIR_BYTES = COLMAP_PAIR_BYTES,
  PAIR_COLUMNS = 2
};

/* COLMAP's configurations of a two-view geometry. */
typedef enum pair_config {
  CONFIG_DEGENERATE = 1,
  CONFIG_CALIBRATED = 2,
  CONFIG_UNCALIBRATED = 3,
  CONFIG_PLANAR_OR_PANORAMIC = 6,
  CONFIG_WATERMARK = 7
} pair_config;

/* A pair is planar if its homography has more than this share of the other model's inliers. Value of COLMAP. */
static const double planar_share = 0.8;

/* tolerance of two squared lengths that must be 1: of a pose's quaternion and of its direction */
#define POSE_SLACK 1e-6

/* Arguments of a call in the database's form: the image with the lower id comes first. */
typedef struct pair_entry {
  int64_t pair_id;
  size_t count, verified;
  uint8_t *matches; /* [count][2] uint32 */
  uint8_t *inliers; /* [verified][2] uint32 */
  bool has_geometry;
  pair_config config;
  bool has_matrix[3]; /* whether the table has columns for F, E and H */
  uint8_t matrix[3][MATRIX_BYTES];
  bool has_pose;
  /* quaternion w x y z, then translation, from the image with the lower id to the other */
  uint8_t pose[POSE_NUMBERS * 8];
} pair_entry;

/* ------------------------------------------------------------------ geometry in COLMAP's terms */

/* Conversion of coordinates. COLMAP's pixel origin is the corner of the first pixel: x' = T x, where T shifts by half a
   pixel in x and y. */

/* Replaces m = F by T^-T F T^-1. */
static void shift_fundamental(double m[9]) {
  for (int row = 0; row < 3; row++) m[3 * row + 2] -= 0.5 * (m[3 * row] + m[3 * row + 1]);
  for (int column = 0; column < 3; column++) m[6 + column] -= 0.5 * (m[column] + m[3 + column]);
}

/* Replaces m = H by T H T^-1. */
static void shift_homography(double m[9]) {
  for (int row = 0; row < 3; row++) m[3 * row + 2] -= 0.5 * (m[3 * row] + m[3 * row + 1]);
  for (int column = 0; column < 3; column++) {
    m[column] += 0.5 * m[6 + column];
    m[3 + column] += 0.5 * m[6 + column];
  }
}

static void transpose(double m[9]) {
  for (int row = 0; row < 3; row++) {
    for (int column = row + 1; column < 3; column++) {
      const double kept = m[3 * row + column];
      m[3 * row + column] = m[3 * column + row];
      m[3 * column + row] = kept;
    }
  }
}

/* Inverts a homography up to scale: the adjugate, with last element 1 if possible. */
static void invert_homography(double m[9]) {
  double a[9];
  matrix3_adjugate(m, a);
  double largest = 0.0;
  for (int i = 0; i < 9; i++) largest = fmax(largest, fabs(a[i]));
  const double scale = fabs(a[8]) > 1e-12 * largest ? a[8] : largest;
  for (int i = 0; i < 9; i++) m[i] = scale != 0.0 ? a[i] / scale : 0.0;
}

static bool put_matrix(const double m[9], uint8_t out[MATRIX_BYTES]) {
  for (size_t i = 0; i < 9; i++) {
    uint64_t bits;
    if (!isfinite(m[i])) return false;
    memcpy(&bits, &m[i], sizeof bits);
    bytes_put_u64(out + 8 * i, bits);
  }
  return true;
}

/* Computes the unit quaternion (w, x, y, z), w >= 0, of a rotation. Starts with the largest component, for
   precision. */
static void quaternion_of(const double r[9], double q[4]) {
  const double squares[4] = {1.0 + r[0] + r[4] + r[8], 1.0 + r[0] - r[4] - r[8], 1.0 - r[0] + r[4] - r[8],
                             1.0 - r[0] - r[4] + r[8]};
  int largest = 0;
  for (int i = 1; i < 4; i++) largest = squares[i] > squares[largest] ? i : largest;
  const double twice = sqrt(squares[largest]); /* twice the largest component */
  /* [i][j]: 4 times the product of components i and j */
  const double products[4][4] = {{squares[0], r[7] - r[5], r[2] - r[6], r[3] - r[1]},
                                 {r[7] - r[5], squares[1], r[1] + r[3], r[2] + r[6]},
                                 {r[2] - r[6], r[1] + r[3], squares[2], r[5] + r[7]},
                                 {r[3] - r[1], r[2] + r[6], r[5] + r[7], squares[3]}};
  const double sign = products[largest][0] < 0.0 ? -1.0 : 1.0;
  for (int i = 0; i < 4; i++) q[i] = sign * 0.5 * products[largest][i] / twice;
}

/* Converts the pose X_b = R X_a + t, or its inverse if the images are exchanged. False: R is no rotation, or t does not
   have length 1. */
static bool convert_pose(const hs_pose *pose, bool exchanged, pair_entry *entry) {
  double rotation[9], numbers[POSE_NUMBERS], squares = 0.0, length = 0.0;
  memcpy(rotation, pose->rotation, sizeof rotation);
  if (exchanged) transpose(rotation);
  quaternion_of(rotation, numbers);
  for (int row = 0; row < 3; row++) {
    const double *const t = pose->translation, *const r = rotation + 3 * row;
    numbers[QUATERNION_NUMBERS + row] = exchanged ? -(r[0] * t[0] + r[1] * t[1] + r[2] * t[2]) : t[row];
  }
  for (int i = 0; i < QUATERNION_NUMBERS; i++) squares += numbers[i] * numbers[i];
  for (int i = QUATERNION_NUMBERS; i < POSE_NUMBERS; i++) length += numbers[i] * numbers[i];
  if (!(fabs(squares - 1.0) < POSE_SLACK && fabs(length - 1.0) < POSE_SLACK)) return false;
  for (size_t i = 0; i < POSE_NUMBERS; i++) {
    uint64_t bits;
    if (!isfinite(numbers[i])) return false;
    memcpy(&bits, &numbers[i], sizeof bits);
    bytes_put_u64(entry->pose + 8 * i, bits);
  }
  entry->has_pose = true;
  return true;
}

static bool is_found(const hs_geometry *geometry) { return geometry != NULL && geometry->found != 0; }

/* Converts the matrices. False: a matrix is not finite. */
static bool convert_matrices(const hs_colmap_matches *matches, bool exchanged, pair_entry *entry) {
  const hs_geometry *const geometries[3] = {matches->fundamental, matches->essential, matches->homography};
  for (size_t i = 0; i < 3; i++) {
    double m[9];
    if (!is_found(geometries[i])) continue;
    memcpy(m, geometries[i]->matrix, sizeof m);
    if (i == 0) shift_fundamental(m);
    if (i == 2) shift_homography(m);
    if (exchanged && i < 2) transpose(m);
    if (exchanged && i == 2) invert_homography(m);
    if (!put_matrix(m, entry->matrix[i])) return false;
    entry->has_matrix[i] = true;
  }
  return true;
}

static pair_config choose_config(const hs_colmap_matches *matches) {
  if (matches->watermark != 0) return CONFIG_WATERMARK;
  const hs_geometry *epipolar = is_found(matches->essential) ? matches->essential : matches->fundamental;
  if (is_found(matches->homography) && (!is_found(epipolar) || (double)matches->homography->inlier_count >
                                                                   planar_share * (double)epipolar->inlier_count))
    return CONFIG_PLANAR_OR_PANORAMIC;
  if (is_found(matches->essential)) return CONFIG_CALIBRATED;
  return is_found(matches->fundamental) ? CONFIG_UNCALIBRATED : CONFIG_DEGENERATE;
}

/* ---- conversion of the caller's records */

static hs_status check_pairs(hs_colmap_database *database, const hs_colmap_matches *matches) {
  if (!matches) return colmap_fail(database, HS_ERR_ARGUMENT, "matches is null");
  if (matches->count > 0 && !matches->pairs) return colmap_fail(database, HS_ERR_ARGUMENT, "pairs is null");
  if (!RESERVED_IS_CLEAR(matches->reserved))
    return colmap_fail(database, HS_ERR_ARGUMENT, "matches.reserved is set: start with {0}, or use a later library");
  if (matches->pair_stride_bytes != 0 && matches->pair_stride_bytes < PAIR_BYTES) {
    return colmap_fail(database, HS_ERR_ARGUMENT, "pair_stride_bytes is %zu: expected 0, or 8 or more",
                       matches->pair_stride_bytes);
  }
  const bool verified = matches->fundamental != NULL || matches->essential || matches->homography != NULL;
  if (matches->inliers && !verified)
    return colmap_fail(database, HS_ERR_ARGUMENT, "inliers are given without a geometry");
  if (matches->count > (size_t)sqlite3_limit(database->sqlite, SQLITE_LIMIT_LENGTH, -1) / PAIR_BYTES)
    return colmap_fail(database, HS_ERR_LIMIT, "%zu matches of one pair are more than SQLite can hold", matches->count);
  return HS_OK;
}

/* Reads the feature counts of both images. Matches require that both have features. */
static hs_status read_limits(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, int64_t limits[2]) {
  if (image_a == image_b) return colmap_fail(database, HS_ERR_ARGUMENT, "an image cannot be matched with itself");
  hs_status status = colmap_count_once(database, image_a, &limits[0]);
  if (status == HS_OK) status = colmap_count_once(database, image_b, &limits[1]);
  if (status == HS_OK && (limits[0] < 0 || limits[1] < 0)) {
    status = colmap_fail(database, HS_ERR_ARGUMENT, "image %lu has no features",
                         (unsigned long)(limits[0] < 0 ? image_a : image_b));
  }
  return status;
}

static hs_status fill_entry(hs_colmap_database *database, const hs_colmap_matches *matches, const int64_t limits[2],
                            bool exchanged, pair_entry *entry) {
  const size_t stride = matches->pair_stride_bytes != 0 ? matches->pair_stride_bytes : PAIR_BYTES;
  const bool has_inliers = entry->has_geometry && entry->config != CONFIG_DEGENERATE;
  for (size_t i = 0; i < matches->count; i++) {
    uint32_t index[2];
    memcpy(index, (const uint8_t *)matches->pairs + i * stride, sizeof index);
    if ((int64_t)index[0] >= limits[0] || (int64_t)index[1] >= limits[1]) {
      return colmap_fail(database, HS_ERR_ARGUMENT,
                         "match %zu refers to features %lu and %lu, but the images have %lld and %lld features", i,
                         (unsigned long)index[0], (unsigned long)index[1], (long long)limits[0], (long long)limits[1]);
    }
    uint8_t *record = entry->matches + PAIR_BYTES * i;
    bytes_put_u32(record, index[exchanged ? 1 : 0]);
    bytes_put_u32(record + 4, index[exchanged ? 0 : 1]);
    if (has_inliers && (!matches->inliers || matches->inliers[i] != 0)) {
      memcpy(entry->inliers + PAIR_BYTES * entry->verified, record, PAIR_BYTES);
      entry->verified++;
    }
  }
  entry->count = matches->count;
  return HS_OK;
}

static hs_status make_entry(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                            const hs_colmap_matches *matches, pair_entry *entry) {
  const hs_allocator *allocator = database->options.allocator;
  const bool exchanged = image_a > image_b;
  int64_t limits[2];
  hs_status status = read_limits(database, image_a, image_b, limits);
  if (status != HS_OK) return status;
  entry->pair_id = COLMAP_PAIR_BASE * (exchanged ? image_b : image_a) + (exchanged ? image_a : image_b);
  entry->has_geometry = matches->fundamental != NULL || matches->essential || matches->homography != NULL;
  entry->config = choose_config(matches);
  entry->matches = hs_memory_alloc(allocator, matches->count * PAIR_BYTES);
  entry->inliers = hs_memory_alloc(allocator, matches->count * PAIR_BYTES);
  if (!entry->matches || !entry->inliers)
    return colmap_fail(database, HS_ERR_MEMORY, "out of memory for %zu matches", matches->count);
  if (!convert_matrices(matches, exchanged, entry))
    return colmap_fail(database, HS_ERR_ARGUMENT, "a matrix of the geometry is not finite");
  if (matches->pose && (!is_found(matches->essential) || !convert_pose(matches->pose, exchanged, entry)))
    return colmap_fail(
        database, HS_ERR_ARGUMENT,
        "the pose of the geometry is not a rotation and a direction of length 1, or there is no essential matrix");
  return fill_entry(database, matches, limits, exchanged, entry);
}

/* ------------------------------------------------------------------ into the tables */

/* Binds pair_id, rows, cols and data to the first four parameters. */
static int bind_list(sqlite3_stmt *statement, int64_t pair_id, size_t rows, const uint8_t *data) {
  int code = sqlite3_bind_int64(statement, 1, pair_id);
  code |= sqlite3_bind_int64(statement, 2, (int64_t)rows);
  code |= sqlite3_bind_int(statement, 3, PAIR_COLUMNS);
  return code | sqlite3_bind_blob64(statement, 4, data, rows * PAIR_BYTES, SQLITE_STATIC);
}

static hs_status insert_matches(hs_colmap_database *database, const pair_entry *entry) {
  sqlite3_stmt *statement;
  hs_status status =
      colmap_prepare(database, "INSERT INTO matches(pair_id, rows, cols, data) VALUES(?, ?, ?, ?)", &statement);
  if (status == HS_OK)
    status = colmap_step(database, statement, bind_list(statement, entry->pair_id, entry->count, entry->matches), NULL);
  colmap_done(database, statement);
  return status;
}

static hs_status insert_geometry(hs_colmap_database *database, const pair_entry *entry) {
  static const char *const insert[] = {
      "INSERT INTO two_view_geometries(pair_id, rows, cols, data, config) VALUES(?, ?, ?, ?, ?)",
      "INSERT INTO two_view_geometries(pair_id, rows, cols, data, config, F, E, H) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
      "INSERT INTO two_view_geometries(pair_id, rows, cols, data, config, F, E, H, qvec, tvec)"
      " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  const bool has_matrices = database->schema.has_matrices, has_poses = has_matrices && database->schema.has_poses;
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(database, insert[has_poses ? 2 : has_matrices ? 1 : 0], &statement);
  if (status == HS_OK) {
    int code = bind_list(statement, entry->pair_id, entry->verified, entry->inliers);
    code |= sqlite3_bind_int(statement, 5, (int)entry->config);
    for (int i = 0; has_matrices && i < 3; i++)
      if (entry->has_matrix[i])
        code |= sqlite3_bind_blob(statement, 6 + i, entry->matrix[i], MATRIX_BYTES, SQLITE_STATIC);
    if (has_poses && entry->has_pose) {
      code |= sqlite3_bind_blob(statement, 9, entry->pose, QUATERNION_NUMBERS * 8, SQLITE_STATIC);
      code |= sqlite3_bind_blob(statement, 10, entry->pose + QUATERNION_NUMBERS * 8, 3 * 8, SQLITE_STATIC);
    }
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  return status;
}

/* Checks whether a pair has a row, and whether the row has the same list. */
static hs_status compare_row(hs_colmap_database *database, const char *sql, int64_t pair_id, const uint8_t *data,
                             size_t rows, bool *there, bool *same) {
  sqlite3_stmt *statement;
  *there = false;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, pair_id), there);
  *same = false;
  if (status == HS_OK && *there) {
    const void *held = sqlite3_column_blob(statement, 1);
    const size_t size = (size_t)sqlite3_column_bytes(statement, 1);
    *same = sqlite3_column_int64(statement, 0) == (int64_t)rows && size == rows * PAIR_BYTES &&
            (size == 0 || (held && memcmp(held, data, size) == 0));
  }
  colmap_done(database, statement);
  return status;
}

static hs_status refuse(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, const char *what) {
  return colmap_fail(database, HS_ERR_ARGUMENT, "already has other %s of images %lu and %lu", what,
                     (unsigned long)image_a, (unsigned long)image_b);
}

/* Adds the matches, unless the pair already has the same ones. Different matches are replaced, together with the
   geometry that belongs to them, or the call is refused. */
static hs_status settle_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                                const pair_entry *entry) {
  bool there = false, same = false;
  hs_status status =
      compare_row(database, COLMAP_SELECT_MATCHES, entry->pair_id, entry->matches, entry->count, &there, &same);
  if (status != HS_OK || same) return status;
  if (there) {
    if (database->options.replace == 0) return refuse(database, image_a, image_b, "matches");
    status = colmap_query(database, "DELETE FROM matches WHERE pair_id = ?", entry->pair_id, NULL, NULL);
    if (status == HS_OK)
      status = colmap_query(database, "DELETE FROM two_view_geometries WHERE pair_id = ?", entry->pair_id, NULL, NULL);
    if (status == HS_OK) status = colmap_forget_pair(database, entry->pair_id);
  }
  return status == HS_OK ? insert_matches(database, entry) : status;
}

static hs_status settle_geometry(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                                 const pair_entry *entry) {
  bool there = false, same = false;
  hs_status status =
      compare_row(database, COLMAP_SELECT_VERIFIED, entry->pair_id, entry->inliers, entry->verified, &there, &same);
  if (status != HS_OK || !entry->has_geometry) return status;
  if (same) { /* the matches are equal, but the geometry may be of another model */
    int64_t config = 0;
    status = colmap_query(database, "SELECT config FROM two_view_geometries WHERE pair_id = ?", entry->pair_id, &config,
                          NULL);
    if (status != HS_OK) return status;
    same = config == (int64_t)entry->config;
  }
  if (there && database->options.replace == 0)
    return same ? HS_OK : refuse(database, image_a, image_b, "verified matches");
  if (there)
    status = colmap_query(database, "DELETE FROM two_view_geometries WHERE pair_id = ?", entry->pair_id, NULL, NULL);
  if (status == HS_OK) status = colmap_forget_pair(database, entry->pair_id);
  return status == HS_OK ? insert_geometry(database, entry) : status;
}

/* Adds the entry of a pair that has none. If the second row fails, the first is removed: a savepoint would copy each
   page that changes. */
static hs_status add_new(hs_colmap_database *database, const pair_entry *entry) {
  hs_status status = insert_matches(database, entry);
  if (status != HS_OK) return colmap_undo(database, status, NULL, 0);
  if (!entry->has_geometry) return HS_OK;
  status = colmap_forget_pair(database, entry->pair_id);
  if (status == HS_OK) status = insert_geometry(database, entry);
  return status == HS_OK ? status
                         : colmap_undo(database, status, "DELETE FROM matches WHERE pair_id = ?", entry->pair_id);
}

/* Adds the entry of a pair that may have one. */
static hs_status add_again(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, const pair_entry *entry) {
  hs_status status = colmap_save(database);
  if (status != HS_OK) return status;
  status = colmap_take_pair_back(database, entry->pair_id);
  if (status == HS_OK) status = settle_matches(database, image_a, image_b, entry);
  if (status == HS_OK) status = settle_geometry(database, image_a, image_b, entry);
  return colmap_leave(database, status);
}

static hs_status add_entry(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, const pair_entry *entry) {
  bool has_rows = true;
  hs_status status = HS_OK;
  if (!database->schema.has_doubtful) status = colmap_has_pair(database, entry->pair_id, &has_rows);
  if (status != HS_OK) return colmap_undo(database, status, NULL, 0);
  status = has_rows ? add_again(database, image_a, image_b, entry) : add_new(database, entry);
  if (status != HS_OK) database->has_highest = false;
  if (entry->pair_id > database->highest_pair) database->highest_pair = entry->pair_id;
  return status;
}

hs_status hs_colmap_add_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                                const hs_colmap_matches *matches) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status == HS_OK) status = check_pairs(database, matches);
  const bool is_open = status == HS_OK && database->in_transaction;
  const bool has_counts = is_open && database->has_counts, has_highest = is_open && database->has_highest;
  if (status == HS_OK) status = colmap_enter_unsaved(database);
  if (status != HS_OK) return status;
  database->has_counts = has_counts;
  database->has_highest = has_highest;
  pair_entry entry = {0};
  status = make_entry(database, image_a, image_b, matches, &entry);
  status = status == HS_OK ? add_entry(database, image_a, image_b, &entry) : colmap_undo(database, status, NULL, 0);
  hs_memory_release(database->options.allocator, entry.matches);
  hs_memory_release(database->options.allocator, entry.inliers);
  return status;
}

/* ------------------------------------------------------------------ copying */

/* Number of values in the columns of a geometry. */
enum { MATRIX_NUMBERS = 9, VECTOR_NUMBERS = 3, NUMBER_BYTES = 8 };

typedef enum pair_column { COLUMN_F, COLUMN_E, COLUMN_H, COLUMN_QVEC, COLUMN_TVEC, GEOMETRY_COLUMNS } pair_column;

static const int column_numbers[GEOMETRY_COLUMNS] = {MATRIX_NUMBERS, MATRIX_NUMBERS, MATRIX_NUMBERS, QUATERNION_NUMBERS,
                                                     VECTOR_NUMBERS};
static const char *const column_names[GEOMETRY_COLUMNS] = {"F", "E", "H", "qvec", "tvec"};
static const char *const write_column[GEOMETRY_COLUMNS] = {"UPDATE two_view_geometries SET F = ? WHERE pair_id = ?",
                                                           "UPDATE two_view_geometries SET E = ? WHERE pair_id = ?",
                                                           "UPDATE two_view_geometries SET H = ? WHERE pair_id = ?",
                                                           "UPDATE two_view_geometries SET qvec = ? WHERE pair_id = ?",
                                                           "UPDATE two_view_geometries SET tvec = ? WHERE pair_id = ?"};

/* A list of matches; null: the entry does not exist. */
typedef struct copied_list {
  uint8_t *bytes;
  size_t rows;
  bool is_there;
} copied_list;

/* Entries of a pair in the form in which the target stores them. */
typedef struct pair_copy {
  copied_list matches, verified;
  int config;
  bool has_column[GEOMETRY_COLUMNS];
  double column[GEOMETRY_COLUMNS][MATRIX_NUMBERS];
} pair_copy;

/* ------------------------------------------------------------------ reading */

static void exchange_list(copied_list *list) {
  for (size_t i = 0; i < list->rows; i++) {
    uint8_t *record = list->bytes + COLMAP_PAIR_BYTES * i, kept[4];
    memcpy(kept, record, sizeof kept);
    memcpy(record, record + 4, sizeof kept);
    memcpy(record + 4, kept, sizeof kept);
  }
}

/* Reads a list. limits: feature counts of the images, which indices must not reach, in the source's order. */
static hs_status read_list(hs_colmap_database *source, const char *sql, int64_t pair_id, const int64_t limits[2],
                           copied_list *list) {
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(source, sql, &statement);
  if (status == HS_OK)
    status = colmap_step(source, statement, sqlite3_bind_int64(statement, 1, pair_id), &list->is_there);
  if (status == HS_OK && list->is_there) {
    const uint8_t *bytes;
    int64_t largest[2] = {-1, -1};
    const bool is_list = colmap_pair_bytes(statement, &bytes, &list->rows);
    const size_t size = list->rows * COLMAP_PAIR_BYTES;
    colmap_pair_largest(bytes, list->rows, largest);
    if (!is_list) {
      status = colmap_fail(source, HS_ERR_FORMAT, "the matches of pair %lld are damaged", (long long)pair_id);
    } else if (largest[0] >= limits[0] || largest[1] >= limits[1]) {
      status = colmap_fail(
          source, HS_ERR_FORMAT,
          "the matches of pair %lld are of features up to %lld and %lld: its images have %lld and %lld",
          (long long)pair_id, (long long)largest[0], (long long)largest[1], (long long)limits[0], (long long)limits[1]);
    } else {
      list->bytes = hs_memory_alloc(source->options.allocator, size);
      if (!list->bytes) status = colmap_fail(source, HS_ERR_MEMORY, "out of memory for %zu matches", list->rows);
      if (list->bytes && size > 0) memcpy(list->bytes, bytes, size);
    }
  }
  colmap_done(source, statement);
  return status;
}

/* Reads a column of numbers. A null column, or one of another size, is left out. */
static hs_status read_numbers(hs_colmap_database *source, const char *table, pair_column column, int64_t pair_id,
                              pair_copy *copy) {
  char sql[96];
  sqlite3_stmt *statement;
  bool has_row = false;
  snprintf(sql, sizeof sql, "SELECT %s FROM %s WHERE pair_id = ?", column_names[column], table);
  hs_status status = colmap_prepare(source, sql, &statement);
  if (status == HS_OK) status = colmap_step(source, statement, sqlite3_bind_int64(statement, 1, pair_id), &has_row);
  if (status == HS_OK && has_row) {
    const uint8_t *bytes = sqlite3_column_blob(statement, 0);
    copy->has_column[column] = bytes && sqlite3_column_bytes(statement, 0) == column_numbers[column] * NUMBER_BYTES;
    for (int i = 0; copy->has_column[column] && i < column_numbers[column]; i++) {
      const uint64_t bits = bytes_get_u64(bytes + NUMBER_BYTES * i);
      memcpy(&copy->column[column][i], &bits, sizeof bits);
    }
  }
  colmap_done(source, statement);
  return status;
}

/* ---- swapped images */

/* Inverts a matrix. False: the inverse is not finite. */
static bool invert(double m[MATRIX_NUMBERS]) {
  double adjugate[MATRIX_NUMBERS];
  matrix3_adjugate(m, adjugate);
  const double determinant = m[0] * adjugate[0] + m[1] * adjugate[3] + m[2] * adjugate[6];
  bool is_finite = determinant != 0.0;
  for (int i = 0; i < MATRIX_NUMBERS && is_finite; i++) {
    m[i] = adjugate[i] / determinant;
    is_finite = isfinite(m[i]);
  }
  return is_finite;
}

/* Inverts x' = R x + t to x = R^T x' - R^T t. The quaternion is (w, x, y, z), of length 1. */
static void invert_pose(double q[QUATERNION_NUMBERS], double t[VECTOR_NUMBERS]) {
  for (int i = 1; i < QUATERNION_NUMBERS; i++) q[i] = -q[i];
  const double w = q[0], *v = q + 1;
  /* R t = t + 2 v x (v x t + w t) */
  const double c[3] = {v[1] * t[2] - v[2] * t[1] + w * t[0], v[2] * t[0] - v[0] * t[2] + w * t[1],
                       v[0] * t[1] - v[1] * t[0] + w * t[2]};
  const double turned[3] = {t[0] + 2.0 * (v[1] * c[2] - v[2] * c[1]), t[1] + 2.0 * (v[2] * c[0] - v[0] * c[2]),
                            t[2] + 2.0 * (v[0] * c[1] - v[1] * c[0])};
  for (int i = 0; i < VECTOR_NUMBERS; i++) t[i] = -turned[i];
}

static void exchange(pair_copy *copy) {
  exchange_list(&copy->matches);
  exchange_list(&copy->verified);
  transpose(copy->column[COLUMN_F]);
  transpose(copy->column[COLUMN_E]);
  if (!invert(copy->column[COLUMN_H])) copy->has_column[COLUMN_H] = false;
  invert_pose(copy->column[COLUMN_QVEC], copy->column[COLUMN_TVEC]);
}

/* Finds the table with a pair's geometry. A geometry that was set aside is copied as it was before, because tracks in
   the target may support it. */
static hs_status find_geometry(hs_colmap_database *source, int64_t pair_id, const char **table) {
  static const char sql[] = "SELECT 1 FROM hartsift_doubtful_pairs d WHERE d.pair_id = ? AND " COLMAP_IS_SET_ASIDE;
  bool is_aside = false;
  hs_status status = HS_OK;
  if (source->schema.has_doubtful) status = colmap_query(source, sql, pair_id, NULL, &is_aside);
  *table = is_aside ? "hartsift_doubtful_pairs" : "two_view_geometries";
  return status;
}

static hs_status read_pair(hs_colmap_database *source, const uint32_t from[2], pair_copy *copy) {
  const int64_t pair_id = colmap_pair_number(from[0], from[1]);
  const bool exchanged = from[0] > from[1];
  const char *table = "two_view_geometries";
  char sql[96];
  int64_t limits[2] = {0, 0}, config = 0;
  hs_status status = colmap_count_keypoints(source, from[exchanged ? 1 : 0], &limits[0]);
  if (status == HS_OK) status = colmap_count_keypoints(source, from[exchanged ? 0 : 1], &limits[1]);
  if (status == HS_OK) status = read_list(source, COLMAP_SELECT_MATCHES, pair_id, limits, &copy->matches);
  if (status == HS_OK) status = find_geometry(source, pair_id, &table);
  snprintf(sql, sizeof sql, "SELECT rows, data FROM %s WHERE pair_id = ?", table);
  if (status == HS_OK) status = read_list(source, sql, pair_id, limits, &copy->verified);
  snprintf(sql, sizeof sql, "SELECT config FROM %s WHERE pair_id = ?", table);
  if (status == HS_OK && copy->verified.is_there) status = colmap_query(source, sql, pair_id, &config, NULL);
  copy->config = (int)config;
  for (int i = 0; status == HS_OK && copy->verified.is_there && i < GEOMETRY_COLUMNS; i++)
    if (i <= COLUMN_H ? source->schema.has_matrices : source->schema.has_poses)
      status = read_numbers(source, table, (pair_column)i, pair_id, copy);
  if (!copy->has_column[COLUMN_QVEC] || !copy->has_column[COLUMN_TVEC])
    copy->has_column[COLUMN_QVEC] = copy->has_column[COLUMN_TVEC] = false;
  return status;
}

/* ------------------------------------------------------------------ writing */

/* Compares a list with the target's list. *is_there: they are equal. Otherwise the target's list is removed, or the
   call is refused. */
static hs_status settle_list(hs_colmap_database *database, const char *select, const char *const *drops,
                             int64_t pair_id, const copied_list *list, bool *is_there) {
  sqlite3_stmt *statement;
  bool has_row = false;
  hs_status status = colmap_prepare(database, select, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, pair_id), &has_row);
  *is_there = false;
  if (status == HS_OK && has_row) {
    const uint8_t *bytes;
    size_t rows;
    *is_there = colmap_pair_bytes(statement, &bytes, &rows) && rows == list->rows &&
                (rows == 0 || memcmp(bytes, list->bytes, rows * COLMAP_PAIR_BYTES) == 0);
  }
  colmap_done(database, statement);
  if (status != HS_OK || !has_row || *is_there) return status;
  if (database->options.replace == 0)
    return colmap_fail(
        database, HS_ERR_ARGUMENT,
        "has other matches of images %lld and %lld already; with the option replace (--replace) they are "
        "overwritten",
        (long long)(pair_id / COLMAP_PAIR_BASE), (long long)(pair_id % COLMAP_PAIR_BASE));
  for (; status == HS_OK && *drops; drops++) status = colmap_query(database, *drops, pair_id, NULL, NULL);
  return status == HS_OK ? colmap_forget_pair(database, pair_id) : status;
}

static hs_status insert_list(hs_colmap_database *database, const char *sql, int64_t pair_id, const copied_list *list,
                             int config) {
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_int64(statement, 1, pair_id);
    code |= sqlite3_bind_int64(statement, 2, (int64_t)list->rows);
    code |= sqlite3_bind_blob64(statement, 3, list->bytes, list->rows * COLMAP_PAIR_BYTES, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(statement) > 3) code |= sqlite3_bind_int(statement, 4, config);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  return status;
}

static hs_status write_numbers(hs_colmap_database *database, pair_column column, int64_t pair_id,
                               const pair_copy *copy) {
  uint8_t bytes[MATRIX_NUMBERS * NUMBER_BYTES];
  sqlite3_stmt *statement;
  for (int i = 0; i < column_numbers[column]; i++) {
    uint64_t bits;
    memcpy(&bits, &copy->column[column][i], sizeof bits);
    bytes_put_u64(bytes + NUMBER_BYTES * i, bits);
  }
  hs_status status = colmap_prepare(database, write_column[column], &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_blob(statement, 1, bytes, column_numbers[column] * NUMBER_BYTES, SQLITE_STATIC);
    code |= sqlite3_bind_int64(statement, 2, pair_id);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  return status;
}

/* Writes a pair. *has_written: true if the verified matches were added, false if the target already had them. */
static hs_status write_pair(hs_colmap_database *database, int64_t pair_id, const pair_copy *copy, bool *has_written) {
  static const char drop_matches[] = "DELETE FROM matches WHERE pair_id = ?";
  static const char drop_verified[] = "DELETE FROM two_view_geometries WHERE pair_id = ?";
  static const char *const of_matches[] = {drop_matches, drop_verified, NULL}, *const of_verified[] = {drop_verified,
                                                                                                       NULL};
  bool is_there = false;
  *has_written = false;
  hs_status status = colmap_take_pair_back(database, pair_id);
  if (status == HS_OK && copy->matches.is_there) {
    status = settle_list(database, COLMAP_SELECT_MATCHES, of_matches, pair_id, &copy->matches, &is_there);
    if (status == HS_OK && !is_there)
      status = insert_list(database, "INSERT INTO matches(pair_id, rows, cols, data) VALUES(?, ?, 2, ?)", pair_id,
                           &copy->matches, 0);
  }
  if (status != HS_OK || !copy->verified.is_there) return status;
  status = settle_list(database, COLMAP_SELECT_VERIFIED, of_verified, pair_id, &copy->verified, &is_there);
  if (status != HS_OK || is_there) return status;
  *has_written = true;
  status =
      insert_list(database, "INSERT INTO two_view_geometries(pair_id, rows, cols, data, config) VALUES(?, ?, 2, ?, ?)",
                  pair_id, &copy->verified, copy->config);
  for (int i = 0; status == HS_OK && i < GEOMETRY_COLUMNS; i++)
    if (copy->has_column[i] && (i <= COLUMN_H ? database->schema.has_matrices : database->schema.has_poses))
      status = write_numbers(database, (pair_column)i, pair_id, copy);
  return status;
}

hs_status colmap_copy_pair(hs_colmap_database *database, const uint32_t to[2], hs_colmap_database *source,
                           const uint32_t from[2]) {
  pair_copy copy = {.config = 0};
  hs_status status = colmap_enter_reading(database);
  (void)colmap_enter_reading(source);
  if (status == HS_OK) {
    status = read_pair(source, from, &copy);
    if (status != HS_OK) hs_message_set(database->message, sizeof database->message, "%s", source->message);
  }
  if (status == HS_OK) status = colmap_enter(database);
  if (status == HS_OK) {
    if ((from[0] > from[1]) != (to[0] > to[1])) exchange(&copy);
    bool has_written;
    status = write_pair(database, colmap_pair_number(to[0], to[1]), &copy, &has_written);
    if (status == HS_OK && has_written)
      status = colmap_copy_first_pass(database, to, source, colmap_pair_number(from[0], from[1]));
    status = colmap_leave(database, status);
  }
  hs_memory_release(source->options.allocator, copy.matches.bytes);
  hs_memory_release(source->options.allocator, copy.verified.bytes);
  return status;
}
