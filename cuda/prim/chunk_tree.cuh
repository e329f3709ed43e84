/*
 * Chunks of at most PRIM_CHUNK elements, one a warp: the fixed tree of stages/primitives.h, extremes and counts.
 *
 * Lane l takes the elements l, l + 32, ... of a chunk, as the contract's lanes do; all of them are asked for before the
 * first is used. Called by all 32 lanes of a converged warp.
 */
#ifndef HS_CUDA_CHUNK_TREE_CUH
#define HS_CUDA_CHUNK_TREE_CUH

#include "cuda/prim/warp_reduce.cuh"
#include "stages/primitives.h"

/* Elements in rows: a whole view, or a tile of one. */
struct element_rows {
  const uint8_t *data;
  uint64_t count, width; /* elements; of a row */
  size_t stride_bytes;
};

/* Extremes and count of one lane's elements; low above high: none yet. */
struct lane_range {
  double low, high;
  uint64_t above;
};

static __device__ __forceinline__ lane_range lane_range_none(void) {
  lane_range r;
  r.low = INFINITY;
  r.high = -INFINITY;
  r.above = 0;
  return r;
}

/* NaN changes nothing. */
static __device__ __forceinline__ void lane_range_add(lane_range &r, double low, double high) {
  if (low < r.low) r.low = low;
  if (high > r.high) r.high = high;
}

static __device__ __forceinline__ void warp_reduce_range(lane_range &r) {
  for (int d = WARP_LANES / 2; d > 0; d >>= 1)
    lane_range_add(r, __shfl_xor_sync(WARP_ALL, r.low, d), __shfl_xor_sync(WARP_ALL, r.high, d));
}

/* The lanes' sums added as the contract says; valid on every lane, for a + b is b + a. */
static __device__ __forceinline__ double warp_tree_sum(double lane) {
  for (int d = PRIM_LANES / 2; d > 0; d >>= 1) lane += __shfl_xor_sync(WARP_ALL, lane, d);
  return lane;
}

/* Elements that a lane asks for at once: 128 bytes of registers at most, half of that where rows have gaps. */
template <typename E, bool FLAT> struct chunk_shape { static constexpr int batch = FLAT && sizeof(E) < 8 ? 32 : 16; };

/* This lane's elements of one chunk, a batch of them: values, and how many are there. FLAT: the rows have no gaps.
   FRESH: written by this launch. */
template <typename E, bool FLAT, bool FRESH> struct chunk_reader {
  const uint8_t *at;
  uint64_t column, width;
  size_t row_step, wrap_step; /* 32 elements on; to the next row's start */
  uint32_t column_step;
};

template <typename E, bool FLAT, bool FRESH>
static __device__ __forceinline__ chunk_reader<E, FLAT, FRESH> chunk_open(const element_rows &rows, uint64_t first) {
  chunk_reader<E, FLAT, FRESH> r;
  const uint64_t at = first + threadIdx.x % WARP_LANES;
  if (FLAT) {
    r.at = rows.data + at * sizeof(E);
    return r;
  }
  const uint64_t row = at / rows.width;
  r.width = rows.width;
  r.column = at - row * rows.width;
  r.at = rows.data + row * rows.stride_bytes + r.column * sizeof(E);
  const uint32_t rows_a_step = rows.width > PRIM_LANES ? 0u : PRIM_LANES / (uint32_t)rows.width;
  r.column_step = rows.width > PRIM_LANES ? PRIM_LANES : PRIM_LANES % (uint32_t)rows.width;
  r.row_step = rows_a_step * rows.stride_bytes + r.column_step * sizeof(E);
  r.wrap_step = rows.stride_bytes - rows.width * sizeof(E);
  return r;
}

/* The next batch; there[k] says whether value k exists: the first `left` ones do. */
template <typename E, bool FLAT, bool FRESH>
static __device__ __forceinline__ void chunk_next(chunk_reader<E, FLAT, FRESH> &r, int32_t left,
                                                  E (&value)[chunk_shape<E, FLAT>::batch]) {
#pragma unroll
  for (int k = 0; k < chunk_shape<E, FLAT>::batch; k++) {
    value[k] = 0;
    if (k < left) value[k] = FRESH ? __ldcg((const E *)r.at) : __ldg((const E *)r.at);
    if (FLAT) {
      r.at += PRIM_LANES * sizeof(E);
      continue;
    }
    r.at += r.row_step;
    r.column += r.column_step;
    if (r.column >= r.width) {
      r.column -= r.width;
      r.at += r.wrap_step;
    }
  }
}

/* Elements of this lane in a chunk of `count`. */
static __device__ __forceinline__ int32_t chunk_lane_count(uint64_t count) {
  const int32_t n = count < PRIM_CHUNK ? (int32_t)count : (int32_t)PRIM_CHUNK;
  return (n - (int32_t)(threadIdx.x % WARP_LANES) + PRIM_LANES - 1) / PRIM_LANES;
}

/* The sum of the chunk that starts at element `first`; valid on every lane. */
template <typename E, bool FLAT, bool FRESH>
static __device__ __forceinline__ double chunk_sum(const element_rows &rows, uint64_t first) {
  chunk_reader<E, FLAT, FRESH> reader = chunk_open<E, FLAT, FRESH>(rows, first);
  int32_t left = chunk_lane_count(rows.count - first);
  double lane = 0.0;
  E value[chunk_shape<E, FLAT>::batch];
#pragma unroll
  for (int b = 0; b < PRIM_CHUNK / PRIM_LANES / chunk_shape<E, FLAT>::batch; b++, left -= chunk_shape<E, FLAT>::batch) {
    chunk_next(reader, left, value);
#pragma unroll
    for (int k = 0; k < chunk_shape<E, FLAT>::batch; k++) lane += (double)value[k]; /* a missing one is +0 */
  }
  return warp_tree_sum(lane);
}

/* The same with extremes and the count above a threshold, of this lane alone, added to *range. SUM: else 0. ABOVE: else
   nothing is counted. */
template <typename E, bool FLAT, bool SUM, bool ABOVE>
static __device__ __forceinline__ double chunk_figures(const element_rows &rows, uint64_t first, double threshold,
                                                       lane_range &range) {
  chunk_reader<E, FLAT, false> reader = chunk_open<E, FLAT, false>(rows, first);
  int32_t left = chunk_lane_count(rows.count - first);
  double lane = 0.0;
  uint32_t above = 0;
  E value[chunk_shape<E, FLAT>::batch];
#pragma unroll
  for (int b = 0; b < PRIM_CHUNK / PRIM_LANES / chunk_shape<E, FLAT>::batch; b++, left -= chunk_shape<E, FLAT>::batch) {
    chunk_next(reader, left, value);
#pragma unroll
    for (int k = 0; k < chunk_shape<E, FLAT>::batch; k++) {
      if (k >= left) continue;
      const double v = (double)value[k];
      if (SUM) lane += v;
      lane_range_add(range, v, v);
      if (ABOVE && v > threshold) above++;
    }
  }
  range.above += above;
  return SUM ? warp_tree_sum(lane) : 0.0;
}

#endif
