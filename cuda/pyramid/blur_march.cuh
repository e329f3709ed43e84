/*
 * Device functions of the marching blur, shared by the split and the uber kernels.
 *
 * A block processes a strip of MARCH_COLUMNS columns downwards in steps of MARCH_ROWS input rows. Each step copies the
 * input rows of the next one into one of two stages in shared memory (double buffering), filters its own rows along x
 * into a ring of rows, and filters the ring along y into outputs. In the row pass a lane owns a run of columns of one
 * row, in the column pass a run of rows of two columns. So every sample is read from shared memory two or three times
 * by the row pass and 1 + R / 4 times by the column pass, by lanes in different banks, and no row is filtered twice
 * except the 2R rows above a block's first output.
 *
 * The kernel is bound by instruction issue as much as by memory. So addresses are carried from step to step instead of
 * recomputed, and the tests of a step are comparisons with limits that are computed once, before the first step.
 *
 * Drawings: cuda/KERNELS.md, "The march". Order of the functions below: parameters, double buffers, staging (global to
 * shared memory), row pass (stage to ring), stores and column pass (ring to registers to global memory), and
 * march_plane, which is the loop.
 */
#ifndef HARTSIFT_CUDA_PYRAMID_BLUR_MARCH_CUH
#define HARTSIFT_CUDA_PYRAMID_BLUR_MARCH_CUH

#include "cuda/prim/shared_copy.cuh"
#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/pyramid/tune.h"
#include "cuda/runtime/launch.h"

/* Parameters of a marching blur's block, by value: the taps are in the constant bank. */
template <int R> struct march_params {
  const float *in;
  float *out, *halved, *dog;
  size_t stride, halved_stride; /* in, out and dog share a stride */
  /* the same strides in bytes, times the rows between two addresses of a thread, so that a step needs no products */
  size_t row_bytes, round_bytes, step_bytes, halved_row_bytes, halved_step_bytes;
  int32_t width, height;
  int32_t halved_width, halved_height;
  int32_t steps;     /* steps of MARCH_ROWS rows for each block: steps * MARCH_ROWS - 2R outputs */
  int32_t first_row; /* first row of the first block: 0, or -1 if the base needs an even start */
  border_mode border;
  float taps[R + 1];
};

/* The host passes march_arguments, which has taps for every radius. */
template <int R> static constexpr bool march_params_are_arguments() {
#ifdef __CUDACC_RTC__ /* NVRTC has no offsetof */
  return true;
#else
  return sizeof(march_params<R>) == MARCH_ARGUMENT_BYTES(R) &&
         offsetof(march_params<R>, out) == offsetof(march_arguments, out) &&
         offsetof(march_params<R>, stride) == offsetof(march_arguments, stride) &&
         offsetof(march_params<R>, step_bytes) == offsetof(march_arguments, step_bytes) &&
         offsetof(march_params<R>, width) == offsetof(march_arguments, width) &&
         offsetof(march_params<R>, steps) == offsetof(march_arguments, steps) &&
         offsetof(march_params<R>, border) == offsetof(march_arguments, border) &&
         offsetof(march_params<R>, taps) == offsetof(march_arguments, taps);
#endif
}

template <int R> struct march_shape {
  static constexpr int halo = MARCH_HALO(R);
  static constexpr int staged_columns = MARCH_COLUMNS + 2 * halo;
  static constexpr int staged_stride = MARCH_STAGED_STRIDE(R), ring_stride = MARCH_RING_STRIDE;
  static constexpr int staged_floats = MARCH_ROWS * staged_stride;
  static constexpr int threads = MARCH_THREADS;
  /* column pass: a lane processes lane_columns adjacent columns (one vector) of lane_rows rows */
  static constexpr int lane_columns = MARCH_LANE_COLUMNS, row_lanes = MARCH_COLUMNS / lane_columns;
  static constexpr int lane_rows = MARCH_ROWS * row_lanes / threads;
  static constexpr int window_blocks = 1 + (2 * R + lane_rows - 1) / lane_rows; /* blocks of rows in a window */
  static_assert(R <= MARCH_RADIUS_MAX, "the ring holds 32 + 2R rows");
  static_assert(lane_columns == 2 && lane_rows % 2 == 0, "lanes load and store pairs; whole ones are halved as pairs");
};

