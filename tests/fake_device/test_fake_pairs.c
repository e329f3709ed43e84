/*
 * A run over many pairs on several fake GPUs: the bytes do not depend on the devices, and a GPU that fails leaves its
 * pairs to the others.
 */
#include "tests/support/test.h"

#include "tests/support/collection_maker.h"
#include "tests/support/extraction.h"
#include "tests/support/fake_device/fake_device.h"

enum { GPUS = 3, CONTEXTS_MAX = 4, IMAGES = 16, FEATURES = 60, CPU = -1, FAULTS_MAX = 400 };

/* The contexts of a run: indices of GPUs, or CPU. */
typedef struct machine {
  int32_t count, gpus[CONTEXTS_MAX];
} machine;

/* The result of a run: the bytes of all pairs in one digest, the status, and what was computed where. */
typedef struct outcome {
  hs_status status;
  uint64_t digest;
  size_t pairs, of_context[CONTEXTS_MAX];
  int32_t lost;
} outcome;

static uint64_t digest_of(uint64_t digest, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) digest = (digest ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
  return digest;
}

static uint64_t add_result(uint64_t digest, const hs_pair_result *r) {
  digest = digest_of(digest, &r->images, sizeof r->images);
  digest = digest_of(digest, &r->match_count, sizeof r->match_count);
  if (r->match_count > 0) {
    digest = digest_of(digest, r->matches, r->match_count * sizeof *r->matches);
    digest = digest_of(digest, r->inliers, r->match_count);
  }
  return digest_of(digest, r->geometry, sizeof *r->geometry);
}

static void take_results(hs_pairs *run, const test_collection *c, outcome *o) {
  const hs_pair_result *r;
  while (o->pairs < c->pair_count && (o->status = hs_pairs_next(run, -1, &r)) == HS_OK) {
    assert_int_equal(r->index, o->pairs);
    o->status = r->status;
    if (r->status != HS_OK) return;
    assert_in_range(r->device, 0, CONTEXTS_MAX - 1);
    o->of_context[r->device]++;
    o->digest = add_result(o->digest, r);
    o->pairs++;
  }
}

/* Runs over all pairs. A context or the run may fail to open; the outcome then has the status. */
static outcome run_on(const machine *m, const test_collection *c, uint64_t max_memory) {
  hs_context *contexts[CONTEXTS_MAX] = {NULL};
  hs_collection_image images[IMAGES];
  hs_verify_options v;
  hs_pairs *run = NULL;
  outcome o = {.status = HS_OK, .digest = UINT64_C(1469598103934665603)};
  memset(images, 0, sizeof images);
  for (size_t i = 0; i < c->count; i++) images[i] = (hs_collection_image){.features = &c->features[i]};
  for (int32_t i = 0; i < m->count && o.status == HS_OK; i++) {
    hs_options options = extraction_options(HS_PROFILE_LOWE);
    options.device = m->gpus[i] == CPU ? HS_DEVICE_CPU : HS_DEVICE_CUDA;
    options.device_index = m->gpus[i] == CPU ? 0 : m->gpus[i];
    options.threads = 2;
    options.max_memory_bytes = max_memory;
    o.status = hs_create(&contexts[i], &options);
  }
  assert_int_equal(hs_verify_options_init(&v, HS_FUNDAMENTAL), HS_OK);
  v.max_iterations = 100;
  const hs_collection collection = {.images = images, .image_count = c->count};
  const hs_pairs_options options = {
      .struct_size = sizeof options, .verify = &v, .contexts = contexts + 1, .context_count = (size_t)m->count - 1};
  if (o.status == HS_OK) o.status = hs_pairs_start(&run, contexts[0], &collection, c->pairs, c->pair_count, &options);
  if (o.status == HS_OK) take_results(run, c, &o);
  o.lost = hs_pairs_lost_devices(run, NULL, NULL, 0);
  hs_pairs_end(run);
  for (int32_t i = 0; i < m->count; i++) hs_destroy(contexts[i]);
  return o;
}

static outcome expect(const test_collection *c) { return run_on(&(machine){1, {CPU}}, c, 0); }

