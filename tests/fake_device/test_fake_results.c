/*
 * Results in pinned memory that the caller keeps. They are borrowed without a copy, may be returned by any thread at
 * any time, and are copied if too much is borrowed. Also pictures in ordinary and in pinned memory.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/device/cuda_result_pool.h"
#include "pipeline/frame/in_flight.h"
#include "pipeline/include/hartsift_cuda.h"
#include "tests/support/extent.h"
#include "tests/support/fake_device/fake_device.h"

/* Pictures whose results are large enough to borrow, and a small one whose result is copied. */
static hs_image large, other, small;
static hs_features expected, other_expected, small_expected;

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  large = extraction_scene(330, 250, 4, NULL);
  other = extraction_scene(320, 300, 7, NULL);
  small = extraction_scene(97, 150, 7, NULL);
  expected = extraction_once(&o, &large);
  other_expected = extraction_once(&o, &other);
  small_expected = extraction_once(&o, &small);
  assert_true(expected.count > 900 && other_expected.count > 900 && small_expected.count < 800);
}

static hs_context *fake_context(int32_t in_flight) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  o.in_flight = in_flight;
  fake_reset(1);
  return extraction_context(&o);
}

FAKE_TEST(test_lists_outlive_frames) {
  hs_context *c = fake_context(0);
  scoped_features first = {0}, second = {0};
  assert_int_equal(hs_extract(c, &large, NULL, &first), HS_OK);
  assert_non_null(first.allocator);
  assert_int_equal(hs_extract(c, &other, NULL, &second), HS_OK);
  assert_int_equal(hs_cuda_extract(c, &small, NULL, NULL, &second), HS_OK);
  extraction_check_equal(&small_expected, &second, "few features");
  extraction_check_equal(&expected, &first, "kept over two frames");
  const int64_t alive = fake.alive;
  for (int i = 0; i < (extent_is_short() ? 8 : 20); i++) {
    assert_int_equal(hs_extract(c, i % 2 ? &large : &other, NULL, i % 3 ? &first : &second), HS_OK);
    extraction_check_equal(i % 2 ? &expected : &other_expected, i % 3 ? &first : &second, "one of two lists");
  }
  assert_true(fake.alive <= alive + 4); /* new blocks: two graphs, two lists and a frame */
  hs_destroy(c);
  assert_true(fake.alive > 0);
  extraction_check_equal(&other_expected, &second, "kept over the context's end");
}

FAKE_TEST(test_detection_and_floats) {
  hs_options o = extraction_options(HS_PROFILE_OPENCV);
  o.descriptor = HS_DESCRIPTOR_F32;
  scoped_features on_cpu = extraction_once(&o, &large), detected = {0}, found = {0};
  o.device = HS_DEVICE_CUDA;
  scoped_context *c = extraction_context(&o);
  assert_int_equal(hs_detect(c, &large, NULL, &detected), HS_OK);
  assert_int_equal(hs_extract(c, &large, NULL, &found), HS_OK);
  extraction_check_equal(&on_cpu, &found, "floats");
  assert_int_equal(detected.count, found.count);
  assert_null(detected.descriptors);
  assert_memory_equal(detected.keypoints, found.keypoints, sizeof *found.keypoints * found.count);
  /* the list is reused for smaller results: without descriptors, then with few features */
  assert_int_equal(hs_detect(c, &small, NULL, &found), HS_OK);
  assert_null(found.descriptors);
  assert_int_equal(hs_extract(c, &large, NULL, &found), HS_OK);
  extraction_check_equal(&on_cpu, &found, "floats again");
}

/* Results beyond the number of blocks are copied, and no more blocks are allocated. */
FAKE_TEST(test_too_much_is_copied) {
  enum { KEPT = RESULT_BLOCKS_BORROWED + 5 };
  hs_context *c = fake_context(0);
  hs_features kept[KEPT] = {{0}};
  int lent = 0;
  for (int i = 0; i < KEPT; i++) {
    assert_int_equal(hs_extract(c, i % 2 ? &large : &other, NULL, &kept[i]), HS_OK);
    lent += kept[i].allocator != NULL;
  }
  assert_int_equal(lent, RESULT_BLOCKS_BORROWED);
  for (int i = 0; i < KEPT; i++) extraction_check_equal(i % 2 ? &expected : &other_expected, &kept[i], "one of many");
  hs_features_free(&kept[3]);
  assert_int_equal(hs_extract(c, &large, NULL, &kept[KEPT - 1]), HS_OK);
  assert_non_null(kept[KEPT - 1].allocator);
  hs_destroy(c);
  for (int i = 0; i < KEPT; i++) hs_features_free(&kept[i]);
}

static void *free_list(void *features) {
  hs_features_free(features);
  return NULL;
}

