/*
 * Time of matching compared with OpenCV's brute force: nearest and second nearest of every descriptor.
 *
 * usage: bench_match [features [threads [repeats]]]
 *        bench_match limits [features [repeats]]
 * Matches `features` descriptors from each of two views of a generated scene. Contenders are interleaved in one run,
 * and each round starts with a different one. Ratio: OpenCV's time divided by the contender's in the same round, median
 * over the rounds. OpenCV runs BFMatcher::knnMatch(k = 2, NORM_L2) on float descriptors, the usual call for its SIFT.
 * Times are processor time of all threads of the process, which other work on the machine disturbs least.
 * Before timing, our nearest neighbours are compared with the plain C reference's and OpenCV's with ours.
 *
 * limits: time of each instruction set in one thread next to the limit of its multiply-adds, whose rate is measured.
 * Limit of all comparisons: 128 products a pair of descriptors. Limit with the bound: 24 products a pair. Near: two
 * views of a scene. Far: two scenes. Both without distances to the second nearest. Least processor time of the repeats.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <time.h>
#if defined(__x86_64__)
#  include <immintrin.h>
#endif

#include <opencv2/core/utility.hpp>
#include <opencv2/features2d.hpp>

#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"
#include "pipeline/include/hartsift_pairs.h"

namespace {

const double view[9] = {1.04, 0.06, -12.0, -0.05, 1.03, 9.0, 1e-5, -1e-5, 1.0};

struct contender {
  std::string name;
  hs_context *context; /* null for OpenCV */
  bool floats, mutual, squared;
  std::vector<double> ms, cpu_ms;
};

struct lists {
  hs_features u8[2], f32[2];
  cv::Mat mat_u8[2], mat_f32[2];
};

