/*
 * Symmetries: a mirrored, rotated or shifted picture gives mirrored, rotated or shifted features.
 */

#include "tests/support/test.h"

#define PI 3.14159265358979323846

/* ------------------------------------------------------------------ pictures and positions under a symmetry */

typedef enum symmetry { MIRROR_X, MIRROR_Y, QUARTER_TURN, HALF_TURN, SYMMETRIES } symmetry;

static const char *const names[] = {"mirrored left to right", "mirrored top to bottom", "turned by 90 degrees",
                                    "turned by 180 degrees"};

/* Maps a position of the plain picture (width x height) to the transformed picture. The quarter turn is clockwise on
 * the screen. */
static void place_of(symmetry s, double width, double height, double x, double y, double *u, double *v) {
  *u = s == MIRROR_X || s == HALF_TURN ? width - 1.0 - x : (s == QUARTER_TURN ? height - 1.0 - y : x);
  *v = s == MIRROR_Y || s == HALF_TURN ? height - 1.0 - y : (s == QUARTER_TURN ? x : y);
}

static double angle_of(symmetry s, double a) {
  if (s == MIRROR_X) return PI - a;
  if (s == MIRROR_Y) return -a;
  return s == QUARTER_TURN ? a + 0.5 * PI : a + PI;
}

static hs_image picture_under(symmetry s, const hs_image *image) {
  hs_image out = extraction_as_floats(image);
  if (s == QUARTER_TURN) {
    out.width = image->height;
    out.height = image->width;
  }
  for (int32_t y = 0; y < image->height; y++)
    for (int32_t x = 0; x < image->width; x++) {
      double u, v;
      place_of(s, image->width, image->height, x, y, &u, &v);
      extraction_floats(&out)[(int32_t)v * out.width + (int32_t)u] =
          (float)((const uint8_t *)image->data)[y * image->width + x];
    }
  return out;
}

typedef struct symmetry_map {
  symmetry s;
  int32_t width, height;
  double margin; /* in units of sigma; features nearer to a border are not compared */
} symmetry_map;

static bool map_symmetry(hs_keypoint *k, const void *data) {
  const symmetry_map *m = data;
  const double room = m->margin * (double)k->sigma;
  double u, v;
  if (m->margin > 0.0 && ((double)k->x < room || (double)k->y < room || (double)k->x > m->width - 1 - room ||
                          (double)k->y > m->height - 1 - room))
    return false;
  place_of(m->s, m->width, m->height, (double)k->x, (double)k->y, &u, &v);
  k->x = (float)u;
  k->y = (float)v;
  k->orientation = (float)angle_of(m->s, (double)k->orientation);
  return true;
}

/* ------------------------------------------------------------------ one octave on the picture's grid: exact */

static hs_options one_octave(hs_profile profile) {
  hs_options o = extraction_options(profile);
  o.first_octave = 0;
  o.octaves = 1;
  o.max_features = 0;
  return o;
}

/* Mirroring keeps every sum and difference or changes its sign. Therefore keypoints, scale and response are equal to
 * the bit, and positions up to the rounding of one addition. */
TEST(test_mirrors_are_exact) {
  scoped_image scene = extraction_scene(121, 94, 8, NULL);
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (int s = MIRROR_X; s <= MIRROR_Y; s++) {
      hs_options o = one_octave((hs_profile)p);
      o.upright = 1;
      scoped_image other = picture_under((symmetry)s, &scene);
      scoped_features a = extraction_once(&o, &scene), b = extraction_once(&o, &other);
      assert_true(a.count > 20);
      assert_int_equal(a.count, b.count);
      for (size_t i = 0; i < a.count; i++) {
        const hs_keypoint *k = &a.keypoints[i];
        double u, v;
        size_t found = 0;
        place_of((symmetry)s, scene.width, scene.height, (double)k->x, (double)k->y, &u, &v);
        for (size_t j = 0; j < b.count; j++)
          found += b.keypoints[j].sigma == k->sigma && b.keypoints[j].response == k->response &&
                   b.keypoints[j].level == k->level && fabs((double)b.keypoints[j].x - u) < 2e-5 &&
                   fabs((double)b.keypoints[j].y - v) < 2e-5;
        if (found != 1)
          fail_msg("profile %d, %s: (%g, %g) has %zu counterparts", p, names[s], (double)k->x, (double)k->y, found);
      }
    }
}

