/*
 * hs_verify_points, hs_verify and hs_relative_pose on synthetic scenes with known geometry: with noise, with wrong
 * matches, in degenerate configurations.
 *
 * Handling of options and arguments: test_verification_calls.c.
 */

#include "tests/support/test.h"

#include "pipeline/matching/geometry/scoring.h"
#include "pipeline/matching/geometry/search.h"
#include "pipeline/matching/geometry/verify.h"
#include "tests/support/verified.h"

#define DEGREE 0.017453292519943295

static void run(verified *v, const hs_verify_options *options) {
  memset(v->inliers, 7, sizeof v->inliers);
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, v->scene.count, options, v->inliers, &v->geometry), HS_OK);
  size_t marked = 0;
  for (size_t i = 0; i < v->scene.count; i++) {
    assert_in_range(v->inliers[i], 0, 1);
    marked += v->inliers[i];
  }
  assert_int_equal(marked, v->geometry.inlier_count);
  if (v->scene.count < TWO_VIEW_MAX) assert_int_equal(v->inliers[v->scene.count], 7);
  assert_int_equal(v->geometry.model, options->model);
  assert_in_range(v->geometry.iterations, 0, options->max_iterations);
}

/* Fails unless nearly all correct matches are inliers and at most `wrong` of the others are. */
static void expect_inliers(const verified *v, size_t lost, size_t wrong) {
  size_t kept = 0, slipped = 0;
  for (size_t i = 0; i < v->scene.count; i++)
    if (i < v->scene.outliers)
      slipped += v->inliers[i];
    else
      kept += v->inliers[i];
  assert_true(kept + lost >= v->scene.count - v->scene.outliers);
  assert_true(slipped <= wrong);
}

static void expect_matrix_form(const hs_geometry *g) {
  double squares = 0.0, largest = 0.0, at_largest = 0.0;
  for (int i = 0; i < 9; i++) {
    squares += g->matrix[i] * g->matrix[i];
    if (fabs(g->matrix[i]) > largest) {
      largest = fabs(g->matrix[i]);
      at_largest = g->matrix[i];
    }
  }
  if (g->model == HS_HOMOGRAPHY) {
    assert_true(g->matrix[8] == 1.0);
  } else {
    assert_true(fabs(squares - (g->model == HS_ESSENTIAL ? 2.0 : 1.0)) < 1.0e-12);
    assert_true(at_largest > 0.0);
  }
}

TEST(test_homography) {
  const double shares[5] = {0.0, 0.3, 0.5, 0.7, 0.9};
  SCOPED_MEMORY verified *const v = verified_new();
  for (int i = 0; i < 5; i++) {
    for (int kind = 0; kind < 2; kind++) {
      two_view_make(kind == 0 ? TWO_VIEW_PLANE : TWO_VIEW_ROTATION, 600, (size_t)(600.0 * shares[i]), 0.5, 5,
                    &v->scene);
      hs_verify_options o = verified_options(HS_HOMOGRAPHY, &v->scene);
      o.max_iterations = 200000;
      run(v, &o);
      assert_int_equal(v->geometry.found, 1);
      expect_matrix_form(&v->geometry);
      expect_inliers(v, 8, 4);
      assert_true(two_view_homography_difference(v->geometry.matrix, v->scene.homography) < (i == 4 ? 1.5 : 0.8));
      /* the noise of two of the four coordinates is across the model */
      assert_true(fabs(v->geometry.rms_error - 0.5 * sqrt(2.0)) < 0.12);
      assert_int_equal(v->geometry.plane_inliers, v->geometry.inlier_count);
    }
  }
}

