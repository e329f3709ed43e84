/*
 * The operations of stages/two_view.h on TWO_VIEW_LANES lanes, in registers of REAL_LANES lanes. The including file
 * defines the operators for stages/two_view_math.h, and REAL_LANES, real_load, real_store and TWO_VIEW_NAME(operation).
 */
#ifndef HARTSIFT_CPU_REF_TWO_VIEW_LANES_H
#define HARTSIFT_CPU_REF_TWO_VIEW_LANES_H

#include "stages/two_view.h"
#include "stages/two_view_math.h"

enum { REGISTERS = (int)TWO_VIEW_LANES / (int)REAL_LANES };

/* Coordinates of the last, incomplete register of matches, padded with values that fit no model. */
typedef struct last_matches {
  double x[TWO_VIEW_LANES], y[TWO_VIEW_LANES], u[TWO_VIEW_LANES], v[TWO_VIEW_LANES];
} last_matches;

static inline two_view_matches whole_lanes(const two_view_matches *m, size_t begin, size_t count,
                                           last_matches *padded) {
  if (count >= (size_t)TWO_VIEW_LANES)
    return (two_view_matches){TWO_VIEW_LANES, m->ax + begin, m->ay + begin, m->bx + begin, m->by + begin};
  for (size_t i = 0; i < (size_t)TWO_VIEW_LANES; i++) {
    const bool is_there = i < count;
    padded->x[i] = is_there ? m->ax[begin + i] : (double)NAN;
    padded->y[i] = is_there ? m->ay[begin + i] : (double)NAN;
    padded->u[i] = is_there ? m->bx[begin + i] : (double)NAN;
    padded->v[i] = is_there ? m->by[begin + i] : (double)NAN;
  }
  return (two_view_matches){count, padded->x, padded->y, padded->u, padded->v};
}

static inline match_point load_point(const two_view_matches *m, int part) {
  const int at = part * REAL_LANES;
  return (match_point){real_load(m->ax + at), real_load(m->ay + at), real_load(m->bx + at), real_load(m->by + at)};
}

static inline void spread_matrix(const double matrix[9], real out[9]) {
  for (int i = 0; i < 9; i++) out[i] = real_of(matrix[i]);
}

