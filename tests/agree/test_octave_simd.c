/*
 * An octave in one fused pass: every variant this machine can run equals the reference's separate stages, levels bit
 * for bit and keypoint for keypoint.
 */
#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "cpu/schedule/fused_pass.h"
#include "tests/support/extent.h"
#include "tests/support/stage_planes.h"

enum { KEYPOINT_BYTES = 28 };

typedef struct octave_case {
  int32_t width, height; /* size of the picture */
  int32_t first_octave, scales, border;
  double sigma; /* sigma of the base */
  double steps; /* factor for the sigmas of the level steps */
  author_rule rule;
  float threshold;
  bool ties;
  int32_t smooth; /* grain size of the noise in samples */
  int32_t longer; /* height minus width of a grain in samples */
  bool halved;    /* whether the octave is made from a level of a finer octave, not from the picture */
  size_t padding; /* floats of padding between the levels' rows */
} octave_case;

/* Levels and list of one run. */
typedef struct octave_result {
  guarded_plane levels; /* all levels, one below another */
  unsigned char *block;
  size_t block_bytes;
  uint32_t keypoints;
  uint64_t candidates;
  stage_status status;
} octave_result;

typedef struct octave_setting {
  const octave_case *c;
  gaussian_filter base, step[SCALES_MAX + 3];
  unsigned char *picture; /* RGB picture, rows of 3 width + 5 bytes */
  plane_view finer;       /* the level to halve; without data if the octave is made from the picture */
  int32_t width, height;  /* size of the octave */
} octave_setting;

static border_mode border_of(const octave_case *c) { return c->width % 2 ? BORDER_REPLICATE : BORDER_REFLECT_101; }

static plane_view plane_of(int32_t width, int32_t height, size_t floats) {
  plane_view p = {malloc(sizeof(float) * floats), width, height, (size_t)width};
  assert_non_null(p.data);
  return p;
}

/* Makes a level of noise grains that is halved for the octave. Where the picture's sides are odd, the level has one
 * column or row more than twice the octave's. */
static void take_finer(octave_setting *s) {
  const int32_t w = s->c->width, h = s->c->height, grain = s->c->smooth, high = grain + s->c->longer;
  s->finer = plane_of(w, h, (size_t)w * (size_t)h);
  for (int32_t y = 0; y < h; y++)
    for (int32_t x = 0; x < w; x++) {
      uint32_t seed = (uint32_t)(y / high) * 4096u + (uint32_t)(x / grain);
      for (int i = 0; i < 3; i++) seed = (seed ^ seed >> 15) * 739982445u;
      s->finer.data[(size_t)y * (size_t)w + (size_t)x] = (float)stage_random(&seed) / 16777216.0f;
    }
}

/* Returns the inputs of a case. */
static octave_setting setting_of(const octave_case *c) {
  octave_setting s = {.c = c};
  const size_t stride = 3 * (size_t)c->width + 5;
  scalespace_filter(c->sigma, RULE_LOWE, &s.base);
  for (int32_t level = 1; level <= c->scales + 2; level++)
    scalespace_filter(c->steps * scalespace_step_sigma(1.6, c->scales, level), RULE_LOWE, &s.step[level]);
  s.width = c->first_octave < 0 ? 2 * c->width : c->width >> c->first_octave;
  s.height = c->first_octave < 0 ? 2 * c->height : c->height >> c->first_octave;
  s.picture = malloc(stride * (size_t)c->height);
  assert_non_null(s.picture);
  for (int32_t y = 0; y < c->height; y++)
    for (size_t i = 0; i < stride; i++) {
      uint32_t seed = (uint32_t)(y / (c->smooth + c->longer)) * 7919u +
                      (uint32_t)(i / 3 / (size_t)c->smooth) * 104729u + (uint32_t)c->width;
      seed = (seed ^ (seed >> 13)) * 2654435761u;
      stage_random(&seed);
      s.picture[(size_t)y * stride + i] = (unsigned char)(stage_random(&seed) >> 7);
    }
  if (c->halved) take_finer(&s);
  return s;
}

