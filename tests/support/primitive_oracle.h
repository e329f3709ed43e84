/*
 * Oracle of the primitives, written from their public description alone, without any of the library's code: element by
 * element, in the widest arithmetic.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_PRIMITIVE_ORACLE_H
#define HARTSIFT_TESTS_SUPPORT_PRIMITIVE_ORACLE_H

#include "pipeline/include/hartsift.h"

/* Returns element (x, y) as double. */
double oracle_element(const hs_array *array, size_t x, size_t y);

/* Returns the part of an array that begins at (x, y). */
hs_array oracle_part(const hs_array *array, size_t x, size_t y, size_t width, size_t height);

/* Sum, mean, range and count of all elements. magnitude: sum of |x|, for error bounds. */
typedef struct oracle_figures {
  hs_tile figures;            /* the sum in the documented order */
  long double sum, magnitude; /* the sum in long double, in element order */
} oracle_figures;

oracle_figures oracle_reduce(const hs_array *array, double threshold);

/* Returns a sample of a row that is extended beyond its ends. */
double oracle_sample(const hs_array *signal, size_t row, long long i, hs_ends ends);

/* Returns one output of a convolution in long double, with taps rounded to the signal's type. *magnitude receives the
 * sum of |c x|. */
long double oracle_convolve(const hs_array *signal, size_t row, size_t i, const double *taps, size_t tap_count,
                            hs_ends ends, long double *magnitude);

#endif
