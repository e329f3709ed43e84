/*
 * Time of one frame on a CUDA device: from an 8-bit picture in pinned host memory to features with u8 descriptors in
 * host memory, one frame after another. Second column: picture and results stay on the device.
 *
 *   bench_hartsift frames [--repeats N] [--json FILE] [--profile lowe|opencv] [--variant TEXT] [--affine] [--dsp]
 *                         [IMAGE ...]
 *
 * Without images: @scene:1920x1080.
 *
 * Before it is timed, a frame's features are compared byte for byte with the CPU's. Prints a Markdown table; median,
 * smallest and 90th percentile over the repeats after warm-up.
 */
#include "bench/hartsift/bench_modes.h"
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

static hs_context *open_context(const bench_options *b, hs_device device, int32_t first_octave) {
  hs_options o;
  hs_expert_options expert;
  hs_options_init(&o, b->profile);
  o.first_octave = first_octave;
  o.descriptor = HS_DESCRIPTOR_U8;
  o.device = device;
  o.affine = b->affine;
  o.dsp = b->dsp;
  hs_expert_options_init(&expert, b->profile);
  expert.variant = b->variant;
  if (device == HS_DEVICE_CUDA) o.expert = &expert;
  return bench_context(&o);
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
  if (ok && !bench_same(on_gpu, &on_cpu)) {
    fprintf(stderr, "%s: %zu features on the device, %zu on the CPU, and the bytes differ\n", name, on_gpu->count,
            on_cpu.count);
    ok = false;
  }
  hs_features_free(&on_cpu);
  hs_destroy(cpu);
  return ok;
}

static const char *const profile_names[] = {"lowe", "opencv", "vlfeat", "colmap"};

/* Times frames of one picture. resident: image and results stay on the device; otherwise both are in pinned host
 * memory. */
static bool time_frames(const bench_options *b, hs_context *gpu, const hs_image *image, bool resident, bench_figures *f,
                        size_t *features) {
  static double ms[REPEATS_MAX];
  for (int i = -WARM_UP; i < b->repeats; i++) {
    const hs_features *view = NULL;
    hs_cuda_features left = {0};
    const double start = bench_ms();
    const hs_status st =
        resident ? hs_cuda_extract_resident(gpu, image, NULL, NULL, &left) : hs_extract_view(gpu, image, NULL, &view);
    const double end = bench_ms();
    if (st != HS_OK) {
      fprintf(stderr, "frames: %s\n", hs_last_error(gpu));
      return false;
    }
    *features = resident ? left.count : view->count;
    if (i >= 0) ms[i] = end - start;
  }
  *f = bench_summary(ms, b->repeats);
  return true;
}

static void print_row(bench_options *b, const char *name, const hs_image *im, bool doubled, bool resident,
                      const bench_figures *f, size_t features) {
  const char *base = bench_base_name(name);
  printf("| %s | %s | %s | %zu | %.3f | %.3f | %.3f |\n", base, doubled ? "yes" : "no",
         resident ? "device" : "pinned host", features, f->median, f->least, f->p90);
  fflush(stdout);
  if (!b->json) return;
  fprintf(
      b->json,
      "%s\n  {\"name\": \"%s%s\", \"width\": %d, \"height\": %d, \"profile\": \"%s\", \"device\": \"cuda\", \"threads\": 1, ",
      b->first_record ? "" : ",", base, resident ? " resident" : "", im->width, im->height, profile_names[b->profile]);
  fprintf(b->json, "\"doubled\": %s, \"features\": %zu, \"median_ms\": %.4f, \"min_ms\": %.4f, \"p90_ms\": %.4f}",
          doubled ? "true" : "false", features, f->median, f->least, f->p90);
  b->first_record = false;
}

static bool bench_image(bench_options *b, const char *name) {
  hs_image pinned = {0};
  if (!bench_pin(HS_DEVICE_CUDA, name, &pinned)) return false;
  hs_image on_device = pinned;
  on_device.data = bench_upload(&pinned);
  bool ok = on_device.data != NULL;
  for (int32_t octave = -1; octave <= 0 && ok; octave++) {
    hs_context *gpu = open_context(b, HS_DEVICE_CUDA, octave);
    bench_figures f;
    size_t features = 0;
    ok = gpu && verified(b, gpu, &pinned, octave, name) && time_frames(b, gpu, &pinned, false, &f, &features);
    if (ok) print_row(b, name, &pinned, octave < 0, false, &f, features);
    ok = ok && time_frames(b, gpu, &on_device, true, &f, &features);
    if (ok) print_row(b, name, &pinned, octave < 0, true, &f, features);
    hs_destroy(gpu);
  }
  device_free((void *)(uintptr_t)on_device.data);
  bench_unpin(HS_DEVICE_CUDA, &pinned);
  return ok;
}

static hs_profile profile_named(const char *name) {
  for (int p = HS_PROFILE_LOWE; p <= HS_PROFILE_COLMAP; p++)
    if (strcmp(name, profile_names[p]) == 0) return (hs_profile)p;
  fprintf(stderr, "frames: no profile is named %s, lowe is timed\n", name);
  return HS_PROFILE_LOWE;
}

int mode_frames(int argc, char **argv) {
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
  if (!bench_has_device()) return 77;
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

#endif
