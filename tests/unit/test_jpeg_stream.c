/*
 * JPEGs kept encoded: which files stay encoded, with the size, position and EXIF that decoding gives, and the handling
 * of damaged headers, sizes and memory limits.
 *
 * Damage of the coded data: unit.jpeg_scan.
 */
#include "tests/support/test.h"

#include "pipeline/image_io/jpeg/jpeg_stream.h"
#include "tests/support/exif_maker.h"
#include "tests/support/jpeg_cases.h"

#if HARTSIFT_HAVE_JPEG

enum { MADE = 200, CHANGED = 2000, SIDE_MAX = 90, TAG_ORIENTATION = 0x0112 };

static hs_status load_with(const uint8_t *bytes, size_t size, const hs_load_options *options, hs_source *loaded) {
  hs_source source = hs_source_encoded(bytes, size);
  source.load = options;
  return hs_load_source(&source, loaded);
}

static hs_status load(const uint8_t *bytes, size_t size, int keep_encoded, hs_source *loaded) {
  const hs_load_options options = {.struct_size = sizeof options, .keep_encoded = keep_encoded, .max_pixels = 1 << 22};
  return load_with(bytes, size, &options, loaded);
}

static bool is_kept(const uint8_t *bytes, size_t size) {
  scoped_source image;
  const bool kept = load(bytes, size, 1, &image) == HS_OK && image.kind == HS_SOURCE_JPEG;
  return kept;
}

TEST(test_made_files_are_kept) {
  for (uint32_t i = 0; i < MADE; i++) {
    size_t size;
    unsigned char *bytes = jpeg_case_make(i, SIDE_MAX, JPEG_SUM_MAX, &size);
    scoped_source image, pixels;
    assert_int_equal(load(bytes, size, 1, &image), HS_OK);
    assert_int_equal(load(bytes, size, 0, &pixels), HS_OK);
    if (image.kind != HS_SOURCE_JPEG) fail_msg("made file %u is decoded", i);
    assert_int_equal(image.image.width, pixels.image.width);
    assert_int_equal(image.image.height, pixels.image.height);
    assert_ptr_equal(image.bytes, bytes);
    assert_int_equal(image.size, size);
    assert_null(image.image.memory);
    free(bytes);
  }
}

/* A changed file gives the same result as without the request, or stays encoded. If it stays encoded and libjpeg reads
 * it, it has libjpeg's size. */
TEST(test_changed_files) {
  int kept_files = 0;
  for (uint32_t i = 0; i < CHANGED; i++) {
    size_t size;
    unsigned char *bytes = jpeg_case_make(i, SIDE_MAX, 700, &size);
    scoped_source kept, pixels;
    size = jpeg_case_change(bytes, size, i);
    /* The bytes are in their own block, so that a sanitizer detects reads past the end. */
    SCOPED_MEMORY uint8_t *exact = malloc(size);
    memcpy(exact, bytes, size);
    const hs_status asked = load(exact, size, 1, &kept), plain = load(exact, size, 0, &pixels);
    const bool is_kept = asked == HS_OK && kept.kind == HS_SOURCE_JPEG;
    kept_files += is_kept;
    if (!is_kept) assert_int_equal(asked, plain);
    if (is_kept && plain == HS_OK) {
      assert_int_equal(kept.image.width, pixels.image.width);
      assert_int_equal(kept.image.height, pixels.image.height);
    }
    free(bytes);
  }
  assert_true(kept_files > CHANGED / 5 && kept_files < CHANGED);
}

static image_file make_file(jpeg_space space, jpeg_coding coding, const uint8_t *app1, size_t app1_size) {
  enum { W = 37, H = 21 };
  static uint8_t samples[W * H * 4];
  for (size_t i = 0; i < sizeof samples; i++) samples[i] = (uint8_t)(i * 7 % 200);
  const jpeg_spec spec = {.space = space,
                          .coding = coding,
                          .quality = 80,
                          .luma_sampling = 2,
                          .width = W,
                          .height = H,
                          .app1 = app1,
                          .app1_size = app1_size};
  return jpeg_spec_make(&spec, samples);
}