TEST(any_devices_give_the_same_bytes) {
  static const machine machines[] = {{1, {0}},      {2, {0, 1}},         {3, {2, 0, 1}}, {2, {CPU, 1}},
                                     {2, {0, CPU}}, {4, {0, CPU, 1, 2}}, {3, {0, 1, 0}}};
  const uint64_t enough = UINT64_C(2) << 20; /* bytes; with less, pairs are in several phases, or do not fit */
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, IMAGES, FEATURES, HS_DESCRIPTOR_U8, 3);
  const outcome expected = expect(&c);
  assert_int_equal(expected.pairs, c.pair_count);
  for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
    for (uint64_t memory = 0; memory <= enough; memory = memory == 0 ? enough / 16 : memory + memory / 4) {
      fake_reset(GPUS);
      const outcome o = run_on(&machines[i], &c, memory);
      assert_int_equal(fake.alive, 0);
      if (memory > 0 && memory < enough && o.status == HS_ERR_LIMIT) continue; /* too little for any pair */
      assert_int_equal(o.status, HS_OK);
      assert_int_equal(o.pairs, c.pair_count);
      assert_int_equal(o.digest, expected.digest);
      assert_int_equal(o.lost, 0);
    }
}

/* Other programs use nearly all memory of a GPU: it is left out, instead of limiting the other. If the caller limits
   the memory to as little, or all images fit, it takes part. */
TEST(a_gpu_with_little_free_memory) {
  enum { LITTLE = 512 << 10 };
  static const machine two = {2, {0, 1}};
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, IMAGES, FEATURES, HS_DESCRIPTOR_U8, 3);
  const outcome expected = expect(&c);
  for (int32_t full = 0; full < 2; full++) {
    fake_reset(2);
    fake.gpus[full].others_bytes = fake.gpus[full].memory_bytes - LITTLE;
    outcome o = run_on(&two, &c, 0);
    assert_int_equal(o.status, HS_OK);
    assert_int_equal(o.digest, expected.digest);
    assert_int_equal(o.lost, 1);
    assert_int_equal(o.of_context[full], 0);
    o = run_on(&two, &c, LITTLE / 4);
    assert_int_equal(o.lost, 0);
    fake.gpus[full].others_bytes = fake.gpus[full].memory_bytes - ((size_t)16 << 20);
    o = run_on(&two, &c, 0);
    assert_int_equal(o.status, HS_OK);
    assert_int_equal(o.lost, 0);
    assert_int_equal(fake.alive, 0);
  }
}

/* Several contexts on one GPU share its memory: none of them takes what another counts on. With too little for one
   pair, pairs are refused. */
TEST(one_gpu_several_times) {
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, IMAGES, FEATURES, HS_DESCRIPTOR_U8, 3);
  const outcome expected = expect(&c);
  const size_t enough = 950 << 10;
  for (size_t memory = 600 << 10; memory <= 1400 << 10; memory += 50 << 10) {
    fake_reset(1);
    fake.gpus[0].memory_bytes = memory;
    const outcome o = run_on(&(machine){3, {0, 0, 0}}, &c, 0);
    assert_int_equal(o.lost, 0);
    assert_int_equal(fake.alive, 0);
    if (memory < enough && o.status == HS_ERR_LIMIT) continue;
    assert_int_equal(o.status, HS_OK);
    assert_int_equal(o.digest, expected.digest);
  }
}

/* Every call in turn fails for lack of memory, or loses its GPU: the other GPU takes all pairs, or the run does not
 * begin. */
static void fail_each_call(hs_descriptor_type type) {
  static const machine two = {2, {0, 1}};
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, IMAGES, FEATURES, type, 3);
  const outcome expected = expect(&c);
  size_t lost = 0, refused = 0;
  for (uint64_t at = 1; at <= FAULTS_MAX; at = at + 1 + at / 8)
    for (int losing = 0; losing < 2; losing++) {
      fake_reset(2);
      fake.fail_at = at;
      fake.lost_at = losing != 0;
      const outcome o = run_on(&two, &c, 0);
      if (o.status == HS_OK) {
        assert_int_equal(o.pairs, c.pair_count);
        assert_int_equal(o.digest, expected.digest);
      } else {
        assert_int_equal(o.pairs, 0);
      }
      assert_int_equal(fake.alive, 0);
      lost += o.lost == 1;
      refused += o.status != HS_OK;
    }
  assert_true(lost >= 4);
  assert_true(refused >= 4);
}

