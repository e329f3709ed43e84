/*
 * The vector layer for doubles: vectors of SIMD_F64 doubles, rounded like the scalar operation of the same name.
 *
 * SSE2 has no fused multiply-add of doubles (SIMD_HAS_FMA_F64 is 0), so on SSE2 functions that need it use the
 * reference.
 */
#ifndef HARTSIFT_CPU_SIMD_SIMD_F64_H
#define HARTSIFT_CPU_SIMD_SIMD_F64_H

#include "cpu/simd/simd.h"

#if SIMD_ISA == SIMD_ISA_avx512
#  define SIMD_F64         8
#  define SIMD_HAS_FMA_F64 1
typedef __m512d simd_f64;
SIMD_INLINE simd_f64 simd_f64_load(const double *p) { return _mm512_loadu_pd(p); }
SIMD_INLINE simd_f64 simd_f64_load_f32(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); } /* widened */
/* Returns p[index[0]], p[index[stride]], p[index[2 * stride]] and so on. */
SIMD_INLINE simd_f64 simd_f64_pick(const double *p, const uint32_t *index, int stride) {
  return _mm512_setr_pd(p[index[0]], p[index[stride]], p[index[2 * stride]], p[index[3 * stride]], p[index[4 * stride]],
                        p[index[5 * stride]], p[index[6 * stride]], p[index[7 * stride]]);
}
SIMD_INLINE void simd_f64_store(double *p, simd_f64 v) { _mm512_storeu_pd(p, v); }
SIMD_INLINE void simd_f64_store_f32(float *p, simd_f64 v) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(v)); } /* rounded */
SIMD_INLINE simd_f64 simd_f64_set1(double v) { return _mm512_set1_pd(v); }
SIMD_INLINE simd_f64 simd_f64_add(simd_f64 a, simd_f64 b) { return _mm512_add_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_sub(simd_f64 a, simd_f64 b) { return _mm512_sub_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_mul(simd_f64 a, simd_f64 b) { return _mm512_mul_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_fma(simd_f64 a, simd_f64 b, simd_f64 c) { return _mm512_fmadd_pd(a, b, c); }
/* a * b - c rounded once */
SIMD_INLINE simd_f64 simd_f64_fms(simd_f64 a, simd_f64 b, simd_f64 c) { return _mm512_fmsub_pd(a, b, c); }
/* a < b ? a : b, and a > b ? a : b; if either is NaN, b */
SIMD_INLINE simd_f64 simd_f64_min(simd_f64 a, simd_f64 b) { return _mm512_min_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_max(simd_f64 a, simd_f64 b) { return _mm512_max_pd(a, b); }
/* Returns the number of lanes in which a exceeds b. */
SIMD_INLINE uint32_t simd_f64_above(simd_f64 a, simd_f64 b) {
  return (uint32_t)__builtin_popcount(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ));
}
SIMD_INLINE simd_f64 simd_f64_sqrt(simd_f64 v) { return _mm512_sqrt_pd(v); }
/* Returns x if a > b, else y; y also if a or b is NaN. */
SIMD_INLINE simd_f64 simd_f64_if_above(simd_f64 a, simd_f64 b, simd_f64 x, simd_f64 y) {
  return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), y, x);
}
/* Returns v if it is a number, else `other`. */
SIMD_INLINE simd_f64 simd_f64_unless_nan(simd_f64 v, simd_f64 other) {
  return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q), v, other);
}

