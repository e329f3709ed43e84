/*
 * The bytes of an image's file for a decoder that takes them in order: all in memory, or read from the file as they are
 * wanted.
 */
#ifndef HARTSIFT_IMAGE_IO_BYTE_SOURCE_H
#define HARTSIFT_IMAGE_IO_BYTE_SOURCE_H

#include "pipeline/image_io/image_io.h"

enum { BYTE_SOURCE_READ = 64 << 10 }; /* bytes of a file that are in memory at once */

typedef struct byte_source {
  const uint8_t *next; /* left bytes are at hand here */
  size_t left;
  FILE *stream;    /* null: there are no others */
  uint8_t *buffer; /* of the stream: BYTE_SOURCE_READ bytes */
  int error;       /* errno of the read that failed; else 0 */
} byte_source;

/* The request's bytes, all of them. */
byte_source byte_source_of(const image_request *request);

/* When none are left: the next ones of the stream. False: there are no more, or error says why they cannot be had. */
bool byte_source_fill(byte_source *source);

#endif
