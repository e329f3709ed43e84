/*
 * Files appear complete or not at all: tests what remains after success, failure and abandoned writes.
 */
#define _DEFAULT_SOURCE /* setgroups */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "os/os_process.h"
#include "pipeline/base/atomic_file.h"
#include "pipeline/cli/common/cli_output.h"

/* fchmod is defined here instead of the C library's, because the file's state before the rename is only visible at this
 * point. */
static mode_t mode_before_fchmod;

int fchmod(int descriptor, mode_t mode) {
  struct stat info;
  if (fstat(descriptor, &info) == 0) mode_before_fchmod = info.st_mode & 0777u;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  return chmod(path, mode);
}

/* Sequence of durable operations: 'f' a file, 'd' a folder, 'r' a rename. sync_fails: the operation that fails; 0:
 * none. */
static char synced[8];
static char sync_fails;
static int rename_fails_at; /* counted down; the call that reaches 0 fails */
static bool another_cleans; /* whether another process cleans the folder just before a file gets its name */

static void note_sync(char what) {
  const size_t length = strlen(synced);
  if (length + 1 < sizeof synced) synced[length] = what;
}

int fsync(int descriptor) {
  struct stat info;
  const char what = fstat(descriptor, &info) == 0 && S_ISDIR(info.st_mode) ? 'd' : 'f';
  note_sync(what);
  errno = EIO;
  return what == sync_fails ? -1 : 0;
}

int rename(const char *from, const char *to) {
  note_sync('r');
  if (another_cleans) atomic_file_remove_left(to);
  if (rename_fails_at > 0 && --rename_fails_at == 0) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void assert_content(const char *path, const char *expected) {
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(path, &size);
  assert_int_equal(size, strlen(expected));
  assert_string_equal((const char *)bytes, expected);
  free(bytes);
}

static hs_status write_text(const char *path, const char *text) {
  atomic_file file;
  FILE *stream = atomic_file_open(&file, path);
  if (!stream) {
    assert_true(file.message[0] != '\0');
    return file.status;
  }
  fputs(text, stream);
  return atomic_file_commit(&file);
}

TEST_IN_FOLDER(test_appears_only_at_commit) {
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, "new", path);
  atomic_file file;
  FILE *stream = atomic_file_open(&file, path);
  assert_non_null(stream);
  fputs("text", stream);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(scratch_folder_count(folder), 1);
  assert_int_equal(atomic_file_commit(&file), HS_OK);
  assert_string_equal(file.message, "");
  assert_content(path, "text");
  assert_int_equal(scratch_folder_count(folder), 1);
  atomic_file_abandon(&file);
  assert_content(path, "text");
}

TEST_IN_FOLDER(test_new_file_follows_umask) {
  char path[SCRATCH_PATH_BYTES];
  struct stat info;
  scratch_folder_path(folder, "new", path);
  const mode_t before = umask(027);
  assert_int_equal(write_text(path, "x"), HS_OK);
  umask(before);
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777u, 0640);
}

TEST_IN_FOLDER(test_abandon_keeps_old_file) {
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, "old", path);
  scratch_write_file(path, "before", 6);
  atomic_file file;
  FILE *stream = atomic_file_open(&file, path);
  assert_non_null(stream);
  fputs("half", stream);
  atomic_file_abandon(&file);
  assert_content(path, "before");
  assert_int_equal(scratch_folder_count(folder), 1);
}

TEST_IN_FOLDER(test_existing_file_keeps_permissions) {
  char path[SCRATCH_PATH_BYTES];
  struct stat info;
  scratch_folder_path(folder, "old", path);
  scratch_write_file(path, "before", 6);
  assert_int_equal(chmod(path, 0604), 0);
  assert_int_equal(write_text(path, "after"), HS_OK);
  assert_content(path, "after");
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777u, 0604);
}

