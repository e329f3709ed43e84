/*
 * Large blobs whose content goes around SQLite: the database is as SQLite makes it, for every page size and length;
 * reads and replacements within a transaction, failures, a killed writer.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "os/os_files.h"
#include "os/os_threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/formats/colmap/blob_pages.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/colmap/colmap_records.h"
#include "pipeline/formats/common/content_digest.h"
#include "tests/support/colmap_file.h"
#include "tests/support/colmap_tables.h"

enum { WIDTH = 640, HEIGHT = 480, LARGE = 3000 };

/* ------------------------------------------------------------------ the layout alone */

static uint32_t next_of(const blob_pages *b, int64_t index) {
  const write_page page = blob_pages_page(b, index);
  return (uint32_t)page.head[0] << 24 | (uint32_t)page.head[1] << 16 | (uint32_t)page.head[2] << 8 | page.head[3];
}

/* The chain leaves out the page that SQLite locks, wherever it begins, and contains every byte once. */
TEST(test_around_the_locking_page) {
  enum { PAGE_BYTES = 4096, LOCKING = 0x40000000 / PAGE_BYTES + 1, SIZE = 20 * PAGE_BYTES };
  SCOPED_MEMORY uint8_t *bytes = calloc(1, SIZE);
  for (uint32_t pages = LOCKING - 30; pages < LOCKING + 5; pages++) {
    blob_pages b = {.page_bytes = PAGE_BYTES, .usable = PAGE_BYTES, .bytes = bytes, .size = SIZE};
    assert_true(blob_pages_plan(&b, 10, pages));
    uint32_t number = pages + 1 == LOCKING ? pages + 2 : pages + 1;
    size_t content = b.local;
    assert_int_equal(b.first, number);
    assert_int_equal(blob_pages_index(&b, LOCKING), -1);
    assert_int_equal(blob_pages_index(&b, (int64_t)number - 1), -1);
    for (int64_t i = 0; i < b.count; i++) {
      assert_int_equal(blob_pages_index(&b, number), i);
      content += blob_pages_page(&b, i).size;
      const uint32_t next = number + 1 == LOCKING ? number + 2 : number + 1;
      assert_int_equal(next_of(&b, i), i + 1 < b.count ? next : 0);
      number = next;
    }
    assert_int_equal(blob_pages_index(&b, number), -1);
    assert_int_equal(content, SIZE);
    b.bytes = NULL; /* freed by this test */
    blob_pages_free(&b);
  }
}

TEST(test_what_is_too_small) {
  uint8_t byte = 0;
  blob_pages b = {.page_bytes = 16384, .usable = 16384, .bytes = &byte, .size = 16384};
  assert_false(blob_pages_plan(&b, 10, 7));
  b.size = 3 * 16384;
  assert_false(blob_pages_plan(&b, 10, 7));
  b.page_bytes = b.usable = 1024; /* too small for the queue */
  assert_false(blob_pages_plan(&b, 10, 7));
}

#if HARTSIFT_HAVE_SQLITE

#  include <sqlite3.h>

#  include "pipeline/formats/colmap/colmap_internal.h"

/* ------------------------------------------------------------------ databases */

static void fill(uint8_t *bytes, size_t size, uint64_t seed) {
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 13 | 1);
}

/* Makes rows, whose keypoints are numbers that a reader takes. */
static colmap_rows make_rows(size_t count, uint32_t seed) {
  colmap_rows rows = {.count = count, .width = WIDTH, .height = HEIGHT};
  rows.keypoints = hs_memory_alloc(NULL, count * COLMAP_KEYPOINT_BYTES);
  rows.descriptors = hs_memory_alloc(NULL, count * HS_DESCRIPTOR_LENGTH);
  assert_true(rows.keypoints && rows.descriptors);
  for (size_t i = 0; i < count; i++) {
    const hs_keypoint k = {.x = (float)(i % WIDTH), .y = (float)seed, .sigma = 1.0f + (float)(i % 7)};
    colmap_keypoint_put(&k, rows.keypoints + i * COLMAP_KEYPOINT_BYTES);
  }
  fill(rows.descriptors, count * HS_DESCRIPTOR_LENGTH, seed);
  return rows;
}

