/*
 * COLMAP's database as a file: every version's tables, what is refused and left as it was, transactions.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#include "pipeline/formats/colmap/colmap_rows.h"
#include "pipeline/include/hartsift.h"
#include "tests/support/colmap_tables.h"
#include "tests/support/counted_allocator.h"
#include "tests/support/feature_maker.h"
#include "tests/support/scratch_folder.h"

enum { FEATURES = 50 };

typedef struct fixture {
  scratch_folder folder;
  char path[SCRATCH_PATH_BYTES];
  char message[512];
  hs_features features;
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  scratch_folder_make(&f->folder);
  scratch_folder_path(&f->folder, "database.db", f->path);
  feature_maker_fill(&f->features, FEATURES, FEATURES_U8, 1);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  hs_features_free(&f->features);
  scratch_folder_remove(&f->folder);
  free(f);
  return 0;
}

static hs_colmap_options make_options(fixture *f) {
  f->message[0] = '\0';
  return (hs_colmap_options){.struct_size = sizeof(hs_colmap_options),
                             .wait_ms = 50,
                             .message = f->message,
                             .message_bytes = sizeof f->message};
}

#if HARTSIFT_HAVE_SQLITE

/* Both ways of opening: every test runs with each. */
static hs_status (*open_function)(hs_colmap_database **, const char *, const hs_colmap_options *);

static hs_colmap_database *open_it(fixture *f) {
  hs_colmap_database *database = NULL;
  const hs_colmap_options options = make_options(f);
  const hs_status status = open_function(&database, f->path, &options);
  if (status != HS_OK) fail_msg("%s: %s", hs_status_name(status), f->message);
  return database;
}

static void add(fixture *f, const char *name) {
  hs_colmap_database *database = open_it(f);
  assert_int_equal(hs_colmap_add_image(database, name, NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  hs_colmap_close(database);
}

/* Opening is refused with this status and a word of the reason, and neither file nor folder has changed. */
static void assert_refused(fixture *f, int32_t read_only, hs_status expected, const char *word) {
  size_t before_size = 0, after_size = 0;
  struct stat info;
  const bool is_file = stat(f->path, &info) == 0 && S_ISREG(info.st_mode);
  unsigned char *before = is_file ? scratch_read_file(f->path, &before_size) : NULL;
  const size_t entries = scratch_folder_count(&f->folder);
  hs_colmap_database *database = (hs_colmap_database *)f;
  hs_colmap_options options = make_options(f);
  options.read_only = read_only;
  assert_int_equal(open_function(&database, f->path, &options), expected);
  assert_null(database);
  assert_non_null(strstr(f->message, "database.db"));
  if (!strstr(f->message, word)) fail_msg("'%s' says nothing of '%s'", f->message, word);
  assert_int_equal(scratch_folder_count(&f->folder), entries);
  unsigned char *after = is_file ? scratch_read_file(f->path, &after_size) : NULL;
  assert_int_equal(after_size, before_size);
  if (is_file) assert_memory_equal(after, before, before_size);
  free(before);
  free(after);
}

static void test_new_database(void **state) {
  fixture *f = *state;
  add(f, "a.png");
  assert_int_equal(scratch_folder_count(&f->folder), 1);
  assert_int_equal(colmap_tables_ask(f->path, "PRAGMA user_version"), 3800);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT image_id FROM images WHERE name = 'a.png' AND camera_id = 1"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT model FROM cameras WHERE width = 640 AND height = 480"
                                              " AND prior_focal_length = 0 AND length(params) = 32"),
                   2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT rows FROM keypoints WHERE image_id = 1 AND cols = 6"), FEATURES);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT rows FROM descriptors WHERE image_id = 1 AND cols = 128"),
                   FEATURES);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM matches"), 0);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
}

