/* Scheduler of the work graph. Each thread of the pool runs one loop over the jobs. */
#include "cpu/schedule/work_graph.h"

#include "cpu/schedule/threads.h"

void graph_job_begin(graph_job *job, queue_task task, void *state, int32_t chunks, int32_t band_chunks) {
  assert(band_chunks == 0 || (chunks - 1) / band_chunks < GRAPH_BANDS_MAX);
  job->task = task;
  job->state = state;
  job->ready = NULL;
  job->owner = NULL;
  job->band_chunks = band_chunks;
  atomic_init(&job->chunks, chunks);
  atomic_init(&job->next, 0);
  atomic_init(&job->finished, 0);
  atomic_init(&job->bands, 0);
  for (int32_t i = 0; i < GRAPH_BANDS_MAX; i++) atomic_init(&job->band_finished[i], 0);
}

/* Takes the next chunk if it is ready, otherwise returns -1. *left: whether the job has more chunks to hand out, or may
 * still get some. */
static int32_t take_chunk(graph_job *job, bool *left) {
  int32_t chunk = atomic_load_explicit(&job->next, memory_order_relaxed);
  for (;;) {
    if (chunk >= atomic_load_explicit(&job->chunks, memory_order_acquire)) return -1;
    *left = true;
    if (job->ready && !job->ready(job->owner, job, chunk)) return -1;
    if (atomic_compare_exchange_weak_explicit(&job->next, &chunk, chunk + 1, memory_order_relaxed,
                                              memory_order_relaxed))
      return chunk;
  }
}

/* Marks a chunk as finished, and its band if it was the band's last chunk. The thread that finishes the band has seen
 * the writes of the other chunks; a thread that sees the band's bit sees them too. */
static void finish_chunk(graph_job *job, int32_t chunk) {
  if (job->band_chunks > 0) {
    const int32_t chunks = atomic_load_explicit(&job->chunks, memory_order_relaxed);
    const int32_t band = chunk / job->band_chunks, first = band * job->band_chunks;
    const int32_t of_band = chunks - first < job->band_chunks ? chunks - first : job->band_chunks;
    if (atomic_fetch_add_explicit(&job->band_finished[band], 1, memory_order_acq_rel) == of_band - 1)
      atomic_fetch_or_explicit(&job->bands, UINT64_C(1) << band, memory_order_release);
  }
  atomic_fetch_add_explicit(&job->finished, 1, memory_order_acq_rel);
}

/* Runs the first ready chunk, searching jobs from *first on. False: no chunk was ready. Advances *first past jobs
 * without chunks to hand out. */
static bool run_one(work_graph *graph, int32_t *first, int32_t worker) {
  for (int32_t i = *first; i < graph->count; i++) {
    graph_job *job = graph->jobs[i];
    bool left = false;
    const int32_t chunk = take_chunk(job, &left);
    if (!left && i == *first) ++*first;
    if (chunk < 0) continue;
    job->task(job->state, chunk, worker);
    finish_chunk(job, chunk);
    return true;
  }
  return false;
}

/* Number of yields before a thread sleeps, a millisecond or two. This is longer than a chunk takes, but the caller's
 * poll may take any time. */
enum { IDLE_ROUNDS_BEFORE_SLEEP = 2000, NAP_NS = 50000 };

/* Waits for one round; the caller then looks for a chunk again. */
static void stay_idle(spin_wait *idle) {
  if (idle->rounds < IDLE_ROUNDS_BEFORE_SLEEP)
    (void)spin_wait_pause(idle);
  else
    os_sleep_ns(NAP_NS);
}

/* Runs the loop of one thread. The chunk's number is unused. */
static void work_on_graph(void *argument, int32_t chunk, int32_t worker) {
  work_graph *graph = argument;
  spin_wait idle = {0};
  (void)chunk;
  for (int32_t first = 0; first < graph->count;) {
    if (atomic_load_explicit(&graph->stopped, memory_order_relaxed)) return;
    if (worker == 0 && graph->poll && !graph->poll(graph->owner)) {
      atomic_store_explicit(&graph->stopped, true, memory_order_relaxed);
      return;
    }
    if (run_one(graph, &first, worker))
      idle = (spin_wait){0};
    else
      stay_idle(&idle);
  }
}

void work_graph_run(stage_queue *queue, work_graph *graph) {
  atomic_init(&graph->stopped, false);
  queue_run(queue, queue_threads(queue), work_on_graph, graph);
}
