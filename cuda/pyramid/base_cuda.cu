/* Base of the pyramid: the source picture as gray in [0, 1], doubled or thinned, blurred. One fused kernel for u8 gray
 * doubled on either grid; for other pictures a kernel that makes gray, one that doubles, and the level step. */
#include "cuda/pyramid/blur_march.cuh"
#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/runtime/launch.h"

/*
 * Does      gray of every pixel, as image_view.c does on the host.
 * Launch    blocks of 256 threads, one thread per pixel; grid: parts of a row, rows (looping), pictures of the
 *           group.
 * Shared    none.
 * Reads     source: bytes, any stride. Writes out.
 * Barriers  none.
 * Limits    any size. Order: repeatable.
 * Cost      at most 5 bytes of memory per pixel: bound by memory.
 */
extern "C" __global__ void __launch_bounds__(GRAY_THREADS)
    gray_bytes_kernel(gray_source source, uint8_t *out, size_t out_stride, size_t group_stride) {
  const int32_t x = (int32_t)(blockIdx.x * GRAY_THREADS + threadIdx.x);
  const uint8_t *in = source.data + blockIdx.z * group_stride;
  uint8_t *to = out + blockIdx.z * group_stride;
  if (x >= source.width) return;
  for (int32_t y = (int32_t)blockIdx.y; y < source.height; y += (int32_t)gridDim.y) {
    const uint8_t *p = in + (size_t)y * source.stride_bytes + (size_t)x * (size_t)source.channels;
    const uint32_t gray = source.red == source.blue ? p[0] : gray_of_rgb_int(p[source.red], p[1], p[source.blue]);
    to[(size_t)y * out_stride + (size_t)x] = (uint8_t)gray;
  }
}

/* Returns the index of the second sample that makes doubled sample i of n; the first is sample i / 2. On the
 * aligned grid every second sample is unchanged: the mean of a sample with itself is exact. */
__device__ __forceinline__ int32_t far_index(int32_t i, int32_t n, upsample_grid grid) {
  const int32_t near_index = i >> 1;
  if (i & 1) return min(near_index + 1, n - 1);
  return grid == GRID_ALIGNED ? near_index : max(near_index - 1, 0);
}

__device__ __forceinline__ float doubled_sample(float near_sample, float far_sample, upsample_grid grid) {
  return grid == GRID_ALIGNED ? double_mean(near_sample, far_sample) : double_half_pixel(near_sample, far_sample);
}

/* Returns v / 255.0f for v = 0..255 with the bits of the division: one Newton correction of v * (1 / 255) is exact
   for all 256 values. */
__device__ __forceinline__ float unit_of_u8(uint8_t v) {
  const float f = (float)v, q = f * (1.0f / 255.0f);
  return hs_fmaf(hs_fmaf(-q, 255.0f, f), 1.0f / 255.0f, q);
}

__device__ __forceinline__ const uint8_t *picture_row(const byte_picture &s, int32_t y) {
  return s.data + (size_t)y * s.stride_bytes;
}

/* Returns sample x of the 2w samples of a doubled source row. */
template <upsample_grid GRID>
__device__ __forceinline__ float doubled_along_row(const byte_picture &s, int32_t x, const uint8_t *row) {
  return doubled_sample(unit_of_u8(row[x >> 1]), unit_of_u8(row[far_index(x, s.width, GRID)]), GRID);
}

/* Returns sample (x, y) of the doubled picture: doubles along rows first, then along columns. */
template <upsample_grid GRID> __device__ __forceinline__ float doubled_at(const byte_picture &s, int32_t x, int32_t y) {
  return doubled_sample(doubled_along_row<GRID>(s, x, picture_row(s, y >> 1)),
                        doubled_along_row<GRID>(s, x, picture_row(s, far_index(y, s.height, GRID))), GRID);
}

/* Position in a row of the source columns left - 1 .. left + 2 for four doubled samples: one or two words. Columns
 * outside the picture repeat its sides. Columns left and left + 1 are inside. */
struct byte_columns {
  int32_t low, high;        /* offsets of the words */
  uint32_t shift, selector; /* shift: to the first byte inside; selector: for each of the four columns, the number of
                             * its byte from there */
};

__device__ __forceinline__ byte_columns byte_columns_of(int32_t left, int32_t width) {
  const int32_t first = max(left - 1, 0), last = min(left + 2, width - 1), at = left - first;
  byte_columns c;
  c.low = first & ~3;
  c.high = last & ~3;
  c.shift = 8u * (uint32_t)(first & 3);
  c.selector = (uint32_t)(at << 4 | (at + 1) << 8 | (last - first) << 12);
  return c;
}

