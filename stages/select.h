/*
 * Selection: exactly max_features features, the strongest or the largest, ties by the defined order.
 */
#ifndef HARTSIFT_STAGES_SELECT_H
#define HARTSIFT_STAGES_SELECT_H

#include <string.h>

#include "stages/keypoint.h"

/* Keeps max_features of the features and closes the gaps, order kept; nothing happens when there are no more than
   that. Descriptors of the first described_count features move with them; *kept_described gets how many of those stay. */
typedef struct select_args {
  keypoint_list keypoints;
  feature_list features;
  uint32_t max_features;
  bool by_scale; /* by sigma instead of response */
  unsigned char *descriptors;
  size_t descriptor_bytes; /* of one */
  uint32_t described_count;
  uint32_t *kept_described;
} select_args;

/* The key of item i of a list: the larger, the better. */
typedef uint32_t (*select_key)(const void *list, uint32_t i);

/* Which items are the `most` best: those above the threshold, and the first `ties` that equal it. */
typedef struct select_cut {
  uint32_t threshold, ties;
} select_cut;

static inline uint32_t select_count_at_least(const void *list, uint32_t n, select_key key, uint32_t least) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++) count += key(list, i) >= least;
  return count;
}

/* Finds the cut of n items bit by bit, for most < n: the threshold is the largest key that `most` items reach. */
static inline select_cut select_find_cut(const void *list, uint32_t n, uint32_t most, select_key key) {
  select_cut cut = {0, most};
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1)
    if (select_count_at_least(list, n, key, cut.threshold | bit) >= most) cut.threshold |= bit;
  if (cut.threshold < UINT32_MAX) cut.ties -= select_count_at_least(list, n, key, cut.threshold + 1);
  return cut;
}

/* Moves what belongs to feature `from` to place `to`, which is not behind it; its descriptor counts as kept. */
static inline void select_move(const select_args *args, uint32_t from, uint32_t to) {
  if (from < args->described_count) {
    if (args->descriptor_bytes > 0)
      memmove(args->descriptors + to * args->descriptor_bytes, args->descriptors + from * args->descriptor_bytes,
              args->descriptor_bytes);
    *args->kept_described = to + 1;
  }
  args->features.keypoint[to] = args->features.keypoint[from];
  args->features.orientation[to] = args->features.orientation[from];
}

/* Whether an item stays; asked for each item in order. */
static inline bool select_keeps(select_cut *cut, uint32_t key) {
  if (key != cut->threshold) return key > cut->threshold;
  if (cut->ties == 0) return false;
  cut->ties--;
  return true;
}

#endif
