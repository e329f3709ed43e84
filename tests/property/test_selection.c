/*
 * Selection, masks and regions equal sorting and filtering the full list.
 */

#include "tests/support/test.h"

enum { WIDTH = 107, HEIGHT = 85, FEATURES_MAX = 20000 };

static hs_image scene;

/* The list whose features the comparison below ranks. */
static const hs_features *ranked;
static hs_selection ranked_by;

static int compare_rank(const void *a, const void *b) {
  const size_t i = *(const size_t *)a, j = *(const size_t *)b;
  const hs_keypoint *p = &ranked->keypoints[i], *q = &ranked->keypoints[j];
  const float u = ranked_by == HS_SELECT_SCALE ? p->sigma : p->response,
              v = ranked_by == HS_SELECT_SCALE ? q->sigma : q->response;
  if (u != v) return u > v ? -1 : 1;
  return i < j ? -1 : i > j;
}

/* Keeps the best `most` of the features kept so far. Features of equal rank are kept in list order. */
static void keep_best(const hs_features *full, bool *keep, size_t most, hs_selection by) {
  size_t *order = malloc(sizeof *order * (full->count + 1)), n = 0;
  assert_non_null(order);
  for (size_t i = 0; i < full->count; i++)
    if (keep[i]) order[n++] = i;
  ranked = full;
  ranked_by = by;
  qsort(order, n, sizeof *order, compare_rank);
  for (size_t i = most; i < n; i++) keep[order[i]] = false;
  free(order);
}

static hs_options full_options(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.max_features = 0;
  return o;
}

/* Selects levels by an independent definition: counts the keypoints of every level, then takes levels from the coarsest
 * on. */
static void keep_levels(const hs_features *full, bool *keep, size_t most) {
  enum { OCTAVES = 40, LEVELS = 16 };
  static size_t keypoints[OCTAVES][LEVELS];
  memset(keypoints, 0, sizeof keypoints);
  for (size_t i = 0; i < full->count; i++) {
    const hs_keypoint *k = &full->keypoints[i];
    const bool again = i > 0 && k->x == k[-1].x && k->y == k[-1].y && k->sigma == k[-1].sigma;
    if (!again) keypoints[k->octave + 1][k->level]++;
  }
  for (size_t i = 0; i < full->count; i++) {
    const hs_keypoint *k = &full->keypoints[i];
    size_t coarser = 0;
    for (int octave = k->octave; octave < OCTAVES - 1; octave++)
      for (int level = octave == k->octave ? k->level + 1 : 0; level < LEVELS; level++)
        coarser += keypoints[octave + 1][level];
    keep[i] = coarser <= most;
  }
}

TEST(test_whole_levels) {
  static bool keep[FEATURES_MAX];
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = full_options((hs_profile)p);
    o.selection = HS_SELECT_LEVELS;
    scoped_features full = extraction_once(&o, &scene);
    size_t distinct = 0;
    const size_t counts[] = {1, 2, 9, 30, 31, full.count / 2, full.count - 1, full.count, 1u << 30};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
      o.max_features = (int32_t)counts[i];
      scoped_features f = extraction_once(&o, &scene);
      memset(keep, 1, sizeof keep);
      keep_levels(&full, keep, counts[i]);
      extraction_check_filtered(&full, keep, &f, "whole levels");
      assert_true(f.count >= counts[i] || f.count == full.count);
      distinct += f.count < full.count && f.count > counts[i];
    }
    assert_true(distinct >= 3);
  }
}

TEST(test_max_features) {
  static bool keep[FEATURES_MAX];
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int by = HS_SELECT_RESPONSE; by <= HS_SELECT_SCALE; by++) {
      hs_options o = full_options((hs_profile)p);
      scoped_features full = extraction_once(&o, &scene);
      assert_true(full.count > 50 && full.count < FEATURES_MAX);
      const size_t counts[] = {1, 17, full.count / 2, full.count - 1, full.count};
      for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        o.max_features = (int32_t)counts[i];
        o.selection = (hs_selection)by;
        scoped_features f = extraction_once(&o, &scene);
        memset(keep, 1, sizeof keep);
        keep_best(&full, keep, counts[i], (hs_selection)by);
        extraction_check_filtered(&full, keep, &f, "max_features");
      }
    }
}

static int32_t rounded(float v) { return (int32_t)floorf(v + 0.5f); }

static bool in_region(const hs_keypoint *k, const hs_options *o) {
  const int32_t x = rounded(k->x), y = rounded(k->y);
  return x >= o->region_x && x < o->region_x + o->region_width && y >= o->region_y &&
         y < o->region_y + o->region_height;
}

static int32_t clamped(int32_t v, int32_t n) { return v < 0 ? 0 : (v < n ? v : n - 1); }

static bool in_mask(const hs_keypoint *k, const uint8_t *mask, size_t stride) {
  return mask[(size_t)clamped(rounded(k->y), HEIGHT) * stride + (size_t)clamped(rounded(k->x), WIDTH)] != 0;
}

/* Makes a mask of rectangles, some of them dropped. All values other than 0 count as kept. */
static void make_mask(uint8_t *mask, size_t stride) {
  memset(mask, 0xff, stride * HEIGHT);
  for (int32_t y = 0; y < HEIGHT; y++)
    for (int32_t x = 0; x < WIDTH; x++)
      mask[(size_t)y * stride + (size_t)x] = (uint8_t)(((x / 7) * 5 + (y / 9) * 3) % 4);
}