TEST(test_fundamental) {
  const double shares[4] = {0.0, 0.3, 0.5, 0.7};
  SCOPED_MEMORY verified *const v = verified_new();
  for (int i = 0; i < 4; i++) {
    two_view_make(TWO_VIEW_VOLUME, 600, (size_t)(600.0 * shares[i]), 0.5, 6, &v->scene);
    hs_verify_options o = verified_options(HS_FUNDAMENTAL, &v->scene);
    o.max_iterations = 30000;
    run(v, &o);
    assert_int_equal(v->geometry.found, 1);
    expect_matrix_form(&v->geometry);
    expect_inliers(v, 4, 2 + v->scene.outliers / 20); /* with 4 px of 480, a random position fits by chance */
    assert_true(two_view_epipolar_error(v->geometry.matrix, &v->scene) < 1.0);
    assert_true(v->geometry.plane_inliers < v->geometry.inlier_count / 2);
  }
}

TEST(test_essential_and_pose) {
  const double shares[4] = {0.0, 0.3, 0.5, 0.8};
  SCOPED_MEMORY verified *const v = verified_new();
  for (int i = 0; i < 4; i++) {
    two_view_make(TWO_VIEW_VOLUME, 600, (size_t)(600.0 * shares[i]), 0.5, 8, &v->scene);
    hs_verify_options o = verified_options(HS_ESSENTIAL, &v->scene);
    o.max_iterations = 20000;
    run(v, &o);
    assert_int_equal(v->geometry.found, 1);
    expect_matrix_form(&v->geometry);
    expect_inliers(v, 4, 2 + v->scene.outliers / 20);
    hs_pose pose;
    assert_int_equal(hs_relative_pose(v->geometry.matrix, &o.camera_a, &o.camera_b, v->scene.a, v->scene.b,
                                      v->scene.count, v->inliers, &pose),
                     HS_OK);
    assert_int_equal(pose.used, v->geometry.inlier_count);
    assert_true(pose.in_front + 2 + v->scene.outliers / 20 >= pose.used);
    assert_true(two_view_rotation_angle(pose.rotation, v->scene.rotation) < 0.4 * DEGREE);
    assert_true(two_view_direction_angle(pose.translation, v->scene.translation) < 1.5 * DEGREE);
  }
}

/* Exact points give exact geometry. */
TEST(test_exact_points) {
  SCOPED_MEMORY verified *const v = verified_new();
  two_view_make(TWO_VIEW_VOLUME, 100, 20, 0.0, 3, &v->scene);
  hs_verify_options o = verified_options(HS_ESSENTIAL, &v->scene);
  run(v, &o);
  hs_pose pose;
  assert_int_equal(hs_relative_pose(v->geometry.matrix, &o.camera_a, &o.camera_b, v->scene.a, v->scene.b,
                                    v->scene.count, v->inliers, &pose),
                   HS_OK);
  printf("             rotation off by %.3g, translation by %.3g degrees\n",
         two_view_rotation_angle(pose.rotation, v->scene.rotation) / DEGREE,
         two_view_direction_angle(pose.translation, v->scene.translation) / DEGREE);
  assert_true(two_view_rotation_angle(pose.rotation, v->scene.rotation) < 1.0e-3 * DEGREE);
  assert_true(two_view_direction_angle(pose.translation, v->scene.translation) < 1.0e-3 * DEGREE);
}

/* Three quarters of the scene lie in one plane. A search that does not complete planes may accept the plane and two
 * chance matches. A search that does finds the rest of the scene. */
TEST(test_dominant_plane) {
  SCOPED_MEMORY verified *const v = verified_new();
  for (uint64_t seed = 0; seed < 20; seed++) {
    two_view_make(TWO_VIEW_MIXED, 400, 120, 0.5, 20 + seed, &v->scene);
    hs_verify_options o = verified_options(HS_FUNDAMENTAL, &v->scene);
    o.seed = seed;
    run(v, &o);
    assert_int_equal(v->geometry.found, 1);
    expect_inliers(v, 5, 12);
    assert_true(two_view_epipolar_error(v->geometry.matrix, &v->scene) < 1.0);
    assert_true(v->geometry.plane_inliers > v->geometry.inlier_count / 2);
    assert_true(v->geometry.plane_inliers < v->geometry.inlier_count * 9 / 10);
  }
}