/* Images are extracted alone and in groups, while other threads free lists. */
FAKE_TEST(test_in_flight) {
  enum { IMAGES = 40, KEPT = 12 };
  const int images = extent_is_short() ? IMAGES / 2 : IMAGES;
  hs_context *c = fake_context(8);
  hs_features kept[KEPT] = {{0}};
  pthread_t threads[IMAGES];
  for (int done = 0, submitted = 0; done < images;) {
    const hs_image *image = submitted % 3 == 0 ? &large : submitted % 3 == 1 ? &other : &small;
    if (submitted < images && hs_submit(c, image, NULL) == HS_OK) {
      submitted++;
      continue;
    }
    hs_features *f = &kept[done % KEPT];
    if (done >= KEPT) {
      assert_int_equal(pthread_create(&threads[done], NULL, free_list, f), 0);
      assert_int_equal(pthread_join(threads[done], NULL), 0);
    }
    assert_int_equal(hs_wait(c, f), HS_OK);
    done++;
    for (int i = done > KEPT ? done - KEPT : 0; i < done; i++)
      extraction_check_equal(i % 3 == 0   ? &expected
                             : i % 3 == 1 ? &other_expected
                                          : &small_expected,
                             &kept[i % KEPT], "kept while others are in flight");
  }
  hs_destroy(c);
  for (int i = 0; i < KEPT; i++) hs_features_free(&kept[i]);
}

/* Runs images in flight, each of which succeeds or is out of memory; returns the number of successes. */
static int run_in_flight(hs_context *c, int images) {
  scoped_features f = {0};
  int submitted = 0, done = 0;
  for (int i = 0; i < images; i++) submitted += hs_submit(c, &small, NULL) == HS_OK;
  for (int i = 0; i < submitted; i++) {
    uint64_t image;
    const bool in_any_order = c->options.workload == HS_WORKLOAD_THROUGHPUT;
    const hs_status st = in_any_order ? hs_wait_any(c, &f, &image) : hs_wait(c, &f);
    assert_true(st == HS_OK || st == HS_ERR_MEMORY);
    if (st == HS_OK) extraction_check_equal(&small_expected, &f, "next to workers that failed");
    done += st == HS_OK;
  }
  return done;
}

/* A failing call costs a worker, or the images of a worker. Workers start one by one, and the running ones do the
 * work. */
TEST(test_workers_that_cannot_start) {
  enum { WORKERS = 5, STEP = 29 };
  bool all_called = false;
  for (uint64_t at = 1; !all_called; at += STEP) {
    hs_context *c = fake_context(WORKERS);
    fake.fail_at = fake.calls + at;
    const int first = run_in_flight(c, WORKERS), second = run_in_flight(c, WORKERS);
    assert_true(first == WORKERS || second == WORKERS); /* only one call fails */
    hs_destroy(c);
    all_called = fake.calls < fake.fail_at;
    assert_int_equal(fake.alive, 0);
    assert_true(at < 5000);
  }
}

/* With HS_WORKLOAD_THROUGHPUT there are more workers. Those beyond GPU_WORKERS leave large images to the others. */
FAKE_TEST(test_more_workers) {
  enum { WORKERS = 12, SIDE = 2048 };
  hs_options on_gpu = extraction_options(HS_PROFILE_LOWE);
  on_gpu.device = HS_DEVICE_CUDA;
  on_gpu.in_flight = WORKERS;
  on_gpu.workload = HS_WORKLOAD_THROUGHPUT;
  fake_reset(1);
  scoped_context *c = extraction_context(&on_gpu);
  assert_int_equal(run_in_flight(c, WORKERS), WORKERS);
  assert_int_equal(c->in_flight->worker_max, WORKERS);
  hs_destroy(c);
  assert_int_equal(fake.alive, 0);
  on_gpu.in_flight = 0;
  fake_reset(1);
  fake.gpus[0].memory_bytes = (size_t)1 << 40;
  c = extraction_context(&on_gpu);
  assert_true(c->engine->frames_in_memory(c, SIDE + 1, SIDE) > WORKERS);
  assert_int_equal(in_flight_workers_for(c, SIDE, SIDE), c->engine->frames_in_memory(c, SIDE, SIDE));
  assert_int_equal(in_flight_workers_for(c, SIDE + 1, SIDE), GPU_WORKERS);
}

/* Pictures in flight have more features than the results' initial capacity, so frames are repeated until the number is
 * known. Pictures of another size do not change the estimate. */
FAKE_TEST(test_more_than_expected) {
  const int images = extent_is_short() ? 8 : 24;
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image dense = extraction_scene(700, 500, 3, NULL);
  scoped_features all = extraction_once(&o, &dense), found = {0};
  hs_statistics s = {.struct_size = sizeof s};
  uint64_t repeated = 0;
  /* the initial capacity for 1.4 million samples, before any picture was extracted */
  assert_true(all.count > 1024 + 1400);
  scoped_context *c = fake_context(2);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < images; i++) {
      assert_int_equal(hs_submit(c, i % 2 ? &small : &dense, NULL), HS_OK);
      assert_int_equal(hs_wait(c, &found), HS_OK);
      extraction_check_equal(i % 2 ? &small_expected : &all, &found, "more than there was room for");
    }
    assert_int_equal(hs_get_statistics(c, &s), HS_OK);
    assert_true(s.regrown_frames > 0 && (round == 0 || s.regrown_frames == repeated));
    repeated = s.regrown_frames;
  }
}

