/*
 * The arithmetic of two-view geometry for one match or one sample, in a type `real` that the including file defines: a
 * double, or a vector of doubles with one match or one sample in each lane. The file must define the operators of that
 * type and
 *
 *   real_of(double)              the number in every lane
 *   real_sqrt(real)              correctly rounded
 *   real_if_above(a, b, x, y)    x where a > b, else (also where one is NaN) y
 */
#ifndef HARTSIFT_STAGES_TWO_VIEW_MATH_H
#define HARTSIFT_STAGES_TWO_VIEW_MATH_H

#include "stages/portable.h"
#include "stages/two_view.h"

enum { CUBIC_NEWTON_STEPS = 8 };

/* A match: (x, y) of image a, (u, v) of image b. */
typedef struct match_point {
  real x, y, u, v;
} match_point;

HS_INLINE real real_largest(real a, real b) { return real_if_above(a, b, a, b); }
HS_INLINE real real_smallest(real a, real b) { return real_if_above(a, b, b, a); }
HS_INLINE real real_absolute(real a) { return real_if_above(a, real_of(0.0), a, -a); }

/* Parts of the epipolar lines of a match that its error needs: l = M a; the first two components of k = M^T b; value =
 * b^T M a; and gradient, the squared length of the derivative of `value` by the four coordinates. At the epipoles both
 * `value` and `gradient` are 0. */
typedef struct epipolar_lines {
  real l0, l1, k0, k1, value, gradient;
} epipolar_lines;

HS_INLINE epipolar_lines epipolar_parts(const real m[9], const match_point *p) {
  epipolar_lines e;
  e.l0 = m[0] * p->x + m[1] * p->y + m[2];
  e.l1 = m[3] * p->x + m[4] * p->y + m[5];
  e.k0 = m[0] * p->u + m[3] * p->v + m[6];
  e.k1 = m[1] * p->u + m[4] * p->v + m[7];
  e.value = p->u * e.l0 + p->v * e.l1 + (m[6] * p->x + m[7] * p->y + m[8]);
  e.gradient = e.l0 * e.l0 + e.l1 * e.l1 + e.k0 * e.k0 + e.k1 * e.k1;
  return e;
}

/* Returns the squared Sampson error of an epipolar constraint. */
HS_INLINE real epipolar_square(const real m[9], const match_point *p) {
  const epipolar_lines e = epipolar_parts(m, p);
  return e.value * e.value / real_largest(e.gradient, real_of(1.0e-300));
}

/* A match under a homography: the mapped point, the inverse of its third coordinate, and the covariance S = A A^T +
   1 of the difference, where A is the derivative of the mapping. */
typedef struct mapped_match {
  real w, inverse, px, py, s00, s01, s11, determinant;
} mapped_match;

HS_INLINE mapped_match homography_parts(const real h[9], const match_point *p) {
  mapped_match m;
  m.w = h[6] * p->x + h[7] * p->y + h[8];
  m.inverse = 1.0 / m.w;
  m.px = (h[0] * p->x + h[1] * p->y + h[2]) * m.inverse;
  m.py = (h[3] * p->x + h[4] * p->y + h[5]) * m.inverse;
  const real a00 = (h[0] - m.px * h[6]) * m.inverse, a01 = (h[1] - m.px * h[7]) * m.inverse;
  const real a10 = (h[3] - m.py * h[6]) * m.inverse, a11 = (h[4] - m.py * h[7]) * m.inverse;
  m.s00 = a00 * a00 + a01 * a01 + 1.0;
  m.s01 = a00 * a10 + a01 * a11;
  m.s11 = a10 * a10 + a11 * a11 + 1.0;
  m.determinant = m.s00 * m.s11 - m.s01 * m.s01;
  return m;
}

/* Returns the squared Sampson error under a homography. */
HS_INLINE real mapped_square(const mapped_match *m, const match_point *p) {
  const real dx = m->px - p->u, dy = m->py - p->v;
  const real square = (dx * dx * m->s11 - 2.0 * dx * dy * m->s01 + dy * dy * m->s00) / m->determinant;
  return real_if_above(m->w, real_of(0.0), square, real_of(HUGE_VAL));
}

