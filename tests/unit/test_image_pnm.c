/*
 * Handwritten PNM files of every kind: exact pixels, scaling, comments, damaged headers.
 */
#include "tests/support/test.h"

/* Loads a copy of exactly the bytes, so that a sanitizer detects any read past the end. */
static hs_status load(const void *bytes, size_t size, int keep_colour, hs_image *image, char message[200]) {
  SCOPED_MEMORY void *copy = malloc(size + (size == 0));
  assert_non_null(copy);
  memcpy(copy, bytes, size);
  const hs_load_options options = {
      .struct_size = sizeof options, .keep_colour = keep_colour, .message = message, .message_bytes = 200};
  const hs_status status = hs_load_image_memory(copy, size, &options, image);
  return status;
}

static void check(const char *bytes, size_t size, int keep_colour, hs_sample_type type, hs_pixel_layout layout,
                  int32_t width, int32_t height, const uint16_t *expected) {
  char message[200];
  hs_image image;
  assert_int_equal(load(bytes, size, keep_colour, &image, message), HS_OK);
  assert_int_equal(image.type, type);
  assert_int_equal(image.layout, layout);
  assert_int_equal(image.width, width);
  assert_int_equal(image.height, height);
  const size_t samples = (size_t)width * (size_t)height * (layout == HS_RGB ? 3 : 1);
  for (size_t i = 0; i < samples; i++) {
    const uint32_t value = type == HS_U8 ? ((const uint8_t *)image.data)[i] : ((const uint16_t *)image.data)[i];
    assert_int_equal(value, expected[i]);
  }
  hs_image_free(&image);
}

#define CHECK_GRAY8(text, width, height, ...)                                                                          \
  check(text, sizeof text - 1, 0, HS_U8, HS_GRAY, width, height, (const uint16_t[]){__VA_ARGS__})
#define CHECK_GRAY16(text, width, height, ...)                                                                         \
  check(text, sizeof text - 1, 0, HS_U16, HS_GRAY, width, height, (const uint16_t[]){__VA_ARGS__})
#define CHECK_RGB8(text, width, height, ...)                                                                           \
  check(text, sizeof text - 1, 1, HS_U8, HS_RGB, width, height, (const uint16_t[]){__VA_ARGS__})
#define CHECK_RGB16(text, width, height, ...)                                                                          \
  check(text, sizeof text - 1, 1, HS_U16, HS_RGB, width, height, (const uint16_t[]){__VA_ARGS__})

TEST(test_bits) {
  CHECK_GRAY8("P1\n3 2\n010\n110", 3, 2, 255, 0, 255, 0, 0, 255);
  CHECK_GRAY8("P1 3 2 0 1 0 # comment\n1 1\n0", 3, 2, 255, 0, 255, 0, 0, 255);
  CHECK_GRAY8("P4\n3 2\n\x5F\xC0", 3, 2, 255, 0, 255, 0, 0, 255);
  CHECK_GRAY8("P4 9 2 \x80\x80\x01\x00", 9, 2, 0, 255, 255, 255, 255, 255, 255, 255, 0, 255, 255, 255, 255, 255, 255,
              255, 0, 255);
}

TEST(test_gray) {
  CHECK_GRAY8("P2\n2 2\n255\n0 1\n254 255", 2, 2, 0, 1, 254, 255);
  CHECK_GRAY8("P5\n2 2\n255\n\x00\x01\xFE\xFF", 2, 2, 0, 1, 254, 255);
  CHECK_GRAY8("P5#c\n2#c\n2 #c\r\n255\n\x00\x01\xFE\xFF", 2, 2, 0, 1, 254, 255);
  CHECK_GRAY8("P5\n2 1\n255\n#\n", 2, 1, '#', '\n');
  CHECK_GRAY16("P2 2 1 65535 258 65535", 2, 1, 258, 65535);
  CHECK_GRAY16("P5 2 1 65535 \x01\x02\xFF\xFF", 2, 1, 258, 65535);
}

