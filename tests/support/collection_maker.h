/*
 * Collections for tests of many pairs: views of one synthetic scene from neighbouring positions, with similar
 * descriptors for the same point, and some features that no other view has.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_COLLECTION_MAKER_H
#define HARTSIFT_TESTS_SUPPORT_COLLECTION_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

enum { COLLECTION_IMAGES_MAX = 64 };

typedef struct test_collection {
  size_t count;
  hs_features features[COLLECTION_IMAGES_MAX];
  hs_camera cameras[COLLECTION_IMAGES_MAX]; /* cameras of the scene's views */
  hs_image_pair *pairs;                     /* all pairs of images */
  size_t pair_count;
} test_collection;

/* Makes images of up to features_allowed features each. With 4 images or more, the second image has no feature and the
 * third has one. Every second pair of neighbours overlaps little. */
void collection_maker_fill(test_collection *collection, size_t images, size_t features_allowed, hs_descriptor_type type,
                           uint32_t seed);
void collection_maker_free(test_collection *collection);

/* Puts the pairs into another order and exchanges the images of some. */
void collection_maker_shuffle(test_collection *collection, uint32_t seed);

#endif
