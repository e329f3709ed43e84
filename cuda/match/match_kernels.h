/*
 * The kernels of matching: their launches, arguments and tables, for the CUDA code and for the launchers in C.
 */
#ifndef HARTSIFT_CUDA_MATCH_MATCH_KERNELS_H
#define HARTSIFT_CUDA_MATCH_MATCH_KERNELS_H

#include <stdalign.h>

#include "cuda/match/match_cuda.h"
#include "cuda/runtime/launch.h"

#define MATCH_NO_KEY 0xffffffffffffffffull

/* MATCH_STRIP: columns that share a step of the tensor kernel. MATCH_SPAN: number of columns that fit into the low
 * bits of its 32-bit keys. */
enum { MATCH_STRIP = 64, MATCH_SPAN = 512 };
/* A 32-bit key: square (or a value of the same order) << 8 | number. */
enum { MATCH_KEY_SHIFT = 8, MATCH_KEY_NUMBER = 255 };

enum { MATCH_THREADS = 256, MATCH_LANES = 8 /* lanes per descriptor, 16 bytes each */ };

#ifndef __CUDACC__

/* Blocks of MATCH_THREADS. */
static inline launch_shape match_shape(uint32_t blocks, cuda_stream stream) {
  return (launch_shape){launch_1d(blocks), launch_1d(MATCH_THREADS), 0, stream};
}

static inline uint32_t match_blocks(uint64_t threads) {
  return (uint32_t)((threads + MATCH_THREADS - 1u) / MATCH_THREADS);
}

/* Returns the next array of `count` elements in memory from `base` on; null without a base. */
static inline void *match_array(void *base, size_t *offset, size_t count, size_t bytes) {
  enum { ALIGNMENT = 256 };
  void *at = base ? (unsigned char *)base + *offset : NULL;
  *offset += (count * bytes + ALIGNMENT - 1u) / ALIGNMENT * ALIGNMENT;
  return at;
}

#endif

/* The two smallest keys of every feature while blocks still add to them. */
typedef struct match_bests {
  uint64_t *best, *second;
} match_bests;

/* The lists whose squares are computed; their features are rows and columns. */
typedef struct match_lists {
  const uint8_t *first, *second; /* descriptors */
  uint32_t rows, columns;
  const int32_t *norms, *base;         /* of the first and the second list; 8-bit descriptors only */
  match_bests row_bests, column_bests; /* null: these are not wanted */
  uint32_t strips_a_block;             /* by matrix instructions only */
} match_lists;

typedef struct norms_args {
  const uint8_t *first, *second; /* null: descriptors are floats, which have no norms */
  uint32_t first_count, second_count, second_padded;
  int32_t *first_norms, *second_base;
  uint64_t *best[2], *second_best[2]; /* keys of first's features, and of second's */
} norms_args;

/* One direction to settle. */
typedef struct settle_args {
  match_type type;
  const uint8_t *own, *other; /* descriptors, and squared norms of 8-bit ones */
  const int32_t *own_norms, *other_norms;
  int own_shift, other_shift; /* shifts of the norms in their storage */
  uint32_t own_count, other_count;
  const uint64_t *best, *second;
  match_nearest *nearest;
} settle_args;

/* Both directions: forward, then backward unless its count is 0. */
typedef struct settle_both_args {
  settle_args way[2];
} settle_both_args;

#define MATCH_KERNELS(K)                                                                                               \
  K(match_cuda, match_norms_kernel, norms_args)                                                                        \
  K(match_cuda, match_positions_kernel, match_guide, bool, const void *, uint32_t, match_position *)                   \
  K(match_cuda, match_settle_kernel, settle_both_args)                                                                 \
  K(match_cuda, match_settle_group_kernel, settle_both_args)                                                           \
  K(match_cuda, match_count_kernel, cuda_match_pairs_args, uint32_t)                                                   \
  K(match_cuda, match_pairs_kernel, cuda_match_pairs_args, uint32_t)

#define MATCH_MANY_KERNELS(K)                                                                                          \
  K(match_many, match_image_kernel, cuda_match_image, uint32_t)                                                        \
  K(match_many, match_settle_many_kernel, const cuda_match_task *)                                                     \
  K(match_many, match_pairs_many_kernel, const cuda_match_task *, match_limits)