TEST(test_maximum_is_scaled_to_the_nearest) {
  CHECK_GRAY8("P2 5 1 100 0 1 50 99 100", 5, 1, 0, 3, 128, 252, 255);
  CHECK_GRAY8("P5 2 1 1 \x00\x01", 2, 1, 0, 255);
  CHECK_GRAY16("P2 4 1 1000 0 1 500 1000", 4, 1, 0, 66, 32768, 65535);
  CHECK_GRAY16("P5 2 1 256 \x00\x01\x01\x00", 2, 1, 256, 65535);
  char file[600];
  for (int maximum = 1; maximum <= 255; maximum++) {
    const int head = snprintf(file, sizeof file, "P5 %d 1 %d\n", maximum + 1, maximum);
    uint16_t expected[256];
    for (int v = 0; v <= maximum; v++) {
      file[head + v] = (char)v;
      expected[v] = (uint16_t)((v * 510 + maximum) / (2 * maximum));
    }
    check(file, (size_t)(head + maximum + 1), 0, HS_U8, HS_GRAY, maximum + 1, 1, expected);
  }
}

TEST(test_colour) {
  const uint16_t gray = (uint16_t)image_maker_gray(10, 200, 30);
  const uint16_t gray16 = (uint16_t)image_maker_gray(0x0102, 0xFFFE, 0x8000);
  CHECK_GRAY8("P3 1 1 255 10 200 30", 1, 1, gray);
  CHECK_RGB8("P3 1 1 255 10 200 30", 1, 1, 10, 200, 30);
  CHECK_GRAY8("P6 1 1 255 \x0A\xC8\x1E", 1, 1, gray);
  CHECK_RGB8("P6 1 1 255 \x0A\xC8\x1E", 1, 1, 10, 200, 30);
  CHECK_GRAY16("P6 1 1 65535 \x01\x02\xFF\xFE\x80\x00", 1, 1, gray16);
  CHECK_RGB16("P6 1 1 65535 \x01\x02\xFF\xFE\x80\x00", 1, 1, 0x0102, 0xFFFE, 0x8000);
  CHECK_GRAY8("P6 1 1 255 \xFF\xFF\xFF", 1, 1, 255);
  CHECK_GRAY16("P6 1 1 65535 \xFF\xFF\xFF\xFF\xFF\xFF", 1, 1, 65535);
}

#define PAM(depth, maximum, type, data)                                                                                \
  "P7\nWIDTH 2\n# comment\nHEIGHT 1\nDEPTH " depth "\nMAXVAL " maximum "\nTUPLTYPE " type "\nENDHDR\n" data

TEST(test_pam) {
  const uint16_t gray = (uint16_t)image_maker_gray(10, 200, 30);
  CHECK_GRAY8(PAM("1", "1", "BLACKANDWHITE", "\x01\x00"), 2, 1, 255, 0);
  CHECK_GRAY8(PAM("2", "1", "BLACKANDWHITE_ALPHA", "\x01\x00\x00\x01"), 2, 1, 255, 0);
  CHECK_GRAY8(PAM("1", "255", "GRAYSCALE", "\x07\x09"), 2, 1, 7, 9);
  CHECK_GRAY8(PAM("2", "255", "GRAYSCALE_ALPHA", "\x07\x00\x09\x80"), 2, 1, 7, 9);
  CHECK_GRAY8(PAM("3", "255", "RGB", "\x0A\xC8\x1E\x00\x00\x00"), 2, 1, gray, 0);
  CHECK_RGB8(PAM("4", "255", "RGB_ALPHA", "\x0A\xC8\x1E\x77\x01\x02\x03\x88"), 2, 1, 10, 200, 30, 1, 2, 3);
  CHECK_GRAY16(PAM("1", "65535", "GRAYSCALE", "\x01\x02\x00\x09"), 2, 1, 258, 9);
  /* Without a tuple type the depth decides the layout. */
  CHECK_GRAY8("P7\nHEIGHT 1\nWIDTH 1\nMAXVAL 255\nDEPTH 2\nENDHDR\n\x07\x00", 1, 1, 7);
  /* Colour is kept only if the file has colour. */
  check("P5 1 1 255 \x07", 12, 1, HS_U8, HS_GRAY, 1, 1, (const uint16_t[]){7});
}

TEST(test_first_of_several) {
  CHECK_GRAY8("P5 1 1 255 \x07P5 2 2 255 abcd", 1, 1, 7);
  CHECK_GRAY8("P2 1 1 255 7\nP2 1 1 255 8", 1, 1, 7);
}

