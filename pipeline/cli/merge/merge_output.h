/*
 * Output of `merge`: feature files copied to one folder, or one database.
 */
#ifndef HARTSIFT_CLI_MERGE_MERGE_OUTPUT_H
#define HARTSIFT_CLI_MERGE_MERGE_OUTPUT_H

#include "pipeline/cli/common/database_output.h"
#include "pipeline/cli/merge/merge_inputs.h"

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
