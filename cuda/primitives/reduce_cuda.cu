/* Reductions. Integers are read as aligned vectors in any order, because their sums are exact. Other types are read
 * chunk by chunk, one warp per chunk, as the fixed tree requires. The last block combines the partial results. */
#include "cuda/primitives/primitives_kernels.h"

#include <stdint.h>

#include "cuda/prim/reductions.cuh"
#include "cuda/primitives/bytes.cuh"
#include "cuda/primitives/chunk_tree.cuh"
#include "cuda/runtime/launch.h"

/* Finds the last block of a launch, which may combine the results of all.
 *
 * `ticket`: a word of global memory that is 0 before the launch, and again after it. All threads of a block call this
 * after they have written their results; the threads of the last block then see the results of all blocks, if they read
 * past the L1 (__ldcg). Two barriers. `s_last`: a word of shared memory. */

static __device__ __forceinline__ bool last_block(uint32_t *ticket, uint32_t *s_last) {
  __syncthreads(); /* the block has written; its barrier orders the writes before the release below */
  if (threadIdx.x == 0) {
    uint32_t before; /* wraps around to 0 */
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(ticket), "r"(gridDim.x - 1u)
                 : "memory");
    *s_last = before == gridDim.x - 1u ? 1u : 0u;
  }
  __syncthreads();
  return *s_last != 0;
}

/* Vectors of 16 bytes that a thread has in flight. */
enum { REDUCE_VECTORS = 4 };

/* Avoids the division, which takes time, for most calls. */
static __device__ __forceinline__ double divided(double sum, double divisor) {
  return divisor == 1.0 ? sum : sum / divisor;
}

static __device__ __forceinline__ void join_integers(integer_partial &p, const integer_partial &other) {
  p.sum += other.sum;
  p.min = min(p.min, other.min);
  p.max = max(p.max, other.max);
}

/* Reduces over a block. All threads must call; valid on thread 0. Like block_reduce_on_first. */
static __device__ __forceinline__ void block_reduce_integers(integer_partial &p, integer_partial *s_partial) {
  p.sum = warp_reduce_sum_u64(p.sum);
  p.min = (uint32_t)warp_reduce_min((int32_t)p.min);
  p.max = (uint32_t)warp_reduce_max((int32_t)p.max);
  block_reduce_on_first<REDUCE_WARPS, integer_partial, join_integers>(p, s_partial);
}

/* add_word returns `sum` plus the elements of a word, of one or two bytes each; add_word_range updates the extremes. */
template <int BYTES> static __device__ __forceinline__ uint32_t add_word(uint32_t word, uint32_t sum) {
  return BYTES == 1 ? __dp4a(word, BYTE_STATS_ONES, sum) : __dp2a_lo(word, BYTE_STATS_ONES, sum);
}
template <int BYTES> static __device__ __forceinline__ void add_word_range(uint32_t word, byte_stats &s) {
  if (BYTES == 1) {
    byte_stats_add_range(s, word);
  } else {
    s.min = __vminu2(s.min, word);
    s.max = __vmaxu2(s.max, word);
  }
}

/* Adds a vector of 16 bytes to a thread's results. */
template <int BYTES, bool RANGE>
static __device__ __forceinline__ void add_vector(const uint4 &v, byte_stats &s, uint64_t &sum) {
  if (RANGE) {
    add_word_range<BYTES>(v.x, s);
    add_word_range<BYTES>(v.y, s);
    add_word_range<BYTES>(v.z, s);
    add_word_range<BYTES>(v.w, s);
  } else {
    sum += add_word<BYTES>(v.x, add_word<BYTES>(v.y, add_word<BYTES>(v.z, add_word<BYTES>(v.w, 0u))));
  }
}

/* Adds the elements of an incomplete vector at the end of a row. */
template <int BYTES, bool RANGE>
static __device__ __forceinline__ void add_some(const byte_unit &u, byte_stats &s, uint64_t &sum) {
  for (int32_t b = u.first; b < u.end; b += BYTES) {
    const uint32_t v = BYTES == 1 ? (uint32_t)u.address[b] : (uint32_t) * (const uint16_t *)(u.address + b);
    sum += v;
    if (RANGE) add_word_range<BYTES>(v * (BYTES == 1 ? BYTE_STATS_ONES : 0x00010001u), s);
  }
}

/*
 * Does      sum, or smallest and largest, of integers of BYTES bytes: sum_*_ref, range_*_ref for u8, u16.
 * Launch    one-dimensional, at most 4 blocks of 256 threads per multiprocessor, looping over vectors of 16 bytes,
 *           4 at a time; the last block gathers the partial results.
 * Shared    0.2 KiB.
 * Reads     the view, aligned for its type: any width, stride. Writes partials [blocks], the results; ticket is 0
 *           before and after.
 * Barriers  of the block's reduction and of the ticket.
 * Limits    no empty view. Order: repeatable, integer sums and extremes.
 * Cost      16 bytes per vector; some 12 (sum) or 20 instructions, 60 more if rows have gaps.
 */
