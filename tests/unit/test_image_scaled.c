/*
 * hs_load_options.jpeg_scale: JPEG files decoded at 1/2, 1/4 and 1/8, byte for byte equal to libjpeg called directly;
 * orientations, limits and truncated files at these sizes; refusals.
 */
#include <limits.h>

#include "tests/support/test.h"

#include "pipeline/image_io/image_io.h"

static const char tiny_pgm[] = "P5 3 2 255\nabcdef";

/* ---- refusals, independent of libraries */

TEST(test_values_out_of_range) {
  static const int32_t wrong[] = {-1, 3, 5, 6, 7, 9, 16, INT32_MIN, INT32_MAX};
  char message[200];
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    const hs_load_options options = {
        .struct_size = sizeof options, .message = message, .message_bytes = sizeof message, .jpeg_scale = wrong[i]};
    char expected[40];
    hs_image image = {.width = 9};
    snprintf(expected, sizeof expected, "jpeg_scale is %ld,", (long)wrong[i]);
    assert_int_equal(hs_load_image_memory(tiny_pgm, sizeof tiny_pgm - 1, &options, &image), HS_ERR_OPTION);
    assert_non_null(strstr(message, expected));
    assert_int_equal(image.width, 0);
    assert_int_equal(hs_load_image("@scene:8x8", &options, &image), HS_ERR_OPTION);
    assert_non_null(strstr(message, expected));
  }
}

static void assert_only_full_size(const void *bytes, size_t size, const char *kind) {
  for (int32_t scale = 0; scale <= 8; scale = scale == 0 ? 1 : 2 * scale) {
    char message[200];
    const hs_load_options options = {
        .struct_size = sizeof options, .message = message, .message_bytes = sizeof message, .jpeg_scale = scale};
    scoped_image image;
    const hs_status status =
        !bytes ? hs_load_image("@scene:8x8", &options, &image) : hs_load_image_memory(bytes, size, &options, &image);
    assert_int_equal(status, scale <= 1 ? HS_OK : HS_ERR_UNSUPPORTED);
    assert_true(scale <= 1 ? message[0] == '\0' && image.data != NULL : strstr(message, kind) != NULL && !image.data);
  }
}

TEST(test_other_images_are_refused) {
  assert_only_full_size(tiny_pgm, sizeof tiny_pgm - 1, "a PNM");
  assert_only_full_size(NULL, 0, "a scene");
#if HARTSIFT_HAVE_PNG
  const png_spec spec = {.colour_type = 2, .depth = 8, .width = 5, .height = 4};
  image_file png = png_spec_make(&spec);
  assert_only_full_size(png.bytes, png.size, "a PNG");
  image_file_free(&png);
#endif
  const hs_load_options options = {.struct_size = sizeof options, .jpeg_scale = 4};
  hs_image image;
  assert_int_equal(hs_load_image_memory("garbage", 7, &options, &image), HS_ERR_FORMAT);
}

/* A program whose header lacks the field: the field is not read. */
TEST(test_struct_without_the_field) {
  hs_load_options options = {.struct_size = offsetof(hs_load_options, jpeg_scale), .jpeg_scale = 77};
  hs_image image;
  assert_int_equal(hs_load_image_memory(tiny_pgm, sizeof tiny_pgm - 1, &options, &image), HS_OK);
  hs_image_free(&image);
  options.struct_size = sizeof options;
  assert_int_equal(hs_load_image_memory(tiny_pgm, sizeof tiny_pgm - 1, &options, &image), HS_ERR_OPTION);
}

#if HARTSIFT_HAVE_JPEG

static int32_t scaled(int32_t side, int32_t scale) { return (side + scale - 1) / scale; }

