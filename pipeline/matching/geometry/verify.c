/* Verification of matches: conversion to working coordinates, search, and conversion of the result. */
#include "pipeline/matching/geometry/verify.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/matching/geometry/linear.h"
#include "pipeline/matching/geometry/models.h"
#include "pipeline/matching/geometry/scoring.h"
#include "pipeline/matching/geometry/search.h"

#define COORDINATE_MAX 1.0e6
/* The tolerance of the second search is SEARCH_MEDIANS times the median error of the first search's smooth inliers; the
   final tolerance is INLIER_SEARCHES times the tolerance of the second search. Keypoint errors have heavy tails: 99 of
   100 are within 16 medians (Strecha's scenes castle and entry). */
#define SEARCH_MEDIANS  3.0
#define INLIER_SEARCHES 4.0
#define PRECISION_MIN   0.5  /* pixels; smaller errors are rounding and noise of a keypoint's position */
#define SMOOTH_FLOOR    3.0  /* pixels; this difference between neighbours is always allowed */
#define SETTLED_SHARE   0.97 /* minimum share of the first inliers with which the first matrix is kept */
#define SETTLED_PRECISE 0.25 /* SETTLED_SHARE applies up to this share of the first tolerance */
#define KEPT_SHARE      0.75 /* the second search has failed if it keeps less than this share of the smooth inliers */
#define PLANE_SHARE     0.5  /* a plane replaces the model if it has more than this share of the inliers */
#define POLISHED_SHARE  0.4  /* a plane cannot replace the model if it has less than this share of the inliers */
/* the Sampson error is this share of an error in one image, because it is distributed over both */
#define PLANE_ERROR 0.70710678118654752
enum {
  ITERATIONS_MAX = 100000000,
  PLANE_ITERATIONS = 100,
  PLANE_MATCHES = 256,
  MEDIAN_OF = 255,
  SETTLED_TESTED = 128, /* number of matches tested for smoothness */
  OFF_PLANE_MIN = 8     /* minimum number of matches off a plane that determine the epipole */
};

/* Working memory and coordinates of a verification: working = scale * (pixels - centre). */
typedef struct verification {
  const hs_verify_options *options;
  double *columns[4];        /* ax ay bx by, in random order */
  double *inlier_columns[4]; /* coordinates of the inliers, as columns */
  double *smooth_columns[4]; /* coordinates of the smooth inliers, as columns */
  smoothness_scratch smoothness;
  search_scratch search;
  uint32_t *source; /* [match]: its index among the caller's matches */
  uint8_t *mask;
  uint8_t *smooth;
  double scale;
  double centre[4];
  geometry_problem problem;
} verification;

OPTIONS_END_WITH(hs_verify_options, refine_matches);
static const options_kind kind = OPTIONS_KIND(hs_verify_options, model);

static hs_verify_options defaults_of(hs_geometry_model model) {
  return (hs_verify_options){.struct_size = sizeof(hs_verify_options),
                             .model = model,
                             .tolerance = model == HS_HOMOGRAPHY ? 3.0 : 2.0,
                             .confidence = 0.9999,
                             .min_iterations = 50,
                             .max_iterations = 10000,
                             .min_inliers = model == HS_HOMOGRAPHY ? 8 : 15,
                             .check_plane = 1,
                             .refine = 1,
                             .refine_matches = 30};
}

static bool model_exists(hs_geometry_model model) { return model >= HS_HOMOGRAPHY && model <= HS_ESSENTIAL; }

hs_status hs_verify_options_init_sized(hs_verify_options *options, size_t struct_size, hs_geometry_model model) {
  if (!model_exists(model)) return HS_ERR_ARGUMENT;
  const hs_verify_options defaults = defaults_of(model);
  return options_give(options, struct_size, &defaults, kind);
}

hs_status geometry_adopt_options(const hs_verify_options *callers, hs_verify_options *mine) {
  if (!callers) return HS_ERR_ARGUMENT;
  char reason[ADOPT_REASON_BYTES];
  hs_verify_options known = {0};
  (void)options_adopt(&known, callers, kind, reason);
  *mine = defaults_of(known.model);
  const hs_status status = options_adopt(mine, callers, kind, reason);
  return hs_message_fail(status, mine->message, mine->message_bytes, "%s", reason);
}

