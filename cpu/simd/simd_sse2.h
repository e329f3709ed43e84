/* The vector layer on SSE2, the baseline of x86-64. It has no FMA, rounding or blending, so these are composed. */
#ifndef HARTSIFT_CPU_SIMD_SIMD_SSE2_H
#define HARTSIFT_CPU_SIMD_SIMD_SSE2_H

#include <emmintrin.h>

#define SIMD_WIDTH     4
#define SIMD_REGISTERS 16
#define SIMD_HAS_JOIN  0

typedef __m128 simd_f32;
typedef __m128i simd_i32;
typedef __m128 simd_mask; /* all bits of a lane are 1, or all are 0 */

SIMD_INLINE simd_f32 simd_load(const float *p) { return _mm_loadu_ps(p); }
SIMD_INLINE void simd_store(float *p, simd_f32 v) { _mm_storeu_ps(p, v); }
/* Stores past the caches; p is aligned to a vector. Call simd_stream_end before another thread reads the memory. */
SIMD_INLINE void simd_stream(float *p, simd_f32 v) { _mm_stream_ps(p, v); }
SIMD_INLINE void simd_stream_end(void) { _mm_sfence(); }
SIMD_INLINE simd_f32 simd_set1(float v) { return _mm_set1_ps(v); }
/* Loads the first n lanes (0..SIMD_WIDTH); the others are 0. Memory beyond them is not touched. */
SIMD_INLINE simd_f32 simd_load_first(const float *p, int n) {
  float lanes[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  memcpy(lanes, p, sizeof(float) * (size_t)n);
  return _mm_loadu_ps(lanes);
}
SIMD_INLINE void simd_store_first(float *p, simd_f32 v, int n) {
  float lanes[4];
  _mm_storeu_ps(lanes, v);
  memcpy(p, lanes, sizeof(float) * (size_t)n);
}

/* Return the neighbours of all lanes; low comes before high in memory. simd_before: the samples one position before
 * those of high. The other function: the samples one position after those of low. */
SIMD_INLINE simd_f32 simd_before(simd_f32 low, simd_f32 high) {
  const __m128 middle = _mm_shuffle_ps(low, high, _MM_SHUFFLE(1, 0, 3, 2));
  return _mm_shuffle_ps(middle, high, _MM_SHUFFLE(2, 1, 2, 1));
}
SIMD_INLINE simd_f32 simd_after(simd_f32 low, simd_f32 high) {
  const __m128 middle = _mm_shuffle_ps(low, high, _MM_SHUFFLE(1, 0, 3, 2));
  return _mm_shuffle_ps(low, middle, _MM_SHUFFLE(2, 1, 2, 1));
}

SIMD_INLINE simd_f32 simd_add(simd_f32 a, simd_f32 b) { return _mm_add_ps(a, b); }
SIMD_INLINE simd_f32 simd_sub(simd_f32 a, simd_f32 b) { return _mm_sub_ps(a, b); }
SIMD_INLINE simd_f32 simd_mul(simd_f32 a, simd_f32 b) { return _mm_mul_ps(a, b); }
SIMD_INLINE simd_f32 simd_div(simd_f32 a, simd_f32 b) { return _mm_div_ps(a, b); }
SIMD_INLINE simd_f32 simd_sqrt(simd_f32 a) { return _mm_sqrt_ps(a); }

/* Returns p + c rounded to odd, for p and c that are exact in double. The product of two floats is exact in double; the
 * sum s has the exact error e (two-sum; exponents of floats and their products stay far inside double's range). If e is
 * not 0, two things happen: if e points towards zero, s moves to its neighbour in that direction; and the last bit of s
 * is set. This is truncation with a sticky bit. 53 bits rounded to odd round to 24 bits and fewer as the exact sum does
 * (Boldo & Melquiond, 2008: 53 >= 24 + 2). An infinite or NaN s has e = NaN and stays. */
SIMD_INLINE __m128d simd_sum_to_odd(__m128d p, __m128d c) {
  const __m128d s = _mm_add_pd(p, c);
  const __m128d q = _mm_sub_pd(s, p);
  const __m128d e = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, q)), _mm_sub_pd(c, q));
  const __m128d zero = _mm_setzero_pd();
  const __m128i inexact = _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(e, zero), _mm_cmplt_pd(zero, e)));
  const __m128i opposed = _mm_srli_epi64(_mm_castpd_si128(_mm_xor_pd(e, s)), 63);
  const __m128i moved = _mm_sub_epi64(_mm_castpd_si128(s), _mm_and_si128(opposed, inexact));
  return _mm_castsi128_pd(_mm_or_si128(moved, _mm_srli_epi64(inexact, 63)));
}
/* a * b + c, rounded once */
SIMD_INLINE simd_f32 simd_fma(simd_f32 a, simd_f32 b, simd_f32 c) {
  const __m128 a2 = _mm_movehl_ps(a, a), b2 = _mm_movehl_ps(b, b), c2 = _mm_movehl_ps(c, c);
  const __m128d low = simd_sum_to_odd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
  const __m128d high = simd_sum_to_odd(_mm_mul_pd(_mm_cvtps_pd(a2), _mm_cvtps_pd(b2)), _mm_cvtps_pd(c2));
  return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}

