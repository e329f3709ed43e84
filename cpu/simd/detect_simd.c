/* Detection with vectors, on levels in planes. A chunk is the intersection of a strip of columns and a band of rows. */
#include "cpu/simd/search_strip_simd.h"
#include "cpu/simd/stages_simd.h"

/* Sets the columns and rows of a chunk. */
static void set_strip(detect_strip *s, const detect_job *job, int32_t chunk) {
  const plane_region r = detect_region_of(job, s->octave_index, chunk);
  const int32_t border = s->args->params.border, last = s->octave->width - border;
  s->x0 = r.x0;
  s->x1 = r.x1;
  s->y0 = r.y0;
  s->y1 = r.y1;
  s->from = border;
  s->to = last < s->x1 ? last : s->x1;
}

static void detect_chunk(void *argument, int32_t chunk, int32_t worker) {
  detect_job *job = argument;
  (void)worker;
  detect_strip s;
  begin_strip(&s, job, detect_octave_of(job, chunk));
  set_strip(&s, job, chunk);
  dog_rows d;
  begin_rows(&s, &d);
  for (int32_t y = s.y0, next = s.y0 - 1; y < s.y1; y++) {
    for (; next <= y + 1; next++) take_differences(&s, &d, next);
    search_levels(&s, &d, y);
    follow_until(&s, y - s.top.filter->radius);
  }
  follow_until(&s, s.y1);
  hand_over(&s);
  atomic_fetch_add_explicit(&job->count, s.count, memory_order_relaxed);
}

static void follow_seed(detect_job *job) {
  detect_strip s;
  begin_strip(&s, job, 0);
  follow_on(&s, *job->args.part->seed);
  hand_over(&s);
}

void SIMD_NAME(begin_detect)(detect_job *job, const detect_args *args) { detect_job_begin(job, args, detect_chunk); }

stage_status SIMD_NAME(detect)(stage_queue *queue, const detect_args *args) {
  detect_job job;
  SIMD_NAME(begin_detect)(&job, args);
  if (args->part && args->part->seed)
    follow_seed(&job);
  else
    queue_run(queue, job.run.chunks, job.run.task, &job);
  detect_job_end(&job);
  return STAGE_OK;
}