/* A plane or a rotation does not determine F; plane_inliers reports this. */
TEST(test_planar_scene_is_told) {
  SCOPED_MEMORY verified *const v = verified_new();
  const two_view_kind kinds[2] = {TWO_VIEW_PLANE, TWO_VIEW_ROTATION};
  for (int i = 0; i < 2; i++) {
    for (hs_geometry_model model = HS_FUNDAMENTAL; model <= HS_ESSENTIAL; model++) {
      two_view_make(kinds[i], 300, 90, 0.4, 4, &v->scene);
      hs_verify_options o = verified_options(model, &v->scene);
      run(v, &o);
      assert_int_equal(v->geometry.found, 1);
      assert_true(v->geometry.plane_inliers * 20 >= v->geometry.inlier_count * 18);
    }
  }
}

/* An image is matched with its copy: every model fits without any error. */
TEST(test_copy) {
  SCOPED_MEMORY verified *const v = verified_new();
  two_view_make(TWO_VIEW_VOLUME, 200, 0, 0.0, 5, &v->scene);
  memcpy(v->scene.b, v->scene.a, sizeof v->scene.b);
  for (hs_geometry_model model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL; model++) {
    hs_verify_options o = verified_options(model, &v->scene);
    run(v, &o);
    assert_int_equal(v->geometry.found, 1);
    assert_int_equal(v->geometry.inlier_count, 200);
    assert_int_equal(v->geometry.plane_inliers, 200);
  }
}

static void expect_nothing(verified *v, hs_geometry_model model) {
  hs_verify_options o = verified_options(model, &v->scene);
  o.max_iterations = 500;
  run(v, &o);
  assert_int_equal(v->geometry.found, 0);
  assert_int_equal(v->geometry.inlier_count, 0);
  for (int i = 0; i < 9; i++) assert_true(v->geometry.matrix[i] == 0.0);
}

TEST(test_nothing_to_find) {
  SCOPED_MEMORY verified *const v = verified_new();
  for (hs_geometry_model model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL; model++) {
    const size_t sample = model == HS_HOMOGRAPHY ? 4 : model == HS_FUNDAMENTAL ? 7 : 5;
    for (size_t count = 0; count < sample; count++) {
      two_view_make(TWO_VIEW_PLANE, count, 0, 0.0, 1, &v->scene);
      expect_nothing(v, model);
    }
    two_view_make(TWO_VIEW_LINE, 100, 0, 0.0, 1, &v->scene); /* all points exactly on a line */
    expect_nothing(v, model);
    two_view_make(TWO_VIEW_LINE, 100, 0, 0.5, 1, &v->scene); /* all points on a line within the noise */
    expect_nothing(v, model);
    two_view_make(TWO_VIEW_VOLUME, 40, 40, 0.0, 1, &v->scene); /* only wrong matches */
    expect_nothing(v, model);
    two_view_make(TWO_VIEW_PLANE, 100, 0, 0.0, 1, &v->scene);
    for (size_t i = 0; i < 200; i++) { /* all matches at one position */
      v->scene.a[i] = 100.0;
      v->scene.b[i] = 200.0;
    }
    expect_nothing(v, model);
  }
}

/* There are exactly as many matches as a sample needs. All are inliers if so few are allowed. */
TEST(test_minimal_number) {
  SCOPED_MEMORY verified *const v = verified_new();
  for (hs_geometry_model model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL; model++) {
    const size_t sample = model == HS_HOMOGRAPHY ? 4 : model == HS_FUNDAMENTAL ? 7 : 5;
    two_view_make(model == HS_HOMOGRAPHY ? TWO_VIEW_PLANE : TWO_VIEW_VOLUME, sample, 0, 0.0, 2, &v->scene);
    hs_verify_options o = verified_options(model, &v->scene);
    run(v, &o);
    assert_int_equal(v->geometry.found, 0); /* fewer inliers than min_inliers */
    o.min_inliers = 0;
    run(v, &o);
    assert_int_equal(v->geometry.found, 1);
    assert_int_equal(v->geometry.inlier_count, sample);
  }
}

