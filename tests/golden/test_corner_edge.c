/*
 * Corners are features; edges and flat or regular pictures are not. A gradient of known direction falls into the right
 * cells and bins of the descriptor.
 */

#include "tests/support/test.h"

#define PI 3.14159265358979323846

/* ------------------------------------------------------------------ pictures with and without keypoints */

/* The share of a pixel's 4 x 4 samples for which inside() holds. */
typedef bool (*region_test)(double x, double y);

static hs_image picture_of(region_test inside, int32_t width, int32_t height) {
  hs_image image = extraction_blank(width, height);
  float *v = extraction_floats(&image);
  for (int32_t y = 0; y < height; y++)
    for (int32_t x = 0; x < width; x++) {
      int n = 0;
      for (int k = 0; k < 16; k++) n += inside(x + ((k % 4) - 1.5) / 4.0, y + ((k / 4) - 1.5) / 4.0);
      *v++ = 0.2f + 0.6f * (float)n / 16.0f;
    }
  return image;
}

/* A bar of width 8 that comes from the left and ends at x = 60. */
static bool bar(double x, double y) { return x < 60.0 && fabs(y - 52.3) < 4.0; }
static bool right_half(double x, double y) { return (void)y, x > 60.3; }
static bool slanted_half(double x, double y) { return x * 0.8 + y * 0.6 > 80.0; }

/* A bar's end is a feature on its axis; the bar itself, an edge at every scale, is none. (The corner of an infinite
 * quadrant looks the same at every scale, so it has no extremum over scale.) */
TEST(test_bar_end) {
  scoped_image image = picture_of(bar, 160, 104);
  for (int profile = 0; profile < HS_PROFILE_VLFEAT; profile++) {
    const hs_options o = extraction_options((hs_profile)profile);
    scoped_features f = extraction_once(&o, &image);
    size_t at_end = 0;
    for (size_t i = 0; i < f.count; i++) {
      const hs_keypoint *k = &f.keypoints[i];
      const double axis = fabs((double)k->y - 52.3 - (profile == HS_PROFILE_OPENCV ? 0.25 : 0.0));
      at_end += axis < 0.3 && k->x > 50.0f && k->x < 62.0f && k->sigma > 2.0f && k->sigma < 6.0f;
      if (axis < 4.0 && k->x > 20.0f && k->x < 40.0f)
        fail_msg("profile %d: a feature on the bar at (%g, %g) sigma %g", profile, (double)k->x, (double)k->y,
                 (double)k->sigma);
    }
    if (at_end == 0) fail_msg("profile %d: no feature at the bar's end (%zu in all)", profile, f.count);
  }
}

/* Along an edge D has no extremum, or one that the curvature ratio rejects. Only the picture's border, where the edge
 * ends, may give one. */
TEST(test_edges) {
  const region_test edges[] = {right_half, slanted_half};
  for (size_t e = 0; e < 2; e++) {
    scoped_image image = picture_of(edges[e], 120, 104);
    for (int profile = 0; profile < HS_PROFILE_VLFEAT; profile++) {
      const hs_options o = extraction_options((hs_profile)profile);
      scoped_features f = extraction_once(&o, &image);
      for (size_t i = 0; i < f.count; i++) {
        const hs_keypoint *k = &f.keypoints[i];
        const double room = 4.0 * (double)k->sigma;
        if ((double)k->x > room && (double)k->y > room && (double)k->x < 119.0 - room && (double)k->y < 103.0 - room)
          fail_msg("profile %d: a feature on the edge at (%g, %g) sigma %g", profile, (double)k->x, (double)k->y,
                   (double)k->sigma);
      }
    }
  }
}

TEST(test_constant) {
  const float levels[] = {0.0f, 0.3f, 1.0f};
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++)
    for (size_t l = 0; l < 3; l++) {
      const hs_options o = extraction_options((hs_profile)profile);
      scoped_image image = extraction_blank(64, 50);
      for (size_t i = 0; i < 64 * 50; i++) extraction_floats(&image)[i] = levels[l];
      scoped_features f = extraction_once(&o, &image);
      if (f.count != 0) fail_msg("profile %d: %zu features of a constant picture", profile, f.count);
    }
}

/* Squares of 9 pixels, so that their centres are samples: extrema there and nowhere else. */
TEST(test_checkerboard) {
  scoped_image image = extraction_blank(99, 99);
  for (int32_t y = 0; y < 99; y++)
    for (int32_t x = 0; x < 99; x++) extraction_floats(&image)[y * 99 + x] = ((x / 9) ^ (y / 9)) & 1 ? 0.8f : 0.2f;
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.upright = 1;
  scoped_features f = extraction_once(&o, &image);
  size_t central = 0, at_centres = 0;
  for (size_t i = 0; i < f.count; i++) {
    const hs_keypoint *k = &f.keypoints[i];
    if (k->x < 26.0f || k->y < 26.0f || k->x > 72.0f || k->y > 72.0f) continue;
    central++;
    const double cx = fmod((double)k->x - 4.0, 9.0), cy = fmod((double)k->y - 4.0, 9.0);
    at_centres += fmin(cx, 9.0 - cx) < 0.2 && fmin(cy, 9.0 - cy) < 0.2;
  }
  printf("             %zu features, %zu in the middle, %zu of them at centres of fields\n", f.count, central,
         at_centres);
  assert_true(central >= 25);
  assert_int_equal(at_centres, central);
}

/* ------------------------------------------------------------------ the descriptor's convention */

enum { WIDTH = 96, HEIGHT = 88, CX = 48, CY = 44 };

