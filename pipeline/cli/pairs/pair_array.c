/*
 * A growing list of pairs; see pair_array.h.
 */
#include "pipeline/cli/pairs/pair_array.h"

#include <stdint.h>
#include <stdlib.h>

bool pair_list_add(pair_list *pairs, size_t first, size_t second) {
  /* Room doubles: at powers of two. */
  if ((pairs->count & (pairs->count - 1)) == 0) {
    const size_t room = pairs->count == 0 ? 1 : 2 * pairs->count;
    hs_image_pair *larger = room <= SIZE_MAX / sizeof *larger ? realloc(pairs->each, room * sizeof *larger) : NULL;
    if (!larger) return false;
    pairs->each = larger;
  }
  pairs->each[pairs->count++] = (hs_image_pair){(uint32_t)first, (uint32_t)second};
  return true;
}

void pair_list_free(pair_list *pairs) {
  free(pairs->each);
  *pairs = (pair_list){0};
}

static int compare_pairs(const void *one, const void *other) {
  const hs_image_pair *a = one, *b = other;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return (a->second > b->second) - (a->second < b->second);
}

void pair_list_settle(pair_list *pairs) {
  size_t kept = 0;
  if (pairs->count > 1) qsort(pairs->each, pairs->count, sizeof *pairs->each, compare_pairs);
  for (size_t i = 0; i < pairs->count; i++)
    if (kept == 0 || compare_pairs(&pairs->each[kept - 1], &pairs->each[i]) != 0) pairs->each[kept++] = pairs->each[i];
  pairs->count = kept;
}
