/* Statements on COLMAP's database, and how a failure of one is told. */
#include <stdio.h>
#include <string.h>

#include "pipeline/base/message.h"
#include "pipeline/formats/colmap/colmap_internal.h"

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
  char more[COLMAP_REASON_BYTES] = "";
  const int system_code = (code & 0xff) == SQLITE_IOERR ? sqlite3_system_errno(database->sqlite) : 0;
  if ((code & 0xff) == SQLITE_BUSY) snprintf(more, sizeof more, " by another program");
  if (system_code != 0)
    snprintf(more, sizeof more, " (%s)", strerror(system_code)); /* "disk I/O error" alone tells nothing */
  return colmap_fail(database, status_of_sqlite(code), "cannot %s: %s%s", what, sqlite3_errmsg(database->sqlite), more);
}

hs_status colmap_run(hs_colmap_database *database, const char *sql) {
  if (sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK) return HS_OK;
  return colmap_fail_sqlite(database, "work on the database");
}

/* The cache's entry of a statement, or one that is free; null: it is full. */
static colmap_statement *find_statement(hs_colmap_database *database, const char *sql) {
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
  if (sqlite3_prepare_v3(database->sqlite, sql, -1, entry ? SQLITE_PREPARE_PERSISTENT : 0, statement, NULL) !=
      SQLITE_OK)
    return colmap_fail_sqlite(database, "work on the database");
  if (entry) *entry = (colmap_statement){*statement, true};
  return HS_OK;
}

void colmap_done(hs_colmap_database *database, sqlite3_stmt *statement) {
  for (size_t i = 0; statement && i < COLMAP_STATEMENTS; i++) {
    if (database->statements[i].statement != statement) continue;
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement); /* they point to memory of the caller's */
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
