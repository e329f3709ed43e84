/*
 * Histogram of integer votes in shared memory in COPIES interleaved copies, by atomics: clear, add, fold.
 *
 * Atomics on one address, and on different ones of a bank, wait for each other, and lanes next to each other often vote
 * for the same bin. So lane l votes in copy l % COPIES, and the copies of a bin, words bin * COPIES to bin * COPIES +
 * COPIES - 1, lie in banks of their own; COPIES is a power of two up to 32. The histogram belongs to a warp or to a
 * block: THREADS is how many threads that has, `thread` which one of them calls. Nothing waits: after clearing, and
 * before bins are read, the caller synchronises those threads. `bins`: aligned to 16 bytes. Sums wrap around.
 */
#ifndef HARTSIFT_CUDA_PRIM_SHARED_HIST_CUH
#define HARTSIFT_CUDA_PRIM_SHARED_HIST_CUH

#include "cuda/prim/shared_memory.cuh"
#include "cuda/prim/warp_reduce.cuh"

/* All threads. WORDS: of all copies, a multiple of 4. */
template <int WORDS, int THREADS>
static __device__ __forceinline__ void shared_hist_clear(void *bins, uint32_t thread) {
  static_assert(WORDS % 4 == 0, "whole vectors");
  constexpr uint32_t VECTORS = WORDS / 4;
#pragma unroll
  for (uint32_t i = 0; i < VECTORS; i += THREADS)
    if (i + THREADS <= VECTORS || thread < VECTORS - i) ((uint4 *)bins)[i + thread] = make_uint4(0, 0, 0, 0);
}

/* The shared address of a lane's copy of bin 0. */
template <int COPIES> static __device__ __forceinline__ uint32_t shared_hist_copy(const void *bins, uint32_t lane) {
  return shared_address(bins) + lane % COPIES * 4u;
}

/* One vote. `copy` may lack what `bin` has too much, as addresses wrap around. */
template <int COPIES>
static __device__ __forceinline__ void shared_hist_add(uint32_t copy, uint32_t bin, int32_t vote) {
  shared_add(copy + bin * (COPIES * 4u), vote);
}

/* The sum of a bin's copies. Threads that fold neighbouring bins start with copies in different banks. */
template <int COPIES> static __device__ __forceinline__ uint32_t shared_hist_fold(const void *bins, uint32_t bin) {
  uint32_t sum = 0;
  if (COPIES < 4) {
#pragma unroll
    for (uint32_t c = 0; c < COPIES; c++) sum += ((const uint32_t *)bins)[bin * COPIES + c];
    return sum;
  }
  constexpr uint32_t VECTORS = COPIES / 4 > 0 ? COPIES / 4 : 1, LINE = WARP_LANES / 4;
#pragma unroll
  for (uint32_t k = 0; k < VECTORS; k++) {
    const uint4 four = ((const uint4 *)bins)[bin * VECTORS + (k + bin * VECTORS / LINE) % VECTORS];
    sum += (four.x + four.y) + (four.z + four.w);
  }
  return sum;
}

/* Adds BINS bins, of one copy, to as many words in global memory that others add to as well. All threads. */
template <int BINS, int THREADS>
static __device__ __forceinline__ void shared_hist_flush(const uint32_t *bins, uint32_t *global, uint32_t thread) {
#pragma unroll
  for (uint32_t i = thread; i < BINS; i += THREADS)
    if (bins[i] != 0) atomicAdd(&global[i], bins[i]);
}

#endif