const hs_allocator *geometry_allocator(const hs_verify_options *callers) {
  hs_verify_options full;
  return geometry_adopt_options(callers, &full) == HS_OK ? full.allocator : NULL;
}

static const char *fault_of(const hs_verify_options *o) {
  if (!model_exists(o->model)) return "model: no such model";
  if (!(o->tolerance > 0.0) || !isfinite(o->tolerance)) return "tolerance: above 0 expected";
  if (!(o->confidence > 0.0 && o->confidence < 1.0)) return "confidence: between 0 and 1 expected";
  if (o->max_iterations < 1 || o->max_iterations > ITERATIONS_MAX) return "max_iterations: 1..10^8 expected";
  if (o->min_iterations < 0 || o->min_iterations > o->max_iterations)
    return "min_iterations: 0..max_iterations expected";
  if (o->min_inliers < 0) return "min_inliers: 0 or more expected";
  if (o->check_plane < 0 || o->check_plane > 1) return "check_plane: 0 or 1 expected";
  if (o->refine < 0 || o->refine > 1) return "refine: 0 or 1 expected";
  if (o->refine_matches < 0) return "refine_matches: 0 or more expected";
  if (o->model == HS_ESSENTIAL && (!geometry_camera_valid(&o->camera_a) || !geometry_camera_valid(&o->camera_b)))
    return "camera_a, camera_b: focal lengths above 0 and finite principal points expected";
  return NULL;
}

static bool coordinate_valid(double v) { return v >= -COORDINATE_MAX && v <= COORDINATE_MAX; }

/* Copies the valid matches in an order shuffled by the seed. */
static void take_points(verification *v, const double *points_a, const double *points_b, size_t count,
                        random_state *random) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    const double *const a = points_a + 2 * (size_t)i, *const b = points_b + 2 * (size_t)i;
    if (!coordinate_valid(a[0]) || !coordinate_valid(a[1]) || !coordinate_valid(b[0]) || !coordinate_valid(b[1]))
      continue;
    const uint32_t at = random_below(random, kept + 1); /* inside-out shuffle */
    v->source[kept] = v->source[at];
    v->source[at] = i;
    kept++;
  }
  for (uint32_t k = 0; k < kept; k++) {
    const size_t i = v->source[k];
    v->columns[0][k] = points_a[2 * i];
    v->columns[1][k] = points_a[2 * i + 1];
    v->columns[2][k] = points_b[2 * i];
    v->columns[3][k] = points_b[2 * i + 1];
  }
  v->problem.matches.count = kept;
}

/* Centres the points of each image at their mean, and scales all to a mean distance of about 1. */
static void to_working(verification *v) {
  const size_t count = v->problem.matches.count;
  double spread = 0.0;
  for (int c = 0; c < 4; c++) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) sum += v->columns[c][i];
    v->centre[c] = count > 0 ? sum / (double)count : 0.0;
    for (size_t i = 0; i < count; i++) {
      v->columns[c][i] -= v->centre[c];
      spread += v->columns[c][i] * v->columns[c][i];
    }
  }
  v->scale = spread > 0.0 ? sqrt(2.0 * (double)count / spread) : 1.0;
  for (int c = 0; c < 4; c++)
    for (size_t i = 0; i < count; i++) v->columns[c][i] *= v->scale;
  geometry_problem *const p = &v->problem;
  p->model = v->options->model;
  p->ops = cpu_choose_two_view();
  p->matches.ax = v->columns[0];
  p->matches.ay = v->columns[1];
  p->matches.bx = v->columns[2];
  p->matches.by = v->columns[3];
  p->threshold = v->options->tolerance * v->scale;
  const hs_camera *const a = &v->options->camera_a, *const b = &v->options->camera_b;
  p->camera_a = (hs_camera){a->fx * v->scale, a->fy * v->scale, (a->cx - v->centre[0]) * v->scale,
                            (a->cy - v->centre[1]) * v->scale};
  p->camera_b = (hs_camera){b->fx * v->scale, b->fy * v->scale, (b->cx - v->centre[2]) * v->scale,
                            (b->cy - v->centre[3]) * v->scale};
}

