/*
 * Exponential and logarithm in double, for tables made on the host: filter taps and the sigma schedule.
 *
 * Only sums, products and divisions in a fixed order, so that a table is the same on every machine. Relative errors are
 * below 4e-16 (tests/unit/test_elementary.c).
 */
#ifndef HS_STAGES_TABLE_MATH_H
#define HS_STAGES_TABLE_MATH_H

#include <stdint.h>
#include <string.h>

/* e^r for |r| <= 0.35 by its Taylor series; the term after the last is below 1e-19. */
static inline double table_exp_small(double r) {
  double sum = 1.0;
  for (int k = 15; k >= 1; k--) sum = 1.0 + r / (double)k * sum;
  return sum;
}

/* 2^n, n in -1022..1023. */
static inline double table_power_of_two(int32_t n) {
  const uint64_t bits = (uint64_t)(n + 1023) << 52;
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static inline int32_t table_round(double v) { return v < 0.0 ? -(int32_t)(0.5 - v) : (int32_t)(v + 0.5); }

/* 2^x for |x| < 1000. */
static inline double table_exp2(double x) {
  const int32_t n = table_round(x);
  return table_exp_small((x - (double)n) * 0.69314718055994530942) * table_power_of_two(n);
}

/* e^x for |x| < 690: x minus whole multiples of ln 2 in two parts, of which the first has few bits, so exactly. */
static inline double table_exp(double x) {
  const int32_t n = table_round(x * 1.4426950408889634074);
  const double r = (x - (double)n * 0.693147180369123816490) - (double)n * 1.90821492927058770002e-10;
  return table_exp_small(r) * table_power_of_two(n);
}

/* log2(x) for normal x > 0: 2 atanh((m - 1) / (m + 1)) of the mantissa in [0.7, 1.41), and the exponent. */
static inline double table_log2(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int32_t n = (int32_t)(bits >> 52) - 1023;
  double m = x / table_power_of_two(n);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    n++;
  }
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double sum = 0.0;
  for (int k = 27; k >= 1; k -= 2) sum = sum * z + 1.0 / (double)k;
  return (double)n + 2.0 * s * sum * 1.4426950408889634074;
}

#endif
