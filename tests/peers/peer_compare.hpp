/*
 * Compares two lists of features of one image: features with a partner, the fate of the others, and the descriptor
 * distances of partners. Shared by the tests against OpenCV and VLFeat.
 */
#ifndef HARTSIFT_TESTS_PEERS_PEER_COMPARE_HPP
#define HARTSIFT_TESTS_PEERS_PEER_COMPARE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

#include <unistd.h>

#include "pipeline/include/hartsift.h"

namespace peers {

constexpr double pi = 3.14159265358979323846;

/* A feature in the common form of both sides. Descriptors have unit length, in UBC order. */
struct feature {
  double x, y, sigma, orientation;
  float descriptor[HS_DESCRIPTOR_LENGTH];
};
using feature_list = std::vector<feature>;

/* Tolerances for a partner. */
constexpr double partner_pixels = 0.1, partner_sigma = 0.01, partner_degrees = 1.0;

/* Classes of a feature by its counterpart in the other list. */
struct partner_counts {
  size_t total = 0;
  size_t partner = 0;      /* same position, scale and orientation */
  size_t angle_close = 0;  /* the keypoint is there, with an orientation between 1 and 10 degrees away */
  size_t angle_absent = 0; /* number of features whose keypoint is there, but with no orientation within 10 degrees */
  size_t nearby = 0;       /* a keypoint within 1 pixel and half an octave: it settled elsewhere or its fit differs */
  size_t absent = 0;       /* nothing there */

  partner_counts &operator+=(const partner_counts &o) {
    total += o.total;
    partner += o.partner;
    angle_close += o.angle_close;
    angle_absent += o.angle_absent;
    nearby += o.nearby;
    absent += o.absent;
    return *this;
  }
  double share() const { return total ? double(partner) / double(total) : 1.0; }
};

/* Degrees between two orientations, 0..180. */
inline double degrees_between(double a, double b) {
  const double d = std::fmod(std::fabs(a - b), 2.0 * pi);
  return std::min(d, 2.0 * pi - d) * 180.0 / pi;
}

inline double descriptor_distance(const feature &a, const feature &b) {
  double sum = 0.0;
  for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) {
    const double d = double(a.descriptor[i]) - double(b.descriptor[i]);
    sum += d * d;
  }
  return std::sqrt(sum);
}

/* Finds the features around a position: cells of one pixel. */
class place_index {
public:
  explicit place_index(const feature_list &list) : list_(list) {
    for (size_t i = 0; i < list.size(); i++) cells_[key(std::floor(list[i].x), std::floor(list[i].y))].push_back(i);
  }

  /* Calls visit(index) for every feature within one pixel in x and in y, and some more. */
  template <typename visitor> void around(const feature &f, visitor visit) const {
    for (double dy = -1; dy <= 1; dy++) {
      for (double dx = -1; dx <= 1; dx++) {
        const auto cell = cells_.find(key(std::floor(f.x) + dx, std::floor(f.y) + dy));
        if (cell == cells_.end()) continue;
        for (size_t i : cell->second) visit(list_[i]);
      }
    }
  }

private:
  static int64_t key(double column, double row) { return int64_t(row) * (int64_t(1) << 32) + int64_t(column); }
  const feature_list &list_;
  std::unordered_map<int64_t, std::vector<size_t>> cells_;
};

/* Classifies each feature of `mine` by its counterpart in `theirs`; *distances, if not null, receives descriptor
 * distances. */
inline partner_counts find_partners(const feature_list &mine, const feature_list &theirs,
                                    std::vector<double> *distances) {
  const place_index index(theirs);
  partner_counts counts;
  counts.total = mine.size();
  for (const feature &f : mine) {
    bool nearby = false, keypoint = false;
    double angle = 360.0, distance = 0.0;
    index.around(f, [&](const feature &other) {
      const double pixels = std::hypot(other.x - f.x, other.y - f.y),
                   ratio = std::fabs(std::log(other.sigma / f.sigma));
      nearby = nearby || (pixels <= 1.0 && ratio <= 0.5 * std::log(2.0));
      if (pixels > partner_pixels || ratio > std::log1p(partner_sigma)) return;
      keypoint = true;
      const double degrees = degrees_between(other.orientation, f.orientation);
      if (degrees < angle) {
        angle = degrees;
        distance = descriptor_distance(f, other);
      }
    });
    if (angle <= partner_degrees) {
      counts.partner++;
      if (distances) distances->push_back(distance);
    } else if (keypoint) {
      (angle <= 10.0 ? counts.angle_close : counts.angle_absent)++;
    } else {
      (nearby ? counts.nearby : counts.absent)++;
    }
  }
  return counts;
}

