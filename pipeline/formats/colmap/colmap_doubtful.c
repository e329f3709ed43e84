/*
 * Verified pairs that are set aside because the collection contradicts them: their geometry goes to a table that COLMAP
 * passes over, so that it can be looked up and taken back.
 */
#include <stdio.h>
#include <string.h>

#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/byte_order.h"

/* COLMAP's configuration for a pair without a geometry. */
#define DEGENERATE "1"

static const char create_doubtful[] =
    "CREATE TABLE IF NOT EXISTS hartsift_doubtful_pairs (pair_id INTEGER PRIMARY KEY NOT NULL, reason TEXT NOT NULL,"
    " matches INTEGER NOT NULL, on_tracks INTEGER NOT NULL, supported INTEGER NOT NULL, rows INTEGER NOT NULL,"
    " cols INTEGER NOT NULL, data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB, qvec BLOB, tvec BLOB)";
static const char create_guided[] =
    "CREATE TABLE IF NOT EXISTS hartsift_guided (pair_id INTEGER PRIMARY KEY NOT NULL, matches INTEGER NOT NULL,"
    " inliers INTEGER NOT NULL)";

/* ------------------------------------------------------------------ listing */

static const char next_verified[] =
    "SELECT g.pair_id, g.rows, coalesce(m.rows, g.rows), NULL FROM two_view_geometries g"
    " LEFT JOIN matches m ON m.pair_id = g.pair_id WHERE g.pair_id > ? AND g.rows > 0 ORDER BY g.pair_id LIMIT 1";
static const char next_verified_guided[] =
    "SELECT g.pair_id, g.rows, coalesce(f.matches, m.rows, g.rows), f.inliers FROM two_view_geometries g"
    " LEFT JOIN matches m ON m.pair_id = g.pair_id LEFT JOIN hartsift_guided f ON f.pair_id = g.pair_id"
    " WHERE g.pair_id > ? AND g.rows > 0 ORDER BY g.pair_id LIMIT 1";

hs_status colmap_next_verified(hs_colmap_database *database, int64_t after, colmap_verified_pair *pair) {
  sqlite3_stmt *statement;
  bool has_row = false;
  *pair = (colmap_verified_pair){.pair_id = -1};
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  status = colmap_prepare(database, database->schema.has_guided ? next_verified_guided : next_verified, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, after), &has_row);
  if (status == HS_OK && has_row) {
    const int64_t stored = sqlite3_column_int64(statement, 1), matches = sqlite3_column_int64(statement, 2);
    const bool is_guided = sqlite3_column_type(statement, 3) != SQLITE_NULL;
    const int64_t inliers = is_guided ? sqlite3_column_int64(statement, 3) : stored;
    pair->pair_id = sqlite3_column_int64(statement, 0);
    pair->images[0] = (uint32_t)(pair->pair_id / COLMAP_PAIR_BASE);
    pair->images[1] = (uint32_t)(pair->pair_id % COLMAP_PAIR_BASE);
    pair->stored = (size_t)stored;
    pair->matches = matches > 0 ? (size_t)matches : 0;
    pair->inliers = inliers > 0 ? (size_t)inliers : 0;
    if (pair->pair_id <= after || pair->pair_id / COLMAP_PAIR_BASE >= COLMAP_PAIR_BASE)
      status = colmap_fail(database, HS_ERR_FORMAT, "pair %lld is damaged", (long long)pair->pair_id);
  }
  colmap_done(database, statement);
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

/* Runs a statement of numbers. */
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
    status = run_with(database, "INSERT OR REPLACE INTO hartsift_guided(pair_id, matches, inliers) VALUES(?, ?, ?)",
                      numbers, 3);
  }
  return colmap_leave(database, status);
}

/* The columns that not every version of COLMAP has, as they are read and as they are written. */
static const char *matrices_of(const hs_colmap_database *database) {
  return database->schema.has_poses ? ", F, E, H, qvec, tvec" : database->schema.has_matrices ? ", F, E, H" : "";
}

