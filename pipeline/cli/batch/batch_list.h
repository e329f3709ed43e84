/*
 * The images of `batch`: found in a folder or named in a list, in a defined order, with the name of each one's output.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_LIST_H
#define HARTSIFT_CLI_BATCH_BATCH_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_batch.h"

typedef struct batch_image_name {
  const char *path;   /* to load it by */
  const char *name;   /* to call it by: relative to the folder, or as the list has it */
  bool shares_output; /* an earlier image has the same output */
} batch_image_name;

typedef struct batch_list {
  batch_image_name *images;
  size_t count;
  size_t *by_name;         /* places in images, sorted by name, then place */
  const char *folder;      /* the operand, where the names are below one; else null */
  hs_image_findings found; /* in it */
  char **texts;            /* what images points to */
  size_t capacity;
} batch_list;

/* operand: a folder (searched with all folders in it for files with an image's ending, sorted by name, byte by byte),
   a text file with one image a line, or "-" for such a text on standard input. Lines keep their order; empty ones are
   passed over, and so is a byte-order mark before the first; end: the byte that ends a line, a line feed or 0. Links are
   followed as hs_find_images has it. masks: a folder whose files are not taken for images of `operand`; null: none. On
   failure (CLI_USAGE, CLI_FAILED) a message has been printed and *list is empty. */
cli_exit batch_list_read(batch_list *list, const char *operand, const char *masks, char end);
void batch_list_free(batch_list *list);

/* Adds an image by its name at the end of a list that is not searched by name. False without memory. */
bool batch_list_add(batch_list *list, const char *name);

/* Sets shares_output; null texts never meet. False without memory. output: as batch_output_name. */
bool batch_list_mark_shared(batch_list *list, char *(*output)(const char *name, const void *user), const void *user);

/* The first image of that name, null when there is none. */
const batch_image_name *batch_list_find(const batch_list *list, const char *name);

/* The path of an image by its name: below the list's folder, if there is one. To be freed; null without memory. */
char *batch_list_path(const batch_list *list, const char *name);

/* A list's names as a path below a folder: without leading '/', '.' and '..' resolved as text, so that nothing gets
   outside; then the file name as output_name has it. To be freed; null without memory. */
char *batch_output_name(const char *name, hs_format format);

/* ---- files of images, as they were read */

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
