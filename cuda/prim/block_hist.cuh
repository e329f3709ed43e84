/*
 * Histogram of a block in shared memory, by integer atomics: clear, add, flush.
 *
 * `bins`: `count` words of shared memory. Clear and flush are called by all threads of a one-dimensional block; add by
 * any thread between them. Clear ends and flush begins with a barrier. Sums wrap around.
 */
#ifndef HARTSIFT_CUDA_PRIM_BLOCK_HIST_CUH
#define HARTSIFT_CUDA_PRIM_BLOCK_HIST_CUH

#include "cuda/prim/warp_reduce.cuh"

static __device__ __forceinline__ void block_hist_clear(uint32_t *bins, uint32_t count) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) bins[i] = 0;
  __syncthreads();
}

static __device__ __forceinline__ void block_hist_add(uint32_t *bins, uint32_t key, uint32_t vote) {
  atomicAdd(&bins[key], vote);
}

/* Adds the bins to the same number of words in global memory that other blocks add to as well. */
static __device__ __forceinline__ void block_hist_flush(const uint32_t *bins, uint32_t count, uint32_t *global) {
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
    if (bins[i] != 0) atomicAdd(&global[i], bins[i]);
}

#endif
