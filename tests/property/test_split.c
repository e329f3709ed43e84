/*
 * Every split of a frame's octaves between a GPU and the CPU gives the same bytes. The CPU's part is also tested
 * without a device, on levels of the reference.
 */
#include "tests/support/test.h"

#include "pipeline/frame/run_frame.h"
#include "tests/support/extent.h"
#include "tests/support/reference_frame.h"

/* Computes the features of octaves `first` and up from the reference's level; they must equal those of the whole
 * frame. */
static void check_handed_over(const hs_options *o, const hs_image *image, const reference_frame *reference,
                              const hs_features *whole, int32_t skipped) {
  hs_context *c = extraction_context(o);
  const position_filter all = {.x0 = INT32_MIN, .y0 = INT32_MIN, .x1 = INT32_MAX, .y1 = INT32_MAX};
  const frame_request request = {.source = {.data = image->data,
                                            .width = image->width,
                                            .height = image->height,
                                            .stride_bytes = (size_t)image->width,
                                            .type = SOURCE_U8,
                                            .layout = SOURCE_GRAY},
                                 .filter = all,
                                 .descriptor_bytes = HS_DESCRIPTOR_LENGTH,
                                 .skipped_octaves = skipped,
                                 .handed_over = octave_level(&reference->octaves[skipped], 0)};
  workspace work;
  size_t at = 0;
  assert_int_equal(run_frame(c, &request, &work), HS_OK);
  while (at < whole->count && whole->keypoints[at].octave < o->first_octave + skipped) at++;
  assert_int_equal(*work.features.count, whole->count - at);
  for (uint32_t i = 0; i < *work.features.count; i++) {
    const hs_keypoint k = workspace_keypoint(&work.keypoints, work.features.keypoint[i], work.features.orientation[i]);
    assert_memory_equal(&k, &whole->keypoints[at + i], sizeof k);
  }
  assert_memory_equal(work.descriptors, extraction_descriptor(whole, at),
                      (whole->count - at) * (size_t)HS_DESCRIPTOR_LENGTH);
  hs_destroy(c);
}

TEST(test_handed_over_level) {
  static const int32_t first_octaves[] = {-1, 0, 1};
  scoped_image image = extraction_scene(230, 190, 5, NULL);
  for (size_t i = 0; i < sizeof first_octaves / sizeof first_octaves[0]; i++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    o.first_octave = first_octaves[i];
    o.dsp = i == 0;
    SCOPED_BY(reference_frame_free) reference_frame reference;
    assert_true(reference_frame_make(&reference, &image, &o, NULL, 3));
    scoped_features whole = extraction_once(&o, &image);
    assert_true(whole.count > 20);
    assert_true(reference.geometry.octave_count >= 3);
    for (int32_t skipped = 1; skipped < reference.geometry.octave_count; skipped++)
      check_handed_over(&o, &image, &reference, &whole, skipped);
  }
}

/* Checks every split, the measured one included, with several frames in one context; in the short form every fifth one,
 * others in the next call. */
static void check_splits(hs_options o, const hs_image *image, const hs_image *mask, const char *what) {
  static size_t calls;
  char name[96];
  scoped_features expected = {0}, found = {0};
  calls++;
  o.device = HS_DEVICE_CPU;
  hs_context *c = extraction_context(&o);
  assert_int_equal(hs_extract(c, image, mask, &expected), HS_OK);
  hs_destroy(c);
  o.device = HS_DEVICE_HYBRID;
  for (o.split = 0; o.split <= 9; o.split++) {
    if (!extent_pairs(calls, (size_t)o.split % 5, 5)) continue;
    snprintf(name, sizeof name, "%s, %d octaves on the device", what, (int)o.split);
    c = extraction_context(&o);
    for (int frame = 0; frame < 2; frame++) {
      assert_int_equal(hs_extract(c, image, mask, &found), HS_OK);
      extraction_check_equal(&expected, &found, name);
    }
    hs_statistics s = statistics_of(c);
    assert_int_equal(s.frames, 2);
    assert_int_equal(s.features, expected.count);
    hs_destroy(c);
  }
}

TEST_WHERE(extraction_has_gpu(), NEEDS_GPU, test_splits) {
  static const char *const names[] = {"lowe", "opencv", "vlfeat", "colmap"};
  const int32_t width = extraction_is_fake() ? 167 : 333, height = extraction_is_fake() ? 125 : 250;
  scoped_image image = extraction_scene(width, height, 7, NULL), tiny = extraction_scene(13, 40, 7, NULL);
  scoped_image mask = extraction_scene(width, height, 8, NULL);
  for (int i = 0; i < width * height; i++) ((uint8_t *)(uintptr_t)mask.data)[i] &= 64;
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = extraction_options((hs_profile)p);
    check_splits(o, &image, NULL, names[p]);
    check_splits(o, &tiny, NULL, "a tiny picture");
    o.max_features = 60;
    check_splits(o, &image, &mask, "60 of a masked picture");
    o.selection = HS_SELECT_SCALE;
    check_splits(o, &image, NULL, "the 60 largest");
    o.selection = HS_SELECT_LEVELS;
    check_splits(o, &image, &mask, "whole levels of a masked picture");
    o.descriptor = HS_DESCRIPTOR_F32;
    o.upright = 1;
    o.first_octave = 0;
    check_splits(o, &image, NULL, "upright, float, not doubled");
    o.dsp = 1;
    o.dsp_largest = 4.0f;
    check_splits(o, &image, NULL, "windows of two octaves beyond the device's");
  }
}

/* Lists are too short on either side, and results have no capacity for both parts. */
TEST_WHERE(extraction_has_gpu(), NEEDS_GPU, test_short_lists) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image image = extent_is_short() ? extraction_scene(190, 170, 3, NULL) : extraction_scene(300, 280, 3, NULL);
  scoped_features expected = extraction_once(&o, &image), found = {0};
  o.device = HS_DEVICE_HYBRID;
  for (o.split = 1; o.split <= 4; o.split++) {
    scoped_context *c = extraction_context(&o);
    c->keypoint_capacity = c->feature_capacity = 32;
    assert_int_equal(hs_extract(c, &image, NULL, &found), HS_OK);
    extraction_check_equal(&expected, &found, "with lists that were too short");
    hs_statistics s = statistics_of(c);
    assert_true(s.regrown_frames >= 1 && s.frames == 1);
  }
}