/* Matching with a guide. */

enum { GUIDED_WARPS = 8, GUIDED_OWN = 4, GUIDED_BLOCK_OWN = GUIDED_WARPS * GUIDED_OWN }; /* features per warp, block */

typedef struct guided_args {
  const uint32_t *own, *other; /* words of the descriptors */
  const match_position *own_positions, *other_positions;
  uint32_t own_count, other_count;
  double tolerance_squared;
  match_nearest *nearest;
} guided_args;

#define MATCH_GUIDED_KERNELS(K)                                                                                        \
  K(match_guided, match_guided_u8_homography_kernel, guided_args)                                                      \
  K(match_guided, match_guided_u8_homography_back_kernel, guided_args)                                                 \
  K(match_guided, match_guided_u8_epipolar_kernel, guided_args)                                                        \
  K(match_guided, match_guided_u8_epipolar_back_kernel, guided_args)                                                   \
  K(match_guided, match_guided_f32_homography_kernel, guided_args)                                                     \
  K(match_guided, match_guided_f32_homography_back_kernel, guided_args)                                                \
  K(match_guided, match_guided_f32_epipolar_kernel, guided_args)                                                       \
  K(match_guided, match_guided_f32_epipolar_back_kernel, guided_args)

/* Products by matrix instructions. */

enum {
  PRODUCTS_WARPS = 4,
  PRODUCTS_THREADS = PRODUCTS_WARPS * 32,
  PRODUCTS_ROW_TILES = 4,                       /* tiles of 16 rows per warp: its rows stay in registers */
  PRODUCTS_WARP_ROWS = 16 * PRODUCTS_ROW_TILES, /* 64 */
  PRODUCTS_BLOCK_ROWS = PRODUCTS_WARPS * PRODUCTS_WARP_ROWS,
  PRODUCTS_HALF_ROWS = PRODUCTS_BLOCK_ROWS / 2, /* number of rows that can be numbered in a key: 7 bits */
  PRODUCTS_LANE_ROWS = 2 * PRODUCTS_ROW_TILES,  /* rows whose products a lane holds */
  PRODUCTS_LANE_WORDS = 8,                      /* words of a descriptor per lane: 32 bytes of 128 */
  PRODUCTS_STRIP_TILES = MATCH_STRIP / 8,
  PRODUCTS_SPAN_STRIPS = MATCH_SPAN / MATCH_STRIP,
  PRODUCTS_BUFFERS = 3,
  PRODUCTS_COLUMN_PITCH = MATCH_STRIP + 8, /* stride in words between lane groups: 8 banks on */
  PRODUCTS_BLOCKS = 3                      /* blocks per multiprocessor */
};

/* The two nearest of a row among the columns of one lane; values are squares less |a|^2. */
typedef struct row_two {
  alignas(16) int32_t best;
  int32_t second;
  uint32_t best_column, second_column;
} row_two;

/* Dynamic shared memory of a block. */
typedef struct products_shared {
  uint8_t columns[PRODUCTS_BUFFERS]
                 [MATCH_STRIP * MATCH_LENGTH]; /* 16-byte pieces, permuted within a row by its low 3 bits */
  int32_t base[PRODUCTS_BUFFERS][MATCH_STRIP];
  int32_t column_keys[2][PRODUCTS_WARPS][8][PRODUCTS_COLUMN_PITCH]; /* smallest keys over each lane's rows; two sets,
                                                                     * for alternate strips */
  row_two rows[PRODUCTS_LANE_ROWS][PRODUCTS_THREADS];
} products_shared;

#define MATCH_PRODUCTS_KERNELS(K)                                                                                      \
  K(match_products, match_products_wide_kernel, match_lists)                                                           \
  K(match_products, match_products_wide_columns_kernel, match_lists)                                                   \
  K(match_products, match_products_narrow_kernel, match_lists)                                                         \
  K(match_products, match_products_narrow_columns_kernel, match_lists)                                                 \
  K(match_products, match_products_many_kernel, const cuda_match_task *, uint32_t)                                     \
  K(match_products, match_products_many_columns_kernel, const cuda_match_task *, uint32_t)

