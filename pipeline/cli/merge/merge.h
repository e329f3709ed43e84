/*
 * hartsift merge: the manifests of its operands, and their images in one order; and the output: files of features in
 * one folder, or one database.
 */
#ifndef HARTSIFT_CLI_MERGE_MERGE_H
#define HARTSIFT_CLI_MERGE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/batch/batch_manifest.h"
#include "pipeline/cli/common/database_output.h"

/* ------------------------------------------------------------------ inputs (merge_inputs.c) */

/* One manifest. */
typedef struct merge_shard {
  char *manifest;       /* path of the manifest */
  char *location;       /* folder of the outputs, or path of the database */
  char *text;           /* complete text of the manifest */
  const char *settings; /* settings line of the manifest, a pointer into text */
  size_t settings_length;
  int32_t shard, shards; /* I and N of "-I-of-N" in its name; without that, 1 of 1 */
} merge_shard;

/* An image: one row of a manifest. */
typedef struct merge_image {
  char *name;
  batch_record record; /* BATCH_CLAIMED or BATCH_FAILED */
  size_t shard;        /* index of the image's manifest */
  size_t position;     /* index of the image in the list from which the shards were made */
} merge_image;

typedef struct merge_inputs {
  merge_shard *shards;
  size_t shard_count;
  merge_image *images;
  size_t count, capacity;
  hs_format format; /* format of all outputs */
} merge_inputs;

/* Reads the manifests of all operands (a folder of outputs, a database, or a manifest) and orders their images: of
   shards I of N as in the list from which the shards were made; of several manifests without shards by the names of the
   images. Refuses, with a message (CLI_FAILED, CLI_USAGE): operands without a manifest, unfinished or damaged
   manifests, missing or repeated shards, different settings. output: folder or database that will be written; its own
   manifest without shard is no input. The caller frees *inputs in any case. */
cli_exit merge_read_inputs(merge_inputs *inputs, char **operands, int operand_count, const char *output);
void merge_free_inputs(merge_inputs *inputs);

/* Whether two names lead to the same existing file or folder. */
bool merge_is_same_location(const char *one, const char *other);

/* Returns the value of a setting with this name; *length 0: there is none. */
const char *merge_setting(const merge_shard *shard, const char *name, size_t *length);

/* An image from a database. */
typedef struct merged_image {
  size_t shard;      /* index of its shard */
  uint32_t from, to; /* id of the image in its shard's database, and in the output */
} merged_image;

typedef struct merge_output {
  const option_set *set;
  const char *location;   /* path of the folder or database */
  hs_format format;       /* format of the output */
  database_camera camera; /* camera of --camera-id, and how cameras are shared, if given */
  hs_colmap_camera numbered;
  int32_t sharing;              /* how images of the database share cameras: hs_colmap_options.share_cameras */
  hs_colmap_database *database; /* output database; null: the output is a folder */
  hs_colmap_database *source;   /* source database that is open */
  size_t source_shard;          /* index of its shard */
  hs_features features;         /* features of the current image */
  merged_image *merged;         /* images from databases */
  size_t merged_count, merged_capacity;
} merge_output;

/* Chooses the output, and checks that the inputs fit. Nothing is written yet. CLI_USAGE with a message. */
cli_exit merge_plan_output(merge_output *output, const option_set *set, const merge_inputs *inputs);
/* Creates the folder or opens the database. CLI_FAILED with a message; call merge_close_output in any case. */
cli_exit merge_open_output(merge_output *output);
bool merge_makes_database(const merge_output *output);

/* Verifies an image's features by their digest and writes them; record->output_digest becomes that of the output. False
   with a message. */
bool merge_put(merge_output *output, const merge_inputs *inputs, merge_image *image, char *message,
               size_t message_bytes);

/* Opens the database of a shard as output->source, unless it is already open. False with a message. */
bool merge_open_source(merge_output *output, const merge_inputs *inputs, size_t shard, char *message,
                       size_t message_bytes);

/* Commits the database. */
cli_exit merge_commit(merge_output *output);
/* Closes the output; uncommitted changes are dropped. */
void merge_close_output(merge_output *output);

/* ---- matches */

typedef struct merge_match_totals {
  /* numbers of pairs; left: not copied, because an image was not merged, or an index exceeds its features */
  size_t copied, left;
} merge_match_totals;

/* Copies the entries of all pairs of merged images. Call after all images. Reports pairs that were not copied, and the
   reason of a failure. */
cli_exit merge_copy_matches(merge_output *output, const merge_inputs *inputs, merge_match_totals *totals);

#endif
