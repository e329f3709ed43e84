/*
 * Scores of candidates and their improvement by reweighted least squares; see scoring.h.
 */
#include "pipeline/geometry/scoring.h"

#include <math.h>
#include <string.h>

#define SETTLED 1.0e-7
enum { IMPROVE_ROUNDS = 4, IMPROVE_MATCHES = 200, POLISH_ROUNDS = 30 };

void geometry_errors(const geometry_problem *problem, const double matrix[9], size_t begin, size_t count,
                     double *squares) {
  if (problem->model == HS_HOMOGRAPHY)
    homography_errors(matrix, &problem->matches, begin, count, squares);
  else
    epipolar_errors(matrix, &problem->matches, begin, count, squares);
}

static size_t block_length(size_t begin, size_t count) {
  return count - begin < GEOMETRY_BLOCK ? count - begin : GEOMETRY_BLOCK;
}

double geometry_score(const geometry_problem *problem, const double matrix[9], double best) {
  const size_t count = problem->matches.count;
  const double scale = 1.0 / (problem->threshold * problem->threshold);
  const double mean = best / (double)count;
  double squares[GEOMETRY_BLOCK], score = 0.0;
  for (size_t begin = 0; begin < count;) {
    const size_t length = block_length(begin, count);
    geometry_errors(problem, matrix, begin, length, squares);
    for (size_t i = 0; i < length; i++) {
      const double gain = 1.0 - squares[i] * scale;
      score += gain > 0.0 ? gain * gain * gain : 0.0;
    }
    begin += length;
    if (best > 0.0) {
      /* each contribution is in 0..1, so its variance is at most its mean */
      const double expected = mean * (double)begin;
      if (score + (double)(count - begin) <= best || score < expected - 3.0 * sqrt(expected)) return -1.0;
    }
  }
  return score;
}

size_t geometry_count_inliers(const geometry_problem *problem, const double matrix[9], uint8_t *mask, double *squares) {
  const double limit = problem->threshold * problem->threshold;
  double errors[GEOMETRY_BLOCK], sum = 0.0;
  size_t inliers = 0;
  for (size_t begin = 0; begin < problem->matches.count;) {
    const size_t length = block_length(begin, problem->matches.count);
    geometry_errors(problem, matrix, begin, length, errors);
    for (size_t i = 0; i < length; i++) {
      const bool inlier = errors[i] <= limit;
      if (mask) mask[begin + i] = inlier;
      if (inlier) sum += errors[i];
      inliers += inlier;
    }
    begin += length;
  }
  if (squares) *squares = sum;
  return inliers;
}

/* The weighted form at the candidate, weights by its errors and the threshold, of at least `enough` matches of weight
   above 0 (matches are in random order), or of all. */
static void gather_form(const geometry_problem *problem, const double matrix[9], double threshold, size_t enough,
                        geometry_form *form) {
  const double scale = 1.0 / (threshold * threshold);
  double values[GEOMETRY_BLOCK];
  size_t used = 0;
  memset(form, 0, sizeof *form);
  for (size_t begin = 0; begin < problem->matches.count && used < enough;) {
    const size_t length = block_length(begin, problem->matches.count);
    geometry_errors(problem, matrix, begin, length, values);
    for (size_t i = 0; i < length; i++) {
      const double weight = 1.0 - values[i] * scale;
      values[i] = weight > 0.0 ? weight * weight : 0.0;
      used += weight > 0.0;
    }
    if (problem->model == HS_HOMOGRAPHY)
      homography_gather(matrix, &problem->matches, begin, length, values, form);
    else
      epipolar_gather(matrix, &problem->matches, begin, length, values, form);
    begin += length;
  }
}

static bool refit(const geometry_problem *problem, double threshold, size_t enough, geometry_candidate *candidate) {
  geometry_form form;
  gather_form(problem, candidate->matrix, threshold, enough, &form);
  switch (problem->model) {
  case HS_HOMOGRAPHY:
    return homography_refit(&form, candidate);
  case HS_FUNDAMENTAL:
    return fundamental_refit(&form, candidate);
  default:
    return essential_refit(problem, &form, candidate);
  }
}

bool geometry_improve(const geometry_problem *problem, geometry_candidate *candidate) {
  geometry_candidate trial = *candidate;
  for (int i = 0; i < IMPROVE_ROUNDS; i++) {
    const double rest = 1.0 - (double)i / (double)(IMPROVE_ROUNDS - 1);
    if (!refit(problem, problem->threshold * (1.0 + rest), IMPROVE_MATCHES, &trial)) return false;
  }
  trial.score = geometry_score(problem, trial.matrix, candidate->score);
  if (!(trial.score > candidate->score)) return false;
  *candidate = trial;
  return true;
}

void geometry_polish(const geometry_problem *problem, geometry_candidate *candidate) {
  geometry_candidate trial = *candidate;
  for (int i = 0; i < POLISH_ROUNDS; i++) {
    if (!refit(problem, problem->threshold, problem->matches.count, &trial)) return;
    trial.score = geometry_score(problem, trial.matrix, 0.0);
    const double gained = trial.score - candidate->score;
    if (gained > 0.0) *candidate = trial;
    if (i > 0 && !(gained > SETTLED * candidate->score)) return;
  }
}
