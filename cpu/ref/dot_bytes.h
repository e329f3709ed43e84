/*
 * The loop of dot.h, for each file that compiles it for an instruction set. Whole numbers: every order of summing gives
 * the same, so the compiler may use whatever vectors the set has.
 */
#ifndef HARTSIFT_CPU_REF_DOT_BYTES_H
#define HARTSIFT_CPU_REF_DOT_BYTES_H

#include "cpu/ref/dot.h"

static inline void dot_bytes(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,
                             int32_t products[DOT_ANSWERS]) {
  const int8_t *a = answering, *b = a + stride, *c = b + stride, *d = c + stride;
  int32_t sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
  for (size_t i = 0; i < length; i++) {
    sum_a += asking[i] * a[i];
    sum_b += asking[i] * b[i];
    sum_c += asking[i] * c[i];
    sum_d += asking[i] * d[i];
  }
  products[0] = sum_a;
  products[1] = sum_b;
  products[2] = sum_c;
  products[3] = sum_d;
}

/* dot_bytes_ref is built for the machine's baseline, the others by dot_simd.c. */
#define DOT_DECLARE(ISA)                                                                                               \
  void dot_bytes_##ISA(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,                    \
                       int32_t products[DOT_ANSWERS])
DOT_DECLARE(sse2);
DOT_DECLARE(avx2);
DOT_DECLARE(avx512);
DOT_DECLARE(neon);

#endif
