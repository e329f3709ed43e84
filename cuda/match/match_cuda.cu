/* Matching on a device: steps before and after the squares, and all steps in order. */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_keys.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.cuh"

enum {
  THREADS = 256,
  LANES = 8,             /* lanes per descriptor, 16 bytes each */
  RECORD_FLOATS = 6,     /* floats of a keypoint record */
  PAIR_TILES_MAX = 1024, /* few enough that summing the counts before a tile is cheap */
  WORK_ALIGNMENT = 256
};

static unsigned blocks_of(uint64_t threads) { return (unsigned)((threads + THREADS - 1u) / THREADS); }

/* ------------------------------------------------------------------ work */

/* Returns the next array of `count` elements in the work. */
static void *work_array(unsigned char *base, size_t *offset, size_t count, size_t bytes) {
  void *at = base ? base + *offset : NULL;
  *offset += (count * bytes + WORK_ALIGNMENT - 1u) / WORK_ALIGNMENT * WORK_ALIGNMENT;
  return at;
}

size_t cuda_match_work_layout(uint32_t first_count, uint32_t second_count, bool guided, void *base,
                              cuda_match_work *work) {
  unsigned char *at = (unsigned char *)base;
  const size_t rows = first_count, columns = second_count, strips = (columns + MATCH_STRIP - 1u) / MATCH_STRIP;
  size_t bytes = 0;
  work->tile_counts = (uint32_t *)work_array(at, &bytes, PAIR_TILES_MAX, sizeof(uint32_t));
  work->first_norms = (int32_t *)work_array(at, &bytes, rows, sizeof(int32_t));
  work->second_base = (int32_t *)work_array(at, &bytes, strips * MATCH_STRIP, sizeof(int32_t));
  work->first_best = (uint64_t *)work_array(at, &bytes, rows, sizeof(uint64_t));
  work->first_second = (uint64_t *)work_array(at, &bytes, rows, sizeof(uint64_t));
  work->second_best = (uint64_t *)work_array(at, &bytes, columns, sizeof(uint64_t));
  work->second_second = (uint64_t *)work_array(at, &bytes, columns, sizeof(uint64_t));
  work->first_places = (match_place *)work_array(at, &bytes, guided ? rows : 0, sizeof(match_place));
  work->second_places = (match_place *)work_array(at, &bytes, guided ? columns : 0, sizeof(match_place));
  return bytes;
}

/* ------------------------------------------------------------------ before the squares */

typedef struct norms_args {
  const uint8_t *first, *second; /* null: descriptors are floats, which have no norms */
  uint32_t first_count, second_count, second_padded;
  int32_t *first_norms, *second_base;
  uint64_t *best[2], *second_best[2]; /* keys of first's features, and of second's */
} norms_args;

/*
 * Does      squared norms of 8-bit descriptors; key bases of second's; initial values of all features' best keys.
 * Launch    8 lanes per feature: first's, then second's up to whole strips.
 * Shared    none. Reads descriptors, 16-byte aligned. Writes the work. Barriers: none.
 * Limits    any counts. Order: repeatable, integers. Cost: 128 bytes read a feature, bound by memory.
 */
__global__ void __launch_bounds__(THREADS) match_norms_kernel(const __grid_constant__ norms_args p) {
  const uint64_t item = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
  const bool of_second = item >= p.first_count;
  const uint32_t i = (uint32_t)(of_second ? item - p.first_count : item), segment = threadIdx.x % LANES;
  const bool there = i < (of_second ? p.second_count : p.first_count);
  const uint8_t *list = of_second ? p.second : p.first;
  uint32_t norm = 0;
  if (list && there) {
    const uint4 v = ((const uint4 *)(list + (size_t)i * MATCH_LENGTH))[segment];
    norm = __dp4a(v.x, v.x, __dp4a(v.y, v.y, __dp4a(v.z, v.z, __dp4a(v.w, v.w, 0u))));
  }
  norm = lanes_reduce_sum<LANES>(norm);
  if (segment != 0) return;
  if (there) p.best[of_second][i] = p.second_best[of_second][i] = MATCH_NO_KEY;
  if (!list) return;
  if (!of_second)
    p.first_norms[i] = (int32_t)norm;
  else if (i < p.second_padded)
    p.second_base[i] = there ? (int32_t)(norm << MATCH_KEY_SHIFT) | match_column_number(i) : MATCH_NO_KEY_32;
}

stage_status cuda_match_norms_launch(const match_args *args, const cuda_match_work *work, cuda_stream stream) {
  const bool norms = args->type == MATCH_U8;
  norms_args p = {norms ? (const uint8_t *)args->first.descriptors : NULL,
                  norms ? (const uint8_t *)args->second.descriptors : NULL,
                  args->first.count,
                  args->second.count,
                  (args->second.count + MATCH_STRIP - 1u) / MATCH_STRIP * MATCH_STRIP,
                  work->first_norms,
                  work->second_base,
                  {work->first_best, work->second_best},
                  {work->first_second, work->second_second}};
  assert(args->first.count <= CUDA_MATCH_COUNT_MAX && args->second.count <= CUDA_MATCH_COUNT_MAX);
  const uint64_t items = (uint64_t)p.first_count + p.second_padded;
  if (items == 0) return STAGE_OK;
  return launch(match_norms_kernel, blocks_of(items * LANES), THREADS, 0, stream, p);
}

