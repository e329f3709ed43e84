/*
 * What `match --database` makes of results: rows of the database, records, the summary.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_OUTPUT_H
#define HARTSIFT_CLI_PAIRS_PAIR_OUTPUT_H

#include "pipeline/cli/common/progress_line.h"
#include "pipeline/cli/pairs/database_images.h"
#include "pipeline/cli/pairs/pair_failures.h"

typedef struct pair_totals {
  size_t pairs, kept, done, failed, verified; /* kept: had matches already */
  size_t given;                               /* of those done: had matches, which were verified */
  uint64_t matches, inliers;
} pair_totals;

typedef struct pair_output {
  const database_images *images;
  hs_colmap_database *database; /* used under the caller's lock */
  bool has_json, is_quiet, is_verified;
  progress_line line;
  pair_totals totals;
  pair_failures failures;
} pair_output;

/* Puts a result into the database. is_stale: in place of what the pair has. message: why it failed. */
hs_status pair_output_store(pair_output *output, const hs_pair_result *result, bool is_stale,
                            char message[CLI_MESSAGE_BYTES]);

/* Counts a result, prints its record or, for a failed one, why, unless it was said of another pair. */
void pair_output_tell(pair_output *output, const hs_pair_result *result, hs_status status, const char *message);

void pair_output_progress(pair_output *output);

/* Says how it went. */
void pair_output_end(pair_output *output);

#endif
