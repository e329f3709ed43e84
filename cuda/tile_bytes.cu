/*
 * Tile statistics of bytes. A thread walks down a column of words of one tile, so a warp reads whole lines, and keeps
 * four running figures in registers; the threads of a tile meet in shared memory.
 */
#include "cuda/launch_shape.h"
#include "cuda/prim/byte_stats.cuh"
#include "cuda/tile_grid.cuh"

enum {
  TILE_THREADS = 256,
  TILE_BLOCKS_PER_SM = 4,
  TILE_BATCH = 16, /* words that a thread has under way */
  TILE_GRID_YZ_MAX = 65535,
  TILE_FINISH_WARPS = 8,
  TILE_PART_ROWS_MIN = TILE_BATCH, /* a part of a tile is not lower than this */
  TILE_PART_BYTES_MAX = 1 << 24    /* nor larger: sums of a thread stay in 32 bits */
};

/* What one block found of one tile. */
struct tile_byte_part {
  uint64_t sum, above;
  uint32_t least, most;
};

struct tile_bytes_params {
  tile_grid grid;
  uint64_t units;         /* of WORDS words: to a row of a tile */
  uint32_t block_units;   /* of them side by side in a block: all, or a block's threads */
  uint32_t tiles_a_block; /* side by side; 1 where block_units are not all */
  uint64_t row_parts;     /* a tile is cut into so many parts from top to bottom ... */
  uint64_t part_rows;     /* ... of so many rows, */
  uint64_t unit_parts;    /* and into so many from left to right ... */
  uint64_t part_units;    /* ... of so many units */
  uint32_t complement;    /* byte_stats_complement of the threshold */
  bool all_above;
  prim_tile *tiles;
  tile_byte_part *parts; /* null: whole tiles */
};

/* A thread's column of one tile: WORDS words of each row from `at` on. The last column of a tile ends where the tile does:
   bytes of it that another column has as well weigh nothing in sums, and change no extreme. */
struct tile_column {
  const uint8_t *at;
  uint64_t rows;
  uint32_t weights[2];          /* of byte_stats_add */
  uint32_t bytes;               /* 0: words; else so many bytes, one by one */
  bool first_apart, last_apart; /* words of that row would reach beyond the view: byte by byte */
};

/* WORDS words at p. SHIFTED: at any address, from the words that hold them; one more is read, needed or not. */
template <int WORDS, bool SHIFTED>
static __device__ __forceinline__ void load_words(const uint8_t *p, uint32_t (&out)[WORDS + 1]) {
  if (!SHIFTED && WORDS == 2) {
    const uint2 v = __ldg((const uint2 *)p);
    out[0] = v.x;
    out[1] = v.y;
    return;
  }
  const uint32_t *from = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3);
#pragma unroll
  for (int w = 0; w < (SHIFTED ? WORDS + 1 : WORDS); w++) out[w] = __ldg(from + w);
}

/* The loaded words as they stand from p on. */
template <int WORDS, bool SHIFTED>
static __device__ __forceinline__ void add_words(byte_stats &s, const tile_column &c, const uint8_t *p,
                                                 const uint32_t (&in)[WORDS + 1], uint32_t complement) {
#pragma unroll
  for (int w = 0; w < WORDS; w++) {
    const uint32_t word = SHIFTED ? __funnelshift_r(in[w], in[w + 1], (uint32_t)(uintptr_t)p << 3) : in[w];
    byte_stats_add<true>(s, word, c.weights[w], complement);
  }
}

/* A row byte by byte. */
template <int WORDS>
static __device__ __forceinline__ void add_row_apart(byte_stats &s, const tile_column &c, const uint8_t *p,
                                                     uint32_t complement) {
  const uint32_t bytes = c.bytes ? c.bytes : 4 * WORDS;
#pragma unroll 1
  for (uint32_t b = 0; b < bytes; b++)
    if ((b < 4 ? c.weights[0] : c.weights[1]) >> 8 * (b % 4) & 1u)
      byte_stats_add_byte<true>(s, __ldg(p + b), complement);
}

