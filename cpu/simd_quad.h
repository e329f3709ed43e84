/*
 * Four floats, whatever the vectors of the instruction set: for work that is too narrow for more. Included by *_simd.c
 * only.
 */
#ifndef HARTSIFT_CPU_SIMD_QUAD_H
#define HARTSIFT_CPU_SIMD_QUAD_H

#include "cpu/simd.h"

enum { QUAD_WIDTH = 4 };

#if SIMD_ISA == SIMD_ISA_sse2 || SIMD_ISA == SIMD_ISA_neon
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

#endif
