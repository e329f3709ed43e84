/* Where codes begin: subsequences of a JPEG's coded data decoded beside each other until their states agree. */
#include "cuda/jpeg/jpeg_sync.h"

#include "cuda/device/launch.cuh"
#include "cuda/prim/block_reduce.cuh"

/* What decoding a subsequence comes to. */
struct decoded {
  uint32_t exit, blocks, luma;
};

/* Errors are left to the decoding that counts: a state that was guessed meets many. */
static __device__ __forceinline__ decoded decode(const scan_view &v, const jpeg_huffman *tables,
                                                 const staged_bits &bits, const subsequence &own, uint32_t entry) {
  jpeg_scan_state state = jpeg_state_unpack(entry, own.first);
  bit_window window = window_at(bits, state.bit);
  decoded d = {};
  while (state.bit < own.end) {
    const uint32_t look = window_move(bits, window, state.bit);
    const uint32_t step = jpeg_scan_step(tables, &v.shape, state, look);
    if (state.index == 0 && is_luma(v.shape, state.block)) d.luma += (uint32_t)jpeg_step_value(step, look);
    d.blocks += jpeg_scan_advance(&v.shape, &state, step);
  }
  d.exit = jpeg_state_pack(state, own.end);
  return d;
}

/*
 * Does      one round for a tile: each subsequence is decoded from the state in which the one before it ended, again
 *           and again until no state of the tile changes. The first round guesses that a code, a block and an MCU begin
 *           where a subsequence does; later ones take the state behind the tile before from the last round.
 * Launch    blocks of 128 threads, a thread a subsequence; a block a tile.
 * Shared    tables and the tile's coded words: 39 KB.
 * Reads     tables, intervals, data, the other list of carry; in later rounds entry, exit, blocks, luma. Writes those, its list of
 *           carry, tile_blocks, tile_luma; in the first round 0 to refused.
 * Barriers  two a repetition: states are read, and written, by all.
 * Limits    a subsequence is decoded at most 128 times: each repetition settles one more from the first. Bits of data
 *           are read up to JPEG_WORDS_AHEAD words behind their end.
 * Order     repeatable.
 * Cost      some 30 instructions a code and repetition; bound by the latency of table look-ups. Photographs need 4 to 12
 *           repetitions in the first round, in all but the first few subsequences of a tile fewer.
 */
template <bool FIRST> __global__ void __launch_bounds__(SCAN_THREADS) sync_kernel(scan_view v, uint32_t round) {
  __shared__ __align__(16) jpeg_huffman s_tables[JPEG_HUFFMAN_TABLES];
  __shared__ uint32_t s_words[SCAN_STAGED_WORDS], s_exit[SCAN_THREADS], s_sum[32];
  const uint32_t tile = blockIdx.x, t = threadIdx.x;
  const subsequence own = subsequence_of(v, tile * SCAN_THREADS + t);
  const uint32_t *const carried = v.carry + (size_t)((round + 1) % 2) * v.tiles;
  const uint32_t before = FIRST || tile == 0 ? 0u : carried[tile - 1];
  uint32_t entry = FIRST ? 0u : v.entry[own.number];
  decoded d = {};
  bool changed = FIRST;
  if (!FIRST) {
    d.exit = v.exit[own.number];
    changed = t == 0 && !own.starts && before != entry;
    if (t == SCAN_THREADS - 1 || own.number + 1 == v.shape.subsequences)
      v.carry[(size_t)(round % 2) * v.tiles + tile] = d.exit;
    if (!__syncthreads_or(changed)) return;
    d.blocks = v.blocks[own.number];
    d.luma = v.luma[own.number];
    if (changed) entry = before;
  }
  const staged_bits bits = stage_tile(v, tile, s_tables, s_words);
  __syncthreads();
  for (int repetition = 0; repetition < SCAN_THREADS; repetition++) {
    if (changed && own.is_there) d = decode(v, s_tables, bits, own, entry);
    s_exit[t] = d.exit;
    __syncthreads();
    const uint32_t now = t == 0 || own.starts ? entry : s_exit[t - 1];
    changed = now != entry && own.is_there;
    entry = now;
    if (!__syncthreads_or(changed)) break;
  }
  if (FIRST && tile == 0 && t == 0) *v.refused = 0;
  const uint32_t last = min((tile + 1) * SCAN_THREADS, v.shape.subsequences) - 1;
  const bool counts = own.is_there && own.interval == interval_of(v, last);
  const uint32_t blocks = block_reduce_sum(counts ? d.blocks : 0u, s_sum);
  const uint32_t luma = block_reduce_sum(counts ? d.luma : 0u, s_sum);
  if (t == 0) {
    v.tile_blocks[tile] = blocks;
    v.tile_luma[tile] = luma;
  }
  if (!own.is_there) return;
  v.entry[own.number] = entry;
  v.exit[own.number] = d.exit;
  v.blocks[own.number] = d.blocks;
  v.luma[own.number] = d.luma;
  if (own.number == last) v.carry[(size_t)(round % 2) * v.tiles + tile] = d.exit;
}

stage_status jpeg_sync_launch(const scan_view *view, int32_t round, cuda_stream stream) {
  assert(view->tiles > 0);
  if (round == 0) return launch(sync_kernel<true>, view->tiles, SCAN_THREADS, 0, stream, *view, 0u);
  return launch(sync_kernel<false>, view->tiles, SCAN_THREADS, 0, stream, *view, (uint32_t)round);
}