/* All rows of a column. */
template <int WORDS, bool SHIFTED>
static __device__ __forceinline__ void add_column(byte_stats &s, const tile_column &c, size_t stride,
                                                  uint32_t complement) {
  constexpr uint32_t ROWS = TILE_BATCH / WORDS;
  const uint8_t *p = c.at;
  uint64_t left = c.rows;
  if (SHIFTED && c.first_apart && left > 0) {
    add_row_apart<WORDS>(s, c, p, complement);
    p += stride;
    left--;
  }
  if (SHIFTED && c.last_apart && left > 0) {
    left--;
    add_row_apart<WORDS>(s, c, p + left * stride, complement);
  }
#pragma unroll 1
  for (; c.bytes && left > 0; left--, p += stride) add_row_apart<WORDS>(s, c, p, complement);
  while (left > 0) {
    uint32_t in[ROWS][WORDS + 1];
    const uint8_t *start = p;
    const uint32_t rows = (uint32_t)min(left, (uint64_t)ROWS);
#pragma unroll
    for (uint32_t k = 0; k < ROWS; k++, p += stride)
      if (k < rows) load_words<WORDS, SHIFTED>(p, in[k]);
#pragma unroll
    for (uint32_t k = 0; k < ROWS; k++, start += stride)
      if (k < rows) add_words<WORDS, SHIFTED>(s, c, start, in[k], complement);
    left -= rows;
  }
}

/* Weights of the bytes of a word from `from` on. */
static __device__ __forceinline__ uint32_t weights_from(int32_t from) {
  return from <= 0 ? BYTE_STATS_ALL : (from >= 4 ? 0u : BYTE_STATS_ALL << 8 * from);
}

/* Column `unit` of a tile, its rows first .. first + rows - 1. */
template <int WORDS, bool SHIFTED>
static __device__ __forceinline__ tile_column column_of(const tile_grid &g, const tile_place &t, uint64_t unit,
                                                        uint64_t first, uint64_t rows) {
  constexpr uint32_t BYTES = 4 * WORDS;
  tile_column c;
  const uint64_t from_x = t.x + unit * BYTES;
  const uint32_t there = (uint32_t)min((uint64_t)BYTES, t.x + t.width - from_x);
  const bool wide = t.width >= BYTES;
  const uint32_t twice = wide ? BYTES - there : 0u; /* bytes that the column before has already */
  c.at = g.data + (size_t)(t.y + first) * g.stride_bytes + (from_x - twice);
  c.rows = rows;
  c.bytes = !wide ? there : (!SHIFTED && ((uintptr_t)c.at & (BYTES - 1)) != 0 ? BYTES : 0u);
  for (int32_t w = 0; w < 2; w++) c.weights[w] = weights_from((int32_t)twice - 4 * w);
  c.first_apart = c.last_apart = false;
  if (!SHIFTED) return c;
  const uint8_t *end = g.data + (size_t)(g.height - 1) * g.stride_bytes + g.width;
  const uint8_t *last = c.at + (size_t)(rows - 1) * g.stride_bytes;
  c.first_apart = t.y + first == 0 && ((uintptr_t)c.at & ~(uintptr_t)3) < (uintptr_t)g.data;
  c.last_apart = t.y + first + rows == g.height && ((uintptr_t)last & ~(uintptr_t)3) + BYTES + 4 > (uintptr_t)end;
  if (g.stride_bytes < BYTES + 4 && c.bytes == 0) c.bytes = BYTES; /* other rows could reach out, too */
  return c;
}

/* A tile's figures as the threads of a block meet in them. */
struct tile_meeting {
  uint32_t sum, above, least, most;
};

static __device__ __forceinline__ void meet(tile_meeting *m, const byte_stats &s) {
  atomicAdd(&m->sum, s.sum);
  atomicAdd(&m->above, s.above / 128u);
  atomicMin(&m->least, byte_stats_least(s));
  atomicMax(&m->most, byte_stats_most(s));
}

