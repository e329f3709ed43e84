/*
 * Fundamental matrices whose support lies mostly in one plane.
 */
#ifndef HARTSIFT_GEOMETRY_PLANE_H
#define HARTSIFT_GEOMETRY_PLANE_H

#include "pipeline/geometry/search.h"

/* If five or more of the seven sampled matches are related by one homography, the fundamental matrix through them is
   decided by the other two alone. Then finds that homography's plane and looks for a better matrix through the plane
   and two matches off it; replaces *candidate (of which matrix and score are read) where one scores higher. */
void plane_complete(const geometry_problem *problem, const uint32_t *sample, random_state *random,
                    const search_scratch *scratch, geometry_candidate *candidate);

/* *matrix becomes [e']x H, e' its epipole in image b, which the matches of the plane of H satisfy whatever e' is. False:
   it has no epipole; it stays. */
bool plane_epipolar(const double homography[9], double matrix[9]);

#endif
