/*
 * Content of a COLMAP database: keypoints, cameras, images that exist already; and damaged content.
 */

#include "tests/support/test.h"

#include "tests/support/colmap_fixture.h"
#include "tests/support/colmap_tables.h"

#if HARTSIFT_HAVE_SQLITE

static double column_of(const unsigned char *bytes, size_t index) {
  float value;
  memcpy(&value, bytes + 4 * index, sizeof value); /* tests run on little-endian machines only */
  return (double)value;
}

TEST_ON_DATABASE(test_keypoint_columns) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.png", &f->features, 1);
  colmap_fixture_finish(database);
  size_t size = 0;
  unsigned char *bytes = colmap_tables_blob(f->path, "SELECT data FROM keypoints WHERE cols = 6", &size);
  assert_int_equal(size, COLMAP_FIXTURE_FEATURES * 24);
  for (size_t i = 0; i < COLMAP_FIXTURE_FEATURES; i++) {
    const hs_keypoint *k = &f->features.keypoints[i];
    const double s = (double)k->sigma, t = (double)k->orientation;
    const double expected[6] = {(double)k->x + 0.5, (double)k->y + 0.5, s * cos(t),
                                -s * sin(t),        s * sin(t),         s * cos(t)};
    for (size_t c = 0; c < 6; c++)
      assert_true(fabs(column_of(bytes + 24 * i, c) - expected[c]) <= 6e-8 * (1.0 + fabs(expected[c])));
  }
  free(bytes);
}

TEST_ON_DATABASE(test_read_back) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.png", &f->features, 1);
  scoped_features read = {0};
  assert_int_equal(hs_colmap_read_features(database, 1, &read), HS_OK);
  assert_true(feature_maker_consistent(&read));
  assert_int_equal(read.count, COLMAP_FIXTURE_FEATURES);
  assert_int_equal(read.image_width, 640);
  assert_int_equal(read.image_height, 480);
  assert_memory_equal(read.descriptors, f->features.descriptors, COLMAP_FIXTURE_FEATURES * HS_DESCRIPTOR_LENGTH);
  for (size_t i = 0; i < COLMAP_FIXTURE_FEATURES; i++) {
    const hs_keypoint *a = &f->features.keypoints[i], *b = &read.keypoints[i];
    assert_true(fabsf(a->x - b->x) <= 3.1e-5f && fabsf(a->y - b->y) <= 3.1e-5f);
    assert_true(fabsf(a->sigma - b->sigma) <= 2e-7f * a->sigma);
    const double turn = fabs((double)a->orientation - (double)b->orientation);
    assert_true(fmin(turn, 6.283185307179586 - turn) <= 5e-7);
  }
}

TEST_ON_DATABASE(test_lists_without_descriptors_or_features) {
  scoped_features bare = {0}, none = {0}, read = {0};
  feature_maker_fill(&bare, 7, FEATURES_NONE, 3);
  feature_maker_fill(&none, 0, FEATURES_U8, 3);
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "bare.png", &bare, 1);
  colmap_fixture_add(database, "none.png", &none, 2);
  assert_int_equal(hs_colmap_read_features(database, 1, &read), HS_OK);
  assert_int_equal(read.count, 7);
  assert_int_equal(read.descriptor_type, HS_DESCRIPTOR_NONE);
  assert_int_equal(hs_colmap_read_features(database, 2, &read), HS_OK);
  assert_int_equal(read.count, 0);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM descriptors"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT rows FROM keypoints WHERE image_id = 2"), 0);
}

TEST_ON_DATABASE(test_float_descriptors_and_layout) {
  scoped_features floats = {0}, read = {0};
  feature_maker_fill(&floats, 9, FEATURES_UNIT_F32, 5);
  scoped_database *database = NULL;
  const hs_colmap_options options = {.struct_size = sizeof options, .layout = HS_LAYOUT_VLFEAT};
  assert_int_equal(hs_colmap_open(&database, f->path, &options), HS_OK);
  colmap_fixture_add(database, "a.png", &floats, 1);
  assert_int_equal(hs_colmap_read_features(database, 1, &read), HS_OK);
  feature_maker_swap_bins(&floats);
  for (size_t i = 0; i < 9 * HS_DESCRIPTOR_LENGTH; i++) {
    const double value = floor((double)((const float *)floats.descriptors)[i] * 512.0 + 0.5);
    assert_int_equal(((const uint8_t *)read.descriptors)[i], value > 255.0 ? 255 : (int)value);
  }
}

