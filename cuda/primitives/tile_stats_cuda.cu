/*
 * Tile statistics of u16, f32 and f64: a warp takes a tile, or some chunks of one, and applies the fixed tree to the
 * tile's elements. The offsets in a small tile are listed once for many tiles (f32: tile_floats_cuda.cu). Also chooses
 * between these kernels and the kernels for bytes.
 */
#include "cuda/primitives/primitives_cuda.h"

#include "cuda/prim/reductions.cuh"
#include "cuda/primitives/chunk_tree.cuh"
#include "cuda/primitives/tile_grid.cuh"
#include "cuda/runtime/launch.cuh"

enum {
  CHUNK_THREADS = 256,
  CHUNK_WARPS = CHUNK_THREADS / WARP_LANES,
  CHUNK_BLOCKS_PER_SM = 3,
  LISTED_ROWS = 16, /* rows of 32 elements that a warp has in flight */
  LISTED_BLOCKS_PER_SM = 4,
  LISTED_BLOCKS_OF_F64 = 3,
  CHUNK_WARPS_WANTED = 4 * CHUNK_WARPS,  /* per multiprocessor: with fewer tiles, tiles are divided into segments */
  CHUNK_FINER = 4,                       /* as many times more segments, if tiles are few and each thread can have a
                                          * segment */
  WIDE_WARPS_RESIDENT = 3 * CHUNK_WARPS, /* resident warps per multiprocessor of tile_wide_chunks_kernel */
  WIDE_SEGMENTS_MIN = 8,                 /* fewest segments of a tile: with fewer in one round, warps would have no
                                          * work */
  WIDE_ROW = 4 * PRIM_CHUNK              /* elements of a row: from this number on, most chunks lie within a row */
};

struct tile_chunks_params {
  tile_grid grid;
  uint64_t segments, segment_chunks; /* of a tile; chunks of a segment, PRIM_CHUNK for a single segment */
  uint64_t tile_sums;                /* number of sums of a tile: of chunks, of chunks of these sums, ... */
  bool floor_apart;                  /* tile_chunks_floor_kernel has written the second tree level of sums */
  double threshold;
  prim_tile *tiles;
  double *sums;       /* [tiles][tile_sums]; null if a tile is one segment */
  lane_range *ranges; /* [tiles][segments] */
};

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
 * Limits    no empty tile. Order: the contract's fixed tree, over each tile's own elements.
 * Cost      an element's bytes; some 12 instructions an element, two of them in double.
 */
template <typename E>
__global__ void __launch_bounds__(CHUNK_THREADS, sizeof(E) == 8 ? 2 : CHUNK_BLOCKS_PER_SM)
    tile_chunks_kernel(const __grid_constant__ tile_chunks_params p) {
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
 * Does      as tile_chunks_kernel, for f32 tiles most of whose chunks lie within a row: those are read without
 *           following rows.
 * Launch    one-dimensional, blocks of 8 warps, one warp per segment of a tile.
 * Shared    none. Barriers: none.
 * Reads     the view, aligned for its type. Writes tiles, or sums and ranges.
 * Limits    no empty tile. Order: the contract's fixed tree, over each tile's own elements.
 * Cost      4 bytes and some 9 instructions an element, two of them in double; some 25 where a chunk turns a row.
 */
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_BLOCKS_PER_SM)
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

/* ROWS elements of this lane, 32 apart, at the offsets of a table; all loads are issued before the first value is
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

/* The rest of `rows`, less than 2 * ROWS of them. */
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

/* As chunk_figures, of a chunk of `count` elements whose offsets in the tile are listed. */
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

/* Offset of each element of a whole tile from its first one, in bytes. All threads of a block. */
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
 * Order     the contract's fixed tree, over each tile's own elements.
 * Cost      an element's bytes and some 10 instructions, two of them in double; some 300 for a tile.
 */
