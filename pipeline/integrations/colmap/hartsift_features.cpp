/*
 * hartsift as COLMAP's extractor and matcher of SIFT features, instead of SiftGPU and VLFeat. add_to_colmap.py adds
 * this file to COLMAP's library colmap_feature. For COLMAP 4.2 and later.
 *
 * Extraction has the parameters of COLMAP's options, affine shape and domain-size pooling among them, and gives
 * RootSIFT bytes in UBC order, type SIFT, so vocabulary trees, LightGlue for SIFT and databases keep working. Matching
 * is exact for lists of any length, also with a guide. COLMAP itself still does covariant extraction, darkness
 * adaptivity, and guided matching of calibrated fisheye and spherical cameras.
 */
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <hartsift.h>

#include "colmap/feature/sift.h"
#include "colmap/util/logging.h"
#include "colmap/util/misc.h"
#include "colmap/util/string.h"

namespace colmap {

bool HartsiftExtracts(const FeatureExtractionOptions &options);
std::unique_ptr<FeatureExtractor> CreateHartsiftFeatureExtractor(const FeatureExtractionOptions &options);
std::unique_ptr<FeatureMatcher> CreateHartsiftFeatureMatcher(const FeatureMatchingOptions &options);

namespace {

struct ContextEnd {
  void operator()(hs_context *context) const { hs_destroy(context); }
};
using Context = std::unique_ptr<hs_context, ContextEnd>;

/* A feature list of the library, which a context fills again for each image. */
struct FeatureList : hs_features {
  FeatureList() : hs_features{} {}
  ~FeatureList() { hs_features_free(this); }
  FeatureList(const FeatureList &) = delete;
  FeatureList &operator=(const FeatureList &) = delete;
};

struct MatchList : hs_matches {
  MatchList() : hs_matches{} {}
  ~MatchList() { hs_matches_free(this); }
  MatchList(const MatchList &) = delete;
  MatchList &operator=(const MatchList &) = delete;
};

/* Sets the device. gpu_index: one number; -1: any GPU, or the CPU if there is none (same bytes). COLMAP built without
   CUDA has no such option; hartsift then uses a GPU if it finds one. */
void ChooseDevice([[maybe_unused]] const bool use_gpu, const std::string &gpu_index, hs_options *options) {
#if defined(COLMAP_GPU_ENABLED)
  if (!use_gpu) {
    options->device = HS_DEVICE_CPU;
    return;
  }
#endif
  const std::vector<int> indices = CSVToVector<int>(gpu_index);
  THROW_CHECK_EQ(indices.size(), 1) << "hartsift works on one GPU in each thread";
  options->device = indices[0] < 0 ? HS_DEVICE_AUTO : HS_DEVICE_CUDA;
  options->device_index = indices[0] < 0 ? 0 : indices[0];
}

/* Creates a context. Null, after a warning: hartsift refuses a value of the options. */
Context CreateContext(const hs_options &options) {
  char reason[512];
  hs_context *context = nullptr;
  const hs_status status = hs_create_explained(&context, &options, reason, sizeof reason);
  if (status == HS_ERR_OPTION) {
    LOG(WARNING) << "hartsift: " << reason << "; COLMAP's own SIFT is used instead";
    return nullptr;
  }
  if (status != HS_OK) LOG(FATAL_THROW) << "hartsift: " << (reason[0] ? reason : hs_status_string(status));
  if (reason[0]) LOG(WARNING) << "hartsift: " << reason;
  return Context(context);
}

hs_options ExtractionOptions(const FeatureExtractionOptions &options) {
  const SiftExtractionOptions &sift = *options.sift;
  hs_options mine;
  hs_options_init(&mine, HS_PROFILE_COLMAP);
  ChooseDevice(options.use_gpu, options.gpu_index, &mine);
  mine.threads = std::max(options.num_threads, 0); /* 1 where COLMAP runs an extractor in each of its threads */
  mine.max_features = sift.max_num_features;
  mine.first_octave = sift.first_octave;
  mine.octaves = sift.num_octaves;
  mine.scales = sift.octave_resolution;
  mine.contrast = static_cast<float>(sift.peak_threshold * sift.octave_resolution);
  mine.edge = static_cast<float>(sift.edge_threshold);
  mine.max_orientations = sift.max_num_orientations;
  mine.upright = sift.upright ? 1 : 0;
  mine.affine = sift.estimate_affine_shape ? 1 : 0;
  mine.dsp = sift.domain_size_pooling ? 1 : 0;
  if (sift.domain_size_pooling) {
    /* COLMAP's last size is a step below dsp_max_scale. */
    const double step = (sift.dsp_max_scale - sift.dsp_min_scale) / sift.dsp_num_scales;
    mine.dsp_sizes = sift.dsp_num_scales;
    mine.dsp_smallest = static_cast<float>(sift.dsp_min_scale);
    mine.dsp_largest = static_cast<float>(sift.dsp_max_scale - step);
  }
  mine.norm = sift.normalization == SiftExtractionOptions::Normalization::L2 ? HS_NORM_L2 : HS_NORM_ROOT;
  return mine;
}

class HartsiftFeatureExtractor : public FeatureExtractor {
public:
  explicit HartsiftFeatureExtractor(Context context) : context_(std::move(context)) {}

