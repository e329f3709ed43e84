/*
 * Measures hartsift from inside: bench_hartsift MODE [ARGUMENT ...].
 *
 * Without a mode, or with --help, it lists the modes. Their usage is at the top of bench/hartsift/mode_<MODE>.c. Users
 * run `hartsift bench`.
 */
#include "bench/hartsift/bench_modes.h"

#if HARTSIFT_HAVE_CUDA
#  define ON_CUDA(function) function
#else
#  define ON_CUDA(function) NULL
#endif

static const struct {
  const char *name, *what;
  int (*run)(int argc, char **argv);
} modes[] = {
    {"calls", "what callers pay on a GPU: pinned and ordinary memory, user keypoints, in flight", ON_CUDA(mode_calls)},
    {"collection", "rate of many different pictures in flight, from memory", mode_collection},
    {"database", "what one thread adds to COLMAP's database, and one writes", mode_database},
    {"frames", "a frame on a GPU, host to host and resident", ON_CUDA(mode_frames)},
    {"in-flight", "many images in flight: rate, latency, memory, sizes, split of the octaves", mode_in_flight},
    {"jpeg", "JPEGs decoded on a GPU", ON_CUDA(mode_jpeg)},
    {"match", "matching on a GPU", ON_CUDA(mode_match)},
    {"mechanisms", "the mechanisms of the HartSift paper, by turns", ON_CUDA(mode_mechanisms)},
    {"pairs", "many pairs, in memory", mode_pairs},
    {"primitives", "calls of the primitives on a GPU's arrays", ON_CUDA(mode_primitives)},
    {"stages", "stages of the CPU within whole frames, and a digest", mode_stages},
    {"tiles", "frames in tiles: memory promised and held, time", mode_tiles},
    {"variants", "stages of the CPU alone, every variant", mode_variants},
};

int main(int argc, char **argv) {
  const bool lists = argc < 2 || strcmp(argv[1], "--help") == 0;
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    if (lists) printf("%-12s%s\n", modes[i].name, modes[i].what);
    if (lists || strcmp(argv[1], modes[i].name) != 0) continue;
    if (modes[i].run) return modes[i].run(argc - 1, argv + 1);
    (void)bench_fail("this build has no CUDA backend");
    return 77;
  }
  if (lists) return 0;
  fprintf(stderr, "bench_hartsift: there is no mode '%s'\n", argv[1]);
  return 2;
}
