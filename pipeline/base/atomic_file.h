/*
 * Files that appear whole or not at all: written under a temporary name in the target's folder,
 * then renamed. Used by every writer of the pipeline.
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
  FILE *stream;          /* null when closed */
  bool temporary_exists; /* false: written straight to the target (a pipe, a device, stdout) */
  bool keeps_stream;     /* stdout: flushed, never closed */
  bool is_staged;        /* set after opening: it will be moved on, and its name need not be permanent */
  int listed;            /* what atomic_file_begins returned */
  hs_status status;      /* of the last call */
  char message[ATOMIC_FILE_MESSAGE_BYTES]; /* why the last call failed, "" after success; names the path */
  char target[ATOMIC_FILE_PATH_BYTES];     /* path with symbolic links of its last part followed */
  char temporary[ATOMIC_FILE_PATH_BYTES];
} atomic_file;

/* Opens path for binary writing; "-" is standard output. A symbolic link stays and what it points to
   is replaced; a device, pipe or socket is written straight through; an existing file keeps its
   permissions and, where the process may set them, its owner and group; where it may not set the group, the group gets
   no permissions. An SQLite database is not replaced. Null on failure with status
   HS_ERR_ARGUMENT (null or empty path) or HS_ERR_IO. */
FILE *atomic_file_open(atomic_file *file, const char *path);

/* The same, but where path is a symbolic link the file takes the link's place: for names that no user gave, in folders that
   may have links to files of others. */
FILE *atomic_file_open_over_links(atomic_file *file, const char *path);

/* Makes the file appear, and permanent: the file and, once it has its name, its folder go to the disk. Checks every delayed
   write error (a full disk shows here). On failure HS_ERR_IO is returned, the temporary file is gone and the old target
   untouched; only where the folder could not be made permanent the new file is there nevertheless. */
hs_status atomic_file_commit(atomic_file *file);

/* Closes and removes the temporary file; the target is as it was. Allowed after a commit or a failed
   open, where it does nothing. Keeps status and message. */
void atomic_file_abandon(atomic_file *file);

/* Called before a temporary file is made, and when it has been renamed or removed; what the first returns is handed to
   the second. The library's own do nothing (weak symbols), because it keeps no state outside its contexts. The command
   defines both, for its handler of signals: cli/common/cli_output.c. */
int atomic_file_begins(const char *temporary);
void atomic_file_gone(int place);

/* Removes what killed processes left in the folder of `path`: temporary files of this user's that no process holds the lock
   of, which each has until it has its name. */
void atomic_file_remove_left(const char *path);

/* Whether a file's name, without its folder, is one that temporary files get. */
bool atomic_file_is_temporary(const char *name);

#endif