  bool Extract(const Bitmap &bitmap, FeatureKeypoints *keypoints, FeatureDescriptors *descriptors) override {
    THROW_CHECK(bitmap.IsGrey());
    THROW_CHECK_NOTNULL(keypoints);
    THROW_CHECK_NOTNULL(descriptors);
    hs_image image{};
    image.data = bitmap.RowMajorData().data();
    image.width = bitmap.Width();
    image.height = bitmap.Height();
    image.stride_bytes = bitmap.Pitch();
    image.type = HS_U8;
    image.layout = HS_GRAY;
    if (hs_extract(context_.get(), &image, nullptr, &features_) != HS_OK) {
      LOG(ERROR) << "hartsift: " << hs_last_error(context_.get());
      return false;
    }
    keypoints->resize(features_.count);
    for (size_t i = 0; i < features_.count; i++) {
      const hs_keypoint &k = features_.keypoints[i];
      /* COLMAP's pixel origin is the corner of the first pixel */
      if (const hs_frame *f = features_.frames ? &features_.frames[i] : nullptr)
        (*keypoints)[i] = FeatureKeypoint(k.x + 0.5f, k.y + 0.5f, f->a11, f->a12, f->a21, f->a22);
      else
        (*keypoints)[i] = FeatureKeypoint(k.x + 0.5f, k.y + 0.5f, k.sigma, k.orientation);
    }
    descriptors->type = FeatureExtractorType::SIFT;
    descriptors->data =
        Eigen::Map<const FeatureDescriptorsData>(static_cast<const uint8_t *>(features_.descriptors),
                                                 static_cast<Eigen::Index>(features_.count), HS_DESCRIPTOR_LENGTH);
    return true;
  }

private:
  Context context_;
  FeatureList features_;
};

/* Returns a view of COLMAP's descriptors. */
hs_features ViewOf(const FeatureMatcher::Image &image) {
  THROW_CHECK_NOTNULL(image.descriptors);
  const FeatureDescriptorsData &data = image.descriptors->data;
  THROW_CHECK(image.descriptors->type == FeatureExtractorType::SIFT);
  THROW_CHECK_EQ(data.cols(), HS_DESCRIPTOR_LENGTH);
  hs_features view{};
  view.count = static_cast<size_t>(data.rows());
  view.descriptors = const_cast<uint8_t *>(data.data());
  view.descriptor_type = HS_DESCRIPTOR_U8;
  return view;
}

/* Whether the essential matrix of a verified pair guides its matching; if not, F or H does, in pixels. */
bool IsCalibrated(const TwoViewGeometry &pair) {
  if (!pair.E.has_value()) return false;
  if (pair.config == TwoViewGeometry::UNCALIBRATED) return pair.camera1.has_value() || pair.camera2.has_value();
  return pair.config == TwoViewGeometry::CALIBRATED || pair.config == TwoViewGeometry::CALIBRATED_RIG;
}

bool IsPlanar(const TwoViewGeometry &pair) {
  return pair.config == TwoViewGeometry::PLANAR || pair.config == TwoViewGeometry::PANORAMIC ||
         pair.config == TwoViewGeometry::PLANAR_OR_PANORAMIC;
}

void SetGuide(const hs_guide guide, const Eigen::Matrix3d &matrix, hs_match_options *options) {
  options->guide = guide;
  Eigen::Map<Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(options->guide_matrix) = matrix;
}

/* Returns the factors from normalized coordinates to pixels without distortion, relative to the principal point. */
Eigen::Vector3d Scales(const Camera &camera) { return {camera.FocalLengthX(), camera.FocalLengthY(), 1.0}; }

/* Returns positions for a guide, in pixels of the image, or with a camera in pixels without its distortion. A point
   that the camera cannot see is NaN, which no guide accepts. */
std::vector<hs_keypoint> PositionsOf(const FeatureMatcher::Image &image, const Camera *camera) {
  THROW_CHECK_NOTNULL(image.keypoints);
  THROW_CHECK_NOTNULL(image.descriptors);
  THROW_CHECK_EQ(static_cast<Eigen::Index>(image.keypoints->size()), image.descriptors->data.rows());
  const Eigen::Vector2d nowhere = Eigen::Vector2d::Constant(std::numeric_limits<double>::quiet_NaN());
  std::vector<hs_keypoint> positions(image.keypoints->size());
  for (size_t i = 0; i < positions.size(); i++) {
    const FeatureKeypoint &keypoint = (*image.keypoints)[i];
    Eigen::Vector2d position(keypoint.x, keypoint.y);
    if (camera) position = Scales(*camera).head<2>().cwiseProduct(camera->CamFromImg(position).value_or(nowhere));
    positions[i].x = static_cast<float>(position.x());
    positions[i].y = static_cast<float>(position.y());
  }
  return positions;
}

class HartsiftFeatureMatcher : public FeatureMatcher {
public:
  HartsiftFeatureMatcher(Context context, const FeatureMatchingOptions &options)
      : options_(options), context_(std::move(context)) {
    hs_match_options_init(&match_options_);
    match_options_.ratio = options.sift->max_ratio;
    match_options_.max_distance = options.sift->max_distance * kDescriptorNorm;
    match_options_.mutual = options.sift->cross_check ? 1 : 0;
  }