TEST(test_kinds) {
  static const struct {
    jpeg_space space;
    jpeg_coding coding;
    bool kept;
    /* the header claims 2 x 2 blocks in an MCU, which has one block if there is one component */
  } kinds[] = {{JPEG_GRAY, JPEG_BASELINE, true},      {JPEG_YCBCR, JPEG_BASELINE, true},
               {JPEG_YCBCR, JPEG_PROGRESSIVE, false}, {JPEG_YCBCR, JPEG_ARITHMETIC, false},
               {JPEG_RGB, JPEG_BASELINE, false},      {JPEG_CMYK, JPEG_BASELINE, false},
               {JPEG_YCCK, JPEG_BASELINE, false}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    scoped_file file = make_file(kinds[i].space, kinds[i].coding, NULL, 0);
    if (file.bytes) assert_int_equal(is_kept(file.bytes, file.size), kinds[i].kept);
  }
}

TEST(test_other_wishes) {
  scoped_file file = make_file(JPEG_YCBCR, JPEG_BASELINE, NULL, 0);
  hs_source image;
  hs_load_options o = {.struct_size = sizeof o, .keep_encoded = 1};
  for (int i = 0; i < 4; i++) {
    o.keep_colour = i == 0;
    o.jpeg_scale = i == 1 ? 2 : 0;
    o.max_pixels = i == 2 ? 100 : 0;
    o.max_memory_bytes = i == 3 ? file.size + 10 : 0;
    const hs_status expected = i >= 2 ? HS_ERR_LIMIT : HS_OK;
    assert_int_equal(load_with(file.bytes, file.size, &o, &image), expected);
    assert_int_not_equal(image.kind, HS_SOURCE_JPEG);
    hs_source_free(&image);
  }
  /* Bytes after the end marker are ignored. */
  SCOPED_MEMORY uint8_t *longer = calloc(1, file.size + 100);
  memcpy(longer, file.bytes, file.size);
  assert_int_equal(load(longer, file.size + 100, 1, &image), HS_OK);
  assert_int_equal(image.kind, HS_SOURCE_JPEG);
  assert_int_equal(image.size, file.size + 100);
}

/* Orientation and position equal those of decoding, also from a path. The image owns the memory of the file. */
TEST(test_exif_and_memory) {
  scoped_counter counted = {0};
  const hs_allocator allocator = counted_allocator_make(&counted);
  for (uint32_t orientation = 0; orientation <= 8; orientation++) {
    const exif_field fields[] = {{IN_FIRST, TAG_ORIENTATION, FIELD_SHORT, 1, {orientation}},
                                 {IN_EXIF, 0xA405, FIELD_SHORT, 1, {35}}};
    uint8_t app1[EXIF_MAKER_BYTES];
    const size_t app1_size = exif_maker_make('M', fields, 2, app1);
    scoped_file file = make_file(JPEG_YCBCR, JPEG_BASELINE, orientation > 0 ? app1 : NULL, app1_size);
    for (int ignored = 0; ignored < 2; ignored++) {
      hs_exif kept_exif, exif;
      scoped_source kept, pixels;
      hs_load_options o = {.struct_size = sizeof o, .ignore_exif = ignored, .exif = &exif, .allocator = &allocator};
      assert_int_equal(load_with(file.bytes, file.size, &o, &pixels), HS_OK);
      o.keep_encoded = 1;
      o.exif = &kept_exif;
      assert_int_equal(load_with(file.bytes, file.size, &o, &kept), HS_OK);
      assert_int_equal(kept.kind, HS_SOURCE_JPEG);
      assert_int_equal(kept.image.width, pixels.image.width);
      assert_int_equal(kept.image.height, pixels.image.height);
      assert_int_equal(kept.image.exif_orientation, pixels.image.exif_orientation);
      assert_memory_equal(&kept_exif, &exif, sizeof exif);
    }
  }
}

#else

SKIPPED_PROGRAM("built without libjpeg")

#endif
