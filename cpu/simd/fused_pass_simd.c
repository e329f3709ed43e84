/* Fused pass over an octave with vectors: see fused_pass.h. The rows of a step are filtered along x from the ring of
 * the previous level, then along y as in the level step (blur_lines_simd.h), and written to the ring. While the next
 * level filters these rows along x, which leaves the store units idle, they are also written to the level's plane, past
 * the caches. The search and refinement read rings only. Candidates that leave the rings (OpenCV's rule) are followed
 * in the planes at the end. */
#include "cpu/schedule/fused_pass.h"
#include "cpu/simd/blur_lines_simd.h"
#include "cpu/simd/search_strip_simd.h"
#include "cpu/simd/stages_simd.h"

enum { PICTURE_ROWS_AHEAD = 4 };

/* One level of a strip. */
typedef struct pass_level {
  float *ring;     /* ring of the level: address of sample `first` of row 0 */
  float *filtered; /* second ring: rows of the previous level, filtered along x, from column x0 on */
  int32_t rows, filtered_rows, lag;
  const gaussian_filter *filter;
  int32_t x0, x1;     /* columns that are made: [x0, x1) */
  int32_t made, next; /* made: number of rows made; next: number of source rows filtered along x */
  float *plane;       /* memory of the level; null: it is not stored */
} pass_level;

/* State of a strip during its pass. */
typedef struct fused_pass {
  pass_level levels[SCALES_MAX + 2];
  int32_t count;
  int32_t width, height, x0, x1;
  int32_t first; /* column of the first sample of each ring's rows */
  size_t stride, plane_stride;
  bool stream; /* planes are written past the caches */
  border_mode border;
  const blur_job *base;
  plane_view finer; /* level S of the previous octave; without data: level 0 is made by the base */
  line_strip line;  /* lines for the base */
} fused_pass;

/* ------------------------------------------------- levels */

static inline float *ring_row(const fused_pass *p, const pass_level *l, int32_t y) {
  return l->ring + (size_t)(y % l->rows) * p->stride;
}

/* Rounds columns up to the four vectors of the row loop. Values that the loop writes beyond the columns are never
 * used. */
static inline int32_t whole_rounds(int32_t columns) { return (columns + 4 * SIMD_WIDTH - 1) & ~(4 * SIMD_WIDTH - 1); }

/* Prefetches a row of the picture that the base will read some rows later. The hardware does not prefetch it, because a
 * strip reads too little of a row. */
static inline void ask_for_picture(const fused_pass *p, int32_t y) {
  const base_args *b = p->base->source;
  const source_view *v = &b->source;
  const int64_t row = (b->first_octave < 0 ? y / 2 : (int64_t)y << b->first_octave) + PICTURE_ROWS_AHEAD;
  if (row >= v->height) return;
  const size_t bytes = source_pixel_bytes(v->type, v->layout), width = (size_t)v->width, columns = (size_t)p->width;
  const unsigned char *at = (const unsigned char *)v->data + (size_t)row * v->stride_bytes;
  const size_t first = (size_t)p->line.first * width / columns * bytes;
  const size_t end = (size_t)p->line.end * width / columns * bytes;
  for (size_t i = first; i < end; i += 64) __builtin_prefetch(at + i);
}

/* Copies the strip's part of row y of a level from the ring to the plane. */
static inline void keep_row(const fused_pass *p, const pass_level *l, int32_t y) {
  if (!l->plane) return;
  const float *from = ring_row(p, l, y) + (p->x0 - p->first);
  float *to = l->plane + (size_t)y * p->plane_stride + (size_t)p->x0;
  const int32_t n = p->x1 - p->x0;
  int32_t x = 0;
  for (; p->stream && x + SIMD_WIDTH <= n; x += SIMD_WIDTH) simd_stream(to + x, simd_load(from + x));
  memcpy(to + x, from + x, sizeof(float) * (size_t)(n - x));
}

/* Filters rows of the source of level s along x, up to row `end`. */
static void filter_rows_until(fused_pass *p, int32_t s, int32_t end) {
  pass_level *l = &p->levels[s];
  for (; l->next < end; l->next++) {
    float *out = l->filtered + (size_t)(l->next % l->filtered_rows) * p->stride;
    if (s == 0) ask_for_picture(p, l->next);
    const float *line =
        s == 0 ? p->base->read(p->base->source, &p->line, l->next) : ring_row(p, l - 1, l->next) + (l->x0 - p->first);
    filter_row(l->filter, line, NULL, out, whole_rounds(l->x1 - l->x0));
    if (s > 0) keep_row(p, l - 1, l->next);
  }
}

/* Computes ROWS_AT_ONCE rows from y on, in columns [x, end) counted from the level's first column. rows[k]: row k
 * filtered along x. */
