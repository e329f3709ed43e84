/*
 * The images of `batch`: found in a folder or listed in a file, in a defined order, with the names of their outputs.
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
  const char *path;   /* path to load */
  const char *name;   /* relative to the folder, or as in the list */
  bool shares_output; /* true: an earlier image has the same output */
} batch_image_name;

typedef struct batch_list {
  batch_image_name *images;
  size_t count;
  size_t *by_name;         /* indices of images, sorted by name, then index */
  const char *folder;      /* the operand if it is a folder; else null */
  hs_image_findings found; /* findings of the search in that folder */
  char **texts;            /* memory of the strings in images */
  size_t capacity;
} batch_list;

/* Reads the list of images. operand: a folder (searched recursively for files with an image's ending, sorted by name,
   byte by byte), a text file with one image per line, or "-" for such a text on standard input. Lines keep their order;
   empty lines and a byte-order mark at the beginning are skipped. end: the byte at the end of a line, a line feed or 0.
   Links are followed as in hs_find_images. masks: a folder whose files are not images of `operand`; null: none. On
   failure (CLI_USAGE, CLI_FAILED) a message was printed and *list is empty. */
cli_exit batch_list_read(batch_list *list, const char *operand, const char *masks, char end);
void batch_list_free(batch_list *list);

/* Appends an image by its name. The list must not be searched by name then. False: out of memory. */
bool batch_list_add(batch_list *list, const char *name);

/* Sets shares_output of all images. An image without output (null) shares none. False: out of memory. output: function
   that returns an output's name, such as batch_output_name. */
bool batch_list_mark_shared(batch_list *list, char *(*output)(const char *name, const void *user), const void *user);

/* Returns the first image with that name, or null. */
const batch_image_name *batch_list_find(const batch_list *list, const char *name);

/* Returns the path of an image: its name, below the list's folder if there is one. The caller frees it; null: out of
   memory. */
char *batch_list_path(const batch_list *list, const char *name);

/* Returns the path of an image's output below the folder of outputs: the listed name without leading '/' and with '.'
   and '..' resolved textually, so that it cannot leave the folder, and with the file name that output_name returns. The
   caller frees it; null: out of memory. */
char *batch_output_name(const char *name, hs_format format);

/* ---- state of image files when read */

typedef struct batch_source {
  bool is_recorded; /* false: the file cannot be read twice, or an older version recorded nothing */
  uint64_t bytes;
  uint64_t time_ns;    /* time of the last change, nanoseconds since 1970 */
  uint64_t changed_ns; /* time of the last change of the inode, nanoseconds; not stored in files */
  uint64_t digest;     /* digest of the content; 0: the file changed while it was read */
  int error;           /* errno if size and times could not be read; not stored in files */
} batch_source;

typedef enum batch_source_state {
  SOURCE_SAME,
  SOURCE_UNKNOWN, /* nothing was recorded */
  SOURCE_GONE,
  SOURCE_CHANGED /* the file has changed, or is no longer readable */
} batch_source_state;

/* Call before a file is read: records size and times. is_recorded stays false until batch_source_finish. */
void batch_source_begin(const char *path, batch_source *source);

/* Call after a file was read: records its digest if it has not changed since batch_source_begin. HS_ERR_IO,
   HS_ERR_MEMORY (with source->error): the file cannot be read again, and nothing is recorded. */
hs_status batch_source_finish(const char *path, batch_source *source);

bool batch_source_is_gone(const char *path);

/* Compares a file with its record by content, because a copy may have another time, and an edited file the same size.
 *now: current state of the file, if it can be read twice. */
batch_source_state batch_source_compare(const char *path, const batch_source *recorded, batch_source *now);

#endif
