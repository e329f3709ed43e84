/*
 * The kernels of the primitives: their launches, arguments and tables, for the CUDA code and for the launchers in C.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_PRIMITIVES_KERNELS_H
#define HARTSIFT_CUDA_PRIMITIVES_PRIMITIVES_KERNELS_H

#include "cuda/primitives/primitives_cuda.h"
#include "cuda/runtime/launch.h"

enum { BYTE_ROWS_VECTOR = 16, BYTE_ROWS_FLAT_BITS = 34 };

typedef struct byte_rows {
  const uint8_t *data;
  size_t stride_bytes;
  int64_t rows, width, last_width; /* rows; bytes of a row; bytes of the last row */
  uint32_t vectors;                /* vectors per row */
  uint32_t multiplier, shift;      /* n / vectors = (n * multiplier >> 32) >> shift for n below 2^31 */
  int64_t group_rows;              /* number of rows whose units stay below 2^31 */
  uint32_t whole_first, whole;     /* for a single row: its first complete vector, and the number of complete ones */
} byte_rows;

/* Whether rows follow each other without gaps. */
static inline bool byte_rows_joined(int64_t width, int64_t rows, size_t stride_bytes) {
  return rows == 1 || stride_bytes == (size_t)width;
}

/* joined: byte_rows_joined is true for this picture and every other one processed with it. The bytes are then
 * divided into new rows of 2^34 bytes. Sizes are 1 or more. */
static inline byte_rows byte_rows_make(const void *data, int64_t width, int64_t rows, size_t stride_bytes,
                                       bool joined) {
  byte_rows r = {(const uint8_t *)data, stride_bytes, rows, width, width, 0, 0, 0, 0, 0, 0};
  if (joined) {
    const int64_t total = width * rows, piece = (int64_t)1 << BYTE_ROWS_FLAT_BITS;
    r.width = total < piece ? total : piece;
    r.rows = (total + r.width - 1) / r.width;
    r.last_width = total - (r.rows - 1) * r.width;
    r.stride_bytes = (size_t)r.width;
  }
  const uint64_t needed = (uint64_t)(r.width + 2 * (BYTE_ROWS_VECTOR - 1)) / BYTE_ROWS_VECTOR;
  r.vectors = needed < 2 ? 2u : (uint32_t)needed; /* the division below needs 2 or more */
  uint32_t bits = 1;
  while (((uint64_t)1 << bits) < r.vectors) bits++;
  r.multiplier = (uint32_t)((((uint64_t)1 << (31 + bits)) + r.vectors - 1) / r.vectors);
  r.shift = bits - 1;
  r.group_rows = (int64_t)(INT32_MAX / r.vectors);
  const int64_t before = (int64_t)((uintptr_t)data & (BYTE_ROWS_VECTOR - 1)), end = before + r.width;
  r.whole_first = before != 0 ? 1u : 0u;
  r.whole =
      (uint32_t)(end / BYTE_ROWS_VECTOR) > r.whole_first ? (uint32_t)(end / BYTE_ROWS_VECTOR) - r.whole_first : 0u;
  return r;
}

/* Returns the units of all rows, for the size of a grid. */
static inline uint64_t byte_rows_units(const byte_rows *r) { return (uint64_t)r->rows * r->vectors; }

/* Four bytes of 1. */
#define BYTE_STATS_ONES 0x01010101u

/* A threshold of 0..254 and the number after it, each in all four bytes. */
typedef struct byte_threshold {
  uint32_t threshold, next;
} byte_threshold;

HS_INLINE byte_threshold byte_threshold_make(uint32_t threshold) {
  const byte_threshold t = {threshold * BYTE_STATS_ONES, (threshold + 1u) * BYTE_STATS_ONES};
  return t;
}

/* Elements in rows: a view, or a tile of a view. */
typedef struct element_rows {
  const uint8_t *data;
  uint64_t count, width; /* elements in all; elements of a row */
  size_t stride_bytes;
} element_rows;

