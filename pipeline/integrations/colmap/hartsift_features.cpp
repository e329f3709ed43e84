/*
 * hartsift as COLMAP's extractor and matcher of SIFT features, instead of SiftGPU and VLFeat. add_to_colmap.py adds
 * this file to COLMAP's library colmap_feature. For COLMAP 4.1 and later.
 *
 * Extraction has the parameters of COLMAP's options and gives RootSIFT bytes in UBC order, type SIFT, so vocabulary
 * trees, LightGlue for SIFT and databases keep working; with estimate_affine_shape keypoints have their frames. COLMAP
 * itself still does domain-size pooling, covariant extraction and guided matching. Matching is exact.
 */
#include <memory>
#include <string>
#include <vector>

#include <hartsift.h>

#include "colmap/feature/sift.h"
#include "colmap/util/logging.h"
#include "colmap/util/misc.h"
#include "colmap/util/string.h"

namespace colmap {

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
void ChooseDevice(const bool use_gpu, const std::string &gpu_index, hs_options *options) {
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

Context CreateContext(const hs_options &options) {
  char reason[512];
  hs_context *context = nullptr;
  const hs_status status = hs_create_explained(&context, &options, reason, sizeof reason);
  if (status != HS_OK) LOG(FATAL_THROW) << "hartsift: " << (reason[0] ? reason : hs_status_string(status));
  if (reason[0]) LOG(WARNING) << "hartsift: " << reason;
  return Context(context);
}

hs_options ExtractionOptions(const FeatureExtractionOptions &options) {
  const SiftExtractionOptions &sift = *options.sift;
  hs_options mine;
  hs_options_init(&mine, HS_PROFILE_COLMAP);
  ChooseDevice(options.use_gpu, options.gpu_index, &mine);
  mine.threads = 1; /* COLMAP runs an extractor in each of its threads */
  mine.max_features = sift.max_num_features;
  mine.first_octave = sift.first_octave;
  mine.octaves = sift.num_octaves;
  mine.scales = sift.octave_resolution;
  mine.contrast = static_cast<float>(sift.peak_threshold * sift.octave_resolution);
  mine.edge = static_cast<float>(sift.edge_threshold);
  mine.max_orientations = sift.max_num_orientations;
  mine.upright = sift.upright ? 1 : 0;
  mine.affine = sift.estimate_affine_shape ? 1 : 0;
  mine.norm = sift.normalization == SiftExtractionOptions::Normalization::L2 ? HS_NORM_L2 : HS_NORM_ROOT;
  return mine;
}

class HartsiftFeatureExtractor : public FeatureExtractor {
public:
  explicit HartsiftFeatureExtractor(const FeatureExtractionOptions &options)
      : context_(CreateContext(ExtractionOptions(options))) {}

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

class HartsiftFeatureMatcher : public FeatureMatcher {
public:
  explicit HartsiftFeatureMatcher(const FeatureMatchingOptions &options) {
    hs_options mine;
    hs_options_init(&mine, HS_PROFILE_COLMAP);
    ChooseDevice(options.use_gpu, options.gpu_index, &mine);
    mine.threads = 1;
    context_ = CreateContext(mine);
    hs_match_options_init(&match_options_);
    match_options_.ratio = options.sift->max_ratio;
    match_options_.max_distance = options.sift->max_distance * kDescriptorNorm;
    match_options_.mutual = options.sift->cross_check ? 1 : 0;
    FeatureMatchingOptions colmaps = options;
    colmaps.use_gpu = false;
    colmaps.sift->cpu_brute_force_matcher = true;
    guided_ = CreateSiftFeatureMatcher(colmaps);
  }

  void Match(const Image &image1, const Image &image2, FeatureMatches *matches) override {
    THROW_CHECK_NOTNULL(matches);
    const hs_features first = ViewOf(image1);
    const hs_features second = ViewOf(image2);
    matches->clear();
    if (hs_match(context_.get(), &first, &second, &match_options_, &found_) != HS_OK) {
      LOG(ERROR) << "hartsift: " << hs_last_error(context_.get());
      return;
    }
    matches->reserve(found_.count);
    for (size_t i = 0; i < found_.count; i++) matches->emplace_back(found_.pairs[i].first, found_.pairs[i].second);
  }

  void MatchGuided(const double max_error, const Image &image1, const Image &image2,
                   TwoViewGeometry *two_view_geometry) override {
    guided_->MatchGuided(max_error, image1, image2, two_view_geometry);
  }

private:
  /* Bytes are 512 times the values of a descriptor of unit length. */
  static constexpr double kDescriptorNorm = 512;
  Context context_;
  hs_match_options match_options_;
  MatchList found_;
  std::unique_ptr<FeatureMatcher> guided_;
};

} // namespace

/* Creates an extractor. Null: the options need one of COLMAP's own extractors. */
std::unique_ptr<FeatureExtractor> CreateHartsiftFeatureExtractor(const FeatureExtractionOptions &options) {
  const SiftExtractionOptions &sift = *options.sift;
  THROW_CHECK(options.Check());
  if (sift.domain_size_pooling || sift.force_covariant_extractor) return nullptr;
  LOG(INFO) << "Creating hartsift " << hs_version_string() << " feature extractor";
  return std::make_unique<HartsiftFeatureExtractor>(options);
}

/* Creates a matcher. Null: the options need one of COLMAP's own matchers. */
std::unique_ptr<FeatureMatcher> CreateHartsiftFeatureMatcher(const FeatureMatchingOptions &options) {
  if (options.type != FeatureMatcherType::SIFT_BRUTEFORCE || options.sift->cpu_brute_force_matcher) return nullptr;
  THROW_CHECK(options.Check());
  LOG(INFO) << "Creating hartsift " << hs_version_string() << " feature matcher";
  return std::make_unique<HartsiftFeatureMatcher>(options);
}

} // namespace colmap
