/* Builds the jobs of a frame, the dependencies of each of their chunks, and their order. */
#include "cpu/schedule/frame_graph.h"

#include "cpu/schedule/stage_jobs.h"
#include "cpu/schedule/work_graph.h"

/* One level of an octave: level 0 is the base or a halved level; the others come from level steps. */
typedef struct level_step {
  graph_job job;
  const struct level_step *from; /* the source level; null: the picture */
  const graph_job *after;        /* null, or a job that must be done first because this level reuses its memory */
  int32_t height;
  int32_t rows;   /* rows of a band of this level */
  int32_t factor; /* number of rows of `from` per row of this level */
  int32_t halo;   /* halo: number of further rows of `from` that are read above and below */
  uint64_t samples;
  union {
    blur_job blur;
    halve_job halve;
  } state;
} level_step;

typedef struct frame_graph {
  const frame_graph_args *args;
  graph_job detect[2], list[2], orient, describe; /* detect and list: [0] for the first octave, [1] for all others */
  detect_job detection[2];
  orient_job orientation;
  describe_job description;
  int32_t detections; /* number of detection jobs */
  atomic_int listed;  /* number of detection jobs whose keypoints are listed */
  work_graph work;
  graph_job **jobs;        /* [work.count] in order of preference */
  int32_t before_features; /* number of jobs up to and including the last list */
  int32_t reported;        /* number of jobs reported as progress */
  level_step steps[];      /* [octave * (levels + 1) + level] */
} frame_graph;

_Static_assert((int)WORK_BANDS_MAX <= (int)GRAPH_BANDS_MAX, "bands of a step");

/* Jobs besides the levels: two lists, orientation, description and two detections. */
enum { OTHER_JOBS = 6 };

static size_t steps_of(int32_t octave_count, int32_t levels) { return (size_t)octave_count * (size_t)(levels + 1); }

size_t frame_graph_bytes(int32_t octave_count, int32_t scales) {
  const size_t steps = steps_of(octave_count, scales + 1);
  return sizeof(frame_graph) + steps * sizeof(level_step) + (steps + OTHER_JOBS) * sizeof(graph_job *);
}

frame_graph_size frame_graph_sizes(const stage_ops *ops, int32_t threads) {
  const bool has_jobs = ops->jobs[STAGE_BASE] && ops->jobs[STAGE_BLUR] && ops->jobs[STAGE_HALVE] &&
                        ops->jobs[STAGE_DETECT] && ops->jobs[STAGE_ORIENT] && ops->jobs[STAGE_DESCRIBE];
  return threads > 1 && has_jobs ? frame_graph_bytes : NULL;
}

/* ------------------------------------------------- dependencies of a chunk */

/* Whether rows first..end-1 of a level are made. Rows outside the level count as made. */
static bool rows_are_made(const level_step *s, int32_t first, int32_t end) {
  if (first < 0) first = 0;
  if (end > s->height) end = s->height;
  return end <= first || graph_bands_are_done(&s->job, first / s->rows, (end - 1) / s->rows);
}

static bool level_is_ready(void *owner, graph_job *job, int32_t chunk) {
  const level_step *s = owner;
  if (s->after && !graph_job_is_done(s->after)) return false;
  const int32_t first = chunk / job->band_chunks * s->rows;
  const int32_t end = s->height - first < s->rows ? s->height : first + s->rows;
  return rows_are_made(s->from, s->factor * first - s->halo, s->factor * end + s->halo);
}

static const level_step *step_of(const frame_graph *g, int32_t octave, int32_t level) {
  return &g->steps[octave * (g->args->levels + 1) + level];
}

/* Whether the rows that a chunk of detection reads are made. A candidate moves by one sample in a step, and level S+2
 * around it is made from level S+1. OpenCV's candidates may move farther. A chunk also waits for adjacent border rows.
 * So all levels are complete once detection is done, and then their memory may be reused, and orientation may read any
 * row. */
