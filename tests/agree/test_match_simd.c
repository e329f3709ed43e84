/*
 * Matching: every variant equals the reference byte for byte. Lists have awkward lengths, duplicates, ties and extreme
 * values, of bytes and of floats; with and without a guide, for several numbers of threads.
 */
#include "tests/support/test.h"

#include <math.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/threads.h"
#include "stages/match_bound.h"
#include "os/os_process.h"
#include "tests/support/extent.h"
#include "tests/support/stage_planes.h"

static const char *const variants[] = {"sse2", "avx2", "avx512", "avx512vnni", "neon", "neondot"};
enum { VARIANTS = sizeof variants / sizeof variants[0], GUARD = 64 };

typedef enum value_style { RANDOM, FEW_VALUES, ALL_EQUAL, EXTREMES, NEAR_DUPLICATES, NOT_FINITE } value_style;
enum { STYLES = 6 };

typedef struct match_case {
  match_type type;
  value_style style;
  uint32_t first, second;
  int guide; /* index in guides */
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

/* The first entry is no guide; the next two keep at most about a third of the pairs, the last three a few. */
static const match_guide guides[] = {
    {.kind = MATCH_UNGUIDED},
    {.kind = MATCH_HOMOGRAPHY, .matrix = {1.02, 0.03, -4, -0.02, 0.98, 7, 1e-5, 2e-5, 1}, .tolerance_squared = 3600.0},
    {.kind = MATCH_FUNDAMENTAL,
     .matrix = {0, -1e-6, 3e-4, 2e-6, 0, -0.02, -4e-4, 0.02, 0.1},
     .tolerance_squared = 400.0},
    {.kind = MATCH_HOMOGRAPHY, .matrix = {1.02, 0.03, -4, -0.02, 0.98, 7, 1e-5, 2e-5, 1}, .tolerance_squared = 2.0},
    {.kind = MATCH_FUNDAMENTAL, .matrix = {0, -1e-6, 3e-4, 2e-6, 0, -0.02, -4e-4, 0.02, 0.1}, .tolerance_squared = 0.5},
    /* lines through integer positions, where a tolerance of 0 keeps pairs */
    {.kind = MATCH_FUNDAMENTAL, .matrix = {0, 0, 0, 0, 0, -1, 0, 1, 2}, .tolerance_squared = 0.0}};
enum { GUIDES = sizeof guides / sizeof guides[0] };

static match_position *make_places(const match_guide *guide, bool first, uint32_t count, uint32_t *random) {
  match_position *positions = malloc(((size_t)count + 1) * sizeof *positions);
  assert_non_null(positions);
  for (uint32_t i = 0; i < count; i++) {
    const float x = i == 3 ? NAN : (float)(stage_random(random) % 200), y = (float)(stage_random(random) % 150);
    positions[i] = first ? match_position_first(guide, x, y) : match_position_second(guide, x, y);
  }
  return positions;
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

typedef stage_status (*match_function)(stage_queue *, const match_args *);

static match_result run_function(match_function match, const stage_ops *ops, stage_queue *queue, const match_args *args,
                                 bool backward) {
  const match_result result = {guarded_list(args->first.count), guarded_list(args->second.count)};
  match_args a = *args;
  a.forward = result.forward;
  a.backward = backward ? result.backward : NULL;
  size_t bytes = 0;
  assert_true(ops->match_work_bytes(&a, queue_threads(queue), &bytes));
  a.work = os_memory_alloc((bytes + GUARD + 63) & ~(size_t)63, 64, false);
  assert_non_null(a.work);
  memset(a.work, 0xc3, (bytes + GUARD + 63) & ~(size_t)63);
  assert_int_equal(match(queue, &a), STAGE_OK);
  for (size_t i = 0; i < GUARD; i++) assert_int_equal(a.work[bytes + i], 0xc3);
  os_memory_free(a.work);
  return result;
}

static match_result run(const stage_ops *ops, stage_queue *queue, const match_args *args, bool backward) {
  return run_function(ops->match, ops, queue, args, backward);
}

static void free_result(match_result r) {
  free(r.forward);
  free(r.backward);
}

static void check_case(const match_case *c, stage_queue *queue) {
  uint32_t random = 1 + c->first * 31 + c->second + (uint32_t)c->style * 977;
  const match_guide *guide = &guides[c->guide];
  match_args args = {.type = c->type, .guide = guide->kind, .tolerance_squared = guide->tolerance_squared};
  SCOPED_MEMORY void *first = make_values(c, c->first, &random), *second = make_values(c, c->second, &random);
  SCOPED_MEMORY match_position *from = make_places(guide, true, c->first, &random),
                               *to = make_places(guide, false, c->second, &random);
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
               c->first, c->second, c->guide, queue_threads(queue));
    free_result(found);
  }
  free_result(expected);
}

