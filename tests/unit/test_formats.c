/*
 * Round trips through every feature format, choice of format, and files that cannot be written.
 */
#include <sys/stat.h>

#include "tests/support/test.h"

#include "pipeline/base/features.h"
#include "pipeline/formats/formats.h"

/* What a format keeps. Positions and angles are exact if the tolerance is 0. A negative tolerance means that angles are
 * not kept. */
typedef struct format_promise {
  hs_format id;
  const char *name, *ending;
  float position_tolerance, angle_tolerance;
  bool keeps_response, keeps_octave, keeps_size, keeps_floats, holds_none;
} format_promise;

/* Coordinates near 0 lose their last digits by COLMAP's pixel origin, and half a unit by VisualSFM's floats. */
static const format_promise promises[] = {
    {HS_FORMAT_COLMAP, "colmap", ".txt", 1e-12f, 0, false, false, false, false, false},
    {HS_FORMAT_NPZ, "npz", ".npz", 0, 0, true, true, true, true, true},
    {HS_FORMAT_CSV, "csv", ".csv", 0, 0, true, true, false, true, true},
    {HS_FORMAT_JSON, "json", ".json", 0, 0, true, true, true, true, true},
    {HS_FORMAT_LOWE, "lowe", ".key", 0, 0, false, false, false, false, false},
    {HS_FORMAT_VLFEAT, "vlfeat", ".sift", 0, 0, false, false, false, false, true},
    {HS_FORMAT_OPENCV, "opencv", ".yml", 0, 0, true, true, true, true, true},
    {HS_FORMAT_OPENMVG, "openmvg", ".feat", 0, 0, false, false, false, false, false},
    {HS_FORMAT_BIN, "bin", ".hsf", 0, 0, true, true, true, true, true},
    {HS_FORMAT_VISUALSFM, "visualsfm", ".sift", 3.1e-5f, 5e-7f, false, false, false, false, false},
    {HS_FORMAT_OXFORD, "oxford", ".hesaff", 0, -1.0f, false, false, false, false, true},
};
enum { PROMISES = sizeof promises / sizeof promises[0] };

static uint8_t expected_byte(const hs_features *features, feature_style style, size_t at) {
  if (style == FEATURES_U8) return ((const uint8_t *)features->descriptors)[at];
  double value = (double)((const float *)features->descriptors)[at] * (style == FEATURES_UNIT_F32 ? 512.0 : 1.0);
  double rounded = floor(value + 0.5);
  return (uint8_t)(rounded > 255.0 ? 255.0 : rounded);
}

static void check_descriptors(const format_promise *promise, const hs_features *saved, const hs_features *loaded,
                              feature_style style) {
  size_t values = saved->count * HS_DESCRIPTOR_LENGTH;
  if (style == FEATURES_NONE) {
    assert_null(loaded->descriptors);
    return;
  }
  if (promise->keeps_floats) {
    assert_int_equal(loaded->descriptor_type, saved->descriptor_type);
    if (values > 0)
      assert_memory_equal(loaded->descriptors, saved->descriptors,
                          values * features_descriptor_bytes(saved->descriptor_type) / HS_DESCRIPTOR_LENGTH);
    return;
  }
  assert_int_equal(loaded->descriptor_type, HS_DESCRIPTOR_U8);
  for (size_t i = 0; i < values; i++)
    assert_int_equal(((const uint8_t *)loaded->descriptors)[i], expected_byte(saved, style, i));
}

static void check_keypoint(const format_promise *promise, const hs_keypoint *saved, const hs_keypoint *loaded) {
  assert_true(fabsf(saved->x - loaded->x) <= promise->position_tolerance);
  assert_true(fabsf(saved->y - loaded->y) <= promise->position_tolerance);
  assert_true(saved->sigma == loaded->sigma);
  const float kept = promise->angle_tolerance >= 0.0f ? saved->orientation : 0.0f;
  const float turned = fabsf(kept - loaded->orientation); /* an angle slightly below 2 pi may be read as 0 */
  assert_true(fminf(turned, 6.2831853f - turned) <= promise->angle_tolerance || turned == 0.0f);
  assert_true(loaded->response == (promise->keeps_response ? saved->response : 0.0f));
  assert_int_equal(loaded->octave, promise->keeps_octave ? saved->octave : 0);
  assert_int_equal(loaded->level, promise->keeps_octave ? saved->level : 0);
}