static void free_setting(octave_setting *s) {
  free(s->picture);
  free(s->finer.data);
}

/* Returns a result whose levels 0..S+2 hold guard values and whose list is empty. */
static octave_result result_of(const octave_setting *s) {
  const octave_case *c = s->c;
  octave_result r = {.levels = plane_make(s->width, s->height * (c->scales + 3), (size_t)s->width + c->padding)};
  r.block_bytes = ((size_t)s->width * (size_t)s->height * (size_t)c->scales + 1) * KEYPOINT_BYTES;
  r.block = calloc(r.block_bytes, 1);
  assert_non_null(r.block);
  return r;
}

static void free_result(octave_result *r) {
  plane_free(&r->levels);
  free(r->block);
}

static octave_view view_of(const octave_setting *s, const octave_result *r) {
  const size_t stride = r->levels.view.stride;
  return (octave_view){r->levels.view.data, stride * (size_t)s->height, stride, s->width, s->height, 0};
}

static keypoint_list list_in(octave_result *r) {
  const uint32_t capacity = (uint32_t)(r->block_bytes / KEYPOINT_BYTES);
  keypoint_list k = {.count = &r->keypoints, .capacity = capacity};
  float *f = (float *)(void *)r->block;
  k.x = f, k.y = f + capacity, k.sigma = f + 2 * (size_t)capacity, k.response = f + 3 * (size_t)capacity;
  k.column = (int32_t *)(void *)(f + 4 * (size_t)capacity), k.row = k.column + capacity;
  k.octave = (int16_t *)(void *)(k.row + capacity), k.level = k.octave + capacity;
  return k;
}

static void *work_of(const stage_ops *ops, const octave_setting *s, const octave_result *r) {
  const pyramid_geometry geometry = {.octave_count = 1, .width = {s->width}, .height = {s->height}};
  void *work = malloc(ops->detect_work_bytes(&geometry, s->c->scales, (uint32_t)(r->block_bytes / KEYPOINT_BYTES)));
  assert_non_null(work);
  return work;
}

static detect_args detect_args_of(const octave_setting *s, const octave_view *octave, void *work, octave_result *r) {
  const octave_case *c = s->c;
  return (detect_args){.octaves = octave,
                       .octave_count = 1,
                       .border = border_of(c),
                       .top_filter = &s->step[c->scales + 2],
                       .params = {.scales = c->scales,
                                  .sigma0 = 1.6f,
                                  .border = c->border,
                                  .candidate_above = c->threshold,
                                  .extremum_ties = c->ties,
                                  .refine_rule = c->rule,
                                  .settle = c->rule == RULE_OPENCV ? 0.5f : 0.6f,
                                  .contrast_above = -1.0f,
                                  .edge = 1e6f},
                       .filter = {.x0 = INT32_MIN, .y0 = INT32_MIN, .x1 = INT32_MAX, .y1 = INT32_MAX},
                       .work = work,
                       .keypoints = list_in(r),
                       .candidates = &r->candidates};
}

static base_args base_args_of(const octave_setting *s, const octave_view *octave, plane_view work) {
  const octave_case *c = s->c;
  return (base_args){.source = {.data = s->picture,
                                .width = c->width,
                                .height = c->height,
                                .stride_bytes = 3 * (size_t)c->width + 5,
                                .type = SOURCE_U8,
                                .layout = SOURCE_RGB},
                     .first_octave = c->first_octave,
                     .grid = c->height % 2 ? GRID_HALF_PIXEL : GRID_ALIGNED,
                     .border = border_of(c),
                     .filter = &s->base,
                     .work = work,
                     .out = octave_level(octave, 0)};
}

