/*
 * Times of the CPU's pyramid and detection, stage by stage, for every variant this machine can run.
 *
 * usage: bench_hartsift variants [width height [threads [repeats]]]
 * The picture is a generated scene. Variants are interleaved in one run, so that a change of the machine's speed
 * affects all of them. Prints medians of all repeats: processor time on one thread, else wall time. Every level is
 * compared with the first variant's before it is timed. Columns: minimum bytes moved per sample, the resulting rate,
 * and operations (a symmetric pair of taps: an addition, a multiplication and an addition).
 */
#include <time.h>

#include "os/os_threads.h"
#include "bench/hartsift/bench_modes.h"
#include "cpu/dispatch.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/number_tools.h"
#include "stages/pyramid.h"

enum {
  SCALES = 3,
  LEVELS = SCALES + 2 /* LEVELS: float planes of an octave in memory */,
  REPEATS_MAX = 1000,
  STAGES = 4,
  VARIANTS_MAX = 4,
  KEYPOINTS_MAX = 1 << 20
};
static const char *const stage_names[STAGES] = {"base", "blur", "halve", "detect"};

/* All octaves at once, so that a stage is timed on memory written by the stage before, as in a frame. */
typedef struct pyramid {
  pyramid_geometry geometry;
  octave_view octaves[OCTAVES_MAX];
  gaussian_filter base_filter, step_filter[LEVELS + 1];
  float *work;
  keypoint_list keypoints;
  source_view source;
  uint64_t found;
} pyramid;

typedef struct variant_times {
  const char *name;
  const stage_ops *ops;
  double ms[STAGES][REPEATS_MAX];
} variant_times;

/* With one thread, processor time is measured, because other programs disturb it less. */
static clockid_t timed_clock = CLOCK_PROCESS_CPUTIME_ID;

static void *take(size_t bytes) {
  void *p = hs_memory_alloc(NULL, bytes);
  if (!p) exit(1);
  memset(p, 0, bytes);
  return p;
}

static void make_pyramid(pyramid *p, const hs_image *image, int32_t threads) {
  const pyramid_rules rules = {.first_octave = -1, .scales = SCALES, .border = 5, .octave_rule = RULE_LOWE};
  p->source = (source_view){.data = image->data,
                            .width = image->width,
                            .height = image->height,
                            .stride_bytes = image->stride_bytes ? image->stride_bytes : (size_t)image->width};
  if (pyramid_geometry_of(image->width, image->height, &rules, &p->geometry) != STAGE_OK) exit(1);
  scalespace_filter(scalespace_base_sigma(1.6, 0.5, -1), RULE_LOWE, &p->base_filter);
  int32_t radius = p->base_filter.radius;
  for (int32_t s = 1; s <= LEVELS; s++) {
    scalespace_filter(scalespace_step_sigma(1.6, SCALES, s), RULE_LOWE, &p->step_filter[s]);
    if (p->step_filter[s].radius > radius) radius = p->step_filter[s].radius;
  }
  size_t work = 0;
  for (int32_t o = 0; o < p->geometry.octave_count; o++) {
    const int32_t width = p->geometry.width[o], height = p->geometry.height[o];
    octave_view *v = &p->octaves[o];
    *v = (octave_view){.stride = ((size_t)width + 15) & ~(size_t)15, .width = width, .height = height, .octave = o - 1};
    v->level_floats = v->stride * (size_t)height + 64;
    v->levels = take(sizeof(float) * v->level_floats * LEVELS);
    const stage_ops *ops = cpu_variant_ops(cpu_level_name());
    const size_t bytes = sizeof(float) * ops->pyramid_work_floats(width, height, radius, threads),
                 more = ops->detect_work_bytes(&p->geometry, SCALES, KEYPOINTS_MAX);
    work = bytes > work ? bytes : work;
    work = more > work ? more : work;
  }
  p->work = take(work);
  keypoint_list *k = &p->keypoints;
  *k = (keypoint_list){.count = take(sizeof *k->count), .capacity = KEYPOINTS_MAX};
  k->x = take(sizeof(float) * KEYPOINTS_MAX);
  k->y = take(sizeof(float) * KEYPOINTS_MAX);
  k->sigma = take(sizeof(float) * KEYPOINTS_MAX);
  k->response = take(sizeof(float) * KEYPOINTS_MAX);
  k->column = take(sizeof(int32_t) * KEYPOINTS_MAX);
  k->row = take(sizeof(int32_t) * KEYPOINTS_MAX);
  k->octave = take(sizeof(int16_t) * KEYPOINTS_MAX);
  k->level = take(sizeof(int16_t) * KEYPOINTS_MAX);
}

