/*
 * Fixed-point votes at their limit: the proven bounds hold, no sum of votes reaches 2^31, and the error from rounding
 * votes is small.
 */

#include "tests/support/test.h"

#include "stages/describe.h"
#include "tests/support/reference_frame.h"

#define LIMIT 2147483648.0 /* 2^31 */

/* Returns black or white with period 4 along both axes, so that every half difference is 1/2 in absolute value, in x
 * and in y. */
static float period4(int32_t x, int32_t y) { return (float)((((x >> 1) ^ (y >> 1)) & 1)); }

static plane_view adversarial_plane(int32_t side) {
  float *samples = malloc(sizeof *samples * (size_t)side * (size_t)side);
  assert_non_null(samples);
  for (int32_t y = 0; y < side; y++)
    for (int32_t x = 0; x < side; x++) samples[(size_t)y * (size_t)side + (size_t)x] = period4(x, y);
  return (plane_view){samples, side, side, (size_t)side};
}

TEST(test_plane_is_the_worst) {
  plane_view p = adversarial_plane(40);
  for (int32_t y = 1; y < 39; y++)
    for (int32_t x = 1; x < 39; x++) {
      float gx, gy;
      gradient_at(&p, x, y, &gx, &gy);
      assert_true(fabsf(gx) == 0.5f && fabsf(gy) == 0.5f);
    }
  free(p.data);
}

/* The number of bits decreases with the radius, and is the largest that the bound allows. */
TEST(test_bits) {
  static vote_scales scales;
  vote_scales_init(&scales);
  for (int32_t r = 0; r <= WINDOW_RADIUS_MAX; r++) {
    const double rounding = 2.0 * (2.0 * r + 1.0) * (2.0 * r + 1.0);
    const int32_t q[2] = {orient_vote_bits(r), describe_vote_bits(r)};
    const int32_t most[2] = {ORIENT_VOTE_BITS_MAX, DESCRIBE_VOTE_BITS_MAX};
    const double bound[2] = {orient_weight_bound(r), describe_weight_bound(r)};
    assert_true(scales.orient[r] == ldexpf(1.0f, q[0]) && scales.describe[r] == ldexpf(1.0f, q[1]));
    for (int i = 0; i < 2; i++) {
      assert_true(q[i] >= 0 && q[i] <= most[i]);
      assert_true(bound[i] * sqrt(0.5) * ldexp(1.0, q[i]) + rounding < LIMIT);
      if (q[i] < most[i]) assert_true(bound[i] * 0.70711 * ldexp(1.0, q[i] + 1) + rounding >= LIMIT);
    }
  }
  /* numbers given in stages/METHOD.md */
  assert_true(describe_vote_bits(26) == 22 && describe_vote_bits(27) == 21 && describe_vote_bits(55) == 19);
  assert_true(orient_vote_bits(40) == 21 && orient_vote_bits(42) == 20 && orient_vote_bits(60) == 19);
  /* rounded products stay in the range where rounding by addition is exact */
  assert_true(ldexp(sqrt(2.0), ORIENT_VOTE_BITS_MAX) < 4194304.0 &&
              ldexp(sqrt(0.5), DESCRIBE_VOTE_BITS_MAX) < 4194304.0);
}

/* Returns the largest sigma with this window radius, which has the widest Gaussian. */
static float largest_sigma_of_orient(int32_t radius, author_rule rule) {
  float sigma = ((float)radius + 1.5f) / ORIENT_WINDOW_RADIUS;
  while (orient_radius(sigma, rule) > radius) sigma = nextafterf(sigma, 0.0f);
  return sigma;
}

static float largest_sigma_of_describe(int32_t radius) {
  float sigma = ((float)radius + 1.0f) / (DESCRIBE_CELL_SIGMA * DESCRIBE_WINDOW_CELLS);
  while (describe_radius(sigma) > radius) sigma = nextafterf(sigma, 0.0f);
  return sigma;
}

typedef struct sums {
  double weights;
  int64_t votes;   /* votes in bins that reach the result */
  int64_t all;     /* votes in all bins, including the padding */
  int64_t largest; /* largest sum of a bin */
} sums;

