/*
 * A COLMAP database as a file: tables of every version, names and options; refused files stay unchanged.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/formats/colmap/colmap_records.h"
#include "tests/support/colmap_file.h"
#include "tests/support/colmap_tables.h"

#if HARTSIFT_HAVE_SQLITE

TEST_ON_FILE(test_new_database) {
  colmap_file_add(f, "a.png");
  assert_int_equal(scratch_folder_count(&f->folder), 1);
  assert_int_equal(colmap_tables_ask(f->path, "PRAGMA user_version"), 3800);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT image_id FROM images WHERE name = 'a.png' AND camera_id = 1"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT model FROM cameras WHERE width = 640 AND height = 480"
                                              " AND prior_focal_length = 0 AND length(params) = 32"),
                   2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT rows FROM keypoints WHERE image_id = 1 AND cols = 6"),
                   COLMAP_FILE_FEATURES);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT rows FROM descriptors WHERE image_id = 1 AND cols = 128"),
                   COLMAP_FILE_FEATURES);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM matches"), 0);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
}

TEST_ON_FILE(test_every_version) {
  for (int version = 0; version < COLMAP_VERSIONS; version++) {
    colmap_tables_make(f->path, (colmap_version)version);
    colmap_file_add(f, "a.png");
    colmap_file_add(f, "b.png");
    assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 2);
    assert_int_equal(colmap_tables_ask(f->path, "SELECT sum(rows) FROM descriptors"), 2 * COLMAP_FILE_FEATURES);
    if (version == COLMAP_4_2)
      assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM descriptors WHERE type = 0"), 2);
    if (version == COLMAP_4_2 || version == COLMAP_3_12) {
      assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM rigs WHERE ref_sensor_type = 0"), 2);
      assert_int_equal(
          colmap_tables_ask(f->path,
                            "SELECT count(*) FROM frame_data JOIN frames USING (frame_id) JOIN rigs USING (rig_id)"
                            " JOIN images ON images.image_id = data_id AND images.camera_id = sensor_id"
                            " WHERE sensor_type = 0 AND ref_sensor_id = sensor_id"),
          2);
    }
    hs_colmap_database *database = colmap_file_open(f);
    hs_features read = {0};
    assert_int_equal(hs_colmap_read_features(database, 2, &read), HS_OK);
    assert_int_equal(read.count, COLMAP_FILE_FEATURES);
    assert_memory_equal(read.descriptors, f->features.descriptors, COLMAP_FILE_FEATURES * HS_DESCRIPTOR_LENGTH);
    hs_features_free(&read);
    hs_colmap_close(database);
    assert_int_equal(unlink(f->path), 0);
  }
}

/* Images of an older COLMAP have no frames after a newer version extended the tables. COLMAP adds frames on loading
 * only if no image has one, so none must be added. */
TEST_ON_FILE(test_migrated_database_gets_no_frames) {
  colmap_tables_make(f->path, COLMAP_4_2);
  colmap_tables_run(f->path, "INSERT INTO cameras VALUES(7, 2, 640, 480, zeroblob(32), 0);"
                             "INSERT INTO images(image_id, name, camera_id) VALUES(5, 'old.png', 7)");
  colmap_file_add(f, "new.png");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frames"), 0);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM rigs"), 0);
}

TEST_ON_FILE(test_unknown_columns) {
  colmap_tables_make(f->path, COLMAP_4_2);
  colmap_tables_run(f->path, "ALTER TABLE keypoints ADD COLUMN colour INTEGER;"
                             "ALTER TABLE images ADD COLUMN kind INTEGER NOT NULL DEFAULT 3; CREATE TABLE notes(text)");
  colmap_file_add(f, "a.png");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT kind FROM images"), 3);
  colmap_tables_run(f->path, "DROP TABLE matches; CREATE TABLE matches(pair_id INTEGER PRIMARY KEY NOT NULL,"
                             " rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB, needed INTEGER NOT NULL)");
  colmap_file_refuses(f, 0, HS_ERR_UNSUPPORTED, "needed");
}

