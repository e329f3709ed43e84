/*
 * A frame in tiles gives the untiled frame's bytes: for every profile, with first octaves doubled or not, tiles from the
 * smallest up, and everything that changes what a frame does. It holds the memory that was foretold, and no more.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "tests/support/extent.h"
#include "tests/support/extraction.h"

enum { WIDTH = 263, HEIGHT = 187 };

static hs_image scene;

/* A profile's options with another number of threads each time. */
static hs_options options_of(int profile) {
  static int32_t calls;
  hs_options o = extraction_options((hs_profile)profile);
  o.threads = 1 + calls++ % 4;
  return o;
}

/* Host memory of a frame as the query has it. */
static uint64_t query(const hs_options *o, const hs_image *image) {
  uint64_t host, device;
  assert_int_equal(hs_workspace_query(o, image->width, image->height, &host, &device), HS_OK);
  assert_int_equal(device, 0);
  return host;
}

static uint64_t query_within(hs_options o, const hs_image *image, uint64_t most) {
  o.max_memory_bytes = most;
  return query(&o, image);
}

/* Bytes of a context without a frame, which max_memory_bytes does not count. */
static uint64_t fixed_bytes(const hs_options *o) {
  hs_statistics s = {.struct_size = sizeof s};
  hs_context *c = extraction_context(o);
  assert_int_equal(hs_get_statistics(c, &s), HS_OK);
  hs_destroy(c);
  return s.workspace_bytes;
}

/* What the smallest tiles take. */
static uint64_t least_bytes(const hs_options *o, const hs_image *image) {
  return query_within(*o, image, 1) - fixed_bytes(o);
}

/* Everything that does not depend on where the work is done. */
static void check_statistics(const hs_context *a, const hs_context *b) {
  hs_statistics s = {.struct_size = sizeof s}, t = {.struct_size = sizeof t};
  assert_int_equal(hs_get_statistics(a, &s), HS_OK);
  assert_int_equal(hs_get_statistics(b, &t), HS_OK);
  assert_int_equal(s.candidates, t.candidates);
  assert_int_equal(s.keypoints, t.keypoints);
  assert_int_equal(s.features, t.features);
}

/* Compares a frame in tiles within `most` bytes with the untiled frame. Returns how many features there are. */
static size_t check_within(const hs_options *untiled, const hs_image *image, const hs_image *mask, uint64_t most,
                           const char *what) {
  hs_options tiled = *untiled;
  tiled.max_memory_bytes = most;
  if (query(&tiled, image) >= query(untiled, image))
    fail_msg("%s: %d x %d within %llu bytes needs no tiles, %llu are enough", what, image->width, image->height,
             (unsigned long long)most, (unsigned long long)query(untiled, image));
  hs_context *a = extraction_context(untiled), *b = extraction_context(&tiled);
  hs_features f = {0}, g = {0};
  assert_int_equal(hs_extract(a, image, mask, &f), HS_OK);
  const hs_status st = hs_extract(b, image, mask, &g);
  if (st != HS_OK) fail_msg("%s: %s", what, hs_last_error(b));
  extraction_check_equal(&f, &g, what);
  check_statistics(a, b);
  const size_t count = f.count;
  hs_features_free(&f);
  hs_features_free(&g);
  hs_destroy(a);
  hs_destroy(b);
  return count;
}

/* With the smallest tiles, with larger ones, and with those that are just not the whole picture. */
static size_t check_sizes(const hs_options *o, const hs_image *image, const hs_image *mask, const char *what) {
  const uint64_t least = least_bytes(o, image), whole = query(o, image) - fixed_bytes(o);
  assert_true(least < whole);
  const uint64_t caps[] = {least, least + (whole - least) / 4, whole - (whole - least) / 8};
  size_t count = 0;
  for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++)
    if (query_within(*o, image, caps[i]) < query(o, image)) count = check_within(o, image, mask, caps[i], what);
  return count;
}

