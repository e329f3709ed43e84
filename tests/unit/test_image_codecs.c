/*
 * TIFF, WebP and BMP: stored files of every kind equal PNG and PNM files with the same samples; orientations, EXIF,
 * limits, every failing allocation, and files truncated and changed anywhere.
 */
#include "tests/support/test.h"

#include "pipeline/base/number_tools.h"
#include "pipeline/image_io/image_io.h"
#include "tests/support/exif_maker.h"

enum { MESSAGE_BYTES = 400 };

static image_file read_kept(const char *name) {
  char path[1024];
  image_file file = {malloc(1 << 16), 0};
  assert_non_null(file.bytes);
  snprintf(path, sizeof path, "%s/tests/data/images/%s", HARTSIFT_SOURCE_DIR, name);
  FILE *stream = fopen(path, "rb");
  assert_non_null(stream);
  file.size = fread(file.bytes, 1, 1 << 16, stream);
  fclose(stream);
  return file;
}

/* Returns whether this build reads a stored file. */
static bool has_library(const char *name) {
  return !((strncmp(name, "tiff", 4) == 0 && !HARTSIFT_HAVE_TIFF) ||
           (strncmp(name, "webp", 4) == 0 && !HARTSIFT_HAVE_WEBP) ||
           (strncmp(name, "png", 3) == 0 && !HARTSIFT_HAVE_PNG));
}

static hs_status load(const image_file *file, hs_load_options options, hs_image *image) {
  char message[MESSAGE_BYTES] = "";
  options.struct_size = sizeof options;
  options.message = message;
  options.message_bytes = sizeof message;
  const hs_status status = hs_load_image_memory(file->bytes, file->size, &options, image);
  if ((status == HS_OK) != (message[0] == '\0') || (status != HS_OK && image->data))
    fail_msg("status %s with message '%s'", hs_status_name(status), message);
  return status;
}

static hs_image load_kept(const char *name, hs_load_options options) {
  scoped_file file = read_kept(name);
  hs_image image;
  const hs_status status = load(&file, options, &image);
  if (status != HS_OK) fail_msg("%s: %s", name, hs_status_name(status));
  return image;
}

static void check_same(const char *name, const hs_image *a, const hs_image *b) {
  if (a->width != b->width || a->height != b->height || a->type != b->type || a->layout != b->layout ||
      a->stride_bytes != b->stride_bytes || memcmp(a->data, b->data, a->stride_bytes * (size_t)a->height) != 0)
    fail_msg("%s has other pixels than its twin", name);
}

/* ------------------------------------------------------------------ pixels */

