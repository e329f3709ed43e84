/*
 * Selection over a grid equals ranking the full list cell by cell; equalisation before a frame equals equalising the
 * picture separately.
 */

#include "tests/support/test.h"

enum { WIDTH = 173, HEIGHT = 119, FEATURES_MAX = 20000 };

static hs_image scene;

static hs_options full_options(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.max_features = 0;
  o.contrast = 0.01f;
  return o;
}

/* Returns whether feature i precedes feature j when both have the same rank or share a cell. */
static bool before(const hs_features *f, size_t i, size_t j, hs_selection by) {
  const hs_keypoint *p = &f->keypoints[i], *q = &f->keypoints[j];
  const float u = by == HS_SELECT_SCALE ? p->sigma : p->response, v = by == HS_SELECT_SCALE ? q->sigma : q->response;
  return u != v ? u > v : i < j;
}

static int32_t place_in(float v, int32_t size) {
  const int32_t p = (int32_t)floorf(v + 0.5f);
  return p < 0 ? 0 : (p >= size ? size - 1 : p);
}

/* Computes keep[i] by the header's definition, by counting the features that precede feature i. */
static void keep_spread(const hs_features *f, const hs_options *o, bool *keep) {
  static int32_t cell[FEATURES_MAX];
  static size_t rank[FEATURES_MAX];
  for (size_t i = 0; i < f->count; i++)
    cell[i] = place_in(f->keypoints[i].y, HEIGHT) * o->grid_rows / HEIGHT * o->grid_columns +
              place_in(f->keypoints[i].x, WIDTH) * o->grid_columns / WIDTH;
  for (size_t i = 0; i < f->count; i++) {
    rank[i] = 0;
    for (size_t j = 0; j < f->count; j++) rank[i] += cell[j] == cell[i] && before(f, j, i, o->selection);
  }
  for (size_t i = 0; i < f->count; i++) {
    size_t better = 0;
    for (size_t j = 0; j < f->count; j++)
      better += rank[j] < rank[i] || (rank[j] == rank[i] && before(f, j, i, o->selection));
    keep[i] = better < (size_t)o->max_features;
  }
}

TEST(test_grid) {
  static bool keep[FEATURES_MAX];
  static const int32_t grids[][2] = {{1, 1}, {4, 3}, {16, 9}, {3, 40}, {4096, 4096}};
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int by = HS_SELECT_RESPONSE; by <= HS_SELECT_SCALE; by++) {
      hs_options o = full_options((hs_profile)p);
      scoped_features full = extraction_once(&o, &scene);
      assert_true(full.count > 100 && full.count < FEATURES_MAX);
      const size_t counts[] = {1, 11, full.count / 3, full.count - 1, full.count};
      for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
          o.max_features = (int32_t)counts[i];
          o.selection = (hs_selection)by;
          o.grid_columns = grids[g][0];
          o.grid_rows = grids[g][1];
          o.threads = 1 + (int32_t)(i % 2);
          scoped_features f = extraction_once(&o, &scene);
          keep_spread(&full, &o, keep);
          assert_int_equal(f.count, counts[i]);
          extraction_check_filtered(&full, keep, &f, "grid");
        }
    }
}

/* A grid of one cell equals no grid. */
TEST(test_same_as_plain) {
  hs_options o = full_options(HS_PROFILE_LOWE), all = full_options(HS_PROFILE_LOWE);
  o.max_features = all.max_features = 50;
  o.grid_columns = o.grid_rows = 1;
  scoped_features a = extraction_once(&o, &scene), b = extraction_once(&all, &scene);
  extraction_check_equal(&b, &a, "one cell");
}

/* Without max_features a grid has no effect, so it is refused with a message that names the missing option. */
TEST(test_nothing_to_spread) {
  hs_options o = full_options(HS_PROFILE_LOWE);
  o.grid_columns = o.grid_rows = 5;
  hs_context *c = NULL;
  char message[256];
  assert_int_equal(hs_create_explained(&c, &o, message, sizeof message), HS_ERR_OPTION);
  assert_null(c);
  assert_non_null(strstr(message, "options.max_features"));
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(&o, 64, 64, &host, &device), HS_ERR_OPTION);
}

static hs_image equalized_scene(void) {
  hs_image image = extraction_scene(WIDTH, HEIGHT, 5, NULL);
  const hs_array a = {image.data, WIDTH, HEIGHT, image.stride_bytes, HS_ELEMENT_U8};
  assert_int_equal(hs_equalize(NULL, &a, (uint8_t *)(uintptr_t)image.data, image.stride_bytes), HS_OK);
  return image;
}

