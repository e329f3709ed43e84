/*
 * Pairs of images in COLMAP's database: matches, their order, and verified geometry.
 */

#include "tests/support/test.h"

#include "tests/support/colmap_fixture.h"
#include "tests/support/colmap_tables.h"

#if HARTSIFT_HAVE_SQLITE

static void two_images(hs_colmap_database *database, const colmap_fixture *f) {
  colmap_fixture_add(database, "1.png", &f->features, 1);
  colmap_fixture_add(database, "2.png", &f->others, 2);
}

TEST_ON_DATABASE(test_matches_and_their_order) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  two_images(database, f);
  const struct {
    uint32_t first, second;
    float distance;
  } pairs[3] = {{4, 5, 0}, {6, 7, 0}, {8, 9, 0}};
  hs_colmap_matches matches = {.pairs = pairs, .pair_stride_bytes = sizeof pairs[0], .count = 3};
  assert_int_equal(hs_colmap_add_matches(database, 2, 1, &matches), HS_OK);
  assert_int_equal(hs_colmap_add_matches(database, 2, 1, &matches), HS_OK);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "already"));
  int64_t count = 0, verified = 0;
  assert_int_equal(hs_colmap_count_matches(database, 1, 2, &count, &verified), HS_OK);
  assert_true(count == 3 && verified == -1);
  /* The pair is verified later: the matches stay, and the geometry is added. */
  const hs_geometry geometry = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {0, 0, 1, 0, 0, 2, 3, 4, 5}};
  const uint8_t inliers[3] = {1, 0, 1};
  matches.fundamental = &geometry;
  matches.inliers = inliers;
  assert_int_equal(hs_colmap_add_matches(database, 2, 1, &matches), HS_OK);
  /* 2147483649 is the number of the pair 1, 2, but not of an image. */
  assert_int_equal(hs_colmap_count_matches(database, 0, 2147483649u, &count, &verified), HS_OK);
  assert_true(count == -1 && verified == -1);
  colmap_fixture_finish(database);
  size_t size = 0;
  unsigned char *bytes = colmap_tables_blob(f->path, "SELECT data FROM matches WHERE pair_id = 2147483649", &size);
  const uint32_t expected[6] = {5, 4, 7, 6, 9, 8};
  assert_int_equal(size, sizeof expected);
  assert_memory_equal(bytes, expected, sizeof expected);
  free(bytes);
  bytes = colmap_tables_blob(f->path, "SELECT data FROM two_view_geometries WHERE rows = 2 AND cols = 2", &size);
  const uint32_t expected_inliers[4] = {5, 4, 9, 8};
  assert_int_equal(size, sizeof expected_inliers);
  assert_memory_equal(bytes, expected_inliers, size);
  free(bytes);
}

static void read_matrix(const colmap_fixture *f, const char *column, double matrix[9]) {
  char sql[64];
  snprintf(sql, sizeof sql, "SELECT %s FROM two_view_geometries", column);
  size_t size = 0;
  unsigned char *bytes = colmap_tables_blob(f->path, sql, &size);
  assert_int_equal(size, 72);
  memcpy(matrix, bytes, 72);
  free(bytes);
}

static double bilinear(const double m[9], const double p[2], const double q[2]) {
  double sum = 0.0;
  const double left[3] = {q[0], q[1], 1.0}, right[3] = {p[0], p[1], 1.0};
  for (size_t i = 0; i < 9; i++) sum += left[i / 3] * m[i] * right[i % 3];
  return sum;
}

static void apply(const double m[9], const double p[2], double q[2]) {
  const double w = m[6] * p[0] + m[7] * p[1] + m[8];
  q[0] = (m[0] * p[0] + m[1] * p[1] + m[2]) / w;
  q[1] = (m[3] * p[0] + m[4] * p[1] + m[5]) / w;
}

/* The stored matrices relate COLMAP's points as the passed matrices relate hartsift's, whichever image has the lower
 * number. */
