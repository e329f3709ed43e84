/*
 * Files, folders and streams. Names are UTF-8 with '/' between folders; on Windows '\\' too, and names of any length.
 * A failed function sets errno.
 */
#ifndef HARTSIFT_OS_OS_FILES_H
#define HARTSIFT_OS_OS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- state of files */

typedef enum os_kind { OS_REGULAR, OS_FOLDER, OS_LINK, OS_PIPE, OS_OTHER } os_kind;

typedef struct os_info {
  os_kind kind;
  uint64_t size;
  uint64_t device, number;      /* identify a file among those that exist, whatever its name */
  uint64_t links;               /* number of its names */
  uint64_t time_ns, changed_ns; /* last change of the content, and of content or state, since 1970; 0: before */
  uint32_t owner, group, mode;  /* POSIX: permissions in the lower 9 bits; Windows: 0 */
} os_info;

/* Get the state of a file; of a link's target, except os_info_of_link. */
bool os_info_of(const char *path, os_info *info);
bool os_info_of_link(const char *path, os_info *info);
bool os_info_of_open(int descriptor, os_info *info);

bool os_is_folder(const char *path);

/* True if both are names of one file, which exists. */
bool os_is_same(const os_info *one, const os_info *other);

/* True if the file belongs to this user. Windows: always true; a file that another user made is not noticed. */
bool os_is_own(const os_info *info);

bool os_exists(const char *path);

/* True if the user's rights allow it. Windows: OS_MAY_READ is true for every existing file, OS_MAY_RUN for those with
   the ending of programs. */
typedef enum os_access { OS_MAY_READ, OS_MAY_WRITE, OS_MAY_RUN } os_access;
bool os_may(const char *path, os_access access);

/* ---- open files. Child processes do not inherit descriptors. */

typedef enum os_open_mode {
  OS_READ,        /* an existing file; a pipe without a writer reads as empty */
  OS_READ_WRITE,  /* an existing file */
  OS_APPEND,      /* reading, and writing at the end; created if missing */
  OS_NEW,         /* writing; the file must not exist: EEXIST */
  OS_NEW_PRIVATE, /* the same, for this user alone; Windows: for all who have rights to the folder's files */
} os_open_mode;

/* Returns a descriptor; -1 on failure. */
int os_open(const char *path, os_open_mode mode);
void os_close(int descriptor);

/* Return the number of bytes; -1 on failure. Reading returns 0 at the end. */
int64_t os_read(int descriptor, void *bytes, size_t size);
int64_t os_read_at(int descriptor, void *bytes, size_t size, uint64_t offset);
int64_t os_write(int descriptor, const void *bytes, size_t size);

bool os_truncate(int descriptor, uint64_t size);

/* Returns the process's descriptor of a file; -1: it has none or several, or the system cannot tell. Only Linux can. */
int os_only_descriptor(const os_info *file);
/* Bytes of a write. */
typedef struct os_part {
  const void *bytes;
  size_t size;
} os_part;
/* Writes the parts one after the other. Only on Linux; elsewhere ENOTSUP. */
bool os_write_parts_at(int descriptor, const os_part *parts, size_t count, uint64_t offset);
/* Allocates disk space for a range, of which new bytes read as zeros; the file grows to the end of the range. After a
   failure it may have grown in part. Never raises SIGXFSZ. ENOTSUP: not on Linux, or a file in memory, where it would
   cost as much as writing. */
bool os_allocate(int descriptor, uint64_t offset, uint64_t size);
/* Starts to write a range to the disk, so that a later sync waits for less. Does nothing where the system cannot. */
void os_start_write_back(int descriptor, uint64_t offset, uint64_t size);
int os_duplicate(int descriptor);
/* False if the descriptor is not open, or only for reading. Windows: always true. */
bool os_is_writable(int descriptor);

/* Writes a file's or stream's data to the disk. True too if the file system cannot. */
bool os_sync(FILE *stream);

/* Makes the names in a folder permanent. True too if the folder or file system does not allow it. */
bool os_sync_folder(const char *path);

/* Locks a file until all its descriptors are closed. False with EWOULDBLOCK: another process holds the lock; other
   errors: the file system has no locks. */
bool os_lock(int descriptor);

/* The same with a lock that ends with the process, or when it closes any descriptor of the file; EAGAIN: another
   process holds it. */
bool os_lock_for_process(int descriptor);

/* Gives an open file owner, group and permissions of another file. If the group cannot be set, the group gets no
   permissions. Windows: does nothing; the file keeps the rights that its folder gave it. */
bool os_copy_permissions(int descriptor, const os_info *from);

/* ---- names */

bool os_remove(const char *path);
/* Renames a file; a file of the new name is replaced in one step. */
bool os_rename(const char *from, const char *to);
bool os_make_folder(const char *path);
bool os_remove_folder(const char *path);

/* Returns the absolute path with links resolved; the caller frees it. */
char *os_real_path(const char *path);

/* Gets the target of a link as it was written. Returns the length without the zero; -1 on failure. */
int64_t os_read_link(const char *path, char *target, size_t bytes);

/* Replaces '\\' by '/', in place, where both are separators. */
void os_normalise_path(char *path);

/* True for paths that do not depend on the current folder. */
bool os_is_absolute(const char *path);

/* ---- folders */

/* Bytes of a name in a folder with its zero: 255 UTF-16 units on Windows. */
enum { OS_NAME_BYTES = 3 * 255 + 1 };

typedef struct os_folder os_folder;

/* Opens a folder for listing; follows_links false: ELOOP or ENOTDIR for a link. Null on failure. Windows: while it is
   open, nobody can rename or remove the folder, which is found by its path. */
os_folder *os_folder_open(const char *path, bool follows_links);
void os_folder_close(os_folder *folder);
bool os_folder_info(const os_folder *folder, os_info *info);

/* Returns the next name, never "." or ".."; null at the end, with errno 0, or on failure. Valid until the next call. */
const char *os_folder_next(os_folder *folder);
/* Begins the listing again. */
void os_folder_rewind(os_folder *folder);

/* Removes a file of the folder. */
bool os_folder_remove(const os_folder *folder, const char *name);

/* Removes a regular file of this user (Windows: of any user) that no process has locked (os_lock) and that has no other
   name. */
void os_folder_remove_unlocked(const os_folder *folder, const char *name);

/* Lists a folder in the order of the bytes of the names. Returns the number of names, -1 on failure. Names and list are
   freed by the caller. */
int64_t os_list_folder(const char *path, char ***names);

/* ---- streams */

/* As fopen; files are never converted: a line ends with the bytes that are there. */
FILE *os_open_stream(const char *path, const char *mode);

/* Make a stream of a descriptor, which it then owns. Null on failure; the descriptor is then still the caller's.
   os_read_stream: of a descriptor of OS_READ, whose reads then wait for data. */
FILE *os_read_stream(int descriptor);
FILE *os_write_stream(int descriptor);
int os_descriptor_of(FILE *stream);

/* A stream that writes to memory. The text is zero-terminated and freed by the caller. */
typedef struct os_text {
  FILE *stream;
  char *text;
  size_t length;
} os_text;

bool os_text_open(os_text *text);
/* Makes the text written so far readable in text->text; further writing is allowed. */
bool os_text_flush(os_text *text);
/* Closes the stream. False if anything failed; the text is then freed, and null. */
bool os_text_close(os_text *text);

/* Returns a copy of the first `length` bytes of a text, or of the text if it is shorter; the caller frees it. */
char *os_copy_text(const char *text, size_t length);

#endif
