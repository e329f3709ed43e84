/* Functions that the modes share; see bench_modes.h. */
#include "os/os_threads.h"
#include "bench/hartsift/bench_modes.h"

#include "pipeline/base/number_tools.h"

#if HARTSIFT_HAVE_CUDA
#  include "cuda/runtime/device.h"
#endif

double bench_ms(void) { return clock_s(CLOCK_MONOTONIC) * 1e3; }

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

bench_figures bench_summary(double *ms, int count) {
  qsort(ms, (size_t)count, sizeof *ms, by_value);
  return (bench_figures){ms[count / 2], ms[0], ms[count * 9 / 10]};
}

int bench_fail(const char *what) {
  fprintf(stderr, "bench_hartsift: %s\n", what);
  return 1;
}

hs_context *bench_context(const hs_options *options) {
  hs_context *c = NULL;
  char why[512];
  if (hs_create_explained(&c, options, why, sizeof why) != HS_OK) (void)bench_fail(why);
  return c;
}

const char *bench_base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

hs_device bench_device(const char *name) {
  if (strcmp(name, "cpu") == 0) return HS_DEVICE_CPU;
  return strcmp(name, "hybrid") == 0 ? HS_DEVICE_HYBRID : HS_DEVICE_CUDA;
}

bool bench_same(const hs_features *a, const hs_features *b) {
  if (a->count != b->count || !a->frames != !b->frames) return false;
  if (a->count == 0) return true;
  return memcmp(a->keypoints, b->keypoints, a->count * sizeof *a->keypoints) == 0 &&
         memcmp(a->descriptors, b->descriptors, a->count * HS_DESCRIPTOR_LENGTH) == 0 &&
         (!a->frames || memcmp(a->frames, b->frames, a->count * sizeof *a->frames) == 0);
}

/* Allocates pinned memory; ordinary memory for the CPU. Returns null when out of memory. */
static void *pinned_memory(hs_device device, size_t bytes) {
#if HARTSIFT_HAVE_CUDA
  void *host = NULL, *mapped = NULL;
  if (device != HS_DEVICE_CPU) return device_alloc_pinned(&host, &mapped, bytes) == STAGE_OK ? host : NULL;
#endif
  (void)device;
  return malloc(bytes);
}

bool bench_pin(hs_device device, const char *name, hs_image *image) {
  hs_image loaded = {0};
  if (hs_load_image(name, NULL, &loaded) != HS_OK || loaded.type != HS_U8 || loaded.layout != HS_GRAY) {
    fprintf(stderr, "%s: not an 8-bit gray picture that this build can read\n", name);
    hs_image_free(&loaded);
    return false;
  }
  const size_t row = (size_t)loaded.width, stride = loaded.stride_bytes ? loaded.stride_bytes : row;
  char *pixels = pinned_memory(device, row * (size_t)loaded.height);
  for (int32_t y = 0; pixels && y < loaded.height; y++)
    memcpy(pixels + (size_t)y * row, (const char *)loaded.data + (size_t)y * stride, row);
  *image = (hs_image){.data = pixels, .width = loaded.width, .height = loaded.height, .type = HS_U8};
  hs_image_free(&loaded);
  if (!pixels) (void)bench_fail("no memory for the picture");
  return pixels != NULL;
}

void bench_unpin(hs_device device, hs_image *image) {
  void *pixels = (void *)(uintptr_t)image->data;
  image->data = NULL;
#if HARTSIFT_HAVE_CUDA
  if (device != HS_DEVICE_CPU) {
    device_free_pinned(pixels);
    return;
  }
#endif
  (void)device;
  free(pixels);
}

#if HARTSIFT_HAVE_CUDA

void *bench_upload(const hs_image *pinned) {
  const size_t bytes = (size_t)pinned->width * (size_t)pinned->height;
  cuda_stream stream = NULL;
  void *copy = NULL;
  const bool ok = device_alloc(&copy, bytes) == STAGE_OK && device_stream_create(&stream) == STAGE_OK &&
                  device_copy_to(copy, pinned->data, bytes, stream) == STAGE_OK &&
                  device_stream_wait(stream) == STAGE_OK;
  device_stream_destroy(stream);
  if (ok) return copy;
  (void)bench_fail(device_error_text());
  device_free(copy);
  return NULL;
}

bool bench_has_device(void) {
  char reason[256];
  if (device_count(reason, sizeof reason) > 0) return true;
  (void)bench_fail(reason);
  return false;
}

#endif
