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
/* MinGW's fmaf and fma round twice. Returns a * b + c, rounded once: the product is exact as a double. The sum is
 * rounded to the neighbour whose last bit is 1, so that rounding it to float sees on which side of a tie it is. */
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

__extension__ typedef unsigned __int128 hs_uint128;

/* A number as +-significand * 2^exponent, bit 125 of the significand being the highest that is set. */
typedef struct hs_wide_number {
  hs_uint128 significand;
  int32_t exponent;
  bool is_negative;
} hs_wide_number;

/* Shifts a significand, not 0, so that its highest bit is bit 125. */
HS_INLINE hs_wide_number hs_wide_normal(hs_uint128 significand, int32_t exponent, bool is_negative) {
  const uint64_t high = (uint64_t)(significand >> 64);
  const int32_t zeros = high != 0 ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)significand);
  const int32_t shift = zeros - 2;
  return (hs_wide_number){shift >= 0 ? significand << shift : significand >> -shift, exponent - shift, is_negative};
}

/* Shifts to a larger exponent. Lost bits set the lowest one, which stands for them when the number is rounded. */
HS_INLINE hs_uint128 hs_wide_shifted(hs_wide_number n, int32_t exponent) {
  const int32_t shift = exponent - n.exponent;
  if (shift > 126) return 1;
  const hs_uint128 kept = n.significand >> shift;
  return kept << shift != n.significand ? kept | 1u : kept;
}

/* Returns +-significand * 2^exponent, rounded to the nearest double, halves to even. */
HS_INLINE double hs_wide_rounded(hs_uint128 significand, int32_t exponent, bool is_negative) {
  const hs_wide_number n = hs_wide_normal(significand, exponent, is_negative);
  const int32_t lowest = n.exponent + 125 < -1022 ? -1074 - n.exponent : 73; /* bits below the result's last one */
  if (lowest > 126) return is_negative ? -0.0 : 0.0;
  const hs_uint128 rest = n.significand & (((hs_uint128)1 << lowest) - 1u), half = (hs_uint128)1 << (lowest - 1);
  uint64_t rounded = (uint64_t)(n.significand >> lowest);
  rounded += rest > half || (rest == half && (rounded & 1u) != 0);
  const double value = ldexp((double)rounded, lowest + n.exponent);
  return is_negative ? -value : value;
}

HS_INLINE hs_wide_number hs_wide_of(double v) {
  int exponent = 0;
  const double fraction = frexp(fabs(v), &exponent);
  return hs_wide_normal((hs_uint128)(uint64_t)ldexp(fraction, 53), exponent - 53, signbit(v) != 0);
}

/* Returns a * b + c, rounded once, by integers. */
HS_INLINE double hs_fma_by_integers(double a, double b, double c) {
  if (!(fabs(a) > 0.0 && fabs(b) > 0.0) || !(fabs(a) < HUGE_VAL && fabs(b) < HUGE_VAL)) return a * b + c;
  if (!(fabs(c) < HUGE_VAL)) return c;
  if (!(fabs(c) > 0.0)) return a * b;
  const hs_wide_number x = hs_wide_of(a), y = hs_wide_of(b), z = hs_wide_of(c);
  const hs_wide_number product = hs_wide_normal((x.significand >> 73) * (y.significand >> 73),
                                                x.exponent + y.exponent + 146, x.is_negative != y.is_negative);
  const int32_t exponent = product.exponent > z.exponent ? product.exponent : z.exponent;
  const hs_uint128 first = hs_wide_shifted(product, exponent), second = hs_wide_shifted(z, exponent);
  if (product.is_negative == z.is_negative) return hs_wide_rounded(first + second, exponent, z.is_negative);
  if (first == second) return 0.0;
  return first > second ? hs_wide_rounded(first - second, exponent, product.is_negative)
                        : hs_wide_rounded(second - first, exponent, z.is_negative);
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
