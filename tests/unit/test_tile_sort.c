/*
 * The order of keypoints and features of tiles equals that of a comparison sort. Covers short and long lists, one and
 * several threads, tiles in sequence and keypoints in random order, and repeated samples.
 */
#include "tests/support/test.h"

#include "cpu/schedule/threads.h"
#include "pipeline/frame/tiles.h"

enum { HEIGHT = 300, WIDTH = 1000, SCALES = 3, FIRST = 7, MOST = 70000 };

static uint32_t seed;

static uint32_t random_below(uint32_t end) {
  seed = seed * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)(seed >> 8) * end) >> 24);
}

/* Lists with FIRST unsorted entries at the beginning. */
typedef struct lists {
  keypoint_list keypoints;
  feature_list features;
  uint32_t keypoint_count, feature_count;
} lists;

static void *array(size_t item) {
  void *p = calloc((size_t)2 * MOST + FIRST, item);
  assert_non_null(p);
  return p;
}

static lists new_lists(void) {
  lists l = {
      .keypoints = {.column = array(sizeof(int32_t)), .row = array(sizeof(int32_t)), .level = array(sizeof(int16_t))},
      .features = {.keypoint = array(sizeof(uint32_t))}};
  return l;
}

static void free_lists(lists *l) {
  free(l->keypoints.column);
  free(l->keypoints.row);
  free(l->keypoints.level);
  free(l->features.keypoint);
}

/* Adds keypoints of columns [x0, x1), some at the sample of an earlier keypoint, each with 0 to 2 features. */
static void add(lists *l, uint32_t count, uint32_t x0, uint32_t x1) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t n = FIRST + l->keypoint_count++;
    const bool twice = n > FIRST && random_below(50) == 0;
    const uint32_t of = twice ? FIRST + random_below(n - FIRST) : n;
    l->keypoints.column[n] = twice ? l->keypoints.column[of] : (int32_t)(x0 + random_below(x1 - x0));
    l->keypoints.row[n] = twice ? l->keypoints.row[of] : (int32_t)random_below(HEIGHT);
    l->keypoints.level[n] = twice ? l->keypoints.level[of] : (int16_t)(1 + random_below(SCALES));
    for (uint32_t j = random_below(3); j > 0; j--) l->features.keypoint[FIRST + l->feature_count++] = n;
  }
}

static const keypoint_list *compared;

static int compare(const void *a, const void *b) {
  const uint32_t m = FIRST + *(const uint32_t *)a, n = FIRST + *(const uint32_t *)b;
  const keypoint_list *k = compared;
  if (k->level[m] != k->level[n]) return k->level[m] - k->level[n];
  if (k->row[m] != k->row[n]) return k->row[m] - k->row[n];
  return k->column[m] - k->column[n];
}

/* Checks that keypoints are in order and each sample occurs once. If several keypoints are at one sample, any of them
 * may be kept. */
static void check_keypoints(const tile_sort *s, const uint32_t *expected) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < s->keypoints; i++) {
    if (i > 0 && compare(&expected[i - 1], &expected[i]) == 0) continue;
    assert_true(at < s->once);
    assert_int_equal(compare(&s->sorted[at], &expected[i]), 0);
    at++;
  }
  assert_int_equal(at, s->once);
}

/* Checks that every keypoint occurs once, followed by its features in their order. */
static void check_features(const tile_sort *s, uint32_t kept) {
  unsigned char *seen = calloc(s->keypoints + 1, 1);
  uint32_t at = 0;
  assert_non_null(seen);
  for (uint32_t i = 0; i < s->keypoints; i++) {
    const uint32_t k = s->sorted[i];
    if (i == s->once) assert_int_equal(at, kept);
    assert_true(k < s->keypoints && !seen[k]);
    seen[k] = 1;
    for (uint32_t j = s->start[k]; j < s->features && s->feature_list->keypoint[FIRST + j] == FIRST + k; j++)
      assert_int_equal(s->source[at++], j);
  }
  assert_int_equal(at, s->features);
  if (s->once == s->keypoints) assert_int_equal(at, kept);
  free(seen);
}

static void check(const lists *l, stage_queue *queue) {
  const uint32_t n = l->keypoint_count;
  SCOPED_MEMORY uint32_t *memory =
      calloc(4 * (size_t)n + l->feature_count + (size_t)HEIGHT * SCALES + 5, sizeof *memory);
  assert_non_null(memory);
  tile_sort s = {.keypoint_list = &l->keypoints,
                 .feature_list = &l->features,
                 .queue = queue,
                 .first_keypoint = FIRST,
                 .first_feature = FIRST,
                 .keypoints = n,
                 .features = l->feature_count,
                 .height = HEIGHT,
                 .scales = SCALES,
                 .spare = memory,
                 .sorted = memory + n,
                 .start = memory + 2 * (size_t)n,
                 .counters = memory + 4 * (size_t)n,
                 .source = memory + 4 * (size_t)n + (size_t)HEIGHT * SCALES};
  uint32_t *expected = memory + 3 * (size_t)n;
  for (uint32_t i = 0; i < n; i++) expected[i] = i;
  compared = &l->keypoints;
  qsort(expected, n, sizeof *expected, compare);
  tile_sort_keypoints(&s);
  check_keypoints(&s, expected);
  check_features(&s, tile_sort_features(&s));
}

TEST(test_lists) {
  static const uint32_t counts[] = {0, 1, 2, 100, 16384, 20000, MOST};
  for (int32_t threads = 0; threads <= 5; threads += threads ? 2 : 1) {
    SCOPED_MEMORY stage_queue *queue = NULL;
    if (threads > 0) {
      queue = malloc(queue_bytes(threads));
      assert_non_null(queue);
      assert_true(queue_start(queue, threads));
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
      lists l = new_lists();
      seed = (uint32_t)(i + 1);
      /* Tiles are added from left to right, with few keypoints in random order, because the rows use insertion sort. */
      for (uint32_t x = 0; x < WIDTH; x += 250) add(&l, counts[i] / 4, x, x + 250);
      add(&l, counts[i] % 4, 0, WIDTH);
      check(&l, queue);
      free_lists(&l);
    }
    if (queue) queue_stop(queue);
  }
}