/* Runs all octaves once and adds the time of each stage. */
static void run_pass(const stage_ops *ops, stage_queue *queue, pyramid *p, double ms[STAGES]) {
  *p->keypoints.count = 0;
  for (int32_t o = 0; o < p->geometry.octave_count; o++) {
    const octave_view *v = &p->octaves[o];
    plane_view work = octave_level(v, 0);
    work.data = p->work;
    const double start = clock_s(timed_clock) * 1e3;
    if (o == 0) {
      const base_args base = {
          .source = p->source, .first_octave = -1, .filter = &p->base_filter, .work = work, .out = octave_level(v, 0)};
      ops->base(queue, &base);
    } else {
      const halve_args halve = {octave_level(&p->octaves[o - 1], SCALES), octave_level(v, 0), {0}};
      ops->halve(queue, &halve);
    }
    const double based = clock_s(timed_clock) * 1e3;
    ms[o == 0 ? 0 : 2] += based - start;
    for (int32_t s = 1; s < LEVELS; s++) {
      const blur_args blur = {octave_level(v, s - 1), octave_level(v, s), work,
                              BORDER_REFLECT_101,     &p->step_filter[s], {0}};
      ops->blur(queue, &blur);
    }
    ms[1] += clock_s(timed_clock) * 1e3 - based;
  }
  const double blurred = clock_s(timed_clock) * 1e3;
  const detect_args detect = {.octaves = p->octaves,
                              .octave_count = p->geometry.octave_count,
                              .top_filter = &p->step_filter[SCALES + 2],
                              .params = {.scales = SCALES,
                                         .sigma0 = 1.6f,
                                         .grid_shift = 0.25f,
                                         .border = 5,
                                         .candidate_above = 0.5f * 0.04f / 3.0f,
                                         .settle = 0.6f,
                                         .contrast_above = 0.04f / 3.0f,
                                         .edge = 10.0f},
                              .filter = {.x0 = INT32_MIN, .y0 = INT32_MIN, .x1 = INT32_MAX, .y1 = INT32_MAX},
                              .work = p->work,
                              .keypoints = p->keypoints,
                              .candidates = &p->found};
  ops->detect(queue, &detect);
  ms[3] += clock_s(timed_clock) * 1e3 - blurred;
}

/* Computes the minimum of bytes moved and the operations of a stage over all octaves, when stages are not fused. */
static void stage_cost(const pyramid *p, int stage, double *bytes, double *operations) {
  *bytes = *operations = 0.0;
  for (int32_t o = 0; o < p->geometry.octave_count; o++) {
    const double samples = (double)p->geometry.width[o] * (double)p->geometry.height[o];
    if (stage == 0 && o == 0) {
      *bytes = samples * (4.0 + 0.25);
      *operations = samples * 2.0 * (1.0 + 3.0 * p->base_filter.radius);
    }
    for (int32_t s = 1; s < LEVELS && stage == 1; s++) {
      *bytes += samples * 8.0;
      *operations += samples * 2.0 * (1.0 + 3.0 * p->step_filter[s].radius);
    }
    if (stage == 2 && o > 0) *bytes += samples * 12.0;
    if (stage == 3) {
      *bytes += samples * 4.0 * LEVELS;
      *operations += samples * (LEVELS - 1 + SCALES);
    }
  }
}

