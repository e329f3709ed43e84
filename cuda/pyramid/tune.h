/*
 * Tile sizes of the pyramid's kernels, with the measurements behind the choice (NVIDIA H200; see bench/NOTES.md).
 */
#ifndef HARTSIFT_CUDA_PYRAMID_TUNE_H
#define HARTSIFT_CUDA_PYRAMID_TUNE_H

/* Radii with a specialised marching kernel: the profiles' radii at S = 3 (Lowe's and VLFeat's rule 5 5 7 8 10 13, not
 * doubled 7; OpenCV's 5 5 6 8 10 13). X(radius) for each: the rows of the tables in base_cuda.cu and
 * pyramid_cuda.cu. */
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
  MARCH_RADIUS_MAX = 16
};

/* Resident blocks of the marching blur requested per SM (__launch_bounds__): registers and shared memory allow it. */
enum { MARCH_BLOCKS_PER_SM = 5 };

/* Choice of the rows of a block: the maximum number of steps, and the number of blocks per SM above which they slow
 * each other. */
enum { MARCH_STEPS_MAX = 24, MARCH_DEPTH_MIN = 3 };

/* Steps of a block of the base made in bands: few, because the time until the last band counts, and a block takes the
 * same time whether its band fills the device or not. */
enum { BASE_BAND_STEPS = 4 };

/* Chains of level steps: X(radius, radius, radius or 0) for each, the rows of the table in blur_chain.cu. The largest
 * chained octaves, in samples:
 * three steps 8.9 us against 10.9 at 480x270, 12.9 against 11.7 at 640x480; two steps 7.2 against 7.8 at 320x240, 9.5
 * against 8.6 at 480x270. Small tiles: 6.6 against 7.0 us at 240x135, 9.4 against 7.0 at 320x240. */
#define TUNE_CHAINS(X) X(5, 7, 8) X(5, 6, 8) X(10, 13, 0)
enum { CHAIN_THREE_SAMPLES_MAX = 400 * 400, CHAIN_TWO_SAMPLES_MAX = 320 * 240, CHAIN_SMALL_SAMPLES_MAX = 1 << 15 };

/* General blur: one output a thread. */
enum { PLAIN_COLUMNS = 64, PLAIN_ROWS = 4 };

/* Extremum search: warps per block, blocks per SM (registers allow it), and limits for the rows of a warp. */
enum { EXTREMA_WARPS = 4, EXTREMA_BLOCKS_PER_SM = 4, EXTREMA_ROWS_MIN = 4, EXTREMA_ROWS_MAX = 16 };

#endif
