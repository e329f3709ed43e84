/*
 * Time of exact matching on a CUDA device: lists of descriptors in device memory to nearest neighbours in both
 * directions and the kept pairs (mutual, ratio 0.8).
 *
 *   bench_hartsift match [--repeats N] [--json FILE] [--steps] [COUNT ...]     (default: 5000 20000 100000)
 *
 * Before anything is timed, the variants are compared byte for byte, and some features of either list with the
 * reference search. Prints Markdown tables: the kernels by events around what one call enqueues, the call hs_cuda_match
 * by wall clock, with pairs in host memory; median, smallest and 90th percentile over the repeats after warm-up.
 * --steps: each step of the first variant too.
 */
#include "bench/hartsift/bench_modes.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "cuda/match/match_cuda.h"
#  include "pipeline/include/hartsift_cuda.h"

enum { REPEATS_MAX = 1000, WARM_UP = 5, PROBES = 24, COUNTS_MAX = 16, IMAGE_WIDTH = 1920, IMAGE_HEIGHT = 1080 };

typedef struct bench_options {
  int repeats;
  bool steps;
  FILE *json;
  bool first_record;
} bench_options;

/* Two lists of features on host and device, and the launchers' arguments. */
typedef struct bench_lists {
  uint32_t count;
  match_type type;
  unsigned char *host[2];
  hs_keypoint *keypoints[2];
  void *device[2], *device_keypoints[2];
  match_args args;
  cuda_match_work work;
  void *base;
  match_pair *pairs;
  uint32_t *pair_count;
  cuda_stream stream;
  cuda_event begun, done;
} bench_lists;

static uint64_t random_state = 20261121u;

static uint32_t random_bits(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33);
}

/* ------------------------------------------------------------------ lists */

/* Returns a positive value of a sparse descriptor with a norm near 512, as SIFT has. */
static uint8_t descriptor_value(void) {
  const uint32_t r = random_bits();
  return (uint8_t)((r & 7u) < 3u ? (r >> 3) % 8u : (r >> 3) % 90u);
}

/* Makes both lists. Half of the second list are noisy copies of the first in another order; half are unrelated. */
static bool make_lists(bench_lists *l, match_type type, uint32_t count) {
  const size_t value = type == MATCH_F32 ? sizeof(float) : 1, n = (size_t)count * MATCH_LENGTH;
  memset(l, 0, sizeof *l);
  l->count = count;
  l->type = type;
  uint8_t *bytes[2] = {malloc(n), malloc(n)};
  for (int s = 0; s < 2; s++) {
    l->host[s] = malloc(n * value);
    l->keypoints[s] = calloc(count, sizeof(hs_keypoint));
    if (!bytes[s] || !l->host[s] || !l->keypoints[s]) return false;
    for (size_t i = 0; i < count; i++) {
      const size_t from = (i * 7919u + 13u) % count;
      l->keypoints[s][i].x = (float)(random_bits() % (IMAGE_WIDTH * 16)) / 16.0f;
      l->keypoints[s][i].y = (float)(random_bits() % (IMAGE_HEIGHT * 16)) / 16.0f;
      if (s == 1 && i % 2 == 0) l->keypoints[1][i] = l->keypoints[0][from];
      for (size_t k = 0; k < MATCH_LENGTH; k++) {
        uint8_t v = descriptor_value();
        if (s == 1 && i % 2 == 0) v = (uint8_t)(bytes[0][from * MATCH_LENGTH + k] + random_bits() % 8u);
        bytes[s][i * MATCH_LENGTH + k] = v;
      }
    }
    for (size_t k = 0; k < n; k++)
      if (type == MATCH_F32)
        ((float *)(void *)l->host[s])[k] = (float)bytes[s][k] / 512.0f;
      else
        l->host[s][k] = bytes[s][k];
  }
  free(bytes[0]);
  free(bytes[1]);
  return true;
}

