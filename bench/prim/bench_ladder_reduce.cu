/*
 * Sums and ranges, rung by rung: from a single thread to the library's kernels, compared with CUB and the CPU.
 *
 *   bench_ladder_reduce [--device-only] [--json FILE] [--once CASE]
 *
 * All rungs but the last add floats in any order and are checked to a thousandth. The library's sums equal the CPU's
 * byte for byte. Every rung with atomics begins with a memset of its result, whose time has a row too.
 */
#include <cub/device/device_reduce.cuh>

#include "bench/prim/ladder.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/primitives/primitives_cuda.h"
#include "pipeline/include/hartsift_primitives.h"

enum { SUM_THREADS = 256 };

struct sum_state {
  const void *in;
  uint64_t n;
  void *out; /* float, double or integer output of the rung */
  void *temp;
  size_t temp_bytes;
  reduce_args args;
  int processors;
  hs_context *cpu;
  hs_array on_host;
  double host_result[2], plain_result;
};

/* ------------------------------------------------------------------ rungs of the float sum */

__global__ void sum_single_thread_kernel(const float *in, uint64_t n, float *out) {
  float sum = 0.0f;
  for (uint64_t i = 0; i < n; i++) sum += in[i];
  *out = sum;
}

/* Each thread forms a partial sum of type T and adds it atomically. */
template <typename T> __global__ void sum_threads_kernel(const float *in, uint64_t n, T *out) {
  T sum = 0;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) sum += in[i];
  atomicAdd(out, sum);
}

/* Many blocks run: one atomic addition per element. */
__global__ void sum_atomics_kernel(const float *in, uint64_t n, float *out) {
  const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, in[i]);
}

template <typename T> static __device__ T block_tree(T v, T *s) {
  s[threadIdx.x] = v;
  __syncthreads();
  for (unsigned half = SUM_THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
    __syncthreads();
  }
  return s[0];
}

