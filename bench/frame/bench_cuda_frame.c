/*
 * Time of one frame on a CUDA device: from an 8-bit picture in pinned host memory to features with u8 descriptors in host
 * memory, one frame after another; beside it the frame with picture and results on the device.
 *
 *   bench_cuda_frame [--repeats N] [--json FILE] [--profile lowe|opencv] [--variant TEXT] [--affine] [--dsp] [IMAGE ...]
 *
 * Without images: @scene:1920x1080.
 *
 * Before it is timed, a frame's features are compared byte for byte with the CPU's. Prints a Markdown table; median,
 * smallest and 90th percentile over the repeats after warm-up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"

enum { REPEATS_MAX = 10000, WARM_UP = 10 };

typedef struct bench_options {
  int repeats;
  FILE *json;
  hs_profile profile;
  const char *variant;
  bool affine, dsp;
  bool first_record;
} bench_options;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static hs_context *open_context(const bench_options *b, hs_device device, int32_t first_octave) {
  hs_options o;
  hs_expert_options expert;
  hs_context *c = NULL;
  char why[512];
  hs_options_init(&o, b->profile);
  o.first_octave = first_octave;
  o.descriptor = HS_DESCRIPTOR_U8;
  o.device = device;
  o.affine = b->affine;
  o.dsp = b->dsp;
  hs_expert_options_init(&expert, b->profile);
  expert.variant = b->variant;
  if (device == HS_DEVICE_CUDA) o.expert = &expert;
  if (hs_create_explained(&c, &o, why, sizeof why) != HS_OK) fprintf(stderr, "bench_cuda_frame: %s\n", why);
  return c;
}

/* Equal bytes, or a message and false. */
static bool same_features(const hs_features *a, const hs_features *b, const char *name) {
  const bool same =
      a->count == b->count &&
      (a->count == 0 || (memcmp(a->keypoints, b->keypoints, a->count * sizeof *a->keypoints) == 0 &&
                         memcmp(a->descriptors, b->descriptors, a->count * 128) == 0 &&
                         (!a->frames || memcmp(a->frames, b->frames, a->count * sizeof *a->frames) == 0)));
  if (!same)
    fprintf(stderr, "%s: %zu features on the device, %zu on the CPU, and the bytes differ\n", name, a->count, b->count);
  return same;
}

static bool verified(const bench_options *b, hs_context *gpu, const hs_image *image, int32_t first_octave,
                     const char *name) {
  hs_features on_cpu = {0};
  const hs_features *on_gpu = NULL;
  hs_context *cpu = open_context(b, HS_DEVICE_CPU, first_octave);
  bool ok = cpu && hs_extract(cpu, image, NULL, &on_cpu) == HS_OK;
  if (ok && hs_extract_view(gpu, image, NULL, &on_gpu) != HS_OK) {
    fprintf(stderr, "%s: %s\n", name, hs_last_error(gpu));
    ok = false;
  }
  ok = ok && same_features(on_gpu, &on_cpu, name);
  hs_features_free(&on_cpu);
  hs_destroy(cpu);
  return ok;
}

static const char *const profile_names[] = {"lowe", "opencv", "vlfeat", "colmap"};

typedef struct figures {
  double median, least, p90;
  size_t features;
} figures;

static figures summary(double *ms, int n, size_t features) {
  qsort(ms, (size_t)n, sizeof *ms, by_value);
  return (figures){ms[n / 2], ms[0], ms[n * 9 / 10], features};
}

/* resident: device_image in, results left on the device; else pinned host in and out. */
static bool time_frames(const bench_options *b, hs_context *gpu, const hs_image *image, bool resident, figures *f) {
  static double ms[REPEATS_MAX];
  size_t features = 0;
  for (int i = -WARM_UP; i < b->repeats; i++) {
    const hs_features *view = NULL;
    hs_cuda_features left = {0};
    const double start = now_ms();
    const hs_status st =
        resident ? hs_cuda_extract_resident(gpu, image, NULL, NULL, &left) : hs_extract_view(gpu, image, NULL, &view);
    const double end = now_ms();
    if (st != HS_OK) {
      fprintf(stderr, "bench_cuda_frame: %s\n", hs_last_error(gpu));
      return false;
    }
    features = resident ? left.count : view->count;
    if (i >= 0) ms[i] = end - start;
  }
  *f = summary(ms, b->repeats, features);
  return true;
}

static void print_row(bench_options *b, const char *name, const hs_image *im, bool doubled, bool resident,
                      const figures *f) {
  const char *base = strrchr(name, '/');
  base = base ? base + 1 : name;
  printf("| %s | %s | %s | %zu | %.3f | %.3f | %.3f |\n", base, doubled ? "yes" : "no",
         resident ? "device" : "pinned host", f->features, f->median, f->least, f->p90);
  fflush(stdout);
  if (!b->json) return;
  fprintf(
      b->json,
      "%s\n  {\"name\": \"%s%s\", \"width\": %d, \"height\": %d, \"profile\": \"%s\", \"device\": \"cuda\", \"threads\": 1, ",
      b->first_record ? "" : ",", base, resident ? " resident" : "", im->width, im->height, profile_names[b->profile]);
  fprintf(b->json, "\"doubled\": %s, \"features\": %zu, \"median_ms\": %.4f, \"min_ms\": %.4f, \"p90_ms\": %.4f}",
          doubled ? "true" : "false", f->features, f->median, f->least, f->p90);
  b->first_record = false;
}

