/*
 * Images described by one vector. Images of one scene are found. The bytes do not depend on instruction set, number of
 * threads or order of blocks. Invalid input is refused.
 */

#include "tests/support/test.h"

#include <stdatomic.h>

#include "pipeline/base/features.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/include/hartsift_expert.h"
#include "pipeline/matching/retrieval/vocabulary.h"

enum { SCENES = 6, VIEWS = 4, IMAGES = SCENES * VIEWS, FEATURES = 300, CENTRES = 16, COMPONENTS = 24 };
enum { VECTOR_BYTES = CENTRES * COMPONENTS };

typedef struct collection {
  hs_features images[IMAGES];
  int8_t vectors[IMAGES * VECTOR_BYTES];
} collection;

/* Views of a scene share half of their descriptors, up to noise. The other descriptors are random. */
static int set_up(void **state) {
  collection *c = calloc(1, sizeof *c);
  if (!c) return -1;
  for (int i = 0; i < IMAGES; i++) {
    scoped_features scene = {0};
    uint32_t random = (uint32_t)i + 77;
    feature_maker_fill(&c->images[i], FEATURES, FEATURES_U8, 100 + (uint32_t)i);
    feature_maker_fill(&scene, FEATURES, FEATURES_U8, 1 + (uint32_t)(i / VIEWS));
    uint8_t *mine = c->images[i].descriptors;
    const uint8_t *shared = scene.descriptors;
    for (int k = 0; k < FEATURES / 2 * SIFT_LENGTH; k++) {
      const int value = shared[k] + (int)(feature_maker_random(&random) % 11) - 5;
      mine[k] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
  }
  *state = c;
  return 0;
}

static int tear_down(void **state) {
  SCOPED_MEMORY collection *c = *state;
  for (int i = 0; i < IMAGES; i++) hs_features_free(&c->images[i]);
  return 0;
}

static hs_retrieval_options small_options(void) {
  hs_retrieval_options o;
  assert_int_equal(hs_retrieval_options_init(&o), HS_OK);
  o.centres = CENTRES;
  o.components = COMPONENTS;
  return o;
}

/* Describes the first `count` images with a model trained on all of them. */
static hs_status describe(collection *c, int count, const hs_retrieval_options *options, hs_context *context) {
  hs_retrieval *r = NULL;
  hs_status status = hs_retrieval_create(&r, options);
  for (int i = 0; i < IMAGES && status == HS_OK; i++) status = hs_retrieval_sample(r, &c->images[i], 200);
  if (status == HS_OK) status = hs_retrieval_train(r, context);
  for (int i = 0; i < count && status == HS_OK; i++)
    status = hs_retrieval_describe(r, context, &c->images[i], c->vectors + i * VECTOR_BYTES);
  hs_retrieval_destroy(r);
  return status;
}

static hs_status describe_all(collection *c, const hs_retrieval_options *options, hs_context *context) {
  return describe(c, IMAGES, options, context);
}

static hs_retrieval *trained(collection *c, const hs_retrieval_options *options) {
  hs_retrieval *r;
  assert_int_equal(hs_retrieval_create(&r, options), HS_OK);
  for (int i = 0; i < IMAGES; i++) assert_int_equal(hs_retrieval_sample(r, &c->images[i], 200), HS_OK);
  assert_int_equal(hs_retrieval_train(r, NULL), HS_OK);
  return r;
}

/* Digest of all vectors, which must be equal on all machines. */
static const uint32_t digest = 0x73df96a8;

#define SHARED_TEST(NAME) TEST_GIVEN(NAME, collection, c, NULL, NULL)

SHARED_TEST(views_of_a_scene_are_found) {
  const hs_retrieval_options o = small_options();
  scoped_pairs pairs = {0};
  assert_int_equal(describe_all(c, &o, NULL), HS_OK);
  assert_int_equal(crc_castagnoli(0, c->vectors, sizeof c->vectors), digest);
  assert_int_equal(hs_pair_similar(NULL, c->vectors, IMAGES, VECTOR_BYTES, VIEWS - 1, &pairs), HS_OK);
  assert_int_equal(pairs.count, SCENES * VIEWS * (VIEWS - 1) / 2);
  for (size_t i = 0; i < pairs.count; i++)
    assert_int_equal(pairs.pairs[i].first / VIEWS, pairs.pairs[i].second / VIEWS);
}

/* The first context assigns descriptors to centres with the plain variants, the second with the machine's best.
 * tests/agree/test_match_simd.c compares all variants. */
TEST(bytes_are_the_same_everywhere) {
  static const char *const variants[] = {"match=ref", NULL};
  collection *c = *state;
  const hs_retrieval_options options = small_options();
  for (int v = 0; v < 2; v++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, variants[v]);
    o.expert = &expert;
    o.threads = 1 + 2 * v;
    scoped_context *context = extraction_context(&o);
    memset(c->vectors, 1, sizeof c->vectors);
    assert_int_equal(describe_all(c, &options, context), HS_OK);
    assert_int_equal(crc_castagnoli(0, c->vectors, sizeof c->vectors), digest);
  }
}

