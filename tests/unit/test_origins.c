/*
 * Provenance of descriptors: what every format stores, and what files and matching refuse because of it.
 */
#include "tests/support/test.h"

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"
#include "tests/support/colmap_fixture.h"
#include "tests/support/colmap_tables.h"

enum { FEATURES = 12 };

static hs_features make(feature_style style, hs_origin origin) {
  hs_features features = {0};
  feature_maker_fill(&features, FEATURES, style, 3);
  features.origin = origin;
  return features;
}

static void assert_origin(const hs_origin *origin, const hs_origin *expected) {
  assert_memory_equal(origin, expected, sizeof *origin);
}

/* ------------------------------------------------------------------ files */

static bool keeps_origin(hs_format format) {
  return format == HS_FORMAT_NPZ || format == HS_FORMAT_JSON || format == HS_FORMAT_OPENCV || format == HS_FORMAT_BIN;
}

static void save(const char *path, const hs_features *features, const feature_format *format, hs_status expected,
                 const char *word) {
  char message[512] = "";
  const hs_file_options options = {.struct_size = sizeof options,
                                   .format = format->id,
                                   .layout = features->origin.layout,
                                   .image_name = "a.jpg",
                                   .message = message,
                                   .message_bytes = sizeof message};
  assert_int_equal(hs_save_features(path, features, &options), expected);
  if (!strstr(message, word)) fail_msg("'%s' says nothing of '%s'", message, word);
}

static hs_origin load_origin(const char *path, const feature_format *format) {
  scoped_features read = {0};
  const hs_file_options options = {.struct_size = sizeof options, .format = format->id};
  assert_int_equal(hs_load_features(path, &read, &options), HS_OK);
  assert_int_equal(read.count, FEATURES);
  const hs_origin origin = read.origin;
  return origin;
}

/* Covers every profile and norm, pooled and not, in both bin orders, in every format that is a single file. */
TEST_IN_FOLDER(test_round_trips) {
  static const hs_origin unknown;
  char path[SCRATCH_PATH_BYTES];
  for (int32_t i = 0; i < 32; i++) {
    hs_origin origin = {1 + i % 3, (hs_profile)(i % 4), (hs_norm)(i / 4 % 2), (hs_bin_layout)(i / 8 % 2), 0, i / 16,
                        {0}};
    scoped_features features = make(FEATURES_U8, origin);
    for (size_t k = 0; format_at(k) != NULL; k++) {
      const feature_format *format = format_at(k);
      if (format->write_into) continue;
      char name[64];
      snprintf(name, sizeof name, "f%s", format->endings[0]);
      scratch_folder_path(folder, name, path);
      features.origin.exif_orientation = format->as_stored ? 0 : i % 8 > 0 ? i % 8 + 1 : 0;
      save(path, &features, format, HS_OK, "");
      hs_origin expected = features.origin;
      expected.layout = HS_LAYOUT_UBC; /* every reader returns descriptors in this order */
      const hs_origin read = load_origin(path, format);
      assert_origin(&read, keeps_origin(format->id) ? &expected : &unknown);
    }
  }
}

TEST_IN_FOLDER(test_unknown_stays_unknown) {
  char path[SCRATCH_PATH_BYTES];
  const hs_origin origins[] = {{0}, {.exif_orientation = 6}};
  for (size_t i = 0; i < 2; i++) {
    scoped_features features = make(FEATURES_UNIT_F32, origins[i]);
    for (size_t k = 0; format_at(k) != NULL; k++) {
      if (!keeps_origin(format_at(k)->id)) continue;
      scratch_folder_path(folder, "f", path);
      save(path, &features, format_at(k), HS_OK, "");
      const hs_origin read = load_origin(path, format_at(k));
      assert_origin(&read, &origins[i]);
    }
  }
}

