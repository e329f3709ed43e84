/*
 * Two-view geometry: every SIMD variant this machine can run equals the scalar one byte for byte, with any number of
 * matches and awkward coordinates.
 */

#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "cpu/ref/stages_ref.h"
#include "pipeline/matching/geometry/search.h"

enum { MATCHES = 200, TRIALS = 400 };

static const char *const names[] = {"sse2", "avx2", "avx512", "neon"};

typedef struct two_view_case {
  double columns[4][MATCHES + 1];
  double matrix[9];
  two_view_matches matches;
} two_view_case;

static double uniform(random_state *random) { return (double)random_next(random) * 0x1p-63 - 1.0; }

/* Makes matches with little motion, as under a nearly trivial model. Every fifth match has an arbitrary position; some
 * positions are not finite. */
static void make_case(uint64_t seed, size_t count, bool is_awkward, two_view_case *c) {
  static const double awkward[8] = {0.0, -0.0, 1.0e-300, 4.9e-324, 1.0e150, -1.0e6, 1.0, -1.0};
  random_state random = {seed};
  const size_t late = seed % 2; /* unaligned */
  for (size_t i = 0; i <= MATCHES; i++) {
    for (int k = 0; k < 2; k++) {
      c->columns[k][i] = uniform(&random);
      c->columns[2 + k][i] = i % 5 == 0 ? uniform(&random) : c->columns[k][i] + 0.01 * uniform(&random);
    }
    if (is_awkward) c->columns[random_below(&random, 4)][i] = awkward[random_below(&random, 8)];
  }
  for (int i = 0; i < 9; i++) c->matrix[i] = (i % 4 == 0 ? 1.0 : 0.0) + 0.01 * uniform(&random);
  if (seed % 3 == 0) /* epipolar geometry of a camera that moves along x, with which many matches agree */
    memcpy(c->matrix, (const double[9]){0.0, 0.0, 0.01, 0.0, 0.0, -1.0, 0.02, 1.0, 0.0}, sizeof c->matrix);
  c->matches =
      (two_view_matches){count, c->columns[0] + late, c->columns[1] + late, c->columns[2] + late, c->columns[3] + late};
}

/* Fails unless the values are equal. NaN equals NaN. */
static void expect_same(const char *what, const char *name, const double *got, const double *expected, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (memcmp(got + i, expected + i, sizeof *got) != 0 && !(isnan(got[i]) && isnan(expected[i])))
      fail_msg("%s of %s: [%zu] is %.17g, not %.17g", what, name, i, got[i], expected[i]);
}

static void check_matches(const two_view_ops *ops, const two_view_case *c, two_view_error kind) {
  const two_view_ops *const ref = &two_view_ops_ref;
  const size_t count = c->matches.count, begin = count / 3;
  double got[MATCHES + 1], expected[MATCHES + 1];
  got[count - begin] = expected[count - begin] = 12345.0;
  ops->errors[kind](c->matrix, &c->matches, begin, count - begin, got);
  ref->errors[kind](c->matrix, &c->matches, begin, count - begin, expected);
  expect_same("errors", ops->name, got, expected, count - begin + 1);
  if (count == 0) return;
  const double limit = 1.0e-4;
  const double full = ref->score[kind](c->matrix, &c->matches, limit, 0.0);
  const double bars[4] = {0.0, full, 0.5 * full, 3.0 * full + 1.0};
  for (int b = 0; b < 4; b++) {
    got[b] = ops->score[kind](c->matrix, &c->matches, limit, bars[b]);
    expected[b] = ref->score[kind](c->matrix, &c->matches, limit, bars[b]);
  }
  expect_same("score", ops->name, got, expected, 4);
  const size_t enough[3] = {0, 20, count};
  for (int e = 0; e < 3; e++) {
    two_view_form form, wanted;
    ops->gather[kind](c->matrix, &c->matches, 4.0 * limit, enough[e], &form);
    ref->gather[kind](c->matrix, &c->matches, 4.0 * limit, enough[e], &wanted);
    expect_same("form", ops->name, form.sum, wanted.sum, TWO_VIEW_FORM_SUMS);
  }
}

