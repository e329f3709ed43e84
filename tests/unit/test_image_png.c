/*
 * PNG files of every colour type, depth and interlacing, compared sample by sample with the expected pixels; files
 * truncated anywhere; every allocation failing.
 */
#include "tests/support/test.h"

#include "pipeline/formats/common/content_digest.h"

#if HARTSIFT_HAVE_PNG

static uint32_t sample_at(const hs_image *image, int32_t x, int32_t y, size_t channel) {
  const size_t channels = image->layout == HS_RGB ? 3 : 1;
  const size_t index = (size_t)x * channels + channel;
  const uint8_t *row = (const uint8_t *)image->data + (size_t)y * image->stride_bytes;
  if (image->type == HS_U8) return row[index];
  uint16_t value;
  memcpy(&value, row + 2 * index, sizeof value);
  return value;
}

static void assert_pixels(const png_spec *spec, const hs_image *image, int colour) {
  for (int32_t y = 0; y < spec->height; y++) {
    for (int32_t x = 0; x < spec->width; x++) {
      uint32_t expected[3];
      const int has_colour = (spec->colour_type & 2) != 0;
      for (size_t c = 0; c < 3; c++) expected[c] = png_spec_expected(spec, x, y, has_colour ? c : 0);
      if (!colour) {
        const uint32_t gray = has_colour ? image_maker_gray(expected[0], expected[1], expected[2]) : expected[0];
        assert_int_equal(sample_at(image, x, y, 0), gray);
        continue;
      }
      for (size_t c = 0; c < 3; c++) assert_int_equal(sample_at(image, x, y, c), expected[c]);
    }
  }
}

static void check_spec(const png_spec *spec) {
  scoped_file file = png_spec_make(spec);
  for (int keep_colour = 0; keep_colour < 2; keep_colour++) {
    char message[200];
    hs_load_options options = {
        .struct_size = sizeof options, .keep_colour = keep_colour, .message = message, .message_bytes = sizeof message};
    hs_image image;
    assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_OK);
    assert_string_equal(message, "");
    const int colour = keep_colour && (spec->colour_type & 2) != 0;
    assert_int_equal(image.width, spec->width);
    assert_int_equal(image.height, spec->height);
    assert_int_equal(image.type, spec->depth == 16 ? HS_U16 : HS_U8);
    assert_int_equal(image.layout, colour ? HS_RGB : HS_GRAY);
    assert_int_equal(image.stride_bytes, (size_t)spec->width * (colour ? 3 : 1) * (spec->depth == 16 ? 2 : 1));
    assert_pixels(spec, &image, colour);
    hs_image_free(&image);
    assert_null(image.data);
  }
}

TEST(test_every_kind) {
  static const struct {
    int colour_type, depth;
  } kinds[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
               {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
  static const int32_t sizes[][2] = {{1, 1}, {2, 3}, {9, 5}, {1, 8}, {7, 1}, {33, 17}};
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
      for (int variant = 0; variant < 4; variant++) {
        const png_spec spec = {.colour_type = kinds[k].colour_type,
                               .depth = kinds[k].depth,
                               .interlaced = variant & 1,
                               .transparent_value = variant >= 2 && kinds[k].colour_type < 4,
                               .width = sizes[s][0],
                               .height = sizes[s][1]};
        check_spec(&spec);
      }
    }
  }
}

/* A cut file gives an error, or is complete because only its end chunk is missing. */
TEST(test_every_cut) {
  for (int interlaced = 0; interlaced < 2; interlaced++) {
    const png_spec spec = {.colour_type = 2, .depth = 8, .interlaced = interlaced, .width = 9, .height = 7};
    scoped_file file = png_spec_make(&spec);
    for (size_t size = 0; size < file.size; size++) {
      uint8_t *part = malloc(size + 1); /* one byte more than the file: the reader must not read it */
      assert_non_null(part);
      memcpy(part, file.bytes, size);
      scoped_image image;
      const hs_status status = hs_load_image_memory(part, size, NULL, &image);
      free(part);
      if (status == HS_OK) {
        assert_true(size >= file.size - 12);
        assert_pixels(&spec, &image, 0);
      } else {
        assert_int_equal(status, HS_ERR_FORMAT);
        assert_null(image.data);
      }
    }
  }
}

