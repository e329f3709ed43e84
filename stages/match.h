/*
 * Matching: the nearest and second nearest descriptor of every descriptor, and which pairs are kept. Lowe, IJCV 2004,
 * section 7.1.
 *
 * Candidates are ordered by squared distance, then by index. This order is total, so the result does not depend on the
 * order of comparisons. Both descriptor types give squares as floats: for 8-bit values they are integers below 2^23 and
 * so exact; for floats they are summed in one fixed order.
 */
#ifndef HARTSIFT_STAGES_MATCH_H
#define HARTSIFT_STAGES_MATCH_H

#include "stages/base.h"
#include "stages/portable.h"

enum { MATCH_LENGTH = 128 }; /* number of values of a descriptor */
#define MATCH_NONE UINT32_MAX
/* The bits of the largest squared distance of 8-bit descriptors. */
enum { MATCH_SQUARE_BITS = 23 };
#ifndef __cplusplus
_Static_assert(MATCH_LENGTH * 255 * 255 < 1 << MATCH_SQUARE_BITS, "squared distances fit their bits");
#endif

/* Values as hs_descriptor_type and hs_guide (asserted where the two meet). */
typedef enum match_type { MATCH_U8 = 0, MATCH_F32 = 1 } match_type;
typedef enum match_guide_kind { MATCH_UNGUIDED = 0, MATCH_HOMOGRAPHY = 1, MATCH_FUNDAMENTAL = 2 } match_guide_kind;

/* The two nearest neighbours of a descriptor: indices and squared distances. A neighbour that does not exist has index
 * MATCH_NONE and an infinite distance. Layout as hs_nearest. */
typedef struct match_nearest {
  uint32_t nearest, second;
  float nearest_squared, second_squared;
} match_nearest;

/* Restricts candidates by the positions of the two features. All values are double. */
typedef struct match_guide {
  match_guide_kind kind;
  double matrix[9]; /* row-major, first image to second */
  double tolerance_squared;
} match_guide;

/* Data that the guide precomputes for one feature at (x, y):
 *   homography, first image    x, y: its image in the second picture; z = n = 0
 *   homography, second image   x, y: as they are; z = n = 0
 *   fundamental, first image   x, y, z: the line F (x, y, 1); n = squared length of the line's (x, y)
 *   fundamental, second image  x, y: as they are; z = 1; n = squared length of the first two of F^T (x, y, 1) */
typedef struct match_position {
  double x, y, z, n;
} match_position;

HS_INLINE match_position match_position_first(const match_guide *guide, float px, float py) {
  const double *m = guide->matrix;
  const double x = (double)px, y = (double)py;
  const double u = (m[0] * x + m[1] * y) + m[2];
  const double v = (m[3] * x + m[4] * y) + m[5];
  const double w = (m[6] * x + m[7] * y) + m[8];
  match_position p;
  if (guide->kind == MATCH_HOMOGRAPHY) {
    p.x = u / w; /* w = 0: the point is at infinity, so no position agrees */
    p.y = v / w;
    p.z = 0.0;
    p.n = 0.0;
  } else {
    p.x = u;
    p.y = v;
    p.z = w;
    p.n = u * u + v * v;
  }
  return p;
}

HS_INLINE match_position match_position_second(const match_guide *guide, float px, float py) {
  const double *m = guide->matrix;
  match_position p;
  p.x = (double)px;
  p.y = (double)py;
  p.z = 0.0;
  p.n = 0.0;
  if (guide->kind == MATCH_FUNDAMENTAL) {
    const double u = (m[0] * p.x + m[3] * p.y) + m[6];
    const double v = (m[1] * p.x + m[4] * p.y) + m[7];
    p.z = 1.0;
    p.n = u * u + v * v;
  }
  return p;
}

/* Whether positions in the first and in the second image agree with the guide, so the two features are candidates.
 * False if any value is NaN. */
HS_INLINE bool match_agrees(match_guide_kind kind, double tolerance_squared, const match_position *first,
                            const match_position *second) {
  if (kind == MATCH_HOMOGRAPHY) {
    const double dx = first->x - second->x, dy = first->y - second->y;
    return dx * dx + dy * dy <= tolerance_squared;
  }
  /* Sampson: e^2 / (|l1|^2 + |l2|^2), without the division. */
  const double e = (first->x * second->x + first->y * second->y) + first->z;
  return e * e <= tolerance_squared * (first->n + second->n);
}

