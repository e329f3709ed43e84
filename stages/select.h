/*
 * Selection of features: the max_features strongest or largest (ties by the defined order); or all features of the
 * coarsest levels; or the best features of each cell of a grid.
 */
#ifndef HARTSIFT_STAGES_SELECT_H
#define HARTSIFT_STAGES_SELECT_H

#include <string.h>

#include "stages/keypoint.h"
#include "stages/portable.h"

/* SELECT_LEVELS keeps all keypoints of a level or none. It goes from the last level of the coarsest octave to the first
 * level of the finest one, and keeps a level if the levels before it have at most max_features keypoints. So the level
 * that exceeds the number is still kept. Features that differ only in orientation count as one keypoint. Source:
 * COLMAP's CPU extractor (src/colmap/feature/sift.cc). The decision for a level depends on coarser levels only: a level
 * that is dropped in a subset of the features is also dropped in the full set. */
typedef enum select_rule { SELECT_STRONGEST = 0, SELECT_LARGEST = 1, SELECT_LEVELS = 2 } select_rule;

/* Keeps max_features features, or the levels of SELECT_LEVELS, and closes the gaps in order. Does nothing if there are
 * no more than max_features. The descriptors of the first described_count features move with their features;
 * *kept_described receives the number of these features that are kept. */
typedef struct select_args {
  keypoint_list keypoints;
  feature_list features;
  uint32_t max_features;
  select_rule rule;
  unsigned char *descriptors;
  size_t descriptor_bytes; /* bytes of a descriptor */
  uint32_t described_count;
  uint32_t *kept_described;
} select_args;

/* Returns the key of item i of a list; a larger key is better. */
typedef uint32_t (*select_key)(const void *list, uint32_t i);

/* Selects the `most` best items: all items with a key above the threshold, and the first `ties` items with a key equal
 * to it. */
typedef struct select_cut {
  uint32_t threshold, ties;
} select_cut;

static inline uint32_t select_count_at_least(const void *list, uint32_t n, select_key key, uint32_t least) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++) count += key(list, i) >= least;
  return count;
}

/* Finds the cut for the `most` best of n items, most < n. The threshold is found bit by bit: the largest key that at
 * least `most` items reach. */
static inline select_cut select_find_cut(const void *list, uint32_t n, uint32_t most, select_key key) {
  select_cut cut = {0, most};
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1)
    if (select_count_at_least(list, n, key, cut.threshold | bit) >= most) cut.threshold |= bit;
  if (cut.threshold < UINT32_MAX) cut.ties -= select_count_at_least(list, n, key, cut.threshold + 1);
  return cut;
}

/* Returns the rank of a level among all levels: larger for coarser levels, always above 0. It uses the upper 11
 * bits. */
HS_INLINE uint32_t select_level_key(int32_t octave, int32_t level) {
  return (((uint32_t)octave + 64u) << 4 | (uint32_t)level) << 21;
}

/* Whether two entries of a keypoint list are the same keypoint. Compares values, because a list of finished features
 * does not refer to keypoints. */
HS_INLINE bool select_is_same(const keypoint_list *k, uint32_t a, uint32_t b) {
  return a == b ||
         (hs_float_bits(k->x[a]) == hs_float_bits(k->x[b]) && hs_float_bits(k->y[a]) == hs_float_bits(k->y[b]) &&
          hs_float_bits(k->sigma[a]) == hs_float_bits(k->sigma[b]) &&
          hs_float_bits(k->response[a]) == hs_float_bits(k->response[b]) && k->octave[a] == k->octave[b] &&
          k->level[a] == k->level[b]);
}

/* Whether item i (not the first) belongs to the same keypoint as item i - 1. */
typedef bool (*select_joins)(const void *list, uint32_t i);

/* Returns the first item that SELECT_LEVELS keeps. Items are in the order of levels, so the kept ones are the last. */
static inline uint32_t select_first_level(const void *list, uint32_t n, uint32_t most, select_key level_of,
                                          select_joins joins) {
  uint32_t keypoints = 0, first = n;
  while (first > 0 && keypoints <= most) {
    first--;
    keypoints += first == 0 || !joins(list, first);
  }
  if (keypoints <= most) return 0;
  while (first > 0 && level_of(list, first - 1) == level_of(list, first)) first--;
  return first;
}

/* Moves the data of feature `from` to position `to`, which is not after `from`. Counts its descriptor as kept. */
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

/* Whether an item is kept. Call once for each item, in order, because *cut counts the ties. */
static inline bool select_keeps(select_cut *cut, uint32_t key) {
  if (key != cut->threshold) return key > cut->threshold;
  if (cut->ties == 0) return false;
  cut->ties--;
  return true;
}

/* Selection spread over the picture: exactly max_features features, evenly from the cells of a grid.
 *
 * The picture is cut into columns x rows cells; a feature belongs to the cell of its rounded position. Inside its cell
 * it is ranked by the key of plain selection (response or sigma, the larger first, ties by the defined order). All
 * features of rank 0 are better than all features of rank 1, and so on. Within one rank the larger key is better, ties
 * by the order. The max_features best features are kept, in their order. A feature that is not among the best of a
 * subset is not among the best of the full set, so features may be dropped before all are known. */

enum { GRID_CELLS_MAX = 4096 }; /* cells along a side */

typedef struct grid_shape {
  int32_t columns, rows; /* 1..GRID_CELLS_MAX */
  int32_t width, height; /* size of the picture */
} grid_shape;

/* A feature while it is sorted. */
typedef struct grid_item {
  uint64_t key; /* cell in the upper bits, then the complement of the selection's key: ascending order is better
                 * first */
  uint32_t feature;
  uint32_t rank; /* rank in its cell, from 0 */
} grid_item;

/* Returns the cell of a position in pixels, which is rounded and clamped to the picture. */
HS_INLINE uint32_t grid_cell(const grid_shape *g, float x, float y) {
  const float last_x = (float)(g->width - 1), last_y = (float)(g->height - 1);
  const float px = x + 0.5f, py = y + 0.5f;
  const int64_t column = px > 0.0f ? (px < last_x ? (int64_t)px : g->width - 1) : 0;
  const int64_t row = py > 0.0f ? (py < last_y ? (int64_t)py : g->height - 1) : 0;
  return (uint32_t)(row * g->rows / g->height * g->columns + column * g->columns / g->width);
}

static inline grid_item grid_item_of(uint32_t cell, uint32_t key, uint32_t feature) {
  const grid_item item = {(uint64_t)cell << 32 | (uint32_t)~key, feature, 0};
  return item;
}

/* The result of a choice over the grid; see grid_keeps. */
typedef struct grid_choice {
  const uint32_t *rank; /* [feature]: rank in its cell; the array is in the spare items */
  select_cut ranks;     /* cut between ranks, by the complement of the rank */
  select_cut last;      /* cut by the selection's key within the rank that is kept only in part */
} grid_choice;

/* Chooses the `most` best of n features, n > most. items: [n], in the order of the features; the call sorts them.
 * spare: [n], work memory. */
grid_choice grid_choose(grid_item *items, grid_item *spare, uint32_t n, uint32_t most);

/* Whether a feature is kept. Call once for each feature, in order, because *choice counts the ties. key: the
 * selection's key. */
static inline bool grid_keeps(grid_choice *choice, uint32_t feature, uint32_t key) {
  const uint32_t better = ~choice->rank[feature];
  if (better != choice->ranks.threshold) return better > choice->ranks.threshold;
  return select_keeps(&choice->last, key);
}

#endif
