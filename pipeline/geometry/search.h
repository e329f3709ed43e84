/*
 * Robust search for a model: random minimal samples, local optimisation of every new best candidate, and an
 * adaptive number of iterations (Fischler and Bolles 1981; Chum, Matas and Kittler 2003; Lebeda, Matas and Chum 2012).
 */
#ifndef HARTSIFT_GEOMETRY_SEARCH_H
#define HARTSIFT_GEOMETRY_SEARCH_H

#include <stdint.h>

#include "pipeline/base/number_tools.h"
#include "pipeline/geometry/models.h"

/* Random numbers of the search: splitmix64, the same sequence everywhere. */

typedef struct random_state {
  uint64_t counter;
} random_state;

static inline uint64_t random_next(random_state *state) {
  state->counter += SPLITMIX64_STEP;
  return splitmix64_mix(state->counter);
}

/* 0..limit-1; uniform to 2^-32 * limit. */
static inline uint32_t random_below(random_state *state, uint32_t limit) {
  return (uint32_t)(((random_next(state) >> 32) * limit) >> 32);
}

/* `count` different numbers below limit (count <= limit). */
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
  size_t min_inliers; /* models with fewer inliers are irrelevant */
  bool check_plane;
  bool leave_rough; /* skip polishing */
} search_limits;

/* Working memory for the problem's matches. */
typedef struct search_scratch {
  double *squares;
  double *columns[4];
  geometry_batch *batch;
} search_scratch;

/* Finds *best; false if no sample gave a candidate. Ends when a sample without outliers was drawn with the requested
   confidence, for the best model so far or any model of min_inliers. This also ends a search without any model,
   because few matches make min_inliers likely. The problem's matches must be in random order. *iterations: samples
   drawn. */
bool search_run(const geometry_problem *problem, const search_limits *limits, random_state *random,
                const search_scratch *scratch, geometry_candidate *best, int32_t *iterations);

/* Fundamental matrices whose support is mostly in one plane. */

/* If five or more of the seven sampled matches are related by one homography, the other two alone determine the
   fundamental matrix. Then finds that homography's plane and a better matrix from the plane and two matches off it;
   replaces *candidate (uses matrix and score) if one scores higher. */
void plane_complete(const geometry_problem *problem, const uint32_t *sample, random_state *random,
                    const search_scratch *scratch, geometry_candidate *candidate);

/* *matrix becomes [e']x H, e' its epipole in image b; matches of the plane of H satisfy it for any e'. False: no
   epipole, *matrix unchanged. */
bool plane_epipolar(const double homography[9], double matrix[9]);

/* Smoothness of matches: wrong matches along a row of equal windows agree with an epipolar geometry, because their
   displacements are parallel to the row; but they differ from correct neighbours by one window or more. The measure
   is the disparity gradient of Burt and Julesz (Science 208, 1980), with the limit of Pollard, Mayhew and Frisby
   (Perception 14, 1985). */

/* Working memory, one element per match. */
typedef struct smoothness_scratch {
  double *mapped_x, *mapped_y; /* H a, image b's coordinates */
  uint32_t *order;             /* matches sorted by cell */
  uint32_t *cell;              /* of each match */
} smoothness_scratch;

/* smooth[i]: 1 if enough nearest neighbours of match i have a displacement b - H a that differs from match i's by at
   most max(floor, their distance). Neighbours are taken in image b, around H a and around b; both must agree. A
   match that H sends to infinity is not smooth. floor: working units. Marks the first `tested` matches (at most all)
   and returns the number of smooth ones. */
size_t smoothness_mark(const geometry_matches *matches, const double homography[9], double floor,
                       const smoothness_scratch *scratch, size_t tested, uint8_t *smooth);

#endif