static void test_profiles(void **state) {
  (void)state;
  static const char *const names[EXTRACTION_PROFILES] = {"lowe", "opencv", "vlfeat", "colmap"};
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++)
    for (int32_t first = -1; first <= 1; first++) {
      hs_options o = options_of(profile);
      o.first_octave = first;
      if (first > 0) o.threads = 1; /* scratch of several threads is more than levels as small as these */
      assert_true(check_sizes(&o, &scene, NULL, names[profile]) > 20);
    }
}

static void test_odd_sizes(void **state) {
  (void)state;
  static const int32_t sizes[][2] = {{1, 400}, {401, 3}, {37, 301}, {299, 41}, {129, 97}, {128, 96}, {65, 64}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    hs_image part = extraction_scene(sizes[i][0], sizes[i][1], 9, NULL);
    for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
      hs_options o = options_of(profile);
      o.contrast = 0.005f;
      o.first_octave = -(int32_t)(i % 2);
      const uint64_t least = least_bytes(&o, &part);
      if (query_within(o, &part, least) < query(&o, &part)) check_within(&o, &part, NULL, least, "odd size");
    }
    hs_image_free(&part);
  }
}

/* The plain C stages, and mixtures with the vector ones. */
static void test_variants(void **state) {
  (void)state;
  static const char *const variants[] = {"base=ref,blur=ref,halve=ref,detect=ref,orient=ref,describe=ref", "base=ref",
                                         "blur=ref", "detect=ref", "halve=ref,describe=ref"};
  hs_image small = extraction_scene(137, 97, 3, NULL);
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile += 2)
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
      for (int32_t first = -1; first <= 0; first++) {
        if (!extent_pairs(i + (size_t)profile / 2, (size_t)(first + 1), 2)) continue;
        hs_options o = options_of(profile);
        const hs_expert_options expert = extraction_expert((hs_profile)profile, variants[i]);
        o.expert = &expert;
        o.contrast = 0.01f;
        o.first_octave = first;
        const hs_image *image = first < 0 ? &small : &scene; /* of about as many samples */
        check_within(&o, image, NULL, least_bytes(&o, image), variants[i]);
      }
  hs_image_free(&small);
}

/* So many keypoints that lists and tiles overflow, and candidates that wander far. */
static void test_spots(void **state) {
  (void)state;
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++)
    for (int32_t fine = 0; fine <= 1; fine++) {
      hs_options o = options_of(profile);
      hs_image image = extraction_spots(fine ? 8 : 16, 413, 351);
      o.contrast = 0.0f;
      o.edge = 1000.0f;
      o.first_octave = 0;
      if (fine) o.sigma = 0.8f;
      o.descriptor = fine ? HS_DESCRIPTOR_NONE : HS_DESCRIPTOR_U8;
      o.max_features = 0;
      /* The lists grow beyond what the query counts them at. */
      const size_t count = check_within(&o, &image, NULL, query(&o, &image) - fixed_bytes(&o) - 1, "spots");
      assert_true(count > 100);
      hs_image_free(&image);
    }
}

/* ------------------------------------------------------------------ what else changes a frame */

typedef void (*change)(hs_options *o);

