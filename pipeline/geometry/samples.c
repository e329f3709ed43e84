/* Candidates through minimal samples, whatever the model. */
#include "pipeline/geometry/models.h"

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

void geometry_solve(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch) {
  batch->count = 0;
  if (problem->model == HS_FUNDAMENTAL) {
    fundamental_solve_batch(problem, samples, batch);
    return;
  }
  const int size = geometry_sample_size(problem->model);
  for (int l = 0; l < GEOMETRY_BATCH; l++) {
    const uint32_t *const sample = samples + l * size;
    geometry_candidate candidates[GEOMETRY_SOLUTIONS_MAX];
    if (sample_repeats(&problem->matches, sample, size)) continue;
    const int count = problem->model == HS_HOMOGRAPHY ? homography_solve(problem, sample, candidates)
                                                      : essential_solve(problem, sample, candidates);
    for (int i = 0; i < count; i++) {
      batch->found[batch->count].candidate = candidates[i];
      batch->found[batch->count++].sample = l;
    }
  }
}