/* Checksums detect any single changed byte up to the end of the pixels. */
TEST(test_every_changed_byte) {
  const png_spec spec = {.colour_type = 0, .depth = 8, .width = 9, .height = 7};
  scoped_file file = png_spec_make(&spec);
  for (size_t at = 0; at < file.size - 12; at++) {
    file.bytes[at] ^= 0x10;
    hs_image image;
    const hs_status status = hs_load_image_memory(file.bytes, file.size, NULL, &image);
    assert_int_not_equal(status, HS_OK);
    assert_null(image.data);
    file.bytes[at] ^= 0x10;
  }
}

TEST(test_every_allocation_fails_once) {
  for (int interlaced = 0; interlaced < 2; interlaced++) {
    const png_spec spec = {.colour_type = 2, .depth = 16, .interlaced = interlaced, .width = 31, .height = 12};
    scoped_file file = png_spec_make(&spec);
    counted_allocator counter = {0};
    const hs_allocator allocator = counted_allocator_make(&counter);
    char message[200];
    const hs_load_options options = {
        .struct_size = sizeof options, .allocator = &allocator, .message = message, .message_bytes = sizeof message};
    hs_status status = HS_ERR_MEMORY;
    size_t fail_at = 0;
    while (status != HS_OK) {
      counter = (counted_allocator){.fail_at = ++fail_at};
      hs_image image;
      status = hs_load_image_memory(file.bytes, file.size, &options, &image);
      if (status == HS_OK) {
        assert_int_equal(counter.alive, 1);
        hs_image_free(&image);
      } else {
        assert_int_equal(status, HS_ERR_MEMORY);
        assert_true(message[0] != '\0');
      }
      assert_int_equal(counter.alive, 0);
    }
    assert_true(fail_at > 4); /* allocations: at least decoder, info, picture and rows */
  }
}

static void put_u32(uint8_t *at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* The header states a size larger than deflate can produce from the following bytes. The file is refused before memory
 * for the picture is allocated. */
TEST(test_size_that_the_file_cannot_have) {
  enum { HEADER = 16, CLAIMED_WIDTH = 900000 };
  const png_spec spec = {.colour_type = 0, .depth = 8, .width = 9, .height = 7};
  scoped_file file = png_spec_make(&spec);
  put_u32(file.bytes + HEADER, CLAIMED_WIDTH);
  put_u32(file.bytes + HEADER + 13, crc_zip(0, file.bytes + HEADER - 4, 4 + 13));
  scoped_counter counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  char message[200];
  const hs_load_options options = {
      .struct_size = sizeof options, .allocator = &allocator, .message = message, .message_bytes = sizeof message};
  hs_image image;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_ERR_FORMAT);
  assert_non_null(strstr(message, "too short for the size it claims"));
  assert_true(counter.peak_bytes < CLAIMED_WIDTH);
}

/* The memory limit includes the decoder's memory besides the picture. */
TEST(test_memory_limit) {
  const png_spec spec = {.colour_type = 2, .depth = 8, .interlaced = 1, .width = 300, .height = 200};
  scoped_file file = png_spec_make(&spec);
  hs_load_options options = {.struct_size = sizeof options};
  scoped_image image;
  options.max_memory_bytes = 300 * 200 + file.size;
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_ERR_LIMIT);
  options.max_memory_bytes = 4 * 300 * 200 + file.size + (1 << 20);
  assert_int_equal(hs_load_image_memory(file.bytes, file.size, &options, &image), HS_OK);
}

#else

/* Without libpng the reader returns an error that says so. */
TEST(test_unsupported) {
  static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  char message[200];
  hs_load_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  hs_image image;
  assert_int_equal(hs_load_image_memory(signature, sizeof signature, &options, &image), HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(message, "without PNG"));
}

#endif
