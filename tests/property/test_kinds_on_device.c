/*
 * Frames of every kind on a GPU, few of each, for a sanitizer: profiles, variants, selection, places, pictures, given
 * keypoints, descriptors and shapes. Each gives the CPU's bytes. Skipped where there is no device. An argument picks
 * tests by name.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "tests/support/device_frames.h"
#include "tests/support/skip.h"

static void test_profiles(void **state) {
  (void)state;
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int32_t first_octave = -1; first_octave <= 0; first_octave++) {
      hs_options o = device_frames_options((hs_profile)p);
      o.first_octave = first_octave;
      device_frames_check(&o, &device_frames_scene, "profile");
    }
}

static void test_variants(void **state) {
  (void)state;
  static const char *const variants[] = {"pyramid=uber", "refine=plain",     "orient=warp-histogram", "orient=thread",
                                         "orient=block", "describe=atomic2", "describe=multi-key"};
  hs_options o = device_frames_options(HS_PROFILE_LOWE);
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    const hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, variants[i]);
    o.expert = &expert;
    device_frames_check(&o, &device_frames_scene, variants[i]);
  }
}

static void test_selection(void **state) {
  (void)state;
  hs_options o = device_frames_options(HS_PROFILE_LOWE);
  o.max_features = 100;
  for (int s = HS_SELECT_RESPONSE; s <= HS_SELECT_SCALE; s++) {
    o.selection = (hs_selection)s;
    device_frames_check(&o, &device_frames_scene, "selection");
  }
  o.grid_columns = 5;
  o.grid_rows = 4;
  device_frames_check(&o, &device_frames_scene, "grid");
  o.grid_columns = o.grid_rows = 300; /* more cells than the device chooses from */
  device_frames_check(&o, &device_frames_scene, "grid of many cells");
  o = device_frames_options(HS_PROFILE_COLMAP);
  o.max_features = 100;
  device_frames_check(&o, &device_frames_scene, "whole levels");
}

static void test_places(void **state) {
  (void)state;
  hs_options o = device_frames_options(HS_PROFILE_LOWE);
  hs_image mask = device_frames_scene;
  const size_t bytes = (size_t)device_frames_scene.width * (size_t)device_frames_scene.height;
  unsigned char *inside = calloc(bytes, 1);
  assert_non_null(inside);
  for (size_t i = 0; i < bytes; i++) inside[i] = i % 97 < 60;
  mask.data = inside;
  device_frames_check_masked(&o, &device_frames_scene, &mask, "mask");
  o.region_x = o.region_y = 5;
  o.region_width = device_frames_scene.width / 2;
  o.region_height = device_frames_scene.height - 7;
  device_frames_check(&o, &device_frames_scene, "region");
  free(inside);
}

/* Other types than bytes, rows with gaps, levels of which no kernel makes several. */
static void test_pictures(void **state) {
  (void)state;
  hs_options o = device_frames_options(HS_PROFILE_LOWE);
  hs_image part = device_frames_scene, floats = extraction_as_floats(&device_frames_scene);
  part.stride_bytes = (size_t)device_frames_scene.width;
  part.width -= 3;
  device_frames_check(&o, &part, "rows with gaps");
  device_frames_check(&o, &floats, "floats");
  o.sigma = 2.3f;
  o.scales = 4;
  device_frames_check(&o, &device_frames_scene, "four scales");
  o = device_frames_options(HS_PROFILE_LOWE);
  o.first_octave = 1;
  device_frames_check(&o, &device_frames_scene, "every second sample");
  hs_image_free(&floats);
}

/* Frames of few blocks, with ends of rows and strips in each. */
static void test_small_pictures(void **state) {
  (void)state;
  hs_options o = device_frames_options(HS_PROFILE_LOWE);
  hs_image small = extraction_scene(97, 61, 1, NULL), larger = extraction_scene(160, 121, 1, NULL);
  device_frames_check(&o, &small, "97x61");
  o.dsp = 1;
  device_frames_check(&o, &larger, "160x121, pooled");
  o.dsp = 0;
  o.affine = 1;
  device_frames_check(&o, &larger, "160x121, affine");
  hs_image_free(&small);
  hs_image_free(&larger);
}

static void test_equalized(void **state) {
  (void)state;
  hs_options o = device_frames_options(HS_PROFILE_LOWE);
  o.equalize = 1;
  device_frames_check(&o, &device_frames_scene, "equalised");
}

static void test_descriptors(void **state) {
  (void)state;
  hs_options o = device_frames_options(HS_PROFILE_LOWE);
  o.upright = 1;
  o.norm = HS_NORM_ROOT;
  device_frames_check(&o, &device_frames_scene, "upright, square roots");
  o = device_frames_options(HS_PROFILE_LOWE);
  o.descriptor = HS_DESCRIPTOR_F32;
  o.dsp = 1;
  device_frames_check(&o, &device_frames_scene, "pooled floats");
  o.descriptor = HS_DESCRIPTOR_NONE;
  device_frames_check(&o, &device_frames_scene, "none");
}

static void test_affine(void **state) {
  (void)state;
  hs_options o = device_frames_options(HS_PROFILE_LOWE);
  o.affine = 1;
  device_frames_check(&o, &device_frames_scene, "affine");
  o.dsp = 1;
  device_frames_check(&o, &device_frames_scene, "affine, pooled");
}

/* The picture's own features, with their orientations and without. */
static void test_given(void **state) {
  (void)state;
  const hs_options o = device_frames_options(HS_PROFILE_LOWE);
  hs_features found = device_frames_on_cpu(&o, &device_frames_scene, NULL), got = {0}, expected = {0};
  hs_options cpu = o;
  cpu.device = HS_DEVICE_CPU;
  for (int oriented = 1; oriented >= 0; oriented--) {
    for (size_t i = 0; i < found.count && !oriented; i++) found.keypoints[i].orientation = NAN;
    hs_context *a = extraction_context(&cpu), *b = extraction_context(&o);
    assert_int_equal(hs_describe(a, &device_frames_scene, found.keypoints, found.count, &expected, NULL), HS_OK);
    for (int i = 0; i < DEVICE_FRAMES; i++) {
      assert_int_equal(hs_describe(b, &device_frames_scene, found.keypoints, found.count, &got, NULL), HS_OK);
      extraction_check_equal(&expected, &got, "given");
    }
    hs_destroy(a);
    hs_destroy(b);
  }
  hs_features_free(&found);
  hs_features_free(&got);
  hs_features_free(&expected);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_profiles),  cmocka_unit_test(test_variants),    cmocka_unit_test(test_selection),
      cmocka_unit_test(test_places),    cmocka_unit_test(test_pictures),    cmocka_unit_test(test_small_pictures),
      cmocka_unit_test(test_equalized), cmocka_unit_test(test_descriptors), cmocka_unit_test(test_affine),
      cmocka_unit_test(test_given),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, device_frames_set_up, device_frames_tear_down);
}
