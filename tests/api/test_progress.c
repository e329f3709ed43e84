/*
 * hs_set_progress: number and arguments of the calls of the progress function. Cancelling at each call ends every
 * cancellable call, and neither progress nor cancelling changes a byte of later results.
 */
#include <pthread.h>

#include "tests/support/test.h"

#include "tests/support/extent.h"

/* Arguments that a progress function received. */
typedef struct teller {
  int calls, end_at; /* number of the call that cancels, from 1; 0: none */
  uint64_t last, total;
  pthread_t thread;
  bool wrong;
} teller;

static int32_t tell(void *user, uint64_t done, uint64_t total) {
  teller *t = user;
  t->wrong = t->wrong || done > total || total == 0 || done < t->last || !pthread_equal(t->thread, pthread_self()) ||
             (t->calls > 0 && total != t->total);
  t->last = done;
  t->total = total;
  return ++t->calls == t->end_at ? 7 : 0;
}

typedef struct fixture {
  hs_image image;
  hs_features expected, many, few;
  hs_context *context;
  teller told;
} fixture;

static fixture f;

static void listen(int end_at) {
  f.told = (teller){.end_at = end_at, .thread = pthread_self()};
  assert_int_equal(hs_set_progress(f.context, tell, &f.told), HS_OK);
}

BEFORE_TESTS() {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 2;
  f.image = extent_is_short() ? extraction_scene(160, 120, 4, NULL) : extraction_scene(320, 240, 4, NULL);
  f.context = extraction_context(&o);
  f.expected = extraction_run(f.context, &f.image);
  feature_maker_fill(&f.many, 700, FEATURES_U8, 1);
  feature_maker_fill(&f.few, 90, FEATURES_U8, 2);
}

AFTER_TESTS() { hs_destroy(f.context); }

/* ---- the calls that report progress */

static hs_status call_extract(void) {
  scoped_features got = {0};
  const hs_status status = hs_extract(f.context, &f.image, NULL, &got);
  if (status == HS_OK) extraction_check_equal(&f.expected, &got, "with a progress function");
  assert_true(status == HS_OK || got.count == 0);
  return status;
}

static hs_status call_detect(void) {
  scoped_features got = {0};
  const hs_status status = hs_detect(f.context, &f.image, NULL, &got);
  return status;
}

static hs_status call_view(void) {
  const hs_features *got;
  return hs_extract_view(f.context, &f.image, NULL, &got);
}

static hs_status call_describe(void) {
  scoped_features got = {0};
  const hs_status status = hs_describe(f.context, &f.image, f.expected.keypoints, f.expected.count, &got, NULL);
  if (status == HS_OK) assert_int_equal(got.count, f.expected.count);
  return status;
}

static hs_status call_match(void) {
  scoped_matches got = {0}, expected = {0};
  assert_int_equal(hs_match(NULL, &f.many, &f.few, NULL, &expected), HS_OK);
  const hs_status status = hs_match(f.context, &f.many, &f.few, NULL, &got);
  if (status == HS_OK) {
    assert_int_equal(got.count, expected.count);
    assert_memory_equal(got.pairs, expected.pairs, got.count * sizeof *got.pairs);
  }
  return status;
}

static hs_status call_neighbours(void) {
  SCOPED_MEMORY hs_neighbour *got = malloc(5 * f.many.count * sizeof *got);
  assert_non_null(got);
  const hs_status status = hs_find_k_nearest(f.context, &f.many, &f.few, NULL, 5, got);
  return status;
}

static hs_status call_within(void) {
  scoped_lists got = {0};
  const hs_status status = hs_find_within(f.context, &f.many, &f.few, NULL, 400.0, &got);
  assert_true(status == HS_OK || !got.neighbours);
  return status;
}

/* ---- selection of pairs: the vectors fill two blocks, and the features of four images are equal */

enum { VECTORS = 70, VECTOR_BYTES = 40, ALIKE = 4 };

static void fill_vectors(int8_t vectors[VECTORS * VECTOR_BYTES]) {
  uint32_t random = 5;
  for (int i = 0; i < VECTORS * VECTOR_BYTES; i++) vectors[i] = (int8_t)(feature_maker_random(&random) % 255 - 127);
}

static hs_status call_blend(void) {
  int8_t vectors[VECTORS * VECTOR_BYTES], expected[VECTORS * VECTOR_BYTES], got[VECTORS * VECTOR_BYTES];
  fill_vectors(vectors);
  assert_int_equal(hs_blend_similar(NULL, vectors, VECTORS, VECTOR_BYTES, 3, expected), HS_OK);
  const hs_status status = hs_blend_similar(f.context, vectors, VECTORS, VECTOR_BYTES, 3, got);
  if (status == HS_OK) assert_memory_equal(got, expected, sizeof got);
  return status;
}

static hs_status call_similar(void) {
  int8_t vectors[VECTORS * VECTOR_BYTES];
  scoped_pairs expected = {0}, got = {0};
  fill_vectors(vectors);
  assert_int_equal(hs_pair_similar(NULL, vectors, VECTORS, VECTOR_BYTES, 2, &expected), HS_OK);
  const hs_status status = hs_pair_similar(f.context, vectors, VECTORS, VECTOR_BYTES, 2, &got);
  assert_int_equal(got.count, status == HS_OK ? expected.count : 0);
  if (status == HS_OK) assert_memory_equal(got.pairs, expected.pairs, got.count * sizeof *got.pairs);
  return status;
}

