/*
 * JPEG files of every colour space and coding, compared with libjpeg's own planes and with each other; files truncated
 * anywhere; EXIF orientations of an asymmetric picture.
 */
#include "tests/support/test.h"

#include "pipeline/image_io/image_io.h"
#include "tests/support/exif_maker.h"

enum { WIDTH = 43, HEIGHT = 29 };

/* EXIF defines the sides of the picture at the stored row 0 and column 0. */
TEST(test_exif_placement) {
  enum { W = 3, H = 2 };
  /* The stored picture is 0 1 2 / 3 4 5. */
  static const uint8_t seen[9][W * H] = {{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3},
                                         {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2}, {0, 3, 1, 4, 2, 5},
                                         {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  for (int orientation = 0; orientation <= 9; orientation++) {
    const int known = orientation <= 8 ? orientation : 1;
    const exif_placement placement = exif_place(orientation, W, H);
    assert_int_equal(placement.width, known >= 5 ? H : W);
    assert_int_equal(placement.height, known >= 5 ? W : H);
    for (size_t pixel_bytes = 1; pixel_bytes <= 3; pixel_bytes += 2) {
      uint8_t picture[W * H * 3], row[W * 3];
      memset(picture, 0xEE, sizeof picture);
      for (int32_t y = 0; y < H; y++) {
        for (size_t i = 0; i < W * pixel_bytes; i++)
          row[i] = (uint8_t)((size_t)y * W + i / pixel_bytes + 16 * (i % pixel_bytes));
        exif_put_row(&placement, y, row, W, pixel_bytes, picture);
      }
      for (size_t i = 0; i < W * H * pixel_bytes; i++)
        assert_int_equal(picture[i], seen[known][i / pixel_bytes] + 16 * (i % pixel_bytes));
    }
  }
}

#if HARTSIFT_HAVE_JPEG

/* Fills in samples that are smooth in every channel, so that coding preserves them, and asymmetric. */
static void fill_samples(uint8_t *samples, size_t channels, int32_t width, int32_t height) {
  for (int32_t y = 0; y < height; y++) {
    for (int32_t x = 0; x < width; x++)
      for (size_t c = 0; c < channels; c++)
        *samples++ = (uint8_t)(20 + 2 * x * (int32_t)(c + 1) / 3 + y * (5 - (int32_t)c));
  }
}

static image_file make_jpeg(jpeg_space space, jpeg_coding coding, int luma_sampling) {
  static uint8_t samples[WIDTH * HEIGHT * 4];
  const jpeg_spec spec = {.space = space,
                          .coding = coding,
                          .quality = 92,
                          .luma_sampling = luma_sampling,
                          .restart_rows = coding == JPEG_BASELINE ? 1 : 0,
                          .width = WIDTH,
                          .height = HEIGHT};
  fill_samples(samples, jpeg_spec_channels(&spec), WIDTH, HEIGHT);
  return jpeg_spec_make(&spec, samples);
}

static void load(const image_file *file, int keep_colour, hs_image *image) {
  const hs_load_options options = {.struct_size = sizeof options, .keep_colour = keep_colour};
  assert_int_equal(hs_load_image_memory(file->bytes, file->size, &options, image), HS_OK);
  assert_int_equal(image->type, HS_U8);
}

TEST(test_luma_is_taken_as_stored) {
  for (jpeg_space space = JPEG_GRAY; space <= JPEG_YCBCR; space++) {
    for (jpeg_coding coding = JPEG_BASELINE; coding <= JPEG_ARITHMETIC; coding++) {
      for (int sampling = 1; sampling <= 2; sampling++) {
        image_file file = make_jpeg(space, coding, sampling);
        if (!file.bytes) continue; /* libjpeg was built without arithmetic coding */
        scoped_image image;
        load(&file, 0, &image);
        SCOPED_MEMORY uint8_t *luma = jpeg_luma_by_library(&file);
        assert_int_equal(image.width, WIDTH);
        assert_int_equal(image.height, HEIGHT);
        assert_int_equal(image.layout, HS_GRAY);
        assert_memory_equal(image.data, luma, WIDTH * HEIGHT);
        image_file_free(&file);
      }
    }
  }
}

/* Colour equals the input within the coding loss. Gray is computed from this colour by the formula, exactly. */
TEST(test_rgb_coded) {
  static uint8_t samples[WIDTH * HEIGHT * 3];
  fill_samples(samples, 3, WIDTH, HEIGHT);
  for (jpeg_space space = JPEG_YCBCR; space <= JPEG_RGB; space++) {
    scoped_file file = make_jpeg(space, JPEG_BASELINE, 1);
    scoped_image gray, colour;
    load(&file, 0, &gray);
    load(&file, 1, &colour);
    assert_int_equal(gray.layout, HS_GRAY);
    assert_int_equal(colour.layout, HS_RGB);
    const uint8_t *rgb = colour.data, *light = gray.data;
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
      for (size_t c = 0; c < 3; c++) assert_true(abs(rgb[3 * i + c] - samples[3 * i + c]) <= 12);
      const int formula = (int)image_maker_gray(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
      assert_true(abs(light[i] - formula) <= (space == JPEG_RGB ? 0 : 3));
    }
  }
}

/* Covers one flat colour in every representation of CMYK. */
TEST(test_cmyk) {
  static const uint8_t ink[4] = {30, 200, 90, 60};
  static uint8_t samples[16 * 16 * 4];
  for (jpeg_space space = JPEG_CMYK; space <= JPEG_YCCK; space++) {
    /* Adobe's files store 255 - ink. */
    const int flip = space == JPEG_CMYK_PLAIN ? 0 : 255;
    for (size_t i = 0; i < sizeof samples; i++) samples[i] = (uint8_t)(ink[i % 4] ^ flip);
    const jpeg_spec spec = {.space = space, .quality = 100, .luma_sampling = 1, .width = 16, .height = 16};
    scoped_file file = jpeg_spec_make(&spec, samples);
    scoped_image gray, colour;
    load(&file, 0, &gray);
    load(&file, 1, &colour);
    const uint8_t *rgb = colour.data;
    for (size_t c = 0; c < 3; c++) assert_true(abs(rgb[c] - (255 - ink[c]) * (255 - ink[3]) / 255) <= 3);
    for (size_t i = 0; i < 16 * 16; i++) {
      const uint32_t formula = image_maker_gray(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
      assert_int_equal(((const uint8_t *)gray.data)[i], formula);
    }
  }
}

/* A file cut anywhere gives an error or the whole picture, never a picture that is gray in part. */
TEST(test_every_cut) {
  size_t accepted = 0;
  for (jpeg_coding coding = JPEG_BASELINE; coding <= JPEG_ARITHMETIC; coding++) {
    image_file file = make_jpeg(JPEG_YCBCR, coding, 2);
    if (!file.bytes) continue;
    scoped_image whole;
    load(&file, 0, &whole);
    for (size_t size = 0; size < file.size; size++) {
      uint8_t *part = malloc(size + 1); /* one byte more than the file: the reader must not read it */
      assert_non_null(part);
      memcpy(part, file.bytes, size);
      scoped_image image;
      const hs_status status = hs_load_image_memory(part, size, NULL, &image);
      free(part);
      if (status == HS_OK) {
        assert_true(size + 8 >= file.size);
        assert_memory_equal(image.data, whole.data, WIDTH * HEIGHT);
        accepted++;
      } else {
        assert_int_equal(status, HS_ERR_FORMAT);
        assert_null(image.data);
      }
    }
    image_file_free(&file);
  }
  assert_true(accepted >= 2); /* files that only lack the end marker are read */
}

TEST(test_orientation_is_applied) {
  static uint8_t samples[WIDTH * HEIGHT * 3];
  uint8_t exif[EXIF_MAKER_BYTES];
  for (uint32_t orientation = 1; orientation <= 8; orientation++) {
    const size_t exif_size = exif_maker_make(
        "MI" [orientation % 2],
        &(exif_field) {
          IN_FIRST, 0x0112, FIELD_SHORT, 1, { orientation }
        },
        1, exif);
    const jpeg_spec spec = {.space = JPEG_YCBCR,
                            .quality = 90,
                            .luma_sampling = 1,
                            .width = WIDTH,
                            .height = HEIGHT,
                            .app1 = exif,
                            .app1_size = exif_size};
    fill_samples(samples, 3, WIDTH, HEIGHT);
    scoped_file file = jpeg_spec_make(&spec, samples);
    for (int keep_colour = 0; keep_colour < 2; keep_colour++) {
      const hs_load_options as_stored = {.struct_size = sizeof as_stored, .ignore_exif = 1, .keep_colour = keep_colour};
      scoped_image stored, seen;
      assert_int_equal(hs_load_image_memory(file.bytes, file.size, &as_stored, &stored), HS_OK);
      load(&file, keep_colour, &seen);
      assert_int_equal(stored.width, WIDTH);
      assert_int_equal(seen.width, orientation >= 5 ? HEIGHT : WIDTH);
      assert_int_equal(seen.height, orientation >= 5 ? WIDTH : HEIGHT);
      assert_int_equal(seen.exif_orientation, orientation > 1 ? orientation : 0);
      assert_int_equal(stored.exif_orientation, 0);
      const size_t pixel_bytes = keep_colour ? 3 : 1;
      const exif_placement place = exif_place((int)orientation, WIDTH, HEIGHT);
      for (ptrdiff_t i = 0; i < WIDTH * HEIGHT; i++) {
        const ptrdiff_t target = place.start + i % WIDTH * place.step_x + i / WIDTH * place.step_y;
        assert_memory_equal((const uint8_t *)seen.data + (size_t)target * pixel_bytes,
                            (const uint8_t *)stored.data + (size_t)i * pixel_bytes, pixel_bytes);
      }
    }
  }
}

/* libjpeg's own memory comes from the caller's allocator and is returned to it. */
TEST(test_every_allocation_fails_once) {
  scoped_file file = make_jpeg(JPEG_YCBCR, JPEG_PROGRESSIVE, 2);
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  const hs_load_options options = {.struct_size = sizeof options, .allocator = &allocator};
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

/* A progressive file needs memory for all coefficients at once, which is more than the picture. */
TEST(test_memory_limit) {
  static uint8_t samples[640 * 480 * 3];
  const jpeg_spec spec = {
      .space = JPEG_YCBCR, .coding = JPEG_PROGRESSIVE, .quality = 80, .luma_sampling = 1, .width = 640, .height = 480};
  fill_samples(samples, 3, 640, 480);
  scoped_file file = jpeg_spec_make(&spec, samples);
  hs_load_options options = {.struct_size = sizeof options};
  scoped_image image;
  options.max_memory_bytes = 640 * 480 * 6;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_ERR_LIMIT);
  options.max_memory_bytes = 640 * 480 * 9;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_OK);
}

/* These sampling factors do not divide each other: for a picture 8 pixels wide libjpeg stores four blocks per row. */
TEST(test_memory_of_whole_mcus) {
  static uint8_t samples[8 * 640];
  const jpeg_spec spec = {
      .space = JPEG_GRAY, .coding = JPEG_PROGRESSIVE, .quality = 80, .luma_sampling = 1, .width = 8, .height = 640};
  fill_samples(samples, 1, 8, 640);
  scoped_file file = jpeg_spec_make(&spec, samples);
  uint8_t *frame = NULL;
  for (size_t i = 0; !frame && i + 12 < file.size; i++)
    if (file.bytes[i] == 0xFF && file.bytes[i + 1] == 0xC2) frame = file.bytes + i;
  assert_non_null(frame);
  frame[11] = 0x41; /* sampling factors 4 x 1 */
  hs_image image;
  hs_load_options options = {.struct_size = sizeof options};
  options.max_memory_bytes = file.size + 8 * 640 + (256 << 10) + 4 * 8 + 8 * 64 + 80 * 4 * 128;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_OK);
  hs_image_free(&image);
  options.max_memory_bytes--;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_ERR_LIMIT);
}

#else

/* Without libjpeg the reader returns an error that says so. */
TEST(test_unsupported) {
  static const uint8_t start[4] = {0xFF, 0xD8, 0xFF, 0xE0};
  char message[200];
  hs_load_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  hs_image image;
  assert_int_equal(hs_load_image_memory(start, sizeof start, &options, &image), HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(message, "without JPEG"));
}

#endif