/* Makes the octave by the reference's separate stages, with level S+2. */
static octave_result by_reference(const octave_setting *s) {
  const stage_ops *ops = cpu_variant_ops("ref");
  const octave_case *c = s->c;
  octave_result r = result_of(s);
  const octave_view o = view_of(s, &r);
  const size_t floats = (size_t)s->width * (size_t)s->height;
  plane_view work = plane_of(s->width, s->height, floats), doubled = plane_of(s->width, s->height, floats);
  plane_view gray = plane_of(c->width, c->height, (size_t)c->width * (size_t)c->height);
  base_args base = base_args_of(s, &o, work);
  base.gray = gray;
  base.doubled = doubled;
  const halve_args halve = {.in = s->finer, .out = octave_level(&o, 0)};
  assert_int_equal(c->halved ? ops->halve(NULL, &halve) : ops->base(NULL, &base), STAGE_OK);
  for (int32_t level = 1; level <= c->scales + 2; level++) {
    const blur_args blur = {
        octave_level(&o, level - 1), octave_level(&o, level), work, border_of(c), &s->step[level], {0}};
    assert_int_equal(ops->blur(NULL, &blur), STAGE_OK);
  }
  void *found = work_of(ops, s, &r);
  const detect_args detect = detect_args_of(s, &o, found, &r);
  assert_int_equal(ops->detect(NULL, &detect), STAGE_OK);
  free(found);
  free(work.data);
  free(doubled.data);
  free(gray.data);
  return r;
}

/* Progress reports received while an octave is made. */
typedef struct told {
  uint64_t samples;
  int calls, stop_at; /* stop_at: number of the call that cancels, from 1; 0: none */
} told;

static bool tell(void *owner, uint64_t samples) {
  told *t = owner;
  t->samples += samples;
  return ++t->calls != t->stop_at;
}

static octave_result in_one_pass(const stage_ops *ops, stage_queue *queue, int32_t threads, const octave_setting *s,
                                 uint32_t levels_kept, told *t) {
  octave_result r = result_of(s);
  const octave_view o = view_of(s, &r);
  const fused_pass_size size = fused_pass_size_of(&s->base, s->step, s->c->scales);
  size_t floats = size.floats * (size_t)threads + fused_pass_escaped_floats(s->width, s->height);
  const size_t stages = ops->pyramid_work_floats(s->width, s->height, size.levels[0].halo, threads);
  if (stages > floats) floats = stages;
  guarded_plane scratch = plane_make((int32_t)floats, 1, floats);
  scratch.view = (plane_view){scratch.view.data, s->width, s->height, (size_t)s->width};
  void *found = work_of(ops, s, &r);
  const octave_args args = {.base = base_args_of(s, &o, scratch.view),
                            .finer = s->finer,
                            .step_filter = s->step,
                            .detect = detect_args_of(s, &o, found, &r),
                            .levels_kept = levels_kept,
                            .scratch = scratch.view.data,
                            .report = tell,
                            .owner = t};
  r.status = ops->octave(queue, &args);
  free(found);
  scratch.view.width = scratch.view.height = 0; /* the scratch is writable, its surroundings are not */
  plane_check_guards(&scratch, "scratch");
  plane_free(&scratch);
  return r;
}

/* Compares the kept levels and the list. */
static void check_same(const octave_setting *s, const octave_result *expected, const octave_result *got,
                       uint32_t levels_kept, const char *what) {
  if (expected->candidates != got->candidates || expected->keypoints != got->keypoints)
    fail_msg("%s: %d extrema, %d keypoints; the reference has %d, %d", what, (int)got->candidates, (int)got->keypoints,
             (int)expected->candidates, (int)expected->keypoints);
  if (memcmp(expected->block, got->block, expected->block_bytes) != 0) fail_msg("%s: keypoints differ", what);
  const octave_view a = view_of(s, expected), b = view_of(s, got);
  for (int32_t level = 0; level <= s->c->scales + 1; level++)
    for (int32_t y = 0; y < s->height && levels_kept >> level & 1; y++)
      if (memcmp(octave_level(&a, level).data + (size_t)y * a.stride,
                 octave_level(&b, level).data + (size_t)y * b.stride, sizeof(float) * (size_t)s->width) != 0)
        fail_msg("%s: row %d of level %d differs", what, y, level);
  plane_check_guards(&got->levels, what);
}

/* Returns the reference's number of extrema, so that a test can require a minimum. In the short form each variant takes
 * one number of threads, and another one in the next call. */