/* Memory per match: points, columns, columns of inliers and of smooth inliers, mapped point, error, source, order,
   cell, two marks, one mark for the caller, and bits of shared points. */
enum {
  MATCH_DOUBLES = 4 + 4 + 4 + 4 + 2 + 1,
  MATCH_BYTES = MATCH_DOUBLES * sizeof(double) + sizeof(uint64_t) + 3 * sizeof(uint32_t) + 3
};

uint64_t verify_scratch_bytes(size_t count) { return (uint64_t)count * MATCH_BYTES + sizeof(geometry_batch); }

void verify_scratch_release(verify_scratch *scratch) {
  hs_memory_release(scratch->allocator, scratch->memory);
  scratch->memory = NULL;
  scratch->match_capacity = 0;
}

hs_status verify_scratch_reserve(verify_scratch *scratch, size_t count, double **points) {
  if (!scratch->memory || scratch->match_capacity < count) {
    const uint64_t bytes = verify_scratch_bytes(count);
    if (count > SIZE_MAX / MATCH_BYTES || bytes > SIZE_MAX) return HS_ERR_LIMIT;
    verify_scratch_release(scratch); /* freed before the new allocation, so that both never exist at the same time */
    scratch->memory = hs_memory_alloc(scratch->allocator, (size_t)bytes);
    if (!scratch->memory) return HS_ERR_MEMORY;
    scratch->match_capacity = count;
  }
  *points = (double *)(void *)((geometry_batch *)scratch->memory + 1);
  return HS_OK;
}

uint8_t *verify_scratch_mask(const verify_scratch *scratch) {
  return (uint8_t *)scratch->memory + verify_scratch_bytes(scratch->match_capacity) - scratch->match_capacity;
}

static void lay_out(verification *v, const verify_scratch *scratch, double *points) {
  const size_t capacity = scratch->match_capacity;
  double *const columns = points + 4 * capacity;
  for (int c = 0; c < 4; c++) {
    v->columns[c] = columns + (size_t)c * capacity;
    v->inlier_columns[c] = columns + (size_t)(4 + c) * capacity;
    v->smooth_columns[c] = columns + (size_t)(8 + c) * capacity;
    /* the search and the inliers are never needed at the same time, so they share memory */
    v->search.columns[c] = v->inlier_columns[c];
  }
  v->smoothness.mapped_x = columns + 12 * capacity;
  v->smoothness.mapped_y = columns + 13 * capacity;
  v->search.squares = columns + 14 * capacity;
  v->search.batch = scratch->memory;
  v->search.twins = (uint64_t *)(void *)(v->search.squares + capacity);
  v->source = (uint32_t *)(void *)(v->search.twins + capacity);
  v->smoothness.order = v->source + capacity;
  v->smoothness.cell = v->source + 2 * capacity;
  v->mask = (uint8_t *)(v->source + 3 * capacity);
  v->smooth = v->mask + capacity;
}

/* Copies the marked matches to inlier_columns and returns them. */
static geometry_matches marked_matches(const verification *v) {
  size_t count = 0;
  for (size_t i = 0; i < v->problem.matches.count; i++) {
    if (!v->mask[i]) continue;
    for (int c = 0; c < 4; c++) v->inlier_columns[c][count] = v->columns[c][i];
    count++;
  }
  return (geometry_matches){count, v->inlier_columns[0], v->inlier_columns[1], v->inlier_columns[2],
                            v->inlier_columns[3]};
}

/* True if all points are near one line (or one point): the root mean square distance to the best line is below
   `height`. */
static bool on_a_line(const double *x, const double *y, size_t count, double height) {
  double mean_x = 0.0, mean_y = 0.0, xx = 0.0, xy = 0.0, yy = 0.0;
  for (size_t i = 0; i < count; i++) {
    mean_x += x[i];
    mean_y += y[i];
  }
  mean_x /= (double)count;
  mean_y /= (double)count;
  for (size_t i = 0; i < count; i++) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  const double across = 0.5 * (xx + yy - sqrt((xx - yy) * (xx - yy) + 4.0 * xy * xy));
  return !(across > height * height * (double)count);
}

static geometry_problem planar_problem(const verification *v, const geometry_matches *matches) {
  geometry_problem planar = v->problem;
  planar.model = HS_HOMOGRAPHY;
  planar.matches = *matches;
  return planar;
}

