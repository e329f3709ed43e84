/*
 * Calls of matching: messages name wrong arguments and options, and nothing changes; empty lists are valid; every
 * allocation may fail; known sizes allocate nothing.
 */
#include "tests/support/test.h"

/* Two lists with byte descriptors, one with floats, and one without descriptors. */
typedef struct lists {
  hs_features a, b, floats, bare;
  hs_context *context;
} lists;

static int open_lists(void **state) {
  lists *l = calloc(1, sizeof *l);
  if (!l) return -1;
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  feature_maker_fill(&l->a, 40, FEATURES_U8, 1);
  feature_maker_fill(&l->b, 30, FEATURES_U8, 2);
  feature_maker_fill(&l->floats, 20, FEATURES_UNIT_F32, 3);
  feature_maker_fill(&l->bare, 10, FEATURES_NONE, 4);
  l->context = extraction_context(&o);
  *state = l;
  return 0;
}

static int close_lists(void **state) {
  SCOPED_MEMORY lists *l = *state;
  hs_features_free(&l->a);
  hs_features_free(&l->b);
  hs_features_free(&l->floats);
  hs_features_free(&l->bare);
  hs_destroy(l->context);
  return 0;
}

#define SHARED_TEST(NAME) TEST_GIVEN(NAME, const lists, l, NULL, NULL)

SHARED_TEST(null_is_refused) {
  hs_matches m = {0};
  hs_nearest nearest[40];
  assert_int_equal(hs_match_options_init(NULL), HS_ERR_ARGUMENT);
  hs_matches_free(NULL);
  hs_context *contexts[] = {NULL, l->context};
  for (int k = 0; k < 2; k++) {
    hs_context *c = contexts[k];
    assert_int_equal(hs_match(c, NULL, &l->b, NULL, &m), HS_ERR_ARGUMENT);
    assert_int_equal(hs_match(c, &l->a, NULL, NULL, &m), HS_ERR_ARGUMENT);
    assert_int_equal(hs_match(c, &l->a, &l->b, NULL, NULL), HS_ERR_ARGUMENT);
    assert_int_equal(hs_find_nearest(c, NULL, &l->b, NULL, nearest), HS_ERR_ARGUMENT);
    assert_int_equal(hs_find_nearest(c, &l->a, &l->b, NULL, NULL), HS_ERR_ARGUMENT);
    assert_int_equal(hs_match(c, &l->a, &l->floats, NULL, &m), HS_ERR_ARGUMENT);
    assert_int_equal(hs_match(c, &l->bare, &l->a, NULL, &m), HS_ERR_ARGUMENT);
    if (c) assert_non_null(strstr(hs_last_error(c), "no descriptors"));
    hs_features lost = l->a;
    lost.descriptors = NULL;
    assert_int_equal(hs_match(c, &lost, &l->b, NULL, &m), HS_ERR_ARGUMENT);
    hs_features many = l->a;
    many.count = UINT32_MAX;
    assert_int_equal(hs_match(c, &many, &l->b, NULL, &m), HS_ERR_LIMIT);
    assert_true(m.count == 0 && !m.pairs);
    assert_int_equal(hs_match(c, &l->a, &l->b, NULL, &m), HS_OK);
    if (c) assert_string_equal(hs_last_error(c), "");
    hs_matches_free(&m);
  }
}

static void refuse(const lists *l, const hs_match_options *o, const char *field) {
  hs_match_pair pair = {1, 2, 3.0f, 4.0f};
  hs_matches m = {.count = 1, .pairs = &pair};
  assert_int_equal(hs_match(NULL, &l->a, &l->b, o, &m), HS_ERR_OPTION);
  assert_int_equal(hs_match(l->context, &l->a, &l->b, o, &m), HS_ERR_OPTION);
  if (!strstr(hs_last_error(l->context), field)) fail_msg("%s: %s", field, hs_last_error(l->context));
  assert_true(m.count == 1 && m.pairs == &pair && pair.first == 1);
}

