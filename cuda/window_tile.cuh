/*
 * The samples about a feature as one warp walks them: tiles of at most SIZE x SIZE samples, with the window's weights
 * by column and by row, and the span of each row that can vote, computed once and kept in shared memory.
 *
 * A warp's lanes form groups of GROUP lanes that take neighbouring samples of one row. Pairs of groups take rows from
 * the two ends of the tile: windows are point-symmetric, so such rows are of equal length, and their samples lie in
 * different cells of a histogram.
 */
#ifndef HS_CUDA_WINDOW_TILE_CUH
#define HS_CUDA_WINDOW_TILE_CUH

#include "cuda/prim/warp_reduce.cuh"
#include "stages/orient.h"

/* The part of a window that both histograms have in common. */
typedef struct window_place {
  float x, y;     /* distances are measured from here */
  int32_t cx, cy; /* the sample the window lies about */
  int32_t radius;
  float falloff;
  int32_t margin; /* samples at each side of the level that are left out */
  float scale;    /* 2^q */
} window_place;

/* One tile in shared memory; offsets are from (cx, cy). */
template <int SIZE> struct window_tile {
  float column_weight[SIZE]; /* w(dx) */
  float row_weight[SIZE];    /* w(dy) 2^q */
  short2 span[SIZE];         /* first and last column offset of a row; empty when the last is smaller */
};

/* Extent of a tile that starts at offset `first`: offsets first..*last within the window and the level. */
static __device__ __forceinline__ int32_t window_tile_last(int32_t first, int32_t size, int32_t radius, int32_t centre,
                                                           int32_t length, int32_t margin) {
  return min(min(first + size - 1, radius), length - 1 - margin - centre);
}

static __device__ __forceinline__ int32_t window_tile_first(int32_t radius, int32_t centre, int32_t margin) {
  return max(-radius, margin - centre);
}

/* The weights of columns first_column.. and rows first_row..; all 32 lanes, __syncwarp before others read. */
template <int SIZE>
static __device__ __forceinline__ void window_tile_weights(window_tile<SIZE> *tile, const window_place *w,
                                                           int32_t first_column, int32_t columns, int32_t first_row,
                                                           int32_t rows) {
  for (int32_t i = (int32_t)(threadIdx.x % WARP_LANES); i < columns; i += WARP_LANES)
    tile->column_weight[i] = window_weight((float)(w->cx + first_column + i) - w->x, w->falloff);
  for (int32_t i = (int32_t)(threadIdx.x % WARP_LANES); i < rows; i += WARP_LANES)
    tile->row_weight[i] = window_weight((float)(w->cy + first_row + i) - w->y, w->falloff) * w->scale;
}

/* Row of a lane's group in turn k of a tile with `rows` rows; -1: none. */
template <int GROUP> static __device__ __forceinline__ int32_t window_tile_row(int32_t turn, int32_t rows) {
  enum { PAIRS = WARP_LANES / GROUP / 2 };
  const int32_t group = (int32_t)(threadIdx.x % WARP_LANES) / GROUP;
  const int32_t k = turn * PAIRS + (group >> 1);
  const int32_t mirrored = rows - 1 - k;
  if (k > mirrored || ((group & 1) && k == mirrored)) return -1;
  return group & 1 ? mirrored : k;
}

/* Turns that cover `rows` rows. */
template <int GROUP> static __device__ __forceinline__ int32_t window_tile_turns(int32_t rows) {
  enum { PAIRS = WARP_LANES / GROUP / 2 };
  return ((rows + 1) / 2 + PAIRS - 1) / PAIRS;
}

#endif
