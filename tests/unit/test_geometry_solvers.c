/*
 * The minimal solvers and refits.
 *
 * For exact points the true model is among the solutions, and every solution has the properties of its kind. Refits
 * converge to the truth from nearby. Degenerate samples give no solution.
 */

#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "pipeline/matching/geometry/linear.h"
#include "pipeline/matching/geometry/search.h"
#include "pipeline/matching/geometry/scoring.h"
#include "tests/support/two_view_scene.h"

/* A scene in working coordinates, here (pixels - (320, 240)) / 300. */
typedef struct working_scene {
  two_view_scene scene;
  double columns[4][TWO_VIEW_MAX];
  geometry_problem problem;
} working_scene;

#define WORKING_SCALE (1.0 / 300.0)

static hs_camera working_camera(const hs_camera *c) {
  return (hs_camera){c->fx * WORKING_SCALE, c->fy * WORKING_SCALE, (c->cx - 320.0) * WORKING_SCALE,
                     (c->cy - 240.0) * WORKING_SCALE};
}

static working_scene *make_scene(two_view_kind kind, hs_geometry_model model, size_t count, double noise,
                                 uint64_t seed) {
  working_scene *const w = calloc(1, sizeof *w);
  assert_non_null(w);
  two_view_make(kind, count, 0, noise, seed, &w->scene);
  for (size_t i = 0; i < count; i++) {
    w->columns[0][i] = (w->scene.a[2 * i] - 320.0) * WORKING_SCALE;
    w->columns[1][i] = (w->scene.a[2 * i + 1] - 240.0) * WORKING_SCALE;
    w->columns[2][i] = (w->scene.b[2 * i] - 320.0) * WORKING_SCALE;
    w->columns[3][i] = (w->scene.b[2 * i + 1] - 240.0) * WORKING_SCALE;
  }
  w->problem.model = model;
  w->problem.ops = cpu_choose_two_view();
  w->problem.matches = (geometry_matches){count, w->columns[0], w->columns[1], w->columns[2], w->columns[3]};
  w->problem.camera_a = working_camera(&w->scene.camera_a);
  w->problem.camera_b = working_camera(&w->scene.camera_b);
  w->problem.threshold = 2.0 * WORKING_SCALE;
  return w;
}

/* Returns the candidates of one sample, which must not depend on the sample's lane in the batch. */
static int solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates) {
  static geometry_batch batch;
  const int size = geometry_sample_size(problem->model);
  uint32_t samples[GEOMETRY_BATCH * GEOMETRY_SAMPLE_MAX];
  for (int i = 0; i < GEOMETRY_BATCH * size; i++) samples[i] = sample[i % size];
  geometry_solve(problem, samples, NULL, &batch);
  const int count = batch.count / GEOMETRY_BATCH;
  assert_int_equal(batch.count, GEOMETRY_BATCH * count);
  for (int i = 0; i < batch.count; i++) {
    assert_int_equal(batch.found[i].sample, i / count);
    assert_memory_equal(batch.found[i].candidate.matrix, batch.found[i % count].candidate.matrix, 9 * sizeof(double));
    if (i < count) candidates[i] = batch.found[i].candidate;
  }
  return count;
}

/* Returns the largest error over all matches, in pixels. */
static double largest_error(const geometry_problem *problem, const double matrix[9]) {
  double largest = 0.0;
  for (size_t i = 0; i < problem->matches.count; i++) {
    double square;
    geometry_errors(problem, matrix, i, 1, &square);
    if (!(square <= largest)) largest = square;
  }
  return sqrt(largest) / WORKING_SCALE;
}

/* For samples of exact points, one of the solutions fits all other points too, and each solution fits its own
 * sample. */
