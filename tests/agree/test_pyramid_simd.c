/* Base, level step and halving: every variant this machine can run equals the reference bit for bit. */
#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "tests/support/extent.h"
#include "tests/support/stage_planes.h"

static const int32_t sizes[][2] = {{1, 1},   {1, 9},   {9, 1},   {2, 2},   {3, 2},   {7, 5},
                                   {31, 33}, {640, 1}, {1, 300}, {64, 64}, {257, 70}};
enum { SIZE_COUNT = sizeof sizes / sizeof sizes[0] };

/* Returns arbitrary asymmetric taps instead of a Gaussian, so that a swapped or dropped tap changes the result. */
static gaussian_filter filter_of(int32_t radius) {
  gaussian_filter f = {.radius = radius};
  for (int32_t j = 0; j <= radius; j++) f.taps[j] = (1.0f + 0.37f * (float)((j * 5) % 7)) / (float)(4 * radius + 3);
  return f;
}

/* Returns scratch of exactly the size that a variant requests. */
static guarded_plane work_for(const stage_ops *ops, int32_t width, int32_t height, int32_t radius, int32_t threads) {
  const size_t floats = ops->pyramid_work_floats ? ops->pyramid_work_floats(width, height, radius, threads)
                                                 : (size_t)width * (size_t)height;
  guarded_plane p = plane_make((int32_t)floats, 1, floats);
  p.view.width = width;
  p.view.height = height;
  p.view.stride = (size_t)width;
  return p;
}

static void check_work(guarded_plane *work) {
  work->view.width = work->view.height = 0; /* the scratch is writable, its surroundings are not */
  plane_check_guards(work, "scratch");
  plane_free(work);
}

/* ------------------------------------------------- level step */

typedef struct blur_case {
  int32_t width, height, radius;
  border_mode border;
  plane_pattern pattern;
  size_t padding; /* floats of padding between rows */
} blur_case;

static void blur_with(const stage_ops *ops, stage_queue *queue, int32_t threads, const blur_case *c, guarded_plane *in,
                      guarded_plane *out) {
  const gaussian_filter filter = filter_of(c->radius);
  guarded_plane work = work_for(ops, c->width, c->height, c->radius, threads);
  const blur_args args = {in->view, out->view, work.view, c->border, &filter, {0}};
  assert_int_equal(ops->blur(queue, &args), STAGE_OK);
  check_work(&work);
}

static void check_blur(stage_queue *const *queues, const blur_case *c) {
  const size_t stride = (size_t)c->width + c->padding;
  SCOPED_BY(plane_free)
  guarded_plane in = plane_make(c->width, c->height, stride), expected = plane_make(c->width, c->height, stride);
  plane_fill(&in, c->pattern, 7);
  blur_with(cpu_variant_ops("ref"), NULL, 1, c, &in, &expected);
  for (int v = 0; stage_variant_names[v]; v++) {
    const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
    if (!ops) continue;
    for (int t = 0; t < stage_threads(); t++) {
      SCOPED_BY(plane_free) guarded_plane got = plane_make(c->width, c->height, stride);
      char what[120];
      snprintf(what, sizeof what, "blur %s, radius %d, border %d, pattern %d, %d threads", stage_variant_names[v],
               c->radius, c->border, c->pattern, stage_thread_counts[t]);
      blur_with(ops, queues[t], stage_thread_counts[t], c, &in, &got);
      plane_check_equal(&expected, &got, what);
      plane_check_guards(&got, what);
    }
  }
  plane_check_guards(&in, "blur's input");
}

TEST(test_blur_sizes) {
  static const int32_t radii[] = {0, 1, 2, 3, 5, 8, 13, 15, 16, 17, 30, 128};
  for (int s = 0; s < SIZE_COUNT; s++)
    for (size_t r = 0; r < sizeof radii / sizeof radii[0]; r++)
      for (int border = 0; border < 2; border++) {
        if (!extent_pairs((size_t)s + r, (size_t)border, 2)) continue;
        const blur_case c = {sizes[s][0],         sizes[s][1],   radii[r],
                             (border_mode)border, PATTERN_NOISE, (size_t)(s % 3) * 5};
        check_blur(*state, &c);
      }
}

TEST(test_blur_radii) {
  for (int32_t radius = 1; radius <= 30; radius++) {
    const blur_case c = {131, 40, radius, BORDER_REFLECT_101, PATTERN_NOISE, 3};
    check_blur(*state, &c);
  }
}

TEST(test_blur_patterns) {
  for (int pattern = 0; pattern < PATTERN_COUNT; pattern++) {
    const blur_case c = {77, 53, 7, BORDER_REFLECT_101, (plane_pattern)pattern, 0};
    check_blur(*state, &c);
  }
}

