/*
 * What a retrieval handle holds, and the steps of its training.
 *
 * Centres are bytes like descriptors, so that the exact matching of the processor at hand assigns descriptors to them, and
 * all sums over descriptors are of integers: they do not depend on the order. What follows is arithmetic of doubles in the
 * order written: + - * / and square roots.
 */
#ifndef HARTSIFT_RETRIEVAL_VOCABULARY_H
#define HARTSIFT_RETRIEVAL_VOCABULARY_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/context/context.h"

enum {
  SIFT_LENGTH = HS_DESCRIPTOR_LENGTH,
  ASSIGN_BLOCK = 16384 /* descriptors that are assigned to centres at once; 255 times that fits 32 bits */
};

struct hs_retrieval {
  hs_retrieval_options options;
  uint8_t *sample; /* [sample_count][SIFT_LENGTH]; null once it is trained */
  size_t sample_count, sample_room;
  uint32_t centre_count; /* 0: not trained; fewer than options.centres of a smaller sample */
  uint8_t *centres;      /* [options.centres][SIFT_LENGTH] */
  double *axes;          /* [SIFT_LENGTH][options.components]: column k is direction k over its standard deviation */
};

/* A list of descriptors as a list of features. */
static inline hs_features vocabulary_list(const uint8_t *descriptors, size_t count) {
  return (hs_features){
      .count = count, .descriptors = (void *)(uintptr_t)descriptors, .descriptor_type = HS_DESCRIPTOR_U8};
}

/* The centre nearest to each of at most ASSIGN_BLOCK descriptors. */
static inline hs_status vocabulary_assign(const hs_retrieval *r, hs_context *context, const uint8_t *descriptors,
                                          size_t count, hs_nearest *nearest) {
  const hs_features list = vocabulary_list(descriptors, count);
  const hs_features centres = vocabulary_list(r->centres, r->centre_count);
  return hs_find_nearest(context, &list, &centres, NULL, nearest);
}

/* Fills axes from the residuals of the sample at the trained centres. */
hs_status vocabulary_find_axes(hs_retrieval *r, hs_context *context);

/* The eigenvalues, descending, of a symmetric [SIFT_LENGTH][SIFT_LENGTH] matrix, which is destroyed, and row by row the
   unit vectors that belong to them. */
void symmetric_eigen(double *matrix, double *values, double *vectors);

/* Vectors of 8-bit numbers made of doubles. */

/* Rounds so that the largest magnitude becomes 127; all 0 where it is 0. */
static inline void rounded_vector(const double *values, size_t count, int8_t *vector) {
  double largest = 0.0;
  for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(values[i]));
  const double scale = largest > 0.0 ? 127.0 / largest : 0.0;
  for (size_t i = 0; i < count; i++) {
    const double v = values[i] * scale;
    vector[i] = (int8_t)(v < 0.0 ? -(int)(0.5 - v) : (int)(v + 0.5));
  }
}

#endif