/* Lists have lengths close to the sizes of tiles, panels and chunks. */
TEST(sizes_agree) {
  static const uint32_t sizes[][2] = {{0, 0},    {0, 5},   {5, 0},    {1, 1},   {1, 2},    {2, 1},
                                      {3, 3},    {4, 64},  {5, 65},   {7, 63},  {127, 17}, {16, 127},
                                      {129, 31}, {257, 9}, {33, 128}, {61, 190}};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int type = 0; type < 2; type++)
      for (int backward = 0; backward < 2; backward++) {
        if (!extent_pairs(s, (size_t)(2 * type + backward), 4)) continue;
        const match_case c = {(match_type)type, RANDOM, sizes[s][0], sizes[s][1], MATCH_UNGUIDED, backward};
        check_case(&c, NULL);
      }
}

TEST(values_agree) {
  for (int style = 0; style < STYLES; style++)
    for (int type = 0; type < 2; type++) {
      const match_case c = {(match_type)type, (value_style)style, 75, 141, MATCH_UNGUIDED, true};
      check_case(&c, NULL);
    }
}

TEST(guides_agree) {
  static const uint32_t sizes[][2] = {{75, 141}, {3, 255}, {2, 257}, {40, 2100}};
  for (int guide = 1; guide < GUIDES; guide++)
    for (int type = 0; type < 2; type++)
      for (int backward = 0; backward < 2; backward++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
          if (!extent_pairs(s + (size_t)guide, (size_t)(2 * type + backward), 4)) continue;
          const match_case c = {(match_type)type, FEW_VALUES, sizes[s][0], sizes[s][1], guide, backward};
          check_case(&c, NULL);
        }
}

/* Several threads work on several chunks, with ties everywhere, so that a result that depends on the order of work
 * differs. */
TEST(threads_agree) {
  for (int32_t threads = 2; threads <= 5; threads += 3) {
    SCOPED_MEMORY stage_queue *queue = malloc(queue_bytes(threads));
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
  }
}

/* There are more candidates than a key can number. First the nearest are in the last vectors; then all squared
 * distances are equal. */
TEST(many_candidates_agree) {
  const match_case few = {MATCH_U8, FEW_VALUES, 6, 17000, MATCH_UNGUIDED, true};
  check_case(&few, NULL);
  const match_case equal = {MATCH_U8, ALL_EQUAL, 5, 8193, MATCH_UNGUIDED, true};
  check_case(&equal, NULL);
  const match_case floats = {MATCH_F32, FEW_VALUES, 5, 9000, MATCH_UNGUIDED, true};
  check_case(&floats, NULL);
}

/* Makes descriptors like those of pictures, with a few large values. Every third descriptor of the second list is a
 * slightly changed one of the first. */
static uint8_t *make_descriptors(const uint8_t *like, uint32_t count, uint32_t *random) {
  uint8_t *values = malloc((size_t)count * MATCH_LENGTH);
  assert_non_null(values);
  for (uint32_t row = 0; row < count; row++)
    for (size_t k = 0; k < MATCH_LENGTH; k++) {
      const uint32_t v = stage_random(random);
      const uint8_t own = (uint8_t)((v & 255) * (v >> 8 & 255) / 255 * (v >> 16 & 255) / 255);
      const size_t at = (size_t)row * MATCH_LENGTH + k;
      values[at] = like && row % 3 == 0 ? (uint8_t)(like[at] ^ ((v >> 24 & 63) == 0)) : own;
    }
  return values;
}

/* Fails unless both results have equal pairs, when only pairs are wanted. exchanged: pairs from the second list to the
 * first. with_second: the second nearest are compared too. */
static void assert_same_pairs(const match_args *a, const match_result *found, const match_result *expected,
                              bool with_second, const char *variant) {
  const match_nearest *from = a->exchanged ? found->backward : found->forward;
  const match_nearest *to = a->exchanged ? found->forward : found->backward;
  const match_nearest *right = a->exchanged ? expected->backward : expected->forward;
  const match_nearest *right_to = a->exchanged ? expected->forward : expected->backward;
  for (uint32_t i = 0; i < (a->exchanged ? a->second.count : a->first.count); i++) {
    const bool keeps = match_keeps(a->limits, from, to, i);
    const bool equal = with_second
                           ? memcmp(&from[i], &right[i], sizeof from[i]) == 0
                           : from[i].nearest == right[i].nearest && from[i].nearest_squared == right[i].nearest_squared;
    if (keeps != match_keeps(a->limits, right, right_to, i) || (keeps && !equal))
      fail_msg("%s: pair of feature %u differs, exchanged %d, ratio^2 %g, second nearest %d", variant, i, a->exchanged,
               a->limits->ratio_squared, with_second);
  }
}

