/*
 * Histograms of integer votes: in shared memory by atomics, and of a warp without atomics.
 *
 * The histogram in shared memory has COPIES interleaved copies, which are cleared, added to, and folded. Atomics on one
 * address, or on different addresses of one bank, wait for each other, and neighbouring lanes often vote for the
 * same bin. So lane l votes in copy l % COPIES. The copies of a bin are words bin * COPIES to bin * COPIES + COPIES
 * - 1, in separate banks; COPIES is a power of two up to 32. The histogram belongs to a warp or to a block: THREADS
 * is the number of its threads, `thread` the number of the caller. There is no barrier inside: the caller
 * synchronises those threads after clearing, and before bins are read. `bins`: aligned to 16 bytes. Sums wrap
 * around.
 */
#ifndef HARTSIFT_CUDA_PRIM_HISTOGRAMS_CUH
#define HARTSIFT_CUDA_PRIM_HISTOGRAMS_CUH

#include "cuda/prim/reductions.cuh"
#include "cuda/prim/shared_copy.cuh"

/* Clears the bins. All threads must call. WORDS: words of all copies, a multiple of 4. */
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

/* Adds one vote. Constant offsets may be moved between `copy` and `bin`, because addresses wrap around. */
template <int COPIES>
static __device__ __forceinline__ void shared_hist_add(uint32_t copy, uint32_t bin, int32_t vote) {
  shared_add(copy + bin * (COPIES * 4u), vote);
}

/* As shared_hist_add of the vote 1, by the instruction that counts. */
template <int COPIES> static __device__ __forceinline__ void shared_hist_count(uint32_t copy, uint32_t bin) {
  asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(copy + bin * (COPIES * 4u)) : "memory");
}

/* Returns the sum of a bin's copies. Threads that fold neighbouring bins start with copies in different banks. */
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

/* Adds BINS bins, which have one copy, to as many words in global memory; other blocks add to them too. All threads
 * must call. */
template <int BINS, int THREADS>
static __device__ __forceinline__ void shared_hist_flush(const uint32_t *bins, uint32_t *global, uint32_t thread) {
#pragma unroll
  for (uint32_t i = thread; i < BINS; i += THREADS)
    if (bins[i] != 0) atomicAdd(&global[i], bins[i]);
}

/* Warp-level histogram of integer votes without atomics, by multi-key reduction: lanes of equal key form a group, the
   group's votes are summed, and its lowest lane, the leader, adds the sum to the bin. Li, Jia, Zhang, ICPADS 2017.

   Called by all 32 lanes of a converged warp; `bins` (shared or global memory) belong to this warp alone while it
   adds. Every lane passes a key, of any range; a lane without a vote passes a vote of 0 and any valid key. The warp
   must be synchronised between two calls (each call begins by doing so), and by __syncwarp before other lanes read
   the bins. */

/* Returns the lanes whose key equals this lane's. */
static __device__ __forceinline__ uint32_t warp_hist_group(int32_t key) { return __match_any_sync(WARP_ALL, key); }

/* Returns the sum of the group's votes, on all of its lanes. group: the result of warp_hist_group. */
static __device__ __forceinline__ int32_t warp_hist_sum(uint32_t group, int32_t vote) {
#if __CUDA_ARCH__ >= 800
  return (int32_t)__reduce_add_sync(group, (uint32_t)vote);
#else
  /* Every lane loops over its group, for as many steps as the largest group has lanes. */
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

/* Adds one vote per lane. */
static __device__ __forceinline__ void warp_hist_add(int32_t *bins, int32_t key, int32_t vote) {
  __syncwarp();
  const uint32_t group = warp_hist_group(key);
  const int32_t sum = warp_hist_sum(group, vote);
  if ((int)(threadIdx.x % WARP_LANES) == __ffs((int)group) - 1) bins[key] += sum;
}

#endif
