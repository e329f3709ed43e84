/*
 * Blurring by strips: the vector loops that the level step and the base share. Included by *_simd.c only.
 */
#ifndef HARTSIFT_CPU_SIMD_BLUR_LINES_SIMD_H
#define HARTSIFT_CPU_SIMD_BLUR_LINES_SIMD_H

#include "cpu/simd/simd.h"
#include "cpu/schedule/stage_jobs.h"

/* Lines of a strip: samples [x0 - radius, x1 + radius), extended by the border mode outside the plane. */
typedef struct line_strip {
  int32_t x0, x1;     /* columns of the strip */
  int32_t first, end; /* range of samples that are in the plane and within the radius of the strip */
  int32_t width, height, radius;
  border_mode border;
  float *memory; /* memory of four lines, line_floats each */
  size_t line_floats;
  int32_t kept[2];       /* for the base: the rows of the picture that two of these lines hold; -1: none */
  int32_t rows_ahead;    /* number of rows by which a line is prefetched early; 0: no prefetch */
  const float *prefetch; /* line to prefetch now, or null */
  const float *inner;    /* line in the plane, from which the strip except its ends is read; or null */
} line_strip;

/* LINE_END: minimum number of columns at either end of a wide strip that are filtered from a copy of the line; a
 * multiple of the columns of one iteration. LINE_END_HALO: further columns that the copy contains, because filtering
 * reads them. */
enum { LINE_END = 128, LINE_END_HALO = 128 };

/* State of a step that goes down a strip. */
typedef struct blur_walk {
  const void *source;
  line_reader read;
  plane_view out;
  const gaussian_filter *filter;
  line_strip strip;
  float *ring; /* rows filtered along x; row y is in slot y % ring_rows */
  size_t ring_stride;
  int32_t ring_rows;
  int32_t next; /* the next row to filter along x */
  bool stream;  /* the output is written past the caches */
} blur_walk;

/* Returns line `index` of the strip's scratch memory, at sample x0. */
static inline float *line_of_strip(const line_strip *s, int32_t index) {
  return s->memory + (size_t)index * s->line_floats + s->radius + WORK_OVERREAD;
}

/* Fills in the samples of the line that are outside the plane, from the samples inside, which the line must already
 * hold. */
static inline void line_continue(const line_strip *s, float *line) {
  float *at = line - s->x0;
  for (int32_t i = s->x0 - s->radius; i < s->first; i++) at[i] = at[border_index(i, s->width, s->border)];
  for (int32_t i = s->end; i < s->x1 + s->radius; i++) at[i] = at[border_index(i, s->width, s->border)];
}

/* Returns the columns of a strip's right end, such that the columns between both ends are a whole number of
 * iterations. */
static inline int32_t line_tail(int32_t columns) { return LINE_END + columns % LINE_END; }

/* Calls a function with the filter's radius as a constant, for the radii that occur with three scales per octave and
 * most other numbers of scales. With a constant radius the loop over taps is unrolled, and samples stay in
 * registers. */
#define RADIUS_CASE(RADIUS, FUNCTION, ...)                                                                             \
case RADIUS:                                                                                                           \
  FUNCTION(RADIUS, __VA_ARGS__);                                                                                       \
  break
#define WITH_RADIUS(FUNCTION, FILTER, ...)                                                                             \
  switch ((FILTER)->radius) {                                                                                          \
    RADIUS_CASE(4, FUNCTION, __VA_ARGS__);                                                                             \
    RADIUS_CASE(5, FUNCTION, __VA_ARGS__);                                                                             \
    RADIUS_CASE(6, FUNCTION, __VA_ARGS__);                                                                             \
    RADIUS_CASE(7, FUNCTION, __VA_ARGS__);                                                                             \
    RADIUS_CASE(8, FUNCTION, __VA_ARGS__);                                                                             \
    RADIUS_CASE(9, FUNCTION, __VA_ARGS__);                                                                             \
    RADIUS_CASE(10, FUNCTION, __VA_ARGS__);                                                                            \
  default:                                                                                                             \
    FUNCTION((FILTER)->radius, __VA_ARGS__);                                                                           \
  }

