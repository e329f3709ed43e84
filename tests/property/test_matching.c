/*
 * Invariants of matching for any descriptors: exchange of the images, order of the features, guides, and tests that
 * only remove. Views of one scene match according to their geometry.
 */
#include "tests/support/test.h"

static const double view[9] = {0.97, 0.12, -6.0, -0.11, 0.99, 14.0, 2e-5, -1e-5, 1.0};

/* Two views of one scene, and a context to match them. */
typedef struct views {
  hs_context *context;
  hs_features a, b;
} views;

static int open_views(void **state) {
  views *v = calloc(1, sizeof *v);
  if (!v) return -1;
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_image plain = extraction_scene(360, 270, 11, NULL), turned = extraction_scene(360, 270, 11, view);
  v->context = extraction_context(&o);
  v->a = extraction_run(v->context, &plain);
  v->b = extraction_run(v->context, &turned);
  hs_image_free(&plain);
  hs_image_free(&turned);
  *state = v;
  return 0;
}

static int close_views(void **state) {
  SCOPED_MEMORY views *v = *state;
  hs_features_free(&v->a);
  hs_features_free(&v->b);
  hs_destroy(v->context);
  return 0;
}

static hs_match_options defaults(void) {
  hs_match_options o;
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  return o;
}

static hs_matches matches_of(hs_context *context, const hs_features *a, const hs_features *b,
                             const hs_match_options *options) {
  hs_matches m = {0};
  assert_int_equal(hs_match(context, a, b, options, &m), HS_OK);
  return m;
}

static void check_same(const hs_matches *expected, const hs_matches *found) {
  assert_int_equal(expected->count, found->count);
  assert_memory_equal(expected->pairs, found->pairs, expected->count * sizeof *expected->pairs);
}

/* Returns whether a match of first to second is in the list. */
static bool has(const hs_matches *m, uint32_t first, uint32_t second) {
  for (size_t i = 0; i < m->count; i++)
    if (m->pairs[i].first == first && m->pairs[i].second == second) return true;
  return false;
}

TEST(defaults_stand) {
  const hs_match_options o = defaults();
  assert_true(o.struct_size == sizeof o && o.ratio == 0.8 && o.max_distance == 0.0 && o.mutual == 1);
  assert_true(o.guide == HS_GUIDE_NONE && o.guide_tolerance == 4.0 && o.guide_matrix[4] == 1.0);
}

#define SHARED_TEST(NAME) TEST_GIVEN(NAME, const views, v, NULL, NULL)

/* Most matches of two views are within 2 pixels of the homography's mapping. */
SHARED_TEST(views_match) {
  scoped_matches m = matches_of(v->context, &v->a, &v->b, NULL);
  size_t right = 0;
  for (size_t i = 0; i < m.count; i++) {
    const hs_keypoint *p = &v->a.keypoints[m.pairs[i].first], *q = &v->b.keypoints[m.pairs[i].second];
    const double w = view[6] * (double)p->x + view[7] * (double)p->y + view[8];
    const double x = (view[0] * (double)p->x + view[1] * (double)p->y + view[2]) / w;
    const double y = (view[3] * (double)p->x + view[4] * (double)p->y + view[5]) / w;
    right += hypot(x - (double)q->x, y - (double)q->y) < 2.0;
    if (i > 0) assert_true(m.pairs[i].first > m.pairs[i - 1].first);
    assert_true(m.pairs[i].distance < 0.8f * m.pairs[i].next_distance + 1e-3f);
    assert_true(fabs((double)m.pairs[i].distance / 512.0 -
                     extraction_distance(&v->a, m.pairs[i].first, &v->b, m.pairs[i].second)) < 1e-4);
  }
  assert_true(m.count > v->a.count / 4);
  assert_true(right * 100 > m.count * 97);
}

SHARED_TEST(exchange_exchanges) {
  for (int style = 0; style < 2; style++) {
    hs_match_options o = defaults();
    o.ratio = style ? 0.0 : 0.8;
    o.max_distance = style ? 260.0 : 0.0;
    scoped_matches ab = matches_of(v->context, &v->a, &v->b, &o), ba = matches_of(v->context, &v->b, &v->a, &o);
    assert_true(ab.count > 0);
    assert_int_equal(ab.count, ba.count);
    for (size_t i = 0; i < ba.count; i++) assert_true(has(&ab, ba.pairs[i].second, ba.pairs[i].first));
  }
}

