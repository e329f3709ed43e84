/*
 * Tile statistics of u16, f32 and f64: a warp takes a tile, or some chunks of one, and applies the fixed tree to the
 * tile's elements. The offsets in a small tile are listed once for many tiles (f32: tile_floats_cuda.cu).
 */
#include "cuda/primitives/primitives_kernels.h"

#include "cuda/prim/reductions.cuh"
#include "cuda/primitives/chunk_tree.cuh"
#include "cuda/primitives/tile_grid.cuh"
#include "cuda/runtime/launch.h"

template <typename E>
static __device__ __forceinline__ element_rows rows_of_tile(const tile_grid &g, const tile_bounds &t) {
  element_rows r;
  r.data = g.data + (size_t)t.y * g.stride_bytes + (size_t)t.x * sizeof(E);
  r.count = t.width * t.height;
  r.width = t.width;
  r.stride_bytes = g.stride_bytes;
  return r;
}

/* Writes a warp's result for segment `item`, of `count` elements, of tile `index`: the tile's record if the segment
 * is the complete tile. */
static __device__ __forceinline__ void end_segment(const tile_chunks_params &p, uint64_t item, uint64_t index,
                                                   uint64_t count, double lane_total, lane_range range) {
  warp_reduce_range(range);
  range.above = warp_reduce_sum_u64(range.above);
  const double sum = warp_tree_sum(lane_total); /* the sum of one chunk is final */
  if (threadIdx.x % WARP_LANES != 0) return;
  if (p.sums)
    p.ranges[item] = range;
  else
    tile_write(&p.tiles[index], sum, (double)count, range.low, range.high, range.above);
}

/*
 * Does      statistics of tiles of at most 1024 chunks of 1024 elements, or the sums of chunks and the ranges of
 *           segments of larger ones: prim_tile_stats for u16, f32, f64.
 * Launch    one-dimensional, blocks of 8 warps, one warp per segment of a tile.
 * Shared    none. Barriers: none.
 * Reads     the view, aligned for its type. Writes tiles, or sums and ranges.
 * Limits    no empty tile. Order: the contract's fixed tree, over the elements of one tile.
 * Cost      per element its bytes and some 12 instructions, two of them in double.
 */
template <typename E> static __device__ __forceinline__ void tile_chunks(const tile_chunks_params &p) {
  const uint64_t item = (uint64_t)blockIdx.x * CHUNK_WARPS + threadIdx.x / WARP_LANES;
  const uint64_t index = item / p.segments, segment = item - index * p.segments;
  const uint32_t lane = threadIdx.x % WARP_LANES;
  if (index >= p.grid.count) return;
  const tile_bounds t = tile_at(p.grid, index % p.grid.columns, index / p.grid.columns);
  const element_rows rows = rows_of_tile<E>(p.grid, t);
  const uint64_t chunks = ceil_div_u64(rows.count, PRIM_CHUNK), end = min((segment + 1) * p.segment_chunks, chunks);
  const typename element_threshold<E>::type threshold = threshold_for((E)0, p.threshold);
  lane_range range = lane_range_none();
  double lane_total = 0.0;
  for (uint64_t c = segment * p.segment_chunks; c < end; c++) {
    const double sum = chunk_figures<E, false, true, true>(rows, c * PRIM_CHUNK, threshold, range);
    if (p.sums && lane == 0) p.sums[index * p.tile_sums + c] = sum;
    if (lane == c % PRIM_LANES) lane_total += sum;
  }
  end_segment(p, item, index, rows.count, lane_total, range);
}

/*
 * Does      as tile_chunks_kernel, for f32 tiles with most chunks within a row; these chunks are read without tests
 *           for the end of a row.
 * Launch    one-dimensional, blocks of 8 warps, one warp per segment of a tile.
 * Shared    none. Barriers: none.
 * Reads     the view, aligned for its type. Writes tiles, or sums and ranges.
 * Limits    no empty tile. Order: the contract's fixed tree, over the elements of one tile.
 * Cost      per element 4 bytes and some 9 instructions, two of them in double; some 25 in chunks of several rows.
 */
