/*
 * Memory and time of frames in tiles, compared with untiled frames.
 *
 *   bench_hartsift tiles [--device cpu|cuda|hybrid] SIDE:FIRST_OCTAVE:MIB[:PROFILE]...
 *                                                      (PROFILE: the number of an hs_profile; lowe)
 *
 * Each argument is a square picture, extracted with max_memory_bytes of so many MiB (0: untiled) in a separate process.
 * The picture repeats a generated scene, so that any size has features everywhere. Prints a row of a table:
 * - memory promised by the query, memory held by the context afterwards, and the peak of the process, which also holds
 *   the 8-bit picture and the features. On a device: host memory with pinned memory, then device memory;
 * - time of the first frame, which allocates, and the best time of some frames, wall clock and processor time;
 * - the digest, which is the same for the same picture.
 */
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/hartsift/bench_modes.h"

enum { SCENE_SIDE = 2048 };
#define MIB 1048576.0
/* How long the frames of a row are repeated. */
#define SECONDS_ON_CPU    15.0
#define SECONDS_ON_DEVICE 2.0

typedef struct bench_row {
  int side, first_octave, mib, profile;
} bench_row;

/* Returns the scene, repeated. Each copy is mirrored so that adjacent copies meet without an edge. */
static uint8_t *picture_of(int side) {
  hs_image scene;
  uint8_t *out = malloc((size_t)side * (size_t)side);
  if (!out || hs_render_scene(SCENE_SIDE, SCENE_SIDE, 1, NULL, NULL, &scene) != HS_OK) return NULL;
  const uint8_t *in = scene.data;
  for (int y = 0; y < side; y++) {
    const int v = y % (2 * SCENE_SIDE), row = v < SCENE_SIDE ? v : 2 * SCENE_SIDE - 1 - v;
    for (int x = 0; x < side; x++) {
      const int u = x % (2 * SCENE_SIDE), column = u < SCENE_SIDE ? u : 2 * SCENE_SIDE - 1 - u;
      out[(size_t)y * (size_t)side + (size_t)x] = in[(size_t)row * scene.stride_bytes + (size_t)column];
    }
  }
  hs_image_free(&scene);
  return out;
}

/* Returns the processor seconds of all threads of this process. */
static double worked(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

typedef struct frame_time {
  /* Seconds of the first frame, and the best wall and processor seconds of the later frames. */
  double first, passed, worked;
} frame_time;

/* Measures the best times of some frames and keeps the features of the last. `passed` stays 0 on failure. */
static frame_time best_time(hs_context *c, const hs_image *image, double seconds, hs_features *f) {
  frame_time best = {0.0, 1e9, 1e9};
  for (double spent = 0.0; spent < seconds;) {
    const double start = bench_ms(), work = worked();
    if (hs_extract(c, image, NULL, f) != HS_OK) {
      fprintf(stderr, "tiles: %s\n", hs_last_error(c));
      return (frame_time){0.0, 0.0, 0.0};
    }
    const frame_time t = {0.0, 1e-3 * (bench_ms() - start), worked() - work};
    if (spent == 0.0) best.first = t.passed;
    spent += t.passed;
    best.passed = t.passed < best.passed ? t.passed : best.passed;
    best.worked = t.worked < best.worked ? t.worked : best.worked;
  }
  return best;
}

static void print_memory(uint64_t host, uint64_t device, hs_device where) {
  printf("%.0f", (double)host / MIB);
  if (where != HS_DEVICE_CPU) printf(" + %.0f", (double)device / MIB);
  printf(" | ");
}

static int run_row(const bench_row *row, hs_device where) {
  hs_options o;
  uint64_t host, device, digest;
  hs_context *c;
  hs_features f = {0};
  hs_statistics s = {.struct_size = sizeof s};
  struct rusage usage;
  hs_options_init(&o, (hs_profile)row->profile);
  o.device = where;
  o.first_octave = row->first_octave;
  o.max_memory_bytes = (uint64_t)row->mib << 20;
  uint8_t *pixels = picture_of(row->side);
  if (!pixels) return bench_fail("no memory for the picture");
  const hs_image image = {.data = pixels, .width = row->side, .height = row->side};
  if (hs_workspace_query(&o, row->side, row->side, &host, &device) != HS_OK) return bench_fail("the query failed");
  if (hs_create(&c, &o) != HS_OK) return bench_fail("no context");
  const frame_time t = best_time(c, &image, where == HS_DEVICE_CPU ? SECONDS_ON_CPU : SECONDS_ON_DEVICE, &f);
  if (t.passed <= 0.0) return 1;
  hs_get_statistics(c, &s);
  hs_digest_features(&f, &digest);
  getrusage(RUSAGE_SELF, &usage);
  const double count = (double)row->side * (double)row->side;
  printf("| %d x %d | %d | %d | ", row->side, row->side, row->first_octave, row->mib);
  print_memory(host, device, where);
  print_memory(s.workspace_bytes, s.device_bytes, where);
  printf("%.0f | %.0f | %zu | %.3f | %.3f | %.2f | %.2f | `%016" PRIx64 "` |\n", (double)usage.ru_maxrss / 1024.0,
         count / MIB, f.count, t.first, t.passed, 1e9 * t.passed / count, 1e9 * t.worked / count, digest);
  hs_features_free(&f);
  hs_destroy(c);
  free(pixels);
  return 0;
}

static bool parse_row(const char *text, bench_row *row) {
  int end = 0;
  if (sscanf(text, "%d:%d:%d%n", &row->side, &row->first_octave, &row->mib, &end) != 3) return false;
  if (text[end] == '\0') return true;
  const char *profile = text + end;
  end = 0;
  return sscanf(profile, ":%d%n", &row->profile, &end) == 1 && profile[end] == '\0';
}

/* Reads --device if it is the first argument. *first: index of the argument after it. */
static bool parse_device(int argc, char **argv, hs_device *where, int *first) {
  *where = HS_DEVICE_CPU;
  *first = 1;
  if (argc < 3 || strcmp(argv[1], "--device") != 0) return true;
  *first = 3;
  if (strcmp(argv[2], "cuda") == 0) *where = HS_DEVICE_CUDA;
  if (strcmp(argv[2], "hybrid") == 0) *where = HS_DEVICE_HYBRID;
  return *where != HS_DEVICE_CPU || strcmp(argv[2], "cpu") == 0;
}

int mode_tiles(int argc, char **argv) {
  hs_device where;
  int first;
  if (!parse_device(argc, argv, &where, &first)) return bench_fail("expected --device cpu, cuda or hybrid");
  printf("| picture | first octave | allowed, MiB | promised, MiB | held, MiB | process, MiB | of that the picture | "
         "features | first, s | s | ns a pixel | CPU ns a pixel | digest |\n"
         "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
  fflush(stdout);
  for (int i = first; i < argc; i++) {
    bench_row row = {.profile = HS_PROFILE_LOWE};
    if (!parse_row(argv[i], &row)) return bench_fail("expected SIDE:FIRST_OCTAVE:MIB[:PROFILE], all of them numbers");
    const pid_t child = fork();
    int status = 1;
    if (child == 0) {
      status = run_row(&row, where);
      fflush(stdout);
      _exit(status);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return bench_fail("a row failed");
  }
  return 0;
}
