/*
 * Feature files that are damaged, state false sizes, or are read with a failing allocator give a status and a reason,
 * and never a crash, a leak or inconsistent features.
 */
#include <sys/stat.h>

#include "tests/support/test.h"

#include "pipeline/formats/formats.h"

enum { MESSAGE_BYTES = 256, MAX_FEATURES = 1000 };

/* The bytes of a written file. beside: the second file of openMVG; null for other formats. */
typedef struct written_file {
  unsigned char *bytes, *beside;
  size_t size, second_size;
} written_file;

/* Returns whether the format is a database of many lists, which test_colmap_content.c tests. */
static bool is_database(const feature_format *format) { return format->read_from != NULL; }

static void save_as(const feature_format *format, const char *path, const hs_features *features) {
  const hs_file_options options = {.struct_size = sizeof options, .format = format->id};
  assert_int_equal(hs_save_features(path, features, &options), HS_OK);
}

static written_file write_file(const feature_format *format, const hs_features *features) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  written_file file = {0};
  scratch_folder_path(&folder, "file", path);
  strcat(path, format->endings[0]);
  save_as(format, path, features);
  file.bytes = scratch_read_file(path, &file.size);
  if (format->second_ending) {
    scratch_folder_path(&folder, "file", path);
    strcat(path, format->second_ending);
    file.beside = scratch_read_file(path, &file.second_size);
  }
  return file;
}

static void free_file(written_file *file) {
  free(file->bytes);
  free(file->beside);
}

static unsigned char *copy_exactly(const unsigned char *bytes, size_t size) {
  unsigned char *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  if (size > 0) memcpy(copy, bytes, size);
  return copy;
}

/* Reads from exact-sized copies, so that a sanitizer detects every byte read out of bounds. */
static hs_status read_file(const feature_format *format, const written_file *file, hs_features *features,
                           char *message) {
  unsigned char *bytes = copy_exactly(file->bytes, file->size);
  unsigned char *beside = file->beside ? copy_exactly(file->beside, file->second_size) : NULL;
  feature_source source = {.path = "file",
                           .bytes = bytes,
                           .size = file->size,
                           .second_bytes = beside,
                           .second_size = file->second_size,
                           .max_features = MAX_FEATURES,
                           .message = message,
                           .message_bytes = MESSAGE_BYTES};
  message[0] = '\0';
  hs_status status = features_read_memory(format, &source, features);
  free(bytes);
  free(beside);
  return status;
}

/* Fails unless reading gives a clear failure or usable features. Returns whether it was a failure. */
static bool check_outcome(const feature_format *format, const written_file *file) {
  char message[MESSAGE_BYTES];
  hs_features features = {0};
  hs_status status = read_file(format, file, &features, message);
  if (status == HS_OK) {
    assert_true(feature_maker_consistent(&features));
    hs_features_free(&features);
    return false;
  }
  assert_true(status == HS_ERR_FORMAT || status == HS_ERR_LIMIT || status == HS_ERR_UNSUPPORTED);
  assert_null(features.keypoints);
  assert_memory_equal(message, "file", 4);
  assert_true(strlen(message) > 8);
  return true;
}

static bool has_checksum(const feature_format *format) {
  return format->id == HS_FORMAT_BIN || format->id == HS_FORMAT_NPZ;
}

static void truncate_everywhere(const feature_format *format, feature_style style) {
  scoped_features features = {0};
  feature_maker_fill(&features, 3, style, 21);
  written_file file = write_file(format, &features);
  written_file cut = file;
  size_t step = file.size > 4000 ? 3 : 1;
  for (cut.size = 0; cut.size < file.size; cut.size += step) {
    bool failed = check_outcome(format, &cut);
    if (has_checksum(format)) assert_true(failed);
  }
  cut = file;
  for (cut.second_size = 0; cut.second_size < file.second_size; cut.second_size++)
    assert_true(check_outcome(format, &cut));
  free_file(&file);
}

TEST(test_truncated_files) {
  for (size_t i = 0; format_at(i) != NULL; i++) {
    if (is_database(format_at(i))) continue;
    truncate_everywhere(format_at(i), FEATURES_U8);
    truncate_everywhere(format_at(i), FEATURES_UNIT_F32);
    if (format_at(i)->without_descriptors) truncate_everywhere(format_at(i), FEATURES_NONE);
  }
}

