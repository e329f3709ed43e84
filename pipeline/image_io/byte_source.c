/* See byte_source.h. */
#include "pipeline/image_io/byte_source.h"

#include <errno.h>

byte_source byte_source_of(const image_request *request) {
  return (byte_source){.next = request->bytes, .left = request->size};
}

bool byte_source_fill(byte_source *s) {
  if (!s->stream || s->error != 0) return false;
  errno = 0;
  s->left = fread(s->buffer, 1, BYTE_SOURCE_READ, s->stream);
  s->next = s->buffer;
  if (s->left == 0 && ferror(s->stream)) s->error = errno != 0 ? errno : EIO;
  return s->left > 0;
}