static hs_status add(hs_colmap_database *database, const char *name, size_t count, uint32_t seed, bool *is_taken) {
  colmap_rows rows = make_rows(count, seed);
  const hs_status status = colmap_add_rows(database, name, NULL, &rows, NULL);
  if (is_taken) *is_taken = !rows.descriptors;
  colmap_rows_free(&rows);
  return status;
}

static void check_blob(const char *path, const char *table, const char *name, const uint8_t *expected, size_t size) {
  char sql[160];
  size_t found = 0;
  snprintf(sql, sizeof sql, "SELECT data FROM images NATURAL JOIN %s WHERE name = '%s'", table, name);
  SCOPED_MEMORY uint8_t *data = colmap_tables_blob(path, sql, &found);
  assert_non_null(data);
  assert_int_equal(found, size);
  assert_memory_equal(data, expected, size);
}

static void check_image(const char *path, const char *name, size_t count, uint32_t seed) {
  colmap_rows rows = make_rows(count, seed);
  check_blob(path, "keypoints", name, rows.keypoints, count * COLMAP_KEYPOINT_BYTES);
  check_blob(path, "descriptors", name, rows.descriptors, count * HS_DESCRIPTOR_LENGTH);
  colmap_rows_free(&rows);
}

/* Also checks that no space remains that was allocated for later pages. */
static void check_file(const char *path, int64_t images) {
  os_info info;
  const int64_t bytes =
      colmap_tables_ask(path, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
  assert_true(os_info_of(path, &info));
  assert_int_equal(info.size, bytes);
  assert_int_equal(colmap_tables_ask(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
  assert_int_equal(colmap_tables_ask(path, "SELECT count(*) FROM images"), images);
  assert_int_equal(colmap_tables_ask(path, "SELECT count(*) FROM descriptors"), images);
}

static hs_colmap_database *open_behind(colmap_file *f, int32_t replace) {
  hs_colmap_database *database = NULL;
  hs_colmap_options options = colmap_file_options(f);
  options.replace = replace;
  if (colmap_open_behind(&database, f->path, &options) != HS_OK) fail_msg("%s", f->message);
  return database;
}

static void finish(hs_colmap_database *database) {
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  hs_colmap_close(database);
}

/* Lengths around every boundary of the layout; also with descriptors of a type, as newer versions of COLMAP store it.
 */
TEST_ON_FILE(test_lengths_and_page_sizes) {
  static const int page_bytes[] = {4096, 16384, 65536};
  enum { STEPS = 140 };
  for (size_t p = 0; p < 3; p++) {
    char sql[80], name[16];
    bool is_taken = false;
    size_t taken = 0;
    (void)remove(f->path);
    colmap_tables_make(f->path, COLMAP_3_8);
    snprintf(sql, sizeof sql, "PRAGMA page_size = %d; VACUUM", page_bytes[p]);
    colmap_tables_run(f->path, sql);
    hs_colmap_database *database = open_behind(f, 0);
    for (uint32_t i = 0; i < STEPS; i++) {
      snprintf(name, sizeof name, "%u.png", i);
      assert_int_equal(add(database, name, 450 + i * (size_t)(p == 2 ? 17 : 1), i, &is_taken), HS_OK);
      taken += is_taken;
      if (i % 50 == 49) assert_int_equal(hs_colmap_commit(database), HS_OK);
    }
    finish(database);
    assert_true(p == 0 ? taken == STEPS : taken > 0);
    snprintf(sql, sizeof sql, "SELECT page_size = %d FROM pragma_page_size", page_bytes[p]);
    assert_int_equal(colmap_tables_ask(f->path, sql), 1);
    check_file(f->path, STEPS);
    for (uint32_t i = 0; i < STEPS; i++) {
      snprintf(name, sizeof name, "%u.png", i);
      check_image(f->path, name, 450 + i * (size_t)(p == 2 ? 17 : 1), i);
    }
  }
}

TEST_ON_FILE(test_every_version_of_colmap) {
  for (int version = 0; version < COLMAP_VERSIONS; version++) {
    (void)remove(f->path);
    colmap_tables_make(f->path, (colmap_version)version);
    hs_colmap_database *database = open_behind(f, 0);
    bool is_taken = false;
    assert_int_equal(add(database, "a.png", LARGE, 1, NULL), HS_OK);
    assert_int_equal(add(database, "b.png", LARGE + 7, 2, &is_taken), HS_OK);
    assert_true(is_taken);
    finish(database);
    check_file(f->path, 2);
    check_image(f->path, "a.png", LARGE, 1);
    check_image(f->path, "b.png", LARGE + 7, 2);
  }
}

/* Tables that store rows otherwise, or whose data something else reads, get their content from SQLite. */
TEST_ON_FILE(test_unusual_tables) {
  static const char *const changes[] = {
      "ALTER TABLE descriptors ADD COLUMN further INTEGER",
      "CREATE INDEX of_data ON descriptors(data)",
      "CREATE TRIGGER seen AFTER INSERT ON descriptors BEGIN UPDATE images SET prior_qw = 1; END",
      "CREATE TRIGGER seen AFTER INSERT ON Descriptors BEGIN UPDATE images SET prior_qw = 1; END",
      "DROP TABLE descriptors; CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data "
      "BLOB) WITHOUT ROWID",
      "DROP TABLE descriptors; CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY, data BLOB, rows INTEGER, cols "
      "INTEGER)",
      "DROP TABLE descriptors; CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY, rows TEXT, cols INTEGER, data BLOB)",
      "DROP TABLE descriptors; CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data "
      "BLOB CHECK (length(data) > 0))",
      "DROP TABLE descriptors; CREATE TABLE descriptors (image_id INTEGER NOT NULL, rows INTEGER, cols INTEGER, data BLOB)",
      "PRAGMA auto_vacuum = FULL; VACUUM",
      "PRAGMA journal_mode = WAL"};
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    (void)remove(f->path);
    colmap_tables_make(f->path, COLMAP_3_8);
    colmap_tables_run(f->path, changes[i]);
    hs_colmap_database *database = open_behind(f, 0);
    bool is_taken = true;
    if (add(database, "a.png", LARGE, 1, &is_taken) != HS_OK) fail_msg("%s", hs_colmap_last_error(database));
    assert_false(is_taken);
    finish(database);
    check_file(f->path, 1);
    check_image(f->path, "a.png", LARGE, 1);
  }
}

/* While the file has free pages within, SQLite uses them for the content that it gets. */
TEST_ON_FILE(test_free_pages) {
  bool is_taken = true;
  hs_colmap_database *database = open_behind(f, 1);
  assert_int_equal(add(database, "a.png", LARGE, 1, NULL), HS_OK);
  assert_int_equal(add(database, "b.png", LARGE, 2, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  assert_int_equal(add(database, "a.png", 600, 3, NULL), HS_OK);
  assert_int_equal(add(database, "c.png", LARGE / 2, 4, &is_taken), HS_OK);
  assert_false(is_taken);
  assert_int_equal(add(database, "d.png", LARGE, 5, NULL), HS_OK);
  assert_int_equal(add(database, "e.png", LARGE, 6, &is_taken), HS_OK);
  assert_true(is_taken);
  finish(database);
  check_file(f->path, 5);
  check_image(f->path, "a.png", 600, 3);
  check_image(f->path, "b.png", LARGE, 2);
  check_image(f->path, "c.png", LARGE / 2, 4);
  check_image(f->path, "d.png", LARGE, 5);
  check_image(f->path, "e.png", LARGE, 6);
}

static void check_read(hs_colmap_database *database, uint32_t image_id, uint32_t seed) {
  hs_features features = {0};
  colmap_rows rows = make_rows(LARGE, seed);
  assert_int_equal(hs_colmap_read_features(database, image_id, &features), HS_OK);
  assert_int_equal(features.count, LARGE);
  assert_memory_equal(features.descriptors, rows.descriptors, LARGE * HS_DESCRIPTOR_LENGTH);
  assert_true(features.keypoints[LARGE - 1].y == (float)seed);
  hs_features_free(&features);
  colmap_rows_free(&rows);
}

/* The handle reads what it has added, within the transaction and later, and replaces it. */
TEST_ON_FILE(test_reading_and_replacing) {
  hs_colmap_database *database = open_behind(f, 1);
  bool is_taken = false;
  for (int round = 0; round < 2; round++) {
    assert_int_equal(add(database, "a.png", LARGE, 1, round == 0 ? &is_taken : NULL), HS_OK);
    assert_int_equal(add(database, "b.png", LARGE, 2, NULL), HS_OK);
    check_read(database, 1, 1);
    assert_int_equal(add(database, "c.png", LARGE, 3, NULL), HS_OK);
    assert_int_equal(add(database, "c.png", LARGE, 3, NULL), HS_OK); /* the same again */
    assert_int_equal(add(database, "b.png", LARGE, 4, NULL), HS_OK); /* replaces */
    if (round == 0) assert_int_equal(hs_colmap_commit(database), HS_OK);
    check_read(database, 2, 4);
    check_read(database, 3, 3);
    assert_int_equal(add(database, "b.png", LARGE, 2, NULL), HS_OK);
  }
  assert_true(is_taken);
  check_read(database, 2, 2);
  finish(database);
  check_file(f->path, 3);
  check_image(f->path, "a.png", LARGE, 1);
  check_image(f->path, "b.png", LARGE, 2);
  check_image(f->path, "c.png", LARGE, 3);
}

/* An image that fails halfway leaves its pages to the next one. */
TEST_ON_FILE(test_a_failure_halfway) {
  finish(open_behind(f, 0));
  colmap_tables_run(f->path, "CREATE TRIGGER no BEFORE INSERT ON descriptors WHEN NEW.rows = 4000"
                             " BEGIN SELECT RAISE(ABORT, 'refused'); END");
  hs_colmap_database *database = open_behind(f, 0);
  for (int round = 0; round < 2; round++) {
    assert_int_equal(add(database, round == 0 ? "a.png" : "b.png", LARGE, (uint32_t)round, NULL), HS_OK);
    assert_int_not_equal(add(database, "bad.png", 4000, 7, NULL), HS_OK);
    assert_non_null(strstr(hs_colmap_last_error(database), "refused"));
    assert_false(colmap_is_lost(database));
    assert_int_equal(add(database, round == 0 ? "c.png" : "d.png", LARGE + 1, 9, NULL), HS_OK);
  }
  finish(database);
  check_file(f->path, 4);
  check_image(f->path, "a.png", LARGE, 0);
  check_image(f->path, "b.png", LARGE, 1);
  check_image(f->path, "c.png", LARGE + 1, 9);
  check_image(f->path, "d.png", LARGE + 1, 9);
}

/* Without space the transaction is lost, and the database is as at the last commit. */
TEST_ON_FILE(test_a_full_disk) {
  hs_colmap_database *database = open_behind(f, 0);
  assert_int_equal(add(database, "a.png", LARGE, 1, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  const struct rlimit small = {.rlim_cur = 3000000, .rlim_max = old.rlim_max};
  (void)signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  hs_status status = HS_OK;
  for (uint32_t i = 0; i < 100 && status == HS_OK; i++) {
    char name[16];
    snprintf(name, sizeof name, "%u.png", i);
    status = add(database, name, LARGE, i, NULL);
  }
  if (status == HS_OK) status = hs_colmap_commit(database);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_not_equal(status, HS_OK);
  assert_true(colmap_is_lost(database));
  hs_colmap_close(database);
  check_file(f->path, 1);
  check_image(f->path, "a.png", LARGE, 1);
}

/* A killed writer leaves a journal, with which the next program restores the last commit. */
TEST_ON_FILE(test_a_killed_writer) {
  finish(open_behind(f, 0));
  const pid_t child = fork();
  if (child == 0) {
    hs_colmap_database *database = open_behind(f, 0);
    (void)add(database, "a.png", LARGE, 1, NULL);
    (void)hs_colmap_commit(database);
    for (uint32_t i = 0; i < 40; i++) {
      char name[16];
      snprintf(name, sizeof name, "%u.png", i);
      (void)add(database, name, LARGE, i, NULL);
    }
    (void)raise(SIGKILL);
  }
  int state = 0;
  assert_int_equal(waitpid(child, &state, 0), child);
  assert_true(WIFSIGNALED(state));
  check_file(f->path, 1);
  check_image(f->path, "a.png", LARGE, 1);
}

static void add_until_killed(colmap_file *f) {
  hs_colmap_database *database = open_behind(f, 0);
  for (uint32_t i = 0;; i++) {
    char name[16];
    snprintf(name, sizeof name, "%u.png", i);
    (void)add(database, name, LARGE, i, NULL);
    if (i % 16 == 15) (void)hs_colmap_commit(database);
  }
}

/* Whenever a writer is killed, the next program finds whole transactions, and no allocated space. */
TEST_ON_FILE(test_kills_at_many_times) {
  enum { KILLS = 12, EACH_NS = 9000000 };
  for (int64_t i = 1; i <= KILLS; i++) {
    (void)remove(f->path);
    finish(open_behind(f, 0));
    const pid_t child = fork();
    if (child == 0) add_until_killed(f);
    os_sleep_ns(i * EACH_NS);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    const int64_t images = colmap_tables_ask(f->path, "SELECT count(*) FROM images");
    assert_int_equal(images % 16, 0);
    check_file(f->path, images);
    if (images > 0) check_image(f->path, "15.png", LARGE, 15);
  }
}

/* Fails unless the system keeps other processes from reading the file: SQLite's bytes for readers are locked. A child
 * with SQLite would not ask the system, because it inherits what this process knows of its locks. */
static void check_locked(const char *path) {
  const pid_t child = fork();
  if (child == 0) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0x40000002, .l_len = 510};
    const int descriptor = open(path, O_RDONLY);
    const bool is_locked = fcntl(descriptor, F_SETLK, &lock) == -1 && (errno == EAGAIN || errno == EACCES);
    _exit(descriptor >= 0 && is_locked ? 0 : 1);
  }
  int state = 0;
  assert_int_equal(waitpid(child, &state, 0), child);
  assert_true(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

/* While pages are written the file is locked. Then another process reads it, also while the next images wait. */
TEST_ON_FILE(test_other_processes) {
  char name[16];
  hs_colmap_database *database = open_behind(f, 0);
  for (uint32_t i = 0; i < 30; i++) {
    snprintf(name, sizeof name, "%u.png", i);
    assert_int_equal(add(database, name, LARGE, i, NULL), HS_OK);
    if (i % 10 == 5) check_locked(f->path);
    if (i % 10 != 9) continue;
    assert_int_equal(hs_colmap_commit(database), HS_OK);
    check_file(f->path, i + 1);
    check_image(f->path, name, LARGE, i);
  }
  finish(database);
}

/* What is not committed leaves neither pages nor space. */
TEST_ON_FILE(test_a_rollback) {
  char name[16];
  finish(open_behind(f, 0));
  hs_colmap_database *database = open_behind(f, 0);
  for (uint32_t i = 0; i < 30; i++) {
    snprintf(name, sizeof name, "%u.png", i);
    assert_int_equal(add(database, name, LARGE, i, NULL), HS_OK);
    if (i == 9) assert_int_equal(hs_colmap_commit(database), HS_OK);
  }
  hs_colmap_close(database);
  check_file(f->path, 10);
  check_image(f->path, "9.png", LARGE, 9);
}

/* The bytes of the file do not depend on how pages are written: with a second descriptor, which the process has anyway,
 * SQLite's one is not known. */
TEST_ON_FILE(test_same_bytes) {
  char name[16];
  uint64_t digests[2] = {0};
  for (int round = 0; round < 2; round++) {
    (void)remove(f->path);
    finish(open_behind(f, 0));
    const int second = round == 1 ? os_open(f->path, OS_READ) : -1;
    hs_colmap_database *database = open_behind(f, 0);
    for (uint32_t i = 0; i < 20; i++) {
      snprintf(name, sizeof name, "%u.png", i);
      assert_int_equal(add(database, name, LARGE + i, i, NULL), HS_OK);
    }
    finish(database);
    if (second >= 0) os_close(second);
    check_file(f->path, 20);
    digest_state state;
    digest_start(&state);
    assert_int_equal(digest_add_file(&state, f->path), HS_OK);
    digests[round] = digest_end(&state);
  }
  assert_true(digests[0] == digests[1]);
}

/* A blob whose pages SQLite never writes is not committed. */
TEST_ON_FILE(test_pages_that_are_not_written) {
  hs_colmap_database *database = open_behind(f, 0);
  bool is_taken = false;
  assert_int_equal(add(database, "0.png", LARGE, 0, &is_taken), HS_OK);
  assert_true(is_taken);
  blob_pages b = {.page_bytes = 4096, .usable = 4096, .bytes = hs_memory_alloc(NULL, 100000), .size = 100000};
  assert_true(b.bytes && blob_pages_plan(&b, 5, 1 << 20)); /* far beyond the end */
  assert_true(colmap_vfs_takes_blobs(database->sqlite));
  colmap_vfs_take_blob(database->sqlite, &b);
  hs_features features = {0};
  assert_int_equal(hs_colmap_read_features(database, 1, &features), HS_ERR_IO); /* writes everything first */
  assert_int_equal(hs_colmap_commit(database), HS_ERR_IO);
  assert_non_null(strstr(hs_colmap_last_error(database), "elsewhere than planned; nothing of the open transaction"));
  assert_int_equal(hs_colmap_commit(database), HS_ERR_IO);
  hs_colmap_close(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM sqlite_master WHERE name = 'keypoints'"), 0);
}

/* A reader that does not end keeps the writer from committing, which says so. */
TEST_ON_FILE(test_a_reader_at_the_commit) {
  finish(open_behind(f, 0));
  sqlite3 *reader = NULL;
  sqlite3_stmt *statement = NULL;
  hs_colmap_database *database = open_behind(f, 0);
  assert_int_equal(add(database, "0.png", LARGE, 0, NULL), HS_OK);
  assert_int_equal(sqlite3_open_v2(f->path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(reader, "SELECT name FROM sqlite_master", -1, &statement, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  (void)sqlite3_busy_timeout(database->sqlite, 10);
  assert_int_equal(hs_colmap_commit(database), HS_ERR_IO);
  if (!strstr(hs_colmap_last_error(database), "database is locked by another program"))
    fail_msg("%s", hs_colmap_last_error(database));
  hs_colmap_close(database);
  (void)sqlite3_finalize(statement);
  assert_int_equal(sqlite3_close(reader), SQLITE_OK);
}

/* If SQLite placed a blob otherwise than expected, the transaction fails, and later ones leave all content to SQLite.
 */
TEST_ON_FILE(test_another_place) {
  enum { SIZE = 100000 };
  sqlite3 *database = NULL;
  assert_int_equal(sqlite3_open_v2(f->path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, colmap_vfs_name()),
                   SQLITE_OK);
  assert_int_equal(sqlite3_exec(database, "CREATE TABLE t (b BLOB); INSERT INTO t VALUES (x'01')", NULL, NULL, NULL),
                   SQLITE_OK);
  blob_pages b = {.page_bytes = 4096, .usable = 4096, .bytes = hs_memory_alloc(NULL, SIZE), .size = SIZE};
  assert_true(b.bytes && blob_pages_plan(&b, 5, 1)); /* the file has two pages */
  assert_true(colmap_vfs_takes_blobs(database));
  colmap_vfs_take_blob(database, &b);
  assert_int_equal(sqlite3_exec(database, "INSERT INTO t VALUES (zeroblob(100000))", NULL, NULL, NULL), SQLITE_IOERR);
  assert_false(colmap_vfs_takes_blobs(database));
  colmap_vfs_drop_blobs(database, 0);
  assert_int_equal(sqlite3_exec(database, "INSERT INTO t VALUES (zeroblob(100000))", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(database), SQLITE_OK);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM t WHERE b = zeroblob(100000)"), 1);
}

#endif
