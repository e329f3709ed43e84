/*
 * A thin layer over the vector instructions of each instruction set: types, and the operations that the stages need.
 *
 * A *_simd.c is compiled once for each instruction set, which HARTSIFT_ISA names. Every operation rounds like the
 * scalar one of the same name (simd_fma like hs_fmaf), so a lane has the reference's result.
 *
 *   simd_f32   SIMD_WIDTH floats          simd_load, simd_store (any alignment), simd_load_first, simd_store_first
 *   simd_i32   SIMD_WIDTH int32           simd_i32_...
 *   simd_mask  one truth value per lane   from comparisons; simd_bits gives bit i for lane i
 */
#ifndef HARTSIFT_CPU_SIMD_SIMD_H
#define HARTSIFT_CPU_SIMD_SIMD_H

#include <stdint.h>
#include <string.h>

#define SIMD_PASTE_(a, b) a##b
#define SIMD_PASTE(a, b)  SIMD_PASTE_(a, b)
/* blur -> blur_avx2: the name of a stage's variant for this instruction set */
#define SIMD_NAME(stage) SIMD_PASTE(stage##_, HARTSIFT_ISA)

#define SIMD_ISA_sse2   1
#define SIMD_ISA_avx2   2
#define SIMD_ISA_avx512 3
#define SIMD_ISA_neon   4
/* avx512 and neon plus dot products of bytes, used by integer matching */
#define SIMD_ISA_avx512vnni 5
#define SIMD_ISA_neondot    6
#define SIMD_ISA            SIMD_PASTE(SIMD_ISA_, HARTSIFT_ISA)
#define SIMD_IS_NEON        (SIMD_ISA == SIMD_ISA_neon || SIMD_ISA == SIMD_ISA_neondot)

#define SIMD_INLINE static inline
/* A function with this mark is inlined, and so compiled for each set of constants in its calls. */
#define SIMD_FOR_CONSTANTS static inline __attribute__((always_inline))

#if SIMD_ISA == SIMD_ISA_avx512 || SIMD_ISA == SIMD_ISA_avx512vnni
#  include "cpu/simd/simd_avx512.h"
#elif SIMD_ISA == SIMD_ISA_avx2
#  include "cpu/simd/simd_avx2.h"
#elif SIMD_ISA == SIMD_ISA_sse2
#  include "cpu/simd/simd_sse2.h"
#elif SIMD_IS_NEON
#  include "cpu/simd/simd_neon.h"
#else
#  error "HARTSIFT_ISA must be sse2, avx2, avx512, avx512vnni, neon or neondot"
#endif

/* ------------------------------------------------- common to every instruction set */

SIMD_INLINE simd_f32 simd_zero(void) { return simd_set1(0.0f); }

SIMD_INLINE simd_mask simd_ge(simd_f32 a, simd_f32 b) { return simd_le(b, a); }
SIMD_INLINE simd_mask simd_gt(simd_f32 a, simd_f32 b) { return simd_lt(b, a); }

/* Return whether any lane is set, and whether all are. */
SIMD_INLINE int simd_any(simd_mask m) { return simd_bits(m) != 0; }
SIMD_INLINE int simd_all(simd_mask m) { return simd_bits(m) == (1u << SIMD_WIDTH) - 1u; }

/* Four floats or int32 on every instruction set, for work that is too narrow for wider vectors. Included by
 * *_simd.c only. */

enum { QUAD_WIDTH = 4 };

#if SIMD_ISA == SIMD_ISA_sse2 || SIMD_IS_NEON
typedef simd_f32 simd_quad;
SIMD_INLINE simd_quad quad_load(const float *p) { return simd_load(p); }
SIMD_INLINE void quad_store(float *p, simd_quad v) { simd_store(p, v); }
SIMD_INLINE simd_quad quad_set1(float v) { return simd_set1(v); }
SIMD_INLINE simd_quad quad_add(simd_quad a, simd_quad b) { return simd_add(a, b); }
SIMD_INLINE simd_quad quad_mul(simd_quad a, simd_quad b) { return simd_mul(a, b); }
SIMD_INLINE simd_quad quad_fma(simd_quad a, simd_quad b, simd_quad c) { return simd_fma(a, b, c); }
#else
typedef __m128 simd_quad;
SIMD_INLINE simd_quad quad_load(const float *p) { return _mm_loadu_ps(p); }
SIMD_INLINE void quad_store(float *p, simd_quad v) { _mm_storeu_ps(p, v); }
SIMD_INLINE simd_quad quad_set1(float v) { return _mm_set1_ps(v); }
SIMD_INLINE simd_quad quad_add(simd_quad a, simd_quad b) { return _mm_add_ps(a, b); }
SIMD_INLINE simd_quad quad_mul(simd_quad a, simd_quad b) { return _mm_mul_ps(a, b); }
/* a * b + c, rounded once */
SIMD_INLINE simd_quad quad_fma(simd_quad a, simd_quad b, simd_quad c) { return _mm_fmadd_ps(a, b, c); }
#endif