static void flip_everywhere(const feature_format *format, unsigned char *bytes, size_t size, const written_file *file) {
  static const unsigned char masks[] = {0x01, 0x80, 0x10, 0xff};
  size_t step = size > 4000 ? 3 : 1;
  for (size_t at = 0; at < size; at += step) {
    unsigned char kept = bytes[at];
    bytes[at] ^= masks[at % sizeof masks];
    bool failed = check_outcome(format, file);
    if (format->id == HS_FORMAT_BIN) assert_true(failed);
    bytes[at] = kept;
  }
}

TEST(test_flipped_bytes) {
  for (size_t i = 0; format_at(i) != NULL; i++) {
    if (is_database(format_at(i))) continue;
    for (feature_style style = FEATURES_U8; style <= FEATURES_UNIT_F32; style++) {
      scoped_features features = {0};
      feature_maker_fill(&features, 2, style, 4);
      written_file file = write_file(format_at(i), &features);
      flip_everywhere(format_at(i), file.bytes, file.size, &file);
      flip_everywhere(format_at(i), file.beside, file.second_size, &file);
      free_file(&file);
    }
  }
}

/* Every array of an .npz has a CRC-32, so a changed byte of data is always detected. */
TEST(test_npz_data_is_checked) {
  const feature_format *format = format_by_name("npz");
  scoped_features features = {0};
  feature_maker_fill(&features, 3, FEATURES_U8, 4);
  written_file file = write_file(format, &features);
  /* The descriptors are in the middle of the archive: 384 of some 2900 bytes, after 512 of keypoints and headers. */
  for (size_t at = 400; at < 700; at++) {
    file.bytes[at] ^= 0x04;
    assert_true(check_outcome(format, &file));
    file.bytes[at] ^= 0x04;
  }
  assert_false(check_outcome(format, &file));
  free_file(&file);
}

TEST(test_trailing_bytes) {
  for (size_t i = 0; format_at(i) != NULL; i++) {
    if (is_database(format_at(i))) continue;
    const feature_format *format = format_at(i);
    scoped_features features = {0};
    feature_maker_fill(&features, 2, FEATURES_U8, 4);
    written_file file = write_file(format, &features);
    written_file longer = file;
    longer.size += 4;
    longer.bytes = malloc(longer.size);
    assert_non_null(longer.bytes);
    memcpy(longer.bytes, file.bytes, file.size);
    memcpy(longer.bytes + file.size, "1 2\n", 4);
    /* YAML allows more lines after the values. */
    if (format->id != HS_FORMAT_OPENCV) assert_true(check_outcome(format, &longer));
    free(longer.bytes);
    free_file(&file);
  }
}

/* A text, and a part of the message expected for it. */
typedef struct wrong_text {
  const char *format, *text, *reason;
} wrong_text;

#define OPENCV_HEAD "%YAML:1.0\n---\n"
#define OPENCV_ONE  OPENCV_HEAD "keypoints:\n   - [ 1, 2, 3, 4, 0, 0, -1 ]\n"
#define CSV_HEAD    "x,y,sigma,orientation\n"
#define JSON_HEAD   "{\"descriptor_type\": \"none\", \"features\": ["

#define ZEROS_15  " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
#define ZEROS_127 ZEROS_15 ZEROS_15 ZEROS_15 ZEROS_15 ZEROS_15 ZEROS_15 ZEROS_15 ZEROS_15 " 0 0 0 0 0 0 0"

