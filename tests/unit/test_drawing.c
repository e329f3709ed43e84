/*
 * Anti-aliased circles and lines: which pixels they touch, with what coverage, and that nothing outside is touched.
 */

#include "tests/support/test.h"

#include "pipeline/cli/draw/drawing.h"

enum { SIDE = 65 };

static const drawing_pen white_pen = {255, 255, 255, .opacity = 1.0, .width = 1.0};

static void make_black(drawing *picture, int32_t width, int32_t height) {
  SCOPED_MEMORY uint8_t *gray = calloc((size_t)width * (size_t)height, 1);
  assert_non_null(gray);
  const hs_image image = {.data = gray, .width = width, .height = height, .type = HS_U8, .layout = HS_GRAY};
  assert_int_equal(drawing_from_image(picture, &image), HS_OK);
}

static const uint8_t *pixel_at(const drawing *picture, int32_t x, int32_t y) {
  return picture->pixels + 3 * ((size_t)y * (size_t)picture->width + (size_t)x);
}

/* Returns the sum of the red channel, in units of a whole pixel. */
static double covered_area(const drawing *picture) {
  double sum = 0.0;
  for (int32_t y = 0; y < picture->height; y++)
    for (int32_t x = 0; x < picture->width; x++) sum += *pixel_at(picture, x, y) / 255.0;
  return sum;
}

/* A pixel is coloured where its distance is within the line's width, and no pixel further out is coloured. */
TEST(circle_has_its_radius_everywhere) {
  const double centres[] = {32.0, 32.4, 31.7};
  const double radii[] = {0.0, 0.4, 3.0, 10.3, 25.0};
  const double widths[] = {0.6, 1.0, 4.0};
  for (size_t trial = 0; trial < 3 * 5 * 3; trial++) {
    const double centre = centres[trial % 3];
    const double radius = radii[trial / 3 % 5];
    drawing_pen pen = white_pen;
    SCOPED_BY(drawing_free) drawing picture;
    pen.width = widths[trial / 15];
    make_black(&picture, SIDE, SIDE);
    drawing_circle(&picture, centre, centre + 0.25, radius, pen);
    for (int32_t y = 0; y < SIDE; y++) {
      for (int32_t x = 0; x < SIDE; x++) {
        const double distance = fabs(hypot(x - centre, y - centre - 0.25) - radius);
        const double share = fmin(fmax(0.5 * pen.width + 0.5 - distance, 0.0), fmin(pen.width, 1.0));
        assert_true(fabs(*pixel_at(&picture, x, y) - 255.0 * share) <= 0.5001);
      }
    }
  }
}

TEST(circle_covers_its_line) {
  SCOPED_BY(drawing_free) drawing picture;
  make_black(&picture, SIDE, SIDE);
  drawing_circle(&picture, 32.3, 31.8, 20.0, white_pen);
  assert_true(fabs(covered_area(&picture) - 2.0 * 3.14159265 * 20.0) < 1.5);
}

TEST(line_is_where_it_should_be) {
  SCOPED_BY(drawing_free) drawing picture;
  make_black(&picture, SIDE, SIDE);
  drawing_line(&picture, 10.0, 20.0, 30.0, 20.0, white_pen);
  for (int32_t x = 10; x <= 30; x++) {
    assert_int_equal(*pixel_at(&picture, x, 20), 255);
    assert_int_equal(*pixel_at(&picture, x, 19), 0);
    assert_int_equal(*pixel_at(&picture, x, 21), 0);
  }
  assert_int_equal(*pixel_at(&picture, 8, 20), 0);
  assert_int_equal(*pixel_at(&picture, 32, 20), 0);
}

/* Lines of every direction cover the area of their length and round ends (26 pixels), also with exchanged ends. Along a
 * diagonal the rows of pixel centres are 0.7 apart, where coverages computed from distances add up to as much as 8 %
 * more. */
TEST(lines_cover_their_length) {
  for (int degrees = 0; degrees < 360; degrees += 15) {
    const double angle = degrees * 3.14159265358979 / 180.0;
    const double x = 32.2 + 25.0 * cos(angle);
    const double y = 31.9 + 25.0 * sin(angle);
    SCOPED_BY(drawing_free) drawing forth, back;
    make_black(&forth, SIDE, SIDE);
    make_black(&back, SIDE, SIDE);
    drawing_line(&forth, 32.2, 31.9, x, y, white_pen);
    drawing_line(&back, x, y, 32.2, 31.9, white_pen);
    const double area = covered_area(&forth);
    assert_true(area > 24.0 && area < 28.5);
    assert_true(fabs(area - covered_area(&back)) < 0.2);
    assert_int_equal(*pixel_at(&forth, 32, 32) > 128, 1);
  }
}

TEST(colour_and_opacity_are_used) {
  const drawing_pen pen = {200, 100, 50, .opacity = 0.5, .width = 3.0};
  SCOPED_BY(drawing_free) drawing picture;
  make_black(&picture, SIDE, SIDE);
  drawing_line(&picture, 5.0, 5.0, 40.0, 5.0, pen);
  const uint8_t *pixel = pixel_at(&picture, 20, 5);
  assert_int_equal(pixel[0], 100);
  assert_int_equal(pixel[1], 50);
  assert_int_equal(pixel[2], 25);
}

