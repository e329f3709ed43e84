/*
 * The generated views of bench/collection: equal bytes on every machine, matches at the positions given by the cameras,
 * and true overlaps.
 */

#include "tests/support/test.h"

#include "bench/collection/collection.h"
#include "pipeline/formats/common/content_digest.h"
#include "tests/support/two_view_scene.h"

enum { WIDTH = 320, HEIGHT = 240, VIEWS = 3, OF_VIEWS = 24 };
/* Two neighbouring views on the circle around the centre, and one from the opposite side. */
static const int32_t shown[VIEWS] = {0, 1, 6};

typedef struct fixture {
  scene scene;
  view views[VIEWS];
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_non_null(f);
  scene_make(&f->scene, 5);
  for (int i = 0; i < VIEWS; i++) {
    view *v = &f->views[i];
    scene_camera(&f->scene, shown[i], OF_VIEWS, WIDTH, HEIGHT, &v->camera);
    v->surface = malloc(WIDTH * HEIGHT);
    v->pixels = malloc(WIDTH * HEIGHT);
    assert_non_null(v->surface);
    assert_non_null(v->pixels);
    assert_true(view_render(&f->scene, shown[i], v));
  }
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  SCOPED_MEMORY fixture *f = *state;
  for (int i = 0; i < VIEWS; i++) {
    free(f->views[i].surface);
    free(f->views[i].pixels);
  }
  scene_free(&f->scene);
  return 0;
}

TEST(test_bytes) {
  const fixture *f = *state;
  static const uint32_t pixels[VIEWS] = {0x6985983a, 0x7e0ed620, 0x7e0e6ff8};
  for (int i = 0; i < VIEWS; i++) assert_int_equal(crc_castagnoli(0, f->views[i].pixels, WIDTH * HEIGHT), pixels[i]);
}

/* Computes E = [t]x R of two cameras. */
static void essential_of(const view_camera *a, const view_camera *b, double e[9]) {
  double r[9], t[3];
  for (int i = 0; i < 3; i++) {
    t[i] = 0.0;
    for (int k = 0; k < 3; k++) {
      t[i] += b->rotation[3 * i + k] * (a->centre[k] - b->centre[k]);
      r[3 * i + k] = 0.0;
      for (int m = 0; m < 3; m++) r[3 * i + k] += b->rotation[3 * i + m] * a->rotation[3 * k + m];
    }
  }
  for (int k = 0; k < 3; k++) {
    e[k] = t[1] * r[6 + k] - t[2] * r[3 + k];
    e[3 + k] = t[2] * r[k] - t[0] * r[6 + k];
    e[6 + k] = t[0] * r[3 + k] - t[1] * r[k];
  }
}

static double sampson(const double f[9], const hs_keypoint *a, const hs_keypoint *b) {
  const double p[3] = {(double)a->x, (double)a->y, 1.0}, q[3] = {(double)b->x, (double)b->y, 1.0};
  double line[3], back[3], value = 0.0;
  for (int i = 0; i < 3; i++) {
    line[i] = f[3 * i] * p[0] + f[3 * i + 1] * p[1] + f[3 * i + 2] * p[2];
    back[i] = f[i] * q[0] + f[3 + i] * q[1] + f[6 + i] * q[2];
    value += line[i] * q[i];
  }
  return fabs(value) / sqrt(line[0] * line[0] + line[1] * line[1] + back[0] * back[0] + back[1] * back[1]);
}

/* Nearly all matches of two neighbouring views agree with the geometry of their cameras to within a pixel. */
TEST(test_matches_agree_with_cameras) {
  const fixture *f = *state;
  const view_camera *a = &f->views[0].camera, *b = &f->views[1].camera;
  const hs_camera camera_a = {a->focal, a->focal, a->cx, a->cy}, camera_b = {b->focal, b->focal, b->cx, b->cy};
  const hs_options options = extraction_options(HS_PROFILE_COLMAP);
  hs_features features[2];
  hs_matches matches = {0};
  double essential[9], fundamental[9];
  size_t agreeing = 0;
  for (int i = 0; i < 2; i++) {
    const hs_image image = {
        .data = f->views[i].pixels, .width = WIDTH, .height = HEIGHT, .type = HS_U8, .layout = HS_GRAY};
    features[i] = extraction_once(&options, &image);
  }
  assert_int_equal(hs_match(NULL, &features[0], &features[1], NULL, &matches), HS_OK);
  essential_of(a, b, essential);
  two_view_fundamental(essential, &camera_a, &camera_b, fundamental);
  for (size_t i = 0; i < matches.count; i++)
    agreeing += sampson(fundamental, &features[0].keypoints[matches.pairs[i].first],
                        &features[1].keypoints[matches.pairs[i].second]) < 1.0;
  assert_true(matches.count > 100);
  assert_true((double)agreeing > 0.9 * (double)matches.count);
  hs_matches_free(&matches);
  hs_features_free(&features[0]);
  hs_features_free(&features[1]);
}

TEST(test_overlap) {
  const fixture *f = *state;
  const view_overlap itself = views_compare(&f->scene, &f->views[0], &f->views[0]);
  const view_overlap next = views_compare(&f->scene, &f->views[0], &f->views[1]);
  const view_overlap back = views_compare(&f->scene, &f->views[1], &f->views[0]);
  const view_overlap across = views_compare(&f->scene, &f->views[0], &f->views[2]);
  assert_true(itself.share > 0.999);
  assert_true(fabs(itself.angle) < 1e-9);
  assert_true(next.share == back.share);
  assert_true(next.share > 0.3);
  assert_true(across.share < 0.5 * next.share);
  assert_true(across.angle > 2.0 * next.angle);
}

TESTS_BETWEEN(set_up, tear_down)