static uint64_t check_octave(stage_queue *const *queues, const octave_case *c) {
  static size_t calls;
  calls++;
  octave_setting s = setting_of(c);
  const uint32_t all = (UINT32_C(2) << (c->scales + 1)) - 1;
  octave_result expected = by_reference(&s);
  const uint64_t found = expected.candidates;
  for (int v = 0; stage_variant_names[v]; v++) {
    const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
    for (int t = 0; ops && ops->octave && t < stage_threads(); t++)
      for (int few = 0; few < 2; few++) {
        if (!extent_pairs((size_t)t, (size_t)few, 2) || !extent_pairs(calls + (size_t)v, (size_t)t, 2)) continue;
        const uint32_t kept = few ? all >> 1 & ~UINT32_C(1) : all; /* kept: levels 1..S if `few`, else all */
        char what[160];
        snprintf(what, sizeof what, "%s, %d x %d, S %d, rule %d, %d threads, levels %x", stage_variant_names[v],
                 s.width, s.height, c->scales, (int)c->rule, stage_thread_counts[t], (unsigned)kept);
        told to = {0};
        octave_result got = in_one_pass(ops, queues[t], stage_thread_counts[t], &s, kept, &to);
        assert_int_equal(got.status, STAGE_OK);
        assert_true(to.calls > 0 && to.samples == (uint64_t)s.width * (uint64_t)s.height);
        check_same(&s, &expected, &got, kept, what);
        free_result(&got);
      }
  }
  free_result(&expected);
  free_setting(&s);
  return found;
}

/* Planes are narrower and lower than any filter; halos of strips reach both sides; ring buffers wrap several times. */
TEST(test_sizes) {
  static const int32_t sizes[][2] = {{1, 1},    {1, 40},   {40, 2},   {7, 5},   {33, 90},
                                     {64, 130}, {385, 21}, {410, 30}, {790, 12}};
  uint64_t found = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    octave_case c = {.width = sizes[i][0], .height = sizes[i][1], .first_octave = -1, .scales = 3, .smooth = 3};
    c.border = 1 + (int32_t)(i % 3) * 2;
    c.sigma = 1.25;
    c.steps = 1.0;
    c.rule = (author_rule)(i % 3);
    c.threshold = 0.005f;
    c.padding = (size_t)(16 - 2 * sizes[i][0] % 16); /* rows begin at cache lines */
    found += check_octave(*state, &c);
  }
  assert_true(found > 1000);
}

/* Covers first octaves of every kind, levels with rows at any alignment, and every number of scales. */
TEST(test_scales) {
  for (int32_t scales = 1; scales <= SCALES_MAX; scales++) {
    octave_case c = {.width = 800 + scales, .height = 50, .scales = scales, .border = 5, .smooth = 2};
    c.first_octave = scales % 3 - 1;
    c.sigma = 0.5 + 0.1 * scales;
    c.steps = 0.6;
    c.rule = (author_rule)(scales % 3);
    c.threshold = 0.001f;
    c.padding = (size_t)(scales * 3);
    assert_true(check_octave(*state, &c) > 0);
  }
}

/* OpenCV candidates may move by more than one sample, which needs levels made for them alone. */
TEST(test_rules) {
  for (int rule = 0; rule < 3; rule++) {
    octave_case c = {.width = 420, .height = 70, .first_octave = -1, .scales = 3, .border = 5, .smooth = 1};
    c.sigma = 0.6;
    c.steps = 0.5;
    c.rule = (author_rule)rule;
    c.ties = rule == RULE_OPENCV;
    c.padding = 8;
    assert_true(check_octave(*state, &c) > 1000);
  }
}

/* Candidates leave the rows in the ring buffers and settle elsewhere, at every level. For them levels are made anew. */
TEST(test_escaped_candidates) {
  octave_case c = {
      .width = 400, .height = 200, .first_octave = -1, .scales = 2, .border = 1, .sigma = 1.0, .steps = 0.7};
  c.smooth = 1;
  c.longer = 10;
  c.rule = RULE_OPENCV;
  c.padding = 8;
  assert_true(check_octave(*state, &c) > 1000);
  c.width *= 4;
  c.height *= 4;
  c.first_octave = 1;
  c.scales = 4;
  c.smooth = 6;
  c.longer = 30;
  c.halved = true;
  assert_true(check_octave(*state, &c) > 300);
}

