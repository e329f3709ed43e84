/*
 * Essential matrices from five matches (Nister, PAMI 2004), a sample or a solution in each lane of stages/two_view_math.h:
 * E is a combination x E0 + y E1 + z E2 + E3 of the null space of five epipolar constraints; ten cubic equations say that
 * it has two equal singular values and a third of 0. Eliminating ten monomials leaves a 3x3 matrix of polynomials in z
 * whose determinant, of degree 10, vanishes at the solutions.
 */
#ifndef HARTSIFT_STAGES_FIVE_POINT_MATH_H
#define HARTSIFT_STAGES_FIVE_POINT_MATH_H

#include "stages/two_view.h"
#include "stages/two_view_math.h"

#define ROOT_ACCURACY 1.0e-10
enum { LINEAR = 4, QUADRATIC = 10, CUBIC = 20, CONSTRAINTS = 10, ROOT_NEWTON_STEPS = 7 };

/* A row of the matrix of polynomials in z: entries for x and y (degree 3) and 1 (degree 4). */
typedef struct z_row {
  real x[5], y[5], one[5];
} z_row;

/* What the roots of a sample's polynomial need to become essential matrices. */
typedef struct five_sample {
  real basis[4][9], polynomial[TWO_VIEW_FIVE_DEGREE + 1];
  z_row rows[3];
} five_sample;

/* Monomials. Linear: x y z 1. Quadratic: x2 xy xz x y2 yz y z2 z 1. Cubic, those to be eliminated first: x3 y3 x2y xy2
   x2z x2 y2z y2 xyz xy | xz2 xz x yz2 yz y z3 z2 z 1. */
HS_INLINE int quadratic_of(int i, int j) {
  const int of[LINEAR][LINEAR] = {{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 5, 7, 8}, {3, 6, 8, 9}};
  return of[i][j];
}

HS_INLINE int cubic_of(int i, int j) {
  const int of[QUADRATIC][LINEAR] = {{0, 2, 4, 5},     {2, 3, 8, 9},    {4, 8, 10, 11}, {5, 9, 11, 12},
                                     {3, 1, 6, 7},     {8, 6, 13, 14},  {9, 7, 14, 15}, {10, 13, 16, 17},
                                     {11, 14, 17, 18}, {12, 15, 18, 19}};
  return of[i][j];
}

/* sum += p * q. */
HS_INLINE void add_product_1_1(const real p[LINEAR], const real q[LINEAR], real sum[QUADRATIC]) {
  for (int i = 0; i < LINEAR; i++)
    for (int j = 0; j < LINEAR; j++) sum[quadratic_of(i, j)] = sum[quadratic_of(i, j)] + p[i] * q[j];
}

HS_INLINE void add_product_2_1(const real p[QUADRATIC], const real q[LINEAR], real sum[CUBIC]) {
  for (int i = 0; i < QUADRATIC; i++)
    for (int j = 0; j < LINEAR; j++) sum[cubic_of(i, j)] = sum[cubic_of(i, j)] + p[i] * q[j];
}

/* The ten constraints on e[r][c], the linear polynomials of E's elements: det E = 0 and, row by row, (E E^T - trace/2)
   E = 0. */
HS_INLINE void five_constraints(real e[3][3][LINEAR], real out[CONSTRAINTS][CUBIC]) {
  const real zero = real_of(0.0);
  real square[3][3][QUADRATIC], half[QUADRATIC];
  for (int r = 0; r < CONSTRAINTS; r++)
    for (int k = 0; k < CUBIC; k++) out[r][k] = zero;
  for (int c = 0; c < 3; c++) { /* along the last row */
    const int i = (c + 1) % 3, j = (c + 2) % 3;
    real minor[QUADRATIC], other[QUADRATIC];
    for (int k = 0; k < QUADRATIC; k++) minor[k] = other[k] = zero;
    add_product_1_1(e[0][i], e[1][j], minor);
    add_product_1_1(e[0][j], e[1][i], other);
    for (int k = 0; k < QUADRATIC; k++) minor[k] = minor[k] - other[k];
    add_product_2_1(minor, e[2][c], out[0]);
  }
  for (int r = 0; r < 3; r++) {
    for (int s = r; s < 3; s++) {
      for (int k = 0; k < QUADRATIC; k++) square[r][s][k] = zero;
      for (int k = 0; k < 3; k++) add_product_1_1(e[r][k], e[s][k], square[r][s]);
    }
  }
  for (int k = 0; k < QUADRATIC; k++) half[k] = 0.5 * (square[0][0][k] + square[1][1][k] + square[2][2][k]);
  for (int r = 0; r < 3; r++)
    for (int k = 0; k < QUADRATIC; k++) square[r][r][k] = square[r][r][k] - half[k];
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++)
      for (int k = 0; k < 3; k++) add_product_2_1(square[r < k ? r : k][r < k ? k : r], e[k][c], out[1 + 3 * r + c]);
}

