/* The primitives on device memory: checks of arguments, scratch memory, order between streams, launches. */
#include <string.h>

#include "cuda/primitives/primitives_cuda.h"
#include "pipeline/context/image_view.h"
#include "pipeline/device/cuda_engine.h"
#include "pipeline/device/cuda_state.h"

/* The words that are zero between calls. */
typedef struct zero_words {
  uint32_t ticket, unused[63];
  histogram_scratch histogram;
} zero_words;

/* One call: its stream, and the device to return to. */
typedef struct device_call {
  hs_context *context;
  cuda_primitives *memory;
  cuda_stream stream;
  bool blocks;
  int32_t previous; /* the caller's device */
} device_call;

void cuda_primitives_free(cuda_primitives *p, const hs_allocator *allocator) {
  if (p->done) (void)device_event_finish(p->done);
  device_event_destroy(p->done);
  device_free(p->zeros);
  device_free(p->slab);
  hs_memory_release(allocator, p->taps);
}

size_t cuda_primitives_bytes(const cuda_primitives *p) { return p->slab_bytes + (p->zeros ? sizeof(zero_words) : 0); }

/* Makes the event and the zero words, at a context's first call. */
static stage_status open_memory(cuda_primitives *p, cuda_stream stream) {
  void *zeros = NULL;
  stage_status st = p->done ? STAGE_OK : device_event_create(&p->done, false);
  if (st == STAGE_OK) st = device_alloc(&zeros, sizeof(zero_words));
  if (st == STAGE_OK) st = device_clear(zeros, sizeof(zero_words), stream);
  if (st == STAGE_OK) st = device_stream_wait(stream);
  if (st == STAGE_OK)
    p->zeros = zeros;
  else
    device_free(zeros);
  return st;
}

/* Makes the scratch memory large enough for this call. Waits before it frees the old memory, which may still be in
   use. */
static stage_status make_memory(cuda_primitives *p, size_t bytes) {
  if (bytes <= p->slab_bytes) return STAGE_OK;
  stage_status st = device_event_finish(p->done);
  device_free(p->slab);
  p->slab = NULL;
  p->slab_bytes = 0;
  void *slab = NULL;
  if (st == STAGE_OK) st = device_alloc(&slab, bytes);
  p->slab = slab;
  if (st == STAGE_OK) p->slab_bytes = bytes;
  return st;
}

/* Begins a call whose arguments are valid. A call that has begun must be ended. */
static hs_status begin(hs_context *c, void *stream, size_t scratch_bytes, device_call *call) {
  cuda_primitives *p = &cuda_of(c)->primitives;
  *call = (device_call){c, p, stream ? (cuda_stream)stream : cuda_of(c)->stream, !stream, -1};
  stage_status st = device_enter(cuda_of(c)->device, &call->previous);
  if (st == STAGE_OK && cuda_check_stream(c, stream) != HS_OK) {
    device_leave(call->previous);
    return HS_ERR_ARGUMENT;
  }
  if (st == STAGE_OK && !p->zeros) st = open_memory(p, cuda_of(c)->stream);
  if (st == STAGE_OK) st = make_memory(p, scratch_bytes);
  /* Waits on every stream, because one handle can mean several streams: cudaStreamPerThread, or the reused handle of a
     destroyed stream. Before the first call the event is not recorded, so nothing waits. */
  if (st == STAGE_OK) st = device_event_wait(p->done, call->stream);
  if (st == STAGE_OK) return HS_OK;
  const hs_status failed = cuda_memory_failure(c, st, "an array's scratch memory", scratch_bytes);
  device_leave(call->previous);
  return failed;
}

/* Ends a call. st: the launches' status. */
static hs_status end(device_call *call, stage_status st) {
  cuda_primitives *p = call->memory;
  const stage_status recorded = device_event_record(p->done, call->stream);
  if (st == STAGE_OK) st = recorded;
  if (st == STAGE_OK && call->blocks) st = device_stream_wait(call->stream);
  const hs_status result = st == STAGE_OK ? HS_OK : cuda_failure(call->context, st, "an array");
  device_leave(call->previous);
  return result;
}

