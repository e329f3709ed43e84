/*
 * Affine shapes of keypoints: every variant's patches and moments equal the reference byte for byte; the reference
 * finds the ellipses of drawn patterns.
 *
 * Covers planes of all sizes, with patches inside, across the edges and outside, and the ranges of a patch that are
 * read.
 */
#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "cpu/ref/stages_ref.h"
#include "cpu/schedule/window_prefetch.h"
#include "tests/support/stage_planes.h"

enum { SLACK = 64, STRIDE = 96, ROWS = 80, WINDOWS = 200, PATCH_ROOM = 48 * AFFINE_DESCRIBE_SIDE };

static float number_of(uint32_t *seed, float low, float high) {
  return low + (high - low) * ((float)stage_random(seed) * 0x1p-24f);
}

/* Makes a plane of noise samples. The padding of rows and plane is NaN, because no variant may use it. */
static plane_view make_plane(float *data, int32_t width, int32_t height, uint32_t *seed) {
  for (size_t i = 0; i < (size_t)STRIDE * ROWS + SLACK; i++) {
    const bool inside = i % STRIDE < (size_t)width && i / STRIDE < (size_t)height;
    data[i] = inside ? number_of(seed, 0.0f, 1.0f) : hs_bits_float(0x7fc00000u);
  }
  return (plane_view){data, width, height, STRIDE};
}

static affine_shape random_shape(uint32_t *seed) {
  affine_shape s;
  hs_sincos_turn(number_of(seed, 0.0f, 0.999f), &s.sine, &s.cosine);
  s.quotient = number_of(seed, 1.0f, 5.0f);
  return s;
}

/* Returns random column ranges, some of them empty. */
static patch_rows random_rows(int32_t side, uint32_t *seed) {
  patch_rows rows = {{0}, {0}};
  for (int32_t j = 0; j < side; j++) {
    rows.first[j] = (int32_t)(stage_random(seed) >> 8) % (side + 1);
    rows.end[j] = rows.first[j] + (int32_t)(stage_random(seed) >> 8) % (side + 1 - rows.first[j]);
  }
  return rows;
}

/* Compares whole and partial patches of all side lengths, and checks that nothing is written outside the requested
 * ranges. */
static void check_patches(const stage_ops *ops, const char *name, const plane_view *level, float x, float y,
                          float sigma, const affine_shape *shape, uint32_t *seed) {
  static const int32_t sides[] = {AFFINE_ORIENT_SIDE, AFFINE_DESCRIBE_SIDE, AFFINE_SHAPE_SIDE};
  const float distance = number_of(seed, 0.5f, 0.7f);
  const patch_map map = affine_map_of(x, y, sigma, shape, distance);
  window_prefetch ahead = window_prefetch_of(level, (int32_t)x, (int32_t)y, 60);
  for (int i = 0; i < 6; i++) {
    static float one[PATCH_ROOM], other[PATCH_ROOM];
    const int32_t side = sides[i / 2];
    const patch_rows rows = random_rows(side, seed), *read = i % 2 == 1 ? &rows : NULL;
    memset(one, 0xa5, sizeof one);
    memset(other, 0xa5, sizeof other);
    affine_patch_ref(level, &map, read, side, 48, one, &ahead);
    ops->affine_patch(level, &map, read, side, 48, other, &ahead);
    if (memcmp(one, other, sizeof one) != 0)
      fail_msg("%s: a patch of side %d at (%g, %g), sigma %g, in %d x %d differs", name, side, (double)x, (double)y,
               (double)sigma, level->width, level->height);
  }
}

/* Compares the moments of a patch whose unread samples are NaN. */
static void check_moments(const stage_ops *ops, const char *name, uint32_t *seed) {
  enum { PITCH = 33 };
  const patch_rows disc = affine_shape_rows();
  float patch[AFFINE_SHAPE_SIDE * PITCH + AFFINE_PATCH_SLACK];
  for (int32_t i = 0; i < (int32_t)(sizeof patch / sizeof *patch); i++) {
    const int32_t row = i / PITCH, column = i % PITCH;
    const bool is_read = row < AFFINE_SHAPE_SIDE && column >= disc.first[row] && column < disc.end[row];
    patch[i] = is_read ? number_of(seed, 0.0f, 1.0f) : hs_bits_float(0x7fc00000u);
  }
  const affine_moments expected = affine_moments_ref(patch, PITCH), got = ops->affine_moments(patch, PITCH);
  if (memcmp(&expected, &got, sizeof got) != 0) fail_msg("%s: moments differ", name);
}

static void check_window(const stage_ops *ops, const char *name, const plane_view *level, uint32_t *seed) {
  const affine_shape shape = random_shape(seed);
  const float x = number_of(seed, -9.0f, (float)level->width + 9.0f), sigma = number_of(seed, 0.4f, 9.0f);
  const float y = number_of(seed, -9.0f, (float)level->height + 9.0f);
  check_moments(ops, name, seed);
  check_patches(ops, name, level, x, y, sigma, &shape, seed);
}

