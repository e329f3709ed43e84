/*
 * Two-view geometry: the operations of a robust search on every match and every random sample.
 *
 * They need neither a context nor a pool: a search runs on one thread, and threads process different pairs of images.
 *
 * All values are double, with one rounding for each written operation (no fused multiply-add: SSE2 has none), and sums
 * run in TWO_VIEW_LANES lanes, element i in lane i % TWO_VIEW_LANES, combined by a fixed tree. So every instruction set
 * computes the same bits. The arithmetic of one lane is stages/two_view_math.h.
 */
#ifndef HARTSIFT_STAGES_TWO_VIEW_H
#define HARTSIFT_STAGES_TWO_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  TWO_VIEW_LANES = 8,
  TWO_VIEW_BLOCK = 64,   /* number of matches between two checks whether a score can still win */
  TWO_VIEW_SAMPLES = 16, /* number of samples of seven matches that are solved together */
  TWO_VIEW_SEVEN = 7,
  TWO_VIEW_CUBIC_ROOTS = 3,
  TWO_VIEW_FIVE = 5,
  TWO_VIEW_FIVE_DEGREE = 10, /* degree of the polynomial whose roots give the solutions */
  TWO_VIEW_HOMOGRAPHY_SUMS = 36,
  TWO_VIEW_FORM_SUMS = 54
};

/* Kinds of a match's error; they index the arrays of functions below. */
typedef enum two_view_error { TWO_VIEW_HOMOGRAPHY_ERROR, TWO_VIEW_EPIPOLAR_ERROR, TWO_VIEW_ERRORS } two_view_error;

/* Coordinates of matched points in images a and b. */
typedef struct two_view_matches {
  size_t count;
  const double *ax, *ay, *bx, *by;
} two_view_matches;

/* Weighted sums, over matches, of the linearised errors.
   Homography: the 6 x 6 coefficients of sum C (x) X X^T. X = (x, y, 1) of image a; C is a symmetric 3 x 3 matrix of
   each match. The quadratic form of this sum at vec(H) is the sum of the weighted squared algebraic errors. Both
   factors are stored as upper triangles: 00 01 02 11 12 22.
   Epipolar: J is the derivative of the Sampson error r by vec(M).
     sum[0..44]   upper triangle of J J^T, row by row
     sum[45..53]  J r */
typedef struct two_view_form {
  double sum[TWO_VIEW_FORM_SUMS];
} two_view_form;

/* The fundamental matrices through samples of seven matches; the last index is the sample. */
typedef struct two_view_seven {
  /* matrices of unit length where usable, else any values */
  double matrix[TWO_VIEW_CUBIC_ROOTS][9][TWO_VIEW_SAMPLES];
  /* Whether two cameras can have made the sample with this matrix: all matches are on the same side of their
   * epipoles (Chum, Werner and Matas 2004). */
  bool usable[TWO_VIEW_CUBIC_ROOTS][TWO_VIEW_SAMPLES];
  /* Two of the matches share a point: no matrix is usable. */
  bool repeats[TWO_VIEW_SAMPLES];
  /* The constraints of the matches are linearly dependent: no matrix is usable. Any value where `repeats`. */
  bool dependent[TWO_VIEW_SAMPLES];
} two_view_seven;

/* The essential matrices through samples of five matches, each of unit length, in the order of the samples. */
typedef struct two_view_five {
  int count;
  struct {
    int sample;
    double essential[9];
  } found[TWO_VIEW_LANES * TWO_VIEW_FIVE_DEGREE];
} two_view_five;

/* Focal lengths and principal points: a coordinate becomes (x - cx) / fx. */
typedef struct two_view_cameras {
  double focal[4], centre[4]; /* order of entries: x of a, y of a, x of b, y of b */
} two_view_cameras;

typedef struct two_view_ops {
  const char *name;
  /* Computes the squared errors of `count` matches from `begin` on. If a homography maps a match to infinity, its error
   * is HUGE_VAL. */
  void (*errors[TWO_VIEW_ERRORS])(const double matrix[9], const two_view_matches *matches, size_t begin, size_t count,
                                  double *squares);
  /* Returns the sum of (1 - r^2 / limit)^3 over matches whose squared error r^2 is below the limit. Matches must be in
     random order. Stops early, with a negative result, once the score cannot exceed `best`, or most probably will not:
     it is more than three standard deviations below the score expected of an equally good model. With best <= 0 it
     never stops early. */
  double (*score[TWO_VIEW_ERRORS])(const double matrix[9], const two_view_matches *matches, double limit, double best);
  /* Computes the form of the matches. A weight is (1 - r^2 / limit)^2 for r^2 below the limit, else 0. Ends after the
   * block of TWO_VIEW_LANES matches in which the number of positive weights reaches `enough`. */
  void (*gather[TWO_VIEW_ERRORS])(const double matrix[9], const two_view_matches *matches, double limit, size_t enough,
                                  two_view_form *form);
  /* Solves samples of seven matches. samples: TWO_VIEW_SAMPLES x 7 indices. may_repeat: null, or for each
   * sample false if it is known that no two of its matches share a point. */
  void (*seven)(const two_view_matches *matches, const uint32_t *samples, const bool *may_repeat, two_view_seven *out);
  /* Solves samples of five matches. samples: TWO_VIEW_LANES x 5 indices. If two solutions are closer to each other than
   * 1/64, both may be missed; this happens in 4 of 100 samples. */
  void (*five)(const two_view_matches *matches, const two_view_cameras *cameras, const uint32_t *samples,
               two_view_five *out);
} two_view_ops;

#endif
