/*
 * Homographies: from four matches, their errors, and their weighted least-squares fit.
 *
 * With C(h) = (h1 X - u h3 X, h2 X - v h3 X) for a match X = (x, y, 1), (u, v), the Sampson error is C^T (J J^T)^-1 C,
 * J the derivative of C by (x, y, u, v): J J^T = w^2 (A A^T + I), w = h3 X and A the 2x2 derivative of the mapping.
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/matrix3.h"
#include "pipeline/geometry/linear.h"
#include "pipeline/geometry/models.h"

enum { INVERSE_STEPS = 3 };

/* The two-fold areas of the triangles that three of four points make: [i] without point i, signed such that
   sum_i (+-) [i] p_i = 0. False when a triangle is flatter than `height`: its place across that side is noise. */
static bool triangles(const double *x, const double *y, double height, double areas[4]) {
  static const int corner[4][3] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
  for (int i = 0; i < 4; i++) {
    const int a = corner[i][0], b = corner[i][1], c = corner[i][2];
    const double abx = x[b] - x[a], aby = y[b] - y[a], acx = x[c] - x[a], acy = y[c] - y[a];
    const double bcx = x[c] - x[b], bcy = y[c] - y[b];
    const double ab = abx * abx + aby * aby, ac = acx * acx + acy * acy, bc = bcx * bcx + bcy * bcy;
    const double longest = ab > ac ? (ab > bc ? ab : bc) : (ac > bc ? ac : bc);
    areas[i] = abx * acy - aby * acx;
    if (!(areas[i] * areas[i] > height * height * longest)) return false;
  }
  return true;
}

int homography_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidate) {
  double ax[4], ay[4], bx[4], by[4], area_a[4], area_b[4];
  for (int i = 0; i < 4; i++) {
    const uint32_t k = sample[i];
    ax[i] = problem->matches.ax[k];
    ay[i] = problem->matches.ay[k];
    bx[i] = problem->matches.bx[k];
    by[i] = problem->matches.by[k];
  }
  if (!triangles(ax, ay, problem->threshold, area_a) || !triangles(bx, by, problem->threshold, area_b)) return 0;
  /* A plane seen by two cameras keeps the sense of every triangle, or mirrors them all. */
  double scale[4];
  for (int i = 0; i < 4; i++) {
    scale[i] = area_b[i] / area_a[i];
    if ((scale[i] > 0.0) != (scale[0] > 0.0)) return 0;
  }
  /* In the basis of the first three points the fourth has coordinates proportional to the areas; H maps basis to basis,
     each axis stretched so that the fourth point fits: H = sum_i scale_i b_i (row i of the inverse basis). */
  const double basis[9] = {ax[0], ax[1], ax[2], ay[0], ay[1], ay[2], 1.0, 1.0, 1.0};
  double inverse[9];
  matrix3_adjugate(basis, inverse);
  double *const h = candidate->matrix;
  for (int j = 0; j < 3; j++) {
    const double r0 = scale[0] * inverse[j], r1 = scale[1] * inverse[3 + j], r2 = scale[2] * inverse[6 + j];
    h[j] = bx[0] * r0 + bx[1] * r1 + bx[2] * r2;
    h[3 + j] = by[0] * r0 + by[1] * r1 + by[2] * r2;
    h[6 + j] = r0 + r1 + r2;
  }
  if (!linear_normalize(h, 9)) return 0;
  if (h[6] * ax[0] + h[7] * ay[0] + h[8] < 0.0)
    for (int i = 0; i < 9; i++) h[i] = -h[i];
  return 1;
}

/* The form as a symmetric 9x9 matrix for vec(H), H row-major. */
static void form_matrix(const geometry_form *form, double matrix[81]) {
  static const int triangle[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}};
  for (int r = 0; r < 9; r++)
    for (int c = 0; c < 9; c++) matrix[9 * r + c] = form->sum[6 * triangle[r / 3][c / 3] + triangle[r % 3][c % 3]];
}

/* Inverse iteration from the present matrix, which is near the smallest eigenvector or would not be worth improving. */
bool homography_refit(const geometry_form *form, geometry_candidate *candidate) {
  double matrix[81], damped[81], h[9], trace = 0.0, sign = 0.0;
  form_matrix(form, matrix);
  for (int i = 0; i < 9; i++) trace += matrix[10 * i];
  if (!(trace > 0.0)) return false;
  for (int i = 0; i < 9; i++) matrix[10 * i] += 1.0e-13 * trace; /* exact matches leave the form singular */
  memcpy(h, candidate->matrix, sizeof h);
  for (int step = 0; step < INVERSE_STEPS; step++) {
    memcpy(damped, matrix, sizeof damped);
    if (!linear_solve(damped, h, 9, 1) || !linear_normalize(h, 9)) return false;
  }
  for (int i = 0; i < 9; i++) sign += h[i] * candidate->matrix[i];
  for (int i = 0; i < 9; i++) candidate->matrix[i] = sign < 0.0 ? -h[i] : h[i];
  return true;
}
