/*
 * Histograms of 256 bins, rung by rung, on noise, a natural picture and a constant picture.
 *
 * Also times equalisation, compares the library with CUB at usual picture sizes, and measures the conflict-free rate of
 * shared memory updates of a multiprocessor.
 *
 *   bench_ladder_histogram [--device-only] [--json FILE] [--once CASE]
 */
#include <cub/device/device_histogram.cuh>

#include "bench/prim/ladder.cuh"
#include "cuda/prim/histograms.cuh"
#include "cuda/primitives/primitives_cuda.h"
#include "pipeline/include/hartsift_primitives.h"

enum { BINS = 256, THREADS = 256, WARPS = THREADS / 32, PRIVATE_THREADS = 416, UPDATE_ROUNDS = 4096 };

struct histogram_state {
  const uint8_t *in;
  uint64_t n; /* a multiple of 16 */
  uint32_t *bins;
  void *temp;
  size_t temp_bytes;
  histogram_args args;
  equalize_args levels;
  hs_context *cpu;
  hs_array on_host;
  uint64_t host_counts[BINS], plain_counts[BINS];
  uint8_t *host_out;
  int processors;
};

/* ------------------------------------------------------------------ rungs; the caller clears the bins */

#define FOR_EACH_VECTOR(v)                                                                                             \
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x)     \
    for (uint4 v = in[i], *once = &v; once; once = nullptr)
#define FOR_EACH_BYTE(v, byte)                                                                                         \
  for (int word_ = 0; word_ < 4; word_++)                                                                              \
    for (uint32_t word = word_ == 0 ? v.x : (word_ == 1 ? v.y : (word_ == 2 ? v.z : v.w)), k = 0, byte = word & 255u;  \
         k < 4; k++, byte = word >> 8 * k & 255u)

__global__ void histogram_global_kernel(const uint4 *in, uint64_t n, uint32_t *bins) {
  FOR_EACH_VECTOR(v)
#pragma unroll
  FOR_EACH_BYTE(v, byte) atomicAdd(&bins[byte], 1u);
}

static __device__ void flush(const uint32_t *s_bins, int copies, uint32_t *bins) {
  __syncthreads();
  for (int b = (int)threadIdx.x; b < BINS; b += (int)blockDim.x) {
    uint32_t sum = 0;
    for (int c = 0; c < copies; c++) sum += s_bins[c * BINS + b];
    if (sum != 0) atomicAdd(&bins[b], sum);
  }
}

/* This kernel has one histogram per block. */
__global__ void histogram_block_kernel(const uint4 *in, uint64_t n, uint32_t *bins) {
  __shared__ uint32_t s_bins[BINS];
  s_bins[threadIdx.x] = 0;
  __syncthreads();
  FOR_EACH_VECTOR(v)
#pragma unroll
  FOR_EACH_BYTE(v, byte) atomicAdd(&s_bins[byte], 1u);
  flush(s_bins, 1, bins);
}

/* This kernel has one histogram per block and reads one byte, or a word of four, at a time. */
template <typename W> __global__ void histogram_block_of_kernel(const W *in, uint64_t n, uint32_t *bins) {
  __shared__ uint32_t s_bins[BINS];
  s_bins[threadIdx.x] = 0;
  __syncthreads();
  for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (uint64_t)gridDim.x * THREADS) {
    const uint32_t word = in[i];
#pragma unroll
    for (uint32_t k = 0; k < sizeof(W); k++) atomicAdd(&s_bins[word >> 8 * k & 255u], 1u);
  }
  flush(s_bins, 1, bins);
}

/* This kernel reads one byte at a time and counts in global memory. */
__global__ void histogram_global_bytes_kernel(const uint8_t *in, uint64_t n, uint32_t *bins) {
  for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (uint64_t)gridDim.x * THREADS)
    atomicAdd(&bins[in[i]], 1u);
}

/* This kernel has one histogram per warp. */
__global__ void histogram_warp_kernel(const uint4 *in, uint64_t n, uint32_t *bins) {
  __shared__ uint32_t s_bins[WARPS * BINS];
  for (int i = (int)threadIdx.x; i < WARPS * BINS; i += THREADS) s_bins[i] = 0;
  __syncthreads();
  uint32_t *mine = s_bins + threadIdx.x / 32 * BINS;
  FOR_EACH_VECTOR(v)
#pragma unroll
  FOR_EACH_BYTE(v, byte) atomicAdd(&mine[byte], 1u);
  flush(s_bins, WARPS, bins);
}

