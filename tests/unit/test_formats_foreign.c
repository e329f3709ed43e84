/*
 * Files from other programs (tests/data/formats, with the programs that wrote them) and handwritten files with the
 * documented layouts.
 */

#include "tests/support/test.h"

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

/* Compares with the values that the programs in tests/data write, which are computed again here. */
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
  scoped_features features = load_data(name);
  check_numpy(&features, with_extras);
  assert_int_equal(features.descriptor_type, type);
  if (type != HS_DESCRIPTOR_NONE) check_entries(&features, 1.0f / 256.0f);
}

TEST(test_numpy_stored) { check_numpy_file("numpy_u8.npz", HS_DESCRIPTOR_U8, true); }

TEST(test_numpy_deflated) { check_numpy_file("numpy_deflated_f32.npz", HS_DESCRIPTOR_F32, true); }

TEST(test_numpy_other_types) { check_numpy_file("numpy_other_types.npz", HS_DESCRIPTOR_F32, true); }

TEST(test_numpy_no_descriptors) { check_numpy_file("numpy_no_descriptors.npz", HS_DESCRIPTOR_NONE, false); }

static void check_opencv_file(const char *name, hs_descriptor_type type) {
  scoped_features features = load_data(name);
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
}

TEST(test_opencv_storage) {
  check_opencv_file("opencv_f.yml", HS_DESCRIPTOR_F32);
  check_opencv_file("opencv_u.yml", HS_DESCRIPTOR_U8);
}

/* Compares with the printed lines as the C library reads them, with cells in UBC order. */
TEST(test_vlfeat_program_output) {
  char path[PATH_BYTES];
  scoped_features features = load_data("vlfeat.sift");
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
}

/* The other files are written here, with the documented layouts. */
static hs_features load_text(const char *name, const char *text) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  char message[256] = "";
  hs_features features = {0};
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  scratch_write_file(scratch_folder_path(&folder, name, path), text, strlen(text));
  hs_status status = hs_load_features(path, &features, &options);
  if (status != HS_OK) fail_msg("%s: status %d, %s", name, (int)status, message);
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

TEST(test_colmap_text) {
  char text[2048] = "2 128\r\n12.5 7.25 1.6 0.5";
  append_entries(text, 1000);
  strcat(text, "\r\n0.5 0.5 2 -1.5");
  append_entries(text, 1000);
  scoped_features features = load_text("image.jpg.txt", text);
  assert_int_equal(features.count, 2);
  assert_true(features.keypoints[0].x == 12.0f && features.keypoints[0].y == 6.75f);
  assert_true(features.keypoints[1].x == 0.0f && features.keypoints[1].y == 0.0f);
  assert_true(features.keypoints[0].sigma == 1.6f && features.keypoints[0].orientation == 0.5f);
  assert_true(fabsf(features.keypoints[1].orientation - 4.7831853f) < 1e-6f);
  check_counting_entries(&features, 0);
  check_counting_entries(&features, 1);
}

/* Lowe's program writes the row before the column, 20 entries per line, and angles with y upwards. */
TEST(test_lowe_keys) {
  char text[2048] = "2 128\n7.25 12.50 1.60 0.500\n";
  append_entries(text, 20);
  strcat(text, "\n100.00 50.00 3.00 -2.000\n");
  append_entries(text, 20);
  strcat(text, "\n\n");
  scoped_features features = load_text("image.key", text);
  assert_int_equal(features.count, 2);
  assert_true(features.keypoints[0].x == 12.5f && features.keypoints[0].y == 7.25f);
  assert_true(fabsf(features.keypoints[0].orientation - 5.7831853f) < 1e-6f);
  assert_true(features.keypoints[1].orientation == 2.0f);
  check_counting_entries(&features, 0);
  check_counting_entries(&features, 1);
}

