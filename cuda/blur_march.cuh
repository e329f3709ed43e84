/*
 * Device functions of the marching blur, shared by the split and the uber kernels.
 *
 * A block walks down a strip of MARCH_COLUMNS columns. Each step stages MARCH_ROWS input rows in shared memory (the
 * next step's are in flight meanwhile), filters them along x into a ring of rows, and filters the ring along y into
 * outputs. In the row pass a lane owns a row and slides along it; in the column pass a lane owns a column. So every
 * sample is read from shared memory about twice a pass, without bank conflicts, and no row is filtered twice but
 * for the 2R rows above a block's first output.
 */
#ifndef HS_CUDA_BLUR_MARCH_CUH
#define HS_CUDA_BLUR_MARCH_CUH

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/pyramid_cuda.h"
#include "cuda/tune.h"

/* What a block of the marching blur works from, by value: the taps lie in the constant bank. */
template <int R> struct march_params {
  const float *in;
  float *out, *halved, *dog;
  size_t stride, halved_stride; /* in, out and dog share a stride */
  int32_t width, height;
  int32_t halved_width, halved_height;
  int32_t steps;     /* of MARCH_ROWS rows for each block: steps * MARCH_ROWS - 2R outputs */
  int32_t first_row; /* of the first block: 0, or -1 where the base needs an even start */
  border_mode border;
  float taps[R + 1];
};

template <int R> struct march_shape {
  static constexpr int halo = (R + 3) / 4 * 4; /* columns staged at each side, whole vectors */
  static constexpr int staged_columns = MARCH_COLUMNS + 2 * halo;
  static constexpr int staged_stride = staged_columns + 4; /* an odd number of 16-byte units: no conflicts */
  static constexpr int ring_stride = MARCH_COLUMNS + 4;
  static constexpr int staged_floats = MARCH_ROWS * staged_stride;
  static constexpr int shared_bytes = (2 * staged_floats + MARCH_RING_ROWS * ring_stride) * (int)sizeof(float);
  static constexpr int threads = MARCH_COLUMNS / MARCH_SEGMENT * 32;
  static_assert(R <= MARCH_RADIUS_MAX, "the ring holds 32 + 2R rows");
};

/* Where a block stands: its first column, and its first output row, from which rows are counted. */
struct march_place {
  int32_t column, origin, rows;
};

template <int R> __device__ __forceinline__ march_place march_place_of(const march_params<R> &p) {
  const int32_t length = p.steps * MARCH_ROWS - 2 * R;
  const int32_t top = p.first_row + (int32_t)blockIdx.y * length;
  march_place place;
  place.column = (int32_t)blockIdx.x * MARCH_COLUMNS;
  place.origin = top;
  place.rows = min(length, p.height - top);
  return place;
}

/* border_index with the usual case first: one reflection, no division. */
__device__ __forceinline__ int32_t fold_index(int32_t i, int32_t n, border_mode mode) {
  if ((uint32_t)i < (uint32_t)n) return i;
  const int32_t once = i < 0 ? -i : 2 * (n - 1) - i;
  if (mode == BORDER_REFLECT_101 && (uint32_t)once < (uint32_t)n) return once;
  return border_index(i, n, mode);
}

/* Input row of counted row q of a walk (q = 0 is R rows before the first output). */
template <int R>
__device__ __forceinline__ int32_t march_row(const march_params<R> &p, const march_place &place, int32_t q) {
  return fold_index(place.origin + q - R, p.height, p.border);
}

/* Columns of a strip that whole vectors do not reach, because the picture ends there: `left` of them at its left side
   (x = -1 downwards), `right` from `right_first` on. */
struct strip_edges {
  int32_t left, right, right_first;
};

template <int R>
__device__ __forceinline__ strip_edges strip_edges_of(const march_params<R> &p, const march_place &place) {
  strip_edges e;
  e.right_first = p.width & ~3;
  e.left = place.column == 0 ? R : 0;
  e.right = max(min(place.column + MARCH_COLUMNS, p.width) + R - e.right_first, 0);
  return e;
}