TEST(test_variants) {
  static const int32_t sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {2, 2}, {3, 3}, {17, 40}, {33, 16}, {80, 72}, {96, 80}};
  SCOPED_MEMORY float *data = malloc(sizeof *data * ((size_t)STRIDE * ROWS + SLACK));
  uint32_t seed = 7;
  assert_non_null(data);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const plane_view level = make_plane(data, sizes[i][0], sizes[i][1], &seed);
    for (int v = 0; stage_variant_names[v]; v++) {
      const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
      for (int n = 0; ops && n < WINDOWS; n++) check_window(ops, stage_variant_names[v], &level, &seed);
    }
  }
}

/* The user keypoint is so large that a float cannot count the samples of its patch. */
TEST(test_large_patches) {
  enum { SIDE = 4400 };
  const affine_shape shape = {0.6f, 0.8f, 5.0f};
  const patch_map map = affine_map_of(2201.0f, 2190.0f, 60.0f, &shape, AFFINE_DISTANCE);
  SCOPED_MEMORY float *data = malloc(sizeof *data * ((size_t)SIDE * SIDE + SLACK));
  static float expected[PATCH_ROOM], got[PATCH_ROOM];
  uint32_t seed = 3;
  window_prefetch ahead = {.rows = 0};
  assert_non_null(data);
  for (size_t i = 0; i < (size_t)SIDE * SIDE + SLACK; i++) data[i] = number_of(&seed, 0.0f, 1.0f);
  const plane_view level = {data, SIDE, SIDE, SIDE};
  affine_patch_ref(&level, &map, NULL, AFFINE_DESCRIBE_SIDE, 48, expected, &ahead);
  for (int v = 0; stage_variant_names[v]; v++) {
    const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
    if (!ops) continue;
    ops->affine_patch(&level, &map, NULL, AFFINE_DESCRIBE_SIDE, 48, got, &ahead);
    assert_memory_equal(expected, got, sizeof got);
  }
}

/* Rows of 0 and of 1 by twos give the largest differences. The moment is then the sum of all weights, which is less
 * than 2^7.3 times the central one. */
TEST(test_moments_do_not_overflow) {
  enum { PITCH = 32 };
  static float patch[AFFINE_SHAPE_SIDE * PITCH + AFFINE_PATCH_SLACK];
  for (int32_t i = 0; i < AFFINE_SHAPE_SIDE * PITCH; i++) patch[i] = i / PITCH / 2 % 2 == 1 ? 1.0f : 0.0f;
  const affine_moments m = affine_moments_ref(patch, PITCH);
  assert_int_equal(m.xx, 0);
  assert_int_equal(m.xy, 0);
  assert_true(m.yy > 1 << 27 && (double)m.yy < 0x1p20 * exp2(7.3));
}

/* The weights are a Gaussian of 3 F up to 2.5 standard deviations, at samples 0.6 F apart. */
TEST(test_weights) {
  for (int32_t j = -AFFINE_SHAPE_RADIUS - 1; j <= AFFINE_SHAPE_RADIUS + 1; j++)
    for (int32_t i = -AFFINE_SHAPE_RADIUS - 1; i <= AFFINE_SHAPE_RADIUS + 1; i++) {
      const double square = 0.36 * (i * i + j * j) / 9.0, weight = 0x1p20 * exp(-0.5 * square);
      assert_int_equal(i * i + j * j <= AFFINE_SHAPE_DISC, square <= 2.5 * 2.5);
      assert_true(fabs((double)affine_weight(i) * (double)affine_weight(j) / weight - 1.0) < 1e-6);
    }
}

/* A pattern of ellipses, sampled in its own frame, is round: the iteration ends. From a circle the first step goes
 * towards the pattern's ellipse. */
static float ellipses(const affine_shape *s, double x, double y) {
  const double u = ((double)s->cosine * x + (double)s->sine * y) / (double)s->quotient;
  const double v = (double)s->cosine * y - (double)s->sine * x;
  return (float)exp(-0.1 * (u * u + v * v));
}

static affine_moments moments_of_ellipses(const affine_shape *of, const affine_shape *frame) {
  float patch[AFFINE_SHAPE_SIDE * AFFINE_SHAPE_SIDE];
  const patch_map m = affine_map_of(0.0f, 0.0f, 1.0f, frame, AFFINE_SHAPE_DISTANCE);
  for (int32_t n = 0; n < AFFINE_SHAPE_SIDE * AFFINE_SHAPE_SIDE; n++) {
    const double u = n % AFFINE_SHAPE_SIDE - AFFINE_SHAPE_SIDE / 2, v = n / AFFINE_SHAPE_SIDE - AFFINE_SHAPE_SIDE / 2;
    patch[n] = ellipses(of, (double)m.a11 * u + (double)m.a12 * v, (double)m.a21 * u + (double)m.a22 * v);
  }
  return affine_moments_ref(patch, AFFINE_SHAPE_SIDE);
}

