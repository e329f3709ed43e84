/* hartsift match --database: matches the images of COLMAP's database, verifies the matches, and stores both in the same
   database. */
#ifndef HARTSIFT_CLI_PAIRS_MATCH_DATABASE_H
#define HARTSIFT_CLI_PAIRS_MATCH_DATABASE_H

#include "pipeline/cli/common/cli_common.h"
#include "pipeline/cli/pairs/pair_output.h"

/* ---- Verification of matches without geometry: from a run with --no-verify, another program, or COLMAP's
   database_cleaner. Needs only keypoints. */

typedef struct stored_plan {
  hs_colmap_database *database; /* used only by stored_matches_next, on its caller's thread */
  const database_images *images;
  const hs_image_pair *pairs;
  size_t count;
  hs_verify_options verify; /* options of the verification; cameras are replaced by those of the images */
  hs_pairs_options options; /* further models to estimate; its field verify is not used */
  int32_t threads;
  pair_failures *failures; /* receives the reasons why images are unreadable */
} stored_plan;

typedef struct stored_matches stored_matches;

/* Starts to verify the matches that a database has. Null: out of memory, or a thread could not be started. *plan is
   copied; memory that it points to still belongs to the caller. */
stored_matches *stored_matches_begin(const stored_plan *plan);

/* Returns the next result, in the order of the pairs; null: no more. Valid until the next call. */
const hs_pair_result *stored_matches_next(stored_matches *stored);

/* Ends the verification; null is allowed. */
void stored_matches_end(stored_matches *stored);

/* ---- Matching of the images. */

/* Options of the work for each pair. wanted: match options such as ratio. verify: the model; tolerance and seed apply,
   cameras are those of the database; model 0: no verification, which is left to COLMAP. */
typedef struct match_database_plan {
  const option_set *set;
  hs_match_options wanted;
  hs_verify_options verify;
  bool guided;                 /* verified pairs are matched again, guided by their geometry */
  bool tries_essential;        /* an essential matrix is tried too if both cameras are known */
  size_t tracks;               /* number of longest tracks per image whose inliers stay; 0: all */
  bool keeps_doubtful;         /* pairs that the collection contradicts are kept */
  bool skips_unknown;          /* pairs with names that are not in the database are no failure */
  const hs_image_pair *chosen; /* pairs of image_ids; null: by the options */
  size_t chosen_count;
} match_database_plan;

/* Matches the pairs of --pairs, by default all. Pairs that have matches are skipped unless --replace is given. */
cli_exit match_database(const match_database_plan *plan);

#endif
