/*
 * Essential matrices from five matches, by stages/two_view.h.
 */
#include <string.h>

#include "pipeline/geometry/models.h"

void essential_solve_batch(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch) {
  const hs_camera a = problem->camera_a, b = problem->camera_b;
  const two_view_cameras cameras = {{a.fx, a.fy, b.fx, b.fy}, {a.cx, a.cy, b.cx, b.cy}};
  two_view_five solved;
  problem->ops->five(&problem->matches, &cameras, samples, &solved);
  batch->count = solved.count;
  for (int i = 0; i < solved.count; i++) {
    memcpy(batch->found[i].candidate.essential, solved.found[i].essential, sizeof solved.found[i].essential);
    batch->found[i].sample = solved.found[i].sample;
    essential_to_matrix(problem, &batch->found[i].candidate);
  }
}
