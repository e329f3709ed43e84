/*
 * Histogram and equalisation of bytes. For large pictures every lane of a warp has a histogram of its own in its own
 * bank of shared memory, which all warps of a block share: no two lanes ever meet in a bank, whatever the picture
 * shows. For small ones clearing and joining 32 histograms would take longer than counting: a block has one.
 */
#include "cuda/histogram_cuda.h"

#include "cuda/launch_shape.h"
#include "cuda/prim/byte_rows.cuh"
#include "cuda/prim/compact.cuh"
#include "cuda/prim/last_block.cuh"
#include "cuda/prim/shared_add.cuh"

enum {
  HISTOGRAM_THREADS = 1024,    /* one block a multiprocessor: fewer sums to join */
  HISTOGRAM_VECTORS = 4,       /* of 16 bytes that a thread has under way */
  HISTOGRAM_VECTORS_MIN = 256, /* for a block */
  HISTOGRAM_LANE_SHIFT = 7,    /* a bin's 32 lanes of 4 bytes */
  TALLY_THREADS = HISTOGRAM_BINS,
  TALLY_BIN_SHIFT = 2,    /* a bin's 4 bytes, for all lanes */
  TALLY_SUM_BITS = 24,    /* of a tally; above them the blocks that have added theirs */
  TALLY_BLOCKS_MAX = 255, /* what the 8 bits above can tell */
  LEVEL_THREADS = 256,
  LEVEL_BLOCKS_PER_SM = 4,
  LEVEL_VECTORS = 2,
  LEVEL_WORDS = 64 /* of 4 levels */
};

static_assert((uint64_t)TALLY_BLOCKS_MAX * HISTOGRAM_SMALL_VECTORS * BYTE_ROWS_VECTOR < (uint64_t)1 << TALLY_SUM_BITS,
              "a tally holds the bytes of every small picture");

/* Four values to a histogram whose bins lie 1 << SHIFT bytes apart. `lane`: the first byte of this lane's bank, 0 where
   the lanes share a histogram. */
template <int SHIFT>
static __device__ __forceinline__ void count_word(unsigned char *s_bins, uint32_t word, uint32_t lane) {
  const uint32_t mask = 0xffu << SHIFT;
  atomicAdd((uint32_t *)(s_bins + ((word << SHIFT & mask) | lane)), 1u);
  atomicAdd((uint32_t *)(s_bins + ((word >> (8 - SHIFT) & mask) | lane)), 1u);
  atomicAdd((uint32_t *)(s_bins + ((word >> (16 - SHIFT) & mask) | lane)), 1u);
  atomicAdd((uint32_t *)(s_bins + ((word >> (24 - SHIFT) & mask) | lane)), 1u);
}

template <int SHIFT>
static __device__ __forceinline__ void count_byte(unsigned char *s_bins, uint32_t value, uint32_t lane) {
  atomicAdd((uint32_t *)(s_bins + (value << SHIFT | lane)), 1u);
}

/* The values whose byte of the mask is not 0. */
template <int SHIFT>
static __device__ __forceinline__ void count_word_masked(unsigned char *s_bins, uint32_t word, uint32_t mask,
                                                         uint32_t lane) {
  for (uint32_t shift = 0; shift < 32; shift += 8)
    if (mask >> shift & 0xffu) count_byte<SHIFT>(s_bins, word >> shift & 0xffu, lane);
}

template <int SHIFT, bool MASKED>
static __device__ __forceinline__ void count_vector(unsigned char *s_bins, const uint4 &v, const uint4 &m,
                                                    uint32_t lane) {
  if (MASKED) {
    count_word_masked<SHIFT>(s_bins, v.x, m.x, lane);
    count_word_masked<SHIFT>(s_bins, v.y, m.y, lane);
    count_word_masked<SHIFT>(s_bins, v.z, m.z, lane);
    count_word_masked<SHIFT>(s_bins, v.w, m.w, lane);
    return;
  }
  count_word<SHIFT>(s_bins, v.x, lane);
  count_word<SHIFT>(s_bins, v.y, lane);
  count_word<SHIFT>(s_bins, v.z, lane);
  count_word<SHIFT>(s_bins, v.w, lane);
}

/* The bytes of a unit one by one: at the ends of rows, and under a mask that is aligned differently. */
template <int SHIFT>
static __device__ __forceinline__ void count_some(unsigned char *s_bins, const byte_unit &u, const uint8_t *mask,
                                                  uint32_t lane) {
  for (int32_t b = u.first; b < u.end; b++)
    if (!mask || mask[b] != 0) count_byte<SHIFT>(s_bins, u.address[b], lane);
}

