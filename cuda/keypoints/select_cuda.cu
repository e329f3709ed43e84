/*
 * Selection kernels: radix search for the smallest key that is kept, then an order-keeping compaction. Keys are bits of
 * response or sigma; where whole levels stay they are the levels, of which the first digit alone tells, and a
 * keypoint's first feature counts for all of them.
 */
#include "cuda/keypoints/select_cuda.h"

#include "cuda/runtime/launch.cuh"
#include "cuda/keypoints/describe_cuda.h"
#include "cuda/keypoints/grid_cuda.h"
#include "cuda/prim/compact.cuh"
#include "cuda/prim/shared_hist.cuh"

enum { SELECT_BINS_PER_THREAD = SELECT_DIGITS / LIST_TILE };

/* What the digits found so far say: keys whose upper bits are above `prefix` are kept, `ties` of those equal to it. */
typedef struct select_state {
  uint32_t prefix, ties;
} select_state;

/* Bits below the digit of a pass. */
static __device__ __forceinline__ uint32_t digit_shift(int32_t pass) {
  return pass == 0 ? 21u : (pass == 1 ? 10u : 0u);
}
static __device__ __forceinline__ uint32_t digit_of(uint32_t key, int32_t pass) {
  return (key >> digit_shift(pass)) & (pass == SELECT_PASSES - 1 ? 1023u : (uint32_t)SELECT_DIGITS - 1u);
}

/* Responses and sigmas are not negative, so their bits order as they do. */
static __device__ __forceinline__ uint32_t feature_key(const cuda_frame_view &v, uint32_t n) {
  const uint32_t k = v.oriented.keypoint[n];
  if (v.selection == SELECT_LEVELS) return select_level_key(v.keypoints.octave[k], v.keypoints.level[k]);
  return hs_float_bits(v.selection == SELECT_LARGEST ? v.keypoints.sigma[k] : v.keypoints.response[k]);
}

static __device__ __forceinline__ bool select_counts(const cuda_frame_view &v, uint32_t n) {
  if (v.selection != SELECT_LEVELS || n == 0) return true;
  return !select_is_same(&v.keypoints, v.oriented.keypoint[n - 1], v.oriented.keypoint[n]);
}

static __host__ __device__ __forceinline__ int32_t select_passes(const cuda_frame_view &v) {
  return v.selection == SELECT_LEVELS ? 1 : SELECT_PASSES;
}

/* Whether a key stays whatever its number; all of the level that goes beyond the number do. */
static __device__ __forceinline__ bool select_is_above(const cuda_frame_view &v, uint32_t key, uint32_t prefix) {
  return key > prefix || (key == prefix && v.selection == SELECT_LEVELS);
}

/* The state after `passes` complete histograms. All threads of a block of LIST_TILE; valid on each. Thread t looks at
   bins from the top: 2047 - 8 t downwards. Of levels it is the one with the keypoint that goes beyond the number;
   without such a keypoint the state stays at 0, which every key is above. */
