/* The vector layer on AArch64 NEON. Included by simd.h only. */
#ifndef HARTSIFT_CPU_SIMD_SIMD_NEON_H
#define HARTSIFT_CPU_SIMD_SIMD_NEON_H

#include <arm_neon.h>

#define SIMD_WIDTH     4
#define SIMD_REGISTERS 32
#define SIMD_HAS_JOIN  0

typedef float32x4_t simd_f32;
typedef int32x4_t simd_i32;
typedef uint32x4_t simd_mask; /* all bits of a lane are 1, or all are 0 */

SIMD_INLINE simd_f32 simd_load(const float *p) { return vld1q_f32(p); }
SIMD_INLINE void simd_store(float *p, simd_f32 v) { vst1q_f32(p, v); }
/* As simd_store: this instruction set has no store of one vector past the caches. */
SIMD_INLINE void simd_stream(float *p, simd_f32 v) { vst1q_f32(p, v); }
SIMD_INLINE void simd_stream_end(void) {}
SIMD_INLINE simd_f32 simd_set1(float v) { return vdupq_n_f32(v); }
/* Loads the first n lanes (0..SIMD_WIDTH); the others are 0. Memory beyond them is not touched. */
SIMD_INLINE simd_f32 simd_load_first(const float *p, int n) {
  float lanes[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  memcpy(lanes, p, sizeof(float) * (size_t)n);
  return vld1q_f32(lanes);
}
SIMD_INLINE void simd_store_first(float *p, simd_f32 v, int n) {
  float lanes[4];
  vst1q_f32(lanes, v);
  memcpy(p, lanes, sizeof(float) * (size_t)n);
}

/* Return the neighbours of all lanes; low comes before high in memory. simd_before: the samples one position before
 * those of high. The other function: the samples one position after those of low. */
SIMD_INLINE simd_f32 simd_before(simd_f32 low, simd_f32 high) { return vextq_f32(low, high, 3); }
SIMD_INLINE simd_f32 simd_after(simd_f32 low, simd_f32 high) { return vextq_f32(low, high, 1); }

SIMD_INLINE simd_f32 simd_add(simd_f32 a, simd_f32 b) { return vaddq_f32(a, b); }
SIMD_INLINE simd_f32 simd_sub(simd_f32 a, simd_f32 b) { return vsubq_f32(a, b); }
SIMD_INLINE simd_f32 simd_mul(simd_f32 a, simd_f32 b) { return vmulq_f32(a, b); }
SIMD_INLINE simd_f32 simd_div(simd_f32 a, simd_f32 b) { return vdivq_f32(a, b); }
SIMD_INLINE simd_f32 simd_sqrt(simd_f32 a) { return vsqrtq_f32(a); }
/* a * b + c, rounded once */
SIMD_INLINE simd_f32 simd_fma(simd_f32 a, simd_f32 b, simd_f32 c) { return vfmaq_f32(c, a, b); }
/* a < b ? a : b, and a > b ? a : b */
SIMD_INLINE simd_f32 simd_min(simd_f32 a, simd_f32 b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
SIMD_INLINE simd_f32 simd_max(simd_f32 a, simd_f32 b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
SIMD_INLINE simd_f32 simd_abs(simd_f32 a) { return vabsq_f32(a); }
SIMD_INLINE simd_f32 simd_neg(simd_f32 a) { return vnegq_f32(a); }
SIMD_INLINE simd_f32 simd_floor(simd_f32 a) { return vrndmq_f32(a); }

SIMD_INLINE simd_mask simd_lt(simd_f32 a, simd_f32 b) { return vcltq_f32(a, b); }
SIMD_INLINE simd_mask simd_le(simd_f32 a, simd_f32 b) { return vcleq_f32(a, b); }
SIMD_INLINE simd_mask simd_eq(simd_f32 a, simd_f32 b) { return vceqq_f32(a, b); }
SIMD_INLINE uint32_t simd_bits(simd_mask m) {
  const uint32_t weights[4] = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(m, vld1q_u32(weights)));
}
SIMD_INLINE simd_mask simd_mask_and(simd_mask a, simd_mask b) { return vandq_u32(a, b); }
SIMD_INLINE simd_mask simd_mask_or(simd_mask a, simd_mask b) { return vorrq_u32(a, b); }
/* a and not b, bit by bit */
SIMD_INLINE simd_mask simd_mask_andnot(simd_mask a, simd_mask b) { return vbicq_u32(a, b); }
SIMD_INLINE simd_f32 simd_select(simd_mask m, simd_f32 yes, simd_f32 no) { return vbslq_f32(m, yes, no); }

SIMD_INLINE simd_i32 simd_i32_load(const int32_t *p) { return vld1q_s32(p); }
SIMD_INLINE void simd_i32_store(int32_t *p, simd_i32 v) { vst1q_s32(p, v); }
SIMD_INLINE simd_i32 simd_i32_set1(int32_t v) { return vdupq_n_s32(v); }
SIMD_INLINE simd_i32 simd_i32_add(simd_i32 a, simd_i32 b) { return vaddq_s32(a, b); }
SIMD_INLINE simd_i32 simd_i32_sub(simd_i32 a, simd_i32 b) { return vsubq_s32(a, b); }
SIMD_INLINE simd_i32 simd_i32_and(simd_i32 a, simd_i32 b) { return vandq_s32(a, b); }
SIMD_INLINE simd_i32 simd_i32_or(simd_i32 a, simd_i32 b) { return vorrq_s32(a, b); }
SIMD_INLINE simd_i32 simd_i32_xor(simd_i32 a, simd_i32 b) { return veorq_s32(a, b); }
/* n must be a constant, 1..31 */
#define simd_i32_shift_left(a, n) vshlq_n_s32((a), (n))
/* zeros are shifted in */
#define simd_i32_shift_right(a, n)      vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), (n)))
#define simd_i32_shift_right_sign(a, n) vshrq_n_s32((a), (n))
SIMD_INLINE simd_mask simd_i32_gt(simd_i32 a, simd_i32 b) { return vcgtq_s32(a, b); }
SIMD_INLINE simd_mask simd_i32_eq(simd_i32 a, simd_i32 b) { return vceqq_s32(a, b); }
SIMD_INLINE simd_i32 simd_i32_select(simd_mask m, simd_i32 yes, simd_i32 no) { return vbslq_s32(m, yes, no); }

SIMD_INLINE simd_i32 simd_i32_min(simd_i32 a, simd_i32 b) { return vminq_s32(a, b); }
SIMD_INLINE simd_i32 simd_i32_max(simd_i32 a, simd_i32 b) { return vmaxq_s32(a, b); }
/* returns sum plus the two products of each lane's 16-bit integers */
SIMD_INLINE simd_i32 simd_dot_i16(simd_i32 sum, simd_i32 a, simd_i32 b) {
  const int16x8_t p = vreinterpretq_s16_s32(a), q = vreinterpretq_s16_s32(b);
  return vaddq_s32(sum, vpaddq_s32(vmull_s16(vget_low_s16(p), vget_low_s16(q)), vmull_high_s16(p, q)));
}
#if SIMD_ISA == SIMD_ISA_neondot
/* Return sum plus the four products of each lane's bytes: unsigned ones, signed ones. */
SIMD_INLINE simd_i32 simd_dot_unsigned(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return vreinterpretq_s32_u32(vdotq_u32(vreinterpretq_u32_s32(sum), vreinterpretq_u8_s32(a), vreinterpretq_u8_s32(b)));
}
SIMD_INLINE simd_i32 simd_dot_signed(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}
#endif
/* 16-bit lanes, whose sums wrap. Adds the product of each lane. Products of bytes need as many instructions. */
#define SIMD_I16_VALUES 1
SIMD_INLINE simd_i32 simd_i16_dot(simd_i32 sum, simd_i32 a, simd_i32 b) {
  return vreinterpretq_s32_s16(
      vmlaq_s16(vreinterpretq_s16_s32(sum), vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
}
SIMD_INLINE simd_i32 simd_i16_set1(int16_t v) { return vreinterpretq_s32_s16(vdupq_n_s16(v)); }
SIMD_INLINE uint16x8_t simd_i16_gt(simd_i32 a, simd_i32 b) {
  return vcgtq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
}
/* Where a > b: SIMD_I16_BITS bits for each lane. */
#define SIMD_I16_BITS 1
SIMD_INLINE uint32_t simd_i16_gt_bits(simd_i32 a, simd_i32 b) {
  const uint16x8_t bits = {1, 2, 4, 8, 16, 32, 64, 128};
  return vaddvq_u16(vandq_u16(simd_i16_gt(a, b), bits));
}
SIMD_INLINE simd_i32 simd_i16_max(simd_i32 a, simd_i32 b) {
  return vreinterpretq_s32_s16(vmaxq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
}
/* a > b ? yes : no, in each 16-bit lane */
SIMD_INLINE simd_i32 simd_i16_select_gt(simd_i32 a, simd_i32 b, simd_i32 yes, simd_i32 no) {
  return vbslq_s32(vreinterpretq_u32_u16(simd_i16_gt(a, b)), yes, no);
}
/* Loads 2 * SIMD_WIDTH unsigned bytes and widens them to 16 bits. */
SIMD_INLINE simd_i32 simd_i16_load_i8(const int8_t *p) { return vreinterpretq_s32_s16(vmovl_s8(vld1_s8(p))); }
SIMD_INLINE simd_i32 simd_i16_load_u8(const uint8_t *p) { return vreinterpretq_s32_u16(vmovl_u8(vld1_u8(p))); }
/* Returns the sum of all 32-bit lanes, which wraps. */
SIMD_INLINE int32_t simd_i32_sum(simd_i32 a) { return vaddvq_s32(a); }

SIMD_INLINE simd_i32 simd_round_i32(simd_f32 a) { return vcvtnq_s32_f32(a); } /* rounds to nearest, halves to even */
SIMD_INLINE simd_i32 simd_trunc_i32(simd_f32 a) { return vcvtq_s32_f32(a); }
SIMD_INLINE simd_f32 simd_from_i32(simd_i32 a) { return vcvtq_f32_s32(a); }
SIMD_INLINE simd_i32 simd_cast_i32(simd_f32 a) { return vreinterpretq_s32_f32(a); }
SIMD_INLINE simd_f32 simd_cast_f32(simd_i32 a) { return vreinterpretq_f32_s32(a); }

/* Load SIMD_WIDTH unsigned values and widen them to 32 bits. */
SIMD_INLINE simd_i32 simd_i32_load_u8(const uint8_t *p) {
  uint32_t four;
  memcpy(&four, p, sizeof four);
  const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(four));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes))));
}
SIMD_INLINE simd_i32 simd_i32_load_u16(const uint16_t *p) { return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p))); }
/* Stores the lanes of a and b interleaved, a0 b0 a1 b1 ...: 2 * SIMD_WIDTH floats. */
SIMD_INLINE void simd_store_interleaved(float *p, simd_f32 a, simd_f32 b) {
  const float32x4x2_t pair = {{a, b}};
  vst2q_f32(p, pair);
}
/* Loads every second of 2 * SIMD_WIDTH floats, beginning with the first. */
SIMD_INLINE simd_f32 simd_load_even(const float *p) { return vuzp1q_f32(vld1q_f32(p), vld1q_f32(p + SIMD_WIDTH)); }
/* Loads the floats at base + offset[i], and the floats after them. */
SIMD_INLINE void simd_load_pairs(const float *base, const int32_t *offset, simd_f32 *first, simd_f32 *second) {
  const float32x4_t a = vcombine_f32(vld1_f32(base + offset[0]), vld1_f32(base + offset[1]));
  const float32x4_t b = vcombine_f32(vld1_f32(base + offset[2]), vld1_f32(base + offset[3]));
  *first = vuzp1q_f32(a, b);
  *second = vuzp2q_f32(a, b);
}
SIMD_INLINE simd_f32 simd_gather(const float *base, simd_i32 index) {
  int32_t i[4];
  simd_i32_store(i, index);
  const float lanes[4] = {base[i[0]], base[i[1]], base[i[2]], base[i[3]]};
  return vld1q_f32(lanes);
}

#endif
