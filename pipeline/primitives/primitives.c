/* The public primitives. Arrays in host memory are processed by the CPU, after checks of the arguments; arrays in
 * device memory by the context's engine. */
#include <stdlib.h>

#include "cpu/dispatch.h"
#include "cpu/primitives/primitives_threads.h"
#include "cpu/schedule/float_environment.h"
#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/image_view.h"
#include "pipeline/include/hartsift_cuda.h"

_Static_assert(sizeof(hs_tile) == sizeof(prim_tile) && offsetof(hs_tile, above) == offsetof(prim_tile, above), "tiles");
_Static_assert((int)HS_ENDS_ZERO == PRIM_ENDS_ZERO && (int)HS_ENDS_REPLICATE == PRIM_ENDS_REPLICATE &&
                   (int)HS_ENDS_REFLECT_101 == PRIM_ENDS_REFLECT_101,
               "ends");

/* State of a call. */
typedef struct primitive_call {
  prim_backend backend;
} primitive_call;

/* Starts a call after its arguments were checked. A context on a GPU starts its CPU threads on first use. */
static hs_status begin(hs_context *c, const prim_view *view, primitive_call *call) {
  call->backend = (prim_backend){.ops = cpu_choose_prims()};
  if (!call->backend.ops)
    return ARRAY_FAIL(c, HS_ERR_OPTION, "HARTSIFT_CPU is \"%s\", which is no instruction set of this machine",
                      getenv("HARTSIFT_CPU"));
  if (c && !c->queue && prim_backend_shares(view->width * view->height * prim_element_bytes(view->type), PRIM_WORK)) {
    const hs_status st = context_start_queue(c);
    if (st != HS_OK) return st;
  }
  if (c) call->backend.queue = c->queue;
  return HS_OK;
}

/* ------------------------------------------------------------------ reductions */

/* Runs a reduction. For the range: computes both results, or only the one whose pointer is not null. */
static hs_status reduce(hs_context *c, const hs_array *array, reduce_kind kind, double *low, double *high) {
  if (c) context_clear_error(c);
  if (!low && !high) return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "the result pointer is null");
  prim_view view;
  primitive_call call;
  hs_status st = array_view_check(c, array, "array", &view);
  if (st == HS_OK) st = begin(c, &view, &call);
  if (st != HS_OK) return st;
  if (kind == REDUCE_RANGE) {
    const prim_range range = prim_reduce_range(call.backend, &view);
    if (low) *low = range.low;
    if (high) *high = range.high;
  } else {
    const double sum = prim_reduce_sum(call.backend, &view);
    *low = kind == REDUCE_SUM ? sum : prim_plain_nan(sum / (double)(view.width * view.height));
  }
  return HS_OK;
}

hs_status hs_reduce_sum(hs_context *context, const hs_array *array, double *sum) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return reduce(context, array, REDUCE_SUM, sum, NULL);
}

hs_status hs_reduce_mean(hs_context *context, const hs_array *array, double *mean) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return reduce(context, array, REDUCE_MEAN, mean, NULL);
}

hs_status hs_reduce_min(hs_context *context, const hs_array *array, double *minimum) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return reduce(context, array, REDUCE_RANGE, minimum, NULL);
}

hs_status hs_reduce_max(hs_context *context, const hs_array *array, double *maximum) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return reduce(context, array, REDUCE_RANGE, NULL, maximum);
}

hs_status hs_reduce_range(hs_context *c, const hs_array *array, double *minimum, double *maximum) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (c) context_clear_error(c);
  if (!minimum || !maximum) return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "minimum or maximum is null");
  return reduce(c, array, REDUCE_RANGE, minimum, maximum);
}

/* ------------------------------------------------------------------ tiles */

hs_status hs_tile_stats(hs_context *c, const hs_array *array, const hs_tiling *tiling, hs_tile *tiles, size_t capacity,
                        size_t *count) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (c) context_clear_error(c);
  prim_view view;
  primitive_call call;
  array_tiling tiled;
  hs_status st = array_view_check(c, array, "array", &view);
  if (st == HS_OK) st = array_view_tiling(c, &view, tiling, &tiled);
  if (st != HS_OK) return st;
  if (!count || (!tiles && capacity > 0)) return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "tiles or count is null");
  st = begin(c, &view, &call);
  if (st != HS_OK) return st;
  const prim_tiles_args args = {.view = view,
                                .tile_width = tiled.tile_width,
                                .tile_height = tiled.tile_height,
                                .threshold = tiling->threshold,
                                .tiles = (prim_tile *)(void *)tiles,
                                .count = tiled.count < capacity ? tiled.count : capacity};
  prim_tile_stats(call.backend, &args);
  *count = tiled.count;
  if (args.count < tiled.count)
    return ARRAY_FAIL(c, HS_ERR_CAPACITY, "%zu tiles, but capacity for %zu", tiled.count, capacity);
  return HS_OK;
}

/* ------------------------------------------------------------------ histogram */

hs_status hs_histogram256(hs_context *c, const hs_array *array, const hs_array *mask, uint64_t counts[256]) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (c) context_clear_error(c);
  prim_view view, kept = {0};
  primitive_call call;
  hs_status st = array_view_check_u8(c, array, "array", &view);
  if (st == HS_OK && mask) st = array_view_check_mask(c, mask, &view, &kept);
  if (st != HS_OK) return st;
  if (!counts) return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "counts is null");
  st = begin(c, &view, &call);
  if (st != HS_OK) return st;
  prim_histogram(call.backend, &view, &kept, counts);
  return HS_OK;
}