/* Returns x and y of a record of 24 bytes. */
__device__ __forceinline__ static float2 record_position(const void *keypoints, uint32_t i) {
  const float *record = (const float *)keypoints + (size_t)i * RECORD_FLOATS;
  return make_float2(record[0], record[1]);
}

/*
 * Does      match_place_first or match_place_second of each keypoint. Launch: a thread each. Shared: none.
 * Reads     records of 24 bytes. Writes places. Barriers: none. Limits: any count.
 * Order     a place is one thread's. Cost: some 20 double operations, 56 bytes.
 */
__global__ void __launch_bounds__(THREADS)
    match_places_kernel(const __grid_constant__ match_guide guide, bool of_second, const void *keypoints,
                        uint32_t count, match_place *places) {
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= count) return;
  const float2 at = record_position(keypoints, i);
  places[i] = of_second ? match_place_second(&guide, at.x, at.y) : match_place_first(&guide, at.x, at.y);
}

stage_status cuda_match_places_launch(const match_guide *guide, bool of_second, const void *keypoints, uint32_t count,
                                      match_place *places, cuda_stream stream) {
  assert((uintptr_t)keypoints % sizeof(float) == 0 && count <= CUDA_MATCH_COUNT_MAX);
  if (count == 0) return STAGE_OK;
  return launch(match_places_kernel, blocks_of(count), THREADS, 0, stream, *guide, of_second, keypoints, count, places);
}

/* ------------------------------------------------------------------ after the squares */

/* Both directions: forward, then backward unless its count is 0. */
typedef struct settle_both_args {
  settle_args way[2];
} settle_both_args;

/*
 * Does      final keys to the two nearest. Launch: one thread per feature, forward's first. Shared: none.
 * Reads     best, second. Writes nearest. Barriers: none. Limits: any count. Order: repeatable. Cost: 32 bytes.
 */
__global__ void __launch_bounds__(THREADS) match_settle_kernel(const __grid_constant__ settle_both_args both) {
  const uint64_t item = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
  const bool back = item >= both.way[0].own_count;
  const settle_args &p = both.way[back];
  const uint64_t i = back ? item - both.way[0].own_count : item;
  if (i >= p.own_count) return;
  const match_two t = {p.best[i], p.second[i]};
  p.nearest[i] = match_nearest_of_keys(p.type, t);
}

/*
 * Does      the same, if the second nearest was not searched in the group of the best: the group of a row, or of a
 *           column (with row and column exchanged).
 * Launch    one warp per feature, forward's first. Shared: none.
 * Reads     keys, descriptors (16-byte aligned), norms. Writes nearest. Barriers: none.
 * Limits    any count. Order: repeatable, integers. Cost: 2 KB read a feature; two dependent reads of the L2 cache.
 */
__global__ void __launch_bounds__(THREADS) match_settle_group_kernel(const __grid_constant__ settle_both_args both) {
  const uint64_t item = ((uint64_t)blockIdx.x * THREADS + threadIdx.x) / WARP_LANES;
  const bool back = item >= both.way[0].own_count;
  const settle_args &p = both.way[back];
  const uint64_t i = back ? item - both.way[0].own_count : item;
  if (i >= p.own_count) return;
  match_two t = {p.best[i], p.second[i]};
  t.second = min(t.second, group_second(p, (uint32_t)i, t));
  if (threadIdx.x % WARP_LANES == 0) p.nearest[i] = match_nearest_of_keys(MATCH_U8, t);
}

stage_status cuda_match_settle_launch(const match_args *args, const cuda_match_work *work, bool grouped,
                                      cuda_stream stream) {
  const uint8_t *first = (const uint8_t *)args->first.descriptors, *second = (const uint8_t *)args->second.descriptors;
  const uint32_t back_count = args->backward ? args->second.count : 0;
  const settle_both_args both = {
      {{args->type, first, second, work->first_norms, work->second_base, 0, MATCH_KEY_SHIFT, args->first.count,
        args->second.count, work->first_best, work->first_second, args->forward},
       {args->type, second, first, work->second_base, work->first_norms, MATCH_KEY_SHIFT, 0, back_count,
        args->first.count, work->second_best, work->second_second, args->backward}}};
  const uint64_t items = (uint64_t)args->first.count + back_count;
  assert(!grouped || args->type == MATCH_U8);
  if (items == 0) return STAGE_OK;
  return grouped ? launch(match_settle_group_kernel, blocks_of(items * WARP_LANES), THREADS, 0, stream, both)
                 : launch(match_settle_kernel, blocks_of(items), THREADS, 0, stream, both);
}

