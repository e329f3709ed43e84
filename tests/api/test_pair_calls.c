/*
 * Calls of runs over many pairs. Messages name wrong arguments and options. A run that is ended early, or whose context
 * is destroyed, leaks nothing. Waits end, and every allocation may fail.
 */
#include <pthread.h>
#include <time.h>

#include "tests/support/test.h"

#include "pipeline/base/features.h"
#include "tests/support/collection_maker.h"

typedef struct shared {
  test_collection made;
  hs_collection_image images[COLLECTION_IMAGES_MAX];
  hs_collection collection;
} shared;

/* A counting allocator with a lock, for several threads. */
typedef struct locked_allocator {
  pthread_mutex_t lock;
  counted_allocator counter;
  hs_allocator counting;
} locked_allocator;

static void *locked_alloc(size_t bytes, void *user) {
  locked_allocator *l = user;
  pthread_mutex_lock(&l->lock);
  void *memory = l->counting.alloc(bytes, l->counting.user);
  pthread_mutex_unlock(&l->lock);
  return memory;
}

static void locked_release(void *pointer, void *user) {
  locked_allocator *l = user;
  pthread_mutex_lock(&l->lock);
  l->counting.release(pointer, l->counting.user);
  pthread_mutex_unlock(&l->lock);
}

static int open_shared(void **state) {
  shared *s = calloc(1, sizeof *s);
  if (!s) return -1;
  collection_maker_fill(&s->made, 9, 80, HS_DESCRIPTOR_U8, 3);
  for (size_t i = 0; i < s->made.count; i++) s->images[i].features = &s->made.features[i];
  s->collection = (hs_collection){.images = s->images, .image_count = s->made.count};
  *state = s;
  return 0;
}

static int close_shared(void **state) {
  SCOPED_MEMORY shared *s = *state;
  collection_maker_free(&s->made);
  return 0;
}

static hs_context *make_context(const hs_allocator *allocator) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 2;
  o.device = HS_DEVICE_AUTO; /* uses a GPU if available */
  o.allocator = allocator;
  return extraction_context(&o);
}

/* Starts a run over the whole collection. options may be null. */
static hs_status start(const shared *s, hs_context *context, const hs_pairs_options *options, hs_pairs **run) {
  return hs_pairs_start(run, context, &s->collection, s->made.pairs, s->made.pair_count, options);
}

static void refuse(const shared *s, hs_context *c, const hs_collection *collection, const hs_image_pair *pairs,
                   const hs_pairs_options *options, hs_status status, const char *word) {
  hs_pairs *run = (hs_pairs *)(uintptr_t)1;
  (void)s;
  assert_int_equal(hs_pairs_start(&run, c, collection, pairs, 1, options), status);
  assert_null(run);
  if (!strstr(hs_last_error(c), word)) fail_msg("'%s' does not mention %s", hs_last_error(c), word);
}

#define SHARED_TEST(NAME) TEST_GIVEN(NAME, const shared, s, NULL, NULL)