/* The short form runs one of the two functions for each limit, direction and variant, in turn. */
static void check_pairs(match_args *a, stage_queue *queue) {
  static const match_limits limits[] = {{0.64, 0.0}, {0.25, 0.0}, {0.9, 0.0}, {0.64, 900.0}, {1.0, 0.0}, {0.0, 400.0}};
  const match_result expected = run(cpu_variant_ops("ref"), NULL, a, true);
  for (size_t n = 0; n < sizeof limits / sizeof limits[0] * 2; n++) {
    a->limits = &limits[n / 2];
    a->exchanged = n % 2;
    for (int v = 0; v < VARIANTS; v++) {
      const stage_ops *ops = cpu_variant_ops(variants[v]);
      if (!ops) continue;
      for (int second = 0; second < 2; second++) {
        if (!extent_pairs(n / 2 + n % 2 + (size_t)v, (size_t)second, 2)) continue;
        const match_result found = run_function(second ? ops->match : ops->match_without_second, ops, queue, a, true);
        assert_same_pairs(a, &found, &expected, second, variants[v]);
        free_result(found);
      }
    }
  }
  free_result(expected);
  a->limits = NULL;
}

/* If only pairs are wanted, a bound may rule out candidates, but the pairs stay the same. */
TEST(pairs_agree) {
  static const uint32_t counts[][2] = {{700, 600}, {300, 257}, {65, 1000}, {1, 300}, {900, 100}};
  stage_queue *queue = malloc(queue_bytes(3));
  assert_non_null(queue);
  assert_true(queue_start(queue, 3));
  for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
    uint32_t random = (uint32_t)n + 5;
    const uint32_t most = counts[n][0] > counts[n][1] ? counts[n][0] : counts[n][1];
    uint8_t *first = make_descriptors(NULL, most, &random), *second = make_descriptors(first, counts[n][1], &random);
    match_args a = {.first = {first, NULL, counts[n][0]}, .second = {second, NULL, counts[n][1]}};
    check_pairs(&a, n % 2 ? queue : NULL);
    free(first);
    free(second);
  }
  for (int style = 0; style < NOT_FINITE; style++) {
    uint32_t random = 99;
    const match_case c = {MATCH_U8, (value_style)style, 310, 290, MATCH_UNGUIDED, true};
    uint8_t *first = make_values(&c, c.first, &random), *second = make_values(&c, c.second, &random);
    match_args a = {.first = {first, NULL, c.first}, .second = {second, NULL, c.second}};
    check_pairs(&a, queue);
    free(first);
    free(second);
  }
  queue_stop(queue);
  free(queue);
}

/* Adds a direction of the bound to a descriptor. */
static void add_direction(double *descriptor, int direction, double factor) {
  for (int k = 0; k < MATCH_LENGTH; k++) descriptor[k] += factor * match_bound_directions[direction][k];
}

static void put_descriptor(const double *descriptor, uint8_t *to) {
  for (int k = 0; k < MATCH_LENGTH; k++) to[k] = (uint8_t)lround(fmin(fmax(descriptor[k], 0.0), 255.0));
}

/* Makes a descriptor whose products with the directions are close to their means, so that the bound is narrow. */
static void make_central(double *descriptor) {
  for (int k = 0; k < MATCH_LENGTH; k++) descriptor[k] = 110.0;
  for (int i = 0; i < MATCH_BOUND_VALUES; i++) {
    double product = 0.0, square = 0.0;
    for (int k = 0; k < MATCH_LENGTH; k++) {
      product += match_bound_directions[i][k] * descriptor[k];
      square += match_bound_directions[i][k] * match_bound_directions[i][k];
    }
    add_direction(descriptor, i, (match_bound_means[i] - product) / square);
  }
}

/* A row fails the ratio test after its first two candidates, so the bound rules out the third one. The fourth one would
 * pass, if the third one were not there. */