static void test_every_version(void **state) {
  fixture *f = *state;
  for (int version = 0; version < COLMAP_VERSIONS; version++) {
    colmap_tables_make(f->path, (colmap_version)version);
    add(f, "a.png");
    add(f, "b.png");
    assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 2);
    assert_int_equal(colmap_tables_ask(f->path, "SELECT sum(rows) FROM descriptors"), 2 * FEATURES);
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
    hs_colmap_database *database = open_it(f);
    hs_features read = {0};
    assert_int_equal(hs_colmap_read_features(database, 2, &read), HS_OK);
    assert_int_equal(read.count, FEATURES);
    assert_memory_equal(read.descriptors, f->features.descriptors, FEATURES * HS_DESCRIPTOR_LENGTH);
    hs_features_free(&read);
    hs_colmap_close(database);
    assert_int_equal(unlink(f->path), 0);
  }
}

/* An older COLMAP's images in tables that a newer one has extended have no frames: COLMAP gives them all on loading, but
   not to some images only. */
static void test_migrated_database_gets_no_frames(void **state) {
  fixture *f = *state;
  colmap_tables_make(f->path, COLMAP_4_2);
  colmap_tables_run(f->path, "INSERT INTO cameras VALUES(7, 2, 640, 480, zeroblob(32), 0);"
                             "INSERT INTO images(image_id, name, camera_id) VALUES(5, 'old.png', 7)");
  add(f, "new.png");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frames"), 0);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM rigs"), 0);
}

static void test_unknown_columns(void **state) {
  fixture *f = *state;
  colmap_tables_make(f->path, COLMAP_4_2);
  colmap_tables_run(f->path, "ALTER TABLE keypoints ADD COLUMN colour INTEGER;"
                             "ALTER TABLE images ADD COLUMN kind INTEGER NOT NULL DEFAULT 3; CREATE TABLE notes(text)");
  add(f, "a.png");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT kind FROM images"), 3);
  colmap_tables_run(f->path, "DROP TABLE matches; CREATE TABLE matches(pair_id INTEGER PRIMARY KEY NOT NULL,"
                             " rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB, needed INTEGER NOT NULL)");
  assert_refused(f, 0, HS_ERR_UNSUPPORTED, "needed");
}

static void test_missing_parts(void **state) {
  fixture *f = *state;
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
    assert_refused(f, 0, HS_ERR_UNSUPPORTED, losses[i][1]);
    assert_int_equal(unlink(f->path), 0);
  }
}

static void test_other_files(void **state) {
  fixture *f = *state;
  colmap_tables_run(f->path, "CREATE TABLE songs(title TEXT); INSERT INTO songs VALUES('one')");
  assert_refused(f, 0, HS_ERR_UNSUPPORTED, "cameras");
  assert_refused(f, 1, HS_ERR_UNSUPPORTED, "cameras");
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(f->path, &size);
  memset(bytes + 100, 0x5a, size - 100);
  scratch_write_file(f->path, bytes, size);
  free(bytes);
  assert_refused(f, 0, HS_ERR_FORMAT, "");
  scratch_write_file(f->path, "a list of songs, long enough", 28);
  assert_refused(f, 0, HS_ERR_FORMAT, "SQLite");
  scratch_write_file(f->path, "short", 5);
  assert_refused(f, 1, HS_ERR_FORMAT, "SQLite");
  assert_int_equal(unlink(f->path), 0);
  assert_refused(f, 1, HS_ERR_IO, "cannot open");
  assert_int_equal(mkdir(f->path, 0777), 0);
  assert_refused(f, 0, HS_ERR_IO, "regular file");
  assert_int_equal(rmdir(f->path), 0);
  assert_int_equal(mkfifo(f->path, 0666), 0);
  assert_refused(f, 0, HS_ERR_IO, "regular file");
}

static void test_empty_file_becomes_a_database(void **state) {
  fixture *f = *state;
  colmap_tables_run(f->path, "");
  scratch_write_file(f->path, "", 0);
  assert_refused(f, 1, HS_ERR_UNSUPPORTED, "empty");
  add(f, "a.png");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 1);
}

