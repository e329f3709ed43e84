/*
 * Essential matrices from five matches (Nister, PAMI 2004): E is a combination x E0 + y E1 + z E2 + E3 of the null
 * space of five epipolar constraints; ten cubic equations say that it has two equal singular values and a third of 0.
 * Eliminating ten monomials leaves a 3x3 matrix of polynomials in z whose determinant, of degree 10, vanishes at the
 * solutions.
 */
#include <math.h>
#include <string.h>

#include "pipeline/geometry/epipolar.h"
#include "pipeline/geometry/linear.h"
#include "pipeline/geometry/models.h"
#include "pipeline/geometry/polynomial.h"

enum { SAMPLE = 5, LINEAR = 4, QUADRATIC = 10, CUBIC = 20, CONSTRAINTS = 10 };

/* Monomials. Linear: x y z 1. Quadratic: x2 xy xz x y2 yz y z2 z 1. Cubic, those to be eliminated first: x3 y3 x2y xy2
   x2z x2 y2z y2 xyz xy | xz2 xz x yz2 yz y z3 z2 z 1. */
static const int quadratic_of[LINEAR][LINEAR] = {{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 5, 7, 8}, {3, 6, 8, 9}};
static const int cubic_of[QUADRATIC][LINEAR] = {{0, 2, 4, 5},     {2, 3, 8, 9},    {4, 8, 10, 11}, {5, 9, 11, 12},
                                                {3, 1, 6, 7},     {8, 6, 13, 14},  {9, 7, 14, 15}, {10, 13, 16, 17},
                                                {11, 14, 17, 18}, {12, 15, 18, 19}};

/* sum += factor * p * q. */
static void add_product_1_1(const double p[LINEAR], const double q[LINEAR], double factor, double sum[QUADRATIC]) {
  for (int i = 0; i < LINEAR; i++)
    for (int j = 0; j < LINEAR; j++) sum[quadratic_of[i][j]] += factor * p[i] * q[j];
}

static void add_product_2_1(const double p[QUADRATIC], const double q[LINEAR], double sum[CUBIC]) {
  for (int i = 0; i < QUADRATIC; i++)
    for (int j = 0; j < LINEAR; j++) sum[cubic_of[i][j]] += p[i] * q[j];
}

/* The ten constraints on e[r][c], the linear polynomials of E's elements: det E = 0 and, row by row, (E E^T - trace/2)
   E = 0. */
static void constraints(double e[3][3][LINEAR], double out[CONSTRAINTS][CUBIC]) {
  memset(out, 0, CONSTRAINTS * sizeof *out);
  for (int c = 0; c < 3; c++) { /* along the last row */
    double minor[QUADRATIC] = {0.0};
    const int i = (c + 1) % 3, j = (c + 2) % 3;
    add_product_1_1(e[0][i], e[1][j], 1.0, minor);
    add_product_1_1(e[0][j], e[1][i], -1.0, minor);
    add_product_2_1(minor, e[2][c], out[0]);
  }
  double square[3][3][QUADRATIC] = {{{0.0}}}, trace[QUADRATIC] = {0.0};
  for (int r = 0; r < 3; r++) {
    for (int s = 0; s < 3; s++)
      for (int k = 0; k < 3; k++) add_product_1_1(e[r][k], e[s][k], 1.0, square[r][s]);
    for (int i = 0; i < QUADRATIC; i++) trace[i] += square[r][r][i];
  }
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < QUADRATIC; i++) square[r][r][i] -= 0.5 * trace[i];
  for (int r = 0; r < 3; r++) {
    for (int c = 0; c < 3; c++)
      for (int k = 0; k < 3; k++) add_product_2_1(square[r][k], e[k][c], out[1 + 3 * r + c]);
  }
}

/* A row of the matrix of polynomials in z: entries for x (degree 3), y (3) and 1 (4). */
typedef struct z_row {
  double x[5], y[5], one[5];
} z_row;

/* Row p minus z times row q of the eliminated system: the monomial of p is z times that of q, so both vanish. */
static void subtract_shifted(const double p[CUBIC / 2], const double q[CUBIC / 2], z_row *row) {
  memset(row, 0, sizeof *row);
  for (int i = 0; i < 3; i++) {
    row->x[2 - i] += p[i];
    row->x[3 - i] -= q[i];
    row->y[2 - i] += p[3 + i];
    row->y[3 - i] -= q[3 + i];
  }
  for (int i = 0; i < 4; i++) {
    row->one[3 - i] += p[6 + i];
    row->one[4 - i] -= q[6 + i];
  }
}