/* This kernel needs no atomics in shared memory: lanes with equal keys find each other by a match instruction, and one
 * of them adds the count. */
__global__ void histogram_match_kernel(const uint4 *in, uint64_t n, uint32_t *bins) {
  __shared__ uint32_t s_bins[WARPS * BINS];
  for (int i = (int)threadIdx.x; i < WARPS * BINS; i += THREADS) s_bins[i] = 0;
  __syncthreads();
  uint32_t *mine = s_bins + threadIdx.x / 32 * BINS;
  const uint64_t step = (uint64_t)gridDim.x * THREADS, first = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
  const uint32_t lane = threadIdx.x % 32;
  for (uint64_t i = first; i - lane < n; i += step) { /* all lanes of a warp leave the loop together */
    const bool valid = i < n;
    const uint4 v = valid ? in[i] : make_uint4(0, 0, 0, 0);
#pragma unroll
    FOR_EACH_BYTE(v, byte) {
      const uint32_t group = warp_hist_group(valid ? (int32_t)byte : -1);
      __syncwarp();
      if (valid && lane == (uint32_t)__ffs((int)group) - 1) mine[byte] += (uint32_t)__popc(group);
    }
  }
  flush(s_bins, WARPS, bins);
}

/* This kernel needs no atomics in shared memory: each thread has 256 counters of 16 bits in one bank and updates them
 * by load, add, store. */
__global__ void __launch_bounds__(PRIVATE_THREADS)
    histogram_private_kernel(const uint4 *in, uint64_t n, uint32_t *bins) {
  extern __shared__ uint32_t s_pairs[]; /* [128][threads] */
  uint16_t *mine = (uint16_t *)(s_pairs + threadIdx.x);
  for (int b = 0; b < BINS / 2; b++) s_pairs[b * PRIVATE_THREADS + (int)threadIdx.x] = 0;
  uint32_t turns = 0;
  const uint64_t step = (uint64_t)gridDim.x * PRIVATE_THREADS;
  for (uint64_t first = (uint64_t)blockIdx.x * PRIVATE_THREADS; first < n; first += step) {
    if (first + threadIdx.x < n) {
      const uint4 v = in[first + threadIdx.x];
#pragma unroll
      FOR_EACH_BYTE(v, byte) mine[(byte >> 1) * (2 * PRIVATE_THREADS) + (byte & 1u)]++;
    }
    /* a thread counts at most 64000 bytes before its 16-bit counters are added up */
    if (++turns < 4000 && first + step < n) continue;
    turns = 0;
    __syncthreads();
    /* each warp adds up a pair of bins */
    for (int b = (int)(threadIdx.x / 32); b < BINS / 2; b += PRIVATE_THREADS / 32) {
      uint32_t even = 0, odd = 0;
      for (int t = (int)threadIdx.x % 32; t < PRIVATE_THREADS; t += 32) {
        const uint32_t pair = s_pairs[b * PRIVATE_THREADS + t];
        s_pairs[b * PRIVATE_THREADS + t] = 0;
        even += pair & 0xffffu;
        odd += pair >> 16;
      }
      even = warp_reduce_sum(even);
      odd = warp_reduce_sum(odd);
      if (threadIdx.x % 32 == 0 && even) atomicAdd(&bins[2 * b], even);
      if (threadIdx.x % 32 == 0 && odd) atomicAdd(&bins[2 * b + 1], odd);
    }
    __syncthreads();
  }
}

static int grid_of(const histogram_state *s, int threads, int blocks_per_sm) {
  const uint64_t blocks = (s->n / 16 + (uint64_t)threads - 1) / (uint64_t)threads;
  const uint64_t most = (uint64_t)s->processors * (uint64_t)blocks_per_sm;
  return (int)(blocks < most ? blocks : most);
}
static const uint4 *vectors_of(const histogram_state *s) { return (const uint4 *)s->in; }
static void clear(const histogram_state *s, cudaStream_t stream) {
  LADDER_CHECK(cudaMemsetAsync(s->bins, 0, BINS * sizeof(uint32_t), stream));
}
#define DEFINE_LAUNCH(name, kernel, threads, blocks, shared)                                                           \
  static void name(void *state, cudaStream_t stream) {                                                                 \
    const histogram_state *s = (const histogram_state *)state;                                                         \
    clear(s, stream);                                                                                                  \
    kernel<<<grid_of(s, threads, blocks), threads, shared, stream>>>(vectors_of(s), s->n / 16, s->bins);               \
  }