/* ------------------------------------------------------------------ images and cameras */

TEST_ON_DATABASE(test_cameras) {
  hs_colmap_camera camera;
  assert_int_equal(hs_colmap_camera_init(&camera, 640, 480, 0.0), HS_OK);
  assert_int_equal(camera.model, 2);
  assert_true(camera.parameters[0] == 768.0 && camera.parameters[1] == 320.0 && camera.parameters[2] == 240.0);
  assert_int_equal(camera.prior_focal_length, 0);
  assert_int_equal(hs_colmap_camera_init(&camera, 480, 640, 500.0), HS_OK);
  assert_true(camera.parameters[0] == 500.0 && camera.prior_focal_length == 1);
  assert_int_equal(hs_colmap_camera_init(&camera, 0, 640, 0.0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_camera_init(&camera, 640, 480, -1.0), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_camera_init(&camera, 640, 480, (double)NAN), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_camera_init(NULL, 640, 480, 0.0), HS_ERR_ARGUMENT);

  const hs_colmap_camera pinhole = {.model = 1,
                                    .width = 640,
                                    .height = 480,
                                    .prior_focal_length = 1,
                                    .parameter_count = 4,
                                    .parameters = {500, 501, 319, 241}};
  hs_colmap_database *database = colmap_fixture_open(f, 0, 1);
  assert_int_equal(hs_colmap_add_image(database, "a.png", &pinhole, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_add_image(database, "c.png", &pinhole, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_add_image(database, "d.png", NULL, &f->features, NULL), HS_OK);
  hs_colmap_image image;
  assert_int_equal(hs_colmap_find_image(database, "c.png", &image), HS_OK);
  assert_int_equal(image.camera_id, 1);
  assert_memory_equal(&image.camera, &pinhole, sizeof pinhole);
  hs_colmap_camera wrong = pinhole;
  wrong.parameter_count = 3;
  assert_int_equal(hs_colmap_add_image(database, "e.png", &wrong, &f->features, NULL), HS_ERR_ARGUMENT);
  wrong = pinhole;
  wrong.parameters[2] = (double)INFINITY;
  assert_int_equal(hs_colmap_add_image(database, "e.png", &wrong, &f->features, NULL), HS_ERR_ARGUMENT);
  wrong = pinhole;
  wrong.width = 0;
  assert_int_equal(hs_colmap_add_image(database, "e.png", &wrong, &f->features, NULL), HS_ERR_ARGUMENT);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM cameras"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM rigs"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frames"), 4);
}

/* A camera is not reused if it belongs to a rig of another sensor, because the rig's frames have more than one
 * picture. */
TEST_ON_DATABASE(test_camera_of_a_larger_rig) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.png", &f->features, 1);
  colmap_fixture_finish(database);
  colmap_tables_run(f->path, "UPDATE rigs SET ref_sensor_id = 9; INSERT INTO rig_sensors VALUES(1, 1, 0, NULL)");
  database = colmap_fixture_open(f, 0, 1);
  colmap_fixture_add(database, "b.png", &f->features, 2);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT camera_id FROM images WHERE image_id = 2"), 2);
}

static uint32_t camera_of(hs_colmap_database *database, const char *name) {
  hs_colmap_image image;
  assert_int_equal(hs_colmap_find_image(database, name, &image), HS_OK);
  assert_int_equal(image.found, 1);
  return image.camera_id;
}

static hs_status add_with(hs_colmap_database *database, const char *name, const hs_features *features,
                          const hs_colmap_camera *camera) {
  return hs_colmap_add_image(database, name, camera, features, NULL);
}

/* Makes two folders, each with a picture by one camera of a rig. */
static void make_rig(colmap_fixture *f) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, HS_CAMERAS_BY_FOLDER);
  colmap_fixture_add(database, "left/1.png", &f->features, 1);
  colmap_fixture_add(database, "right/1.png", &f->features, 2);
  colmap_fixture_finish(database);
  colmap_tables_run(f->path, "DELETE FROM rigs WHERE rig_id = 2; INSERT INTO rig_sensors VALUES(1, 2, 0, NULL);"
                             "DELETE FROM frames WHERE frame_id = 2; UPDATE frame_data SET frame_id = 1");
}

