/*
 * 1-D convolution. Few taps: a thread makes a vector of 16 bytes of outputs from the vectors around it, all in
 * registers. Many taps: a block keeps its part of the signal in shared memory, and a thread keeps a window that slides
 * over it in registers.
 */
#include "cuda/primitives/primitives_kernels.h"

#include "cuda/runtime/launch.h"

/* ------------------------------------------------------------------ few taps */

template <typename E> struct tree_type;
template <> struct tree_type<float> { typedef tree_params_f32 params; };
template <> struct tree_type<double> { typedef tree_params_f64 params; };
template <typename E> using tree_params = typename tree_type<E>::params;

static __device__ __forceinline__ double tree(const double *c, const double *x, int32_t m) {
  return prim_tree_f64(c, x, m);
}
static __device__ __forceinline__ float tree(const float *c, const float *x, int32_t m) {
  return prim_tree_f32(c, x, m);
}

/* Loads V samples at p: 16 aligned bytes, or one sample. */
template <typename E, int V> static __device__ __forceinline__ void load_samples(const E *p, E *to) {
  if (V == 1) {
    to[0] = __ldg(p);
    return;
  }
  const uint4 v = __ldg((const uint4 *)p);
  memcpy(to, &v, sizeof v);
}

template <typename E, int V> static __device__ __forceinline__ void store_samples(E *p, const E *from) {
  if (V == 1) {
    p[0] = from[0];
    return;
  }
  uint4 v;
  memcpy(&v, from, sizeof v);
  *(uint4 *)p = v;
}

/* Computes output i of a row near an end; its samples are fetched one by one. */
template <typename E, int M>
static __device__ __forceinline__ E tree_at(const tree_params<E> &p, const E *row, int64_t i) {
  E x[M];
#pragma unroll
  for (int j = 0; j < M; j++) {
    const int64_t at = prim_end_index(i + M / 2 - j, p.width, p.ends);
    x[j] = at < 0 ? (E)0 : __ldg(row + at);
  }
  return tree(p.taps, x, M);
}

/*
 * Does      convolution with M <= 7 taps: convolve_f32_ref, convolve_f64_ref.
 * Launch    2-D blocks of 256 threads, as wide as a row has vectors, at most 256; x: 2 vectors per thread, y: rows,
 *           at most 65535 blocks, looping.
 * Shared    none. Barriers: none.
 * Reads     the signal. V samples are 16 bytes and rows of signal and output so aligned, or V is 1. Neighbouring
 *           vectors come from the L1.
 * Writes    out.
 * Limits    no empty signal. Order: the contract's tree.
 * Cost      a sample read and written, M + 2 operations: bound by memory.
 */
template <typename E, int M, int V> static __device__ __forceinline__ void convolve_tree(const tree_params<E> &p) {
  constexpr int SIDE = (M / 2 + V - 1) / V, VECTORS = 2 * SIDE + 1;
  const int64_t first = ((int64_t)blockIdx.x * TREE_ROUNDS * blockDim.x + threadIdx.x) * V;
  for (int64_t y = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; y < p.height; y += (int64_t)gridDim.y * blockDim.y) {
    const E *row = (const E *)(p.data + (size_t)y * p.stride_bytes);
    E *out = (E *)(p.out + (size_t)y * p.out_stride_bytes);
    E window[TREE_ROUNDS][VECTORS * V];
    bool inside[TREE_ROUNDS];
#pragma unroll
    for (int n = 0; n < TREE_ROUNDS; n++) {
      const int64_t i = first + (int64_t)n * blockDim.x * V;
      inside[n] = i >= SIDE * V && i + (SIDE + 1) * V <= p.width;
#pragma unroll
      for (int v = 0; v < VECTORS; v++)
        if (inside[n]) load_samples<E, V>(row + i + (v - SIDE) * V, &window[n][v * V]);
    }
#pragma unroll
    for (int n = 0; n < TREE_ROUNDS; n++) {
      const int64_t i = first + (int64_t)n * blockDim.x * V;
      if (!inside[n]) {
        for (int64_t k = i; k < i + V && k < p.width; k++) out[k] = tree_at<E, M>(p, row, k);
        continue;
      }
      E result[V];
#pragma unroll
      for (int k = 0; k < V; k++) {
        E x[M];
#pragma unroll
        for (int j = 0; j < M; j++) x[j] = window[n][SIDE * V + k + M / 2 - j];
        result[k] = tree(p.taps, x, M);
      }
      store_samples<E, V>(out + i, result);
    }
  }
}

