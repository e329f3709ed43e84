/* The upload of the picture: in one copy, or in bands, so that the base of one is computed while the next is copied. */
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

/* Rows first..end-1 of the picture. */
static stage_status copy_rows(const cuda_state *s, const source_view *from, unsigned char *picture, int32_t first,
                              int32_t end, cuda_stream stream) {
  const size_t row = (size_t)from->width * source_pixel_bytes(from->type, from->layout), rows = (size_t)(end - first);
  const unsigned char *source = (const unsigned char *)from->data + (size_t)first * from->stride_bytes;
  unsigned char *to = picture + (size_t)first * s->picture_pitch;
  return device_copy_rows_to(to, s->picture_pitch, source, from->stride_bytes, row, rows, stream);
}

/* Bands from top to bottom: copied on the upload stream, their base made on the frame's. */
static stage_status upload_bands(const hs_context *c, const frame_request *r, const record_target *target,
                                 int32_t bands, cuda_stream stream) {
  const cuda_state *s = c->cuda;
  const base_args args = cuda_base_args(c, &target->source);
  unsigned char *picture = (unsigned char *)(uintptr_t)target->source.data;
  stage_status st = STAGE_OK;
  for (int32_t band = 0, first = 0; band < bands && st == STAGE_OK; band++) {
    const int32_t end = base_band_rows(&args, band, bands);
    if (end > first) st = copy_rows(s, &r->source, picture, first, end, s->upload);
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
      st = copy_rows(s, &r[i].source, picture + (size_t)i * s->plan.device_bytes, 0, r->source.height, stream);
  if (st != STAGE_OK || !r->filter.mask) return st;
  return device_copy_rows_to(s->slab + plan_find(&s->plan, BUFFER_MASK, 0)->offset, s->mask_pitch, r->filter.mask,
                             r->filter.mask_stride, (size_t)r->source.width, (size_t)r->source.height, stream);
}
