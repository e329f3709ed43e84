/* Scores of candidates, and refinement by reweighted least squares; see scoring.h. */
#include "pipeline/matching/geometry/scoring.h"

#define SETTLED 1.0e-7
#define NEAR    0.5 /* nearer threshold, as a share of the threshold */
enum { IMPROVE_ROUNDS = 4, IMPROVE_MATCHES = 200, POLISH_ROUNDS = 30, BLOCK = 128 };

static two_view_error error_of(const geometry_problem *problem) {
  return problem->model == HS_HOMOGRAPHY ? TWO_VIEW_HOMOGRAPHY_ERROR : TWO_VIEW_EPIPOLAR_ERROR;
}

void geometry_errors(const geometry_problem *problem, const double matrix[9], size_t begin, size_t count,
                     double *squares) {
  problem->ops->errors[error_of(problem)](matrix, &problem->matches, begin, count, squares);
}

double geometry_score(const geometry_problem *problem, const double matrix[9], double best) {
  return problem->ops->score[error_of(problem)](matrix, &problem->matches, problem->threshold * problem->threshold,
                                                best);
}

size_t geometry_count_inliers(const geometry_problem *problem, const double matrix[9], uint8_t *mask, double *squares) {
  const double limit = problem->threshold * problem->threshold;
  double errors[BLOCK], sum = 0.0;
  size_t inliers = 0;
  for (size_t begin = 0; begin < problem->matches.count; begin += BLOCK) {
    const size_t rest = problem->matches.count - begin, length = rest < BLOCK ? rest : BLOCK;
    geometry_errors(problem, matrix, begin, length, errors);
    for (size_t i = 0; i < length; i++) {
      const bool inlier = errors[i] <= limit;
      if (mask) mask[begin + i] = inlier;
      if (inlier) sum += errors[i];
      inliers += inlier;
    }
  }
  if (squares) *squares = sum;
  return inliers;
}

static void gather(const geometry_problem *problem, const double matrix[9], double threshold, size_t enough,
                   geometry_form *form) {
  problem->ops->gather[error_of(problem)](matrix, &problem->matches, threshold * threshold, enough, form);
}

static bool fit(const geometry_problem *problem, const geometry_form *form, geometry_candidate *candidate) {
  switch (problem->model) {
  case HS_HOMOGRAPHY:
    return homography_refit(form, candidate);
  case HS_FUNDAMENTAL:
    return fundamental_refit(problem, form, candidate);
  default:
    return essential_refit(problem, form, candidate);
  }
}

/* Fits a model by least squares, weighted by the candidate's errors and the threshold. Uses the first matches until at
   least `enough` have a positive weight, or all; matches are in random order. */
static bool refit(const geometry_problem *problem, double threshold, size_t enough, geometry_candidate *candidate) {
  geometry_form form;
  gather(problem, candidate->matrix, threshold, enough, &form);
  return fit(problem, &form, candidate);
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

/* Returns the objective of polishing: the score; for an essential matrix, plus the score at half the threshold. The
   direction of a short baseline depends on the best matches, and five parameters need only a few. */
static double final_score(const geometry_problem *problem, const double matrix[9]) {
  const double score = geometry_score(problem, matrix, 0.0);
  if (problem->model != HS_ESSENTIAL) return score;
  geometry_problem near = *problem;
  near.threshold *= NEAR;
  return score + geometry_score(&near, matrix, 0.0);
}

static bool final_refit(const geometry_problem *problem, geometry_candidate *candidate) {
  const size_t all = problem->matches.count;
  geometry_form form, near;
  gather(problem, candidate->matrix, problem->threshold, all, &form);
  if (problem->model == HS_ESSENTIAL) {
    gather(problem, candidate->matrix, NEAR * problem->threshold, all, &near);
    /* the derivative of (1 - r^2 / t^2)^3 contains the factor 1 / t^2 */
    for (int i = 0; i < TWO_VIEW_FORM_SUMS; i++) form.sum[i] += near.sum[i] / (NEAR * NEAR);
  }
  return fit(problem, &form, candidate);
}

void geometry_polish(const geometry_problem *problem, geometry_candidate *candidate) {
  geometry_candidate trial = *candidate;
  candidate->score = final_score(problem, candidate->matrix);
  for (int i = 0; i < POLISH_ROUNDS; i++) {
    if (!final_refit(problem, &trial)) return;
    trial.score = final_score(problem, trial.matrix);
    const double gained = trial.score - candidate->score;
    if (gained > 0.0) *candidate = trial;
    if (i > 0 && !(gained > SETTLED * candidate->score)) return;
  }
}

/* Computes base^exponent by squaring. Uses only products, so that every machine computes the same number of
   iterations. */
static double power(double base, int32_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

int32_t iterations_needed(size_t inliers, size_t count, int sample, double confidence, int32_t most) {
  double good = 1.0; /* probability that a sample has no outliers */
  for (int i = 0; i < sample; i++) {
    if (inliers <= (size_t)i) return most;
    good *= (double)(inliers - (size_t)i) / (double)(count - (size_t)i);
  }
  /* searches (low, high] for the smallest n with (1 - good)^n <= 1 - confidence; if there is none, the result is
     `most` */
  int32_t low = 0, high = most;
  while (high - low > 1) {
    const int32_t middle = low + (high - low) / 2;
    if (power(1.0 - good, middle) <= 1.0 - confidence)
      high = middle;
    else
      low = middle;
  }
  return high;
}
