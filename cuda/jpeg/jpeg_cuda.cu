/* The order of the decoder's work on the device, and its memory. */
#include "cuda/jpeg/jpeg_cuda.h"

#include "cuda/runtime/device.h"
#include "cuda/jpeg/jpeg_sync.h"

enum { SCRATCH_ALIGNMENT = 256 };

/* Memory that is given out piece by piece; base null: only counted. */
struct room {
  uint8_t *base;
  size_t used;
};

static void *take(room *r, size_t bytes) {
  const size_t at = r->used;
  r->used += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
  return r->base ? r->base + at : nullptr;
}

static uint32_t *take_words(room *r, size_t count) { return static_cast<uint32_t *>(take(r, 4 * count)); }

static size_t coefficient_bytes(const jpeg_shape *shape) {
  return (size_t)shape->mcus_across * (size_t)shape->mcus_down * (size_t)(shape->luma_across * shape->luma_down) *
         JPEG_COEFFICIENTS * sizeof(int16_t);
}

static size_t lay_out(const jpeg_shape *shape, void *scratch, scan_view *v) {
  room r = {static_cast<uint8_t *>(scratch), 0};
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