/* Loads a file whose header bytes are changed and whose checksum is correct. */
static hs_origin load_patched(const char *path, const uint8_t patch[4]) {
  size_t size;
  SCOPED_MEMORY uint8_t *bytes = scratch_read_file(path, &size);
  memcpy(bytes + 16, patch, 4);
  bytes_put_u32(bytes + 60, 0);
  bytes_put_u32(bytes + 60, crc_castagnoli(0, bytes, size));
  scratch_write_file(path, bytes, size);
  return load_origin(path, format_by_id(HS_FORMAT_BIN));
}

TEST_IN_FOLDER(test_binary_files_of_other_versions) {
  static const hs_origin unknown;
  char path[SCRATCH_PATH_BYTES];
  scoped_features features =
      make(FEATURES_U8, (hs_origin){2, HS_PROFILE_COLMAP, HS_NORM_ROOT, HS_LAYOUT_UBC, 0, 0, {0}});
  scratch_folder_path(folder, "f.hsf", path);
  save(path, &features, format_by_id(HS_FORMAT_BIN), HS_OK, "");
  static const uint8_t of_before[] = {2, 0, 0, 0}; /* method version 2 and no other information, in four bytes */
  hs_origin read = load_patched(path, of_before);
  assert_origin(&read, &unknown);
  static const uint8_t of_later[][4] = {
      {2, 0, 0x80 | 15, 0}, {2, 0, 0x80 | 4 << 4, 0}, {0, 0, 0x80, 0}, {2, 0, 0x83, 99}};
  for (size_t i = 0; i < 3; i++) {
    read = load_patched(path, of_later[i]);
    assert_origin(&read, &unknown);
  }
  read = load_patched(path, of_later[3]);
  assert_true(read.method_version == 2 && read.profile == HS_PROFILE_COLMAP && read.exif_orientation == 0);
}

static hs_status load_text(const scratch_folder *folder, const char *name, const char *text, hs_features *read) {
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, name, path);
  scratch_write_file(path, text, strlen(text));
  return hs_load_features(path, read, NULL);
}

TEST_IN_FOLDER(test_text_files_of_other_versions) {
  static const char *const unknown[] = {
      "{\"descriptor_type\": \"none\", \"features\": []}",
      "{\"descriptor_type\": \"none\", \"method_version\": 2, \"features\": []}",
      "{\"descriptor_type\": \"none\", \"method_version\": 2, \"profile\": \"next\", \"norm\": \"l2\", \"features\": []}",
      "{\"descriptor_type\": \"none\", \"method_version\": 2, \"profile\": null, \"norm\": \"l2\", \"features\": []}",
      "{\"descriptor_type\": \"none\", \"method_version\": 0, \"profile\": \"lowe\", \"norm\": \"l2\", \"features\": []}",
  };
  scoped_features read = {0};
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    assert_int_equal(load_text(folder, "f.json", unknown[i], &read), HS_OK);
    assert_int_equal(read.origin.method_version, 0);
  }
  assert_int_equal(
      load_text(folder, "f.json", "{\"descriptor_type\": \"none\", \"method_version\": -1, \"features\": []}", &read),
      HS_ERR_FORMAT);
  static const char yaml[] = "%%YAML:1.0\n---\n%skeypoints: [ ]\n";
  static const struct {
    const char *line;
    hs_status status;
    int32_t version;
  } lines[] = {{"", HS_OK, 0},
               {"hartsift_origin: [ 7, 3, 1, 8 ]\n", HS_OK, 7},
               {"hartsift_origin: [ 7, 4, 1, 8 ]\n", HS_OK, 0},
               {"hartsift_origin: [ 7, 3, 1 ]\n", HS_ERR_FORMAT, 0},
               {"hartsift_origin: [ 7, 3, 1, 0, 0 ]\n", HS_ERR_FORMAT, 0},
               {"hartsift_origin: [ 7, -3, 1, 0 ]\n", HS_ERR_FORMAT, 0},
               {"hartsift_origin: lowe\n", HS_ERR_FORMAT, 0}};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    char text[256];
    snprintf(text, sizeof text, yaml, lines[i].line);
    assert_int_equal(load_text(folder, "f.yml", text, &read), lines[i].status);
    if (lines[i].status == HS_OK) assert_int_equal(read.origin.method_version, lines[i].version);
  }
  hs_features_free(&read);
  assert_int_equal(hs_load_features(HARTSIFT_SOURCE_DIR "/tests/data/formats/numpy_u8.npz", &read, NULL), HS_OK);
  assert_int_equal(read.origin.method_version, 0);
}