/* sum += factor * (p0 q1 - p1 q0) * t for polynomials of degrees at most 3, 3 and 4. */
static void add_minor(const double *p0, const double *q1, const double *p1, const double *q0, const double *t,
                      double *sum) {
  double minor[9] = {0.0};
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 5; j++) minor[i + j] += p0[i] * q1[j] - p1[i] * q0[j];
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < 5; j++) sum[i + j] += minor[i] * t[j];
}

static void evaluate_row(const z_row *row, double z, double out[3]) {
  const double *const parts[3] = {row->x, row->y, row->one};
  for (int c = 0; c < 3; c++) {
    double value = 0.0;
    for (int i = 4; i >= 0; i--) value = value * z + parts[c][i];
    out[c] = value;
  }
}

/* The solutions (x, y, z) of the constraints; returns how many. */
static int solve_constraints(double system[CONSTRAINTS][CUBIC], double solutions[GEOMETRY_SOLUTIONS_MAX][3]) {
  double left[CONSTRAINTS * 10], right[CONSTRAINTS * 10];
  for (int r = 0; r < CONSTRAINTS; r++) {
    memcpy(left + 10 * r, system[r], 10 * sizeof *left);
    memcpy(right + 10 * r, system[r] + 10, 10 * sizeof *right);
  }
  if (!linear_solve(left, right, 10, 10)) return 0;
  z_row rows[3];
  for (int i = 0; i < 3; i++) subtract_shifted(right + 10 * (4 + 2 * i), right + 10 * (5 + 2 * i), rows + i);
  double determinant[11] = {0.0}, roots[POLYNOMIAL_DEGREE_MAX];
  for (int i = 0; i < 3; i++) {
    const z_row *const p = rows + (i + 1) % 3, *const q = rows + (i + 2) % 3;
    add_minor(p->x, q->y, p->y, q->x, rows[i].one, determinant);
  }
  const int root_count = polynomial_real_roots(determinant, 10, roots);
  int count = 0;
  for (int i = 0; i < root_count; i++) {
    double matrix[9], null[3];
    for (int r = 0; r < 3; r++) {
      evaluate_row(rows + r, roots[i], matrix + 3 * r);
      (void)linear_normalize(matrix + 3 * r, 3);
    }
    if (!linear_null3(matrix, null) || !(fabs(null[2]) > 1.0e-12)) continue;
    solutions[count][0] = null[0] / null[2];
    solutions[count][1] = null[1] / null[2];
    solutions[count][2] = roots[i];
    count++;
  }
  return count;
}

int essential_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates) {
  const hs_camera ka = problem->camera_a, kb = problem->camera_b;
  double rows[9 * SAMPLE], basis[36], e[3][3][LINEAR], system[CONSTRAINTS][CUBIC];
  for (int i = 0; i < SAMPLE; i++) {
    const uint32_t k = sample[i];
    const double a[3] = {(problem->matches.ax[k] - ka.cx) / ka.fx, (problem->matches.ay[k] - ka.cy) / ka.fy, 1.0};
    const double b[3] = {(problem->matches.bx[k] - kb.cx) / kb.fx, (problem->matches.by[k] - kb.cy) / kb.fy, 1.0};
    epipolar_row(a, b, rows + 9 * i);
  }
  if (!linear_null_space9(rows, SAMPLE, basis)) return 0;
  for (int i = 0; i < 9; i++)
    for (int k = 0; k < LINEAR; k++) e[i / 3][i % 3][k] = basis[9 * k + i];
  constraints(e, system);
  double solutions[GEOMETRY_SOLUTIONS_MAX][3];
  const int solution_count = solve_constraints(system, solutions);
  int count = 0;
  for (int s = 0; s < solution_count; s++) {
    geometry_candidate *const candidate = candidates + count;
    const double *const p = solutions[s];
    for (int i = 0; i < 9; i++)
      candidate->essential[i] = p[0] * basis[i] + p[1] * basis[9 + i] + p[2] * basis[18 + i] + basis[27 + i];
    if (!linear_normalize(candidate->essential, 9)) continue;
    essential_to_matrix(problem, candidate);
    if (epipolar_sample_oriented(candidate->matrix, &problem->matches, sample, SAMPLE)) count++;
  }
  return count;
}