static void check_features(const format_promise *promise, const hs_features *saved, const hs_features *loaded,
                           feature_style style) {
  assert_int_equal(loaded->count, saved->count);
  assert_true(feature_maker_consistent(loaded));
  assert_int_equal(loaded->image_width, promise->keeps_size ? saved->image_width : 0);
  assert_int_equal(loaded->image_height, promise->keeps_size ? saved->image_height : 0);
  for (size_t i = 0; i < saved->count; i++) check_keypoint(promise, &saved->keypoints[i], &loaded->keypoints[i]);
  /* VLFeat's files have no header, so an empty file does not show that its list has no descriptors. */
  if (saved->count > 0 || promise->id != HS_FORMAT_VLFEAT) check_descriptors(promise, saved, loaded, style);
}

static void round_trip(const format_promise *promise, size_t count, feature_style style, hs_bin_layout layout) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  char name[64];
  char message[256] = "untouched";
  scoped_features saved = {0};
  scoped_features loaded = {0};
  (void)snprintf(name, sizeof name, "features%s", promise->ending);
  scratch_folder_path(&folder, name, path);
  feature_maker_fill(&saved, count, style, 11);
  hs_file_options options = {.struct_size = sizeof options,
                             .format = promise->id,
                             .layout = layout,
                             .message = message,
                             .message_bytes = sizeof message};
  if (layout == HS_LAYOUT_VLFEAT) feature_maker_swap_bins(&saved);
  assert_int_equal(hs_save_features(path, &saved, &options), HS_OK);
  options.format = HS_FORMAT_AUTO;
  assert_string_equal(message, "");
  if (layout == HS_LAYOUT_VLFEAT) feature_maker_swap_bins(&saved);
  assert_int_equal(scratch_folder_count(&folder), promise->id == HS_FORMAT_OPENMVG ? 2 : 1);
  assert_int_equal(hs_load_features(path, &loaded, &options), HS_OK);
  check_features(promise, &saved, &loaded, style);
}

TEST(test_round_trips) {
  const size_t counts[] = {0, 1, 7, 150};
  for (size_t p = 0; p < PROMISES; p++) {
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
      for (feature_style style = FEATURES_U8; style <= FEATURES_SCALED_F32; style++) {
        round_trip(&promises[p], counts[c], style, HS_LAYOUT_UBC);
        round_trip(&promises[p], counts[c], style, HS_LAYOUT_VLFEAT);
      }
      if (promises[p].holds_none) round_trip(&promises[p], counts[c], FEATURES_NONE, HS_LAYOUT_UBC);
    }
  }
}

TEST(test_lists_without_descriptors_are_refused_where_they_do_not_fit) {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  hs_features features = {0};
  scratch_folder_make(&folder);
  feature_maker_fill(&features, 3, FEATURES_NONE, 1);
  for (size_t p = 0; p < PROMISES; p++) {
    if (promises[p].holds_none) continue;
    char message[256] = "";
    hs_file_options options = {
        .struct_size = sizeof options, .format = promises[p].id, .message = message, .message_bytes = sizeof message};
    scratch_folder_path(&folder, "none", path);
    strcat(path, promises[p].ending);
    assert_int_equal(hs_save_features(path, &features, &options), HS_ERR_UNSUPPORTED);
    assert_non_null(strstr(message, promises[p].name));
    assert_int_equal(scratch_folder_count(&folder), 0);
  }
  hs_features_free(&features);
  scratch_folder_remove(&folder);
}