static void take_strongest(hs_options *o) { o->max_features = 40; }
static void take_largest(hs_options *o) {
  o->max_features = 25;
  o->selection = HS_SELECT_SCALE;
}
static void take_levels(hs_options *o) {
  o->max_features = 25;
  o->selection = HS_SELECT_LEVELS;
}
static void take_grid(hs_options *o) {
  o->max_features = 60;
  o->grid_columns = 5;
  o->grid_rows = 4;
}
static void take_region(hs_options *o) {
  o->region_x = 31;
  o->region_y = 17;
  o->region_width = 140;
  o->region_height = 90;
}
static void equalize(hs_options *o) { o->equalize = 1; }
static void pool(hs_options *o) { o->dsp = 1; }
static void pool_widely(hs_options *o) {
  o->dsp = 1;
  o->dsp_sizes = 7;
  o->dsp_smallest = 0.125f;
  o->dsp_largest = 4.0f;
}
static void pool_few_scales(hs_options *o) {
  pool_widely(o);
  o->scales = 1;
}
static void floats(hs_options *o) { o->descriptor = HS_DESCRIPTOR_F32; }
static void no_descriptors(hs_options *o) { o->descriptor = HS_DESCRIPTOR_NONE; }
static void root_upright(hs_options *o) {
  o->upright = 1;
  o->norm = HS_NORM_ROOT;
}
static void few_octaves(hs_options *o) { o->octaves = 2; }
static void one_octave(hs_options *o) {
  o->octaves = 1;
  o->first_octave = -1;
}
static void wide_filters(hs_options *o) {
  o->sigma = 4.0f;
  o->scales = 2;
}

static void test_changes(void **state) {
  (void)state;
  static const struct {
    change make;
    const char *what;
    bool large; /* windows are so wide that small pictures are no larger than a tile and what is about it */
  } changes[] = {{take_strongest, "strongest", false},
                 {take_largest, "largest", false},
                 {take_levels, "levels", false},
                 {take_grid, "grid", false},
                 {take_region, "region", false},
                 {equalize, "equalize", false},
                 {pool, "dsp", true},
                 {pool_widely, "dsp, widely", true},
                 {pool_few_scales, "dsp, one scale", true},
                 {floats, "floats", false},
                 {no_descriptors, "no descriptors", false},
                 {root_upright, "root, upright", false},
                 {few_octaves, "two octaves", false},
                 {one_octave, "one octave", false},
                 {wide_filters, "sigma 4", false}};
  hs_image large = extraction_scene(811, 587, 4, NULL);
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
    for (int profile = 0; profile < EXTRACTION_PROFILES; profile += 3) {
      if (!extent_pairs(i / 2, (size_t)profile / 3, 2)) continue;
      hs_options o = options_of(profile);
      o.contrast = 0.01f;
      o.first_octave = (int32_t)(i % 2) - 1;
      if (changes[i].large) o.first_octave = -1;
      changes[i].make(&o);
      const hs_image *image = changes[i].large ? &large : &scene;
      const uint64_t most = changes[i].large ? query(&o, image) - fixed_bytes(&o) - 1 : least_bytes(&o, image);
      assert_true(check_within(&o, image, NULL, most, changes[i].what) > 0);
    }
  hs_image_free(&large);
}

static void test_mask(void **state) {
  (void)state;
  static uint8_t bytes[WIDTH * HEIGHT];
  for (int32_t y = 0; y < HEIGHT; y++)
    for (int32_t x = 0; x < WIDTH; x++) bytes[y * WIDTH + x] = (x / 23 + y / 17) % 3 != 0;
  const hs_image mask = {.data = bytes, .width = WIDTH, .height = HEIGHT};
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
    hs_options o = options_of(profile);
    assert_true(check_within(&o, &scene, &mask, least_bytes(&o, &scene), "mask") > 20);
  }
}

static void test_other_samples(void **state) {
  (void)state;
  hs_image values = extraction_as_floats(&scene);
  hs_options o = options_of(HS_PROFILE_LOWE);
  assert_true(check_within(&o, &values, NULL, least_bytes(&o, &values), "floats") > 20);
  o.first_octave = 0;
  const hs_image colour = {
      .data = scene.data, .width = WIDTH / 3, .height = HEIGHT, .stride_bytes = WIDTH, .layout = HS_RGB};
  (void)check_within(&o, &colour, NULL, least_bytes(&o, &colour), "colour");
  hs_image_free(&values);
}

