/*
 * Transactions on a COLMAP database: what a commit keeps, and the state after a close, a failing call, a killed
 * process, a second writer, a full disk or a lack of memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/formats/colmap/colmap_records.h"
#if HARTSIFT_HAVE_SQLITE
#  include "pipeline/formats/colmap/colmap_internal.h"
#endif
#include "tests/support/colmap_file.h"
#include "tests/support/colmap_tables.h"

#if HARTSIFT_HAVE_SQLITE

TEST_ON_FILE(test_close_without_commit) {
  colmap_tables_run(f->path, "");
  (void)unlink(f->path);
  hs_colmap_database *database = colmap_file_open(f);
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &f->features, NULL), HS_OK);
  hs_colmap_close(database);
  assert_int_equal(scratch_folder_count(&f->folder), 0);
  colmap_file_add(f, "a.png");
  size_t before_size, after_size;
  unsigned char *before = scratch_read_file(f->path, &before_size);
  database = colmap_file_open(f);
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_OK);
  hs_colmap_close(database);
  unsigned char *after = scratch_read_file(f->path, &after_size);
  assert_int_equal(after_size, before_size);
  assert_memory_equal(after, before, before_size);
  assert_int_equal(scratch_folder_count(&f->folder), 1);
  free(before);
  free(after);
}

/* A link to a missing file stays a link, and no file remains. */
TEST_ON_FILE(test_close_behind_a_link) {
  char link[SCRATCH_PATH_BYTES];
  hs_colmap_database *database = NULL;
  const hs_colmap_options options = colmap_file_options(f);
  assert_int_equal(symlink(f->path, scratch_folder_path(&f->folder, "link.db", link)), 0);
  assert_int_equal(f->open(&database, link, &options), HS_OK);
  hs_colmap_close(database);
  assert_int_equal(access(f->path, F_OK), -1);
  assert_int_equal(scratch_folder_count(&f->folder), 1);
  assert_int_equal(unlink(link), 0);
}

static void copy_file(const char *from, const char *to) {
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(from, &size);
  scratch_write_file(to, bytes, size);
  free(bytes);
}

/* A process is killed before its first commit, when SQLite has written some pages already. The database is found
 * through a link. */
TEST_ON_FILE(test_killed_writer) {
  char journal[SCRATCH_PATH_BYTES], copy[SCRATCH_PATH_BYTES], copied_journal[SCRATCH_PATH_BYTES];
  char link[SCRATCH_PATH_BYTES];
  scratch_folder_path(&f->folder, "database.db-journal", journal);
  scratch_folder_path(&f->folder, "left_database.db", copy);
  scratch_folder_path(&f->folder, "left_database.db-journal", copied_journal);
  hs_features_free(&f->features);
  feature_maker_fill(&f->features, 2000, FEATURES_U8, 1);
  hs_colmap_database *database = colmap_file_open(f);
  for (int i = 0; i < 20; i++) { /* 6 MB, which is more than SQLite caches */
    char name[16];
    snprintf(name, sizeof name, "%d.png", i);
    assert_int_equal(hs_colmap_add_image(database, name, NULL, &f->features, NULL), HS_OK);
  }
  copy_file(f->path, copy);
  copy_file(journal, copied_journal);
  hs_colmap_close(database);
  assert_int_equal(symlink(copy, scratch_folder_path(&f->folder, "link_database.db", link)), 0);
  memcpy(f->path, link, sizeof link);
  database = colmap_file_open(f);
  hs_colmap_image image;
  assert_int_equal(hs_colmap_next_image(database, -1, &image), HS_OK);
  assert_int_equal(image.found, 0);
  hs_colmap_close(database);
  colmap_file_add(f, "a.png");
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 1);
  /* A file of zeros is no database. */
  (void)unlink(f->path);
  scratch_write_file(f->path, (const unsigned char[64]){0}, 64);
  colmap_file_refuses(f, 0, HS_ERR_FORMAT, "not an SQLite");
}

