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
  const char *name;   /* name: relative to the folder, or as in the list */
  bool shares_output; /* an earlier image has the same output */
} batch_image_name;

typedef struct batch_list {
  batch_image_name *images;
  size_t count;
  size_t *by_name;         /* indices of images, sorted by name, then index */
  const char *folder;      /* the operand if it is a folder; else null */
  hs_image_findings found; /* in it */
  char **texts;            /* strings that images points to */
  size_t capacity;
} batch_list;

/* operand: a folder (searched recursively for files with an image's ending, sorted by name, bytewise), a text file
   with one image a line, or "-" for such a text on standard input. Lines keep their order; empty lines and a leading
   byte-order mark are skipped. end: the byte at a line's end, a line feed or 0. Links are followed as in
   hs_find_images. masks: a folder whose files are not images of `operand`; null: none. On failure (CLI_USAGE,
   CLI_FAILED) a message was printed and *list is empty. */
cli_exit batch_list_read(batch_list *list, const char *operand, const char *masks, char end);
void batch_list_free(batch_list *list);

/* Appends an image by its name to a list that is not searched by name. False: out of memory. */
bool batch_list_add(batch_list *list, const char *name);

/* Sets shares_output; images with null output never share it. False: out of memory. output: as batch_output_name. */
bool batch_list_mark_shared(batch_list *list, char *(*output)(const char *name, const void *user), const void *user);

/* The first image with that name, or null. */
const batch_image_name *batch_list_find(const batch_list *list, const char *name);

/* The path of an image: its name below the list's folder, if there is one. To be freed; null: out of memory. */
char *batch_list_path(const batch_list *list, const char *name);

/* Converts a listed name to a path below a folder: without leading '/', with '.' and '..' resolved textually, so
   that it cannot leave the folder; then the file name as output_name forms it. To be freed; null: out of memory. */
char *batch_output_name(const char *name, hs_format format);

/* ---- state of image files when read */

typedef struct batch_source {
  bool is_recorded; /* false: the file cannot be read twice, or an old version recorded nothing */
  uint64_t bytes;
  uint64_t time_ns;    /* time of the last change, since 1970 */
  uint64_t changed_ns; /* time of the last inode change; not stored */
  uint64_t digest;     /* digest of the content; 0: the file changed while it was read */
  int error;           /* errno if the file's state could not be read; not stored */
} batch_source;

typedef enum batch_source_state {
  SOURCE_SAME,
  SOURCE_UNKNOWN, /* nothing was recorded */
  SOURCE_GONE,
  SOURCE_CHANGED /* or is no longer readable */
} batch_source_state;

/* Before a file is read: records size and times; is_recorded stays false until batch_source_finish. */
void batch_source_begin(const char *path, batch_source *source);

/* After a file was read: records its digest if it is unchanged since batch_source_begin. HS_ERR_IO, HS_ERR_MEMORY
   (with source->error): it cannot be read again, and nothing is recorded. */
hs_status batch_source_finish(const char *path, batch_source *source);

bool batch_source_is_gone(const char *path);

/* Compares a file with its record by content: a copy may have another file's time and even size. *now: the file's
   current state, if it can be read twice. */
batch_source_state batch_source_compare(const char *path, const batch_source *recorded, batch_source *now);

#endif
