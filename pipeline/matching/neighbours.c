/*
 * More neighbours than two: the k nearest descriptors, and all within a radius.
 *
 * On the CPU the first list is processed in chunks of rows. All threads compute a chunk's squared distances to the
 * complete second list, one block of rows per thread. A thread searches a block while its squares are in the cache.
 * Lists of any length are counted first, which gives their positions, and then filled from the same squares.
 */
#include <math.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/matching/match_call.h"

_Static_assert(sizeof(hs_neighbour) == sizeof(match_neighbour) &&
                   offsetof(hs_neighbour, distance) == offsetof(match_neighbour, squared) &&
                   (int)HS_NEIGHBOURS_MAX == (int)NEIGHBOURS_MAX,
               "the public neighbour is the stage's");

enum {
  BLOCK_FLOATS = 1 << 18, /* number of squares per block: 1 MiB, about the size of a core's cache */
  BLOCK_ROWS = 4,         /* the number of rows of a block is a multiple of this, the tile of every backend */
  BLOCKS_A_THREAD = 4,    /* number of blocks per thread in a chunk */
  CHUNK_FLOATS = 1 << 28  /* maximum number of squares per chunk: 1 GiB; but at least one block */
};

/* A search on the CPU. */
typedef struct neighbour_search {
  const stage_ops *ops;
  squares_args squares; /* first_row, rows and squares belong to the current chunk */
  uint32_t block_rows, chunk_rows;
  float bound;
  uint32_t k;               /* 0: find all below the bound */
  match_neighbour *nearest; /* k entries for each row of the first list */
  uint32_t *counts;         /* counts of neighbours of the chunk's rows */
  const size_t *starts;     /* start of each of the chunk's rows in the lists */
  match_neighbour *found;   /* position of the chunk's first neighbour */
} neighbour_search;

/* ------------------------------------------------------------------ a chunk, block by block */

/* Finds the k nearest neighbours of a row, or counts all below the bound. */
static void search_row(const neighbour_search *s, uint32_t row) {
  const float *squares = s->squares.squares + row * s->squares.pitch;
  const uint32_t count = s->squares.second.count;
  if (s->k > 0)
    neighbours_nearest(squares, count, s->bound, s->k, s->nearest + (size_t)(s->squares.first_row + row) * s->k);
  else
    s->counts[row] = neighbours_count(squares, count, s->bound);
}

static uint32_t block_end(const neighbour_search *s, uint32_t first) {
  return s->squares.rows - first < s->block_rows ? s->squares.rows : first + s->block_rows;
}

static void search_task(void *argument, int32_t block, int32_t worker) {
  const neighbour_search *s = argument;
  const uint32_t first = (uint32_t)block * s->block_rows, end = block_end(s, first);
  squares_args own = s->squares;
  (void)worker;
  own.first_row += first;
  own.rows = end - first;
  own.squares += first * own.pitch;
  (void)s->ops->squares(&own); /* the CPU's function, which cannot fail */
  for (uint32_t row = first; row < end; row++) search_row(s, row);
}

static void fill_task(void *argument, int32_t block, int32_t worker) {
  const neighbour_search *s = argument;
  const uint32_t first = (uint32_t)block * s->block_rows, end = block_end(s, first);
  (void)worker;
  for (uint32_t row = first; row < end; row++) {
    if (s->counts[row] == 0) continue; /* found is null if no row has neighbours */
    match_neighbour *found = s->found + (s->starts[row] - s->starts[0]);
    neighbours_list(s->squares.squares + row * s->squares.pitch, s->squares.second.count, s->bound, found);
    neighbours_finish(found, s->counts[row]);
  }
}

static int32_t blocks_of(const neighbour_search *s) {
  return (int32_t)((s->squares.rows + s->block_rows - 1) / s->block_rows);
}

/* ------------------------------------------------------------------ the search on the CPU */

/* Chooses the number of rows of a block, and of a chunk as far as memory allows. */
static void choose_rows(neighbour_search *s, int32_t threads) {
  const size_t pitch = s->squares.pitch > 0 ? s->squares.pitch : 1;
  const size_t fit = BLOCK_FLOATS / pitch / BLOCK_ROWS * BLOCK_ROWS;
  const uint64_t all = s->squares.first.count, most = CHUNK_FLOATS / pitch / BLOCK_ROWS * BLOCK_ROWS;
  s->block_rows = fit < BLOCK_ROWS ? BLOCK_ROWS : (uint32_t)(fit < 64 ? fit : 64);
  uint64_t chunk = (uint64_t)s->block_rows * BLOCKS_A_THREAD * (uint64_t)threads;
  if (chunk > most) chunk = most > s->block_rows ? most : s->block_rows;
  s->chunk_rows = (uint32_t)(chunk < all ? chunk : all);
}