/* The samples of a step that no whole vector reaches: a lane takes a row, a warp a column. */
template <int R>
__device__ __forceinline__ void stage_plane_edges(const march_params<R> &p, const march_place &place, int32_t step,
                                                  int32_t needed, float *s_rows) {
  using shape = march_shape<R>;
  const strip_edges edges = strip_edges_of(p, place);
  const int32_t row = (int32_t)threadIdx.x & 31;
  if (edges.left + edges.right == 0 || row >= needed) return;
  const float *from = p.in + (size_t)march_row(p, place, step * MARCH_ROWS + row) * p.stride;
  for (int32_t e = (int32_t)threadIdx.x >> 5; e < edges.left + edges.right; e += shape::threads / 32) {
    const int32_t x = e < edges.left ? -1 - e : edges.right_first + e - edges.left;
    copy_4_async(s_rows + row * shape::staged_stride + shape::halo + x - place.column,
                 from + fold_index(x, p.width, p.border));
  }
}

/* Stages the input rows of one step; rows that no output needs are left as they are. A thread keeps to one column of
   vectors and takes every rows_a_round-th row. */
template <int R>
__device__ __forceinline__ void stage_plane_rows(const march_params<R> &p, const march_place &place, int32_t step,
                                                 float *s_rows) {
  using shape = march_shape<R>;
  constexpr int vectors = shape::staged_columns / 4, rows_a_round = shape::threads / vectors;
  constexpr int rounds = (MARCH_ROWS + rows_a_round - 1) / rows_a_round;
  const int32_t needed = place.rows + 2 * R - step * MARCH_ROWS; /* rows of this step that some output needs */
  const int32_t first = (int32_t)threadIdx.x / vectors, vector = (int32_t)threadIdx.x - first * vectors;
  const int32_t x = place.column - shape::halo + 4 * vector;
  if (first < rows_a_round && x >= 0 && x + 4 <= p.width) {
    const int32_t y = place.origin + step * MARCH_ROWS - R;
    float *s_to = s_rows + first * shape::staged_stride + 4 * vector;
    if (needed >= MARCH_ROWS && y >= 0 && y + MARCH_ROWS <= p.height) {
      const float *from = p.in + (size_t)(y + first) * p.stride + x;
      const int32_t down = rows_a_round * (int32_t)p.stride;
#pragma unroll
      for (int n = 0; n < rounds; n++)
        if (n + 1 < rounds || first + n * rows_a_round < MARCH_ROWS)
          copy_16_async(s_to + n * rows_a_round * shape::staged_stride, from + (ptrdiff_t)n * down);
    } else {
#pragma unroll 1
      for (int32_t row = first; row < min(needed, MARCH_ROWS);
           row += rows_a_round, s_to += rows_a_round * shape::staged_stride)
        copy_16_async(s_to, p.in + (size_t)march_row(p, place, step * MARCH_ROWS + row) * p.stride + x);
    }
  }
  stage_plane_edges(p, place, step, needed, s_rows);
}

/* COUNT outputs from a window whose sample R is the centre of output 0, in the order of the contract. */
template <int R, int COUNT>
__device__ __forceinline__ void filter_window(const float *taps, const float *v, float a[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    float acc = taps[0] * v[i + R];
#pragma unroll
    for (int j = 1; j <= R; j++) acc = hs_fmaf(taps[j], v[i + R - j] + v[i + R + j], acc);
    a[i] = acc;
  }
}

/* Row pass of one step: staged rows to ring rows. A lane filters MARCH_SEGMENT columns of one row. */
template <int R>
__device__ __forceinline__ void filter_step_rows(const float *taps, int32_t step, const float *s_rows, float *s_ring) {
  using shape = march_shape<R>;
  const int32_t lane = (int32_t)threadIdx.x & 31, column = (int32_t)(threadIdx.x >> 5) * MARCH_SEGMENT;
  const float4 *s_from = reinterpret_cast<const float4 *>(s_rows + lane * shape::staged_stride + column);
  float4 *s_to = reinterpret_cast<float4 *>(
      s_ring + ((step * MARCH_ROWS + lane) & (MARCH_RING_ROWS - 1)) * shape::ring_stride + column);
  float v[MARCH_SEGMENT + 2 * shape::halo], a[MARCH_SEGMENT];
#pragma unroll
  for (int i = 0; i < (MARCH_SEGMENT + 2 * shape::halo) / 4; i++) {
    const float4 f = s_from[i];
    v[4 * i] = f.x;
    v[4 * i + 1] = f.y;
    v[4 * i + 2] = f.z;
    v[4 * i + 3] = f.w;
  }
  filter_window<R, MARCH_SEGMENT>(taps, v + shape::halo - R, a);
#pragma unroll
  for (int i = 0; i < MARCH_SEGMENT / 4; i++) s_to[i] = make_float4(a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3]);
}

