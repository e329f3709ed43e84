/*
 * Entries of pairs in a COLMAP database: an entry is deleted with the features that its indices refer to, and copies
 * stay valid under other image numbers.
 */

#include "tests/support/test.h"

#include "pipeline/base/memory.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "tests/support/colmap_fixture.h"
#include "tests/support/colmap_tables.h"

#if HARTSIFT_HAVE_SQLITE

enum { IMAGES = 4 };

static const uint32_t two_matches[2][2] = {{4, 50}, {59, 7}};

static void add_pair(hs_colmap_database *database, uint32_t a, uint32_t b) {
  const uint8_t inliers[2] = {1, 0};
  const hs_geometry geometry = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {0, 0, 1, 0, 0, 2, 3, 4, 5}};
  const hs_colmap_matches matches = {.pairs = two_matches, .count = 2, .inliers = inliers, .fundamental = &geometry};
  assert_int_equal(hs_colmap_add_matches(database, a, b, &matches), HS_OK);
}

/* Makes images 1 to 4 with an entry for every pair. */
static void fill(const colmap_fixture *f) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  for (uint32_t i = 1; i <= IMAGES; i++) {
    char name[16];
    snprintf(name, sizeof name, "%u.png", i);
    colmap_fixture_add(database, name, &f->features, i);
  }
  for (uint32_t i = 1; i <= IMAGES; i++)
    for (uint32_t k = i + 1; k <= IMAGES; k++) add_pair(database, i, k);
  colmap_fixture_finish(database);
}

/* Fails unless the entries of image 2, and no others, are gone. */
static void check_dropped(const colmap_fixture *f) {
  static const char *const tables[] = {"matches", "two_view_geometries"};
  for (size_t i = 0; i < 2; i++) {
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", tables[i]);
    assert_int_equal(colmap_tables_ask(f->path, sql), 3);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE 2 IN (pair_id / 2147483647, pair_id %% 2147483647)",
             tables[i]);
    assert_int_equal(colmap_tables_ask(f->path, sql), 0);
  }
}

/* An image that gets features loses its entries, however its former features were deleted, and even if the new features
 * are equal. */
TEST_ON_DATABASE(test_cleared_features) {
  static const char *const clearings[] = {
      "DELETE FROM keypoints WHERE image_id = 2; DELETE FROM descriptors WHERE image_id = 2",
      "DELETE FROM keypoints WHERE image_id = 2; DELETE FROM descriptors WHERE image_id = 2;"
      " DELETE FROM hartsift_origins",
      "DELETE FROM keypoints WHERE image_id = 2; DELETE FROM descriptors WHERE image_id = 2;"
      " DELETE FROM two_view_geometries WHERE pair_id = 2147483649; INSERT INTO two_view_geometries"
      "(pair_id, rows, cols, data, config) VALUES(2147483649, 0, 2, NULL, 1)",
  };
  for (size_t i = 0; i < sizeof clearings / sizeof clearings[0]; i++) {
    colmap_tables_run(f->path,
                      "DELETE FROM images; DELETE FROM keypoints; DELETE FROM descriptors; DELETE FROM matches;"
                      " DELETE FROM two_view_geometries; DELETE FROM frames; DELETE FROM frame_data;"
                      " CREATE TABLE IF NOT EXISTS hartsift_origins(image_id INTEGER PRIMARY KEY NOT NULL, features"
                      " INTEGER NOT NULL, method_version INTEGER NOT NULL, profile TEXT, norm TEXT,"
                      " exif_orientation INTEGER NOT NULL); DELETE FROM sqlite_sequence");
    fill(f);
    colmap_tables_run(f->path, clearings[i]);
    hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
    colmap_fixture_add(database, "2.png", i == 1 ? &f->features : &f->others, 2);
    colmap_fixture_finish(database);
    check_dropped(f);
  }
}

/* An image number is used again: the former image was removed, with or without its features, and the counter reset. */
TEST_ON_DATABASE(test_numbers_that_come_back) {
  fill(f);
  colmap_tables_run(f->path, "DELETE FROM images WHERE image_id > 1; DELETE FROM frame_data; DELETE FROM frames;"
                             " DELETE FROM sqlite_sequence WHERE name = 'images'");
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "new.png", &f->others, 2);
  colmap_fixture_finish(database);
  check_dropped(f);
  database = colmap_fixture_open(f, 0, 0);
  colmap_fixture_add(database, "3.png", &f->features, 3);
  colmap_fixture_add(database, "4.png", &f->features, 4);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM matches"), 0);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM two_view_geometries"), 0);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM keypoints"), 4);
}

