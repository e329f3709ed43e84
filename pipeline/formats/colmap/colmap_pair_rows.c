/* Entries of image pairs in COLMAP's database: queries, reading, and removal. */
#include <stdio.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/number_tools.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/feature_codec.h"

/* ---- Removal of the pairs of an image whose features are removed. */

/* Pairs in which the image has the lower id have consecutive ids. Pairs in which it has the higher id are deleted one
   by one, for each possible lower id. A scan of the table would read all matches. */
#define DROP_PAIRS(table)                                                                                              \
  {                                                                                                                    \
    "DELETE FROM " table " WHERE pair_id > ?1 * 2147483647 AND pair_id < (?1 + 1) * 2147483647",                       \
        "DELETE FROM " table " WHERE pair_id IN (SELECT image_id * 2147483647 + ?1 FROM images WHERE image_id < ?1)"   \
  }

enum { PAIR_TABLES = 4, DROPS_OF_TABLE = 2 };

static const char *const drop_pairs[PAIR_TABLES][DROPS_OF_TABLE] = {
    DROP_PAIRS("matches"),
    DROP_PAIRS("two_view_geometries"),
    DROP_PAIRS("hartsift_doubtful_pairs"),
    DROP_PAIRS("hartsift_guided"),
};

hs_status colmap_drop_pairs_of(hs_colmap_database *database, int64_t image_id) {
  static const char has_entries[] =
      "SELECT EXISTS (SELECT 1 FROM matches) OR EXISTS (SELECT 1 FROM two_view_geometries)";
  const bool is_there[PAIR_TABLES] = {true, true, database->schema.has_doubtful, database->schema.has_guided};
  int64_t has_any = 0;
  hs_status status = colmap_query(database, has_entries, 0, &has_any, NULL);
  if (has_any == 0) return status;
  for (int table = 0; table < PAIR_TABLES; table++)
    for (int i = 0; status == HS_OK && is_there[table] && i < DROPS_OF_TABLE; i++)
      status = colmap_query(database, drop_pairs[table][i], image_id, NULL, NULL);
  return status;
}

hs_status colmap_forget_pair(hs_colmap_database *database, int64_t pair_id) {
  static const char forget_doubtful[] = "DELETE FROM hartsift_doubtful_pairs WHERE pair_id = ?";
  static const char forget_guided[] = "DELETE FROM hartsift_guided WHERE pair_id = ?";
  hs_status status = HS_OK;
  if (database->schema.has_doubtful) status = colmap_query(database, forget_doubtful, pair_id, NULL, NULL);
  if (status == HS_OK && database->schema.has_guided)
    status = colmap_query(database, forget_guided, pair_id, NULL, NULL);
  return status;
}

/* Finds whether any pair has an image with id image_id or higher. */
static const char find_orphans[] =
    "SELECT EXISTS (SELECT 1 WHERE (EXISTS (SELECT 1 FROM matches) OR EXISTS (SELECT 1 FROM two_view_geometries))"
    " AND (EXISTS (SELECT 1 FROM images WHERE"
    " EXISTS (SELECT 1 FROM matches WHERE pair_id >= images.image_id * 2147483647 + ?1"
    " AND pair_id < (images.image_id + 1) * 2147483647)"
    " OR EXISTS (SELECT 1 FROM two_view_geometries WHERE pair_id >= images.image_id * 2147483647 + ?1"
    " AND pair_id < (images.image_id + 1) * 2147483647))"
    " OR EXISTS (SELECT 1 FROM matches WHERE pair_id > ?1 * 2147483647)"
    " OR EXISTS (SELECT 1 FROM two_view_geometries WHERE pair_id > ?1 * 2147483647)))";

/* Ids of removed images are reused if the sequence of the table was reset. Within a transaction new ids only grow, so
   one check suffices. */
