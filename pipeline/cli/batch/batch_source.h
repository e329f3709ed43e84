/*
 * The file of an image as it was when it was read, so that a later run finds out whether another one has its name.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_SOURCE_H
#define HARTSIFT_CLI_BATCH_BATCH_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

typedef struct batch_source {
  bool is_recorded; /* false: it is no file that can be read twice, or was read by a version that recorded nothing */
  uint64_t bytes;
  uint64_t time_ns;    /* of its last change, since 1970 */
  uint64_t changed_ns; /* of the last change of its inode; not recorded */
  uint64_t digest;     /* of its content; 0: it changed while it was read */
  int error;           /* of the system, if the file could not be looked at; not recorded */
} batch_source;

typedef enum batch_source_state {
  SOURCE_SAME,
  SOURCE_UNKNOWN, /* nothing was recorded */
  SOURCE_GONE,
  SOURCE_CHANGED /* or cannot be read any more */
} batch_source_state;

/* Before a file is read: its size and times; is_recorded is false until batch_source_finish. */
void batch_source_begin(const char *path, batch_source *source);

/* After a file was read: its digest, if it is still as batch_source_begin found it. HS_ERR_IO, HS_ERR_MEMORY with
   source->error: it cannot be read a second time, and nothing is recorded. */
hs_status batch_source_finish(const char *path, batch_source *source);

bool batch_source_is_gone(const char *path);

/* Compares a file with what was recorded of it. The content decides: a copy may keep the time and even the size of
   another one. *now: the file as it is, if it can be read twice. */
batch_source_state batch_source_compare(const char *path, const batch_source *recorded, batch_source *now);

#endif