/* Every second sample of MARCH_SEGMENT outputs of a column, from row y on: the next octave's level 0. */
template <int R>
__device__ __forceinline__ void store_halved(const march_params<R> &p, const march_place &place, int32_t x,
                                             int32_t first, bool whole, const float a[MARCH_SEGMENT]) {
  if ((x & 1) || x / 2 >= p.halved_width) return;
  const int32_t odd = (place.origin + first) & 1; /* a[odd], a[odd + 2], ... are even rows */
  const int32_t row = (place.origin + first + odd) / 2, down = (int32_t)p.halved_stride;
  float *to = p.halved + (ptrdiff_t)row * down + x / 2;
  whole = whole && row + MARCH_SEGMENT / 2 <= p.halved_height;
#pragma unroll
  for (int i = 0; i < MARCH_SEGMENT; i += 2) {
    const int32_t at = first + i + odd;
    if (whole || (at >= 0 && at < place.rows && row + i / 2 < p.halved_height))
      to[(ptrdiff_t)(i / 2) * down] = odd ? a[i + 1] : a[i];
  }
}

/* Stores MARCH_SEGMENT outputs of a column, from counted output row `first` on. */
template <int R, bool DOG>
__device__ __forceinline__ void store_column(const march_params<R> &p, const march_place &place, int32_t x,
                                             int32_t first, const float a[MARCH_SEGMENT]) {
  const int32_t down = (int32_t)p.stride;
  const ptrdiff_t at = (ptrdiff_t)(place.origin + first) * down + x;
  float *out = p.out + at, *dog = DOG ? p.dog + at : NULL;
  const float *in = p.in + at;
  /* all rows are stored: everywhere but in a walk's first and last step */
  const bool whole = first >= 0 && first + MARCH_SEGMENT <= place.rows && place.origin >= 0;
  if (whole) {
    float before[MARCH_SEGMENT];
#pragma unroll
    for (int i = 0; i < MARCH_SEGMENT; i++) before[i] = DOG ? in[(ptrdiff_t)i * down] : 0.0f;
#pragma unroll
    for (int i = 0; i < MARCH_SEGMENT; i++) {
      out[(ptrdiff_t)i * down] = a[i];
      if (DOG) dog[(ptrdiff_t)i * down] = a[i] - before[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < MARCH_SEGMENT; i++) {
      if (first + i < 0 || first + i >= place.rows || place.origin + first + i < 0) continue;
      out[(ptrdiff_t)i * down] = a[i];
      if (DOG) dog[(ptrdiff_t)i * down] = a[i] - in[(ptrdiff_t)i * down];
    }
  }
  if (p.halved) store_halved(p, place, x, first, whole, a);
}

/* Column pass of one step: outputs first..first+15 of a column for each lane, first = 32 step - 2R (+ 16). The ring's
   rows are addressed in blocks of 16, whose bounds are known at compile time. */
template <int R, bool DOG>
__device__ __forceinline__ void filter_step_columns(const march_params<R> &p, const march_place &place, int32_t step,
                                                    const float *s_ring) {
  using shape = march_shape<R>;
  constexpr int groups = MARCH_COLUMNS / 32, count = MARCH_ROWS / (shape::threads / 32 / groups), block = 16;
  static_assert(count == block, "16 rows a warp");
  const int32_t warp = (int32_t)threadIdx.x >> 5, group = warp % groups;
  const int32_t sixteenth = 2 * step + warp / groups, first = block * sixteenth - 2 * R;
  if (first + count <= 0 || first >= place.rows) return;
  const int32_t column = group * 32 + ((int32_t)threadIdx.x & 31), x = place.column + column;
  const float *s_block[3];
#pragma unroll
  for (int n = 0; n < 3; n++)
    s_block[n] = s_ring + ((sixteenth - 2 + n) & (MARCH_RING_ROWS / block - 1)) * block * shape::ring_stride + column;
  float v[count + 2 * R];
#pragma unroll
  for (int i = 0; i < count + 2 * R; i++) {
    const int at = i - 2 * R + 2 * block;
    v[i] = s_block[at / block][at % block * shape::ring_stride];
  }
  if (x >= p.width) return;
  float a[count];
  filter_window<R, count>(p.taps, v, a);
  store_column<R, DOG>(p, place, x, first, a);
}

/* The whole walk of a block over a plane. */
template <int R, bool DOG> __device__ __forceinline__ void march_plane(const march_params<R> &p, float *s_all) {
  using shape = march_shape<R>;
  float *s_ring = s_all + 2 * shape::staged_floats;
  const march_place place = march_place_of(p);
  stage_plane_rows(p, place, 0, s_all);
  copies_commit();
  for (int32_t step = 0; step < p.steps && step * MARCH_ROWS < place.rows + 2 * R; step++) {
    float *s_now = s_all + (step & 1) * shape::staged_floats, *s_next = s_all + (~step & 1) * shape::staged_floats;
    copies_wait();
    __syncthreads(); /* this step's rows are staged; the step before has left the ring and the other stage */
    stage_plane_rows(p, place, step + 1, s_next);
    copies_commit();
    filter_step_rows<R>(p.taps, step, s_now, s_ring);
    __syncthreads(); /* the ring's new rows are complete */
    filter_step_columns<R, DOG>(p, place, step, s_ring);
  }
}

/* The parameters of the block's picture in a batch. */
template <int R>
static __device__ __forceinline__ march_params<R> march_params_of_block(const march_params<R> &p, size_t stride_bytes) {
  march_params<R> q = p;
  const size_t bytes = blockIdx.z * stride_bytes;
  q.in = batch_shifted(p.in, bytes);
  q.out = batch_shifted(p.out, bytes);
  q.halved = batch_shifted(p.halved, bytes);
  return q;
}

/* ------------------------------------------------------------------------------ host side of a launch */

/* Steps a block: the fewest rows filtered twice against blocks spread evenly over the multiprocessors. The cost is the
   number of steps that the fullest multiprocessor works off, as if it never held fewer than MARCH_DEPTH_MIN blocks:
   alone, a block mostly waits. Ties go to fewer, longer blocks. */
static inline int32_t march_steps(int32_t radius, int32_t width, int32_t height) {
  const int64_t strips = launch_parts(width, MARCH_COLUMNS), sms = launch_multiprocessors();
  int32_t best = 1;
  int64_t best_cost = INT64_MAX;
  for (int32_t steps = 1; steps <= MARCH_STEPS_MAX; steps++) {
    const int64_t blocks = strips * launch_parts(height + 1, steps * MARCH_ROWS - 2 * radius);
    int64_t cost = (blocks + sms - 1) / sms;
    if (cost < MARCH_DEPTH_MIN) cost = MARCH_DEPTH_MIN;
    cost *= steps;
    if (cost < best_cost || (cost == best_cost && blocks >= sms * MARCH_BLOCKS_PER_SM)) {
      best_cost = cost;
      best = steps;
    }
  }
  while (launch_parts(height + 1, best * MARCH_ROWS - 2 * radius) > GRID_Y_MAX) best *= 2;
  return best;
}

template <int R> static march_params<R> march_params_of(const blur_launch_args *args) {
  assert(args->filter->radius == R);
  assert(args->out.width == args->in.width && args->out.height == args->in.height &&
         args->in.stride == args->out.stride);
  assert(args->in.stride % PLANE_STRIDE_FLOATS == 0 && args->in.stride >= (size_t)args->in.width);
  assert(args->in.stride <= INT32_MAX / MARCH_ROWS && args->halved.stride <= INT32_MAX / MARCH_ROWS);
  assert((uintptr_t)args->in.data % 256 == 0 && (uintptr_t)args->out.data % 256 == 0);
  march_params<R> p;
  p.in = args->in.data;
  p.out = args->out.data;
  p.halved = args->halved.data;
  p.dog = args->dog.data;
  p.stride = args->in.stride;
  p.halved_stride = args->halved.stride;
  p.width = args->in.width;
  p.height = args->in.height;
  p.halved_width = args->halved.width;
  p.halved_height = args->halved.height;
  p.steps = march_steps(R, p.width, p.height);
  p.first_row = 0;
  p.border = args->border;
  for (int32_t j = 0; j <= R; j++) p.taps[j] = args->filter->taps[j];
  return p;
}

template <int R> static dim3 march_grid(const march_params<R> &p) {
  return dim3((unsigned)launch_parts(p.width, MARCH_COLUMNS),
              (unsigned)launch_parts(p.height - p.first_row, p.steps * MARCH_ROWS - 2 * R));
}

#endif
