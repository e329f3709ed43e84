/* Projection of vectors on axes: sums of a strip of axes stay in registers. */
#include "cpu/primitives/primitive_variants.h"
#include "cpu/simd/simd_f64.h"

/* Number of vectors of sums in a strip: independent additions for their latency, few enough for 16 registers. */
enum { STRIP = 8, SHORT_STRIP = 4 };

SIMD_INLINE void project_strip(int vectors, const double *vector, size_t length, const double *axes, size_t count,
                               double *values) {
  simd_f64 sums[STRIP];
  for (int v = 0; v < vectors; v++) sums[v] = simd_f64_set1(0.0);
  for (size_t i = 0; i < length; i++, axes += count) {
    const simd_f64 one = simd_f64_set1(vector[i]);
    for (int v = 0; v < vectors; v++)
      sums[v] = simd_f64_add(sums[v], simd_f64_mul(one, simd_f64_load(axes + v * SIMD_F64)));
  }
  for (int v = 0; v < vectors; v++) simd_f64_store(values + v * SIMD_F64, sums[v]);
}

void SIMD_NAME(project)(const double *vector, size_t length, const double *axes, size_t count, double *values) {
  size_t k = 0;
  for (; k + STRIP * SIMD_F64 <= count; k += STRIP * SIMD_F64)
    project_strip(STRIP, vector, length, axes + k, count, values + k);
  for (; k + SHORT_STRIP * SIMD_F64 <= count; k += SHORT_STRIP * SIMD_F64)
    project_strip(SHORT_STRIP, vector, length, axes + k, count, values + k);
  for (; k + SIMD_F64 <= count; k += SIMD_F64) project_strip(1, vector, length, axes + k, count, values + k);
  for (; k < count; k++) {
    double sum = 0.0;
    for (size_t i = 0; i < length; i++) sum += vector[i] * axes[i * count + k];
    values[k] = sum;
  }
}
