/*
 * Matching of features whose positions must agree with a guide. Included by match_simd.c.
 *
 * Positions rule out nearly every pair. The positions of the second list are ordered by the cells of a grid, so that a
 * block of them covers a small rectangle:
 *
 *   one row   x   rectangles, GUIDED_BLOCK of them at once   ->  rectangles that may hold a position that agrees
 *             x   positions in these, GUIDED_BLOCK at once   ->  candidates  ->  distances, nearest two
 *
 * The test of a rectangle has a margin for the rounding errors of both tests, so it rules out no candidate. Candidates
 * have a total order, so they may be compared in any sequence.
 */
#ifndef HARTSIFT_CPU_SIMD_MATCH_GUIDED_SIMD_H
#define HARTSIFT_CPU_SIMD_MATCH_GUIDED_SIMD_H

#include <math.h>
#include <stdint.h>

#include "stages/match.h"

enum { GUIDED_BLOCK = 16, GUIDED_CELLS_MAX = 256 /* cells of the grid in each direction */ };

/* Relative allowance for rounding. A test has fewer than 20 operations, each with an error below 2^-52. */
#define GUIDED_SLACK 0x1p-40

/* Positions of the second list, as match_position has them. Padding is NaN, which agrees with no position. */
typedef struct guided_block {
  double x[GUIDED_BLOCK], y[GUIDED_BLOCK], n[GUIDED_BLOCK];
  uint32_t index[GUIDED_BLOCK]; /* in the second list */
} guided_block;

/* Centres and half sides of the rectangles of GUIDED_BLOCK blocks, and the largest n in each. */
typedef struct guided_group {
  double x[GUIDED_BLOCK], y[GUIDED_BLOCK], half_x[GUIDED_BLOCK], half_y[GUIDED_BLOCK], n[GUIDED_BLOCK];
} guided_group;

typedef struct guided_list {
  guided_group *groups; /* [group_count] */
  guided_block *blocks; /* [group_count][GUIDED_BLOCK] */
  uint32_t *starts;     /* [guided_cells(count)^2 + 1]: scratch of packing */
  uint64_t group_count;
} guided_list;

static guided_list guided_list_at(uint32_t count, unsigned char *work) {
  const uint64_t positions = GUIDED_BLOCK * GUIDED_BLOCK;
  guided_list l = {.group_count = ((uint64_t)count + positions - 1) / positions};
  l.groups = (guided_group *)(void *)work;
  l.blocks = (guided_block *)(void *)(l.groups + l.group_count);
  l.starts = (uint32_t *)(void *)(l.blocks + l.group_count * GUIDED_BLOCK);
  return l;
}

/* Returns the cells of the grid in each direction: about GUIDED_BLOCK positions a cell. */
static uint32_t guided_cells(uint32_t count) {
  uint32_t cells = 1;
  while (cells < GUIDED_CELLS_MAX && (uint64_t)cells * cells * GUIDED_BLOCK < count) cells *= 2;
  return cells;
}

/* Returns the bytes of the packed positions, a multiple of 64. */
static uint64_t guided_list_bytes(uint32_t count) {
  const uint64_t groups = ((uint64_t)count + GUIDED_BLOCK * GUIDED_BLOCK - 1) / (GUIDED_BLOCK * GUIDED_BLOCK);
  const uint64_t starts = ((uint64_t)guided_cells(count) * guided_cells(count) + 1) * sizeof(uint32_t);
  return (groups * (sizeof(guided_group) + GUIDED_BLOCK * sizeof(guided_block)) + starts + 63) / 64 * 64;
}

/* The grid over the positions of a list. */
typedef struct guided_grid {
  double low_x, low_y, scale_x, scale_y; /* cell = (position - low) * scale */
  uint32_t cells;                        /* in each direction */
} guided_grid;

static guided_grid guided_grid_of(const match_side *list) {
  double low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY;
  for (uint32_t j = 0; j < list->count; j++) { /* comparisons with NaN are false */
    const match_position *p = &list->positions[j];
    if (p->x < low_x) low_x = p->x;
    if (p->x > high_x) high_x = p->x;
    if (p->y < low_y) low_y = p->y;
    if (p->y > high_y) high_y = p->y;
  }
  guided_grid g = {.low_x = low_x, .low_y = low_y, .cells = guided_cells(list->count)};
  g.scale_x = high_x > low_x ? g.cells / (high_x - low_x) : 0.0;
  g.scale_y = high_y > low_y ? g.cells / (high_y - low_y) : 0.0;
  return g;
}

/* Returns the cell of a coordinate; 0 for NaN. */
static uint32_t guided_cell(double from_low, double scale, uint32_t cells) {
  const double at = from_low * scale;
  return !(at > 0.0) ? 0 : at < (double)cells ? (uint32_t)at : cells - 1;
}

static uint32_t guided_cell_of(const guided_grid *g, const match_position *p) {
  return guided_cell(p->y - g->low_y, g->scale_y, g->cells) * g->cells +
         guided_cell(p->x - g->low_x, g->scale_x, g->cells);
}

static void guided_bound(const guided_block *b, guided_group *group, uint32_t at) {
  double low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY, n = 0.0;
  for (int l = 0; l < GUIDED_BLOCK; l++) {
    if (b->x[l] < low_x) low_x = b->x[l];
    if (b->x[l] > high_x) high_x = b->x[l];
    if (b->y[l] < low_y) low_y = b->y[l];
    if (b->y[l] > high_y) high_y = b->y[l];
    if (b->n[l] > n) n = b->n[l];
  }
  group->x[at] = 0.5 * (low_x + high_x);
  group->y[at] = 0.5 * (low_y + high_y);
  group->half_x[at] = 0.5 * (high_x - low_x);
  group->half_y[at] = 0.5 * (high_y - low_y);
  group->n[at] = n;
}

