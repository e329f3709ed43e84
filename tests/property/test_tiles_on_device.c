/*
 * A frame in tiles on a GPU gives the bytes of the untiled frame on the CPU: for every profile and everything that changes
 * what a frame does, and it holds the memory that was foretold. Skipped where there is no device.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "tests/support/extraction.h"
#include "tests/support/skip.h"

enum { WIDTH = 437, HEIGHT = 353, MIB = 1 << 20 };

#define NEED_DEVICE()                                                                                                  \
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU)

static hs_image scene;

static hs_options options_of(int profile) {
  hs_options o = extraction_options((hs_profile)profile);
  o.device = HS_DEVICE_CUDA;
  o.threads = 2;
  return o;
}

/* The larger of what a frame takes on the device and on the host. */
static uint64_t query(hs_options o, const hs_image *image, uint64_t most) {
  uint64_t host, device;
  o.max_memory_bytes = most;
  assert_int_equal(hs_workspace_query(&o, image->width, image->height, &host, &device), HS_OK);
  return device > host ? device : host;
}

static uint64_t query_device(const hs_options *o, const hs_image *image) {
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(o, image->width, image->height, &host, &device), HS_OK);
  return device;
}

static hs_statistics statistics_of(const hs_context *c) {
  hs_statistics s = {.struct_size = sizeof s};
  assert_int_equal(hs_get_statistics(c, &s), HS_OK);
  return s;
}

/* Compares a frame within `most` bytes with the CPU's. Returns how many features there are. */
static size_t check_within(const hs_options *options, const hs_image *image, const hs_image *mask, uint64_t most,
                           const char *what) {
  hs_options on_cpu = *options, tiled = *options;
  hs_features f = {0}, g = {0};
  on_cpu.device = HS_DEVICE_CPU;
  tiled.max_memory_bytes = most;
  if (query_device(&tiled, image) >= query_device(options, image)) fail_msg("%s: needs no tiles", what);
  hs_context *a = extraction_context(&on_cpu), *b = extraction_context(&tiled);
  assert_int_equal(hs_extract(a, image, mask, &f), HS_OK);
  const hs_status st = hs_extract(b, image, mask, &g);
  if (st != HS_OK) fail_msg("%s: %s", what, hs_last_error(b));
  extraction_check_equal(&f, &g, what);
  const hs_statistics s = statistics_of(a), t = statistics_of(b);
  assert_int_equal(s.candidates, t.candidates);
  assert_int_equal(s.features, t.features);
  assert_true(t.device_bytes <= most + MIB);
  const size_t count = f.count;
  hs_features_free(&f);
  hs_features_free(&g);
  hs_destroy(a);
  hs_destroy(b);
  return count;
}

/* Halfway between the smallest tiles and the whole. */
static uint64_t half_of(const hs_options *o, const hs_image *image) {
  const uint64_t least = query(*o, image, 1), whole = query_device(o, image);
  if (least >= whole)
    fail_msg("the smallest tiles take %llu bytes, the whole %llu", (unsigned long long)least,
             (unsigned long long)whole);
  return least + (whole - least) / 2;
}

static void test_profiles(void **state) {
  (void)state;
  NEED_DEVICE();
  static const char *const names[EXTRACTION_PROFILES] = {"lowe", "opencv", "vlfeat", "colmap"};
  hs_image large = extraction_scene(2 * WIDTH, 2 * HEIGHT, 2, NULL);
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
    hs_options o = options_of(profile);
    o.first_octave = profile % 2 - 1;
    const hs_image *image = o.first_octave < 0 ? &scene : &large;
    assert_true(check_within(&o, image, NULL, half_of(&o, image), names[profile]) > 100);
  }
  hs_image_free(&large);
}

static void test_small_tiles(void **state) {
  (void)state;
  NEED_DEVICE();
  hs_options o = options_of(HS_PROFILE_LOWE);
  const uint64_t least = query(o, &scene, 1), whole = query_device(&o, &scene);
  assert_true(check_within(&o, &scene, NULL, least + (whole - least) / 16, "small tiles") > 100);
}

/* ------------------------------------------------------------------ what else changes a frame */

