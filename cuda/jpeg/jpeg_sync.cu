/* Where codes begin: subsequences of a JPEG's coded data decoded beside each other until their states agree. */
#include "cuda/jpeg/jpeg_sync.h"

#include "cuda/device/launch.cuh"
#include "cuda/prim/block_reduce.cuh"

/* A tile's subsequences, which any thread may decode. */
struct tile_states {
  uint32_t first[SCAN_THREADS + 1]; /* bits; a subsequence ends where the next begins */
  uint32_t entry[SCAN_THREADS], exit[SCAN_THREADS], blocks[SCAN_THREADS], luma[SCAN_THREADS];
  uint32_t list[SCAN_THREADS], listed[2]; /* those that are to be decoded; their numbers by turns */
};

/* Decodes a subsequence. Errors are left to the decoding that counts: a state that was guessed meets many. */
static __device__ __forceinline__ void decode(const scan_view &v, const jpeg_huffman *tables, const staged_bits &bits,
                                              tile_states &tile, uint32_t which) {
  const jpeg_shape &shape = v.shape;
  const uint32_t end = tile.first[which + 1];
  jpeg_scan_state state = jpeg_state_unpack(tile.entry[which], tile.first[which]);
  bit_window window = window_at(bits, state.bit);
  uint32_t blocks = 0, luma = 0;
  while (state.bit < end) {
    const uint32_t look = window_move(bits, window, state.bit);
    const uint32_t step = jpeg_scan_step(tables, v.tables->orders, &shape, state, look);
    if (state.index == 0 && is_luma(shape, state.block)) luma += (uint32_t)jpeg_step_value(step, look);
    blocks += jpeg_scan_advance(&shape, &state, step);
  }
  tile.exit[which] = jpeg_state_pack(state, end);
  tile.blocks[which] = blocks;
  tile.luma[which] = luma;
}

/* Lists the threads' subsequences that are to be decoded, in any order; all threads of the block. Returns how many; one barrier. */
static __device__ __forceinline__ uint32_t list_changed(tile_states &tile, bool changed, uint32_t repetition) {
  const uint32_t votes = __ballot_sync(WARP_ALL, changed), lane = threadIdx.x % WARP_LANES;
  uint32_t at = 0;
  if (lane == 0 && votes) at = atomicAdd(&tile.listed[repetition % 2], (uint32_t)__popc(votes));
  at = __shfl_sync(WARP_ALL, at, 0);
  if (changed) tile.list[at + (uint32_t)__popc(votes & ((1u << lane) - 1u))] = threadIdx.x;
  if (threadIdx.x == 0) tile.listed[(repetition + 1) % 2] = 0;
  __syncthreads();
  return tile.listed[repetition % 2];
}

/* Decodes what is listed until each subsequence begins as the one before it ended. */
static __device__ __forceinline__ void settle(const scan_view &v, const jpeg_huffman *tables, const staged_bits &bits,
                                              tile_states &tile, const subsequence &own, bool changed) {
  const uint32_t t = threadIdx.x;
  for (uint32_t repetition = 0; repetition < SCAN_THREADS; repetition++) {
    const uint32_t count = list_changed(tile, changed, repetition);
    if (count == 0) break;
    if (t < count) decode(v, tables, bits, tile, tile.list[t]);
    __syncthreads();
    const uint32_t now = t == 0 || own.starts ? tile.entry[t] : tile.exit[t - 1];
    changed = own.is_there && now != tile.entry[t];
    tile.entry[t] = now;
  }
}

/*
 * Does      one round for a tile: each subsequence is decoded from the state in which the one before it ended, again
 *           and again until no state of the tile changes. The first round guesses that a code, a block and an MCU begin
 *           where a subsequence does; later ones take the state behind the tile before from the last round.
 * Launch    blocks of 128 threads, a thread a subsequence; a block a tile. What is to be decoded again is few and far
 *           between, so it is listed and goes to the first threads.
 * Shared    tables, the tile's coded words and states: 42 KB.
 * Reads     tables, intervals, data, the other list of carry; in later rounds entry, exit, blocks, luma. Writes those, its list of
 *           carry, tile_blocks, tile_luma; in the first round 0 to refused.
 * Barriers  two a repetition: lists are written, and states are read, by all.
 * Limits    at most 128 repetitions: each settles one more subsequence from the first. Bits of data are read up to
 *           JPEG_WORDS_AHEAD words behind their end.
 * Order     repeatable.
 * Cost      some 40 instructions a code, decoded 2 to 5 times; bound by the latency of table look-ups, 4 to 40 subsequences
 *           one after another.
 */
template <bool FIRST> __global__ void __launch_bounds__(SCAN_THREADS) sync_kernel(scan_view v, uint32_t round) {
  __shared__ __align__(16) jpeg_huffman s_tables[JPEG_HUFFMAN_TABLES];
  __shared__ uint32_t s_words[SCAN_STAGED_WORDS], s_sum[32];
  __shared__ tile_states s_tile;
  const uint32_t tile = blockIdx.x, t = threadIdx.x;
  const uint32_t last = min((tile + 1) * SCAN_THREADS, v.shape.subsequences) - 1;
  const subsequence own = subsequence_of(v, tile * SCAN_THREADS + t);
  const uint32_t *const carried = v.carry + (size_t)((round + 1) % 2) * v.tiles;
  uint32_t *const carry = v.carry + (size_t)(round % 2) * v.tiles;
  if (own.is_there) s_tile.first[t] = own.first;
  if (own.is_there && own.number == last) s_tile.first[t + 1] = own.end;
  s_tile.entry[t] = FIRST ? 0u : v.entry[own.number];
  if (t < 2) s_tile.listed[t] = 0;
  bool changed = FIRST && own.is_there;
  if (FIRST) {
    if (tile == 0 && t == 0) *v.refused = 0;
  } else {
    s_tile.exit[t] = v.exit[own.number];
    s_tile.blocks[t] = v.blocks[own.number];
    s_tile.luma[t] = v.luma[own.number];
    changed = t == 0 && !own.starts && carried[tile - 1] != s_tile.entry[t];
    if (changed) s_tile.entry[t] = carried[tile - 1];
    if (t == 0) carry[tile] = v.exit[last];
    if (!__syncthreads_or(changed)) return;
  }
  const staged_bits bits = stage_tile(v, tile, s_tables, s_words);
  __syncthreads();
  settle(v, s_tables, bits, s_tile, own, changed);
  const bool counts = own.is_there && own.interval == interval_of(v, last);
  const uint32_t blocks = block_reduce_sum(counts ? s_tile.blocks[t] : 0u, s_sum);
  const uint32_t luma = block_reduce_sum(counts ? s_tile.luma[t] : 0u, s_sum);
  if (t == 0) {
    v.tile_blocks[tile] = blocks;
    v.tile_luma[tile] = luma;
    carry[tile] = s_tile.exit[last - tile * SCAN_THREADS];
  }
  if (!own.is_there) return;
  v.entry[own.number] = s_tile.entry[t];
  v.exit[own.number] = s_tile.exit[t];
  v.blocks[own.number] = s_tile.blocks[t];
  v.luma[own.number] = s_tile.luma[t];
}

stage_status jpeg_sync_launch(const scan_view *view, int32_t round, cuda_stream stream) {
  assert(view->tiles > 0);
  if (round == 0) return launch(sync_kernel<true>, view->tiles, SCAN_THREADS, 0, stream, *view, 0u);
  return launch(sync_kernel<false>, view->tiles, SCAN_THREADS, 0, stream, *view, (uint32_t)round);
}
