/*
 * Jobs that run concurrently, with any number of threads: every chunk runs once and after its dependencies; jobs whose
 * number of chunks is set while running; cancellation from outside; a caller that polls slowly.
 */
#include <sched.h>
#include <sys/resource.h>

#include "tests/support/test.h"

#include "cpu/schedule/work_graph.h"

enum {
  JOBS = 7,
  CHUNKS = 90,
  STRIPS = 3,
  BANDS = CHUNKS / STRIPS,
  OPEN_JOB = JOBS - 1,
  OPEN_CHUNKS = 35,
  THREADS_MAX = 8
};

/* Chunks write plain numbers, so a chunk that starts too early reads data that is not yet written, which is also a data
 * race. */
typedef struct tally {
  graph_job jobs[JOBS];
  graph_job *order[JOBS];
  work_graph graph;
  int32_t value[JOBS][CHUNKS];
  atomic_int runs[JOBS][CHUNKS];
  atomic_int wrong, polls;
  int32_t polls_until_end; /* number of polls after which the caller cancels; 0: runs to the end */
  pthread_t caller;
} tally;

/* A job, and the tally to which it belongs. */
typedef struct part {
  tally *t;
  int32_t job;
} part;

static part parts[JOBS];

/* Returns whether a chunk may run: band b of a job needs bands b - 1 to b + 1 of the job before, as a blur needs
 * rows. */
static bool bands_about_are_done(void *owner, graph_job *job, int32_t chunk) {
  const part *p = owner;
  const int32_t band = chunk / job->band_chunks, first = band > 0 ? band - 1 : 0;
  return graph_bands_are_done(&p->t->jobs[p->job - 1], first, band + 1 < BANDS ? band + 1 : BANDS - 1);
}

/* Sets the last job's number of chunks when the job before it is done. */
static bool is_known(void *owner, graph_job *job, int32_t chunk) {
  const part *p = owner;
  if (!graph_job_is_done(&p->t->jobs[p->job - 1])) return false;
  graph_job_close(job, OPEN_CHUNKS);
  return chunk < OPEN_CHUNKS;
}

static void add_up(void *state, int32_t chunk, int32_t worker) {
  const part *p = state;
  tally *t = p->t;
  const int32_t band = chunk / STRIPS;
  int32_t sum = worker < 0 || worker >= THREADS_MAX ? INT32_MIN / 2 : 1;
  if (p->job > 0)
    for (int32_t i = 0; i < CHUNKS; i++)
      if (p->job == OPEN_JOB || (i / STRIPS >= band - 1 && i / STRIPS <= band + 1))
        sum += t->value[p->job - 1][i] % 1000;
  t->value[p->job][chunk] = sum;
  atomic_fetch_add(&t->runs[p->job][chunk], 1);
}

static bool poll(void *owner) {
  tally *t = owner;
  if (!pthread_equal(t->caller, pthread_self())) atomic_fetch_add(&t->wrong, 1);
  return t->polls_until_end == 0 || atomic_fetch_add(&t->polls, 1) + 1 < t->polls_until_end;
}

/* Starts the jobs. reverse: in reverse order of preference, so that dependent chunks are requested first. */
static void begin(tally *t, bool reverse) {
  memset(t, 0, sizeof *t);
  t->caller = pthread_self();
  for (int32_t i = 0; i < JOBS; i++) {
    parts[i] = (part){t, i};
    graph_job_begin(&t->jobs[i], add_up, &parts[i], i == OPEN_JOB ? GRAPH_CHUNKS_OPEN : CHUNKS,
                    i == OPEN_JOB ? 0 : STRIPS);
    t->jobs[i].ready = i == 0 ? NULL : (i == OPEN_JOB ? is_known : bands_about_are_done);
    t->jobs[i].owner = &parts[i];
    t->order[reverse ? JOBS - 1 - i : i] = &t->jobs[i];
  }
  t->graph = (work_graph){.jobs = t->order, .count = JOBS, .poll = poll, .owner = t};
}

static stage_queue *start(int32_t threads) {
  stage_queue *q = malloc(queue_bytes(threads));
  assert_non_null(q);
  assert_true(queue_start(q, threads));
  return q;
}

TEST(test_chunks_wait_for_what_they_need) {
  static tally alone, t;
  begin(&alone, false);
  work_graph_run(NULL, &alone.graph);
  for (int32_t threads = 1; threads <= THREADS_MAX; threads++) {
    SCOPED_MEMORY stage_queue *q = start(threads);
    for (int round = 0; round < 20; round++) {
      begin(&t, round % 2);
      work_graph_run(q, &t.graph);
      assert_int_equal(atomic_load(&t.wrong), 0);
      for (int32_t i = 0; i < JOBS; i++)
        for (int32_t c = 0; c < CHUNKS; c++)
          assert_int_equal(atomic_load(&t.runs[i][c]), i < OPEN_JOB || c < OPEN_CHUNKS ? 1 : 0);
      assert_memory_equal(t.value, alone.value, sizeof t.value);
    }
    queue_stop(q);
  }
}

TEST(test_end_is_asked_for) {
  static tally t;
  for (int32_t threads = 1; threads <= 4; threads++) {
    SCOPED_MEMORY stage_queue *q = start(threads);
    for (int end = 1; end < 40; end += 3) {
      begin(&t, false);
      t.polls_until_end = end;
      work_graph_run(q, &t.graph);
      assert_true(atomic_load(&t.polls) <= end); /* the function is not polled again */
      if (threads == 1) {
        /* one chunk runs between two polls */
        int32_t runs = 0;
        for (int32_t i = 0; i < JOBS; i++)
          for (int32_t c = 0; c < CHUNKS; c++) runs += atomic_load(&t.runs[i][c]);
        assert_int_equal(runs, end - 1);
      }
      for (int32_t i = 0; i < JOBS; i++)
        for (int32_t c = 0; c < CHUNKS; c++) assert_true(atomic_load(&t.runs[i][c]) <= 1);
    }
    queue_stop(q);
  }
}

/* Returns how often threads of this process have slept; yielding does not count. */
static long sleeps(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_nvcsw;
}

static bool is_open(void *owner, graph_job *job, int32_t chunk) {
  atomic_bool *open = owner;
  (void)job;
  (void)chunk;
  return atomic_load(open);
}

static void nothing(void *state, int32_t chunk, int32_t worker) {
  (void)state;
  (void)chunk;
  (void)worker;
}

/* Returns when the other threads have slept, without sleeping itself. If a thread never sleeps, the test times out. */
static bool poll_slowly(void *owner) {
  atomic_bool *open = owner;
  enum { SLEEPS = 50 };
  const long before = sleeps();
  while (!atomic_load(open) && sleeps() - before < SLEEPS) sched_yield();
  atomic_store(open, true);
  return true;
}

/* If a caller's progress function is slow, waiting threads leave the cores to others. */
TEST(test_idle_threads_sleep) {
  atomic_bool open = false;
  graph_job job;
  graph_job *const jobs[] = {&job};
  graph_job_begin(&job, nothing, NULL, 1, 0);
  job.ready = is_open;
  job.owner = &open;
  work_graph graph = {.jobs = jobs, .count = 1, .poll = poll_slowly, .owner = &open};
  SCOPED_MEMORY stage_queue *q = start(3);
  work_graph_run(q, &graph);
  assert_true(graph_job_is_done(&job));
  queue_stop(q);
}
