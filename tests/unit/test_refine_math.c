/*
 * Arithmetic of refinement: quadratics are solved, pivots chosen as documented, and the rules for steps and acceptance
 * followed.
 */

#include "tests/support/test.h"

#include "stages/refine.h"

enum { SIDE = 16, PLANES = 6 }; /* PLANES: levels for S = 3 */

/* A quadratic function around (level, x, y) = (2, 8, 8). */
typedef struct model {
  double c, g[3], h[6]; /* g: gx gy gs; h: hxx hyy hss hxy hxs hys */
} model;

typedef struct sampled {
  float planes[PLANES * SIDE * SIDE];
  octave_view view;
} sampled;

static double model_at(const model *m, double x, double y, double s) {
  return m->c + m->g[0] * x + m->g[1] * y + m->g[2] * s + 0.5 * (m->h[0] * x * x + m->h[1] * y * y + m->h[2] * s * s) +
         m->h[3] * x * y + m->h[4] * x * s + m->h[5] * y * s;
}

/* Makes Gaussian levels whose differences are the model. They are exact if its numbers have few bits. */
static void sample_model(const model *m, sampled *out) {
  out->view = (octave_view){out->planes, SIDE * SIDE, SIDE, SIDE, SIDE, 0};
  for (int32_t y = 0; y < SIDE; y++)
    for (int32_t x = 0; x < SIDE; x++) {
      double sum = 0.0;
      for (int32_t s = 0; s < PLANES; s++) {
        out->planes[s * SIDE * SIDE + y * SIDE + x] = (float)sum;
        sum += model_at(m, x - 8.0, y - 8.0, s - 2.0);
      }
    }
}

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* Returns a multiple of 1/16 in [-2, 2]. */
static double dyadic(uint32_t *state) { return ((double)(next_random(state) % 65u) - 32.0) / 16.0; }

/* Solves by Cramer's rule in double. Returns false if the system is badly conditioned. */
static bool cramer(const model *m, double d[3]) {
  const double a[3][3] = {{m->h[0], m->h[3], m->h[4]}, {m->h[3], m->h[1], m->h[5]}, {m->h[4], m->h[5], m->h[2]}};
  double det = 0.0;
  for (int k = 0; k < 3; k++)
    det += a[0][k] * (a[1][(k + 1) % 3] * a[2][(k + 2) % 3] - a[1][(k + 2) % 3] * a[2][(k + 1) % 3]);
  if (fabs(det) < 0.5) return false;
  for (int column = 0; column < 3; column++) {
    double b[3][3], t = 0.0;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) b[i][j] = j == column ? -m->g[i] : a[i][j];
    for (int k = 0; k < 3; k++)
      t += b[0][k] * (b[1][(k + 1) % 3] * b[2][(k + 2) % 3] - b[1][(k + 2) % 3] * b[2][(k + 1) % 3]);
    d[column] = t / det;
  }
  return true;
}

TEST(test_exact_quadratics) {
  uint32_t seed = 1;
  int solved = 0;
  static sampled s;
  while (solved < 500) {
    model m = {.c = dyadic(&seed)};
    double expected[3];
    for (int i = 0; i < 3; i++) m.g[i] = dyadic(&seed);
    for (int i = 0; i < 6; i++) m.h[i] = dyadic(&seed);
    if (!cramer(&m, expected)) continue;
    sample_model(&m, &s);
    quadratic q = {0};
    assert_true(quadratic_fit(&s.view, 2, 8, 8, RULE_LOWE, &q));
    const float g[3] = {q.gx, q.gy, q.gs}, h[6] = {q.hxx, q.hyy, q.hss, q.hxy, q.hxs, q.hys};
    assert_true((double)q.value == m.c);
    for (int i = 0; i < 3; i++) assert_true((double)g[i] == m.g[i]);
    for (int i = 0; i < 6; i++) assert_true((double)h[i] == m.h[i]);
    const float got[3] = {q.dx, q.dy, q.ds};
    const double size = 1.0 + fabs(expected[0]) + fabs(expected[1]) + fabs(expected[2]);
    for (int i = 0; i < 3; i++)
      if (fabs((double)got[i] - expected[i]) > 2e-5 * size)
        fail_msg("offset %d is %.9g, expected %.9g", i, (double)got[i], expected[i]);
    const double value = m.c + 0.5 * (m.g[0] * expected[0] + m.g[1] * expected[1] + m.g[2] * expected[2]);
    assert_true(fabs((double)refine_response(&q) - fabs(value)) < 1e-4 * size);
    solved++;
  }
}

