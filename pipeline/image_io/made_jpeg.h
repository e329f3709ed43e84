/*
 * JPEGs made of drawn coefficients and tables, to compare decoders with: what photographs have, and what only tables and
 * coefficients at the ends of their ranges bring about.
 */
#ifndef HARTSIFT_IMAGE_IO_MADE_JPEG_H
#define HARTSIFT_IMAGE_IO_MADE_JPEG_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

typedef enum made_content {
  MADE_SMOOTH,  /* coefficients that fall off with their frequency, as in photographs */
  MADE_NOISE,   /* all 64 of each block, evenly over the whole range */
  MADE_EXTREME, /* few of each block, at the ends of the range */
  MADE_CONTENTS
} made_content;

typedef struct made_jpeg {
  int32_t width, height;
  int32_t across, down;     /* luma samples for one of chroma, 1 or 2; 0: gray */
  int32_t restart_interval; /* MCUs; 0: none */
  int32_t amplitude;        /* the most that a dequantised coefficient comes to, 1 or more */
  int32_t sum;              /* and those of a block together */
  int32_t quality;          /* 1..100: libjpeg's tables; 0: drawn ones */
  bool own_codes;           /* Huffman codes made for this picture; else the standard's examples */
  made_content content;
  uint32_t seed;
} made_jpeg;

/* Writes it. *bytes: from malloc. HS_ERR_MEMORY; HS_ERR_UNSUPPORTED without libjpeg. */
hs_status made_jpeg_write(const made_jpeg *jpeg, unsigned char **bytes, size_t *size);

#endif
