/*
 * System calls of atomic file writing: no file of another user is opened, and failing calls are handled.
 *
 * As long as the machine runs, files do not show which calls were made. This file therefore defines the calls, which
 * take precedence over the C library's.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

#include "pipeline/base/atomic_file.h"

typedef struct seen_calls {
  int sync_error; /* error that fsync of a file reports; 0: it succeeds */
  bool is_fixed;  /* whether all random numbers are equal */
  int owner_calls, owner_error;
  uid_t owner;
} seen_calls;

static seen_calls calls;
static char target[SCRATCH_PATH_BYTES];

int fsync(int descriptor) {
  struct stat info;
  if (calls.sync_error == 0 || fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  errno = calls.sync_error;
  return -1;
}

int getentropy(void *buffer, size_t length) {
  if (calls.is_fixed) {
    memset(buffer, 0x5A, length);
    return 0;
  }
  return getrandom(buffer, length, 0) == (ssize_t)length ? 0 : -1;
}

int fchown(int descriptor, uid_t owner, gid_t group) {
  (void)descriptor;
  (void)group;
  if (owner == (uid_t)-1) return 0;
  calls.owner_calls++;
  calls.owner = owner;
  errno = calls.owner_error;
  return calls.owner_error != 0 ? -1 : 0;
}

/* Another user, who owns the file that is inspected. */
static uid_t other_owner;

static int set_up(void **state) {
  calls = (seen_calls){0};
  other_owner = getuid() + 1;
  const int status = scratch_folder_set_up(state);
  scratch_folder_path(*state, "file", target);
  return status;
}

static hs_status write_text(const char *text) {
  atomic_file file;
  FILE *stream = atomic_file_open(&file, target);
  if (!stream) return file.status;
  fputs(text, stream);
  return atomic_file_commit(&file);
}

static void assert_content(const char *expected) {
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(target, &size);
  assert_string_equal((const char *)bytes, expected);
  free(bytes);
}

TEST_BETWEEN(test_failing_sync, set_up, scratch_folder_tear_down) {
  static const int errors[] = {EIO, ENOSPC, EDQUOT};
  scratch_write_file(target, "before", 6);
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    calls.sync_error = errors[i];
    assert_int_equal(write_text("after"), HS_ERR_IO);
    assert_content("before");
    assert_int_equal(scratch_folder_count(*state), 1);
  }
  calls.sync_error = EINVAL; /* the file system does not support this call */
  assert_int_equal(write_text("after"), HS_OK);
  assert_content("after");
}

/* The disk is full for a while. Data written meanwhile is lost even if the last flush succeeds. */
TEST_BETWEEN(test_write_that_failed_meanwhile, set_up, scratch_folder_tear_down) {
  static const char line[] = "a line of many, which are more than a stream holds back\n";
  struct rlimit before, limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = (struct rlimit){.rlim_cur = 1 << 14, .rlim_max = before.rlim_max};
  void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
  atomic_file file;
  FILE *stream = atomic_file_open(&file, target);
  assert_non_null(stream);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int i = 0; i < 4096; i++) fputs(line, stream);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(atomic_file_commit(&file), HS_ERR_IO);
  signal(SIGXFSZ, handler);
  assert_non_null(strstr(file.message, strerror(EFBIG)));
  assert_int_equal(scratch_folder_count(*state), 0);
}

/* The temporary name was guessed, and is a link to a file that must not be overwritten. */
TEST_BETWEEN(test_planted_name, set_up, scratch_folder_tear_down) {
  char other[SCRATCH_PATH_BYTES], planted[SCRATCH_PATH_BYTES];
  scratch_folder_path(*state, "other", other);
  scratch_folder_path(*state, ".hartsift-5a5a5a5a5a5a5a5a.tmp", planted);
  scratch_write_file(other, "precious", 8);
  assert_int_equal(symlink(other, planted), 0);
  calls.is_fixed = true;
  assert_int_equal(write_text("content"), HS_ERR_IO);
  assert_int_equal(access(target, F_OK), -1);
  size_t size = 0;
  unsigned char *bytes = scratch_read_file(other, &size);
  assert_string_equal((const char *)bytes, "precious");
  free(bytes);
  assert_int_equal(unlink(planted), 0);
  assert_int_equal(write_text("content"), HS_OK);
  assert_content("content");
}

TEST_BETWEEN(test_not_inherited, set_up, scratch_folder_tear_down) {
  atomic_file file;
  FILE *stream = atomic_file_open(&file, target);
  assert_non_null(stream);
  assert_true((fcntl(fileno(stream), F_GETFD) & FD_CLOEXEC) != 0);
  atomic_file_abandon(&file);
}

/* Root replaces a file of another user, so the owner is kept. EPERM is no failure, because group and permissions are
 * right; any other error is a failure. */
TEST_BETWEEN(test_owner_is_kept, set_up, scratch_folder_tear_down) {
  scratch_write_file(target, "before", 6);
  if (chown(target, other_owner, (gid_t)-1) != 0) return;
  assert_int_equal(write_text("after"), HS_OK);
  assert_int_equal(calls.owner_calls, 1);
  assert_int_equal(calls.owner, other_owner);
  assert_int_equal(chown(target, other_owner, (gid_t)-1), 0);
  calls.owner_error = EPERM;
  assert_int_equal(write_text("again"), HS_OK);
  assert_int_equal(chown(target, other_owner, (gid_t)-1), 0);
  calls.owner_error = EIO;
  assert_int_equal(write_text("never"), HS_ERR_IO);
  assert_content("again");
}