HS_INLINE real homography_square(const real h[9], const match_point *p) {
  const mapped_match m = homography_parts(h, p);
  return mapped_square(&m, p);
}

/* Returns the weight for the least-squares step that increases the score; it multiplies the terms of the form. 0 beyond
 * the limit. */
HS_INLINE real tukey_weight(real square, real over_limit) {
  const real gain = real_largest(1.0 - square * over_limit, real_of(0.0));
  return gain * gain;
}

/* Linearises the error r = value / sqrt(gradient). Writes J sqrt(gradient) and value, where J is the derivative of r by
 * the nine elements of M. The form is the sum of their products times the returned factor. Terms may be NaN if the
 * weight is 0. */
HS_INLINE real epipolar_term(const real m[9], const match_point *p, real over_limit, real jacobian[9], real *value) {
  const epipolar_lines e = epipolar_parts(m, p);
  const real gradient = real_largest(e.gradient, real_of(1.0e-12));
  const real share = e.value / gradient; /* term for the decrease of r with growing gradient */
  const real weight = tukey_weight(e.value * share, over_limit);
  const real l0 = share * e.l0, l1 = share * e.l1, k0 = share * e.k0, k1 = share * e.k1;
  jacobian[0] = p->u * p->x - l0 * p->x - k0 * p->u;
  jacobian[1] = p->u * p->y - l0 * p->y - k1 * p->u;
  jacobian[2] = p->u - l0;
  jacobian[3] = p->v * p->x - l1 * p->x - k0 * p->v;
  jacobian[4] = p->v * p->y - l1 * p->y - k1 * p->v;
  jacobian[5] = p->v - l1;
  jacobian[6] = p->x - k0;
  jacobian[7] = p->y - k1;
  jacobian[8] = real_of(1.0);
  *value = e.value;
  return weight / gradient;
}

/* Writes the weighted left factor (upper triangle) of a match's term of the form. It may be NaN where the weight is
   0. Returns the weight. */
HS_INLINE real homography_term(const real h[9], const match_point *p, real over_limit, real left[6]) {
  const mapped_match m = homography_parts(h, p);
  const real weight = tukey_weight(mapped_square(&m, p), over_limit);
  const real factor = weight * m.inverse * m.inverse / m.determinant;
  const real w00 = factor * m.s11, w01 = -factor * m.s01, w11 = factor * m.s00;
  left[0] = w00;
  left[1] = w01;
  left[2] = -(w00 * p->u + w01 * p->v);
  left[3] = w11;
  left[4] = -(w01 * p->u + w11 * p->v);
  left[5] = w00 * p->u * p->u + 2.0 * w01 * p->u * p->v + w11 * p->v * p->v;
  return weight;
}

/* Reflects `vector` across the plane normal to `normal`. Both have entries from `first` on. factor: 2 / (squared
 * length of normal). */
HS_INLINE void reflect9(const real normal[9], real factor, int first, real vector[9]) {
  real along = normal[first] * vector[first];
  for (int i = first + 1; i < 9; i++) along = along + normal[i] * vector[i];
  along = along * factor;
  for (int i = first; i < 9; i++) vector[i] = vector[i] - along * normal[i];
}

/* Computes an orthonormal basis of the 9 - count dimensions orthogonal to `count` rows, by Householder reflections. The
 * rows are destroyed. Returns the smallest share, over all rows, of a row's squared length that is orthogonal to the
 * rows before it: 0 if rows are dependent. */
HS_INLINE real null_space(real rows[][9], int count, real basis[][9]) {
  real factor[7], share = real_of(1.0);
  for (int k = 0; k < count; k++) {
    real *const row = rows[k];
    real before = row[0] * row[0];
    for (int i = 1; i < 9; i++) before = before + row[i] * row[i];
    for (int j = 0; j < k; j++) reflect9(rows[j], factor[j], j, row);
    real rest = row[k] * row[k];
    for (int i = k + 1; i < 9; i++) rest = rest + row[i] * row[i];
    share = real_smallest(share, rest / before);
    const real length = real_sqrt(rest);
    /* reflects the remaining part of the row onto axis k; the sign avoids cancellation */
    factor[k] = 1.0 / (rest + real_absolute(row[k]) * length);
    row[k] = row[k] + real_if_above(real_of(0.0), row[k], -length, length);
  }
  for (int b = 0; b < 9 - count; b++) {
    for (int i = 0; i < 9; i++) basis[b][i] = real_of(i == count + b ? 1.0 : 0.0);
    for (int j = count - 1; j >= 0; j--) reflect9(rows[j], factor[j], j, basis[b]);
  }
  return share;
}

