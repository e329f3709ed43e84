/*
 * The thread pool: every chunk runs once, on its worker, in a fixed floating-point environment, and without the
 * caller's signals.
 */
#include <fenv.h>
#include <signal.h>

#include "tests/support/test.h"

#include "cpu/schedule/threads.h"

enum { CHUNKS_MAX = 3000, WORKERS_MAX = 16 };

typedef struct tally {
  atomic_int done[CHUNKS_MAX];
  atomic_int inside[WORKERS_MAX]; /* number of chunks that a worker runs at the same time, which must not exceed one */
  atomic_int wrong;
  int32_t workers;
  pthread_t thread[WORKERS_MAX];
  atomic_int seen[WORKERS_MAX];
} tally;

static void tally_chunk(void *job, int32_t chunk, int32_t worker) {
  tally *t = job;
  if (worker < 0 || worker >= t->workers || chunk < 0 || chunk >= CHUNKS_MAX) {
    atomic_fetch_add(&t->wrong, 1);
    return;
  }
  if (atomic_fetch_add(&t->inside[worker], 1) != 0) atomic_fetch_add(&t->wrong, 1);
  /* a worker's number must always denote the same thread */
  if (atomic_exchange(&t->seen[worker], 1) == 0)
    t->thread[worker] = pthread_self();
  else if (!pthread_equal(t->thread[worker], pthread_self()))
    atomic_fetch_add(&t->wrong, 1);
  atomic_fetch_add(&t->done[chunk], 1);
  atomic_fetch_sub(&t->inside[worker], 1);
}

static stage_queue *start(int32_t threads) {
  stage_queue *q = malloc(queue_bytes(threads));
  assert_non_null(q);
  assert_true(queue_start(q, threads));
  assert_int_equal(queue_threads(q), threads);
  return q;
}

static void stop(stage_queue *q) {
  queue_stop(q);
  free(q);
}

static void check_tally(const tally *t, int32_t chunks, int32_t times) {
  assert_int_equal(atomic_load(&t->wrong), 0);
  for (int32_t i = 0; i < CHUNKS_MAX; i++) assert_int_equal(atomic_load(&t->done[i]), i < chunks ? times : 0);
}

TEST(test_every_chunk_once) {
  const int32_t counts[] = {0, 1, 2, 3, 7, 64, 1000, CHUNKS_MAX};
  static tally t;
  for (int32_t threads = 1; threads <= 8; threads++) {
    stage_queue *q = start(threads);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
      memset(&t, 0, sizeof t);
      t.workers = threads;
      queue_run(q, counts[i], tally_chunk, &t);
      check_tally(&t, counts[i], 1);
    }
    stop(q);
  }
}

TEST(test_no_queue) {
  static tally t;
  memset(&t, 0, sizeof t);
  t.workers = 1;
  assert_int_equal(queue_threads(NULL), 1);
  queue_run(NULL, 100, tally_chunk, &t);
  check_tally(&t, 100, 1);
}

/* Many small jobs follow each other: no worker takes chunks of a finished job or misses a job. */
TEST(test_many_jobs) {
  static tally t;
  memset(&t, 0, sizeof t);
  t.workers = 4;
  stage_queue *q = start(4);
  for (int32_t i = 0; i < 2000; i++) queue_run(q, 5, tally_chunk, &t);
  check_tally(&t, 5, 2000);
  stop(q);
}

TEST(test_start_and_stop) {
  for (int32_t i = 0; i < 200; i++) {
    static tally t;
    stage_queue *q = start(1 + i % WORKERS_MAX);
    if (i % 3) {
      memset(&t, 0, sizeof t);
      t.workers = 1 + i % WORKERS_MAX;
      queue_run(q, 20, tally_chunk, &t);
      check_tally(&t, 20, 1);
    }
    stop(q);
  }
}

typedef struct environment_job {
  atomic_int wrong, workers_seen;
} environment_job;

/* Fails unless rounding is to nearest, and denormals are neither flushed nor read as zero. */
static void check_environment(void *job, int32_t chunk, int32_t worker) {
  environment_job *e = job;
  (void)chunk;
  if (worker == 0) return; /* worker 0 is the caller's thread, which keeps the caller's environment */
  atomic_fetch_add(&e->workers_seen, 1);
  volatile float smallest = 1.17549435e-38f, half = 0.5f, denormal = 1.0e-42f, big = 1.0e30f;
  const volatile float flushed = smallest * half, product = denormal * big;
  volatile float one = 1.0f, tiny = 1.0e-9f;
  const volatile float up = one + tiny, down = one - tiny * 1.0e-3f;
  if (fegetround() != FE_TONEAREST || flushed == 0.0f || product == 0.0f || up != 1.0f || down != 1.0f)
    atomic_fetch_add(&e->wrong, 1);
}

/* Threads inherit the environment of the thread that starts them. */
TEST(test_environment_of_workers) {
  const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    environment_job e = {0};
    fenv_t saved;
    fegetenv(&saved);
    fesetround(modes[i]);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u); /* sets "flush to zero" and "denormals are zero" */
#endif
    stage_queue *q = malloc(queue_bytes(4));
    const bool started = q && queue_start(q, 4);
    /* repeats until some chunk has run on a worker, which may take a while on a busy machine */
    for (int32_t k = 0; started && (k < 200 || (atomic_load(&e.workers_seen) == 0 && k < 1000000)); k++)
      queue_run(q, 40, check_environment, &e);
    if (started) queue_stop(q);
    free(q);
    fesetenv(&saved);
    assert_true(started);
    assert_int_equal(atomic_load(&e.wrong), 0);
    assert_true(atomic_load(&e.workers_seen) > 0);
  }
}

typedef struct signal_job {
  atomic_int open, faults_blocked, workers_seen;
} signal_job;

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

static void check_signals(void *job, int32_t chunk, int32_t worker) {
  signal_job *s = job;
  sigset_t mask;
  (void)chunk;
  if (worker == 0) return; /* worker 0 is the caller's thread */
  const int read = pthread_sigmask(SIG_SETMASK, NULL, &mask);
  if (read != 0 || sigismember(&mask, SIGUSR1) != 1 || sigismember(&mask, SIGINT) != 1) atomic_fetch_add(&s->open, 1);
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
    if (sigismember(&mask, faults[i]) != 0) atomic_fetch_add(&s->faults_blocked, 1);
  atomic_fetch_add(&s->workers_seen, 1);
}

/* A worker runs handlers of the caller only for the worker's own faults. The caller's mask is unchanged. */
TEST(test_signals_of_workers) {
  const int kept_blocked = SIGUSR2, kept_open = SIGUSR1;
  sigset_t mine, saved, after;
  signal_job s = {0};
  sigemptyset(&mine);
  sigaddset(&mine, kept_blocked);
  assert_int_equal(pthread_sigmask(SIG_SETMASK, &mine, &saved), 0);
  stage_queue *q = start(4);
  assert_int_equal(pthread_sigmask(SIG_SETMASK, &saved, &after), 0);
  /* repeats until some chunk has run on a worker, which may take a while on a busy machine */
  for (int32_t k = 0; k < 200 || (atomic_load(&s.workers_seen) == 0 && k < 1000000); k++)
    queue_run(q, 40, check_signals, &s);
  stop(q);
  assert_int_equal(sigismember(&after, kept_blocked), 1);
  assert_int_equal(sigismember(&after, kept_open), 0);
  assert_true(atomic_load(&s.workers_seen) > 0);
  assert_int_equal(atomic_load(&s.open), 0);
  assert_int_equal(atomic_load(&s.faults_blocked), 0);
}
