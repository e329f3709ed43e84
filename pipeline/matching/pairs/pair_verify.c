/*
 * Verification of a pair's matches, and the guide for matching it again. See pair_run.h.
 *
 *     cameras known? -- yes --> essential matrix --+-- .95 of F's inliers --> calibrated
 *          |                                       |
 *          no ---------------> fundamental matrix <+-- fewer
 *                                  |
 *                 half of the inliers on one plane: homography too
 *                                  |
 *                 inliers in the border, one translation: watermark
 */
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/text.h"
#include "pipeline/matching/geometry/models.h"
#include "pipeline/include/hartsift_pairs.h"
#include "pipeline/matching/match_call.h"
#include "pipeline/matching/pairs/pair_run.h"

/* A homography is estimated if this share of another model's inliers is in one plane. */
static const double plane_share = 0.5;
/* The cameras are trusted if the essential matrix has at least this share of the fundamental matrix' inliers. Value of
   COLMAP. */
static const double essential_share = 0.95;
/* Values of COLMAP for watermarks. border_width: share of the image's diagonal. watermark_share: minimum share of the
   inliers that are in the border, and minimum share that one translation explains. watermark_error: maximum error of
   that translation, pixels. */
static const double border_width = 0.1, watermark_share = 0.7, watermark_error = 4.0;
enum { TRANSLATIONS = 64 };

/* A pair that is being verified. */
typedef struct pair_work {
  verify_scratch *scratch;
  const hs_features *a, *b;
  const hs_match_pair *matches;
  size_t count;
  const hs_pairs_options *options;
  hs_verify_options verify; /* options with the cameras of the pair and the message buffer */
  uint8_t *inliers;
  hs_pair_geometry *found;
} pair_work;

static bool is_known(const hs_camera *camera) { return camera->fx > 0.0; }

static hs_status verify(const pair_work *w, const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry) {
  return verify_features_with(w->scratch, w->a, w->b, w->matches, sizeof *w->matches, w->count, options, inliers,
                              geometry);
}

static hs_status verify_calibrated(pair_work *w) {
  hs_verify_options essential = w->verify;
  hs_geometry fundamental;
  essential.model = HS_ESSENTIAL;
  hs_status status = verify(w, &w->verify, w->inliers, &fundamental);
  if (status != HS_OK) return status;
  if (fundamental.found != 0) memcpy(verify_scratch_mask(w->scratch), w->inliers, w->count);
  status = verify(w, &essential, w->inliers, &w->found->model);
  if (status != HS_OK) return status;
  if (w->found->model.found != 0 &&
      (double)w->found->model.inlier_count >= essential_share * (double)fundamental.inlier_count) {
    w->found->fundamental = fundamental;
    return HS_OK;
  }
  w->found->model = fundamental;
  if (fundamental.found != 0)
    memcpy(w->inliers, verify_scratch_mask(w->scratch), w->count);
  else if (w->count > 0)
    memset(w->inliers, 0, w->count);
  return HS_OK;
}

static hs_status find_pose(pair_work *w) {
  double *points;
  const size_t count = w->count;
  hs_status status = verify_scratch_reserve(w->scratch, count, &points);
  if (status == HS_OK)
    status = hs_gather_points(w->a, w->b, w->matches, sizeof *w->matches, count, points, points + 2 * count);
  if (status != HS_OK) return status;
  return hs_relative_pose(w->found->model.matrix, &w->verify.camera_a, &w->verify.camera_b, points, points + 2 * count,
                          count, w->inliers, &w->found->pose);
}

static hs_status find_plane(pair_work *w) {
  hs_verify_options plane;
  (void)hs_verify_options_init(&plane, HS_HOMOGRAPHY);
  plane.tolerance = w->options->plane_tolerance > 0.0 ? w->options->plane_tolerance : w->verify.tolerance;
  plane.seed = w->verify.seed;
  w->found->has_plane = 1;
  return verify(w, &plane, NULL, &w->found->plane);
}

/* ------------------------------------------------------------------ watermarks */

static bool in_border(const hs_features *features, const hs_keypoint *k) {
  const double width = (double)features->image_width, height = (double)features->image_height;
  const double border = border_width * sqrt(width * width + height * height);
  const double x = (double)k->x + 0.5, y = (double)k->y + 0.5;
  return x < border || y < border || x > width - border || y > height - border;
}

/* Counts the inliers with the same translation as inlier number `like`. */
static size_t count_translated(const pair_work *w, size_t like) {
  const hs_keypoint *const p = w->a->keypoints, *const q = w->b->keypoints;
  const hs_match_pair *const m = w->matches;
  const double dx = (double)q[m[like].second].x - (double)p[m[like].first].x;
  const double dy = (double)q[m[like].second].y - (double)p[m[like].first].y;
  size_t count = 0;
  for (size_t i = 0; i < w->count; i++) {
    if (w->inliers[i] == 0) continue;
    const double ex = (double)q[m[i].second].x - (double)p[m[i].first].x - dx;
    const double ey = (double)q[m[i].second].y - (double)p[m[i].first].y - dy;
    count += ex * ex + ey * ey <= watermark_error * watermark_error;
  }
  return count;
}

/* True if the images agree only in a caption, a logo or a frame: most inliers are in the border of both images, and
   one translation explains them. */
