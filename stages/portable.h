/*
 * One source for C and CUDA: inline functions, exact operations, bits of floats.
 *
 * Arithmetic in the headers of stages is float32 in a fixed order. Products and sums are never fused by the compiler
 * (-ffp-contract=off, -fmad=false); fused operations are written as hs_fmaf.
 */
#ifndef HARTSIFT_STAGES_PORTABLE_H
#define HARTSIFT_STAGES_PORTABLE_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#  define HS_INLINE static __host__ __device__ __forceinline__
#else
#  define HS_INLINE static inline
_Static_assert(FLT_EVAL_METHOD == 0, "float expressions must be evaluated as float");
#endif

#ifdef __MINGW32__
/* Returns a * b + c, rounded once: MinGW's fmaf rounds twice. The product is exact as a double. The sum is rounded to
 * the neighbour whose last bit is 1, so that rounding it to float sees on which side of a tie it is. */
HS_INLINE float hs_fmaf_by_doubles(float a, float b, float c) {
  const double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
  const double rest = sum - product, error = (product - (sum - rest)) + (addend - rest);
  uint64_t bits;
  if (!(error < 0.0 || error > 0.0)) return (float)sum; /* exact, infinite or NaN */
  memcpy(&bits, &sum, sizeof bits);
  if ((bits & 1u) == 0) bits = (error > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1;
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  return (float)odd;
}
#endif

/* Returns a * b + c, rounded once. On x86 without FMA instructions this calls the C library, which is exact but slow:
 * such a build is for correctness. (A double product and sum rounded to float would round twice.) */
HS_INLINE float hs_fmaf(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fmaf_rn(a, b, c);
#elif defined(__MINGW32__) && !defined(__FMA__)
  return hs_fmaf_by_doubles(a, b, c);
#else
  return fmaf(a, b, c);
#endif
}

/* Returns the correctly rounded square root. */
HS_INLINE float hs_sqrtf(float v) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(v);
#else
  return sqrtf(v);
#endif
}

HS_INLINE uint32_t hs_float_bits(float v) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(v);
#else
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
#endif
}

HS_INLINE float hs_bits_float(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
#endif
}

HS_INLINE float hs_fabsf(float v) {
#ifdef __CUDA_ARCH__
  return fabsf(v); /* costs nothing: a modifier of the instruction that reads the value */
#else
  return hs_bits_float(hs_float_bits(v) & 0x7fffffffu);
#endif
}

/* Whether a value is neither infinite nor NaN. */
HS_INLINE bool hs_is_finite(float v) { return (hs_float_bits(v) & 0x7f800000u) != 0x7f800000u; }

/* Returns 2^n, n in -126..127. */
HS_INLINE float hs_power_of_two(int32_t n) { return hs_bits_float((uint32_t)(n + 127) << 23); }

/* Returns the nearest integer, halves to even, for |v| < 2^22: what lrintf gives in round-to-nearest. The last bit of
 * the sum has the value 1, so the addition rounds to an integer, which is in the low bits. */
HS_INLINE int32_t hs_round_half_even(float v) { return (int32_t)(hs_float_bits(v + 12582912.0f) - 0x4b400000u); }

/* Returns a * b, rounded once to the nearest integer, halves to even, for |a * b| < 2^22. */
HS_INLINE int32_t hs_rounded_product(float a, float b) {
  return (int32_t)(hs_float_bits(hs_fmaf(a, b, 12582912.0f)) - 0x4b400000u);
}

/* Returns the largest integer not above v, for |v| < 2^31. */
HS_INLINE int32_t hs_floor_int(float v) {
  const int32_t i = (int32_t)v;
  return i - ((float)i > v);
}

#endif
