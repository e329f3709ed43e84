/*
 * The sink's buffer and number output.
 */
#include "pipeline/formats/common/feature_sink.h"

#include <string.h>

#include "pipeline/formats/common/number_text.h"

void sink_begin(feature_sink *sink, FILE *stream, sink_check update) {
  sink->stream = stream;
  sink->update = update;
  sink->check = 0;
  sink->total = 0;
  sink->used = 0;
}

void sink_flush(feature_sink *sink) {
  if (sink->update) sink->check = sink->update(sink->check, sink->buffer, sink->used);
  if (sink->stream && !ferror(sink->stream)) {
    /* A short count sets the stream's error flag, which committing the file looks at. */
    (void)fwrite(sink->buffer, 1, sink->used, sink->stream);
  }
  sink->used = 0;
}

void sink_bytes(feature_sink *sink, const void *bytes, size_t size) {
  const uint8_t *from = bytes;
  sink->total += size;
  while (size > 0) {
    if (sink->used == sizeof sink->buffer) sink_flush(sink);
    size_t room = sizeof sink->buffer - sink->used;
    size_t part = size < room ? size : room;
    memcpy(sink->buffer + sink->used, from, part);
    sink->used += part;
    from += part;
    size -= part;
  }
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