extern "C" __global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_BLOCKS_PER_SM)
    tile_wide_chunks_kernel(const __grid_constant__ tile_chunks_params p) {
  const uint64_t item = (uint64_t)blockIdx.x * CHUNK_WARPS + threadIdx.x / WARP_LANES;
  const uint64_t index = item / p.segments, segment = item - index * p.segments;
  const uint32_t lane = threadIdx.x % WARP_LANES;
  if (index >= p.grid.count) return;
  element_rows rows = rows_of_tile<float>(p.grid, tile_at(p.grid, index % p.grid.columns, index / p.grid.columns));
  if (rows.stride_bytes == rows.width * sizeof(float)) rows.width = rows.count; /* one row: no gaps */
  const uint64_t chunks = ceil_div_u64(rows.count, PRIM_CHUNK);
  const float threshold = threshold_for(0.0f, p.threshold);
  lane_range range = lane_range_none();
  double lane_total = 0.0;
#pragma unroll 1
  for (uint64_t c = segment; c < chunks; c += p.segments) { /* neighbouring warps read neighbouring chunks */
    const uint64_t first = c * PRIM_CHUNK, row = first < rows.width ? 0 : tile_quotient(first, rows.width);
    const uint64_t column = first - row * rows.width;
    double sum;
    if (column + PRIM_CHUNK <= rows.width) {
      const uint8_t *at = rows.data + row * rows.stride_bytes + column * sizeof(float);
      const element_rows chunk = {at, PRIM_CHUNK, PRIM_CHUNK, 0};
      sum = chunk_figures<float, true, true, true>(chunk, 0, threshold, range);
    } else {
      sum = chunk_figures<float, false, true, true>(rows, first, threshold, range);
    }
    if (p.sums && lane == 0) p.sums[index * p.tile_sums + c] = sum;
    if (lane == c % PRIM_LANES) lane_total += sum;
  }
  end_segment(p, item, index, rows.count, lane_total, range);
}

/* Adds ROWS elements of the lane, 32 apart, at the offsets of a table; all loads are issued before the first value is
 * used. */
template <typename E, int ROWS>
static __device__ __forceinline__ void add_listed(const uint8_t *tile, const uint32_t *s_offset,
                                                  typename element_threshold<E>::type threshold,
                                                  typename lane_sum<E>::type &lane, element_range<E> &found) {
  E value[ROWS];
#pragma unroll
  for (int k = 0; k < ROWS; k++) value[k] = __ldg((const E *)(tile + s_offset[k * PRIM_LANES]));
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    lane += value[k];
    element_range_add(found, value[k], true);
    found.above += value[k] > threshold ? 1u : 0u;
  }
}

/* Adds the remaining `rows`, fewer than 2 * ROWS. */
template <typename E, int ROWS>
static __device__ __forceinline__ void add_listed_rest(const uint8_t *tile, const uint32_t *s_offset, uint32_t rows,
                                                       typename element_threshold<E>::type threshold,
                                                       typename lane_sum<E>::type &lane, element_range<E> &found) {
  if (rows & ROWS) {
    add_listed<E, ROWS>(tile, s_offset, threshold, lane, found);
    s_offset += ROWS * PRIM_LANES;
  }
  if constexpr (ROWS > 1) add_listed_rest<E, ROWS / 2>(tile, s_offset, rows, threshold, lane, found);
}

/* Works like chunk_figures, for a chunk of `count` elements whose offsets in the tile are listed. */
template <typename E>
static __device__ __forceinline__ double listed_figures(const uint8_t *tile, const uint32_t *s_offset, uint32_t count,
                                                        typename element_threshold<E>::type threshold,
                                                        lane_range &range) {
  typename lane_sum<E>::type sum = 0;
  element_range<E> found = element_range_none((E)0);
  const uint32_t lane = threadIdx.x % WARP_LANES;
  uint32_t rows = count / PRIM_LANES;
  s_offset += lane;
#pragma unroll 1
  for (; rows >= LISTED_ROWS; rows -= LISTED_ROWS, s_offset += LISTED_ROWS * PRIM_LANES)
    add_listed<E, LISTED_ROWS>(tile, s_offset, threshold, sum, found);
  add_listed_rest<E, LISTED_ROWS / 2>(tile, s_offset, rows, threshold, sum, found);
  if (lane < count % PRIM_LANES) add_listed<E, 1>(tile, s_offset + rows * PRIM_LANES, threshold, sum, found);
  if (lane < count) lane_range_add(range, (double)found.low, (double)found.high);
  range.above += found.above;
  return warp_tree_sum((double)sum);
}