/* Extremes and count of one lane's elements. low above high: no element yet. */
typedef struct lane_range {
  double low, high;
  uint64_t above;
} lane_range;

/* The largest tile, in elements, whose offsets a block lists. */
enum { TILE_LISTED_MAX = 4096 };

typedef struct tile_grid {
  const uint8_t *data;
  uint64_t width, height, tile_width, tile_height; /* elements */
  uint64_t columns, rows, count;                   /* tiles: per row, rows, all requested */
  size_t stride_bytes;
} tile_grid;

HS_INLINE uint64_t ceil_div_u64(uint64_t n, uint64_t part) { return n / part + (n % part != 0); }

enum { REDUCE_THREADS = 256, REDUCE_WARPS = REDUCE_THREADS / 32, REDUCE_BLOCKS_PER_SM = 4 };

/* One block's result for integers. */
typedef struct integer_partial {
  uint64_t sum;
  uint32_t min, max;
} integer_partial;

typedef struct reduce_result {
  double *first, *second;
  double divisor; /* the number of elements for a mean, else 1 */
} reduce_result;

typedef double range_partial[2]; /* of a block: smallest, largest */

#define REDUCE_KERNELS(K)                                                                                              \
  K(reduce_cuda, reduce_u8_sum_flat_kernel, byte_rows, integer_partial *, uint32_t *, reduce_result)                   \
  K(reduce_cuda, reduce_u8_sum_rows_kernel, byte_rows, integer_partial *, uint32_t *, reduce_result)                   \
  K(reduce_cuda, reduce_u8_range_flat_kernel, byte_rows, integer_partial *, uint32_t *, reduce_result)                 \
  K(reduce_cuda, reduce_u8_range_rows_kernel, byte_rows, integer_partial *, uint32_t *, reduce_result)                 \
  K(reduce_cuda, reduce_u16_sum_flat_kernel, byte_rows, integer_partial *, uint32_t *, reduce_result)                  \
  K(reduce_cuda, reduce_u16_sum_rows_kernel, byte_rows, integer_partial *, uint32_t *, reduce_result)                  \
  K(reduce_cuda, reduce_u16_range_flat_kernel, byte_rows, integer_partial *, uint32_t *, reduce_result)                \
  K(reduce_cuda, reduce_u16_range_rows_kernel, byte_rows, integer_partial *, uint32_t *, reduce_result)                \
  K(reduce_cuda, reduce_f32_sum_flat_kernel, element_rows, double *, uint32_t *, reduce_result)                        \
  K(reduce_cuda, reduce_f32_sum_rows_kernel, element_rows, double *, uint32_t *, reduce_result)                        \
  K(reduce_cuda, reduce_f64_sum_flat_kernel, element_rows, double *, uint32_t *, reduce_result)                        \
  K(reduce_cuda, reduce_f64_sum_rows_kernel, element_rows, double *, uint32_t *, reduce_result)                        \
  K(reduce_cuda, reduce_f32_range_flat_kernel, element_rows, range_partial *, uint32_t *, reduce_result)               \
  K(reduce_cuda, reduce_f32_range_rows_kernel, element_rows, range_partial *, uint32_t *, reduce_result)               \
  K(reduce_cuda, reduce_f64_range_flat_kernel, element_rows, range_partial *, uint32_t *, reduce_result)               \
  K(reduce_cuda, reduce_f64_range_rows_kernel, element_rows, range_partial *, uint32_t *, reduce_result)

/* Launch settings, by prefix for the size of the picture: threads of a block, vectors of 16 bytes that a thread has
 * in flight, and log2 of the bytes between bins. */
enum {
  SMALL_THREADS = HISTOGRAM_BINS,
  SMALL_VECTORS = 1,
  BIN_SHIFT = 2,       /* 4 bytes: one bin for all lanes */
  LANE_THREADS = 1024, /* one block per multiprocessor: fewer sums to join */
  MEDIUM_VECTORS = 2,  /* a third and a fourth vector, never resident, would cost 0.3 us of 2.7 */
  LARGE_VECTORS = 4,
  LANE_SHIFT = 7 /* 128 bytes: one bin of 4 bytes for each of 32 lanes */
};