static __device__ __forceinline__ bool aligned(const uint8_t *p) {
  return ((uintptr_t)p & (BYTE_ROWS_VECTOR - 1)) == 0;
}

/* This thread's first unit. Warps take turns among the blocks, so that small pictures occupy all multiprocessors. */
static __device__ __forceinline__ uint32_t first_unit() {
  return ((threadIdx.x / WARP_LANES) * gridDim.x + blockIdx.x) * WARP_LANES + threadIdx.x % WARP_LANES;
}

/* The block's histograms joined, to memory that all blocks add to. A warp a bin, a lane a bank; then a thread a bin, so
   that the additions to global memory are neighbours. */
static __device__ __forceinline__ void join_lanes(const uint32_t *s_bins, uint32_t *s_joined, uint64_t *sums) {
  const uint32_t lane = threadIdx.x % WARP_LANES;
#pragma unroll
  for (uint32_t k = 0; k < HISTOGRAM_BINS * WARP_LANES / HISTOGRAM_THREADS; k++) {
    const uint32_t bin = threadIdx.x / WARP_LANES + k * (HISTOGRAM_THREADS / WARP_LANES);
    const uint32_t sum = warp_reduce_sum(s_bins[bin * WARP_LANES + lane]);
    if (lane == 0) s_joined[bin] = sum;
  }
  __syncthreads();
  if (threadIdx.x >= HISTOGRAM_BINS) return;
  const uint32_t sum = s_joined[threadIdx.x];
  if (sum != 0) atomicAdd((unsigned long long *)&sums[threadIdx.x], (unsigned long long)sum);
}

/*
 * Does      counts how often each value of a large picture occurs: histogram_ref.
 * Launch    one-dimensional, at most one block of 1024 threads a multiprocessor, looping over vectors of 16 bytes, 4 at
 *           a time; the last block hands the sums out.
 * Shared    32 KiB: 256 bins x 32 lanes; 1 KiB.
 * Reads     the view, the mask: any address, width, stride. Writes counts [256]; scratch is zero before and after.
 * Barriers  after clearing, before joining, of the ticket.
 * Limits    a block counts less than 2^32 bytes.
 * Order     repeatable, integer sums.
 * Cost      3 instructions a byte, one of them an atomic addition without conflicts: bound by memory.
 */
template <bool MASKED, bool FLAT>
__global__ void __launch_bounds__(HISTOGRAM_THREADS)
    histogram_lane_kernel(const __grid_constant__ byte_rows in, const uint8_t *mask, size_t mask_stride,
                          histogram_scratch *scratch, uint64_t *counts) {
  __shared__ uint4 s_vectors[HISTOGRAM_BINS * WARP_LANES / 4];
  __shared__ uint32_t s_joined[HISTOGRAM_BINS], s_last;
  unsigned char *s_bins = (unsigned char *)s_vectors;
  const uint32_t lane = (uint32_t)pinned_int((int32_t)(threadIdx.x % WARP_LANES * 4)),
                 step = gridDim.x * HISTOGRAM_THREADS;
  for (uint32_t i = threadIdx.x; i < HISTOGRAM_BINS * WARP_LANES / 4; i += HISTOGRAM_THREADS)
    s_vectors[i] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  const uint32_t first = first_unit();
  for (int64_t row = 0; row < in.rows; row += in.group_rows) {
    const uint32_t units = byte_rows_group_units(in, row);
    for (uint32_t n = first; n < units; n += HISTOGRAM_VECTORS * step) {
      uint4 v[HISTOGRAM_VECTORS], m[HISTOGRAM_VECTORS];
      bool whole[HISTOGRAM_VECTORS];
#pragma unroll
      for (uint32_t k = 0; k < HISTOGRAM_VECTORS; k++) {
        const byte_unit u = byte_rows_unit<FLAT>(in, row, min(n + k * step, units - 1u));
        const uint8_t *over = MASKED ? byte_unit_place(u, mask, mask_stride) : nullptr;
        whole[k] = n + k * step < units && u.whole && aligned(over);
        if (whole[k]) v[k] = byte_unit_load(u);
        if (MASKED && whole[k]) m[k] = __ldg((const uint4 *)over);
      }
#pragma unroll
      for (uint32_t k = 0; k < HISTOGRAM_VECTORS; k++) {
        if (whole[k]) {
          count_vector<HISTOGRAM_LANE_SHIFT, MASKED>(s_bins, v[k], m[k], lane);
        } else if (n + k * step < units) {
          const byte_unit u = byte_rows_unit<FLAT>(in, row, n + k * step);
          const uint8_t *over = MASKED ? byte_unit_place(u, mask, mask_stride) : nullptr;
          count_some<HISTOGRAM_LANE_SHIFT>(s_bins, u, over, lane);
        }
      }
    }
  }
  __syncthreads();
  join_lanes((const uint32_t *)s_bins, s_joined, scratch->sums);
  if (!last_block(&scratch->ticket, &s_last) || threadIdx.x >= HISTOGRAM_BINS) return;
  counts[threadIdx.x] = __ldcg((const unsigned long long *)&scratch->sums[threadIdx.x]);
  scratch->sums[threadIdx.x] = 0;
}