/* A ramp that rises in the direction `angle`, in the y-down sense. */
static hs_image ramp_picture(double angle) {
  hs_image image = extraction_blank(WIDTH, HEIGHT);
  float *v = extraction_floats(&image);
  for (int32_t y = 0; y < HEIGHT; y++)
    for (int32_t x = 0; x < WIDTH; x++) *v++ = (float)(0.5 + 0.004 * ((x - CX) * cos(angle) + (y - CY) * sin(angle)));
  return image;
}

/* A small blob at the centre of a cell, in the patch of a feature at (CX, CY) of sigma 2, rotated by `turn`: cells are
 * 6 pixels wide, columns run along the orientation, rows across it, clockwise on the screen. */
static hs_image cell_picture(double turn, int row, int column) {
  hs_image image = extraction_blank(WIDTH, HEIGHT);
  float *v = extraction_floats(&image);
  const double u = 6.0 * (column - 1.5), w = 6.0 * (row - 1.5);
  const double bx = CX + u * cos(turn) - w * sin(turn), by = CY + u * sin(turn) + w * cos(turn);
  for (int32_t y = 0; y < HEIGHT; y++)
    for (int32_t x = 0; x < WIDTH; x++)
      *v++ = (float)(0.1 + 0.8 * exp(-((x - bx) * (x - bx) + (y - by) * (y - by)) / (2.0 * 1.2 * 1.2)));
  return image;
}

static void describe_at(const hs_image *image, double turn, hs_bin_layout layout, hs_rule rule,
                        float d[HS_DESCRIPTOR_LENGTH]) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.descriptor = HS_DESCRIPTOR_F32;
  o.layout = layout;
  hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, NULL);
  expert.descriptor_rule = rule;
  o.expert = &expert;
  hs_context *c = extraction_context(&o);
  const hs_keypoint k = {.x = CX, .y = CY, .sigma = 2.0f, .orientation = (float)turn};
  hs_features f = {0};
  hs_status st;
  assert_int_equal(hs_describe(c, image, &k, 1, &f, &st), HS_OK);
  assert_int_equal(st, HS_OK);
  memcpy(d, f.descriptors, sizeof *d * HS_DESCRIPTOR_LENGTH);
  hs_features_free(&f);
  hs_destroy(c);
}

static const double turns[] = {0.0, PI / 2.0, 4.0};

/* A gradient at `angle` from the orientation, clockwise on the screen, is bin -angle * 8 / 2 pi of every cell: Lowe's
   bins count counter-clockwise. */
TEST(test_bins) {
  for (size_t t = 0; t < 3; t++)
    for (int bin = 0; bin < 8; bin++) {
      scoped_image image = ramp_picture(turns[t] - (double)bin * PI / 4.0);
      float d[HS_DESCRIPTOR_LENGTH];
      describe_at(&image, turns[t], HS_LAYOUT_UBC, bin % 2 ? HS_RULE_LOWE : HS_RULE_OPENCV, d);
      for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) {
        /* the neighbours may contain rounding errors */
        const bool expected = i % 8 == bin;
        if (expected ? !(d[i] > 0.1f || d[i] > 50.0f) : d[i] > 0.02f * d[i / 8 * 8 + bin])
          fail_msg("turn %g, expected bin %d: entry %d is %g", turns[t], bin, i, (double)d[i]);
      }
    }
}

TEST(test_cells) {
  for (size_t t = 0; t < 3; t++)
    for (int cell = 0; cell < 16; cell++) {
      scoped_image image = cell_picture(turns[t], cell / 4, cell % 4);
      float d[HS_DESCRIPTOR_LENGTH], sums[16] = {0};
      describe_at(&image, turns[t], HS_LAYOUT_UBC, HS_RULE_LOWE, d);
      for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) sums[i / 8] += d[i];
      for (int i = 0; i < 16; i++)
        if (i != cell && sums[i] > 0.7f * sums[cell])
          fail_msg("turn %g: cell %d holds %g, cell %d %g", turns[t], i, (double)sums[i], cell, (double)sums[cell]);
    }
}

/* VLFeat's order is 0 7 6 5 4 3 2 1 in each cell. */
TEST(test_vlfeat_order) {
  scoped_image image = extraction_scene(WIDTH, HEIGHT, 5, NULL);
  float ubc[HS_DESCRIPTOR_LENGTH], vlfeat[HS_DESCRIPTOR_LENGTH];
  describe_at(&image, 0.7, HS_LAYOUT_UBC, HS_RULE_LOWE, ubc);
  describe_at(&image, 0.7, HS_LAYOUT_VLFEAT, HS_RULE_LOWE, vlfeat);
  static const int order[8] = {0, 7, 6, 5, 4, 3, 2, 1};
  for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) assert_true(vlfeat[i] == ubc[i / 8 * 8 + order[i % 8]]);
}

/* Unit norm, and before the second normalisation no entry above 0.2 of it. */
TEST(test_norm_and_clip) {
  scoped_image image = ramp_picture(0.0);
  float d[HS_DESCRIPTOR_LENGTH];
  describe_at(&image, 0.0, HS_LAYOUT_UBC, HS_RULE_LOWE, d);
  double squares = 0.0, largest = 0.0;
  for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) {
    squares += (double)d[i] * (double)d[i];
    largest = fmax(largest, (double)d[i]);
  }
  assert_true(fabs(squares - 1.0) < 1e-6);
  size_t clipped = 0; /* one direction at one position: several bins reach the clip, and are bit-identical */
  for (int i = 0; i < HS_DESCRIPTOR_LENGTH; i++) clipped += (double)d[i] == largest;
  assert_true(clipped >= 2);
}