/* There are several strips for every number of threads, strips that need no copy of their lines, and bands. */
TEST(test_blur_strips) {
  static const blur_case cases[] = {{2500, 37, 13, BORDER_REFLECT_101, PATTERN_NOISE, 0},
                                    {1025, 21, 5, BORDER_REPLICATE, PATTERN_NOISE, 7},
                                    /* fewest columns and largest radius for which lines are copied at their ends */
                                    {1024, 12, 64, BORDER_REFLECT_101, PATTERN_NOISE, 0},
                                    {1151, 9, 64, BORDER_REPLICATE, PATTERN_NOISE, 3},
                                    {1279, 8, 65, BORDER_REFLECT_101, PATTERN_NOISE, 0},
                                    {3100, 9, 16, BORDER_REFLECT_101, PATTERN_NOISE, 4},
                                    {2049, 18, 128, BORDER_REFLECT_101, PATTERN_NOISE, 0},
                                    {300, 700, 10, BORDER_REFLECT_101, PATTERN_NOISE, 20}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_blur(*state, &cases[i]);
}

/* Planes are so large that writes bypass the caches, with whole and partial vectors at the right end. */
TEST(test_blur_large) {
  static const blur_case cases[] = {{2048, 1025, 2, BORDER_REFLECT_101, PATTERN_NOISE, 0},
                                    {2050, 1030, 3, BORDER_REPLICATE, PATTERN_NOISE, 14}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_blur(*state, &cases[i]);
}

/* The last bits of products and sums differ between a fused multiply-add and two roundings. Denormals are included. */
TEST(test_blur_small_values) {
  stage_queue *const *queues = *state;
  const blur_case c = {67, 20, 6, BORDER_REFLECT_101, PATTERN_NOISE, 0};
  static const float factors[] = {1e-30f, 1e-37f, 3e-39f, 1e-44f};
  for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
    SCOPED_BY(plane_free)
    guarded_plane in = plane_make(c.width, c.height, 67), expected = plane_make(c.width, c.height, 67);
    plane_fill(&in, PATTERN_NOISE, 3);
    for (size_t k = 0; k < 67 * 20; k++) in.view.data[k] = in.view.data[k] * (k % 3 == 0 ? 1.0f : factors[i]);
    blur_with(cpu_variant_ops("ref"), NULL, 1, &c, &in, &expected);
    for (int v = 0; stage_variant_names[v]; v++) {
      const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
      if (!ops) continue;
      SCOPED_BY(plane_free) guarded_plane got = plane_make(c.width, c.height, 67);
      blur_with(ops, queues[1], stage_thread_counts[1], &c, &in, &got);
      plane_check_equal(&expected, &got, stage_variant_names[v]);
    }
  }
}

/* ------------------------------------------------- base */

typedef struct base_case {
  int32_t width, height, first_octave, radius;
  source_type type;
  source_layout layout;
  upsample_grid grid;
  border_mode border;
} base_case;

/* Returns the picture's bytes, which are arbitrary. Floats include NaN, infinities and values outside the range. */
static unsigned char *source_bytes(const base_case *c, size_t *stride_bytes) {
  static const size_t channels[] = {1, 2, 3, 3, 4, 4};
  static const float odd_values[] = {-1.0f, 0.0f, 1.0f, 255.0f, 300.0f, 1e30f, -1e30f, 17.25f};
  const size_t size = c->type == SOURCE_U8 ? 1 : (c->type == SOURCE_U16 ? 2 : 4);
  *stride_bytes = (size_t)c->width * channels[c->layout] * size + 12;
  unsigned char *bytes = malloc(*stride_bytes * (size_t)c->height);
  uint32_t seed = 99;
  assert_non_null(bytes);
  for (size_t i = 0; i < *stride_bytes * (size_t)c->height; i++) bytes[i] = (unsigned char)(stage_random(&seed) >> 3);
  if (c->type == SOURCE_F32)
    for (size_t i = 0; i < *stride_bytes * (size_t)c->height / 4; i++) {
      float v = (float)(stage_random(&seed) % 60000u) / 200.0f;
      if (stage_random(&seed) % 8u == 0) v = odd_values[stage_random(&seed) % 8u];
      if (stage_random(&seed) % 16u == 0) v = (0.0f * v) / 0.0f * 0.0f;
      memcpy(bytes + 4 * i, &v, sizeof v);
    }
  return bytes;
}

static guarded_plane base_with(const stage_ops *ops, stage_queue *queue, int32_t threads, const base_case *c,
                               const source_view *source) {
  const int32_t step = c->first_octave < 0 ? 1 : 1 << c->first_octave;
  const int32_t width = c->first_octave < 0 ? 2 * c->width : (c->width + step - 1) / step;
  const int32_t height = c->first_octave < 0 ? 2 * c->height : (c->height + step - 1) / step;
  const gaussian_filter filter = filter_of(c->radius);
  const size_t stride = (size_t)width + 9;
  guarded_plane gray = plane_make(c->width, c->height, (size_t)c->width), doubled = plane_make(width, height, stride),
                out = plane_make(width, height, stride), work = work_for(ops, width, height, c->radius, threads);
  const base_args args = {.source = *source,
                          .first_octave = c->first_octave,
                          .grid = c->grid,
                          .border = c->border,
                          .filter = &filter,
                          .gray = gray.view,
                          .work = work.view,
                          .doubled = doubled.view,
                          .out = out.view};
  assert_int_equal(ops->base(queue, &args), STAGE_OK);
  plane_check_guards(&out, "base");
  check_work(&work);
  plane_free(&gray);
  plane_free(&doubled);
  return out;
}

static void check_base(stage_queue *const *queues, const base_case *c) {
  size_t stride_bytes;
  unsigned char *bytes = source_bytes(c, &stride_bytes);
  const source_view source = {bytes, c->width, c->height, stride_bytes, c->type, c->layout, 0.0f, 255.0f};
  SCOPED_BY(plane_free) guarded_plane expected = base_with(cpu_variant_ops("ref"), NULL, 1, c, &source);
  for (int v = 0; stage_variant_names[v]; v++) {
    const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
    if (!ops) continue;
    for (int t = 0; t < stage_threads(); t++) {
      char what[120];
      snprintf(what, sizeof what, "base %s, type %d, layout %d, octave %d, grid %d, border %d, %d threads",
               stage_variant_names[v], c->type, c->layout, c->first_octave, c->grid, c->border, stage_thread_counts[t]);
      SCOPED_BY(plane_free) guarded_plane got = base_with(ops, queues[t], stage_thread_counts[t], c, &source);
      plane_check_equal(&expected, &got, what);
    }
  }
  free(bytes);
}

TEST(test_base_sources) {
  for (int type = 0; type < 3; type++)
    for (int layout = 0; layout < 6; layout++)
      for (int32_t octave = -1; octave <= 3; octave++) {
        base_case c = {45, 23, octave, 5, (source_type)type, (source_layout)layout, GRID_ALIGNED, BORDER_REFLECT_101};
        check_base(*state, &c);
        c.grid = GRID_HALF_PIXEL;
        c.border = BORDER_REPLICATE;
        if (octave < 0) check_base(*state, &c);
      }
}

TEST(test_base_sizes) {
  for (int s = 0; s < SIZE_COUNT; s++)
    for (int32_t octave = -1; octave <= 1; octave++)
      for (int grid = 0; grid < 2; grid++) {
        const base_case c = {sizes[s][0],         sizes[s][1],       octave, 6, SOURCE_U8, SOURCE_GRAY,
                             (upsample_grid)grid, BORDER_REFLECT_101};
        check_base(*state, &c);
      }
}

TEST(test_base_strips) {
  for (int grid = 0; grid < 2; grid++)
    for (int type = 0; type < 3; type++) {
      const base_case doubled = {
          1237, 17, -1, 5, (source_type)type, SOURCE_GRAY, (upsample_grid)grid, BORDER_REFLECT_101};
      check_base(*state, &doubled);
      const base_case plain = {2077, 19, 0, 9, (source_type)type, SOURCE_GRAY, (upsample_grid)grid, BORDER_REFLECT_101};
      check_base(*state, &plain);
    }
  const base_case tall = {90, 333, -1, 7, SOURCE_U8, SOURCE_RGB, GRID_HALF_PIXEL, BORDER_REPLICATE};
  check_base(*state, &tall);
}

/* ------------------------------------------------- halving */

TEST(test_halve) {
  stage_queue *const *queues = *state;
  for (int s = 0; s < SIZE_COUNT; s++) {
    const int32_t width = sizes[s][0] + 1, height = sizes[s][1] + 1; /* at least 2, so that the half has a sample */
    SCOPED_BY(plane_free) guarded_plane in = plane_make(width, height, (size_t)width + 3);
    plane_fill(&in, PATTERN_NOISE, 5);
    SCOPED_BY(plane_free) guarded_plane expected = plane_make(width / 2, height / 2, (size_t)width);
    const halve_args reference = {in.view, expected.view, {0}};
    cpu_variant_ops("ref")->halve(NULL, &reference);
    for (int v = 0; stage_variant_names[v]; v++) {
      const stage_ops *ops = cpu_variant_ops(stage_variant_names[v]);
      if (!ops) continue;
      for (int t = 0; t < stage_threads(); t++) {
        SCOPED_BY(plane_free) guarded_plane got = plane_make(width / 2, height / 2, (size_t)width);
        const halve_args args = {in.view, got.view, {0}};
        assert_int_equal(ops->halve(queues[t], &args), STAGE_OK);
        plane_check_equal(&expected, &got, stage_variant_names[v]);
        plane_check_guards(&got, stage_variant_names[v]);
      }
    }
  }
}

TESTS_BETWEEN(stage_queues_make, stage_queues_free)
