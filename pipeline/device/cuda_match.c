/* Matching on a context's CUDA device; see cuda_match.h. */
#include "pipeline/device/cuda_match.h"

#include <string.h>

#include "pipeline/base/memory.h"

#include "cuda/match/match_cuda.h"
#include "pipeline/device/cuda_match_room.h"
#include "pipeline/device/cuda_state.h"

enum { ALIGNMENT = 256, VECTOR_BYTES = 16 };

/* ------------------------------------------------------------------ room */

/* The next part of the slab. Counts are below 2^31 and elements below 1 KiB: sums fit. */
static void *part(unsigned char *slab, size_t *offset, size_t bytes) {
  void *at = slab ? slab + *offset : NULL;
  *offset += (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  return at;
}

/* Lists in host memory are copied, and those that vector loads cannot read. */
static bool needs_copy(const match_list *list, const match_placement *place) {
  return !place->on_device || (uintptr_t)list->descriptors % VECTOR_BYTES != 0;
}

static bool wants_backward(match_wanted wanted) {
  return wanted == WANTED_BOTH_NEAREST || wanted == WANTED_MUTUAL_PAIRS;
}

/* Lays a request out in a slab (null: only its sizes). */
static void lay_out(const match_request *r, const match_placement *place, match_wanted wanted, size_t extra_bytes,
                    unsigned char *slab, device_matching *d) {
  const bool guided = r->guide.kind != MATCH_UNGUIDED;
  const match_list *lists[2] = {&r->first, &r->second};
  match_side *sides[2] = {&d->args.first, &d->args.second};
  memset(d, 0, sizeof *d);
  size_t bytes = cuda_match_work_layout(r->first.count, r->second.count, guided, slab, &d->work);
  d->args.type = r->type;
  d->args.guide = r->guide.kind;
  d->args.tolerance_squared = r->guide.tolerance_squared;
  d->args.forward = part(slab, &bytes, r->first.count * sizeof(match_nearest));
  if (wants_backward(wanted)) d->args.backward = part(slab, &bytes, r->second.count * sizeof(match_nearest));
  for (int i = 0; i < 2; i++) {
    const size_t count = lists[i]->count, value = r->type == MATCH_F32 ? sizeof(float) : 1;
    if (needs_copy(lists[i], place)) d->descriptors[i] = part(slab, &bytes, count * MATCH_LENGTH * value);
    if (guided && !place->on_device) d->keypoints[i] = part(slab, &bytes, count * sizeof(hs_keypoint));
    *sides[i] = (match_side){d->descriptors[i] ? d->descriptors[i] : lists[i]->descriptors,
                             i == 0 ? d->work.first_places : d->work.second_places, lists[i]->count};
  }
  d->extra = part(slab, &bytes, extra_bytes);
  d->slab_bytes = bytes;
  const size_t results = wanted == WANTED_BOTH_NEAREST ? (size_t)r->first.count + r->second.count : r->first.count;
  d->pinned_bytes = ALIGNMENT + results * sizeof(match_pair);
}

_Static_assert(sizeof(match_pair) == sizeof(match_nearest), "pinned memory has room for either");

static hs_status grow_slab(hs_context *c, size_t bytes) {
  struct cuda_match_state *s = cuda_of(c)->matching;
  const uint64_t limit = c->options.max_memory_bytes;
  if (limit > 0 && bytes > limit)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "matching needs %zu bytes on the device, max_memory_bytes is %llu", bytes,
                        (unsigned long long)limit);
  if (bytes <= s->slab_bytes) return HS_OK;
  device_free(s->slab);
  s->slab_bytes = 0;
  void *slab;
  const stage_status st = device_alloc(&slab, bytes);
  s->slab = slab;
  if (st != STAGE_OK) return cuda_memory_failure(c, st, "matching", bytes);
  s->slab_bytes = bytes;
  return HS_OK;
}

static hs_status grow_pinned(hs_context *c, size_t bytes) {
  struct cuda_match_state *s = cuda_of(c)->matching;
  if (bytes <= s->pinned_bytes) return HS_OK;
  device_free_pinned(s->pinned);
  s->pinned_bytes = 0;
  const stage_status st = device_alloc_pinned(&s->pinned, &s->d_pinned, bytes);
  if (st != STAGE_OK) return cuda_failure(c, st, "pinned memory for matching");
  s->pinned_bytes = bytes;
  return HS_OK;
}

hs_status cuda_match_make_room(hs_context *c, const match_request *r, const match_placement *place, match_wanted wanted,
                               size_t extra_bytes, device_matching *d) {
  if (r->first.count > CUDA_MATCH_COUNT_MAX || r->second.count > CUDA_MATCH_COUNT_MAX)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a list has more than %u features, the most on a device",
                        (unsigned)CUDA_MATCH_COUNT_MAX);
  struct cuda_match_state *matching = cuda_of(c)->matching;
  if (!matching) {
    matching = hs_memory_alloc(c->options.allocator, sizeof *matching);
    if (!matching) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "out of memory: %zu bytes for matching", sizeof *matching);
    memset(matching, 0, sizeof *matching);
    cuda_of(c)->matching = matching;
  }
  if (!matching->prepared) {
    const stage_status st = cuda_match_prepare();
    if (st != STAGE_OK) return cuda_failure(c, st, "preparing matching");
    matching->prepared = true;
  }
  lay_out(r, place, wanted, extra_bytes, NULL, d);
  hs_status st = grow_slab(c, d->slab_bytes);
  if (st == HS_OK) st = grow_pinned(c, d->pinned_bytes);
  if (st == HS_OK) lay_out(r, place, wanted, extra_bytes, matching->slab, d);
  return st;
}

