/* The vector layer on AVX-512 (F, BW, DQ, VL). Included by simd.h only. */
#ifndef HARTSIFT_CPU_SIMD_SIMD_AVX512_H
#define HARTSIFT_CPU_SIMD_SIMD_AVX512_H

#include <immintrin.h>

#define SIMD_WIDTH     16
#define SIMD_REGISTERS 32
#define SIMD_HAS_JOIN  1 /* simd_join is one instruction */

typedef __m512 simd_f32;
typedef __m512i simd_i32;
typedef __mmask16 simd_mask;

SIMD_INLINE simd_f32 simd_load(const float *p) { return _mm512_loadu_ps(p); }
SIMD_INLINE void simd_store(float *p, simd_f32 v) { _mm512_storeu_ps(p, v); }
/* Stores past the caches; p is aligned to a vector. Call simd_stream_end before another thread reads the memory. */
SIMD_INLINE void simd_stream(float *p, simd_f32 v) { _mm512_stream_ps(p, v); }
SIMD_INLINE void simd_stream_end(void) { _mm_sfence(); }
SIMD_INLINE simd_f32 simd_set1(float v) { return _mm512_set1_ps(v); }
/* Loads the first n lanes (0..SIMD_WIDTH); the others are 0. Memory beyond them is not touched. */
SIMD_INLINE simd_f32 simd_load_first(const float *p, int n) {
  return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
SIMD_INLINE void simd_store_first(float *p, simd_f32 v, int n) {
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), v);
}
/* Joins lanes n.. of low and lanes 0..n-1 of high: the samples n positions after low. n: a constant,
 * 0..SIMD_WIDTH-1. */
#define simd_join(high, low, n)                                                                                        \
  _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(high), _mm512_castps_si512(low), (n)))

/* Return the neighbours of all lanes; low comes before high in memory. simd_before returns for each lane of
 * high the sample one position earlier; simd_after, for each lane of low, the sample one position later. */
SIMD_INLINE simd_f32 simd_before(simd_f32 low, simd_f32 high) { return simd_join(high, low, SIMD_WIDTH - 1); }
SIMD_INLINE simd_f32 simd_after(simd_f32 low, simd_f32 high) { return simd_join(high, low, 1); }