SIMD_FOR_CONSTANTS void make_columns(int32_t radius, const fused_pass *p, const pass_level *l, const float *const *rows,
                                     int32_t x, int32_t end, int32_t y) {
  const float *taps = l->filter->taps;
  float *ring[ROWS_AT_ONCE / ROW_BLOCK];
  for (int32_t k = 0; k < ROWS_AT_ONCE; k += ROW_BLOCK)
    ring[k / ROW_BLOCK] = ring_row(p, l, y + k) + (l->x0 - p->first);
  for (; x < end; x += SIMD_WIDTH) {
    simd_f32 v[ROWS_AT_ONCE];
    filter_down(radius, taps, rows, x, v);
#pragma GCC unroll 8
    for (int32_t k = 0; k < ROWS_AT_ONCE; k++)
      simd_store(ring[k / ROW_BLOCK] + (size_t)(k % ROW_BLOCK) * p->stride + x, v[k]);
  }
}

/* Not inlined: otherwise the many values of the strip would occupy its registers. */
static __attribute__((noinline)) void make_block(const fused_pass *p, const pass_level *l, const float *const *rows,
                                                 int32_t x, int32_t end, int32_t y) {
  WITH_RADIUS(make_columns, l->filter, p, l, rows, x, end, y);
}

/* Extends a row of a level beyond the plane's sides by the halo of the next level's filter. */
static inline void continue_row(const fused_pass *p, const pass_level *l, int32_t y, int32_t halo) {
  float *row = ring_row(p, l, y);
  const int32_t first = p->first;
  for (int32_t i = -halo; i < 0 && l->x0 == 0; i++) row[i - first] = row[border_index(i, p->width, p->border) - first];
  for (int32_t i = p->width; i < p->width + halo && l->x1 == p->width; i++)
    row[i - first] = row[border_index(i, p->width, p->border) - first];
}

/* Makes the next rows of level 0, up to `end`, from the previous octave. */
static void halve_rows(fused_pass *p, int32_t end) {
  pass_level *l = &p->levels[0];
  for (; l->made < end; l->made++) {
    const float *from = p->finer.data + (size_t)(2 * l->made) * p->finer.stride + 2 * (size_t)l->x0;
    halve_row(from, l->x1 - l->x0, ring_row(p, l, l->made) + (l->x0 - p->first));
    continue_row(p, l, l->made, l[1].filter->radius);
  }
}

/* Makes the next rows of level s, up to `end`, from the previous level or the picture. */
static void filter_level(fused_pass *p, int32_t s, int32_t end) {
  pass_level *l = &p->levels[s];
  const int32_t radius = l->filter->radius, y = l->made, count = end - y, columns = l->x1 - l->x0;
  filter_rows_until(p, s, p->height - end < radius ? p->height : end + radius);
  const float *rows[2 * FILTER_RADIUS_MAX + PASS_ROWS];
  for (int32_t i = 0; i < 2 * radius + PASS_ROWS; i++) {
    const int32_t k = i < 2 * radius + count ? i : 2 * radius + count - 1; /* unused entries repeat the last row */
    rows[i] = l->filtered + (size_t)(border_index(y - radius + k, p->height, p->border) % l->filtered_rows) * p->stride;
  }
  for (int32_t x = 0; x < columns; x += COLUMN_TILE)
    for (int32_t k = 0; k < count; k += ROWS_AT_ONCE)
      make_block(p, l, rows + radius + k, x, x + COLUMN_TILE < columns ? x + COLUMN_TILE : columns, y + k);
  for (int32_t k = 0; k < count; k++)
    if (s + 1 < p->count)
      continue_row(p, l, y + k, l[1].filter->radius);
    else
      keep_row(p, l, y + k); /* no later level filters the rows of the last level, so they are written here */
  l->made = end;
}

static inline void make_rows(fused_pass *p, int32_t s, int32_t end) {
  if (end <= p->levels[s].made) return;
  if (s == 0 && p->finer.data)
    halve_rows(p, end);
  else
    filter_level(p, s, end);
}

/* ------------------------------------------------- a strip */

static inline int32_t within(int32_t v, int32_t end) { return v < 0 ? 0 : (v < end ? v : end); }

