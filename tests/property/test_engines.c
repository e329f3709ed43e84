/*
 * Frames on a GPU have the CPU's bytes. First a few of every kind, also for gpu_sanitizers.sh; then sweeps: options,
 * pixel layouts, grids, affine shapes, user keypoints. An argument selects tests by name.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/engine_tests.h"
#include "tests/support/extent.h"

static hs_image scene, half_mask; /* inputs of the sweeps */

static int set_up(void **state) {
  const int32_t width = extent_is_short() ? 161 : 317, height = extent_is_short() ? 125 : 239;
  scene = extraction_scene(width, height, 5, NULL);
  half_mask = extraction_scene(width, height, 8, NULL);
  for (int i = 0; i < width * height; i++) ((uint8_t *)(uintptr_t)half_mask.data)[i] &= 64;
  return engine_scene_set_up(state);
}

static int tear_down(void **state) {
  hs_image_free(&scene);
  hs_image_free(&half_mask);
  return engine_scene_tear_down(state);
}

/* ------------------------------------------------------------------ few of every kind */

ENGINE_TEST(ON_GPU, test_profiles) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int32_t first_octave = -1; first_octave <= 0; first_octave++) {
      hs_options o = engine_options((hs_profile)p);
      o.first_octave = first_octave;
      engine_check_some(&o, &engine_scene, NULL, "profile");
    }
}

ENGINE_TEST(ON_GPU, test_variants) {
  static const char *const variants[] = {"pyramid=levels",      "pyramid=dog",       "pyramid=uber",
                                         "pyramid=uber-chains", "refine=plain",      "orient=warp-histogram",
                                         "orient=thread",       "orient=warp",       "orient=block",
                                         "describe=atomic2",    "describe=multi-key"};
  hs_options o = engine_options(HS_PROFILE_LOWE);
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    const hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, variants[i]);
    o.expert = &expert;
    engine_check_some(&o, &engine_scene, NULL, variants[i]);
  }
}

ENGINE_TEST(ON_GPU, test_selection) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  o.max_features = 100;
  for (int s = HS_SELECT_RESPONSE; s <= HS_SELECT_SCALE; s++) {
    o.selection = (hs_selection)s;
    engine_check_some(&o, &engine_scene, NULL, "selection");
  }
  o.grid_columns = 5;
  o.grid_rows = 4;
  engine_check_some(&o, &engine_scene, NULL, "grid");
  o.grid_columns = o.grid_rows = 300; /* more cells than the device can select over */
  engine_check_some(&o, &engine_scene, NULL, "grid of many cells");
  o = engine_options(HS_PROFILE_COLMAP);
  o.max_features = 100;
  engine_check_some(&o, &engine_scene, NULL, "whole levels");
}

ENGINE_TEST(ON_GPU, test_places) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  hs_image mask = engine_scene;
  const size_t bytes = (size_t)engine_scene.width * (size_t)engine_scene.height;
  unsigned char *inside = calloc(bytes, 1);
  assert_non_null(inside);
  for (size_t i = 0; i < bytes; i++) inside[i] = i % 97 < 60;
  mask.data = inside;
  engine_check_some(&o, &engine_scene, &mask, "mask");
  o.region_x = o.region_y = 5;
  o.region_width = engine_scene.width / 2;
  o.region_height = engine_scene.height - 7;
  engine_check_some(&o, &engine_scene, NULL, "region");
  free(inside);
}

/* Covers types other than bytes, rows with padding, and numbers of levels that no multi-level kernel supports. */
ENGINE_TEST(ON_GPU, test_pictures) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  hs_image part = engine_scene, floats = extraction_as_floats(&engine_scene);
  part.stride_bytes = (size_t)engine_scene.width;
  part.width -= 3;
  engine_check_some(&o, &part, NULL, "rows with gaps");
  engine_check_some(&o, &floats, NULL, "floats");
  floats.range_low = -50.0f;
  floats.range_high = 500.0f;
  engine_check_some(&o, &floats, NULL, "floats of another range");
  o.sigma = 2.3f;
  o.scales = 4;
  engine_check_some(&o, &engine_scene, NULL, "four scales");
  o = engine_options(HS_PROFILE_LOWE);
  o.first_octave = 1;
  engine_check_some(&o, &engine_scene, NULL, "every second sample");
  hs_image_free(&floats);
}