/* Combines the lanes by the fixed tree: the upper half is added to the lower, down to one number. */
static inline double sum_of_lanes(const real lanes[REGISTERS]) {
  double v[TWO_VIEW_LANES];
  for (int part = 0; part < REGISTERS; part++) real_store(v + part * REAL_LANES, lanes[part]);
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

static inline real square_of(two_view_error kind, const real m[9], const match_point *p) {
  return kind == TWO_VIEW_HOMOGRAPHY_ERROR ? homography_square(m, p) : epipolar_square(m, p);
}

static inline void errors(two_view_error kind, const double matrix[9], const two_view_matches *matches, size_t begin,
                          size_t count, double *squares) {
  last_matches padded;
  real m[9];
  spread_matrix(matrix, m);
  for (size_t i = 0; i < count; i += TWO_VIEW_LANES) {
    const two_view_matches now = whole_lanes(matches, begin + i, count - i, &padded);
    double out[TWO_VIEW_LANES];
    for (int part = 0; part < REGISTERS; part++) {
      const match_point p = load_point(&now, part);
      real_store(out + part * REAL_LANES, square_of(kind, m, &p));
    }
    memcpy(squares + i, out, now.count * sizeof *out);
  }
}

static inline double score(two_view_error kind, const double matrix[9], const two_view_matches *matches, double limit,
                           double best) {
  const size_t count = matches->count;
  const real over_limit = real_of(1.0 / limit);
  const double mean = best / (double)count;
  last_matches padded;
  real m[9], sums[REGISTERS];
  double sum = 0.0;
  spread_matrix(matrix, m);
  for (int part = 0; part < REGISTERS; part++) sums[part] = real_of(0.0);
  for (size_t begin = 0; begin < count;) {
    const size_t end = count - begin > (size_t)TWO_VIEW_BLOCK ? begin + TWO_VIEW_BLOCK : count;
    for (; begin < end; begin += TWO_VIEW_LANES) {
      const two_view_matches now = whole_lanes(matches, begin, count - begin, &padded);
      for (int part = 0; part < REGISTERS; part++) {
        const match_point p = load_point(&now, part);
        const real gain = real_largest(1.0 - square_of(kind, m, &p) * over_limit, real_of(0.0));
        sums[part] = sums[part] + gain * gain * gain;
      }
    }
    sum = sum_of_lanes(sums);
    if (best > 0.0 && begin < count) {
      /* each contribution is between 0 and 1, so its variance is at most its mean */
      const double expected = mean * (double)begin;
      if (sum + (double)(count - begin) <= best || sum < expected - 3.0 * sqrt(expected)) return -1.0;
    }
  }
  return sum;
}

static inline void add_to(real sums[][REGISTERS], int part, real term) { sums[0][part] = sums[0][part] + term; }

/* Adds the terms of a register. Terms without weight and terms of padding lanes are set to 0, because 0 times an
 * infinite or NaN term is not 0. Returns the weights. */
static inline real add_homography(const real m[9], match_point p, real over_limit, int part, real sums[][REGISTERS]) {
  const real zero = real_of(0.0);
  real left[6];
  const real weight = homography_term(m, &p, over_limit, left);
  p.x = real_if_above(weight, zero, p.x, zero);
  p.y = real_if_above(weight, zero, p.y, zero);
  const real right[5] = {p.x * p.x, p.x * p.y, p.x, p.y * p.y, p.y};
  for (int r = 0; r < 6; r++) {
    left[r] = real_if_above(weight, zero, left[r], zero);
    for (int c = 0; c < 5; c++) add_to(sums + 6 * r + c, part, left[r] * right[c]);
    add_to(sums + 6 * r + 5, part, left[r]);
  }
  return weight;
}

static inline real add_epipolar(const real m[9], match_point p, real over_limit, int part, real sums[][REGISTERS]) {
  const real zero = real_of(0.0);
  real jacobian[9], value;
  const real weight = epipolar_term(m, &p, over_limit, jacobian, &value);
  for (int i = 0; i < 9; i++) jacobian[i] = real_if_above(weight, zero, jacobian[i], zero);
  value = real_if_above(weight, zero, value, zero);
  int next = 0;
  for (int i = 0; i < 9; i++) {
    const real weighted = weight * jacobian[i];
    for (int j = i; j < 9; j++) add_to(sums + next++, part, weighted * jacobian[j]);
    add_to(sums + 45 + i, part, weighted * value);
  }
  return weight;
}

static inline void gather(two_view_error kind, const double matrix[9], const two_view_matches *matches, double limit,
                          size_t enough, two_view_form *form) {
  const int count = kind == TWO_VIEW_HOMOGRAPHY_ERROR ? TWO_VIEW_HOMOGRAPHY_SUMS : TWO_VIEW_FORM_SUMS;
  const real over_limit = real_of(1.0 / limit);
  last_matches padded;
  real m[9], sums[TWO_VIEW_FORM_SUMS][REGISTERS];
  size_t used = 0;
  spread_matrix(matrix, m);
  for (int k = 0; k < count; k++)
    for (int part = 0; part < REGISTERS; part++) sums[k][part] = real_of(0.0);
  for (size_t begin = 0; begin < matches->count && used < enough; begin += TWO_VIEW_LANES) {
    const two_view_matches now = whole_lanes(matches, begin, matches->count - begin, &padded);
    double weights[TWO_VIEW_LANES];
    for (int part = 0; part < REGISTERS; part++) {
      const match_point p = load_point(&now, part);
      real_store(weights + part * REAL_LANES, kind == TWO_VIEW_HOMOGRAPHY_ERROR
                                                  ? add_homography(m, p, over_limit, part, sums)
                                                  : add_epipolar(m, p, over_limit, part, sums));
    }
    for (int l = 0; l < (int)TWO_VIEW_LANES; l++) used += weights[l] > 0.0;
  }
  for (int k = 0; k < (int)TWO_VIEW_FORM_SUMS; k++) form->sum[k] = k < count ? sum_of_lanes(sums[k]) : 0.0;
}

/* Loads a register of samples of `size` matches each, from lane `first` on. */
static inline void load_samples(const two_view_matches *matches, const uint32_t *samples, int size, int first,
                                match_point *out) {
  for (int k = 0; k < size; k++) {
    double x[REAL_LANES], y[REAL_LANES], u[REAL_LANES], v[REAL_LANES];
    for (int l = 0; l < REAL_LANES; l++) {
      const uint32_t at = samples[(first + l) * size + k];
      x[l] = matches->ax[at];
      y[l] = matches->ay[at];
      u[l] = matches->bx[at];
      v[l] = matches->by[at];
    }
    out[k] = (match_point){real_load(x), real_load(y), real_load(u), real_load(v)};
  }
}

/* Solves a register of samples of seven matches in the plain order. */
static void seven_of_register(const two_view_matches *matches, const uint32_t *samples, int first,
                              two_view_seven *out) {
  match_point sample[TWO_VIEW_SEVEN];
  real f[TWO_VIEW_CUBIC_ROOTS][9], usable[TWO_VIEW_CUBIC_ROOTS];
  double share[REAL_LANES], nearest[REAL_LANES], side[REAL_LANES];
  load_samples(matches, samples, TWO_VIEW_SEVEN, first, sample);
  real_store(share, seven_matches(sample, f, usable));
  real_store(nearest, nearest_of(sample, TWO_VIEW_SEVEN));
  for (int l = 0; l < REAL_LANES; l++) {
    out->repeats[first + l] = !(nearest[l] > 0.0);
    out->dependent[first + l] = !(share[l] > 1.0e-20);
  }
  for (int r = 0; r < (int)TWO_VIEW_CUBIC_ROOTS; r++) {
    for (int i = 0; i < 9; i++) real_store(out->matrix[r][i] + first, f[r][i]);
    real_store(side, usable[r]);
    for (int l = 0; l < REAL_LANES; l++)
      out->usable[r][first + l] = side[l] > 0.0 && !out->repeats[first + l] && !out->dependent[first + l];
  }
}

/* A cell that contains a root: an interval in [-1, 1] of z, or of 1 / z. */
typedef struct five_root {
  int lane;
  bool is_reversed;
  double low, high;
} five_root;

enum {
  FIVE_CELLS = 128,
  FIVE_SAMPLE_REALS = sizeof(five_sample) / sizeof(real),
  FIVE_REALS = FIVE_SAMPLE_REALS + TWO_VIEW_FIVE * 4,
  FIVE_ROOTS = REAL_LANES * TWO_VIEW_FIVE_DEGREE
};

/* All data of a register of samples, one number in each lane. */
typedef union five_state {
  struct {
    five_sample solved;
    match_point sample[TWO_VIEW_FIVE];
  } of;
  real all[FIVE_REALS];
} five_state;

/* Finds the cells where the polynomials change their sign, lane by lane. */
static int five_cells(const five_sample *s, const bool skipped[REAL_LANES], five_root *roots) {
  static const double cell = 2.0 / FIVE_CELLS;
  double values[2][FIVE_CELLS + 1][REAL_LANES];
  for (int half = 0; half < 2; half++) {
    real c[TWO_VIEW_FIVE_DEGREE + 1];
    five_polynomial(s->polynomial, real_of(half), c);
    for (int k = 0; k <= FIVE_CELLS; k++)
      real_store(values[half][k], value_at(c, TWO_VIEW_FIVE_DEGREE, real_of(cell * k - 1.0)));
  }
  int count = 0;
  for (int l = 0; l < REAL_LANES; l++) {
    const int most = count + (skipped[l] ? 0 : TWO_VIEW_FIVE_DEGREE);
    for (int half = 0; half < 2; half++)
      for (int k = 0; k < FIVE_CELLS && count < most; k++)
        if ((values[half][k][l] < 0.0) != (values[half][k + 1][l] < 0.0))
          roots[count++] = (five_root){l, half == 1, cell * k - 1.0, cell * (k + 1) - 1.0};
  }
  return count;
}

/* Computes the essential matrices at a register of roots. */
static void five_solve(double stored[FIVE_REALS][REAL_LANES], const five_root *roots, int count, int first,
                       two_view_five *out) {
  five_state state;
  double low[REAL_LANES], high[REAL_LANES], reversed[REAL_LANES], side[REAL_LANES], elements[9][REAL_LANES];
  for (int l = 0; l < REAL_LANES; l++) {
    const five_root *const root = roots + (l < count ? l : 0);
    low[l] = root->low;
    high[l] = root->high;
    reversed[l] = root->is_reversed ? 1.0 : 0.0;
  }
  for (int k = 0; k < (int)FIVE_REALS; k++) {
    double lanes[REAL_LANES];
    for (int l = 0; l < REAL_LANES; l++) lanes[l] = stored[k][roots[l < count ? l : 0].lane];
    state.all[k] = real_load(lanes);
  }
  real polynomial[TWO_VIEW_FIVE_DEGREE + 1], essential[9];
  const real is_reversed = real_load(reversed);
  five_polynomial(state.of.solved.polynomial, is_reversed, polynomial);
  const real root = bracketed_root(polynomial, real_load(low), real_load(high));
  real_store(side, five_solution(&state.of.solved, state.of.sample, root, is_reversed, essential));
  for (int i = 0; i < 9; i++) real_store(elements[i], essential[i]);
  for (int l = 0; l < count; l++) {
    if (!(side[l] > 0.0)) continue;
    for (int i = 0; i < 9; i++) out->found[out->count].essential[i] = elements[i][l];
    out->found[out->count++].sample = first + roots[l].lane;
  }
}

static void five_of_register(const two_view_matches *matches, const two_view_cameras *cameras, const uint32_t *samples,
                             int first, two_view_five *out) {
  five_state state;
  five_root roots[FIVE_ROOTS];
  double stored[FIVE_REALS][REAL_LANES], nearest[REAL_LANES];
  bool skipped[REAL_LANES];
  match_point *const sample = state.of.sample;
  load_samples(matches, samples, TWO_VIEW_FIVE, first, sample);
  real_store(nearest, nearest_of(sample, TWO_VIEW_FIVE));
  for (int l = 0; l < REAL_LANES; l++) skipped[l] = !(nearest[l] > 0.0);
  for (int k = 0; k < (int)TWO_VIEW_FIVE; k++) {
    sample[k].x = (sample[k].x - cameras->centre[0]) / cameras->focal[0];
    sample[k].y = (sample[k].y - cameras->centre[1]) / cameras->focal[1];
    sample[k].u = (sample[k].u - cameras->centre[2]) / cameras->focal[2];
    sample[k].v = (sample[k].v - cameras->centre[3]) / cameras->focal[3];
  }
  five_matches(sample, &state.of.solved);
  for (int k = 0; k < (int)FIVE_REALS; k++) real_store(stored[k], state.all[k]);
  const int count = five_cells(&state.of.solved, skipped, roots);
  for (int r = 0; r < count; r += REAL_LANES)
    five_solve(stored, roots + r, count - r < REAL_LANES ? count - r : REAL_LANES, first, out);
}

static void five(const two_view_matches *matches, const two_view_cameras *cameras, const uint32_t *samples,
                 two_view_five *out) {
  out->count = 0;
  for (int first = 0; first < (int)TWO_VIEW_LANES; first += REAL_LANES)
    five_of_register(matches, cameras, samples, first, out);
}

#define TWO_VIEW_KIND(NAME, KIND)                                                                                      \
  static void errors_##NAME(const double matrix[9], const two_view_matches *matches, size_t begin, size_t count,       \
                            double *squares) {                                                                         \
    errors(KIND, matrix, matches, begin, count, squares);                                                              \
  }                                                                                                                    \
  static double score_##NAME(const double matrix[9], const two_view_matches *matches, double limit, double best) {     \
    return score(KIND, matrix, matches, limit, best);                                                                  \
  }                                                                                                                    \
  static void gather_##NAME(const double matrix[9], const two_view_matches *matches, double limit, size_t enough,      \
                            two_view_form *form) {                                                                     \
    gather(KIND, matrix, matches, limit, enough, form);                                                                \
  }

TWO_VIEW_KIND(homography, TWO_VIEW_HOMOGRAPHY_ERROR)
TWO_VIEW_KIND(epipolar, TWO_VIEW_EPIPOLAR_ERROR)

#define TWO_VIEW_OPS(NAME, SEVEN)                                                                                      \
  {                                                                                                                    \
    .name = NAME, .errors = {errors_homography, errors_epipolar}, .score = {score_homography, score_epipolar},         \
    .gather = {gather_homography, gather_epipolar}, .seven = SEVEN, .five = five                                       \
  }

#endif
