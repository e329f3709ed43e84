/*
 * Time of each stage on the CPU, within whole frames of pictures from files.
 *
 *   bench_hartsift stages [--threads N] [--frames N] [--variant NAME] IMAGE ...
 *
 * Profile lowe, doubled input. The mode wraps the stages of the context's table, so each stage finds caches and memory
 * as the stage before left them. On one thread it measures processor time, else wall time. Prints Markdown: minimum and
 * median of the frames in milliseconds, cost per keypoint or feature, and a digest of the features, which is equal for
 * builds that give equal bytes.
 */
#include <time.h>

#include "os/os_threads.h"
#include "bench/hartsift/bench_modes.h"
#include "pipeline/base/number_tools.h"
#include "pipeline/context/context.h"

enum {
  FRAMES_MAX = 1000,
  ROWS = STAGE_MATCH + 1 /* rows of the table: the stages before matching, and the whole frame */
};

static double times[ROWS][FRAMES_MAX]; /* ms */
static int frame_now;
static stage_ops real;
static clockid_t timed_clock = CLOCK_PROCESS_CPUTIME_ID;

#define TIMED(STAGE, ID)                                                                                               \
  static stage_status timed_##STAGE(stage_queue *queue, const STAGE##_args *args) {                                    \
    const double begin = clock_s(timed_clock) * 1e3;                                                                   \
    const stage_status status = real.STAGE(queue, args);                                                               \
    times[ID][frame_now] += clock_s(timed_clock) * 1e3 - begin;                                                        \
    return status;                                                                                                     \
  }
TIMED(base, STAGE_BASE)
TIMED(blur, STAGE_BLUR)
TIMED(halve, STAGE_HALVE)
TIMED(detect, STAGE_DETECT)
TIMED(orient, STAGE_ORIENT)
TIMED(select, STAGE_SELECT)
TIMED(describe, STAGE_DESCRIBE)

/* Times an octave. Its one fused pass covers base or halving, levels and detection; the table shows it as detection. */
static stage_status timed_octave(stage_queue *queue, const octave_args *args) {
  const double begin = clock_s(timed_clock) * 1e3;
  const stage_status status = real.octave(queue, args);
  times[STAGE_DETECT][frame_now] += clock_s(timed_clock) * 1e3 - begin;
  return status;
}

static void wrap(stage_ops *ops) {
  real = *ops;
  memset(ops->jobs, 0, sizeof ops->jobs); /* makes several threads also run one stage after another */
  ops->base = timed_base;
  ops->blur = timed_blur;
  ops->halve = timed_halve;
  ops->detect = timed_detect;
  if (ops->octave) ops->octave = timed_octave;
  ops->orient = timed_orient;
  ops->select = timed_select;
  ops->describe = timed_describe;
}

/* Returns the FNV-1a hash of keypoints and descriptors. */
static uint64_t digest_of(const hs_features *f) {
  uint64_t digest = UINT64_C(14695981039346656037);
  const unsigned char *const parts[] = {(const unsigned char *)f->keypoints, (const unsigned char *)f->descriptors};
  const size_t bytes[] = {sizeof *f->keypoints * f->count, (size_t)128 * f->count};
  for (int p = 0; p < 2; p++)
    for (size_t i = 0; i < bytes[p]; i++) digest = (digest ^ parts[p][i]) * UINT64_C(1099511628211);
  return digest;
}

static void print_row(const char *name, double *ms, int frames, double items) {
  const bench_figures f = bench_summary(ms, frames);
  printf("| %s | %.2f | %.2f |", name, f.least, f.median);
  if (items > 0)
    printf(" %.3f |\n", 1e3 * f.least / items);
  else
    printf(" |\n");
}

static int run_image(hs_context *c, const char *name, int frames) {
  hs_image image;
  const hs_features *f = NULL;
  if (hs_load_image(name, NULL, &image) != HS_OK) return bench_fail(name);
  frame_now = 0;
  if (hs_extract_view(c, &image, NULL, &f) != HS_OK) return bench_fail(hs_last_error(c));
  memset(times, 0, sizeof times);
  for (frame_now = 0; frame_now < frames; frame_now++) {
    const double begin = clock_s(timed_clock) * 1e3;
    if (hs_extract_view(c, &image, NULL, &f) != HS_OK) return bench_fail(hs_last_error(c));
    times[STAGE_MATCH][frame_now] = clock_s(timed_clock) * 1e3 - begin;
  }
  printf("%s %dx%d: %zu keypoints, %zu features, digest %016llx\n\n", name, image.width, image.height,
         (size_t)c->statistics.keypoints, (size_t)f->count, (unsigned long long)digest_of(f));
  printf("| stage | least ms | median ms | us each |\n|---|--:|--:|--:|\n");
  for (int stage = STAGE_BASE; stage < STAGE_MATCH; stage++)
    print_row(stage_name((stage_id)stage), times[stage], frames,
              stage == STAGE_ORIENT     ? (double)c->statistics.keypoints
              : stage == STAGE_DESCRIBE ? (double)f->count
                                        : 0.0);
  print_row("frame", times[STAGE_MATCH], frames, 0.0);
  printf("\n");
  hs_image_free(&image);
  return 0;
}

int mode_stages(int argc, char **argv) {
  hs_options o;
  hs_context *c = NULL;
  int frames = 10, failed = 0;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CPU;
  o.threads = 1;
  int i = 1;
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
    if (strcmp(argv[i], "--threads") == 0)
      o.threads = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--frames") == 0)
      frames = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--variant") == 0)
      setenv("HARTSIFT_CPU", argv[i + 1], 1);
    else
      return bench_fail(argv[i]);
  if (i >= argc || frames < 1 || frames > FRAMES_MAX) return bench_fail("[--threads N] [--frames 1..1000] IMAGE ...");
  if (o.threads != 1) timed_clock = CLOCK_MONOTONIC;
  if (hs_create(&c, &o) != HS_OK) return bench_fail(hs_last_error(NULL));
  wrap(&c->ops);
  for (; i < argc && !failed; i++) failed = run_image(c, argv[i], frames);
  hs_destroy(c);
  return failed;
}
