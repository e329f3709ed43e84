/*
 * Rate of many different pictures in flight, from memory: the bound for a batch from files.
 *
 *   bench_hartsift collection [--device cpu|cuda] [--max-features N] [--in-flight N] [--workload latency|throughput]
 *                             [--rounds N] [--encoded 0|1] IMAGE...
 *
 * The pictures are decoded first, into pinned memory where there is a device; with --encoded 1 they stay JPEG files in
 * memory, which the device decodes. One context then extracts all of them in the given order, --rounds times after one
 * warm-up round. Results are taken by hs_wait_view, for throughput by hs_wait_any. Prints the images a second.
 */
#include "bench/hartsift/bench_modes.h"

typedef struct collection_bench {
  hs_options options;
  int32_t in_flight;
  bool encoded;
  int rounds, count;
  char **names;
  hs_source *sources;
} collection_bench;

/* Waits for one image; *count receives its number of features. */
static hs_status wait_for_one(hs_context *c, const collection_bench *b, size_t *count) {
  static hs_features list;
  uint64_t image;
  const hs_features *view = NULL;
  const bool in_any_order = b->options.workload == HS_WORKLOAD_THROUGHPUT;
  const hs_status st = in_any_order ? hs_wait_any(c, &list, &image) : hs_wait_view(c, &view);
  *count = st != HS_OK ? 0 : in_any_order ? list.count : view->count;
  return st;
}

/* Extracts all pictures `rounds` times; returns the features of one round, 0 on failure. */
static size_t pass(hs_context *c, const collection_bench *b, int rounds) {
  const int all = rounds * b->count;
  size_t features = 0, of_image = 0;
  for (int next = 0, waited = 0; waited < all; waited++) {
    while (next < all && next - waited < b->in_flight) {
      if (hs_submit_source(c, &b->sources[next % b->count]) != HS_OK) return 0;
      next++;
    }
    if (wait_for_one(c, b, &of_image) != HS_OK) return 0;
    features += of_image;
  }
  return features / (size_t)rounds;
}

static int run(collection_bench *b) {
  hs_context *c = bench_context(&b->options);
  if (!c) return 1;
  const size_t features = pass(c, b, 1);
  const double start = bench_ms();
  const bool ok = features > 0 && pass(c, b, b->rounds) == features;
  if (ok)
    printf("%.1f images/s, %zu features an image\n", 1e3 * b->rounds * b->count / (bench_ms() - start),
           features / (size_t)b->count);
  else
    fprintf(stderr, "collection: %s\n", hs_last_error(c));
  hs_destroy(c);
  return ok ? 0 : 1;
}

static bool parse_option(collection_bench *b, const char *name, const char *value) {
  if (strcmp(name, "--device") == 0)
    b->options.device = bench_device(value);
  else if (strcmp(name, "--max-features") == 0)
    b->options.max_features = (int32_t)atol(value);
  else if (strcmp(name, "--in-flight") == 0)
    b->in_flight = (int32_t)atol(value);
  else if (strcmp(name, "--workload") == 0)
    b->options.workload = strcmp(value, "throughput") == 0 ? HS_WORKLOAD_THROUGHPUT : HS_WORKLOAD_LATENCY;
  else if (strcmp(name, "--encoded") == 0)
    b->encoded = atoi(value) != 0;
  else if (strcmp(name, "--rounds") == 0)
    b->rounds = atoi(value);
  else
    return false;
  return true;
}

/* Loads a picture into pinned memory, or the bytes of a JPEG file. Returns false on failure, with the reason on
 * standard error. */
static bool load(const collection_bench *b, const char *name, hs_source *loaded) {
  const hs_load_options options = {.struct_size = sizeof options, .keep_encoded = 1};
  hs_source file = hs_source_file(name);
  file.load = &options;
  if (!b->encoded) return bench_pin(b->options.device, name, &loaded->image);
  if (hs_load_source(&file, loaded) == HS_OK && loaded->kind == HS_SOURCE_JPEG) return true;
  fprintf(stderr, "%s: not a JPEG that a GPU decodes\n", name);
  return false;
}

int mode_collection(int argc, char **argv) {
  collection_bench b = {.in_flight = 64, .rounds = 3};
  hs_options_init(&b.options, HS_PROFILE_LOWE);
  b.options.device = HS_DEVICE_CUDA;
  int i = 1;
  while (i + 1 < argc && strncmp(argv[i], "--", 2) == 0 && parse_option(&b, argv[i], argv[i + 1])) i += 2;
  b.names = argv + i;
  b.count = argc - i;
  b.options.in_flight = b.in_flight;
  if (b.count < 1 || b.rounds < 1 || b.in_flight < 1 || strncmp(b.names[0], "--", 2) == 0) {
    fprintf(stderr, "usage: bench_hartsift collection [--device cpu|cuda] [--max-features N] [--in-flight N] "
                    "[--workload latency|throughput] [--rounds N] [--encoded 0|1] IMAGE...\n");
    return 2;
  }
  b.sources = calloc((size_t)b.count, sizeof *b.sources);
  for (int k = 0; k < b.count; k++)
    if (!b.sources || !load(&b, b.names[k], &b.sources[k])) return 1;
  const int result = run(&b);
  free(b.sources);
  return result;
}