static void expect_truth_among_solutions(hs_geometry_model model, two_view_kind kind, double bound,
                                         int missing_allowed) {
  working_scene *const w = make_scene(kind, model, 40, 0.0, 7);
  const int size = geometry_sample_size(model);
  random_state random = {11};
  int missing = 0, trials = 0;
  double worst = 0.0;
  for (int trial = 0; trial < 300; trial++) {
    uint32_t sample[GEOMETRY_SAMPLE_MAX];
    geometry_candidate candidates[GEOMETRY_SOLUTIONS_MAX];
    random_sample(&random, 40, size, sample);
    const int count = solve(&w->problem, sample, candidates);
    assert_in_range(count, 0, GEOMETRY_SOLUTIONS_MAX);
    if (count == 0 && model == HS_HOMOGRAPHY) continue; /* the points are nearly collinear */
    double best = INFINITY;
    for (int i = 0; i < count; i++) {
      best = fmin(best, largest_error(&w->problem, candidates[i].matrix));
      for (int k = 0; k < size; k++) {
        double square;
        geometry_errors(&w->problem, candidates[i].matrix, sample[k], 1, &square);
        if (model == HS_HOMOGRAPHY) assert_true(square < 1.0e-16);
      }
    }
    trials++;
    missing += !(best < bound);
    if (best < bound) worst = fmax(worst, best);
  }
  printf("             model %d: %d of %d samples without the truth, largest error %.3g px\n", (int)model, missing,
         trials, worst);
  assert_true(trials > 100);
  assert_true(missing <= missing_allowed);
  free(w);
}

TEST(test_truth_among_solutions) {
  expect_truth_among_solutions(HS_HOMOGRAPHY, TWO_VIEW_PLANE, 1.0e-6, 0);
  expect_truth_among_solutions(HS_HOMOGRAPHY, TWO_VIEW_ROTATION, 1.0e-6, 0);
  expect_truth_among_solutions(HS_FUNDAMENTAL, TWO_VIEW_VOLUME, 1.0e-3, 6);
  /* the search for roots misses two solutions within one cell */
  expect_truth_among_solutions(HS_ESSENTIAL, TWO_VIEW_VOLUME, 1.0e-3, 15);
  expect_truth_among_solutions(HS_ESSENTIAL, TWO_VIEW_PLANE, 1.0e-3, 15);
}

/* Fundamental matrices are singular; essential ones also have equal singular values. */
TEST(test_solutions_are_of_their_kind) {
  for (hs_geometry_model model = HS_FUNDAMENTAL; model <= HS_ESSENTIAL; model++) {
    SCOPED_MEMORY working_scene *const w = make_scene(TWO_VIEW_VOLUME, model, 40, 0.5, 3);
    const int size = geometry_sample_size(model);
    random_state random = {12};
    int solutions = 0;
    for (int trial = 0; trial < 200; trial++) {
      uint32_t sample[GEOMETRY_SAMPLE_MAX];
      geometry_candidate candidates[GEOMETRY_SOLUTIONS_MAX];
      random_sample(&random, 40, size, sample);
      const int count = solve(&w->problem, sample, candidates);
      for (int i = 0; i < count; i++) {
        double u[9], s[3], v[9];
        linear_svd3(model == HS_ESSENTIAL ? candidates[i].essential : candidates[i].matrix, u, s, v);
        assert_true(s[2] < 1.0e-6 * s[0]);
        if (model == HS_ESSENTIAL) assert_true(s[0] - s[1] < 1.0e-6 * s[0]);
        solutions++;
      }
    }
    assert_true(solutions > 100);
  }
}

static void expect_no_solutions(const geometry_problem *problem, const uint32_t *sample) {
  geometry_candidate candidates[GEOMETRY_SOLUTIONS_MAX];
  const int count = solve(problem, sample, candidates);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 9; k++) assert_true(isfinite(candidates[i].matrix[k]));
  if (problem->model == HS_HOMOGRAPHY) assert_int_equal(count, 0);
}

