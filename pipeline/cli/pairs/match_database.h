/* hartsift match --database: matches of the images of COLMAP's database, verified, into the same database. */
#ifndef HARTSIFT_CLI_PAIRS_MATCH_DATABASE_H
#define HARTSIFT_CLI_PAIRS_MATCH_DATABASE_H

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/pairs/pair_output.h"

/* ---- Verification of matches that a database has without geometry: of an earlier run with --no-verify, of another
   program, or left by COLMAP's database_cleaner. Needs keypoints alone. */

typedef struct stored_plan {
  hs_colmap_database *database; /* used by stored_matches_next alone, on the caller's thread */
  const database_images *images;
  const hs_image_pair *pairs;
  size_t count;
  hs_verify_options verify; /* its cameras are the images' */
  hs_pairs_options options; /* what else is estimated; its verify is not used */
  int32_t threads;
  pair_failures *failures; /* gets why images cannot be read */
} stored_plan;

typedef struct stored_matches stored_matches;

/* Null: no memory, or no thread. *plan is copied; what it points to stays the caller's. */
stored_matches *stored_matches_begin(const stored_plan *plan);

/* The next pair's result, in the order of the pairs; null: all have been given. Valid until the next call. */
const hs_pair_result *stored_matches_next(stored_matches *given);

/* null is allowed. */
void stored_matches_end(stored_matches *given);

/* ---- Matching of the images. */

/* What to do with each pair. wanted: ratio and so on. verify: of the model asked for; tolerance and seed count, cameras
   are the database's; model 0: no verification, COLMAP does that. */
typedef struct match_database_plan {
  const option_set *set;
  hs_match_options wanted;
  hs_verify_options verify;
  bool guided;          /* verified pairs are matched again along their geometry */
  bool tries_essential; /* where both cameras are known */
  size_t tracks;        /* longest ones of each image whose inliers stay; 0: all */
  bool keeps_doubtful;  /* pairs that the collection contradicts stay */
} match_database_plan;

/* Matches the pairs of --pairs, or all; those that have matches already are left unless --replace is given. */
cli_exit match_database(const match_database_plan *plan);

#endif