template <typename E>
__global__ void __launch_bounds__(CHUNK_THREADS, sizeof(E) == 8 ? LISTED_BLOCKS_OF_F64 : LISTED_BLOCKS_PER_SM)
    tile_listed_kernel(const __grid_constant__ tile_chunks_params p) {
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
    const bool listed = t.width == p.grid.tile_width; /* lower ones begin like whole ones */
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
 * Launch    blocks of 8 warps, x: a warp 1024 chunks of a tile; y: tiles, looping.
 * Shared    none. Barriers: none.
 * Reads     sums. Writes the next tree level of sums.
 * Limits    at least one segment. Order: the contract's fixed tree. Cost: 8 bytes per chunk: bound by latency.
 */
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_BLOCKS_PER_SM)
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
__global__ void __launch_bounds__(CHUNK_THREADS, CHUNK_BLOCKS_PER_SM)
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

/* Whether most chunks of a tile lie within a row, or rows have no padding between them. */
static bool is_wide(const tile_stats_args *a) {
  const bool flat = a->tile_width == a->view.width && a->view.stride_bytes == a->view.width * sizeof(float);
  return a->view.type == PRIM_F32 && (flat || a->tile_width >= WIDE_ROW);
}

/* Returns the number of segments of a tile that gives work to all warps; in one round, if the tile divides well. */
static uint64_t segments_wanted(const tile_stats_args *a) {
  const uint64_t resident = (uint64_t)a->processors * WIDE_WARPS_RESIDENT / a->count;
  if (is_wide(a) && resident >= WIDE_SEGMENTS_MIN) return resident;
  const uint64_t fine = ceil_div_u64((uint64_t)a->processors * CHUNK_WARPS_WANTED * CHUNK_FINER, a->count);
  if (fine <= CHUNK_THREADS && a->count <= (uint64_t)a->processors * CHUNK_FINER) return fine;
  return ceil_div_u64((uint64_t)a->processors * CHUNK_WARPS_WANTED, a->count);
}

static tile_chunks_params params_of(const tile_stats_args *a) {
  tile_chunks_params p;
  p.grid = tile_grid_make(a);
  const uint64_t width = p.grid.tile_width, height = p.grid.tile_height;
  const uint64_t chunks = ceil_div_u64(width * height, PRIM_CHUNK);
  const uint64_t wanted = segments_wanted(a);
  const uint64_t segments_min =
      ceil_div_u64(chunks, PRIM_CHUNK); /* no segment of more chunks than a chunk has elements */
  uint64_t segments = wanted < chunks ? wanted : chunks;
  if (segments < segments_min) segments = segments_min;
  p.segment_chunks = ceil_div_u64(chunks, segments);
  p.segments = ceil_div_u64(chunks, p.segment_chunks);
  p.tile_sums = 0;
  for (uint64_t n = chunks; n > 1; n = ceil_div_u64(n, PRIM_CHUNK)) p.tile_sums += n;
  p.tile_sums += 1;
  p.floor_apart = chunks > PRIM_CHUNK;
  p.threshold = a->threshold;
  p.tiles = a->tiles;
  p.sums = p.segments > 1 ? (double *)a->scratch : NULL;
  p.ranges = p.segments > 1 ? (lane_range *)((double *)a->scratch + p.grid.count * p.tile_sums) : NULL;
  return p;
}

size_t tile_chunks_scratch(const tile_stats_args *a) {
  const tile_chunks_params p = params_of(a);
  return p.segments > 1
             ? (size_t)p.grid.count * (size_t)(p.tile_sums * sizeof(double) + p.segments * sizeof(lane_range))
             : 0;
}

static void assert_args(const tile_stats_args *a) {
  assert(a->view.data && a->view.width > 0 && a->view.height > 0 && a->tiles && a->count > 0 && a->processors > 0);
  assert(a->tile_width > 0 && a->tile_width <= a->view.width && a->tile_height > 0 && a->tile_height <= a->view.height);
  assert((uintptr_t)a->view.data % prim_element_bytes(a->view.type) == 0);
  (void)a;
}