hs_status colmap_drop_orphans_of(hs_colmap_database *database, int64_t image_id) {
  hs_status status = HS_OK;
  if (database->orphans == COLMAP_ORPHANS_UNKNOWN) {
    int64_t found = 0;
    status = colmap_query(database, find_orphans, image_id, &found, NULL);
    if (status == HS_OK) database->orphans = found != 0 ? COLMAP_ORPHANS_SOME : COLMAP_ORPHANS_NONE;
  }
  return status == HS_OK && database->orphans == COLMAP_ORPHANS_SOME ? colmap_drop_pairs_of(database, image_id)
                                                                     : status;
}

/* ---- single pairs */

int64_t colmap_pair_number(uint32_t image_a, uint32_t image_b) {
  const uint32_t low = image_a < image_b ? image_a : image_b, high = image_a < image_b ? image_b : image_a;
  /* an invalid image id would give the id of another pair */
  return high < COLMAP_PAIR_BASE ? COLMAP_PAIR_BASE * low + high : -1;
}

/* ------------------------------------------------------------------ dropping */

hs_status colmap_drop_pair(hs_colmap_database *database, uint32_t image_a, uint32_t image_b) {
  const int64_t pair_id = colmap_pair_number(image_a, image_b);
  hs_status status = colmap_enter(database);
  if (status != HS_OK) return status;
  status = colmap_query(database, "DELETE FROM matches WHERE pair_id = ?", pair_id, NULL, NULL);
  if (status == HS_OK)
    status = colmap_query(database, "DELETE FROM two_view_geometries WHERE pair_id = ?", pair_id, NULL, NULL);
  if (status == HS_OK) status = colmap_forget_pair(database, pair_id);
  return colmap_leave(database, status);
}

/* ------------------------------------------------------------------ looking */

bool colmap_pair_bytes(sqlite3_stmt *statement, const uint8_t **bytes, size_t *rows) {
  const int64_t count = sqlite3_column_int64(statement, 0);
  const int64_t size = sqlite3_column_bytes(statement, 1);
  *bytes = sqlite3_column_blob(statement, 1);
  *rows = 0;
  if (count < 0 || size % COLMAP_PAIR_BYTES != 0 || size / COLMAP_PAIR_BYTES != count || (size > 0 && !*bytes))
    return false;
  *rows = (size_t)count;
  return true;
}

void colmap_pair_largest(const uint8_t *bytes, size_t rows, int64_t largest[2]) {
  uint32_t most[2] = {0, 0};
  for (size_t i = 0; i < rows; i++) {
    const uint32_t one = bytes_get_u32(bytes + COLMAP_PAIR_BYTES * i);
    const uint32_t other = bytes_get_u32(bytes + COLMAP_PAIR_BYTES * i + 4);
    most[0] = one > most[0] ? one : most[0];
    most[1] = other > most[1] ? other : most[1];
  }
  for (int i = 0; i < 2 && rows > 0; i++) largest[i] = most[i] > largest[i] ? most[i] : largest[i];
}

static hs_status look_at_row(hs_colmap_database *database, const char *sql, int64_t pair_id, colmap_pair_state *state,
                             int64_t *count) {
  sqlite3_stmt *statement;
  bool has_row = false;
  *count = -1;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, pair_id), &has_row);
  if (status == HS_OK && has_row) {
    const uint8_t *bytes;
    size_t rows;
    if (colmap_pair_bytes(statement, &bytes, &rows))
      colmap_pair_largest(bytes, rows, state->largest);
    else
      state->is_damaged = true;
    *count = (int64_t)rows;
  }
  colmap_done(database, statement);
  return status;
}

/* Finds the pairs without entries from this one on. A damaged pair_id ends the gap, too. */
static void find_gap(hs_colmap_database *database, int64_t pair_id) {
  int64_t next;
  uint32_t images[2];
  const hs_status status = colmap_next_pair(database, pair_id, &next, images);
  database->message[0] = '\0';
  if (status != HS_OK && status != HS_ERR_FORMAT) return;
  database->gap_first = pair_id;
  database->gap_end = next > pair_id ? next : status == HS_OK ? INT64_MAX : pair_id + 1;
}