/* Lists the offset in bytes of each element of a complete tile from its first one. All threads of a block must call. */
template <typename E> static __device__ __forceinline__ void list_offsets(const tile_grid &g, uint32_t *s_offset) {
  const uint32_t width = (uint32_t)g.tile_width, count = width * (uint32_t)g.tile_height;
  for (uint32_t i = threadIdx.x; i < count; i += CHUNK_THREADS) {
    const uint32_t row = i / width;
    s_offset[i] = row * (uint32_t)g.stride_bytes + (i - row * width) * (uint32_t)sizeof(E);
  }
  __syncthreads();
}

/*
 * Does      statistics of small tiles: prim_tile_stats for u16, f64.
 * Launch    one-dimensional, blocks of 8 warps, as many as the device holds, looping; one warp per tile.
 * Shared    16 KiB: the offsets of a tile's elements, computed once for all tiles of a block.
 * Reads     the view, aligned for its type. Writes tiles.
 * Barriers  one, after the list.
 * Limits    tiles of at most TILE_LISTED_MAX elements, rows of tiles of less than 2^32 bytes.
 * Order     the contract's fixed tree, over the elements of one tile.
 * Cost      per element its bytes and some 10 instructions, two of them in double; some 300 instructions per tile.
 */
template <typename E> static __device__ __forceinline__ void tile_listed(const tile_chunks_params &p) {
  __shared__ uint32_t s_offset[TILE_LISTED_MAX];
  const uint32_t lane = threadIdx.x % WARP_LANES;
  const typename element_threshold<E>::type threshold = threshold_for((E)0, p.threshold);
  list_offsets<E>(p.grid, s_offset);
  for (uint64_t index = (uint64_t)blockIdx.x * CHUNK_WARPS + threadIdx.x / WARP_LANES; index < p.grid.count;
       index += (uint64_t)gridDim.x * CHUNK_WARPS) {
    const uint64_t row = tile_quotient(index, p.grid.columns);
    const tile_bounds t = tile_at(p.grid, index - row * p.grid.columns, row);
    const element_rows rows = rows_of_tile<E>(p.grid, t);
    const uint32_t count = (uint32_t)rows.count;
    const bool listed = t.width == p.grid.tile_width; /* tiles of fewer rows use the beginning of the list */
    lane_range range = lane_range_none();
    double lane_total = 0.0;
    for (uint32_t c = 0; c * PRIM_CHUNK < count; c++) {
      const double sum = listed ? listed_figures<E>(rows.data, s_offset + c * PRIM_CHUNK,
                                                    min(count - c * PRIM_CHUNK, (uint32_t)PRIM_CHUNK), threshold, range)
                                : chunk_figures<E, false, true, true>(rows, c * PRIM_CHUNK, threshold, range);
      if (lane == c) lane_total += sum;
    }
    warp_reduce_range(range);
    const uint32_t above = warp_reduce_sum((uint32_t)range.above);
    const double sum = warp_tree_sum(lane_total); /* the sum of one chunk is final */
    if (lane == 0) tile_write(&p.tiles[index], sum, (double)count, range.low, range.high, above);
  }
}

/*
 * Does      the sums of 1024 sums of chunks each, because one block alone would read them slowly.
 * Launch    blocks of 8 warps, x: one warp per 1024 chunks of a tile; y: tiles, looping.
 * Shared    none. Barriers: none.
 * Reads     sums. Writes the next tree level of sums.
 * Limits    at least one segment. Order: the contract's fixed tree. Cost: 8 bytes per chunk: bound by latency.
 */
