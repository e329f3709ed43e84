/*
 * What the threads of a batch share; see batch_run.h.
 */
#include "pipeline/cli/batch/batch_run.h"

#include <time.h>

double batch_now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool batch_is_stopped(batch_run *batch) {
  pthread_mutex_lock(&batch->lock);
  const bool stopped = batch->stopped;
  pthread_mutex_unlock(&batch->lock);
  return stopped;
}

void *batch_pop(batch_thread *thread, bounded_queue *queue) {
  void *item = bounded_queue_try_pop(queue);
  if (item) return item;
  const double before = batch_now_s();
  item = bounded_queue_pop(queue);
  thread->waited_s += batch_now_s() - before;
  return item;
}
