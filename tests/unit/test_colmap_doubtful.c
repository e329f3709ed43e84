/*
 * Doubtful pairs set aside in a COLMAP database: restored byte for byte, deleted with their features, and copied
 * unchanged.
 */
#include "tests/support/test.h"

#include "pipeline/formats/colmap/colmap_pairs.h"
#include "tests/support/colmap_fixture.h"
#include "tests/support/colmap_tables.h"

#if HARTSIFT_HAVE_SQLITE

enum { IMAGES = 4, SQL_BYTES = 512 };
#  define PAIR(a, b) (INT64_C(2147483647) * (a) + (b))

static const uint32_t three_matches[3][2] = {{4, 50}, {59, 7}, {8, 8}};

/* Adds the first `count` of three matches. The first and the third are inliers. */
static hs_status add_to(hs_colmap_database *database, uint32_t a, uint32_t b, size_t count) {
  const uint8_t inliers[3] = {1, 0, 1};
  const hs_geometry f = {.model = HS_FUNDAMENTAL, .found = 1, .matrix = {0, 0, 1, 0, 0, 2, 3, 4, 5}, .inlier_count = 2};
  const hs_geometry h = {.model = HS_HOMOGRAPHY, .found = 1, .matrix = {1, 2, 3, 4, 5, 6, 7, 8, 1}, .inlier_count = 1};
  const hs_colmap_matches matches = {
      .pairs = three_matches, .count = count, .inliers = inliers, .fundamental = &f, .homography = &h};
  return hs_colmap_add_matches(database, a, b, &matches);
}

/* Sets values that other programs write too, and columns that this library leaves empty. */
static const char fill_columns[] = "UPDATE two_view_geometries SET config = 5, E = randomblob(72),"
                                   " qvec = randomblob(32), tvec = randomblob(24)";

/* Makes images 1 to 4 with all pairs verified. */
static void fill(const colmap_fixture *f) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  for (uint32_t i = 1; i <= IMAGES; i++) {
    char name[16];
    snprintf(name, sizeof name, "%u.png", i);
    colmap_fixture_add(database, name, &f->features, i);
  }
  for (uint32_t i = 1; i <= IMAGES; i++)
    for (uint32_t k = i + 1; k <= IMAGES; k++) assert_int_equal(add_to(database, i, k, 3), HS_OK);
  colmap_fixture_finish(database);
  colmap_tables_run(f->path, fill_columns);
}

/* Returns a digest of all rows of a table; for two_view_geometries, of all columns that exist. */
static uint64_t digest_of(const char *path, const char *table) {
  char sql[SQL_BYTES];
  uint64_t digest = 1469598103934665603u;
  size_t size = 0;
  const char *columns = "";
  if (strcmp(table, "two_view_geometries") == 0)
    columns =
        colmap_tables_ask(path, "SELECT 1 FROM pragma_table_info('two_view_geometries') WHERE name = 'camera1'") == 1
            ? " || quote(F) || quote(E) || quote(H) || quote(qvec) || quote(tvec) || quote(camera1)"
        : colmap_tables_ask(path, "SELECT 1 FROM pragma_table_info('two_view_geometries') WHERE name = 'F'") == 1
            ? " || quote(F) || quote(E) || quote(H) || quote(qvec) || quote(tvec)"
            : "";
  snprintf(
      sql, sizeof sql,
      "SELECT CAST(group_concat(line) AS BLOB) FROM (SELECT pair_id || ':' || rows || ' ' || cols || ' ' || quote(data)%s%s"
      " AS line FROM %s ORDER BY pair_id)",
      strcmp(table, "matches") == 0 ? "" : " || config", columns, table);
  unsigned char *bytes = colmap_tables_blob(path, sql, &size);
  for (size_t i = 0; i < size; i++) digest = (digest ^ bytes[i]) * 1099511628211u;
  free(bytes);
  return digest ^ size;
}