/* A failing call rolls back only its own changes. */
TEST_ON_FILE(test_failing_call) {
  colmap_tables_make(f->path, COLMAP_4_2);
  hs_colmap_database *database = colmap_file_open(f);
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &f->features, NULL), HS_OK);
  hs_features unsized = f->features;
  unsized.image_width = 0;
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &unsized, NULL), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_colmap_last_error(database), "b.png"));
  const uint32_t pair[2] = {0, COLMAP_FILE_FEATURES};
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

/* A module whose table cannot be opened: an input error without an error of the system. */
static int refuse_table(sqlite3 *sqlite, void *user, int count, const char *const *arguments, sqlite3_vtab **table,
                        char **message) {
  (void)sqlite, (void)user, (void)count, (void)arguments, (void)table, (void)message;
  return SQLITE_IOERR;
}

/* A message names the error of the failed call, not one from before. */
TEST_ON_FILE(test_errors_of_the_system) {
  static const sqlite3_module module = {.xConnect = refuse_table};
  char path[SCRATCH_PATH_BYTES], message[512] = "";
  hs_colmap_options options = colmap_file_options(f);
  hs_colmap_database *database = colmap_file_open(f);
  sqlite3_stmt *statement;
  assert_int_equal(sqlite3_create_module(database->sqlite, "refused", &module, NULL), SQLITE_OK);
  errno = ENOSPC;
  assert_int_not_equal(colmap_prepare(database, "SELECT * FROM refused", &statement), HS_OK);
  colmap_done(database, statement);
  assert_null(strstr(hs_colmap_last_error(database), strerror(ENOSPC)));
  hs_colmap_close(database);
  options.message = message;
  options.message_bytes = sizeof message;
  errno = ENOSPC;
  assert_int_equal(f->open(&database, scratch_folder_path(&f->folder, "absent/new.db", path), &options), HS_ERR_IO);
  assert_non_null(strstr(message, strerror(ENOENT)));
}

