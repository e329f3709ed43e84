/*
 * hs_load_options.max_image_size: every pixel equals the mean of its area, computed from subdivided pixels; COLMAP's
 * sizes, limits, failing allocations; and features converted back to original pixels.
 */
#include "tests/support/test.h"

enum { FILE_BYTES = 1 << 16 };

/* Writes a binary PGM or PPM of samples without a pattern; returns its size. */
static size_t make_pnm(int32_t width, int32_t height, int channels, int bytes, uint8_t out[FILE_BYTES]) {
  const int head = snprintf((char *)out, FILE_BYTES, "P%d %d %d %d\n", channels == 1 ? 5 : 6, width, height,
                            bytes == 1 ? 255 : 65535);
  const size_t samples = (size_t)width * (size_t)height * (size_t)(channels * bytes);
  assert_true(samples + (size_t)head <= FILE_BYTES);
  uint32_t random = (uint32_t)(width * 31 + height);
  for (size_t i = 0; i < samples; i++) {
    random = random * 1664525u + 1013904223u;
    out[(size_t)head + i] = (uint8_t)(random >> 24);
  }
  return samples + (size_t)head;
}

static hs_status load(const uint8_t *bytes, size_t size, hs_load_options options, hs_image *image) {
  char message[200] = "";
  options.struct_size = sizeof options;
  options.message = message;
  options.message_bytes = sizeof message;
  const hs_status status = hs_load_image_memory(bytes, size, &options, image);
  assert_int_equal(status == HS_OK, message[0] == '\0');
  return status;
}

static uint32_t sample(const hs_image *image, int32_t x, int32_t y, size_t channel) {
  const size_t channels = image->layout == HS_RGB ? 3 : 1;
  const uint8_t *row = (const uint8_t *)image->data + (size_t)y * image->stride_bytes;
  const size_t i = (size_t)x * channels + channel;
  return image->type == HS_U8 ? row[i] : ((const uint16_t *)(const void *)row)[i];
}

/* Returns the mean over the area of a smaller pixel. Each original pixel is divided into w x h equal parts; the area
 * consists of W x H parts. */
static uint32_t mean_of(const hs_image *full, const hs_image *small, int32_t x, int32_t y, size_t channel) {
  const int64_t W = full->width, H = full->height, w = small->width, h = small->height;
  uint64_t sum = 0;
  for (int64_t v = y * H; v < (y + 1) * H; v++)
    for (int64_t u = x * W; u < (x + 1) * W; u++) sum += sample(full, (int32_t)(u / w), (int32_t)(v / h), channel);
  return (uint32_t)((2 * sum + (uint64_t)(W * H)) / (uint64_t)(2 * W * H));
}

static void check_means(const uint8_t *bytes, size_t size, int32_t wanted, int colour) {
  scoped_image full, small;
  assert_int_equal(load(bytes, size, (hs_load_options){.keep_colour = colour}, &full), HS_OK);
  assert_int_equal(load(bytes, size, (hs_load_options){.keep_colour = colour, .max_image_size = wanted}, &small),
                   HS_OK);
  const int32_t largest = full.width > full.height ? full.width : full.height;
  const int32_t width = full.width * wanted / largest, height = full.height * wanted / largest;
  assert_int_equal(small.width, width > 0 ? width : 1);
  assert_int_equal(small.height, height > 0 ? height : 1);
  assert_int_equal(small.original_width, full.width);
  assert_int_equal(small.original_height, full.height);
  assert_true(small.type == full.type && small.layout == full.layout && full.original_width == 0);
  for (int32_t y = 0; y < small.height; y++)
    for (int32_t x = 0; x < small.width; x++)
      for (size_t k = 0; k < (full.layout == HS_RGB ? 3u : 1u); k++)
        if (sample(&small, x, y, k) != mean_of(&full, &small, x, y, k))
          fail_msg("%dx%d to %d, pixel %d,%d: %u, expected %u", full.width, full.height, wanted, x, y,
                   sample(&small, x, y, k), mean_of(&full, &small, x, y, k));
}

