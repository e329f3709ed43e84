/*
 * Shared parts of the ladder benches: rates of the machine, checked and timed rungs, a Markdown table, JSON records.
 *
 * A rung is one algorithm of a ladder of increasing speed. Its output is poisoned, computed and compared before it is
 * timed. The time is the median of 11 replays of a graph of several launches, which excludes the launch overhead of the
 * host. Options of every ladder: --device-only does not time the CPU, --json FILE writes records, --once CASE launches
 * each rung of one case once, for a profiler.
 */
#ifndef HARTSIFT_BENCH_PRIM_LADDER_CUH
#define HARTSIFT_BENCH_PRIM_LADDER_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/include/hartsift.h"

enum { LADDER_REPLAYS = 11, LADDER_LAUNCHES_MAX = 50 };

#define LADDER_CHECK(call)                                                                                             \
  do {                                                                                                                 \
    const cudaError_t ladder_error = (call);                                                                           \
    if (ladder_error != cudaSuccess) {                                                                                 \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(ladder_error));                 \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

struct ladder {
  const char *primitive;
  FILE *json;
  int records, failures, processors;
  bool device_only; /* the CPU is not timed */
  const char *once; /* the only case, whose rungs are launched once; null: all cases are timed */
  cudaStream_t stream;
  double read_gbs, copy_gbs; /* measured rates; the copy counts bytes read and bytes written */
};

/* One contender. launch: enqueues the work; state: its argument. */
struct ladder_rung {
  const char *name;
  void (*launch)(void *state, cudaStream_t stream);
  bool slow; /* three replays */
};

/* Input, output and expected result of a case. matches: compares them; null: compares bytes. */
struct ladder_case {
  const char *name;
  void *state;
  void *result; /* device */
  size_t result_bytes;
  const void *expected; /* host */
  bool (*matches)(const void *got, const void *expected, size_t bytes);
  double bytes;    /* minimum memory traffic of the case */
  double rate_gbs; /* measured rate with which the case is compared */
};

static double ladder_now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ladder_by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double ladder_median(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, ladder_by_value);
  return v[n / 2];
}

/* Returns the median time of one launch in microseconds. */
static double ladder_time(ladder *l, const ladder_rung *rung, void *state, int launches) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t start, stop;
  double us[LADDER_REPLAYS];
  const int replays = rung->slow ? 3 : (int)LADDER_REPLAYS;
  LADDER_CHECK(cudaStreamBeginCapture(l->stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches; i++) rung->launch(state, l->stream);
  LADDER_CHECK(cudaStreamEndCapture(l->stream, &graph));
  LADDER_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  LADDER_CHECK(cudaEventCreate(&start));
  LADDER_CHECK(cudaEventCreate(&stop));
  for (int i = rung->slow ? 0 : -2; i < replays; i++) {
    float ms;
    LADDER_CHECK(cudaEventRecord(start, l->stream));
    LADDER_CHECK(cudaGraphLaunch(exec, l->stream));
    LADDER_CHECK(cudaEventRecord(stop, l->stream));
    LADDER_CHECK(cudaEventSynchronize(stop));
    LADDER_CHECK(cudaEventElapsedTime(&ms, start, stop));
    if (i >= 0) us[i] = (double)ms * 1e3 / launches;
  }
  LADDER_CHECK(cudaEventDestroy(start));
  LADDER_CHECK(cudaEventDestroy(stop));
  LADDER_CHECK(cudaGraphExecDestroy(exec));
  LADDER_CHECK(cudaGraphDestroy(graph));
  return ladder_median(us, replays);
}

static void ladder_record(ladder *l, const ladder_case *c, const char *rung, double us, const char *checked) {
  const double gbs = c->bytes / us * 1e-3;
  printf("| %s | %s | %s | %.2f | %.0f | %.0f %% |\n", c->name, rung, checked, us, gbs, 100.0 * gbs / c->rate_gbs);
  fflush(stdout);
  if (!l->json) return;
  fprintf(l->json, "%s\n  {\"primitive\": \"%s\", \"case\": \"%s\", \"rung\": \"%s\", \"checked\": \"%s\", ",
          l->records++ ? "," : "", l->primitive, c->name, rung, checked);
  fprintf(l->json, "\"median_us\": %.3f, \"bytes\": %.0f, \"gb_per_s\": %.1f, \"share\": %.4f}", us, c->bytes, gbs,
          gbs / c->rate_gbs);
}

