/*
 * Parses the headers of a baseline JPEG, to decide whether a GPU decodes it. The GPU itself detects errors in the coded
 * data. Every other file goes to libjpeg, which reports errors; so false below only means "use libjpeg".
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

enum { JPEG_BLOCK = 64, JPEG_CODE_BITS_MAX = 16 /* maximum length of a Huffman code */ };

typedef struct jpeg_codes {
  bool defined;
  uint8_t values[256];                    /* values in the order of their codes */
  int32_t first[JPEG_CODE_BITS_MAX + 1];  /* first code of each length */
  int32_t beyond[JPEG_CODE_BITS_MAX + 1]; /* end of the codes of each length */
  int32_t at[JPEG_CODE_BITS_MAX + 1];     /* index of the value of the first code of each length */
} jpeg_codes;

typedef struct jpeg_component {
  int32_t id, across, down; /* blocks of the component in an MCU */
  int32_t quantisation, dc, ac;
} jpeg_component;

/* Headers of a JPEG for the GPU: one scan of 8-bit samples, gray or YCbCr, with any subsampling of chroma. */
typedef struct jpeg_stream {
  int32_t width, height; /* size as stored */
  int32_t component_count;
  jpeg_component components[3];
  uint8_t quantisation[4][JPEG_BLOCK]; /* tables in zigzag order; a table is not defined if its entry 0 is 0 */
  jpeg_codes dc[2], ac[2];
  int32_t restart_interval; /* number of MCUs; 0: none */
  size_t scan, end;         /* start of the coded data, and offset after the end marker */
  exif_tags tags;
} jpeg_stream;

/* Parses the untrusted headers up to the coded data. False: use libjpeg. */
bool jpeg_stream_open(const uint8_t *bytes, size_t size, jpeg_stream *stream);

/* Reads only the stored width and height from the headers of a baseline JPEG. False: not found. */
bool jpeg_stream_sides(const uint8_t *bytes, size_t size, int32_t *width, int32_t *height);

/* Builds the codes from the 16 counts of a table, one for each length; codes->values is already set. False: invalid. */
bool jpeg_codes_make(const uint8_t *counts, bool of_ac, jpeg_codes *codes);

/* True if two tables assign the same codes to the same values. */
bool jpeg_codes_same(const jpeg_codes *a, const jpeg_codes *b);

/* ---- jpeg_pack.c: packs tables, restart intervals and coded data without stuffed zeros for the GPU's decoder. Nothing
   is decoded here; the device detects wrong codes (jpeg_decode_args.refused). */

/* Returns an upper bound of the packed size; 0: use libjpeg. stream: from jpeg_stream_open. */
size_t jpeg_pack_bytes(const jpeg_stream *stream, size_t file_bytes);

/* Packs the coded data up to the end marker into memory[memory_bytes], and sets *shape and stream->end (offset after
   that marker). memory_bytes: a multiple of 16, at least jpeg_pack_bytes. False: use libjpeg. Thread-safe; allocates
   nothing. */
bool jpeg_pack(const uint8_t *bytes, size_t file_bytes, jpeg_stream *stream, void *memory, size_t memory_bytes,
               jpeg_shape *shape);

#endif
