/*
 * Squared distances without matrix instructions: of float descriptors in the contract's order, and of 8-bit ones
 * four products per instruction. A block holds 128 x 128 squares in registers. It merges the two nearest of its
 * rows and columns into global memory, or writes all squares.
 */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_keys.cuh"
#include "cuda/runtime/launch.h"

enum {
  THREADS = MATCH_THREADS,
  SIDE = 16,           /* threads along a side of the tile */
  TILE = SQUARES_TILE, /* rows and columns of a block */
  EACH = TILE / SIDE,  /* rows and columns of a thread: 4 adjacent ones, and the 4 that are 64 further */
  SLICE = 16,          /* words of each descriptor that are loaded together */
  SLICE_WORDS = 8,     /* words of rows, and of columns, that a thread fetches */
  PITCH = TILE + 4     /* stride between words of the descriptors */
};

typedef struct tiles_shared {
  uint32_t rows[SLICE][PITCH], columns[SLICE][PITCH];
} tiles_shared;

/* Returns the position in the tile of a thread's n-th row or column. */
static __device__ __forceinline__ uint32_t offset_in_tile(uint32_t thread, int n) {
  return thread * 4u + (uint32_t)(n % 4) + (uint32_t)(n / 4) * (TILE / 2u);
}

/* Loads a thread's part of a slice: half of the words of one descriptor. Threads beyond the last descriptor load the
 * last one. */
static __device__ __forceinline__ void fetch_slice(const void *from, uint32_t first, uint32_t count, uint32_t words,
                                                   uint32_t slice, uint32_t *piece) {
  const uint32_t i = min(first + threadIdx.x % TILE, count - 1u);
  const uint4 *at =
      (const uint4 *)((const uint32_t *)from + (size_t)i * words + slice * SLICE + threadIdx.x / TILE * SLICE_WORDS);
  const uint4 low = at[0], high = at[1];
  piece[0] = low.x, piece[1] = low.y, piece[2] = low.z, piece[3] = low.w;
  piece[4] = high.x, piece[5] = high.y, piece[6] = high.z, piece[7] = high.w;
}

static __device__ __forceinline__ void store_slice(uint32_t (*to)[PITCH], const uint32_t *piece) {
#pragma unroll
  for (int k = 0; k < SLICE_WORDS; k++)
    to[threadIdx.x / TILE * SLICE_WORDS + (uint32_t)k][threadIdx.x % TILE] = piece[k];
}

static __device__ __forceinline__ void read_words(const uint32_t *line, uint32_t thread, uint32_t *words) {
  const uint4 low = *(const uint4 *)(line + thread * 4u), high = *(const uint4 *)(line + TILE / 2 + thread * 4u);
  words[0] = low.x, words[1] = low.y, words[2] = low.z, words[3] = low.w;
  words[4] = high.x, words[5] = high.y, words[6] = high.z, words[7] = high.w;
}

/* Adds the products of one word of the thread's rows and columns: a float, or four bytes. sums: floats as bits, or
 * products. */
template <match_type TYPE>
static __device__ __forceinline__ void take_word(const tiles_shared *s, int k, uint32_t (*sums)[EACH]) {
  uint32_t a[EACH], b[EACH];
  read_words(s->rows[k], threadIdx.x / SIDE, a);
  read_words(s->columns[k], threadIdx.x % SIDE, b);
#pragma unroll
  for (int r = 0; r < EACH; r++)
#pragma unroll
    for (int c = 0; c < EACH; c++) {
      if (TYPE == MATCH_F32) {
        const float t = __uint_as_float(a[r]) - __uint_as_float(b[c]);
        sums[r][c] = __float_as_uint(hs_fmaf(t, t, __uint_as_float(sums[r][c])));
      } else {
        sums[r][c] = __dp4a(a[r], b[c], sums[r][c]);
      }
    }
}

/* Turns sums into the upper words of keys; all ones for non-candidates. */
template <match_type TYPE>
static __device__ __forceinline__ void squares_of_sums(const match_lists *p, uint32_t row, uint32_t column,
                                                       uint32_t (*sums)[EACH]) {
#pragma unroll
  for (int r = 0; r < EACH; r++)
#pragma unroll
    for (int c = 0; c < EACH; c++) {
      const uint32_t i = row + offset_in_tile(threadIdx.x / SIDE, r),
                     j = column + offset_in_tile(threadIdx.x % SIDE, c);
      bool there = i < p->rows && j < p->columns;
      uint32_t square = sums[r][c];
      if (TYPE == MATCH_F32)
        there = there && hs_is_finite(__uint_as_float(square));
      else if (there)
        square = (uint32_t)p->norms[i] + (uint32_t)(p->base[j] >> MATCH_KEY_SHIFT) - 2u * square;
      sums[r][c] = there ? square : UINT32_MAX;
    }
}

