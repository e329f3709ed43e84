/*
 * Selects among a row's squares: the k smallest, by a radix search of the largest of them, or all below a bound.
 *
 * Squares are never negative or NaN, so their bits have the order of their values.
 */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_keys.cuh"
#include "cuda/prim/histograms.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

enum {
  THREADS = MATCH_THREADS,
  DIGIT_BITS = 8, /* bins of the radix search, one for each thread */
  DIGITS = 1 << DIGIT_BITS
};
static_assert((int)DIGITS == (int)THREADS, "each thread looks at one bin");

/* ------------------------------------------------------------------ the k nearest */

typedef struct __align__(16) nearest_shared {
  uint64_t keys[NEIGHBOURS_MAX];
  uint32_t bins[DIGITS]; /* aligned to 16 bytes, like the keys before them */
  uint32_t words[WARP_LANES];
  uint32_t prefix, wanted, taken;
}
nearest_shared;

/* Finds the square of the last of a row's k nearest. All smaller squares qualify, and *ties of those equal to it.
 * If the row has no more than k, this is the bound, without ties. All threads of the block must call; valid on all. */
static __device__ uint32_t last_square(const rows_args &p, const uint32_t *line, uint32_t k, nearest_shared *s,
                                       uint32_t *ties) {
  const uint32_t bins = shared_hist_copy<1>(s->bins, 0);
  uint32_t prefix = 0, known = 0, wanted = k;
  for (int shift = 32 - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
    shared_hist_clear<DIGITS, THREADS>(s->bins, threadIdx.x);
    __syncthreads();
    for (uint32_t j = threadIdx.x; j < p.columns; j += THREADS) {
      const uint32_t square = line[j];
      if (square < p.bound && (square & known) == prefix) shared_hist_add<1>(bins, square >> shift & (DIGITS - 1u), 1);
    }
    __syncthreads(); /* the bins are complete */
    uint32_t total;
    const uint32_t own = s->bins[threadIdx.x], before = block_scan_exclusive(own, s->words, &total);
    if (known == 0 && total <= k) {
      *ties = 0;
      return p.bound;
    }
    if (before < wanted && wanted <= before + own) {
      s->prefix = prefix | threadIdx.x << shift;
      s->wanted = wanted - before;
    }
    __syncthreads(); /* one thread has stored the digit */
    prefix = s->prefix;
    wanted = s->wanted;
    known |= (DIGITS - 1u) << shift;
  }
  *ties = wanted;
  return prefix;
}

/* Collects the keys that qualify, in any order; of equal squares, the first `ties` by index. All threads must call. */
static __device__ void gather_keys(const rows_args &p, const uint32_t *line, uint32_t last, uint32_t ties,
                                   nearest_shared *s) {
  uint32_t equal_before = 0;
  for (uint32_t first = 0; first < p.columns; first += THREADS) {
    const uint32_t j = first + threadIdx.x, square = j < p.columns ? line[j] : UINT32_MAX;
    if (square < last) s->keys[atomicAdd(&s->taken, 1u)] = match_key(square, j);
    const bool equal = equal_before < ties && square == last;
    if (!__syncthreads_or(equal)) continue;
    uint32_t total;
    const uint32_t rank = equal_before + block_scan_exclusive(equal ? 1u : 0u, s->words, &total);
    if (equal && rank < ties) s->keys[atomicAdd(&s->taken, 1u)] = match_key(square, j);
    equal_before += total;
  }
  __syncthreads(); /* all keys are stored */
}

/* Sorts `size` keys by a bitonic sort; size is a power of two. All threads must call. */
static __device__ void sort_keys(uint64_t *keys, uint32_t size) {
  for (uint32_t run = 2; run <= size; run <<= 1)
    for (uint32_t step = run >> 1; step > 0; step >>= 1) {
      for (uint32_t i = threadIdx.x; i < size; i += THREADS) {
        const uint32_t other = i ^ step;
        if (other < i) continue;
        const uint64_t a = keys[i], b = keys[other];
        if ((a > b) == ((i & run) == 0)) {
          keys[i] = b;
          keys[other] = a;
        }
      }
      __syncthreads(); /* a step reads the values written by the step before */
    }
}

