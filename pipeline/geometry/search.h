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
  size_t min_inliers; /* a model of fewer need not be found */
  bool check_plane;
  bool leave_rough; /* do not polish what was found */
} search_limits;

/* Room to work in, for as many matches as the problem has. */
typedef struct search_scratch {
  double *squares;
  double *columns[4];
  geometry_batch *batch;
} search_scratch;

/* Finds *best; false when no sample gave a candidate. Ends when, if the best so far or any model of min_inliers is among
   the matches, a sample without outliers has been drawn with the confidence wanted: where nothing agrees too, because
   min_inliers of few matches are soon hit. The problem's matches must be in random order. *iterations: samples
   drawn. */
bool search_run(const geometry_problem *problem, const search_limits *limits, random_state *random,
                const search_scratch *scratch, geometry_candidate *best, int32_t *iterations);

#endif
