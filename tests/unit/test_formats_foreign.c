/*
 * Files that other programs made (tests/data/formats, with the programs that wrote them) and files made by
 * hand after the documented layouts.
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

#include "pipeline/include/hartsift.h"
#include "tests/support/feature_maker.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/skip.h"

enum { ROWS = 5, CELL_BINS = 8, PATH_BYTES = 1024 };

static const char *data_path(const char *name, char path[PATH_BYTES]) {
  (void)snprintf(path, PATH_BYTES, "%s/tests/data/formats/%s", HARTSIFT_SOURCE_DIR, name);
  return path;
}

static hs_features load_data(const char *name) {
  char path[PATH_BYTES];
  char message[256] = "";
  hs_features features = {0};
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  hs_status status = hs_load_features(data_path(name, path), &features, &options);
  if (status == HS_ERR_UNSUPPORTED && strstr(message, "no zlib")) skip_because("built without zlib");
  if (status != HS_OK) fail_msg("%s: status %d, %s", name, (int)status, message);
  assert_true(feature_maker_consistent(&features));
  return features;
}

/* The values that the programs beside the data write, recomputed. */
static void check_numpy(const hs_features *features, bool with_extras) {
  assert_int_equal(features->count, ROWS);
  for (int i = 0; i < ROWS; i++) {
    const hs_keypoint *k = &features->keypoints[i];
    assert_true(k->x == 10.25f + 3.0f * (float)i);
    assert_true(k->y == 7.5f + 2.0f * (float)i);
    assert_true(k->sigma == 1.5f + 0.25f * (float)i);
    assert_true(k->orientation == 0.5f + (float)i);
    assert_true(k->response == (with_extras ? (float)i / 64.0f : 0.0f));
    assert_int_equal(k->octave, with_extras ? i - 1 : 0);
  }
  assert_int_equal(features->image_width, with_extras ? 640 : 0);
  assert_int_equal(features->image_height, with_extras ? 480 : 0);
}

static void check_entries(const hs_features *features, float scale) {
  for (int i = 0; i < ROWS * HS_DESCRIPTOR_LENGTH; i++) {
    int entry = (i / HS_DESCRIPTOR_LENGTH * 7 + i % HS_DESCRIPTOR_LENGTH) % 256;
    if (features->descriptor_type == HS_DESCRIPTOR_U8)
      assert_int_equal(((const uint8_t *)features->descriptors)[i], entry);
    else
      assert_true(((const float *)features->descriptors)[i] == (float)entry * scale);
  }
}

static void check_numpy_file(const char *name, hs_descriptor_type type, bool with_extras) {
  hs_features features = load_data(name);
  check_numpy(&features, with_extras);
  assert_int_equal(features.descriptor_type, type);
  if (type != HS_DESCRIPTOR_NONE) check_entries(&features, 1.0f / 256.0f);
  hs_features_free(&features);
}

static void test_numpy_stored(void **state) {
  (void)state;
  check_numpy_file("numpy_u8.npz", HS_DESCRIPTOR_U8, true);
}

static void test_numpy_deflated(void **state) {
  (void)state;
  check_numpy_file("numpy_deflated_f32.npz", HS_DESCRIPTOR_F32, true);
}

static void test_numpy_other_types(void **state) {
  (void)state;
  check_numpy_file("numpy_other_types.npz", HS_DESCRIPTOR_F32, true);
}

static void test_numpy_no_descriptors(void **state) {
  (void)state;
  check_numpy_file("numpy_no_descriptors.npz", HS_DESCRIPTOR_NONE, false);
}

static void check_opencv_file(const char *name, hs_descriptor_type type) {
  hs_features features = load_data(name);
  assert_int_equal(features.count, ROWS);
  assert_int_equal(features.descriptor_type, type);
  for (int i = 0; i < ROWS; i++) {
    const hs_keypoint *k = &features.keypoints[i];
    assert_true(k->x == 10.25f + 3.0f * (float)i);
    assert_true(k->y == 7.5f + 2.0f * (float)i);
    assert_true(k->sigma == 1.5f + 0.25f * (float)i);
    assert_true(fabs((double)k->orientation - (45.0 + 60.0 * i) * 3.14159265358979 / 180.0) < 1e-6);
    assert_true(k->response == (float)i / 64.0f);
    assert_int_equal(k->octave, i - 1);
    assert_int_equal(k->level, 1 + i % 3);
  }
  check_entries(&features, 1.0f);
  hs_features_free(&features);
}

static void test_opencv_storage(void **state) {
  (void)state;
  check_opencv_file("opencv_f.yml", HS_DESCRIPTOR_F32);
  check_opencv_file("opencv_u.yml", HS_DESCRIPTOR_U8);
}

