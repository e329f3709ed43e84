/*
 * Results have the same bytes over runs, contexts, threads, with other pictures in between, and with any initial
 * capacity of the lists.
 */
#include <time.h>

#include "tests/support/test.h"

#include "cpu/schedule/stage_jobs.h"
#include "pipeline/context/context.h"
#include "tests/support/extent.h"

static hs_image scene, others[3];
static hs_features expected[EXTRACTION_PROFILES];

BEFORE_TESTS() {
  scene = extraction_scene(107, 85, 11, NULL);
  others[0] = extraction_scene(40, 90, 2, NULL);
  others[1] = extraction_scene(120, 95, 3, NULL);
  others[2] = extraction_scene(9, 9, 4, NULL);
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    const hs_options o = extraction_options((hs_profile)p);
    expected[p] = extraction_once(&o, &scene);
    assert_true(expected[p].count >= 50);
  }
}

TEST(test_after_other_pictures) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    scoped_context *c = extraction_context_of((hs_profile)p);
    scoped_features f = {0};
    for (int i = 0; i < 4; i++) {
      assert_int_equal(hs_extract(c, &scene, NULL, &f), HS_OK);
      extraction_check_equal(&expected[p], &f, "after other pictures");
      if (i < 3) assert_int_equal(hs_extract(c, &others[i], NULL, &f), HS_OK);
      if (i == 1) assert_int_equal(hs_detect(c, &scene, NULL, &f), HS_OK);
      if (i == 2) assert_int_equal(hs_describe(c, &scene, expected[p].keypoints, 5, &f, NULL), HS_OK);
    }
  }
}

TEST(test_thread_counts) {
  const int32_t counts[] = {1, 3, 8, 0};
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
      hs_options o = extraction_options((hs_profile)p);
      o.threads = counts[i];
      scoped_features f = extraction_once(&o, &scene);
      extraction_check_equal(&expected[p], &f, "with other threads");
    }
}

/* Octaves are so large that one or two threads make and search each octave in one fused pass. More threads share its
 * bands. */
TEST(test_large_octaves) {
  /* the short form has the smallest picture of three passes */
  scoped_image large =
      extent_is_short() ? extraction_scene(1030, 1020, 5, NULL) : extraction_scene(1300, 1250, 5, NULL);
  for (int way = 0; way < 4; way++) {
    if (extent_is_short() && way != 2) continue; /* way 3 only with small octaves, in the next test */
    hs_options o = extraction_options(way == 1 ? HS_PROFILE_OPENCV : HS_PROFILE_LOWE);
    o.dsp = way == 2; /* pooled descriptors read level 0 too */
    if (o.dsp) o.dsp_smallest = 0.5f;
    o.affine = way == 3;
    o.max_features = way == 3 ? 500 : extent_is_short() ? 600 : 0;
    uint64_t candidates[2];
    hs_features by_threads[2];
    for (int i = 0; i < 2; i++) {
      o.threads = i > 0 ? 3 : 1 + way % 2;
      scoped_context *c = extraction_context(&o);
      by_threads[i] = extraction_run(c, &large);
      assert_int_equal(c->plan.passes, i == 0 ? 3 : 0);
      assert_int_equal(c->plan.request.graph_bytes != NULL, i > 0);
      candidates[i] = c->statistics.candidates;
    }
    assert_true(by_threads[0].count >= 500 && candidates[0] == candidates[1]);
    extraction_check_equal(&by_threads[0], &by_threads[1], "large octaves");
    for (int i = 0; i < 2; i++) hs_features_free(&by_threads[i]);
  }
}

TEST(test_shapes_by_threads) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.affine = 1;
  o.threads = 1;
  scoped_features alone = extraction_once(&o, &scene);
  assert_true(alone.count >= 20);
  for (o.threads = 3; o.threads <= 5; o.threads += 2) {
    scoped_features f = extraction_once(&o, &scene);
    extraction_check_equal(&alone, &f, "shapes");
  }
}

/* A frame whose large levels get their last chunk late. The test checks the buffers that reuse the memory of these
 * levels. */
typedef struct late_levels {
  const stage_jobs *jobs; /* jobs that run chunks without delay */
  queue_task blur, halve;
  atomic_int unfinished; /* number of large levels that are not complete */
  atomic_int too_early;  /* number of rows halved before their level was complete */
} late_levels;

static late_levels late;

enum { LARGE_ROWS = 200 };

static void blur_late(void *job, int32_t chunk, int32_t worker) {
  const blur_job *b = job;
  const struct timespec pause = {.tv_nsec = 20000000};
  const bool is_last = b->out.height > LARGE_ROWS && chunk == b->run.chunks - 1;
  if (is_last) (void)nanosleep(&pause, NULL);
  late.blur(job, chunk, worker);
  if (is_last) atomic_fetch_sub(&late.unfinished, 1);
}

