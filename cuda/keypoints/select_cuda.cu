/* Selection on the device: kernels for the grid, then radix search with compaction.
 *
 * The grid kernels sort features into cells, find how many ranks are kept completely, and rank each feature in its
 * cell. */
#include "cuda/keypoints/keypoints_kernels.h"

#include "cuda/prim/histograms.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

/* Returns the number of features to select among; 0 if all are kept. */
static __device__ __forceinline__ uint32_t select_count(const cuda_frame_view &v) {
  const uint32_t n = min(*v.oriented.count, v.oriented.capacity);
  return n <= v.max_features ? 0u : n;
}

static __device__ __forceinline__ uint32_t grid_cells_of(const cuda_frame_view &v) {
  return (uint32_t)(v.grid.columns * v.grid.rows);
}

/* Responses and sigmas are not negative, so their bits have the order of their values. */
static __device__ __forceinline__ uint32_t grid_key(const cuda_frame_view &v, uint32_t n) {
  const uint32_t k = v.oriented.keypoint[n];
  return hs_float_bits(v.selection == SELECT_STRONGEST ? v.keypoints.response[k] : v.keypoints.sigma[k]);
}

/*
 * Does      finds the cell of each feature, and the number of features in each cell.
 * Launch    resident blocks of 256 threads, one thread per feature, looping.
 * Shared    none. Barriers: none.
 * Reads     oriented, keypoints. Writes grid_cells; grid_counts by atomics.
 * Limits    returns at once if all features are kept. At most GRID_DEVICE_CELLS cells.
 * Order     repeatable. Cost: 16 bytes per feature, bound by latency.
 */
extern "C" __global__ void __launch_bounds__(GRID_THREADS) grid_cell_kernel(const __grid_constant__ cuda_frame_view v) {
  const uint32_t count = select_count(v);
  for (uint32_t n = blockIdx.x * GRID_THREADS + threadIdx.x; n < count; n += gridDim.x * GRID_THREADS) {
    const uint32_t k = v.oriented.keypoint[n], cell = grid_cell(&v.grid, v.keypoints.x[k], v.keypoints.y[k]);
    v.scratch.grid_cells[n] = cell;
    atomicAdd(&v.scratch.grid_counts[cell], 1u);
  }
}

/* Returns the number of features in the first `ranks` ranks. All threads of the block must call; valid on each. */
static __device__ __forceinline__ uint32_t grid_sum(const uint32_t *counts, uint32_t cells, uint32_t ranks,
                                                    uint32_t *s_scan) {
  uint32_t sum = 0;
  for (uint32_t c = threadIdx.x; c < cells; c += GRID_THREADS) sum += min(counts[c], ranks);
  return block_reduce_sum(sum, s_scan);
}

/*
 * Does      finds where each cell's features start in the list by cells, and how many ranks are kept completely:
 *           the largest number whose features fit the limit.
 * Launch    one block of 256 threads.
 * Shared    128 bytes. Barriers: of the scan and of the sums.
 * Reads     grid_counts. Writes grid_first, *grid_ranks.
 * Limits    returns at once if all features are kept.
 * Order     repeatable. Cost: one sum over the cells for each bit of max_features: bound by latency.
 */
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
    grid_rounds_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ uint32_t s_scan[WARP_LANES];
  const uint32_t cells = grid_cells_of(v), *counts = v.scratch.grid_counts;
  if (select_count(v) == 0) return;
  const uint32_t a_thread = (cells + GRID_THREADS - 1u) / GRID_THREADS;
  const uint32_t from = min(threadIdx.x * a_thread, cells), to = min(from + a_thread, cells);
  uint32_t sum = 0, total;
  for (uint32_t c = from; c < to; c++) sum += counts[c];
  uint32_t first = block_scan_exclusive(sum, s_scan, &total);
  for (uint32_t c = from; c < to; c++) {
    v.scratch.grid_first[c] = first;
    first += counts[c];
  }
  uint32_t ranks = 0; /* not all features are kept, so the number of ranks is less than 2^32 */
  for (uint32_t bit = 1u << (31 - __clz((int)v.max_features)); bit != 0; bit >>= 1)
    if (grid_sum(counts, cells, ranks | bit, s_scan) <= v.max_features) ranks |= bit;
  if (threadIdx.x == 0) *v.scratch.grid_ranks = ranks;
}

