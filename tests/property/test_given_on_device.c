/*
 * Keypoints given to a context of a GPU: the bytes and the statuses that a context of the CPU gives, whether they bring
 * their orientation or not, in any order, with some that cannot be described, and between frames that detect.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#include "tests/support/extraction.h"
#include "tests/support/skip.h"

/* Keypoints in front of a copy of which none is the library's any more. */
typedef struct given_list {
  hs_keypoint *keypoints;
  size_t count;
} given_list;

typedef enum given_kind {
  AS_FOUND,
  TO_ORIENT,
  MIXED,
  BY_SIGMA,
  AT_BORDERS,
  WITH_REFUSED,
  ALL_REFUSED,
  GIVEN_KINDS
} given_kind;

static const char *const kind_names[GIVEN_KINDS] = {"as found",   "to orient",    "mixed",      "by sigma",
                                                    "at borders", "some refused", "all refused"};

static hs_image scene;

static int set_up(void **state) {
  (void)state;
  scene = extraction_scene(333, 250, 7, NULL);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  hs_image_free(&scene);
  return 0;
}

static bool changed(given_kind kind, size_t i) {
  switch (kind) {
  case TO_ORIENT:
  case BY_SIGMA:
  case AT_BORDERS:
  case ALL_REFUSED:
    return true;
  case MIXED:
    return i % 2 == 1;
  case WITH_REFUSED:
    return i % 5 == 2;
  default:
    return false;
  }
}

/* Within three pixels of a border of the picture, of any size: beyond the last samples of coarse octaves, of windows larger
   than the coarsest and smaller than a sample. */
static void move_to_border(hs_keypoint *k, size_t i, int32_t width, int32_t height) {
  static const float sigmas[] = {0.01f, 1.0f, 6.0f, 20.0f, 60.0f, 200.0f, 1.0e8f};
  const float in = 0.5f * (float)(i % 7) - 0.5f, right = (float)(width - 1) - in, lower = (float)(height - 1) - in;
  if (i % 3 != 0) k->x = i % 2 ? in : right;
  if (i % 3 != 1) k->y = i % 4 < 2 ? in : lower;
  k->sigma = sigmas[i / 2 % 7];
  k->level = 0;
  if (i % 5 == 0) k->orientation = NAN;
}

/* A picture's own features, from the last to the first, as keypoints of a kind. */
static given_list list_of(const hs_features *found, given_kind kind) {
  given_list list = {malloc(sizeof *list.keypoints * (found->count + 1)), found->count};
  assert_non_null(list.keypoints);
  for (size_t i = 0; i < found->count; i++) {
    hs_keypoint *k = &list.keypoints[i];
    *k = found->keypoints[found->count - 1 - i];
    if (!changed(kind, i)) continue;
    if (kind == TO_ORIENT || kind == MIXED) k->orientation = NAN;
    if (kind == BY_SIGMA) k->level = 0, k->orientation += 40.0f;
    if (kind == AT_BORDERS) move_to_border(k, i, found->image_width, found->image_height);
    if (kind == WITH_REFUSED || kind == ALL_REFUSED) k->x = -50.0f;
  }
  return list;
}

/* Describes three times, which are kernel by kernel, recorded, and replayed; between them the context detects. */
static void check(hs_options o, const hs_image *image, const given_list *list, const char *what) {
  hs_features expected = {0}, got = {0}, found = {0};
  hs_status *statuses = malloc(sizeof *statuses * (2 * list->count + 1)), *here = statuses + list->count;
  assert_non_null(statuses);
  hs_context *c = extraction_context(&o);
  assert_int_equal(hs_describe(c, image, list->keypoints, list->count, &expected, statuses), HS_OK);
  hs_destroy(c);
  o.device = HS_DEVICE_CUDA;
  c = extraction_context(&o);
  for (int i = 0; i < 3; i++) {
    memset(here, 0xff, sizeof *here * list->count);
    assert_int_equal(hs_describe(c, image, list->keypoints, list->count, &got, here), HS_OK);
    extraction_check_equal(&expected, &got, what);
    assert_memory_equal(here, statuses, sizeof *here * list->count);
    assert_int_equal(hs_extract(c, image, NULL, &found), HS_OK);
  }
  hs_destroy(c);
  free(statuses);
  hs_features_free(&expected);
  hs_features_free(&got);
  hs_features_free(&found);
}

static void check_kinds(hs_options o, const hs_image *image) {
  hs_features found = extraction_once(&o, image);
  assert_true(found.count > 10);
  for (int kind = 0; kind < GIVEN_KINDS; kind++) {
    const given_list list = list_of(&found, (given_kind)kind);
    check(o, image, &list, kind_names[kind]);
    free(list.keypoints);
  }
  hs_features_free(&found);
}

static void test_every_profile(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  for (int p = 0; p < EXTRACTION_PROFILES; p++) check_kinds(extraction_options((hs_profile)p), &scene);
}

