/*
 * Many pairs of images at a time; see match_cuda.h. match_products.cu computes the squares.
 */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_keys.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

enum { THREADS = MATCH_THREADS, LANES = MATCH_LANES };

/* ------------------------------------------------------------------ data of one image */

/*
 * Does      squared norms and bases of an image's descriptors. Launch: 8 lanes per feature, padded to complete strips.
 * Shared    none. Reads descriptors, 16-byte aligned. Writes norms, base. Barriers: none.
 * Limits    any count. Order: repeatable, integers. Cost: 128 bytes read per feature, bound by memory.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    match_image_kernel(const __grid_constant__ cuda_match_image image, uint32_t padded) {
  const uint32_t i = (uint32_t)(((uint64_t)blockIdx.x * THREADS + threadIdx.x) / LANES), segment = threadIdx.x % LANES;
  const bool there = i < image.count;
  uint32_t norm = 0;
  if (there) {
    const uint4 v = ((const uint4 *)(image.descriptors + (size_t)i * MATCH_LENGTH))[segment];
    norm = __dp4a(v.x, v.x, __dp4a(v.y, v.y, __dp4a(v.z, v.z, __dp4a(v.w, v.w, 0u))));
  }
  norm = lanes_reduce_sum<LANES>(norm);
  if (segment != 0 || i >= padded) return;
  if (there) image.norms[i] = (int32_t)norm;
  image.base[i] = there ? (int32_t)(norm << MATCH_KEY_SHIFT) | match_column_number(i) : MATCH_NO_KEY_32;
}

/* ------------------------------------------------------------------ pairs */

/*
 * Does      final keys to the two nearest of each task's features: match_settle_group_kernel for many pairs.
 * Launch    x: one warp per feature, first's and then second's, for the largest counts of any pair; y: the tasks.
 * Shared    none. Reads keys, descriptors (16-byte aligned), norms. Writes forward, backward. Barriers: none.
 * Limits    65535 tasks. Order: repeatable, integers. Cost: 2 KB read per feature.
 */
extern "C" __global__ void __launch_bounds__(THREADS) match_settle_many_kernel(const cuda_match_task *tasks) {
  const cuda_match_task *t = &tasks[blockIdx.y];
  const uint64_t item = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / WARP_LANES;
  const uint32_t rows = t->first.count, columns = t->second.count;
  const bool back = item >= rows;
  const uint64_t i = back ? item - rows : item;
  if (i >= (back ? (t->backward ? columns : 0) : rows)) return;
  const cuda_match_image *own = back ? &t->second : &t->first, *other = back ? &t->first : &t->second;
  const settle_args p = {MATCH_U8,
                         own->descriptors,
                         other->descriptors,
                         own->norms,
                         other->norms,
                         0,
                         0,
                         own->count,
                         other->count,
                         back ? t->second_best : t->first_best,
                         back ? t->second_second : t->first_second,
                         back ? t->backward : t->forward};
  match_two two = {p.best[i], p.second[i]};
  two.second = min(two.second, group_second(p, (uint32_t)i, two));
  if (threadIdx.x % WARP_LANES == 0) p.nearest[i] = match_nearest_of_keys(MATCH_U8, two);
}

/*
 * Does      writes each task's kept pairs by ascending first, and their number: match_keeps. Launch: a block per task.
 * Shared    32 words. Reads both directions' nearest. Writes pairs, pair_count. Barriers: of the sums.
 * Limits    any counts. Order: repeatable: a pair's position is the number of pairs kept before it.
 * Cost      16 to 32 bytes per feature and 16 per pair; into host memory bound by the bus.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    match_pairs_many_kernel(const cuda_match_task *tasks, const __grid_constant__ match_limits limits) {
  __shared__ uint32_t shared[WARP_LANES];
  const cuda_match_task *t = &tasks[blockIdx.x];
  const uint32_t count = t->first.count;
  uint32_t at = 0;
  for (uint32_t step = 0; step < count; step += THREADS) {
    const uint32_t i = step + threadIdx.x;
    const bool kept = i < count && match_keeps(&limits, t->forward, t->backward, i);
    uint32_t total;
    const uint32_t before = block_scan_exclusive(kept ? 1u : 0u, shared, &total);
    if (kept) {
      const match_pair pair = match_pair_of(i, &t->forward[i]);
      ((uint4 *)t->pairs)[at + before] =
          make_uint4(pair.first, pair.second, __float_as_uint(pair.distance), __float_as_uint(pair.next_distance));
    }
    at += total;
  }
  if (threadIdx.x == 0) *t->pair_count = at;
}

MATCH_MANY_KERNELS(LAUNCH_CHECK)