/* Makes a picture with texture in all channels, so that a reduced transform differs from plain decimation. */
static image_file make_jpeg(jpeg_space space, jpeg_coding coding, int sampling, int32_t width, int32_t height) {
  const jpeg_spec spec = {
      .space = space, .coding = coding, .quality = 90, .luma_sampling = sampling, .width = width, .height = height};
  const size_t count = (size_t)width * (size_t)height * jpeg_spec_channels(&spec);
  SCOPED_MEMORY uint8_t *samples = malloc(count);
  assert_non_null(samples);
  uint32_t random = 7;
  for (size_t i = 0; i < count; i++) {
    random = random * 1664525u + 1013904223u;
    samples[i] = (uint8_t)(60 + i * 3 % 90 + (random >> 24) % 90);
  }
  image_file file = jpeg_spec_make(&spec, samples);
  return file;
}

static void assert_scales_are_libjpegs(const image_file *file, int32_t width, int32_t height, int colour) {
  for (int32_t scale = 0; scale <= 8; scale = scale == 0 ? 1 : 2 * scale) {
    const hs_load_options options = {.struct_size = sizeof options, .keep_colour = colour, .jpeg_scale = scale};
    const int32_t divisor = scale == 0 ? 1 : scale;
    int32_t library_width = 0, library_height = 0;
    scoped_image image;
    assert_int_equal(hs_load_image_memory(file->bytes, file->size, &options, &image), HS_OK);
    const size_t channels = image.layout == HS_RGB ? 3 : 1;
    SCOPED_MEMORY uint8_t *expected =
        jpeg_scaled_by_library(file, divisor, channels == 3, &library_width, &library_height);
    assert_int_equal(image.width, scaled(width, divisor));
    assert_int_equal(image.height, scaled(height, divisor));
    assert_int_equal(image.width, library_width);
    assert_int_equal(image.height, library_height);
    assert_memory_equal(image.data, expected, (size_t)image.width * (size_t)image.height * channels);
  }
}

TEST(test_pixels_are_libjpegs) {
  static const int32_t sizes[][2] = {{15, 17}, {1, 1}, {16, 8}, {9, 1}, {1, 33}, {70, 41}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (jpeg_coding coding = JPEG_BASELINE; coding <= JPEG_ARITHMETIC; coding++) {
      for (jpeg_space space = JPEG_GRAY; space <= JPEG_RGB; space++) {
        for (int sampling = 1; sampling <= 2; sampling++) {
          image_file file = make_jpeg(space, coding, sampling, sizes[i][0], sizes[i][1]);
          if (!file.bytes) continue; /* libjpeg was built without arithmetic coding */
          if (space != JPEG_RGB) assert_scales_are_libjpegs(&file, sizes[i][0], sizes[i][1], 0);
          assert_scales_are_libjpegs(&file, sizes[i][0], sizes[i][1], 1);
          image_file_free(&file);
        }
      }
    }
  }
}

/* libjpeg cannot convert these files to gray, so gray is computed by the formula from the colours at the same scale. */
TEST(test_gray_of_rgb_and_cmyk) {
  for (jpeg_space space = JPEG_RGB; space <= JPEG_YCCK; space++) {
    scoped_file file = make_jpeg(space, JPEG_PROGRESSIVE, 1, 43, 29);
    for (int32_t scale = 2; scale <= 8; scale *= 2) {
      hs_load_options options = {.struct_size = sizeof options, .jpeg_scale = scale};
      scoped_image gray, colour;
      assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &gray), HS_OK);
      options.keep_colour = 1;
      assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &colour), HS_OK);
      assert_int_equal(gray.width, scaled(43, scale));
      assert_int_equal(gray.height, scaled(29, scale));
      const uint8_t *rgb = colour.data, *light = gray.data;
      for (size_t i = 0; i < (size_t)gray.width * (size_t)gray.height; i++)
        assert_int_equal(light[i], image_maker_gray(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]));
    }
  }
}