TEST(test_next_shape) {
  for (int32_t turn = 0; turn < 40; turn++) {
    affine_shape of, s = {1.0f, 0.0f, 1.0f};
    hs_sincos_turn((float)turn / 40.0f, &of.sine, &of.cosine);
    of.quotient = 1.5f + 0.035f * (float)turn;
    int32_t steps = 0;
    for (; steps < AFFINE_STEPS; steps++) {
      const affine_moments m = moments_of_ellipses(&of, &s);
      if (!affine_next_shape(&s, &m)) break;
    }
    const float aligned = s.cosine * of.cosine + s.sine * of.sine;
    assert_true(steps > 0 && steps < AFFINE_STEPS);
    assert_true(hs_fabsf(s.cosine * s.cosine + s.sine * s.sine - 1.0f) < 1e-5f);
    assert_true(hs_fabsf(s.quotient / of.quotient - 1.0f) < 0.03f && hs_fabsf(aligned) > 0.999f);
  }
}

/* Each of these ends the iteration and keeps the shape. */
TEST(test_final_shapes) {
  static const affine_moments moments[] = {{0, 0, 0}, {900, 0, 0}, {1000, 19, 1000}, {500, 500, 500}, {2600, 0, 100}};
  for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
    affine_shape s = {0.6f, 0.8f, 1.0f};
    assert_false(affine_next_shape(&s, &moments[i]));
    assert_true(s.cosine == 0.6f && s.sine == 0.8f && s.quotient == 1.0f);
  }
}

/* Fails unless the ranges contain sample (x, y), which votes, and its four neighbours. */
static void assert_taken(const patch_rows *rows, int32_t x, int32_t y) {
  assert_true(x - 1 >= rows->first[y] && x + 1 < rows->end[y]);
  for (int32_t j = y - 1; j <= y + 1; j += 2) assert_true(x >= rows->first[j] && x < rows->end[j]);
}

/* The computed ranges of a patch contain every sample that the moments read. */
TEST(test_rows_of_moments) {
  enum { MIDDLE = AFFINE_SHAPE_SIDE / 2 };
  const patch_rows rows = affine_shape_rows();
  for (int32_t y = 0; y < AFFINE_SHAPE_SIDE; y++) {
    assert_true(rows.first[y] >= 0 && rows.end[y] <= AFFINE_SHAPE_SIDE && rows.first[y] < rows.end[y]);
    for (int32_t x = 0; x < AFFINE_SHAPE_SIDE; x++)
      if ((x - MIDDLE) * (x - MIDDLE) + (y - MIDDLE) * (y - MIDDLE) <= AFFINE_SHAPE_DISC) assert_taken(&rows, x, y);
  }
}

/* The computed ranges of a patch contain every sample that orientation reads. */
TEST(test_rows_of_orientation) {
  enum { MIDDLE = AFFINE_ORIENT_SIDE / 2 };
  static const author_rule rules[] = {RULE_LOWE, RULE_VLFEAT};
  patch_rows rows;
  assert_false(orient_rows(RULE_OPENCV, &rows)); /* profile opencv reads the whole patch */
  assert_int_equal(orient_radius(1.0f / AFFINE_DISTANCE, RULE_LOWE), AFFINE_ORIENT_RADIUS);
  assert_int_equal(describe_radius(1.0f / AFFINE_DISTANCE), AFFINE_DESCRIBE_RADIUS);
  for (int r = 0; r < 2; r++) {
    const orient_window w =
        orient_window_of((float)MIDDLE, (float)MIDDLE, 1.0f / AFFINE_DISTANCE, MIDDLE, MIDDLE, rules[r]);
    assert_true(orient_rows(rules[r], &rows));
    for (int32_t y = MIDDLE - w.radius; y <= MIDDLE + w.radius; y++)
      for (int32_t x = MIDDLE - w.radius; x <= MIDDLE + w.radius; x++)
        if ((float)((x - MIDDLE) * (x - MIDDLE) + (y - MIDDLE) * (y - MIDDLE)) < w.limit) assert_taken(&rows, x, y);
  }
}

/* The computed ranges of a patch contain every sample that the descriptor reads, in every direction. Angles near the
 * axes are included, where the square's sides are parallel to the rows. */
TEST(test_rows_of_descriptors) {
  enum { MIDDLE = AFFINE_DESCRIBE_SIDE / 2, ANGLES = 1440, NEAR = 8 };
  for (int32_t a = 0; a < ANGLES + 5 * NEAR; a++) {
    const int32_t quarters = (a - ANGLES) / NEAR, steps = (a - ANGLES) % NEAR - NEAR / 2;
    const float nearby = 0.25f * TWO_PI_FLOAT * (float)quarters + 0.0004f * (float)steps;
    const float angle = a < ANGLES ? (float)a * (TWO_PI_FLOAT / (float)ANGLES) : nearby;
    const patch_rows rows = describe_rows(angle);
    const describe_window w =
        describe_window_of((float)MIDDLE, (float)MIDDLE, 1.0f / AFFINE_DISTANCE, angle, RULE_LOWE);
    for (int32_t y = MIDDLE - w.radius; y <= MIDDLE + w.radius; y++)
      for (int32_t x = MIDDLE - w.radius; x <= MIDDLE + w.radius; x++) {
        float row, column;
        if (describe_position(&w, (float)(x - MIDDLE), (float)(y - MIDDLE), &row, &column)) assert_taken(&rows, x, y);
      }
  }
}
