/*
 * hartsift_opencv.hpp - hartsift as a cv::Feature2D, for programs that use OpenCV. Header only, C++11; the program
 * links OpenCV (core, features2d) and hartsift.
 *
 *     cv::Ptr<cv::Feature2D> sift = hartsift::SIFT::create();
 *     sift->detectAndCompute(image, cv::noArray(), keypoints, descriptors);
 *
 * It can replace cv::SIFT everywhere: in matchers, cv::Stitcher::setFeaturesFinder, bag of words. The default arguments
 * give profile opencv's features: cv::SIFT's parameters and rules, the same bytes on every machine. Keypoints are
 * OpenCV's: size is twice sigma, angle in degrees clockwise, octave packed as cv::SIFT packs it (octave in bits 0 to 7,
 * layer in bits 8 to 15), so that each can describe the keypoints of the other.
 *
 * Images: 8-bit, 16-bit or float (0 to 1), gray, BGR or BGRA. Failures are cv::Exception with the library's message.
 * One thread at a time may use an object.
 */
#ifndef HARTSIFT_OPENCV_HPP
#define HARTSIFT_OPENCV_HPP

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <opencv2/core.hpp>
#include <opencv2/features2d.hpp>

#include "hartsift.h"

namespace hartsift {

/* Replaces cv::SIFT. All functions of cv::Feature2D work as in cv::SIFT. */
class SIFT : public cv::Feature2D {
public:
  /* cv::SIFT::create's parameters; descriptorType CV_32F (whole numbers 0 to 255, as cv::SIFT's) or CV_8U. */
  static cv::Ptr<SIFT> create(int nfeatures = 0, int nOctaveLayers = 3, double contrastThreshold = 0.04,
                              double edgeThreshold = 10, double sigma = 1.6, int descriptorType = CV_32F) {
    CV_Assert(descriptorType == CV_32F || descriptorType == CV_8U);
    hs_options options;
    hs_options_init(&options, HS_PROFILE_OPENCV);
    options.max_features = nfeatures > 0 ? nfeatures : 0;
    options.scales = nOctaveLayers;
    options.contrast = static_cast<float>(contrastThreshold);
    options.edge = static_cast<float>(edgeThreshold);
    options.sigma = static_cast<float>(sigma);
    /* The doubled image's blur is then at most sigma. */
    options.input_blur = sigma < 1.0 ? static_cast<float>(0.5 * sigma) : 0.5f;
    options.descriptor = descriptorType == CV_8U ? HS_DESCRIPTOR_U8 : HS_DESCRIPTOR_F32;
    return create(options);
  }

  /* Creates an extractor with any options of the library: another profile, a device, float descriptors of unit
     length. */
  static cv::Ptr<SIFT> create(const hs_options &options) { return cv::Ptr<SIFT>(new SIFT(options)); }

  SIFT(const SIFT &) = delete;
  SIFT &operator=(const SIFT &) = delete;
  ~SIFT() override {
    hs_features_free(&found_);
    hs_destroy(context_);
  }

  /* keypoints: in and out. useProvidedKeypoints: the given keypoints are described and nothing is detected. A
     keypoint that cannot be described is removed; one without an angle (negative) gets its orientations and may
     become several. descriptors: a row of 128 for each keypoint, or noArray. mask: empty, or 8-bit of the image's
     size, 0 where keypoints are not wanted. */
  void detectAndCompute(cv::InputArray image, cv::InputArray mask, std::vector<cv::KeyPoint> &keypoints,
                        cv::OutputArray descriptors, bool useProvidedKeypoints = false) override {
    const cv::Mat pixels = image.getMat(), allowed = mask.getMat();
    if (pixels.empty()) CV_Error(cv::Error::StsBadArg, "hartsift: the image is empty");
    const hs_image view = view_of(pixels);
    if (useProvidedKeypoints) {
      describe(view, keypoints);
    } else {
      if (!allowed.empty() && allowed.type() != CV_8UC1)
        CV_Error(cv::Error::StsBadMask, "hartsift: the mask is not 8-bit gray");
      const hs_image mask_view = allowed.empty() ? hs_image() : view_of(allowed);
      const hs_image *mask_or_null = allowed.empty() ? nullptr : &mask_view;
      check(descriptors.needed() ? hs_extract(context_, &view, mask_or_null, &found_)
                                 : hs_detect(context_, &view, mask_or_null, &found_));
      copy_keypoints(keypoints);
    }
    if (descriptors.needed()) copy_descriptors(descriptors);
  }

  /* Required by cv::Feature2D: 128 entries of CV_32F or CV_8U, compared by NORM_L2. */
  int descriptorSize() const override { return HS_DESCRIPTOR_LENGTH; }
  int descriptorType() const override { return options_.descriptor == HS_DESCRIPTOR_U8 ? CV_8U : CV_32F; }
  int defaultNorm() const override { return cv::NORM_L2; }
  bool empty() const override { return false; }
  cv::String getDefaultName() const override { return "Feature2D.HARTSIFT"; }

