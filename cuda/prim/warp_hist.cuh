/*
 * Warp-level histogram of integer votes without atomics, by multi-key reduction: lanes of equal key form a group, the
 * group's votes are summed, and its lowest lane, the leader, adds the sum to the bin. Li, Jia, Zhang, ICPADS 2017.
 *
 * Called by all 32 lanes of a converged warp; `bins` (shared or global memory) belong to this warp alone while it adds.
 * Every lane names a key; a lane without a vote passes a vote of 0 and any valid key. Any key range. Between two calls
 * the warp must be synchronised (each call begins so), and before the bins are read by other lanes (__syncwarp).
 */
#ifndef HARTSIFT_CUDA_PRIM_WARP_HIST_CUH
#define HARTSIFT_CUDA_PRIM_WARP_HIST_CUH

#include "cuda/prim/warp_reduce.cuh"

/* The lanes whose key is this lane's. */
static __device__ __forceinline__ uint32_t warp_hist_group(int32_t key) { return __match_any_sync(WARP_ALL, key); }

/* The sum of the group's votes; valid on all of its lanes. group: as warp_hist_group gave it. */
static __device__ __forceinline__ int32_t warp_hist_sum(uint32_t group, int32_t vote) {
#if __CUDA_ARCH__ >= 800
  return (int32_t)__reduce_add_sync(group, (uint32_t)vote);
#else
  /* Every lane walks its group at the common pace of the largest one. */
  int32_t sum = 0;
  uint32_t rest = group;
  while (__any_sync(WARP_ALL, rest != 0)) {
    const int from = rest ? __ffs((int)rest) - 1 : 0;
    const int32_t other = __shfl_sync(WARP_ALL, vote, from);
    if (rest) sum += other;
    rest &= rest - 1;
  }
  return sum;
#endif
}

/* One vote a lane. */
static __device__ __forceinline__ void warp_hist_add(int32_t *bins, int32_t key, int32_t vote) {
  __syncwarp();
  const uint32_t group = warp_hist_group(key);
  const int32_t sum = warp_hist_sum(group, vote);
  if ((int)(threadIdx.x % WARP_LANES) == __ffs((int)group) - 1) bins[key] += sum;
}

#endif