static const wrong_text wrong_texts[] = {
    {"colmap", "", "file:1: the number of features is missing"},
    {"colmap", "-1 128\n", "file:1: the number of features is negative"},
    {"colmap", "1 64\n1 2 3 4\n", "file:1: the descriptor length is not 128"},
    {"colmap", "1000000000000 128\n", "too short for 1000000000000"},
    {"colmap", "0 128\n1 2 3 4\n", "file:2: more lines"},
    {"colmap", "0 128 5\n", "file:1: more values"},
    {"colmap", "x 128\n", "file:1: the number of features: expected an integer, found \"x\""},
    {"colmap", "1 128\n1 2 3 4 0.5" ZEROS_127 "\n", "file:2: a descriptor of unit norm"},
    {"colmap", "1 128\n1 2 3 4 256" ZEROS_127 "\n",
     "file:2: descriptor entry 0: expected a number of 0..255, found \"256\""},
    {"lowe", "1 128\n1 2 3 4\n0.5" ZEROS_127 "\n", "file:3: descriptor entry 0 is 0.5, no whole number"},
    {"lowe", "1 36\n1 2 3 4\n", "file:1: the descriptor length is 36, neither 128 nor 0"},
    {"lowe", "0 128\n1", "more values"},
    {"lowe", "-5 128\n", "negative"},
    {"lowe", "99999999999999999999 128\n", "expected an integer"},
    {"vlfeat", "1 2 3 4\n1 2 0 4\n", "file:2: the scale is not a positive"},
    {"vlfeat", "1 2 3 4\n1 2 -1 4\n", "file:2: the scale"},
    {"vlfeat", "1 2 3 4\n\n\n1 nan 3 4\n", "file:4: y: expected a finite number, found \"nan\""},
    {"vlfeat", "1 2 3 4\n1 2 3 4 5\n", "file:2: more values"},
    {"vlfeat", "1e39 2 3 4\n", "a coordinate is not a finite"},
    {"vlfeat", "1 2 3\n1 2 3\n1 2 3\n", "too short"},
    {"vlfeat", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "too short"},
    {"csv", "", "file:1: the header has no column x"},
    {"csv", "x,y,sigma\n", "no column orientation"},
    {"csv", "x,y,sigma,orientation,colour\n", "column 5 of the header has no known name: \"colour\""},
    {"csv", "x,y,sigma,orientation,x\n", "column 5 of the header repeats"},
    {"csv", "x,y,sigma,orientation,d0,f1\n", "mixes"},
    {"csv", "x,y,sigma,orientation,d0\n", "no column for descriptor entry 1"},
    {"csv", CSV_HEAD "1,2,3\n", "too short|fewer fields|shorter"},
    {"csv", CSV_HEAD "1,2,3,4\n1,2,3,inf\n", "file:3: field 4 is not a finite number"},
    {"csv", CSV_HEAD "1,2,3,4,5\n", "file:2: more values"},
    {"csv", "x,y,sigma,orientation,octave\n1,2,3,4,0.5\n", "octave"},
    {"csv", "x,y,sigma,orientation,level\n1,2,3,4,-1\n", "level"},
    {"json", "", "ends where {"},
    {"json", "[]", "expected {"},
    {"json", "{}", "there is no \"features\""},
    {"json", "{\"features\": []}", "there is no \"descriptor_type\""},
    {"json", "{\"descriptor_type\": \"u16\", \"features\": []}", "none of u8"},
    {"json", "{\"keypoints\": [1]}", "OpenCV's storages in JSON are not read"},
    {"json", JSON_HEAD "]} 1", "something follows"},
    {"json", JSON_HEAD "], \"count\": 2}", "count does not agree"},
    {"json", JSON_HEAD "], \"image_width\": -4}", "image size"},
    {"json", JSON_HEAD "], \"version\": 2}", "version"},
    {"json", JSON_HEAD "], \"features\": []}", "twice"},
    {"json", JSON_HEAD "{\"x\": 1, \"y\": 2, \"sigma\": 3, \"orient\": 1111111111}]}", "a feature has no orientation"},
    {"json", JSON_HEAD "{\"x\": 1, \"x\": 2, \"sigma\": 3, \"orientation\": 4}]}", "x is given twice"},
    {"json", JSON_HEAD "{\"x\": 1, \"y\": 2, \"sigma\": -3, \"orientation\": 4}]}", "the scale"},
    {"json", JSON_HEAD "{\"x\": 01, \"y\": 2, \"sigma\": -3, \"orientation\": 4}]}", "finite number"},
    {"json", JSON_HEAD "{\"x\": NaN, \"y\": 2, \"sigma\": -3, \"orientation\": 4}]}", "finite number"},
    {"json", JSON_HEAD "1,2,3,4,5,6,7,8,9]}", "too short"},
    {"json", JSON_HEAD "], \"a\": \"\\q\"}", "unknown escape"},
    {"json", JSON_HEAD "], \"a\": \"\t\"}", "control character"},
    {"json", JSON_HEAD "], \"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested too deeply"},
    {"opencv", "keypoints: []\n", "no %YAML"},
    {"opencv", OPENCV_HEAD "descriptors: []\n", "no \"keypoints\""},
    {"opencv", OPENCV_HEAD "keypoints: [ 1, 2, 3 ]\n", "multiple of seven"},
    {"opencv", OPENCV_HEAD "keypoints:\n   - [ 1, 2, 3 ]\n", "does not have seven"},
    {"opencv", OPENCV_HEAD "keypoints:\n   - [ 1, 2, 0, 4, 0, 0, -1 ]\n", "file:4: the scale"},
    {"opencv", OPENCV_HEAD "keypoints:\n   - [ 1, .Nan, 3, 4, 0, 0, -1 ]\n", "file:4: a list entry is not a finite"},
    {"opencv", OPENCV_HEAD "keypoints:\n   - [ 1, 2, 3, 4, 0, 3e9, -1 ]\n", "packed octave"},
    {"opencv", OPENCV_HEAD "keypoints: []\nkeypoints: []\n", "keypoints is given twice"},
    {"opencv", OPENCV_ONE "   rest\n", "content after the keypoints"},
    {"opencv", OPENCV_ONE "descriptors: 5\n", "not an opencv-matrix"},
    {"opencv", OPENCV_ONE "descriptors: !!opencv-matrix\n   rows: 1\n   cols: 64\n   dt: u\n   data: [ 1 ]\n",
     "128 columns"},
    {"opencv", OPENCV_ONE "descriptors: !!opencv-matrix\n   rows: 1\n   cols: 128\n   dt: r\n   data: [ 1 ]\n",
     "of none of the types"},
    {"opencv", OPENCV_ONE "descriptors: !!opencv-matrix\n   rows: 1\n   cols: 128\n   dt: u\n   data: [ 1 ]\n",
     "fewer values"},
    {"opencv", OPENCV_ONE "descriptors: !!opencv-matrix\n   rows: 1\n   cols: 128\n   dt: u\n   data: [ 300 ]\n",
     "0..255"},
    {"opencv", OPENCV_ONE "descriptors: !!opencv-matrix\n   rows: 2\n   cols: 128\n   dt: u\n   data: [ 1 ]\n",
     "2 descriptors for 1"},
    {"opencv", OPENCV_HEAD "image_width: -5\nkeypoints: []\n", "out of range"},
    {"bin", "short", "shorter than a header"},
    {"visualsfm", "SIFTV4.0", "shorter than a header"},
    {"visualsfm",
     "SIFTV3.0................\xff"
     "EOF",
     "only versions V4.0 and V5.0"},
    {"visualsfm",
     "SOFTV4.0................\xff"
     "EOF",
     "not a file of VisualSFM"},
    {"visualsfm",
     "SIFTV4.0....\x05...\x80...\xff"
     "EOF",
     "five numbers"},
    {"oxford", "", "file:1: the descriptor length"},
    {"oxford", "64\n1\n1 2 3 0 3\n", "file:1: the descriptor length is neither"},
    {"oxford", "1.0\n", "the number of regions is missing"},
    {"oxford", "1.0\n-2\n", "file:2: the number of regions is negative"},
    {"oxford", "1.0\n1.5\n1 2 3 0 3\n", "expected an integer"},
    {"oxford", "128\n1000000\n1 2 3 0 3\n", "too short for 1000000 regions"},
    {"oxford", "1.0\n1\n1 2 3 0 3 4\n", "more values"},
    {"oxford", "1.0\n1\n1 2 -3 0 -3\n", "file:3: a, b, c are not an ellipse"},
    {"oxford", "1.0\n1\n1 2 3 3 3\n", "not an ellipse"},
    {"oxford", "1.0\n1\n1 2 3 0 0\n", "not an ellipse"},
    {"oxford", "1.0\n1\n1 nan 3 0 3\n", "file:3: v: expected a finite number"},
    {"oxford", "1.0\n1\n1 2 1e300 0 1e300\n", "not an ellipse"},
    {"oxford", "1.0\n1\n1 2 1e-150 0 1e-150\n", "the scale"},
    {"oxford", "128\n0\n7\n", "more values"},
    {"oxford", "0\n1\n1 2 9 3 0 1 2 3 4 1 0 0 1\n", "file:2: regions of 13 numbers"},
    {"oxford", "128\n1\n1 2 9 3 0 1 2 3 4 1 0 0 1 0" ZEROS_127 "\n", "file:2: regions of 13 numbers"},
    {"npz", "PK", "too short for a zip"},
};