/*
 * Does      counts how often each value of a small picture occurs: histogram_ref.
 * Launch    one-dimensional, at most one block of 256 threads a multiprocessor, looping over vectors of 16 bytes. Who
 *           brings a bin's last addition hands its sum out: neither a ticket nor a second look at the sums.
 * Shared    1 KiB.
 * Reads     the view, the mask: any address, width, stride. Writes counts [256]; tallies are zero before and after.
 * Barriers  after clearing, while the first vectors are under way; before the block's histogram is read.
 * Limits    at most 255 blocks, less than 2^24 bytes, rows of one group.
 * Order     repeatable, integer sums.
 * Cost      3 instructions a byte, one of them an atomic addition; a block and bin, one to global memory, a warp's 32
 *           far from those of the others: bound by latency, of the vectors and of the additions to the same words.
 */
template <bool MASKED, bool FLAT>
__global__ void __launch_bounds__(TALLY_THREADS)
    histogram_tally_kernel(const __grid_constant__ byte_rows in, const uint8_t *mask, size_t mask_stride,
                           histogram_scratch *scratch, uint64_t *counts) {
  __shared__ uint32_t s_counts[HISTOGRAM_BINS];
  unsigned char *s_bins = (unsigned char *)s_counts;
  const uint32_t units = byte_rows_group_units(in, 0), t = threadIdx.x;
  uint32_t n = first_unit();
  bool cleared = false;
  do {
    const byte_unit u = byte_rows_unit<FLAT>(in, 0, min(n, units - 1u));
    const uint8_t *over = MASKED ? byte_unit_place(u, mask, mask_stride) : nullptr;
    const bool whole = n < units && u.whole && aligned(over);
    uint4 v = make_uint4(0, 0, 0, 0), m = v;
    if (whole) v = byte_unit_load(u);
    if (MASKED && whole) m = __ldg((const uint4 *)over);
    if (!cleared) {
      s_counts[t] = 0;
      __syncthreads();
      cleared = true;
    }
    if (whole)
      count_vector<TALLY_BIN_SHIFT, MASKED>(s_bins, v, m, 0);
    else if (n < units)
      count_some<TALLY_BIN_SHIFT>(s_bins, u, over, 0);
    n += gridDim.x * TALLY_THREADS;
  } while (n < units);
  __syncthreads();
  const uint32_t sum = s_counts[t];
  if (gridDim.x == 1) {
    counts[t] = sum;
    return;
  }
  uint32_t *tally = &scratch->tallies[t / WARP_LANES][t % WARP_LANES];
  const uint32_t before = atomicAdd(tally, (1u << TALLY_SUM_BITS) + sum);
  if (before >> TALLY_SUM_BITS != gridDim.x - 1u) return;
  counts[t] = (before & ((1u << TALLY_SUM_BITS) - 1u)) + sum;
  *tally = 0;
}