/* The same pointer advanced by a number of bytes. */
__device__ __forceinline__ float *moved(float *pointer, size_t bytes) {
  return reinterpret_cast<float *>(reinterpret_cast<char *>(pointer) + bytes);
}
__device__ __forceinline__ const float *moved(const float *pointer, size_t bytes) {
  return reinterpret_cast<const float *>(reinterpret_cast<const char *>(pointer) + bytes);
}

/* Two addresses in shared memory that are used alternately: the current one, and the exclusive or of both. They are
 * 32-bit addresses of the shared window, as instructions take them; a pointer would be converted at every access. */
struct double_buffer {
  uint32_t address, toggle;
};

__device__ __forceinline__ double_buffer double_buffer_of(const float *s_first, const float *s_second) {
  const uint32_t first = (uint32_t)__cvta_generic_to_shared(s_first);
  double_buffer t = {first,
                     (uint32_t)keep_in_register((int32_t)(first ^ (uint32_t)__cvta_generic_to_shared(s_second)))};
  return t;
}

__device__ __forceinline__ void double_buffer_swap(double_buffer *t) { t->address ^= t->toggle; }

/* Loads a vector of COUNT floats, `offset` floats from the current address. */
template <int COUNT> __device__ __forceinline__ void double_buffer_load(double_buffer t, int offset, float v[COUNT]) {
  static_assert(COUNT == 2 || COUNT == 4, "a vector type");
  const uint32_t at = t.address + (uint32_t)offset * 4u;
  if (COUNT == 4)
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[COUNT - 2]), "=f"(v[COUNT - 1])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "r"(at) : "memory");
}

__device__ __forceinline__ void double_buffer_store_4(double_buffer t, int offset, const float v[4]) {
  const uint32_t at = t.address + (uint32_t)offset * 4u;
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3])
               : "memory");
}

__device__ __forceinline__ void double_buffer_copy_16(double_buffer t, int offset, const float *from) {
  copy_16_async_to(t.address + (uint32_t)offset * 4u, from);
}

/* The output of a block: its first column, its first row (the origin of row numbers), and its number of rows. */
struct march_region {
  int32_t column, origin, rows;
};

template <int R> __device__ __forceinline__ march_region march_region_of(const march_params<R> &p) {
  const int32_t length = p.steps * MARCH_ROWS - 2 * R;
  const int32_t top = p.first_row + (int32_t)blockIdx.y * length;
  march_region region;
  region.column = (int32_t)blockIdx.x * MARCH_COLUMNS;
  region.origin = top;
  region.rows = min(length, p.height - top);
  return region;
}

/* Does what border_index does, with the usual case first: one reflection, no division. */
__device__ __forceinline__ int32_t fold_index(int32_t i, int32_t n, border_mode mode) {
  if ((uint32_t)i < (uint32_t)n) return i;
  const int32_t once = i < 0 ? -i : 2 * (n - 1) - i;
  if (mode == BORDER_REFLECT_101 && (uint32_t)once < (uint32_t)n) return once;
  return border_index(i, n, mode);
}

/* Columns of a strip that no complete vector covers, because the picture ends there: `left` of them at its left side
 * (from x = -1 downwards), and `right` from `right_first` on. */
struct strip_edges {
  int32_t left, right, right_first;
};

template <int R>
__device__ __forceinline__ strip_edges strip_edges_of(const march_params<R> &p, const march_region &region) {
  strip_edges e;
  e.right_first = p.width & ~3;
  e.left = region.column == 0 ? R : 0;
  e.right = max(min(region.column + MARCH_COLUMNS, p.width) + R - e.right_first, 0);
  return e;
}

/* Stages the samples outside whole vectors for a step from input row y on. Each lane takes a row, each warp a
 * column. */
template <int R>
__device__ __forceinline__ void stage_plane_edges(const march_params<R> &p, const march_region &region, int32_t y,
                                                  int32_t needed, float *s_rows) {
  using shape = march_shape<R>;
  const strip_edges edges = strip_edges_of(p, region);
  const int32_t row = (int32_t)threadIdx.x & 31;
  if (edges.left + edges.right == 0 || row >= needed) return;
  const float *from = p.in + (size_t)fold_index(y + row, p.height, p.border) * p.stride;
  for (int32_t e = (int32_t)threadIdx.x >> 5; e < edges.left + edges.right; e += shape::threads / 32) {
    const int32_t x = e < edges.left ? -1 - e : edges.right_first + e - edges.left;
    copy_4_async(s_rows + row * shape::staged_stride + shape::halo + x - region.column,
                 from + fold_index(x, p.width, p.border));
  }
}

