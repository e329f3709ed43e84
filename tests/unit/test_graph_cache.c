/*
 * The cache of recorded frames of a device's context.
 *
 * A key that comes again is found. The least recently used entry is evicted first. If more sizes alternate than there
 * are entries, none is found. Also tests which spare graph executes a new frame.
 */
#include "tests/support/test.h"

#include "pipeline/device/cuda_graph_cache.h"

static graph_cache cache;

static int empty_cache(void **state) {
  (void)state;
  memset(&cache, 0, sizeof cache);
  return 0;
}

static graph_key key_of_width(int32_t width) {
  graph_key k;
  memset(&k, 0, sizeof k);
  k.width = width;
  k.height = 480;
  return k;
}

/* Looks up a frame of this width; returns whether it was found. */
static bool meet(int32_t width, graph_entry **entry) {
  const graph_key k = key_of_width(width);
  bool again = false;
  graph_entry *e = graph_cache_meet(&cache, &k, &again);
  assert_memory_equal(&e->key, &k, sizeof k);
  if (entry) *entry = e;
  return again;
}

TEST_BETWEEN(test_met_again, empty_cache, NULL) {
  graph_entry *first, *second;
  assert_false(meet(640, &first));
  assert_true(meet(640, &second));
  assert_ptr_equal(first, second);
  assert_false(meet(641, &second));
  assert_ptr_not_equal(first, second);
  graph_key k = key_of_width(640);
  bool again = true;
  k.user_keypoints = 1; /* keys that differ in any field are different */
  (void)graph_cache_meet(&cache, &k, &again);
  assert_false(again);
  assert_true(meet(640, NULL));
}

TEST_BETWEEN(test_as_many_as_there_is_room_for, empty_cache, NULL) {
  for (int round = 0; round < 3; round++)
    for (int32_t i = 0; i < GRAPHS_KEPT; i++) assert_int_equal(meet(100 + i, NULL), round > 0);
}

/* There is one key too many: each is evicted just before it comes again, so none is recorded. */
TEST_BETWEEN(test_too_many_by_turns, empty_cache, NULL) {
  for (int round = 0; round < 3; round++)
    for (int32_t i = 0; i <= GRAPHS_KEPT; i++) assert_false(meet(100 + i, NULL));
}

/* A size that keeps coming is found, however many others come in between. */
TEST_BETWEEN(test_among_many_others, empty_cache, NULL) {
  (void)meet(7, NULL);
  for (int32_t i = 0; i < 10 * GRAPHS_KEPT; i++) {
    assert_false(meet(1000 + i, NULL));
    assert_true(meet(7, NULL));
  }
}

/* When another key takes an entry over, the entry keeps its content: the graph to destroy and the memory to reuse. */
TEST_BETWEEN(test_taken_over, empty_cache, NULL) {
  graph_entry *first, *last = NULL;
  cuda_frame_view views;
  (void)meet(0, &first);
  first->graph = (cuda_graph)(void *)&cache;
  first->views = &views;
  for (int32_t i = 1; i <= GRAPHS_KEPT; i++) assert_false(meet(i, &last));
  assert_ptr_equal(last, first);
  assert_ptr_equal(last->views, &views);
  assert_non_null(last->graph);
  assert_false(meet(0, NULL));
}

/* An entry that is marked as never met, as after a failed frame, is not found and is evicted first. */
TEST_BETWEEN(test_unmet, empty_cache, NULL) {
  graph_entry *first, *next;
  for (int32_t i = 0; i < GRAPHS_KEPT; i++) (void)meet(i, i == 5 ? &first : NULL);
  first->met = 0;
  assert_false(meet(5, &next));
  assert_ptr_equal(first, next);
  assert_true(meet(0, NULL));
}

static cuda_graph graph_number(int n) { return (cuda_graph)(void *)((char *)(void *)&cache + n); }

/* Returns the spare that executes a new frame of this width, whose lists have this shape. */
static graph_spare *change(int32_t width, uint64_t shape) {
  graph_entry *e;
  assert_false(meet(width, &e));
  graph_spare *s = graph_cache_spare(&cache, shape);
  if (s->shape != shape) s->listed.graph = graph_number(width);
  s->shape = shape;
  s->frame = e->first;
  return s;
}

/* Frames of one shape share a spare. Frames of other shapes take the least recently used spare. */
TEST_BETWEEN(test_spares, empty_cache, NULL) {
  graph_spare *of[SPARES_KEPT];
  for (int i = 0; i < SPARES_KEPT; i++) of[i] = change(100 + i, 30 + (uint64_t)i);
  for (int i = 0; i < SPARES_KEPT; i++) {
    for (int j = 0; j < i; j++) assert_ptr_not_equal(of[i], of[j]);
    assert_ptr_equal(of[i]->listed.graph, graph_number(100 + i));
  }
  assert_ptr_equal(change(200, 30), of[0]);
  assert_ptr_equal(of[0]->listed.graph, graph_number(100));
  assert_ptr_equal(change(201, 99), of[1]);
  assert_ptr_equal(change(202, 31), of[2]);
}

/* The spare that still executes an entry's first frame is found. A spare that executes a later frame, or was taken, is
 * not. */
TEST_BETWEEN(test_spare_of, empty_cache, NULL) {
  graph_entry *first, *second;
  graph_spare *spare = change(1, 30);
  (void)change(2, 30);
  assert_true(meet(1, &first));
  assert_null(graph_cache_spare_of(&cache, first));
  assert_true(meet(2, &second));
  assert_ptr_equal(graph_cache_spare_of(&cache, second), spare);
  spare->shape = spare->frame = 0;
  assert_true(meet(2, &second));
  assert_null(graph_cache_spare_of(&cache, second));
}
