/*
 * The GPU's JPEG decoder without a GPU: made files of every kind are packed, decoded by the same functions, and compared with libjpeg
 * pixel by pixel; changed ones are refused or decoded as libjpeg does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#include "stages/jpeg_transform.h"
#include "tests/support/jpeg_cases.h"
#include "tests/support/jpeg_on_host.h"

#if HARTSIFT_HAVE_JPEG

enum { MADE = 600, CHANGED = 4000, ROOM_BYTES = 8 << 20 };

static void *room;

static int set_up(void **state) {
  (void)state;
  room = malloc(ROOM_BYTES);
  return room ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  free(room);
  return 0;
}

/* Packed in memory of exactly its size, so that a sanitizer sees what is read behind it. */
static uint32_t decode(const jpeg_shape *shape, uint8_t *gray) {
  jpeg_host_effort effort;
  void *exact = malloc(shape->packed_bytes);
  memcpy(exact, room, shape->packed_bytes);
  const jpeg_decode_args args = {.shape = *shape, .packed = exact, .gray = gray, .step_x = 1, .step_y = shape->width};
  const uint32_t refused = jpeg_on_host(&args, &effort);
  free(exact);
  return refused;
}

/* False: it is left to libjpeg. */
static bool decodes_equal(uint32_t number, const uint8_t *bytes, size_t size) {
  jpeg_shape shape;
  hs_image expected;
  uint8_t *exact = malloc(size);
  memcpy(exact, bytes, size);
  const bool packed = jpeg_case_pack(exact, size, room, ROOM_BYTES, &shape);
  free(exact);
  if (!packed) return false;
  const size_t pixels = (size_t)shape.width * (size_t)shape.height;
  uint8_t *gray = malloc(pixels);
  const bool whole = decode(&shape, gray) == 0;
  if (whole) {
    assert_int_equal(jpeg_case_load(bytes, size, &expected), HS_OK);
    assert_int_equal(expected.width, shape.width);
    assert_int_equal(expected.height, shape.height);
    if (memcmp(gray, expected.data, pixels) != 0) fail_msg("file %u differs from libjpeg's", number);
    hs_image_free(&expected);
  }
  free(gray);
  return whole;
}

static void test_made_files(void **state) {
  (void)state;
  for (uint32_t i = 0; i < MADE; i++) {
    size_t size;
    unsigned char *bytes = jpeg_case_make(i, i % 50 == 49 ? 700 : 90, JPEG_SUM_MOST, &size);
    assert_non_null(bytes);
    if (!decodes_equal(i, bytes, size)) fail_msg("made file %u is left to libjpeg", i);
    free(bytes);
  }
}

static void test_changed_files(void **state) {
  (void)state;
  int whole = 0;
  for (uint32_t i = 0; i < CHANGED; i++) {
    size_t size;
    unsigned char *bytes = jpeg_case_make(i, 60, i % 3 ? 700 : 64000, &size);
    size = jpeg_case_change(bytes, size, i);
    whole += decodes_equal(i, bytes, size);
    free(bytes);
  }
  assert_true(whole > CHANGED / 20 && whole < CHANGED / 2);
}

#endif

/* Every sample that a single frequency gives lies within half a value of the exact transform, and a gray block is exact. */
static void test_transform(void **state) {
  (void)state;
  for (int32_t dc = -5600; dc <= 5600; dc += 7) {
    int32_t v[JPEG_BLOCK_SIDE] = {dc};
    jpeg_transform_8(v, JPEG_COLUMN_SHIFT);
    for (int i = 0; i < JPEG_BLOCK_SIDE; i++) assert_int_equal(v[i], 4 * dc);
  }
  for (int frequency = 1; frequency < JPEG_BLOCK_SIDE; frequency++) {
    int32_t v[JPEG_BLOCK_SIDE] = {0};
    v[frequency] = 1000;
    jpeg_transform_8(v, JPEG_COLUMN_SHIFT);
    for (int i = 0; i < JPEG_BLOCK_SIDE; i++) {
      const double exact = 4000 * sqrt(2) * cos((2 * i + 1) * frequency * 3.14159265358979323846 / 16);
      assert_true(fabs(v[i] - exact) < 1.5);
    }
  }
  assert_int_equal(jpeg_pixel(-129), 0);
  assert_int_equal(jpeg_pixel(-128), 0);
  assert_int_equal(jpeg_pixel(127), 255);
  assert_int_equal(jpeg_pixel(300), 255);
}

int main(void) {
#if HARTSIFT_HAVE_JPEG
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_made_files), cmocka_unit_test(test_changed_files),
                                     cmocka_unit_test(test_transform)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
#else
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_transform)};
  return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
