/*
 * Positions of images in COLMAP's database. Versions up to 3.8 have columns in the table images. Later versions have a
 * table pose_priors, first with a row per image, then per sensor record; they convert the columns to that table.
 */
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/formats/colmap/colmap_internal.h"
#include "pipeline/formats/common/feature_codec.h"

/* COLMAP's coordinate systems. */
enum { SYSTEM_WGS84 = 0, SYSTEM_CARTESIAN = 1 };
enum { NUMBER_BYTES = 8, COORDINATES = 3, COVARIANCES = 9 };

/* COLMAP's value for an unknown number (NaN). A missing value would be read as 0. */
static const uint64_t unknown_bits = UINT64_C(0x7ff8000000000000);

static void put_unknown(uint8_t *bytes, int count) {
  for (int i = 0; i < count; i++) bytes_put_u64(bytes + NUMBER_BYTES * i, unknown_bits);
}

/* ------------------------------------------------------------------ writing */

/* Runs a statement. Its first parameters are position, coordinate system and image, its last two are unknown values. */
static hs_status run_with_position(hs_colmap_database *database, const char *sql, uint32_t image_id,
                                   const hs_colmap_position *position) {
  uint8_t coordinates_blob[COORDINATES * NUMBER_BYTES], covariance[COVARIANCES * NUMBER_BYTES],
      gravity[sizeof coordinates_blob];
  sqlite3_stmt *statement;
  for (int i = 0; i < COORDINATES; i++) {
    uint64_t bits;
    memcpy(&bits, &position->coordinates[i], sizeof bits);
    bytes_put_u64(coordinates_blob + NUMBER_BYTES * i, bits);
  }
  put_unknown(covariance, COVARIANCES);
  put_unknown(gravity, COORDINATES);
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status != HS_OK) return status;
  int code = sqlite3_bind_blob(statement, 1, coordinates_blob, sizeof coordinates_blob, SQLITE_STATIC);
  code |= sqlite3_bind_int(statement, 2, position->is_cartesian != 0 ? SYSTEM_CARTESIAN : SYSTEM_WGS84);
  code |= sqlite3_bind_int64(statement, 3, image_id);
  const int parameters = sqlite3_bind_parameter_count(statement);
  if (parameters > 3) code |= sqlite3_bind_blob(statement, 4, covariance, sizeof covariance, SQLITE_STATIC);
  if (parameters > 4) code |= sqlite3_bind_blob(statement, 5, gravity, sizeof gravity, SQLITE_STATIC);
  status = colmap_step(database, statement, code, NULL);
  colmap_done(database, statement);
  return status;
}

/* Sets a row of pose_priors. An existing row keeps its other columns, such as the direction of gravity. */
static hs_status set_prior(hs_colmap_database *database, uint32_t image_id, const hs_colmap_position *position) {
  const bool by_image = database->schema.priors == COLMAP_PRIORS_BY_IMAGE;
  const char *update = by_image ? "UPDATE pose_priors SET position = ?1, coordinate_system = ?2 WHERE image_id = ?3"
                                : "UPDATE pose_priors SET position = ?1, coordinate_system = ?2"
                                  " WHERE corr_data_id = ?3 AND corr_sensor_type = 0";
  const char *insert = by_image
                           ? "INSERT INTO pose_priors(position, coordinate_system, image_id, position_covariance)"
                             " VALUES(?1, ?2, ?3, ?4)"
                           : "INSERT INTO pose_priors(position, coordinate_system, corr_data_id, position_covariance,"
                             " gravity, corr_sensor_id, corr_sensor_type) SELECT ?1, ?2, ?3, ?4, ?5, camera_id, 0"
                             " FROM images WHERE image_id = ?3";
  const hs_status status = run_with_position(database, update, image_id, position);
  if (status != HS_OK || sqlite3_changes(database->sqlite) > 0) return status;
  return run_with_position(database, insert, image_id, position);
}

static hs_status set_columns(hs_colmap_database *database, uint32_t image_id, const hs_colmap_position *position) {
  sqlite3_stmt *statement;
  hs_status status = colmap_prepare(
      database, "UPDATE images SET prior_tx = ?, prior_ty = ?, prior_tz = ? WHERE image_id = ?", &statement);
  if (status == HS_OK) {
    int code = sqlite3_bind_int64(statement, 4, image_id);
    for (int i = 0; i < COORDINATES; i++) code |= sqlite3_bind_double(statement, i + 1, position->coordinates[i]);
    status = colmap_step(database, statement, code, NULL);
  }
  colmap_done(database, statement);
  return status;
}

static const char *position_fault(const hs_colmap_position *position) {
  const double *at = position->coordinates;
  if (!RESERVED_IS_CLEAR(position->reserved)) return "the position's reserved fields are set: start with {0}";
  if (position->is_cartesian != 0 && position->is_cartesian != 1)
    return "the position's is_cartesian is neither 0 nor 1";
  for (int i = 0; i < COORDINATES; i++)
    if (!isfinite(at[i])) return "a coordinate of the position is not finite";
  if (position->is_cartesian == 0 && !(fabs(at[0]) <= 90.0 && fabs(at[1]) <= 180.0))
    return "the position's latitude is beyond 90 degrees or its longitude beyond 180";
  return NULL;
}