/* The folder, or a number that the caller gives, decides which camera of a rig took a picture; the camera is never
 * guessed. */
TEST_ON_DATABASE(test_cameras_of_rigs) {
  make_rig(f);
  hs_colmap_database *database = colmap_fixture_open(f, 1, HS_CAMERAS_BY_SIZE);
  assert_int_equal(add_with(database, "right/2.png", &f->features, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "one of a rig of several"));
  hs_colmap_camera left;
  assert_int_equal(hs_colmap_camera_init(&left, 640, 480, 0.0), HS_OK);
  assert_int_equal(add_with(database, "right/2.png", &f->features, &left), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "one of a rig of several"));
  const hs_colmap_camera second = {.camera_id = 2};
  assert_int_equal(add_with(database, "right/2.png", &f->features, &second), HS_OK);
  colmap_fixture_finish(database);
  database = colmap_fixture_open(f, 1, HS_CAMERAS_BY_VALUE);
  assert_int_equal(add_with(database, "else.png", &f->features, &left), HS_OK);
  assert_int_equal(camera_of(database, "else.png"), 3);
  assert_int_equal(add_with(database, "right/1.png", &f->features, NULL), HS_OK);
  assert_int_equal(camera_of(database, "right/1.png"), 2);
  colmap_fixture_finish(database);
  database = colmap_fixture_open(f, 1, HS_CAMERAS_BY_FOLDER);
  assert_int_equal(add_with(database, "right/3.png", &f->features, NULL), HS_OK);
  assert_int_equal(camera_of(database, "right/3.png"), 2);
  /* If an image was taken by a rig together with another one, it keeps its camera. */
  const hs_colmap_camera first = {.camera_id = 1};
  left.parameters[0] = 99.0;
  assert_int_equal(add_with(database, "right/1.png", &f->features, &first), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "of a rig"));
  assert_int_equal(add_with(database, "right/1.png", &f->features, &left), HS_ERR_ARGUMENT);
  /* The folder gets pictures of both cameras. */
  assert_int_equal(add_with(database, "right/4.png", &f->features, &first), HS_OK);
  assert_int_equal(add_with(database, "right/5.png", &f->features, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "2 cameras already"));
  assert_null(strstr(hs_colmap_last_error(database), "--replace"));
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM cameras"), 3);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM rigs"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frame_data JOIN frames USING (frame_id)"
                                              " WHERE sensor_id = 2 AND rig_id = 1"),
                   3);
}

/* When an image of a rig with one camera gets another camera, its frame and rig refer to that camera. */
TEST_ON_DATABASE(test_changing_cameras) {
  hs_colmap_camera camera;
  assert_int_equal(hs_colmap_camera_init(&camera, 640, 480, 500.0), HS_OK);
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  for (uint32_t i = 1; i <= 3; i++) {
    const char name[] = {(char)('0' + i), '\0'};
    colmap_fixture_add(database, name, &f->features, i);
  }
  const hs_colmap_position position = {.coordinates = {1, 2, 3}};
  assert_int_equal(hs_colmap_set_position(database, 2, &position), HS_OK);
  assert_int_equal(add_with(database, "1", &f->features, &camera), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "--replace"));
  camera.tentative = HS_TENTATIVE_PARAMETERS;
  assert_int_equal(add_with(database, "1", &f->features, &camera), HS_OK);
  colmap_fixture_finish(database);
  database = colmap_fixture_open(f, 1, HS_CAMERAS_BY_SIZE);
  camera.tentative = HS_TENTATIVE_NOTHING;
  for (uint32_t i = 1; i <= 3; i++) {
    const char name[] = {(char)('0' + i), '\0'};
    assert_int_equal(add_with(database, name, &f->features, &camera), HS_OK);
    assert_int_equal(camera_of(database, name), 1);
  }
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM cameras WHERE prior_focal_length = 1"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM cameras"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM rigs"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frames WHERE rig_id = 1"), 3);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frame_data WHERE sensor_id = 1"), 3);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT corr_sensor_id FROM pose_priors WHERE corr_data_id = 2"), 1);
}

