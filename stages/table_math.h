/*
 * Elementary functions in double for the host: filter taps, the sigma schedule, and numbers written to files.
 *
 * Only sums, products and divisions in a fixed order, so that a table or a file is the same on every machine. Relative
 * errors are below 4e-16; absolute errors of sine, cosine and angle below 6e-16 (tests/unit/test_elementary.c).
 */
#ifndef HARTSIFT_STAGES_TABLE_MATH_H
#define HARTSIFT_STAGES_TABLE_MATH_H

#include <stdint.h>
#include <string.h>

/* Returns e^r for |r| <= 0.35 by the Taylor series; the first omitted term is below 1e-19. */
static inline double table_exp_small(double r) {
  double sum = 1.0;
  for (int k = 15; k >= 1; k--) sum = 1.0 + r / (double)k * sum;
  return sum;
}

/* Returns 2^n, n in -1022..1023. */
static inline double table_power_of_two(int32_t n) {
  const uint64_t bits = (uint64_t)(n + 1023) << 52;
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static inline int32_t table_round(double v) { return v < 0.0 ? -(int32_t)(0.5 - v) : (int32_t)(v + 0.5); }

/* Returns 2^x for |x| < 1000. */
static inline double table_exp2(double x) {
  const int32_t n = table_round(x);
  return table_exp_small((x - (double)n) * 0.69314718055994530942) * table_power_of_two(n);
}

/* Returns e^x for |x| < 690. A multiple of ln 2 is subtracted from x in two parts; the first part of ln 2 has few
 * bits, so its multiples are exact. */
static inline double table_exp(double x) {
  const int32_t n = table_round(x * 1.4426950408889634074);
  const double r = (x - (double)n * 0.693147180369123816490) - (double)n * 1.90821492927058770002e-10;
  return table_exp_small(r) * table_power_of_two(n);
}

/* Returns log2(x) for normal x > 0: the exponent, plus the logarithm of the mantissa m in [0.7, 1.41) computed as 2
 * atanh((m - 1) / (m + 1)) / ln 2. */
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

/* Computes sine and cosine for |x| < 1e5. A multiple of pi/2 is subtracted from x in two parts; the first part of
 * pi/2 has few bits, so its multiples are exact. Taylor series follow. */
static inline void table_sincos(double x, double *sine, double *cosine) {
  const int32_t quarter = table_round(x * 0.63661977236758134308);
  const double r = (x - (double)quarter * 1.57079632673412561417) - (double)quarter * 6.07710050650619224932e-11;
  const double z = r * r;
  double s = 1.0, c = 1.0;
  for (int k = 20; k >= 2; k -= 2) {
    s = 1.0 - z / (double)(k * (k + 1)) * s;
    c = 1.0 - z / (double)(k * (k - 1)) * c;
  }
  s = s * r;
  const double sin_abs = quarter & 1 ? c : s, cos_abs = quarter & 1 ? s : c;
  *sine = quarter & 2 ? -sin_abs : sin_abs;
  *cosine = (quarter + 1) & 2 ? -cos_abs : cos_abs;
}

/* Returns the angle of (x, y) in (-pi, pi]; 0 for (0, 0). Arguments must be finite, and their ratio must not
 * overflow. */
static inline double table_atan2(double y, double x) {
  const double quarter_pi = 0.78539816339744830962;
  const double ax = x < 0.0 ? -x : x, ay = y < 0.0 ? -y : y;
  const double most = ax > ay ? ax : ay, least = ax > ay ? ay : ax;
  if (!(most > 0.0)) return 0.0;
  double t = least / most;
  const int turned = t > 0.41421356237309504880; /* the tangent of pi/8 */
  if (turned) t = (t - 1.0) / (t + 1.0);
  double sum = 0.0;
  for (int k = 45; k >= 1; k -= 2) sum = 1.0 / (double)k - t * t * sum;
  double angle = turned ? quarter_pi + t * sum : t * sum;
  if (ay > ax) angle = 2.0 * quarter_pi - angle;
  if (x < 0.0) angle = 4.0 * quarter_pi - angle;
  return y < 0.0 ? -angle : angle;
}

#endif