hs_status colmap_look_at_pair(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                              colmap_pair_state *state) {
  const int64_t pair_id = colmap_pair_number(image_a, image_b);
  *state = (colmap_pair_state){.matches = -1, .verified = -1, .largest = {-1, -1}};
  hs_status status = colmap_enter_reading(database);
  if (status == HS_OK && database->is_reading && pair_id >= database->gap_first && pair_id < database->gap_end)
    return HS_OK;
  if (status == HS_OK) status = look_at_row(database, COLMAP_SELECT_MATCHES, pair_id, state, &state->matches);
  if (status == HS_OK) status = look_at_row(database, COLMAP_SELECT_VERIFIED, pair_id, state, &state->verified);
  if (status == HS_OK && database->is_reading && state->matches < 0 && state->verified < 0) find_gap(database, pair_id);
  if (image_a > image_b) {
    const int64_t kept = state->largest[0];
    state->largest[0] = state->largest[1];
    state->largest[1] = kept;
  }
  return status;
}

hs_status colmap_next_pair(hs_colmap_database *database, int64_t after, int64_t *pair_id, uint32_t images[2]) {
  static const char sql[] = "SELECT min(pair_id) FROM (SELECT min(pair_id) AS pair_id FROM matches WHERE pair_id > ?1"
                            " UNION ALL SELECT min(pair_id) FROM two_view_geometries WHERE pair_id > ?1)";
  sqlite3_stmt *statement;
  bool has_row = false;
  *pair_id = -1;
  hs_status status = colmap_enter_reading(database);
  if (status == HS_OK) status = colmap_prepare(database, sql, &statement);
  if (status != HS_OK) return status;
  status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, after), &has_row);
  if (status == HS_OK && has_row && sqlite3_column_type(statement, 0) != SQLITE_NULL)
    *pair_id = sqlite3_column_int64(statement, 0);
  colmap_done(database, statement);
  if (status == HS_OK && *pair_id >= 0 && (*pair_id <= after || *pair_id / COLMAP_PAIR_BASE >= COLMAP_PAIR_BASE))
    return colmap_fail(database, HS_ERR_FORMAT, "pair %lld is damaged", (long long)*pair_id);
  images[0] = (uint32_t)(*pair_id / COLMAP_PAIR_BASE);
  images[1] = (uint32_t)(*pair_id % COLMAP_PAIR_BASE);
  return status;
}

/* Counts the rows of a pair's entry; -1: the entry does not exist. what: name of the entry in messages. */
static hs_status count_rows(hs_colmap_database *database, const char *sql, int64_t pair_id, const char *what,
                            int64_t *rows) {
  bool found = false;
  *rows = -1;
  const hs_status status = colmap_query(database, sql, pair_id, rows, &found);
  if (status != HS_OK || !found || *rows >= 0) return status;
  *rows = -1;
  return colmap_fail(database, HS_ERR_FORMAT, "the %s of pair %lld are damaged", what, (long long)pair_id);
}

hs_status hs_colmap_count_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, int64_t *matches,
                                  int64_t *verified) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  const int64_t pair_id = colmap_pair_number(image_a, image_b);
  if (matches) status = count_rows(database, "SELECT rows FROM matches WHERE pair_id = ?", pair_id, "matches", matches);
  if (status == HS_OK && verified)
    status = count_rows(database, "SELECT rows FROM two_view_geometries WHERE pair_id = ?", pair_id, "verified matches",
                        verified);
  return status;
}

