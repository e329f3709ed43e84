/*
 * Buffered output of sinks, and formatting of numbers; see feature_sink.h.
 */
#include "pipeline/formats/common/feature_sink.h"

#include <string.h>

#include "pipeline/formats/common/text_cursor.h"

/* Resets a sink. The buffer stays uninitialised, because clearing it would cost time. */
static void sink_reset(feature_sink *sink) {
  sink->stream = NULL;
  sink->written = NULL;
  sink->update = NULL;
  sink->check = 0;
  sink->total = 0;
  sink->used = 0;
}

void sink_begin(feature_sink *sink, FILE *stream, digest_state *written) {
  sink_reset(sink);
  sink->stream = stream;
  sink->written = written;
}

void sink_begin_measure(feature_sink *sink, sink_check update) {
  sink_reset(sink);
  sink->update = update;
}

static void sink_hand_on(feature_sink *sink, const void *bytes, size_t size) {
  if (sink->update) sink->check = sink->update(sink->check, bytes, size);
  if (!sink->stream || ferror(sink->stream)) return;
  if (sink->written) digest_add(sink->written, bytes, size);
  /* a failed write sets the stream's error flag, which the commit checks */
  (void)fwrite(bytes, 1, size, sink->stream);
}

void sink_flush(feature_sink *sink) {
  sink_hand_on(sink, sink->buffer, sink->used);
  sink->used = 0;
}

void sink_bytes(feature_sink *sink, const void *bytes, size_t size) {
  const uint8_t *from = bytes;
  sink->total += size;
  while (size > 0) {
    if (sink->used == sizeof sink->buffer) sink_flush(sink);
    const size_t capacity = sizeof sink->buffer - sink->used;
    size_t part = size < capacity ? size : capacity;
    /* large pieces are written directly, without a copy to the buffer */
    if (sink->used == 0 && size >= sizeof sink->buffer) {
      part = size / sizeof sink->buffer * sizeof sink->buffer;
      sink_hand_on(sink, from, part);
    } else {
      memcpy(sink->buffer + sink->used, from, part);
      sink->used += part;
    }
    from += part;
    size -= part;
  }
}

uint8_t *sink_reserve(feature_sink *sink, size_t size) {
  if (size > sizeof sink->buffer - sink->used) sink_flush(sink);
  uint8_t *reserved = sink->buffer + sink->used;
  sink->used += size;
  sink->total += size;
  return reserved;
}

void sink_text(feature_sink *sink, const char *text) { sink_bytes(sink, text, strlen(text)); }

void sink_float(feature_sink *sink, float value) {
  char text[NUMBER_TEXT_BYTES];
  sink_bytes(sink, text, number_from_float(value, text));
}

void sink_double(feature_sink *sink, double value) {
  char text[NUMBER_TEXT_BYTES];
  sink_bytes(sink, text, number_from_double(value, text));
}

void sink_int(feature_sink *sink, int64_t value) {
  char text[NUMBER_TEXT_BYTES];
  sink_bytes(sink, text, number_from_int(value, text));
}

void sink_zeros(feature_sink *sink, size_t count) {
  static const uint8_t zeros[64];
  while (count > 0) {
    size_t part = count < sizeof zeros ? count : sizeof zeros;
    sink_bytes(sink, zeros, part);
    count -= part;
  }
}