/*
 * Does      finds the k smallest keys of each row of squares, below the bound, sorted; converts squares to
 *           distances.
 * Launch    one block per row, 256 threads.
 * Shared    nearest_shared: 1024 keys, 256 bins: 9.3 KB.
 * Reads     squares, up to five times. Writes nearest.
 * Barriers  of the radix search, of the ties' ranks and of the sort.
 * Limits    k up to NEIGHBOURS_MAX; any number of columns.
 * Order     repeatable: keys are all different, and the selected ones are sorted; ties by index.
 * Cost      20 bytes read per pair, from the L2 cache if rows fit; k log^2 k steps of the sort.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    neighbours_nearest_kernel(const __grid_constant__ rows_args p, uint32_t k, match_neighbour *nearest) {
  __shared__ nearest_shared s;
  const uint32_t *line = p.squares + (size_t)blockIdx.x * p.pitch;
  uint32_t ties, size = 1;
  if (threadIdx.x == 0) s.taken = 0;
  const uint32_t last = last_square(p, line, k, &s, &ties); /* has a barrier */
  gather_keys(p, line, last, ties, &s);
  const uint32_t taken = s.taken;
  while (size < taken) size <<= 1;
  for (uint32_t i = taken + threadIdx.x; i < size; i += THREADS) s.keys[i] = MATCH_NO_KEY;
  __syncthreads(); /* the padding keys are stored */
  sort_keys(s.keys, size);
  for (uint32_t i = threadIdx.x; i < k; i += THREADS) {
    match_neighbour n = neighbour_none();
    if (i < taken) {
      n.index = (uint32_t)s.keys[i];
      n.squared = __uint_as_float((uint32_t)(s.keys[i] >> 32));
      n = neighbour_measured(n);
    }
    nearest[(size_t)blockIdx.x * k + i] = n;
  }
}

/* ------------------------------------------------------------------ all below a bound */

/*
 * Does      counts each row's squares below the bound. Launch: one block per row, 256 threads. Shared: 32 words.
 * Reads     squares once. Writes counts. Barriers: of the reduction. Limits: any number of columns.
 * Order     repeatable, integers. Cost: 4 bytes read per pair.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    neighbours_count_kernel(const __grid_constant__ rows_args p, uint32_t *counts) {
  __shared__ uint32_t words[WARP_LANES];
  const uint32_t *line = p.squares + (size_t)blockIdx.x * p.pitch;
  uint32_t count = 0;
  for (uint32_t j = threadIdx.x; j < p.columns; j += THREADS) count += line[j] < p.bound ? 1u : 0u;
  count = block_reduce_sum(count, words);
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

/*
 * Does      writes each row's squares below the bound by index. Launch: one block per row, 256 threads. Shared: 32
 *           words.
 * Reads     squares once, starts. Writes found. Barriers: of the scan, which rows without entries skip.
 * Limits    any number of columns. Order: repeatable: a position is the number of entries before it. Cost: 4 bytes read
 *           per pair.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    neighbours_list_kernel(const __grid_constant__ rows_args p, const uint32_t *starts, match_neighbour *found) {
  __shared__ uint32_t words[WARP_LANES];
  const uint32_t *line = p.squares + (size_t)blockIdx.x * p.pitch;
  uint32_t at = starts[blockIdx.x];
  for (uint32_t first = 0; first < p.columns; first += THREADS) {
    const uint32_t j = first + threadIdx.x, square = j < p.columns ? line[j] : UINT32_MAX;
    const bool wanted = square < p.bound;
    if (!__syncthreads_or(wanted)) continue;
    uint32_t total;
    const uint32_t before = block_scan_exclusive(wanted ? 1u : 0u, words, &total);
    if (wanted) {
      const match_neighbour n = {j, __uint_as_float(square)};
      found[(size_t)at + before] = n;
    }
    at += total;
  }
}

NEIGHBOURS_KERNELS(LAUNCH_CHECK)
