/*
 * hartsift match --database: matches of the images of COLMAP's database, verified, into the same database.
 */
#ifndef HARTSIFT_CLI_PAIRS_MATCH_DATABASE_H
#define HARTSIFT_CLI_PAIRS_MATCH_DATABASE_H

#include "pipeline/cli/common/cli_common.h"

/* What to do with each pair. wanted: ratio and so on. verify: of the model asked for; tolerance and seed count, cameras
   are the database's; model 0: no verification, COLMAP does that. */
typedef struct match_database_plan {
  const option_set *set;
  hs_match_options wanted;
  hs_verify_options verify;
  bool guided;          /* verified pairs are matched again along their geometry */
  bool tries_essential; /* where both cameras are known */
  bool keeps_doubtful;  /* pairs that the collection contradicts stay */
} match_database_plan;

/* Matches the pairs of --pairs, or all; those that have matches already are left unless --replace is given. */
cli_exit match_database(const match_database_plan *plan);

#endif
