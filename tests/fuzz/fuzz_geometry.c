/*
 * Fuzz target for geometry from positions: verification, poses, guides, spatial neighbours. Coordinates, cameras,
 * matrices and options are arbitrary numbers: NaN, infinities, and the limits of each type.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"
#include "tests/fuzz/input_bytes.h"

enum { FUZZ_POINTS_MAX = 48, FUZZ_ITERATIONS_MAX = 500 };

typedef struct fuzz_points {
  double a[2 * FUZZ_POINTS_MAX], b[2 * FUZZ_POINTS_MAX];
  size_t count;
} fuzz_points;

static hs_camera take_camera(input_bytes *input) {
  const double fx = input_double(input), fy = input_double(input), cx = input_double(input), cy = input_double(input);
  return (hs_camera){fx, fy, cx, cy};
}

/* Reads points from the input. In half of the inputs a homography near the identity explains them, so that searches
 * find something. */
static void take_points(input_bytes *input, fuzz_points *points) {
  points->count = input_below(input, FUZZ_POINTS_MAX);
  const bool regular = (input_u8(input) & 1u) != 0;
  for (size_t i = 0; i < points->count; i++) {
    for (size_t k = 2 * i; k < 2 * i + 2; k++) {
      points->a[k] = regular ? (double)input_u8(input) * 4.0 : input_double(input);
      points->b[k] = regular ? points->a[k] + (double)(input_u8(input) % 4u) : input_double(input);
    }
  }
}

static hs_verify_options take_options(input_bytes *input, char *message, size_t message_bytes) {
  hs_verify_options options;
  fuzz_require(hs_verify_options_init(&options, (hs_geometry_model)(1u + input_below(input, 2))) == HS_OK);
  const uint8_t changed = input_u8(input);
  if ((changed & 1u) != 0) options.tolerance = input_double(input);
  if ((changed & 2u) != 0) options.confidence = input_double(input);
  if ((changed & 4u) != 0) options.min_inliers = input_i32(input);
  if ((changed & 8u) != 0) options.min_iterations = input_i32(input);
  if ((changed & 16u) != 0) options.check_plane = input_i32(input);
  if ((changed & 32u) != 0) options.seed = input_u64(input);
  options.max_iterations = (changed & 64u) != 0 ? input_i32(input) : FUZZ_ITERATIONS_MAX;
  if (options.max_iterations > FUZZ_ITERATIONS_MAX) options.max_iterations = FUZZ_ITERATIONS_MAX;
  options.camera_a = take_camera(input);
  options.camera_b = (changed & 128u) != 0 ? take_camera(input) : options.camera_a;
  options.message = message;
  options.message_bytes = message_bytes;
  return options;
}

static void check_geometry(const hs_geometry *geometry, const fuzz_points *points, const uint8_t *inliers) {
  size_t marked = 0;
  for (size_t i = 0; i < points->count; i++) {
    fuzz_require(inliers[i] <= 1);
    marked += inliers[i];
    for (size_t k = 2 * i; inliers[i] && k < 2 * i + 2; k++)
      fuzz_require(fabs(points->a[k]) <= 1e6 && fabs(points->b[k]) <= 1e6);
  }
  fuzz_require(geometry->found == 0 || geometry->found == 1);
  fuzz_require(marked == geometry->inlier_count && (geometry->found == 1 || marked == 0));
  for (int i = 0; i < 9; i++)
    fuzz_require(geometry->found == 1 ? isfinite(geometry->matrix[i]) != 0 : geometry->matrix[i] == 0.0);
  fuzz_require(isfinite(geometry->rms_error) && geometry->rms_error >= 0.0);
}

static void check_pose(input_bytes *input, const fuzz_points *points, const hs_verify_options *options,
                       const double *matrix, const uint8_t *inliers) {
  hs_pose pose;
  double any[9];
  for (int i = 0; i < 9; i++) any[i] = matrix ? matrix[i] : input_double(input);
  if (hs_relative_pose(any, &options->camera_a, &options->camera_b, points->a, points->b, points->count, inliers,
                       &pose) != HS_OK)
    return;
  fuzz_require(pose.used <= points->count && pose.in_front <= pose.used);
  for (int i = 0; i < 9; i++) fuzz_require(isfinite(pose.rotation[i]) != 0);
  for (int i = 0; i < 3; i++) fuzz_require(isfinite(pose.translation[i]) != 0);
}

static void check_nearby(input_bytes *input) {
  double places[3 * FUZZ_POINTS_MAX];
  const size_t count = input_below(input, FUZZ_POINTS_MAX);
  for (size_t i = 0; i < 3 * count; i++) places[i] = input_double(input);
  const double metres = input_double(input);
  const uint32_t at_most = input_u8(input);
  hs_image_pairs pairs = {0};
  if (hs_pair_nearby(places, count, metres, at_most, &pairs) == HS_OK) {
    for (size_t i = 0; i < pairs.count; i++) {
      const hs_image_pair p = pairs.pairs[i], *before = i > 0 ? &pairs.pairs[i - 1] : NULL;
      fuzz_require(p.first < p.second && p.second < count);
      fuzz_require(!before || before->first < p.first || (before->first == p.first && before->second < p.second));
    }
  }
  hs_image_pairs_free(&pairs);
  double place[3] = {0, 0, 0};
  const double latitude = input_double(input), longitude = input_double(input), altitude = input_double(input);
  if (hs_earth_place(latitude, longitude, altitude, place) == HS_OK)
    fuzz_require(isfinite(place[0]) && isfinite(place[1]) && isfinite(place[2]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input_bytes input = {data, size};
  fuzz_points points = {.count = 0};
  uint8_t inliers[FUZZ_POINTS_MAX];
  char message[256] = "";
  hs_geometry geometry;
  take_points(&input, &points);
  const hs_verify_options options = take_options(&input, message, sizeof message);
  memset(inliers, 0xFF, sizeof inliers);
  const hs_status status = hs_verify_points(points.a, points.b, points.count, &options, inliers, &geometry);
  const bool found = status == HS_OK && geometry.found == 1;
  fuzz_require(status == HS_OK || message[0] != '\0');
  if (status == HS_OK) check_geometry(&geometry, &points, inliers);
  if (found) {
    hs_match_options guided;
    fuzz_require(hs_match_options_init(&guided) == HS_OK);
    fuzz_require(hs_guide_by_geometry(&guided, &geometry, &options) == HS_OK);
  }
  const bool essential = found && options.model == HS_ESSENTIAL;
  check_pose(&input, &points, &options, essential ? geometry.matrix : NULL, status == HS_OK ? inliers : NULL);
  check_nearby(&input);
  return 0;
}