/* Allocates the memory of a search, and computes the guide's data. */
static hs_status make_memory(hs_context *c, const match_request *r, neighbour_search *s, unsigned char **memory) {
  const bool guided = r->guide.kind != MATCH_UNGUIDED;
  size_t total = 0, at[5];
  const bool fits = match_add_part(&total, s->ops->squares_work_bytes(&s->squares), 1, &at[0]) &&
                    match_add_part(&total, s->squares.pitch * sizeof(float), s->chunk_rows, &at[1]) &&
                    match_add_part(&total, s->chunk_rows, sizeof *s->counts, &at[2]) &&
                    match_add_part(&total, guided ? r->first.count : 0, sizeof(match_position), &at[3]) &&
                    match_add_part(&total, guided ? r->second.count : 0, sizeof(match_position), &at[4]);
  if (!fits) return MATCH_FAIL(c, HS_ERR_LIMIT, "matching does not fit the address space");
  unsigned char *m = NULL;
  const hs_status st = match_take_memory(c, total, &m);
  if (st != HS_OK) return st;
  *memory = m;
  match_position *first = (match_position *)(void *)(m + at[3]), *second = (match_position *)(void *)(m + at[4]);
  s->squares.work = m + at[0];
  s->squares.squares = (float *)(void *)(m + at[1]);
  s->counts = (uint32_t *)(void *)(m + at[2]);
  for (uint32_t i = 0; guided && i < r->first.count; i++)
    first[i] = match_position_first(&r->guide, r->first.keypoints[i].x, r->first.keypoints[i].y);
  for (uint32_t i = 0; guided && i < r->second.count; i++)
    second[i] = match_position_second(&r->guide, r->second.keypoints[i].x, r->second.keypoints[i].y);
  s->squares.first.positions = guided ? first : NULL;
  s->squares.second.positions = guided ? second : NULL;
  return HS_OK;
}

/* Like make_memory, but with smaller chunks if memory for the chosen ones cannot be allocated. */
static hs_status make_some_memory(hs_context *c, const match_request *r, neighbour_search *s, unsigned char **memory) {
  hs_status st = make_memory(c, r, s, memory);
  while ((st == HS_ERR_LIMIT || st == HS_ERR_MEMORY) && s->chunk_rows > s->block_rows) {
    s->chunk_rows = s->chunk_rows / 2 > s->block_rows ? s->chunk_rows / 2 : s->block_rows;
    if (c) context_clear_error(c);
    st = make_memory(c, r, s, memory);
  }
  return st;
}

/* Fills the lists of a chunk whose neighbours have been counted. */
static hs_status fill_chunk(hs_context *c, stage_queue *queue, neighbour_search *s, hs_neighbour_lists *lists) {
  const hs_status st = neighbour_lists_take(c, lists, s->squares.first_row, s->squares.rows, s->counts, &s->found);
  if (st != HS_OK) return st;
  s->starts = lists->starts + s->squares.first_row;
  queue_run(queue, blocks_of(s), fill_task, s);
  return HS_OK;
}

static hs_status search_chunks(hs_context *c, stage_queue *queue, neighbour_search *s, hs_neighbour_lists *lists) {
  const uint32_t all = s->squares.first.count;
  hs_status st = s->ops->pack_second(queue, &s->squares) == STAGE_OK ? HS_OK : HS_ERR_INTERNAL;
  if (c && st == HS_OK) st = context_progress(c, 0, all);
  for (uint32_t first = 0; st == HS_OK && first < all; first += s->squares.rows) {
    s->squares.first_row = first;
    s->squares.rows = all - first < s->chunk_rows ? all - first : s->chunk_rows;
    queue_run(queue, blocks_of(s), search_task, s);
    if (lists) st = fill_chunk(c, queue, s, lists);
    if (c && st == HS_OK) st = context_progress(c, (uint64_t)first + s->squares.rows, all);
  }
  return st;
}

static hs_status search_on_cpu(hs_context *c, const match_request *r, float bound, uint32_t k, hs_neighbour *nearest,
                               hs_neighbour_lists *lists) {
  stage_ops chosen;
  stage_queue *queue = c ? c->queue : NULL;
  unsigned char *memory = NULL;
  if (!c && !cpu_choose_ops(&chosen, NULL, NULL, 0)) return HS_ERR_OPTION;
  neighbour_search s = {.ops = c ? &c->ops : &chosen,
                        .squares = {.type = r->type,
                                    .first = {r->first.descriptors, NULL, r->first.count},
                                    .second = {r->second.descriptors, NULL, r->second.count},
                                    .guide = r->guide.kind,
                                    .tolerance_squared = r->guide.tolerance_squared,
                                    .pitch = squares_pitch(r->second.count)},
                        .bound = bound,
                        .k = k,
                        .nearest = (match_neighbour *)(void *)nearest};
  choose_rows(&s, queue_threads(queue));
  hs_status st = make_some_memory(c, r, &s, &memory);
  if (st == HS_OK) st = search_chunks(c, queue, &s, lists);
  match_drop_memory(c, memory);
  return st;
}