static zero_words *zeros_of(const device_call *call) { return (zero_words *)(void *)call->memory->zeros; }

static int32_t processors_of(const hs_context *c) { return cuda_of(c)->info.multiprocessors; }

/* ------------------------------------------------------------------ pinned memory, waiting */

hs_status cuda_alloc_host(hs_context *c, size_t bytes, void **memory) {
  int32_t previous = -1;
  void *on_device = NULL;
  stage_status st = device_enter(cuda_of(c)->device, &previous);
  if (st == STAGE_OK) st = device_alloc_pinned(memory, &on_device, bytes);
  const hs_status result = st == STAGE_OK ? HS_OK : cuda_memory_failure(c, st, "pinned memory", bytes);
  device_leave(previous);
  return result;
}

void cuda_free_host(hs_context *c, void *memory) {
  int32_t previous = -1;
  if (device_enter(cuda_of(c)->device, &previous) == STAGE_OK) device_free_pinned(memory);
  device_leave(previous);
}

hs_status cuda_primitives_finish(hs_context *c) {
  const cuda_primitives *p = &cuda_of(c)->primitives;
  int32_t previous = -1;
  if (!p->done) return HS_OK;
  stage_status st = device_enter(cuda_of(c)->device, &previous);
  if (st == STAGE_OK) st = device_event_finish(p->done);
  const hs_status result = st == STAGE_OK ? HS_OK : cuda_failure(c, st, "an array");
  device_leave(previous);
  return result;
}

/* ------------------------------------------------------------------ reductions */

hs_status cuda_reduce(hs_context *c, const hs_array *array, void *stream, reduce_kind kind, double *first,
                      double *second) {
  if (!first && !second) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "the result pointer is null");
  reduce_args args = {.kind = kind, .first = first, .second = second, .processors = processors_of(c)};
  device_call call;
  hs_status st = array_view_check(c, array, "array", &args.view);
  if (st == HS_OK) st = begin(c, stream, reduce_scratch_bytes(&args), &call);
  if (st != HS_OK) return st;
  args.scratch = call.memory->slab;
  args.ticket = &zeros_of(&call)->ticket;
  return end(&call, reduce_launch(&args, call.stream));
}

/* ------------------------------------------------------------------ tiles */

hs_status cuda_tile_stats(hs_context *c, const hs_array *array, const hs_tiling *tiling, void *stream, hs_tile *tiles,
                          size_t capacity, size_t *count) {
  tile_stats_args args = {.tiles = (prim_tile *)(void *)tiles, .processors = processors_of(c)};
  array_tiling tiled;
  device_call call;
  hs_status st = array_view_check(c, array, "array", &args.view);
  if (st == HS_OK) st = array_view_tiling(c, &args.view, tiling, &tiled);
  if (st != HS_OK) return st;
  if (!count || (!tiles && capacity > 0)) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "tiles or count is null");
  args.tile_width = tiled.tile_width;
  args.tile_height = tiled.tile_height;
  args.threshold = tiling->threshold;
  args.count = tiled.count < capacity ? tiled.count : capacity;
  const bool any = args.count > 0;
  st = begin(c, stream, any ? tile_stats_scratch_bytes(&args) : 0, &call);
  if (st != HS_OK) return st;
  args.scratch = call.memory->slab;
  st = end(&call, any ? tile_stats_launch(&args, call.stream) : STAGE_OK);
  if (st != HS_OK) return st;
  *count = tiled.count;
  if (args.count < tiled.count)
    return CONTEXT_FAIL(c, HS_ERR_CAPACITY, "%zu tiles, but capacity for %zu", tiled.count, capacity);
  return HS_OK;
}

/* ------------------------------------------------------------------ histogram */

