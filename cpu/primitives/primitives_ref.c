/* Reference of the primitives on runs: loops that state the contract, never tuned. */
#include "cpu/primitives/primitive_variants.h"

#define SUM_REF(NAME, TYPE)                                                                                            \
  static uint64_t NAME(const void *x, size_t n) {                                                                      \
    const TYPE *v = x;                                                                                                 \
    uint64_t sum = 0;                                                                                                  \
    for (size_t i = 0; i < n; i++) sum += v[i];                                                                        \
    return sum;                                                                                                        \
  }
SUM_REF(sum_u8_ref, uint8_t)
SUM_REF(sum_u16_ref, uint16_t)

/* Sums one chunk in lanes, then combines the lanes by their tree. */
#define SUM_CHUNKS_REF(NAME, TYPE)                                                                                     \
  static void NAME(const void *x, size_t n, double *sums) {                                                            \
    const TYPE *v = x;                                                                                                 \
    for (size_t first = 0; first < n; first += PRIM_CHUNK) {                                                           \
      double lane[PRIM_LANES] = {0.0};                                                                                 \
      for (size_t i = first; i < n && i < first + PRIM_CHUNK; i++) lane[i % PRIM_LANES] += (double)v[i];               \
      for (size_t half = PRIM_LANES / 2; half > 0; half /= 2)                                                          \
        for (size_t l = 0; l < half; l++) lane[l] += lane[l + half];                                                   \
      sums[first / PRIM_CHUNK] = lane[0];                                                                              \
    }                                                                                                                  \
  }
SUM_CHUNKS_REF(sum_chunks_f32_ref, float)
SUM_CHUNKS_REF(sum_chunks_f64_ref, double)

#define RANGE_REF(NAME, TYPE)                                                                                          \
  static void NAME(const void *x, size_t n, prim_range *range) {                                                       \
    const TYPE *v = x;                                                                                                 \
    for (size_t i = 0; i < n; i++) {                                                                                   \
      if ((double)v[i] < range->low) range->low = (double)v[i];                                                        \
      if ((double)v[i] > range->high) range->high = (double)v[i];                                                      \
    }                                                                                                                  \
  }
RANGE_REF(range_u8_ref, uint8_t)
RANGE_REF(range_u16_ref, uint16_t)
RANGE_REF(range_f32_ref, float)
RANGE_REF(range_f64_ref, double)

#define COUNT_ABOVE_REF(NAME, TYPE)                                                                                    \
  static uint64_t NAME(const void *x, size_t n, double threshold) {                                                    \
    const TYPE *v = x;                                                                                                 \
    uint64_t count = 0;                                                                                                \
    for (size_t i = 0; i < n; i++) count += (double)v[i] > threshold;                                                  \
    return count;                                                                                                      \
  }
COUNT_ABOVE_REF(count_above_u8_ref, uint8_t)
COUNT_ABOVE_REF(count_above_u16_ref, uint16_t)
COUNT_ABOVE_REF(count_above_f32_ref, float)
COUNT_ABOVE_REF(count_above_f64_ref, double)

static void tile_u8_ref(const prim_view *tile, double threshold, prim_tile *out) {
  prim_range range = {INFINITY, -INFINITY};
  uint64_t sum = 0;
  out->above = 0;
  for (size_t y = 0; y < tile->height; y++) {
    const unsigned char *row = (const unsigned char *)tile->data + y * tile->stride_bytes;
    sum += sum_u8_ref(row, tile->width);
    range_u8_ref(row, tile->width, &range);
    out->above += count_above_u8_ref(row, tile->width, threshold);
  }
  out->sum = (double)sum;
  out->min = range.low;
  out->max = range.high;
}

static void histogram_ref(const prim_view *picture, const prim_view *mask, uint64_t counts[PRIM_LEVELS]) {
  for (size_t y = 0; y < picture->height; y++) {
    const uint8_t *row = (const uint8_t *)picture->data + y * picture->stride_bytes;
    const uint8_t *kept = mask->data ? (const uint8_t *)mask->data + y * mask->stride_bytes : NULL;
    for (size_t x = 0; x < picture->width; x++)
      if (!kept || kept[x] != 0) counts[row[x]]++;
  }
}

static void map_ref(const uint8_t *in, uint8_t *out, size_t n, const uint8_t table[PRIM_LEVELS]) {
  for (size_t i = 0; i < n; i++) out[i] = table[in[i]];
}

static void convolve_f32_ref(const void *x, void *y, size_t n, const double *taps, size_t m) {
  const float *in = x;
  float *out = y, c[PRIM_TREE_TAPS_MAX], reversed[PRIM_TREE_TAPS_MAX];
  for (size_t i = 0; i < n; i++) {
    if (m > PRIM_TREE_TAPS_MAX) {
      double sum = (double)(float)taps[0] * (double)in[i + m - 1];
      for (size_t j = 1; j < m; j++) sum += (double)(float)taps[j] * (double)in[i + m - 1 - j];
      out[i] = prim_plain_nan_f32((float)sum);
      continue;
    }
    for (size_t j = 0; j < m; j++) {
      c[j] = (float)taps[j];
      reversed[j] = in[i + m - 1 - j];
    }
    out[i] = prim_tree_f32(c, reversed, (int32_t)m);
  }
}

static void convolve_f64_ref(const void *x, void *y, size_t n, const double *taps, size_t m) {
  const double *in = x;
  double *out = y, reversed[PRIM_TREE_TAPS_MAX];
  for (size_t i = 0; i < n; i++) {
    if (m > PRIM_TREE_TAPS_MAX) {
      prim_dot dot = prim_dot_start(taps[0], in[i + m - 1]);
      for (size_t j = 1; j < m; j++) dot = prim_dot_step(dot, taps[j], in[i + m - 1 - j]);
      out[i] = prim_dot_end(dot);
      continue;
    }
    for (size_t j = 0; j < m; j++) reversed[j] = in[i + m - 1 - j];
    out[i] = prim_tree_f64(taps, reversed, (int32_t)m);
  }
}

void dot_bytes_ref(dot_vectors asking, dot_vectors answering, size_t length,
                   int32_t products[DOT_ASKING][DOT_ANSWERS]) {
  for (size_t r = 0; r < DOT_ASKING; r++)
    for (size_t k = 0; k < DOT_ANSWERS; k++) {
      const int8_t *one = asking.first + r * asking.stride, *other = answering.first + k * answering.stride;
      int32_t sum = 0;
      for (size_t i = 0; i < length; i++) sum += one[i] * other[i];
      products[r][k] = sum;
    }
}

const prim_ops prim_ops_ref = {
    .name = "ref",
    .sum = {sum_u8_ref, sum_u16_ref},
    .sum_chunks = {sum_chunks_f32_ref, sum_chunks_f64_ref},
    .range = {range_u8_ref, range_u16_ref, range_f32_ref, range_f64_ref},
    .count_above = {count_above_u8_ref, count_above_u16_ref, count_above_f32_ref, count_above_f64_ref},
    .tile_u8 = tile_u8_ref,
    .histogram = histogram_ref,
    .map = map_ref,
    .convolve = {convolve_f32_ref, convolve_f64_ref},
};

void project_ref(const double *vector, size_t length, const double *axes, size_t count, double *values) {
  for (size_t k = 0; k < count; k++) values[k] = 0.0;
  for (size_t i = 0; i < length; i++)
    for (size_t k = 0; k < count; k++) values[k] += vector[i] * axes[i * count + k];
}
