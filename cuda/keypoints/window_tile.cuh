/*
 * A warp's traversal of the samples around a keypoint or feature. The window is processed in segments of at most
 * SIZE x SIZE samples. A segment has weights by column and by row, and a list of runs. A run is up to RUN_LENGTH
 * neighbouring samples of one row, all of which vote. In each step the warp takes RUN_GROUPS runs, RUN_LENGTH lanes
 * each, so that few lanes idle whatever the window's shape. Drawing: cuda/KERNELS.md, "A window's runs".
 *
 * A struct T of the caller adds the votes. It has three functions, which all 32 lanes call: walk_begin when a
 * segment begins, before its weights are complete; walk_span for the columns of a row that vote; walk_vote for the
 * votes of the listed runs.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_WINDOW_TILE_CUH
#define HARTSIFT_CUDA_KEYPOINTS_WINDOW_TILE_CUH

#include "cuda/keypoints/frame_view.h"
#include "cuda/prim/reductions.cuh"
#include "cuda/prim/shared_copy.cuh"
#include "stages/affine.h"
#include "stages/orient.h"

/* The window, in the form that both histograms share. */
typedef struct window_geometry {
  float x, y;     /* origin of distances */
  int32_t cx, cy; /* the sample at the window's centre */
  int32_t radius;
  float falloff;
  int32_t margin; /* samples along each side of the level that do not vote */
  float scale;    /* 2^q */
} window_geometry;

enum {
  RUN_BITS = 2, /* log2 of a run's length */
  RUN_LENGTH = 1 << RUN_BITS,
  RUN_GROUPS = WARP_LANES / RUN_LENGTH,
  RUN_POSITION_BITS = 7,       /* bits of a column; also of a row plus one */
  RUNS_BEYOND = 2 * RUN_GROUPS /* empty runs at the list's end, because steps read past the last run */
};

/* A segment of a window, within the level. */
typedef struct window_segment {
  int32_t x, y; /* its first sample, in the level */
  int32_t columns, rows;
  int32_t stride;
  const float *corner; /* the first sample */
} window_segment;

/* Samples of one row: the column of the first one in the segment, and their number. Empty if the number is not
 * positive. */
typedef struct window_span {
  int32_t first, length;
} window_span;

/* One segment in shared memory: for each column and row, distance from the centre and weight; and the list of runs. */
template <int SIZE> struct window_tile {
  enum { RUNS = WARP_LANES * ((SIZE + RUN_LENGTH - 1) / RUN_LENGTH) }; /* enough for any 32 rows */
  float2 column[SIZE];
  float2 row[SIZE]; /* weights times 2^q */
  uint16_t runs[RUNS + RUNS_BEYOND];
};

/* Return the first and the last offset from the centre that is within the window and the level. */
static __device__ __forceinline__ int32_t window_tile_first(int32_t radius, int32_t centre, int32_t margin) {
  return max(-radius, margin - centre);
}

static __device__ __forceinline__ int32_t window_tile_last(int32_t radius, int32_t centre, int32_t length,
                                                           int32_t margin) {
  return min(radius, length - 1 - margin - centre);
}

/* Writes the distances and weights of a segment. All 32 lanes must call; __syncwarp is needed before other lanes
 * read. */
template <int SIZE>
static __device__ __forceinline__ void window_tile_weights(window_tile<SIZE> *tile, const window_geometry *w,
                                                           const window_segment *segment) {
  for (int32_t i = (int32_t)(threadIdx.x % WARP_LANES); i < max(segment->columns, segment->rows); i += WARP_LANES) {
    const float dx = (float)(segment->x + i) - w->x, dy = (float)(segment->y + i) - w->y;
    if (i < segment->columns) tile->column[i] = make_float2(dx, window_weight(dx, w->falloff));
    if (i < segment->rows) tile->row[i] = make_float2(dy, window_weight(dy, w->falloff) * w->scale);
  }
}

/* Returns the number of runs for a span. */
static __device__ __forceinline__ int32_t window_runs_of(window_span span) {
  return max(span.length + RUN_LENGTH - 1, 0) >> RUN_BITS;
}

/* Writes a span's runs. Packed from the high bits down: length less one, row plus one, column. So no run is 0,
 * which is the value of an empty one. */
static __device__ __forceinline__ void window_list_runs(uint16_t *runs, window_span span, int32_t row) {
  uint32_t run = (uint32_t)(RUN_LENGTH - 1) << 2 * RUN_POSITION_BITS | (uint32_t)(row + 1) << RUN_POSITION_BITS;
  run |= (uint32_t)span.first;
  int32_t left = span.length;
  for (; left > RUN_LENGTH; left -= RUN_LENGTH, run += RUN_LENGTH) *runs++ = (uint16_t)run;
  if (left > 0) *runs = (uint16_t)(run - ((uint32_t)(RUN_LENGTH - left) << 2 * RUN_POSITION_BITS));
}

/* Returns the smallest run that has a sample number `sub`, counted from 0. */
static __device__ __forceinline__ uint32_t window_run_least(int32_t sub) {
  return max((uint32_t)sub << 2 * RUN_POSITION_BITS, 1u);
}

/* Returns the row of a run, plus one. */
static __device__ __forceinline__ int32_t window_run_row_next(uint32_t run) {
  return (int32_t)(run >> RUN_POSITION_BITS & ((1u << RUN_POSITION_BITS) - 1u));
}

static __device__ __forceinline__ int32_t window_run_column(uint32_t run) {
  return (int32_t)(run & ((1u << RUN_POSITION_BITS) - 1u));
}

