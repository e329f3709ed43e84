/*
 * Pictures decoded row by row while their tiles are extracted: the features equal the CPU's for the whole picture,
 * which is never in memory.
 *
 * Covers every kind of file that can be read by rows and the others; damaged files end as they do when decoded first.
 * On the CPU and on a GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/engine_tests.h"

#include "pipeline/image_io/image_io.h"
#include "tests/support/exif_maker.h"
#include "tests/support/extent.h"
#include "tests/support/rows_check.h"
#include "tests/support/scratch_folder.h"

enum { WIDTH = 397, HEIGHT = 301, DECODING_BYTES = 256 << 10 };

/* Returns the width of pictures; a GPU needs larger pictures for tiles. */
static int32_t width_of(void) { return engine_is_gpu() ? 656 : WIDTH; }
static int32_t height_of(void) { return engine_is_gpu() ? 530 : HEIGHT; }

static hs_options options_of(hs_profile profile) {
  hs_options o = engine_options(profile);
  o.threads = 2;
  o.first_octave = 0;
  o.contrast = engine_is_gpu() ? 0.02f : 0.05f;
  return o;
}

ENGINE_TEST(ON_ALL, test_png) {
  const int32_t w = width_of(), h = height_of();
  const png_spec specs[] = {{0, 16, false, false, w, h}, {2, 8, false, true, w, h},   {4, 8, true, false, w, h},
                            {0, 8, false, false, w, h},  {2, 16, false, false, w, h}, {3, 4, false, false, w, h},
                            {0, 4, false, false, w, h},  {6, 16, false, false, w, h}};
  for (size_t i = 0; i < (engine_is_gpu() ? 3 : sizeof specs / sizeof specs[0]); i++) {
    char what[64];
    scoped_file file = png_spec_make(&specs[i]);
    if (!file.bytes) skip();
    hs_options o = options_of((hs_profile)(i % EXTRACTION_PROFILES));
    o.contrast = 0.001f;
    snprintf(what, sizeof what, "PNG of type %d, %d bits", specs[i].colour_type, specs[i].depth);
    (void)rows_check_file(&o, &file, NULL, what);
  }
}

ENGINE_TEST(ON_CPU, test_jpeg) {
  static const jpeg_space spaces[] = {JPEG_GRAY, JPEG_YCBCR, JPEG_RGB, JPEG_CMYK};
  hs_load_options load;
  hs_load_options_init(&load);
  for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
    for (jpeg_coding coding = JPEG_BASELINE; coding <= JPEG_ARITHMETIC; coding++) {
      if (!extent_pairs(i, coding % 2, 2)) continue;
      const jpeg_spec spec = {spaces[i], coding, 90, 2, 3, WIDTH, HEIGHT, NULL, 0};
      scoped_file file = rows_jpeg_of_scene(&spec);
      hs_options o = options_of(i % 2 ? HS_PROFILE_COLMAP : HS_PROFILE_LOWE);
      o.first_octave = -(int32_t)(i % 2);
      load.jpeg_scale = coding == JPEG_BASELINE && i == 2 ? 2 : 1;
      if (file.bytes) (void)rows_check_file(&o, &file, &load, "JPEG");
    }
}

/* The picture is extracted in the orientation of the file's EXIF. */
ENGINE_TEST(ON_CPU, test_turned) {
  for (uint32_t orientation = 1; orientation <= 8; orientation += 5) {
    uint8_t app1[EXIF_MAKER_BYTES];
    const exif_field field = {IN_FIRST, 0x0112, FIELD_SHORT, 1, {orientation}};
    const size_t size = exif_maker_make('M', &field, 1, app1);
    const jpeg_spec spec = {JPEG_GRAY, JPEG_BASELINE, 90, 1, 0, WIDTH, HEIGHT, app1, size};
    scoped_file file = rows_jpeg_of_scene(&spec);
    const hs_options o = options_of(HS_PROFILE_LOWE);
    if (file.bytes) (void)rows_check_file(&o, &file, NULL, "turned");
  }
}