/* Places the strip's levels and rings in memory; no row is made yet. memory: size.floats floats, all initialised. */
static void set_levels(fused_pass *p, const fused_pass_job *job, float *memory) {
  const fused_pass_size *size = &job->size;
  const octave_view *o = job->args.detect.octaves;
  memory += WORK_OVERREAD;
  p->first = p->x0 - size->margin;
  for (int32_t s = 0; s < p->count; s++) {
    const pass_level_size *from = &size->levels[s];
    pass_level *l = &p->levels[s];
    *l = (pass_level){.rows = from->rows, .filtered_rows = from->filtered_rows, .lag = from->lag};
    l->filter = s > 0 ? &job->args.step_filter[s] : job->args.base.filter;
    l->x0 = within(p->x0 - from->halo, o->width) & ~15;
    l->x1 = within(p->x1 + from->halo, o->width);
    if (job->args.levels_kept >> s & 1) l->plane = o->levels + (size_t)s * o->level_floats;
    l->ring = memory;
    l->filtered = memory + p->stride * (size_t)l->rows;
    memory = l->filtered + p->stride * (size_t)l->filtered_rows;
  }
  if (p->finer.data) return;
  const pass_level *base = &p->levels[0];
  p->line = line_strip_of(&job->args.base.out, base->x0, base->x1, base->filter->radius, p->border, memory,
                          size->line_floats);
}

static fused_pass pass_of(const fused_pass_job *job, int32_t chunk) {
  const octave_view *o = job->args.detect.octaves;
  fused_pass p = {.count = job->size.count,
                  .width = o->width,
                  .height = o->height,
                  .x0 = chunk * job->strip,
                  .stride = job->size.stride,
                  .plane_stride = o->stride,
                  .border = job->args.base.border,
                  .base = &job->base,
                  .finer = job->args.finer};
  p.x1 = o->width - p.x0 < job->strip ? o->width : p.x0 + job->strip;
  p.stream =
      ((uintptr_t)o->levels | sizeof(float) * o->stride | sizeof(float) * o->level_floats) % STREAM_ALIGNMENT == 0;
  return p;
}

/* Begins a search of the strip's rings. */
static void begin_search(detect_strip *s, fused_pass_job *job, const fused_pass *p) {
  const int32_t border = s->args->params.border, last = p->width - border;
  for (int32_t i = 0; i < p->count; i++)
    s->levels[i] =
        (level_rows){p->levels[i].ring, p->stride, p->levels[i].rows, p->first, rows_reciprocal(p->levels[i].rows)};
  s->top.below = s->levels[p->count - 1];
  s->in_rings = true;
  s->escaped = job->escaped;
  s->escaped_capacity = job->escaped_capacity;
  s->x0 = p->x0;
  s->x1 = p->x1;
  s->y0 = border;
  s->y1 = p->height - border;
  s->from = border;
  s->to = last < s->x1 ? last : s->x1;
}

/* Follows the waiting candidates whose rows are before `end`. */
static void follow_before(detect_strip *s, int32_t end) {
  while (s->waiting > 0 && s->samples[s->first_waiting].y < end) {
    const int32_t y = s->samples[s->first_waiting].y;
    const plane_region follow = {s->x0 - PASS_MOVES, y - PASS_MOVES, s->x1 + PASS_MOVES, y + PASS_MOVES + 1};
    s->follow = &follow;
    follow_until(s, y);
  }
}

/* Processes a strip step by step: levels, search, refinement. */
static void octave_chunk(void *argument, int32_t chunk, int32_t worker) {
  fused_pass_job *job = argument;
  fused_pass p = pass_of(job, chunk);
  detect_strip s;
  dog_rows d;
  if (atomic_load_explicit(&job->overrun, memory_order_relaxed)) return;
  set_levels(&p, job, job->args.scratch + (size_t)worker * job->size.floats);
  begin_strip(&s, &job->detection, 0);
  begin_search(&s, job, &p);
  begin_rows(&s, &d);
  const int32_t behind = p.levels[p.count - 1].lag + 1, done = behind + job->size.follow_halo + p.height;
  int32_t y = s.y0, next = s.y0 - 1;
  for (int32_t end = PASS_ROWS; end - PASS_ROWS < done && !s.overrun; end += PASS_ROWS) {
    for (int32_t i = 0; i < p.count; i++) make_rows(&p, i, within(end - p.levels[i].lag, p.height));
    for (; y < s.y1 && y < end - behind; y++) {
      for (; next <= y + 1; next++) take_differences(&s, &d, next);
      search_levels(&s, &d, y);
    }
    follow_before(&s, end - behind - job->size.follow_halo);
  }
  if (p.stream) simd_stream_end();
  if (s.overrun) atomic_store_explicit(&job->overrun, true, memory_order_relaxed);
  hand_over(&s);
  atomic_fetch_add_explicit(&job->detection.count, s.count, memory_order_relaxed);
}

/* ------------------------------------------------- the octave */

static void run_alone(blur_job *job) {
  for (int32_t chunk = 0; chunk < job->run.chunks; chunk++) job->run.task(job, chunk, 0);
}

