/* Which samples of a shape's patch orientation and descriptor read: those that vote, and their neighbours. */
#ifndef HARTSIFT_CPU_SCHEDULE_PATCH_ROWS_H
#define HARTSIFT_CPU_SCHEDULE_PATCH_ROWS_H

#include "stages/affine.h"

/* The whole columns from low to high, counted from the patch's middle. */
static inline void set_row(patch_rows *rows, int32_t side, int32_t j, float low, float high) {
  const int32_t first = side / 2 - hs_floor_int(-low), end = side / 2 + hs_floor_int(high) + 1;
  rows->first[j] = first > 0 ? first : 0;
  rows->end[j] = end < side ? end : side;
  if (rows->end[j] < rows->first[j]) rows->end[j] = rows->first[j];
}

/* The disc of the orientation's samples, and one sample to each side. False: all of the patch, OpenCV's square. */
static inline bool orient_rows(author_rule rule, patch_rows *rows) {
  const float reach = ORIENT_WINDOW_RADIUS / AFFINE_DISTANCE + 1.0f;
  if (rule == RULE_OPENCV) return false;
  for (int32_t j = 0; j < AFFINE_ORIENT_SIDE; j++) {
    const int32_t row = j - AFFINE_ORIENT_SIDE / 2;
    const float dy = (float)row, square = reach * reach - dy * dy;
    const float half = square > 0.0f ? hs_sqrtf(square) : 0.0f;
    set_row(rows, AFFINE_ORIENT_SIDE, j, -half, half);
  }
  return true;
}

/* A side that is nearly parallel to the rows cuts them far outside the patch either way. */
static inline float away_from_zero(float v) {
  const float least = 0x1p-10f;
  return v >= 0.0f ? (v > least ? v : least) : (v < -least ? v : -least);
}

/* The descriptor's turned square, one sample more to each side, and a quarter for roundings; angle: of the feature in the
   patch. */
static inline patch_rows describe_rows(float angle) {
  const float half = DESCRIBE_CELL_SIGMA / AFFINE_DISTANCE * (0.5f * (DESCRIBE_CELLS + 1)) + 1.25f;
  float s, c;
  patch_rows rows;
  hs_sincos_turn(hs_wrap_turn(angle * TURNS_A_RADIAN), &s, &c);
  s = away_from_zero(s);
  c = away_from_zero(c);
  /* |dx c + dy s| < half and |dy c - dx s| < half */
  const float slope = -s / c, reach = half / hs_fabsf(c), other_slope = c / s, other_reach = half / hs_fabsf(s);
  for (int32_t j = 0; j < AFFINE_DESCRIBE_SIDE; j++) {
    const int32_t row = j - AFFINE_DESCRIBE_SIDE / 2;
    const float dy = (float)row, middle = slope * dy, other = other_slope * dy;
    const float low = middle - reach, other_low = other - other_reach;
    const float high = middle + reach, other_high = other + other_reach;
    set_row(&rows, AFFINE_DESCRIBE_SIDE, j, low > other_low ? low : other_low, high < other_high ? high : other_high);
  }
  return rows;
}

#endif