static bool upload(bench_lists *l) {
  const size_t bytes = (size_t)l->count * MATCH_LENGTH * (l->type == MATCH_F32 ? sizeof(float) : 1);
  bool ok = device_stream_create(&l->stream) == STAGE_OK && device_event_create(&l->begun, true) == STAGE_OK &&
            device_event_create(&l->done, true) == STAGE_OK;
  for (int s = 0; s < 2 && ok; s++)
    ok = device_alloc(&l->device[s], bytes) == STAGE_OK &&
         device_copy_to(l->device[s], l->host[s], bytes, l->stream) == STAGE_OK &&
         device_alloc(&l->device_keypoints[s], l->count * sizeof(hs_keypoint)) == STAGE_OK &&
         device_copy_to(l->device_keypoints[s], l->keypoints[s], l->count * sizeof(hs_keypoint), l->stream) == STAGE_OK;
  void *forward = NULL, *backward = NULL, *pairs = NULL, *pair_count = NULL;
  const size_t work = cuda_match_work_layout(l->count, l->count, true, NULL, &l->work);
  ok = ok && device_alloc(&l->base, work) == STAGE_OK &&
       device_alloc(&forward, l->count * sizeof(match_nearest)) == STAGE_OK &&
       device_alloc(&backward, l->count * sizeof(match_nearest)) == STAGE_OK &&
       device_alloc(&pairs, l->count * sizeof(match_pair)) == STAGE_OK && device_alloc(&pair_count, 256) == STAGE_OK;
  if (!ok) return false;
  (void)cuda_match_work_layout(l->count, l->count, true, l->base, &l->work);
  l->args = (match_args){.type = l->type,
                         .first = {l->device[0], l->work.first_positions, l->count},
                         .second = {l->device[1], l->work.second_positions, l->count},
                         .forward = forward,
                         .backward = backward};
  l->pairs = pairs;
  l->pair_count = pair_count;
  return device_stream_wait(l->stream) == STAGE_OK;
}

static void drop(bench_lists *l) {
  for (int s = 0; s < 2; s++) {
    free(l->host[s]);
    free(l->keypoints[s]);
    device_free(l->device[s]);
    device_free(l->device_keypoints[s]);
  }
  device_free(l->base);
  device_free(l->args.forward);
  device_free(l->args.backward);
  device_free(l->pairs);
  device_free(l->pair_count);
  device_event_destroy(l->begun);
  device_event_destroy(l->done);
  device_stream_destroy(l->stream);
}

/* ------------------------------------------------------------------ timing */

typedef enum step { ALL, NEAREST, ONE_WAY, NORMS, SQUARES, SETTLE, PAIRS } step;
static const char *const step_names[] = {"both ways and pairs", "both ways", "one way", "norms",
                                         "squares, both ways",  "settle",    "pairs"};
static const char *const variant_names[] = {"tensor", "tensor-narrow", "plain"};

static stage_status launch(bench_lists *l, cuda_match_variant v, step what) {
  match_args args = l->args;
  const cuda_match_pairs_args pairs = {{0.64, 0.0},         args.forward, args.backward, l->count,
                                       l->work.tile_counts, l->pairs,     l->pair_count};
  stage_status st;
  const bool grouped = l->type == MATCH_U8 && v != CUDA_MATCH_PLAIN;
  switch (what) {
  case NORMS:
    return cuda_match_norms_launch(&args, &l->work, l->stream);
  case SQUARES:
    return grouped ? cuda_match_products_launch(&args, &l->work, v == CUDA_MATCH_TENSOR_NARROW, l->stream)
                   : cuda_match_tiles_launch(&args, &l->work, l->stream);
  case SETTLE:
    return cuda_match_settle_launch(&args, &l->work, grouped, l->stream);
  case PAIRS:
    return cuda_match_pairs_launch(&pairs, l->stream);
  case ONE_WAY:
    args.backward = NULL;
    return cuda_match_nearest_launch(&args, &l->work, v, l->stream);
  case NEAREST:
    return cuda_match_nearest_launch(&args, &l->work, v, l->stream);
  default:
    st = cuda_match_nearest_launch(&args, &l->work, v, l->stream);
    return st == STAGE_OK ? cuda_match_pairs_launch(&pairs, l->stream) : st;
  }
}