TEST(test_degenerate_samples) {
  const uint32_t plain[7] = {0, 5, 11, 17, 23, 29, 35}, twice[7] = {4, 4, 9, 12, 20, 26, 31};
  for (hs_geometry_model model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL; model++) {
    working_scene *const line = make_scene(TWO_VIEW_LINE, model, 40, 0.0, 1);
    expect_no_solutions(&line->problem, plain);
    expect_no_solutions(&line->problem, twice);
    free(line);
    SCOPED_MEMORY working_scene *const same = make_scene(TWO_VIEW_PLANE, model, 40, 0.0, 1);
    expect_no_solutions(&same->problem, twice);
    memset(same->columns, 0, sizeof same->columns);
    expect_no_solutions(&same->problem, plain);
  }
  /* four points: one image mirrors a triangle of them, which no camera can see */
  SCOPED_MEMORY working_scene *const w = make_scene(TWO_VIEW_PLANE, HS_HOMOGRAPHY, 4, 0.0, 1);
  const double a[4][2] = {{0.0, 0.0}, {1.0, 0.0}, {0.0, 1.0}, {1.0, 1.0}};
  const double b[4][2] = {{0.0, 0.0}, {1.0, 0.0}, {0.0, 1.0}, {0.2, 0.2}};
  for (int i = 0; i < 4; i++) {
    w->columns[0][i] = a[i][0];
    w->columns[1][i] = a[i][1];
    w->columns[2][i] = b[i][0];
    w->columns[3][i] = b[i][1];
  }
  const uint32_t four[4] = {0, 1, 2, 3};
  expect_no_solutions(&w->problem, four);
}

/* Starting from a model that is wrong by some pixels, reweighted least squares on exact points converges to the
 * truth. */
TEST(test_refit_converges) {
  const two_view_kind kinds[4] = {TWO_VIEW_VOLUME, TWO_VIEW_PLANE, TWO_VIEW_VOLUME, TWO_VIEW_VOLUME};
  for (hs_geometry_model model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL; model++) {
    SCOPED_MEMORY working_scene *const exact = make_scene(kinds[model], model, 60, 0.0, 9);
    SCOPED_MEMORY working_scene *const noisy = make_scene(kinds[model], model, 60, 0.7, 9);
    const int size = geometry_sample_size(model);
    random_state random = {13};
    geometry_candidate start = {{0.0}, {0.0}, 0.0};
    exact->problem.threshold = 5.0 * WORKING_SCALE;
    for (int trial = 0; trial < 300; trial++) {
      uint32_t sample[GEOMETRY_SAMPLE_MAX];
      geometry_candidate candidates[GEOMETRY_SOLUTIONS_MAX];
      random_sample(&random, 60, size, sample);
      const int count = solve(&noisy->problem, sample, candidates);
      for (int i = 0; i < count; i++) {
        candidates[i].score = geometry_score(&exact->problem, candidates[i].matrix, 0.0);
        if (candidates[i].score > start.score) start = candidates[i];
      }
    }
    const double before = largest_error(&exact->problem, start.matrix);
    geometry_polish(&exact->problem, &start);
    const double after = largest_error(&exact->problem, start.matrix);
    printf("             model %d: largest error %.3g px before, %.3g px after\n", (int)model, before, after);
    assert_true(before > 0.05);
    assert_true(after < 1.0e-6);
  }
}

/* Computes a matrix near m of the same kind: disturbs the elements of m, then corrects its singular values. */
static void disturb(hs_geometry_model model, const double m[9], double size, random_state *random, double out[9]) {
  double near[9], u[9], s[3], v[9];
  for (int i = 0; i < 9; i++) near[i] = m[i] + size * ((double)random_next(random) * 0x1p-63 - 1.0);
  linear_svd3(near, u, s, v);
  if (model == HS_ESSENTIAL) s[0] = s[1] = 0.5 * (s[0] + s[1]);
  for (int i = 0; i < 9; i++)
    out[i] = s[0] * u[3 * (i / 3)] * v[3 * (i % 3)] + s[1] * u[3 * (i / 3) + 1] * v[3 * (i % 3) + 1];
}