/* Searches a random subset for the homography that explains most of these matches. False: none was found. */
static bool find_plane(const verification *v, const geometry_matches *matches, random_state *random,
                       geometry_candidate *plane) {
  const search_limits limits = {0.99, 0, PLANE_ITERATIONS, 0, false, true};
  geometry_problem planar = planar_problem(v, matches);
  if (planar.matches.count > PLANE_MATCHES) planar.matches.count = PLANE_MATCHES;
  int32_t iterations;
  if (!search_run(&planar, &limits, random, &v->search, plane, &iterations)) return false;
  const size_t agreeing = geometry_count_inliers(&planar, plane->matrix, NULL, NULL);
  if ((double)agreeing >= POLISHED_SHARE * (double)planar.matches.count) geometry_polish(&planar, plane);
  return true;
}

/* Converts the matrix to the caller's coordinates, scaled as hs_geometry specifies. */
static void to_caller(const verification *v, const geometry_candidate *best, double out[9]) {
  const double s = v->scale, *const c = v->centre;
  const double move_a[9] = {s, 0.0, -s * c[0], 0.0, s, -s * c[1], 0.0, 0.0, 1.0};
  double half[9];
  if (v->problem.model == HS_HOMOGRAPHY) {
    const double back_b[9] = {1.0 / s, 0.0, c[2], 0.0, 1.0 / s, c[3], 0.0, 0.0, 1.0};
    linear_multiply3(best->matrix, move_a, half);
    linear_multiply3(back_b, half, out);
    (void)linear_normalize(out, 9);
    if (!(fabs(out[8]) > 1.0e-12)) return;
    const double last = out[8];
    for (int i = 0; i < 9; i++) out[i] /= last;
    return;
  }
  if (v->problem.model == HS_FUNDAMENTAL) {
    const double move_b_transposed[9] = {s, 0.0, 0.0, 0.0, s, 0.0, -s * c[2], -s * c[3], 1.0};
    linear_multiply3(best->matrix, move_a, half);
    linear_multiply3(move_b_transposed, half, out);
    (void)linear_normalize(out, 9);
  } else {
    double u[9], singular[3], w[9];
    linear_svd3(best->essential, u, singular, w);
    for (int i = 0; i < 9; i++) out[i] = u[3 * (i / 3)] * w[3 * (i % 3)] + u[3 * (i / 3) + 1] * w[3 * (i % 3) + 1];
  }
  int largest = 0;
  for (int i = 1; i < 9; i++) largest = fabs(out[i]) > fabs(out[largest]) ? i : largest;
  if (out[largest] < 0.0)
    for (int i = 0; i < 9; i++) out[i] = -out[i];
}

/* ------------------------------------------------------------------ the second search */

/* Result of a search: the model, its plane, and its inliers. */
typedef struct outcome {
  geometry_candidate best, plane;
  bool has_plane, plane_only;
  double threshold; /* maximum error of an inlier, working units */
  size_t count;     /* number of inliers, which the mask marks */
  double squares;   /* sum of the inliers' squared errors */
} outcome;

static void count_outcome(const verification *v, outcome *found) {
  geometry_problem problem = v->problem;
  problem.threshold = found->threshold;
  found->count = geometry_count_inliers(&problem, found->best.matrix, v->mask, &found->squares);
}

static geometry_matches smooth_matches(const verification *v, const geometry_matches *matches) {
  size_t count = 0;
  for (size_t i = 0; i < matches->count; i++) {
    if (v->smooth[i] == 0) continue;
    v->smooth_columns[0][count] = matches->ax[i];
    v->smooth_columns[1][count] = matches->ay[i];
    v->smooth_columns[2][count] = matches->bx[i];
    v->smooth_columns[3][count] = matches->by[i];
    count++;
  }
  return (geometry_matches){count, v->smooth_columns[0], v->smooth_columns[1], v->smooth_columns[2],
                            v->smooth_columns[3]};
}