/* ------------------------------------------------------------------ work */

stage_status cuda_match_bring(const match_request *r, const match_placement *place, int which, const device_matching *d,
                              cuda_stream stream) {
  const match_list *list = which == 0 ? &r->first : &r->second;
  const size_t value = r->type == MATCH_F32 ? sizeof(float) : 1, count = list->count;
  stage_status st = STAGE_OK;
  if (d->descriptors[which]) {
    const size_t row = MATCH_LENGTH * value;
    st = place->on_device ? device_copy_rows_to(d->descriptors[which], row, list->descriptors, row, row, count, stream)
                          : device_copy_to(d->descriptors[which], list->descriptors, count * row, stream);
  }
  if (st != STAGE_OK || r->guide.kind == MATCH_UNGUIDED) return st;
  const void *keypoints = list->keypoints;
  if (d->keypoints[which]) {
    keypoints = d->keypoints[which];
    st = device_copy_to(d->keypoints[which], list->keypoints, count * sizeof(hs_keypoint), stream);
  }
  match_place *places = which == 0 ? d->work.first_places : d->work.second_places;
  return st == STAGE_OK ? cuda_match_places_launch(&r->guide, which == 1, keypoints, list->count, places, stream) : st;
}

/* Enqueues a request and what comes back to pinned memory: a count and pairs ALIGNMENT bytes on, or both nearest. */
static stage_status enqueue(const struct cuda_match_state *s, const match_request *r, const match_placement *place,
                            match_wanted wanted, const device_matching *d, cuda_stream stream) {
  unsigned char *results = (unsigned char *)s->pinned + ALIGNMENT,
                *d_results = (unsigned char *)s->d_pinned + ALIGNMENT;
  const size_t rows = r->first.count, columns = r->second.count;
  stage_status st = cuda_match_bring(r, place, 0, d, stream);
  if (st == STAGE_OK) st = cuda_match_bring(r, place, 1, d, stream);
  if (st == STAGE_OK) st = cuda_match_nearest_launch(&d->args, &d->work, CUDA_MATCH_TENSOR, stream);
  if (st != STAGE_OK) return st;
  if (wanted == WANTED_PAIRS || wanted == WANTED_MUTUAL_PAIRS) {
    const cuda_match_pairs_args pairs = {.limits = r->limits,
                                         .forward = d->args.forward,
                                         .backward = d->args.backward,
                                         .count = r->first.count,
                                         .tile_counts = d->work.tile_counts,
                                         .pairs = (match_pair *)(void *)d_results,
                                         .pair_count = s->d_pinned};
    return cuda_match_pairs_launch(&pairs, stream);
  }
  st = device_copy_from(results, d->args.forward, rows * sizeof(match_nearest), stream);
  if (st == STAGE_OK && d->args.backward)
    st = device_copy_from(results + rows * sizeof(match_nearest), d->args.backward, columns * sizeof(match_nearest),
                          stream);
  return st;
}

/* Runs a request; the results are in pinned memory then. */
static hs_status run(hs_context *c, const match_request *r, const match_placement *place, match_wanted wanted) {
  const cuda_stream stream = place->stream ? place->stream : cuda_of(c)->stream;
  device_matching d;
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  hs_status st = cuda_match_make_room(c, r, place, wanted, 0, &d);
  if (st == HS_OK) {
    stage_status done = enqueue(cuda_of(c)->matching, r, place, wanted, &d, stream);
    /* Copies may still be reading the caller's lists, also after a failure. */
    const stage_status waited = device_stream_wait(stream);
    if (done == STAGE_OK) done = waited;
    if (done != STAGE_OK) st = cuda_failure(c, done, "matching");
  }
  device_leave(previous);
  return st;
}

hs_status cuda_match_run(hs_context *c, const match_request *r, const match_placement *place, match_nearest *forward,
                         match_nearest *backward) {
  const hs_status st = run(c, r, place, backward ? WANTED_BOTH_NEAREST : WANTED_NEAREST);
  if (st != HS_OK) return st;
  const unsigned char *results = (const unsigned char *)cuda_of(c)->matching->pinned + ALIGNMENT;
  const size_t bytes = r->first.count * sizeof *forward;
  if (bytes > 0) memcpy(forward, results, bytes);
  if (backward && r->second.count > 0) memcpy(backward, results + bytes, r->second.count * sizeof *backward);
  return HS_OK;
}

hs_status cuda_match_pairs(hs_context *c, const match_request *r, const match_placement *place,
                           const match_pair **pairs, size_t *count) {
  const hs_status st = run(c, r, place, r->mutual ? WANTED_MUTUAL_PAIRS : WANTED_PAIRS);
  if (st != HS_OK) return st;
  *pairs = (const match_pair *)(const void *)((const unsigned char *)cuda_of(c)->matching->pinned + ALIGNMENT);
  *count = *(const uint32_t *)cuda_of(c)->matching->pinned;
  return HS_OK;
}

void cuda_match_destroy(hs_context *c) {
  struct cuda_match_state *s = cuda_of(c)->matching;
  int32_t previous = -1;
  if (!s) return;
  if (device_enter(cuda_of(c)->device, &previous) == STAGE_OK) {
    device_free(s->slab);
    device_free_pinned(s->pinned);
  }
  device_leave(previous);
  hs_memory_release(c->options.allocator, s);
  cuda_of(c)->matching = NULL;
}

void cuda_match_memory(const struct cuda_state *s, uint64_t *device_bytes, uint64_t *pinned_bytes) {
  *device_bytes += s->matching ? s->matching->slab_bytes : 0;
  *pinned_bytes += s->matching ? s->matching->pinned_bytes : 0;
}
