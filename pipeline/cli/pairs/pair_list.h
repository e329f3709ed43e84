/*
 * Which pairs of a database's images are matched: all of them, or those of --pairs: neighbours by name or place,
 * images that look alike, or a list of names; and what is to be done with each.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_LIST_H
#define HARTSIFT_CLI_PAIRS_PAIR_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/cli/pairs/pair_output.h"
#include "pipeline/include/hartsift.h"

/* ---- A growing list of pairs of images, or of frames: every way of choosing pairs fills one. */

/* In the order in which they are matched; indices of the images. */
typedef struct pair_list {
  hs_image_pair *each;
  size_t count;
  size_t left_out; /* lines of a file with an image that the database has not */
} pair_list;

/* Adds a pair at the end; false: no memory. */
bool pair_list_add(pair_list *pairs, size_t first, size_t second);

/* Sorts by first, then second, and drops what is there twice. */
void pair_list_settle(pair_list *pairs);

void pair_list_free(pair_list *pairs);

/* ---- The pairs that --pairs asks for. */

/* What pairs are chosen by. */
typedef struct pair_source {
  const option_set *set;
  const database_images *images;
  hs_colmap_database *database; /* of the images: their positions and features */
  hs_context *context;          /* its processor looks for images that look alike */
  uint64_t max_memory_bytes;    /* 0: any */
} pair_source;

/* Whether --pairs has a form that pair_list_make knows; prints why if not. */
cli_exit pair_list_check(const option_set *set);

/* Fills the empty *pairs as the options say. Prints why when it fails; what was added is freed by pair_list_free in any
   case. */
cli_exit pair_list_make(const pair_source *source, pair_list *pairs);

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

#endif
