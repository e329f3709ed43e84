/* Upload of the picture, in one copy or in bands: the base of one band is computed while the next is copied. */
#include <string.h>

#include "cpu/schedule/threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/options.h"
#include "pipeline/device/cuda_state.h"

/* A band costs about 5 us of launches; a copy takes 21 us per million pixels. Only the last band's base is not
   hidden. */
static int32_t bands_for(int64_t pixels) {
  if (pixels < 1000000) return 1;
  if (pixels < 1500000) return 2;
  return pixels < 4000000 ? 3 : UPLOAD_BANDS_MAX;
}

int32_t cuda_upload_bands(const hs_context *c, const frame_placement *placement, const source_view *source) {
  const base_args args = cuda_base_args(c, source);
  if (c->is_worker) return 1; /* other frames' kernels hide the upload, and one launch is cheaper than several */
  /* The upload stream does not wait for the frame's stream, on which pictures on the device were written. */
  if (placement->source_on_device || placement->stream || placement->resident || placement->group > 1 ||
      !base_is_fused(&args))
    return 1;
  return bands_for((int64_t)source->width * source->height);
}

/* Rows of a picture or mask on their way to the device. */
typedef struct row_copy {
  const unsigned char *from;
  size_t from_stride, row_bytes, rows;
  unsigned char *to;
  size_t to_pitch;
} row_copy;

/* Pictures in pageable memory go through one slot of pinned memory while the other is copied to the device. Enqueuing
   such a copy and waiting for its slot takes 7 us, so a slot is large enough for a band of most pictures. */
enum { STAGING_SLOT_BYTES = 1 << 20 };

/* One thread copies 13 GB/s: 160 us for 1920 x 1080, which nothing hides. So up to COPIERS_MAX threads share the copy.
   A job of less than COPIED_MIN bytes is not worth waking them. */
enum { COPIERS_MAX = 4, COPIED_MIN = 256 << 10, COPIED_CHUNK = 64 << 10 };

static size_t source_row(const source_view *v) { return (size_t)v->width * source_pixel_bytes(v->type, v->layout); }

static size_t slot_for(const source_view *v) {
  const size_t row = source_row(v);
  return row > STAGING_SLOT_BYTES ? row : STAGING_SLOT_BYTES;
}

size_t cuda_staging_bytes(const source_view *v) { return slot_for(v) * STAGING_SLOTS; }

/* Starts the threads that share the copies of a picture; without them the caller copies alone. Workers start none,
   because several workers copy at the same time. */
static void start_copiers(hs_context *c) {
  cuda_state *s = cuda_of(c);
  const int32_t wanted = options_threads(&c->options), threads = wanted < COPIERS_MAX ? wanted : COPIERS_MAX;
  if (s->copiers || c->is_worker || threads < 2) return;
  stage_queue *queue = hs_memory_alloc(c->options.allocator, queue_bytes(threads));
  if (queue && queue_start(queue, threads))
    s->copiers = queue;
  else
    hs_memory_release(c->options.allocator, queue);
}

stage_status cuda_upload_memory(hs_context *c, const frame_request *r, const frame_placement *placement) {
  cuda_state *s = cuda_of(c);
  const int32_t group = placement->group > 1 ? placement->group : 1;
  s->staged = false;
  if (placement->source_on_device) return STAGE_OK;
  for (int32_t i = 0; i < group && !s->staged; i++) s->staged = device_is_pageable(r[i].source.data);
  if (r->filter.mask && !s->staged) s->staged = device_is_pageable(r->filter.mask);
  const size_t slot = slot_for(&r->source);
  if (s->staged && source_row(&r->source) * (size_t)r->source.height >= COPIED_MIN) start_copiers(c);
  if (!s->staged || slot <= s->slot_bytes) return STAGE_OK;
  device_free_pinned(s->slots);
  s->slot_bytes = 0;
  void *host = NULL, *device = NULL;
  const stage_status st = device_alloc_pinned(&host, &device, slot * STAGING_SLOTS);
  s->slots = host;
  if (st == STAGE_OK) s->slot_bytes = slot;
  return st;
}

/* Rows to be copied into a slot. */
typedef struct gather_job {
  const row_copy *copy;
  unsigned char *to;
  size_t first, rows, rows_a_chunk;
} gather_job;

static void gather_chunk(void *job, int32_t chunk, int32_t worker) {
  const gather_job *g = job;
  const row_copy *c = g->copy;
  const size_t begin = (size_t)chunk * g->rows_a_chunk, left = g->rows - begin;
  const size_t rows = left < g->rows_a_chunk ? left : g->rows_a_chunk;
  const unsigned char *from = c->from + (g->first + begin) * c->from_stride;
  unsigned char *to = g->to + begin * c->row_bytes;
  (void)worker;
  if (c->from_stride == c->row_bytes) {
    memcpy(to, from, rows * c->row_bytes);
    return;
  }
  for (size_t y = 0; y < rows; y++) memcpy(to + y * c->row_bytes, from + y * c->from_stride, c->row_bytes);
}

