/*
 * Frames of features in lists and files: their room, copies, what npz gives back, and what COLMAP's keypoints and Oxford's
 * ellipses are made of them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#include "pipeline/base/features.h"
#include "pipeline/formats/colmap/colmap_keypoints.h"
#include "pipeline/formats/common/byte_order.h"
#include "tests/support/feature_maker.h"
#include "tests/support/scratch_folder.h"

enum { COUNT = 5 };

static hs_frame frame_of(size_t i) { return (hs_frame){2.0f + (float)i, 0.25f, -0.5f, 3.0f}; }

/* A list with frames; freed by hs_features_free. */
static hs_features framed(void) {
  hs_features plain = {0}, f = {0};
  feature_maker_fill(&plain, COUNT, FEATURES_U8, 3);
  plain.frames = malloc(COUNT * sizeof *plain.frames);
  assert_non_null(plain.frames);
  for (size_t i = 0; i < COUNT; i++) plain.frames[i] = frame_of(i);
  assert_int_equal(features_copy(&f, &plain, NULL), HS_OK);
  assert_ptr_not_equal(f.frames, plain.frames);
  assert_memory_equal(f.frames, plain.frames, COUNT * sizeof *f.frames);
  free(plain.frames);
  plain.frames = NULL;
  hs_features_free(&plain);
  return f;
}

static void test_room(void **state) {
  (void)state;
  hs_features f = framed();
  const hs_frame *before = f.frames;
  assert_int_equal(features_reserve_framed(&f, COUNT - 1, HS_DESCRIPTOR_U8, NULL), HS_OK);
  assert_ptr_equal(f.frames, before); /* room is used again */
  assert_int_equal(features_reserve_framed(&f, 4 * COUNT, HS_DESCRIPTOR_U8, NULL), HS_OK);
  assert_true(f.frame_capacity >= 4 * COUNT);
  assert_int_equal(features_reserve(&f, COUNT, HS_DESCRIPTOR_U8, NULL), HS_OK);
  assert_null(f.frames);
  assert_int_equal(features_reserve_framed(&f, 0, HS_DESCRIPTOR_NONE, NULL), HS_OK);
  assert_non_null(f.frames);
  hs_features_free(&f);
  assert_null(f.frames);
}

/* Two lists that differ in frames alone are told apart, and no frames count as none. */
static void test_digest(void **state) {
  (void)state;
  hs_features f = framed();
  hs_frame *frames = f.frames;
  uint64_t with = 0, without = 0, other = 0;
  assert_int_equal(hs_digest_features(&f, &with), HS_OK);
  f.frames = NULL;
  assert_int_equal(hs_digest_features(&f, &without), HS_OK);
  assert_true(with != without);
  f.frames = frames;
  for (size_t i = 0; i < 4 * COUNT; i++) {
    float *const of_row[4] = {&frames[i / 4].a11, &frames[i / 4].a12, &frames[i / 4].a21, &frames[i / 4].a22};
    const float kept = *of_row[i % 4];
    *of_row[i % 4] += 1.0f;
    assert_int_equal(hs_digest_features(&f, &other), HS_OK);
    assert_true(other != with && other != without);
    *of_row[i % 4] = kept;
  }
  assert_int_equal(hs_digest_features(&f, &other), HS_OK);
  assert_true(other == with);
  hs_features_free(&f);
}

/* Saves and loads; the path is left in it. */
static hs_features through(const hs_features *f, hs_format format, const char *name, scratch_folder *folder,
                           char *path) {
  hs_file_options options;
  hs_features loaded = {0};
  assert_int_equal(hs_file_options_init(&options), HS_OK);
  options.format = format;
  scratch_folder_path(folder, name, path);
  assert_int_equal(hs_save_features(path, f, &options), HS_OK);
  assert_int_equal(hs_load_features(path, &loaded, &options), HS_OK);
  assert_int_equal(loaded.count, f->count);
  return loaded;
}