static bool detect_is_ready(void *owner, graph_job *job, int32_t chunk) {
  const frame_graph *g = owner;
  const int32_t others = job == &g->detect[1];
  const detect_job *d = &g->detection[others];
  const int32_t octave = detect_octave_of(d, chunk);
  const plane_region r = detect_region_of(d, octave, chunk);
  const level_step *top = step_of(g, octave + others, g->args->levels);
  if (d->args.params.refine_rule == RULE_OPENCV) return graph_job_is_done(&top->job);
  int32_t halo = REFINE_STEPS + 2 + d->args.top_filter->radius;
  if (halo < d->args.params.border) halo = d->args.params.border;
  return rows_are_made(top, r.y0 - halo, r.y1 + halo);
}

/* The keypoints of the later octaves are listed only after the keypoints of the first octave. */
static bool list_is_ready(void *owner, graph_job *job, int32_t chunk) {
  const frame_graph *g = owner;
  (void)chunk;
  if (job == &g->list[0]) return graph_job_is_done(&g->detect[0]);
  return graph_job_is_done(&g->list[0]) && graph_job_is_done(&g->detect[1]);
}

/* Whether the items of a chunk are listed. The last chunk may be incomplete; it is ready once all items are listed. */
static bool items_are_ready(graph_job *job, int32_t chunk, uint32_t listed, uint32_t items, bool all) {
  if (all) graph_job_close(job, chunks_of_items(0, listed, items));
  const uint64_t first = (uint64_t)chunk * items;
  return first < listed && (all || first + items <= listed);
}

static bool orient_is_ready(void *owner, graph_job *job, int32_t chunk) {
  const frame_graph *g = owner;
  const bool all = atomic_load_explicit(&g->listed, memory_order_acquire) == g->detections;
  const uint32_t listed = atomic_load_explicit(&g->orientation.end, memory_order_acquire);
  return items_are_ready(job, chunk, listed, ORDERED_ITEMS, all);
}

/* Whether the features of a chunk are listed and their levels made: pooled descriptors also read levels of coarser
 * octaves. */
static bool describe_is_ready(void *owner, graph_job *job, int32_t chunk) {
  const frame_graph *g = owner;
  const ordered_list *list = &g->orientation.list;
  const int32_t chunks = atomic_load_explicit(&g->orient.chunks, memory_order_acquire);
  const bool all = atomic_load_explicit(&list->appended_chunks, memory_order_acquire) == chunks;
  const uint32_t features = atomic_load_explicit(&list->appended, memory_order_acquire);
  if (!all && g->args->describe->params.domain.count > 0) return false;
  return items_are_ready(job, chunk, features, DESCRIBE_ITEMS, all);
}

/* ------------------------------------------------- the jobs */

/* Lists the keypoints of a detection. */
static void list_keypoints(void *state, int32_t chunk, int32_t worker) {
  frame_graph *g = state;
  (void)chunk;
  (void)worker;
  const int32_t which = atomic_load_explicit(&g->listed, memory_order_relaxed);
  const keypoint_list *k = &g->args->detect[which].keypoints;
  detect_job_end(&g->detection[which]);
  atomic_store_explicit(&g->orientation.end, *k->count < k->capacity ? *k->count : k->capacity, memory_order_release);
  atomic_store_explicit(&g->listed, which + 1, memory_order_release);
}

static void add_job(frame_graph *g, graph_job *job, bool (*ready)(void *, graph_job *, int32_t), void *owner) {
  job->ready = ready;
  job->owner = owner;
  g->jobs[g->work.count++] = job;
}