/* Checks and times a rung. */
static void ladder_run(ladder *l, const ladder_case *c, const ladder_rung *rung) {
  void *got = malloc(c->result_bytes);
  LADDER_CHECK(cudaMemsetAsync(c->result, 0xa5, c->result_bytes, l->stream));
  rung->launch(c->state, l->stream);
  LADDER_CHECK(cudaMemcpyAsync(got, c->result, c->result_bytes, cudaMemcpyDeviceToHost, l->stream));
  LADDER_CHECK(cudaStreamSynchronize(l->stream));
  const bool right =
      c->matches ? c->matches(got, c->expected, c->result_bytes) : memcmp(got, c->expected, c->result_bytes) == 0;
  free(got);
  if (!right) {
    l->failures++;
    printf("| %s | %s | WRONG | | | |\n", c->name, rung->name);
    return;
  }
  if (l->once) return;
  const double once = ladder_time(l, rung, c->state, 1);
  int launches = (int)(2000.0 / once) + 1;
  if (launches > LADDER_LAUNCHES_MAX) launches = LADDER_LAUNCHES_MAX;
  const double us = launches == 1 ? once : ladder_time(l, rung, c->state, launches);
  ladder_record(l, c, rung->name, us, c->matches ? "yes" : "same bytes");
}

/* Returns the median wall time of a call on the host in microseconds: of 7 calls, or of the calls that begin within
 * half a second. */
static double ladder_host_us(void (*call)(void *state), void *state) {
  double us[7];
  int n = 0;
  for (const double begin = ladder_now_us(); n < 7 && (n == 0 || ladder_now_us() - begin < 5e5); n++) {
    const double start = ladder_now_us();
    call(state);
    us[n] = ladder_now_us() - start;
  }
  return ladder_median(us, n);
}

/* Runs and prints the CPU's row. The other rows are compared with its results. */
static void ladder_run_host(ladder *l, const ladder_case *c, const char *name, void (*call)(void *state), void *state) {
  if (!l->device_only && !l->once) ladder_record(l, c, name, ladder_host_us(call, state), "reference");
}

/* Whether --once leaves a case out. */
static bool ladder_skips(const ladder *l, const char *name) { return l->once && strcmp(name, l->once) != 0; }

/* A function that the host's compiler optimises whatever nvcc passes to it: a loop that a user would write. */
#if defined(__GNUC__) && !defined(__clang__)
#  define LADDER_HOST_LOOP __attribute__((optimize("O3"), noinline))
#else
#  define LADDER_HOST_LOOP
#endif

/* Reads every byte with the fewest instructions: 16-byte loads, 8 of them in flight in each thread. */
__global__ void __launch_bounds__(256) ladder_read_kernel(const uint4 *in, uint64_t n, uint32_t *sink) {
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  uint32_t mixed = 0;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 8 * step) {
    uint4 v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = i + k * step < n ? __ldg(in + i + k * step) : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < 8; k++) mixed ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  if (mixed == 0x9e3779b9u) *sink = mixed; /* never true; keeps the compiler from dropping the loads */
}

struct ladder_move {
  void *in, *out;
  size_t bytes;
  int blocks;
};

static void ladder_launch_read(void *state, cudaStream_t stream) {
  const ladder_move *m = (const ladder_move *)state;
  ladder_read_kernel<<<m->blocks, 256, 0, stream>>>((const uint4 *)m->in, m->bytes / 16, (uint32_t *)m->out);
}

static void ladder_launch_memcpy(void *state, cudaStream_t stream) {
  const ladder_move *m = (const ladder_move *)state;
  LADDER_CHECK(cudaMemcpyAsync(m->out, m->in, m->bytes, cudaMemcpyDeviceToDevice, stream));
}

/* 16-byte loads and stores, 4 of them in flight in each thread. */
__global__ void __launch_bounds__(256) ladder_copy_kernel(const uint4 *in, uint4 *out, uint64_t n) {
  const uint64_t i = (uint64_t)blockIdx.x * 1024 + threadIdx.x;
  uint4 v[4];
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (i + k * 256 < n) v[k] = __ldg(in + i + k * 256);
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (i + k * 256 < n) out[i + k * 256] = v[k];
}