SHARED_TEST(options_are_checked) {
  hs_match_options good, o;
  assert_int_equal(hs_match_options_init(&good), HS_OK);
#define REFUSE(field, value)                                                                                           \
  do {                                                                                                                 \
    o = good;                                                                                                          \
    o.guide = HS_GUIDE_HOMOGRAPHY;                                                                                     \
    o.field = value;                                                                                                   \
    refuse(l, &o, #field);                                                                                             \
  } while (0)
  REFUSE(ratio, -0.1);
  REFUSE(ratio, 1.1);
  REFUSE(ratio, (double)NAN);
  REFUSE(max_distance, -1.0);
  REFUSE(max_distance, (double)NAN);
  REFUSE(mutual, 2);
  REFUSE(guide, (hs_guide)3);
  REFUSE(guide_tolerance, 0.0);
  REFUSE(guide_tolerance, (double)NAN);
  REFUSE(guide_matrix[5], (double)INFINITY);
  REFUSE(struct_size, 0);
  REFUSE(struct_size, 100000);
#undef REFUSE
}

/* A limit whose square underflows to 0 is valid: only equal descriptors match. */
SHARED_TEST(tiny_limits) {
  hs_context *const contexts[] = {NULL, l->context};
  hs_match_options o[2];
  for (int i = 0; i < 2; i++) assert_int_equal(hs_match_options_init(&o[i]), HS_OK);
  o[0].max_distance = 1e-200;
  o[1].ratio = 1e-200;
  for (int i = 0; i < 4; i++) {
    scoped_matches m = {0};
    assert_int_equal(hs_match(contexts[i / 2], &l->a, &l->b, &o[i % 2], &m), HS_OK);
    for (size_t k = 0; k < m.count; k++) assert_true(m.pairs[k].distance == 0.0f);
    assert_int_equal(hs_match(contexts[i / 2], &l->a, &l->a, &o[i % 2], &m), HS_OK);
    assert_int_equal(m.count, l->a.count);
  }
}

/* A pair at exactly the largest distance is kept; at the next smaller limit it is not. */
SHARED_TEST(distance_at_its_limit) {
  hs_context *const contexts[] = {NULL, l->context};
  hs_keypoint keypoint = {.sigma = 1.0f};
  uint8_t one[HS_DESCRIPTOR_LENGTH] = {3, 100}, other[HS_DESCRIPTOR_LENGTH] = {0, 104};
  const hs_features a = {.count = 1, .keypoints = &keypoint, .descriptors = one};
  const hs_features b = {.count = 1, .keypoints = &keypoint, .descriptors = other};
  for (int i = 0; i < 4; i++) {
    scoped_matches m = {0};
    hs_match_options o;
    assert_int_equal(hs_match_options_init(&o), HS_OK);
    o.max_distance = i % 2 == 0 ? 5.0 : nextafter(5.0, 0.0);
    assert_int_equal(hs_match(contexts[i / 2], &a, &b, &o, &m), HS_OK);
    assert_int_equal(m.count, i % 2 == 0 ? 1 : 0);
  }
}

/* An older header's struct ends earlier; a later one's may have more fields if all are zero. */
SHARED_TEST(options_of_other_headers) {
  struct {
    hs_match_options known;
    uint64_t later[2];
  } o;
  scoped_matches m = {0}, expected = {0};
  memset(&o, 0, sizeof o);
  assert_int_equal(hs_match_options_init(&o.known), HS_OK);
  assert_int_equal(hs_match(l->context, &l->a, &l->b, NULL, &expected), HS_OK);
  o.known.struct_size = sizeof o;
  assert_int_equal(hs_match(l->context, &l->a, &l->b, &o.known, &m), HS_OK);
  assert_int_equal(m.count, expected.count);
  o.later[1] = 1;
  assert_int_equal(hs_match(l->context, &l->a, &l->b, &o.known, &m), HS_ERR_OPTION);
  o.known.struct_size = offsetof(hs_match_options, max_distance);
  o.known.max_distance = -5.0; /* changes a field beyond the struct's stated size */
  assert_int_equal(hs_match(l->context, &l->a, &l->b, &o.known, &m), HS_OK);
  assert_int_equal(m.count, expected.count);
}

SHARED_TEST(empty_lists) {
  const hs_features none = {0};
  scoped_matches m = {0};
  hs_nearest nearest[40];
  assert_int_equal(hs_match(l->context, &none, &none, NULL, &m), HS_OK);
  assert_int_equal(m.count, 0);
  assert_int_equal(hs_match(l->context, &l->floats, &none, NULL, &m), HS_OK);
  assert_int_equal(m.count, 0);
  assert_int_equal(hs_match(NULL, &none, &l->floats, NULL, &m), HS_OK);
  assert_int_equal(m.count, 0);
  assert_int_equal(hs_find_nearest(l->context, &none, &l->a, NULL, NULL), HS_OK);
  assert_int_equal(hs_find_nearest(l->context, &l->a, &none, NULL, nearest), HS_OK);
  for (int i = 0; i < 40; i++) {
    assert_true(nearest[i].nearest == HS_NO_FEATURE && nearest[i].second == HS_NO_FEATURE);
    assert_true(isinf(nearest[i].nearest_squared) && isinf(nearest[i].second_squared));
  }
  hs_features one = l->b;
  one.count = 1;
  hs_match_options o;
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  o.mutual = 0;
  o.ratio = 0.0;
  assert_int_equal(hs_match(l->context, &l->a, &one, &o, &m), HS_OK);
  assert_int_equal(m.count, 40);
  assert_true(m.pairs[0].second == 0 && isinf(m.pairs[0].next_distance));
}

/* With one feature there is no second nearest. Without the ratio test it matches every feature, whatever the other
 * tests are. */
SHARED_TEST(a_single_feature_has_one_match) {
  scoped_matches one_way = {0}, mutual = {0};
  hs_match_options o;
  hs_features one = l->b;
  one.count = 1;
  one.descriptors = (unsigned char *)l->a.descriptors + (size_t)7 * HS_DESCRIPTOR_LENGTH; /* feature 7 of a */
  for (int test = 0; test < 3; test++) {
    assert_int_equal(hs_match_options_init(&o), HS_OK);
    if (test == 1) o.max_distance = 1e4;
    if (test == 2) o.ratio = 1e-6;
    assert_int_equal(hs_match(l->context, &l->a, &one, &o, &mutual), HS_OK);
    o.mutual = 0;
    assert_int_equal(hs_match(l->context, &l->a, &one, &o, &one_way), HS_OK);
    assert_int_equal(one_way.count, 1);
    assert_int_equal(one_way.pairs[0].first, 7);
    assert_int_equal(mutual.count, 1);
    assert_memory_equal(one_way.pairs, mutual.pairs, sizeof *mutual.pairs);
  }
  /* A feature at equal distances from two features has no match. */
  hs_features twins = l->a;
  unsigned char *copies = calloc(2, HS_DESCRIPTOR_LENGTH);
  assert_non_null(copies);
  memcpy(copies, one.descriptors, HS_DESCRIPTOR_LENGTH);
  memcpy(copies + HS_DESCRIPTOR_LENGTH, one.descriptors, HS_DESCRIPTOR_LENGTH);
  twins.descriptors = copies;
  twins.count = 2;
  assert_int_equal(hs_match(l->context, &twins, &one, &o, &one_way), HS_OK);
  assert_int_equal(one_way.count, 0);
  /* In the opposite direction nothing changes, because each direction has its own test. */
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  o.mutual = 0;
  assert_int_equal(hs_match(l->context, &one, &l->a, &o, &one_way), HS_OK);
  assert_true(one_way.count == 1 && one_way.pairs[0].second == 7);
  free(copies);
}

/* Positions are read only for a guide. */
SHARED_TEST(places_are_for_guides) {
  hs_features bare = l->a;
  scoped_matches m = {0};
  hs_match_options o;
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  bare.keypoints = NULL;
  assert_int_equal(hs_match(l->context, &bare, &l->b, &o, &m), HS_OK);
  o.guide = HS_GUIDE_FUNDAMENTAL;
  assert_int_equal(hs_match(l->context, &bare, &l->b, &o, &m), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_last_error(l->context), "keypoints"));
}

