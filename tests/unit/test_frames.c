/*
 * Affine frames of features in lists and files: capacity, copies, npz round trips, and the conversion of COLMAP's
 * keypoints and Oxford's ellipses.
 */

#include "tests/support/test.h"

#include "pipeline/base/features.h"
#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/formats/common/feature_codec.h"

enum { COUNT = 5 };

static hs_frame frame_of(size_t i) { return (hs_frame){2.0f + (float)i, 0.25f, -0.5f, 3.0f}; }

/* Returns a list with frames, which hs_features_free frees. */
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

TEST(test_room) {
  hs_features f = framed();
  const hs_frame *before = f.frames;
  assert_int_equal(features_reserve_framed(&f, COUNT - 1, HS_DESCRIPTOR_U8, true, NULL), HS_OK);
  assert_ptr_equal(f.frames, before); /* capacity is reused */
  assert_int_equal(features_reserve_framed(&f, 4 * COUNT, HS_DESCRIPTOR_U8, true, NULL), HS_OK);
  assert_true(f.frame_capacity >= 4 * COUNT);
  assert_int_equal(features_reserve(&f, COUNT, HS_DESCRIPTOR_U8, NULL), HS_OK);
  assert_null(f.frames);
  assert_int_equal(features_reserve_framed(&f, 0, HS_DESCRIPTOR_NONE, true, NULL), HS_OK);
  assert_non_null(f.frames);
  hs_features_free(&f);
  assert_null(f.frames);
  /* Frames of an empty list come from the allocator too. */
  scoped_counter counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  assert_int_equal(features_reserve_framed(&f, 0, HS_DESCRIPTOR_U8, true, &allocator), HS_OK);
  assert_int_equal(counter.alive, 1);
  hs_features_free(&f);
}

/* Lists that differ only in frames have different digests; equal lists without frames have equal digests. */
TEST(test_digest) {
  scoped_features f = framed();
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
}

/* Saves the features and loads them; `path` receives the file's path. */
static hs_features through(const hs_features *f, hs_format format, const char *name, const scratch_folder *folder,
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

static uint64_t digest_of(const hs_features *f) {
  uint64_t digest = 0;
  assert_int_equal(hs_digest_features(f, &digest), HS_OK);
  return digest;
}

/* Checks lists with frames, without frames, and without features. */
static void check_kept(hs_format format, const char *name) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  scoped_features f = framed();
  f.frames[0] = (hs_frame){1e25f, 0.0f, 0.0f, 2e25f}; /* frames whose determinants exceed a float */
  f.frames[1] = (hs_frame){1e-25f, 0.0f, 0.0f, 2e-25f};
  scoped_features loaded = through(&f, format, name, &folder, path);
  assert_non_null(loaded.frames);
  assert_memory_equal(loaded.frames, f.frames, COUNT * sizeof *f.frames);
  assert_true(digest_of(&loaded) == digest_of(&f));
  hs_features_free(&loaded);
  f.count = 0;
  loaded = through(&f, format, name, &folder, path);
  assert_non_null(loaded.frames);
  hs_features_free(&loaded);
  f.count = COUNT;
  hs_frame *frames = f.frames;
  f.frames = NULL;
  loaded = through(&f, format, name, &folder, path);
  assert_null(loaded.frames);
  f.frames = frames;
  f.frames[2].a21 = NAN;
  assert_int_equal(hs_save_features(path, &f, NULL), HS_ERR_ARGUMENT);
}

TEST(test_kept) {
  check_kept(HS_FORMAT_NPZ, "f.npz");
  check_kept(HS_FORMAT_BIN, "f.hsf");
  check_kept(HS_FORMAT_JSON, "f.json");
}

/* Returns the bytes of a file of a list with frames, which the caller frees. */
static uint8_t *file_bytes(const hs_features *f, hs_format format, const scratch_folder *folder, char *path,
                           size_t *size) {
  hs_features loaded = through(f, format, "hostile", folder, path);
  hs_features_free(&loaded);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  uint8_t *bytes = calloc(1 << 16, 1);
  assert_non_null(bytes);
  *size = fread(bytes, 1, (1 << 16) - 1, file);
  (void)fclose(file);
  return bytes;
}