static void check_geometry(const colmap_fixture *f, bool exchanged, const hs_geometry *fundamental,
                           const hs_geometry *homography) {
  const double p[2] = {100.25, 200.75}, q[2] = {310.5, 20.125};
  const double p_there[2] = {p[0] + 0.5, p[1] + 0.5}, q_there[2] = {q[0] + 0.5, q[1] + 0.5};
  double m[9], mapped[2], mapped_there[2];
  read_matrix(f, "F", m);
  const double given = bilinear(fundamental->matrix, p, q);
  const double stored = exchanged ? bilinear(m, q_there, p_there) : bilinear(m, p_there, q_there);
  assert_true(fabs(given - stored) <= 1e-9 * fabs(given));
  read_matrix(f, "H", m);
  apply(homography->matrix, p, mapped);
  const double target[2] = {mapped[0] + 0.5, mapped[1] + 0.5};
  apply(m, exchanged ? target : p_there, mapped_there);
  assert_true(fabs(mapped_there[0] - (exchanged ? p_there : target)[0]) <= 1e-9);
  assert_true(fabs(mapped_there[1] - (exchanged ? p_there : target)[1]) <= 1e-9);
}

TEST_ON_DATABASE(test_geometry) {
  const hs_geometry fundamental = {.model = HS_FUNDAMENTAL,
                                   .found = 1,
                                   .inlier_count = 10,
                                   .matrix = {1e-6, 2e-5, -3e-3, -1e-5, 4e-6, 5e-3, 2e-3, -6e-3, 0.3}};
  const hs_geometry essential = {
      .model = HS_ESSENTIAL, .found = 1, .inlier_count = 10, .matrix = {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  const hs_geometry homography = {
      .model = HS_HOMOGRAPHY, .found = 1, .inlier_count = 8, .matrix = {0.9, 0.1, 20, -0.1, 1.1, -10, 1e-4, 2e-5, 1}};
  const hs_geometry flat = {
      .model = HS_HOMOGRAPHY, .found = 1, .inlier_count = 9, .matrix = {0.9, 0.1, 20, -0.1, 1.1, -10, 1e-4, 2e-5, 1}};
  const hs_geometry nothing = {.model = HS_FUNDAMENTAL};
  const uint32_t pairs[2][2] = {{0, 1}, {2, 3}};
  const struct {
    const hs_geometry *fundamental, *essential, *homography;
    int config, rows;
  } cases[] = {
      {&fundamental, NULL, &homography, 3, 2},
      {&fundamental, &essential, &homography, 2, 2},
      {&fundamental, NULL, &flat, 6, 2},
      {NULL, NULL, &flat, 6, 2},
      {&nothing, NULL, NULL, 1, 0},
      {NULL, &essential, NULL, 2, 2},
  };
  for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
    const bool exchanged = i % 2 != 0;
    hs_colmap_database *database = colmap_fixture_open(f, 1, 0);
    two_images(database, f);
    const hs_colmap_matches matches = {.pairs = pairs,
                                       .count = 2,
                                       .fundamental = cases[i / 2].fundamental,
                                       .essential = cases[i / 2].essential,
                                       .homography = cases[i / 2].homography};
    assert_int_equal(hs_colmap_add_matches(database, exchanged ? 2 : 1, exchanged ? 1 : 2, &matches), HS_OK);
    colmap_fixture_finish(database);
    assert_int_equal(colmap_tables_ask(f->path, "SELECT config FROM two_view_geometries"), cases[i / 2].config);
    assert_int_equal(colmap_tables_ask(f->path, "SELECT rows FROM two_view_geometries"), cases[i / 2].rows);
    if (i < 2) check_geometry(f, exchanged, &fundamental, &homography);
    if (cases[i / 2].essential) {
      double m[9];
      read_matrix(f, "E", m);
      for (size_t k = 0; k < 9; k++) assert_true(m[k] == essential.matrix[exchanged ? 3 * (k % 3) + k / 3 : k]);
    }
  }
}

/* Reads numbers from the only stored geometry. */
static void read_numbers(const colmap_fixture *f, const char *column, double *numbers, size_t count) {
  char sql[64];
  snprintf(sql, sizeof sql, "SELECT %s FROM two_view_geometries", column);
  size_t size = 0;
  unsigned char *bytes = colmap_tables_blob(f->path, sql, &size);
  assert_int_equal(size, count * sizeof *numbers);
  memcpy(numbers, bytes, size);
  free(bytes);
}

/* Checks X_b = R X_a + t for the rotation of a quaternion (w, x, y, z). */
static void move(const double q[4], const double t[3], const double in[3], double out[3]) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
                       2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
                       2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};
  for (size_t i = 0; i < 3; i++) out[i] = r[3 * i] * in[0] + r[3 * i + 1] * in[1] + r[3 * i + 2] * in[2] + t[i];
}

