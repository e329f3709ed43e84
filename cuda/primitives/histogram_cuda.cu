/*
 * Histogram and equalisation of bytes. Lane l of every warp of a block counts in histogram l, which is in bank l of
 * shared memory. So no two lanes of a warp ever conflict in a bank, whatever the picture. For small pictures,
 * clearing and joining 32 histograms would take longer than counting, so a block has one histogram.
 */
#include "cuda/primitives/primitives_kernels.h"

#include "cuda/prim/histograms.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/prim/shared_copy.cuh"
#include "cuda/primitives/bytes.cuh"
#include "cuda/runtime/launch.h"

static_assert((uint64_t)TALLY_BLOCKS_MAX * HISTOGRAM_SMALL_VECTORS * BYTE_ROWS_VECTOR < (uint64_t)1 << TALLY_SUM_BITS,
              "a tally holds the bytes of every small picture");

/* Counts the values of a word. copy: of the lane's histogram, from shared_hist_copy. */
template <int COPIES> static __device__ __forceinline__ void count_word(uint32_t copy, uint32_t word) {
#pragma unroll
  for (uint32_t k = 0; k < 4; k++) shared_hist_count<COPIES>(copy, __byte_perm(word, 0, 0x4440 + k));
}

/* Counts the values whose byte of the mask is not 0. */
template <int COPIES>
static __device__ __forceinline__ void count_word_masked(uint32_t copy, uint32_t word, uint32_t mask) {
  for (uint32_t shift = 0; shift < 32; shift += 8)
    if (mask >> shift & 0xffu) shared_hist_count<COPIES>(copy, word >> shift & 0xffu);
}

template <int COPIES, bool MASKED>
static __device__ __forceinline__ void count_vector(uint32_t copy, const uint4 &v, const uint4 &m) {
  if (MASKED) {
    count_word_masked<COPIES>(copy, v.x, m.x);
    count_word_masked<COPIES>(copy, v.y, m.y);
    count_word_masked<COPIES>(copy, v.z, m.z);
    count_word_masked<COPIES>(copy, v.w, m.w);
    return;
  }
  count_word<COPIES>(copy, v.x);
  count_word<COPIES>(copy, v.y);
  count_word<COPIES>(copy, v.z);
  count_word<COPIES>(copy, v.w);
}

/* Counts the bytes of a unit one by one: at the ends of rows, and if a mask is aligned differently. */
template <int COPIES>
static __device__ __forceinline__ void count_some(uint32_t copy, const byte_unit &u, const uint8_t *mask) {
  for (int32_t b = u.first; b < u.end; b++)
    if (!mask || mask[b] != 0) shared_hist_count<COPIES>(copy, u.address[b]);
}

static __device__ __forceinline__ bool aligned(const uint8_t *p) {
  return ((uintptr_t)p & (BYTE_ROWS_VECTOR - 1)) == 0;
}

/* Returns this thread's first unit. Warps are distributed over the blocks, so that small pictures occupy all
 * multiprocessors. */
static __device__ __forceinline__ uint32_t first_unit() {
  return ((threadIdx.x / WARP_LANES) * gridDim.x + blockIdx.x) * WARP_LANES + threadIdx.x % WARP_LANES;
}

/* Clears the bins. All threads of a block of THREADS must call; afterwards the bins are clear for all of them. */
template <int THREADS, int COPIES> static __device__ __forceinline__ void clear_bins(unsigned char *s_bins) {
  shared_hist_clear<HISTOGRAM_BINS * COPIES, THREADS>(s_bins, threadIdx.x);
  __syncthreads();
}

/* Adds a block's count of a bin to the tally of all blocks. The block that adds last writes the sum. So neither a
 * ticket nor a second read of the sums is needed. */
template <typename W, int SUM_BITS>
static __device__ __forceinline__ void add_to_tally(W *tally, uint32_t count, uint64_t *sum) {
  const W before = atomicAdd(tally, ((W)1 << SUM_BITS) + count);
  if (before >> SUM_BITS != gridDim.x - 1u) return;
  *sum = (before & (((W)1 << SUM_BITS) - 1u)) + count;
  *tally = 0;
}

/*
 * Does      counts how often each value of a picture occurs: histogram_ref.
 * Launch    one-dimensional, at most one block of THREADS (256 or more) per multiprocessor, looping over vectors of
 *           16 bytes, VECTORS at a time. SHIFT: BIN_SHIFT, one histogram per block, or LANE_SHIFT, one per lane.
 * Shared    256 bins << SHIFT: 1 KiB or 32 KiB.
 * Reads     the view, the mask: any address, width, stride. Writes counts [256]; scratch is zero before and after.
 * Barriers  after clearing, while the first vectors are in flight (for large pictures before the loop, which keeps the
 *           loop shorter); before the block's histograms are read.
 * Limits    one histogram per block: at most 255 blocks, less than 2^24 bytes. One per lane: less than 2^16 blocks,
 *           2^48 bytes, 2^32 bytes per block.
 * Order     repeatable, integer sums.
 * Cost      3 instructions per byte, one of them an atomic addition, without conflicts if SHIFT is LANE_SHIFT. For
 *           each block and bin one addition to global memory; the 32 additions of a warp are far from the additions
 *           of other warps. Large pictures are bound by memory, others by the latency of the vectors and of additions
 *           to the same words.
 */
