/*
 * Tile statistics of bytes. A thread reads down a column of words of one tile, so a warp reads complete lines. It
 * keeps its statistics in registers; then the threads of a tile combine theirs in shared memory.
 */
#include "cuda/prim/reductions.cuh"
#include "cuda/primitives/bytes.cuh"
#include "cuda/primitives/tile_grid.cuh"
#include "cuda/runtime/launch.h"

/* Returns the number of `blocks` blocks that can be resident: compute capability 7.5 has threads for 4. */
static constexpr int tile_blocks_resident(int blocks) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
  return blocks < 4 ? blocks : 4;
#else
  return blocks;
#endif
}

/* A thread's column of one tile: WORDS words of each row, from `at` on. The last column of a tile ends with the
 * tile. Bytes that it shares with the column before are masked, except for the extremes. */
template <int WORDS> struct tile_column {
  const uint8_t *at;
  uint32_t rows;
  uint32_t masks[WORDS];        /* masks of the bytes that count */
  uint32_t first, bytes;        /* bytes > 0: reads bytes first .. bytes - 1 of a row one by one, no words */
  bool first_apart, last_apart; /* words of the first or last row would reach beyond the view: that row is read byte
                                 * by byte */
};

/* Loads WORDS words at p. If p is not aligned: the words that contain them, and always one more. */
template <int WORDS, tile_reading READING>
static __device__ __forceinline__ void load_words(const uint8_t *p, uint32_t (&out)[WORDS + 1]) {
  if constexpr (READING == TILE_ALIGNED && WORDS == 2) {
    const uint2 v = __ldg((const uint2 *)p);
    out[0] = v.x;
    out[1] = v.y;
  } else if constexpr (READING == TILE_ALIGNED && WORDS == 4) {
    const uint4 v = __ldg((const uint4 *)p);
    out[0] = v.x;
    out[1] = v.y;
    out[2] = v.z;
    out[3] = v.w;
  } else {
#pragma unroll
    for (int w = 0; w < (READING == TILE_ALIGNED ? WORDS : WORDS + 1); w++) out[w] = __ldg((const uint32_t *)p + w);
  }
}

/* Adds ROWS rows from `at` on. All loads are issued before the first value is used. */
template <int WORDS, tile_reading READING, int ROWS>
static __device__ __forceinline__ void add_rows(byte_stats &s, const tile_column<WORDS> &c, const uint8_t *at,
                                                size_t stride, const byte_threshold &t) {
  uint32_t in[ROWS][WORDS + 1];
  uint32_t shift = (uint32_t)(uintptr_t)at << 3; /* its low 5 bits */
  const uint8_t *p = READING == TILE_SHIFTED ? (const uint8_t *)((uintptr_t)at & ~(uintptr_t)3) : at;
#pragma unroll
  for (int k = 0; k < ROWS; k++, p += stride)
    load_words<WORDS, READING>(READING == TILE_TURNING ? (const uint8_t *)((uintptr_t)p & ~(uintptr_t)3) : p, in[k]);
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const uint32_t word = READING == TILE_ALIGNED ? in[k][w] : __funnelshift_r(in[k][w], in[k][w + 1], shift);
      byte_stats_add(s, word, READING == TILE_ALIGNED ? word : word & c.masks[w], t);
    }
    if (READING == TILE_TURNING) shift += (uint32_t)stride << 3;
  }
  s.words += ROWS * WORDS;
}

/* Adds the remaining `rows`, fewer than 2 * ROWS. */
template <int WORDS, tile_reading READING, int ROWS>
static __device__ __forceinline__ void add_rest(byte_stats &s, const tile_column<WORDS> &c, const uint8_t *at,
                                                uint32_t rows, size_t stride, const byte_threshold &t) {
  if (rows & ROWS) {
    add_rows<WORDS, READING, ROWS>(s, c, at, stride, t);
    at += ROWS * stride;
  }
  if constexpr (ROWS > 1) add_rest<WORDS, READING, ROWS / 2>(s, c, at, rows, stride, t);
}

/* Adds a row byte by byte. */
static __device__ __forceinline__ void add_row_apart(byte_stats &s, const uint8_t *p, uint32_t first, uint32_t end,
                                                     const byte_threshold &t) {
#pragma unroll 1
  for (uint32_t b = first; b < end; b++) {
    const uint32_t v = __ldg(p + b);
    byte_stats_add(s, v * BYTE_STATS_ONES, v, t);
    s.words++;
  }
}