/* Returns whether the message contains one of the reasons, which are separated by |. */
static bool message_has(const char *message, const char *reasons) {
  char copy[128];
  (void)snprintf(copy, sizeof copy, "%s", reasons);
  for (char *start = copy; start;) {
    char *bar = strchr(start, '|');
    if (bar) *bar = '\0';
    if (strstr(message, start)) return true;
    start = bar ? bar + 1 : NULL;
  }
  return false;
}

TEST(test_wrong_texts_are_explained) {
  for (size_t i = 0; i < sizeof wrong_texts / sizeof wrong_texts[0]; i++) {
    const wrong_text *wrong = &wrong_texts[i];
    written_file file = {.bytes = (unsigned char *)(uintptr_t)wrong->text, .size = strlen(wrong->text)};
    char message[MESSAGE_BYTES];
    scoped_features features = {0};
    hs_status status = read_file(format_by_name(wrong->format), &file, &features, message);
    if (status == HS_OK || !message_has(message, wrong->reason))
      fail_msg("%s, \"%s\": status %d, message \"%s\"", wrong->format, wrong->text, (int)status, message);
  }
}

/* max_features is checked before memory of the stated size is allocated. */
TEST(test_claims_are_limited_first) {
  for (size_t i = 0; format_at(i) != NULL; i++) {
    if (is_database(format_at(i))) continue;
    scoped_folder folder = scratch_folder_new();
    char path[SCRATCH_PATH_BYTES];
    char message[MESSAGE_BYTES] = "";
    counted_allocator counter = {0};
    hs_allocator allocator = counted_allocator_make(&counter);
    scoped_features features = {0};
    scoped_features loaded = {0};
    scratch_folder_path(&folder, "limit", path);
    strcat(path, format_at(i)->endings[0]);
    feature_maker_fill(&features, 30, FEATURES_U8, 3);
    save_as(format_at(i), path, &features);
    hs_file_options options = {.struct_size = sizeof options,
                               .max_features = 29,
                               .allocator = &allocator,
                               .message = message,
                               .message_bytes = sizeof message};
    assert_int_equal(hs_load_features(path, &loaded, &options), HS_ERR_LIMIT);
    assert_non_null(strstr(message, "30 features, more than the limit of 29"));
    assert_int_equal(counter.alive, 0);
    options.max_features = 30;
    assert_int_equal(hs_load_features(path, &loaded, &options), HS_OK);
    assert_int_equal(counter.alive, 2);
  }
}

