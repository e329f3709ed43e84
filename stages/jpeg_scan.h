/*
 * The coded scan of a baseline JPEG for the GPU's decoder.
 *
 * The host packs the file's content (pipeline/image_io/jpeg/jpeg_stream.h), and the device decodes it
 * (cuda/jpeg/jpeg_cuda.h). This header has the layouts that both share, and one step of the decoding.
 *
 * ITU-T T.81, F.1.2, F.2.2 and annex C.
 */
#ifndef HARTSIFT_STAGES_JPEG_SCAN_H
#define HARTSIFT_STAGES_JPEG_SCAN_H

#include "stages/base.h"
#include "stages/portable.h"

enum {
  JPEG_BLOCK_SIDE = 8,
  JPEG_COEFFICIENTS = 64,   /* coefficients of a block */
  JPEG_MCU_BLOCKS_MAX = 10, /* T.81, B.2.3 */
  /* Number of stream bits that index the first lookup table. Long codes begin with six ones; for them the next 16 bits
   * index a second part of the table. */
  JPEG_LOOKUP_BITS = 11,
  JPEG_LONG_ONES = 6,
  JPEG_LONG_LOOKUPS = 1 << (16 - JPEG_LONG_ONES),
  JPEG_HUFFMAN_BITS_MAX = 16,    /* maximum length of a code, bits */
  JPEG_HUFFMAN_TABLES = 4,       /* tables DC 0 and 1, AC 0 and 1 */
  JPEG_DATA_BYTES_MAX = 1 << 28, /* maximum length of the coded data; a bit's number must fit 32 bits */
  JPEG_SUBSEQUENCE_BITS = 1024,  /* bits that one thread decodes; a multiple of 32 */
  JPEG_WORDS_AHEAD = 4,          /* words that may be read past the coded data */
  /* Maximum sum of a luma block's dequantised coefficients. Below it, no intermediate result of an inverse transform
   * approaches the 16-bit limits, where versions of libjpeg differ: the first pass multiplies by at most 4 sqrt(8) / 2
   * and adds two such sums. Photographs stay below half of this maximum. */
  JPEG_SUM_MAX = 5600
};

/* Parameters of a picture that all kernels read, passed by value. */
typedef struct jpeg_shape {
  int32_t width, height; /* pixels, as stored */
  int32_t mcus_across, mcus_down;
  int32_t luma_across, luma_down; /* luma blocks of an MCU; they come first, row by row */
  int32_t mcu_blocks;             /* blocks of all components of an MCU, 1..JPEG_MCU_BLOCKS_MAX */
  uint32_t dc_tables, ac_tables;  /* bit k: number (0 or 1) of the Huffman table of block k of an MCU */
  uint32_t interval_mcus;         /* number of MCUs of a restart interval; the last one may have fewer */
  uint32_t intervals;             /* number of restart intervals, 1 or more */
  uint32_t subsequences;          /* number of subsequences of all intervals */
  uint32_t data_words;            /* length of the coded data in 32-bit words, including JPEG_WORDS_AHEAD */
  size_t packed_bytes;            /* size of the packed picture: jpeg_tables, jpeg_interval[intervals + 1], then data
                                   * at a multiple of 16 */
} jpeg_shape;

/* Steps of one Huffman table (DC or AC, 0 or 1), indexed by the next bits of the stream. Fields of a step:
 *   bits 0..4    length of code and value in bits, 1 or more
 *   bits 5..8    length of the value in bits
 *   bits 9..15   increment of the coefficient's index; JPEG_STEP_TO_END: to the end of the block
 * A step of 0 means a longer code, or no code. */
typedef struct jpeg_huffman {
  uint16_t steps[(1 << JPEG_LOOKUP_BITS) + JPEG_LONG_LOOKUPS];
} jpeg_huffman;

/* The codes of the same table in canonical order, for codes that the lookup does not find: rare codes, or codes of an
 * unusual table. */
typedef struct jpeg_code_order {
  /* [length]: smallest 16-bit prefix above all codes of at most this length */
  uint32_t beyond[JPEG_HUFFMAN_BITS_MAX + 1];
  /* [length]: index in the order that code 0 of this length would have; may be negative */
  int32_t position[JPEG_HUFFMAN_BITS_MAX + 1];
  uint16_t steps[256];
} jpeg_code_order;

/* All tables of the file. */
typedef struct jpeg_tables {
  jpeg_huffman huffman[JPEG_HUFFMAN_TABLES];
  jpeg_code_order orders[JPEG_HUFFMAN_TABLES];
  /* luma's quantisation factors; the index is 8 x + y, for column x and row y */
  uint16_t quantisation[JPEG_COEFFICIENTS];
  uint8_t positions[JPEG_COEFFICIENTS]; /* [coefficient in zigzag order]: its index, 8 x + y */
} jpeg_tables;
#ifndef __cplusplus
_Static_assert(sizeof(jpeg_huffman) % 16 == 0 && offsetof(jpeg_tables, quantisation) % 16 == 0 &&
                   sizeof(jpeg_tables) % 16 == 0,
               "the device copies 16 bytes at a time");
#endif

/* A restart interval: the number of its first coded bit (after removal of stuffed zeros) and of its first subsequence.
 * One more entry marks the end of the last interval. */
typedef struct jpeg_interval {
  uint32_t first_bit; /* a multiple of 8 */
  uint32_t first_subsequence;
} jpeg_interval;

