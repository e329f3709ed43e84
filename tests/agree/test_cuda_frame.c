/*
 * Whole frames on a CUDA device give the bytes of the CPU's reference, for every profile and size, for hard pictures
 * and over many runs. Skipped without a device.
 *
 * Options and engine paths: tests/property/test_engines.c and test_engine_ways.c.
 */
#include "tests/support/test.h"

#include "pipeline/context/context.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"
#endif

static bool have_device(void) {
#if HARTSIFT_HAVE_CUDA
  return device_count(NULL, 0) > 0;
#else
  return false;
#endif
}

#define GPU_TEST(NAME) TEST_WHERE(have_device(), NEEDS_GPU, NAME)

static hs_context *open_context(const hs_options *options, hs_device device) {
  hs_options o = *options;
  o.device = device;
  return extraction_context(&o);
}

/* Extracts one picture on both backends and compares the features; returns their number. */
static size_t compare(const hs_options *options, const hs_image *image, const hs_image *mask) {
  scoped_context *cpu = open_context(options, HS_DEVICE_CPU), *gpu = open_context(options, HS_DEVICE_CUDA);
  scoped_features a = {0}, b = {0};
  assert_int_equal(hs_extract(cpu, image, mask, &a), HS_OK);
  if (hs_extract(gpu, image, mask, &b) != HS_OK) fail_msg("%s", hs_last_error(gpu));
  extraction_check_equal(&a, &b, "on a GPU");
  return a.count;
}

GPU_TEST(test_profiles_and_sizes) {
  static const int32_t sizes[][2] = {{1, 1},    {2, 1},     {1, 97},    {5, 5},     {6, 5},   {7, 300},
                                     {2, 2},    {3, 3},     {3, 2},     {2, 3},     {2, 97},  {97, 3},
                                     {11, 11},  {17, 13},   {31, 33},   {64, 64},   {97, 61}, {127, 5},
                                     {129, 65}, {240, 135}, {333, 251}, {641, 479}, {1000, 3}};
  for (int p = HS_PROFILE_LOWE; p <= HS_PROFILE_COLMAP; p++)
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      const hs_options o = extraction_options((hs_profile)p);
      scoped_image im = extraction_scene(sizes[i][0], sizes[i][1], 3, NULL);
      const size_t found = compare(&o, &im, NULL);
      if (sizes[i][1] > 400) assert_true(found > 1000);
    }
}

/* These pictures are large enough to be uploaded in two, three or eight bands while their base is made, on every
 * profile's grid. Their rows need not start at words. They have so many features that each feature gets its own warp;
 * in smaller pictures two warps share a feature. */
