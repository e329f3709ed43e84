/* Decompresses a file's content. Its size is not known before: what the file claims is not trusted. */
#include "pipeline/formats/common/gzip_content.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/message.h"

#ifndef HARTSIFT_HAVE_ZLIB
#  define HARTSIFT_HAVE_ZLIB 0
#endif

bool gzip_begins(const uint8_t *bytes, size_t size) {
  return size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

#if HARTSIFT_HAVE_ZLIB
#  include <zlib.h>

enum { GZIP_WINDOW = MAX_WBITS + 16, GZIP_FIRST_BYTES = 1 << 16, GZIP_STEP_MOST = 1 << 30 };

/* Input and output of one file. */
typedef struct gzip_state {
  z_stream stream;
  const feature_source *source;
  const char *path;
  const uint8_t *packed;
  size_t packed_size, packed_at;
  uint8_t *out;
  size_t room, size;
  uint64_t most;
} gzip_state;

static hs_status gzip_fail(const gzip_state *s, hs_status status, const char *reason) {
  hs_message_set(s->source->message, s->source->message_bytes, "%s: %s", s->path, reason);
  return status;
}

/* Twice the room. */
static hs_status gzip_grow(gzip_state *s) {
  const size_t room = s->room > 0 ? 2 * s->room : GZIP_FIRST_BYTES;
  if (s->size > s->most || room > SIZE_MAX / 4)
    return gzip_fail(s, HS_ERR_LIMIT, "decompressed, it is larger than its features can need");
  const hs_status status = source_check_memory(s->source, (uint64_t)room + s->room + s->packed_size);
  if (status != HS_OK) return status;
  uint8_t *out = hs_memory_alloc(s->source->allocator, room);
  if (!out) return gzip_fail(s, HS_ERR_MEMORY, "no memory for its decompressed content");
  if (s->size > 0) memcpy(out, s->out, s->size);
  hs_memory_release(s->source->allocator, s->out);
  s->out = out;
  s->room = room;
  return HS_OK;
}

/* One step of zlib between the two buffers. */
static int gzip_step(gzip_state *s) {
  const size_t in = s->packed_size - s->packed_at, out = s->room - s->size;
  const uInt in_part = (uInt)(in < GZIP_STEP_MOST ? in : GZIP_STEP_MOST);
  const uInt out_part = (uInt)(out < GZIP_STEP_MOST ? out : GZIP_STEP_MOST);
  s->stream.next_in = (z_const Bytef *)(s->packed + s->packed_at);
  s->stream.avail_in = in_part;
  s->stream.next_out = s->out + s->size;
  s->stream.avail_out = out_part;
  const int result = inflate(&s->stream, Z_NO_FLUSH);
  s->packed_at += in_part - s->stream.avail_in;
  s->size += out_part - s->stream.avail_out;
  return result;
}

/* Nothing but zeros is left: archives on tape are padded with them. */
static bool gzip_is_padding(const gzip_state *s) {
  for (size_t i = s->packed_at; i < s->packed_size; i++)
    if (s->packed[i] != 0) return false;
  return true;
}

static hs_status gzip_run(gzip_state *s) {
  for (;;) {
    const hs_status status = s->size == s->room ? gzip_grow(s) : HS_OK;
    if (status != HS_OK) return status;
    const int result = gzip_step(s);
    if (result == Z_STREAM_END) {
      if (gzip_is_padding(s)) return HS_OK;
      if (!gzip_begins(s->packed + s->packed_at, s->packed_size - s->packed_at))
        return gzip_fail(s, HS_ERR_FORMAT, "something that is not compressed follows the compressed content");
      if (inflateReset(&s->stream) != Z_OK) return gzip_fail(s, HS_ERR_FORMAT, "damaged compressed content");
      continue;
    }
    if (result == Z_MEM_ERROR) return gzip_fail(s, HS_ERR_MEMORY, "no memory for decompressing it");
    if (result != Z_OK && result != Z_BUF_ERROR) return gzip_fail(s, HS_ERR_FORMAT, "damaged compressed content");
    if (s->packed_at == s->packed_size && s->size < s->room)
      return gzip_fail(s, HS_ERR_FORMAT, "the compressed content is cut off");
  }
}

static voidpf gzip_alloc(voidpf user, uInt items, uInt size) {
  size_t bytes;
  const hs_allocator *const *allocator = user;
  return hs_size_mul(items, size, &bytes) ? hs_memory_alloc(*allocator, bytes) : NULL;
}

static void gzip_release(voidpf user, voidpf pointer) {
  const hs_allocator *const *allocator = user;
  hs_memory_release(*allocator, pointer);
}

hs_status gzip_decompress(const feature_source *source, const char *path, uint64_t most, uint8_t **bytes,
                          size_t *size) {
  const hs_allocator *allocator = source->allocator;
  gzip_state s = {.stream = {.zalloc = gzip_alloc, .zfree = gzip_release, .opaque = (voidpf)&allocator},
                  .source = source,
                  .path = path,
                  .packed = *bytes,
                  .packed_size = *size,
                  .most = most};
  if (inflateInit2(&s.stream, GZIP_WINDOW) != Z_OK)
    return gzip_fail(&s, HS_ERR_MEMORY, "no memory for decompressing it");
  const hs_status status = gzip_run(&s);
  (void)inflateEnd(&s.stream);
  hs_memory_release(allocator, status == HS_OK ? *bytes : s.out);
  if (status != HS_OK) return status;
  *bytes = s.out;
  *size = s.size;
  return HS_OK;
}

size_t gzip_decompress_beginning(const uint8_t *packed, size_t packed_size, uint8_t *out, size_t room) {
  gzip_state s = {.packed = packed, .packed_size = packed_size, .out = out, .room = room};
  if (inflateInit2(&s.stream, GZIP_WINDOW) != Z_OK) return 0;
  while (s.size < room && gzip_step(&s) == Z_OK && s.packed_at < packed_size) {}
  (void)inflateEnd(&s.stream);
  return s.size;
}
#else
hs_status gzip_decompress(const feature_source *source, const char *path, uint64_t most, uint8_t **bytes,
                          size_t *size) {
  (void)most;
  (void)bytes;
  (void)size;
  hs_message_set(source->message, source->message_bytes, "%s: it is compressed with gzip, and this build has no zlib",
                 path);
  return HS_ERR_UNSUPPORTED;
}

size_t gzip_decompress_beginning(const uint8_t *packed, size_t packed_size, uint8_t *out, size_t room) {
  (void)packed;
  (void)packed_size;
  (void)out;
  (void)room;
  return 0;
}
#endif
