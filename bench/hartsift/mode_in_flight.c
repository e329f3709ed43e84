/*
 * Many images in flight on one device: rate compared with one image after another, latency of a steady stream, memory
 * over frames of changing sizes.
 *
 *   bench_hartsift in-flight [rate] [--device cpu|cuda|hybrid] [--split N] [--seconds S] [--group N] [IMAGE ...]
 *   ... latency [--frames N] [...]     one frame at a time and two in flight: median, p99, largest
 *   ... memory [--frames N] [...]      scenes of changing sizes; memory held after each tenth of them
 *   ... sizes [...]                    new sizes: the first three frames of each, and the rate of 300 sizes
 *                                      compared with the rate of their mean
 *   ... split [--seconds S] [...]      latency and rate for every split of the octaves, GPU alone, CPU alone
 *
 * Pictures are in pinned memory if there is a device; results are taken by hs_wait_view. Every image's features are
 * compared with the features of hs_extract on the CPU before anything is timed. Prints Markdown.
 */
#include <unistd.h>

#include "bench/hartsift/bench_modes.h"

enum { IMAGES_MAX = 64, FRAMES_MAX = 1000000, IN_FLIGHT_MAX = 64 };

typedef enum bench_mode { MODE_RATE, MODE_LATENCY, MODE_MEMORY, MODE_SIZES, MODE_SPLIT } bench_mode;

typedef struct bench_options {
  bench_mode mode;
  hs_device device;
  int32_t split, group, threads;
  double seconds;
  int frames;
  int image_count;
  const char *images[IMAGES_MAX];
} bench_options;

static hs_context *open_context(const bench_options *b, hs_device device, int32_t first_octave, int32_t in_flight) {
  hs_options o;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.first_octave = first_octave;
  o.device = device;
  o.split = device == HS_DEVICE_HYBRID ? b->split : 0;
  o.images_per_launch = b->group;
  o.threads = b->threads;
  o.in_flight = in_flight;
  return bench_context(&o);
}

/* Extracts one round of images and compares them with the CPU's features. */
static bool verified(const bench_options *b, hs_context *c, const hs_image *image, int32_t first_octave, int32_t room) {
  hs_features expected = {0};
  hs_context *cpu = open_context(b, HS_DEVICE_CPU, first_octave, 1);
  bool ok = cpu && hs_extract(cpu, image, NULL, &expected) == HS_OK;
  for (int32_t i = 0; i < room && ok; i++) ok = hs_submit(c, image, NULL) == HS_OK;
  for (int32_t i = 0; i < room && ok; i++) {
    const hs_features *view = NULL;
    ok = hs_wait_view(c, &view) == HS_OK && bench_same(view, &expected);
  }
  if (!ok) fprintf(stderr, "in-flight: features differ or failed: %s\n", hs_last_error(c));
  hs_features_free(&expected);
  hs_destroy(cpu);
  return ok;
}

/* Returns images per second, one image after another. */
static double rate_alone(hs_context *c, const hs_image *image, double seconds, size_t *features) {
  const hs_features *view = NULL;
  int n = -5;
  double start = 0, end = 0;
  while (n < 3 || end - start < seconds * 1e3) {
    if (n == 0) start = bench_ms();
    if (hs_extract_view(c, image, NULL, &view) != HS_OK) return 0;
    end = bench_ms();
    n++;
  }
  *features = view->count;
  return n / (end - start) * 1e3;
}

/* Returns images per second with `room` images in flight. */
static double rate_in_flight(hs_context *c, const hs_image *image, double seconds, int32_t room) {
  const hs_features *view = NULL;
  int submitted = 0, n = -2 * room;
  double start = 0, end = 0;
  while (submitted < room && hs_submit(c, image, NULL) == HS_OK) submitted++;
  while (n < 3 * room || end - start < seconds * 1e3) {
    if (n == 0) start = bench_ms();
    if (hs_wait_view(c, &view) != HS_OK || hs_submit(c, image, NULL) != HS_OK) return 0;
    end = bench_ms();
    n++;
  }
  for (int i = 0; i < submitted; i++) (void)hs_wait_view(c, &view);
  return n / (end - start) * 1e3;
}