/* Whether the list holds a tile. */
static bool is_listed(const tile_chunks_params *p) {
  const tile_grid *g = &p->grid;
  return p->segments == 1 && g->tile_width <= TILE_LISTED_MAX && g->tile_height <= TILE_LISTED_MAX &&
         g->tile_width * g->tile_height <= TILE_LISTED_MAX && g->stride_bytes <= UINT32_MAX / g->tile_height;
}

static stage_status launch_listed(const tile_stats_args *a, const tile_chunks_params &p, uint64_t blocks,
                                  cuda_stream stream) {
  const uint64_t a_processor = a->view.type == PRIM_F64 ? LISTED_BLOCKS_OF_F64 : LISTED_BLOCKS_PER_SM;
  const uint64_t blocks_max = (uint64_t)a->processors * a_processor;
  const unsigned resident = (unsigned)(blocks < blocks_max ? blocks : blocks_max);
  return launch(a->view.type == PRIM_U16 ? tile_listed_kernel<uint16_t> : tile_listed_kernel<double>, resident,
                CHUNK_THREADS, 0, stream, p);
}

stage_status tile_chunks_launch(const tile_stats_args *a, cuda_stream stream) {
  assert_args(a);
  assert(a->view.type != PRIM_U8);
  const tile_chunks_params p = params_of(a);
  const uint64_t blocks = ceil_div_u64(p.grid.count * p.segments, CHUNK_WARPS);
  if (blocks > INT32_MAX) return STAGE_OVERFLOW;
  if (is_listed(&p)) {
    if (a->view.type == PRIM_F32) return tile_floats_launch(a, stream);
    return launch_listed(a, p, blocks, stream);
  }
  void (*kernel)(tile_chunks_params) = tile_chunks_kernel<double>;
  if (a->view.type == PRIM_U16) kernel = tile_chunks_kernel<uint16_t>;
  if (a->view.type == PRIM_F32) kernel = tile_chunks_kernel<float>;
  if (is_wide(a)) kernel = tile_wide_chunks_kernel;
  return launch(kernel, (unsigned)blocks, CHUNK_THREADS, 0, stream, p);
}

stage_status tile_chunks_floor_launch(const tile_stats_args *a, cuda_stream stream) {
  assert_args(a);
  const tile_chunks_params p = params_of(a);
  assert(p.sums);
  if (!p.floor_apart) return STAGE_OK;
  const uint64_t groups = ceil_div_u64(p.tile_sums, (uint64_t)PRIM_CHUNK * CHUNK_WARPS);
  const uint64_t tiles = p.grid.count < GRID_Y_MAX ? p.grid.count : (uint64_t)GRID_Y_MAX;
  if (groups > INT32_MAX) return STAGE_OVERFLOW;
  return launch(tile_chunks_floor_kernel, dim3((unsigned)groups, (unsigned)tiles), CHUNK_THREADS, 0, stream, p);
}

stage_status tile_chunks_finish_launch(const tile_stats_args *a, cuda_stream stream) {
  assert_args(a);
  const tile_chunks_params p = params_of(a);
  assert(p.sums);
  const uint64_t blocks_max = (uint64_t)a->processors * CHUNK_BLOCKS_PER_SM;
  const unsigned blocks = (unsigned)(p.grid.count < blocks_max ? p.grid.count : blocks_max);
  return launch(tile_chunks_finish_kernel, blocks, CHUNK_THREADS, 0, stream, p);
}

size_t tile_stats_scratch_bytes(const tile_stats_args *a) {
  return a->view.type == PRIM_U8 ? tile_bytes_scratch(a) : tile_chunks_scratch(a);
}

stage_status tile_stats_launch(const tile_stats_args *a, cuda_stream stream) {
  const bool bytes = a->view.type == PRIM_U8;
  stage_status st = bytes ? tile_bytes_launch(a, stream) : tile_chunks_launch(a, stream);
  if (st != STAGE_OK || tile_stats_scratch_bytes(a) == 0) return st;
  if (bytes) return tile_bytes_finish_launch(a, stream);
  st = tile_chunks_floor_launch(a, stream);
  return st == STAGE_OK ? tile_chunks_finish_launch(a, stream) : st;
}