  void Match(const Image &image1, const Image &image2, FeatureMatches *matches) override {
    THROW_CHECK_NOTNULL(matches);
    Find(ViewOf(image1), ViewOf(image2), match_options_, matches);
  }

  void MatchGuided(const double max_error, const Image &image1, const Image &image2, TwoViewGeometry *pair) override {
    THROW_CHECK_NOTNULL(pair);
    THROW_CHECK_NOTNULL(image1.camera);
    THROW_CHECK_NOTNULL(image2.camera);
    const bool calibrated = IsCalibrated(*pair);
    const Camera camera1 = pair->camera1.value_or(*image1.camera);
    const Camera camera2 = pair->camera2.value_or(*image2.camera);
    hs_match_options options = match_options_;
    options.guide_tolerance = max_error;
    if (calibrated && camera1.IsPerspectivePinhole() && camera2.IsPerspectivePinhole()) {
      SetGuide(HS_GUIDE_FUNDAMENTAL,
               Scales(camera2).asDiagonal().inverse() * *pair->E * Scales(camera1).asDiagonal().inverse(), &options);
    } else if (calibrated) {
      ColmapsMatcher()->MatchGuided(max_error, image1, image2, pair);
      return;
    } else if (pair->config == TwoViewGeometry::UNCALIBRATED && pair->F.has_value()) {
      SetGuide(HS_GUIDE_FUNDAMENTAL, *pair->F, &options);
    } else if (IsPlanar(*pair) && pair->H.has_value()) {
      SetGuide(HS_GUIDE_HOMOGRAPHY, *pair->H, &options);
    } else {
      pair->inlier_matches.clear();
      return;
    }
    std::vector<hs_keypoint> positions1 = PositionsOf(image1, calibrated ? &camera1 : nullptr);
    std::vector<hs_keypoint> positions2 = PositionsOf(image2, calibrated ? &camera2 : nullptr);
    hs_features first = ViewOf(image1), second = ViewOf(image2);
    first.keypoints = positions1.data();
    second.keypoints = positions2.data();
    Find(first, second, options, &pair->inlier_matches);
  }

private:
  void Find(const hs_features &first, const hs_features &second, const hs_match_options &options,
            FeatureMatches *matches) {
    matches->clear();
    if (hs_match(context_.get(), &first, &second, &options, &found_) != HS_OK) {
      LOG(ERROR) << "hartsift: " << hs_last_error(context_.get());
      return;
    }
    matches->reserve(found_.count);
    for (size_t i = 0; i < found_.count; i++) matches->emplace_back(found_.pairs[i].first, found_.pairs[i].second);
  }

