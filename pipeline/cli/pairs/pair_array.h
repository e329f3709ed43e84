/*
 * A growing list of pairs of images, or of frames: what every way of choosing pairs fills.
 */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_ARRAY_H
#define HARTSIFT_CLI_PAIRS_PAIR_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/include/hartsift.h"

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

#endif