/* Both words of a row, as they are loaded, and the four columns from them, a byte each. */
struct byte_words {
  uint32_t low, high;
};

__device__ __forceinline__ byte_words load_words(const uint8_t *row, const byte_columns &c) {
  const byte_words w = {*reinterpret_cast<const uint32_t *>(row + c.low),
                        *reinterpret_cast<const uint32_t *>(row + c.high)};
  return w;
}

__device__ __forceinline__ uint32_t four_columns(const byte_words &w, const byte_columns &c) {
  return __byte_perm(__funnelshift_r(w.low, w.high, c.shift), 0, c.selector);
}

/* Returns four doubled samples of a row from its four columns. The first sample is at the second column. */
template <upsample_grid GRID> __device__ __forceinline__ float4 doubled_four(uint32_t columns) {
  const float before = unit_of_u8((uint8_t)columns), a = unit_of_u8((uint8_t)(columns >> 8)),
              b = unit_of_u8((uint8_t)(columns >> 16)), after = unit_of_u8((uint8_t)(columns >> 24));
  if (GRID == GRID_ALIGNED) return make_float4(a, double_mean(a, b), b, double_mean(b, after));
  return make_float4(double_half_pixel(a, before), double_half_pixel(a, b), double_half_pixel(b, a),
                     double_half_pixel(b, after));
}

template <upsample_grid GRID> __device__ __forceinline__ float4 doubled_rows(float4 near_row, float4 far_row) {
  return make_float4(doubled_sample(near_row.x, far_row.x, GRID), doubled_sample(near_row.y, far_row.y, GRID),
                     doubled_sample(near_row.z, far_row.z, GRID), doubled_sample(near_row.w, far_row.w, GRID));
}

/* Returns four doubled samples of row y, inside the picture. */
template <upsample_grid GRID>
__device__ __forceinline__ float4 doubled_four_at(const byte_picture &s, const byte_columns &c, int32_t y) {
  const byte_words near_words = load_words(picture_row(s, y >> 1), c),
                   far_words = load_words(picture_row(s, far_index(y, s.height, GRID)), c);
  return doubled_rows<GRID>(doubled_four<GRID>(four_columns(near_words, c)),
                            doubled_four<GRID>(four_columns(far_words, c)));
}

/* A thread's part of the staging in a step: one column of vectors in consecutive pairs of rows. Two doubled rows come
 * from one source row and the next, which the following pair needs again, so it is loaded once. A pair starts at an
 * even row of the doubled picture (march_params::first_row sees to it). Software pipelining: bytes are loaded before
 * the row pass, and converted and stored after it. */
template <int R, upsample_grid GRID> struct byte_run {
  static constexpr int vectors = march_shape<R>::staged_columns / 4, runs = march_shape<R>::threads / vectors;
  static constexpr int pairs = (MARCH_ROWS / 2 + runs - 1) / runs;
  static constexpr int above = GRID == GRID_ALIGNED ? 0 : 1; /* source rows before the first pair's row */
  int32_t x, y, first, needed; /* doubled column and row; first row within the step; rows of the step that are needed */
  bool inside;                 /* no row of the run needs reflection */
  byte_words words[above + pairs + 1];
};

template <int R, upsample_grid GRID>
__device__ __forceinline__ void load_byte_run(const march_params<R> &p, const byte_picture &s,
                                              const march_region &region, int32_t step, byte_run<R, GRID> *run) {
  using shape = byte_run<R, GRID>;
  const int32_t index = (int32_t)threadIdx.x / shape::vectors;
  run->x = region.column - march_shape<R>::halo + 4 * ((int32_t)threadIdx.x - index * shape::vectors);
  run->first = 2 * shape::pairs * index;
  run->y = region.origin + step * MARCH_ROWS + run->first - R;
  run->needed =
      run->x >= 0 && run->x + 4 <= p.width ? min(region.rows + 2 * R - step * MARCH_ROWS, (int32_t)MARCH_ROWS) : 0;
  run->inside = run->y >= 0 && run->y + 2 * shape::pairs <= p.height;
  if (!run->inside || run->first >= run->needed) return;
  const byte_columns columns = byte_columns_of(run->x >> 1, s.width);
#pragma unroll
  for (int n = 0; n <= shape::above + shape::pairs; n++) {
    const int32_t y = (run->y >> 1) + n - shape::above;
    run->words[n] = load_words(picture_row(s, min(shape::above ? max(y, 0) : y, s.height - 1)), columns);
  }
}

