/*
 * Reductions over the 32 lanes of a warp.
 *
 * Called by all 32 lanes of a converged warp. The result is valid on every lane. No shared memory, no barrier; the
 * calls themselves order the lanes' shared-memory accesses no more than __shfl_xor_sync does. Sums wrap around.
 */
#ifndef HARTSIFT_CUDA_PRIM_WARP_REDUCE_CUH
#define HARTSIFT_CUDA_PRIM_WARP_REDUCE_CUH

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

/* By three sums of 32 bits of parts that cannot overflow; each is one instruction where shuffles would take four. */
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

/* Within groups of LANES neighbouring lanes, a power of two. */
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

#endif
