/*
 * Real roots of polynomials of small degree.
 */
#ifndef HARTSIFT_GEOMETRY_POLYNOMIAL_H
#define HARTSIFT_GEOMETRY_POLYNOMIAL_H

enum { POLYNOMIAL_DEGREE_MAX = 10 };

/* The real roots where the polynomial changes its sign, ascending within and then beyond [-1, 1]; returns how many.
   coefficients: degree + 1 of them, of 1, x, x^2, ...; degree at most POLYNOMIAL_DEGREE_MAX; roots: room for that many.
   */
int polynomial_real_roots(const double *coefficients, int degree, double *roots);

#endif
