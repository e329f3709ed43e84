/*
 * Another GPU program extracts the features of one picture, for `bench.py peers`: CudaSift or PopSift, from their
 * public sources, which are not part of this repository.
 *
 *   peer_gpu PICTURE.pgm OUT THRESHOLD FIRST_OCTAVE REPEATS
 *
 * Built with PEER_CUDASIFT or PEER_POPSIFT defined (bench/modes/peers.py does it). THRESHOLD is the program's own;
 * FIRST_OCTAVE: -1 doubles the picture, 0 does not. Timed: from pixels in page-locked memory to features in host
 * memory; CudaSift's pixels are floats already, which its callers convert. OUT: number of features, as int32; then x,
 * y, sigma, orientation in radians and 128 entries of the descriptor of each, as floats. Prints "result FEATURES
 * MEDIAN_MS" to standard error, because the programs print to standard output.
 */
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifdef PEER_CUDASIFT
#  include "cudaImage.h"
#  include "cudaSift.h"
#else
#  include "popsift/features.h"
#  include "popsift/popsift.h"
#  include "popsift/sift_conf.h"
#endif

namespace {

enum { ROW = 4 + 128, CAPACITY = 1 << 18, OCTAVES = 6, WARM_UP = 3 };

struct picture {
  int width, height;
  std::vector<uint8_t> pixels;
};

bool read_pgm(const char *path, picture *p) {
  FILE *f = std::fopen(path, "rb");
  bool ok = f && std::fscanf(f, "P5 %d %d 255", &p->width, &p->height) == 2 && std::fgetc(f) != EOF;
  if (ok) {
    p->pixels.resize(size_t(p->width) * size_t(p->height));
    ok = std::fread(p->pixels.data(), 1, p->pixels.size(), f) == p->pixels.size();
  }
  if (f) std::fclose(f);
  return ok;
}

/* Memory of the host that the device copies from and to without staging. */
template <typename T> T *page_locked(size_t count) {
  void *memory = nullptr;
  return cudaMallocHost(&memory, count * sizeof(T)) == cudaSuccess ? static_cast<T *>(memory) : nullptr;
}

const float radians = 0.017453292519943295f;

#ifdef PEER_CUDASIFT

class extractor {
public:
  extractor(const picture &p, float threshold, bool doubled) : threshold_(threshold), doubled_(doubled) {
    InitCuda(0);
    float *pixels = page_locked<float>(p.pixels.size());
    std::copy(p.pixels.begin(), p.pixels.end(), pixels);
    image_.Allocate(p.width, p.height, iAlignUp(p.width, 128), false, nullptr, pixels);
    InitSiftData(data_, CAPACITY, true, true);
    cudaHostRegister(data_.h_data, sizeof(SiftPoint) * CAPACITY, cudaHostRegisterDefault);
    memory_ = AllocSiftTempMemory(p.width, p.height, OCTAVES, doubled);
  }
  void run() {
    image_.Download();
    ExtractSift(data_, image_, OCTAVES, 1.0, threshold_, 0.0f, doubled_, memory_);
  }
  std::vector<float> rows() const {
    std::vector<float> out;
    for (int i = 0; i < data_.numPts; i++) {
      const SiftPoint &s = data_.h_data[i];
      const float head[] = {s.xpos, s.ypos, s.scale, s.orientation * radians};
      out.insert(out.end(), head, head + 4);
      out.insert(out.end(), s.data, s.data + 128);
    }
    return out;
  }

private:
  CudaImage image_;
  SiftData data_ = {};
  float *memory_ = nullptr, threshold_;
  bool doubled_;
};

#else

class extractor {
public:
  extractor(const picture &p, float threshold, bool doubled)
      : width_(p.width), height_(p.height), pixels_(page_locked<uint8_t>(p.pixels.size())),
        sift_(config(threshold, doubled), popsift::Config::ExtractingMode, PopSift::ByteImages, 0) {
    std::copy(p.pixels.begin(), p.pixels.end(), pixels_);
  }
  void run() {
    delete features_;
    SiftJob *job = sift_.enqueue(width_, height_, pixels_);
    features_ = job->getHost();
    delete job;
  }
  std::vector<float> rows() const {
    std::vector<float> out;
    for (const popsift::Feature &f : *features_)
      for (int k = 0; k < f.num_ori; k++) {
        const float head[] = {f.xpos, f.ypos, f.sigma, f.orientation[k]};
        out.insert(out.end(), head, head + 4);
        out.insert(out.end(), f.desc[k]->features, f.desc[k]->features + 128);
      }
    return out;
  }

private:
  static popsift::Config config(float threshold, bool doubled) {
    popsift::Config c;
    c.setMode(popsift::Config::PopSift);
    c.setDownsampling(doubled ? -1.0f : 0.0f);
    c.setLevels(3);
    c.setSigma(1.6f);
    c.setEdgeLimit(10.0f);
    c.setThreshold(threshold);
    return c;
  }
  int width_, height_;
  uint8_t *pixels_;
  PopSift sift_;
  popsift::FeaturesHost *features_ = nullptr;
};

#endif

} /* namespace */

int main(int argc, char **argv) {
  picture p;
  if (argc != 6 || !read_pgm(argv[1], &p)) {
    std::fprintf(stderr, "usage: peer_gpu PICTURE.pgm OUT THRESHOLD FIRST_OCTAVE REPEATS\n");
    return 2;
  }
  const int repeats = std::max(1, std::atoi(argv[5]));
  extractor e(p, float(std::atof(argv[3])), std::atoi(argv[4]) < 0);
  std::vector<double> ms;
  for (int i = -WARM_UP; i < repeats; i++) {
    const auto start = std::chrono::steady_clock::now();
    e.run();
    if (i >= 0)
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(ms.begin(), ms.begin() + long(ms.size() / 2), ms.end());
  const std::vector<float> rows = e.rows();
  const int32_t count = int32_t(rows.size() / ROW);
  FILE *out = std::fopen(argv[2], "wb");
  const bool written = out && std::fwrite(&count, sizeof count, 1, out) == 1 &&
                       std::fwrite(rows.data(), sizeof(float), rows.size(), out) == rows.size();
  if (out && std::fclose(out) != 0) return 1;
  std::fprintf(stderr, "result %d %.4f\n", int(count), ms[ms.size() / 2]);
  std::fflush(stderr);
  std::_Exit(written ? 0 : 1); /* without their destructors, which may wait for threads */
}