/* Writes the bytes to the file and reads it. */
static hs_status status_of(const char *path, const uint8_t *bytes, size_t size) {
  scoped_features loaded = {0};
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  const hs_status status = hs_load_features(path, &loaded, NULL);
  return status;
}

/* Lists without frames are written as version 1; a truncated file, or one with the wrong version, is refused. */
TEST(test_hostile_bin) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  size_t size = 0;
  scoped_features f = framed();
  SCOPED_MEMORY uint8_t *bytes = file_bytes(&f, HS_FORMAT_BIN, &folder, path, &size);
  const size_t descriptors_at = 192, frames_at = descriptors_at + COUNT * HS_DESCRIPTOR_LENGTH;
  assert_int_equal(bytes_get_u16(bytes + 12), 2);
  assert_int_equal(size, frames_at + COUNT * sizeof(hs_frame));
  assert_true(bytes_get_f32(bytes + frames_at) == frame_of(0).a11);
  for (size_t cut = frames_at; cut < size; cut++) assert_int_equal(status_of(path, bytes, cut), HS_ERR_FORMAT);
  bytes[12] = 1;
  assert_int_equal(status_of(path, bytes, size), HS_ERR_FORMAT);
  bytes[12] = 3;
  assert_int_equal(status_of(path, bytes, size), HS_ERR_UNSUPPORTED);
  bytes[12] = 2;
  bytes_put_u64(bytes + 24, UINT64_MAX / 2);
  assert_int_equal(status_of(path, bytes, size), HS_ERR_FORMAT);
  free(bytes);
  hs_frame *frames = f.frames;
  f.frames = NULL;
  bytes = file_bytes(&f, HS_FORMAT_BIN, &folder, path, &size);
  assert_int_equal(bytes_get_u16(bytes + 12), 1);
  assert_int_equal(size, frames_at);
  f.frames = frames;
}

/* A file without the header word comes from an earlier writer, so members named "frame" are ignored. */
TEST(test_hostile_json) {
  static const char *const heads[] = {"", "\"frames\": true, ", "\"frames\": 1, ", "\"frames\": [true], "};
  static const struct {
    const char *frame;
    hs_status framed;
  } rows[] = {{", \"frame\": [1, 0.5, 0, 1]", HS_OK},
              {"", HS_ERR_FORMAT},
              {", \"frame\": [1, 0, 0]", HS_ERR_FORMAT},
              {", \"frame\": [1, 0, 0, 1, 0]", HS_ERR_FORMAT},
              {", \"frame\": [1, 1, 1, 1]", HS_ERR_FORMAT},
              {", \"frame\": [1e99, 0, 0, 1]", HS_ERR_FORMAT},
              {", \"frame\": [1, 0, 0, 1], \"frame\": [1, 0, 0, 1]", HS_ERR_FORMAT}};
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES], text[512];
  scratch_folder_path(&folder, "f.json", path);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) {
      const int size = snprintf(text, sizeof text,
                                "{%s\"descriptor_type\": \"none\", \"features\": [{\"x\": 1, \"y\": 2, \"sigma\": 3, "
                                "\"orientation\": 0%s}]}",
                                heads[k], rows[i].frame);
      assert_int_equal(status_of(path, (const uint8_t *)text, (size_t)size), k == 1 ? rows[i].framed : HS_OK);
    }
  }
}

/* Compares the images of a circle under two frames, by A A'. */
static void check_same_ellipse(const hs_frame *f, const hs_frame *g) {
  const double one[3] = {(double)(f->a11 * f->a11 + f->a12 * f->a12), (double)(f->a11 * f->a21 + f->a12 * f->a22),
                         (double)(f->a21 * f->a21 + f->a22 * f->a22)};
  const double two[3] = {(double)(g->a11 * g->a11 + g->a12 * g->a12), (double)(g->a11 * g->a21 + g->a12 * g->a22),
                         (double)(g->a21 * g->a21 + g->a22 * g->a22)};
  for (int k = 0; k < 3; k++) assert_true(fabs(one[k] - two[k]) < 1e-5 * (one[0] + one[2]));
}

