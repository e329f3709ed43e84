/* The vector layer on AVX2 with FMA. Included by simd.h only. */
#ifndef HARTSIFT_CPU_SIMD_SIMD_AVX2_H
#define HARTSIFT_CPU_SIMD_SIMD_AVX2_H

#include <immintrin.h>

#define SIMD_WIDTH     8
#define SIMD_REGISTERS 16
#define SIMD_HAS_JOIN  1

typedef __m256 simd_f32;
typedef __m256i simd_i32;
typedef __m256 simd_mask; /* all bits of a lane are 1, or all are 0 */

SIMD_INLINE simd_f32 simd_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD_INLINE void simd_store(float *p, simd_f32 v) { _mm256_storeu_ps(p, v); }
/* Stores past the caches; p is aligned to a vector. Call simd_stream_end before another thread reads the memory. */
SIMD_INLINE void simd_stream(float *p, simd_f32 v) { _mm256_stream_ps(p, v); }
SIMD_INLINE void simd_stream_end(void) { _mm_sfence(); }
SIMD_INLINE simd_f32 simd_set1(float v) { return _mm256_set1_ps(v); }
SIMD_INLINE __m256i simd_first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/* Loads the first n lanes (0..SIMD_WIDTH); the others are 0. Memory beyond them is not touched. */
SIMD_INLINE simd_f32 simd_load_first(const float *p, int n) { return _mm256_maskload_ps(p, simd_first_lanes(n)); }
SIMD_INLINE void simd_store_first(float *p, simd_f32 v, int n) { _mm256_maskstore_ps(p, simd_first_lanes(n), v); }

/* Returns the upper half of low, then the lower half of high. */
SIMD_INLINE __m256i simd_middle(simd_f32 low, simd_f32 high) {
  return _mm256_castps_si256(_mm256_permute2f128_ps(low, high, 0x21));
}
/* Joins lanes n.. of low and lanes 0..n-1 of high: the samples n positions after low. n: a constant, 1..SIMD_WIDTH-1.
 * The middle of low and high is computed once for all n. */
#define simd_join(high, low, n)                                                                                        \
  _mm256_castsi256_ps((n) == 4  ? simd_middle(low, high)                                                               \
                      : (n) < 4 ? _mm256_alignr_epi8(simd_middle(low, high), _mm256_castps_si256(low), 4 * (n)&15)     \
                                : _mm256_alignr_epi8(_mm256_castps_si256(high), simd_middle(low, high), 4 * (n)&15))

/* Return the neighbours of all lanes; low comes before high in memory. simd_before returns for each lane of
 * high the sample one position earlier; simd_after, for each lane of low, the sample one position later. */
SIMD_INLINE simd_f32 simd_before(simd_f32 low, simd_f32 high) { return simd_join(high, low, SIMD_WIDTH - 1); }
SIMD_INLINE simd_f32 simd_after(simd_f32 low, simd_f32 high) { return simd_join(high, low, 1); }

