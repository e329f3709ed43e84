/*
 * 1-D convolution, rung by rung: plain, taps in constant memory, a tile in shared memory, vectors in registers;
 * compared with a copy and the CPU.
 *
 *   bench_ladder_convolve [--device-only] [--json FILE] [--once CASE]
 *
 * Every rung gives the same bytes as the CPU, at the ends of the signal too.
 */
#include "bench/prim/ladder.cuh"
#include "cuda/primitives/primitives_cuda.h"
#include "pipeline/include/hartsift_primitives.h"

enum { TAPS = 5, RADIUS = TAPS / 2, THREADS = 256 };

struct convolve_state {
  convolve_args args;
  void *d_taps; /* taps on the device, in the signal's type */
  hs_context *cpu;
  hs_array on_host;
  void *host_out;
  ladder_move copy;
  void *plain_out; /* host */
};

static __constant__ double constant_f64[TAPS];
static __constant__ float constant_f32[TAPS];

static __device__ const double *constant_taps(double) { return constant_f64; }
static __device__ const float *constant_taps(float) { return constant_f32; }
static __device__ double tree(const double *c, const double *x) { return prim_tree_f64(c, x, TAPS); }
static __device__ float tree(const float *c, const float *x) { return prim_tree_f32(c, x, TAPS); }

/* Returns a sample, or zero outside the signal. */
template <typename E> static __device__ E sample(const E *in, int64_t n, int64_t i) {
  return i < 0 || i >= n ? (E)0 : in[i];
}

/* This kernel reads taps and samples from global memory. */
template <typename E> __global__ void convolve_plain_kernel(const E *in, E *out, int64_t n, const E *taps) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  E c[TAPS], x[TAPS];
  for (int j = 0; j < TAPS; j++) {
    c[j] = taps[j];
    x[j] = sample(in, n, i + RADIUS - j);
  }
  out[i] = tree(c, x);
}

template <typename E> __global__ void convolve_constant_kernel(const E *in, E *out, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  E x[TAPS];
  for (int j = 0; j < TAPS; j++) x[j] = sample(in, n, i + RADIUS - j);
  out[i] = tree(constant_taps((E)0), x);
}

template <typename E> __global__ void convolve_tile_kernel(const E *in, E *out, int64_t n) {
  __shared__ E s_x[THREADS + 2 * RADIUS];
  const int64_t first = (int64_t)blockIdx.x * THREADS, i = first + threadIdx.x;
  for (int k = (int)threadIdx.x; k < THREADS + 2 * RADIUS; k += THREADS) s_x[k] = sample(in, n, first + k - RADIUS);
  __syncthreads();
  if (i >= n) return;
  E x[TAPS];
  for (int j = 0; j < TAPS; j++) x[j] = s_x[(int)threadIdx.x + 2 * RADIUS - j];
  out[i] = tree(constant_taps((E)0), x);
}

static unsigned blocks_of(const convolve_state *s) {
  return (unsigned)((s->args.signal.width + THREADS - 1) / THREADS);
}

#define DEFINE_LAUNCH(name, kernel, ...)                                                                               \
  template <typename E> static void name(void *state, cudaStream_t stream) {                                           \
    const convolve_state *s = (const convolve_state *)state;                                                           \
    const E *in = (const E *)s->args.signal.data;                                                                      \
    kernel<E><<<blocks_of(s), THREADS, 0, stream>>>(in, (E *)s->args.out, (int64_t)s->args.signal.width __VA_ARGS__);  \
  }
#define AND_TAPS , (const E *)s->d_taps
DEFINE_LAUNCH(launch_plain, convolve_plain_kernel, AND_TAPS)
DEFINE_LAUNCH(launch_constant, convolve_constant_kernel, )
DEFINE_LAUNCH(launch_tile, convolve_tile_kernel, )

static void launch_library(void *state, cudaStream_t stream) {
  if (convolve_launch(&((const convolve_state *)state)->args, stream) != STAGE_OK) exit(1);
}
static void launch_copy(void *state, cudaStream_t stream) {
  ladder_launch_copy(&((convolve_state *)state)->copy, stream);
}
static void host_convolve(void *state) {
  convolve_state *s = (convolve_state *)state;
  (void)hs_convolve1d(s->cpu, &s->on_host, s->args.taps, s->args.tap_count, HS_ENDS_ZERO, s->host_out, 0);
}

