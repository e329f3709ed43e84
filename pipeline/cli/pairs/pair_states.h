/* What a database has of pairs before and after `match --database`. */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_STATES_H
#define HARTSIFT_CLI_PAIRS_PAIR_STATES_H

#include "pipeline/cli/common/progress.h"
#include "pipeline/cli/pairs/pair_output.h"
#include "pipeline/cli/pairs/pair_list.h"

/* ---- What a database has of pairs already, and what is to be done with each: nothing, matching, or verifying the
   matches that are there. */

typedef struct pair_wish {
  bool replaces; /* what is there is made anew */
  bool verifies; /* matches without geometry get one */
} pair_wish;

/* Filled by pair_states_sort, in the order of the list of pairs. */
typedef struct sorted_pairs {
  pair_list to_match, to_verify;
  bool *is_stale;          /* by pair to match: has entries that fit no features; they are removed when new ones are
                              stored */
  size_t done;             /* pairs that are left as they are */
  size_t replaced;         /* pairs to match that have entries, with pair_wish.replaces */
  size_t without_geometry; /* of these */
} sorted_pairs;

/* Sorts pairs. An entry that is damaged, or has indices beyond its images' features, counts as none, and is reported.
   Prints why when it fails; sorted is freed by sorted_pairs_free in any case. */
cli_exit pair_states_sort(const pair_source *source, const pair_list *pairs, pair_wish wish, sorted_pairs *sorted);

void sorted_pairs_free(sorted_pairs *sorted);

/* ---- After `match --database`: which verified pairs the collection contradicts. They are set aside in a table of this
   library (pipeline/formats/FORMATS.md), from which the next run takes them back before it judges anew. */

typedef struct doubtful_plan {
  hs_colmap_database *database;
  const database_images *images;
  const stop_signals *signals; /* one that comes ends the work, and nothing of it is kept */
  uint64_t max_memory_bytes;   /* 0: no limit */
  size_t tracks;               /* of each image, the longest, that keep their inliers; 0: all */
  bool keeps;                  /* pairs that were set aside are only taken back */
  bool is_quiet, has_json;
} doubtful_plan;

/* Commits. Prints what was done, or why it failed. */
cli_exit doubtful_pairs_settle(const doubtful_plan *plan);

#endif