static void set_aside(const colmap_fixture *f, int64_t pair_id) {
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_set_aside(database, pair_id, 9, 1), HS_OK);
  colmap_fixture_finish(database);
}

static size_t take_back(const colmap_fixture *f) {
  size_t count = 77;
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_take_back(database, &count), HS_OK);
  colmap_fixture_finish(database);
  return count;
}

static int64_t ask_of(const char *path, const char *sql, int64_t pair_id) {
  char text[SQL_BYTES];
  snprintf(text, sizeof text, "%s WHERE pair_id = %lld", sql, (long long)pair_id);
  return colmap_tables_ask(path, text);
}

static int64_t count_aside(const colmap_fixture *f) {
  return colmap_tables_ask(f->path, "SELECT count(*) FROM hartsift_doubtful_pairs");
}

/* ------------------------------------------------------------------ there and back */

static void check_left(const colmap_fixture *f, int64_t pair_id, bool has_matrices) {
  assert_int_equal(
      ask_of(f->path, "SELECT rows = 0 AND length(data) = 0 AND config = 1 FROM two_view_geometries", pair_id), 1);
  if (has_matrices)
    assert_int_equal(ask_of(f->path, "SELECT F IS NULL AND E IS NULL AND H IS NULL FROM two_view_geometries", pair_id),
                     1);
  assert_int_equal(ask_of(f->path,
                          "SELECT matches = 3 AND on_tracks = 9 AND supported = 1 AND rows = 2 AND config IN (3, 5)"
                          " AND reason LIKE '%tracks%' FROM hartsift_doubtful_pairs",
                          pair_id),
                   1);
}

TEST_ON_DATABASE(test_there_and_back) {
  fill(f);
  const uint64_t before = digest_of(f->path, "two_view_geometries"), matches = digest_of(f->path, "matches");
  assert_int_equal(take_back(f), 0);
  set_aside(f, PAIR(1, 3));
  set_aside(f, PAIR(3, 4));
  check_left(f, PAIR(1, 3), true);
  check_left(f, PAIR(3, 4), true);
  assert_int_equal(count_aside(f), 2);
  assert_true(digest_of(f->path, "two_view_geometries") != before);
  set_aside(f, PAIR(1, 3)); /* nothing is left to set aside, so the entries stay as they are */
  set_aside(f, PAIR(7, 8)); /* the pair does not exist */
  check_left(f, PAIR(1, 3), true);
  assert_int_equal(count_aside(f), 2);
  assert_int_equal(take_back(f), 2);
  assert_true(digest_of(f->path, "two_view_geometries") == before);
  assert_true(digest_of(f->path, "matches") == matches);
  assert_int_equal(count_aside(f), 0);
  assert_int_equal(take_back(f), 0);
}

/* Covers the columns of every version, including those that this library does not write, and a pair without matches. */
TEST_ON_DATABASE(test_every_version) {
  for (int version = 0; version <= COLMAP_VERSIONS; version++) {
    char name[16];
    snprintf(name, sizeof name, "%d.db", version);
    scratch_folder_path(&f->folder, name, f->path);
    const bool has_matrices = version < COLMAP_VERSIONS; /* the last round has the columns of COLMAP before 3.4 */
    colmap_tables_make(f->path, has_matrices ? (colmap_version)version : COLMAP_3_8);
    if (!has_matrices)
      colmap_tables_run(f->path,
                        "DROP TABLE two_view_geometries; CREATE TABLE two_view_geometries(pair_id INTEGER PRIMARY"
                        " KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB,"
                        " config INTEGER NOT NULL)");
    hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
    colmap_fixture_add(database, "1.png", &f->features, 1);
    colmap_fixture_add(database, "2.png", &f->others, 2);
    assert_int_equal(add_to(database, 1, 2, 3), HS_OK);
    colmap_fixture_finish(database);
    if (has_matrices) colmap_tables_run(f->path, fill_columns);
    if (version == COLMAP_4_2)
      colmap_tables_run(f->path, "UPDATE two_view_geometries SET camera1 = x'0102', camera2 = x'03'");
    const uint64_t before = digest_of(f->path, "two_view_geometries");
    set_aside(f, PAIR(1, 2));
    check_left(f, PAIR(1, 2), has_matrices);
    assert_int_equal(take_back(f), 1);
    assert_true(digest_of(f->path, "two_view_geometries") == before);
    colmap_tables_run(f->path, "DELETE FROM matches");
    set_aside(f, PAIR(1, 2));
    assert_int_equal(take_back(f), 1);
    assert_true(digest_of(f->path, "two_view_geometries") == before);
  }
}

