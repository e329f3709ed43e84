/* Lists of pairs of images; see image_pairs.h. */
#include "pipeline/retrieval/image_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/memory.h"

enum { FIRST_ROOM = 64 };

void hs_image_pairs_free(hs_image_pairs *pairs) {
  if (!pairs) return;
  hs_memory_release(pairs->allocator, pairs->pairs);
  memset(pairs, 0, sizeof *pairs);
}

static bool grow(hs_image_pairs *pairs) {
  size_t room, bytes;
  if (pairs->capacity < FIRST_ROOM)
    room = FIRST_ROOM;
  else if (!hs_size_mul(pairs->capacity, 2, &room))
    return false;
  hs_image_pair *larger = hs_size_mul(room, sizeof *larger, &bytes) ? hs_memory_alloc(pairs->allocator, bytes) : NULL;
  if (!larger) return false;
  if (pairs->count > 0) memcpy(larger, pairs->pairs, pairs->count * sizeof *larger);
  hs_memory_release(pairs->allocator, pairs->pairs);
  pairs->pairs = larger;
  pairs->capacity = room;
  return true;
}

bool image_pairs_add(hs_image_pairs *pairs, uint32_t one, uint32_t other) {
  if (pairs->count >= pairs->capacity && !grow(pairs)) return false;
  pairs->pairs[pairs->count++] = one < other ? (hs_image_pair){one, other} : (hs_image_pair){other, one};
  return true;
}

static int compare_pairs(const void *left, const void *right) {
  const hs_image_pair *a = left, *b = right;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return a->second < b->second ? -1 : a->second > b->second;
}

void image_pairs_settle(hs_image_pairs *pairs) {
  size_t kept = 0;
  if (pairs->count > 1) qsort(pairs->pairs, pairs->count, sizeof *pairs->pairs, compare_pairs);
  for (size_t i = 0; i < pairs->count; i++)
    if (kept == 0 || compare_pairs(&pairs->pairs[kept - 1], &pairs->pairs[i]) != 0)
      pairs->pairs[kept++] = pairs->pairs[i];
  pairs->count = kept;
}

/* ------------------------------------------------------------------ the nearest */

static bool is_farther(const neighbor *a, const neighbor *b) {
  return a->distance > b->distance || (a->distance == b->distance && a->image > b->image);
}

static void sift_down(neighbor *near, uint32_t count) {
  const neighbor moved = near[0];
  uint32_t at = 0;
  for (uint32_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && is_farther(&near[child + 1], &near[child])) child++;
    if (!is_farther(&near[child], &moved)) break;
    near[at] = near[child];
    at = child;
  }
  near[at] = moved;
}

void neighbor_offer(neighbor *near, uint32_t *count, uint32_t room, neighbor offered) {
  if (*count == room) {
    if (room == 0 || !is_farther(&near[0], &offered)) return;
    near[0] = offered;
    sift_down(near, room);
    return;
  }
  uint32_t at = (*count)++;
  for (; at > 0 && is_farther(&offered, &near[(at - 1) / 2]); at = (at - 1) / 2) near[at] = near[(at - 1) / 2];
  near[at] = offered;
}
