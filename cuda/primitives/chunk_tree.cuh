/*
 * Chunks of at most PRIM_CHUNK elements, one chunk per warp: the fixed tree of stages/primitives.h, extremes and
 * counts.
 *
 * Lane l takes the elements l, l + 32, ... of a chunk, as the contract's lanes do; all loads are issued before the
 * first value is used. All 32 lanes of a converged warp must call.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_CHUNK_TREE_CUH
#define HARTSIFT_CUDA_PRIMITIVES_CHUNK_TREE_CUH

#include "cuda/prim/reductions.cuh"
#include "cuda/primitives/primitives_kernels.h"

static __device__ __forceinline__ lane_range lane_range_none(void) {
  lane_range r;
  r.low = INFINITY;
  r.high = -INFINITY;
  r.above = 0;
  return r;
}

/* Adds to the extremes; NaN changes nothing. */
static __device__ __forceinline__ void lane_range_add(lane_range &r, double low, double high) {
  if (low < r.low) r.low = low;
  if (high > r.high) r.high = high;
}

static __device__ __forceinline__ void lane_range_join(lane_range &r, const lane_range &other) {
  lane_range_add(r, other.low, other.high);
  r.above += other.above;
}

static __device__ __forceinline__ void warp_reduce_range(lane_range &r) {
  for (int d = WARP_LANES / 2; d > 0; d >>= 1)
    lane_range_add(r, __shfl_xor_sync(WARP_ALL, r.low, d), __shfl_xor_sync(WARP_ALL, r.high, d));
}

/* Adds the lanes' sums in the contract's order. Valid on every lane, because a + b is b + a. */
static __device__ __forceinline__ double warp_tree_sum(double lane) {
  for (int d = PRIM_LANES / 2; d > 0; d >>= 1) lane += __shfl_xor_sync(WARP_ALL, lane, d);
  return lane;
}

/* Number of elements that a lane loads together: at most 128 bytes of registers, half of that if rows have padding. */
template <typename E, bool FLAT> struct chunk_shape { static constexpr int batch = FLAT && sizeof(E) < 8 ? 32 : 16; };

/* Reads the next elements of one lane in a chunk, up to `batch` of them. FLAT: rows have no padding. FRESH: the
 * elements were written by this launch. */
template <typename E, bool FLAT, bool FRESH> struct chunk_reader {
  const uint8_t *at;
  size_t row_step, wrap_step; /* bytes to the element 32 further on; bytes to the start of the next row */
  int32_t left, column_step;  /* left: elements to the row's end, at most CHUNK_WIDE; a step of 32 elements
                               * subtracts column_step */
  int32_t width;              /* at most CHUNK_WIDE, which no chunk exceeds */
};
enum { CHUNK_WIDE = 1 << 20 };

template <typename E, bool FLAT, bool FRESH>
static __device__ __forceinline__ chunk_reader<E, FLAT, FRESH> chunk_open(const element_rows &rows, uint64_t first) {
  chunk_reader<E, FLAT, FRESH> r;
  const uint64_t at = first + threadIdx.x % WARP_LANES;
  if (FLAT) {
    r.at = rows.data + at * sizeof(E);
    return r;
  }
  const uint64_t row = (at | rows.width) >> 32 ? at / rows.width : (uint32_t)at / (uint32_t)rows.width;
  const uint64_t column = at - row * rows.width;
  r.width = (int32_t)min(rows.width, (uint64_t)CHUNK_WIDE);
  r.left = (int32_t)min(rows.width - column, (uint64_t)CHUNK_WIDE);
  r.at = rows.data + row * rows.stride_bytes + column * sizeof(E);
  const int32_t rows_a_step = PRIM_LANES / r.width;
  r.column_step = PRIM_LANES - rows_a_step * r.width;
  r.row_step = (size_t)rows_a_step * rows.stride_bytes + (size_t)r.column_step * sizeof(E);
  r.wrap_step = rows.stride_bytes - rows.width * sizeof(E);
  return r;
}

/* Reads the next batch. Its first `left` values exist; the others are 0. */
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
    r.left -= r.column_step;
    if (r.left <= 0) {
      r.left += r.width;
      r.at += r.wrap_step;
    }
  }
}

/* Returns the number of this lane's elements in a chunk of `count`. */
static __device__ __forceinline__ int32_t chunk_lane_count(uint64_t count) {
  const int32_t n = count < PRIM_CHUNK ? (int32_t)count : (int32_t)PRIM_CHUNK;
  return (n - (int32_t)(threadIdx.x % WARP_LANES) + PRIM_LANES - 1) / PRIM_LANES;
}

/* Type of one lane's sum; for u16 an integer, which holds 32 elements. */
template <typename E> struct lane_sum { typedef double type; };
template <> struct lane_sum<uint16_t> { typedef uint32_t type; };