static void pool(hs_options *o) { o->dsp = 1; }
static void double_size(hs_options *o) { o->first_octave = -1; }
static void thin(hs_options *o) { o->first_octave = 1; }
static void one_octave(hs_options *o) { o->octaves = 1; }
static void two_octaves(hs_options *o) { o->octaves = 2; }
static void equalize(hs_options *o) { o->equalize = 1; }
static void wide_filters(hs_options *o) { o->sigma = 4.0f; }
static void share_octaves(hs_options *o) { o->device = HS_DEVICE_HYBRID; }
static void split_octaves(hs_options *o) {
  o->device = HS_DEVICE_HYBRID;
  o->split = 2;
}
/* Lists overflow, so that the file is read again; tiles are divided, and candidates leave their tile. */
static void take_all(hs_options *o) {
  o->contrast = 0.0f;
  o->edge = 1000.0f;
  o->max_features = 0;
}

ENGINE_TEST(ON_ALL, test_changes) {
  static void (*const on_cpu[])(hs_options *) = {pool, thin, one_octave, two_octaves, equalize, wide_filters, take_all};
  static void (*const on_gpu[])(hs_options *) = {double_size,   thin,          one_octave, equalize,
                                                 share_octaves, split_octaves, take_all};
  enum { CHANGES = sizeof on_cpu / sizeof on_cpu[0] };
  hs_load_options load;
  hs_load_options_init(&load);
  for (size_t i = 0; i < CHANGES; i++) {
    hs_options o = options_of(i % 2 == 0 ? HS_PROFILE_LOWE : engine_is_gpu() ? HS_PROFILE_COLMAP : HS_PROFILE_VLFEAT);
    (engine_is_gpu() ? on_gpu : on_cpu)[i](&o);
    /* Some windows are wide, so smaller pictures would need no tiles. */
    const bool is_wide = !extent_is_short() || o.dsp || o.first_octave > 0 || o.sigma >= 4.0f;
    const int32_t halves = 2 + o.first_octave,
                  w = engine_is_gpu() ? width_of() / 2 * halves
                      : is_wide       ? 613
                                      : WIDTH,
                  h = engine_is_gpu() ? height_of() / 2 * halves
                      : is_wide       ? 467
                                      : HEIGHT;
    const jpeg_spec spec = {i % 2 && engine_is_gpu() ? JPEG_YCBCR : JPEG_GRAY, JPEG_BASELINE, 90, 2, 0, w, h, NULL, 0};
    scoped_file file = rows_jpeg_of_scene(&spec);
    if (!file.bytes) skip();
    /* the device could decode the file, but memory does not suffice for the untiled frame */
    load.keep_encoded = engine_is_gpu() && i % 2;
    (void)rows_check_file(&o, &file, &load, "changed options");
  }
}

/* At any time, only some rows of the picture and part of its file are in memory. */
ENGINE_TEST(ON_CPU, test_memory) {
  const int32_t side = extent_is_short() ? 700 : 1000;
  const png_spec spec = {0, 16, false, false, side, side};
  scoped_file file = png_spec_make(&spec);
  if (!file.bytes) skip();
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.contrast = 0.001f;
  o.threads = 1;
  const size_t most = rows_check_file(&o, &file, NULL, "16 bits");
  assert_true(file.size + (size_t)(2 * side * side) > 4 * DECODING_BYTES);
  uint64_t context_bytes, device;
  const uint64_t allowed = rows_cap(o, side, side);
  assert_int_equal(hs_workspace_query(&o, 1, 1, &context_bytes, &device), HS_OK);
  if (most > allowed + context_bytes + DECODING_BYTES)
    fail_msg("%zu bytes were held, %llu, %llu of the context and %d for decoding are allowed", most,
             (unsigned long long)allowed, (unsigned long long)context_bytes, DECODING_BYTES);
}