static void take_strongest(hs_options *o) { o->max_features = 40; }
static void take_levels(hs_options *o) {
  o->max_features = 25;
  o->selection = HS_SELECT_LEVELS;
}
static void take_grid(hs_options *o) {
  o->max_features = 60;
  o->grid_columns = 5;
  o->grid_rows = 4;
}
static void take_region(hs_options *o) {
  o->region_x = 31;
  o->region_y = 17;
  o->region_width = 240;
  o->region_height = 190;
}
static void equalize(hs_options *o) { o->equalize = 1; }
static void floats(hs_options *o) { o->descriptor = HS_DESCRIPTOR_F32; }
static void no_descriptors(hs_options *o) { o->descriptor = HS_DESCRIPTOR_NONE; }
static void root_upright(hs_options *o) {
  o->upright = 1;
  o->norm = HS_NORM_ROOT;
}
static void two_octaves(hs_options *o) { o->octaves = 2; }
static void two_scales(hs_options *o) { o->scales = 2; }
static void on_both(hs_options *o) {
  o->device = HS_DEVICE_HYBRID;
  o->split = 2;
}

static void test_changes(void **state) {
  (void)state;
  NEED_DEVICE();
  static const struct {
    void (*make)(hs_options *o);
    const char *what;
  } changes[] = {{take_strongest, "strongest"}, {take_levels, "levels"},   {take_grid, "grid"},
                 {take_region, "region"},       {equalize, "equalize"},    {floats, "floats"},
                 {no_descriptors, "keypoints"}, {root_upright, "upright"}, {two_octaves, "two octaves"},
                 {two_scales, "two scales"},    {on_both, "hybrid"}};
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    hs_options o = options_of((int)i % EXTRACTION_PROFILES);
    o.contrast = 0.01f;
    o.first_octave = -1;
    changes[i].make(&o);
    assert_true(check_within(&o, &scene, NULL, half_of(&o, &scene), changes[i].what) > 20);
  }
}

/* Windows reach so far that only larger pictures have tiles. */
static void test_pooling(void **state) {
  (void)state;
  NEED_DEVICE();
  hs_image large = extraction_scene(811, 587, 4, NULL);
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.contrast = 0.02f;
  o.dsp = 1;
  o.dsp_sizes = 7;
  o.dsp_smallest = 0.125f;
  o.dsp_largest = 4.0f;
  assert_true(check_within(&o, &large, NULL, half_of(&o, &large), "pooled") > 100);
  hs_image_free(&large);
}

static void test_mask(void **state) {
  (void)state;
  NEED_DEVICE();
  static uint8_t bytes[WIDTH * HEIGHT];
  for (int32_t y = 0; y < HEIGHT; y++)
    for (int32_t x = 0; x < WIDTH; x++) bytes[y * WIDTH + x] = (x / 23 + y / 17) % 3 != 0;
  const hs_image mask = {.data = bytes, .width = WIDTH, .height = HEIGHT};
  const hs_options o = options_of(HS_PROFILE_LOWE);
  assert_true(check_within(&o, &scene, &mask, half_of(&o, &scene), "mask") > 20);
}

/* Colour, floats, thinned pictures, and rows that begin anywhere. */
static void test_other_samples(void **state) {
  (void)state;
  NEED_DEVICE();
  hs_options o = options_of(HS_PROFILE_LOWE);
  hs_image values = extraction_as_floats(&scene), large = extraction_scene(1801, 1403, 5, NULL);
  assert_true(check_within(&o, &values, NULL, half_of(&o, &values), "floats") > 100);
  o.first_octave = 0;
  const hs_image colour = {.data = large.data,
                           .width = 599,
                           .height = 1403,
                           .stride_bytes = large.stride_bytes ? large.stride_bytes : 1801,
                           .layout = HS_RGB};
  (void)check_within(&o, &colour, NULL, half_of(&o, &colour), "colour");
  o.first_octave = 1;
  assert_true(check_within(&o, &large, NULL, half_of(&o, &large), "thinned") > 100);
  hs_image_free(&large);
  hs_image_free(&values);
}