/* Solves by textbook elimination: the pivot is the first row with the largest absolute value. */
static bool eliminate(float m[3][4], float d[3]) {
  for (int c = 0; c < 3; c++) {
    int best = c;
    for (int r = c + 1; r < 3; r++)
      if (fabsf(m[r][c]) > fabsf(m[best][c])) best = r;
    for (int j = 0; j < 4 && best != c; j++) {
      const float t = m[c][j];
      m[c][j] = m[best][j];
      m[best][j] = t;
    }
    if (m[c][c] == 0.0f) return false;
    for (int r = c + 1; r < 3; r++) {
      const float f = m[r][c] / m[c][c];
      for (int j = c + 1; j < 4; j++) m[r][j] = m[r][j] - f * m[c][j];
    }
  }
  d[2] = m[2][3] / m[2][2];
  d[1] = (m[1][3] - m[1][2] * d[2]) / m[1][1];
  d[0] = ((m[0][3] - m[0][1] * d[1]) - m[0][2] * d[2]) / m[0][0];
  return true;
}

/* Small integers give many ties and zero pivots. Thirds make a wrong choice of row visible in the rounding. */
TEST(test_pivots_and_ties) {
  uint32_t seed = 7;
  int ties = 0, singular = 0;
  for (int i = 0; i < 200000; i++) {
    float v[9];
    for (int k = 0; k < 9; k++) v[k] = (float)((int32_t)(next_random(&seed) % 5u) - 2) / 3.0f;
    quadratic q = {0.0f, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], 0.0f, 0.0f, 0.0f};
    float m[3][4] = {{v[3], v[6], v[7], -v[0]}, {v[6], v[4], v[8], -v[1]}, {v[7], v[8], v[5], -v[2]}};
    float d[3];
    ties += fabsf(v[6]) == fabsf(v[7]) && fabsf(v[6]) > fabsf(v[3]);
    const bool expected = eliminate(m, d);
    singular += !expected;
    assert_int_equal(quadratic_solve(&q, 0.0f), expected);
    if (!expected) continue;
    assert_true(memcmp(&d[0], &q.dx, 4) == 0 && memcmp(&d[1], &q.dy, 4) == 0 && memcmp(&d[2], &q.ds, 4) == 0);
  }
  assert_true(ties > 1000 && singular > 1000);
}

TEST(test_singular) {
  static sampled s;
  quadratic q = {0};
  const model flat = {.c = 0.5}, ridge = {.c = 0.5, .g = {0.25, 0.0, 0.0}, .h = {1.0, 0.0, -1.0, 0.0, 0.0, 0.0}};
  sample_model(&flat, &s);
  assert_false(quadratic_fit(&s.view, 2, 8, 8, RULE_LOWE, &q));
  assert_false(quadratic_fit(&s.view, 2, 8, 8, RULE_OPENCV, &q));
  assert_true(quadratic_fit(&s.view, 2, 8, 8, RULE_VLFEAT, &q)); /* VLFeat uses no offset in this case */
  assert_true(q.dx == 0.0f && q.dy == 0.0f && q.ds == 0.0f);
  sample_model(&ridge, &s);
  assert_false(quadratic_fit(&s.view, 2, 8, 8, RULE_LOWE, &q));
  /* a system that overflows has no usable offset under any rule */
  quadratic huge = {.hxx = 1e-30f, .hyy = 1.0f, .hss = 1.0f, .gx = 1e30f};
  assert_true(quadratic_solve(&huge, 0.0f));
  assert_false(hs_is_finite(huge.dx));
}

