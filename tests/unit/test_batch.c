/*
 * The engine of batches and what it is made of: queue, recycled buffers; every failing allocation; stopping.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/cli/batch/batch_engine.h"
#include "pipeline/cli/batch/bounded_queue.h"
#include "pipeline/cli/batch/buffer_pool.h"
#include "pipeline/cli/batch/device_share.h"
#include "pipeline/formats/common/content_digest.h"
#include "tests/support/counted_allocator.h"

enum { IMAGES = 24, NAME_BYTES = 64 };

/* ---- queue */

static void test_queue_keeps_the_order(void **state) {
  (void)state;
  int items[5];
  bounded_queue queue;
  assert_true(bounded_queue_make(&queue, 3));
  assert_null(bounded_queue_try_pop(&queue));
  for (int round = 0; round < 4; round++) { /* goes round its ring */
    bounded_queue_push(&queue, &items[0]);
    bounded_queue_push(&queue, &items[1]);
    assert_ptr_equal(bounded_queue_pop(&queue), &items[0]);
    bounded_queue_push(&queue, &items[2]);
    bounded_queue_push(&queue, &items[3]);
    assert_ptr_equal(bounded_queue_try_pop(&queue), &items[1]);
    assert_ptr_equal(bounded_queue_pop(&queue), &items[2]);
    assert_ptr_equal(bounded_queue_pop(&queue), &items[3]);
  }
  bounded_queue_push(&queue, &items[4]);
  bounded_queue_close(&queue);
  assert_ptr_equal(bounded_queue_pop(&queue), &items[4]);
  assert_null(bounded_queue_pop(&queue));
  bounded_queue_free(&queue);
  bounded_queue_free(&queue);
}

/* ---- devices */

/* A GPU that does 1000 images of one pixel a second, and a CPU that does 10. */
static void test_slow_device_leaves_images(void **state) {
  (void)state;
  device_share share = {.own = 10, .others = 1000, .taken = 1, .waiting = 5};
  assert_true(device_share_is_slow(&share));
  assert_true(device_share_leaves(&share)); /* 0.1 s against 5 ms */
  share.waiting = 200;
  assert_false(device_share_leaves(&share)); /* 0.1 s against 0.2 s */
  share.taken = 3;                           /* with two in flight */
  assert_true(device_share_leaves(&share));
  const device_share fast = {.own = 1000, .others = 10, .taken = 100, .waiting = 1};
  assert_false(device_share_is_slow(&fast));
  assert_false(device_share_leaves(&fast));
  const device_share alone = {.own = 10, .others = 0, .taken = 1, .waiting = 1}; /* the others are lost */
  assert_false(device_share_leaves(&alone));
}

static void test_speed_counts_the_time_at_work(void **state) {
  (void)state;
  device_speed speed = {.guess = 7};
  assert_true(device_speed_now(&speed, 1) == 7);
  device_speed_begin(&speed, 1);
  assert_true(device_speed_now(&speed, 2) == 7); /* nothing is finished */
  speed.pixels = 100;
  assert_true(device_speed_now(&speed, 3) == 50);
  device_speed_end(&speed, 3);
  assert_true(device_speed_now(&speed, 100) == 50);
  device_speed_begin(&speed, 100);
  assert_true(device_speed_now(&speed, 102) == 25);
}

/* ---- buffers */

static void test_pool_uses_buffers_again(void **state) {
  (void)state;
  counted_allocator counter = {0};
  const hs_allocator source = counted_allocator_make(&counter);
  buffer_pool pool;
  assert_true(buffer_pool_make(&pool, &source));
  const hs_allocator allocator = buffer_pool_allocator(&pool);
  void *first = allocator.alloc(100000, allocator.user);
  assert_non_null(first);
  assert_int_equal((uintptr_t)first % 64, 0);
  memset(first, 1, 100000);
  allocator.release(first, allocator.user);
  assert_ptr_equal(allocator.alloc(90000, allocator.user), first);
  allocator.release(first, allocator.user);
  /* Much smaller: that buffer would be wasted on it; and there is no room for both. */
  void *small = allocator.alloc(100, allocator.user);
  assert_non_null(small);
  assert_true(buffer_pool_counts(&pool).used_bytes < 10000);
  allocator.release(small, allocator.user);
  allocator.release(NULL, allocator.user);
  assert_int_equal(buffer_pool_counts(&pool).used_bytes, 0);
  buffer_pool_free(&pool);
  assert_int_equal(counter.alive, 0);
  buffer_pool_free(&pool);
}

