/*
 * Linear algebra for the geometric models: 3x3 matrices (row-major doubles), null spaces of nine unknowns, systems of
 * up to ten unknowns. Uses only sums, products, quotients and square roots in a fixed order, so that every machine
 * computes the same bits.
 */
#ifndef HARTSIFT_MATCHING_GEOMETRY_LINEAR_H
#define HARTSIFT_MATCHING_GEOMETRY_LINEAR_H

#include <stdbool.h>

enum { LINEAR_SYSTEM_MAX = 10 };

double linear_dot3(const double a[3], const double b[3]);
/* In all functions below `out` must not be one of the inputs. */
void linear_cross3(const double a[3], const double b[3], double out[3]);
void linear_apply3(const double m[9], const double v[3], double out[3]);
void linear_apply3_transposed(const double m[9], const double v[3], double out[3]);
void linear_multiply3(const double a[9], const double b[9], double out[9]);
void linear_transpose3(const double m[9], double out[9]);
double linear_determinant3(const double m[9]);

/* Scales a vector to length 1. False, with the vector unchanged, if its length is 0 or not finite. */
bool linear_normalize(double *vector, int length);

/* Computes the unit null vector of m (rank 2): the cross product of its two least parallel rows. False if the rank is
   below 2. */
bool linear_null3(const double m[9], double out[3]);

/* Decomposes m = u diag(s) v^T by one-sided Jacobi rotations: u and v are orthogonal (determinants 1 or -1), s is
   descending and not negative. */
void linear_svd3(const double m[9], double u[9], double s[3], double v[9]);

/* Computes an orthonormal basis (9 - count rows) of the null space of `count` rows of nine, by Householder reflections.
   The rows are destroyed. False if the rows are dependent (to about 10 digits). */
bool linear_null_space9(double *rows, int count, double *basis);

/* Solves a x = b for n <= LINEAR_SYSTEM_MAX unknowns by elimination with row exchange; a is destroyed, b becomes x.
   `width` right-hand sides are solved at once: a row of a has n numbers, a row of b has `width`. False if a is
   singular. */
bool linear_solve(double *a, double *b, int n, int width);

#endif
