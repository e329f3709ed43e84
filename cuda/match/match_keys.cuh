/*
 * Candidates as 64-bit keys: the square in the upper word, the index in the lower one. So the order of matching
 * (square, then index) is the order of integers. Also the two smallest keys of a feature, in registers and in
 * global memory.
 *
 * Squares of floats are never negative, so their bits have the order of their values.
 */
#ifndef HARTSIFT_CUDA_MATCH_MATCH_KEYS_CUH
#define HARTSIFT_CUDA_MATCH_MATCH_KEYS_CUH

#include "cuda/match/match_kernels.h"
#include "cuda/prim/reductions.cuh"

#define MATCH_NO_KEY_32 INT32_MAX

/* Returns the low bits of a column's key, at most 127: the column's number among the columns of its span that the
 * same lane has. Of every 8 columns, each of 4 lanes has two neighbouring ones. */
static __device__ __forceinline__ int32_t match_column_number(uint32_t column) {
  return (int32_t)((column >> 2 & 126u) | (column & 1u));
}

static __device__ __forceinline__ uint64_t match_key(uint32_t square, uint32_t index) {
  return (uint64_t)square << 32 | index;
}

/* Returns the key of a float square; MATCH_NO_KEY if the square is not finite. */
static __device__ __forceinline__ uint64_t match_key_float(float square, uint32_t index) {
  return hs_is_finite(square) ? match_key(hs_float_bits(square), index) : MATCH_NO_KEY;
}

/* The two smallest keys found so far. */
typedef struct match_two {
  uint64_t best, second;
} match_two;

static __device__ __forceinline__ match_two match_two_none() {
  const match_two none = {MATCH_NO_KEY, MATCH_NO_KEY};
  return none;
}

static __device__ __forceinline__ void match_two_take(match_two *t, uint64_t key) {
  const uint64_t loser = max(t->best, key);
  t->best = min(t->best, key);
  t->second = min(t->second, loser);
}

/* Merges two sets that have no common key. */
static __device__ __forceinline__ void match_two_join(match_two *t, match_two other) {
  const uint64_t loser = max(t->best, other.best);
  t->best = min(t->best, other.best);
  t->second = min(min(t->second, other.second), loser);
}

/* Merges the sets of lanes whose numbers differ only in the bits from `first` up to, not including, `end` (powers
 * of two). Valid on all of them. All 32 lanes must call. */
static __device__ __forceinline__ void match_two_join_lanes(match_two *t, int first, int end) {
  for (int d = first; d < end; d <<= 1) {
    match_two other;
    other.best = __shfl_xor_sync(WARP_ALL, t->best, d);
    other.second = __shfl_xor_sync(WARP_ALL, t->second, d);
    match_two_join(t, other);
  }
}

static __device__ __forceinline__ float match_square_of_key(match_type type, uint64_t key) {
  const uint32_t square = (uint32_t)(key >> 32);
  return type == MATCH_F32 ? __uint_as_float(square) : (float)square;
}

static __device__ __forceinline__ match_nearest match_nearest_of_keys(match_type type, match_two t) {
  match_nearest n = match_nearest_none();
  if (t.best != MATCH_NO_KEY) {
    n.nearest = (uint32_t)t.best;
    n.nearest_squared = match_square_of_key(type, t.best);
  }
  if (t.second != MATCH_NO_KEY) {
    n.second = (uint32_t)t.second;
    n.second_squared = match_square_of_key(type, t.second);
  }
  return n;
}

/* Adds a set to a feature's set. The result does not depend on the order of additions. An atomic minimum keeps the
 * smallest key as best. The key that loses this comparison, whether the old best or the new one, is offered as
 * second. Every key but the smallest loses exactly once, so each is offered once. The plain reads before the
 * atomics may return an old value, which can only be too large; they save nearly all atomics. */
static __device__ __forceinline__ void match_bests_add(const match_bests *bests, uint32_t i, match_two t) {
  uint64_t loser = t.best;
  if (t.best < __ldcg(&bests->best[i])) {
    const uint64_t old = atomicMin((unsigned long long *)&bests->best[i], (unsigned long long)t.best);
    loser = max(old, t.best);
  }
  const uint64_t second = min(loser, t.second);
  if (second < __ldcg(&bests->second[i]))
    atomicMin((unsigned long long *)&bests->second[i], (unsigned long long)second);
}

/* From the final keys of a feature to its two nearest, also if the tensor kernel left out the group of the best. */

/* Returns the smallest key in the group of t's best, without the best. The group are 16 of the best's 64
 * candidates: those whose numbers agree with it in bits 1 and 2. Two lanes compute each. Valid on all lanes. */
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