/* Whatever sizes come in whatever order: what is held never exceeds the most that was in use. */
static void test_pool_stays_bounded(void **state) {
  (void)state;
  enum { LIVE = 12, STEPS = 20000 };
  void *live[LIVE] = {NULL};
  uint32_t random = 1;
  buffer_pool pool;
  assert_true(buffer_pool_make(&pool, NULL));
  const hs_allocator allocator = buffer_pool_allocator(&pool);
  for (int step = 0; step < STEPS; step++) {
    random = random * 1664525U + 1013904223U;
    const size_t slot = (random >> 8) % LIVE;
    allocator.release(live[slot], allocator.user);
    live[slot] = allocator.alloc((size_t)(random >> 12) % 300000, allocator.user);
    assert_non_null(live[slot]);
    const buffer_pool_numbers numbers = buffer_pool_counts(&pool);
    assert_true(numbers.used_bytes + numbers.idle_bytes <= numbers.most_bytes);
    assert_true(numbers.most_bytes < (size_t)LIVE * 4 * 300000);
  }
  for (size_t i = 0; i < LIVE; i++) allocator.release(live[i], allocator.user);
  assert_true(buffer_pool_counts(&pool).made_count < STEPS / 2);
  buffer_pool_free(&pool);
}

static void test_pool_without_memory(void **state) {
  (void)state;
  counted_allocator counter = {.fail_at = 2};
  const hs_allocator source = counted_allocator_make(&counter);
  buffer_pool pool;
  assert_true(buffer_pool_make(&pool, &source));
  const hs_allocator allocator = buffer_pool_allocator(&pool);
  void *one = allocator.alloc(1000, allocator.user);
  assert_null(allocator.alloc(1000, allocator.user));
  assert_null(allocator.alloc(SIZE_MAX, allocator.user));
  void *two = allocator.alloc(0, allocator.user);
  assert_non_null(two);
  allocator.release(one, allocator.user);
  allocator.release(two, allocator.user);
  buffer_pool_free(&pool);
  assert_int_equal(counter.alive, 0);
}

/* ---- the engine */

typedef struct tally {
  char names[IMAGES][NAME_BYTES];
  atomic_int calls[IMAGES];
  hs_status status[IMAGES];
  uint64_t digest[IMAGES];
  size_t unwanted; /* index that is not wanted; IMAGES: all are */
  size_t stop_at;  /* index whose end stops the batch; IMAGES: none */
  batch_run *run;
  atomic_int wrong, ended;
  int order[IMAGES]; /* when `done` was called: 1, 2, ... */
} tally;

static void tally_init(tally *t) {
  memset(t, 0, sizeof *t);
  t->unwanted = t->stop_at = IMAGES;
  for (int i = 0; i < IMAGES; i++) snprintf(t->names[i], NAME_BYTES, "@scene:%dx%d:%d", 30 + i, 50 - i, i + 1);
}

static const char *tally_path(void *user, size_t index) { return ((tally *)user)->names[index]; }

static bool tally_wanted(void *user, size_t index) { return index != ((tally *)user)->unwanted; }

static void tally_done(void *user, int32_t writer, const batch_result *result) {
  tally *t = user;
  const bool is_whole = result->status == HS_OK ? result->features != NULL && result->device >= 0 && result->width > 0
                                                : !result->features && result->message[0] != '\0';
  if (!is_whole || writer < 0 || result->index >= IMAGES || atomic_fetch_add(&t->calls[result->index], 1) != 0) {
    atomic_fetch_add(&t->wrong, 1);
    return;
  }
  t->order[result->index] = atomic_fetch_add(&t->ended, 1) + 1;
  t->status[result->index] = result->status;
  t->digest[result->index] = result->features ? digest_features(result->features) : 0;
  if (result->index == t->stop_at) batch_stop(t->run);
}

static batch_work tally_work(tally *t, const hs_options *devices, int32_t device_count) {
  return (batch_work){.count = IMAGES,
                      .path = tally_path,
                      .wanted = tally_wanted,
                      .done = tally_done,
                      .user = t,
                      .devices = devices,
                      .device_count = device_count,
                      .readers = 2,
                      .writers = 2};
}

static void cpu_options(hs_options *options, int32_t threads) {
  assert_int_equal(hs_options_init(options, HS_PROFILE_LOWE), HS_OK);
  options->device = HS_DEVICE_CPU;
  options->threads = threads;
}

/* Runs to the end. */
static void tally_run(tally *t, const batch_work *work) {
  char message[256];
  assert_int_equal(batch_make(&t->run, work, message, sizeof message), HS_OK);
  assert_int_equal(batch_start(t->run), HS_OK);
  while (!batch_wait(t->run, 50)) {}
  const batch_numbers numbers = batch_get_numbers(t->run);
  assert_true(numbers.read_cpu_s >= 0 && numbers.pixel_bytes_most > 0);
  batch_free(t->run);
  assert_int_equal(atomic_load(&t->wrong), 0);
}