TEST(twins_are_equal) {
  static const char *const twins[][2] = {{"tiff_gray1.tif", "png_gray1.png"},
                                         {"tiff_gray2.tif", "png_gray2.png"},
                                         {"tiff_gray4.tif", "png_gray4.png"},
                                         {"tiff_gray8.tif", "pnm_p5.pgm"},
                                         {"tiff_gray16.tif", "pnm_p5_16.pgm"},
                                         {"tiff_white.tif", "pnm_p5.pgm"},
                                         {"tiff_palette1.tif", "png_palette1.png"},
                                         {"tiff_palette2.tif", "png_palette2.png"},
                                         {"tiff_palette4.tif", "png_palette4.png"},
                                         {"tiff_palette8.tif", "png_palette8.png"},
                                         {"tiff_rgb8_little.tif", "pnm_p6.ppm"},
                                         {"tiff_rgb8_big.tif", "pnm_p6.ppm"},
                                         {"tiff_planes8.tif", "pnm_p6.ppm"},
                                         {"tiff_tiles8.tif", "pnm_p6.ppm"},
                                         {"tiff_tiled_planes8.tif", "pnm_p6.ppm"},
                                         {"tiff_packbits.tif", "pnm_p6.ppm"},
                                         {"tiff_deflate.tif", "pnm_p6.ppm"},
                                         {"tiff_lzw.tif", "pnm_p6.ppm"},
                                         {"tiff_rgb16_little.tif", "pnm_p6_16.ppm"},
                                         {"tiff_rgb16_big.tif", "pnm_p6_16.ppm"},
                                         {"tiff_planes16.tif", "pnm_p6_16.ppm"},
                                         {"tiff_tiles16.tif", "pnm_p6_16.ppm"},
                                         {"tiff_tiled_planes16.tif", "pnm_p6_16.ppm"},
                                         {"tiff_rgba8.tif", "png_rgba8.png"},
                                         {"tiff_graya8.tif", "png_graya8.png"},
                                         {"tiff_graya8_planes.tif", "png_graya8.png"},
                                         {"webp_lossless.webp", "pnm_p6.ppm"},
                                         {"webp_alpha.webp", "pnm_p6.ppm"},
                                         {"bmp_palette1.bmp", "png_palette1.png"},
                                         {"bmp_palette4.bmp", "png_palette4.png"},
                                         {"bmp_palette8.bmp", "png_palette8.png"},
                                         {"bmp_core.bmp", "png_palette8.png"},
                                         {"bmp_24.bmp", "pnm_p6.ppm"},
                                         {"bmp_24_top.bmp", "pnm_p6.ppm"},
                                         {"bmp_32.bmp", "pnm_p6.ppm"},
                                         {"bmp_32_masks.bmp", "pnm_p6.ppm"},
                                         {"bmp_32_v5.bmp", "pnm_p6.ppm"}};
  for (size_t i = 0; i < sizeof twins / sizeof twins[0]; i++)
    for (int colour = 0; colour < 2; colour++) {
      if (!has_library(twins[i][0]) || !has_library(twins[i][1])) continue;
      const hs_load_options options = {.keep_colour = colour};
      scoped_image a = load_kept(twins[i][0], options), b = load_kept(twins[i][1], options);
      check_same(twins[i][0], &a, &b);
    }
}

/* Five and six bits per channel become eight by v * 255 / max, rounded. */
TEST(masks_are_scaled) {
  static const struct {
    const char *name;
    unsigned bits[3];
  } kinds[] = {{"bmp_565.bmp", {5, 6, 5}}, {"bmp_555.bmp", {5, 5, 5}}};
  scoped_image full = load_kept("bmp_24.bmp", (hs_load_options){.keep_colour = 1});
  for (size_t n = 0; n < 2; n++) {
    scoped_image image = load_kept(kinds[n].name, (hs_load_options){.keep_colour = 1});
    for (size_t i = 0; i < (size_t)image.width * (size_t)image.height * 3; i++) {
      const unsigned bits = kinds[n].bits[i % 3], most = (1u << bits) - 1u;
      const unsigned value = ((const uint8_t *)full.data)[i] >> (8 - bits);
      assert_int_equal(((const uint8_t *)image.data)[i], (2 * 255 * value + most) / (2 * most));
    }
  }
}

/* Compares with the stored picture, which the test rotates. */
static void check_turned(const char *name, const hs_image *stored, int orientation, int32_t ignore) {
  const hs_load_options options = {.ignore_exif = ignore};
  scoped_image image = load_kept(name, options);
  uint8_t expected[24 * 16];
  const exif_placement place = exif_place(ignore ? 1 : orientation, 24, 16);
  for (int32_t y = 0; y < 16; y++)
    exif_put_row(&place, y, (const uint8_t *)stored->data + (size_t)y * 24, 24, 1, expected);
  assert_int_equal(image.width, place.width);
  assert_int_equal(image.height, place.height);
  assert_memory_equal(image.data, expected, sizeof expected);
  assert_int_equal(image.exif_orientation, ignore || orientation == 1 ? 0 : orientation);
}