/* Repeated matches, as keypoints with several orientations give, neither break nor bias the search. */
TEST(test_duplicates) {
  SCOPED_MEMORY verified *const v = verified_new();
  two_view_make(TWO_VIEW_PLANE, 400, 150, 0.4, 2, &v->scene);
  for (size_t i = 1; i < 100; i++) { /* one wrong match is repeated a hundred times */
    memcpy(v->scene.a + 2 * i, v->scene.a, 2 * sizeof(double));
    memcpy(v->scene.b + 2 * i, v->scene.b, 2 * sizeof(double));
  }
  hs_verify_options o = verified_options(HS_HOMOGRAPHY, &v->scene);
  run(v, &o);
  assert_int_equal(v->geometry.found, 1);
  expect_inliers(v, 6, 3);
  assert_int_equal(v->inliers[0], 0);
}

TEST(test_invalid_coordinates) {
  SCOPED_MEMORY verified *const v = verified_new();
  two_view_make(TWO_VIEW_PLANE, 200, 50, 0.4, 2, &v->scene);
  v->scene.a[0] = NAN;
  v->scene.b[3] = INFINITY;
  v->scene.a[4] = 1.0e7;
  v->scene.b[7] = -1.0e300;
  v->scene.a[2 * 150] = NAN; /* this match would be correct */
  hs_verify_options o = verified_options(HS_HOMOGRAPHY, &v->scene);
  run(v, &o);
  assert_int_equal(v->geometry.found, 1);
  for (int i = 0; i < 4; i++) assert_int_equal(v->inliers[i], 0);
  assert_int_equal(v->inliers[150], 0);
  expect_inliers(v, 6, 3);
  for (size_t i = 0; i < 400; i++) v->scene.a[i] = NAN;
  expect_nothing(v, HS_HOMOGRAPHY);
}

/* A match whose coordinates are at the limit counts. A match beyond the limit does not, however well it agrees. */
TEST(test_coordinates_at_their_limit) {
  SCOPED_MEMORY verified *const v = verified_new();
  two_view_make(TWO_VIEW_PLANE, 40, 0, 0.0, 2, &v->scene);
  memcpy(v->scene.b, v->scene.a, sizeof v->scene.b); /* the same picture twice, so that every match fits */
  v->scene.a[0] = v->scene.b[0] = 1.0e6;
  v->scene.a[3] = v->scene.b[3] = -1.0e6;
  v->scene.a[4] = v->scene.b[4] = 1000001.0;
  v->scene.a[7] = v->scene.b[7] = -1000001.0;
  hs_verify_options o = verified_options(HS_HOMOGRAPHY, &v->scene);
  run(v, &o);
  assert_int_equal(v->geometry.inlier_count, 38);
  assert_int_equal(v->inliers[0], 1);
  assert_int_equal(v->inliers[1], 1);
  assert_int_equal(v->inliers[2], 0);
  assert_int_equal(v->inliers[3], 0);
}

