/* Files of POSIX systems; see os_files.h. */
#ifdef __linux__
#  define _GNU_SOURCE /* fallocate, pwritev, sync_file_range */
#endif
#define _DEFAULT_SOURCE    /* flock, fdopendir */
#define _DARWIN_C_SOURCE 1 /* macOS: flock, times of files */
#include "os/os_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#ifdef __linux__
#  include <linux/magic.h>
#  include <sys/resource.h>
#  include <sys/uio.h>
#  include <sys/vfs.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

/* ---- state of files */

static uint64_t nanoseconds(struct timespec time) {
  return time.tv_sec < 0 ? 0 : (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#ifdef __APPLE__
#  define TIME_OF(info)   ((info)->st_mtimespec)
#  define CHANGE_OF(info) ((info)->st_ctimespec)
#else
#  define TIME_OF(info)   ((info)->st_mtim)
#  define CHANGE_OF(info) ((info)->st_ctim)
#endif

static bool take_info(int failed, const struct stat *from, os_info *info) {
  if (failed != 0) return false;
  const mode_t mode = from->st_mode;
  *info = (os_info){.kind = S_ISREG(mode)    ? OS_REGULAR
                            : S_ISDIR(mode)  ? OS_FOLDER
                            : S_ISLNK(mode)  ? OS_LINK
                            : S_ISFIFO(mode) ? OS_PIPE
                                             : OS_OTHER,
                    .size = (uint64_t)from->st_size,
                    .device = (uint64_t)from->st_dev,
                    .number = (uint64_t)from->st_ino,
                    .links = (uint64_t)from->st_nlink,
                    .time_ns = nanoseconds(TIME_OF(from)),
                    .changed_ns = nanoseconds(CHANGE_OF(from)),
                    .owner = (uint32_t)from->st_uid,
                    .group = (uint32_t)from->st_gid,
                    .mode = (uint32_t)mode & 0777u};
  return true;
}

bool os_info_of(const char *path, os_info *info) {
  struct stat found;
  return take_info(stat(path, &found), &found, info);
}

bool os_info_of_link(const char *path, os_info *info) {
  struct stat found;
  return take_info(lstat(path, &found), &found, info);
}

bool os_info_of_open(int descriptor, os_info *info) {
  struct stat found;
  return take_info(fstat(descriptor, &found), &found, info);
}

bool os_is_folder(const char *path) {
  os_info info;
  return os_info_of(path, &info) && info.kind == OS_FOLDER;
}

bool os_is_same(const os_info *one, const os_info *other) {
  return one->number == other->number && one->device == other->device;
}

bool os_is_own(const os_info *info) { return info->owner == geteuid(); }

bool os_exists(const char *path) { return access(path, F_OK) == 0; }

bool os_may(const char *path, os_access wanted) {
  return access(path, wanted == OS_MAY_READ ? R_OK : wanted == OS_MAY_WRITE ? W_OK : X_OK) == 0;
}

/* ---- open files */

int os_open(const char *path, os_open_mode mode) {
  switch (mode) {
  case OS_READ:
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  case OS_READ_WRITE:
    return open(path, O_RDWR | O_CLOEXEC);
  case OS_APPEND:
    return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  case OS_NEW:
  case OS_NEW_PRIVATE:
    break;
  }
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode == OS_NEW_PRIVATE ? 0600 : 0666);
}

void os_close(int descriptor) { (void)close(descriptor); }

int64_t os_read(int descriptor, void *bytes, size_t size) { return read(descriptor, bytes, size); }

int64_t os_read_at(int descriptor, void *bytes, size_t size, uint64_t offset) {
  return pread(descriptor, bytes, size, (off_t)offset);
}

int64_t os_write(int descriptor, const void *bytes, size_t size) { return write(descriptor, bytes, size); }

bool os_truncate(int descriptor, uint64_t size) {
  int result;
  do {
    result = ftruncate(descriptor, (off_t)size);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

#ifdef __linux__

int os_only_descriptor(const os_info *file) {
  os_folder *folder = os_folder_open("/proc/self/fd", true);
  if (!folder) return -1;
  int found = -1, count = 0;
  os_info info;
  for (const char *name; (name = os_folder_next(folder)) != NULL;) {
    const int descriptor = (int)strtol(name, NULL, 10);
    if (!os_info_of_open(descriptor, &info) || !os_is_same(&info, file)) continue;
    found = descriptor;
    count++;
  }
  os_folder_close(folder);
  return count == 1 ? found : -1;
}

/* Drops the first `size` bytes of the parts; returns the number of parts that are left. */
static int drop_written(struct iovec *parts, int count, size_t size) {
  int done = 0;
  while (done < count && size >= parts[done].iov_len) size -= parts[done++].iov_len;
  if (done < count) {
    parts[done].iov_base = (char *)parts[done].iov_base + size;
    parts[done].iov_len -= size;
  }
  memmove(parts, parts + done, (size_t)(count - done) * sizeof *parts);
  return count - done;
}

bool os_write_parts_at(int descriptor, const os_part *parts, size_t count, uint64_t offset) {
  enum { PARTS = 256 };
  struct iovec vector[PARTS];
  int filled = 0;
  for (size_t next = 0; next < count || filled > 0;) {
    for (; filled < PARTS && next < count; next++)
      vector[filled++] = (struct iovec){.iov_base = (void *)(uintptr_t)parts[next].bytes, .iov_len = parts[next].size};
    const ssize_t written = pwritev(descriptor, vector, filled, (off_t)offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    const int before = filled;
    offset += (uint64_t)written;
    filled = drop_written(vector, filled, (size_t)written);
    if (written == 0 && filled == before) {
      errno = ENOSPC;
      return false;
    }
  }
  return true;
}

bool os_allocate(int descriptor, uint64_t offset, uint64_t size) {
  struct statfs system;
  struct rlimit limit;
  if (fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC) {
    errno = ENOTSUP;
    return false;
  }
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
  if (limit.rlim_cur != RLIM_INFINITY && offset + size > limit.rlim_cur) {
    errno = EFBIG; /* the system would raise the signal */
    return false;
  }
  return fallocate(descriptor, 0, (off_t)offset, (off_t)size) == 0;
}

void os_start_write_back(int descriptor, uint64_t offset, uint64_t size) {
  (void)sync_file_range(descriptor, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE);
}

#else

int os_only_descriptor(const os_info *file) {
  (void)file;
  return -1;
}

bool os_write_parts_at(int descriptor, const os_part *parts, size_t count, uint64_t offset) {
  (void)descriptor, (void)parts, (void)count, (void)offset;
  errno = ENOTSUP;
  return false;
}

bool os_allocate(int descriptor, uint64_t offset, uint64_t size) {
  (void)descriptor, (void)offset, (void)size;
  errno = ENOTSUP;
  return false;
}

void os_start_write_back(int descriptor, uint64_t offset, uint64_t size) { (void)descriptor, (void)offset, (void)size; }

#endif

int os_duplicate(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

bool os_is_writable(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

bool os_sync(FILE *stream) { return fsync(fileno(stream)) == 0 || errno == EINVAL; }

bool os_sync_folder(const char *path) {
  const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return true;
  const int error = fsync(descriptor) != 0 ? errno : 0;
  close(descriptor);
  errno = error;
  return error == 0 || error == EINVAL || error == ENOTSUP;
}

bool os_lock(int descriptor) { return flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

bool os_lock_for_process(int descriptor) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(descriptor, F_SETLK, &lock) == 0) return true;
  if (errno == EACCES) errno = EAGAIN;
  return false;
}

/* Returns the permissions of a file whose group changes. The new group gets none. Members of the old group are others
   now, so others get only what the old group had too. */
static mode_t without_group(mode_t mode) { return (mode & 0700u) | (mode & (mode >> 3) & 07u); }

/* The group is set first, in a separate call: a process may be allowed to set the group but not the owner. */
bool os_copy_permissions(int descriptor, const os_info *from) {
  struct stat own;
  mode_t mode = (mode_t)from->mode;
  if (fstat(descriptor, &own) != 0) return false;
  if (own.st_gid != from->group && fchown(descriptor, (uid_t)-1, from->group) != 0) {
    if (errno != EPERM) return false;
    mode = without_group(mode);
  }
  if (own.st_uid != from->owner && fchown(descriptor, from->owner, (gid_t)-1) != 0 && errno != EPERM) return false;
  return fchmod(descriptor, mode) == 0;
}

/* ---- names */

bool os_remove(const char *path) { return unlink(path) == 0; }

bool os_rename(const char *from, const char *to) { return rename(from, to) == 0; }

bool os_make_folder(const char *path) { return mkdir(path, 0777) == 0; }

bool os_remove_folder(const char *path) { return rmdir(path) == 0; }

char *os_real_path(const char *path) { return realpath(path, NULL); }

int64_t os_read_link(const char *path, char *target, size_t bytes) {
  const ssize_t length = readlink(path, target, bytes - 1);
  if (length >= 0) target[length] = '\0';
  return length;
}

void os_normalise_path(char *path) { (void)path; }

bool os_is_absolute(const char *path) { return path[0] == '/'; }

/* ---- folders */

struct os_folder {
  DIR *entries;
};

os_folder *os_folder_open(const char *path, bool follows_links) {
  os_folder *folder = malloc(sizeof *folder);
  const int descriptor = folder && !follows_links ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (folder) folder->entries = follows_links ? opendir(path) : descriptor >= 0 ? fdopendir(descriptor) : NULL;
  if (folder && folder->entries) return folder;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  free(folder);
  errno = error;
  return NULL;
}

void os_folder_close(os_folder *folder) {
  closedir(folder->entries);
  free(folder);
}

bool os_folder_info(const os_folder *folder, os_info *info) { return os_info_of_open(dirfd(folder->entries), info); }

const char *os_folder_next(os_folder *folder) {
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(folder->entries);
    if (!entry) return NULL;
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return entry->d_name;
  }
}

void os_folder_rewind(os_folder *folder) { rewinddir(folder->entries); }

bool os_folder_remove(const os_folder *folder, const char *name) {
  return unlinkat(dirfd(folder->entries), name, 0) == 0;
}

void os_folder_remove_unlocked(const os_folder *folder, const char *name) {
  os_info info;
  const int descriptor = openat(dirfd(folder->entries), name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  if (os_info_of_open(descriptor, &info) && info.kind == OS_REGULAR && os_is_own(&info) && info.links == 1 &&
      os_lock(descriptor))
    (void)os_folder_remove(folder, name);
  close(descriptor);
}

static int is_listed(const struct dirent *entry) {
  return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

int64_t os_list_folder(const char *path, char ***names) {
  struct dirent **entries = NULL;
  const int count = scandir(path, &entries, is_listed, alphasort);
  *names = NULL;
  if (count < 0) return -1;
  char **list = calloc((size_t)count + 1, sizeof *list);
  bool done = list != NULL;
  for (int i = 0; i < count; i++) {
    if (done) list[i] = strdup(entries[i]->d_name);
    done = done && list[i] != NULL;
    free(entries[i]);
  }
  free(entries);
  if (done) {
    *names = list;
    return count;
  }
  for (int i = 0; list && i < count; i++) free(list[i]);
  free(list);
  errno = ENOMEM;
  return -1;
}

/* ---- streams */

FILE *os_open_stream(const char *path, const char *mode) { return fopen(path, mode); }

FILE *os_read_stream(int descriptor) { return fcntl(descriptor, F_SETFL, 0) != 0 ? NULL : fdopen(descriptor, "rb"); }

FILE *os_write_stream(int descriptor) { return fdopen(descriptor, "wb"); }

int os_descriptor_of(FILE *stream) { return fileno(stream); }

bool os_text_open(os_text *text) {
  *text = (os_text){0};
  text->stream = open_memstream(&text->text, &text->length);
  return text->stream != NULL;
}

bool os_text_flush(os_text *text) { return fflush(text->stream) == 0 && !ferror(text->stream); }

bool os_text_close(os_text *text) {
  const bool failed = ferror(text->stream) != 0;
  const bool done = fclose(text->stream) == 0 && !failed;
  text->stream = NULL;
  if (done) return true;
  free(text->text);
  text->text = NULL;
  return false;
}

char *os_copy_text(const char *text, size_t length) { return strndup(text, length); }
