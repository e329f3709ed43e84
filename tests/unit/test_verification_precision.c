/*
 * The second search of hs_verify_points uses the precision of the matches, and only matches that move like their
 * neighbours.
 */

#include "tests/support/test.h"

#include "pipeline/matching/geometry/search.h"
#include "tests/support/verified.h"

static void run(verified *v, const hs_verify_options *options) {
  memset(v->inliers, 7, sizeof v->inliers);
  assert_int_equal(hs_verify_points(v->scene.a, v->scene.b, v->scene.count, options, v->inliers, &v->geometry), HS_OK);
}

static size_t marked(const verified *v, size_t begin, size_t end) {
  size_t count = 0;
  for (size_t i = begin; i < end; i++) count += v->inliers[i];
  return count;
}

/* Fails if more than `lost` correct matches are missing, or more than `wrong` wrong ones are accepted. */
static void expect_inliers(const verified *v, size_t lost, size_t wrong) {
  assert_true(marked(v, v->scene.outliers, v->scene.count) + lost >= v->scene.count - v->scene.outliers);
  assert_true(marked(v, 0, v->scene.outliers) <= wrong);
}

/* Projects a point of a wall of equal windows into two cameras of focal length 1000. X and Y are along the wall, and
 * the depth is 10 - relief. Wrong matches join a window to the next ones of its row. */
static void project_wall(double x, double y, double relief, double *a, double *b) {
  const double degree = 0.017453292519943295;
  const double z = 10.0 - relief, turn = 8.0 * degree;
  const double bx = cos(turn) * x + sin(turn) * z - 2.0, by = y - 0.15, bz = cos(turn) * z - sin(turn) * x + 0.5;
  a[0] = 750.0 + 1000.0 * x / z;
  a[1] = 500.0 + 1000.0 * y / z;
  b[0] = 750.0 + 1000.0 * bx / bz;
  b[1] = 500.0 + 1000.0 * by / bz;
}

/* Makes 90 wrong matches, then 500 correct ones with 0.15 pixels of noise. */
static void make_wall(uint64_t seed, two_view_scene *scene) {
  random_state random = {seed};
  double unused[2];
  memset(scene, 0, sizeof *scene);
  scene->count = 590;
  scene->outliers = 90;
  for (size_t i = 0; i < scene->count; i++) {
    const double column = (double)random_below(&random, 13) - 6.0, row = (double)random_below(&random, 6) - 2.5;
    const double x = column + 0.1 * (double)random_below(&random, 5), y = row + 0.1 * (double)random_below(&random, 4);
    const bool in_relief = column > 2.0 && row < 0.0;
    project_wall(x, y, in_relief ? 0.4 : 0.0, scene->a + 2 * i, scene->b + 2 * i);
    if (i < scene->outliers)
      project_wall(x + 1.0 + (double)random_below(&random, 3), y, in_relief ? 0.4 : 0.0, unused, scene->b + 2 * i);
    for (int c = 0; c < 2; c++) {
      scene->a[2 * i + (size_t)c] += 0.3 * ((double)random_below(&random, 1001) / 1000.0 - 0.5);
      scene->b[2 * i + (size_t)c] += 0.3 * ((double)random_below(&random, 1001) / 1000.0 - 0.5);
    }
  }
}

/* The first search accepts wrong matches along the rows. The second search drops them and keeps the correct ones. */
TEST(test_rows_of_windows) {
  SCOPED_MEMORY verified *const v = verified_new();
  size_t first = 0, second = 0;
  for (uint64_t seed = 0; seed < 10; seed++) {
    make_wall(seed, &v->scene);
    hs_verify_options o;
    (void)hs_verify_options_init(&o, HS_FUNDAMENTAL);
    o.tolerance = 4.0;
    o.refine = 0;
    run(v, &o);
    assert_true(v->geometry.tolerance == 4.0);
    first += marked(v, 0, v->scene.outliers);
    o.refine = 1;
    run(v, &o);
    assert_int_equal(v->geometry.found, 1);
    assert_true(v->geometry.tolerance < 4.0);
    expect_inliers(v, 10, v->scene.outliers / 2);
    second += marked(v, 0, v->scene.outliers);
  }
  printf("             wrong matches kept of 900: %zu by the first search, %zu by the second\n", first, second);
  assert_true(second * 10 < first);
}

