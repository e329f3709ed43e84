/*
 * Who takes which image in flight, and who is told of it: lanes without contexts, as a GPU's are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

/* The library has these too. */
#define in_flight_end            lanes_end
#define in_flight_add_statistics lanes_add_statistics
#define hs_submit                lanes_submit
#define hs_wait                  lanes_wait
#define hs_wait_view             lanes_wait_view
#define hs_count_in_flight       lanes_count_in_flight
#include "pipeline/frame/in_flight.c"

enum { SLOTS = 8, LANES = 2, PATIENCE_MS = 10000 };

static void sleep_ms(long ms) {
  const struct timespec t = {0, ms * 1000000};
  nanosleep(&t, NULL);
}

static in_flight_ring *ring_make(void) {
  in_flight_ring *f = calloc(1, sizeof *f + SLOTS * sizeof f->slots[0]);
  assert_non_null(f);
  assert_true(open_lock(f));
  f->on_device = true;
  f->lane_count = LANES;
  f->slot_count = SLOTS;
  for (int32_t i = 0; i < LANES; i++) f->lanes[i].ring = f;
  return f;
}

static void ring_free(in_flight_ring *f) {
  pthread_cond_destroy(&f->done);
  pthread_cond_destroy(&f->work);
  pthread_mutex_destroy(&f->lock);
  free(f);
}

static void add_image(in_flight_ring *f, int32_t lanes_most, int32_t group_most) {
  in_flight_slot *s = slot_of(f, f->end);
  pthread_mutex_lock(&f->lock);
  s->image = (hs_image){.width = 10, .height = 10};
  s->lanes_most = lanes_most;
  s->group_most = group_most;
  s->lane = -1;
  f->end++;
  wake_lanes(f);
  pthread_mutex_unlock(&f->lock);
}

/* A lane that takes images until the end, and works on none. */
static void *taking(void *lane) {
  in_flight_lane *l = lane;
  uint64_t first;
  pthread_mutex_lock(&l->ring->lock);
  while (take(l, &first) > 0) {}
  pthread_mutex_unlock(&l->ring->lock);
  return NULL;
}

static void begin(in_flight_lane *lane) {
  assert_int_equal(pthread_create(&lane->thread, NULL, taking, lane), 0);
  sleep_ms(50); /* long enough to wait for images; a shorter time only tests less */
}

static void end(in_flight_ring *f, int32_t first_lane) {
  pthread_mutex_lock(&f->lock);
  f->ending = true;
  pthread_cond_broadcast(&f->work);
  pthread_mutex_unlock(&f->lock);
  for (int32_t i = first_lane; i < LANES; i++) pthread_join(f->lanes[i].thread, NULL);
}

/* Which lane has taken an image, -1: none in good time. */
static int32_t taken_by(in_flight_ring *f, uint64_t image) {
  int32_t lane = -1;
  for (int ms = 0; ms < PATIENCE_MS && lane < 0; ms++) {
    if (ms > 0) sleep_ms(1);
    pthread_mutex_lock(&f->lock);
    lane = slot_of(f, image)->lane;
    pthread_mutex_unlock(&f->lock);
  }
  return lane;
}

/* A lane whose results nobody has given back waits longest, and may not take the image: the other one hears of it. */
static void test_full_lane_passes_on(void **state) {
  (void)state;
  in_flight_ring *f = ring_make();
  for (int32_t i = 0; i < CUDA_RESULT_SETS; i++) f->lanes[0].held[i] = 1;
  begin(&f->lanes[0]);
  begin(&f->lanes[1]);
  add_image(f, LANES, 1);
  assert_int_equal(taken_by(f, 0), 1);
  end(f, 0);
  ring_free(f);
}

/* What stood behind a large image, which only the first lane may take, is free for the others once that one has it. */
static void test_behind_a_large_image(void **state) {
  (void)state;
  uint64_t first;
  in_flight_ring *f = ring_make();
  begin(&f->lanes[1]);
  add_image(f, 1, 1);
  add_image(f, LANES, 1);
  sleep_ms(50);
  pthread_mutex_lock(&f->lock);
  assert_int_equal(f->next, 0);
  assert_int_equal(take(&f->lanes[0], &first), 1);
  pthread_mutex_unlock(&f->lock);
  assert_int_equal(first, 0);
  assert_int_equal(taken_by(f, 1), 1);
  end(f, 1);
  ring_free(f);
}

/* Lanes share what waits; groups have powers of two of images alike. */
static void test_shares(void **state) {
  (void)state;
  uint64_t first;
  in_flight_ring *f = ring_make();
  for (int i = 0; i < 7; i++) add_image(f, LANES, i == 5 ? 1 : 16);
  pthread_mutex_lock(&f->lock);
  assert_int_equal(take(&f->lanes[0], &first), 4); /* of 7, half of them */
  assert_int_equal(f->lanes[0].held[0], 4);
  assert_int_equal(take(&f->lanes[1], &first), 1); /* the next but one goes alone */
  assert_int_equal(first, 4);
  assert_int_equal(take(&f->lanes[0], &first), 1);
  assert_int_equal(f->lanes[0].held[1], 1);
  assert_false(may_take(&f->lanes[0]));
  for (uint64_t i = 0; i < 4; i++) give_back(f, i);
  assert_true(may_take(&f->lanes[0]));
  pthread_mutex_unlock(&f->lock);
  ring_free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_full_lane_passes_on),
      cmocka_unit_test(test_behind_a_large_image),
      cmocka_unit_test(test_shares),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
