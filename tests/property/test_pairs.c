/*
 * A run over many pairs equals hs_match and hs_verify pair by pair, byte for byte and in order.
 *
 * Covers images with many, one and no features, bytes and floats, numbers of threads, memory limits, lists in any
 * order, features passed or read, with and without verification and guided matching.
 */

#include "tests/support/test.h"

#include "pipeline/base/features.h"
#include "tests/support/collection_maker.h"
#include "tests/support/engine_tests.h"
#include "tests/support/two_view_scene.h"

/* The result of one pair. */
typedef struct outcome {
  hs_matches matches;
  uint8_t *inliers;
  hs_geometry model, plane;
  bool has_plane;
} outcome;

typedef struct expectation {
  const test_collection *collection;
  hs_pairs_options options;
  outcome *each; /* outcome of each pair */
} expectation;

static hs_context *make_context(int32_t threads, uint64_t max_memory) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = engine_device;
  o.threads = threads;
  o.max_memory_bytes = max_memory;
  return extraction_context(&o);
}

/* ------------------------------------------------------------------ pair by pair */

static void match_and_verify(const expectation *e, const hs_image_pair *pair, const hs_match_options *match,
                             outcome *out) {
  const test_collection *c = e->collection;
  const hs_features *a = &c->features[pair->first], *b = &c->features[pair->second];
  assert_int_equal(hs_match(NULL, a, b, match, &out->matches), HS_OK);
  out->inliers = calloc(out->matches.count + 1, 1);
  assert_non_null(out->inliers);
  if (!e->options.verify) return;
  hs_verify_options v = *e->options.verify;
  v.camera_a = c->cameras[pair->first];
  v.camera_b = c->cameras[pair->second];
  if (v.model == HS_ESSENTIAL && (v.camera_a.fx == 0.0 || v.camera_b.fx == 0.0)) v.model = HS_FUNDAMENTAL;
  assert_int_equal(hs_verify(a, b, out->matches.pairs, sizeof *out->matches.pairs, out->matches.count, &v, out->inliers,
                             &out->model),
                   HS_OK);
  if (!e->options.find_plane || out->model.found == 0 || v.model == HS_HOMOGRAPHY ||
      2 * out->model.plane_inliers < out->model.inlier_count)
    return;
  hs_verify_options plane;
  assert_int_equal(hs_verify_options_init(&plane, HS_HOMOGRAPHY), HS_OK);
  plane.tolerance = e->options.plane_tolerance;
  plane.seed = v.seed;
  out->has_plane = true;
  assert_int_equal(
      hs_verify(a, b, out->matches.pairs, sizeof *out->matches.pairs, out->matches.count, &plane, NULL, &out->plane),
      HS_OK);
}

static void free_outcome(outcome *o) {
  hs_matches_free(&o->matches);
  free(o->inliers);
  memset(o, 0, sizeof *o);
}

/* Returns the options of a model's guide, by the header's definition. */
static hs_match_options guide_of(const expectation *e, const hs_image_pair *pair, const hs_geometry *model) {
  hs_match_options o;
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  o.guide = model->model == HS_HOMOGRAPHY ? HS_GUIDE_HOMOGRAPHY : HS_GUIDE_FUNDAMENTAL;
  o.guide_tolerance = e->options.verify->tolerance * (model->model == HS_HOMOGRAPHY ? sqrt(2.0) : 1.0);
  memcpy(o.guide_matrix, model->matrix, sizeof o.guide_matrix);
  if (model->model == HS_ESSENTIAL)
    two_view_fundamental(model->matrix, &e->collection->cameras[pair->first], &e->collection->cameras[pair->second],
                         o.guide_matrix);
  return o;
}

static void expect(expectation *e) {
  const test_collection *c = e->collection;
  e->each = calloc(c->pair_count + 1, sizeof *e->each);
  assert_non_null(e->each);
  for (size_t i = 0; i < c->pair_count; i++) {
    outcome *o = &e->each[i], again = {0};
    match_and_verify(e, &c->pairs[i], e->options.match, o);
    if (!e->options.guided || o->model.found == 0) continue;
    const hs_match_options guided = guide_of(e, &c->pairs[i], &o->model);
    match_and_verify(e, &c->pairs[i], &guided, &again);
    const bool better = again.model.found != 0 && again.model.inlier_count >= o->model.inlier_count;
    free_outcome(better ? o : &again);
    if (better) *o = again;
  }
}

static void drop_expectation(expectation *e) {
  for (size_t i = 0; i < e->collection->pair_count; i++) free_outcome(&e->each[i]);
  free(e->each);
}

/* ------------------------------------------------------------------ runs */

typedef struct reader {
  const test_collection *collection;
  size_t readings;
  uint32_t broken; /* index of an image that cannot be read */
} reader;

static hs_status read_image(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  reader *r = user;
  r->readings++;
  if (image == r->broken) {
    snprintf(message, message_bytes, "image %lu is broken", (unsigned long)image);
    return HS_ERR_FORMAT;
  }
  return features_copy(features, &r->collection->features[image], NULL);
}