/* So many keypoints that lists and tiles overflow, and candidates that wander far. */
static void test_spots(void **state) {
  (void)state;
  NEED_DEVICE();
  for (int profile = HS_PROFILE_LOWE; profile <= HS_PROFILE_OPENCV; profile++) {
    const bool fine = profile % 2 == 0;
    hs_options o = options_of(profile);
    hs_image image = extraction_spots(fine ? 8 : 16, 613, 551);
    o.contrast = 0.0f;
    o.edge = 1000.0f;
    o.first_octave = 0;
    if (fine) o.sigma = 0.8f;
    o.descriptor = fine ? HS_DESCRIPTOR_NONE : HS_DESCRIPTOR_U8;
    o.max_features = 0;
    assert_true(check_within(&o, &image, NULL, half_of(&o, &image), "spots") > 100);
    hs_image_free(&image);
  }
}

/* ------------------------------------------------------------------ calls and memory */

static void test_calls(void **state) {
  (void)state;
  NEED_DEVICE();
  hs_options o = options_of(HS_PROFILE_LOWE), on_cpu = o;
  on_cpu.device = HS_DEVICE_CPU;
  hs_image small = extraction_scene(90, 70, 1, NULL);
  hs_features expected = extraction_once(&on_cpu, &scene), few = extraction_once(&on_cpu, &small), got = {0};
  o.max_memory_bytes = half_of(&o, &scene);
  hs_context *c = extraction_context(&o);
  for (int i = 0; i < 5; i++) assert_int_equal(hs_submit(c, i % 2 ? &small : &scene, NULL), HS_OK);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(hs_wait(c, &got), HS_OK);
    extraction_check_equal(i % 2 ? &few : &expected, &got, "in flight");
  }
  for (int i = 0; i < 3; i++) {
    const hs_features *view;
    assert_int_equal(hs_extract_view(c, i == 1 ? &small : &scene, NULL, &view), HS_OK);
    extraction_check_equal(i == 1 ? &few : &expected, view, "view");
  }
  assert_int_equal(hs_detect(c, &scene, NULL, &got), HS_OK);
  assert_int_equal(got.count, expected.count);
  assert_memory_equal(got.keypoints, expected.keypoints, expected.count * sizeof *got.keypoints);
  assert_int_equal(hs_describe(c, &scene, expected.keypoints, expected.count, &got, NULL), HS_ERR_LIMIT);
  hs_image_free(&small);
  hs_features_free(&got);
  hs_features_free(&few);
  hs_features_free(&expected);
  hs_destroy(c);
}

/* Asked for, promised, used: what the query tells is what is held, on the device and on the host, and within the limit but
   for the context itself. */
static void test_memory(void **state) {
  (void)state;
  NEED_DEVICE();
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.contrast = 0.05f; /* few enough features for the lists' first size */
  const uint64_t least = query(o, &scene, 1), whole = query_device(&o, &scene);
  for (int i = 1; i < 3; i++) {
    uint64_t host, device;
    hs_features f = {0};
    o.max_memory_bytes = least + (whole - least) * (uint64_t)i / 3;
    hs_context *c = extraction_context(&o);
    assert_int_equal(hs_workspace_query(&o, scene.width, scene.height, &host, &device), HS_OK);
    assert_true(device < whole && device <= o.max_memory_bytes + MIB && host <= o.max_memory_bytes + MIB);
    for (int frame = 0; frame < 2; frame++) {
      assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
      assert_int_equal(statistics_of(c).device_bytes, device);
      assert_int_equal(statistics_of(c).workspace_bytes, host);
    }
    assert_int_equal(statistics_of(c).regrown_frames, 0);
    hs_features_free(&f);
    hs_destroy(c);
  }
  o.max_memory_bytes = MIB;
  hs_context *c = extraction_context(&o);
  hs_features f = {0};
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_LIMIT);
  assert_non_null(strstr(hs_last_error(c), "even in the smallest tiles"));
  hs_destroy(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_profiles), cmocka_unit_test(test_small_tiles), cmocka_unit_test(test_changes),
      cmocka_unit_test(test_pooling),  cmocka_unit_test(test_mask),        cmocka_unit_test(test_other_samples),
      cmocka_unit_test(test_spots),    cmocka_unit_test(test_calls),       cmocka_unit_test(test_memory),
  };
  scene = extraction_scene(WIDTH, HEIGHT, 7, NULL);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  hs_image_free(&scene);
  return failed;
}
