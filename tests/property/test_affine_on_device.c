/*
 * Affine shape in a context of a GPU: the bytes of a context of the CPU, frames included, for every profile, option and
 * variant; in flight and in groups, split with the CPU, of given keypoints, and left on the device.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "tests/support/extraction.h"
#include "tests/support/skip.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"
#endif

static hs_image scene, mask;

static int set_up(void **state) {
  (void)state;
  scene = extraction_scene(317, 239, 5, NULL);
  mask = extraction_scene(317, 239, 8, NULL);
  for (int i = 0; i < 317 * 239; i++) ((uint8_t *)(uintptr_t)mask.data)[i] &= 64;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  hs_image_free(&scene);
  hs_image_free(&mask);
  return 0;
}

static hs_options affine_options(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.affine = 1;
  return o;
}

static hs_features on_cpu(hs_options o, const hs_image *image, const hs_image *masked) {
  hs_features f = {0};
  o.device = HS_DEVICE_CPU;
  o.expert = NULL;
  hs_context *c = extraction_context(&o);
  assert_int_equal(hs_extract(c, image, masked, &f), HS_OK);
  assert_non_null(f.frames);
  hs_destroy(c);
  return f;
}

/* Kernel by kernel, recorded, and replayed. Returns how many features there are. */
static size_t check(hs_options o, const hs_image *image, const hs_image *masked, const char *what) {
  hs_features expected = on_cpu(o, image, masked), got = {0};
  const size_t count = expected.count;
  o.device = HS_DEVICE_CUDA;
  hs_context *c = extraction_context(&o);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hs_extract(c, image, masked, &got), HS_OK);
    extraction_check_equal(&expected, &got, what);
  }
  hs_destroy(c);
  hs_features_free(&expected);
  hs_features_free(&got);
  return count;
}

static void test_in_flight(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = affine_options(HS_PROFILE_LOWE);
  hs_features expected[2] = {on_cpu(o, &scene, NULL), on_cpu(o, &scene, &mask)}, got = {0};
  o.device = HS_DEVICE_CUDA;
  hs_context *c = extraction_context(&o);
  for (int i = 0; i < 6; i++) assert_int_equal(hs_submit(c, &scene, i % 2 ? &mask : NULL), HS_OK);
  for (int i = 0; i < 6; i++) {
    assert_int_equal(hs_wait(c, &got), HS_OK);
    extraction_check_equal(&expected[i % 2], &got, "in flight");
  }
  hs_destroy(c);
  hs_features_free(&expected[0]);
  hs_features_free(&expected[1]);
  hs_features_free(&got);
}

static void test_profiles(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  static const char *const names[EXTRACTION_PROFILES] = {"lowe", "opencv", "vlfeat", "colmap"};
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    assert_true(check(affine_options((hs_profile)p), &scene, NULL, names[p]) > 200);
}

static void set_option(hs_options *o, int k) {
  if (k == 0) o->max_features = 70;
  if (k == 1) o->dsp = 1;
  if (k == 2) o->dsp = 1, o->dsp_sizes = 16, o->dsp_smallest = 0.125f, o->dsp_largest = 4.0f, o->octaves = 3;
  if (k == 3) o->upright = 1, o->first_octave = 0;
  if (k == 4) o->norm = HS_NORM_ROOT, o->descriptor = HS_DESCRIPTOR_F32;
  if (k == 5) o->descriptor = HS_DESCRIPTOR_NONE, o->max_orientations = 1;
  if (k == 6) o->sigma = 3.5f, o->scales = 1;
  if (k == 7) o->scales = 5, o->selection = HS_SELECT_LEVELS, o->max_features = 100;
  if (k == 8) o->grid_columns = 5, o->grid_rows = 4, o->max_features = 60;
  if (k == 9) o->grid_columns = 300, o->grid_rows = 300, o->max_features = 60;
  if (k == 10) o->equalize = 1;
  if (k == 11) o->region_x = 40, o->region_y = 30, o->region_width = 100, o->region_height = 90;
  if (k == 12) o->contrast = 0.0f, o->edge = 1000.0f; /* many, long ones among them */
}
enum { OPTIONS = 13 };