SHARED_TEST(arguments) {
  scoped_context *c = make_context(NULL);
  const hs_image_pair good = {0, 1}, same = {1, 1}, outside = {0, 9};
  hs_pairs *run;
  const hs_pair_result *result;
  assert_int_equal(hs_pairs_start(NULL, c, &s->collection, &good, 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pairs_start(&run, NULL, &s->collection, &good, 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pairs_next(NULL, 0, &result), HS_ERR_ARGUMENT);
  assert_string_equal(hs_pairs_last_error(NULL), "");
  hs_pairs_end(NULL);
  refuse(s, c, NULL, &good, NULL, HS_ERR_ARGUMENT, "null");
  refuse(s, c, &s->collection, NULL, NULL, HS_ERR_ARGUMENT, "null");
  refuse(s, c, &s->collection, &same, NULL, HS_ERR_ARGUMENT, "itself");
  refuse(s, c, &s->collection, &outside, NULL, HS_ERR_ARGUMENT, "refers to images 0 and 9, but there are 9 images");
  hs_collection_image images[2] = {s->images[0], s->images[1]};
  hs_collection two = {.images = images, .image_count = 2};
  images[1].features = NULL;
  refuse(s, c, &two, &good, NULL, HS_ERR_ARGUMENT, "image 1 has no features");
  images[1] = s->images[1];
  images[1].camera.fx = -1.0;
  refuse(s, c, &two, &good, NULL, HS_ERR_ARGUMENT, "camera");
  images[1] = s->images[1];
  images[1].reserved[2] = 1;
  refuse(s, c, &two, &good, NULL, HS_ERR_ARGUMENT, "reserved");
}

SHARED_TEST(options) {
  hs_context *c = make_context(NULL);
  const hs_image_pair good = {0, 1};
  hs_pairs_options o;
  hs_match_options match;
  hs_verify_options verify;
  assert_int_equal(hs_pairs_options_init(NULL), HS_ERR_ARGUMENT);
#define REFUSE_OPTION(field, value, word)                                                                              \
  do {                                                                                                                 \
    (void)hs_match_options_init(&match);                                                                               \
    (void)hs_verify_options_init(&verify, HS_ESSENTIAL);                                                               \
    (void)hs_pairs_options_init(&o);                                                                                   \
    o.match = &match;                                                                                                  \
    o.verify = &verify;                                                                                                \
    field = value;                                                                                                     \
    refuse(s, c, &s->collection, &good, &o, HS_ERR_OPTION, word);                                                      \
  } while (0)
  REFUSE_OPTION(o.struct_size, 0, "struct_size");
  REFUSE_OPTION(o.guided, 2, "guided");
  REFUSE_OPTION(o.find_plane, -1, "find_plane");
  REFUSE_OPTION(o.plane_tolerance, -1.0, "plane_tolerance");
  REFUSE_OPTION(o.skip_next_distance, 2, "skip_next_distance");
  REFUSE_OPTION(match.ratio, 2.0, "ratio");
  REFUSE_OPTION(match.guide, HS_GUIDE_HOMOGRAPHY, "guide");
  REFUSE_OPTION(verify.tolerance, 0.0, "tolerance");
  REFUSE_OPTION(verify.struct_size, 0, "struct_size");
  (void)hs_pairs_options_init(&o);
  o.guided = 1;
  refuse(s, c, &s->collection, &good, &o, HS_ERR_OPTION, "without verify");
  hs_destroy(c);
}

SHARED_TEST(no_pairs) {
  scoped_context *c = make_context(NULL);
  const hs_pair_result *result;
  scoped_run *run;
  assert_int_equal(hs_pairs_start(&run, c, &s->collection, NULL, 0, NULL), HS_OK);
  assert_int_equal(hs_pairs_next(run, -1, &result), HS_OK);
  assert_null(result);
  hs_pairs_end(run);
  const hs_collection none = {0};
  assert_int_equal(hs_pairs_start(&run, c, &none, NULL, 0, NULL), HS_OK);
}

SHARED_TEST(descriptors_of_two_types) {
  SCOPED_BY(collection_maker_free) test_collection floats;
  collection_maker_fill(&floats, 2, 30, HS_DESCRIPTOR_F32, 3);
  const hs_collection_image images[3] = {s->images[0], {.features = &floats.features[0]}, s->images[3]};
  const hs_collection mixed = {.images = images, .image_count = 3};
  const hs_image_pair pairs[3] = {{0, 1}, {0, 2}, {2, 1}};
  const hs_status expected[3] = {HS_ERR_ARGUMENT, HS_OK, HS_ERR_ARGUMENT};
  scoped_context *c = make_context(NULL);
  const hs_pair_result *result;
  scoped_run *run;
  assert_int_equal(hs_pairs_start(&run, c, &mixed, pairs, 3, NULL), HS_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hs_pairs_next(run, -1, &result), HS_OK);
    assert_int_equal(result->status, expected[i]);
    assert_int_equal(strstr(result->message, "float") != NULL, expected[i] != HS_OK);
  }
}

/* The run is ended after some results, and the context is destroyed before or after the run. */
SHARED_TEST(ended_early) {
  for (int context_first = 0; context_first < 2; context_first++)
    for (size_t taken = 0; taken < 12; taken += 4) {
      locked_allocator l = {.lock = PTHREAD_MUTEX_INITIALIZER};
      l.counting = counted_allocator_make(&l.counter);
      const hs_allocator allocator = {locked_alloc, locked_release, &l};
      hs_context *c = make_context(&allocator);
      const hs_pair_result *result;
      hs_pairs *run, *other;
      assert_int_equal(start(s, c, NULL, &run), HS_OK);
      assert_int_equal(start(s, c, NULL, &other), HS_ERR_ARGUMENT); /* a context has one run at a time */
      for (size_t i = 0; i < taken; i++) assert_int_equal(hs_pairs_next(run, -1, &result), HS_OK);
      if (context_first) {
        hs_destroy(c);
        hs_status status = HS_OK;
        size_t more = 0;
        while (status == HS_OK && more <= s->made.pair_count) {
          status = hs_pairs_next(run, -1, &result);
          more += result != NULL;
          if (status == HS_OK && !result) break; /* all pairs were finished before */
        }
        if (status != HS_OK) {
          assert_int_equal(status, HS_ERR_ARGUMENT);
          assert_non_null(strstr(hs_pairs_last_error(run), "destroyed"));
        } else {
          assert_int_equal(taken + more, s->made.pair_count);
        }
      }
      hs_pairs_end(run);
      if (!context_first) {
        assert_int_equal(start(s, c, NULL, &run), HS_OK); /* now the next run may begin */
        hs_pairs_end(run);
        hs_destroy(c);
      }
      assert_int_equal(l.counter.alive, 0);
    }
}

/* A gate that holds the reader of features until it is released. */
typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t opened;
  int is_open;
} gate;

