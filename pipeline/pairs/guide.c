/* The guide that a geometry is for matching again. */
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/geometry/models.h"
#include "pipeline/include/hartsift_pairs.h"
#include "pipeline/matching/match_call.h"

/* Kb^-T E Ka^-1 */
static void fundamental_of(const double *essential, const hs_camera *a, const hs_camera *b, double *out) {
  const double ka[9] = {1.0 / a->fx, 0.0, -a->cx / a->fx, 0.0, 1.0 / a->fy, -a->cy / a->fy, 0.0, 0.0, 1.0};
  const double kb[9] = {1.0 / b->fx, 0.0, -b->cx / b->fx, 0.0, 1.0 / b->fy, -b->cy / b->fy, 0.0, 0.0, 1.0};
  double half[9];
  for (int i = 0; i < 9; i++) {
    const int row = i / 3, column = i % 3;
    half[i] = essential[3 * row] * ka[column] + essential[3 * row + 1] * ka[3 + column] +
              essential[3 * row + 2] * ka[6 + column];
  }
  for (int i = 0; i < 9; i++) {
    const int row = i / 3, column = i % 3;
    out[i] = kb[row] * half[column] + kb[3 + row] * half[3 + column] + kb[6 + row] * half[6 + column];
  }
}

hs_status hs_guide_by_geometry(hs_match_options *options, const hs_geometry *geometry,
                               const hs_verify_options *verify) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_verify_options full;
  hs_match_options guided;
  if (!options || !geometry || !verify || geometry->found == 0) return HS_ERR_ARGUMENT;
  hs_status status = geometry_adopt_options(verify, &full);
  if (status == HS_OK) status = match_check_options(options, &guided, NULL, 0);
  if (status != HS_OK) return status;
  guided.guide_tolerance = geometry->tolerance > 0.0 ? geometry->tolerance : full.tolerance;
  memcpy(guided.guide_matrix, geometry->matrix, sizeof guided.guide_matrix);
  guided.guide = geometry->model == HS_HOMOGRAPHY ? HS_GUIDE_HOMOGRAPHY : HS_GUIDE_FUNDAMENTAL;
  if (geometry->model == HS_HOMOGRAPHY) guided.guide_tolerance *= sqrt(2.0);
  if (geometry->model == HS_ESSENTIAL)
    fundamental_of(geometry->matrix, &full.camera_a, &full.camera_b, guided.guide_matrix);
  /* Written back as the caller's struct has them, which may be an earlier one. */
  options->guide = guided.guide;
  options->guide_tolerance = guided.guide_tolerance;
  memcpy(options->guide_matrix, guided.guide_matrix, sizeof options->guide_matrix);
  return HS_OK;
}