static bool bench_rate(const bench_options *b, const char *name, int32_t octave) {
  static const int32_t rooms[] = {1, 2, 4, 8, 16, 32, 64};
  hs_image image;
  size_t features = 0;
  if (!bench_pin(b->device, name, &image)) return false;
  hs_context *c = open_context(b, b->device, octave, 1);
  const double alone = c ? rate_alone(c, &image, b->seconds, &features) : 0;
  hs_destroy(c);
  bool ok = alone > 0;
  if (ok) printf("| %s | %s | %zu | %.0f |", bench_base_name(name), octave < 0 ? "yes" : "no", features, alone);
  double best = 0;
  for (size_t i = 0; i < sizeof rooms / sizeof rooms[0] && ok; i++) {
    c = open_context(b, b->device, octave, rooms[i]);
    ok = c && verified(b, c, &image, octave, rooms[i]);
    const double rate = ok ? rate_in_flight(c, &image, b->seconds, rooms[i]) : 0;
    if (rate > best) best = rate;
    printf(" %.0f |", rate);
    fflush(stdout);
    ok = ok && rate > 0;
    hs_destroy(c);
  }
  printf(" %.2f |\n", ok ? best / alone : 0);
  bench_unpin(b->device, &image);
  return ok;
}

static void print_latency(const char *name, int32_t octave, int32_t room, double *ms, int n) {
  (void)bench_summary(ms, n);
  printf("| %s | %s | %d | %d | %.3f | %.3f | %.3f | %.3f |\n", bench_base_name(name), octave < 0 ? "yes" : "no",
         (int)room, n, ms[0], ms[n / 2], ms[(int)(0.99 * n)], ms[n - 1]);
  fflush(stdout);
}

/* Measures the time from hs_submit to the return of hs_wait_view, with `room` images in flight. */
static bool bench_latency(const bench_options *b, const char *name, int32_t octave, int32_t room) {
  static double ms[FRAMES_MAX];
  double submitted[IN_FLIGHT_MAX];
  hs_image image;
  if (!bench_pin(b->device, name, &image)) return false;
  hs_context *c = open_context(b, b->device, octave, room);
  bool ok = c && verified(b, c, &image, octave, room);
  const hs_features *view = NULL;
  int next = 0;
  for (int i = -100; i < b->frames && ok; i++) {
    while (ok && next < room + i + 100) {
      submitted[next % room] = bench_ms();
      ok = hs_submit(c, &image, NULL) == HS_OK;
      next++;
    }
    ok = ok && hs_wait_view(c, &view) == HS_OK;
    if (i >= 0) ms[i] = bench_ms() - submitted[(i + 100) % room];
  }
  if (ok) print_latency(name, octave, room, ms, b->frames);
  hs_destroy(c);
  bench_unpin(b->device, &image);
  return ok;
}

/* ------------------------------------------------------------------ new sizes */

/* SIZES_ROUNDS: rounds over all sizes. When a size comes again, a worker has evicted the data of nearly all sizes. */
enum { SIZES = 300, SIZES_ROUNDS = 5, SIZES_TIMED = 60, SIZES_IN_FLIGHT = 16 };

/* Returns window number i, nearly the whole picture. The first 323 windows have different sizes; window 0 is the whole
 * picture. */
static hs_image size_of(const hs_image *whole, int i) {
  hs_image w = *whole;
  w.stride_bytes = (size_t)whole->width;
  w.width -= i % 19;
  w.height -= i % 17;
  return w;
}

/* Returns a window of the mean size. */
static hs_image mean_size(const hs_image *whole) {
  hs_image w = *whole;
  w.stride_bytes = (size_t)whole->width;
  w.width -= 9;
  w.height -= 8;
  return w;
}