/* Writes a thread's run to the stage, and the samples outside whole vectors. */
template <int R, upsample_grid GRID>
__device__ __forceinline__ void stage_byte_run(const march_params<R> &p, const byte_picture &s,
                                               const march_region &region, int32_t step, const byte_run<R, GRID> &run,
                                               float *s_rows) {
  using shape = march_shape<R>;
  constexpr int above = byte_run<R, GRID>::above, pairs = byte_run<R, GRID>::pairs;
  float4 *s_to =
      reinterpret_cast<float4 *>(s_rows + run.first * shape::staged_stride + run.x - region.column + shape::halo);
  constexpr int stride = shape::staged_stride / 4;
  const byte_columns columns = byte_columns_of(run.x >> 1, s.width);
  if (run.inside) {
    float4 upper = doubled_four<GRID>(four_columns(run.words[0], columns)), middle = upper;
    if (above) middle = doubled_four<GRID>(four_columns(run.words[above], columns));
#pragma unroll
    for (int n = 0; n < pairs; n++) {
      if (run.first + 2 * n >= run.needed) break;
      const float4 lower = doubled_four<GRID>(four_columns(run.words[n + above + 1], columns));
      s_to[2 * n * stride] = above ? doubled_rows<GRID>(middle, upper) : middle;
      s_to[(2 * n + 1) * stride] = doubled_rows<GRID>(middle, lower);
      upper = middle;
      middle = lower;
    }
  } else {
#pragma unroll 1
    for (int n = 0; run.first + n < run.needed && n < 2 * pairs; n++)
      s_to[n * stride] = doubled_four_at<GRID>(s, columns, fold_index(run.y + n, p.height, p.border));
  }
  const strip_edges edges = strip_edges_of(p, region);
  const int32_t row = (int32_t)threadIdx.x & 31;
  if (edges.left + edges.right == 0 || row >= region.rows + 2 * R - step * MARCH_ROWS) return;
  const int32_t y = fold_index(region.origin + step * MARCH_ROWS + row - R, p.height, p.border);
  for (int32_t e = (int32_t)threadIdx.x >> 5; e < edges.left + edges.right; e += shape::threads / 32) {
    const int32_t x = e < edges.left ? -1 - e : edges.right_first + e - edges.left;
    s_rows[row * shape::staged_stride + shape::halo + x - region.column] =
        doubled_at<GRID>(s, fold_index(x, p.width, p.border), y);
  }
}

/*
 * Does      base_ref for u8 gray, first_octave -1.
 * Launch    as blur_march_kernel, like Shared, Barriers, Limits and Order.
 * Reads     words of source bytes; rows at multiples of 4 bytes (also pinned host memory).
 * Writes    level 0.
 * Cost      per sample a quarter byte read and 4 bytes written; bound by the issue of conversions and filter.
 */
template <int R, upsample_grid GRID>
__device__ __forceinline__ void base_march(const march_params<R> &p, const byte_picture &s) {
  using shape = march_shape<R>;
  extern __shared__ float4 s_vectors[];
  float *s_all = reinterpret_cast<float *>(s_vectors);
  const march_region region = march_region_of(p);
  march_state<R> state = march_state_of<R, false>(p, region, s_all);
  byte_run<R, GRID> run;
  load_byte_run(p, s, region, 0, &run);
  stage_byte_run(p, s, region, 0, run, s_all);
  for (int32_t step = 0; step * MARCH_ROWS < region.rows + 2 * R; step++) {
    __syncthreads(); /* this step's rows are staged; the previous step has finished with the ring and the other stage */
    load_byte_run(p, s, region, step + 1, &run);
    filter_step_rows<R>(p.taps, state);
    stage_byte_run(p, s, region, step + 1, run, s_all + (~step & 1) * shape::staged_floats);
    __syncthreads(); /* the ring's new rows are complete */
    filter_step_columns<R, false>(p, region, state);
    march_advance<R, false>(p, &state);
  }
}

template <int R, upsample_grid GRID, bool GROUP>
static __device__ __forceinline__ void base_of_picture(const march_params<R> &p, const byte_picture &s,
                                                       size_t group_stride_bytes) {
  if (GROUP) {
    byte_picture picture = s;
    picture.data = group_shifted(s.data, blockIdx.z * group_stride_bytes);
    base_march<R, GRID>(march_params_of_block(p, group_stride_bytes), picture);
  } else {
    base_march<R, GRID>(p, s);
  }
}

#define BASE_KERNEL(name, R, GRID, GROUP)                                                                              \
  extern "C" __global__ void __launch_bounds__(MARCH_THREADS, MARCH_BLOCKS_PER_SM)                                     \
      name(const __grid_constant__ march_params<R> p, const byte_picture s, size_t group_stride_bytes) {               \
    base_of_picture<R, GRID, GROUP>(p, s, group_stride_bytes);                                                         \
  }
