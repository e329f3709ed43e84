/*
 * Paths of a frame through a GPU, a few of each, for a sanitizer: uploads in bands, octaves split with the CPU, images
 * in flight, results that stay on the device, encoded pictures, tiles. Each path gives the CPU's bytes. An argument
 * selects tests by name.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/engine_tests.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "pipeline/image_io/jpeg/synthetic_jpeg.h"
#  include "pipeline/include/hartsift_cuda.h"

/* The smallest sides of square pictures that are uploaded in two bands, and in three. */
enum { TWO_BANDS_SIDE = 1000, THREE_BANDS_SIDE = 1225 };

/* Returns a copy of a gray 8-bit picture in pinned memory. */
static hs_image pinned_copy(const hs_image *image) {
  const size_t bytes = (size_t)image->width * (size_t)image->height;
  void *host = NULL, *mapped = NULL;
  assert_int_equal(device_alloc_pinned(&host, &mapped, bytes), STAGE_OK);
  memcpy(host, image->data, bytes);
  return (hs_image){.data = host, .width = image->width, .height = image->height};
}

static void check_bands(int32_t side) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  hs_image pageable = extraction_scene(side, side, 3, NULL), pinned = pinned_copy(&pageable);
  for (o.first_octave = -1; o.first_octave <= 0; o.first_octave++) {
    engine_check_some(&o, &pinned, NULL, "pinned");
    engine_check_some(&o, &pageable, NULL, "pageable");
  }
  device_free_pinned((void *)(uintptr_t)pinned.data);
  hs_image_free(&pageable);
}

ENGINE_TEST(ON_GPU, test_two_bands) { check_bands(TWO_BANDS_SIDE); }

ENGINE_TEST(ON_GPU, test_three_bands) { check_bands(THREE_BANDS_SIDE); }

/* Some octaves are on the CPU. Descriptors are also pooled, because their windows read these octaves. */
ENGINE_TEST(ON_GPU, test_hybrid) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_HYBRID;
  for (o.split = 1; o.split <= 3; o.split++) engine_check_some(&o, &engine_scene, NULL, "split");
  o.dsp = 1;
  o.split = 2;
  engine_check_some(&o, &engine_scene, NULL, "split, pooled");
}

/* Extracts windows of the scene in flight, of many sizes or of two. Small ones share launches. */
static void check_in_flight(const hs_options *o, int32_t least, int32_t step, int32_t sizes) {
  enum { IMAGES = 24 };
  scoped_context *c = extraction_context(o);
  hs_image window[IMAGES];
  hs_features expected[IMAGES];
  for (int32_t i = 0; i < IMAGES; i++) {
    window[i] = engine_scene;
    window[i].stride_bytes = (size_t)engine_scene.width;
    window[i].width = least + i % sizes * step;
    window[i].height = least + i % sizes * step / 2;
    assert_true(window[i].width <= engine_scene.width && window[i].height <= engine_scene.height);
    expected[i] = engine_expected(o, &window[i], NULL);
  }
  for (int32_t waited = 0, next = 0; waited < 2 * IMAGES; waited++) {
    const hs_features *view = NULL;
    for (; next < 2 * IMAGES && next - waited < o->in_flight; next++)
      assert_int_equal(hs_submit(c, &window[next % IMAGES], NULL), HS_OK);
    if (hs_wait_view(c, &view) != HS_OK) fail_msg("%s", hs_last_error(c));
    extraction_check_equal(&expected[waited % IMAGES], view, "in flight");
  }
  for (int32_t i = 0; i < IMAGES; i++) hs_features_free(&expected[i]);
}

ENGINE_TEST(ON_GPU, test_in_flight) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  o.in_flight = 12;
  check_in_flight(&o, 110, 3, 24);
  check_in_flight(&o, 96, 30, 2);
  o.first_octave = 0;
  o.in_flight = 24;
  o.images_per_launch = 8;
  o.max_features = 30;
  check_in_flight(&o, 120, 0, 1);
}

/* Extracts from a picture on the device to lists that stay there, and matches these lists there. Results equal the
 * CPU's. */
