/*
 * Division of a view into tiles, and distribution of tiles: shared by the kernels for bytes and for other types.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_TILE_GRID_CUH
#define HARTSIFT_CUDA_PRIMITIVES_TILE_GRID_CUH

#include "cuda/primitives/primitives_cuda.h"

/* The largest tile, in elements, whose offsets a block lists. */
enum { TILE_LISTED_MAX = 4096 };

struct tile_grid {
  const uint8_t *data;
  uint64_t width, height, tile_width, tile_height; /* elements */
  uint64_t columns, rows, count;                   /* tiles: per row, rows, all requested */
  size_t stride_bytes;
};

/* Position and size of a tile, elements. */
struct tile_bounds {
  uint64_t x, y, width, height;
};

HS_INLINE uint64_t ceil_div_u64(uint64_t n, uint64_t part) { return n / part + (n % part != 0); }

/* n / d; divisions of 64 bits take long. */
static __device__ __forceinline__ uint64_t tile_quotient(uint64_t n, uint64_t d) {
  return (n | d) >> 32 ? n / d : (uint32_t)n / (uint32_t)d;
}

static inline tile_grid tile_grid_make(const tile_stats_args *a) {
  tile_grid g;
  g.data = (const uint8_t *)a->view.data;
  g.width = a->view.width;
  g.height = a->view.height;
  g.tile_width = a->tile_width;
  g.tile_height = a->tile_height;
  g.columns = ceil_div_u64(g.width, g.tile_width);
  g.count = a->count;
  g.rows = ceil_div_u64(a->count, g.columns);
  g.stride_bytes = a->view.stride_bytes;
  return g;
}

static __device__ __forceinline__ tile_bounds tile_at(const tile_grid &g, uint64_t column, uint64_t row) {
  tile_bounds p;
  p.x = column * g.tile_width;
  p.y = row * g.tile_height;
  p.width = min(g.tile_width, g.width - p.x);
  p.height = min(g.tile_height, g.height - p.y);
  return p;
}

/* Scratch memory of the two kinds of kernels, bytes. */
size_t tile_bytes_scratch(const tile_stats_args *args);
size_t tile_chunks_scratch(const tile_stats_args *args);

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