static __device__ __forceinline__ void leave(const tile_bytes_params &p, const tile_meeting &m, const tile_place &t,
                                             uint64_t index, uint32_t part, uint64_t elements) {
  tile_byte_part r = {m.sum, p.all_above ? elements : m.above, m.least, m.most};
  if (p.parts)
    p.parts[index * p.row_parts * p.unit_parts + part] = r;
  else
    tile_write(&p.tiles[index], (double)r.sum, (double)(t.width * t.height), (double)r.least, (double)r.most, r.above);
}

/*
 * Does      statistics of tiles of bytes, or of parts of tiles: tile_stats_ref for u8.
 * Launch    x: groups of tiles side by side, as many as their rows have units for 256 threads, 1 where a row has more;
 *           y: rows of tiles, at most 65535, looping; z: parts of a tile. Threads: tiles x units of a row, up to 256. A
 *           unit is WORDS words.
 * Shared    16 bytes a tile of the block: 4 KiB at most.
 * Reads     the view. SHIFTED: any address, width, stride and tile, joining words; else the words of a tile are aligned,
 *           but for the last ones of a row of tiles. Where words would reach beyond the view, or are wider than a tile,
 *           bytes are read one by one.
 * Writes    tiles, or parts.
 * Barriers  before and after the threads of a tile meet.
 * Limits    a part has at most 2^24 bytes, unless a single row of a unit has. Order: repeatable, integers only.
 * Cost      4 bytes and, as compiled for sm_90, some 13 instructions a word, 17 where SHIFTED: bound by memory.
 */
template <int WORDS, bool SHIFTED>
__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS_PER_SM)
    tile_bytes_kernel(const __grid_constant__ tile_bytes_params p) {
  __shared__ tile_meeting s_tiles[TILE_THREADS];
  const uint32_t in_block = threadIdx.x / p.block_units, unit = threadIdx.x - in_block * p.block_units;
  const uint32_t unit_parts = (uint32_t)p.unit_parts, row_part = blockIdx.z / unit_parts;
  const uint64_t first_unit = (blockIdx.z - row_part * unit_parts) * p.part_units;
  const uint64_t column = (uint64_t)blockIdx.x * p.tiles_a_block + in_block, first_row = row_part * p.part_rows;
  for (uint64_t row = blockIdx.y; row < p.grid.rows; row += gridDim.y) {
    const uint64_t index = row * p.grid.columns + column;
    const bool exists = in_block < p.tiles_a_block && column < p.grid.columns && index < p.grid.count;
    __syncthreads(); /* the former row's figures have been left */
    if (threadIdx.x < p.tiles_a_block) {
      const tile_meeting none = {0u, 0u, 255u, 0u};
      s_tiles[threadIdx.x] = none;
    }
    __syncthreads();
    tile_place t = {0, 0, 0, 0};
    uint64_t rows = 0;
    uint64_t end_unit = 0;
    if (exists) {
      t = tile_at(p.grid, column, row);
      rows = t.height > first_row ? min(p.part_rows, t.height - first_row) : 0;
      end_unit = min(first_unit + p.part_units, (t.width + 4 * WORDS - 1) / (4 * WORDS));
      for (uint64_t u = first_unit + unit; rows > 0 && u < end_unit; u += TILE_THREADS) {
        byte_stats s = byte_stats_none();
        const tile_column c = column_of<WORDS, SHIFTED>(p.grid, t, u, first_row, rows);
        add_column<WORDS, SHIFTED>(s, c, p.grid.stride_bytes, p.complement);
        meet(&s_tiles[in_block], s);
      }
    }
    __syncthreads(); /* all have met */
    if (!exists || unit != 0) continue;
    const uint64_t first_byte = first_unit * 4 * WORDS, end_byte = min(end_unit * 4 * WORDS, t.width);
    const uint64_t elements = end_byte > first_byte ? rows * (end_byte - first_byte) : 0;
    leave(p, s_tiles[in_block], t, index, blockIdx.z, elements);
  }
}

