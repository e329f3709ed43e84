/*
 * Feature lists for tests: made from a seed, compared, checked for consistency.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_FEATURE_MAKER_H
#define HARTSIFT_TESTS_SUPPORT_FEATURE_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

typedef enum feature_style {
  FEATURES_U8,
  FEATURES_UNIT_F32,   /* unit norm */
  FEATURES_SCALED_F32, /* integer values 0..255 */
  FEATURES_NONE
} feature_style;

/* Makes plausible features of an image of 640 x 480 in UBC bin order: octaves -1..4, levels 1..3, matching sigma,
 * orientations including 0 and the largest below 2 pi. The caller frees them with hs_features_free. */
void feature_maker_fill(hs_features *features, size_t count, feature_style style, uint32_t seed);

/* Reverses the bin order of every cell. */
void feature_maker_swap_bins(hs_features *features);

/* Returns whether a list satisfies what a reader guarantees for any file: arrays exist, values are finite, sigma > 0,
 * angles are in range. */
bool feature_maker_consistent(const hs_features *features);

/* Returns the next number of a small generator. */
uint32_t feature_maker_random(uint32_t *state);

#endif
