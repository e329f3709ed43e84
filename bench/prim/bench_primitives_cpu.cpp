/*
 * The primitives on the CPU compared with OpenCV's sum, minMaxLoc, calcHist, equalizeHist, filter2D of one row, and the
 * first two for each tile.
 *
 * Both do the same work on the same memory, interleaved in one process; results are compared before anything is timed.
 * Times are given for one thread, and for each library's default number of threads.
 *
 * usage: bench_primitives_cpu [ROUNDS [FUNCTION]]        prints a table in Markdown, of one function or of all
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "pipeline/include/hartsift.h"

namespace {

enum class work { sum, range, histogram, equalize, convolve, tiles };

enum { TILE = 40, THRESHOLD = 127 };

struct bench_case {
  const char *name;
  work what;
  int type; /* OpenCV's type: CV_8U, CV_16U, CV_32F, CV_64F */
  int width, height;
  const char *content; /* "scene", "random" or "constant" */
};

const bench_case cases[] = {
    {"sum", work::sum, CV_8U, 640, 480, "scene"},
    {"sum", work::sum, CV_8U, 3840, 2160, "scene"},
    {"sum", work::sum, CV_16U, 3840, 2160, "random"},
    {"sum", work::sum, CV_32F, 512, 512, "random"},
    {"sum", work::sum, CV_32F, 3840, 2160, "random"},
    {"sum", work::sum, CV_64F, 3840, 2160, "random"},
    {"minMaxLoc", work::range, CV_8U, 640, 480, "scene"},
    {"minMaxLoc", work::range, CV_8U, 3840, 2160, "scene"},
    {"minMaxLoc", work::range, CV_32F, 512, 512, "random"},
    {"minMaxLoc", work::range, CV_32F, 3840, 2160, "random"},
    {"calcHist", work::histogram, CV_8U, 640, 480, "scene"},
    {"calcHist", work::histogram, CV_8U, 3840, 2160, "scene"},
    {"calcHist", work::histogram, CV_8U, 3840, 2160, "random"},
    {"calcHist", work::histogram, CV_8U, 3840, 2160, "constant"},
    {"equalizeHist", work::equalize, CV_8U, 640, 480, "scene"},
    {"equalizeHist", work::equalize, CV_8U, 3840, 2160, "scene"},
    {"per 40x40 tile", work::tiles, CV_8U, 8000, 1000, "random"},
    {"filter2D, 5 taps", work::convolve, CV_64F, 10000000, 1, "random"},
    {"filter2D, 31 taps", work::convolve, CV_64F, 1000000, 1, "random"},
};

const char *type_name(int type) {
  return type == CV_8U ? "u8" : (type == CV_16U ? "u16" : (type == CV_32F ? "f32" : "f64"));
}

hs_array view_of(const cv::Mat &m) {
  static const hs_element elements[] = {HS_ELEMENT_U8, HS_ELEMENT_U8,  HS_ELEMENT_U16, HS_ELEMENT_U16,
                                        HS_ELEMENT_U8, HS_ELEMENT_F32, HS_ELEMENT_F64};
  hs_array a = {m.data, size_t(m.cols), size_t(m.rows), m.step[0], elements[m.depth()]};
  return a;
}

int taps_of(const bench_case &b) { return b.name[10] == '5' ? 5 : 31; }

/* Inputs and outputs of both sides. */
struct bench_state {
  const bench_case *b;
  cv::Mat in, ours, theirs, theirs_histogram;
  std::vector<double> taps;
  cv::Mat kernel;
  std::vector<hs_tile> tiles, their_tiles;
  double our_numbers[2], their_numbers[2];
  uint64_t counts[256];
};