/* ------------------------------------------------------------------ pairs */

/* Returns the features in a tile: first's features are cut into at most PAIR_TILES_MAX tiles, one block each. */
static uint32_t pair_tile(uint32_t count) {
  const uint32_t steps = (count + PAIR_TILES_MAX * THREADS - 1u) / (PAIR_TILES_MAX * THREADS);
  return (steps > 1u ? steps : 1u) * THREADS;
}

/*
 * Does      counts the pairs kept of each tile: match_keeps. Launch: one block per tile, one thread per feature in
 *           turn.
 * Shared    32 words. Reads both directions' nearest. Writes tile_counts. Barriers: of the reduction.
 * Limits    any count. Order: repeatable, integers. Cost: 16 to 32 bytes per feature.
 */
__global__ void __launch_bounds__(THREADS)
    match_count_kernel(const __grid_constant__ cuda_match_pairs_args p, uint32_t tile) {
  __shared__ uint32_t shared[WARP_LANES];
  const uint32_t first = blockIdx.x * tile;
  uint32_t kept = 0;
  for (uint32_t i = first + threadIdx.x; i < min(first + tile, p.count); i += THREADS)
    kept += match_keeps(&p.limits, p.forward, p.backward, i) ? 1u : 0u;
  kept = block_reduce_sum(kept, shared);
  if (threadIdx.x == 0) p.tile_counts[blockIdx.x] = kept;
}

/*
 * Does      writes the pairs kept by ascending first, and their number. Launch: as match_count_kernel.
 * Shared    32 words. Reads tile_counts, nearest. Writes pairs, pair_count. Barriers: of the sums.
 * Limits    any count. Order: repeatable: a pair's position is the number of pairs kept before it.
 * Cost      16 to 32 bytes per feature and 16 per pair; into host memory bound by the bus.
 */
__global__ void __launch_bounds__(THREADS)
    match_pairs_kernel(const __grid_constant__ cuda_match_pairs_args p, uint32_t tile) {
  __shared__ uint32_t shared[WARP_LANES];
  const uint32_t first = blockIdx.x * tile, end = min(first + tile, p.count);
  uint32_t at = compact_before(p.tile_counts, blockIdx.x, shared);
  for (uint32_t step = first; step < end; step += THREADS) {
    const uint32_t i = step + threadIdx.x;
    const bool kept = i < end && match_keeps(&p.limits, p.forward, p.backward, i);
    uint32_t total;
    const uint32_t before = block_scan_exclusive(kept ? 1u : 0u, shared, &total);
    if (kept) {
      const match_pair pair = match_pair_of(i, &p.forward[i]);
      ((uint4 *)p.pairs)[at + before] =
          make_uint4(pair.first, pair.second, __float_as_uint(pair.distance), __float_as_uint(pair.next_distance));
    }
    at += total;
  }
  if (blockIdx.x + 1u == gridDim.x && threadIdx.x == 0) *p.pair_count = at;
}

stage_status cuda_match_pairs_launch(const cuda_match_pairs_args *args, cuda_stream stream) {
  const uint32_t tile = pair_tile(args->count), tiles = args->count ? (args->count + tile - 1u) / tile : 1u;
  assert(args->count <= CUDA_MATCH_COUNT_MAX && tiles <= PAIR_TILES_MAX && (uintptr_t)args->pairs % 16u == 0);
  const stage_status st = launch(match_count_kernel, tiles, THREADS, 0, stream, *args, tile);
  return st == STAGE_OK ? launch(match_pairs_kernel, tiles, THREADS, 0, stream, *args, tile) : st;
}

/* ------------------------------------------------------------------ the steps in order */

stage_status cuda_match_prepare(void) { return cuda_match_products_prepare(); }

static stage_status guided_nearest(const match_args *args, cuda_stream stream) {
  stage_status st = args->first.count ? cuda_match_guided_launch(args, false, stream) : STAGE_OK;
  if (st == STAGE_OK && args->backward && args->second.count) st = cuda_match_guided_launch(args, true, stream);
  return st;
}

stage_status cuda_match_nearest_launch(const match_args *args, const cuda_match_work *work, cuda_match_variant variant,
                                       cuda_stream stream) {
  if (args->guide != MATCH_UNGUIDED) return guided_nearest(args, stream);
  const bool grouped = args->type == MATCH_U8 && variant != CUDA_MATCH_PLAIN;
  stage_status st = cuda_match_norms_launch(args, work, stream);
  if (st == STAGE_OK && args->first.count > 0 && args->second.count > 0) {
    if (grouped)
      st = cuda_match_products_launch(args, work, variant == CUDA_MATCH_TENSOR_NARROW, stream);
    else
      st = cuda_match_tiles_launch(args, work, stream);
  }
  return st == STAGE_OK ? cuda_match_settle_launch(args, work, grouped, stream) : st;
}
