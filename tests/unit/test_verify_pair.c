/*
 * hs_verify_pair: choice of the model, pose, planes and watermarks, on synthetic scenes.
 */
#include "tests/support/test.h"

#include "pipeline/matching/geometry/search.h"
#include "tests/support/two_view_scene.h"
#include "tests/support/verified.h"

enum { MATCHES_MAX = 400 };

/* Two lists of keypoints; keypoints of equal index are a match. */
typedef struct pair_case {
  two_view_scene scene;
  hs_keypoint keypoints[2][MATCHES_MAX];
  hs_features features[2];
  hs_match_pair matches[MATCHES_MAX];
  uint8_t inliers[MATCHES_MAX];
  hs_pair_geometry found;
  char message[256];
} pair_case;

static void use_scene(pair_case *c) {
  for (size_t i = 0; i < c->scene.count; i++) {
    c->keypoints[0][i] = (hs_keypoint){.x = (float)c->scene.a[2 * i], .y = (float)c->scene.a[2 * i + 1]};
    c->keypoints[1][i] = (hs_keypoint){.x = (float)c->scene.b[2 * i], .y = (float)c->scene.b[2 * i + 1]};
    c->matches[i] = (hs_match_pair){(uint32_t)i, (uint32_t)i, 0.0F, 0.0F};
  }
  for (int k = 0; k < 2; k++)
    c->features[k] =
        (hs_features){.count = c->scene.count, .keypoints = c->keypoints[k], .image_width = 640, .image_height = 480};
}

static pair_case *case_of(two_view_kind kind, size_t count, size_t outliers, uint64_t seed) {
  pair_case *const c = calloc(1, sizeof *c);
  assert_non_null(c);
  two_view_make(kind, count, outliers, 0.3, seed, &c->scene);
  use_scene(c);
  return c;
}

static hs_status run(pair_case *c, hs_geometry_model model, bool cameras, int32_t find_essential) {
  hs_verify_options verify = verified_options(model, &c->scene);
  hs_pairs_options options;
  (void)hs_pairs_options_init(&options);
  if (!cameras) verify.camera_a = verify.camera_b = (hs_camera){0.0, 0.0, 0.0, 0.0};
  verify.message = c->message;
  verify.message_bytes = sizeof c->message;
  options.verify = &verify;
  options.find_plane = 1;
  options.find_essential = find_essential;
  return hs_verify_pair(&c->features[0], &c->features[1], c->matches, c->scene.count, &options, c->inliers, &c->found);
}

static size_t marked(const pair_case *c) {
  size_t count = 0;
  for (size_t i = 0; i < c->scene.count; i++) count += c->inliers[i];
  return count;
}

TEST(test_known_cameras) {
  SCOPED_MEMORY pair_case *const c = case_of(TWO_VIEW_VOLUME, 300, 60, 7);
  assert_int_equal(run(c, HS_FUNDAMENTAL, true, 1), HS_OK);
  assert_int_equal(c->found.model.model, HS_ESSENTIAL);
  assert_int_equal(c->found.fundamental.found, 1);
  assert_int_equal(c->found.fundamental.model, HS_FUNDAMENTAL);
  assert_int_equal(marked(c), c->found.model.inlier_count);
  assert_true(two_view_rotation_angle(c->found.pose.rotation, c->scene.rotation) < 0.01);
  assert_true(two_view_direction_angle(c->found.pose.translation, c->scene.translation) < 0.05);
  assert_int_equal(c->found.watermark, 0);
}

/* Without cameras, without find_essential, or with wrong cameras, the result is the fundamental matrix. */
TEST(test_fundamental_stays) {
  SCOPED_MEMORY pair_case *const c = case_of(TWO_VIEW_VOLUME, 300, 60, 7);
  assert_int_equal(run(c, HS_FUNDAMENTAL, false, 1), HS_OK);
  assert_int_equal(c->found.model.model, HS_FUNDAMENTAL);
  assert_int_equal(c->found.fundamental.found, 0);
  const hs_geometry fundamental = c->found.model;
  uint8_t inliers[MATCHES_MAX];
  memcpy(inliers, c->inliers, sizeof inliers);
  assert_int_equal(run(c, HS_FUNDAMENTAL, true, 0), HS_OK);
  assert_memory_equal(&c->found.model, &fundamental, sizeof fundamental);
  c->scene.camera_a.fx *= 3.0;
  c->scene.camera_a.fy *= 0.4;
  assert_int_equal(run(c, HS_FUNDAMENTAL, true, 1), HS_OK);
  assert_int_equal(c->found.model.model, HS_FUNDAMENTAL);
  assert_memory_equal(c->found.model.matrix, fundamental.matrix, sizeof fundamental.matrix);
  assert_int_equal(marked(c), fundamental.inlier_count);
  assert_memory_equal(c->inliers, inliers, c->scene.count);
  assert_int_equal(c->found.pose.used, 0);
}