static sums orient_sums(const plane_view *level, const orient_window *w, author_rule rule, float scale) {
  sums s = {0};
  int64_t bins[ORIENT_BINS] = {0};
  for (int32_t j = w->cy - w->radius; j <= w->cy + w->radius; j++)
    for (int32_t i = w->cx - w->radius; i <= w->cx + w->radius; i++) {
      if (i < w->margin || i >= level->width - w->margin || j < w->margin || j >= level->height - w->margin) continue;
      const float dx = (float)i - w->x, dy = (float)j - w->y;
      if (!(dx * dx + dy * dy < w->limit)) continue;
      float gx, gy;
      if (w->margin == 0)
        gradient_at_edge(level, i, j, &gx, &gy);
      else
        gradient_at(level, i, j, &gx, &gy);
      const float weight = window_weight(dx, w->falloff) * (window_weight(dy, w->falloff) * scale);
      const orient_vote v = orient_vote_of(gx, gy, weight, rule);
      assert_true(v.v0 >= 0 && v.v1 >= 0);
      s.weights += (double)weight / (double)scale;
      s.votes += (int64_t)v.v0 + v.v1;
      bins[v.bin0] += v.v0;
      bins[v.bin1] += v.v1;
    }
  for (int i = 0; i < ORIENT_BINS; i++) s.largest = bins[i] > s.largest ? bins[i] : s.largest;
  return s;
}

static const int32_t radii[] = {1, 2, 3, 5, 8, 13, 21, 34, 48, 54, 55, 59, 60, 77, 78, 86, 87, 110, 240};
enum { RADII = sizeof radii / sizeof radii[0] };
static const float shifts[] = {0.0f, 0.25f, 0.4999f, -0.5f};

TEST(test_orientation_stays_below_the_limit) {
  plane_view p = adversarial_plane(520);
  double closest = 0.0;
  for (size_t n = 0; n < RADII; n++)
    for (int rule = RULE_LOWE; rule <= RULE_VLFEAT; rule++)
      for (size_t k = 0; k < 16; k += 3) {
        const int32_t r = radii[n];
        const float sigma = largest_sigma_of_orient(r, (author_rule)rule), x = 259.0f + shifts[k % 4],
                    y = 260.0f + shifts[k / 4];
        const orient_window w = orient_window_of(x, y, sigma, 259, 260, (author_rule)rule);
        if (w.radius != r) continue; /* VLFeat has no radius 0 */
        const float scale = ldexpf(1.0f, orient_vote_bits(r));
        const sums s = orient_sums(&p, &w, (author_rule)rule, scale);
        if (!(s.weights <= orient_weight_bound(r)))
          fail_msg("radius %d: weights %g above the bound %g", r, s.weights, orient_weight_bound(r));
        assert_true((double)s.votes < LIMIT);
        if ((double)s.votes / LIMIT > closest) closest = (double)s.votes / LIMIT;
      }
  printf("             largest sum of orientation votes: %.3f of 2^31\n", closest);
  assert_true(closest > 0.3); /* the test comes close to the limit */
  free(p.data);
}

/* VLFeat's windows lie at the image's corner, where one-sided differences are twice as large. */
TEST(test_orientation_on_the_edge) {
  for (size_t n = 0; n < RADII; n++)
    for (int32_t side = 2; side <= 400; side = side * 5 + 1) {
      plane_view p = adversarial_plane(side);
      /* differences at the edge are 1 where the two outermost samples differ, so the pattern is shifted by one */
      for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) p.data[(size_t)y * (size_t)side + (size_t)x] = period4(x + 1, y + 1);
      const int32_t r = radii[n];
      const orient_window w = orient_window_of(0.0f, 0.0f, largest_sigma_of_orient(r, RULE_VLFEAT), 0, 0, RULE_VLFEAT);
      const sums s = orient_sums(&p, &w, RULE_VLFEAT, ldexpf(1.0f, orient_vote_bits(w.radius)));
      assert_true((double)s.votes < LIMIT);
      free(p.data);
    }
}

/* Returns whether a padded bin reaches the cropped histogram. */
static bool kept(int32_t index) {
  const int32_t row = index / DESCRIBE_ROW, column = index % DESCRIBE_ROW / DESCRIBE_PADDED_BINS;
  return row >= 1 && row <= 4 && column >= 1 && column <= 4;
}

