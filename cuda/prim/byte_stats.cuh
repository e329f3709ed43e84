/*
 * Sum, smallest, largest and count above a threshold of bytes, four a step, in four words of registers.
 *
 * Extremes: bytes are compared as the upper halves of 16-bit lanes, where what lies below them cannot change which one
 * wins; a word and the same word shifted by a byte bring all four into those places. Above: the carries out of
 * byte + (255 - threshold). On sm_90 a word costs 9 instructions.
 */
#ifndef HS_CUDA_BYTE_STATS_CUH
#define HS_CUDA_BYTE_STATS_CUH

#include "cuda/prim/warp_reduce.cuh"

/* Weights of four bytes that all count. */
#define BYTE_STATS_ALL 0x01010101u

/* sum: of the bytes. above: 128 for each byte above the threshold. least, most: upper bytes of two 16-bit lanes. */
struct byte_stats {
  uint32_t sum, above, least, most;
};

/* What a threshold of 0..255 becomes: its complement in all four bytes. */
static __host__ __device__ __forceinline__ uint32_t byte_stats_complement(uint32_t threshold) {
  return (255u - threshold) * 0x01010101u;
}

static __device__ __forceinline__ byte_stats byte_stats_none(void) {
  const byte_stats s = {0u, 0u, UINT32_MAX, 0u};
  return s;
}

/* ABOVE: whether bytes above the threshold are counted. weights: 1 in each byte that counts for sum and above, 0 in the
   others; extremes are of all four. A thread may add 2^22 words. */
template <bool ABOVE>
static __device__ __forceinline__ void byte_stats_add(byte_stats &s, uint32_t word, uint32_t weights,
                                                      uint32_t complement) {
  s.sum = __dp4a(word, weights, s.sum);
  s.least = __vimin3_u16x2(s.least, word, word << 8);
  s.most = __vimax3_u16x2(s.most, word, word << 8);
  if (!ABOVE) return;
  const uint32_t low = (word & 0x7f7f7f7fu) + (complement & 0x7f7f7f7fu);
  const uint32_t carries = ((word & complement) | (word & low) | (complement & low)) & 0x80808080u;
  s.above = __dp4a(carries, weights, s.above);
}

/* One byte. */
template <bool ABOVE>
static __device__ __forceinline__ void byte_stats_add_byte(byte_stats &s, uint32_t byte, uint32_t complement) {
  byte_stats_add<ABOVE>(s, byte * BYTE_STATS_ALL, 1u, complement);
}

/* The extremes of all bytes added; 255 and 0 when there were none. */
static __device__ __forceinline__ uint32_t byte_stats_least(const byte_stats &s) {
  return min(s.least >> 24, s.least >> 8 & 0xffu);
}
static __device__ __forceinline__ uint32_t byte_stats_most(const byte_stats &s) {
  return max(s.most >> 24, s.most >> 8 & 0xffu);
}

#endif