TEST(test_names_and_endings) {
  for (size_t p = 0; p < PROMISES; p++) {
    char path[64];
    (void)snprintf(path, sizeof path, "some/folder.x/name%s", promises[p].ending);
    /* Two formats use the ending .sift, which selects the text format. */
    const hs_format by_name = promises[p].id == HS_FORMAT_VISUALSFM ? HS_FORMAT_VLFEAT : promises[p].id;
    assert_int_equal(hs_format_of_name(path), by_name);
    assert_non_null(format_by_name(promises[p].name));
    assert_int_equal(format_by_name(promises[p].name)->id, promises[p].id);
    assert_ptr_equal(format_by_id(promises[p].id), format_by_name(promises[p].name));
    assert_string_equal(hs_format_name(promises[p].id), promises[p].name);
  }
  for (size_t i = 0; i < FORMAT_COUNT; i++) assert_int_equal(format_at(i)->id, i + 1);
  assert_null(hs_format_name(HS_FORMAT_AUTO));
  assert_null(hs_format_name((hs_format)(FORMAT_COUNT + 1)));
  /* There is one more format: a database, which needs image names; see test_colmap_content.c. */
  assert_non_null(format_by_id(HS_FORMAT_COLMAP_DB));
  assert_non_null(format_at(PROMISES));
  assert_null(format_at(PROMISES + 1));
  assert_int_equal(hs_format_of_name("A.YAML"), HS_FORMAT_OPENCV);
  assert_int_equal(hs_format_of_name("A.NpZ"), HS_FORMAT_NPZ);
  assert_int_equal(hs_format_of_name("a.ppm.haraff.sift"), HS_FORMAT_OXFORD);
  assert_int_equal(hs_format_of_name("a.HesAff.sift"), HS_FORMAT_OXFORD);
  assert_int_equal(hs_format_of_name("haraff.sift"), HS_FORMAT_VLFEAT);
  const char *const none[] = {"name", "", ".txt", "name.png", "npz", "name.txt.gz", "name.txt/"};
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    assert_int_equal(hs_format_of_name(none[i]), HS_FORMAT_AUTO);
  assert_int_equal(hs_format_of_name(NULL), HS_FORMAT_AUTO);
  assert_null(format_by_name("NPZ"));
  assert_null(format_by_name(NULL));
  assert_null(format_by_id(HS_FORMAT_AUTO));
}

/* FORMATS.md has an overview row for each format (name, endings, whether lists without descriptors fit) and a
 * section. */
TEST(test_formats_are_documented) {
  FILE *file = fopen(HARTSIFT_SOURCE_DIR "/pipeline/formats/FORMATS.md", "r");
  assert_non_null(file);
  bool has_row[FORMAT_COUNT] = {false}, has_section[FORMAT_COUNT] = {false};
  char line[1024], begin[64];
  while (fgets(line, sizeof line, file)) {
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
      const feature_format *format = format_at(i);
      (void)snprintf(begin, sizeof begin, "## %s\n", format->name);
      if (strcmp(line, begin) == 0) has_section[i] = true;
      (void)snprintf(begin, sizeof begin, "| `%s` | `%s`", format->name, format->endings[0]);
      if (strncmp(line, begin, strlen(begin)) != 0) continue;
      has_row[i] = true;
      assert_int_equal(strstr(line, ", none |") != NULL, format->without_descriptors);
    }
  }
  (void)fclose(file);
  for (size_t i = 0; i < FORMAT_COUNT; i++)
    if (!has_row[i] || !has_section[i]) fail_msg("FORMATS.md has no row or no section for %s", format_at(i)->name);
}

/* Without an ending, or with the ending of another format, the content decides. */
TEST(test_content_decides) {
  const char *const names[] = {"plain", "wrong.npz", "wrong.txt", "wrong.yml"};
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_make(&folder);
  for (size_t p = 0; p < PROMISES; p++) {
    if (promises[p].id == HS_FORMAT_OPENMVG) continue;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
      scoped_features saved = {0};
      scoped_features loaded = {0};
      feature_maker_fill(&saved, 3, FEATURES_U8, 5);
      hs_file_options options = {.struct_size = sizeof options, .format = promises[p].id};
      scratch_folder_path(&folder, names[n], path);
      assert_int_equal(hs_save_features(path, &saved, &options), HS_OK);
      assert_int_equal(hs_load_features(path, &loaded, NULL), HS_OK);
      check_features(&promises[p], &saved, &loaded, FEATURES_U8);
    }
  }
  scratch_folder_remove(&folder);
}