/*
 * Does      the statistics of tiles of bytes from those of their parts.
 * Launch    one-dimensional, blocks of 8 warps, a warp a tile.
 * Shared    none. Barriers: none.
 * Reads     parts [tiles][parts]. Writes tiles.
 * Limits    at least one part. Order: repeatable, integers only. Cost: 24 bytes a part: bound by latency.
 */
__global__ void __launch_bounds__(TILE_FINISH_WARPS *WARP_LANES)
    tile_bytes_finish_kernel(const __grid_constant__ tile_bytes_params p) {
  const uint64_t index = (uint64_t)blockIdx.x * TILE_FINISH_WARPS + threadIdx.x / WARP_LANES;
  if (index >= p.grid.count) return;
  const uint64_t parts = p.row_parts * p.unit_parts;
  tile_byte_part r = {0, 0, 255u, 0u};
  for (uint64_t i = threadIdx.x % WARP_LANES; i < parts; i += WARP_LANES) {
    const tile_byte_part part = p.parts[index * parts + i];
    r.sum += part.sum;
    r.above += part.above;
    r.least = min(r.least, part.least);
    r.most = max(r.most, part.most);
  }
  r.sum = warp_reduce_sum_u64(r.sum);
  r.above = warp_reduce_sum_u64(r.above);
  r.least = (uint32_t)warp_reduce_min((int32_t)r.least);
  r.most = (uint32_t)warp_reduce_max((int32_t)r.most);
  if (threadIdx.x % WARP_LANES != 0) return;
  const tile_place t = tile_at(p.grid, index % p.grid.columns, index / p.grid.columns);
  tile_write(&p.tiles[index], (double)r.sum, (double)(t.width * t.height), (double)r.least, (double)r.most, r.above);
}

/* How words are read: so many at once, and whether at any address. */
struct tile_reading {
  int words;
  bool shifted;
};

static tile_reading reading_of(const tile_stats_args *a) {
  const uint64_t all = (uintptr_t)a->view.data | a->view.stride_bytes | a->tile_width;
  tile_reading r = {1, all % 4 != 0};
  /* Two words save address sums, and 8-byte loads are fewer; not where half of a narrow tile's would be bytes again. */
  const uint64_t tail = a->tile_width % 8;
  if (r.shifted ? a->tile_width >= 32 || (a->tile_width >= 8 && (tail == 0 || tail > 4)) : all % 8 == 0) r.words = 2;
  return r;
}

/* Parts that give every multiprocessor its blocks, none too low or too large. */
static void choose_parts(const tile_stats_args *a, tile_bytes_params *p, int words) {
  const uint64_t tile_height = p->grid.tile_height < p->grid.height ? p->grid.tile_height : p->grid.height;
  const uint64_t blocks = tile_parts(p->grid.columns, p->tiles_a_block) * p->grid.rows;
  const uint64_t wanted = (uint64_t)a->processors * TILE_BLOCKS_PER_SM;
  const uint64_t parts = blocks >= wanted ? 1 : tile_parts(wanted, blocks);
  const uint64_t unit_bytes = 4 * (uint64_t)words;
  /* Wide tiles: units first, so that what is left of a row in a part is 2^20 bytes at most. */
  uint64_t part_units = p->units < (1u << 20) / unit_bytes ? p->units : (1u << 20) / unit_bytes;
  uint64_t rows_max = TILE_PART_BYTES_MAX / (part_units * unit_bytes);
  uint64_t part_rows = tile_parts(tile_height, parts);
  if (part_rows < TILE_PART_ROWS_MIN) part_rows = TILE_PART_ROWS_MIN;
  if (part_rows > rows_max) part_rows = rows_max;
  if (part_rows > tile_height) part_rows = tile_height;
  const uint64_t row_parts = tile_parts(tile_height, part_rows);
  if (p->tiles_a_block == 1 && row_parts < parts) { /* too low for that: from left to right, too */
    const uint64_t across = parts / row_parts, least = TILE_THREADS;
    const uint64_t units = tile_parts(p->units, across);
    if (units < part_units) part_units = units > least ? units : (least < part_units ? least : part_units);
  }
  p->part_rows = part_rows;
  p->row_parts = row_parts;
  p->part_units = part_units;
  p->unit_parts = tile_parts(p->units, part_units);
}