TEST_ON_FILE(test_missing_parts) {
  static const char *const losses[][2] = {
      {"DROP TABLE matches", "matches"},
      {"ALTER TABLE keypoints DROP COLUMN data", "data"},
      {"DROP TABLE frame_data", "frame_data"},
      {"ALTER TABLE two_view_geometries RENAME TO inlier_matches", "two_view_geometries"},
      {"DROP TABLE cameras; CREATE VIEW cameras AS SELECT 1 AS camera_id, 2 AS model, 3 AS width, 4 AS height,"
       " 5 AS params, 6 AS prior_focal_length",
       "cameras"},
      {"CREATE TABLE hartsift_origins(image_id INTEGER PRIMARY KEY, kind TEXT)",
       "hartsift_origins has no column features"},
      {"DROP TABLE images; CREATE TABLE images(image_id TEXT PRIMARY KEY, name TEXT, camera_id INTEGER)", "image_id"},
  };
  for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
    colmap_tables_make(f->path, COLMAP_4_2);
    colmap_tables_run(f->path, losses[i][0]);
    colmap_file_refuses(f, 0, HS_ERR_UNSUPPORTED, losses[i][1]);
    assert_int_equal(unlink(f->path), 0);
  }
}

TEST_ON_FILE(test_other_files) {
  colmap_tables_run(f->path, "CREATE TABLE songs(title TEXT); INSERT INTO songs VALUES('one')");
  colmap_file_refuses(f, 0, HS_ERR_UNSUPPORTED, "cameras");
  colmap_file_refuses(f, 1, HS_ERR_UNSUPPORTED, "cameras");
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(f->path, &size);
  memset(bytes + 100, 0x5a, size - 100);
  scratch_write_file(f->path, bytes, size);
  free(bytes);
  colmap_file_refuses(f, 0, HS_ERR_FORMAT, "");
  scratch_write_file(f->path, "a list of songs, long enough", 28);
  colmap_file_refuses(f, 0, HS_ERR_FORMAT, "SQLite");
  scratch_write_file(f->path, "short", 5);
  colmap_file_refuses(f, 1, HS_ERR_FORMAT, "SQLite");
  assert_int_equal(unlink(f->path), 0);
  colmap_file_refuses(f, 1, HS_ERR_IO, "cannot open");
  assert_int_equal(mkdir(f->path, 0777), 0);
  colmap_file_refuses(f, 0, HS_ERR_IO, "is a folder");
  assert_int_equal(rmdir(f->path), 0);
  assert_int_equal(mkfifo(f->path, 0666), 0);
  colmap_file_refuses(f, 0, HS_ERR_IO, "regular file");
}

TEST_ON_FILE(test_empty_file_becomes_a_database) {
  colmap_tables_run(f->path, "");
  scratch_write_file(f->path, "", 0);
  colmap_file_refuses(f, 1, HS_ERR_UNSUPPORTED, "empty");
  colmap_file_add(f, "a.png");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 1);
}

TEST_ON_FILE(test_impossible_places) {
  scratch_folder_path(&f->folder, "absent/database.db", f->path);
  colmap_file_refuses(f, 0, HS_ERR_IO, "cannot be created");
  scratch_folder_path(&f->folder, "database.db", f->path);
  colmap_tables_make(f->path, COLMAP_3_8);
  assert_int_equal(chmod(f->path, 0444), 0);
  if (access(f->path, W_OK) != 0) colmap_file_refuses(f, 0, HS_ERR_IO, "database.db");
  assert_int_equal(chmod(f->path, 0666), 0);
  assert_int_equal(unlink(f->path), 0);
  assert_int_equal(chmod(f->folder.path, 0555), 0);
  const bool obeyed = access(f->folder.path, W_OK) != 0; /* root may write in spite of the permissions */
  if (obeyed) colmap_file_refuses(f, 0, HS_ERR_IO, "cannot be created");
  assert_int_equal(chmod(f->folder.path, 0777), 0);
}