/*
 * Does      the list of features by cells, each with its key.
 * Launch    resident blocks of 256 threads, one thread per feature, looping.
 * Shared    none. Barriers: none.
 * Reads     oriented, keypoints, grid_cells, grid_first. Writes grid_list, grid_keys; grid_cursors by atomics.
 * Limits    returns at once if all features are kept.
 * Order     the order within a cell varies; ranks do not depend on it. Cost: 20 bytes per feature, bound by
 *           latency.
 */
extern "C" __global__ void __launch_bounds__(GRID_THREADS) grid_list_kernel(const __grid_constant__ cuda_frame_view v) {
  const uint32_t count = select_count(v);
  for (uint32_t n = blockIdx.x * GRID_THREADS + threadIdx.x; n < count; n += gridDim.x * GRID_THREADS) {
    const uint32_t cell = v.scratch.grid_cells[n];
    const uint32_t at = v.scratch.grid_first[cell] + atomicAdd(&v.scratch.grid_cursors[cell], 1u);
    v.scratch.grid_list[at] = n;
    v.scratch.grid_keys[at] = grid_key(v, n);
  }
}

/*
 * Does      each feature's rank in its cell, and from it the key of selection.
 * Launch    resident blocks of 256 threads, one thread per feature of the list by cells, looping.
 * Shared    none. Barriers: none.
 * Reads     grid_list, grid_keys, grid_cells, grid_first, grid_counts, *grid_ranks. Writes select_keys.
 * Limits    returns at once if all features are kept. Finite keys stay below UINT32_MAX.
 * Order     repeatable. Cost: up to the square of a cell's features; a thread ends once its feature cannot be kept, and
 *           the threads of a warp read the same keys.
 */
extern "C" __global__ void __launch_bounds__(GRID_THREADS) grid_rank_kernel(const __grid_constant__ cuda_frame_view v) {
  const uint32_t count = select_count(v);
  if (count == 0) return;
  const uint32_t whole = *v.scratch.grid_ranks, *list = v.scratch.grid_list, *keys = v.scratch.grid_keys;
  for (uint32_t i = blockIdx.x * GRID_THREADS + threadIdx.x; i < count; i += gridDim.x * GRID_THREADS) {
    const uint32_t n = list[i], key = keys[i], cell = v.scratch.grid_cells[n];
    const uint32_t first = v.scratch.grid_first[cell], end = first + v.scratch.grid_counts[cell];
    uint32_t rank = 0;
    for (uint32_t j = first; j < end && rank <= whole; j++) rank += keys[j] > key || (keys[j] == key && list[j] < n);
    v.scratch.select_keys[n] = rank < whole ? UINT32_MAX : rank == whole ? key + 1u : 0u;
  }
}

/* Selection kernels: a radix search for the smallest kept key, then a compaction that keeps the order. Keys are the
 * bits of response or sigma. For SELECT_LEVELS keys are the levels, whose first digit suffices, and only the first
 * feature of a keypoint is counted. */

enum { SELECT_BINS_PER_THREAD = SELECT_DIGITS / LIST_TILE };

/* State of the search: keys are kept if their upper bits exceed `prefix`, and `ties` of those whose upper bits
 * equal it. */
typedef struct select_state {
  uint32_t prefix, ties;
} select_state;

/* Returns the number of bits below the digit of a pass. */
static __device__ __forceinline__ uint32_t digit_shift(int32_t pass) {
  return pass == 0 ? 21u : (pass == 1 ? 10u : 0u);
}
static __device__ __forceinline__ uint32_t digit_of(uint32_t key, int32_t pass) {
  return (key >> digit_shift(pass)) & (pass == SELECT_PASSES - 1 ? 1023u : (uint32_t)SELECT_DIGITS - 1u);
}

/* Responses and sigmas are not negative, so their bits have the order of their values. */
static __device__ __forceinline__ uint32_t feature_key(const cuda_frame_view &v, uint32_t n) {
  const uint32_t k = v.oriented.keypoint[n];
  if (v.selection == SELECT_LEVELS) return select_level_key(v.keypoints.octave[k], v.keypoints.level[k]);
  return hs_float_bits(v.selection == SELECT_LARGEST ? v.keypoints.sigma[k] : v.keypoints.response[k]);
}