TEST(a_gpu_that_fails) { fail_each_call(HS_DESCRIPTOR_U8); }
TEST(a_gpu_that_fails_outside_batches) { fail_each_call(HS_DESCRIPTOR_F32); }

/* Loses the GPU whose next call comes, from then on, and with it every GPU. */
static outcome run_and_lose_all(const machine *m, const test_collection *c, uint64_t at) {
  fake_reset(2);
  fake.fail_at = at;
  fake.loses_all = true;
  const outcome o = run_on(m, c, 0);
  assert_int_equal(fake.alive, 0);
  return o;
}

/* Without a CPU in the list the run fails when both GPUs are lost. */
TEST(every_gpu_fails) {
  static const machine two = {2, {0, 1}};
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, IMAGES, FEATURES, HS_DESCRIPTOR_U8, 3);
  fake_reset(2);
  (void)run_on(&two, &c, 0);
  const uint64_t calls = fake.calls;
  size_t failed = 0;
  for (uint64_t at = calls / 3; at < calls; at += calls / 12)
    failed += run_and_lose_all(&two, &c, at).status == HS_ERR_DEVICE;
  assert_true(failed > 0);
}

/* A CPU in the list matches the remaining pairs. The run does not begin if the GPUs are lost before. A GPU that has
   no pairs left is not noticed to be lost, and which one that is differs between runs: both are noticed in some. */
TEST(every_gpu_fails_and_a_cpu_ends) {
  enum { CALLS_STEP = 5 };
  static const machine three = {3, {0, 1, CPU}};
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, IMAGES, FEATURES, HS_DESCRIPTOR_U8, 3);
  const outcome expected = expect(&c);
  size_t finished = 0, both = 0;
  for (int32_t tries = 0; tries < 20 && both == 0; tries++)
    for (uint64_t at = 1; at <= FAULTS_MAX; at += CALLS_STEP) {
      const outcome o = run_and_lose_all(&three, &c, at);
      if (o.status != HS_OK) continue;
      assert_int_equal(o.digest, expected.digest);
      finished += o.lost > 0;
      both += o.lost == 2;
    }
  assert_true(finished > 0);
  assert_true(both > 0);
}

TEST(contexts_that_are_refused) {
  SCOPED_BY(collection_maker_free) test_collection c;
  collection_maker_fill(&c, 4, FEATURES, HS_DESCRIPTOR_U8, 3);
  fake_reset(2);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  hs_context *const first = extraction_context(&o), *const second = extraction_context(&o);
  hs_collection_image images[4];
  memset(images, 0, sizeof images);
  for (size_t i = 0; i < c.count; i++) images[i].features = &c.features[i];
  const hs_collection collection = {.images = images, .image_count = c.count};
  hs_context *const wrong[][1] = {{NULL}, {first}};
  hs_pairs *run, *other;
  hs_pairs_options options = {.struct_size = sizeof options, .context_count = 1};
  for (size_t i = 0; i < 2; i++) {
    options.contexts = wrong[i];
    assert_int_equal(hs_pairs_start(&run, first, &collection, c.pairs, c.pair_count, &options), HS_ERR_ARGUMENT);
    assert_non_null(strstr(hs_last_error(first), "contexts[0]"));
  }
  options.contexts = NULL;
  assert_int_equal(hs_pairs_start(&run, first, &collection, c.pairs, c.pair_count, &options), HS_ERR_OPTION);
  options.contexts = &second;
  assert_int_equal(hs_pairs_start(&run, first, &collection, c.pairs, c.pair_count, &options), HS_OK);
  assert_int_equal(hs_pairs_start(&other, second, &collection, c.pairs, c.pair_count, NULL), HS_ERR_ARGUMENT);
  hs_destroy(second); /* ends the run, whose first context is free again */
  hs_pairs_end(run);
  assert_int_equal(hs_pairs_start(&run, first, &collection, c.pairs, c.pair_count, NULL), HS_OK);
  hs_pairs_end(run);
  hs_destroy(first);
  assert_int_equal(fake.alive, 0);
}
