/*
 * Which matches of a pair move as their neighbours do. Along a row of equal windows wrong matches agree with an epipolar
 * geometry, because their displacements have the direction of the row; but each moves by one window or more where the
 * right matches around it do not. The measure is the disparity gradient of Burt and Julesz (Science 208, 1980), with the
 * limit of Pollard, Mayhew and Frisby (Perception 14, 1985).
 */
#ifndef HARTSIFT_GEOMETRY_SMOOTHNESS_H
#define HARTSIFT_GEOMETRY_SMOOTHNESS_H

#include "pipeline/geometry/models.h"

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
