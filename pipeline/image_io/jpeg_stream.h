/*
 * A baseline JPEG read as a stream, without making pixels of it: its headers, and every Huffman code followed to the end. A GPU's
 * JPEG engine reports little of what is wrong with a file; what is found whole here it gets, all else libjpeg decodes, which
 * then says what is wrong. So the answer no means nothing but that libjpeg is to decide.
 *
 * ITU-T T.81, annexes B (markers), C and F.2.2 (Huffman codes).
 */
#ifndef HARTSIFT_IMAGE_IO_JPEG_STREAM_H
#define HARTSIFT_IMAGE_IO_JPEG_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/image_io/image_io.h"
#include "stages/jpeg_scan.h"

enum {
  JPEG_BLOCK = 64,
  JPEG_LOOK_BITS =
      11, /* of the stream, that find a symbol, or two, in one step; the tables of two components fit a first cache */
  JPEG_CODE_BITS_MOST = 16, /* of a Huffman code */
  JPEG_CODED_BYTES = 16384, /* of coded data that are followed at a time */
  JPEG_MCU_BYTES_MOST =
      2048 /* six blocks of 64 coefficients take at most 27 bits each, and eight bytes are read at a time */
};

/* What follows from the next bits of the stream: one symbol or two. */
typedef struct jpeg_step {
  uint8_t bits; /* taken, of codes and values; 0: no code begins so, or a longer one */
  /* AC: what the index of the coefficient grows by; JPEG_STEP_END and more: the block ends. DC: bits of the value. */
  uint8_t skip;
  uint16_t most; /* AC: what the values' magnitudes add up to, by the bits they take; 0: no value */
} jpeg_step;

enum { JPEG_STEP_END = 128 };

typedef struct jpeg_codes {
  bool defined;
  uint8_t values[256];                     /* in the order of their codes */
  int32_t first[JPEG_CODE_BITS_MOST + 1];  /* code of each length */
  int32_t beyond[JPEG_CODE_BITS_MOST + 1]; /* first that is no code of this length */
  int32_t at[JPEG_CODE_BITS_MOST + 1];     /* place of the first one's value */
  jpeg_step one[1 << JPEG_LOOK_BITS];      /* the next symbol */
  jpeg_step more[1 << JPEG_LOOK_BITS];     /* AC: the next two where the bits show them, else the next */
} jpeg_codes;

typedef struct jpeg_component {
  int32_t id, across, down; /* blocks in an MCU */
  int32_t quantisation, dc, ac;
} jpeg_component;

/* Headers of one that a GPU may take: one scan of 8-bit samples, gray, or YCbCr with chroma of any sampling up to luma's. */
typedef struct jpeg_stream {
  int32_t width, height; /* as stored */
  int32_t component_count;
  bool engine_takes; /* gray, 4:4:4, 4:2:2, 4:4:0 or 4:2:0 */
  jpeg_component components[3];
  uint8_t quantisation[4][JPEG_BLOCK]; /* in zigzag order; [..][0] 0: not defined */
  jpeg_codes dc[2], ac[2];
  int32_t restart_interval; /* MCUs; 0: none */
  size_t scan, end;         /* where the coded data begins, and the byte behind the end marker */
  exif_tags tags;
  uint8_t coded[JPEG_CODED_BYTES + JPEG_MCU_BYTES_MOST]; /* where jpeg_stream_follow works */
} jpeg_stream;

/* Reads the headers up to the coded data, not trusting any. False: libjpeg is to decide. */
bool jpeg_stream_open(const uint8_t *bytes, size_t size, jpeg_stream *stream);

/* The sides that the headers of a baseline JPEG say, as stored, without looking at anything else. False: they say none. */
bool jpeg_stream_sides(const uint8_t *bytes, size_t size, int32_t *width, int32_t *height);

/* Follows the coded data to the end marker and sets stream->end. True: every code and every restart marker is there and no
   block of luma adds up to more than JPEG_SUM_MOST. What stands behind the end marker is not looked at. */
bool jpeg_stream_follow(const uint8_t *bytes, size_t size, jpeg_stream *stream);

/* Of a table's 16 numbers of codes by length, whose values are set: the codes and the steps. False: no such codes. */
bool jpeg_codes_make(const uint8_t *counts, bool of_ac, jpeg_codes *codes);
/* The step of a code that may be longer than what is looked up, from the next 32 bits. */
jpeg_step jpeg_codes_long(const jpeg_codes *codes, bool of_ac, uint32_t bits);

#endif
