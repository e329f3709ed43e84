/* Base of the pyramid: the source picture as gray in [0, 1], doubled or thinned, blurred. One fused kernel for u8 gray
 * doubled on either grid; for other pictures a kernel that makes gray, one that doubles, and the level step. */
#include "cuda/pyramid/blur_march.cuh"
#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/runtime/launch.cuh"

/* Gray bytes of 8-bit colour. */

enum { GRAY_THREADS = 256, GRAY_ROWS_MAX = 65535 };

/* A picture's first byte, and the layout of its pixels. */
typedef struct gray_source {
  const uint8_t *data;
  size_t stride_bytes;
  int32_t width, height, channels, red, blue; /* bytes of a pixel; offsets of red and blue, both 0: no colours */
} gray_source;

/*
 * Does      gray of every pixel, as image_view.c does on the host.
 * Launch    blocks of 256 threads, one thread per pixel; grid: parts of a row, rows (looping), pictures of the
 *           group.
 * Shared    none.
 * Reads     source: bytes, any stride. Writes out.
 * Barriers  none.
 * Limits    any size. Order: repeatable.
 * Cost      at most 5 bytes of memory a pixel: bound by memory.
 */
__global__ void __launch_bounds__(GRAY_THREADS)
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

stage_status gray_launch(const source_view *source, uint8_t *out, size_t out_stride_bytes, picture_group group,
                         cuda_stream stream) {
  assert(source->type == SOURCE_U8 && source->data && out && out_stride_bytes >= (size_t)source->width);
  const bool colour = source_channels(source->layout) >= 3;
  const bool blue_first = source->layout == SOURCE_BGR || source->layout == SOURCE_BGRA;
  const gray_source s = {(const uint8_t *)source->data,
                         source->stride_bytes,
                         source->width,
                         source->height,
                         (int32_t)source_channels(source->layout),
                         colour && !blue_first ? 0
                         : colour              ? 2
                                               : 0,
                         colour && !blue_first ? 2 : 0};
  const unsigned columns = ((unsigned)source->width + GRAY_THREADS - 1u) / GRAY_THREADS;
  const unsigned rows = source->height < GRAY_ROWS_MAX ? (unsigned)source->height : (unsigned)GRAY_ROWS_MAX;
  const dim3 blocks(columns, rows, group.count > 1 ? (unsigned)group.count : 1u);
  return launch(gray_bytes_kernel, blocks, GRAY_THREADS, 0, stream, s, out, out_stride_bytes, group.stride_bytes);
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

/* The u8 source picture of a fused base. Rows start at multiples of 4 bytes. */
struct byte_picture {
  const uint8_t *data;
  size_t stride_bytes;
  int32_t width, height;
};

__device__ __forceinline__ const uint8_t *picture_row(const byte_picture &s, int32_t y) {
  return s.data + (size_t)y * s.stride_bytes;
}

/* Rows doubled: sample x of 2w, from a source row. */
template <upsample_grid GRID>
__device__ __forceinline__ float doubled_along_row(const byte_picture &s, int32_t x, const uint8_t *row) {
  return doubled_sample(unit_of_u8(row[x >> 1]), unit_of_u8(row[far_index(x, s.width, GRID)]), GRID);
}

/* Sample (x, y) of the doubled picture: along rows first, then along columns. */
template <upsample_grid GRID> __device__ __forceinline__ float doubled_at(const byte_picture &s, int32_t x, int32_t y) {
  return doubled_sample(doubled_along_row<GRID>(s, x, picture_row(s, y >> 1)),
                        doubled_along_row<GRID>(s, x, picture_row(s, far_index(y, s.height, GRID))), GRID);
}

/* Where a row holds the source columns left - 1 .. left + 2 for four doubled samples: in one or two words. Columns
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

/* Returns four doubled samples of a row from its four columns. The first sample lies at the second column. */
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

/* Four doubled samples of row y, inside the picture. */
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
 * Launch    as blur_march_kernel; Shared, Barriers, Limits, Order too.
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
__global__ void __launch_bounds__(march_shape<R>::threads, MARCH_BLOCKS_PER_SM)
    base_march_kernel(const __grid_constant__ march_params<R> p, const byte_picture s, size_t group_stride_bytes) {
  if (GROUP) {
    byte_picture picture = s;
    picture.data = group_shifted(s.data, blockIdx.z * group_stride_bytes);
    base_march<R, GRID>(march_params_of_block(p, group_stride_bytes), picture);
  } else {
    base_march<R, GRID>(p, s);
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
__global__ void gray_kernel(source_view source, plane_view out, int32_t step, size_t group_stride_bytes) {
  source.data = group_shifted(source.data, blockIdx.z * group_stride_bytes);
  out.data = group_shifted(out.data, blockIdx.z * group_stride_bytes);
  const int32_t x = (int32_t)(blockIdx.x * PLAIN_COLUMNS + threadIdx.x);
  if (x >= out.width) return;
  for (int32_t y = (int32_t)(blockIdx.y * PLAIN_ROWS + threadIdx.y); y < out.height;
       y += (int32_t)(gridDim.y * PLAIN_ROWS))
    out.data[(size_t)y * out.stride + (size_t)x] = source_gray(source, x * step, y * step);
}

/* Rows doubled: sample x of 2n. */
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
__global__ void double_kernel(plane_view in, plane_view out, upsample_grid grid, size_t group_stride_bytes) {
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

bool base_is_fused(const base_args *args) {
  const bool on_words = (((uintptr_t)args->source.data | args->source.stride_bytes) & 3) == 0;
  return args->source.type == SOURCE_U8 && args->source.layout == SOURCE_GRAY && args->first_octave < 0 && on_words &&
         !blur_needs_work(args->filter->radius);
}

template <int R> static march_params<R> base_params_of(const base_args *args, int32_t bands) {
  const plane_view none = {NULL, 0, 0, 0};
  /* the marching kernel's `in` is made from source bytes: `out` only provides its geometry */
  const blur_launch_args blur = {args->out, args->out, none, none, none, args->border, args->filter, {1, 0}};
  march_params<R> p = march_params_of<R>(&blur);
  p.first_row = -(R & 1);
  if (bands > 1) p.steps = BASE_BAND_STEPS;
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
  const march_params<R> p = base_params_of<R>(args, bands);
  const band_blocks blocks = blocks_of_band(p, band, bands);
  /* the rows of the last block's filter, and one step of prefetch; two doubled rows come from one */
  const int64_t doubled = p.first_row + (int64_t)blocks.end * (p.steps * MARCH_ROWS - 2 * R) + R + MARCH_ROWS;
  const int64_t rows = doubled / 2 + 2;
  return blocks.end == blocks.all || rows > args->source.height ? args->source.height : (int32_t)rows;
}

/* The kernel for a grid, and for one picture or several. */
template <int R>
static void (*base_kernel_of(upsample_grid grid, bool group))(const march_params<R>, const byte_picture, size_t) {
  if (grid == GRID_ALIGNED)
    return group ? base_march_kernel<R, GRID_ALIGNED, true> : base_march_kernel<R, GRID_ALIGNED, false>;
  return group ? base_march_kernel<R, GRID_HALF_PIXEL, true> : base_march_kernel<R, GRID_HALF_PIXEL, false>;
}

template <int R>
static stage_status base_march_launch(const base_args *args, int32_t band, int32_t bands, picture_group group,
                                      cuda_stream stream) {
  march_params<R> p = base_params_of<R>(args, bands);
  const band_blocks blocks = blocks_of_band(p, band, bands);
  if (blocks.first == blocks.end) return STAGE_OK;
  dim3 grid = march_grid(p);
  grid.y = (unsigned)(blocks.end - blocks.first);
  p.first_row += blocks.first * (p.steps * MARCH_ROWS - 2 * R);
  const byte_picture source = {static_cast<const uint8_t *>(args->source.data), args->source.stride_bytes,
                               args->source.width, args->source.height};
  if (group.count > 1) grid.z = (unsigned)group.count;
  return launch(base_kernel_of<R>(args->grid, group.count > 1), grid, march_shape<R>::threads,
                march_shape<R>::shared_bytes, stream, p, source, group.stride_bytes);
}

/* The grid of a kernel of one sample a thread, for each picture of a group. */
static dim3 plain_grid(const plane_view *out, picture_group group) {
  dim3 grid = launch_grid_2d(out->width, PLAIN_COLUMNS, out->height, PLAIN_ROWS);
  grid.z = group.count > 1 ? (unsigned)group.count : 1u;
  return grid;
}

static stage_status base_split(const base_args *args, picture_group group, cuda_stream stream) {
  const bool doubled = args->first_octave < 0;
  const plane_view gray = doubled ? args->gray : args->doubled, none = {NULL, 0, 0, 0};
  const dim3 threads(PLAIN_COLUMNS, PLAIN_ROWS);
  assert(gray.width <= args->source.width && gray.height <= args->source.height);
  stage_status status = launch(gray_kernel, plain_grid(&gray, group), threads, 0, stream, args->source, gray,
                               doubled ? 1 : 1 << args->first_octave, group.stride_bytes);
  if (doubled && status == STAGE_OK) {
    const plane_view out = args->doubled;
    assert(out.width == 2 * gray.width && out.height == 2 * gray.height);
    status =
        launch(double_kernel, plain_grid(&out, group), threads, 0, stream, gray, out, args->grid, group.stride_bytes);
  }
  const blur_launch_args blur = {args->doubled, args->out, args->work, none, none, args->border, args->filter, group};
  return status == STAGE_OK ? blur_launch(&blur, stream) : status;
}

template <int R> static stage_status base_prepare_radius(void) {
  stage_status status = STAGE_OK;
  for (int k = 0; k < 4 && status == STAGE_OK; k++)
    status = launch_prepare((const void *)base_kernel_of<R>(k & 1 ? GRID_HALF_PIXEL : GRID_ALIGNED, k > 1),
                            march_shape<R>::shared_bytes);
  return status;
}

struct base_row {
  int32_t radius;
  stage_status (*prepare)(void);
  stage_status (*launch)(const base_args *args, int32_t band, int32_t bands, picture_group group, cuda_stream stream);
  int32_t (*source_rows)(const base_args *args, int32_t band, int32_t bands);
};

#define BASE_ROW(R) {R, base_prepare_radius<R>, base_march_launch<R>, base_march_rows<R>},
static const base_row base_rows[] = {TUNE_MARCH_RADII(BASE_ROW)};

int32_t base_band_rows(const base_args *args, int32_t band, int32_t bands) {
  assert(base_is_fused(args) && band >= 0 && band < bands);
  const base_row *row = march_row_of(base_rows, args->filter->radius);
  return row ? row->source_rows(args, band, bands) : args->source.height;
}

static stage_status base_fused(const base_args *args, int32_t band, int32_t bands, picture_group group,
                               cuda_stream stream) {
  assert(base_is_fused(args) && band >= 0 && band < bands);
  const base_row *row = march_row_of(base_rows, args->filter->radius);
  return row ? row->launch(args, band, bands, group, stream) : STAGE_DEVICE;
}

stage_status base_band_launch(const base_args *args, int32_t band, int32_t bands, cuda_stream stream) {
  const picture_group one = {1, 0};
  return base_fused(args, band, bands, one, stream);
}

stage_status base_group_launch(const base_args *args, picture_group group, cuda_stream stream) {
  assert(group.count <= 1 || !blur_needs_work(args->filter->radius));
  if (args->out.width <= 0 || args->out.height <= 0) return STAGE_OK;
  return base_is_fused(args) ? base_fused(args, 0, 1, group, stream) : base_split(args, group, stream);
}

stage_status base_launch(const base_args *args, cuda_stream stream) {
  const picture_group one = {1, 0};
  return base_group_launch(args, one, stream);
}

stage_status base_prepare(void) { return march_prepare(base_rows); }