/* Matches are precise, all agree and move like their neighbours. The first search's matrix stays, with the measured
 * tolerance. */
TEST(test_settled) {
  SCOPED_MEMORY verified *const v = verified_new();
  for (uint64_t seed = 0; seed < 10; seed++) {
    make_wall(seed, &v->scene);
    v->scene.count -= v->scene.outliers;
    memmove(v->scene.a, v->scene.a + 2 * v->scene.outliers, 2 * v->scene.count * sizeof(double));
    memmove(v->scene.b, v->scene.b + 2 * v->scene.outliers, 2 * v->scene.count * sizeof(double));
    v->scene.outliers = 0;
    hs_verify_options o;
    (void)hs_verify_options_init(&o, HS_FUNDAMENTAL);
    o.tolerance = 4.0;
    o.refine = 0;
    run(v, &o);
    const hs_geometry first = v->geometry;
    o.refine = 1;
    run(v, &o);
    assert_memory_equal(v->geometry.matrix, first.matrix, sizeof first.matrix);
    assert_true(v->geometry.tolerance < 4.0);
    expect_inliers(v, 0, 0);
  }
}

/* If no match off a plane agrees, the inliers are those of the plane, and the result reports it. */
TEST(test_plane_only) {
  SCOPED_MEMORY verified *const v = verified_new();
  const two_view_kind kinds[2] = {TWO_VIEW_PLANE, TWO_VIEW_ROTATION};
  for (int i = 0; i < 2; i++) {
    for (uint64_t seed = 0; seed < 10; seed++) {
      two_view_make(kinds[i], 300, 90, 0.4, 40 + seed, &v->scene);
      hs_verify_options o = verified_options(HS_FUNDAMENTAL, &v->scene);
      run(v, &o);
      assert_int_equal(v->geometry.plane_only, 1);
      assert_int_equal(v->geometry.plane_inliers, v->geometry.inlier_count);
      expect_inliers(v, 5, 1);
    }
  }
  two_view_make(TWO_VIEW_VOLUME, 300, 90, 0.4, 40, &v->scene);
  hs_verify_options o = verified_options(HS_FUNDAMENTAL, &v->scene);
  run(v, &o);
  assert_int_equal(v->geometry.plane_only, 0);
}

/* A plane with fewer inliers than min_inliers removes nothing from the first search's result. */
TEST(test_plane_of_too_few) {
  SCOPED_MEMORY verified *const v = verified_new();
  int tried = 0;
  for (uint64_t seed = 0; seed < 10; seed++) {
    two_view_make(TWO_VIEW_PLANE, 300, 90, 0.4, 40 + seed, &v->scene);
    hs_verify_options o = verified_options(HS_FUNDAMENTAL, &v->scene);
    run(v, &o);
    const size_t of_plane = v->geometry.inlier_count;
    o.refine = 0;
    o.min_inliers = (int32_t)of_plane + 1;
    run(v, &o);
    if (v->geometry.found == 0) continue;
    tried++;
    o.refine = 1;
    run(v, &o);
    assert_int_equal(v->geometry.found, 1);
    assert_int_equal(v->geometry.plane_only, 0);
    assert_true(v->geometry.inlier_count > of_plane);
  }
  assert_true(tried > 0);
}

/* With fewer inliers than refine_matches, the first search's result stays. */
TEST(test_few_matches_stand) {
  SCOPED_MEMORY verified *const v = verified_new();
  make_wall(3, &v->scene);
  hs_verify_options o;
  (void)hs_verify_options_init(&o, HS_FUNDAMENTAL);
  o.refine_matches = 591;
  run(v, &o);
  assert_true(v->geometry.tolerance == o.tolerance);
  const size_t inliers = v->geometry.inlier_count;
  o.refine = 0;
  run(v, &o);
  assert_int_equal(v->geometry.inlier_count, inliers);
}
