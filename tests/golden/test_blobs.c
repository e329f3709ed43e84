/*
 * Gaussian blobs: their position, scale, polarity and orientation are known in advance.
 *
 * A blob of standard deviation t, seen through a picture's assumed blur b, is in level sigma a Gaussian of variance
 * t^2 - b^2 + sigma^2. The difference of levels sigma and k sigma at its centre is largest for sigma^2 = (t^2 -
 * b^2) / k, k = 2^(1/S): the expected scale.
 *
 * Doubling interpolates linearly, which adds blur: on the mean of the two axes' samples 1/8 px^2 on the aligned grid (0
 * for even, 1/4 for odd samples), 3/16 px^2 on the half-pixel one. With it scales agree within 0.5 %; without it the
 * finest are up to 3 % off. A quadratic fitted nearly half a sample away from a peak is 0.07 samples off at most, the
 * second fit of profile lowe less than 0.01.
 *
 * Positions avoid exact halves of a sample of any octave, where two samples are bit-identical and neither is a strict
 * extremum. Tests of position and scale use upright features, because the histogram of a symmetric blob has no peak.
 */

#include "tests/support/test.h"

typedef struct blob {
  double x, y, t, height; /* height < 0: dark */
} blob;

static void add_blob(hs_image *image, const blob *b) {
  float *v = extraction_floats(image);
  for (int32_t y = 0; y < image->height; y++)
    for (int32_t x = 0; x < image->width; x++) {
      const double dx = x - b->x, dy = y - b->y;
      *v++ += (float)(b->height * exp(-(dx * dx + dy * dy) / (2.0 * b->t * b->t)));
    }
}

static void add_level(hs_image *image, float level) {
  float *v = extraction_floats(image);
  for (size_t i = 0; i < (size_t)image->width * (size_t)image->height; i++) v[i] += level;
}

/* The keypoint nearest to a blob in position and scale; fails without one. */
static const hs_keypoint *nearest(const hs_features *f, const blob *b, double sigma) {
  const hs_keypoint *best = NULL;
  double least = 1.0e9;
  for (size_t i = 0; i < f->count; i++) {
    const hs_keypoint *k = &f->keypoints[i];
    const double d = hypot((double)k->x - b->x, (double)k->y - b->y) / sigma + fabs(log2((double)k->sigma / sigma));
    if (d >= least) continue;
    least = d;
    best = k;
  }
  if (!best) fail_msg("no feature for the blob at (%g, %g), t %g", b->x, b->y, b->t);
  return best;
}

/* The expected scale of a blob, with the blur of doubling. */
static double scale_of(hs_profile profile, double t, int32_t scales, bool doubled) {
  const double doubling = !doubled ? 0.0 : (profile <= HS_PROFILE_OPENCV ? 3.0 / 16.0 : 1.0 / 8.0);
  return sqrt((t * t - 0.25 + doubling) / pow(2.0, 1.0 / (double)scales));
}

/* Tolerance of a blob's position: 0.05 px, or 0.075 samples of a coarser octave; with the second fit of profile lowe
 * 0.01 samples of octave 0 or a coarser one. */
static double place_room(hs_profile profile, const hs_keypoint *k) {
  const double samples = k->octave <= 0 ? 1.0 : (double)(1 << k->octave);
  return samples * (profile == HS_PROFILE_LOWE ? 0.01 : (k->octave <= 0 ? 0.05 : 0.075));
}

/* Offset that the profile's doubling adds to coordinates: OpenCV treats the half-pixel grid as the aligned one. */
static double drift(hs_profile profile) { return profile == HS_PROFILE_OPENCV ? 0.25 : 0.0; }

typedef struct worst_case {
  double place, scale;
} worst_case;