/* ------------------------------------------------------------------ many taps */

/* Number of outputs of a thread, and the block's part of the signal. One element of padding after every OUTPUTS
 * elements lets neighbouring threads read from different banks. */
template <typename E> struct long_shape {
  static constexpr int outputs = LONG_OUTPUTS(sizeof(E));
  static constexpr int block_outputs = LONG_THREADS * outputs;
  static constexpr int slots = (block_outputs + LONG_TAPS + outputs) / outputs * (outputs + 1);
};

/* Starts the sum of one output in double; for doubles also the sum of its errors. */
static __device__ __forceinline__ void long_start(double *sum, double c, double x) { *sum = c * x; }
static __device__ __forceinline__ void long_step(double *sum, double c, double x) { *sum = prim_fma(c, x, *sum); }
static __device__ __forceinline__ void long_start(prim_dot *sum, double c, double x) { *sum = prim_dot_start(c, x); }
static __device__ __forceinline__ void long_step(prim_dot *sum, double c, double x) {
  *sum = prim_dot_step(*sum, c, x);
}
static __device__ __forceinline__ void long_end(float *out, double sum) { *out = prim_plain_nan_f32((float)sum); }
static __device__ __forceinline__ void long_end(double *out, const prim_dot &sum) { *out = prim_dot_end(sum); }

template <typename E> struct long_sum;
template <> struct long_sum<float> { typedef double type; };
template <> struct long_sum<double> { typedef prim_dot type; };

/* Copies samples first .. first + count - 1 of a row to shared memory, from element `before` on. */
template <typename E>
static __device__ __forceinline__ void stage_samples(const long_params &p, const E *row, int64_t first, int32_t count,
                                                     int32_t before, double *s_x) {
  constexpr int V = long_shape<E>::outputs;
  for (int32_t n = (int32_t)threadIdx.x; n < count; n += LONG_STAGED * LONG_THREADS) {
    E value[LONG_STAGED];
#pragma unroll
    for (int32_t k = 0; k < LONG_STAGED; k++) {
      const int64_t at = prim_end_index(first + min(n + k * LONG_THREADS, count - 1), p.width, p.ends);
      value[k] = at < 0 ? (E)0 : __ldg(row + at);
    }
#pragma unroll
    for (int32_t k = 0; k < LONG_STAGED; k++) {
      const int32_t slot = n + k * LONG_THREADS + before;
      if (slot < count + before) s_x[slot + slot / V] = (double)value[k];
    }
  }
}

/* Applies V taps (or only the first `count` of them) to the samples of all outputs. start: the first tap begins the
 * sums. */
template <typename E, bool WHOLE>
static __device__ __forceinline__ void add_group(const double *x, const double *s_c, int32_t count, bool start,
                                                 typename long_sum<E>::type *sum) {
  constexpr int V = long_shape<E>::outputs;
#pragma unroll
  for (int q = 0; q < V; q++) {
    if (!WHOLE && q >= count) break;
    const double c = s_c[q];
#pragma unroll
    for (int k = 0; k < V; k++)
      if (!WHOLE && q == 0 && start)
        long_start(&sum[k], c, x[V - 1 - q + k]);
      else
        long_step(&sum[k], c, x[V - 1 - q + k]);
  }
}

/* Applies all `count` taps of a step, padded with zero taps at the end to a multiple of V. Tap j of output k needs
 * element V t + k + (filled - 1 - j) of the stretch. So V taps use the samples of the previous V taps, moved by V,
 * and V new ones. start: the first tap begins the sums. */
template <typename E>
static __device__ __forceinline__ void add_taps(const double *s_x, const double *s_c, int32_t count, bool start,
                                                typename long_sum<E>::type *sum) {
  constexpr int V = long_shape<E>::outputs;
  const double *mine = s_x + threadIdx.x * (V + 1);
  int32_t group = (count + V - 1) / V - 1; /* elements V group .. V group + 2 V - 2 */
  double x[2 * V - 1];
#pragma unroll
  for (int e = 0; e < V - 1; e++) x[e] = mine[(V + 1) * (group + 1) + e];
  for (int32_t j = 0; group >= 0; group--, j += V) {
#pragma unroll
    for (int e = V - 2; e >= 0; e--) x[V + e] = x[e];
#pragma unroll
    for (int e = 0; e < V; e++) x[e] = mine[(V + 1) * group + e];
    if (j + V <= count && !(start && j == 0))
      add_group<E, true>(x, s_c + j, V, false, sum);
    else
      add_group<E, false>(x, s_c + j, count - j, start && j == 0, sum);
  }
}