static void test_impossible_places(void **state) {
  fixture *f = *state;
  scratch_folder_path(&f->folder, "absent/database.db", f->path);
  assert_refused(f, 0, HS_ERR_IO, "open");
  scratch_folder_path(&f->folder, "database.db", f->path);
  colmap_tables_make(f->path, COLMAP_3_8);
  assert_int_equal(chmod(f->path, 0444), 0);
  if (access(f->path, W_OK) != 0) assert_refused(f, 0, HS_ERR_IO, "database.db");
  assert_int_equal(chmod(f->path, 0666), 0);
  assert_int_equal(unlink(f->path), 0);
  assert_int_equal(chmod(f->folder.path, 0555), 0);
  const bool obeyed = access(f->folder.path, W_OK) != 0; /* not for root */
  if (obeyed) assert_refused(f, 0, HS_ERR_IO, "open");
  assert_int_equal(chmod(f->folder.path, 0777), 0);
}

/* Names that mean something else to SQLite are plain names here. */
static void test_plain_names(void **state) {
  fixture *f = *state;
  char folder[SCRATCH_PATH_BYTES];
  assert_non_null(getcwd(folder, sizeof folder));
  colmap_tables_run(f->path, "");
  const size_t before = scratch_folder_count(&f->folder);
  assert_int_equal(chdir(f->folder.path), 0);
  static const char *const names[] = {":memory:", "file:x?mode=memory"};
  for (size_t i = 0; i < 2; i++) {
    hs_colmap_database *database = NULL;
    assert_int_equal(open_function(&database, names[i], NULL), HS_OK);
    assert_int_equal(hs_colmap_commit(database), HS_OK);
    hs_colmap_close(database);
    assert_int_equal(access(names[i], F_OK), 0);
  }
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(scratch_folder_count(&f->folder), before + 2);
}

static void test_close_without_commit(void **state) {
  fixture *f = *state;
  colmap_tables_run(f->path, "");
  (void)unlink(f->path);
  hs_colmap_database *database = open_it(f);
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &f->features, NULL), HS_OK);
  hs_colmap_close(database);
  assert_int_equal(scratch_folder_count(&f->folder), 0);
  add(f, "a.png");
  size_t before_size, after_size;
  unsigned char *before = scratch_read_file(f->path, &before_size);
  database = open_it(f);
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_OK);
  hs_colmap_close(database);
  unsigned char *after = scratch_read_file(f->path, &after_size);
  assert_int_equal(after_size, before_size);
  assert_memory_equal(after, before, before_size);
  assert_int_equal(scratch_folder_count(&f->folder), 1);
  free(before);
  free(after);
}

static void copy_file(const char *from, const char *to) {
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(from, &size);
  scratch_write_file(to, bytes, size);
  free(bytes);
}

/* What a process leaves that is killed before its first commit, when SQLite has written some pages already. */
static void test_killed_writer(void **state) {
  fixture *f = *state;
  char journal[SCRATCH_PATH_BYTES], copy[SCRATCH_PATH_BYTES], copied_journal[SCRATCH_PATH_BYTES];
  scratch_folder_path(&f->folder, "database.db-journal", journal);
  scratch_folder_path(&f->folder, "left_database.db", copy);
  scratch_folder_path(&f->folder, "left_database.db-journal", copied_journal);
  hs_features_free(&f->features);
  feature_maker_fill(&f->features, 2000, FEATURES_U8, 1);
  hs_colmap_database *database = open_it(f);
  for (int i = 0; i < 20; i++) { /* 6 MB: more than SQLite keeps in memory */
    char name[16];
    snprintf(name, sizeof name, "%d.png", i);
    assert_int_equal(hs_colmap_add_image(database, name, NULL, &f->features, NULL), HS_OK);
  }
  copy_file(f->path, copy);
  copy_file(journal, copied_journal);
  hs_colmap_close(database);
  memcpy(f->path, copy, sizeof copy);
  database = open_it(f);
  hs_colmap_image image;
  assert_int_equal(hs_colmap_next_image(database, -1, &image), HS_OK);
  assert_int_equal(image.found, 0);
  hs_colmap_close(database);
  add(f, "a.png");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 1);
  /* Zeros alone are no database. */
  (void)unlink(f->path);
  scratch_write_file(f->path, (const unsigned char[64]){0}, 64);
  assert_refused(f, 0, HS_ERR_FORMAT, "not an SQLite");
}

