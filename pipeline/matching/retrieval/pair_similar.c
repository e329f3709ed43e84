/* Pairs of images with similar vectors, and pairs that match best; see hartsift_retrieval.h. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/context/context.h"
#include "pipeline/include/hartsift_pairs.h"
#include "pipeline/matching/retrieval/image_pairs.h"
#include "pipeline/matching/retrieval/vocabulary.h"

/* ---- Pairs of images with the nearest vectors: all pairs are compared once, tile by tile. The vectors are divided
   into blocks. In a round, each block meets one other block or itself, so no two threads change a block's neighbours.
 */

enum {
  CACHED_VECTORS = 16, /* number of vectors that are compared while they are in the cache */
  BLOCK_MAX = 256,     /* maximum number of vectors in a block */
  BLOCKS_MIN = 32,     /* number of blocks of a small collection, to keep threads busy */
  SCALE_CHUNK = 16
};

typedef struct similar_search {
  const int8_t *vectors;
  size_t count, length;
  uint32_t neighbors;
  size_t block, blocks; /* number of vectors in a block, and of blocks */
  size_t round;         /* sum of the numbers of two blocks that meet, modulo `blocks` */
  dot_bytes_function dot;
  double *scale;   /* [count]: 1 / length of the vector; 0: all its entries are 0 */
  neighbor *near;  /* [count][neighbors] */
  uint32_t *found; /* [count] */
} similar_search;

static void offer(const similar_search *s, size_t asking, size_t answering, int32_t product) {
  /* distance: minus the cosine, times the length of the asking vector, which is constant */
  const neighbor offered = {-(double)product * s->scale[answering], (uint32_t)answering};
  neighbor_offer(s->near + asking * s->neighbors, &s->found[asking], s->neighbors, offered);
}

static void offer_both(const similar_search *s, size_t one, size_t other, int32_t product) {
  if (s->scale[one] == 0.0 || s->scale[other] == 0.0) return;
  offer(s, one, other, product);
  offer(s, other, one, product);
}

static dot_vectors vectors_from(const similar_search *s, size_t first, bool is_one) {
  return (dot_vectors){s->vectors + first * s->length, is_one ? 0 : s->length};
}

/* Compares the vectors i to i_end - 1 with the vectors k to k_end - 1. Within a block a vector is compared with later
 * ones only, so that each pair is compared once. */
static void compare_tile(const similar_search *s, size_t i, size_t i_end, size_t k, size_t k_end, bool is_same_block) {
  int32_t products[DOT_ASKING][DOT_ANSWERS];
  if (is_same_block && k_end <= i + 1) return;
  const bool is_full = i_end - i == DOT_ASKING && k_end - k == DOT_ANSWERS;
  if (is_full) s->dot(vectors_from(s, i, false), vectors_from(s, k, false), s->length, products);
  for (size_t a = i; a < i_end; a++)
    for (size_t b = is_same_block && k <= a ? a + 1 : k; b < k_end; b++) {
      if (!is_full) s->dot(vectors_from(s, a, true), vectors_from(s, b, true), s->length, products);
      offer_both(s, a, b, is_full ? products[a - i][b - k] : products[0][0]);
    }
}

static size_t smaller_of(size_t a, size_t b) { return a < b ? a : b; }

/* Compares a block with another, or the vectors of one block with each other. */
static void compare_blocks(const similar_search *s, size_t one, size_t other) {
  const size_t first = one * s->block, end = smaller_of(first + s->block, s->count);
  const size_t begin = other * s->block, limit = smaller_of(begin + s->block, s->count);
  for (size_t at = begin; at < limit; at += CACHED_VECTORS) {
    const size_t until = smaller_of(limit, at + CACHED_VECTORS);
    for (size_t i = first; i < end; i += DOT_ASKING)
      for (size_t k = at; k < until; k += DOT_ANSWERS)
        compare_tile(s, i, smaller_of(i + DOT_ASKING, end), k, smaller_of(k + DOT_ANSWERS, until), one == other);
  }
}