/* The other ways to a frame. */
static void test_calls(void **state) {
  (void)state;
  hs_options o = options_of(HS_PROFILE_LOWE);
  hs_features expected = extraction_once(&o, &scene), got = {0};
  o.max_memory_bytes = least_bytes(&o, &scene);
  hs_context *c = extraction_context(&o);
  for (int i = 0; i < 3; i++) assert_int_equal(hs_submit(c, &scene, NULL), HS_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hs_wait(c, &got), HS_OK);
    extraction_check_equal(&expected, &got, "in flight");
  }
  const hs_features *view;
  assert_int_equal(hs_extract_view(c, &scene, NULL, &view), HS_OK);
  extraction_check_equal(&expected, view, "view");
  assert_int_equal(hs_detect(c, &scene, NULL, &got), HS_OK);
  assert_int_equal(got.count, expected.count);
  assert_memory_equal(got.keypoints, expected.keypoints, expected.count * sizeof *got.keypoints);
  /* A small picture needs no tiles. */
  hs_image small = extraction_scene(40, 30, 1, NULL);
  assert_int_equal(hs_extract(c, &small, NULL, &got), HS_OK);
  hs_image_free(&small);
  /* Given keypoints are not described in tiles. */
  assert_int_equal(hs_describe(c, &scene, expected.keypoints, expected.count, &got, NULL), HS_ERR_LIMIT);
  hs_features_free(&got);
  hs_features_free(&expected);
  hs_destroy(c);
}

static int32_t stop_later(void *user, uint64_t done, uint64_t total) {
  uint64_t *last = user;
  assert_true(done <= total && done >= *last);
  *last = done;
  return 2 * done > total;
}

static void test_progress(void **state) {
  (void)state;
  hs_options o = options_of(HS_PROFILE_LOWE);
  hs_features expected = extraction_once(&o, &scene), got = {0};
  o.max_memory_bytes = least_bytes(&o, &scene);
  hs_context *c = extraction_context(&o);
  uint64_t last = 0;
  assert_int_equal(hs_set_progress(c, stop_later, &last), HS_OK);
  assert_int_equal(hs_extract(c, &scene, NULL, &got), HS_ERR_CANCELLED);
  assert_true(last > 0);
  assert_int_equal(hs_set_progress(c, NULL, NULL), HS_OK);
  assert_int_equal(hs_extract(c, &scene, NULL, &got), HS_OK);
  extraction_check_equal(&expected, &got, "after the end that was asked for");
  hs_features_free(&got);
  hs_features_free(&expected);
  hs_destroy(c);
}

/* ------------------------------------------------------------------ memory */

/* Memory alive, and the most there was. */
typedef struct memory_meter {
  size_t now, most;
} memory_meter;

enum { HEAD_BYTES = 64 };

static void *metered_alloc(size_t bytes, void *user) {
  memory_meter *m = user;
  unsigned char *p = aligned_alloc(HEAD_BYTES, (bytes + 2 * HEAD_BYTES - 1) / HEAD_BYTES * HEAD_BYTES);
  if (!p) return NULL;
  memcpy(p, &bytes, sizeof bytes);
  m->now += bytes;
  if (m->now > m->most) m->most = m->now;
  return p + HEAD_BYTES;
}

static void metered_release(void *pointer, void *user) {
  memory_meter *m = user;
  size_t bytes;
  if (!pointer) return;
  unsigned char *p = (unsigned char *)pointer - HEAD_BYTES;
  memcpy(&bytes, p, sizeof bytes);
  m->now -= bytes;
  free(p);
}

