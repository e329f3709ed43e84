/*
 * Matching: every variant against the reference, byte for byte, on lists of awkward lengths, with duplicates, ties and
 * extreme values, of bytes and of floats, guided and not, for several numbers of threads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "cpu/schedule/threads.h"
#include "tests/support/stage_planes.h"

static const char *const variants[] = {"sse2", "avx2", "avx512", "avx512vnni", "neon"};
enum { VARIANTS = sizeof variants / sizeof variants[0], GUARD = 64 };

typedef enum value_style { RANDOM, FEW_VALUES, ALL_EQUAL, EXTREMES, NEAR_DUPLICATES, NOT_FINITE } value_style;
enum { STYLES = 6 };

typedef struct match_case {
  match_type type;
  value_style style;
  uint32_t first, second;
  match_guide_kind guide;
  bool backward;
} match_case;

static uint8_t byte_of(value_style style, uint32_t row, uint32_t *random) {
  const uint32_t v = stage_random(random);
  switch (style) {
  case FEW_VALUES:
    return (uint8_t)(v >> 4 & 1);
  case ALL_EQUAL:
    return 77;
  case EXTREMES:
    return row % 3 == 0 ? 0 : (row % 3 == 1 ? 255 : (v >> 7 & 1 ? 255 : 0));
  case NEAR_DUPLICATES:
    return (uint8_t)(row % 5 * 50 + ((v & 127) == 0));
  default:
    return (uint8_t)(v >> 8);
  }
}

static float float_of(value_style style, uint32_t row, uint32_t *random) {
  if (style == NOT_FINITE) {
    const uint32_t v = stage_random(random) & 1023;
    if (v == 0) return NAN;
    if (v == 1) return INFINITY;
    if (v == 2) return 3e38f;
    return v == 3 ? 1e-40f : (float)v * 0.001f;
  }
  return (float)byte_of(style, row, random) * (style == RANDOM ? 0.00371f : 1.0f);
}

static void *make_values(const match_case *c, uint32_t count, uint32_t *random) {
  const size_t size = c->type == MATCH_U8 ? 1 : sizeof(float);
  unsigned char *values = malloc((size_t)count * MATCH_LENGTH * size + 1);
  assert_non_null(values);
  for (size_t i = 0; i < (size_t)count * MATCH_LENGTH; i++) {
    const uint32_t row = (uint32_t)(i / MATCH_LENGTH);
    if (c->type == MATCH_U8)
      values[i] = byte_of(c->style, row, random);
    else
      ((float *)(void *)values)[i] = float_of(c->style, row, random);
  }
  return values;
}

/* No guide, and guides that keep about a third of the pairs or fewer. */
static const match_guide guides[] = {
    {.kind = MATCH_UNGUIDED},
    {.kind = MATCH_HOMOGRAPHY, .matrix = {1.02, 0.03, -4, -0.02, 0.98, 7, 1e-5, 2e-5, 1}, .tolerance_squared = 3600.0},
    {.kind = MATCH_FUNDAMENTAL,
     .matrix = {0, -1e-6, 3e-4, 2e-6, 0, -0.02, -4e-4, 0.02, 0.1},
     .tolerance_squared = 400.0}};

static match_place *make_places(const match_guide *guide, bool first, uint32_t count, uint32_t *random) {
  match_place *places = malloc(((size_t)count + 1) * sizeof *places);
  assert_non_null(places);
  for (uint32_t i = 0; i < count; i++) {
    const float x = i == 3 ? NAN : (float)(stage_random(random) % 200), y = (float)(stage_random(random) % 150);
    places[i] = first ? match_place_first(guide, x, y) : match_place_second(guide, x, y);
  }
  return places;
}

typedef struct match_result {
  match_nearest *forward, *backward;
} match_result;

static match_nearest *guarded_list(uint32_t count) {
  match_nearest *list = malloc(((size_t)count + GUARD) * sizeof *list);
  assert_non_null(list);
  memset(list, 0xa5, ((size_t)count + GUARD) * sizeof *list);
  return list;
}

static match_result run(const stage_ops *ops, stage_queue *queue, const match_args *args, bool backward) {
  const match_result result = {guarded_list(args->first.count), guarded_list(args->second.count)};
  match_args a = *args;
  a.forward = result.forward;
  a.backward = backward ? result.backward : NULL;
  size_t bytes = 0;
  assert_true(ops->match_work_bytes(&a, queue_threads(queue), &bytes));
  a.work = aligned_alloc(64, (bytes + GUARD + 63) & ~(size_t)63);
  assert_non_null(a.work);
  memset(a.work, 0xc3, (bytes + GUARD + 63) & ~(size_t)63);
  assert_int_equal(ops->match(queue, &a), STAGE_OK);
  for (size_t i = 0; i < GUARD; i++) assert_int_equal(a.work[bytes + i], 0xc3);
  free(a.work);
  return result;
}

static void free_result(match_result r) {
  free(r.forward);
  free(r.backward);
}