static bool time_launches(const bench_options *b, bench_lists *l, cuda_match_variant v, step what, bench_figures *f) {
  static double ms[REPEATS_MAX];
  for (int i = -WARM_UP; i < b->repeats; i++) {
    float elapsed = 0.0f;
    /* The step "squares" is timed with the norms computed anew, not reused from the run before. */
    if (what == SQUARES && launch(l, v, NORMS) != STAGE_OK) return false;
    bool ok = device_event_record(l->begun, l->stream) == STAGE_OK && launch(l, v, what) == STAGE_OK &&
              device_event_record(l->done, l->stream) == STAGE_OK && device_stream_wait(l->stream) == STAGE_OK &&
              device_event_elapsed_ms(l->begun, l->done, &elapsed) == STAGE_OK;
    if (!ok) {
      fprintf(stderr, "match: %s\n", device_error_text());
      return false;
    }
    if (i >= 0) ms[i] = (double)elapsed;
  }
  *f = bench_summary(ms, b->repeats);
  return true;
}

static bool time_calls(const bench_options *b, hs_context *c, const bench_lists *l, const hs_match_options *o,
                       bench_figures *f, size_t *pairs) {
  static double ms[REPEATS_MAX];
  hs_matches m = {0};
  const hs_descriptor_type type = l->type == MATCH_F32 ? HS_DESCRIPTOR_F32 : HS_DESCRIPTOR_U8;
  const hs_cuda_features lists[2] = {
      {.count = l->count, .keypoints = l->device_keypoints[0], .descriptors = l->device[0], .descriptor_type = type},
      {.count = l->count, .keypoints = l->device_keypoints[1], .descriptors = l->device[1], .descriptor_type = type}};
  bool ok = true;
  for (int i = -WARM_UP; i < b->repeats && ok; i++) {
    const double start = bench_ms();
    ok = hs_cuda_match(c, &lists[0], &lists[1], o, NULL, &m) == HS_OK;
    if (i >= 0) ms[i] = bench_ms() - start;
  }
  if (!ok) fprintf(stderr, "match: %s\n", hs_last_error(c));
  *pairs = m.count;
  hs_matches_free(&m);
  *f = bench_summary(ms, b->repeats);
  return ok;
}

static void print_row(bench_options *b, const bench_lists *l, const char *variant, const char *what,
                      const bench_figures *f, size_t pairs) {
  const char *type = l->type == MATCH_F32 ? "float" : "8-bit";
  char kept[32] = "";
  if (pairs > 0) snprintf(kept, sizeof kept, "%zu", pairs);
  printf("| %u x %u | %s | %s | %s | %s | %.4f | %.4f | %.4f |\n", l->count, l->count, type, variant, what, kept,
         f->median, f->least, f->p90);
  fflush(stdout);
  if (!b->json) return;
  fprintf(b->json,
          "%s\n  {\"name\": \"match %s %s %s\", \"rows\": %u, \"columns\": %u, \"device\": \"cuda\", \"pairs\": %zu, "
          "\"median_ms\": %.5f, \"min_ms\": %.5f, \"p90_ms\": %.5f}",
          b->first_record ? "" : ",", type, variant, what, l->count, l->count, pairs, f->median, f->least, f->p90);
  b->first_record = false;
}

/* ------------------------------------------------------------------ verification */

/* Compares a few results with the functions of the matching stage on the CPU. */
static bool check_probes(const bench_lists *l, const match_nearest *nearest, bool backward) {
  const unsigned char *own = l->host[backward], *other = l->host[!backward];
  for (uint32_t p = 0; p < PROBES; p++) {
    const uint32_t i = (uint32_t)((uint64_t)p * (l->count - 1u) / (PROBES - 1u));
    match_nearest n = match_nearest_none();
    for (size_t j = 0; j < l->count; j++) {
      const size_t at = (size_t)i * MATCH_LENGTH, there = j * MATCH_LENGTH;
      const float square = l->type == MATCH_U8 ? (float)match_square_u8(own + at, other + there)
                                               : match_square_f32((const float *)(const void *)own + at,
                                                                  (const float *)(const void *)other + there);
      match_take(&n, (uint32_t)j, square);
    }
    if (memcmp(&n, &nearest[i], sizeof n) != 0) {
      fprintf(stderr, "feature %u of %u: nearest %u, expected %u\n", i, l->count, nearest[i].nearest, n.nearest);
      return false;
    }
  }
  return true;
}