/* Few samples exceed the threshold, so most blocks of a row, and some whole rows, are skipped. */
TEST(test_few_above) {
  octave_case c = {.width = 1700, .height = 260, .first_octave = 1, .scales = 3, .border = 1, .smooth = 5};
  c.sigma = 1.0;
  c.steps = 0.6;
  c.padding = 14;
  c.halved = true;
  uint64_t found[2];
  for (int i = 0; i < 2; i++) {
    c.threshold = i ? 0.08f : 0.0f;
    found[i] = check_octave(*state, &c);
  }
  assert_true(found[1] > 0 && found[1] < found[0]);
}

/* The octave is made from a level of a finer octave with even and odd sides. */
TEST(test_halved) {
  static const int32_t sizes[][2] = {{2, 3}, {81, 61}, {1601, 40}, {1700, 131}};
  uint64_t found = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    octave_case c = {.width = sizes[i][0], .height = sizes[i][1], .first_octave = 1, .scales = 3, .border = 1};
    c.smooth = 5;
    c.sigma = 1.0;
    c.steps = 0.6;
    c.rule = (author_rule)(i % 3);
    c.threshold = 0.002f;
    c.padding = i % 2 ? 16 - (size_t)(sizes[i][0] / 2) % 16 : 3;
    c.halved = true;
    found += check_octave(*state, &c);
  }
  assert_true(found > 100);
}

/* More samples wait than the queue holds, and more candidates escape than the list holds (it has no capacity in small
 * pictures). */
TEST(test_overruns) {
  octave_case c = {.width = 1536, .height = 60, .scales = 3, .border = 1, .sigma = 0.2, .steps = 0.3, .smooth = 1};
  assert_true(check_octave(*state, &c) > 1000);
  c.width *= 2;
  c.height *= 2;
  c.first_octave = 1;
  c.halved = true;
  assert_true(check_octave(*state, &c) > 1000);
  c = (octave_case){
      .height = 31, .first_octave = -1, .scales = 3, .border = 1, .sigma = 0.6, .steps = 0.5, .smooth = 1};
  c.rule = RULE_OPENCV;
  for (c.width = 16; c.width <= 32; c.width++) assert_true(check_octave(*state, &c) > 0);
}

/* Cancels at call `stop_at`, with at most `threads_most` threads, and checks the number of calls. */
static void check_end(stage_queue *const *queues, const octave_case *c, int stop_at, int32_t threads_most) {
  octave_setting s = setting_of(c);
  for (int v = 0; stage_variant_names[v]; v++) {
    const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
    for (int t = 0; ops && ops->octave && t < stage_threads() && stage_thread_counts[t] <= threads_most; t++) {
      told to = {.stop_at = stop_at};
      octave_result got = in_one_pass(ops, queues[t], stage_thread_counts[t], &s, UINT32_MAX, &to);
      assert_int_equal(got.status, STAGE_CANCELLED);
      assert_int_equal(to.calls, stop_at);
      free_result(&got);
    }
  }
  free_setting(&s);
}

/* Covers cancelling between strips, and between the separate stages that follow an overflow of the fused pass. */
TEST(test_ends) {
  octave_case c = {.width = 1536, .height = 60, .scales = 3, .border = 1, .sigma = 0.6, .steps = 0.5, .smooth = 2};
  check_end(*state, &c, 1, 3);
  check_end(*state, &c, 2, 1); /* the octave has two strips */
  c.sigma = 0.2;
  c.steps = 0.3;
  c.smooth = 1;
  for (int stop_at = 3; stop_at <= 7; stop_at++) check_end(*state, &c, stop_at, 1);
  c.width *= 2;
  c.height *= 2;
  c.first_octave = 1;
  c.halved = true;
  for (int stop_at = 3; stop_at <= 7; stop_at++) check_end(*state, &c, stop_at, 1);
}

TESTS_BETWEEN(stage_queues_make, stage_queues_free)