static void halve_and_look(void *job, int32_t chunk, int32_t worker) {
  if (atomic_load(&late.unfinished) > 0) atomic_fetch_add(&late.too_early, 1);
  late.halve(job, chunk, worker);
}

static void begin_blur(blur_job *job, const blur_args *args, int32_t threads) {
  late.jobs->blur(job, args, threads);
  late.blur = job->run.task;
  job->run.task = blur_late;
  if (args->out.height > LARGE_ROWS) atomic_fetch_add(&late.unfinished, 1);
}

static void begin_halve(halve_job *job, const halve_args *args) {
  late.jobs->halve(job, args);
  late.halve = job->run.task;
  job->run.task = halve_and_look;
}

/* The last band of the first octave, 16 rows of 272, lies within the border, where detection reads nothing. The band
 * must still be made before other octaves reuse the last level's memory. */
TEST(test_border_of_a_whole_band) {
  scoped_image tall = extraction_scene(200, 136, 5, NULL);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.border = 40;
  o.threads = 1;
  scoped_features alone = extraction_once(&o, &tall);
  assert_true(alone.count > 0);
  o.threads = 4;
  scoped_context *c = extraction_context(&o);
  late.jobs = c->ops.jobs[STAGE_BLUR];
  if (!late.jobs) skip_because("without vectors stage follows stage");
  stage_jobs jobs = *late.jobs;
  jobs.blur = begin_blur;
  jobs.halve = begin_halve;
  c->ops.jobs[STAGE_BLUR] = c->ops.jobs[STAGE_HALVE] = &jobs;
  scoped_features f = extraction_run(c, &tall);
  extraction_check_equal(&alone, &f, "with a late band in the border");
  assert_int_equal(atomic_load(&late.unfinished), 0);
  assert_int_equal(atomic_load(&late.too_early), 0);
}

/* Lists are too small at first, one or both, with and without selection. */
static void check_capacities(hs_profile profile, int32_t max_features, const hs_features *wanted) {
  static const uint32_t rooms[][2] = {{1, 1}, {100000, 1}, {33, 33}};
  for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
    hs_options o = extraction_options(profile);
    o.max_features = max_features;
    scoped_context *c = extraction_context(&o);
    c->keypoint_capacity = rooms[i][0];
    c->feature_capacity = rooms[i][1];
    scoped_features f = extraction_run(c, &scene);
    hs_statistics s = statistics_of(c);
    assert_true(s.regrown_frames >= 1 && s.frames == 1);
    extraction_check_equal(wanted, &f, "with little room");
  }
}

TEST(test_capacities) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++) {
    hs_options o = extraction_options((hs_profile)p);
    check_capacities((hs_profile)p, o.max_features, &expected[p]);
    o.max_features = 45;
    scoped_features selected = extraction_once(&o, &scene);
    /* Selection of whole levels may exceed the limit. */
    assert_true(o.selection == HS_SELECT_LEVELS ? selected.count >= 45 : selected.count == 45);
    check_capacities((hs_profile)p, 45, &selected);
  }
}

/* In turn, each stage is run by the reference and the others by the chosen variant. */
TEST(test_mixed_variants) {
  static const char *const mixtures[] = {
      "base=ref",     "blur=ref",
      "halve=ref",    "detect=ref",
      "orient=ref",   "select=ref",
      "describe=ref", "base=ref,blur=ref,halve=ref,detect=ref,orient=ref,select=ref,describe=ref"};
  for (size_t i = 0; i < sizeof mixtures / sizeof mixtures[0]; i++) {
    const hs_profile profile = (hs_profile)(i % EXTRACTION_PROFILES);
    const hs_expert_options expert = extraction_expert(profile, mixtures[i]);
    hs_options o = extraction_options(profile);
    o.expert = &expert;
    scoped_features f = extraction_once(&o, &scene);
    extraction_check_equal(&expected[i % EXTRACTION_PROFILES], &f, mixtures[i]);
  }
}

TEST(test_defined_order) {
  for (int p = 0; p < EXTRACTION_PROFILES; p++)
    for (size_t i = 0; i < expected[p].count; i++) {
      const hs_keypoint *k = &expected[p].keypoints[i], *before = k - 1;
      assert_true(k->orientation >= 0.0f && k->orientation < 6.2831855f);
      assert_true(k->level >= 1 && k->level <= 3 && k->sigma > 0.0f && k->response >= 0.0f);
      if (i == 0) continue;
      assert_true(before->octave <= k->octave);
      if (before->octave == k->octave) assert_true(before->level <= k->level);
      if (before->x == k->x && before->y == k->y && before->sigma == k->sigma)
        assert_true(before->orientation < k->orientation);
    }
}