/* The picture in pinned memory, and a view of it on the device. */
static bool pin(const hs_image *loaded, hs_image *pinned, void **device_copy) {
  void *host = NULL, *mapped = NULL;
  const size_t row = (size_t)loaded->width, bytes = row * (size_t)loaded->height;
  const size_t stride = loaded->stride_bytes ? loaded->stride_bytes : row;
  cuda_stream stream = NULL;
  *device_copy = NULL;
  if (device_alloc_pinned(&host, &mapped, bytes) != STAGE_OK) return false;
  for (int32_t y = 0; y < loaded->height; y++)
    memcpy((char *)host + (size_t)y * row, (const char *)loaded->data + (size_t)y * stride, row);
  *pinned =
      (hs_image){.data = host, .width = loaded->width, .height = loaded->height, .stride_bytes = row, .type = HS_U8};
  bool ok = device_alloc(device_copy, bytes) == STAGE_OK && device_stream_create(&stream) == STAGE_OK;
  ok = ok && device_copy_to(*device_copy, host, bytes, stream) == STAGE_OK && device_stream_wait(stream) == STAGE_OK;
  device_stream_destroy(stream);
  return ok;
}

static bool bench_image(bench_options *b, const char *name) {
  hs_image loaded = {0}, pinned = {0};
  void *device_copy = NULL;
  if (hs_load_image(name, NULL, &loaded) != HS_OK || loaded.type != HS_U8) {
    fprintf(stderr, "%s: not an 8-bit picture that this build can read\n", name);
    return false;
  }
  bool ok = pin(&loaded, &pinned, &device_copy);
  for (int32_t octave = -1; octave <= 0 && ok; octave++) {
    hs_context *gpu = open_context(b, HS_DEVICE_CUDA, octave);
    hs_image on_device = pinned;
    figures f;
    on_device.data = device_copy;
    ok = gpu && verified(b, gpu, &pinned, octave, name) && time_frames(b, gpu, &pinned, false, &f);
    if (ok) print_row(b, name, &pinned, octave < 0, false, &f);
    ok = ok && time_frames(b, gpu, &on_device, true, &f);
    if (ok) print_row(b, name, &pinned, octave < 0, true, &f);
    hs_destroy(gpu);
  }
  device_free(device_copy);
  device_free_pinned((void *)(uintptr_t)pinned.data);
  hs_image_free(&loaded);
  return ok;
}

static hs_profile profile_named(const char *name) {
  for (int p = HS_PROFILE_LOWE; p <= HS_PROFILE_COLMAP; p++)
    if (strcmp(name, profile_names[p]) == 0) return (hs_profile)p;
  fprintf(stderr, "bench_cuda_frame: no profile is named %s, lowe is timed\n", name);
  return HS_PROFILE_LOWE;
}

int main(int argc, char **argv) {
  bench_options b = {.repeats = 50, .profile = HS_PROFILE_LOWE, .first_record = true};
  const char *images[64] = {"@scene:1920x1080"};
  int count = 0;
  for (int i = 1; i < argc; i++) {
    const bool more = i + 1 < argc;
    if (strcmp(argv[i], "--repeats") == 0 && more)
      b.repeats = atoi(argv[++i]);
    else if (strcmp(argv[i], "--json") == 0 && more)
      b.json = fopen(argv[++i], "w");
    else if (strcmp(argv[i], "--profile") == 0 && more)
      b.profile = profile_named(argv[++i]);
    else if (strcmp(argv[i], "--variant") == 0 && more)
      b.variant = argv[++i];
    else if (strcmp(argv[i], "--affine") == 0)
      b.affine = true;
    else if (strcmp(argv[i], "--dsp") == 0)
      b.dsp = true;
    else if (count < 64)
      images[count++] = argv[i];
  }
  if (b.repeats < 1 || b.repeats > REPEATS_MAX) b.repeats = 50;
  char reason[256];
  if (device_count(reason, sizeof reason) == 0) {
    fprintf(stderr, "bench_cuda_frame: %s\n", reason);
    return 77;
  }
  if (b.json) fprintf(b.json, "[");
  printf(
      "| image | doubled | picture and results in | features | median ms | min ms | p90 ms |\n|---|---|---|--:|--:|--:|--:|\n");
  bool ok = true;
  for (int i = 0; i < (count > 0 ? count : 1); i++) ok = bench_image(&b, images[i]) && ok;
  if (b.json) {
    fprintf(b.json, "\n]\n");
    fclose(b.json);
  }
  return ok ? 0 : 1;
}

#else

int main(void) {
  fprintf(stderr, "bench_cuda_frame: this build has no CUDA backend\n");
  return 77;
}

#endif
