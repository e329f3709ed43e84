/* Statements and errors of COLMAP's database, its tables, and the table with the provenance of descriptors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/features.h"
#include "pipeline/base/text.h"
#include "pipeline/formats/colmap/colmap_internal.h"

/* ---- statements and failures */

enum { COLMAP_REASON_BYTES = 128 };

hs_status colmap_fail(hs_colmap_database *database, hs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hs_message_set_about(database->message, sizeof database->message, database->shown_path, format, arguments);
  va_end(arguments);
  return status;
}

static hs_status status_of_sqlite(int code) {
  switch (code & 0xff) {
  case SQLITE_NOMEM:
    return HS_ERR_MEMORY;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return HS_ERR_FORMAT;
  case SQLITE_TOOBIG:
    return HS_ERR_LIMIT;
  case SQLITE_ERROR: /* happens for instance if a table was removed since opening */
  case SQLITE_CONSTRAINT:
  case SQLITE_MISMATCH:
  case SQLITE_SCHEMA:
    return HS_ERR_UNSUPPORTED;
  default:
    return HS_ERR_IO;
  }
}

hs_status colmap_fail_code(hs_colmap_database *database, int code, const char *what) {
  const bool is_kept = (code & 0xff) == (sqlite3_errcode(database->sqlite) & 0xff);
  const char *reason = is_kept ? sqlite3_errmsg(database->sqlite) : sqlite3_errstr(code);
  char more[COLMAP_REASON_BYTES] = "";
  /* SQLite does not keep the system's error of a failed commit; errno was 0 before the call */
  const int failed_call = errno;
  const int kept_code = (code & 0xff) == SQLITE_IOERR ? sqlite3_system_errno(database->sqlite) : 0;
  const int system_code = (code & 0xff) == SQLITE_IOERR && kept_code == 0 ? failed_call : kept_code;
  if ((code & 0xff) == SQLITE_BUSY) snprintf(more, sizeof more, " by another program");
  if ((code & 0xff) == SQLITE_CANTOPEN) snprintf(more, sizeof more, ", or its journal (the name with -journal)");
  if (sqlite3_extended_errcode(database->sqlite) == SQLITE_READONLY_DIRECTORY)
    snprintf(more, sizeof more, ": its folder may not be written to, where SQLite makes a journal");
  if (system_code != 0)
    snprintf(more, sizeof more, " (%s)", strerror(system_code)); /* SQLite's text "disk I/O error" lacks the reason */
  return colmap_fail(database, status_of_sqlite(code), "cannot %s: %s%s", what, reason, more);
}

hs_status colmap_fail_sqlite(hs_colmap_database *database, const char *what) {
  return colmap_fail_code(database, sqlite3_errcode(database->sqlite), what);
}

hs_status colmap_run(hs_colmap_database *database, const char *sql) {
  errno = 0;
  if (sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK) return HS_OK;
  return colmap_fail_sqlite(database, "work on the database");
}

/* Returns the cache entry of a statement, or a free entry; null: the cache is full. */
static colmap_statement *find_statement(hs_colmap_database *database, const char *sql) {
  for (size_t i = 0; i < COLMAP_STATEMENTS && database->statements[i].statement; i++) {
    colmap_statement *entry = &database->statements[i];
    if (entry->sql == sql && strcmp(sqlite3_sql(entry->statement), sql) == 0) return entry;
  }
  for (size_t i = 0; i < COLMAP_STATEMENTS; i++) {
    colmap_statement *entry = &database->statements[i];
    if (!entry->statement || strcmp(sqlite3_sql(entry->statement), sql) == 0) return entry;
  }
  return NULL;
}

hs_status colmap_prepare(hs_colmap_database *database, const char *sql, sqlite3_stmt **statement) {
  colmap_statement *entry = find_statement(database, sql);
  if (entry && entry->is_taken) entry = NULL;
  if (entry && entry->statement) {
    entry->is_taken = true;
    *statement = entry->statement;
    return HS_OK;
  }
  *statement = NULL;
  errno = 0;
  if (sqlite3_prepare_v3(database->sqlite, sql, -1, entry ? SQLITE_PREPARE_PERSISTENT : 0, statement, NULL) !=
      SQLITE_OK)
    return colmap_fail_sqlite(database, "work on the database");
  if (entry) *entry = (colmap_statement){*statement, true, sql};
  return HS_OK;
}