SIMD_INLINE simd_f32 simd_add(simd_f32 a, simd_f32 b) { return _mm256_add_ps(a, b); }
SIMD_INLINE simd_f32 simd_sub(simd_f32 a, simd_f32 b) { return _mm256_sub_ps(a, b); }
SIMD_INLINE simd_f32 simd_mul(simd_f32 a, simd_f32 b) { return _mm256_mul_ps(a, b); }
SIMD_INLINE simd_f32 simd_div(simd_f32 a, simd_f32 b) { return _mm256_div_ps(a, b); }
SIMD_INLINE simd_f32 simd_sqrt(simd_f32 a) { return _mm256_sqrt_ps(a); }
/* a * b + c, rounded once */
SIMD_INLINE simd_f32 simd_fma(simd_f32 a, simd_f32 b, simd_f32 c) { return _mm256_fmadd_ps(a, b, c); }
/* a < b ? a : b, and a > b ? a : b */
SIMD_INLINE simd_f32 simd_min(simd_f32 a, simd_f32 b) { return _mm256_min_ps(a, b); }
SIMD_INLINE simd_f32 simd_max(simd_f32 a, simd_f32 b) { return _mm256_max_ps(a, b); }
SIMD_INLINE simd_f32 simd_abs(simd_f32 a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
SIMD_INLINE simd_f32 simd_neg(simd_f32 a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
SIMD_INLINE simd_f32 simd_floor(simd_f32 a) { return _mm256_floor_ps(a); }

SIMD_INLINE simd_mask simd_lt(simd_f32 a, simd_f32 b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
SIMD_INLINE simd_mask simd_le(simd_f32 a, simd_f32 b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
SIMD_INLINE simd_mask simd_eq(simd_f32 a, simd_f32 b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
SIMD_INLINE uint32_t simd_bits(simd_mask m) { return (uint32_t)_mm256_movemask_ps(m); }
SIMD_INLINE simd_mask simd_mask_and(simd_mask a, simd_mask b) { return _mm256_and_ps(a, b); }
SIMD_INLINE simd_mask simd_mask_or(simd_mask a, simd_mask b) { return _mm256_or_ps(a, b); }
/* a and not b, bit by bit */
SIMD_INLINE simd_mask simd_mask_andnot(simd_mask a, simd_mask b) { return _mm256_andnot_ps(b, a); }
SIMD_INLINE simd_f32 simd_select(simd_mask m, simd_f32 yes, simd_f32 no) { return _mm256_blendv_ps(no, yes, m); }

SIMD_INLINE simd_i32 simd_i32_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
SIMD_INLINE void simd_i32_store(int32_t *p, simd_i32 v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }
SIMD_INLINE simd_i32 simd_i32_set1(int32_t v) { return _mm256_set1_epi32(v); }
SIMD_INLINE simd_i32 simd_i32_add(simd_i32 a, simd_i32 b) { return _mm256_add_epi32(a, b); }
SIMD_INLINE simd_i32 simd_i32_sub(simd_i32 a, simd_i32 b) { return _mm256_sub_epi32(a, b); }
SIMD_INLINE simd_i32 simd_i32_and(simd_i32 a, simd_i32 b) { return _mm256_and_si256(a, b); }
SIMD_INLINE simd_i32 simd_i32_or(simd_i32 a, simd_i32 b) { return _mm256_or_si256(a, b); }
SIMD_INLINE simd_i32 simd_i32_xor(simd_i32 a, simd_i32 b) { return _mm256_xor_si256(a, b); }
SIMD_INLINE simd_i32 simd_i32_min(simd_i32 a, simd_i32 b) { return _mm256_min_epi32(a, b); }
SIMD_INLINE simd_i32 simd_i32_max(simd_i32 a, simd_i32 b) { return _mm256_max_epi32(a, b); }
/* returns sum plus the two products of each lane's 16-bit integers */
SIMD_INLINE simd_i32 simd_dot_i16(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
/* 16-bit lanes, whose sums wrap. Adds the two products of each lane's bytes. Bytes of a are unsigned, up to 127; bytes
 * of b are signed. */
#define SIMD_I16_VALUES 2
SIMD_INLINE simd_i32 simd_i16_dot(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b));
}
SIMD_INLINE simd_i32 simd_i16_set1(int16_t v) { return _mm256_set1_epi16(v); }
/* Where a > b: SIMD_I16_BITS bits for each lane. */
#define SIMD_I16_BITS 2
SIMD_INLINE uint32_t simd_i16_gt_bits(simd_i32 a, simd_i32 b) {
  return (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi16(a, b));
}
SIMD_INLINE simd_i32 simd_i16_max(simd_i32 a, simd_i32 b) { return _mm256_max_epi16(a, b); }
/* a > b ? yes : no, in each 16-bit lane */
SIMD_INLINE simd_i32 simd_i16_select_gt(simd_i32 a, simd_i32 b, simd_i32 yes, simd_i32 no) {
  return _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi16(a, b));
}
/* Loads 2 * SIMD_WIDTH unsigned bytes and widens them to 16 bits. */
SIMD_INLINE simd_i32 simd_i16_load_i8(const int8_t *p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SIMD_INLINE simd_i32 simd_i16_load_u8(const uint8_t *p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* Returns the sum of all 32-bit lanes, which wraps. */
SIMD_INLINE int32_t simd_i32_sum(simd_i32 a) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
/* n must be a constant */
#define simd_i32_shift_left(a, n)       _mm256_slli_epi32((a), (n))
#define simd_i32_shift_right(a, n)      _mm256_srli_epi32((a), (n)) /* zeros are shifted in */
#define simd_i32_shift_right_sign(a, n) _mm256_srai_epi32((a), (n))
SIMD_INLINE simd_mask simd_i32_gt(simd_i32 a, simd_i32 b) { return _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)); }
SIMD_INLINE simd_mask simd_i32_eq(simd_i32 a, simd_i32 b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
SIMD_INLINE simd_i32 simd_i32_select(simd_mask m, simd_i32 yes, simd_i32 no) {
  return _mm256_blendv_epi8(no, yes, _mm256_castps_si256(m));
}

/* rounds to nearest, halves to even */
SIMD_INLINE simd_i32 simd_round_i32(simd_f32 a) { return _mm256_cvtps_epi32(a); }
SIMD_INLINE simd_i32 simd_trunc_i32(simd_f32 a) { return _mm256_cvttps_epi32(a); }
SIMD_INLINE simd_f32 simd_from_i32(simd_i32 a) { return _mm256_cvtepi32_ps(a); }
SIMD_INLINE simd_i32 simd_cast_i32(simd_f32 a) { return _mm256_castps_si256(a); }
SIMD_INLINE simd_f32 simd_cast_f32(simd_i32 a) { return _mm256_castsi256_ps(a); }

/* Load SIMD_WIDTH unsigned values and widen them to 32 bits. */
SIMD_INLINE simd_i32 simd_i32_load_u8(const uint8_t *p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
SIMD_INLINE simd_i32 simd_i32_load_u16(const uint16_t *p) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* Stores the lanes of a and b interleaved, a0 b0 a1 b1 ...: 2 * SIMD_WIDTH floats. */
SIMD_INLINE void simd_store_interleaved(float *p, simd_f32 a, simd_f32 b) {
  const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
  _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_storeu_ps(p + SIMD_WIDTH, _mm256_permute2f128_ps(low, high, 0x31));
}
/* Loads every second of 2 * SIMD_WIDTH floats, beginning with the first. */
SIMD_INLINE simd_f32 simd_load_even(const float *p) {
  const __m256 pairs = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + SIMD_WIDTH), 0x88);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xD8));
}
/* Load the floats at base + offset[i] and the floats after them. Pairs are loaded, because gather instructions are
 * slower. */
SIMD_INLINE __m256 simd_four_pairs(const float *base, const int32_t *offset) {
  const __m128 low = _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)(base + offset[0])),
                                  (const __m64 *)(const void *)(base + offset[1]));
  const __m128 high = _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)(base + offset[4])),
                                   (const __m64 *)(const void *)(base + offset[5]));
  return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
SIMD_INLINE void simd_load_pairs(const float *base, const int32_t *offset, simd_f32 *first, simd_f32 *second) {
  const __m256 a = simd_four_pairs(base, offset), b = simd_four_pairs(base, offset + 2);
  *first = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0));
  *second = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1));
}
SIMD_INLINE simd_f32 simd_gather(const float *base, simd_i32 index) { return _mm256_i32gather_ps(base, index, 4); }

#endif
