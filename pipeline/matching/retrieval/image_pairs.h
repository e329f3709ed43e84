/*
 * Lists of image pairs: capacity, order, and nearest neighbours.
 */
#ifndef HARTSIFT_MATCHING_RETRIEVAL_IMAGE_PAIRS_H
#define HARTSIFT_MATCHING_RETRIEVAL_IMAGE_PAIRS_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

/* Adds a pair, with the smaller index first. False: out of memory. */
bool image_pairs_add(hs_image_pairs *pairs, uint32_t one, uint32_t other);

/* Sorts the pairs by first, then second, and removes duplicates. */
void image_pairs_settle(hs_image_pairs *pairs);

/* A candidate neighbour and its distance. */
typedef struct neighbor {
  double distance;
  uint32_t image;
} neighbor;

/* Offers a candidate. near[0..*count) keeps the `capacity` nearest of all candidates so far, as a heap with the
   farthest first. At equal distance the smaller index is nearer. */
void neighbor_offer(neighbor *near, uint32_t *count, uint32_t capacity, neighbor offered);

#endif
