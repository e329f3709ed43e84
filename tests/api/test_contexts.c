/*
 * Contexts: several at once in several threads, and callers with another floating-point environment.
 */
#include <fenv.h>
#include <pthread.h>

#include "tests/support/test.h"

enum { CALLERS = 4, FRAMES = 3 };

/* Context, profile and picture of a thread. Its checks are reported to the main thread, where cmocka's assertions must
 * run. */
typedef struct caller {
  hs_options options;
  hs_image image;
  hs_features features[FRAMES];
  hs_status status;
} caller;

static void *caller_main(void *argument) {
  caller *me = argument;
  scoped_context *c = NULL;
  me->status = hs_create(&c, &me->options);
  for (int i = 0; i < FRAMES && me->status == HS_OK; i++)
    me->status = hs_extract(c, &me->image, NULL, &me->features[i]);
  return NULL;
}

TEST(test_contexts_at_once) {
  static caller callers[CALLERS];
  pthread_t threads[CALLERS];
  memset(callers, 0, sizeof callers);
  for (int i = 0; i < CALLERS; i++) {
    callers[i].options = extraction_options((hs_profile)i);
    callers[i].options.threads = 1 + i % 3;
    callers[i].image = extraction_scene(90 + 10 * i, 80, (uint32_t)i + 3, NULL);
  }
  for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &callers[i]), 0);
  for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < CALLERS; i++) {
    assert_int_equal(callers[i].status, HS_OK);
    hs_features alone = extraction_once(&callers[i].options, &callers[i].image);
    assert_true(alone.count > 10);
    for (int k = 0; k < FRAMES; k++) {
      extraction_check_equal(&alone, &callers[i].features[k], "beside other contexts");
      hs_features_free(&callers[i].features[k]);
    }
    hs_features_free(&alone);
    hs_image_free(&callers[i].image);
  }
}

/* A context that several threads use one after another. */
typedef struct borrowed {
  hs_context *c;
  const hs_image *image;
  hs_features f;
  hs_status status;
} borrowed;

static void *borrow(void *argument) {
  borrowed *job = argument;
  job->status = hs_extract(job->c, job->image, NULL, &job->f);
  return NULL;
}

TEST(test_context_handed_over) {
  const hs_options o = extraction_options(HS_PROFILE_LOWE);
  scoped_image image = extraction_scene(110, 80, 2, NULL);
  borrowed job = {extraction_context(&o), &image, {0}, HS_OK};
  hs_features expected = extraction_run(job.c, &image);
  for (int i = 0; i < 3; i++) {
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, borrow, &job), 0);
    pthread_join(t, NULL);
    assert_int_equal(job.status, HS_OK);
    extraction_check_equal(&expected, &job.f, "from another thread");
  }
  hs_features_free(&job.f);
  hs_features_free(&expected);
  hs_destroy(job.c);
}

/* Options are read during the call only. */
TEST(test_options_are_copied) {
  hs_options *o = malloc(sizeof *o);
  hs_expert_options *expert = malloc(sizeof *expert);
  char *variant = malloc(16);
  assert_true(o && expert && variant);
  *o = extraction_options(HS_PROFILE_LOWE);
  strcpy(variant, "blur=ref");
  *expert = extraction_expert(HS_PROFILE_LOWE, variant);
  o->expert = expert;
  scoped_context *c = extraction_context(o);
  memset(o, 0xee, sizeof *o);
  memset(expert, 0xee, sizeof *expert);
  memset(variant, 0xee, 16);
  free(o);
  free(expert);
  free(variant);
  scoped_image image = extraction_scene(100, 80, 2, NULL);
  scoped_features f = extraction_run(c, &image);
  assert_true(f.count > 10);
}

/* ------------------------------------------------------------------ the caller's floating-point environment */

typedef struct float_mode {
  const char *name;
  int rounding;
  bool flush; /* whether denormals are flushed to zero, if the machine can do so */
} float_mode;

static const float_mode modes[] = {{"upward", FE_UPWARD, false},
                                   {"downward", FE_DOWNWARD, false},
                                   {"toward zero", FE_TOWARDZERO, true},
                                   {"flush", FE_TONEAREST, true}};
enum { MODES = sizeof modes / sizeof modes[0] };

static void enter_mode(const float_mode *m) {
  fesetround(m->rounding);
#if defined(__x86_64__)
  if (m->flush) __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
#endif
}

static bool mode_stands(const float_mode *m) {
  bool stands = fegetround() == m->rounding;
#if defined(__x86_64__)
  stands = stands && ((__builtin_ia32_stmxcsr() & 0x8040u) == 0x8040u) == m->flush;
#endif
  return stands;
}

/* All calls that compute give the same bytes in the caller's floating-point mode, and leave that mode unchanged. */
static void check_mode(const float_mode *m, hs_profile profile, const hs_image *image, const hs_features *expected) {
  hs_options o = extraction_options(profile);
  const double turn[9] = {0.9, -0.3, 20.0, 0.3, 0.9, -5.0, 1e-4, 2e-4, 1.0};
  scoped_image plain_view = extraction_scene(60, 40, 1, turn), view;
  hs_context *c = NULL;
  scoped_features f = {0}, g = {0};
  uint64_t host = 0, plain_host = 0, device = 0;
  bool stands[6];
  hs_status st[6];
  fenv_t saved;
  st[5] = hs_workspace_query(&o, 333, 222, &plain_host, &device);
  fegetenv(&saved);
  enter_mode(m);
  st[0] = hs_create(&c, &o);
  stands[0] = mode_stands(m);
  st[1] = hs_extract(c, image, NULL, &f);
  stands[1] = mode_stands(m);
  st[2] = hs_describe(c, image, expected->keypoints, expected->count, &g, NULL);
  stands[2] = mode_stands(m);
  st[3] = hs_render_scene(60, 40, 1, turn, NULL, &view);
  stands[3] = mode_stands(m);
  st[4] = hs_workspace_query(&o, 333, 222, &host, &device);
  stands[4] = mode_stands(m);
  hs_destroy(c);
  stands[5] = mode_stands(m);
  fesetenv(&saved);
  for (int i = 0; i < 6; i++)
    if (st[i] != HS_OK || !stands[i])
      fail_msg("%s: call %d gave %s%s", m->name, i, hs_status_name(st[i]), stands[i] ? "" : " and changed the mode");
  extraction_check_equal(expected, &f, m->name);
  extraction_check_equal(expected, &g, m->name);
  assert_memory_equal(view.data, plain_view.data, 60 * 40);
  assert_true(host == plain_host);
}

TEST(test_float_environment) {
  scoped_image image = extraction_scene(130, 100, 6, NULL);
  for (int profile = 0; profile < EXTRACTION_PROFILES; profile++) {
    const hs_options o = extraction_options((hs_profile)profile);
    scoped_features expected = extraction_once(&o, &image);
    for (size_t i = 0; i < MODES; i++) check_mode(&modes[i], (hs_profile)profile, &image, &expected);
  }
}
