/*
 * The primitives against the OpenCV functions with the same contract: equalizeHist byte for byte, calcHist count for
 * count, minMaxLoc, sum, and filter2D of one row within its rounding.
 */
#include <cmath>
#include <vector>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "tests/support/test.h"

namespace {

hs_array array_of(const cv::Mat &m) {
  hs_array a = {m.data, size_t(m.cols), size_t(m.rows), m.step[0], HS_ELEMENT_U8};
  if (m.depth() == CV_16U) a.type = HS_ELEMENT_U16;
  if (m.depth() == CV_32F) a.type = HS_ELEMENT_F32;
  if (m.depth() == CV_64F) a.type = HS_ELEMENT_F64;
  return a;
}

/* Levels in ranges of all widths, some levels only, a few outliers. */
cv::Mat random_levels(cv::RNG &random, int width, int height) {
  cv::Mat m(height, width, CV_8U);
  const int low = random.uniform(0, 255), high = random.uniform(low + 1, 257), step = random.uniform(1, 6);
  random.fill(m, cv::RNG::UNIFORM, low, high);
  m = m / step * step;
  if (random.uniform(0, 3) == 0) m.at<uint8_t>(0, 0) = uint8_t(random.uniform(0, 256));
  return m;
}

void check_equalize(const cv::Mat &in) {
  cv::Mat expected, got(in.size(), CV_8U);
  cv::equalizeHist(in, expected);
  const hs_array a = array_of(in);
  assert_int_equal(hs_equalize(nullptr, &a, got.data, got.step[0]), HS_OK);
  assert_int_equal(cv::countNonZero(got != expected), 0);
}

TEST(test_equalize) {
  cv::RNG random(11);
  for (int i = 0; i < 400; i++) check_equalize(random_levels(random, random.uniform(1, 300), random.uniform(1, 200)));
  check_equalize(cv::Mat(7, 9, CV_8U, cv::Scalar(5)));
  check_equalize(random_levels(random, 800, 600)(cv::Rect(13, 7, 700, 500)));
  check_equalize(random_levels(random, 4500, 4000)); /* sums beyond the integers that a float holds */
}

TEST(test_histogram) {
  cv::RNG random(12);
  const int channel = 0, size = 256;
  const float range[] = {0.0f, 256.0f};
  const float *ranges = range;
  for (int i = 0; i < 60; i++) {
    const cv::Mat m = random_levels(random, random.uniform(1, 700), random.uniform(1, 300));
    cv::Mat mask(m.size(), CV_8U), expected;
    random.fill(mask, cv::RNG::UNIFORM, 0, 3);
    const hs_array a = array_of(m), kept = array_of(mask);
    cv::calcHist(&m, 1, &channel, i % 2 ? mask : cv::Mat(), expected, 1, &size, &ranges);
    uint64_t counts[256];
    assert_int_equal(hs_histogram256(nullptr, &a, i % 2 ? &kept : nullptr, counts), HS_OK);
    for (int k = 0; k < 256; k++) assert_true(double(counts[k]) == double(expected.at<float>(k)));
  }
}

TEST(test_reductions) {
  cv::RNG random(13);
  for (int i = 0; i < 200; i++) {
    static const int depths[] = {CV_8U, CV_16U, CV_32F, CV_64F};
    cv::Mat m(random.uniform(1, 200), random.uniform(1, 300), depths[i % 4]);
    random.fill(m, cv::RNG::UNIFORM, i % 4 < 2 ? 0 : -1, i % 4 == 0 ? 256 : (i % 4 == 1 ? 65536 : 2));
    const hs_array a = array_of(m);
    double low, high, sum, expected_low, expected_high;
    cv::minMaxLoc(m, &expected_low, &expected_high);
    assert_int_equal(hs_reduce_range(nullptr, &a, &low, &high), HS_OK);
    assert_int_equal(hs_reduce_sum(nullptr, &a, &sum), HS_OK);
    assert_true(low == expected_low && high == expected_high);
    assert_true(std::fabs(sum - cv::sum(m)[0]) <= (i % 4 < 2 ? 0.0 : 1e-9 * double(m.total())));
  }
}

/* filter2D correlates: symmetric taps make it a convolution. */
TEST(test_convolution) {
  cv::RNG random(14);
  static const int borders[] = {cv::BORDER_CONSTANT, cv::BORDER_REPLICATE, cv::BORDER_REFLECT_101};
  for (int i = 0; i < 120; i++) {
    const int n = random.uniform(30, 900), m = 2 * random.uniform(0, 14) + 1;
    cv::Mat signal(1, n, CV_64F), taps(1, m, CV_64F), expected, got(1, n, CV_64F);
    random.fill(signal, cv::RNG::UNIFORM, -1, 1);
    random.fill(taps, cv::RNG::UNIFORM, -1, 1);
    for (int k = 0; k < m / 2; k++) taps.at<double>(m - 1 - k) = taps.at<double>(k);
    cv::filter2D(signal, expected, CV_64F, taps, cv::Point(-1, -1), 0.0, borders[i % 3]);
    const hs_array a = array_of(signal);
    assert_int_equal(hs_convolve1d(nullptr, &a, taps.ptr<double>(), size_t(m), hs_ends(i % 3), got.data, got.step[0]),
                     HS_OK);
    assert_true(cv::norm(got, expected, cv::NORM_INF) < 1e-13 * m);
  }
}

} /* namespace */