/* Digests by plain calls, one after another. */
static void expected_digests(uint64_t digests[IMAGES]) {
  tally t;
  hs_options options;
  hs_context *context = NULL;
  hs_features features = {0};
  tally_init(&t);
  cpu_options(&options, 1);
  assert_int_equal(hs_create(&context, &options), HS_OK);
  for (int i = 0; i < IMAGES; i++) {
    hs_image image;
    assert_int_equal(hs_load_image(t.names[i], NULL, &image), HS_OK);
    assert_int_equal(hs_extract(context, &image, NULL, &features), HS_OK);
    digests[i] = digest_features(&features);
    hs_image_free(&image);
  }
  hs_features_free(&features);
  hs_destroy(context);
}

static void test_results_are_those_of_single_calls(void **state) {
  (void)state;
  uint64_t expected[IMAGES];
  hs_options devices[3];
  expected_digests(expected);
  for (int32_t count = 1; count <= 3; count++) {
    tally t;
    tally_init(&t);
    for (int32_t i = 0; i < count; i++) {
      cpu_options(&devices[i], i + 1);
      devices[i].in_flight = i; /* 0: as the library has it */
    }
    batch_work work = tally_work(&t, devices, count);
    work.readers = work.writers = count == 3 ? 0 : count;
    tally_run(&t, &work);
    for (int i = 0; i < IMAGES; i++) {
      assert_int_equal(atomic_load(&t.calls[i]), 1);
      assert_int_equal(t.status[i], HS_OK);
      assert_true(t.digest[i] == expected[i]);
    }
  }
}

/* A mask of two by two pixels, whatever the image. */
static hs_status small_mask(void *user, size_t index, const hs_image *image, hs_image *mask, char *message,
                            size_t message_bytes) {
  static const uint8_t black[4];
  (void)user;
  (void)index;
  (void)image;
  (void)message;
  (void)message_bytes;
  *mask = (hs_image){.data = black, .width = 2, .height = 2};
  return HS_OK;
}

static void test_failed_and_unwanted_images(void **state) {
  (void)state;
  uint64_t expected[IMAGES];
  hs_options device;
  tally t;
  expected_digests(expected);
  tally_init(&t);
  cpu_options(&device, 1);
  snprintf(t.names[3], NAME_BYTES, "/absent/image.png");
  snprintf(t.names[IMAGES - 1], NAME_BYTES, "@scene:bad");
  t.unwanted = 5;
  batch_work work = tally_work(&t, &device, 1);
  tally_run(&t, &work);
  for (int i = 0; i < IMAGES; i++) {
    const hs_status wanted = i == 3 ? HS_ERR_IO : i == IMAGES - 1 ? HS_ERR_ARGUMENT : HS_OK;
    assert_int_equal(atomic_load(&t.calls[i]), i == 5 ? 0 : 1);
    assert_int_equal(t.status[i], wanted);
    assert_true(wanted != HS_OK || i == 5 || t.digest[i] == expected[i]);
  }
  /* A mask of another size is refused by each submission. */
  tally_init(&t);
  work = tally_work(&t, &device, 1);
  work.mask = small_mask;
  tally_run(&t, &work);
  for (int i = 0; i < IMAGES; i++) assert_int_equal(t.status[i], HS_ERR_ARGUMENT);
}

/* In order whatever the devices: an image that is late, one that fails, one that is not wanted. */
static void test_results_in_order(void **state) {
  (void)state;
  hs_options devices[2];
  tally t;
  tally_init(&t);
  cpu_options(&devices[0], 1);
  cpu_options(&devices[1], 2);
  devices[0].in_flight = 1;
  snprintf(t.names[0], NAME_BYTES, "@scene:400x300:1");
  snprintf(t.names[7], NAME_BYTES, "/absent/image.png");
  t.unwanted = 5;
  batch_work work = tally_work(&t, devices, 2);
  work.in_order = true;
  work.readers = 3;
  tally_run(&t, &work);
  for (int i = 0; i < IMAGES; i++) {
    assert_int_equal(atomic_load(&t.calls[i]), i == 5 ? 0 : 1);
    assert_int_equal(t.order[i], i == 5 ? 0 : i < 5 ? i + 1 : i);
  }
  for (size_t stop_at = 0; stop_at < IMAGES; stop_at += 5) {
    tally_init(&t);
    t.stop_at = stop_at;
    work = tally_work(&t, devices, 2);
    work.in_order = true;
    tally_run(&t, &work);
    bool ended = false; /* what was done is a beginning of the list */
    for (int i = 0; i < IMAGES; i++) {
      const bool done = atomic_load(&t.calls[i]) != 0;
      assert_false(done && ended);
      ended = !done;
    }
  }
}