static void check_resident(hs_context *c, hs_context *other, const hs_features *expected, const hs_image *on_device) {
  hs_cuda_features left = {0}, right = {0};
  hs_matches matches = {0}, matches_cpu = {0};
  hs_context *cpu = extraction_context_of(HS_PROFILE_LOWE);
  cuda_stream stream;
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  assert_int_equal(hs_cuda_extract_resident(c, on_device, NULL, NULL, &left), HS_OK);
  assert_int_equal(hs_cuda_extract_resident(other, on_device, NULL, stream, &right), HS_OK);
  assert_int_equal(left.count, expected->count);
  unsigned char *descriptors = malloc(left.count * HS_DESCRIPTOR_LENGTH);
  assert_non_null(descriptors);
  assert_int_equal(device_copy_from(descriptors, left.descriptors, left.count * HS_DESCRIPTOR_LENGTH, stream),
                   STAGE_OK);
  assert_int_equal(device_stream_wait(stream), STAGE_OK);
  assert_memory_equal(descriptors, expected->descriptors, left.count * HS_DESCRIPTOR_LENGTH);
  assert_int_equal(hs_cuda_match(c, &left, &right, NULL, stream, &matches), HS_OK);
  assert_int_equal(hs_match(cpu, expected, expected, NULL, &matches_cpu), HS_OK);
  assert_int_equal(matches.count, matches_cpu.count);
  assert_memory_equal(matches.pairs, matches_cpu.pairs, matches.count * sizeof *matches.pairs);
  free(descriptors);
  hs_matches_free(&matches);
  hs_matches_free(&matches_cpu);
  hs_destroy(cpu);
  device_stream_destroy(stream);
}

ENGINE_TEST(ON_GPU, test_resident) {
  const hs_options o = engine_options(HS_PROFILE_LOWE);
  hs_context *c = extraction_context(&o), *other = extraction_context(&o);
  scoped_features expected = engine_expected(&o, &engine_scene, NULL), got = {0};
  const size_t bytes = (size_t)engine_scene.width * (size_t)engine_scene.height;
  hs_image pinned = pinned_copy(&engine_scene), on_device = pinned;
  cuda_stream stream;
  void *memory;
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  assert_int_equal(device_alloc(&memory, bytes), STAGE_OK);
  assert_int_equal(device_copy_to(memory, pinned.data, bytes, stream), STAGE_OK);
  assert_int_equal(device_stream_wait(stream), STAGE_OK);
  on_device.data = memory;
  for (int i = 0; i < 2; i++) {
    check_resident(c, other, &expected, &on_device);
    assert_int_equal(hs_cuda_extract(c, &on_device, NULL, stream, &got), HS_OK);
    extraction_check_equal(&expected, &got, "picture on the device");
  }
  hs_destroy(c);
  hs_destroy(other);
  hs_context *cpu = extraction_context_of(HS_PROFILE_LOWE);
  assert_int_equal(hs_cuda_extract(cpu, &on_device, NULL, NULL, &got), HS_ERR_NO_DEVICE);
  hs_destroy(cpu);
  device_stream_destroy(stream);
  device_free(memory);
  device_free_pinned((void *)(uintptr_t)pinned.data);
}

/* The GPU's kernels decode a JPEG: gray, and with subsampled colours and restart intervals. */
static void check_encoded(const hs_options *o, int32_t across, int32_t restart_interval) {
  const synthetic_jpeg made = {.width = engine_scene.width,
                               .height = engine_scene.height - 5,
                               .across = across,
                               .down = across,
                               .restart_interval = restart_interval,
                               .amplitude = 900,
                               .sum = 2000,
                               .quality = 90,
                               .content = SYNTHETIC_SMOOTH,
                               .seed = 5};
  unsigned char *bytes = NULL;
  size_t size = 0;
  const hs_status st = synthetic_jpeg_write(&made, &bytes, &size);
  if (st == HS_ERR_UNSUPPORTED) skip_because("needs libjpeg");
  assert_int_equal(st, HS_OK);
  scoped_image image = {0};
  assert_int_equal(hs_load_image_memory(bytes, size, NULL, &image), HS_OK);
  scoped_features expected = engine_expected(o, &image, NULL), got = {0};
  hs_context *c = extraction_context(o);
  char why[200] = "";
  if (hs_decodes_jpeg(c, why, sizeof why) != 1) fail_msg("the device does not decode: %s", why);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hs_extract_encoded(c, bytes, size, NULL, NULL, &got), HS_OK);
    extraction_check_equal(&expected, &got, "encoded");
  }
  hs_destroy(c);
  free(bytes);
}

