/* Level steps of the Gaussian pyramid: a marching kernel for the profiles' radii, two plain kernels for any other. */
#include "cuda/pyramid/pyramid_cuda.h"

#include "cuda/pyramid/blur_march.cuh"
#include "cuda/runtime/launch.h"

/*
 * Does      one level step, as blur_ref and halve_ref.
 * Launch    one block per MARCH_COLUMNS columns (x) and steps * MARCH_ROWS - 2R rows (y), march_shape::threads
 *           threads.
 * Shared    march_shape::shared_bytes, dynamic: two stages of input rows and the ring of filtered rows.
 * Reads     `in`: rows of aligned 16-byte vectors inside the picture, single samples beyond its sides.
 * Writes    `out`, and `halved` if wanted; samples inside the picture only.
 * Barriers  two per step (march_plane).
 * Limits    R <= 16; any size, also sides smaller than R.
 * Order     each output is one fixed chain of operations; repeatable bit for bit.
 * Cost      8 bytes and 2 (2R + 1) float operations per sample, more by 2R rows per block; bound by memory, issue
 *           and the waits at the barriers about equally.
 */
template <int R, bool GROUP>
static __device__ __forceinline__ void blur_march(const march_params<R> &p, size_t group_stride_bytes) {
  extern __shared__ float4 s_vectors[];
  if (GROUP)
    march_plane<R, false>(march_params_of_block(p, group_stride_bytes), reinterpret_cast<float *>(s_vectors));
  else
    march_plane<R, false>(p, reinterpret_cast<float *>(s_vectors));
}

#define BLUR_KERNEL(name, R, GROUP)                                                                                    \
  extern "C" __global__ void __launch_bounds__(MARCH_THREADS, MARCH_BLOCKS_PER_SM)                                     \
      name(const __grid_constant__ march_params<R> p, size_t group_stride_bytes) {                                     \
    blur_march<R, GROUP>(p, group_stride_bytes);                                                                       \
  }
