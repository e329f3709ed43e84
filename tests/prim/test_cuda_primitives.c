/*
 * The CUDA primitives against host loops: 1, 31, 32, 33, 127 and 1024 items with uniform, one-bin and random keys.
 * A block of 1024 threads holds all items; those beyond the count vote nothing. Skipped without a device.
 */
#include "tests/support/test.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "tests/prim/primitives_kernel.h"

LAUNCH_MODULE(primitives_kernel)
PRIMITIVES_KERNELS(LAUNCH_KERNEL)

typedef enum key_kind { KEYS_UNIFORM, KEYS_ONE_BIN, KEYS_RANDOM, KEY_KINDS } key_kind;

static int64_t wide(int32_t vote) { return (int64_t)vote * 3000000019ll; }

/* Votes between -1000000 and 1000000, reproducible. */
static void fill(items *in, int32_t count, key_kind kind) {
  uint32_t state = ((uint32_t)count * 3u + (uint32_t)kind) * 747796405u + 1u;
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
  void *d_in = NULL, *d_out = NULL;
  cuda_stream stream = NULL;
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  assert_int_equal(device_alloc(&d_in, sizeof *in), STAGE_OK);
  assert_int_equal(device_alloc(&d_out, sizeof *out), STAGE_OK);
  assert_int_equal(device_copy_to(d_in, in, sizeof *in, stream), STAGE_OK);
  assert_int_equal(device_clear(d_out, sizeof *out, stream), STAGE_OK);
  const launch_shape shape = {launch_1d(1), launch_1d(ITEMS_MAX), 0, stream};
  assert_int_equal(launch_every_primitive_kernel(shape, d_in, d_out), STAGE_OK);
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

#else

SKIPPED_PROGRAM(NEEDS_GPU)

#endif
