/* One vector for all descriptors of an image; see hartsift_retrieval.h. */
#include "pipeline/retrieval/vocabulary.h"

#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/memory.h"
#include "pipeline/retrieval/rounded_vector.h"

/* What describing an image works in. */
typedef struct description {
  hs_nearest *nearest; /* [ASSIGN_BLOCK] */
  int32_t *block;      /* [centres][SIFT_LENGTH]: sums of residuals of a block */
  double *sums;        /* [centres][SIFT_LENGTH]: of all; whole numbers */
  double *values;      /* [centres][components] */
} description;

static hs_status add_block(const hs_retrieval *r, hs_context *context, const uint8_t *descriptors, size_t count,
                           description *d) {
  const size_t numbers = r->centre_count * SIFT_LENGTH;
  const hs_status status = vocabulary_assign(r, context, descriptors, count, d->nearest);
  if (status != HS_OK) return status;
  memset(d->block, 0, numbers * sizeof *d->block);
  for (size_t n = 0; n < count; n++) {
    const size_t centre = (size_t)d->nearest[n].nearest * SIFT_LENGTH;
    const uint8_t *from = r->centres + centre, *one = descriptors + n * SIFT_LENGTH;
    for (size_t i = 0; i < SIFT_LENGTH; i++) d->block[centre + i] += one[i] - from[i];
  }
  for (size_t i = 0; i < numbers; i++) d->sums[i] += (double)d->block[i];
  return HS_OK;
}

/* A centre's residual along the axes, of unit length, then square roots. */
static void normalize_centre(const hs_retrieval *r, const double *sums, double *values) {
  const size_t components = (size_t)r->options.components;
  double squares = 0.0;
  memset(values, 0, components * sizeof *values);
  for (size_t i = 0; i < SIFT_LENGTH; i++)
    for (size_t k = 0; k < components; k++) values[k] += sums[i] * r->axes[i * components + k];
  for (size_t k = 0; k < components; k++) squares += values[k] * values[k];
  const double scale = squares > 0.0 ? 1.0 / sqrt(squares) : 0.0;
  for (size_t k = 0; k < components; k++) {
    const double root = sqrt(fabs(values[k]) * scale);
    values[k] = values[k] < 0.0 ? -root : root;
  }
}

static hs_status describe(const hs_retrieval *r, hs_context *context, const hs_features *features, description *d,
                          int8_t *vector) {
  const size_t components = (size_t)r->options.components, length = hs_retrieval_length(r);
  const uint8_t *descriptors = features->descriptors;
  memset(d->sums, 0, r->centre_count * SIFT_LENGTH * sizeof *d->sums);
  memset(d->values, 0, length * sizeof *d->values);
  for (size_t at = 0; at < features->count; at += ASSIGN_BLOCK) {
    const size_t count = features->count - at < ASSIGN_BLOCK ? features->count - at : ASSIGN_BLOCK;
    const hs_status status = add_block(r, context, descriptors + at * SIFT_LENGTH, count, d);
    if (status != HS_OK) return status;
  }
  for (size_t i = 0; i < r->centre_count; i++)
    normalize_centre(r, d->sums + i * SIFT_LENGTH, d->values + i * components);
  rounded_vector(d->values, length, vector);
  return HS_OK;
}

hs_status hs_retrieval_describe(const hs_retrieval *r, hs_context *context, const hs_features *features,
                                int8_t *vector) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!r || !features || !vector || r->centre_count == 0) return HS_ERR_ARGUMENT;
  const size_t length = hs_retrieval_length(r);
  if (features->count == 0) {
    memset(vector, 0, length);
    return HS_OK;
  }
  if (features->descriptor_type != HS_DESCRIPTOR_U8 || !features->descriptors) return HS_ERR_ARGUMENT;
  const hs_allocator *allocator = r->options.allocator;
  const size_t block = features->count < ASSIGN_BLOCK ? features->count : ASSIGN_BLOCK;
  const size_t numbers = r->centre_count * SIFT_LENGTH;
  description d = {.nearest = hs_memory_alloc(allocator, block * sizeof *d.nearest),
                   .block = hs_memory_alloc(allocator, numbers * sizeof *d.block),
                   .sums = hs_memory_alloc(allocator, (numbers + length) * sizeof *d.sums)};
  hs_status status = d.nearest && d.block && d.sums ? HS_OK : HS_ERR_MEMORY;
  if (status == HS_OK) {
    d.values = d.sums + numbers;
    status = describe(r, context, features, &d, vector);
  }
  hs_memory_release(allocator, d.nearest);
  hs_memory_release(allocator, d.block);
  hs_memory_release(allocator, d.sums);
  return status;
}
