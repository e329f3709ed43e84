/*
 * Makes databases for tests; see colmap_tables.h.
 */
#include "tests/support/colmap_tables.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#if HARTSIFT_HAVE_SQLITE

#  include <sqlite3.h>

#  define CAMERAS                                                                                                      \
    "CREATE TABLE cameras(camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL,"               \
    " width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);"
#  define IMAGES(more)                                                                                                 \
    "CREATE TABLE images(image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE,"              \
    " camera_id INTEGER NOT NULL" more ", CHECK(image_id >= 0 AND image_id < 2147483647));"
#  define LISTS(table, key, more)                                                                                      \
    "CREATE TABLE " table "(" key " INTEGER PRIMARY KEY NOT NULL" more                                                 \
    ", rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB);"
#  define GEOMETRIES(more)                                                                                             \
    "CREATE TABLE two_view_geometries(pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL,"                    \
    " cols INTEGER NOT NULL, data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB, qvec BLOB, tvec BLOB" more    \
    ");"
#  define FRAMES                                                                                                       \
    "CREATE TABLE rigs(rig_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, ref_sensor_id INTEGER NOT NULL,"             \
    " ref_sensor_type INTEGER NOT NULL);"                                                                              \
    "CREATE TABLE rig_sensors(rig_id INTEGER NOT NULL, sensor_id INTEGER NOT NULL, sensor_type INTEGER NOT NULL,"      \
    " sensor_from_rig BLOB);"                                                                                          \
    "CREATE TABLE frames(frame_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, rig_id INTEGER NOT NULL);"               \
    "CREATE TABLE frame_data(frame_id INTEGER NOT NULL, data_id INTEGER NOT NULL, sensor_id INTEGER NOT NULL,"         \
    " sensor_type INTEGER NOT NULL);"                                                                                  \
    "CREATE UNIQUE INDEX frame_sensor_assignment ON frame_data(data_id, sensor_type);"
#  define PRIORS                                                                                                       \
    "CREATE TABLE pose_priors(image_id INTEGER PRIMARY KEY NOT NULL, position BLOB,"                                   \
    " coordinate_system INTEGER NOT NULL, position_covariance BLOB);"
#  define PRIORS_OF_DATA                                                                                               \
    "CREATE TABLE pose_priors(pose_prior_id INTEGER PRIMARY KEY NOT NULL, corr_data_id INTEGER NOT NULL,"              \
    " corr_sensor_id INTEGER NOT NULL, corr_sensor_type INTEGER NOT NULL, position BLOB, position_covariance BLOB,"    \
    " gravity BLOB, coordinate_system INTEGER NOT NULL);"                                                              \
    "CREATE UNIQUE INDEX pose_prior_data_assignment ON pose_priors(corr_data_id, corr_sensor_id, corr_sensor_type);"

static const char *const tables[COLMAP_VERSIONS] = {
    CAMERAS IMAGES(", prior_qw REAL, prior_tx REAL, prior_ty REAL, prior_tz REAL") LISTS("keypoints", "image_id", "")
        LISTS("descriptors", "image_id", "") LISTS("matches", "pair_id", "")
            GEOMETRIES("") "PRAGMA user_version = 3800;",
    CAMERAS IMAGES("") LISTS("keypoints", "image_id", "") LISTS("descriptors", "image_id", "")
        LISTS("matches", "pair_id", "") GEOMETRIES("") PRIORS "PRAGMA user_version = 3900;",
    CAMERAS IMAGES("") LISTS("keypoints", "image_id", "") LISTS("descriptors", "image_id", "")
        LISTS("matches", "pair_id", "") GEOMETRIES("") PRIORS FRAMES "PRAGMA user_version = 3120;",
    CAMERAS IMAGES("") LISTS("keypoints", "image_id", "") LISTS("descriptors", "image_id", ", type INTEGER NOT NULL")
        LISTS("matches", "pair_id", "") GEOMETRIES(", camera1 BLOB, camera2 BLOB") PRIORS_OF_DATA FRAMES
    "PRAGMA user_version = 4020100;",
};

static sqlite3 *open_database(const char *path) {
  sqlite3 *database = NULL;
  assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
  return database;
}

void colmap_tables_run(const char *path, const char *sql) {
  sqlite3 *database = open_database(path);
  assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

void colmap_tables_make(const char *path, colmap_version version) { colmap_tables_run(path, tables[version]); }

int64_t colmap_tables_ask(const char *path, const char *sql) {
  sqlite3 *database = open_database(path);
  sqlite3_stmt *statement = NULL;
  assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
  const int64_t value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
  sqlite3_finalize(statement);
  assert_int_equal(sqlite3_close(database), SQLITE_OK);
  return value;
}

unsigned char *colmap_tables_blob(const char *path, const char *sql, size_t *size) {
  sqlite3 *database = open_database(path);
  sqlite3_stmt *statement = NULL;
  unsigned char *copy = NULL;
  *size = 0;
  assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
  if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_BLOB) {
    const void *bytes = sqlite3_column_blob(statement, 0);
    *size = (size_t)sqlite3_column_bytes(statement, 0);
    copy = malloc(*size + 1);
    assert_non_null(copy);
    if (*size > 0) memcpy(copy, bytes, *size);
  }
  sqlite3_finalize(statement);
  assert_int_equal(sqlite3_close(database), SQLITE_OK);
  return copy;
}

#else

void colmap_tables_make(const char *path, colmap_version version) {
  (void)path, (void)version;
  skip_because("built without SQLite");
}

void colmap_tables_run(const char *path, const char *sql) {
  (void)path, (void)sql;
  skip_because("built without SQLite");
}

int64_t colmap_tables_ask(const char *path, const char *sql) {
  (void)path, (void)sql;
  skip_because("built without SQLite");
  return -1;
}

unsigned char *colmap_tables_blob(const char *path, const char *sql, size_t *size) {
  (void)path, (void)sql;
  *size = 0;
  skip_because("built without SQLite");
  return NULL;
}

#endif
