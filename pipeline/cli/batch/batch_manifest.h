/*
 * What `batch` remembers: the journal, to which a line is added with each image done, and the manifest that is made of
 * it at the end, in the order of the images. FORMATS.md describes both files.
 *
 * A run that is killed leaves a journal whose last line may be torn; the next one takes the whole lines.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_MANIFEST_H
#define HARTSIFT_CLI_BATCH_BATCH_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/batch/batch_list.h"

typedef enum batch_state {
  BATCH_PENDING = 0, /* nothing known */
  BATCH_CLAIMED,     /* an earlier run says that it is done */
  BATCH_KEPT,        /* that was found true */
  BATCH_DONE,        /* in this run */
  BATCH_FAILED
} batch_state;

/* The row of one image. */
typedef struct batch_record {
  uint64_t features, digest;
  uint64_t output_digest;
  uint64_t mask_digest; /* of the file of --masks for this image; 0: there is none */
  batch_source source;
  bool replaces;         /* an earlier run's output is there, of another picture or mask */
  int32_t width, height; /* 0 when unknown */
  hs_status status;
  batch_state state;
  char *message; /* of a failure, from malloc; or null */
} batch_record;

/* The columns that not every manifest has. */
typedef struct batch_columns {
  bool masks; /* the settings name a folder of them */
  bool sources;
  bool journal;
} batch_columns;

typedef struct batch_manifest {
  const batch_list *list;
  batch_record *records; /* one for each image of the list */
  char *settings;        /* what the results depend on, one line */
  batch_columns columns; /* of the manifest */
  batch_columns read;    /* of the text that was read last; rows added to the own journal have the same */
  char *csv_path, *journal_path;
  char *prefix;  /* what the paths of all manifests of this output begin with */
  int journal;   /* descriptor, locked; -1: not open */
  bool is_begun; /* the journal has this run's head */
  bool has_old;  /* manifest and journal are still an earlier run's, which may have other settings */
  char **
      gone; /* names in rows of earlier runs that are not in the list and not there any more; in no order, some twice */
  size_t gone_count;
  command_id command; /* whose messages are printed */
} batch_manifest;

/* prefix: path of manifests without ending; shard 1..shards. settings is copied. Without memory: CLI_FAILED, message
   printed. */
cli_exit batch_manifest_make(batch_manifest *manifest, const batch_list *list, const char *prefix, int32_t shard,
                             int32_t shards, const char *settings);
/* A journal without a row goes. */
void batch_manifest_free(batch_manifest *manifest);

/* Opens and locks the journal. resume: the manifests and journals of this output are read, those of other shards too,
   and their images that were done become BATCH_CLAIMED; CLI_USAGE where one was made with other settings. Otherwise an
   earlier run's stay until the first image is done, since until then the output is what they say. Messages are
   printed. */
cli_exit batch_manifest_open(batch_manifest *manifest, bool resume);

/* Refuses, with a message, where another file has the manifest's name: it would be replaced. */
cli_exit batch_manifest_check_old(const batch_manifest *manifest);

/* Adds an image's record to the journal in one write; while an earlier run's is there, only one that is done, which
   takes its place. False with errno when it cannot be written. The caller sees to it that one thread at a time is in
   here. */
bool batch_manifest_append(batch_manifest *manifest, size_t index, double milliseconds);

/* Writes the manifest of images first, first + step, ... whole or not at all, and removes the journal, if one is open.
   Where no image was done, an earlier run's stay, with a note. */
cli_exit batch_manifest_finish(batch_manifest *manifest, size_t first, size_t step);

#endif
