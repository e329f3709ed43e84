/* The public 1-D convolution against long double: every length up to 1100 and larger primes, fewer and more taps than
 * samples, all border modes, every output; both types within the documented bound. */

#include "tests/support/test.h"

#include "tests/support/array_maker.h"
#include "tests/support/primitive_oracle.h"

enum { LONGEST = 70001, TAPS_MAX = 4001 };

typedef struct fixture {
  hs_context *context; /* context with three threads */
  double taps[TAPS_MAX];
  double signal[LONGEST], out[LONGEST];
  float signal_f32[LONGEST], out_f32[LONGEST];
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  hs_options options;
  assert_non_null(f);
  assert_int_equal(hs_options_init(&options, HS_PROFILE_LOWE), HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = 3;
  assert_int_equal(hs_create(&f->context, &options), HS_OK);
  array_fill(f->taps, PRIM_F64, TAPS_MAX, CONTENT_RANDOM, 77);
  array_fill(f->signal, PRIM_F64, LONGEST, CONTENT_RANDOM, 78);
  array_fill(f->signal_f32, PRIM_F32, LONGEST, CONTENT_RANDOM, 79);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  SCOPED_MEMORY fixture *f = *state;
  hs_destroy(f->context);
  return 0;
}

/* Outputs first, first + step, ... of one row; the smallest normal number lets products underflow. */
static void check_outputs(const hs_array *signal, size_t row, const hs_array *out, const double *taps, size_t m,
                          hs_ends ends, size_t step) {
  const bool single = signal->type == HS_ELEMENT_F32;
  for (size_t i = 0; i < signal->width; i += step) {
    long double magnitude;
    const long double expected = oracle_convolve(signal, row, i, taps, m, ends, &magnitude);
    const double got = oracle_element(out, i, row);
    const long double bound = 4.0L * (single ? 0x1p-24L : 0x1p-53L) * magnitude + (single ? 0x1p-140L : 0x1p-1060L);
    if (!(fabsl((long double)got - expected) <= bound))
      fail_msg("type %d, %zu samples, %zu taps, ends %d: output %zu is %a, expected %La, bound %La", (int)signal->type,
               signal->width, m, (int)ends, i, got, expected, bound);
  }
}

/* Both types; the context's threads and the calling thread alone give the same bytes. */
static void check_length(fixture *f, size_t n, size_t m, hs_ends ends, size_t step) {
  const hs_array signal = {f->signal, n, 1, 0, HS_ELEMENT_F64}, out = {f->out, n, 1, 0, HS_ELEMENT_F64};
  const hs_array signal_f32 = {f->signal_f32, n, 1, 0, HS_ELEMENT_F32}, out_f32 = {f->out_f32, n, 1, 0, HS_ELEMENT_F32};
  assert_int_equal(hs_convolve1d(f->context, &signal, f->taps, m, ends, f->out, 0), HS_OK);
  assert_int_equal(hs_convolve1d(f->context, &signal_f32, f->taps, m, ends, f->out_f32, 0), HS_OK);
  check_outputs(&signal, 0, &out, f->taps, m, ends, step);
  check_outputs(&signal_f32, 0, &out_f32, f->taps, m, ends, step);
}

TEST(test_lengths) {
  for (size_t n = 1; n <= 1100; n++) {
    check_length(*state, n, 5, (hs_ends)(n % 3), 1);
    check_length(*state, n, n % 4 * 2 + 1, (hs_ends)((n / 4) % 3), 1);
    if (n % 5 == 1) check_length(*state, n, 9 + 2 * (n % 11), (hs_ends)((n / 5) % 3), 1);
  }
}

TEST(test_few_samples) {
  static const size_t taps[] = {1, 3, 5, 7, 9, 11, 63, 255};
  for (size_t n = 1; n <= 40; n++)
    for (size_t k = 0; k < sizeof taps / sizeof taps[0]; k++)
      for (int ends = HS_ENDS_ZERO; ends <= HS_ENDS_REFLECT_101; ends++)
        check_length(*state, n, taps[k], (hs_ends)ends, 1);
}

/* Units of several threads, windows at the ends, and more taps than any window. */
TEST(test_long) {
  for (int ends = HS_ENDS_ZERO; ends <= HS_ENDS_REFLECT_101; ends++) {
    check_length(*state, LONGEST, 5, (hs_ends)ends, 1);
    check_length(*state, 32771, 7, (hs_ends)ends, 1);
    check_length(*state, 40009, 31, (hs_ends)ends, 7);
    check_length(*state, 6007, TAPS_MAX, (hs_ends)ends, 97);
    check_length(*state, 503, 1999, (hs_ends)ends, 11);
  }
}

#define SHARED_TEST(NAME) TEST_GIVEN(NAME, fixture, f, NULL, NULL)

SHARED_TEST(test_threads_agree) {
  static double alone[LONGEST];
  static const size_t taps[] = {5, 21};
  const hs_array signal = {f->signal, LONGEST, 1, 0, HS_ELEMENT_F64};
  for (size_t k = 0; k < 2; k++) {
    assert_int_equal(hs_convolve1d(NULL, &signal, f->taps, taps[k], HS_ENDS_REFLECT_101, alone, 0), HS_OK);
    assert_int_equal(hs_convolve1d(f->context, &signal, f->taps, taps[k], HS_ENDS_REFLECT_101, f->out, 0), HS_OK);
    assert_memory_equal(alone, f->out, sizeof alone);
  }
}

/* Rows are separate signals; their padding is unchanged. */
SHARED_TEST(test_rows) {
  enum { WIDTH = 37, HEIGHT = 200, IN_STRIDE = 41, OUT_STRIDE = 43 };
  for (size_t m = 1; m < 60; m += m < 9 ? 2 : 24) {
    const hs_array signal = {f->signal, WIDTH, HEIGHT, IN_STRIDE * sizeof(double), HS_ELEMENT_F64};
    const hs_array out = {f->out, WIDTH, HEIGHT, OUT_STRIDE * sizeof(double), HS_ELEMENT_F64};
    for (size_t i = 0; i < (size_t)HEIGHT * OUT_STRIDE; i++) f->out[i] = -7.0;
    assert_int_equal(
        hs_convolve1d(f->context, &signal, f->taps, m, HS_ENDS_REPLICATE, f->out, OUT_STRIDE * sizeof(double)), HS_OK);
    for (size_t y = 0; y < HEIGHT; y++) {
      check_outputs(&signal, y, &out, f->taps, m, HS_ENDS_REPLICATE, 1);
      for (size_t x = WIDTH; x < OUT_STRIDE && y + 1 < HEIGHT; x++) assert_true(f->out[y * OUT_STRIDE + x] == -7.0);
    }
  }
}

/* Asymmetric taps show the direction: an impulse becomes the taps in their order. */
SHARED_TEST(test_direction) {
  const double impulse[7] = {0, 0, 0, 1, 0, 0, 0}, taps[3] = {1, 2, 3};
  const double expected[7] = {0, 0, 1, 2, 3, 0, 0};
  double out[7];
  const hs_array signal = {impulse, 7, 1, 0, HS_ELEMENT_F64};
  assert_int_equal(hs_convolve1d(f->context, &signal, taps, 3, HS_ENDS_ZERO, out, 0), HS_OK);
  assert_memory_equal(out, expected, sizeof out);
}

/* Infinities stay where a plain sum has them; every NaN is the positive quiet one. */
SHARED_TEST(test_special_values) {
  double x[64], out[64];
  const uint64_t nan_bits = 0x7ff8000000000000u;
  for (size_t m = 1; m <= 11; m += 2) {
    const hs_array signal = {x, 64, 1, 0, HS_ELEMENT_F64};
    for (int i = 0; i < 64; i++) x[i] = 1.0;
    x[20] = (double)INFINITY;
    x[50] = -(double)NAN;
    for (size_t j = 0; j < m; j++) f->taps[j] = 0.5;
    assert_int_equal(hs_convolve1d(f->context, &signal, f->taps, m, HS_ENDS_ZERO, out, 0), HS_OK);
    assert_true(isinf(out[20]) && out[20] > 0.0 && isfinite(out[35]));
    assert_memory_equal(&out[50], &nan_bits, sizeof nan_bits);
  }
  array_fill(f->taps, PRIM_F64, TAPS_MAX, CONTENT_RANDOM, 77);
}

TESTS_BETWEEN(setup, teardown)
