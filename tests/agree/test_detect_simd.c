/*
 * Detection on synthetic levels: every variant this machine can run equals the reference, keypoint for keypoint.
 *
 * Later tests of a candidate are as loose as possible, so that nearly every extremum reaches the list.
 */
#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "tests/support/extent.h"
#include "tests/support/stage_planes.h"

enum { GUARD_BYTES = 64 };
#define GUARD_BYTE 0xA5

typedef struct detect_case {
  int32_t width, height, scales, border;
  size_t padding;
  float threshold;
  bool ties;
  int32_t steps; /* number of different sample values; a small number gives ties */
  double sigma;  /* sigma of the filter that makes level S+2 */
} detect_case;

/* The arrays of a keypoint list in one block. */
typedef struct detect_result {
  unsigned char *block;
  size_t block_bytes;
  uint32_t keypoints;
  uint64_t candidates;
} detect_result;

static border_mode border_of(const detect_case *c) { return c->width % 2 ? BORDER_REPLICATE : BORDER_REFLECT_101; }

static gaussian_filter filter_of(const detect_case *c) {
  gaussian_filter f;
  scalespace_filter(c->sigma, RULE_LOWE, &f);
  return f;
}

static keypoint_list list_in(unsigned char *block, uint32_t capacity, uint32_t *count) {
  keypoint_list k = {.count = count, .capacity = capacity};
  float *f = (float *)(void *)block;
  k.x = f, k.y = f + capacity, k.sigma = f + 2 * (size_t)capacity, k.response = f + 3 * (size_t)capacity;
  k.column = (int32_t *)(void *)(f + 4 * (size_t)capacity), k.row = k.column + capacity;
  k.octave = (int16_t *)(void *)(k.row + capacity), k.level = k.octave + capacity;
  return k;
}

static detect_result detect(const stage_ops *ops, stage_queue *queue, const detect_case *c, const octave_view *octave) {
  enum { KEYPOINT_BYTES = 28 };
  detect_result r = {.keypoints = 0};
  const uint32_t capacity = (uint32_t)(c->width * c->height * c->scales) + 1;
  const pyramid_geometry geometry = {.octave_count = 1, .width = {c->width}, .height = {c->height}};
  const size_t work_bytes = ops->detect_work_bytes(&geometry, c->scales, capacity);
  const gaussian_filter filter = filter_of(c);
  unsigned char *work = malloc(work_bytes + GUARD_BYTES);
  r.block_bytes = (size_t)capacity * KEYPOINT_BYTES;
  r.block = calloc(r.block_bytes, 1);
  assert_true(work && r.block);
  memset(work + work_bytes, GUARD_BYTE, GUARD_BYTES);
  const detect_args args = {.octaves = octave,
                            .octave_count = 1,
                            .border = border_of(c),
                            .top_filter = &filter,
                            .params = {.scales = c->scales,
                                       .sigma0 = 1.6f,
                                       .border = c->border,
                                       .candidate_above = c->threshold,
                                       .extremum_ties = c->ties,
                                       .refine_rule = (author_rule)(c->height % 3),
                                       .settle = 0.6f,
                                       .contrast_above = -1.0f,
                                       .edge = 1e6f},
                            .filter = {.x0 = INT32_MIN, .y0 = INT32_MIN, .x1 = INT32_MAX, .y1 = INT32_MAX},
                            .work = work,
                            .keypoints = list_in(r.block, capacity, &r.keypoints),
                            .candidates = &r.candidates};
  assert_int_equal(ops->detect(queue, &args), STAGE_OK);
  for (size_t i = 0; i < GUARD_BYTES; i++) assert_int_equal(work[work_bytes + i], GUARD_BYTE);
  free(work);
  return r;
}

static void check_same(const detect_result *expected, const detect_result *got, const detect_case *c,
                       const char *what) {
  if (expected->candidates != got->candidates || expected->keypoints != got->keypoints)
    fail_msg("%s, %d x %d: %d extrema, %d keypoints; the reference has %d, %d", what, c->width, c->height,
             (int)got->candidates, (int)got->keypoints, (int)expected->candidates, (int)expected->keypoints);
  if (memcmp(expected->block, got->block, expected->block_bytes) != 0)
    fail_msg("%s, %d x %d: keypoints differ from the reference's", what, c->width, c->height);
}

/* Makes level S+2 from level S+1, which only the reference needs. */
static void make_top(const detect_case *c, const octave_view *octave) {
  const gaussian_filter filter = filter_of(c);
  plane_view work = octave_level(octave, c->scales + 1);
  work.data = malloc(sizeof(float) * work.stride * (size_t)work.height);
  assert_non_null(work.data);
  const blur_args blur = {
      octave_level(octave, c->scales + 1), octave_level(octave, c->scales + 2), work, border_of(c), &filter, {0}};
  assert_int_equal(cpu_variant_ops("ref")->blur(NULL, &blur), STAGE_OK);
  free(work.data);
}

/* Compares all variants with the reference. Returns the reference's number of extrema, so that a test can require a
 * minimum. */
