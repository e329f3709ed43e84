/*
 * Order-keeping compaction: exclusive scans (of 32 or 64 bits), and the sum of what lies in the tiles before one's own.
 *
 * A list is cut into tiles, one block each. Whoever produces the items counts them per tile by atomics, so no pass over
 * the items is needed for counting; the block that compacts a tile sums the counts of all tiles before it
 * (compact_before) and scans its own items (block_scan_exclusive). The count of tiles is bounded by the caller, for the
 * sums grow with its square.
 */
#ifndef HARTSIFT_CUDA_PRIM_COMPACT_CUH
#define HARTSIFT_CUDA_PRIM_COMPACT_CUH

#include "cuda/prim/block_reduce.cuh"

/* Sum over the lanes below this one. All 32 lanes of a converged warp. */
template <typename W> static __device__ __forceinline__ W warp_scan_exclusive(W v) {
  const int lane = (int)(threadIdx.x % WARP_LANES);
  W sum = v;
  for (int d = 1; d < WARP_LANES; d <<= 1) {
    const W below = __shfl_up_sync(WARP_ALL, sum, (unsigned)d);
    if (lane >= d) sum += below;
  }
  return sum - v;
}

/* Sum over the threads below this one; *total: of the block, valid on every thread. All threads of a one-dimensional
   block of a multiple of 32. `shared`: 32 words, as in block_reduce.cuh. Two barriers. */
template <typename W> static __device__ __forceinline__ W block_scan_exclusive(W v, W *shared, W *total) {
  const unsigned lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  const W within = warp_scan_exclusive(v);
  __syncthreads();
  if (lane == WARP_LANES - 1) shared[warp] = within + v;
  __syncthreads();
  const W of_warp = lane < blockDim.x / WARP_LANES ? shared[lane] : (W)0;
  const W before = warp_scan_exclusive(of_warp);
  *total = __shfl_sync(WARP_ALL, before + of_warp, WARP_LANES - 1);
  return __shfl_sync(WARP_ALL, before, (int)warp) + within;
}

/* The sum of counts[0..tile); valid on every thread. As block_reduce_sum. */
static __device__ __forceinline__ uint32_t compact_before(const uint32_t *counts, uint32_t tile, uint32_t *shared) {
  uint32_t sum = 0;
  for (uint32_t i = threadIdx.x; i < tile; i += blockDim.x) sum += counts[i];
  return block_reduce_sum(sum, shared);
}

#endif
