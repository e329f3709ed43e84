/*
 * Assignment of images in flight to workers, and their wake-ups. The workers have no contexts, as for a GPU.
 */
#include <time.h>

/* This header is included before one of its names is redefined below. */
#include <pthread.h>

/* Number of waits that have begun, counted under the ring's lock. Whoever holds the lock and reads n knows that n
 * waiting threads have released it. */
static int waits;

static int counted_wait(pthread_cond_t *condition, pthread_mutex_t *lock) {
  waits++;
  return pthread_cond_wait(condition, lock);
}

/* Names are changed because the library defines these functions too. */
#define in_flight_end            workers_end
#define in_flight_add_statistics workers_add_statistics
#define hs_submit                workers_submit
#define hs_submit_source         workers_submit_source
#define hs_submit_file           workers_submit_file
#define hs_submit_encoded        workers_submit_encoded
#define hs_wait                  workers_wait
#define hs_wait_view             workers_wait_view
#define hs_count_in_flight       workers_count_in_flight
#define hs_wait_any              workers_wait_any
#define in_flight_max            workers_most_in_flight
#define in_flight_on_device      workers_on_device
#define in_flight_fallback       workers_fallback
#define pthread_cond_wait        counted_wait
#define in_flight_worker_main    workers_worker_main
#define in_flight_wake_workers   workers_wake_workers
#define in_flight_group_max      workers_group_most
#define in_flight_worker_threads workers_worker_threads
#define in_flight_workers_for    workers_workers_for
#define in_flight_read_slot      workers_read_slot
#define in_flight_way            workers_way
#define in_flight_start_readers  workers_start_readers
#include "tests/support/test.h"

#include "pipeline/frame/in_flight.c"
#include "pipeline/frame/in_flight_workers.c"

enum { SLOTS = 8, WORKERS = 2, PATIENCE_MS = 300000 };

static void sleep_ms(long ms) {
  const struct timespec t = {0, ms * 1000000};
  nanosleep(&t, NULL);
}

static in_flight_ring *ring_make(void) {
  in_flight_ring *f = calloc(1, sizeof *f + SLOTS * sizeof f->slots[0]);
  assert_non_null(f);
  assert_true(open_lock(f));
  f->on_device = true;
  f->worker_count = f->worker_max = WORKERS;
  f->slot_count = SLOTS;
  for (int32_t i = 0; i < WORKERS; i++) f->workers[i].ring = f;
  return f;
}

static void ring_free(in_flight_ring *f) {
  pthread_cond_destroy(&f->unread);
  pthread_cond_destroy(&f->done);
  pthread_cond_destroy(&f->work);
  pthread_mutex_destroy(&f->lock);
  free(f);
}

static void add_image(in_flight_ring *f, int32_t worker_limit, int32_t group_max) {
  in_flight_slot *s = ring_slot(f, f->end);
  pthread_mutex_lock(&f->lock);
  s->picture.source.image = (hs_image){.width = 10, .height = 10};
  s->worker_limit = worker_limit;
  s->group_max = group_max;
  s->state = SLOT_READY;
  s->worker = -1;
  f->end++;
  f->waited_for++;
  in_flight_wake_workers(f);
  pthread_mutex_unlock(&f->lock);
}

/* A worker that takes images until the end without processing them. */
static void *taking(void *worker) {
  in_flight_worker *l = worker;
  uint64_t first;
  pthread_mutex_lock(&l->ring->lock);
  while (take(l, &first) > 0) {}
  pthread_mutex_unlock(&l->ring->lock);
  return NULL;
}

/* Waits until `wanted` waits have begun. */
static void wait_for_waits(in_flight_ring *f, int wanted) {
  bool reached = false;
  for (int ms = 0; ms < PATIENCE_MS && !reached; ms++) {
    if (ms > 0) sleep_ms(1);
    pthread_mutex_lock(&f->lock);
    reached = waits >= wanted;
    pthread_mutex_unlock(&f->lock);
  }
  assert_true(reached);
}

/* Starts a worker that finds no image, and returns when the worker waits. */
static void begin(in_flight_worker *worker) {
  pthread_mutex_lock(&worker->ring->lock);
  const int before = waits;
  pthread_mutex_unlock(&worker->ring->lock);
  assert_int_equal(pthread_create(&worker->thread, NULL, taking, worker), 0);
  wait_for_waits(worker->ring, before + 1);
}

static void end(in_flight_ring *f, int32_t first_worker) {
  pthread_mutex_lock(&f->lock);
  f->ending = true;
  pthread_cond_broadcast(&f->work);
  pthread_mutex_unlock(&f->lock);
  for (int32_t i = first_worker; i < WORKERS; i++) pthread_join(f->workers[i].thread, NULL);
}