static bool has_entry(hs_colmap_database *database, uint32_t a, uint32_t b) {
  colmap_pair_state found;
  assert_int_equal(colmap_look_at_pair(database, a, b, &found), HS_OK);
  return found.matches >= 0 || found.verified >= 0;
}

/* Between colmap_begin_reading and colmap_end_reading pairs are found as without, in any order, whatever gaps there
 * are. */
TEST_ON_DATABASE(test_looking_at_many_pairs) {
  enum { ORDERS = 3, PAIRS = IMAGES * (IMAGES - 1) / 2 };
  static const uint32_t pairs[PAIRS][2] = {{1, 2}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 4}};
  static const size_t orders[ORDERS][PAIRS] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 5, 0, 4, 1, 3}};
  fill(f);
  for (unsigned present = 0; present < 1u << PAIRS; present++) { /* one bit for each pair */
    colmap_tables_run(f->path, "DELETE FROM matches; DELETE FROM two_view_geometries");
    hs_colmap_database *writer = colmap_fixture_open(f, 0, 0);
    for (size_t i = 0; i < PAIRS; i++)
      if (present >> i & 1) add_pair(writer, pairs[i][0], pairs[i][1]);
    colmap_fixture_finish(writer);
    scoped_database *database = colmap_fixture_open(f, 0, 0);
    assert_int_equal(hs_colmap_commit(database), HS_OK);
    for (size_t order = 0; order < ORDERS; order++) {
      colmap_begin_reading(database);
      for (size_t i = 0; i < PAIRS; i++) {
        const size_t at = orders[order][i];
        assert_int_equal(has_entry(database, pairs[at][1], pairs[at][0]), present >> at & 1);
      }
      colmap_end_reading(database);
    }
  }
}

/* While pairs are read, the database is locked from the first on, also between the calls. */
TEST_ON_DATABASE(test_one_lock_for_many_pairs) {
  fill(f);
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  colmap_begin_reading(database);
  (void)has_entry(database, 1, 2);
  hs_colmap_database *writer = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_drop_pair(writer, 1, 2), HS_OK);
  assert_int_not_equal(hs_colmap_commit(writer), HS_OK);
  hs_colmap_close(writer);
  colmap_end_reading(database);
  writer = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_drop_pair(writer, 1, 2), HS_OK);
  colmap_fixture_finish(writer);
}

/* A damaged id after the last pair is not the fault of the pairs before it. */
TEST_ON_DATABASE(test_a_damaged_id_after_a_gap) {
  fill(f);
  colmap_tables_run(f->path, "DELETE FROM matches; DELETE FROM two_view_geometries;"
                             "INSERT INTO matches(pair_id, rows, cols) VALUES(9223372036854775806, 0, 2)");
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  colmap_begin_reading(database);
  assert_false(has_entry(database, 1, 2));
  assert_string_equal(hs_colmap_last_error(database), "");
  assert_false(has_entry(database, 1, 3));
  colmap_end_reading(database);
}

/* A gap is forgotten at the end of the calls, because another program may then fill it. */
TEST_ON_DATABASE(test_a_gap_that_is_filled) {
  fill(f);
  colmap_tables_run(f->path, "DELETE FROM matches; DELETE FROM two_view_geometries");
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  colmap_begin_reading(database);
  assert_false(has_entry(database, 1, 2));
  assert_false(has_entry(database, 1, 3));
  colmap_end_reading(database);
  hs_colmap_database *writer = colmap_fixture_open(f, 0, 0);
  add_pair(writer, 1, 3);
  colmap_fixture_finish(writer);
  assert_true(has_entry(database, 1, 3));
  colmap_begin_reading(database);
  assert_false(has_entry(database, 1, 2));
  assert_true(has_entry(database, 1, 3));
  colmap_end_reading(database);
  add_pair(database, 1, 2); /* the lock has ended, so this handle can write */
  assert_true(has_entry(database, 1, 2));
}

