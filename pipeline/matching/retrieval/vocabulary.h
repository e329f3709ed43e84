/*
 * Retrieval handle, and the steps of its training.
 *
 * Centres are bytes like descriptors: exact matching assigns descriptors to centres, and all sums over descriptors are
 * integers, whose order does not matter. The other arithmetic is in double, in the order written: + - * / and square
 * roots.
 */
#ifndef HARTSIFT_MATCHING_RETRIEVAL_VOCABULARY_H
#define HARTSIFT_MATCHING_RETRIEVAL_VOCABULARY_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/context/context.h"

enum {
  SIFT_LENGTH = HS_DESCRIPTOR_LENGTH,
  ASSIGN_BLOCK = 16384 /* number of descriptors that are assigned to centres at once; 255 times this fits 32 bits */
};

struct hs_retrieval {
  hs_retrieval_options options;
  uint8_t *sample; /* [sample_count][SIFT_LENGTH]; null after training */
  size_t sample_count, sample_capacity;
  uint32_t centre_count; /* 0: not trained; less than options.centres for a small sample */
  uint8_t *centres;      /* [options.centres][SIFT_LENGTH] */
  double *axes; /* [SIFT_LENGTH][options.components]: column k is direction k divided by its standard deviation */
};

/* Returns a list of features that refers to the descriptors. */
static inline hs_features vocabulary_list(const uint8_t *descriptors, size_t count) {
  return (hs_features){
      .count = count, .descriptors = (void *)(uintptr_t)descriptors, .descriptor_type = HS_DESCRIPTOR_U8};
}

/* Finds the nearest centre of each of at most ASSIGN_BLOCK descriptors. */
static inline hs_status vocabulary_assign(const hs_retrieval *r, hs_context *context, const uint8_t *descriptors,
                                          size_t count, hs_nearest *nearest) {
  const hs_features list = vocabulary_list(descriptors, count);
  const hs_features centres = vocabulary_list(r->centres, r->centre_count);
  return hs_find_nearest(context, &list, &centres, NULL, nearest);
}

/* Computes axes from the residuals of the sample at the trained centres. */
hs_status vocabulary_find_axes(hs_retrieval *r, hs_context *context);

/* Computes the eigenvalues (descending) of a symmetric [SIFT_LENGTH][SIFT_LENGTH] matrix, which is destroyed, and the
   unit eigenvectors as rows. */
void symmetric_eigen(double *matrix, double *values, double *vectors);

/* ---- conversion of double vectors to 8 bits */

/* Returns the factor by which the largest magnitude becomes 127; 0 for 0. */
static inline double vector_scale(double largest) { return largest > 0.0 ? 127.0 / largest : 0.0; }

/* Rounds to the nearest integer; halves away from 0. */
static inline int8_t rounded_number(double v) { return (int8_t)(int)(v + copysign(0.5, v)); }

/* Scales values so that the largest magnitude becomes 127, and rounds them. If all are 0, the result is 0. */
static inline void rounded_vector(const double *values, size_t count, int8_t *vector) {
  double largest = 0.0;
  for (size_t i = 0; i < count; i++) {
    const double magnitude = fabs(values[i]);
    largest = largest < magnitude ? magnitude : largest; /* a function call each if written as fmax */
  }
  const double scale = vector_scale(largest);
  for (size_t i = 0; i < count; i++) vector[i] = rounded_number(values[i] * scale);
}

#endif
