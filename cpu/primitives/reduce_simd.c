/* Sums, ranges and counts of runs with vectors. A float sum has PRIM_LANES lanes for every vector width. */
#include "cpu/primitives/primitive_variants.h"
#include "cpu/simd/simd_bytes.h"
#include "cpu/simd/simd_f64.h"

static const uint8_t *bytes_of(const void *x) { return x; }

/* ------------------------------------------------------------------ integers */

uint64_t SIMD_NAME(prim_sum_u8)(const void *x, size_t n) {
  const uint8_t *v = bytes_of(x);
  simd_bytes a = simd_bytes_zero(), b = simd_bytes_zero();
  size_t i = 0;
  for (; i + 4 * SIMD_BYTES <= n; i += 4 * SIMD_BYTES) {
    simd_ahead_lines(v + i, 4 * SIMD_BYTES);
    a = simd_bytes_sum(a, simd_bytes_load(v + i));
    b = simd_bytes_sum(b, simd_bytes_load(v + i + SIMD_BYTES));
    a = simd_bytes_sum(a, simd_bytes_load(v + i + 2 * SIMD_BYTES));
    b = simd_bytes_sum(b, simd_bytes_load(v + i + 3 * SIMD_BYTES));
  }
  for (; i + SIMD_BYTES <= n; i += SIMD_BYTES) a = simd_bytes_sum(a, simd_bytes_load(v + i));
  if (i < n) b = simd_bytes_sum(b, simd_bytes_load_first(v + i, n - i));
  return simd_bytes_total(a) + simd_bytes_total(b);
}

/* Maximum number of vectors before 32-bit lanes are emptied: a vector adds less than 2^17 to a lane. */
enum { WORD_SUMS_MAX = 1 << 15 };

uint64_t SIMD_NAME(prim_sum_u16)(const void *x, size_t n) {
  const uint8_t *v = bytes_of(x);
  const size_t bytes = 2 * n;
  uint64_t sum = 0;
  size_t i = 0;
  while (i < bytes) {
    simd_bytes a = simd_bytes_zero(), b = simd_bytes_zero();
    for (int32_t k = 0; k < WORD_SUMS_MAX && i + 2 * SIMD_BYTES <= bytes; k++, i += 2 * SIMD_BYTES) {
      simd_ahead_lines(v + i, 2 * SIMD_BYTES);
      a = simd_words_sum(a, simd_bytes_load(v + i));
      b = simd_words_sum(b, simd_bytes_load(v + i + SIMD_BYTES));
    }
    sum += simd_words_total(a) + simd_words_total(b);
    for (; i < bytes && i + 2 * SIMD_BYTES > bytes; i += SIMD_BYTES) {
      const size_t left = bytes - i;
      const simd_bytes last = simd_bytes_load_first(v + i, left < SIMD_BYTES ? left : SIMD_BYTES);
      sum += simd_words_total(simd_words_sum(simd_bytes_zero(), last));
    }
  }
  return sum;
}

static void widen(prim_range *range, double low, double high) {
  range->low = low < range->low ? low : range->low;
  range->high = high > range->high ? high : range->high;
}

void SIMD_NAME(prim_range_u8)(const void *x, size_t n, prim_range *range) {
  const uint8_t *v = bytes_of(x);
  simd_bytes low = simd_bytes_set1(255), high = simd_bytes_zero(), low2 = low, high2 = high;
  size_t i = 0;
  for (; i + 2 * SIMD_BYTES <= n; i += 2 * SIMD_BYTES) {
    simd_ahead_lines(v + i, 2 * SIMD_BYTES);
    const simd_bytes a = simd_bytes_load(v + i), b = simd_bytes_load(v + i + SIMD_BYTES);
    low = simd_bytes_min(low, a);
    high = simd_bytes_max(high, a);
    low2 = simd_bytes_min(low2, b);
    high2 = simd_bytes_max(high2, b);
  }
  while (i < n) {
    const size_t left = n - i < SIMD_BYTES ? n - i : SIMD_BYTES;
    const simd_bytes last = simd_bytes_load_first(v + i, left);
    low = simd_bytes_min(low, simd_bytes_or(last, simd_bytes_beyond(left)));
    high = simd_bytes_max(high, last);
    i += left;
  }
  if (n > 0)
    widen(range, simd_bytes_reduce_min(simd_bytes_min(low, low2)), simd_bytes_reduce_max(simd_bytes_max(high, high2)));
}

