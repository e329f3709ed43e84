/*
 * Base of the pyramid: the source picture as gray in [0, 1], doubled or thinned, blurred. One fused kernel for u8 gray
 * doubled on the aligned grid; for everything else a kernel that makes gray, one that doubles, and the level step.
 */
#include "cuda/blur_march.cuh"
#include "cuda/launch.cuh"
#include "cuda/pyramid_cuda.h"

/* v / 255.0f for v = 0..255 with the bits of the division: one Newton correction of v * (1 / 255) is exact for all
   256. */
__device__ __forceinline__ float unit_of_u8(uint8_t v) {
  const float f = (float)v, q = f * (1.0f / 255.0f);
  return hs_fmaf(hs_fmaf(-q, 255.0f, f), 1.0f / 255.0f, q);
}

/* The u8 picture behind a fused base. */
struct byte_picture {
  const uint8_t *data;
  size_t stride_bytes;
  int32_t width, height;
};

/* Rows doubled: sample x of 2w, from source row y. */
__device__ __forceinline__ float doubled_along_row(const byte_picture &s, int32_t x, const uint8_t *row) {
  const int32_t left = x >> 1;
  const float c = unit_of_u8(row[left]);
  return x & 1 ? double_mean(c, unit_of_u8(row[min(left + 1, s.width - 1)])) : c;
}

/* Sample (x, y) of the doubled picture: along rows first, then along columns. */
__device__ __forceinline__ float doubled_at(const byte_picture &s, int32_t x, int32_t y) {
  const int32_t upper = y >> 1;
  const float a = doubled_along_row(s, x, s.data + (size_t)upper * s.stride_bytes);
  if (!(y & 1)) return a;
  return double_mean(a, doubled_along_row(s, x, s.data + (size_t)min(upper + 1, s.height - 1) * s.stride_bytes));
}

/* Four doubled samples of one row from three bytes, x0 even: x0 is source column `left`. */
__device__ __forceinline__ float4 doubled_four(const byte_picture &s, const uint8_t *row, int32_t left) {
  const float a = unit_of_u8(row[left]), b = unit_of_u8(row[left + 1]), c = unit_of_u8(row[min(left + 2, s.width - 1)]);
  return make_float4(a, double_mean(a, b), b, double_mean(b, c));
}

__device__ __forceinline__ float4 mean_of_four(float4 a, float4 b) {
  return make_float4(double_mean(a.x, b.x), double_mean(a.y, b.y), double_mean(a.z, b.z), double_mean(a.w, b.w));
}

/* Four doubled samples of row y (inside the picture): even rows are the mean of a row with itself, which is exact. */
__device__ __forceinline__ float4 doubled_four_at(const byte_picture &s, int32_t x, int32_t y) {
  const int32_t upper = y >> 1, lower = y & 1 ? min(upper + 1, s.height - 1) : upper;
  return mean_of_four(doubled_four(s, s.data + (size_t)upper * s.stride_bytes, x >> 1),
                      doubled_four(s, s.data + (size_t)lower * s.stride_bytes, x >> 1));
}

/* The part of a step's staging that a thread has: one column of vectors, and a run of row pairs, so that a pair's lower
   source row is the next one's upper. The walk starts at an even row of the doubled picture (march_params::first_row
   sees to it). Bytes are loaded before the row pass and used after it. */
template <int R> struct byte_run {
  static constexpr int vectors = march_shape<R>::staged_columns / 4, runs = march_shape<R>::threads / vectors;
  static constexpr int pairs = (MARCH_ROWS / 2 + runs - 1) / runs;
  int32_t x, y, first, needed; /* doubled column and row; first row within the step; rows of the step that are needed */
  bool inside;                 /* no row of the run needs reflection */
  uint8_t bytes[pairs + 1][3];
};