/* Returns the median squared error of the first MEDIAN_OF matches, which are in random order. */
static double median_square(const geometry_problem *problem, const double matrix[9]) {
  double squares[MEDIAN_OF];
  const size_t count = problem->matches.count < MEDIAN_OF ? problem->matches.count : MEDIAN_OF;
  geometry_errors(problem, matrix, 0, count, squares);
  for (size_t i = 1; i < count; i++) {
    const double value = squares[i];
    size_t k = i;
    for (; k > 0 && squares[k - 1] > value; k--) squares[k] = squares[k - 1];
    squares[k] = value;
  }
  return count > 0 ? squares[count / 2] : 0.0;
}

/* True if only a plane is certain: it has most of the inliers, and off the plane no more matches agree with the matrix
   than by chance. The points span about two units, so an unrelated match is within the threshold on either side of an
   epipolar line with probability 2 threshold / 2. */
static bool only_plane(const verification *v, const geometry_matches *marked, const outcome *found) {
  const geometry_problem inliers = planar_problem(v, marked);
  if ((double)geometry_count_inliers(&inliers, found->plane.matrix, NULL, NULL) < PLANE_SHARE * (double)marked->count)
    return false;
  const geometry_problem planar = planar_problem(v, &v->problem.matches);
  const double limit = planar.threshold * planar.threshold;
  double off = 0.0, agreeing = 0.0;
  geometry_errors(&planar, found->plane.matrix, 0, planar.matches.count, v->search.squares);
  for (size_t i = 0; i < planar.matches.count; i++) {
    if (v->search.squares[i] <= limit) continue;
    off += 1.0;
    agreeing += v->mask[i];
  }
  const double by_chance = off * found->threshold;
  return agreeing < (double)OFF_PLANE_MIN || agreeing <= by_chance + 4.0 * sqrt(by_chance);
}

/* Replaces the model's inliers by those of the plane, and the matrix by one that fits them. */
static void keep_plane(const verification *v, outcome *found) {
  geometry_problem planar = planar_problem(v, &v->problem.matches);
  planar.threshold *= PLANE_ERROR;
  geometry_polish(&planar, &found->plane);
  found->plane_only = true;
  found->threshold = planar.threshold;
  (void)plane_epipolar(found->plane.matrix, found->best.matrix);
  found->count = geometry_count_inliers(&planar, found->plane.matrix, v->mask, &found->squares);
}

/* Returns the tolerance of the second search, measured from these matches' errors. */
static double measured_tolerance(const verification *v, const geometry_matches *matches, const double matrix[9]) {
  geometry_problem problem = v->problem;
  problem.matches = *matches;
  const double least = PRECISION_MIN * v->scale, most = v->problem.threshold;
  const double measured = SEARCH_MEDIANS * sqrt(median_square(&problem, matrix));
  const double tolerance = measured > least ? measured : least;
  return tolerance < most ? tolerance : most;
}

static size_t mark_smooth(const verification *v, const geometry_matches *marked, const outcome *found, size_t tested) {
  return smoothness_mark(marked, found->plane.matrix, SMOOTH_FLOOR * v->scale, &v->smoothness, tested, v->smooth);
}

/* True if nearly all inliers are so precise and smooth that another search would find the same model. */
static bool is_settled(const verification *v, const geometry_problem *again, const outcome *found) {
  const size_t count = again->matches.count, tested = count < SETTLED_TESTED ? count : SETTLED_TESTED;
  return again->threshold <= SETTLED_PRECISE * v->problem.threshold &&
         (double)geometry_count_inliers(again, found->best.matrix, NULL, NULL) >= SETTLED_SHARE * (double)count &&
         (double)mark_smooth(v, &again->matches, found, tested) >= SETTLED_SHARE * (double)tested;
}

/* Searches again among the smooth inliers, with a tolerance measured from their errors, so that wrong matches within
   the first tolerance have no influence. marked: inliers of the first search. */