/* Returns the number of the worker that has taken an image, or -1 if none has before the timeout. */
static int32_t taken_by(in_flight_ring *f, uint64_t image) {
  int32_t worker = -1;
  for (int ms = 0; ms < PATIENCE_MS && worker < 0; ms++) {
    if (ms > 0) sleep_ms(1);
    pthread_mutex_lock(&f->lock);
    worker = ring_slot(f, image)->worker;
    pthread_mutex_unlock(&f->lock);
  }
  return worker;
}

/* The worker that has waited longest may not take the image, because its results are not yet returned. The other worker
 * is woken. */
TEST(test_full_worker_passes_on) {
  in_flight_ring *f = ring_make();
  for (int32_t i = 0; i < RESULT_SETS; i++) f->workers[0].held[i] = 1;
  begin(&f->workers[0]);
  begin(&f->workers[1]);
  add_image(f, WORKERS, 1);
  assert_int_equal(taken_by(f, 0), 1);
  end(f, 0);
  ring_free(f);
}

/* Only the first worker may take a large image. Once it has, other workers may take the images after it. */
TEST(test_behind_a_large_image) {
  uint64_t first;
  in_flight_ring *f = ring_make();
  begin(&f->workers[1]);
  const int before = waits; /* while the lock is held, no other thread changes it */
  add_image(f, 1, 1);
  add_image(f, WORKERS, 1);
  wait_for_waits(f, before + 1); /* the worker woke up, looked and left the images */
  pthread_mutex_lock(&f->lock);
  assert_int_equal(f->next, 0);
  assert_int_equal(take(&f->workers[0], &first), 1);
  pthread_mutex_unlock(&f->lock);
  assert_int_equal(first, 0);
  assert_int_equal(taken_by(f, 1), 1);
  end(f, 1);
  ring_free(f);
}

/* Workers share the waiting images. A group has a power of two of equal images. */
TEST(test_shares) {
  uint64_t first;
  in_flight_ring *f = ring_make();
  for (int i = 0; i < 7; i++) add_image(f, WORKERS, i == 5 ? 1 : 16);
  pthread_mutex_lock(&f->lock);
  assert_int_equal(take(&f->workers[0], &first), 4); /* half of 7 images */
  assert_int_equal(f->workers[0].held[0], 4);
  assert_int_equal(take(&f->workers[1], &first), 1); /* takes image 4 only, because image 5 is taken alone */
  assert_int_equal(first, 4);
  assert_int_equal(take(&f->workers[0], &first), 1);
  assert_int_equal(f->workers[0].held[1], 1);
  assert_false(may_take(&f->workers[0], &first));
  for (uint64_t i = 0; i < 4; i++) give_back(f, i);
  assert_true(may_take(&f->workers[0], &first));
  pthread_mutex_unlock(&f->lock);
  ring_free(f);
}

/* If results are taken as they finish, finished images overtake unfinished ones. Otherwise they stay in order. */
TEST(test_overtaking) {
  uint64_t first;
  in_flight_ring *f = ring_make();
  for (int i = 0; i < 4; i++) add_image(f, WORKERS, 1);
  pthread_mutex_lock(&f->lock);
  ring_slot(f, 0)->state = ring_slot(f, 2)->state = SLOT_READING;
  assert_false(may_take(&f->workers[0], &first));
  f->any_order = true;
  assert_int_equal(take(&f->workers[0], &first), 1);
  assert_int_equal(first, 1);
  assert_int_equal(take(&f->workers[1], &first), 1);
  assert_int_equal(first, 3);
  assert_int_equal(f->next, 0);
  assert_false(may_take(&f->workers[0], &first));
  ring_slot(f, 0)->state = SLOT_READY;
  assert_int_equal(take(&f->workers[0], &first), 1);
  assert_int_equal(first, 0);
  assert_int_equal(f->next, 2); /* the first image that no worker has */
  ring_slot(f, 2)->state = SLOT_READY;
  assert_int_equal(take(&f->workers[1], &first), 1);
  assert_int_equal(f->next, 4);
  pthread_mutex_unlock(&f->lock);
  ring_free(f);
}

static void end_image(in_flight_ring *f, uint64_t image, hs_status status) {
  pthread_mutex_lock(&f->lock);
  ring_slot(f, image)->status = status;
  ring_slot(f, image)->done = true;
  pthread_cond_broadcast(&f->done);
  pthread_mutex_unlock(&f->lock);
}

/* Any finished image is returned first, even if it failed. Its slot in the ring becomes free when all earlier images
 * are done. */