/* ------------------------------------------------------------------ the search on a device */

enum { FINISH_LISTS = 64 }; /* number of lists in a chunk */

static void finish_task(void *argument, int32_t chunk, int32_t worker) {
  const hs_neighbour_lists *lists = argument;
  const size_t first = (size_t)chunk * FINISH_LISTS, left = lists->feature_count - first;
  const size_t end = first + (left < FINISH_LISTS ? left : FINISH_LISTS);
  (void)worker;
  for (size_t i = first; i < end; i++)
    neighbours_finish((match_neighbour *)(void *)(lists->neighbours + lists->starts[i]),
                      lists->starts[i + 1] - lists->starts[i]);
}

/* Searches on a device, which returns its lists ordered by index. Threads of the host sort them by distance. */
static hs_status search_on_device(hs_context *c, const match_request *r, float bound, hs_neighbour_lists *lists) {
  hs_status st = context_progress(c, 0, 1);
  if (st == HS_OK) st = c->engine->matching->within(c, r, bound, neighbour_lists_take, lists);
  if (st == HS_OK) st = context_start_queue(c);
  if (st == HS_OK)
    queue_run(c->queue, (int32_t)((lists->feature_count + FINISH_LISTS - 1) / FINISH_LISTS), finish_task, lists);
  return st;
}

/* ------------------------------------------------------------------ public calls */

hs_status hs_find_k_nearest(hs_context *c, const hs_features *first, const hs_features *second,
                            const hs_match_options *options, int32_t k, hs_neighbour *neighbours) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  match_request request;
  if (c) context_clear_error(c);
  hs_status st = match_check(c, first, second, options, &request);
  if (st != HS_OK) return st;
  if (k < 1 || k > HS_NEIGHBOURS_MAX)
    return MATCH_FAIL(c, HS_ERR_ARGUMENT, "k is %ld, expected 1..%d", (long)k, (int)HS_NEIGHBOURS_MAX);
  if (request.first.count == 0) return HS_OK;
  if (!neighbours) return MATCH_FAIL(c, HS_ERR_ARGUMENT, "neighbours is null");
  const float bound = neighbour_bound((double)INFINITY);
  const bool on_device = c && c->engine->matching;
  if (on_device) st = context_progress(c, 0, 1);
  if (st != HS_OK) return st;
  if (on_device)
    return c->engine->matching->k_nearest(c, &request, bound, (uint32_t)k, (match_neighbour *)(void *)neighbours);
  return search_on_cpu(c, &request, bound, (uint32_t)k, neighbours, NULL);
}

hs_status hs_find_within(hs_context *c, const hs_features *first, const hs_features *second,
                         const hs_match_options *options, double radius, hs_neighbour_lists *lists) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  match_request request;
  if (c) context_clear_error(c);
  if (!lists) return MATCH_FAIL(c, HS_ERR_ARGUMENT, "lists is null");
  hs_status st = match_check(c, first, second, options, &request);
  if (st != HS_OK) return st;
  if (!(radius >= 0.0)) return MATCH_FAIL(c, HS_ERR_ARGUMENT, "radius is %g, expected 0 or more", radius);
  st = neighbour_lists_begin(c, lists, request.first.count);
  if (st != HS_OK) return st;
  const float bound = neighbour_bound(radius);
  if (request.first.count > 0 && c && c->engine->matching)
    st = search_on_device(c, &request, bound, lists);
  else if (request.first.count > 0)
    st = search_on_cpu(c, &request, bound, 0, NULL, lists);
  if (st != HS_OK) hs_neighbour_lists_free(lists);
  return st;
}

/* ------------------------------------------------- rows of squared distances, and lists that grow */

/* ------------------------------------------------------------------ order */

