/*
 * The samples about a feature in the order in which one warp takes them: the window in segments of at most SIZE x SIZE
 * samples, with the weights by column and by row, and a list of runs: up to RUN_LENGTH neighbouring samples of one row,
 * all of which vote. In each step the warp takes RUN_GROUPS runs, RUN_LENGTH lanes each, so that few lanes idle
 * whatever the window's shape. Drawing: cuda/KERNELS.md, "A window's runs".
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_WINDOW_TILE_CUH
#define HARTSIFT_CUDA_KEYPOINTS_WINDOW_TILE_CUH

#include "cuda/prim/warp_reduce.cuh"
#include "stages/orient.h"

/* A window as both histograms have it. */
typedef struct window_geometry {
  float x, y;     /* distances are measured from here */
  int32_t cx, cy; /* the sample the window lies about */
  int32_t radius;
  float falloff;
  int32_t margin; /* samples at each side of the level that are left out */
  float scale;    /* 2^q */
} window_geometry;

enum {
  RUN_BITS = 2, /* log2 of a run's length */
  RUN_LENGTH = 1 << RUN_BITS,
  RUN_GROUPS = WARP_LANES / RUN_LENGTH,
  RUN_POSITION_BITS = 7 /* of a column and of a row */
};

/* A segment of a window, within the level. */
typedef struct window_segment {
  int32_t x, y; /* its first sample, in the level */
  int32_t columns, rows;
  int32_t stride;
  const float *corner; /* the first sample */
} window_segment;

/* Samples of one row: the first one's column in the segment, and how many; none when that is not positive. */
typedef struct window_span {
  int32_t first, length;
} window_span;

/* One segment in shared memory: distance from the centre and weight of each column and row, and the list of runs. */
template <int SIZE> struct window_tile {
  enum { SIDE = SIZE, RUNS = WARP_LANES * ((SIZE + RUN_LENGTH - 1) / RUN_LENGTH) }; /* room for any 32 rows */
  float2 column[SIZE];
  float2 row[SIZE];                 /* weights times 2^q */
  uint16_t runs[RUNS + RUN_GROUPS]; /* a step may read past the last */
};

/* The first and the last offset from the centre within the window and the level. */
static __device__ __forceinline__ int32_t window_tile_first(int32_t radius, int32_t centre, int32_t margin) {
  return max(-radius, margin - centre);
}

static __device__ __forceinline__ int32_t window_tile_last(int32_t radius, int32_t centre, int32_t length,
                                                           int32_t margin) {
  return min(radius, length - 1 - margin - centre);
}

/* The distances and weights of a segment; all 32 lanes, __syncwarp before others read. */
template <int SIZE>
static __device__ __forceinline__ void window_tile_weights(window_tile<SIZE> *tile, const window_geometry *w,
                                                           const window_segment *segment) {
  for (int32_t i = (int32_t)(threadIdx.x % WARP_LANES); i < max(segment->columns, segment->rows); i += WARP_LANES) {
    const float dx = (float)(segment->x + i) - w->x, dy = (float)(segment->y + i) - w->y;
    if (i < segment->columns) tile->column[i] = make_float2(dx, window_weight(dx, w->falloff));
    if (i < segment->rows) tile->row[i] = make_float2(dy, window_weight(dy, w->falloff) * w->scale);
  }
}

/* Runs that hold a span. */
static __device__ __forceinline__ int32_t window_runs_of(window_span span) {
  return max(span.length + RUN_LENGTH - 1, 0) >> RUN_BITS;
}

/* Writes a span's runs: length less one, row and column from the high bits down. */
static __device__ __forceinline__ void window_list_runs(uint16_t *runs, window_span span, int32_t row) {
  uint32_t run = (uint32_t)(RUN_LENGTH - 1) << 2 * RUN_POSITION_BITS | (uint32_t)row << RUN_POSITION_BITS;
  run |= (uint32_t)span.first;
  int32_t left = span.length;
  for (; left > RUN_LENGTH; left -= RUN_LENGTH, run += RUN_LENGTH) *runs++ = (uint16_t)run;
  if (left > 0) *runs = (uint16_t)(run - ((uint32_t)(RUN_LENGTH - left) << 2 * RUN_POSITION_BITS));
}

/* Whether a run has a sample `sub`, from 0. */
static __device__ __forceinline__ bool window_run_reaches(uint32_t run, uint32_t sub) {
  return run >= sub << 2 * RUN_POSITION_BITS;
}

static __device__ __forceinline__ int32_t window_run_row(uint32_t run) {
  return (int32_t)(run >> RUN_POSITION_BITS & ((1u << RUN_POSITION_BITS) - 1u));
}

static __device__ __forceinline__ int32_t window_run_column(uint32_t run) {
  return (int32_t)(run & ((1u << RUN_POSITION_BITS) - 1u));
}

#endif
