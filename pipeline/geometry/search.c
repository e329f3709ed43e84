/*
 * The robust search for a model; see search.h.
 */
#include "pipeline/geometry/search.h"

#include "pipeline/geometry/plane.h"
#include "pipeline/geometry/scoring.h"

/* base^exponent by squaring: sums and products only, so that every machine stops at the same iteration. */
static double power(double base, int32_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

int32_t search_iterations_needed(size_t inliers, size_t count, int sample, double confidence, int32_t most) {
  double good = 1.0; /* probability of a sample without outliers */
  for (int i = 0; i < sample; i++) {
    if (inliers <= (size_t)i) return most;
    good *= (double)(inliers - (size_t)i) / (double)(count - (size_t)i);
  }
  int32_t low = 0, high = most; /* the least n in (low, high] with (1 - good)^n <= 1 - confidence, or most */
  while (high - low > 1) {
    const int32_t middle = low + (high - low) / 2;
    if (power(1.0 - good, middle) <= 1.0 - confidence)
      high = middle;
    else
      low = middle;
  }
  return high;
}

static int solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates) {
  switch (problem->model) {
  case HS_HOMOGRAPHY:
    return homography_solve(problem, sample, candidates);
  case HS_FUNDAMENTAL:
    return fundamental_solve(problem, sample, candidates);
  default:
    return essential_solve(problem, sample, candidates);
  }
}

/* Whether two of the sampled matches share a point: a keypoint with several orientations, or one matched twice. */
static bool sample_repeats(const geometry_matches *matches, const uint32_t *sample, int count) {
  for (int i = 1; i < count; i++) {
    for (int j = 0; j < i; j++) {
      const uint32_t p = sample[i], q = sample[j];
      if (matches->ax[p] == matches->ax[q] && matches->ay[p] == matches->ay[q]) return true;
      if (matches->bx[p] == matches->bx[q] && matches->by[p] == matches->by[q]) return true;
    }
  }
  return false;
}

bool search_run(const geometry_problem *problem, const search_limits *limits, random_state *random, double *squares,
                geometry_candidate *best, int32_t *iterations) {
  const int size = geometry_sample_size(problem->model);
  const uint32_t count = (uint32_t)problem->matches.count;
  int32_t needed = limits->max_iterations, drawn = 0;
  double best_sampled = 0.0; /* the best score before local optimisation: what a new sample has to beat */
  best->score = 0.0;
  for (; drawn < needed && count >= (uint32_t)size; drawn++) {
    uint32_t sample[GEOMETRY_SAMPLE_MAX];
    geometry_candidate candidates[GEOMETRY_SOLUTIONS_MAX];
    random_sample(random, count, size, sample);
    if (sample_repeats(&problem->matches, sample, size)) continue;
    const int solutions = solve(problem, sample, candidates);
    for (int i = 0; i < solutions; i++) {
      geometry_candidate *const candidate = candidates + i;
      candidate->score = geometry_score(problem, candidate->matrix, best_sampled);
      if (!(candidate->score > best_sampled)) continue;
      best_sampled = candidate->score;
      if (limits->check_plane && problem->model == HS_FUNDAMENTAL)
        plane_complete(problem, sample, random, squares, candidate);
      (void)geometry_improve(problem, candidate);
      if (!(candidate->score > best->score)) continue;
      *best = *candidate;
      const size_t inliers = geometry_count_inliers(problem, best->matrix, 0, 0);
      needed = search_iterations_needed(inliers, count, size, limits->confidence, limits->max_iterations);
      if (needed < limits->min_iterations) needed = limits->min_iterations;
    }
  }
  *iterations = drawn;
  if (!(best->score > 0.0)) return false;
  geometry_polish(problem, best);
  return true;
}
