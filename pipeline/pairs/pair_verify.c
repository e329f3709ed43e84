/* Verification of a pair's matches, and the guide for matching it again. See pair_run.h. */
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

void pair_guide(const hs_pairs *run, const pair_record *record, hs_match_options *guided) {
  const hs_image_pair *pair = &record->result.images;
  hs_verify_options verify = run->verify;
  verify.camera_a = run->collection.images[pair->first].camera;
  verify.camera_b = run->collection.images[pair->second].camera;
  *guided = run->match;
  /* Where a plane alone is determined, the matrix' epipole is arbitrary. */
  const bool by_plane = record->model.plane_only != 0 && record->result.plane && record->plane.found != 0;
  (void)hs_guide_by_geometry(guided, by_plane ? &record->plane : &record->model, &verify);
}