/* Divides a level into bands, which completes its job. */
static void divide_in_bands(const frame_graph_args *a, level_step *s, int32_t octave, int32_t threads) {
  blur_job *b = &s->state.blur;
  const octave_view *o = &a->octaves[octave];
  b->work = pyramid_work_in_bands(o->width, o->height, b->filter->radius, threads);
  b->run.chunks = b->work.strips * b->work.bands;
  /* sizes the scratch of one thread for all octaves that share it */
  b->scratch_floats = 0;
  for (int32_t i = octave > 0; i < (octave > 0 ? a->octave_count : 1); i++) {
    const size_t floats = pyramid_work_band_floats(a->octaves[i].width, a->octaves[i].height, a->radius_max, threads);
    if (floats / (size_t)threads > b->scratch_floats) b->scratch_floats = floats / (size_t)threads;
  }
  b->stream = false; /* the output is read again soon, so it should stay in the caches */
  s->rows = b->work.band;
  graph_job_begin(&s->job, b->run.task, b, b->run.chunks, b->work.strips);
}

static void add_halved(frame_graph *g, level_step *s, int32_t octave) {
  const frame_graph_args *a = g->args;
  const halve_args args = {.in = octave_level(&a->octaves[octave - 1], a->scales),
                           .out = octave_level(&a->octaves[octave], 0)};
  halve_job *h = &s->state.halve;
  a->ops->jobs[STAGE_HALVE]->halve(h, &args);
  const int32_t least = (s->height - 1) / GRAPH_BANDS_MAX + 1;
  if (h->rows < least) h->rows = least;
  s->rows = h->rows;
  s->factor = 2;
  s->from = step_of(g, octave - 1, a->scales);
  if (octave == 1) s->after = a->detect ? &g->detect[0] : &step_of(g, 0, a->levels)->job;
  graph_job_begin(&s->job, h->run.task, h, (s->height - 1) / h->rows + 1, 1);
  add_job(g, &s->job, level_is_ready, s);
}

static void add_blurred(frame_graph *g, level_step *s, int32_t octave, int32_t level, int32_t threads) {
  const frame_graph_args *a = g->args;
  const octave_view *o = &a->octaves[octave];
  const blur_args args = {.in = octave_level(o, level - 1),
                          .out = octave_level(o, level),
                          .work = {.data = a->scratch[octave > 0]},
                          .border = a->base.border,
                          .filter = &a->step_filter[level]};
  a->ops->jobs[STAGE_BLUR]->blur(&s->state.blur, &args, threads);
  divide_in_bands(a, s, octave, threads);
  s->factor = 1;
  s->halo = args.filter->radius;
  s->from = s - 1;
  add_job(g, &s->job, level_is_ready, s);
}

/* Adds the jobs of the levels of an octave. */
static void add_octave(frame_graph *g, int32_t octave, int32_t threads) {
  const frame_graph_args *a = g->args;
  for (int32_t level = 0; level <= a->levels; level++) {
    level_step *s = &g->steps[octave * (a->levels + 1) + level];
    s->from = NULL;
    s->after = NULL;
    s->height = a->octaves[octave].height;
    s->samples = level > 0 ? (uint64_t)a->octaves[octave].width * (uint64_t)s->height : 0;
    s->halo = 0;
    if (level > 0) {
      add_blurred(g, s, octave, level, threads);
    } else if (octave > 0) {
      add_halved(g, s, octave);
    } else {
      a->ops->jobs[STAGE_BASE]->base(&s->state.blur, &a->base, threads);
      divide_in_bands(a, s, 0, threads);
      add_job(g, &s->job, NULL, NULL);
    }
  }
}

static void add_detection(frame_graph *g, int32_t which) {
  detect_job *d = &g->detection[which];
  g->args->ops->jobs[STAGE_DETECT]->detect(d, &g->args->detect[which]);
  graph_job_begin(&g->detect[which], d->run.task, d, d->run.chunks, 0);
  graph_job_begin(&g->list[which], list_keypoints, g, 1, 0);
  add_job(g, &g->detect[which], detect_is_ready, g);
  add_job(g, &g->list[which], list_is_ready, g);
}