TEST(test_damaged) {
  static const struct {
    const char *bytes;
    hs_status status;
  } cases[] = {{"P5\n", HS_ERR_FORMAT},
               {"P5\n-3 2\n255\nabcdef", HS_ERR_FORMAT},
               {"P5\n3 0\n255\nabcdef", HS_ERR_FORMAT},
               {"P5\n3 2\n0\nabcdef", HS_ERR_FORMAT},
               {"P5\n3 2\n65536\nabcdefabcdef", HS_ERR_FORMAT},
               {"P5\n3 2\n99999999999999999999999\nabcdefabcdef", HS_ERR_FORMAT},
               {"P5\n3 2\n255abcdef", HS_ERR_FORMAT},
               {"P5\n3 2\n255\nabcde", HS_ERR_FORMAT},
               {"P5\n3 2\n300\nabcdefabcde", HS_ERR_FORMAT},
               {"P5\n3 2\n99\nabcdef", HS_ERR_FORMAT}, /* 'd' is the value 100, above the maximum of 99 */
               {"P2\n3 2\n255\n1 2 3 4 5", HS_ERR_FORMAT},
               {"P2\n3 2\n255\n1 2 3 4 5 256", HS_ERR_FORMAT},
               {"P2\n3 2\n255\n1 2 3 4 5 x", HS_ERR_FORMAT},
               {"P1\n3 2\n01012", HS_ERR_FORMAT},
               {"P4\n9 2\nabc", HS_ERR_FORMAT},
               {"P6\n65536 65536\n255\nabc", HS_ERR_LIMIT},
               {"P6\n4294967297 4294967297\n255\nabc", HS_ERR_LIMIT},
               {"P5\n18446744073709551617 1\n255\na", HS_ERR_LIMIT},
               {"P5\n2000000000 1\n255\na", HS_ERR_FORMAT}, /* this width is allowed, but the samples are missing */
               {"P3\n20000 20000\n255\n1 2 3", HS_ERR_FORMAT},
               {"P8\n1 1\n255\na", HS_ERR_FORMAT},
               {"P7 332\n1 1 255\na", HS_ERR_FORMAT},
               {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nENDHDR\na", HS_ERR_FORMAT},
               {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDRa", HS_ERR_FORMAT},
               {"P7\nWIDTH 1\nHEIGHT 1\nMAXVAL 255\nENDHDR\na", HS_ERR_UNSUPPORTED},
               {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nTUPLTYPE CMY\nENDHDR\nabc", HS_ERR_UNSUPPORTED}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char message[200];
    hs_image image;
    assert_int_equal(load(cases[i].bytes, strlen(cases[i].bytes), 0, &image, message), cases[i].status);
    assert_true(message[0] != '\0');
    assert_null(image.data);
  }
}

TEST(test_every_cut) {
  static const char *const files[] = {"P1 3 2 010110", "P2 3 2 255 1 2 3 4 5 6", "P5 3 2 255 abcdef",
                                      "P6 2 1 255 abcdef", PAM("3", "255", "RGB", "abcdef")};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    char message[200];
    hs_image image;
    const size_t whole = strlen(files[i]);
    assert_int_equal(load(files[i], whole, 0, &image, message), HS_OK);
    hs_image_free(&image);
    for (size_t size = 0; size < whole; size++)
      assert_int_equal(load(files[i], size, 0, &image, message), HS_ERR_FORMAT);
  }
}

TEST(test_every_allocation_fails_once) {
  static const char file[] = "P6 2 1 255 abcdef";
  scoped_counter counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  const hs_load_options options = {.struct_size = sizeof options, .allocator = &allocator};
  scoped_image image;
  for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
    counter = (counted_allocator){.fail_at = fail_at};
    assert_int_equal(hs_load_image_memory(file, sizeof file - 1, &options, &image), HS_ERR_MEMORY);
    assert_int_equal(counter.alive, 0);
  }
  counter = (counted_allocator){.fail_at = 3};
  assert_int_equal(hs_load_image_memory(file, sizeof file - 1, &options, &image), HS_OK);
  assert_int_equal(counter.alive, 1);
}
