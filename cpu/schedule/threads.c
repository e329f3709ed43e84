/* The thread pool: one mutex, two condition variables, an atomic chunk counter. */
#include "cpu/schedule/threads.h"

#include "cpu/schedule/float_environment.h"

size_t queue_bytes(int32_t threads) { return sizeof(stage_queue) + sizeof(pthread_t) * (size_t)threads; }

static void run_chunks(stage_queue *q, int32_t worker) {
  for (;;) {
    const int32_t chunk = atomic_fetch_add_explicit(&q->next, 1, memory_order_relaxed);
    if (chunk >= q->chunks) return;
    q->task(q->job, chunk, worker);
  }
}

/* Number of times that a thread looks for work before it sleeps: 20 to 50 us on x86. */
enum { SPINS_BEFORE_SLEEP = 1000 };

/* Waits until the generation differs from `seen`, and returns it. */
static uint64_t wait_for_work(stage_queue *q, uint64_t seen) {
  for (int32_t i = 0; i < q->spins_before_sleep; i++) {
    const uint64_t now = atomic_load_explicit(&q->generation, memory_order_acquire);
    if (now != seen) return now;
    spin_pause();
  }
  pthread_mutex_lock(&q->lock);
  q->sleepers++;
  while (atomic_load_explicit(&q->generation, memory_order_acquire) == seen) pthread_cond_wait(&q->work, &q->lock);
  q->sleepers--;
  pthread_mutex_unlock(&q->lock);
  return atomic_load_explicit(&q->generation, memory_order_acquire);
}

/* Bit of q->inside that is set while the job admits workers. */
#define QUEUE_OPEN 0x80000000u

/* Enters the job. False: the job has ended, or no job has begun. A worker that has entered may read the job, because
   the caller neither returns nor begins another job before all workers have left. */
static bool enter_job(stage_queue *q) {
  unsigned inside = atomic_load_explicit(&q->inside, memory_order_relaxed);
  while (inside & QUEUE_OPEN)
    if (atomic_compare_exchange_weak_explicit(&q->inside, &inside, inside + 1, memory_order_acquire,
                                              memory_order_relaxed))
      return true;
  return false;
}

/* Leaves the job. The last worker to leave an ended job wakes the caller, which may be asleep. */
static void leave_job(stage_queue *q) {
  if (atomic_fetch_sub_explicit(&q->inside, 1, memory_order_acq_rel) != 1) return;
  pthread_mutex_lock(&q->lock);
  pthread_cond_signal(&q->done);
  pthread_mutex_unlock(&q->lock);
}

/* The worker's number is its rank in the order of arrival. */
static void *worker_main(void *argument) {
  stage_queue *q = argument;
  float_environment saved;
  float_environment_enter(&saved);
  pthread_mutex_lock(&q->lock);
  const int32_t me = ++q->started;
  pthread_cond_broadcast(&q->done);
  pthread_mutex_unlock(&q->lock);
  uint64_t seen = 0;
  for (;;) {
    seen = wait_for_work(q, seen);
    if (atomic_load_explicit(&q->ending, memory_order_relaxed)) break;
    if (!enter_job(q)) continue;
    run_chunks(q, me);
    leave_job(q);
  }
  float_environment_leave(&saved);
  return NULL;
}

/* Starts the workers with signals blocked (a thread inherits the mask of its creator): a signal handler of the
 * caller must run on a thread of the caller. Returns the number of threads, including the caller's. */
static int32_t start_workers(stage_queue *q, int32_t threads) {
  os_signal_mask saved;
  int32_t count = 1;
  if (!os_signals_block(&saved)) return count;
  while (count < threads && os_thread_start(&q->worker[count], worker_main, q)) count++;
  os_signals_restore(&saved);
  return count;
}

bool queue_start(stage_queue *q, int32_t threads) {
  *q =
      (stage_queue){.threads = threads, .spins_before_sleep = threads <= cpu_usable_threads() ? SPINS_BEFORE_SLEEP : 0};
  atomic_init(&q->next, 0);
  atomic_init(&q->inside, 0);
  atomic_init(&q->ending, false);
  atomic_init(&q->generation, 0);
  if (pthread_mutex_init(&q->lock, NULL) != 0) return false;
  if (pthread_cond_init(&q->work, NULL) != 0) {
    pthread_mutex_destroy(&q->lock);
    return false;
  }
  if (pthread_cond_init(&q->done, NULL) != 0) {
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    return false;
  }
  q->threads = start_workers(q, threads);
  if (q->threads < threads) {
    queue_stop(q);
    return false;
  }
  /* Threads get their numbers as they arrive. This waits for all of them, so that every thread has a number before the
   * first job. */
  pthread_mutex_lock(&q->lock);
  while (q->started < threads - 1) pthread_cond_wait(&q->done, &q->lock);
  pthread_mutex_unlock(&q->lock);
  return true;
}

/* Raises the generation. A thread that sees the new generation also sees all earlier writes. */
static void announce(stage_queue *q) {
  pthread_mutex_lock(&q->lock);
  atomic_fetch_add_explicit(&q->generation, 1, memory_order_release);
  if (q->sleepers > 0) pthread_cond_broadcast(&q->work);
  pthread_mutex_unlock(&q->lock);
}

void queue_stop(stage_queue *q) {
  atomic_store_explicit(&q->ending, true, memory_order_relaxed);
  announce(q);
  for (int32_t i = 1; i < q->threads; i++) pthread_join(q->worker[i], NULL);
  pthread_cond_destroy(&q->work);
  pthread_cond_destroy(&q->done);
  pthread_mutex_destroy(&q->lock);
}

/* Ends the job and waits for the workers inside it. Workers that have not entered yet, because no core ran them, will
 * find it ended. */
static void end_job(stage_queue *q) {
  atomic_fetch_and_explicit(&q->inside, ~QUEUE_OPEN, memory_order_acq_rel);
  for (int32_t i = 0; i < q->spins_before_sleep; i++) {
    if (atomic_load_explicit(&q->inside, memory_order_acquire) == 0) return;
    spin_pause();
  }
  pthread_mutex_lock(&q->lock);
  while (atomic_load_explicit(&q->inside, memory_order_acquire) > 0) pthread_cond_wait(&q->done, &q->lock);
  pthread_mutex_unlock(&q->lock);
}

void queue_run(stage_queue *q, int32_t chunks, queue_task task, void *job) {
  if (!q || q->threads == 1 || chunks <= 1) {
    for (int32_t i = 0; i < chunks; i++) task(job, i, 0);
    return;
  }
  q->task = task;
  q->job = job;
  q->chunks = chunks;
  atomic_store_explicit(&q->next, 0, memory_order_relaxed);
  atomic_store_explicit(&q->inside, QUEUE_OPEN, memory_order_release);
  announce(q);
  run_chunks(q, 0);
  end_job(q);
}
