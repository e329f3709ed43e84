/* Finds where codes begin: groups of a JPEG's subsequences are decoded in parallel until their states agree. */
#include "cuda/jpeg/jpeg_scan.cuh"

#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

enum : uint32_t { NO_STATE = UINT32_MAX };
static_assert(SYNC_TILE % SCAN_THREADS == 0, "sums are of whole tiles of the coefficients");

/* Decodes a subsequence from an entry state and stores the result. Returns the exit state. Errors are ignored here,
 * because guessed states often cause them; the final decoding detects them. */
static __device__ __forceinline__ uint32_t decode(const scan_view &v, const jpeg_huffman *tables,
                                                  const staged_bits &bits, const subsequence &own, uint32_t entry) {
  const jpeg_shape &shape = v.shape;
  jpeg_scan_state state = jpeg_state_unpack(entry, own.first);
  bit_window window = window_at(bits, state.bit);
  uint32_t blocks = 0, luma = 0;
  while (state.bit < own.end) {
    const uint32_t look = window_move(bits, window, state.bit);
    const uint32_t step = jpeg_scan_step(tables, v.tables->orders, &shape, state, look);
    const uint32_t value = (uint32_t)jpeg_step_value(step, look); /* added unconditionally: a branch would take
                                                                   * longer */
    luma += state.index == 0 && is_luma(shape, state.block) ? value : 0u;
    blocks += jpeg_scan_advance(&shape, &state, step);
  }
  const uint32_t exit = jpeg_state_pack(state, own.end);
  v.entry[own.number] = entry;
  v.exit[own.number] = exit;
  v.blocks[own.number] = blocks;
  v.luma[own.number] = luma;
  return exit;
}

/* Decodes a group from its first subsequence on. again: stops at a subsequence whose exit is as before, because
 * nothing changes after it. */
static __device__ __forceinline__ void decode_group(const scan_view &v, const jpeg_huffman *tables,
                                                    const staged_bits &bits, uint32_t first, uint32_t entry,
                                                    bool again) {
  const uint32_t beyond = min(first + SYNC_GROUP, v.shape.subsequences);
  subsequence own = subsequence_of(v, first);
  while (true) {
    const uint32_t before = again ? v.exit[own.number] : NO_STATE, exit = decode(v, tables, bits, own, entry);
    if (exit == before || own.number + 1 == beyond) return;
    own = subsequence_behind(v, own);
    entry = own.starts ? 0u : exit;
  }
}

/* Lists the groups that changed, in any order. All threads of the block must call; one barrier. Returns the number
 * of listed groups. */
static __device__ __forceinline__ uint32_t list_changed(sync_shared &s, bool changed, uint32_t repetition) {
  const uint32_t votes = __ballot_sync(WARP_ALL, changed), lane = threadIdx.x % WARP_LANES;
  uint32_t at = 0;
  if (lane == 0 && votes) at = atomicAdd(&s.listed[repetition % 2], (uint32_t)__popc(votes));
  at = __shfl_sync(WARP_ALL, at, 0);
  if (changed) s.list[at + (uint32_t)__popc(votes & ((1u << lane) - 1u))] = threadIdx.x;
  if (threadIdx.x == 0) s.listed[(repetition + 1) % 2] = 0;
  __syncthreads();
  return s.listed[repetition % 2];
}

/* Decodes the listed groups, until each group begins with the end state of the group before it. first: the thread's
 * group. follows: the group before it is in this tile and gives its start. */
static __device__ __forceinline__ void settle(const scan_view &v, sync_shared &s, const staged_bits &bits,
                                              uint32_t first, bool follows, bool changed, bool all) {
  const uint32_t t = threadIdx.x, begin = blockIdx.x * SYNC_TILE;
  for (uint32_t repetition = 0; repetition <= SYNC_THREADS; repetition++) {
    const uint32_t count = list_changed(s, changed, repetition);
    if (count == 0) break;
    if (t < count) {
      const uint32_t which = s.list[t];
      decode_group(v, s.tables, bits, begin + which * SYNC_GROUP, s.entry[which], !all || repetition > 0);
    }
    __syncthreads();
    const uint32_t now = follows ? v.exit[first - 1] : s.entry[t];
    changed = now != s.entry[t];
    s.entry[t] = now;
  }
}