/* The memory that a reader holds at one time is within max_memory_bytes, whether the limit suffices or not. */
static void check_memory_within(const char *path, uint64_t limit, bool is_enough) {
  scoped_counter counter = {0};
  char message[MESSAGE_BYTES] = "";
  scoped_features loaded = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  const hs_file_options options = {.struct_size = sizeof options,
                                   .max_memory_bytes = limit,
                                   .allocator = &allocator,
                                   .message = message,
                                   .message_bytes = sizeof message};
  assert_int_equal(hs_load_features(path, &loaded, &options), is_enough ? HS_OK : HS_ERR_LIMIT);
  if (!is_enough) assert_non_null(strstr(message, "bytes of max_memory_bytes"));
  assert_true(counter.most_bytes <= limit);
}

TEST(test_memory_stays_within_the_limit) {
  enum { COUNT = 200 };
  for (size_t i = 0; format_at(i) != NULL; i++) {
    const feature_format *format = format_at(i);
    if (is_database(format)) continue;
    scoped_folder folder = scratch_folder_new();
    char path[SCRATCH_PATH_BYTES];
    scoped_features features = {0};
    size_t file_bytes = 0;
    scratch_folder_path(&folder, "memory", path);
    strcat(path, format->endings[0]);
    feature_maker_fill(&features, COUNT, FEATURES_U8, 3);
    save_as(format, path, &features);
    free(scratch_read_file(path, &file_bytes));
    check_memory_within(path, file_bytes - 1, false);
    check_memory_within(path, file_bytes + COUNT * sizeof(hs_keypoint), false);
    check_memory_within(path, 4 * file_bytes + COUNT * (sizeof(hs_keypoint) + 4 * HS_DESCRIPTOR_LENGTH), true);
    check_memory_within(path, UINT64_MAX, true);
  }
}

static hs_status load_limited(const char *path, uint64_t max_memory_bytes, uint64_t max_features, const char *word) {
  char message[MESSAGE_BYTES] = "";
  scoped_features loaded = {0};
  const hs_file_options options = {.struct_size = sizeof options,
                                   .max_memory_bytes = max_memory_bytes,
                                   .max_features = max_features,
                                   .message = message,
                                   .message_bytes = sizeof message};
  const hs_status status = hs_load_features(path, &loaded, &options);
  if (status != HS_OK && !strstr(message, word)) fail_msg("'%s' says nothing of '%s'", message, word);
  return status;
}