/* Reversing the second list gives the same pairs under other indices. Descriptors are random, so no two distances are
 * equal. */
SHARED_TEST(order_does_not_matter) {
  scoped_features a = {0}, b = {0}, backwards = {0};
  feature_maker_fill(&a, 90, FEATURES_UNIT_F32, 5);
  feature_maker_fill(&b, 113, FEATURES_UNIT_F32, 6);
  feature_maker_fill(&backwards, 113, FEATURES_UNIT_F32, 6);
  const size_t bytes = HS_DESCRIPTOR_LENGTH * sizeof(float);
  for (size_t i = 0; i < b.count; i++)
    memcpy((char *)backwards.descriptors + i * bytes, (const char *)b.descriptors + (b.count - 1 - i) * bytes, bytes);
  hs_match_options o = defaults();
  o.ratio = 0.0;
  scoped_matches m = matches_of(v->context, &a, &b, &o), n = matches_of(v->context, &a, &backwards, &o);
  assert_true(m.count > 0);
  assert_int_equal(m.count, n.count);
  for (size_t i = 0; i < m.count; i++) {
    assert_int_equal(n.pairs[i].first, m.pairs[i].first);
    assert_int_equal(n.pairs[i].second, b.count - 1 - m.pairs[i].second);
    assert_true(n.pairs[i].distance == m.pairs[i].distance && n.pairs[i].next_distance == m.pairs[i].next_distance);
  }
}

SHARED_TEST(infinite_guides_change_nothing) {
  scoped_matches plain = matches_of(v->context, &v->a, &v->b, NULL);
  for (int guide = HS_GUIDE_HOMOGRAPHY; guide <= HS_GUIDE_FUNDAMENTAL; guide++) {
    hs_match_options o = defaults();
    o.guide = (hs_guide)guide;
    o.guide_tolerance = (double)INFINITY;
    scoped_matches guided = matches_of(v->context, &v->a, &v->b, &o);
    check_same(&plain, &guided);
    hs_matches_free(&guided);
    o.guide_tolerance = 1e200; /* the square of this tolerance overflows, so the guide is not applied */
    memset(o.guide_matrix, 0, sizeof o.guide_matrix);
    guided = matches_of(v->context, &v->a, &v->b, &o);
    check_same(&plain, &guided);
    hs_matches_free(&guided);
    o = defaults();
    o.guide = (hs_guide)guide;
    o.guide_tolerance = 1e9; /* every pair is within this tolerance, but the guide is applied */
    guided = matches_of(v->context, &v->a, &v->b, &o);
    check_same(&plain, &guided);
  }
}

/* With the true homography every match agrees with it. There are more matches than without a guide, because competing
 * features at other positions are excluded. */
SHARED_TEST(guides_guide) {
  hs_match_options o = defaults();
  o.guide = HS_GUIDE_HOMOGRAPHY;
  o.guide_tolerance = 3.0;
  memcpy(o.guide_matrix, view, sizeof view);
  scoped_matches plain = matches_of(v->context, &v->a, &v->b, NULL), guided = matches_of(v->context, &v->a, &v->b, &o);
  assert_true(guided.count > plain.count);
  for (int k = 0; k < 9; k++) o.guide_matrix[k] *= -7.5; /* a homography may have any scale and sign */
  scoped_matches scaled = matches_of(v->context, &v->a, &v->b, &o);
  assert_int_equal(scaled.count, guided.count);
  for (size_t i = 0; i < guided.count; i++) {
    const hs_keypoint *p = &v->a.keypoints[guided.pairs[i].first], *q = &v->b.keypoints[guided.pairs[i].second];
    const double w = view[6] * (double)p->x + view[7] * (double)p->y + view[8];
    const double x = (view[0] * (double)p->x + view[1] * (double)p->y + view[2]) / w;
    const double y = (view[3] * (double)p->x + view[4] * (double)p->y + view[5]) / w;
    assert_true(hypot(x - (double)q->x, y - (double)q->y) <= 3.0 + 1e-9);
  }
}

