/* Files of Windows; see os_files.h. */
#include "os/os_files.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_process.h"
#include "os/os_windows.h"

enum {
  SHORT_PATH_UNITS = 240, /* folders must be shorter than other paths */
  RENAME_TRIES = 10,      /* scanners open new files for some milliseconds */
  READ_BYTES_MAX = 1 << 30,
  TEMPORARY_UNITS = MAX_PATH + 64
};

#define SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

/* ---- names and errors */

wchar_t *os_wide_text(const char *text) {
  const int units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
  wchar_t *wide = units > 0 ? malloc((size_t)units * sizeof *wide) : NULL;
  if (wide && MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, units) == units) return wide;
  errno = units > 0 && !wide ? ENOMEM : EILSEQ;
  free(wide);
  return NULL;
}

char *os_utf8_text(const wchar_t *text) {
  const int bytes = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
  char *narrow = bytes > 0 ? malloc((size_t)bytes) : NULL;
  if (narrow && WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, bytes, NULL, NULL) == bytes) return narrow;
  errno = bytes > 0 && !narrow ? ENOMEM : EILSEQ;
  free(narrow);
  return NULL;
}

/* Returns the absolute path, of `units` with its zero, with the prefix of long paths. */
static wchar_t *long_path(const wchar_t *path, DWORD units) {
  wchar_t *full = units > 0 ? malloc(((size_t)units + 8) * sizeof *full) : NULL;
  if (!full) return NULL;
  const DWORD length = GetFullPathNameW(path, units, full + 8, NULL);
  const wchar_t *start = full + 8;
  if (length == 0 || length >= units) {
    free(full);
    return NULL;
  }
  if (wcsncmp(start, L"\\\\?\\", 4) == 0)
    memmove(full, start, ((size_t)length + 1) * sizeof *full);
  else if (wcsncmp(start, L"\\\\", 2) == 0) {
    memmove(full + 8, start + 2, ((size_t)length - 1) * sizeof *full);
    memcpy(full, L"\\\\?\\UNC\\", 8 * sizeof *full);
  } else {
    memmove(full + 4, start, ((size_t)length + 1) * sizeof *full);
    memcpy(full, L"\\\\?\\", 4 * sizeof *full);
  }
  return full;
}

wchar_t *os_wide_path(const char *path) {
  wchar_t *wide = os_wide_text(path);
  if (!wide) return NULL;
  const DWORD units = GetFullPathNameW(wide, 0, NULL, NULL); /* the limit is one of the absolute path */
  if (units <= SHORT_PATH_UNITS && wcslen(wide) < SHORT_PATH_UNITS) return wide;
  wchar_t *full = long_path(wide, units);
  free(wide);
  if (!full) errno = ENAMETOOLONG;
  return full;
}

static int errno_of(DWORD error) {
  switch (error) {
  case ERROR_FILE_NOT_FOUND:
  case ERROR_PATH_NOT_FOUND:
  case ERROR_INVALID_DRIVE:
  case ERROR_BAD_NETPATH:
  case ERROR_BAD_NET_NAME:
    return ENOENT;
  case ERROR_INVALID_NAME:
  case ERROR_BAD_PATHNAME:
    return ENOENT;
  case ERROR_ACCESS_DENIED:
  case ERROR_SHARING_VIOLATION:
  case ERROR_DELETE_PENDING:
  case ERROR_WRITE_PROTECT:
    return EACCES;
  case ERROR_LOCK_VIOLATION:
  case ERROR_IO_PENDING:
    return EWOULDBLOCK;
  case ERROR_FILE_EXISTS:
  case ERROR_ALREADY_EXISTS:
    return EEXIST;
  case ERROR_DIR_NOT_EMPTY:
    return ENOTEMPTY;
  case ERROR_DIRECTORY:
    return ENOTDIR;
  case ERROR_NOT_ENOUGH_MEMORY:
  case ERROR_OUTOFMEMORY:
    return ENOMEM;
  case ERROR_DISK_FULL:
  case ERROR_HANDLE_DISK_FULL:
    return ENOSPC;
  case ERROR_FILENAME_EXCED_RANGE:
    return ENAMETOOLONG;
  case ERROR_TOO_MANY_OPEN_FILES:
    return EMFILE;
  case ERROR_INVALID_HANDLE:
    return EBADF;
  case ERROR_BROKEN_PIPE:
  case ERROR_NO_DATA:
    return EPIPE;
  case ERROR_NOT_SAME_DEVICE:
    return EXDEV;
  case ERROR_CANT_RESOLVE_FILENAME:
    return ELOOP;
  default:
    return EIO;
  }
}

