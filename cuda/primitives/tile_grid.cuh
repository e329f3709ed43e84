/*
 * Division of a view into tiles, and distribution of tiles: shared by the kernels for bytes and for other types.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_TILE_GRID_CUH
#define HARTSIFT_CUDA_PRIMITIVES_TILE_GRID_CUH

#include "cuda/primitives/primitives_kernels.h"

/* Position and size of a tile, elements. */
struct tile_bounds {
  uint64_t x, y, width, height;
};

/* n / d; divisions of 64 bits take long. */
static __device__ __forceinline__ uint64_t tile_quotient(uint64_t n, uint64_t d) {
  return (n | d) >> 32 ? n / d : (uint32_t)n / (uint32_t)d;
}

static __device__ __forceinline__ tile_bounds tile_at(const tile_grid &g, uint64_t column, uint64_t row) {
  tile_bounds p;
  p.x = column * g.tile_width;
  p.y = row * g.tile_height;
  p.width = min(g.tile_width, g.width - p.x);
  p.height = min(g.tile_height, g.height - p.y);
  return p;
}

/* The record of a tile of n elements. */
static __device__ __forceinline__ void tile_write(prim_tile *tile, double sum, double n, double low, double high,
                                                  uint64_t above) {
  prim_tile t;
  t.sum = prim_plain_nan(sum);
  t.mean = prim_plain_nan(sum / n);
  t.min = prim_extreme(low, low, high);
  t.max = prim_extreme(high, low, high);
  t.above = above;
  *tile = t;
}

#endif