static __device__ __forceinline__ bool select_counts(const cuda_frame_view &v, uint32_t n) {
  if (v.selection != SELECT_LEVELS || n == 0) return true;
  return !select_is_same(&v.keypoints, v.oriented.keypoint[n - 1], v.oriented.keypoint[n]);
}

/* Whether a key is kept independently of `ties`. For SELECT_LEVELS, all keys of the level that exceeds the limit
 * are. */
static __device__ __forceinline__ bool select_is_above(const cuda_frame_view &v, uint32_t key, uint32_t prefix) {
  return key > prefix || (key == prefix && v.selection == SELECT_LEVELS);
}

/* Returns the state after `passes` complete histograms. All threads of a block of LIST_TILE must call; valid on
 * each. Thread t examines bins from the top: 2047 - 8 t downwards. For SELECT_LEVELS the state gives the level with
 * the keypoint that exceeds the limit. Without such a keypoint it stays at 0, which every key exceeds. */
static __device__ __forceinline__ select_state select_search(const cuda_frame_view &v, int32_t passes, uint32_t *s_scan,
                                                             select_state *s_found) {
  select_state state = {0, v.selection == SELECT_LEVELS ? v.max_features + 1u : v.max_features};
  for (int32_t pass = 0; pass < passes; pass++) {
    const uint32_t *bins = v.scratch.select_digits + pass * SELECT_DIGITS;
    const uint32_t top = SELECT_DIGITS - 1u - threadIdx.x * SELECT_BINS_PER_THREAD;
    uint32_t counts[SELECT_BINS_PER_THREAD], sum = 0, total;
    if (threadIdx.x == 0) *s_found = state; /* must come before the scan's barriers */
#pragma unroll
    for (uint32_t j = 0; j < SELECT_BINS_PER_THREAD; j++) sum += counts[j] = bins[top - j];
    uint32_t above = block_scan_exclusive(sum, s_scan, &total);
    if (above < state.ties && above + sum >= state.ties) {
#pragma unroll
      for (uint32_t j = 0; j < SELECT_BINS_PER_THREAD; j++) {
        if (above < state.ties && above + counts[j] >= state.ties) {
          s_found->prefix = state.prefix | (top - j) << digit_shift(pass);
          s_found->ties = state.ties - above;
        }
        above += counts[j];
      }
    }
    __syncthreads(); /* at most one thread has found it */
    state = *s_found;
    __syncthreads();
  }
  return state;
}

/*
 * Does      makes the histogram of one digit, of the keys that match the digits found before. The first pass also
 *           stores the keys.
 * Launch    resident blocks of 256 threads, one thread per feature, looping over tiles.
 * Shared    8.2 KiB.
 * Reads     oriented, keypoints (first pass; for levels their values too), select_keys, select_digits of earlier
 *           passes.
 * Writes    select_keys, select_digits.
 * Barriers  around the search, and around the block's histogram.
 * Limits    returns at once if all features are kept. Keys are bits of floats from 0 upwards, or a grid's keys.
 * Order     repeatable. Cost: 12 bytes per feature in the first pass, then 4: bound by latency.
 */
extern "C" __global__ void __launch_bounds__(LIST_TILE)
    select_digit_kernel(const __grid_constant__ cuda_frame_view v, int32_t pass) {
  __shared__ __align__(16) uint32_t s_bins[SELECT_DIGITS];
  __shared__ uint32_t s_scan[WARP_LANES];
  __shared__ select_state s_found;
  const uint32_t count = select_count(v);
  if (blockIdx.x * LIST_TILE >= count) return;
  const select_state state = select_search(v, pass, s_scan, &s_found);
  const uint32_t known = pass == 0 ? 0u : UINT32_MAX << digit_shift(pass - 1);
  const uint32_t bins = shared_hist_copy<1>(s_bins, 0);
  shared_hist_clear<SELECT_DIGITS, LIST_TILE>(s_bins, threadIdx.x);
  __syncthreads();
  for (uint32_t n = blockIdx.x * LIST_TILE + threadIdx.x; n < count; n += gridDim.x * LIST_TILE) {
    const bool first = pass == 0 && v.grid.columns == 0; /* a grid's keys exist already */
    const uint32_t key = first ? feature_key(v, n) : v.scratch.select_keys[n];
    if (first) v.scratch.select_keys[n] = key;
    if ((key & known) == state.prefix && select_counts(v, n)) shared_hist_add<1>(bins, digit_of(key, pass), 1);
  }
  __syncthreads();
  shared_hist_flush<SELECT_DIGITS, LIST_TILE>(s_bins, v.scratch.select_digits + pass * SELECT_DIGITS, threadIdx.x);
}