TEST_IN_FOLDER(test_refused_origins) {
  static const hs_origin wrong[] = {{.method_version = -1},
                                    {.method_version = 1 << 16},
                                    {.method_version = 2, .profile = (hs_profile)4},
                                    {.method_version = 2, .norm = (hs_norm)2},
                                    {.exif_orientation = 9},
                                    {.dsp = 2},
                                    {.reserved = {0, 1}}};
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, "f.npz", path);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    scoped_features features = make(FEATURES_U8, wrong[i]);
    assert_int_equal(hs_save_features(path, &features, NULL), HS_ERR_ARGUMENT);
  }
  /* The format would store these descriptors in the wrong bin order. */
  scoped_features features = make(FEATURES_U8, (hs_origin){.method_version = 2, .layout = HS_LAYOUT_VLFEAT});
  char message[256];
  const hs_file_options options = {.struct_size = sizeof options, .message = message, .message_bytes = sizeof message};
  assert_int_equal(hs_save_features(path, &features, &options), HS_ERR_ARGUMENT);
  assert_non_null(strstr(message, "origin.layout in VLFeat's order"));
}

/* Programs that read a photograph as stored must not get features of the rotated photograph. */
TEST_IN_FOLDER(test_turned_pictures) {
  char path[SCRATCH_PATH_BYTES];
  hs_features features = make(FEATURES_U8, (hs_origin){.method_version = 2, .exif_orientation = 6});
  for (size_t i = 0; format_at(i) != NULL; i++) {
    const feature_format *format = format_at(i);
    char name[64];
    snprintf(name, sizeof name, "f%s", format->endings[0]);
    scratch_folder_path(folder, name, path);
#if !HARTSIFT_HAVE_SQLITE
    if (format->write_into) continue;
#endif
    features.origin.exif_orientation = 6;
    save(path, &features, format, format->as_stored ? HS_ERR_ARGUMENT : HS_OK,
         format->as_stored ? "orientation 6" : "");
    features.origin.exif_orientation = 0;
    save(path, &features, format, HS_OK, "");
  }
  hs_features_free(&features);
}

/* ------------------------------------------------------------------ the database */

#if HARTSIFT_HAVE_SQLITE

static void assert_origin_there(hs_colmap_database *database, uint32_t image, const hs_origin *expected) {
  scoped_features read = {0};
  assert_int_equal(hs_colmap_read_features(database, image, &read), HS_OK);
  assert_origin(&read.origin, expected);
}

TEST_ON_DATABASE(test_database) {
  static const hs_origin unknown, root = {2, HS_PROFILE_COLMAP, HS_NORM_ROOT, HS_LAYOUT_UBC, 0, 0, {0}},
                                  plain = {1, HS_PROFILE_LOWE, HS_NORM_L2, HS_LAYOUT_UBC, 0, 0, {0}};
  scoped_database *database = colmap_fixture_open(f, 1, 0);
  colmap_fixture_add(database, "a.jpg", &f->features, 1); /* the origin is unknown, so no table is needed */
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM sqlite_master WHERE name = 'hartsift_origins'"), 0);
  database = colmap_fixture_open(f, 1, 0);
  f->features.origin = root;
  f->others.origin = plain;
  colmap_fixture_add(database, "b.jpg", &f->features, 2);
  colmap_fixture_add(database, "c.jpg", &f->others, 3);
  assert_origin_there(database, 1, &unknown);
  assert_origin_there(database, 2, &root);
  assert_origin_there(database, 3, &plain);
  colmap_fixture_add(database, "a.jpg", &f->features, 1); /* the same features with a more complete origin */
  colmap_fixture_finish(database);
  database = colmap_fixture_open(f, 1, 0);
  assert_origin_there(database, 1, &root);
  f->others.origin = unknown;
  colmap_fixture_add(database, "b.jpg", &f->others, 2); /* the image gets features of another program */
  assert_origin_there(database, 2, &unknown);
  colmap_fixture_finish(database);
  /* Another program stores other features. */
  colmap_tables_run(f->path, "UPDATE keypoints SET rows = rows - 1, data = substr(data, 1, length(data) - 24);"
                             "UPDATE descriptors SET rows = rows - 1, data = substr(data, 1, length(data) - 128)");
  database = colmap_fixture_open(f, 1, 0);
  assert_origin_there(database, 1, &unknown);
}