TEST_ON_FILE(test_commit_in_between) {
  colmap_tables_make(f->path, COLMAP_3_8);
  hs_colmap_database *database = colmap_file_open(f);
  assert_int_equal(hs_colmap_add_image(database, "a.png", NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  /* Between two transactions another program may write, and may even change the tables. */
  colmap_tables_run(f->path, "ALTER TABLE descriptors ADD COLUMN type INTEGER NOT NULL DEFAULT -1");
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  assert_int_equal(hs_colmap_commit(database), HS_OK);
  assert_int_equal(hs_colmap_add_image(database, "c.png", NULL, &f->features, NULL), HS_OK);
  hs_colmap_close(database);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT count(*) FROM images"), 2);
  assert_int_equal(colmap_tables_ask(f->path, "SELECT type FROM descriptors WHERE image_id = 2"), 0);
}

/* Between two transactions another program changes the tables to an unknown schema. Every call is then refused, and the
 * database is not left locked. */
TEST_ON_FILE(test_refused_in_between) {
  colmap_tables_make(f->path, COLMAP_3_8);
  hs_colmap_database *database = colmap_file_open(f);
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

TEST_ON_FILE(test_two_writers) {
  colmap_file_add(f, "a.png");
  hs_colmap_database *database = colmap_file_open(f);
  colmap_file_refuses(f, 0, HS_ERR_IO, "locked");
  hs_colmap_close(database);
  colmap_file_add(f, "b.png");
}

/* Returns whether another process could not take the write lock. The lock's byte is defined by SQLite's file format. */
static bool is_locked_for_others(const char *path) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000001, .l_len = 1};
    const int file = open(path, O_RDWR | O_CLOEXEC);
    _exit(file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Opening and closing a second handle in the same process keeps the first handle's locks, although closing any other
 * descriptor of the file would release them. */
TEST_ON_FILE(test_locks_of_one_process) {
  colmap_file_add(f, "a.png");
  assert_false(is_locked_for_others(f->path));
  hs_colmap_database *database = colmap_file_open(f), *reader = NULL;
  assert_true(is_locked_for_others(f->path));
  hs_colmap_options options = colmap_file_options(f);
  options.read_only = 1;
  assert_int_equal(f->open(&reader, f->path, &options), HS_OK);
  hs_colmap_close(reader);
  assert_true(is_locked_for_others(f->path));
  hs_colmap_close(database);
  assert_false(is_locked_for_others(f->path));
}

TEST_ON_FILE(test_read_only) {
  colmap_file_add(f, "a.png");
  scoped_database *database = NULL;
  hs_colmap_options options = colmap_file_options(f);
  options.read_only = 1;
  assert_int_equal(f->open(&database, f->path, &options), HS_OK);
  hs_colmap_image image;
  assert_int_equal(hs_colmap_find_image(database, "a.png", &image), HS_OK);
  assert_int_equal(image.features, COLMAP_FILE_FEATURES);
  assert_int_equal(hs_colmap_add_image(database, "b.png", NULL, &f->features, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_add_matches(database, 1, 2, &(hs_colmap_matches){0}), HS_ERR_ARGUMENT);
  assert_int_equal(hs_colmap_commit(database), HS_ERR_ARGUMENT);
}

/* The disk is full; this is simulated with the limits that a process can set. */
TEST_ON_FILE(test_full_disk) {
  colmap_file_add(f, "a.png");
  size_t before_size, after_size;
  unsigned char *before = scratch_read_file(f->path, &before_size);
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  const struct rlimit small = {.rlim_cur = (rlim_t)before_size + 4096, .rlim_max = old.rlim_max};
  (void)signal(SIGXFSZ, SIG_IGN);
  scoped_features many = {0};
  feature_maker_fill(&many, 100000, FEATURES_U8, 2);
  hs_colmap_database *database = colmap_file_open(f);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  hs_status status = hs_colmap_add_image(database, "b.png", NULL, &many, NULL);
  if (status == HS_OK) status = hs_colmap_commit(database);
  assert_non_null(strstr(hs_colmap_last_error(database), strerror(EFBIG)));
  const hs_status later = hs_colmap_add_image(database, "c.png", NULL, &f->features, NULL);
  const hs_status last = hs_colmap_commit(database);
  hs_colmap_close(database);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(scratch_folder_count(&f->folder), 1); /* the file needs no journal, and none is left */
  assert_int_equal(hs_status_class_of(status), HS_CLASS_RESOURCE);
  /* Either the transaction fails with an error, or it commits without b.png; half of it is never committed. */
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
}

/* Writes rows larger than SQLite's page cache, in transactions that are committed or rolled back, with reads in
 * between. */
static void write_large_rows(const colmap_file *f, hs_colmap_database *database, const hs_features *many) {
  scoped_features read = {0};
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
}

/* The file is byte for byte the file that SQLite writes without the write-behind VFS. */
TEST_ON_FILE(test_large_rows) {
  char plain[SCRATCH_PATH_BYTES];
  size_t size = 0, plain_size = 0;
  scoped_features many = {0};
  hs_colmap_database *database = colmap_file_open(f);
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
}

static hs_status round_trip(colmap_file *f, const hs_allocator *allocator) {
  scoped_database *database = NULL;
  hs_colmap_options options = colmap_file_options(f);
  options.allocator = allocator;
  scoped_features read = {0};
  hs_status status = f->open(&database, f->path, &options);
  const uint32_t pair[2] = {0, 1};
  const hs_colmap_matches matches = {.pairs = pair, .count = 1};
  uint32_t a = 0, b = 0;
  if (status == HS_OK) status = hs_colmap_add_image(database, "a.png", NULL, &f->features, &a);
  if (status == HS_OK) status = hs_colmap_add_image(database, "b.png", NULL, &f->features, &b);
  if (status == HS_OK) status = hs_colmap_add_matches(database, a, b, &matches);
  if (status == HS_OK) status = hs_colmap_read_features(database, a, &read);
  if (status == HS_OK) assert_int_equal(read.count, COLMAP_FILE_FEATURES);
  return status;
}

TEST_ON_FILE(test_failing_allocations) {
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

static int run_both(const char *program) {
  colmap_file_open_by(hs_colmap_open);
  const int failed = test_run(program, 0);
  colmap_file_open_by(colmap_open_behind);
  return failed + test_run(program, 0);
}

TEST_AT_START(open_both_ways) { test_main = run_both; }

#else

SKIPPED_PROGRAM("built without SQLite")

#endif
