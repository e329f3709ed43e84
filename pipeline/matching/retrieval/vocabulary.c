/* Creation and training of retrieval handles; see vocabulary.h. */
#include "pipeline/matching/retrieval/vocabulary.h"

#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"

enum {
  CENTRES_MAX = 4096,
  ROUNDS_MAX = 1000,
  FIRST_SAMPLE = 4096,
  SHARING_A_CENTRE = 8 /* minimum number of descriptors per centre */
};

OPTIONS_END_WITH(hs_retrieval_options, allocator);
static const options_kind kind = OPTIONS_KIND(hs_retrieval_options, centres);
static const hs_retrieval_options defaults = {
    .struct_size = sizeof defaults, .centres = 256, .components = 32, .rounds = 15};

hs_status hs_retrieval_options_init_sized(hs_retrieval_options *options, size_t struct_size) {
  return options_give(options, struct_size, &defaults, kind);
}

static bool are_valid(const hs_retrieval_options *o) {
  return o->centres >= 1 && o->centres <= CENTRES_MAX && o->components >= 1 && o->components <= SIFT_LENGTH &&
         o->centres * o->components <= DOT_LENGTH_MAX && o->rounds >= 1 && o->rounds <= ROUNDS_MAX && o->reserved == 0;
}

hs_status hs_retrieval_create(hs_retrieval **retrieval, const hs_retrieval_options *options) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  char reason[ADOPT_REASON_BYTES];
  hs_retrieval_options o = defaults;
  if (!retrieval) return HS_ERR_ARGUMENT;
  *retrieval = NULL;
  if (options && options_adopt(&o, options, kind, reason) != HS_OK) return HS_ERR_OPTION;
  if (!are_valid(&o)) return HS_ERR_OPTION;
  hs_retrieval *made = hs_memory_alloc(o.allocator, sizeof *made);
  if (!made) return HS_ERR_MEMORY;
  *made = (hs_retrieval){.options = o};
  made->centres = hs_memory_alloc(o.allocator, (size_t)o.centres * SIFT_LENGTH);
  made->axes = hs_memory_alloc(o.allocator, (size_t)o.components * SIFT_LENGTH * sizeof *made->axes);
  if (!made->centres || !made->axes) {
    hs_retrieval_destroy(made);
    return HS_ERR_MEMORY;
  }
  *retrieval = made;
  return HS_OK;
}

void hs_retrieval_destroy(hs_retrieval *r) {
  if (!r) return;
  const hs_allocator *allocator = r->options.allocator;
  hs_memory_release(allocator, r->sample);
  hs_memory_release(allocator, r->centres);
  hs_memory_release(allocator, r->axes);
  hs_memory_release(allocator, r);
}

size_t hs_retrieval_length(const hs_retrieval *r) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return r ? (size_t)r->options.centres * (size_t)r->options.components : 0;
}

/* ------------------------------------------------------------------ the sample */

static hs_status grow_sample(hs_retrieval *r, size_t count) {
  if (count <= r->sample_capacity) return HS_OK;
  size_t capacity = r->sample_capacity < FIRST_SAMPLE ? FIRST_SAMPLE : 2 * r->sample_capacity, bytes;
  if (capacity < count) capacity = count;
  if (capacity > INT32_MAX || !hs_size_mul(capacity, SIFT_LENGTH, &bytes)) return HS_ERR_LIMIT;
  uint8_t *larger = hs_memory_alloc(r->options.allocator, bytes);
  if (!larger) return HS_ERR_MEMORY;
  if (r->sample_count > 0) memcpy(larger, r->sample, r->sample_count * SIFT_LENGTH);
  hs_memory_release(r->options.allocator, r->sample);
  r->sample = larger;
  r->sample_capacity = capacity;
  return HS_OK;
}

hs_status hs_retrieval_sample(hs_retrieval *r, const hs_features *features, size_t count) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!r || !features || r->centre_count > 0) return HS_ERR_ARGUMENT;
  if (features->count == 0 || count == 0) return HS_OK;
  if (features->descriptor_type != HS_DESCRIPTOR_U8 || !features->descriptors) return HS_ERR_ARGUMENT;
  if (features->count > UINT32_MAX) return HS_ERR_LIMIT;
  const uint8_t *descriptors = features->descriptors;
  const uint64_t of = features->count, taken = count < of ? count : of;
  const hs_status status = grow_sample(r, r->sample_count + (size_t)taken);
  if (status != HS_OK) return status;
  for (uint64_t i = 0; i < taken; i++) {
    const size_t at = (size_t)((2 * i + 1) * of / (2 * taken));
    memcpy(r->sample + r->sample_count++ * SIFT_LENGTH, descriptors + at * SIFT_LENGTH, SIFT_LENGTH);
  }
  return HS_OK;
}

/* ------------------------------------------------------------------ k-means */

typedef struct clusters {
  int64_t *sums;       /* [centres][SIFT_LENGTH] */
  size_t *sizes;       /* [centres] */
  hs_nearest *nearest; /* [ASSIGN_BLOCK] */
  float *distances;    /* [sample_count]: squared distance of each descriptor to its centre */
} clusters;

