/* What solvers, errors and refits of the models share. */
#include "pipeline/geometry/models.h"

#include <math.h>

#include "pipeline/geometry/linear.h"

int geometry_sample_size(hs_geometry_model model) {
  return model == HS_HOMOGRAPHY ? 4 : model == HS_FUNDAMENTAL ? 7 : 5;
}

bool epipolar_sample_oriented(const double matrix[9], const geometry_matches *matches, const uint32_t *sample,
                              int count) {
  double transposed[9], epipole[3];
  linear_transpose3(matrix, transposed);
  if (!linear_null3(transposed, epipole)) return false; /* in image b */
  bool positive = false;
  for (int i = 0; i < count; i++) {
    const uint32_t k = sample[i];
    const double a[3] = {matches->ax[k], matches->ay[k], 1.0}, b[3] = {matches->bx[k], matches->by[k], 1.0};
    double line[3], through[3];
    linear_apply3(matrix, a, line);
    linear_cross3(epipole, b, through);
    const bool agrees = linear_dot3(line, through) > 0.0;
    if (i == 0) positive = agrees;
    if (agrees != positive) return false;
  }
  return true;
}

/* M = Kb^-T E Ka^-1 for cameras in working coordinates. */
void essential_to_matrix(const geometry_problem *problem, geometry_candidate *candidate) {
  const hs_camera ka = problem->camera_a, kb = problem->camera_b;
  double half[9];
  for (int i = 0; i < 3; i++) { /* E Ka^-1 */
    const double *const e = candidate->essential + 3 * i;
    half[3 * i] = e[0] / ka.fx;
    half[3 * i + 1] = e[1] / ka.fy;
    half[3 * i + 2] = e[2] - half[3 * i] * ka.cx - half[3 * i + 1] * ka.cy;
  }
  for (int j = 0; j < 3; j++) {
    candidate->matrix[j] = half[j] / kb.fx;
    candidate->matrix[3 + j] = half[3 + j] / kb.fy;
    candidate->matrix[6 + j] = half[6 + j] - candidate->matrix[j] * kb.cx - candidate->matrix[3 + j] * kb.cy;
  }
}

bool geometry_camera_valid(const hs_camera *k) {
  return k->fx > 0.0 && k->fy > 0.0 && isfinite(k->fx) && isfinite(k->fy) && isfinite(k->cx) && isfinite(k->cy);
}