/* The quantile of the values for a share. */
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  const size_t i = std::min(values.size() - 1, size_t(share * double(values.size())));
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(i), values.end());
  return values[i];
}

inline void print_counts(const char *direction, const partner_counts &c) {
  std::printf(
      "  %s: %zu of %zu have a partner (%.3f %%); of the others %zu with an angle 1 to 10 degrees off, %zu with "
      "an angle missing, %zu keypoints moved, %zu keypoints missing\n",
      direction, c.partner, c.total, 100.0 * c.share(), c.angle_close, c.angle_absent, c.nearby, c.absent);
}

/* Both directions of a comparison over several images. */
struct comparison {
  partner_counts ours, theirs;
  std::vector<double> distances;

  void add(const feature_list &mine, const feature_list &other) {
    ours += find_partners(mine, other, &distances);
    theirs += find_partners(other, mine, nullptr);
  }
  double median_distance() const { return quantile(distances, 0.5); }
  double p99_distance() const { return quantile(distances, 0.99); }
  void print(const char *name) const {
    std::printf("%s\n", name);
    print_counts("ours", ours);
    print_counts("theirs", theirs);
    std::printf("  descriptors of partners, unit length: median distance %.5f, 99th percentile %.5f, largest %.5f\n",
                median_distance(), p99_distance(), quantile(distances, 1.0));
  }
};

inline void make_unit(float descriptor[HS_DESCRIPTOR_LENGTH]) {
  double sum = 0.0;
  for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) sum += double(descriptor[i]) * double(descriptor[i]);
  for (int i = 0; i < HS_DESCRIPTOR_LENGTH && sum > 0.0; i++)
    descriptor[i] = float(double(descriptor[i]) / std::sqrt(sum));
}

/* Features of an image with these options; prints the reason and returns false on failure. */
inline bool extract(const hs_image &image, const hs_options &options, feature_list *out) {
  hs_context *context = nullptr;
  hs_features found = {};
  out->clear();
  hs_status status = hs_create(&context, &options);
  if (status == HS_OK) status = hs_extract(context, &image, nullptr, &found);
  for (size_t i = 0; status == HS_OK && i < found.count; i++) {
    const hs_keypoint &k = found.keypoints[i];
    feature f = {double(k.x), double(k.y), double(k.sigma), double(k.orientation), {}};
    for (size_t j = 0; j < HS_DESCRIPTOR_LENGTH; j++) {
      const size_t at = i * HS_DESCRIPTOR_LENGTH + j;
      f.descriptor[j] = found.descriptor_type == HS_DESCRIPTOR_F32
                            ? static_cast<const float *>(found.descriptors)[at]
                            : float(static_cast<const uint8_t *>(found.descriptors)[at]);
    }
    make_unit(f.descriptor);
    out->push_back(f);
  }
  if (status != HS_OK) std::printf("%s: %s\n", hs_status_name(status), context ? hs_last_error(context) : "no context");
  hs_features_free(&found);
  hs_destroy(context);
  return status == HS_OK;
}

/* Generated pictures of various sizes, also odd ones. */
inline std::vector<std::string> scene_names() {
#if defined(__SANITIZE_ADDRESS__)
  return {"@scene:161x121:1", "@scene:64x200:2"};
#else
  return {"@scene:640x480:1", "@scene:401x299:2", "@scene:257x515:3", "@scene:97x131:4", "@scene:1024x63:5"};
#endif
}

/* Photographs in ../shared/data or HARTSIFT_DATA; empty if missing. */
inline std::vector<std::string> photo_names() {
  const char *folder = std::getenv("HARTSIFT_DATA");
  const std::string data = folder ? folder : HARTSIFT_SOURCE_DIR "/../shared/data";
#if defined(__SANITIZE_ADDRESS__)
  const std::vector<std::string> names = {"pairs/box.png"};
#else
  const std::vector<std::string> names = {"homography/boat/1.png", "homography/leuven/6.png",
                                          "bench/bench_640x480.png"};
#endif
  std::vector<std::string> found;
  for (const std::string &name : names)
    if (access((data + "/" + name).c_str(), R_OK) == 0) found.push_back(data + "/" + name);
  return found;
}

} /* namespace peers */

#endif
