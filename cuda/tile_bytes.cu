/*
 * Tile statistics of bytes. A thread walks down a column of words of one tile, so a warp reads whole lines, and keeps
 * four running figures in registers; the threads of a tile meet in shared memory.
 */
#include "cuda/launch_shape.h"
#include "cuda/prim/byte_stats.cuh"
#include "cuda/tile_grid.cuh"

enum {
  TILE_THREADS = 256,
  TILE_BLOCKS_PER_SM = 5,
  TILE_BATCH = 8, /* words that a thread has under way */
  TILE_GRID_YZ_MAX = 65535,
  TILE_FINISH_WARPS = 8,
  TILE_PART_ROWS_MIN = 2 * TILE_BATCH, /* a part of a tile is not lower than this */
  TILE_PART_BYTES_MAX = 1 << 24        /* nor larger: sums of a thread stay in 32 bits */
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

/* Up to 4 bytes, one by one. */
static __device__ __forceinline__ uint32_t gather_word(const uint8_t *p, uint32_t bytes) {
  uint32_t w = 0;
  for (uint32_t b = 0; b < bytes; b++) w |= (uint32_t)__ldg(p + b) << 8 * b;
  return w;
}

/* A thread's column: where its words start in the first row, how many of its bytes there are, and which rows. */
struct tile_column {
  const uint8_t *at;
  uint32_t bytes; /* 1..4 WORDS */
  uint64_t rows;
  bool first_apart, last_apart; /* aligned words of that row would reach beyond the view */
};

/* WORDS words at p, of which `bytes` bytes count. SHIFTED: at any address; the words that hold it are joined. */
template <int WORDS, bool SHIFTED>
static __device__ __forceinline__ void load_words(const uint8_t *p, uint32_t bytes, uint32_t (&out)[WORDS + 1]) {
  if (!SHIFTED) {
    if (WORDS == 2 && bytes == 8) {
      const uint2 v = __ldg((const uint2 *)p);
      out[0] = v.x;
      out[1] = v.y;
      return;
    }
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      if (4u * (uint32_t)w < bytes) out[w] = __ldg((const uint32_t *)p + w);
    return;
  }
  const uint32_t *from = (const uint32_t *)((uintptr_t)p & ~(uintptr_t)3);
  const uint32_t *last = (const uint32_t *)((uintptr_t)(p + bytes - 1) & ~(uintptr_t)3);
#pragma unroll
  for (int w = 0; w <= WORDS; w++) {
    out[w] = 0;
    if (from + w <= last) out[w] = __ldg(from + w);
  }
}

/* The loaded words as they stand from p on. */
template <int WORDS, bool SHIFTED>
static __device__ __forceinline__ uint32_t place_word(const uint8_t *p, const uint32_t (&in)[WORDS + 1], int w) {
  return SHIFTED ? __funnelshift_r(in[w], in[w + 1], (uint32_t)(uintptr_t)p << 3) : in[w];
}

template <int WORDS, bool MASKED>
static __device__ __forceinline__ void add_word(byte_stats &s, uint32_t word, int w, uint32_t bytes,
                                                uint32_t complement) {
  if (!MASKED) {
    byte_stats_add<true>(s, word, complement);
    return;
  }
  const int32_t rest = (int32_t)bytes - 4 * w; /* same in every row: one register a word */
  const uint32_t mask = rest >= 4 ? UINT32_MAX : (rest <= 0 ? 0u : (1u << 8 * rest) - 1u);
  byte_stats_add_some<true>(s, word, mask, complement);
}

template <int WORDS>
static __device__ __forceinline__ void add_row_apart(byte_stats &s, const uint8_t *p, uint32_t bytes,
                                                     uint32_t complement) {
#pragma unroll
  for (int w = 0; w < WORDS; w++) {
    const uint32_t rest = bytes > 4u * (uint32_t)w ? min(bytes - 4u * (uint32_t)w, 4u) : 0u;
    add_word<WORDS, true>(s, gather_word(p + 4 * w, rest), w, bytes, complement);
  }
}

/* All rows of a column. */
template <int WORDS, bool SHIFTED, bool MASKED>
static __device__ __forceinline__ void add_column(byte_stats &s, const tile_column &c, size_t stride,
                                                  uint32_t complement) {
  constexpr int ROWS = TILE_BATCH / WORDS;
  const uint8_t *p = c.at;
  uint64_t left = c.rows;
  if (MASKED && c.first_apart) {
    add_row_apart<WORDS>(s, p, c.bytes, complement);
    p += stride;
    left--;
  }
  if (MASKED && c.last_apart && left > 0) {
    left--;
    add_row_apart<WORDS>(s, p + left * stride, c.bytes, complement);
  }
  while (left >= ROWS) {
    uint32_t in[ROWS][WORDS + 1];
    const uint8_t *start = p;
#pragma unroll
    for (int k = 0; k < ROWS; k++, p += stride) load_words<WORDS, SHIFTED>(p, c.bytes, in[k]);
#pragma unroll
    for (int k = 0; k < ROWS; k++, start += stride)
#pragma unroll
      for (int w = 0; w < WORDS; w++)
        add_word<WORDS, MASKED>(s, place_word<WORDS, SHIFTED>(start, in[k], w), w, c.bytes, complement);
    left -= ROWS;
  }
  for (; left > 0; left--, p += stride) {
    uint32_t in[WORDS + 1];
    load_words<WORDS, SHIFTED>(p, c.bytes, in);
#pragma unroll
    for (int w = 0; w < WORDS; w++)
      add_word<WORDS, MASKED>(s, place_word<WORDS, SHIFTED>(p, in, w), w, c.bytes, complement);
  }
}

/* Column `unit` of a tile, the rows first .. first + rows - 1 of it. */
template <int WORDS>
static __device__ __forceinline__ tile_column column_of(const tile_grid &g, const tile_place &t, uint64_t unit,
                                                        uint64_t first, uint64_t rows) {
  tile_column c;
  const uint64_t x = t.x + unit * 4 * WORDS;
  c.bytes = (uint32_t)min((uint64_t)(4 * WORDS), t.x + t.width - x);
  c.at = g.data + (size_t)(t.y + first) * g.stride_bytes + x;
  c.rows = rows;
  const uint64_t last = t.y + first + rows - 1;
  c.first_apart = t.y + first == 0 && x == 0 && ((uintptr_t)c.at & 3) != 0;
  const uint8_t *end = g.data + (size_t)last * g.stride_bytes + x + c.bytes;
  c.last_apart = last == g.height - 1 && x + c.bytes == g.width && ((uintptr_t)end & 3) != 0;
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
 * Reads     the view. SHIFTED: any address, width, stride and tile, joining words; else those words are aligned. Where a
 *           word would reach beyond the first or last byte of the view it is gathered from bytes.
 * Writes    tiles, or parts.
 * Barriers  before and after the threads of a tile meet.
 * Limits    a part has at most 2^24 bytes, unless a single row of a unit has. Order: repeatable, integers only.
 * Cost      4 bytes and, as compiled for sm_90, about 11 instructions a word, 22 where SHIFTED: bound by memory.
 */
template <int WORDS, bool SHIFTED, bool MASKED>
__global__ void __launch_bounds__(TILE_THREADS, MASKED ? TILE_BLOCKS_PER_SM - 1 : TILE_BLOCKS_PER_SM)
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
        const tile_column c = column_of<WORDS>(p.grid, t, u, first_row, rows);
        add_column<WORDS, SHIFTED, MASKED>(s, c, p.grid.stride_bytes, p.complement);
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

/* How words are read: so many at once, at any address, some of a row's last bytes left out. */
struct tile_reading {
  int words;
  bool shifted, masked;
};

static tile_reading reading_of(const tile_stats_args *a) {
  const uint64_t all = (uintptr_t)a->view.data | a->view.stride_bytes | a->tile_width;
  tile_reading r = {1, all % 4 != 0, all % 4 != 0 || a->view.width % 4 != 0};
  /* Two words a unit where that leaves few of them empty: fewer address sums, and 8-byte loads where aligned. */
  const uint64_t tail = a->tile_width % 8;
  if (r.shifted ? tail == 0 || tail > 4 || a->tile_width >= 32 : all % 8 == 0 && a->view.width % 8 == 0) r.words = 2;
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
static void launch_bytes(const tile_bytes_params &p, tile_reading r, dim3 grid, uint32_t threads, cuda_stream stream) {
  if (r.shifted)
    tile_bytes_kernel<WORDS, true, true><<<grid, threads, 0, stream>>>(p);
  else if (r.masked)
    tile_bytes_kernel<1, false, true><<<grid, threads, 0, stream>>>(p);
  else
    tile_bytes_kernel<WORDS, false, false><<<grid, threads, 0, stream>>>(p);
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
    launch_bytes<2>(p, reading, grid, threads, stream);
  else
    launch_bytes<1>(p, reading, grid, threads, stream);
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
