/*
 * Robust search for a model: random minimal samples, local optimisation of every new best candidate, and an
 * adaptive number of iterations (Fischler and Bolles 1981; Chum, Matas and Kittler 2003; Lebeda, Matas and Chum 2012).
 */
#ifndef HARTSIFT_MATCHING_GEOMETRY_SEARCH_H
#define HARTSIFT_MATCHING_GEOMETRY_SEARCH_H

#include <stdint.h>

#include "pipeline/base/number_tools.h"
#include "pipeline/matching/geometry/models.h"

/* ---- Random numbers of the search: splitmix64, the same sequence on every machine. */

typedef struct random_state {
  uint64_t counter;
} random_state;

static inline uint64_t random_next(random_state *state) {
  state->counter += SPLITMIX64_STEP;
  return splitmix64_mix(state->counter);
}

/* Returns a random number 0..limit-1; the probabilities differ by less than 2^-32 * limit. */
static inline uint32_t random_below(random_state *state, uint32_t limit) {
  return (uint32_t)(((random_next(state) >> 32) * limit) >> 32);
}

/* Draws `count` different numbers below limit (count <= limit). */
static inline void random_sample(random_state *state, uint32_t limit, int count, uint32_t *out) {
  for (int i = 0; i < count;) {
    out[i] = random_below(state, limit);
    int j = 0;
    while (j < i && out[j] != out[i]) j++;
    i += j == i;
  }
}

typedef struct search_limits {
  double confidence;
  int32_t min_iterations, max_iterations;
  size_t min_inliers; /* models with fewer inliers are not searched for */
  bool check_plane;
  bool leave_rough; /* true: the result is not polished */
} search_limits;

/* Working memory for the problem's matches. */
typedef struct search_scratch {
  double *squares;
  double *columns[4];
  uint64_t *twins; /* [match]: a bit for each of its points that it may share with another match */
  geometry_batch *batch;
} search_scratch;

/* Searches for *best; false if no sample gave a candidate. The search ends when, with the requested confidence, a
   sample without outliers of the best model so far has been drawn. It also ends when a model of min_inliers would have
   been found with that confidence, but none was. The problem's matches must be in random order. *iterations: number of
   samples drawn. */
bool search_run(const geometry_problem *problem, const search_limits *limits, random_state *random,
                const search_scratch *scratch, geometry_candidate *best, int32_t *iterations);

/* ---- Fundamental matrices whose inliers are mostly in one plane. */

/* Improves a fundamental matrix whose sample is mostly in a plane: if one homography relates five or more of the seven
   sampled matches, only the other two determine the matrix. Finds the plane of that homography, and a matrix from the
   plane and two matches off it. If its score is higher, replaces *candidate (reads and writes matrix and score). */
void plane_complete(const geometry_problem *problem, const uint32_t *sample, random_state *random,
                    const search_scratch *scratch, geometry_candidate *candidate);

/* Sets *matrix to [e']x H, where e' is the epipole of *matrix in image b; matches in the plane of H satisfy it for any
   e'. False: there is no epipole, and *matrix is unchanged. */
bool plane_epipolar(const double homography[9], double matrix[9]);

/* ---- Smoothness of matches. Wrong matches along a row of equal windows agree with an epipolar geometry, because their
   displacements are parallel to the row. But these displacements differ from those of correct neighbours by at least
   the distance of two windows. The measure is the disparity gradient of Burt and Julesz (Science 208, 1980), with the
   limit of Pollard, Mayhew and Frisby (Perception 14, 1985). */

/* Working memory, one element per match. */
typedef struct smoothness_scratch {
  double *mapped_x, *mapped_y; /* coordinates of H a in image b */
  uint32_t *order;             /* matches sorted by grid cell */
  uint32_t *cell;              /* [match]: its grid cell */
} smoothness_scratch;

/* Marks smooth matches: smooth[i] is 1 if, for enough of the nearest neighbours of match i, the displacement b - H a
   differs from that of match i by at most max(floor, distance of the two matches). Neighbours are taken in image b,
   once around H a and once around b; both must agree. A match that H sends to infinity is not smooth. floor: working
   units. Only the first `tested` matches are tested. Returns the number of smooth ones. */
size_t smoothness_mark(const geometry_matches *matches, const double homography[9], double floor,
                       const smoothness_scratch *scratch, size_t tested, uint8_t *smooth);

#endif
