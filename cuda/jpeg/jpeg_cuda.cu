/* The decoder's last step: coefficients to pixels. */
#include "cuda/jpeg/jpeg_cuda.h"

#include "cuda/jpeg/jpeg_scan.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"
#include "stages/jpeg_transform.h"

/* Multiplies eight coefficients of a column by their quantisation steps. Returns the sum of the magnitudes. */
static __device__ __forceinline__ int32_t load_column(const scan_view &v, size_t block, uint32_t column,
                                                      int32_t values[JPEG_BLOCK_SIDE]) {
  const size_t at = block * JPEG_BLOCK_SIDE + column;
  const int4 packed = __ldg(reinterpret_cast<const int4 *>(v.coefficients) + at);
  const uint4 steps = __ldg(reinterpret_cast<const uint4 *>(v.tables->quantisation) + column);
  const int32_t pairs[4] = {packed.x, packed.y, packed.z, packed.w};
  const uint32_t step_pairs[4] = {steps.x, steps.y, steps.z, steps.w};
  int32_t sum = 0;
#pragma unroll
  for (int i = 0; i < JPEG_BLOCK_SIDE; i++) {
    const int32_t coefficient = i % 2 ? pairs[i / 2] >> 16 : (int32_t)(int16_t)pairs[i / 2];
    values[i] = coefficient * (int32_t)(step_pairs[i / 2] >> 16 * (i % 2) & 0xffffu);
    sum += abs(values[i]);
  }
  return sum;
}

/* Stores a row of a block; at the picture's edge, only the part inside. */
static __device__ __forceinline__ void store_row(const pixel_target &to, int32_t x, int32_t y, int32_t width,
                                                 const int32_t values[JPEG_BLOCK_SIDE]) {
  uint8_t *const at = to.gray + (to.start + x * to.step_x + y * to.step_y);
  uint32_t pixels[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < JPEG_BLOCK_SIDE; i++) pixels[i / 4] |= (uint32_t)jpeg_pixel(values[i]) << 8 * (i % 4);
  if (to.step_x == 1 && x + JPEG_BLOCK_SIDE <= width && (uintptr_t)at % 8 == 0) {
    *reinterpret_cast<uint2 *>(at) = make_uint2(pixels[0], pixels[1]);
    return;
  }
#pragma unroll
  for (int i = 0; i < JPEG_BLOCK_SIDE; i++)
    if (x + i < width) at[i * to.step_x] = (uint8_t)(pixels[i / 4] >> 8 * (i % 4));
}

/*
 * Does      dequantises luma's blocks, transforms them back (jpeg_transform.h) and writes their pixels, rotated;
 *           refuses the picture if a block's sum exceeds JPEG_SUM_MAX.
 * Launch    blocks of 256 threads: 32 blocks of the picture together, 8 threads each. A thread transforms first a
 *           column, then a row. Grid: parts of a row of picture blocks, rows of picture blocks.
 * Shared    9 KB: the picture blocks between columns and rows; each warp uses only its four.
 * Reads     coefficients, quantisation. Writes gray, each pixel of the picture once; refused.
 * Barriers  a warp's, between columns and rows.
 * Limits    sides up to 65535. Order: repeatable.
 * Cost      3 bytes of memory and some 12 instructions per pixel.
 */
extern "C" __global__ void __launch_bounds__(PIXELS_THREADS) pixels_kernel(scan_view v, pixel_target to) {
  __shared__ int32_t s_blocks[PIXELS_BLOCKS * PIXELS_BLOCK];
  const jpeg_shape &shape = v.shape;
  const uint32_t own = threadIdx.x / JPEG_BLOCK_SIDE, lane = threadIdx.x % JPEG_BLOCK_SIDE;
  const int32_t column = (int32_t)(blockIdx.x * PIXELS_BLOCKS + own), row = (int32_t)blockIdx.y;
  const bool is_there = column * JPEG_BLOCK_SIDE < shape.width;
  const int32_t mcu =
      row / shape.luma_down * shape.mcus_across + min(column / shape.luma_across, shape.mcus_across - 1);
  const int32_t part = row % shape.luma_down * shape.luma_across + column % shape.luma_across;
  int32_t values[JPEG_BLOCK_SIDE];
  int32_t sum =
      load_column(v, (size_t)mcu * (size_t)(shape.luma_across * shape.luma_down) + (size_t)part, lane, values);
  for (int d = 1; d < JPEG_BLOCK_SIDE; d <<= 1) sum += __shfl_xor_sync(WARP_ALL, sum, d);
  const bool too_large = sum > JPEG_SUM_MAX;
  if (too_large && is_there && lane == 0) atomicOr(v.refused, REFUSED_TOO_LARGE);
  int32_t *const block = s_blocks + own * PIXELS_BLOCK;
  if (!too_large) jpeg_transform_8(values, JPEG_COLUMN_SHIFT);
#pragma unroll
  for (int i = 0; i < JPEG_BLOCK_SIDE; i++) block[i * PIXELS_ROW + lane] = values[i];
  __syncwarp();
#pragma unroll
  for (int i = 0; i < JPEG_BLOCK_SIDE; i++) values[i] = block[lane * PIXELS_ROW + i];
  if (!too_large) jpeg_transform_8(values, JPEG_ROW_SHIFT);
  const int32_t y = row * JPEG_BLOCK_SIDE + (int32_t)lane;
  if (is_there && y < shape.height) store_row(to, column * JPEG_BLOCK_SIDE, y, shape.width, values);
}

JPEG_PIXELS_KERNELS(LAUNCH_CHECK)