/* sums[r][c]: upper word of the key of each square of the tile. All threads must call; two barriers per slice:
 * after it is loaded, and after its last use. */
template <match_type TYPE>
static __device__ __forceinline__ void tile_squares(const match_lists *p, tiles_shared *s, uint32_t row,
                                                    uint32_t column, uint32_t (*sums)[EACH]) {
  enum { WORDS = MATCH_LENGTH * (TYPE == MATCH_F32 ? 4 : 1) / 4 };
  uint32_t of_rows[SLICE_WORDS], of_columns[SLICE_WORDS];
#pragma unroll
  for (int i = 0; i < EACH * EACH; i++) sums[i / EACH][i % EACH] = 0u; /* also the bits of 0.0f */
  fetch_slice(p->first, row, p->rows, WORDS, 0, of_rows);
  fetch_slice(p->second, column, p->columns, WORDS, 0, of_columns);
  for (uint32_t slice = 0; slice < WORDS / SLICE; slice++) {
    __syncthreads();
    store_slice(s->rows, of_rows);
    store_slice(s->columns, of_columns);
    __syncthreads();
    if (slice + 1u < WORDS / SLICE) {
      fetch_slice(p->first, row, p->rows, WORDS, slice + 1u, of_rows);
      fetch_slice(p->second, column, p->columns, WORDS, slice + 1u, of_columns);
    }
#pragma unroll 2
    for (int k = 0; k < SLICE; k++) take_word<TYPE>(s, k, sums);
  }
  squares_of_sums<TYPE>(p, row, column, sums);
}

static __device__ __forceinline__ uint64_t key_of(uint32_t square, uint32_t index) {
  return square == UINT32_MAX ? MATCH_NO_KEY : match_key(square, index);
}

/* Reads the squares of the second nearest so far of a thread's rows or columns. They may be old, and are then too
 * large. */
static __device__ __forceinline__ void read_seconds(const match_bests *bests, uint32_t first, uint32_t count,
                                                    uint32_t thread, uint32_t *seconds) {
#pragma unroll
  for (int n = 0; n < EACH; n++)
    seconds[n] = __ldcg((const uint32_t *)&bests->second[min(first + offset_in_tile(thread, n), count - 1u)] + 1);
}

/* Whether any of the warp's squares may be among the two nearest. This is rare after a few tiles. */
static __device__ __forceinline__ bool worth_it(uint32_t smallest, uint32_t second) {
  return __any_sync(WARP_ALL, smallest <= second && smallest != UINT32_MAX);
}

/* Merges the two nearest of every row; 16 neighbouring lanes share a row. */
static __device__ __forceinline__ void hand_rows_in(const match_lists *p, uint32_t row, uint32_t column,
                                                    const uint32_t (*squares)[EACH]) {
  uint32_t seconds[EACH];
  read_seconds(&p->row_bests, row, p->rows, threadIdx.x / SIDE, seconds);
#pragma unroll
  for (int r = 0; r < EACH; r++) {
    uint32_t smallest = squares[r][0];
#pragma unroll
    for (int c = 1; c < EACH; c++) smallest = min(smallest, squares[r][c]);
    if (!worth_it(smallest, seconds[r])) continue;
    match_two t = match_two_none();
#pragma unroll
    for (int c = 0; c < EACH; c++)
      match_two_take(&t, key_of(squares[r][c], column + offset_in_tile(threadIdx.x % SIDE, c)));
    match_two_join_lanes(&t, 1, SIDE);
    const uint32_t i = row + offset_in_tile(threadIdx.x / SIDE, r);
    if (threadIdx.x % SIDE == 0 && i < p->rows) match_bests_add(&p->row_bests, i, t);
  }
}

/* Merges the two nearest of every column; a warp holds two lines of threads. */
static __device__ __forceinline__ void hand_columns_in(const match_lists *p, uint32_t row, uint32_t column,
                                                       const uint32_t (*squares)[EACH]) {
  uint32_t seconds[EACH];
  read_seconds(&p->column_bests, column, p->columns, threadIdx.x % SIDE, seconds);
#pragma unroll
  for (int c = 0; c < EACH; c++) {
    uint32_t smallest = squares[0][c];
#pragma unroll
    for (int r = 1; r < EACH; r++) smallest = min(smallest, squares[r][c]);
    if (!worth_it(smallest, seconds[c])) continue;
    match_two t = match_two_none();
#pragma unroll
    for (int r = 0; r < EACH; r++)
      match_two_take(&t, key_of(squares[r][c], row + offset_in_tile(threadIdx.x / SIDE, r)));
    match_two_join_lanes(&t, SIDE, WARP_LANES);
    const uint32_t j = column + offset_in_tile(threadIdx.x % SIDE, c);
    if (threadIdx.x % WARP_LANES < SIDE && j < p->columns) match_bests_add(&p->column_bests, j, t);
  }
}

