/*
 * Several GPUs on one queue: rate of 1, 2, ... devices that take images by demand, a context and a thread each.
 *
 *   bench_devices [--images N] [--in-flight N] [IMAGE ...]            (default: 20000 images, 16 in flight, @scene:640x480)
 *
 * The picture lies in pinned memory that every device reads; results are taken by hs_wait_view. Each device's features are
 * compared with the CPU's before anything is timed. Prints Markdown.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/include/hartsift.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"

enum { DEVICES_MAX = 16, IMAGES_MAX = 32 };

typedef struct bench_options {
  long images;
  int32_t in_flight;
  const char *names[IMAGES_MAX];
  int name_count;
} bench_options;

/* One device's part in a run. */
typedef struct bench_device {
  hs_context *context;
  const hs_image *image;
  atomic_long *left; /* images of the queue that nobody has taken */
  long done;
  int32_t in_flight;
  bool failed;
  pthread_t thread;
} bench_device;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *device_main(void *argument) {
  bench_device *d = argument;
  const hs_features *view = NULL;
  bool more = true;
  while (!d->failed && (more || hs_count_in_flight(d->context) > 0)) {
    while (more && hs_count_in_flight(d->context) < d->in_flight && !d->failed) {
      more = atomic_fetch_sub(d->left, 1) > 0;
      if (more) d->failed = hs_submit(d->context, d->image, NULL) != HS_OK;
    }
    if (hs_count_in_flight(d->context) == 0) break;
    d->failed = d->failed || hs_wait_view(d->context, &view) != HS_OK;
    d->done++;
  }
  return NULL;
}

/* Seconds that the first `count` devices need for all images; negative on failure. */
static double run(bench_device *devices, int count, long images) {
  atomic_long left;
  atomic_init(&left, images);
  const double start = now_s();
  for (int i = 0; i < count; i++) {
    devices[i].left = &left;
    devices[i].done = 0;
    if (pthread_create(&devices[i].thread, NULL, device_main, &devices[i]) != 0) exit(1);
  }
  bool failed = false;
  for (int i = 0; i < count; i++) {
    pthread_join(devices[i].thread, NULL);
    failed = failed || devices[i].failed;
  }
  return failed ? -1.0 : now_s() - start;
}

static hs_context *open_context(hs_device device, int32_t index, int32_t first_octave, int32_t in_flight) {
  hs_options o;
  hs_context *c = NULL;
  char why[512];
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = device;
  o.device_index = index;
  o.first_octave = first_octave;
  o.in_flight = in_flight;
  if (hs_create_explained(&c, &o, why, sizeof why) != HS_OK) fprintf(stderr, "bench_devices: %s\n", why);
  return c;
}

static bool verified(bench_device *d, const hs_features *expected) {
  const hs_features *view = NULL;
  const bool ok = hs_submit(d->context, d->image, NULL) == HS_OK && hs_wait_view(d->context, &view) == HS_OK &&
                  view->count == expected->count &&
                  memcmp(view->keypoints, expected->keypoints, view->count * sizeof *view->keypoints) == 0 &&
                  memcmp(view->descriptors, expected->descriptors, view->count * HS_DESCRIPTOR_LENGTH) == 0;
  if (!ok) fprintf(stderr, "bench_devices: a device's features differ, or it failed\n");
  return ok;
}

static void print_row(const char *name, int32_t octave, const bench_device *devices, int count, double rate,
                      double first_rate) {
  const char *slash = strrchr(name, '/');
  printf("| %s | %s | %d | %.0f | %.2f |", slash ? slash + 1 : name, octave < 0 ? "yes" : "no", count, rate,
         rate / first_rate);
  for (int i = 0; i < count; i++) printf(" %ld", devices[i].done);
  printf(" |\n");
  fflush(stdout);
}

static bool bench(const bench_options *b, const hs_image *image, const char *name, int32_t octave, int count) {
  bench_device devices[DEVICES_MAX];
  hs_features expected = {0};
  memset(devices, 0, sizeof devices);
  hs_context *cpu = open_context(HS_DEVICE_CPU, 0, octave, 1);
  bool ok = cpu && hs_extract(cpu, image, NULL, &expected) == HS_OK;
  for (int i = 0; i < count && ok; i++) {
    devices[i].context = open_context(HS_DEVICE_CUDA, i, octave, b->in_flight);
    devices[i].image = image;
    devices[i].in_flight = b->in_flight;
    ok = devices[i].context && verified(&devices[i], &expected);
  }
  ok = ok && run(devices, count, b->images / 10) > 0; /* warm-up */
  double first = 0;
  for (int n = 1; n <= count && ok; n *= 2) {
    const double seconds = run(devices, n, b->images * n);
    ok = seconds > 0;
    if (n == 1) first = (double)b->images / seconds;
    if (ok) print_row(name, octave, devices, n, (double)(b->images * n) / seconds, first);
  }
  for (int i = 0; i < count; i++) hs_destroy(devices[i].context);
  hs_features_free(&expected);
  hs_destroy(cpu);
  return ok;
}

/* The picture in pinned memory. */
static bool load(const char *name, hs_image *image) {
  hs_image loaded = {0};
  void *host = NULL, *mapped = NULL;
  if (hs_load_image(name, NULL, &loaded) != HS_OK || loaded.type != HS_U8 || loaded.layout != HS_GRAY) {
    fprintf(stderr, "%s: not an 8-bit gray picture that this build can read\n", name);
    hs_image_free(&loaded);
    return false;
  }
  const size_t row = (size_t)loaded.width, stride = loaded.stride_bytes ? loaded.stride_bytes : row;
  const bool ok = device_alloc_pinned(&host, &mapped, row * (size_t)loaded.height) == STAGE_OK;
  for (int32_t y = 0; ok && y < loaded.height; y++)
    memcpy((char *)host + (size_t)y * row, (const char *)loaded.data + (size_t)y * stride, row);
  *image = (hs_image){.data = host, .width = loaded.width, .height = loaded.height, .type = HS_U8};
  hs_image_free(&loaded);
  return ok;
}

int main(int argc, char **argv) {
  bench_options b = {.images = 20000, .in_flight = 16};
  for (int i = 1; i < argc; i++) {
    const bool more = i + 1 < argc;
    if (strcmp(argv[i], "--images") == 0 && more)
      b.images = atol(argv[++i]);
    else if (strcmp(argv[i], "--in-flight") == 0 && more)
      b.in_flight = atoi(argv[++i]);
    else if (b.name_count < IMAGES_MAX)
      b.names[b.name_count++] = argv[i];
  }
  if (b.name_count == 0) b.names[b.name_count++] = "@scene:640x480";
  char reason[256];
  int count = device_count(reason, sizeof reason);
  if (count == 0) {
    fprintf(stderr, "bench_devices: %s\n", reason);
    return 77;
  }
  if (count > DEVICES_MAX) count = DEVICES_MAX;
  printf("| image | doubled | GPUs | images/s | to one | images each took |\n|---|---|--:|--:|--:|---|\n");
  bool ok = true;
  for (int i = 0; i < b.name_count && ok; i++) {
    hs_image image;
    ok = load(b.names[i], &image);
    for (int32_t octave = -1; octave <= 0 && ok; octave++) ok = bench(&b, &image, b.names[i], octave, count);
    if (ok) device_free_pinned((void *)(uintptr_t)image.data);
  }
  return ok ? 0 : 1;
}

#else

int main(void) {
  fprintf(stderr, "bench_devices: this build has no CUDA backend\n");
  return 77;
}
#endif