/* Returns the squared distance of two 8-bit descriptors; below 2^23. */
HS_INLINE uint32_t match_square_u8(const uint8_t *a, const uint8_t *b) {
  int32_t sum = 0;
  for (int k = 0; k < MATCH_LENGTH; k++) {
    const int32_t t = (int32_t)a[k] - (int32_t)b[k];
    sum += t * t;
  }
  return (uint32_t)sum;
}

/* Returns the squared distance of two float descriptors, summed in the fixed order of all backends. Exchanging a and b
 * changes no bit. */
HS_INLINE float match_square_f32(const float *a, const float *b) {
  float sum = 0.0f;
  for (int k = 0; k < MATCH_LENGTH; k++) {
    const float t = a[k] - b[k];
    sum = hs_fmaf(t, t, sum);
  }
  return sum;
}

HS_INLINE match_nearest match_nearest_none(void) {
  match_nearest n;
  n.nearest = n.second = MATCH_NONE;
  n.nearest_squared = n.second_squared = hs_bits_float(0x7f800000u);
  return n;
}

/* Whether a candidate precedes another: by square, then by index. False if the square is NaN. An infinite square does
 * not precede the initial value of match_nearest_none. */
HS_INLINE bool match_before(float squared, uint32_t index, float other_squared, uint32_t other_index) {
  return squared < other_squared || (squared == other_squared && index < other_index && other_index != MATCH_NONE);
}

/* Inserts a candidate. Candidates may come in any order, each index once. */
HS_INLINE void match_take(match_nearest *n, uint32_t index, float squared) {
  if (match_before(squared, index, n->nearest_squared, n->nearest)) {
    n->second = n->nearest;
    n->second_squared = n->nearest_squared;
    n->nearest = index;
    n->nearest_squared = squared;
  } else if (match_before(squared, index, n->second_squared, n->second)) {
    n->second = index;
    n->second_squared = squared;
  }
}

/* Limits of the tests of a pair, as doubles; 0: the test is off. */
typedef struct match_limits {
  double ratio_squared;    /* ratio * ratio */
  double distance_squared; /* max_distance * max_distance */
} match_limits;

/* Whether a feature's nearest neighbour passes the limits, and is its match. */
HS_INLINE bool match_accepts(const match_limits *limits, const match_nearest *n) {
  if (n->nearest == MATCH_NONE) return false;
  const double nearest = (double)n->nearest_squared;
  if (limits->ratio_squared > 0.0 && !(nearest < limits->ratio_squared * (double)n->second_squared)) return false;
  return !(limits->distance_squared > 0.0) || nearest <= limits->distance_squared;
}

/* Whether feature i of the first list and its nearest neighbour are a pair. backward: null if the match need not be
 * mutual. */
HS_INLINE bool match_keeps(const match_limits *limits, const match_nearest *forward, const match_nearest *backward,
                           uint32_t i) {
  if (!match_accepts(limits, &forward[i])) return false;
  if (!backward) return true;
  const match_nearest *back = &backward[forward[i].nearest];
  return back->nearest == i && match_accepts(limits, back);
}

/* A kept pair. Layout as hs_match_pair. */
typedef struct match_pair {
  uint32_t first, second;
  float distance, next_distance;
} match_pair;

HS_INLINE match_pair match_pair_of(uint32_t i, const match_nearest *n) {
  match_pair p;
  p.first = i;
  p.second = n->nearest;
  p.distance = hs_sqrtf(n->nearest_squared);
  p.next_distance = hs_sqrtf(n->second_squared);
  return p;
}

/* One list of descriptors: count x 128 uint8_t or float. positions: data of the guide for each descriptor; null without
 * a guide. */
typedef struct match_side {
  const void *descriptors;
  const match_position *positions;
  uint32_t count; /* below MATCH_NONE */
} match_side;

/* Finds the two nearest neighbours in `second` for each descriptor of `first`: written to `forward`. If `backward` is
 * not null, also the neighbours in `first` for each descriptor of `second`. */