/* All images are linked to the first one, so that their other pairs are matched too. */
static hs_status call_ranking(void) {
  const hs_image_pair candidates[ALIKE - 1] = {{0, 1}, {0, 2}, {0, 3}};
  hs_collection_image images[ALIKE] = {{0}};
  scoped_pairs got = {0};
  for (int i = 0; i < ALIKE; i++) images[i].features = &f.many;
  const hs_collection collection = {.images = images, .image_count = ALIKE};
  const hs_status status = hs_pair_matching(f.context, &collection, candidates, ALIKE - 1, ALIKE, &got);
  assert_int_equal(got.count, status == HS_OK ? ALIKE * (ALIKE - 1) / 2 : 0);
  return status;
}

static const struct {
  const char *name;
  hs_status (*call)(void);
  int least; /* fewest calls of the progress function */
} calls[] = {{"hs_extract", call_extract, 15},     {"hs_detect", call_detect, 15},
             {"hs_extract_view", call_view, 15},   {"hs_describe", call_describe, 10},
             {"hs_match", call_match, 2},          {"hs_find_k_nearest", call_neighbours, 2},
             {"hs_find_within", call_within, 2},   {"hs_blend_similar", call_blend, 2},
             {"hs_pair_similar", call_similar, 2}, {"hs_pair_matching", call_ranking, 7}};
enum { CALLS = sizeof calls / sizeof calls[0] };

TEST(progress_is_told) {
  for (size_t i = 0; i < CALLS; i++) {
    listen(0);
    assert_int_equal(calls[i].call(), HS_OK);
    if (f.told.wrong || f.told.calls < calls[i].least || f.told.last != f.told.total)
      fail_msg("%s: %d calls, %llu of %llu%s", calls[i].name, f.told.calls, (unsigned long long)f.told.last,
               (unsigned long long)f.told.total, f.told.wrong ? ", out of order" : "");
  }
}

/* Cancels at every call; afterwards the context gives the same results as before. */
TEST(every_call_can_end) {
  for (size_t i = 0; i < CALLS; i++) {
    hs_status status = HS_ERR_CANCELLED;
    for (int n = 1; status != HS_OK; n++) {
      listen(n);
      status = calls[i].call();
      assert_true(status == HS_OK || status == HS_ERR_CANCELLED);
      assert_false(f.told.wrong);
      if (status == HS_OK) break;
      assert_int_equal(f.told.calls, n); /* after it cancelled, the function is not called again */
      assert_string_equal(hs_last_error(f.context), "cancelled by the caller's progress function");
    }
    assert_true(f.told.calls >= calls[i].least);
    assert_int_equal(hs_set_progress(f.context, NULL, NULL), HS_OK);
    assert_int_equal(call_extract(), HS_OK);
    assert_int_equal(calls[i].call(), HS_OK);
  }
}

/* The lists are so long that matching calls the function between slices of the first list. */
TEST(slices_do_not_show) {
  enum { COLUMNS = (1 << 20) + 5, ROWS = 300 };
  hs_features rows = {0}, columns = {.count = COLUMNS, .descriptor_type = HS_DESCRIPTOR_U8};
  SCOPED_MEMORY hs_keypoint *places = calloc(COLUMNS, sizeof *places);
  SCOPED_MEMORY uint8_t *descriptors = malloc((size_t)COLUMNS * HS_DESCRIPTOR_LENGTH);
  assert_true(places && descriptors);
  uint32_t random = 9;
  for (size_t i = 0; i < (size_t)COLUMNS * HS_DESCRIPTOR_LENGTH; i++) {
    random = random * 1664525u + 1013904223u;
    descriptors[i] = (uint8_t)(random >> 30); /* there are few values, so that ties occur */
  }
  columns.keypoints = places;
  columns.descriptors = descriptors;
  feature_maker_fill(&rows, ROWS, FEATURES_U8, 3);
  for (size_t i = 0; i < (size_t)ROWS * HS_DESCRIPTOR_LENGTH; i++) ((uint8_t *)rows.descriptors)[i] &= 3;
  hs_match_options o;
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  o.ratio = 0.0;
  scoped_matches expected = {0}, got = {0};
  assert_int_equal(hs_set_progress(f.context, NULL, NULL), HS_OK);
  assert_int_equal(hs_match(f.context, &rows, &columns, &o, &expected), HS_OK);
  listen(0);
  assert_int_equal(hs_match(f.context, &rows, &columns, &o, &got), HS_OK);
  assert_int_equal(f.told.calls, 3); /* the calls are after 256 and 44 rows, and one at the beginning */
  assert_true(expected.count > 0);
  assert_int_equal(got.count, expected.count);
  assert_memory_equal(got.pairs, expected.pairs, got.count * sizeof *got.pairs);
  hs_features_free(&rows);
}

/* The octaves of this picture use fused passes. However the pass ends, the reported work adds up. */
TEST(large_octaves_add_up) {
  scoped_image large =
      extent_is_short() ? extraction_scene(1030, 1020, 5, NULL) : extraction_scene(1300, 1250, 5, NULL);
  for (int32_t threads = 1; threads <= 2; threads++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    o.threads = threads;
    scoped_context *c = extraction_context(&o);
    hs_status status = HS_ERR_CANCELLED;
    for (int n = 1; status != HS_OK; n += (extent_is_short() ? 2 * n : n / 2) + 1) {
      scoped_features got = {0};
      f.told = (teller){.end_at = n, .thread = pthread_self()};
      assert_int_equal(hs_set_progress(c, tell, &f.told), HS_OK);
      status = hs_extract(c, &large, NULL, &got);
      assert_false(f.told.wrong);
      assert_int_equal(status, f.told.calls < n ? HS_OK : HS_ERR_CANCELLED);
      assert_true(status != HS_OK || (n > 8 && f.told.last == f.told.total));
    }
  }
}

TEST(a_context_is_needed) { assert_int_equal(hs_set_progress(NULL, tell, NULL), HS_ERR_ARGUMENT); }