/* The n-th allocation fails, for each n; then the same call succeeds. */
SHARED_TEST(allocations_may_fail) {
  hs_match_options o;
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  o.ratio = 0.0;
  for (size_t n = 3; n <= 5; n++) { /* allocations 1 and 2 belong to the context */
    scoped_counter counter = {.fail_at = n, .fill = 0xa5};
    const hs_allocator allocator = counted_allocator_make(&counter);
    hs_options options = extraction_options(HS_PROFILE_LOWE);
    hs_matches m = {0};
    options.allocator = &allocator;
    hs_context *c = extraction_context(&options);
    const hs_status st = hs_match(c, &l->a, &l->b, &o, &m);
    assert_int_equal(st, n <= 4 ? HS_ERR_MEMORY : HS_OK);
    if (st != HS_OK) {
      assert_true(!m.pairs && m.count == 0);
      assert_non_null(strstr(hs_last_error_location(c), "HS_ERR_MEMORY at "));
      assert_int_equal(hs_match(c, &l->a, &l->b, &o, &m), HS_OK);
    }
    assert_true(m.count > 0);
    const size_t made = counter.made;
    assert_int_equal(hs_match(c, &l->a, &l->b, &o, &m), HS_OK);
    assert_int_equal(hs_match(c, &l->a, &l->b, NULL, &m), HS_OK);
    assert_int_equal(counter.made, made); /* lists of known sizes need no more allocations */
    hs_destroy(c);
    hs_matches_free(&m); /* matches outlive the context */
  }
}

