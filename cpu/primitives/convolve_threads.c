/* Convolution of signals in blocks of outputs. Blocks near an end of a signal read from a window that extends it. */
#include "cpu/primitives/primitives_threads.h"
#include "cpu/schedule/threads.h"

/* END_BLOCK: number of outputs of a block near an end. WINDOW_SAMPLES: capacity of its window; for longer filters,
 * outputs near an end are summed sample by sample. */
enum { END_BLOCK = 512, WINDOW_SAMPLES = 4096 };
/* Number of outputs in a unit of work. */
enum { UNIT_OUTPUTS = 1 << 15 };

typedef union sample_window {
  float f32[WINDOW_SAMPLES];
  double f64[WINDOW_SAMPLES];
} sample_window;

typedef struct convolve_job {
  const prim_ops *ops;
  const prim_convolve_args *args;
  size_t units_a_row;
} convolve_job;

/* The row of a unit of work. */
typedef struct signal_row {
  const unsigned char *in;
  unsigned char *out;
  int64_t n, radius;
} signal_row;

static void fill_window(const convolve_job *job, const signal_row *row, int64_t first, int64_t count,
                        sample_window *window) {
  const prim_ends ends = job->args->ends;
  for (int64_t k = 0; k < count; k++) {
    const int64_t at = prim_end_index(first + k, row->n, ends);
    if (job->args->signal.type == PRIM_F32)
      window->f32[k] = at < 0 ? 0.0f : ((const float *)(const void *)row->in)[at];
    else
      window->f64[k] = at < 0 ? 0.0 : ((const double *)(const void *)row->in)[at];
  }
}

/* Computes one output of a filter longer than the SIMD window (m >= 9), with compensated sums. */
static void long_output(const convolve_job *job, const signal_row *row, int64_t i) {
  const prim_convolve_args *a = job->args;
  const int64_t m = (int64_t)a->tap_count;
  prim_dot dot = {0.0, 0.0};
  double sum = 0.0;
  for (int64_t j = 0; j < m; j++) {
    const int64_t at = prim_end_index(i + row->radius - j, row->n, a->ends);
    if (a->signal.type == PRIM_F32) {
      const double x = at < 0 ? 0.0 : (double)((const float *)(const void *)row->in)[at];
      const double product = (double)(float)a->taps[j] * x;
      sum = j == 0 ? product : sum + product;
    } else {
      const double x = at < 0 ? 0.0 : ((const double *)(const void *)row->in)[at];
      dot = j == 0 ? prim_dot_start(a->taps[0], x) : prim_dot_step(dot, a->taps[j], x);
    }
  }
  if (a->signal.type == PRIM_F32)
    ((float *)(void *)row->out)[i] = prim_plain_nan_f32((float)sum);
  else
    ((double *)(void *)row->out)[i] = prim_dot_end(dot);
}

/* Computes outputs first..end-1, some of which read beyond the signal. */
static void outputs_at_end(const convolve_job *job, const signal_row *row, int64_t first, int64_t end) {
  const prim_convolve_args *a = job->args;
  const size_t bytes = prim_element_bytes(a->signal.type);
  sample_window window;
  if (END_BLOCK + 2 * row->radius > WINDOW_SAMPLES) {
    for (int64_t i = first; i < end; i++) long_output(job, row, i);
    return;
  }
  for (int64_t i = first; i < end; i += END_BLOCK) {
    const int64_t count = end - i < END_BLOCK ? end - i : END_BLOCK;
    fill_window(job, row, i - row->radius, count + 2 * row->radius, &window);
    job->ops->convolve[a->signal.type & 1](&window, row->out + (size_t)i * bytes, (size_t)count, a->taps, a->tap_count);
  }
}

static int64_t clamp(int64_t v, int64_t low, int64_t high) { return v < low ? low : (v > high ? high : v); }

static void convolve_unit(void *argument, int32_t unit, int32_t worker) {
  const convolve_job *job = argument;
  const prim_convolve_args *a = job->args;
  const size_t bytes = prim_element_bytes(a->signal.type), y = (size_t)unit / job->units_a_row;
  const signal_row row = {.in = (const unsigned char *)a->signal.data + y * a->signal.stride_bytes,
                          .out = (unsigned char *)a->out + y * a->out_stride,
                          .n = (int64_t)a->signal.width,
                          .radius = (int64_t)(a->tap_count / 2)};
  const int64_t outputs = (row.n - 1) / (int64_t)job->units_a_row + 1;
  const int64_t first = clamp((int64_t)((size_t)unit % job->units_a_row) * outputs, 0, row.n);
  const int64_t end = clamp(first + outputs, 0, row.n);
  /* Outputs radius..n-radius-1 read only samples of the signal. */
  const int64_t inner = clamp(row.radius, first, end), inner_end = clamp(row.n - row.radius, inner, end);
  (void)worker;
  outputs_at_end(job, &row, first, inner);
  if (inner < inner_end)
    job->ops->convolve[a->signal.type & 1](row.in + (size_t)(inner - row.radius) * bytes,
                                           row.out + (size_t)inner * bytes, (size_t)(inner_end - inner), a->taps,
                                           a->tap_count);
  outputs_at_end(job, &row, inner_end, end);
}

void prim_convolve(prim_backend backend, const prim_convolve_args *args) {
  const prim_view *s = &args->signal;
  const prim_backend here = prim_backend_for(backend, s->width * s->height * prim_element_bytes(s->type), PRIM_WORK);
  convolve_job job = {.ops = here.ops, .args = args};
  job.units_a_row = (s->width - 1) / UNIT_OUTPUTS + 1;
  /* Unit numbers are int32_t, so each run of the queue has a limited number of rows. */
  for (size_t first = 0; first < s->height;) {
    prim_convolve_args part = *args;
    const size_t most = ((size_t)1 << 30) / job.units_a_row + 1, left = s->height - first;
    part.signal.data = (const unsigned char *)s->data + first * s->stride_bytes;
    part.out = (unsigned char *)args->out + first * args->out_stride;
    part.signal.height = left < most ? left : most;
    job.args = &part;
    queue_run(here.queue, (int32_t)(part.signal.height * job.units_a_row), convolve_unit, &job);
    first += part.signal.height;
  }
}