/* Four int32. even: lanes 0 and 2 of a, then of b. odd: lanes 1 and 3 of a, then of b. follow: the last lane of a, then
 * the first three of b. */
#if SIMD_IS_NEON
typedef int32x4_t simd_quad_i32;
SIMD_INLINE simd_quad_i32 quad_i32_load(const int32_t *p) { return vld1q_s32(p); }
SIMD_INLINE void quad_i32_store(int32_t *p, simd_quad_i32 v) { vst1q_s32(p, v); }
SIMD_INLINE simd_quad_i32 quad_i32_add(simd_quad_i32 a, simd_quad_i32 b) { return vaddq_s32(a, b); }
SIMD_INLINE simd_quad_i32 quad_i32_sub(simd_quad_i32 a, simd_quad_i32 b) { return vsubq_s32(a, b); }
SIMD_INLINE simd_quad_i32 quad_i32_and(simd_quad_i32 a, simd_quad_i32 b) { return vandq_s32(a, b); }
SIMD_INLINE simd_quad_i32 quad_i32_not_negative(simd_quad_i32 a) { return vmaxq_s32(a, vdupq_n_s32(0)); }
SIMD_INLINE simd_quad_i32 quad_i32_even(simd_quad_i32 a, simd_quad_i32 b) { return vuzp1q_s32(a, b); }
SIMD_INLINE simd_quad_i32 quad_i32_odd(simd_quad_i32 a, simd_quad_i32 b) { return vuzp2q_s32(a, b); }
SIMD_INLINE simd_quad_i32 quad_i32_follow(simd_quad_i32 a, simd_quad_i32 b) { return vextq_s32(a, b, 3); }
#else
typedef __m128i simd_quad_i32;
#  define QUAD_I32_SHUFFLE(a, b, LANES)                                                                                \
    _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), LANES))
SIMD_INLINE simd_quad_i32 quad_i32_load(const int32_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
SIMD_INLINE void quad_i32_store(int32_t *p, simd_quad_i32 v) { _mm_storeu_si128((__m128i *)(void *)p, v); }
SIMD_INLINE simd_quad_i32 quad_i32_add(simd_quad_i32 a, simd_quad_i32 b) { return _mm_add_epi32(a, b); }
SIMD_INLINE simd_quad_i32 quad_i32_sub(simd_quad_i32 a, simd_quad_i32 b) { return _mm_sub_epi32(a, b); }
SIMD_INLINE simd_quad_i32 quad_i32_and(simd_quad_i32 a, simd_quad_i32 b) { return _mm_and_si128(a, b); }
SIMD_INLINE simd_quad_i32 quad_i32_not_negative(simd_quad_i32 a) { return _mm_andnot_si128(_mm_srai_epi32(a, 31), a); }
SIMD_INLINE simd_quad_i32 quad_i32_even(simd_quad_i32 a, simd_quad_i32 b) {
  return QUAD_I32_SHUFFLE(a, b, _MM_SHUFFLE(2, 0, 2, 0));
}
SIMD_INLINE simd_quad_i32 quad_i32_odd(simd_quad_i32 a, simd_quad_i32 b) {
  return QUAD_I32_SHUFFLE(a, b, _MM_SHUFFLE(3, 1, 3, 1));
}
SIMD_INLINE simd_quad_i32 quad_i32_follow(simd_quad_i32 a, simd_quad_i32 b) {
  return QUAD_I32_SHUFFLE(QUAD_I32_SHUFFLE(a, b, _MM_SHUFFLE(0, 0, 3, 3)), b, _MM_SHUFFLE(2, 1, 2, 0));
}
#endif

#endif
