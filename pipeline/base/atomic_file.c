/*
 * Atomic file writing: temporary file, fsync, rename; see atomic_file.h.
 */
#include "pipeline/base/atomic_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_files.h"
#include "pipeline/base/text.h"

enum {
  ATOMIC_FILE_MAX_LINKS = 40,  /* Linux's limit for a chain of symbolic links */
  ATOMIC_FILE_MAX_TRIES = 100, /* maximum number of temporary names tried; each is random */
};

#define TEMPORARY_START ".hartsift-"
#define TEMPORARY_END   ".tmp"

static FILE *atomic_file_fail(atomic_file *file, hs_status status, int error, const char *what, const char *path) {
  file->status = status;
  if (error != 0)
    hs_message_set_errno(file->message, sizeof file->message, error, "%s %s", what, path);
  else
    hs_message_set(file->message, sizeof file->message, "%s %s", what, path);
  return NULL;
}

/* Returns the number of the descriptor that a path names, such as 3 for /dev/fd/3; -1 for other paths. */
static int atomic_file_descriptor_of(const char *path) {
  static const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    const size_t length = strlen(folders[i]);
    if (strncmp(path, folders[i], length) != 0) continue;
    const char *number = path + length;
    const size_t digits = strspn(number, "0123456789");
    if (digits > 0 && digits < 8 && number[digits] == '\0') return atoi(number);
  }
  return -1;
}

/* Returns the length of the path up to and including the last slash. */
static size_t atomic_file_folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return !slash ? 0 : (size_t)(slash - path) + 1;
}

/* Resolves symbolic links in the last part of file->target, up to the name of a descriptor. The link may be
   dangling. */
static bool atomic_file_follow_links(atomic_file *file) {
  for (int link = 0; link < ATOMIC_FILE_MAX_LINKS; link++) {
    os_info info;
    if (atomic_file_descriptor_of(file->target) >= 0) return true;
    if (!os_info_of_link(file->target, &info) || info.kind != OS_LINK) return true;
    /* file->temporary is still unused and serves as the buffer. */
    const int64_t length = os_read_link(file->target, file->temporary, sizeof file->temporary);
    if (length <= 0) return false;
    const size_t folder = os_is_absolute(file->temporary) ? 0 : atomic_file_folder_length(file->target);
    if (folder + (size_t)length >= sizeof file->target) {
      errno = ENAMETOOLONG;
      return false;
    }
    memcpy(file->target + folder, file->temporary, (size_t)length);
    file->target[folder + (size_t)length] = '\0';
  }
  errno = ELOOP;
  return false;
}

/* Opens the target itself, because a rename cannot replace it (pipe, device). */
static FILE *atomic_file_open_through(atomic_file *file, const char *path) {
  file->stream = os_open_stream(path, "wb");
  return file->stream ? file->stream : atomic_file_fail(file, HS_ERR_IO, errno, "cannot write to", path);
}

/* Writes into an open descriptor, where the last writer stopped: a file that was opened for appending keeps its
   content. */
static FILE *atomic_file_open_descriptor(atomic_file *file, int descriptor, const char *path) {
  if (!os_is_writable(descriptor)) {
    hs_message_set(file->message, sizeof file->message, "cannot write to %s: it is not open for writing", path);
    file->status = HS_ERR_IO;
    return NULL;
  }
  if (descriptor == os_descriptor_of(stdout)) (void)fflush(stdout);
  const int own = os_duplicate(descriptor);
  file->stream = own >= 0 ? os_write_stream(own) : NULL;
  if (file->stream) return file->stream;
  atomic_file_fail(file, HS_ERR_IO, errno, "cannot write to", path);
  if (own >= 0) os_close(own);
  return NULL;
}

/* ---- hooks for temporary files: empty weak symbols, which a program may define */

__attribute__((weak)) int atomic_file_begins(const char *temporary) {
  (void)temporary;
  return -1;
}

__attribute__((weak)) void atomic_file_gone(int slot) { (void)slot; }

/* ---- temporary files */

/* Returns an unpredictable number; without an entropy source, one that differs between runs. */
static uint64_t atomic_file_random(void) {
  uint64_t number = 0;
  if (os_random(&number, sizeof number)) return number;
  return os_time_ns() + ((uint64_t)os_process_id() << 40);
}

/* Locks a temporary file, so that atomic_file_remove_left does not delete it as left by a killed process. False if that
   function deleted the file before it was locked. On a file system without locks that function deletes nothing. */
static bool atomic_file_lock(int descriptor) {
  os_info info;
  if (!os_lock(descriptor)) return errno != EWOULDBLOCK;
  return !os_info_of_open(descriptor, &info) || info.links > 0;
}

/* Creates the temporary file in the target's folder. Its name is short, so that even a target name of maximum length
   works. Returns a descriptor, or -1 with errno set. */