/* Adds all rows of a column. */
template <int WORDS, tile_reading READING, int ROWS>
static __device__ __forceinline__ void add_column(byte_stats &s, const tile_column<WORDS> &c, size_t stride,
                                                  const byte_threshold &t) {
  const uint8_t *p = c.at;
  uint32_t left = c.rows;
  if (READING != TILE_ALIGNED && c.first_apart && left > 0) {
    add_row_apart(s, p, c.first, 4 * WORDS, t);
    p += stride;
    left--;
  }
  if (READING != TILE_ALIGNED && c.last_apart && left > 0) {
    left--;
    add_row_apart(s, p + left * stride, c.first, 4 * WORDS, t);
  }
#pragma unroll 1
  for (; c.bytes && left > 0; left--, p += stride) add_row_apart(s, p, c.first, c.bytes, t);
#pragma unroll 1
  for (; left >= ROWS; left -= ROWS, p += ROWS * stride) add_rows<WORDS, READING, ROWS>(s, c, p, stride, t);
  if constexpr (ROWS > 1) add_rest<WORDS, READING, ROWS / 2>(s, c, p, left, stride, t);
}

/* Returns a mask of the bytes of a word from `from` on. */
static __device__ __forceinline__ uint32_t mask_from(int32_t from) {
  return from <= 0 ? UINT32_MAX : (from >= 4 ? 0u : UINT32_MAX << 8 * from);
}

/* Returns column `unit` of a tile, for rows first .. first + rows - 1. */
template <int WORDS, tile_reading READING>
static __device__ __forceinline__ tile_column<WORDS> column_of(const tile_bytes_params &p, const tile_bounds &t,
                                                               uint64_t unit, uint64_t first, uint32_t rows) {
  constexpr uint32_t BYTES = 4 * WORDS;
  tile_column<WORDS> c;
  const uint64_t from_x = unit * BYTES;
  const uint32_t there = (uint32_t)min((uint64_t)BYTES, t.width - from_x);
  const bool wide = t.width >= BYTES;
  const uint32_t twice = wide ? BYTES - there : 0u; /* bytes that the previous column has already */
  c.at = p.grid.data + (size_t)(t.y + first) * p.grid.stride_bytes + (t.x + from_x - twice);
  c.rows = rows;
  c.first = twice;
  c.bytes = !wide ? there : (READING == TILE_ALIGNED && ((uintptr_t)c.at & (BYTES - 1)) != 0 ? BYTES : 0u);
  c.first_apart = c.last_apart = false;
#pragma unroll
  for (int w = 0; w < WORDS; w++) c.masks[w] = mask_from((int32_t)twice - 4 * w);
  if (READING == TILE_ALIGNED) return c;
  if (c.bytes == 0 && p.grid.stride_bytes < BYTES + 4)
    c.bytes = BYTES; /* words of many rows could reach beyond the view */
  if (c.bytes != 0) return c;
  c.first_apart = ((uintptr_t)c.at & ~(uintptr_t)3) < (uintptr_t)p.grid.data;
  if (t.y + first + rows == p.grid.height) {
    const uint8_t *last = c.at + (size_t)(rows - 1) * p.grid.stride_bytes;
    c.last_apart = ((uintptr_t)last & ~(uintptr_t)3) + BYTES + 4 > (uintptr_t)p.end;
  }
  return c;
}

/* A tile's figures in shared memory, to which the threads of a block add. */
struct tile_figures {
  uint32_t sum, above, min, max;
};

/* Adds a thread's statistics. together: all lanes of the warp have the same tile. */
static __device__ __forceinline__ void add_figures(tile_figures *m, const byte_stats &s, bool together) {
  uint32_t sum = s.sum, above = byte_stats_above(s), smallest = byte_stats_min(s), largest = byte_stats_max(s);
  if (together) {
    sum = warp_reduce_sum(sum);
    above = warp_reduce_sum(above);
    smallest = (uint32_t)warp_reduce_min((int32_t)smallest);
    largest = (uint32_t)warp_reduce_max((int32_t)largest);
    if (threadIdx.x % WARP_LANES != 0) return;
  }
  atomicAdd(&m->sum, sum);
  atomicAdd(&m->above, above);
  atomicMin(&m->min, smallest);
  atomicMax(&m->max, largest);
}

/* Writes the result of a tile's threads: the tile's statistics, or a segment. */
static __device__ __forceinline__ void write_figures(const tile_bytes_params &p, const tile_figures &m,
                                                     const tile_bounds &t, uint64_t index, uint32_t segment,
                                                     uint64_t elements) {
  const uint64_t above = p.all_above ? elements : (p.none_above ? 0 : (uint64_t)m.above);
  if (p.segments) {
    const tile_byte_segment r = {m.sum, above, m.min, m.max};
    p.segments[index * p.row_segments * p.unit_segments + segment] = r;
  } else {
    tile_write(&p.tiles[index], (double)m.sum, (double)(t.width * t.height), (double)m.min, (double)m.max, above);
  }
}

