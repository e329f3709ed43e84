/*
 * A picture that is decoded row by row while a GPU works off its tiles has the features that the CPU finds in the
 * whole, and the host holds a band of it. Skipped where there is no device.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "tests/support/extraction.h"
#include "tests/support/rows_check.h"
#include "tests/support/skip.h"

enum { WIDTH = 656, HEIGHT = 530 };

#define NEED_DEVICE()                                                                                                  \
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU)

static hs_options options_of(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.device = HS_DEVICE_CUDA;
  o.threads = 2;
  o.first_octave = 0;
  o.contrast = 0.02f;
  return o;
}

/* The bytes of a file that is worked off in rows, of the options' device: on the host and there. Fails where it would
   not be. */
static void promise_of(const hs_options *o, int32_t width, int32_t height, hs_sample_type type, uint64_t *host,
                       uint64_t *device) {
  hs_options untiled = *o;
  uint64_t whole_host, whole;
  untiled.max_memory_bytes = 0;
  assert_int_equal(hs_workspace_query(&untiled, width, height, &whole_host, &whole), HS_OK);
  assert_int_equal(hs_workspace_query_rows(o, width, height, type, host, device), HS_OK);
  assert_true(*device < whole);
}

static hs_statistics statistics_of(const hs_context *c) {
  hs_statistics s = {.struct_size = sizeof s};
  assert_int_equal(hs_get_statistics(c, &s), HS_OK);
  return s;
}

/* ------------------------------------------------------------------ the same features */

static void test_png(void **state) {
  (void)state;
  NEED_DEVICE();
  static const png_spec specs[] = {
      {0, 16, false, false, WIDTH, HEIGHT}, {2, 8, false, true, WIDTH, HEIGHT}, {4, 8, true, false, WIDTH, HEIGHT}};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    image_file file = png_spec_make(&specs[i]);
    if (!file.bytes) skip();
    hs_options o = options_of(HS_PROFILE_VLFEAT);
    o.contrast = 0.001f;
    (void)rows_check_file(&o, &file, NULL, "PNG");
    image_file_free(&file);
  }
}

static void double_size(hs_options *o) { o->first_octave = -1; }
static void thin(hs_options *o) { o->first_octave = 1; }
static void one_octave(hs_options *o) { o->octaves = 1; }
static void equalize(hs_options *o) { o->equalize = 1; }
static void share_octaves(hs_options *o) { o->device = HS_DEVICE_HYBRID; }
static void split_octaves(hs_options *o) {
  o->device = HS_DEVICE_HYBRID;
  o->split = 2;
}
/* Lists that overflow, so that the file is read again, tiles that are divided, and candidates that leave theirs. */
static void take_all(hs_options *o) {
  o->contrast = 0.0f;
  o->edge = 1000.0f;
  o->max_features = 0;
}

static void test_jpeg(void **state) {
  (void)state;
  NEED_DEVICE();
  static void (*const changes[])(hs_options *) = {double_size,   thin,          one_octave, equalize,
                                                  share_octaves, split_octaves, take_all};
  hs_load_options load;
  hs_load_options_init(&load);
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    hs_options o = options_of(i % 2 ? HS_PROFILE_COLMAP : HS_PROFILE_LOWE);
    changes[i](&o);
    const int32_t sizes = 2 + o.first_octave; /* in halves */
    const jpeg_spec spec = {
        i % 2 ? JPEG_YCBCR : JPEG_GRAY, JPEG_BASELINE, 90, 2, 0, WIDTH / 2 * sizes, HEIGHT / 2 * sizes, NULL, 0};
    image_file file = rows_jpeg_of_scene(&spec);
    if (!file.bytes) skip();
    load.keep_encoded = i % 2; /* the device may decode it, but has no room for the frame */
    (void)rows_check_file(&o, &file, &load, "JPEG");
    image_file_free(&file);
  }
}

/* ------------------------------------------------------------------ memory */

/* What is promised is what is held, on the host and on the device, in a first frame and a second. */
static void test_promise(void **state) {
  (void)state;
  NEED_DEVICE();
  for (int i = 0; i < 2; i++) {
    const png_spec spec = {0, i == 0 ? 8 : 16, false, false, WIDTH, HEIGHT};
    image_file file = png_spec_make(&spec);
    if (!file.bytes) skip();
    hs_options o = options_of(HS_PROFILE_LOWE);
    uint64_t host = 0, device = 0;
    hs_features f = {0};
    o.contrast = 0.05f;
    o.max_memory_bytes = rows_cap(o, WIDTH, HEIGHT);
    promise_of(&o, WIDTH, HEIGHT, i == 0 ? HS_U8 : HS_U16, &host, &device);
    hs_context *c = extraction_context(&o);
    for (int frame = 0; frame < 2; frame++) {
      assert_int_equal(hs_extract_encoded(c, file.bytes, file.size, NULL, NULL, &f), HS_OK);
      assert_int_equal(statistics_of(c).workspace_bytes, host);
      assert_int_equal(statistics_of(c).device_bytes, device);
    }
    assert_int_equal(statistics_of(c).regrown_frames, 0);
    hs_features_free(&f);
    hs_destroy(c);
    image_file_free(&file);
  }
}

/* The host's ordinary memory has no room for the picture beside what is promised. */
static void test_memory(void **state) {
  (void)state;
  NEED_DEVICE();
  enum { SIDE = 1500, DECODING_BYTES = 256 << 10 };
  const png_spec spec = {0, 16, false, false, SIDE, SIDE};
  image_file file = png_spec_make(&spec);
  if (!file.bytes) skip();
  hs_options o = options_of(HS_PROFILE_LOWE);
  uint64_t host = 0, device = 0;
  o.contrast = 0.001f;
  o.octaves = 2;
  const size_t most = rows_check_file(&o, &file, NULL, "16 bits");
  o.max_memory_bytes = rows_cap(o, SIDE, SIDE);
  promise_of(&o, SIDE, SIDE, HS_U16, &host, &device);
  /* Pinned memory, two slots of a mebibyte at least, is promised but not the allocator's. */
  if (most > host + DECODING_BYTES - (2 << 20))
    fail_msg("%zu bytes were held, %llu are promised, pinned memory included", most, (unsigned long long)host);
  assert_true(2 * SIDE * SIDE > DECODING_BYTES + (1 << 20));
  image_file_free(&file);
}

static void test_damaged(void **state) {
  (void)state;
  NEED_DEVICE();
  const jpeg_spec spec = {JPEG_YCBCR, JPEG_BASELINE, 90, 2, 3, WIDTH, HEIGHT, NULL, 0};
  image_file file = rows_jpeg_of_scene(&spec);
  if (!file.bytes) skip();
  for (size_t part = 0; part <= 3; part++) {
    hs_options o = options_of(HS_PROFILE_LOWE);
    if (part == 2) o.device = HS_DEVICE_AUTO;
    rows_check_damaged(o, &file, file.size * part / 3, WIDTH, HEIGHT);
  }
  file.bytes[file.size / 2] ^= 0x55;
  rows_check_damaged(options_of(HS_PROFILE_LOWE), &file, file.size, WIDTH, HEIGHT);
  image_file_free(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_png),    cmocka_unit_test(test_jpeg),    cmocka_unit_test(test_promise),
      cmocka_unit_test(test_memory), cmocka_unit_test(test_damaged),
  };
  return cmocka_run_group_tests_name("pictures in rows on a device", tests, NULL, NULL);
}