TEST_ON_DATABASE(test_copied_images) {
  char path[SCRATCH_PATH_BYTES];
  const hs_origin origin = {2, HS_PROFILE_COLMAP, HS_NORM_ROOT, HS_LAYOUT_UBC, 0, 0, {0}};
  scoped_database *source = colmap_fixture_open(f, 0, 0), *target;
  f->features.origin = origin;
  colmap_fixture_add(source, "a.jpg", &f->features, 1);
  scratch_folder_path(&f->folder, "target.db", path);
  assert_int_equal(hs_colmap_open(&target, path, NULL), HS_OK);
  assert_int_equal(hs_colmap_copy_image(target, source, 1, NULL), HS_OK);
  assert_origin_there(target, 1, &origin);
}

/* If the call that creates the table fails, the table is removed, and the next call creates it again. */
TEST_ON_DATABASE(test_table_that_is_undone) {
  const hs_origin origin = {2, HS_PROFILE_OPENCV, HS_NORM_L2, HS_LAYOUT_UBC, 0, 0, {0}};
  colmap_tables_run(f->path, "CREATE TRIGGER no BEFORE INSERT ON images WHEN new.name = 'no.jpg' BEGIN"
                             " SELECT RAISE(ABORT, 'no'); END");
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  f->features.origin = origin;
  assert_int_not_equal(hs_colmap_add_image(database, "no.jpg", NULL, &f->features, NULL), HS_OK);
  assert_non_null(strstr(hs_colmap_last_error(database), "no"));
  colmap_fixture_add(database, "a.jpg", &f->features, 1);
  assert_origin_there(database, 1, &origin);
  hs_colmap_close(database); /* closes without a commit */
  database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.jpg", &f->features, 1);
  assert_origin_there(database, 1, &origin);
  colmap_fixture_finish(database);
}

TEST_ON_DATABASE(test_turned_pictures_of_a_database) {
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  f->features.origin.exif_orientation = 8;
  assert_int_equal(hs_colmap_add_image(database, "a.jpg", NULL, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "EXIF orientation 8, and COLMAP reads it as stored"));
  f->features.origin = (hs_origin){.method_version = 2, .layout = HS_LAYOUT_VLFEAT};
  assert_int_equal(hs_colmap_add_image(database, "a.jpg", NULL, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "origin.layout"));
}

#endif

/* ------------------------------------------------------------------ extraction and matching */

