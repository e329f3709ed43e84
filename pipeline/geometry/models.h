/*
 * The three models of two-view geometry, as the robust search sees them: a minimal solver each, the squared error of
 * every match, and a weighted least-squares refit.
 *
 * All work happens in working coordinates: the points of each image moved to their mean and scaled, by the same factor
 * in both images, so that an error in working units is an error in pixels times that factor.
 */
#ifndef HARTSIFT_GEOMETRY_MODELS_H
#define HARTSIFT_GEOMETRY_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift_geometry.h"

enum {
  GEOMETRY_MATCHES_MAX = 1 << 26,
  GEOMETRY_SAMPLE_MAX = 7,
  GEOMETRY_SOLUTIONS_MAX = 10,
  GEOMETRY_BLOCK = 128 /* matches whose errors are computed together */
};

typedef struct geometry_matches {
  size_t count;
  const double *ax, *ay, *bx, *by;
} geometry_matches;

typedef struct geometry_problem {
  hs_geometry_model model;
  geometry_matches matches;
  hs_camera camera_a, camera_b; /* in working coordinates; essential matrices only */
  double threshold;             /* largest error of an inlier, working units */
} geometry_problem;

/* A candidate. matrix: H or F in working coordinates, what errors are measured with; essential: E, for that model only.
   */
typedef struct geometry_candidate {
  double matrix[9];
  double essential[9];
  double score; /* see scoring.h */
} geometry_candidate;

/* Weighted sums over matches of C (x) X X^T, X = (x, y, 1) of image a, C a symmetric 3x3 matrix of each match: the
   quadratic form whose value at vec(M) is the sum of the weighted squared algebraic errors. Both factors as upper
   triangles 00 01 02 11 12 22. */
typedef struct geometry_form {
  double sum[6][6];
} geometry_form;

/* The form as a symmetric 9x9 matrix for vec(M), M row-major. */
void geometry_form_matrix(const geometry_form *form, double matrix[81]);

/* How many matches a minimal sample has. */
int geometry_sample_size(hs_geometry_model model);

/* The candidates through a minimal sample, without scores; returns how many (0: a degenerate sample). */
int homography_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates);
int fundamental_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates);
int essential_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidates);

/* Squared errors of `count` matches from `begin` on. Matches that a homography sends through infinity get HUGE_VAL. */
void homography_errors(const double matrix[9], const geometry_matches *matches, size_t begin, size_t count,
                       double *squares);
void epipolar_errors(const double matrix[9], const geometry_matches *matches, size_t begin, size_t count,
                     double *squares);

/* Adds the terms of `count` matches from `begin` on, where weights are not 0, to the form; linearised at the matrix. */
void homography_gather(const double matrix[9], const geometry_matches *matches, size_t begin, size_t count,
                       const double *weights, geometry_form *form);
void epipolar_gather(const double matrix[9], const geometry_matches *matches, size_t begin, size_t count,
                     const double *weights, geometry_form *form);

/* The least-squares model of a form; false when the form does not determine one. */
bool homography_refit(const geometry_form *form, geometry_candidate *candidate);
bool fundamental_refit(const geometry_form *form, geometry_candidate *candidate);
bool essential_refit(const geometry_problem *problem, const geometry_form *form, geometry_candidate *candidate);

/* Focal lengths above 0, everything finite. */
bool geometry_camera_valid(const hs_camera *camera);

/* candidate->matrix from candidate->essential. */
void essential_to_matrix(const geometry_problem *problem, geometry_candidate *candidate);

/* Whether the sampled matches can be seen by two cameras with this epipolar geometry: each lies on the same side of its
   epipole (the oriented constraint of Chum, Werner and Matas 2004). matrix of rank 2. */
bool epipolar_sample_oriented(const double matrix[9], const geometry_matches *matches, const uint32_t *sample,
                              int count);

/* The caller's options, of this version or an earlier or later one, over the defaults of their model. HS_ERR_ARGUMENT:
   null or too small; HS_ERR_OPTION: fields set that this version does not know, with the message. */
hs_status geometry_adopt_options(const hs_verify_options *callers, hs_verify_options *mine);

#endif