hs_status colmap_has_pair(hs_colmap_database *database, int64_t pair_id, bool *has) {
  static const char highest[] = "SELECT max(ifnull((SELECT max(pair_id) FROM matches), -1),"
                                " ifnull((SELECT max(pair_id) FROM two_view_geometries), -1))";
  static const char rows[] = "SELECT EXISTS (SELECT 1 FROM matches WHERE pair_id = ?1)"
                             " OR EXISTS (SELECT 1 FROM two_view_geometries WHERE pair_id = ?1)";
  int64_t found = 0;
  hs_status status = HS_OK;
  if (!database->has_highest) status = colmap_query(database, highest, 0, &database->highest_pair, NULL);
  database->has_highest = status == HS_OK;
  if (status == HS_OK && pair_id <= database->highest_pair)
    status = colmap_query(database, rows, pair_id, &found, NULL);
  *has = found != 0;
  return status;
}

/* ------------------------------------------------------------------ reading */

static hs_status take_matches(hs_colmap_database *database, sqlite3_stmt *statement, bool exchanged,
                              hs_match_pair **matches, size_t *count) {
  const uint8_t *bytes;
  size_t rows, size;
  if (!colmap_pair_bytes(statement, &bytes, &rows)) return HS_ERR_FORMAT;
  hs_match_pair *taken =
      hs_size_mul(rows, sizeof *taken, &size) ? hs_memory_alloc(database->options.allocator, size) : NULL;
  if (!taken) return colmap_fail(database, HS_ERR_MEMORY, "out of memory for %zu matches", rows);
  for (size_t i = 0; i < rows; i++) {
    const uint32_t index[2] = {bytes_get_u32(bytes + COLMAP_PAIR_BYTES * i),
                               bytes_get_u32(bytes + COLMAP_PAIR_BYTES * i + 4)};
    taken[i] = (hs_match_pair){.first = index[exchanged ? 1 : 0], .second = index[exchanged ? 0 : 1]};
  }
  *matches = taken;
  *count = rows;
  return HS_OK;
}

hs_status colmap_read_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, hs_match_pair **matches,
                              size_t *count) {
  sqlite3_stmt *statement;
  bool has_row = false;
  *matches = NULL;
  *count = 0;
  hs_status status = colmap_enter_reading(database);
  if (status == HS_OK) status = colmap_prepare(database, COLMAP_SELECT_MATCHES, &statement);
  if (status != HS_OK) return status;
  status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, colmap_pair_number(image_a, image_b)),
                       &has_row);
  if (status == HS_OK) {
    status = has_row ? take_matches(database, statement, image_a > image_b, matches, count) : HS_ERR_FORMAT;
    if (status == HS_ERR_FORMAT)
      status = colmap_fail(database, HS_ERR_FORMAT, "the matches of images %lu and %lu are %s", (unsigned long)image_a,
                           (unsigned long)image_b, has_row ? "damaged" : "missing");
  }
  colmap_done(database, statement);
  return status;
}

/* ------------------------------------------------------------------ frames */

hs_status colmap_read_frame(hs_colmap_database *database, uint32_t image_id, colmap_frame *frame) {
  static const char sql[] = "SELECT frame_data.frame_id, frame_data.sensor_id, EXISTS (SELECT 1 FROM rig_sensors WHERE"
                            " rig_sensors.rig_id = frames.rig_id AND rig_sensors.sensor_type = 0) FROM frame_data"
                            " JOIN frames ON frames.frame_id = frame_data.frame_id"
                            " WHERE frame_data.data_id = ? AND frame_data.sensor_type = 0";
  sqlite3_stmt *statement;
  bool has_row = false;
  *frame = (colmap_frame){.frame_id = -1};
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK || !database->schema.has_frames) return status;
  status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, image_id), &has_row);
  if (status == HS_OK && has_row)
    *frame = (colmap_frame){sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1),
                            sqlite3_column_int64(statement, 2) != 0};
  colmap_done(database, statement);
  return status;
}

bool colmap_is_lost(const hs_colmap_database *database) { return database->is_broken; }