template <int R>
__device__ __forceinline__ void load_byte_run(const march_params<R> &p, const byte_picture &s, const march_place &place,
                                              int32_t step, byte_run<R> *run) {
  constexpr int vectors = byte_run<R>::vectors, pairs = byte_run<R>::pairs;
  const int32_t index = (int32_t)threadIdx.x / vectors;
  run->x = place.column - march_shape<R>::halo + 4 * ((int32_t)threadIdx.x - index * vectors);
  run->first = 2 * pairs * index;
  run->y = place.origin + step * MARCH_ROWS + run->first - R;
  run->needed =
      run->x >= 0 && run->x + 4 <= p.width ? min(place.rows + 2 * R - step * MARCH_ROWS, (int32_t)MARCH_ROWS) : 0;
  run->inside = run->y >= 0 && run->y + 2 * pairs <= p.height;
  if (!run->inside || run->first >= run->needed) return;
  const int32_t left = run->x >> 1, right = min(left + 2, s.width - 1);
#pragma unroll
  for (int n = 0; n <= pairs; n++) {
    const uint8_t *row = s.data + (size_t)min((run->y >> 1) + n, s.height - 1) * s.stride_bytes;
    run->bytes[n][0] = row[left];
    run->bytes[n][1] = row[left + 1];
    run->bytes[n][2] = row[right];
  }
}

__device__ __forceinline__ float4 doubled_bytes(const uint8_t bytes[3]) {
  const float a = unit_of_u8(bytes[0]), b = unit_of_u8(bytes[1]), c = unit_of_u8(bytes[2]);
  return make_float4(a, double_mean(a, b), b, double_mean(b, c));
}

/* Writes a thread's run to the stage, and what no whole vector reaches. */
template <int R>
__device__ __forceinline__ void stage_byte_run(const march_params<R> &p, const byte_picture &s,
                                               const march_place &place, int32_t step, const byte_run<R> &run,
                                               float *s_rows) {
  using shape = march_shape<R>;
  float4 *s_to =
      reinterpret_cast<float4 *>(s_rows + run.first * shape::staged_stride + run.x - place.column + shape::halo);
  constexpr int stride = shape::staged_stride / 4;
  if (run.inside) {
    float4 even = doubled_bytes(run.bytes[0]);
#pragma unroll
    for (int n = 0; n < byte_run<R>::pairs; n++) {
      if (run.first + 2 * n >= run.needed) break;
      const float4 below = doubled_bytes(run.bytes[n + 1]);
      s_to[2 * n * stride] = even;
      s_to[(2 * n + 1) * stride] = mean_of_four(even, below);
      even = below;
    }
  } else {
#pragma unroll 1
    for (int n = 0; run.first + n < run.needed && n < 2 * byte_run<R>::pairs; n++)
      s_to[n * stride] = doubled_four_at(s, run.x, fold_index(run.y + n, p.height, p.border));
  }
  const strip_edges edges = strip_edges_of(p, place);
  const int32_t row = (int32_t)threadIdx.x & 31;
  if (edges.left + edges.right == 0 || row >= place.rows + 2 * R - step * MARCH_ROWS) return;
  const int32_t y = fold_index(place.origin + step * MARCH_ROWS + row - R, p.height, p.border);
  for (int32_t e = (int32_t)threadIdx.x >> 5; e < edges.left + edges.right; e += shape::threads / 32) {
    const int32_t x = e < edges.left ? -1 - e : edges.right_first + e - edges.left;
    s_rows[row * shape::staged_stride + shape::halo + x - place.column] =
        doubled_at(s, fold_index(x, p.width, p.border), y);
  }
}

/*
 * Does: base_ref for u8 gray, first_octave -1, GRID_ALIGNED. Launch, Shared, Barriers, Limits, Order: as
 *   blur_march_kernel. Reads: source bytes, any stride (also pinned host memory). Writes: level 0.
 * Cost: a quarter byte read and 4 bytes written a sample; bounded by the issue of conversions and filter.
 */
template <int R> __device__ __forceinline__ void base_march(const march_params<R> &p, const byte_picture &s) {
  using shape = march_shape<R>;
  extern __shared__ float4 s_vectors[];
  float *s_all = reinterpret_cast<float *>(s_vectors);
  const march_place place = march_place_of(p);
  march_walk<R> walk = march_walk_of<R, false>(p, place, s_all);
  byte_run<R> run;
  load_byte_run(p, s, place, 0, &run);
  stage_byte_run(p, s, place, 0, run, s_all);
  for (int32_t step = 0; step * MARCH_ROWS < place.rows + 2 * R; step++) {
    __syncthreads(); /* this step's rows are staged; the step before has left the ring and the other stage */
    load_byte_run(p, s, place, step + 1, &run);
    filter_step_rows<R>(p.taps, walk);
    stage_byte_run(p, s, place, step + 1, run, s_all + (~step & 1) * shape::staged_floats);
    __syncthreads(); /* the ring's new rows are complete */
    filter_step_columns<R, false>(p, place, walk);
    march_on<R, false>(p, &walk);
  }
}

