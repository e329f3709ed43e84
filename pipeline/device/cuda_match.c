/* Matching on a context's CUDA device: the two nearest neighbours, the k nearest, and all within a radius. */
#include <string.h>

#include "cuda/match/match_cuda.h"
#include "pipeline/base/memory.h"
#include "pipeline/device/cuda_engine.h"
#include "pipeline/device/cuda_state.h"

/* A request laid out on the device: kernel arguments, and addresses in the slab. */
typedef struct device_matching {
  match_args args;
  cuda_match_work work;
  void *descriptors[2]; /* copies on the device; null: the caller's memory is used */
  void *keypoints[2];
  void *extra; /* extra_bytes of lay_out, aligned to 256 */
  size_t slab_bytes, pinned_bytes;
} device_matching;

/* Results that a request copies to the host. */
typedef enum match_wanted { WANTED_NEAREST, WANTED_BOTH_NEAREST, WANTED_PAIRS, WANTED_MUTUAL_PAIRS } match_wanted;

enum { ALIGNMENT = 256, VECTOR_BYTES = 16 };

/* ------------------------------------------------------------------ memory */

/* Returns the next part of the slab, or null without a slab. Counts are below 2^31 and elements below 1 KiB, so sums
   fit. */
static void *part(unsigned char *slab, size_t *offset, size_t bytes) {
  void *at = slab ? slab + *offset : NULL;
  *offset += (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  return at;
}

/* Returns whether a list must be copied: if it is in host memory, or not aligned for vector loads. */
static bool needs_copy(const match_list *list, const match_placement *placement) {
  return !placement->on_device || (uintptr_t)list->descriptors % VECTOR_BYTES != 0;
}

static bool wants_backward(match_wanted wanted) {
  return wanted == WANTED_BOTH_NEAREST || wanted == WANTED_MUTUAL_PAIRS;
}

static bool wants_pairs(match_wanted wanted) { return wanted == WANTED_PAIRS || wanted == WANTED_MUTUAL_PAIRS; }

/* Lays out a request in a slab; null: computes only the sizes. rows: with the memory of matching by rows, where that
 * serves. */
static void lay_out(const match_request *r, const match_placement *placement, match_wanted wanted, size_t extra_bytes,
                    bool rows, unsigned char *slab, device_matching *d) {
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
    if (needs_copy(lists[i], placement)) d->descriptors[i] = part(slab, &bytes, count * MATCH_LENGTH * value);
    if (guided && !placement->on_device) d->keypoints[i] = part(slab, &bytes, count * sizeof(hs_keypoint));
    *sides[i] = (match_side){d->descriptors[i] ? d->descriptors[i] : lists[i]->descriptors,
                             i == 0 ? d->work.first_positions : d->work.second_positions, lists[i]->count};
  }
  if (wants_pairs(wanted)) d->args.limits = &r->limits;
  if (rows) bytes += cuda_match_rows_layout(&d->args, slab ? slab + bytes : NULL, &d->work);
  d->extra = part(slab, &bytes, extra_bytes);
  d->slab_bytes = bytes;
  const size_t results = wanted == WANTED_BOTH_NEAREST ? (size_t)r->first.count + r->second.count : r->first.count;
  d->pinned_bytes = ALIGNMENT + results * sizeof(match_pair);
}

_Static_assert(sizeof(match_pair) == sizeof(match_nearest), "pinned memory has room for either");

static hs_status grow_slab(hs_context *c, size_t bytes) {
  cuda_match_state *s = cuda_of(c)->matching;
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
  cuda_match_state *s = cuda_of(c)->matching;
  if (bytes <= s->pinned_bytes) return HS_OK;
  device_free_pinned(s->pinned);
  s->pinned_bytes = 0;
  const stage_status st = device_alloc_pinned(&s->pinned, &s->d_pinned, bytes);
  if (st != STAGE_OK) return cuda_failure(c, st, "pinned memory for matching");
  s->pinned_bytes = bytes;
  return HS_OK;
}