/* Images are far from the origin, tiny or huge. Only relative sizes matter. */
TEST(test_place_and_size) {
  SCOPED_MEMORY verified *const v = verified_new(), *const w = verified_new();
  two_view_make(TWO_VIEW_VOLUME, 300, 100, 0.4, 2, &v->scene);
  w->scene = v->scene;
  hs_verify_options o = verified_options(HS_FUNDAMENTAL, &v->scene), p = o;
  run(v, &o);
  for (size_t i = 0; i < 600; i++) { /* powers of two leave the significant digits unchanged */
    w->scene.a[i] *= 64.0;
    w->scene.b[i] *= 64.0;
  }
  p.tolerance *= 64.0;
  run(w, &p);
  assert_int_equal(v->geometry.inlier_count, w->geometry.inlier_count);
  assert_memory_equal(v->inliers, w->inliers, v->scene.count);
  for (size_t i = 0; i < 600; i++) w->scene.b[i] = v->scene.b[i] + 50000.0;
  memcpy(w->scene.a, v->scene.a, sizeof w->scene.a);
  run(w, &o);
  assert_true(abs((int)v->geometry.inlier_count - (int)w->geometry.inlier_count) <= 3);
}

/* Coordinates are any bits and awkward values. There is no crash and no endless loop, and results are consistent. */
TEST(test_any_numbers) {
  static const double awkward[] = {0.0,    -0.0,     1.0, 1.0e-300, 4.9e-324, 1.0e6,  -1.0e6, 999999.999,
                                   1.0e-8, INFINITY, NAN, 0.5,      640.0,    1.0e-3, -1.0,   1.0e300};
  SCOPED_MEMORY verified *const v = verified_new();
  random_state random = {77};
  for (int trial = 0; trial < 240; trial++) {
    const size_t count = 4 + random_below(&random, 60);
    two_view_make(TWO_VIEW_VOLUME, count, count / 2, 0.3, (uint64_t)trial, &v->scene);
    for (size_t i = 0; i < 2 * count; i++) {
      const uint32_t kind = random_below(&random, 6);
      double *const value = (kind & 1u) != 0 ? &v->scene.a[i] : &v->scene.b[i];
      if (kind < 2) *value = awkward[random_below(&random, 16)];
      if (kind == 2 && trial % 3 == 0) {
        const uint64_t bits = random_next(&random);
        memcpy(value, &bits, sizeof bits);
      }
      if (kind == 3 && trial % 5 == 0) *value = 7.0;
    }
    hs_verify_options o = verified_options((hs_geometry_model)(1 + trial % 3), &v->scene);
    o.max_iterations = 300;
    o.min_inliers = 0;
    o.tolerance = trial % 7 == 0 ? 1.0e9 : trial % 11 == 0 ? 1.0e-9 : 2.0;
    run(v, &o);
    for (int i = 0; i < 9; i++) assert_true(isfinite(v->geometry.matrix[i]));
    assert_true(isfinite(v->geometry.rms_error));
    assert_true(v->geometry.plane_inliers <= v->geometry.inlier_count);
    if (v->geometry.found) expect_matrix_form(&v->geometry);
  }
}

static uint64_t digest_of(uint64_t digest, const void *bytes, size_t size) {
  const unsigned char *const p = bytes;
  for (size_t i = 0; i < size; i++) digest = (digest ^ p[i]) * 1099511628211u;
  return digest;
}

/* The same call gives the same bytes; another seed may not. The bytes equal those of every other machine and
 * compiler. */
TEST(test_repeatable) {
  static const uint64_t expected[3] = {0x4c2b408e146a02f5u, 0x01be125f62d097d2u, 0x1993416b0fbed7c4u};
  int different = 0;
  SCOPED_MEMORY verified *const v = verified_new(), *const w = verified_new();
  for (hs_geometry_model model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL; model++) {
    two_view_make(model == HS_HOMOGRAPHY ? TWO_VIEW_PLANE : TWO_VIEW_MIXED, 500, 200, 0.6, 17, &v->scene);
    w->scene = v->scene;
    hs_verify_options o = verified_options(model, &v->scene);
    o.seed = 99;
    run(v, &o);
    run(w, &o);
    assert_memory_equal(v->inliers, w->inliers, v->scene.count);
    assert_memory_equal(v->geometry.matrix, w->geometry.matrix, sizeof v->geometry.matrix);
    assert_int_equal(v->geometry.iterations, w->geometry.iterations);
    uint64_t digest = digest_of(14695981039346656037u, v->geometry.matrix, sizeof v->geometry.matrix);
    digest = digest_of(digest, v->inliers, v->scene.count);
    digest = digest_of(digest, &v->geometry.iterations, sizeof v->geometry.iterations);
    digest = digest_of(digest, &v->geometry.rms_error, sizeof v->geometry.rms_error);
    printf("             model %d: digest 0x%016llxu\n", (int)model, (unsigned long long)digest);
    different += digest != expected[model - 1];
  }
  assert_int_equal(different, 0);
}