/* Eliminates the first ten monomials, with the largest pivot in each lane: rows 4 to 9 become what those monomials are. */
HS_INLINE void five_eliminate(real a[CONSTRAINTS][CUBIC]) {
  for (int k = 0; k < CONSTRAINTS; k++) {
    for (int i = k + 1; i < CONSTRAINTS; i++) {
      const real mine = real_absolute(a[k][k]), other = real_absolute(a[i][k]);
      for (int j = k; j < CUBIC; j++) {
        const real upper = a[k][j];
        a[k][j] = real_if_above(other, mine, a[i][j], upper);
        a[i][j] = real_if_above(other, mine, upper, a[i][j]);
      }
    }
    const real inverse = 1.0 / a[k][k];
    for (int j = k; j < CUBIC; j++) a[k][j] = a[k][j] * inverse;
    for (int i = k + 1; i < CONSTRAINTS; i++) {
      const real factor = a[i][k];
      for (int j = k + 1; j < CUBIC; j++) a[i][j] = a[i][j] - factor * a[k][j];
    }
  }
  for (int k = CONSTRAINTS - 1; k > 4; k--) {
    for (int i = 4; i < k; i++) {
      const real factor = a[i][k];
      for (int j = CONSTRAINTS; j < CUBIC; j++) a[i][j] = a[i][j] - factor * a[k][j];
    }
  }
}

/* Row p minus z times row q of the eliminated system: the monomial of p is z times that of q, so both vanish. */
HS_INLINE void subtract_shifted(const real p[CUBIC / 2], const real q[CUBIC / 2], z_row *row) {
  for (int i = 0; i < 5; i++) row->x[i] = row->y[i] = row->one[i] = real_of(0.0);
  for (int i = 0; i < 3; i++) {
    row->x[2 - i] = p[i];
    row->y[2 - i] = p[3 + i];
  }
  for (int i = 0; i < 4; i++) row->one[3 - i] = p[6 + i];
  for (int i = 0; i < 3; i++) {
    row->x[3 - i] = row->x[3 - i] - q[i];
    row->y[3 - i] = row->y[3 - i] - q[3 + i];
  }
  for (int i = 0; i < 4; i++) row->one[4 - i] = row->one[4 - i] - q[6 + i];
}

/* sum += (p0 q1 - p1 q0) * t for polynomials of degrees at most 3, 3 and 4. */
HS_INLINE void add_minor(const real p0[5], const real q1[5], const real p1[5], const real q0[5], const real t[5],
                         real sum[TWO_VIEW_FIVE_DEGREE + 1]) {
  real minor[7];
  for (int i = 0; i < 7; i++) minor[i] = real_of(0.0);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) minor[i + j] = minor[i + j] + (p0[i] * q1[j] - p1[i] * q0[j]);
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < 5; j++) sum[i + j] = sum[i + j] + minor[i] * t[j];
}