TEST(means_are_exact) {
  static const int32_t cases[][3] = {{7, 5, 6}, {7, 5, 3}, {16, 16, 8},  {17, 3, 16},  {3, 17, 2},
                                     {1, 9, 1}, {9, 1, 4}, {40, 30, 29}, {31, 64, 63}, {50, 2, 7}};
  static uint8_t bytes[FILE_BYTES];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int kind = 0; kind < 4; kind++) {
      const size_t size = make_pnm(cases[i][0], cases[i][1], kind % 2 ? 3 : 1, 1 + kind / 2, bytes);
      check_means(bytes, size, cases[i][2], kind % 2);
    }
}

TEST(small_pictures_stay) {
  static uint8_t bytes[FILE_BYTES];
  const size_t size = make_pnm(20, 10, 1, 1, bytes);
  static const int64_t sizes[] = {0, 20, 21, INT64_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    scoped_image image;
    assert_int_equal(load(bytes, size, (hs_load_options){.max_image_size = sizes[i]}, &image), HS_OK);
    assert_true(image.width == 20 && image.height == 10 && image.original_width == 0 && image.original_height == 0);
  }
  hs_image image;
  assert_int_equal(load(bytes, size, (hs_load_options){.max_image_size = -1}, &image), HS_ERR_OPTION);
}

/* Scenes are reduced too; limits apply to the decoded size; allocations may fail. */
TEST(limits_and_faults) {
  static uint8_t bytes[FILE_BYTES];
  const size_t size = make_pnm(200, 100, 1, 1, bytes);
  hs_image image;
  assert_int_equal(load(bytes, size, (hs_load_options){.max_image_size = 10, .max_pixels = 19999}, &image),
                   HS_ERR_LIMIT);
  assert_int_equal(load(bytes, size, (hs_load_options){.max_image_size = 10, .max_memory_bytes = size + 20205}, &image),
                   HS_ERR_LIMIT);
  const hs_load_options of_scene = {.struct_size = sizeof of_scene, .max_image_size = 64};
  assert_int_equal(hs_load_image("@scene:640x480:3", &of_scene, &image), HS_OK);
  assert_true(image.width == 64 && image.height == 48 && image.original_width == 640);
  hs_image_free(&image);
  scoped_counter counted = {0};
  const hs_allocator allocator = counted_allocator_make(&counted);
  hs_status status = HS_ERR_MEMORY;
  for (size_t n = 1; status != HS_OK; n++) {
    counted.fail_at = counted.made + n;
    status = load(bytes, size, (hs_load_options){.max_image_size = 10, .allocator = &allocator}, &image);
    assert_true(status == HS_OK || status == HS_ERR_MEMORY);
    assert_int_equal(counted.alive, status == HS_OK);
  }
  hs_image_free(&image);
}

/* The centre of a smaller pixel is the centre of its area in the original. */
TEST(features_go_back) {
  const hs_load_options halved = {.struct_size = sizeof halved, .max_image_size = 320};
  scoped_image full = extraction_scene(640, 480, 8, NULL), small;
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  assert_int_equal(hs_load_image("@scene:640x480:8", &halved, &small), HS_OK);
  scoped_features found = extraction_once(&o, &small), before = extraction_once(&o, &small);
  assert_true(found.count > 100);
  assert_int_equal(hs_features_to_original(&found, &small), HS_OK);
  assert_true(found.image_width == 640 && found.image_height == 480);
  for (size_t i = 0; i < found.count; i++) {
    assert_true(found.keypoints[i].x == (float)(2.0 * ((double)before.keypoints[i].x + 0.5) - 0.5));
    assert_true(found.keypoints[i].y == (float)(2.0 * ((double)before.keypoints[i].y + 0.5) - 0.5));
    assert_true(found.keypoints[i].sigma == 2.0f * before.keypoints[i].sigma);
    assert_true(found.keypoints[i].octave == before.keypoints[i].octave);
  }
  /* the features are in original pixels already */
  assert_int_equal(hs_features_to_original(&found, &small), HS_ERR_ARGUMENT);
  assert_int_equal(hs_features_to_original(&before, &full), HS_OK); /* the picture is not reduced, so nothing changes */
  assert_int_equal(before.image_width, 320);
  assert_int_equal(hs_features_to_original(NULL, &small), HS_ERR_ARGUMENT);
  assert_int_equal(hs_features_to_original(&found, NULL), HS_ERR_ARGUMENT);
}