/* ------------------------------------------------- along x */

#if SIMD_HAS_JOIN
/* Returns for each lane of v the sample J positions earlier; J is at most JOINED_TAPS. b is the vector before v, and c
 * the vector before b. */
enum { JOINED_TAPS = 15 };
_Static_assert((int)JOINED_TAPS < 2 * SIMD_WIDTH, "left neighbours are in two vectors");
#  define LEFT_OF(v, b, c, J)                                                                                          \
    ((J) < SIMD_WIDTH    ? simd_join(v, b, SIMD_WIDTH - (J))                                                           \
     : (J) == SIMD_WIDTH ? (b)                                                                                         \
                         : simd_join(b, c, 2 * SIMD_WIDTH - (J)))
/* Left neighbours are joined from registers, right neighbours are loaded. Both are mixed, because a load that crosses a
 * cache line costs as much as two loads. */
#  define ROW_JOIN_TAP(J)                                                                                              \
    if (radius < (J)) break;                                                                                           \
    tap = simd_set1(taps[J]);                                                                                          \
    a0 = simd_fma(tap, simd_add(LEFT_OF(v0, b, c, J), simd_load(at + (J))), a0);                                       \
    a1 = simd_fma(tap, simd_add(LEFT_OF(v1, v0, b, J), simd_load(at + SIMD_WIDTH + (J))), a1);                         \
    a2 = simd_fma(tap, simd_add(LEFT_OF(v2, v1, v0, J), simd_load(at + 2 * SIMD_WIDTH + (J))), a2);                    \
    a3 = simd_fma(tap, simd_add(LEFT_OF(v3, v2, v1, J), simd_load(at + 3 * SIMD_WIDTH + (J))), a3)
#endif

/* Filters four vectors of outputs at once. */
SIMD_FOR_CONSTANTS void filter_four_vectors(int32_t radius, const float *taps, const float *at, float *out) {
  simd_f32 tap = simd_set1(taps[0]);
  const simd_f32 v0 = simd_load(at), v1 = simd_load(at + SIMD_WIDTH), v2 = simd_load(at + 2 * SIMD_WIDTH),
                 v3 = simd_load(at + 3 * SIMD_WIDTH);
  simd_f32 a0 = simd_mul(tap, v0), a1 = simd_mul(tap, v1), a2 = simd_mul(tap, v2), a3 = simd_mul(tap, v3);
  int32_t j = 1;
#if SIMD_HAS_JOIN
  const simd_f32 b = simd_load(at - SIMD_WIDTH), c = simd_load(at - 2 * SIMD_WIDTH);
  do {
    ROW_JOIN_TAP(1);
    ROW_JOIN_TAP(2);
    ROW_JOIN_TAP(3);
    ROW_JOIN_TAP(4);
    ROW_JOIN_TAP(5);
    ROW_JOIN_TAP(6);
    ROW_JOIN_TAP(7);
    ROW_JOIN_TAP(8);
    ROW_JOIN_TAP(9);
    ROW_JOIN_TAP(10);
    ROW_JOIN_TAP(11);
    ROW_JOIN_TAP(12);
    ROW_JOIN_TAP(13);
    ROW_JOIN_TAP(14);
    ROW_JOIN_TAP(15);
  } while (0);
  j = JOINED_TAPS + 1;
#endif
  for (; j <= radius; j++) {
    tap = simd_set1(taps[j]);
    const float *l = at - j, *r = at + j;
    a0 = simd_fma(tap, simd_add(simd_load(l), simd_load(r)), a0);
    a1 = simd_fma(tap, simd_add(simd_load(l + SIMD_WIDTH), simd_load(r + SIMD_WIDTH)), a1);
    a2 = simd_fma(tap, simd_add(simd_load(l + 2 * SIMD_WIDTH), simd_load(r + 2 * SIMD_WIDTH)), a2);
    a3 = simd_fma(tap, simd_add(simd_load(l + 3 * SIMD_WIDTH), simd_load(r + 3 * SIMD_WIDTH)), a3);
  }
  simd_store(out, a0);
  simd_store(out + SIMD_WIDTH, a1);
  simd_store(out + 2 * SIMD_WIDTH, a2);
  simd_store(out + 3 * SIMD_WIDTH, a3);
}