/* A thread's part of the staging of a step, in two jobs: the strip's columns (body), and the halo at its sides. In
   each job a thread stays in one column of vectors and takes every body_rows-th or halo_rows-th row. So one
   addition leads from each copy to the next. */
template <int R> struct stage_shape {
  using shape = march_shape<R>;
  static constexpr int body_vectors = MARCH_COLUMNS / 4, body_rows = MARCH_BODY_ROWS;
  static constexpr int halo_vectors = 2 * shape::halo / 4, halo_slots = halo_vectors <= 4 ? 4 : 8;
  static constexpr int halo_rows = shape::threads / halo_slots;
  static_assert(MARCH_ROWS % body_rows == 0 && MARCH_ROWS % halo_rows == 0 && halo_vectors <= halo_slots,
                "whole rounds");
};

/* One of a thread's two staging jobs. */
struct stage_job {
  const float *from;   /* the first round's vector, in the next step to stage */
  double_buffer s_to;  /* where that vector goes in the stage of its step */
  int32_t column, row; /* column in the strip; the first round's row within a step */
  bool inside;         /* the picture has whole vectors in this column */
};

template <int R>
__device__ __forceinline__ stage_job stage_job_of(const march_params<R> &p, const march_region &region, int32_t column,
                                                  int32_t row, bool wanted, const float *s_all) {
  using shape = march_shape<R>;
  const float *s_to = s_all + row * shape::staged_stride + shape::halo + column;
  const int32_t x = region.column + column;
  stage_job job;
  job.column = column;
  job.row = row;
  job.inside = wanted && x >= 0 && x + 4 <= p.width;
  job.from = p.in + (ptrdiff_t)(region.origin - R + row) * (ptrdiff_t)p.stride + x;
  job.s_to = double_buffer_of(s_to, s_to + shape::staged_floats);
  return job;
}

/* The state of staging, carried from step to step. */
template <int R> struct plane_stager {
  stage_job body, halo;
  int32_t y;         /* first input row of the next step to stage */
  int32_t needed;    /* number of rows from y on that outputs need */
  int32_t whole_end; /* 0 <= y < whole_end: all rows of the step are in the picture and needed */
  int32_t plain_end; /* the same if whole vectors cover the strip and its halo, otherwise 0 */
};

template <int R>
__device__ __forceinline__ plane_stager<R> plane_stager_of(const march_params<R> &p, const march_region &region,
                                                           const float *s_all) {
  using stage = stage_shape<R>;
  constexpr int halo = march_shape<R>::halo;
  const int32_t thread = (int32_t)threadIdx.x, vector = thread % stage::halo_slots;
  const int32_t outer = 4 * vector - halo + (vector < halo / 4 ? 0 : MARCH_COLUMNS);
  const bool covered = region.column > 0 && region.column + MARCH_COLUMNS + halo <= p.width;
  const int32_t rows_end = min(p.height, region.origin + region.rows + R);
  plane_stager<R> s;
  s.body = stage_job_of(p, region, 4 * (thread % stage::body_vectors), thread / stage::body_vectors, true, s_all);
  s.halo = stage_job_of(p, region, outer, thread / stage::halo_slots, vector < stage::halo_vectors, s_all);
  s.y = region.origin - R;
  s.needed = region.rows + 2 * R;
  s.whole_end = max(rows_end - MARCH_ROWS + 1, 0);
  s.plain_end = keep_in_register(covered ? s.whole_end : 0);
  return s;
}

/* Stages a step's rows of one job. The rows of a thread are ROWS_A_ROUND apart. */
template <int R, int ROWS_A_ROUND>
__device__ __forceinline__ void stage_job_plain(const march_params<R> &p, const stage_job &job) {
  const float *from = job.from;
#pragma unroll
  for (int n = 0; n < MARCH_ROWS / ROWS_A_ROUND; n++) {
    double_buffer_copy_16(job.s_to, n * ROWS_A_ROUND * march_shape<R>::staged_stride, from);
    from = moved(from, ROWS_A_ROUND / stage_shape<R>::body_rows * p.round_bytes);
  }
}

/* Does the same if rows are reflected or not all are needed. */
template <int R, int ROWS_A_ROUND>
__device__ __forceinline__ void stage_job_tested(const march_params<R> &p, const march_region &region,
                                                 const stage_job &job, const plane_stager<R> &s) {
  if (!job.inside) return;
#pragma unroll 1
  for (int32_t row = job.row; row < min(s.needed, MARCH_ROWS); row += ROWS_A_ROUND)
    double_buffer_copy_16(job.s_to, (row - job.row) * march_shape<R>::staged_stride,
                          p.in + (size_t)fold_index(s.y + row, p.height, p.border) * p.stride + region.column +
                              job.column);
}

