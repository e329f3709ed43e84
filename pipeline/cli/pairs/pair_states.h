/*
 * What a database has of pairs already, and what is to be done with each: nothing, matching, or verifying the matches that
 * are there.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_STATES_H
#define HARTSIFT_CLI_PAIRS_PAIR_STATES_H

#include "pipeline/cli/pairs/pair_list.h"

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

#endif