template <int THREADS, int VECTORS, int SHIFT, bool MASKED, bool FLAT>
static __device__ __forceinline__ void histogram_of_block(const byte_rows &in, const uint8_t *mask, size_t mask_stride,
                                                          histogram_scratch *scratch, uint64_t *counts) {
  constexpr int COPIES = 1 << (SHIFT - BIN_SHIFT);
  __shared__ __align__(16) unsigned char s_bins[HISTOGRAM_BINS << SHIFT];
  const uint32_t t = threadIdx.x, step = gridDim.x * THREADS, first = first_unit();
  const uint32_t copy = (uint32_t)opaque_int((int32_t)shared_hist_copy<COPIES>(s_bins, t % WARP_LANES));
  bool cleared = VECTORS == LARGE_VECTORS;
  if (cleared) clear_bins<THREADS, COPIES>(s_bins);
  int64_t row = 0;
  do {
    const uint32_t units = byte_rows_group_units(in, row);
    uint32_t n = first;
    do {
      uint4 v[VECTORS], m[VECTORS];
      bool whole[VECTORS];
#pragma unroll
      for (uint32_t k = 0; k < VECTORS; k++) {
        const byte_unit u = byte_rows_unit<FLAT>(in, row, min(n + k * step, units - 1u));
        const uint8_t *over = MASKED ? byte_unit_address(u, mask, mask_stride) : nullptr;
        whole[k] = n + k * step < units && u.whole && aligned(over);
        if (whole[k]) v[k] = byte_unit_load(u);
        if (MASKED && whole[k]) m[k] = __ldg((const uint4 *)over);
      }
      if (!cleared) clear_bins<THREADS, COPIES>(s_bins);
      cleared = true;
#pragma unroll
      for (uint32_t k = 0; k < VECTORS; k++) {
        if (whole[k]) {
          count_vector<COPIES, MASKED>(copy, v[k], m[k]);
        } else if (n + k * step < units) {
          const byte_unit u = byte_rows_unit<FLAT>(in, row, n + k * step);
          const uint8_t *over = MASKED ? byte_unit_address(u, mask, mask_stride) : nullptr;
          count_some<COPIES>(copy, u, over);
        }
      }
      n += VECTORS * step;
    } while (n < units);
    row += in.group_rows;
  } while (!FLAT && row < in.rows);
  __syncthreads();
  if (t >= HISTOGRAM_BINS) return;
  const uint32_t count = shared_hist_fold<COPIES>(s_bins, t);
  uint64_t *tallies = scratch->tallies[t / WARP_LANES];
  if (gridDim.x == 1)
    counts[t] = count;
  else if (SHIFT == BIN_SHIFT)
    add_to_tally<unsigned, TALLY_SUM_BITS>((unsigned *)tallies + t % WARP_LANES, count, &counts[t]);
  else
    add_to_tally<unsigned long long, LONG_TALLY_SUM_BITS>((unsigned long long *)tallies + t % WARP_LANES, count,
                                                          &counts[t]);
}

/* Writes the level of each value to s_levels; thread t writes the level of value t. All threads of a block of 256 must
   call. s_sums, s_first: 32 words each, as in reductions.cuh. */
static __device__ __forceinline__ void make_levels(const uint64_t *counts, uint8_t *s_levels, uint64_t *s_sums,
                                                   int32_t *s_first) {
  const int32_t t = (int32_t)threadIdx.x;
  const uint64_t count = counts[t];
  const int32_t first = block_reduce_min(count != 0 ? t : (int32_t)HISTOGRAM_BINS, s_first);
  const uint64_t own = t > first ? count : 0; /* count of the values after the first one */
  uint64_t rest;
  const uint64_t sum = own + block_scan_exclusive(own, s_sums, &rest);
  uint8_t level = (uint8_t)t;
  if (rest != 0) level = t <= first ? (uint8_t)0 : prim_equalize_level(sum, prim_equalize_scale(rest));
  s_levels[t] = level;
  __syncthreads();
}

/* Looks up four levels in this lane's table. lane: first byte of its bank. */
static __device__ __forceinline__ uint32_t look_up(const uint8_t *s_table, uint32_t word, uint32_t lane) {
  const uint32_t mask = 0x3fu << LANE_SHIFT;
  const uint32_t a = s_table[(word << 5 & mask) | lane | (word & 3u)];
  const uint32_t b = s_table[(word >> 3 & mask) | lane | (word >> 8 & 3u)];
  const uint32_t c = s_table[(word >> 11 & mask) | lane | (word >> 16 & 3u)];
  const uint32_t d = s_table[(word >> 19 & mask) | lane | (word >> 24 & 3u)];
  return a | b << 8 | c << 16 | d << 24;
}

