/*
 * Memory of a run over many pairs stays below max_memory_bytes, also if every pair has as many matches as features and
 * nobody takes the results.
 */
#include <pthread.h>
#include <time.h>

#include "tests/support/test.h"

#include "pipeline/base/features.h"
#include "tests/support/collection_maker.h"

enum { IMAGES = 36, FEATURES = 200, HEADER_BYTES = 64, SLOW_MS = 100 };

/* Counts allocated bytes; each block begins with its size. */
typedef struct measuring_allocator {
  pthread_mutex_t lock;
  size_t bytes, most;
} measuring_allocator;

static void *measuring_alloc(size_t bytes, void *user) {
  measuring_allocator *m = user;
  unsigned char *memory = malloc(HEADER_BYTES + bytes);
  if (!memory) return NULL;
  memcpy(memory, &bytes, sizeof bytes);
  pthread_mutex_lock(&m->lock);
  m->bytes += bytes;
  if (m->bytes > m->most) m->most = m->bytes;
  pthread_mutex_unlock(&m->lock);
  return memory + HEADER_BYTES;
}

static void measuring_release(void *pointer, void *user) {
  measuring_allocator *m = user;
  if (!pointer) return;
  unsigned char *memory = (unsigned char *)pointer - HEADER_BYTES;
  size_t bytes;
  memcpy(&bytes, memory, sizeof bytes);
  pthread_mutex_lock(&m->lock);
  m->bytes -= bytes;
  pthread_mutex_unlock(&m->lock);
  free(memory);
}

typedef struct source {
  const hs_features *features; /* features of every image */
  const hs_allocator *allocator;
} source;

static hs_status read_image(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  const source *s = user;
  (void)image;
  (void)message;
  (void)message_bytes;
  return features_copy(features, s->features, s->allocator);
}

/* Returns the peak memory of a run. *fits: whether every pair was matched. */
static size_t most_of_run(const test_collection *c, int32_t threads, uint64_t max_memory, bool *fits) {
  measuring_allocator m = {.lock = PTHREAD_MUTEX_INITIALIZER};
  const hs_allocator allocator = {measuring_alloc, measuring_release, &m};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_AUTO; /* uses a GPU if available */
  o.threads = threads;
  o.max_memory_bytes = max_memory;
  o.allocator = &allocator;
  scoped_context *context = extraction_context(&o);
  hs_collection_image images[IMAGES];
  memset(images, 0, sizeof images);
  for (size_t i = 0; i < IMAGES; i++) images[i].feature_count = c->features[0].count;
  source s = {&c->features[0], &allocator};
  const hs_collection collection = {.images = images, .image_count = IMAGES, .read = read_image, .user = &s};
  hs_verify_options v;
  assert_int_equal(hs_verify_options_init(&v, HS_FUNDAMENTAL), HS_OK);
  v.max_iterations = 100;
  const hs_pairs_options options = {.struct_size = sizeof options, .verify = &v};
  const size_t before = m.bytes;
  const hs_pair_result *result;
  hs_pairs *run;
  m.most = m.bytes;
  assert_int_equal(hs_pairs_start(&run, context, &collection, c->pairs, c->pair_count, &options), HS_OK);
  const struct timespec pause = {0, SLOW_MS * 1000000L};
  nanosleep(&pause, NULL);
  *fits = true;
  for (size_t i = 0; i < c->pair_count; i++) {
    assert_int_equal(hs_pairs_next(run, -1, &result), HS_OK);
    *fits = *fits && result->status == HS_OK;
    if (result->status == HS_OK) assert_in_range(result->match_count, FEATURES / 2, FEATURES);
  }
  hs_pairs_end(run);
  assert_int_equal(m.bytes, before);
  return m.most - before;
}

TEST(stays_below_the_limit) {
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, IMAGES, FEATURES, HS_DESCRIPTOR_U8, 6);
  size_t fitting = 0;
  for (int32_t threads = 1; threads <= 4; threads += 3)
    for (uint64_t limit = UINT64_C(200) << 10; limit <= UINT64_C(3200) << 10; limit *= 2) {
      bool fits;
      const size_t most = most_of_run(&c, threads, limit, &fits);
      if (fits && most > limit)
        fail_msg("%zu bytes of %llu, %d threads", most, (unsigned long long)limit, (int)threads);
      fitting += fits;
    }
  assert_in_range(fitting, 4, 10);
}
