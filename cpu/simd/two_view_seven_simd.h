/*
 * Fundamental matrices from samples of seven matches: the bits of seven_matches (stages/two_view_math.h) in less
 * time. two_view_simd.c includes it.
 *
 * Differences from the plain order; none changes a result that is used:
 * - All loops have constant bounds, and a row stays in registers for all its reflections.
 * - Two registers of samples alternate, because each often waits for a root or a quotient.
 * - Products with the zeros of the basis' unit vectors are left out: the other terms are finite, and no entry is -0.
 * - Newton's steps end when every lane is at its fixed point. NaN counts as one, because it stays.
 * - A matrix is not computed where no lane has the root. Its sides are tested only while a lane may still be usable.
 * - A product excludes dependent matches instead of a quotient. If a lane may be dependent, or its numbers are so large
 *   that products overflow, its register is solved in the plain order, unless the lane repeats a point: then it has no
 *   matrix.
 */
#ifndef HARTSIFT_CPU_SIMD_TWO_VIEW_SEVEN_SIMD_H
#define HARTSIFT_CPU_SIMD_TWO_VIEW_SEVEN_SIMD_H

#define INDEPENDENT 1.0e-19 /* 10 times the limit of `dependent`, so that rounding of the bound does not matter */
#define TOTAL_MAX   1.0e100 /* maximum sum of the rows' squared lengths: nothing in the solver overflows */
/* Each phase is one function, so that the code of a sample fits into the instruction cache. */
#define SEVEN_PHASE __attribute__((noinline))
enum { PAIR = 2, FIRST_STEPS = 4, FIRST_SIDES = 3 };
_Static_assert(TWO_VIEW_SAMPLES % (PAIR * REAL_LANES) == 0, "samples fill pairs of registers");

/* A register of samples between the phases of the solver. */
typedef struct seven_register {
  match_point sample[TWO_VIEW_SEVEN];
  real basis[2][9], over[3], under[3], spread;
  double certain[REAL_LANES]; /* above 0: the matches are not dependent and the result is valid */
} seven_register;

/* Whether no lane of a exceeds b. */
SIMD_INLINE bool none_above(real a, real b) { return simd_f64_above(a, b) == 0; }

SIMD_INLINE void load_sevens(const two_view_matches *matches, const uint32_t *samples, match_point *out) {
  for (int k = 0; k < (int)TWO_VIEW_SEVEN; k++)
    out[k] = (match_point){simd_f64_pick(matches->ax, samples + k, TWO_VIEW_SEVEN),
                           simd_f64_pick(matches->ay, samples + k, TWO_VIEW_SEVEN),
                           simd_f64_pick(matches->bx, samples + k, TWO_VIEW_SEVEN),
                           simd_f64_pick(matches->by, samples + k, TWO_VIEW_SEVEN)};
}

/* Reflects row k by reflections 0 to k - 1, then what is left of it onto axis k. The row stays in registers. Sets
   certain to 0 where the row may depend on the rows before it. Adds the row's squared length, up to rounding, to
   *total. */
SIMD_INLINE void seven_step(const match_point *p, const int k, real normals[TWO_VIEW_SEVEN][9], real *factor,
                            real *certain, real *total) {
  const real zero = real_of(0.0), bound = (p->x * p->x + p->y * p->y + 1.0) * (p->u * p->u + p->v * p->v + 1.0);
  real row[9] = {p->u * p->x, p->u * p->y, p->u, p->v * p->x, p->v * p->y, p->v, p->x, p->y, real_of(1.0)};
  if (k > 0) reflect9(normals[0], factor[0], 0, row);
  if (k > 1) reflect9(normals[1], factor[1], 1, row);
  if (k > 2) reflect9(normals[2], factor[2], 2, row);
  if (k > 3) reflect9(normals[3], factor[3], 3, row);
  if (k > 4) reflect9(normals[4], factor[4], 4, row);
  if (k > 5) reflect9(normals[5], factor[5], 5, row);
  real rest = row[k] * row[k];
  for (int i = k + 1; i < 9; i++) rest = rest + row[i] * row[i];
  *certain = real_if_above(rest, bound * INDEPENDENT, *certain, zero);
  *total = *total + bound;
  const real length = real_sqrt(rest);
  factor[k] = 1.0 / (rest + real_absolute(row[k]) * length);
  row[k] = row[k] + real_if_above(zero, row[k], -length, length);
  for (int i = k; i < 9; i++) normals[k][i] = row[i];
}

/* Applies reflection j to a vector whose entry j is 0 and whose entries before j stay 0. */
SIMD_INLINE void unfold_step(const real normal[9], real factor, const int j, real vector[9]) {
  real along = normal[j + 1] * vector[j + 1];
  for (int i = j + 2; i < 9; i++) along = along + normal[i] * vector[i];
  along = along * factor;
  vector[j] = 0.0 - along * normal[j];
  for (int i = j + 1; i < 9; i++) vector[i] = vector[i] - along * normal[i];
}

