/*
 * A pool of threads that runs numbered chunks; the caller is one of them.
 *
 * The pool starts its threads once. Between jobs they spin for some microseconds before they sleep, because a frame's
 * stages follow each other closely and waking a thread takes as long as a small octave. Each thread takes the next
 * chunk when it is free. Which thread runs a chunk is not defined, so a chunk's output must not depend on the thread.
 * Hence results are equal for every number of threads. A job ends once all its chunks are done, even if some workers
 * never ran.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_THREADS_H
#define HARTSIFT_CPU_SCHEDULE_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/os_threads.h"
#include "stages/ops.h"

/* One chunk of a job; worker: 0..threads-1, for per-thread scratch memory. */
typedef void (*queue_task)(void *job, int32_t chunk, int32_t worker);

struct stage_queue {
  int32_t threads; /* number of threads, including the caller's */
  int32_t started;
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  atomic_uint_fast64_t generation; /* raised under the lock when a new job starts or the pool ends */
  atomic_uint inside; /* bit QUEUE_OPEN while the job admits workers, plus the number of workers inside the job */
  int32_t sleepers;   /* number of workers that wait for the condition `work`; under the lock */
  int32_t spins_before_sleep; /* 0 if threads share cores */
  atomic_bool ending;         /* whether workers shall end; set before the generation is raised */
  queue_task task;
  void *job;
  int32_t chunks;
  atomic_int next; /* the next chunk to take */
  pthread_t worker[];
};

/* The first returns the bytes of a queue of `threads` threads (1 or more); the second starts the queue in that memory.
 * False: a thread could not be started, and the threads already started have ended. */
size_t queue_bytes(int32_t threads);
bool queue_start(stage_queue *queue, int32_t threads);
/* Ends and joins the threads. The caller still owns the memory. */
void queue_stop(stage_queue *queue);

/* Runs task(job, 0..chunks-1, worker) and returns when all chunks are done. queue null: runs the chunks one after
 * another on this thread. */
void queue_run(stage_queue *queue, int32_t chunks, queue_task task, void *job);

static inline int32_t queue_threads(const stage_queue *queue) { return queue ? queue->threads : 1; }

/* Returns the number of cores that this process may use: 1..1024, the maximum number of threads in the options. */
static inline int32_t cpu_usable_threads(void) { return os_usable_cores(); }

/* Waiting for a word that another device or thread is about to write. Other threads may need the core meanwhile. */

/* Initialised with zeros. */
typedef struct spin_wait {
  uint32_t rounds;
} spin_wait;

/* A round pauses 1, 2, 4, ... times, up to the maximum, so that a short wait ends quickly. */
enum { SPIN_PAUSES_MAX = 64, SPIN_ROUNDS_BEFORE_YIELD = 200, SPIN_ROUNDS_PER_QUESTION = 64 };

/* Tells the core that a loop waits. The other hardware thread of the core then gets its execution units, and the loop
 * ends without a pipeline flush. */
static inline void spin_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* Waits for one round. After the first rounds (some ten microseconds) it also yields the core to other threads.
   True, once in many rounds: the caller should check whether the event can still happen. */
static inline bool spin_wait_pause(spin_wait *wait) {
  const uint32_t round = wait->rounds++, pauses = round < 6 ? 1u << round : (uint32_t)SPIN_PAUSES_MAX;
  if (round >= SPIN_ROUNDS_BEFORE_YIELD)
    os_yield();
  else
    for (uint32_t i = 0; i < pauses; i++) spin_pause();
  return round % SPIN_ROUNDS_PER_QUESTION == SPIN_ROUNDS_PER_QUESTION - 1;
}

#endif
