/*
 * Order of work: features by window radius, the largest first, so that warps which run side by side have equal work and
 * none starts a long one last. A counting sort: counts are complete before any place is given. The order within a bin
 * varies between runs; results do not depend on it, for each feature's output has its own place.
 */
#ifndef HS_CUDA_WORK_ORDER_CUH
#define HS_CUDA_WORK_ORDER_CUH

#include "cuda/frame_view.h"
#include "cuda/prim/compact.cuh"

/* Bin of a keypoint's features. Any thread. */
static __device__ __forceinline__ uint32_t work_order_bin(const cuda_frame_view &v, uint32_t keypoint) {
  const float sigma = v.keypoints.sigma[keypoint] * hs_power_of_two(-(int32_t)v.keypoints.octave[keypoint]);
  const int32_t radius = describe_radius(sigma);
  return (uint32_t)(WORK_BINS - 1 - (radius < WORK_BINS - 1 ? radius : WORK_BINS - 1));
}

/* The first place of each bin, into shared memory. All threads of a block of WORK_BINS; ends with a barrier. */
static __device__ __forceinline__ void work_order_bases(const uint32_t *counts, uint32_t *s_bases, uint32_t *s_scan) {
  uint32_t total;
  s_bases[threadIdx.x] = block_scan_exclusive(counts[threadIdx.x], s_scan, &total);
  __syncthreads();
}

/* Gives features first..first + count of one keypoint their places. Any thread. */
static __device__ __forceinline__ void work_order_put(const cuda_frame_view &v, const uint32_t *s_bases, uint32_t *cursors, uint32_t bin,
                                                      uint32_t first, uint32_t count, uint32_t capacity) {
  const uint32_t at = s_bases[bin] + atomicAdd(&cursors[bin], count);
  for (uint32_t i = 0; i < count; i++)
    if (at + i < capacity) v.scratch.order[at + i] = first + i;
}

#endif