/* Makes the state on first use, and all memory of a request. The context's device must be the current one. */
static hs_status make_memory(hs_context *c, const match_request *r, const match_placement *placement,
                             match_wanted wanted, size_t extra_bytes, device_matching *d) {
  if (r->first.count > CUDA_MATCH_COUNT_MAX || r->second.count > CUDA_MATCH_COUNT_MAX)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a list has more than %u features, the most on a device",
                        (unsigned)CUDA_MATCH_COUNT_MAX);
  cuda_match_state *matching = cuda_of(c)->matching;
  if (!matching) {
    matching = hs_memory_alloc(c->options.allocator, sizeof *matching);
    if (!matching) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "out of memory: %zu bytes for matching", sizeof *matching);
    memset(matching, 0, sizeof *matching);
    cuda_of(c)->matching = matching;
  }
  bool rows = true;
  lay_out(r, placement, wanted, extra_bytes, rows, NULL, d);
  const size_t with_rows = d->slab_bytes;
  hs_status st = grow_slab(c, with_rows);
  if (st == HS_ERR_LIMIT || st == HS_ERR_MEMORY) {
    rows = false;
    lay_out(r, placement, wanted, extra_bytes, rows, NULL, d);
    if (d->slab_bytes < with_rows) st = grow_slab(c, d->slab_bytes);
  }
  if (st == HS_OK) st = grow_pinned(c, d->pinned_bytes);
  if (st == HS_OK) lay_out(r, placement, wanted, extra_bytes, rows, matching->slab, d);
  return st;
}

/* ------------------------------------------------------------------ work */

/* Uploads the first (0) or the second list (1), with its positions. */
static stage_status upload_list(const match_request *r, const match_placement *placement, int which,
                                const device_matching *d, cuda_stream stream) {
  const match_list *list = which == 0 ? &r->first : &r->second;
  const size_t value = r->type == MATCH_F32 ? sizeof(float) : 1, count = list->count;
  stage_status st = STAGE_OK;
  if (d->descriptors[which]) {
    const size_t row = MATCH_LENGTH * value;
    st = placement->on_device
             ? device_copy_rows_to(d->descriptors[which], row, list->descriptors, row, row, count, stream)
             : device_copy_to(d->descriptors[which], list->descriptors, count * row, stream);
  }
  if (st != STAGE_OK || r->guide.kind == MATCH_UNGUIDED) return st;
  const void *keypoints = list->keypoints;
  if (d->keypoints[which]) {
    keypoints = d->keypoints[which];
    st = device_copy_to(d->keypoints[which], list->keypoints, count * sizeof(hs_keypoint), stream);
  }
  match_position *positions = which == 0 ? d->work.first_positions : d->work.second_positions;
  return st == STAGE_OK ? cuda_match_positions_launch(&r->guide, which == 1, keypoints, list->count, positions, stream)
                        : st;
}

/* Enqueues a request and the copy of its results to pinned memory. Pairs: their count and, ALIGNMENT bytes further, the
   pairs. Otherwise: the nearest neighbours of one list or both. */
static stage_status enqueue(const cuda_match_state *s, const match_request *r, const match_placement *placement,
                            match_wanted wanted, const device_matching *d, cuda_stream stream) {
  unsigned char *results = (unsigned char *)s->pinned + ALIGNMENT,
                *d_results = (unsigned char *)s->d_pinned + ALIGNMENT;
  const size_t rows = r->first.count, columns = r->second.count;
  stage_status st = upload_list(r, placement, 0, d, stream);
  if (st == STAGE_OK) st = upload_list(r, placement, 1, d, stream);
  if (st == STAGE_OK && wants_pairs(wanted))
    return cuda_match_kept_launch(&d->args, &d->work, (match_pair *)(void *)d_results, s->d_pinned, stream);
  if (st == STAGE_OK) st = cuda_match_nearest_launch(&d->args, &d->work, CUDA_MATCH_TENSOR, stream);
  if (st != STAGE_OK) return st;
  st = device_copy_from(results, d->args.forward, rows * sizeof(match_nearest), stream);
  if (st == STAGE_OK && d->args.backward)
    st = device_copy_from(results + rows * sizeof(match_nearest), d->args.backward, columns * sizeof(match_nearest),
                          stream);
  return st;
}

