/* The upload of the picture: in one copy, or in bands, so that the base of one is computed while the next is copied. */
#include <string.h>

#include "pipeline/device/cuda_state.h"

/* A band costs about 5 us of launches, a copy takes 21 us a million pixels, and only the last band's base is not hidden. */
static int32_t bands_for(int64_t pixels) {
  if (pixels < 1000000) return 1;
  if (pixels < 1500000) return 2;
  return pixels < 4000000 ? 3 : UPLOAD_BANDS_MAX;
}

int32_t cuda_upload_bands(const hs_context *c, const cuda_frame_place *place, const source_view *source) {
  const base_args args = cuda_base_args(c, source);
  if (c->is_lane) return 1; /* other frames' kernels hide the upload anyway, and one launch is cheaper than several */
  if (place->stream || place->resident || place->group > 1 || !base_is_fused(&args)) return 1;
  return bands_for((int64_t)source->width * source->height);
}

/* Tight rows in the staging memory. */
static size_t staged_row(const source_view *v) { return (size_t)v->width * source_pixel_bytes(v->type, v->layout); }

static size_t staged_picture(const source_view *v) { return staged_row(v) * (size_t)v->height; }

/* Pictures come one behind the other, then the mask. */
static size_t staged_bytes(const frame_request *r, int32_t group) {
  const size_t mask = r->filter.mask ? (size_t)r->source.width * (size_t)r->source.height : 0;
  return staged_picture(&r->source) * (size_t)group + mask;
}

stage_status cuda_upload_room(cuda_state *s, const frame_request *r, const cuda_frame_place *place) {
  const int32_t group = place->group > 1 ? place->group : 1;
  s->staged = false;
  if (place->source_on_device) return STAGE_OK;
  for (int32_t i = 0; i < group && !s->staged; i++) s->staged = device_is_pageable(r[i].source.data);
  if (r->filter.mask && !s->staged) s->staged = device_is_pageable(r->filter.mask);
  const size_t bytes = staged_bytes(r, group);
  if (!s->staged || bytes <= s->staging_bytes) return STAGE_OK;
  device_free_pinned(s->staging);
  s->staging_bytes = 0;
  void *host = NULL, *device = NULL;
  const stage_status st = device_alloc_pinned(&host, &device, bytes);
  s->staging = host;
  if (st == STAGE_OK) s->staging_bytes = bytes;
  return st;
}

/* Copies rows that lie in ordinary memory to `staging` and lets *from be there. */
static void stage_rows(const unsigned char **from, size_t *stride, unsigned char *staging, size_t row, size_t rows) {
  if (*stride == row)
    memcpy(staging, *from, row * rows);
  else
    for (size_t y = 0; y < rows; y++) memcpy(staging + y * row, *from + y * *stride, row);
  *from = staging;
  *stride = row;
}

/* Rows first..end-1 of picture i. */
static stage_status copy_rows(const cuda_state *s, const source_view *view, int32_t i, unsigned char *picture,
                              int32_t first, int32_t end, cuda_stream stream) {
  const size_t row = staged_row(view), rows = (size_t)(end - first), above = (size_t)first;
  const unsigned char *from = (const unsigned char *)view->data + above * view->stride_bytes;
  size_t stride = view->stride_bytes;
  if (s->staged) stage_rows(&from, &stride, s->staging + (size_t)i * staged_picture(view) + above * row, row, rows);
  return device_copy_rows_to(picture + above * s->picture_pitch, s->picture_pitch, from, stride, row, rows, stream);
}

static stage_status copy_mask(const cuda_state *s, const frame_request *r, int32_t group, cuda_stream stream) {
  const size_t width = (size_t)r->source.width, height = (size_t)r->source.height;
  const unsigned char *from = r->filter.mask;
  size_t stride = r->filter.mask_stride;
  if (s->staged) stage_rows(&from, &stride, s->staging + (size_t)group * staged_picture(&r->source), width, height);
  return device_copy_rows_to(cuda_slab_buffer(s, BUFFER_MASK), s->mask_pitch, from, stride, width, height, stream);
}

/* Bands from top to bottom: copied on the upload stream, their base made on the frame's; and from ordinary memory, each
   band is staged by the host while the device works on those before. */
static stage_status upload_bands(const hs_context *c, const frame_request *r, const record_target *target,
                                 int32_t bands, cuda_stream stream) {
  const cuda_state *s = c->cuda;
  const base_args args = cuda_base_args(c, &target->base);
  unsigned char *picture = (unsigned char *)(uintptr_t)target->source.data;
  stage_status st = STAGE_OK;
  for (int32_t band = 0, first = 0; band < bands && st == STAGE_OK; band++) {
    const int32_t end = base_band_rows(&args, band, bands);
    if (end > first) st = copy_rows(s, &r->source, 0, picture, first, end, s->upload);
    if (st == STAGE_OK) st = device_event_record(s->uploaded[band], s->upload);
    if (st == STAGE_OK) st = device_event_wait(s->uploaded[band], stream);
    if (st == STAGE_OK) st = base_band_launch(&args, band, bands, stream);
    first = end > first ? end : first;
  }
  return st;
}

stage_status cuda_upload(const hs_context *c, const frame_request *r, const record_target *target, int32_t bands,
                         cuda_stream stream) {
  const cuda_state *s = c->cuda;
  unsigned char *picture = (unsigned char *)(uintptr_t)target->source.data;
  stage_status st = STAGE_OK;
  if (bands > 1)
    st = upload_bands(c, r, target, bands, stream);
  else
    for (int32_t i = 0; i < target->group && st == STAGE_OK; i++)
      st = copy_rows(s, &r[i].source, i, picture + (size_t)i * s->plan.device_bytes, 0, r->source.height, stream);
  return st == STAGE_OK && r->filter.mask ? copy_mask(s, r, target->group, stream) : st;
}