TEST_ON_DATABASE(test_looking_at_pairs) {
  colmap_pair_state found;
  fill(f);
  /* the pair of images 1 and 3 */
  colmap_tables_run(f->path, "DELETE FROM two_view_geometries WHERE pair_id = 2147483650;"
                             "UPDATE matches SET data = substr(data, 1, 15) WHERE pair_id = 2147483651");
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_look_at_pair(database, 1, 2, &found), HS_OK);
  assert_true(found.matches == 2 && found.verified == 1 && !found.is_damaged);
  assert_true(found.largest[0] == 59 && found.largest[1] == 50);
  assert_int_equal(colmap_look_at_pair(database, 3, 1, &found), HS_OK);
  assert_true(found.matches == 2 && found.verified == -1 && found.largest[0] == 50 && found.largest[1] == 59);
  assert_int_equal(colmap_look_at_pair(database, 1, 4, &found), HS_OK);
  assert_true(found.is_damaged);
  assert_int_equal(colmap_look_at_pair(database, 1, UINT32_MAX, &found), HS_OK);
  assert_true(found.matches == -1 && found.verified == -1 && found.largest[0] == -1);
  hs_match_pair *matches;
  size_t count;
  assert_int_equal(colmap_read_matches(database, 3, 1, &matches, &count), HS_OK);
  assert_true(count == 2 && matches[0].first == 50 && matches[0].second == 4 && matches[1].first == 7);
  hs_memory_release(NULL, matches);
  assert_int_equal(colmap_read_matches(database, 1, 4, &matches, &count), HS_ERR_FORMAT);
  assert_int_equal(colmap_read_matches(database, 1, 9, &matches, &count), HS_ERR_FORMAT);
  int64_t pair = -1, expected[] = {2147483649, 2147483650, 2147483651, 4294967297, 4294967298, 6442450945, -1};
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    uint32_t images[2];
    assert_int_equal(colmap_next_pair(database, pair, &pair, images), HS_OK);
    assert_true(pair == expected[i]);
    if (i == 3) assert_true(images[0] == 2 && images[1] == 3);
  }
}

/* ------------------------------------------------------------------ copying */

static void read_numbers(const char *path, const char *column, double *numbers, size_t count) {
  char sql[64];
  size_t size = 0;
  snprintf(sql, sizeof sql, "SELECT %s FROM two_view_geometries", column);
  unsigned char *bytes = colmap_tables_blob(path, sql, &size);
  assert_int_equal(size, 8 * count);
  memcpy(numbers, bytes, size);
  free(bytes);
}

/* Images 1 and 2 of the source become 2 and 1 in the target: F and E are transposed, H and the pose inverted. */
static void check_exchanged(const char *source, const char *target) {
  double a[9], b[9];
  for (int m = 0; m < 2; m++) {
    read_numbers(source, m == 0 ? "F" : "E", a, 9);
    read_numbers(target, m == 0 ? "F" : "E", b, 9);
    for (int i = 0; i < 9; i++) assert_true(a[i] == b[3 * (i % 3) + i / 3]);
  }
  read_numbers(source, "H", a, 9);
  read_numbers(target, "H", b, 9);
  for (int i = 0; i < 9; i++) {
    const double *row = a + 3 * (i / 3), *column = b + i % 3;
    const double product = row[0] * column[0] + row[1] * column[3] + row[2] * column[6];
    assert_true(fabs(product - (i % 4 == 0)) < 1e-12);
  }
  double q[4], t[3];
  read_numbers(target, "qvec", q, 4);
  read_numbers(target, "tvec", t, 3);
  /* A quarter turn about z maps (1, 2, 3) to (-2, 1, 3). The inverted turn maps to (2, -1, 3), and then the sign
   * changes. */
  assert_true(fabs(q[0] - sqrt(0.5)) < 1e-15 && fabs(q[3] + sqrt(0.5)) < 1e-15);
  assert_true(fabs(t[0] + 2) < 1e-12 && fabs(t[1] - 1) < 1e-12 && fabs(t[2] + 3) < 1e-12);
}

/* Writes numbers that have no exact SQL literal. */
static void set_columns(const char *path) {
  const double numbers[3][9] = {{0.9, 0.1, 20, -0.1, 1.1, -10, 1e-4, 2e-5, 1}, {0, 0, 0, 0}, {1, 2, 3}};
  static const char *const columns[] = {"H", "qvec", "tvec"};
  static const size_t counts[] = {9, 4, 3};
  for (size_t i = 0; i < 3; i++) {
    char sql[256];
    double values[9];
    memcpy(values, numbers[i], sizeof values);
    if (i == 1) values[0] = values[3] = sqrt(0.5);
    size_t used = (size_t)snprintf(sql, sizeof sql, "UPDATE two_view_geometries SET %s = X'", columns[i]);
    for (size_t k = 0; k < 8 * counts[i]; k++)
      used += (size_t)snprintf(sql + used, sizeof sql - used, "%02X", ((const unsigned char *)values)[k]);
    snprintf(sql + used, sizeof sql - used, "'");
    colmap_tables_run(path, sql);
  }
  colmap_tables_run(path, "UPDATE two_view_geometries SET config = 7, E = F");
}