GPU_TEST(test_large_pictures) {
  static const int32_t sizes[][2] = {{1301, 1001}, {1601, 1203}, {2501, 1701}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (int p = HS_PROFILE_LOWE; p <= HS_PROFILE_COLMAP; p++) {
      const hs_options o = extraction_options((hs_profile)p);
      scoped_image im = extraction_scene(sizes[i][0], sizes[i][1], 6, NULL);
      assert_true(compare(&o, &im, NULL) > 5000);
    }
}

static uint32_t next_random(uint32_t *s) { return *s = *s * 1664525u + 1013904223u; }

GPU_TEST(test_hard_pictures) {
  enum { W = 203, H = 155 };
  static uint8_t pixels[W * H];
  for (int kind = 0; kind < 5; kind++) {
    uint32_t s = 7;
    for (int i = 0; i < W * H; i++) {
      const int x = i % W, y = i / W;
      const uint8_t values[5] = {128, (uint8_t)(next_random(&s) >> 24), (uint8_t)(((x ^ y) & 1) * 255),
                                 (uint8_t)(((x / 8 + y / 8) & 1) * 255), (uint8_t)(x < W / 2 ? 0 : 255)};
      pixels[i] = values[kind];
    }
    const hs_image im = {.data = pixels, .width = W, .height = H, .stride_bytes = W};
    for (int p = HS_PROFILE_LOWE; p <= HS_PROFILE_COLMAP; p++) {
      const hs_options o = extraction_options((hs_profile)p);
      (void)compare(&o, &im, NULL);
    }
  }
}

GPU_TEST(test_same_over_runs) {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image im = extraction_scene(480, 360, 4, NULL), other = extraction_scene(99, 77, 4, NULL);
  scoped_context *cpu = open_context(&o, HS_DEVICE_CPU), *gpu = open_context(&o, HS_DEVICE_CUDA);
  scoped_features expected = {0}, between = {0};
  assert_int_equal(hs_extract(cpu, &im, NULL, &expected), HS_OK);
  for (int i = 0; i < 100; i++) {
    const hs_features *view = NULL;
    if (i % 10 == 5) assert_int_equal(hs_extract(gpu, &other, NULL, &between), HS_OK);
    assert_int_equal(hs_extract_view(gpu, &im, NULL, &view), HS_OK);
    extraction_check_equal(&expected, view, "on a GPU");
  }
}

/* Sizes alternate, each one to four times in a row, so that frames are launched kernel by kernel, recorded, replayed,
 * evicted and recorded again; with and without a stream of the caller. */
GPU_TEST(test_sizes_by_turns) {
#if HARTSIFT_HAVE_CUDA
  enum { SIZES = 40 };
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_context *cpu = open_context(&o, HS_DEVICE_CPU), *gpu = open_context(&o, HS_DEVICE_CUDA);
  cuda_stream stream = NULL;
  size_t found = 0;
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  for (int i = 0; i < 3 * SIZES; i++) {
    scoped_image im = extraction_scene(120 + i % SIZES, 90 + i % 7, 5, NULL);
    scoped_features expected = {0};
    assert_int_equal(hs_extract(cpu, &im, NULL, &expected), HS_OK);
    found += expected.count;
    for (int again = 0; again <= i % 4; again++) {
      hs_features on_gpu = {0};
      assert_int_equal(hs_extract(gpu, &im, NULL, &on_gpu), HS_OK);
      extraction_check_equal(&expected, &on_gpu, "on a GPU");
      hs_features_free(&on_gpu);
      if (i % 3 > 0) continue;
      void *pixels = NULL;
      assert_int_equal(device_alloc(&pixels, (size_t)im.width * (size_t)im.height), STAGE_OK);
      assert_int_equal(device_copy_to(pixels, im.data, (size_t)im.width * (size_t)im.height, stream), STAGE_OK);
      const hs_image on_device = {.data = pixels, .width = im.width, .height = im.height};
      assert_int_equal(hs_cuda_extract(gpu, &on_device, NULL, stream, &on_gpu), HS_OK);
      extraction_check_equal(&expected, &on_gpu, "on a GPU");
      hs_features_free(&on_gpu);
      device_free(pixels);
    }
  }
  assert_true(found > 1000);
  device_stream_destroy(stream);
  hs_destroy(gpu);
  hs_destroy(cpu);
#endif
}

/* The initial capacities are far too small, so the frame is repeated. The result is the same. */
GPU_TEST(test_overflow) {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image im = extraction_scene(320, 240, 8, NULL);
  scoped_context *cpu = open_context(&o, HS_DEVICE_CPU), *gpu = open_context(&o, HS_DEVICE_CUDA);
  scoped_features a = {0}, b = {0};
  gpu->keypoint_capacity = 32;
  gpu->feature_capacity = 32;
  assert_int_equal(hs_extract(cpu, &im, NULL, &a), HS_OK);
  assert_int_equal(hs_extract(gpu, &im, NULL, &b), HS_OK);
  extraction_check_equal(&a, &b, "on a GPU");
  hs_statistics s = statistics_of(gpu);
  assert_true(s.regrown_frames >= 1);
}