/*
 * Does      the two nearest of each row and, if the columns' bests are not null, of each column: match_ref.
 * Launch    x: 128 rows per block; y: 128 columns per block, which loops if the grid has fewer blocks. 256 threads
 *           of 8 x 8 squares.
 * Shared    two slices of 16 words of 128 descriptors: 16.5 KB.
 * Reads     both lists, 16-byte aligned. Writes the bests by atomic minima.
 * Barriers  those of tile_squares.
 * Limits    any count of 1 or more; descriptors beyond the last are repeats, whose squares are no candidates.
 * Order     repeatable: one thread computes a square, in the contract's order; minima of keys that are all different.
 * Cost      floats: 2 instructions for each of 128 values, 8-bit: 1 for four; bound by them.
 */
template <match_type TYPE> static __device__ __forceinline__ void match_tiles(const match_lists &p) {
  __shared__ __align__(16) tiles_shared s;
  const uint32_t row = blockIdx.x * TILE;
  for (uint32_t tile = blockIdx.y; tile < (p.columns + TILE - 1u) / TILE; tile += gridDim.y) {
    const uint32_t column = tile * TILE;
    uint32_t squares[EACH][EACH];
    tile_squares<TYPE>(&p, &s, row, column, squares);
    hand_rows_in(&p, row, column, squares);
    if (p.column_bests.best) hand_columns_in(&p, row, column, squares);
  }
}

/* ------------------------------------------------------------------ all squares */

/* Writes one row of a thread's squares; infinity for non-candidates. */
template <match_type TYPE>
static __device__ __forceinline__ void put_squares(const squares_tiles_args &p, uint32_t i, uint32_t column,
                                                   const uint32_t *squares) {
  float4 out[2];
  float *values = (float *)out;
#pragma unroll
  for (int c = 0; c < EACH; c++) {
    const uint32_t j = column + offset_in_tile(threadIdx.x % SIDE, c);
    bool there = squares[c] != UINT32_MAX;
    if (there && p.guide != MATCH_UNGUIDED)
      there = match_agrees(p.guide, p.tolerance_squared, &p.first_positions[i], &p.second_positions[j]);
    const float square = TYPE == MATCH_F32 ? __uint_as_float(squares[c]) : (float)squares[c];
    values[c] = there ? square : __uint_as_float(0x7f800000u);
  }
  float *line = p.squares + (size_t)i * p.pitch + column + threadIdx.x % SIDE * 4u;
  *(float4 *)line = out[0];
  *(float4 *)(line + TILE / 2) = out[1];
}

/*
 * Does      all squares of rows with columns whose positions agree: squares_ref.
 * Launch    x: 128 rows per block; y: 128 columns per block, which loops if the grid has fewer blocks. 256 threads
 *           of 8 x 8 squares.
 * Shared    two slices of 16 words of 128 descriptors: 16.5 KB.
 * Reads     both lists, 16-byte aligned; norms of 8-bit ones; positions with a guide. Writes squares, complete tiles
 *           of columns.
 * Barriers  those of tile_squares.
 * Limits    any count of 1 or more; pitch a multiple of 128.
 * Order     repeatable: one thread computes a square, in the contract's order.
 * Cost      floats: 2 instructions for each of 128 values, 8-bit: 1 for four; 4 bytes written per pair.
 */
template <match_type TYPE> static __device__ __forceinline__ void match_squares(const squares_tiles_args &p) {
  __shared__ __align__(16) tiles_shared s;
  const uint32_t row = blockIdx.x * TILE;
  for (uint32_t tile = blockIdx.y; tile < (p.lists.columns + TILE - 1u) / TILE; tile += gridDim.y) {
    uint32_t squares[EACH][EACH];
    tile_squares<TYPE>(&p.lists, &s, row, tile * TILE, squares);
#pragma unroll
    for (int r = 0; r < EACH; r++) {
      const uint32_t i = row + offset_in_tile(threadIdx.x / SIDE, r);
      if (i < p.lists.rows) put_squares<TYPE>(p, i, tile * TILE, squares[r]);
    }
  }
}

#define TILES_KERNEL(name, args, body)                                                                                 \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ args p) { body(p); }
TILES_KERNEL(match_tiles_u8_kernel, match_lists, match_tiles<MATCH_U8>)
TILES_KERNEL(match_tiles_f32_kernel, match_lists, match_tiles<MATCH_F32>)
TILES_KERNEL(match_squares_u8_kernel, squares_tiles_args, match_squares<MATCH_U8>)
TILES_KERNEL(match_squares_f32_kernel, squares_tiles_args, match_squares<MATCH_F32>)

MATCH_TILES_KERNELS(LAUNCH_CHECK)
