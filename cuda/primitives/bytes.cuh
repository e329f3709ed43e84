/*
 * The bytes of a strided picture, or of an array, as aligned vectors of 16, whatever their address, width and stride.
 *
 * A row is covered by the aligned vectors that hold a byte of it. The vectors at its ends also hold other bytes,
 * which must not be read. So vectors inside the row are loaded by one instruction, and the others byte by byte. Units
 * (the vectors of all rows) are numbered row by row. Each row has as many units as the worst alignment needs, so
 * some units are empty.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_BYTES_CUH
#define HARTSIFT_CUDA_PRIMITIVES_BYTES_CUH

#include "cuda/prim/reductions.cuh"
#include "cuda/primitives/primitives_kernels.h"

struct byte_unit {
  const uint8_t *address; /* aligned */
  int32_t first, end;     /* the bytes that belong to the row; first >= end: none */
  int64_t row, column;    /* position of the address; the column may be negative */
  bool whole;             /* all 16 belong to the row */
};

/* Units of the group of rows that starts at `row`. */
static __device__ __forceinline__ uint32_t byte_rows_group_units(const byte_rows &r, int64_t row) {
  return (uint32_t)min(r.rows - row, r.group_rows) * r.vectors;
}

/* FLAT: there is a single row; finding the unit then takes a tenth of the instructions. */
template <bool FLAT>
static __device__ __forceinline__ byte_unit byte_rows_unit(const byte_rows &r, int64_t group_row, uint32_t n) {
  byte_unit u;
  if (FLAT) {
    const int32_t before = (int32_t)((uintptr_t)r.data & (BYTE_ROWS_VECTOR - 1));
    u.row = 0;
    u.column = (int64_t)n * BYTE_ROWS_VECTOR - before;
    u.address = r.data + u.column;
    u.first = n == 0 ? before : 0;
    u.end = (int32_t)min(r.width - u.column, (int64_t)BYTE_ROWS_VECTOR);
    u.whole = n - r.whole_first < r.whole;
    return u;
  }
  const uint32_t line = __umulhi(n, r.multiplier) >> r.shift;
  const int64_t row = group_row + line;
  const uint8_t *start = r.data + (size_t)row * r.stride_bytes;
  const int32_t before = (int32_t)((uintptr_t)start & (BYTE_ROWS_VECTOR - 1));
  const int64_t at = (int64_t)(n - line * r.vectors) * BYTE_ROWS_VECTOR - before;
  const int64_t rest = (row == r.rows - 1 ? r.last_width : r.width) - at;
  u.address = start + at;
  u.first = at < 0 ? before : 0;
  u.end = (int32_t)min(rest, (int64_t)BYTE_ROWS_VECTOR);
  u.row = row;
  u.column = at;
  u.whole = at >= 0 && rest >= BYTE_ROWS_VECTOR;
  return u;
}

/* The address of the same vector in another picture of the same size. */
static __device__ __forceinline__ const uint8_t *byte_unit_address(const byte_unit &u, const uint8_t *data,
                                                                   size_t stride_bytes) {
  return data + (size_t)u.row * stride_bytes + u.column;
}

static __device__ __forceinline__ uint4 byte_unit_load(const byte_unit &u) {
  return __ldg(reinterpret_cast<const uint4 *>(u.address));
}

/* Sum, smallest, largest and count above a threshold of bytes, four bytes per step, in registers.
 *
 * Extremes: bytes are compared as the upper halves of 16-bit lanes, where the lower halves cannot change the order; a
 * word and the same word shifted by a byte cover all four bytes. Count above a threshold t:
 * |b - (t + 1)| - |b - t| is +1 for a byte b <= t and -1 for b > t, so for n bytes the sums of both distances differ by
 * n - 2 (count above). A sum of four distances is one instruction. On sm_90 each word costs 6 instructions. */

/* sum: of the bytes. to_threshold, to_next: sums of their distances to the threshold and to the number after it.
   words: number of words added. min, max: in the upper bytes of two 16-bit lanes. */
struct byte_stats {
  uint32_t sum, to_threshold, to_next, words, min, max;
};

static __device__ __forceinline__ byte_stats byte_stats_none(void) {
  const byte_stats s = {0u, 0u, 0u, 0u, UINT32_MAX, 0u};
  return s;
}

/* sum + |a0 - b0| + |a1 - b1| + |a2 - b2| + |a3 - b3| of the bytes of a and b. */
static __device__ __forceinline__ uint32_t byte_distances(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t d;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(sum));
  return d;
}

/* Adds four bytes to the extremes. */
static __device__ __forceinline__ void byte_stats_add_range(byte_stats &s, uint32_t word) {
  s.min = __vimin3_u16x2(s.min, word, word << 8);
  s.max = __vimax3_u16x2(s.max, word, word << 8);
}

/* Adds four bytes to all statistics. kept: the same bytes, but 0 for those that count in the extremes only. The
 * caller adds 1 to `words` for each call. A thread may add 2^22 words. */
static __device__ __forceinline__ void byte_stats_add(byte_stats &s, uint32_t word, uint32_t kept,
                                                      const byte_threshold &t) {
  byte_stats_add_range(s, word);
  s.sum = __dp4a(kept, BYTE_STATS_ONES, s.sum);
  s.to_threshold = byte_distances(kept, t.threshold, s.to_threshold);
  s.to_next = byte_distances(kept, t.next, s.to_next);
}

/* Return the extremes of all added bytes; 255 and 0 if there were none. */
static __device__ __forceinline__ uint32_t byte_stats_min(const byte_stats &s) {
  return min(s.min >> 24, s.min >> 8 & 0xffu);
}
static __device__ __forceinline__ uint32_t byte_stats_max(const byte_stats &s) {
  return max(s.max >> 24, s.max >> 8 & 0xffu);
}

/* Returns the number of bytes above the threshold. In the difference of the two sums of distances, bytes up to the
 * threshold count 1, and the others -1. */
static __device__ __forceinline__ uint32_t byte_stats_above(const byte_stats &s) {
  return (4u * s.words + s.to_threshold - s.to_next) / 2u;
}

#endif
