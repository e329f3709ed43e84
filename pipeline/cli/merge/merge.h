/*
 * `merge`: the manifests that its operands name and the images that these list, in one order; and the output, files of
 * features in one folder, or one database.
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
  char *manifest;       /* its path */
  char *place;          /* the folder of its outputs, or its database */
  char *text;           /* the whole of it */
  const char *settings; /* its line of settings, in text */
  size_t settings_length;
  int32_t shard, shards; /* I of N, by its name; 1 of 1 */
} merge_shard;

/* One row of a manifest. */
typedef struct merge_image {
  char *name;
  batch_record record; /* BATCH_CLAIMED or BATCH_FAILED */
  size_t shard;        /* index of its manifest */
  size_t place;        /* in the list of images that the shards were made of */
} merge_image;

typedef struct merge_inputs {
  merge_shard *shards;
  size_t shard_count;
  merge_image *images;
  size_t count, capacity;
  hs_format format; /* of all outputs */
} merge_inputs;

/* Reads the manifests of all operands (a folder of outputs, a database, or a manifest) and orders their images: shards I
   of N as the one list that they were made of, several whole manifests by the names of their images. Refused, with a
   message (CLI_FAILED, CLI_USAGE): no manifest, an unfinished one, a damaged one, shards missing or there twice, other
   settings. output: the folder or database to be made, whose own whole manifest is no input. *inputs is to be freed in
   any case. */
cli_exit merge_read_inputs(merge_inputs *inputs, char **operands, int operand_count, const char *output);
void merge_free_inputs(merge_inputs *inputs);

/* Whether two names are of one existing file or folder. */
bool merge_is_same_place(const char *one, const char *other);

/* The value of a setting, by "name="; *length 0: there is none. */
const char *merge_setting(const merge_shard *shard, const char *name, size_t *length);

/* An image from a database. */
typedef struct merged_image {
  size_t shard;      /* index of its shard */
  uint32_t from, to; /* its id there and in the output */
} merged_image;

typedef struct merge_output {
  const option_set *set;
  const char *place;      /* folder or database */
  hs_format format;       /* format of the output */
  database_camera camera; /* --camera-id, and sharing of cameras if given */
  hs_colmap_camera numbered;
  int32_t sharing;              /* sharing of a database's cameras: hs_colmap_options.share_cameras */
  hs_colmap_database *database; /* null: a folder */
  hs_colmap_database *source;   /* the open source database */
  size_t source_shard;          /* its shard */
  hs_features features;         /* of the current image */
  merged_image *merged;         /* images from databases */
  size_t merged_count, merged_capacity;
} merge_output;

/* Chooses the output and checks that the inputs fit; nothing is written yet. CLI_USAGE with a message. */
cli_exit merge_plan_output(merge_output *output, const option_set *set, const merge_inputs *inputs);
/* Creates the folder or opens the database. CLI_FAILED with a message; merge_close_output is needed in any case. */
cli_exit merge_open_output(merge_output *output);
bool merge_makes_database(const merge_output *output);

/* Verifies an image's features by their digest and writes them; record->output_digest becomes the output's. False
   with a message. */
bool merge_put(merge_output *output, const merge_inputs *inputs, merge_image *image, char *message,
               size_t message_bytes);

/* Opens the database of a shard as output->source, unless already open. False with a message. */
bool merge_open_source(merge_output *output, const merge_inputs *inputs, size_t shard, char *message,
                       size_t message_bytes);

/* Commits the database. */
cli_exit merge_commit(merge_output *output);
/* Closes the output; uncommitted changes are dropped. */
void merge_close_output(merge_output *output);

/* ---- matches */

typedef struct merge_match_totals {
  size_t copied, left; /* pairs; left: not copied, because an image was not merged or an index exceeds its features */
} merge_match_totals;

/* Copies the entries of all pairs of merged images, after all images; reports omitted pairs. Prints the reason of a
   failure. */
cli_exit merge_copy_matches(merge_output *output, const merge_inputs *inputs, merge_match_totals *totals);

#endif