static int atomic_file_create_temporary(atomic_file *file, os_open_mode mode) {
  const size_t folder = atomic_file_folder_length(file->target);
  for (int attempt = 0; attempt < ATOMIC_FILE_MAX_TRIES; attempt++) {
    char name[64];
    const int length =
        snprintf(name, sizeof name, TEMPORARY_START "%016llx" TEMPORARY_END, (unsigned long long)atomic_file_random());
    if (length < 0 || folder + (size_t)length >= sizeof file->temporary) {
      errno = ENAMETOOLONG;
      return -1;
    }
    memcpy(file->temporary, file->target, folder);
    memcpy(file->temporary + folder, name, (size_t)length + 1);
    /* Announced before the file exists, so that a signal in between finds it listed. */
    file->listed = atomic_file_begins(file->temporary);
    const int descriptor = os_open(file->temporary, mode);
    if (descriptor >= 0 && atomic_file_lock(descriptor)) return descriptor;
    if (descriptor >= 0) {
      os_remove(file->temporary);
      os_close(descriptor);
      errno = EEXIST;
    }
    atomic_file_gone(file->listed);
    if (errno != EEXIST) return -1;
  }
  return -1;
}

/* True if the file is an SQLite database. No writer here produces one, so replacing it would destroy data. */
static bool is_database(const char *path) {
  static const char magic[16] = "SQLite format 3";
  char start[sizeof magic];
  const int descriptor = os_open(path, OS_READ);
  if (descriptor < 0) return false;
  const int64_t got = os_read(descriptor, start, sizeof start);
  os_close(descriptor);
  return got == (int64_t)sizeof start && memcmp(start, magic, sizeof magic) == 0;
}

static FILE *atomic_file_open_temporary(atomic_file *file, const os_info *existing) {
  /* for this user alone until the permissions of the replaced file are copied */
  const int descriptor = atomic_file_create_temporary(file, existing ? OS_NEW_PRIVATE : OS_NEW);
  if (descriptor < 0)
    return atomic_file_fail(file, HS_ERR_IO, errno, "cannot create a file in the folder of", file->target);
  file->temporary_exists = true;
  if (existing && !os_copy_permissions(descriptor, existing)) {
    atomic_file_fail(file, HS_ERR_IO, errno, "cannot copy the permissions of", file->target);
  } else {
    file->stream = os_write_stream(descriptor);
    if (file->stream) return file->stream;
    atomic_file_fail(file, HS_ERR_IO, errno, "cannot write to", file->temporary);
  }
  os_close(descriptor);
  atomic_file_abandon(file);
  return NULL;
}

/* Gets the status of an existing target. If links are not followed, a link counts as a missing file, and is
   replaced. */
static bool atomic_file_exists(const char *path, bool follows_links, os_info *existing) {
  return (follows_links ? os_info_of : os_info_of_link)(path, existing) && existing->kind != OS_LINK;
}

static FILE *atomic_file_open_as(atomic_file *file, const char *path, bool follows_links) {
  memset(file, 0, sizeof *file);
  errno = 0; /* atomic_file_commit must not see an error from before */
  if (!path || path[0] == '\0')
    return atomic_file_fail(file, HS_ERR_ARGUMENT, 0, "the name of the file to write is", !path ? "null" : "empty");
  const size_t length = strlen(path);
  if (length >= sizeof file->target) return atomic_file_fail(file, HS_ERR_IO, ENAMETOOLONG, "cannot write to", path);
  memcpy(file->target, path, length + 1);
  os_normalise_path(file->target);
  if (strcmp(path, "-") == 0) {
    file->keeps_stream = true;
    file->stream = stdout;
    return file->stream;
  }

  if (follows_links && atomic_file_follow_links(file) && atomic_file_descriptor_of(file->target) >= 0)
    return atomic_file_open_descriptor(file, atomic_file_descriptor_of(file->target), path);
  os_info existing;
  const bool exists = atomic_file_exists(path, follows_links, &existing);
  if (exists && existing.kind == OS_FOLDER) return atomic_file_fail(file, HS_ERR_IO, EISDIR, "cannot write to", path);
  if (exists && existing.kind != OS_REGULAR) return atomic_file_open_through(file, path);
  if (!exists && path[length - 1] == '/') return atomic_file_fail(file, HS_ERR_IO, EISDIR, "cannot write to", path);
  if (follows_links && !atomic_file_follow_links(file))
    return atomic_file_fail(file, HS_ERR_IO, errno, "cannot follow the link", path);
  if (exists) {
    /* A rename would replace even a write-protected file, so permission is checked here. */
    if (!os_may(path, OS_MAY_WRITE)) return atomic_file_fail(file, HS_ERR_IO, errno, "cannot write to", path);
    if (is_database(path))
      return atomic_file_fail(file, HS_ERR_IO, 0, "an SQLite database would be lost: expected another name than", path);
    os_info followed;
    if (!os_info_of(file->target, &followed) || !os_is_same(&followed, &existing)) {
      /* A link of another process such as /proc/1/fd/1, whose text is not the path of the open file. */
      return atomic_file_open_through(file, path);
    }
  }
  return atomic_file_open_temporary(file, exists ? &existing : NULL);
}