TEST_IN_FOLDER(test_link_stays) {
  char target[SCRATCH_PATH_BYTES], link[SCRATCH_PATH_BYTES], second[SCRATCH_PATH_BYTES];
  struct stat info;
  scratch_folder_path(folder, "target", target);
  scratch_folder_path(folder, "link", link);
  scratch_folder_path(folder, "second", second);
  assert_int_equal(symlink("target", link), 0);
  assert_int_equal(symlink(link, second), 0);
  /* The link first dangles, then points to a file. */
  for (int round = 0; round < 2; round++) {
    const char *text = round == 0 ? "first" : "then";
    assert_int_equal(write_text(second, text), HS_OK);
    assert_content(target, text);
    assert_int_equal(lstat(second, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(scratch_folder_count(folder), 3);
  }
}

TEST_IN_FOLDER(test_link_loop_fails) {
  char one[SCRATCH_PATH_BYTES], two[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, "one", one);
  scratch_folder_path(folder, "two", two);
  assert_int_equal(symlink("two", one), 0);
  assert_int_equal(symlink("one", two), 0);
  assert_int_equal(write_text(one, "x"), HS_ERR_IO);
  assert_int_equal(scratch_folder_count(folder), 2);
}

TEST(test_device_is_written_through) {
  struct stat info;
  assert_int_equal(write_text("/dev/null", "gone"), HS_OK);
  assert_int_equal(stat("/dev/null", &info), 0);
  assert_true(S_ISCHR(info.st_mode));
}

TEST(test_full_device_fails) {
  if (access("/dev/full", W_OK) != 0) skip_because("no /dev/full");
  atomic_file file;
  FILE *stream = atomic_file_open(&file, "/dev/full");
  assert_non_null(stream);
  fputs("no room", stream);
  assert_int_equal(atomic_file_commit(&file), HS_ERR_IO);
  assert_non_null(strstr(file.message, "/dev/full"));
  assert_non_null(strstr(file.message, strerror(ENOSPC)));
  /* The text exceeds the stream's buffer: the write itself fails, and the final flush has nothing left to write. */
  stream = atomic_file_open(&file, "/dev/full");
  assert_non_null(stream);
  for (int i = 0; i < 4096; i++) fputs("no room for all of these lines\n", stream);
  assert_int_equal(atomic_file_commit(&file), HS_ERR_IO);
  assert_non_null(strstr(file.message, strerror(ENOSPC)));
}

TEST_IN_FOLDER(test_pipe_is_written_through) {
  char path[SCRATCH_PATH_BYTES], text[16] = "";
  scratch_folder_path(folder, "pipe", path);
  assert_int_equal(mkfifo(path, 0600), 0);
  const int reader = open(path, O_RDONLY | O_NONBLOCK);
  assert_true(reader >= 0);
  assert_int_equal(write_text(path, "through"), HS_OK);
  assert_int_equal(read(reader, text, sizeof text - 1), 7);
  assert_string_equal(text, "through");
  close(reader);
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_true(S_ISFIFO(info.st_mode));
}

/* The test runs in a child process, because it redirects standard output. */
TEST_IN_FOLDER(test_standard_output) {
  char path[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, "captured", path);
  fflush(stdout);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (!freopen(path, "wb", stdout)) _exit(1);
    const hs_status first = write_text("-", "one ");
    const hs_status second = write_text("-", "two");
    _exit(first == HS_OK && second == HS_OK ? 0 : 2);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_content(path, "one two");
}

TEST_IN_FOLDER(test_unusable_places_fail) {
  char path[SCRATCH_PATH_BYTES];
  atomic_file file;
  assert_null(atomic_file_open(&file, NULL));
  assert_int_equal(file.status, HS_ERR_ARGUMENT);
  assert_null(atomic_file_open(&file, ""));
  assert_int_equal(file.status, HS_ERR_ARGUMENT);

  assert_null(atomic_file_open(&file, scratch_folder_path(folder, "missing/name", path)));
  assert_int_equal(file.status, HS_ERR_IO);
  assert_non_null(strstr(file.message, path));
  assert_int_equal(atomic_file_commit(&file), HS_ERR_IO);
  atomic_file_abandon(&file);

  assert_int_equal(write_text(((scratch_folder *)folder)->path, "x"), HS_ERR_IO);
  assert_int_equal(write_text(scratch_folder_path(folder, "slash/", path), "x"), HS_ERR_IO);
  assert_int_equal(scratch_folder_count(folder), 0);

  SCOPED_MEMORY char *endless = malloc(2 * ATOMIC_FILE_PATH_BYTES);
  assert_non_null(endless);
  memset(endless, 'a', 2 * ATOMIC_FILE_PATH_BYTES - 1);
  endless[2 * ATOMIC_FILE_PATH_BYTES - 1] = '\0';
  assert_int_equal(write_text(endless, "x"), HS_ERR_IO);
}

static int write_where_forbidden(const char *folder, const char *kept, const char *new_path) {
  if (write_text(kept, "x") != HS_ERR_IO || chmod(folder, 0500) != 0) return 1;
  return write_text(new_path, "x") != HS_ERR_IO;
}

/* Root may write anywhere, so a child process with another user's rights tries to write. */
TEST_IN_FOLDER(test_protection_is_respected) {
  enum { NOBODY = 65534 };
  char kept[SCRATCH_PATH_BYTES], new_path[SCRATCH_PATH_BYTES];
  int child_status = -1;
  scratch_write_file(scratch_folder_path(folder, "kept", kept), "before", 6);
  scratch_folder_path(folder, "new", new_path);
  assert_int_equal(chmod(kept, 0444), 0);
  if (geteuid() == 0) assert_true(chown(kept, NOBODY, NOBODY) == 0 && chown(folder->path, NOBODY, NOBODY) == 0);
  const pid_t child = fork();
  if (child == 0)
    _exit(geteuid() == 0 && setuid(NOBODY) != 0 ? 2 : write_where_forbidden(folder->path, kept, new_path));
  assert_int_equal(waitpid(child, &child_status, 0), child);
  assert_int_equal(chmod(folder->path, 0700), 0);
  assert_int_equal(child_status, 0);
  assert_content(kept, "before");
  assert_int_equal(scratch_folder_count(folder), 1);
}

TEST_IN_FOLDER(test_longest_name_works) {
  char name[256], path[SCRATCH_PATH_BYTES];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  assert_int_equal(write_text(scratch_folder_path(folder, name, path), "x"), HS_OK);
  assert_content(path, "x");
}

TEST_IN_FOLDER(test_two_writers_do_not_mix) {
  char one[SCRATCH_PATH_BYTES], two[SCRATCH_PATH_BYTES];
  atomic_file first, second, same;
  FILE *first_stream = atomic_file_open(&first, scratch_folder_path(folder, "one", one));
  FILE *second_stream = atomic_file_open(&second, scratch_folder_path(folder, "two", two));
  FILE *same_stream = atomic_file_open(&same, one);
  assert_non_null(first_stream);
  assert_non_null(second_stream);
  assert_non_null(same_stream);
  fputs("1", first_stream);
  fputs("2", second_stream);
  fputs("3", same_stream);
  assert_int_equal(atomic_file_commit(&first), HS_OK);
  assert_int_equal(atomic_file_commit(&second), HS_OK);
  assert_content(one, "1");
  assert_content(two, "2");
  assert_int_equal(atomic_file_commit(&same), HS_OK);
  assert_content(one, "3");
  assert_int_equal(scratch_folder_count(folder), 2);
}

TEST_IN_FOLDER(test_failing_rename_cleans_up) {
  char path[SCRATCH_PATH_BYTES];
  atomic_file file;
  FILE *stream = atomic_file_open(&file, scratch_folder_path(folder, "name", path));
  assert_non_null(stream);
  fputs("x", stream);
  assert_int_equal(mkdir(path, 0700), 0); /* meanwhile a folder takes the file's name */
  assert_int_equal(atomic_file_commit(&file), HS_ERR_IO);
  assert_non_null(strstr(file.message, path));
  assert_int_equal(scratch_folder_count(folder), 1);
}

TEST_IN_FOLDER(test_replacement_is_private_at_first) {
  char path[SCRATCH_PATH_BYTES];
  if (access("/proc/self/fd", X_OK) != 0) skip_because("no /proc");
  scratch_write_file(scratch_folder_path(folder, "old", path), "before", 6);
  assert_int_equal(chmod(path, 0644), 0);
  mode_before_fchmod = 0777;
  assert_int_equal(write_text(path, "after"), HS_OK);
  assert_int_equal(mode_before_fchmod, 0600);
}

enum { ALICE = 65501, BOB = 65502, TEAM = 65511, USERS = 65512 };

/* Returns owner and permissions after BOB, whose group is USERS, rewrites a file of ALICE and group TEAM. in_team:
 * whether BOB is a member of TEAM too. */
static struct stat replaced_by_another(const scratch_folder *folder, mode_t mode, bool in_team) {
  char path[SCRATCH_PATH_BYTES];
  const gid_t groups[] = {TEAM};
  struct stat info;
  int child_status = -1;
  scratch_write_file(scratch_folder_path(folder, "shared", path), "before", 6);
  assert_true(chown(path, ALICE, TEAM) == 0 && chmod(path, mode) == 0 && chmod(folder->path, 0777) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgroups(in_team, groups) != 0 || setgid(USERS) != 0 || setuid(BOB) != 0) _exit(2);
    _exit(write_text(path, "after") == HS_OK ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &child_status, 0), child);
  assert_int_equal(child_status, 0);
  assert_content(path, "after");
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(unlink(path), 0);
  return info;
}

TEST_IN_FOLDER(test_no_other_group_gains_access) {
  if (geteuid() != 0) skip_because("only the administrator can play two users");
  struct stat info = replaced_by_another(folder, 0660, true);
  assert_int_equal(info.st_gid, TEAM);
  assert_int_equal(info.st_mode & 07777u, 0660);
  info = replaced_by_another(folder, 0666, false);
  assert_int_equal(info.st_gid, USERS);
  assert_int_equal(info.st_mode & 07777u, 0606);
  info = replaced_by_another(folder, 0646, false); /* members of TEAM could not write the file */
  assert_int_equal(info.st_mode & 07777u, 0604);
}

/* Runs in containers, which all have the same process id, left temporary files behind. */
TEST_IN_FOLDER(test_leftovers_do_not_block) {
  char name[64], path[SCRATCH_PATH_BYTES];
  enum { LEFT = 1000 };
  for (int i = 0; i < LEFT; i++) {
    snprintf(name, sizeof name, ".hartsift-%ld-%d.tmp", (long)getpid(), i);
    scratch_write_file(scratch_folder_path(folder, name, path), "", 0);
  }
  assert_int_equal(write_text(scratch_folder_path(folder, "new", path), "x"), HS_OK);
  assert_int_equal(scratch_folder_count(folder), LEFT + 1);
}

static hs_status write_and_see(const char *path, bool is_staged, char fails) {
  atomic_file file;
  memset(synced, 0, sizeof synced);
  FILE *stream = atomic_file_open(&file, path);
  assert_non_null(stream);
  file.is_staged = is_staged;
  fputs("text", stream);
  sync_fails = fails;
  const hs_status status = atomic_file_commit(&file);
  sync_fails = 0;
  if (fails) assert_non_null(strstr(file.message, strerror(EIO)));
  return status;
}

TEST_IN_FOLDER(test_file_and_name_are_permanent) {
  char path[SCRATCH_PATH_BYTES], before[SCRATCH_PATH_BYTES];
  scratch_folder_path(folder, "new", path);
  assert_int_equal(write_and_see(path, false, 0), HS_OK);
  assert_string_equal(synced, "frd");
  assert_int_equal(write_and_see(path, true, 0), HS_OK);
  assert_string_equal(synced, "fr");
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(((scratch_folder *)folder)->path), 0);
  assert_int_equal(write_and_see("beside", false, 0), HS_OK); /* a name without a folder */
  assert_int_equal(chdir(before), 0);
  assert_string_equal(synced, "frd");
  assert_int_equal(write_and_see(path, false, 'd'), HS_ERR_IO);
  assert_content(path, "text");
  assert_int_equal(write_and_see(scratch_folder_path(folder, "lost", path), false, 'f'), HS_ERR_IO);
  assert_string_equal(synced, "f");
  assert_int_equal(scratch_folder_count(folder), 2);
}