/* Older versions of OpenCV write one flat list, in which a keypoint without an angle has -1. */
TEST(test_opencv_flat_list) {
  scoped_features features = load_text(
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
}

TEST(test_csv_of_a_spreadsheet) {
  scoped_features features =
      load_text("table.csv", "\xef\xbb\xbfsigma, y, x, orientation\r\n2, 3.5, 4, 1\r\n3,1e1,0,0\r\n\r\n");
  assert_int_equal(features.count, 2);
  assert_int_equal(features.descriptor_type, HS_DESCRIPTOR_NONE);
  assert_true(features.keypoints[0].x == 4.0f && features.keypoints[0].y == 3.5f &&
              features.keypoints[0].sigma == 2.0f);
  assert_true(features.keypoints[1].y == 10.0f && features.keypoints[1].orientation == 0.0f);
}

TEST(test_json_of_other_writers) {
  scoped_features features = load_text("other.json", "{\"features\":[{\"note\":{\"a\":[1,null,true,\"\\u00e9\"]},"
                                                     "\"orientation\":1,\"sigma\":2.5e0,\"y\":-0.5,\"x\":4}],"
                                                     "\"more\":[[],{}],\"descriptor_type\":\"none\"}");
  assert_int_equal(features.count, 1);
  assert_true(features.keypoints[0].x == 4.0f && features.keypoints[0].y == -0.5f &&
              features.keypoints[0].sigma == 2.5f);
}

/* openMVG's layout is the count as 64-bit little-endian, then bytes in VLFeat's order. */
TEST(test_openmvg_pair) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  unsigned char desc[8 + HS_DESCRIPTOR_LENGTH] = {1};
  scoped_features features = {0};
  for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++) desc[8 + d] = (unsigned char)d;
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
}

/* The folder of the pair. The library calls the next function after each rename; it counts the existing files of the
 * pair after the first rename. */
static const scratch_folder *watched;
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

/* While a pair is replaced, the new .desc and the old .feat never exist together. */
TEST(test_openmvg_pair_replaced) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  hs_keypoint keypoints[2] = {{.x = 1, .y = 2, .sigma = 3}, {.x = 4, .y = 5, .sigma = 6}};
  uint8_t descriptors[2 * HS_DESCRIPTOR_LENGTH] = {0};
  hs_features features = {.count = 2, .keypoints = keypoints, .descriptors = descriptors};
  scoped_features read = {0};
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
}

/* ------------------------------------------------------------------ full width of the format specifications */

/* SiftGPU writes keys without descriptors. */
TEST(test_lowe_keys_alone) {
  scoped_features features = load_text("image.key", "2 0\n7.25 12.50 1.600 0.500\n100.00 50.00 3.000 -2.000\n");
  assert_int_equal(features.count, 2);
  assert_int_equal(features.descriptor_type, HS_DESCRIPTOR_NONE);
  assert_true(features.keypoints[1].x == 50.0f && features.keypoints[1].y == 100.0f);
}

/* Entries may be written as floats. COLMAP drops their fractions. */
TEST(test_float_entries) {
  static const char *const heads[] = {"1 128\n7 12 1.6 0.5\n", "1 128\n12.5 7.5 1.6 0.5", "12 7 1.6 -0.5",
                                      "128\n1\n12 7 0.0144675926 0 0.0144675926"};
  static const char *const names[] = {"floats.key", "floats.txt", "floats.sift", "floats.haraff"};
  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
    char text[2048];
    (void)snprintf(text, sizeof text, "%s", heads[i]);
    for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++)
      (void)snprintf(text + strlen(text), 16, " %d%s", d, i == 1 && d % 2 == 1 ? ".75" : ".000000");
    strcat(text, "\n");
    scoped_features features = load_text(names[i], text);
    assert_int_equal(features.count, 1);
    assert_true(fabsf(features.keypoints[0].sigma - 1.6f) < 1e-5f);
    if (i != 2) check_counting_entries(&features, 0); /* VLFeat's bins are in another order */
    assert_int_equal(((const uint8_t *)features.descriptors)[127], i == 2 ? 121 : 127);
  }
}

static void put_u32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static void put_f32(unsigned char *to, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_u32(to, bits);
}

static hs_features load_bytes(const char *name, const void *bytes, size_t size) {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  char message[256] = "";
  hs_features features = {0};
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  scratch_folder_make(&folder);
  scratch_write_file(scratch_folder_path(&folder, name, path), bytes, size);
  const hs_status status = hs_load_features(path, &features, &options);
  scratch_folder_remove(&folder);
  if (status == HS_ERR_UNSUPPORTED && strstr(message, "no zlib")) skip_because("built without zlib");
  if (status != HS_OK) fail_msg("%s: status %d, %s", name, (int)status, message);
  return features;
}