/* seven_step of both registers: each waits for its roots and quotients while the other computes. */
SIMD_INLINE void both_steps(const seven_register pair[PAIR], const int k, real normals[PAIR][TWO_VIEW_SEVEN][9],
                            real factor[PAIR][TWO_VIEW_SEVEN], real certain[PAIR], real total[PAIR]) {
  for (int g = 0; g < PAIR; g++) seven_step(pair[g].sample + k, k, normals[g], factor[g], certain + g, total + g);
}

SIMD_INLINE void both_unfold(seven_register pair[PAIR], const int j, real normals[PAIR][TWO_VIEW_SEVEN][9],
                             real factor[PAIR][TWO_VIEW_SEVEN]) {
  for (int g = 0; g < PAIR; g++)
    for (int b = 0; b < 2; b++) unfold_step(normals[g][j], factor[g][j], j, pair[g].basis[b]);
}

/* Computes basis and certain. */
SEVEN_PHASE static void seven_bases(seven_register pair[PAIR]) {
  real normals[PAIR][TWO_VIEW_SEVEN][9], factor[PAIR][TWO_VIEW_SEVEN], certain[PAIR], total[PAIR];
  for (int g = 0; g < PAIR; g++) {
    certain[g] = real_of(1.0);
    total[g] = real_of(0.0);
    for (int b = 0; b < 2; b++) {
      pair[g].basis[b][7] = real_of(b == 0 ? 1.0 : 0.0);
      pair[g].basis[b][8] = real_of(b == 0 ? 0.0 : 1.0);
    }
  }
  both_steps(pair, 0, normals, factor, certain, total);
  both_steps(pair, 1, normals, factor, certain, total);
  both_steps(pair, 2, normals, factor, certain, total);
  both_steps(pair, 3, normals, factor, certain, total);
  both_steps(pair, 4, normals, factor, certain, total);
  both_steps(pair, 5, normals, factor, certain, total);
  both_steps(pair, 6, normals, factor, certain, total);
  both_unfold(pair, 6, normals, factor);
  both_unfold(pair, 5, normals, factor);
  both_unfold(pair, 4, normals, factor);
  both_unfold(pair, 3, normals, factor);
  both_unfold(pair, 2, normals, factor);
  both_unfold(pair, 1, normals, factor);
  both_unfold(pair, 0, normals, factor);
  for (int g = 0; g < PAIR; g++)
    real_store(pair[g].certain, real_if_above(real_of(TOTAL_MAX), total[g], certain[g], real_of(0.0)));
}

/* Computes det(basis[0] + z basis[1]) as a polynomial in z. */
SIMD_INLINE void seven_cubic(const seven_register *s, real cubic[4]) {
  real cofactors[2][9];
  for (int b = 0; b < 2; b++) cofactors3(s->basis[b], cofactors[b]);
  cubic[0] = dot(s->basis[0], cofactors[0], 3);
  cubic[1] = dot(s->basis[1], cofactors[0], 9);
  cubic[2] = dot(s->basis[0], cofactors[1], 9);
  cubic[3] = dot(s->basis[1], cofactors[1], 3);
}

/* cubic_roots of two registers. */
SEVEN_PHASE static void seven_roots(seven_register pair[PAIR]) {
  const real zero = real_of(0.0), one = real_of(1.0);
  real middle[PAIR], p[PAIR], q[PAIR], t[PAIR], sign[PAIR], next[PAIR];
  real end[PAIR], top[PAIR];
  for (int g = 0; g < PAIR; g++) {
    real c[4];
    seven_cubic(pair + g, c);
    end[g] = real_absolute(c[0]);
    top[g] = real_absolute(c[3]);
    const real leading = real_if_above(end[g], top[g], c[0], c[3]), last = real_if_above(end[g], top[g], c[3], c[0]);
    const real a = real_if_above(end[g], top[g], c[1], c[2]) / leading;
    const real b = real_if_above(end[g], top[g], c[2], c[1]) / leading;
    middle[g] = a * (1.0 / 3.0);
    p[g] = b - a * middle[g];
    const real signed_q = last / leading + middle[g] * (2.0 * middle[g] * middle[g] - b);
    sign[g] = real_if_above(signed_q, zero, -one, one);
    q[g] = real_absolute(signed_q);
  }
  for (int g = 0; g < PAIR; g++) t[g] = real_sqrt(real_sqrt(q[g]));
  for (int g = 0; g < PAIR; g++) t[g] = real_sqrt(real_sqrt(q[g] * t[g]));
  for (int g = 0; g < PAIR; g++) t[g] = t[g] + real_sqrt(real_largest(-p[g], zero)) + 1.0e-30;
  for (int i = 0; i < CUBIC_NEWTON_STEPS; i++) {
    bool moves = i < FIRST_STEPS;
    for (int g = 0; g < PAIR; g++) {
      const real square = t[g] * t[g];
      next[g] = (2.0 * t[g] * square + q[g]) / (3.0 * square + p[g]);
    }
    for (int g = 0; g < PAIR; g++) {
      /* NaN counts as a fixed point, because it stays */
      moves = moves || !none_above(t[g], next[g]) || !none_above(next[g], t[g]);
      t[g] = next[g];
    }
    if (!moves) break;
  }
  for (int g = 0; g < PAIR; g++) {
    pair[g].spread = -(3.0 * t[g] * t[g] + 4.0 * p[g]);
    const real root = real_sqrt(real_largest(pair[g].spread, zero));
    const real z[3] = {sign[g] * t[g] - middle[g], sign[g] * -0.5 * (t[g] + root) - middle[g],
                       sign[g] * -0.5 * (t[g] - root) - middle[g]};
    for (int r = 0; r < 3; r++) {
      pair[g].over[r] = real_if_above(end[g], top[g], one, z[r]);
      pair[g].under[r] = real_if_above(end[g], top[g], z[r], one);
    }
  }
}