/* The printed lines again, read by the C library, cells turned into UBC order. */
static void test_vlfeat_program_output(void **state) {
  (void)state;
  char path[PATH_BYTES];
  hs_features features = load_data("vlfeat.sift");
  FILE *file = fopen(data_path("vlfeat.sift", path), "r");
  assert_non_null(file);
  assert_int_equal(features.descriptor_type, HS_DESCRIPTOR_U8);
  assert_int_equal(features.count, 13);
  for (size_t i = 0; i < features.count; i++) {
    const hs_keypoint *k = &features.keypoints[i];
    float place[4];
    assert_int_equal(fscanf(file, "%f %f %f %f", &place[0], &place[1], &place[2], &place[3]), 4);
    assert_true(k->x == place[0] && k->y == place[1] && k->sigma == place[2] && k->orientation == place[3]);
    const uint8_t *descriptor = (const uint8_t *)features.descriptors + i * HS_DESCRIPTOR_LENGTH;
    for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++) {
      int value = -1;
      int bin = d % CELL_BINS;
      assert_int_equal(fscanf(file, "%d", &value), 1);
      assert_int_equal(descriptor[d - bin + (bin == 0 ? 0 : CELL_BINS - bin)], value);
    }
  }
  (void)fclose(file);
  hs_features_free(&features);
}

/* The rest is written by hand, after the documented layouts. */
static hs_features load_text(const char *name, const char *text) {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  char message[256] = "";
  hs_features features = {0};
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  scratch_folder_make(&folder);
  scratch_write_file(scratch_folder_path(&folder, name, path), text, strlen(text));
  hs_status status = hs_load_features(path, &features, &options);
  if (status != HS_OK) fail_msg("%s: status %d, %s", name, (int)status, message);
  scratch_folder_remove(&folder);
  return features;
}

/* Appends 0 1 2 ... 127 in lines of `per_line`. */
static void append_entries(char *text, int per_line) {
  for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++) {
    char entry[16];
    (void)snprintf(entry, sizeof entry, "%s%d", d > 0 && d % per_line == 0 ? "\n" : " ", d);
    strcat(text, entry);
  }
}

static void check_counting_entries(const hs_features *features, size_t index) {
  const uint8_t *descriptor = (const uint8_t *)features->descriptors + index * HS_DESCRIPTOR_LENGTH;
  for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++) assert_int_equal(descriptor[d], d);
}

static void test_colmap_text(void **state) {
  (void)state;
  char text[2048] = "2 128\r\n12.5 7.25 1.6 0.5";
  append_entries(text, 1000);
  strcat(text, "\r\n0.5 0.5 2 -1.5");
  append_entries(text, 1000);
  hs_features features = load_text("image.jpg.txt", text);
  assert_int_equal(features.count, 2);
  assert_true(features.keypoints[0].x == 12.0f && features.keypoints[0].y == 6.75f);
  assert_true(features.keypoints[1].x == 0.0f && features.keypoints[1].y == 0.0f);
  assert_true(features.keypoints[0].sigma == 1.6f && features.keypoints[0].orientation == 0.5f);
  assert_true(fabsf(features.keypoints[1].orientation - 4.7831853f) < 1e-6f);
  check_counting_entries(&features, 0);
  check_counting_entries(&features, 1);
  hs_features_free(&features);
}

/* As Lowe's program prints: row before column, 20 entries a line, angle with y upwards. */
static void test_lowe_keys(void **state) {
  (void)state;
  char text[2048] = "2 128\n7.25 12.50 1.60 0.500\n";
  append_entries(text, 20);
  strcat(text, "\n100.00 50.00 3.00 -2.000\n");
  append_entries(text, 20);
  strcat(text, "\n\n");
  hs_features features = load_text("image.key", text);
  assert_int_equal(features.count, 2);
  assert_true(features.keypoints[0].x == 12.5f && features.keypoints[0].y == 7.25f);
  assert_true(fabsf(features.keypoints[0].orientation - 5.7831853f) < 1e-6f);
  assert_true(features.keypoints[1].orientation == 2.0f);
  check_counting_entries(&features, 0);
  check_counting_entries(&features, 1);
  hs_features_free(&features);
}

/* Older versions of OpenCV write one flat list; a keypoint without an angle has -1 there. */
static void test_opencv_flat_list(void **state) {
  (void)state;
  hs_features features = load_text(
      "old.yml", "%YAML:1.0\nkeypoints: [ 1., 2., 4., 90., 0.5, 255, -1, 3.,\n    4., 5., -1., 0., 513, -1 ]\n"
                 "descriptors: !!opencv-matrix\n   rows: 0\n   cols: 0\n   dt: u\n   data: []\n");
  assert_int_equal(features.count, 2);
  assert_int_equal(features.descriptor_type, HS_DESCRIPTOR_NONE);
  assert_true(features.keypoints[0].sigma == 2.0f && features.keypoints[1].sigma == 2.5f);
  assert_true(fabsf(features.keypoints[0].orientation - 1.5707964f) < 1e-6f);
  assert_true(features.keypoints[1].orientation == 0.0f);
  assert_int_equal(features.keypoints[0].octave, -1);
  assert_int_equal(features.keypoints[0].level, 0);
  assert_int_equal(features.keypoints[1].octave, 1);
  assert_int_equal(features.keypoints[1].level, 2);
  hs_features_free(&features);
}