/* The GPU assigns descriptors to centres; no other step runs on it. */
SHARED_TEST(bytes_are_the_same_from_a_gpu) {
  const hs_retrieval_options options = small_options();
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  hs_context *context = NULL;
  o.device = HS_DEVICE_CUDA;
  if (hs_create(&context, &o) != HS_OK) skip_because(NEEDS_GPU);
  memset(c->vectors, 1, sizeof c->vectors);
  assert_int_equal(describe_all(c, &options, context), HS_OK);
  hs_destroy(context);
  assert_int_equal(crc_castagnoli(0, c->vectors, sizeof c->vectors), digest);
}

/* Reads images of a collection; two of them cannot be read if `fails` is set. */
typedef struct reader {
  const collection *c;
  bool fails;
  int readings[IMAGES];
  atomic_int inside;
} reader;

static hs_status read_alone(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  reader *r = user;
  const hs_features *from = &r->c->images[image];
  assert_int_equal(atomic_fetch_add(&r->inside, 1), 0); /* one thread at a time */
  r->readings[image]++;
  hs_status status = HS_OK;
  if (r->fails && (image == 9 || image == 13)) {
    snprintf(message, message_bytes, "the disk of %u is lost", image);
    status = HS_ERR_IO;
  }
  if (status == HS_OK) status = features_reserve(features, from->count, HS_DESCRIPTOR_U8, NULL);
  if (status == HS_OK && from->count > 0) memcpy(features->descriptors, from->descriptors, from->count * SIFT_LENGTH);
  if (status == HS_OK) features->count = from->count;
  atomic_fetch_sub(&r->inside, 1);
  return status;
}

/* Threads, lists in memory or read, and limits of memory do not change the vectors. One image has no features. */
SHARED_TEST(all_images_at_once) {
  static const int32_t threads[] = {1, 2, 3, 8};
  const hs_retrieval_options options = small_options();
  const size_t one = IMAGES / 2, features_of_one = c->images[one].count;
  int8_t vectors[sizeof c->vectors];
  hs_retrieval *r = trained(c, &options);
  c->images[one].count = 0;
  for (int i = 0; i < IMAGES; i++)
    assert_int_equal(hs_retrieval_describe(r, NULL, &c->images[i], c->vectors + i * VECTOR_BYTES), HS_OK);
  for (size_t way = 0; way < 4 * sizeof threads / sizeof threads[0]; way++) {
    reader read = {.c = c};
    hs_collection_image images[IMAGES] = {0};
    hs_collection all = {.images = images, .image_count = IMAGES, .read = read_alone, .user = &read};
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    o.threads = threads[way / 4];
    o.max_memory_bytes = way % 4 < 2 ? 0 : 1 << 20; /* enough for one worker */
    scoped_context *context = extraction_context(&o);
    for (int i = 0; i < IMAGES; i++) {
      images[i].feature_count = FEATURES;
      if (way % 2 == 0) images[i].features = &c->images[i];
    }
    memset(vectors, 1, sizeof vectors);
    assert_int_equal(hs_retrieval_describe_all(r, context, &all, vectors), HS_OK);
    assert_memory_equal(vectors, c->vectors, sizeof vectors);
    for (int i = 0; i < IMAGES; i++) assert_int_equal(read.readings[i], way % 2);
    memset(vectors, 1, sizeof vectors);
    if (way < 2) assert_int_equal(hs_retrieval_describe_all(r, NULL, &all, vectors), HS_OK);
    if (way < 2) assert_memory_equal(vectors, c->vectors, sizeof vectors);
  }
  c->images[one].count = features_of_one;
  hs_retrieval_destroy(r);
}

