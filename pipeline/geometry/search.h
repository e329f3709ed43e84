/*
 * The robust search for a model: random minimal samples, local optimisation of every new best candidate, and an
 * adaptive number of iterations (Fischler and Bolles 1981; Chum, Matas and Kittler 2003; Lebeda, Matas and Chum 2012).
 */
#ifndef HARTSIFT_GEOMETRY_SEARCH_H
#define HARTSIFT_GEOMETRY_SEARCH_H

#include "pipeline/geometry/models.h"
#include "pipeline/geometry/random.h"

typedef struct search_limits {
  double confidence;
  int32_t min_iterations, max_iterations;
  bool check_plane;
} search_limits;

/* Finds *best; false when no sample gave a candidate. The problem's matches must be in random order. squares: room for
   a number for each match. *iterations: samples drawn. */
bool search_run(const geometry_problem *problem, const search_limits *limits, random_state *random, double *squares,
                geometry_candidate *best, int32_t *iterations);

/* The samples needed until one of `sample` matches is free of outliers with probability `confidence`, if `inliers` of
   `count` matches are none; at most `most`. */
int32_t search_iterations_needed(size_t inliers, size_t count, int sample, double confidence, int32_t most);

#endif
