/* Convolution and table look-up of runs with vectors, and the table of all primitives of an instruction set. */
#include "cpu/primitives/primitive_variants.h"
#include "cpu/simd/simd_bytes.h"
#include "cpu/simd/simd_f64.h"

/* ------------------------------------------------------------------ look-up */

void SIMD_NAME(prim_map)(const uint8_t *in, uint8_t *out, size_t n, const uint8_t table[PRIM_LEVELS]) {
  size_t i = 0;
#if SIMD_HAS_TABLE
  if (n >= 4 * SIMD_BYTES) {
    simd_table t;
    simd_table_load(&t, table);
    for (; i + SIMD_BYTES <= n; i += SIMD_BYTES) simd_bytes_store(out + i, simd_table_get(&t, simd_bytes_load(in + i)));
  }
#endif
  for (; i < n; i++) out[i] = table[in[i]];
}

/* ------------------------------------------------------------------ few taps: the tree of pairs

   x: address of the first sample that a vector of outputs reads. Tap j of m belongs to x[m - 1 - j]. */

static inline simd_f32 pair_f32(const float *x, const simd_f32 *c, int m, int j) {
  return simd_fma(c[j + 1], simd_load(x + m - 2 - j), simd_mul(c[j], simd_load(x + m - 1 - j)));
}

static inline simd_f32 tree_f32(const float *x, const simd_f32 *c, int m) {
  if (m == 1) return simd_mul(c[0], simd_load(x));
  simd_f32 s = pair_f32(x, c, m, 0);
  if (m == 3) return simd_fma(c[2], simd_load(x), s);
  s = simd_add(s, pair_f32(x, c, m, 2));
  if (m == 5) return simd_fma(c[4], simd_load(x), s);
  return simd_add(s, simd_fma(c[6], simd_load(x), pair_f32(x, c, m, 4)));
}

static inline simd_f32 plain_nan_f32(simd_f32 v) {
  return simd_select(simd_eq(v, v), v, simd_set1(hs_bits_float(PRIM_NAN_BITS_F32)));
}

/* Filters by the pair tree. n is at least SIMD_WIDTH; the last vector overlaps the vector before it. */
static inline void few_f32(const float *x, float *y, size_t n, const double *taps, int m) {
  simd_f32 c[PRIM_TREE_TAPS_MAX];
  for (int j = 0; j < m; j++) c[j] = simd_set1((float)taps[j]);
  for (size_t i = 0; i < n; i += SIMD_WIDTH) {
    const size_t at = i + SIMD_WIDTH <= n ? i : n - SIMD_WIDTH;
    simd_store(y + at, plain_nan_f32(tree_f32(x + at, c, m)));
  }
}

#if SIMD_HAS_FMA_F64
static inline simd_f64 pair_f64(const double *x, const simd_f64 *c, int m, int j) {
  return simd_f64_fma(c[j + 1], simd_f64_load(x + m - 2 - j), simd_f64_mul(c[j], simd_f64_load(x + m - 1 - j)));
}

static inline simd_f64 tree_f64(const double *x, const simd_f64 *c, int m) {
  if (m == 1) return simd_f64_mul(c[0], simd_f64_load(x));
  simd_f64 s = pair_f64(x, c, m, 0);
  if (m == 3) return simd_f64_fma(c[2], simd_f64_load(x), s);
  s = simd_f64_add(s, pair_f64(x, c, m, 2));
  if (m == 5) return simd_f64_fma(c[4], simd_f64_load(x), s);
  return simd_f64_add(s, simd_f64_fma(c[6], simd_f64_load(x), pair_f64(x, c, m, 4)));
}

static inline void few_f64(const double *x, double *y, size_t n, const double *taps, int m) {
  const simd_f64 nan = simd_f64_set1(prim_double_of_bits(PRIM_NAN_BITS));
  simd_f64 c[PRIM_TREE_TAPS_MAX];
  for (int j = 0; j < m; j++) c[j] = simd_f64_set1(taps[j]);
  for (size_t i = 0; i < n; i += SIMD_F64) {
    const size_t at = i + SIMD_F64 <= n ? i : n - SIMD_F64;
    simd_f64_store(y + at, simd_f64_unless_nan(tree_f64(x + at, c, m), nan));
  }
}
#endif

/* ------------------------------------------------------------------ many taps
 *
 * LONG_VECTORS vectors of outputs are computed together: each tap is broadcast once for all of them, and while one sum
 * waits, the others continue. */
enum { LONG_VECTORS = 4, LONG_OUTPUTS = LONG_VECTORS * SIMD_F64 };

static inline simd_f64 step_f32(simd_f64 sum, simd_f64 c, simd_f64 x) {
#if SIMD_HAS_FMA_F64
  return simd_f64_fma(c, x, sum);
#else
  return simd_f64_add(sum, simd_f64_mul(c, x)); /* without FMA: the product is exact, so only the sum is rounded */
#endif
}

static inline void long_f32(const float *x, float *y, const double *taps, size_t m) {
  simd_f64 sum[LONG_VECTORS];
  const simd_f64 first = simd_f64_set1((double)(float)taps[0]);
  for (int k = 0; k < LONG_VECTORS; k++) sum[k] = simd_f64_mul(first, simd_f64_load_f32(x + m - 1 + k * SIMD_F64));
  for (size_t j = 1; j < m; j++) {
    const simd_f64 c = simd_f64_set1((double)(float)taps[j]);
    const float *at = x + m - 1 - j;
    for (int k = 0; k < LONG_VECTORS; k++) sum[k] = step_f32(sum[k], c, simd_f64_load_f32(at + k * SIMD_F64));
  }
  for (int k = 0; k < LONG_VECTORS; k++) simd_f64_store_f32(y + k * SIMD_F64, sum[k]);
  for (int i = 0; i < LONG_OUTPUTS; i++) y[i] = prim_plain_nan_f32(y[i]);
}