static int32_t cancel(void *user, uint64_t done, uint64_t total) {
  (void)user;
  assert_int_equal(total, IMAGES);
  return done > 0;
}

/* The first image that fails is reported, whichever thread is faster. */
SHARED_TEST(an_image_of_all_fails) {
  const hs_retrieval_options options = small_options();
  hs_retrieval *r = trained(c, &options), *untrained;
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 4;
  scoped_context *context = extraction_context(&o);
  reader read = {.c = c, .fails = true};
  hs_collection_image images[IMAGES] = {0};
  hs_collection all = {.images = images, .image_count = IMAGES, .read = read_alone, .user = &read};
  assert_int_equal(hs_retrieval_describe_all(r, context, &all, c->vectors), HS_ERR_IO);
  assert_string_equal(hs_last_error(context), "image 9: the disk of 9 is lost");
  assert_int_equal(hs_retrieval_describe_all(r, NULL, &all, c->vectors), HS_ERR_IO);
  scoped_features floats = {0};
  feature_maker_fill(&floats, 5, FEATURES_UNIT_F32, 1);
  images[3].features = &floats;
  assert_int_equal(hs_retrieval_describe_all(r, context, &all, c->vectors), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_last_error(context), "image 3: "));
  images[3].features = NULL;
  read.fails = false;
  assert_int_equal(hs_set_progress(context, cancel, NULL), HS_OK);
  assert_int_equal(hs_retrieval_describe_all(r, context, &all, c->vectors), HS_ERR_CANCELLED);
  assert_int_equal(hs_set_progress(context, NULL, NULL), HS_OK);
  all.read = NULL;
  assert_int_equal(hs_retrieval_describe_all(r, context, &all, c->vectors), HS_ERR_ARGUMENT);
  assert_non_null(strstr(hs_last_error(context), "image 0 has no features"));
  assert_int_equal(hs_retrieval_describe_all(r, context, &all, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_describe_all(r, context, NULL, c->vectors), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_describe_all(NULL, context, &all, c->vectors), HS_ERR_ARGUMENT);
  all = (hs_collection){0};
  assert_int_equal(hs_retrieval_describe_all(r, context, &all, NULL), HS_OK);
  assert_int_equal(hs_retrieval_create(&untrained, &options), HS_OK);
  assert_int_equal(hs_retrieval_describe_all(untrained, context, &all, NULL), HS_ERR_ARGUMENT);
  hs_retrieval_destroy(untrained);
  hs_retrieval_destroy(r);
}

/* There are more descriptors than a block holds. */
SHARED_TEST(blocks_do_not_matter) {
  enum { REPEATS = 80 };
  const hs_retrieval_options o = small_options();
  const size_t count = (size_t)FEATURES * REPEATS;
  SCOPED_MEMORY uint8_t *descriptors = malloc(count * SIFT_LENGTH);
  int8_t once[VECTOR_BYTES], often[VECTOR_BYTES];
  hs_retrieval *r;
  assert_non_null(descriptors);
  assert_true(count > ASSIGN_BLOCK);
  for (size_t i = 0; i < REPEATS; i++)
    memcpy(descriptors + i * FEATURES * SIFT_LENGTH, c->images[0].descriptors, (size_t)FEATURES * SIFT_LENGTH);
  const hs_features many = vocabulary_list(descriptors, count);
  assert_int_equal(hs_retrieval_create(&r, &o), HS_OK);
  for (int i = 0; i < IMAGES; i++) assert_int_equal(hs_retrieval_sample(r, &c->images[i], FEATURES), HS_OK);
  assert_int_equal(hs_retrieval_train(r, NULL), HS_OK);
  assert_int_equal(hs_retrieval_describe(r, NULL, &c->images[0], once), HS_OK);
  assert_int_equal(hs_retrieval_describe(r, NULL, &many, often), HS_OK);
  /* the sums are 80 times as large, but the rounded vectors agree */
  for (int i = 0; i < VECTOR_BYTES; i++) assert_in_range(often[i] - once[i] + 1, 0, 2);
  hs_retrieval_destroy(r);
}