/* A file that nobody holds a lock on is a leftover of a killed process. */
TEST_IN_FOLDER(test_only_what_was_left_is_removed) {
  static const char *const left[] = {".hartsift-0123456789abcdef.tmp", ".hartsift-1-0.tmp"};
  static const char *const others[] = {".hartsift-.tmp", "hartsift-1.tmp", ".hartsift-1.tmp.bak", ".hartsift-batch"};
  char path[SCRATCH_PATH_BYTES], precious[SCRATCH_PATH_BYTES], name[SCRATCH_PATH_BYTES];
  atomic_file file;
  for (size_t i = 0; i < 2; i++) scratch_write_file(scratch_folder_path(folder, left[i], path), "half", 4);
  for (size_t i = 0; i < 4; i++) scratch_write_file(scratch_folder_path(folder, others[i], path), "other", 5);
  scratch_write_file(scratch_folder_path(folder, "precious", precious), "kept", 4);
  assert_int_equal(symlink("precious", scratch_folder_path(folder, ".hartsift-2.tmp", path)), 0);
  assert_int_equal(link(precious, scratch_folder_path(folder, ".hartsift-3.tmp", path)), 0);
  assert_int_equal(mkdir(scratch_folder_path(folder, ".hartsift-4.tmp", path), 0700), 0);
  FILE *stream = atomic_file_open(&file, scratch_folder_path(folder, "written", path));
  assert_non_null(stream);
  assert_int_equal(scratch_folder_count(folder), 11);
  atomic_file_remove_left(path);
  assert_int_equal(scratch_folder_count(folder), 9);
  for (size_t i = 0; i < 2; i++) assert_int_equal(access(scratch_folder_path(folder, left[i], name), F_OK), -1);
  assert_content(precious, "kept");
  fputs("whole", stream);
  assert_int_equal(atomic_file_commit(&file), HS_OK);
  assert_content(scratch_folder_path(folder, "written", path), "whole");
}