/* Measures the medians of the first, second and third frame of each size, one image after another. */
static bool time_first_frames(hs_context *c, const hs_image *image, double median[3]) {
  static double ms[3][SIZES_TIMED];
  const hs_features *view = NULL;
  for (int i = 0; i <= SIZES_TIMED; i++) {
    const hs_image window = size_of(image, i);
    for (int again = 0; again < 3; again++) {
      const double start = bench_ms();
      if (hs_extract_view(c, &window, NULL, &view) != HS_OK) return false;
      if (i > 0) ms[again][i - 1] = bench_ms() - start; /* frame 0, the whole picture, allocates and is not timed */
    }
  }
  for (int again = 0; again < 3; again++) median[again] = bench_summary(ms[again], SIZES_TIMED).median;
  return true;
}

/* Returns images per second in flight: images of SIZES different sizes, or all of the mean size. */
static double rate_of_sizes(hs_context *c, const hs_image *image, bool one_size) {
  enum { IMAGES = SIZES * SIZES_ROUNDS };
  const hs_features *view = NULL;
  double start = 0;
  /* frames with negative numbers warm up: they allocate */
  for (int next = -2 * SIZES_IN_FLIGHT, waited = next; waited < IMAGES; waited++) {
    while (next < IMAGES && next - waited < SIZES_IN_FLIGHT) {
      const hs_image window = one_size ? mean_size(image) : size_of(image, next < 0 ? 0 : next % SIZES);
      if (hs_submit(c, &window, NULL) != HS_OK) return 0;
      next++;
    }
    if (waited == 0) start = bench_ms();
    if (hs_wait_view(c, &view) != HS_OK) return 0;
  }
  return IMAGES / (bench_ms() - start) * 1e3;
}

static bool bench_sizes(const bench_options *b, const char *name, int32_t octave) {
  hs_image image;
  double median[3] = {0};
  if (!bench_pin(b->device, name, &image)) return false;
  hs_context *c = open_context(b, b->device, octave, 1);
  bool ok = c && time_first_frames(c, &image, median);
  hs_destroy(c);
  double rate[2] = {0};
  for (int one = 0; one < 2 && ok; one++) {
    c = open_context(b, b->device, octave, SIZES_IN_FLIGHT);
    ok = c && verified(b, c, &image, octave, SIZES_IN_FLIGHT);
    if (ok) rate[one] = rate_of_sizes(c, &image, one == 1);
    ok = ok && rate[one] > 0;
    hs_destroy(c);
  }
  if (ok)
    printf("| %s | %s | %.3f | %.3f | %.3f | %.0f | %.0f | %.2f |\n", bench_base_name(name), octave < 0 ? "yes" : "no",
           median[0], median[1], median[2], rate[0], rate[1], rate[0] / rate[1]);
  bench_unpin(b->device, &image);
  return ok;
}

