/*
 * Detection, orientation and descriptors of whole frames: every variant this machine can run equals the reference byte
 * for byte. Inputs are the reference's levels and keypoints of generated pictures.
 */
#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "pipeline/context/options.h"
#include "pipeline/include/hartsift_expert.h"
#include "tests/support/extent.h"
#include "tests/support/reference_frame.h"
#include "tests/support/stage_planes.h"

/* A variant and the number of its threads. */
typedef struct runner {
  const stage_ops *ops;
  stage_queue *queue;
  char what[96];
} runner;

typedef void (*runner_check)(const runner *r, const reference_frame *f, const void *more);

/* Calls `check` for every usable variant and number of threads; in the short form with one number, another one in the
 * next call. */
static void for_all(stage_queue *const *queues, const char *stage, const reference_frame *f, runner_check check,
                    const void *more) {
  static size_t calls;
  calls++;
  for (int v = 0; stage_variant_names[v]; v++) {
    runner r = {.ops = cpu_variant_ops(stage_variant_names[v])};
    for (int t = 0; r.ops && t < stage_threads(); t++) {
      if (!extent_pairs(calls + (size_t)v, (size_t)t, (size_t)stage_threads())) continue;
      r.queue = queues[t];
      snprintf(r.what, sizeof r.what, "%s %s, %d threads", stage, stage_variant_names[v], stage_thread_counts[t]);
      check(&r, f, more);
    }
  }
}

static void *room(size_t count, size_t size) {
  void *p = malloc(count * size + 1);
  assert_non_null(p);
  memset(p, 0xA5, count * size + 1);
  return p;
}

static void check_array(const runner *r, const char *name, const void *expected, const void *got, size_t count,
                        size_t size) {
  for (size_t i = 0; i < count; i++)
    if (memcmp((const char *)expected + i * size, (const char *)got + i * size, size) != 0)
      fail_msg("%s: %s[%zu] of %zu differs from the reference", r->what, name, i, count);
}

/* Fails unless the bytes from..to, which a stage must not write, still have the value set by room(). */
static void check_untouched(const runner *r, const char *name, const void *array, size_t from, size_t to, size_t size) {
  const unsigned char *bytes = array;
  for (size_t i = from * size; i < to * size; i++)
    if (bytes[i] != 0xA5) fail_msg("%s: wrote %s[%zu], beyond its capacity", r->what, name, i / size);
}

static keypoint_list make_keypoints(uint32_t *count, uint32_t capacity, uint32_t space) {
  keypoint_list k = {.count = count, .capacity = capacity};
  k.x = room(space, sizeof(float));
  k.y = room(space, sizeof(float));
  k.sigma = room(space, sizeof(float));
  k.response = room(space, sizeof(float));
  k.column = room(space, sizeof(int32_t));
  k.row = room(space, sizeof(int32_t));
  k.octave = room(space, sizeof(int16_t));
  k.level = room(space, sizeof(int16_t));
  return k;
}