DEFINE_LAUNCH(launch_global, histogram_global_kernel, THREADS, 8, 0)
DEFINE_LAUNCH(launch_block, histogram_block_kernel, THREADS, 8, 0)
DEFINE_LAUNCH(launch_warp, histogram_warp_kernel, THREADS, 8, 0)
DEFINE_LAUNCH(launch_match, histogram_match_kernel, THREADS, 8, 0)
DEFINE_LAUNCH(launch_private, histogram_private_kernel, PRIVATE_THREADS, 1, PRIVATE_THREADS * 512)

/* As many blocks as the rungs with 16-byte reads may have: 8 a multiprocessor. */
template <typename W> static void launch_block_of(void *state, cudaStream_t stream) {
  const histogram_state *s = (const histogram_state *)state;
  const uint64_t items = s->n / sizeof(W), blocks = (items + THREADS - 1) / THREADS, most = (uint64_t)s->processors * 8;
  clear(s, stream);
  histogram_block_of_kernel<W>
      <<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, stream>>>((const W *)s->in, items, s->bins);
}
static void launch_global_bytes(void *state, cudaStream_t stream) {
  const histogram_state *s = (const histogram_state *)state;
  const uint64_t blocks = (s->n + THREADS - 1) / THREADS, most = (uint64_t)s->processors * 8;
  clear(s, stream);
  histogram_global_bytes_kernel<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, stream>>>(s->in, s->n,
                                                                                                   s->bins);
}
static void launch_clear(void *state, cudaStream_t stream) { clear((const histogram_state *)state, stream); }

static void launch_library(void *state, cudaStream_t stream) {
  if (histogram_launch(&((const histogram_state *)state)->args, stream) != STAGE_OK) exit(1);
}
static void launch_equalize(void *state, cudaStream_t stream) {
  const histogram_state *s = (const histogram_state *)state;
  if (histogram_launch(&s->args, stream) != STAGE_OK || equalize_launch(&s->levels, stream) != STAGE_OK) exit(1);
}
static void launch_cub(void *state, cudaStream_t stream) {
  histogram_state *s = (histogram_state *)state;
  LADDER_CHECK(cub::DeviceHistogram::HistogramEven(s->temp, s->temp_bytes, s->in, s->bins, BINS + 1, 0, 256,
                                                   (int64_t)s->n, stream));
}
static void host_histogram(void *state) {
  histogram_state *s = (histogram_state *)state;
  (void)hs_histogram256(s->cpu, &s->on_host, NULL, s->host_counts);
}
static void host_equalize(void *state) {
  histogram_state *s = (histogram_state *)state;
  (void)hs_equalize(s->cpu, &s->on_host, s->host_out, 0);
}

/* The loop that a user of C would write. */
LADDER_HOST_LOOP static void plain_histogram(void *state) {
  histogram_state *s = (histogram_state *)state;
  const uint8_t *in = (const uint8_t *)s->on_host.data;
  memset(s->plain_counts, 0, sizeof s->plain_counts);
  for (uint64_t i = 0; i < s->n; i++) s->plain_counts[in[i]]++;
}

static bool same_counts(const void *got, const void *expected, size_t bytes) {
  (void)bytes;
  for (int b = 0; b < BINS; b++)
    if (((const uint32_t *)got)[b] != ((const uint64_t *)expected)[b]) return false;
  return true;
}

/* ------------------------------------------------------------------ the rate of updates */

/* Blocks of 8 warps. Each lane updates its own bank: by atomic addition, or by load, add, store. */
template <bool ATOMIC> __global__ void update_rate_kernel(uint32_t *sink) {
  __shared__ uint32_t s_bins[64 * 32];
  for (int i = (int)threadIdx.x; i < 64 * 32; i += (int)blockDim.x) s_bins[i] = 0;
  __syncthreads();
  const uint32_t lane = threadIdx.x % 32;
  uint32_t at = threadIdx.x / 32 * 7;
  for (int i = 0; i < UPDATE_ROUNDS; i++) {
    uint32_t *p = &s_bins[(at & 63u) * 32 + lane];
    if (ATOMIC)
      atomicAdd(p, 1u);
    else
      *p += 1u;
    at += 5;
  }
  __syncthreads();
  if (s_bins[threadIdx.x] == 0xffffffffu) *sink = 1;
}

