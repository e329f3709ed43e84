/*
 * Time of single calls on a GPU: the same picture from pinned, ordinary and device memory, equalised, with user
 * keypoints, and in flight.
 *
 *   bench_hartsift calls [--repeats N] IMAGE
 *
 * Every call's features are compared with the CPU's before it is timed; calls are interleaved. Prints one JSON record a
 * line: median and smallest time, or images a second. bench/modes/calls.py makes a table of these and the calls from
 * Python.
 */
#include <math.h>

#include "bench/hartsift/bench_modes.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"

enum { REPEATS_MAX = 1000, WARM_UP = 5, GIVEN = 5000, IN_FLIGHT = 8 };

/* Inputs of the calls and their expected results. */
typedef struct bench {
  hs_context *gpu, *equalising, *cpu, *cpu_equalising;
  hs_image pinned, ordinary, on_device;
  hs_features expected, equalised, described, oriented, list;
  hs_keypoint given[GIVEN], to_orient[GIVEN];
} bench;

/* ------------------------------------------------------------------ calls: each stores its features in *found */

static hs_status view_of_pinned(bench *b, hs_features *found) {
  const hs_features *view = NULL;
  const hs_status st = hs_extract_view(b->gpu, &b->pinned, NULL, &view);
  if (st == HS_OK) *found = *view;
  return st;
}

static hs_status view_of_ordinary(bench *b, hs_features *found) {
  const hs_features *view = NULL;
  const hs_status st = hs_extract_view(b->gpu, &b->ordinary, NULL, &view);
  if (st == HS_OK) *found = *view;
  return st;
}

/* Extracts into a list that is reused. */
static hs_status extract_again(bench *b, hs_features *found) {
  const hs_status st = hs_extract(b->gpu, &b->ordinary, NULL, &b->list);
  *found = b->list;
  return st;
}

/* Extracts into a new list, which the next call frees. */
static hs_status extract_new(bench *b, hs_features *found) {
  hs_features_free(&b->list);
  return extract_again(b, found);
}

static hs_status extract_there(bench *b, hs_features *found) {
  const hs_status st = hs_cuda_extract(b->gpu, &b->on_device, NULL, NULL, &b->list);
  *found = b->list;
  return st;
}

static hs_status view_equalised(bench *b, hs_features *found) {
  const hs_features *view = NULL;
  const hs_status st = hs_extract_view(b->equalising, &b->pinned, NULL, &view);
  if (st == HS_OK) *found = *view;
  return st;
}

static hs_status describe_given(bench *b, hs_features *found) {
  const hs_status st = hs_describe(b->gpu, &b->ordinary, b->given, GIVEN, &b->list, NULL);
  *found = b->list;
  return st;
}

static hs_status describe_to_orient(bench *b, hs_features *found) {
  const hs_status st = hs_describe(b->gpu, &b->ordinary, b->to_orient, GIVEN, &b->list, NULL);
  *found = b->list;
  return st;
}

typedef struct timed_call {
  const char *name;
  hs_status (*run)(bench *b, hs_features *found);
  size_t expected; /* offset in `bench` of the features that the call must find */
} timed_call;