/* Frames consist of few blocks, each at an end of rows and strips. */
ENGINE_TEST(ON_GPU, test_small_pictures) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  scoped_image small = extraction_scene(97, 61, 1, NULL), larger = extraction_scene(160, 121, 1, NULL);
  engine_check_some(&o, &small, NULL, "97x61");
  o.dsp = 1;
  engine_check_some(&o, &larger, NULL, "160x121, pooled");
  o.dsp = 0;
  o.affine = 1;
  engine_check_some(&o, &larger, NULL, "160x121, affine");
}

ENGINE_TEST(ON_GPU, test_equalized) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  o.equalize = 1;
  engine_check_some(&o, &engine_scene, NULL, "equalised");
}

ENGINE_TEST(ON_GPU, test_descriptors) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  o.upright = 1;
  o.norm = HS_NORM_ROOT;
  engine_check_some(&o, &engine_scene, NULL, "upright, square roots");
  o = engine_options(HS_PROFILE_LOWE);
  o.descriptor = HS_DESCRIPTOR_F32;
  o.dsp = 1;
  engine_check_some(&o, &engine_scene, NULL, "pooled floats");
  o.descriptor = HS_DESCRIPTOR_NONE;
  engine_check_some(&o, &engine_scene, NULL, "none");
}

ENGINE_TEST(ON_GPU, test_affine) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  o.affine = 1;
  engine_check_some(&o, &engine_scene, NULL, "affine");
  o.dsp = 1;
  engine_check_some(&o, &engine_scene, NULL, "affine, pooled");
}

/* ------------------------------------------------------------------ user keypoints */

typedef enum user_kind {
  AS_FOUND,
  TO_ORIENT,
  MIXED,
  BY_SIGMA,
  AT_BORDERS,
  WITH_REFUSED,
  ALL_REFUSED,
  USER_KINDS
} user_kind;

/* Moves a keypoint of any size to within three pixels of the picture's border: beyond the last samples of coarse
 * octaves, with windows larger than the coarsest octave and smaller than a sample. */
static void move_to_border(hs_keypoint *k, size_t i, int32_t width, int32_t height) {
  static const float sigmas[] = {0.01f, 1.0f, 6.0f, 20.0f, 60.0f, 200.0f, 1.0e8f};
  const float in = 0.5f * (float)(i % 7) - 0.5f, right = (float)(width - 1) - in, lower = (float)(height - 1) - in;
  if (i % 3 != 0) k->x = i % 2 ? in : right;
  if (i % 3 != 1) k->y = i % 4 < 2 ? in : lower;
  k->sigma = sigmas[i / 2 % 7];
  k->level = 0;
  if (i % 5 == 0) k->orientation = NAN;
}

/* Returns a picture's features in reverse order, as keypoints of one kind. */
static hs_keypoint *keypoints_of(const hs_features *found, user_kind kind) {
  hs_keypoint *list = malloc(sizeof *list * (found->count + 1));
  assert_non_null(list);
  for (size_t i = 0; i < found->count; i++) {
    hs_keypoint *k = &list[i];
    *k = found->keypoints[found->count - 1 - i];
    if (kind == TO_ORIENT || (kind == MIXED && i % 2 == 1)) k->orientation = NAN;
    if (kind == BY_SIGMA) k->level = 0, k->orientation += 40.0f;
    if (kind == AT_BORDERS) move_to_border(k, i, found->image_width, found->image_height);
    if (kind == ALL_REFUSED || (kind == WITH_REFUSED && i % 5 == 2)) k->x = -50.0f;
  }
  return list;
}