static void test_options(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  char name[32];
  for (int k = 0; k < OPTIONS; k++) {
    hs_options o = affine_options(k % 5 == 4 ? HS_PROFILE_VLFEAT : HS_PROFILE_LOWE);
    set_option(&o, k);
    snprintf(name, sizeof name, "options %d", k);
    assert_true(check(o, &scene, NULL, name) > 0);
  }
  assert_true(check(affine_options(HS_PROFILE_LOWE), &scene, &mask, "masked") > 0);
}

/* Patches that reach over every side, and levels that they do not fit. */
static void test_small_pictures(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  static const int32_t sizes[][2] = {{1, 1}, {5, 7}, {16, 12}, {23, 40}, {64, 9}, {61, 64}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (int upright = 0; upright < 2; upright++) {
      hs_options o = affine_options(HS_PROFILE_LOWE);
      hs_image image = extraction_scene(sizes[i][0], sizes[i][1], 3, NULL);
      o.upright = upright;
      o.contrast = 0.0f;
      (void)check(o, &image, NULL, "a small picture");
      hs_image_free(&image);
    }
}

static void test_variants(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  static const char *const names[] = {"describe=atomic2", "describe=multi-key", "orient=warp-histogram"};
  for (int i = 0; i < 3; i++)
    for (int dsp = 0; dsp < 2; dsp++) {
      hs_options o = affine_options(HS_PROFILE_LOWE);
      hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, names[i]);
      o.expert = &expert;
      o.dsp = dsp;
      (void)check(o, &scene, NULL, names[i]);
    }
}

/* Many small pictures, which share launches. */
static void test_groups(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  enum { PICTURES = 16, KINDS = 4 };
  hs_options o = affine_options(HS_PROFILE_LOWE);
  hs_image images[KINDS];
  hs_features expected[KINDS], got = {0};
  for (uint32_t i = 0; i < KINDS; i++) {
    images[i] = extraction_scene(96, 80, i + 1, NULL);
    expected[i] = on_cpu(o, &images[i], NULL);
  }
  o.device = HS_DEVICE_CUDA;
  o.in_flight = PICTURES;
  o.images_per_launch = 8;
  hs_context *c = extraction_context(&o);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < PICTURES; i++) assert_int_equal(hs_submit(c, &images[i % KINDS], NULL), HS_OK);
    for (int i = 0; i < PICTURES; i++) {
      assert_int_equal(hs_wait(c, &got), HS_OK);
      extraction_check_equal(&expected[i % KINDS], &got, "in a group");
    }
  }
  hs_destroy(c);
  hs_features_free(&got);
  for (int i = 0; i < KINDS; i++) {
    hs_features_free(&expected[i]);
    hs_image_free(&images[i]);
  }
}

static void test_split(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  for (int k = 0; k < 10; k++) {
    hs_options o = affine_options(HS_PROFILE_LOWE);
    if (k >= 5) set_option(&o, k == 5 ? 0 : k == 6 ? 1 : k);
    hs_features expected = on_cpu(o, &scene, NULL), got = {0};
    o.device = HS_DEVICE_HYBRID;
    o.split = 1 + k % 5;
    hs_context *c = extraction_context(&o);
    for (int i = 0; i < 2; i++) {
      assert_int_equal(hs_extract(c, &scene, NULL, &got), HS_OK);
      extraction_check_equal(&expected, &got, "split");
    }
    hs_destroy(c);
    hs_features_free(&expected);
    hs_features_free(&got);
  }
}

/* A picture's own keypoints, some without their orientation, some that cannot be described. */
static void test_given(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = affine_options(HS_PROFILE_LOWE);
  hs_features found = on_cpu(o, &scene, NULL), expected = {0}, got = {0};
  for (size_t i = 0; i < found.count; i++) {
    if (i % 3 == 1) found.keypoints[i].orientation = NAN;
    if (i % 7 == 2) found.keypoints[i].level = 0;
    if (i % 11 == 3) found.keypoints[i].x = -50.0f;
  }
  hs_context *cpu = extraction_context(&o);
  o.device = HS_DEVICE_CUDA;
  hs_context *gpu = extraction_context(&o);
  assert_int_equal(hs_describe(cpu, &scene, found.keypoints, found.count, &expected, NULL), HS_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hs_describe(gpu, &scene, found.keypoints, found.count, &got, NULL), HS_OK);
    extraction_check_equal(&expected, &got, "given");
  }
  hs_destroy(cpu);
  hs_destroy(gpu);
  hs_features_free(&found);
  hs_features_free(&expected);
  hs_features_free(&got);
}

