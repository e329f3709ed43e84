/*
 * Tile statistics of f32 in small tiles: a warp takes 32 tiles one after another. The element offsets of a tile are
 * listed once for all tiles. Each lane keeps the result of one tile, so that 32 records are written together.
 */
#include "cuda/primitives/chunk_tree.cuh"
#include "cuda/primitives/tile_grid.cuh"
#include "cuda/runtime/launch.h"

/* Statistics of one tile. */
struct floats_figures {
  double sum;
  int32_t low, high; /* in the order of float_order */
  uint32_t above;
};

/* Converts a float to an integer of the same order, for warp instructions. Not for NaN. */
static __device__ __forceinline__ int32_t float_order(float v) {
  const int32_t bits = __float_as_int(v);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
static __device__ __forceinline__ float float_of_order(int32_t order) {
  return __int_as_float(order ^ (order >> 31 & 0x7fffffff));
}

/* Adds the lanes' sums of two chunks as the contract does. The first sum is on lanes 0..15, the second on the
   others. */
static __device__ __forceinline__ double warp_tree_sum_pair(double first, double second) {
  const bool upper = (threadIdx.x & PRIM_LANES / 2) != 0;
  double sum = (upper ? second : first) + __shfl_xor_sync(WARP_ALL, upper ? first : second, PRIM_LANES / 2);
  for (int d = PRIM_LANES / 4; d > 0; d >>= 1) sum += __shfl_xor_sync(WARP_ALL, sum, d);
  return sum;
}

/* The sum of a tile of at most 4 chunks, in the order of the contract's next tree level: 0 and 2, 1 and 3, then
 * both sums. */
struct chunk_pairs {
  double first; /* this lane's sum of an even chunk that waits for the next one */
  double sums;  /* lanes 0..15: sums of even chunks; other lanes: of odd ones */
  bool waits;
};

static __device__ __forceinline__ void chunk_pairs_add(chunk_pairs &p, double lane) {
  if (p.waits)
    p.sums += warp_tree_sum_pair(p.first, lane);
  else
    p.first = lane;
  p.waits = !p.waits;
}
static __device__ __forceinline__ double chunk_pairs_sum(chunk_pairs &p) {
  if (p.waits) p.sums += warp_tree_sum_pair(p.first, 0.0);
  return p.sums + __shfl_xor_sync(WARP_ALL, p.sums, PRIM_LANES / 2);
}

static __device__ __forceinline__ void add_float(float v, float threshold, double &sum, element_range<float> &found) {
  sum += v;
  element_range_add(found, v, true);
  /* A predicated addition; otherwise the compiler would select between two sums. */
  asm("{\n\t.reg .pred p;\n\tsetp.gt.f32 p, %1, %2;\n\t@p add.u32 %0, %0, 1;\n\t}"
      : "+r"(found.above)
      : "f"(v), "f"(threshold));
}

/* Adds ROWS rows of 32 elements; all loads are issued before the first value is used. s_offset: the lane's offsets in
 * the list. */
template <int ROWS>
static __device__ __forceinline__ void add_rows(const float *tile, const uint32_t *&s_offset, float threshold,
                                                double &sum, element_range<float> &found) {
  float v[ROWS];
  if constexpr (ROWS >= LIST_ROWS) {
#pragma unroll
    for (int k = 0; k < ROWS; k += LIST_ROWS) {
      const uint4 at = *(const uint4 *)(s_offset + k * WARP_LANES);
      v[k] = __ldg(tile + at.x);
      v[k + 1] = __ldg(tile + at.y);
      v[k + 2] = __ldg(tile + at.z);
      v[k + 3] = __ldg(tile + at.w);
    }
    s_offset += ROWS * WARP_LANES;
  } else {
#pragma unroll
    for (int k = 0; k < ROWS; k++) v[k] = __ldg(tile + s_offset[k]);
    s_offset += ROWS;
  }
#pragma unroll
  for (int k = 0; k < ROWS; k++) add_float(v[k], threshold, sum, found);
}

/* Adds the remaining `rows`, fewer than 2 * ROWS. */
template <int ROWS>
static __device__ __forceinline__ void add_rest(const float *tile, const uint32_t *&s_offset, uint32_t rows,
                                                float threshold, double &sum, element_range<float> &found) {
  if (rows & ROWS) add_rows<ROWS>(tile, s_offset, threshold, sum, found);
  if constexpr (ROWS > 1) add_rest<ROWS / 2>(tile, s_offset, rows, threshold, sum, found);
}

/* Returns the lane's sum of a chunk of `count` elements, and adds to their extremes. */
static __device__ __forceinline__ double add_chunk(const float *tile, const uint32_t *s_list, uint32_t count,
                                                   float threshold, element_range<float> &found) {
  const uint32_t lane = threadIdx.x % WARP_LANES;
  const uint32_t *s_offset = s_list + LIST_ROWS * lane;
  uint32_t rows = count / WARP_LANES;
  double sum = 0.0;
#pragma unroll 1
  for (; rows >= FLOATS_ROWS; rows -= FLOATS_ROWS) add_rows<FLOATS_ROWS>(tile, s_offset, threshold, sum, found);
  add_rest<FLOATS_ROWS / 2>(tile, s_offset, rows, threshold, sum, found);
  if (lane < count % WARP_LANES) add_rows<1>(tile, s_offset, threshold, sum, found);
  return sum;
}

/* Returns the figures of a tile of the full width, valid on every lane. */
static __device__ __forceinline__ floats_figures tile_figures(const float *tile, const uint32_t *s_list, uint32_t count,
                                                              float threshold) {
  chunk_pairs pairs = {0.0, 0.0, false};
  element_range<float> found = element_range_none(0.0f);
#pragma unroll 1
  for (uint32_t at = 0; at < count; at += PRIM_CHUNK)
    chunk_pairs_add(pairs, add_chunk(tile, s_list + at, min(count - at, (uint32_t)PRIM_CHUNK), threshold, found));
  floats_figures f;
  f.sum = chunk_pairs_sum(pairs);
  f.low = warp_reduce_min(float_order(found.low));
  f.high = warp_reduce_max(float_order(found.high));
  f.above = warp_reduce_sum(found.above);
  return f;
}

/* Computes a tile that is not listed: the last one of a row, narrower than the others. */
static __device__ __forceinline__ void narrow_tile(const tile_floats_params &p, uint64_t row) {
  const tile_bounds t = tile_at(p.grid, p.whole_columns, row);
  const element_rows rows = {p.grid.data + (size_t)t.y * p.grid.stride_bytes + (size_t)t.x * sizeof(float),
                             t.width * t.height, t.width, p.grid.stride_bytes};
  const uint32_t lane = threadIdx.x % WARP_LANES;
  lane_range range = lane_range_none();
  double lane_total = 0.0;
#pragma unroll 1
  for (uint32_t c = 0; c * PRIM_CHUNK < rows.count; c++) {
    const double sum = chunk_figures<float, false, true, true>(rows, c * PRIM_CHUNK, p.threshold, range);
    if (lane == c) lane_total += sum;
  }
  warp_reduce_range(range);
  const uint32_t above = warp_reduce_sum((uint32_t)range.above);
  const double sum = warp_tree_sum(lane_total);
  if (lane == 0)
    tile_write(&p.tiles[row * p.grid.columns + p.whole_columns], sum, (double)rows.count, range.low, range.high, above);
}

/* Lists the offset of each element of a full-width tile from its first one, in elements: groups of 4 rows of 32, in
 * which the 4 offsets of a lane follow each other. All threads of a block must call. */
static __device__ __forceinline__ void list_offsets(const tile_grid &g, uint32_t *s_list) {
  const uint32_t width = (uint32_t)g.tile_width, count = width * (uint32_t)g.tile_height;
  for (uint32_t i = threadIdx.x; i < count; i += FLOATS_THREADS) {
    const uint32_t row = i / width;
    s_list[i / LIST_GROUP * LIST_GROUP + i % WARP_LANES * LIST_ROWS + i / WARP_LANES % LIST_ROWS] =
        row * (uint32_t)(g.stride_bytes / sizeof(float)) + (i - row * width);
  }
  __syncthreads();
}

/*
 * Does      statistics of small tiles: prim_tile_stats for f32.
 * Launch    one-dimensional, blocks of 4 warps, at most 7 per multiprocessor, looping. A warp processes one tile at a
 *           time; each lane keeps the record of every 32nd of these tiles. The narrower tiles at the ends of rows
 *           follow, one warp per tile.
 * Shared    4 bytes per element of a tile, to the next multiple of 512: the offsets of elements, computed once for all
 *           tiles of a block.
 * Reads     the view, aligned for its type. Writes tiles.
 * Barriers  one, after the list.
 * Limits    tiles of at most TILE_LISTED_MAX elements, rows of tiles of less than 2^32 bytes.
 * Order     the contract's fixed tree, over the elements of one tile.
 * Cost      per element its bytes and, as compiled for sm_90, some 9 instructions, two of them in double; some 200
 *           instructions per tile.
 */
extern "C" __global__ void __launch_bounds__(FLOATS_THREADS, FLOATS_BLOCKS_PER_SM)
    tile_floats_kernel(const __grid_constant__ tile_floats_params p) {
  extern __shared__ __align__(16) uint32_t s_list[];
  const uint32_t lane = threadIdx.x % WARP_LANES;
  list_offsets(p.grid, s_list);
  const uint64_t step = (uint64_t)gridDim.x * FLOATS_WARPS;
  const uint64_t first_of_warp = (uint64_t)blockIdx.x * FLOATS_WARPS + threadIdx.x / WARP_LANES;
  for (uint64_t first = first_of_warp; first < p.whole_tiles; first += step * WARP_LANES) {
    const uint32_t tiles = (uint32_t)min((uint64_t)WARP_LANES, ceil_div_u64(p.whole_tiles - first, step));
    const float *my_data = NULL;
    uint32_t my_count = 0;
    uint64_t my_index = 0;
    if (lane < tiles) {
      const uint64_t whole = first + lane * step, row = tile_quotient(whole, p.whole_columns);
      const tile_bounds t = tile_at(p.grid, whole - row * p.whole_columns, row);
      my_data = (const float *)(p.grid.data + (size_t)t.y * p.grid.stride_bytes) + t.x;
      my_count = (uint32_t)(t.width * t.height); /* tiles of fewer rows use the beginning of the list */
      my_index = whole + row * (p.grid.columns - p.whole_columns);
    }
    floats_figures mine = {0.0, 0, 0, 0u};
#pragma unroll 1
    for (uint32_t slot = 0; slot < tiles; slot++) {
      const float *data = (const float *)__shfl_sync(WARP_ALL, (unsigned long long)my_data, (int)slot);
      const floats_figures f = tile_figures(data, s_list, __shfl_sync(WARP_ALL, my_count, (int)slot), p.threshold);
      if (lane == slot) mine = f;
    }
    if (lane < tiles)
      tile_write(&p.tiles[my_index], mine.sum, (double)my_count, (double)float_of_order(mine.low),
                 (double)float_of_order(mine.high), mine.above);
  }
  for (uint64_t row = first_of_warp; row < p.rest_tiles; row += step) narrow_tile(p, row);
}

TILE_FLOATS_KERNELS(LAUNCH_CHECK)