/* Filters the part of out[0..n) that consists of complete iterations of four vectors. prefetch: a line to prefetch, or
 * null; the hardware prefetcher does not help, because a strip reads too little of one row. */
SIMD_FOR_CONSTANTS void filter_rounds(int32_t radius, const float *taps, const float *line, const float *prefetch,
                                      float *out, int32_t n) {
  for (int32_t x = 0; x + 4 * SIMD_WIDTH <= n; x += 4 * SIMD_WIDTH) {
    if (prefetch)
      for (int32_t i = 0; i < 4 * SIMD_WIDTH; i += 16) __builtin_prefetch(prefetch + x + i);
    filter_four_vectors(radius, taps, line + x, out + x);
  }
}

/* Filters out[0..n), and up to SIMD_WIDTH - 1 floats more, from line. Not inlined, because it is long and called
 * from many functions. */
static __attribute__((noinline)) void filter_row(const gaussian_filter *f, const float *line, const float *prefetch,
                                                 float *out, int32_t n) {
  WITH_RADIUS(filter_rounds, f, f->taps, line, prefetch, out, n);
  for (int32_t x = n - n % (4 * SIMD_WIDTH); x < n; x += SIMD_WIDTH) {
    simd_f32 a = simd_mul(simd_set1(f->taps[0]), simd_load(line + x));
    for (int32_t j = 1; j <= f->radius; j++)
      a = simd_fma(simd_set1(f->taps[j]), simd_add(simd_load(line + x - j), simd_load(line + x + j)), a);
    simd_store(out + x, a);
  }
}

/* Filters the strip's line. The samples between the ends are read directly from the plane if possible. */
static inline void filter_line(const gaussian_filter *f, const line_strip *s, const float *line, float *out) {
  const int32_t n = s->x1 - s->x0;
  if (!s->inner) {
    filter_row(f, line, s->prefetch, out, n);
    return;
  }
  const int32_t tail = n - line_tail(n);
  filter_row(f, line, s->prefetch, out, LINE_END);
  filter_row(f, s->inner + LINE_END, s->prefetch ? s->prefetch + LINE_END : NULL, out + LINE_END, tail - LINE_END);
  filter_row(f, line + tail, s->prefetch ? s->prefetch + tail : NULL, out + tail, n - tail);
}

/* ------------------------------------------------- along y */

/* Number of rows filtered together, limited by the registers. Neighbouring rows share all but one of their samples
 * above and below. */
enum { ROWS_AT_ONCE = SIMD_REGISTERS >= 32 ? 8 : 4 };
_Static_assert((int)WORK_BLOCK_ROWS % (int)ROWS_AT_ONCE == 0, "rows that are finished at a time");

/* Computes one vector of each row into out[]. above[k] and below[k] are the samples j above and below row k; each
 * tap loads one new sample of either. */
SIMD_FOR_CONSTANTS void filter_down(int32_t radius, const float *taps, const float *const *rows, int32_t x,
                                    simd_f32 out[ROWS_AT_ONCE]) {
  simd_f32 c = simd_set1(taps[0]), above[ROWS_AT_ONCE], below[ROWS_AT_ONCE];
#pragma GCC unroll 8
  for (int k = 0; k < ROWS_AT_ONCE; k++) {
    above[k] = below[k] = simd_load(rows[k] + x);
    out[k] = simd_mul(c, above[k]);
  }
#pragma GCC unroll 10
  for (int32_t j = 1; j <= radius; j++) {
    c = simd_set1(taps[j]);
#pragma GCC unroll 8
    for (int k = 1; k < ROWS_AT_ONCE; k++) {
      above[ROWS_AT_ONCE - k] = above[ROWS_AT_ONCE - k - 1];
      below[k - 1] = below[k];
    }
    above[0] = simd_load(rows[-j] + x);
    below[ROWS_AT_ONCE - 1] = simd_load(rows[ROWS_AT_ONCE - 1 + j] + x);
#pragma GCC unroll 8
    for (int k = 0; k < ROWS_AT_ONCE; k++) out[k] = simd_fma(c, simd_add(above[k], below[k]), out[k]);
  }
}