/* Processes clean their common folder while others finish their files. */
TEST_IN_FOLDER(test_what_is_finished_is_not_left) {
  char path[SCRATCH_PATH_BYTES];
  atomic_file file;
  another_cleans = true;
  fputs("whole", atomic_file_open(&file, scratch_folder_path(folder, "written", path)));
  const hs_status status = atomic_file_commit(&file);
  another_cleans = false;
  assert_int_equal(status, HS_OK);
  assert_content(path, "whole");
}

static hs_status save_pair(const char *path, size_t count) {
  static const hs_keypoint keypoints[2] = {{.x = 1, .y = 2, .sigma = 1}, {.x = 3, .y = 4, .sigma = 2}};
  static const uint8_t descriptors[2 * HS_DESCRIPTOR_LENGTH] = {7, 9};
  hs_features features = {.count = count,
                          .keypoints = (hs_keypoint *)(uintptr_t)keypoints,
                          .descriptor_type = HS_DESCRIPTOR_U8,
                          .descriptors = (void *)(uintptr_t)descriptors};
  const hs_file_options options = {.struct_size = sizeof options, .format = HS_FORMAT_OPENMVG};
  return hs_save_features(path, &features, &options);
}

/* If one of the two renames fails, the two existing files still belong to the same list. */
TEST_IN_FOLDER(test_pair_of_files_belongs_together) {
  char path[SCRATCH_PATH_BYTES];
  const hs_file_options options = {.struct_size = sizeof options, .format = HS_FORMAT_OPENMVG};
  scratch_folder_path(folder, "pair.feat", path);
  for (int failing = 0; failing <= 2; failing++) {
    scoped_features found = {0};
    assert_int_equal(save_pair(path, 2), HS_OK);
    rename_fails_at = failing;
    assert_int_equal(save_pair(path, 1), failing > 0 ? HS_ERR_IO : HS_OK);
    rename_fails_at = 0;
    assert_int_equal(hs_load_features(path, &found, &options), failing > 0 ? HS_ERR_IO : HS_OK);
    assert_int_equal(found.count, failing > 0 ? 0 : 1);
    assert_int_equal(scratch_folder_count(folder), failing > 0 ? 1 : 2);
    hs_features_free(&found);
    assert_int_equal(save_pair(path, 1), HS_OK); /* the next attempt makes both files */
    assert_int_equal(hs_load_features(path, &found, &options), HS_OK);
    assert_int_equal(found.count, 1);
  }
}