static uint64_t digest_of(const pyramid *p) {
  uint64_t h = p->found ^ (uint64_t)*p->keypoints.count << 32;
  for (int32_t o = 0; o < p->geometry.octave_count; o++)
    for (int32_t s = 0; s < LEVELS; s++) {
      const plane_view v = octave_level(&p->octaves[o], s);
      for (int32_t y = 0; y < v.height; y++)
        for (int32_t x = 0; x < v.width; x++) {
          uint32_t bits;
          memcpy(&bits, v.data + (size_t)y * v.stride + (size_t)x, sizeof bits);
          h = (h ^ bits) * 1099511628211u;
        }
    }
  return h;
}

static void print_variant(const pyramid *p, variant_times *t, int repeats) {
  double sum = 0.0;
  for (int s = 0; s < STAGES; s++) {
    double bytes, operations;
    stage_cost(p, s, &bytes, &operations);
    const bench_figures f = bench_summary(t->ms[s], repeats);
    sum += f.median;
    printf("%-8s %-8s %9.3f %9.3f %9.1f %9.1f\n", t->name, stage_names[s], f.median, f.least, bytes / f.median * 1e-6,
           operations / f.median * 1e-6);
  }
  printf("%-8s %-8s %9.3f\n", t->name, "sum", sum);
}

/* Finds the variants of this machine and warms each up by one run. Returns their number, or -1 if two differ. */
static int find_variants(variant_times times[VARIANTS_MAX], stage_queue *queue, pyramid *p) {
  static const char *const names[VARIANTS_MAX] = {"sse2", "avx2", "avx512", "neon"};
  uint64_t digest = 0;
  int count = 0;
  for (int v = 0; v < VARIANTS_MAX; v++) {
    const stage_ops *ops = cpu_variant_ops(names[v]);
    if (!ops) continue;
    double warm[STAGES] = {0.0};
    run_pass(ops, queue, p, warm);
    if (count > 0 && digest != digest_of(p)) {
      fprintf(stderr, "%s differs from %s\n", names[v], times[0].name);
      return -1;
    }
    digest = digest_of(p);
    times[count].name = names[v];
    times[count++].ops = ops;
  }
  return count;
}

int mode_variants(int argc, char **argv) {
  static variant_times times[VARIANTS_MAX];
  static pyramid p;
  const int32_t width = argc > 2 ? atoi(argv[1]) : 1920, height = argc > 2 ? atoi(argv[2]) : 1080;
  const int32_t threads = argc > 3 ? atoi(argv[3]) : 1;
  int repeats = argc > 4 ? atoi(argv[4]) : 15, count = 0;
  if (repeats < 1 || repeats > REPEATS_MAX || threads < 1) return 2;
  if (threads > 1) timed_clock = CLOCK_MONOTONIC;
  hs_image image;
  if (hs_render_scene(width, height, 1, NULL, NULL, &image) != HS_OK) return 1;
  stage_queue *queue = take(queue_bytes(threads));
  if (!queue_start(queue, threads)) return 1;
  make_pyramid(&p, &image, threads);
  count = find_variants(times, queue, &p);
  if (count < 0) return 1;
  for (int r = 0; r < repeats; r++)
    for (int v = 0; v < count; v++) {
      double ms[STAGES] = {0.0};
      run_pass(times[v].ops, queue, &p, ms);
      for (int s = 0; s < STAGES; s++) times[v].ms[s][r] = ms[s];
    }
  printf("%d x %d, doubled, %d threads, median of %d, %llu candidates, %u keypoints\n"
         "variant  stage           ms       min      GB/s   GFLOP/s\n",
         width, height, threads, repeats, (unsigned long long)p.found, *p.keypoints.count);
  for (int v = 0; v < count; v++) print_variant(&p, &times[v], repeats);
  queue_stop(queue);
  return 0;
}