/* The predicted memory of a file's workspace equals the held memory, for bands smaller and larger than the third
 * octave's base. For a file that is decoded first it equals the prediction for pictures in memory. */
ENGINE_TEST(ON_CPU, test_promise) {
  const int32_t sides[] = {120, 397, extent_is_short() ? 900 : 1400};
  int larger = 0;
  for (int i = 0; i < 6; i++) {
    const int32_t side = sides[i / 2], depth = i % 2 == 0 ? 8 : 16;
    const png_spec spec = {0, depth, false, false, side, side};
    scoped_file file = png_spec_make(&spec);
    if (!file.bytes) skip();
    hs_options o = options_of(HS_PROFILE_LOWE);
    uint64_t promised = 0, of_picture = 0, device = 0;
    scoped_features f = {0};
    o.max_memory_bytes = rows_cap(o, side, side);
    const hs_sample_type type = depth == 8 ? HS_U8 : HS_U16;
    assert_int_equal(hs_workspace_query_rows(&o, side, side, type, &promised, &device), HS_OK);
    assert_int_equal(hs_workspace_query(&o, side, side, &of_picture, &device), HS_OK);
    larger += promised > of_picture;
    scoped_context *c = extraction_context(&o);
    assert_int_equal(hs_extract_encoded(c, file.bytes, file.size, NULL, NULL, &f), HS_OK);
    assert_int_equal(statistics_of(c).regrown_frames, 0);
    assert_int_equal(statistics_of(c).workspace_bytes, promised);
    o.equalize = 1;
    assert_int_equal(hs_workspace_query_rows(&o, side, side, type, &promised, &device), HS_OK);
    assert_int_equal(hs_workspace_query(&o, side, side, &of_picture, &device), HS_OK);
    assert_int_equal(promised, of_picture);
  }
  assert_in_range(larger, 1, 5);
}

/* Queries the memory for a file read by rows, on the host and on the device. Fails if the file would not be read by
 * rows. */
static void promise_of(const hs_options *o, int32_t width, int32_t height, hs_sample_type type, uint64_t *host,
                       uint64_t *device) {
  hs_options untiled = *o;
  uint64_t whole_host, whole;
  untiled.max_memory_bytes = 0;
  assert_int_equal(hs_workspace_query(&untiled, width, height, &whole_host, &whole), HS_OK);
  assert_int_equal(hs_workspace_query_rows(o, width, height, type, host, device), HS_OK);
  assert_true(*device < whole);
}

/* The predicted memory equals the held memory on the host and on the device, in the first frame and in the second. */
ENGINE_TEST(ON_GPU, test_device_promise) {
  const int32_t w = width_of(), h = height_of();
  for (int i = 0; i < 2; i++) {
    const png_spec spec = {0, i == 0 ? 8 : 16, false, false, w, h};
    scoped_file file = png_spec_make(&spec);
    if (!file.bytes) skip();
    hs_options o = options_of(HS_PROFILE_LOWE);
    uint64_t host = 0, device = 0;
    scoped_features f = {0};
    o.contrast = 0.05f;
    o.max_memory_bytes = rows_cap(o, w, h);
    promise_of(&o, w, h, i == 0 ? HS_U8 : HS_U16, &host, &device);
    scoped_context *c = extraction_context(&o);
    for (int frame = 0; frame < 2; frame++) {
      assert_int_equal(hs_extract_encoded(c, file.bytes, file.size, NULL, NULL, &f), HS_OK);
      assert_int_equal(statistics_of(c).workspace_bytes, host);
      assert_int_equal(statistics_of(c).device_bytes, device);
    }
    assert_int_equal(statistics_of(c).regrown_frames, 0);
  }
}

