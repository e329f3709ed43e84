/*
 * Sum, smallest, largest and count above a threshold of bytes, four a step, in registers.
 *
 * Extremes: bytes are compared as the upper halves of 16-bit lanes, where what lies below them cannot change which one
 * wins; a word and the same word shifted by a byte bring all four there. Count above a threshold t:
 * |b - (t + 1)| - |b - t| is +1 for a byte b <= t and -1 for b > t, so for n bytes the sums of both distances differ by
 * n - 2 (count above). A sum of four distances is one instruction. On sm_90 a word costs 6 instructions.
 */
#ifndef HARTSIFT_CUDA_PRIM_BYTE_STATS_CUH
#define HARTSIFT_CUDA_PRIM_BYTE_STATS_CUH

#include "cuda/prim/warp_reduce.cuh"

/* Four bytes of 1. */
#define BYTE_STATS_ONES 0x01010101u

/* sum: of the bytes. to_threshold, to_next: of their distances. words: added. min, max: upper bytes of two 16-bit
   lanes. */
struct byte_stats {
  uint32_t sum, to_threshold, to_next, words, min, max;
};

/* A threshold of 0..254 and the number after it, each in all four bytes. */
struct byte_threshold {
  uint32_t threshold, next;
};

static __host__ __device__ __forceinline__ byte_threshold byte_threshold_make(uint32_t threshold) {
  const byte_threshold t = {threshold * BYTE_STATS_ONES, (threshold + 1u) * BYTE_STATS_ONES};
  return t;
}

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

/* Four bytes to the extremes. */
static __device__ __forceinline__ void byte_stats_add_range(byte_stats &s, uint32_t word) {
  s.min = __vimin3_u16x2(s.min, word, word << 8);
  s.max = __vimax3_u16x2(s.max, word, word << 8);
}

/* Four bytes to all figures. kept: the same with zeros for bytes that are to count in the extremes only. The caller
   adds 1 to `words` for each; a thread may add 2^22 words. */
static __device__ __forceinline__ void byte_stats_add(byte_stats &s, uint32_t word, uint32_t kept,
                                                      const byte_threshold &t) {
  byte_stats_add_range(s, word);
  s.sum = __dp4a(kept, BYTE_STATS_ONES, s.sum);
  s.to_threshold = byte_distances(kept, t.threshold, s.to_threshold);
  s.to_next = byte_distances(kept, t.next, s.to_next);
}

/* The extremes of all bytes added; 255 and 0 when there were none. */
static __device__ __forceinline__ uint32_t byte_stats_min(const byte_stats &s) {
  return min(s.min >> 24, s.min >> 8 & 0xffu);
}
static __device__ __forceinline__ uint32_t byte_stats_max(const byte_stats &s) {
  return max(s.max >> 24, s.max >> 8 & 0xffu);
}

/* How many bytes are above the threshold: of all, the difference of the distances counts those up to it as 1 and the
   others as -1. */
static __device__ __forceinline__ uint32_t byte_stats_above(const byte_stats &s) {
  return (4u * s.words + s.to_threshold - s.to_next) / 2u;
}

#endif