TEST(test_given_as_they_end) {
  in_flight_ring *f = ring_make();
  hs_context *c = calloc(1, sizeof *c);
  hs_features list = {0};
  uint64_t image = 99;
  assert_non_null(c);
  f->on_device = false;
  c->in_flight = f;
  for (int i = 0; i < 3; i++) add_image(f, WORKERS, 1);
  end_image(f, 2, HS_OK);
  assert_int_equal(hs_wait_any(c, &list, &image), HS_OK);
  assert_int_equal(image, 2);
  assert_int_equal(f->oldest, 0);
  hs_message_set(ring_slot(f, 0)->error, sizeof ring_slot(f, 0)->error, "%s", "too large");
  end_image(f, 0, HS_ERR_MEMORY);
  assert_int_equal(hs_wait_any(c, &list, &image), HS_ERR_MEMORY);
  assert_int_equal(image, 0);
  assert_string_equal(c->error, "too large");
  assert_int_equal(f->oldest, 1);
  end_image(f, 1, HS_OK);
  assert_int_equal(hs_wait_any(c, &list, &image), HS_OK);
  assert_int_equal(image, 1);
  assert_int_equal(f->oldest, 3);
  assert_int_equal(hs_wait_any(c, &list, &image), HS_ERR_ARGUMENT);
  hs_features_free(&list);
  free(c);
  ring_free(f);
}

/* For throughput, the ring is longer than the number of images in flight, so that images after a slow one are taken and
 * their slots reused. An image that was taken leaves no memory in the ring. */
TEST(test_ring_is_longer) {
  enum { IMAGES = 12 };
  hs_options options;
  scoped_context *c = NULL;
  hs_image picture;
  hs_features expected = {0}, list = {0};
  assert_int_equal(hs_options_init(&options, HS_PROFILE_LOWE), HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = WORKERS;
  options.in_flight = IMAGES;
  options.workload = HS_WORKLOAD_THROUGHPUT;
  assert_int_equal(hs_create(&c, &options), HS_OK);
  assert_int_equal(hs_render_scene(120, 90, 1, NULL, NULL, &picture), HS_OK);
  assert_int_equal(hs_extract(c, &picture, NULL, &expected), HS_OK);
  assert_true(expected.count > 0);
  for (int i = 0; i < IMAGES; i++) assert_int_equal(hs_submit(c, &picture, NULL), HS_OK);
  assert_int_equal(hs_submit(c, &picture, NULL), HS_ERR_CAPACITY);
  assert_int_equal(hs_count_in_flight(c), IMAGES);
  assert_int_equal(c->in_flight->worker_count, WORKERS);
  assert_true(c->in_flight->slot_count > 2 * IMAGES);
  assert_int_equal(hs_wait(c, &list), HS_ERR_ARGUMENT);
  assert_non_null(strstr(c->error, "options.workload is HS_WORKLOAD_THROUGHPUT: expected hs_wait_any"));
  for (int i = 0; i < IMAGES; i++) {
    uint64_t image;
    assert_int_equal(hs_wait_any(c, &list, &image), HS_OK);
    assert_int_equal(hs_count_in_flight(c), IMAGES - 1 - i);
    assert_int_equal(list.count, expected.count);
    assert_memory_equal(list.keypoints, expected.keypoints, expected.count * sizeof *expected.keypoints);
    assert_memory_equal(list.descriptors, expected.descriptors, expected.count * HS_DESCRIPTOR_LENGTH);
    assert_null(ring_slot(c->in_flight, image)->features.keypoints);
  }
  hs_features_free(&list);
  hs_features_free(&expected);
  hs_image_free(&picture);
  in_flight_end(c);
}

/* Waiting for any image and waiting in order alternate. The viewed list stays valid until the next call. */
TEST(test_any_among_oldest) {
  in_flight_ring *f = ring_make();
  hs_context *c = calloc(1, sizeof *c);
  hs_features list = {0};
  const hs_features *view;
  uint64_t image;
  assert_non_null(c);
  f->on_device = false;
  c->in_flight = f;
  f->most = 4;
  for (int i = 0; i < 4; i++) add_image(f, WORKERS, 1);
  end_image(f, 1, HS_OK);
  assert_int_equal(hs_wait_any(c, &list, &image), HS_OK);
  assert_int_equal(image, 1);
  end_image(f, 0, HS_OK);
  assert_int_equal(hs_wait_view(c, &view), HS_OK);
  assert_ptr_equal(view, &ring_slot(f, 0)->features);
  assert_int_equal(f->oldest, 1); /* image 1 was taken; freeing its slot would free image 0's too */
  assert_int_equal(hs_count_in_flight(c), 2);
  end_image(f, 3, HS_OK);
  assert_int_equal(hs_wait_any(c, &list, &image), HS_OK);
  assert_int_equal(image, 3);
  assert_int_equal(f->oldest, 2);
  end_image(f, 2, HS_OK);
  assert_int_equal(hs_wait(c, &list), HS_OK);
  assert_int_equal(hs_count_in_flight(c), 0);
  assert_int_equal(hs_wait(c, &list), HS_ERR_ARGUMENT);
  assert_int_equal(hs_wait_any(NULL, &list, &image), HS_ERR_ARGUMENT);
  assert_int_equal(hs_wait_any(c, &list, &image), HS_ERR_ARGUMENT);
  assert_true(image == UINT64_MAX);
  hs_features_free(&list);
  free(c);
  ring_free(f);
}
