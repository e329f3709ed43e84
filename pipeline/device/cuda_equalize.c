/* Two kernels a picture; those of a group's pictures run beside each other. */
#include "pipeline/device/cuda_equalize.h"

#include "cuda/pyramid/pyramid_cuda.h"
#include "pipeline/base/memory.h"

size_t cuda_equalized_pitch(const source_view *v) {
  return v->layout == SOURCE_GRAY ? 0 : ((size_t)v->width + 127) & ~(size_t)127;
}

stage_status cuda_equalize_room(cuda_state *s) {
  if (s->zeros) return STAGE_OK;
  void *zeros = NULL;
  stage_status st = device_alloc(&zeros, CUDA_EQUALIZE_BYTES);
  if (st == STAGE_OK) st = device_clear(zeros, CUDA_EQUALIZE_BYTES, s->stream);
  if (st == STAGE_OK) st = device_stream_wait(s->stream);
  if (st == STAGE_OK)
    s->zeros = zeros;
  else
    device_free(zeros);
  return st;
}

/* Picture i, on a stream of its own scratch. */
static stage_status equalize_one(const hs_context *c, const record_target *target, int32_t i, int32_t scratch,
                                 cuda_stream stream) {
  const cuda_state *s = cuda_of(c);
  const source_view *v = &target->base;
  const size_t apart = (size_t)i * s->plan.device_bytes;
  uint8_t *picture = (uint8_t *)(uintptr_t)v->data + apart;
  uint64_t *counts = (uint64_t *)(void *)(cuda_slab_buffer(s, BUFFER_HISTOGRAM) + apart);
  const prim_view view = {picture, (size_t)v->width, (size_t)v->height, v->stride_bytes, PRIM_U8};
  const histogram_args histogram = {.view = view,
                                    .counts = counts,
                                    .scratch = (histogram_scratch *)(void *)s->zeros + scratch,
                                    .processors = s->info.multiprocessors};
  const equalize_args levels = {.view = view,
                                .counts = counts,
                                .out = picture,
                                .out_stride_bytes = v->stride_bytes,
                                .processors = s->info.multiprocessors};
  const stage_status st = histogram_launch(&histogram, stream);
  return st == STAGE_OK ? equalize_launch(&levels, stream) : st;
}

stage_status cuda_record_equalize(const hs_context *c, const record_target *target) {
  const cuda_state *s = cuda_of(c);
  const picture_group group = {target->group, s->plan.device_bytes};
  const int32_t streams = target->group < SIDE_STREAMS ? target->group : SIDE_STREAMS;
  stage_status st = STAGE_OK;
  if (target->source.layout != SOURCE_GRAY)
    st = gray_launch(&target->source, (uint8_t *)(uintptr_t)target->base.data, target->base.stride_bytes, group,
                     s->stream);
  if (st != STAGE_OK) return st;
  if (streams == 1) return equalize_one(c, target, 0, 0, s->stream);
  st = device_event_record(s->equalizing, s->stream);
  for (int32_t i = 0; i < streams && st == STAGE_OK; i++) st = device_event_wait(s->equalizing, s->side[i]);
  for (int32_t i = 0; i < target->group && st == STAGE_OK; i++)
    st = equalize_one(c, target, i, i % streams, s->side[i % streams]);
  for (int32_t i = 0; i < streams && st == STAGE_OK; i++) {
    st = device_event_record(s->joined[i], s->side[i]);
    if (st == STAGE_OK) st = device_event_wait(s->joined[i], s->stream);
  }
  return st;
}
