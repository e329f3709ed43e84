/*
 * The mechanisms of HartSift (Li, Jia, Zhang, ICPADS 2017), compared by turns in one process: each row of a group
 * differs from the row that it names in one thing.
 *
 *   bench_hartsift mechanisms [--rounds N] [--first-octave -1|0] [IMAGE ...]
 *
 * Without images: @scene:640x480 and @scene:1920x1080. Each picture is doubled and not, profile lowe, in pinned memory.
 * A round extracts one frame with each variant. Ratio: median over the rounds of a frame's time divided by the other
 * row's in the same round. Every variant's features are compared with the CPU's bytes before they are timed. With 0
 * rounds each variant extracts one frame, for a profiler: _mechanism_profile.py of bench/modes reads its list of
 * kernels.
 */
#include "bench/hartsift/bench_modes.h"
#include "pipeline/include/hartsift_expert.h"

enum { ROUNDS_MAX = 1000, WARM_UP = 5 };

/* against: index of the row that this one is compared with. */
static const struct {
  const char *variant, *what;
  int against;
} rows[] = {
    {"pyramid=levels", "Gaussian levels alone", 0},
    {"pyramid=dog", "and a separate DoG kernel", 0},
    {"pyramid=uber", "uber kernel: both in one launch", 1},
    {"pyramid=split", "levels alone, chains (default)", 0},
    {"pyramid=uber-chains", "uber kernel, chains", 2},
    {"refine=plain", "refinement by a thread a mask word", 5},
    {"refine=rebalanced", "rebalanced (default)", 5},
    {"orient=thread", "orientation: a thread a keypoint", 7},
    {"orient=warp", "a warp, the same walk", 7},
    {"orient=block", "a block of 128, the same walk", 7},
    {"orient=atomic", "a warp; exact spans, staged, tickets (default)", 8},
    {"orient=warp-histogram", "multi-key reduction without atomics", 10},
    {"describe=atomic4", "descriptor: atomics on 4 copies (default)", 12},
    {"describe=atomic2", "atomics on 2 copies", 12},
    {"describe=multi-key", "multi-key reduction without atomics", 12},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static hs_context *open_variant(const char *variant, hs_device device, int32_t first_octave) {
  hs_options o;
  hs_expert_options expert;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.first_octave = first_octave;
  o.device = device;
  hs_expert_options_init(&expert, HS_PROFILE_LOWE);
  expert.variant = variant;
  if (variant) o.expert = &expert;
  return bench_context(&o);
}

/* One picture with all variants. */
typedef struct contest {
  hs_context *contexts[ROWS];
  double ms[ROWS][ROUNDS_MAX];
  size_t features;
} contest;

static bool extract_once(hs_context *c, const hs_image *image, double *ms) {
  const hs_features *view = NULL;
  const double start = bench_ms();
  const bool ok = hs_extract_view(c, image, NULL, &view) == HS_OK;
  *ms = bench_ms() - start;
  if (!ok) (void)bench_fail(hs_last_error(c));
  return ok;
}

/* Compares the features of every variant with the CPU's. */
static bool verified(contest *t, const hs_image *image, int32_t first_octave) {
  hs_features expected = {0};
  hs_context *cpu = open_variant(NULL, HS_DEVICE_CPU, first_octave);
  bool ok = cpu && hs_extract(cpu, image, NULL, &expected) == HS_OK;
  for (int i = 0; i < ROWS && ok; i++) {
    const hs_features *view = NULL;
    ok = hs_extract_view(t->contexts[i], image, NULL, &view) == HS_OK && bench_same(view, &expected);
    if (!ok)
      fprintf(stderr, "mechanisms: %s: not the CPU's bytes. %s\n", rows[i].variant, hs_last_error(t->contexts[i]));
  }
  t->features = expected.count;
  hs_features_free(&expected);
  hs_destroy(cpu);
  return ok;
}

static double device_mib(const hs_context *c) {
  hs_statistics s = {.struct_size = sizeof s};
  return hs_get_statistics(c, &s) == HS_OK ? (double)s.device_bytes / 1048576.0 : 0.0;
}

static void print_rows(contest *t, int rounds) {
  static double ratio[ROWS][ROUNDS_MAX];
  for (int i = 0; i < ROWS; i++)
    for (int r = 0; r < rounds; r++) ratio[i][r] = t->ms[i][r] / t->ms[rows[i].against][r];
  for (int i = 0; i < ROWS; i++) {
    const bench_figures f = bench_summary(t->ms[i], rounds), q = bench_summary(ratio[i], rounds);
    printf("| `%s` | %s | %.4f | %.4f | %.4f | ", rows[i].variant, rows[i].what, f.median, f.least, f.p90);
    if (rows[i].against == i)
      printf("1 | ");
    else
      printf("%.3f of `%s` | ", q.median, rows[rows[i].against].variant);
    printf("%.1f |\n", device_mib(t->contexts[i]));
  }
  fflush(stdout);
}

static bool compete(contest *t, const hs_image *image, int rounds) {
  double unused;
  bool ok = true;
  for (int r = rounds > 0 ? -WARM_UP : -1; r < rounds && ok; r++)
    for (int i = 0; i < ROWS && ok; i++) ok = extract_once(t->contexts[i], image, r < 0 ? &unused : &t->ms[i][r]);
  return ok;
}

static bool bench_image(const char *name, int32_t first_octave, int rounds) {
  static contest t;
  hs_image image;
  bool ok = bench_pin(HS_DEVICE_CUDA, name, &image);
  if (!ok) return false;
  for (int i = 0; i < ROWS; i++) {
    t.contexts[i] = ok ? open_variant(rows[i].variant, HS_DEVICE_CUDA, first_octave) : NULL;
    ok = ok && t.contexts[i];
  }
  ok = ok && (rounds == 0 || verified(&t, &image, first_octave)) && compete(&t, &image, rounds);
  if (ok && rounds > 0) {
    printf("\n%s, %s, %zu features, %d rounds\n\n", bench_base_name(name), first_octave < 0 ? "doubled" : "not doubled",
           t.features, rounds);
    printf("| variant | what | median ms | least | p90 | ratio | device MiB |\n|---|---|--:|--:|--:|---|--:|\n");
    print_rows(&t, rounds);
  }
  for (int i = 0; i < ROWS; i++) hs_destroy(t.contexts[i]);
  bench_unpin(HS_DEVICE_CUDA, &image);
  return ok;
}

int mode_mechanisms(int argc, char **argv) {
  const char *images[16] = {"@scene:640x480", "@scene:1920x1080"};
  int count = 0, rounds = 100, first = -1, last = 0;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
      rounds = atoi(argv[++i]);
    else if (strcmp(argv[i], "--first-octave") == 0 && i + 1 < argc)
      first = last = atoi(argv[++i]);
    else if (count < 16)
      images[count++] = argv[i];
  if (rounds < 0 || rounds > ROUNDS_MAX) return bench_fail("[--rounds 0..1000] [IMAGE ...]");
  if (!bench_has_device()) return 77;
  bool ok = true;
  for (int i = 0; i < (count > 0 ? count : 2); i++)
    for (int32_t octave = first; octave <= last; octave++) ok = bench_image(images[i], octave, rounds) && ok;
  return ok ? 0 : 1;
}