SIMD_INLINE simd_f32 simd_add(simd_f32 a, simd_f32 b) { return _mm512_add_ps(a, b); }
SIMD_INLINE simd_f32 simd_sub(simd_f32 a, simd_f32 b) { return _mm512_sub_ps(a, b); }
SIMD_INLINE simd_f32 simd_mul(simd_f32 a, simd_f32 b) { return _mm512_mul_ps(a, b); }
SIMD_INLINE simd_f32 simd_div(simd_f32 a, simd_f32 b) { return _mm512_div_ps(a, b); }
SIMD_INLINE simd_f32 simd_sqrt(simd_f32 a) { return _mm512_sqrt_ps(a); }
/* a * b + c, rounded once */
SIMD_INLINE simd_f32 simd_fma(simd_f32 a, simd_f32 b, simd_f32 c) { return _mm512_fmadd_ps(a, b, c); }
/* a < b ? a : b, and a > b ? a : b */
SIMD_INLINE simd_f32 simd_min(simd_f32 a, simd_f32 b) { return _mm512_min_ps(a, b); }
SIMD_INLINE simd_f32 simd_max(simd_f32 a, simd_f32 b) { return _mm512_max_ps(a, b); }
SIMD_INLINE simd_f32 simd_abs(simd_f32 a) { return _mm512_abs_ps(a); }
SIMD_INLINE simd_f32 simd_neg(simd_f32 a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
SIMD_INLINE simd_f32 simd_floor(simd_f32 a) { return _mm512_floor_ps(a); }

SIMD_INLINE simd_mask simd_lt(simd_f32 a, simd_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
SIMD_INLINE simd_mask simd_le(simd_f32 a, simd_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
SIMD_INLINE simd_mask simd_eq(simd_f32 a, simd_f32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
SIMD_INLINE uint32_t simd_bits(simd_mask m) { return m; }
SIMD_INLINE simd_mask simd_mask_and(simd_mask a, simd_mask b) { return (simd_mask)(a & b); }
SIMD_INLINE simd_mask simd_mask_or(simd_mask a, simd_mask b) { return (simd_mask)(a | b); }
/* a and not b, bit by bit */
SIMD_INLINE simd_mask simd_mask_andnot(simd_mask a, simd_mask b) { return (simd_mask)(a & ~b); }
SIMD_INLINE simd_f32 simd_select(simd_mask m, simd_f32 yes, simd_f32 no) { return _mm512_mask_blend_ps(m, no, yes); }

SIMD_INLINE simd_i32 simd_i32_load(const int32_t *p) { return _mm512_loadu_si512(p); }
SIMD_INLINE void simd_i32_store(int32_t *p, simd_i32 v) { _mm512_storeu_si512(p, v); }
SIMD_INLINE simd_i32 simd_i32_set1(int32_t v) { return _mm512_set1_epi32(v); }
SIMD_INLINE simd_i32 simd_i32_add(simd_i32 a, simd_i32 b) { return _mm512_add_epi32(a, b); }
SIMD_INLINE simd_i32 simd_i32_sub(simd_i32 a, simd_i32 b) { return _mm512_sub_epi32(a, b); }
SIMD_INLINE simd_i32 simd_i32_and(simd_i32 a, simd_i32 b) { return _mm512_and_si512(a, b); }
SIMD_INLINE simd_i32 simd_i32_or(simd_i32 a, simd_i32 b) { return _mm512_or_si512(a, b); }
SIMD_INLINE simd_i32 simd_i32_xor(simd_i32 a, simd_i32 b) { return _mm512_xor_si512(a, b); }
SIMD_INLINE simd_i32 simd_i32_min(simd_i32 a, simd_i32 b) { return _mm512_min_epi32(a, b); }
SIMD_INLINE simd_i32 simd_i32_max(simd_i32 a, simd_i32 b) { return _mm512_max_epi32(a, b); }
#if SIMD_ISA == SIMD_ISA_avx512vnni
/* Adds to sum the four products of each lane's bytes, unsigned by signed; exact while sums fit into 32 bits. Written as
 * assembly, because with the intrinsic GCC 12 copies every sum twice in a loop with many sums. */
SIMD_INLINE simd_i32 simd_dot_bytes(simd_i32 sum, simd_i32 unsigned_bytes, simd_i32 signed_bytes) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
  return sum;
}
#endif
/* returns sum plus the two products of each lane's 16-bit integers */
SIMD_INLINE simd_i32 simd_dot_i16(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}
/* 16-bit lanes, whose sums wrap. Adds the two products of each lane's bytes. Bytes of a are unsigned, up to 127; bytes
 * of b are signed. */
#define SIMD_I16_VALUES 2
SIMD_INLINE simd_i32 simd_i16_dot(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return _mm512_add_epi16(sum, _mm512_maddubs_epi16(a, b));
}
SIMD_INLINE simd_i32 simd_i16_set1(int16_t v) { return _mm512_set1_epi16(v); }
/* Where a > b: SIMD_I16_BITS bits for each lane. */
#define SIMD_I16_BITS 1
SIMD_INLINE uint32_t simd_i16_gt_bits(simd_i32 a, simd_i32 b) { return (uint32_t)_mm512_cmpgt_epi16_mask(a, b); }
SIMD_INLINE simd_i32 simd_i16_max(simd_i32 a, simd_i32 b) { return _mm512_max_epi16(a, b); }
/* a > b ? yes : no, in each 16-bit lane */
SIMD_INLINE simd_i32 simd_i16_select_gt(simd_i32 a, simd_i32 b, simd_i32 yes, simd_i32 no) {
  return _mm512_mask_blend_epi16(_mm512_cmpgt_epi16_mask(a, b), no, yes);
}
/* Loads 2 * SIMD_WIDTH unsigned bytes and widens them to 16 bits. */
SIMD_INLINE simd_i32 simd_i16_load_i8(const int8_t *p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
SIMD_INLINE simd_i32 simd_i16_load_u8(const uint8_t *p) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
/* Returns the sum of all 32-bit lanes, which wraps. */
SIMD_INLINE int32_t simd_i32_sum(simd_i32 a) { return _mm512_reduce_add_epi32(a); }
/* n must be a constant */
#define simd_i32_shift_left(a, n)       _mm512_slli_epi32((a), (n))
#define simd_i32_shift_right(a, n)      _mm512_srli_epi32((a), (n)) /* zeros are shifted in */
#define simd_i32_shift_right_sign(a, n) _mm512_srai_epi32((a), (n))
SIMD_INLINE simd_mask simd_i32_gt(simd_i32 a, simd_i32 b) { return _mm512_cmpgt_epi32_mask(a, b); }
SIMD_INLINE simd_mask simd_i32_eq(simd_i32 a, simd_i32 b) { return _mm512_cmpeq_epi32_mask(a, b); }
SIMD_INLINE simd_i32 simd_i32_select(simd_mask m, simd_i32 yes, simd_i32 no) {
  return _mm512_mask_blend_epi32(m, no, yes);
}

/* rounds to nearest, halves to even */
SIMD_INLINE simd_i32 simd_round_i32(simd_f32 a) { return _mm512_cvtps_epi32(a); }
SIMD_INLINE simd_i32 simd_trunc_i32(simd_f32 a) { return _mm512_cvttps_epi32(a); }
SIMD_INLINE simd_f32 simd_from_i32(simd_i32 a) { return _mm512_cvtepi32_ps(a); }
SIMD_INLINE simd_i32 simd_cast_i32(simd_f32 a) { return _mm512_castps_si512(a); }
SIMD_INLINE simd_f32 simd_cast_f32(simd_i32 a) { return _mm512_castsi512_ps(a); }

/* Load SIMD_WIDTH unsigned values and widen them to 32 bits. */
SIMD_INLINE simd_i32 simd_i32_load_u8(const uint8_t *p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SIMD_INLINE simd_i32 simd_i32_load_u16(const uint16_t *p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
/* Stores the lanes of a and b interleaved, a0 b0 a1 b1 ...: 2 * SIMD_WIDTH floats. */
SIMD_INLINE void simd_store_interleaved(float *p, simd_f32 a, simd_f32 b) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  _mm512_storeu_ps(p, _mm512_permutex2var_ps(a, low, b));
  _mm512_storeu_ps(p + SIMD_WIDTH, _mm512_permutex2var_ps(a, high, b));
}
/* Loads every second of 2 * SIMD_WIDTH floats, beginning with the first. */
SIMD_INLINE simd_f32 simd_load_even(const float *p) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(_mm512_loadu_ps(p), even, _mm512_loadu_ps(p + SIMD_WIDTH));
}
/* Load the floats at base + offset[i] and the floats after them. Pairs are loaded, because gather instructions are
 * slower. */
SIMD_INLINE __m128 simd_two_pairs(const float *base, const int32_t *offset) {
  return _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)(base + offset[0])),
                      (const __m64 *)(const void *)(base + offset[1]));
}
SIMD_INLINE __m512 simd_eight_pairs(const float *base, const int32_t *offset) {
  const __m256 low =
      _mm256_insertf128_ps(_mm256_castps128_ps256(simd_two_pairs(base, offset)), simd_two_pairs(base, offset + 4), 1);
  const __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(simd_two_pairs(base, offset + 8)),
                                           simd_two_pairs(base, offset + 12), 1);
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
SIMD_INLINE void simd_load_pairs(const float *base, const int32_t *offset, simd_f32 *first, simd_f32 *second) {
  const __m512 a = simd_eight_pairs(base, offset), b = simd_eight_pairs(base, offset + 2);
  *first = _mm512_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0));
  *second = _mm512_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1));
}
/* without optimisation the intrinsic is a macro, whose conversion causes a compiler warning */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
SIMD_INLINE simd_f32 simd_gather(const float *base, simd_i32 index) { return _mm512_i32gather_ps(index, base, 4); }
#pragma GCC diagnostic pop

#endif