/* Stages the input rows of the next step. Rows that no output needs are left unchanged. */
template <int R>
__device__ __forceinline__ void stage_plane_rows(const march_params<R> &p, const march_region &region,
                                                 plane_stager<R> *s, float *s_rows) {
  using stage = stage_shape<R>;
  if ((uint32_t)s->y < (uint32_t)s->plain_end) {
    stage_job_plain<R, stage::body_rows>(p, s->body);
    if (stage::halo_vectors == stage::halo_slots || s->halo.inside) stage_job_plain<R, stage::halo_rows>(p, s->halo);
  } else {
    if ((uint32_t)s->y < (uint32_t)s->whole_end) {
      if (s->body.inside) stage_job_plain<R, stage::body_rows>(p, s->body);
      if (s->halo.inside) stage_job_plain<R, stage::halo_rows>(p, s->halo);
    } else {
      stage_job_tested<R, stage::body_rows>(p, region, s->body, *s);
      stage_job_tested<R, stage::halo_rows>(p, region, s->halo, *s);
    }
    stage_plane_edges(p, region, s->y, s->needed, s_rows);
  }
  s->y += MARCH_ROWS;
  s->needed -= MARCH_ROWS;
  s->body.from = moved(s->body.from, p.step_bytes);
  s->halo.from = moved(s->halo.from, p.step_bytes);
  double_buffer_swap(&s->body.s_to);
  double_buffer_swap(&s->halo.s_to);
}

/* Computes COUNT outputs in the order of the contract. Sample R of the window is the centre of output 0. */
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

/* Loads two floats, aligned to 8 bytes. */
__device__ __forceinline__ void load_pair(const float *from, float v[2]) {
  const float2 f = *reinterpret_cast<const float2 *>(from);
  v[0] = f.x;
  v[1] = f.y;
}

__device__ __forceinline__ void store_pair(float *to, const float v[2]) {
  *reinterpret_cast<float2 *>(to) = make_float2(v[0], v[1]);
}

/* A thread's state in the two passes, carried from step to step. */
template <int R> struct march_state {
  using shape = march_shape<R>;
  double_buffer s_window; /* row pass: the lane's window in the stage */
  double_buffer s_row;    /* row pass: the lane's outputs in the ring */
  /* column pass: the lane's window reaches back over up to window_blocks - 1 blocks of lane_rows ring rows. The
     n-th block before the lane's block is read at s_blocks[n] - n blocks. s_blocks[n] is the lane's block; if the
     n-th block before it wraps around to the ring's end, it is the lane's block plus the ring's length. So rows
     have constant offsets. */
  double_buffer s_blocks[shape::window_blocks];
  int32_t first;     /* column pass: the lane's first output row in this step */
  int32_t some_end;  /* an output of the lane is stored if (unsigned)(first + lane_rows - 1) < some_end */
  int32_t whole_end; /* all lane_rows outputs are stored if (unsigned)first < whole_end */
  int32_t wants_halved;
  float *out, *halved, *dog; /* addresses of row `first` */
  const float *in;
};

template <int R, bool DOG>
__device__ __forceinline__ march_state<R> march_state_of(const march_params<R> &p, const march_region &region,
                                                         const float *s_all) {
  using shape = march_shape<R>;
  const float *s_ring = s_all + 2 * shape::staged_floats;
  const int32_t thread = (int32_t)threadIdx.x, lane = thread & 31, segment = (thread >> 5) * MARCH_SEGMENT;
  const int32_t band = thread / shape::row_lanes, column = thread % shape::row_lanes * shape::lane_columns;
  const int32_t x = region.column + column;
  constexpr int half = MARCH_ROWS * shape::ring_stride, block = shape::lane_rows * shape::ring_stride;
  march_state<R> w;
  const float *s_window = s_all + lane * shape::staged_stride + segment;
  w.s_window = double_buffer_of(s_window, s_window + shape::staged_floats);
  const float *s_row = s_ring + lane * shape::ring_stride + segment;
  w.s_row = double_buffer_of(s_row, s_row + half);
#pragma unroll
  for (int n = 0; n < shape::window_blocks; n++) {
    /* blocks before the ring's first block are at its end; in the second half of the ring no block wraps */
    const float *s_block = s_ring + band * block + column;
    w.s_blocks[n] = double_buffer_of(s_block + (band < n ? 2 * half : 0), s_block + half);
  }
  w.first = band * shape::lane_rows - 2 * R;
  /* a region may start at row -1 of the picture, but only for odd R, whose `first` is even but no multiple of 4 */
  w.whole_end = keep_in_register(x + shape::lane_columns <= p.width ? max(region.rows - shape::lane_rows + 1, 0) : 0);
  w.some_end = keep_in_register(x < p.width ? region.rows + shape::lane_rows - 1 : 0);
  const ptrdiff_t at = (ptrdiff_t)(region.origin + w.first) * (ptrdiff_t)p.stride + x;
  w.out = p.out + at;
  w.dog = DOG ? p.dog + at : NULL;
  w.in = DOG ? p.in + at : NULL;
  w.wants_halved = keep_in_register(p.halved != NULL);
  w.halved = p.halved + (ptrdiff_t)((region.origin + w.first) / 2) * (ptrdiff_t)p.halved_stride + x / 2;
  return w;
}

