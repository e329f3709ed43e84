/* Computes the sizes of a fused pass over an octave, and runs the pass over its strips. */
#include "cpu/schedule/fused_pass.h"

enum {
  LINE_FLOATS = 16, /* floats of a cache line */
  LINES_OF_BASE = 4,
  FLOATS_MAX = 3 << 18 /* 3 MiB in floats; larger rings do not fit the caches */
};

static int32_t up_to(int32_t n, int32_t multiple) { return (n + multiple - 1) / multiple * multiple; }

fused_pass_size fused_pass_size_of(const gaussian_filter *base, const gaussian_filter *step, int32_t scales) {
  fused_pass_size size = {.count = scales + 2};
  size.follow_halo = PASS_MOVES + 1 + step[scales + 2].radius;
  for (int32_t s = 1; s < size.count; s++)
    size.levels[s].lag = up_to(size.levels[s - 1].lag + step[s].radius, ROW_BLOCK);
  const int32_t last = size.count - 1, columns = PASS_STRIP;
  /* Number of rows that fits may read in one step: from the oldest row at the step's beginning to the newest at its
   * end. */
  const int32_t rows = size.levels[last].lag + 1 + size.follow_halo + PASS_ROWS + PASS_MOVES + 1;
  int32_t halo = size.follow_halo;
  for (int32_t s = last; s >= 0; s--) {
    pass_level_size *l = &size.levels[s];
    const int32_t radius = s > 0 ? step[s].radius : base->radius;
    l->halo = halo;
    halo += radius;
    l->rows = up_to(rows - l->lag + (s == last ? step[scales + 2].radius : 0), ROW_BLOCK);
    l->filtered_rows = 2 * radius + PASS_ROWS;
    size.floats += (size_t)(l->rows + l->filtered_rows);
  }
  size.margin = up_to(size.levels[0].halo, LINE_FLOATS) + LINE_FLOATS;
  /* The stride is an odd number of cache lines, so that the rows of a column are in different sets of the L1 cache. */
  const int32_t lines = (columns + 2 * size.margin + WORK_OVERREAD) / LINE_FLOATS;
  size.stride = (size_t)(lines | 1) * LINE_FLOATS;
  size.line_floats = size.stride + 2 * (size_t)up_to(base->radius + WORK_OVERREAD, LINE_FLOATS);
  size.floats = size.floats * size.stride + LINES_OF_BASE * size.line_floats + 2 * WORK_OVERREAD;
  return size;
}

size_t fused_pass_floats(const stage_ops *ops, int32_t threads, const gaussian_filter *base,
                         const gaussian_filter *step, int32_t scales) {
  if (!ops->octave || threads > PASS_THREADS) return 0;
  const size_t floats = fused_pass_size_of(base, step, scales).floats;
  return floats <= FLOATS_MAX ? floats * (size_t)threads : 0;
}

static uint32_t escaped_capacity_of(int32_t width, int32_t height) {
  return (uint32_t)((uint64_t)width * (uint64_t)height / PASS_SAMPLES_AN_ESCAPED);
}

size_t fused_pass_escaped_floats(int32_t width, int32_t height) {
  return (size_t)escaped_capacity_of(width, height) * (sizeof(escaped_candidate) / sizeof(float));
}

void fused_pass_job_begin(fused_pass_job *job, const octave_args *args, int32_t threads, queue_task task) {
  const int32_t width = args->detect.octaves[0].width, height = args->detect.octaves[0].height;
  job->args = *args;
  job->size = fused_pass_size_of(args->base.filter, args->step_filter, args->detect.params.scales);
  job->escaped = (escaped_candidate *)(void *)(args->scratch + job->size.floats * (size_t)threads);
  job->escaped_capacity = escaped_capacity_of(width, height);
  /* equal numbers of strips for all threads */
  const int32_t strips = up_to((width - 1) / PASS_STRIP + 1, threads);
  job->strip = up_to((width - 1) / strips + 1, LINE_FLOATS);
  atomic_init(&job->overrun, false);
  atomic_init(&job->stopped, false);
  atomic_init(&job->done, 0);
  job->reported = 0;
  job->run = (stage_chunks){task, (width - 1) / job->strip + 1};
}

/* Reports the columns finished since the last call as progress. Called on the caller's thread. */
static void report_columns(fused_pass_job *job) {
  const octave_args *args = &job->args;
  const int32_t done = atomic_load_explicit(&job->done, memory_order_relaxed), columns = done - job->reported;
  job->reported = done;
  if (args->report && columns > 0 &&
      !args->report(args->owner, (uint64_t)columns * (uint64_t)args->detect.octaves[0].height))
    atomic_store_explicit(&job->stopped, true, memory_order_relaxed);
}

static void run_strip(void *argument, int32_t chunk, int32_t worker) {
  fused_pass_job *job = argument;
  const int32_t left = job->args.detect.octaves[0].width - chunk * job->strip;
  if (atomic_load_explicit(&job->stopped, memory_order_relaxed)) return;
  job->run.task(job, chunk, worker);
  atomic_fetch_add_explicit(&job->done, left < job->strip ? left : job->strip, memory_order_relaxed);
  if (worker == 0) report_columns(job);
}

stage_status fused_pass_job_run(stage_queue *queue, fused_pass_job *job) {
  queue_run(queue, job->run.chunks, run_strip, job);
  if (!atomic_load(&job->stopped)) report_columns(job);
  return atomic_load(&job->stopped) ? STAGE_CANCELLED : STAGE_OK;
}