static void gather_rows(const cuda_state *s, unsigned char *to, const row_copy *c, size_t first, size_t rows) {
  gather_job job = {c, to, first, rows, rows};
  if (!s->copiers || rows * c->row_bytes < COPIED_MIN) {
    gather_chunk(&job, 0, 0);
    return;
  }
  job.rows_a_chunk = c->row_bytes < COPIED_CHUNK ? COPIED_CHUNK / c->row_bytes : 1;
  queue_run(s->copiers, (int32_t)((rows + job.rows_a_chunk - 1) / job.rows_a_chunk), gather_chunk, &job);
}

/* Uploads rows through the slots. *turn: number of copies that the frame has staged so far. */
static stage_status copy_staged(const cuda_state *s, const row_copy *c, uint32_t *step, cuda_stream stream) {
  const size_t most = s->slot_bytes / c->row_bytes;
  stage_status st = STAGE_OK;
  for (size_t first = 0; first < c->rows && st == STAGE_OK; (*step)++) {
    const uint32_t slot = *step % STAGING_SLOTS;
    const size_t rows = c->rows - first < most ? c->rows - first : most;
    unsigned char *staging = s->slots + slot * s->slot_bytes;
    if (*step >= STAGING_SLOTS) st = device_event_finish(s->slot_copied[slot]);
    if (st != STAGE_OK) return st;
    gather_rows(s, staging, c, first, rows);
    st = device_copy_rows_to(c->to + first * c->to_pitch, c->to_pitch, staging, c->row_bytes, c->row_bytes, rows,
                             stream);
    if (st == STAGE_OK) st = device_event_record(s->slot_copied[slot], stream);
    first += rows;
  }
  return st;
}

static stage_status copy_rows(const cuda_state *s, const row_copy *c, uint32_t *step, cuda_stream stream) {
  if (s->staged) return copy_staged(s, c, step, stream);
  return device_copy_rows_to(c->to, c->to_pitch, c->from, c->from_stride, c->row_bytes, c->rows, stream);
}

/* Returns the copy of rows first..end-1 of a picture. */
static row_copy rows_of(const cuda_state *s, const source_view *v, unsigned char *picture, int32_t first, int32_t end) {
  return (row_copy){.from = (const unsigned char *)v->data + (size_t)first * v->stride_bytes,
                    .from_stride = v->stride_bytes,
                    .row_bytes = source_row(v),
                    .rows = (size_t)(end - first),
                    .to = picture + (size_t)first * s->picture_pitch,
                    .to_pitch = s->picture_pitch};
}

/* Uploads bands from top to bottom: copies them on the upload stream and makes their base on the frame's stream. From
   pageable memory, the host stages each band while the device works on earlier ones. */
static stage_status upload_bands(const hs_context *c, const frame_request *r, const record_target *target,
                                 int32_t bands, uint32_t *step, cuda_stream stream) {
  const cuda_state *s = cuda_of(c);
  const base_args args = cuda_base_args(c, &target->base);
  unsigned char *picture = (unsigned char *)(uintptr_t)target->source.data;
  stage_status st = STAGE_OK;
  for (int32_t band = 0, first = 0; band < bands && st == STAGE_OK; band++) {
    const int32_t end = base_band_rows(&args, band, bands);
    const row_copy copy = rows_of(s, &r->source, picture, first, end > first ? end : first);
    st = copy_rows(s, &copy, step, s->upload);
    if (st == STAGE_OK) st = device_event_record(s->uploaded[band], s->upload);
    if (st == STAGE_OK) st = device_event_wait(s->uploaded[band], stream);
    if (st == STAGE_OK) st = base_band_launch(&args, band, bands, stream);
    first = end > first ? end : first;
  }
  return st;
}

stage_status cuda_upload(const hs_context *c, const frame_request *r, const record_target *target, int32_t bands,
                         cuda_stream stream) {
  const cuda_state *s = cuda_of(c);
  unsigned char *picture = (unsigned char *)(uintptr_t)target->source.data;
  const int32_t height = r->source.height;
  uint32_t step = 0;
  stage_status st = STAGE_OK;
  if (bands > 1) st = upload_bands(c, r, target, bands, &step, stream);
  for (int32_t i = 0; bands == 1 && i < target->group && st == STAGE_OK; i++) {
    const row_copy copy = rows_of(s, &r[i].source, picture + (size_t)i * s->plan.device_bytes, 0, height);
    st = copy_rows(s, &copy, &step, stream);
  }
  if (st != STAGE_OK || !r->filter.mask) return st;
  const row_copy mask = {
      r->filter.mask, r->filter.mask_stride, (size_t)r->source.width, (size_t)height, cuda_slab_buffer(s, BUFFER_MASK),
      s->mask_pitch};
  return copy_rows(s, &mask, &step, stream);
}