/* A choice that was rolled back, or that another program changed, is not remembered. */
TEST_ON_DATABASE(test_choices_that_are_gone) {
  hs_features broken = f->features;
  hs_colmap_database *database = colmap_fixture_open(f, 0, HS_CAMERAS_BY_FOLDER);
  broken.image_width = 0;
  assert_int_equal(add_with(database, "a/1.png", &broken, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(add_with(database, "a/1.png", &f->features, NULL), HS_OK);
  assert_int_equal(add_with(database, "a/2.png", &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  colmap_tables_run(f->path, "INSERT INTO cameras SELECT 7, model, width, height, params, 1 FROM cameras;"
                             "UPDATE images SET camera_id = 7; DELETE FROM cameras WHERE camera_id = 1;"
                             "UPDATE rigs SET ref_sensor_id = 7; UPDATE frame_data SET sensor_id = 7");
  assert_int_equal(add_with(database, "a/3.png", &f->features, NULL), HS_OK);
  assert_int_equal(camera_of(database, "a/3.png"), 7);
  colmap_fixture_finish(database);
}

TEST_ON_DATABASE(test_cameras_that_do_not_fit) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  hs_colmap_camera camera;
  assert_int_equal(hs_colmap_camera_init(&camera, 480, 640, 0.0), HS_OK);
  assert_int_equal(add_with(database, "a.png", &f->features, &camera), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "480x640"));
  assert_int_equal(hs_colmap_camera_init(&camera, 640, 480, 0.0), HS_OK);
  camera.tentative = 3;
  assert_int_equal(add_with(database, "a.png", &f->features, &camera), HS_ERR_ARGUMENT);
  camera = (hs_colmap_camera){.camera_id = 1};
  assert_int_equal(add_with(database, "a.png", &f->features, &camera), HS_ERR_ARGUMENT);
  assert_int_equal(add_with(database, "a.png", &f->features, NULL), HS_OK);
  assert_int_equal(add_with(database, "b.png", &f->features, &camera), HS_OK);
  assert_int_equal(camera_of(database, "b.png"), 1);
}

TEST_ON_DATABASE(test_listing_images) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  hs_colmap_image image;
  assert_int_equal(hs_colmap_next_image(database, -1, &image), HS_OK);
  assert_int_equal(image.found, 0);
  colmap_fixture_add(database, "b/1.png", &f->features, 1);
  colmap_fixture_add(database, "a \"quoted'.png", &f->features, 2);
  static const char *const names[] = {"b/1.png", "a \"quoted'.png"};
  int64_t after = -1;
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(hs_colmap_next_image(database, after, &image), HS_OK);
    assert_int_equal(image.found, 1);
    assert_string_equal(image.name, names[i]);
    assert_int_equal(image.features, COLMAP_FIXTURE_FEATURES);
    after = image.image_id;
  }
  assert_int_equal(hs_colmap_next_image(database, after, &image), HS_OK);
  assert_int_equal(image.found, 0);
  assert_int_equal(hs_colmap_find_image(database, names[1], &image), HS_OK);
  assert_int_equal(image.image_id, 2);
  assert_int_equal(hs_colmap_find_image(database, "b", &image), HS_OK);
  assert_int_equal(image.found, 0);
  assert_int_equal(hs_colmap_find_image(database, NULL, &image), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_next_image(database, 0, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_image(database, "", NULL, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_image(database, NULL, NULL, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_image(database, "c", NULL, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_read_features(database, 3, &f->others), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_read_features(database, 1, NULL), HS_ERR_ARGUMENT);
}

TEST_ON_DATABASE(test_image_that_is_there) {
  colmap_tables_run(f->path, "INSERT INTO cameras VALUES(3, 2, 640, 480, zeroblob(32), 0);"
                             "INSERT INTO images(image_id, name, camera_id) VALUES(5, 'a.png', 3)");
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.png", &f->features, 5);
  colmap_fixture_add(database, "a.png", &f->features, 5);
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &f->others, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "a.png"));
  hs_features other_size = f->features;
  other_size.image_width = 641;
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &other_size, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "641"));
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM cameras"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frames"), 0);
}

static void add_pair(hs_colmap_database *database, uint32_t a, uint32_t b) {
  const uint32_t pair[2] = {1, 2};
  const hs_geometry geometry = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {0, 0, 1, 0, 0, 2, 3, 4, 5}};
  const hs_colmap_matches matches = {.pairs = pair, .count = 1, .fundamental = &geometry};
  assert_int_equal(hs_colmap_add_matches(database, a, b, &matches), HS_OK);
}

