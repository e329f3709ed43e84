/*
 * With another rounding mode set by the caller, verification, poses, matching and feature files give the same bytes and
 * leave the caller's mode unchanged.
 */
#include <fenv.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/formats/formats.h"
#include "tests/support/verified.h"

static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { MODES = sizeof modes / sizeof modes[0], COUNT = 300 };

/* enter sets the rounding mode for the following calls. */
static void enter(int mode) { assert_int_equal(fesetround(mode), 0); }

static void leave(int mode) {
  const int there = fegetround();
  assert_int_equal(fesetround(FE_TONEAREST), 0);
  assert_int_equal(there, mode);
}

/* ------------------------------------------------------------------ geometry */

static void check_model(hs_geometry_model model, two_view_kind kind) {
  SCOPED_MEMORY verified *first = verified_new(), *v = verified_new();
  for (int m = 0; m < MODES; m++) {
    hs_pose pose, first_pose;
    two_view_make(kind, COUNT, 90, 0.4, 7, &v->scene);
    first->scene = v->scene;
    const two_view_scene *s = &v->scene;
    const hs_verify_options o = verified_options(model, s);
    enter(modes[m]);
    const hs_status status = hs_verify_points(s->a, s->b, COUNT, &o, v->inliers, &v->geometry);
    leave(modes[m]);
    assert_int_equal(status, HS_OK);
    assert_int_equal(v->geometry.found, 1);
    if (m == 0) *first = *v;
    assert_memory_equal(v->geometry.matrix, first->geometry.matrix, sizeof first->geometry.matrix);
    assert_memory_equal(&v->geometry.rms_error, &first->geometry.rms_error, sizeof(double));
    assert_memory_equal(v->inliers, first->inliers, COUNT);
    if (model != HS_ESSENTIAL) continue;
    enter(modes[m]);
    (void)hs_relative_pose(v->geometry.matrix, &s->camera_a, &s->camera_b, s->a, s->b, COUNT, v->inliers, &pose);
    leave(modes[m]);
    if (m == 0) first_pose = pose;
    assert_memory_equal(pose.rotation, first_pose.rotation, sizeof pose.rotation);
    assert_memory_equal(pose.translation, first_pose.translation, sizeof pose.translation);
  }
}

TEST(test_geometry) {
  check_model(HS_HOMOGRAPHY, TWO_VIEW_PLANE);
  check_model(HS_FUNDAMENTAL, TWO_VIEW_VOLUME);
  check_model(HS_ESSENTIAL, TWO_VIEW_VOLUME);
}

TEST(test_matching) {
  scoped_features a = {0}, b = {0};
  scoped_matches first = {0}, matches = {0};
  hs_match_options o;
  feature_maker_fill(&a, COUNT, FEATURES_UNIT_F32, 1);
  feature_maker_fill(&b, COUNT, FEATURES_UNIT_F32, 2);
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  o.ratio = 0; /* no ratio test, so that all pairs are kept */
  for (int m = 0; m < MODES; m++) {
    hs_matches *out = m == 0 ? &first : &matches;
    enter(modes[m]);
    const hs_status status = hs_match(NULL, &a, &b, &o, out);
    leave(modes[m]);
    assert_int_equal(status, HS_OK);
    assert_true(out->count > 0);
    assert_int_equal(out->count, first.count);
    assert_memory_equal(out->pairs, first.pairs, first.count * sizeof *first.pairs);
  }
}

/* ------------------------------------------------------------------ files */

static void assert_same_file(const char *path, const char *expected) {
  size_t size = 0, expected_size = 0;
  unsigned char *bytes = scratch_read_file(path, &size), *other = scratch_read_file(expected, &expected_size);
  assert_int_equal(size, expected_size);
  assert_memory_equal(bytes, other, size);
  free(bytes);
  free(other);
}

static void check_format(const scratch_folder *folder, const feature_format *format, const hs_features *features) {
  char first_name[32], name[32], first_path[SCRATCH_PATH_BYTES], path[SCRATCH_PATH_BYTES];
  hs_features first = {0};
  const hs_file_options o = {.struct_size = sizeof o, .format = format->id};
  snprintf(first_name, sizeof first_name, "first%s", format->endings[0]);
  snprintf(name, sizeof name, "other%s", format->endings[0]);
  scratch_folder_path(folder, first_name, first_path);
  scratch_folder_path(folder, name, path);
  for (int m = 0; m < MODES; m++) {
    hs_features read = {0};
    enter(modes[m]);
    const hs_status saved = hs_save_features(m == 0 ? first_path : path, features, &o);
    const hs_status loaded = saved == HS_OK ? hs_load_features(m == 0 ? first_path : path, &read, &o) : HS_OK;
    leave(modes[m]);
    if (m == 0 && saved == HS_ERR_UNSUPPORTED) return; /* this build has no zlib */
    assert_int_equal(saved, HS_OK);
    assert_int_equal(loaded, HS_OK);
    assert_same_file(m == 0 ? first_path : path, first_path);
    if (m == 0) {
      first = read;
      continue;
    }
    assert_int_equal(read.count, first.count);
    assert_memory_equal(read.keypoints, first.keypoints, first.count * sizeof *first.keypoints);
    hs_features_free(&read);
  }
  hs_features_free(&first);
}

TEST(test_files) {
  scoped_folder folder = scratch_folder_new();
  scoped_features features = {0};
  feature_maker_fill(&features, COUNT, FEATURES_U8, 3);
  for (size_t i = 0; format_at(i) != NULL; i++)
    if (format_at(i)->id != HS_FORMAT_COLMAP_DB) check_format(&folder, format_at(i), &features);
}

TEST(test_camera) {
  hs_colmap_camera first = {0}, camera;
  for (int m = 0; m < MODES; m++) {
    memset(&camera, 0, sizeof camera);
    enter(modes[m]);
    (void)hs_colmap_camera_init(&camera, 1031, 777, 0.0);
    leave(modes[m]);
    if (m == 0) first = camera;
    assert_memory_equal(&camera, &first, sizeof camera);
  }
}