/* The level of each value to s_levels, thread t the value t. n: elements. All threads of a block of 256. */
static __device__ __forceinline__ void make_levels(const uint64_t *counts, uint64_t n, uint8_t *s_levels,
                                                   uint64_t *s_sums, uint32_t *s_first) {
  const uint32_t t = threadIdx.x, lane = t % WARP_LANES, warp = t / WARP_LANES;
  const uint64_t count = counts[t];
  if (t == 0) *s_first = HISTOGRAM_BINS;
  __syncthreads();
  if (count != 0) atomicMin(s_first, t);
  __syncthreads();
  const uint32_t first = *s_first;
  uint64_t sum = t > first ? count : 0; /* of the bins after the first one up to this one */
  for (uint32_t d = 1; d < WARP_LANES; d <<= 1) {
    const uint64_t below = __shfl_up_sync(WARP_ALL, sum, d);
    if (lane >= d) sum += below;
  }
  if (lane == WARP_LANES - 1) s_sums[warp] = sum;
  __syncthreads();
  for (uint32_t w = 0; w < warp; w++) sum += s_sums[w];
  const uint64_t rest = n - counts[first];
  uint8_t level = (uint8_t)t;
  if (rest != 0) level = t <= first ? (uint8_t)0 : prim_equalize_level(sum, prim_equalize_scale(rest));
  s_levels[t] = level;
  __syncthreads();
}

/* Four levels from this lane's table. `lane`: its bank's first byte. */
static __device__ __forceinline__ uint32_t look_up(const uint8_t *s_table, uint32_t word, uint32_t lane) {
  const uint32_t mask = 0x3fu << HISTOGRAM_LANE_SHIFT;
  const uint32_t a = s_table[(word << 5 & mask) | lane | (word & 3u)];
  const uint32_t b = s_table[(word >> 3 & mask) | lane | (word >> 8 & 3u)];
  const uint32_t c = s_table[(word >> 11 & mask) | lane | (word >> 16 & 3u)];
  const uint32_t d = s_table[(word >> 19 & mask) | lane | (word >> 24 & 3u)];
  return a | b << 8 | c << 16 | d << 24;
}

/*
 * Does      the equalised picture from the histogram: equalize_ref.
 * Launch    one-dimensional, at most 4 blocks of 256 threads a multiprocessor, looping over vectors of 16 bytes, 2 at a
 *           time; each block makes the levels anew.
 * Shared    8.6 KiB: the levels once in every bank.
 * Reads     counts, the view: any address, width, stride. Writes out, in vectors where it is as aligned as the view, which
 *           may be the same memory: a byte is read and written by one thread.
 * Barriers  while the levels are made.
 * Limits    counts add up to the view's elements. Order: repeatable.
 * Cost      2 bytes of memory and 6 instructions a byte, one of them a load from shared memory without conflicts.
 */
