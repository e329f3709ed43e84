/*
 * Selection over a grid in a context of a GPU: the bytes of a context of the CPU, for grids of every size, few and many
 * features to a cell, equal responses, in flight and in groups, and left on the device.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "tests/support/extraction.h"
#include "tests/support/skip.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"
#endif

enum { BLOCK = 64, BLOCKS = 4, SIDE = BLOCK * BLOCKS };

static hs_image scene, repeated;
static uint8_t repeated_bytes[SIDE * SIDE];

static int set_up(void **state) {
  (void)state;
  scene = extraction_scene(331, 217, 5, NULL);
  hs_image block = extraction_scene(BLOCK, BLOCK, 9, NULL);
  /* the same block again and again: features of equal response */
  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++)
      repeated_bytes[y * SIDE + x] = ((const uint8_t *)block.data)[y % BLOCK * BLOCK + x % BLOCK];
  repeated = (hs_image){.data = repeated_bytes, .width = SIDE, .height = SIDE};
  hs_image_free(&block);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  hs_image_free(&scene);
  return 0;
}

/* A frame alone, then in flight. */
static void check(hs_options o, const hs_image *image) {
  hs_features expected = extraction_once(&o, image), got = {0};
  o.device = HS_DEVICE_CUDA;
  hs_context *c = extraction_context(&o);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hs_extract(c, image, NULL, &got), HS_OK);
    extraction_check_equal(&expected, &got, "over a grid");
  }
  for (int i = 0; i < 6; i++) assert_int_equal(hs_submit(c, image, NULL), HS_OK);
  for (int i = 0; i < 6; i++) {
    assert_int_equal(hs_wait(c, &got), HS_OK);
    extraction_check_equal(&expected, &got, "over a grid, in flight");
  }
  hs_destroy(c);
  hs_features_free(&expected);
  hs_features_free(&got);
}

static const int32_t grids[][2] = {{1, 1}, {3, 2}, {1, 7}, {8, 6}, {64, 64}, {256, 256}, {300, 300}};
enum { GRIDS = sizeof grids / sizeof grids[0] };

static void test_grids(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  static const int32_t most[] = {1, 5, 60, 201, 5000};
  for (size_t g = 0; g < GRIDS; g++)
    for (size_t m = 0; m < sizeof most / sizeof most[0]; m++) {
      hs_options o = extraction_options(HS_PROFILE_LOWE);
      o.grid_columns = grids[g][0];
      o.grid_rows = grids[g][1];
      o.max_features = most[m];
      o.selection = (hs_selection)((g + m) % 3);
      check(o, (g + m) % 2 ? &scene : &repeated);
    }
}

static void test_profiles(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = extraction_options((hs_profile)p);
    o.grid_columns = 5;
    o.grid_rows = 4;
    o.max_features = 70;
    check(o, &scene);
    o.descriptor = HS_DESCRIPTOR_F32;
    o.region_x = 30;
    o.region_y = 20;
    o.region_width = 200;
    o.region_height = 150;
    check(o, &repeated);
  }
}

#if HARTSIFT_HAVE_CUDA
/* Results that stay there; not over so many cells that the host has to select. */
static void test_resident(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.max_features = 50;
  void *memory = NULL, *there = NULL;
  const size_t bytes = (size_t)scene.width * (size_t)scene.height;
  assert_int_equal(device_alloc_pinned(&memory, &there, bytes), STAGE_OK);
  memcpy(memory, scene.data, bytes);
  for (size_t g = 0; g < GRIDS; g++) {
    o.device = HS_DEVICE_CPU;
    o.grid_columns = grids[g][0];
    o.grid_rows = grids[g][1];
    hs_features expected = extraction_once(&o, &scene), got = {0};
    o.device = HS_DEVICE_CUDA;
    hs_context *c = extraction_context(&o);
    hs_image on_device = scene;
    hs_cuda_features resident;
    on_device.data = there;
    const bool here = grids[g][0] * grids[g][1] > 1 << 16;
    assert_int_equal(hs_cuda_extract_resident(c, &on_device, NULL, NULL, &resident), here ? HS_ERR_UNSUPPORTED : HS_OK);
    if (!here) assert_int_equal(resident.count, expected.count);
    assert_int_equal(hs_cuda_extract(c, &on_device, NULL, NULL, &got), HS_OK);
    extraction_check_equal(&expected, &got, "from device memory");
    hs_destroy(c);
    hs_features_free(&expected);
    hs_features_free(&got);
  }
  device_free_pinned(memory);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_grids),
    cmocka_unit_test(test_profiles),
#if HARTSIFT_HAVE_CUDA
    cmocka_unit_test(test_resident),
#endif
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