TEST_ON_DATABASE(test_replacing_features) {
  hs_colmap_database *database = colmap_fixture_open(f, 1, 0);
  for (uint32_t i = 1; i <= 4; i++) {
    char name[16];
    snprintf(name, sizeof name, "%u.png", i);
    colmap_fixture_add(database, name, &f->features, i);
  }
  add_pair(database, 1, 2);
  add_pair(database, 3, 2);
  add_pair(database, 3, 4);
  colmap_fixture_add(database, "2.png", &f->features, 2); /* the features are equal, so nothing is deleted */
  int64_t count = 0, verified = 0;
  assert_int_equal(hs_colmap_count_matches(database, 2, 3, &count, &verified), HS_OK);
  assert_true(count == 1 && verified == 1);
  colmap_fixture_add(database, "2.png", &f->others, 2);
  assert_int_equal(hs_colmap_count_matches(database, 1, 2, &count, &verified), HS_OK);
  assert_true(count == -1 && verified == -1);
  assert_int_equal(hs_colmap_count_matches(database, 3, 2, &count, NULL), HS_OK);
  assert_true(count == -1);
  assert_int_equal(hs_colmap_count_matches(database, 4, 3, &count, &verified), HS_OK);
  assert_true(count == 1 && verified == 1);
  hs_features read = {0};
  assert_int_equal(hs_colmap_read_features(database, 2, &read), HS_OK);
  assert_memory_equal(read.descriptors, f->others.descriptors, COLMAP_FIXTURE_FEATURES * HS_DESCRIPTOR_LENGTH);
  hs_features_free(&read);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 4);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frames"), 4);
}

/* ------------------------------------------------------------------ files and damage */

TEST_ON_DATABASE(test_as_a_feature_file) {
  char message[256] = "";
  scoped_features read = {0};
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  assert_int_equal(hs_format_of_name(f->path), HS_FORMAT_COLMAP_DB);
  assert_int_equal(hs_load_features(f->path, &read, &options), HS_ERR_ARGUMENT);
  assert_int_equal(hs_save_features(f->path, &f->features, &options), HS_ERR_ARGUMENT);
  options.image_name = "x/a.png";
  assert_int_equal(hs_save_features(f->path, &f->features, &options), HS_OK);
  assert_int_equal(hs_save_features(f->path, &f->features, &options), HS_OK);
  assert_int_equal(hs_save_features(f->path, &f->others, &options), HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, "x/a.png"));
  options.image_name = NULL;
  assert_int_equal(hs_load_features(f->path, &read, &options), HS_OK);
  assert_int_equal(read.count, COLMAP_FIXTURE_FEATURES);
  options.image_name = "b.png";
  assert_int_equal(hs_save_features(f->path, &f->others, &options), HS_OK);
  options.image_name = "photos/x/a.png";
  assert_int_equal(hs_load_features(f->path, &read, &options), HS_OK);
  assert_memory_equal(read.descriptors, f->features.descriptors, COLMAP_FIXTURE_FEATURES * HS_DESCRIPTOR_LENGTH);
  options.image_name = "a.png";
  assert_int_equal(hs_load_features(f->path, &read, &options), HS_ERR_ARGUMENT);
  options.image_name = NULL;
  assert_int_equal(hs_load_features(f->path, &read, &options), HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, "several"));
  assert_int_equal(read.count, COLMAP_FIXTURE_FEATURES); /* a failure keeps the features that were there */
  options.format = HS_FORMAT_COLMAP_DB;
  options.image_name = "a.png";
  assert_int_equal(hs_save_features("-", &f->features, &options), HS_ERR_ARGUMENT);
}

TEST_ON_DATABASE(test_fewer_columns) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.png", &f->features, 1);
  colmap_fixture_finish(database);
  scoped_features read = {0};
  /* numbers in the data: 1.5, 2.5 and, with four columns, scale 2 and orientation 1 */
  colmap_tables_run(f->path,
                    "DELETE FROM descriptors; UPDATE keypoints SET rows = 1, cols = 2, data = X'0000C03F00002040'");
  database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(hs_colmap_read_features(database, 1, &read), HS_OK);
  assert_true(read.count == 1 && read.keypoints[0].x == 1.0f && read.keypoints[0].y == 2.0f);
  assert_true(read.keypoints[0].sigma == 1.0f && read.keypoints[0].orientation == 0.0f);
  hs_colmap_close(database);
  colmap_tables_run(f->path, "UPDATE keypoints SET cols = 4, data = X'0000C03F00002040000000400000803F'");
  database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(hs_colmap_read_features(database, 1, &read), HS_OK);
  assert_true(read.keypoints[0].sigma == 2.0f && read.keypoints[0].orientation == 1.0f);
}