static const timed_call calls[] = {
    {"pinned, view", view_of_pinned, offsetof(bench, expected)},
    {"ordinary, view", view_of_ordinary, offsetof(bench, expected)},
    {"ordinary, list used again", extract_again, offsetof(bench, expected)},
    {"ordinary, new list", extract_new, offsetof(bench, expected)},
    {"on the device, list", extract_there, offsetof(bench, expected)},
    {"pinned, equalised, view", view_equalised, offsetof(bench, equalised)},
    {"5000 given, describe", describe_given, offsetof(bench, described)},
    {"5000 given, orient and describe", describe_to_orient, offsetof(bench, oriented)},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* ------------------------------------------------------------------ */

static hs_context *open_context(hs_device device, int32_t equalize) {
  hs_options o;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = device;
  o.equalize = equalize;
  o.in_flight = IN_FLIGHT;
  return bench_context(&o);
}

/* Copies the picture to each kind of memory. */
static bool place_picture(bench *b, const char *name) {
  if (!bench_pin(HS_DEVICE_CPU, name, &b->ordinary) || !bench_pin(HS_DEVICE_CUDA, name, &b->pinned)) return false;
  b->on_device = b->pinned;
  b->on_device.data = bench_upload(&b->pinned);
  return b->on_device.data != NULL;
}

/* Extracts the features on the CPU, for comparison, and chooses user keypoints evenly from them. */
static bool prepare(bench *b) {
  if (hs_extract(b->cpu, &b->ordinary, NULL, &b->expected) != HS_OK || b->expected.count == 0) return false;
  for (size_t i = 0; i < GIVEN; i++) {
    b->given[i] = b->to_orient[i] = b->expected.keypoints[i * b->expected.count / GIVEN];
    b->to_orient[i].orientation = NAN;
  }
  return hs_extract(b->cpu_equalising, &b->ordinary, NULL, &b->equalised) == HS_OK &&
         hs_describe(b->cpu, &b->ordinary, b->given, GIVEN, &b->described, NULL) == HS_OK &&
         hs_describe(b->cpu, &b->ordinary, b->to_orient, GIVEN, &b->oriented, NULL) == HS_OK;
}

static bool time_calls(bench *b, int repeats) {
  static double ms[CALLS][REPEATS_MAX];
  size_t features[CALLS] = {0};
  for (int round = -WARM_UP; round < repeats; round++)
    for (int i = 0; i < CALLS; i++) {
      hs_features found = {0};
      const double start = bench_ms();
      const hs_status st = calls[i].run(b, &found);
      const double end = bench_ms();
      if (st != HS_OK ||
          (round < 0 && !bench_same(&found, (const hs_features *)(void *)((char *)b + calls[i].expected)))) {
        fprintf(stderr, "calls: %s: %s\n", calls[i].name, st == HS_OK ? "not the CPU's bytes" : hs_last_error(b->gpu));
        return false;
      }
      features[i] = found.count;
      if (round >= 0) ms[i][round] = end - start;
    }
  for (int i = 0; i < CALLS; i++) {
    const bench_figures f = bench_summary(ms[i], repeats);
    printf("{\"call\": \"C: %s\", \"features\": %zu, \"ms\": %.4f, \"least_ms\": %.4f}\n", calls[i].name, features[i],
           f.median, f.least);
  }
  return true;
}

/* Measures images per second with IN_FLIGHT images in flight, from ordinary memory. The list of each image is freed. */
static bool time_in_flight(bench *b, int images, double *rate) {
  hs_features f = {0};
  const double start = bench_ms();
  for (int submitted = 0, done = 0; done < images;) {
    if (submitted < images && submitted - done < IN_FLIGHT) {
      if (hs_submit(b->gpu, &b->ordinary, NULL) != HS_OK) return false;
      submitted++;
      continue;
    }
    if (hs_wait(b->gpu, &f) != HS_OK || f.count != b->expected.count) return false;
    if (done == 0 && !bench_same(&f, &b->expected)) return false;
    hs_features_free(&f);
    done++;
  }
  *rate = images / (bench_ms() - start) * 1e3;
  return true;
}

int mode_calls(int argc, char **argv) {
  static bench b;
  int repeats = 50;
  const char *name = "@scene:1920x1080";
  double rate = 0.0;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--repeats") == 0 && i + 1 < argc)
      repeats = atoi(argv[++i]);
    else
      name = argv[i];
  if (repeats < 1 || repeats > REPEATS_MAX) repeats = 50;
  if (!bench_has_device()) return 77;
  b.gpu = open_context(HS_DEVICE_CUDA, 0);
  b.equalising = open_context(HS_DEVICE_CUDA, 1);
  b.cpu = open_context(HS_DEVICE_CPU, 0);
  b.cpu_equalising = open_context(HS_DEVICE_CPU, 1);
  bool ok = b.gpu && b.equalising && b.cpu && b.cpu_equalising && place_picture(&b, name) && prepare(&b);
  ok = ok && time_calls(&b, repeats);
  ok = ok && time_in_flight(&b, 200, &rate) && time_in_flight(&b, 20 * repeats, &rate);
  if (ok) printf("{\"call\": \"C: ordinary, %d in flight\", \"images_per_s\": %.0f}\n", IN_FLIGHT, rate);
  if (!ok) fprintf(stderr, "calls: failed: %s\n", b.gpu ? hs_last_error(b.gpu) : "no context");
  return ok ? 0 : 1; /* no frees: the system unmaps the memory */
}

#endif
