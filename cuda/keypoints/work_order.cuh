/*
 * Order of work: features by window radius, the largest first, so that warps which run side by side have equal work and
 * none starts a long one last. A counting sort: counts are complete before any position is given. The order within a
 * bin varies between runs; results do not depend on it, because each feature's output has its own address.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_WORK_ORDER_CUH
#define HARTSIFT_CUDA_KEYPOINTS_WORK_ORDER_CUH

#include "cuda/keypoints/frame_view.h"
#include "cuda/prim/compact.cuh"

/* Bin of a keypoint's features. Any thread. */
static __device__ __forceinline__ uint32_t work_order_bin(const cuda_frame_view &v, uint32_t keypoint) {
  const float sigma = v.keypoints.sigma[keypoint] * hs_power_of_two(-(int32_t)v.keypoints.octave[keypoint]);
  const int32_t radius = describe_radius(sigma);
  return (uint32_t)(WORK_BINS - 1 - (radius < WORK_BINS - 1 ? radius : WORK_BINS - 1));
}

/* A block's shared memory for giving positions. */
typedef struct work_order_shared {
  uint32_t scan[WARP_LANES];
  uint32_t base[WORK_BINS];  /* first position of each bin */
  uint32_t local[WORK_BINS]; /* the tile's features in each bin, then the first position of those */
} work_order_shared;

/* The first position of each bin. All threads of a block of WORK_BINS; ends with a barrier. */
static __device__ __forceinline__ void work_order_bases(const uint32_t *counts, work_order_shared *s) {
  uint32_t total;
  s->base[threadIdx.x] = block_scan_exclusive(counts[threadIdx.x], s->scan, &total);
  __syncthreads();
}

/* Gives features first..first + count of one keypoint their positions; count may be 0. All threads of a block of
   WORK_BINS; one global addition a bin and tile, for those to one address wait for each other. */
static __device__ __forceinline__ void work_order_put(const cuda_frame_view &v, work_order_shared *s, uint32_t *cursors,
                                                      uint32_t bin, uint32_t first, uint32_t count, uint32_t capacity) {
  __syncthreads(); /* the previous tile's positions are given */
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