void colmap_done(hs_colmap_database *database, sqlite3_stmt *statement) {
  for (size_t i = 0; statement && i < COLMAP_STATEMENTS; i++) {
    if (database->statements[i].statement != statement) continue;
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement); /* bindings may point to memory of the caller */
    database->statements[i].is_taken = false;
    return;
  }
  (void)sqlite3_finalize(statement);
}

void colmap_drop_statements(hs_colmap_database *database) {
  for (size_t i = 0; i < COLMAP_STATEMENTS; i++) (void)sqlite3_finalize(database->statements[i].statement);
  memset(database->statements, 0, sizeof database->statements);
}

hs_status colmap_step(hs_colmap_database *database, sqlite3_stmt *statement, int code, bool *has_row) {
  if (code != SQLITE_OK) return colmap_fail_sqlite(database, "bind a value");
  errno = 0;
  code = sqlite3_step(statement);
  if (has_row) *has_row = code == SQLITE_ROW;
  if (code == SQLITE_DONE || code == SQLITE_ROW) return HS_OK;
  return colmap_fail_sqlite(database, "read or write");
}

hs_status colmap_query(hs_colmap_database *database, const char *sql, int64_t parameter, int64_t *value, bool *found) {
  sqlite3_stmt *statement;
  bool has_row = false;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) {
    const int code =
        sqlite3_bind_parameter_count(statement) > 0 ? sqlite3_bind_int64(statement, 1, parameter) : SQLITE_OK;
    status = colmap_step(database, statement, code, &has_row);
  }
  if (found) *found = has_row;
  if (value && has_row) *value = sqlite3_column_int64(statement, 0);
  colmap_done(database, statement);
  return status;
}

/* ---- Tables: a new database gets those of COLMAP 3.8; existing tables of any version are checked for the columns
   that this library writes. */

enum { SCHEMA_COLUMNS_MAX = 14 };

typedef struct table_layout {
  const char *table;
  const char *key;                         /* column that must be the rowid, or null */
  const char *columns[SCHEMA_COLUMNS_MAX]; /* required columns; unused entries null */
  const char *extra;                       /* optional column that is filled if it exists, or null */
} table_layout;

static const table_layout common_tables[] = {
    {"cameras", "camera_id", {"camera_id", "model", "width", "height", "params", "prior_focal_length"}, NULL},
    {"images", "image_id", {"image_id", "name", "camera_id"}, NULL},
    {"keypoints", NULL, {"image_id", "rows", "cols", "data"}, NULL},
    {"descriptors", NULL, {"image_id", "rows", "cols", "data"}, "type"},
    {"matches", NULL, {"pair_id", "rows", "cols", "data"}, NULL},
    {"two_view_geometries", NULL, {"pair_id", "rows", "cols", "data", "config"}, NULL},
};
static const table_layout frame_tables[] = {
    {"rigs", "rig_id", {"rig_id", "ref_sensor_id", "ref_sensor_type"}, NULL},
    {"rig_sensors", NULL, {"rig_id", "sensor_id", "sensor_type"}, NULL},
    {"frames", "frame_id", {"frame_id", "rig_id"}, NULL},
    {"frame_data", NULL, {"frame_id", "data_id", "sensor_id", "sensor_type"}, NULL},
};
/* Tables of this library, all optional. */
static const table_layout own_tables[] = {
    {"hartsift_origins",
     "image_id",
     {"image_id", "features", "method_version", "profile", "norm", "exif_orientation"},
     NULL},
    {"hartsift_doubtful_pairs",
     "pair_id",
     {"pair_id", "reason", "matches", "on_tracks", "supported", "rows", "cols", "data", "config", "F", "E", "H", "qvec",
      "tvec"},
     NULL},
    {"hartsift_guided", "pair_id", {"pair_id", "rows", "matches", "inliers"}, NULL},
};
enum {
  COMMON_TABLES = sizeof common_tables / sizeof common_tables[0],
  FRAME_TABLES = sizeof frame_tables / sizeof frame_tables[0],
  OWN_TABLES = sizeof own_tables / sizeof own_tables[0]
};

/* The tables of COLMAP 3.8, plus pose_priors, which 3.8 ignores and later versions use. Later versions add their other
   tables when they open the file. The index on the name is the only one that all versions need. */
