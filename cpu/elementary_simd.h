/*
 * The elementary functions of stages/elementary.h, a vector at a time: the same operations in the same order, so that
 * every lane has the reference's bits. Included by *_simd.c only.
 */
#ifndef HS_CPU_ELEMENTARY_SIMD_H
#define HS_CPU_ELEMENTARY_SIMD_H

#include "cpu/simd.h"

/* 0, 1, 2, ... */
SIMD_INLINE simd_f32 simd_lane_numbers(void) {
  static const float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return simd_load(numbers);
}

/* One step of Horner's rule: sum * z + c. */
SIMD_INLINE simd_f32 simd_horner(simd_f32 sum, simd_f32 z, float c) { return simd_fma(sum, z, simd_set1(c)); }

/* hs_reciprocal */
SIMD_INLINE simd_f32 simd_reciprocal(simd_f32 x) {
  const simd_f32 one = simd_set1(1.0f), minus = simd_neg(x);
  simd_f32 r = simd_cast_f32(simd_i32_sub(simd_i32_set1(0x7ef311c7), simd_cast_i32(x)));
  simd_f32 e = simd_fma(minus, r, one);
  r = simd_fma(r, simd_fma(e, e, e), r);
  e = simd_fma(minus, r, one);
  return simd_fma(r, simd_fma(e, e, e), r);
}

/* hs_polar */
SIMD_INLINE void simd_polar(simd_f32 gx, simd_f32 gy, simd_f32 *magnitude, simd_f32 *turn) {
  const simd_f32 zero = simd_zero(), one = simd_set1(1.0f);
  const simd_f32 ax = simd_abs(gx), ay = simd_abs(gy);
  const simd_f32 largest = simd_max(ax, ay), smallest = simd_min(ax, ay);
  const simd_f32 t = simd_mul(smallest, simd_reciprocal(simd_max(largest, simd_set1(1.0e-30f))));
  const simd_f32 z = simd_mul(t, t);
  simd_f32 p = simd_horner(simd_set1(-0.00267836335f), z, 0.013004262f);
  p = simd_horner(p, z, -0.0318147242f);
  p = simd_horner(p, z, 0.0604230724f);
  p = simd_horner(p, z, -0.124705367f);
  p = simd_horner(p, z, 0.499984354f);
  p = simd_horner(p, z, 1.00000012f);
  *magnitude = simd_mul(largest, p);
  simd_f32 q = simd_horner(simd_set1(0.00123429019f), z, -0.00583966542f);
  q = simd_horner(q, z, 0.0132917035f);
  q = simd_horner(q, z, -0.021436587f);
  q = simd_horner(q, z, 0.0316357501f);
  q = simd_horner(q, z, -0.0530402511f);
  q = simd_horner(q, z, 0.159154832f);
  simd_f32 a = simd_mul(q, t);
  a = simd_select(simd_gt(ay, ax), simd_sub(simd_set1(0.25f), a), a);
  a = simd_select(simd_lt(gx, zero), simd_sub(simd_set1(0.5f), a), a);
  a = simd_select(simd_lt(gy, zero), simd_sub(one, a), a);
  *turn = simd_select(simd_ge(a, one), zero, a);
}

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

/* window_weight of stages/orient.h */
SIMD_INLINE simd_f32 simd_window_weight(simd_f32 distance, simd_f32 falloff) {
  return simd_exp2(simd_neg(simd_mul(simd_mul(distance, distance), falloff)));
}

#endif
