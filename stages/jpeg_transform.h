/*
 * The inverse cosine transform of 8 samples in integers, with the results of libjpeg's accurate transform ("islow").
 * It is the flow graph of Loeffler, Ligtenberg and Moschytz ("Practical fast 1-D DCT algorithms with 11
 * multiplications", ICASSP 1989, figure 1) reversed, with all factors rounded to 13 bits. Columns come first and keep
 * 2 extra bits; rows follow.
 *
 * Every result is one sum of products that is rounded once, so the order of the sums does not matter; none overflows
 * for blocks within JPEG_SUM_MAX.
 */
#ifndef HARTSIFT_STAGES_JPEG_TRANSFORM_H
#define HARTSIFT_STAGES_JPEG_TRANSFORM_H

#include "stages/jpeg_scan.h"

enum {
  JPEG_FACTOR_BITS = 13,
  JPEG_COLUMN_BITS = 2, /* extra bits that the column pass keeps */
  JPEG_COLUMN_SHIFT = JPEG_FACTOR_BITS - JPEG_COLUMN_BITS,
  JPEG_ROW_SHIFT = JPEG_FACTOR_BITS + JPEG_COLUMN_BITS + 3 /* the 3 divides by 8, the scale of both passes together */
};

/* Transforms frequencies to samples in place. Divides by 2^shift and rounds to nearest, halves up. */
HS_INLINE void jpeg_transform_8(int32_t v[JPEG_BLOCK_SIDE], int32_t shift) {
  /* sqrt(2) cos(6 pi / 16); sums and differences make a rotation with three products */
  const int32_t turn = (v[2] + v[6]) * 4433, low = (v[0] + v[4]) * (1 << JPEG_FACTOR_BITS),
                high = (v[0] - v[4]) * (1 << JPEG_FACTOR_BITS), half = 1 << (shift - 1);
  const int32_t even2 = turn - v[6] * 15137, even3 = turn + v[2] * 6270;
  const int32_t even[4] = {low + even3 + half, high + even2 + half, high - even2 + half, low - even3 + half};
  const int32_t both = (v[7] + v[3] + v[5] + v[1]) * 9633;
  const int32_t sum73 = both - (v[7] + v[3]) * 16069, sum51 = both - (v[5] + v[1]) * 3196;
  const int32_t sum71 = (v[7] + v[1]) * 7373, sum53 = (v[5] + v[3]) * 20995;
  const int32_t odd[4] = {v[1] * 12299 - sum71 + sum51, v[3] * 25172 - sum53 + sum73, v[5] * 16819 - sum53 + sum51,
                          v[7] * 2446 - sum71 + sum73};
  for (int32_t i = 0; i < JPEG_BLOCK_SIDE / 2; i++) {
    v[i] = (even[i] + odd[i]) >> shift;
    v[JPEG_BLOCK_SIDE - 1 - i] = (even[i] - odd[i]) >> shift;
  }
}

/* Returns the pixel for a sample of the row pass. */
HS_INLINE uint8_t jpeg_pixel(int32_t sample) {
  const int32_t pixel = sample + 128;
  return (uint8_t)(pixel < 0 ? 0 : pixel > 255 ? 255 : pixel);
}

#endif