hs_status cuda_histogram256(hs_context *c, const hs_array *array, const hs_array *mask, void *stream,
                            uint64_t *counts) {
  histogram_args args = {.counts = counts, .processors = processors_of(c)};
  prim_view kept = {0};
  device_call call;
  hs_status st = array_view_check_u8(c, array, "array", &args.view);
  if (st == HS_OK && mask) st = array_view_check_mask(c, mask, &args.view, &kept);
  if (st != HS_OK) return st;
  if (!counts) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "counts is null");
  st = begin(c, stream, 0, &call);
  if (st != HS_OK) return st;
  args.mask = kept.data;
  args.mask_stride_bytes = kept.stride_bytes;
  args.scratch = &zeros_of(&call)->histogram;
  return end(&call, histogram_launch(&args, call.stream));
}

hs_status cuda_equalize(hs_context *c, const hs_array *picture, void *stream, uint8_t *out, size_t out_stride_bytes) {
  prim_view view;
  device_call call;
  size_t stride = 0;
  hs_status st = array_view_check_u8(c, picture, "picture", &view);
  if (st == HS_OK) st = array_view_output(c, &view, out, out_stride_bytes, true, &stride);
  if (st == HS_OK) st = begin(c, stream, HISTOGRAM_BINS * sizeof(uint64_t), &call);
  if (st != HS_OK) return st;
  uint64_t *counts = (uint64_t *)(void *)call.memory->slab;
  const histogram_args histogram = {
      .view = view, .counts = counts, .scratch = &zeros_of(&call)->histogram, .processors = processors_of(c)};
  const equalize_args levels = {
      .view = view, .counts = counts, .out = out, .out_stride_bytes = stride, .processors = processors_of(c)};
  stage_status done = histogram_launch(&histogram, call.stream);
  if (done == STAGE_OK) done = equalize_launch(&levels, call.stream);
  return end(&call, done);
}

/* ------------------------------------------------------------------ convolution */

/* Rounds the taps to the signal's type, into memory of the context. The memory is not pinned, so earlier copies have
   already read it. */
static hs_status round_taps(hs_context *c, const double *taps, size_t count, prim_element type) {
  cuda_primitives *p = &cuda_of(c)->primitives;
  if (count > p->tap_capacity) {
    hs_memory_release(c->options.allocator, p->taps);
    p->tap_capacity = 0;
    p->taps = hs_memory_alloc(c->options.allocator, count * sizeof *taps);
    if (!p->taps) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "cannot allocate room for %zu taps", count);
    p->tap_capacity = count;
  }
  for (size_t j = 0; j < count; j++) p->taps[j] = type == PRIM_F32 ? (double)(float)taps[j] : taps[j];
  return HS_OK;
}

hs_status cuda_convolve1d(hs_context *c, const hs_array *signal, const double *taps, size_t tap_count, hs_ends ends,
                          void *stream, void *out, size_t out_stride_bytes) {
  convolve_args args = {.ends = (prim_ends)ends, .out = out};
  device_call call;
  hs_status st = array_view_check(c, signal, "signal", &args.signal);
  if (st == HS_OK) st = array_view_filter(c, &args.signal, taps, tap_count, ends);
  if (st == HS_OK) st = array_view_output(c, &args.signal, out, out_stride_bytes, false, &args.out_stride_bytes);
  const bool upload = tap_count > CONVOLVE_INLINE_TAPS;
  if (st == HS_OK) st = begin(c, stream, upload ? tap_count * sizeof *taps : 0, &call);
  if (st != HS_OK) return st;
  st = round_taps(c, taps, tap_count, args.signal.type);
  if (st != HS_OK) {
    device_leave(call.previous);
    return st;
  }
  args.taps = call.memory->taps;
  args.tap_count = (uint32_t)tap_count;
  stage_status done = STAGE_OK;
  if (upload) {
    args.d_taps = (const double *)(const void *)call.memory->slab;
    done = device_copy_to(call.memory->slab, args.taps, tap_count * sizeof *taps, call.stream);
  }
  if (done == STAGE_OK) done = convolve_launch(&args, call.stream);
  return end(&call, done);
}