/* Describes as often as engine_check extracts; in between, the context detects. Statuses must also equal the CPU's. */
static void check_described(hs_options o, const hs_image *image, const hs_keypoint *list, size_t count) {
  scoped_features expected = {0}, got = {0};
  hs_status *statuses = malloc(sizeof *statuses * (2 * count + 1)), *here = statuses + count;
  hs_options on_cpu = o;
  on_cpu.device = HS_DEVICE_CPU;
  on_cpu.expert = NULL;
  assert_non_null(statuses);
  scoped_context *cpu = extraction_context(&on_cpu), *gpu = extraction_context(&o);
  assert_int_equal(hs_describe(cpu, image, list, count, &expected, statuses), HS_OK);
  for (int i = 0; i < 3; i++) {
    memset(here, 0xff, sizeof *here * count);
    assert_int_equal(hs_describe(gpu, image, list, count, &got, here), HS_OK);
    extraction_check_equal(&expected, &got, "user keypoints");
    assert_memory_equal(here, statuses, sizeof *here * count);
    assert_int_equal(hs_extract(gpu, image, NULL, &got), HS_OK);
  }
  free(statuses);
}

/* Checks the kinds k of keypoints with k % step == first. */
static void check_user_keypoints(const hs_options *o, const hs_image *image, int first, int step) {
  scoped_features found = engine_expected(o, image, NULL);
  assert_true(found.count > 10);
  for (int kind = first; kind < USER_KINDS; kind += step) {
    SCOPED_MEMORY hs_keypoint *list = keypoints_of(&found, (user_kind)kind);
    check_described(*o, image, list, found.count);
  }
}

/* Only two kinds, for runs under a sanitizer: unchanged and mixed. */
ENGINE_TEST(ON_GPU, test_given) {
  const hs_options o = engine_options(HS_PROFILE_LOWE);
  check_user_keypoints(&o, &engine_scene, AS_FOUND, MIXED);
}

ENGINE_TEST(ON_GPU, test_user_keypoints) {
  hs_options o = engine_options(HS_PROFILE_LOWE);
  const hs_expert_options expert =
      extraction_expert(HS_PROFILE_LOWE, "pyramid=uber,refine=plain,orient=warp-histogram,describe=multi-key");
  check_user_keypoints(&o, &scene, 0, extent_is_short() ? 2 : 1);
  o.expert = &expert;
  check_user_keypoints(&o, &scene, MIXED, USER_KINDS);
  for (int p = HS_PROFILE_LOWE + 1; p < EXTRACTION_PROFILES; p++) {
    o = engine_options((hs_profile)p);
    check_user_keypoints(&o, &scene, p % 2, extent_is_short() ? 4 : 2);
  }
  for (int k = 0; k < 6; k++) {
    o = engine_options(k == 4 ? HS_PROFILE_COLMAP : HS_PROFILE_LOWE);
    if (k == 0) o.descriptor = HS_DESCRIPTOR_F32, o.upright = 1;
    if (k == 1) o.first_octave = 0, o.scales = 4, o.max_orientations = 1;
    /* limits that do not apply to user keypoints */
    if (k == 1) o.max_features = 12, o.region_width = o.region_height = 100;
    if (k == 2) o.descriptor = HS_DESCRIPTOR_NONE;
    if (k == 3) o.equalize = 1;
    if (k == 4) o.dsp = 1;
    if (k == 5) o.affine = 1;
    check_user_keypoints(&o, &scene, MIXED + k % 3, 3);
  }
}

/* Sizes and numbers of keypoints change between calls. */
ENGINE_TEST(ON_GPU, test_user_keypoints_by_turns) {
  hs_options o = engine_options(HS_PROFILE_LOWE), on_cpu = o;
  on_cpu.device = HS_DEVICE_CPU;
  scoped_image tiny = extraction_scene(13, 40, 7, NULL);
  scoped_image wide = extraction_scene(1203, extent_is_short() ? 170 : 850, 9, NULL);
  const hs_image *images[] = {&scene, &wide, &tiny, &scene};
  enum { IMAGES = sizeof images / sizeof images[0] };
  scoped_context *cpu = extraction_context(&on_cpu), *gpu = extraction_context(&o);
  scoped_features expected = {0}, got = {0};
  for (size_t i = 0; i < IMAGES; i++) {
    scoped_features found = extraction_run(cpu, images[i]);
    SCOPED_MEMORY hs_keypoint *list = keypoints_of(&found, MIXED);
    assert_int_equal(hs_describe(cpu, images[i], list, found.count, &expected, NULL), HS_OK);
    assert_int_equal(hs_describe(gpu, images[i], list, found.count, &got, NULL), HS_OK);
    extraction_check_equal(&expected, &got, "sizes that change");
  }
  hs_statistics s = statistics_of(gpu);
  assert_int_equal(s.frames, IMAGES);
  assert_int_equal(s.features, expected.count);
  assert_int_equal(hs_describe(gpu, &scene, NULL, 0, &got, NULL), HS_OK);
  assert_int_equal(got.count, 0);
}

