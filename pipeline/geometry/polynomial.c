/*
 * Real roots of polynomials of small degree. Between two neighbouring roots of its derivative a polynomial has at most
 * one root, so the roots of the linear derivative lead to those of the quadratic one and so on up to the polynomial
 * itself. Everything happens in [-1, 1]: roots beyond are the reciprocals of those of the reversed polynomial.
 */
#include "pipeline/geometry/polynomial.h"

#include <math.h>
#include <stdbool.h>

static double value_at(const double *coefficients, int degree, double x) {
  double value = coefficients[degree];
  for (int i = degree - 1; i >= 0; i--) value = value * x + coefficients[i];
  return value;
}

/* The root in [low, high], where the signs differ: Newton's steps, or halving where one leaves the bracket, until a
   step is at most `accuracy`. derivative: of degree - 1. */
static double bracketed_root(const double *coefficients, const double *derivative, int degree, double low, double high,
                             double accuracy) {
  const bool rising = value_at(coefficients, degree, low) < 0.0;
  double x = 0.5 * (low + high);
  for (int i = 0; i < 80; i++) {
    const double value = value_at(coefficients, degree, x);
    if (value == 0.0) break;
    if ((value < 0.0) == rising)
      low = x;
    else
      high = x;
    const double slope = value_at(derivative, degree - 1, x);
    const double newton = x - value / slope;
    const double next = newton > low && newton < high ? newton : 0.5 * (low + high);
    const double moved = fabs(next - x);
    x = next;
    if (moved <= accuracy) break;
  }
  return x;
}

/* Roots in [-1, 1] of derivatives[degree], given those of the next lower one. */
static int roots_between(double derivatives[][POLYNOMIAL_DEGREE_MAX + 1], int degree, const double *turns,
                         int turn_count, double accuracy, double *roots) {
  const double *const coefficients = derivatives[degree], *const derivative = derivatives[degree - 1];
  int count = 0;
  double low = -1.0, at_low = value_at(coefficients, degree, low);
  for (int i = 0; i <= turn_count && count < degree; i++) {
    const double high = i < turn_count ? turns[i] : 1.0;
    const double at_high = value_at(coefficients, degree, high);
    if (at_low == 0.0)
      roots[count++] = low;
    else if ((at_low < 0.0 && at_high > 0.0) || (at_low > 0.0 && at_high < 0.0))
      roots[count++] = bracketed_root(coefficients, derivative, degree, low, high, accuracy);
    low = high;
    at_low = at_high;
  }
  if (at_low == 0.0 && count < degree) roots[count++] = low;
  return count;
}

static int roots_within_one(const double *coefficients, int degree, double *roots) {
  double derivatives[POLYNOMIAL_DEGREE_MAX + 1][POLYNOMIAL_DEGREE_MAX + 1]; /* [d]: the one of degree d */
  for (int i = 0; i <= degree; i++) derivatives[degree][i] = coefficients[i];
  for (int d = degree - 1; d >= 0; d--)
    for (int i = 0; i <= d; i++) derivatives[d][i] = derivatives[d + 1][i + 1] * (double)(i + 1);
  double turns[POLYNOMIAL_DEGREE_MAX];
  int count = 0;
  for (int d = 1; d <= degree; d++) {
    for (int i = 0; i < count; i++) turns[i] = roots[i];
    /* brackets need not be exact: two roots as near as this are lost, which rounding may do as well */
    count = roots_between(derivatives, d, turns, count, d == degree ? 1.0e-15 : 1.0e-8, roots);
  }
  return count;
}

int polynomial_real_roots(const double *coefficients, int degree, double *roots) {
  double largest = 0.0;
  for (int i = 0; i <= degree; i++) largest = fabs(coefficients[i]) > largest ? fabs(coefficients[i]) : largest;
  if (degree < 1 || !(largest > 0.0) || !isfinite(largest)) return 0;
  int count = roots_within_one(coefficients, degree, roots);
  double reversed[POLYNOMIAL_DEGREE_MAX + 1], reciprocals[POLYNOMIAL_DEGREE_MAX];
  for (int i = 0; i <= degree; i++) reversed[i] = coefficients[degree - i];
  const int beyond = roots_within_one(reversed, degree, reciprocals);
  for (int i = 0; i < beyond && count < degree; i++)
    if (reciprocals[i] != 0.0 && fabs(reciprocals[i]) < 1.0) roots[count++] = 1.0 / reciprocals[i];
  return count;
}
