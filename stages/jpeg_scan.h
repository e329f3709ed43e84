/*
 * The coded scan of a baseline JPEG as the GPU decodes it: the host packs what the file says (pipeline/image_io/jpeg_pack.h),
 * the device decodes it (cuda/jpeg/jpeg_cuda.h).
 *
 * ITU-T T.81, F.1.2, F.2.2 and annex C.
 */
#ifndef HARTSIFT_STAGES_JPEG_SCAN_H
#define HARTSIFT_STAGES_JPEG_SCAN_H

#include "stages/base.h"

enum {
  JPEG_BLOCK_SIDE = 8,
  JPEG_COEFFICIENTS = 64,      /* of a block */
  JPEG_MCU_BLOCKS_MOST = 10,   /* T.81, B.2.3 */
  JPEG_LOOKUP_BITS = 10,       /* of the stream, that find most codes in one step */
  JPEG_HUFFMAN_BITS_MOST = 16, /* of a code */
  JPEG_HUFFMAN_TABLES = 4,     /* DC 0 and 1, AC 0 and 1 */
  JPEG_SUBSEQUENCE_BITS = 1024,
  JPEG_DATA_BYTES_MOST = 1 << 28 /* bit numbers have 32 bits */
};

/* What all kernels know of a picture, by value. */
typedef struct jpeg_shape {
  int32_t width, height;         /* pixels, as stored */
  int32_t mcus_across, mcus_down;
  int32_t luma_across, luma_down; /* blocks of luma in an MCU, its first ones, row by row */
  int32_t mcu_blocks;             /* of all components, 1..JPEG_MCU_BLOCKS_MOST */
  uint32_t dc_tables, ac_tables;  /* bit k: the number of the table of block k of an MCU, 0 or 1 */
  uint32_t interval_mcus;         /* of a restart interval; the last one may have fewer */
  uint32_t intervals;             /* 1 or more */
  uint32_t subsequences;          /* of all intervals */
  uint32_t data_words;            /* 32-bit words of coded data, with those that are read ahead */
  size_t packed_bytes;            /* of everything: jpeg_tables, jpeg_interval[intervals + 1], data */
} jpeg_shape;

/* One class and number of Huffman codes. A step: bits 0..4 what code and value take, 0: no code; 5..8: bits of the value;
   16..23: by how much the coefficient's index grows, JPEG_STEP_END: to the block's end. */
typedef struct jpeg_huffman {
  uint32_t steps[1 << JPEG_LOOKUP_BITS]; /* by the next bits; 0: a longer code, or none */
  uint32_t long_steps[256];              /* in the order of the codes */
  uint32_t beyond[JPEG_HUFFMAN_BITS_MOST + 1]; /* the first 16 bits that no code of up to so many bits begins with */
  int32_t first[JPEG_HUFFMAN_BITS_MOST + 1];   /* what is added to a code of that length to get its place in the order */
} jpeg_huffman;

/* What the file says beside its data. */
typedef struct jpeg_tables {
  jpeg_huffman huffman[JPEG_HUFFMAN_TABLES];
  uint16_t quantisation[JPEG_COEFFICIENTS]; /* of luma, in zigzag order */
} jpeg_tables;

/* A restart interval: where its coded bits begin, without stuffed zeros, and its first subsequence. Behind the last one stands
   where all end. */
typedef struct jpeg_interval {
  uint32_t first_bit; /* a multiple of 8 */
  uint32_t first_subsequence;
} jpeg_interval;

#endif