/* So many keypoints have two or more orientations that the feature list must grow. */
ENGINE_TEST(ON_GPU, test_many_orientations) {
  enum { COUNT = 1024 };
  hs_options o = engine_options(HS_PROFILE_LOWE), on_cpu = o;
  on_cpu.device = HS_DEVICE_CPU;
  scoped_features found = engine_expected(&o, &scene, NULL), expected = {0}, got = {0};
  static hs_keypoint k[COUNT];
  size_t n = 0;
  for (size_t i = 0; n < COUNT; i = (i + 1) % (found.count - 1)) {
    const hs_keypoint *a = &found.keypoints[i], *b = a + 1;
    if (a->x != b->x || a->y != b->y || a->sigma != b->sigma) continue;
    k[n] = *a;
    k[n++].orientation = NAN;
  }
  scoped_context *cpu = extraction_context(&on_cpu), *gpu = extraction_context(&o);
  assert_int_equal(hs_describe(cpu, &scene, k, COUNT, &expected, NULL), HS_OK);
  assert_true(expected.count >= (size_t)2 * COUNT);
  assert_int_equal(hs_describe(gpu, &scene, k, COUNT, &got, NULL), HS_OK);
  extraction_check_equal(&expected, &got, "keypoints of several orientations");
  hs_statistics s = statistics_of(gpu);
  assert_int_equal(s.regrown_frames, 1);
}

/* ------------------------------------------------------------------ sweeps */

static void set_option(hs_options *o, int k) {
  static const hs_descriptor_type types[] = {HS_DESCRIPTOR_F32, HS_DESCRIPTOR_U8, HS_DESCRIPTOR_NONE};
  if (k == 0) o->max_features = 70;
  if (k == 1) o->dsp = 1;
  if (k == 2) o->dsp = 1, o->dsp_sizes = 16, o->dsp_smallest = 0.125f, o->dsp_largest = 4.0f, o->octaves = 3;
  if (k == 3) o->upright = 1, o->first_octave = 0;
  if (k == 4) o->norm = HS_NORM_ROOT, o->descriptor = HS_DESCRIPTOR_F32;
  if (k == 5) o->descriptor = HS_DESCRIPTOR_NONE, o->max_orientations = 1;
  if (k == 6) o->sigma = 3.5f, o->scales = 1;
  if (k == 7) o->scales = 5, o->selection = HS_SELECT_LEVELS, o->max_features = 100;
  if (k == 8) o->grid_columns = 5, o->grid_rows = 4, o->max_features = 60;
  if (k == 9) o->grid_columns = 300, o->grid_rows = 300, o->max_features = 60;
  if (k == 10) o->equalize = 1;
  if (k == 11) o->region_x = 40, o->region_y = 30, o->region_width = 100, o->region_height = 90;
  if (k == 12) o->contrast = 0.0f, o->edge = 1000.0f; /* gives many features, some with long shapes */
  /* The options from here on are used without affine shape only. */
  if (k == 13) o->first_octave = 2;
  if (k == 14) o->selection = HS_SELECT_LEVELS, o->max_features = 100000;
  if (k == 15) o->upsample = HS_UPSAMPLE_OPENCV;
  if (k == 16) o->upsample = HS_UPSAMPLE_ALIGNED;
  if (k >= 17) o->descriptor = types[k - 17], o->dsp = k == 17, o->norm = k == 19 ? HS_NORM_ROOT : o->norm;
}
enum { OPTIONS_AFFINE = 13, OPTIONS = 20 };

/* Checks each option with a profile on a GPU; some options also split with the CPU, in flight, and from device
 * memory. */
