/*
 * Positions of images in the tables of every version of COLMAP, and camera models.
 */
#include <unistd.h>

#include "tests/support/test.h"

#include "tests/support/colmap_fixture.h"
#include "tests/support/colmap_tables.h"

TEST(test_camera_models) {
  static const struct {
    const char *name;
    int32_t model, parameters, focal_lengths;
    double last;
  } models[] = {{"SIMPLE_PINHOLE", 0, 3, 1, 60.0}, {"PINHOLE", 1, 4, 2, 60.0},         {"SIMPLE_RADIAL", 2, 4, 1, 0.0},
                {"OPENCV", 4, 8, 2, 0.0},          {"FULL_OPENCV", 6, 12, 2, 0.0},     {"FOV", 7, 5, 2, 0.01},
                {"FISHEYE", 15, 4, 2, 60.0},       {"EQUIRECTANGULAR", 17, 2, 0, 120}, {"EUCM", 16, 6, 2, 1.0}};
  hs_colmap_camera camera;
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
    assert_int_equal(hs_colmap_model_of_name(models[i].name), models[i].model);
    assert_int_equal(hs_colmap_camera_init_model(&camera, models[i].model, 200, 120, 321.0), HS_OK);
    assert_int_equal(camera.model, models[i].model);
    assert_int_equal(camera.parameter_count, models[i].parameters);
    assert_int_equal(camera.prior_focal_length, models[i].focal_lengths > 0);
    for (int32_t k = 0; k < models[i].focal_lengths; k++) assert_true(camera.parameters[k] == 321.0);
    assert_true(camera.parameters[models[i].parameters - 1] == models[i].last);
    assert_int_equal(hs_colmap_camera_init_model(&camera, models[i].model, 200, 120, 0.0), HS_OK);
    assert_int_equal(camera.prior_focal_length, 0);
    if (models[i].focal_lengths > 0) assert_true(camera.parameters[0] == 240.0);
  }
  assert_int_equal(hs_colmap_model_of_name("opencv"), -1);
  assert_int_equal(hs_colmap_model_of_name(NULL), -1);
  assert_int_equal(hs_colmap_camera_init_model(&camera, -1, 200, 120, 0.0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_camera_init_model(&camera, 18, 200, 120, 0.0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_camera_init_model(NULL, 0, 200, 120, 0.0), HS_ERR_ARGUMENT);
}

#if HARTSIFT_HAVE_SQLITE

static const hs_colmap_position somewhere = {.coordinates = {-33.8586, 151.2140, 12.5}};
static const hs_colmap_position elsewhere = {.is_cartesian = 1, .coordinates = {1000.0, -2000.0, 3.25}};

static void assert_position(hs_colmap_database *database, uint32_t image, const hs_colmap_position *expected) {
  hs_colmap_position read;
  memset(&read, 0xAA, sizeof read);
  assert_int_equal(hs_colmap_read_position(database, image, &read), HS_OK);
  assert_int_equal(read.found, expected != NULL);
  if (!expected) return;
  assert_int_equal(read.is_cartesian, expected->is_cartesian);
  assert_memory_equal(read.coordinates, expected->coordinates, sizeof read.coordinates);
}

/* Sets positions, reads them, replaces them, and reads them after the database is opened again. */
static void check_positions(const colmap_fixture *f) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.jpg", &f->features, 1);
  colmap_fixture_add(database, "b.jpg", &f->others, 2);
  assert_position(database, 1, NULL);
  assert_int_equal(hs_colmap_set_position(database, 2, &elsewhere), HS_OK);
  assert_int_equal(hs_colmap_set_position(database, 2, &somewhere), HS_OK);
  assert_position(database, 1, NULL);
  assert_position(database, 2, &somewhere);
  colmap_fixture_finish(database);
  database = colmap_fixture_open(f, 0, 0);
  assert_position(database, 1, NULL);
  assert_position(database, 2, &somewhere);
}

TEST_ON_DATABASE(test_new_database) {
  assert_int_equal(unlink(f->path), 0);
  check_positions(f);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM pose_priors WHERE image_id = 2"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT image_id FROM images WHERE prior_tx = -33.8586"
                                              " AND prior_ty = 151.214 AND prior_tz = 12.5 AND prior_qw IS NULL"),
                   2);
}