/* Returns the resident memory of the process in MiB. */
static double resident_mib(void) {
  long pages = 0, resident = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (f) fclose(f);
  return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

static bool print_memory(hs_context *c, int frame) {
  hs_statistics s = {.struct_size = sizeof s};
  if (hs_get_statistics(c, &s) != HS_OK) return false;
  printf("| %d | %.1f | %.1f | %.1f | %llu |\n", frame, resident_mib(), (double)s.workspace_bytes / 1048576.0,
         (double)s.device_bytes / 1048576.0, (unsigned long long)s.regrown_frames);
  fflush(stdout);
  return true;
}

/* Returns a window of the picture. Sizes run from 64x64 to the whole picture in a fixed irregular order. */
static hs_image window_of(const hs_image *whole, int frame) {
  const uint32_t r = (uint32_t)frame * 2654435761u;
  hs_image w = *whole;
  w.stride_bytes = (size_t)whole->width;
  w.width = 64 + (int32_t)((r >> 8) % (uint32_t)(whole->width - 63));
  w.height = 64 + (int32_t)((r >> 20) % (uint32_t)(whole->height - 63));
  return w;
}

static bool bench_memory(const bench_options *b, const char *name) {
  hs_image image;
  const hs_features *view = NULL;
  if (!bench_pin(b->device, name, &image)) return false;
  hs_context *c = open_context(b, b->device, -1, 8);
  bool ok = c && verified(b, c, &image, -1, 8);
  printf("| frame | resident MiB | workspace MiB | device MiB | frames repeated |\n|--:|--:|--:|--:|--:|\n");
  const double start = bench_ms();
  for (int waited = 0, next = 0; waited < b->frames && ok; waited++) {
    while (next < b->frames && next - waited < 8 && ok) {
      const hs_image window = window_of(&image, next++);
      ok = hs_submit(c, &window, NULL) == HS_OK;
    }
    if (waited % (b->frames / 10 > 0 ? b->frames / 10 : 1) == 0) ok = ok && print_memory(c, waited);
    ok = ok && hs_wait_view(c, &view) == HS_OK;
  }
  ok = ok && print_memory(c, b->frames);
  printf("\n%d frames in %.1f s\n", b->frames, (bench_ms() - start) * 1e-3);
  if (!ok) fprintf(stderr, "in-flight: %s\n", hs_last_error(c));
  hs_destroy(c);
  bench_unpin(b->device, &image);
  return ok;
}

/* Measures the latency of hs_extract_view, and the rate with eight images in flight. split 0: the context measures and
 * chooses. */
static bool time_split(bench_options b, hs_device device, int32_t split, const hs_image *image, int32_t octave,
                       const char *row) {
  static double ms[FRAMES_MAX];
  b.split = split;
  hs_context *c = open_context(&b, device, octave, 8);
  const hs_features *view = NULL;
  bool ok = c && verified(&b, c, image, octave, 8);
  int n = -5;
  const double begin = bench_ms();
  while (ok && (n < 5 || bench_ms() - begin < b.seconds * 1e3) && n < FRAMES_MAX) {
    const double start = bench_ms();
    ok = hs_extract_view(c, image, NULL, &view) == HS_OK;
    if (n >= 0) ms[n] = bench_ms() - start;
    n++;
  }
  const bench_figures f = ok ? bench_summary(ms, n) : (bench_figures){0};
  const double rate = ok ? rate_in_flight(c, image, b.seconds, 8) : 0;
  if (ok) printf("| %s | %.3f | %.3f | %.0f |\n", row, f.median, f.p90, rate);
  fflush(stdout);
  hs_destroy(c);
  return ok && rate > 0;
}

static bool bench_split(const bench_options *b, const char *name, int32_t octave) {
  hs_image image;
  char row[64];
  if (!bench_pin(HS_DEVICE_HYBRID, name, &image)) return false;
  const int32_t side = (image.width < image.height ? image.width : image.height) << (octave < 0 ? 1 : 0);
  int32_t octaves = 0; /* profile lowe adds octaves while the smaller side has at least 11 samples */
  while (side >> octaves >= 11) octaves++;
  printf("\n%s, %s, %d octaves\n\n| octaves on the GPU | median ms | p90 ms | images/s, 8 in flight "
         "|\n|---|--:|--:|--:|\n",
         bench_base_name(name), octave < 0 ? "doubled" : "not doubled", octaves);
  bool ok = time_split(*b, HS_DEVICE_CUDA, 0, &image, octave, "all, device cuda");
  for (int32_t split = octaves - 1; split >= 1 && ok; split--) {
    snprintf(row, sizeof row, "%d", split);
    ok = time_split(*b, HS_DEVICE_HYBRID, split, &image, octave, row);
  }
  ok = ok && time_split(*b, HS_DEVICE_HYBRID, 0, &image, octave, "measured, --split auto");
  ok = ok && time_split(*b, HS_DEVICE_CPU, 0, &image, octave, "none, device cpu");
  bench_unpin(HS_DEVICE_HYBRID, &image);
  return ok;
}

/* Parses "--name value". Returns false if it is no option of this mode. */
static bool parse_option(bench_options *b, const char *name, const char *value) {
  if (strcmp(name, "--device") == 0)
    b->device = bench_device(value);
  else if (strcmp(name, "--split") == 0)
    b->split = atoi(value);
  else if (strcmp(name, "--group") == 0)
    b->group = atoi(value);
  else if (strcmp(name, "--threads") == 0)
    b->threads = atoi(value);
  else if (strcmp(name, "--seconds") == 0)
    b->seconds = atof(value);
  else if (strcmp(name, "--frames") == 0)
    b->frames = atoi(value);
  else
    return false;
  return true;
}

static bool parse(bench_options *b, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "rate") == 0) {
      b->mode = MODE_RATE;
    } else if (strcmp(argv[i], "latency") == 0) {
      b->mode = MODE_LATENCY;
    } else if (strcmp(argv[i], "memory") == 0) {
      b->mode = MODE_MEMORY;
    } else if (strcmp(argv[i], "sizes") == 0) {
      b->mode = MODE_SIZES;
    } else if (strcmp(argv[i], "split") == 0) {
      b->mode = MODE_SPLIT;
    } else if (strncmp(argv[i], "--", 2) != 0 && b->image_count < IMAGES_MAX) {
      b->images[b->image_count++] = argv[i];
    } else if (i + 1 >= argc || !parse_option(b, argv[i], argv[i + 1])) {
      fprintf(stderr, "in-flight: what is '%s'?\n", argv[i]);
      return false;
    } else {
      i++;
    }
  }
  if (b->frames < 1 || b->frames > FRAMES_MAX) b->frames = 10000;
  if (b->image_count == 0) b->images[b->image_count++] = "@scene:640x480";
  return true;
}