/* A failing call takes only its own work back. */
static void test_failing_call(void **state) {
  fixture *f = *state;
  colmap_tables_make(f->path, COLMAP_4_2);
  hs_colmap_database *database = open_it(f);
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &f->features, NULL), HS_OK);
  hs_features unsized = f->features;
  unsized.image_width = 0;
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &unsized, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "b.png"));
  const uint32_t pair[2] = {0, FEATURES};
  const hs_colmap_matches matches = {.pairs = pair, .count = 1};
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &matches), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_image(database, "c.png", NULL, &f->features, NULL), HS_OK);
  assert_string_equal(hs_colmap_last_error(database), "");
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  hs_colmap_close(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM cameras"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM frames"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM matches"), 0);
}

static void test_commit_in_between(void **state) {
  fixture *f = *state;
  colmap_tables_make(f->path, COLMAP_3_8);
  hs_colmap_database *database = open_it(f);
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  /* Between two transactions somebody else may write, even change the tables. */
  colmap_tables_run(f->path, "ALTER TABLE descriptors ADD COLUMN type INTEGER NOT NULL DEFAULT -1");
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  assert_int_equal(hs_colmap_add_image(database, "c.png", NULL, &f->features, NULL), HS_OK);
  hs_colmap_close(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT type FROM descriptors WHERE image_id = 2"), 0);
}

/* Tables that somebody else made unknown between two transactions: refused as often as asked, and not kept locked. */
static void test_refused_in_between(void **state) {
  fixture *f = *state;
  colmap_tables_make(f->path, COLMAP_3_8);
  hs_colmap_database *database = open_it(f);
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  colmap_tables_run(f->path, "ALTER TABLE matches RENAME TO pairs");
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_ERR_UNSUPPORTED);
    assert_non_null(strstr(hs_colmap_last_error(database), "matches"));
  }
  colmap_tables_run(f->path, "ALTER TABLE pairs RENAME TO matches");
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  hs_colmap_close(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 2);
}

static void test_two_writers(void **state) {
  fixture *f = *state;
  add(f, "a.png");
  hs_colmap_database *database = open_it(f);
  assert_refused(f, 0, HS_ERR_IO, "locked");
  hs_colmap_close(database);
  add(f, "b.png");
}

static void test_read_only(void **state) {
  fixture *f = *state;
  add(f, "a.png");
  hs_colmap_database *database = NULL;
  hs_colmap_options options = make_options(f);
  options.read_only = 1;
  assert_int_equal(open_function(&database, f->path, &options), HS_OK);
  hs_colmap_image image;
  assert_int_equal(hs_colmap_find_image(database, "a.png", &image), HS_OK);
  assert_int_equal(image.features, FEATURES);
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &(hs_colmap_matches){0}), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_commit(database), HS_ERR_ARGUMENT);
  hs_colmap_close(database);
}

/* A disk that is full, as far as a process can make one for itself. */
static void test_full_disk(void **state) {
  fixture *f = *state;
  add(f, "a.png");
  size_t before_size, after_size;
  unsigned char *before = scratch_read_file(f->path, &before_size);
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  const struct rlimit small = {.rlim_cur = (rlim_t)before_size + 4096, .rlim_max = old.rlim_max};
  (void)signal(SIGXFSZ, SIG_IGN);
  hs_features many = {0};
  feature_maker_fill(&many, 100000, FEATURES_U8, 2);
  hs_colmap_database *database = open_it(f);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  hs_status status = hs_colmap_add_image(database, "b.png", NULL, &many, NULL);
  if (status == HS_OK) status = hs_colmap_commit(database);
  const hs_status later = hs_colmap_add_image(database, "c.png", NULL, &f->features, NULL);
  const hs_status last = hs_colmap_commit(database);
  hs_colmap_close(database);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(scratch_folder_count(&f->folder), 1); /* no journal is left that the file needs */
  assert_int_equal(hs_status_class_of(status), HS_CLASS_RESOURCE);
  /* Either the transaction was lost and says so, or it goes on without b.png; never half of it. */
  const bool went_on = later == HS_OK && last == HS_OK;
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), went_on ? 2 : 1);
  unsigned char *after = scratch_read_file(f->path, &after_size);
  if (!went_on) {
    assert_int_equal(after_size, before_size);
    assert_memory_equal(after, before, before_size);
  }
  free(before);
  free(after);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images WHERE name = 'b.png'"), 0);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images WHERE name = 'a.png'"), 1);
  assert_int_equal(scratch_folder_count(&f->folder), 1);
  hs_features_free(&many);
}

