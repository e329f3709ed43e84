/*
 * Moves verified pairs that the collection contradicts to a table that COLMAP ignores, from which they can be restored.
 */
#include <stdio.h>
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/feature_codec.h"

static const char create_doubtful[] =
    "CREATE TABLE IF NOT EXISTS hartsift_doubtful_pairs (pair_id INTEGER PRIMARY KEY NOT NULL, reason TEXT NOT NULL,"
    " matches INTEGER NOT NULL, on_tracks INTEGER NOT NULL, supported INTEGER NOT NULL, rows INTEGER NOT NULL,"
    " cols INTEGER NOT NULL, data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB, qvec BLOB, tvec BLOB)";
/* The column `rows` is the number of inliers of the last pass. If another program has replaced these, the number
 * differs, and the row is stale. */
static const char create_guided[] =
    "CREATE TABLE IF NOT EXISTS hartsift_guided (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL,"
    " matches INTEGER NOT NULL, inliers INTEGER NOT NULL)";

/* ------------------------------------------------------------------ listing */

/* The queries use the lengths of lists, which SQLite knows without reading the data. They skip configuration 7
   (watermark), which mappers ignore. */
#define MATCHES_OF_PAIR "CASE WHEN length(m.data) = m.rows * 8 THEN m.rows END"
#define NEXT_VERIFIED(matches, inliers, join)                                                                          \
  "SELECT g.pair_id, g.rows, " matches ", " inliers ", length(g.data) = g.rows * 8 FROM two_view_geometries g"         \
  " LEFT JOIN matches m ON m.pair_id = g.pair_id" join " WHERE g.pair_id > ? AND g.rows > 0 AND g.config <> 7"         \
  " ORDER BY g.pair_id LIMIT 1"

static const char next_verified[] = NEXT_VERIFIED("coalesce(" MATCHES_OF_PAIR ", g.rows)", "NULL", "");
static const char next_verified_guided[] =
    NEXT_VERIFIED("coalesce(f.matches, " MATCHES_OF_PAIR ", g.rows)", "f.inliers",
                  " LEFT JOIN hartsift_guided f ON f.pair_id = g.pair_id AND f.rows = g.rows AND f.inliers BETWEEN 0"
                  " AND f.matches AND f.matches <= 4294967295");

static void take_verified(sqlite3_stmt *statement, colmap_verified_pair *pair) {
  const int64_t stored = sqlite3_column_int64(statement, 1), matches = sqlite3_column_int64(statement, 2);
  const bool is_guided = sqlite3_column_type(statement, 3) != SQLITE_NULL;
  pair->pair_id = sqlite3_column_int64(statement, 0);
  pair->images[0] = (uint32_t)(pair->pair_id / COLMAP_PAIR_BASE);
  pair->images[1] = (uint32_t)(pair->pair_id % COLMAP_PAIR_BASE);
  pair->is_damaged = sqlite3_column_type(statement, 1) != SQLITE_INTEGER || sqlite3_column_int64(statement, 4) == 0 ||
                     pair->pair_id / COLMAP_PAIR_BASE >= COLMAP_PAIR_BASE || pair->images[0] >= pair->images[1];
  if (pair->is_damaged) return;
  pair->stored = (size_t)stored;
  pair->matches = (size_t)matches;
  pair->inliers = is_guided ? (size_t)sqlite3_column_int64(statement, 3) : pair->stored;
}

hs_status colmap_next_verified(hs_colmap_database *database, int64_t after, colmap_verified_pair *pair) {
  sqlite3_stmt *statement;
  bool has_row = false;
  *pair = (colmap_verified_pair){.pair_id = -1};
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  status = colmap_prepare(database, database->schema.has_guided ? next_verified_guided : next_verified, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, after), &has_row);
  if (status == HS_OK && has_row) {
    take_verified(statement, pair);
    /* rows of a damaged file may be out of order, and the caller's loop would not end */
    if (pair->pair_id <= after)
      status = colmap_fail(database, HS_ERR_FORMAT, "pair %lld is damaged", (long long)pair->pair_id);
  }
  colmap_done(database, statement);
  return status;
}

hs_status colmap_count_held_keypoints(hs_colmap_database *database, uint32_t image_id, size_t *count) {
  /* a keypoint has at least two float32 */
  static const char sql[] = "SELECT rows FROM keypoints WHERE image_id = ? AND rows BETWEEN 0 AND length(data) / 8";
  int64_t rows = 0;
  *count = 0;
  hs_status status = colmap_enter_reading(database);
  if (status == HS_OK) status = colmap_query(database, sql, image_id, &rows, NULL);
  if (status == HS_OK && rows > 0 && rows <= INT32_MAX) *count = (size_t)rows;
  return status;
}

