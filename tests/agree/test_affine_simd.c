/*
 * Affine shapes of keypoints: every variant's patches and moments equal the reference byte for byte.
 *
 * Covers planes of all sizes, with windows inside, across the edges and outside, and the ranges of a patch that later
 * stages read.
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

/* Compares whole and partial patches of both side lengths, and checks that nothing is written outside the requested
 * ranges. */
static void check_patches(const stage_ops *ops, const char *name, const plane_view *level, float x, float y,
                          float sigma, const affine_shape *shape, uint32_t *seed) {
  static const int32_t sides[] = {AFFINE_ORIENT_SIDE, AFFINE_DESCRIBE_SIDE};
  const patch_map map = affine_map_of(x, y, sigma, shape);
  window_prefetch ahead = window_prefetch_of(level, (int32_t)x, (int32_t)y, 60);
  for (int i = 0; i < 4; i++) {
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

static void check_window(const stage_ops *ops, const char *name, const plane_view *level, uint32_t *seed) {
  const affine_shape shape = random_shape(seed);
  const float x = number_of(seed, -9.0f, (float)level->width + 9.0f), sigma = number_of(seed, 0.4f, 9.0f);
  const float y = number_of(seed, -9.0f, (float)level->height + 9.0f);
  const affine_window w = affine_window_of(x, y, sigma, &shape);
  window_prefetch ahead = window_prefetch_of(level, (int32_t)x, (int32_t)y, 20);
  const affine_moments expected = affine_moments_ref(level, &w, &ahead), got = ops->affine_moments(level, &w, &ahead);
  if (memcmp(&expected, &got, sizeof got) != 0)
    fail_msg("%s: moments of a window at (%g, %g), sigma %g, in %d x %d differ", name, (double)x, (double)y,
             (double)sigma, level->width, level->height);
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
  const patch_map map = affine_map_of(2201.0f, 2190.0f, 60.0f, &shape);
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

/* The differences are as large as possible: two rows of samples 0, then two rows of 1, under the largest window of each
 * step. The sums keep their sign and approach their limit. */
TEST(test_moments_do_not_overflow) {
  enum { SIDE = 257 };
  SCOPED_MEMORY float *data = calloc((size_t)SIDE * SIDE + SLACK, sizeof *data);
  assert_non_null(data);
  for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) data[i] = i / SIDE / 2 % 2 == 1 ? 1.0f : 0.0f;
  const plane_view level = {data, SIDE, SIDE, SIDE};
  const affine_shape shape = {0.6f, 0.8f, 5.0f};
  const affine_window w = affine_window_of(128.0f, 128.0f, 1.99999f, &shape);
  window_prefetch ahead = {.rows = 0};
  const affine_moments m = affine_moments_ref(&level, &w, &ahead);
  assert_int_equal(m.xx, 0);
  assert_int_equal(m.xy, 0);
  assert_true(m.yy > INT32_MAX / 4);
}

/* Fails unless the ranges contain sample (x, y), which votes, and its four neighbours. */
static void assert_taken(const patch_rows *rows, int32_t x, int32_t y) {
  assert_true(x - 1 >= rows->first[y] && x + 1 < rows->end[y]);
  for (int32_t j = y - 1; j <= y + 1; j += 2) assert_true(x >= rows->first[j] && x < rows->end[j]);
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
