/*
 * Arrays for the tests of the primitives: every type, with contents that break reductions.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_ARRAY_MAKER_H
#define HARTSIFT_TESTS_SUPPORT_ARRAY_MAKER_H

#include <stddef.h>

#include "stages/primitives.h"

typedef enum array_content {
  CONTENT_RANDOM,   /* integers: any value; floats: both signs, over some powers of two */
  CONTENT_CONSTANT, /* one value */
  CONTENT_WIDE,     /* floats over the whole range of exponents, so that sums lose much; integers as random */
  CONTENT_SOME_NAN, /* random with NaN (payloads, both signs), infinities of one sign, both zeros */
  CONTENT_ALL_NAN,  /* floats: NaN alone; integers: the largest value */
  CONTENT_ZEROS,    /* floats: zeros of both signs */
  CONTENT_COUNT
} array_content;

/* Fills n elements of a type. Equal seeds give equal contents. */
void array_fill(void *data, prim_element type, size_t n, array_content content, uint64_t seed);

/* Returns element i as double. */
double array_element(const void *data, prim_element type, size_t i);

#endif