typedef struct distant_pair {
  uint32_t a, b;
  float distance;
} distant_pair;

/* Makes features of the scene's 200 points, those of b in reverse order, and the list of their pairs. */
static void points_as_features(const verified *v, hs_keypoint keypoints[400], distant_pair pairs[200]) {
  for (int i = 0; i < 200; i++) {
    const int j = 199 - i;
    keypoints[i].x = (float)v->scene.a[2 * i];
    keypoints[i].y = (float)v->scene.a[2 * i + 1];
    keypoints[200 + j].x = (float)v->scene.b[2 * i];
    keypoints[200 + j].y = (float)v->scene.b[2 * i + 1];
    pairs[i] = (distant_pair){(uint32_t)i, (uint32_t)j, NAN};
  }
}

TEST(test_features) {
  distant_pair pairs[200];
  SCOPED_MEMORY verified *const v = verified_new();
  SCOPED_MEMORY hs_keypoint *const keypoints = calloc(400, sizeof *keypoints);
  assert_non_null(keypoints);
  two_view_make(TWO_VIEW_PLANE, 200, 60, 0.4, 2, &v->scene);
  points_as_features(v, keypoints, pairs);
  const hs_features a = {.count = 200, .keypoints = keypoints}, b = {.count = 200, .keypoints = keypoints + 200};
  hs_verify_options o = verified_options(HS_HOMOGRAPHY, &v->scene);
  uint8_t inliers[200];
  hs_geometry by_points, by_features;
  for (int i = 0; i < 400; i++) {
    v->scene.a[i] = (double)(float)v->scene.a[i];
    v->scene.b[i] = (double)(float)v->scene.b[i];
  }
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, 200, &o, v->inliers, &by_points), HS_OK);
  assert_int_equal(hs_verify(&a, &b, pairs, sizeof *pairs, 200, &o, inliers, &by_features), HS_OK);
  assert_memory_equal(inliers, v->inliers, 200);
  assert_memory_equal(by_points.matrix, by_features.matrix, sizeof by_points.matrix);
  pairs[77].b = 200;
  assert_int_equal(hs_verify(&a, &b, pairs, sizeof *pairs, 200, &o, inliers, &by_features), HS_ERR_ARGUMENT);
  pairs[77].b = UINT32_MAX;
  assert_int_equal(hs_verify(&a, &b, pairs, sizeof *pairs, 200, &o, inliers, &by_features), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify(&a, &b, pairs, 7, 10, &o, inliers, &by_features), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify(NULL, &b, pairs, 0, 10, &o, inliers, &by_features), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify(&a, &b, NULL, 0, 10, &o, inliers, &by_features), HS_ERR_ARGUMENT);
  const hs_features placeless = {.count = 200};
  pairs[77].b = 0;
  assert_int_equal(hs_verify(&a, &placeless, pairs, sizeof *pairs, 200, &o, inliers, &by_features), HS_ERR_ARGUMENT);
  assert_int_equal(hs_verify(&placeless, &b, pairs, sizeof *pairs, 200, &o, inliers, &by_features), HS_ERR_ARGUMENT);
  const size_t many = ((size_t)1 << 26) + 1; /* more than the limit; refused before any match is read */
  assert_int_equal(hs_verify(&a, &b, pairs, sizeof *pairs, many, &o, NULL, &by_features), HS_ERR_LIMIT);
  assert_int_equal(hs_verify(&a, &b, NULL, 0, 0, &o, NULL, &by_features), HS_OK);
  assert_int_equal(by_features.found, 0);
}