static uint64_t check_detect(stage_queue *const *queues, const detect_case *c) {
  const size_t stride = (size_t)c->width + c->padding;
  /* The levels share one plane, whose last row ends at the end of the memory. The variants get one level less. */
  SCOPED_BY(plane_free)
  guarded_plane levels = plane_make(c->width, c->height * (c->scales + 3), stride),
                without_top = plane_make(c->width, c->height * (c->scales + 2), stride);
  plane_fill(&levels, PATTERN_NOISE, 1234u + (uint32_t)c->width);
  for (int32_t y = 0; y < levels.view.height && c->steps > 0; y++)
    for (int32_t x = 0; x < c->width; x++) {
      float *v = levels.view.data + (size_t)y * stride + (size_t)x;
      *v = (float)(int32_t)(*v * (float)c->steps) / (float)c->steps;
    }
  octave_view octave = {levels.view.data, stride * (size_t)c->height, stride, c->width, c->height, 0};
  make_top(c, &octave);
  for (int32_t y = 0; y < without_top.view.height; y++)
    memcpy(without_top.view.data + (size_t)y * stride, levels.view.data + (size_t)y * stride,
           sizeof(float) * (size_t)c->width);
  detect_result expected = detect(cpu_variant_ops("ref"), NULL, c, &octave);
  octave.levels = without_top.view.data;
  for (int v = 0; stage_variant_names[v]; v++) {
    const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
    if (!ops) continue;
    for (int t = 0; t < stage_threads(); t++) {
      char what[80];
      snprintf(what, sizeof what, "detect %s, %d threads", stage_variant_names[v], stage_thread_counts[t]);
      detect_result got = detect(ops, queues[t], c, &octave);
      check_same(&expected, &got, c, what);
      free(got.block);
    }
  }
  const uint64_t found = expected.candidates;
  plane_check_guards(&without_top, "detection's input");
  free(expected.block);
  return found;
}

TEST(test_sizes) {
  static const int32_t sizes[][2] = {{1, 1},    {1, 9},    {9, 1},     {2, 2},    {3, 3},   {7, 5},
                                     {31, 33},  {32, 32},  {33, 3},    {640, 1},  {511, 9}, {512, 9},
                                     {513, 70}, {1024, 5}, {1030, 64}, {40, 129}, {65, 200}};
  uint64_t found = 0;
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int32_t border = 1; border <= 7; border += 2) {
      if (!extent_pairs(s, (size_t)border / 2, 4)) continue;
      const detect_case c = {sizes[s][0], sizes[s][1], 3, border, s % 3 * 7, 0.02f, false, 0, 1.5};
      found += check_detect(*state, &c);
    }
  assert_true(found > 1000);
}

TEST(test_scales) {
  for (int32_t scales = 1; scales <= SCALES_MAX; scales++) {
    const detect_case c = {90, 40, scales, 1, 6, 0.01f, false, 0, 1.5};
    assert_true(check_detect(*state, &c) > 0);
  }
}

/* There are few sample values, so many neighbours equal the centre, and some centres are 0. */
TEST(test_ties) {
  uint64_t found[2];
  for (int ties = 0; ties < 2; ties++) {
    const detect_case c = {200, 100, 3, 2, 0, 0.01f, ties == 1, 5, 1.5};
    found[ties] = check_detect(*state, &c);
    const detect_case constant = {70, 30, 2, 1, 0, -1.0f, ties == 1, 1, 1.5};
    assert_int_equal(check_detect(*state, &constant), 0);
  }
  assert_true(found[0] > 0 && found[1] > 2 * found[0]);
}

TEST(test_thresholds) {
  static const float thresholds[] = {-1.0f, 0.0f, 0.1f, 0.5f, 0.9f, 2.0f};
  for (size_t i = 0; i < sizeof thresholds / sizeof thresholds[0]; i++) {
    const detect_case c = {300, 60, 3, 5, 0, thresholds[i], false, 0, 1.5};
    const uint64_t found = check_detect(*state, &c);
    if (thresholds[i] == 2.0f) assert_int_equal(found, 0);
    if (thresholds[i] < 0.5f) assert_true(found > 0);
  }
}

/* Filters of radius 1 to FILTER_RADIUS_MAX make level S+2, on planes narrower and wider than the filter. A wide filter
 * gives fewer candidates. */
TEST(test_filters) {
  static const double sigmas[] = {0.2, 0.4, 3.1, 27.7, 40.0};
  static const int32_t sizes[][2] = {{40, 31}, {31, 40}, {300, 65}, {291, 32}};
  for (size_t i = 0; i < sizeof sigmas / sizeof sigmas[0]; i++)
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
      if (!extent_pairs(i, s, 4)) continue;
      const float threshold = sigmas[i] > 10 ? 0.8f : 0.01f;
      const detect_case c = {sizes[s][0], sizes[s][1], 1 + (int32_t)(i % 3), 1, 5, threshold, s % 2 == 1, 0, sigmas[i]};
      assert_true(check_detect(*state, &c) > 0);
    }
}

TESTS_BETWEEN(stage_queues_make, stage_queues_free)