SHARED_TEST(little_to_learn_from) {
  const hs_retrieval_options o = small_options();
  const hs_features empty = {0}, three = vocabulary_list(c->images[0].descriptors, 3);
  const int8_t nothing[VECTOR_BYTES] = {0};
  int8_t vector[VECTOR_BYTES];
  hs_retrieval *r;
  /* There are fewer descriptors than centres. No descriptor may become its own centre, because then there would be no
   * residuals. */
  assert_int_equal(hs_retrieval_create(&r, &o), HS_OK);
  assert_int_equal(hs_retrieval_train(r, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_sample(r, &empty, 100), HS_OK);
  assert_int_equal(hs_retrieval_train(r, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_describe(r, NULL, &three, vector), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_sample(r, &three, 100), HS_OK);
  assert_int_equal(hs_retrieval_train(r, NULL), HS_OK);
  assert_int_equal(hs_retrieval_length(r), VECTOR_BYTES);
  assert_int_equal(hs_retrieval_describe(r, NULL, &three, vector), HS_OK);
  assert_memory_not_equal(vector, nothing, sizeof vector);
  assert_int_equal(hs_retrieval_describe(r, NULL, &c->images[1], vector), HS_OK);
  memset(vector, 9, sizeof vector);
  assert_int_equal(hs_retrieval_describe(r, NULL, &empty, vector), HS_OK);
  for (int i = 0; i < VECTOR_BYTES; i++) assert_int_equal(vector[i], 0);
  hs_retrieval_destroy(r);
}

SHARED_TEST(wrong_arguments) {
  hs_retrieval_options o = small_options();
  scoped_features floats = {0}, bare = {0};
  int8_t vector[VECTOR_BYTES];
  hs_retrieval *r;
  const int32_t wrong[][3] = {{0, 1, 1}, {4097, 1, 1}, {1, 0, 1}, {1, 129, 1}, {1024, 128, 1}, {1, 1, 0}, {1, 1, 1001}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    o.centres = wrong[i][0];
    o.components = wrong[i][1];
    o.rounds = wrong[i][2];
    assert_int_equal(hs_retrieval_create(&r, &o), HS_ERR_OPTION);
    assert_null(r);
  }
  assert_int_equal(hs_retrieval_options_init(NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_create(NULL, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_create(&r, NULL), HS_OK);
  assert_int_equal(hs_retrieval_length(r), 256 * 32);
  feature_maker_fill(&floats, 5, FEATURES_UNIT_F32, 1);
  feature_maker_fill(&bare, 5, FEATURES_NONE, 1);
  assert_int_equal(hs_retrieval_sample(r, &floats, 5), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_sample(r, &bare, 5), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_sample(r, NULL, 5), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_sample(NULL, &bare, 5), HS_ERR_ARGUMENT);
  hs_retrieval_destroy(r);
  o = small_options();
  assert_int_equal(hs_retrieval_create(&r, &o), HS_OK);
  assert_int_equal(hs_retrieval_sample(r, &c->images[0], 100), HS_OK);
  assert_int_equal(hs_retrieval_train(r, NULL), HS_OK);
  assert_int_equal(hs_retrieval_train(r, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_sample(r, &c->images[0], 100), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_describe(r, NULL, &floats, vector), HS_ERR_ARGUMENT);
  assert_int_equal(hs_retrieval_describe(r, NULL, &c->images[0], NULL), HS_ERR_ARGUMENT);
  hs_retrieval_destroy(r);
  hs_retrieval_destroy(NULL);
  assert_int_equal(hs_retrieval_length(NULL), 0);
}

SHARED_TEST(every_allocation_may_fail) {
  counted_allocator counter;
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_retrieval_options o = small_options();
  hs_status status = HS_ERR_MEMORY;
  o.rounds = 1;
  o.allocator = &allocator;
  for (size_t fail_at = 1; status != HS_OK; fail_at++) {
    counter = (counted_allocator){.fail_at = fail_at, .fill = 0xa5};
    assert_true(fail_at < 200);
    status = describe(c, 1, &o, NULL);
    assert_true(status == HS_OK || status == HS_ERR_MEMORY);
    assert_int_equal(counter.alive, 0);
  }
  assert_true(counter.made > 10);
}

/* max_memory_bytes bounds the memory for assignment, so descriptors are assigned in blocks. */
SHARED_TEST(little_memory_is_enough) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  const hs_retrieval_options options = small_options();
  o.threads = 1;
  o.max_memory_bytes = 1 << 20;
  scoped_context *context = extraction_context(&o);
  assert_int_equal(describe_all(c, &options, context), HS_OK);
  hs_destroy(context);
  o.max_memory_bytes = 1000;
  assert_int_equal(hs_create(&context, &o), HS_OK);
  assert_int_equal(describe_all(c, &options, context), HS_ERR_LIMIT);
}

SHARED_TEST(other_vectors_are_rounded) {
  const float values[] = {0.5f, -0.25f, 0.0f, 0.002f, 0.0f, 0.0f, 0.0f, 0.0f, -3e38f, 2e38f, 1e-45f, 0.0f};
  const int8_t expected[] = {127, -64, 0, 1, 0, 0, 0, 0, -127, 85, 0, 0};
  float wrong[] = {1.0f, NAN, 1.0f, INFINITY};
  int8_t vectors[12];
  (void)c;
  assert_int_equal(hs_round_vectors(values, 3, 4, vectors), HS_OK);
  assert_memory_equal(vectors, expected, sizeof expected);
  assert_int_equal(hs_round_vectors(wrong, 1, 2, vectors), HS_ERR_ARGUMENT);
  assert_int_equal(hs_round_vectors(wrong + 2, 1, 2, vectors), HS_ERR_ARGUMENT);
  assert_int_equal(hs_round_vectors(values, 1, 0, vectors), HS_ERR_ARGUMENT);
  assert_int_equal(hs_round_vectors(values, 1, 65537, vectors), HS_ERR_ARGUMENT);
  assert_int_equal(hs_round_vectors(NULL, 1, 4, vectors), HS_ERR_ARGUMENT);
  assert_int_equal(hs_round_vectors(NULL, 0, 4, NULL), HS_OK);
}

/* ------------------------------------------------------------------ pairs that match best */

enum { KEPT = HS_SHORTLIST_FEATURES, LARGE = KEPT + 150, FEW = 6 };

/* Images of more features than are compared. Scales ascend or descend, so the compared features are the last ones or
   the first ones of a list; image i shares `16 * (k + 1)` of them with image i + k. */
typedef struct large_images {
  hs_features features[FEW];
  hs_collection_image images[FEW];
  hs_collection collection;
} large_images;

static bool is_ascending(int image) { return image % 2 == 0; }

static void make_large_images(large_images *l) {
  *l = (large_images){.collection = {.images = l->images, .image_count = FEW}};
  for (int i = 0; i < FEW; i++) {
    feature_maker_fill(&l->features[i], LARGE, FEATURES_U8, 500 + (uint32_t)i);
    for (int k = 0; k < LARGE; k++)
      l->features[i].keypoints[k].sigma = 2.0f + 0.01f * (float)(is_ascending(i) ? k : LARGE - k);
    l->images[i].features = &l->features[i];
  }
  for (int i = 0; i < FEW; i++)
    for (int k = 1; i + k < FEW; k++) { /* the n-th largest features of both are equal */
      uint8_t *one = l->features[i].descriptors, *other = l->features[i + k].descriptors;
      for (int n = 0; n < 16 * (k + 1); n++) {
        const int at = n + 80 * i, from = is_ascending(i) ? LARGE - 1 - at : at,
                  to = is_ascending(i + k) ? LARGE - 1 - at : at;
        memcpy(other + to * SIFT_LENGTH, one + from * SIFT_LENGTH, SIFT_LENGTH);
      }
    }
}

static void free_large_images(large_images *l) {
  for (int i = 0; i < FEW; i++) hs_features_free(&l->features[i]);
}

/* hs_collection.read */
static hs_status read_copy(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes) {
  const large_images *l = user;
  if (image == FEW - 1) {
    snprintf(message, message_bytes, "the picture is lost");
    return HS_ERR_IO;
  }
  return features_copy(features, &l->features[image], NULL);
}

/* Number of matches of the largest features, by hs_match. */
static size_t count_matches(const large_images *l, int one, int other) {
  hs_features parts[2];
  scoped_matches matches = {0};
  for (int k = 0; k < 2; k++) {
    const int image = k == 0 ? one : other;
    uint8_t *descriptors = l->features[image].descriptors;
    parts[k] = vocabulary_list(descriptors + (is_ascending(image) ? LARGE - KEPT : 0) * SIFT_LENGTH, KEPT);
  }
  assert_int_equal(hs_match(NULL, &parts[0], &parts[1], NULL, &matches), HS_OK);
  return matches.count;
}

static size_t list_all_pairs(hs_image_pair pairs[FEW * FEW]) {
  size_t count = 0;
  for (uint32_t i = 0; i < FEW; i++)
    for (uint32_t k = i + 1; k < FEW; k++) pairs[count++] = (hs_image_pair){i, k};
  return count;
}

/* Each image's partner with most matches, from counts of single matches. */
TEST(the_pairs_that_match_best) {
  large_images l;
  hs_image_pair all[FEW * FEW];
  const size_t count = list_all_pairs(all);
  bool expected[FEW][FEW] = {{false}};
  scoped_pairs pairs = {0}, read = {0};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  (void)state;
  make_large_images(&l);
  for (int i = 0; i < FEW; i++) {
    int best = -1;
    for (int k = 0; k < FEW; k++)
      if (k != i && (best < 0 || count_matches(&l, i, k) > count_matches(&l, i, best))) best = k;
    expected[i < best ? i : best][i < best ? best : i] = true;
  }
  assert_true(count_matches(&l, 0, 5) > count_matches(&l, 0, 1) && count_matches(&l, 0, 1) > 5);
  for (int32_t threads = 1; threads <= 3; threads += 2) {
    o.threads = threads;
    scoped_context *context = extraction_context(&o);
    assert_int_equal(hs_pair_matching(context, &l.collection, all, count, 1, &pairs), HS_OK);
    size_t at = 0;
    for (uint32_t i = 0; i < FEW; i++)
      for (uint32_t k = i + 1; k < FEW; k++)
        if (expected[i][k]) {
          assert_true(at < pairs.count && pairs.pairs[at].first == i && pairs.pairs[at].second == k);
          at++;
        }
    assert_int_equal(at, pairs.count);
    /* images that the caller reads; the last one fails, and is in no pair at first */
    hs_collection_image sizes[FEW] = {{0}};
    for (int i = 0; i < FEW; i++) sizes[i].feature_count = LARGE;
    const hs_collection reading = {.images = sizes, .image_count = FEW, .read = read_copy, .user = &l};
    assert_int_equal(hs_pair_matching(context, &l.collection, all, 4, 2, &pairs), HS_OK); /* 0 with 1 to 4 */
    assert_int_equal(hs_pair_matching(context, &reading, all, 4, 2, &read), HS_OK);
    assert_int_equal(read.count, pairs.count);
    assert_memory_equal(read.pairs, pairs.pairs, pairs.count * sizeof *pairs.pairs);
    assert_int_equal(hs_pair_matching(context, &reading, all, count, 2, &read), HS_ERR_IO);
    assert_non_null(strstr(hs_last_error(context), "the picture is lost"));
    assert_int_equal(read.count, 0);
    sizes[1].feature_count = LARGE + 1;
    assert_int_equal(hs_pair_matching(context, &reading, all, 4, 1, &read), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_last_error(context), "the collection states"));
  }
  free_large_images(&l);
}

/* Image 1 matches 0 and 2 well, so they are compared too, although they are no candidates; 3 has no such partner. */
TEST(partners_of_partners_are_candidates) {
  const hs_image_pair candidates[] = {{1, 2}, {0, 1}};
  large_images l;
  scoped_pairs pairs = {0};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_context *context = extraction_context(&o);
  (void)state;
  make_large_images(&l);
  assert_true(count_matches(&l, 0, 1) >= 10 && count_matches(&l, 1, 2) >= 10);
  assert_int_equal(hs_pair_matching(context, &l.collection, candidates, 2, 2, &pairs), HS_OK);
  assert_int_equal(pairs.count, 3);
  assert_true(pairs.pairs[1].first == 0 && pairs.pairs[1].second == 2);
  assert_int_equal(hs_pair_matching(context, &l.collection, candidates, 1, 2, &pairs), HS_OK);
  assert_int_equal(pairs.count, 1);
  free_large_images(&l);
}

/* Image 0 matches all other images, those with higher numbers more often. Only pairs with image 0 are candidates, but
 * the 64 images with most matches are compared with each other too. */
TEST(one_image_that_matches_all) {
  enum { ALL = 71, COMPARED = 64, SHARED = 20 };
  static hs_features features[ALL];
  hs_collection_image images[ALL] = {{0}};
  hs_image_pair candidates[ALL - 1];
  scoped_pairs pairs = {0};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_context *context = extraction_context(&o);
  (void)state;
  for (int i = 0; i < ALL; i++) {
    feature_maker_fill(&features[i], SHARED + ALL, FEATURES_U8, 900 + (uint32_t)i);
    images[i].features = &features[i];
    if (i == 0) continue;
    memcpy(features[i].descriptors, features[0].descriptors, (size_t)(SHARED + i) * SIFT_LENGTH);
    candidates[i - 1] = (hs_image_pair){0, (uint32_t)i};
  }
  const hs_collection one = {.images = images, .image_count = ALL};
  assert_int_equal(hs_pair_matching(context, &one, candidates, ALL - 1, ALL, &pairs), HS_OK);
  assert_int_equal(pairs.count, ALL - 1 + COMPARED * (COMPARED - 1) / 2);
  for (size_t i = ALL - 1; i < pairs.count; i++) assert_true(pairs.pairs[i].first >= ALL - COMPARED);
  for (int i = 0; i < ALL; i++) hs_features_free(&features[i]);
}

TEST(candidates_that_are_none) {
  const hs_image_pair outside = {0, FEW}, twin = {1, 1}, good = {0, 1};
  large_images l;
  scoped_pairs pairs = {0};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_context *context = extraction_context(&o);
  (void)state;
  make_large_images(&l);
  assert_int_equal(hs_shortlist_length(5), 60);
  assert_int_equal(hs_shortlist_length(30), 90);
  assert_true(hs_shortlist_length(UINT32_MAX - 1) == UINT32_MAX);
  assert_int_equal(hs_pair_matching(context, &l.collection, &outside, 1, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_matching(context, &l.collection, &twin, 1, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_matching(NULL, &l.collection, &good, 1, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_matching(context, NULL, &good, 1, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_matching(context, &l.collection, NULL, 1, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_matching(context, &l.collection, &good, 1, 0, &pairs), HS_OK);
  assert_int_equal(pairs.count, 0);
  assert_int_equal(hs_pair_matching(context, &l.collection, &good, 1, UINT32_MAX, &pairs), HS_OK);
  assert_int_equal(pairs.count, 1);
  hs_features without = l.features[0];
  without.descriptors = NULL; /* as in a list of positions, whose type is left 0 */
  l.images[0].features = &without;
  assert_int_equal(hs_pair_matching(context, &l.collection, &good, 1, 1, &pairs), HS_OK);
  l.images[2].features = NULL;
  assert_int_equal(hs_pair_matching(context, &l.collection, &good, 1, 1, &pairs), HS_ERR_ARGUMENT);
  free_large_images(&l);
}

TEST(eigenvalues_of_a_known_matrix) {
  enum { N = SIFT_LENGTH };
  double *m = malloc(N * N * sizeof *m), *vectors = malloc(N * N * sizeof *vectors), values[N];
  (void)state;
  assert_non_null(m);
  assert_non_null(vectors);
  /* The matrix of second differences has the eigenvalues 2 - 2 cos(k pi / (N + 1)). */
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++) m[i * N + k] = i == k ? 2.0 : abs(i - k) == 1 ? -1.0 : 0.0;
  symmetric_eigen(m, values, vectors);
  for (int i = 0; i < N; i++) {
    assert_true(fabs(values[i] - (2.0 - 2.0 * cos((N - i) * 3.14159265358979323846 / (N + 1)))) < 1e-12);
    for (int k = 0; k < N; k++) { /* checks M v = value v */
      const double *v = vectors + i * N;
      const double image = 2.0 * v[k] - (k > 0 ? v[k - 1] : 0.0) - (k + 1 < N ? v[k + 1] : 0.0);
      assert_true(fabs(image - values[i] * v[k]) < 1e-11);
    }
  }
  free(m);
  free(vectors);
}

TESTS_BETWEEN(set_up, tear_down)
