/*
 * The level step and the halving with vectors.
 *
 * A strip of columns is processed from top to bottom, 16 rows at a time: the rows that these need beyond the last ones
 * are filtered along x into the thread's ring, then the ring is filtered along y, several rows at once, because neighbouring
 * rows share all but one of the samples either side. Lanes are outputs; each has the reference's order of operations.
 */
#include "cpu/simd/blur_lines_simd.h"
#include "cpu/simd/stages_simd.h"

/* How far ahead a line is asked for. */
enum { ROWS_AHEAD = 4 };

/* Copies samples [from, end) of a row into the strip's line. */
static void copy_samples(const line_strip *s, const float *row, int32_t from, int32_t end, float *line) {
  memcpy(line + (from - s->x0), row + from, sizeof(float) * (size_t)(end - from));
}

/* A level's line where the strip and what is read beyond it lie inside; elsewhere a copy with the border continued, of
   a wide strip only of what its ends need. */
static const float *read_plane_line(const void *source, line_strip *s, int32_t y) {
  const plane_view *in = source;
  const float *row = in->data + (size_t)y * in->stride;
  s->ahead =
      s->rows_ahead > 0 && y + s->rows_ahead < s->height ? row + (size_t)s->rows_ahead * in->stride + s->x0 : NULL;
  if (s->x0 - s->radius - WORK_OVERREAD >= 0 && s->x1 + s->radius + WORK_OVERREAD <= in->width) return row + s->x0;
  float *line = line_of_strip(s, 0);
  const int32_t columns = s->x1 - s->x0;
  const bool wide = columns >= 4 * (LINE_END + LINE_END_REACH) && s->radius + WORK_OVERREAD <= LINE_END_REACH;
  s->inner = wide ? row + s->x0 : NULL;
  if (wide) {
    copy_samples(s, row, s->first, s->x0 + LINE_END + LINE_END_REACH, line);
    copy_samples(s, row, s->x1 - line_tail(columns) - LINE_END_REACH, s->end, line);
  } else {
    copy_samples(s, row, s->first, s->end, line);
  }
  line_continue(s, line);
  return line;
}

void SIMD_NAME(begin_blur)(blur_job *job, const blur_args *args, int32_t threads) {
  assert(args->in.data != args->out.data);
  *job = (blur_job){.in = args->in,
                    .source = &job->in,
                    .read = read_plane_line,
                    .out = args->out,
                    .region = region_or_all(args->region, &args->out),
                    .scratch = args->work.data,
                    .border = args->border,
                    .filter = args->filter,
                    .rows_ahead = ROWS_AHEAD};
  blur_begin(job, threads);
}

stage_status SIMD_NAME(blur)(stage_queue *queue, const blur_args *args) {
  blur_job job;
  SIMD_NAME(begin_blur)(&job, args, queue_threads(queue));
  return blur_run(queue, &job);
}

static void halve_chunk(void *argument, int32_t chunk, int32_t worker) {
  const halve_job *job = argument;
  const plane_view in = job->args.in, out = job->args.out;
  const plane_region *r = &job->region;
  (void)worker;
  const int32_t first = r->y0 + chunk * job->rows, end = r->y1 - first > job->rows ? first + job->rows : r->y1;
  for (int32_t y = first; y < end; y++) {
    const float *from = in.data + (size_t)(2 * y) * in.stride;
    float *to = out.data + (size_t)y * out.stride;
    halve_row(from + 2 * r->x0, r->x1 - r->x0, to + r->x0);
  }
}

void SIMD_NAME(begin_halve)(halve_job *job, const halve_args *args) {
  *job = (halve_job){.args = *args, .region = region_or_all(args->region, &args->out), .rows = WORK_BAND_MIN};
  const int32_t rows = job->region.y1 - job->region.y0;
  job->run = (stage_chunks){halve_chunk, rows > 0 ? (rows - 1) / job->rows + 1 : 0};
}

stage_status SIMD_NAME(halve)(stage_queue *queue, const halve_args *args) {
  halve_job job;
  SIMD_NAME(begin_halve)(&job, args);
  queue_run(queue, job.run.chunks, job.run.task, &job);
  return STAGE_OK;
}