/* ------------------------------------------------------------------ writes while pairs are set aside */

/* If another program writes a new entry, it stays, and the entry set aside is deleted. */
TEST_ON_DATABASE(test_entries_of_others) {
  static const char *const writings[] = {
      "UPDATE two_view_geometries SET config = 3, rows = 1, data = x'0100000002000000' WHERE pair_id = 2147483649",
      "UPDATE two_view_geometries SET config = 0 WHERE pair_id = 2147483649",
      "DELETE FROM two_view_geometries WHERE pair_id = 2147483649",
      "UPDATE matches SET rows = 2, data = substr(data, 1, 16) WHERE pair_id = 2147483649",
      "DELETE FROM matches WHERE pair_id = 2147483649",
  };
  fill(f);
  for (size_t i = 0; i < sizeof writings / sizeof writings[0]; i++) {
    set_aside(f, PAIR(1, 2));
    assert_int_equal(count_aside(f), 1);
    colmap_tables_run(f->path, writings[i]);
    const uint64_t left = digest_of(f->path, "two_view_geometries");
    assert_int_equal(take_back(f), 0);
    assert_int_equal(count_aside(f), 0);
    assert_true(digest_of(f->path, "two_view_geometries") == left);
    hs_colmap_database *database = colmap_fixture_open(f, 1, 0);
    assert_int_equal(add_to(database, 1, 2, 3), HS_OK);
    colmap_fixture_finish(database);
  }
}

/* Adding the same geometry again restores the entry set aside. A different geometry replaces the entry or is refused,
 * as for any pair. */
TEST_ON_DATABASE(test_adding_again) {
  hs_colmap_database *database;
  fill(f);
  colmap_tables_run(f->path, "UPDATE two_view_geometries SET config = 3");
  const uint64_t before = digest_of(f->path, "two_view_geometries");
  for (int round = 0; round < 3; round++) {
    set_aside(f, PAIR(1, 2));
    database = colmap_fixture_open(f, 0, 0);
    const hs_colmap_matches raw = {.pairs = three_matches, .count = 3};
    if (round == 0) assert_int_equal(add_to(database, 2, 1, 0), HS_ERR_ARGUMENT); /* the matches differ */
    if (round == 0) assert_int_equal(count_aside(f), 1);
    if (round == 1) assert_int_equal(add_to(database, 1, 2, 3), HS_OK);
    if (round == 2) assert_int_equal(hs_colmap_add_matches(database, 1, 2, &raw), HS_OK);
    colmap_fixture_finish(database);
    assert_int_equal(count_aside(f), round == 0);
    assert_int_equal(take_back(f), round == 0);
    assert_true(digest_of(f->path, "two_view_geometries") == before);
  }
  set_aside(f, PAIR(1, 2));
  database = colmap_fixture_open(f, 1, 0);
  assert_int_equal(add_to(database, 1, 2, 2), HS_OK);
  colmap_fixture_finish(database);
  assert_int_equal(count_aside(f), 0);
  assert_int_equal(ask_of(f->path, "SELECT rows FROM matches", PAIR(1, 2)), 2);
  set_aside(f, PAIR(1, 3));
  database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_drop_pair(database, 3, 1), HS_OK);
  colmap_fixture_finish(database);
  assert_int_equal(count_aside(f), 0);
  assert_int_equal(ask_of(f->path, "SELECT count(*) FROM two_view_geometries", PAIR(1, 3)), 0);
}

