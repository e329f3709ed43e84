/*
 * Number and sizes of octaves under every rule, and the reflection of outside samples.
 */

#include "tests/support/test.h"

#include "stages/pyramid.h"

static pyramid_geometry geometry_of(int32_t width, int32_t height, pyramid_rules rules) {
  pyramid_geometry g;
  assert_int_equal(pyramid_geometry_of(width, height, &rules, &g), STAGE_OK);
  return g;
}

static pyramid_rules rules_of(author_rule rule, int32_t first_octave, int32_t border) {
  return (pyramid_rules){.first_octave = first_octave, .scales = 3, .border = border, .octave_rule = rule};
}

/* Picture size, rule, first octave and border, with the number of octaves and the first and last size, computed by
 * hand. */
typedef struct geometry_case {
  int32_t width, height;
  author_rule rule;
  int32_t first_octave, border, octaves, count;
  int32_t first_width, first_height, last_width, last_height;
} geometry_case;

static const geometry_case cases[] = {
    /* 1280 x 960 after doubling: sides 960, 480, ..., 15, because 11 samples are enough */
    {640, 480, RULE_LOWE, -1, 5, 0, 7, 1280, 960, 20, 15},
    {640, 480, RULE_LOWE, 0, 5, 0, 6, 640, 480, 20, 15},
    {640, 480, RULE_LOWE, 3, 5, 0, 3, 80, 60, 20, 15},
    {641, 483, RULE_LOWE, 3, 5, 0, 3, 80, 60, 20, 15},
    {640, 480, RULE_LOWE, -1, 5, 2, 2, 1280, 960, 640, 480},
    {640, 480, RULE_LOWE, -1, 5, 32, 7, 1280, 960, 20, 15},
    /* round(log2(960) - 2) + 1 = 9, without octaves that are too small for a candidate */
    {640, 480, RULE_OPENCV, -1, 5, 0, 7, 1280, 960, 20, 15},
    {640, 480, RULE_OPENCV, -1, 1, 0, 9, 1280, 960, 5, 3},
    /* floor(log2(480)) + 1 - 3 = 6 */
    {640, 480, RULE_VLFEAT, -1, 1, 0, 6, 1280, 960, 40, 30},
    {640, 480, RULE_VLFEAT, 0, 1, 0, 5, 640, 480, 40, 30},
    {640, 480, RULE_VLFEAT, -1, 1, 4, 4, 1280, 960, 160, 120},
    {9, 9, RULE_VLFEAT, 0, 1, 0, 1, 9, 9, 9, 9}, /* there is at least one octave */
    {1, 1, RULE_LOWE, -1, 5, 0, 0, 0, 0, 0, 0},
    {1, 1, RULE_VLFEAT, 3, 1, 0, 0, 0, 0, 0, 0},
    {1, 1, RULE_OPENCV, -1, 1, 0, 0, 0, 0, 0, 0},
    {2, 2, RULE_VLFEAT, -1, 1, 0, 1, 4, 4, 4, 4},
    {5, 5, RULE_LOWE, -1, 5, 0, 0, 0, 0, 0, 0}, /* 10 samples are one too few */
    {6, 6, RULE_LOWE, -1, 5, 0, 1, 12, 12, 12, 12},
    {100000, 1, RULE_LOWE, -1, 5, 0, 0, 0, 0, 0, 0},
    {1, 100000, RULE_VLFEAT, -1, 1, 0, 0, 0, 0, 0, 0},
    {100000, 6, RULE_LOWE, -1, 5, 0, 1, 200000, 12, 200000, 12},
    {400, 400, RULE_LOWE, -1, 64, 0, 3, 800, 800, 200, 200},
};

TEST(test_table) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const geometry_case *c = &cases[i];
    pyramid_rules rules = rules_of(c->rule, c->first_octave, c->border);
    rules.octaves = c->octaves;
    const pyramid_geometry g = geometry_of(c->width, c->height, rules);
    if (g.octave_count != c->count) fail_msg("case %zu: %d octaves, expected %d", i, g.octave_count, c->count);
    assert_int_equal(g.first_octave, c->first_octave);
    if (c->count == 0) continue;
    assert_int_equal(g.width[0], c->first_width);
    assert_int_equal(g.height[0], c->first_height);
    assert_int_equal(g.width[c->count - 1], c->last_width);
    assert_int_equal(g.height[c->count - 1], c->last_height);
  }
}

