/*
 * How an image's descriptors were made, in COLMAP's database: its tables have no room for it, so there is a table that
 * COLMAP passes over.
 */
#include <string.h>

#include "pipeline/base/origin.h"
#include "pipeline/formats/colmap/colmap_internal.h"

/* `features` is their number: where another program has replaced them, the row speaks of others. */
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