static void check_options(int count, bool affine) {
  char name[48];
  for (int k = 0; k < count; k++) {
    if (!extent_pairs((size_t)k, affine, 2)) continue;
    hs_options o = engine_options(k % 5 == 4 ? HS_PROFILE_VLFEAT : k > 13 ? (hs_profile)(k % 4) : HS_PROFILE_LOWE);
    o.affine = affine;
    set_option(&o, k);
    snprintf(name, sizeof name, "options %d%s", k, affine ? ", affine" : "");
    assert_true(engine_check(&o, &scene, NULL, name) > 0);
    if (k % 6 == 2) engine_check_ways(&o, &scene, name);
    o.device = HS_DEVICE_HYBRID;
    o.split = 1 + k % 5;
    if (k % 3 != 1) engine_check(&o, &scene, NULL, name);
  }
}

ENGINE_TEST(ON_GPU, test_options) { check_options(OPTIONS, false); }

ENGINE_TEST(ON_GPU, test_affine_options) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = engine_options((hs_profile)p);
    o.affine = 1;
    assert_true(engine_check(&o, &scene, p % 2 ? &half_mask : NULL, "affine") > 50);
  }
  check_options(OPTIONS_AFFINE, true);
}

ENGINE_TEST(ON_GPU, test_variants_of_options) {
  static const char *const names[] = {"describe=atomic2", "describe=multi-key", "orient=warp-histogram",
                                      "pyramid=uber,refine=plain,orient=warp-histogram,describe=multi-key"};
  for (int i = 0; i < 8; i++) {
    hs_options o = engine_options(HS_PROFILE_LOWE);
    const hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, names[i / 2]);
    o.expert = &expert;
    o.affine = i < 6;
    o.dsp = i % 2;
    engine_check_some(&o, &scene, NULL, names[i / 2]);
  }
}

