/*
 * Runs several jobs at the same time, as one run of the pool, so that threads synchronise once at the end instead of
 * once for each job.
 *
 * A job's chunks are handed out in ascending order, each as soon as the job's `ready` says that its inputs are made. A
 * free thread takes the first ready chunk, searching jobs in the order of the list, so jobs that others depend on
 * should come first. A running chunk waits only for earlier chunks of the same job. Hence there is no deadlock with any
 * number of threads, as long as the dependencies of all chunks have no cycle.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_WORK_GRAPH_H
#define HARTSIFT_CPU_SCHEDULE_WORK_GRAPH_H

#include "cpu/schedule/threads.h"

enum { GRAPH_BANDS_MAX = 64 };

typedef struct graph_job {
  queue_task task;
  void *state;
  /* Returns whether the chunk may begin; once true, the answer stays true. Null: each chunk may begin at once. Called
   * by any thread at any time. May set `chunks` by graph_job_close. The writes of a chunk are visible (acquire) once
   * graph_job_is_done or graph_bands_are_done returns true. */
  bool (*ready)(void *owner, struct graph_job *job, int32_t chunk);
  void *owner;
  int32_t band_chunks;        /* number of chunks in a band: chunk c belongs to band c / band_chunks; 0: no bands */
  atomic_int chunks;          /* number of chunks; GRAPH_CHUNKS_OPEN while it is unknown */
  atomic_int next;            /* the next chunk to hand out */
  atomic_int finished;        /* number of finished chunks */
  atomic_uint_fast64_t bands; /* bit b: all chunks of band b are finished */
  atomic_int band_finished[GRAPH_BANDS_MAX];
} graph_job;

#define GRAPH_CHUNKS_OPEN INT32_MAX

typedef struct work_graph {
  graph_job *const *jobs; /* jobs in order of preference, the first one preferred */
  int32_t count;
  /* Null, or a function that is called repeatedly on the caller's thread. If it returns false, no more chunks are
   * started. */
  bool (*poll)(void *owner);
  void *owner;
  atomic_bool stopped;
} work_graph;

/* Begins a job of `chunks` chunks. band_chunks: chunks of a band (there are at most GRAPH_BANDS_MAX bands); 0: no
 * bands. */
void graph_job_begin(graph_job *job, queue_task task, void *state, int32_t chunks, int32_t band_chunks);

/* Sets the number of chunks of an open job. */
static inline void graph_job_close(graph_job *job, int32_t chunks) {
  atomic_store_explicit(&job->chunks, chunks, memory_order_release);
}

/* Whether all chunks are finished. */
static inline bool graph_job_is_done(const graph_job *job) {
  const int32_t chunks = atomic_load_explicit(&job->chunks, memory_order_acquire);
  return atomic_load_explicit(&job->finished, memory_order_acquire) == chunks;
}

/* Whether all chunks of the bands first..last are finished. */
static inline bool graph_bands_are_done(const graph_job *job, int32_t first, int32_t last) {
  const uint64_t wanted = (UINT64_MAX >> (63 - (last - first))) << first;
  return (atomic_load_explicit(&job->bands, memory_order_acquire) & wanted) == wanted;
}

/* Runs the jobs. Returns when all chunks are done or, if poll stopped the run, when all started chunks are done. queue
 * null: on this thread. */
void work_graph_run(stage_queue *queue, work_graph *graph);

#endif
