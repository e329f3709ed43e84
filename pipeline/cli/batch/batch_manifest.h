/*
 * Records of `batch`: the journal gets a line for each processed image; the manifest is written from it at the end, in
 * the order of the images. FORMATS.md describes both files.
 *
 * A killed run leaves a journal whose last line may be torn; the next run reads the complete lines.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_MANIFEST_H
#define HARTSIFT_CLI_BATCH_BATCH_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/batch/batch_list.h"

typedef enum batch_state {
  BATCH_PENDING = 0, /* nothing known */
  BATCH_CLAIMED,     /* done according to an earlier run */
  BATCH_KEPT,        /* verified and kept */
  BATCH_DONE,        /* processed in this run */
  BATCH_FAILED
} batch_state;

/* The row of one image. */
typedef struct batch_record {
  uint64_t features, digest;
  uint64_t output_digest;
  uint64_t mask_digest; /* digest of the image's file in --masks; 0: none */
  batch_source source;
  bool replaces;         /* an earlier run's output exists, of another picture or mask */
  int32_t width, height; /* 0 when unknown */
  hs_status status;
  batch_state state;
  char *message; /* message of a failure, from malloc; or null */
} batch_record;

/* Optional columns of manifests. */
typedef struct batch_columns {
  bool masks; /* the settings name a folder of masks */
  bool sources;
  bool journal;
} batch_columns;

typedef struct batch_manifest {
  const batch_list *list;
  batch_record *records; /* one for each image of the list */
  char *settings;        /* settings that the results depend on, one line */
  batch_columns columns; /* of the manifest */
  batch_columns read;    /* of the text read last; the journal's new rows have the same */
  char *csv_path, *journal_path;
  char *prefix;  /* common path prefix of all manifests of this output */
  int journal;   /* descriptor, locked; -1: not open */
  bool is_begun; /* the journal has this run's head */
  bool has_old;  /* manifest and journal are still an earlier run's, perhaps with other settings */
  char **gone;   /* missing images of earlier runs that are not in the list; unordered, with duplicates */
  size_t gone_count;
  command_id command; /* command for messages */
} batch_manifest;

/* prefix: path of the manifests without ending; shard 1..shards. settings is copied. CLI_FAILED: out of memory,
   message printed. */
cli_exit batch_manifest_make(batch_manifest *manifest, const batch_list *list, const char *prefix, int32_t shard,
                             int32_t shards, const char *settings);
/* Frees the manifest; a journal without rows is removed. */
void batch_manifest_free(batch_manifest *manifest);

/* Opens and locks the journal. resume: reads all manifests and journals of this output, also of other shards; their
   processed images become BATCH_CLAIMED. CLI_USAGE if one has other settings. Without resume, earlier files stay
   until the first image is done, because they describe the output until then. Messages are printed. */
cli_exit batch_manifest_open(batch_manifest *manifest, bool resume);

/* Refuses, with a message, if another file has the manifest's name: it would be replaced. */
cli_exit batch_manifest_check_old(const batch_manifest *manifest);

/* Appends an image's record to the journal in one write. While an earlier run's journal exists, only a processed
   image does, and its journal replaces the old one. False with errno on failure. The caller serialises calls. */
bool batch_manifest_append(batch_manifest *manifest, size_t index, double milliseconds);

/* Writes the manifest of images first, first + step, ... atomically, and removes an open journal. If no image was
   processed, an earlier run's files stay, with a note. */
cli_exit batch_manifest_finish(batch_manifest *manifest, size_t first, size_t step);

#endif