static void compare_task(void *job, int32_t chunk, int32_t worker) {
  const similar_search *s = job;
  const size_t one = (size_t)chunk, other = (s->round + s->blocks - one) % s->blocks;
  (void)worker;
  if (one <= other) compare_blocks(s, one, other);
}

static void scale_chunk(void *job, int32_t chunk, int32_t worker) {
  similar_search *s = job;
  const size_t first = (size_t)chunk * SCALE_CHUNK;
  int32_t squares[DOT_ASKING][DOT_ANSWERS];
  (void)worker;
  for (size_t i = first; i < s->count && i < first + SCALE_CHUNK; i++) {
    s->dot(vectors_from(s, i, true), vectors_from(s, i, true), s->length, squares);
    s->scale[i] = squares[0][0] > 0 ? 1.0 / sqrt((double)squares[0][0]) : 0.0;
    s->found[i] = 0;
  }
}

static int32_t chunks_of(const similar_search *s) { return (int32_t)((s->count + SCALE_CHUNK - 1) / SCALE_CHUNK); }

/* Allocates memory, and finds the neighbours of every image. Call end_search in any case, which frees the memory. */
static hs_status find_neighbors(hs_context *context, const hs_allocator *allocator, similar_search *s) {
  size_t near_bytes;
  if (context) context_clear_error(context);
  s->dot = cpu_choose_dot();
  if (!s->dot) return HS_ERR_OPTION;
  if (s->neighbors > s->count - 1) s->neighbors = (uint32_t)(s->count - 1);
  if (s->count > INT32_MAX || !hs_size_mul(s->count, (size_t)s->neighbors * sizeof(neighbor), &near_bytes))
    return HS_ERR_LIMIT;
  s->scale = hs_memory_alloc(allocator, s->count * sizeof *s->scale);
  s->found = hs_memory_alloc(allocator, s->count * sizeof *s->found);
  s->near = hs_memory_alloc(allocator, near_bytes);
  if (!s->scale || !s->found || !s->near) return HS_ERR_MEMORY;
  hs_status status = context ? context_start_queue(context) : HS_OK;
  if (status != HS_OK) return status;
  stage_queue *queue = context ? context->queue : NULL;
  queue_run(queue, chunks_of(s), scale_chunk, s);
  s->block = s->count / BLOCKS_MIN < BLOCK_MAX ? (s->count / BLOCKS_MIN / DOT_ASKING + 1) * DOT_ASKING : BLOCK_MAX;
  s->blocks = (s->count + s->block - 1) / s->block;
  for (s->round = 0; s->round < s->blocks && status == HS_OK; s->round++) {
    if (context) status = context_progress(context, s->round, s->blocks);
    if (status == HS_OK) queue_run(queue, (int32_t)s->blocks, compare_task, s);
  }
  return context && status == HS_OK ? context_progress(context, s->blocks, s->blocks) : status;
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

static int compare_neighbors(const void *left, const void *right) {
  const neighbor *a = left, *b = right;
  if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
  return (a->image > b->image) - (a->image < b->image);
}

static void blend_chunk(void *job, int32_t chunk, int32_t worker) {
  const blend_job *b = job;
  const similar_search *s = &b->search;
  double *sums = b->sums + (size_t)worker * s->length;
  const size_t first = (size_t)chunk * SCALE_CHUNK;
  for (size_t i = first; i < s->count && i < first + SCALE_CHUNK; i++) {
    memset(sums, 0, s->length * sizeof *sums);
    add_vector(s, i, 1.0, sums);
    /* the order of the sum must not depend on the order in which neighbours were found */
    qsort(s->near + i * s->neighbors, s->found[i], sizeof *s->near, compare_neighbors);
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

/* ------------------------------------------------------------------ vectors of other descriptions */

hs_status hs_round_vectors(const float *values, size_t count, size_t length, int8_t *vectors) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (((!values || !vectors) && count > 0) || length == 0 || length > DOT_LENGTH_MAX) return HS_ERR_ARGUMENT;
  for (size_t n = 0; n < count; n++) {
    const float *from = values + n * length;
    double largest = 0.0;
    for (size_t i = 0; i < length; i++) {
      if (!isfinite(from[i])) return HS_ERR_ARGUMENT;
      largest = fmax(largest, fabs((double)from[i]));
    }
    const double scale = vector_scale(largest);
    for (size_t i = 0; i < length; i++) vectors[n * length + i] = rounded_number((double)from[i] * scale);
  }
  return HS_OK;
}

/* ---- Pairs that match best: a run over the candidates with few features of each image. */

enum {
  SHORTLIST_FACTOR = 3,
  SHORTLIST_MIN = 60,
  SHORTLIST_MESSAGE_BYTES = 512,
  LINKS_MAX = 5,         /* number of an image's best partners that are linked to it */
  LINK_MATCHES_MIN = 10, /* minimum number of matches of linked images */
  /* Maximum number of images linked to one image that become candidates of each other. An image may be the best partner
     of all others, whose pairs would be too many. */
  LINKED_MAX = 64,
  /* Units of progress for each candidate: its comparison, and its share of the comparisons of further candidates. How
     many those are is not known before; in measurements they were some 2 % of the candidates. */
  CANDIDATE_UNITS = 15,
  FURTHER_UNITS = 1
};

typedef struct shortlist {
  const hs_collection *collection;
  const hs_allocator *allocator;
  hs_collection_image *images; /* [image_count]: the images with few features */
  neighbor *near;              /* [image_count][kept]: partners with most matches */
  uint32_t *found;             /* [image_count] */
  uint32_t kept;
  uint64_t done, total;   /* progress: units before the current run, and of the call */
  atomic_bool is_refused; /* reading an image gave HS_ERR_ARGUMENT, which pairs have too that cannot be compared */
  char reason[SHORTLIST_MESSAGE_BYTES]; /* reason of the first such image; written before is_refused is set */
} shortlist;

/* A feature and its scale; a scale that is not a number is below all others. */
typedef struct scaled_feature {
  float scale;
  uint32_t index;
} scaled_feature;

static int compare_scales(const void *left, const void *right) {
  const scaled_feature *a = left, *b = right;
  if (a->scale != b->scale) return a->scale > b->scale ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}

static hs_status keep_largest(const hs_features *all, const hs_allocator *allocator, hs_features *kept) {
  const size_t wanted = all->count < HS_SHORTLIST_FEATURES ? all->count : HS_SHORTLIST_FEATURES;
  const hs_descriptor_type type = all->descriptors ? all->descriptor_type : HS_DESCRIPTOR_NONE;
  const size_t bytes = features_descriptor_bytes(type);
  if (all->count >= HS_NO_FEATURE) return HS_ERR_LIMIT;
  const bool is_chosen = wanted < all->count && all->keypoints;
  scaled_feature *order = hs_memory_alloc(allocator, is_chosen ? all->count * sizeof *order : 1);
  hs_status status = order ? features_reserve(kept, wanted, type, allocator) : HS_ERR_MEMORY;
  if (status == HS_OK && is_chosen) {
    for (size_t i = 0; i < all->count; i++) {
      const float sigma = all->keypoints[i].sigma;
      order[i] = (scaled_feature){isnan(sigma) ? -INFINITY : sigma, (uint32_t)i};
    }
    qsort(order, all->count, sizeof *order, compare_scales);
  }
  for (size_t i = 0; status == HS_OK && i < wanted; i++) {
    const size_t from = is_chosen ? order[i].index : i;
    kept->keypoints[i] = all->keypoints ? all->keypoints[from] : (hs_keypoint){0};
    if (bytes > 0)
      memcpy((unsigned char *)kept->descriptors + i * bytes, (const unsigned char *)all->descriptors + from * bytes,
             bytes);
  }
  hs_memory_release(allocator, order);
  if (status != HS_OK) return status;
  kept->count = wanted;
  kept->origin = all->origin;
  return HS_OK;
}

/* hs_collection.read, called by one thread at a time */
static hs_status read_largest(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  shortlist *s = user;
  const hs_collection_image *wanted = &s->collection->images[image];
  if (wanted->features) return keep_largest(wanted->features, s->allocator, features);
  hs_features all = {0};
  hs_status status = s->collection->read(s->collection->user, image, &all, message, message_bytes);
  if (status == HS_OK && all.count != wanted->feature_count)
    status =
        hs_message_fail(HS_ERR_ARGUMENT, message, message_bytes,
                        "read returned %zu features, but the collection states %zu", all.count, wanted->feature_count);
  if (status == HS_OK) status = keep_largest(&all, s->allocator, features);
  hs_features_free(&all);
  if (status == HS_ERR_ARGUMENT && !atomic_load(&s->is_refused)) {
    hs_message_set(s->reason, sizeof s->reason, "%s", message[0] != '\0' ? message : hs_status_string(status));
    atomic_store(&s->is_refused, true);
  }
  return status;
}

static hs_status begin_shortlist(hs_context *context, shortlist *s) {
  const size_t count = s->collection->image_count;
  size_t near_bytes, image_bytes;
  if (count > UINT32_MAX || !hs_size_mul(count, (size_t)s->kept * sizeof *s->near, &near_bytes) ||
      !hs_size_mul(count, sizeof *s->images, &image_bytes))
    return CONTEXT_FAIL(context, HS_ERR_LIMIT, "the pairs do not fit the address space");
  s->near = hs_memory_alloc(s->allocator, near_bytes);
  s->found = hs_memory_alloc(s->allocator, count * sizeof *s->found);
  s->images = hs_memory_alloc(s->allocator, image_bytes);
  if (!s->near || !s->found || !s->images) return CONTEXT_FAIL(context, HS_ERR_MEMORY, "out of memory for the pairs");
  for (size_t i = 0; i < count; i++) {
    const hs_collection_image *from = &s->collection->images[i];
    const size_t all = from->features ? from->features->count : from->feature_count;
    if (!from->features && !s->collection->read)
      return CONTEXT_FAIL(context, HS_ERR_ARGUMENT, "image %zu has no features, and read is null", i);
    s->images[i] = (hs_collection_image){.feature_count = all < HS_SHORTLIST_FEATURES ? all : HS_SHORTLIST_FEATURES};
    s->found[i] = 0;
  }
  return HS_OK;
}

static void offer_matches(const shortlist *s, const hs_pair_result *result) {
  const uint32_t ends[2] = {result->images.first, result->images.second};
  for (int k = 0; k < 2; k++)
    neighbor_offer(s->near + (size_t)ends[k] * s->kept, &s->found[ends[k]], s->kept,
                   (neighbor){-(double)result->match_count, ends[1 - k]});
}

/* Reports that `pairs` of a run's `count` pairs are matched; the run has `units`. True: the caller cancels. Does not
   record the failure, because the run uses the context. */
static bool is_cancelled(const hs_context *context, const shortlist *s, size_t pairs, size_t count, uint64_t units) {
  const uint64_t done = s->done + (uint64_t)((double)units * (double)pairs / (double)count);
  return context->progress && context->progress(context->progress_user, done, s->total) != 0;
}

/* Counts the matches of all candidates. units: the run's share of the progress. */
static hs_status match_candidates(hs_context *context, shortlist *s, const hs_image_pair *candidates, size_t count,
                                  uint64_t units) {
  const hs_collection few = {
      .images = s->images, .image_count = s->collection->image_count, .read = read_largest, .user = s};
  const hs_pairs_options options = {.struct_size = sizeof options, .skip_next_distance = 1};
  hs_pairs *run;
  hs_status status = hs_pairs_start(&run, context, &few, candidates, count, &options);
  if (status != HS_OK) return status;
  char reason[SHORTLIST_MESSAGE_BYTES] = "";
  for (size_t i = 0; i < count && status == HS_OK; i++) {
    const hs_pair_result *result;
    if (is_cancelled(context, s, i, count, units)) {
      status = HS_ERR_CANCELLED;
      hs_message_set(reason, sizeof reason, CONTEXT_CANCELLED);
      break;
    }
    status = hs_pairs_next(run, -1, &result);
    if (status != HS_OK) {
      hs_message_set(reason, sizeof reason, "%s", hs_pairs_last_error(run));
    } else if (result->status == HS_ERR_ARGUMENT && atomic_load(&s->is_refused)) {
      status = HS_ERR_ARGUMENT;
      hs_message_set(reason, sizeof reason, "%s", s->reason);
    } else if (result->status != HS_OK && result->status != HS_ERR_ARGUMENT) {
      status = result->status;
      hs_message_set(reason, sizeof reason, "%s", result->message);
    } else {
      offer_matches(s, result);
    }
  }
  hs_pairs_end(run);
  s->done += units;
  return status == HS_OK ? HS_OK : CONTEXT_FAIL(context, status, "%s", reason);
}

/* Sorts each image's partners, the farthest first, which keeps them a heap. */
static int compare_farthest(const void *left, const void *right) { return compare_neighbors(right, left); }

static void sort_partners(const shortlist *s) {
  for (size_t i = 0; i < s->collection->image_count; i++)
    if (s->found[i] > 1) qsort(s->near + i * s->kept, s->found[i], sizeof *s->near, compare_farthest);
}

/* Returns the k-th best partner of an image; null: there is none, or it has too few matches. */
static const neighbor *link_of(const shortlist *s, size_t image, uint32_t k) {
  if (k >= s->found[image] || k >= LINKS_MAX) return NULL;
  const neighbor *n = &s->near[image * s->kept + (s->found[image] - 1 - k)];
  return n->distance <= -(double)LINK_MATCHES_MIN ? n : NULL;
}

/* Lists the links of all images in both directions: links[starts[i]] to links[starts[i + 1] - 1] for image i, one twice
   if both images have it. */
static bool list_links(const shortlist *s, size_t *starts, neighbor **links) {
  const size_t count = s->collection->image_count;
  memset(starts, 0, (count + 2) * sizeof *starts);
  for (size_t i = 0; i < count; i++)
    for (uint32_t k = 0; link_of(s, i, k); k++) {
      starts[i + 2]++;
      starts[link_of(s, i, k)->image + 2]++;
    }
  for (size_t i = 2; i < count + 2; i++) starts[i] += starts[i - 1];
  *links = hs_memory_alloc(s->allocator, starts[count + 1] * sizeof **links);
  if (!*links) return false;
  for (size_t i = 0; i < count; i++)
    for (uint32_t k = 0; link_of(s, i, k); k++) { /* starts[i + 1] ends at the start of the next image */
      const neighbor *n = link_of(s, i, k);
      (*links)[starts[i + 1]++] = *n;
      (*links)[starts[n->image + 1]++] = (neighbor){n->distance, (uint32_t)i};
    }
  return true;
}

/* Sorts the links of an image, and removes repeated ones and those after the best. Returns the number that stays. */
static size_t best_links(neighbor *links, size_t count) {
  size_t kept = 0;
  if (count > 1) qsort(links, count, sizeof *links, compare_neighbors);
  for (size_t i = 0; i < count && kept < LINKED_MAX; i++)
    if (kept == 0 || links[kept - 1].image != links[i].image) links[kept++] = links[i];
  return kept;
}

/* Adds the pairs of images that link to the same image. */
static bool add_linked(const size_t *starts, neighbor *links, size_t count, hs_image_pairs *pairs) {
  for (size_t i = 0; i < count; i++) {
    neighbor *of_image = links + starts[i];
    const size_t linked = best_links(of_image, starts[i + 1] - starts[i]);
    for (size_t a = 0; a < linked; a++)
      for (size_t b = a + 1; b < linked; b++)
        if (!image_pairs_add(pairs, of_image[a].image, of_image[b].image)) return false;
  }
  image_pairs_settle(pairs);
  return true;
}

static int compare_pairs_of_images(hs_image_pair a, hs_image_pair b) {
  if (a.first != b.first) return a.first < b.first ? -1 : 1;
  return (a.second > b.second) - (a.second < b.second);
}

/* Removes pairs that are among the candidates; both are sorted. */
static void remove_pairs(hs_image_pairs *pairs, const hs_image_pairs *candidates) {
  size_t kept = 0, at = 0;
  for (size_t i = 0; i < pairs->count; i++) {
    while (at < candidates->count && compare_pairs_of_images(candidates->pairs[at], pairs->pairs[i]) < 0) at++;
    if (at == candidates->count || compare_pairs_of_images(candidates->pairs[at], pairs->pairs[i]) != 0)
      pairs->pairs[kept++] = pairs->pairs[i];
  }
  pairs->count = kept;
}

/* Lists further candidates: images that are linked to the same image. */
static hs_status list_further(hs_context *context, const shortlist *s, const hs_image_pair *candidates, size_t count,
                              hs_image_pairs *further) {
  const size_t images = s->collection->image_count;
  hs_image_pairs sorted = {.allocator = s->allocator};
  neighbor *links = NULL;
  size_t *starts = hs_memory_alloc(s->allocator, (images + 2) * sizeof *starts);
  bool done = starts && list_links(s, starts, &links) && add_linked(starts, links, images, further);
  for (size_t i = 0; i < count && done; i++) done = image_pairs_add(&sorted, candidates[i].first, candidates[i].second);
  if (done) {
    image_pairs_settle(&sorted);
    remove_pairs(further, &sorted);
  }
  hs_memory_release(s->allocator, starts);
  hs_memory_release(s->allocator, links);
  hs_image_pairs_free(&sorted);
  return done ? HS_OK : CONTEXT_FAIL(context, HS_ERR_MEMORY, "out of memory for the pairs");
}

static hs_status match_further(hs_context *context, shortlist *s, const hs_image_pair *candidates, size_t count) {
  hs_image_pairs further = {.allocator = s->allocator};
  sort_partners(s);
  hs_status status = list_further(context, s, candidates, count, &further);
  if (status == HS_OK && further.count > 0)
    status = match_candidates(context, s, further.pairs, further.count, (uint64_t)count * FURTHER_UNITS);
  hs_image_pairs_free(&further);
  sort_partners(s);
  return status;
}

uint32_t hs_shortlist_length(uint32_t neighbors) {
  if (neighbors > UINT32_MAX / SHORTLIST_FACTOR) return UINT32_MAX;
  return neighbors * SHORTLIST_FACTOR < SHORTLIST_MIN ? SHORTLIST_MIN : neighbors * SHORTLIST_FACTOR;
}

hs_status hs_pair_matching(hs_context *context, const hs_collection *collection, const hs_image_pair *candidates,
                           size_t count, uint32_t neighbors, hs_image_pairs *pairs) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!context || !collection || (!collection->images && collection->image_count > 0) || (!candidates && count > 0) ||
      !pairs)
    return HS_ERR_ARGUMENT;
  pairs->count = 0;
  if (count == 0 || neighbors == 0) return HS_OK;
  if (neighbors > collection->image_count) neighbors = (uint32_t)collection->image_count;
  const uint32_t kept = neighbors > LINKS_MAX ? neighbors : LINKS_MAX;
  shortlist s = {.collection = collection,
                 .allocator = context->options.allocator,
                 .kept = kept,
                 .total = (uint64_t)count * (CANDIDATE_UNITS + FURTHER_UNITS)};
  hs_status status = begin_shortlist(context, &s);
  if (status == HS_OK) status = match_candidates(context, &s, candidates, count, (uint64_t)count * CANDIDATE_UNITS);
  if (status == HS_OK) status = match_further(context, &s, candidates, count);
  if (status == HS_OK) status = context_progress(context, s.total, s.total);
  for (size_t i = 0; i < collection->image_count && status == HS_OK; i++)
    for (uint32_t k = 0; k < s.found[i] && k < neighbors && status == HS_OK; k++)
      if (!image_pairs_add(pairs, (uint32_t)i, s.near[i * kept + (s.found[i] - 1 - k)].image))
        status = CONTEXT_FAIL(context, HS_ERR_MEMORY, "out of memory for the pairs");
  if (status == HS_OK)
    image_pairs_settle(pairs);
  else
    pairs->count = 0;
  hs_memory_release(s.allocator, s.near);
  hs_memory_release(s.allocator, s.found);
  hs_memory_release(s.allocator, s.images);
  return status;
}