/* Returns the collection in the library's form. The caller frees its images. */
static hs_collection describe(const test_collection *c, reader *r) {
  hs_collection_image *images = calloc(c->count + 1, sizeof *images);
  assert_non_null(images);
  for (size_t i = 0; i < c->count; i++) {
    if (r)
      images[i].feature_count = c->features[i].count;
    else
      images[i].features = &c->features[i];
    images[i].camera = c->cameras[i];
  }
  return (hs_collection){.images = images, .image_count = c->count, .read = r ? read_image : NULL, .user = r};
}

static void compare(const hs_pair_result *r, const outcome *o, bool verified) {
  assert_int_equal(r->status, HS_OK);
  assert_string_equal(r->message, "");
  assert_int_equal(r->match_count, o->matches.count);
  if (o->matches.count > 0)
    assert_memory_equal(r->matches, o->matches.pairs, o->matches.count * sizeof *o->matches.pairs);
  if (!verified) {
    assert_null(r->inliers);
    assert_null(r->geometry);
    assert_null(r->plane);
    return;
  }
  if (o->matches.count > 0) assert_memory_equal(r->inliers, o->inliers, o->matches.count);
  assert_memory_equal(r->geometry, &o->model, sizeof o->model);
  assert_int_equal(r->plane != NULL, o->has_plane);
  if (o->has_plane) assert_memory_equal(r->plane, &o->plane, sizeof o->plane);
}

/* Runs over all pairs and compares; returns the number of images read. */
static size_t run(const expectation *e, int32_t threads, uint64_t max_memory, bool reads) {
  const test_collection *c = e->collection;
  reader r = {.collection = c, .broken = UINT32_MAX};
  hs_collection collection = describe(c, reads ? &r : NULL);
  hs_context *context = make_context(threads, max_memory);
  const hs_pair_result *result;
  hs_pairs *pairs;
  assert_int_equal(hs_pairs_start(&pairs, context, &collection, c->pairs, c->pair_count, &e->options), HS_OK);
  for (size_t i = 0; i < c->pair_count; i++) {
    assert_int_equal(hs_pairs_next(pairs, -1, &result), HS_OK);
    assert_non_null(result);
    assert_int_equal(result->index, i);
    assert_memory_equal(&result->images, &c->pairs[i], sizeof c->pairs[i]);
    compare(result, &e->each[i], e->options.verify != NULL);
  }
  assert_int_equal(hs_pairs_next(pairs, -1, &result), HS_OK);
  assert_null(result);
  hs_pairs_end(pairs);
  hs_destroy(context);
  free((void *)(uintptr_t)collection.images);
  return r.readings;
}

/* Runs without distances to the second nearest: they are 0, and nothing else changes. */
static void run_without_next_distance(expectation *e, int32_t threads) {
  for (size_t i = 0; i < e->collection->pair_count; i++)
    for (size_t k = 0; k < e->each[i].matches.count; k++) e->each[i].matches.pairs[k].next_distance = 0.0f;
  e->options.skip_next_distance = 1;
  (void)run(e, threads, 0, false);
}

/* Returns the smallest memory limit, to a tenth, with which every pair fits. With less, pairs report the limit. */
static uint64_t least_memory(const expectation *e, int32_t threads) {
  const test_collection *c = e->collection;
  for (uint64_t memory = 16384;; memory += memory / 10) {
    reader r = {.collection = c, .broken = UINT32_MAX};
    hs_collection collection = describe(c, &r);
    hs_context *context = make_context(threads, memory);
    const hs_pair_result *result;
    hs_pairs *pairs;
    bool fits = true;
    assert_int_equal(hs_pairs_start(&pairs, context, &collection, c->pairs, c->pair_count, &e->options), HS_OK);
    for (size_t i = 0; fits && i < c->pair_count; i++) {
      assert_int_equal(hs_pairs_next(pairs, -1, &result), HS_OK);
      fits = result->status == HS_OK;
      if (!fits) assert_int_equal(result->status, HS_ERR_LIMIT);
      if (!fits) assert_non_null(strstr(result->message, "max_memory_bytes"));
    }
    hs_pairs_end(pairs);
    hs_destroy(context);
    free((void *)(uintptr_t)collection.images);
    if (fits) return memory;
  }
}