#define BASE_KERNELS(R)                                                                                                \
  static_assert(march_params_are_arguments<R>(), "the host's layout");                                                 \
  BASE_KERNEL(base_aligned_kernel_##R, R, GRID_ALIGNED, false)                                                         \
  BASE_KERNEL(base_aligned_group_kernel_##R, R, GRID_ALIGNED, true)                                                    \
  BASE_KERNEL(base_half_pixel_kernel_##R, R, GRID_HALF_PIXEL, false)                                                   \
  BASE_KERNEL(base_half_pixel_group_kernel_##R, R, GRID_HALF_PIXEL, true)
TUNE_MARCH_RADII(BASE_KERNELS)

/* Returns one channel of the source as a float in [0, 1]. */
__device__ __forceinline__ float channel_unit(const source_view &s, const uint8_t *sample) {
  if (s.type == SOURCE_U8) return (float)*sample / 255.0f;
  if (s.type == SOURCE_U16) return (float)*reinterpret_cast<const uint16_t *>(sample) / 65535.0f;
  return unit_of_float(*reinterpret_cast<const float *>(sample), s.range_low, s.range_high);
}

__device__ __forceinline__ uint32_t channel_int(const source_view &s, const uint8_t *sample) {
  return s.type == SOURCE_U8 ? *sample : *reinterpret_cast<const uint16_t *>(sample);
}

/* Returns the gray of pixel (x, y) in [0, 1]. */
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
 * Does      makes every 2^N-th pixel gray, the first part of base_ref.
 * Launch    PLAIN_COLUMNS x PLAIN_ROWS samples and threads per block; rows beyond the grid by stride.
 * Shared    none.
 * Reads     the source, samples aligned to their type.
 * Writes    `out`.
 * Barriers  none.
 * Limits    any size.
 * Order     no sums.
 * Cost      per sample the source's bytes read and 4 written.
 */
extern "C" __global__ void gray_kernel(source_view source, plane_view out, int32_t step, size_t group_stride_bytes) {
  source.data = group_shifted(source.data, blockIdx.z * group_stride_bytes);
  out.data = group_shifted(out.data, blockIdx.z * group_stride_bytes);
  const int32_t x = (int32_t)(blockIdx.x * PLAIN_COLUMNS + threadIdx.x);
  if (x >= out.width) return;
  for (int32_t y = (int32_t)(blockIdx.y * PLAIN_ROWS + threadIdx.y); y < out.height;
       y += (int32_t)(gridDim.y * PLAIN_ROWS))
    out.data[(size_t)y * out.stride + (size_t)x] = source_gray(source, x * step, y * step);
}

/* Returns sample x of the 2n samples of a doubled row. */
__device__ __forceinline__ float doubled_plane_row(const float *row, int32_t x, int32_t n, upsample_grid grid) {
  return doubled_sample(row[x >> 1], row[far_index(x, n, grid)], grid);
}

/*
 * Does      doubles along rows, then columns, on either grid, as base_ref.
 * Launch    PLAIN_COLUMNS x PLAIN_ROWS outputs and threads per block; rows beyond the grid by stride.
 * Shared    none.
 * Reads     `in` through the L1 cache.
 * Writes    `out`, 2w x 2h.
 * Barriers  none.
 * Limits    any size.
 * Order     fixed.
 * Cost      5 bytes per sample of the result; bound by memory.
 */
extern "C" __global__ void double_kernel(plane_view in, plane_view out, upsample_grid grid, size_t group_stride_bytes) {
  in.data = group_shifted(in.data, blockIdx.z * group_stride_bytes);
  out.data = group_shifted(out.data, blockIdx.z * group_stride_bytes);
  const int32_t x = (int32_t)(blockIdx.x * PLAIN_COLUMNS + threadIdx.x);
  if (x >= out.width) return;
  for (int32_t y = (int32_t)(blockIdx.y * PLAIN_ROWS + threadIdx.y); y < out.height;
       y += (int32_t)(gridDim.y * PLAIN_ROWS)) {
    const float *near_row = in.data + (size_t)(y >> 1) * in.stride,
                *far_row = in.data + (size_t)far_index(y, in.height, grid) * in.stride;
    out.data[(size_t)y * out.stride + (size_t)x] = doubled_sample(doubled_plane_row(near_row, x, in.width, grid),
                                                                  doubled_plane_row(far_row, x, in.width, grid), grid);
  }
}

GRAY_BASE_KERNELS(LAUNCH_CHECK)