/* Computes columns [x0, x1) of up to ROWS_AT_ONCE rows. rows[k]: the row-filtered row k, counted from the first
 * output row; k starts at -radius. */
SIMD_FOR_CONSTANTS void filter_columns(int32_t radius, const blur_walk *w, const float *const *rows, int32_t x0,
                                       int32_t x1, float *out, int32_t count) {
  const float *taps = w->filter->taps;
  const size_t stride = w->out.stride;
  for (int32_t x = x0; x < x1; x += SIMD_WIDTH) {
    simd_f32 v[ROWS_AT_ONCE];
    filter_down(radius, taps, rows, x, v);
    if (count < ROWS_AT_ONCE || x + SIMD_WIDTH > x1) {
      const int32_t lanes = x1 - x < SIMD_WIDTH ? x1 - x : SIMD_WIDTH;
#pragma GCC unroll 8
      for (int k = 0; k < ROWS_AT_ONCE; k++)
        if (k < count) simd_store_first(out + (size_t)k * stride + x, v[k], lanes);
    } else if (w->stream) {
#pragma GCC unroll 8
      for (int k = 0; k < ROWS_AT_ONCE; k++) simd_stream(out + (size_t)k * stride + x, v[k]);
    } else {
#pragma GCC unroll 8
      for (int k = 0; k < ROWS_AT_ONCE; k++) simd_store(out + (size_t)k * stride + x, v[k]);
    }
  }
}

/* Number of columns filtered together: at this width the rows of a block stay in the L1 cache. */
enum { COLUMN_TILE = 128 };

/* Computes rows y..y+count-1 of the strip (at most WORK_BLOCK_ROWS) from the ring. */
static inline void walk_columns(const blur_walk *w, int32_t y, int32_t count) {
  const line_strip *s = &w->strip;
  const int32_t radius = w->filter->radius, columns = s->x1 - s->x0;
  const float *rows[2 * FILTER_RADIUS_MAX + WORK_BLOCK_ROWS];
  for (int32_t i = 0; i < 2 * radius + WORK_BLOCK_ROWS; i++) {
    const int32_t k = i < 2 * radius + count ? i : 2 * radius + count - 1; /* unused entries repeat the last row */
    const int32_t row = border_index(y - radius + k, s->height, s->border);
    rows[i] = w->ring + (size_t)(row % w->ring_rows) * w->ring_stride;
  }
  for (int32_t x = 0; x < columns; x += COLUMN_TILE) {
    const int32_t end = x + COLUMN_TILE < columns ? x + COLUMN_TILE : columns;
    for (int32_t k = 0; k < count; k += ROWS_AT_ONCE) {
      float *out = w->out.data + (size_t)(y + k) * w->out.stride + s->x0;
      const int32_t made = count - k < ROWS_AT_ONCE ? count - k : ROWS_AT_ONCE;
      WITH_RADIUS(filter_columns, w->filter, w, rows + radius + k, x, end, out, made);
    }
  }
}

/* Returns the number of source rows that the output rows up to `end` need. */
static inline int32_t walk_needs(const blur_walk *w, int32_t end) {
  return w->strip.height - end < w->filter->radius ? w->strip.height : end + w->filter->radius;
}

/* Computes the next output rows, y..y+count-1. */
static inline void walk_block(blur_walk *w, int32_t y, int32_t count) {
  line_strip *s = &w->strip;
  for (const int32_t needed = walk_needs(w, y + count); w->next < needed; w->next++) {
    const float *line = w->read(w->source, s, w->next);
    filter_line(w->filter, s, line, w->ring + (size_t)(w->next % w->ring_rows) * w->ring_stride);
  }
  walk_columns(w, y, count);
}