/* Writes the epipolar constraints of `count` matches: row . vec(M) = b^T M a. */
HS_INLINE void epipolar_rows(const match_point *sample, int count, real rows[][9]) {
  for (int k = 0; k < count; k++) {
    const match_point *const p = sample + k;
    const real row[9] = {p->u * p->x, p->u * p->y, p->u, p->v * p->x, p->v * p->y, p->v, p->x, p->y, real_of(1.0)};
    for (int i = 0; i < 9; i++) rows[k][i] = row[i];
  }
}

HS_INLINE void cofactors3(const real m[9], real out[9]) {
  for (int r = 0; r < 3; r++) {
    const real *const p = m + 3 * ((r + 1) % 3), *const q = m + 3 * ((r + 2) % 3);
    for (int c = 0; c < 3; c++) out[3 * r + c] = p[(c + 1) % 3] * q[(c + 2) % 3] - p[(c + 2) % 3] * q[(c + 1) % 3];
  }
}

HS_INLINE real dot(const real *a, const real *b, int count) {
  real sum = a[0] * b[0];
  for (int i = 1; i < count; i++) sum = sum + a[i] * b[i];
  return sum;
}

/* Returns the positive root of t^3 + p t = q, q at least 0. For t > 0 the cubic is convex and the root is unique, so
 * Newton's steps converge downwards from any start above the root. If q is between 1e-10 and 1, the start is above the
 * root by less than a factor of two. Otherwise Newton makes one step up, or a few more steps down. */
HS_INLINE real positive_root(real p, real q) {
  real t = real_sqrt(real_sqrt(q));
  t = real_sqrt(real_sqrt(q * t)); /* q^(5/16) */
  t = t + real_sqrt(real_largest(-p, real_of(0.0))) + 1.0e-30;
  for (int i = 0; i < CUBIC_NEWTON_STEPS; i++) {
    const real square = t * t;
    t = (2.0 * t * square + q) / (3.0 * square + p);
  }
  return t;
}

/* Computes the real roots of c[0] + c[1] z + c[2] z^2 + c[3] z^3 as fractions over[i] / under[i], in which one of
 * the two numbers is 1. Returns a value above 0 if all three roots are real; otherwise only the first is. */
HS_INLINE real cubic_roots(const real c[4], real over[3], real under[3]) {
  const real one = real_of(1.0), end = real_absolute(c[0]), top = real_absolute(c[3]);
  /* if |c[0]| is larger than |c[3]|, the cubic of 1 / z is solved, so that the leading coefficient is the larger one */
  const real leading = real_if_above(end, top, c[0], c[3]), last = real_if_above(end, top, c[3], c[0]);
  const real a = real_if_above(end, top, c[1], c[2]) / leading, b = real_if_above(end, top, c[2], c[1]) / leading;
  const real middle = a * (1.0 / 3.0);
  const real p = b - a * middle;
  const real q = last / leading + middle * (2.0 * middle * middle - b);
  const real sign = real_if_above(q, real_of(0.0), -one, one);
  const real t = positive_root(p, real_absolute(q));
  const real spread = -(3.0 * t * t + 4.0 * p); /* discriminant of the remaining quadratic */
  const real root = real_sqrt(real_largest(spread, real_of(0.0)));
  const real z[3] = {sign * t - middle, sign * -0.5 * (t + root) - middle, sign * -0.5 * (t - root) - middle};
  for (int i = 0; i < 3; i++) {
    over[i] = real_if_above(end, top, one, z[i]);
    under[i] = real_if_above(end, top, z[i], one);
  }
  return spread;
}

/* Computes the direction to image b's epipole, or its opposite: the longest of three vectors, each orthogonal to
 * two columns of m. */
