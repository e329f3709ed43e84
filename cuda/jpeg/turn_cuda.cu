/* Pictures turned by their EXIF orientation. */
#include "cuda/jpeg/turn_cuda.h"

#include "cuda/device/launch.cuh"

enum { TURN_TILE = 32, TURN_ROWS = 8 };

/*
 * Does      every pixel of the source to its place in the target: one of the eight orientations.
 * Launch    blocks of 32 x 8 threads, a tile of 32 x 32 pixels each; grid: tiles of the source.
 * Shared    a tile, so that rows of the target are written along even where they were columns.
 * Reads     from: bytes, any pitch. Writes to.
 * Barriers  one.
 * Limits    sides up to 65535 x 32. Order: repeatable.
 * Cost      2 bytes of memory a pixel: bound by memory.
 */
__global__ void __launch_bounds__(TURN_TILE *TURN_ROWS) turn_kernel(turn_args a) {
  __shared__ unsigned char tile[TURN_TILE][TURN_TILE + 1];
  const int32_t left = (int32_t)blockIdx.x * TURN_TILE, top = (int32_t)blockIdx.y * TURN_TILE;
  for (int32_t i = (int32_t)threadIdx.y; i < TURN_TILE; i += TURN_ROWS) {
    const int32_t x = left + (int32_t)threadIdx.x, y = top + i;
    if (x < a.width && y < a.height) tile[i][threadIdx.x] = a.from[(size_t)y * a.from_pitch + (size_t)x];
  }
  __syncthreads();
  const bool along = a.step_x == 1 || a.step_x == -1;
  for (int32_t i = (int32_t)threadIdx.y; i < TURN_TILE; i += TURN_ROWS) {
    const int32_t column = along ? (int32_t)threadIdx.x : i, row = along ? i : (int32_t)threadIdx.x;
    const int32_t x = left + column, y = top + row;
    if (x < a.width && y < a.height) a.to[a.start + x * a.step_x + y * a.step_y] = tile[row][column];
  }
}

stage_status turn_launch(const turn_args *args, cuda_stream stream) {
  assert(args->from && args->to && args->width > 0 && args->height > 0);
  const dim3 tiles = launch_grid_2d(args->width, TURN_TILE, args->height, TURN_TILE);
  return launch(turn_kernel, tiles, dim3(TURN_TILE, TURN_ROWS), 0, stream, *args);
}
