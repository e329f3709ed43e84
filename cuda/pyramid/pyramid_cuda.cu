/* Level steps of the Gaussian pyramid: a marching kernel for the profiles' radii, two plain kernels for any other. */
#include "cuda/pyramid/pyramid_cuda.h"

#include "cuda/pyramid/blur_march.cuh"
#include "cuda/runtime/launch.cuh"

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
__global__ void __launch_bounds__(march_shape<R>::threads, MARCH_BLOCKS_PER_SM)
    blur_march_kernel(const __grid_constant__ march_params<R> p, size_t group_stride_bytes) {
  extern __shared__ float4 s_vectors[];
  if (GROUP)
    march_plane<R, false>(march_params_of_block(p, group_stride_bytes), reinterpret_cast<float *>(s_vectors));
  else
    march_plane<R, false>(p, reinterpret_cast<float *>(s_vectors));
}

/* A filter of any radius, by value: in the constant bank. */
struct plain_params {
  plane_view in, out, halved;
  border_mode border;
  gaussian_filter filter;
};

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
__global__ void blur_plain_rows_kernel(const __grid_constant__ plain_params p) {
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
__global__ void blur_plain_columns_kernel(const __grid_constant__ plain_params p) {
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

static stage_status blur_plain(const blur_launch_args *args, cuda_stream stream) {
  assert(args->group.count <= 1);
  assert(args->work.data && args->work.data != args->in.data && args->work.data != args->out.data);
  plain_params rows = {args->in, args->work, {NULL, 0, 0, 0}, args->border, *args->filter};
  plain_params columns = {args->work, args->out, args->halved, args->border, *args->filter};
  columns.in.width = args->in.width;
  columns.in.height = args->in.height;
  const dim3 threads(PLAIN_COLUMNS, PLAIN_ROWS);
  const dim3 grid = launch_grid_2d(args->in.width, PLAIN_COLUMNS, args->in.height, PLAIN_ROWS);
  const stage_status status = launch(blur_plain_rows_kernel, grid, threads, 0, stream, rows);
  return status == STAGE_OK ? launch(blur_plain_columns_kernel, grid, threads, 0, stream, columns) : status;
}

template <int R> static stage_status blur_march(const blur_launch_args *args, cuda_stream stream) {
  const march_params<R> p = march_params_of<R>(args);
  dim3 grid = march_grid(p);
  const bool group = args->group.count > 1;
  assert(!group || args->group.stride_bytes % 256 == 0);
  if (group) grid.z = (unsigned)args->group.count;
  return launch(group ? blur_march_kernel<R, true> : blur_march_kernel<R, false>, grid, march_shape<R>::threads,
                march_shape<R>::shared_bytes, stream, p, args->group.stride_bytes);
}

template <int R> static stage_status blur_march_prepare(void) {
  const stage_status status = launch_prepare((const void *)blur_march_kernel<R, false>, march_shape<R>::shared_bytes);
  return status == STAGE_OK ? launch_prepare((const void *)blur_march_kernel<R, true>, march_shape<R>::shared_bytes)
                            : status;
}

struct blur_row {
  int32_t radius;
  stage_status (*prepare)(void);
  stage_status (*launch)(const blur_launch_args *args, cuda_stream stream);
};

#define BLUR_ROW(R) {R, blur_march_prepare<R>, blur_march<R>},
static const blur_row blur_rows[] = {TUNE_MARCH_RADII(BLUR_ROW)};

bool blur_needs_work(int32_t radius) { return !march_row_of(blur_rows, radius); }

stage_status blur_launch(const blur_launch_args *args, cuda_stream stream) {
  assert(args->in.data != args->out.data && !args->dog.data);
  assert(args->filter->radius >= 0 && args->filter->radius <= FILTER_RADIUS_MAX);
  if (args->in.width <= 0 || args->in.height <= 0) return STAGE_OK;
  const blur_row *row = march_row_of(blur_rows, args->filter->radius);
  return row ? row->launch(args, stream) : blur_plain(args, stream);
}

stage_status pyramid_prepare(void) { return march_prepare(blur_rows); }

/* Level step and DoG level in one kernel, from the device functions of the split ones. */

/*
 * Does      one level step and the DoG level below it, as blur_ref and dog_at. Also writes `dog`, from the new
 *           sample in its register and the old one, which is read again through the L2 cache. Everything else as
 *           blur_march_kernel.
 * Cost      4 bytes per sample more than blur_march_kernel; the extremum search reads S+2 planes instead of S+3.
 */
template <int R>
__global__ void __launch_bounds__(march_shape<R>::threads, MARCH_BLOCKS_PER_SM)
    uber_level_kernel(const __grid_constant__ march_params<R> p) {
  extern __shared__ float4 s_vectors[];
  march_plane<R, true>(p, reinterpret_cast<float *>(s_vectors));
}

template <int R> static stage_status uber_level(const blur_launch_args *args, cuda_stream stream) {
  const march_params<R> p = march_params_of<R>(args);
  return launch(uber_level_kernel<R>, march_grid(p), march_shape<R>::threads, march_shape<R>::shared_bytes, stream, p);
}

template <int R> static stage_status uber_level_prepare_radius(void) {
  return launch_prepare((const void *)uber_level_kernel<R>, march_shape<R>::shared_bytes);
}

struct uber_row {
  int32_t radius;
  stage_status (*prepare)(void);
  stage_status (*launch)(const blur_launch_args *args, cuda_stream stream);
};

#define UBER_ROW(R) {R, uber_level_prepare_radius<R>, uber_level<R>},
static const uber_row uber_rows[] = {TUNE_MARCH_RADII(UBER_ROW)};

stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream) {
  assert(args->in.data != args->out.data && args->dog.data && args->dog.stride == args->out.stride);
  if (args->in.width <= 0 || args->in.height <= 0) return STAGE_OK;
  const uber_row *row = march_row_of(uber_rows, args->filter->radius);
  assert(row);
  return row ? row->launch(args, stream) : STAGE_OVERFLOW;
}

stage_status uber_level_prepare(void) { return march_prepare(uber_rows); }