/* A compressed array counts in addition to the file and the list: 1597, 5 x 536 and 3313 bytes. */
TEST(test_inflated_arrays_count) {
  const char *path = HARTSIFT_SOURCE_DIR "/tests/data/formats/numpy_deflated_f32.npz";
  assert_int_equal(load_limited(path, 5500, 0, "max_memory_bytes"), HS_ERR_LIMIT);
  assert_int_equal(load_limited(path, 1 << 20, 0, ""), HS_OK);
}

/* A text larger than max_features allows is not read at all. */
TEST(test_large_text_of_few_features) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  const size_t size = 3 << 20;
  SCOPED_MEMORY char *blanks = malloc(size);
  assert_non_null(blanks);
  memset(blanks, ' ', size);
  scratch_write_file(scratch_folder_path(&folder, "large.csv", path), blanks, size);
  assert_int_equal(load_limited(path, 0, 1, "larger than 1 features can need"), HS_ERR_LIMIT);
}

/* Files that state far more data than they have are refused without a large allocation. */
TEST(test_claims_beyond_the_size_allocate_nothing) {
  const struct {
    const char *name, *text;
  } claims[] = {{"a.txt", "100000000 128\n"},
                {"a.key", "100000000 128\n"},
                {"a.sift", "1 2 3 4 5\n"},
                {"b.sift", "SIFTV4.0\xff\xff\xff\x07\x05.."},
                {"a.hesaff", "128\n100000000\n1 2 3 0 3\n"}};
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
    scoped_counter counter = {0};
    hs_allocator allocator = counted_allocator_make(&counter);
    hs_file_options options = {.struct_size = sizeof options, .allocator = &allocator};
    hs_features loaded = {0};
    scratch_write_file(scratch_folder_path(&folder, claims[i].name, path), claims[i].text, strlen(claims[i].text));
    assert_int_equal(hs_load_features(path, &loaded, &options), HS_ERR_FORMAT);
    assert_true(counter.peak_bytes < 1000);
  }
}

/* Each allocation fails once: the status is HS_ERR_MEMORY, nothing leaks, and the caller's features are unchanged. */
TEST(test_failing_allocations) {
  for (size_t i = 0; format_at(i) != NULL; i++) {
    if (is_database(format_at(i))) continue;
    scoped_folder folder = scratch_folder_new();
    char path[SCRATCH_PATH_BYTES];
    hs_features features = {0};
    scratch_folder_path(&folder, "memory", path);
    strcat(path, format_at(i)->endings[0]);
    feature_maker_fill(&features, 10, FEATURES_U8, 3);
    save_as(format_at(i), path, &features);
    hs_features before = features;
    hs_status status = HS_ERR_MEMORY;
    size_t failures = 0;
    for (size_t n = 1; status == HS_ERR_MEMORY; n++) {
      scoped_counter counter = {.fail_at = n};
      hs_allocator allocator = counted_allocator_make(&counter);
      hs_file_options options = {.struct_size = sizeof options, .allocator = &allocator};
      status = hs_load_features(path, &features, &options);
      if (status == HS_OK) {
        assert_int_equal(counter.alive, 2);
        hs_features_free(&features);
      } else {
        assert_memory_equal(&features, &before, sizeof features);
        failures++;
      }
    }
    assert_int_equal(status, HS_OK);
    assert_true(failures >= 3);
  }
}

TEST(test_what_is_no_file) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  char message[MESSAGE_BYTES] = "";
  hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  hs_features loaded = {0};
  assert_int_equal(hs_load_features(scratch_folder_path(&folder, "absent.npz", path), &loaded, &options), HS_ERR_IO);
  assert_non_null(strstr(message, "absent.npz: cannot open"));
  assert_int_equal(hs_load_features(folder.path, &loaded, &options), HS_ERR_IO);
  assert_non_null(strstr(message, "not a regular file"));
  assert_int_equal(mkfifo(scratch_folder_path(&folder, "pipe.npz", path), 0600), 0);
  assert_int_equal(hs_load_features(path, &loaded, &options), HS_ERR_IO);
  scratch_write_file(scratch_folder_path(&folder, "unknown", path), "\x01\x02", 2);
  assert_int_equal(hs_load_features(path, &loaded, &options), HS_ERR_FORMAT);
  scratch_write_file(scratch_folder_path(&folder, "empty", path), "", 0);
  assert_int_equal(hs_load_features(path, &loaded, &options), HS_ERR_FORMAT);
}
