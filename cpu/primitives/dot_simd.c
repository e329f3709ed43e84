/* Dot products of vectors of signed bytes, with vectors. */
#include "cpu/primitives/primitive_variants.h"
#include "cpu/simd/simd.h"

#if SIMD_ISA == SIMD_ISA_avx512vnni || SIMD_ISA == SIMD_ISA_neondot
/* Adds the products from number i on. */
static void add_rest(const int8_t *asking, const int8_t *answering, size_t stride, size_t i, size_t length,
                     int32_t products[DOT_ANSWERS]) {
  for (; i < length; i++)
    for (size_t k = 0; k < DOT_ANSWERS; k++) products[k] += asking[i] * answering[k * stride + i];
}
#endif

#if SIMD_ISA == SIMD_ISA_avx512vnni

enum { STEP = 64 }; /* bytes of a vector */

static int32_t total(simd_i32 lanes) { return _mm512_reduce_add_epi32(lanes); }

/* The instruction multiplies unsigned by signed bytes, so each answering number is increased by 128, and 128 times the
 * sum of the asking numbers is subtracted. No sum of DOT_LENGTH_MAX products exceeds 32 bits. The sums are four
 * variables, because GCC 12 writes an array to memory in every step. */
void SIMD_NAME(dot_bytes)(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,
                          int32_t products[DOT_ANSWERS]) {
  const int8_t *a = answering, *b = a + stride, *c = b + stride, *d = c + stride;
  const simd_i32 bias = _mm512_set1_epi8(INT8_MIN), zero = simd_i32_set1(0);
  simd_i32 sum_a = zero, sum_b = zero, sum_c = zero, sum_d = zero, increase = zero;
  size_t i = 0;
  for (; length - i >= STEP; i += STEP) {
    const simd_i32 one = _mm512_loadu_si512(asking + i);
    increase = simd_dot_bytes(increase, bias, one);
    sum_a = simd_dot_bytes(sum_a, simd_i32_xor(_mm512_loadu_si512(a + i), bias), one);
    sum_b = simd_dot_bytes(sum_b, simd_i32_xor(_mm512_loadu_si512(b + i), bias), one);
    sum_c = simd_dot_bytes(sum_c, simd_i32_xor(_mm512_loadu_si512(c + i), bias), one);
    sum_d = simd_dot_bytes(sum_d, simd_i32_xor(_mm512_loadu_si512(d + i), bias), one);
  }
  const uint32_t added = (uint32_t)total(increase);
  products[0] = (int32_t)((uint32_t)total(sum_a) - added);
  products[1] = (int32_t)((uint32_t)total(sum_b) - added);
  products[2] = (int32_t)((uint32_t)total(sum_c) - added);
  products[3] = (int32_t)((uint32_t)total(sum_d) - added);
  add_rest(asking, answering, stride, i, length, products);
}

#elif SIMD_ISA == SIMD_ISA_neondot

enum { STEP = 16 }; /* bytes of a vector */

static simd_i32 load(const int8_t *p) { return vreinterpretq_s32_s8(vld1q_s8(p)); }

void SIMD_NAME(dot_bytes)(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,
                          int32_t products[DOT_ANSWERS]) {
  const int8_t *a = answering, *b = a + stride, *c = b + stride, *d = c + stride;
  const simd_i32 zero = simd_i32_set1(0);
  simd_i32 sum_a = zero, sum_b = zero, sum_c = zero, sum_d = zero;
  size_t i = 0;
  for (; length - i >= STEP; i += STEP) {
    const simd_i32 one = load(asking + i);
    sum_a = simd_dot_signed(sum_a, load(a + i), one);
    sum_b = simd_dot_signed(sum_b, load(b + i), one);
    sum_c = simd_dot_signed(sum_c, load(c + i), one);
    sum_d = simd_dot_signed(sum_d, load(d + i), one);
  }
  products[0] = simd_i32_sum(sum_a);
  products[1] = simd_i32_sum(sum_b);
  products[2] = simd_i32_sum(sum_c);
  products[3] = simd_i32_sum(sum_d);
  add_rest(asking, answering, stride, i, length, products);
}

#else

void SIMD_NAME(dot_bytes)(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,
                          int32_t products[DOT_ANSWERS]) {
  dot_bytes(asking, answering, stride, length, products);
}

#endif