/* The host's ordinary memory cannot hold both the picture and the predicted workspace. */
ENGINE_TEST(ON_GPU, test_host_memory_of_a_gpu) {
  enum { SIDE = 1500 };
  const png_spec spec = {0, 16, false, false, SIDE, SIDE};
  scoped_file file = png_spec_make(&spec);
  if (!file.bytes) skip();
  hs_options o = options_of(HS_PROFILE_LOWE);
  uint64_t host = 0, device = 0;
  o.contrast = 0.001f;
  o.octaves = 2;
  const size_t most = rows_check_file(&o, &file, NULL, "16 bits");
  o.max_memory_bytes = rows_cap(o, SIDE, SIDE);
  promise_of(&o, SIDE, SIDE, HS_U16, &host, &device);
  /* Pinned memory, at least two slots of a mebibyte, is part of the prediction, but the allocator does not count it. */
  if (most > host + DECODING_BYTES - (2 << 20))
    fail_msg("%zu bytes were held, %llu are promised, pinned memory included", most, (unsigned long long)host);
  assert_true(2 * SIDE * SIDE > DECODING_BYTES + (1 << 20));
}

ENGINE_TEST(ON_ALL, test_damaged) {
  const int32_t w = width_of(), h = height_of();
  const png_spec spec = {2, 8, false, false, w, h};
  const jpeg_spec coded = {JPEG_YCBCR, JPEG_BASELINE, 90, 2, 3, w, h, NULL, 0};
  image_file files[2] = {png_spec_make(&spec), rows_jpeg_of_scene(&coded)};
  for (size_t i = engine_is_gpu() ? 1 : 0; i < 2; i++) {
    if (!files[i].bytes) continue;
    hs_options o = options_of(HS_PROFILE_LOWE);
    for (size_t part = 0; part <= 4; part++) {
      o.device = engine_is_gpu() && part == 2 ? HS_DEVICE_AUTO : engine_device;
      rows_check_damaged(o, &files[i], files[i].size * part / 4, w, h);
    }
    rows_check_damaged(o, &files[i], files[i].size - 14, w, h);
    files[i].bytes[files[i].size / 2] ^= 0x55;
    rows_check_damaged(o, &files[i], files[i].size, w, h);
  }
  image_file_free(&files[0]);
  image_file_free(&files[1]);
}

/* If the file has changed when it is read again, the frame ends without a result. */
ENGINE_TEST(ON_CPU, test_changed_file) {
  uint8_t app1[EXIF_MAKER_BYTES];
  const exif_field field = {IN_EXIF, 0xA405, FIELD_SHORT, 1, {28}};
  const size_t size = exif_maker_make('M', &field, 1, app1);
  jpeg_spec spec = {JPEG_GRAY, JPEG_BASELINE, 90, 1, 0, WIDTH, HEIGHT, app1, size};
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES], message[512];
  uint8_t row[WIDTH];
  hs_exif exif;
  const hs_exif nothing = {0};
  hs_load_options load;
  image_rows rows;
  scoped_file first = rows_jpeg_of_scene(&spec);
  if (!first.bytes) skip();
  spec.height--;
  scoped_file second = rows_jpeg_of_scene(&spec);
  scratch_write_file(scratch_folder_path(&folder, "picture", path), first.bytes, first.size);
  hs_load_options_init(&load);
  load.exif = &exif;
  load.message = message;
  load.message_bytes = sizeof message;
  assert_int_equal(image_rows_open(&rows, path, NULL, 0, &load), HS_OK);
  assert_non_null(rows.kind);
  for (int32_t y = 0; y < HEIGHT; y++) assert_int_equal(image_rows_read(&rows, row), HS_OK);
  assert_memory_not_equal(&exif, &nothing, sizeof exif);
  scratch_write_file(path, second.bytes, second.size);
  assert_int_equal(image_rows_rewind(&rows), HS_ERR_IO);
  assert_non_null(strstr(message, "changed"));
  assert_memory_equal(&exif, &nothing, sizeof exif);
  image_rows_close(&rows);
}