/* Covers turns by 90 and 180 degrees, where each component of the quaternion in turn is the largest, and both orders of
 * the images. */
TEST_ON_DATABASE(test_poses) {
  const hs_geometry essential = {
      .model = HS_ESSENTIAL, .found = 1, .inlier_count = 10, .matrix = {0, 1, 2, 3, 4, 5, 6, 7, 8}};
  const hs_pose poses[] = {
      {.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .translation = {0.6, 0.0, 0.8}},
      {.rotation = {0, -1, 0, 1, 0, 0, 0, 0, 1}, .translation = {0.6, -0.8, 0.0}},
      {.rotation = {1, 0, 0, 0, -1, 0, 0, 0, -1}, .translation = {0.0, 1.0, 0.0}},
      {.rotation = {-1, 0, 0, 0, 1, 0, 0, 0, -1}, .translation = {0.0, 0.6, -0.8}},
      {.rotation = {-1, 0, 0, 0, -1, 0, 0, 0, 1}, .translation = {1.0, 0.0, 0.0}},
      {.rotation = {0, 0, 1, 1, 0, 0, 0, 1, 0}, .translation = {0.48, 0.6, 0.64}},
  };
  const uint32_t pairs[2][2] = {{0, 1}, {2, 3}};
  for (size_t i = 0; i < 2 * sizeof poses / sizeof poses[0]; i++) {
    const hs_pose *pose = &poses[i / 2];
    const bool exchanged = i % 2 != 0;
    double q[4], t[3], there[3];
    hs_colmap_database *database = colmap_fixture_open(f, 1, 0);
    two_images(database, f);
    const hs_colmap_matches matches = {.pairs = pairs, .count = 2, .essential = &essential, .pose = pose};
    assert_int_equal(hs_colmap_add_matches(database, exchanged ? 2 : 1, exchanged ? 1 : 2, &matches), HS_OK);
    colmap_fixture_finish(database);
    read_numbers(f, "qvec", q, 4);
    read_numbers(f, "tvec", t, 3);
    assert_true(q[0] >= 0.0 && fabs(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1.0) < 1e-12);
    const double point[3] = {0.3, -1.2, 2.5};
    double expected[3];
    for (size_t k = 0; k < 3; k++)
      expected[k] = pose->rotation[3 * k] * point[0] + pose->rotation[3 * k + 1] * point[1] +
                    pose->rotation[3 * k + 2] * point[2] + pose->translation[k];
    move(q, t, exchanged ? expected : point, there);
    for (size_t k = 0; k < 3; k++) assert_true(fabs(there[k] - (exchanged ? point : expected)[k]) < 1e-12);
  }
}

/* A watermark is stored as such whatever geometry explains it. It keeps its inliers. */
TEST_ON_DATABASE(test_watermark) {
  const hs_geometry homography = {
      .model = HS_HOMOGRAPHY, .found = 1, .inlier_count = 2, .matrix = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  const uint32_t pairs[2][2] = {{0, 1}, {2, 3}};
  const hs_colmap_matches matches = {.pairs = pairs, .count = 2, .homography = &homography, .watermark = 1};
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  two_images(database, f);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_OK);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT config FROM two_view_geometries"), 7);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT rows FROM two_view_geometries"), 2);
}

