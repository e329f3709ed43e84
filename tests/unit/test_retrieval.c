/*
 * Images described by one vector. Images of one scene are found. The bytes do not depend on instruction set, number of
 * threads or order of blocks. Invalid input is refused.
 */

#include "tests/support/test.h"

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