/* Rows of more bytes than SQLite keeps pages of, in transactions that end either way, and reading in between. */
static void write_large_rows(const fixture *f, hs_colmap_database *database, const hs_features *many) {
  hs_features read = {0};
  for (int i = 0; i < 8; i++) {
    char name[16];
    uint32_t image_id = 0;
    const hs_features *features = i % 2 == 0 ? many : &f->features;
    snprintf(name, sizeof name, "%d.png", i);
    assert_int_equal(hs_colmap_add_image(database, name, NULL, features, &image_id), HS_OK);
    if (i % 3 == 0) assert_int_equal(hs_colmap_read_features(database, image_id, &read), HS_OK);
    if (i % 3 == 0)
      assert_memory_equal(read.descriptors, features->descriptors, features->count * HS_DESCRIPTOR_LENGTH);
    if (i == 5) assert_int_equal(hs_colmap_commit(database), HS_OK);
    if (i == 2) assert_int_equal(hs_colmap_add_image(database, "", NULL, many, NULL), HS_ERR_ARGUMENT);
  }
  hs_features_free(&read);
}

/* The file is the same, byte for byte, as if SQLite alone had written it. */
static void test_large_rows(void **state) {
  fixture *f = *state;
  char plain[SCRATCH_PATH_BYTES];
  size_t size = 0, plain_size = 0;
  hs_features many = {0};
  hs_colmap_database *database = open_it(f);
  scratch_folder_path(&f->folder, "plain.db", plain);
  feature_maker_fill(&many, 30000, FEATURES_U8, 3);
  write_large_rows(f, database, &many);
  hs_colmap_close(database);
  assert_int_equal(hs_colmap_open(&database, plain, NULL), HS_OK);
  write_large_rows(f, database, &many);
  hs_colmap_close(database);
  unsigned char *bytes = scratch_read_file(f->path, &size);
  unsigned char *plain_bytes = scratch_read_file(plain, &plain_size);
  assert_int_equal(size, plain_size);
  assert_true(size > (size_t)3 * 30000 * HS_DESCRIPTOR_LENGTH);
  assert_memory_equal(bytes, plain_bytes, size);
  free(bytes);
  free(plain_bytes);
  hs_features_free(&many);
}

static hs_status round_trip(fixture *f, const hs_allocator *allocator) {
  hs_colmap_database *database = NULL;
  hs_colmap_options options = make_options(f);
  options.allocator = allocator;
  hs_features read = {0};
  hs_status status = open_function(&database, f->path, &options);
  const uint32_t pair[2] = {0, 1};
  const hs_colmap_matches matches = {.pairs = pair, .count = 1};
  uint32_t a = 0, b = 0;
  if (status == HS_OK) status = hs_colmap_add_image(database, "a.png", NULL, &f->features, &a);
  if (status == HS_OK) status = hs_colmap_add_image(database, "b.png", NULL, &f->features, &b);
  if (status == HS_OK) status = hs_colmap_add_matches(database, a, b, &matches);
  if (status == HS_OK) status = hs_colmap_read_features(database, a, &read);
  if (status == HS_OK) assert_int_equal(read.count, FEATURES);
  hs_features_free(&read);
  hs_colmap_close(database);
  return status;
}

static void test_failing_allocations(void **state) {
  fixture *f = *state;
  colmap_tables_make(f->path, COLMAP_4_2);
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  assert_int_equal(round_trip(f, &allocator), HS_OK);
  assert_int_equal(counter.alive, 0);
  const size_t made = counter.made;
  assert_true(made >= 8);
  for (size_t i = 1; i <= made; i++) {
    counter = (counted_allocator){.fail_at = i};
    assert_int_equal(round_trip(f, &allocator), HS_ERR_MEMORY);
    assert_int_equal(counter.alive, 0);
  }
}