static void check_blob(hs_profile profile, const blob *b, worst_case *worst) {
  hs_options o = extraction_options(profile);
  o.contrast = 0.01f;
  o.upright = 1;
  scoped_image image = extraction_blank(96, 88);
  add_level(&image, 0.5f);
  add_blob(&image, b);
  scoped_features f = extraction_once(&o, &image);
  const double sigma = scale_of(profile, b->t, 3, true);
  const hs_keypoint *k = nearest(&f, b, sigma);
  const double place = fmax(fabs((double)k->x - drift(profile) - b->x), fabs((double)k->y - drift(profile) - b->y));
  const double scale = fabs((double)k->sigma / sigma - 1.0);
  if (!(place < place_room(profile, k) &&
        scale < (profile == HS_PROFILE_LOWE ? 0.003 : (k->octave <= 0 ? 0.006 : 0.02))))
    fail_msg("profile %d: blob (%g, %g) t %g: found at (%g, %g) sigma %g, expected sigma %g", (int)profile, b->x, b->y,
             b->t, (double)k->x, (double)k->y, (double)k->sigma, sigma);
  worst->place = fmax(worst->place, place);
  worst->scale = fmax(worst->scale, scale);
}

static void check_profile(hs_profile profile) {
  static const double sizes[] = {1.8, 2.5, 3.1, 4.0, 5.2, 6.5};
  static const double shifts[] = {0.04, 0.3, 0.52, 0.77};
  worst_case worst = {0};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (size_t k = 0; k < sizeof shifts / sizeof shifts[0]; k++) {
      const blob b = {45.0 + shifts[k], 41.0 + shifts[(k + 1 + i) % 4], sizes[i], k % 2 ? -0.45 : 0.45};
      check_blob(profile, &b, &worst);
    }
  printf("             profile %d: places within %.4f px, scales within %.4f\n", (int)profile, worst.place,
         worst.scale);
}

TEST(test_blobs_lowe) { check_profile(HS_PROFILE_LOWE); }

TEST(test_blobs_opencv) { check_profile(HS_PROFILE_OPENCV); }

TEST(test_blobs_vlfeat) { check_profile(HS_PROFILE_VLFEAT); }

/* Without doubling and from a decimated picture, coordinates are in the input picture's pixels. */
TEST(test_first_octaves) {
  for (int32_t first = 0; first <= 2; first++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    o.first_octave = first;
    o.contrast = 0.01f;
    o.upright = 1;
    const double t = 4.0 * (1 << first);
    const blob b = {80.4, 75.8, t, 0.5};
    scoped_image image = extraction_blank(160, 150);
    add_blob(&image, &b);
    scoped_features f = extraction_once(&o, &image);
    const double sigma = scale_of(HS_PROFILE_LOWE, t, 3, false);
    const hs_keypoint *k = nearest(&f, &b, sigma);
    const double room = place_room(HS_PROFILE_LOWE, k);
    if (!(fabs((double)k->x - b.x) < room && fabs((double)k->y - b.y) < room &&
          fabs((double)k->sigma / sigma - 1.0) < 0.02))
      fail_msg("first octave %d: (%g, %g) sigma %g, expected %g", first, (double)k->x, (double)k->y, (double)k->sigma,
               sigma);
  }
}

/* With more scales an octave the best scale is sqrt((t^2 - b^2) / 2^(1/S)). */
TEST(test_scales) {
  for (int32_t scales = 2; scales <= 6; scales++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    o.scales = scales;
    o.contrast = 0.01f;
    o.upright = 1;
    const blob b = {45.2, 41.7, 3.7, 0.5};
    scoped_image image = extraction_blank(96, 88);
    add_blob(&image, &b);
    scoped_features f = extraction_once(&o, &image);
    const double sigma = scale_of(HS_PROFILE_LOWE, b.t, scales, true);
    const hs_keypoint *k = nearest(&f, &b, sigma);
    const double error = fmax(fabs((double)k->x - b.x), fabs((double)k->y - b.y));
    if (!(error < 0.03)) fail_msg("S = %d: found %g px away", scales, error);
    if (!(fabs((double)k->sigma / sigma - 1.0) < 0.02))
      fail_msg("S = %d: sigma %g, expected %g", scales, (double)k->sigma, sigma);
  }
}