static void test_options(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.descriptor = HS_DESCRIPTOR_F32;
  o.upright = 1;
  check_kinds(o, &scene);
  o = extraction_options(HS_PROFILE_LOWE);
  o.first_octave = 0;
  o.scales = 4;
  o.max_orientations = 1;
  o.max_features = 12; /* does not apply */
  o.region_width = o.region_height = 100;
  check_kinds(o, &scene);
  o = extraction_options(HS_PROFILE_LOWE);
  o.descriptor = HS_DESCRIPTOR_NONE;
  check_kinds(o, &scene);
  o = extraction_options(HS_PROFILE_LOWE);
  o.equalize = 1;
  check_kinds(o, &scene);
  o = extraction_options(HS_PROFILE_COLMAP);
  o.dsp = 1;
  check_kinds(o, &scene);
  o = extraction_options(HS_PROFILE_LOWE);
  o.affine = 1;
  check_kinds(o, &scene);
}

static void test_variants(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_features found = extraction_once(&o, &scene);
  const given_list list = list_of(&found, MIXED);
  hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, NULL);
  hs_features expected = {0}, got = {0};
  hs_context *c = extraction_context(&o);
  assert_int_equal(hs_describe(c, &scene, list.keypoints, list.count, &expected, NULL), HS_OK);
  hs_destroy(c);
  expert.variant = "pyramid=uber,refine=plain,orient=warp-histogram,describe=multi-key";
  o.expert = &expert;
  o.device = HS_DEVICE_CUDA;
  c = extraction_context(&o);
  assert_int_equal(hs_describe(c, &scene, list.keypoints, list.count, &got, NULL), HS_OK);
  extraction_check_equal(&expected, &got, "other variants");
  hs_destroy(c);
  free(list.keypoints);
  hs_features_free(&found);
  hs_features_free(&expected);
  hs_features_free(&got);
}

/* Sizes and numbers that change from call to call. */
static void test_sequence(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_image tiny = extraction_scene(13, 40, 7, NULL), wide = extraction_scene(1203, 850, 9, NULL);
  const hs_image *images[] = {&scene, &wide, &tiny, &scene};
  hs_context *cpu = extraction_context(&o);
  o.device = HS_DEVICE_CUDA;
  hs_context *gpu = extraction_context(&o);
  hs_features expected = {0}, got = {0};
  for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
    hs_features found = extraction_run(cpu, images[i]);
    const given_list list = list_of(&found, MIXED);
    assert_int_equal(hs_describe(cpu, images[i], list.keypoints, list.count, &expected, NULL), HS_OK);
    assert_int_equal(hs_describe(gpu, images[i], list.keypoints, list.count, &got, NULL), HS_OK);
    extraction_check_equal(&expected, &got, "sizes that change");
    free(list.keypoints);
    hs_features_free(&found);
  }
  hs_statistics s = {.struct_size = sizeof s};
  assert_int_equal(hs_get_statistics(gpu, &s), HS_OK);
  assert_int_equal(s.frames, sizeof images / sizeof images[0]);
  assert_int_equal(s.features, expected.count);
  assert_int_equal(hs_describe(gpu, &scene, NULL, 0, &got, NULL), HS_OK);
  assert_int_equal(got.count, 0);
  hs_destroy(cpu);
  hs_destroy(gpu);
  hs_features_free(&expected);
  hs_features_free(&got);
  hs_image_free(&tiny);
  hs_image_free(&wide);
}

/* Keypoints of two orientations and more, so many that the list of features has to be made longer. */
static void test_many_orientations(void **state) {
  (void)state;
  if (!extraction_has_gpu()) skip_because(NEEDS_GPU);
  enum { COUNT = 1024 };
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_features found = extraction_once(&o, &scene), expected = {0}, got = {0};
  hs_keypoint *k = malloc(sizeof *k * COUNT);
  assert_non_null(k);
  size_t n = 0;
  for (size_t i = 0; n < COUNT; i = (i + 1) % (found.count - 1)) {
    const hs_keypoint *a = &found.keypoints[i], *b = a + 1;
    if (a->x != b->x || a->y != b->y || a->sigma != b->sigma) continue;
    k[n] = *a;
    k[n++].orientation = NAN;
  }
  hs_context *cpu = extraction_context(&o);
  o.device = HS_DEVICE_CUDA;
  hs_context *gpu = extraction_context(&o);
  assert_int_equal(hs_describe(cpu, &scene, k, COUNT, &expected, NULL), HS_OK);
  assert_true(expected.count >= (size_t)2 * COUNT);
  assert_int_equal(hs_describe(gpu, &scene, k, COUNT, &got, NULL), HS_OK);
  extraction_check_equal(&expected, &got, "keypoints of several orientations");
  hs_statistics s = {.struct_size = sizeof s};
  assert_int_equal(hs_get_statistics(gpu, &s), HS_OK);
  assert_int_equal(s.regrown_frames, 1);
  free(k);
  hs_destroy(cpu);
  hs_destroy(gpu);
  hs_features_free(&found);
  hs_features_free(&expected);
  hs_features_free(&got);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_profile), cmocka_unit_test(test_options),           cmocka_unit_test(test_variants),
      cmocka_unit_test(test_sequence),      cmocka_unit_test(test_many_orientations),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