template <int BYTES, bool RANGE, bool FLAT>
static __device__ __forceinline__ void reduce_integers(const byte_rows &in, integer_partial *partials, uint32_t *ticket,
                                                       reduce_result result) {
  __shared__ integer_partial s_partial[REDUCE_WARPS];
  __shared__ uint32_t s_last;
  byte_stats s = byte_stats_none();
  integer_partial p = {0, 0xffffu, 0u};
  const uint32_t step = gridDim.x * REDUCE_THREADS;
  for (int64_t row = 0; row < in.rows; row += in.group_rows) {
    const uint32_t units = byte_rows_group_units(in, row);
    for (uint32_t n = blockIdx.x * REDUCE_THREADS + threadIdx.x; n < units; n += REDUCE_VECTORS * step) {
      uint4 v[REDUCE_VECTORS];
      bool whole[REDUCE_VECTORS];
#pragma unroll
      for (uint32_t k = 0; k < REDUCE_VECTORS; k++) {
        const byte_unit u = byte_rows_unit<FLAT>(in, row, min(n + k * step, units - 1u));
        whole[k] = n + k * step < units && u.whole;
        if (whole[k]) v[k] = byte_unit_load(u);
      }
#pragma unroll
      for (uint32_t k = 0; k < REDUCE_VECTORS; k++)
        if (whole[k])
          add_vector<BYTES, RANGE>(v[k], s, p.sum);
        else if (n + k * step < units)
          add_some<BYTES, RANGE>(byte_rows_unit<FLAT>(in, row, n + k * step), s, p.sum);
    }
  }
  p.min = BYTES == 1 ? byte_stats_min(s) : min(s.min & 0xffffu, s.min >> 16);
  p.max = BYTES == 1 ? byte_stats_max(s) : max(s.max & 0xffffu, s.max >> 16);
  block_reduce_integers(p, s_partial);
  if (threadIdx.x == 0) partials[blockIdx.x] = p;
  if (!last_block(ticket, &s_last)) return;
  p.sum = 0;
  p.min = 0xffffu;
  p.max = 0u;
  for (uint32_t b = threadIdx.x; b < gridDim.x; b += REDUCE_THREADS) {
    p.sum += __ldcg((const unsigned long long *)&partials[b].sum);
    p.min = min(p.min, __ldcg(&partials[b].min));
    p.max = max(p.max, __ldcg(&partials[b].max));
  }
  block_reduce_integers(p, s_partial);
  if (threadIdx.x != 0) return;
  if (result.first) *result.first = RANGE ? (double)p.min : divided((double)p.sum, result.divisor);
  if (result.second) *result.second = (double)p.max;
}

/*
 * Does      the sums of all chunks; also their sum if there are at most 1024: sum_chunks_f32_ref, sum_chunks_f64_ref.
 * Launch    one-dimensional, blocks of 8 warps, at most 4 per multiprocessor, one warp per chunk, looping; the last
 *           block ends the sum.
 * Shared    4 bytes.
 * Reads     the view, aligned for its type. Writes sums [chunks], the result; ticket is 0 before and after.
 * Barriers  of the ticket.
 * Limits    no empty view. Order: the contract's fixed tree.
 * Cost      per element its bytes, a conversion and an addition in double: bound by memory.
 */
template <typename E, bool FLAT>
static __device__ __forceinline__ void reduce_sum(const element_rows &in, double *sums, uint32_t *ticket,
                                                  reduce_result result) {
  __shared__ uint32_t s_last;
  const uint64_t chunks = (in.count + PRIM_CHUNK - 1) / PRIM_CHUNK;
  const uint64_t step = (uint64_t)gridDim.x * REDUCE_WARPS;
  for (uint64_t c = blockIdx.x * REDUCE_WARPS + threadIdx.x / WARP_LANES; c < chunks; c += step) {
    const double sum = chunk_sum<E, FLAT, false>(in, c * PRIM_CHUNK);
    if (threadIdx.x % WARP_LANES == 0) sums[c] = sum;
  }
  if (chunks > PRIM_CHUNK || !last_block(ticket, &s_last) || threadIdx.x >= WARP_LANES) return;
  const element_rows all = {(const uint8_t *)sums, chunks, chunks, 0};
  const double sum = chunk_sum<double, true, true>(all, 0);
  if (threadIdx.x == 0) *result.first = prim_plain_nan(divided(sum, result.divisor));
}

/* Reduces over a block. All threads must call; valid on thread 0. Like block_reduce_on_first. */
static __device__ __forceinline__ void block_reduce_range(lane_range &r, lane_range *s_range) {
  warp_reduce_range(r);
  block_reduce_on_first<REDUCE_WARPS, lane_range, lane_range_join>(r, s_range);
}

