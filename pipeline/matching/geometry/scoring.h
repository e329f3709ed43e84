/*
 * Score of a candidate. A match of error r contributes (1 - r^2/t^2)^3 if r is below the threshold t, else 0: one minus
 * the truncated square min(r^2/T^2, 1), averaged over thresholds T up to t, v = T^2/t^2 with density 6 v (1 - v). So no
 * single threshold decides, as in MAGSAC (Barath et al. 2019) but with a density that needs no tables. A reweighted
 * least-squares fit with Tukey's biweights (1 - r^2/t^2)^2 maximises this score.
 */
#ifndef HARTSIFT_MATCHING_GEOMETRY_SCORING_H
#define HARTSIFT_MATCHING_GEOMETRY_SCORING_H

#include <stddef.h>
#include <stdint.h>

#include "pipeline/matching/geometry/models.h"

/* Computes the squared errors of `count` matches from `begin` on under the candidate. */
void geometry_errors(const geometry_problem *problem, const double matrix[9], size_t begin, size_t count,
                     double *squares);

/* Returns the candidate's score. Stops early with a negative result if the score cannot exceed `best`, or most probably
   will not: the partial score is more than three standard deviations below the one expected of an equally good
   candidate. Matches must be in random order. With best <= 0 it never stops early. */
double geometry_score(const geometry_problem *problem, const double matrix[9], double best);

/* Counts the matches with an error up to the threshold. mask: null, or one byte per match. squares: null, or receives
   the sum of the inliers' squared errors. */
size_t geometry_count_inliers(const geometry_problem *problem, const double matrix[9], uint8_t *mask, double *squares);

/* Local optimisation: some rounds of reweighted least squares on about 200 matches that fit, while the threshold
   decreases from twice the problem's threshold to that threshold. If the score is higher, replaces *candidate and
   returns true. */
bool geometry_improve(const geometry_problem *problem, geometry_candidate *candidate);

/* Runs reweighted least squares on all matches until the score converges; *candidate never becomes worse. */
void geometry_polish(const geometry_problem *problem, geometry_candidate *candidate);

/* Returns how many samples of `sample` matches must be drawn until one has no outliers with probability `confidence`,
   if `inliers` of `count` matches are correct; at most `most`. */
int32_t iterations_needed(size_t inliers, size_t count, int sample, double confidence, int32_t most);

#endif