/* Adds the jobs of orientation and description. False: out of memory. */
static bool add_features(frame_graph *g) {
  const frame_graph_args *a = g->args;
  if (!a->orient) return true;
  if (!a->ops->jobs[STAGE_ORIENT]->orient(&g->orientation, a->orient)) return false;
  graph_job_begin(&g->orient, g->orientation.run.task, &g->orientation, GRAPH_CHUNKS_OPEN, 0);
  add_job(g, &g->orient, orient_is_ready, g);
  if (!a->describe) return true;
  a->ops->jobs[STAGE_DESCRIBE]->describe(&g->description, a->describe);
  g->description.end = &g->orientation.list.appended;
  graph_job_begin(&g->describe, g->description.run.task, &g->description, GRAPH_CHUNKS_OPEN, 0);
  add_job(g, &g->describe, describe_is_ready, g);
  return true;
}

static bool build(frame_graph *g, const frame_graph_args *args, int32_t threads) {
  const int32_t octaves = args->octave_count;
  g->args = args;
  g->jobs = (graph_job **)(void *)&g->steps[steps_of(octaves, args->levels)];
  g->work = (work_graph){.jobs = g->jobs};
  g->detections = args->detect ? (octaves > 1 ? 2 : 1) : 0;
  g->reported = 0;
  atomic_init(&g->listed, 0);
  atomic_init(&g->orientation.end, 0);
  for (int32_t o = 0; o < octaves; o++) {
    add_octave(g, o, threads);
    if (args->detect && o == 0) add_detection(g, 0);
  }
  if (g->detections > 1) add_detection(g, 1);
  /* later stages come first, because they read data that has just been made and is still in the caches */
  g->before_features = g->work.count;
  for (int32_t i = 0, j = g->work.count - 1; i < j; i++, j--) {
    graph_job *job = g->jobs[i];
    g->jobs[i] = g->jobs[j];
    g->jobs[j] = job;
  }
  return add_features(g);
}

/* ------------------------------------------------- the run */

/* Returns the samples that a job reports as progress, 0 for a job that reports none. */
static uint64_t samples_of(const frame_graph *g, const graph_job *job) {
  const frame_graph_args *a = g->args;
  uint64_t first = (uint64_t)a->octaves[0].width * (uint64_t)a->octaves[0].height, others = 0;
  if (job->ready == level_is_ready) return ((const level_step *)job->owner)->samples;
  for (int32_t o = 1; o < a->octave_count; o++)
    others += (uint64_t)a->octaves[o].width * (uint64_t)a->octaves[o].height;
  if (job == &g->detect[0]) return first * a->stage_levels;
  if (job == &g->detect[1]) return others * a->stage_levels;
  return job == &g->orient ? (first + others) * a->stage_levels : 0;
}

/* Reports the finished jobs as progress, in the order of the stages. */
static bool report_jobs(void *owner) {
  frame_graph *g = owner;
  for (; g->reported < g->work.count; g->reported++) {
    const graph_job *job =
        g->jobs[g->reported < g->before_features ? g->before_features - 1 - g->reported : g->reported];
    if (!graph_job_is_done(job)) break;
    const uint64_t samples = samples_of(g, job);
    if (samples > 0 && !g->args->report(g->args->owner, samples)) return false;
  }
  return true;
}

stage_status frame_graph_run(stage_queue *queue, const frame_graph_args *args) {
  frame_graph *g = args->work;
  if (!build(g, args, queue_threads(queue))) return STAGE_OUT_OF_MEMORY;
  if (args->report) {
    g->work.poll = report_jobs;
    g->work.owner = g;
  }
  work_graph_run(queue, &g->work);
  const bool stopped = atomic_load(&g->work.stopped) || (args->report && !report_jobs(g));
  if (args->orient) ordered_end(&g->orientation.list);
  return stopped ? STAGE_CANCELLED : STAGE_OK;
}