hs_status colmap_read_inliers(hs_colmap_database *database, int64_t pair_id, uint32_t *inliers, size_t count) {
  sqlite3_stmt *statement;
  bool has_row = false;
  hs_status status = colmap_enter_reading(database);
  if (status == HS_OK) status = colmap_prepare(database, COLMAP_SELECT_VERIFIED, &statement);
  if (status != HS_OK) return status;
  status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, pair_id), &has_row);
  if (status == HS_OK) {
    const uint8_t *bytes;
    size_t rows;
    if (has_row && colmap_pair_bytes(statement, &bytes, &rows) && rows == count)
      for (size_t i = 0; i < 2 * count; i++) inliers[i] = bytes_get_u32(bytes + 4 * i);
    else
      status =
          colmap_fail(database, HS_ERR_FORMAT, "the verified matches of pair %lld are damaged", (long long)pair_id);
  }
  colmap_done(database, statement);
  return status;
}

/* ------------------------------------------------------------------ setting aside */

/* Runs a statement with integer parameters. */
static hs_status run_with(hs_colmap_database *database, const char *sql, const int64_t *numbers, int count) {
  sqlite3_stmt *statement;
  int code = SQLITE_OK;
  hs_status status = colmap_prepare(database, sql, &statement);
  for (int i = 0; status == HS_OK && i < count; i++) code |= sqlite3_bind_int64(statement, i + 1, numbers[i]);
  if (status == HS_OK) status = colmap_step(database, statement, code, NULL);
  colmap_done(database, statement);
  return status;
}

hs_status colmap_note_first_pass(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, size_t matches,
                                 size_t inliers) {
  const int64_t numbers[] = {colmap_pair_number(image_a, image_b), (int64_t)matches, (int64_t)inliers};
  hs_status status = colmap_enter(database);
  if (status != HS_OK) return status;
  if (!database->schema.has_guided) status = colmap_run(database, create_guided);
  if (status == HS_OK) {
    database->schema.has_guided = true;
    status = run_with(database,
                      "INSERT OR REPLACE INTO hartsift_guided(pair_id, rows, matches, inliers)"
                      " SELECT pair_id, rows, ?2, ?3 FROM two_view_geometries WHERE pair_id = ?1",
                      numbers, 3);
  }
  return colmap_leave(database, status);
}

hs_status colmap_copy_first_pass(hs_colmap_database *database, const uint32_t to[2], hs_colmap_database *source,
                                 int64_t pair_id) {
  static const char sql[] = "SELECT matches, inliers FROM hartsift_guided WHERE pair_id = ?";
  sqlite3_stmt *statement;
  bool has_row = false;
  size_t matches = 0, inliers = 0;
  if (!source->schema.has_guided) return HS_OK;
  hs_status status = colmap_prepare(source, sql, &statement);
  if (status == HS_OK) status = colmap_step(source, statement, sqlite3_bind_int64(statement, 1, pair_id), &has_row);
  if (status == HS_OK && has_row) {
    matches = (size_t)sqlite3_column_int64(statement, 0);
    inliers = (size_t)sqlite3_column_int64(statement, 1);
  }
  colmap_done(source, statement);
  if (status != HS_OK) return colmap_fail(database, status, "%s", source->message);
  return has_row ? colmap_note_first_pass(database, to[0], to[1], matches, inliers) : HS_OK;
}

/* Returns the columns of a geometry in this database, which depend on the version of COLMAP. */
static const char *columns_of(const hs_colmap_database *database) {
  return database->schema.has_poses      ? "rows, cols, data, config, F, E, H, qvec, tvec"
         : database->schema.has_matrices ? "rows, cols, data, config, F, E, H"
                                         : "rows, cols, data, config";
}

/* Copies a pair's row to the table of doubtful pairs. numbers: pair_id, on_tracks, supported. */
static hs_status copy_aside(hs_colmap_database *database, const char *reason, const int64_t numbers[3]) {
  char sql[512];
  const char *const columns = columns_of(database);
  const hs_status status = database->schema.has_doubtful ? HS_OK : colmap_run(database, create_doubtful);
  if (status != HS_OK) return status;
  database->schema.has_doubtful = true;
  snprintf(sql, sizeof sql,
           "INSERT OR REPLACE INTO hartsift_doubtful_pairs(pair_id, reason, matches, on_tracks, supported, %s)"
           " SELECT pair_id, '%s', coalesce((SELECT rows FROM matches WHERE matches.pair_id = ?1), -1), ?2, ?3, %s"
           " FROM two_view_geometries WHERE pair_id = ?1 AND rows > 0",
           columns, reason, columns);
  return run_with(database, sql, numbers, 3);
}