static hs_status set_position(hs_colmap_database *database, uint32_t image_id, const hs_colmap_position *position) {
  const colmap_schema *schema = &database->schema;
  bool found = false;
  hs_status status = colmap_query(database, "SELECT 1 FROM images WHERE image_id = ?", image_id, NULL, &found);
  if (status == HS_OK && !found)
    return colmap_fail(database, HS_ERR_ARGUMENT, "there is no image of the number %lu", (unsigned long)image_id);
  if (status == HS_OK && schema->priors == COLMAP_PRIORS_NONE && !schema->has_prior_columns)
    return colmap_fail(database, HS_ERR_UNSUPPORTED, "this version of COLMAP's tables has no place for positions");
  if (status == HS_OK && schema->priors != COLMAP_PRIORS_NONE) status = set_prior(database, image_id, position);
  return status == HS_OK && schema->has_prior_columns ? set_columns(database, image_id, position) : status;
}

hs_status hs_colmap_set_position(hs_colmap_database *database, uint32_t image_id, const hs_colmap_position *position) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  const char *fault = position ? position_fault(position) : "position is null";
  if (fault) return colmap_fail(database, HS_ERR_ARGUMENT, "%s", fault);
  status = colmap_enter(database);
  return status == HS_OK ? colmap_leave(database, set_position(database, image_id, position)) : status;
}

/* ------------------------------------------------------------------ reading */

/* Reads a row (position, coordinate_system). */
static void get_prior(sqlite3_stmt *statement, hs_colmap_position *position) {
  const uint8_t *bytes = sqlite3_column_blob(statement, 0);
  const int system = sqlite3_column_int(statement, 1);
  if (!bytes || sqlite3_column_bytes(statement, 0) != COORDINATES * NUMBER_BYTES) return;
  if (system != SYSTEM_WGS84 && system != SYSTEM_CARTESIAN) return;
  position->found = 1;
  position->is_cartesian = system == SYSTEM_CARTESIAN;
  for (int i = 0; i < COORDINATES; i++) {
    const uint64_t bits = bytes_get_u64(bytes + NUMBER_BYTES * i);
    memcpy(&position->coordinates[i], &bits, sizeof bits);
  }
}

/* Reads a row of three numbers. */
static void get_columns(sqlite3_stmt *statement, hs_colmap_position *position) {
  position->found = 1;
  for (int i = 0; i < COORDINATES; i++) {
    if (sqlite3_column_type(statement, i) == SQLITE_NULL) position->found = 0;
    position->coordinates[i] = sqlite3_column_double(statement, i);
  }
}

/* Reads a position. Other programs may have written any values: a position that hs_colmap_set_position would refuse
 * counts as none. */
static hs_status get_position(hs_colmap_database *database, const char *sql, uint32_t image_id,
                              void (*get)(sqlite3_stmt *, hs_colmap_position *), hs_colmap_position *position) {
  sqlite3_stmt *statement;
  bool has_row = false;
  hs_status status = colmap_prepare(database, sql, &statement);
  if (status == HS_OK) status = colmap_step(database, statement, sqlite3_bind_int64(statement, 1, image_id), &has_row);
  memset(position, 0, sizeof *position);
  if (status == HS_OK && has_row) get(statement, position);
  if (position->found == 0 || position_fault(position)) memset(position, 0, sizeof *position);
  colmap_done(database, statement);
  return status;
}

hs_status hs_colmap_read_position(hs_colmap_database *database, uint32_t image_id, hs_colmap_position *position) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  bool found = false;
  hs_status status = colmap_enter_reading(database);
  if (status != HS_OK) return status;
  if (!position) return colmap_fail(database, HS_ERR_ARGUMENT, "position is null");
  memset(position, 0, sizeof *position);
  status = colmap_query(database, "SELECT 1 FROM images WHERE image_id = ?", image_id, NULL, &found);
  if (status == HS_OK && !found)
    return colmap_fail(database, HS_ERR_ARGUMENT, "there is no image of the number %lu", (unsigned long)image_id);
  if (status == HS_OK && database->schema.priors != COLMAP_PRIORS_NONE) {
    const char *sql = database->schema.priors == COLMAP_PRIORS_BY_IMAGE
                          ? "SELECT position, coordinate_system FROM pose_priors WHERE image_id = ?"
                          : "SELECT position, coordinate_system FROM pose_priors"
                            " WHERE corr_data_id = ? AND corr_sensor_type = 0";
    status = get_position(database, sql, image_id, get_prior, position);
  }
  if (status != HS_OK || position->found != 0 || !database->schema.has_prior_columns) return status;
  return get_position(database, "SELECT prior_tx, prior_ty, prior_tz FROM images WHERE image_id = ?", image_id,
                      get_columns, position);
}
