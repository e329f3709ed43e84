/* Rows of squares to neighbours in order, and lists of them that grow; see neighbour_lists.h. */
#include "pipeline/matching/neighbour_lists.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/matching/match_call.h"

/* ------------------------------------------------------------------ order */

/* Restores the heap, last neighbour on top, below `at`. */
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

/* A heap into ascending order, with distances. */
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
    /* Indices ascend, so that one as far as the last of k comes behind it. */
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
    if (!starts) return MATCH_FAIL(c, HS_ERR_MEMORY, "cannot make room for %zu lists", feature_count);
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
  /* Half more than there is, so that lists which grow chunk by chunk are not copied each time. */
  size_t wanted = lists->capacity + lists->capacity / 2, bytes;
  if (wanted < count) wanted = count;
  hs_neighbour *room = hs_size_mul(wanted, sizeof *room, &bytes) ? hs_memory_alloc(lists->allocator, bytes) : NULL;
  if (!room) return MATCH_FAIL(c, HS_ERR_MEMORY, "cannot make room for %zu neighbours", count);
  if (lists->capacity > 0) memcpy(room, lists->neighbours, lists->capacity * sizeof *room);
  hs_memory_release(lists->allocator, lists->neighbours);
  lists->neighbours = room;
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
  /* Nothing is held where nobody has had a neighbour yet. */
  *found = st == HS_OK && lists->neighbours ? (match_neighbour *)(void *)(lists->neighbours + before) : NULL;
  return st;
}