/*
 * Does      convolution with more than 7 taps: convolve_f32_ref, convolve_f64_ref.
 * Launch    blocks of 256 threads; x: 2048 (f64: 1024) outputs of a row per block, 8 (4) per thread; y: rows, at most
 * 65535, looping. Shared    20.3 (f64: 12.5) KiB, and 2 KiB of taps. Reads     the signal, the taps. Writes out.
 * Barriers  before and after the samples and taps of a step are staged; before and after the results are staged,
 *           which are then written in the order of memory.
 * Limits    no empty signal. Order: the contract's, from the first tap on.
 * Cost      a sample read and written, and an operation in double per tap (f64: 10), which is the bound from some 30
 *           (f64: 9) taps on.
 */
template <typename E> static __device__ __forceinline__ void convolve_long(const long_params &p) {
  constexpr int V = long_shape<E>::outputs;
  __shared__ double s_x[long_shape<E>::slots];
  __shared__ double s_c[LONG_TAPS];
  const int64_t first = (int64_t)blockIdx.x * long_shape<E>::block_outputs, half = p.tap_count / 2;
  for (int64_t y = blockIdx.y; y < p.height; y += gridDim.y) {
    const E *row = (const E *)(p.data + (size_t)y * p.stride_bytes);
    typename long_sum<E>::type sum[V];
    for (uint32_t tap = 0; tap < p.tap_count; tap += LONG_TAPS) {
      const int32_t count = (int32_t)min(p.tap_count - tap, (uint32_t)LONG_TAPS);
      __syncthreads();                          /* the previous step has been read */
      const int32_t fill = (V - count % V) % V; /* padding taps */
      stage_samples<E>(p, row, first + half - tap - (count - 1), long_shape<E>::block_outputs + count - 1, fill, s_x);
      if ((int32_t)threadIdx.x < count)
        s_c[threadIdx.x] = p.taps ? __ldg(p.taps + tap + threadIdx.x) : p.inline_taps[tap + threadIdx.x];
      __syncthreads(); /* staged */
      add_taps<E>(s_x, s_c, count, tap == 0, sum);
    }
    __syncthreads(); /* the last step has been read */
#pragma unroll
    for (int k = 0; k < V; k++) {
      E result;
      long_end(&result, sum[k]);
      s_x[threadIdx.x * (V + 1) + k] = (double)result; /* the conversion back is exact */
    }
    __syncthreads(); /* results are stored */
    E *out = (E *)(p.out + (size_t)y * p.out_stride_bytes) + first;
    const int32_t count = (int32_t)min((int64_t)long_shape<E>::block_outputs, p.width - first);
    for (int32_t n = (int32_t)threadIdx.x; n < count; n += LONG_THREADS) out[n] = (E)s_x[n + n / V];
  }
}

#define TREE_KERNEL(name, E, M, V)                                                                                     \
  extern "C" __global__ void __launch_bounds__(TREE_THREADS,                                                           \
                                               M * sizeof(E) > 40 ? TREE_BLOCKS_PER_SM - 1 : TREE_BLOCKS_PER_SM)       \
      name(const __grid_constant__ tree_params<E> p) {                                                                 \
    convolve_tree<E, M, V>(p);                                                                                         \
  }
#define TREE_KERNELS_OF(type, E, M)                                                                                    \
  TREE_KERNEL(convolve_##type##_##M##_kernel, E, M, 1)                                                                 \
  TREE_KERNEL(convolve_##type##_##M##_vectors_kernel, E, M, 16 / (int)sizeof(E))
TREE_KERNELS_OF(f32, float, 1)
TREE_KERNELS_OF(f32, float, 3)
TREE_KERNELS_OF(f32, float, 5)
TREE_KERNELS_OF(f32, float, 7)
TREE_KERNELS_OF(f64, double, 1)
TREE_KERNELS_OF(f64, double, 3)
TREE_KERNELS_OF(f64, double, 5)
TREE_KERNELS_OF(f64, double, 7)

#define LONG_KERNEL(name, E)                                                                                           \
  extern "C" __global__ void __launch_bounds__(LONG_THREADS, 2) name(const __grid_constant__ long_params p) {          \
    convolve_long<E>(p);                                                                                               \
  }
LONG_KERNEL(convolve_f32_long_kernel, float)
LONG_KERNEL(convolve_f64_long_kernel, double)

CONVOLVE_KERNELS(LAUNCH_CHECK)
