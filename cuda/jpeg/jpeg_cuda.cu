/* The decoder on the device: its memory, the order of its kernels, and the last step, coefficients to pixels. */
#include "cuda/jpeg/jpeg_cuda.h"

#include "cuda/jpeg/jpeg_scan.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/device.h"
#include "cuda/runtime/launch.cuh"
#include "stages/jpeg_transform.h"

/* ---- coefficients to pixels */

enum {
  PIXELS_THREADS = 256,
  PIXELS_BLOCKS = PIXELS_THREADS / JPEG_BLOCK_SIDE,
  PIXELS_ROW = JPEG_BLOCK_SIDE + 1,           /* stride between rows of a block in words: neither columns nor rows
                                               * have bank conflicts */
  PIXELS_BLOCK = PIXELS_ROW * JPEG_BLOCK_SIDE /* stride between blocks in words: 8 banks on */
};

/* Destination of the pixels. */
typedef struct pixel_target {
  uint8_t *gray;
  int64_t start, step_x, step_y;
} pixel_target;

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
__global__ void __launch_bounds__(PIXELS_THREADS) pixels_kernel(scan_view v, pixel_target to) {
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

stage_status jpeg_pixels_launch(const scan_view *view, const jpeg_decode_args *args, cuda_stream stream) {
  const jpeg_shape *shape = &view->shape;
  const pixel_target to = {args->gray, args->start, args->step_x, args->step_y};
  const dim3 grid((unsigned)ceil_div(ceil_div(shape->width, JPEG_BLOCK_SIDE), PIXELS_BLOCKS),
                  (unsigned)ceil_div(shape->height, JPEG_BLOCK_SIDE));
  return launch(pixels_kernel, grid, PIXELS_THREADS, 0, stream, *view, to);
}

/* ---- memory and order of kernels */

enum { SCRATCH_ALIGNMENT = 256 };

/* Memory that is handed out piece by piece. base null: pieces are only counted. */
struct arena {
  uint8_t *base;
  size_t used;
};

static void *take(arena *r, size_t bytes) {
  const size_t at = r->used;
  r->used += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
  return r->base ? r->base + at : nullptr;
}

static uint32_t *take_words(arena *r, size_t count) { return static_cast<uint32_t *>(take(r, 4 * count)); }

static size_t coefficient_bytes(const jpeg_shape *shape) {
  return (size_t)shape->mcus_across * (size_t)shape->mcus_down * (size_t)(shape->luma_across * shape->luma_down) *
         JPEG_COEFFICIENTS * sizeof(int16_t);
}

static size_t lay_out(const jpeg_shape *shape, void *scratch, scan_view *v) {
  arena r = {static_cast<uint8_t *>(scratch), 0};
  const size_t n = shape->subsequences;
  v->shape = *shape;
  v->tiles = (shape->subsequences + SCAN_THREADS - 1) / SCAN_THREADS;
  uint8_t *packed = static_cast<uint8_t *>(take(&r, shape->packed_bytes));
  v->tables = reinterpret_cast<const jpeg_tables *>(packed);
  v->intervals = reinterpret_cast<const jpeg_interval *>(packed + sizeof(jpeg_tables));
  v->data = reinterpret_cast<const uint32_t *>(packed + jpeg_data_at(shape));
  v->entry = take_words(&r, n);
  v->exit = take_words(&r, n);
  v->blocks = take_words(&r, n);
  v->luma = take_words(&r, n);
  v->tile_blocks = take_words(&r, v->tiles);
  v->tile_luma = take_words(&r, v->tiles);
  v->carry = take_words(&r, 2 * (size_t)v->tiles);
  v->coefficients = static_cast<int16_t *>(take(&r, coefficient_bytes(shape)));
  return r.used;
}

size_t jpeg_scratch_bytes(const jpeg_shape *shape) {
  scan_view v;
  return lay_out(shape, nullptr, &v);
}

stage_status jpeg_decode_launch(const jpeg_decode_args *args, cuda_stream stream) {
  scan_view v;
  assert(args->packed && args->scratch && args->gray && args->refused);
  assert((uintptr_t)args->scratch % SCRATCH_ALIGNMENT == 0);
  (void)lay_out(&args->shape, args->scratch, &v);
  v.refused = args->refused;
  stage_status st = device_copy_to(args->scratch, args->packed, args->shape.packed_bytes, stream);
  if (st == STAGE_OK) st = device_clear(v.coefficients, coefficient_bytes(&args->shape), stream);
  if (st == STAGE_OK) st = jpeg_sync_launch(&v, stream);
  if (st == STAGE_OK) st = jpeg_coefficients_launch(&v, stream);
  if (st == STAGE_OK) st = jpeg_pixels_launch(&v, args, stream);
  return st;
}