/* Asked for, promised, used: the query's bytes keep to the cap but for the context itself, and are what is held. */
static void test_memory(void **state) {
  (void)state;
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.contrast = 0.05f; /* few enough features for the lists' first size */
  const uint64_t whole = query(&o, &scene) - fixed_bytes(&o), least = least_bytes(&o, &scene);
  uint64_t before = 0;
  for (uint64_t most = least; most < whole; most += (whole - least) / 9) {
    memory_meter meter = {0};
    const hs_allocator allocator = {metered_alloc, metered_release, &meter};
    hs_options within = o;
    within.max_memory_bytes = most;
    within.allocator = &allocator;
    const uint64_t promised = query(&within, &scene);
    hs_context *c = extraction_context(&within);
    const size_t fixed = meter.now;
    hs_features f = extraction_run(c, &scene);
    const size_t results = f.capacity * (sizeof *f.keypoints + extraction_descriptor_bytes(&f));
    hs_statistics s = {.struct_size = sizeof s};
    assert_int_equal(hs_get_statistics(c, &s), HS_OK);
    assert_int_equal(s.regrown_frames, 0);
    assert_int_equal(s.workspace_bytes, promised);
    assert_true(promised >= before && promised - fixed <= most);
    assert_int_equal(meter.now, promised + results);
    assert_int_equal(meter.most, promised + results);
    before = promised;
    hs_features_free(&f);
    hs_destroy(c);
    assert_int_equal(meter.now, 0);
  }
}

/* Where the smallest tiles do not fit either, the message says what would be enough; and it is enough. */
static void test_too_little(void **state) {
  (void)state;
  hs_options o = options_of(HS_PROFILE_LOWE);
  o.max_memory_bytes = 100000;
  hs_context *c = extraction_context(&o);
  hs_features f = {0};
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_LIMIT);
  const char *needs = strstr(hs_last_error(c), "at least ");
  assert_non_null(needs);
  assert_non_null(strstr(needs, "even in the smallest tiles"));
  o.max_memory_bytes = strtoull(needs + strlen("at least "), NULL, 10);
  hs_destroy(c);
  c = extraction_context(&o);
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
  hs_features_free(&f);
  hs_destroy(c);
  o.max_memory_bytes--;
  c = extraction_context(&o);
  assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_ERR_LIMIT);
  hs_destroy(c);
}

/* What fits a new context fits one whose lists an earlier frame made long. */
static void test_after_long_lists(void **state) {
  (void)state;
  hs_options o = options_of(HS_PROFILE_LOWE);
  hs_image dense = extraction_spots(16, 413, 351), large = extraction_scene(700, 600, 3, NULL);
  hs_features f = {0};
  hs_context *c = NULL;
  o.contrast = 0.0f;
  o.edge = 1000.0f;
  o.first_octave = 0;
  o.max_memory_bytes = 1000000;
  for (;;) {
    c = extraction_context(&o);
    const hs_status st = hs_extract(c, &dense, NULL, &f);
    if (st == HS_OK) break;
    const char *needs = strstr(hs_last_error(c), "at least ");
    assert_int_equal(st, HS_ERR_LIMIT);
    assert_non_null(needs);
    o.max_memory_bytes = strtoull(needs + strlen("at least "), NULL, 10);
    hs_destroy(c);
  }
  hs_features expected = extraction_once(&o, &large);
  hs_statistics s = {.struct_size = sizeof s};
  assert_int_equal(hs_get_statistics(c, &s), HS_OK);
  assert_true(s.regrown_frames > 0);
  assert_int_equal(hs_extract(c, &large, NULL, &f), HS_OK);
  extraction_check_equal(&expected, &f, "after long lists");
  hs_features_free(&expected);
  hs_features_free(&f);
  hs_image_free(&dense);
  hs_image_free(&large);
  hs_destroy(c);
}

static int make_pictures(void **state) {
  (void)state;
  scene = extraction_scene(WIDTH, HEIGHT, 7, NULL);
  return 0;
}

static int free_pictures(void **state) {
  (void)state;
  hs_image_free(&scene);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_profiles), cmocka_unit_test(test_odd_sizes),     cmocka_unit_test(test_variants),
      cmocka_unit_test(test_spots),    cmocka_unit_test(test_changes),       cmocka_unit_test(test_mask),
      cmocka_unit_test(test_calls),    cmocka_unit_test(test_other_samples), cmocka_unit_test(test_progress),
      cmocka_unit_test(test_memory),   cmocka_unit_test(test_too_little),    cmocka_unit_test(test_after_long_lists)};
  return cmocka_run_group_tests(tests, make_pictures, free_pictures);
}