/* An image that gets other features loses its pairs and their entries set aside; other pairs stay. */
TEST_ON_DATABASE(test_other_features) {
  fill(f);
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  for (uint32_t i = 1; i <= IMAGES; i++)
    for (uint32_t k = i + 1; k <= IMAGES; k++)
      assert_int_equal(colmap_note_first_pass(database, i, k, 5 + i, 3), HS_OK);
  colmap_fixture_finish(database);
  set_aside(f, PAIR(1, 2));
  set_aside(f, PAIR(2, 4));
  set_aside(f, PAIR(1, 4));
  database = colmap_fixture_open(f, 1, 0);
  colmap_fixture_add(database, "2.png", &f->others, 2);
  colmap_fixture_finish(database);
  assert_int_equal(count_aside(f), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM hartsift_guided"), 3);
  assert_int_equal(ask_of(f->path, "SELECT count(*) FROM hartsift_guided", PAIR(1, 2)), 0);
  assert_int_equal(take_back(f), 1);
  assert_int_equal(ask_of(f->path, "SELECT rows FROM two_view_geometries", PAIR(1, 4)), 2);
}

/* A move that is not committed leaves no trace. Two handles see the same entries. */
TEST_ON_DATABASE(test_transactions) {
  size_t count;
  fill(f);
  const uint64_t before = digest_of(f->path, "two_view_geometries");
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_set_aside(database, PAIR(1, 2), 9, 1), HS_OK);
  assert_int_equal(colmap_note_first_pass(database, 1, 3, 9, 1), HS_OK);
  hs_colmap_close(database);
  assert_true(digest_of(f->path, "two_view_geometries") == before);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM sqlite_master WHERE name LIKE 'hartsift_d%'"), 0);
  set_aside(f, PAIR(1, 2));
  const hs_colmap_options only = {.struct_size = sizeof only, .read_only = 1};
  hs_colmap_database *reader;
  colmap_verified_pair pair;
  uint32_t inliers[4];
  assert_int_equal(hs_colmap_open(&reader, f->path, &only), HS_OK);
  assert_int_equal(colmap_next_verified(reader, -1, &pair), HS_OK);
  assert_true(pair.pair_id == PAIR(1, 3) && pair.stored == 2);
  assert_int_equal(colmap_read_inliers(reader, pair.pair_id, inliers, 2), HS_OK);
  assert_true(inliers[0] == 4 && inliers[1] == 50 && inliers[2] == 8 && inliers[3] == 8);
  assert_int_equal(colmap_set_aside(reader, PAIR(1, 3), 9, 1), HS_ERR_ARGUMENT);
  assert_int_equal(colmap_take_back(reader, &count), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(reader), "reading only"));
  hs_colmap_close(reader);
  /* The second handle was open before the table existed; the first one then rolled everything back. */
  hs_colmap_database *second = NULL;
  database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  colmap_tables_run(f->path, "DROP TABLE hartsift_doubtful_pairs");
  assert_int_equal(hs_colmap_open(&second, f->path, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(second), HS_OK);
  assert_int_equal(colmap_set_aside(database, PAIR(1, 4), 9, 1), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  assert_int_equal(colmap_take_back(second, &count), HS_OK);
  assert_int_equal(count, 1);
  assert_int_equal(hs_colmap_commit(second), HS_OK);
  assert_int_equal(colmap_take_back(database, &count), HS_OK);
  assert_int_equal(count, 0);
  hs_colmap_close(second);
  hs_colmap_close(database);
  assert_int_equal(colmap_set_aside(NULL, 1, 0, 0), HS_ERR_ARGUMENT);
}

/* ------------------------------------------------------------------ reading */

static void check_next(hs_colmap_database *database, int64_t after, int64_t expected, size_t matches, size_t inliers) {
  colmap_verified_pair pair;
  assert_int_equal(colmap_next_verified(database, after, &pair), HS_OK);
  assert_true(pair.pair_id == expected);
  assert_int_equal(pair.matches, matches);
  assert_int_equal(pair.inliers, inliers);
  assert_true(!pair.is_damaged);
}

/* The first pass of a guided pair counts as long as the number of inliers equals the number after the second pass. */
TEST_ON_DATABASE(test_first_passes) {
  fill(f);
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  check_next(database, -1, PAIR(1, 2), 3, 2);
  check_next(database, PAIR(1, 2), PAIR(1, 3), 3, 2);
  check_next(database, PAIR(3, 4), -1, 0, 0);
  assert_int_equal(colmap_note_first_pass(database, 3, 1, 40, 10), HS_OK);
  assert_int_equal(colmap_note_first_pass(database, 1, 4, 30, 20), HS_OK);
  assert_int_equal(colmap_note_first_pass(database, 1, 2, 31, 21), HS_OK);
  assert_int_equal(colmap_note_first_pass(database, 1, 9, 31, 21), HS_OK); /* the pair does not exist */
  assert_int_equal(add_to(database, 1, 2, 3), HS_ERR_ARGUMENT);            /* the configuration differs */
  check_next(database, -1, PAIR(1, 2), 31, 21);
  check_next(database, PAIR(1, 2), PAIR(1, 3), 40, 10);
  assert_int_equal(colmap_set_aside(database, PAIR(1, 3), 0, 0), HS_OK);
  check_next(database, PAIR(1, 2), PAIR(1, 4), 30, 20);
  size_t count;
  assert_int_equal(colmap_take_back(database, &count), HS_OK);
  check_next(database, PAIR(1, 2), PAIR(1, 3), 40, 10);
  colmap_fixture_finish(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM hartsift_guided"), 3);
  colmap_tables_run(f->path,
                    "UPDATE two_view_geometries SET rows = 1, data = substr(data, 1, 8) WHERE pair_id = 2147483650");
  database = colmap_fixture_open(f, 1, 0);
  check_next(database, PAIR(1, 2), PAIR(1, 3), 3, 1);
  assert_int_equal(add_to(database, 1, 4, 3), HS_OK); /* verified again without a guide */
  check_next(database, PAIR(1, 3), PAIR(1, 4), 3, 2);
  colmap_fixture_finish(database);
  colmap_tables_run(f->path, "UPDATE two_view_geometries SET config = 7 WHERE pair_id = 2147483650");
  database = colmap_fixture_open(f, 0, 0);
  check_next(database, PAIR(1, 2), PAIR(1, 4), 3, 2); /* a watermark is no geometry of the scene */
}

/* Entries of pairs that cannot exist are skipped one by one and not read. */
TEST_ON_DATABASE(test_damaged_entries) {
  static const char *const damages[] = {
      "rows = 3",
      "rows = 9223372036854775807",
      "rows = 4611686018427387904 + 2",
      "data = NULL",
      "data = x'00'",
      "rows = 1",
      "rows = 1.5, data = x'000000000000000000000000'",
      "data = 'text'",
      "rows = 'many'",
      "pair_id = 9223372036854775807",
      "pair_id = 4611686014132420609",    /* a pair of the images 2147483647 and 0 */
      "pair_id = 2147483648",             /* a pair of image 1 with itself */
      "pair_id = 2 * 2147483647 + 1",     /* a pair has its smaller number first */
      "pair_id = 2147483646 * 2147483647" /* a pair of the images 2147483646 and 0 */
  };
  fill(f);
  colmap_tables_run(f->path, "CREATE TABLE kept AS SELECT * FROM two_view_geometries");
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    char sql[SQL_BYTES];
    size_t good = 0, damaged = 0;
    uint32_t inliers[4];
    colmap_verified_pair pair = {.pair_id = -1};
    snprintf(sql, sizeof sql,
             "DELETE FROM two_view_geometries; INSERT INTO two_view_geometries SELECT * FROM kept;"
             "UPDATE two_view_geometries SET %s WHERE pair_id = 2147483650",
             damages[i]);
    colmap_tables_run(f->path, sql);
    scoped_database *database = colmap_fixture_open(f, 0, 0);
    for (size_t k = 0; k <= 6; k++) {
      assert_int_equal(colmap_next_verified(database, pair.pair_id, &pair), HS_OK);
      if (pair.pair_id < 0) break;
      good += !pair.is_damaged;
      damaged += pair.is_damaged;
      if (pair.is_damaged) assert_int_equal(colmap_read_inliers(database, pair.pair_id, inliers, 1), HS_ERR_FORMAT);
    }
    assert_int_equal(good, 5);
    assert_int_equal(damaged, 1);
  }
  colmap_tables_run(f->path, "DELETE FROM two_view_geometries; INSERT INTO two_view_geometries SELECT * FROM kept;"
                             /* a number below those of all pairs */
                             "UPDATE two_view_geometries SET pair_id = -5 WHERE pair_id = 2147483650;"
                             "UPDATE matches SET rows = 4611686018427387904 WHERE pair_id = 2147483649;"
                             "UPDATE matches SET rows = -3 WHERE pair_id = 2147483651");
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  check_next(database, -1, PAIR(1, 2), 2, 2); /* the stated number of matches is wrong, so only the inliers count */
  check_next(database, PAIR(1, 2), PAIR(1, 4), 2, 2);
  assert_int_equal(colmap_note_first_pass(database, 1, 2, 9, 4), HS_OK);
  assert_int_equal(colmap_note_first_pass(database, 1, 4, 9, 4), HS_OK);
  colmap_fixture_finish(database);
  static const char *const lies[] = {"matches = -1", "inliers = 10",  "matches = 4611686018427387904",
                                     "inliers = -1", "matches = 'x'", "rows = 3"};
  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    char sql[SQL_BYTES];
    snprintf(sql, sizeof sql,
             "UPDATE hartsift_guided SET rows = 2, matches = 9, inliers = 4; UPDATE hartsift_guided SET %s", lies[i]);
    colmap_tables_run(f->path, sql);
    database = colmap_fixture_open(f, 0, 0);
    check_next(database, -1, PAIR(1, 2), 2, 2);
    hs_colmap_close(database);
  }
}

