/*
 * hartsift as an image describer of AliceVision, of type SIFT: a class like ImageDescriber_SIFT_popSIFT, for
 * createImageDescriber to return. Uses a GPU if possible, else the CPU; both give the same bytes.
 */
#ifndef HARTSIFT_INTEGRATIONS_ALICEVISION_HARTSIFT_DESCRIBER_HPP
#define HARTSIFT_INTEGRATIONS_ALICEVISION_HARTSIFT_DESCRIBER_HPP

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <hartsift.h>

#include <aliceVision/feature/ImageDescriber.hpp>
#include <aliceVision/feature/regionsFactory.hpp>
#include <aliceVision/feature/sift/SIFT.hpp>

namespace aliceVision {
namespace feature {

class ImageDescriber_SIFT_hartsift : public ImageDescriber {
public:
  explicit ImageDescriber_SIFT_hartsift(const SiftParams &params = SiftParams(), bool is_oriented = true)
      : params_(params), is_oriented_(is_oriented) {}

  bool useCuda() const override { return use_cuda_; }
  bool useFloatImage() const override { return true; }
  void setUpRight(bool up_right) override { is_oriented_ = !up_right; }
  void allocate(std::unique_ptr<Regions> &regions) const override { regions.reset(new SIFT_Regions); }

  EImageDescriberType getDescriberType() const override {
    return is_oriented_ ? EImageDescriberType::SIFT : EImageDescriberType::SIFT_UPRIGHT;
  }

  /* AliceVision runs GPU jobs in one thread, and CPU jobs in several. */
  void setUseCuda(bool use_cuda) override { use_cuda_ = use_cuda; }

  void setConfigurationPreset(ConfigurationPreset preset) override {
    params_.setPreset(preset);
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.clear(); /* idle contexts have other options */
  }

  std::size_t getMemoryConsumption(std::size_t width, std::size_t height) const override {
    const hs_options options = Options(width, height);
    uint64_t host = 0, device = 0;
    const hs_status status =
        hs_workspace_query(&options, static_cast<int32_t>(width), static_cast<int32_t>(height), &host, &device);
    if (status != HS_OK) throw std::runtime_error(std::string("hartsift: ") + hs_status_string(status));
    return static_cast<std::size_t>(host) + 4 * width * height * sizeof(float); /* plus the picture itself */
  }

  /* mask: of the picture's size; keypoints at zeros are dropped. Several threads may call at once. */
  bool describe(const image::Image<float> &image, std::unique_ptr<Regions> &regions,
                const image::Image<unsigned char> *mask = nullptr) override {
    const hs_options options = Options(image.width(), image.height());
    Worker worker = Take(options);
    const hs_image view = View(image.data(), image.width(), image.height(), HS_F32);
    const hs_image mask_view = mask ? View(mask->data(), mask->width(), mask->height(), HS_U8) : hs_image{};
    const hs_features *found = nullptr;
    if (hs_extract_view(worker.context.get(), &view, mask ? &mask_view : nullptr, &found) != HS_OK)
      throw std::runtime_error(std::string("hartsift: ") + hs_last_error(worker.context.get()));
    allocate(regions);
    SIFT_Regions *sift = dynamic_cast<SIFT_Regions *>(regions.get());
    const auto *descriptors = static_cast<const unsigned char *>(found->descriptors);
    sift->Features().reserve(found->count);
    sift->Descriptors().reserve(found->count);
    for (std::size_t i = 0; i < found->count; i++) {
      const hs_keypoint &k = found->keypoints[i];
      sift->Features().emplace_back(k.x, k.y, k.sigma, k.orientation);
      Descriptor<unsigned char, HS_DESCRIPTOR_LENGTH> descriptor;
      for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++) descriptor[d] = descriptors[HS_DESCRIPTOR_LENGTH * i + d];
      sift->Descriptors().emplace_back(descriptor);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(worker));
    return true;
  }

private:
  struct ContextEnd {
    void operator()(hs_context *context) const { hs_destroy(context); }
  };
  struct Worker {
    std::unique_ptr<hs_context, ContextEnd> context;
    int32_t first_octave;
  };

  template <typename Sample> static hs_image View(const Sample *data, int width, int height, hs_sample_type type) {
    hs_image view{};
    view.data = data;
    view.width = width;
    view.height = height;
    view.type = type;
    return view;
  }

  hs_options Options(std::size_t width, std::size_t height) const {
    hs_options options;
    hs_options_init(&options, HS_PROFILE_LOWE);
    options.device = use_cuda_ ? HS_DEVICE_AUTO : HS_DEVICE_CPU;
    options.threads = use_cuda_ ? 0 : 1;
    options.first_octave = params_.getImageFirstOctave(static_cast<int>(width), static_cast<int>(height));
    options.scales = params_._numScales;
    options.contrast = params_._peakThreshold * static_cast<float>(params_._numScales);
    options.edge = params_._edgeThreshold;
    options.max_features = static_cast<int32_t>(params_._maxTotalKeypoints);
    if (params_._gridSize > 0 && params_._maxTotalKeypoints > 0)
      options.grid_columns = options.grid_rows = static_cast<int32_t>(params_._gridSize);
    options.norm = params_._rootSift ? HS_NORM_ROOT : HS_NORM_L2;
    options.layout = HS_LAYOUT_VLFEAT; /* AliceVision uses this bin order */
    options.upright = is_oriented_ ? 0 : 1;
    return options;
  }

  /* Returns an idle context, or a new one. */
  Worker Take(const hs_options &options) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (auto worker = idle_.begin(); worker != idle_.end(); worker++) {
        if (worker->first_octave != options.first_octave) continue;
        Worker taken = std::move(*worker);
        idle_.erase(worker);
        return taken;
      }
    }
    char reason[512];
    hs_context *context = nullptr;
    if (hs_create_explained(&context, &options, reason, sizeof reason) != HS_OK)
      throw std::runtime_error(std::string("hartsift: ") + reason);
    return Worker{std::unique_ptr<hs_context, ContextEnd>(context), options.first_octave};
  }

  SiftParams params_;
  bool is_oriented_;
  bool use_cuda_ = true;
  std::mutex mutex_; /* protects idle_ */
  std::vector<Worker> idle_;
};

} // namespace feature
} // namespace aliceVision
#endif
