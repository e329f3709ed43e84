/*
 * The sigmas of levels and the filter taps, compared with the C library's functions in double.
 */

#include "tests/support/test.h"

#include "pipeline/context/options.h"
#include "stages/pyramid.h"

static void assert_close(double got, double expected, double relative, const char *what) {
  if (!(fabs(got - expected) <= relative * fabs(expected))) fail_msg("%s: %.17g, expected %.17g", what, got, expected);
}

TEST(test_level_sigmas) {
  for (int32_t scales = 1; scales <= SCALES_MAX; scales++)
    for (int32_t level = 0; level <= scales + 2; level++) {
      const double expected = 1.6 * pow(2.0, (double)level / (double)scales);
      assert_close(scalespace_level_sigma(1.6, scales, level), expected, 1e-15, "level sigma");
    }
  assert_true(scalespace_level_sigma(1.6, 3, 0) == 1.6);
  assert_true(scalespace_level_sigma(1.6, 3, 3) == 3.2);
}

/* Blurs add as squares: each step leads to the next level's blur, for every sigma0 and S. */
TEST(test_steps_lead_from_level_to_level) {
  const double sigmas[] = {0.8, 1.0, 1.6, 2.5, 4.0};
  for (size_t i = 0; i < sizeof sigmas / sizeof sigmas[0]; i++)
    for (int32_t scales = 1; scales <= SCALES_MAX; scales++)
      for (int32_t level = 1; level <= scales + 2; level++) {
        const double from = scalespace_level_sigma(sigmas[i], scales, level - 1);
        const double step = scalespace_step_sigma(sigmas[i], scales, level);
        assert_close(from * from + step * step, pow(scalespace_level_sigma(sigmas[i], scales, level), 2.0), 4e-15,
                     "step");
      }
}

TEST(test_base_sigma) {
  assert_close(scalespace_base_sigma(1.6, 0.5, -1), sqrt(1.6 * 1.6 - 1.0), 1e-15, "doubled");
  assert_close(scalespace_base_sigma(1.6, 0.5, 0), sqrt(1.6 * 1.6 - 0.25), 1e-15, "as given");
  assert_close(scalespace_base_sigma(1.6, 0.5, 3), sqrt(1.6 * 1.6 - 0.0625 * 0.0625), 1e-15, "thinned by 8");
  assert_close(scalespace_base_sigma(1.6, 0.8, -1), 0.1, 1e-15, "as blurred as level 0");
  assert_close(scalespace_base_sigma(1.6, 1.6, 0), 0.1, 1e-15, "as blurred as level 0, not doubled");
}

/* Compares taps with exp of the C library: each is within one rounding to float of the exact quotient. */
static void check_taps(double sigma, author_rule rule) {
  gaussian_filter f;
  scalespace_filter(sigma, rule, &f);
  double exact[FILTER_RADIUS_MAX + 1], sum = 0.0, float_sum = 0.0;
  for (int32_t j = 0; j <= f.radius; j++) {
    exact[j] = exp(-0.5 * (double)j * (double)j / (sigma * sigma));
    sum += j == 0 ? exact[j] : 2.0 * exact[j];
  }
  for (int32_t j = 0; j <= FILTER_RADIUS_MAX; j++) {
    if (j > f.radius) {
      assert_true(f.taps[j] == 0.0f);
      continue;
    }
    assert_close((double)f.taps[j], exact[j] / sum, 6.1e-8, "tap");
    assert_true(j == 0 || f.taps[j] < f.taps[j - 1]);
    float_sum += (double)f.taps[j] * (j == 0 ? 1.0 : 2.0);
  }
  assert_close(float_sum, 1.0, 6.1e-8, "sum of taps");
}

TEST(test_taps) {
  for (double sigma = 0.1; sigma < 28.0; sigma += 0.37)
    for (int rule = RULE_LOWE; rule <= RULE_VLFEAT; rule++) check_taps(sigma, (author_rule)rule);
}

static int32_t radius_of(double sigma, author_rule rule) {
  gaussian_filter f;
  scalespace_filter(sigma, rule, &f);
  return f.radius;
}

TEST(test_radii) {
  /* Multiples of 1/64 are exact. For some of them 4 sigma is an integer, or 8 sigma + 1 ends in one half. */
  for (int32_t i = 7; i < 64 * 30; i++) {
    const double sigma = (double)i / 64.0;
    const int32_t lowe = (int32_t)ceil(4.0 * sigma);
    assert_int_equal(radius_of(sigma, RULE_LOWE), lowe);
    assert_int_equal(radius_of(sigma, RULE_VLFEAT), lowe > 1 ? lowe : 1);
    /* OpenCV computes ksize = cvRound(sigma * 4 * 2 + 1) | 1, where cvRound is lrint */
    assert_int_equal(radius_of(sigma, RULE_OPENCV), (int32_t)((lrint(sigma * 4.0 * 2.0 + 1.0) | 1) / 2));
  }
  assert_int_equal(radius_of(0.6875, RULE_OPENCV), 3); /* 6.5 taps are rounded to 6 */
  assert_int_equal(radius_of(0.8125, RULE_OPENCV), 4); /* 7.5 taps are rounded to 8 */
}

/* No option exceeds the largest radius that the taps array holds. */
TEST(test_options_stay_below_the_largest_radius) {
  for (int rule = RULE_LOWE; rule <= RULE_VLFEAT; rule++) {
    for (int32_t scales = 1; scales <= SCALES_MAX; scales++)
      for (int32_t level = 1; level <= scales + 2; level++)
        assert_true(radius_of(scalespace_step_sigma(4.0, scales, level), (author_rule)rule) < FILTER_RADIUS_MAX);
    assert_true(radius_of(scalespace_base_sigma(4.0, 0.0, 0), (author_rule)rule) < FILTER_RADIUS_MAX);
  }
}
