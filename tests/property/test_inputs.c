/*
 * The same picture in another form gives the same bytes: strides, sample types, layouts, ranges, brightness.
 */

#include "tests/support/test.h"

enum { WIDTH = 97, HEIGHT = 75, PIXELS = WIDTH * HEIGHT, PADDING = 24 };

static hs_image scene;
static hs_context *context;
static hs_features expected;

BEFORE_TESTS() {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scene = extraction_scene(WIDTH, HEIGHT, 21, NULL);
  context = extraction_context(&o);
  expected = extraction_run(context, &scene);
  assert_true(expected.count > 20);
}

AFTER_TESTS() { hs_destroy(context); }

static uint8_t gray_at(int32_t i) { return ((const uint8_t *)scene.data)[i]; }

static void expect_same(const hs_image *image, const char *what) {
  scoped_features f = extraction_run(context, image);
  extraction_check_equal(&expected, &f, what);
}

static const int channels_of[] = {1, 2, 3, 3, 4, 4};

/* Returns the scene with its gray in every colour channel, random alpha, and garbage in the row padding. */
static hs_image in_form(hs_sample_type type, hs_pixel_layout layout, void *memory) {
  const int channels = channels_of[layout];
  const size_t size = type == HS_U8 ? 1 : (type == HS_U16 ? 2 : 4),
               stride = (size_t)WIDTH * (size_t)channels * size + PADDING;
  memset(memory, 0xcd, stride * HEIGHT);
  for (int32_t y = 0; y < HEIGHT; y++)
    for (int32_t x = 0; x < WIDTH; x++)
      for (int c = 0; c < channels; c++) {
        const bool alpha = (channels == 2 || channels == 4) && c == channels - 1;
        const uint8_t v = alpha ? (uint8_t)(x * 31 + y * 17) : gray_at(y * WIDTH + x);
        unsigned char *at =
            (unsigned char *)memory + (size_t)y * stride + ((size_t)x * (size_t)channels + (size_t)c) * size;
        const uint16_t wide = (uint16_t)(v * 257u);
        const float real = (float)v;
        if (type == HS_U8)
          *at = v;
        else if (type == HS_U16)
          memcpy(at, &wide, 2);
        else
          memcpy(at, &real, 4);
      }
  return (hs_image){.data = memory,
                    .width = WIDTH,
                    .height = HEIGHT,
                    .stride_bytes = stride,
                    .type = type,
                    .layout = layout,
                    .range_high = 255.0f};
}

/* Equal channels give exactly their gray: the weights sum to 2^15. 16-bit samples v * 257 are 8-bit samples v: v * 257
   / 65535 and v / 255 are one number, and a division rounds it once. */
TEST(test_types_and_layouts) {
  SCOPED_MEMORY void *memory = malloc((WIDTH * 16 + PADDING) * HEIGHT);
  assert_non_null(memory);
  for (int type = HS_U8; type <= HS_U16; type++)
    for (int layout = HS_GRAY; layout <= HS_BGRA; layout++) {
      const hs_image image = in_form((hs_sample_type)type, (hs_pixel_layout)layout, memory);
      char what[64];
      snprintf(what, sizeof what, "type %d, layout %d", type, layout);
      expect_same(&image, what);
    }
  for (int layout = HS_GRAY; layout <= HS_GRAY_ALPHA; layout++) {
    const hs_image image = in_form(HS_F32, (hs_pixel_layout)layout, memory);
    expect_same(&image, "float gray");
  }
}

TEST(test_wide_samples_are_the_same_numbers) {
  for (uint32_t v = 0; v < 256; v++) assert_true((float)(v * 257u) / 65535.0f == (float)v / 255.0f);
}

/* In float, the weighted sum of equal channels is rounded. It is exact if samples have few bits, as quotients by 256
 * have. */
TEST(test_float_colour) {
  SCOPED_MEMORY void *memory = malloc((WIDTH * 16 + PADDING) * HEIGHT);
  assert_non_null(memory);
  hs_image plain = in_form(HS_F32, HS_GRAY, memory);
  plain.range_high = 256.0f;
  scoped_features gray = extraction_run(context, &plain);
  for (int layout = HS_RGB; layout <= HS_BGRA; layout++) {
    hs_image image = in_form(HS_F32, (hs_pixel_layout)layout, memory);
    image.range_high = 256.0f;
    scoped_features f = extraction_run(context, &image);
    extraction_check_equal(&gray, &f, "float colour");
  }
}

