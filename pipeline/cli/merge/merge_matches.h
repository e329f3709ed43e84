/*
 * Matches and geometry of the databases that `merge` puts together.
 */
#ifndef HARTSIFT_CLI_MERGE_MERGE_MATCHES_H
#define HARTSIFT_CLI_MERGE_MERGE_MATCHES_H

#include "pipeline/cli/merge/merge_output.h"

typedef struct merge_match_totals {
  size_t copied, left; /* pairs; left: not copied, because an image was not merged or an index is beyond the features */
} merge_match_totals;

/* Copies the entries of all pairs whose images were merged, after all images; says which are left and why. Prints why when
   it fails. */
cli_exit merge_copy_matches(merge_output *output, const merge_inputs *inputs, merge_match_totals *totals);

#endif
