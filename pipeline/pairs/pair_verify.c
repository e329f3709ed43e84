/*
 * Verification of a pair's matches, and the guide for matching it again. See pair_run.h.
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/matrix3.h"
#include "pipeline/base/message.h"
#include "pipeline/pairs/pair_run.h"

/* A homography is worth estimating when so much of another model's support lies in one plane. */
static const double plane_share = 0.5;

static bool is_known(const hs_camera *camera) { return camera->fx > 0.0; }

static hs_status verify(const hs_pairs *run, verify_scratch *scratch, const pair_record *record,
                        const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry) {
  const hs_image_pair *pair = &record->result.images;
  return verify_features_with(scratch, run->images[pair->first].features, run->images[pair->second].features,
                              record->matches, sizeof *record->matches, record->result.match_count, options, inliers,
                              geometry);
}

hs_status pair_verify(const hs_pairs *run, verify_scratch *scratch, pair_record *record, char *message) {
  const hs_image_pair *pair = &record->result.images;
  hs_verify_options options = run->verify;
  options.message = message;
  options.message_bytes = PAIR_MESSAGE_BYTES;
  options.camera_a = run->collection.images[pair->first].camera;
  options.camera_b = run->collection.images[pair->second].camera;
  if (options.model == HS_ESSENTIAL && (!is_known(&options.camera_a) || !is_known(&options.camera_b)))
    options.model = HS_FUNDAMENTAL;
  hs_geometry *model = &record->model;
  const hs_status status = verify(run, scratch, record, &options, record->inliers, model);
  if (status != HS_OK) return status;
  record->result.inliers = record->inliers;
  record->result.geometry = model;
  if (!run->options.find_plane || model->found == 0 || model->model == HS_HOMOGRAPHY ||
      (double)model->plane_inliers < plane_share * (double)model->inlier_count)
    return HS_OK;
  hs_verify_options plane;
  (void)hs_verify_options_init(&plane, HS_HOMOGRAPHY);
  plane.tolerance = run->options.plane_tolerance > 0.0 ? run->options.plane_tolerance : options.tolerance;
  plane.seed = options.seed;
  record->result.plane = &record->plane;
  return verify(run, scratch, record, &plane, NULL, &record->plane);
}

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

void pair_guide(const hs_pairs *run, const pair_record *record, hs_match_options *guided) {
  const hs_image_pair *pair = &record->result.images;
  const hs_geometry *model = &record->model;
  *guided = run->match;
  guided->guide_tolerance = run->verify.tolerance;
  memcpy(guided->guide_matrix, model->matrix, sizeof guided->guide_matrix);
  if (model->model == HS_HOMOGRAPHY) {
    guided->guide = HS_GUIDE_HOMOGRAPHY;
    /* Guides measure in the second image alone, verification spreads an error over both. */
    guided->guide_tolerance *= sqrt(2.0);
    return;
  }
  guided->guide = HS_GUIDE_FUNDAMENTAL;
  if (model->model == HS_ESSENTIAL)
    fundamental_of(model->matrix, &run->collection.images[pair->first].camera,
                   &run->collection.images[pair->second].camera, guided->guide_matrix);
}