static void launch_atomic_rate(void *state, cudaStream_t stream) {
  const histogram_state *s = (const histogram_state *)state;
  update_rate_kernel<true><<<s->processors * 8, THREADS, 0, stream>>>(s->bins);
}
static void launch_plain_rate(void *state, cudaStream_t stream) {
  const histogram_state *s = (const histogram_state *)state;
  update_rate_kernel<false><<<s->processors * 8, THREADS, 0, stream>>>(s->bins);
}

static void print_rates(ladder *l, histogram_state *s) {
  const double updates = (double)l->processors * 8 * THREADS * UPDATE_ROUNDS;
  const ladder_rung rungs[] = {{"atomic addition", launch_atomic_rate, false},
                               {"read, raise, write", launch_plain_rate, false}};
  for (int i = 0; i < 2; i++) {
    const ladder_case c = {"updates of shared memory without conflicts (GB/s: 10^9 updates a second)",
                           s,
                           NULL,
                           0,
                           NULL,
                           NULL,
                           updates,
                           l->read_gbs};
    ladder_record(l, &c, rungs[i].name, ladder_time(l, &rungs[i], s, 3), "rate");
  }
}

/* ------------------------------------------------------------------ cases */

static histogram_state open_picture(const ladder *l, const uint8_t *pattern, uint64_t pattern_bytes, uint64_t n) {
  histogram_state s;
  memset(&s, 0, sizeof s);
  s.in = (const uint8_t *)ladder_repeat(pattern, pattern_bytes, n);
  s.n = n;
  s.processors = l->processors;
  s.bins = (uint32_t *)ladder_device(BINS * sizeof(uint64_t));
  s.temp_bytes = (size_t)16 << 20;
  s.temp = ladder_device(s.temp_bytes);
  const prim_view view = {s.in, n, 1, n, PRIM_U8};
  s.args.view = view;
  s.args.counts = (uint64_t *)s.bins;
  s.args.scratch = (histogram_scratch *)ladder_device(sizeof(histogram_scratch));
  s.args.processors = l->processors;
  s.levels.view = view;
  s.levels.counts = s.args.counts;
  s.levels.out = (uint8_t *)ladder_device(n);
  s.levels.out_stride_bytes = n;
  s.levels.processors = l->processors;
  uint8_t *host = (uint8_t *)malloc(n);
  s.host_out = (uint8_t *)malloc(n);
  LADDER_CHECK(cudaMemcpy(host, s.in, n, cudaMemcpyDeviceToHost));
  const hs_array array = {host, n, 1, 0, HS_ELEMENT_U8};
  s.on_host = array;
  host_histogram(&s);
  return s;
}

static void close_picture(histogram_state *s) {
  cudaFree((void *)(uintptr_t)s->in);
  cudaFree(s->bins);
  cudaFree(s->temp);
  cudaFree(s->args.scratch);
  cudaFree(s->levels.out);
  free((void *)(uintptr_t)s->on_host.data);
  free(s->host_out);
}

static const ladder_rung cub_rung = {"CUB DeviceHistogram::HistogramEven", launch_cub, false},
                         library_rung = {"the library", launch_library, false};

static ladder_case case_of(const ladder *l, const char *name, histogram_state *s) {
  const ladder_case c = {name,           s,           s->bins,      BINS * sizeof(uint32_t),
                         s->host_counts, same_counts, (double)s->n, l->read_gbs};
  return c;
}

static void run_library(ladder *l, ladder_case c) {
  c.matches = NULL;
  c.result_bytes = BINS * sizeof(uint64_t);
  ladder_run(l, &c, &library_rung);
}