/* Returns a value above 0 where the root exists and all sampled matches are on the same side of their epipoles. */
SIMD_INLINE real seven_sides(const real m[9], const match_point sample[TWO_VIEW_SEVEN], real exists) {
  const real zero = real_of(0.0);
  real epipole[3] = {zero, zero, zero};
  real low = real_if_above(exists, zero, real_of(HUGE_VAL), real_of(-1.0)), high = -low;
  epipole_of(m, epipole);
  for (int k = 0; k < (int)TWO_VIEW_SEVEN; k++) {
    const match_point *const p = sample + k;
    const real through[3] = {epipole[1] - epipole[2] * p->v, epipole[2] * p->u - epipole[0],
                             epipole[0] * p->v - epipole[1] * p->u};
    const real line[3] = {m[0] * p->x + m[1] * p->y + m[2], m[3] * p->x + m[4] * p->y + m[5],
                          m[6] * p->x + m[7] * p->y + m[8]};
    const real side = dot(line, through, 3);
    low = real_smallest(low, side);
    high = real_largest(high, side);
    if (k + 1 >= FIRST_SIDES && none_above(real_largest(low, -high), zero)) break;
  }
  return real_largest(low, -high);
}

/* Writes the matrices of root r where they are usable. */
SEVEN_PHASE static void seven_matrix(const seven_register *s, int r, int first, two_view_seven *out) {
  const real exists = r == 0 ? real_of(1.0) : s->spread;
  real f[9];
  double side[REAL_LANES];
  for (int l = 0; l < REAL_LANES; l++) out->usable[r][first + l] = false;
  if (none_above(exists, real_of(0.0))) return;
  const real norm = real_sqrt(s->over[r] * s->over[r] + s->under[r] * s->under[r]);
  const real to_first = s->under[r] / norm, to_second = s->over[r] / norm;
  for (int i = 0; i < 9; i++) f[i] = to_first * s->basis[0][i] + to_second * s->basis[1][i];
  const real sided = seven_sides(f, s->sample, exists);
  if (none_above(sided, real_of(0.0))) return;
  for (int i = 0; i < 9; i++) real_store(out->matrix[r][i] + first, f[i]);
  real_store(side, sided);
  for (int l = 0; l < REAL_LANES; l++) out->usable[r][first + l] = side[l] > 0.0 && !out->repeats[first + l];
}

SEVEN_PHASE static void mark_repeats(const match_point sample[TWO_VIEW_SEVEN], bool repeats[REAL_LANES]) {
  double nearest[REAL_LANES];
  real_store(nearest, nearest_of(sample, TWO_VIEW_SEVEN));
  for (int l = 0; l < REAL_LANES; l++) repeats[l] = !(nearest[l] > 0.0);
}

static void seven_of_pair(const two_view_matches *matches, const uint32_t *samples, const bool *may_repeat, int first,
                          two_view_seven *out) {
  seven_register pair[PAIR];
  for (int g = 0; g < PAIR; g++)
    load_sevens(matches, samples + (first + g * REAL_LANES) * (int)TWO_VIEW_SEVEN, pair[g].sample);
  seven_bases(pair);
  seven_roots(pair);
  for (int g = 0; g < PAIR; g++) {
    const int at = first + g * REAL_LANES;
    bool is_plain = false, repeats = !may_repeat;
    for (int l = 0; l < REAL_LANES; l++) {
      out->repeats[at + l] = out->dependent[at + l] = false;
      repeats = repeats || may_repeat[at + l];
    }
    if (repeats) mark_repeats(pair[g].sample, out->repeats + at);
    for (int l = 0; l < REAL_LANES; l++) is_plain = is_plain || !(pair[g].certain[l] > 0.0 || out->repeats[at + l]);
    if (is_plain) seven_of_register(matches, samples, at, out);
    for (int r = 0; r < (int)TWO_VIEW_CUBIC_ROOTS && !is_plain; r++) seven_matrix(pair + g, r, at, out);
  }
}

static void seven_in_pairs(const two_view_matches *matches, const uint32_t *samples, const bool *may_repeat,
                           two_view_seven *out) {
  for (int first = 0; first < (int)TWO_VIEW_SAMPLES; first += PAIR * REAL_LANES)
    seven_of_pair(matches, samples, may_repeat, first, out);
}

#endif
