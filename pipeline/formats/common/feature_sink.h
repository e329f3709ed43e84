/*
 * Buffered output of the feature writers: bytes and numbers to a stream, optionally with a digest. A measuring sink
 * only counts bytes and computes a checksum, for formats that store both before the data.
 */
#ifndef HARTSIFT_FORMATS_COMMON_FEATURE_SINK_H
#define HARTSIFT_FORMATS_COMMON_FEATURE_SINK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/formats/common/content_digest.h"

typedef uint32_t (*sink_check)(uint32_t check, const void *bytes, size_t size);

typedef struct feature_sink {
  FILE *stream;          /* stream to write to; null: the sink only measures */
  digest_state *written; /* digest of the bytes written; null: none */
  sink_check update;     /* checksum function; null: none */
  uint32_t check;        /* checksum; valid after sink_flush */
  uint64_t total;        /* number of bytes so far */
  size_t used;
  uint8_t buffer[32768]; /* checksums are fastest with this size */
} feature_sink;

/* Starts a sink that writes to a stream and updates a digest; `written` may be null. */
void sink_begin(feature_sink *sink, FILE *stream, digest_state *written);
/* Starts a sink that writes nothing and only measures. */
void sink_begin_measure(feature_sink *sink, sink_check update);
void sink_bytes(feature_sink *sink, const void *bytes, size_t size);
/* Returns a pointer to `size` bytes of the buffer, at most its size, which the caller fills before the next call. */
uint8_t *sink_reserve(feature_sink *sink, size_t size);
void sink_text(feature_sink *sink, const char *text);
void sink_float(feature_sink *sink, float value);
void sink_double(feature_sink *sink, double value);
void sink_int(feature_sink *sink, int64_t value);
/* Writes `count` zero bytes. */
void sink_zeros(feature_sink *sink, size_t count);
/* Writes the buffer to the stream. The stream keeps errors (ferror). */
void sink_flush(feature_sink *sink);

#endif
