/*
 * Four jobs on arrays: the sum of a gray picture, statistics of its tiles, its histogram and equalisation, and a mean
 * filter over ten million numbers. With "cuda" as second argument a GPU does them, and prints the same.
 * Build: cc array_jobs.c $(pkg-config --cflags --libs hartsift)
 */
#include <hartsift.h>
#include <hartsift_cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 40, TAPS = 5, NUMBERS = 10000000 };

static const double taps[TAPS] = {0.2, 0.2, 0.2, 0.2, 0.2};

/* Results of the jobs. */
typedef struct results {
  double sum, first, middle, mean;
  uint64_t counts[256];
  hs_tile tiles[1 << 16];
} results;

/* The jobs on the CPU. Sums of doubles are those of the GPU too: a fixed tree. */
static hs_status on_cpu(hs_context *c, const hs_array *picture, const hs_array *signal, const hs_array *filtered,
                        unsigned char *equalized, const hs_tiling *tiling, size_t *tiles, results *r) {
  hs_status status = hs_reduce_sum(c, picture, &r->sum);
  if (status == HS_OK) status = hs_tile_stats(c, picture, tiling, r->tiles, 1 << 16, tiles);
  if (status == HS_OK) status = hs_histogram256(c, picture, NULL, r->counts);
  if (status == HS_OK) status = hs_equalize(c, picture, equalized, 0);
  if (status == HS_OK)
    status = hs_convolve1d(c, signal, taps, TAPS, HS_ENDS_ZERO, (void *)(uintptr_t)filtered->data, 0);
  return status == HS_OK ? hs_reduce_mean(c, filtered, &r->mean) : status;
}

/* The same on a GPU. Stream null: each call waits for its result. All memory is pinned, which a GPU can address. */
static hs_status on_gpu(hs_context *c, const hs_array *picture, const hs_array *signal, const hs_array *filtered,
                        unsigned char *equalized, const hs_tiling *tiling, size_t *tiles, results *r) {
  hs_status status = hs_cuda_reduce_sum(c, picture, NULL, &r->sum);
  if (status == HS_OK) status = hs_cuda_tile_stats(c, picture, tiling, NULL, r->tiles, 1 << 16, tiles);
  if (status == HS_OK) status = hs_cuda_histogram256(c, picture, NULL, NULL, r->counts);
  if (status == HS_OK) status = hs_cuda_equalize(c, picture, NULL, equalized, 0);
  if (status == HS_OK)
    status = hs_cuda_convolve1d(c, signal, taps, TAPS, HS_ENDS_ZERO, NULL, (void *)(uintptr_t)filtered->data, 0);
  return status == HS_OK ? hs_cuda_reduce_mean(c, filtered, NULL, &r->mean) : status;
}

/* Memory for the jobs; on a GPU pinned, freed with the context's process. */
static void *allocate(hs_context *c, int gpu, size_t bytes) {
  void *memory = NULL;
  if (!gpu) return malloc(bytes);
  return hs_cuda_alloc_host(c, bytes, &memory) == HS_OK ? memory : NULL;
}

static void print(const results *r, size_t tiles, const unsigned char *equalized, const double *filtered) {
  size_t brightest = 0;
  for (size_t i = 1; i < tiles; i++)
    if (r->tiles[i].mean > r->tiles[brightest].mean) brightest = i;
  printf("sum %.0f\n", r->sum);
  printf("%zu tiles, the brightest: %zu, mean %.6f, %llu values above 127\n", tiles, brightest,
         r->tiles[brightest].mean, (unsigned long long)r->tiles[brightest].above);
  printf("values of 0: %llu, of 255: %llu; first value equalized: %d\n", (unsigned long long)r->counts[0],
         (unsigned long long)r->counts[255], equalized[0]);
  printf("filtered: first %.17g, last %.17g, mean %.17g\n", filtered[0], filtered[NUMBERS - 1], r->mean);
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "@scene:8000x1000";
  const int gpu = argc > 2 && strcmp(argv[2], "cuda") == 0;
  hs_options options;
  hs_context *c = NULL;
  hs_image image = {0};
  hs_options_init(&options, HS_PROFILE_LOWE);
  options.device = gpu ? HS_DEVICE_CUDA : HS_DEVICE_CPU;
  hs_status status = hs_create(&c, &options);
  if (status == HS_OK) status = hs_load_image(name, NULL, &image);
  if (status == HS_OK && (image.type != HS_U8 || image.layout != HS_GRAY)) status = HS_ERR_UNSUPPORTED;
  if (status != HS_OK) {
    fprintf(stderr, "%s: %s\n", name, hs_status_string(status));
    return 1;
  }
  const size_t width = (size_t)image.width, height = (size_t)image.height;
  unsigned char *pixels = allocate(c, gpu, width * height), *equalized = allocate(c, gpu, width * height);
  double *numbers = allocate(c, gpu, NUMBERS * sizeof *numbers), *smooth = allocate(c, gpu, NUMBERS * sizeof *smooth);
  results *r = allocate(c, gpu, sizeof *r);
  if (!pixels || !equalized || !numbers || !smooth || !r) return 1;
  for (size_t y = 0; y < height; y++)
    memcpy(pixels + y * width, (const char *)image.data + y * (image.stride_bytes ? image.stride_bytes : width), width);
  for (size_t i = 0; i < NUMBERS; i++) numbers[i] = (double)(i % 1000) / 1000 + (double)(i * 7919 % 101) / 10100;
  const hs_array picture = {pixels, width, height, 0, HS_ELEMENT_U8};
  const hs_array signal = {numbers, NUMBERS, 1, 0, HS_ELEMENT_F64}, filtered = {smooth, NUMBERS, 1, 0, HS_ELEMENT_F64};
  const hs_tiling tiling = {SIDE, SIDE, 127.0};
  size_t tiles = 0;
  status = (gpu ? on_gpu : on_cpu)(c, &picture, &signal, &filtered, equalized, &tiling, &tiles, r);
  if (status == HS_OK)
    print(r, tiles, equalized, smooth);
  else
    fprintf(stderr, "%s: %s\n", name, hs_last_error(c));
  return status == HS_OK ? 0 : 1;
}
