/*
 * 3x3 matrices of doubles, row by row, for files that need no other linear algebra.
 */
#ifndef HARTSIFT_BASE_MATRIX3_H
#define HARTSIFT_BASE_MATRIX3_H

/* The adjugate: m * adjugate = determinant * I, so the inverse up to a factor. out must not be m. */
static inline void matrix3_adjugate(const double m[9], double out[9]) {
  out[0] = m[4] * m[8] - m[5] * m[7];
  out[1] = m[2] * m[7] - m[1] * m[8];
  out[2] = m[1] * m[5] - m[2] * m[4];
  out[3] = m[5] * m[6] - m[3] * m[8];
  out[4] = m[0] * m[8] - m[2] * m[6];
  out[5] = m[2] * m[3] - m[0] * m[5];
  out[6] = m[3] * m[7] - m[4] * m[6];
  out[7] = m[1] * m[6] - m[0] * m[7];
  out[8] = m[0] * m[4] - m[1] * m[3];
}

#endif