static hs_status assign_sample(const hs_retrieval *r, hs_context *context, clusters *c) {
  memset(c->sums, 0, r->centre_count * SIFT_LENGTH * sizeof *c->sums);
  memset(c->sizes, 0, r->centre_count * sizeof *c->sizes);
  for (size_t at = 0; at < r->sample_count; at += ASSIGN_BLOCK) {
    const size_t count = r->sample_count - at < ASSIGN_BLOCK ? r->sample_count - at : ASSIGN_BLOCK;
    const uint8_t *block = r->sample + at * SIFT_LENGTH;
    const hs_status status = vocabulary_assign(r, context, block, count, c->nearest);
    if (status != HS_OK) return status;
    for (size_t i = 0; i < count; i++) {
      int64_t *sum = c->sums + (size_t)c->nearest[i].nearest * SIFT_LENGTH;
      for (int k = 0; k < SIFT_LENGTH; k++) sum[k] += block[i * SIFT_LENGTH + (size_t)k];
      c->sizes[c->nearest[i].nearest]++;
      c->distances[at + i] = c->nearest[i].nearest_squared;
    }
  }
  return HS_OK;
}

/* Moves an empty centre to the descriptor that is farthest from its current centre. */
static void move_to_farthest(const hs_retrieval *r, clusters *c, uint8_t *centre) {
  size_t farthest = 0;
  for (size_t i = 1; i < r->sample_count; i++)
    if (c->distances[i] > c->distances[farthest]) farthest = i;
  memcpy(centre, r->sample + farthest * SIFT_LENGTH, SIFT_LENGTH);
  c->distances[farthest] = 0.0f;
}

/* Moves each centre to the rounded mean of its descriptors. Returns whether any centre moved. */
static bool move_centres(const hs_retrieval *r, clusters *c) {
  bool moved = false;
  for (uint32_t i = 0; i < r->centre_count; i++) {
    uint8_t mean[SIFT_LENGTH], *centre = r->centres + (size_t)i * SIFT_LENGTH;
    const int64_t size = (int64_t)c->sizes[i];
    if (size == 0)
      move_to_farthest(r, c, mean);
    else
      for (int k = 0; k < SIFT_LENGTH; k++)
        mean[k] = (uint8_t)((2 * c->sums[(size_t)i * SIFT_LENGTH + (size_t)k] + size) / (2 * size));
    moved = moved || memcmp(centre, mean, SIFT_LENGTH) != 0;
    memcpy(centre, mean, SIFT_LENGTH);
  }
  return moved;
}

static hs_status find_centres(hs_retrieval *r, hs_context *context, clusters *c) {
  /* If a centre has few descriptors, perhaps all of one object, it coincides with them. Their residuals are then 0, and
     their images would not be similar to any other. */
  const size_t wanted = (size_t)r->options.centres, most = 1 + r->sample_count / SHARING_A_CENTRE;
  const size_t count = wanted < most ? wanted : most;
  r->centre_count = (uint32_t)count;
  for (size_t i = 0; i < count; i++)
    memcpy(r->centres + i * SIFT_LENGTH, r->sample + (2 * i + 1) * r->sample_count / (2 * count) * SIFT_LENGTH,
           SIFT_LENGTH);
  for (int32_t round = 0; round < r->options.rounds; round++) {
    const hs_status status = assign_sample(r, context, c);
    if (status != HS_OK) return status;
    if (!move_centres(r, c)) break;
  }
  return HS_OK;
}

hs_status hs_retrieval_train(hs_retrieval *r, hs_context *context) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!r || r->centre_count > 0 || r->sample_count == 0) return HS_ERR_ARGUMENT;
  const hs_allocator *allocator = r->options.allocator;
  const size_t centres = (size_t)r->options.centres;
  clusters c = {.sums = hs_memory_alloc(allocator, centres * SIFT_LENGTH * sizeof *c.sums),
                .sizes = hs_memory_alloc(allocator, centres * sizeof *c.sizes),
                .nearest = hs_memory_alloc(allocator, ASSIGN_BLOCK * sizeof *c.nearest),
                .distances = hs_memory_alloc(allocator, r->sample_count * sizeof *c.distances)};
  hs_status status = c.sums && c.sizes && c.nearest && c.distances ? HS_OK : HS_ERR_MEMORY;
  if (status == HS_OK) status = find_centres(r, context, &c);
  hs_memory_release(allocator, c.sums);
  hs_memory_release(allocator, c.sizes);
  hs_memory_release(allocator, c.nearest);
  hs_memory_release(allocator, c.distances);
  if (status == HS_OK) status = vocabulary_find_axes(r, context);
  if (status != HS_OK) {
    r->centre_count = 0;
    return status;
  }
  hs_memory_release(allocator, r->sample);
  r->sample = NULL;
  r->sample_count = r->sample_capacity = 0;
  return HS_OK;
}
