/*
 * The bins of a descriptor from the sums of its votes' products. Included by *_simd.c only.
 *
 * A sample's products are added at its lower cell corner and its direction: in each of these places four of the row of
 * cells above the sample and four of the row below. What is folded is linear in the sums, so both rows of a place and
 * then neighbouring corners are joined first, four products at a time.
 */
#ifndef HARTSIFT_CPU_SIMD_FOLD_VOTES_SIMD_H
#define HARTSIFT_CPU_SIMD_FOLD_VOTES_SIMD_H

#include "cpu/simd/simd_quad.h"
#include "cpu/simd/votes_simd.h"
#include "stages/describe.h"

enum {
  CORNERS = DESCRIBE_CELLS + 1,             /* places of a sample's lower cell along a side: 0..4 */
  SUM_CELL = DESCRIBE_BINS * VOTE_PRODUCTS, /* sums of one corner */
  SUM_COUNT = CORNERS * CORNERS * SUM_CELL
};

/* The sums of the products with 1, fc, fd and fc fd in each direction, at one corner of a row of cells. */
typedef struct corner_sums {
  simd_quad_i32 of[DESCRIBE_BINS];
} corner_sums;

/* own: of the corner at its own row of samples, above: of that a row of corners higher. */
SIMD_INLINE void join_rows(const int32_t *own, const int32_t *above, corner_sums *out) {
  for (int32_t d = 0; d < DESCRIBE_BINS; d++)
    out->of[d] = quad_i32_add(quad_i32_load(own + d * VOTE_PRODUCTS), quad_i32_load(above + d * VOTE_PRODUCTS + 4));
}

/* The bins of a cell between two corners. Of the products (all, column, direction, both), a sample's votes are, at its
   own column, all - column - direction + both and direction - both (the next direction), and at the next column column -
   both and both. With the left corner's column and both taken from the right one's, a bin is all - column of its
   direction, less direction - both, and direction - both of the one before. No sum of products reaches 2^31, and
   differences of sums are taken modulo 2^32. */
SIMD_INLINE void fold_cell(const corner_sums *left, const corner_sums *right, int32_t bins[DESCRIBE_BINS]) {
  static const int32_t next_column[4] = {0, -1, 0, -1};
  const simd_quad_i32 mask = quad_i32_load(next_column);
  simd_quad_i32 here[DESCRIBE_BINS / 4], next[DESCRIBE_BINS / 4];
  for (int32_t q = 0; q < DESCRIBE_BINS / 4; q++) {
    simd_quad_i32 of[4];
    for (int32_t k = 0; k < 4; k++) of[k] = quad_i32_sub(right->of[4 * q + k], quad_i32_and(left->of[4 * q + k], mask));
    const simd_quad_i32 low = quad_i32_sub(quad_i32_even(of[0], of[1]), quad_i32_odd(of[0], of[1]));
    const simd_quad_i32 high = quad_i32_sub(quad_i32_even(of[2], of[3]), quad_i32_odd(of[2], of[3]));
    here[q] = quad_i32_even(low, high);
    next[q] = quad_i32_odd(low, high);
  }
  for (int32_t q = 0; q < DESCRIBE_BINS / 4; q++) {
    const simd_quad_i32 before = quad_i32_follow(next[(q + DESCRIBE_BINS / 4 - 1) % (DESCRIBE_BINS / 4)], next[q]);
    quad_i32_store(bins + 4 * q, quad_i32_not_negative(quad_i32_add(quad_i32_sub(here[q], next[q]), before)));
  }
}

/* sums: SUM_COUNT of them, by the row and column of the corner, direction and product. */
SIMD_INLINE void fold_sums(const int32_t *sums, int32_t bins[DESCRIBE_LENGTH]) {
  for (int32_t row = 0; row < DESCRIBE_CELLS; row++) {
    const int32_t *above = sums + row * CORNERS * SUM_CELL, *own = above + CORNERS * SUM_CELL;
    corner_sums corners[CORNERS];
    for (int32_t c = 0; c < CORNERS; c++) join_rows(own + c * SUM_CELL, above + c * SUM_CELL, &corners[c]);
    for (int32_t c = 0; c < DESCRIBE_CELLS; c++)
      fold_cell(&corners[c], &corners[c + 1], bins + (row * DESCRIBE_CELLS + c) * DESCRIBE_BINS);
  }
}

#endif