TEST_IN_FOLDER(test_database_is_not_replaced) {
  char path[SCRATCH_PATH_BYTES];
  static const char database[32] = "SQLite format 3";
  scratch_write_file(scratch_folder_path(folder, "any.csv", path), database, sizeof database);
  assert_int_equal(write_text(path, "x"), HS_ERR_IO);
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(path, &size);
  assert_int_equal(size, sizeof database);
  assert_memory_equal(bytes, database, sizeof database);
  free(bytes);
  assert_int_equal(scratch_folder_count(folder), 1);
}

static void clean_nothing(void) {}

/* Raises a signal after hold, and another one after it if twice; returns how the child process ended. */
static int end_held(bool twice) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    os_on_end(clean_nothing);
    os_end_release();
    os_end_hold();
    raise(SIGTERM);
    if (twice)
      raise(SIGINT);
    else
      os_end_release();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The first signal is kept, a second one ends the program. */
TEST(test_signals_are_held) {
  assert_int_equal(end_held(false), SIGTERM);
  assert_int_equal(end_held(true), SIGINT);
}

/* Finds the name of the temporary file in the folder; "" if there is none. */
static void find_temporary(const scratch_folder *folder, char name[256]) {
  DIR *entries = opendir(folder->path);
  assert_non_null(entries);
  name[0] = '\0';
  for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
    if (atomic_file_is_temporary(entry->d_name)) snprintf(name, 256, "%s", entry->d_name);
  closedir(entries);
}