enum {
  TALLY_SUM_BITS = 24, /* bits for the count in a 32-bit tally; the bits above count the blocks that have added their
                        * counts */
  TALLY_BLOCKS_MAX = 255,
  LONG_TALLY_SUM_BITS = 48, /* bits for the count in a 64-bit tally */
  LONG_TALLY_BLOCKS_MAX = 65535,
  LEVEL_THREADS = 256,
  LEVEL_BLOCKS_PER_SM = 4,
  LEVEL_VECTORS = 2,
  LEVEL_WORDS = 64 /* words for 4 levels */
};

#define HISTOGRAM_KERNELS(K)                                                                                           \
  K(histogram_cuda, histogram_small_rows_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *, uint64_t *)  \
  K(histogram_cuda, histogram_small_flat_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *, uint64_t *)  \
  K(histogram_cuda, histogram_small_masked_rows_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *,       \
    uint64_t *)                                                                                                        \
  K(histogram_cuda, histogram_small_masked_flat_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *,       \
    uint64_t *)                                                                                                        \
  K(histogram_cuda, histogram_medium_rows_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *, uint64_t *) \
  K(histogram_cuda, histogram_medium_flat_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *, uint64_t *) \
  K(histogram_cuda, histogram_medium_masked_rows_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *,      \
    uint64_t *)                                                                                                        \
  K(histogram_cuda, histogram_medium_masked_flat_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *,      \
    uint64_t *)                                                                                                        \
  K(histogram_cuda, histogram_large_rows_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *, uint64_t *)  \
  K(histogram_cuda, histogram_large_flat_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *, uint64_t *)  \
  K(histogram_cuda, histogram_large_masked_rows_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *,       \
    uint64_t *)                                                                                                        \
  K(histogram_cuda, histogram_large_masked_flat_kernel, byte_rows, const uint8_t *, size_t, histogram_scratch *,       \
    uint64_t *)                                                                                                        \
  K(histogram_cuda, equalize_rows_kernel, byte_rows, const uint64_t *, uint8_t *, size_t)                              \
  K(histogram_cuda, equalize_flat_kernel, byte_rows, const uint64_t *, uint8_t *, size_t)

enum {
  TILE_THREADS = 256,
  TILE_BLOCKS_PER_SM = 4, /* 5 for columns of 3 words, as measured; with more, too few rows would be in flight */
  TILE_GRID_YZ_MAX = 65535,
  TILE_FINISH_WARPS = 8,
  TILE_FINISH_MANY = 64,           /* number of segments from which on all warps of a block combine a tile */
  TILE_SEGMENT_ROWS_MIN = 16,      /* minimum height of a segment of a tile */
  TILE_SEGMENT_BYTES_MAX = 1 << 24 /* maximum size: sums of a thread stay in 32 bits */
};

/* How words are read: aligned; joined from two at the same offset in every row; or at offsets that differ from row to
 * row. */
typedef enum tile_reading { TILE_ALIGNED, TILE_SHIFTED, TILE_TURNING } tile_reading;

/* One block's result for one tile. */
typedef struct tile_byte_segment {
  uint64_t sum, above;
  uint32_t min, max;
} tile_byte_segment;

typedef struct tile_bytes_params {
  tile_grid grid;
  const uint8_t *end;       /* end of the view */
  uint64_t units;           /* units of WORDS words per row of a tile */
  uint32_t block_units;     /* adjacent units in a block: all units of a row, or as many as a block has threads */
  uint32_t unit_reciprocal; /* n / block_units = n * unit_reciprocal >> 16 for n up to 255 */
  uint32_t tiles_a_block;   /* adjacent tiles in a block; 1 if block_units are not all units */
  uint64_t row_segments;    /* segments of a tile from top to bottom */
  uint64_t segment_rows;    /* rows of a segment */
  uint64_t unit_segments;   /* segments of a tile from left to right */
  uint64_t segment_units;   /* units of a segment */
  byte_threshold threshold;
  bool all_above, none_above; /* the count is known: all bytes are above the threshold, or none is */
  prim_tile *tiles;
  tile_byte_segment *segments; /* null: tiles are not divided */
} tile_bytes_params;