static void refine(verification *v, const geometry_matches *marked, random_state *random, outcome *found) {
  const hs_verify_options *const o = v->options;
  const double most = v->problem.threshold;
  geometry_problem again = v->problem;
  outcome second = *found;
  again.matches = *marked;
  again.threshold = measured_tolerance(v, marked, found->best.matrix);
  if (!is_settled(v, &again, found)) {
    if (mark_smooth(v, marked, found, marked->count) < (size_t)o->min_inliers) return;
    again.matches = smooth_matches(v, marked);
    again.threshold = measured_tolerance(v, &again.matches, found->best.matrix);
    const search_limits limits = {o->confidence,          o->min_iterations,   o->max_iterations,
                                  (size_t)o->min_inliers, o->check_plane != 0, false};
    int32_t iterations;
    if (!search_run(&again, &limits, random, &v->search, &second.best, &iterations)) return;
  }
  second.threshold = INLIER_SEARCHES * again.threshold;
  if (!(second.threshold < most)) second.threshold = most;
  again.threshold = second.threshold;
  if ((double)geometry_count_inliers(&again, second.best.matrix, NULL, NULL) < KEPT_SHARE * (double)again.matches.count)
    return;
  *found = second;
  count_outcome(v, found);
}

/* ---- entry points */

/* True if the marked matches are a valid result: they are enough, and not on a line. */
static bool suffices(const verification *v, const outcome *found, const geometry_matches *marked) {
  const hs_verify_options *const o = v->options;
  return found->count >= (size_t)o->min_inliers && found->count >= (size_t)geometry_sample_size(o->model) &&
         !on_a_line(marked->ax, marked->ay, found->count, v->problem.threshold) &&
         !on_a_line(marked->bx, marked->by, found->count, v->problem.threshold);
}

static void report(const verification *v, const outcome *found, uint8_t *inliers, hs_geometry *geometry) {
  geometry->found = 1;
  to_caller(v, &found->best, geometry->matrix);
  geometry->inlier_count = found->count;
  geometry->plane_only = found->plane_only;
  geometry->tolerance = found->threshold / v->scale;
  /* rounding can make squares negative for matches that a homography maps almost to infinity */
  geometry->rms_error = found->squares > 0.0 ? sqrt(found->squares / (double)found->count) / v->scale : 0.0;
  geometry->plane_inliers = v->options->model == HS_HOMOGRAPHY ? found->count : 0;
  if (v->options->model != HS_HOMOGRAPHY && found->has_plane) {
    const geometry_matches marked = marked_matches(v);
    const geometry_problem planar = planar_problem(v, &marked);
    geometry->plane_inliers = geometry_count_inliers(&planar, found->plane.matrix, NULL, NULL);
  }
  for (size_t k = 0; inliers && k < v->problem.matches.count; k++) inliers[v->source[k]] = v->mask[k];
}

/* Searches, and writes the result. */
static void search_and_report(verification *v, random_state *random, uint8_t *inliers, hs_geometry *geometry) {
  const hs_verify_options *const o = v->options;
  const search_limits limits = {o->confidence,          o->min_iterations,   o->max_iterations,
                                (size_t)o->min_inliers, o->check_plane != 0, false};
  outcome found = {.threshold = v->problem.threshold};
  if (!search_run(&v->problem, &limits, random, &v->search, &found.best, &geometry->iterations)) return;
  count_outcome(v, &found);
  geometry_matches marked = marked_matches(v);
  if (!suffices(v, &found, &marked)) return;
  if (o->model != HS_HOMOGRAPHY) {
    found.has_plane = find_plane(v, &marked, random, &found.plane);
    if (found.has_plane && o->refine != 0 && found.count >= (size_t)o->refine_matches) {
      const outcome first = found;
      refine(v, &marked, random, &found);
      marked = marked_matches(v);
      if (o->model == HS_FUNDAMENTAL && only_plane(v, &marked, &found)) {
        keep_plane(v, &found);
        marked = marked_matches(v);
      }
      if (!suffices(v, &found, &marked)) {
        found = first;
        count_outcome(v, &found);
      }
    }
  }
  report(v, &found, inliers, geometry);
}

static hs_status check_count(const hs_verify_options *options, size_t count) {
  if (count <= GEOMETRY_MATCHES_MAX) return HS_OK;
  return hs_message_fail(HS_ERR_LIMIT, options->message, options->message_bytes,
                         "%zu matches: at most 2^26 can be verified at once", count);
}