/* Number of rows of a tile in a segment that starts at first_row. */
static __device__ __forceinline__ uint32_t rows_in_segment(const tile_bytes_params &p, const tile_bounds &t,
                                                           uint64_t first_row) {
  return t.height > first_row ? (uint32_t)min(p.segment_rows, t.height - first_row) : 0u;
}

static __device__ __forceinline__ void add_segment(tile_byte_segment &r, const tile_byte_segment &segment) {
  r.sum += segment.sum;
  r.above += segment.above;
  r.min = min(r.min, segment.min);
  r.max = max(r.max, segment.max);
}

/*
 * Does      statistics of tiles of bytes, or of segments of tiles: tile_u8_ref.
 * Launch    x: groups of neighbouring tiles, as many as have units in a row for 256 threads, at least 1; y: rows of
 *           tiles, at most 65535, looping; z: segments of a tile. Threads: tiles x units of a row, up to 256. A unit
 *           is WORDS words, of which a thread takes ROWS rows at a time; BLOCKS blocks per multiprocessor.
 * Shared    16 bytes per tile of the block: 4 KiB at most.
 * Reads     the view. TILE_ALIGNED: all units are aligned, except the last ones of a row of tiles. Otherwise any
 *           address, width, stride and tile; words are joined from two. Bytes are read one by one if words would reach
 *           beyond the view, or are wider than a tile.
 * Writes    tiles, or segments.
 * Barriers  before and after the threads of a tile add their figures.
 * Limits    a segment has at most 2^24 bytes, unless a single row of a unit has. Order: repeatable, integers only.
 * Cost      4 bytes and, as compiled for sm_90, some 8 instructions per word, 10 to 12 if words are joined; 250 per
 *           column: bound by memory from some 16 rows on.
 */
template <int WORDS, tile_reading READING, int ROWS>
static __device__ __forceinline__ void tile_bytes(const tile_bytes_params &p) {
  __shared__ tile_figures s_tiles[TILE_THREADS];
  constexpr uint32_t BYTES = 4 * WORDS;
  const uint32_t in_block = threadIdx.x * p.unit_reciprocal >> 16, unit = threadIdx.x - in_block * p.block_units;
  const uint32_t unit_segments = (uint32_t)p.unit_segments,
                 row_segment = unit_segments == 1 ? blockIdx.z : blockIdx.z / unit_segments;
  const uint64_t first_unit = (blockIdx.z - row_segment * unit_segments) * p.segment_units,
                 first_row = row_segment * p.segment_rows;
  const uint64_t first_column = (uint64_t)blockIdx.x * p.tiles_a_block;
  for (uint64_t row = blockIdx.y; row < p.grid.rows; row += gridDim.y) {
    const uint64_t first_index = row * p.grid.columns + first_column;
    const uint32_t tiles = (uint32_t)min(
        (uint64_t)p.tiles_a_block,
        min(p.grid.columns - first_column, p.grid.count > first_index ? p.grid.count - first_index : (uint64_t)0));
    __syncthreads(); /* the previous row's results are written */
    if (threadIdx.x < tiles) {
      const tile_figures none = {0u, 0u, 255u, 0u};
      s_tiles[threadIdx.x] = none;
    }
    __syncthreads();
    byte_stats s = byte_stats_none();
    if (in_block < tiles) {
      const tile_bounds t = tile_at(p.grid, first_column + in_block, row);
      const uint32_t rows = rows_in_segment(p, t, first_row);
      const uint64_t end = min((first_unit + p.segment_units) * BYTES, t.width);
      for (uint64_t u = first_unit + unit; rows > 0 && u * BYTES < end; u += TILE_THREADS)
        add_column<WORDS, READING, ROWS>(s, column_of<WORDS, READING>(p, t, u, first_row, rows), p.grid.stride_bytes,
                                         p.threshold);
    }
    if (p.block_units == TILE_THREADS) /* all threads have the same tile */
      add_figures(&s_tiles[0], s, true);
    else if (in_block < tiles)
      add_figures(&s_tiles[in_block], s, false);
    __syncthreads(); /* all have added */
    if (threadIdx.x >= tiles) continue;
    const tile_bounds t = tile_at(p.grid, first_column + threadIdx.x, row);
    const uint64_t first_byte = first_unit * BYTES, end_byte = min((first_unit + p.segment_units) * BYTES, t.width);
    const uint64_t elements = end_byte > first_byte ? rows_in_segment(p, t, first_row) * (end_byte - first_byte) : 0;
    write_figures(p, s_tiles[threadIdx.x], t, first_index + threadIdx.x, blockIdx.z, elements);
  }
}

