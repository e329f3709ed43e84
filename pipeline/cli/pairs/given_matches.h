/*
 * Verification of matches that a database has without geometry: of an earlier run with --no-verify, of another program, or
 * left by COLMAP's database_cleaner. Needs keypoints alone.
 */
#ifndef HARTSIFT_CLI_PAIRS_GIVEN_MATCHES_H
#define HARTSIFT_CLI_PAIRS_GIVEN_MATCHES_H

#include "pipeline/cli/pairs/pair_failures.h"

typedef struct given_plan {
  hs_colmap_database *database; /* used by given_matches_next alone, on the caller's thread */
  const database_images *images;
  const hs_image_pair *pairs;
  size_t count;
  hs_verify_options verify; /* its cameras are the images' */
  hs_pairs_options options; /* what else is estimated; its verify is not used */
  int32_t threads;
  pair_failures *failures; /* gets why images cannot be read */
} given_plan;

typedef struct given_matches given_matches;

/* Null: no memory, or no thread. *plan is copied; what it points to stays the caller's. */
given_matches *given_matches_begin(const given_plan *plan);

/* The next pair's result, in the order of the pairs; null: all have been given. Valid until the next call. */
const hs_pair_result *given_matches_next(given_matches *given);

/* null is allowed. */
void given_matches_end(given_matches *given);

#endif