static void test_no_images(void **state) {
  (void)state;
  hs_options device;
  tally t;
  char message[256];
  tally_init(&t);
  cpu_options(&device, 1);
  batch_work work = tally_work(&t, &device, 1);
  work.count = 0;
  assert_int_equal(batch_make(&t.run, &work, message, sizeof message), HS_OK);
  assert_int_equal(batch_start(t.run), HS_OK);
  assert_true(batch_wait(t.run, 60000));
  batch_free(t.run);
  batch_free(NULL);
  /* Made and given up. */
  assert_int_equal(batch_make(&t.run, &work, message, sizeof message), HS_OK);
  batch_free(t.run);
}

static void test_stopping(void **state) {
  (void)state;
  for (size_t stop_at = 0; stop_at < IMAGES; stop_at += 7) {
    hs_options device;
    tally t;
    tally_init(&t);
    cpu_options(&device, 1);
    t.stop_at = stop_at;
    const batch_work work = tally_work(&t, &device, 1);
    tally_run(&t, &work);
    assert_int_equal(atomic_load(&t.calls[stop_at]), 1);
  }
  /* Freed in the middle. */
  hs_options device;
  tally t;
  char message[256];
  tally_init(&t);
  cpu_options(&device, 2);
  const batch_work work = tally_work(&t, &device, 1);
  assert_int_equal(batch_make(&t.run, &work, message, sizeof message), HS_OK);
  assert_int_equal(batch_start(t.run), HS_OK);
  batch_free(t.run);
  assert_int_equal(atomic_load(&t.wrong), 0);
}

static void test_contexts_that_cannot_be_made(void **state) {
  (void)state;
  hs_options devices[2];
  tally t;
  char message[256] = "";
  tally_init(&t);
  cpu_options(&devices[0], 1);
  cpu_options(&devices[1], 1);
  devices[1].scales = 99;
  const batch_work work = tally_work(&t, devices, 2);
  assert_int_equal(batch_make(&t.run, &work, message, sizeof message), HS_ERR_OPTION);
  assert_null(t.run);
  assert_non_null(strstr(message, "scales"));
}

/* Each allocation of the engine, of pixels and of decoders fails once: the batch cannot be made, or an image fails and
   the others do not. */
static void test_every_failing_allocation(void **state) {
  (void)state;
  uint64_t expected[IMAGES];
  bool failed = true;
  expected_digests(expected);
  for (size_t fail_at = 1; failed && fail_at < 1000; fail_at++) {
    counted_allocator counter = {.fail_at = fail_at};
    const hs_allocator allocator = counted_allocator_make(&counter);
    hs_options device;
    tally t;
    char message[256] = "";
    int failures = 0;
    tally_init(&t);
    cpu_options(&device, 1);
    batch_work work = tally_work(&t, &device, 1);
    work.allocator = &allocator;
    work.count = 6;
    hs_status status = batch_make(&t.run, &work, message, sizeof message);
    if (status == HS_OK) {
      assert_int_equal(batch_start(t.run), HS_OK);
      while (!batch_wait(t.run, 50)) {}
      batch_free(t.run);
      for (int i = 0; i < 6; i++) {
        assert_int_equal(atomic_load(&t.calls[i]), 1);
        failures += t.status[i] != HS_OK;
        assert_true(t.status[i] == HS_ERR_MEMORY || t.digest[i] == expected[i]);
      }
      assert_in_range(failures, 0, 1);
    } else {
      assert_int_equal(status, HS_ERR_MEMORY);
      assert_null(t.run);
      assert_string_not_equal(message, "");
    }
    assert_int_equal(counter.alive, 0);
    failed = counter.made >= fail_at;
  }
  assert_false(failed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_slow_device_leaves_images),
      cmocka_unit_test(test_speed_counts_the_time_at_work),
      cmocka_unit_test(test_queue_keeps_the_order),
      cmocka_unit_test(test_pool_uses_buffers_again),
      cmocka_unit_test(test_pool_stays_bounded),
      cmocka_unit_test(test_pool_without_memory),
      cmocka_unit_test(test_results_are_those_of_single_calls),
      cmocka_unit_test(test_failed_and_unwanted_images),
      cmocka_unit_test(test_results_in_order),
      cmocka_unit_test(test_no_images),
      cmocka_unit_test(test_stopping),
      cmocka_unit_test(test_contexts_that_cannot_be_made),
      cmocka_unit_test(test_every_failing_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
