/* Candidates through minimal samples, whatever the model. */
#include "pipeline/geometry/models.h"

static void homography_solve_batch(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch) {
  const int size = geometry_sample_size(HS_HOMOGRAPHY);
  for (int l = 0; l < GEOMETRY_BATCH; l++) {
    const uint32_t *const sample = samples + l * size;
    batch->found[batch->count].sample = l;
    batch->count += homography_solve(problem, sample, &batch->found[batch->count].candidate);
  }
}

void geometry_solve(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch) {
  batch->count = 0;
  switch (problem->model) {
  case HS_HOMOGRAPHY:
    homography_solve_batch(problem, samples, batch);
    return;
  case HS_FUNDAMENTAL:
    fundamental_solve_batch(problem, samples, batch);
    return;
  default:
    essential_solve_batch(problem, samples, batch);
  }
}