typedef struct match_args {
  match_type type;
  match_side first, second;
  match_guide_kind guide;
  double tolerance_squared;
  match_nearest *forward;  /* [first.count] */
  match_nearest *backward; /* [second.count], or null */
  /* null: all neighbours are wanted. Else only the pairs that match_keeps finds: of their features `nearest` is right
   * in both lists, and `second` in the list that the pairs are from. Other features get any neighbours that are not
   * kept. */
  const match_limits *limits;
  bool exchanged;      /* the pairs are from the second list to the first */
  unsigned char *work; /* stage_ops.match_work_bytes bytes, aligned to 64 */
  /* work already holds the packed second list of the previous call: requires the same second list, type and limits, and
   * both calls without a guide */
  bool second_is_packed;
} match_args;

/* More than two neighbours: all squared distances of some descriptors are computed, and neighbours are chosen by them.
 *
 * Candidates are ordered as above: by square, then by index. Only candidates with a square below a bound qualify.
 * Either all of these are returned, or the first k in that order. */

/* A neighbour during the search. Layout as hs_neighbour, which contains the distance instead of its square. */
typedef struct match_neighbour {
  uint32_t index;
  float squared;
} match_neighbour;

/* Maximum k: a block of a GPU sorts the neighbours in its shared memory. */
enum { NEIGHBOURS_MAX = 1024 };

/* The squared distances from `rows` descriptors of the first list, beginning at first_row, to every descriptor of the
 * second. */
typedef struct squares_args {
  match_type type;
  match_side first, second;
  match_guide_kind guide;
  double tolerance_squared;
  uint32_t first_row, rows;
  /* [rows][pitch]. Infinity if the two are no candidates: their positions disagree, or the square is not finite.
   * Columns from second.count on are undefined. */
  float *squares;
  size_t pitch;        /* floats between rows: second.count rounded up to SQUARES_PITCH */
  unsigned char *work; /* stage_ops.squares_work_bytes bytes, aligned to 64: the second list as packed by
                        * stage_ops.pack_second; stage_ops.squares reads it */
} squares_args;

/* second.count is rounded up to a multiple of this: whole vectors and tiles of every backend. */
enum { SQUARES_PITCH = 128 };
HS_INLINE size_t squares_pitch(uint32_t second_count) {
  return ((size_t)second_count + SQUARES_PITCH - 1) / SQUARES_PITCH * SQUARES_PITCH;
}

/* Returns the squared distance of one pair. */
HS_INLINE float match_square(match_type type, const match_side *first, uint32_t i, const match_side *second,
                             uint32_t j) {
  const size_t p = (size_t)i * MATCH_LENGTH, q = (size_t)j * MATCH_LENGTH;
  if (type == MATCH_U8)
    return (float)match_square_u8((const uint8_t *)first->descriptors + p, (const uint8_t *)second->descriptors + q);
  const float squared = match_square_f32((const float *)first->descriptors + p, (const float *)second->descriptors + q);
  return hs_is_finite(squared) ? squared : hs_bits_float(0x7f800000u);
}

/* Returns the bound of squares for a radius: a square is below it exactly if (double)square <= radius * radius.
 * radius is 0 or more. */
HS_INLINE float neighbour_bound(double radius) {
  const double squared = radius * radius;
  const uint32_t infinity = 0x7f800000u;
  if (!(squared < 3.4028234663852886e38)) return hs_bits_float(infinity);
  const float nearest = (float)squared;
  const uint32_t bits = hs_float_bits(nearest);
  /* if this float itself is within the radius, the bound is the next larger float */
  return (double)nearest <= squared ? hs_bits_float(bits + 1u) : nearest;
}

/* Whether a neighbour precedes another. */
HS_INLINE bool neighbour_before(match_neighbour a, match_neighbour b) {
  return a.squared < b.squared || (a.squared == b.squared && a.index < b.index);
}

/* Converts a neighbour to the returned form, with the distance. */
HS_INLINE match_neighbour neighbour_measured(match_neighbour n) {
  n.squared = hs_sqrtf(n.squared);
  return n;
}

HS_INLINE match_neighbour neighbour_none(void) {
  const match_neighbour none = {MATCH_NONE, hs_bits_float(0x7f800000u)};
  return none;
}

#endif
