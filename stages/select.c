/* Ranks the features of each cell by sorting. Then makes two cuts: the rank that is kept only in part, and the key
 * within that rank. */
#include "stages/select.h"

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, KEY_BITS = 64 };

/* Makes one pass of a stable radix sort. False: all items have the same digit, and nothing was done. */
static bool sort_pass(const grid_item *from, grid_item *to, uint32_t n, int32_t shift) {
  uint32_t start[DIGITS] = {0}, sum = 0;
  for (uint32_t i = 0; i < n; i++) start[from[i].key >> shift & (DIGITS - 1)]++;
  if (start[from[0].key >> shift & (DIGITS - 1)] == n) return false;
  for (int32_t d = 0; d < DIGITS; d++) {
    const uint32_t count = start[d];
    start[d] = sum;
    sum += count;
  }
  for (uint32_t i = 0; i < n; i++) to[start[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
  return true;
}

/* Better ranks are smaller numbers, so the key is the complement. */
static uint32_t rank_key(const void *list, uint32_t i) { return ~((const grid_item *)list)[i].rank; }

/* Returns the key of an item of a list in which all items have the same rank. */
static uint32_t selection_key(const void *list, uint32_t i) { return (uint32_t) ~((const grid_item *)list)[i].key; }

/* Gathers the items of the rank that the cut divides, in the order of the features. Returns their number. */
static uint32_t gather_last(const grid_item *items, const select_cut *ranks, grid_item *last, uint32_t n) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++)
    if (rank_key(items, i) == ranks->threshold) last[count++] = items[i];
  return count;
}

grid_choice grid_choose(grid_item *items, grid_item *spare, uint32_t n, uint32_t most) {
  grid_item *from = items, *to = spare;
  grid_choice choice;
  for (int32_t shift = 0; shift < KEY_BITS; shift += DIGIT_BITS) {
    if (!sort_pass(from, to, n, shift)) continue;
    grid_item *const other = from;
    from = to;
    to = other;
  }
  for (uint32_t i = 0; i < n; i++) {
    const bool same_cell = i > 0 && from[i].key >> 32 == from[i - 1].key >> 32;
    from[i].rank = same_cell ? from[i - 1].rank + 1 : 0;
  }
  choice.ranks = select_find_cut(from, n, most, rank_key);
  /* Equal keys may be in any order: the cut consists of a key and a number. */
  const uint32_t count = gather_last(from, &choice.ranks, to, n), wanted = choice.ranks.ties;
  choice.last = (select_cut){0, wanted};
  if (wanted < count) choice.last = select_find_cut(to, count, wanted, selection_key);
  uint32_t *rank = (uint32_t *)(void *)to;
  for (uint32_t i = 0; i < n; i++) rank[from[i].feature] = from[i].rank;
  choice.rank = rank;
  return choice;
}
