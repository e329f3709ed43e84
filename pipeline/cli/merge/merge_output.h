/*
 * Where `merge` puts the images: files of features copied to one folder, or one database.
 */
#ifndef HARTSIFT_CLI_MERGE_MERGE_OUTPUT_H
#define HARTSIFT_CLI_MERGE_MERGE_OUTPUT_H

#include "pipeline/cli/common/database_output.h"
#include "pipeline/cli/merge/merge_inputs.h"

/* An image that came from a database. */
typedef struct merged_image {
  size_t shard;      /* whose database */
  uint32_t from, to; /* its number there and in the output */
} merged_image;

typedef struct merge_output {
  const option_set *set;
  const char *place;      /* folder or database */
  hs_format format;       /* of what is made */
  database_camera camera; /* --camera-id, and how cameras are shared where that is given */
  hs_colmap_camera numbered;
  int32_t sharing;              /* of a database's cameras: hs_colmap_options.share_cameras */
  hs_colmap_database *database; /* null: a folder */
  hs_colmap_database *source;   /* the one of sources that is open */
  size_t source_shard;          /* whose it is */
  hs_features features;         /* of the image at hand */
  merged_image *merged;         /* of databases */
  size_t merged_count, merged_capacity;
} merge_output;

/* What --output is to be, and whether the inputs can go there; nothing is made yet. CLI_USAGE with a message. */
cli_exit merge_plan_output(merge_output *output, const option_set *set, const merge_inputs *inputs);
/* Makes the folder or opens the database. CLI_FAILED with a message; merge_close_output in any case. */
cli_exit merge_open_output(merge_output *output);
bool merge_makes_database(const merge_output *output);

/* Puts an image's features there, after comparing them with their digest; record->output_digest becomes that of what was
   made. False with a message. */
bool merge_put(merge_output *output, const merge_inputs *inputs, merge_image *image, char *message,
               size_t message_bytes);

/* Opens the database of a shard as output->source, unless it is open. False with a message. */
bool merge_open_source(merge_output *output, const merge_inputs *inputs, size_t shard, char *message,
                       size_t message_bytes);

/* Makes the database permanent. */
cli_exit merge_commit(merge_output *output);
/* What was not committed is dropped. */
void merge_close_output(merge_output *output);

/* ---- matches */

typedef struct merge_match_totals {
  size_t copied, left; /* pairs; left: not copied, because an image was not merged or an index is beyond the features */
} merge_match_totals;

/* Copies the entries of all pairs whose images were merged, after all images; says which are left and why. Prints why when
   it fails. */
cli_exit merge_copy_matches(merge_output *output, const merge_inputs *inputs, merge_match_totals *totals);

#endif