/* a < b ? a : b, and a > b ? a : b */
SIMD_INLINE simd_f32 simd_min(simd_f32 a, simd_f32 b) { return _mm_min_ps(a, b); }
SIMD_INLINE simd_f32 simd_max(simd_f32 a, simd_f32 b) { return _mm_max_ps(a, b); }
SIMD_INLINE simd_f32 simd_abs(simd_f32 a) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), a); }
SIMD_INLINE simd_f32 simd_neg(simd_f32 a) { return _mm_xor_ps(a, _mm_set1_ps(-0.0f)); }

SIMD_INLINE simd_mask simd_lt(simd_f32 a, simd_f32 b) { return _mm_cmplt_ps(a, b); }
SIMD_INLINE simd_mask simd_le(simd_f32 a, simd_f32 b) { return _mm_cmple_ps(a, b); }
SIMD_INLINE simd_mask simd_eq(simd_f32 a, simd_f32 b) { return _mm_cmpeq_ps(a, b); }
SIMD_INLINE uint32_t simd_bits(simd_mask m) { return (uint32_t)_mm_movemask_ps(m); }
SIMD_INLINE simd_mask simd_mask_and(simd_mask a, simd_mask b) { return _mm_and_ps(a, b); }
SIMD_INLINE simd_mask simd_mask_or(simd_mask a, simd_mask b) { return _mm_or_ps(a, b); }
/* a and not b, bit by bit */
SIMD_INLINE simd_mask simd_mask_andnot(simd_mask a, simd_mask b) { return _mm_andnot_ps(b, a); }
SIMD_INLINE simd_f32 simd_select(simd_mask m, simd_f32 yes, simd_f32 no) {
  return _mm_or_ps(_mm_and_ps(m, yes), _mm_andnot_ps(m, no));
}