/* Returns the score that polishing maximises. */
static double height_of(const geometry_problem *problem, const geometry_candidate *candidate) {
  geometry_problem near = *problem;
  near.threshold *= 0.5;
  const double score = geometry_score(problem, candidate->matrix, 0.0);
  return problem->model == HS_ESSENTIAL ? score + geometry_score(&near, candidate->matrix, 0.0) : score;
}

/* On noisy matches polishing finds the maximum of the score: no matrix nearby scores higher. */
TEST(test_polish_ends_on_top) {
  for (hs_geometry_model model = HS_FUNDAMENTAL; model <= HS_ESSENTIAL; model++) {
    SCOPED_MEMORY working_scene *const w = make_scene(TWO_VIEW_VOLUME, model, 100, 1.0, 5);
    random_state random = {14};
    geometry_candidate start = {{0.0}, {0.0}, 0.0};
    w->problem.threshold = 4.0 * WORKING_SCALE;
    for (int trial = 0; trial < 100; trial++) {
      uint32_t sample[GEOMETRY_SAMPLE_MAX];
      geometry_candidate candidates[GEOMETRY_SOLUTIONS_MAX];
      random_sample(&random, 100, geometry_sample_size(model), sample);
      const int count = solve(&w->problem, sample, candidates);
      for (int i = 0; i < count; i++) {
        candidates[i].score = geometry_score(&w->problem, candidates[i].matrix, 0.0);
        if (candidates[i].score > start.score) start = candidates[i];
      }
    }
    geometry_polish(&w->problem, &start);
    const double top = height_of(&w->problem, &start);
    double highest = top;
    for (int trial = 0; trial < 3000; trial++) {
      geometry_candidate near = start;
      double *const moved = model == HS_ESSENTIAL ? near.essential : near.matrix;
      disturb(model, model == HS_ESSENTIAL ? start.essential : start.matrix, trial % 2 == 0 ? 1.0e-5 : 1.0e-4, &random,
              moved);
      if (model == HS_ESSENTIAL) essential_to_matrix(&w->problem, &near);
      highest = fmax(highest, height_of(&w->problem, &near));
    }
    printf("             model %d: %.9g after polishing, at most %.3g more nearby\n", (int)model, top, highest - top);
    assert_true(top > 40.0);
    assert_true(highest - top < 1.0e-7 * top);
  }
}

/* The error of a match is the distance by which its points must move: along the normal of an epipolar line, or from a
 * mapped point. */
TEST(test_errors_are_pixels) {
  /* shift: a translation along x with b = a + (3, 0) exactly. The second matrix is F of a sideways camera, for which y
   * is equal in both images. */
  const double shift[9] = {1.0, 0.0, 3.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
  const double rows_equal[9] = {0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0};
  const double ax = 5.0, ay = 7.0, bx = 8.0 + 0.6, by = 7.0 + 0.8;
  geometry_problem problem = {.matches = {1, &ax, &ay, &bx, &by}, .ops = cpu_choose_two_view()};
  double square;
  problem.model = HS_HOMOGRAPHY;
  geometry_errors(&problem, shift, 0, 1, &square);
  assert_true(fabs(square - 0.5) < 1.0e-14); /* |x' - H x| = 1, but both points may move, so the error is 1 / sqrt 2 */
  problem.model = HS_FUNDAMENTAL;
  geometry_errors(&problem, rows_equal, 0, 1, &square);
  assert_true(fabs(square - 0.32) < 1.0e-14); /* the lines are 0.8 apart, and both points share this distance */
  problem.model = HS_HOMOGRAPHY;
  const double behind[9] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 1.0};
  geometry_errors(&problem, behind, 0, 1, &square);
  assert_true(isinf(square));
}