/* Packs the positions of the second list. */
static void guided_pack(const match_side *list, const guided_list *l) {
  const guided_grid grid = guided_grid_of(list);
  const uint32_t cells = grid.cells * grid.cells;
  const guided_block none = {.index = {0}};
  for (uint32_t c = 0; c <= cells; c++) l->starts[c] = 0;
  for (uint32_t j = 0; j < list->count; j++) l->starts[guided_cell_of(&grid, &list->positions[j]) + 1]++;
  for (uint32_t c = 0; c < cells; c++) l->starts[c + 1] += l->starts[c];
  for (uint64_t b = 0; b < l->group_count * GUIDED_BLOCK; b++) {
    l->blocks[b] = none;
    for (int i = 0; i < GUIDED_BLOCK; i++) l->blocks[b].x[i] = l->blocks[b].y[i] = l->blocks[b].n[i] = NAN;
  }
  for (uint32_t j = 0; j < list->count; j++) {
    const match_position *p = &list->positions[j];
    const uint32_t at = l->starts[guided_cell_of(&grid, p)]++;
    guided_block *b = &l->blocks[at / GUIDED_BLOCK];
    b->x[at % GUIDED_BLOCK] = p->x;
    b->y[at % GUIDED_BLOCK] = p->y;
    b->n[at % GUIDED_BLOCK] = p->n;
    b->index[at % GUIDED_BLOCK] = j;
  }
  for (uint64_t b = 0; b < l->group_count * GUIDED_BLOCK; b++)
    guided_bound(&l->blocks[b], &l->groups[b / GUIDED_BLOCK], (uint32_t)(b % GUIDED_BLOCK));
}

/* Writes to kept[l] whether rectangle l may hold a position that agrees with `first`. Returns whether any does. A
 * comparison with NaN keeps the rectangle. */
static bool guided_rectangles(const match_args *a, const match_position *first, const guided_group *g, int64_t *kept) {
  const double tolerance = a->tolerance_squared * (1.0 + GUIDED_SLACK);
  int64_t any = 0;
  if (a->guide == MATCH_HOMOGRAPHY) {
    for (int l = 0; l < GUIDED_BLOCK; l++) {
      const double slack_x = GUIDED_SLACK * (fabs(first->x) + fabs(g->x[l]) + g->half_x[l]);
      const double slack_y = GUIDED_SLACK * (fabs(first->y) + fabs(g->y[l]) + g->half_y[l]);
      const double dx = fabs(first->x - g->x[l]) - g->half_x[l] - slack_x;
      const double dy = fabs(first->y - g->y[l]) - g->half_y[l] - slack_y;
      const double square = (dx > 0.0 ? dx * dx : 0.0) + (dy > 0.0 ? dy * dy : 0.0);
      kept[l] = !(square > tolerance);
      any |= kept[l];
    }
    return any != 0;
  }
  const double a_x = fabs(first->x), a_y = fabs(first->y), a_z = fabs(first->z);
  for (int l = 0; l < GUIDED_BLOCK; l++) {
    const double e = fabs((first->x * g->x[l] + first->y * g->y[l]) + first->z);
    const double spread = a_x * g->half_x[l] + a_y * g->half_y[l];
    const double slack = GUIDED_SLACK * (a_x * fabs(g->x[l]) + a_y * fabs(g->y[l]) + a_z + spread);
    const double least = e - spread - slack;
    const double square = least > 0.0 ? least * least : 0.0;
    kept[l] = !(square > tolerance * (first->n + g->n[l]));
    any |= kept[l];
  }
  return any != 0;
}

/* Writes to agree[l] whether position l agrees with `first`. Returns whether any does. */
static bool guided_positions(const match_args *a, const match_position *first, const guided_block *b, int64_t *agree) {
  int64_t any = 0;
  if (a->guide == MATCH_HOMOGRAPHY) {
    for (int l = 0; l < GUIDED_BLOCK; l++) {
      const match_position second = {b->x[l], b->y[l], 0.0, 0.0};
      agree[l] = match_agrees(MATCH_HOMOGRAPHY, a->tolerance_squared, first, &second);
      any |= agree[l];
    }
    return any != 0;
  }
  for (int l = 0; l < GUIDED_BLOCK; l++) {
    const match_position second = {b->x[l], b->y[l], 1.0, b->n[l]};
    agree[l] = match_agrees(MATCH_FUNDAMENTAL, a->tolerance_squared, first, &second);
    any |= agree[l];
  }
  return any != 0;
}

/* Returns the nearest neighbours of row i. Also updates the nearest neighbours of the columns, if columns is not
 * null. */
static match_nearest guided_row(const match_args *a, const guided_list *list, uint32_t i, match_nearest *columns) {
  const match_position *first = &a->first.positions[i];
  match_nearest n = match_nearest_none();
  for (uint64_t g = 0; g < list->group_count; g++) {
    int64_t kept[GUIDED_BLOCK], agree[GUIDED_BLOCK];
    if (!guided_rectangles(a, first, &list->groups[g], kept)) continue;
    for (uint32_t k = 0; k < GUIDED_BLOCK; k++) {
      const guided_block *b = &list->blocks[g * GUIDED_BLOCK + k];
      if (!kept[k] || !guided_positions(a, first, b, agree)) continue;
      for (uint32_t l = 0; l < GUIDED_BLOCK; l++) {
        if (!agree[l]) continue;
        const uint32_t j = b->index[l];
        const float squared = match_square(a->type, &a->first, i, &a->second, j);
        match_take(&n, j, squared);
        if (columns) match_take(&columns[j], i, squared);
      }
    }
  }
  return n;
}

#endif