extern "C" __global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_BLOCKS_PER_SM)
    tile_chunks_floor_kernel(const __grid_constant__ tile_chunks_params p) {
  const uint64_t c = (uint64_t)blockIdx.x * CHUNK_WARPS + threadIdx.x / WARP_LANES;
  for (uint64_t index = blockIdx.y; index < p.grid.count; index += gridDim.y) {
    const tile_bounds t = tile_at(p.grid, index % p.grid.columns, index / p.grid.columns);
    double *sums = p.sums + index * p.tile_sums;
    const uint64_t count = ceil_div_u64(t.width * t.height, PRIM_CHUNK);
    if (count <= 1 || c * PRIM_CHUNK >= count) continue;
    const element_rows rows = {(const uint8_t *)sums, count, count, 0};
    const double sum = chunk_sum<double, true, true>(rows, c * PRIM_CHUNK);
    if (threadIdx.x % WARP_LANES == 0) sums[count + c] = sum;
  }
}

/*
 * Does      the statistics of tiles from the sums of their chunks, or the next tree level of sums, and the ranges of
 *           their segments.
 * Launch    one-dimensional, blocks of 8 warps, one block per tile, looping.
 * Shared    0.2 KiB.
 * Reads     sums, ranges. Writes the later tree levels of sums, tiles.
 * Barriers  between the levels of the tree; before the warps' ranges are joined, and after.
 * Limits    at least one segment. Order: the contract's fixed tree. Cost: 8 bytes per chunk: bound by latency.
 */
extern "C" __global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_BLOCKS_PER_SM)
    tile_chunks_finish_kernel(const __grid_constant__ tile_chunks_params p) {
  __shared__ lane_range s_range[CHUNK_WARPS];
  const uint32_t lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  for (uint64_t index = blockIdx.x; index < p.grid.count; index += gridDim.x) {
    const tile_bounds t = tile_at(p.grid, index % p.grid.columns, index / p.grid.columns);
    double *sums = p.sums + index * p.tile_sums;
    uint64_t count = ceil_div_u64(t.width * t.height, PRIM_CHUNK);
    if (p.floor_apart && count > 1) {
      sums += count;
      count = ceil_div_u64(count, PRIM_CHUNK);
    }
    while (count > 1) {
      const element_rows rows = {(const uint8_t *)sums, count, count, 0};
      const uint64_t chunks = ceil_div_u64(count, PRIM_CHUNK);
      for (uint64_t c = warp; c < chunks; c += CHUNK_WARPS) {
        const double sum = chunk_sum<double, true, true>(rows, c * PRIM_CHUNK);
        if (lane == 0) sums[count + c] = sum;
      }
      sums += count;
      count = chunks;
      __threadfence_block();
      __syncthreads(); /* the tree level is complete */
    }
    lane_range range = lane_range_none();
#pragma unroll 4
    for (uint64_t i = threadIdx.x; i < p.segments; i += CHUNK_THREADS) {
      const lane_range segment = p.ranges[index * p.segments + i];
      lane_range_join(range, segment);
    }
    warp_reduce_range(range);
    range.above = warp_reduce_sum_u64(range.above);
    block_reduce_on_first<CHUNK_WARPS, lane_range, lane_range_join>(range, s_range);
    if (threadIdx.x == 0)
      tile_write(&p.tiles[index], __ldcg(sums), (double)(t.width * t.height), range.low, range.high, range.above);
    __syncthreads(); /* before the next tile's ranges */
  }
}

#define CHUNKS_KERNEL(name, E)                                                                                         \
  extern "C" __global__ void __launch_bounds__(CHUNK_THREADS, sizeof(E) == 8 ? 2 : CHUNK_BLOCKS_PER_SM)                \
      name(const __grid_constant__ tile_chunks_params p) {                                                             \
    tile_chunks<E>(p);                                                                                                 \
  }
CHUNKS_KERNEL(tile_chunks_u16_kernel, uint16_t)
CHUNKS_KERNEL(tile_chunks_f32_kernel, float)
CHUNKS_KERNEL(tile_chunks_f64_kernel, double)

#define LISTED_KERNEL(name, E, BLOCKS)                                                                                 \
  extern "C" __global__ void __launch_bounds__(CHUNK_THREADS, BLOCKS)                                                  \
      name(const __grid_constant__ tile_chunks_params p) {                                                             \
    tile_listed<E>(p);                                                                                                 \
  }
LISTED_KERNEL(tile_listed_u16_kernel, uint16_t, LISTED_BLOCKS_PER_SM)
LISTED_KERNEL(tile_listed_f64_kernel, double, LISTED_BLOCKS_OF_F64)

TILE_CHUNKS_KERNELS(LAUNCH_CHECK)