/* Everything of a sample, in coordinates of the cameras (focal length 1), but the roots. */
HS_INLINE void five_matches(const match_point sample[5], five_sample *s) {
  real rows[5][9], e[3][3][LINEAR], system[CONSTRAINTS][CUBIC];
  epipolar_rows(sample, 5, rows);
  (void)null_space(rows, 5, s->basis);
  for (int i = 0; i < 9; i++)
    for (int k = 0; k < LINEAR; k++) e[i / 3][i % 3][k] = s->basis[k][i];
  five_constraints(e, system);
  five_eliminate(system);
  for (int i = 0; i < 3; i++) subtract_shifted(system[4 + 2 * i] + 10, system[5 + 2 * i] + 10, s->rows + i);
  for (int i = 0; i <= TWO_VIEW_FIVE_DEGREE; i++) s->polynomial[i] = real_of(0.0);
  for (int i = 0; i < 3; i++) {
    const z_row *const p = s->rows + (i + 1) % 3, *const q = s->rows + (i + 2) % 3;
    add_minor(p->x, q->y, p->y, q->x, s->rows[i].one, s->polynomial);
  }
}

/* A polynomial of degree 10, or the one with its coefficients in the opposite order (is_reversed above 0), whose roots are
   the reciprocals. */
HS_INLINE void five_polynomial(const real polynomial[TWO_VIEW_FIVE_DEGREE + 1], real is_reversed,
                               real out[TWO_VIEW_FIVE_DEGREE + 1]) {
  for (int i = 0; i <= TWO_VIEW_FIVE_DEGREE; i++)
    out[i] = real_if_above(is_reversed, real_of(0.0), polynomial[TWO_VIEW_FIVE_DEGREE - i], polynomial[i]);
}

HS_INLINE real value_at(const real *coefficients, int degree, real x) {
  real value = coefficients[degree];
  for (int i = degree - 1; i >= 0; i--) value = value * x + coefficients[i];
  return value;
}

/* The root between low and high, where the signs differ: Newton's steps, or halving where one leaves the bracket. */
HS_INLINE real bracketed_root(const real c[TWO_VIEW_FIVE_DEGREE + 1], real low, real high) {
  const real zero = real_of(0.0), at_low = value_at(c, TWO_VIEW_FIVE_DEGREE, low);
  real x = 0.5 * (low + high);
  for (int step = 0; step < ROOT_NEWTON_STEPS; step++) {
    real value = c[TWO_VIEW_FIVE_DEGREE], slope = zero;
    for (int i = TWO_VIEW_FIVE_DEGREE - 1; i >= 0; i--) {
      slope = slope * x + value;
      value = value * x + c[i];
    }
    const real same = value * at_low; /* above 0: the root is beyond x */
    low = real_if_above(same, zero, x, low);
    high = real_if_above(same, zero, high, x);
    const real newton = x - value / slope, half = 0.5 * (low + high);
    /* a settled step may fall beside the bracket by rounding */
    x = real_if_above(low - ROOT_ACCURACY, newton, half, real_if_above(newton, high + ROOT_ACCURACY, half, newton));
  }
  return x;
}

/* The essential matrix of length 1 at a root of the (reversed) polynomial. Returns above 0 where it is one that two cameras
   can have made of the sample. */
HS_INLINE real five_solution(const five_sample *s, const match_point sample[5], real root, real is_reversed,
                             real essential[9]) {
  const real zero = real_of(0.0);
  const real z = real_if_above(is_reversed, zero, 1.0 / root, root);
  real matrix[9], null[3] = {zero, zero, zero};
  for (int r = 0; r < 3; r++) { /* rows across which x, y and 1 lie, as columns for epipole_of */
    const real entry[3] = {value_at(s->rows[r].x, 4, z), value_at(s->rows[r].y, 4, z), value_at(s->rows[r].one, 4, z)};
    const real inverse = 1.0 / real_sqrt(dot(entry, entry, 3));
    for (int c = 0; c < 3; c++) matrix[3 * c + r] = entry[c] * inverse;
  }
  epipole_of(matrix, null);
  for (int i = 0; i < 9; i++)
    essential[i] =
        null[0] * s->basis[0][i] + null[1] * s->basis[1][i] + null[2] * (z * s->basis[2][i] + s->basis[3][i]);
  const real inverse = 1.0 / real_sqrt(dot(essential, essential, 9));
  for (int i = 0; i < 9; i++) essential[i] = essential[i] * inverse;
  return oriented(essential, sample, 5);
}

#endif