HS_INLINE void epipole_of(const real m[9], real out[3]) {
  real longest = real_of(-1.0);
  for (int k = 0; k < 3; k++) {
    const int i = k, j = (k + 1) % 3;
    const real across[3] = {m[3 + i] * m[6 + j] - m[6 + i] * m[3 + j], m[6 + i] * m[j] - m[i] * m[6 + j],
                            m[i] * m[3 + j] - m[3 + i] * m[j]};
    const real square = dot(across, across, 3);
    for (int c = 0; c < 3; c++) out[c] = real_if_above(square, longest, across[c], out[c]);
    longest = real_largest(square, longest);
  }
}

/* Returns a value above 0 if all sampled matches are on the same side of their epipoles. */
HS_INLINE real oriented(const real m[9], const match_point *sample, int count) {
  real epipole[3] = {real_of(0.0), real_of(0.0), real_of(0.0)}, low = real_of(HUGE_VAL), high = real_of(-HUGE_VAL);
  epipole_of(m, epipole);
  for (int k = 0; k < count; k++) {
    const match_point *const p = sample + k;
    const real through[3] = {epipole[1] - epipole[2] * p->v, epipole[2] * p->u - epipole[0],
                             epipole[0] * p->v - epipole[1] * p->u};
    const real line[3] = {m[0] * p->x + m[1] * p->y + m[2], m[3] * p->x + m[4] * p->y + m[5],
                          m[6] * p->x + m[7] * p->y + m[8]};
    const real side = dot(line, through, 3);
    low = real_smallest(low, side);
    high = real_largest(high, side);
  }
  return real_largest(low, -high);
}

/* Returns the smallest squared distance between two matches of the sample, in either image: 0 if two share a point. */
HS_INLINE real nearest_of(const match_point *sample, int count) {
  real nearest = real_of(HUGE_VAL);
  for (int i = 1; i < count; i++) {
    for (int j = 0; j < i; j++) {
      const real dx = sample[i].x - sample[j].x, dy = sample[i].y - sample[j].y;
      const real du = sample[i].u - sample[j].u, dv = sample[i].v - sample[j].v;
      nearest = real_smallest(nearest, real_smallest(dx * dx + dy * dy, du * du + dv * dv));
    }
  }
  return nearest;
}

/* Computes the fundamental matrices f of a sample. usable[i] is above 0 if the i-th is valid. Returns the result of
 * null_space. */
HS_INLINE real seven_matches(const match_point sample[7], real f[3][9], real usable[3]) {
  real rows[7][9], basis[2][9], cofactors[2][9], over[3], under[3];
  epipolar_rows(sample, 7, rows);
  const real share = null_space(rows, 7, basis);
  /* det(basis[0] + z basis[1]) as a polynomial in z */
  for (int b = 0; b < 2; b++) cofactors3(basis[b], cofactors[b]);
  const real cubic[4] = {dot(basis[0], cofactors[0], 3), dot(basis[1], cofactors[0], 9), dot(basis[0], cofactors[1], 9),
                         dot(basis[1], cofactors[1], 3)};
  const real spread = cubic_roots(cubic, over, under);
  for (int r = 0; r < 3; r++) {
    /* length of the matrix: the basis is orthonormal */
    const real norm = real_sqrt(over[r] * over[r] + under[r] * under[r]);
    const real first = under[r] / norm, second = over[r] / norm;
    for (int i = 0; i < 9; i++) f[r][i] = first * basis[0][i] + second * basis[1][i];
    const real sided = oriented(f[r], sample, 7);
    usable[r] = r == 0 ? sided : real_if_above(spread, real_of(0.0), sided, real_of(0.0));
  }
  return share;
}

/* Essential matrices from five matches (Nister, PAMI 2004), with a sample or a solution in each lane of `real`. E
   is a combination x E0 + y E1 + z E2 + E3 of the null space of five epipolar constraints. Ten cubic equations say
   that E has two equal singular values and that the third is 0. Eliminating ten monomials leaves a 3 x 3 matrix of
   polynomials in z, whose determinant, of degree 10, vanishes at the solutions. */

#define ROOT_ACCURACY 1.0e-10
enum { LINEAR = 4, QUADRATIC = 10, CUBIC = 20, CONSTRAINTS = 10, ROOT_NEWTON_STEPS = 7 };

