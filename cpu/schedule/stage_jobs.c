/* Strips, bands and scratch of the pyramid's steps. */
#include "cpu/schedule/stage_jobs.h"

enum {
  LINE_FLOATS = 16,      /* floats of a cache line */
  CHUNKS_PER_THREAD = 3, /* chunks per thread, so that other threads can take over the work of a delayed one */
  BANDS_EXTRA = 8,       /* number of bands beyond two for each thread */
  BANDS_MIN = 16,        /* minimum number of bands if steps follow each other by bands */
  LINES_OUTSIDE_RING = 4 /* number of lines of the base besides the ring: see pyramid_simd.c */
};

static int32_t ceil_div(int32_t a, int32_t b) { return a / b + (a % b != 0); }

static size_t whole_lines(size_t floats) { return (floats + LINE_FLOATS - 1) & ~(size_t)(LINE_FLOATS - 1); }

/* Clamps the columns of a strip, and rounds them to a multiple of 64. */
static int32_t clamp_strip(int32_t columns) {
  const int32_t strip = (columns + 63) & ~63;
  if (strip < WORK_STRIP_MIN) return WORK_STRIP_MIN;
  return strip < WORK_STRIP_MAX ? strip : WORK_STRIP_MAX;
}

/* Returns the columns of a strip. */
static int32_t strip_of(int32_t width, int32_t threads) {
  int32_t strip = WORK_STRIP_MAX;
  if (threads > 1) strip = ceil_div(width, threads < 64 ? CHUNKS_PER_THREAD * threads : CHUNKS_PER_THREAD * 64);
  return clamp_strip(strip);
}

/* Returns the stride of a ring: a multiple of eight cache lines plus nine lines, so that the rows of a column are in
 * different sets of the L1 cache. */
static size_t ring_stride_of(int32_t columns) {
  return (whole_lines((size_t)columns + 7 * LINE_FLOATS) & ~(size_t)(8 * LINE_FLOATS - 1)) + 9 * LINE_FLOATS;
}

static int32_t ring_rows_of(int32_t height, int32_t radius) {
  const int32_t rows = 2 * radius + WORK_BLOCK_ROWS;
  return rows < height ? rows : height;
}

static size_t line_floats_of(int32_t columns, int32_t radius) {
  return whole_lines((size_t)columns + 2 * (size_t)radius + 2 * WORK_OVERREAD);
}

/* Computes the size of a thread's scratch from the strips. */
static void measure_scratch(pyramid_work *w, int32_t width, int32_t plane_height, int32_t radius) {
  const int32_t columns = w->strip < width ? w->strip : width;
  w->ring_rows = ring_rows_of(plane_height, radius);
  w->ring_stride = ring_stride_of(columns);
  w->line_floats = line_floats_of(columns, radius);
  w->thread_floats = w->ring_stride * (size_t)w->ring_rows + LINES_OUTSIDE_RING * w->line_floats;
}

static int32_t rows_of_band(int32_t height, int32_t bands) {
  const int32_t band = ceil_div(ceil_div(height, bands), WORK_BLOCK_ROWS) * WORK_BLOCK_ROWS;
  return band < WORK_BAND_MIN ? WORK_BAND_MIN : band;
}

pyramid_work pyramid_work_of(int32_t width, int32_t height, int32_t plane_height, int32_t radius, int32_t threads) {
  pyramid_work w;
  assert(width >= 1 && height >= 1 && radius >= 0 && threads >= 1);
  w.strip = strip_of(width, threads);
  w.strips = ceil_div(width, w.strip);
  w.band = height;
  if (threads > 1)
    w.band = rows_of_band(height, ceil_div(CHUNKS_PER_THREAD * (threads < 4096 ? threads : 4096), w.strips));
  w.bands = ceil_div(height, w.band);
  measure_scratch(&w, width, plane_height, radius);
  return w;
}

size_t pyramid_work_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads) {
  return pyramid_work_of(width, height, height, radius_max, threads).thread_floats * (size_t)threads;
}

pyramid_work pyramid_work_in_bands(int32_t width, int32_t height, int32_t radius, int32_t threads) {
  pyramid_work w;
  assert(width >= 1 && height >= 1 && radius >= 0 && threads >= 1);
  const int32_t most = threads < WORK_BANDS_MAX ? threads : WORK_BANDS_MAX;
  int32_t bands = 2 * most + BANDS_EXTRA;
  if (bands < BANDS_MIN) bands = BANDS_MIN;
  if (bands > WORK_BANDS_MAX) bands = WORK_BANDS_MAX;
  w.band = rows_of_band(height, bands);
  w.bands = ceil_div(height, w.band);
  const int32_t strips = w.bands >= 2 * most ? 1 : ceil_div(2 * most, w.bands);
  w.strip = clamp_strip(ceil_div(width, strips));
  w.strips = ceil_div(width, w.strip);
  measure_scratch(&w, width, height, radius);
  return w;
}

