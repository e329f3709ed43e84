/*
 * A pool of threads that runs numbered chunks; the caller is one of them.
 *
 * Threads are started once, when the pool is made. Between jobs they spin for some microseconds before they sleep, because
 * a frame's stages follow each other closely and waking a thread takes as long as a small octave. Each thread takes the
 * next chunk when it is free. Which thread runs a chunk is not defined, so a chunk's output must not depend on it; results
 * are the same for every number of threads. Once all chunks are done, the job does not wait for workers that never ran.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_THREADS_H
#define HARTSIFT_CPU_SCHEDULE_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#include "stages/ops.h"

/* One chunk of a job; worker: 0..threads-1, for per-thread scratch memory. */
typedef void (*queue_task)(void *job, int32_t chunk, int32_t worker);

struct stage_queue {
  int32_t threads; /* including the caller's */
  int32_t started;
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  atomic_uint_fast64_t generation; /* of the job; raised, under the lock, when a job is there or the pool ends */
  atomic_uint inside;              /* QUEUE_OPEN while the job takes workers, and how many are at it */
  int32_t sleepers;                /* workers that wait for `work`; under the lock */
  int32_t spins_before_sleep;      /* 0 where threads share cores */
  atomic_bool ending;              /* set before the generation is raised */
  queue_task task;
  void *job;
  int32_t chunks;
  atomic_int next; /* the next chunk to hand out */
  pthread_t worker[];
};

/* Bytes of a queue of `threads` threads (1 or more), and its start in that memory. False: a thread could not be
   started; those that were have ended again. */
size_t queue_bytes(int32_t threads);
bool queue_start(stage_queue *queue, int32_t threads);
/* Ends and joins the threads; the memory stays the caller's. */
void queue_stop(stage_queue *queue);

/* Runs task(job, 0..chunks-1, worker), returns when all are done. queue null: one after another on this thread. */
void queue_run(stage_queue *queue, int32_t chunks, queue_task task, void *job);

static inline int32_t queue_threads(const stage_queue *queue) { return queue ? queue->threads : 1; }

#endif
