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

int homography_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates) {
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
  double *const h = candidates->matrix;
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

void homography_errors(const double matrix[9], const geometry_matches *matches, size_t begin, size_t count,
                       double *squares) {
  const double *restrict ax = matches->ax + begin, *restrict ay = matches->ay + begin;
  const double *restrict bx = matches->bx + begin, *restrict by = matches->by + begin;
  double *restrict out = squares;
  const double h0 = matrix[0], h1 = matrix[1], h2 = matrix[2], h3 = matrix[3], h4 = matrix[4], h5 = matrix[5];
  const double h6 = matrix[6], h7 = matrix[7], h8 = matrix[8];
  for (size_t i = 0; i < count; i++) {
    const double x = ax[i], y = ay[i], w = h6 * x + h7 * y + h8;
    const double inverse = 1.0 / w;
    const double px = (h0 * x + h1 * y + h2) * inverse, py = (h3 * x + h4 * y + h5) * inverse;
    const double dx = px - bx[i], dy = py - by[i];
    const double a00 = (h0 - px * h6) * inverse, a01 = (h1 - px * h7) * inverse;
    const double a10 = (h3 - py * h6) * inverse, a11 = (h4 - py * h7) * inverse;
    const double s00 = a00 * a00 + a01 * a01 + 1.0, s01 = a00 * a10 + a01 * a11, s11 = a10 * a10 + a11 * a11 + 1.0;
    const double square = (dx * dx * s11 - 2.0 * dx * dy * s01 + dy * dy * s00) / (s00 * s11 - s01 * s01);
    out[i] = w > 0.0 ? square : HUGE_VAL;
  }
}

void homography_gather(const double matrix[9], const geometry_matches *matches, size_t begin, size_t count,
                       const double *weights, geometry_form *form) {
  for (size_t i = 0; i < count; i++) {
    if (weights[i] == 0.0) continue;
    const double x = matches->ax[begin + i], y = matches->ay[begin + i];
    const double u = matches->bx[begin + i], v = matches->by[begin + i];
    const double point[3] = {x, y, 1.0};
    double p[3];
    linear_apply3(matrix, point, p);
    const double inverse = 1.0 / p[2], px = p[0] * inverse, py = p[1] * inverse;
    const double a00 = (matrix[0] - px * matrix[6]) * inverse, a01 = (matrix[1] - px * matrix[7]) * inverse;
    const double a10 = (matrix[3] - py * matrix[6]) * inverse, a11 = (matrix[4] - py * matrix[7]) * inverse;
    const double s00 = a00 * a00 + a01 * a01 + 1.0, s01 = a00 * a10 + a01 * a11, s11 = a10 * a10 + a11 * a11 + 1.0;
    const double factor = weights[i] * inverse * inverse / (s00 * s11 - s01 * s01);
    const double w00 = factor * s11, w01 = -factor * s01, w11 = factor * s00;
    const double left[6] = {
        w00, w01, -(w00 * u + w01 * v), w11, -(w01 * u + w11 * v), w00 * u * u + 2.0 * w01 * u * v + w11 * v * v};
    const double right[6] = {x * x, x * y, x, y * y, y, 1.0};
    for (int r = 0; r < 6; r++)
      for (int c = 0; c < 6; c++) form->sum[r][c] += left[r] * right[c];
  }
}

/* Inverse iteration from the present matrix, which is near the smallest eigenvector or would not be worth improving. */
bool homography_refit(const geometry_form *form, geometry_candidate *candidate) {
  double matrix[81], damped[81], h[9], trace = 0.0, sign = 0.0;
  geometry_form_matrix(form, matrix);
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
