/* JPEGs decoded on the device. */
#include "pipeline/device/cuda_engine.h"

#include "cuda/jpeg/jpeg_cuda.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/device/cuda_state.h"

/* DEVICE_SHARE: a worker decodes only what fits into 1 / DEVICE_SHARE of the device's memory. PACKED_MAX: bytes of
   pinned memory; limits the memory that a damaged or hostile file can request. */
enum { ROW_ALIGNMENT = 128, ALIGNMENT = 256, DEVICE_SHARE = 64, PACKED_MAX = 64 << 20, CLASS_MIN = 1 << 20 };

_Static_assert(sizeof(uint32_t) * JPEG_GROUP_MAX <= ALIGNMENT, "the words stand in front of the pictures");

static size_t align(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

/* Rounds a size up to one of four sizes per doubling, so that pictures of many sizes seldom need new memory. */
static size_t size_class(size_t bytes) {
  size_t step = CLASS_MIN / 4;
  while (8 * step < bytes) step *= 2;
  return bytes <= CLASS_MIN ? CLASS_MIN : align(bytes, step);
}

/* Returns the largest request of any worker. All workers get pictures of the same sizes, and growing later would
   free memory, which waits for the device. With max_memory_bytes, returns only this worker's request. */
static size_t wanted_by_all(const hs_context *c, atomic_size_t *most, size_t bytes) {
  size_t seen = atomic_load(most);
  if (c->options.max_memory_bytes > 0) return bytes;
  while (seen < bytes && !atomic_compare_exchange_weak(most, &seen, bytes)) continue;
  return seen < bytes ? bytes : seen;
}

decoder_state cuda_jpeg_open(hs_context *c) {
  cuda_jpeg *j = cuda_of(c)->jpeg;
  if (j->state != DECODER_UNKNOWN) return j->state;
  const bool is_off = c->options.decoder == HS_DECODER_CPU;
  hs_message_set(j->reason, sizeof j->reason, "%s",
                 is_off ? "options.decoder is HS_DECODER_CPU" : "on its multiprocessors");
  j->state = is_off ? DECODER_OFF : DECODER_OPEN;
  return j->state;
}

void cuda_jpeg_judge(hs_context *c, const char *reason) {
  cuda_jpeg *j = cuda_of(c)->jpeg;
  j->state = reason ? DECODER_WRONG : DECODER_READY;
  if (reason) hs_message_set(j->reason, sizeof j->reason, "%s", reason);
}

decoder_state cuda_jpeg_state(const hs_context *c, const char **reason) {
  *reason = cuda_of(c)->jpeg->reason;
  return cuda_of(c)->jpeg->state;
}

/* Waits until the enqueued work has read the packed pictures. */
static stage_status finish(cuda_state *s) {
  const stage_status st = s->decoding ? device_stream_wait(s->stream) : STAGE_OK;
  s->decoding = false;
  return st;
}

static stage_status make_pinned(hs_context *c, size_t bytes) {
  cuda_state *s = cuda_of(c);
  stage_status st = finish(s);
  if (st != STAGE_OK || bytes <= s->packed_bytes) return st;
  device_free_pinned(s->packed);
  s->packed = NULL;
  s->packed_bytes = 0;
  void *host = NULL, *device = NULL;
  const size_t wanted = wanted_by_all(c, &s->jpeg->packed_max, size_class(bytes));
  st = device_alloc_pinned(&host, &device, wanted);
  s->packed = host;
  if (st == STAGE_OK) s->packed_bytes = wanted;
  return st;
}

void *cuda_jpeg_packed_memory(hs_context *c, size_t bytes) {
  cuda_state *s = cuda_of(c);
  const uint64_t limit = c->options.max_memory_bytes;
  int32_t previous;
  if (bytes > PACKED_MAX || (limit > 0 && size_class(bytes) > limit / 2)) return NULL;
  stage_status st = device_enter(s->device, &previous);
  if (st == STAGE_OK) st = make_pinned(c, bytes);
  if (st != STAGE_OK) (void)device_error_text(); /* an error that was dealt with */
  device_leave(previous);
  return st == STAGE_OK ? s->packed : NULL;
}

static size_t pitch_of(const packed_jpeg *p) { return align((size_t)p->width, ROW_ALIGNMENT); }

static size_t bytes_of(const packed_jpeg *p) { return align(pitch_of(p) * (size_t)p->height, ALIGNMENT); }

/* Returns the scratch bytes for decoding pictures one after another, without their pixels. */
static size_t scratch_of(const packed_jpeg *pictures, int32_t count) {
  size_t most = 0;
  for (int32_t i = 0; i < count; i++) {
    const size_t own = jpeg_scratch_bytes(&pictures[i].shape);
    if (own > most) most = own;
  }
  return align(most, ALIGNMENT);
}

/* Returns whether decoding fits: max_memory_bytes bounds the frame and the decoder's memory together. */
static bool is_within_limit(hs_context *c, const packed_jpeg *first, size_t bytes) {
  const uint64_t limit = c->options.max_memory_bytes;
  uint64_t frame = 0, pinned = 0;
  if (bytes > cuda_of(c)->info.memory_bytes / DEVICE_SHARE) return false;
  if (limit == 0) return true;
  if (cuda_frame_query(c, first->width, first->height, &frame, &pinned) != HS_OK) return false;
  if (frame < cuda_of(c)->slab_bytes) frame = cuda_of(c)->slab_bytes;
  return frame <= limit && size_class(bytes) <= limit - frame;
}

static stage_status make_device_memory(hs_context *c, size_t bytes) {
  cuda_state *s = cuda_of(c);
  if (bytes <= s->decoded_bytes) return STAGE_OK;
  cuda_jpeg_drop_decoded(s);
  void *memory = NULL;
  const size_t wanted = wanted_by_all(c, &s->jpeg->decoded_max, size_class(bytes));
  const stage_status st = device_alloc(&memory, wanted);
  s->decoded = memory;
  if (st == STAGE_OK) s->decoded_bytes = wanted;
  return st;
}

/* Converts a step between pixels of a picture without gaps between rows to one with rows of `pitch` bytes. */
static int64_t step_in_rows(int64_t step, int32_t width, size_t pitch) {
  const int64_t row = (int64_t)pitch;
  return step == width ? row : step == -(int64_t)width ? -row : step;
}

static jpeg_decode_args args_of(const packed_jpeg *p, unsigned char *gray, unsigned char *scratch, uint32_t *refused) {
  const size_t pitch = pitch_of(p);
  const int64_t row = p->start / p->width;
  return (jpeg_decode_args){.shape = p->shape,
                            .packed = p->packed,
                            .scratch = scratch,
                            .gray = gray,
                            .start = row * (int64_t)pitch + (p->start - row * p->width),
                            .step_x = step_in_rows(p->step_x, p->width, pitch),
                            .step_y = step_in_rows(p->step_y, p->width, pitch),
                            .refused = refused};
}

/* Decodes pictures one after another. Layout of `decoded`: the refusal words, the scratch that all pictures share in
   turn, the pixels. */
static stage_status decode(cuda_state *s, const packed_jpeg *pictures, int32_t count, size_t scratch_bytes,
                           decoded_rows *rows) {
  uint32_t *words = (uint32_t *)(void *)s->decoded;
  unsigned char *scratch = s->decoded + ALIGNMENT, *gray = scratch + scratch_bytes;
  stage_status st = STAGE_OK;
  for (int32_t i = 0; i < count && st == STAGE_OK; i++) {
    const jpeg_decode_args args = args_of(&pictures[i], gray, scratch, words + i);
    rows[i] = (decoded_rows){gray, pitch_of(&pictures[i])};
    gray += bytes_of(&pictures[i]);
    st = jpeg_decode_launch(&args, s->stream);
  }
  return st == STAGE_OK ? device_copy_from(s->readback->refused, words, sizeof *words * (size_t)count, s->stream) : st;
}

bool cuda_jpeg_decode(hs_context *c, const packed_jpeg *pictures, int32_t count, decoded_rows *rows) {
  cuda_state *s = cuda_of(c);
  const size_t scratch = scratch_of(pictures, count);
  size_t bytes = ALIGNMENT + scratch;
  int32_t previous;
  assert(count >= 1 && count <= JPEG_GROUP_MAX);
  for (int32_t i = 0; i < count; i++) bytes += bytes_of(&pictures[i]);
  if (!is_within_limit(c, pictures, bytes) || device_enter(s->device, &previous) != STAGE_OK) return false;
  stage_status st = make_device_memory(c, bytes);
  s->decoding = st == STAGE_OK;
  s->decoded_count = count;
  if (st == STAGE_OK) st = decode(s, pictures, count, scratch, rows);
  if (st != STAGE_OK) (void)device_error_text(); /* an error that was dealt with */
  device_leave(previous);
  return st == STAGE_OK;
}

int32_t cuda_jpeg_refused(const hs_context *c) {
  const cuda_state *s = cuda_of(c);
  for (int32_t i = 0; i < s->decoded_count; i++)
    if (s->readback->refused[i] != 0) return i;
  return -1;
}

hs_status cuda_jpeg_fetch(hs_context *c, const decoded_rows *rows, int32_t width, int32_t height, unsigned char *to) {
  const cuda_stream stream = cuda_of(c)->stream;
  int32_t previous;
  stage_status st = device_enter(cuda_of(c)->device, &previous);
  if (st == STAGE_OK)
    st = device_copy_rows_to(to, (size_t)width, rows->data, rows->stride_bytes, (size_t)width, (size_t)height, stream);
  if (st == STAGE_OK) st = device_stream_wait(stream);
  device_leave(previous);
  return st == STAGE_OK ? HS_OK : cuda_failure(c, st, "fetching a decoded picture");
}