/* Returns the sum of the chunk that starts at element `first`, on every lane. */
template <typename E, bool FLAT, bool FRESH>
static __device__ __forceinline__ double chunk_sum(const element_rows &rows, uint64_t first) {
  chunk_reader<E, FLAT, FRESH> reader = chunk_open<E, FLAT, FRESH>(rows, first);
  int32_t left = chunk_lane_count(rows.count - first);
  typename lane_sum<E>::type lane = 0;
  E value[chunk_shape<E, FLAT>::batch];
#pragma unroll
  for (int b = 0; b < PRIM_CHUNK / PRIM_LANES / chunk_shape<E, FLAT>::batch; b++) {
    chunk_next(reader, left, value);
    left -= chunk_shape<E, FLAT>::batch;
#pragma unroll
    for (int k = 0; k < chunk_shape<E, FLAT>::batch; k++) lane += value[k]; /* a missing value is +0 */
  }
  return warp_tree_sum((double)lane);
}

/* Extremes and count of one lane's elements of one chunk, in the type of the elements. low above high: no element
 * yet. */
template <typename E> struct element_range {
  E low, high;
  uint32_t above;
};

static __device__ __forceinline__ element_range<float> element_range_none(float) {
  const element_range<float> r = {INFINITY, -INFINITY, 0};
  return r;
}
static __device__ __forceinline__ element_range<double> element_range_none(double) {
  const element_range<double> r = {INFINITY, -INFINITY, 0};
  return r;
}
static __device__ __forceinline__ element_range<uint16_t> element_range_none(uint16_t) {
  const element_range<uint16_t> r = {0xffffu, 0, 0}; /* value of an empty lane, which the caller detects */
  return r;
}

/* NaN changes nothing: fminf and fmaxf return the other operand, and comparisons are false. Missing values change
 * nothing either. There are no branches, because they would separate the loads of a batch. */
static __device__ __forceinline__ void element_range_add(element_range<float> &r, float v, bool there) {
  r.low = fminf(r.low, there ? v : INFINITY);
  r.high = fmaxf(r.high, there ? v : -INFINITY);
}
static __device__ __forceinline__ void element_range_add(element_range<double> &r, double v, bool there) {
  r.low = there && v < r.low ? v : r.low;
  r.high = there && v > r.high ? v : r.high;
}
static __device__ __forceinline__ void element_range_add(element_range<uint16_t> &r, uint16_t v, bool there) {
  r.low = there ? min(r.low, v) : r.low;
  r.high = there ? max(r.high, v) : r.high;
}

/* A threshold in the type for comparison with elements: the same elements exceed it. */
template <typename E> struct element_threshold;
template <> struct element_threshold<uint16_t> { typedef int32_t type; };
template <> struct element_threshold<float> { typedef float type; };
template <> struct element_threshold<double> { typedef double type; };
static __device__ __forceinline__ int32_t threshold_for(uint16_t, double t) { return prim_threshold_integer(t); }
static __device__ __forceinline__ float threshold_for(float, double t) { return prim_threshold_float(t); }
static __device__ __forceinline__ double threshold_for(double, double t) { return t; }

/* Returns the sum of a chunk on every lane. Adds extremes, and the count above a threshold, of this lane's elements
   to *range. Without SUM the sum is 0; without ABOVE nothing is counted. */
template <typename E, bool FLAT, bool SUM, bool ABOVE>
static __device__ __forceinline__ double chunk_figures(const element_rows &rows, uint64_t first,
                                                       typename element_threshold<E>::type threshold,
                                                       lane_range &range) {
  chunk_reader<E, FLAT, false> reader = chunk_open<E, FLAT, false>(rows, first);
  const int32_t count = chunk_lane_count(rows.count - first);
  int32_t left = count;
  typename lane_sum<E>::type lane = 0;
  element_range<E> found = element_range_none((E)0);
  E value[chunk_shape<E, FLAT>::batch];
#pragma unroll
  for (int b = 0; b < PRIM_CHUNK / PRIM_LANES / chunk_shape<E, FLAT>::batch; b++) {
    chunk_next(reader, left, value);
#pragma unroll
    for (int k = 0; k < chunk_shape<E, FLAT>::batch; k++) {
      if (SUM) lane += value[k]; /* a missing value is +0 */
      element_range_add(found, value[k], k < left);
      if (ABOVE) found.above += k < left && value[k] > threshold ? 1u : 0u;
    }
    left -= chunk_shape<E, FLAT>::batch;
  }
  if (count > 0) lane_range_add(range, (double)found.low, (double)found.high);
  range.above += found.above;
  return SUM ? warp_tree_sum((double)lane) : 0.0;
}

#endif