/* Sums up the coefficient tiles in this tile, each from its last restart. All threads of the block must call. */
static __device__ __forceinline__ void add_up(const scan_view &v, uint32_t begin, uint32_t beyond, uint32_t *s_sum) {
  for (uint32_t tile = begin / SCAN_THREADS; tile * SCAN_THREADS < beyond; tile++) {
    const uint32_t last = min((tile + 1) * SCAN_THREADS, beyond) - 1;
    const uint32_t first = max(tile * SCAN_THREADS, v.intervals[interval_of(v, last)].first_subsequence);
    uint32_t blocks = 0, luma = 0;
    for (uint32_t i = first + threadIdx.x; i <= last; i += SYNC_THREADS) {
      blocks += v.blocks[i];
      luma += v.luma[i];
    }
    blocks = block_reduce_sum(blocks, s_sum);
    luma = block_reduce_sum(luma, s_sum);
    if (threadIdx.x > 0) continue;
    v.tile_blocks[tile] = blocks;
    v.tile_luma[tile] = luma;
  }
}

/*
 * Does      one round for a tile of groups of 4 subsequences. Each group is decoded from the end state of the group
 *           before it, repeatedly until no state of the tile changes. The first round guesses that a code, a block
 *           and an MCU begin at the start of each group. Later rounds begin with the end state of the tile before,
 *           from the last round. A repeated decoding usually reaches a known state within a few subsequences, and
 *           stops there.
 * Launch    blocks of 64 threads, one thread per group; one block per tile. Groups to decode again are few and
 *           scattered, so they are listed and assigned to the first threads.
 * Shared    tables, the tile's coded words and states: 58 KB, dynamic.
 * Reads     tables, intervals, data, the other list of carry; in later rounds entry, exit, blocks, luma. Writes those,
 *           its list of carry, tile_blocks, tile_luma; in the first round 0 to refused.
 * Barriers  two per repetition: all threads have written the lists, and have read the states.
 * Limits    at most 65 repetitions: each settles at least one more group, counted from the first. Reads up to
 *           JPEG_WORDS_AHEAD words after the end of the data.
 * Order     repeatable.
 * Cost      some 40 instructions per code, decoded 1.5 to 2.2 times; bound by the latency of table look-ups: of 4
 *           subsequences in sequence, plus as many as the longest path to a right state has.
 */
template <bool FIRST> static __device__ __forceinline__ void sync_tile(const scan_view &v, uint32_t round) {
  extern __shared__ __align__(16) uint8_t s_memory[];
  sync_shared &s = *reinterpret_cast<sync_shared *>(s_memory);
  const uint32_t tile = blockIdx.x, t = threadIdx.x, begin = tile * SYNC_TILE;
  const uint32_t beyond = min(begin + SYNC_TILE, v.shape.subsequences), first = begin + t * SYNC_GROUP;
  const bool is_there = first < beyond, follows = is_there && t > 0 && !subsequence_of(v, first).starts;
  const uint32_t *const carried = v.carry + (size_t)((round + 1) % 2) * v.tiles;
  uint32_t *const carry = v.carry + (size_t)(round % 2) * v.tiles;
  uint32_t entry = FIRST || !is_there ? 0u : v.entry[first];
  bool changed = FIRST && is_there;
  if (t < 2) s.listed[t] = 0;
  if (FIRST) {
    if (tile == 0 && t == 0) *v.refused = 0;
  } else {
    changed = t == 0 && !subsequence_of(v, first).starts && carried[tile - 1] != entry;
    if (changed) entry = carried[tile - 1];
    if (t == 0) carry[tile] = v.exit[beyond - 1];
    if (!__syncthreads_or(changed)) return;
  }
  s.entry[t] = entry;
  const staged_bits bits = stage_tile<SYNC_THREADS, SYNC_GROUP>(v, begin, s.tables, s.words);
  __syncthreads();
  settle(v, s, bits, first, follows, changed, FIRST);
  add_up(v, begin, beyond, s.sum);
  if (t == 0) carry[tile] = v.exit[beyond - 1];
}

#define SYNC_KERNEL(name, FIRST)                                                                                       \
  extern "C" __global__ void __launch_bounds__(SYNC_THREADS) name(scan_view v, uint32_t round) {                       \
    sync_tile<FIRST>(v, round);                                                                                        \
  }
SYNC_KERNEL(sync_first_kernel, true)
SYNC_KERNEL(sync_next_kernel, false)

JPEG_SYNC_KERNELS(LAUNCH_CHECK)
