/* The thread pool: one mutex, two conditions, an atomic chunk counter. */
#include "cpu/threads.h"

#include "cpu/float_environment.h"

size_t queue_bytes(int32_t threads) { return sizeof(stage_queue) + sizeof(pthread_t) * (size_t)threads; }

static void work_off(stage_queue *q, int32_t worker) {
  for (;;) {
    const int32_t chunk = atomic_fetch_add_explicit(&q->next, 1, memory_order_relaxed);
    if (chunk >= q->chunks) return;
    q->task(q->job, chunk, worker);
  }
}

/* What a worker needs to know, handed over in the queue itself: its number is its place in started order. */
static void *worker_main(void *argument) {
  stage_queue *q = argument;
  float_environment saved;
  float_environment_enter(&saved);
  pthread_mutex_lock(&q->lock);
  const int32_t me = ++q->started;
  pthread_cond_broadcast(&q->done);
  uint64_t seen = 0;
  while (!q->ending) {
    if (q->generation == seen) {
      pthread_cond_wait(&q->work, &q->lock);
      continue;
    }
    seen = q->generation;
    pthread_mutex_unlock(&q->lock);
    work_off(q, me);
    pthread_mutex_lock(&q->lock);
    if (--q->busy == 0) pthread_cond_signal(&q->done);
  }
  pthread_mutex_unlock(&q->lock);
  float_environment_leave(&saved);
  return NULL;
}

bool queue_start(stage_queue *q, int32_t threads) {
  *q = (stage_queue){.threads = threads};
  atomic_init(&q->next, 0);
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
  for (int32_t i = 1; i < threads; i++) {
    if (pthread_create(&q->worker[i], NULL, worker_main, q) == 0) continue;
    q->threads = i;
    queue_stop(q);
    return false;
  }
  /* Numbers are taken as the threads arrive; wait so that a job never meets a thread that has none yet. */
  pthread_mutex_lock(&q->lock);
  while (q->started < threads - 1) pthread_cond_wait(&q->done, &q->lock);
  pthread_mutex_unlock(&q->lock);
  return true;
}

void queue_stop(stage_queue *q) {
  pthread_mutex_lock(&q->lock);
  q->ending = true;
  pthread_cond_broadcast(&q->work);
  pthread_mutex_unlock(&q->lock);
  for (int32_t i = 1; i < q->threads; i++) pthread_join(q->worker[i], NULL);
  pthread_cond_destroy(&q->work);
  pthread_cond_destroy(&q->done);
  pthread_mutex_destroy(&q->lock);
}

void queue_run(stage_queue *q, int32_t chunks, queue_task task, void *job) {
  if (!q || q->threads == 1 || chunks <= 1) {
    for (int32_t i = 0; i < chunks; i++) task(job, i, 0);
    return;
  }
  pthread_mutex_lock(&q->lock);
  q->task = task;
  q->job = job;
  q->chunks = chunks;
  atomic_store_explicit(&q->next, 0, memory_order_relaxed);
  q->busy = q->threads - 1;
  q->generation++;
  pthread_cond_broadcast(&q->work);
  pthread_mutex_unlock(&q->lock);
  work_off(q, 0);
  pthread_mutex_lock(&q->lock);
  while (q->busy > 0) pthread_cond_wait(&q->done, &q->lock);
  pthread_mutex_unlock(&q->lock);
}
