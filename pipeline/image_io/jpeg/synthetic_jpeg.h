/*
 * JPEGs made of drawn coefficients and tables, to compare decoders with: what photographs have, and what only tables and
 * coefficients at the ends of their ranges bring about.
 */
#ifndef HARTSIFT_IMAGE_IO_JPEG_SYNTHETIC_JPEG_H
#define HARTSIFT_IMAGE_IO_JPEG_SYNTHETIC_JPEG_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

typedef enum synthetic_content {
  SYNTHETIC_SMOOTH,  /* coefficients that fall off with their frequency, as in photographs */
  SYNTHETIC_NOISE,   /* all 64 of each block, evenly over the whole range */
  SYNTHETIC_EXTREME, /* few of each block, at the ends of the range */
  SYNTHETIC_CONTENTS
} synthetic_content;

typedef struct synthetic_jpeg {
  int32_t width, height;
  int32_t across, down;     /* luma samples for one of chroma, 1 or 2; 0: gray */
  int32_t restart_interval; /* MCUs; 0: none */
  int32_t amplitude;        /* the most that a dequantised coefficient comes to, 1 or more */
  int32_t sum;              /* and those of a block together */
  int32_t quality;          /* 1..100: libjpeg's tables; 0: drawn ones */
  bool own_codes;           /* Huffman codes made for this picture; else the standard's examples */
  synthetic_content content;
  uint32_t seed;
} synthetic_jpeg;

/* Writes it. *bytes: from malloc. HS_ERR_MEMORY; HS_ERR_UNSUPPORTED without libjpeg. */
hs_status synthetic_jpeg_write(const synthetic_jpeg *jpeg, unsigned char **bytes, size_t *size);

#endif