template <bool FLAT>
__global__ void __launch_bounds__(LEVEL_THREADS, LEVEL_BLOCKS_PER_SM)
    equalize_lane_kernel(const __grid_constant__ byte_rows in, const uint64_t *counts, uint64_t elements, uint8_t *out,
                         size_t out_stride) {
  __shared__ uint32_t s_table[LEVEL_WORDS * WARP_LANES];
  __shared__ uint32_t s_levels[LEVEL_WORDS];
  __shared__ uint64_t s_sums[LEVEL_THREADS / WARP_LANES];
  __shared__ uint32_t s_first;
  make_levels(counts, elements, (uint8_t *)s_levels, s_sums, &s_first);
  for (uint32_t i = threadIdx.x; i < LEVEL_WORDS * WARP_LANES; i += LEVEL_THREADS)
    s_table[i] = s_levels[i / WARP_LANES];
  __syncthreads();
  const uint8_t *table = (const uint8_t *)s_table;
  const uint32_t lane = (uint32_t)pinned_int((int32_t)(threadIdx.x % WARP_LANES * 4)), step = gridDim.x * LEVEL_THREADS;
  for (int64_t row = 0; row < in.rows; row += in.group_rows) {
    const uint32_t units = byte_rows_group_units(in, row);
    for (uint32_t n = blockIdx.x * LEVEL_THREADS + threadIdx.x; n < units; n += LEVEL_VECTORS * step) {
      uint4 v[LEVEL_VECTORS];
      uint8_t *to[LEVEL_VECTORS];
      bool whole[LEVEL_VECTORS];
#pragma unroll
      for (uint32_t k = 0; k < LEVEL_VECTORS; k++) {
        const byte_unit u = byte_rows_unit<FLAT>(in, row, min(n + k * step, units - 1u));
        to[k] = (uint8_t *)(uintptr_t)byte_unit_place(u, out, out_stride);
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

/* Blocks for so many vectors, at most those that the device holds at once. */
static unsigned blocks_for(const byte_rows *rows, int32_t a_block, int32_t most) {
  const uint64_t needed = (byte_rows_units(rows) + (uint64_t)a_block - 1) / (uint64_t)a_block;
  return (unsigned)(needed < (uint64_t)most ? needed : (uint64_t)most);
}

/* The view's rows, and those of a picture that goes with it; *other_stride: as these rows are cut. */
static byte_rows rows_with(const prim_view *v, size_t *other_stride) {
  const int64_t width = (int64_t)v->width, height = (int64_t)v->height;
  const bool joined =
      byte_rows_joined(width, height, v->stride_bytes) && byte_rows_joined(width, height, *other_stride);
  const byte_rows rows = byte_rows_make(v->data, width, height, v->stride_bytes, joined);
  if (joined) *other_stride = rows.stride_bytes;
  return rows;
}

template <bool MASKED>
static void count_large(const histogram_args *a, const byte_rows &rows, size_t mask_stride, cuda_stream stream) {
  const uint8_t *mask = (const uint8_t *)a->mask;
  const unsigned blocks = blocks_for(&rows, HISTOGRAM_VECTORS_MIN, a->processors);
  if (rows.rows == 1)
    histogram_lane_kernel<MASKED, true>
        <<<blocks, HISTOGRAM_THREADS, 0, stream>>>(rows, mask, mask_stride, a->scratch, a->counts);
  else
    histogram_lane_kernel<MASKED, false>
        <<<blocks, HISTOGRAM_THREADS, 0, stream>>>(rows, mask, mask_stride, a->scratch, a->counts);
}

static int32_t tally_blocks_most(const histogram_args *a) {
  return a->processors < TALLY_BLOCKS_MAX ? a->processors : (int32_t)TALLY_BLOCKS_MAX;
}

template <bool MASKED>
static void count_small(const histogram_args *a, const byte_rows &rows, size_t mask_stride, cuda_stream stream) {
  const uint8_t *mask = (const uint8_t *)a->mask;
  const unsigned blocks = blocks_for(&rows, TALLY_THREADS, tally_blocks_most(a));
  assert(blocks <= TALLY_BLOCKS_MAX && rows.rows <= rows.group_rows);
  assert((uint64_t)a->view.width * a->view.height < (uint64_t)1 << TALLY_SUM_BITS);
  if (rows.rows == 1)
    histogram_tally_kernel<MASKED, true>
        <<<blocks, TALLY_THREADS, 0, stream>>>(rows, mask, mask_stride, a->scratch, a->counts);
  else
    histogram_tally_kernel<MASKED, false>
        <<<blocks, TALLY_THREADS, 0, stream>>>(rows, mask, mask_stride, a->scratch, a->counts);
}

stage_status histogram_launch(const histogram_args *a, cuda_stream stream) {
  assert(a->view.type == PRIM_U8 && a->view.data && a->view.width > 0 && a->view.height > 0);
  assert(a->counts && a->scratch && a->processors > 0);
  size_t mask_stride = a->mask ? a->mask_stride_bytes : a->view.stride_bytes;
  const byte_rows rows = rows_with(&a->view, &mask_stride);
  const bool small = byte_rows_units(&rows) <= (uint64_t)tally_blocks_most(a) * HISTOGRAM_SMALL_VECTORS;
  if (small && a->mask)
    count_small<true>(a, rows, mask_stride, stream);
  else if (small)
    count_small<false>(a, rows, mask_stride, stream);
  else if (a->mask)
    count_large<true>(a, rows, mask_stride, stream);
  else
    count_large<false>(a, rows, mask_stride, stream);
  return launch_status();
}

stage_status equalize_launch(const equalize_args *a, cuda_stream stream) {
  assert(a->view.type == PRIM_U8 && a->view.data && a->view.width > 0 && a->view.height > 0);
  assert(a->counts && a->out && a->processors > 0);
  size_t out_stride = a->out_stride_bytes;
  const byte_rows rows = rows_with(&a->view, &out_stride);
  const unsigned blocks = blocks_for(&rows, LEVEL_THREADS, a->processors * LEVEL_BLOCKS_PER_SM);
  const uint64_t elements = (uint64_t)a->view.width * a->view.height;
  if (rows.rows == 1)
    equalize_lane_kernel<true><<<blocks, LEVEL_THREADS, 0, stream>>>(rows, a->counts, elements, a->out, out_stride);
  else
    equalize_lane_kernel<false><<<blocks, LEVEL_THREADS, 0, stream>>>(rows, a->counts, elements, a->out, out_stride);
  return launch_status();
}