static void test_npz(void **state) {
  (void)state;
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  hs_features f = framed();
  scratch_folder_make(&folder);
  hs_features loaded = through(&f, HS_FORMAT_NPZ, "f.npz", &folder, path);
  assert_non_null(loaded.frames);
  assert_memory_equal(loaded.frames, f.frames, COUNT * sizeof *f.frames);
  hs_features_free(&loaded);
  hs_frame *frames = f.frames;
  f.frames = NULL;
  loaded = through(&f, HS_FORMAT_NPZ, "g.npz", &folder, path);
  assert_null(loaded.frames);
  f.frames = frames;
  f.frames[2].a21 = NAN;
  scratch_folder_path(&folder, "h.npz", path);
  assert_int_equal(hs_save_features(path, &f, NULL), HS_ERR_ARGUMENT);
  hs_features_free(&loaded);
  hs_features_free(&f);
  scratch_folder_remove(&folder);
}

/* The ellipse of each row is the image of a circle of 27 sigma^2: a x^2 + 2 b x y + c y^2 = 1 at the frame's columns. */
static void test_oxford(void **state) {
  (void)state;
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES], line[4096];
  hs_features f = framed();
  scratch_folder_make(&folder);
  hs_features loaded = through(&f, HS_FORMAT_OXFORD, "f.hesaff", &folder, path);
  assert_null(loaded.frames);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  for (int i = 0; i < 2; i++) assert_non_null(fgets(line, sizeof line, file));
  for (size_t i = 0; i < COUNT; i++) {
    double x, y, a, b, c;
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(sscanf(line, "%lf %lf %lf %lf %lf", &x, &y, &a, &b, &c), 5);
    const hs_frame frame = frame_of(i);
    const double columns[2][2] = {{(double)frame.a11, (double)frame.a21}, {(double)frame.a12, (double)frame.a22}};
    for (int k = 0; k < 2; k++) {
      const double u = columns[k][0], v = columns[k][1];
      assert_true(fabs(27.0 * (a * u * u + 2.0 * b * u * v + c * v * v) - 1.0) < 1e-6);
    }
    const double area = (double)(frame.a11 * frame.a22 - frame.a12 * frame.a21),
                 sigma = (double)loaded.keypoints[i].sigma;
    assert_true(fabs(sigma * sigma / area - 1.0) < 1e-5);
  }
  (void)fclose(file);
  hs_features_free(&loaded);
  hs_features_free(&f);
  scratch_folder_remove(&folder);
}

static void test_colmap(void **state) {
  (void)state;
  const hs_keypoint k = {.x = 10.0f, .y = 20.0f, .sigma = 2.0f};
  const hs_frame frame = {3.0f, 0.25f, 4.0f, 1.0f};
  const float expected[COLMAP_COLUMNS] = {10.5f, 20.5f, 3.0f, 0.25f, 4.0f, 1.0f};
  uint8_t row[COLMAP_KEYPOINT_BYTES];
  hs_keypoint back;
  colmap_frame_put(&k, &frame, row);
  for (size_t i = 0; i < COLMAP_COLUMNS; i++) assert_true(bytes_get_f32(row + 4 * i) == expected[i]);
  assert_null(colmap_keypoint_get(row, COLMAP_COLUMNS, &back));
  assert_true(back.x == 10.0f && back.y == 20.0f);
  assert_true(fabs((double)back.orientation - atan2(4.0, 3.0)) < 1e-6); /* the first column's direction */
  assert_true(fabs((double)back.sigma - 0.5 * (5.0 + sqrt(1.0625))) < 1e-5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_room), cmocka_unit_test(test_digest),
                                     cmocka_unit_test(test_npz), cmocka_unit_test(test_oxford),
                                     cmocka_unit_test(test_colmap)};
  return cmocka_run_group_tests_name("unit.frames", tests, NULL, NULL);
}
