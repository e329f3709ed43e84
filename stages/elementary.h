/*
 * The elementary functions of the data path: small polynomials of sums, products and hs_fmaf, so that every CPU and
 * GPU computes the same bits. It uses no C library and no intrinsic whose rounding differs between machines.
 *
 * The coefficients come from tests/support/fit_elementary.py; the documented errors were measured over the whole range
 * by tests/unit/test_elementary.c. There are no branches (selects only), so loops over these functions vectorise.
 */
#ifndef HARTSIFT_STAGES_ELEMENTARY_H
#define HARTSIFT_STAGES_ELEMENTARY_H

#include "stages/portable.h"

/* Returns 1/x for x in [2^-100, 2^100], with a relative error of at most 1.2e-6, in 5 operations. The first guess r (5
 * % off) is computed from the bits of x as an integer. Two steps r (c - x r) follow. The first c is fitted to the guess
 * and leaves an error of 1.3e-3. The second c is slightly above 2, which halves the remaining squared error. */
HS_INLINE float hs_reciprocal(float x) {
  float r = hs_bits_float(0x7ef33400u - hs_float_bits(x));
  r = r * hs_fmaf(-x, r, 2.00128f);
  return r * hs_fmaf(-x, r, 2.0000008f);
}

/* Length and direction of (gx, gy): magnitude with a relative error of at most 1.1e-5, and the angle from the x axis
 * towards y, in [-1/2, 1/2] turns, with an error of at most 2.3e-6 turns (1.4e-5 rad): a hundredth of the resolution
 * of a descriptor or an orientation. -1/2 and 1/2 are the same direction. The angle has the sign of gy, even if gy is
 * a signed zero. (0, 0) gives magnitude 0 and an angle of 0, 1/2 or -1/2. |gx|, |gy| below 2^60. About 26 operations.
 *
 * With t = min/max of the absolute values and z = t^2 the magnitude is max * sqrt(1 + z) and the angle within the
 * octant t * atan(t)/t, both by polynomials in z; the octants follow by reflection. One reciprocal serves both, and no
 * square root is needed. A maximum below 1e-30 is replaced by 1e-30 in the division, only to avoid 0/0.
 *
 * The result is in units of 1/unit turn; if `unit` is a power of two, every operation scales exactly. */
HS_INLINE void hs_polar(float gx, float gy, float unit, float *magnitude, float *angle) {
  const float ax = hs_fabsf(gx), ay = hs_fabsf(gy);
  const bool steep = ay > ax;
  const float largest = steep ? ay : ax, smallest = steep ? ax : ay;
  const float t = smallest * hs_reciprocal(largest > 1.0e-30f ? largest : 1.0e-30f);
  const float z = t * t;
  float p = hs_fmaf(-0.0107370261f, z, 0.0456283838f);
  p = hs_fmaf(p, z, -0.120195173f);
  p = hs_fmaf(p, z, 0.499497205f);
  p = hs_fmaf(p, z, 1.00000834f);
  *magnitude = largest * p;
  float q = hs_fmaf(0.0033176539f * unit, z, -0.0135531807f * unit);
  q = hs_fmaf(q, z, 0.0286733508f * unit);
  q = hs_fmaf(q, z, -0.0525696762f * unit);
  q = hs_fmaf(q, z, 0.159133673f * unit);
  float a = q * t;
  a = steep ? 0.25f * unit - a : a;
  a = gx < 0.0f ? 0.5f * unit - a : a;
  *angle = hs_bits_float(hs_float_bits(a) | (hs_float_bits(gy) & 0x80000000u));
}

/* Returns 2^x for x in [-126, 127]; x is clamped to this range. Relative error at most 2e-7; 11 operations. */
HS_INLINE float hs_exp2(float x) {
  x = x > -126.0f ? x : -126.0f;
  x = x < 127.0f ? x : 127.0f;
  const int32_t n = hs_round_half_even(x);
  const float f = x - (float)n;
  float p = hs_fmaf(0.00134022732f, f, 0.00967948139f);
  p = hs_fmaf(p, f, 0.0555027686f);
  p = hs_fmaf(p, f, 0.240219846f);
  p = hs_fmaf(p, f, 0.693147242f);
  p = hs_fmaf(p, f, 1.00000012f);
  return p * hs_power_of_two(n);
}

/* Returns log2(x) for normal x > 0; absolute error at most 5e-8 plus one rounding of the result. */
HS_INLINE float hs_log2(float x) {
  const uint32_t bits = hs_float_bits(x);
  /* the exponent that leaves a mantissa in [sqrt(1/2), sqrt(2)) */
  const int32_t n = (int32_t)(bits - 0x3f3504f3u) >> 23;
  const float f = hs_bits_float(bits - ((uint32_t)n << 23)) - 1.0f;
  float p = hs_fmaf(0.125575364f, f, -0.20994769f);
  p = hs_fmaf(p, f, 0.217124432f);
  p = hs_fmaf(p, f, -0.238570228f);
  p = hs_fmaf(p, f, 0.287698507f);
  p = hs_fmaf(p, f, -0.360719115f);
  p = hs_fmaf(p, f, 0.480920315f);
  p = hs_fmaf(p, f, -0.721347153f);
  p = hs_fmaf(p, f, 1.4426949f);
  return hs_fmaf(p, f, (float)n);
}

/* Computes sine and cosine of 2 pi turn for turn in [0, 1]; absolute error at most 9e-8; exact at multiples of 1/4. */
HS_INLINE void hs_sincos_turn(float turn, float *sine, float *cosine) {
  const int32_t quarter = hs_round_half_even(4.0f * turn);
  const float r = hs_fmaf(-0.25f, (float)quarter, turn); /* exact, |r| <= 1/8 */
  const float z = r * r;
  float s = hs_fmaf(-76.7749557f, z, 81.6256256f);
  s = hs_fmaf(s, z, -41.3418655f);
  s = hs_fmaf(s, z, 6.28318548f);
  s = s * r;
  float c = hs_fmaf(58.5601921f, z, -85.423111f);
  c = hs_fmaf(c, z, 64.9391403f);
  c = hs_fmaf(c, z, -19.7392082f);
  c = hs_fmaf(c, z, 1.0f);
  const bool swapped = (quarter & 1) != 0;
  const float sin_abs = swapped ? c : s, cos_abs = swapped ? s : c;
  *sine = (quarter & 2) != 0 ? -sin_abs : sin_abs;
  *cosine = ((quarter + 1) & 2) != 0 ? -cos_abs : cos_abs;
}

/* Wraps a turn in (-1, 2) to [0, 1). The wrapped value may round to 1; it then becomes 0. */
HS_INLINE float hs_wrap_turn(float turn) {
  turn = turn < 0.0f ? turn + 1.0f : turn;
  turn = turn >= 1.0f ? turn - 1.0f : turn;
  return turn;
}

#endif
