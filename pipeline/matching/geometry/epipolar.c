/*
 * Sampson errors of fundamental and essential matrices, and their weighted least-squares fit on the manifold of each.
 *
 * The Sampson error of a match is r = b^T M a / sqrt(g), g the squared length of the derivative of b^T M a by the four
 * image coordinates. A Gauss-Newton step in the tangent space of M = U diag(s) V^T reduces the weighted sum of r^2
 * without leaving rank 2 (or the essential matrices). g is differentiated too: with g fixed at the current M the step
 * would overshoot, by degrees for short baselines.
 */
#include "pipeline/matching/geometry/models.h"

#include <math.h>
#include <string.h>

#include "pipeline/matching/geometry/linear.h"

/* Multiplies an orthogonal matrix m by the rotation whose Cayley parameters are half of `turn`. */
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

/* Computes U diag(s) V^T, each matrix 3x3 row-major, s of length three. */
static void compose(const double u[9], const double s[9], const double v[9], double out[9]) {
  double vt[9], us[9];
  linear_transpose3(v, vt);
  linear_multiply3(u, s, us);
  linear_multiply3(us, vt, out);
}

/* Computes the tangents of U diag(s0, s1, 0) V^T: rotations of U about its axes; rotations of V (about the third axis
   only if s0 != s1, because otherwise that equals U's); and the change of s that keeps its length. Returns their
   number: 7 or 5. */
static int tangents(const double u[9], const double s[3], const double v[9], bool equal, double out[7][9]) {
  int count = 0;
  for (int k = 0; k < 3; k++) {
    const int i = (k + 1) % 3, j = (k + 2) % 3;
    double left[9] = {0.0}, right[9] = {0.0}; /* the matrices G S and S G^T, where G e_i = e_j, G e_j = -e_i */
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

/* A model as a point U diag(s) V^T of its manifold, with the tangents there. Both are also matrices of the epipolar
   constraint in the coordinates of the form. */
typedef struct manifold {
  double u[9], s[3], v[9];
  int count;
  double tangent[7][9];
} manifold;

static bool manifold_at(const geometry_problem *problem, const double m[9], manifold *at) {
  const bool equal = problem->model == HS_ESSENTIAL;
  linear_svd3(m, at->u, at->s, at->v);
  if (!(at->s[1] > 1.0e-9 * at->s[0])) return false;
  if (equal) at->s[0] = at->s[1] = 0.5 * (at->s[0] + at->s[1]);
  at->s[2] = 0.0;
  at->count = tangents(at->u, at->s, at->v, equal, at->tangent);
  for (int r = 0; equal && r < at->count; r++) {
    geometry_candidate moved;
    memcpy(moved.essential, at->tangent[r], sizeof moved.essential);
    essential_to_matrix(problem, &moved);
    memcpy(at->tangent[r], moved.matrix, sizeof moved.matrix);
  }
  return true;
}

/* Solves for the Gauss-Newton step, in coordinates of the tangents. */
static bool solve_step(const geometry_form *form, const manifold *at, double step[7]) {
  const int count = at->count;
  double hessian[49], pushed[9], trace = 0.0, squares = 0.0;
  for (int r = 0; r < count; r++) {
    const double *const t = at->tangent[r];
    memset(pushed, 0, sizeof pushed);
    step[r] = 0.0;
    for (int i = 0, next = 0; i < 9; i++) {
      step[r] -= form->sum[45 + i] * t[i];
      pushed[i] += form->sum[next++] * t[i];
      for (int j = i + 1; j < 9; j++, next++) {
        pushed[i] += form->sum[next] * t[j];
        pushed[j] += form->sum[next] * t[i];
      }
    }
    for (int c = 0; c < count; c++) {
      double sum = 0.0;
      for (int i = 0; i < 9; i++) sum += pushed[i] * at->tangent[c][i];
      hessian[count * r + c] = sum;
    }
    trace += hessian[(count + 1) * r];
  }
  /* Levenberg damping, tiny relative to the trace, so that directions that no match determines stay unchanged */
  for (int r = 0; r < count; r++) hessian[(count + 1) * r] += 1.0e-11 * trace;
  if (!(trace > 0.0) || !linear_solve(hessian, step, count, 1)) return false;
  for (int r = 0; r < count; r++) squares += step[r] * step[r];
  if (!isfinite(squares)) return false;
  const double shrink = squares > 0.25 ? 0.5 / sqrt(squares) : 1.0;
  for (int r = 0; r < count; r++) step[r] *= shrink;
  return true;
}

/* Makes one Gauss-Newton step on the model's manifold; m is replaced. */
static bool manifold_step(const geometry_problem *problem, const geometry_form *form, double m[9]) {
  const bool equal = problem->model == HS_ESSENTIAL;
  manifold at;
  double step[7], turn_u[3], turn_v[3] = {0.0, 0.0, 0.0};
  if (!manifold_at(problem, m, &at) || !solve_step(form, &at, step)) return false;
  int next = 0;
  for (int k = 0; k < 3; k++) {
    turn_u[k] = step[next++];
    if (!(equal && k == 2)) turn_v[k] = step[next++];
  }
  turn_basis(at.u, turn_u);
  turn_basis(at.v, turn_v);
  double turned[9] = {at.s[0], 0.0, 0.0, 0.0, at.s[1], 0.0, 0.0, 0.0, 0.0};
  if (!equal) {
    turned[0] = at.s[0] - step[next] * at.s[1];
    turned[4] = at.s[1] + step[next] * at.s[0];
  }
  compose(at.u, turned, at.v, m);
  return true;
}

bool fundamental_refit(const geometry_problem *problem, const geometry_form *form, geometry_candidate *candidate) {
  return manifold_step(problem, form, candidate->matrix) && linear_normalize(candidate->matrix, 9);
}

bool essential_refit(const geometry_problem *problem, const geometry_form *form, geometry_candidate *candidate) {
  if (!manifold_step(problem, form, candidate->essential)) return false;
  essential_to_matrix(problem, candidate);
  return true;
}
