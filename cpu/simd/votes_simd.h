/*
 * The eight votes of each sample of a vector, added in memory. Included by *_simd.c only.
 *
 * A sample's votes are products of two of its row shares with four factors (describe_share of stages/describe.h). The
 * factors and shares of a vector of samples are brought beside each other, sample by sample, so that the addition of
 * one sample takes its eight products by one multiply-add and adds them as they are; what the votes are of them is
 * computed from their sums.
 */
#ifndef HARTSIFT_CPU_SIMD_VOTES_SIMD_H
#define HARTSIFT_CPU_SIMD_VOTES_SIMD_H

#include "cpu/simd/elementary_simd.h"

/* Values are turned round within 128-bit lanes, which each hold four samples: sample 4 l + k of a vector has its factors
   in lane l of factors[k], and its two shares in the first (k even) or second half of lane l of shares[k / 2]. */
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

/* From the shares v0 and v1 of either row, the fractions fc of the column and fd of the direction, and their product. */
SIMD_INLINE void votes_turn(vote_block *out, simd_f32 v0, simd_f32 v1, simd_f32 fc, simd_f32 fd, simd_f32 fcd) {
  const simd_f32 one = simd_set1(1.0f);
  const simd_f32 a = VOTES_LOW(one, fc), b = VOTES_LOW(fd, fcd), c = VOTES_HIGH(one, fc), d = VOTES_HIGH(fd, fcd);
  simd_store(out->factors[0], VOTES_PAIR(a, b, unpacklo));
  simd_store(out->factors[1], VOTES_PAIR(a, b, unpackhi));
  simd_store(out->factors[2], VOTES_PAIR(c, d, unpacklo));
  simd_store(out->factors[3], VOTES_PAIR(c, d, unpackhi));
  simd_store(out->shares[0], VOTES_LOW(v0, v1));
  simd_store(out->shares[1], VOTES_HIGH(v0, v1));
}

/* Adds the products of sample 4 lane + k, each rounded once, to at[0..7]: both shares with 1, fc, fd, fc fd. */
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

#endif