template <int R, bool BATCH>
__global__ void __launch_bounds__(march_shape<R>::threads, MARCH_BLOCKS_PER_SM)
    base_march_kernel(const __grid_constant__ march_params<R> p, const byte_picture s, size_t batch_stride_bytes) {
  if (BATCH) {
    byte_picture picture = s;
    picture.data = batch_shifted(s.data, blockIdx.z * batch_stride_bytes);
    base_march(march_params_of_block(p, batch_stride_bytes), picture);
  } else {
    base_march(p, s);
  }
}

/* One channel of the source as a float in [0, 1]. */
__device__ __forceinline__ float channel_unit(const source_view &s, const uint8_t *sample) {
  if (s.type == SOURCE_U8) return (float)*sample / 255.0f;
  if (s.type == SOURCE_U16) return (float)*reinterpret_cast<const uint16_t *>(sample) / 65535.0f;
  return unit_of_float(*reinterpret_cast<const float *>(sample), s.range_low, s.range_high);
}

__device__ __forceinline__ uint32_t channel_int(const source_view &s, const uint8_t *sample) {
  return s.type == SOURCE_U8 ? *sample : *reinterpret_cast<const uint16_t *>(sample);
}

/* Gray of pixel (x, y) in [0, 1]. */
__device__ __forceinline__ float source_gray(const source_view &s, int32_t x, int32_t y) {
  const uint32_t size = s.type == SOURCE_U8 ? 1 : (s.type == SOURCE_U16 ? 2 : 4);
  const uint32_t channels = s.layout < SOURCE_RGB ? 1u + s.layout : (s.layout < SOURCE_RGBA ? 3u : 4u);
  const uint8_t *pixel =
      static_cast<const uint8_t *>(s.data) + (size_t)y * s.stride_bytes + (size_t)x * channels * size;
  if (s.layout < SOURCE_RGB) return channel_unit(s, pixel);
  const bool blue_first = s.layout == SOURCE_BGR || s.layout == SOURCE_BGRA;
  const uint8_t *r = pixel + (blue_first ? 2 * size : 0), *g = pixel + size, *b = pixel + (blue_first ? 0 : 2 * size);
  if (s.type == SOURCE_F32) return gray_of_rgb_float(channel_unit(s, r), channel_unit(s, g), channel_unit(s, b));
  const uint32_t gray = gray_of_rgb_int(channel_int(s, r), channel_int(s, g), channel_int(s, b));
  return s.type == SOURCE_U8 ? (float)gray / 255.0f : (float)gray / 65535.0f;
}

/*
 * Does: every 2^N-th pixel as gray, the first part of base_ref. Launch: PLAIN_COLUMNS x PLAIN_ROWS samples and
 * threads a block, rows beyond the grid by stride. Shared, Barriers: none. Reads: the source, samples aligned to
 * their type.
 * Writes: `out`. Limits: any size. Order: no sums. Cost: the source's bytes and 4 written a sample.
 */
__global__ void gray_kernel(source_view source, plane_view out, int32_t step, size_t batch_stride_bytes) {
  source.data = batch_shifted(source.data, blockIdx.z * batch_stride_bytes);
  out.data = batch_shifted(out.data, blockIdx.z * batch_stride_bytes);
  const int32_t x = (int32_t)(blockIdx.x * PLAIN_COLUMNS + threadIdx.x);
  if (x >= out.width) return;
  for (int32_t y = (int32_t)(blockIdx.y * PLAIN_ROWS + threadIdx.y); y < out.height;
       y += (int32_t)(gridDim.y * PLAIN_ROWS))
    out.data[(size_t)y * out.stride + (size_t)x] = source_gray(source, x * step, y * step);
}

/* Rows doubled: sample x of 2w. */
__device__ __forceinline__ float doubled_plane_row(const float *row, int32_t x, int32_t n, upsample_grid grid) {
  const int32_t near_x = x >> 1;
  if (grid == GRID_ALIGNED) return x & 1 ? double_mean(row[near_x], row[min(near_x + 1, n - 1)]) : row[near_x];
  return double_half_pixel(row[near_x], row[x & 1 ? min(near_x + 1, n - 1) : max(near_x - 1, 0)]);
}