hs_status colmap_set_aside(hs_colmap_database *database, int64_t pair_id, size_t on_tracks, size_t supported) {
  const int64_t numbers[] = {pair_id, (int64_t)on_tracks, (int64_t)supported};
  char sql[512];
  hs_status status = colmap_enter(database);
  if (status != HS_OK) return status;
  status = copy_aside(database, "tracks of sure pairs do not confirm it", numbers);
  if (status == HS_OK) {
    snprintf(sql, sizeof sql,
             "UPDATE two_view_geometries SET rows = 0, data = x'', config = 1%s%s WHERE pair_id = ? AND rows > 0",
             database->schema.has_matrices ? ", F = NULL, E = NULL, H = NULL" : "",
             database->schema.has_poses ? ", qvec = NULL, tvec = NULL" : "");
    status = run_with(database, sql, numbers, 1);
  }
  return colmap_leave(database, status);
}

static hs_status write_inliers(hs_colmap_database *database, int64_t pair_id, const uint32_t *inliers, size_t count) {
  const size_t numbers = 2 * count;
  uint8_t *const bytes = hs_memory_alloc(database->options.allocator, 4 * numbers + 1);
  sqlite3_stmt *statement;
  if (!bytes) return colmap_fail(database, HS_ERR_MEMORY, "out of memory for the inliers of a pair");
  for (size_t i = 0; i < numbers; i++) bytes_put_u32(bytes + 4 * i, inliers[i]);
  hs_status status =
      colmap_prepare(database, "UPDATE two_view_geometries SET rows = ?2, data = ?3 WHERE pair_id = ?1", &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_int64(statement, 1, pair_id);
    code |= sqlite3_bind_int64(statement, 2, (int64_t)count);
    code |= sqlite3_bind_blob64(statement, 3, bytes, 4 * numbers, SQLITE_STATIC);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  hs_memory_release(database->options.allocator, bytes);
  return status;
}

hs_status colmap_leave_inliers(hs_colmap_database *database, int64_t pair_id, const uint32_t *inliers, size_t count) {
  const int64_t numbers[] = {pair_id, (int64_t)count, 0};
  hs_status status = colmap_enter(database);
  if (status != HS_OK) return status;
  status = copy_aside(database, COLMAP_SHORT_TRACKS, numbers);
  if (status == HS_OK) status = write_inliers(database, pair_id, inliers, count);
  return colmap_leave(database, status);
}

/* ---- restoring */

/* Restores geometries. Columns that the table lacks stay unchanged. which: condition on the pairs. */
static hs_status move_back(hs_colmap_database *database, const char *which, const int64_t *numbers, int count) {
  const char *const columns = columns_of(database);
  char sql[1024];
  snprintf(sql, sizeof sql,
           "UPDATE two_view_geometries SET (%s) = (SELECT %s FROM hartsift_doubtful_pairs d"
           " WHERE d.pair_id = two_view_geometries.pair_id)"
           " WHERE pair_id IN (SELECT pair_id FROM hartsift_doubtful_pairs d WHERE " COLMAP_IS_SET_ASIDE "%s)",
           columns, columns, which);
  return run_with(database, sql, numbers, count);
}

hs_status colmap_take_back(hs_colmap_database *database, size_t *count) {
  int64_t found = 0;
  *count = 0;
  hs_status status = colmap_enter(database);
  if (status != HS_OK) return status;
  if (database->schema.has_doubtful) {
    status = colmap_query(database,
                          "SELECT count(*) FROM hartsift_doubtful_pairs d WHERE " COLMAP_IS_SET_ASIDE
                          " AND d.reason <> '" COLMAP_SHORT_TRACKS "'",
                          0, &found, NULL);
    if (status == HS_OK) status = move_back(database, "", NULL, 0);
    if (status == HS_OK) status = colmap_run(database, "DELETE FROM hartsift_doubtful_pairs");
  }
  status = colmap_leave(database, status);
  if (status == HS_OK) *count = (size_t)found;
  return status;
}

hs_status colmap_take_pair_back(hs_colmap_database *database, int64_t pair_id) {
  if (!database->schema.has_doubtful) return HS_OK;
  const hs_status status = move_back(database, " AND d.pair_id = ?", &pair_id, 1);
  return status == HS_OK ? run_with(database, "DELETE FROM hartsift_doubtful_pairs WHERE pair_id = ?", &pair_id, 1)
                         : status;
}