SIMD_INLINE simd_i32 simd_i32_load(const int32_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
SIMD_INLINE void simd_i32_store(int32_t *p, simd_i32 v) { _mm_storeu_si128((__m128i *)(void *)p, v); }
SIMD_INLINE simd_i32 simd_i32_set1(int32_t v) { return _mm_set1_epi32(v); }
SIMD_INLINE simd_i32 simd_i32_add(simd_i32 a, simd_i32 b) { return _mm_add_epi32(a, b); }
SIMD_INLINE simd_i32 simd_i32_sub(simd_i32 a, simd_i32 b) { return _mm_sub_epi32(a, b); }
SIMD_INLINE simd_i32 simd_i32_and(simd_i32 a, simd_i32 b) { return _mm_and_si128(a, b); }
SIMD_INLINE simd_i32 simd_i32_or(simd_i32 a, simd_i32 b) { return _mm_or_si128(a, b); }
SIMD_INLINE simd_i32 simd_i32_xor(simd_i32 a, simd_i32 b) { return _mm_xor_si128(a, b); }
/* n must be a constant */
#define simd_i32_shift_left(a, n)       _mm_slli_epi32((a), (n))
#define simd_i32_shift_right(a, n)      _mm_srli_epi32((a), (n)) /* zeros are shifted in */
#define simd_i32_shift_right_sign(a, n) _mm_srai_epi32((a), (n))
SIMD_INLINE simd_mask simd_i32_gt(simd_i32 a, simd_i32 b) { return _mm_castsi128_ps(_mm_cmpgt_epi32(a, b)); }
SIMD_INLINE simd_mask simd_i32_eq(simd_i32 a, simd_i32 b) { return _mm_castsi128_ps(_mm_cmpeq_epi32(a, b)); }
SIMD_INLINE simd_i32 simd_i32_select(simd_mask m, simd_i32 yes, simd_i32 no) {
  const __m128i bits = _mm_castps_si128(m);
  return _mm_or_si128(_mm_and_si128(bits, yes), _mm_andnot_si128(bits, no));
}

SIMD_INLINE simd_i32 simd_i32_min(simd_i32 a, simd_i32 b) { return simd_i32_select(simd_i32_gt(b, a), a, b); }
SIMD_INLINE simd_i32 simd_i32_max(simd_i32 a, simd_i32 b) { return simd_i32_select(simd_i32_gt(a, b), a, b); }
/* returns sum plus the two products of each lane's 16-bit integers */
SIMD_INLINE simd_i32 simd_dot_i16(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
}
/* 16-bit lanes, whose sums wrap. Adds the product of each lane: SSE2 does not multiply bytes. */
#define SIMD_I16_VALUES 1
SIMD_INLINE simd_i32 simd_i16_dot(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return _mm_add_epi16(sum, _mm_mullo_epi16(a, b));
}
SIMD_INLINE simd_i32 simd_i16_set1(int16_t v) { return _mm_set1_epi16(v); }
/* Where a > b: SIMD_I16_BITS bits for each lane. */
#define SIMD_I16_BITS 2
SIMD_INLINE uint32_t simd_i16_gt_bits(simd_i32 a, simd_i32 b) {
  return (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi16(a, b));
}
SIMD_INLINE simd_i32 simd_i16_max(simd_i32 a, simd_i32 b) { return _mm_max_epi16(a, b); }
/* a > b ? yes : no, in each 16-bit lane */
SIMD_INLINE simd_i32 simd_i16_select_gt(simd_i32 a, simd_i32 b, simd_i32 yes, simd_i32 no) {
  const __m128i bits = _mm_cmpgt_epi16(a, b);
  return _mm_or_si128(_mm_and_si128(bits, yes), _mm_andnot_si128(bits, no));
}
/* Loads 2 * SIMD_WIDTH unsigned bytes and widens them to 16 bits. */
SIMD_INLINE simd_i32 simd_i16_load_i8(const int8_t *p) {
  const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)p);
  return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
}
SIMD_INLINE simd_i32 simd_i16_load_u8(const uint8_t *p) {
  return _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(const void *)p), _mm_setzero_si128());
}
/* Returns the sum of all 32-bit lanes, which wraps. */
SIMD_INLINE int32_t simd_i32_sum(simd_i32 a) {
  const __m128i two = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

SIMD_INLINE simd_i32 simd_round_i32(simd_f32 a) { return _mm_cvtps_epi32(a); } /* rounds to nearest, halves to even */
SIMD_INLINE simd_i32 simd_trunc_i32(simd_f32 a) { return _mm_cvttps_epi32(a); }
SIMD_INLINE simd_f32 simd_from_i32(simd_i32 a) { return _mm_cvtepi32_ps(a); }
SIMD_INLINE simd_i32 simd_cast_i32(simd_f32 a) { return _mm_castps_si128(a); }
SIMD_INLINE simd_f32 simd_cast_f32(simd_i32 a) { return _mm_castsi128_ps(a); }
/* Returns floor for |a| < 2^31: truncates, and subtracts one if the truncated value exceeds a. */
SIMD_INLINE simd_f32 simd_floor(simd_f32 a) {
  const __m128 t = _mm_cvtepi32_ps(_mm_cvttps_epi32(a));
  return _mm_sub_ps(t, _mm_and_ps(_mm_cmplt_ps(a, t), _mm_set1_ps(1.0f)));
}

/* Load SIMD_WIDTH unsigned values and widen them to 32 bits. */
SIMD_INLINE simd_i32 simd_i32_load_u8(const uint8_t *p) {
  int32_t four;
  memcpy(&four, p, sizeof four);
  const __m128i zero = _mm_setzero_si128();
  return _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(four), zero), zero);
}
SIMD_INLINE simd_i32 simd_i32_load_u16(const uint16_t *p) {
  return _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(const void *)p), _mm_setzero_si128());
}
/* Stores the lanes of a and b interleaved, a0 b0 a1 b1 ...: 2 * SIMD_WIDTH floats. */
SIMD_INLINE void simd_store_interleaved(float *p, simd_f32 a, simd_f32 b) {
  _mm_storeu_ps(p, _mm_unpacklo_ps(a, b));
  _mm_storeu_ps(p + SIMD_WIDTH, _mm_unpackhi_ps(a, b));
}
/* Loads every second of 2 * SIMD_WIDTH floats, beginning with the first. */
SIMD_INLINE simd_f32 simd_load_even(const float *p) {
  return _mm_shuffle_ps(_mm_loadu_ps(p), _mm_loadu_ps(p + SIMD_WIDTH), 0x88);
}
/* Load the floats at base + offset[i], and the floats after them. */
SIMD_INLINE __m128 simd_two_pairs(const float *base, const int32_t *offset) {
  return _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)(base + offset[0])),
                      (const __m64 *)(const void *)(base + offset[1]));
}
SIMD_INLINE void simd_load_pairs(const float *base, const int32_t *offset, simd_f32 *first, simd_f32 *second) {
  const __m128 a = simd_two_pairs(base, offset), b = simd_two_pairs(base, offset + 2);
  *first = _mm_shuffle_ps(a, b, 0x88);
  *second = _mm_shuffle_ps(a, b, 0xdd);
}
SIMD_INLINE simd_f32 simd_gather(const float *base, simd_i32 index) {
  int32_t i[4];
  simd_i32_store(i, index);
  return _mm_setr_ps(base[i[0]], base[i[1]], base[i[2]], base[i[3]]);
}

#endif