bool atomic_file_check_descriptor(atomic_file *file, const char *path) {
  *file = (atomic_file){.status = HS_OK};
  if (strlen(path) >= sizeof file->target) return true;
  memcpy(file->target, path, strlen(path) + 1);
  if (!atomic_file_follow_links(file) || atomic_file_descriptor_of(file->target) < 0) return true;
  if (!atomic_file_open_descriptor(file, atomic_file_descriptor_of(file->target), path)) return false;
  atomic_file_abandon(file);
  return true;
}

FILE *atomic_file_open(atomic_file *file, const char *path) { return atomic_file_open_as(file, path, true); }

FILE *atomic_file_open_over_links(atomic_file *file, const char *path) {
  return atomic_file_open_as(file, path, false);
}

/* Returns the errno of an earlier failed write. ferror gives no reason, and another call may have changed errno since.
   So only values that nothing but a write sets are trusted. */
static int atomic_file_reason_of_failed_write(int error) {
#ifdef EDQUOT
  if (error == EDQUOT) return error;
#endif
  return error == ENOSPC || error == EFBIG || error == EPIPE ? error : EIO;
}

/* Syncs the target's folder, which makes a new name permanent. Returns 0 or errno. */
static int atomic_file_sync_folder(const atomic_file *file) {
  char folder[ATOMIC_FILE_PATH_BYTES] = ".";
  const size_t length = atomic_file_folder_length(file->target);
  if (length > 0) memcpy(folder, file->target, length);
  if (length > 0) folder[length] = '\0';
  return os_sync_folder(folder) ? 0 : errno;
}

/* Closes the stream and renames the temporary file. A second descriptor holds the lock until the rename is done;
   otherwise atomic_file_remove_left could delete the file. Returns 0 or errno. */
static int atomic_file_close_and_rename(atomic_file *file, int error) {
  const int lock = file->temporary_exists ? os_duplicate(os_descriptor_of(file->stream)) : -1;
  if (!file->keeps_stream && fclose(file->stream) != 0 && error == 0) error = errno;
  file->stream = NULL;
  if (error == 0 && file->temporary_exists && !os_rename(file->temporary, file->target)) error = errno;
  if (lock >= 0) os_close(lock);
  return error;
}

hs_status atomic_file_commit(atomic_file *file) {
  const int left_by_writes = errno;
  if (!file->stream) {
    if (file->status == HS_OK) atomic_file_fail(file, HS_ERR_ARGUMENT, 0, "nothing is open for", file->target);
    return file->status;
  }
  const bool failed_before = ferror(file->stream) != 0;
  int error = fflush(file->stream) != 0 ? errno
              : failed_before           ? atomic_file_reason_of_failed_write(left_by_writes)
                                        : 0;
  if (error == 0 && file->temporary_exists && !os_sync(file->stream)) error = errno;
  error = atomic_file_close_and_rename(file, error);
  if (error != 0) {
    atomic_file_fail(file, HS_ERR_IO, error, "cannot write", file->keeps_stream ? "standard output" : file->target);
    atomic_file_abandon(file);
    return file->status;
  }
  if (!file->temporary_exists) return HS_OK;
  atomic_file_gone(file->listed);
  file->temporary_exists = false;
  error = file->is_staged ? 0 : atomic_file_sync_folder(file);
  if (error != 0) atomic_file_fail(file, HS_ERR_IO, error, "cannot make permanent", file->target);
  return file->status;
}

bool atomic_file_is_temporary(const char *name) {
  const size_t start = strlen(TEMPORARY_START), length = strlen(name), end = strlen(TEMPORARY_END);
  return length > start + end && memcmp(name, TEMPORARY_START, start) == 0 &&
         strcmp(name + length - end, TEMPORARY_END) == 0;
}

void atomic_file_remove_left(const char *path) {
  atomic_file file;
  const size_t length = atomic_file_folder_length(path);
  if (length >= sizeof file.target) return;
  memcpy(file.target, path, length);
  memcpy(file.target + length, length > 0 ? "" : ".", length > 0 ? 1 : 2);
  os_folder *folder = os_folder_open(file.target, true);
  if (!folder) return;
  for (const char *name = os_folder_next(folder); name; name = os_folder_next(folder))
    if (atomic_file_is_temporary(name)) os_folder_remove_unlocked(folder, name);
  os_folder_close(folder);
}

void atomic_file_abandon(atomic_file *file) {
  if (file->stream && !file->keeps_stream) fclose(file->stream);
  file->stream = NULL;
  if (file->temporary_exists) {
    os_remove(file->temporary);
    atomic_file_gone(file->listed);
    file->temporary_exists = false;
  }
}