static hs_status save(const char *path, const hs_features *features, hs_format format, char message[256]) {
  hs_file_options options = {.struct_size = sizeof options, .format = format, .message = message, .message_bytes = 256};
  return hs_save_features(path, features, &options);
}

TEST(test_equal_features_give_equal_bytes) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  char message[256];
  scoped_features features = {0};
  feature_maker_fill(&features, 20, FEATURES_UNIT_F32, 9);
  for (size_t p = 0; p < PROMISES; p++) {
    unsigned char *bytes[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
      scratch_folder_path(&folder, i == 0 ? "a" : "b", path);
      strcat(path, promises[p].ending);
      assert_int_equal(save(path, &features, promises[p].id, message), HS_OK);
      bytes[i] = scratch_read_file(path, &sizes[i]);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
  }
}

TEST(test_writing_where_nothing_can_be_written) {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  char message[256];
  hs_features features = {0};
  scratch_folder_make(&folder);
  feature_maker_fill(&features, 40, FEATURES_U8, 2);
  for (size_t p = 0; p < PROMISES; p++) {
    scratch_folder_path(&folder, "absent/file", path);
    strcat(path, promises[p].ending);
    assert_int_equal(save(path, &features, promises[p].id, message), HS_ERR_IO);
    assert_non_null(strstr(message, "absent"));
    assert_int_equal(scratch_folder_count(&folder), 0);
  }
  FILE *full = fopen("/dev/full", "wb");
  if (full) {
    (void)fclose(full);
    for (size_t p = 0; p < PROMISES; p++) {
      if (promises[p].id == HS_FORMAT_OPENMVG) continue;
      assert_int_equal(save("/dev/full", &features, promises[p].id, message), HS_ERR_IO);
      assert_true(strlen(message) > 0);
    }
  }
  hs_features_free(&features);
  scratch_folder_remove(&folder);
}

/* openMVG's two files appear together or not at all. */
TEST(test_pairs_are_whole) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  char blocked[SCRATCH_PATH_BYTES];
  char message[256];
  scoped_features features = {0};
  hs_features loaded = {0};
  feature_maker_fill(&features, 4, FEATURES_U8, 2);
  scratch_folder_path(&folder, "image.feat", path);
  scratch_folder_path(&folder, "image.desc", blocked);
  assert_int_equal(mkdir(blocked, 0700), 0);
  assert_int_equal(save(path, &features, HS_FORMAT_AUTO, message), HS_ERR_IO);
  assert_int_equal(scratch_folder_count(&folder), 1);
  assert_int_equal(save(scratch_folder_path(&folder, "image.other", path), &features, HS_FORMAT_OPENMVG, message),
                   HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, ".feat"));
  assert_int_equal(save("-", &features, HS_FORMAT_OPENMVG, message), HS_ERR_ARGUMENT);
  assert_int_equal(scratch_folder_count(&folder), 1);
  scratch_folder_path(&folder, "alone.feat", path);
  scratch_write_file(path, "1 2 3 0.5\n", 10);
  assert_int_equal(hs_load_features(path, &loaded, NULL), HS_ERR_IO);
}

static void check_refused(const hs_features *features, const char *reason) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  char message[256];
  for (size_t p = 0; p < PROMISES; p++) {
    scratch_folder_path(&folder, "refused", path);
    strcat(path, promises[p].ending);
    assert_int_equal(save(path, features, promises[p].id, message), HS_ERR_ARGUMENT);
    assert_non_null(strstr(message, reason));
  }
  assert_int_equal(scratch_folder_count(&folder), 0);
}

