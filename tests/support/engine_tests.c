/* Runs tests on every engine; see engine_tests.h. */
#include "tests/support/engine_tests.h"

#include "tests/support/extent.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"
#endif

enum { SIDE = 200, FEATURES_MIN = 20, IN_FLIGHT = 6, CELLS_ON_DEVICE_MAX = 1 << 16 };

hs_device engine_device = HS_DEVICE_CPU;
hs_image engine_scene;

/* ------------------------------------------------------------------ running */

static void test_on_a_gpu(void **state) {
  (void)state;
  skip_because(NEEDS_GPU);
}

static int run_engines(const char *program) {
  static const struct CMUnitTest without_gpu[] = {{"test_on_a_gpu", test_on_a_gpu, NULL, NULL, NULL}};
  static const char *const names[] = {"cpu", "gpu"};
  const char *wanted = getenv("HARTSIFT_TEST_ENGINES");
  const char *left_out = getenv("HARTSIFT_TEST_SKIP");
  int failed = 0;
  if (test_any(0)) return test_run(program, 0);
  if (left_out) cmocka_set_skip_filter(left_out);
  for (int engine = 0; engine < 2; engine++) {
    char group[128];
    if (!test_any(ON_CPU << engine) || (wanted && strcmp(wanted, names[engine]) != 0)) continue;
    snprintf(group, sizeof group, "%s on a %s", program, names[engine]);
    engine_device = engine == 0 ? HS_DEVICE_CPU : HS_DEVICE_CUDA;
    if (engine_is_gpu() && !extraction_has_gpu())
      failed += _cmocka_run_group_tests(group, without_gpu, 1, NULL, NULL);
    else
      failed += test_run(group, ON_CPU << engine);
  }
  return failed;
}

TEST_AT_START(use_engines) { test_main = run_engines; }

hs_options engine_options(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.device = engine_device;
  return o;
}

int engine_scene_set_up(void **state) {
  (void)state;
  const char *wanted = getenv("HARTSIFT_TEST_SIDE");
  const int32_t side = wanted ? (int32_t)strtol(wanted, NULL, 10) : SIDE;
  engine_scene = extraction_scene(side, side, 7, NULL);
  return 0;
}

int engine_scene_tear_down(void **state) {
  (void)state;
  hs_image_free(&engine_scene);
  return 0;
}

/* ------------------------------------------------------------------ comparing */

hs_features engine_expected(const hs_options *options, const hs_image *image, const hs_image *mask) {
  hs_options o = *options;
  hs_features f = {0};
  o.device = HS_DEVICE_CPU;
  o.expert = NULL;
  o.max_memory_bytes = 0;
  scoped_context *c = extraction_context(&o);
  assert_int_equal(hs_extract(c, image, mask, &f), HS_OK);
  return f;
}

size_t engine_check(const hs_options *o, const hs_image *image, const hs_image *mask, const char *what) {
  scoped_features expected = engine_expected(o, image, mask), got = {0};
  static bool has_replayed;
  const size_t count = expected.count;
  const bool replays = !getenv("HARTSIFT_TEST_SIDE") && !(extent_is_short() && has_replayed);
  const int frames = replays ? 3 : 2;
  has_replayed |= replays;
  scoped_context *c = extraction_context(o);
  for (int i = 0; i < frames; i++) {
    if (hs_extract(c, image, mask, &got) != HS_OK) fail_msg("%s: %s", what, hs_last_error(c));
    extraction_check_equal(&expected, &got, what);
  }
  return count;
}

void engine_check_some(const hs_options *o, const hs_image *image, const hs_image *mask, const char *what) {
  const size_t count = engine_check(o, image, mask, what);
  if (count <= FEATURES_MIN) fail_msg("%s: %zu features", what, count);
}

#if HARTSIFT_HAVE_CUDA

/* Compares device memory with host memory. */
static void check_copy(const void *device, const void *expected, size_t bytes) {
  cuda_stream stream = NULL;
  SCOPED_MEMORY void *host = malloc(bytes + 1);
  assert_non_null(host);
  assert_int_equal(device_stream_create(&stream), STAGE_OK);
  assert_int_equal(device_copy_from(host, device, bytes, stream), STAGE_OK);
  assert_int_equal(device_stream_wait(stream), STAGE_OK);
  device_stream_destroy(stream);
  assert_memory_equal(host, expected, bytes);
}

/* Extracts from pinned memory, which must not change. Where the host selects because there are more than
 * CELLS_ON_DEVICE_MAX cells, results cannot stay on the device. */
static void check_device_memory(hs_context *c, const hs_options *o, const hs_image *image, const hs_features *expected,
                                const char *what) {
  static const int32_t channels[] = {1, 2, 3, 3, 4, 4};
  const size_t row = (size_t)image->width * (size_t)channels[image->layout] * (image->type == HS_F32 ? 4 : 1);
  const size_t bytes = (image->stride_bytes ? image->stride_bytes : row) * (size_t)image->height;
  const bool selected_here = o->grid_columns * o->grid_rows > CELLS_ON_DEVICE_MAX;
  void *memory = NULL, *there = NULL;
  hs_image on_device = *image;
  hs_features got = {0};
  assert_int_equal(device_alloc_pinned(&memory, &there, bytes), STAGE_OK);
  memcpy(memory, image->data, bytes);
  on_device.data = there;
  for (int i = 0; i < 2; i++) {
    hs_cuda_features resident;
    assert_int_equal(hs_cuda_extract(c, &on_device, NULL, NULL, &got), HS_OK);
    extraction_check_equal(expected, &got, what);
    const hs_status st = hs_cuda_extract_resident(c, &on_device, NULL, NULL, &resident);
    assert_int_equal(st, selected_here ? HS_ERR_UNSUPPORTED : HS_OK);
    if (selected_here) continue;
    assert_int_equal(resident.count, expected->count);
    check_copy(resident.keypoints, expected->keypoints, expected->count * sizeof *expected->keypoints);
    check_copy(resident.descriptors, expected->descriptors, expected->count * extraction_descriptor_bytes(expected));
    if (expected->frames) check_copy(resident.frames, expected->frames, expected->count * sizeof *expected->frames);
  }
  assert_memory_equal(memory, image->data, bytes);
  device_free_pinned(memory);
  hs_features_free(&got);
}

#endif

void engine_check_ways(const hs_options *o, const hs_image *image, const char *what) {
  hs_features expected = engine_expected(o, image, NULL), got = {0};
  hs_context *c = extraction_context(o);
  for (int i = 0; i < IN_FLIGHT; i++) assert_int_equal(hs_submit(c, image, NULL), HS_OK);
  for (int i = 0; i < IN_FLIGHT; i++) {
    assert_int_equal(hs_wait(c, &got), HS_OK);
    extraction_check_equal(&expected, &got, what);
  }
#if HARTSIFT_HAVE_CUDA
  if (o->device == HS_DEVICE_CUDA) check_device_memory(c, o, image, &expected, what);
#endif
  hs_destroy(c);
  hs_features_free(&expected);
  hs_features_free(&got);
}
