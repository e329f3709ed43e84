/*
 * Affine shape of whole frames: the ellipses of drawn blobs, affine frames in lists, equal bytes for every division of
 * the work.
 *
 * On a GPU: test_engines.c; in tiles: test_affine_tiles.c.
 */

#include "tests/support/test.h"

#include <inttypes.h>

static hs_image scene;

BEFORE_TESTS() { scene = extraction_scene(167, 125, 11, NULL); }

static hs_options affine_options(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.affine = 1;
  return o;
}

static void check_frames(const hs_features *expected, const hs_features *got, const char *what) {
  assert_non_null(expected->frames);
  extraction_check_equal(expected, got, what);
}

/* The first column of a frame has the direction of the orientation. The short axis is sigma; the long one is at most 5
   times as long. */
TEST(test_frames) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    const hs_options o = affine_options((hs_profile)p);
    scoped_features f = extraction_once(&o, &scene);
    size_t longer = 0;
    assert_true(f.count > 60);
    for (size_t i = 0; i < f.count; i++) {
      const hs_keypoint *k = &f.keypoints[i];
      const hs_frame *a = &f.frames[i];
      const double a11 = (double)a->a11, a12 = (double)a->a12, a21 = (double)a->a21, a22 = (double)a->a22;
      const double squares = a11 * a11 + a12 * a12 + a21 * a21 + a22 * a22, area = a11 * a22 - a12 * a21;
      const double root = sqrt(fmax(squares * squares - 4.0 * area * area, 0.0));
      const double longest = sqrt(0.5 * (squares + root)), shortest = area / longest, sigma = (double)k->sigma;
      assert_true(fabs(shortest / sigma - 1.0) < 1e-3);
      assert_true(longest < 5.001 * sigma);
      assert_true(extraction_angle_between(atan2(a21, a11), (double)k->orientation) < 1e-4);
      if (longest > 1.2 * sigma) longer++;
    }
    assert_true(longer > f.count / 4 && longer < f.count);
  }
}

/* Without the option there are no affine frames, even in a list that had frames, and the rest is unchanged. */
TEST(test_no_frames_unasked) {
  const hs_options plain = extraction_options(HS_PROFILE_LOWE), affine = affine_options(HS_PROFILE_LOWE);
  scoped_context *a = extraction_context(&affine), *b = extraction_context(&plain);
  scoped_features f = extraction_run(b, &scene), again = {0};
  assert_null(f.frames);
  assert_int_equal(f.origin.method_version, HS_METHOD_VERSION);
  assert_int_equal(hs_extract(a, &scene, NULL, &again), HS_OK);
  assert_non_null(again.frames);
  assert_int_equal(again.origin.method_version, HS_METHOD_VERSION_AFFINE);
  assert_int_equal(hs_extract(b, &scene, NULL, &again), HS_OK);
  assert_null(again.frames);
  extraction_check_equal(&f, &again, "after a list with frames");
}

/* Other digests are another method: then HS_METHOD_VERSION_AFFINE must change together with them. */
TEST(test_bytes_of_the_method) {
  static const uint64_t digests[EXTRACTION_PROFILES][2] = {{0xae9189a66199b473, 0x9be0fe65a9b3d725},
                                                           {0x0dcffcdcac7650c3, 0x229e10bc826aa3b1},
                                                           {0x1ad5f8e5205e4051, 0x21134f9a72a40575},
                                                           {0xeb7f379656120305, 0xdc6a98c8d84843ce}};
  assert_int_equal(HS_METHOD_VERSION_AFFINE, 3);
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int dsp = 0; dsp < 2; dsp++) {
      hs_options o = affine_options((hs_profile)p);
      o.dsp = dsp;
      scoped_features f = extraction_once(&o, &scene);
      uint64_t digest = 0;
      assert_int_equal(hs_digest_features(&f, &digest), HS_OK);
      if (digest != digests[p][dsp]) fail_msg("profile %d, dsp %d: 0x%016" PRIx64, p, dsp, digest);
    }
}

TEST(test_threads_and_variants) {
  for (int dsp = 0; dsp < 2; dsp++) {
    hs_options o = affine_options(HS_PROFILE_LOWE);
    o.dsp = dsp;
    o.threads = 1;
    scoped_features one = extraction_once(&o, &scene);
    o.threads = 3;
    scoped_features three = extraction_once(&o, &scene);
    hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, "orient=ref,describe=ref");
    o.expert = &expert;
    scoped_features ref = extraction_once(&o, &scene);
    check_frames(&one, &three, "three threads");
    check_frames(&one, &ref, "the reference");
  }
}

/* Describing the features' own keypoints gives the bytes of extraction. */
TEST(test_own_keypoints) {
  const hs_options o = affine_options(HS_PROFILE_LOWE);
  scoped_context *c = extraction_context(&o);
  scoped_features full = extraction_run(c, &scene), f = {0};
  assert_int_equal(hs_describe(c, &scene, full.keypoints, full.count, &f, NULL), HS_OK);
  check_frames(&full, &f, "own keypoints");
}