TEST(test_wrong_features_are_refused) {
  scoped_features features = {0};
  feature_maker_fill(&features, 3, FEATURES_UNIT_F32, 2);
  hs_keypoint good = features.keypoints[1];
  features.keypoints[1].x = NAN;
  check_refused(&features, "keypoint 1: a coordinate");
  features.keypoints[1] = good;
  features.keypoints[1].sigma = 0.0f;
  check_refused(&features, "scale");
  features.keypoints[1] = good;
  features.keypoints[1].orientation = INFINITY;
  check_refused(&features, "orientation");
  features.keypoints[1] = good;
  ((float *)features.descriptors)[200] = NAN;
  check_refused(&features, "descriptor 1");
  ((float *)features.descriptors)[200] = 0.0f;
  features.image_width = -1;
  check_refused(&features, "image size");
  features.image_width = 0;
  hs_features broken = features;
  broken.descriptors = NULL;
  check_refused(&broken, "descriptors is null");
  broken.descriptor_type = (hs_descriptor_type)7;
  check_refused(&broken, "descriptor_type");
}

TEST(test_wrong_arguments) {
  hs_features features = {0};
  char message[256] = "";
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  assert_int_equal(hs_save_features(NULL, &features, &options), HS_ERR_ARGUMENT);
  assert_int_equal(hs_save_features("", &features, &options), HS_ERR_ARGUMENT);
  assert_int_equal(hs_save_features("a.npz", NULL, &options), HS_ERR_ARGUMENT);
  assert_int_equal(hs_save_features("a.unknown", &features, &options), HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, "ending"));
  assert_int_equal(hs_save_features("-", &features, &options), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_features(NULL, &features, &options), HS_ERR_ARGUMENT);
  assert_int_equal(hs_load_features("a.npz", NULL, &options), HS_ERR_ARGUMENT);
  options.format = (hs_format)99;
  assert_int_equal(hs_save_features("a.npz", &features, &options), HS_ERR_OPTION);
  assert_int_equal(hs_load_features("a.npz", &features, &options), HS_ERR_OPTION);
  options = (hs_file_options){.struct_size = sizeof options, .layout = (hs_bin_layout)5};
  assert_int_equal(hs_save_features("a.npz", &features, &options), HS_ERR_OPTION);
  options = (hs_file_options){.struct_size = 8};
  assert_int_equal(hs_save_features("a.npz", &features, &options), HS_ERR_OPTION);
  assert_int_equal(hs_load_features("a.npz", &features, &options), HS_ERR_OPTION);
  options = (hs_file_options){.struct_size = sizeof options};
  features.reserved[3] = 1; /* an unknown field of a later header */
  assert_int_equal(hs_save_features("a.npz", &features, &options), HS_ERR_ARGUMENT);
}

/* Every format reduces angles outside [0, 2 pi) in the same way. */
TEST(test_angles_are_wrapped) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  char message[256];
  for (size_t p = 0; p < PROMISES; p++) {
    const float angles[4] = {-1.0f, 7.0f, 6.2831855f, -1e-9f};
    const float expected[4] = {5.2831853f, 0.71681469f, 0.0f, 0.0f};
    scoped_features features = {0};
    scoped_features loaded = {0};
    feature_maker_fill(&features, 4, FEATURES_U8, 8);
    for (size_t i = 0; i < 4; i++) features.keypoints[i].orientation = angles[i];
    scratch_folder_path(&folder, "angles", path);
    strcat(path, promises[p].ending);
    assert_int_equal(save(path, &features, promises[p].id, message), HS_OK);
    assert_int_equal(hs_load_features(path, &loaded, NULL), HS_OK);
    assert_true(feature_maker_consistent(&loaded));
    for (size_t i = 0; i < 4; i++) {
      const float kept = promises[p].angle_tolerance >= 0.0f ? expected[i] : 0.0f;
      assert_true(fabsf(loaded.keypoints[i].orientation - kept) <= 1e-6f);
    }
  }
}
