/*
 * options.equalize in a context of a GPU: the bytes of a context of the CPU, for gray and colour, with a mask, from device
 * memory, resident, in flight alone and in groups, and with given keypoints.
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

enum { WIDTH = 331, HEIGHT = 217, SMALL_WIDTH = 130, SMALL_HEIGHT = 99, LAYOUTS = 6 };

static hs_image scene, small_scenes[3];

static int set_up(void **state) {
  (void)state;
  scene = extraction_scene(WIDTH, HEIGHT, 5, NULL);
  for (uint32_t i = 0; i < 3; i++) small_scenes[i] = extraction_scene(SMALL_WIDTH, SMALL_HEIGHT, i, NULL);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  hs_image_free(&scene);
  for (int i = 0; i < 3; i++) hs_image_free(&small_scenes[i]);
  return 0;
}

static hs_options options_on(hs_device device) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = device;
  o.equalize = 1;
  return o;
}

/* A context on the GPU; null where there is none. */
static hs_context *gpu_context(hs_device device) {
  const hs_options o = options_on(device);
  hs_context *c = NULL;
  const hs_status st = hs_create(&c, &o);
  assert_true(st == HS_OK || st == HS_ERR_NO_DEVICE);
  return c;
}

static int32_t channels_of(hs_pixel_layout layout) {
  static const int32_t channels[LAYOUTS] = {1, 2, 3, 3, 4, 4};
  return channels[layout];
}

/* The scene in a layout, colours made from it, each row followed by three bytes; memory is the caller's. */
static hs_image in_layout(hs_pixel_layout layout) {
  const int32_t channels = channels_of(layout);
  const size_t stride = (size_t)(WIDTH * channels) + 3;
  uint8_t *bytes = malloc(stride * HEIGHT);
  assert_non_null(bytes);
  memset(bytes, 77, stride * HEIGHT);
  for (int32_t y = 0; y < HEIGHT; y++)
    for (int32_t x = 0; x < WIDTH * channels; x++) {
      const uint8_t gray = ((const uint8_t *)scene.data)[y * WIDTH + x / channels];
      const uint8_t made[4] = {(uint8_t)(gray / 3 + 40), (uint8_t)(255 - gray), (uint8_t)(gray / 2), (uint8_t)x};
      bytes[(size_t)y * stride + (size_t)x] = made[x % channels];
    }
  return (hs_image){.data = bytes, .width = WIDTH, .height = HEIGHT, .stride_bytes = stride, .layout = layout};
}

static void test_layouts_and_masks(void **state) {
  (void)state;
  hs_image mask = extraction_scene(WIDTH, HEIGHT, 8, NULL);
  for (int i = 0; i < WIDTH * HEIGHT; i++) ((uint8_t *)(uintptr_t)mask.data)[i] &= 64;
  hs_context *gpu = gpu_context(HS_DEVICE_CUDA);
  if (!gpu) skip_because(NEEDS_GPU);
  const hs_options o = options_on(HS_DEVICE_CPU);
  hs_context *cpu = extraction_context(&o);
  hs_features expected = {0}, got = {0};
  for (int layout = 0; layout < LAYOUTS; layout++) {
    hs_image image = in_layout((hs_pixel_layout)layout);
    for (int i = 0; i < 4; i++) {
      const hs_image *over = i % 2 ? &mask : NULL;
      assert_int_equal(hs_extract(cpu, &image, over, &expected), HS_OK);
      assert_int_equal(hs_extract(gpu, &image, over, &got), HS_OK);
      assert_true(expected.count > 10);
      extraction_check_equal(&expected, &got, "equalised on the device");
    }
    free((void *)(uintptr_t)image.data);
  }
  assert_int_equal(hs_extract(gpu, &scene, NULL, &got), HS_OK);
  assert_int_equal(hs_describe(gpu, &scene, got.keypoints, got.count, &expected, NULL), HS_OK);
  extraction_check_equal(&got, &expected, "own keypoints described");
  hs_features_free(&expected);
  hs_features_free(&got);
  hs_destroy(cpu);
  hs_destroy(gpu);
  hs_image_free(&mask);
}