TEST_ON_DATABASE(test_copying_in_either_order) {
  char other[SCRATCH_PATH_BYTES];
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0), *source;
  colmap_fixture_add(database, "1.png", &f->features, 1);
  colmap_fixture_add(database, "2.png", &f->others, 2);
  add_pair(database, 1, 2);
  colmap_fixture_finish(database);
  set_columns(f->path);
  for (uint32_t exchanged = 0; exchanged < 2; exchanged++) {
    const uint32_t from[2] = {1, 2}, to[2] = {1 + exchanged, 2 - exchanged};
    scratch_folder_path(&f->folder, exchanged != 0 ? "b.db" : "a.db", other);
    colmap_tables_make(other, exchanged != 0 ? COLMAP_3_8 : COLMAP_3_12);
    assert_int_equal(hs_colmap_open(&database, other, NULL), HS_OK);
    colmap_fixture_add(database, "x.png", exchanged != 0 ? &f->others : &f->features, 1);
    colmap_fixture_add(database, "y.png", exchanged != 0 ? &f->features : &f->others, 2);
    source = colmap_fixture_open(f, 0, 0);
    assert_int_equal(colmap_copy_pair(database, to, source, from), HS_OK);
    assert_int_equal(colmap_copy_pair(database, to, source, from), HS_OK); /* the pair exists in the target already */
    hs_colmap_close(source);
    colmap_fixture_finish(database);
    assert_int_equal(colmap_tables_ask(other, "SELECT config FROM two_view_geometries"), 7);
    size_t size = 0;
    uint32_t *bytes = (void *)colmap_tables_blob(other, "SELECT data FROM matches", &size);
    assert_int_equal(size, sizeof two_matches);
    for (size_t i = 0; i < 4; i++) assert_int_equal(bytes[i], two_matches[i / 2][(i + exchanged) % 2]);
    free(bytes);
    bytes = (void *)colmap_tables_blob(other, "SELECT data FROM two_view_geometries", &size);
    assert_true(size == 8 && bytes[0] == (exchanged != 0 ? 50 : 4));
    free(bytes);
    if (exchanged != 0) check_exchanged(f->path, other);
  }
}

/* Entries with indices beyond the features, and entries that are no list, are not copied. A different entry in the
 * target is refused. */
TEST_ON_DATABASE(test_what_is_not_copied) {
  static const char *const damages[] = {"UPDATE matches SET data = substr(data, 1, 12)", "UPDATE matches SET rows = 3",
                                        "UPDATE two_view_geometries SET rows = -1",
                                        "UPDATE matches SET data = X'040000003C0000000400000007000000'"};
  const uint32_t numbers[2] = {1, 2};
  char other[SCRATCH_PATH_BYTES];
  scoped_database *database, *source;
  scratch_folder_path(&f->folder, "other.db", other);
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    if (i == 0) fill(f);
    colmap_tables_run(f->path, "UPDATE two_view_geometries SET rows = 1;"
                               "UPDATE matches SET rows = 2, data = X'0400000032000000' || X'3B00000007000000'");
    colmap_tables_run(f->path, damages[i]);
    assert_int_equal(hs_colmap_open(&database, other, NULL), HS_OK);
    colmap_fixture_add(database, "1.png", &f->features, 1);
    colmap_fixture_add(database, "2.png", &f->features, 2);
    source = colmap_fixture_open(f, 0, 0);
    assert_int_equal(colmap_copy_pair(database, numbers, source, numbers), HS_ERR_FORMAT);
    assert_non_null(strstr(hs_colmap_last_error(database), "pair 2147483649"));
    hs_colmap_close(source);
    colmap_fixture_finish(database);
    assert_int_equal(colmap_tables_ask(other, "SELECT count(*) FROM matches"), 0);
  }
  colmap_tables_run(f->path, "UPDATE matches SET rows = 1, data = X'0400000032000000'");
  assert_int_equal(hs_colmap_open(&database, other, NULL), HS_OK);
  add_pair(database, 1, 2);
  source = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_copy_pair(database, numbers, source, numbers), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "--replace"));
}

TEST_ON_DATABASE(test_frames) {
  colmap_frame frame;
  fill(f);
  colmap_tables_run(f->path,
                    "INSERT INTO rig_sensors(rig_id, sensor_id, sensor_type) SELECT rig_id, 77, 0 FROM frames WHERE"
                    " frame_id = 2; DELETE FROM frame_data WHERE data_id = 3");
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_read_frame(database, 1, &frame), HS_OK);
  assert_true(frame.frame_id == 1 && frame.camera_id == 1 && !frame.is_of_rig);
  assert_int_equal(colmap_read_frame(database, 2, &frame), HS_OK);
  assert_true(frame.frame_id == 2 && frame.camera_id == 2 && frame.is_of_rig);
  assert_int_equal(colmap_read_frame(database, 3, &frame), HS_OK);
  assert_true(frame.frame_id == -1 && !frame.is_of_rig);
}

#else

SKIPPED_PROGRAM("built without SQLite")

#endif
