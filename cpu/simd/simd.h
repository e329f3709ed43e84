/*
 * One thin layer over the vector instructions of each instruction set: a type, and the operations the stages need.
 *
 * A *_simd.c is compiled once for each instruction set, with HARTSIFT_ISA naming it. Every operation rounds as the
 * scalar one of the same name does (simd_fma as hs_fmaf), so a lane computes what the reference computes.
 *
 *   simd_f32   SIMD_WIDTH floats          simd_load, simd_store (any alignment), simd_load_first, simd_store_first
 *   simd_i32   SIMD_WIDTH int32           simd_i32_...
 *   simd_mask  one truth value a lane     from comparisons; simd_bits gives bit i for lane i
 */
#ifndef HARTSIFT_CPU_SIMD_SIMD_H
#define HARTSIFT_CPU_SIMD_SIMD_H

#include <stdint.h>
#include <string.h>

#define SIMD_PASTE_(a, b) a##b
#define SIMD_PASTE(a, b)  SIMD_PASTE_(a, b)
/* blur -> blur_avx2: the names of one instruction set's variants */
#define SIMD_NAME(stage) SIMD_PASTE(stage##_, HARTSIFT_ISA)

#define SIMD_ISA_sse2   1
#define SIMD_ISA_avx2   2
#define SIMD_ISA_avx512 3
#define SIMD_ISA_neon   4
/* avx512 with dot products of bytes; for stages that multiply integers */
#define SIMD_ISA_avx512vnni 5
#define SIMD_ISA            SIMD_PASTE(SIMD_ISA_, HARTSIFT_ISA)

#define SIMD_INLINE static inline
/* Compiled once for each set of constants that it is called with. */
#define SIMD_FOR_CONSTANTS static inline __attribute__((always_inline))

#if SIMD_ISA == SIMD_ISA_avx512 || SIMD_ISA == SIMD_ISA_avx512vnni
#  include "cpu/simd/simd_avx512.h"
#elif SIMD_ISA == SIMD_ISA_avx2
#  include "cpu/simd/simd_avx2.h"
#elif SIMD_ISA == SIMD_ISA_sse2
#  include "cpu/simd/simd_sse2.h"
#elif SIMD_ISA == SIMD_ISA_neon
#  include "cpu/simd/simd_neon.h"
#else
#  error "HARTSIFT_ISA must be sse2, avx2, avx512, avx512vnni or neon"
#endif

/* ------------------------------------------------- the same for every instruction set */

SIMD_INLINE simd_f32 simd_zero(void) { return simd_set1(0.0f); }

SIMD_INLINE simd_mask simd_ge(simd_f32 a, simd_f32 b) { return simd_le(b, a); }
SIMD_INLINE simd_mask simd_gt(simd_f32 a, simd_f32 b) { return simd_lt(b, a); }

/* Whether any lane is set, whether all are. */
SIMD_INLINE int simd_any(simd_mask m) { return simd_bits(m) != 0; }
SIMD_INLINE int simd_all(simd_mask m) { return simd_bits(m) == (1u << SIMD_WIDTH) - 1u; }

#endif
