/*
 * The eight votes of each sample of a vector, added in memory. Included by *_simd.c only.
 *
 * A sample's votes follow from the products of its two row shares with four factors (describe_share of
 * stages/describe.h). The factors and shares of a vector of samples are rearranged sample by sample, so that one
 * multiply-add gives the eight products of a sample, which are added directly; the votes are then computed from the
 * sums of products.
 */
#ifndef HARTSIFT_CPU_SIMD_VOTES_SIMD_H
#define HARTSIFT_CPU_SIMD_VOTES_SIMD_H

#include "cpu/simd/elementary_simd.h"
#include "cpu/simd/simd.h"
#include "stages/describe.h"

/* Values are transposed within 128-bit lanes, which hold four samples each. Sample 4 l + k of a vector has its factors
 * in 128-bit lane l of factors[k]. Its two shares are in lane l of shares[k / 2]: in the first half if k is even,
 * otherwise in the second. */
enum { VOTE_LANES = SIMD_WIDTH / 4, VOTE_PRODUCTS = 8 };
typedef struct vote_block {
  float factors[4][SIMD_WIDTH], shares[2][SIMD_WIDTH];
} vote_block;

#if SIMD_ISA == SIMD_ISA_avx512
#  define VOTES_LOW(a, b)          _mm512_unpacklo_ps(a, b)
#  define VOTES_HIGH(a, b)         _mm512_unpackhi_ps(a, b)
#  define VOTES_PAIR(a, b, unpack) _mm512_castpd_ps(_mm512_##unpack##_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)))
#elif SIMD_ISA == SIMD_ISA_avx2
#  define VOTES_LOW(a, b)          _mm256_unpacklo_ps(a, b)
#  define VOTES_HIGH(a, b)         _mm256_unpackhi_ps(a, b)
#  define VOTES_PAIR(a, b, unpack) _mm256_castpd_ps(_mm256_##unpack##_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)))
#elif SIMD_ISA == SIMD_ISA_sse2
#  define VOTES_LOW(a, b)          _mm_unpacklo_ps(a, b)
#  define VOTES_HIGH(a, b)         _mm_unpackhi_ps(a, b)
#  define VOTES_PAIR(a, b, unpack) _mm_castpd_ps(_mm_##unpack##_pd(_mm_castps_pd(a), _mm_castps_pd(b)))
#else
#  define VOTES_LOW(a, b)  vzip1q_f32(a, b)
#  define VOTES_HIGH(a, b) vzip2q_f32(a, b)
#  define VOTES_PAIR(a, b, unpack)                                                                                     \
    vreinterpretq_f32_f64(VOTES_##unpack(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)))
#  define VOTES_unpacklo(a, b) vzip1q_f64(a, b)
#  define VOTES_unpackhi(a, b) vzip2q_f64(a, b)
#endif

/* Fills the block from the shares v0 and v1 of the two rows, the fractions fc of the column and fd of the
 * direction, and their product fcd. */
SIMD_INLINE void votes_transpose(vote_block *out, simd_f32 v0, simd_f32 v1, simd_f32 fc, simd_f32 fd, simd_f32 fcd) {
  const simd_f32 one = simd_set1(1.0f);
  const simd_f32 a = VOTES_LOW(one, fc), b = VOTES_LOW(fd, fcd), c = VOTES_HIGH(one, fc), d = VOTES_HIGH(fd, fcd);
  simd_store(out->factors[0], VOTES_PAIR(a, b, unpacklo));
  simd_store(out->factors[1], VOTES_PAIR(a, b, unpackhi));
  simd_store(out->factors[2], VOTES_PAIR(c, d, unpacklo));
  simd_store(out->factors[3], VOTES_PAIR(c, d, unpackhi));
  simd_store(out->shares[0], VOTES_LOW(v0, v1));
  simd_store(out->shares[1], VOTES_HIGH(v0, v1));
}

/* Adds the products of sample 4 lane + k to at[0..7], each rounded once: both shares times 1, fc, fd and fc fd. */
SIMD_INLINE void votes_add(int32_t *at, const vote_block *votes, int k, int lane) {
  const float *factors = votes->factors[k] + 4 * lane, *shares = votes->shares[k / 2] + 4 * lane + 2 * (k % 2);
#if SIMD_ISA == SIMD_ISA_avx512 || SIMD_ISA == SIMD_ISA_avx2
  const __m256 factor = _mm256_broadcast_ps((const __m128 *)(const void *)factors);
  const __m256 both = _mm256_castpd_ps(_mm256_broadcast_sd((const double *)(const void *)shares));
  const __m256 share = _mm256_permutevar_ps(both, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
  const __m256i product = _mm256_castps_si256(_mm256_fmadd_ps(share, factor, _mm256_set1_ps(ROUNDING_SHIFT)));
  __m256i *sum = (__m256i *)(void *)at;
  _mm256_store_si256(
      sum, _mm256_add_epi32(_mm256_load_si256(sum), _mm256_sub_epi32(product, _mm256_set1_epi32(ROUNDED_BIAS))));
#else
  const simd_f32 factor = simd_load(factors);
  const simd_i32 bias = simd_i32_set1(ROUNDED_BIAS);
  for (int row = 0; row < 2; row++) {
    const simd_i32 product = simd_i32_sub(simd_biased_product(simd_set1(shares[row]), factor), bias);
    simd_i32_store(at + 4 * row, simd_i32_add(simd_i32_load(at + 4 * row), product));
  }
#endif
}

/* The bins of a descriptor from the sums of its votes' products. Included by *_simd.c only.
 *
 * A sample's products are added at the position given by its lower cell corner and its direction. Each position has
 * eight sums: four of products for the row of cells above the sample, and four for the row below. Folding is linear
 * in the sums, so both rows of a position and then neighbouring corners are added first, four products at a time. */

enum {
  CORNERS = DESCRIBE_CELLS + 1,             /* number of positions of a sample's lower cell along a side: 0..4 */
  SUM_CELL = DESCRIBE_BINS * VOTE_PRODUCTS, /* number of sums of one corner */
  SUM_COUNT = CORNERS * CORNERS * SUM_CELL
};

/* Sums at one corner in a row of cells, for each direction: of the products with 1, fc, fd and fc fd. */
typedef struct corner_sums {
  simd_quad_i32 of[DESCRIBE_BINS];
} corner_sums;

/* Adds both rows of sums of a corner. own: sums at the corner, from its own row of samples. above: sums of the corner
 * one row higher. */
SIMD_INLINE void join_rows(const int32_t *own, const int32_t *above, corner_sums *out) {
  for (int32_t d = 0; d < DESCRIBE_BINS; d++)
    out->of[d] = quad_i32_add(quad_i32_load(own + d * VOTE_PRODUCTS), quad_i32_load(above + d * VOTE_PRODUCTS + 4));
}

/* Computes the bins of the cell between two corners. A sample has four products: all, column, direction and both.
 * Its votes follow from them:
 *   in the sample's column   all - column - direction + both; in the next direction direction - both
 *   in the next column       column - both; in the next direction both
 * First the left corner's `column` and `both` are subtracted from the right corner's. Then a bin is all - column of
 * its direction, minus direction - both of its direction, plus direction - both of the previous direction. No sum
 * of products reaches 2^31, and differences of sums are taken modulo 2^32. */
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

/* Computes the bins. sums: [SUM_COUNT], by row and column of the corner, then direction, then product. */
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