void SIMD_NAME(prim_range_u16)(const void *x, size_t n, prim_range *range) {
  const uint8_t *v = bytes_of(x);
  const size_t bytes = 2 * n;
  simd_bytes low = simd_bytes_set1(255), high = simd_bytes_zero();
  for (size_t i = 0; i < bytes;) {
    const size_t left = bytes - i < SIMD_BYTES ? bytes - i : SIMD_BYTES;
    const simd_bytes a = left == SIMD_BYTES ? simd_bytes_load(v + i) : simd_bytes_load_first(v + i, left);
    simd_ahead(v + i);
    low = simd_words_min(low, left == SIMD_BYTES ? a : simd_bytes_or(a, simd_bytes_beyond(left)));
    high = simd_words_max(high, a);
    i += left;
  }
  uint16_t lows[SIMD_BYTES / 2], highs[SIMD_BYTES / 2];
  simd_bytes_store(lows, low);
  simd_bytes_store(highs, high);
  for (int l = 0; l < SIMD_BYTES / 2 && n > 0; l++)
    if (lows[l] <= highs[l]) widen(range, lows[l], highs[l]);
}

/* Returns 1 in each byte above the threshold, and 0 in the others. */
static inline simd_bytes ones_above(simd_bytes v, simd_bytes threshold) {
  return simd_bytes_min(simd_bytes_over(v, threshold), simd_bytes_set1(1));
}

uint64_t SIMD_NAME(prim_count_above_u8)(const void *x, size_t n, double threshold) {
  const int32_t t = prim_threshold_integer(threshold);
  if (t < 0) return n;
  if (t >= 255) return 0;
  const uint8_t *v = bytes_of(x);
  const simd_bytes limit = simd_bytes_set1((uint8_t)t);
  simd_bytes counts = simd_bytes_zero();
  size_t i = 0;
  for (; i + SIMD_BYTES <= n; i += SIMD_BYTES)
    counts = simd_bytes_sum(counts, ones_above(simd_bytes_load(v + i), limit));
  if (i < n) counts = simd_bytes_sum(counts, ones_above(simd_bytes_load_first(v + i, n - i), limit));
  return simd_bytes_total(counts);
}

/* A plain loop, which compilers vectorise. */
uint64_t SIMD_NAME(prim_count_above_u16)(const void *x, size_t n, double threshold) {
  const uint16_t *v = x;
  const int32_t t = prim_threshold_integer(threshold);
  uint64_t count = 0;
  for (size_t i = 0; i < n; i++) count += v[i] > t;
  return count;
}

/* ------------------------------------------------------------------ floats */

enum { SUM_VECTORS = PRIM_LANES / SIMD_F64 };

/* Combines lanes by the tree: adds lane l + half to lane l, first across the vectors until one is left, then within
 * that vector. */
static inline double tree_of(simd_f64 lane[SUM_VECTORS]) {
  for (int half = SUM_VECTORS / 2; half > 0; half /= 2)
    for (int k = 0; k < half; k++) lane[k] = simd_f64_add(lane[k], lane[k + half]);
  double v[SIMD_F64];
  simd_f64_store(v, lane[0]);
  for (int half = SIMD_F64 / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) v[l] += v[l + half];
  return v[0];
}

