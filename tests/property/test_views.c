/*
 * Two views of one scene: features are found again at the positions given by the homography, and their descriptors
 * match.
 */

#include "tests/support/test.h"

enum { WIDTH = 200, HEIGHT = 160 };

/* A view: its name, its homography, and the minimum shares of every profile. */
typedef struct view_case {
  const char *name;
  double h[9];
  double found, matched;
} view_case;

static const view_case views[] = {
    {"turned by 30 degrees", {0.8660254, -0.5, 53.4, 0.5, 0.8660254, -39.3, 0, 0, 1}, 0.65, 0.9},
    {"larger by 1.4", {1.4, 0, -40, 0, 1.4, -32, 0, 0, 1}, 0.5, 0.85},
    {"tilted", {1.05, 0.08, -18, -0.03, 0.95, 8, 3e-4, 2e-4, 1}, 0.55, 0.9},
};

static void apply(const double *h, double x, double y, double *u, double *v) {
  const double w = h[6] * x + h[7] * y + h[8];
  *u = (h[0] * x + h[1] * y + h[2]) / w;
  *v = (h[3] * x + h[4] * y + h[5]) / w;
}

/* Maps position, scale (square root of the change of area) and angle of a feature to the view. Returns false near the
 * view's border. */
static bool map_view(hs_keypoint *k, const void *data) {
  const double *h = data, e = 0.01;
  double u, v, ux, vx, uy, vy, ua, va;
  apply(h, (double)k->x, (double)k->y, &u, &v);
  apply(h, (double)k->x + e, (double)k->y, &ux, &vx);
  apply(h, (double)k->x, (double)k->y + e, &uy, &vy);
  apply(h, (double)k->x + e * cos((double)k->orientation), (double)k->y + e * sin((double)k->orientation), &ua, &va);
  const double scale = sqrt(fabs((ux - u) * (vy - v) - (uy - u) * (vx - v))) / e;
  k->x = (float)u;
  k->y = (float)v;
  k->sigma = (float)((double)k->sigma * scale);
  k->orientation = (float)(atan2(va - v, ua - u));
  if (k->orientation < 0.0f) k->orientation += 6.2831853f;
  const double room = 8.0 * (double)k->sigma;
  return u > room && v > room && u < WIDTH - 1 - room && v < HEIGHT - 1 - room && k->sigma > 1.5f;
}

/* Returns the share of features with a match at the right position, among the features whose nearest descriptor in the
 * view is clearly nearer than the second nearest (0.8). */
static double matched_share(const hs_features *a, const hs_features *b, const double *h, size_t *asked) {
  size_t right = 0;
  *asked = 0;
  for (size_t i = 0; i < a->count; i++) {
    hs_keypoint k = a->keypoints[i];
    if (!map_view(&k, h)) continue;
    double first = 1e9, second = 1e9;
    size_t best = 0;
    for (size_t j = 0; j < b->count; j++) {
      const double d = extraction_distance(a, i, b, j);
      if (d < first)
        second = first, first = d, best = j;
      else if (d < second)
        second = d;
    }
    if (first > 0.8 * second) continue; /* Lowe's ratio test */
    (*asked)++;
    right += hypot((double)(b->keypoints[best].x - k.x), (double)(b->keypoints[best].y - k.y)) < 2.0 + (double)k.sigma;
  }
  return *asked > 0 ? (double)right / (double)*asked : 0.0;
}

TEST(test_views) {
  const extraction_tolerance t = {0.5, 0.3, 0.3};
  scoped_image plain = extraction_scene(WIDTH, HEIGHT, 31, NULL);
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    const hs_options o = extraction_options((hs_profile)p);
    scoped_features a = extraction_once(&o, &plain);
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
      scoped_image view = extraction_scene(WIDTH, HEIGHT, 31, views[i].h);
      scoped_features b = extraction_once(&o, &view);
      size_t asked;
      const extraction_share share = extraction_match(&a, map_view, views[i].h, &b, &t);
      const double matched = matched_share(&a, &b, views[i].h, &asked);
      printf("             profile %d, %s: %zu of %zu found (%.3f); of %zu matches %.3f right\n", p, views[i].name,
             share.found, share.asked, share.share, asked, matched);
      assert_true(share.asked > 30 && asked > 15);
      assert_true(share.share >= views[i].found && matched >= views[i].matched);
    }
  }
}
