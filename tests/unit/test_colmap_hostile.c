/*
 * Malicious databases: triggers, views and stated sizes are not trusted, and a damaged row is detected even if its
 * bytes are right.
 */
#include "tests/support/test.h"

#if HARTSIFT_HAVE_SQLITE

#  include <sqlite3.h>

#  include "tests/support/colmap_fixture.h"
#  include "tests/support/colmap_tables.h"

/* Adds an image to the database. */
static void begin(const colmap_fixture *f) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "a.jpg", &f->features, 1);
  colmap_fixture_finish(database);
}

/* Fails unless adding an image fails with a message that contains this word and stores nothing. */
static void assert_refuses_to_add(const colmap_fixture *f, const char *word) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_not_equal(hs_colmap_add_image(database, "b.jpg", NULL, &f->features, NULL), HS_OK);
  if (!strstr(hs_colmap_last_error(database), word))
    fail_msg("'%s' says nothing of '%s'", hs_colmap_last_error(database), word);
  hs_colmap_close(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 1);
}

/* A trigger must not use anything outside the database, here a table of the open files. */
TEST_ON_DATABASE(test_schema_is_not_trusted) {
  begin(f);
  colmap_tables_run(f->path, "CREATE TABLE leak (file TEXT);"
                             "CREATE TRIGGER t AFTER INSERT ON images BEGIN"
                             " INSERT INTO leak SELECT file FROM pragma_database_list; END");
  assert_refuses_to_add(f, "pragma_database_list");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM leak"), 0);
}

/* A trigger must not write into an index, whose content SQLite does not verify. */
TEST_ON_DATABASE(test_inner_tables_are_not_written) {
  begin(f);
  sqlite3 *sqlite = NULL;
  assert_int_equal(sqlite3_open(f->path, &sqlite), SQLITE_OK);
  const int made = sqlite3_exec(sqlite, "CREATE VIRTUAL TABLE words USING fts5(word)", NULL, NULL, NULL);
  assert_int_equal(sqlite3_close(sqlite), SQLITE_OK);
  if (made != SQLITE_OK) skip_because("needs an SQLite with FTS5");
  colmap_tables_run(f->path, "INSERT INTO words VALUES ('one');"
                             "CREATE TRIGGER t AFTER INSERT ON images BEGIN DELETE FROM words_data; END");
  assert_refuses_to_add(f, "words_data");
  assert_true(colmap_tables_ask(f->path, "SELECT count(*) FROM words_data") > 0);
}

/* Data with a wrong stated number of columns is no feature list, even if its bytes are right. Adding the features again
 * replaces it or is refused. */
TEST_ON_DATABASE(test_wrong_number_of_columns) {
  static const char *const tables[] = {"keypoints", "descriptors"};
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    if (i == 0) begin(f);
    char sql[64];
    hs_features again = {0};
    snprintf(sql, sizeof sql, "UPDATE %s SET cols = cols - 2", tables[i]);
    colmap_tables_run(f->path, sql);
    hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
    assert_int_equal(hs_colmap_add_image(database, "a.jpg", NULL, &f->features, NULL), HS_ERR_ARGUMENT);
    hs_colmap_close(database);
    database = colmap_fixture_open(f, 1, 0);
    colmap_fixture_add(database, "a.jpg", &f->features, 1);
    assert_int_equal(hs_colmap_read_features(database, 1, &again), HS_OK);
    assert_int_equal(again.count, f->features.count);
    hs_features_free(&again);
    colmap_fixture_finish(database);
  }
}

/* Rows of a damaged page that are not in the order of their numbers do not make reading loop forever. */
TEST_ON_DATABASE(test_numbers_out_of_order) {
  begin(f);
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  hs_colmap_image image;
  size_t size = 0, changed = 0;
  colmap_fixture_add(database, "b.jpg", &f->features, 2);
  colmap_fixture_add(database, "c.jpg", &f->features, 3);
  colmap_fixture_finish(database);
  unsigned char *bytes = scratch_read_file(f->path, &size);
  /* The number of the second row stands before its record's header. The header contains its own length, a null in place
   * of the number, and the type of a text of five bytes. */
  for (size_t i = 1; i + 4 < size; i++) {
    if (bytes[i] != 2 || bytes[i + 2] != 0 || bytes[i + 3] != 2 * 5 + 13) continue;
    bytes[i] = 9;
    changed++;
  }
  assert_int_equal(changed, 1);
  scratch_write_file(f->path, bytes, size);
  free(bytes);
  database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(hs_colmap_next_image(database, 1, &image), HS_OK);
  assert_int_equal(image.image_id, 9);
  assert_int_equal(hs_colmap_next_image(database, 9, &image), HS_ERR_FORMAT);
  assert_int_equal(image.found, 0);
  assert_non_null(strstr(hs_colmap_last_error(database), "image 3 stands behind image 9"));
}

#else

SKIPPED_PROGRAM("needs SQLite")

#endif
