/*
 * How many random samples are enough (Fischler and Bolles 1981).
 */
#ifndef HARTSIFT_GEOMETRY_ITERATIONS_H
#define HARTSIFT_GEOMETRY_ITERATIONS_H

#include <stddef.h>
#include <stdint.h>

/* The samples needed until one of `sample` matches is free of outliers with probability `confidence`, if `inliers` of
   `count` matches are none; at most `most`. */
int32_t iterations_needed(size_t inliers, size_t count, int sample, double confidence, int32_t most);

#endif
