/*
 * Which pairs of a database's images are matched: all of them, or those of --pairs.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_LIST_H
#define HARTSIFT_CLI_PAIRS_PAIR_LIST_H

#include "pipeline/cli/pairs/database_images.h"

typedef struct image_pair {
  uint32_t first, second; /* indices of the images */
} image_pair;

/* In the order in which they are matched. */
typedef struct pair_list {
  image_pair *each;
  size_t count;
} pair_list;

/* Fills the empty *pairs as the options say. Prints why when it fails; what was added is freed by pair_list_free in any
   case. */
cli_exit pair_list_make(const option_set *set, const database_images *images, pair_list *pairs);

/* Adds a pair at the end; false: no memory. */
bool pair_list_add(pair_list *pairs, size_t first, size_t second);

void pair_list_free(pair_list *pairs);

#endif
