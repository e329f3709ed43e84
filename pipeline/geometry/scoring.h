/*
 * How good a candidate is. A match of error r contributes (1 - r^2/t^2)^3 when r is below the threshold t, else
 * nothing: one minus the truncated square min(r^2/T^2, 1), averaged over thresholds T up to t, v = T^2/t^2 with density
 * 6 v (1 - v). So no single threshold decides (the idea of MAGSAC, Barath et al. 2019, with a density that needs no
 * tables), and a reweighted least-squares fit with Tukey's biweights (1 - r^2/t^2)^2 climbs this very score.
 */
#ifndef HARTSIFT_GEOMETRY_SCORING_H
#define HARTSIFT_GEOMETRY_SCORING_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/geometry/models.h"

/* Squared errors of `count` matches from `begin` on under the candidate. */
void geometry_errors(const geometry_problem *problem, const double matrix[9], size_t begin, size_t count,
                     double *squares);

/* The candidate's score. Stops early, with a negative result, once the score cannot exceed `best` or most probably will
   not: it is more than three standard deviations below what a candidate as good would have by then. Matches must be in
   random order. best 0 or less: never abandoned. */
double geometry_score(const geometry_problem *problem, const double matrix[9], double best);

/* How many matches have an error of at most the threshold. mask: null, or a byte for each match. squares: null, or
   where the sum of the inliers' squared errors goes. */
size_t geometry_count_inliers(const geometry_problem *problem, const double matrix[9], uint8_t *mask, double *squares);

/* Local optimisation: a few rounds of reweighted least squares on some 200 of the matches that fit, the first with
   twice the threshold, coming down to it. Replaces *candidate and returns true where the score is higher. */
bool geometry_improve(const geometry_problem *problem, geometry_candidate *candidate);

/* Reweighted least squares on all matches until the score settles; *candidate never becomes worse. */
void geometry_polish(const geometry_problem *problem, geometry_candidate *candidate);

/* The samples needed until one of `sample` matches is free of outliers with probability `confidence`, if `inliers` of
   `count` matches are none; at most `most`. */
int32_t iterations_needed(size_t inliers, size_t count, int sample, double confidence, int32_t most);

#endif
