/*
 * Orientation and descriptor windows at all positions: every variant equals the reference byte for byte.
 *
 * Keypoints are at random positions of levels down to one sample, on and beyond every border, with scales up to the
 * largest window.
 */
#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "tests/support/extent.h"
#include "tests/support/stage_planes.h"

enum { SCALES = 2, LEVELS = SCALES + 3, KEYPOINTS = 48, SLACK = 64 };

/* Levels of noise, and keypoints on them with one orientation each. */
typedef struct window_case {
  octave_view octave;
  sift_params params;
  vote_scales scales;
  uint32_t counts[2];
  keypoint_list keypoints;
  feature_list features;
} window_case;

static float unit_random(uint32_t *state) { return (float)stage_random(state) / 16777216.0f; }

static void *room(size_t count, size_t size) {
  void *p = calloc(count, size);
  assert_non_null(p);
  return p;
}

/* Fills the levels. values: number of different sample values; 0: any; 1: constant; 2: black and white, the largest
 * gradients. */
static void make_levels(window_case *c, int32_t width, int32_t height, int32_t values, uint32_t *random) {
  const size_t stride = (size_t)width + 3;
  c->octave = (octave_view){
      .level_floats = stride * (size_t)height, .stride = stride, .width = width, .height = height, .octave = -1};
  c->octave.levels = room(LEVELS * c->octave.level_floats + SLACK, sizeof(float));
  for (size_t i = 0; i < LEVELS * c->octave.level_floats; i++) {
    const float v = unit_random(random);
    c->octave.levels[i] =
        values == 1 ? 0.4375f : (values ? (float)(int32_t)(v * (float)values) / (float)(values - 1) : v);
  }
}

/* Makes `count` random keypoints. sigma: their maximum, in samples of the octave. */
static void make_keypoints(window_case *c, uint32_t count, float sigma, uint32_t *random) {
  /* The last eight angles are near the limit at which a side counts as parallel to the rows. */
  static const float turns[] = {0.0f,    0.125f,  0.25f,   0.5f,    0.75f,   0.9999999f, 0.2499f, 0.0005f,
                                0.0015f, 0.0017f, 0.2484f, 0.2517f, 0.5016f, 0.7484f,    0.9983f, 1.0e-6f};
  keypoint_list *k = &c->keypoints;
  *k = (keypoint_list){.count = &c->counts[0], .capacity = KEYPOINTS};
  k->x = room(KEYPOINTS, sizeof(float));
  k->y = room(KEYPOINTS, sizeof(float));
  k->sigma = room(KEYPOINTS, sizeof(float));
  k->column = room(KEYPOINTS, sizeof(int32_t));
  k->row = room(KEYPOINTS, sizeof(int32_t));
  k->octave = room(KEYPOINTS, sizeof(int16_t));
  k->level = room(KEYPOINTS, sizeof(int16_t));
  c->features = (feature_list){.count = &c->counts[1], .capacity = KEYPOINTS};
  c->features.keypoint = room(KEYPOINTS, sizeof(uint32_t));
  c->features.orientation = room(KEYPOINTS, sizeof(float));
  c->counts[0] = c->counts[1] = count;
  for (uint32_t i = 0; i < count; i++) {
    const float w = (float)c->octave.width, h = (float)c->octave.height;
    /* Positions in samples of the octave. Some are up to a sample outside, which happens if an octave ends before its
     * picture; a few are exactly on samples, without an offset. */
    float x = unit_random(random) * (w + 2.0f) - 1.0f, y = unit_random(random) * (h + 2.0f) - 1.0f;
    if (i % 6 == 0) x = (float)hs_floor_int(x), y = (float)hs_floor_int(y);
    k->x[i] = 0.5f * x;
    k->y[i] = 0.5f * y;
    k->sigma[i] = 0.5f * (i == 0 ? sigma : 0.3f + unit_random(random) * (sigma - 0.3f));
    k->column[i] = (int32_t)(unit_random(random) * w);
    k->row[i] = (int32_t)(unit_random(random) * h);
    k->octave[i] = -1;
    k->level[i] = (int16_t)(1 + i % SCALES);
    c->features.keypoint[i] = i;
    c->features.orientation[i] = (i % 3 ? unit_random(random) : turns[i / 3 % 16]) * 6.2831855f;
  }
}

