/*
 * Conversion between mask bits and samples, and the order of work. Device functions, called by any thread.
 * Drawing: cuda/KERNELS.md, "Mask words, tiles and ranks".
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_WORK_ITEMS_CUH
#define HARTSIFT_CUDA_KEYPOINTS_WORK_ITEMS_CUH

#include "cuda/keypoints/frame_view.h"
#include "cuda/prim/reductions.cuh"

/* A sample of DoG level 1..S; octave: index into the view's octaves. */
typedef struct mask_site {
  int32_t octave, level, x, y;
} mask_site;

/* The masks of one octave: their size, and the sample of the first bit. */
typedef struct mask_position {
  uint32_t words_per_row, height;
  int32_t x, y;
} mask_position;

static __device__ __forceinline__ mask_position mask_position_of(const cuda_frame_view &v, int32_t octave) {
  const octave_view &o = v.octaves[octave];
  const plane_region &part = v.part.masked;
  if (v.part.tiled) return {(uint32_t)(part.x1 - part.x0 + 31) / 32u, (uint32_t)(part.y1 - part.y0), part.x0, part.y0};
  return {(uint32_t)(o.width + 31) / 32u, (uint32_t)o.height, 0, 0};
}

/* Finds the sample of a mask bit. False: the word is between the masks of two octaves. */
static __device__ __forceinline__ bool mask_site_of(const cuda_frame_view &v, uint32_t word, uint32_t bit,
                                                    mask_site *s) {
  int32_t o = 0;
  while (o + 1 < v.octave_count && word >= v.mask_offset[o + 1]) o++;
  const mask_position position = mask_position_of(v, o);
  const uint32_t words = position.words_per_row, height = position.height;
  const uint32_t local = word - v.mask_offset[o], row = local / words, level = row / height;
  s->octave = o;
  s->level = (int32_t)level + 1;
  s->y = position.y + (int32_t)(row - level * height);
  s->x = position.x + (int32_t)((local - row * words) * 32u + bit);
  return s->level <= v.params.scales;
}

static __device__ __forceinline__ uint32_t mask_word_of(const cuda_frame_view &v, const mask_site *s) {
  const mask_position position = mask_position_of(v, s->octave);
  const uint32_t row = (uint32_t)(s->level - 1) * position.height + (uint32_t)(s->y - position.y);
  return v.mask_offset[s->octave] + row * position.words_per_row + (uint32_t)((s->x - position.x) >> 5);
}

/* Order of work: features by window radius, the largest first. So warps that run side by side have equal work, and
 * no warp starts a long item last. It is a counting sort: counts are complete before any position is assigned. The
 * order within a bin varies between runs. Results do not depend on it, because each feature has a separate output
 * address. */

/* Returns the bin of a keypoint's features. Any thread may call. */
static __device__ __forceinline__ uint32_t work_order_bin(const cuda_frame_view &v, uint32_t keypoint) {
  const float sigma = v.keypoints.sigma[keypoint] * hs_power_of_two(-(int32_t)v.keypoints.octave[keypoint]);
  const int32_t radius = describe_radius(sigma);
  return (uint32_t)(WORK_BINS - 1 - (radius < WORK_BINS - 1 ? radius : WORK_BINS - 1));
}

/* A block's shared memory for assigning positions. */
typedef struct work_order_shared {
  uint32_t scan[WARP_LANES];
  uint32_t base[WORK_BINS];  /* first position of each bin */
  uint32_t local[WORK_BINS]; /* number of the tile's features in each bin, then the position of the first of them */
} work_order_shared;

/* Computes the first position of each bin. All threads of a block of WORK_BINS must call; ends with a barrier. */
static __device__ __forceinline__ void work_order_bases(const uint32_t *counts, work_order_shared *s) {
  uint32_t total;
  s->base[threadIdx.x] = block_scan_exclusive(counts[threadIdx.x], s->scan, &total);
  __syncthreads();
}

/* Assigns positions to features first..first + count - 1 of one keypoint; count may be 0. All threads of a block of
 * WORK_BINS must call. There is one global addition per bin and tile, because additions to one address wait for
 * each other. */
static __device__ __forceinline__ void work_order_put(const cuda_frame_view &v, work_order_shared *s, uint32_t *cursors,
                                                      uint32_t bin, uint32_t first, uint32_t count, uint32_t capacity) {
  __syncthreads(); /* the positions of the previous tile are assigned */
  s->local[threadIdx.x] = 0;
  __syncthreads();
  uint32_t at = count > 0 ? atomicAdd(&s->local[bin], count) : 0u;
  __syncthreads();
  const uint32_t here = s->local[threadIdx.x];
  if (here > 0) s->local[threadIdx.x] = s->base[threadIdx.x] + atomicAdd(&cursors[threadIdx.x], here);
  __syncthreads();
  if (count > 0) at += s->local[bin];
  for (uint32_t i = 0; i < count; i++)
    if (at + i < capacity) v.scratch.order[at + i] = first + i;
}

#endif