/* For a sideways motion epipolar lines are rows, and the Sampson distance is the difference of y divided by sqrt 2. */
SHARED_TEST(epipolar_lines_guide) {
  static const double rows[9] = {0, 0, 0, 0, 0, -1, 0, 1, 0};
  hs_match_options o = defaults();
  o.guide = HS_GUIDE_FUNDAMENTAL;
  o.guide_tolerance = 5.0;
  o.ratio = 0.0;
  o.mutual = 0;
  memcpy(o.guide_matrix, rows, sizeof rows);
  SCOPED_MEMORY hs_nearest *nearest = calloc(v->a.count, sizeof *nearest);
  assert_non_null(nearest);
  assert_int_equal(hs_find_nearest(v->context, &v->a, &v->b, &o, nearest), HS_OK);
  for (size_t i = 0; i < v->a.count; i++) {
    size_t candidates = 0;
    bool listed = false;
    for (size_t j = 0; j < v->b.count; j++) {
      const double dy = fabs((double)v->a.keypoints[i].y - (double)v->b.keypoints[j].y);
      candidates += dy / sqrt(2.0) < 5.0;
      listed = listed || (j == nearest[i].nearest && dy / sqrt(2.0) <= 5.0 + 1e-9);
    }
    assert_int_equal(listed, candidates > 0);
    if (candidates == 0) assert_true(nearest[i].nearest == HS_NO_FEATURE && isinf(nearest[i].nearest_squared));
    if (candidates < 2) assert_true(nearest[i].second == HS_NO_FEATURE && isinf(nearest[i].second_squared));
  }
}

/* A stricter test keeps a subset of a laxer test's matches. */
SHARED_TEST(tests_only_take_away) {
  hs_match_options lax = defaults();
  lax.ratio = 0.0;
  lax.mutual = 0;
  scoped_matches all = matches_of(v->context, &v->a, &v->b, &lax);
  assert_int_equal(all.count, v->a.count);
  for (int test = 0; test < 3; test++) {
    hs_match_options strict = lax;
    if (test == 0) strict.ratio = 0.9;
    if (test == 1) strict.max_distance = 150.0;
    if (test == 2) strict.mutual = 1;
    scoped_matches some = matches_of(v->context, &v->a, &v->b, &strict);
    assert_true(some.count > 0 && some.count < all.count);
    for (size_t i = 0; i < some.count; i++) {
      const hs_match_pair *p = &all.pairs[some.pairs[i].first];
      assert_memory_equal(p, &some.pairs[i], sizeof *p);
    }
  }
}

/* Calls without a context, with one thread or several, and the reference give the same bytes. */
SHARED_TEST(backends_agree) {
  scoped_matches expected = matches_of(NULL, &v->a, &v->b, NULL);
  static const char *const variants[] = {NULL, "match=ref"};
  for (int threads = 1; threads <= 3; threads++)
    for (int k = 0; k < 2; k++) {
      hs_options o = extraction_options(HS_PROFILE_LOWE);
      o.threads = threads;
      const hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, variants[k]);
      o.expert = &expert;
      scoped_context *c = extraction_context(&o);
      scoped_matches found = matches_of(c, &v->a, &v->b, NULL);
      check_same(&expected, &found);
    }
}

/* A descriptor occurs twice in the second list, so the nearest two are at equal distances and no ratio test passes. */
SHARED_TEST(duplicates_fail_the_ratio) {
  scoped_features a = {0}, b = {0};
  feature_maker_fill(&a, 1, FEATURES_U8, 3);
  feature_maker_fill(&b, 4, FEATURES_U8, 4);
  memcpy((uint8_t *)b.descriptors + 3 * HS_DESCRIPTOR_LENGTH, a.descriptors, HS_DESCRIPTOR_LENGTH);
  memcpy((uint8_t *)b.descriptors + 1 * HS_DESCRIPTOR_LENGTH, a.descriptors, HS_DESCRIPTOR_LENGTH);
  hs_match_options o = defaults();
  scoped_matches m = matches_of(v->context, &a, &b, &o);
  assert_int_equal(m.count, 0);
  o.ratio = 0.0;
  assert_int_equal(hs_match(v->context, &a, &b, &o, &m), HS_OK);
  assert_int_equal(m.count, 1);
  assert_true(m.pairs[0].second == 1 && m.pairs[0].distance == 0.0f && m.pairs[0].next_distance == 0.0f);
}

TESTS_BETWEEN(open_views, close_views)