TEST_ON_DATABASE(test_held_keypoints) {
  size_t count;
  fill(f);
  colmap_tables_run(
      f->path,
      "UPDATE keypoints SET rows = 4611686018427387904 WHERE image_id = 2;"
      "UPDATE keypoints SET rows = -1 WHERE image_id = 3; UPDATE keypoints SET data = NULL WHERE image_id = 4");
  scoped_database *database = colmap_fixture_open(f, 0, 0);
  for (uint32_t i = 1; i <= IMAGES + 1; i++) {
    assert_int_equal(colmap_count_held_keypoints(database, i, &count), HS_OK);
    assert_int_equal(count, i == 1 ? COLMAP_FIXTURE_FEATURES : 0);
  }
}

/* ------------------------------------------------------------------ copying, and tables of other programs */

static hs_colmap_database *open_other(const char *path, const colmap_fixture *f) {
  hs_colmap_database *database;
  assert_int_equal(hs_colmap_open(&database, path, NULL), HS_OK);
  colmap_fixture_add(database, "1.png", &f->features, 1);
  colmap_fixture_add(database, "2.png", &f->features, 2);
  return database;
}

static void copy(const colmap_fixture *f, const char *other, hs_status status) {
  const uint32_t numbers[2] = {1, 2};
  hs_colmap_database *database = open_other(other, f), *source = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_copy_pair(database, numbers, source, numbers), status);
  hs_colmap_close(source);
  colmap_fixture_finish(database);
}