/*
 * Does      computes the statistics of tiles of bytes from the statistics of their segments.
 * Launch    one-dimensional, blocks of 8 warps; WARPS warps per tile, 1 or 8.
 * Shared    0.2 KiB. Barriers: one, for all warps.
 * Reads     segments [tiles][segments]. Writes tiles.
 * Limits    at least one segment. Order: repeatable, integers only. Cost: 24 bytes per segment: bound by latency.
 */
template <int WARPS> static __device__ __forceinline__ void tile_bytes_finish(const tile_bytes_params &p) {
  __shared__ tile_byte_segment s_segment[TILE_FINISH_WARPS];
  constexpr uint32_t THREADS = WARPS * WARP_LANES, TILES = TILE_FINISH_WARPS / WARPS;
  const uint64_t index = (uint64_t)blockIdx.x * TILES + threadIdx.x / THREADS;
  const uint32_t lane = threadIdx.x % WARP_LANES;
  if (index >= p.grid.count) return; /* uniform over the warps of a tile */
  const uint64_t segments = p.row_segments * p.unit_segments;
  tile_byte_segment r = {0, 0, 255u, 0u};
  for (uint64_t i = threadIdx.x % THREADS; i < segments; i += THREADS) add_segment(r, p.segments[index * segments + i]);
  r.sum = warp_reduce_sum_u64(r.sum);
  r.above = warp_reduce_sum_u64(r.above);
  r.min = (uint32_t)warp_reduce_min((int32_t)r.min);
  r.max = (uint32_t)warp_reduce_max((int32_t)r.max);
  if constexpr (WARPS > 1) block_reduce_on_first<WARPS, tile_byte_segment, add_segment>(r, s_segment);
  if (WARPS > 1 ? threadIdx.x != 0 : lane != 0) return;
  const tile_bounds t = tile_at(p.grid, index % p.grid.columns, index / p.grid.columns);
  tile_write(&p.tiles[index], (double)r.sum, (double)(t.width * t.height), (double)r.min, (double)r.max, r.above);
}

#define BYTES_KERNEL(name, WORDS, READING, ROWS, BLOCKS)                                                               \
  extern "C" __global__ void __launch_bounds__(TILE_THREADS, tile_blocks_resident(BLOCKS))                             \
      name(const __grid_constant__ tile_bytes_params p) {                                                              \
    tile_bytes<WORDS, READING, ROWS>(p);                                                                               \
  }
BYTES_KERNEL(tile_bytes_1_aligned_kernel, 1, TILE_ALIGNED, 16, TILE_BLOCKS_PER_SM)
BYTES_KERNEL(tile_bytes_1_shifted_kernel, 1, TILE_SHIFTED, 16, TILE_BLOCKS_PER_SM)
BYTES_KERNEL(tile_bytes_1_turning_kernel, 1, TILE_TURNING, 16, TILE_BLOCKS_PER_SM)
BYTES_KERNEL(tile_bytes_2_aligned_kernel, 2, TILE_ALIGNED, 8, TILE_BLOCKS_PER_SM)
BYTES_KERNEL(tile_bytes_2_shifted_kernel, 2, TILE_SHIFTED, 8, TILE_BLOCKS_PER_SM)
BYTES_KERNEL(tile_bytes_2_turning_kernel, 2, TILE_TURNING, 8, TILE_BLOCKS_PER_SM)
BYTES_KERNEL(tile_bytes_3_shifted_kernel, 3, TILE_SHIFTED, 4, TILE_BLOCKS_PER_SM + 1)
BYTES_KERNEL(tile_bytes_3_turning_kernel, 3, TILE_TURNING, 4, TILE_BLOCKS_PER_SM + 1)
BYTES_KERNEL(tile_bytes_4_aligned_kernel, 4, TILE_ALIGNED, 8, TILE_BLOCKS_PER_SM)

#define BYTES_FINISH_KERNEL(name, WARPS)                                                                               \
  extern "C" __global__ void __launch_bounds__(TILE_FINISH_WARPS *WARP_LANES)                                          \
      name(const __grid_constant__ tile_bytes_params p) {                                                              \
    tile_bytes_finish<WARPS>(p);                                                                                       \
  }
BYTES_FINISH_KERNEL(tile_bytes_finish_few_kernel, 1)
BYTES_FINISH_KERNEL(tile_bytes_finish_many_kernel, TILE_FINISH_WARPS)

TILE_BYTES_KERNELS(LAUNCH_CHECK)