static hs_status read_nothing(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  gate *g = user;
  (void)image;
  (void)features;
  (void)message;
  (void)message_bytes;
  pthread_mutex_lock(&g->lock);
  while (!g->is_open) pthread_cond_wait(&g->opened, &g->lock);
  pthread_mutex_unlock(&g->lock);
  return HS_OK;
}

TEST(waiting_ends) {
  gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
  const hs_collection_image images[2] = {{0}, {0}};
  const hs_collection collection = {.images = images, .image_count = 2, .read = read_nothing, .user = &g};
  const hs_image_pair pair = {0, 1};
  scoped_context *c = make_context(NULL);
  const hs_pair_result *result;
  scoped_run *run;
  assert_int_equal(hs_pairs_start(&run, c, &collection, &pair, 1, NULL), HS_OK);
  for (int32_t wait_ms = 0; wait_ms < 20; wait_ms += 10) {
    assert_int_equal(hs_pairs_next(run, wait_ms, &result), HS_OK);
    assert_null(result);
  }
  pthread_mutex_lock(&g.lock);
  g.is_open = 1;
  pthread_cond_broadcast(&g.opened);
  pthread_mutex_unlock(&g.lock);
  assert_int_equal(hs_pairs_next(run, -1, &result), HS_OK);
  assert_non_null(result);
  assert_int_equal(result->match_count, 0);
}

/* Allocations fail one by one; of later ones, every third. The run does not begin, or ends, or the pair reports the
 * failure. Nothing leaks. */
SHARED_TEST(failing_allocations) {
  hs_verify_options verify;
  (void)hs_verify_options_init(&verify, HS_FUNDAMENTAL);
  verify.max_iterations = 60;
  const hs_pairs_options o = {.struct_size = sizeof o, .verify = &verify, .guided = 1, .find_plane = 1};
  size_t clean_runs = 0, made = 0;
  for (size_t n = 1; clean_runs == 0; n += n < 30 ? 1 : 3) {
    locked_allocator l = {.lock = PTHREAD_MUTEX_INITIALIZER};
    l.counting = counted_allocator_make(&l.counter);
    const hs_allocator allocator = {locked_alloc, locked_release, &l};
    hs_context *c = make_context(&allocator);
    l.counter.made = 0;
    l.counter.fail_at = n;
    const hs_pair_result *result;
    hs_pairs *run;
    hs_status status = start(s, c, &o, &run);
    size_t failed = 0;
    for (size_t i = 0; status == HS_OK && i < s->made.pair_count; i++) {
      status = hs_pairs_next(run, -1, &result);
      if (status != HS_OK) assert_string_not_equal(hs_pairs_last_error(run), "");
      if (status == HS_OK && result->status != HS_OK) failed++;
      if (status == HS_OK && result->status != HS_OK) assert_int_equal(result->status, HS_ERR_MEMORY);
    }
    if (status != HS_OK) assert_int_equal(status, HS_ERR_MEMORY);
    made = l.counter.made;
    if (status == HS_OK && failed == 0 && made < n) clean_runs++;
    hs_pairs_end(run);
    hs_destroy(c);
    assert_int_equal(l.counter.alive, 0);
  }
  assert_true(made > 40);
}