bool fill(bench_state &s) {
  const bench_case &b = *s.b;
  s.in.create(b.height, b.width, b.type);
  if (std::strcmp(b.content, "scene") == 0) {
    hs_image scene = {};
    if (hs_render_scene(b.width, b.height, 1, nullptr, nullptr, &scene) != HS_OK) return false;
    for (int y = 0; y < b.height; y++)
      std::memcpy(s.in.ptr(y), static_cast<const uint8_t *>(scene.data) + size_t(y) * size_t(b.width), size_t(b.width));
    hs_image_free(&scene);
  } else if (std::strcmp(b.content, "random") == 0) {
    cv::RNG random(1);
    random.fill(s.in, cv::RNG::UNIFORM, 0, b.type == CV_8U ? 256 : (b.type == CV_16U ? 65536 : 1));
  } else {
    s.in.setTo(77);
  }
  if (b.what == work::convolve) {
    s.taps.assign(size_t(taps_of(b)), 1.0 / taps_of(b));
    s.kernel = cv::Mat(1, taps_of(b), CV_64F, s.taps.data());
  }
  s.ours.create(b.height, b.width, b.type);
  const size_t tiles = size_t((b.width - 1) / TILE + 1) * size_t((b.height - 1) / TILE + 1);
  s.tiles.resize(b.what == work::tiles ? tiles : 0);
  s.their_tiles = s.tiles;
  return true;
}

bool run_ours(hs_context *c, bench_state &s) {
  const hs_array a = view_of(s.in);
  switch (s.b->what) {
  case work::sum:
    return hs_reduce_sum(c, &a, &s.our_numbers[0]) == HS_OK;
  case work::range:
    return hs_reduce_range(c, &a, &s.our_numbers[0], &s.our_numbers[1]) == HS_OK;
  case work::histogram:
    return hs_histogram256(c, &a, nullptr, s.counts) == HS_OK;
  case work::equalize:
    return hs_equalize(c, &a, s.ours.data, s.ours.step[0]) == HS_OK;
  case work::tiles: {
    const hs_tiling tiling = {TILE, TILE, THRESHOLD};
    size_t count = 0;
    return hs_tile_stats(c, &a, &tiling, s.tiles.data(), s.tiles.size(), &count) == HS_OK;
  }
  case work::convolve:
    return hs_convolve1d(c, &a, s.taps.data(), s.taps.size(), HS_ENDS_REPLICATE, s.ours.data, s.ours.step[0]) == HS_OK;
  }
  return false;
}

/* OpenCV has no function for tiles; this is the loop that its users write. */
void run_their_tiles(bench_state &s) {
  size_t k = 0;
  for (int y = 0; y < s.in.rows; y += TILE)
    for (int x = 0; x < s.in.cols; x += TILE, k++) {
      const cv::Mat tile = s.in(cv::Rect(x, y, std::min(int(TILE), s.in.cols - x), std::min(int(TILE), s.in.rows - y)));
      hs_tile &t = s.their_tiles[k];
      t.sum = cv::sum(tile)[0];
      t.mean = t.sum / double(tile.total());
      cv::minMaxLoc(tile, &t.min, &t.max);
      t.above = uint64_t(cv::countNonZero(tile > int(THRESHOLD)));
    }
}

void run_theirs(bench_state &s) {
  static const int channels[] = {0}, sizes[] = {256};
  static const float range[] = {0.0f, 256.0f};
  static const float *const ranges[] = {range};
  switch (s.b->what) {
  case work::sum:
    s.their_numbers[0] = cv::sum(s.in)[0];
    break;
  case work::range:
    cv::minMaxLoc(s.in, &s.their_numbers[0], &s.their_numbers[1]);
    break;
  case work::histogram:
    cv::calcHist(&s.in, 1, channels, cv::noArray(), s.theirs_histogram, 1, sizes, const_cast<const float **>(ranges));
    break;
  case work::equalize:
    cv::equalizeHist(s.in, s.theirs);
    break;
  case work::tiles:
    run_their_tiles(s);
    break;
  case work::convolve:
    cv::filter2D(s.in, s.theirs, CV_64F, s.kernel, cv::Point(-1, -1), 0.0, cv::BORDER_REPLICATE);
    break;
  }
}

/* Integers and extremes must be equal, float sums and convolutions nearly equal. */
bool agree(const bench_state &s) {
  const auto near = [](double a, double b) { return std::fabs(a - b) <= 1e-6 * std::fabs(b) + 1e-12; };
  switch (s.b->what) {
  case work::sum:
    return near(s.our_numbers[0], s.their_numbers[0]);
  case work::range:
    return s.our_numbers[0] == s.their_numbers[0] && s.our_numbers[1] == s.their_numbers[1];
  case work::histogram:
    for (int k = 0; k < 256; k++)
      if (double(s.counts[k]) != double(s.theirs_histogram.at<float>(k))) return false;
    return true;
  case work::tiles:
    for (size_t k = 0; k < s.tiles.size(); k++)
      if (std::memcmp(&s.tiles[k], &s.their_tiles[k], sizeof s.tiles[k]) != 0) return false;
    return true;
  case work::equalize:
    return cv::norm(s.ours, s.theirs, cv::NORM_INF) == 0.0;
  case work::convolve:
    return cv::norm(s.ours, s.theirs, cv::NORM_INF) < 1e-12;
  }
  return false;
}