static const char create_tables[] =
    "CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL,"
    " width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);"
    "CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE,"
    " camera_id INTEGER NOT NULL, prior_qw REAL, prior_qx REAL, prior_qy REAL, prior_qz REAL,"
    " prior_tx REAL, prior_ty REAL, prior_tz REAL,"
    " CONSTRAINT image_id_check CHECK(image_id >= 0 AND image_id < 2147483647),"
    " FOREIGN KEY(camera_id) REFERENCES cameras(camera_id));"
    "CREATE UNIQUE INDEX index_name ON images(name);"
    "CREATE TABLE pose_priors (image_id INTEGER PRIMARY KEY NOT NULL, position BLOB,"
    " coordinate_system INTEGER NOT NULL, position_covariance BLOB,"
    " FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);"
    "CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,"
    " data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);"
    "CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,"
    " data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);"
    "CREATE TABLE matches (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,"
    " data BLOB);"
    "CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL,"
    " cols INTEGER NOT NULL, data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB, qvec BLOB, tvec BLOB);"
    "PRAGMA user_version = 3800;";

/* ---- detection of the schema */

static hs_status has_table(hs_colmap_database *database, const char *name, bool *there) {
  sqlite3_stmt *statement;
  hs_status status =
      colmap_prepare(database, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", &statement);
  if (status == HS_OK)
    status = colmap_step(database, statement, sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC), there);
  colmap_done(database, statement);
  return status;
}

/* Checks whether a table has a column with this name. */
static hs_status has_column(hs_colmap_database *database, const char *table, const char *column, bool *there) {
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(database, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?", &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    code |= sqlite3_bind_text(statement, 2, column, -1, SQLITE_STATIC);
    status = colmap_step(database, statement, code, there);
  }
  colmap_done(database, statement);
  return status;
}

static bool is_filled(const table_layout *layout, const char *column) {
  for (size_t i = 0; i < SCHEMA_COLUMNS_MAX && layout->columns[i] != NULL; i++)
    if (strcmp(layout->columns[i], column) == 0) return true;
  return layout->extra != NULL && strcmp(layout->extra, column) == 0;
}

/* Checks the columns. Unknown columns are accepted if an insertion may omit them. */
static hs_status check_columns(hs_colmap_database *database, const table_layout *layout) {
  static const char sql[] =
      "SELECT name, \"notnull\" AND dflt_value IS NULL AND pk = 0, pk = 1 AND upper(type) = 'INTEGER'"
      " FROM pragma_table_info(?)";
  sqlite3_stmt *statement;
  bool has_row = true;
  bool key_is_rowid = !layout->key;
  hs_status status = colmap_prepare(database, sql, &statement);
  int code = status == HS_OK ? sqlite3_bind_text(statement, 1, layout->table, -1, SQLITE_STATIC) : SQLITE_OK;
  while (status == HS_OK && has_row) {
    status = colmap_step(database, statement, code, &has_row);
    if (status != HS_OK || !has_row) break;
    const char *name = (const char *)sqlite3_column_text(statement, 0);
    if (!name) {
      status = colmap_fail(database, HS_ERR_MEMORY, "out of memory for the names of its columns");
    } else if (sqlite3_column_int(statement, 1) != 0 && !is_filled(layout, name)) {
      status = colmap_fail(database, HS_ERR_UNSUPPORTED,
                           "its table %s has a column %s that must be filled and is not known: made by a newer COLMAP?",
                           layout->table, name);
    } else if (layout->key && strcmp(layout->key, name) == 0) {
      key_is_rowid = sqlite3_column_int(statement, 2) != 0;
    }
  }
  colmap_done(database, statement);
  if (status == HS_OK && !key_is_rowid) {
    status =
        colmap_fail(database, HS_ERR_UNSUPPORTED, "its table %s is not numbered by %s", layout->table, layout->key);
  }
  return status;
}

static hs_status check_table(hs_colmap_database *database, const table_layout *layout) {
  bool there = false;
  hs_status status = has_table(database, layout->table, &there);
  if (status == HS_OK && !there) {
    status =
        colmap_fail(database, HS_ERR_UNSUPPORTED, "not a known database of COLMAP: it has no table %s", layout->table);
  }
  for (size_t i = 0; status == HS_OK && i < SCHEMA_COLUMNS_MAX && layout->columns[i] != NULL; i++) {
    status = has_column(database, layout->table, layout->columns[i], &there);
    if (status == HS_OK && !there) {
      status =
          colmap_fail(database, HS_ERR_UNSUPPORTED, "not a known database of COLMAP: its table %s has no column %s",
                      layout->table, layout->columns[i]);
    }
  }
  return status == HS_OK ? check_columns(database, layout) : status;
}

