/* Small functions without dependencies: 3x3 matrices and random numbers. */
#ifndef HARTSIFT_BASE_NUMBER_TOOLS_H
#define HARTSIFT_BASE_NUMBER_TOOLS_H

#include <stdint.h>

/* ---- 3x3 matrices of doubles, row by row */

/* Computes the adjugate: m * adjugate = determinant * I, so it is the inverse times the determinant. out must not be
   m. */
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

/* ---- The generator splitmix64 (Steele, Lea, Flood 2014): number n of a stream is splitmix64_mix(seed + (n + 1) *
   STEP). */

#define SPLITMIX64_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Finalises a state of splitmix64: a bijection that mixes all bits. */
static inline uint64_t splitmix64_mix(uint64_t value) {
  value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}

#endif
