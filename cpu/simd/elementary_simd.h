/*
 * The elementary functions of stages/elementary.h, a vector at a time: the same operations in the same order, so that
 * every lane has the reference's bits. Included by *_simd.c only.
 */
#ifndef HARTSIFT_CPU_SIMD_ELEMENTARY_SIMD_H
#define HARTSIFT_CPU_SIMD_ELEMENTARY_SIMD_H

#include "cpu/simd/simd.h"

/* Returns the vector 0, 1, 2, ... */
SIMD_INLINE simd_f32 simd_lane_numbers(void) {
  static const float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return simd_load(numbers);
}

/* One step of Horner's rule: sum * z + c. */
SIMD_INLINE simd_f32 simd_horner(simd_f32 sum, simd_f32 z, float c) { return simd_fma(sum, z, simd_set1(c)); }

/* hs_reciprocal */
SIMD_INLINE simd_f32 simd_reciprocal(simd_f32 x) {
  const simd_f32 minus = simd_neg(x);
  simd_f32 r = simd_cast_f32(simd_i32_sub(simd_i32_set1(0x7ef33400), simd_cast_i32(x)));
  r = simd_mul(r, simd_fma(minus, r, simd_set1(2.00128f)));
  return simd_mul(r, simd_fma(minus, r, simd_set1(2.0000008f)));
}

/* hs_polar */
SIMD_INLINE void simd_polar(simd_f32 gx, simd_f32 gy, float unit, simd_f32 *magnitude, simd_f32 *angle) {
  const simd_f32 ax = simd_abs(gx), ay = simd_abs(gy);
  const simd_f32 largest = simd_max(ax, ay), smallest = simd_min(ax, ay);
  const simd_f32 t = simd_mul(smallest, simd_reciprocal(simd_max(largest, simd_set1(1.0e-30f))));
  const simd_f32 z = simd_mul(t, t);
  simd_f32 p = simd_horner(simd_set1(-0.0107370261f), z, 0.0456283838f);
  p = simd_horner(p, z, -0.120195173f);
  p = simd_horner(p, z, 0.499497205f);
  p = simd_horner(p, z, 1.00000834f);
  *magnitude = simd_mul(largest, p);
  simd_f32 q = simd_horner(simd_set1(0.0033176539f * unit), z, -0.0135531807f * unit);
  q = simd_horner(q, z, 0.0286733508f * unit);
  q = simd_horner(q, z, -0.0525696762f * unit);
  q = simd_horner(q, z, 0.159133673f * unit);
  simd_f32 a = simd_mul(q, t);
  a = simd_select(simd_gt(ay, ax), simd_sub(simd_set1(0.25f * unit), a), a);
  a = simd_select(simd_lt(gx, simd_zero()), simd_sub(simd_set1(0.5f * unit), a), a);
  const simd_i32 sign = simd_i32_and(simd_cast_i32(gy), simd_i32_set1(INT32_MIN));
  *angle = simd_cast_f32(simd_i32_or(simd_cast_i32(a), sign));
}

/* hs_rounded_product, and hs_round_half_even of one number, as vectors; the result still contains ROUNDED_BIAS */
#define ROUNDING_SHIFT 12582912.0f
#define ROUNDED_BIAS   0x4b400000
SIMD_INLINE simd_i32 simd_biased_product(simd_f32 a, simd_f32 b) {
  return simd_cast_i32(simd_fma(a, b, simd_set1(ROUNDING_SHIFT)));
}
SIMD_INLINE simd_i32 simd_biased_round(simd_f32 a) { return simd_cast_i32(simd_add(a, simd_set1(ROUNDING_SHIFT))); }

/* hs_exp2 */
SIMD_INLINE simd_f32 simd_exp2(simd_f32 x) {
  x = simd_min(simd_max(x, simd_set1(-126.0f)), simd_set1(127.0f));
  const simd_i32 n = simd_round_i32(x);
  const simd_f32 f = simd_sub(x, simd_from_i32(n));
  simd_f32 p = simd_horner(simd_set1(0.00134022732f), f, 0.00967948139f);
  p = simd_horner(p, f, 0.0555027686f);
  p = simd_horner(p, f, 0.240219846f);
  p = simd_horner(p, f, 0.693147242f);
  p = simd_horner(p, f, 1.00000012f);
  const simd_i32 power = simd_i32_shift_left(simd_i32_add(n, simd_i32_set1(127)), 23);
  return simd_mul(p, simd_cast_f32(power));
}

/* window_weight of stages/orient.h for every lane */
SIMD_INLINE simd_f32 simd_window_weight(simd_f32 distance, simd_f32 falloff) {
  return simd_exp2(simd_neg(simd_mul(simd_mul(distance, distance), falloff)));
}

#endif