size_t pyramid_work_band_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads) {
  return pyramid_work_in_bands(width, height, radius_max, threads).thread_floats * (size_t)threads;
}

/* Parts of the jobs that are common to all instruction sets. */

void blur_job_divide(blur_job *job, int32_t threads) {
  const plane_region *r = &job->region;
  job->run.chunks = 0;
  if (r->x1 <= r->x0 || r->y1 <= r->y0) return;
  job->work = pyramid_work_of(r->x1 - r->x0, r->y1 - r->y0, job->out.height, job->filter->radius, threads);
  job->scratch_floats = job->work.thread_floats;
  job->run.chunks = job->work.strips * job->work.bands;
}

/* Returns the region of an octave that is searched. */
static plane_region search_of(const detect_args *args, int32_t octave_index) {
  const octave_view *o = &args->octaves[octave_index];
  return args->part ? args->part->search : (plane_region){0, 0, o->width, o->height};
}

static int32_t strips_of(const plane_region *r) { return (r->x1 - r->x0 + DETECT_STRIP - 1) / DETECT_STRIP; }
static int32_t bands_of(const plane_region *r) { return (r->y1 - r->y0 + DETECT_BAND - 1) / DETECT_BAND; }

int32_t detect_octave_of(const detect_job *job, int32_t chunk) {
  int32_t octave_index = 0;
  while (chunk >= job->first_chunk[octave_index + 1]) octave_index++;
  return octave_index;
}

plane_region detect_region_of(const detect_job *job, int32_t octave_index, int32_t chunk) {
  const octave_view *o = &job->args.octaves[octave_index];
  const plane_region r = search_of(&job->args, octave_index);
  const int32_t border = job->args.params.border, strips = strips_of(&r);
  const int32_t strip = (chunk - job->first_chunk[octave_index]) % strips;
  const int32_t band = (chunk - job->first_chunk[octave_index]) / strips;
  plane_region at = {.x0 = r.x0 + strip * DETECT_STRIP, .y0 = r.y0 + band * DETECT_BAND};
  at.x1 = r.x1 - at.x0 < DETECT_STRIP ? r.x1 : at.x0 + DETECT_STRIP;
  at.y1 = r.y1 - at.y0 < DETECT_BAND ? r.y1 : at.y0 + DETECT_BAND;
  at.y0 = at.y0 < border ? border : at.y0;
  at.y1 = at.y1 > o->height - border ? o->height - border : at.y1;
  return at;
}

void detect_job_begin(detect_job *job, const detect_args *args, queue_task task) {
  assert(args->params.border >= 1 && args->params.scales <= SCALES_MAX && args->octave_count >= 1);
  job->args = *args;
  job->first_chunk[0] = 0;
  for (int32_t i = 0; i < args->octave_count; i++) {
    const plane_region r = search_of(args, i);
    job->first_chunk[i + 1] = job->first_chunk[i] + strips_of(&r) * bands_of(&r);
  }
  job->run = (stage_chunks){task, job->first_chunk[args->octave_count]};
  keypoint_records_begin(&job->records, args);
  atomic_init(&job->count, 0);
  atomic_init(&job->escaped, 0);
}

void detect_job_end(const detect_job *job) {
  const detect_args *args = &job->args;
  keypoint_records_end(&job->records, args);
  if (args->part) *args->part->escaped_count = atomic_load(&job->escaped);
  if (args->candidates) *args->candidates = atomic_load(&job->count);
}

bool orient_job_begin(orient_job *job, const orient_args *args, queue_task task) {
  const keypoint_list *k = &args->keypoints;
  const uint32_t end = *k->count < k->capacity ? *k->count : k->capacity;
  job->args = *args;
  atomic_init(&job->end, end);
  job->run = (stage_chunks){task, chunks_of_items(args->first_keypoint, end, ORDERED_ITEMS)};
  return ordered_start(&job->list, &args->features);
}

void describe_job_begin(describe_job *job, const describe_args *args, queue_task task) {
  const feature_list *f = &args->features;
  const uint32_t end = *f->count < f->capacity ? *f->count : f->capacity;
  job->args = *args;
  atomic_init(&job->all_listed, end);
  job->end = &job->all_listed;
  job->run = (stage_chunks){task, chunks_of_items(args->first_feature, end, DESCRIBE_ITEMS)};
}