/* Several blobs in one picture are each found, and a single blob gives one keypoint. */
TEST(test_count) {
  const blob blobs[] = {{30.3, 28.6, 2.5, 0.4}, {92.8, 31.1, 3.0, -0.4}, {60.2, 90.7, 4.0, 0.4}};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image image = extraction_blank(128, 120);
  add_level(&image, 0.5f);
  for (int i = 0; i < 3; i++) add_blob(&image, &blobs[i]);
  o.upright = 1; /* one feature a keypoint */
  scoped_features f = extraction_once(&o, &image);
  assert_int_equal(f.count, 3);
  for (int i = 0; i < 3; i++) {
    const hs_keypoint *k = nearest(&f, &blobs[i], scale_of(HS_PROFILE_LOWE, blobs[i].t, 3, true));
    assert_true(hypot((double)k->x - blobs[i].x, (double)k->y - blobs[i].y) < 0.1);
    assert_true(k->orientation == 0.0f);
  }
}

/* The response is |D| at the extremum: for a blob of height h that is h (t^2 - b^2) (1/v1 - 1/v2), v = t^2 - b^2 +
   sigma^2 of the two levels. */
TEST(test_response) {
  const blob b = {45.1, 41.1, 3.3, 0.5};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.upright = 1;
  scoped_image image = extraction_blank(96, 88);
  add_blob(&image, &b);
  scoped_features f = extraction_once(&o, &image);
  const double v = b.t * b.t - 0.25, sigma2 = v / cbrt(2.0), k2 = pow(2.0, 2.0 / 3.0);
  const double expected = b.height * b.t * b.t * (1.0 / (v + sigma2) - 1.0 / (v + k2 * sigma2));
  const hs_keypoint *k = nearest(&f, &b, sqrt(sigma2));
  if (!(fabs((double)k->response / expected - 1.0) < 0.02))
    fail_msg("response %g, expected %g", (double)k->response, expected);
}

/* ------------------------------------------------------------------ orientation */

/* A blob on a ramp that rises in the direction of an angle: the gradients around it agree on that angle, in the y-down
 * sense. */
static void check_angle(hs_profile profile, double degrees, double tolerance_degrees) {
  const double a = degrees * 3.14159265358979323846 / 180.0;
  const blob b = {50.1, 48.2, 4.0, 0.5};
  hs_options o = extraction_options(profile);
  o.contrast = 0.005f;
  o.max_orientations = 1;
  scoped_image image = extraction_blank(101, 97);
  float *v = extraction_floats(&image);
  for (int32_t y = 0; y < image.height; y++)
    for (int32_t x = 0; x < image.width; x++)
      v[y * image.width + x] = (float)(0.5 + 0.04 * ((x - 50) * cos(a) + (y - 48) * sin(a)));
  image.range_low = -3.0f; /* range for the ramp */
  image.range_high = 4.0f;
  add_blob(&image, &b);
  scoped_features f = extraction_once(&o, &image);
  const hs_keypoint *k = nearest(&f, &b, scale_of(profile, b.t, 3, true));
  const double error = extraction_angle_between((double)k->orientation, a) * 180.0 / 3.14159265358979323846;
  if (!(error < tolerance_degrees))
    fail_msg("profile %d: %g degrees, expected %g", (int)profile, (double)k->orientation * 57.29577951, degrees);
}

TEST(test_orientation) {
  for (int32_t degrees = 0; degrees < 360; degrees += 47) {
    check_angle(HS_PROFILE_LOWE, (double)degrees, 1.5);
    check_angle(HS_PROFILE_VLFEAT, (double)degrees, 1.5);
    check_angle(HS_PROFILE_OPENCV, (double)degrees, 6.0); /* votes for the nearest of 36 bins */
  }
}