#if SIMD_HAS_FMA_F64
static inline void long_f64(const double *x, double *y, const double *taps, size_t m) {
  simd_f64 sum[LONG_VECTORS], error[LONG_VECTORS];
  const simd_f64 first = simd_f64_set1(taps[0]), nan = simd_f64_set1(prim_double_of_bits(PRIM_NAN_BITS));
  for (int k = 0; k < LONG_VECTORS; k++) {
    const simd_f64 v = simd_f64_load(x + m - 1 + k * SIMD_F64);
    sum[k] = simd_f64_mul(first, v);
    error[k] = simd_f64_fms(first, v, sum[k]);
  }
  for (size_t j = 1; j < m; j++) {
    const simd_f64 c = simd_f64_set1(taps[j]);
    const double *at = x + m - 1 - j;
    for (int k = 0; k < LONG_VECTORS; k++) {
      const simd_f64 v = simd_f64_load(at + k * SIMD_F64), p = simd_f64_mul(c, v);
      const simd_f64 product_error = simd_f64_fms(c, v, p);
      const simd_f64 t = simd_f64_add(sum[k], p), z = simd_f64_sub(t, sum[k]);
      const simd_f64 sum_error = simd_f64_add(simd_f64_sub(sum[k], simd_f64_sub(t, z)), simd_f64_sub(p, z));
      sum[k] = t;
      error[k] = simd_f64_add(error[k], simd_f64_add(product_error, sum_error));
    }
  }
  for (int k = 0; k < LONG_VECTORS; k++) {
    const simd_f64 whole = simd_f64_unless_nan(simd_f64_add(sum[k], error[k]), sum[k]);
    simd_f64_store(y + k * SIMD_F64, simd_f64_unless_nan(whole, nan));
  }
}
#endif

/* ------------------------------------------------------------------ any taps */

void SIMD_NAME(prim_convolve_f32)(const void *x, void *y, size_t n, const double *taps, size_t m) {
  const float *in = x;
  float *out = y;
  if (n < SIMD_WIDTH || (m > PRIM_TREE_TAPS_MAX && n < LONG_OUTPUTS)) {
    prim_ops_ref.convolve[0](x, y, n, taps, m);
    return;
  }
  switch (m) {
  case 1:
    few_f32(in, out, n, taps, 1);
    return;
  case 3:
    few_f32(in, out, n, taps, 3);
    return;
  case 5:
    few_f32(in, out, n, taps, 5);
    return;
  case 7:
    few_f32(in, out, n, taps, 7);
    return;
  default:
    break;
  }
  for (size_t i = 0; i < n; i += LONG_OUTPUTS) {
    const size_t at = i + LONG_OUTPUTS <= n ? i : n - LONG_OUTPUTS;
    long_f32(in + at, out + at, taps, m);
  }
}

void SIMD_NAME(prim_convolve_f64)(const void *x, void *y, size_t n, const double *taps, size_t m) {
#if SIMD_HAS_FMA_F64
  const double *in = x;
  double *out = y;
  if (n < SIMD_F64 || (m > PRIM_TREE_TAPS_MAX && n < LONG_OUTPUTS)) {
    prim_ops_ref.convolve[1](x, y, n, taps, m);
    return;
  }
  switch (m) {
  case 1:
    few_f64(in, out, n, taps, 1);
    return;
  case 3:
    few_f64(in, out, n, taps, 3);
    return;
  case 5:
    few_f64(in, out, n, taps, 5);
    return;
  case 7:
    few_f64(in, out, n, taps, 7);
    return;
  default:
    break;
  }
  for (size_t i = 0; i < n; i += LONG_OUTPUTS) {
    const size_t at = i + LONG_OUTPUTS <= n ? i : n - LONG_OUTPUTS;
    long_f64(in + at, out + at, taps, m);
  }
#else
  prim_ops_ref.convolve[1](x, y, n, taps, m);
#endif
}

#define SIMD_TEXT_(name) #name
#define SIMD_TEXT(name)  SIMD_TEXT_(name)

const prim_ops SIMD_NAME(prim_ops) = {
    .name = SIMD_TEXT(HARTSIFT_ISA),
    .sum = {SIMD_NAME(prim_sum_u8), SIMD_NAME(prim_sum_u16)},
    .sum_chunks = {SIMD_NAME(prim_sum_chunks_f32), SIMD_NAME(prim_sum_chunks_f64)},
    .range = {SIMD_NAME(prim_range_u8), SIMD_NAME(prim_range_u16), SIMD_NAME(prim_range_f32),
              SIMD_NAME(prim_range_f64)},
    .count_above = {SIMD_NAME(prim_count_above_u8), SIMD_NAME(prim_count_above_u16), SIMD_NAME(prim_count_above_f32),
                    SIMD_NAME(prim_count_above_f64)},
    .tile_u8 = SIMD_NAME(prim_tile_u8),
    .histogram = histogram_tables,
    .map = SIMD_NAME(prim_map),
    .convolve = {SIMD_NAME(prim_convolve_f32), SIMD_NAME(prim_convolve_f64)},
};
