/*
 * The generated scene: names, exact repetition, views by homography, bad arguments, failing memory.
 */
#include "tests/support/test.h"

#include "pipeline/base/memory.h"
#include "pipeline/image_io/image_io.h"

static hs_image render(int32_t width, int32_t height, uint32_t seed, const double *homography) {
  hs_image image = {0};
  assert_int_equal(hs_render_scene(width, height, seed, homography, NULL, &image), HS_OK);
  assert_int_equal(image.width, width);
  assert_int_equal(image.height, height);
  assert_int_equal(image.type, HS_U8);
  assert_int_equal(image.layout, HS_GRAY);
  return image;
}

static uint8_t pixel(const hs_image *image, int32_t x, int32_t y) {
  const size_t stride = image->stride_bytes ? image->stride_bytes : (size_t)image->width;
  return ((const uint8_t *)image->data)[(size_t)y * stride + (size_t)x];
}

/* Returns the number of pixels that differ where a and b overlap after a shift by (dx, dy). *compared: number of pixels
 * in the overlap. */
static int differences(const hs_image *a, const hs_image *b, int32_t dx, int32_t dy, int *compared) {
  int differ = 0;
  *compared = 0;
  for (int32_t y = 0; y < a->height; y++)
    for (int32_t x = 0; x < a->width; x++) {
      const int32_t u = x + dx, v = y + dy;
      if (u < 0 || v < 0 || u >= b->width || v >= b->height) continue;
      differ += pixel(a, x, y) != pixel(b, u, v);
      (*compared)++;
    }
  return differ;
}

TEST(test_names) {
  int32_t w = 0, h = 0;
  uint32_t seed = 0;
  assert_int_equal(scene_parse_name("@scene", &w, &h, &seed), 1);
  assert_int_equal(w, 640);
  assert_int_equal(h, 480);
  assert_int_equal(seed, 1);
  assert_int_equal(scene_parse_name("@scene:7x30000:4294967295", &w, &h, &seed), 1);
  assert_int_equal(w, 7);
  assert_int_equal(h, 30000);
  assert_int_equal(seed, UINT32_MAX);
  static const char *const files[] = {"photo.png", "scene", "@scenery", "", "@"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
    assert_int_equal(scene_parse_name(files[i], &w, &h, &seed), 0);
  static const char *const malformed[] = {
      "@scene:",        "@scene:0x5",  "@scene:5",      "@scene:5x",     "@scene:5x5:",          "@scene:5x5:x",
      "@scene:30001x5", "@scene:-5x5", "@scene:5x5:1:", "@scene:5x5:1 ", "@scene:5x5:4294967296"};
  for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
    assert_int_equal(scene_parse_name(malformed[i], &w, &h, &seed), -1);
  assert_int_equal(w, 7); /* written only if the name is valid */
}

TEST(test_repeats) {
  int compared = 0;
  scoped_image a = render(123, 77, 5, NULL), b = render(123, 77, 5, NULL), other = render(123, 77, 6, NULL);
  assert_int_equal(differences(&a, &b, 0, 0, &compared), 0);
  assert_int_equal(compared, 123 * 77);
  assert_true(differences(&a, &other, 0, 0, &compared) > compared / 2);
}

/* The identity gives the plain scene, and a shift by whole pixels gives the shifted pixels exactly. */
TEST(test_views) {
  const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, shift[9] = {1, 0, 16, 0, 1, -8, 0, 0, 1};
  int compared = 0;
  scoped_image plain = render(160, 120, 2, NULL), same = render(160, 120, 2, identity),
               moved = render(160, 120, 2, shift);
  assert_int_equal(differences(&plain, &same, 0, 0, &compared), 0);
  assert_int_equal(differences(&plain, &moved, 16, -8, &compared), 0);
  assert_int_equal(compared, (160 - 16) * (120 - 8));
  assert_true(differences(&plain, &moved, 0, 0, &compared) > compared / 2);
}

/* The picture is not flat: its mean is no extreme, it varies, and it uses many grays. */
TEST(test_looks_like_a_picture) {
  hs_image image = render(320, 240, 1, NULL);
  double sum = 0.0, squares = 0.0;
  int used = 0;
  uint32_t histogram[256] = {0};
  for (int32_t y = 0; y < 240; y++)
    for (int32_t x = 0; x < 320; x++) {
      const double v = (double)pixel(&image, x, y);
      sum += v;
      squares += v * v;
      histogram[pixel(&image, x, y)]++;
    }
  for (int i = 0; i < 256; i++) used += histogram[i] > 0;
  const double mean = sum / (320.0 * 240.0), variance = squares / (320.0 * 240.0) - mean * mean;
  assert_true(mean > 60.0 && mean < 195.0);
  assert_true(variance > 20.0 * 20.0);
  assert_true(used > 128);
  hs_image_free(&image);
  scoped_image tiny = render(1, 1, 9, NULL);
}

TEST(test_bad_arguments) {
  const double singular[9] = {1, 2, 0, 2, 4, 0, 0, 0, 1};
  hs_image image = {0};
  assert_int_equal(hs_render_scene(10, 10, 1, singular, NULL, &image), HS_ERR_ARGUMENT);
  assert_null(image.data);
  assert_int_equal(hs_render_scene(10, 10, 1, NULL, NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_not_equal(hs_render_scene(0, 10, 1, NULL, NULL, &image), HS_OK);
  assert_int_not_equal(hs_render_scene(10, SCENE_MAX_SIDE + 1, 1, NULL, NULL, &image), HS_OK);
  assert_null(image.data);
}

/* An allocator that fails at the n-th request and counts allocated blocks. */
typedef struct failing_memory {
  int left, held;
} failing_memory;

static void *failing_alloc(size_t bytes, void *user) {
  failing_memory *m = user;
  if (m->left-- <= 0) return NULL;
  void *p = hs_memory_alloc(NULL, bytes);
  m->held += p != NULL;
  return p;
}

static void failing_release(void *pointer, void *user) {
  ((failing_memory *)user)->held -= pointer != NULL;
  hs_memory_release(NULL, pointer);
}

TEST(test_failing_memory) {
  int allowed = 0;
  for (;; allowed++) {
    failing_memory memory = {.left = allowed};
    const hs_allocator allocator = {failing_alloc, failing_release, &memory};
    hs_image image = {0};
    const hs_status st = hs_render_scene(50, 40, 3, NULL, &allocator, &image);
    if (st == HS_OK) {
      hs_image_free(&image);
      assert_int_equal(memory.held, 0);
      break;
    }
    assert_int_equal(st, HS_ERR_MEMORY);
    assert_null(image.data);
    assert_int_equal(memory.held, 0);
    assert_true(allowed < 1000);
  }
  assert_true(allowed >= 1);
}