/* Runs a request; its results are then in pinned memory. */
static hs_status run(hs_context *c, const match_request *r, const match_placement *placement, match_wanted wanted) {
  const cuda_stream stream = placement->stream ? placement->stream : cuda_of(c)->stream;
  device_matching d;
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  hs_status st = cuda_check_stream(c, placement->stream);
  if (st == HS_OK) st = make_memory(c, r, placement, wanted, 0, &d);
  if (st == HS_OK) {
    stage_status done = enqueue(cuda_of(c)->matching, r, placement, wanted, &d, stream);
    /* Waits even after a failure: copies may still be reading the caller's lists. */
    const stage_status waited = device_stream_wait(stream);
    if (done == STAGE_OK) done = waited;
    if (done != STAGE_OK) st = cuda_failure(c, done, "matching");
  }
  device_leave(previous);
  return st;
}

hs_status cuda_match_nearest(hs_context *c, const match_request *r, const match_placement *placement,
                             match_nearest *forward, match_nearest *backward) {
  const hs_status st = run(c, r, placement, backward ? WANTED_BOTH_NEAREST : WANTED_NEAREST);
  if (st != HS_OK) return st;
  const unsigned char *results = (const unsigned char *)cuda_of(c)->matching->pinned + ALIGNMENT;
  const size_t bytes = r->first.count * sizeof *forward;
  if (bytes > 0) memcpy(forward, results, bytes);
  if (backward && r->second.count > 0) memcpy(backward, results + bytes, r->second.count * sizeof *backward);
  return HS_OK;
}

hs_status cuda_match_pairs(hs_context *c, const match_request *r, const match_placement *placement,
                           const match_pair **pairs, size_t *count) {
  const hs_status st = run(c, r, placement, r->mutual ? WANTED_MUTUAL_PAIRS : WANTED_PAIRS);
  if (st != HS_OK) return st;
  *pairs = (const match_pair *)(const void *)((const unsigned char *)cuda_of(c)->matching->pinned + ALIGNMENT);
  *count = *(const uint32_t *)cuda_of(c)->matching->pinned;
  return HS_OK;
}