static void test_csv_of_a_spreadsheet(void **state) {
  (void)state;
  hs_features features =
      load_text("table.csv", "\xef\xbb\xbfsigma, y, x, orientation\r\n2, 3.5, 4, 1\r\n3,1e1,0,0\r\n\r\n");
  assert_int_equal(features.count, 2);
  assert_int_equal(features.descriptor_type, HS_DESCRIPTOR_NONE);
  assert_true(features.keypoints[0].x == 4.0f && features.keypoints[0].y == 3.5f &&
              features.keypoints[0].sigma == 2.0f);
  assert_true(features.keypoints[1].y == 10.0f && features.keypoints[1].orientation == 0.0f);
  hs_features_free(&features);
}

static void test_json_of_other_writers(void **state) {
  (void)state;
  hs_features features = load_text("other.json", "{\"features\":[{\"note\":{\"a\":[1,null,true,\"\\u00e9\"]},"
                                                 "\"orientation\":1,\"sigma\":2.5e0,\"y\":-0.5,\"x\":4}],"
                                                 "\"more\":[[],{}],\"descriptor_type\":\"none\"}");
  assert_int_equal(features.count, 1);
  assert_true(features.keypoints[0].x == 4.0f && features.keypoints[0].y == -0.5f &&
              features.keypoints[0].sigma == 2.5f);
  hs_features_free(&features);
}

/* count as 64-bit little-endian, then bytes in VLFeat's order, as openMVG stores them. */
static void test_openmvg_pair(void **state) {
  (void)state;
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  unsigned char desc[8 + HS_DESCRIPTOR_LENGTH] = {1};
  hs_features features = {0};
  for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++) desc[8 + d] = (unsigned char)d;
  scratch_folder_make(&folder);
  scratch_write_file(scratch_folder_path(&folder, "view.desc", path), desc, sizeof desc);
  scratch_write_file(scratch_folder_path(&folder, "view.feat", path), "10.5 20.25 1.75 -0.5\n", 21);
  assert_int_equal(hs_load_features(path, &features, NULL), HS_OK);
  assert_int_equal(features.count, 1);
  assert_true(features.keypoints[0].x == 10.5f && features.keypoints[0].y == 20.25f &&
              features.keypoints[0].sigma == 1.75f);
  assert_true(fabsf(features.keypoints[0].orientation - 5.7831853f) < 1e-6f);
  const uint8_t *descriptor = features.descriptors;
  const uint8_t first_cells[16] = {0, 7, 6, 5, 4, 3, 2, 1, 8, 15, 14, 13, 12, 11, 10, 9};
  assert_memory_equal(descriptor, first_cells, sizeof first_cells);
  hs_features_free(&features);
  scratch_folder_remove(&folder);
}

/* What the library calls after each rename: counts the files of the pair that are there after the first. */
static scratch_folder *watched;
static int renames, feat_after_first_rename;

void atomic_file_gone(int place);
void atomic_file_gone(int place) {
  (void)place;
  char path[SCRATCH_PATH_BYTES];
  if (!watched || renames++ > 0) return;
  FILE *feat = fopen(scratch_folder_path(watched, "view.feat", path), "rb");
  feat_after_first_rename = feat != NULL;
  if (feat) fclose(feat);
}

/* A pair that is replaced: between the renames the new .desc does not stand beside the old .feat. */
static void test_openmvg_pair_replaced(void **state) {
  (void)state;
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  hs_keypoint keypoints[2] = {{.x = 1, .y = 2, .sigma = 3}, {.x = 4, .y = 5, .sigma = 6}};
  uint8_t descriptors[2 * HS_DESCRIPTOR_LENGTH] = {0};
  hs_features features = {.count = 2, .keypoints = keypoints, .descriptors = descriptors};
  hs_features read = {0};
  scratch_folder_make(&folder);
  scratch_folder_path(&folder, "view.feat", path);
  assert_int_equal(hs_save_features(path, &features, NULL), HS_OK);
  watched = &folder;
  features.count = 1;
  assert_int_equal(hs_save_features(path, &features, NULL), HS_OK);
  watched = NULL;
  assert_int_equal(renames, 2);
  assert_false(feat_after_first_rename);
  assert_int_equal(hs_load_features(path, &read, NULL), HS_OK);
  assert_int_equal(read.count, 1);
  hs_features_free(&read);
  scratch_folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numpy_stored),          cmocka_unit_test(test_numpy_deflated),
      cmocka_unit_test(test_numpy_other_types),     cmocka_unit_test(test_numpy_no_descriptors),
      cmocka_unit_test(test_opencv_storage),        cmocka_unit_test(test_vlfeat_program_output),
      cmocka_unit_test(test_colmap_text),           cmocka_unit_test(test_lowe_keys),
      cmocka_unit_test(test_opencv_flat_list),      cmocka_unit_test(test_csv_of_a_spreadsheet),
      cmocka_unit_test(test_json_of_other_writers), cmocka_unit_test(test_openmvg_pair),
      cmocka_unit_test(test_openmvg_pair_replaced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