/* If no matches agree, the search ends when it would very likely have found a model of min_inliers. An existing model
 * is found. */
TEST(test_ends_where_nothing_agrees) {
  SCOPED_MEMORY verified *const v = verified_new();
  for (hs_geometry_model model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL; model++) {
    two_view_make(TWO_VIEW_VOLUME, 14, 14, 0.0, 3, &v->scene);
    hs_verify_options o = verified_options(model, &v->scene);
    o.min_inliers = 15;
    run(v, &o);
    assert_int_equal(v->geometry.iterations, 0); /* there are too few matches for a model */
    two_view_make(TWO_VIEW_VOLUME, 24, 24, 0.0, 3, &v->scene);
    run(v, &o);
    assert_int_equal(v->geometry.found, 0);
    /* 15 of 24 matches: a sample is correct with probability 1/8, 1/24 or 1/14, depending on the model */
    assert_in_range(v->geometry.iterations, 50, 600);
    two_view_make(TWO_VIEW_VOLUME, 200, 200, 0.0, 3, &v->scene);
    run(v, &o);
    assert_int_equal(v->geometry.iterations, 10000); /* 15 of 200 matches are not found soon */
  }
  int found = 0;
  for (uint64_t seed = 0; seed < 100; seed++) {
    two_view_make(TWO_VIEW_VOLUME, 26, 10, 0.3, seed, &v->scene);
    hs_verify_options o = verified_options(HS_FUNDAMENTAL, &v->scene);
    o.seed = seed;
    run(v, &o);
    assert_in_range(v->geometry.iterations, 50, 1100);
    found += v->geometry.found;
  }
  printf("             16 right matches of 26: found in %d of 100 searches\n", found);
  assert_true(found >= 98);
}

/* Working memory is reused: it is allocated once for the largest of several calls, and results equal those without
 * it. */
TEST(test_kept_memory) {
  SCOPED_MEMORY verified *const v = verified_new();
  scoped_counter counter = {.fill = 0xa5};
  const hs_allocator allocator = counted_allocator_make(&counter);
  verify_scratch scratch = {&allocator, NULL, 0};
  static const size_t counts[4] = {400, 90, 400, 30};
  for (int i = 0; i < 12; i++) {
    const hs_geometry_model model = (hs_geometry_model)(1 + i % 3);
    two_view_make(TWO_VIEW_MIXED, counts[i % 4], counts[i % 4] / 3, 0.4, (uint64_t)i, &v->scene);
    hs_verify_options o = verified_options(model, &v->scene);
    run(v, &o);
    hs_geometry geometry;
    uint8_t inliers[TWO_VIEW_MAX];
    assert_int_equal(verify_points_with(&scratch, v->scene.a, v->scene.b, v->scene.count, &o, inliers, &geometry),
                     HS_OK);
    assert_memory_equal(&geometry, &v->geometry, sizeof geometry);
    assert_memory_equal(inliers, v->inliers, v->scene.count);
  }
  assert_int_equal(counter.made, 1);
  verify_scratch_release(&scratch);
}

TEST(test_iterations_needed) {
  assert_int_equal(iterations_needed(100, 100, 4, 0.9999, 10000), 1);
  assert_int_equal(iterations_needed(3, 100, 4, 0.9999, 10000), 10000);
  assert_int_equal(iterations_needed(5, 1000, 7, 0.9999, 10000), 10000);
  /* log(1e-4) / log(1 - p^4) with p near 1/2 is 143 for many matches */
  assert_in_range(iterations_needed(50000, 100000, 4, 0.9999, 10000), 143, 144);
  assert_in_range(iterations_needed(30000, 100000, 7, 0.99, 1000000), 21050, 21080);
}