/* The choice of the pairs that match best, with the same failures. */
SHARED_TEST(failing_allocations_of_a_choice) {
  size_t made = SIZE_MAX;
  for (size_t n = 1; made >= n; n += n < 30 ? 1 : 7) {
    locked_allocator l = {.lock = PTHREAD_MUTEX_INITIALIZER};
    l.counting = counted_allocator_make(&l.counter);
    const hs_allocator allocator = {locked_alloc, locked_release, &l};
    hs_image_pairs pairs = {.allocator = &allocator};
    hs_context *c = make_context(&allocator);
    l.counter.made = 0;
    l.counter.fail_at = n;
    const hs_status status = hs_pair_matching(c, &s->collection, s->made.pairs, s->made.pair_count, 2, &pairs);
    made = l.counter.made;
    if (status != HS_OK) {
      assert_int_equal(status, HS_ERR_MEMORY);
      assert_string_not_equal(hs_last_error(c), "");
    }
    assert_true((status == HS_OK) == (pairs.count > 0));
    hs_image_pairs_free(&pairs);
    hs_destroy(c);
    assert_int_equal(l.counter.alive, 0);
  }
}

/* A run whose first pair's worker waits in an allocation until the run has failed. */
typedef struct held_up {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  const hs_features *features; /* [image]: its features */
  pthread_t caller, reader;
  bool has_reader, is_held, may_go;
} held_up;

static void *held_up_alloc(size_t bytes, void *user) {
  held_up *h = user;
  const pthread_t self = pthread_self();
  pthread_mutex_lock(&h->lock);
  if (h->has_reader && !pthread_equal(self, h->caller) && !pthread_equal(self, h->reader)) {
    h->is_held = true;
    pthread_cond_broadcast(&h->changed);
    while (!h->may_go) pthread_cond_wait(&h->changed, &h->lock);
  }
  pthread_mutex_unlock(&h->lock);
  return malloc(bytes);
}

static void held_up_release(void *pointer, void *user) {
  (void)user;
  free(pointer);
}

/* Reads features. The third image makes the device fail, once a worker has taken the first pair. */
static hs_status read_two(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  held_up *h = user;
  (void)message;
  (void)message_bytes;
  pthread_mutex_lock(&h->lock);
  h->reader = pthread_self();
  h->has_reader = true;
  while (image == 2 && !h->is_held) pthread_cond_wait(&h->changed, &h->lock);
  pthread_mutex_unlock(&h->lock);
  return image < 2 ? features_copy(features, &h->features[0], NULL) : HS_ERR_DEVICE;
}

/* Results that finish after hs_pairs_next has failed are not returned. */
SHARED_TEST(failing_alike) {
  held_up h = {.lock = PTHREAD_MUTEX_INITIALIZER,
               .changed = PTHREAD_COND_INITIALIZER,
               .features = s->made.features,
               .caller = pthread_self()};
  const hs_allocator allocator = {held_up_alloc, held_up_release, &h};
  hs_collection_image images[3];
  memset(images, 0, sizeof images);
  for (int i = 0; i < 3; i++) images[i].feature_count = s->made.features[0].count;
  const hs_collection collection = {.images = images, .image_count = 3, .read = read_two, .user = &h};
  const hs_image_pair pairs[2] = {{0, 1}, {0, 2}};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 2;
  o.allocator = &allocator;
  scoped_context *c = extraction_context(&o);
  const hs_pair_result *result;
  scoped_run *run;
  assert_int_equal(hs_pairs_start(&run, c, &collection, pairs, 2, NULL), HS_OK);
  assert_int_equal(hs_pairs_next(run, -1, &result), HS_ERR_DEVICE);
  pthread_mutex_lock(&h.lock);
  h.may_go = true;
  pthread_cond_broadcast(&h.changed);
  pthread_mutex_unlock(&h.lock);
  const struct timespec pause = {0, 1000000};
  for (int i = 0; i < 100; i++) {
    assert_int_equal(hs_pairs_next(run, 0, &result), HS_ERR_DEVICE);
    nanosleep(&pause, NULL);
  }
}

TESTS_BETWEEN(open_shared, close_shared)