/* A geometry set aside is copied unchanged, with the first pass of a guided pair. Copying twice gives the same result.
 * A target that has set the same geometry aside receives it. */
TEST_ON_DATABASE(test_copies) {
  char other[SCRATCH_PATH_BYTES];
  scratch_folder_path(&f->folder, "other.db", other);
  colmap_tables_make(other, COLMAP_4_2);
  fill(f);
  hs_colmap_database *database = colmap_fixture_open(f, 0, 0);
  assert_int_equal(colmap_note_first_pass(database, 1, 2, 40, 10), HS_OK);
  colmap_fixture_finish(database);
  colmap_tables_run(f->path, "DELETE FROM two_view_geometries WHERE pair_id <> 2147483649;"
                             "DELETE FROM matches WHERE pair_id <> 2147483649");
  const uint64_t before = digest_of(f->path, "two_view_geometries");
  set_aside(f, PAIR(1, 2));
  for (int round = 0; round < 3; round++) {
    copy(f, other, HS_OK);
    assert_true(digest_of(other, "two_view_geometries") == before);
    assert_int_equal(
        ask_of(other, "SELECT matches = 40 AND inliers = 10 AND rows = 2 FROM hartsift_guided", PAIR(1, 2)), 1);
    if (round == 0) continue;
    assert_int_equal(hs_colmap_open(&database, other, NULL), HS_OK);
    assert_int_equal(colmap_set_aside(database, PAIR(1, 2), 1, 1), HS_OK);
    colmap_fixture_finish(database);
  }
  /* Another program has verified the pair again; the new geometry is copied. */
  colmap_tables_run(f->path, "UPDATE two_view_geometries SET rows = 1, config = 2, data = x'0100000002000000'");
  copy(f, other, HS_ERR_ARGUMENT);
  colmap_tables_run(other, "DELETE FROM two_view_geometries");
  copy(f, other, HS_OK);
  assert_int_equal(ask_of(other, "SELECT config FROM two_view_geometries", PAIR(1, 2)), 2);
  /* The matches have indices of features that the image does not have. */
  colmap_tables_run(f->path, "UPDATE two_view_geometries SET rows = 0, config = 1, data = x'';"
                             "UPDATE hartsift_doubtful_pairs SET data = x'3C000000070000000800000008000000'");
  copy(f, other, HS_ERR_FORMAT);
}

/* If a table has our name but another program's columns, the database is refused as unknown and stays unchanged. */
TEST_ON_DATABASE(test_foreign_tables) {
  static const char *const tables[] = {
      "CREATE TABLE hartsift_doubtful_pairs(pair_id INTEGER PRIMARY KEY NOT NULL, reason TEXT)",
      "CREATE TABLE hartsift_doubtful_pairs(pair_id TEXT, reason, matches, on_tracks, supported, rows, cols, data, config,"
      " F, E, H, qvec, tvec)",
      "CREATE TABLE hartsift_guided(pair_id INTEGER PRIMARY KEY NOT NULL, rows, matches)",
      "CREATE TABLE hartsift_guided(pair_id INTEGER PRIMARY KEY NOT NULL, rows, matches, inliers, more NOT NULL)",
  };
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    hs_colmap_database *database;
    colmap_tables_run(f->path, tables[i]);
    assert_int_equal(hs_colmap_open(&database, f->path, NULL), HS_ERR_UNSUPPORTED);
    colmap_tables_run(f->path, "DROP TABLE IF EXISTS hartsift_doubtful_pairs; DROP TABLE IF EXISTS hartsift_guided");
  }
}

#else

SKIPPED_PROGRAM("built without SQLite")

#endif