double now_ms(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

void require(bool condition, const char *what) {
  if (condition) return;
  std::fprintf(stderr, "bench_match: %s\n", what);
  std::exit(1);
}

/* Extracts the first `count` features of a view, in both types. Float values are 0..255, as OpenCV's. */
void make_list(uint32_t seed, const double *homography, size_t count, hs_features *u8, hs_features *f32) {
  const int32_t side = static_cast<int32_t>(std::sqrt(static_cast<double>(count)) * 24.0) + 64;
  hs_options options;
  hs_context *context = nullptr;
  hs_image image = {};
  hs_options_init(&options, HS_PROFILE_OPENCV);
  options.contrast = 0.01f;
  options.max_features = static_cast<int32_t>(count);
  options.descriptor = HS_DESCRIPTOR_F32;
  require(hs_render_scene(side, side, seed, homography, nullptr, &image) == HS_OK, "cannot render");
  require(hs_create(&context, &options) == HS_OK && hs_extract(context, &image, nullptr, f32) == HS_OK,
          "cannot extract");
  require(f32->count == count, "the scene has too few features");
  hs_destroy(context);
  options.descriptor = HS_DESCRIPTOR_U8;
  require(hs_create(&context, &options) == HS_OK && hs_extract(context, &image, nullptr, u8) == HS_OK,
          "cannot extract");
  hs_destroy(context);
  hs_image_free(&image);
}

contender ours(const char *variant, int32_t threads, bool floats, bool mutual) {
  hs_options options;
  contender c = {std::string("hartsift ") + variant + (floats ? " f32" : " u8") + (mutual ? ", both ways" : ""),
                 nullptr,
                 floats,
                 mutual,
                 false,
                 {},
                 {}};
  hs_options_init(&options, HS_PROFILE_LOWE);
  options.threads = threads;
  options.device = HS_DEVICE_CPU;
  const std::string chosen = std::string("match=") + variant;
  hs_expert_options expert;
  hs_expert_options_init(&expert, HS_PROFILE_LOWE);
  expert.variant = chosen.c_str();
  options.expert = &expert;
  if (hs_create(&c.context, &options) != HS_OK) c.context = nullptr;
  return c;
}

void run_opencv(const contender &c, const lists &l, std::vector<std::vector<cv::DMatch>> *found) {
  const cv::BFMatcher matcher(c.squared ? cv::NORM_L2SQR : cv::NORM_L2);
  const cv::Mat *m = c.floats ? l.mat_f32 : l.mat_u8;
  matcher.knnMatch(m[0], m[1], *found, 2);
}

void run_once(const contender &c, const lists &l) {
  if (!c.context) {
    std::vector<std::vector<cv::DMatch>> found;
    run_opencv(c, l, &found);
    return;
  }
  const hs_features *f = c.floats ? l.f32 : l.u8;
  std::vector<hs_nearest> nearest(f[0].count);
  hs_matches matches = {};
  const hs_status st = c.mutual ? hs_match(c.context, &f[0], &f[1], nullptr, &matches)
                                : hs_find_nearest(c.context, &f[0], &f[1], nullptr, nearest.data());
  require(st == HS_OK, "matching failed");
  hs_matches_free(&matches);
}

void time_once(contender *c, const lists &l) {
  const double begin = now_ms(CLOCK_MONOTONIC), cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
  run_once(*c, l);
  c->ms.push_back(now_ms(CLOCK_MONOTONIC) - begin);
  c->cpu_ms.push_back(now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

/* Compares with the reference, on as many features of the first list as a short time allows. OpenCV may differ where
 * distances are equal. */
void verify(const contender &c, const lists &l, hs_context *reference) {
  const hs_features *f = c.floats ? l.f32 : l.u8;
  hs_features part = f[0];
  part.count = std::min<size_t>(part.count, 200);
  std::vector<hs_nearest> expected(part.count), nearest(f[0].count);
  require(hs_find_nearest(reference, &part, &f[1], nullptr, expected.data()) == HS_OK, "the reference failed");
  if (c.context) {
    require(hs_find_nearest(c.context, &f[0], &f[1], nullptr, nearest.data()) == HS_OK, "matching failed");
    require(std::memcmp(nearest.data(), expected.data(), part.count * sizeof(hs_nearest)) == 0, "another result");
    return;
  }
  std::vector<std::vector<cv::DMatch>> found;
  run_opencv(c, l, &found);
  for (size_t i = 0; i < part.count; i++) {
    const float d = found[i][0].distance, squared = c.squared ? d : d * d;
    require(std::fabs(squared - expected[i].nearest_squared) <= 1e-5f * squared + 1e-3f, "OpenCV's distance differs");
  }
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/* ------------------------------------------------------------------ limits */

/* MATCH_BOUND_VALUES of stages/match_bound.h, which C++ cannot include */
enum { BOUND_VALUES = 24 };

/* Products per nanosecond: of the instructions that compare all descriptors, and of those of the bound. */
struct rates {
  double all, bound;
};

#if defined(__x86_64__)
/* A function that multiplies and adds in independent sums, so that the ports of the processor limit it. The empty
 * statements keep the compiler from computing products once, or not at all. */
#  define SUMS 12
#  define RATE_FUNCTION(NAME, TARGET, VECTOR, ZERO, MULTIPLY_ADD)                                                      \
    __attribute__((target(TARGET))) void NAME(long steps) {                                                            \
      VECTOR sums[SUMS], a = ZERO, b = ZERO;                                                                           \
      __asm__ volatile("" : "+v"(b));                                                                                  \
      for (int i = 0; i < SUMS; i++) sums[i] = ZERO;                                                                   \
      for (long step = 0; step < steps; step++) {                                                                      \
        _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++) {                                                      \
          __asm__ volatile("" : "+v"(a));                                                                              \
          sums[i] = MULTIPLY_ADD(sums[i], a, b);                                                                       \
        }                                                                                                              \
      }                                                                                                                \
      for (int i = 0; i < SUMS; i++) __asm__ volatile("" ::"v"(sums[i]));                                              \
    }
#  define SSE2_ALL(sum, a, b)     _mm_add_epi32(sum, _mm_madd_epi16(a, b))
#  define SSE2_BOUND(sum, a, b)   _mm_add_epi16(sum, _mm_mullo_epi16(a, b))
#  define AVX2_ALL(sum, a, b)     _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#  define AVX2_BOUND(sum, a, b)   _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b))
#  define AVX512_ALL(sum, a, b)   _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
#  define AVX512_BOUND(sum, a, b) _mm512_add_epi16(sum, _mm512_maddubs_epi16(a, b))
RATE_FUNCTION(sse2_all, "sse2", __m128i, _mm_setzero_si128(), SSE2_ALL)
RATE_FUNCTION(sse2_bound, "sse2", __m128i, _mm_setzero_si128(), SSE2_BOUND)
RATE_FUNCTION(avx2_all, "avx2", __m256i, _mm256_setzero_si256(), AVX2_ALL)
RATE_FUNCTION(avx2_bound, "avx2", __m256i, _mm256_setzero_si256(), AVX2_BOUND)
RATE_FUNCTION(avx512_all, "avx512bw", __m512i, _mm512_setzero_si512(), AVX512_ALL)
RATE_FUNCTION(avx512_bound, "avx512bw", __m512i, _mm512_setzero_si512(), AVX512_BOUND)
RATE_FUNCTION(avx512vnni_both, "avx512vnni", __m512i, _mm512_setzero_si512(), _mm512_dpbusd_epi32)

double rate(void (*multiply_add)(long), double products) {
  const long steps = 400000;
  double least = INFINITY;
  for (int r = 0; r < 20; r++) {
    const double begin = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    multiply_add(steps);
    least = std::min(least, now_ms(CLOCK_PROCESS_CPUTIME_ID) - begin);
  }
  return products * SUMS * static_cast<double>(steps) / (least * 1e6);
}

rates rates_of(const std::string &variant) {
  if (variant == "sse2") return {rate(sse2_all, 8), rate(sse2_bound, 8)};
  if (variant == "avx2") return {rate(avx2_all, 16), rate(avx2_bound, 32)};
  if (variant == "avx512") return {rate(avx512_all, 32), rate(avx512_bound, 64)};
  const double both = rate(avx512vnni_both, 64);
  return {both, both};
}
#else
rates rates_of(const std::string &) { return {NAN, NAN}; }
#endif

/* Finds the matches as a run over pairs does for a database: without distances to the second nearest. */
void match_pair(hs_context *context, const lists &l) {
  hs_collection_image images[2] = {};
  hs_collection collection = {};
  hs_pairs_options options;
  const hs_image_pair pair = {0, 1};
  const hs_pair_result *result = nullptr;
  hs_pairs *run = nullptr;
  for (int i = 0; i < 2; i++) images[i].features = &l.u8[i];
  collection.images = images;
  collection.image_count = 2;
  hs_pairs_options_init(&options);
  options.skip_next_distance = 1;
  require(hs_pairs_start(&run, context, &collection, &pair, 1, &options) == HS_OK &&
              hs_pairs_next(run, -1, &result) == HS_OK && result->status == HS_OK,
          "matching failed");
  hs_pairs_end(run);
}

/* Returns the least processor time. matches: of finding matches, else of finding the two nearest. */
double least_ms(const contender &c, const lists &l, bool matches, int repeats) {
  double least = INFINITY;
  for (int r = 0; r < repeats; r++) {
    const double begin = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (matches)
      match_pair(c.context, l);
    else
      run_once(c, l);
    least = std::min(least, now_ms(CLOCK_PROCESS_CPUTIME_ID) - begin);
  }
  return least;
}

int print_limits(size_t count, int repeats) {
  lists near = {}, far = {};
  require(count > 0 && repeats > 0, "usage: bench_match limits [features [repeats]]");
  make_list(7, nullptr, count, &near.u8[0], &near.f32[0]);
  far = near; /* the first list is the same */
  make_list(7, view, count, &near.u8[1], &near.f32[1]);
  make_list(8, view, count, &far.u8[1], &far.f32[1]);
  std::printf("%zu x %zu descriptors, one thread, least processor time of %d, ms\n\n", count, count, repeats);
  std::printf("| |limit|all comparisons|limit with the bound|near|far|\n|---|--:|--:|--:|--:|--:|\n");
  for (const char *variant : {"sse2", "avx2", "avx512", "avx512vnni", "neon", "neondot"}) {
    const contender c = ours(variant, 1, false, false);
    if (!c.context) continue;
    const rates r = rates_of(variant);
    const double comparisons = static_cast<double>(count) * static_cast<double>(count) * 1e-6;
    std::printf("|%s|%.1f|%.1f|%.1f|%.1f|%.1f|\n", variant, HS_DESCRIPTOR_LENGTH * comparisons / r.all,
                least_ms(c, near, false, repeats), BOUND_VALUES * comparisons / r.bound,
                least_ms(c, near, true, repeats), least_ms(c, far, true, repeats));
    hs_destroy(c.context);
  }
  for (int i = 0; i < 2; i++) {
    hs_features_free(&near.u8[i]);
    hs_features_free(&near.f32[i]);
  }
  hs_features_free(&far.u8[1]);
  hs_features_free(&far.f32[1]);
  return 0;
}

} /* namespace */

int main(int argc, char **argv) {
  if (argc > 1 && std::strcmp(argv[1], "limits") == 0)
    return print_limits(argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 8192, argc > 3 ? std::atoi(argv[3]) : 5);
  const size_t count = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 8000;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 5;
  require(count > 0 && threads > 0 && repeats > 0, "usage: bench_match [features [threads [repeats]]]");
  lists l = {};
  for (int i = 0; i < 2; i++) {
    make_list(7, i ? view : nullptr, count, &l.u8[i], &l.f32[i]);
    const int rows = static_cast<int>(count);
    l.mat_u8[i] = cv::Mat(rows, HS_DESCRIPTOR_LENGTH, CV_8U, l.u8[i].descriptors);
    l.mat_f32[i] = cv::Mat(rows, HS_DESCRIPTOR_LENGTH, CV_32F, l.f32[i].descriptors);
  }
  std::vector<contender> all = {{"OpenCV L2 f32", nullptr, true, false, false, {}, {}},
                                {"OpenCV L2SQR f32", nullptr, true, false, true, {}, {}},
                                {"OpenCV L2 u8", nullptr, false, false, false, {}, {}}};
  for (const char *variant : {"sse2", "avx2", "avx512", "avx512vnni", "neon", "neondot"})
    for (int kind = 0; kind < 4; kind++) {
      /* sse2 emulates fused multiply-add, so it is not timed */
      if (kind >= 2 && std::strcmp(variant, "sse2") == 0) continue;
      const contender c = ours(variant, threads, kind >= 2, kind % 2 == 1);
      if (c.context) all.push_back(c);
    }
  cv::setNumThreads(threads);
  contender reference = ours("ref", 1, false, false);
  for (const contender &c : all) verify(c, l, reference.context);
  for (int r = 0; r < repeats; r++)
    for (size_t i = 0; i < all.size(); i++) time_once(&all[(i + static_cast<size_t>(r)) % all.size()], l);
  std::printf("%zu x %zu descriptors, %d threads, OpenCV %s, median of %d\n\n", count, count, threads, CV_VERSION,
              repeats);
  std::printf("| contender | ms | least ms | processor ms | OpenCV L2 f32 by it | the same in processor time |\n");
  std::printf("|---|--:|--:|--:|--:|--:|\n");
  for (contender &c : all) {
    std::vector<double> ratio, cpu_ratio;
    for (size_t r = 0; r < c.ms.size(); r++) {
      ratio.push_back(all[0].ms[r] / c.ms[r]);
      cpu_ratio.push_back(all[0].cpu_ms[r] / c.cpu_ms[r]);
    }
    std::printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f |\n", c.name.c_str(), median(c.ms),
                *std::min_element(c.ms.begin(), c.ms.end()), median(c.cpu_ms), median(ratio), median(cpu_ratio));
    hs_destroy(c.context);
  }
  hs_destroy(reference.context);
  for (int i = 0; i < 2; i++) {
    hs_features_free(&l.u8[i]);
    hs_features_free(&l.f32[i]);
  }
  return 0;
}