TEST(orientations_are_applied) {
  static const char *const patterns[] = {"tiff_turned%d.tif", "webp_exif%d.webp"};
  for (size_t n = 0; n < 2; n++) {
    char name[64];
    snprintf(name, sizeof name, patterns[n], 1);
    if (!has_library(name)) continue;
    scoped_image stored = load_kept(name, (hs_load_options){0});
    for (int orientation = 1; orientation <= 8; orientation++) {
      snprintf(name, sizeof name, patterns[n], orientation);
      check_turned(name, &stored, orientation, 0);
      check_turned(name, &stored, orientation, 1);
    }
  }
}

/* The EXIF chunk of a WebP has a GPS position and a focal length. */
TEST(exif_is_told) {
#if HARTSIFT_HAVE_WEBP
  static const exif_field fields[] = {{IN_EXIF, 0xA405, FIELD_SHORT, 1, {28}},
                                      {IN_GPS, 1, FIELD_ASCII, 2, {'S'}},
                                      {IN_GPS, 2, FIELD_RATIONAL, 3, {33, 1, 30, 1, 0, 1}},
                                      {IN_GPS, 3, FIELD_ASCII, 2, {'E'}},
                                      {IN_GPS, 4, FIELD_RATIONAL, 3, {70, 1, 0, 1, 0, 1}}};
  uint8_t segment[EXIF_MAKER_BYTES];
  const size_t bytes = exif_maker_make('M', fields, sizeof fields / sizeof fields[0], segment);
  image_file file = read_kept("webp_exif1.webp");
  size_t at = 12; /* position of the first chunk; the EXIF chunk is the last */
  while (memcmp(file.bytes + at, "EXIF", 4) != 0)
    at += 8 + ((size_t)(file.bytes[at + 4] | file.bytes[at + 5] << 8) + 1) / 2 * 2;
  memcpy(file.bytes + at + 8, segment, bytes);
  file.bytes[at + 4] = (uint8_t)bytes;
  file.bytes[at + 5] = (uint8_t)(bytes >> 8);
  file.size = at + 8 + (bytes + 1) / 2 * 2;
  file.bytes[4] = (uint8_t)(file.size - 8);
  file.bytes[5] = (uint8_t)((file.size - 8) >> 8);
  hs_exif exif;
  hs_image image;
  assert_int_equal(load(&file, (hs_load_options){.exif = &exif}, &image), HS_OK);
  assert_true(exif.has_place == 1 && exif.latitude == -33.5 && exif.longitude == 70.0);
  assert_true(exif.focal_length > 28.0 / 43.27 * 28.8 && exif.focal_length < 28.0 / 43.27 * 28.9);
  hs_image_free(&image);
  image_file_free(&file);
#endif
#if HARTSIFT_HAVE_TIFF
  hs_exif of_tiff = {.latitude = 5.0};
  hs_image tiff = load_kept("tiff_turned6.tif", (hs_load_options){.exif = &of_tiff});
  assert_true(of_tiff.has_place == 0 && of_tiff.latitude == 0.0 && tiff.exif_orientation == 6);
  hs_image_free(&tiff);
#endif
}

/* ------------------------------------------------------------------ limits and faults */

static const char *const samples[] = {"tiff_rgb8_little.tif", "tiff_tiled_planes16.tif",
                                      "tiff_deflate.tif",     "tiff_lzw.tif",
                                      "tiff_palette4.tif",    "webp_lossless.webp",
                                      "webp_lossy.webp",      "webp_exif6.webp",
                                      "bmp_palette4.bmp",     "bmp_24.bmp",
                                      "bmp_565.bmp",          "bmp_32_v5.bmp"};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