/*
 * Does      finds the smallest and largest element; NaN is ignored: range_f32_ref, range_f64_ref.
 * Launch    one-dimensional, blocks of 8 warps, at most 4 per multiprocessor, one warp per chunk, looping; the last
 *           block gathers.
 * Shared    0.2 KiB.
 * Reads     the view, aligned for its type. Writes partials [blocks][2], the results; ticket is 0 before and after.
 * Barriers  of the block's reduction and of the ticket.
 * Limits    no empty view. Order: repeatable; which zero or NaN was met makes no difference.
 * Cost      per element its bytes, a conversion and two comparisons in double: bound by memory.
 */
template <typename E, bool FLAT>
static __device__ __forceinline__ void reduce_range(const element_rows &in, double (*partials)[2], uint32_t *ticket,
                                                    reduce_result result) {
  __shared__ lane_range s_range[REDUCE_WARPS];
  __shared__ uint32_t s_last;
  lane_range r = lane_range_none();
  const uint64_t step = (uint64_t)gridDim.x * REDUCE_WARPS * PRIM_CHUNK;
  for (uint64_t first = (uint64_t)(blockIdx.x * REDUCE_WARPS + threadIdx.x / WARP_LANES) * PRIM_CHUNK; first < in.count;
       first += step)
    chunk_figures<E, FLAT, false, false>(in, first, 0, r);
  block_reduce_range(r, s_range);
  if (threadIdx.x == 0) {
    partials[blockIdx.x][0] = r.low;
    partials[blockIdx.x][1] = r.high;
  }
  if (!last_block(ticket, &s_last)) return;
  r = lane_range_none();
  for (uint32_t b = threadIdx.x; b < gridDim.x; b += REDUCE_THREADS)
    lane_range_add(r, __ldcg(&partials[b][0]), __ldcg(&partials[b][1]));
  block_reduce_range(r, s_range);
  if (threadIdx.x != 0) return;
  if (result.first) *result.first = prim_extreme(r.low, r.low, r.high);
  if (result.second) *result.second = prim_extreme(r.high, r.low, r.high);
}

#define INTEGERS_KERNEL(name, BYTES, RANGE, FLAT)                                                                      \
  extern "C" __global__ void __launch_bounds__(REDUCE_THREADS, REDUCE_BLOCKS_PER_SM)                                   \
      name(const __grid_constant__ byte_rows in, integer_partial *partials, uint32_t *ticket, reduce_result result) {  \
    reduce_integers<BYTES, RANGE, FLAT>(in, partials, ticket, result);                                                 \
  }
#define SUM_KERNEL(name, E, FLAT)                                                                                      \
  extern "C" __global__ void __launch_bounds__(REDUCE_THREADS, REDUCE_BLOCKS_PER_SM)                                   \
      name(const __grid_constant__ element_rows in, double *sums, uint32_t *ticket, reduce_result result) {            \
    reduce_sum<E, FLAT>(in, sums, ticket, result);                                                                     \
  }
#define RANGE_KERNEL(name, E, FLAT)                                                                                    \
  extern "C" __global__ void __launch_bounds__(REDUCE_THREADS, REDUCE_BLOCKS_PER_SM)                                   \
      name(const __grid_constant__ element_rows in, range_partial *partials, uint32_t *ticket, reduce_result result) { \
    reduce_range<E, FLAT>(in, partials, ticket, result);                                                               \
  }
INTEGERS_KERNEL(reduce_u8_sum_flat_kernel, 1, false, true)
INTEGERS_KERNEL(reduce_u8_sum_rows_kernel, 1, false, false)
INTEGERS_KERNEL(reduce_u8_range_flat_kernel, 1, true, true)
INTEGERS_KERNEL(reduce_u8_range_rows_kernel, 1, true, false)
INTEGERS_KERNEL(reduce_u16_sum_flat_kernel, 2, false, true)
INTEGERS_KERNEL(reduce_u16_sum_rows_kernel, 2, false, false)
INTEGERS_KERNEL(reduce_u16_range_flat_kernel, 2, true, true)
INTEGERS_KERNEL(reduce_u16_range_rows_kernel, 2, true, false)
SUM_KERNEL(reduce_f32_sum_flat_kernel, float, true)
SUM_KERNEL(reduce_f32_sum_rows_kernel, float, false)
SUM_KERNEL(reduce_f64_sum_flat_kernel, double, true)
SUM_KERNEL(reduce_f64_sum_rows_kernel, double, false)
RANGE_KERNEL(reduce_f32_range_flat_kernel, float, true)
RANGE_KERNEL(reduce_f32_range_rows_kernel, float, false)
RANGE_KERNEL(reduce_f64_range_flat_kernel, double, true)
RANGE_KERNEL(reduce_f64_range_rows_kernel, double, false)

REDUCE_KERNELS(LAUNCH_CHECK)