/* n: a multiple of PRIM_LANES, at most PRIM_CHUNK. */
static inline double chunk_sum_f32(const float *x, size_t n) {
  simd_f64 lane[SUM_VECTORS];
  for (int k = 0; k < SUM_VECTORS; k++) lane[k] = simd_f64_set1(0.0);
  for (size_t i = 0; i < n; i += PRIM_LANES) {
    simd_ahead_lines(x + i, PRIM_LANES * sizeof *x);
    for (int k = 0; k < SUM_VECTORS; k++)
      lane[k] = simd_f64_add(lane[k], simd_f64_load_f32(x + i + (size_t)(k * SIMD_F64)));
  }
  return tree_of(lane);
}

static inline double chunk_sum_f64(const double *x, size_t n) {
  simd_f64 lane[SUM_VECTORS];
  for (int k = 0; k < SUM_VECTORS; k++) lane[k] = simd_f64_set1(0.0);
  for (size_t i = 0; i < n; i += PRIM_LANES) {
    simd_ahead_lines(x + i, PRIM_LANES * sizeof *x);
    for (int k = 0; k < SUM_VECTORS; k++)
      lane[k] = simd_f64_add(lane[k], simd_f64_load(x + i + (size_t)(k * SIMD_F64)));
  }
  return tree_of(lane);
}

/* Full chunks are read in place. The last chunk is padded with zeros, which change no lane. */
void SIMD_NAME(prim_sum_chunks_f32)(const void *x, size_t n, double *sums) {
  const float *v = x;
  size_t i = 0;
  for (; i + PRIM_CHUNK <= n; i += PRIM_CHUNK) *sums++ = chunk_sum_f32(v + i, PRIM_CHUNK);
  if (i == n) return;
  float last[PRIM_CHUNK];
  const size_t left = n - i, filled = (left + PRIM_LANES - 1) / PRIM_LANES * PRIM_LANES;
  memcpy(last, v + i, left * sizeof *last);
  memset(last + left, 0, (filled - left) * sizeof *last);
  *sums = chunk_sum_f32(last, filled);
}

void SIMD_NAME(prim_sum_chunks_f64)(const void *x, size_t n, double *sums) {
  const double *v = x;
  size_t i = 0;
  for (; i + PRIM_CHUNK <= n; i += PRIM_CHUNK) *sums++ = chunk_sum_f64(v + i, PRIM_CHUNK);
  if (i == n) return;
  double last[PRIM_CHUNK];
  const size_t left = n - i, filled = (left + PRIM_LANES - 1) / PRIM_LANES * PRIM_LANES;
  memcpy(last, v + i, left * sizeof *last);
  memset(last + left, 0, (filled - left) * sizeof *last);
  *sums = chunk_sum_f64(last, filled);
}

void SIMD_NAME(prim_range_f32)(const void *x, size_t n, prim_range *range) {
  const float *v = x;
  simd_f32 low = simd_set1(INFINITY), high = simd_set1(-INFINITY), low2 = low, high2 = high;
  size_t i = 0;
  for (; i + 2 * SIMD_WIDTH <= n; i += 2 * SIMD_WIDTH) {
    simd_ahead_lines(v + i, 2 * SIMD_WIDTH * sizeof *v);
    const simd_f32 a = simd_load(v + i), b = simd_load(v + i + SIMD_WIDTH);
    low = simd_min(a, low);
    high = simd_max(a, high);
    low2 = simd_min(b, low2);
    high2 = simd_max(b, high2);
  }
  float lows[SIMD_WIDTH], highs[SIMD_WIDTH];
  simd_store(lows, simd_min(low, low2));
  simd_store(highs, simd_max(high, high2));
  for (int l = 0; l < SIMD_WIDTH; l++) widen(range, (double)lows[l], (double)highs[l]);
  for (; i < n; i++) widen(range, (double)v[i], (double)v[i]); /* NaN does not widen the range */
}