TEST(limits_are_kept) {
  for (size_t i = 0; i < SAMPLES; i++) {
    if (!has_library(samples[i])) continue;
    scoped_file file = read_kept(samples[i]);
    hs_image image;
    const uint64_t pixels = strcmp(samples[i], "webp_exif6.webp") == 0 ? 24 * 16 : 21 * 13;
    assert_int_equal(load(&file, (hs_load_options){.max_pixels = pixels - 1}, &image), HS_ERR_LIMIT);
    assert_int_equal(load(&file, (hs_load_options){.max_memory_bytes = file.size + 200}, &image), HS_ERR_LIMIT);
    assert_int_equal(load(&file, (hs_load_options){.max_pixels = pixels, .max_memory_bytes = 4 << 20}, &image), HS_OK);
    hs_image_free(&image);
    assert_int_equal(load(&file, (hs_load_options){.jpeg_scale = 2}, &image), HS_ERR_UNSUPPORTED);
  }
}

TEST(allocations_may_fail) {
  for (size_t i = 0; i < SAMPLES; i++) {
    if (!has_library(samples[i])) continue;
    scoped_file file = read_kept(samples[i]);
    counted_allocator counted = {0};
    const hs_allocator allocator = counted_allocator_make(&counted);
    hs_status status = HS_ERR_MEMORY;
    hs_image image;
    for (size_t n = 1; status != HS_OK; n++) {
      counted.fail_at = counted.made + n;
      status = load(&file, (hs_load_options){.allocator = &allocator}, &image);
      assert_true(status == HS_OK || status == HS_ERR_MEMORY);
      assert_int_equal(counted.alive, status == HS_OK);
    }
    hs_image_free(&image);
    assert_int_equal(counted.alive, 0);
  }
}

/* A changed file is read, or refused with a reason, within its limits. A sanitizer detects any read beyond its end. */
static void try_mutant(const uint8_t *bytes, size_t size) {
  scoped_file exact = {malloc(size > 0 ? size : 1), size};
  assert_non_null(exact.bytes);
  memcpy(exact.bytes, bytes, size);
  for (int colour = 0; colour < 2; colour++) {
    scoped_image image;
    const hs_status status = load(
        &exact, (hs_load_options){.max_pixels = 1 << 16, .max_memory_bytes = 8 << 20, .keep_colour = colour}, &image);
    assert_true(status == HS_OK || status == HS_ERR_FORMAT || status == HS_ERR_LIMIT || status == HS_ERR_UNSUPPORTED ||
                status == HS_ERR_MEMORY);
    if (status == HS_OK) assert_true((uint64_t)image.width * (uint64_t)image.height <= 1 << 16);
  }
}

static uint64_t next_random(uint64_t *seed) {
  *seed += SPLITMIX64_STEP;
  return splitmix64_mix(*seed);
}

enum { MUTANTS = 1500 };

TEST(mutants_are_read_or_refused) {
  static const uint8_t extremes[] = {0, 1, 0x7F, 0x80, 0xFF, 3};
  uint64_t seed = 11;
  for (size_t i = 0; i < SAMPLES; i++) {
    if (!has_library(samples[i])) continue;
    scoped_file file = read_kept(samples[i]);
    SCOPED_MEMORY uint8_t *mutant = malloc(file.size);
    assert_non_null(mutant);
    for (size_t cut = 0; cut < file.size; cut += 1 + cut / 64) try_mutant(file.bytes, cut);
    for (int n = 0; n < MUTANTS; n++) {
      memcpy(mutant, file.bytes, file.size);
      for (uint64_t changes = 1 + next_random(&seed) % 3; changes > 0; changes--) {
        const uint64_t random = next_random(&seed);
        mutant[random % file.size] =
            random >> 60 < 8 ? extremes[(random >> 40) % sizeof extremes] : (uint8_t)(random >> 32);
      }
      try_mutant(mutant, file.size);
    }
  }
}

/* A file that begins with the letters BM is not always a BMP. */
TEST(beginnings_are_told_apart) {
  static const char text[] = "BMW and others are makers of cars, not of pictures";
  const image_file file = {(uint8_t *)(uintptr_t)text, sizeof text};
  hs_image image;
  assert_int_equal(load(&file, (hs_load_options){0}, &image), HS_ERR_FORMAT);
}