/* Equal inliers under another model are another geometry. */
TEST_ON_DATABASE(test_other_geometry) {
  const hs_geometry fundamental = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {0, 0, 1, 0, 0, 2, 3, 4, 5}};
  const hs_geometry homography = {.model = HS_HOMOGRAPHY, .found = 1, .matrix = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  const uint32_t pairs[2][2] = {{0, 1}, {2, 3}};
  const hs_colmap_matches as_volume = {.pairs = pairs, .count = 2, .fundamental = &fundamental};
  const hs_colmap_matches as_plane = {.pairs = pairs, .count = 2, .homography = &homography};
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  two_images(database, f);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &as_volume), HS_OK);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &as_volume), HS_OK);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &as_plane), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "already"));
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT config FROM two_view_geometries"), 3);
  database = colmap_fixture_open(f, 1, 0);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &as_plane), HS_OK);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT config FROM two_view_geometries"), 6);
}

TEST_ON_DATABASE(test_wrong_matches) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  two_images(database, f);
  const uint32_t pairs[1][2] = {{0, 1}};
  const uint8_t inliers[1] = {1};
  const hs_geometry wild = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {(double)NAN}};
  hs_colmap_matches matches = {.pairs = pairs, .count = 1};
  assert_int_equal(hs_colmap_add_matches(database, 1, 1, &matches), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_matches(database, 1, 9, &matches), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_matches(NULL, 1, 2, &matches), HS_ERR_ARGUMENT);
  matches.inliers = inliers;
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_ERR_ARGUMENT);
  matches.fundamental = &wild;
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_ERR_ARGUMENT);
  /* indices beyond the features of either image */
  const uint32_t outside[2][2] = {{2, COLMAP_FIXTURE_FEATURES}, {COLMAP_FIXTURE_FEATURES, 2}};
  for (size_t i = 0; i < 2; i++) {
    matches = (hs_colmap_matches){.pairs = outside[i], .count = 1};
    assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_colmap_last_error(database), "60"));
  }
  matches = (hs_colmap_matches){.pairs = pairs, .count = 1, .pair_stride_bytes = 4};
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_ERR_ARGUMENT);
  matches = (hs_colmap_matches){.count = 1};
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_ERR_ARGUMENT);
  matches = (hs_colmap_matches){.count = 0};
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_OK);
  assert_int_equal(hs_colmap_count_matches(NULL, 1, 2, NULL, NULL), HS_ERR_ARGUMENT);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT rows FROM matches"), 0);
  colmap_tables_run(f->path, "DELETE FROM keypoints WHERE image_id = 2");
  database = colmap_fixture_open(f, 1, 0);
  matches = (hs_colmap_matches){.pairs = pairs, .count = 1};
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_ERR_ARGUMENT);
}

/* A damaged file has entries with a negative number of rows. -1 must not count as "no entry". */
TEST_ON_DATABASE(test_damaged_counts) {
  static const char *const damages[] = {"UPDATE matches SET rows = -1", "UPDATE two_view_geometries SET rows = -2"};
  const uint32_t pair[1][2] = {{4, 5}};
  const uint8_t inliers[1] = {1};
  const hs_geometry geometry = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {0, 0, 1, 0, 0, 2, 3, 4, 5}};
  const hs_colmap_matches matches = {.pairs = pair, .count = 1, .fundamental = &geometry, .inliers = inliers};
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  two_images(database, f);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_OK);
  colmap_fixture_finish(database);
  for (size_t i = 0; i < 2; i++) {
    int64_t counts[2] = {7, 7};
    colmap_tables_run(f->path, damages[i]);
    database = colmap_fixture_open(f, 0, 0);
    assert_int_equal(hs_colmap_count_matches(database, 1, 2, &counts[0], &counts[1]), HS_ERR_FORMAT);
    assert_int_equal(counts[i], -1);
    assert_non_null(strstr(hs_colmap_last_error(database), i ? "verified matches" : "the matches"));
    assert_int_equal(hs_colmap_count_matches(database, 1, 2, i ? &counts[0] : NULL, i ? NULL : &counts[1]), HS_OK);
    hs_colmap_close(database);
    colmap_tables_run(f->path, "UPDATE matches SET rows = 1");
  }
}

#else

SKIPPED_PROGRAM("built without SQLite")

#endif
