/*
 * The headers of a baseline JPEG, without making pixels of it: what a GPU may decode it gets, and it finds what is
 * wrong with the coded data; all else libjpeg decodes, which then says what is wrong. So the answer no means nothing
 * but that libjpeg is to decide.
 *
 * ITU-T T.81, annexes B (markers) and C (Huffman codes).
 */
#ifndef HARTSIFT_IMAGE_IO_JPEG_JPEG_STREAM_H
#define HARTSIFT_IMAGE_IO_JPEG_JPEG_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/image_io/image_io.h"
#include "stages/jpeg_scan.h"

enum { JPEG_BLOCK = 64, JPEG_CODE_BITS_MAX = 16 /* of a Huffman code */ };

typedef struct jpeg_codes {
  bool defined;
  uint8_t values[256];                    /* in the order of their codes */
  int32_t first[JPEG_CODE_BITS_MAX + 1];  /* code of each length */
  int32_t beyond[JPEG_CODE_BITS_MAX + 1]; /* first that is no code of this length */
  int32_t at[JPEG_CODE_BITS_MAX + 1];     /* place of the first one's value */
} jpeg_codes;

typedef struct jpeg_component {
  int32_t id, across, down; /* blocks in an MCU */
  int32_t quantisation, dc, ac;
} jpeg_component;

/* Headers of one that a GPU may take: one scan of 8-bit samples, gray, or YCbCr with chroma of any sampling up to luma's. */
typedef struct jpeg_stream {
  int32_t width, height; /* as stored */
  int32_t component_count;
  jpeg_component components[3];
  uint8_t quantisation[4][JPEG_BLOCK]; /* in zigzag order; [..][0] 0: not defined */
  jpeg_codes dc[2], ac[2];
  int32_t restart_interval; /* MCUs; 0: none */
  size_t scan, end;         /* where the coded data begins, and the byte after the end marker */
  exif_tags tags;
} jpeg_stream;

/* Reads the headers up to the coded data, not trusting any. False: libjpeg is to decide. */
bool jpeg_stream_open(const uint8_t *bytes, size_t size, jpeg_stream *stream);

/* The sides that the headers of a baseline JPEG say, as stored, without looking at anything else. False: they say none. */
bool jpeg_stream_sides(const uint8_t *bytes, size_t size, int32_t *width, int32_t *height);

/* Of a table's 16 numbers of codes by length, whose values are set: the codes. False: no such codes. */
bool jpeg_codes_make(const uint8_t *counts, bool of_ac, jpeg_codes *codes);

/* Whether two tables have the same codes for the same values. */
bool jpeg_codes_same(const jpeg_codes *a, const jpeg_codes *b);

/* ---- jpeg_pack.c: tables, restart intervals and coded data without stuffed zeros, for the GPU's decoder. Nothing is
   decoded: the device finds wrong codes (jpeg_decode_args.refused). */

/* Bytes that packing a file needs at most; 0: libjpeg is to decode it. stream: opened. */
size_t jpeg_pack_bytes(const jpeg_stream *stream, size_t file_bytes);

/* Packs into memory[memory_bytes], a multiple of 16 bytes and jpeg_pack_bytes or more, up to the end marker, and
   sets *shape and stream->end (the byte after that marker). False: libjpeg is to decide. Any thread; allocates
   nothing. */
bool jpeg_pack(const uint8_t *bytes, size_t file_bytes, jpeg_stream *stream, void *memory, size_t memory_bytes,
               jpeg_shape *shape);

#endif
