/*
 * Databases that a separate thread writes: with a write-ahead log, as COLMAP makes them, and one that is removed while
 * another program waits for its lock.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/support/test.h"

#if HARTSIFT_HAVE_SQLITE

#  include <sqlite3.h>

#  include "pipeline/formats/colmap/colmap_internal.h"

static void run(sqlite3 *database, const char *sql) {
  char *message = NULL;
  if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s: %s", sql, message);
}

static int64_t ask(sqlite3 *database, const char *sql) {
  sqlite3_stmt *statement = NULL;
  assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
  const int64_t answer = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
  assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
  return answer;
}

static sqlite3 *open_database(const char *path, const char *layer) {
  sqlite3 *database = NULL;
  assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, layer), SQLITE_OK);
  run(database, "PRAGMA page_size = 1024; PRAGMA wal_autocheckpoint = 0");
  return database;
}

/* A reader keeps a checkpoint from the end of the log while the file cannot grow. The log's content must stay. */
TEST_IN_FOLDER(test_full_disk_in_a_checkpoint) {
  char path[SCRATCH_PATH_BYTES];
  struct stat info;
  scratch_folder_path(folder, "database.db", path);
  sqlite3 *writer = open_database(path, colmap_vfs_name()), *reader = open_database(path, NULL);
  run(writer, "CREATE TABLE t (b BLOB); INSERT INTO t VALUES (zeroblob(1000000))");
  assert_true(colmap_vfs_cpu_s(writer) > 0);
  assert_true(colmap_vfs_cpu_s(reader) == 0);
  run(writer, "PRAGMA journal_mode = WAL; INSERT INTO t VALUES (randomblob(100000))");
  run(reader, "BEGIN");
  assert_int_equal(ask(reader, "SELECT count(*) FROM t"), 2);
  run(writer, "INSERT INTO t VALUES (randomblob(100000))");
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(stat(path, &info), 0);
  const struct rlimit small = {.rlim_cur = (rlim_t)info.st_size + 10240, .rlim_max = old.rlim_max};
  (void)signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const int code = sqlite3_exec(writer, "PRAGMA wal_checkpoint(PASSIVE)", NULL, NULL, NULL);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_not_equal(code, SQLITE_OK);
  run(reader, "COMMIT");
  /* Now space is available again. */
  assert_int_equal(ask(writer, "SELECT count(*) FROM t"), 3);
  run(writer, "PRAGMA wal_checkpoint(TRUNCATE)");
  assert_int_equal(ask(reader, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
  assert_int_equal(ask(reader, "SELECT count(*) FROM t WHERE b = zeroblob(length(b))"), 1);
  assert_int_equal(sqlite3_close(reader), SQLITE_OK);
  assert_int_equal(sqlite3_close(writer), SQLITE_OK);
}

/* A program that waits for a file does not touch the journal of a new file that replaced it. */
TEST_IN_FOLDER(test_lock_of_a_removed_file) {
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, "database.db", path);
  sqlite3 *late = open_database(path, colmap_vfs_name());
  assert_int_equal(remove(path), 0);
  sqlite3 *writer = open_database(path, colmap_vfs_name());
  run(writer, "BEGIN IMMEDIATE; CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1)");
  assert_int_equal(scratch_folder_count(folder), 2); /* the file and its journal */
  assert_int_equal(sqlite3_exec(late, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
  assert_int_equal(sqlite3_exec(late, "SELECT 1 FROM sqlite_master", NULL, NULL, NULL), SQLITE_BUSY);
  assert_int_equal(scratch_folder_count(folder), 2);
  run(writer, "COMMIT");
  assert_int_equal(ask(writer, "SELECT x FROM t"), 1);
  assert_int_equal(sqlite3_close(late), SQLITE_OK);
  assert_int_equal(sqlite3_close(writer), SQLITE_OK);
}

#else

TEST_IN_FOLDER(test_full_disk_in_a_checkpoint) { skip_because("built without SQLite"); }

#endif
