/* Rows with large blobs: SQLite gets zeros, and colmap_vfs.c writes the content; see colmap_internal.h, blob_pages.h.
 */
#include <errno.h>
#include <string.h>

#include "pipeline/formats/colmap/blob_pages.h"
#include "pipeline/formats/colmap/colmap_internal.h"

/* True if integers that are 0 have no bytes, as since SQLite 3.3, in format 4 of schemas. A file that has no header yet
   gets that format unless SQLite was built or configured otherwise. */
static bool has_empty_zeros(hs_colmap_database *database) {
  int is_old = 1;
  const int format = colmap_vfs_schema_format(database->sqlite);
  if (format != 0) return format == 4;
  return sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_LEGACY_FILE_FORMAT, -1, &is_old) == SQLITE_OK &&
         is_old == 0 && sqlite3_compileoption_used("DEFAULT_FILE_FORMAT=1") == 0;
}

/* True if the table has exactly the expected columns in their order, the blob last, and nothing else reads the data:
   neither triggers, nor indices, nor constraints. Looks once in a transaction. */
static bool is_usual(hs_colmap_database *database, const colmap_blob_table *table) {
#define COLUMNS_ARE(TABLE, BEFORE)                                                                                     \
  "SELECT (SELECT group_concat(name || ' ' || upper(type) || ' ' || pk || ' ' || hidden, ',') FROM (SELECT * FROM"     \
  " pragma_table_xinfo('" TABLE "') ORDER BY cid)) = 'image_id INTEGER 1 0," BEFORE                                    \
  "rows INTEGER 0 0,cols INTEGER 0 0,data BLOB 0 0' AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE"                 \
  " lower(tbl_name) = '" TABLE "' AND (type <> 'table' OR sql LIKE '%without%rowid%' OR sql LIKE '%check%'))"
  static const char *const sql[2][2] = {
      {COLUMNS_ARE("keypoints", "")},
      {COLUMNS_ARE("descriptors", ""), COLUMNS_ARE("descriptors", "type INTEGER 0 0,")}};
  colmap_shape *shape = &database->shapes[table->number];
  int64_t is_same = 0;
  if (*shape == COLMAP_SHAPE_UNKNOWN) {
    const hs_status status = colmap_query(database, sql[table->number][table->zeros], 0, &is_same, NULL);
    const bool is_as_expected = status == HS_OK && is_same == 1 && has_empty_zeros(database);
    *shape = is_as_expected ? COLMAP_SHAPE_USUAL : COLMAP_SHAPE_OTHER;
  }
  return *shape == COLMAP_SHAPE_USUAL;
}

/* Plans the pages of a blob at the end of the file. False: SQLite gets the content, because the VFS cannot take it, the
   blob is small, or free pages within the file would be used. */
static bool plan(hs_colmap_database *database, const colmap_blob_table *table, size_t before, blob_pages *blob) {
  int64_t free_pages = 1, moves = 1, page_bytes = 0, pages = 0;
  int reserved = -1;
  if (!colmap_vfs_takes_blobs(database->sqlite) || !is_usual(database, table) ||
      colmap_query(database, "PRAGMA freelist_count", 0, &free_pages, NULL) != HS_OK || free_pages != 0 ||
      colmap_query(database, "PRAGMA auto_vacuum", 0, &moves, NULL) != HS_OK || moves != 0 ||
      colmap_query(database, "PRAGMA page_size", 0, &page_bytes, NULL) != HS_OK ||
      colmap_query(database, "PRAGMA page_count", 0, &pages, NULL) != HS_OK ||
      sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved) != SQLITE_OK ||
      reserved < 0)
    return false;
  blob->page_bytes = (uint32_t)page_bytes;
  blob->usable = (uint32_t)(page_bytes - reserved);
  return blob_pages_plan(blob, before, (uint32_t)pages);
}

/* Writes the bytes of the blob that are in the table's page. */
static hs_status fill_local(hs_colmap_database *database, const char *table, int64_t image_id, const uint8_t *bytes,
                            size_t local) {
  sqlite3_blob *open = NULL;
  errno = 0;
  int code = sqlite3_blob_open(database->sqlite, "main", table, "data", image_id, 1, &open);
  if (code == SQLITE_OK) code = sqlite3_blob_write(open, bytes, (int)local, 0);
  const hs_status status = code == SQLITE_OK ? HS_OK : colmap_fail_sqlite(database, "add features");
  (void)sqlite3_blob_close(open);
  return status;
}

hs_status colmap_insert_blob(hs_colmap_database *database, const colmap_blob_table *table, int64_t image_id,
                             uint8_t **bytes, size_t count, const hs_allocator *allocator) {
  sqlite3_stmt *statement;
  blob_pages blob = {.bytes = *bytes, .size = count * table->row_bytes, .allocator = allocator};
  const uint8_t *content = *bytes;
  /* a column that is 0 takes one byte of the record's header */
  const size_t before = blob_pages_before((int64_t)count, table->columns, blob.size) + table->zeros;
  const bool is_taken = plan(database, table, before, &blob);
  hs_status status = colmap_prepare(database, table->insert, &statement);
  if (is_taken) {
    colmap_vfs_take_blob(database->sqlite, &blob);
    database->has_zeros = true;
    *bytes = NULL;
  }
  if (status == HS_OK) {
    int code = sqlite3_bind_int64(statement, 1, image_id);
    code |= sqlite3_bind_int64(statement, 2, (int64_t)count);
    code |= sqlite3_bind_int(statement, 3, table->columns);
    code |= is_taken ? sqlite3_bind_zeroblob64(statement, 4, blob.size)
                     : sqlite3_bind_blob64(statement, 4, content, blob.size, SQLITE_STATIC);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  return is_taken && status == HS_OK ? fill_local(database, table->name, image_id, content, blob.local) : status;
}

void colmap_forget_blobs(hs_colmap_database *database) {
  if (!database->has_zeros) return;
  (void)sqlite3_db_release_memory(database->sqlite);
  colmap_vfs_free_blobs(database->sqlite);
  database->has_zeros = false;
}

hs_status colmap_finish_blobs(hs_colmap_database *database) {
  errno = 0;
  const int code = database->has_zeros ? sqlite3_db_cacheflush(database->sqlite) : SQLITE_OK;
  if (code != SQLITE_OK) return colmap_fail_code(database, code, "work on the database");
  if (!colmap_vfs_lacks_pages(database->sqlite)) return HS_OK;
  return colmap_fail(database, HS_ERR_IO, "SQLite stores features elsewhere than planned");
}

hs_status colmap_fill_blobs(hs_colmap_database *database) {
  if (!database->has_zeros) return HS_OK;
  const hs_status status = colmap_finish_blobs(database);
  if (status == HS_OK) colmap_forget_blobs(database);
  return status;
}