/* Version 5 has colours. In versions 4 and 5 a writer may store 0 for scale and orientation. */
TEST(test_visualsfm_versions) {
  enum { SIZE = 20 + 20 + HS_DESCRIPTOR_LENGTH + 4 };
  for (int version = 4; version <= 5; version++)
    for (int scale = 0; scale <= 2; scale += 2) {
      unsigned char file[SIZE] = "SIFTV4.0";
      file[5] = (unsigned char)('0' + version);
      put_u32(file + 8, 1);
      put_u32(file + 12, 5);
      put_u32(file + 16, HS_DESCRIPTOR_LENGTH);
      put_f32(file + 20, 12.5f);
      put_f32(file + 24, 7.5f);
      memcpy(file + 28, "\xff\x80\x40\xff", 4);
      put_f32(file + 32, (float)scale);
      for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++) file[40 + d] = (unsigned char)d;
      memcpy(file + SIZE - 4,
             "\xff"
             "EOF",
             4);
      scoped_features features = load_bytes("a.sift", file, SIZE);
      assert_int_equal(features.count, 1);
      assert_true(features.keypoints[0].x == 12.0f && features.keypoints[0].y == 7.0f);
      assert_true(features.keypoints[0].sigma == (scale > 0 ? 2.0f : 1.0f)); /* a scale of 0 is unknown and read as 1 */
      check_counting_entries(&features, 0);
    }
}

static void put_big_double(unsigned char *to, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  for (int i = 0; i < 8; i++) to[i] = (unsigned char)(bits >> (56 - 8 * i));
}

/* VLFeat's program writes bin:// as big-endian doubles, and bytes. */
TEST(test_vlfeat_binary) {
  enum { COUNT = 5, RECORD = 32 + HS_DESCRIPTOR_LENGTH };
  for (int frames = 0; frames < 2; frames++) {
    const size_t record = frames ? 32 : RECORD;
    unsigned char file[COUNT * RECORD];
    for (size_t i = 0; i < COUNT; i++) {
      const double place[4] = {10.25 + (double)i, 7.5, 1.5, -0.5};
      for (size_t k = 0; k < 4; k++) put_big_double(file + i * record + 8 * k, place[k]);
      for (size_t d = 0; d < HS_DESCRIPTOR_LENGTH && !frames; d++) file[i * record + 32 + d] = (unsigned char)d;
    }
    scoped_features features = load_bytes(frames ? "a.frame" : "a.sift", file, COUNT * record);
    assert_int_equal(features.count, COUNT);
    assert_int_equal(features.descriptor_type, frames ? HS_DESCRIPTOR_NONE : HS_DESCRIPTOR_U8);
    for (size_t i = 0; i < COUNT; i++) {
      assert_true(features.keypoints[i].x == 10.25f + (float)i && features.keypoints[i].sigma == 1.5f);
      if (!frames) assert_int_equal(((const uint8_t *)features.descriptors)[i * HS_DESCRIPTOR_LENGTH + 1], 7);
    }
  }
}

/* AliceVision writes sift_float. */
TEST(test_openmvg_floats) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  unsigned char desc[8 + 4 * HS_DESCRIPTOR_LENGTH] = {1};
  scoped_features features = {0};
  for (int d = 0; d < HS_DESCRIPTOR_LENGTH; d++) put_f32(desc + 8 + 4 * d, (float)d);
  scratch_write_file(scratch_folder_path(&folder, "view.desc", path), desc, sizeof desc);
  scratch_write_file(scratch_folder_path(&folder, "view.feat", path), "10.5 20.25 1.75 0.5\n", 20);
  assert_int_equal(hs_load_features(path, &features, NULL), HS_OK);
  assert_int_equal(features.descriptor_type, HS_DESCRIPTOR_F32);
  const float *descriptor = features.descriptors;
  assert_true(descriptor[0] == 0.0f && descriptor[1] == 7.0f && descriptor[7] == 1.0f && descriptor[127] == 121.0f);
}