/* A block adds up a tree in shared memory, then adds its sum atomically. */
template <typename T> __global__ void sum_shared_tree_kernel(const float *in, uint64_t n, T *out) {
  __shared__ T s[SUM_THREADS];
  T sum = 0;
  for (uint64_t i = (uint64_t)blockIdx.x * SUM_THREADS + threadIdx.x; i < n; i += (uint64_t)gridDim.x * SUM_THREADS)
    sum += in[i];
  sum = block_tree(sum, s);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

static __device__ float block_shuffle(float v, float *s) {
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(WARP_ALL, v, d);
  if (threadIdx.x % WARP_LANES == 0) s[threadIdx.x / WARP_LANES] = v;
  __syncthreads();
  v = threadIdx.x < SUM_THREADS / WARP_LANES ? s[threadIdx.x] : 0.0f;
  for (int d = 4; d > 0; d >>= 1) v += __shfl_xor_sync(WARP_ALL, v, d);
  return v;
}

__global__ void sum_shuffle_kernel(const float *in, uint64_t n, float *out) {
  __shared__ float s[SUM_THREADS / WARP_LANES];
  float sum = 0.0f;
  for (uint64_t i = (uint64_t)blockIdx.x * SUM_THREADS + threadIdx.x; i < n; i += (uint64_t)gridDim.x * SUM_THREADS)
    sum += in[i];
  sum = block_shuffle(sum, s);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

/* A thread has four loads of 16 bytes in flight. n: a multiple of 4. */
__global__ void sum_vector_kernel(const float4 *in, uint64_t n, float *out) {
  __shared__ float s[SUM_THREADS / WARP_LANES];
  const uint64_t step = (uint64_t)gridDim.x * SUM_THREADS, vectors = n / 4;
  float sum = 0.0f;
  for (uint64_t i = (uint64_t)blockIdx.x * SUM_THREADS + threadIdx.x; i < vectors; i += 4 * step) {
    float4 v[4];
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = i + k * step < vectors ? in[i + k * step] : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < 4; k++) sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
  }
  sum = block_shuffle(sum, s);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

static int grid_of(const sum_state *s, uint64_t items) {
  const uint64_t blocks = (items + SUM_THREADS - 1) / SUM_THREADS, most = (uint64_t)s->processors * 8;
  return (int)(blocks < most ? blocks : most);
}

static void clear_out(const sum_state *s, cudaStream_t stream) { LADDER_CHECK(cudaMemsetAsync(s->out, 0, 8, stream)); }

static void launch_memset(void *state, cudaStream_t stream) { clear_out((const sum_state *)state, stream); }

static void launch_single_thread(void *state, cudaStream_t stream) {
  const sum_state *s = (const sum_state *)state;
  sum_single_thread_kernel<<<1, 1, 0, stream>>>((const float *)s->in, s->n, (float *)s->out);
}
template <typename T, int BLOCKS, int THREADS> static void launch_threads(void *state, cudaStream_t stream) {
  const sum_state *s = (const sum_state *)state;
  clear_out(s, stream);
  sum_threads_kernel<T><<<BLOCKS, THREADS, 0, stream>>>((const float *)s->in, s->n, (T *)s->out);
}
/* BLOCKS 0: as many as the later rungs have. */
template <typename T, int BLOCKS> static void launch_shared_tree(void *state, cudaStream_t stream) {
  const sum_state *s = (const sum_state *)state;
  clear_out(s, stream);
  sum_shared_tree_kernel<T>
      <<<BLOCKS ? BLOCKS : grid_of(s, s->n), SUM_THREADS, 0, stream>>>((const float *)s->in, s->n, (T *)s->out);
}
static void launch_atomics(void *state, cudaStream_t stream) {
  const sum_state *s = (const sum_state *)state;
  clear_out(s, stream);
  sum_atomics_kernel<<<(unsigned)((s->n + 255) / 256), 256, 0, stream>>>((const float *)s->in, s->n, (float *)s->out);
}
static void launch_shuffle(void *state, cudaStream_t stream) {
  const sum_state *s = (const sum_state *)state;
  clear_out(s, stream);
  sum_shuffle_kernel<<<grid_of(s, s->n), SUM_THREADS, 0, stream>>>((const float *)s->in, s->n, (float *)s->out);
}
static void launch_vector(void *state, cudaStream_t stream) {
  const sum_state *s = (const sum_state *)state;
  clear_out(s, stream);
  sum_vector_kernel<<<grid_of(s, s->n / 4), SUM_THREADS, 0, stream>>>((const float4 *)s->in, s->n, (float *)s->out);
}

/* ------------------------------------------------------------------ the library, CUB, the CPU */

static void launch_library(void *state, cudaStream_t stream) {
  const sum_state *s = (const sum_state *)state;
  if (reduce_launch(&s->args, stream) != STAGE_OK) exit(1);
}

static void launch_cub_sum_f32(void *state, cudaStream_t stream) {
  sum_state *s = (sum_state *)state;
  LADDER_CHECK(cub::DeviceReduce::Sum(s->temp, s->temp_bytes, (const float *)s->in, (float *)s->out, s->n, stream));
}
static void launch_cub_min_f32(void *state, cudaStream_t stream) {
  sum_state *s = (sum_state *)state;
  LADDER_CHECK(cub::DeviceReduce::Min(s->temp, s->temp_bytes, (const float *)s->in, (float *)s->out, s->n, stream));
}
static void launch_cub_min_u8(void *state, cudaStream_t stream) {
  sum_state *s = (sum_state *)state;
  LADDER_CHECK(cub::DeviceReduce::Min(s->temp, s->temp_bytes, (const uint8_t *)s->in, (uint8_t *)s->out, s->n, stream));
}
static void launch_cub_sum_u8(void *state, cudaStream_t stream) {
  sum_state *s = (sum_state *)state;
  LADDER_CHECK(cub::DeviceReduce::Reduce(s->temp, s->temp_bytes, (const uint8_t *)s->in, (uint64_t *)s->out, s->n,
                                         cuda::std::plus<uint64_t>{}, (uint64_t)0, stream));
}

static void host_sum(void *state) {
  sum_state *s = (sum_state *)state;
  (void)hs_reduce_sum(s->cpu, &s->on_host, s->host_result);
}
static void host_range(void *state) {
  sum_state *s = (sum_state *)state;
  (void)hs_reduce_range(s->cpu, &s->on_host, &s->host_result[0], &s->host_result[1]);
}

/* The loop that a user of C would write. */
LADDER_HOST_LOOP static void plain_sum(void *state) {
  sum_state *s = (sum_state *)state;
  const float *in = (const float *)s->on_host.data;
  double sum = 0.0;
  for (uint64_t i = 0; i < s->n; i++) sum += in[i];
  s->plain_result = sum;
}

template <typename T> static bool near_sum(const void *got, const void *expected, size_t bytes) {
  (void)bytes;
  const double g = (double)*(const T *)got, e = *(const double *)expected;
  return fabs(g - e) <= 1e-3 * fabs(e);
}
static bool same_u64(const void *got, const void *expected, size_t bytes) {
  (void)bytes;
  return (double)*(const uint64_t *)got == *(const double *)expected;
}
static bool same_float(const void *got, const void *expected, size_t bytes) {
  (void)bytes;
  return (double)*(const float *)got == *(const double *)expected;
}
static bool same_u8(const void *got, const void *expected, size_t bytes) {
  (void)bytes;
  return (double)*(const uint8_t *)got == *(const double *)expected;
}

/* Returns the state for n elements: the library's arguments, CUB's memory, the host copy. */
static sum_state state_of(ladder *l, const void *pattern, size_t pattern_bytes, uint64_t n, prim_element type,
                          reduce_kind kind) {
  sum_state s;
  memset(&s, 0, sizeof s);
  const size_t bytes = n * prim_element_bytes(type);
  s.in = ladder_repeat(pattern, pattern_bytes, bytes);
  s.n = n;
  s.out = ladder_device(256);
  s.processors = l->processors;
  s.temp_bytes = (size_t)64 << 20;
  s.temp = ladder_device(s.temp_bytes);
  const prim_view view = {s.in, n, 1, bytes, type};
  s.args.view = view;
  s.args.kind = kind;
  s.args.first = (double *)s.out;
  s.args.second = kind == REDUCE_RANGE ? (double *)s.out + 1 : NULL;
  s.args.processors = l->processors;
  s.args.scratch = ladder_device(reduce_scratch_bytes(&s.args));
  s.args.ticket = (uint32_t *)ladder_device(256);
  void *host = malloc(bytes);
  LADDER_CHECK(cudaMemcpy(host, s.in, bytes, cudaMemcpyDeviceToHost));
  const hs_array a = {host, n, 1, 0, (hs_element)type};
  s.on_host = a;
  return s;
}

static void free_state(sum_state *s) {
  cudaFree((void *)s->in);
  cudaFree(s->out);
  cudaFree(s->temp);
  cudaFree(s->args.scratch);
  cudaFree(s->args.ticket);
  free((void *)(uintptr_t)s->on_host.data);
}

/* Computes the result on the CPU, which the device must equal. Times it with one thread and with all threads. */
static void run_cpu(ladder *l, ladder_case *c, sum_state *s, void (*call)(void *)) {
  char name[64];
  hs_options o;
  ladder_run_host(l, c, "CPU, the library, 1 thread", call, s);
  hs_options_init(&o, HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CPU;
  if (hs_create(&s->cpu, &o) != HS_OK) return;
  snprintf(name, sizeof name, "CPU, the library, all threads");
  ladder_run_host(l, c, name, call, s);
  hs_destroy(s->cpu);
  s->cpu = NULL;
}

static void run_float_sum(ladder *l, const char *name, const void *pattern, size_t pattern_bytes, uint64_t n,
                          bool all) {
  if (ladder_skips(l, name)) return;
  sum_state s = state_of(l, pattern, pattern_bytes, n, PRIM_F32, REDUCE_SUM);
  ladder_case c = {name, &s, s.out, 4, s.host_result, near_sum<float>, (double)n * 4.0, l->read_gbs};
  static const ladder_rung loose[] = {{"single thread", launch_single_thread, true},
                                      {"1 block of 256, an atomic a thread", launch_threads<float, 1, 256>, true},
                                      {"1 block of 1024, an atomic a thread", launch_threads<float, 1, 1024>, true},
                                      {"many blocks, an atomic an element", launch_atomics, true},
                                      {"16 blocks of 256, an atomic a thread", launch_threads<float, 16, 256>, false},
                                      {"16 blocks of 256, tree in shared memory", launch_shared_tree<float, 16>, false},
                                      {"tree in shared memory", launch_shared_tree<float, 0>, false},
                                      {"warp shuffle", launch_shuffle, false},
                                      {"16-byte loads, shuffle", launch_vector, false},
                                      {"CUB DeviceReduce::Sum", launch_cub_sum_f32, false}};
  static const ladder_rung in_double[] = {
      {"16 blocks of 256, an atomic a thread, in double", launch_threads<double, 16, 256>, false},
      {"16 blocks of 256, tree, in double", launch_shared_tree<double, 16>, false},
      {"tree in shared memory, in double", launch_shared_tree<double, 0>, false}};
  const ladder_rung library = {"the library (fixed tree, in double)", launch_library, false},
                    clear = {"a memset of the result alone", launch_memset, false};
  host_sum(&s);
  for (size_t i = all ? 0 : 6; i < sizeof loose / sizeof loose[0]; i++) ladder_run(l, &c, &loose[i]);
  c.matches = near_sum<double>;
  c.result_bytes = sizeof(double);
  for (size_t i = all ? 0 : 2; i < sizeof in_double / sizeof in_double[0]; i++) ladder_run(l, &c, &in_double[i]);
  if (all && !l->once) ladder_record(l, &c, clear.name, ladder_time(l, &clear, &s, LADDER_LAUNCHES_MAX), "-");
  c.matches = NULL;
  c.result_bytes = sizeof(double);
  ladder_run(l, &c, &library);
  ladder_run_host(l, &c, "CPU, a serial loop in double", plain_sum, &s);
  run_cpu(l, &c, &s, host_sum);
  free_state(&s);
}

/* Runs the library, CUB and the CPU. `same` compares CUB's result. */
static void run_pair(ladder *l, const char *name, sum_state *s, const ladder_rung *cub, size_t cub_bytes,
                     bool (*same)(const void *, const void *, size_t)) {
  if (ladder_skips(l, name)) {
    free_state(s);
    return;
  }
  const bool range = s->args.kind == REDUCE_RANGE;
  void (*call)(void *) = range ? host_range : host_sum;
  ladder_case c = {name,
                   s,
                   s->out,
                   range ? 2 * sizeof(double) : sizeof(double),
                   s->host_result,
                   NULL,
                   (double)s->n * (double)prim_element_bytes(s->args.view.type),
                   l->read_gbs};
  const ladder_rung library = {range ? "the library (both ends)" : "the library", launch_library, false};
  call(s);
  ladder_run(l, &c, &library);
  if (cub) {
    ladder_case other = c;
    other.matches = same;
    other.result_bytes = cub_bytes;
    ladder_run(l, &other, cub);
  }
  run_cpu(l, &c, s, call);
  free_state(s);
}

int main(int argc, char **argv) {
  ladder l;
  enum { PATTERN = 512 * 512 };
  static float floats[PATTERN];
  static double doubles[PATTERN];
  static uint8_t bytes[PATTERN * 4];
  uint32_t seed = 1;
  for (int i = 0; i < PATTERN; i++) doubles[i] = (double)(floats[i] = (float)ladder_random(&seed) / 16777216.0f);
  for (int i = 0; i < PATTERN * 4; i++) bytes[i] = (uint8_t)(ladder_random(&seed) >> 9);
  ladder_open(&l, "reduction", argc, argv);
  const uint64_t gib = (uint64_t)1 << 30;
  run_float_sum(&l, "sum, f32, 512 x 512 (in L2)", floats, sizeof floats, PATTERN, true);
  run_float_sum(&l, "sum, f32, 1 GiB", floats, sizeof floats, gib / 4, false);
  const ladder_rung min_f32 = {"CUB DeviceReduce::Min (one end)", launch_cub_min_f32, false};
  const ladder_rung min_u8 = {"CUB DeviceReduce::Min (one end)", launch_cub_min_u8, false};
  const ladder_rung sum_u8 = {"CUB DeviceReduce::Reduce to u64", launch_cub_sum_u8, false};
  sum_state s = state_of(&l, floats, sizeof floats, gib / 4, PRIM_F32, REDUCE_RANGE);
  run_pair(&l, "range, f32, 1 GiB", &s, &min_f32, 4, same_float);
  s = state_of(&l, doubles, sizeof doubles, gib / 8, PRIM_F64, REDUCE_SUM);
  run_pair(&l, "sum, f64, 1 GiB", &s, NULL, 0, NULL);
  s = state_of(&l, bytes, sizeof bytes, gib / 2, PRIM_U16, REDUCE_SUM);
  run_pair(&l, "sum, u16, 1 GiB", &s, NULL, 0, NULL);
  s = state_of(&l, bytes, sizeof bytes, gib, PRIM_U8, REDUCE_SUM);
  run_pair(&l, "sum, u8, 1 GiB", &s, &sum_u8, 8, same_u64);
  s = state_of(&l, bytes, sizeof bytes, gib, PRIM_U8, REDUCE_RANGE);
  run_pair(&l, "range, u8, 1 GiB", &s, &min_u8, 1, same_u8);
  return ladder_close(&l);
}