/* Colours become gray by the header's formula, and BGR is RGB in reverse. */
TEST(test_colour_formula) {
  static uint8_t rgb[PIXELS * 3], bgra[PIXELS * 4], gray[PIXELS];
  for (int32_t i = 0; i < PIXELS; i++) {
    const uint32_t r = gray_at(i), g = gray_at((i + 5) % PIXELS), b = gray_at((i + 777) % PIXELS);
    rgb[3 * i] = bgra[4 * i + 2] = (uint8_t)r;
    rgb[3 * i + 1] = bgra[4 * i + 1] = (uint8_t)g;
    rgb[3 * i + 2] = bgra[4 * i] = (uint8_t)b;
    gray[i] = (uint8_t)((9798u * r + 19235u * g + 3735u * b + 16384u) >> 15);
  }
  hs_image image = {.data = gray, .width = WIDTH, .height = HEIGHT};
  scoped_features a = extraction_run(context, &image);
  image.data = rgb;
  image.layout = HS_RGB;
  scoped_features b = extraction_run(context, &image);
  image.data = bgra;
  image.layout = HS_BGRA;
  scoped_features c = extraction_run(context, &image);
  assert_true(a.count > 10);
  extraction_check_equal(&a, &b, "RGB");
  extraction_check_equal(&a, &c, "BGRA");
}

/* ------------------------------------------------------------------ ranges of floats */

/* Compares the scene with samples a v + b in the range b..255 a + b, which are exact for the numbers used here. */
static void expect_same_scaled(float a, float b) {
  scoped_image image = extraction_as_floats(&scene);
  float *v = extraction_floats(&image);
  for (int32_t i = 0; i < PIXELS; i++) v[i] = a * v[i] + b;
  image.range_low = b;
  image.range_high = a * 255.0f + b;
  char what[64];
  snprintf(what, sizeof what, "range %g..%g", (double)image.range_low, (double)image.range_high);
  expect_same(&image, what);
}

TEST(test_ranges) {
  const float scales[] = {1.0f, 4.0f, 0.0078125f, 0x1p-100f, 0x1p100f};
  for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) expect_same_scaled(scales[i], 0.0f);
  expect_same_scaled(1.0f, -255.0f);
  expect_same_scaled(1.0f, -100.0f);
  expect_same_scaled(2.0f, 4096.0f);
}

/* The range 0, 0 means 0..1. */
TEST(test_default_range) {
  scoped_image image = extraction_as_floats(&scene);
  for (int32_t i = 0; i < PIXELS; i++) extraction_floats(&image)[i] = (float)gray_at(i) / 255.0f;
  image.range_low = image.range_high = 0.0f;
  expect_same(&image, "default range");
  image.range_high = 1.0f;
  expect_same(&image, "range 0..1");
}

/* A value outside the range becomes its end; NaN becomes the low end. */
TEST(test_samples_outside) {
  static const float low[] = {-0.5f, -1.0e30f, -INFINITY, NAN, -NAN},
                     high[] = {255.5f, 1.0e30f, INFINITY, 3.4e38f, 256.0f};
  scoped_image clean = extraction_as_floats(&scene), wild = extraction_as_floats(&scene);
  for (int32_t i = 0; i < PIXELS; i += 7) {
    extraction_floats(&clean)[i] = i % 2 ? 0.0f : 255.0f;
    extraction_floats(&wild)[i] = i % 2 ? low[i % 5] : high[i % 5];
  }
  scoped_features a = extraction_run(context, &clean), b = extraction_run(context, &wild);
  assert_true(a.count > 10);
  extraction_check_equal(&a, &b, "clamped samples");
  /* an empty range, which makes the picture flat */
  for (int32_t i = 0; i < PIXELS; i++) extraction_floats(&wild)[i] = NAN;
  scoped_features none = extraction_run(context, &wild);
  assert_int_equal(none.count, 0);
}

/* Brightness and contrast threshold are halved. All intensities and thresholds halve exactly, so positions, scales and
 * angles keep their bits, and responses halve. Descriptors come from rounded votes, which change slightly. */
TEST(test_brightness) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    if (p == HS_PROFILE_OPENCV) continue; /* the candidate threshold of this profile is in whole gray levels */
    hs_options o = extraction_options((hs_profile)p);
    o.upright = 1;
    scoped_features full = extraction_once(&o, &scene);
    scoped_image dim = extraction_as_floats(&scene);
    for (int32_t i = 0; i < PIXELS; i++) extraction_floats(&dim)[i] *= 0.5f;
    o.contrast *= 0.5f;
    scoped_features f = extraction_once(&o, &dim);
    assert_int_equal(full.count, f.count);
    for (size_t i = 0; i < f.count; i++) {
      hs_keypoint k = f.keypoints[i];
      k.response *= 2.0f;
      assert_memory_equal(&k, &full.keypoints[i], sizeof k);
      assert_true(extraction_distance(&full, i, &f, i) < 0.01);
    }
  }
}