static void check_case(const match_case *c, stage_queue *queue) {
  uint32_t random = 1 + c->first * 31 + c->second + (uint32_t)c->style * 977;
  const match_guide *guide = &guides[c->guide];
  match_args args = {.type = c->type, .guide = c->guide, .tolerance_squared = guide->tolerance_squared};
  void *first = make_values(c, c->first, &random), *second = make_values(c, c->second, &random);
  match_place *from = make_places(guide, true, c->first, &random), *to = make_places(guide, false, c->second, &random);
  args.first = (match_side){first, c->guide ? from : NULL, c->first};
  args.second = (match_side){second, c->guide ? to : NULL, c->second};
  const match_result expected = run(cpu_variant_ops("ref"), NULL, &args, c->backward);
  for (int v = 0; v < VARIANTS; v++) {
    const stage_ops *ops = cpu_variant_ops(variants[v]);
    if (!ops) continue;
    const match_result found = run(ops, queue, &args, c->backward);
    if (memcmp(found.forward, expected.forward, (c->first + GUARD) * sizeof(match_nearest)) != 0 ||
        memcmp(found.backward, expected.backward, (c->second + GUARD) * sizeof(match_nearest)) != 0)
      fail_msg("%s differs: type %d, style %d, %u x %u, guide %d, %d threads", variants[v], (int)c->type, (int)c->style,
               c->first, c->second, (int)c->guide, queue_threads(queue));
    free_result(found);
  }
  free_result(expected);
  free(first);
  free(second);
  free(from);
  free(to);
}

/* Lengths about the sizes of tiles, panels and chunks. */
static void sizes_agree(void **state) {
  (void)state;
  static const uint32_t sizes[][2] = {{0, 0},    {0, 5},   {5, 0},    {1, 1},   {1, 2},    {2, 1},
                                      {3, 3},    {4, 64},  {5, 65},   {7, 63},  {127, 17}, {16, 127},
                                      {129, 31}, {257, 9}, {33, 128}, {61, 190}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int type = 0; type < 2; type++)
      for (int backward = 0; backward < 2; backward++) {
        const match_case c = {(match_type)type, RANDOM, sizes[s][0], sizes[s][1], MATCH_UNGUIDED, backward};
        check_case(&c, NULL);
      }
}

static void values_agree(void **state) {
  (void)state;
  for (int style = 0; style < STYLES; style++)
    for (int type = 0; type < 2; type++) {
      const match_case c = {(match_type)type, (value_style)style, 75, 141, MATCH_UNGUIDED, true};
      check_case(&c, NULL);
    }
}

static void guides_agree(void **state) {
  (void)state;
  for (int guide = 1; guide < 3; guide++)
    for (int type = 0; type < 2; type++)
      for (int backward = 0; backward < 2; backward++) {
        const match_case c = {(match_type)type, FEW_VALUES, 75, 141, (match_guide_kind)guide, backward};
        check_case(&c, NULL);
      }
}

/* Several chunks on several threads, with ties everywhere, so that a result that depends on the order of work
 * differs. */
static void threads_agree(void **state) {
  (void)state;
  for (int32_t threads = 2; threads <= 5; threads += 3) {
    stage_queue *queue = malloc(queue_bytes(threads));
    assert_non_null(queue);
    assert_true(queue_start(queue, threads));
    for (int style = 0; style < STYLES; style++)
      for (int type = 0; type < 2; type++) {
        const match_case c = {(match_type)type, (value_style)style, 301, 150, MATCH_UNGUIDED, true};
        check_case(&c, queue);
      }
    const match_case guided = {MATCH_U8, ALL_EQUAL, 301, 150, MATCH_HOMOGRAPHY, true};
    check_case(&guided, queue);
    queue_stop(queue);
    free(queue);
  }
}

/* More candidates than a key can number, with the nearest in the last vectors; then all squared distances equal. */
static void many_candidates_agree(void **state) {
  (void)state;
  const match_case few = {MATCH_U8, FEW_VALUES, 6, 17000, MATCH_UNGUIDED, true};
  check_case(&few, NULL);
  const match_case equal = {MATCH_U8, ALL_EQUAL, 5, 8193, MATCH_UNGUIDED, true};
  check_case(&equal, NULL);
  const match_case floats = {MATCH_F32, FEW_VALUES, 5, 9000, MATCH_UNGUIDED, true};
  check_case(&floats, NULL);
}

/* The reference on lists with known results. */
static void reference_is_right(void **state) {
  (void)state;
  uint8_t a[2 * MATCH_LENGTH] = {0}, b[4 * MATCH_LENGTH];
  memset(a + MATCH_LENGTH, 255, MATCH_LENGTH);
  memset(b, 0, sizeof b);
  b[0] = 3;                /* squared distance 9 from a[0] */
  b[MATCH_LENGTH + 1] = 2; /* 4, and so is the next */
  b[2 * MATCH_LENGTH + 2] = 2;
  memset(b + 3 * MATCH_LENGTH, 254, MATCH_LENGTH); /* 128 from a[1] */
  match_nearest forward[2], backward[4];
  const match_args args = {.first = {a, NULL, 2}, .second = {b, NULL, 4}, .forward = forward, .backward = backward};
  assert_int_equal(cpu_variant_ops("ref")->match(NULL, &args), STAGE_OK);
  assert_int_equal(forward[0].nearest, 1);
  assert_int_equal(forward[0].second, 2);
  assert_true(forward[0].nearest_squared == 4.0f && forward[0].second_squared == 4.0f);
  assert_int_equal(forward[1].nearest, 3);
  assert_true(forward[1].nearest_squared == 128.0f);
  assert_int_equal(forward[1].second, 0);
  assert_true(forward[1].second_squared == (float)(127 * 255 * 255 + 252 * 252));
  assert_int_equal(backward[3].nearest, 1);
  assert_int_equal(backward[3].second, 0);
  assert_true(backward[3].second_squared == (float)(128 * 254 * 254));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reference_is_right), cmocka_unit_test(sizes_agree),
                                     cmocka_unit_test(values_agree),       cmocka_unit_test(guides_agree),
                                     cmocka_unit_test(threads_agree),      cmocka_unit_test(many_candidates_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