TEST_IN_FOLDER(test_all_temporaries_can_be_removed) {
  enum { FILES = 20 };
  atomic_file files[FILES];
  char name[256], path[SCRATCH_PATH_BYTES];
  for (int round = 0; round < 3; round++) { /* slots of the list are released and used again */
    for (int i = 0; i < 3; i++) {
      snprintf(name, sizeof name, "%d", i);
      assert_non_null(atomic_file_open(&files[i], scratch_folder_path(folder, name, path)));
    }
    assert_int_equal(scratch_folder_count(folder), 3);
    find_temporary(folder, name);
    assert_true(name[0] != '\0');
    unfinished_files_remove();
    assert_int_equal(scratch_folder_count(folder), 0);
    for (int i = 0; i < 3; i++) atomic_file_abandon(&files[i]);
  }
  for (int i = 0; i < FILES; i++) { /* more files than the list holds; all are written */
    snprintf(name, sizeof name, "%d", i);
    assert_non_null(atomic_file_open(&files[i], scratch_folder_path(folder, name, path)));
  }
  for (int i = 0; i < FILES; i++) assert_int_equal(atomic_file_commit(&files[i]), HS_OK);
  assert_int_equal(scratch_folder_count(folder), FILES);
  unfinished_files_remove();
  assert_int_equal(scratch_folder_count(folder), FILES);
  assert_false(atomic_file_is_temporary(".hartsift-.tmp"));
  assert_false(atomic_file_is_temporary("0.npz"));
}