#elif SIMD_ISA == SIMD_ISA_avx2
#  define SIMD_F64         4
#  define SIMD_HAS_FMA_F64 1
typedef __m256d simd_f64;
SIMD_INLINE simd_f64 simd_f64_load(const double *p) { return _mm256_loadu_pd(p); }
SIMD_INLINE simd_f64 simd_f64_load_f32(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
SIMD_INLINE simd_f64 simd_f64_pick(const double *p, const uint32_t *index, int stride) {
  return _mm256_setr_pd(p[index[0]], p[index[stride]], p[index[2 * stride]], p[index[3 * stride]]);
}
SIMD_INLINE void simd_f64_store(double *p, simd_f64 v) { _mm256_storeu_pd(p, v); }
SIMD_INLINE void simd_f64_store_f32(float *p, simd_f64 v) { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)); }
SIMD_INLINE simd_f64 simd_f64_set1(double v) { return _mm256_set1_pd(v); }
SIMD_INLINE simd_f64 simd_f64_add(simd_f64 a, simd_f64 b) { return _mm256_add_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_sub(simd_f64 a, simd_f64 b) { return _mm256_sub_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_mul(simd_f64 a, simd_f64 b) { return _mm256_mul_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_fma(simd_f64 a, simd_f64 b, simd_f64 c) { return _mm256_fmadd_pd(a, b, c); }
SIMD_INLINE simd_f64 simd_f64_fms(simd_f64 a, simd_f64 b, simd_f64 c) { return _mm256_fmsub_pd(a, b, c); }
SIMD_INLINE simd_f64 simd_f64_min(simd_f64 a, simd_f64 b) { return _mm256_min_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_max(simd_f64 a, simd_f64 b) { return _mm256_max_pd(a, b); }
SIMD_INLINE uint32_t simd_f64_above(simd_f64 a, simd_f64 b) {
  return (uint32_t)__builtin_popcount((unsigned)_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)));
}
SIMD_INLINE simd_f64 simd_f64_sqrt(simd_f64 v) { return _mm256_sqrt_pd(v); }
SIMD_INLINE simd_f64 simd_f64_if_above(simd_f64 a, simd_f64 b, simd_f64 x, simd_f64 y) {
  return _mm256_blendv_pd(y, x, _mm256_cmp_pd(a, b, _CMP_GT_OQ));
}
SIMD_INLINE simd_f64 simd_f64_unless_nan(simd_f64 v, simd_f64 other) {
  return _mm256_blendv_pd(v, other, _mm256_cmp_pd(v, v, _CMP_UNORD_Q));
}

#elif SIMD_ISA == SIMD_ISA_sse2
#  define SIMD_F64         2
#  define SIMD_HAS_FMA_F64 0
typedef __m128d simd_f64;
SIMD_INLINE simd_f64 simd_f64_load(const double *p) { return _mm_loadu_pd(p); }
SIMD_INLINE simd_f64 simd_f64_pick(const double *p, const uint32_t *index, int stride) {
  return _mm_setr_pd(p[index[0]], p[index[stride]]);
}
SIMD_INLINE simd_f64 simd_f64_load_f32(const float *p) {
  return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
SIMD_INLINE void simd_f64_store(double *p, simd_f64 v) { _mm_storeu_pd(p, v); }
SIMD_INLINE void simd_f64_store_f32(float *p, simd_f64 v) {
  _mm_storel_epi64((__m128i *)(void *)p, _mm_castps_si128(_mm_cvtpd_ps(v)));
}
SIMD_INLINE simd_f64 simd_f64_set1(double v) { return _mm_set1_pd(v); }
SIMD_INLINE simd_f64 simd_f64_add(simd_f64 a, simd_f64 b) { return _mm_add_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_sub(simd_f64 a, simd_f64 b) { return _mm_sub_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_mul(simd_f64 a, simd_f64 b) { return _mm_mul_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_min(simd_f64 a, simd_f64 b) { return _mm_min_pd(a, b); }
SIMD_INLINE simd_f64 simd_f64_max(simd_f64 a, simd_f64 b) { return _mm_max_pd(a, b); }
SIMD_INLINE uint32_t simd_f64_above(simd_f64 a, simd_f64 b) {
  const unsigned bits = (unsigned)_mm_movemask_pd(_mm_cmpgt_pd(a, b));
  return (bits & 1u) + (bits >> 1);
}
SIMD_INLINE simd_f64 simd_f64_sqrt(simd_f64 v) { return _mm_sqrt_pd(v); }
SIMD_INLINE simd_f64 simd_f64_if_above(simd_f64 a, simd_f64 b, simd_f64 x, simd_f64 y) {
  const __m128d above = _mm_cmpgt_pd(a, b);
  return _mm_or_pd(_mm_and_pd(above, x), _mm_andnot_pd(above, y));
}
SIMD_INLINE simd_f64 simd_f64_unless_nan(simd_f64 v, simd_f64 other) {
  const __m128d nan = _mm_cmpunord_pd(v, v);
  return _mm_or_pd(_mm_and_pd(nan, other), _mm_andnot_pd(nan, v));
}

#elif SIMD_IS_NEON
#  define SIMD_F64         2
#  define SIMD_HAS_FMA_F64 1
typedef float64x2_t simd_f64;
SIMD_INLINE simd_f64 simd_f64_load(const double *p) { return vld1q_f64(p); }
SIMD_INLINE simd_f64 simd_f64_load_f32(const float *p) { return vcvt_f64_f32(vld1_f32(p)); }
SIMD_INLINE simd_f64 simd_f64_pick(const double *p, const uint32_t *index, int stride) {
  return vcombine_f64(vld1_f64(p + index[0]), vld1_f64(p + index[stride]));
}
SIMD_INLINE void simd_f64_store(double *p, simd_f64 v) { vst1q_f64(p, v); }
SIMD_INLINE void simd_f64_store_f32(float *p, simd_f64 v) { vst1_f32(p, vcvt_f32_f64(v)); }
SIMD_INLINE simd_f64 simd_f64_set1(double v) { return vdupq_n_f64(v); }
SIMD_INLINE simd_f64 simd_f64_add(simd_f64 a, simd_f64 b) { return vaddq_f64(a, b); }
SIMD_INLINE simd_f64 simd_f64_sub(simd_f64 a, simd_f64 b) { return vsubq_f64(a, b); }
SIMD_INLINE simd_f64 simd_f64_mul(simd_f64 a, simd_f64 b) { return vmulq_f64(a, b); }
SIMD_INLINE simd_f64 simd_f64_fma(simd_f64 a, simd_f64 b, simd_f64 c) { return vfmaq_f64(c, a, b); }
SIMD_INLINE simd_f64 simd_f64_fms(simd_f64 a, simd_f64 b, simd_f64 c) { return vfmaq_f64(vnegq_f64(c), a, b); }
SIMD_INLINE simd_f64 simd_f64_min(simd_f64 a, simd_f64 b) { return vbslq_f64(vcltq_f64(a, b), a, b); }
SIMD_INLINE simd_f64 simd_f64_max(simd_f64 a, simd_f64 b) { return vbslq_f64(vcgtq_f64(a, b), a, b); }
SIMD_INLINE uint32_t simd_f64_above(simd_f64 a, simd_f64 b) {
  return (uint32_t)vaddvq_u64(vshrq_n_u64(vcgtq_f64(a, b), 63));
}
SIMD_INLINE simd_f64 simd_f64_sqrt(simd_f64 v) { return vsqrtq_f64(v); }
SIMD_INLINE simd_f64 simd_f64_if_above(simd_f64 a, simd_f64 b, simd_f64 x, simd_f64 y) {
  return vbslq_f64(vcgtq_f64(a, b), x, y);
}
SIMD_INLINE simd_f64 simd_f64_unless_nan(simd_f64 v, simd_f64 other) { return vbslq_f64(vceqq_f64(v, v), v, other); }
#endif

#endif
