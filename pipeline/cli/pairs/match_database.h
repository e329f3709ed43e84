/* hartsift match --database: matches of the images of COLMAP's database, verified, into the same database. */
#ifndef HARTSIFT_CLI_PAIRS_MATCH_DATABASE_H
#define HARTSIFT_CLI_PAIRS_MATCH_DATABASE_H

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/pairs/pair_output.h"

/* ---- Verification of matches without geometry: from a run with --no-verify, another program, or COLMAP's
   database_cleaner. Needs only keypoints. */

typedef struct stored_plan {
  hs_colmap_database *database; /* used only by stored_matches_next, on the caller's thread */
  const database_images *images;
  const hs_image_pair *pairs;
  size_t count;
  hs_verify_options verify; /* its cameras are replaced by the images' */
  hs_pairs_options options; /* further estimates; its verify is not used */
  int32_t threads;
  pair_failures *failures; /* receives reasons of unreadable images */
} stored_plan;

typedef struct stored_matches stored_matches;

/* Null: out of memory or threads. *plan is copied; memory that it points to stays the caller's. */
stored_matches *stored_matches_begin(const stored_plan *plan);

/* The next result, in the order of the pairs; null: no more. Valid until the next call. */
const hs_pair_result *stored_matches_next(stored_matches *given);

/* Ends the verification; null is allowed. */
void stored_matches_end(stored_matches *given);

/* ---- Matching of the images. */

/* Work for each pair. wanted: match options such as ratio. verify: the model; tolerance and seed apply, cameras are
   the database's; model 0: no verification, left to COLMAP. */
typedef struct match_database_plan {
  const option_set *set;
  hs_match_options wanted;
  hs_verify_options verify;
  bool guided;          /* verified pairs are matched again along their geometry */
  bool tries_essential; /* if both cameras are known */
  size_t tracks;        /* longest tracks per image whose inliers stay; 0: all */
  bool keeps_doubtful;  /* keeps pairs that the collection contradicts */
} match_database_plan;

/* Matches the pairs of --pairs, or all; pairs with matches are skipped unless --replace is given. */
cli_exit match_database(const match_database_plan *plan);

#endif
