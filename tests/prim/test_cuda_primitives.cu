/*
 * The CUDA primitives against host loops: 1, 31, 32, 33, 127 and 1024 items with uniform, one-bin and random keys.
 * A block of 1024 threads holds all items; those beyond the count vote nothing.
 */
#include "tests/support/test.h"

#include "cuda/runtime/device.h"
#include "cuda/prim/reductions.cuh"
#include "cuda/prim/histograms.cuh"

enum { ITEMS_MAX = 1024, KEYS = 37, STORED = 40, COPIES_MAX = 32, TILES = 1024 / 32, GROUP = 4 };
enum key_kind { KEYS_UNIFORM, KEYS_ONE_BIN, KEYS_RANDOM, KEY_KINDS };

struct items {
  int32_t count;
  int32_t key[ITEMS_MAX], vote[ITEMS_MAX];
};

struct results {
  uint32_t warp_sum[TILES];
  uint64_t warp_sum64[TILES];
  int32_t warp_min[TILES], warp_max[TILES];
  uint32_t group_sum[ITEMS_MAX];
  uint64_t group_or[ITEMS_MAX];
  int64_t group_max[ITEMS_MAX];
  uint64_t block_first;
  uint32_t block_sum;
  int32_t block_min;
  uint32_t warp_scan[ITEMS_MAX], block_scan[ITEMS_MAX], scan_total, before[TILES];
  uint64_t block_scan64[ITEMS_MAX], scan_total64;
  int32_t warp_hist[KEYS], block_hist[KEYS], copied_hist[3][KEYS];
};