/* The size query says what a frame then holds. */
static void test_size_query(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = affine_options(HS_PROFILE_LOWE);
  uint64_t host = 0, device = 0;
  hs_statistics s = {.struct_size = sizeof s};
  const hs_features *view = NULL;
  o.device = HS_DEVICE_CUDA;
  hs_context *c = extraction_context(&o);
  assert_int_equal(hs_workspace_query(&o, scene.width, scene.height, &host, &device), HS_OK);
  assert_int_equal(hs_extract_view(c, &scene, NULL, &view), HS_OK);
  assert_int_equal(hs_get_statistics(c, &s), HS_OK);
  assert_int_equal(device, s.device_bytes);
  assert_int_equal(host, s.workspace_bytes);
  hs_destroy(c);
}

#if HARTSIFT_HAVE_CUDA
/* Results that stay there, between frames whose results do not. */
static void test_resident(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = affine_options(HS_PROFILE_LOWE);
  hs_features expected = on_cpu(o, &scene, NULL), got = {0};
  void *memory = NULL, *there = NULL, *frames = NULL, *ignored = NULL;
  const size_t bytes = (size_t)scene.width * (size_t)scene.height, frame_bytes = expected.count * sizeof(hs_frame);
  assert_int_equal(device_alloc_pinned(&memory, &there, bytes), STAGE_OK);
  assert_int_equal(device_alloc_pinned(&frames, &ignored, frame_bytes), STAGE_OK);
  memcpy(memory, scene.data, bytes);
  o.device = HS_DEVICE_CUDA;
  hs_context *c = extraction_context(&o);
  cuda_stream stream = NULL;
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  hs_image on_device = scene;
  on_device.data = there;
  for (int i = 0; i < 3; i++) {
    hs_cuda_features resident;
    assert_int_equal(hs_cuda_extract_resident(c, &on_device, NULL, NULL, &resident), HS_OK);
    assert_int_equal(resident.count, expected.count);
    assert_non_null(resident.frames);
    assert_int_equal(device_copy_from(frames, resident.frames, frame_bytes, stream), STAGE_OK);
    assert_int_equal(device_stream_wait(stream), STAGE_OK);
    assert_memory_equal(frames, expected.frames, frame_bytes);
    assert_int_equal(hs_cuda_extract(c, &on_device, NULL, NULL, &got), HS_OK);
    extraction_check_equal(&expected, &got, "from device memory");
  }
  device_stream_destroy(stream);
  hs_destroy(c);
  hs_features_free(&expected);
  hs_features_free(&got);
  device_free_pinned(memory);
  device_free_pinned(frames);
}
#endif

/* So many keypoints that lists overflow at first and warps draw several of them; long shapes among them. */
static void test_many(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_image image = extraction_scene(700, 520, 3, NULL);
  hs_options o = affine_options(HS_PROFILE_LOWE);
  o.contrast = 0.002f;
  o.edge = 100.0f;
  assert_true(check(o, &image, NULL, "many") > 6000);
  hs_image_free(&image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_profiles),
    cmocka_unit_test(test_options),
    cmocka_unit_test(test_small_pictures),
    cmocka_unit_test(test_variants),
    cmocka_unit_test(test_in_flight),
    cmocka_unit_test(test_groups),
    cmocka_unit_test(test_split),
    cmocka_unit_test(test_given),
    cmocka_unit_test(test_size_query),
#if HARTSIFT_HAVE_CUDA
    cmocka_unit_test(test_resident),
#endif
    cmocka_unit_test(test_many),
  };
  return cmocka_run_group_tests_name("property.affine_on_device", tests, set_up, tear_down);
}