  FeatureMatcher *ColmapsMatcher() {
    if (!colmaps_matcher_) {
      FeatureMatchingOptions options = options_;
      options.use_gpu = false;
      options.sift->cpu_brute_force_matcher = true;
      colmaps_matcher_ = CreateSiftFeatureMatcher(options);
    }
    return colmaps_matcher_.get();
  }

  /* Bytes are 512 times the values of a descriptor of unit length. */
  static constexpr double kDescriptorNorm = 512;
  const FeatureMatchingOptions options_;
  Context context_;
  hs_match_options match_options_;
  MatchList found_;
  std::unique_ptr<FeatureMatcher> colmaps_matcher_;
};

hs_options MatchingOptions(const FeatureMatchingOptions &options) {
  hs_options mine;
  hs_options_init(&mine, HS_PROFILE_COLMAP);
  ChooseDevice(options.use_gpu, options.gpu_index, &mine);
  mine.threads = std::max(options.num_threads, 0);
  return mine;
}

} // namespace

/* Whether hartsift has what the options ask for; if not, COLMAP's own extractors do the work. */
bool HartsiftExtracts(const FeatureExtractionOptions &options) {
  return !options.sift->force_covariant_extractor && !options.sift->darkness_adaptivity;
}

/* Creates an extractor. Null: the options need one of COLMAP's own extractors. */
std::unique_ptr<FeatureExtractor> CreateHartsiftFeatureExtractor(const FeatureExtractionOptions &options) {
  THROW_CHECK(options.Check());
  if (!HartsiftExtracts(options)) return nullptr;
  Context context = CreateContext(ExtractionOptions(options));
  if (!context) return nullptr;
  LOG(INFO) << "Creating hartsift " << hs_version_string() << " feature extractor";
  return std::make_unique<HartsiftFeatureExtractor>(std::move(context));
}

/* Creates a matcher. Null: the options need one of COLMAP's own matchers. */
std::unique_ptr<FeatureMatcher> CreateHartsiftFeatureMatcher(const FeatureMatchingOptions &options) {
  if (options.type != FeatureMatcherType::SIFT_BRUTEFORCE || options.sift->cpu_brute_force_matcher) return nullptr;
  THROW_CHECK(options.Check());
  Context context = CreateContext(MatchingOptions(options));
  if (!context) return nullptr;
  LOG(INFO) << "Creating hartsift " << hs_version_string() << " feature matcher";
  return std::make_unique<HartsiftFeatureMatcher>(std::move(context), options);
}

} // namespace colmap