/* Rows alone, by the matrix instructions of a warpgroup. */

enum {
  ROWS_WARPS = 16,
  ROWS_THREADS = ROWS_WARPS * 32,
  ROWS_BLOCK_ROWS = ROWS_WARPS * 16, /* an instruction of a warpgroup has 64 */
  ROWS_STRIP = CUDA_MATCH_PADDING,   /* columns of an instruction */
  ROWS_STAGES = 12,                  /* strips in shared memory */
  ROWS_AHEAD = 6,                    /* strips whose copies begin before the first is used */
  ROWS_CHAINS = 4,                   /* groups of a lane's columns of a strip */
  ROWS_TILE = 32,                    /* the fewest rows of a block that confirms */
  ROWS_TILES_MAX = 1024
};

/* Words of a task's claims: the list's length less one, the last tile begun, and the pairs of each tile. */
enum { ROWS_LISTED, ROWS_TICKET, ROWS_TILES };

/* The next strip to copy. */
typedef struct rows_cursor {
  const uint8_t *columns;
  const int32_t *base;
  uint64_t at; /* the first unit beyond these strips */
  uint32_t left, stage, parity;
} rows_cursor;

/* Dynamic shared memory of a block. */
typedef struct rows_shared {
  alignas(1024) uint8_t columns[ROWS_STAGES][ROWS_STRIP * MATCH_LENGTH];
  alignas(128) int32_t base[ROWS_STAGES][ROWS_STRIP];
  uint64_t full[ROWS_STAGES], empty[ROWS_STAGES]; /* barriers */
  rows_cursor cursor;
} rows_shared;

typedef struct match_rows_args {
  cuda_match_task one;          /* the task if tasks is null */
  const cuda_match_task *tasks; /* [count] */
  uint32_t count;
  uint32_t tile; /* rows of a block that confirms */
  bool back;     /* the rows are the listed features of second */
  bool mutual;
  match_limits limits;
} match_rows_args;

/* Lists to pack, which may be in place already. */
typedef struct pack_args {
  const uint8_t *from[2];
  cuda_match_image to[2];
  uint32_t padded[2];                 /* counts, rounded up to complete strips */
  uint64_t *best[2], *second_best[2]; /* keys to clear, or null */
  uint32_t *words;                    /* words to set to ones */
  size_t word_count;
} pack_args;

#define MATCH_ROWS_KERNELS(K)                                                                                          \
  K(match_rows, match_pack_kernel, pack_args)                                                                          \
  K(match_rows, match_rows_kernel, match_rows_args)                                                                    \
  K(match_rows, match_claim_kernel, match_rows_args)                                                                   \
  K(match_rows, match_confirm_kernel, match_rows_args)

/* Squares without matrix instructions. */

enum { SQUARES_TILE = 128 }; /* rows and columns of a block of MATCH_THREADS */

typedef struct squares_tiles_args {
  match_lists lists;                                        /* without bests */
  const match_position *first_positions, *second_positions; /* null without a guide */
  match_guide_kind guide;
  double tolerance_squared;
  float *squares;
  size_t pitch;
} squares_tiles_args;

#define MATCH_TILES_KERNELS(K)                                                                                         \
  K(match_tiles, match_tiles_u8_kernel, match_lists)                                                                   \
  K(match_tiles, match_tiles_f32_kernel, match_lists)                                                                  \
  K(match_tiles, match_squares_u8_kernel, squares_tiles_args)                                                          \
  K(match_tiles, match_squares_f32_kernel, squares_tiles_args)

/* Rows of squares, as bits. */
typedef struct rows_args {
  const uint32_t *squares;
  size_t pitch;
  uint32_t columns, bound; /* bits of the bound */
} rows_args;

#define NEIGHBOURS_KERNELS(K)                                                                                          \
  K(neighbours_cuda, neighbours_nearest_kernel, rows_args, uint32_t, match_neighbour *)                                \
  K(neighbours_cuda, neighbours_count_kernel, rows_args, uint32_t *)                                                   \
  K(neighbours_cuda, neighbours_list_kernel, rows_args, const uint32_t *, match_neighbour *)

#endif
