/*
 * Jobs that run at the same time, as one run of the pool: threads synchronise once at the end instead of once per job.
 *
 * A job's chunks are handed out in ascending order, each when its job's `ready` says that its inputs are made. A free
 * thread takes the first ready chunk of the jobs in the order of the list, so jobs that others depend on should come
 * first. A running chunk waits only for earlier chunks of its own job. Hence there is no deadlock with any number of
 * threads, as long as the dependencies of all chunks have no cycle.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_WORK_GRAPH_H
#define HARTSIFT_CPU_SCHEDULE_WORK_GRAPH_H

#include "cpu/schedule/threads.h"

enum { GRAPH_BANDS_MAX = 64 };

typedef struct graph_job {
  queue_task task;
  void *state;
  /* Whether the chunk may begin; once it may, it always may. Null: at once. Called by any thread at any time. It may
   * set `chunks` (graph_job_close). What a chunk wrote is visible (acquire) once graph_job_is_done or
   * graph_bands_are_done is true. */
  bool (*ready)(void *owner, struct graph_job *job, int32_t chunk);
  void *owner;
  int32_t band_chunks;        /* chunk / band_chunks is the band it belongs to; 0: no bands */
  atomic_int chunks;          /* GRAPH_CHUNKS_OPEN while their number is unknown */
  atomic_int next;            /* the next chunk to hand out */
  atomic_int finished;        /* chunks */
  atomic_uint_fast64_t bands; /* bit b: all chunks of band b are finished */
  atomic_int band_finished[GRAPH_BANDS_MAX];
} graph_job;

#define GRAPH_CHUNKS_OPEN INT32_MAX

typedef struct work_graph {
  graph_job *const *jobs; /* in order of preference */
  int32_t count;
  /* Null, or called now and then on the caller's thread. False: no more chunks are started. */
  bool (*poll)(void *owner);
  void *owner;
  atomic_bool stopped;
} work_graph;

/* A job of `chunks` chunks in bands of band_chunks each (at most GRAPH_BANDS_MAX bands), or 0: without bands. */
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

/* Runs the jobs; returns when all their chunks are done or, if stopped, all that had started. queue null: on this
 * thread. */
void work_graph_run(stage_queue *queue, work_graph *graph);

#endif
