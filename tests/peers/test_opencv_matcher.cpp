/*
 * Matching against OpenCV's BFMatcher: the same two nearest of every descriptor, the same mutual matches. Both search
 * exhaustively, and OpenCV's own float descriptors hold integers, whose squares both compute exactly; so only the order
 * of equally distant candidates may differ.
 */

#include <opencv2/features2d.hpp>

#include "tests/peers/peer_compare.hpp"

#include "tests/support/test.h"

namespace {

const double view[9] = {1.04, 0.06, -12.0, -0.05, 1.03, 9.0, 1e-5, -1e-5, 1.0};

struct lists {
  hs_context *context = nullptr;
  hs_features features[2] = {};
  cv::Mat rows[2];

  explicit lists(hs_descriptor_type type) {
    hs_options options;
    assert_int_equal(hs_options_init(&options, HS_PROFILE_OPENCV), HS_OK);
    options.device = HS_DEVICE_CPU;
    options.descriptor = type;
    assert_int_equal(hs_create(&context, &options), HS_OK);
    for (int i = 0; i < 2; i++) {
      hs_image image;
      assert_int_equal(hs_render_scene(480, 360, 21, i ? view : nullptr, nullptr, &image), HS_OK);
      assert_int_equal(hs_extract(context, &image, nullptr, &features[i]), HS_OK);
      hs_image_free(&image);
      rows[i] = cv::Mat(int(features[i].count), HS_DESCRIPTOR_LENGTH, type == HS_DESCRIPTOR_U8 ? CV_8U : CV_32F,
                        features[i].descriptors);
    }
    assert_true(features[0].count > 500 && features[1].count > 500);
  }

  ~lists() {
    hs_features_free(&features[0]);
    hs_features_free(&features[1]);
    hs_destroy(context);
  }
};

void nearest_two_agree(hs_descriptor_type type) {
  lists l(type);
  std::vector<hs_nearest> ours(l.features[0].count);
  assert_int_equal(hs_find_nearest(l.context, &l.features[0], &l.features[1], nullptr, ours.data()), HS_OK);
  std::vector<std::vector<cv::DMatch>> theirs;
  cv::BFMatcher(cv::NORM_L2).knnMatch(l.rows[0], l.rows[1], theirs, 2);
  assert_int_equal(theirs.size(), ours.size());
  for (size_t i = 0; i < ours.size(); i++) {
    const cv::DMatch &first = theirs[i][0], &second = theirs[i][1];
    assert_true(first.distance == std::sqrt(ours[i].nearest_squared));
    assert_true(second.distance == std::sqrt(ours[i].second_squared));
    const bool tie = ours[i].nearest_squared == ours[i].second_squared;
    assert_true(tie || first.trainIdx == int(ours[i].nearest));
  }
}

TEST(bytes_agree) { nearest_two_agree(HS_DESCRIPTOR_U8); }
TEST(floats_agree) { nearest_two_agree(HS_DESCRIPTOR_F32); }

TEST(mutual_matches_agree) {
  lists l(HS_DESCRIPTOR_F32);
  hs_match_options options;
  hs_matches ours = {};
  assert_int_equal(hs_match_options_init(&options), HS_OK);
  options.ratio = 0.0;
  assert_int_equal(hs_match(l.context, &l.features[0], &l.features[1], &options, &ours), HS_OK);
  std::vector<cv::DMatch> theirs;
  cv::BFMatcher(cv::NORM_L2, true).match(l.rows[0], l.rows[1], theirs);
  assert_int_equal(theirs.size(), ours.count);
  for (size_t i = 0; i < ours.count; i++) {
    assert_int_equal(theirs[i].queryIdx, ours.pairs[i].first);
    assert_int_equal(theirs[i].trainIdx, ours.pairs[i].second);
    assert_true(theirs[i].distance == ours.pairs[i].distance);
  }
  hs_matches_free(&ours);
}

} /* namespace */
