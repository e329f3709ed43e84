/*
 * The vector layer for 8-bit and 16-bit unsigned elements: SIMD_BYTES bytes, SIMD_BYTES / 2 words.
 *
 *   simd_bytes      a vector of bytes or words; loads of any alignment
 *   simd_bytes_sum  sums of bytes, in the 64-bit lanes of another vector
 */
#ifndef HARTSIFT_CPU_SIMD_SIMD_BYTES_H
#define HARTSIFT_CPU_SIMD_SIMD_BYTES_H

#include "cpu/simd/simd.h"

#if SIMD_ISA == SIMD_ISA_avx512
#  define SIMD_BYTES 64
typedef __m512i simd_bytes;
SIMD_INLINE simd_bytes simd_bytes_load(const void *p) { return _mm512_loadu_si512(p); }
SIMD_INLINE void simd_bytes_store(void *p, simd_bytes v) { _mm512_storeu_si512(p, v); }
SIMD_INLINE simd_bytes simd_bytes_set1(uint8_t v) { return _mm512_set1_epi8((char)v); }
SIMD_INLINE simd_bytes simd_bytes_or(simd_bytes a, simd_bytes b) { return _mm512_or_si512(a, b); }
SIMD_INLINE simd_bytes simd_bytes_min(simd_bytes a, simd_bytes b) { return _mm512_min_epu8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_max(simd_bytes a, simd_bytes b) { return _mm512_max_epu8(a, b); }
/* Returns a - b, or 0 if that is negative. */
SIMD_INLINE simd_bytes simd_bytes_over(simd_bytes a, simd_bytes b) { return _mm512_subs_epu8(a, b); }
/* Adds groups of bytes to 64-bit lanes. */
SIMD_INLINE simd_bytes simd_bytes_sum(simd_bytes lanes, simd_bytes v) {
  return _mm512_add_epi64(lanes, _mm512_sad_epu8(v, _mm512_setzero_si512()));
}
SIMD_INLINE simd_bytes simd_words_min(simd_bytes a, simd_bytes b) { return _mm512_min_epu16(a, b); }
SIMD_INLINE simd_bytes simd_words_max(simd_bytes a, simd_bytes b) { return _mm512_max_epu16(a, b); }
/* Adds pairs of words to 32-bit lanes. */
SIMD_INLINE simd_bytes simd_words_sum(simd_bytes lanes, simd_bytes v) {
  const __m512i low = _mm512_and_si512(v, _mm512_set1_epi32(0xffff));
  return _mm512_add_epi32(lanes, _mm512_add_epi32(low, _mm512_srli_epi32(v, 16)));
}
/* Loads the first n bytes (0..SIMD_BYTES); the others are 0. Memory beyond them is not touched. */
SIMD_INLINE simd_bytes simd_bytes_load_first(const void *p, size_t n) {
  return _mm512_maskz_loadu_epi8(n < 64 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0, p);
}

#elif SIMD_ISA == SIMD_ISA_avx2
#  define SIMD_BYTES 32
typedef __m256i simd_bytes;
SIMD_INLINE simd_bytes simd_bytes_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
SIMD_INLINE void simd_bytes_store(void *p, simd_bytes v) { _mm256_storeu_si256((__m256i *)p, v); }
SIMD_INLINE simd_bytes simd_bytes_set1(uint8_t v) { return _mm256_set1_epi8((char)v); }
SIMD_INLINE simd_bytes simd_bytes_or(simd_bytes a, simd_bytes b) { return _mm256_or_si256(a, b); }
SIMD_INLINE simd_bytes simd_bytes_min(simd_bytes a, simd_bytes b) { return _mm256_min_epu8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_max(simd_bytes a, simd_bytes b) { return _mm256_max_epu8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_over(simd_bytes a, simd_bytes b) { return _mm256_subs_epu8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_sum(simd_bytes lanes, simd_bytes v) {
  return _mm256_add_epi64(lanes, _mm256_sad_epu8(v, _mm256_setzero_si256()));
}
SIMD_INLINE simd_bytes simd_words_min(simd_bytes a, simd_bytes b) { return _mm256_min_epu16(a, b); }
SIMD_INLINE simd_bytes simd_words_max(simd_bytes a, simd_bytes b) { return _mm256_max_epu16(a, b); }
SIMD_INLINE simd_bytes simd_words_sum(simd_bytes lanes, simd_bytes v) {
  const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
  return _mm256_add_epi32(lanes, _mm256_add_epi32(low, _mm256_srli_epi32(v, 16)));
}

#elif SIMD_ISA == SIMD_ISA_sse2
#  define SIMD_BYTES 16
typedef __m128i simd_bytes;
SIMD_INLINE simd_bytes simd_bytes_load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
SIMD_INLINE void simd_bytes_store(void *p, simd_bytes v) { _mm_storeu_si128((__m128i *)p, v); }
SIMD_INLINE simd_bytes simd_bytes_set1(uint8_t v) { return _mm_set1_epi8((char)v); }
SIMD_INLINE simd_bytes simd_bytes_or(simd_bytes a, simd_bytes b) { return _mm_or_si128(a, b); }
SIMD_INLINE simd_bytes simd_bytes_min(simd_bytes a, simd_bytes b) { return _mm_min_epu8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_max(simd_bytes a, simd_bytes b) { return _mm_max_epu8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_over(simd_bytes a, simd_bytes b) { return _mm_subs_epu8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_sum(simd_bytes lanes, simd_bytes v) {
  return _mm_add_epi64(lanes, _mm_sad_epu8(v, _mm_setzero_si128()));
}
/* SSE2 has no minimum of words. With d = (a - b, or 0 if negative), the minimum is a - d and the maximum b + d. */
SIMD_INLINE simd_bytes simd_words_min(simd_bytes a, simd_bytes b) { return _mm_sub_epi16(a, _mm_subs_epu16(a, b)); }
SIMD_INLINE simd_bytes simd_words_max(simd_bytes a, simd_bytes b) { return _mm_add_epi16(b, _mm_subs_epu16(a, b)); }
SIMD_INLINE simd_bytes simd_words_sum(simd_bytes lanes, simd_bytes v) {
  const __m128i low = _mm_and_si128(v, _mm_set1_epi32(0xffff));
  return _mm_add_epi32(lanes, _mm_add_epi32(low, _mm_srli_epi32(v, 16)));
}

#elif SIMD_IS_NEON
#  define SIMD_BYTES 16
typedef uint8x16_t simd_bytes;
SIMD_INLINE simd_bytes simd_bytes_load(const void *p) { return vld1q_u8((const uint8_t *)p); }
SIMD_INLINE void simd_bytes_store(void *p, simd_bytes v) { vst1q_u8((uint8_t *)p, v); }
SIMD_INLINE simd_bytes simd_bytes_set1(uint8_t v) { return vdupq_n_u8(v); }
SIMD_INLINE simd_bytes simd_bytes_or(simd_bytes a, simd_bytes b) { return vorrq_u8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_min(simd_bytes a, simd_bytes b) { return vminq_u8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_max(simd_bytes a, simd_bytes b) { return vmaxq_u8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_over(simd_bytes a, simd_bytes b) { return vqsubq_u8(a, b); }
SIMD_INLINE simd_bytes simd_bytes_sum(simd_bytes lanes, simd_bytes v) {
  return vreinterpretq_u8_u64(vpadalq_u32(vreinterpretq_u64_u8(lanes), vpaddlq_u16(vpaddlq_u8(v))));
}
SIMD_INLINE simd_bytes simd_words_min(simd_bytes a, simd_bytes b) {
  return vreinterpretq_u8_u16(vminq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}
SIMD_INLINE simd_bytes simd_words_max(simd_bytes a, simd_bytes b) {
  return vreinterpretq_u8_u16(vmaxq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}
SIMD_INLINE simd_bytes simd_words_sum(simd_bytes lanes, simd_bytes v) {
  return vreinterpretq_u8_u32(vpadalq_u16(vreinterpretq_u32_u8(lanes), vreinterpretq_u16_u8(v)));
}
#endif

#if SIMD_ISA != SIMD_ISA_avx512
SIMD_INLINE simd_bytes simd_bytes_load_first(const void *p, size_t n) {
  uint8_t bytes[SIMD_BYTES] = {0};
  memcpy(bytes, p, n);
  return simd_bytes_load(bytes);
}
#endif

/* Distance at which a pass over memory prefetches: it reads these bytes some hundred cycles later. The hardware
 * prefetcher delivers a vector per cycle only from the nearer caches. Any address may be prefetched. */
enum { SIMD_AHEAD_BYTES = 4096 };
SIMD_INLINE void simd_ahead(const void *p) { __builtin_prefetch((const void *)((uintptr_t)p + SIMD_AHEAD_BYTES)); }
SIMD_INLINE void simd_ahead_lines(const void *p, size_t bytes) {
  for (size_t line = 0; line < bytes; line += 64) simd_ahead((const uint8_t *)p + line);
}

SIMD_INLINE simd_bytes simd_bytes_zero(void) { return simd_bytes_set1(0); }

/* Returns 0xff in the bytes from n on, so that a minimum ignores them. */
SIMD_INLINE simd_bytes simd_bytes_beyond(size_t n) {
  static const uint8_t edge[2 * SIMD_BYTES] = {
#define EDGE_16 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255
#if SIMD_BYTES == 64
    [64] = EDGE_16,
    EDGE_16,
    EDGE_16,
    EDGE_16
#elif SIMD_BYTES == 32
    [32] = EDGE_16,
    EDGE_16
#else
    [16] = EDGE_16
#endif
#undef EDGE_16
  };
  return simd_bytes_load(edge + SIMD_BYTES - n);
}

/* Return the total of the 64-bit lanes of simd_bytes_sum, and of the 32-bit lanes of simd_words_sum. */
SIMD_INLINE uint64_t simd_bytes_total(simd_bytes lanes) {
  uint64_t lane[SIMD_BYTES / 8], sum = 0;
  simd_bytes_store(lane, lanes);
  for (int i = 0; i < SIMD_BYTES / 8; i++) sum += lane[i];
  return sum;
}
SIMD_INLINE uint64_t simd_words_total(simd_bytes lanes) {
  uint32_t lane[SIMD_BYTES / 4];
  uint64_t sum = 0;
  simd_bytes_store(lane, lanes);
  for (int i = 0; i < SIMD_BYTES / 4; i++) sum += lane[i];
  return sum;
}

/* A table of 256 bytes in registers. AVX2 and AVX-512 look up 16 entries at a time, by the low half of a byte. The
 * entry of a table row is valid only if the high half of the byte v is the row's number, so that v ^ (row << 4) is
 * below 16. For all other bytes, adding 0x70 with saturation sets the top bit, for which the shuffle gives 0. */
#if SIMD_ISA == SIMD_ISA_avx512 || SIMD_ISA == SIMD_ISA_avx2
#  define SIMD_HAS_TABLE  1
#  define SIMD_TABLE_ROWS 16
#elif SIMD_IS_NEON
#  define SIMD_HAS_TABLE  1
#  define SIMD_TABLE_ROWS 4
#else
#  define SIMD_HAS_TABLE 0
#endif

#if SIMD_HAS_TABLE
typedef struct simd_table {
#  if SIMD_IS_NEON
  uint8x16x4_t row[SIMD_TABLE_ROWS];
#  else
  simd_bytes row[SIMD_TABLE_ROWS];
#  endif
} simd_table;

SIMD_INLINE void simd_table_load(simd_table *t, const uint8_t *entries) {
  for (int r = 0; r < SIMD_TABLE_ROWS; r++) {
#  if SIMD_ISA == SIMD_ISA_avx512
    t->row[r] = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(entries + 16 * r)));
#  elif SIMD_ISA == SIMD_ISA_avx2
    t->row[r] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(entries + 16 * r)));
#  else
    for (int k = 0; k < 4; k++) t->row[r].val[k] = vld1q_u8(entries + 64 * r + 16 * k);
#  endif
  }
}

SIMD_INLINE simd_bytes simd_table_get(const simd_table *t, simd_bytes v) {
#  if SIMD_IS_NEON
  simd_bytes out = vqtbl4q_u8(t->row[0], v);
  for (int r = 1; r < SIMD_TABLE_ROWS; r++)
    out = vqtbx4q_u8(out, t->row[r], veorq_u8(v, vdupq_n_u8((uint8_t)(64 * r))));
  return out;
#  else
  const simd_bytes raise = simd_bytes_set1(0x70);
  simd_bytes out = simd_bytes_zero();
  for (int r = 0; r < SIMD_TABLE_ROWS; r++) {
#    if SIMD_ISA == SIMD_ISA_avx512
    const __m512i at = _mm512_adds_epu8(_mm512_xor_si512(v, simd_bytes_set1((uint8_t)(16 * r))), raise);
    out = _mm512_or_si512(out, _mm512_shuffle_epi8(t->row[r], at));
#    else
    const __m256i at = _mm256_adds_epu8(_mm256_xor_si256(v, simd_bytes_set1((uint8_t)(16 * r))), raise);
    out = _mm256_or_si256(out, _mm256_shuffle_epi8(t->row[r], at));
#    endif
  }
  return out;
#  endif
}
#endif

SIMD_INLINE uint8_t simd_bytes_reduce_min(simd_bytes v) {
  uint8_t b[SIMD_BYTES], least = 255;
  simd_bytes_store(b, v);
  for (int i = 0; i < SIMD_BYTES; i++) least = b[i] < least ? b[i] : least;
  return least;
}
SIMD_INLINE uint8_t simd_bytes_reduce_max(simd_bytes v) {
  uint8_t b[SIMD_BYTES], most = 0;
  simd_bytes_store(b, v);
  for (int i = 0; i < SIMD_BYTES; i++) most = b[i] > most ? b[i] : most;
  return most;
}

#endif