  /* The library's context, for functions that OpenCV's interface lacks: hs_backend_report, hs_match. */
  hs_context *context() { return context_; }

private:
  explicit SIFT(const hs_options &options) : options_(options), context_(nullptr), found_() {
    char why[512] = "";
    if (options.descriptor == HS_DESCRIPTOR_NONE)
      CV_Error(cv::Error::StsBadArg, "hartsift: a cv::Feature2D needs descriptors");
    if (hs_create_explained(&context_, &options, why, sizeof why) != HS_OK)
      CV_Error(cv::Error::StsError, cv::String("hartsift: ") + why);
    options_.allocator = nullptr;
    options_.expert = nullptr;
  }

  void check(hs_status status) const {
    if (status == HS_OK) return;
    const char *message = hs_last_error(context_);
    CV_Error(cv::Error::StsError, cv::String("hartsift: ") + (*message ? message : hs_status_string(status)));
  }

  static hs_image view_of(const cv::Mat &pixels) {
    hs_image view = hs_image();
    view.data = pixels.data;
    view.width = pixels.cols;
    view.height = pixels.rows;
    view.stride_bytes = pixels.step[0];
    switch (pixels.depth()) {
    case CV_8U:
      view.type = HS_U8;
      break;
    case CV_16U:
      view.type = HS_U16;
      break;
    case CV_32F:
      view.type = HS_F32;
      break;
    default:
      CV_Error(cv::Error::BadDepth, "hartsift: the image is not of 8 or 16 bits or float");
    }
    switch (pixels.channels()) {
    case 1:
      view.layout = HS_GRAY;
      break;
    case 3:
      view.layout = HS_BGR;
      break;
    case 4:
      view.layout = HS_BGRA;
      break;
    default:
      CV_Error(cv::Error::BadNumChannels, "hartsift: the image has neither 1 nor 3 nor 4 channels");
    }
    return view;
  }

  static cv::KeyPoint to_opencv(const hs_keypoint &k) {
    const float degrees = k.orientation * static_cast<float>(180.0 / CV_PI);
    return cv::KeyPoint(k.x, k.y, 2.0f * k.sigma, degrees < 360.0f ? degrees : 0.0f, k.response,
                        (k.octave & 255) | (k.level & 255) << 8);
  }

  hs_keypoint from_opencv(const cv::KeyPoint &k) const {
    hs_keypoint out = hs_keypoint();
    out.x = k.pt.x;
    out.y = k.pt.y;
    out.sigma = 0.5f * k.size;
    out.orientation =
        k.angle < 0.0f ? std::numeric_limits<float>::quiet_NaN() : k.angle * static_cast<float>(CV_PI / 180.0);
    out.response = k.response;
    const int octave = k.octave & 255, layer = k.octave >> 8 & 255;
    if (layer >= 1 && layer <= options_.scales) {
      out.octave = static_cast<int16_t>(octave < 128 ? octave : octave - 256);
      out.level = static_cast<int16_t>(layer);
    }
    return out;
  }

  void copy_keypoints(std::vector<cv::KeyPoint> &keypoints) const {
    keypoints.resize(found_.count);
    for (size_t i = 0; i < found_.count; i++) keypoints[i] = to_opencv(found_.keypoints[i]);
  }

  /* Describes the user's keypoints into found_; updates keypoints. */
  void describe(const hs_image &view, std::vector<cv::KeyPoint> &keypoints) {
    std::vector<hs_keypoint> user;
    std::vector<hs_status> statuses;
    for (size_t i = 0; i < keypoints.size(); i++) user.push_back(from_opencv(keypoints[i]));
    statuses.resize(user.size());
    check(hs_describe(context_, &view, user.data(), user.size(), &found_, statuses.data()));
    std::vector<hs_keypoint> good;
    for (size_t i = 0; i < user.size(); i++)
      if (statuses[i] == HS_OK) good.push_back(user[i]);
    if (good.size() < user.size()) check(hs_describe(context_, &view, good.data(), good.size(), &found_, nullptr));
    bool same = found_.count == keypoints.size();
    for (size_t i = 0; i < user.size() && same; i++) same = statuses[i] == HS_OK && keypoints[i].angle >= 0.0f;
    if (!same) copy_keypoints(keypoints); /* otherwise they stay unchanged, including class_id */
  }

  void copy_descriptors(cv::OutputArray descriptors) const {
    if (found_.count == 0) {
      descriptors.release();
      return;
    }
    descriptors.create(static_cast<int>(found_.count), HS_DESCRIPTOR_LENGTH, descriptorType());
    const cv::Mat rows(static_cast<int>(found_.count), HS_DESCRIPTOR_LENGTH, descriptorType(), found_.descriptors);
    rows.copyTo(descriptors);
  }

  hs_options options_;
  hs_context *context_;
  hs_features found_;
};

} // namespace hartsift
#endif