TEST(ruled_out_candidates_count) {
  enum { ROWS = 257, COLUMNS = 300, ROW = 7, TRIALS = 6, CANDIDATES = 4 };
  static const size_t places[CANDIDATES] = {3, 5, 70, 200};
  SCOPED_MEMORY uint8_t *rows = malloc(ROWS * MATCH_LENGTH), *columns = malloc(COLUMNS * MATCH_LENGTH);
  uint32_t random = 8;
  assert_true(rows && columns);
  for (int trial = 0; trial < TRIALS; trial++) {
    const double squared[CANDIDATES] = {1.0, 1.0, 0.91 + 0.01 * trial, 0.61}; /* relative to the first candidate */
    double row[MATCH_LENGTH];
    for (size_t i = 0; i < ROWS * MATCH_LENGTH; i++) rows[i] = stage_random(&random) >> 8 & 1 ? 255 : 0;
    for (size_t i = 0; i < COLUMNS * MATCH_LENGTH; i++) columns[i] = stage_random(&random) >> 8 & 1 ? 255 : 0;
    make_central(row);
    put_descriptor(row, rows + ROW * MATCH_LENGTH);
    for (int n = 0; n < CANDIDATES; n++) {
      double other[MATCH_LENGTH];
      memcpy(other, row, sizeof other);
      for (int k = 0; k < 2; k++) add_direction(other, 2 * (trial + n) + 1 + k, sqrt(squared[n] / 2.0) * 220.0 / 320.0);
      put_descriptor(other, columns + places[n] * MATCH_LENGTH);
    }
    for (size_t exchanged = 0; exchanged < 2; exchanged++) {
      if (!extent_pairs((size_t)trial, exchanged, 2)) continue;
      match_args a = {.first = {rows, NULL, ROWS}, .second = {columns, NULL, COLUMNS}};
      if (exchanged) a = (match_args){.first = {columns, NULL, COLUMNS}, .second = {rows, NULL, ROWS}};
      check_pairs(&a, NULL);
    }
  }
}

/* The bound holds: MATCH_BOUND_NORM bounds the directions (Gershgorin's circles), and no two descriptors are nearer
 * than the bound. */
TEST(bound_is_below) {
  uint32_t random = 3;
  for (int i = 0; i < MATCH_BOUND_VALUES; i++) {
    double circle = 0.0;
    for (int j = 0; j < MATCH_BOUND_VALUES; j++) {
      double product = 0.0;
      for (int k = 0; k < MATCH_LENGTH; k++) product += match_bound_directions[i][k] * match_bound_directions[j][k];
      circle += product < 0.0 ? -product : product;
    }
    assert_true(circle <= MATCH_BOUND_NORM * MATCH_BOUND_NORM);
  }
  for (int n = 0; n < 20000; n++) {
    const int32_t fineness = 1 + n / 6 % MATCH_BOUND_FINENESS_MAX;
    const match_case c = {MATCH_U8, (value_style)(n % NOT_FINITE), 2, 2, MATCH_UNGUIDED, false};
    uint8_t *pair = n % 6 == 5 ? make_descriptors(NULL, 2, &random) : make_values(&c, 2, &random);
    match_bound bound[2];
    int32_t square = 0;
    for (int d = 0; d < 2; d++) {
      int32_t sums[MATCH_BOUND_VALUES] = {0};
      for (int i = 0; i < MATCH_BOUND_VALUES; i++)
        for (int k = 0; k < MATCH_LENGTH; k++) sums[i] += match_bound_directions[i][k] * pair[d * MATCH_LENGTH + k];
      bound[d] = match_bound_of(sums, fineness);
      assert_in_range(bound[d].norm, 0, MATCH_BOUND_NORM_MAX(fineness));
      for (int i = 0; i < MATCH_BOUND_VALUES; i++)
        assert_true(abs(bound[d].values[i]) <= fineness * (int)MATCH_BOUND_MAX);
    }
    for (int i = 0; i < MATCH_BOUND_VALUES; i++) {
      const int32_t difference = bound[0].values[i] - bound[1].values[i];
      square += difference * difference;
    }
    const double distance = (double)match_square_u8(pair, pair + MATCH_LENGTH);
    assert_true((double)square <= match_bound_limit(distance, bound[0].error + bound[1].error, fineness));
    free(pair);
  }
}

/* The reference on lists with known results. */
TEST(reference_is_right) {
  uint8_t a[2 * MATCH_LENGTH] = {0}, b[4 * MATCH_LENGTH];
  memset(a + MATCH_LENGTH, 255, MATCH_LENGTH);
  memset(b, 0, sizeof b);
  b[0] = 3;                /* at squared distance 9 from a[0] */
  b[MATCH_LENGTH + 1] = 2; /* at squared distance 4, as the next one */
  b[2 * MATCH_LENGTH + 2] = 2;
  memset(b + 3 * MATCH_LENGTH, 254, MATCH_LENGTH); /* at squared distance 128 from a[1] */
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