TEST_ON_DATABASE(test_damaged_content) {
  static const struct {
    const char *sql;
    hs_status status;
  } faults[] = {
      {"UPDATE keypoints SET rows = rows + 1", HS_ERR_FORMAT},
      {"UPDATE keypoints SET rows = -1", HS_ERR_FORMAT},
      {"UPDATE keypoints SET rows = 9223372036854775807", HS_ERR_FORMAT},
      {"UPDATE keypoints SET cols = 3, rows = 2 * rows", HS_ERR_FORMAT},
      {"UPDATE keypoints SET data = NULL", HS_ERR_FORMAT},
      {"UPDATE keypoints SET data = 'text'", HS_ERR_FORMAT},
      {"UPDATE keypoints SET rows = 1, data = X'0000C07F000000000000803F00000000000000000000803F'",
       HS_ERR_FORMAT},                                                       /* NaN */
      {"UPDATE keypoints SET data = zeroblob(length(data))", HS_ERR_FORMAT}, /* scale 0 */
      {"UPDATE descriptors SET type = 1", HS_ERR_UNSUPPORTED},
      {"UPDATE descriptors SET cols = 64, rows = 2 * rows", HS_ERR_FORMAT},
      {"UPDATE descriptors SET rows = rows - 1, data = zeroblob(length(data) - 128)", HS_ERR_FORMAT},
      {"UPDATE descriptors SET data = zeroblob(5)", HS_ERR_FORMAT},
      {"UPDATE images SET image_id = 0, camera_id = -4", HS_ERR_FORMAT},
  };
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
    hs_features read = {0};
    char name[16];
    snprintf(name, sizeof name, "%zu.png", i);
    assert_int_equal(hs_colmap_add_image(database, name, NULL, &f->features, NULL), HS_OK);
    colmap_fixture_finish(database);
    colmap_tables_run(f->path, faults[i].sql);
    database = colmap_fixture_open(f, 0, 0);
    hs_colmap_image image = {0};
    hs_status status = hs_colmap_find_image(database, name, &image);
    if (status == HS_OK) status = hs_colmap_read_features(database, image.image_id, &read);
    assert_int_equal(status, faults[i].status);
    assert_true(hs_colmap_last_error(database)[0] != '\0');
    assert_null(read.keypoints);
    hs_colmap_close(database);
    colmap_tables_run(f->path,
                      "DELETE FROM keypoints; DELETE FROM descriptors; DELETE FROM images; DELETE FROM cameras");
  }
}

/* For any bytes, reading ends with a status and consistent features. */
TEST_ON_DATABASE(test_flipped_bytes) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.png", &f->features, 1);
  colmap_fixture_finish(database);
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(f->path, &size);
  uint32_t random = 5;
  for (size_t i = 0; i < 400; i++) {
    /* Half of the changes are in the first page, where SQLite's header is. */
    const size_t at = feature_maker_random(&random) % (i % 2 == 0 ? 4096 : size);
    const unsigned char kept = bytes[at];
    bytes[at] = (unsigned char)(kept ^ (1u << i % 8));
    scratch_write_file(f->path, bytes, size);
    hs_features read = {0};
    const hs_file_options options = {.struct_size = sizeof options, .max_features = 10 * COLMAP_FIXTURE_FEATURES};
    const hs_status status = hs_load_features(f->path, &read, &options);
    assert_true(status == HS_OK ? feature_maker_consistent(&read) : !read.keypoints);
    hs_features_free(&read);
    bytes[at] = kept;
  }
  free(bytes);
}

TEST_ON_DATABASE(test_feature_limit) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.png", &f->features, 1);
  colmap_fixture_finish(database);
  hs_features read = {0};
  const hs_file_options options = {.struct_size = sizeof options, .max_features = COLMAP_FIXTURE_FEATURES - 1};
  assert_int_equal(hs_load_features(f->path, &read, &options), HS_ERR_LIMIT);
  assert_null(read.keypoints);
}

#else

SKIPPED_PROGRAM("built without SQLite")

#endif