hs_status verify_points_with(verify_scratch *scratch, const double *points_a, const double *points_b, size_t count,
                             const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry) {
  if (!geometry) return HS_ERR_ARGUMENT;
  memset(geometry, 0, sizeof *geometry);
  hs_verify_options full;
  hs_status status = geometry_adopt_options(options, &full);
  if (status != HS_OK) return status;
  const char *const fault = fault_of(&full);
  if (fault) return hs_message_fail(HS_ERR_OPTION, full.message, full.message_bytes, "%s", fault);
  if (count > 0 && (!points_a || !points_b)) return HS_ERR_ARGUMENT;
  status = check_count(&full, count);
  if (status != HS_OK) return status;
  if (inliers && count > 0) memset(inliers, 0, count);
  geometry->model = full.model;
  if (count < (size_t)geometry_sample_size(full.model) || count < (size_t)full.min_inliers) return HS_OK;
  double *points;
  verification v = {.options = &full};
  status = verify_scratch_reserve(scratch, count, &points);
  if (status != HS_OK) {
    memset(geometry, 0, sizeof *geometry);
    return hs_message_fail(status, full.message, full.message_bytes, "out of memory for %zu matches", count);
  }
  lay_out(&v, scratch, points);
  random_state random = {full.seed};
  take_points(&v, points_a, points_b, count, &random);
  to_working(&v);
  search_and_report(&v, &random, inliers, geometry);
  return HS_OK;
}

hs_status hs_verify_points(const double *points_a, const double *points_b, size_t count,
                           const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  verify_scratch scratch = {geometry_allocator(options), NULL, 0};
  const hs_status status = verify_points_with(&scratch, points_a, points_b, count, options, inliers, geometry);
  verify_scratch_release(&scratch);
  return status;
}

/* Verification of matches between lists of features: their positions are gathered into arrays of points. */

enum { PAIR_BYTES = 2 * sizeof(uint32_t) };

hs_status hs_gather_points(const hs_features *a, const hs_features *b, const void *pairs, size_t pair_stride_bytes,
                           size_t count, double *points_a, double *points_b) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (count == 0) return HS_OK;
  const size_t stride = pair_stride_bytes > 0 ? pair_stride_bytes : PAIR_BYTES;
  if (!a || !b || !pairs || !points_a || !points_b || stride < PAIR_BYTES) return HS_ERR_ARGUMENT;
  if (!a->keypoints || !b->keypoints) return HS_ERR_ARGUMENT;
  const unsigned char *record = pairs;
  for (size_t i = 0; i < count; i++, record += stride) {
    uint32_t index[2];
    memcpy(index, record, sizeof index);
    if (index[0] >= a->count || index[1] >= b->count) return HS_ERR_ARGUMENT;
    const hs_keypoint *const p = a->keypoints + index[0], *const q = b->keypoints + index[1];
    points_a[2 * i] = (double)p->x;
    points_a[2 * i + 1] = (double)p->y;
    points_b[2 * i] = (double)q->x;
    points_b[2 * i + 1] = (double)q->y;
  }
  return HS_OK;
}

hs_status verify_features_with(verify_scratch *scratch, const hs_features *a, const hs_features *b, const void *pairs,
                               size_t pair_stride_bytes, size_t count, const hs_verify_options *options,
                               uint8_t *inliers, hs_geometry *geometry) {
  if (!geometry) return HS_ERR_ARGUMENT;
  memset(geometry, 0, sizeof *geometry);
  hs_verify_options full;
  hs_status status = geometry_adopt_options(options, &full);
  if (status != HS_OK) return status;
  status = check_count(&full, count);
  if (status != HS_OK) return status;
  double *points = NULL;
  status = verify_scratch_reserve(scratch, count, &points);
  if (status != HS_OK)
    return hs_message_fail(status, full.message, full.message_bytes, "out of memory for %zu matches", count);
  status = hs_gather_points(a, b, pairs, pair_stride_bytes, count, points, points + 2 * count);
  if (status != HS_OK) return status;
  return verify_points_with(scratch, points, points + 2 * count, count, &full, inliers, geometry);
}

hs_status hs_verify(const hs_features *a, const hs_features *b, const void *pairs, size_t pair_stride_bytes,
                    size_t count, const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  verify_scratch scratch = {geometry_allocator(options), NULL, 0};
  const hs_status status =
      verify_features_with(&scratch, a, b, pairs, pair_stride_bytes, count, options, inliers, geometry);
  verify_scratch_release(&scratch);
  return status;
}