/* Files may have matrix types, a tag in full, or a byte order mark. */
TEST(test_opencv_matrices) {
  static const char *const types[] = {"u", "c", "w", "s", "i", "f", "d", "h", "\"f\""};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    char text[2048];
    (void)snprintf(text, sizeof text,
                   "%s%%YAML:1.0\n---\nkeypoints:\n   - [ 1., 2., 4., 90., 0.5, 255, -1 ]\ndescriptors: %s\n"
                   "   rows: 1\n   cols: 128\n   dt: %s\n   data: [ 0",
                   i % 2 ? "\xef\xbb\xbf" : "", i % 3 ? "!!opencv-matrix" : "!<tag:yaml.org,2002:opencv-matrix>",
                   types[i]);
    for (int d = 1; d < HS_DESCRIPTOR_LENGTH; d++) (void)snprintf(text + strlen(text), 16, ", %d", d % 100);
    strcat(text, " ]\n");
    scoped_features features = load_text("plain", text);
    const bool is_float = i > 4;
    assert_int_equal(features.descriptor_type, is_float ? HS_DESCRIPTOR_F32 : HS_DESCRIPTOR_U8);
    if (is_float)
      assert_true(((const float *)features.descriptors)[99] == 99.0f);
    else
      assert_int_equal(((const uint8_t *)features.descriptors)[99], 99);
  }
}

/* RFC 4180 allows quotes around every field. */
TEST(test_quoted_csv) {
  scoped_features features = load_text("plain", "\"x\",\"y\",\"sigma\",\"orientation\"\r\n\"4\",\"3.5\",2, \"1\" \r\n");
  assert_int_equal(features.count, 1);
  assert_true(features.keypoints[0].x == 4.0f && features.keypoints[0].orientation == 1.0f);
}

/* Names with endings of Oxford's extract_features are written in its format. */
TEST(test_oxford_names) {
  static const char *const names[] = {"a.ppm.haraff.sift", "a.hesaff.sift", "a.harlap.sift", "a.haraff"};
  hs_keypoint keypoint = {.x = 1, .y = 2, .sigma = 3};
  uint8_t descriptor[HS_DESCRIPTOR_LENGTH] = {9};
  const hs_features features = {.count = 1, .keypoints = &keypoint, .descriptors = descriptor};
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    scoped_features read = {0};
    char line[16] = "";
    assert_int_equal(hs_save_features(scratch_folder_path(&folder, names[i], path), &features, NULL), HS_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    (void)fclose(file);
    assert_string_equal(line, "128\n");
    assert_int_equal(hs_load_features(path, &read, NULL), HS_OK);
    assert_true(read.count == 1 && fabsf(read.keypoints[0].sigma - 3.0f) < 1e-5f);
  }
}

/* ------------------------------------------------------------------ compressed files */

static uint32_t crc_of(const unsigned char *bytes, size_t size) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

/* Writes a gzip member with one stored block. Returns its size, which is `size` + 23. */
static size_t gzip_member(const void *bytes, size_t size, unsigned char *out) {
  static const unsigned char head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
  memcpy(out, head, sizeof head);
  out[10] = 1;
  put_u32(out + 11, (uint32_t)size | (~(uint32_t)size) << 16);
  memcpy(out + 15, bytes, size);
  put_u32(out + 15 + size, crc_of(bytes, size));
  put_u32(out + 19 + size, (uint32_t)size);
  return size + 23;
}

/* Writes two members with zeros after them, as tapes and some programs do. */
static size_t gzip_file(const char *text, unsigned char *out) {
  const size_t half = strlen(text) / 2;
  size_t size = gzip_member(text, half, out);
  size += gzip_member(text + half, strlen(text) - half, out + size);
  memset(out + size, 0, 8);
  return size + 8;
}

TEST(test_compressed_files) {
  char key[2048] = "1 128\n7.25 12.50 1.60 0.500\n", colmap[2048] = "1 128\n13 7.75 1.6 -0.5";
  append_entries(key, 20);
  append_entries(colmap, 1000);
  const struct {
    const char *name, *text;
  } files[] = {{"a.key.gz", key},
               {"a.KEY.GZ", key},
               {"a", key},
               {"a.jpg.txt.gz", colmap},
               {"a.frame.gz", "12.5 7.25 1.6 -0.5\n"},
               {"a.csv.gz", "x,y,sigma,orientation\n12.5,7.25,1.6,-0.5\n"},
               {"a.json.gz", "{\"features\":[{\"orientation\":-0.5,\"sigma\":1.6,\"y\":7.25,\"x\":12.5}],"
                             "\"descriptor_type\":\"none\"}"},
               {"a.yml.gz", "%YAML:1.0\n---\nkeypoints:\n   - [ 12.5, 7.25, 3.2, -28.6478898, 0., 0, -1 ]\n"}};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    unsigned char packed[2048 + 64];
    scoped_features features = load_bytes(files[i].name, packed, gzip_file(files[i].text, packed));
    assert_int_equal(features.count, 1);
    assert_true(features.keypoints[0].x == 12.5f && features.keypoints[0].y == 7.25f &&
                features.keypoints[0].sigma == 1.6f);
    assert_true(fabsf(features.keypoints[0].orientation - 5.7831853f) < 1e-5f);
  }
}

