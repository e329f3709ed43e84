/*
 * Selection spread over the picture: exactly max_features features, evenly from the cells of a grid.
 *
 * The picture is cut into columns x rows cells; a feature belongs to the cell of its rounded place. Inside its cell it is
 * ranked by the key of plain selection (response or sigma, the larger first, ties by the defined order). All features of
 * rank 0 are better than all of rank 1, and so on; within one rank the larger key is better, ties by the order. The
 * max_features best stay, in the order they had. What is not among the best of some of the features is not among the best
 * of all, so features may be dropped before the last are known.
 */
#ifndef HARTSIFT_STAGES_GRID_SELECT_H
#define HARTSIFT_STAGES_GRID_SELECT_H

#include "stages/portable.h"
#include "stages/select.h"

enum { GRID_CELLS_MOST = 4096 }; /* a side */

typedef struct grid_shape {
  int32_t columns, rows; /* 1..GRID_CELLS_MOST */
  int32_t width, height; /* of the picture */
} grid_shape;

/* A feature while it is sorted. */
typedef struct grid_item {
  uint64_t key; /* cell, then the complement of the selection's key: ascending is better first */
  uint32_t feature;
  uint32_t rank; /* in its cell, from 0 */
} grid_item;

/* The cell of a place: pixels, rounded, cut to the picture. */
HS_INLINE uint32_t grid_cell(const grid_shape *g, float x, float y) {
  const float last_x = (float)(g->width - 1), last_y = (float)(g->height - 1);
  const float px = x + 0.5f, py = y + 0.5f;
  const int64_t column = px > 0.0f ? (px < last_x ? (int64_t)px : g->width - 1) : 0;
  const int64_t row = py > 0.0f ? (py < last_y ? (int64_t)py : g->height - 1) : 0;
  return (uint32_t)(row * g->rows / g->height * g->columns + column * g->columns / g->width);
}

static inline grid_item grid_item_of(uint32_t cell, uint32_t key, uint32_t feature) {
  return (grid_item){(uint64_t)cell << 32 | (uint32_t)~key, feature, 0};
}

/* Which features stay; see grid_keeps. */
typedef struct grid_choice {
  const uint32_t *rank; /* of each feature; lies in the spare items */
  select_cut ranks;     /* by the complement of the rank */
  select_cut last;      /* inside the last rank that is reached, by the selection's key */
} grid_choice;

/* Chooses `most` of n > most features. items: one for each, in their order; sorted by the call. spare: n more. */
grid_choice grid_choose(grid_item *items, grid_item *spare, uint32_t n, uint32_t most);

/* Whether a feature stays, asked for each in order; key: that of the selection. */
static inline bool grid_keeps(grid_choice *choice, uint32_t feature, uint32_t key) {
  const uint32_t better = ~choice->rank[feature];
  if (better != choice->ranks.threshold) return better > choice->ranks.threshold;
  return select_keeps(&choice->last, key);
}

#endif