/*
 * Does: doubling along rows, then columns, on either grid, as base_ref. Launch: PLAIN_COLUMNS x PLAIN_ROWS outputs and
 *   threads a block, rows beyond the grid by stride. Shared, Barriers: none. Reads: `in` through the L1 cache. Writes:
 *   `out`, 2w x 2h. Limits: any size. Order: fixed. Cost: 5 bytes a sample of the result; bounded by memory.
 */
__global__ void double_kernel(plane_view in, plane_view out, upsample_grid grid, size_t batch_stride_bytes) {
  in.data = batch_shifted(in.data, blockIdx.z * batch_stride_bytes);
  out.data = batch_shifted(out.data, blockIdx.z * batch_stride_bytes);
  const int32_t x = (int32_t)(blockIdx.x * PLAIN_COLUMNS + threadIdx.x);
  if (x >= out.width) return;
  for (int32_t y = (int32_t)(blockIdx.y * PLAIN_ROWS + threadIdx.y); y < out.height;
       y += (int32_t)(gridDim.y * PLAIN_ROWS)) {
    const int32_t near_y = y >> 1;
    const int32_t far_y = y & 1 ? min(near_y + 1, in.height - 1) : (grid == GRID_ALIGNED ? near_y : max(near_y - 1, 0));
    const float a = doubled_plane_row(in.data + (size_t)near_y * in.stride, x, in.width, grid);
    const float b = doubled_plane_row(in.data + (size_t)far_y * in.stride, x, in.width, grid);
    const float mean = y & 1 ? double_mean(a, b) : a;
    out.data[(size_t)y * out.stride + (size_t)x] = grid == GRID_ALIGNED ? mean : double_half_pixel(a, b);
  }
}

bool base_is_fused(const base_args *args) {
  return args->source.type == SOURCE_U8 && args->source.layout == SOURCE_GRAY && args->first_octave < 0 &&
         args->grid == GRID_ALIGNED && !blur_needs_work(args->filter->radius);
}

template <int R> static march_params<R> base_params_of(const base_args *args) {
  const plane_view none = {NULL, 0, 0, 0};
  /* the marching kernel's `in` is made of source bytes: `out` only lends its geometry */
  const blur_launch_args blur = {args->out, args->out, none, none, none, args->border, args->filter, {1, 0}};
  march_params<R> p = march_params_of<R>(&blur);
  p.first_row = -(R & 1);
  assert(p.width == 2 * args->source.width && p.height == 2 * args->source.height);
  return p;
}

/* The rows of blocks of one band: [first, end) of all. */
struct band_blocks {
  int32_t first, end, all;
};

template <int R> static band_blocks blocks_of_band(const march_params<R> &p, int32_t band, int32_t bands) {
  band_blocks b;
  b.all = (int32_t)march_grid(p).y;
  b.first = (int32_t)((int64_t)b.all * band / bands);
  b.end = (int32_t)((int64_t)b.all * (band + 1) / bands);
  return b;
}

template <int R> static int32_t base_march_rows(const base_args *args, int32_t band, int32_t bands) {
  const march_params<R> p = base_params_of<R>(args);
  const band_blocks blocks = blocks_of_band(p, band, bands);
  /* the rows of the last block's filter, and a step that may be asked for ahead; two doubled rows come from one */
  const int64_t doubled = p.first_row + (int64_t)blocks.end * (p.steps * MARCH_ROWS - 2 * R) + R + MARCH_ROWS;
  const int64_t rows = doubled / 2 + 2;
  return blocks.end == blocks.all || rows > args->source.height ? args->source.height : (int32_t)rows;
}

template <int R>
static stage_status base_march_launch(const base_args *args, int32_t band, int32_t bands, picture_batch batch,
                                      cuda_stream stream) {
  march_params<R> p = base_params_of<R>(args);
  const band_blocks blocks = blocks_of_band(p, band, bands);
  if (blocks.first == blocks.end) return STAGE_OK;
  dim3 grid = march_grid(p);
  grid.y = (unsigned)(blocks.end - blocks.first);
  p.first_row += blocks.first * (p.steps * MARCH_ROWS - 2 * R);
  const byte_picture source = {static_cast<const uint8_t *>(args->source.data), args->source.stride_bytes,
                               args->source.width, args->source.height};
  if (batch.count > 1) {
    grid.z = (unsigned)batch.count;
    base_march_kernel<R, true>
        <<<grid, march_shape<R>::threads, march_shape<R>::shared_bytes, stream>>>(p, source, batch.stride_bytes);
  } else {
    base_march_kernel<R, false><<<grid, march_shape<R>::threads, march_shape<R>::shared_bytes, stream>>>(p, source, 0);
  }
  return launch_status();
}