/* Makes a region of level 0 in its plane. */
static void make_lowest(const octave_args *args, const plane_region *r) {
  const plane_view out = octave_level(args->detect.octaves, 0);
  if (args->finer.data) {
    for (int32_t y = r->y0; y < r->y1; y++)
      halve_row(args->finer.data + (size_t)(2 * y) * args->finer.stride + 2 * (size_t)r->x0, r->x1 - r->x0,
                out.data + (size_t)y * out.stride + r->x0);
    return;
  }
  base_args base = args->base;
  blur_job job;
  base.region = *r;
  SIMD_NAME(begin_base)(&job, &base, 1);
  run_alone(&job);
}

/* Makes a region of level S+1 in its plane, from level S. */
static void make_highest(const octave_args *args, const plane_region *r) {
  const octave_view *o = args->detect.octaves;
  const int32_t level = args->detect.params.scales + 1;
  const blur_args blur = {.in = octave_level(o, level - 1),
                          .out = octave_level(o, level),
                          .work = args->base.work,
                          .border = args->base.border,
                          .filter = &args->step_filter[level],
                          .region = *r};
  blur_job job;
  SIMD_NAME(begin_blur)(&job, &blur, 1);
  run_alone(&job);
}

/* Recomputes the samples of levels 0 and S+1 that a fit at this sample reads, if these levels are not stored.
 * Escaped candidates are so few that this costs less than storing the levels. */
static void make_levels_about(const void *owner, const escaped_candidate *at) {
  const octave_args *args = owner;
  const int32_t scales = args->detect.params.scales;
  const plane_view plane = octave_level(args->detect.octaves, 0);
  const plane_region sample = {at->x, at->y, at->x + 1, at->y + 1};
  if (at->level == 1 && !(args->levels_kept & 1)) {
    const plane_region r = region_about(sample, 1, &plane);
    make_lowest(args, &r);
  }
  if (at->level >= scales - 1 && !(args->levels_kept >> (scales + 1) & 1)) {
    /* level S+2 is made only from a sample of level S on; radius of its filter */
    const int32_t halo = at->level < scales ? 0 : args->step_filter[scales + 2].radius;
    plane_region r = region_about(sample, 1 + halo, &plane);
    if (r.x1 < plane.width) r.x1++; /* top_patch reads a fourth column besides the three that it needs */
    make_highest(args, &r);
  }
}

/* Follows the escaped candidates in the planes. False: their number exceeded the capacity. */
static bool follow_escaped(fused_pass_job *job) {
  const uint32_t escaped = atomic_load(&job->detection.escaped);
  detect_strip s;
  if (escaped > job->escaped_capacity) return false;
  begin_strip(&s, &job->detection, 0);
  s.make_about = make_levels_about;
  s.owner = &job->args;
  for (uint32_t i = 0; i < escaped; i++) follow_on(&s, job->escaped[i]);
  hand_over(&s);
  return true;
}

static stage_status may_go_on(const octave_args *args, stage_status st) {
  return st == STAGE_OK && args->report && !args->report(args->owner, 0) ? STAGE_CANCELLED : st;
}

/* Runs the separate stages instead, because more candidates wait or escape than a fused pass has capacity for. */
static stage_status octave_by_stages(stage_queue *queue, const octave_args *args) {
  const octave_view *o = args->detect.octaves;
  const halve_args halve = {.in = args->finer, .out = octave_level(o, 0)};
  stage_status st =
      may_go_on(args, args->finer.data ? SIMD_NAME(halve)(queue, &halve) : SIMD_NAME(base)(queue, &args->base));
  for (int32_t s = 1; s <= args->detect.params.scales + 1 && st == STAGE_OK; s++) {
    const blur_args blur = {.in = octave_level(o, s - 1),
                            .out = octave_level(o, s),
                            .work = args->base.work,
                            .border = args->base.border,
                            .filter = &args->step_filter[s]};
    st = may_go_on(args, SIMD_NAME(blur)(queue, &blur));
  }
  return st == STAGE_OK ? SIMD_NAME(detect)(queue, &args->detect) : st;
}

stage_status SIMD_NAME(octave)(stage_queue *queue, const octave_args *args) {
  fused_pass_job job;
  fused_pass_job_begin(&job, args, queue_threads(queue), octave_chunk);
  /* Scratch memory must be initialised, because loads include parts of it that are never used. */
  memset(args->scratch, 0, sizeof(float) * job.size.floats * (size_t)queue_threads(queue));
  if (!args->finer.data) SIMD_NAME(begin_base)(&job.base, &args->base, 1);
  SIMD_NAME(begin_detect)(&job.detection, &args->detect);
  const stage_status st = fused_pass_job_run(queue, &job);
  if (st != STAGE_OK) return st;
  if (atomic_load(&job.overrun) || !follow_escaped(&job)) return octave_by_stages(queue, args);
  detect_job_end(&job.detection);
  return STAGE_OK;
}
