/*
 * Lists of pairs of images: room, order, and who is whose neighbour.
 */
#ifndef HARTSIFT_RETRIEVAL_IMAGE_PAIRS_H
#define HARTSIFT_RETRIEVAL_IMAGE_PAIRS_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

/* Adds a pair, the smaller number first. False: no memory. */
bool image_pairs_add(hs_image_pairs *pairs, uint32_t one, uint32_t other);

/* Sorts by first, then second, and drops what is there twice. */
void image_pairs_settle(hs_image_pairs *pairs);

/* An image that another may be paired with, and how far it is. */
typedef struct neighbor {
  double distance;
  uint32_t image;
} neighbor;

/* Keeps the `room` nearest of those that are offered one by one: near[0..*count) is a heap with the farthest in front.
   Of equally far ones the smaller number is nearer. */
void neighbor_offer(neighbor *near, uint32_t *count, uint32_t room, neighbor offered);

#endif