/* A picture of one value, and one of a single pixel. */
static void test_nothing_to_spread(void **state) {
  (void)state;
  hs_context *gpu = gpu_context(HS_DEVICE_CUDA);
  if (!gpu) skip_because(NEEDS_GPU);
  uint8_t bytes[40 * 30];
  memset(bytes, 93, sizeof bytes);
  const hs_image plain = {.data = bytes, .width = 40, .height = 30}, pixel = {.data = bytes, .width = 1, .height = 1};
  hs_features f = {0};
  assert_int_equal(hs_extract(gpu, &plain, NULL, &f), HS_OK);
  assert_int_equal(f.count, 0);
  assert_int_equal(hs_extract(gpu, &pixel, NULL, &f), HS_OK);
  assert_int_equal(f.count, 0);
  hs_features_free(&f);
  hs_destroy(gpu);
}

static void check_in_flight(hs_device device) {
  enum { IMAGES = 48 };
  const hs_options o = options_on(HS_DEVICE_CPU);
  hs_context *gpu = gpu_context(device);
  if (!gpu) skip_because(NEEDS_GPU);
  hs_context *cpu = extraction_context(&o);
  hs_features expected[4] = {{0}}, got = {0};
  for (int i = 0; i < 3; i++) expected[i] = extraction_run(cpu, &small_scenes[i]);
  expected[3] = extraction_run(cpu, &scene);
  for (int submitted = 0, done = 0; done < IMAGES;) {
    const int which = submitted % 13 == 12 ? 3 : submitted % 3;
    if (submitted < IMAGES && hs_submit(gpu, which == 3 ? &scene : &small_scenes[which], NULL) == HS_OK) {
      submitted++;
      continue;
    }
    assert_int_equal(hs_wait(gpu, &got), HS_OK);
    extraction_check_equal(&expected[done % 13 == 12 ? 3 : done % 3], &got, "equalised in flight");
    done++;
  }
  hs_features_free(&got);
  for (int i = 0; i < 4; i++) hs_features_free(&expected[i]);
  hs_destroy(gpu);
  hs_destroy(cpu);
}

static void test_in_flight(void **state) {
  (void)state;
  check_in_flight(HS_DEVICE_CUDA);
}

static void test_split(void **state) {
  (void)state;
  check_in_flight(HS_DEVICE_HYBRID);
}

#if HARTSIFT_HAVE_CUDA
/* The picture is the caller's, also on the device: it stays as it is. */
static void test_on_the_device(void **state) {
  (void)state;
  hs_context *gpu = gpu_context(HS_DEVICE_CUDA);
  if (!gpu) skip_because(NEEDS_GPU);
  const hs_options o = options_on(HS_DEVICE_CPU);
  hs_context *cpu = extraction_context(&o);
  hs_features expected = {0}, got = {0};
  for (int layout = 0; layout < LAYOUTS; layout++) {
    const hs_image image = in_layout((hs_pixel_layout)layout);
    const size_t bytes = image.stride_bytes * HEIGHT;
    void *memory = NULL, *there = NULL;
    assert_int_equal(device_alloc_pinned(&memory, &there, bytes), STAGE_OK);
    memcpy(memory, image.data, bytes);
    hs_image on_device = image;
    on_device.data = there;
    assert_int_equal(hs_extract(cpu, &image, NULL, &expected), HS_OK);
    hs_cuda_features resident;
    for (int i = 0; i < 3; i++) {
      assert_int_equal(hs_cuda_extract(gpu, &on_device, NULL, NULL, &got), HS_OK);
      extraction_check_equal(&expected, &got, "equalised from device memory");
      assert_int_equal(hs_cuda_extract_resident(gpu, &on_device, NULL, NULL, &resident), HS_OK);
      assert_int_equal(resident.count, expected.count);
    }
    assert_memory_equal(memory, image.data, bytes);
    device_free_pinned(memory);
    free((void *)(uintptr_t)image.data);
  }
  hs_features_free(&expected);
  hs_features_free(&got);
  hs_destroy(cpu);
  hs_destroy(gpu);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_layouts_and_masks),
    cmocka_unit_test(test_nothing_to_spread),
    cmocka_unit_test(test_in_flight),
    cmocka_unit_test(test_split),
#if HARTSIFT_HAVE_CUDA
    cmocka_unit_test(test_on_the_device),
#endif
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
