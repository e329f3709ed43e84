/*
 * Records of `batch`. The journal gets a line for each processed image. At the end the manifest is written, in the
 * order of the images. FORMATS.md describes both files.
 *
 * If a run is killed, the last line of its journal may be incomplete; the next run reads the complete lines.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_MANIFEST_H
#define HARTSIFT_CLI_BATCH_BATCH_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/batch/batch_list.h"

typedef enum batch_state {
  BATCH_PENDING = 0, /* nothing is known yet */
  BATCH_CLAIMED,     /* done according to the records of an earlier run */
  BATCH_KEPT,        /* done in an earlier run, and verified */
  BATCH_DONE,        /* processed in this run */
  BATCH_FAILED
} batch_state;

/* Row of one image. */
typedef struct batch_record {
  uint64_t features, digest;
  uint64_t output_digest;
  uint64_t mask_digest; /* digest of the image's mask file in --masks; 0: none */
  batch_source source;
  bool replaces;         /* an earlier run's output exists, but of another picture or mask */
  int32_t width, height; /* 0: unknown */
  hs_status status;
  batch_state state;
  char *message; /* reason of a failure, from malloc; or null */
} batch_record;

/* Optional columns of manifests. */
typedef struct batch_columns {
  bool masks; /* the settings name a folder of masks */
  bool sources;
  bool journal;
} batch_columns;

typedef struct batch_manifest {
  const batch_list *list;
  batch_record *records; /* one record for each image of the list */
  char *settings;        /* settings that affect the results, as one line */
  batch_columns columns; /* columns of the manifest */
  batch_columns read;    /* columns of the text that was read last; new rows of the journal have the same columns */
  char *csv_path, *journal_path;
  char *prefix;  /* common path prefix of all manifests of this output */
  int journal;   /* descriptor of the locked journal; -1: not open */
  bool is_begun; /* the head of this run's journal is written */
  bool has_old;  /* manifest and journal are still those of an earlier run, perhaps with other settings */
  char **gone;   /* images of earlier runs that are missing in the list; unordered, with duplicates */
  size_t gone_count;
  command_id command; /* command name for messages */
} batch_manifest;

/* Makes the records of a list. prefix: path of the manifests without ending; shard 1..shards. settings is copied.
   CLI_FAILED: out of memory, a message was printed. */
cli_exit batch_manifest_make(batch_manifest *manifest, const batch_list *list, const char *prefix, int32_t shard,
                             int32_t shards, const char *settings);
/* Frees the records. A journal without rows is deleted. */
void batch_manifest_free(batch_manifest *manifest);

/* Opens and locks the journal. resume: reads all manifests and journals of this output, also of other shards; the
   images processed there become BATCH_CLAIMED. CLI_USAGE if one of them has other settings. Without resume, earlier
   files stay until the first image is done, because until then they describe the output. Prints messages. */
cli_exit batch_manifest_open(batch_manifest *manifest, bool resume);

/* Refuses, with a message, to replace a file that has the manifest's name but is no manifest. */
cli_exit batch_manifest_check_old(const batch_manifest *manifest);

/* Appends an image's record to the journal in one write. While an earlier run's journal exists, only records of
   processed images are written; the first one replaces that journal. False with errno. The caller serialises calls. */
bool batch_manifest_append(batch_manifest *manifest, size_t index, double milliseconds);

/* Writes the manifest of the images first, first + step, ... atomically, and removes an open journal. If no image was
   processed, the files of an earlier run stay, and a message says so. */
cli_exit batch_manifest_finish(batch_manifest *manifest, size_t first, size_t step);

#endif
