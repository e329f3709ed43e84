/*
 * The robust search for a model: random minimal samples, local optimisation of every new best candidate, and an
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

/* Fundamental matrices whose support lies mostly in one plane. */

/* If five or more of the seven sampled matches are related by one homography, the fundamental matrix through them is
   decided by the other two alone. Then finds that homography's plane and looks for a better matrix through the plane
   and two matches off it; replaces *candidate (of which matrix and score are read) where one scores higher. */
void plane_complete(const geometry_problem *problem, const uint32_t *sample, random_state *random,
                    const search_scratch *scratch, geometry_candidate *candidate);

/* *matrix becomes [e']x H, e' its epipole in image b, which the matches of the plane of H satisfy whatever e' is. False:
   it has no epipole; it stays. */
bool plane_epipolar(const double homography[9], double matrix[9]);

/* Which matches of a pair move as their neighbours do. Along a row of equal windows wrong matches agree with an epipolar
   geometry, because their displacements have the direction of the row; but each moves by one window or more where the
   right matches around it do not. The measure is the disparity gradient of Burt and Julesz (Science 208, 1980), with the
   limit of Pollard, Mayhew and Frisby (Perception 14, 1985). */

/* Working memory for as many elements as there are matches. */
typedef struct smoothness_scratch {
  double *mapped_x, *mapped_y; /* H a, image b's coordinates */
  uint32_t *order;             /* matches sorted by cell */
  uint32_t *cell;              /* of each match */
} smoothness_scratch;

/* smooth[i]: 1 where enough of the nearest neighbours of match i have a displacement b - H a that differs from match
   i's by at most max(floor, their distance). Neighbours are taken in image b, around H a and around b, and both must
   agree. A match that H sends to infinity is not smooth. floor: working units. Marks the first `tested` matches, at most
   all, and returns how many of them are smooth. */
size_t smoothness_mark(const geometry_matches *matches, const double homography[9], double floor,
                       const smoothness_scratch *scratch, size_t tested, uint8_t *smooth);

#endif