/* Restores the heap order below `at`. The top is the neighbour that is last in the order. */
static void sift_down(match_neighbour *heap, size_t at, size_t count) {
  const match_neighbour moving = heap[at];
  for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && neighbour_before(heap[child], heap[child + 1])) child++;
    if (!neighbour_before(moving, heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moving;
}

static void make_heap(match_neighbour *list, size_t count) {
  for (size_t i = count / 2; i-- > 0;) sift_down(list, i, count);
}

/* Sorts a heap into ascending order and computes distances. */
static void finish_heap(match_neighbour *heap, size_t count) {
  for (size_t left = count; left-- > 1;) {
    const match_neighbour last = heap[0];
    heap[0] = heap[left];
    heap[left] = last;
    sift_down(heap, 0, left);
  }
  for (size_t i = 0; i < count; i++) heap[i] = neighbour_measured(heap[i]);
}

void neighbours_finish(match_neighbour *found, size_t count) {
  make_heap(found, count);
  finish_heap(found, count);
}

/* ------------------------------------------------------------------ a row */

void neighbours_nearest(const float *squares, uint32_t count, float bound, uint32_t k, match_neighbour *nearest) {
  uint32_t have = 0;
  for (uint32_t j = 0; j < count; j++) {
    if (!(squares[j] < bound)) continue;
    const match_neighbour candidate = {j, squares[j]};
    if (have < k) {
      nearest[have++] = candidate;
      if (have == k) make_heap(nearest, k);
    } else {
      nearest[0] = candidate;
      sift_down(nearest, 0, k);
    }
    /* indices ascend, so a neighbour at the same distance as the last of the k comes after it */
    if (have == k) bound = nearest[0].squared;
  }
  if (have < k) make_heap(nearest, have);
  finish_heap(nearest, have);
  for (uint32_t i = have; i < k; i++) nearest[i] = neighbour_none();
}

uint32_t neighbours_count(const float *squares, uint32_t count, float bound) {
  uint32_t wanted = 0;
  for (uint32_t j = 0; j < count; j++) wanted += squares[j] < bound;
  return wanted;
}

void neighbours_list(const float *squares, uint32_t count, float bound, match_neighbour *found) {
  for (uint32_t j = 0; j < count; j++)
    if (squares[j] < bound) *found++ = (match_neighbour){j, squares[j]};
}

/* ------------------------------------------------------------------ lists */

void hs_neighbour_lists_free(hs_neighbour_lists *lists) {
  if (!lists) return;
  hs_memory_release(lists->allocator, lists->starts);
  hs_memory_release(lists->allocator, lists->neighbours);
  memset(lists, 0, sizeof *lists);
}

hs_status neighbour_lists_begin(hs_context *c, hs_neighbour_lists *lists, size_t feature_count) {
  const hs_allocator *allocator = c ? c->options.allocator : NULL;
  if (lists->allocator != allocator || lists->starts_capacity < feature_count + 1) {
    size_t bytes;
    size_t *starts = hs_size_mul(feature_count + 1, sizeof *starts, &bytes) ? hs_memory_alloc(allocator, bytes) : NULL;
    if (!starts) return MATCH_FAIL(c, HS_ERR_MEMORY, "out of memory for %zu lists", feature_count);
    hs_neighbour_lists_free(lists);
    lists->starts = starts;
    lists->starts_capacity = feature_count + 1;
    lists->allocator = allocator;
  }
  lists->feature_count = feature_count;
  lists->starts[0] = 0;
  return HS_OK;
}

hs_status neighbour_lists_grow(hs_context *c, hs_neighbour_lists *lists, size_t count) {
  if (count <= lists->capacity) return HS_OK;
  /* grows by at least half, so that lists that grow chunk by chunk are not copied each time */
  size_t wanted = lists->capacity + lists->capacity / 2, bytes;
  if (wanted < count) wanted = count;
  hs_neighbour *grown = hs_size_mul(wanted, sizeof *grown, &bytes) ? hs_memory_alloc(lists->allocator, bytes) : NULL;
  if (!grown) return MATCH_FAIL(c, HS_ERR_MEMORY, "out of memory for %zu neighbours", count);
  if (lists->capacity > 0) memcpy(grown, lists->neighbours, lists->capacity * sizeof *grown);
  hs_memory_release(lists->allocator, lists->neighbours);
  lists->neighbours = grown;
  lists->capacity = wanted;
  return HS_OK;
}

hs_status neighbour_lists_take(hs_context *c, void *user, uint32_t first_row, uint32_t rows, const uint32_t *counts,
                               match_neighbour **found) {
  hs_neighbour_lists *lists = user;
  const size_t before = lists->starts[first_row];
  size_t total = before;
  for (uint32_t row = 0; row < rows; row++) lists->starts[first_row + row + 1] = total += counts[row];
  const hs_status st = neighbour_lists_grow(c, lists, total);
  /* if no row has had a neighbour so far, no memory exists */
  *found = st == HS_OK && lists->neighbours ? (match_neighbour *)(void *)(lists->neighbours + before) : NULL;
  return st;
}
