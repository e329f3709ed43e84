/*
 * What fundamental and essential matrices share beyond models.h: the epipolar constraint as a row of nine.
 */
#ifndef HARTSIFT_GEOMETRY_EPIPOLAR_H
#define HARTSIFT_GEOMETRY_EPIPOLAR_H

/* row . vec(F) = b^T F a for points of three coordinates. */
static inline void epipolar_row(const double a[3], const double b[3], double row[9]) {
  for (int i = 0; i < 9; i++) row[i] = b[i / 3] * a[i % 3];
}

#endif