static void check_seven(const two_view_ops *ops, const two_view_case *c, uint64_t seed) {
  uint32_t samples[TWO_VIEW_SAMPLES * TWO_VIEW_SEVEN];
  bool may_repeat[TWO_VIEW_SAMPLES];
  random_state random = {seed};
  for (int l = 0; l < (int)TWO_VIEW_SAMPLES; l++)
    random_sample(&random, (uint32_t)c->matches.count, TWO_VIEW_SEVEN, samples + l * (int)TWO_VIEW_SEVEN);
  if (seed % 4 == 0) samples[8] = samples[9]; /* the sample of lane 1 contains one match twice */
  two_view_seven got, expected;
  two_view_ops_ref.seven(&c->matches, samples, NULL, &expected);
  for (int l = 0; l < (int)TWO_VIEW_SAMPLES; l++) may_repeat[l] = expected.repeats[l] || l % 3 == 0;
  for (int pass = 0; pass < 2; pass++) {
    ops->seven(&c->matches, samples, pass == 0 ? NULL : may_repeat, &got);
    assert_memory_equal(got.repeats, expected.repeats, sizeof got.repeats);
    assert_memory_equal(got.usable, expected.usable, sizeof got.usable);
    for (int l = 0; l < (int)TWO_VIEW_SAMPLES; l++) {
      if (!expected.repeats[l]) assert_int_equal(got.dependent[l], expected.dependent[l]);
      for (int r = 0; r < (int)TWO_VIEW_CUBIC_ROOTS; r++)
        for (int i = 0; i < 9 && expected.usable[r][l]; i++)
          expect_same("matrix", ops->name, &got.matrix[r][i][l], &expected.matrix[r][i][l], 1);
    }
  }
  if (seed % 4 == 0) assert_true(got.repeats[1]);
}

static void check_five(const two_view_ops *ops, const two_view_case *c, uint64_t seed) {
  static two_view_five got, expected;
  const two_view_cameras cameras = {{1.1, 1.2, 0.9, 1.0}, {0.01, -0.02, 0.0, 0.03}};
  uint32_t samples[TWO_VIEW_LANES * TWO_VIEW_FIVE];
  random_state random = {seed + 1};
  for (int l = 0; l < (int)TWO_VIEW_LANES; l++)
    random_sample(&random, (uint32_t)c->matches.count, TWO_VIEW_FIVE, samples + l * (int)TWO_VIEW_FIVE);
  if (seed % 4 == 0) samples[5] = samples[6];
  ops->five(&c->matches, &cameras, samples, &got);
  two_view_ops_ref.five(&c->matches, &cameras, samples, &expected);
  assert_int_equal(got.count, expected.count);
  assert_true(got.count >= 0 && got.count <= (int)TWO_VIEW_LANES * (int)TWO_VIEW_FIVE_DEGREE);
  for (int i = 0; i < got.count; i++) {
    assert_int_equal(got.found[i].sample, expected.found[i].sample);
    assert_true(i == 0 || got.found[i].sample >= got.found[i - 1].sample);
    if (seed % 4 == 0) assert_true(got.found[i].sample != 1);
    expect_same("essential matrix", ops->name, got.found[i].essential, expected.found[i].essential, 9);
  }
}

TEST(test_variants) {
  SCOPED_MEMORY two_view_case *const c = malloc(sizeof *c);
  assert_non_null(c);
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    const two_view_ops *const ops = cpu_two_view_of(names[n]);
    if (!ops) continue;
    assert_string_equal(ops->name, names[n]);
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
      make_case(trial, trial % MATCHES, trial % 7 == 0, c);
      check_matches(ops, c, TWO_VIEW_HOMOGRAPHY_ERROR);
      check_matches(ops, c, TWO_VIEW_EPIPOLAR_ERROR);
      if (c->matches.count >= (size_t)TWO_VIEW_SEVEN) check_seven(ops, c, trial);
      if (c->matches.count >= (size_t)TWO_VIEW_FIVE) check_five(ops, c, trial);
    }
    printf("             %s agrees\n", names[n]);
  }
  assert_ptr_equal(cpu_two_view_of("ref"), &two_view_ops_ref);
  assert_null(cpu_two_view_of("none"));
  assert_non_null(cpu_choose_two_view());
}