/* Names with a special meaning to SQLite are plain file names here. */
TEST_ON_FILE(test_plain_names) {
  char folder[SCRATCH_PATH_BYTES];
  assert_non_null(getcwd(folder, sizeof folder));
  colmap_tables_run(f->path, "");
  const size_t before = scratch_folder_count(&f->folder);
  assert_int_equal(chdir(f->folder.path), 0);
  static const char *const names[] = {":memory:", "file:x?mode=memory"};
  for (size_t i = 0; i < 2; i++) {
    hs_colmap_database *database = NULL;
    assert_int_equal(f->open(&database, names[i], NULL), HS_OK);
    assert_int_equal(hs_colmap_commit(database), HS_OK);
    hs_colmap_close(database);
    assert_int_equal(access(names[i], F_OK), 0);
  }
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(scratch_folder_count(&f->folder), before + 2);
}

/* Option structs come from an earlier and from a later header. */
TEST_ON_FILE(test_options_of_other_headers) {
  hs_colmap_database *database = NULL;
  struct {
    hs_colmap_options options;
    unsigned char later[16];
  } callers;
  memset(&callers, 0xff, sizeof callers);
  callers.options.read_only = 0;
  callers.options.struct_size = offsetof(hs_colmap_options, read_only) + sizeof callers.options.read_only;
  assert_int_equal(f->open(&database, f->path, &callers.options), HS_OK);
  hs_colmap_close(database);
  callers.options.struct_size--;
  assert_int_equal(f->open(&database, f->path, &callers.options), HS_ERR_OPTION);
  memset(&callers, 0, sizeof callers);
  callers.options = colmap_file_options(f);
  callers.options.struct_size = sizeof callers;
  assert_int_equal(f->open(&database, f->path, &callers.options), HS_OK);
  hs_colmap_close(database);
  callers.later[15] = 1;
  assert_int_equal(f->open(&database, f->path, &callers.options), HS_ERR_OPTION);
  assert_non_null(strstr(f->message, "does not know"));
  assert_null(database);
}

TEST_ON_FILE(test_arguments) {
  hs_colmap_database *database = NULL;
  hs_colmap_options options = colmap_file_options(f);
  assert_int_equal(hs_colmap_open(NULL, f->path, &options), HS_ERR_ARGUMENT);
  assert_int_equal(f->open(&database, NULL, &options), HS_ERR_ARGUMENT);
  assert_int_equal(f->open(&database, "", &options), HS_ERR_ARGUMENT);
  options.struct_size = 4;
  assert_int_equal(f->open(&database, f->path, &options), HS_ERR_OPTION);
  static const int32_t wrong[] = {4, -1};
  for (size_t i = 0; i < 2; i++) {
    options = colmap_file_options(f);
    options.read_only = wrong[i];
    assert_int_equal(f->open(&database, f->path, &options), HS_ERR_OPTION);
    options = colmap_file_options(f);
    options.replace = wrong[i];
    assert_int_equal(f->open(&database, f->path, &options), HS_ERR_OPTION);
    options = colmap_file_options(f);
    options.share_cameras = wrong[i];
    assert_int_equal(f->open(&database, f->path, &options), HS_ERR_OPTION);
    options = colmap_file_options(f);
    options.layout = (hs_bin_layout)7;
    assert_int_equal(f->open(&database, f->path, &options), HS_ERR_OPTION);
    assert_true(f->message[0] != '\0');
  }
  options = colmap_file_options(f);
  options.wait_ms = -1;
  assert_int_equal(f->open(&database, f->path, &options), HS_ERR_OPTION);
  assert_null(database);
  hs_colmap_close(NULL);
  assert_string_equal(hs_colmap_last_error(NULL), "");
  assert_int_equal(hs_colmap_commit(NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_image(NULL, "a", NULL, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(scratch_folder_count(&f->folder), 0);
}

static int run_both(const char *program) {
  colmap_file_open_by(hs_colmap_open);
  const int failed = test_run(program, 0);
  colmap_file_open_by(colmap_open_behind);
  return failed + test_run(program, 0);
}

TEST_AT_START(open_both_ways) { test_main = run_both; }

#else

TEST_ON_FILE(test_without_sqlite) {
  hs_colmap_database *database = NULL;
  hs_colmap_options options = colmap_file_options(f);
  assert_int_equal(hs_colmap_open(&database, f->path, &options), HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(f->message, "SQLite"));
  assert_int_equal(scratch_folder_count(&f->folder), 0);
}

#endif
