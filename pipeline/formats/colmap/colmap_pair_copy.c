/*
 * Entries of pairs copied from one COLMAP database to another.
 */
#include <stdio.h>
#include <string.h>

#include "pipeline/base/matrix3.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/byte_order.h"

/* Numbers in the columns of a geometry. */
enum { MATRIX_NUMBERS = 9, QUATERNION_NUMBERS = 4, VECTOR_NUMBERS = 3, NUMBER_BYTES = 8 };

typedef enum pair_column { COLUMN_F, COLUMN_E, COLUMN_H, COLUMN_QVEC, COLUMN_TVEC, PAIR_COLUMNS } pair_column;

static const int column_numbers[PAIR_COLUMNS] = {MATRIX_NUMBERS, MATRIX_NUMBERS, MATRIX_NUMBERS, QUATERNION_NUMBERS,
                                                 VECTOR_NUMBERS};
static const char *const column_names[PAIR_COLUMNS] = {"F", "E", "H", "qvec", "tvec"};
static const char *const write_column[PAIR_COLUMNS] = {"UPDATE two_view_geometries SET F = ? WHERE pair_id = ?",
                                                       "UPDATE two_view_geometries SET E = ? WHERE pair_id = ?",
                                                       "UPDATE two_view_geometries SET H = ? WHERE pair_id = ?",
                                                       "UPDATE two_view_geometries SET qvec = ? WHERE pair_id = ?",
                                                       "UPDATE two_view_geometries SET tvec = ? WHERE pair_id = ?"};

/* A list of matches: null without an entry. */
typedef struct copied_list {
  uint8_t *bytes;
  size_t rows;
  bool is_there;
} copied_list;

/* The entries of a pair as the target will have them. */
typedef struct pair_copy {
  copied_list matches, verified;
  int config;
  bool has_column[PAIR_COLUMNS];
  double column[PAIR_COLUMNS][MATRIX_NUMBERS];
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

/* limits: of the indices, in the order of the source. */
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
      if (!list->bytes) status = colmap_fail(source, HS_ERR_MEMORY, "no memory for %zu matches", list->rows);
      if (list->bytes && size > 0) memcpy(list->bytes, bytes, size);
    }
  }
  colmap_done(source, statement);
  return status;
}

/* Columns of another size are left out, as those that are null. */
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

/* ------------------------------------------------------------------ the other order of images */

static void transpose(double m[MATRIX_NUMBERS]) {
  for (int row = 0; row < 3; row++) {
    for (int column = row + 1; column < 3; column++) {
      const double kept = m[3 * row + column];
      m[3 * row + column] = m[3 * column + row];
      m[3 * column + row] = kept;
    }
  }
}

/* False: it has no inverse. */
static bool invert(double m[MATRIX_NUMBERS]) {
  double adjugate[MATRIX_NUMBERS];
  matrix3_adjugate(m, adjugate);
  const double determinant = m[0] * adjugate[0] + m[1] * adjugate[3] + m[2] * adjugate[6];
  for (int i = 0; i < MATRIX_NUMBERS && determinant != 0.0; i++) m[i] = adjugate[i] / determinant;
  return determinant != 0.0;
}

/* From x' = R x + t to x = R^T x' - R^T t; the quaternion is (w, x, y, z), of length 1. */
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

/* Where a pair's geometry is. One that was set aside is copied as it was: what confirms it may be in the target. */
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
  for (int i = 0; status == HS_OK && copy->verified.is_there && i < PAIR_COLUMNS; i++)
    if (i <= COLUMN_H ? source->schema.has_matrices : source->schema.has_poses)
      status = read_numbers(source, table, (pair_column)i, pair_id, copy);
  if (!copy->has_column[COLUMN_QVEC] || !copy->has_column[COLUMN_TVEC])
    copy->has_column[COLUMN_QVEC] = copy->has_column[COLUMN_TVEC] = false;
  return status;
}

/* ------------------------------------------------------------------ writing */

/* *is_there: the target has the list already. Another one is removed, or refused. */
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

/* *has_written: the target got the verified matches, and did not have them already. */
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
  for (int i = 0; status == HS_OK && i < PAIR_COLUMNS; i++)
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
