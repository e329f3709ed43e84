/*
 * Reductions over the threads of a block.
 *
 * Called by all threads of a one-dimensional block, whose size is a multiple of 32 (up to 1024). `shared`: 32 words
 * that nothing else uses until the next barrier after the call. Each call holds two barriers; the result is valid on
 * every thread. Sums wrap around.
 */
#ifndef HARTSIFT_CUDA_PRIM_BLOCK_REDUCE_CUH
#define HARTSIFT_CUDA_PRIM_BLOCK_REDUCE_CUH

#include "cuda/prim/warp_reduce.cuh"

static __device__ __forceinline__ uint32_t block_reduce_sum(uint32_t v, uint32_t *shared) {
  const uint32_t warp_sum = warp_reduce_sum(v);
  const unsigned lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  __syncthreads(); /* the words' former readers are done */
  if (lane == 0) shared[warp] = warp_sum;
  __syncthreads();
  return warp_reduce_sum(lane < blockDim.x / WARP_LANES ? shared[lane] : 0u);
}

static __device__ __forceinline__ int32_t block_reduce_max(int32_t v, int32_t *shared) {
  const int32_t warp_max = warp_reduce_max(v);
  const unsigned lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  __syncthreads();
  if (lane == 0) shared[warp] = warp_max;
  __syncthreads();
  return warp_reduce_max(lane < blockDim.x / WARP_LANES ? shared[lane] : INT32_MIN);
}

#endif
