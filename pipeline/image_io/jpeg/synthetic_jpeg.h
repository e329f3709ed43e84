/*
 * JPEGs with random coefficients and tables, for comparing decoders: some like photographs, others with extreme tables
 * and coefficients.
 */
#ifndef HARTSIFT_IMAGE_IO_JPEG_SYNTHETIC_JPEG_H
#define HARTSIFT_IMAGE_IO_JPEG_SYNTHETIC_JPEG_H

#include <stdbool.h>

#include "pipeline/include/hartsift.h"

typedef enum synthetic_content {
  SYNTHETIC_SMOOTH,  /* coefficients decrease with frequency, as in photographs */
  SYNTHETIC_NOISE,   /* all 64 coefficients of each block, uniform over the whole range */
  SYNTHETIC_EXTREME, /* few coefficients of each block, at the ends of the range */
  SYNTHETIC_CONTENTS
} synthetic_content;

typedef struct synthetic_jpeg {
  int32_t width, height;
  int32_t across, down;     /* horizontal and vertical subsampling: luma samples per chroma sample, 1 or 2; 0: gray */
  int32_t restart_interval; /* number of MCUs; 0: none */
  int32_t amplitude;        /* maximum dequantised coefficient, 1 or more */
  int32_t sum;              /* maximum sum of a block's dequantised coefficients */
  int32_t quality;          /* 1..100: libjpeg's quantisation tables for this quality; 0: random tables */
  bool own_codes;           /* true: optimised Huffman codes; false: the standard's examples */
  synthetic_content content;
  uint32_t seed;
} synthetic_jpeg;

/* Writes the JPEG to memory. *bytes: allocated by malloc, for the caller to free. HS_ERR_MEMORY; HS_ERR_UNSUPPORTED
 * without libjpeg. */
hs_status synthetic_jpeg_write(const synthetic_jpeg *jpeg, unsigned char **bytes, size_t *size);

#endif
