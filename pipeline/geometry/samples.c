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

static void homography_solve_batch(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch) {
  const int size = geometry_sample_size(HS_HOMOGRAPHY);
  for (int l = 0; l < GEOMETRY_BATCH; l++) {
    const uint32_t *const sample = samples + l * size;
    if (sample_repeats(&problem->matches, sample, size)) continue;
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
