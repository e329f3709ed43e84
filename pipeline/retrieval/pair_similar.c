/* Pairs of images whose vectors are nearest: all of them compared, block by block. */
#include <math.h>

#include "cpu/float_environment.h"
#include "cpu/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/context.h"
#include "pipeline/retrieval/image_pairs.h"

/* Vectors that are compared with each other while they are in the cache. */
enum { ASKING_BLOCK = 16, ANSWERING_BLOCK = 16, LENGTH_MAX = 65536 };

typedef struct similar_search {
  const int8_t *vectors;
  size_t count, length;
  uint32_t neighbors;
  double *scale;   /* [count]: 1 / length of the vector as a vector of numbers; 0: all 0 */
  neighbor *near;  /* [count][neighbors] */
  uint32_t *found; /* [count] */
} similar_search;

static int32_t dot(const int8_t *a, const int8_t *b, size_t length) {
  int32_t sum = 0;
  for (size_t i = 0; i < length; i++) sum += a[i] * b[i];
  return sum;
}

static void compare_blocks(similar_search *s, size_t asking, size_t asking_end, size_t answering,
                           size_t answering_end) {
  for (size_t i = asking; i < asking_end; i++) {
    if (s->scale[i] == 0.0) continue;
    for (size_t k = answering; k < answering_end; k++) {
      if (k == i || s->scale[k] == 0.0) continue;
      const int32_t product = dot(s->vectors + i * s->length, s->vectors + k * s->length, s->length);
      /* The cosine but for the asking vector's length, which is the same for all. */
      const neighbor offered = {-(double)product * s->scale[k], (uint32_t)k};
      neighbor_offer(s->near + i * s->neighbors, &s->found[i], s->neighbors, offered);
    }
  }
}

static void compare_chunk(void *job, int32_t chunk, int32_t worker) {
  similar_search *s = job;
  const size_t asking = (size_t)chunk * ASKING_BLOCK;
  const size_t asking_end = s->count - asking < ASKING_BLOCK ? s->count : asking + ASKING_BLOCK;
  (void)worker;
  for (size_t at = 0; at < s->count; at += ANSWERING_BLOCK)
    compare_blocks(s, asking, asking_end, at, s->count - at < ANSWERING_BLOCK ? s->count : at + ANSWERING_BLOCK);
}

static void scale_chunk(void *job, int32_t chunk, int32_t worker) {
  similar_search *s = job;
  const size_t first = (size_t)chunk * ASKING_BLOCK;
  (void)worker;
  for (size_t i = first; i < s->count && i < first + ASKING_BLOCK; i++) {
    const int8_t *vector = s->vectors + i * s->length;
    const int32_t square = dot(vector, vector, s->length);
    s->scale[i] = square > 0 ? 1.0 / sqrt((double)square) : 0.0;
    s->found[i] = 0;
  }
}

static bool add_found(const similar_search *s, hs_image_pairs *pairs) {
  for (size_t i = 0; i < s->count; i++)
    for (uint32_t k = 0; k < s->found[i]; k++)
      if (!image_pairs_add(pairs, (uint32_t)i, s->near[i * s->neighbors + k].image)) return false;
  return true;
}

static hs_status search(hs_context *context, similar_search *s, hs_image_pairs *pairs) {
  stage_queue *queue = context ? context->queue : NULL;
  const int32_t chunks = (int32_t)((s->count + ASKING_BLOCK - 1) / ASKING_BLOCK);
  queue_run(queue, chunks, scale_chunk, s);
  queue_run(queue, chunks, compare_chunk, s);
  if (!add_found(s, pairs)) {
    pairs->count = 0;
    return HS_ERR_MEMORY;
  }
  image_pairs_settle(pairs);
  return HS_OK;
}

hs_status hs_pair_similar(hs_context *context, const int8_t *vectors, size_t count, size_t length, uint32_t neighbors,
                          hs_image_pairs *pairs) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  size_t near_bytes;
  if (!pairs || (!vectors && count > 0) || length == 0 || length > LENGTH_MAX) return HS_ERR_ARGUMENT;
  pairs->count = 0;
  if (count < 2 || neighbors == 0) return HS_OK;
  if (neighbors > count - 1) neighbors = (uint32_t)(count - 1);
  if (count > INT32_MAX || !hs_size_mul(count, (size_t)neighbors * sizeof(neighbor), &near_bytes)) return HS_ERR_LIMIT;
  const hs_allocator *allocator = pairs->allocator;
  similar_search s = {.vectors = vectors, .count = count, .length = length, .neighbors = neighbors};
  s.scale = hs_memory_alloc(allocator, count * sizeof *s.scale);
  s.found = hs_memory_alloc(allocator, count * sizeof *s.found);
  s.near = hs_memory_alloc(allocator, near_bytes);
  hs_status status = s.scale && s.found && s.near ? HS_OK : HS_ERR_MEMORY;
  if (status == HS_OK && context) status = context_start_queue(context);
  if (status == HS_OK) status = search(context, &s, pairs);
  hs_memory_release(allocator, s.scale);
  hs_memory_release(allocator, s.found);
  hs_memory_release(allocator, s.near);
  return status;
}
