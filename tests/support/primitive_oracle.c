/* Computes the primitives by plain loops; see primitive_oracle.h. */
#include "tests/support/primitive_oracle.h"

#include <math.h>
#include <stdlib.h>

static size_t element_bytes(hs_element type) {
  static const size_t bytes[] = {1, 2, 4, 8};
  return bytes[type];
}

static size_t stride_of(const hs_array *a) {
  return a->stride_bytes ? a->stride_bytes : a->width * element_bytes(a->type);
}

double oracle_element(const hs_array *a, size_t x, size_t y) {
  const unsigned char *at = (const unsigned char *)a->data + y * stride_of(a) + x * element_bytes(a->type);
  switch (a->type) {
  case HS_ELEMENT_U8:
    return *at;
  case HS_ELEMENT_U16:
    return *(const uint16_t *)(const void *)at;
  case HS_ELEMENT_F32:
    return (double)*(const float *)(const void *)at;
  default:
    return *(const double *)(const void *)at;
  }
}

hs_array oracle_part(const hs_array *a, size_t x, size_t y, size_t width, size_t height) {
  hs_array part = {.width = width, .height = height, .stride_bytes = stride_of(a), .type = a->type};
  part.data = (const unsigned char *)a->data + y * part.stride_bytes + x * element_bytes(a->type);
  return part;
}

/* Sums in the documented tree: 32 lanes for up to 1024 numbers, then the same for the sums. */
static double tree_sum(const double *x, size_t n) {
  if (n > 1024) {
    const size_t chunks = (n + 1023) / 1024;
    double *sums = malloc(chunks * sizeof *sums);
    for (size_t k = 0; k < chunks; k++) sums[k] = tree_sum(x + 1024 * k, n - 1024 * k < 1024 ? n - 1024 * k : 1024);
    const double sum = tree_sum(sums, chunks);
    free(sums);
    return sum;
  }
  double lane[32] = {0.0};
  for (size_t i = 0; i < n; i++) lane[i & 31] += x[i];
  for (int l = 0; l < 16; l++) lane[l] += lane[l + 16];
  for (int l = 0; l < 8; l++) lane[l] += lane[l + 8];
  for (int l = 0; l < 4; l++) lane[l] += lane[l + 4];
  return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

oracle_figures oracle_reduce(const hs_array *a, double threshold) {
  oracle_figures o = {.figures = {.min = (double)NAN, .max = (double)NAN}};
  const size_t n = a->width * a->height;
  double *all = malloc(n * sizeof *all);
  for (size_t y = 0, i = 0; y < a->height; y++)
    for (size_t x = 0; x < a->width; x++, i++) {
      const double v = all[i] = oracle_element(a, x, y);
      o.sum += (long double)v;
      o.magnitude += fabsl((long double)v);
      if (isnan(v)) continue;
      if (isnan(o.figures.min) || v < o.figures.min) o.figures.min = v + 0.0;
      if (isnan(o.figures.max) || v > o.figures.max) o.figures.max = v + 0.0;
      if (v > threshold) o.figures.above++;
    }
  o.figures.sum = a->type < HS_ELEMENT_F32 ? (double)o.sum : tree_sum(all, n);
  o.figures.mean = o.figures.sum / (double)n;
  free(all);
  return o;
}

double oracle_sample(const hs_array *signal, size_t row, long long i, hs_ends ends) {
  const long long last = (long long)signal->width - 1;
  if (ends == HS_ENDS_ZERO && (i < 0 || i > last)) return 0.0;
  if (ends == HS_ENDS_REPLICATE) i = i < 0 ? 0 : (i > last ? last : i);
  while (i < 0 || i > last) { /* reflects at both ends until the index is inside */
    if (last == 0) i = 0;
    if (i < 0) i = -i;
    if (i > last) i = 2 * last - i;
  }
  return oracle_element(signal, (size_t)i, row);
}

long double oracle_convolve(const hs_array *signal, size_t row, size_t i, const double *taps, size_t tap_count,
                            hs_ends ends, long double *magnitude) {
  long double sum = 0.0L;
  const long long radius = (long long)(tap_count / 2);
  *magnitude = 0.0L;
  for (size_t j = 0; j < tap_count; j++) {
    const double tap = signal->type == HS_ELEMENT_F32 ? (double)(float)taps[j] : taps[j];
    const double x = oracle_sample(signal, row, (long long)i + radius - (long long)j, ends);
    sum += (long double)tap * (long double)x;
    *magnitude += fabsl((long double)tap * (long double)x);
  }
  return sum;
}