void cuda_match_destroy(hs_context *c) {
  cuda_match_state *s = cuda_of(c)->matching;
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

/* ------------------------------------------------- More neighbours than two on a context's CUDA device */

enum {
  TILE_ROWS = 128,        /* a chunk's rows are a multiple of the kernel's tile */
  CHUNK_FLOATS = 1 << 26, /* squares per chunk, and entries for its k nearest: 256 MiB each */
  FOUND_MIN = 1 << 20     /* neighbours fetched at once; more if one row can have more */
};

/* A search on the device, in chunks of rows. All squares of a chunk are in memory at once. */
typedef struct device_search {
  device_matching memory;
  squares_args squares; /* of the current chunk */
  uint32_t chunk_rows, found_capacity;
  float bound;
  match_neighbour *nearest;  /* device; of a chunk's rows */
  uint32_t *counts, *starts; /* device; of a chunk's rows */
  match_neighbour *found;    /* device; found_capacity */
  uint32_t *host_counts;     /* pinned: counts of a chunk's rows, followed by as many starts */
} device_search;

/* Lays out a search's memory beyond the lists and returns its bytes. k 0: lists of any length. */
static size_t lay_out_search(const match_request *r, uint32_t k, unsigned char *base, device_search *s) {
  const size_t rows = s->chunk_rows, squares = rows * s->squares.pitch * sizeof(float);
  s->found_capacity = r->second.count > FOUND_MIN ? r->second.count : FOUND_MIN;
  s->squares.squares = (float *)(void *)base;
  unsigned char *at = base ? base + squares : NULL;
  s->nearest = (match_neighbour *)(void *)at;
  s->found = s->nearest;
  const size_t results = (k > 0 ? rows * k : s->found_capacity) * sizeof(match_neighbour);
  s->counts = (uint32_t *)(void *)(at ? at + results : NULL);
  s->starts = s->counts ? s->counts + rows : NULL;
  return squares + results + (k > 0 ? 0 : 2 * rows * sizeof(uint32_t));
}

/* Allocates the memory of a search, with the largest chunk that fits. */
static hs_status make_search_memory(hs_context *c, const match_request *r, const match_placement *placement, uint32_t k,
                                    device_search *s) {
  const uint64_t nearest = (uint64_t)k * sizeof(match_neighbour) / sizeof(float), pitch = s->squares.pitch;
  const uint64_t widest = pitch > nearest ? pitch : nearest, fit = CHUNK_FLOATS / (widest > 0 ? widest : 1);
  const uint64_t tiles = ((uint64_t)r->first.count + TILE_ROWS - 1) / TILE_ROWS;
  uint64_t chunk = fit / TILE_ROWS < tiles ? fit / TILE_ROWS : tiles;
  hs_status st;
  if (chunk == 0) chunk = 1;
  do {
    s->chunk_rows = (uint32_t)(chunk * TILE_ROWS);
    st = make_memory(c, r, placement, WANTED_NEAREST, lay_out_search(r, k, NULL, s), &s->memory);
    chunk /= 2;
  } while ((st == HS_ERR_LIMIT || st == HS_ERR_MEMORY) && chunk > 0);
  if (st != HS_OK) return st;
  context_clear_error(c);
  (void)lay_out_search(r, k, s->memory.extra, s);
  s->squares.first = s->memory.args.first;
  s->squares.second = s->memory.args.second;
  return HS_OK;
}

/* Uploads both lists, and computes their positions and norms. */
static stage_status upload_lists(const match_request *r, const match_placement *placement, const device_search *s,
                                 cuda_stream stream) {
  stage_status st = upload_list(r, placement, 0, &s->memory, stream);
  if (st == STAGE_OK) st = upload_list(r, placement, 1, &s->memory, stream);
  return st == STAGE_OK ? cuda_match_norms_launch(&s->memory.args, &s->memory.work, stream) : st;
}

static stage_status begin_chunk(const match_request *r, uint32_t first, device_search *s, cuda_stream stream) {
  const uint32_t left = r->first.count - first;
  s->squares.first_row = first;
  s->squares.rows = left < s->chunk_rows ? left : s->chunk_rows;
  return cuda_squares_launch(&s->squares, &s->memory.work, stream);
}

static device_search search_of(const match_request *r, float bound) {
  return (device_search){.squares = {.type = r->type,
                                     .guide = r->guide.kind,
                                     .tolerance_squared = r->guide.tolerance_squared,
                                     .pitch = squares_pitch(r->second.count)},
                         .bound = bound};
}

/* ------------------------------------------------------------------ the k nearest */

static stage_status nearest_chunks(const match_request *r, const match_placement *placement, uint32_t k,
                                   device_search *s, match_neighbour *nearest, cuda_stream stream) {
  stage_status st = upload_lists(r, placement, s, stream);
  for (uint32_t first = 0; st == STAGE_OK && first < r->first.count; first += s->squares.rows) {
    st = begin_chunk(r, first, s, stream);
    if (st == STAGE_OK) st = cuda_neighbours_nearest_launch(&s->squares, s->bound, k, s->nearest, stream);
    if (st == STAGE_OK)
      st = device_copy_from(nearest + (size_t)first * k, s->nearest, (size_t)s->squares.rows * k * sizeof *nearest,
                            stream);
  }
  return st;
}

hs_status cuda_match_k_nearest(hs_context *c, const match_request *r, float bound, uint32_t k,
                               match_neighbour *nearest) {
  const match_placement placement = {NULL, false};
  device_search s = search_of(r, bound);
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  hs_status st = make_search_memory(c, r, &placement, k, &s);
  if (st == HS_OK) {
    stage_status done = nearest_chunks(r, &placement, k, &s, nearest, cuda_of(c)->stream);
    /* Waits even after a failure: copies may still be running. */
    const stage_status waited = device_stream_wait(cuda_of(c)->stream);
    if (done == STAGE_OK) done = waited;
    if (done != STAGE_OK) st = cuda_failure(c, done, "looking for neighbours");
  }
  device_leave(previous);
  return st;
}

/* ------------------------------------------------------------------ all within */

/* Fetches the neighbour lists of a chunk whose counts are on the host, as many rows at once as fit. */
static hs_status fetch_lists(hs_context *c, device_search *s, match_neighbour *found) {
  const cuda_stream stream = cuda_of(c)->stream;
  uint32_t *starts = s->host_counts + s->squares.rows;
  const squares_args all = s->squares;
  stage_status st = STAGE_OK;
  for (uint32_t row = 0; st == STAGE_OK && row < all.rows;) {
    uint32_t rows = 0, total = 0;
    while (row + rows < all.rows && s->host_counts[row + rows] <= s->found_capacity - total) {
      starts[rows] = total;
      total += s->host_counts[row + rows++];
    }
    squares_args part = all;
    part.squares += row * all.pitch;
    part.rows = rows;
    if (total > 0) {
      st = device_copy_to(s->starts, starts, rows * sizeof *starts, stream);
      if (st == STAGE_OK) st = cuda_neighbours_list_launch(&part, s->bound, s->starts, s->found, stream);
      if (st == STAGE_OK) st = device_copy_from(found, s->found, total * sizeof *found, stream);
      const stage_status waited = device_stream_wait(stream); /* the next rows overwrite starts */
      if (st == STAGE_OK) st = waited;
    }
    found += total;
    row += rows;
  }
  return st == STAGE_OK ? HS_OK : cuda_failure(c, st, "fetching neighbours");
}

/* Counts the neighbours of a chunk's rows and fetches their lists. */
static hs_status within_chunk(hs_context *c, const match_request *r, uint32_t first, device_search *s,
                              neighbours_take take, void *user) {
  const cuda_stream stream = cuda_of(c)->stream;
  match_neighbour *found = NULL;
  stage_status done = begin_chunk(r, first, s, stream);
  if (done == STAGE_OK) done = cuda_neighbours_count_launch(&s->squares, s->bound, s->counts, stream);
  if (done == STAGE_OK) done = device_copy_from(s->host_counts, s->counts, s->squares.rows * sizeof *s->counts, stream);
  const stage_status waited = device_stream_wait(stream);
  if (done == STAGE_OK) done = waited;
  if (done != STAGE_OK) return cuda_failure(c, done, "counting neighbours");
  const hs_status st = take(c, user, first, s->squares.rows, s->host_counts, &found);
  return st == HS_OK ? fetch_lists(c, s, found) : st;
}

hs_status cuda_match_within(hs_context *c, const match_request *r, float bound, neighbours_take take, void *user) {
  const match_placement placement = {NULL, false};
  device_search s = search_of(r, bound);
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  hs_status st = make_search_memory(c, r, &placement, 0, &s);
  /* Pinned memory has four words for each row of the first list, for a pair; counts and starts take two words. */
  if (st == HS_OK) {
    s.host_counts = cuda_of(c)->matching->pinned;
    const stage_status done = upload_lists(r, &placement, &s, cuda_of(c)->stream);
    if (done != STAGE_OK) st = cuda_failure(c, done, "bringing descriptors");
  }
  for (uint32_t first = 0; st == HS_OK && first < r->first.count; first += s.squares.rows)
    st = within_chunk(c, r, first, &s, take, user);
  (void)device_stream_wait(cuda_of(c)->stream); /* after a failure copies may still be running */
  device_leave(previous);
  return st;
}