SHARED_TEST(memory_is_limited_and_counted) {
  hs_options options = extraction_options(HS_PROFILE_LOWE);
  scoped_matches m = {0};
  hs_statistics before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  options.max_memory_bytes = 1000;
  scoped_context *c = extraction_context(&options);
  assert_int_equal(hs_match(c, &l->a, &l->b, NULL, &m), HS_ERR_LIMIT);
  assert_non_null(strstr(hs_last_error(c), "max_memory_bytes"));
  hs_destroy(c);
  options.max_memory_bytes = 1 << 24;
  c = extraction_context(&options);
  assert_int_equal(hs_get_statistics(c, &before), HS_OK);
  assert_int_equal(hs_match(c, &l->a, &l->b, NULL, &m), HS_OK);
  assert_int_equal(hs_get_statistics(c, &after), HS_OK);
  assert_true(after.workspace_bytes > before.workspace_bytes + 70 * sizeof(hs_nearest));
  assert_true(after.workspace_bytes < before.workspace_bytes + (1 << 24));
}

/* A context alternates between extraction and matching. */
SHARED_TEST(matching_and_extraction_share_a_context) {
  scoped_image scene = extraction_scene(160, 120, 5, NULL);
  scoped_features f = {0};
  scoped_matches m = {0};
  for (int round = 0; round < 2; round++) {
    assert_int_equal(hs_extract(l->context, &scene, NULL, &f), HS_OK);
    assert_int_equal(hs_match(l->context, &f, &f, NULL, &m), HS_OK);
    for (size_t i = 0; i < m.count; i++) assert_int_equal(m.pairs[i].first, m.pairs[i].second);
    assert_true(m.count > 0);
  }
  assert_non_null(strstr(hs_backend_report(l->context), "match: "));
}

TESTS_BETWEEN(open_lists, close_lists)
