/* Matching on a device: steps before and after the squares, and all steps in order. */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_keys.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

enum { THREADS = MATCH_THREADS, LANES = MATCH_LANES, RECORD_FLOATS = 6 /* of a keypoint record */ };

/* ------------------------------------------------------------------ before the squares */

/*
 * Does      squared norms of 8-bit descriptors; key bases of second's; initial values of all features' best keys.
 * Launch    8 lanes per feature: first's, then second's, padded to complete strips.
 * Shared    none. Reads descriptors, 16-byte aligned. Writes the work. Barriers: none.
 * Limits    any counts. Order: repeatable, integers. Cost: 128 bytes read per feature, bound by memory.
 */
extern "C" __global__ void __launch_bounds__(THREADS) match_norms_kernel(const __grid_constant__ norms_args p) {
  const uint64_t item = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
  const bool of_second = item >= p.first_count;
  const uint32_t i = (uint32_t)(of_second ? item - p.first_count : item), segment = threadIdx.x % LANES;
  const bool there = i < (of_second ? p.second_count : p.first_count);
  const uint8_t *list = of_second ? p.second : p.first;
  uint32_t norm = 0;
  if (list && there) {
    const uint4 v = ((const uint4 *)(list + (size_t)i * MATCH_LENGTH))[segment];
    norm = __dp4a(v.x, v.x, __dp4a(v.y, v.y, __dp4a(v.z, v.z, __dp4a(v.w, v.w, 0u))));
  }
  norm = lanes_reduce_sum<LANES>(norm);
  if (segment != 0) return;
  if (there) p.best[of_second][i] = p.second_best[of_second][i] = MATCH_NO_KEY;
  if (!list) return;
  if (!of_second)
    p.first_norms[i] = (int32_t)norm;
  else if (i < p.second_padded)
    p.second_base[i] = there ? (int32_t)(norm << MATCH_KEY_SHIFT) | match_column_number(i) : MATCH_NO_KEY_32;
}

/* Returns x and y of a record of 24 bytes. */
__device__ __forceinline__ static float2 record_position(const void *keypoints, uint32_t i) {
  const float *record = (const float *)keypoints + (size_t)i * RECORD_FLOATS;
  return make_float2(record[0], record[1]);
}

/*
 * Does      match_position_first or match_position_second of each keypoint. Launch: a thread per keypoint. Shared:
 * none. Reads     records of 24 bytes. Writes places. Barriers: none. Limits: any count. Order     repeatable: one
 * thread computes a position. Cost: some 20 double operations, 56 bytes per keypoint.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    match_positions_kernel(const __grid_constant__ match_guide guide, bool of_second, const void *keypoints,
                           uint32_t count, match_position *positions) {
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= count) return;
  const float2 at = record_position(keypoints, i);
  positions[i] = of_second ? match_position_second(&guide, at.x, at.y) : match_position_first(&guide, at.x, at.y);
}

/* ------------------------------------------------------------------ after the squares */

/*
 * Does      final keys to the two nearest. Launch: one thread per feature, forward's first. Shared: none.
 * Reads     best, second. Writes nearest. Barriers: none. Limits: any count. Order: repeatable. Cost: 32 bytes.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    match_settle_kernel(const __grid_constant__ settle_both_args both) {
  const uint64_t item = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
  const bool back = item >= both.way[0].own_count;
  const settle_args &p = both.way[back];
  const uint64_t i = back ? item - both.way[0].own_count : item;
  if (i >= p.own_count) return;
  const match_two t = {p.best[i], p.second[i]};
  p.nearest[i] = match_nearest_of_keys(p.type, t);
}

/*
 * Does      the same, if the second nearest was not searched in the group of the best: the group of a row, or of a
 *           column (with row and column exchanged).
 * Launch    one warp per feature, forward's first. Shared: none.
 * Reads     keys, descriptors (16-byte aligned), norms. Writes nearest. Barriers: none.
 * Limits    any count. Order: repeatable, integers. Cost: 2 KB read per feature; two dependent reads of the L2 cache.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    match_settle_group_kernel(const __grid_constant__ settle_both_args both) {
  const uint64_t item = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / WARP_LANES;
  const bool back = item >= both.way[0].own_count;
  const settle_args &p = both.way[back];
  const uint64_t i = back ? item - both.way[0].own_count : item;
  if (i >= p.own_count) return;
  match_two t = {p.best[i], p.second[i]};
  t.second = min(t.second, group_second(p, (uint32_t)i, t));
  if (threadIdx.x % WARP_LANES == 0) p.nearest[i] = match_nearest_of_keys(MATCH_U8, t);
}

/* ------------------------------------------------------------------ pairs */

/*
 * Does      counts the pairs kept of each tile: match_keeps. Launch: one block per tile, one thread per feature in
 *           turn.
 * Shared    32 words. Reads both directions' nearest. Writes tile_counts. Barriers: of the reduction.
 * Limits    any count. Order: repeatable, integers. Cost: 16 to 32 bytes per feature.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    match_count_kernel(const __grid_constant__ cuda_match_pairs_args p, uint32_t tile) {
  __shared__ uint32_t shared[WARP_LANES];
  const uint32_t first = blockIdx.x * tile;
  uint32_t kept = 0;
  for (uint32_t i = first + threadIdx.x; i < min(first + tile, p.count); i += THREADS)
    kept += match_keeps(&p.limits, p.forward, p.backward, i) ? 1u : 0u;
  kept = block_reduce_sum(kept, shared);
  if (threadIdx.x == 0) p.tile_counts[blockIdx.x] = kept;
}

/*
 * Does      writes the pairs kept by ascending first, and their number. Launch: as match_count_kernel.
 * Shared    32 words. Reads tile_counts, nearest. Writes pairs, pair_count. Barriers: of the sums.
 * Limits    any count. Order: repeatable: a pair's position is the number of pairs kept before it.
 * Cost      16 to 32 bytes per feature and 16 per pair; into host memory bound by the bus.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    match_pairs_kernel(const __grid_constant__ cuda_match_pairs_args p, uint32_t tile) {
  __shared__ uint32_t shared[WARP_LANES];
  const uint32_t first = blockIdx.x * tile, end = min(first + tile, p.count);
  uint32_t at = compact_before(p.tile_counts, blockIdx.x, shared);
  for (uint32_t step = first; step < end; step += THREADS) {
    const uint32_t i = step + threadIdx.x;
    const bool kept = i < end && match_keeps(&p.limits, p.forward, p.backward, i);
    uint32_t total;
    const uint32_t before = block_scan_exclusive(kept ? 1u : 0u, shared, &total);
    if (kept) {
      const match_pair pair = match_pair_of(i, &p.forward[i]);
      ((uint4 *)p.pairs)[at + before] =
          make_uint4(pair.first, pair.second, __float_as_uint(pair.distance), __float_as_uint(pair.next_distance));
    }
    at += total;
  }
  if (blockIdx.x + 1u == gridDim.x && threadIdx.x == 0) *p.pair_count = at;
}

MATCH_KERNELS(LAUNCH_CHECK)