static sums describe_sums(const plane_view *level, const describe_window *w, float scale) {
  sums s = {0};
  int64_t bins[DESCRIBE_PADDED_LENGTH + DESCRIBE_ROW + DESCRIBE_PADDED_BINS + 2] = {0};
  for (int32_t j = w->cy - w->radius; j <= w->cy + w->radius; j++)
    for (int32_t i = w->cx - w->radius; i <= w->cx + w->radius; i++) {
      float row, column, gx, gy;
      const float dx = (float)i - w->x, dy = (float)j - w->y;
      if (!describe_position(w, dx, dy, &row, &column)) continue;
      gradient_at(level, i, j, &gx, &gy);
      const float weight = window_weight(dx, w->falloff) * (window_weight(dy, w->falloff) * scale);
      const describe_votes v = describe_votes_of(w, gx, gy, weight, row, column);
      static const int32_t offsets[8] = {0, 1, 10, 11, 60, 61, 70, 71};
      assert_true(v.index >= 0 && v.index + 71 < DESCRIBE_PADDED_LENGTH);
      for (int k = 0; k < 8; k++) {
        assert_true(v.v[k] >= (k % 4 == 0 ? -2 : 0));
        bins[v.index + offsets[k]] += v.v[k];
      }
      /* share of the weight in the 4 x 4 cells */
      const double u = fabs((double)column - 2.5), t = fabs((double)row - 2.5);
      s.weights += (double)weight / (double)scale * fmin(1.0, 2.5 - u) * fmin(1.0, 2.5 - t);
    }
  for (int32_t i = 0; i < DESCRIBE_PADDED_LENGTH; i++) {
    s.all += bins[i];
    if (kept(i)) s.votes += bins[i];
    if (bins[i] > s.largest) s.largest = bins[i];
  }
  return s;
}

TEST(test_descriptor_stays_below_the_limit) {
  plane_view p = adversarial_plane(520);
  double closest = 0.0, tightest = 10.0, padded = 0.0;
  for (size_t n = 0; n < RADII; n++)
    for (size_t k = 0; k < 24; k += 2) {
      const int32_t r = radii[n];
      if (r < 2) continue;
      const float angle = (float)k * 0.2618f, x = 260.0f + shifts[k / 2 % 4], y = 259.0f + shifts[k / 8];
      const describe_window w =
          describe_window_of(x, y, largest_sigma_of_describe(r), angle, k % 3 ? RULE_LOWE : RULE_OPENCV);
      assert_int_equal(w.radius, r);
      const sums s = describe_sums(&p, &w, ldexpf(1.0f, describe_vote_bits(r)));
      if (!(s.weights <= describe_weight_bound(r)))
        fail_msg("radius %d: weights %g above the bound %g", r, s.weights, describe_weight_bound(r));
      assert_true((double)s.votes < LIMIT && (double)s.largest < LIMIT);
      closest = fmax(closest, (double)s.votes / LIMIT);
      padded = fmax(padded, (double)s.all / LIMIT);
      if (r > 20) tightest = fmin(tightest, describe_weight_bound(r) / s.weights);
    }
  printf(
      "             largest sum of descriptor votes: %.3f of 2^31 (padding included %.3f); bound / weights from %.3f\n",
      closest, padded, tightest);
  assert_true(closest > 0.3);
  free(p.data);
}

/* ------------------------------------------------------------------ error from rounding the votes */

