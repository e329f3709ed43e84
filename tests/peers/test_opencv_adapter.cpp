/*
 * hartsift_opencv.hpp in OpenCV's own programs: the same features as the library's, matched, verified and stitched.
 */
#include <string>

#include <opencv2/calib3d.hpp>
#include <opencv2/features2d.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/stitching.hpp>

#include "pipeline/include/hartsift_opencv.hpp"

#include "tests/support/test.h"

namespace {

cv::Mat scene(int width, int height, const double *homography) {
  hs_image image;
  assert_int_equal(hs_render_scene(width, height, 5, homography, nullptr, &image), HS_OK);
  const size_t stride = image.stride_bytes ? image.stride_bytes : size_t(width);
  const cv::Mat copy = cv::Mat(height, width, CV_8U, const_cast<void *>(image.data), stride).clone();
  hs_image_free(&image);
  return copy;
}

cv::Ptr<hartsift::SIFT> on_cpu(hs_profile profile) {
  hs_options options;
  assert_int_equal(hs_options_init(&options, profile), HS_OK);
  options.device = HS_DEVICE_CPU;
  return hartsift::SIFT::create(options);
}

/* OpenCV's exceptions must not become cmocka's failures: an assertion that jumps over C++ frames does not unwind
 * them. */
bool throws(cv::Feature2D &sift, const cv::Mat &image, const cv::Mat &mask) {
  std::vector<cv::KeyPoint> keypoints;
  cv::Mat descriptors;
  try {
    sift.detectAndCompute(image, mask, keypoints, descriptors);
  } catch (const cv::Exception &) {
    return true;
  }
  return false;
}

TEST(test_same_features) {
  const cv::Mat image = scene(300, 220, nullptr);
  for (int p = 0; p <= HS_PROFILE_COLMAP; p++) {
    const cv::Ptr<hartsift::SIFT> sift = on_cpu(hs_profile(p));
    std::vector<cv::KeyPoint> keypoints;
    cv::Mat descriptors;
    sift->detectAndCompute(image, cv::noArray(), keypoints, descriptors);
    hs_image view = {};
    view.data = image.data;
    view.width = image.cols;
    view.height = image.rows;
    view.stride_bytes = image.step[0];
    hs_features f = {};
    assert_int_equal(hs_extract(sift->context(), &view, nullptr, &f), HS_OK);
    assert_true(f.count > 50 && f.count == keypoints.size() && descriptors.rows == int(f.count));
    assert_int_equal(descriptors.type(), sift->descriptorType());
    for (size_t i = 0; i < f.count; i++) {
      const hs_keypoint &k = f.keypoints[i];
      assert_true(keypoints[i].pt.x == k.x && keypoints[i].pt.y == k.y && keypoints[i].size == 2.0f * k.sigma);
      assert_true(std::abs(keypoints[i].angle - double(k.orientation) * 180.0 / CV_PI) < 1e-3);
      assert_memory_equal(descriptors.ptr(int(i)),
                          static_cast<const char *>(f.descriptors) + i * 128 * descriptors.elemSize(),
                          128 * descriptors.elemSize());
    }
    /* Separate detection and description give the same result, except for angles that were converted to degrees. */
    std::vector<cv::KeyPoint> again;
    cv::Mat described;
    sift->detect(image, again);
    sift->compute(image, again, described);
    assert_true(again.size() == keypoints.size() && described.size() == descriptors.size());
    for (int i = 0; i < described.rows; i++)
      assert_true(cv::norm(described.row(i), descriptors.row(i)) < 0.02 * cv::norm(descriptors.row(i)));
    hs_features_free(&f);
  }
}

TEST(test_images_and_masks) {
  const cv::Mat image = scene(200, 160, nullptr);
  const cv::Ptr<hartsift::SIFT> sift = on_cpu(HS_PROFILE_OPENCV);
  std::vector<cv::KeyPoint> whole, part, other;
  cv::Mat expected, descriptors, colour, wide, real;
  sift->detectAndCompute(image, cv::noArray(), whole, expected);
  cv::Mat mask = cv::Mat::zeros(image.size(), CV_8U);
  mask.colRange(0, 100).setTo(255);
  sift->detectAndCompute(image, mask, part, descriptors);
  assert_true(!part.empty() && part.size() < whole.size());
  for (const cv::KeyPoint &k : part) assert_true(k.pt.x < 100.0f);
  /* Gray in other layouts: exact, because the weights of colours add to one. */
  cv::cvtColor(image, colour, cv::COLOR_GRAY2BGR);
  sift->detectAndCompute(colour, cv::noArray(), other, descriptors);
  assert_true(other.size() == whole.size() && cv::countNonZero(descriptors != expected) == 0);
  cv::cvtColor(image, colour, cv::COLOR_GRAY2BGRA);
  sift->detectAndCompute(colour, cv::noArray(), other, descriptors);
  assert_true(other.size() == whole.size());
  image.convertTo(wide, CV_16U, 257.0);
  sift->detectAndCompute(wide, cv::noArray(), other, descriptors);
  assert_true(std::abs(int(other.size()) - int(whole.size())) <= int(whole.size()) / 20);
  image.convertTo(real, CV_32F, 1.0 / 255.0);
  sift->detectAndCompute(real, cv::noArray(), other, descriptors);
  assert_true(std::abs(int(other.size()) - int(whole.size())) <= int(whole.size()) / 20);
  /* A view into a larger picture. */
  sift->detectAndCompute(image(cv::Rect(20, 30, 100, 90)), cv::noArray(), other, descriptors);
  assert_true(!other.empty());
  /* Empty and invalid input. */
  sift->detectAndCompute(cv::Mat(60, 60, CV_8U, cv::Scalar(9)), cv::noArray(), other, descriptors);
  assert_true(other.empty() && descriptors.empty());
  assert_true(throws(*sift, cv::Mat(), cv::Mat()));
  assert_true(throws(*sift, cv::Mat(50, 50, CV_64F, cv::Scalar(0)), cv::Mat()));
  assert_true(throws(*sift, cv::Mat(50, 50, CV_8UC2, cv::Scalar(0)), cv::Mat()));
  assert_true(throws(*sift, image, cv::Mat(10, 10, CV_8U, cv::Scalar(1))));
  assert_true(throws(*sift, image, cv::Mat(image.size(), CV_32F, cv::Scalar(1))));
}

/* Keypoints of OpenCV's class, described by both. */
TEST(test_exchange_with_opencv) {
  const cv::Mat image = scene(320, 240, nullptr);
  const cv::Ptr<cv::Feature2D> theirs = cv::SIFT::create();
  const cv::Ptr<hartsift::SIFT> ours = hartsift::SIFT::create();
  std::vector<cv::KeyPoint> keypoints;
  cv::Mat by_them, by_us;
  theirs->detectAndCompute(image, cv::noArray(), keypoints, by_them);
  const std::vector<cv::KeyPoint> before = keypoints;
  ours->compute(image, keypoints, by_us);
  assert_true(keypoints.size() == before.size() && by_us.rows == by_them.rows && by_us.type() == by_them.type());
  int close = 0;
  for (int i = 0; i < by_us.rows; i++) close += cv::norm(by_us.row(i), by_them.row(i)) < 20.0;
  assert_true(close > 0.98 * by_us.rows);
  /* Ours described by OpenCV. */
  ours->detectAndCompute(image, cv::noArray(), keypoints, by_us);
  theirs->compute(image, keypoints, by_them);
  assert_int_equal(by_them.rows, by_us.rows);
  close = 0;
  for (int i = 0; i < by_us.rows; i++) close += cv::norm(by_us.row(i), by_them.row(i)) < 20.0;
  assert_true(close > 0.98 * by_us.rows);
  /* Without angles they get their orientations; keypoints outside the picture are removed. */
  for (cv::KeyPoint &k : keypoints) k.angle = -1.0f;
  keypoints.push_back(cv::KeyPoint(-1000.0f, 5.0f, 4.0f, 0.0f));
  ours->compute(image, keypoints, by_us);
  assert_true(!keypoints.empty() && by_us.rows == int(keypoints.size()));
  for (const cv::KeyPoint &k : keypoints) assert_true(k.angle >= 0.0f && k.angle < 360.0f && k.pt.x > -100.0f);
}

/* A sigma below the assumed blur of a doubled image. */
TEST(test_small_sigma) {
  const cv::Mat image = scene(300, 220, nullptr);
  const cv::Ptr<cv::Feature2D> theirs = cv::SIFT::create(0, 3, 0.04, 10, 0.9);
  cv::Ptr<hartsift::SIFT> ours;
  try {
    ours = hartsift::SIFT::create(0, 3, 0.04, 10, 0.9);
  } catch (const cv::Exception &) {}
  assert_false(ours.empty());
  std::vector<cv::KeyPoint> a, b;
  theirs->detect(image, a);
  ours->detect(image, b);
  assert_true(a.size() > 100);
  assert_true(50 * std::abs(int(a.size()) - int(b.size())) <= int(a.size()));
}

TEST(test_matching_flow) {
  const double h[9] = {0.9, -0.12, 40.0, 0.1, 0.95, -12.0, 0.0001, 0.00005, 1.0};
  const cv::Mat one = scene(400, 320, nullptr), two = scene(400, 320, h);
  const cv::Ptr<cv::Feature2D> sift = hartsift::SIFT::create(0, 3, 0.04, 10, 1.6, CV_8U);
  std::vector<cv::KeyPoint> a, b;
  cv::Mat da, db;
  sift->detectAndCompute(one, cv::noArray(), a, da);
  sift->detectAndCompute(two, cv::noArray(), b, db);
  assert_int_equal(da.type(), CV_8U);
  std::vector<cv::DMatch> matches;
  cv::BFMatcher(sift->defaultNorm(), true).match(da, db, matches);
  std::vector<cv::Point2f> from, to;
  for (const cv::DMatch &m : matches) {
    from.push_back(a[size_t(m.queryIdx)].pt);
    to.push_back(b[size_t(m.trainIdx)].pt);
  }
  const cv::Mat found = cv::findHomography(from, to, cv::RANSAC, 2.0);
  assert_false(found.empty());
  double worst = 0;
  for (int i = 0; i < 4; i++) {
    const double x = 80 + 200 * (i % 2), y = 80 + 150 * (i / 2);
    const cv::Mat p = found * (cv::Mat_<double>(3, 1) << x, y, 1.0);
    const double w = h[6] * x + h[7] * y + h[8];
    worst = std::max(worst, std::abs(p.at<double>(0) / p.at<double>(2) - (h[0] * x + h[1] * y + h[2]) / w));
    worst = std::max(worst, std::abs(p.at<double>(1) / p.at<double>(2) - (h[3] * x + h[4] * y + h[5]) / w));
  }
  assert_true(worst < 0.5);
}

std::string data_folder() {
  const char *folder = std::getenv("HARTSIFT_DATA");
  return folder ? folder : HARTSIFT_SOURCE_DIR "/../shared/data";
}

void stitch(const std::vector<cv::Mat> &photos, int least_width) {
  const cv::Ptr<cv::Stitcher> stitcher = cv::Stitcher::create(cv::Stitcher::PANORAMA);
  stitcher->setFeaturesFinder(hartsift::SIFT::create());
  cv::Mat panorama;
  assert_int_equal(stitcher->stitch(photos, panorama), cv::Stitcher::OK);
  assert_true(panorama.cols >= least_width);
}

/* Two views of one scene by a camera that rotates by 14 degrees. An object in the foreground moves, because OpenCV
 * takes views whose matches all agree for copies of each other. */
TEST(test_stitching_scenes) {
  const double f = 700.0, x0 = 320.0, y0 = 240.0, c = std::cos(0.25), s = std::sin(0.25);
  const cv::Matx33d k(f, 0, x0, 0, f, y0, 0, 0, 1), turn(c, 0, -s, 0, 1, 0, s, 0, c);
  const cv::Matx33d h = k * turn * k.inv();
  std::vector<cv::Mat> views;
  const cv::Mat moving = scene(220, 200, nullptr);
  for (int i = 0; i < 2; i++) {
    cv::Mat gray = scene(640, 480, i == 0 ? nullptr : h.val), colour;
    moving.copyTo(gray(cv::Rect(i == 0 ? 380 : 60, i == 0 ? 40 : 250, 220, 200)));
    cv::cvtColor(gray, colour, cv::COLOR_GRAY2BGR);
    views.push_back(colour);
  }
  stitch(views, 700);
}

TEST(test_stitching_photos) {
  const std::vector<cv::Mat> photos = {cv::imread(data_folder() + "/stitching/river/1.jpg"),
                                       cv::imread(data_folder() + "/stitching/river/2.jpg")};
  if (photos[0].empty() || photos[1].empty()) skip_because(NEEDS_PHOTOGRAPHS);
  stitch(photos, photos[0].cols * 5 / 4);
}

} // namespace