static void ladder_launch_copy(void *state, cudaStream_t stream) {
  const ladder_move *m = (const ladder_move *)state;
  const uint64_t n = m->bytes / 16;
  ladder_copy_kernel<<<(unsigned)((n + 1023) / 1024), 256, 0, stream>>>((const uint4 *)m->in, (uint4 *)m->out, n);
}

/* Measures the rates over 1 GiB: the best of several grids for reads, the better of two copies. */
static void ladder_measure(ladder *l) {
  ladder_move m = {NULL, NULL, (size_t)1 << 30, 0};
  LADDER_CHECK(cudaMalloc(&m.in, m.bytes));
  LADDER_CHECK(cudaMalloc(&m.out, m.bytes));
  LADDER_CHECK(cudaMemset(m.in, 0x5a, m.bytes));
  const ladder_rung read = {"read", ladder_launch_read, false},
                    copies[] = {{"copy", ladder_launch_copy, false}, {"memcpy", ladder_launch_memcpy, false}};
  for (int blocks_per_sm = 2; blocks_per_sm <= 32; blocks_per_sm *= 2) {
    m.blocks = l->processors * blocks_per_sm;
    l->read_gbs = fmax(l->read_gbs, (double)m.bytes / ladder_time(l, &read, &m, 5) * 1e-3);
  }
  for (int i = 0; i < 2; i++)
    l->copy_gbs = fmax(l->copy_gbs, 2.0 * (double)m.bytes / ladder_time(l, &copies[i], &m, 5) * 1e-3);
  LADDER_CHECK(cudaFree(m.in));
  LADDER_CHECK(cudaFree(m.out));
}

/* Parses the options, opens the first device and the JSON file, measures the rates, prints the table's head. */
static void ladder_open(ladder *l, const char *primitive, int argc, char **argv) {
  int devices = 0;
  cudaDeviceProp p;
  memset(l, 0, sizeof *l);
  l->primitive = primitive;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("skipped: no CUDA device\n");
    exit(77);
  }
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--device-only") == 0) l->device_only = true;
    if (strcmp(argv[i], "--once") == 0 && i + 1 < argc) l->once = argv[++i];
    if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) l->json = fopen(argv[++i], "w");
  }
  LADDER_CHECK(cudaGetDeviceProperties(&p, 0));
  LADDER_CHECK(cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking));
  l->processors = p.multiProcessorCount;
  if (!l->once) ladder_measure(l);
  printf("\n## %s\n\n%s; read %.0f GB/s, copy %.0f GB/s (read and written), 1 GiB each.\n\n", primitive, p.name,
         l->read_gbs, l->copy_gbs);
  printf("| case | rung | checked | us | GB/s | of the rate |\n|---|---|---|--:|--:|--:|\n");
  if (l->json) fprintf(l->json, "[");
}

static int ladder_close(ladder *l) {
  if (l->json) {
    fprintf(l->json, "\n]\n");
    fclose(l->json);
  }
  return l->failures ? 1 : 0;
}

/* Returns the next pseudo-random word, equal on every machine. */
static uint32_t ladder_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* Returns device memory filled with a repeated pattern from host memory. */
static void *ladder_repeat(const void *pattern, size_t pattern_bytes, size_t bytes) {
  unsigned char *p;
  LADDER_CHECK(cudaMalloc((void **)&p, bytes));
  size_t done = pattern_bytes < bytes ? pattern_bytes : bytes;
  LADDER_CHECK(cudaMemcpy(p, pattern, done, cudaMemcpyHostToDevice));
  while (done < bytes) {
    const size_t more = done < bytes - done ? done : bytes - done;
    LADDER_CHECK(cudaMemcpy(p + done, p, more, cudaMemcpyDeviceToDevice));
    done += more;
  }
  return p;
}

static void *ladder_device(size_t bytes) {
  void *p;
  LADDER_CHECK(cudaMalloc(&p, bytes));
  LADDER_CHECK(cudaMemset(p, 0, bytes));
  return p;
}

#endif