ENGINE_TEST(ON_GPU, test_encoded) {
  const hs_options o = engine_options(HS_PROFILE_LOWE);
  check_encoded(&o, 0, 0);
  check_encoded(&o, 2, 7);
}

/* The picture is larger than the smallest tiles. */
ENGINE_TEST(ON_GPU, test_tiles) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  scoped_image image = extraction_scene(437, 353, 7, NULL);
  uint64_t host, whole, least;
  assert_int_equal(hs_workspace_query(&o, image.width, image.height, &host, &whole), HS_OK);
  o.max_memory_bytes = 1;
  assert_int_equal(hs_workspace_query(&o, image.width, image.height, &host, &least), HS_OK);
  if (host > least) least = host;
  assert_true(least < whole);
  o.max_memory_bytes = (least + whole) / 2;
  engine_check_some(&o, &image, NULL, "tiles");
  o.max_features = 100;
  engine_check_some(&o, &image, NULL, "tiles, the strongest");
}

/* Small pictures share launches, and a larger one does not. They are in flight: plain, equalised, with a grid, affine;
 * on the GPU alone and split with the CPU. */
ENGINE_TEST(ON_GPU, test_groups) {
  enum { PICTURES = 27, KINDS = 4 };
  hs_image images[KINDS];
  for (uint32_t i = 0; i < KINDS; i++) images[i] = extraction_scene(i < 3 ? 96 : 331, i < 3 ? 80 : 217, i + 1, NULL);
  for (int k = 0; k < 8; k++) {
    hs_options o = engine_options(HS_PROFILE_LOWE);
    hs_features expected[KINDS], got = {0};
    if (k % 4 == 1) o.equalize = 1;
    if (k % 4 == 2) o.grid_columns = 5, o.grid_rows = 4, o.max_features = 70;
    if (k % 4 == 3) o.affine = 1;
    o.in_flight = k % 2 ? 16 : 0;
    o.images_per_launch = k % 2 ? 8 : 0;
    if (k > 3) o.device = HS_DEVICE_HYBRID, o.split = k < 6 ? 2 : 0;
    hs_context *c = extraction_context(&o);
    for (int i = 0; i < KINDS; i++) expected[i] = engine_expected(&o, &images[i], NULL);
    for (int submitted = 0, done = 0; done < PICTURES;) {
      const int kind = submitted % 13 == 12 ? 3 : submitted % 3;
      if (submitted < PICTURES && hs_submit(c, &images[kind], NULL) == HS_OK) {
        submitted++;
        continue;
      }
      assert_int_equal(hs_wait(c, &got), HS_OK);
      extraction_check_equal(&expected[done % 13 == 12 ? 3 : done % 3], &got, "in a group");
      done++;
    }
    hs_destroy(c);
    hs_features_free(&got);
    for (int i = 0; i < KINDS; i++) hs_features_free(&expected[i]);
  }
  for (int i = 0; i < KINDS; i++) hs_image_free(&images[i]);
}

/* The size query equals the memory of a frame. */
ENGINE_TEST(ON_GPU, test_size_query) {
  for (int affine = 0; affine < 2; affine++) {
    hs_options o = engine_options(HS_PROFILE_LOWE);
    uint64_t host = 0, device = 0;
    hs_statistics s = {.struct_size = sizeof s};
    const hs_features *view = NULL;
    scoped_image image = extraction_scene(500, 400, 8, NULL);
    o.affine = affine;
    scoped_context *c = extraction_context(&o);
    assert_int_equal(hs_workspace_query(&o, image.width, image.height, &host, &device), HS_OK);
    assert_int_equal(hs_extract_view(c, &image, NULL, &view), HS_OK);
    assert_int_equal(hs_get_statistics(c, &s), HS_OK);
    assert_int_equal(device, s.device_bytes);
    assert_int_equal(host, s.workspace_bytes);
  }
}

TESTS_BETWEEN(engine_scene_set_up, engine_scene_tear_down)

#else

SKIPPED_PROGRAM(NEEDS_GPU)

#endif