/* Checks rigs and frames: all four tables must exist, or none. */
static hs_status check_frames(hs_colmap_database *database) {
  colmap_schema *schema = &database->schema;
  hs_status status = HS_OK;
  schema->has_frames = false;
  for (size_t i = 0; status == HS_OK && i < FRAME_TABLES && !schema->has_frames; i++)
    status = has_table(database, frame_tables[i].table, &schema->has_frames);
  for (size_t i = 0; status == HS_OK && schema->has_frames && i < FRAME_TABLES; i++)
    status = check_table(database, &frame_tables[i]);
  schema->gives_frames = false;
  if (status == HS_OK && schema->has_frames) {
    int64_t gives = 0;
    status = colmap_query(database, "SELECT EXISTS(SELECT 1 FROM frames) OR NOT EXISTS(SELECT 1 FROM images)", 0,
                          &gives, NULL);
    schema->gives_frames = gives != 0;
  }
  return status;
}

static hs_status has_columns(hs_colmap_database *database, const char *table, const char *const *columns, size_t count,
                             bool *there) {
  hs_status status = HS_OK;
  *there = true;
  for (size_t i = 0; status == HS_OK && i < count && *there; i++)
    status = has_column(database, table, columns[i], there);
  return status;
}

/* Detects the version of pose_priors. If the table has unknown columns, it is not used. */
static hs_status find_priors(hs_colmap_database *database) {
  static const char *const by_image[] = {"image_id", "position", "coordinate_system", "position_covariance"};
  static const char *const by_data[] = {"corr_data_id",      "corr_sensor_id",      "corr_sensor_type", "position",
                                        "coordinate_system", "position_covariance", "gravity"};
  static const char *const in_images[] = {"prior_tx", "prior_ty", "prior_tz"};
  bool is_by_image = false, is_by_data = false;
  hs_status status = has_columns(database, "pose_priors", by_image, 4, &is_by_image);
  if (status == HS_OK) status = has_columns(database, "pose_priors", by_data, 7, &is_by_data);
  database->schema.priors = is_by_image  ? COLMAP_PRIORS_BY_IMAGE
                            : is_by_data ? COLMAP_PRIORS_BY_DATA
                                         : COLMAP_PRIORS_NONE;
  return status == HS_OK ? has_columns(database, "images", in_images, 3, &database->schema.has_prior_columns) : status;
}

/* Returns the flag of a table, by its index in own_tables. */
static bool *own_table_flag(colmap_schema *schema, size_t table) {
  bool *const flags[OWN_TABLES] = {&schema->has_origins, &schema->has_doubtful, &schema->has_guided};
  return flags[table];
}

void colmap_schema_find_own_tables(hs_colmap_database *database) {
  char message[COLMAP_MESSAGE_BYTES]; /* message of the failure whose changes are undone */
  memcpy(message, database->message, sizeof message);
  for (size_t i = 0; i < OWN_TABLES; i++) {
    bool *const there = own_table_flag(&database->schema, i);
    if (has_table(database, own_tables[i].table, there) != HS_OK) *there = false;
  }
  memcpy(database->message, message, sizeof message);
}

hs_status colmap_schema_settle(hs_colmap_database *database) {
  colmap_schema *schema = &database->schema;
  bool has_any = false;
  hs_status status = colmap_query(database, "SELECT 1 FROM sqlite_master LIMIT 1", 0, NULL, &has_any);
  if (status != HS_OK) return status;
  if (!has_any) {
    if (database->options.read_only != 0) return colmap_fail(database, HS_ERR_UNSUPPORTED, "the database is empty");
    status = colmap_run(database, create_tables);
  }
  for (size_t i = 0; status == HS_OK && i < COMMON_TABLES; i++) status = check_table(database, &common_tables[i]);
  if (status == HS_OK) status = has_column(database, "descriptors", "type", &schema->has_descriptor_type);
  static const char *const matrices[] = {"F", "E", "H"};
  if (status == HS_OK) status = has_columns(database, "two_view_geometries", matrices, 3, &schema->has_matrices);
  static const char *const poses[] = {"qvec", "tvec"};
  if (status == HS_OK) status = has_columns(database, "two_view_geometries", poses, 2, &schema->has_poses);
  if (status == HS_OK) status = find_priors(database);
  for (size_t i = 0; status == HS_OK && i < OWN_TABLES; i++) {
    bool *const there = own_table_flag(schema, i);
    status = has_table(database, own_tables[i].table, there);
    if (status == HS_OK && *there) status = check_table(database, &own_tables[i]);
  }
  return status == HS_OK ? check_frames(database) : status;
}