TEST(test_planes) {
  SCOPED_MEMORY pair_case *const c = case_of(TWO_VIEW_PLANE, 300, 60, 9);
  assert_int_equal(run(c, HS_FUNDAMENTAL, false, 0), HS_OK);
  assert_int_equal(c->found.has_plane, 1);
  assert_true(c->found.plane.inlier_count >= 230);
  assert_int_equal(c->found.model.plane_only, 1);
}

/* Makes matches of a caption: they have equal translations and lie in the border of both images. */
static void make_caption(pair_case *c, size_t caption, size_t others, double jitter) {
  random_state random = {5};
  c->scene.count = caption + others;
  c->scene.outliers = 0;
  for (size_t i = 0; i < c->scene.count; i++) {
    const bool is_caption = i < caption;
    const double x = 20.0 + 3.0 * (double)random_below(&random, 200);
    const double y =
        is_caption ? 440.0 + 2.0 * (double)random_below(&random, 18) : 100.0 + 3.0 * (double)random_below(&random, 90);
    c->scene.a[2 * i] = x;
    c->scene.a[2 * i + 1] = y;
    c->scene.b[2 * i] = x + 0.01 * (double)random_below(&random, 20) + jitter * (double)random_below(&random, 50);
    c->scene.b[2 * i + 1] = y + 0.01 * (double)random_below(&random, 20);
  }
  use_scene(c);
}

TEST(test_watermarks) {
  SCOPED_MEMORY pair_case *const c = case_of(TWO_VIEW_PLANE, 100, 0, 3);
  static const struct {
    size_t caption, others;
    double jitter;
    int32_t expected;
  } cases[] = {{80, 0, 0.0, 1}, {80, 20, 0.0, 1}, {60, 60, 0.0, 0}, {0, 80, 0.0, 0}, {80, 0, 1.0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    make_caption(c, cases[i].caption, cases[i].others, cases[i].jitter);
    assert_int_equal(run(c, HS_FUNDAMENTAL, false, 0), HS_OK);
    assert_int_equal(c->found.model.found, 1);
    assert_int_equal(c->found.watermark, cases[i].expected);
  }
  make_caption(c, 80, 0, 0.0);
  c->features[0].image_width = c->features[1].image_width = 0; /* unknown sizes */
  assert_int_equal(run(c, HS_FUNDAMENTAL, false, 0), HS_OK);
  assert_int_equal(c->found.watermark, 0);
}

TEST(test_refused) {
  SCOPED_MEMORY pair_case *const c = case_of(TWO_VIEW_VOLUME, 50, 0, 1);
  hs_pair_geometry zero;
  hs_pairs_options options;
  memset(&zero, 0, sizeof zero);
  (void)hs_pairs_options_init(&options);
  assert_int_equal(hs_verify_pair(&c->features[0], &c->features[1], c->matches, 50, &options, c->inliers, &c->found),
                   HS_ERR_ARGUMENT); /* refused because verify is null */
  assert_int_equal(hs_verify_pair(&c->features[0], NULL, c->matches, 50, &options, c->inliers, &c->found),
                   HS_ERR_ARGUMENT);
  c->matches[49].second = 50;
  assert_int_equal(run(c, HS_FUNDAMENTAL, false, 0), HS_ERR_ARGUMENT);
  assert_memory_equal(&c->found, &zero, sizeof zero);
  c->scene.count = 0;
  assert_int_equal(run(c, HS_FUNDAMENTAL, false, 0), HS_OK);
  assert_int_equal(c->found.model.found, 0);
}