FAKE_TEST(test_callers_allocator) {
  counted_allocator counted = {0};
  const hs_allocator allocator = counted_allocator_make(&counted);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  o.allocator = &allocator;
  scoped_features f = extraction_once(&o, &large);
  assert_ptr_equal(f.allocator, &allocator);
  extraction_check_equal(&expected, &f, "in the caller's memory");
}

/* Lists that hold borrowed memory are filled by calls that do not lend memory. */
FAKE_TEST(test_lent_lists_filled_by_others) {
  scoped_context *c = fake_context(0);
  scoped_context *cpu = extraction_context_of(HS_PROFILE_LOWE);
  scoped_features f = {0};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hs_extract(c, &large, NULL, &f), HS_OK);
    assert_int_equal(hs_extract(cpu, i == 1 ? &other : &small, NULL, &f), HS_OK);
    extraction_check_equal(i == 1 ? &other_expected : &small_expected, &f, "by the CPU");
    assert_int_equal(hs_extract(c, &large, NULL, &f), HS_OK);
    assert_int_equal(hs_describe(c, &large, expected.keypoints, expected.count, &f, NULL), HS_OK);
    extraction_check_equal(&expected, &f, "described");
  }
}

/* A list that outlives its context gets affine frames in ordinary memory next to the borrowed arrays; then the list is
 * freed. */
TEST(test_lent_list_gets_frames) {
  hs_context *c = fake_context(0);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.affine = 1;
  hs_features f = {0}, alone = extraction_once(&o, &small);
  scoped_context *cpu = extraction_context(&o);
  assert_int_equal(hs_extract(c, &large, NULL, &f), HS_OK);
  assert_non_null(f.allocator);
  hs_destroy(c);
  assert_true(f.capacity >= alone.count && !f.frames);
  assert_int_equal(hs_extract(cpu, &small, NULL, &f), HS_OK);
  assert_non_null(f.frames);
  extraction_check_equal(&alone, &f, "by the CPU, with shapes");
  hs_features_free(&f);
  assert_int_equal(fake.alive, 0);
  hs_features_free(&alone);
}

/* A forked child reads memory that its parent borrowed, and does not change the parent's pool. */
FAKE_TEST(test_fork) {
  scoped_context *c = fake_context(0);
  scoped_features f = {0};
  assert_int_equal(hs_extract(c, &large, NULL, &f), HS_OK);
  const pid_t child = fork();
  if (child == 0) {
    const bool same =
        f.count == expected.count && memcmp(f.keypoints, expected.keypoints, f.count * sizeof *f.keypoints) == 0;
    hs_features_free(&f);
    hs_destroy(c);
    _exit(same && !f.keypoints ? 0 : 1);
  }
  int how = -1;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  assert_int_equal(hs_extract(c, &other, NULL, &f), HS_OK);
  extraction_check_equal(&other_expected, &f, "after the fork");
}

/* Pinned pictures are copied directly to the device, others through the context's pinned memory. Covers masks and row
 * padding. */
TEST(test_where_pictures_lie) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_image wide = extraction_scene(1300, 800, 3, NULL), part = wide, mask = extraction_scene(1204, 790, 5, NULL);
  part.data = (const uint8_t *)wide.data + 5 * 1300 + 40;
  part.width = 1204;
  part.height = 790;
  part.stride_bytes = 1300;
  for (int i = 0; i < 1204 * 790; i++) ((uint8_t *)(uintptr_t)mask.data)[i] &= 64;
  o.max_features = 400;
  if (extent_is_short()) o.first_octave = 0; /* a quarter of the samples, from the same pictures */
  hs_features plain = extraction_once(&o, &part), masked = {0}, found = {0};
  hs_context *cpu = extraction_context(&o);
  assert_int_equal(hs_extract(cpu, &part, &mask, &masked), HS_OK);
  hs_destroy(cpu);
  for (int pinned = 0; pinned < 2; pinned++) {
    fake_reset(1);
    fake.pinned = pinned;
    o.device = HS_DEVICE_CUDA;
    hs_context *c = extraction_context(&o);
    assert_int_equal(hs_extract(c, &part, NULL, &found), HS_OK);
    extraction_check_equal(&plain, &found, "a part of a picture");
    assert_int_equal(hs_extract(c, &part, &mask, &found), HS_OK);
    extraction_check_equal(&masked, &found, "with a mask");
    hs_destroy(c);
    hs_features_free(&found);
    assert_int_equal(fake.alive, 0);
  }
  hs_features_free(&plain);
  hs_features_free(&masked);
  hs_image_free(&wide);
  hs_image_free(&mask);
}
