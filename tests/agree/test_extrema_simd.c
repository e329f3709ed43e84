/* The extremum search: every variant this machine can run against the reference, word for word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/dispatch.h"
#include "tests/support/stage_planes.h"

static const int32_t thread_counts[] = {1, 2, 3, 7};
enum { THREAD_COUNTS = sizeof thread_counts / sizeof thread_counts[0], GUARD_WORDS = 8 };
#define GUARD_WORD 0xA5C3F00Du

typedef struct search_case {
  int32_t width, height, scales, border;
  size_t padding;
  float threshold;
  bool ties;
  int32_t steps; /* values a sample may have: few give ties */
} search_case;

typedef struct search_result {
  uint32_t *words;
  size_t count_words;
  uint64_t count;
} search_result;

static search_result search(const stage_ops *ops, stage_queue *queue, const search_case *c, const octave_view *octave) {
  search_result r = {.count = 0};
  const int32_t words_per_row = mask_words_per_row(c->width);
  r.count_words = (size_t)c->scales * (size_t)c->height * (size_t)words_per_row;
  r.words = malloc(sizeof(uint32_t) * (r.count_words + 2 * GUARD_WORDS));
  assert_non_null(r.words);
  for (size_t i = 0; i < r.count_words + 2 * GUARD_WORDS; i++) r.words[i] = GUARD_WORD;
  const sift_params params = {
      .scales = c->scales, .border = c->border, .candidate_above = c->threshold, .extremum_ties = c->ties};
  const extrema_args args = {*octave, {r.words + GUARD_WORDS, words_per_row}, params, &r.count};
  assert_int_equal(ops->extrema(queue, &args), STAGE_OK);
  return r;
}

static void check_same(const search_result *expected, const search_result *got, const search_case *c,
                       const char *what) {
  for (size_t i = 0; i < GUARD_WORDS; i++)
    if (got->words[i] != GUARD_WORD || got->words[GUARD_WORDS + got->count_words + i] != GUARD_WORD)
      fail_msg("%s: wrote beside the mask", what);
  for (size_t i = GUARD_WORDS; i < GUARD_WORDS + got->count_words; i++)
    if (expected->words[i] != got->words[i])
      fail_msg("%s, %d x %d: word %zu is %08x, the reference has %08x", what, c->width, c->height, i - GUARD_WORDS,
               got->words[i], expected->words[i]);
  if (expected->count != got->count)
    fail_msg("%s: counted %d, the reference %d", what, (int)got->count, (int)expected->count);
}

/* Returns how many candidates the reference found, so that a test can ask for some. */
static uint64_t check_search(stage_queue *const *queues, const search_case *c) {
  const size_t stride = (size_t)c->width + c->padding;
  /* The levels are one plane of (S + 3) * height rows; the last row ends where the memory does. */
  guarded_plane levels = plane_make(c->width, c->height * (c->scales + 3), stride);
  plane_fill(&levels, PATTERN_NOISE, 1234u + (uint32_t)c->width);
  for (int32_t y = 0; y < levels.view.height && c->steps > 0; y++)
    for (int32_t x = 0; x < c->width; x++) {
      float *v = levels.view.data + (size_t)y * stride + (size_t)x;
      *v = (float)(int32_t)(*v * (float)c->steps) / (float)c->steps;
    }
  const octave_view octave = {levels.view.data, stride * (size_t)c->height, stride, c->width, c->height, 0};
  const search_result expected = search(cpu_variant_ops("ref"), NULL, c, &octave);
  for (int v = 0; stage_variant_names[v]; v++) {
    const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
    if (!ops) continue;
    for (int t = 0; t < THREAD_COUNTS; t++) {
      char what[80];
      snprintf(what, sizeof what, "extrema %s, %d threads", stage_variant_names[v], thread_counts[t]);
      search_result got = search(ops, queues[t], c, &octave);
      check_same(&expected, &got, c, what);
      free(got.words);
    }
  }
  const uint64_t found = expected.count;
  plane_check_guards(&levels, "extrema's input");
  free(expected.words);
  plane_free(&levels);
  return found;
}

static int make_queues(void **state) {
  if (stage_variants_usable() == 0) return -1; /* nothing would be compared */
  stage_queue **queues = calloc(THREAD_COUNTS, sizeof *queues);
  if (!queues) return -1;
  for (int i = 0; i < THREAD_COUNTS; i++) queues[i] = stage_queue_make(thread_counts[i]);
  *state = queues;
  return 0;
}

static int free_queues(void **state) {
  stage_queue **queues = *state;
  for (int i = 0; i < THREAD_COUNTS; i++) stage_queue_free(queues[i]);
  free(queues);
  return 0;
}

static void test_sizes(void **state) {
  static const int32_t sizes[][2] = {{1, 1},    {1, 9},    {9, 1},     {2, 2},    {3, 3},   {7, 5},
                                     {31, 33},  {32, 32},  {33, 3},    {640, 1},  {511, 9}, {512, 9},
                                     {513, 70}, {1024, 5}, {1030, 64}, {40, 129}, {65, 200}};
  uint64_t found = 0;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int32_t border = 1; border <= 7; border += 2) {
      const search_case c = {sizes[s][0], sizes[s][1], 3, border, s % 3 * 7, 0.02f, false, 0};
      found += check_search(*state, &c);
    }
  assert_true(found > 1000);
}

static void test_scales(void **state) {
  for (int32_t scales = 1; scales <= SCALES_MAX; scales++) {
    const search_case c = {90, 40, scales, 1, 6, 0.01f, false, 0};
    assert_true(check_search(*state, &c) > 0);
  }
}

/* Few values: many neighbours equal the centre, and centres are 0. */
static void test_ties(void **state) {
  uint64_t found[2];
  for (int ties = 0; ties < 2; ties++) {
    const search_case c = {200, 100, 3, 2, 0, 0.01f, ties == 1, 5};
    found[ties] = check_search(*state, &c);
    const search_case constant = {70, 30, 2, 1, 0, -1.0f, ties == 1, 1};
    assert_int_equal(check_search(*state, &constant), 0);
  }
  assert_true(found[0] > 0 && found[1] > 2 * found[0]);
}

static void test_thresholds(void **state) {
  static const float thresholds[] = {-1.0f, 0.0f, 0.1f, 0.5f, 0.9f, 2.0f};
  for (size_t i = 0; i < sizeof thresholds / sizeof thresholds[0]; i++) {
    const search_case c = {300, 60, 3, 5, 0, thresholds[i], false, 0};
    const uint64_t found = check_search(*state, &c);
    if (thresholds[i] == 2.0f) assert_int_equal(found, 0);
    if (thresholds[i] < 0.5f) assert_true(found > 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_scales),
      cmocka_unit_test(test_ties),
      cmocka_unit_test(test_thresholds),
  };
  return cmocka_run_group_tests_name("vector extremum search", tests, make_queues, free_queues);
}