static refine_step move(author_rule rule, float dx, float dy, float ds, int32_t at[3]) {
  const sift_params p = {.scales = 3, .border = 5, .refine_rule = rule, .settle = rule == RULE_OPENCV ? 0.5f : 0.6f};
  const octave_view o = {.width = 100, .height = 80};
  const quadratic q = {.dx = dx, .dy = dy, .ds = ds};
  return refine_move(&o, &p, &q, &at[0], &at[1], &at[2]);
}

static void expect_move(author_rule rule, const float d[3], const int32_t from[3], refine_step step,
                        const int32_t to[3]) {
  int32_t at[3] = {from[0], from[1], from[2]};
  assert_int_equal(move(rule, d[0], d[1], d[2], at), step);
  if (step == REFINE_LOST) return;
  for (int i = 0; i < 3; i++) assert_int_equal(at[i], to[i]);
}

#define V3F (const float[3])
#define V3  (const int32_t[3])

/* Offsets are given as (x, y, s), samples as (level, x, y). */
TEST(test_moves) {
  const int32_t centre[3] = {2, 50, 40};
  expect_move(RULE_LOWE, V3F{0.6f, -0.6f, 0.6f}, centre, REFINE_SETTLED, centre);
  expect_move(RULE_LOWE, V3F{0.61f, -7.0f, -0.61f}, centre, REFINE_MOVED, V3{1, 51, 39});
  expect_move(RULE_LOWE, V3F{0.0f, 0.0f, 0.7f}, V3{3, 50, 40}, REFINE_LOST, centre);
  expect_move(RULE_LOWE, V3F{0.0f, 0.0f, -0.7f}, V3{1, 50, 40}, REFINE_LOST, centre);
  expect_move(RULE_LOWE, V3F{-0.7f, 0.0f, 0.0f}, V3{2, 5, 40}, REFINE_LOST, centre);
  expect_move(RULE_LOWE, V3F{0.7f, 0.0f, 0.0f}, V3{2, 94, 40}, REFINE_LOST, centre);
  expect_move(RULE_LOWE, V3F{0.0f, 0.7f, 0.0f}, V3{2, 50, 74}, REFINE_LOST, centre);
  expect_move(RULE_LOWE, V3F{0.0f, 0.7f, 0.0f}, V3{2, 50, 73}, REFINE_MOVED, V3{2, 50, 74});
  expect_move(RULE_OPENCV, V3F{0.49f, -0.49f, 0.49f}, centre, REFINE_SETTLED, centre);
  /* an offset of 0.5 has not settled; it rounds to the even 0, so the position stays and is evaluated again */
  expect_move(RULE_OPENCV, V3F{0.5f, 0.0f, 0.0f}, centre, REFINE_MOVED, centre);
  expect_move(RULE_OPENCV, V3F{3.6f, -1.5f, 0.5f}, centre, REFINE_MOVED, V3{2, 54, 38});
  expect_move(RULE_OPENCV, V3F{2.0e9f, 0.0f, 0.0f}, centre, REFINE_LOST, centre);
  expect_move(RULE_OPENCV, V3F{0.0f, -60.0f, 0.0f}, centre, REFINE_LOST, centre);
  /* VLFeat makes no step in scale, and none onto the outermost samples */
  expect_move(RULE_VLFEAT, V3F{0.0f, 0.0f, 9.0f}, centre, REFINE_SETTLED, centre);
  expect_move(RULE_VLFEAT, V3F{9.0f, -9.0f, 9.0f}, centre, REFINE_MOVED, V3{2, 51, 39});
  expect_move(RULE_VLFEAT, V3F{0.7f, 0.7f, 0.0f}, V3{2, 98, 78}, REFINE_SETTLED, V3{2, 98, 78});
  expect_move(RULE_VLFEAT, V3F{-0.7f, -0.7f, 0.0f}, V3{2, 1, 1}, REFINE_SETTLED, V3{2, 1, 1});
}