/* Returns a strip of columns [x0, x1) of the plane. memory: line_floats for each line. */
static inline line_strip line_strip_of(const plane_view *plane, int32_t x0, int32_t x1, int32_t radius,
                                       border_mode border, float *memory, size_t line_floats) {
  line_strip s = {
      .x0 = x0, .x1 = x1, .width = plane->width, .height = plane->height, .radius = radius, .border = border};
  s.first = x0 > radius ? x0 - radius : 0;
  s.end = s.width - x1 > radius ? x1 + radius : s.width;
  s.memory = memory;
  s.line_floats = line_floats;
  s.kept[0] = s.kept[1] = -1;
  return s;
}

/* ------------------------------------------------- halving */

/* Copies every second of 2 * count samples. */
static inline void halve_row(const float *from, int32_t count, float *to) {
  int32_t x = 0;
  for (; x + SIMD_WIDTH <= count; x += SIMD_WIDTH) simd_store(to + x, simd_load_even(from + 2 * x));
  for (; x < count; x++) to[x] = from[2 * x];
}

/* ------------------------------------------------- one step, for base and blur */

/* STREAM_BYTES: a larger plane does not stay in a cache until it is read again, so it is written with streaming stores,
 * which do not read a line before they overwrite it. Its rows must begin at multiples of STREAM_ALIGNMENT bytes. */
enum { STREAM_BYTES = 8 << 20, STREAM_ALIGNMENT = 64 };

static inline bool worth_streaming(const plane_view *p, const plane_region *r) {
  const size_t row_bytes = sizeof(float) * p->stride;
  return sizeof(float) * (size_t)(r->x1 - r->x0) * (size_t)(r->y1 - r->y0) >= STREAM_BYTES &&
         ((uintptr_t)p->data + sizeof(float) * (size_t)r->x0) % STREAM_ALIGNMENT == 0 &&
         row_bytes % STREAM_ALIGNMENT == 0;
}

/* Processes one chunk: one strip within one band. */
static void blur_chunk(void *argument, int32_t chunk, int32_t worker) {
  const blur_job *job = argument;
  const pyramid_work *w = &job->work;
  const plane_region *r = &job->region;
  const int32_t radius = job->filter->radius;
  float *ring = job->scratch + (size_t)worker * job->scratch_floats;
  const int32_t x0 = r->x0 + chunk % w->strips * w->strip, x1 = r->x1 - x0 < w->strip ? r->x1 : x0 + w->strip;
  const int32_t first = r->y0 + chunk / w->strips * w->band, end = r->y1 - first < w->band ? r->y1 : first + w->band;
  blur_walk walk = {.source = job->source, .read = job->read, .out = job->out, .filter = job->filter, .ring = ring};
  walk.ring_stride = w->ring_stride;
  walk.ring_rows = w->ring_rows;
  walk.strip = line_strip_of(&job->out, x0, x1, radius, job->border, ring + w->ring_stride * (size_t)w->ring_rows,
                             w->line_floats);
  walk.strip.rows_ahead = job->rows_ahead;
  walk.stream = job->stream;
  walk.next = first > radius ? first - radius : 0;
  for (int32_t y = first; y < end; y += WORK_BLOCK_ROWS)
    walk_block(&walk, y, end - y < WORK_BLOCK_ROWS ? end - y : WORK_BLOCK_ROWS);
  if (walk.stream) simd_stream_end();
}

/* Completes a job whose source, output and filter are set. */
static inline void blur_begin(blur_job *job, int32_t threads) {
  blur_job_divide(job, threads);
  job->stream = worth_streaming(&job->out, &job->region);
  job->run.task = blur_chunk;
}

static inline stage_status blur_run(stage_queue *queue, blur_job *job) {
  queue_run(queue, job->run.chunks, job->run.task, job);
  return STAGE_OK;
}

#endif