hs_status colmap_set_aside(hs_colmap_database *database, int64_t pair_id, size_t on_tracks, size_t supported) {
  const int64_t numbers[] = {pair_id, (int64_t)on_tracks, (int64_t)supported};
  const char *const more = matrices_of(database);
  char sql[512];
  hs_status status = colmap_enter(database);
  if (status != HS_OK) return status;
  if (!database->schema.has_doubtful) status = colmap_run(database, create_doubtful);
  if (status == HS_OK) {
    database->schema.has_doubtful = true;
    snprintf(
        sql, sizeof sql,
        "INSERT OR REPLACE INTO hartsift_doubtful_pairs(pair_id, reason, matches, on_tracks, supported, rows, cols,"
        " data, config%s) SELECT pair_id, 'tracks of sure pairs do not confirm it',"
        " (SELECT rows FROM matches WHERE matches.pair_id = ?1), ?2, ?3, rows, cols, data, config%s"
        " FROM two_view_geometries WHERE pair_id = ?1",
        more, more);
    status = run_with(database, sql, numbers, 3);
  }
  if (status == HS_OK) {
    snprintf(sql, sizeof sql,
             "UPDATE two_view_geometries SET rows = 0, data = x'', config = " DEGENERATE "%s%s WHERE pair_id = ?",
             database->schema.has_matrices ? ", F = NULL, E = NULL, H = NULL" : "",
             database->schema.has_poses ? ", qvec = NULL, tvec = NULL" : "");
    status = run_with(database, sql, numbers, 1);
  }
  return colmap_leave(database, status);
}

/* ------------------------------------------------------------------ taking back */

/* What is left of a pair that was set aside, and its matches are still the same in number. */
static const char unchanged[] =
    " FROM hartsift_doubtful_pairs d WHERE EXISTS (SELECT 1 FROM two_view_geometries g WHERE g.pair_id = d.pair_id"
    " AND g.rows = 0 AND g.config = " DEGENERATE ") AND EXISTS (SELECT 1 FROM matches m WHERE m.pair_id = d.pair_id"
    " AND m.rows = d.matches)";

hs_status colmap_take_back(hs_colmap_database *database, size_t *count) {
  char sql[1024];
  int64_t found = 0;
  const char *const more = matrices_of(database);
  *count = 0;
  hs_status status = colmap_enter(database);
  if (status != HS_OK) return status;
  if (database->schema.has_doubtful) {
    snprintf(sql, sizeof sql, "SELECT count(*)%s", unchanged);
    status = colmap_query(database, sql, 0, &found, NULL);
    snprintf(sql, sizeof sql,
             "REPLACE INTO two_view_geometries(pair_id, rows, cols, data, config%s)"
             " SELECT pair_id, rows, cols, data, config%s%s",
             more, more, unchanged);
    if (status == HS_OK) status = colmap_run(database, sql);
    if (status == HS_OK) status = colmap_run(database, "DELETE FROM hartsift_doubtful_pairs");
  }
  status = colmap_leave(database, status);
  if (status == HS_OK) *count = (size_t)found;
  return status;
}

hs_status colmap_forget_pair(hs_colmap_database *database, int64_t pair_id) {
  hs_status status = HS_OK;
  if (database->schema.has_doubtful)
    status = run_with(database, "DELETE FROM hartsift_doubtful_pairs WHERE pair_id = ?", &pair_id, 1);
  if (status == HS_OK && database->schema.has_guided)
    status = run_with(database, "DELETE FROM hartsift_guided WHERE pair_id = ?", &pair_id, 1);
  return status;
}

hs_status colmap_forget_pairs_of(hs_colmap_database *database, int64_t image_id) {
  hs_status status = HS_OK;
  if (database->schema.has_doubtful)
    status = run_with(
        database, "DELETE FROM hartsift_doubtful_pairs WHERE pair_id / 2147483647 = ?1 OR pair_id % 2147483647 = ?1",
        &image_id, 1);
  if (status == HS_OK && database->schema.has_guided)
    status =
        run_with(database, "DELETE FROM hartsift_guided WHERE pair_id / 2147483647 = ?1 OR pair_id % 2147483647 = ?1",
                 &image_id, 1);
  return status;
}
