/*
 * Tile sizes of the pyramid's kernels, with the measurements behind the choice (NVIDIA H200; see bench/NOTES.md), and
 * their arguments, for the CUDA code and for the launchers in C.
 */
#ifndef HARTSIFT_CUDA_PYRAMID_TUNE_H
#define HARTSIFT_CUDA_PYRAMID_TUNE_H

#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/runtime/launch.h"

/* Radii with a specialised marching kernel: the profiles' radii at S = 3 (Lowe's and VLFeat's rule 5 5 7 8 10 13, not
 * doubled 7; OpenCV's 5 5 6 8 10 13). X(radius) for each, a row of the table in pyramid_cuda.c. */
#define TUNE_MARCH_RADII(X) X(5) X(6) X(7) X(8) X(10) X(13)

/* Marching blur: a block processes a strip of MARCH_COLUMNS columns downwards, MARCH_ROWS input rows per step. The
 * row pass gives a lane a row and a warp MARCH_SEGMENT columns; the column pass gives a lane MARCH_LANE_COLUMNS
 * columns, one vector, in the number of rows that gives MARCH_SEGMENT outputs. The ring holds two steps of filtered
 * rows, enough for radii up to 16. */
enum {
  MARCH_COLUMNS = 64,
  MARCH_ROWS = 32,
  MARCH_SEGMENT = 16,
  MARCH_LANE_COLUMNS = 2,
  MARCH_RING_ROWS = 2 * MARCH_ROWS,
  MARCH_RADIUS_MAX = 16,
  MARCH_THREADS = MARCH_COLUMNS / MARCH_SEGMENT * 32,
  MARCH_BODY_ROWS = MARCH_THREADS / (MARCH_COLUMNS / 4), /* distance in rows between two vectors of a thread */
  MARCH_RING_STRIDE = MARCH_COLUMNS + 4
};

/* For radius R. HALO: columns staged at each side, rounded up to complete vectors. STAGED_STRIDE: floats from row to
 * row of a stage, an odd number of 16-byte units: neighbouring rows in different banks. SHARED_BYTES: dynamic shared
 * memory. */
#define MARCH_HALO(R)          (((R) + 3) / 4 * 4)
#define MARCH_STAGED_STRIDE(R) (MARCH_COLUMNS + 2 * MARCH_HALO(R) + 4)
#define MARCH_SHARED_BYTES(R)                                                                                          \
  ((2 * MARCH_ROWS * MARCH_STAGED_STRIDE(R) + MARCH_RING_ROWS * MARCH_RING_STRIDE) * (int)sizeof(float))

/* Resident blocks of the marching blur requested per SM (__launch_bounds__): registers and shared memory allow it. */
enum { MARCH_BLOCKS_PER_SM = 5 };

/* Choice of the rows of a block: the maximum number of steps, and the number of blocks per SM above which they slow
 * each other. */
enum { MARCH_STEPS_MAX = 24, MARCH_DEPTH_MIN = 3 };

/* Steps of a block of the base made in bands: few, because the time until the last band counts, and a block takes the
 * same time whether its band fills the device or not. */
enum { BASE_BAND_STEPS = 4 };

/* Chains of level steps: X(radius, radius, radius or 0) for each, a row of the table in pyramid_cuda.c. Larger octaves
 * than CHAIN_THREE_SAMPLES_MAX or CHAIN_TWO_SAMPLES_MAX take single steps. Measured, chain / single steps, us:
 *   three steps   480x270 8.9 / 10.9   640x480 12.9 / 11.7
 *   two steps     320x240 7.2 / 7.8    480x270 9.5 / 8.6
 * Small tiles serve octaves up to CHAIN_SMALL_SAMPLES_MAX. Measured, small / large tiles, us:
 *   240x135 6.6 / 7.0   320x240 9.4 / 7.0
 */
#define TUNE_CHAINS(X) X(5, 7, 8) X(5, 6, 8) X(10, 13, 0)
/* Tiles of a chain: large ones filter less of their neighbours, small ones spread a tiny octave over more
 * multiprocessors. */
#define CHAIN_TILE(small)    ((small) ? 16 : 32)
#define CHAIN_SEGMENT(small) ((small) ? 4 : 8)
#define CHAIN_THREADS(small) ((small) ? 704 : 576)

/* Regions of a chain: square, each smaller than the one before by twice a radius. Region 0 starts `halo` samples left
 * of and above the tile; `halo` is rounded up so that its rows consist of aligned vectors. `reach`: sum of the radii.
 */
