/* The decoder on the device: its memory, and its kernels in their order. */
#include "cuda/jpeg/jpeg_cuda.h"

#include "cuda/runtime/launch.h"

LAUNCH_MODULE(jpeg_sync)
LAUNCH_MODULE(jpeg_coefficients)
LAUNCH_MODULE(jpeg_cuda)
JPEG_SYNC_KERNELS(LAUNCH_KERNEL)
JPEG_COEFFICIENTS_KERNELS(LAUNCH_KERNEL)
JPEG_PIXELS_KERNELS(LAUNCH_KERNEL)

enum { SCRATCH_ALIGNMENT = 256 };

/* Memory that is divided into arrays, one after another. base null: only the size is computed. */
typedef struct arena {
  uint8_t *base;
  size_t used;
} arena;

static void *take(arena *r, size_t bytes) {
  const size_t at = r->used;
  r->used += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
  return r->base ? r->base + at : NULL;
}

static uint32_t *take_words(arena *r, size_t count) { return take(r, 4 * count); }

static size_t coefficient_bytes(const jpeg_shape *shape) {
  return (size_t)shape->mcus_across * (size_t)shape->mcus_down * (size_t)(shape->luma_across * shape->luma_down) *
         JPEG_COEFFICIENTS * sizeof(int16_t);
}

static size_t lay_out(const jpeg_shape *shape, void *scratch, scan_view *v) {
  arena r = {scratch, 0};
  const size_t n = shape->subsequences;
  v->shape = *shape;
  v->tiles = (shape->subsequences + SCAN_THREADS - 1) / SCAN_THREADS;
  uint8_t *packed = take(&r, shape->packed_bytes);
  if (packed) {
    v->tables = (const void *)packed;
    v->intervals = (const void *)(packed + sizeof(jpeg_tables));
    v->data = (const void *)(packed + jpeg_data_at(shape));
  }
  v->entry = take_words(&r, n);
  v->exit = take_words(&r, n);
  v->blocks = take_words(&r, n);
  v->luma = take_words(&r, n);
  v->tile_blocks = take_words(&r, v->tiles);
  v->tile_luma = take_words(&r, v->tiles);
  v->carry = take_words(&r, 2 * (size_t)v->tiles);
  v->coefficients = take(&r, coefficient_bytes(shape));
  return r.used;
}

size_t jpeg_scratch_bytes(const jpeg_shape *shape) {
  scan_view v;
  return lay_out(shape, NULL, &v);
}

/* Finds states and sums of all subsequences, in rounds. Each round makes states agree over at least one more tile. */
static stage_status synchronise(const scan_view *view, cuda_stream stream) {
  const uint32_t tiles = (view->shape.subsequences + SYNC_TILE - 1) / SYNC_TILE;
  const launch_shape shape = {launch_1d(tiles), launch_1d(SYNC_THREADS), sizeof(sync_shared), stream};
  assert(tiles > 0);
  stage_status st = launch_sync_first_kernel(shape, *view, 0);
  for (uint32_t round = 1; round < SYNC_ROUNDS && round < tiles && st == STAGE_OK; round++)
    st = launch_sync_next_kernel(shape, *view, round);
  return st;
}

/* Decodes again, from known states, into coefficients, which must be 0 before. Refuses damaged data and states that
 * do not agree. */
static stage_status decode_coefficients(const scan_view *view, cuda_stream stream) {
  return launch_coefficients_kernel((launch_shape){launch_1d(view->tiles), launch_1d(SCAN_THREADS), 0, stream}, *view);
}

/* Turns coefficients into pixels. Refuses blocks whose sum exceeds JPEG_SUM_MAX. */
static stage_status make_pixels(const scan_view *view, const jpeg_decode_args *args, cuda_stream stream) {
  const jpeg_shape *shape = &view->shape;
  const pixel_target to = {args->gray, args->start, args->step_x, args->step_y};
  const launch_size grid = launch_2d((uint32_t)ceil_div(ceil_div(shape->width, JPEG_BLOCK_SIDE), PIXELS_BLOCKS),
                                     (uint32_t)ceil_div(shape->height, JPEG_BLOCK_SIDE));
  return launch_pixels_kernel((launch_shape){grid, launch_1d(PIXELS_THREADS), 0, stream}, *view, to);
}

stage_status jpeg_decode_launch(const jpeg_decode_args *args, cuda_stream stream) {
  scan_view v;
  assert(args->packed && args->scratch && args->gray && args->refused);
  assert((uintptr_t)args->scratch % SCRATCH_ALIGNMENT == 0);
  (void)lay_out(&args->shape, args->scratch, &v);
  v.refused = args->refused;
  stage_status st = device_copy_to(args->scratch, args->packed, args->shape.packed_bytes, stream);
  if (st == STAGE_OK) st = device_clear(v.coefficients, coefficient_bytes(&args->shape), stream);
  if (st == STAGE_OK) st = synchronise(&v, stream);
  if (st == STAGE_OK) st = decode_coefficients(&v, stream);
  return st == STAGE_OK ? make_pixels(&v, args, stream) : st;
}