static void free_keypoints(const keypoint_list *k) {
  void *all[] = {k->x, k->y, k->sigma, k->response, k->column, k->row, k->octave, k->level};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

/* Detects the keypoints of all octaves; returns their number. Level S+2 is not allocated, so that an address sanitizer
 * reports reads of it. */
static uint32_t detect_all(const runner *r, const reference_frame *f, const keypoint_list *k) {
  const int32_t scales = f->params.scales, count = f->geometry.octave_count;
  octave_view octaves[OCTAVES_MAX];
  uint64_t found = 0;
  gaussian_filter base, step[LEVELS_MAX];
  options_filters(&f->options, &base, step);
  for (int32_t o = 0; o < count; o++) {
    octaves[o] = f->octaves[o];
    const size_t stored = (size_t)(scales + 2) * octaves[o].level_floats;
    octaves[o].levels = room(stored, sizeof(float));
    memcpy(octaves[o].levels, f->octaves[o].levels, stored * sizeof(float));
  }
  detect_args args = {.octaves = octaves,
                      .octave_count = count,
                      .border = (border_mode)options_rules(&f->options)->border_rule,
                      .top_filter = &step[scales + 2],
                      .params = f->params,
                      .filter = f->filter,
                      .keypoints = *k,
                      .candidates = &found};
  assert_false(r->ops->detect_reads_top);
  if (count > 0) {
    args.work = room(r->ops->detect_work_bytes(&f->geometry, scales, k->capacity), 1);
    assert_int_equal(r->ops->detect(r->queue, &args), STAGE_OK);
    free(args.work);
  }
  for (int32_t o = 0; o < count; o++) free(octaves[o].levels);
  assert_int_equal(found, f->candidate_count);
  return *k->count;
}

/* Checks detection. more: points to the list's capacity (uint32_t). */
static void check_detect(const runner *r, const reference_frame *f, const void *more) {
  const uint32_t capacity = *(const uint32_t *)more, space = f->counts[0] + 8;
  uint32_t count = 0;
  const keypoint_list k = make_keypoints(&count, capacity, space), *e = &f->keypoints;
  const uint32_t all = detect_all(r, f, &k);
  assert_true(all >= f->counts[0]);
  if (capacity >= f->counts[0]) assert_int_equal(all, f->counts[0]);
  /* if the list is too short, only the count is defined */
  const uint32_t kept = capacity >= f->counts[0] ? f->counts[0] : 0;
#define CHECK_FIELD(FIELD)                                                                                             \
  check_array(r, #FIELD, e->FIELD, k.FIELD, kept, sizeof *k.FIELD);                                                    \
  check_untouched(r, #FIELD, k.FIELD, kept > 0 ? kept : capacity, space, sizeof *k.FIELD)
  CHECK_FIELD(x);
  CHECK_FIELD(y);
  CHECK_FIELD(sigma);
  CHECK_FIELD(response);
  CHECK_FIELD(column);
  CHECK_FIELD(row);
  CHECK_FIELD(octave);
  CHECK_FIELD(level);
#undef CHECK_FIELD
  free_keypoints(&k);
}

/* Runs orientation from keypoint `first` on, with `before` features already in a list of limited capacity. */
static void check_orient_part(const runner *r, const reference_frame *f, uint32_t first, uint32_t before,
                              uint32_t capacity) {
  uint32_t skipped = 0, count = before;
  while (skipped < f->counts[1] && f->oriented.keypoint[skipped] < first) skipped++;
  const uint32_t total = before + f->counts[1] - skipped, kept = total < capacity ? total : capacity;
  const feature_list out = {&count, capacity, room(total + 8, sizeof(uint32_t)), room(total + 8, sizeof(float))};
  const orient_args args = {f->octaves, f->geometry.first_octave, first, f->keypoints, out, f->params, f->scales};
  assert_int_equal(r->ops->orient(r->queue, &args), STAGE_OK);
  assert_int_equal(count, total);
  const uint32_t written = kept > before ? kept - before : 0;
  check_array(r, "keypoint", f->oriented.keypoint + skipped, out.keypoint + before, written, sizeof(uint32_t));
  check_array(r, "orientation", f->oriented.orientation + skipped, out.orientation + before, written, sizeof(float));
  check_untouched(r, "keypoint", out.keypoint, 0, before, sizeof(uint32_t));
  check_untouched(r, "orientation", out.orientation, before + written, total + 8, sizeof(float));
  free(out.keypoint);
  free(out.orientation);
}

static void check_orient(const runner *r, const reference_frame *f, const void *more) {
  (void)more;
  const uint32_t n = f->counts[1];
  check_orient_part(r, f, 0, 0, n + 8);
  check_orient_part(r, f, 0, 0, n / 2);
  check_orient_part(r, f, f->counts[0] / 3, 5, n + 8);
  check_orient_part(r, f, f->counts[0], 3, n + 8);
  check_orient_part(r, f, 0, 7, 0);
}

static void check_describe(const runner *r, const reference_frame *f, const void *more) {
  (void)more;
  const uint32_t n = f->counts[2], first = n / 5;
  unsigned char *out = room(n, f->descriptor_bytes);
  const describe_args args = {f->octaves,
                              f->geometry.first_octave,
                              f->geometry.octave_count,
                              first,
                              f->keypoints,
                              f->features,
                              f->params,
                              f->scales,
                              out};
  assert_int_equal(r->ops->describe(r->queue, &args), STAGE_OK);
  for (size_t i = 0; i < first * f->descriptor_bytes; i++) assert_int_equal(out[i], 0xA5);
  const size_t skipped = first * f->descriptor_bytes;
  check_array(r, "descriptor", (const unsigned char *)f->descriptors + skipped, out + skipped, n - first,
              f->descriptor_bytes);
  free(out);
}

/* Makes the reference frame and compares all stages with it; returns the number of features. */
static uint32_t check_frame(stage_queue *const *queues, const hs_image *image, const hs_options *options,
                            const position_filter *filter) {
  reference_frame f;
  assert_true(reference_frame_make(&f, image, options, filter, 64));
  const uint32_t capacities[] = {f.counts[0] + 8, f.counts[0] / 2, 0};
  const uint32_t features = f.counts[2];
  for (int i = 0; i < 3; i++) for_all(queues, "detect", &f, check_detect, &capacities[i]);
  for_all(queues, "orient", &f, check_orient, NULL);
  for_all(queues, "describe", &f, check_describe, NULL);
  reference_frame_free(&f);
  return features;
}

TEST(test_profiles) {
  scoped_image image = extent_is_short() ? extraction_scene(141, 117, 5, NULL) : extraction_scene(233, 171, 5, NULL);
  for (int profile = HS_PROFILE_LOWE; profile <= HS_PROFILE_COLMAP; profile++) {
    const hs_options o = extraction_options((hs_profile)profile);
    assert_true(check_frame(*state, &image, &o, NULL) > 50);
  }
}

/* Every rule is combined with another form of output. */
TEST(test_options) {
  scoped_image image = extent_is_short() ? extraction_scene(89, 101, 9, NULL) : extraction_scene(128, 140, 9, NULL);
  for (int i = 0; i < 9; i++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    hs_expert_options expert;
    hs_expert_options_init(&expert, HS_PROFILE_LOWE);
    expert.orientation_rule = (hs_rule)(i % 3);
    expert.descriptor_rule = (hs_rule)(i / 3);
    expert.refine_rule = (hs_rule)((i + i / 3) % 3);
    o.expert = &expert;
    o.contrast = 0.01f;
    o.descriptor = i % 2 ? HS_DESCRIPTOR_U8 : HS_DESCRIPTOR_F32;
    o.norm = i / 2 % 2 ? HS_NORM_ROOT : HS_NORM_L2;
    o.layout = i % 4 == 1 ? HS_LAYOUT_VLFEAT : HS_LAYOUT_UBC;
    o.max_orientations = i % 5;
    o.upright = i == 7;
    o.scales = 1 + i % 4;
    assert_true(check_frame(*state, &image, &o, NULL) > 30);
  }
}

/* Descriptors are pooled over sizes. Some sizes would need octaves that the picture does not have; others have windows
 * of a few samples. */
TEST(test_pooled) {
  scoped_image image = extraction_scene(80, 75, 9, NULL);
  for (int i = 0; i < 5; i++) {
    hs_options o = extraction_options((hs_profile)(i % 4));
    o.dsp = 1;
    o.contrast = 0.01f;
    if (i == 1) o.dsp_sizes = 16, o.dsp_smallest = 0.125f, o.dsp_largest = 4.0f;
    if (i == 2) o.octaves = 1, o.scales = 1, o.dsp_sizes = 2;
    if (i == 4) o.dsp_smallest = o.dsp_largest = 1.0f, o.norm = HS_NORM_ROOT, o.upright = 1, o.scales = 5;
    o.descriptor = i % 2 ? HS_DESCRIPTOR_U8 : HS_DESCRIPTOR_F32;
    assert_true(check_frame(*state, &image, &o, NULL) > 5);
  }
}

/* Noise has many keypoints in a word of the mask, and many peaks in a histogram. */
TEST(test_noise) {
  for (int smooth = 0; smooth < 2; smooth++) {
    SCOPED_MEMORY uint8_t *pixels = reference_noise(150, 90, 77, smooth);
    assert_non_null(pixels);
    const hs_image image = {.data = pixels, .width = 150, .height = 90, .type = HS_U8, .layout = HS_GRAY};
    hs_options o = extraction_options(smooth ? HS_PROFILE_VLFEAT : HS_PROFILE_LOWE);
    o.contrast = 0.0f;
    o.edge = 1000.0f;
    o.border = 1;
    o.sigma = 0.8f; /* a small blur keeps the extrema of the noise */
    o.input_blur = 0.2f;
    assert_true(check_frame(*state, &image, &o, NULL) > 500);
  }
}

TEST(test_filter) {
  scoped_image image = extraction_scene(160, 120, 3, NULL);
  SCOPED_MEMORY uint8_t *mask = room(160 * 120, 1);
  for (int i = 0; i < 160 * 120; i++) mask[i] = (uint8_t)(i / 7 % 3);
  const position_filter region = {.width = 160, .height = 120, .x0 = 20, .y0 = 30, .x1 = 140, .y1 = 100};
  position_filter masked = {
      .mask = mask, .mask_stride = 160, .width = 160, .height = 120, .x0 = 0, .y0 = 0, .x1 = 160, .y1 = 120};
  hs_options o = extraction_options(HS_PROFILE_OPENCV);
  o.contrast = 0.01f;
  const uint32_t all = check_frame(*state, &image, &o, NULL), in_region = check_frame(*state, &image, &o, &region);
  const uint32_t in_mask = check_frame(*state, &image, &o, &masked);
  assert_true(in_region > 0 && in_region < all && in_mask > 0 && in_mask < all);
}

/* The pictures hardly contain a window, or contain none. */
TEST(test_small) {
  static const int32_t sizes[][2] = {{1, 1}, {2, 3}, {3, 3}, {5, 40}, {40, 5}, {9, 9}, {17, 11}, {33, 64}};
  uint32_t found = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const int32_t w = sizes[i][0], h = sizes[i][1];
    SCOPED_MEMORY uint8_t *pixels = reference_noise(w, h, 5 + (uint32_t)i, 1);
    assert_non_null(pixels);
    const hs_image image = {.data = pixels, .width = w, .height = h, .type = HS_U8, .layout = HS_GRAY};
    for (int profile = HS_PROFILE_LOWE; profile <= HS_PROFILE_VLFEAT; profile++) {
      hs_options o = extraction_options((hs_profile)profile);
      o.contrast = 0.0f;
      o.border = 1;
      found += check_frame(*state, &image, &o, NULL);
    }
  }
  assert_true(found > 20);
}

TESTS_BETWEEN(stage_queues_make, stage_queues_free)