/* Row pass of one step: staged rows to ring rows. A lane filters MARCH_SEGMENT columns of one row. */
template <int R> __device__ __forceinline__ void filter_step_rows(const float *taps, const march_state<R> &w) {
  using shape = march_shape<R>;
  float v[MARCH_SEGMENT + 2 * shape::halo], a[MARCH_SEGMENT];
#pragma unroll
  for (int i = 0; i < MARCH_SEGMENT + 2 * shape::halo; i += 4) double_buffer_load<4>(w.s_window, i, v + i);
  filter_window<R, MARCH_SEGMENT>(taps, v + shape::halo - R, a);
#pragma unroll
  for (int i = 0; i < MARCH_SEGMENT; i += 4) double_buffer_store_4(w.s_row, i, a + i);
}

/* Stores a lane's outputs if not all of them are samples of the picture and of the region. */
template <int R, bool DOG>
__device__ __forceinline__ void store_tested(const march_params<R> &p, const march_region &region,
                                             const march_state<R> &w, int32_t x,
                                             const float a[march_shape<R>::lane_rows][march_shape<R>::lane_columns]) {
  using shape = march_shape<R>;
#pragma unroll
  for (int i = 0; i < shape::lane_rows; i++) {
    const int32_t row = w.first + i, y = region.origin + row;
    if (row < 0 || row >= region.rows || y < 0) continue;
    const size_t down = (size_t)i * p.stride;
#pragma unroll
    for (int c = 0; c < shape::lane_columns; c++) {
      if (x + c >= p.width) continue;
      w.out[down + c] = a[i][c];
      if (DOG) w.dog[down + c] = a[i][c] - w.in[down + c];
      if (p.halved && i % 2 == 0 && c == 0 && x / 2 < p.halved_width && y / 2 < p.halved_height)
        w.halved[(size_t)(i / 2) * p.halved_stride] = a[i][c];
    }
  }
}

/* Stores a lane's outputs if all of them are samples of the picture. Then both samples of a pair and both rows are
   too, and every second sample is one of the next octave's level 0. */
template <int R, bool DOG>
__device__ __forceinline__ void store_whole(const march_params<R> &p, const march_state<R> &w,
                                            const float a[march_shape<R>::lane_rows][march_shape<R>::lane_columns]) {
  using shape = march_shape<R>;
  constexpr int columns = shape::lane_columns;
  if (DOG) {
    float d[shape::lane_rows][columns];
    const float *in = w.in;
    float *dog = w.dog;
#pragma unroll
    for (int i = 0; i < shape::lane_rows; i++, in = moved(in, p.row_bytes)) load_pair(in, d[i]);
#pragma unroll
    for (int i = 0; i < shape::lane_rows; i++, dog = moved(dog, p.row_bytes)) {
#pragma unroll
      for (int c = 0; c < columns; c++) d[i][c] = a[i][c] - d[i][c];
      store_pair(dog, d[i]);
    }
  }
  float *out = w.out;
#pragma unroll
  for (int i = 0; i < shape::lane_rows; i++, out = moved(out, p.row_bytes)) store_pair(out, a[i]);
  if (!w.wants_halved) return;
  float *halved = w.halved;
#pragma unroll
  for (int i = 0; i < shape::lane_rows; i += 2, halved = moved(halved, p.halved_row_bytes)) *halved = a[i][0];
}