/* A list of circles has no frames. If one row is an ellipse, all features have frames. */
TEST(test_oxford_circles) {
  static const char circles[] = "1.0\n2\n1 2 0.01 0 0.01\n3 4 0.02 0 0.02\n";
  static const char mixed[] = "1.0\n3\n1 2 0.01 0 0.01\n3 4 0.02 0.005 0.03\n5 6 0.02 0 0.02\n";
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  scoped_features f = {0};
  scratch_folder_path(&folder, "f.hesaff", path);
  for (int k = 0; k < 2; k++) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(k == 0 ? circles : mixed, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(hs_load_features(path, &f, NULL), HS_OK);
    assert_true((f.frames != NULL) == (k == 1));
  }
  for (size_t i = 0; i < 3; i += 2) {
    const hs_frame *g = &f.frames[i];
    const float sigma = f.keypoints[i].sigma;
    assert_true(g->a12 == 0.0f && g->a21 == 0.0f && fabsf(g->a11 - sigma) < 1e-5f && fabsf(g->a22 - sigma) < 1e-5f);
  }
  assert_true(f.keypoints[0].x == 1.0f && f.keypoints[2].y == 6.0f);
}

/* The ellipse of a row is the image of a circle of 27 sigma^2: a x^2 + 2 b x y + c y^2 = 1 at the columns of the
 * frame. */
TEST(test_oxford) {
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES], line[4096];
  scoped_features f = framed();
  scoped_features loaded = through(&f, HS_FORMAT_OXFORD, "f.hesaff", &folder, path);
  assert_non_null(loaded.frames);
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
    check_same_ellipse(&frame, &loaded.frames[i]);
    assert_true(loaded.frames[i].a21 == 0.0f && loaded.keypoints[i].orientation == 0.0f);
  }
  (void)fclose(file);
}

TEST(test_colmap) {
  const hs_keypoint k = {.x = 10.0f, .y = 20.0f, .sigma = 2.0f};
  const hs_frame frame = {3.0f, 0.25f, 4.0f, 1.0f};
  const float expected[COLMAP_COLUMNS] = {10.5f, 20.5f, 3.0f, 0.25f, 4.0f, 1.0f};
  uint8_t row[COLMAP_KEYPOINT_BYTES];
  hs_keypoint back;
  colmap_frame_put(&k, &frame, row);
  for (size_t i = 0; i < COLMAP_COLUMNS; i++) assert_true(bytes_get_f32(row + 4 * i) == expected[i]);
  assert_null(colmap_keypoint_get(row, COLMAP_COLUMNS, &back));
  assert_true(back.x == 10.0f && back.y == 20.0f);
  assert_true(fabs((double)back.orientation - atan2(4.0, 3.0)) < 1e-6); /* direction of the frame's first column */
  assert_true(fabs((double)back.sigma - 0.5 * (5.0 + sqrt(1.0625))) < 1e-5);
  hs_frame read;
  colmap_frame_get(row, &read);
  assert_memory_equal(&read, &frame, sizeof read);
  uint8_t rows[2 * COLMAP_KEYPOINT_BYTES];
  colmap_keypoint_put(&back, rows);
  colmap_keypoint_put(&k, rows + COLMAP_KEYPOINT_BYTES);
  assert_false(colmap_rows_are_framed(rows, 2)); /* all rows are circles, some of them rotated */
  memcpy(rows, row, sizeof row);
  assert_true(colmap_rows_are_framed(rows, 2));
  memset(rows + COLMAP_KEYPOINT_BYTES + 16, 0, 8);
  assert_false(colmap_rows_are_framed(rows, 2)); /* one row has no inverse */
  assert_false(colmap_rows_are_framed(rows, 0));
}