bool os_fail(void) {
  errno = errno_of(GetLastError());
  return false;
}

/* ---- state of files */

#define SECONDS_BEFORE_1970 INT64_C(11644473600)

static uint64_t nanoseconds(int64_t ticks) {
  const int64_t since = ticks - SECONDS_BEFORE_1970 * 10000000;
  return since < 0 ? 0 : (uint64_t)since * 100u;
}

/* True for links to files and folders. Other reparse points, such as files that a cloud holds, are files. */
static bool is_link(HANDLE file) {
  FILE_ATTRIBUTE_TAG_INFO tag;
  return GetFileInformationByHandleEx(file, FileAttributeTagInfo, &tag, sizeof tag) &&
         (tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 &&
         (tag.ReparseTag == IO_REPARSE_TAG_SYMLINK || tag.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

static bool info_of_handle(HANDLE file, os_info *info) {
  BY_HANDLE_FILE_INFORMATION found;
  FILE_BASIC_INFO times;
  const DWORD type = file == INVALID_HANDLE_VALUE ? FILE_TYPE_UNKNOWN : GetFileType(file);
  *info = (os_info){.kind = type == FILE_TYPE_PIPE ? OS_PIPE : OS_OTHER, .links = 1};
  if (file == INVALID_HANDLE_VALUE) return os_fail();
  if (type != FILE_TYPE_DISK) return true;
  if (!GetFileInformationByHandle(file, &found) ||
      !GetFileInformationByHandleEx(file, FileBasicInfo, &times, sizeof times))
    return os_fail();
  const bool is_folder = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  *info = (os_info){.kind = is_link(file) ? OS_LINK
                            : is_folder   ? OS_FOLDER
                                          : OS_REGULAR,
                    .size = (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow,
                    .device = found.dwVolumeSerialNumber,
                    .number = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow,
                    .links = found.nNumberOfLinks,
                    .time_ns = nanoseconds(times.LastWriteTime.QuadPart),
                    .changed_ns = nanoseconds(times.ChangeTime.QuadPart)};
  if (info->changed_ns == 0) info->changed_ns = info->time_ns; /* file systems without this time */
  return true;
}

/* Opens an existing file or folder; INVALID_HANDLE_VALUE with GetLastError() on failure. */
static HANDLE open_existing(const char *path, DWORD access, DWORD share, DWORD flags) {
  wchar_t *wide = os_wide_path(path);
  if (!wide) {
    SetLastError(ERROR_INVALID_NAME);
    return INVALID_HANDLE_VALUE;
  }
  const HANDLE file = CreateFileW(wide, access, share, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
  free(wide);
  return file;
}

static HANDLE handle_for_info(const char *path, DWORD flags) {
  return open_existing(path, FILE_READ_ATTRIBUTES, SHARE_ALL, flags);
}

static bool info_of_path(const char *path, DWORD flags, os_info *info) {
  const HANDLE file = handle_for_info(path, flags);
  const bool found = info_of_handle(file, info);
  const int error = errno;
  if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
  errno = error;
  return found;
}

bool os_info_of(const char *path, os_info *info) { return info_of_path(path, 0, info); }

bool os_info_of_link(const char *path, os_info *info) { return info_of_path(path, FILE_FLAG_OPEN_REPARSE_POINT, info); }

static HANDLE handle_of(int descriptor) { return (HANDLE)_get_osfhandle(descriptor); }

bool os_info_of_open(int descriptor, os_info *info) { return info_of_handle(handle_of(descriptor), info); }

bool os_is_folder(const char *path) {
  os_info info;
  return os_info_of(path, &info) && info.kind == OS_FOLDER;
}

bool os_is_same(const os_info *one, const os_info *other) {
  return one->number == other->number && one->device == other->device;
}

bool os_is_own(const os_info *info) {
  (void)info;
  return true;
}

bool os_exists(const char *path) {
  os_info info;
  return os_info_of(path, &info);
}

/* Opens the file, because the attribute of write protection does not show its list of rights. A sharing violation says
   that another program keeps the file open, not that rights are missing. */
static bool is_writable(const char *path) {
  const HANDLE file = open_existing(path, GENERIC_WRITE, SHARE_ALL, 0);
  if (file == INVALID_HANDLE_VALUE) return GetLastError() == ERROR_SHARING_VIOLATION || os_fail();
  CloseHandle(file);
  return true;
}

bool os_may(const char *path, os_access wanted) {
  wchar_t *wide = os_wide_path(path);
  if (!wide) return false;
  const DWORD attributes = GetFileAttributesW(wide);
  free(wide);
  if (attributes == INVALID_FILE_ATTRIBUTES) return os_fail();
  const bool is_protected = (attributes & FILE_ATTRIBUTE_READONLY) != 0 && (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
  if (wanted == OS_MAY_WRITE && is_protected) {
    errno = EACCES;
    return false;
  }
  if (wanted == OS_MAY_WRITE) return is_writable(path);
  const size_t length = strlen(path);
  return wanted != OS_MAY_RUN || (length > 4 && os_compare_caseless(path + length - 4, OS_PROGRAM_ENDING) == 0);
}

/* ---- open files */

/* Returns a descriptor of a new handle. */
static int descriptor_of(HANDLE file, int flags) {
  if (file == INVALID_HANDLE_VALUE) return -1;
  const int descriptor = _open_osfhandle((intptr_t)file, flags | _O_BINARY | _O_NOINHERIT);
  if (descriptor < 0) CloseHandle(file);
  return descriptor;
}

int os_open(const char *path, os_open_mode mode) {
  static const struct {
    DWORD access, creation;
    int flags;
  } modes[] = {[OS_READ] = {GENERIC_READ, OPEN_EXISTING, _O_RDONLY},
               [OS_READ_WRITE] = {GENERIC_READ | GENERIC_WRITE, OPEN_EXISTING, _O_RDWR},
               [OS_APPEND] = {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, _O_RDWR | _O_APPEND},
               [OS_NEW] = {GENERIC_WRITE, CREATE_NEW, _O_WRONLY},
               [OS_NEW_PRIVATE] = {GENERIC_WRITE, CREATE_NEW, _O_WRONLY}};
  wchar_t *wide = os_wide_path(path);
  if (!wide) return -1;
  const HANDLE file =
      CreateFileW(wide, modes[mode].access, SHARE_ALL, NULL, modes[mode].creation, FILE_ATTRIBUTE_NORMAL, NULL);
  if (file == INVALID_HANDLE_VALUE) {
    (void)os_fail();
    const DWORD attributes = errno == EACCES ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) errno = EISDIR;
  }
  free(wide);
  return descriptor_of(file, modes[mode].flags);
}

void os_close(int descriptor) { (void)_close(descriptor); }

int64_t os_read(int descriptor, void *bytes, size_t size) {
  return _read(descriptor, bytes, (unsigned)(size < READ_BYTES_MAX ? size : READ_BYTES_MAX));
}

/* Reading at an offset moves the position of the file, which is set again. */
int64_t os_read_at(int descriptor, void *bytes, size_t size, uint64_t offset) {
  const HANDLE file = handle_of(descriptor);
  LARGE_INTEGER before = {.QuadPart = 0}, none = {.QuadPart = 0};
  OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
  DWORD got = 0;
  if (!SetFilePointerEx(file, none, &before, FILE_CURRENT)) return os_fail() - 1;
  const bool done = ReadFile(file, bytes, (DWORD)(size < READ_BYTES_MAX ? size : READ_BYTES_MAX), &got, &at) ||
                    GetLastError() == ERROR_HANDLE_EOF;
  if (!done) (void)os_fail();
  (void)SetFilePointerEx(file, before, NULL, FILE_BEGIN);
  return done ? (int64_t)got : -1;
}

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

int64_t os_write(int descriptor, const void *bytes, size_t size) {
  return _write(descriptor, bytes, (unsigned)(size < READ_BYTES_MAX ? size : READ_BYTES_MAX));
}

bool os_truncate(int descriptor, uint64_t size) { return _chsize_s(descriptor, (int64_t)size) == 0; }

int os_duplicate(int descriptor) { return _dup(descriptor); }

bool os_is_writable(int descriptor) {
  (void)descriptor;
  return true;
}

bool os_sync(FILE *stream) { return _commit(_fileno(stream)) == 0 || errno == EINVAL; }

bool os_sync_folder(const char *path) {
  (void)path;
  return true;
}

/* Other processes cannot read locked bytes, so the lock is on one byte at an offset that no file reaches. */
bool os_lock(int descriptor) {
  OVERLAPPED at = {.OffsetHigh = 0x40000000};
  return LockFileEx(handle_of(descriptor), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) ||
         os_fail();
}

bool os_lock_for_process(int descriptor) {
  if (os_lock(descriptor)) return true;
  if (errno == EWOULDBLOCK) errno = EAGAIN;
  return false;
}

bool os_copy_permissions(int descriptor, const os_info *from) {
  (void)descriptor;
  (void)from;
  return true;
}

/* ---- names */

/* Calls a function with a path. */
static bool on_path(const char *path, BOOL(WINAPI *function)(const wchar_t *)) {
  wchar_t *wide = os_wide_path(path);
  if (!wide) return false;
  const bool done = function(wide) || os_fail();
  const int error = errno;
  free(wide);
  errno = error;
  return done;
}

bool os_remove(const char *path) { return on_path(path, DeleteFileW); }

bool os_rename(const char *from, const char *to) {
  wchar_t *old = os_wide_path(from), *new = os_wide_path(to);
  bool done = false;
  for (int i = 0; old && new && !done &&i < RENAME_TRIES; i++) {
    if (i > 0) Sleep((DWORD)(i * 10));
    done = MoveFileExW(old, new, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) || os_fail();
    if (errno != EACCES) break;
  }
  const int error = errno;
  free(old);
  free(new);
  errno = error;
  return done;
}

static BOOL WINAPI make_folder(const wchar_t *path) { return CreateDirectoryW(path, NULL); }

bool os_make_folder(const char *path) { return on_path(path, make_folder); }

bool os_remove_folder(const char *path) { return on_path(path, RemoveDirectoryW); }

void os_normalise_path(char *path) {
  if (strncmp(path, "\\\\?\\", 4) == 0) return;
  for (char *c = path; *c != '\0'; c++)
    if (*c == '\\') *c = '/';
}

bool os_is_absolute(const char *path) {
  return path[0] == '/' || path[0] == '\\' || (path[0] != '\0' && path[1] == ':');
}

/* Returns the path of an open file, without the prefix of long paths. */
static char *path_of_handle(HANDLE file) {
  const DWORD units = GetFinalPathNameByHandleW(file, NULL, 0, FILE_NAME_NORMALIZED | VOLUME_NAME_DOS);
  wchar_t *wide = units > 0 ? malloc(((size_t)units + 1) * sizeof *wide) : NULL;
  char *path = NULL;
  if (wide && GetFinalPathNameByHandleW(file, wide, units + 1, FILE_NAME_NORMALIZED | VOLUME_NAME_DOS) > 0) {
    wchar_t *start = wide;
    if (wcsncmp(start, L"\\\\?\\UNC\\", 8) == 0) {
      start += 6;
      *start = L'\\';
    } else if (wcsncmp(start, L"\\\\?\\", 4) == 0) {
      start += 4;
    }
    path = os_utf8_text(start);
    if (path) os_normalise_path(path);
  } else {
    (void)os_fail();
  }
  free(wide);
  return path;
}

char *os_real_path(const char *path) {
  const HANDLE file = handle_for_info(path, 0);
  if (file == INVALID_HANDLE_VALUE) {
    (void)os_fail();
    return NULL;
  }
  char *real = path_of_handle(file);
  CloseHandle(file);
  return real;
}

/* The absolute path of the file to which all links lead. A link to nothing has none. */
int64_t os_read_link(const char *path, char *target, size_t bytes) {
  char *real = os_real_path(path);
  if (!real) return -1;
  const size_t length = strlen(real);
  if (length < bytes) memcpy(target, real, length + 1);
  free(real);
  errno = length < bytes ? errno : ENAMETOOLONG;
  return length < bytes ? (int64_t)length : -1;
}

/* ---- folders */

struct os_folder {
  HANDLE file; /* keeps others from renaming or removing the folder, whose files are found by its path */
  char *path;
  wchar_t *pattern;
  HANDLE search; /* INVALID_HANDLE_VALUE: at the beginning */
  WIN32_FIND_DATAW found;
  char name[OS_NAME_BYTES];
};

/* Joins a folder and a name; the caller frees the result. */
static char *join(const char *folder, const char *name) {
  const size_t bytes = strlen(folder) + strlen(name) + 2;
  char *path = malloc(bytes);
  if (path) snprintf(path, bytes, "%s/%s", folder, name);
  return path;
}

/* Opens a folder that, while it is open, nobody can rename or remove. */
static HANDLE open_folder(const char *path, bool follows_links) {
  os_info info;
  const HANDLE file = open_existing(path, FILE_LIST_DIRECTORY, FILE_SHARE_READ | FILE_SHARE_WRITE,
                                    follows_links ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
  const bool found = info_of_handle(file, &info);
  if (found && info.kind == OS_FOLDER) return file;
  const int error = !found ? errno : info.kind == OS_LINK ? ELOOP : ENOTDIR;
  if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
  errno = error;
  return INVALID_HANDLE_VALUE;
}

os_folder *os_folder_open(const char *path, bool follows_links) {
  const HANDLE file = open_folder(path, follows_links);
  if (file == INVALID_HANDLE_VALUE) return NULL;
  os_folder *folder = calloc(1, sizeof *folder);
  char *pattern = join(path, "*");
  if (folder) *folder = (os_folder){.file = file, .search = INVALID_HANDLE_VALUE, .path = join(path, ".")};
  if (folder && pattern) folder->pattern = os_wide_path(pattern);
  free(pattern);
  if (folder && folder->path && folder->pattern) {
    folder->path[strlen(folder->path) - 2] = '\0';
    return folder;
  }
  if (folder)
    os_folder_close(folder);
  else
    CloseHandle(file);
  errno = ENOMEM;
  return NULL;
}

void os_folder_close(os_folder *folder) {
  os_folder_rewind(folder);
  CloseHandle(folder->file);
  free(folder->path);
  free(folder->pattern);
  free(folder);
}

bool os_folder_info(const os_folder *folder, os_info *info) { return info_of_handle(folder->file, info); }

const char *os_folder_next(os_folder *folder) {
  for (;;) {
    bool found;
    if (folder->search == INVALID_HANDLE_VALUE) {
      folder->search = FindFirstFileW(folder->pattern, &folder->found);
      found = folder->search != INVALID_HANDLE_VALUE;
    } else {
      found = FindNextFileW(folder->search, &folder->found);
    }
    if (!found) {
      const DWORD error = GetLastError();
      errno = error == ERROR_NO_MORE_FILES || error == ERROR_FILE_NOT_FOUND ? 0 : errno_of(error);
      return NULL;
    }
    const wchar_t *name = folder->found.cFileName;
    if (wcscmp(name, L".") == 0 || wcscmp(name, L"..") == 0) continue;
    if (WideCharToMultiByte(CP_UTF8, 0, name, -1, folder->name, sizeof folder->name, NULL, NULL) > 0)
      return folder->name;
  }
}

void os_folder_rewind(os_folder *folder) {
  if (folder->search != INVALID_HANDLE_VALUE) FindClose(folder->search);
  folder->search = INVALID_HANDLE_VALUE;
}

bool os_folder_remove(const os_folder *folder, const char *name) {
  char *path = join(folder->path, name);
  const bool done = path && os_remove(path);
  free(path);
  return done;
}

void os_folder_remove_unlocked(const os_folder *folder, const char *name) {
  os_info info;
  char *path = join(folder->path, name);
  const int descriptor = path && os_info_of_link(path, &info) && info.kind == OS_REGULAR && info.links == 1
                             ? os_open(path, OS_READ_WRITE)
                             : -1;
  if (descriptor >= 0) {
    if (os_lock(descriptor)) (void)os_remove(path);
    os_close(descriptor);
  }
  free(path);
}

static int compare_names(const void *one, const void *other) {
  return strcmp(*(char *const *)one, *(char *const *)other);
}

int64_t os_list_folder(const char *path, char ***names) {
  os_folder *folder = os_folder_open(path, true);
  char **list = NULL;
  size_t count = 0;
  bool done = folder != NULL;
  *names = NULL;
  for (const char *name = NULL; done && (name = os_folder_next(folder)) != NULL;) {
    char **longer = realloc(list, (count + 1) * sizeof *list);
    list = longer ? longer : list;
    if (longer) list[count] = os_copy_text(name, strlen(name));
    done = longer && list[count];
    count += done;
  }
  const int error = done ? errno : folder ? ENOMEM : errno;
  if (folder) os_folder_close(folder);
  if (done && error == 0) {
    if (count > 0) qsort(list, count, sizeof *list, compare_names);
    *names = list;
    return (int64_t)count;
  }
  for (size_t i = 0; i < count; i++) free(list[i]);
  free(list);
  errno = error;
  return -1;
}

/* ---- streams */

FILE *os_open_stream(const char *path, const char *mode) {
  if (mode[0] == 'r') {
    const int descriptor = os_open(path, OS_READ);
    FILE *stream = descriptor >= 0 ? os_read_stream(descriptor) : NULL;
    if (descriptor >= 0 && !stream) os_close(descriptor);
    return stream;
  }
  wchar_t *wide = os_wide_path(path);
  FILE *stream = wide ? _wfopen(wide, L"wb") : NULL;
  free(wide);
  return stream;
}

FILE *os_read_stream(int descriptor) { return _fdopen(descriptor, "rb"); }

FILE *os_write_stream(int descriptor) { return _fdopen(descriptor, "wb"); }

int os_descriptor_of(FILE *stream) { return _fileno(stream); }

/* Opens a file that vanishes when it is closed, and that the system keeps in memory while there is enough. */
static FILE *open_temporary(void) {
  wchar_t folder[MAX_PATH + 1], path[TEMPORARY_UNITS];
  uint64_t number = 0;
  if (GetTempPathW(MAX_PATH + 1, folder) == 0 || !os_random(&number, sizeof number)) return NULL;
  if (_snwprintf(path, TEMPORARY_UNITS, L"%ls.hartsift-%016llx.txt", folder, (unsigned long long)number) < 0)
    return NULL;
  const HANDLE file = CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE, SHARE_ALL, NULL, CREATE_NEW,
                                  FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
  if (file == INVALID_HANDLE_VALUE) (void)os_fail();
  const int descriptor = descriptor_of(file, _O_RDWR);
  FILE *stream = descriptor >= 0 ? _fdopen(descriptor, "w+b") : NULL;
  if (descriptor >= 0 && !stream) os_close(descriptor);
  return stream;
}

/* A file that os_text_close has emptied for the next text: a batch writes one for each image. */
static _Atomic(FILE *) spare;

bool os_text_open(os_text *text) {
  FILE *kept = atomic_exchange(&spare, NULL);
  *text = (os_text){.stream = kept ? kept : open_temporary()};
  return text->stream != NULL;
}

/* Empties a file, so that its memory is free, and keeps it. False: nothing is known of its content. */
static bool give_back(FILE *stream) {
  const bool empty = fseek(stream, 0, SEEK_SET) == 0 && os_truncate(_fileno(stream), 0);
  FILE *other = empty ? atomic_exchange(&spare, stream) : stream;
  return !other || fclose(other) == 0;
}

bool os_text_flush(os_text *text) {
  os_info info;
  if (fflush(text->stream) != 0 || ferror(text->stream)) return false;
  const int descriptor = _fileno(text->stream);
  if (!os_info_of_open(descriptor, &info)) return false;
  char *bytes = realloc(text->text, (size_t)info.size + 1);
  if (!bytes) return false;
  text->text = bytes;
  text->length = 0;
  while (text->length < info.size) {
    const int64_t got = os_read_at(descriptor, bytes + text->length, (size_t)info.size - text->length, text->length);
    if (got <= 0) return false;
    text->length += (size_t)got;
  }
  bytes[text->length] = '\0';
  return true;
}

bool os_text_close(os_text *text) {
  const bool flushed = os_text_flush(text);
  const bool done = give_back(text->stream) && flushed;
  text->stream = NULL;
  if (done) return true;
  free(text->text);
  text->text = NULL;
  return false;
}

char *os_copy_text(const char *text, size_t length) {
  const size_t size = strnlen(text, length);
  char *copy = malloc(size + 1);
  if (copy) memcpy(copy, text, size);
  if (copy) copy[size] = '\0';
  return copy;
}
