/* State of a database's pairs before and after */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_STATES_H
#define HARTSIFT_CLI_PAIRS_PAIR_STATES_H

#include "pipeline/cli/common/progress.h"
#include "pipeline/cli/pairs/pair_output.h"
#include "pipeline/cli/pairs/pair_list.h"

/* ---- Existing entries of pairs, and the work for each: none, matching, or verifying existing matches. */

typedef struct pair_wish {
  bool replaces; /* existing entries are replaced */
  bool verifies; /* matches without geometry are verified */
} pair_wish;

/* Filled by pair_states_sort, in the order of the list of pairs. */
typedef struct sorted_pairs {
  pair_list to_match, to_verify;
  bool *is_stale;  /* by pair to match: has entries that do not fit the features; removed when new ones are stored */
  size_t done;     /* unchanged pairs */
  size_t replaced; /* pairs to match with entries, with pair_wish.replaces */
  size_t without_geometry; /* of these, without geometry */
} sorted_pairs;

/* Sorts pairs. Damaged entries, and indices beyond the features, count as none and are reported. Prints the reason
   of a failure; sorted_pairs_free is needed in any case. */
cli_exit pair_states_sort(const pair_source *source, const pair_list *pairs, pair_wish wish, sorted_pairs *sorted);

void sorted_pairs_free(sorted_pairs *sorted);

/* ---- After `match --database`: verified pairs that the collection contradicts are moved to a table of this library
   (pipeline/formats/FORMATS.md); the next run restores them before it judges again. */

typedef struct doubtful_plan {
  hs_colmap_database *database;
  const database_images *images;
  const stop_signals *signals; /* a signal ends the work without changes */
  uint64_t max_memory_bytes;   /* 0: no limit */
  size_t tracks;               /* longest tracks of each image that keep their inliers; 0: all */
  bool keeps;                  /* only restores pairs that were set aside */
  bool is_quiet, has_json;
} doubtful_plan;

/* Commits. Prints the result or the reason of a failure. */
cli_exit doubtful_pairs_settle(const doubtful_plan *plan);

#endif