/* The grid of a kernel of one sample a thread, for each picture of a batch. */
static dim3 plain_grid(const plane_view *out, picture_batch batch) {
  dim3 grid = launch_grid_2d(out->width, PLAIN_COLUMNS, out->height, PLAIN_ROWS);
  grid.z = batch.count > 1 ? (unsigned)batch.count : 1u;
  return grid;
}

static stage_status base_split(const base_args *args, picture_batch batch, cuda_stream stream) {
  const bool doubled = args->first_octave < 0;
  const plane_view gray = doubled ? args->gray : args->doubled, none = {NULL, 0, 0, 0};
  const dim3 threads(PLAIN_COLUMNS, PLAIN_ROWS);
  assert(gray.width <= args->source.width && gray.height <= args->source.height);
  gray_kernel<<<plain_grid(&gray, batch), threads, 0, stream>>>(
      args->source, gray, doubled ? 1 : 1 << args->first_octave, batch.stride_bytes);
  if (doubled) {
    const plane_view out = args->doubled;
    assert(out.width == 2 * gray.width && out.height == 2 * gray.height);
    double_kernel<<<plain_grid(&out, batch), threads, 0, stream>>>(gray, out, args->grid, batch.stride_bytes);
  }
  const blur_launch_args blur = {args->doubled, args->out, args->work, none, none, args->border, args->filter, batch};
  const stage_status status = launch_status();
  return status == STAGE_OK ? blur_launch(&blur, stream) : status;
}

int32_t base_band_rows(const base_args *args, int32_t band, int32_t bands) {
  assert(base_is_fused(args) && band >= 0 && band < bands);
  switch (args->filter->radius) {
#define RADIUS_CASE(R)                                                                                                 \
  case R:                                                                                                              \
    return base_march_rows<R>(args, band, bands);
    TUNE_MARCH_RADII(RADIUS_CASE)
#undef RADIUS_CASE
  default:
    return args->source.height;
  }
}

static stage_status base_fused(const base_args *args, int32_t band, int32_t bands, picture_batch batch,
                               cuda_stream stream) {
  assert(base_is_fused(args) && band >= 0 && band < bands);
  switch (args->filter->radius) {
#define RADIUS_CASE(R)                                                                                                 \
  case R:                                                                                                              \
    return base_march_launch<R>(args, band, bands, batch, stream);
    TUNE_MARCH_RADII(RADIUS_CASE)
#undef RADIUS_CASE
  default:
    return STAGE_DEVICE;
  }
}

stage_status base_band_launch(const base_args *args, int32_t band, int32_t bands, cuda_stream stream) {
  const picture_batch one = {1, 0};
  return base_fused(args, band, bands, one, stream);
}

stage_status base_batch_launch(const base_args *args, picture_batch batch, cuda_stream stream) {
  assert(batch.count <= 1 || !blur_needs_work(args->filter->radius));
  if (args->out.width <= 0 || args->out.height <= 0) return STAGE_OK;
  return base_is_fused(args) ? base_fused(args, 0, 1, batch, stream) : base_split(args, batch, stream);
}

stage_status base_launch(const base_args *args, cuda_stream stream) {
  const picture_batch one = {1, 0};
  return base_batch_launch(args, one, stream);
}

stage_status base_prepare(void) {
  stage_status status = STAGE_OK;
#define RADIUS_PREPARE(R)                                                                                              \
  if (status == STAGE_OK)                                                                                              \
    status = launch_prepare((const void *)base_march_kernel<R, false>, march_shape<R>::shared_bytes);                  \
  if (status == STAGE_OK)                                                                                              \
    status = launch_prepare((const void *)base_march_kernel<R, true>, march_shape<R>::shared_bytes);
  TUNE_MARCH_RADII(RADIUS_PREPARE)
#undef RADIUS_PREPARE
  return status;
}