/* Options as an earlier or a later header has them. */
static void test_options_of_other_headers(void **state) {
  fixture *f = *state;
  hs_colmap_database *database = NULL;
  struct {
    hs_colmap_options options;
    unsigned char later[16];
  } callers;
  memset(&callers, 0xff, sizeof callers);
  callers.options.read_only = 0;
  callers.options.struct_size = offsetof(hs_colmap_options, read_only) + sizeof callers.options.read_only;
  assert_int_equal(open_function(&database, f->path, &callers.options), HS_OK);
  hs_colmap_close(database);
  callers.options.struct_size--;
  assert_int_equal(open_function(&database, f->path, &callers.options), HS_ERR_OPTION);
  memset(&callers, 0, sizeof callers);
  callers.options = make_options(f);
  callers.options.struct_size = sizeof callers;
  assert_int_equal(open_function(&database, f->path, &callers.options), HS_OK);
  hs_colmap_close(database);
  callers.later[15] = 1;
  assert_int_equal(open_function(&database, f->path, &callers.options), HS_ERR_OPTION);
  assert_non_null(strstr(f->message, "does not know"));
  assert_null(database);
}

static void test_arguments(void **state) {
  fixture *f = *state;
  hs_colmap_database *database = NULL;
  hs_colmap_options options = make_options(f);
  assert_int_equal(hs_colmap_open(NULL, f->path, &options), HS_ERR_ARGUMENT);
  assert_int_equal(open_function(&database, NULL, &options), HS_ERR_ARGUMENT);
  assert_int_equal(open_function(&database, "", &options), HS_ERR_ARGUMENT);
  options.struct_size = 4;
  assert_int_equal(open_function(&database, f->path, &options), HS_ERR_OPTION);
  static const int32_t wrong[] = {2, -1};
  for (size_t i = 0; i < 2; i++) {
    options = make_options(f);
    options.read_only = wrong[i];
    assert_int_equal(open_function(&database, f->path, &options), HS_ERR_OPTION);
    options = make_options(f);
    options.replace = wrong[i];
    assert_int_equal(open_function(&database, f->path, &options), HS_ERR_OPTION);
    options = make_options(f);
    options.share_cameras = wrong[i];
    assert_int_equal(open_function(&database, f->path, &options), HS_ERR_OPTION);
    options = make_options(f);
    options.layout = (hs_bin_layout)7;
    assert_int_equal(open_function(&database, f->path, &options), HS_ERR_OPTION);
    assert_true(f->message[0] != '\0');
  }
  options = make_options(f);
  options.wait_ms = -1;
  assert_int_equal(open_function(&database, f->path, &options), HS_ERR_OPTION);
  assert_null(database);
  hs_colmap_close(NULL);
  assert_string_equal(hs_colmap_last_error(NULL), "");
  assert_int_equal(hs_colmap_commit(NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_image(NULL, "a", NULL, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(scratch_folder_count(&f->folder), 0);
}

int main(void) {
#  define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_new_database),
      TEST(test_every_version),
      TEST(test_migrated_database_gets_no_frames),
      TEST(test_unknown_columns),
      TEST(test_missing_parts),
      TEST(test_other_files),
      TEST(test_empty_file_becomes_a_database),
      TEST(test_impossible_places),
      TEST(test_plain_names),
      TEST(test_close_without_commit),
      TEST(test_killed_writer),
      TEST(test_failing_call),
      TEST(test_commit_in_between),
      TEST(test_refused_in_between),
      TEST(test_two_writers),
      TEST(test_read_only),
      TEST(test_full_disk),
      TEST(test_large_rows),
      TEST(test_failing_allocations),
      TEST(test_options_of_other_headers),
      TEST(test_arguments),
  };
  open_function = hs_colmap_open;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  open_function = colmap_open_behind;
  return failed + cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_without_sqlite(void **state) {
  fixture *f = *state;
  hs_colmap_database *database = NULL;
  hs_colmap_options options = make_options(f);
  assert_int_equal(hs_colmap_open(&database, f->path, &options), HS_ERR_UNSUPPORTED);
  assert_non_null(strstr(f->message, "SQLite"));
  assert_int_equal(scratch_folder_count(&f->folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_without_sqlite, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