static int64_t wide(int32_t vote) { return (int64_t)vote * 3000000019ll; }

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
__global__ void __launch_bounds__(ITEMS_MAX) primitives_kernel(const items *in, results *out) {
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

/* Votes between -1000000 and 1000000, reproducible. */
static void fill(items *in, int32_t count, key_kind kind) {
  uint32_t state = (uint32_t)(count * 3 + kind) * 747796405u + 1u;
  memset(in, 0, sizeof *in);
  in->count = count;
  for (int32_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    in->vote[i] = (int32_t)(state >> 8) % 2000001 - 1000000;
    state = state * 1664525u + 1013904223u;
    in->key[i] = kind == KEYS_UNIFORM ? i % KEYS : (kind == KEYS_ONE_BIN ? KEYS - 1 : (int32_t)((state >> 8) % KEYS));
  }
}

static void expect_warp(const items *in, int32_t warp, results *r) {
  const int32_t *v = in->vote + warp * WARP_LANES;
  uint32_t sum = 0;
  int32_t least = v[0], most = v[0];
  for (int32_t i = 0; i < WARP_LANES; i++) {
    r->warp_scan[warp * WARP_LANES + i] = sum;
    sum += (uint32_t)v[i];
    r->warp_sum64[warp] += (uint64_t)wide(v[i]);
    if (v[i] < least) least = v[i];
    if (v[i] > most) most = v[i];
  }
  r->warp_sum[warp] = sum;
  r->warp_min[warp] = least;
  r->warp_max[warp] = most;
}

/* Values that differ by group of lanes, at each lane. */
static void expect_groups(const items *in, results *r) {
  for (int32_t i = 0; i < ITEMS_MAX; i++) {
    const int32_t *v = in->vote + i / GROUP * GROUP;
    r->group_max[i] = wide(v[0]);
    for (int32_t j = 0; j < GROUP; j++) {
      r->group_sum[i] += (uint32_t)v[j];
      r->group_or[i] |= (uint64_t)wide(v[j]);
      if (wide(v[j]) > r->group_max[i]) r->group_max[i] = wide(v[j]);
    }
  }
}

static void expect(const items *in, results *r) {
  memset(r, 0, sizeof *r);
  r->block_min = INT32_MAX;
  expect_groups(in, r);
  uint32_t sum = 0;
  for (int32_t w = 0; w < TILES; w++) {
    expect_warp(in, w, r);
    r->before[w] = sum;
    sum += r->warp_sum[w];
    if (r->warp_min[w] < r->block_min) r->block_min = r->warp_min[w];
    r->block_first = r->block_first * 3u + (uint64_t)wide(in->vote[w * WARP_LANES]);
  }
  sum = 0;
  for (int32_t i = 0; i < ITEMS_MAX; i++) {
    r->block_scan[i] = sum;
    sum += (uint32_t)in->vote[i];
    r->block_scan64[i] = r->scan_total64;
    r->scan_total64 += (uint64_t)wide(in->vote[i]);
    if (i < in->count) r->warp_hist[in->key[i]] += in->vote[i];
  }
  r->block_sum = r->scan_total = sum;
  memcpy(r->block_hist, r->warp_hist, sizeof r->block_hist);
  for (int i = 0; i < 3; i++) memcpy(r->copied_hist[i], r->warp_hist, sizeof r->warp_hist);
}

static void run_on_device(const items *in, results *out) {
  void *d_in = nullptr, *d_out = nullptr;
  cuda_stream stream = nullptr;
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  assert_int_equal(device_alloc(&d_in, sizeof *in), STAGE_OK);
  assert_int_equal(device_alloc(&d_out, sizeof *out), STAGE_OK);
  assert_int_equal(device_copy_to(d_in, in, sizeof *in, stream), STAGE_OK);
  assert_int_equal(device_clear(d_out, sizeof *out, stream), STAGE_OK);
  primitives_kernel<<<1, ITEMS_MAX, 0, stream>>>((const items *)d_in, (results *)d_out);
  assert_int_equal(cudaGetLastError(), cudaSuccess);
  assert_int_equal(device_copy_from(out, d_out, sizeof *out, stream), STAGE_OK);
  assert_int_equal(device_stream_wait(stream), STAGE_OK);
  device_free(d_in);
  device_free(d_out);
  device_stream_destroy(stream);
}

static void check(const items *in) {
  static results expected, got;
  expect(in, &expected);
  run_on_device(in, &got);
  assert_memory_equal(got.warp_sum, expected.warp_sum, sizeof got.warp_sum);
  assert_memory_equal(got.warp_sum64, expected.warp_sum64, sizeof got.warp_sum64);
  assert_memory_equal(got.warp_min, expected.warp_min, sizeof got.warp_min);
  assert_memory_equal(got.warp_max, expected.warp_max, sizeof got.warp_max);
  assert_memory_equal(got.group_sum, expected.group_sum, sizeof got.group_sum);
  assert_memory_equal(got.group_or, expected.group_or, sizeof got.group_or);
  assert_memory_equal(got.group_max, expected.group_max, sizeof got.group_max);
  assert_int_equal(got.block_sum, expected.block_sum);
  assert_int_equal(got.block_min, expected.block_min);
  assert_true(got.block_first == expected.block_first);
  assert_memory_equal(got.warp_scan, expected.warp_scan, sizeof got.warp_scan);
  assert_memory_equal(got.block_scan, expected.block_scan, sizeof got.block_scan);
  assert_int_equal(got.scan_total, expected.scan_total);
  assert_memory_equal(got.block_scan64, expected.block_scan64, sizeof got.block_scan64);
  assert_true(got.scan_total64 == expected.scan_total64);
  assert_memory_equal(got.before, expected.before, sizeof got.before);
  assert_memory_equal(got.warp_hist, expected.warp_hist, sizeof got.warp_hist);
  assert_memory_equal(got.block_hist, expected.block_hist, sizeof got.block_hist);
  assert_memory_equal(got.copied_hist, expected.copied_hist, sizeof got.copied_hist);
}

TEST(primitives_agree) {
  char reason[DEVICE_NAME_BYTES];
  if (device_count(reason, sizeof reason) == 0) skip_because(NEEDS_GPU);
  static const int32_t counts[] = {1, 31, 32, 33, 127, 1024};
  static items in;
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    for (int kind = 0; kind < KEY_KINDS; kind++) {
      fill(&in, counts[i], (key_kind)kind);
      check(&in);
    }
}