static void check_compressed_fault(const unsigned char *bytes, size_t size, hs_status expected, const char *reason) {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES], message[256] = "";
  hs_features features = {0};
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  if (expected == HS_ERR_LIMIT) options.max_features = 1;
  scratch_folder_make(&folder);
  scratch_write_file(scratch_folder_path(&folder, "a.key.gz", path), bytes, size);
  const hs_status status = hs_load_features(path, &features, &options);
  scratch_folder_remove(&folder);
  if (status == HS_ERR_UNSUPPORTED && strstr(message, "no zlib")) skip_because("built without zlib");
  if (status != expected || !strstr(message, reason) || !strstr(message, "a.key.gz"))
    fail_msg("status %d, message \"%s\", expected \"%s\"", (int)status, message, reason);
  assert_null(features.keypoints);
}

TEST(test_damaged_compressed_files) {
  char key[2048] = "1 128\n7.25 12.50 1.60 0.500\n";
  unsigned char packed[2048 + 64];
  append_entries(key, 20);
  const size_t size = gzip_member(key, strlen(key), packed);
  for (size_t cut = 3; cut < size; cut += 17) check_compressed_fault(packed, cut, HS_ERR_FORMAT, "cut off");
  packed[size] = 'x';
  check_compressed_fault(packed, size + 1, HS_ERR_FORMAT, "follow the compressed content");
  packed[40] ^= 1; /* the CRC is wrong */
  check_compressed_fault(packed, size, HS_ERR_FORMAT, "damaged");
  packed[40] ^= 1;
  packed[10] = 7; /* the block type is invalid */
  check_compressed_fault(packed, size, HS_ERR_FORMAT, "damaged");
  enum { BOMB = 48, PART = 60000 };
  unsigned char *bomb = malloc((size_t)BOMB * (PART + 23)), *spaces = malloc(PART);
  assert_true(bomb && spaces);
  memset(spaces, ' ', PART);
  size_t used = 0;
  for (int i = 0; i < BOMB; i++) used += gzip_member(spaces, PART, bomb + used);
  check_compressed_fault(bomb, used, HS_ERR_LIMIT, "than");
  free(bomb);
  free(spaces);
}

/* The first file of openMVG's pair is compressed, or both are. */
TEST(test_compressed_pair) {
  const char *const text = "10.5 20.25 1.75 -0.5\n";
  for (int both = 0; both < 2; both++) {
    scratch_folder folder;
    char path[SCRATCH_PATH_BYTES], message[256] = "";
    unsigned char desc[8 + HS_DESCRIPTOR_LENGTH] = {1}, packed[256];
    scoped_features features = {0};
    hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
    scratch_folder_make(&folder);
    scratch_folder_path(&folder, both ? "view.desc.gz" : "view.desc", path);
    if (both)
      scratch_write_file(path, packed, gzip_member(desc, sizeof desc, packed));
    else
      scratch_write_file(path, desc, sizeof desc);
    scratch_folder_path(&folder, "view.feat.gz", path);
    scratch_write_file(path, packed, gzip_member(text, strlen(text), packed));
    const hs_status status = hs_load_features(path, &features, &options);
    scratch_folder_remove(&folder);
    if (status == HS_ERR_UNSUPPORTED && strstr(message, "no zlib")) skip_because("built without zlib");
    if (status != HS_OK) fail_msg("%s", message);
    assert_true(features.count == 1 && features.keypoints[0].x == 10.5f);
  }
}

/* Compressed files are only read: a file is never written under such a name, because it would be uncompressed. */
TEST(test_compressed_names_are_not_written) {
  const hs_features none = {0};
  char message[256] = "";
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  assert_int_equal(hs_save_features("a.key.gz", &none, &options), HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, "read, not written"));
}
