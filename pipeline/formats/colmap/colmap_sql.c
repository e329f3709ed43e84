/* Statements on COLMAP's database, and how a failure of one is told. */
#include "pipeline/base/message.h"
#include "pipeline/formats/colmap/colmap_internal.h"

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
  case SQLITE_ERROR: /* such as a table that went missing since opening */
  case SQLITE_CONSTRAINT:
  case SQLITE_MISMATCH:
  case SQLITE_SCHEMA:
    return HS_ERR_UNSUPPORTED;
  default:
    return HS_ERR_IO;
  }
}

hs_status colmap_fail_sqlite(hs_colmap_database *database, const char *what) {
  const int code = sqlite3_errcode(database->sqlite);
  const char *more = (code & 0xff) == SQLITE_BUSY ? " by another program" : "";
  return colmap_fail(database, status_of_sqlite(code), "cannot %s: %s%s", what, sqlite3_errmsg(database->sqlite), more);
}

hs_status colmap_run(hs_colmap_database *database, const char *sql) {
  if (sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK) return HS_OK;
  return colmap_fail_sqlite(database, "work on the database");
}

hs_status colmap_prepare(hs_colmap_database *database, const char *sql, sqlite3_stmt **statement) {
  *statement = NULL;
  if (sqlite3_prepare_v2(database->sqlite, sql, -1, statement, NULL) == SQLITE_OK) return HS_OK;
  return colmap_fail_sqlite(database, "work on the database");
}

hs_status colmap_step(hs_colmap_database *database, sqlite3_stmt *statement, int code, bool *has_row) {
  if (code != SQLITE_OK) return colmap_fail_sqlite(database, "bind a value");
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
  (void)sqlite3_finalize(statement);
  return status;
}