#define TILE_BYTES_KERNELS(K)                                                                                          \
  K(tile_bytes_cuda, tile_bytes_1_aligned_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_1_shifted_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_1_turning_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_2_aligned_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_2_shifted_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_2_turning_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_3_shifted_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_3_turning_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_4_aligned_kernel, tile_bytes_params)                                                   \
  K(tile_bytes_cuda, tile_bytes_finish_few_kernel, tile_bytes_params)                                                  \
  K(tile_bytes_cuda, tile_bytes_finish_many_kernel, tile_bytes_params)

enum {
  CHUNK_THREADS = 256,
  CHUNK_WARPS = CHUNK_THREADS / 32,
  CHUNK_BLOCKS_PER_SM = 3,
  LISTED_ROWS = 16, /* rows of 32 elements that a warp has in flight */
  LISTED_BLOCKS_PER_SM = 4,
  LISTED_BLOCKS_OF_F64 = 3,
  CHUNK_WARPS_WANTED = 4 * CHUNK_WARPS,  /* per multiprocessor: with fewer tiles, tiles are divided into segments */
  CHUNK_FINER = 4,                       /* factor by which segments are more, if tiles are few and each thread can
                                          * have a segment */
  WIDE_WARPS_RESIDENT = 3 * CHUNK_WARPS, /* resident warps per multiprocessor of tile_wide_chunks_kernel */
  WIDE_SEGMENTS_MIN = 8,                 /* fewest segments of a tile: with fewer in one round, warps would have no
                                          * work */
  WIDE_ROW = 4 * PRIM_CHUNK              /* minimum elements of a row for most chunks to be within a row */
};

typedef struct tile_chunks_params {
  tile_grid grid;
  uint64_t segments, segment_chunks; /* of a tile; chunks of a segment, PRIM_CHUNK for a single segment */
  uint64_t tile_sums;                /* number of sums of a tile at all levels of the tree; level 0: of chunks */
  bool floor_apart;                  /* tile_chunks_floor_kernel has written the second tree level of sums */
  double threshold;
  prim_tile *tiles;
  double *sums;       /* [tiles][tile_sums]; null if a tile is one segment */
  lane_range *ranges; /* [tiles][segments] */
} tile_chunks_params;

#define TILE_CHUNKS_KERNELS(K)                                                                                         \
  K(tile_stats_cuda, tile_chunks_u16_kernel, tile_chunks_params)                                                       \
  K(tile_stats_cuda, tile_chunks_f32_kernel, tile_chunks_params)                                                       \
  K(tile_stats_cuda, tile_chunks_f64_kernel, tile_chunks_params)                                                       \
  K(tile_stats_cuda, tile_wide_chunks_kernel, tile_chunks_params)                                                      \
  K(tile_stats_cuda, tile_listed_u16_kernel, tile_chunks_params)                                                       \
  K(tile_stats_cuda, tile_listed_f64_kernel, tile_chunks_params)                                                       \
  K(tile_stats_cuda, tile_chunks_floor_kernel, tile_chunks_params)                                                     \
  K(tile_stats_cuda, tile_chunks_finish_kernel, tile_chunks_params)

enum {
  FLOATS_THREADS = 128,
  FLOATS_WARPS = FLOATS_THREADS / 32,
  FLOATS_BLOCKS_PER_SM = 7,
  FLOATS_ROWS = 16, /* rows of 32 elements that a warp has in flight */
  LIST_ROWS = 4,    /* rows whose offsets a lane reads from the list at once */
  LIST_GROUP = LIST_ROWS * 32
};