/* Returns row i of a lane's window in the ring. Rows are addressed in blocks of lane_rows, whose bounds are known
   at compile time. */
template <int R>
__device__ __forceinline__ void load_window_row(const march_state<R> &w, int i, float v[march_shape<R>::lane_columns]) {
  using shape = march_shape<R>;
  const int before = (2 * R - i + shape::lane_rows - 1) / shape::lane_rows; /* blocks before the lane's */
  double_buffer_load<shape::lane_columns>(w.s_blocks[before], (i - 2 * R) * shape::ring_stride, v);
}

/* Makes the column pass of one step: lane_rows outputs of lane_columns columns for each lane, in the order of the
   contract. It goes from the window's middle outwards, so that few rows are in registers at a time. */
template <int R, bool DOG>
__device__ __forceinline__ void filter_step_columns(const march_params<R> &p, const march_region &region,
                                                    const march_state<R> &w) {
  using shape = march_shape<R>;
  constexpr int rows = shape::lane_rows, columns = shape::lane_columns;
  if ((uint32_t)(w.first + rows - 1) >= (uint32_t)w.some_end) return;
  float v[rows + 2 * R][columns], a[rows][columns];
#pragma unroll
  for (int i = R; i < R + rows; i++) load_window_row<R>(w, i, v[i]);
#pragma unroll
  for (int i = 0; i < rows; i++)
#pragma unroll
    for (int c = 0; c < columns; c++) a[i][c] = p.taps[0] * v[i + R][c];
#pragma unroll
  for (int j = 1; j <= R; j++) {
    load_window_row<R>(w, R - j, v[R - j]);
    load_window_row<R>(w, R + rows - 1 + j, v[R + rows - 1 + j]);
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
      for (int c = 0; c < columns; c++) a[i][c] = hs_fmaf(p.taps[j], v[i + R - j][c] + v[i + R + j][c], a[i][c]);
  }
  if ((uint32_t)w.first < (uint32_t)w.whole_end)
    store_whole<R, DOG>(p, w, a);
  else
    store_tested<R, DOG>(p, region, w, region.column + (int32_t)threadIdx.x % shape::row_lanes * columns, a);
}

/* Advances the state by a step. */
template <int R, bool DOG> __device__ __forceinline__ void march_advance(const march_params<R> &p, march_state<R> *w) {
  double_buffer_swap(&w->s_window);
  double_buffer_swap(&w->s_row);
#pragma unroll
  for (int n = 0; n < march_shape<R>::window_blocks; n++) double_buffer_swap(&w->s_blocks[n]);
  w->first += MARCH_ROWS;
  w->out = moved(w->out, p.step_bytes);
  w->halved = moved(w->halved, p.halved_step_bytes);
  if (DOG) {
    w->dog = moved(w->dog, p.step_bytes);
    w->in = moved(w->in, p.step_bytes);
  }
}

/* Runs all steps of a block. Software pipelining: the copies of step n + 1 run while step n is filtered. */
template <int R, bool DOG> __device__ __forceinline__ void march_plane(const march_params<R> &p, float *s_all) {
  using shape = march_shape<R>;
  const march_region region = march_region_of(p);
  plane_stager<R> stager = plane_stager_of(p, region, s_all);
  march_state<R> state = march_state_of<R, DOG>(p, region, s_all);
  stage_plane_rows(p, region, &stager, s_all);
  copies_commit();
  for (int32_t step = 0; stager.needed + MARCH_ROWS > 0; step++) {
    copies_wait();
    __syncthreads(); /* this step's rows are staged; the previous step has finished with the ring and the other stage */
    stage_plane_rows(p, region, &stager, s_all + (~step & 1) * shape::staged_floats);
    copies_commit();
    filter_step_rows<R>(p.taps, state);
    __syncthreads(); /* the ring's new rows are complete */
    filter_step_columns<R, DOG>(p, region, state);
    march_advance<R, DOG>(p, &state);
  }
}

/* Returns the parameters for the block's picture in a group. */
template <int R>
static __device__ __forceinline__ march_params<R> march_params_of_block(const march_params<R> &p, size_t stride_bytes) {
  march_params<R> q = p;
  const size_t bytes = blockIdx.z * stride_bytes;
  /* group_shifted uses integers, after which the compiler no longer knows that this is global memory */
  q.in = moved(p.in, bytes);
  q.out = moved(p.out, bytes);
  q.halved = p.halved ? moved(p.halved, bytes) : p.halved;
  return q;
}

#endif
