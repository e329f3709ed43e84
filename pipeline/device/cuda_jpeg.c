/* JPEGs on a GPU's engine; see cuda_jpeg.h. */
#include "pipeline/device/cuda_jpeg.h"

#include <string.h>

#include "cuda/jpeg/turn_cuda.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"
#include "pipeline/device/cuda_state.h"

enum { ROW_ALIGNMENT = 128, PICTURE_ALIGNMENT = 256 };

_Static_assert((int)CUDA_JPEG_MOST == JPEG_BATCH_MOST, "files of a call");

static size_t align(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static cuda_jpeg_state open_engine(hs_context *c, cuda_jpeg *j) {
  int32_t previous;
  if (c->options.decoder == HS_DECODER_CPU) {
    hs_message_set(j->reason, sizeof j->reason, "options.decoder is HS_DECODER_CPU");
    return CUDA_JPEG_OFF;
  }
  if (device_enter(c->cuda->device, &previous) != STAGE_OK) return CUDA_JPEG_OFF;
  const bool open = jpeg_engine_open(&j->engine, j->reason, sizeof j->reason);
  device_leave(previous);
  if (!open) return CUDA_JPEG_OFF;
  const int32_t *v = j->engine.version;
  hs_message_set(j->reason, sizeof j->reason, "nvJPEG %d.%d.%d", v[0], v[1], v[2]);
  return CUDA_JPEG_OPEN;
}

/* The octaves of a hybrid context are divided between GPU and CPU, and the CPU needs the pixels. */
cuda_jpeg_state cuda_jpeg_open(hs_context *c) {
  if (!c->cuda || c->options.device == HS_DEVICE_HYBRID) return CUDA_JPEG_OFF;
  cuda_jpeg *j = c->cuda->jpeg;
  if (j->state == CUDA_JPEG_UNKNOWN) j->state = open_engine(c, j);
  return j->state;
}

void cuda_jpeg_hand_over(hs_context *from, hs_context *to) {
  to->cuda->decoder = from->cuda->decoder;
  from->cuda->decoder = (jpeg_decoder){0};
}

void cuda_jpeg_judge(hs_context *c, const char *reason) {
  cuda_jpeg *j = c->cuda->jpeg;
  j->state = reason ? CUDA_JPEG_WRONG : CUDA_JPEG_READY;
  if (reason) hs_message_set(j->reason, sizeof j->reason, "%s", reason);
}

cuda_jpeg_state cuda_jpeg_ask(const hs_context *c, const char **reason) {
  const bool apart = !c->cuda || c->options.device == HS_DEVICE_HYBRID;
  *reason = !c->cuda ? "the context works on the CPU" : apart ? "the context is a hybrid one" : c->cuda->jpeg->reason;
  return apart ? CUDA_JPEG_OFF : c->cuda->jpeg->state;
}

/* Where a file's luma goes in the context's memory, and behind it the turned picture. */
static size_t lay_out(const cuda_jpeg_file *f, size_t *turned_at) {
  *turned_at = align(align((size_t)f->width, ROW_ALIGNMENT) * (size_t)f->height, PICTURE_ALIGNMENT);
  return *turned_at + (f->turned ? align((size_t)f->width * (size_t)f->height, PICTURE_ALIGNMENT) : 0);
}

static stage_status make_room(cuda_state *s, int32_t set, size_t bytes) {
  if (bytes <= s->decoded_bytes[set]) return STAGE_OK;
  /* As much as the largest set has: freeing waits for the device, and batches of the same sizes come to all sets. */
  for (int i = 0; i < CUDA_JPEG_SETS; i++)
    if (s->decoded_bytes[i] > bytes) bytes = s->decoded_bytes[i];
  device_free(s->decoded[set]);
  s->decoded[set] = NULL;
  s->decoded_bytes[set] = 0;
  void *memory = NULL;
  const stage_status st = device_alloc(&memory, bytes);
  s->decoded[set] = memory;
  if (st == STAGE_OK) s->decoded_bytes[set] = bytes;
  return st;
}

static stage_status turn(const cuda_state *s, const cuda_jpeg_file *f, unsigned char *to, cuda_jpeg_rows *rows) {
  const turn_args args = {rows->data, rows->stride_bytes, f->width, f->height, to, f->start, f->step_x, f->step_y};
  const bool across = f->step_x == 1 || f->step_x == -1;
  *rows = (cuda_jpeg_rows){to, (size_t)(across ? f->width : f->height)};
  return turn_launch(&args, s->stream);
}

static bool decode(cuda_state *s, int32_t set, const cuda_jpeg_file *files, int32_t count, cuda_jpeg_rows *rows) {
  jpeg_picture pictures[CUDA_JPEG_MOST] = {{0}};
  size_t bytes = 0, turned_at = 0;
  for (int32_t i = 0; i < count; i++) bytes += lay_out(&files[i], &turned_at);
  if (make_room(s, set, bytes) != STAGE_OK) return false;
  unsigned char *at = s->decoded[set];
  for (int32_t i = 0; i < count; i++) {
    const size_t pitch = align((size_t)files[i].width, ROW_ALIGNMENT);
    pictures[i] = (jpeg_picture){files[i].bytes, files[i].size, at, pitch};
    rows[i] = (cuda_jpeg_rows){at, pitch};
    at += lay_out(&files[i], &turned_at);
  }
  if (jpeg_engine_decode(&s->jpeg->engine, &s->decoder, pictures, count, s->stream) != 0) return false;
  stage_status st = STAGE_OK;
  for (int32_t i = 0; i < count && st == STAGE_OK; i++) {
    (void)lay_out(&files[i], &turned_at);
    if (files[i].turned) st = turn(s, &files[i], pictures[i].luma + turned_at, &rows[i]);
  }
  return st == STAGE_OK;
}

bool cuda_jpeg_decode(hs_context *c, int32_t set, const cuda_jpeg_file *files, int32_t count, cuda_jpeg_rows *rows) {
  const char *reason;
  const cuda_jpeg_state state = cuda_jpeg_ask(c, &reason);
  int32_t previous;
  if (state != CUDA_JPEG_OPEN && state != CUDA_JPEG_READY) return false;
  if (device_enter(c->cuda->device, &previous) != STAGE_OK) return false;
  const bool done = decode(c->cuda, set, files, count, rows);
  if (!done) (void)device_error_text(); /* an error that was dealt with */
  device_leave(previous);
  return done;
}

bool cuda_jpeg_finish(hs_context *c) {
  int32_t previous;
  stage_status st = device_enter(c->cuda->device, &previous);
  if (st == STAGE_OK) st = device_stream_wait(c->cuda->stream);
  device_leave(previous);
  return st == STAGE_OK;
}

hs_status cuda_jpeg_fetch(hs_context *c, const cuda_jpeg_rows *rows, int32_t width, int32_t height, unsigned char *to) {
  const cuda_stream stream = c->cuda->stream;
  int32_t previous;
  stage_status st = device_enter(c->cuda->device, &previous);
  if (st == STAGE_OK)
    st = device_copy_rows_to(to, (size_t)width, rows->data, rows->stride_bytes, (size_t)width, (size_t)height, stream);
  if (st == STAGE_OK) st = device_stream_wait(stream);
  device_leave(previous);
  return st == STAGE_OK ? HS_OK : cuda_failure(c, st, "fetching a decoded picture");
}

void cuda_jpeg_destroy(hs_context *c) {
  cuda_state *s = c->cuda;
  if (!s->jpeg) return;
  jpeg_decoder_end(&s->jpeg->engine, &s->decoder);
  for (int i = 0; i < CUDA_JPEG_SETS; i++) device_free(s->decoded[i]);
  if (!c->is_lane) {
    jpeg_engine_close(&s->jpeg->engine);
    hs_memory_release(c->options.allocator, s->jpeg);
  }
  s->jpeg = NULL;
}