static void free_case(window_case *c) {
  void *all[] = {c->octave.levels,     c->keypoints.x,         c->keypoints.y,      c->keypoints.sigma,
                 c->keypoints.column,  c->keypoints.row,       c->keypoints.octave, c->keypoints.level,
                 c->features.keypoint, c->features.orientation};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

typedef struct window_output {
  uint32_t count;
  uint32_t keypoint[KEYPOINTS * ORIENT_PEAKS_MAX];
  float orientation[KEYPOINTS * ORIENT_PEAKS_MAX];
  float descriptors[KEYPOINTS * DESCRIBE_LENGTH]; /* float descriptors; the memory is used for byte descriptors too */
} window_output;

static window_output *run(const stage_ops *ops, stage_queue *queue, const window_case *c, bool orient) {
  window_output *out = room(1, sizeof *out);
  if (orient) {
    const feature_list list = {&out->count, KEYPOINTS * ORIENT_PEAKS_MAX, out->keypoint, out->orientation};
    const orient_args args = {&c->octave, -1, 0, c->keypoints, list, c->params, &c->scales};
    assert_int_equal(ops->orient(queue, &args), STAGE_OK);
  } else {
    const describe_args args = {&c->octave,      -1, 1, 0, c->keypoints, c->features, c->params, &c->scales,
                                out->descriptors};
    assert_int_equal(ops->describe(queue, &args), STAGE_OK);
  }
  return out;
}

/* Compares all variants. Returns the sum of descriptor bytes or the number of peaks, so that tests can require a
 * minimum. */
static uint32_t compare(const window_case *c, bool orient) {
  SCOPED_MEMORY window_output *expected = run(cpu_variant_ops("ref"), NULL, c, orient);
  uint32_t found = expected->count;
  if (!orient)
    for (size_t i = 0; i < sizeof expected->descriptors; i++) found += ((const uint8_t *)expected->descriptors)[i];
  for (int v = 0; stage_variant_names[v]; v++) {
    const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
    if (!ops) continue;
    SCOPED_MEMORY window_output *got = run(ops, NULL, c, orient);
    if (memcmp(expected, got, sizeof *got) != 0)
      fail_msg("%s %s: %d x %d, rules %d and %d differ from the reference", orient ? "orient" : "describe",
               stage_variant_names[v], c->octave.width, c->octave.height, (int)c->params.orientation_rule,
               (int)c->params.descriptor_rule);
  }
  return found;
}

/* Checks all rules and forms on one set of levels, with `count` keypoints and the maximum sigma of orientation and of
 * descriptor windows. */
static uint32_t check_count(uint32_t count, int32_t width, int32_t height, int32_t values, float orient_sigma,
                            float describe_sigma) {
  window_case c;
  uint32_t random = 99u + (uint32_t)(width * 31 + height), found = 0;
  memset(&c, 0, sizeof c);
  vote_scales_init(&c.scales);
  make_levels(&c, width, height, values, &random);
  for (int pass = 0; pass < 2; pass++) {
    make_keypoints(&c, count, pass == 0 ? orient_sigma : describe_sigma, &random);
    for (int i = 0; i < 6; i++) {
      if (!extent_pairs((size_t)width + (size_t)pass, (size_t)i / 2, 3))
        continue; /* runs one of three pairs of cases; a pair is one case without and one with a shift */
      c.params = (sift_params){.scales = SCALES,
                               .grid_shift = i % 2 ? 0.25f : 0.0f,
                               .orientation_rule = (author_rule)(i % 3),
                               .max_orientations = i < 3 ? 0 : i - 2,
                               .descriptor_rule = (author_rule)(i % 3),
                               .root = i >= 3,
                               .vlfeat_layout = i == 2 || i == 4,
                               .descriptor_float = i % 2 == 0};
      found += compare(&c, pass == 0);
    }
    float *levels = c.octave.levels;
    if (pass == 0) {
      c.octave.levels = NULL;
      free_case(&c);
      c.octave.levels = levels;
    }
  }
  free_case(&c);
  return found;
}

static uint32_t check_windows(int32_t width, int32_t height, int32_t values, float orient_sigma, float describe_sigma) {
  return check_count(KEYPOINTS, width, height, values, orient_sigma, describe_sigma);
}

TEST(test_tiny_levels) {
  uint32_t found = 0;
  static const int32_t sizes[][2] = {{1, 1}, {1, 5},  {5, 1},  {2, 2},   {2, 9},   {3, 3},
                                     {4, 3}, {5, 40}, {40, 5}, {15, 17}, {16, 16}, {17, 15}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    found += check_windows(sizes[i][0], sizes[i][1], 0, 4.0f, 4.0f);
  assert_true(found > 1000);
}

TEST(test_borders) {
  assert_true(check_windows(90, 70, 0, 6.0f, 6.0f) > 1000);
  assert_true(check_windows(131, 65, 2, 12.0f, 8.0f) > 1000);
}

/* A chunk of features lies on a constant level: there are no gradients and no peaks, and descriptors are empty. */
TEST(test_constant) { assert_int_equal(check_windows(50, 40, 1, 3.0f, 3.0f), 0); }

/* Windows of up to WINDOW_RADIUS_MAX samples are complete in one direction and cut off in the other. The short form has
 * fewer of them. */
TEST(test_huge) {
  const uint32_t count = extent_is_short() ? 12 : KEYPOINTS;
  assert_true(check_count(count, 4300, 7, 2, 455.0f, 193.0f) > 100);
  assert_true(check_count(count, 7, 4300, 2, 455.0f, 193.0f) > 100);
  assert_true(check_count(count, 300, 290, 2, 60.0f, 30.0f) > 100);
}
