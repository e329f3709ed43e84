/* Image vectors from descriptors, and pairs of similar images; see hartsift_retrieval.h. */
#include <math.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/context.h"
#include "pipeline/matching/retrieval/image_pairs.h"
#include "pipeline/matching/retrieval/vocabulary.h"

/* Working memory for describing an image. */
typedef struct description {
  hs_nearest *nearest; /* [ASSIGN_BLOCK] */
  int32_t *block;      /* [centres][SIFT_LENGTH]: sums of residuals over a block of descriptors */
  double *sums;        /* [centres][SIFT_LENGTH]: sums of residuals over all descriptors; integers */
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

/* Projects the residual of a centre on the axes, normalises it to unit length, then takes square roots. */
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

/* ---- Pairs of images with the nearest vectors: all pairs are compared, block by block. */

/* Number of vectors in a block, which are compared while they are in the cache. */
enum { ASKING_BLOCK = 16, ANSWERING_BLOCK = 16 };

typedef struct similar_search {
  const int8_t *vectors;
  size_t count, length;
  uint32_t neighbors;
  dot_bytes_function dot;
  double *scale;   /* [count]: 1 / length of the vector; 0: all its entries are 0 */
  neighbor *near;  /* [count][neighbors] */
  uint32_t *found; /* [count] */
} similar_search;

static void offer(const similar_search *s, size_t asking, size_t answering, int32_t product) {
  if (answering == asking || s->scale[answering] == 0.0) return;
  /* distance: minus the cosine, times the length of the asking vector, which is constant */
  const neighbor offered = {-(double)product * s->scale[answering], (uint32_t)answering};
  neighbor_offer(s->near + asking * s->neighbors, &s->found[asking], s->neighbors, offered);
}

static void compare_with_block(const similar_search *s, size_t asking, size_t first, size_t end) {
  const int8_t *vector = s->vectors + asking * s->length;
  int32_t products[DOT_ANSWERS];
  size_t k = first;
  for (; end - k >= DOT_ANSWERS; k += DOT_ANSWERS) {
    s->dot(vector, s->vectors + k * s->length, s->length, s->length, products);
    for (size_t i = 0; i < DOT_ANSWERS; i++) offer(s, asking, k + i, products[i]);
  }
  for (; k < end; k++) { /* remaining vectors, one by one, with stride 0 */
    s->dot(vector, s->vectors + k * s->length, 0, s->length, products);
    offer(s, asking, k, products[0]);
  }
}

static int32_t chunks_of(const similar_search *s) { return (int32_t)((s->count + ASKING_BLOCK - 1) / ASKING_BLOCK); }

static void compare_chunk(void *job, int32_t chunk, int32_t worker) {
  similar_search *s = job;
  const size_t asking = (size_t)chunk * ASKING_BLOCK;
  (void)worker;
  for (size_t at = 0; at < s->count; at += ANSWERING_BLOCK)
    for (size_t i = asking; i < s->count && i < asking + ASKING_BLOCK; i++)
      if (s->scale[i] != 0.0)
        compare_with_block(s, i, at, s->count - at < ANSWERING_BLOCK ? s->count : at + ANSWERING_BLOCK);
}

static void scale_chunk(void *job, int32_t chunk, int32_t worker) {
  similar_search *s = job;
  const size_t first = (size_t)chunk * ASKING_BLOCK;
  int32_t squares[DOT_ANSWERS];
  (void)worker;
  for (size_t i = first; i < s->count && i < first + ASKING_BLOCK; i++) {
    const int8_t *vector = s->vectors + i * s->length;
    s->dot(vector, vector, 0, s->length, squares);
    s->scale[i] = squares[0] > 0 ? 1.0 / sqrt((double)squares[0]) : 0.0;
    s->found[i] = 0;
  }
}

/* Allocates memory, and finds the neighbours of every image. Call end_search in any case, which frees the memory. */
static hs_status find_neighbors(hs_context *context, const hs_allocator *allocator, similar_search *s) {
  size_t near_bytes;
  s->dot = cpu_choose_dot();
  if (!s->dot) return HS_ERR_OPTION;
  if (s->neighbors > s->count - 1) s->neighbors = (uint32_t)(s->count - 1);
  if (s->count > INT32_MAX || !hs_size_mul(s->count, (size_t)s->neighbors * sizeof(neighbor), &near_bytes))
    return HS_ERR_LIMIT;
  s->scale = hs_memory_alloc(allocator, s->count * sizeof *s->scale);
  s->found = hs_memory_alloc(allocator, s->count * sizeof *s->found);
  s->near = hs_memory_alloc(allocator, near_bytes);
  if (!s->scale || !s->found || !s->near) return HS_ERR_MEMORY;
  const hs_status status = context ? context_start_queue(context) : HS_OK;
  if (status != HS_OK) return status;
  queue_run(context ? context->queue : NULL, chunks_of(s), scale_chunk, s);
  queue_run(context ? context->queue : NULL, chunks_of(s), compare_chunk, s);
  return HS_OK;
}

static void end_search(const hs_allocator *allocator, similar_search *s) {
  hs_memory_release(allocator, s->scale);
  hs_memory_release(allocator, s->found);
  hs_memory_release(allocator, s->near);
}

/* ------------------------------------------------------------------ pairs */

static bool add_found(const similar_search *s, hs_image_pairs *pairs) {
  for (size_t i = 0; i < s->count; i++)
    for (uint32_t k = 0; k < s->found[i]; k++)
      if (!image_pairs_add(pairs, (uint32_t)i, s->near[i * s->neighbors + k].image)) return false;
  return true;
}

hs_status hs_pair_similar(hs_context *context, const int8_t *vectors, size_t count, size_t length, uint32_t neighbors,
                          hs_image_pairs *pairs) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!pairs || (!vectors && count > 0) || length == 0 || length > DOT_LENGTH_MAX) return HS_ERR_ARGUMENT;
  pairs->count = 0;
  if (count < 2 || neighbors == 0) return HS_OK;
  similar_search s = {.vectors = vectors, .count = count, .length = length, .neighbors = neighbors};
  hs_status status = find_neighbors(context, pairs->allocator, &s);
  if (status == HS_OK && !add_found(&s, pairs)) status = HS_ERR_MEMORY;
  if (status == HS_OK)
    image_pairs_settle(pairs);
  else
    pairs->count = 0;
  end_search(pairs->allocator, &s);
  return status;
}

