/*
 * Atomic file writing: files are written under a temporary name in the target's folder,
 * then renamed, so that they appear complete or not at all. Used by every writer of the pipeline.
 *
 *     atomic_file file;
 *     FILE *stream = atomic_file_open(&file, path);
 *     if (stream == NULL) return file.status;            (file.message says why)
 *     ... write; on trouble: atomic_file_abandon(&file); return ...
 *     return atomic_file_commit(&file);
 */
#ifndef HARTSIFT_BASE_ATOMIC_FILE_H
#define HARTSIFT_BASE_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "pipeline/include/hartsift.h"

enum { ATOMIC_FILE_PATH_BYTES = 4096, ATOMIC_FILE_MESSAGE_BYTES = 512 };

/* The struct owns no heap memory, so nothing is to be freed after a failed open, a commit or an abandon. */
typedef struct atomic_file {
  FILE *stream;          /* stream of the file; null when closed */
  bool temporary_exists; /* false: the target itself is written (a pipe, a device, stdout) */
  bool keeps_stream;     /* the stream is stdout: flushed, never closed */
  /* whether the file will be moved later, so that the folder need not be synced; set by the caller after opening */
  bool is_staged;
  int listed;                              /* result of atomic_file_begins */
  hs_status status;                        /* status of the last call */
  char message[ATOMIC_FILE_MESSAGE_BYTES]; /* reason of the last call's failure, with the path; "" after success */
  char target[ATOMIC_FILE_PATH_BYTES];     /* path, with symbolic links of its last part resolved */
  char temporary[ATOMIC_FILE_PATH_BYTES];
} atomic_file;

/* Opens path for binary writing; "-" is standard output. A symbolic link stays, and the file that it names is replaced.
   A device, pipe or socket is written directly, and so is an open descriptor (/dev/stdout, /dev/fd/N). A replaced file
   keeps its permissions and, if the process may set them, its owner and group; if the group cannot be set, the group
   gets no permissions. An SQLite database is refused. Null on failure with status HS_ERR_ARGUMENT (null or empty path)
   or HS_ERR_IO. */
FILE *atomic_file_open(atomic_file *file, const char *path);

/* Checks that a path which names an open descriptor can be written, so that a command can refuse it before its work.
   False as atomic_file_open fails. */
bool atomic_file_check_descriptor(atomic_file *file, const char *path);

/* As atomic_file_open, but replaces a symbolic link by the file. For names that the user did not choose, in folders
   where links could lead to other users' files. */
FILE *atomic_file_open_over_links(atomic_file *file, const char *path);

/* Renames the file to its target and syncs file and folder. Reports delayed write errors (a full disk). On failure
   returns HS_ERR_IO, removes the temporary file and leaves the target unchanged; if only the sync of the folder failed,
   the new file is in place. */
hs_status atomic_file_commit(atomic_file *file);

/* Closes and deletes the temporary file; the target is unchanged. Does nothing after a commit or a failed open. Status
   and message stay. */
void atomic_file_abandon(atomic_file *file);

/* Hooks, called before a temporary file is created, and after it was renamed or deleted. The second hook gets the
   return value of the first. The library's versions do nothing (weak symbols), because the library has no global state.
   The command defines both for its signal handler: cli/common/cli_output.c. */
int atomic_file_begins(const char *temporary);
void atomic_file_gone(int slot);

/* Deletes temporary files that killed processes left in the folder of `path`: files of this user without a lock. A
   process in progress locks its file until the rename. */
void atomic_file_remove_left(const char *path);

/* True if a file's name, without its folder, has the form of a temporary name. */
bool atomic_file_is_temporary(const char *name);

#endif