void SIMD_NAME(prim_range_f64)(const void *x, size_t n, prim_range *range) {
  const double *v = x;
  simd_f64 low = simd_f64_set1(INFINITY), high = simd_f64_set1(-INFINITY), low2 = low, high2 = high;
  size_t i = 0;
  for (; i + 2 * SIMD_F64 <= n; i += 2 * SIMD_F64) {
    simd_ahead_lines(v + i, 2 * SIMD_F64 * sizeof *v);
    const simd_f64 a = simd_f64_load(v + i), b = simd_f64_load(v + i + SIMD_F64);
    low = simd_f64_min(a, low);
    high = simd_f64_max(a, high);
    low2 = simd_f64_min(b, low2);
    high2 = simd_f64_max(b, high2);
  }
  double lows[SIMD_F64], highs[SIMD_F64];
  simd_f64_store(lows, simd_f64_min(low, low2));
  simd_f64_store(highs, simd_f64_max(high, high2));
  for (int l = 0; l < SIMD_F64; l++) widen(range, lows[l], highs[l]);
  for (; i < n; i++) widen(range, v[i], v[i]);
}

uint64_t SIMD_NAME(prim_count_above_f32)(const void *x, size_t n, double threshold) {
  const float *v = x, t = prim_threshold_float(threshold);
  const simd_f32 limit = simd_set1(t);
  uint64_t count = 0;
  size_t i = 0;
  for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH)
    count += (uint64_t)__builtin_popcount(simd_bits(simd_gt(simd_load(v + i), limit)));
  for (; i < n; i++) count += v[i] > t;
  return count;
}

uint64_t SIMD_NAME(prim_count_above_f64)(const void *x, size_t n, double threshold) {
  const double *v = x;
  const simd_f64 limit = simd_f64_set1(threshold);
  uint64_t count = 0;
  size_t i = 0;
  for (; i + SIMD_F64 <= n; i += SIMD_F64) count += simd_f64_above(simd_f64_load(v + i), limit);
  for (; i < n; i++) count += v[i] > threshold;
  return count;
}

/* ------------------------------------------------------------------ tiles of bytes */

typedef struct tile_sums {
  simd_bytes sum, low, high, above;
} tile_sums;

static inline void take_bytes(tile_sums *s, simd_bytes v, simd_bytes beyond, simd_bytes limit) {
  s->sum = simd_bytes_sum(s->sum, v);
  s->low = simd_bytes_min(s->low, simd_bytes_or(v, beyond));
  s->high = simd_bytes_max(s->high, v);
  s->above = simd_bytes_sum(s->above, ones_above(v, limit));
}

/* Computes all four statistics of a row in one pass. Lanes beyond the tile are 0, so they do not count as above a
 * threshold of 0 or more. */
void SIMD_NAME(prim_tile_u8)(const prim_view *tile, double threshold, prim_tile *out) {
  const int32_t t = prim_threshold_integer(threshold);
  const simd_bytes limit = simd_bytes_set1((uint8_t)(t < 0 ? 0 : (t > 255 ? 255 : t))), zero = simd_bytes_zero();
  const size_t whole = tile->width / SIMD_BYTES * SIMD_BYTES, left = tile->width - whole;
  const simd_bytes beyond = simd_bytes_beyond(left);
  tile_sums s = {.sum = zero, .low = simd_bytes_set1(255), .high = zero, .above = zero};
  for (size_t y = 0; y < tile->height; y++) {
    const uint8_t *row = bytes_of(tile->data) + y * tile->stride_bytes;
    for (size_t x = 0; x < whole; x += SIMD_BYTES) take_bytes(&s, simd_bytes_load(row + x), zero, limit);
    if (left > 0) take_bytes(&s, simd_bytes_load_first(row + whole, left), beyond, limit);
  }
  out->sum = (double)simd_bytes_total(s.sum);
  out->min = simd_bytes_reduce_min(s.low);
  out->max = simd_bytes_reduce_max(s.high);
  out->above = t < 0 ? (uint64_t)tile->width * tile->height : simd_bytes_total(s.above);
}