/* ------------------------------------------------------------------ blended vectors */

typedef struct blend_job {
  similar_search search;
  double *sums; /* [threads][length] */
  int8_t *blended;
} blend_job;

static void add_vector(const similar_search *s, size_t image, double weight, double *sums) {
  const int8_t *vector = s->vectors + image * s->length;
  const double scale = weight * s->scale[image];
  for (size_t i = 0; i < s->length; i++) sums[i] += scale * vector[i];
}

static void blend_chunk(void *job, int32_t chunk, int32_t worker) {
  const blend_job *b = job;
  const similar_search *s = &b->search;
  double *sums = b->sums + (size_t)worker * s->length;
  const size_t first = (size_t)chunk * ASKING_BLOCK;
  for (size_t i = first; i < s->count && i < first + ASKING_BLOCK; i++) {
    memset(sums, 0, s->length * sizeof *sums);
    add_vector(s, i, 1.0, sums);
    for (uint32_t k = 0; k < s->found[i]; k++) {
      const neighbor *n = &s->near[i * s->neighbors + k];
      const double cosine = -n->distance * s->scale[i];
      if (cosine > 0.0) add_vector(s, n->image, cosine, sums);
    }
    rounded_vector(sums, s->length, b->blended + i * s->length);
  }
}

hs_status hs_blend_similar(hs_context *context, const int8_t *vectors, size_t count, size_t length, uint32_t neighbors,
                           int8_t *blended) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  size_t bytes;
  if (((!vectors || !blended) && count > 0) || length == 0 || length > DOT_LENGTH_MAX) return HS_ERR_ARGUMENT;
  if (count == 0) return HS_OK;
  if (!hs_size_mul(count, length, &bytes)) return HS_ERR_LIMIT;
  if (count == 1 || neighbors == 0) {
    memcpy(blended, vectors, bytes);
    return HS_OK;
  }
  const hs_allocator *allocator = context ? context->options.allocator : NULL;
  blend_job b = {.search = {.vectors = vectors, .count = count, .length = length, .neighbors = neighbors},
                 .blended = blended};
  hs_status status = find_neighbors(context, allocator, &b.search);
  stage_queue *queue = context ? context->queue : NULL;
  if (status == HS_OK) {
    b.sums = hs_memory_alloc(allocator, (size_t)queue_threads(queue) * length * sizeof *b.sums);
    if (!b.sums) status = HS_ERR_MEMORY;
  }
  if (status == HS_OK) queue_run(queue, chunks_of(&b.search), blend_chunk, &b);
  hs_memory_release(allocator, b.sums);
  end_search(allocator, &b.search);
  return status;
}