/* Shapes lie partly or wholly outside, are absurdly large, or not finite. The sanitizers check the memory. */
TEST(shapes_outside_are_cut) {
  SCOPED_BY(drawing_free) drawing picture;
  make_black(&picture, 7, 5);
  drawing_circle(&picture, -10.0, -10.0, 3.0, white_pen);
  drawing_line(&picture, 100.0, 100.0, 200.0, 100.0, white_pen);
  drawing_circle(&picture, 3.0, 2.0, 1e12, white_pen);
  drawing_circle(&picture, 1e300, 2.0, 5.0, white_pen);
  drawing_circle(&picture, (double)NAN, 2.0, 5.0, white_pen);
  drawing_circle(&picture, 2.0, 2.0, (double)INFINITY, white_pen);
  drawing_circle(&picture, 2.0, 2.0, -1.0, white_pen);
  drawing_line(&picture, (double)NAN, 0.0, 5.0, 5.0, white_pen);
  assert_true(covered_area(&picture) == 0.0);
  drawing_line(&picture, -1e9, 2.0, 1e9, 2.0, white_pen);
  assert_true(covered_area(&picture) == 7.0);
  drawing_circle(&picture, 6.0, 4.0, 2.0, white_pen);
  assert_true(covered_area(&picture) > 7.0);
}

/* Every type and layout gives the same picture of one colour. */
TEST(images_become_rgb) {
  static const uint8_t rgb[] = {10, 20, 30}, bgr[] = {30, 20, 10}, rgba[] = {10, 20, 30, 99};
  static const uint8_t bgra[] = {30, 20, 10, 99};
  static const uint16_t rgb16[] = {10 * 257, 20 * 257 + 100, 30 * 257 - 100};
  static const float rgb_float[] = {10.0f, 20.2f, 29.8f};
  const hs_image images[] = {
      {.data = rgb, .width = 1, .height = 1, .type = HS_U8, .layout = HS_RGB},
      {.data = bgr, .width = 1, .height = 1, .type = HS_U8, .layout = HS_BGR},
      {.data = rgba, .width = 1, .height = 1, .type = HS_U8, .layout = HS_RGBA},
      {.data = bgra, .width = 1, .height = 1, .type = HS_U8, .layout = HS_BGRA},
      {.data = rgb16, .width = 1, .height = 1, .type = HS_U16, .layout = HS_RGB},
      {.data = rgb_float, .width = 1, .height = 1, .type = HS_F32, .layout = HS_RGB, .range_high = 255.0f},
  };
  for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
    SCOPED_BY(drawing_free) drawing picture;
    assert_int_equal(drawing_from_image(&picture, &images[i]), HS_OK);
    assert_memory_equal(picture.pixels, rgb, sizeof rgb);
  }
}

TEST(gray_rows_keep_their_stride) {
  static const uint8_t rows[] = {1, 2, 77, 77, 3, 4, 77, 77};
  static const uint8_t expected[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4};
  const hs_image image = {.data = rows, .width = 2, .height = 2, .stride_bytes = 4, .type = HS_U8, .layout = HS_GRAY};
  drawing picture;
  assert_int_equal(drawing_from_image(&picture, &image), HS_OK);
  assert_memory_equal(picture.pixels, expected, sizeof expected);
  const hs_image view = drawing_view(&picture);
  assert_int_equal(view.stride_bytes, 6);
  assert_int_equal(view.layout, HS_RGB);
  drawing_free(&picture);
  const hs_image broken = {.data = rows, .width = 0, .height = 2, .type = HS_U8, .layout = HS_GRAY};
  assert_int_equal(drawing_from_image(&picture, &broken), HS_ERR_IMAGE);
}

/* Each picture keeps its pixels; the remaining pixels are black. */
TEST(pictures_side_by_side_keep_their_pixels) {
  const uint8_t left_pixels[6] = {1, 2, 3, 4, 5, 6}, right_pixels[2] = {7, 8};
  const hs_image left = {.data = left_pixels, .width = 3, .height = 2, .type = HS_U8};
  const hs_image right = {.data = right_pixels, .width = 2, .height = 1, .type = HS_U8};
  drawing a, b, both;
  int32_t shift = 0;
  assert_int_equal(drawing_from_image(&a, &left), HS_OK);
  assert_int_equal(drawing_from_image(&b, &right), HS_OK);
  assert_int_equal(drawing_side_by_side(&both, &a, &b, &shift), HS_OK);
  assert_int_equal(both.height, 2);
  assert_int_equal(both.width, shift + 2);
  assert_true(shift >= 3);
  for (int32_t y = 0; y < 2; y++) {
    for (int32_t x = 0; x < both.width; x++) {
      const int expected = x < 3 ? 3 * y + x + 1 : x >= shift && y == 0 ? 7 + x - shift : 0;
      for (int c = 0; c < 3; c++) assert_int_equal(pixel_at(&both, x, y)[c], expected);
    }
  }
  drawing_free(&both);
  assert_int_equal(drawing_side_by_side(&both, &b, &a, &shift), HS_OK);
  assert_int_equal(both.height, 2);
  drawing_free(&both);
  drawing_free(&a);
  drawing_free(&b);
  drawing wide = {.width = INT32_MAX, .height = 1};
  assert_int_equal(drawing_side_by_side(&both, &wide, &wide, &shift), HS_ERR_LIMIT);
  assert_null(both.pixels);
}