static bool accept_edge(float hxx, float hyy, float hxy) {
  const sift_params p = {.scales = 3, .edge = 10.0f};
  const octave_view o = {.width = 100, .height = 80};
  const quadratic q = {.hxx = hxx, .hyy = hyy, .hxy = hxy};
  return refine_accept(&o, &p, &q, 2, 50, 40);
}

/* Ratios of principal curvatures below 10 pass; ratios of 10 and more do not. Saddles never pass. */
TEST(test_edges) {
  assert_true(accept_edge(1.0f, 1.0f, 0.0f));
  assert_true(accept_edge(-9.5f, -1.0f, 0.0f));
  assert_false(accept_edge(10.5f, 1.0f, 0.0f));
  assert_false(accept_edge(10.0f, 1.0f, 0.0f));
  assert_false(accept_edge(1.0f, -1.0f, 0.0f));
  assert_false(accept_edge(1.0f, 1.0f, 1.0f));
  assert_false(accept_edge(0.0f, 0.0f, 0.0f));
  assert_false(accept_edge(NAN, 1.0f, 0.0f));
  /* the same ratios, rotated by 45 degrees: eigenvalues 9.5 and 1, then 10.5 and 1 */
  assert_true(accept_edge(5.25f, 5.25f, 4.25f));
  assert_false(accept_edge(5.75f, 5.75f, 4.75f));
}

static bool accept_place(float dx, float dy, float ds, int32_t level, int32_t x, int32_t y) {
  const sift_params p = {.scales = 3, .edge = 10.0f, .refine_rule = RULE_VLFEAT};
  const octave_view o = {.width = 100, .height = 80};
  const quadratic q = {.hxx = 1.0f, .hyy = 1.0f, .dx = dx, .dy = dy, .ds = ds};
  return refine_accept(&o, &p, &q, level, x, y);
}

TEST(test_vlfeat_places) {
  assert_true(accept_place(1.4f, -1.4f, 1.4f, 2, 50, 40));
  assert_false(accept_place(1.5f, 0.0f, 0.0f, 2, 50, 40));
  assert_false(accept_place(0.0f, 0.0f, -1.5f, 2, 50, 40));
  assert_true(accept_place(-1.0f, 0.0f, 0.0f, 2, 1, 40));
  assert_false(accept_place(-1.1f, 0.0f, 0.0f, 2, 1, 40));
  assert_true(accept_place(1.0f, 1.0f, 0.0f, 2, 98, 78));
  assert_false(accept_place(0.0f, 1.1f, 0.0f, 2, 98, 78));
  assert_false(accept_place(0.0f, 0.0f, -1.1f, 1, 50, 40));
}

/* Positions round half up. Positions that round to outside the picture read the nearest pixel of the mask. */
TEST(test_places_kept) {
  const uint8_t mask[2 * 5] = {0, 1, 0, 9, 9, 1, 0, 255, 9, 9}; /* 3 x 2 pixels with a stride of 5 */
  position_filter f = {.mask = mask,
                       .mask_stride = 5,
                       .width = 3,
                       .height = 2,
                       .x0 = INT32_MIN,
                       .y0 = INT32_MIN,
                       .x1 = INT32_MAX,
                       .y1 = INT32_MAX};
  assert_false(position_kept(&f, 0.49f, 0.0f));
  assert_true(position_kept(&f, 0.5f, 0.0f));
  assert_true(position_kept(&f, 1.49f, 0.49f));
  assert_false(position_kept(&f, 1.49f, 0.5f));
  assert_true(position_kept(&f, -0.6f, 1.7f));
  assert_true(position_kept(&f, 2.9f, 1.0f));
  assert_false(position_kept(&f, 2.9f, -0.7f));
  f = (position_filter){.width = 100, .height = 100, .x0 = 10, .y0 = 20, .x1 = 30, .y1 = 40};
  assert_true(position_kept(&f, 9.5f, 19.5f));
  assert_false(position_kept(&f, 9.49f, 25.0f));
  assert_true(position_kept(&f, 29.49f, 39.49f));
  assert_false(position_kept(&f, 29.5f, 39.0f));
  assert_false(position_kept(&f, 29.0f, 39.5f));
}
