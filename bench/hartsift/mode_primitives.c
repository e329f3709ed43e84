/*
 * Time of the primitives' calls on arrays in a GPU's memory, from C. bench/modes/primitives.py adds Python's.
 *
 *   bench_hartsift primitives [--repeats N]
 *
 * Prints a JSON object a line: the call, the array, and the median time in microseconds. "sum", "histogram" and "tiles"
 * return their result: the time of a call. "convolve" and "equalize" leave it on the device: the time of a call among
 * many on one stream.
 */
#include "bench/hartsift/bench_modes.h"

#if HARTSIFT_HAVE_CUDA

#  include "cuda/runtime/device.h"
#  include "pipeline/include/hartsift_cuda.h"

/* TILE: side of a tile; of the largest array LARGE_TILE, because results of 40 bytes a tile cross the bus. */
enum { REPEATS_MAX = 1000, TILE = 40, LARGE_TILE = 400, LARGE_HEIGHT = 10000, TAPS = 5, ENQUEUED = 50 };

typedef enum bench_call { CALL_SUM, CALL_HISTOGRAM, CALL_TILES, CALL_CONVOLVE, CALL_EQUALIZE } bench_call;

static const struct {
  bench_call call;
  const char *name;
  hs_array array; /* data: null until it is allocated */
} rows[] = {
    {CALL_SUM, "sum", {NULL, 512, 512, 0, HS_ELEMENT_F32}},
    {CALL_SUM, "sum", {NULL, 8000, 1000, 0, HS_ELEMENT_U8}},
    {CALL_SUM, "sum", {NULL, 32768, 32768, 0, HS_ELEMENT_U8}},
    {CALL_HISTOGRAM, "histogram", {NULL, 640, 480, 0, HS_ELEMENT_U8}},
    {CALL_HISTOGRAM, "histogram", {NULL, 32768, 32768, 0, HS_ELEMENT_U8}},
    {CALL_TILES, "tiles", {NULL, 8000, 1000, 0, HS_ELEMENT_U8}},
    {CALL_TILES, "tiles", {NULL, 32768, 32768, 0, HS_ELEMENT_U8}},
    {CALL_CONVOLVE, "convolve", {NULL, 10000000, 1, 0, HS_ELEMENT_F64}},
    {CALL_CONVOLVE, "convolve", {NULL, 100000000, 1, 0, HS_ELEMENT_F64}},
    {CALL_EQUALIZE, "equalize", {NULL, 3840, 2160, 0, HS_ELEMENT_U8}},
    {CALL_EQUALIZE, "equalize", {NULL, 32768, 32768, 0, HS_ELEMENT_U8}},
};

static const char *const types[] = {"uint8", "uint16", "float32", "float64"};

/* What the calls share. out: device memory; results: pinned memory. */
typedef struct bench_memory {
  void *data, *out, *results;
  cuda_stream stream;
} bench_memory;

static hs_status call_once(hs_context *c, bench_call call, const hs_array *a, const bench_memory *m) {
  static const double taps[TAPS] = {0.2, 0.2, 0.2, 0.2, 0.2};
  const size_t side = a->height > LARGE_HEIGHT ? LARGE_TILE : TILE;
  const hs_tiling tiling = {side, side, 100.0};
  const size_t tiles = (a->width + side - 1) / side * ((a->height + side - 1) / side);
  size_t count;
  if (call == CALL_SUM) return hs_cuda_reduce_sum(c, a, NULL, m->results);
  if (call == CALL_HISTOGRAM) return hs_cuda_histogram256(c, a, NULL, NULL, m->results);
  if (call == CALL_TILES) return hs_cuda_tile_stats(c, a, &tiling, NULL, m->results, tiles, &count);
  if (call == CALL_EQUALIZE) return hs_cuda_equalize(c, a, m->stream, m->out, 0);
  return hs_cuda_convolve1d(c, a, taps, TAPS, HS_ENDS_ZERO, m->stream, m->out, 0);
}

static bool time_row(hs_context *c, size_t row, const bench_memory *m, int repeats) {
  static double us[REPEATS_MAX];
  hs_array a = rows[row].array;
  a.data = m->data;
  const int calls = rows[row].call >= CALL_CONVOLVE ? ENQUEUED : 1;
  hs_status st = HS_OK;
  for (int i = -3; i < repeats && st == HS_OK; i++) {
    const double start = bench_ms();
    for (int k = 0; k < calls && st == HS_OK; k++) st = call_once(c, rows[row].call, &a, m);
    if (st == HS_OK && calls > 1) st = hs_cuda_finish(c);
    if (i >= 0) us[i] = (bench_ms() - start) * 1e3 / calls;
  }
  if (st != HS_OK) return bench_fail(hs_last_error(c)) == 0;
  const bench_figures f = bench_summary(us, repeats);
  printf("{\"call\": \"%s\", \"type\": \"%s\", \"width\": %zu, \"height\": %zu, \"us\": %.2f, \"least_us\": %.2f}\n",
         rows[row].name, types[a.type], a.width, a.height, f.median, f.least);
  fflush(stdout);
  return true;
}

int mode_primitives(int argc, char **argv) {
  enum { BYTES = 1 << 30, RESULT_BYTES = 64 << 20 };
  const int repeats = argc > 2 && strcmp(argv[1], "--repeats") == 0 ? atoi(argv[2]) : 50;
  if (repeats < 1 || repeats > REPEATS_MAX) return bench_fail("[--repeats 1..1000]");
  if (!bench_has_device()) return 77;
  hs_options o;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  hs_context *c = bench_context(&o);
  bench_memory m = {0};
  bool ok = c && hs_cuda_alloc_host(c, RESULT_BYTES, &m.results) == HS_OK && device_alloc(&m.data, BYTES) == STAGE_OK &&
            device_alloc(&m.out, BYTES) == STAGE_OK && device_stream_create(&m.stream) == STAGE_OK &&
            device_clear(m.data, BYTES, m.stream) == STAGE_OK && device_stream_wait(m.stream) == STAGE_OK;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0] && ok; i++) ok = time_row(c, i, &m, repeats);
  device_free(m.data);
  device_free(m.out);
  if (c) hs_cuda_free_host(c, m.results);
  hs_destroy(c);
  device_stream_destroy(m.stream);
  return ok ? 0 : 1;
}

#endif