/* Processes one segment, whose weights are being written. Each of WARPS warps takes every WARPS-th row. */
template <int WARPS, int SIZE, typename T>
static __device__ __forceinline__ void window_walk_segment(const T &t, window_tile<SIZE> *tile,
                                                           const window_segment *segment) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), warp = (int32_t)(threadIdx.x / WARP_LANES) % WARPS;
  for (int32_t first = 0; first < segment->rows;) {
    int32_t listed = 0;
    for (; first < segment->rows; first += WARP_LANES * WARPS) {
      const int32_t row = first + lane * WARPS + warp;
      window_span span = {0, 0};
      if (row < segment->rows) span = walk_span(t, segment, row);
      const int32_t runs = window_runs_of(span), before = (int32_t)warp_scan_exclusive((uint32_t)runs);
      const int32_t more = __shfl_sync(WARP_ALL, before + runs, WARP_LANES - 1);
      if (listed + more > tile->RUNS) break;
      window_list_runs(tile->runs + listed + before, span, row);
      listed += more;
    }
    if (lane < RUNS_BEYOND) tile->runs[listed + lane] = 0;
    copies_wait();
    __syncwarp(); /* the list, the weights and the data of walk_begin are complete */
    if (listed > 0) walk_vote(t, segment, listed);
    __syncwarp(); /* the list has been read */
  }
}

/* Processes this warp's part of a window that WARPS warps share. */
template <int WARPS, int SIZE, typename T>
static __device__ __forceinline__ void window_walk(const T &t, window_tile<SIZE> *tile, const plane_view *level,
                                                   const window_geometry *w) {
  const int32_t top = window_tile_first(w->radius, w->cy, w->margin),
                left = window_tile_first(w->radius, w->cx, w->margin);
  const int32_t bottom = window_tile_last(w->radius, w->cy, level->height, w->margin);
  const int32_t right = window_tile_last(w->radius, w->cx, level->width, w->margin);
  for (int32_t row = top; row <= bottom; row += SIZE)
    for (int32_t column = left; column <= right; column += SIZE) {
      const int32_t x = w->cx + column, y = w->cy + row;
      const window_segment segment = {x,
                                      y,
                                      min((int32_t)SIZE, right - column + 1),
                                      min((int32_t)SIZE, bottom - row + 1),
                                      (int32_t)level->stride,
                                      level->data + (size_t)y * level->stride + (size_t)x};
      walk_begin(t, &segment);
      window_tile_weights(tile, w, &segment);
      window_walk_segment<WARPS>(t, tile, &segment);
    }
  __syncwarp(); /* needed if the window is outside the level and no segment was processed */
}

/* Samples the patch of a keypoint's affine shape into shared memory, by a warp. */

/* Samples SIDE x SIDE samples into rows of PITCH floats: affine_patch_ref. Lanes run along the side of the patch
 * that crosses fewer rows of the level. All 32 lanes must call; __syncwarp is needed before other lanes read. */
template <int SIDE, int PITCH>
static __device__ __forceinline__ void affine_patch_fill(float *patch, const plane_view *level, const patch_map *m) {
  const float middle = 0.5f * (float)(SIDE - 1);
  const bool turned = fabsf(m->a21) > fabsf(m->a22);
#pragma unroll 4 /* the reads of four samples are in flight at once */
  for (int32_t t = (int32_t)(threadIdx.x % WARP_LANES); t < SIDE * SIDE; t += WARP_LANES) {
    const int32_t line = t / SIDE, within = t % SIDE, i = turned ? line : within, j = turned ? within : line;
    const float u = (float)i - middle, v = (float)j - middle;
    const float x = hs_fmaf(m->a11, u, hs_fmaf(m->a12, v, m->x)), y = hs_fmaf(m->a21, u, hs_fmaf(m->a22, v, m->y));
    patch[j * PITCH + i] = affine_sample(level, x, y);
  }
}

/* Inputs of orientation for a keypoint, and the window made from them. */

/* Inputs of orientation for a keypoint. */
typedef struct orient_item {
  float x, y, sigma;
  int32_t column, row, octave, level;
} orient_item;

/* Reads the inputs of keypoint n of `count`; undefined if n is `count` or more. */
static __device__ __forceinline__ orient_item orient_item_at(const keypoint_list *k, uint32_t n, uint32_t count) {
  orient_item item = {0.0f, 0.0f, 0.0f, 0, 0, 0, 0};
  if (n >= count) return item;
  item.x = k->x[n], item.y = k->y[n], item.sigma = k->sigma[n];
  item.column = k->column[n], item.row = k->row[n], item.octave = k->octave[n], item.level = k->level[n];
  return item;
}

/* The Gaussian level whose gradients vote. */
static __device__ __forceinline__ plane_view orient_level_of(const cuda_frame_view &v, const orient_item &item) {
  const octave_view &o = v.octaves[item.octave - v.first_octave];
  const plane_view level = {o.levels + (size_t)item.level * o.level_floats, o.width, o.height, o.stride};
  return level;
}

/* Returns the window, in samples of that level. shift: of the level's grid. */
static __device__ __forceinline__ orient_window orient_window_at(const cuda_frame_view &v, const orient_item &item,
                                                                 float shift) {
  return orient_window_of(sample_of_position(item.x, item.octave, shift),
                          sample_of_position(item.y, item.octave, shift), item.sigma * hs_power_of_two(-item.octave),
                          item.column, item.row, v.params.orientation_rule);
}

#endif
