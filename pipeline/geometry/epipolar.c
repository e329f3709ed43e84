/*
 * What fundamental and essential matrices share: Sampson errors, and the weighted least-squares fit on the
 * manifold of each.
 *
 * The squared Sampson error of a match is (b^T M a)^2 / g, g the squared length of the derivative of b^T M a by the
 * four image coordinates. With g held at the present M the weighted sum is a quadratic form in vec(M); a Gauss-Newton
 * step in the tangent space of M = U diag(s) V^T minimises it without leaving rank 2 (or the essential matrices).
 */
#include "pipeline/geometry/epipolar.h"

#include <math.h>
#include <string.h>

#include "pipeline/geometry/linear.h"
#include "pipeline/geometry/models.h"

/* Turns the columns of an orthogonal matrix: m * R, R the rotation whose Cayley parameters are half of `turn`. */
static void turn_basis(double m[9], const double turn[3]) {
  const double a = 0.5 * turn[0], b = 0.5 * turn[1], c = 0.5 * turn[2];
  const double squares = a * a + b * b + c * c, scale = 1.0 / (1.0 + squares), unit = 1.0 - squares;
  const double rotation[9] = {(unit + 2.0 * a * a) * scale, 2.0 * (a * b - c) * scale,    2.0 * (a * c + b) * scale,
                              2.0 * (a * b + c) * scale,    (unit + 2.0 * b * b) * scale, 2.0 * (b * c - a) * scale,
                              2.0 * (a * c - b) * scale,    2.0 * (b * c + a) * scale,    (unit + 2.0 * c * c) * scale};
  double turned[9];
  linear_multiply3(m, rotation, turned);
  memcpy(m, turned, sizeof turned);
}

/* U diag(s) V^T, each factor 3x3 row-major, s of three. */
static void compose(const double u[9], const double s[9], const double v[9], double out[9]) {
  double vt[9], us[9];
  linear_transpose3(v, vt);
  linear_multiply3(u, s, us);
  linear_multiply3(us, vt, out);
}

/* The tangents of U diag(s0, s1, 0) V^T: turns of U about its axes, turns of V (about the third axis the same as for U
   when s0 = s1, so left out then), and the change of s that keeps its length. Returns how many: 7 or 5. */
static int tangents(const double u[9], const double s[3], const double v[9], bool equal, double out[7][9]) {
  int count = 0;
  for (int k = 0; k < 3; k++) {
    const int i = (k + 1) % 3, j = (k + 2) % 3;
    double left[9] = {0.0}, right[9] = {0.0}; /* G S and S G^T, G e_i = e_j, G e_j = -e_i */
    left[3 * j + i] = s[i];
    left[3 * i + j] = -s[j];
    right[3 * i + j] = s[i];
    right[3 * j + i] = -s[j];
    compose(u, left, v, out[count++]);
    if (!(equal && k == 2)) compose(u, right, v, out[count++]);
  }
  if (!equal) {
    const double change[9] = {-s[1], 0.0, 0.0, 0.0, s[0], 0.0, 0.0, 0.0, 0.0};
    compose(u, change, v, out[count++]);
  }
  return count;
}

/* One Gauss-Newton step of the quadratic form from m, in place. */
static bool manifold_step(const double form[81], bool equal, double m[9]) {
  double u[9], s[3], v[9], tangent[7][9], hessian[49], step[7], pushed[9];
  linear_svd3(m, u, s, v);
  const double length = equal ? 1.0 : sqrt(s[0] * s[0] + s[1] * s[1]);
  if (!(s[1] > 1.0e-9 * s[0]) || !(length > 0.0)) return false;
  s[0] = equal ? 1.0 : s[0] / length;
  s[1] = equal ? 1.0 : s[1] / length;
  s[2] = 0.0;
  const int count = tangents(u, s, v, equal, tangent);
  const double diagonal[9] = {s[0], 0.0, 0.0, 0.0, s[1], 0.0, 0.0, 0.0, 0.0};
  compose(u, diagonal, v, m);
  double trace = 0.0;
  for (int r = 0; r < count; r++) {
    for (int i = 0; i < 9; i++) {
      pushed[i] = 0.0;
      for (int j = 0; j < 9; j++) pushed[i] += form[9 * i + j] * tangent[r][j];
    }
    step[r] = 0.0;
    for (int i = 0; i < 9; i++) step[r] -= pushed[i] * m[i];
    for (int c = 0; c < count; c++) {
      double sum = 0.0;
      for (int i = 0; i < 9; i++) sum += pushed[i] * tangent[c][i];
      hessian[count * r + c] = sum;
    }
    trace += hessian[(count + 1) * r];
  }
  /* Levenberg damping, tiny beside the trace, so that directions that no match determines stay as they are. */
  for (int r = 0; r < count; r++) hessian[(count + 1) * r] += 1.0e-11 * trace;
  if (!(trace > 0.0) || !linear_solve(hessian, step, count, 1)) return false;
  double turn_u[3], turn_v[3] = {0.0, 0.0, 0.0}, squares = 0.0;
  for (int r = 0; r < count; r++) squares += step[r] * step[r];
  if (!isfinite(squares)) return false;
  const double shrink = squares > 0.25 ? 0.5 / sqrt(squares) : 1.0;
  for (int r = 0; r < count; r++) step[r] *= shrink;
  int next = 0;
  for (int k = 0; k < 3; k++) {
    turn_u[k] = step[next++];
    if (!(equal && k == 2)) turn_v[k] = step[next++];
  }
  turn_basis(u, turn_u);
  turn_basis(v, turn_v);
  double turned[9] = {s[0], 0.0, 0.0, 0.0, s[1], 0.0, 0.0, 0.0, 0.0};
  if (!equal) {
    turned[0] = s[0] - step[next] * s[1];
    turned[4] = s[1] + step[next] * s[0];
  }
  compose(u, turned, v, m);
  return true;
}

bool fundamental_refit(const geometry_form *form, geometry_candidate *candidate) {
  double matrix[81];
  geometry_form_matrix(form, matrix);
  return manifold_step(matrix, false, candidate->matrix) && linear_normalize(candidate->matrix, 9);
}

bool essential_refit(const geometry_problem *problem, const geometry_form *form, geometry_candidate *candidate) {
  double matrix[81], moved[81], map[81];
  geometry_form_matrix(form, matrix);
  /* vec(M) = map vec(E), column by column through the linear map itself */
  geometry_candidate unit = {{0.0}, {0.0}, 0.0};
  for (int c = 0; c < 9; c++) {
    memset(unit.essential, 0, sizeof unit.essential);
    unit.essential[c] = 1.0;
    essential_to_matrix(problem, &unit);
    for (int r = 0; r < 9; r++) map[9 * r + c] = unit.matrix[r];
  }
  for (int r = 0; r < 9; r++) {
    for (int c = 0; c < 9; c++) {
      moved[9 * r + c] = 0.0;
      for (int k = 0; k < 9; k++) moved[9 * r + c] += matrix[9 * r + k] * map[9 * k + c];
    }
  }
  for (int r = 0; r < 9; r++) {
    for (int c = 0; c < 9; c++) {
      matrix[9 * r + c] = 0.0;
      for (int k = 0; k < 9; k++) matrix[9 * r + c] += map[9 * k + r] * moved[9 * k + c];
    }
  }
  if (!manifold_step(matrix, true, candidate->essential)) return false;
  essential_to_matrix(problem, candidate);
  return true;
}