#define CHAIN_HALO(reach)        (((reach) + 3) / 4 * 4)
#define CHAIN_SIDE(small, reach) ((CHAIN_TILE(small) + CHAIN_HALO(reach) + (reach) + 3) / 4 * 4)
#define CHAIN_WHOLE(small, R1, reach)                                                                                  \
  ((CHAIN_SIDE(small, reach) - 2 * (R1) + CHAIN_SEGMENT(small) - 1) / CHAIN_SEGMENT(small) * CHAIN_SEGMENT(small) +    \
   2 * (R1))
#define CHAIN_ROWS(small, R1, reach)                                                                                   \
  (CHAIN_WHOLE(small, R1, reach) > CHAIN_SIDE(small, reach) ? CHAIN_WHOLE(small, R1, reach) : CHAIN_SIDE(small, reach))
/* Floats from row to row: an odd number of 16-byte units, so that neighbouring rows are in different banks. */
#define CHAIN_STRIDE(rows) (((rows) + 3) / 8 * 8 + 4)
#define CHAIN_SHARED_BYTES(small, R1, reach)                                                                           \
  (2 * CHAIN_ROWS(small, R1, reach) * CHAIN_STRIDE(CHAIN_ROWS(small, R1, reach)) * (int)sizeof(float))

enum { CHAIN_THREE_SAMPLES_MAX = 400 * 400, CHAIN_TWO_SAMPLES_MAX = 320 * 240, CHAIN_SMALL_SAMPLES_MAX = 1 << 15 };

/* General blur: one output per thread. */
enum { PLAIN_COLUMNS = 64, PLAIN_ROWS = 4 };

/* Extremum search: warps per block, blocks per SM (registers allow it), and limits for the rows of a warp. */
enum { EXTREMA_WARPS = 4, EXTREMA_BLOCKS_PER_SM = 4, EXTREMA_ROWS_MIN = 4, EXTREMA_ROWS_MAX = 16 };

/* Parameters of the kernels, by value: the taps are in the constant bank. */

/* Parameters of a marching blur. A kernel has taps for its radius only (march_params in blur_march.cuh). */
typedef struct march_arguments {
  const float *in;
  float *out, *halved, *dog;
  size_t stride, halved_stride;
  size_t row_bytes, round_bytes, step_bytes, halved_row_bytes, halved_step_bytes;
  int32_t width, height;
  int32_t halved_width, halved_height;
  int32_t steps;
  int32_t first_row;
  border_mode border;
  float taps[MARCH_RADIUS_MAX + 1];
} march_arguments;

#define MARCH_ARGUMENT_BYTES(R) ((offsetof(march_arguments, taps) + ((R) + 1) * sizeof(float) + 7) / 8 * 8)

/* Parameters of a filter of any radius. */
typedef struct plain_params {
  plane_view in, out, halved;
  border_mode border;
  gaussian_filter filter;
} plain_params;

/* Parameters of a chain's block, by value. The taps of all steps, each of up to MARCH_RADIUS_MAX. */
typedef struct chain_params {
  const float *in;
  float *out; /* the first level that is made; the others are level_floats apart */
  float *halved;
  size_t stride, level_floats, halved_stride;
  int32_t width, height, halved_width, halved_height;
  border_mode border;
  float taps[3][MARCH_RADIUS_MAX + 1];
} chain_params;

/* Gray bytes of 8-bit colour. */

enum { GRAY_THREADS = 256, GRAY_ROWS_MAX = 65535 };

/* A picture's first byte, and the layout of its pixels. */
typedef struct gray_source {
  const uint8_t *data;
  size_t stride_bytes;
  int32_t width, height, channels, red, blue; /* bytes of a pixel; offsets of red and blue, both 0: no colours */
} gray_source;

/* The u8 source picture of a fused base. Rows start at multiples of 4 bytes. */
typedef struct byte_picture {
  const uint8_t *data;
  size_t stride_bytes;
  int32_t width, height;
} byte_picture;

#define GRAY_BASE_KERNELS(K)                                                                                           \
  K(base_cuda, gray_bytes_kernel, gray_source, uint8_t *, size_t, size_t)                                              \
  K(base_cuda, gray_kernel, source_view, plane_view, int32_t, size_t)                                                  \
  K(base_cuda, double_kernel, plane_view, plane_view, upsample_grid, size_t)
#define BLUR_PLAIN_KERNELS(K)                                                                                          \
  K(pyramid_cuda, blur_plain_rows_kernel, plain_params)                                                                \
  K(pyramid_cuda, blur_plain_columns_kernel, plain_params)                                                             \
  K(pyramid_cuda, dog_kernel, plane_view, plane_view, plane_view)

#endif
