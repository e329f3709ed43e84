/*
 * Grid kernels: features into their cells, how many ranks stay whole, and each feature's rank in its cell.
 */
#include "cuda/keypoints/grid_cuda.h"

#include "cuda/runtime/launch.cuh"
#include "cuda/prim/compact.cuh"

enum { GRID_THREADS = 256 };

/* Features to rank; 0 when all are kept. */
static __device__ __forceinline__ uint32_t grid_count(const cuda_frame_view &v) {
  const uint32_t n = min(*v.oriented.count, v.oriented.capacity);
  return n <= v.max_features ? 0u : n;
}

static __device__ __forceinline__ uint32_t grid_cells_of(const cuda_frame_view &v) {
  return (uint32_t)(v.grid.columns * v.grid.rows);
}

/* Responses and sigmas are not negative, so their bits order as they do. */
static __device__ __forceinline__ uint32_t grid_key(const cuda_frame_view &v, uint32_t n) {
  const uint32_t k = v.oriented.keypoint[n];
  return hs_float_bits(v.selection == SELECT_STRONGEST ? v.keypoints.response[k] : v.keypoints.sigma[k]);
}

/*
 * Does      the cell of each feature, and how many each cell has.
 * Launch    resident blocks of 256 threads, a thread a feature, looping.
 * Shared    none. Barriers: none.
 * Reads     oriented, keypoints. Writes grid_cells; grid_counts by atomics.
 * Limits    no more features than are kept: returns at once. At most GRID_DEVICE_CELLS cells.
 * Order     repeatable. Cost: 16 bytes a feature, bound by latency.
 */
__global__ void __launch_bounds__(GRID_THREADS) grid_cell_kernel(const __grid_constant__ cuda_frame_view v) {
  const uint32_t count = grid_count(v);
  for (uint32_t n = blockIdx.x * GRID_THREADS + threadIdx.x; n < count; n += gridDim.x * GRID_THREADS) {
    const uint32_t k = v.oriented.keypoint[n], cell = grid_cell(&v.grid, v.keypoints.x[k], v.keypoints.y[k]);
    v.scratch.grid_cells[n] = cell;
    atomicAdd(&v.scratch.grid_counts[cell], 1u);
  }
}

/* How many features the first `ranks` ranks have. All threads of the block; valid on each. */
static __device__ __forceinline__ uint32_t grid_sum(const uint32_t *counts, uint32_t cells, uint32_t ranks,
                                                    uint32_t *s_scan) {
  uint32_t sum = 0;
  for (uint32_t c = threadIdx.x; c < cells; c += GRID_THREADS) sum += min(counts[c], ranks);
  return block_reduce_sum(sum, s_scan);
}

/*
 * Does      where each cell's features begin in the list by cells, and the number of ranks that stay whole: the largest
 *           whose features are no more than are kept.
 * Launch    one block of 256 threads.
 * Shared    128 bytes. Barriers: of the scan and of the sums.
 * Reads     grid_counts. Writes grid_first, *grid_ranks.
 * Limits    no more features than are kept: returns at once.
 * Order     repeatable. Cost: as many sums over the cells as max_features has bits: bound by latency.
 */
__global__ void __launch_bounds__(GRID_THREADS) grid_rounds_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ uint32_t s_scan[WARP_LANES];
  const uint32_t cells = grid_cells_of(v), *counts = v.scratch.grid_counts;
  if (grid_count(v) == 0) return;
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
 * Launch    resident blocks of 256 threads, a thread a feature, looping.
 * Shared    none. Barriers: none.
 * Reads     oriented, keypoints, grid_cells, grid_first. Writes grid_list, grid_keys; grid_cursors by atomics.
 * Limits    no more features than are kept: returns at once.
 * Order     a cell's features in any order: ranks do not depend on it. Cost: 20 bytes a feature, bound by latency.
 */
__global__ void __launch_bounds__(GRID_THREADS) grid_list_kernel(const __grid_constant__ cuda_frame_view v) {
  const uint32_t count = grid_count(v);
  for (uint32_t n = blockIdx.x * GRID_THREADS + threadIdx.x; n < count; n += gridDim.x * GRID_THREADS) {
    const uint32_t cell = v.scratch.grid_cells[n];
    const uint32_t at = v.scratch.grid_first[cell] + atomicAdd(&v.scratch.grid_cursors[cell], 1u);
    v.scratch.grid_list[at] = n;
    v.scratch.grid_keys[at] = grid_key(v, n);
  }
}

/*
 * Does      each feature's rank in its cell, and from it the key of selection.
 * Launch    resident blocks of 256 threads, a thread a feature of the list by cells, looping.
 * Shared    none. Barriers: none.
 * Reads     grid_list, grid_keys, grid_cells, grid_first, grid_counts, *grid_ranks. Writes select_keys.
 * Limits    no more features than are kept: returns at once. Finite keys stay below UINT32_MAX.
 * Order     repeatable. Cost: up to the square of a cell's features; a thread ends once its feature cannot stay, and the
 *           threads of a warp read the same keys.
 */
__global__ void __launch_bounds__(GRID_THREADS) grid_rank_kernel(const __grid_constant__ cuda_frame_view v) {
  const uint32_t count = grid_count(v);
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

stage_status cuda_grid_keys_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->grid.columns > 0 && view->grid.rows > 0 && view->max_features > 0);
  assert((uint64_t)view->grid.columns * (uint64_t)view->grid.rows <= GRID_DEVICE_CELLS && view->scratch.grid_counts);
  const unsigned tiles = (view->oriented.capacity + GRID_THREADS - 1u) / GRID_THREADS;
  const unsigned resident = launch_resident_blocks((const void *)grid_rank_kernel, GRID_THREADS, 0);
  const unsigned blocks = tiles < resident ? tiles : resident;
  stage_status st = launch(grid_cell_kernel, blocks, GRID_THREADS, 0, stream, *view);
  if (st == STAGE_OK) st = launch(grid_rounds_kernel, 1u, GRID_THREADS, 0, stream, *view);
  if (st == STAGE_OK) st = launch(grid_list_kernel, blocks, GRID_THREADS, 0, stream, *view);
  return st == STAGE_OK ? launch(grid_rank_kernel, blocks, GRID_THREADS, 0, stream, *view) : st;
}