typedef struct tile_floats_params {
  tile_grid grid;
  float threshold;
  uint64_t whole_columns, whole_tiles; /* tiles of the full width: in a row of tiles, and in all */
  uint64_t rest_tiles;                 /* number of narrower tiles, which are at the ends of rows */
  prim_tile *tiles;
} tile_floats_params;

#define TILE_FLOATS_KERNELS(K) K(tile_floats_cuda, tile_floats_kernel, tile_floats_params)

/* Convolution. */

enum {
  TREE_THREADS = 256,
  TREE_BLOCKS_PER_SM = 4,
  TREE_ROUNDS = 2, /* vectors that a thread has in flight */
  LONG_THREADS = 256,
  LONG_TAPS = 256, /* taps per step */
  LONG_STAGED = 4, /* samples that a thread has in flight */
  CONVOLVE_GRID_Y_MAX = 65535
};

/* Few taps; a type for each type of sample. */
#define TREE_PARAMS(name, E)                                                                                           \
  typedef struct name {                                                                                                \
    const uint8_t *data;                                                                                               \
    uint8_t *out;                                                                                                      \
    int64_t width, height; /* in samples; in rows */                                                                   \
    size_t stride_bytes, out_stride_bytes;                                                                             \
    prim_ends ends;                                                                                                    \
    E taps[PRIM_TREE_TAPS_MAX];                                                                                        \
  } name;
TREE_PARAMS(tree_params_f32, float)
TREE_PARAMS(tree_params_f64, double)

/* Many taps. */
typedef struct long_params {
  const uint8_t *data;
  uint8_t *out;
  int64_t width, height;
  size_t stride_bytes, out_stride_bytes;
  const double *taps; /* device, or null: the inline taps below */
  uint32_t tap_count;
  prim_ends ends;
  double inline_taps[CONVOLVE_INLINE_TAPS];
} long_params;

/* Outputs of a thread, for samples of so many bytes. */
#define LONG_OUTPUTS(bytes) ((bytes) == 4 ? 8 : 4)

#define CONVOLVE_KERNELS(K)                                                                                            \
  K(convolve_cuda, convolve_f32_1_kernel, tree_params_f32)                                                             \
  K(convolve_cuda, convolve_f32_1_vectors_kernel, tree_params_f32)                                                     \
  K(convolve_cuda, convolve_f32_3_kernel, tree_params_f32)                                                             \
  K(convolve_cuda, convolve_f32_3_vectors_kernel, tree_params_f32)                                                     \
  K(convolve_cuda, convolve_f32_5_kernel, tree_params_f32)                                                             \
  K(convolve_cuda, convolve_f32_5_vectors_kernel, tree_params_f32)                                                     \
  K(convolve_cuda, convolve_f32_7_kernel, tree_params_f32)                                                             \
  K(convolve_cuda, convolve_f32_7_vectors_kernel, tree_params_f32)                                                     \
  K(convolve_cuda, convolve_f64_1_kernel, tree_params_f64)                                                             \
  K(convolve_cuda, convolve_f64_1_vectors_kernel, tree_params_f64)                                                     \
  K(convolve_cuda, convolve_f64_3_kernel, tree_params_f64)                                                             \
  K(convolve_cuda, convolve_f64_3_vectors_kernel, tree_params_f64)                                                     \
  K(convolve_cuda, convolve_f64_5_kernel, tree_params_f64)                                                             \
  K(convolve_cuda, convolve_f64_5_vectors_kernel, tree_params_f64)                                                     \
  K(convolve_cuda, convolve_f64_7_kernel, tree_params_f64)                                                             \
  K(convolve_cuda, convolve_f64_7_vectors_kernel, tree_params_f64)                                                     \
  K(convolve_cuda, convolve_f32_long_kernel, long_params)                                                              \
  K(convolve_cuda, convolve_f64_long_kernel, long_params)

#endif