hs_status hs_equalize(hs_context *c, const hs_array *picture, uint8_t *out, size_t out_stride_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (c) context_clear_error(c);
  prim_view view;
  primitive_call call;
  size_t stride;
  hs_status st = array_view_check_u8(c, picture, "picture", &view);
  if (st == HS_OK) st = array_view_output(c, &view, out, out_stride_bytes, true, &stride);
  if (st == HS_OK) st = begin(c, &view, &call);
  if (st != HS_OK) return st;
  prim_equalize(call.backend, &view, out, stride);
  return HS_OK;
}

/* ------------------------------------------------------------------ convolution */

hs_status hs_convolve1d(hs_context *c, const hs_array *signal, const double *taps, size_t tap_count, hs_ends ends,
                        void *out, size_t out_stride_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (c) context_clear_error(c);
  prim_view view;
  primitive_call call;
  size_t stride;
  hs_status st = array_view_check(c, signal, "signal", &view);
  if (st == HS_OK) st = array_view_filter(c, &view, taps, tap_count, ends);
  if (st == HS_OK) st = array_view_output(c, &view, out, out_stride_bytes, false, &stride);
  if (st == HS_OK) st = begin(c, &view, &call);
  if (st != HS_OK) return st;
  const prim_convolve_args args = {view, taps, tap_count, (prim_ends)ends, out, stride};
  prim_convolve(call.backend, &args);
  return HS_OK;
}

/* ------------------------------------------------------------------ device memory (hartsift_cuda.h) */

/* Returns the engine's primitives. If the context has none, returns null and sets *status. */
static const engine_primitives *primitives_of(hs_context *c, hs_status *status) {
  *status = HS_ERR_ARGUMENT;
  if (!c) return NULL;
  context_clear_error(c);
  if (!c->engine->primitives) *status = CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, "the context works on the CPU");
  return c->engine->primitives;
}

hs_status hs_cuda_alloc_host(hs_context *context, size_t bytes, void **memory) {
  hs_status st;
  const engine_primitives *device = primitives_of(context, &st);
  if (memory) *memory = NULL;
  if (!device) return st;
  if (!memory || bytes == 0) return CONTEXT_FAIL(context, HS_ERR_ARGUMENT, "memory is null or bytes is 0");
  return device->alloc_host(context, bytes, memory);
}

void hs_cuda_free_host(hs_context *context, void *memory) {
  if (context && memory && context->engine->primitives) context->engine->primitives->free_host(context, memory);
}

hs_status hs_cuda_finish(hs_context *context) {
  hs_status st;
  const engine_primitives *device = primitives_of(context, &st);
  return device ? device->finish(context) : st;
}

static hs_status device_reduce(hs_context *c, const hs_array *array, void *stream, reduce_kind kind, double *first,
                               double *second) {
  hs_status st;
  const engine_primitives *device = primitives_of(c, &st);
  return device ? device->reduce(c, array, stream, kind, first, second) : st;
}

hs_status hs_cuda_reduce_sum(hs_context *context, const hs_array *array, void *stream, double *sum) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return device_reduce(context, array, stream, REDUCE_SUM, sum, NULL);
}

hs_status hs_cuda_reduce_mean(hs_context *context, const hs_array *array, void *stream, double *mean) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return device_reduce(context, array, stream, REDUCE_MEAN, mean, NULL);
}

hs_status hs_cuda_reduce_min(hs_context *context, const hs_array *array, void *stream, double *minimum) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return device_reduce(context, array, stream, REDUCE_RANGE, minimum, NULL);
}

hs_status hs_cuda_reduce_max(hs_context *context, const hs_array *array, void *stream, double *maximum) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return device_reduce(context, array, stream, REDUCE_RANGE, NULL, maximum);
}

hs_status hs_cuda_reduce_range(hs_context *c, const hs_array *array, void *stream, double *minimum, double *maximum) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (c && c->engine->primitives && (!minimum || !maximum))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "minimum or maximum is null");
  return device_reduce(c, array, stream, REDUCE_RANGE, minimum, maximum);
}

hs_status hs_cuda_tile_stats(hs_context *c, const hs_array *array, const hs_tiling *tiling, void *stream,
                             hs_tile *tiles, size_t capacity, size_t *count) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status st;
  const engine_primitives *device = primitives_of(c, &st);
  return device ? device->tile_stats(c, array, tiling, stream, tiles, capacity, count) : st;
}

hs_status hs_cuda_histogram256(hs_context *c, const hs_array *array, const hs_array *mask, void *stream,
                               uint64_t *counts) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status st;
  const engine_primitives *device = primitives_of(c, &st);
  return device ? device->histogram256(c, array, mask, stream, counts) : st;
}

hs_status hs_cuda_equalize(hs_context *c, const hs_array *picture, void *stream, uint8_t *out,
                           size_t out_stride_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status st;
  const engine_primitives *device = primitives_of(c, &st);
  return device ? device->equalize(c, picture, stream, out, out_stride_bytes) : st;
}

hs_status hs_cuda_convolve1d(hs_context *c, const hs_array *signal, const double *taps, size_t tap_count, hs_ends ends,
                             void *stream, void *out, size_t out_stride_bytes) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  hs_status st;
  const engine_primitives *device = primitives_of(c, &st);
  return device ? device->convolve1d(c, signal, taps, tap_count, ends, stream, out, out_stride_bytes) : st;
}
