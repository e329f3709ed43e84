/*
 * From the final keys of a feature to its two nearest, also where the tensor kernel left the group of the best out.
 */
#ifndef HARTSIFT_CUDA_MATCH_MATCH_SETTLE_CUH
#define HARTSIFT_CUDA_MATCH_MATCH_SETTLE_CUH

#include "cuda/match/match_keys.cuh"

/* One direction to settle. */
typedef struct settle_args {
  match_type type;
  const uint8_t *own, *other; /* descriptors, and squared norms of 8-bit ones */
  const int32_t *own_norms, *other_norms;
  int own_shift, other_shift; /* that the norms are stored with */
  uint32_t own_count, other_count;
  const uint64_t *best, *second;
  match_nearest *nearest;
} settle_args;

/* The smallest key of the group of t's best but for that itself: the candidates of its 64 whose numbers agree with it
   in bits 1 and 2, 16 of them, two lanes each. Valid on all lanes. */
static __device__ __forceinline__ uint64_t group_second(const settle_args &p, uint32_t i, match_two t) {
  const uint32_t lane = threadIdx.x % WARP_LANES, nearest = (uint32_t)t.best, member = lane / 2u, half = lane % 2u;
  const uint32_t j = (nearest & ~63u) + (member & ~1u) * 4u + (nearest & 6u) + (member & 1u);
  const bool there = t.best != MATCH_NO_KEY && j < p.other_count && j != nearest;
  uint32_t products = 0, norms = 0;
  if (there) {
    const uint4 *a = (const uint4 *)(p.own + (size_t)i * MATCH_LENGTH) + half * 4u;
    const uint4 *b = (const uint4 *)(p.other + (size_t)j * MATCH_LENGTH) + half * 4u;
    norms = (uint32_t)(p.own_norms[i] >> p.own_shift) + (uint32_t)(p.other_norms[j] >> p.other_shift);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const uint4 u = a[k], v = b[k];
      products = __dp4a(u.x, v.x, __dp4a(u.y, v.y, __dp4a(u.z, v.z, __dp4a(u.w, v.w, products))));
    }
  }
  products = lanes_reduce_sum<2>(products);
  uint64_t key = there ? match_key(norms - 2u * products, j) : MATCH_NO_KEY;
  for (int d = 2; d < WARP_LANES; d <<= 1) key = min(key, (uint64_t)__shfl_xor_sync(WARP_ALL, key, d));
  return key;
}

#endif