/* A mirrored patch has its rows (across the orientation) and its bins in reverse order. */
TEST(test_mirrored_descriptors) {
  scoped_image scene = extraction_scene(121, 94, 8, NULL), other = picture_under(MIRROR_X, &scene);
  hs_options o = one_octave(HS_PROFILE_LOWE);
  scoped_features a = extraction_once(&o, &scene), b = extraction_once(&o, &other);
  const symmetry_map map = {MIRROR_X, scene.width, scene.height, 0.0};
  size_t found = 0;
  for (size_t i = 0; i < a.count; i++) {
    hs_keypoint k = a.keypoints[i];
    assert_true(map_symmetry(&k, &map));
    for (size_t j = 0; j < b.count; j++) {
      if (fabsf(b.keypoints[j].x - k.x) > 1e-3f || fabsf(b.keypoints[j].y - k.y) > 1e-3f ||
          b.keypoints[j].sigma != k.sigma ||
          extraction_angle_between((double)k.orientation, (double)b.keypoints[j].orientation) > 1e-3)
        continue;
      const uint8_t *d = extraction_descriptor(&a, i), *e = extraction_descriptor(&b, j);
      found++;
      for (int row = 0; row < 4; row++)
        for (int n = 0; n < 32; n++) {
          const int mirrored = (3 - row) * 32 + n / 8 * 8 + (8 - n % 8) % 8;
          assert_true(abs((int)d[row * 32 + n] - (int)e[mirrored]) <= 2);
        }
    }
  }
  printf("             %zu of %zu mirrored features, descriptors within 2\n", found, a.count);
  assert_true((double)found >= 0.98 * (double)a.count);
}

/* Checks the share of features with a counterpart under each symmetry. */
static void check_shares(const hs_options *o, const hs_image *scene, double margin, const extraction_tolerance *t,
                         double least) {
  hs_features a = extraction_once(o, scene);
  for (int s = 0; s < SYMMETRIES; s++) {
    scoped_image other = picture_under((symmetry)s, scene);
    scoped_features b = extraction_once(o, &other);
    const symmetry_map map = {(symmetry)s, scene->width, scene->height, margin};
    const extraction_share share = extraction_match(&a, map_symmetry, &map, &b, t);
    printf("             profile %d, %s: %zu of %zu (%.4f), median distance of descriptors %.4f\n", (int)o->profile,
           names[s], share.found, share.asked, share.share, share.median_distance);
    assert_true(share.asked > 25);
    if (!(share.share >= least)) fail_msg("share %.4f, expected %.4f", share.share, least);
    if (s >= QUARTER_TURN) assert_true(share.median_distance < 0.01); /* descriptors of mirrored pictures differ */
  }
  hs_features_free(&a);
}

/* After a rotation by 90 degrees rows are filtered where columns were. Rounding then differs, and a sample may fall
 * into another bin. */
TEST(test_turns_of_one_octave) {
  scoped_image scene = extraction_scene(121, 94, 8, NULL);
  const extraction_tolerance t = {1e-3, 1e-3, 2e-3};
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = one_octave((hs_profile)p);
    check_shares(&o, &scene, 0.0, &t, 0.95);
  }
}

/* All octaves are compared. On the aligned grid the samples are symmetric if each side is 1 more than a multiple of the
 * coarsest octave's step. Features near borders are excluded, because the last row and column of the doubled picture
 * and the rounding of octave sizes are not symmetric. */
TEST(test_turns_of_all_octaves) {
  scoped_image scene = extraction_scene(161, 129, 8, NULL);
  const extraction_tolerance t = {0.02, 0.01, 0.02};
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = extraction_options((hs_profile)p);
    o.max_features = 0;
    o.upsample = HS_UPSAMPLE_ALIGNED;
    check_shares(&o, &scene, 10.0, &t, 0.97);
  }
}

/* On the half-pixel grid the doubled picture is symmetric up to its borders, for pictures of any size. */
TEST(test_turns_of_the_doubled_picture) {
  scoped_image scene = extraction_scene(118, 93, 8, NULL);
  const extraction_tolerance t = {1e-3, 1e-3, 2e-3};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.max_features = 0;
  o.octaves = 1;
  check_shares(&o, &scene, 0.0, &t, 0.97);
}

/* Coarser octaves of a rotated picture have other samples, so positions differ, but their mean difference must be 0: a
 * bias of positions would appear twice. */