/* Decoded rows are rotated, not stored ones. Sizes that N does not divide show the difference. */
TEST(test_orientation) {
  enum { W = 15, H = 17 };
  uint8_t exif[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x01\0";
  uint8_t samples[W * H * 3];
  for (size_t i = 0; i < sizeof samples; i++) samples[i] = (uint8_t)(30 + i % (W * 3) * 2 + i / (W * 3) * 5);
  for (int orientation = 1; orientation <= 8; orientation++) {
    exif[25] = (uint8_t)orientation;
    const jpeg_spec spec = {.space = JPEG_YCBCR,
                            .quality = 90,
                            .luma_sampling = 2,
                            .width = W,
                            .height = H,
                            .app1 = exif,
                            .app1_size = sizeof exif};
    scoped_file file = jpeg_spec_make(&spec, samples);
    for (int32_t scale = 1; scale <= 8; scale *= 2) {
      const hs_load_options options = {.struct_size = sizeof options, .jpeg_scale = scale};
      scoped_image seen;
      int32_t width = 0, height = 0;
      SCOPED_MEMORY uint8_t *stored = jpeg_scaled_by_library(&file, scale, false, &width, &height);
      assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &seen), HS_OK);
      assert_int_equal(seen.width, scaled(orientation >= 5 ? H : W, scale));
      assert_int_equal(seen.height, scaled(orientation >= 5 ? W : H, scale));
      const exif_placement place = exif_place(orientation, width, height);
      for (ptrdiff_t i = 0; i < (ptrdiff_t)width * height; i++) {
        const ptrdiff_t target = place.start + i % width * place.step_x + i / width * place.step_y;
        assert_int_equal(((const uint8_t *)seen.data)[target], stored[i]);
      }
    }
  }
}

/* Limits count decoded pixels. A progressive file needs memory for all coefficients at any scale. */
TEST(test_limits) {
  hs_load_options options = {.struct_size = sizeof options, .jpeg_scale = 4, .max_pixels = 11 * 8};
  hs_image image;
  image_file file = make_jpeg(JPEG_YCBCR, JPEG_BASELINE, 2, 43, 29);
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_OK);
  hs_image_free(&image);
  options.max_pixels--;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_ERR_LIMIT);
  options.max_pixels = 11 * 8;
  options.jpeg_scale = 2;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_ERR_LIMIT);
  image_file_free(&file);
  for (jpeg_coding coding = JPEG_BASELINE; coding <= JPEG_PROGRESSIVE; coding++) {
    file = make_jpeg(JPEG_YCBCR, coding, 1, 640, 480);
    options = (hs_load_options){.struct_size = sizeof options, .max_memory_bytes = file.size + 500000};
    assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_ERR_LIMIT);
    options.jpeg_scale = 8;
    assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image),
                     coding == JPEG_BASELINE ? HS_OK : HS_ERR_LIMIT);
    hs_image_free(&image);
    image_file_free(&file);
  }
}

/* Missing data is an error at 1/8 too, although most coefficients are not used. */
TEST(test_every_cut) {
  const hs_load_options options = {.struct_size = sizeof options, .jpeg_scale = 8};
  for (jpeg_coding coding = JPEG_BASELINE; coding <= JPEG_PROGRESSIVE; coding++) {
    scoped_file file = make_jpeg(JPEG_YCBCR, coding, 2, 40, 24);
    for (size_t size = 0; size <= file.size; size++) {
      uint8_t *part = malloc(size + 1); /* one byte more than the file: the reader must not read it */
      assert_non_null(part);
      memcpy(part, file.bytes, size);
      scoped_image image;
      const hs_status status = hs_load_image_memory(part, size, &options, &image);
      free(part);
      assert_int_equal(status, size + 8 >= file.size && status == HS_OK ? HS_OK : HS_ERR_FORMAT);
    }
  }
}

TEST(test_every_allocation_fails_once) {
  scoped_file file = make_jpeg(JPEG_YCBCR, JPEG_PROGRESSIVE, 2, 43, 29);
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  const hs_load_options options = {.struct_size = sizeof options, .allocator = &allocator, .jpeg_scale = 2};
  hs_status status = HS_ERR_MEMORY;
  size_t fail_at = 0;
  while (status != HS_OK) {
    counter = (counted_allocator){.fail_at = ++fail_at};
    scoped_image image;
    status = hs_load_image_memory(file.bytes, file.size, &options, &image);
    assert_true(status == HS_OK || status == HS_ERR_MEMORY);
    assert_int_equal(counter.alive, status == HS_OK ? 1 : 0);
  }
  assert_int_equal(counter.alive, 0);
  assert_true(fail_at >= 3);
}

#endif
