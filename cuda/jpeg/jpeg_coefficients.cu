/* Decodes the luma coefficients of a JPEG once the states of its subsequences are known. */
#include "cuda/jpeg/jpeg_scan.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

/* Position of a subsequence in its restart interval. */
struct position {
  uint32_t blocks, luma; /* before the subsequence: number of blocks, and sum of their DC differences */
};

/* Computes the sums over the subsequences that precede each one, from the start of its interval, within the tile
 * and before it. All threads of the block call it. s_before: 2 x SCAN_THREADS words. */
static __device__ __forceinline__ position position_of(const scan_view &v, const subsequence &own, uint32_t tile,
                                                       uint32_t *s_before, uint32_t *s_sum) {
  const uint32_t first = tile * SCAN_THREADS, started = v.intervals[own.interval].first_subsequence;
  const uint32_t tile_started = v.intervals[interval_of(v, first)].first_subsequence;
  uint32_t total, blocks = 0, luma = 0;
  for (uint32_t i = tile_started / SCAN_THREADS + threadIdx.x; i < tile; i += SCAN_THREADS) {
    blocks += v.tile_blocks[i];
    luma += v.tile_luma[i];
  }
  position p;
  blocks = block_reduce_sum(blocks, s_sum);
  luma = block_reduce_sum(luma, s_sum);
  p.blocks = block_scan_exclusive(own.is_there ? v.blocks[own.number] : 0u, s_sum, &total);
  p.luma = block_scan_exclusive(own.is_there ? v.luma[own.number] : 0u, s_sum, &total);
  s_before[threadIdx.x] = p.blocks;
  s_before[SCAN_THREADS + threadIdx.x] = p.luma;
  __syncthreads();
  const bool here = started >= first;
  p.blocks = here ? p.blocks - s_before[started - first] : p.blocks + blocks;
  p.luma = here ? p.luma - s_before[SCAN_THREADS + started - first] : p.luma + luma;
  return p;
}

/* Decodes a subsequence into coefficients. Returns the reason for refusing the picture, 0 for none. */
static __device__ __forceinline__ uint32_t write_subsequence(const scan_view &v, const jpeg_huffman *tables,
                                                             const uint8_t *positions, const staged_bits &bits,
                                                             const subsequence &own, position at) {
  const jpeg_shape &shape = v.shape;
  const uint32_t mcu_blocks = (uint32_t)shape.mcu_blocks, luma_blocks = (uint32_t)(shape.luma_across * shape.luma_down);
  const uint32_t first_mcu = own.interval * shape.interval_mcus;
  const uint32_t mcus = min(shape.interval_mcus, (uint32_t)shape.mcus_across * (uint32_t)shape.mcus_down - first_mcu);
  jpeg_scan_state state = jpeg_state_unpack(v.entry[own.number], own.first);
  if (at.blocks % mcu_blocks != state.block || at.blocks / mcu_blocks > mcus) return REFUSED_NOT_FOUND;
  uint32_t mcu = at.blocks / mcu_blocks, index = state.index;
  int32_t predicted = (int32_t)at.luma;
  bool wrong = false;
  bit_window window = window_at(bits, state.bit);
  while (state.bit < own.end && mcu < mcus) {
    const uint32_t look = window_move(bits, window, state.bit);
    const uint32_t step = jpeg_scan_step(tables, v.tables->orders, &shape, state, look), block = state.block;
    wrong |= jpeg_step_is_wrong(index, step);
    if (block < luma_blocks && (index == 0 || jpeg_step_size(step) > 0)) {
      const int32_t value = jpeg_step_value(step, look);
      const uint32_t position = index + jpeg_step_skip(step) - 1;
      predicted += index == 0 ? value : 0;
      wrong |= index == 0 && (predicted > JPEG_SUM_MAX || predicted < -JPEG_SUM_MAX);
      if (position < JPEG_COEFFICIENTS)
        v.coefficients[((size_t)(first_mcu + mcu) * luma_blocks + block) * JPEG_COEFFICIENTS + positions[position]] =
            (int16_t)(index == 0 ? predicted : value);
    }
    mcu += jpeg_scan_advance(&shape, &state, step) && state.block == 0;
    index = state.index;
  }
  if (own.ends)
    wrong |= mcu < mcus || index != 0 || state.block != 0 || state.bit > own.end || own.end - state.bit > 7;
  else if (state.bit >= own.end && jpeg_state_pack(state, own.end) != v.entry[own.number + 1])
    return REFUSED_NOT_FOUND;
  else
    wrong |= state.bit < own.end; /* the interval has ended, but data remain */
  return wrong ? REFUSED_DAMAGED : 0;
}

/*
 * Does      decodes each subsequence again and writes its luma coefficients. Refuses the picture if a code is
 *           wrong, if an interval has too few or too many codes, or if a state differs from the end state of the
 *           subsequence before it. The first state is known, so if none differs, all are right.
 * Launch    blocks of 128 threads, one thread per subsequence; one block per tile.
 * Shared    tables, the tile's coded words and sums: 40 KB.
 * Reads     tables, intervals, data, entry, blocks, luma, tile_blocks, tile_luma. Writes coefficients (0 before),
 *           only of MCUs that exist, whatever the data say; refused.
 * Barriers  of the sums; these also order the staging.
 * Limits    as sync_kernel.
 * Order     repeatable; each coefficient is written once, or the picture is refused.
 * Cost      some 50 instructions per code, 2 scattered bytes per coefficient.
 */
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) coefficients_kernel(scan_view v) {
  __shared__ __align__(16) jpeg_huffman s_tables[JPEG_HUFFMAN_TABLES];
  __shared__ uint32_t s_words[JPEG_STAGED_MEMORY(SCAN_THREADS, 1)], s_before[2 * SCAN_THREADS], s_sum[32];
  __shared__ uint8_t s_positions[JPEG_COEFFICIENTS];
  const uint32_t tile = blockIdx.x;
  const subsequence own = subsequence_of(v, tile * SCAN_THREADS + threadIdx.x);
  const staged_bits bits = stage_tile<SCAN_THREADS, 1>(v, tile * SCAN_THREADS, s_tables, s_words);
  if (threadIdx.x < JPEG_COEFFICIENTS) s_positions[threadIdx.x] = v.tables->positions[threadIdx.x];
  const position at = position_of(v, own, tile, s_before, s_sum); /* the barriers inside also order the staging */
  if (!own.is_there) return;
  const uint32_t refused = write_subsequence(v, s_tables, s_positions, bits, own, at);
  if (refused) atomicOr(v.refused, refused);
}

JPEG_COEFFICIENTS_KERNELS(LAUNCH_CHECK)
