/*
 * Features of PopSift for `bench.py public --popsift PROGRAM`: one process extracts picture after picture.
 *
 * usage: popsift_client MAX_FEATURES
 * Reads from standard input, as often as there are pictures: width, height (int32), then width * height bytes of a gray
 * picture. Writes to standard output for each: count (int32), then of each feature x, y and scale (float), then of each
 * 128 bytes. Defaults of PopSift, but for its filter, which keeps the largest scales instead of random ones (about
 * MAX_FEATURES extrema, in each of four parts of the picture the same number), and its factor of 512, so that values
 * are bytes.
 */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <popsift/features.h>
#include <popsift/popsift.h>
#include <unistd.h>

namespace {

bool write_all(FILE *out, const void *data, size_t bytes) { return bytes == 0 || fwrite(data, 1, bytes, out) == bytes; }

uint8_t byte_of(float value) {
  const float rounded = roundf(value);
  return static_cast<uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
}

bool write_features(FILE *out, popsift::FeaturesHost *found) {
  std::vector<float> positions;
  std::vector<uint8_t> descriptors;
  for (const popsift::Feature &feature : *found) {
    for (int k = 0; k < feature.num_ori; k++) {
      positions.insert(positions.end(), {feature.xpos, feature.ypos, feature.sigma});
      for (float value : feature.desc[k]->features) descriptors.push_back(byte_of(value));
    }
  }
  const int32_t count = static_cast<int32_t>(positions.size() / 3);
  return write_all(out, &count, sizeof(count)) && write_all(out, positions.data(), positions.size() * sizeof(float)) &&
         write_all(out, descriptors.data(), descriptors.size()) && fflush(out) == 0;
}

int fail(const char *what) {
  fprintf(stderr, "popsift_client: %s\n", what);
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  const int max_features = argc == 2 ? atoi(argv[1]) : 0;
  FILE *out = fdopen(dup(STDOUT_FILENO), "wb");
  if (max_features < 1 || !out ||
      dup2(STDERR_FILENO, STDOUT_FILENO) < 0) { /* what PopSift prints must not be in the answer */
    fprintf(stderr, "usage: popsift_client MAX_FEATURES\n");
    return 2;
  }
  popsift::Config config;
  config.setFilterMaxExtrema(max_features);
  config.setFilterSorting(popsift::Config::LargestScaleFirst);
  config.setNormalizationMultiplier(9);
  PopSift extractor(config, popsift::Config::ExtractingMode, PopSift::ByteImages);
  int32_t size[2];
  while (fread(size, sizeof(size), 1, stdin) == 1) {
    if (size[0] < 1 || size[1] < 1) return fail("a picture is empty");
    std::vector<uint8_t> pixels(static_cast<size_t>(size[0]) * static_cast<size_t>(size[1]));
    if (fread(pixels.data(), 1, pixels.size(), stdin) != pixels.size()) return fail("a picture is cut off");
    std::unique_ptr<SiftJob> job(extractor.enqueue(size[0], size[1], pixels.data()));
    if (!job) return fail("PopSift takes no more pictures");
    std::unique_ptr<popsift::FeaturesHost> found(job->getHost());
    if (!found) return fail("PopSift returns no features");
    if (!write_features(out, found.get())) return fail("the answer cannot be written");
  }
  return 0;
}