TEST(test_extraction_tells) {
  hs_options options;
  scoped_context *context;
  scoped_image image;
  scoped_features features = {0};
  const hs_features *view;
  assert_int_equal(hs_options_init(&options, HS_PROFILE_COLMAP), HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = 1;
  assert_int_equal(hs_create(&context, &options), HS_OK);
  assert_int_equal(hs_render_scene(64, 48, 1, NULL, NULL, &image), HS_OK);
  image.exif_orientation = 5;
  const hs_origin expected = {HS_METHOD_VERSION, HS_PROFILE_COLMAP, HS_NORM_ROOT, HS_LAYOUT_UBC, 5, 0, {0}};
  assert_int_equal(hs_extract(context, &image, NULL, &features), HS_OK);
  assert_origin(&features.origin, &expected);
  assert_int_equal(hs_extract_view(context, &image, NULL, &view), HS_OK);
  assert_origin(&view->origin, &expected);
  scoped_features described = {0};
  assert_int_equal(hs_describe(context, &image, features.keypoints, features.count, &described, NULL), HS_OK);
  assert_origin(&described.origin, &expected);
  assert_int_equal(hs_submit(context, &image, NULL), HS_OK);
  assert_int_equal(hs_wait(context, &features), HS_OK);
  assert_origin(&features.origin, &expected);
}

TEST(test_matching) {
  static const struct {
    feature_style style;
    hs_origin first, second;
    const char *word; /* part of the message that refuses; null: the lists are compared */
  } cases[] = {
      {FEATURES_U8,
       {2, HS_PROFILE_LOWE, HS_NORM_L2, 0, 0, 0, {0}},
       {2, HS_PROFILE_LOWE, HS_NORM_ROOT, 0, 0, 0, {0}},
       "norm l2"},
      {FEATURES_U8,
       {2, HS_PROFILE_COLMAP, HS_NORM_ROOT, 0, 0, 0, {0}},
       {1, 0, HS_NORM_L2, 0, 0, 0, {0}},
       "profile colmap"},
      {FEATURES_U8,
       {2, HS_PROFILE_COLMAP, HS_NORM_ROOT, 0, 0, 1, {0}},
       {2, 0, HS_NORM_ROOT, 0, 0, 0, {0}},
       "root-dsp in the first"},
      {FEATURES_U8, {2, 0, 0, 0, 0, 1, {0}}, {2, HS_PROFILE_COLMAP, 0, 0, 0, 1, {0}}, NULL},
      {FEATURES_U8,
       {2, 0, 0, HS_LAYOUT_UBC, 0, 0, {0}},
       {2, 0, 0, HS_LAYOUT_VLFEAT, 0, 0, {0}},
       "VLFeat in the second"},
      {FEATURES_U8, {2, HS_PROFILE_LOWE, 0, 0, 0, 0, {0}}, {2, HS_PROFILE_OPENCV, 0, 0, 0, 0, {0}}, NULL},
      {FEATURES_UNIT_F32, {2, HS_PROFILE_LOWE, 0, 0, 0, 0, {0}}, {2, HS_PROFILE_OPENCV, 0, 0, 0, 0, {0}}, "0 to 255"},
      {FEATURES_UNIT_F32, {2, HS_PROFILE_LOWE, 0, 0, 0, 0, {0}}, {2, HS_PROFILE_VLFEAT, 0, 0, 0, 0, {0}}, NULL},
      {FEATURES_U8, {1, 0, 0, 0, 0, 0, {0}}, {2, 0, 0, 0, 0, 0, {0}}, NULL},
      {FEATURES_U8, {0}, {2, HS_PROFILE_COLMAP, HS_NORM_ROOT, 0, 0, 0, {0}}, NULL},
      {FEATURES_U8, {2, 0, 0, 0, 6, 0, {0}}, {2, 0, 0, 0, 0, 0, {0}}, NULL},
  };
  hs_options options;
  scoped_context *context;
  assert_int_equal(hs_options_init(&options, HS_PROFILE_LOWE), HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = 1;
  assert_int_equal(hs_create(&context, &options), HS_OK);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    scoped_features first = make(cases[i].style, cases[i].first), second = make(cases[i].style, cases[i].second);
    const hs_status expected = cases[i].word ? HS_ERR_ARGUMENT : HS_OK;
    scoped_matches matches = {0};
    hs_nearest nearest[FEATURES];
    assert_int_equal(hs_match(context, &first, &second, NULL, &matches), expected);
    if (cases[i].word && !strstr(hs_last_error(context), cases[i].word)) fail_msg("%s", hs_last_error(context));
    assert_int_equal(hs_match(NULL, &first, &second, NULL, &matches), expected);
    assert_int_equal(hs_find_nearest(context, &second, &first, NULL, nearest), expected);
    const size_t count = first.count;
    first.count = 0; /* with an empty list nothing is compared */
    assert_int_equal(hs_match(context, &first, &second, NULL, &matches), HS_OK);
    first.count = count;
  }
}