typedef struct filter_case {
  bool masked;
  int32_t region[4];
  int32_t most;
} filter_case;

/* Region and mask are applied together, before max_features. */
static const filter_case filters[] = {
    {false, {30, 20, 50, 40}, 0}, {false, {-10, -10, 50, 1000}, 0}, {false, {0, 0, WIDTH, HEIGHT}, 0},
    {false, {40, 30, 1, 1}, 0},   {true, {0, 0, 0, 0}, 0},          {true, {0, 0, 0, 0}, 20},
    {true, {20, 10, 70, 60}, 10},
};

static void check_filter(hs_profile profile, const filter_case *c, const hs_features *full) {
  enum { STRIDE = WIDTH + 13 };
  static uint8_t mask[STRIDE * HEIGHT];
  static bool keep[FEATURES_MAX];
  hs_options o = full_options(profile);
  o.region_x = c->region[0];
  o.region_y = c->region[1];
  o.region_width = c->region[2];
  o.region_height = c->region[3];
  o.max_features = c->most;
  make_mask(mask, STRIDE);
  const hs_image view = {.data = mask, .width = WIDTH, .height = HEIGHT, .stride_bytes = STRIDE};
  for (size_t i = 0; i < full->count; i++)
    keep[i] = (c->region[2] == 0 || in_region(&full->keypoints[i], &o)) &&
              (!c->masked || in_mask(&full->keypoints[i], mask, STRIDE));
  if (c->most > 0) {
    o.selection = HS_SELECT_SCALE;
    keep_best(full, keep, (size_t)c->most, o.selection);
  }
  scoped_context *context = extraction_context(&o);
  scoped_features f = {0};
  assert_int_equal(hs_extract(context, &scene, c->masked ? &view : NULL, &f), HS_OK);
  extraction_check_filtered(full, keep, &f, "filtered");
}

/* A region that contains no pixel of the image is an error. User keypoints ignore the region. */
TEST(test_regions_outside) {
  static const int32_t outside[][4] = {
      {WIDTH, 0, 5, 5}, {0, HEIGHT, 5, 5}, {-5, 0, 5, 5}, {0, -5, 5, 5}, {500, 500, INT32_MAX, 1}};
  const hs_keypoint keypoint = {.x = 30, .y = 30, .sigma = 3};
  for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
    hs_options o = full_options(HS_PROFILE_LOWE);
    o.region_x = outside[i][0];
    o.region_y = outside[i][1];
    o.region_width = outside[i][2];
    o.region_height = outside[i][3];
    scoped_context *context = extraction_context(&o);
    scoped_features f = {0};
    hs_status status;
    assert_int_equal(hs_extract(context, &scene, NULL, &f), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_last_error(context), "the region"));
    assert_int_equal(hs_describe(context, &scene, &keypoint, 1, &f, &status), HS_OK);
    assert_int_equal(status, HS_OK);
  }
}

TEST(test_masks_and_regions) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    const hs_options o = full_options((hs_profile)p);
    scoped_features full = extraction_once(&o, &scene);
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) check_filter((hs_profile)p, &filters[i], &full);
  }
}

TEST(test_empty_and_full_masks) {
  static uint8_t mask[WIDTH * HEIGHT];
  const hs_image view = {.data = mask, .width = WIDTH, .height = HEIGHT};
  scoped_context *c = extraction_context_of(HS_PROFILE_LOWE);
  scoped_features full = extraction_run(c, &scene), f = {0};
  memset(mask, 0, sizeof mask);
  assert_int_equal(hs_extract(c, &scene, &view, &f), HS_OK);
  assert_int_equal(f.count, 0);
  memset(mask, 1, sizeof mask);
  assert_int_equal(hs_extract(c, &scene, &view, &f), HS_OK);
  extraction_check_equal(&full, &f, "a mask of ones");
}

/* max_orientations keeps the strongest peaks. With 1, each keypoint keeps one of its features. */
TEST(test_max_orientations) {
  hs_options o = full_options(HS_PROFILE_LOWE);
  scoped_features full = extraction_once(&o, &scene);
  o.max_orientations = 1;
  scoped_features one = extraction_once(&o, &scene);
  size_t i = 0;
  assert_true(one.count < full.count);
  for (size_t n = 0; n < one.count; n++) { /* `one` is a subsequence: one feature from each run of equal positions */
    while (i < full.count && memcmp(&full.keypoints[i], &one.keypoints[n], sizeof *one.keypoints) != 0) i++;
    assert_true(i < full.count);
    if (n > 0)
      assert_false(one.keypoints[n].x == one.keypoints[n - 1].x && one.keypoints[n].y == one.keypoints[n - 1].y &&
                   one.keypoints[n].sigma == one.keypoints[n - 1].sigma);
  }
}

/* hs_detect returns no descriptors that selection could move. */
TEST(test_max_features_of_keypoints_alone) {
  hs_options o = full_options(HS_PROFILE_LOWE);
  o.max_features = 30;
  scoped_features whole = extraction_once(&o, &scene);
  scoped_context *context = NULL;
  scoped_features alone = {0};
  assert_int_equal(hs_create(&context, &o), HS_OK);
  assert_int_equal(hs_detect(context, &scene, NULL, &alone), HS_OK);
  assert_int_equal(alone.count, 30);
  assert_null(alone.descriptors);
  assert_memory_equal(alone.keypoints, whole.keypoints, 30 * sizeof *whole.keypoints);
}

BEFORE_TESTS() { scene = extraction_scene(WIDTH, HEIGHT, 11, NULL); }