static bool is_watermark(const pair_work *w) {
  const size_t inliers = w->found->model.inlier_count;
  const double wanted = watermark_share * (double)inliers;
  size_t bordering = 0, seen = 0;
  if (w->a->image_width <= 0 || w->b->image_width <= 0 || inliers == 0) return false;
  for (size_t i = 0; i < w->count; i++)
    bordering += w->inliers[i] != 0 && in_border(w->a, &w->a->keypoints[w->matches[i].first]) &&
                 in_border(w->b, &w->b->keypoints[w->matches[i].second]);
  if ((double)bordering < wanted) return false;
  const size_t step = (inliers + TRANSLATIONS - 1) / TRANSLATIONS;
  for (size_t i = 0; i < w->count; i++)
    if (w->inliers[i] != 0 && seen++ % step == 0 && (double)count_translated(w, i) >= wanted) return true;
  return false;
}

/* ------------------------------------------------------------------ complete verification */

/* Sets w->found and w->inliers. w->options->verify must be set. */
static hs_status verify_work(pair_work *w) {
  hs_geometry *const model = &w->found->model;
  const bool calibrated = is_known(&w->verify.camera_a) && is_known(&w->verify.camera_b);
  if (w->verify.model == HS_ESSENTIAL && !calibrated) w->verify.model = HS_FUNDAMENTAL;
  const bool both = w->verify.model == HS_FUNDAMENTAL && calibrated && w->options->find_essential != 0;
  hs_status status = both ? verify_calibrated(w) : verify(w, &w->verify, w->inliers, model);
  if (status != HS_OK || model->found == 0) return status;
  if (model->model == HS_ESSENTIAL) status = find_pose(w);
  const bool is_planar =
      model->model != HS_HOMOGRAPHY && (double)model->plane_inliers >= plane_share * (double)model->inlier_count;
  /* a plane_only pair is guided by its plane, which is needed even if the caller did not request it */
  const bool for_guide = w->options->guided != 0 && model->plane_only != 0;
  if (status == HS_OK && ((w->options->find_plane != 0 && is_planar) || for_guide)) status = find_plane(w);
  w->found->watermark = is_watermark(w);
  return status;
}

/* Sets the result's pointers to the models that were found. */
static void take_found(const hs_pairs *run, const hs_pair_geometry *found, hs_pair_result *result) {
  result->geometry = &found->model;
  result->plane = run->options.find_plane != 0 && found->has_plane != 0 ? &found->plane : NULL;
  result->fundamental = found->fundamental.found != 0 ? &found->fundamental : NULL;
  result->pose = found->model.model == HS_ESSENTIAL && found->model.found != 0 ? &found->pose : NULL;
  result->watermark = found->watermark;
}

hs_status pair_verify(const hs_pairs *run, verify_scratch *scratch, pair_record *record, char *message) {
  const hs_image_pair *pair = &record->result.images;
  pair_work work = {.scratch = scratch,
                    .a = run->images[pair->first].features,
                    .b = run->images[pair->second].features,
                    .matches = record->matches,
                    .count = record->result.match_count,
                    .options = &run->options,
                    .verify = run->verify,
                    .inliers = record->inliers,
                    .found = &record->found};
  work.verify.message = message;
  work.verify.message_bytes = PAIR_MESSAGE_BYTES;
  work.verify.camera_a = run->collection.images[pair->first].camera;
  work.verify.camera_b = run->collection.images[pair->second].camera;
  memset(&record->found, 0, sizeof record->found);
  const hs_status status = verify_work(&work);
  record->result.inliers = record->inliers;
  take_found(run, &record->found, &record->result);
  return status;
}

hs_status hs_verify_pair(const hs_features *a, const hs_features *b, const hs_match_pair *matches, size_t count,
                         const hs_pairs_options *options, uint8_t *inliers, hs_pair_geometry *found) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  char reason[ADOPT_REASON_BYTES] = "";
  hs_pairs_options mine;
  hs_verify_options full;
  if (!found) return HS_ERR_ARGUMENT;
  memset(found, 0, sizeof *found);
  if (!a || !b || (count > 0 && (!matches || !inliers))) return HS_ERR_ARGUMENT;
  hs_status status = pairs_adopt_options(options, &mine, reason);
  const char *fault = status == HS_OK ? pairs_options_fault(&mine) : reason;
  if (status == HS_OK && fault) status = HS_ERR_OPTION;
  if (status != HS_OK && options && mine.verify && geometry_adopt_options(mine.verify, &full) == HS_OK)
    hs_message_set(full.message, full.message_bytes, "%s", fault);
  if (status == HS_OK) status = mine.verify ? geometry_adopt_options(mine.verify, &full) : HS_ERR_ARGUMENT;
  if (status != HS_OK) return status;
  verify_scratch scratch = {full.allocator, NULL, 0};
  pair_work work = {&scratch, a, b, matches, count, &mine, full, inliers, found};
  status = verify_work(&work);
  verify_scratch_release(&scratch);
  if (status != HS_OK) memset(found, 0, sizeof *found);
  return status;
}

void pair_guide(const hs_pairs *run, const pair_record *record, hs_match_options *guided) {
  const hs_image_pair *pair = &record->result.images;
  hs_verify_options options = run->verify;
  options.camera_a = run->collection.images[pair->first].camera;
  options.camera_b = run->collection.images[pair->second].camera;
  *guided = run->match;
  /* if only a plane is determined, the epipole of the matrix is arbitrary, so the plane is the guide */
  const hs_pair_geometry *const found = &record->found;
  const bool by_plane = found->model.plane_only != 0 && found->has_plane != 0 && found->plane.found != 0;
  (void)hs_guide_by_geometry(guided, by_plane ? &found->plane : &found->model, &options);
}

/* ------------------------------------------------- guides from geometry */

/* Computes F = Kb^-T E Ka^-1. */
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
  /* copies single fields, because the caller's struct may be of an earlier version */
  options->guide = guided.guide;
  options->guide_tolerance = guided.guide_tolerance;
  memcpy(options->guide_matrix, guided.guide_matrix, sizeof options->guide_matrix);
  return HS_OK;
}
