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

/* Holds no heap memory: after a failed open, a commit or an abandon nothing is left to release. */
typedef struct atomic_file {
  FILE *stream;                            /* null when closed */
  bool temporary_exists;                   /* false: written straight to the target (a pipe, a device, stdout) */
  bool keeps_stream;                       /* stdout: flushed, never closed */
  bool is_staged;                          /* set after opening: the file will be moved, so its name is not synced */
  int listed;                              /* what atomic_file_begins returned */
  hs_status status;                        /* of the last call */
  char message[ATOMIC_FILE_MESSAGE_BYTES]; /* why the last call failed, "" after success; names the path */
  char target[ATOMIC_FILE_PATH_BYTES];     /* path, symbolic links of its last part resolved */
  char temporary[ATOMIC_FILE_PATH_BYTES];
} atomic_file;

/* Opens path for binary writing; "-" is standard output. A symbolic link stays and its target is replaced. A device,
   pipe or socket is written directly. An existing file keeps its permissions and, where the process may set them,
   its owner and group; if the group cannot be set, it gets no permissions. An SQLite database is refused. Null on
   failure with status HS_ERR_ARGUMENT (null or empty path) or HS_ERR_IO. */
FILE *atomic_file_open(atomic_file *file, const char *path);

/* As atomic_file_open, but a symbolic link is replaced by the file: for names not chosen by the user, in folders
   where links may lead to other users' files. */
FILE *atomic_file_open_over_links(atomic_file *file, const char *path);

/* Renames the file to its target and syncs file and folder. Reports delayed write errors (a full disk). On failure
   returns HS_ERR_IO; the temporary file is removed and the old target unchanged, except that the new file exists if
   only the sync of the folder failed. */
hs_status atomic_file_commit(atomic_file *file);

/* Closes and removes the temporary file; the target is unchanged. Does nothing after a commit or a failed open.
   Keeps status and message. */
void atomic_file_abandon(atomic_file *file);

/* Hooks: called before a temporary file is created, and after it was renamed or removed; the second gets the first
   one's return value. The library's versions do nothing (weak symbols), because it keeps no global state. The
   command defines both for its signal handler: cli/common/cli_output.c. */
int atomic_file_begins(const char *temporary);
void atomic_file_gone(int place);

/* Removes temporary files of killed processes from the folder of `path`: files of this user without a lock. A file
   in progress is locked until it is renamed. */
void atomic_file_remove_left(const char *path);

/* True if a file's name, without its folder, has the form of a temporary name. */
bool atomic_file_is_temporary(const char *name);

#endif
