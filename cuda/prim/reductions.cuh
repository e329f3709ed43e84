/*
 * Reductions over a warp and over a block, and order-keeping compaction.
 *
 * Over the 32 lanes of a warp: All 32 lanes of a converged warp must call. The result is valid on every lane.
 * Neither shared memory nor barriers are used; a call orders the lanes' shared-memory accesses no more than
 * __shfl_xor_sync does. Sums wrap around.
 */
#ifndef HARTSIFT_CUDA_PRIM_REDUCTIONS_CUH
#define HARTSIFT_CUDA_PRIM_REDUCTIONS_CUH

#include <stdint.h>

#define WARP_ALL 0xffffffffu
enum { WARP_LANES = 32 };

static __device__ __forceinline__ uint32_t warp_reduce_sum(uint32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(WARP_ALL, v);
#else
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(WARP_ALL, v, d);
  return v;
#endif
}

static __device__ __forceinline__ int32_t warp_reduce_min(int32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(WARP_ALL, v);
#else
  for (int d = 16; d > 0; d >>= 1) v = min(v, __shfl_xor_sync(WARP_ALL, v, d));
  return v;
#endif
}

static __device__ __forceinline__ int32_t warp_reduce_max(int32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(WARP_ALL, v);
#else
  for (int d = 16; d > 0; d >>= 1) v = max(v, __shfl_xor_sync(WARP_ALL, v, d));
  return v;
#endif
}

/* Uses three 32-bit sums of parts that cannot overflow. Each is one instruction; shuffles would take four. */
static __device__ __forceinline__ uint64_t warp_reduce_sum_u64(uint64_t v) {
#if __CUDA_ARCH__ >= 800
  enum { PART = 27 };
  const uint32_t mask = (1u << PART) - 1u;
  const uint32_t low = __reduce_add_sync(WARP_ALL, (uint32_t)v & mask);
  const uint32_t middle = __reduce_add_sync(WARP_ALL, (uint32_t)(v >> PART) & mask);
  const uint32_t high = __reduce_add_sync(WARP_ALL, (uint32_t)(v >> 2 * PART));
  return low + ((uint64_t)middle << PART) + ((uint64_t)high << 2 * PART);
#else
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(WARP_ALL, v, d);
  return v;
#endif
}

/* Sums within groups of LANES neighbouring lanes; LANES is a power of two. */
template <int LANES> static __device__ __forceinline__ uint32_t lanes_reduce_sum(uint32_t v) {
  for (int d = 1; d < LANES; d <<= 1) v += __shfl_xor_sync(WARP_ALL, v, d);
  return v;
}

template <int LANES> static __device__ __forceinline__ uint64_t lanes_reduce_or_u64(uint64_t v) {
  for (int d = 1; d < LANES; d <<= 1) v |= __shfl_xor_sync(WARP_ALL, v, d);
  return v;
}

template <int LANES> static __device__ __forceinline__ int64_t lanes_reduce_max_i64(int64_t v) {
  for (int d = 1; d < LANES; d <<= 1) {
    const int64_t other = __shfl_xor_sync(WARP_ALL, v, d);
    v = other > v ? other : v;
  }
  return v;
}

/* Reductions over the threads of a block.

   All threads of a one-dimensional block must call; its size is a multiple of 32, up to 1024. `shared`: 32 words
   that nothing else uses until the next barrier after the call. Each call contains two barriers; the result is
   valid on every thread. Sums wrap around. */

static __device__ __forceinline__ uint32_t block_reduce_sum(uint32_t v, uint32_t *shared) {
  const uint32_t warp_sum = warp_reduce_sum(v);
  const unsigned lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  __syncthreads(); /* earlier readers of the words have finished */
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

/* Joins one value of each of the block's WARPS warps by thread 0, where alone the result is valid. v: the value of
 * each warp's lane 0. `shared`: WARPS entries, in use until the next barrier after the call. One barrier. */
template <int WARPS, typename T, void (*JOIN)(T &, const T &)>
static __device__ __forceinline__ void block_reduce_on_first(T &v, T *shared) {
  if (threadIdx.x % WARP_LANES == 0) shared[threadIdx.x / WARP_LANES] = v;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < WARPS; w++) JOIN(v, shared[w]);
}

/* Order-keeping compaction: exclusive scans (of 32 or 64 bits), and the sum over all previous tiles.
 *
 * A list is cut into tiles, one block each. The kernel that produces the items counts them per tile by atomics, so
 * counting needs no pass over the items. The block that compacts a tile sums the counts of all tiles before it
 * (compact_before) and scans the tile's items (block_scan_exclusive). The caller bounds the number of tiles, because
 * the cost of the sums grows with its square. */

/* Returns the sum over the lanes below the calling lane. All 32 lanes of a converged warp must call. */
template <typename W> static __device__ __forceinline__ W warp_scan_exclusive(W v) {
  const int lane = (int)(threadIdx.x % WARP_LANES);
  W sum = v;
  for (int d = 1; d < WARP_LANES; d <<= 1) {
    const W below = __shfl_up_sync(WARP_ALL, sum, (unsigned)d);
    if (lane >= d) sum += below;
  }
  return sum - v;
}

/* Returns the sum over the threads below the calling thread. *total: the sum of the block, valid on every thread. All
   threads of a one-dimensional block must call; its size must be a multiple of 32. `shared`: 32 words, as for
   block_reduce_sum. Two barriers. */
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

/* Returns the sum of counts[0..tile), valid on every thread. To be called as block_reduce_sum. */
static __device__ __forceinline__ uint32_t compact_before(const uint32_t *counts, uint32_t tile, uint32_t *shared) {
  uint32_t sum = 0;
  for (uint32_t i = threadIdx.x; i < tile; i += blockDim.x) sum += counts[i];
  return block_reduce_sum(sum, shared);
}

#endif