/* A row of the matrix of polynomials in z: the entries for x and y have degree 3, the entry for 1 has degree 4. */
typedef struct z_row {
  real x[5], y[5], one[5];
} z_row;

/* Data of a sample that turn the roots of its polynomial into essential matrices. */
typedef struct five_sample {
  real basis[4][9], polynomial[TWO_VIEW_FIVE_DEGREE + 1];
  z_row rows[3];
} five_sample;

/* Monomials. Linear: x y z 1. Quadratic: x2 xy xz x y2 yz y z2 z 1. Cubic, with the eliminated ones first: x3 y3 x2y
 * xy2 x2z x2 y2z y2 xyz xy | xz2 xz x yz2 yz y z3 z2 z 1. */
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

/* Adds p * q to sum. */
HS_INLINE void add_product_1_1(const real p[LINEAR], const real q[LINEAR], real sum[QUADRATIC]) {
  for (int i = 0; i < LINEAR; i++)
    for (int j = 0; j < LINEAR; j++) sum[quadratic_of(i, j)] = sum[quadratic_of(i, j)] + p[i] * q[j];
}

HS_INLINE void add_product_2_1(const real p[QUADRATIC], const real q[LINEAR], real sum[CUBIC]) {
  for (int i = 0; i < QUADRATIC; i++)
    for (int j = 0; j < LINEAR; j++) sum[cubic_of(i, j)] = sum[cubic_of(i, j)] + p[i] * q[j];
}

/* Writes the ten constraints on e[r][c], the linear polynomials of E's elements: det E = 0, then row by row (E E^T
   - trace/2) E = 0. */
HS_INLINE void five_constraints(real e[3][3][LINEAR], real out[CONSTRAINTS][CUBIC]) {
  const real zero = real_of(0.0);
  real square[3][3][QUADRATIC], half[QUADRATIC];
  for (int r = 0; r < CONSTRAINTS; r++)
    for (int k = 0; k < CUBIC; k++) out[r][k] = zero;
  for (int c = 0; c < 3; c++) { /* the determinant is expanded along the last row */
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

/* Eliminates the first ten monomials, with the largest pivot in each lane. Afterwards rows 4 to 9 express these
 * monomials by the others. */
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

/* Computes row p minus z times row q of the eliminated system. p's eliminated monomial is z times q's, so the two
 * cancel. */
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

/* Adds (p0 q1 - p1 q0) * t to sum, for polynomials of degrees at most 3, 3 and 4. */
HS_INLINE void add_minor(const real p0[5], const real q1[5], const real p1[5], const real q0[5], const real t[5],
                         real sum[TWO_VIEW_FIVE_DEGREE + 1]) {
  real minor[7];
  for (int i = 0; i < 7; i++) minor[i] = real_of(0.0);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) minor[i + j] = minor[i + j] + (p0[i] * q1[j] - p1[i] * q0[j]);
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < 5; j++) sum[i + j] = sum[i + j] + minor[i] * t[j];
}

/* Computes all data of a sample except the roots. Points are in camera coordinates (focal length 1). */
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

/* A polynomial of degree 10. is_reversed above 0: with its coefficients in the opposite order, so that its roots
   are the reciprocals. */
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

/* Finds the root between low and high, at which the signs differ. Makes Newton's steps; if a step would leave the
 * bracket, halves it instead. */
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
    /* ROOT_ACCURACY allows for rounding: a step at the root may leave the bracket */
    x = real_if_above(low - ROOT_ACCURACY, newton, half, real_if_above(newton, high + ROOT_ACCURACY, half, newton));
  }
  return x;
}

/* Computes the essential matrix of length 1 at a root of the (possibly reversed) polynomial. Returns a value above
 * 0 if two cameras can have made the sample with it. */
HS_INLINE real five_solution(const five_sample *s, const match_point sample[5], real root, real is_reversed,
                             real essential[9]) {
  const real zero = real_of(0.0);
  const real z = real_if_above(is_reversed, zero, 1.0 / root, root);
  real matrix[9], null[3] = {zero, zero, zero};
  /* vectors orthogonal to the polynomial rows for x, y and 1, the columns that epipole_of needs */
  for (int r = 0; r < 3; r++) {
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