#define BLUR_KERNELS(R)                                                                                                \
  static_assert(march_params_are_arguments<R>(), "the host's layout");                                                 \
  BLUR_KERNEL(blur_march_kernel_##R, R, false)                                                                         \
  BLUR_KERNEL(blur_march_group_kernel_##R, R, true)
TUNE_MARCH_RADII(BLUR_KERNELS)

/*
 * Does      the row pass of blur_ref for any radius.
 * Launch    PLAIN_COLUMNS x PLAIN_ROWS samples and threads per block; rows beyond the grid by stride.
 * Shared    none.
 * Reads     `in` through the L1 cache.
 * Writes    `out`.
 * Barriers  none.
 * Limits    radius <= FILTER_RADIUS_MAX; any size.
 * Order     one fixed chain per output.
 * Cost      2R + 1 cached loads per output, which bound it: for radii that no profile uses.
 */
extern "C" __global__ void blur_plain_rows_kernel(const __grid_constant__ plain_params p) {
  const int32_t x = (int32_t)(blockIdx.x * PLAIN_COLUMNS + threadIdx.x), n = p.in.width;
  if (x >= n) return;
  for (int32_t y = (int32_t)(blockIdx.y * PLAIN_ROWS + threadIdx.y); y < p.in.height;
       y += (int32_t)(gridDim.y * PLAIN_ROWS)) {
    const float *row = p.in.data + (size_t)y * p.in.stride;
    const bool inside = x >= p.filter.radius && x + p.filter.radius < n;
    float acc = p.filter.taps[0] * row[x];
    for (int32_t j = 1; j <= p.filter.radius; j++) {
      const float lower = row[inside ? x - j : border_index(x - j, n, p.border)];
      const float upper = row[inside ? x + j : border_index(x + j, n, p.border)];
      acc = hs_fmaf(p.filter.taps[j], lower + upper, acc);
    }
    p.out.data[(size_t)y * p.out.stride + (size_t)x] = acc;
  }
}

/*
 * Does      the column pass of blur_ref for any radius, and halve_ref. `halved` may have null data. Everything else
 *           as blur_plain_rows_kernel.
 */
extern "C" __global__ void blur_plain_columns_kernel(const __grid_constant__ plain_params p) {
  const int32_t x = (int32_t)(blockIdx.x * PLAIN_COLUMNS + threadIdx.x), n = p.in.height;
  if (x >= p.in.width) return;
  const float *column = p.in.data + x;
  for (int32_t y = (int32_t)(blockIdx.y * PLAIN_ROWS + threadIdx.y); y < n; y += (int32_t)(gridDim.y * PLAIN_ROWS)) {
    const bool inside = y >= p.filter.radius && y + p.filter.radius < n;
    float acc = p.filter.taps[0] * column[(size_t)y * p.in.stride];
    for (int32_t j = 1; j <= p.filter.radius; j++) {
      const float lower = column[(size_t)(inside ? y - j : border_index(y - j, n, p.border)) * p.in.stride];
      const float upper = column[(size_t)(inside ? y + j : border_index(y + j, n, p.border)) * p.in.stride];
      acc = hs_fmaf(p.filter.taps[j], lower + upper, acc);
    }
    p.out.data[(size_t)y * p.out.stride + (size_t)x] = acc;
    if (p.halved.data && !((x | y) & 1) && x / 2 < p.halved.width && y / 2 < p.halved.height)
      p.halved.data[(size_t)(y / 2) * p.halved.stride + (size_t)(x / 2)] = acc;
  }
}

/* Level step and DoG level in one kernel, made of the device functions of the split kernels. */

/*
 * Does      one level step and the DoG level below it, as blur_ref and dog_at. Also writes `dog`, from the new
 *           sample in its register and the old one, which is read again through the L2 cache. Everything else as
 *           blur_march_kernel.
 * Cost      4 bytes per sample more than blur_march_kernel; the extremum search reads S+2 planes instead of S+3.
 */
template <int R> static __device__ __forceinline__ void uber_level(const march_params<R> &p) {
  extern __shared__ float4 s_vectors[];
  march_plane<R, true>(p, reinterpret_cast<float *>(s_vectors));
}

#define UBER_KERNEL(R)                                                                                                 \
  extern "C" __global__ void __launch_bounds__(MARCH_THREADS, MARCH_BLOCKS_PER_SM)                                     \
      uber_level_kernel_##R(const __grid_constant__ march_params<R> p) {                                               \
    uber_level<R>(p);                                                                                                  \
  }
TUNE_MARCH_RADII(UBER_KERNEL)

/*
 * Does      a DoG level from its two Gaussian levels, as dog_at. The uber kernel makes this kernel unnecessary.
 * Launch    PLAIN_COLUMNS x PLAIN_ROWS threads per block, 4 neighbouring samples per thread; rows beyond the grid by
 *           stride.
 * Reads     both levels as 16-byte vectors; the last samples of a row one by one. Writes `dog`, samples inside the
 *           picture only. Shared: none. Barriers: none.
 * Limits    planes of one size and stride; any size. Order: one subtraction per output.
 * Cost      12 bytes per sample; bound by memory.
 */
extern "C" __global__ void dog_kernel(const __grid_constant__ plane_view lower,
                                      const __grid_constant__ plane_view upper,
                                      const __grid_constant__ plane_view dog) {
  const int32_t x = 4 * (int32_t)(blockIdx.x * PLAIN_COLUMNS + threadIdx.x);
  if (x >= dog.width) return;
  for (int32_t y = (int32_t)(blockIdx.y * PLAIN_ROWS + threadIdx.y); y < dog.height;
       y += (int32_t)(gridDim.y * PLAIN_ROWS)) {
    const size_t at = (size_t)y * dog.stride + (size_t)x;
    if (x + 4 <= dog.width) {
      const float4 a = *(const float4 *)(lower.data + at), b = *(const float4 *)(upper.data + at);
      *(float4 *)(dog.data + at) = make_float4(b.x - a.x, b.y - a.y, b.z - a.z, b.w - a.w);
      continue;
    }
    for (int32_t i = 0; x + i < dog.width; i++)
      dog.data[at + (size_t)i] = upper.data[at + (size_t)i] - lower.data[at + (size_t)i];
  }
}

BLUR_PLAIN_KERNELS(LAUNCH_CHECK)
