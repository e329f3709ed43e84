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

static __device__ __forceinline__ int32_t block_reduce_min(int32_t v, int32_t *shared) {
  const int32_t warp_min = warp_reduce_min(v);
  const unsigned lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  __syncthreads();
  if (lane == 0) shared[warp] = warp_min;
  __syncthreads();
  return warp_reduce_min(lane < blockDim.x / WARP_LANES ? shared[lane] : INT32_MAX);
}

/* What the WARPS warps of a block hold, joined by thread 0 and valid there. v: of each warp's lane 0. `shared`: WARPS
   entries, in use until the next barrier after the call. One barrier. */
template <int WARPS, typename T, void (*JOIN)(T &, const T &)>
static __device__ __forceinline__ void block_reduce_on_first(T &v, T *shared) {
  if (threadIdx.x % WARP_LANES == 0) shared[threadIdx.x / WARP_LANES] = v;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < WARPS; w++) JOIN(v, shared[w]);
}

#endif
