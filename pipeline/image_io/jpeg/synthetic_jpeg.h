/*
 * JPEGs with random coefficients and tables, to compare decoders: typical photographs, and extreme tables and
 * coefficients.
 */
#ifndef HARTSIFT_IMAGE_IO_JPEG_SYNTHETIC_JPEG_H
#define HARTSIFT_IMAGE_IO_JPEG_SYNTHETIC_JPEG_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

typedef enum synthetic_content {
  SYNTHETIC_SMOOTH,  /* coefficients decrease with frequency, as in photographs */
  SYNTHETIC_NOISE,   /* all 64 of each block, uniform over the whole range */
  SYNTHETIC_EXTREME, /* few of each block, at the ends of the range */
  SYNTHETIC_CONTENTS
} synthetic_content;

typedef struct synthetic_jpeg {
  int32_t width, height;
  int32_t across, down;     /* luma samples per chroma sample, 1 or 2; 0: gray */
  int32_t restart_interval; /* MCUs; 0: none */
  int32_t amplitude;        /* largest dequantised coefficient, 1 or more */
  int32_t sum;              /* largest sum of a block's dequantised coefficients */
  int32_t quality;          /* 1..100: libjpeg's tables; 0: random tables */
  bool own_codes;           /* optimised Huffman codes; else the standard's examples */
  synthetic_content content;
  uint32_t seed;
} synthetic_jpeg;

/* Writes the JPEG. *bytes: from malloc. HS_ERR_MEMORY; HS_ERR_UNSUPPORTED without libjpeg. */
hs_status synthetic_jpeg_write(const synthetic_jpeg *jpeg, unsigned char **bytes, size_t *size);

#endif
