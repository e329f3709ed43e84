/*
 * More neighbours than two: all squared distances of some descriptors, and which of them are wanted.
 *
 * The order of candidates is that of match.h: by square, then by index. Squares below a bound are wanted, and of those
 * either all or the k first in that order.
 */
#ifndef HARTSIFT_STAGES_NEIGHBOURS_H
#define HARTSIFT_STAGES_NEIGHBOURS_H

#include "stages/match.h"

/* One neighbour while it is looked for. Layout as hs_neighbour, which has the distance in the place of the square. */
typedef struct match_neighbour {
  uint32_t index;
  float squared;
} match_neighbour;

/* The most neighbours that may be asked for by number: a block of a GPU sorts them in its shared memory. */
enum { NEIGHBOURS_MOST = 1024 };

/* The squares of `rows` descriptors of the first list from first_row on with every one of the second. */
typedef struct squares_args {
  match_type type;
  match_side first, second;
  match_guide_kind guide;
  double tolerance_squared;
  uint32_t first_row, rows;
  float *squares;      /* rows x pitch; infinity for what is no candidate: places that do not agree, and squares that
                                are not finite. Beyond second.count: anything */
  size_t pitch;        /* floats from row to row: second.count rounded up to squares_pitch */
  unsigned char *work; /* stage_ops.squares_work_bytes of it, aligned to 64: the second list as stage_ops.pack_second
                                leaves it, from which stage_ops.squares works then */
} squares_args;

/* Whole vectors and tiles of every backend end here. */
enum { SQUARES_PITCH = 128 };
HS_INLINE size_t squares_pitch(uint32_t second_count) {
  return ((size_t)second_count + SQUARES_PITCH - 1) / SQUARES_PITCH * SQUARES_PITCH;
}

/* One of them. */
HS_INLINE float match_square(match_type type, const match_side *first, uint32_t i, const match_side *second,
                             uint32_t j) {
  const size_t p = (size_t)i * MATCH_LENGTH, q = (size_t)j * MATCH_LENGTH;
  if (type == MATCH_U8)
    return (float)match_square_u8((const uint8_t *)first->descriptors + p, (const uint8_t *)second->descriptors + q);
  const float squared = match_square_f32((const float *)first->descriptors + p, (const float *)second->descriptors + q);
  return hs_is_finite(squared) ? squared : hs_bits_float(0x7f800000u);
}

/* Squares below this are those of distances up to `radius`, 0 or more: (double)square <= radius * radius. */
HS_INLINE float neighbour_bound(double radius) {
  const double squared = radius * radius;
  const uint32_t infinity = 0x7f800000u;
  if (!(squared < 3.4028234663852886e38)) return hs_bits_float(infinity);
  const float nearest = (float)squared;
  const uint32_t bits = hs_float_bits(nearest);
  /* The next float above where that itself is within. */
  return (double)nearest <= squared ? hs_bits_float(bits + 1u) : nearest;
}

/* Whether a neighbour comes before another. */
HS_INLINE bool neighbour_before(match_neighbour a, match_neighbour b) {
  return a.squared < b.squared || (a.squared == b.squared && a.index < b.index);
}

/* How it is handed out. */
HS_INLINE match_neighbour neighbour_measured(match_neighbour n) {
  n.squared = hs_sqrtf(n.squared);
  return n;
}

HS_INLINE match_neighbour neighbour_none(void) {
  const match_neighbour none = {MATCH_NONE, hs_bits_float(0x7f800000u)};
  return none;
}

#endif
