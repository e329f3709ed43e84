/*
 * Two-view geometry: the operations of a robust search on every match and every random sample.
 *
 * They need no context and no threads: one search uses one thread, and many pairs of images use many.
 *
 * Everything is double, one rounding for each written operation (no fused multiply-add: SSE2 has none), and sums run in
 * TWO_VIEW_LANES lanes, element i in lane i % TWO_VIEW_LANES, combined by a fixed tree. So every instruction set
 * computes the same bits. The arithmetic of one lane is stages/two_view_math.h.
 */
#ifndef HARTSIFT_STAGES_TWO_VIEW_H
#define HARTSIFT_STAGES_TWO_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  TWO_VIEW_LANES = 8,
  TWO_VIEW_BLOCK = 64, /* matches between two tests of whether a score can still win */
  TWO_VIEW_SEVEN = 7,
  TWO_VIEW_CUBIC_ROOTS = 3,
  TWO_VIEW_FIVE = 5,
  TWO_VIEW_FIVE_DEGREE = 10, /* degree of the polynomial whose roots are the solutions */
  TWO_VIEW_HOMOGRAPHY_SUMS = 36,
  TWO_VIEW_FORM_SUMS = 54
};

/* Indices of the arrays of functions below: the kinds of error of a match. */
typedef enum two_view_error { TWO_VIEW_HOMOGRAPHY_ERROR, TWO_VIEW_EPIPOLAR_ERROR, TWO_VIEW_ERRORS } two_view_error;

/* Coordinates of matched points, image a's and image b's. */
typedef struct two_view_matches {
  size_t count;
  const double *ax, *ay, *bx, *by;
} two_view_matches;

/* Weighted sums over matches of the linearised errors.
   Homography: of C (x) X X^T, X = (x, y, 1) of image a, C a symmetric 3x3 matrix of each match: the quadratic form whose
   value at vec(H) is the sum of the weighted squared algebraic errors; 6 x 6, both factors as upper triangles
   00 01 02 11 12 22.
   Epipolar: of J J^T, J the derivative of the Sampson error r by vec(M), 45 of an upper triangle row by row; then of J r,
   9. */
typedef struct two_view_form {
  double sum[TWO_VIEW_FORM_SUMS];
} two_view_form;

/* The fundamental matrices through samples of seven matches, one sample a lane. */
typedef struct two_view_seven {
  double matrix[TWO_VIEW_CUBIC_ROOTS][9][TWO_VIEW_LANES]; /* of length 1 */
  /* Whether two cameras can have made the sample with this matrix: each match is on the same side of its epipole (Chum,
   * Werner and Matas 2004). */
  bool usable[TWO_VIEW_CUBIC_ROOTS][TWO_VIEW_LANES];
  /* Two of the matches share a point: no matrix is usable. */
  bool repeats[TWO_VIEW_LANES];
  /* The constraints of the matches are dependent: no matrix is usable. */
  bool dependent[TWO_VIEW_LANES];
} two_view_seven;

/* The essential matrices through samples of five matches, of length 1; in the order of the samples. */
typedef struct two_view_five {
  int count;
  struct {
    int sample;
    double essential[9];
  } found[TWO_VIEW_LANES * TWO_VIEW_FIVE_DEGREE];
} two_view_five;

/* Focal lengths and principal points, (x - cx) / fx. */
typedef struct two_view_cameras {
  double focal[4], centre[4]; /* a: x, y, b: x, y */
} two_view_cameras;

typedef struct two_view_ops {
  const char *name;
  /* Squared errors of `count` matches from `begin` on. HUGE_VAL if a homography maps the match to infinity. */
  void (*errors[TWO_VIEW_ERRORS])(const double matrix[9], const two_view_matches *matches, size_t begin, size_t count,
                                  double *squares);
  /* The sum of (1 - r^2 / limit)^3 over matches of squared error r^2 below the limit. Stops early, with a negative
     result, once the score cannot exceed `best` or most probably will not: it is more than three standard deviations
     below what a model as good would have by then. Matches must be in random order. best 0 or less: never stops. */
  double (*score[TWO_VIEW_ERRORS])(const double matrix[9], const two_view_matches *matches, double limit, double best);
  /* The form of the matches, weights (1 - r^2 / limit)^2 below the limit, 0 above. Ends after the block of
   * TWO_VIEW_LANES matches in which the number of weights above 0 reaches `enough`. */
  void (*gather[TWO_VIEW_ERRORS])(const double matrix[9], const two_view_matches *matches, double limit, size_t enough,
                                  two_view_form *form);
  /* samples: TWO_VIEW_LANES x 7 indices. */
  void (*seven)(const two_view_matches *matches, const uint32_t *samples, two_view_seven *out);
  /* samples: TWO_VIEW_LANES x 5 indices. Two solutions nearer to each other than 1/64 may both be missed: in
   * 4 samples of 100. */
  void (*five)(const two_view_matches *matches, const two_view_cameras *cameras, const uint32_t *samples,
               two_view_five *out);
} two_view_ops;

#endif