/* ---- Provenance of descriptors: COLMAP's tables have no column for it, so an extra table holds it, which COLMAP
   ignores. */

/* The column `features` is the number of features. If another program has replaced these, the number differs, and the
   row is stale. */
static const char create_table[] =
    "CREATE TABLE IF NOT EXISTS hartsift_origins (image_id INTEGER PRIMARY KEY NOT NULL, features INTEGER NOT NULL,"
    " method_version INTEGER NOT NULL, profile TEXT, norm TEXT, exif_orientation INTEGER NOT NULL,"
    " FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE)";

hs_status colmap_write_origin(hs_colmap_database *database, int64_t image_id, const hs_features *features) {
  const hs_origin *origin = &features->origin;
  const bool is_known = origin->method_version > 0;
  if (!is_known && origin->exif_orientation == 0) return HS_OK;
  sqlite3_stmt *statement;
  hs_status status = database->schema.has_origins ? HS_OK : colmap_run(database, create_table);
  if (status != HS_OK) return status;
  database->schema.has_origins = true;
  status = colmap_prepare(database,
                          "INSERT OR REPLACE INTO hartsift_origins(image_id, features, method_version, profile, norm,"
                          " exif_orientation) VALUES(?, ?, ?, ?, ?, ?)",
                          &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_int64(statement, 1, image_id);
    code |= sqlite3_bind_int64(statement, 2, (int64_t)features->count);
    code |= sqlite3_bind_int(statement, 3, origin->method_version);
    if (is_known) code |= sqlite3_bind_text(statement, 4, origin_profile_name(origin->profile), -1, SQLITE_STATIC);
    if (is_known) code |= sqlite3_bind_text(statement, 5, origin_norm_name(origin), -1, SQLITE_STATIC);
    code |= sqlite3_bind_int(statement, 6, origin->exif_orientation);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  return status;
}

hs_status colmap_renew_origin(hs_colmap_database *database, uint32_t image_id, const hs_features *features) {
  hs_features there = {.count = features->count};
  const hs_status status = colmap_read_origin(database, image_id, &there);
  hs_origin wanted = features->origin;
  wanted.layout = HS_LAYOUT_UBC;
  if (status != HS_OK || memcmp(&there.origin, &wanted, sizeof wanted) == 0) return status;
  return colmap_write_origin(database, image_id, features);
}

hs_status colmap_drop_origin(hs_colmap_database *database, int64_t image_id) {
  if (!database->schema.has_origins) return HS_OK;
  return colmap_query(database, "DELETE FROM hartsift_origins WHERE image_id = ?", image_id, NULL, NULL);
}

static int32_t value_of_column(sqlite3_stmt *statement, int column, int32_t (*value_of)(const char *, size_t)) {
  const char *name = (const char *)sqlite3_column_text(statement, column);
  return name ? value_of(name, strlen(name)) : -1;
}

hs_status colmap_read_origin(hs_colmap_database *database, uint32_t image_id, hs_features *features) {
  if (!database->schema.has_origins) return HS_OK;
  sqlite3_stmt *statement;
  bool has_row = false;
  hs_status status = colmap_prepare(database,
                                    "SELECT features, method_version, profile, norm, exif_orientation"
                                    " FROM hartsift_origins WHERE image_id = ?",
                                    &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, image_id), &has_row);
  if (status == HS_OK && has_row && sqlite3_column_int64(statement, 0) == (int64_t)features->count)
    features->origin =
        origin_of_file(sqlite3_column_int64(statement, 1), value_of_column(statement, 2, origin_profile_of_name),
                       value_of_column(statement, 3, origin_norm_of_name), sqlite3_column_int64(statement, 4));
  colmap_done(database, statement);
  return status;
}