/* Returns the byte offset of the data in a packed picture. */
HS_INLINE size_t jpeg_data_at(const jpeg_shape *shape) {
  return (sizeof(jpeg_tables) + (shape->intervals + (size_t)1) * sizeof(jpeg_interval) + 15) / 16 * 16;
}

enum {
  JPEG_STEP_TO_END = 127,
  JPEG_STEP_WRONG = 1 /* the code does not exist or is invalid in baseline: one bit is skipped, and the index stays */
};

/* Decoder state. */
typedef struct jpeg_scan_state {
  uint32_t bit;   /* number of the next bit */
  uint32_t index; /* index of the next coefficient in zigzag order; 0: DC */
  uint32_t block; /* number of the block in its MCU */
} jpeg_scan_state;

HS_INLINE uint32_t jpeg_step_bits(uint32_t step) { return step & 31u; }
HS_INLINE uint32_t jpeg_step_size(uint32_t step) { return step >> 5 & 15u; }
HS_INLINE uint32_t jpeg_step_skip(uint32_t step) { return step >> 9; }
HS_INLINE uint32_t jpeg_step_make(uint32_t code_bits, uint32_t size, uint32_t skip) {
  return (code_bits + size) | size << 5 | skip << 9;
}

/* Returns the index in the lookup for the next bits of the stream. */
HS_INLINE uint32_t jpeg_step_at(uint32_t window) {
  const uint32_t at_long = (window >> 16) - (0x10000u - (uint32_t)JPEG_LONG_LOOKUPS) + (1u << JPEG_LOOKUP_BITS);
  return window >> (32 - JPEG_LONG_ONES) == (1u << JPEG_LONG_ONES) - 1 ? at_long : window >> (32 - JPEG_LOOKUP_BITS);
}

/* Finds the step of a code by the canonical order of the codes. */
HS_INLINE uint32_t jpeg_step_in_order(const jpeg_code_order *order, uint32_t window) {
  const uint32_t look = window >> 16;
  int32_t bits = 1;
#ifdef __CUDA_ARCH__
#  pragma unroll 1 /* rarely executed, so not inlined: inlining would slow down the common steps */
#endif
  while (bits < JPEG_HUFFMAN_BITS_MAX && look >= order->beyond[bits]) bits++;
  if (look >= order->beyond[bits]) return JPEG_STEP_WRONG;
  const int32_t position = order->position[bits] + (int32_t)(look >> (JPEG_HUFFMAN_BITS_MAX - bits));
  return order->steps[position & 255];
}

/* Returns the step for the next 32 bits of the stream. huffman, orders: as in jpeg_tables. */
HS_INLINE uint32_t jpeg_scan_step(const jpeg_huffman *huffman, const jpeg_code_order *orders, const jpeg_shape *shape,
                                  jpeg_scan_state state, uint32_t window) {
  /* One word with both fields stays in a register; with two fields the device would load one of them at each step. */
  const uint32_t tables = shape->dc_tables | shape->ac_tables << 16, is_ac = state.index > 0 ? 1u : 0u;
  const uint32_t number = 2 * is_ac + (tables >> (16 * is_ac + state.block) & 1u);
  const uint32_t step = huffman[number].steps[jpeg_step_at(window)];
  return step ? step : jpeg_step_in_order(&orders[number], window);
}

/* Returns the coefficient's value, whose bits follow the code (T.81, F.2.2.1, EXTEND); 0 if it has no bits. */
HS_INLINE int32_t jpeg_step_value(uint32_t step, uint32_t window) {
  const uint32_t size = jpeg_step_size(step), code_bits = jpeg_step_bits(step) - size;
  const int32_t bits = (int32_t)(window << code_bits >> 1 >> (31 - size)), beyond = (int32_t)(1u << size);
  return bits < beyond >> 1 ? bits - beyond + 1 : bits;
}

/* Advances the state by a step. True: the block has ended. */
HS_INLINE bool jpeg_scan_advance(const jpeg_shape *shape, jpeg_scan_state *state, uint32_t step) {
  const uint32_t index = state->index + jpeg_step_skip(step);
  const bool ended = index >= JPEG_COEFFICIENTS;
  const uint32_t next = state->block + 1 == (uint32_t)shape->mcu_blocks ? 0 : state->block + 1;
  state->bit += jpeg_step_bits(step);
  state->index = ended ? 0 : index;
  state->block = ended ? next : state->block;
  return ended;
}

/* Whether a step is invalid at an index: no code, a coefficient past the last one, 16 zeros at a block's end. */
HS_INLINE bool jpeg_step_is_wrong(uint32_t index, uint32_t step) {
  const uint32_t skip = jpeg_step_skip(step), zeros = index > 0 && jpeg_step_size(step) == 0 ? 1u : 0u;
  return skip == 0 || (skip < JPEG_STEP_TO_END && index + skip + zeros > JPEG_COEFFICIENTS);
}

/* Packs the state after a subsequence into a word. end: the first bit after the subsequence. */
HS_INLINE uint32_t jpeg_state_pack(jpeg_scan_state state, uint32_t end) {
  return (state.bit - end) | state.index << 8 | state.block << 16;
}
HS_INLINE jpeg_scan_state jpeg_state_unpack(uint32_t word, uint32_t first) {
  const jpeg_scan_state state = {first + (word & 255u), word >> 8 & 255u, word >> 16};
  return state;
}

#endif