/*
 * Does      the equalised picture from the histogram: map_ref.
 * Launch    one-dimensional, at most 4 blocks of 256 threads per multiprocessor, looping over vectors of 16 bytes,
 *           2 at a time; each block makes the levels anew.
 * Shared    8.6 KiB: the levels once in every bank.
 * Reads     counts, the view: any address, width, stride. Writes out, in vectors if it is as aligned as the view,
 *           which may be the same memory: one thread reads and writes a byte.
 * Barriers  while the levels are made.
 * Limits    counts add up to the view's elements. Order: repeatable.
 * Cost      2 bytes of memory and 6 instructions per byte, one of them a load from shared memory without conflicts.
 */
template <bool FLAT>
static __device__ __forceinline__ void equalize_by_lanes(const byte_rows &in, const uint64_t *counts, uint8_t *out,
                                                         size_t out_stride) {
  __shared__ uint32_t s_table[LEVEL_WORDS * WARP_LANES];
  __shared__ uint32_t s_levels[LEVEL_WORDS];
  __shared__ uint64_t s_sums[WARP_LANES];
  __shared__ int32_t s_first[WARP_LANES];
  make_levels(counts, (uint8_t *)s_levels, s_sums, s_first);
  for (uint32_t i = threadIdx.x; i < LEVEL_WORDS * WARP_LANES; i += LEVEL_THREADS)
    s_table[i] = s_levels[i / WARP_LANES];
  __syncthreads();
  const uint8_t *table = (const uint8_t *)s_table;
  const uint32_t lane = (uint32_t)opaque_int((int32_t)(threadIdx.x % WARP_LANES * 4)), step = gridDim.x * LEVEL_THREADS;
  for (int64_t row = 0; row < in.rows; row += in.group_rows) {
    const uint32_t units = byte_rows_group_units(in, row);
    for (uint32_t n = blockIdx.x * LEVEL_THREADS + threadIdx.x; n < units; n += LEVEL_VECTORS * step) {
      uint4 v[LEVEL_VECTORS];
      uint8_t *to[LEVEL_VECTORS];
      bool whole[LEVEL_VECTORS];
#pragma unroll
      for (uint32_t k = 0; k < LEVEL_VECTORS; k++) {
        const byte_unit u = byte_rows_unit<FLAT>(in, row, min(n + k * step, units - 1u));
        to[k] = (uint8_t *)(uintptr_t)byte_unit_address(u, out, out_stride);
        whole[k] = n + k * step < units && u.whole && aligned(to[k]);
        if (whole[k]) v[k] = *(const uint4 *)u.address;
      }
#pragma unroll
      for (uint32_t k = 0; k < LEVEL_VECTORS; k++) {
        if (whole[k]) {
          *(uint4 *)to[k] = make_uint4(look_up(table, v[k].x, lane), look_up(table, v[k].y, lane),
                                       look_up(table, v[k].z, lane), look_up(table, v[k].w, lane));
        } else if (n + k * step < units) {
          const byte_unit u = byte_rows_unit<FLAT>(in, row, n + k * step);
          for (int32_t b = u.first; b < u.end; b++) to[k][b] = (uint8_t)look_up(table, u.address[b], lane);
        }
      }
    }
  }
}

#define HISTOGRAM_KERNEL(name, THREADS, VECTORS, SHIFT, MASKED, FLAT)                                                  \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      name(const __grid_constant__ byte_rows in, const uint8_t *mask, size_t mask_stride, histogram_scratch *scratch,  \
           uint64_t *counts) {                                                                                         \
    histogram_of_block<THREADS, VECTORS, SHIFT, MASKED, FLAT>(in, mask, mask_stride, scratch, counts);                 \
  }
#define HISTOGRAM_SIZE(size, THREADS, VECTORS, SHIFT)                                                                  \
  HISTOGRAM_KERNEL(histogram_##size##_rows_kernel, THREADS, VECTORS, SHIFT, false, false)                              \
  HISTOGRAM_KERNEL(histogram_##size##_flat_kernel, THREADS, VECTORS, SHIFT, false, true)                               \
  HISTOGRAM_KERNEL(histogram_##size##_masked_rows_kernel, THREADS, VECTORS, SHIFT, true, false)                        \
  HISTOGRAM_KERNEL(histogram_##size##_masked_flat_kernel, THREADS, VECTORS, SHIFT, true, true)
HISTOGRAM_SIZE(small, SMALL_THREADS, SMALL_VECTORS, BIN_SHIFT)
HISTOGRAM_SIZE(medium, LANE_THREADS, MEDIUM_VECTORS, LANE_SHIFT)
HISTOGRAM_SIZE(large, LANE_THREADS, LARGE_VECTORS, LANE_SHIFT)

#define EQUALIZE_KERNEL(name, FLAT)                                                                                    \
  extern "C" __global__ void __launch_bounds__(LEVEL_THREADS, LEVEL_BLOCKS_PER_SM)                                     \
      name(const __grid_constant__ byte_rows in, const uint64_t *counts, uint8_t *out, size_t out_stride) {            \
    equalize_by_lanes<FLAT>(in, counts, out, out_stride);                                                              \
  }
EQUALIZE_KERNEL(equalize_rows_kernel, false)
EQUALIZE_KERNEL(equalize_flat_kernel, true)

HISTOGRAM_KERNELS(LAUNCH_CHECK)