static __device__ __forceinline__ select_state select_search(const cuda_frame_view &v, int32_t passes, uint32_t *s_scan,
                                                             select_state *s_found) {
  select_state state = {0, v.selection == SELECT_LEVELS ? v.max_features + 1u : v.max_features};
  for (int32_t pass = 0; pass < passes; pass++) {
    const uint32_t *bins = v.scratch.select_digits + pass * SELECT_DIGITS;
    const uint32_t top = SELECT_DIGITS - 1u - threadIdx.x * SELECT_BINS_PER_THREAD;
    uint32_t counts[SELECT_BINS_PER_THREAD], sum = 0, total;
    if (threadIdx.x == 0) *s_found = state; /* before the scan's barriers */
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

/* Features to select among; 0 when all are kept. */
static __device__ __forceinline__ uint32_t select_count(const cuda_frame_view &v) {
  const uint32_t n = min(*v.oriented.count, v.oriented.capacity);
  return n <= v.max_features ? 0u : n;
}

/*
 * Does      histogram of one digit of the keys that match the digits found before; the first pass also stores the keys.
 * Launch    resident blocks of 256 threads, a thread a feature, looping over tiles.
 * Shared    8.2 KiB.
 * Reads     oriented, keypoints (first pass; for levels their values too), select_keys, select_digits of earlier
 *           passes.
 * Writes    select_keys, select_digits.
 * Barriers  of the search and of the block's histogram.
 * Limits    no more features than are kept: returns at once. Keys are bits of floats from 0 upwards, or a grid's.
 * Order     repeatable. Cost: 12 bytes a feature in the first pass, then 4: bound by latency.
 */
__global__ void __launch_bounds__(LIST_TILE)
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
    const bool first = pass == 0 && v.grid.columns == 0; /* a grid's keys are there */
    const uint32_t key = first ? feature_key(v, n) : v.scratch.select_keys[n];
    if (first) v.scratch.select_keys[n] = key;
    if ((key & known) == state.prefix && select_counts(v, n)) shared_hist_add<1>(bins, digit_of(key, pass), 1);
  }
  __syncthreads();
  shared_hist_flush<SELECT_DIGITS, LIST_TILE>(s_bins, v.scratch.select_digits + pass * SELECT_DIGITS, threadIdx.x);
}

/*
 * Does      counts the features above and at the threshold in each tile.
 * Launch    resident blocks of 256 threads, looping over tiles of 256 features.
 * Shared    0.3 KiB. Barriers: of the search and of the sums.
 * Reads     select_keys, select_digits. Writes select_above, select_equal.
 * Limits    no more features than are kept: returns at once.
 * Order     repeatable. Cost: 4 bytes a feature, bound by latency.
 */
__global__ void __launch_bounds__(LIST_TILE) select_count_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ uint32_t s_scan[WARP_LANES];
  __shared__ select_state s_found;
  const uint32_t count = select_count(v);
  if (blockIdx.x * LIST_TILE >= count) return;
  const select_state state = select_search(v, select_passes(v), s_scan, &s_found);
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
 * Does      the kept features, order kept: select_ref.
 * Launch    resident blocks of 256 threads, looping over tiles of 256 features.
 * Shared    0.3 KiB. Barriers: of the search and of the scans.
 * Reads     oriented, select_keys, select_digits, select_above, select_equal. Writes features, block 0 their count.
 * Limits    no more features than are kept: copies them all. Past the capacity nothing is written.
 * Order     repeatable: positions follow from counts. Cost: 20 bytes a feature, bound by latency.
 */
__global__ void __launch_bounds__(LIST_TILE) select_emit_kernel(const __grid_constant__ cuda_frame_view v) {
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
  if (count) state = select_search(v, select_passes(v), s_scan, &s_found);
  if (levels) state.ties = 0; /* those are above */
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

stage_status cuda_select_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->max_features > 0 && view->oriented.capacity > 0 && view->features.capacity > 0);
  assert(view->features.keypoint != view->oriented.keypoint && view->features.count != view->oriented.count);
  const unsigned tiles = (view->oriented.capacity + LIST_TILE - 1u) / LIST_TILE;
  const unsigned resident = launch_resident_blocks((const void *)select_digit_kernel, LIST_TILE, 0);
  const unsigned blocks = tiles < resident ? tiles : resident;
  assert(view->grid.columns == 0 || view->selection != SELECT_LEVELS);
  stage_status st = view->grid.columns > 0 ? cuda_grid_keys_launch(view, stream) : STAGE_OK;
  for (int32_t pass = 0; pass < select_passes(*view) && st == STAGE_OK; pass++)
    st = launch(select_digit_kernel, blocks, LIST_TILE, 0, stream, *view, pass);
  if (st == STAGE_OK) st = launch(select_count_kernel, blocks, LIST_TILE, 0, stream, *view);
  if (st == STAGE_OK) st = launch(select_emit_kernel, blocks, LIST_TILE, 0, stream, *view);
  return st == STAGE_OK ? cuda_work_order_launch(view, stream) : st;
}