TEST_ON_DATABASE(test_every_version) {
  static const uint8_t unknown[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
  for (int version = 0; version < COLMAP_VERSIONS; version++) {
    assert_int_equal(unlink(f->path), 0);
    colmap_tables_make(f->path, (colmap_version)version);
    check_positions(f);
    if (version == COLMAP_3_8) continue;
    /* COLMAP would take a missing covariance for an exact position. */
    size_t size;
    unsigned char *covariance = colmap_tables_blob(f->path, "SELECT position_covariance FROM pose_priors", &size);
    assert_int_equal(size, 72);
    for (size_t i = 0; i < size; i += 8) assert_memory_equal(covariance + i, unknown, 8);
    free(covariance);
  }
  /* Counts the last position, joined by the sensor that recorded it. */
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM pose_priors JOIN images ON corr_data_id = image_id"
                                              " AND corr_sensor_id = camera_id WHERE corr_sensor_type = 0"
                                              " AND length(gravity) = 24 AND coordinate_system = 0"),
                   1);
}

/* A row that COLMAP wrote for an image stays, except for its position. */
TEST_ON_DATABASE(test_rows_of_colmap) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.jpg", &f->features, 1);
  colmap_fixture_finish(database);
  colmap_tables_run(f->path, "INSERT INTO pose_priors VALUES(9, 1, 1, 0, NULL, NULL, x'0102', -1)");
  database = colmap_fixture_open(f, 0, 0);
  assert_position(database, 1, NULL);
  assert_int_equal(hs_colmap_set_position(database, 1, &elsewhere), HS_OK);
  assert_position(database, 1, &elsewhere);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM pose_priors WHERE pose_prior_id = 9"
                                              " AND gravity = x'0102' AND coordinate_system = 1"),
                   1);
}

/* Impossible positions count as missing, whatever their source. */
TEST_ON_DATABASE(test_damaged_positions) {
  static const char *const damages[] = {
      "UPDATE pose_priors SET position = zeroblob(23)",
      "UPDATE pose_priors SET position = x'000000000000f87f' || zeroblob(16)",
      "UPDATE pose_priors SET coordinate_system = 7",
      /* a latitude of 124 degrees */
      "UPDATE pose_priors SET position = x'0000000000005f40' || zeroblob(16), coordinate_system = 0",
  };
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.jpg", &f->features, 1);
  assert_int_equal(hs_colmap_set_position(database, 1, &somewhere), HS_OK);
  colmap_fixture_finish(database);
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    colmap_tables_run(f->path, damages[i]);
    database = colmap_fixture_open(f, 0, 0);
    assert_position(database, 1, NULL);
    hs_colmap_close(database);
  }
}

TEST_ON_DATABASE(test_refused) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.jpg", &f->features, 1);
  hs_colmap_position wrong[] = {somewhere, somewhere, somewhere, somewhere, somewhere};
  wrong[0].coordinates[0] = 90.5;
  wrong[1].coordinates[1] = -181.0;
  wrong[2].coordinates[2] = (double)NAN;
  wrong[3].is_cartesian = 2;
  wrong[4].reserved[0] = 1;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_int_equal(hs_colmap_set_position(database, 1, &wrong[i]), HS_ERR_ARGUMENT);
  hs_colmap_position read;
  assert_int_equal(hs_colmap_set_position(database, 2, &somewhere), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_read_position(database, 2, &read), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_set_position(database, 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_read_position(database, 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_read_position(NULL, 1, &read), HS_ERR_ARGUMENT);
  assert_position(database, 1, NULL);
  colmap_fixture_finish(database);
  colmap_tables_run(f->path, "DROP TABLE pose_priors; CREATE TABLE pose_priors(other INTEGER)");
  database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(hs_colmap_set_position(database, 1, &somewhere), HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(hs_colmap_last_error(database), "no place for positions"));
  assert_position(database, 1, NULL);
}

TEST_ON_DATABASE(test_cameras_of_images) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  hs_colmap_camera camera;
  assert_int_equal(hs_colmap_camera_init_model(&camera, 17, 640, 480, 0.0), HS_OK);
  assert_int_equal(hs_colmap_add_image(database, "whole.jpg", &camera, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_camera_init_model(&camera, 4, 640, 480, 500.0), HS_OK);
  camera.parameters[1] = 0.0;
  assert_int_equal(hs_colmap_add_image(database, "b.jpg", &camera, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "focal length"));
  camera.parameter_count = 7;
  assert_int_equal(hs_colmap_add_image(database, "b.jpg", &camera, &f->features, NULL), HS_ERR_ARGUMENT);
}

#else

TEST(test_without_sqlite) { skip_because("built without SQLite"); }

#endif