/* The loop that a user of C would write, for signals with zeros around them. */
template <typename E> LADDER_HOST_LOOP static void plain_convolve(void *state) {
  const convolve_state *s = (const convolve_state *)state;
  const E *in = (const E *)s->on_host.data;
  E *out = (E *)s->plain_out;
  const int64_t n = (int64_t)s->on_host.width, taps = (int64_t)s->args.tap_count, radius = taps / 2;
  for (int64_t i = 0; i < n; i++) {
    E sum = 0;
    for (int64_t j = 0; j < taps; j++) {
      const int64_t from = i + radius - j;
      if (from >= 0 && from < n) sum += (E)s->args.taps[j] * in[from];
    }
    out[i] = sum;
  }
}

template <typename E> static void run_signal(ladder *l, const char *name, uint64_t n, uint32_t tap_count, bool all) {
  static double taps[1001];
  convolve_state s;
  if (ladder_skips(l, name)) return;
  memset(&s, 0, sizeof s);
  E *host = (E *)malloc(n * sizeof(E)), short_taps[TAPS];
  uint32_t seed = 11;
  for (uint64_t i = 0; i < n; i++) host[i] = (E)ladder_random(&seed) / (E)16777216;
  for (uint32_t j = 0; j < tap_count; j++) taps[j] = (double)((E)1 / (E)tap_count);
  for (int j = 0; j < TAPS; j++) short_taps[j] = (E)taps[j];
  const bool narrow = sizeof(E) == 4;
  if (narrow)
    LADDER_CHECK(cudaMemcpyToSymbol(constant_f32, short_taps, sizeof short_taps));
  else
    LADDER_CHECK(cudaMemcpyToSymbol(constant_f64, short_taps, sizeof short_taps));
  const size_t bytes = n * sizeof(E);
  void *in = ladder_repeat(host, bytes, bytes);
  const prim_view view = {in, n, 1, bytes, narrow ? PRIM_F32 : PRIM_F64};
  const hs_array array = {host, n, 1, 0, narrow ? HS_ELEMENT_F32 : HS_ELEMENT_F64};
  s.args.signal = view;
  s.args.taps = taps;
  s.args.d_taps = (double *)ladder_repeat(taps, sizeof taps, sizeof taps);
  s.args.tap_count = tap_count;
  s.args.ends = PRIM_ENDS_ZERO;
  s.args.out = ladder_device(bytes);
  s.args.out_stride_bytes = bytes;
  s.d_taps = ladder_repeat(short_taps, sizeof short_taps, sizeof short_taps);
  s.on_host = array;
  s.host_out = malloc(bytes);
  s.plain_out = malloc(bytes);
  s.copy.in = in;
  s.copy.out = s.args.out;
  s.copy.bytes = bytes;
  host_convolve(&s);
  const ladder_case c = {name, &s, s.args.out, bytes, s.host_out, NULL, 2.0 * (double)bytes, l->copy_gbs};
  const ladder_rung rungs[] = {{"plain", launch_plain<E>, false},
                               {"taps in constant memory", launch_constant<E>, false},
                               {"and a tile in shared memory", launch_tile<E>, false},
                               {"the library", launch_library, false},
                               {"a copy", launch_copy, false}};
  for (int i = all ? 0 : 3; i < 4; i++) ladder_run(l, &c, &rungs[i]);
  if (all && !l->once) ladder_record(l, &c, rungs[4].name, ladder_time(l, &rungs[4], &s, 10), "-");
  if (all) ladder_run_host(l, &c, "CPU, a serial loop", plain_convolve<E>, &s);
  ladder_run_host(l, &c, "CPU, the library, 1 thread", host_convolve, &s);
  hs_options o;
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CPU;
  if (all && hs_create(&s.cpu, &o) == HS_OK) ladder_run_host(l, &c, "CPU, the library, all threads", host_convolve, &s);
  hs_destroy(s.cpu);
  cudaFree(in);
  cudaFree((void *)(uintptr_t)s.args.d_taps);
  cudaFree(s.args.out);
  cudaFree(s.d_taps);
  free(host);
  free(s.host_out);
  free(s.plain_out);
}

int main(int argc, char **argv) {
  ladder l;
  ladder_open(&l, "convolution", argc, argv);
  run_signal<double>(&l, "f64, 10 million, 5 taps", 10000000, 5, true);
  run_signal<double>(&l, "f64, 100 million, 5 taps", 100000000, 5, true);
  run_signal<float>(&l, "f32, 10 million, 5 taps", 10000000, 5, true);
  run_signal<float>(&l, "f32, 100 million, 5 taps", 100000000, 5, true);
  run_signal<double>(&l, "f64, 10 million, 3 taps", 10000000, 3, false);
  run_signal<double>(&l, "f64, 10 million, 7 taps", 10000000, 7, false);
  run_signal<float>(&l, "f32, 10 million, 31 taps", 10000000, 31, false);
  run_signal<double>(&l, "f64, 10 million, 31 taps", 10000000, 31, false);
  return ladder_close(&l);
}