ENGINE_TEST(ON_ALL, bytes_and_memory) {
  SCOPED_BY(collection_maker_free) test_collection c;
  hs_verify_options v;
  assert_int_equal(hs_verify_options_init(&v, HS_FUNDAMENTAL), HS_OK);
  v.max_iterations = 300;
  collection_maker_fill(&c, 14, 160, HS_DESCRIPTOR_U8, 5);
  expectation e = {.collection = &c, .options = {.struct_size = sizeof e.options, .verify = &v}};
  for (int shuffled = 0; shuffled < 2; shuffled++) {
    if (shuffled) collection_maker_shuffle(&c, 77);
    expect(&e);
    size_t found = 0;
    for (size_t i = 0; i < c.pair_count; i++) found += e.each[i].model.found != 0;
    assert_in_range(found, 10, c.pair_count - 10); /* some pairs are related and some are not */
    for (int32_t threads = 1; threads <= 5; threads += 2) {
      assert_int_equal(run(&e, threads, 0, false), 0);
      assert_int_equal(run(&e, threads, 0, true), c.count);
      const uint64_t least = least_memory(&e, threads);
      /* with little memory the run proceeds in blocks and reads images again */
      assert_true(run(&e, threads, least, true) > c.count);
      (void)run(&e, threads, least + least / 4, true);
      (void)run(&e, threads, 3 * least, true);
    }
    drop_expectation(&e);
  }
}

ENGINE_TEST(ON_ALL, each_way_of_verifying) {
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, 8, 240, HS_DESCRIPTOR_U8, 9);
  c.cameras[4] = (hs_camera){0};
  for (int32_t model = HS_HOMOGRAPHY; model <= HS_ESSENTIAL; model++)
    for (int32_t guided = 0; guided < 2; guided++) {
      hs_verify_options v;
      assert_int_equal(hs_verify_options_init(&v, (hs_geometry_model)model), HS_OK);
      v.max_iterations = 200;
      v.seed = 3;
      expectation e = {.collection = &c,
                       .options = {.struct_size = sizeof e.options,
                                   .verify = &v,
                                   .guided = guided,
                                   .find_plane = 1,
                                   .plane_tolerance = 6.0}};
      expect(&e);
      assert_int_equal(run(&e, 3, 0, model == HS_FUNDAMENTAL), model == HS_FUNDAMENTAL ? c.count : 0);
      run_without_next_distance(&e, 3);
      drop_expectation(&e);
    }
}

ENGINE_TEST(ON_ALL, floats_and_one_way) {
  test_collection c;
  hs_match_options match;
  assert_int_equal(hs_match_options_init(&match), HS_OK);
  for (int32_t mutual = 0; mutual < 2; mutual++)
    for (int floats = 0; floats < 2; floats++) {
      match.mutual = mutual;
      match.ratio = 0.9;
      collection_maker_fill(&c, 6, 120, floats ? HS_DESCRIPTOR_F32 : HS_DESCRIPTOR_U8, 21);
      expectation e = {.collection = &c, .options = {.struct_size = sizeof e.options, .match = &match}};
      expect(&e);
      (void)run(&e, 2, 0, true);
      (void)run(&e, 1, 0, false);
      drop_expectation(&e);
      collection_maker_free(&c);
    }
}

/* A feature without others is matched mutually. The matchings before and after it, with the same first image, prepare
 * that image in another way. */
ENGINE_TEST(ON_ALL, one_feature_among_long_lists) {
  test_collection c;
  hs_match_options match;
  assert_int_equal(hs_match_options_init(&match), HS_OK);
  match.ratio = 0.9;
  for (match.mutual = 0; match.mutual < 2; match.mutual++) {
    collection_maker_fill(&c, 4, 600, HS_DESCRIPTOR_U8, 23); /* the third has one feature */
    expectation e = {.collection = &c, .options = {.struct_size = sizeof e.options, .match = &match}};
    expect(&e);
    (void)run(&e, 1, 0, false);
    run_without_next_distance(&e, 1);
    drop_expectation(&e);
    collection_maker_free(&c);
  }
}

/* Results that wait for an earlier one are bounded too. With this little memory the run stays in order. */
ENGINE_TEST(ON_ALL, results_beyond_their_memory) {
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, 40, 40, HS_DESCRIPTOR_U8, 2);
  expectation e = {.collection = &c, .options = {.struct_size = sizeof e.options}};
  expect(&e);
  const uint64_t least = least_memory(&e, 2);
  for (uint64_t more = 0; more < 40000; more += 10000) assert_true(run(&e, 2, least + more, true) >= c.count);
  drop_expectation(&e);
}

ENGINE_TEST(ON_ALL, an_image_that_cannot_be_read) {
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, 6, 60, HS_DESCRIPTOR_U8, 4);
  reader r = {.collection = &c, .broken = 3};
  hs_collection collection = describe(&c, &r);
  hs_context *context = make_context(2, 0);
  const hs_pair_result *result;
  hs_pairs *pairs;
  assert_int_equal(hs_pairs_start(&pairs, context, &collection, c.pairs, c.pair_count, NULL), HS_OK);
  for (size_t i = 0; i < c.pair_count; i++) {
    assert_int_equal(hs_pairs_next(pairs, -1, &result), HS_OK);
    const bool broken = c.pairs[i].first == 3 || c.pairs[i].second == 3;
    assert_int_equal(result->status, broken ? HS_ERR_FORMAT : HS_OK);
    assert_string_equal(result->message, broken ? "image 3 is broken" : "");
  }
  hs_pairs_end(pairs);
  hs_destroy(context);
  free((void *)(uintptr_t)collection.images);
}
