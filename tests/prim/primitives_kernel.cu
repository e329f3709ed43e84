/* Runs every CUDA primitive on the items of test_cuda_primitives.c. */
#include "tests/prim/primitives_kernel.h"

#include "cuda/prim/histograms.cuh"
#include "cuda/prim/reductions.cuh"

/* An operation that depends on order: values of the warps combined in sequence. */
static __device__ void join_wide(uint64_t &sum, const uint64_t &next) { sum = sum * 3u + next; }

/* The block's histogram in COPIES copies, folded. */
template <int COPIES> static __device__ void copied_hist(uint32_t *s_bins, int32_t key, int32_t vote, int32_t *folded) {
  shared_hist_clear<STORED * COPIES, ITEMS_MAX>(s_bins, threadIdx.x);
  __syncthreads();
  const uint32_t copy = shared_hist_copy<COPIES>(s_bins, threadIdx.x % WARP_LANES);
  shared_hist_add<COPIES>(copy, (uint32_t)key, vote);
  __syncthreads();
  if (threadIdx.x < KEYS) folded[threadIdx.x] = (int32_t)shared_hist_fold<COPIES>(s_bins, threadIdx.x);
  __syncthreads(); /* the bins are read */
}

/*
 * Does      every primitive on the items, one a thread. Launch: 1 block of 1024 threads. Shared: 10.5 KiB.
 * Reads     items. Writes results (histograms zero before). Barriers: of the primitives. Order: repeatable.
 */
extern "C" __global__ void __launch_bounds__(ITEMS_MAX) every_primitive_kernel(const items *in, results *out) {
  __shared__ uint32_t s_words[WARP_LANES];
  __shared__ uint64_t s_wide[WARP_LANES];
  __shared__ __align__(16) uint32_t s_bins[STORED * COPIES_MAX];
  __shared__ int32_t s_hist[TILES][KEYS];
  const int32_t i = (int32_t)threadIdx.x, lane = i % WARP_LANES, warp = i / WARP_LANES;
  const bool valid = i < in->count;
  const int32_t vote = valid ? in->vote[i] : 0, key = valid ? in->key[i] : 0;
  const int32_t wide_key = key * 7919 - 100000; /* grouping works for any keys */
  out->warp_sum[warp] = warp_reduce_sum((uint32_t)vote);
  out->warp_sum64[warp] = warp_reduce_sum_u64((uint64_t)((int64_t)vote * 3000000019ll));
  out->warp_min[warp] = warp_reduce_min(vote);
  out->warp_max[warp] = warp_reduce_max(vote);
  out->group_sum[i] = lanes_reduce_sum<GROUP>((uint32_t)vote);
  out->group_or[i] = lanes_reduce_or_u64<GROUP>((uint64_t)((int64_t)vote * 3000000019ll));
  out->group_max[i] = lanes_reduce_max_i64<GROUP>((int64_t)vote * 3000000019ll);
  out->block_sum = block_reduce_sum((uint32_t)vote, s_words);
  out->block_min = block_reduce_min(vote, (int32_t *)s_words);
  uint64_t first = (uint64_t)((int64_t)vote * 3000000019ll);
  block_reduce_on_first<TILES, uint64_t, join_wide>(first, s_wide);
  if (i == 0) out->block_first = first;
  out->warp_scan[i] = warp_scan_exclusive((uint32_t)vote);
  uint32_t total;
  out->block_scan[i] = block_scan_exclusive((uint32_t)vote, s_words, &total);
  out->scan_total = total;
  uint64_t wide_total;
  out->block_scan64[i] = block_scan_exclusive((uint64_t)((int64_t)vote * 3000000019ll), s_wide, &wide_total);
  out->scan_total64 = wide_total;
  for (uint32_t t = 0; t < TILES; t++) {
    const uint32_t before = compact_before(out->warp_sum, t, s_words); /* written by this block before a barrier */
    if (i == 0) out->before[t] = before;
  }
  for (int32_t k = lane; k < KEYS; k += WARP_LANES) s_hist[warp][k] = 0;
  warp_hist_add(s_hist[warp], key, vote);
  __syncwarp();
  for (int32_t k = lane; k < KEYS; k += WARP_LANES) atomicAdd(&out->warp_hist[k], s_hist[warp][k]);
  if (warp_hist_group(wide_key) != warp_hist_group(key)) atomicAdd(&out->warp_hist[0], 1 << 30);
  copied_hist<4>(s_bins, key, vote, out->copied_hist[0]);
  copied_hist<8>(s_bins, key, vote, out->copied_hist[1]);
  copied_hist<32>(s_bins, key, vote, out->copied_hist[2]);
  shared_hist_clear<STORED, ITEMS_MAX>(s_bins, threadIdx.x);
  __syncthreads();
  shared_hist_add<1>(shared_hist_copy<1>(s_bins, 0), (uint32_t)key, vote);
  __syncthreads();
  shared_hist_flush<KEYS, ITEMS_MAX>(s_bins, (uint32_t *)out->block_hist, threadIdx.x);
}

PRIMITIVES_KERNELS(LAUNCH_CHECK)
