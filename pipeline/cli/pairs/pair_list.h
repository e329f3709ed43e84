/*
 * Which pairs of a database's images are matched: all of them, or those of --pairs: neighbours by name or place, images
 * that look alike, or a list of names.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_LIST_H
#define HARTSIFT_CLI_PAIRS_PAIR_LIST_H

#include "pipeline/cli/pairs/database_images.h"
#include "pipeline/cli/pairs/pair_array.h"

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

#endif