/* Computes the formulas of the three rules with the C library's logarithm, and drops octaves in which no candidate
 * fits. */
static int32_t expected_octaves(int32_t side, const pyramid_rules *r) {
  const int32_t first = r->first_octave < 0 ? 2 * side : side >> r->first_octave;
  const int32_t least = 2 * r->border + 1;
  int32_t most = OCTAVES_MAX, n = 0;
  if (r->octave_rule == RULE_OPENCV && first > 0) most = (int32_t)lround(log2((double)first) - 2.0) - r->first_octave;
  if (r->octave_rule == RULE_VLFEAT) {
    most = (int32_t)floor(log2((double)side)) - r->first_octave - 3;
    if (most < 1) most = 1;
  }
  for (int32_t s = first; n < most && s >= least; s /= 2) n++;
  return n;
}

TEST(test_all_small_sides) {
  for (int rule = RULE_LOWE; rule <= RULE_VLFEAT; rule++)
    for (int32_t first = -1; first <= 3; first++)
      for (int32_t side = 1; side <= 2100; side++) {
        const pyramid_rules rules = rules_of((author_rule)rule, first, side % 3 == 0 ? 5 : 1);
        const pyramid_geometry g = geometry_of(side, side + side / 2, rules);
        if (g.octave_count != expected_octaves(side, &rules))
          fail_msg("rule %d, first octave %d, side %d: %d octaves, expected %d", rule, first, side, g.octave_count,
                   expected_octaves(side, &rules));
        for (int32_t o = 1; o < g.octave_count; o++) {
          assert_int_equal(g.width[o], g.width[o - 1] / 2);
          assert_int_equal(g.height[o], g.height[o - 1] / 2);
        }
      }
}

TEST(test_overflow) {
  const pyramid_rules doubled = rules_of(RULE_LOWE, -1, 5), plain = rules_of(RULE_LOWE, 0, 5);
  pyramid_geometry g;
  assert_int_equal(pyramid_geometry_of(INT32_MAX, 10, &doubled, &g), STAGE_OVERFLOW);
  assert_int_equal(pyramid_geometry_of(10, INT32_MAX, &doubled, &g), STAGE_OVERFLOW);
  assert_int_equal(pyramid_geometry_of(INT32_MAX, INT32_MAX, &plain, &g), STAGE_OVERFLOW);
  for (int32_t first = -1; first <= 3; first++) {
    const pyramid_rules rules = rules_of(RULE_LOWE, first, 5);
    const int32_t most = first < 0 ? PYRAMID_SIDE_MAX / 2 : (PYRAMID_SIDE_MAX + 1) * (1 << first) - 1;
    assert_int_equal(pyramid_geometry_of(most, most, &rules, &g), STAGE_OK);
    assert_true(g.width[0] == PYRAMID_SIDE_MAX && g.height[0] == PYRAMID_SIDE_MAX);
    assert_int_equal(pyramid_geometry_of(most + 1, 10, &rules, &g), STAGE_OVERFLOW);
    assert_int_equal(pyramid_geometry_of(10, most + 1, &rules, &g), STAGE_OVERFLOW);
  }
}

/* Walks from index 0 to index i, reversing at the edges. */
static int32_t walk(int32_t i, int32_t n) {
  int32_t at = 0, step = i < 0 ? -1 : 1;
  if (n == 1) return 0;
  for (int32_t k = i < 0 ? -i : i; k > 0; k--) {
    if (at + step < 0 || at + step >= n) step = -step;
    at += step;
  }
  return at;
}

TEST(test_border_index) {
  for (int32_t n = 1; n <= 12; n++)
    for (int32_t i = -130; i <= 130; i++) {
      assert_int_equal(border_index(i, n, BORDER_REFLECT_101), walk(i, n));
      assert_int_equal(border_index(i, n, BORDER_REPLICATE), i < 0 ? 0 : (i < n ? i : n - 1));
    }
}
