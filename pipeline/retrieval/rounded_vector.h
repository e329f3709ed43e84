/*
 * Vectors of 8-bit numbers made of doubles.
 */
#ifndef HARTSIFT_RETRIEVAL_ROUNDED_VECTOR_H
#define HARTSIFT_RETRIEVAL_ROUNDED_VECTOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

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