/* Returns processor time with one thread, because other programs disturb it less, else wall time. */
double now_us(bool one_thread) {
  timespec t = {};
  clock_gettime(one_thread ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e6 + double(t.tv_nsec) * 1e-3;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/* Returns the number of calls per timed interval, which must be long compared with the clock's resolution. */
int repeats_for(double us) { return us > 500.0 ? 1 : int(500.0 / (us + 0.1)) + 1; }

/* Measures the median of both times, and of the ratio in each round. */
bool time_case(hs_context *c, bool one_thread, bench_state &s, int rounds, double *ours, double *theirs,
               double *ratio) {
  if (!run_ours(c, s)) return false;
  run_theirs(s);
  if (!agree(s)) return false;
  double start = now_us(one_thread);
  run_theirs(s);
  const int repeats = repeats_for(now_us(one_thread) - start);
  std::vector<double> our_times, their_times, ratios;
  for (int r = 0; r < rounds + 2; r++) {
    start = now_us(one_thread);
    for (int k = 0; k < repeats; k++) run_ours(c, s);
    const double middle = now_us(one_thread);
    for (int k = 0; k < repeats; k++) run_theirs(s);
    const double end = now_us(one_thread);
    if (r < 2) continue; /* warm-up */
    our_times.push_back((middle - start) / repeats);
    their_times.push_back((end - middle) / repeats);
    ratios.push_back((end - middle) / (middle - start));
  }
  *ours = median(our_times);
  *theirs = median(their_times);
  *ratio = median(ratios);
  return true;
}

hs_context *context_of(int threads) {
  hs_options options;
  hs_context *c = nullptr;
  if (hs_options_init(&options, HS_PROFILE_LOWE) != HS_OK) return nullptr;
  options.device = HS_DEVICE_CPU;
  options.threads = threads;
  return hs_create(&c, &options) == HS_OK ? c : nullptr;
}

bool bench_one(const bench_case &b, hs_context *one, hs_context *all, int rounds) {
  bench_state s = {};
  s.b = &b;
  if (!fill(s)) return false;
  double t[2][3];
  cv::setNumThreads(1);
  if (!time_case(one, true, s, rounds, &t[0][0], &t[0][1], &t[0][2])) return false;
  cv::setNumThreads(-1);
  if (!time_case(all, false, s, rounds, &t[1][0], &t[1][1], &t[1][2])) return false;
  const double mb = double(b.width) * b.height * double(s.in.elemSize()) / 1e6;
  std::printf("| %s | %s | %dx%d %s | %.1f / %.1f | **%.2f** | %.1f | %.1f / %.1f | **%.2f** |\n", b.name,
              type_name(b.type), b.width, b.height, b.content, t[0][0], t[0][1], t[0][2], mb / t[0][0] * 1e3, t[1][0],
              t[1][1], t[1][2]);
  std::fflush(stdout);
  return true;
}

} /* namespace */

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  hs_context *one = context_of(1), *all = context_of(0);
  if (!one || !all) {
    std::fprintf(stderr, "no context\n");
    return 1;
  }
  std::printf("%u cores; OpenCV " CV_VERSION
              " with %d threads by default; %d rounds by turns, medians; factor: OpenCV's "
              "time / hartsift's.\n\n",
              std::thread::hardware_concurrency(), cv::getNumThreads(), rounds);
  std::printf("| OpenCV's function | type | array | 1 thread: hartsift / OpenCV, us of processor time | factor | GB/s "
              "read | default: hartsift / "
              "OpenCV, us | factor |\n|---|---|---|--:|--:|--:|--:|--:|\n");
  int failed = 0;
  for (const bench_case &b : cases)
    if ((argc <= 2 || std::strcmp(argv[2], b.name) == 0) && !bench_one(b, one, all, rounds)) {
      std::fprintf(stderr, "%s %s: the results differ\n", b.name, type_name(b.type));
      failed = 1;
    }
  hs_destroy(one);
  hs_destroy(all);
  return failed;
}
