/*
 * The operations of stages/two_view.h over TWO_VIEW_LANES lanes, in registers of REAL_LANES each. The including file
 * defines what stages/two_view_math.h needs, REAL_LANES, real_load, real_store and TWO_VIEW_NAME(operation).
 */
#ifndef HARTSIFT_CPU_TWO_VIEW_LANES_H
#define HARTSIFT_CPU_TWO_VIEW_LANES_H

#include "stages/two_view.h"
#include "stages/two_view_math.h"

enum { REGISTERS = (int)TWO_VIEW_LANES / (int)REAL_LANES };

/* The coordinates of the last matches of an array, filled up with what no model fits. */
typedef struct last_matches {
  double x[TWO_VIEW_LANES], y[TWO_VIEW_LANES], u[TWO_VIEW_LANES], v[TWO_VIEW_LANES];
} last_matches;

static inline two_view_matches whole_lanes(const two_view_matches *m, size_t begin, size_t count, last_matches *room) {
  if (count >= (size_t)TWO_VIEW_LANES)
    return (two_view_matches){TWO_VIEW_LANES, m->ax + begin, m->ay + begin, m->bx + begin, m->by + begin};
  for (size_t i = 0; i < (size_t)TWO_VIEW_LANES; i++) {
    const bool is_there = i < count;
    room->x[i] = is_there ? m->ax[begin + i] : (double)NAN;
    room->y[i] = is_there ? m->ay[begin + i] : (double)NAN;
    room->u[i] = is_there ? m->bx[begin + i] : (double)NAN;
    room->v[i] = is_there ? m->by[begin + i] : (double)NAN;
  }
  return (two_view_matches){count, room->x, room->y, room->u, room->v};
}

static inline match_point load_point(const two_view_matches *m, int part) {
  const int at = part * REAL_LANES;
  return (match_point){real_load(m->ax + at), real_load(m->ay + at), real_load(m->bx + at), real_load(m->by + at)};
}

static inline void spread_matrix(const double matrix[9], real out[9]) {
  for (int i = 0; i < 9; i++) out[i] = real_of(matrix[i]);
}

/* The tree: halves added up to the last number. */
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
  last_matches room;
  real m[9];
  spread_matrix(matrix, m);
  for (size_t i = 0; i < count; i += TWO_VIEW_LANES) {
    const two_view_matches now = whole_lanes(matches, begin + i, count - i, &room);
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
  last_matches room;
  real m[9], sums[REGISTERS];
  double sum = 0.0;
  spread_matrix(matrix, m);
  for (int part = 0; part < REGISTERS; part++) sums[part] = real_of(0.0);
  for (size_t begin = 0; begin < count;) {
    const size_t end = count - begin > (size_t)TWO_VIEW_BLOCK ? begin + TWO_VIEW_BLOCK : count;
    for (; begin < end; begin += TWO_VIEW_LANES) {
      const two_view_matches now = whole_lanes(matches, begin, count - begin, &room);
      for (int part = 0; part < REGISTERS; part++) {
        const match_point p = load_point(&now, part);
        const real gain = real_largest(1.0 - square_of(kind, m, &p) * over_limit, real_of(0.0));
        sums[part] = sums[part] + gain * gain * gain;
      }
    }
    sum = sum_of_lanes(sums);
    if (best > 0.0 && begin < count) {
      /* each contribution is in 0..1, so its variance is at most its mean */
      const double expected = mean * (double)begin;
      if (sum + (double)(count - begin) <= best || sum < expected - 3.0 * sqrt(expected)) return -1.0;
    }
  }
  return sum;
}

static inline void add_to(real sums[][REGISTERS], int part, real term) { sums[0][part] = sums[0][part] + term; }

/* Adds a register's terms; those of no weight, and what fills up lanes, are set to 0, because 0 times them might not be.
   Returns the weights. */
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
  last_matches room;
  real m[9], sums[TWO_VIEW_FORM_SUMS][REGISTERS];
  size_t used = 0;
  spread_matrix(matrix, m);
  for (int k = 0; k < count; k++)
    for (int part = 0; part < REGISTERS; part++) sums[k][part] = real_of(0.0);
  for (size_t begin = 0; begin < matches->count && used < enough; begin += TWO_VIEW_LANES) {
    const two_view_matches now = whole_lanes(matches, begin, matches->count - begin, &room);
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

/* One register of samples from lane `first` on. */
static void seven_of_register(const two_view_matches *matches, const uint32_t *samples, int first,
                              two_view_seven *out) {
  double columns[4][TWO_VIEW_SEVEN][REAL_LANES];
  for (int k = 0; k < (int)TWO_VIEW_SEVEN; k++) {
    for (int l = 0; l < REAL_LANES; l++) {
      const uint32_t at = samples[(first + l) * (int)TWO_VIEW_SEVEN + k];
      columns[0][k][l] = matches->ax[at];
      columns[1][k][l] = matches->ay[at];
      columns[2][k][l] = matches->bx[at];
      columns[3][k][l] = matches->by[at];
    }
  }
  match_point sample[TWO_VIEW_SEVEN];
  for (int k = 0; k < (int)TWO_VIEW_SEVEN; k++)
    sample[k] = (match_point){real_load(columns[0][k]), real_load(columns[1][k]), real_load(columns[2][k]),
                              real_load(columns[3][k])};
  real f[TWO_VIEW_CUBIC_ROOTS][9], usable[TWO_VIEW_CUBIC_ROOTS];
  double share[REAL_LANES], nearest[REAL_LANES], side[REAL_LANES];
  real_store(share, seven_matches(sample, f, usable));
  real_store(nearest, nearest_of_seven(sample));
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

static void seven(const two_view_matches *matches, const uint32_t *samples, two_view_seven *out) {
  for (int first = 0; first < (int)TWO_VIEW_LANES; first += REAL_LANES) seven_of_register(matches, samples, first, out);
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

#define TWO_VIEW_OPS(NAME)                                                                                             \
  {                                                                                                                    \
    .name = NAME, .errors = {errors_homography, errors_epipolar}, .score = {score_homography, score_epipolar},         \
    .gather = {gather_homography, gather_epipolar}, .seven = seven                                                     \
  }

#endif
