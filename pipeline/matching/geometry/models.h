/*
 * The three models of two-view geometry for the robust search: for each a minimal solver, the squared error of every
 * match, and a weighted least-squares refit.
 *
 * All computation uses working coordinates: the points of each image are centred at their mean, and scaled by a factor
 * that is the same for both images. So an error in working units is the error in pixels times that factor.
 */
#ifndef HARTSIFT_MATCHING_GEOMETRY_MODELS_H
#define HARTSIFT_MATCHING_GEOMETRY_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/include/hartsift_geometry.h"
#include "stages/two_view.h"

enum {
  GEOMETRY_MATCHES_MAX = 1 << 26,
  GEOMETRY_SAMPLE_MAX = 7,
  GEOMETRY_SOLUTIONS_MAX = 10,
  GEOMETRY_BATCH = TWO_VIEW_SAMPLES /* number of samples that are solved together */
};

typedef two_view_matches geometry_matches;
typedef two_view_form geometry_form;

typedef struct geometry_problem {
  hs_geometry_model model;
  const two_view_ops *ops; /* functions of this machine's instruction set */
  geometry_matches matches;
  hs_camera camera_a, camera_b; /* cameras in working coordinates; only for essential matrices */
  double threshold;             /* maximum error of an inlier, working units */
} geometry_problem;

/* A candidate model. matrix: H or F in working coordinates, used to compute errors. essential: E, only for essential
   matrices. */
typedef struct geometry_candidate {
  double matrix[9];
  double essential[9];
  double score; /* see scoring.h */
} geometry_candidate;

/* Returns the number of matches in a minimal sample. */
int geometry_sample_size(hs_geometry_model model);

/* Candidates from minimal samples; their scores are not computed yet. */
typedef struct geometry_batch {
  int count;
  struct {
    int sample; /* index of the sample */
    geometry_candidate candidate;
  } found[GEOMETRY_BATCH * GEOMETRY_SOLUTIONS_MAX];
} geometry_batch;

/* Finds the candidates of GEOMETRY_BATCH samples of geometry_sample_size(model) matches each, in the order of the
   samples. A degenerate sample gives none. may_repeat: as for two_view_ops.seven. */
void geometry_solve(const geometry_problem *problem, const uint32_t *samples, const bool *may_repeat,
                    geometry_batch *batch);
void fundamental_solve_batch(const geometry_problem *problem, const uint32_t *samples, const bool *may_repeat,
                             geometry_batch *batch);
void essential_solve_batch(const geometry_problem *problem, const uint32_t *samples, geometry_batch *batch);

/* Finds the candidate of one sample; returns 1, or 0 for a degenerate sample. */
int homography_solve(const geometry_problem *problem, const uint32_t *sample, geometry_candidate *candidate);

/* Finds the least-squares model of a form. False if the form does not determine a model. */
bool homography_refit(const geometry_form *form, geometry_candidate *candidate);
bool fundamental_refit(const geometry_problem *problem, const geometry_form *form, geometry_candidate *candidate);
bool essential_refit(const geometry_problem *problem, const geometry_form *form, geometry_candidate *candidate);

/* True if both focal lengths are above 0 and all values are finite. */
bool geometry_camera_valid(const hs_camera *camera);

/* Computes candidate->matrix from candidate->essential. */
void essential_to_matrix(const geometry_problem *problem, geometry_candidate *candidate);

/* True if two cameras with this epipolar geometry can see the sampled matches: all are on the same side of their
   epipoles (oriented constraint of Chum, Werner and Matas 2004). matrix: of rank 2. */
bool epipolar_sample_oriented(const double matrix[9], const geometry_matches *matches, const uint32_t *sample,
                              int count);

/* Copies the caller's options, of any version, over the defaults of their model. Sets the message on failure.
   HS_ERR_ARGUMENT: null or too small; HS_ERR_OPTION: unknown fields are set. */
hs_status geometry_adopt_options(const hs_verify_options *callers, hs_verify_options *mine);

/* Returns the allocator of the caller's options; null if none is set, or if the options are invalid. */
const hs_allocator *geometry_allocator(const hs_verify_options *callers);

/* ---- Shared by fundamental and essential matrices. */

/* Writes the epipolar constraint as a row, such that row . vec(F) = b^T F a, for points of three coordinates. */
static inline void epipolar_row(const double a[3], const double b[3], double row[9]) {
  for (int i = 0; i < 9; i++) row[i] = b[i / 3] * a[i % 3];
}

#endif