static void run_picture(ladder *l, const char *name, const uint8_t *pattern, uint64_t pattern_bytes, uint64_t n,
                        bool all) {
  if (ladder_skips(l, name)) return;
  histogram_state s = open_picture(l, pattern, pattern_bytes, n);
  if (all && n > 100000000 && !l->once) print_rates(l, &s);
  const ladder_case c = case_of(l, name, &s);
  static const ladder_rung rungs[] = {{"atomics in global memory, 1-byte reads", launch_global_bytes, true},
                                      {"atomics in global memory, 16-byte reads", launch_global, true},
                                      {"a histogram a block, 1-byte reads", launch_block_of<uint8_t>, false},
                                      {"a histogram a block, 4-byte reads", launch_block_of<uint32_t>, false},
                                      {"a histogram a block, 16-byte reads", launch_block, false},
                                      {"a histogram a warp, shared atomics", launch_warp, false},
                                      {"equal keys of a warp joined, no atomics", launch_match, false},
                                      {"a histogram a thread, no atomics", launch_private, false}};
  for (size_t i = 0; i < sizeof rungs / sizeof rungs[0]; i++)
    if (i > 1 || n < 100000000) ladder_run(l, &c, &rungs[i]);
  const ladder_rung cleared = {"a memset of the bins alone, in each rung above", launch_clear, false};
  if (n < 100000000 && !l->once)
    ladder_record(l, &c, cleared.name, ladder_time(l, &cleared, &s, LADDER_LAUNCHES_MAX), "-");
  ladder_run(l, &c, &cub_rung);
  run_library(l, c);
  ladder_run_host(l, &c, "CPU, a serial loop", plain_histogram, &s);
  ladder_run_host(l, &c, "CPU, the library, 1 thread", host_histogram, &s);
  host_equalize(&s);
  char title[96];
  snprintf(title, sizeof title, "equalised: %s", name);
  const ladder_case e = {title, &s, s.levels.out, n, s.host_out, NULL, 3.0 * (double)n, l->copy_gbs};
  const ladder_rung equalize = {"the library", launch_equalize, false};
  ladder_run(l, &e, &equalize);
  ladder_run_host(l, &e, "CPU, the library, 1 thread", host_equalize, &s);
  close_picture(&s);
}

/* Times picture sizes below and above the size at which the library changes its kernel. All pictures fit in L2. */
static int run_sizes(ladder *l, const uint8_t *noise, const uint8_t *flat, uint64_t pattern_bytes) {
  static const int32_t sizes[][2] = {{320, 240}, {640, 480}, {1280, 960}, {1920, 1080}, {2560, 1600}, {3840, 2160}};
  static const char *const kinds[] = {"noise", "natural", "one value"};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const uint64_t n = (uint64_t)sizes[i][0] * (uint64_t)sizes[i][1];
    hs_image scene;
    if (hs_render_scene(sizes[i][0], sizes[i][1], 1, NULL, NULL, &scene) != HS_OK) return 1;
    const uint8_t *const patterns[] = {noise, (const uint8_t *)scene.data, flat};
    for (int k = 0; k < 3; k++) {
      char title[64];
      snprintf(title, sizeof title, "size: %s, %d x %d", kinds[k], (int)sizes[i][0], (int)sizes[i][1]);
      histogram_state s = open_picture(l, patterns[k], k == 1 ? n : pattern_bytes, n);
      const ladder_case c = case_of(l, title, &s);
      ladder_run(l, &c, &cub_rung);
      run_library(l, c);
      close_picture(&s);
    }
    hs_image_free(&scene);
  }
  return 0;
}

int main(int argc, char **argv) {
  ladder l;
  enum { SIDE = 2048 };
  const uint64_t large = (uint64_t)1 << 30, small = 640 * 480, side = (uint64_t)SIDE * SIDE;
  hs_image scene, vga;
  if (hs_render_scene(SIDE, SIDE, 1, NULL, NULL, &scene) != HS_OK ||
      hs_render_scene(640, 480, 1, NULL, NULL, &vga) != HS_OK)
    return 1;
  uint8_t *noise = (uint8_t *)malloc(side), *flat = (uint8_t *)malloc(side);
  uint32_t seed = 3;
  for (uint64_t i = 0; i < side; i++) noise[i] = (uint8_t)(ladder_random(&seed) >> 9);
  memset(flat, 117, side);
  ladder_open(&l, "histogram", argc, argv);
  LADDER_CHECK(cudaFuncSetAttribute(histogram_private_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    PRIVATE_THREADS * 512));
  run_picture(&l, "noise, 1 GiB", noise, side, large, true);
  run_picture(&l, "natural (@scene:2048x2048 repeated), 1 GiB", (const uint8_t *)scene.data, side, large, false);
  run_picture(&l, "one value, 1 GiB", flat, side, large, false);
  run_picture(&l, "natural (@scene:640x480, in L2)", (const uint8_t *)vga.data, small, small, true);
  run_picture(&l, "noise, 640 x 480 (in L2)", noise, side, small, true);
  run_picture(&l, "natural (@scene:2048x2048, in L2)", (const uint8_t *)scene.data, side, side, true);
  const int unrendered = l.once ? 0 : run_sizes(&l, noise, flat, side);
  hs_image_free(&scene);
  hs_image_free(&vga);
  free(noise);
  free(flat);
  return ladder_close(&l) || unrendered ? 1 : 0;
}
