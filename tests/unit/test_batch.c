/*
 * The batch engine and its parts: queue, recycled buffers, every failing allocation, cancellation.
 */
#define _GNU_SOURCE /* pthread_setattr_default_np */
#include <inttypes.h>
#include <stdatomic.h>

#include "tests/support/test.h"

#include "pipeline/batch/batch_run.h"
#include "pipeline/formats/common/content_digest.h"

enum { IMAGES = 24, NAME_BYTES = 64 };

/* ---- queue */

TEST(test_queue_keeps_the_order) {
  int items[5];
  bounded_queue queue;
  assert_true(bounded_queue_make(&queue, 3));
  assert_null(bounded_queue_try_pop(&queue));
  for (int round = 0; round < 4; round++) { /* the queue wraps around its ring */
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

/* The GPU has a rate of 1000 one-pixel images per second, and the CPU of 10. */
TEST(test_slow_device_leaves_images) {
  device_share share = {.own = 10, .others = 1000, .taken = 1, .waiting = 5};
  assert_true(device_share_is_slow(&share));
  assert_true(device_share_leaves(&share)); /* the CPU needs 0.1 s, the GPU 5 ms for all images */
  share.waiting = 200;
  assert_false(device_share_leaves(&share)); /* the CPU needs 0.1 s, the GPU 0.2 s */
  share.taken = 3;                           /* with two more images the CPU needs 0.3 s */
  assert_true(device_share_leaves(&share));
  const device_share fast = {.own = 1000, .others = 10, .taken = 100, .waiting = 1};
  assert_false(device_share_is_slow(&fast));
  assert_false(device_share_leaves(&fast));
  const device_share alone = {.own = 10, .others = 0, .taken = 1, .waiting = 1}; /* the other devices are lost */
  assert_false(device_share_leaves(&alone));
}

TEST(test_speed_counts_the_time_at_work) {
  device_speed speed = {.guess = 7};
  assert_true(device_speed_now(&speed, 1) == 7);
  device_speed_begin(&speed, 1);
  assert_true(device_speed_now(&speed, 2) == 7); /* no image is finished yet */
  speed.pixels = 100;
  assert_true(device_speed_now(&speed, 3) == 50);
  device_speed_end(&speed, 3);
  assert_true(device_speed_now(&speed, 100) == 50);
  device_speed_begin(&speed, 100);
  assert_true(device_speed_now(&speed, 102) == 25);
}

/* ---- buffers */

TEST(test_pool_uses_buffers_again) {
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
  /* The size is much smaller: the buffer would be wasted on it, and memory does not suffice for both. */
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

/* For any sizes in any order, the held bytes never exceed the maximum that was in use at one time. */
TEST(test_pool_stays_bounded) {
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

TEST(test_pool_without_memory) {
  scoped_counter counter = {.fail_at = 2};
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
}

/* ---- batches */

typedef struct tally {
  char names[IMAGES][NAME_BYTES];
  atomic_int calls[IMAGES];
  hs_status status[IMAGES];
  bool skipped[IMAGES];
  uint64_t digest[IMAGES];
  size_t count;    /* number of images added */
  size_t unwanted; /* index of an excluded image; IMAGES: none is excluded */
  size_t stop_at;  /* index of the image whose result cancels the batch; IMAGES: none */
  int takers;      /* number of threads that take results */
  hs_batch *batch;
  hs_batch_options options;
  const hs_options *devices[3];
  atomic_int wrong, ended, held;
  int order[IMAGES]; /* position of each image in the order of delivery: 1, 2, ... */
} tally;

static int32_t tally_wanted(void *user, size_t index, void *image_user) {
  const tally *t = user;
  if (image_user != &t->names[index]) return 1; /* computed from the count of skipped images */
  return index != t->unwanted;
}

static void tally_init(tally *t, const hs_options *devices, int32_t device_count) {
  memset(t, 0, sizeof *t);
  t->count = t->unwanted = t->stop_at = IMAGES;
  t->takers = 1;
  for (int i = 0; i < IMAGES; i++) snprintf(t->names[i], NAME_BYTES, "@scene:%dx%d:%d", 30 + i, 50 - i, i + 1);
  assert_int_equal(hs_batch_options_init(&t->options), HS_OK);
  for (int32_t i = 0; i < device_count; i++) t->devices[i] = &devices[i];
  t->options.devices = t->devices;
  t->options.device_count = device_count;
  t->options.readers = t->options.held = 2;
  t->options.wanted = tally_wanted;
  t->options.user = t;
}

static void tally_take(tally *t, const hs_batch_result *result) {
  const bool has_features = result->features && result->device >= 0 && result->width > 0 && result->message[0] == '\0';
  const bool is_whole = result->status != HS_OK ? !result->features && result->message[0] != '\0'
                        : result->skipped       ? !result->features
                                                : has_features;
  if (!is_whole || result->index >= t->count || strcmp(result->name, t->names[result->index]) != 0 ||
      result->user != &t->names[result->index] || atomic_fetch_add(&t->calls[result->index], 1) != 0) {
    atomic_fetch_add(&t->wrong, 1);
    return;
  }
  t->order[result->index] = atomic_fetch_add(&t->ended, 1) + 1;
  t->status[result->index] = result->status;
  t->skipped[result->index] = result->skipped != 0;
  t->digest[result->index] = result->features ? digest_features(result->features) : 0;
  if (result->index == t->stop_at) hs_batch_stop(t->batch);
}

static void *tally_taker(void *argument) {
  tally *t = argument;
  for (const hs_batch_result *result; hs_batch_next(t->batch, -1, &result) == HS_OK && result;) {
    tally_take(t, result);
    if (hs_batch_release(t->batch, result) != HS_OK) atomic_fetch_add(&t->wrong, 1);
  }
  return NULL;
}

static void tally_add(tally *t) {
  for (size_t i = 0; i < t->count; i++) {
    const hs_batch_image image = {.source = hs_source_file(t->names[i]), .user = &t->names[i]};
    assert_int_equal(hs_batch_add(t->batch, &image), HS_OK);
  }
  assert_int_equal(hs_batch_end(t->batch), HS_OK);
}

/* Runs the batch to its end. */
static void tally_run(tally *t) {
  char message[256];
  pthread_t takers[4];
  assert_in_range(t->takers, 1, 4);
  assert_int_equal(hs_batch_open(&t->batch, &t->options, message, sizeof message), HS_OK);
  tally_add(t);
  for (int i = 1; i < t->takers; i++) assert_int_equal(pthread_create(&takers[i], NULL, tally_taker, t), 0);
  (void)tally_taker(t);
  for (int i = 1; i < t->takers; i++) assert_int_equal(pthread_join(takers[i], NULL), 0);
  hs_batch_progress progress = {.struct_size = sizeof progress};
  hs_batch_statistics statistics = {.struct_size = sizeof statistics};
  assert_int_equal(hs_batch_get_progress(t->batch, &progress), HS_OK);
  assert_int_equal(progress.ended, 1);
  assert_int_equal(progress.added, t->count);
  assert_int_equal(progress.given, atomic_load(&t->ended));
  assert_true(t->stop_at < IMAGES || progress.given == t->count);
  assert_int_equal(hs_batch_get_statistics(t->batch, &statistics), HS_OK);
  assert_true(statistics.read_cpu_s >= 0 && statistics.pixel_bytes > 0 && !statistics.fallback);
  assert_true(hs_batch_device_busy(t->batch, 0) >= 0 && hs_batch_device_busy(t->batch, 9) <= 0);
  hs_batch_destroy(t->batch);
  assert_int_equal(atomic_load(&t->wrong), 0);
}

static void cpu_options(hs_options *options, int32_t threads) {
  assert_int_equal(hs_options_init(options, HS_PROFILE_LOWE), HS_OK);
  options->device = HS_DEVICE_CPU;
  options->threads = threads;
}

/* Computes digests by plain calls, one image after another. */
static void expected_digests(uint64_t digests[IMAGES]) {
  tally t;
  hs_options options;
  scoped_context *context = NULL;
  scoped_features features = {0};
  tally_init(&t, NULL, 0);
  cpu_options(&options, 1);
  assert_int_equal(hs_create(&context, &options), HS_OK);
  for (int i = 0; i < IMAGES; i++) {
    scoped_image image;
    assert_int_equal(hs_load_image(t.names[i], NULL, &image), HS_OK);
    assert_int_equal(hs_extract(context, &image, NULL, &features), HS_OK);
    digests[i] = digest_features(&features);
  }
}

TEST(test_results_are_those_of_single_calls) {
  uint64_t expected[IMAGES];
  hs_options devices[3];
  expected_digests(expected);
  for (int32_t count = 1; count <= 3; count++) {
    tally t;
    for (int32_t i = 0; i < count; i++) {
      cpu_options(&devices[i], i + 1);
      devices[i].in_flight = i; /* 0: the library's default */
    }
    tally_init(&t, devices, count);
    t.takers = count;
    t.options.readers = t.options.held = count == 3 ? 0 : count;
    tally_run(&t);
    for (int i = 0; i < IMAGES; i++) {
      assert_int_equal(atomic_load(&t.calls[i]), 1);
      assert_int_equal(t.status[i], HS_OK);
      assert_true(t.digest[i] == expected[i]);
    }
  }
}

/* Gives a mask of two by two pixels for every image. */
static hs_status small_mask(void *user, size_t index, void *image_user, const hs_image *image, hs_image *mask,
                            char *message, size_t message_bytes) {
  static const uint8_t black[4];
  (void)user;
  (void)index;
  (void)image_user;
  (void)image;
  (void)message;
  (void)message_bytes;
  *mask = (hs_image){.data = black, .width = 2, .height = 2};
  return HS_OK;
}

/* Refuses one image after it was read. */
static hs_status refuse_one(void *user, size_t index, void *image_user, char *message, size_t message_bytes) {
  (void)user;
  (void)image_user;
  snprintf(message, message_bytes, index == 2 ? "refused" : "not refused");
  return index == 2 ? HS_ERR_FORMAT : HS_OK;
}

TEST(test_failed_and_unwanted_images) {
  uint64_t expected[IMAGES];
  hs_options device;
  tally t;
  expected_digests(expected);
  cpu_options(&device, 1);
  tally_init(&t, &device, 1);
  snprintf(t.names[3], NAME_BYTES, "/absent/image.png");
  snprintf(t.names[IMAGES - 1], NAME_BYTES, "@scene:bad");
  t.unwanted = 5;
  t.options.loaded = refuse_one;
  tally_run(&t);
  for (int i = 0; i < IMAGES; i++) {
    const hs_status wanted = i == 2 ? HS_ERR_FORMAT : i == 3 ? HS_ERR_IO : i == IMAGES - 1 ? HS_ERR_ARGUMENT : HS_OK;
    assert_int_equal(atomic_load(&t.calls[i]), 1);
    assert_int_equal(t.skipped[i], i == 5);
    assert_int_equal(t.status[i], wanted);
    assert_true(wanted != HS_OK || i == 5 || t.digest[i] == expected[i]);
  }
  /* Each image has a mask of another size, which is refused. */
  tally_init(&t, &device, 1);
  t.options.mask = small_mask;
  tally_run(&t);
  for (int i = 0; i < IMAGES; i++) assert_int_equal(t.status[i], HS_ERR_ARGUMENT);
}

/* Results are in order for any devices and consumers, with an image that is late, one that fails, and one that is
 * excluded. */
TEST(test_results_in_order) {
  hs_options devices[2];
  tally t;
  cpu_options(&devices[0], 1);
  cpu_options(&devices[1], 2);
  devices[0].in_flight = 1;
  tally_init(&t, devices, 2);
  snprintf(t.names[0], NAME_BYTES, "@scene:400x300:1");
  snprintf(t.names[7], NAME_BYTES, "/absent/image.png");
  t.unwanted = 5;
  t.options.in_order = 1;
  t.options.readers = 3;
  tally_run(&t);
  for (int i = 0; i < IMAGES; i++) assert_int_equal(t.order[i], i + 1);
  tally_init(&t, devices, 2);
  t.takers = 4;
  t.options.in_order = 1;
  tally_run(&t); /* the order of the calls depends on the threads, but all must be counted */
  for (size_t stop_at = 0; stop_at < IMAGES; stop_at += 5) {
    tally_init(&t, devices, 2);
    t.stop_at = stop_at;
    t.options.in_order = 1;
    tally_run(&t);
    bool ended = false; /* the completed images are a prefix of the list */
    for (int i = 0; i < IMAGES; i++) {
      const bool done = atomic_load(&t.calls[i]) != 0;
      assert_false(done && ended);
      ended = !done;
    }
  }
}

TEST(test_no_images) {
  hs_options device;
  tally t;
  char message[256];
  const hs_batch_result *result;
  cpu_options(&device, 1);
  tally_init(&t, &device, 1);
  assert_int_equal(hs_batch_open(&t.batch, &t.options, message, sizeof message), HS_OK);
  assert_string_not_equal(hs_batch_backend_report(t.batch, 0), "");
  assert_string_equal(hs_batch_backend_report(t.batch, 1), "");
  assert_int_equal(hs_batch_next(t.batch, 0, &result), HS_OK); /* no result arrives in time */
  assert_null(result);
  assert_int_equal(hs_batch_end(t.batch), HS_OK);
  assert_int_equal(hs_batch_next(t.batch, -1, &result), HS_OK);
  assert_null(result);
  assert_int_equal(hs_batch_add(t.batch, &(hs_batch_image){.source = hs_source_file(t.names[0])}), HS_ERR_ARGUMENT);
  hs_batch_stop(t.batch);
  assert_int_equal(hs_batch_add(t.batch, &(hs_batch_image){.source = hs_source_file(t.names[0])}), HS_ERR_CANCELLED);
  hs_batch_destroy(t.batch);
  hs_batch_destroy(NULL);
  /* A batch is created and destroyed without images. */
  assert_int_equal(hs_batch_open(&t.batch, &t.options, NULL, 0), HS_OK);
  hs_batch_destroy(t.batch);
}

TEST(test_stopping) {
  hs_options device;
  tally t;
  char message[256];
  for (size_t stop_at = 0; stop_at < IMAGES; stop_at += 7) {
    cpu_options(&device, 1);
    tally_init(&t, &device, 1);
    t.stop_at = stop_at;
    tally_run(&t);
    assert_int_equal(atomic_load(&t.calls[stop_at]), 1);
  }
  /* The batch is destroyed in the middle: without any result taken, and with results that are never returned. */
  for (int taken = 0; taken < 3; taken++) {
    const hs_batch_result *result;
    cpu_options(&device, 2);
    tally_init(&t, &device, 1);
    assert_int_equal(hs_batch_open(&t.batch, &t.options, message, sizeof message), HS_OK);
    tally_add(&t);
    for (int i = 0; i < taken; i++) assert_int_equal(hs_batch_next(t.batch, -1, &result), HS_OK);
    hs_batch_destroy(t.batch);
  }
}

/* Images are borrowed pixels, files in memory, masks and names. Features outlive the batch. */
TEST(test_pixels_bytes_and_features_kept) {
  enum { WIDTH = 60, HEIGHT = 50, HEAD_BYTES = 13 };
  hs_options device;
  scoped_image scene, loaded;
  hs_features expected = {0}, masked = {0}, kept[3] = {{0}};
  hs_context *context;
  unsigned char file[HEAD_BYTES + WIDTH * HEIGHT], right[WIDTH * HEIGHT];
  tally t;
  cpu_options(&device, 1);
  assert_int_equal(hs_render_scene(WIDTH, HEIGHT, 4, NULL, NULL, &scene), HS_OK);
  assert_int_equal(snprintf((char *)file, sizeof file, "P5 %d %d 255\n", WIDTH, HEIGHT), HEAD_BYTES);
  for (int y = 0; y < HEIGHT; y++)
    memcpy(file + HEAD_BYTES + y * WIDTH, (const char *)scene.data + (size_t)y * scene.stride_bytes, WIDTH);
  for (int i = 0; i < WIDTH * HEIGHT; i++) right[i] = i % WIDTH >= WIDTH / 2;
  const hs_image mask = {.data = right, .width = WIDTH, .height = HEIGHT};
  assert_int_equal(hs_load_image_memory(file, sizeof file, NULL, &loaded), HS_OK);
  assert_int_equal(hs_create(&context, &device), HS_OK);
  assert_int_equal(hs_extract(context, &scene, NULL, &expected), HS_OK);
  assert_int_equal(hs_extract(context, &scene, &mask, &masked), HS_OK);
  hs_destroy(context);
  assert_true(masked.count > 0 && masked.count < expected.count);

  tally_init(&t, &device, 1);
  t.options.wanted = NULL;
  t.options.in_order = 1;
  hs_batch_image images[] = {
      {.source = hs_source_pixels(&loaded), .user = &t, .name = "pixels"},
      {.source = hs_source_encoded(file, sizeof file)},
      {.source = hs_source_encoded(file, 5), .name = "torn"},
      {.source = hs_source_encoded(file, sizeof file)},
  };
  images[1].source.mask = &mask;
  assert_int_equal(hs_batch_open(&t.batch, &t.options, NULL, 0), HS_OK);
  for (int i = 0; i < 4; i++) assert_int_equal(hs_batch_add(t.batch, &images[i]), HS_OK);
  assert_int_equal(hs_batch_add(t.batch, &(hs_batch_image){0}), HS_ERR_ARGUMENT);
  assert_int_equal(hs_batch_add(t.batch, &(hs_batch_image){.source = hs_source_encoded(NULL, 1)}), HS_ERR_ARGUMENT);
  assert_int_equal(hs_batch_add(t.batch, &(hs_batch_image){.source = hs_source_rows(9, 9, HS_U8, NULL)}),
                   HS_ERR_ARGUMENT);
  for (int i = 0, found = 0; i < 4; i++) {
    const hs_batch_result *result;
    assert_int_equal(hs_batch_next(t.batch, -1, &result), HS_OK);
    assert_int_equal(result->index, i);
    assert_string_equal(result->name, i == 0 ? "pixels" : i == 2 ? "torn" : "");
    assert_ptr_equal(result->user, i == 0 ? &t : NULL);
    assert_int_equal(result->status == HS_OK, i != 2);
    if (i != 2) assert_int_equal(hs_batch_take_features(t.batch, result, &kept[found++]), HS_OK);
    assert_null(result->features);
    assert_int_equal(hs_batch_take_features(t.batch, result, &kept[0]), HS_ERR_ARGUMENT);
    assert_int_equal(hs_batch_release(t.batch, result), HS_OK);
    assert_int_equal(hs_batch_release(t.batch, result), HS_ERR_ARGUMENT); /* twice */
  }
  hs_batch_destroy(t.batch);
  assert_true(digest_features(&kept[0]) == digest_features(&expected));
  assert_true(digest_features(&kept[1]) == digest_features(&masked));
  assert_true(digest_features(&kept[2]) == digest_features(&expected));
  for (int i = 0; i < 3; i++) hs_features_free(&kept[i]);
  hs_features_free(&expected);
  hs_features_free(&masked);
}

/* A consumer that keeps results gets an error that asks to return some, instead of waiting for ever. */
TEST(test_results_held) {
  hs_options device;
  tally t;
  const hs_batch_result *results[3];
  scoped_features features = {0};
  cpu_options(&device, 1);
  tally_init(&t, &device, 1);
  assert_int_equal(hs_batch_open(&t.batch, &t.options, NULL, 0), HS_OK);
  tally_add(&t);
  assert_int_equal(hs_batch_next(t.batch, -1, &results[0]), HS_OK);
  assert_int_equal(hs_batch_next(t.batch, -1, &results[1]), HS_OK);
  assert_int_equal(hs_batch_next(t.batch, -1, &results[2]), HS_ERR_CAPACITY);
  assert_null(results[2]);
  assert_int_equal(hs_batch_take_features(t.batch, results[0], &features), HS_OK);
  assert_int_equal(hs_batch_next(t.batch, -1, &results[2]), HS_OK);
  assert_non_null(results[2]);
  for (int i = 0; i < 3; i++) assert_int_equal(hs_batch_release(t.batch, results[i]), HS_OK);
  (void)tally_taker(&t);
  assert_int_equal(atomic_load(&t.ended), IMAGES - 3);
  hs_batch_destroy(t.batch);
  assert_true(features.count > 0);
}

/* Threads of the caller never hold more results together than `held`, and none of them waits for ever. */
static void *results_taker(void *argument) {
  tally *t = argument;
  for (;;) {
    const struct timespec pause = {.tv_nsec = 1000000};
    const hs_batch_result *result;
    const hs_status status = hs_batch_next(t->batch, -1, &result);
    if (status == HS_OK && !result) return NULL;
    if (status == HS_OK && atomic_fetch_add(&t->held, 1) >= t->options.held) atomic_fetch_add(&t->wrong, 1);
    nanosleep(&pause, NULL);
    if (status != HS_OK) continue;
    atomic_fetch_sub(&t->held, 1);
    atomic_fetch_add(&t->ended, 1);
    if (hs_batch_release(t->batch, result) != HS_OK) atomic_fetch_add(&t->wrong, 1);
  }
}

TEST(test_results_held_by_threads) {
  enum { TAKERS = 4 };
  hs_options device;
  pthread_t takers[TAKERS];
  tally t;
  cpu_options(&device, 1);
  for (int32_t in_order = 0; in_order <= 1; in_order++) {
    tally_init(&t, &device, 1);
    t.options.held = 1;
    t.options.in_order = in_order;
    assert_int_equal(hs_batch_open(&t.batch, &t.options, NULL, 0), HS_OK);
    for (int i = 0; i < TAKERS; i++) assert_int_equal(pthread_create(&takers[i], NULL, results_taker, &t), 0);
    tally_add(&t);
    for (int i = 0; i < TAKERS; i++) assert_int_equal(pthread_join(takers[i], NULL), 0);
    hs_batch_destroy(t.batch);
    assert_int_equal(atomic_load(&t.ended), IMAGES);
    assert_int_equal(atomic_load(&t.wrong), 0);
  }
}

#ifdef __GLIBC__ /* others have no default that can be set */
/* The requested stacks exceed the memory, so threads cannot start. */
TEST(test_threads_that_cannot_start) {
  hs_options device;
  tally t;
  pthread_attr_t before, huge;
  const hs_batch_result *result;
  hs_batch_progress progress = {.struct_size = sizeof progress};
  cpu_options(&device, 1);
  tally_init(&t, &device, 1);
  assert_int_equal(hs_batch_open(&t.batch, &t.options, NULL, 0), HS_OK);
  assert_int_equal(pthread_getattr_default_np(&before), 0);
  assert_int_equal(pthread_getattr_default_np(&huge), 0);
  assert_int_equal(pthread_attr_setstacksize(&huge, SIZE_MAX / 8), 0);
  assert_int_equal(pthread_setattr_default_np(&huge), 0);
  const hs_status status = hs_batch_add(t.batch, &(hs_batch_image){.source = hs_source_file(t.names[0])});
  assert_int_equal(pthread_setattr_default_np(&before), 0);
  assert_int_equal(status, HS_ERR_THREAD);
  assert_int_equal(hs_batch_get_progress(t.batch, &progress), HS_OK);
  assert_int_equal(progress.added, 0);
  assert_int_equal(hs_batch_add(t.batch, &(hs_batch_image){.source = hs_source_file(t.names[0])}), HS_ERR_CANCELLED);
  assert_int_equal(hs_batch_next(t.batch, -1, &result), HS_OK);
  assert_null(result);
  hs_batch_destroy(t.batch);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&huge);
}
#endif

TEST(test_contexts_that_cannot_be_made) {
  hs_options devices[2];
  tally t;
  char message[256] = "";
  cpu_options(&devices[0], 1);
  cpu_options(&devices[1], 1);
  devices[1].scales = 99;
  tally_init(&t, devices, 2);
  assert_int_equal(hs_batch_open(&t.batch, &t.options, message, sizeof message), HS_ERR_OPTION);
  assert_null(t.batch);
  assert_non_null(strstr(message, "scales"));
}

TEST(test_options_out_of_range) {
  static const struct {
    const char *message;
    int32_t device_count, readers, held, in_order;
  } cases[] = {
      {"options.device_count is 65, expected 1..64", 65, 0, 0, 0},
      {"options.device_count is 0, expected 1..64", 0, 0, 0, 0},
      {"options.readers is 1025, expected 0..1024", 1, 1025, 0, 0},
      {"options.held is -1, expected 0..1024", 1, 0, -1, 0},
      {"options.in_order is 2, expected 0..1", 1, 0, 0, 2},
  };
  hs_options device;
  tally t;
  cpu_options(&device, 1);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char message[256] = "";
    tally_init(&t, &device, 1);
    t.options.device_count = cases[i].device_count;
    t.options.readers = cases[i].readers;
    t.options.held = cases[i].held;
    t.options.in_order = cases[i].in_order;
    assert_int_equal(hs_batch_open(&t.batch, &t.options, message, sizeof message), HS_ERR_OPTION);
    assert_string_equal(message, cases[i].message);
  }
  assert_int_equal(hs_batch_open(NULL, NULL, NULL, 0), HS_ERR_ARGUMENT);
}

/* Each allocation of the batch, of pixels and of decoders fails once. Then creating the batch fails, or adding an image
 * fails, or exactly one image fails. */
TEST(test_every_failing_allocation) {
  enum { FEW = 6 };
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
    cpu_options(&device, 1);
    tally_init(&t, &device, 1);
    t.options.allocator = &allocator;
    hs_status status = hs_batch_open(&t.batch, &t.options, message, sizeof message);
    if (status == HS_OK) {
      for (int i = 0; i < FEW; i++) {
        const hs_batch_image image = {.source = hs_source_file(t.names[i]), .user = &t.names[i]};
        status = hs_batch_add(t.batch, &image);
        assert_true(status == HS_OK || status == HS_ERR_MEMORY);
        if (status != HS_OK) status = hs_batch_add(t.batch, &image);
        assert_int_equal(status, HS_OK);
      }
      assert_int_equal(hs_batch_end(t.batch), HS_OK);
      (void)tally_taker(&t);
      hs_batch_destroy(t.batch);
      assert_int_equal(atomic_load(&t.wrong), 0);
      for (int i = 0; i < FEW; i++) {
        assert_int_equal(atomic_load(&t.calls[i]), 1);
        failures += t.status[i] != HS_OK;
        assert_true(t.status[i] == HS_ERR_MEMORY || t.digest[i] == expected[i]);
      }
      assert_in_range(failures, 0, 1);
    } else {
      assert_int_equal(status, HS_ERR_MEMORY);
      assert_null(t.batch);
      assert_string_not_equal(message, "");
    }
    assert_int_equal(counter.alive, 0);
    failed = counter.made >= fail_at;
  }
  assert_false(failed);
}
