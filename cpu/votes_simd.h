/*
 * Votes of a vector of samples, brought from "one vector a vote" to "eight votes beside each other a sample", and the
 * addition of eight such votes in memory. Included by *_simd.c only.
 */
#ifndef HARTSIFT_CPU_VOTES_SIMD_H
#define HARTSIFT_CPU_VOTES_SIMD_H

#include "cpu/simd.h"

/* Votes are turned round within 128-bit lanes, which each hold four samples: sample 4 l + k of a vector has its votes
   0..3 in lane l of block[k][0] and votes 4..7 in lane l of block[k][1]. */
enum { VOTE_LANES = SIMD_WIDTH / 4 };
typedef struct vote_block {
  int32_t block[4][2][SIMD_WIDTH];
} vote_block;

#if SIMD_ISA == SIMD_ISA_avx512
#  define VOTES_LOW(a, b)       _mm512_unpacklo_epi32(a, b)
#  define VOTES_HIGH(a, b)      _mm512_unpackhi_epi32(a, b)
#  define VOTES_LOW_PAIR(a, b)  _mm512_unpacklo_epi64(a, b)
#  define VOTES_HIGH_PAIR(a, b) _mm512_unpackhi_epi64(a, b)
#elif SIMD_ISA == SIMD_ISA_avx2
#  define VOTES_LOW(a, b)       _mm256_unpacklo_epi32(a, b)
#  define VOTES_HIGH(a, b)      _mm256_unpackhi_epi32(a, b)
#  define VOTES_LOW_PAIR(a, b)  _mm256_unpacklo_epi64(a, b)
#  define VOTES_HIGH_PAIR(a, b) _mm256_unpackhi_epi64(a, b)
#elif SIMD_ISA == SIMD_ISA_sse2
#  define VOTES_LOW(a, b)       _mm_unpacklo_epi32(a, b)
#  define VOTES_HIGH(a, b)      _mm_unpackhi_epi32(a, b)
#  define VOTES_LOW_PAIR(a, b)  _mm_unpacklo_epi64(a, b)
#  define VOTES_HIGH_PAIR(a, b) _mm_unpackhi_epi64(a, b)
#else
#  define VOTES_PAIR(a, b, zip) vreinterpretq_s32_s64(zip(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)))
#  define VOTES_LOW(a, b)       vzip1q_s32(a, b)
#  define VOTES_HIGH(a, b)      vzip2q_s32(a, b)
#  define VOTES_LOW_PAIR(a, b)  VOTES_PAIR(a, b, vzip1q_s64)
#  define VOTES_HIGH_PAIR(a, b) VOTES_PAIR(a, b, vzip2q_s64)
#endif

/* Half 0 or 1 of the block from its four votes. */
SIMD_INLINE void votes_turn(vote_block *out, int half, const simd_i32 v[4]) {
  const simd_i32 a = VOTES_LOW(v[0], v[1]), b = VOTES_LOW(v[2], v[3]);
  const simd_i32 c = VOTES_HIGH(v[0], v[1]), d = VOTES_HIGH(v[2], v[3]);
  simd_i32_store(out->block[0][half], VOTES_LOW_PAIR(a, b));
  simd_i32_store(out->block[1][half], VOTES_HIGH_PAIR(a, b));
  simd_i32_store(out->block[2][half], VOTES_LOW_PAIR(c, d));
  simd_i32_store(out->block[3][half], VOTES_HIGH_PAIR(c, d));
}

/* Adds the eight votes of sample 4 lane + k to at[0..7]. */
SIMD_INLINE void votes_add(int32_t *at, const vote_block *votes, int k, int lane) {
  const int32_t *low = votes->block[k][0] + 4 * lane, *high = votes->block[k][1] + 4 * lane;
#if SIMD_ISA == SIMD_ISA_avx512 || SIMD_ISA == SIMD_ISA_avx2
  const __m128i first = _mm_load_si128((const __m128i *)(const void *)low);
  const __m256i all =
      _mm256_inserti128_si256(_mm256_castsi128_si256(first), _mm_load_si128((const __m128i *)(const void *)high), 1);
  __m256i *sum = (__m256i *)(void *)at;
  _mm256_store_si256(sum, _mm256_add_epi32(_mm256_load_si256(sum), all));
#else
  simd_i32_store(at, simd_i32_add(simd_i32_load(at), simd_i32_load(low)));
  simd_i32_store(at + 4, simd_i32_add(simd_i32_load(at + 4), simd_i32_load(high)));
#endif
}

#endif