/* Patches of affine shapes extend beyond every side, in levels smaller than the patch. */
ENGINE_TEST(ON_GPU, test_small_affine_pictures) {
  static const int32_t sizes[][2] = {{1, 1}, {5, 7}, {16, 12}, {23, 40}, {64, 9}, {61, 64}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (int upright = 0; upright < 2; upright++) {
      hs_options o = engine_options(HS_PROFILE_LOWE);
      scoped_image image = extraction_scene(sizes[i][0], sizes[i][1], 3, NULL);
      o.affine = 1;
      o.upright = upright;
      o.contrast = 0.0f;
      (void)engine_check(&o, &image, NULL, "a small picture");
    }
}

/* There are so many affine keypoints that lists overflow at first and each warp processes several; some shapes are
 * long. */
ENGINE_TEST(ON_GPU, test_many_affine) {
  const int32_t side = extent_is_short() ? 240 : 600;
  scoped_image image = extraction_scene(side, side, 3, NULL);
  hs_options o = engine_options(HS_PROFILE_LOWE);
  o.affine = 1;
  o.contrast = 0.002f;
  o.edge = 100.0f;
  assert_true(engine_check(&o, &image, NULL, "many") > (size_t)(side * side / 60));
}

/* Returns the scene in a layout and type, with colours derived from its gray, and with row padding. The caller frees
 * the pixels with free(). */
static hs_image in_layout(hs_pixel_layout layout, bool wide) {
  static const int32_t channels_of[] = {1, 2, 3, 3, 4, 4};
  const int32_t channels = channels_of[layout], width = scene.width, height = scene.height;
  const size_t sample = wide ? 2 : 1, stride = (size_t)(width * channels + 3) * sample;
  uint8_t *bytes = malloc(stride * (size_t)height);
  assert_non_null(bytes);
  memset(bytes, 77, stride * (size_t)height);
  for (int32_t y = 0; y < height; y++)
    for (int32_t x = 0; x < width * channels; x++) {
      const uint8_t gray = ((const uint8_t *)scene.data)[y * width + x / channels];
      const uint8_t made[4] = {(uint8_t)(gray / 3 + 40), (uint8_t)(255 - gray), (uint8_t)(gray / 2), (uint8_t)x};
      uint8_t *to = bytes + (size_t)y * stride + (size_t)x * sample;
      const uint16_t value = (uint16_t)(made[x % channels] * (wide ? 200 : 1));
      if (wide)
        memcpy(to, &value, sizeof value);
      else
        *to = (uint8_t)value;
    }
  return (hs_image){.data = bytes,
                    .width = width,
                    .height = height,
                    .stride_bytes = stride,
                    .layout = layout,
                    .type = wide ? HS_U16 : HS_U8};
}

/* One context extracts every layout and type, alternating with and without a mask, plain and equalised. */
ENGINE_TEST(ON_GPU, test_layouts) {
  for (int i = 0; i < 2 * (HS_BGRA + 1); i++) {
    if (!extent_pairs((size_t)i / 2, (size_t)i % 2, 2)) continue;
    hs_options o = engine_options(HS_PROFILE_LOWE);
    hs_image image = in_layout((hs_pixel_layout)(i / 2), i % 4 == 2);
    o.equalize = i % 2;
    hs_features expected[2] = {engine_expected(&o, &image, NULL), engine_expected(&o, &image, &half_mask)}, got = {0};
    assert_true(expected[1].count > 10 && expected[1].count < expected[0].count);
    hs_context *gpu = extraction_context(&o);
    for (int frame = 0; frame < 4; frame++) {
      assert_int_equal(hs_extract(gpu, &image, frame % 2 ? &half_mask : NULL, &got), HS_OK);
      extraction_check_equal(&expected[frame % 2], &got, "a layout");
    }
    if (o.equalize) engine_check_ways(&o, &image, "a layout");
    hs_destroy(gpu);
    hs_features_free(&expected[0]);
    hs_features_free(&expected[1]);
    hs_features_free(&got);
    free((void *)(uintptr_t)image.data);
  }
}

/* A constant picture and a picture of one pixel are equalised. */
ENGINE_TEST(ON_GPU, test_nothing_to_spread) {
  uint8_t bytes[40 * 30];
  memset(bytes, 93, sizeof bytes);
  const hs_image plain = {.data = bytes, .width = 40, .height = 30}, pixel = {.data = bytes, .width = 1, .height = 1};
  hs_options o = engine_options(HS_PROFILE_LOWE);
  o.equalize = 1;
  assert_int_equal(engine_check(&o, &plain, NULL, "one value"), 0);
  assert_int_equal(engine_check(&o, &pixel, NULL, "one pixel"), 0);
}

/* Cells hold few or many features. One picture repeats a block and therefore has features of equal response. */
ENGINE_TEST(ON_GPU, test_grids) {
  enum { BLOCK = 64, SIDE = 4 * BLOCK };
  static const int32_t grids[][2] = {{1, 1}, {3, 2}, {1, 7}, {8, 6}, {64, 64}, {256, 256}, {300, 300}};
  static const int32_t counts[] = {1, 5, 60, 201, 5000};
  static uint8_t bytes[SIDE * SIDE];
  hs_image block = extraction_scene(BLOCK, BLOCK, 9, NULL);
  for (int y = 0; y < SIDE; y++)
    for (int x = 0; x < SIDE; x++) bytes[y * SIDE + x] = ((const uint8_t *)block.data)[y % BLOCK * BLOCK + x % BLOCK];
  hs_image_free(&block);
  const hs_image repeated = {.data = bytes, .width = SIDE, .height = SIDE};
  for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
    for (size_t n = g % 2; n < sizeof counts / sizeof counts[0]; n += 2) {
      if (!extent_pairs(g, n / 2 % 2, 2)) continue;
      hs_options o = engine_options((hs_profile)(g % EXTRACTION_PROFILES));
      const hs_image *image = (g + n) / 2 % 2 ? &scene : &repeated;
      o.grid_columns = grids[g][0];
      o.grid_rows = grids[g][1];
      o.max_features = counts[n];
      o.selection = (hs_selection)((g + n / 2) % 3);
      (void)engine_check(&o, image, NULL, "over a grid");
      if (n < 2) engine_check_ways(&o, image, "over a grid");
    }
}

TESTS_BETWEEN(set_up, tear_down)
