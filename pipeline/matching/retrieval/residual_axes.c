/* Principal components of the descriptors' residuals at their centres. */
#include "pipeline/matching/retrieval/vocabulary.h"

#include <math.h>
#include <string.h>

#include "pipeline/base/memory.h"

/* Maximum block size for which sums of products fit 32 bits: 512 * 255^2 < 2^25. */
enum { COVARIANCE_BLOCK = 512, SWEEPS_MAX = 30 };
/* Directions with less than this share of the largest spread are scaled as if they had this share. */
static const double least_spread = 1e-6;

/* ------------------------------------------------------------------ eigenvalues */

/* Makes one Jacobi rotation (Golub and Van Loan, section 8.5), after which element (p, q) is 0. */
static void rotate(double *m, double *vectors, size_t p, size_t q) {
  enum { N = SIFT_LENGTH };
  const double off = m[p * N + q];
  if (off == 0.0) return;
  const double theta = (m[q * N + q] - m[p * N + p]) / (2.0 * off);
  const double t = (theta < 0.0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
  const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
  for (size_t k = 0; k < N; k++) {
    const double a = m[p * N + k], b = m[q * N + k], u = vectors[p * N + k], v = vectors[q * N + k];
    m[p * N + k] = c * a - s * b;
    m[q * N + k] = s * a + c * b;
    vectors[p * N + k] = c * u - s * v;
    vectors[q * N + k] = s * u + c * v;
  }
  for (size_t k = 0; k < N; k++) {
    const double a = m[k * N + p], b = m[k * N + q];
    m[k * N + p] = c * a - s * b;
    m[k * N + q] = s * a + c * b;
  }
}

static bool is_diagonal(const double *m) {
  double diagonal = 0.0, rest = 0.0;
  for (size_t i = 0; i < SIFT_LENGTH; i++)
    for (size_t k = 0; k < SIFT_LENGTH; k++) {
      const double square = m[i * SIFT_LENGTH + k] * m[i * SIFT_LENGTH + k];
      if (i == k)
        diagonal += square;
      else
        rest += square;
    }
  return rest <= 1e-24 * diagonal;
}

void symmetric_eigen(double *matrix, double *values, double *vectors) {
  memset(vectors, 0, SIFT_LENGTH * SIFT_LENGTH * sizeof *vectors);
  for (size_t i = 0; i < SIFT_LENGTH; i++) vectors[i * SIFT_LENGTH + i] = 1.0;
  for (int sweep = 0; sweep < SWEEPS_MAX && !is_diagonal(matrix); sweep++)
    for (size_t p = 0; p + 1 < SIFT_LENGTH; p++)
      for (size_t q = p + 1; q < SIFT_LENGTH; q++) rotate(matrix, vectors, p, q);
  for (size_t i = 0; i < SIFT_LENGTH; i++) values[i] = matrix[i * SIFT_LENGTH + i];
  for (size_t i = 0; i < SIFT_LENGTH; i++) {
    size_t largest = i;
    double row[SIFT_LENGTH];
    for (size_t k = i + 1; k < SIFT_LENGTH; k++)
      if (values[k] > values[largest]) largest = k;
    const double value = values[i];
    values[i] = values[largest];
    values[largest] = value;
    memcpy(row, vectors + i * SIFT_LENGTH, sizeof row);
    memcpy(vectors + i * SIFT_LENGTH, vectors + largest * SIFT_LENGTH, sizeof row);
    memcpy(vectors + largest * SIFT_LENGTH, row, sizeof row);
  }
}

/* ------------------------------------------------------------------ covariance */

typedef struct spread {
  int64_t *products;                      /* [SIFT_LENGTH][SIFT_LENGTH], upper half */
  int16_t (*residuals)[COVARIANCE_BLOCK]; /* [SIFT_LENGTH] */
  hs_nearest *nearest;                    /* [ASSIGN_BLOCK] */
  double *covariance, *vectors, *values;
} spread;

static void add_products(spread *s, size_t count) {
  for (size_t i = 0; i < SIFT_LENGTH; i++) {
    for (size_t k = i; k < SIFT_LENGTH; k++) {
      int32_t sum = 0;
      for (size_t n = 0; n < count; n++) sum += s->residuals[i][n] * s->residuals[k][n];
      s->products[i * SIFT_LENGTH + k] += sum;
    }
  }
}

static void add_block(const hs_retrieval *r, spread *s, const uint8_t *descriptors, const hs_nearest *nearest,
                      size_t count) {
  for (size_t n = 0; n < count; n++) {
    const uint8_t *d = descriptors + n * SIFT_LENGTH, *centre = r->centres + (size_t)nearest[n].nearest * SIFT_LENGTH;
    for (size_t i = 0; i < SIFT_LENGTH; i++) s->residuals[i][n] = (int16_t)(d[i] - centre[i]);
  }
  add_products(s, count);
}

static hs_status add_sample(const hs_retrieval *r, hs_context *context, spread *s) {
  for (size_t at = 0; at < r->sample_count; at += ASSIGN_BLOCK) {
    const size_t count = r->sample_count - at < ASSIGN_BLOCK ? r->sample_count - at : ASSIGN_BLOCK;
    const hs_status status = vocabulary_assign(r, context, r->sample + at * SIFT_LENGTH, count, s->nearest);
    if (status != HS_OK) return status;
    for (size_t i = 0; i < count; i += COVARIANCE_BLOCK)
      add_block(r, s, r->sample + (at + i) * SIFT_LENGTH, s->nearest + i,
                count - i < COVARIANCE_BLOCK ? count - i : COVARIANCE_BLOCK);
  }
  return HS_OK;
}

static void set_axes(hs_retrieval *r, spread *s) {
  const size_t components = (size_t)r->options.components;
  for (size_t i = 0; i < SIFT_LENGTH; i++)
    for (size_t k = i; k < SIFT_LENGTH; k++)
      s->covariance[i * SIFT_LENGTH + k] = s->covariance[k * SIFT_LENGTH + i] =
          (double)s->products[i * SIFT_LENGTH + k] / (double)r->sample_count;
  symmetric_eigen(s->covariance, s->values, s->vectors);
  const double floor_value = s->values[0] > 0.0 ? s->values[0] * least_spread : 1.0;
  for (size_t k = 0; k < components; k++) {
    const double scale = 1.0 / sqrt(s->values[k] > floor_value ? s->values[k] : floor_value);
    for (size_t i = 0; i < SIFT_LENGTH; i++) r->axes[i * components + k] = s->vectors[k * SIFT_LENGTH + i] * scale;
  }
}

hs_status vocabulary_find_axes(hs_retrieval *r, hs_context *context) {
  enum { SQUARE = SIFT_LENGTH * SIFT_LENGTH };
  const hs_allocator *allocator = r->options.allocator;
  spread s = {.products = hs_memory_alloc(allocator, SQUARE * sizeof *s.products),
              .residuals = hs_memory_alloc(allocator, SIFT_LENGTH * sizeof *s.residuals),
              .nearest = hs_memory_alloc(allocator, ASSIGN_BLOCK * sizeof *s.nearest),
              .covariance = hs_memory_alloc(allocator, (2 * SQUARE + SIFT_LENGTH) * sizeof *s.covariance)};
  hs_status status = s.products && s.residuals && s.nearest && s.covariance ? HS_OK : HS_ERR_MEMORY;
  if (status == HS_OK) {
    s.vectors = s.covariance + SQUARE;
    s.values = s.vectors + SQUARE;
    memset(s.products, 0, SQUARE * sizeof *s.products);
    status = add_sample(r, context, &s);
  }
  if (status == HS_OK) set_axes(r, &s);
  hs_memory_release(allocator, s.products);
  hs_memory_release(allocator, s.residuals);
  hs_memory_release(allocator, s.nearest);
  hs_memory_release(allocator, s.covariance);
  return status;
}