int mode_in_flight(int argc, char **argv) {
  bench_options b = {.device = HS_DEVICE_CUDA, .seconds = 0.5, .frames = 10000};
  if (!parse(&b, argc, argv)) return 2;
  bool ok = true;
  if (b.mode == MODE_RATE)
    printf("| image | doubled | features | alone, images/s | 1 in flight | 2 | 4 | 8 | 16 | 32 | 64 | best / alone |\n"
           "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  if (b.mode == MODE_SIZES)
    printf(
        "| image | doubled | first frame of a size, ms | second | third | %d sizes, images/s | their mean | share |\n"
        "|---|---|--:|--:|--:|--:|--:|--:|\n",
        SIZES);
  if (b.mode == MODE_LATENCY)
    printf("| image | doubled | in flight | frames | least ms | median ms | p99 ms | largest ms |\n"
           "|---|---|--:|--:|--:|--:|--:|--:|\n");
  for (int i = 0; i < b.image_count && ok; i++) {
    if (b.mode == MODE_MEMORY) ok = bench_memory(&b, b.images[i]);
    for (int32_t octave = -1; octave <= 0 && b.mode == MODE_SIZES; octave++)
      ok = bench_sizes(&b, b.images[i], octave) && ok;
    for (int32_t octave = -1; octave <= 0 && b.mode == MODE_RATE; octave++)
      ok = bench_rate(&b, b.images[i], octave) && ok;
    for (int32_t octave = -1; octave <= 0 && b.mode == MODE_SPLIT; octave++)
      ok = bench_split(&b, b.images[i], octave) && ok;
    for (int32_t octave = -1; octave <= 0 && b.mode == MODE_LATENCY; octave++)
      for (int32_t room = 1; room <= 2; room++) ok = bench_latency(&b, b.images[i], octave, room) && ok;
  }
  return ok ? 0 : 1;
}