/* Computes the descriptor of unit norm with votes summed in double. */
static void unrounded(const plane_view *level, const describe_window *w, double d[DESCRIBE_LENGTH]) {
  double norm = 0.0, clipped = 0.0;
  memset(d, 0, sizeof *d * DESCRIBE_LENGTH);
  for (int32_t j = w->cy - w->radius; j <= w->cy + w->radius; j++)
    for (int32_t i = w->cx - w->radius; i <= w->cx + w->radius; i++) {
      if (i < 1 || i >= level->width - 1 || j < 1 || j >= level->height - 1) continue;
      float row, column, gx, gy;
      const float dx = (float)i - w->x, dy = (float)j - w->y;
      if (!describe_position(w, dx, dy, &row, &column)) continue;
      gradient_at(level, i, j, &gx, &gy);
      const double turns = (double)w->direction / 8.0 - atan2((double)gy, (double)gx) / 6.283185307179586;
      const double direction = (turns - floor(turns)) * 8.0;
      const double weight = exp2(-((double)dx * (double)dx + (double)dy * (double)dy) * (double)w->falloff);
      const double v = hypot((double)gx, (double)gy) * weight;
      for (int32_t cell = 0; cell < DESCRIBE_CELLS * DESCRIBE_CELLS; cell++) {
        const double r = 1.0 - fabs((double)row - (1 + cell / 4)), q = 1.0 - fabs((double)column - (1 + cell % 4));
        if (r <= 0.0 || q <= 0.0) continue;
        const int32_t b = (int32_t)direction;
        d[cell * 8 + b % 8] += v * r * q * (1.0 - (direction - b));
        d[cell * 8 + (b + 1) % 8] += v * r * q * (direction - b);
      }
    }
  for (int i = 0; i < DESCRIBE_LENGTH; i++) norm += d[i] * d[i];
  const double clip = 0.2 * sqrt(norm);
  for (int i = 0; i < DESCRIBE_LENGTH; i++) {
    d[i] = fmin(d[i], clip);
    clipped += d[i] * d[i];
  }
  for (int i = 0; i < DESCRIBE_LENGTH; i++) d[i] = clipped > 0.0 ? d[i] / sqrt(clipped) : 0.0;
}

static double compare_descriptor(const reference_frame *f, uint32_t n) {
  const uint32_t k = f->features.keypoint[n];
  const octave_view *o = &f->octaves[f->keypoints.octave[k] - f->geometry.first_octave];
  const plane_view level = octave_level(o, f->keypoints.level[k]);
  const octave_keypoint at = keypoint_in_octave(&f->keypoints, k, f->params.grid_shift);
  const describe_window w = describe_window_of(at.x, at.y, at.sigma, f->features.orientation[n], RULE_LOWE);
  double exact[DESCRIBE_LENGTH], squares = 0.0;
  unrounded(&level, &w, exact);
  const float *got = (const float *)f->descriptors + (size_t)n * DESCRIBE_LENGTH;
  for (int i = 0; i < DESCRIBE_LENGTH; i++) squares += ((double)got[i] - exact[i]) * ((double)got[i] - exact[i]);
  return sqrt(squares);
}

/* Returns the largest distance between descriptors with rounded and unrounded votes, over all features of a noise
 * picture of `levels` gray levels. A unit of a descriptor byte is 1/512. */
static double rounding_error(uint32_t levels, size_t *features) {
  hs_options o;
  assert_int_equal(hs_options_init(&o, HS_PROFILE_LOWE), HS_OK);
  o.contrast = 0.0f;
  o.descriptor = HS_DESCRIPTOR_F32;
  SCOPED_MEMORY uint8_t *pixels = reference_noise(96, 80, 5u, 1);
  assert_non_null(pixels);
  for (size_t i = 0; i < 96 * 80; i++) pixels[i] = (uint8_t)(128u + pixels[i] * levels / 256u);
  const hs_image image = {.data = pixels, .width = 96, .height = 80};
  static reference_frame f;
  assert_true(reference_frame_make(&f, &image, &o, NULL, 0));
  double largest = 0.0;
  for (uint32_t n = 0; n < *f.features.count; n++) largest = fmax(largest, compare_descriptor(&f, n));
  *features = *f.features.count;
  reference_frame_free(&f);
  return largest;
}

TEST(test_rounding_error) {
  const uint32_t levels[] = {128, 16, 4, 2};
  const double bounds[] = {2.0e-4, 1.5e-3, 4.0e-3, 8.0e-3};
  for (size_t i = 0; i < 4; i++) {
    size_t features;
    const double error = rounding_error(levels[i], &features);
    printf("             %3u gray levels, %zu features: descriptors within %.3g of unrounded votes\n", levels[i],
           features, error);
    assert_true(features > 30);
    assert_true(error < bounds[i]);
  }
}
