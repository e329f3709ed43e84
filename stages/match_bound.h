/*
 * A lower bound of the distance of two 8-bit descriptors. It rules out most candidates of a match, whose distances then
 * need not be computed.
 *
 * A descriptor is projected onto 24 directions T, which hold four fifths of the variance of SIFT descriptors. The mean
 * is subtracted, the result scaled, shrunk into a ball and cut to a box:
 *
 *   v = box(ball(SCALE / NORM (T descriptor - T mean))),    |T(a - b)| <= NORM |a - b|
 *
 * SCALE, ball and box are twice as large if `fineness` is 2, for lanes of more than 16 bits: rounding then matters
 * less. Ball and box are convex. Moving two points to their nearest points in a convex set never increases their
 * distance, so |v_a - v_b| <= SCALE |a - b|. u is v rounded, and error = |v - u|:
 *
 *   |u_a - u_b| <= SCALE |a - b| + error_a + error_b
 *
 * A candidate whose |u_a - u_b|^2 exceeds match_bound_limit(s, error_a + error_b) is farther than s. This holds for any
 * descriptors; the directions only decide how many are ruled out.
 */
#ifndef HARTSIFT_STAGES_MATCH_BOUND_H
#define HARTSIFT_STAGES_MATCH_BOUND_H

#include "stages/match.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MATCH_BOUND_VALUES = 24, MATCH_BOUND_MAX = 63, MATCH_BOUND_FINENESS_MAX = 2 };
#define MATCH_BOUND_SCALE  0.35
#define MATCH_BOUND_RADIUS 126.0
#define MATCH_BOUND_NORM   326.0 /* an upper bound of the largest singular value of T */

/* The matrix T, and the product of T and the mean. */
extern const int8_t match_bound_directions[MATCH_BOUND_VALUES][MATCH_LENGTH];
extern const int32_t match_bound_means[MATCH_BOUND_VALUES];

/* The largest |u|^2: (126 fineness + sqrt(24) / 2)^2, rounded down. */
#define MATCH_BOUND_NORM_MAX(fineness) ((fineness) == 1 ? 16499 : 64744)

/* Vector u of a descriptor, |u|^2, and the error. */
typedef struct match_bound {
  int8_t values[MATCH_BOUND_VALUES];
  int32_t norm;
  float error;
} match_bound;

/* Computes the bound's vector. sums: the product of T and the descriptor. fineness: 1 or 2. */
match_bound match_bound_of(const int32_t sums[MATCH_BOUND_VALUES], int32_t fineness);

/* Returns the largest |u_a - u_b|^2 of two descriptors whose squared distance is at most `squared`. Infinity gives
 * infinity. */
double match_bound_limit(double squared, float errors, int32_t fineness);

#ifdef __cplusplus
}
#endif
#endif