TEST(test_no_drift) {
  scoped_image scene = extraction_scene(320, 288, 8, NULL), other = picture_under(HALF_TURN, &scene);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.max_features = 0;
  scoped_features a = extraction_once(&o, &scene), b = extraction_once(&o, &other);
  double sum[2] = {0.0, 0.0};
  size_t pairs = 0;
  for (size_t i = 0; i < a.count; i++)
    for (size_t j = 0; j < b.count; j++) {
      const hs_keypoint *k = &a.keypoints[i], *l = &b.keypoints[j];
      const double dx = (double)l->x - (scene.width - 1 - (double)k->x);
      const double dy = (double)l->y - (scene.height - 1 - (double)k->y);
      if (k->octave != l->octave || fabs(log2((double)l->sigma / (double)k->sigma)) > 0.05 || hypot(dx, dy) > 0.75 ||
          extraction_angle_between((double)l->orientation, (double)k->orientation + PI) > 0.1)
        continue;
      sum[0] += dx;
      sum[1] += dy;
      pairs++;
    }
  printf("             %zu of %zu features turned by 180 degrees, mean difference (%.5f, %.5f) px\n", pairs, a.count,
         sum[0] / (double)pairs, sum[1] / (double)pairs);
  assert_true((double)pairs > 0.9 * (double)a.count);
  assert_true(fabs(sum[0]) < 0.01 * (double)pairs && fabs(sum[1]) < 0.01 * (double)pairs);
}

/* ------------------------------------------------------------------ shifts */

enum { SHIFT_X = 16, SHIFT_Y = 8, CUT_WIDTH = 240, CUT_HEIGHT = 216 };

/* Maps a feature to the other crop. Returns false near a border, where filters of its octave or finer ones reach the
 * border of a crop. */
static bool map_shift(hs_keypoint *k, const void *data) {
  (void)data;
  const float margin = k->octave < 0 ? 40.0f : 80.0f;
  k->x -= SHIFT_X;
  k->y -= SHIFT_Y;
  return k->x > margin && k->y > margin && k->x < CUT_WIDTH - 1 - margin - SHIFT_X &&
         k->y < CUT_HEIGHT - 1 - margin - SHIFT_Y;
}

/* Two crops of one scene, shifted by whole samples of the coarsest octave: every inner feature is in both, with scale
 * and response to the bit. Positions differ by rounding, 2^-17 px at most, and descriptors by a unit. */
TEST(test_shifts) {
  scoped_image scene = extraction_scene(CUT_WIDTH + SHIFT_X, CUT_HEIGHT + SHIFT_Y, 14, NULL);
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = extraction_options((hs_profile)p);
    o.octaves = 2;
    o.max_features = 0;
    o.descriptor = HS_DESCRIPTOR_U8;
    hs_image a = scene, b = scene;
    a.width = b.width = CUT_WIDTH;
    a.height = b.height = CUT_HEIGHT;
    b.data = (const uint8_t *)scene.data + SHIFT_Y * scene.width + SHIFT_X;
    scoped_features f = extraction_once(&o, &a), g = extraction_once(&o, &b);
    size_t asked = 0, equal = 0, coarse = 0;
    for (size_t i = 0; i < f.count; i++) {
      hs_keypoint k = f.keypoints[i];
      if (!map_shift(&k, NULL)) continue;
      size_t j = 0;
      while (j < g.count &&
             !(g.keypoints[j].sigma == k.sigma && g.keypoints[j].response == k.response &&
               g.keypoints[j].octave == k.octave && fabsf(g.keypoints[j].x - k.x) < 5e-5f &&
               fabsf(g.keypoints[j].y - k.y) < 5e-5f &&
               extraction_angle_between((double)g.keypoints[j].orientation, (double)k.orientation) < 1e-3))
        j++;
      if (j == g.count)
        fail_msg("profile %d: (%g, %g) sigma %g has no counterpart", p, (double)k.x, (double)k.y, (double)k.sigma);
      const uint8_t *d = extraction_descriptor(&f, i), *e = extraction_descriptor(&g, j);
      for (int n = 0; n < HS_DESCRIPTOR_LENGTH; n++) assert_true(abs((int)d[n] - (int)e[n]) <= 1);
      asked++;
      coarse += k.octave == 0;
      equal += memcmp(d, e, HS_DESCRIPTOR_LENGTH) == 0;
    }
    printf("             profile %d: %zu features of the inside (%zu of octave 0), %zu descriptors equal to the bit\n",
           p, asked, coarse, equal);
    assert_true(asked > 50 && coarse > 0 && (double)equal > 0.8 * (double)asked);
  }
}