/*
 * Does      counts the features above the threshold, and those at it, in each tile.
 * Launch    resident blocks of 256 threads, looping over tiles of 256 features.
 * Shared    0.3 KiB. Barriers: of the search and of the sums.
 * Reads     select_keys, select_digits. Writes select_above, select_equal.
 * Limits    returns at once if all features are kept.
 * Order     repeatable. Cost: 4 bytes per feature, bound by latency.
 */
extern "C" __global__ void __launch_bounds__(LIST_TILE) select_count_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ uint32_t s_scan[WARP_LANES];
  __shared__ select_state s_found;
  const uint32_t count = select_count(v);
  if (blockIdx.x * LIST_TILE >= count) return;
  const select_state state = select_search(v, select_passes(&v), s_scan, &s_found);
  for (uint32_t tile = blockIdx.x; tile * LIST_TILE < count; tile += gridDim.x) {
    const uint32_t n = tile * LIST_TILE + threadIdx.x, key = n < count ? v.scratch.select_keys[n] : 0u;
    const uint32_t above = (uint32_t)__syncthreads_count(n < count && select_is_above(v, key, state.prefix));
    const uint32_t equal = (uint32_t)__syncthreads_count(n < count && key == state.prefix);
    if (threadIdx.x == 0) {
      v.scratch.select_above[tile] = above;
      v.scratch.select_equal[tile] = equal;
    }
  }
}

/*
 * Does      writes the kept features in their order: select_ref.
 * Launch    resident blocks of 256 threads, looping over tiles of 256 features.
 * Shared    0.3 KiB. Barriers: of the search and of the scans.
 * Reads     oriented, select_keys, select_digits, select_above, select_equal. Writes features, block 0 their count.
 * Limits    copies all features if all are kept. Past the capacity nothing is written.
 * Order     repeatable: positions follow from counts. Cost: 20 bytes per feature, bound by latency.
 */
extern "C" __global__ void __launch_bounds__(LIST_TILE) select_emit_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ uint32_t s_scan[WARP_LANES];
  __shared__ select_state s_found;
  const uint32_t listed = min(*v.oriented.count, v.oriented.capacity), count = select_count(v);
  const bool levels = v.selection == SELECT_LEVELS;
  if (blockIdx.x == 0) {
    uint32_t stay = count ? v.max_features : listed;
    if (count && levels) stay = compact_before(v.scratch.select_above, (count + LIST_TILE - 1u) / LIST_TILE, s_scan);
    if (threadIdx.x == 0) *v.features.count = stay;
  }
  if (blockIdx.x * LIST_TILE >= listed) return;
  select_state state = {0, UINT32_MAX};
  if (count) state = select_search(v, select_passes(&v), s_scan, &s_found);
  if (levels) state.ties = 0; /* equal keys count as if above the threshold */
  for (uint32_t tile = blockIdx.x; tile * LIST_TILE < listed; tile += gridDim.x) {
    const uint32_t n = tile * LIST_TILE + threadIdx.x;
    uint32_t to = n, total;
    bool kept = n < listed;
    if (count) {
      const uint32_t key = n < count ? v.scratch.select_keys[n] : 0u;
      const uint32_t above = n < count && select_is_above(v, key, state.prefix);
      const uint32_t equal = n < count && key == state.prefix;
      const uint32_t above_before =
          compact_before(v.scratch.select_above, tile, s_scan) + block_scan_exclusive(above, s_scan, &total);
      const uint32_t equal_before =
          compact_before(v.scratch.select_equal, tile, s_scan) + block_scan_exclusive(equal, s_scan, &total);
      kept = above || (equal && equal_before < state.ties);
      to = above_before + min(equal_before, state.ties);
    }
    if (!kept || to >= v.features.capacity) continue;
    v.features.keypoint[to] = v.oriented.keypoint[n];
    v.features.orientation[to] = v.oriented.orientation[n];
  }
}

SELECT_KERNELS(LAUNCH_CHECK)