/* Runs a variant. Returns the forward results followed by the backward results. */
static match_nearest *run_variant(bench_lists *l, cuda_match_variant v) {
  const size_t bytes = l->count * sizeof(match_nearest);
  match_nearest *n = malloc(2 * bytes);
  const bool ok = n && launch(l, v, NEAREST) == STAGE_OK &&
                  device_copy_from(n, l->args.forward, bytes, l->stream) == STAGE_OK &&
                  device_copy_from(n + l->count, l->args.backward, bytes, l->stream) == STAGE_OK &&
                  device_stream_wait(l->stream) == STAGE_OK;
  if (ok) return n;
  fprintf(stderr, "match: %s\n", device_error_text());
  free(n);
  return NULL;
}

static bool verified(bench_lists *l) {
  match_nearest *n = run_variant(l, CUDA_MATCH_TENSOR);
  bool ok = n && check_probes(l, n, false) && check_probes(l, n + l->count, true);
  for (int v = 1; v < 3 && ok && l->type == MATCH_U8; v++) {
    match_nearest *other = run_variant(l, (cuda_match_variant)v);
    ok = other && memcmp(n, other, 2u * l->count * sizeof *n) == 0;
    if (!ok) fprintf(stderr, "%u x %u: %s differs from tensor\n", l->count, l->count, variant_names[v]);
    free(other);
  }
  free(n);
  return ok;
}

/* ------------------------------------------------------------------ */

/* Times calls without guides, and with guides that half of the keypoint pairs satisfy. */
static bool bench_calls(bench_options *b, hs_context *c, bench_lists *l) {
  static const char *const names[] = {"hs_cuda_match", "hs_cuda_match, homography", "hs_cuda_match, fundamental"};
  const double sideways[9] = {0, 0, 0, 0, 0, -1, 0, 1, 0}; /* fundamental matrix whose epipolar lines are rows */
  for (int guide = 0; guide < 3; guide++) {
    hs_match_options o;
    bench_figures f;
    size_t pairs;
    (void)hs_match_options_init(&o);
    o.guide = (hs_guide)guide;
    if (guide == HS_GUIDE_FUNDAMENTAL) memcpy(o.guide_matrix, sideways, sizeof sideways);
    if (!time_calls(b, c, l, &o, &f, &pairs)) return false;
    print_row(b, l, "by the clock", names[guide], &f, pairs);
  }
  return true;
}

static bool bench_count(bench_options *b, hs_context *c, match_type type, uint32_t count) {
  bench_lists l;
  bench_figures f;
  bool ok = make_lists(&l, type, count) && upload(&l) && verified(&l);
  for (int v = 0; v < (type == MATCH_U8 ? 3 : 1) && ok; v++)
    for (int what = ALL; what <= PAIRS && ok; what++) {
      if (what != ALL && (!b->steps || v == 1)) continue;
      ok = time_launches(b, &l, (cuda_match_variant)v, (step)what, &f);
      if (ok) print_row(b, &l, type == MATCH_F32 ? "plain" : variant_names[v], step_names[what], &f, 0);
    }
  ok = ok && bench_calls(b, c, &l);
  drop(&l);
  return ok;
}

int mode_match(int argc, char **argv) {
  bench_options b = {.repeats = 40, .first_record = true};
  uint32_t counts[COUNTS_MAX] = {5000, 20000, 100000};
  int given = 0;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--repeats") == 0 && i + 1 < argc)
      b.repeats = atoi(argv[++i]);
    else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
      b.json = fopen(argv[++i], "w");
    else if (strcmp(argv[i], "--steps") == 0)
      b.steps = true;
    else if (given < COUNTS_MAX && atoi(argv[i]) > 1)
      counts[given++] = (uint32_t)atoi(argv[i]);
  if (b.repeats < 1 || b.repeats > REPEATS_MAX) b.repeats = 40;
  hs_options o;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  hs_context *c = bench_context(&o);
  if (!c) return 77;
  if (b.json) fprintf(b.json, "[");
  printf("| features | type | variant | what | pairs | median ms | min ms | p90 ms "
         "|\n|---|---|---|---|--:|--:|--:|--:|\n");
  bool ok = true;
  const int n = given > 0 ? given : 3;
  for (int i = 0; i < n && ok; i++) ok = bench_count(&b, c, MATCH_U8, counts[i]);
  for (int i = 0; i < n && ok; i++)
    if (counts[i] <= 20000) ok = bench_count(&b, c, MATCH_F32, counts[i]);
  if (b.json) {
    fprintf(b.json, "\n]\n");
    fclose(b.json);
  }
  hs_destroy(c);
  return ok ? 0 : 1;
}

#endif