/* `few` must be some of the features of `full`, in the same order and with their frames. */
static void check_subset(const hs_features *full, const hs_features *few) {
  size_t at = 0;
  assert_true(few->count > 0 && few->count < full->count);
  for (size_t i = 0; i < few->count; i++, at++) {
    while (at < full->count && memcmp(&full->keypoints[at], &few->keypoints[i], sizeof few->keypoints[i]) != 0) at++;
    assert_true(at < full->count);
    assert_memory_equal(&full->frames[at], &few->frames[i], sizeof few->frames[i]);
    assert_memory_equal(extraction_descriptor(full, at), extraction_descriptor(few, i),
                        extraction_descriptor_bytes(few));
  }
}

TEST(test_limited) {
  hs_options o = affine_options(HS_PROFILE_LOWE);
  scoped_features full = extraction_once(&o, &scene);
  o.max_features = (int32_t)(full.count / 3);
  scoped_features few = extraction_once(&o, &scene);
  assert_int_equal(few.count, o.max_features);
  check_subset(&full, &few);
}

TEST(test_region_and_grid) {
  hs_options o = affine_options(HS_PROFILE_LOWE);
  scoped_features full = extraction_once(&o, &scene);
  o.region_x = 20;
  o.region_y = 10;
  o.region_width = scene.width / 2;
  o.region_height = scene.height / 2;
  scoped_features few = extraction_once(&o, &scene);
  check_subset(&full, &few);
  hs_features_free(&few);
  o = affine_options(HS_PROFILE_LOWE);
  o.grid_columns = 3;
  o.grid_rows = 2;
  o.max_features = (int32_t)(full.count / 3);
  few = extraction_once(&o, &scene);
  check_subset(&full, &few);
}

/* Images are submitted in flight; results are taken as copies and as views. */
TEST(test_in_flight) {
  const hs_options o = affine_options(HS_PROFILE_LOWE);
  scoped_context *c = extraction_context(&o);
  scoped_features full = extraction_once(&o, &scene), f = {0};
  for (int i = 0; i < 3; i++) assert_int_equal(hs_submit(c, &scene, NULL), HS_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hs_wait(c, &f), HS_OK);
    check_frames(&full, &f, "in flight");
  }
  const hs_features *view = NULL;
  assert_int_equal(hs_extract_view(c, &scene, NULL, &view), HS_OK);
  check_frames(&full, view, "in place");
}

static hs_image blob(double longer, double shorter, double angle) {
  hs_image image = extraction_blank(160, 160);
  float *value = extraction_floats(&image);
  for (int y = 0; y < 160; y++)
    for (int x = 0; x < 160; x++) {
      const double u = (x - 80) * cos(angle) + (y - 80) * sin(angle), v = (y - 80) * cos(angle) - (x - 80) * sin(angle);
      value[y * 160 + x] = (float)(0.2 + 0.7 * exp(-0.5 * (u * u / longer / longer + v * v / shorter / shorter)));
    }
  return image;
}

/* The long axis of a drawn ellipse has its direction, and anisotropy grows with the ellipse's length; a circle has
 * none. Gaussian levels are isotropic, so the quotient of the shape is below the drawn one: 1.39, 1.57, 2.23 and 2.89
 * for 1.6, 2, 3 and 4. */
TEST(test_drawn_blobs) {
  static const double drawn[][4] = {
      {6, 6, 0, 1.0}, {8, 5, 0.4, 1.39}, {10, 5, 1.1, 1.57}, {12, 4, 2.0, 2.23}, {16, 4, 0.7, 2.89}};
  for (int i = 0; i < 5; i++) {
    hs_options o = affine_options(HS_PROFILE_LOWE);
    o.upright = 1;
    o.contrast = 0.02f;
    o.edge = 1000.0f;
    scoped_image image = blob(drawn[i][0], drawn[i][1], drawn[i][2]);
    scoped_features f = extraction_once(&o, &image);
    size_t best = f.count;
    for (size_t n = 0; n < f.count; n++)
      if (hypot((double)f.keypoints[n].x - 80, (double)f.keypoints[n].y - 80) < 2 &&
          (best == f.count || f.keypoints[n].sigma > f.keypoints[best].sigma))
        best = n;
    assert_true(best < f.count);
    const hs_frame *a = &f.frames[best];
    const double xx = (double)(a->a11 * a->a11 + a->a12 * a->a12), yy = (double)(a->a21 * a->a21 + a->a22 * a->a22);
    const double xy = (double)(a->a11 * a->a21 + a->a12 * a->a22), d = 0.5 * (xx - yy), r = hypot(d, xy);
    const double quotient = sqrt((0.5 * (xx + yy) + r) / (0.5 * (xx + yy) - r));
    assert_true(fabs(quotient - drawn[i][3]) < 0.06);
    if (i > 0) assert_true(extraction_angle_between(atan2(xy, d), 2.0 * drawn[i][2]) < 0.02);
  }
}

/* The picture is reduced by different factors along its sides. Frames are scaled back as positions are. */
TEST(test_original_size) {
  hs_keypoint k = {.x = 10, .y = 20, .sigma = 2};
  hs_frame frame = {1, 2, 3, 4};
  hs_features f = {.count = 1, .keypoints = &k, .frames = &frame, .image_width = 100, .image_height = 50};
  const hs_image image = {.width = 100, .height = 50, .original_width = 200, .original_height = 200};
  f.descriptor_type = HS_DESCRIPTOR_NONE;
  assert_int_equal(hs_features_to_original(&f, &image), HS_OK);
  assert_true(frame.a11 == 2 && frame.a12 == 4 && frame.a21 == 12 && frame.a22 == 16);
}