static tile_bytes_params params_of(const tile_stats_args *a) {
  tile_bytes_params p;
  const tile_reading reading = reading_of(a);
  const uint64_t unit_bytes = 4 * (uint64_t)reading.words;
  const int32_t threshold = prim_threshold_integer(a->threshold);
  p.grid = tile_grid_make(a);
  p.units = tile_parts(a->tile_width, unit_bytes);
  p.block_units = p.units < TILE_THREADS ? (uint32_t)p.units : (uint32_t)TILE_THREADS;
  p.tiles_a_block = TILE_THREADS / p.block_units;
  p.complement = byte_stats_complement(threshold < 0 ? 0u : (threshold > 255 ? 255u : (uint32_t)threshold));
  p.all_above = threshold < 0;
  p.tiles = a->tiles;
  choose_parts(a, &p, reading.words);
  p.parts = p.row_parts * p.unit_parts > 1 ? (tile_byte_part *)a->scratch : NULL;
  return p;
}

size_t tile_bytes_scratch(const tile_stats_args *a) {
  const tile_bytes_params p = params_of(a);
  const size_t parts = (size_t)(p.row_parts * p.unit_parts);
  return parts > 1 ? parts * (size_t)p.grid.count * sizeof(tile_byte_part) : 0;
}

template <int WORDS>
static void launch_bytes(const tile_bytes_params &p, bool shifted, dim3 grid, uint32_t threads, cuda_stream stream) {
  if (shifted)
    tile_bytes_kernel<WORDS, true><<<grid, threads, 0, stream>>>(p);
  else
    tile_bytes_kernel<WORDS, false><<<grid, threads, 0, stream>>>(p);
}

stage_status tile_bytes_launch(const tile_stats_args *a, cuda_stream stream) {
  assert(a->view.type == PRIM_U8 && a->view.data && a->tiles && a->count > 0 && a->processors > 0);
  const tile_bytes_params p = params_of(a);
  const tile_reading reading = reading_of(a);
  const uint64_t groups = tile_parts(p.grid.columns, p.tiles_a_block), parts = p.row_parts * p.unit_parts;
  assert(parts == 1 || a->scratch);
  if (groups > INT32_MAX || parts > TILE_GRID_YZ_MAX) return STAGE_OVERFLOW;
  const uint64_t rows = p.grid.rows < TILE_GRID_YZ_MAX ? p.grid.rows : (uint64_t)TILE_GRID_YZ_MAX;
  const uint32_t threads = (p.tiles_a_block * p.block_units + WARP_LANES - 1) / WARP_LANES * WARP_LANES;
  const dim3 grid((unsigned)groups, (unsigned)rows, (unsigned)parts);
  if (reading.words == 2)
    launch_bytes<2>(p, reading.shifted, grid, threads, stream);
  else
    launch_bytes<1>(p, reading.shifted, grid, threads, stream);
  return launch_status();
}

stage_status tile_bytes_finish_launch(const tile_stats_args *a, cuda_stream stream) {
  const tile_bytes_params p = params_of(a);
  assert(p.parts && a->tiles);
  const uint64_t blocks = tile_parts(p.grid.count, TILE_FINISH_WARPS);
  if (blocks > INT32_MAX) return STAGE_OVERFLOW;
  tile_bytes_finish_kernel<<<(unsigned)blocks, TILE_FINISH_WARPS * WARP_LANES, 0, stream>>>(p);
  return launch_status();
}