TEST(test_equalize) {
  hs_options o = full_options(HS_PROFILE_LOWE);
  scoped_image equalized = equalized_scene();
  scoped_features expected = extraction_once(&o, &equalized);
  hs_features plain = extraction_once(&o, &scene);
  o.equalize = 1;
  scoped_context *c = extraction_context(&o);
  scoped_features got = extraction_run(c, &scene);
  assert_true(plain.count != expected.count);
  extraction_check_equal(&expected, &got, "equalised first");
  hs_features_free(&plain);

  assert_int_equal(hs_submit(c, &scene, NULL), HS_OK);
  assert_int_equal(hs_wait(c, &got), HS_OK);
  extraction_check_equal(&expected, &got, "equalised in flight");

  /* describing the keypoints reads the equalised picture too */
  scoped_features described = {0};
  assert_int_equal(hs_describe(c, &scene, expected.keypoints, expected.count, &described, NULL), HS_OK);
  extraction_check_equal(&expected, &described, "described in the equalised picture");
}

/* Colour becomes gray by the documented weights before it is equalised. */
TEST(test_equalize_colour) {
  static uint8_t gray[WIDTH * HEIGHT], bgra[WIDTH * HEIGHT * 4];
  const uint8_t *in = scene.data;
  for (size_t i = 0; i < (size_t)WIDTH * HEIGHT; i++) {
    const uint8_t r = in[i], g = (uint8_t)(in[i] / 2 + 30), b = (uint8_t)(255 - in[i]);
    memcpy(bgra + 4 * i, (uint8_t[]){b, g, r, (uint8_t)i}, 4);
    gray[i] = (uint8_t)((9798u * r + 19235u * g + 3735u * b + 16384u) >> 15);
  }
  hs_options o = full_options(HS_PROFILE_OPENCV);
  o.equalize = 1;
  const hs_image of_gray = {.data = gray, .width = WIDTH, .height = HEIGHT};
  const hs_image of_colour = {.data = bgra, .width = WIDTH, .height = HEIGHT, .layout = HS_BGRA};
  scoped_features a = extraction_once(&o, &of_gray), b = extraction_once(&o, &of_colour);
  assert_true(a.count > 0);
  extraction_check_equal(&a, &b, "colour");
}

TEST(test_equalize_other_types) {
  hs_options o = full_options(HS_PROFILE_LOWE);
  o.equalize = 1;
  scoped_context *c = extraction_context(&o);
  scoped_image floats = extraction_as_floats(&scene);
  scoped_features f = {0};
  assert_int_equal(hs_extract(c, &floats, NULL, &f), HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(hs_last_error(c), "8-bit"));
  assert_int_equal(hs_submit(c, &floats, NULL), HS_ERR_UNSUPPORTED);
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK); /* the context is still usable */
}

/* Each allocation fails once. Then a frame allocates nothing and holds no more than predicted. */
TEST(test_memory) {
  scoped_counter counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_options o = full_options(HS_PROFILE_LOWE);
  o.allocator = &allocator;
  o.equalize = 1;
  o.grid_columns = o.grid_rows = 6;
  o.max_features = 40;
  scoped_context *c = extraction_context(&o);
  hs_features f = {0};
  size_t failures = 0;
  for (hs_status st = HS_ERR_MEMORY; st != HS_OK; failures++) {
    counter.fail_at = counter.made + 1 + failures;
    st = hs_extract(c, &scene, NULL, &f);
    assert_true(st == HS_OK || st == HS_ERR_MEMORY);
    counter.fail_at = 0;
    hs_features_free(&f);
    hs_destroy(c);
    c = extraction_context(&o);
  }
  assert_true(failures > 4);
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  const size_t made = counter.made;
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  assert_int_equal(counter.made, made);
  uint64_t host = 0, device = 0;
  hs_statistics s = {.struct_size = sizeof s};
  assert_int_equal(hs_workspace_query(&o, WIDTH, HEIGHT, &host, &device), HS_OK);
  assert_int_equal(hs_get_statistics(c, &s), HS_OK);
  assert_true(s.regrown_frames > 0 || s.workspace_bytes <= host);
  hs_features_free(&f);
  hs_destroy(c);
  o.max_memory_bytes = host / 2;
  c = extraction_context(&o);
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_LIMIT);
}

BEFORE_TESTS() { scene = extraction_scene(WIDTH, HEIGHT, 5, NULL); }
