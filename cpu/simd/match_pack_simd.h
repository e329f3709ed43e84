/*
 * What tiles of matching work on: the second list packed into panels, and rows of the first as words. For each file that
 * is built for an instruction set. See match_tile_simd.h.
 */
#ifndef HARTSIFT_CPU_SIMD_MATCH_PACK_SIMD_H
#define HARTSIFT_CPU_SIMD_MATCH_PACK_SIMD_H

#include <string.h>

#include "cpu/simd/match_tile_simd.h"

/* DOT_VALUES values as the word of the unsigned operand, and as that of the other. */
SIMD_INLINE uint32_t column_word(const uint8_t *values) {
#if DOT_VALUES == 4
  uint32_t word;
  memcpy(&word, values, sizeof word);
  return word;
#else
  return (uint32_t)values[0] | (uint32_t)values[1] << 16;
#endif
}

SIMD_INLINE uint32_t row_word(const uint8_t *values) {
#if DOT_VALUES == 4
  return column_word(values) ^ 0x80808080u; /* v - 128 as a signed byte */
#else
  return column_word(values);
#endif
}

/* |v|^2, and what a column contributes to a square besides the products. */
SIMD_INLINE uint32_t norm_of(const uint8_t *v) {
  uint32_t sum = 0;
  for (int k = 0; k < MATCH_LENGTH; k++) sum += (uint32_t)v[k] * v[k];
  return sum;
}

SIMD_INLINE int32_t column_part(const uint8_t *v) {
  uint32_t part = norm_of(v);
  if (DOT_VALUES == 4) {
    uint32_t sum = 0;
    for (int k = 0; k < MATCH_LENGTH; k++) sum += v[k];
    part -= 256u * sum;
  }
  return (int32_t)part;
}

/* Bytes of one row's words, and of a panel's. */
SIMD_INLINE size_t packed_row_bytes(match_type type) {
  return type == MATCH_U8 ? DOT_STEPS * sizeof(int32_t) : MATCH_LENGTH * sizeof(float);
}
SIMD_INLINE size_t packed_panel_bytes(match_type type) { return packed_row_bytes(type) * PANEL; }

/* Packs one panel of a list into values [packed_panel_bytes] and, of bytes, parts [PANEL]; lanes beyond the list become
   zeros. */
SIMD_INLINE void pack_panel(match_type type, const match_side *list, uint64_t panel, unsigned char *values,
                            int32_t *parts) {
  const uint64_t first = panel * PANEL;
  const uint64_t left = list->count - first;
  const size_t count = left < PANEL ? (size_t)left : PANEL;
  if (count < PANEL) memset(values, 0, packed_panel_bytes(type));
  if (type == MATCH_F32) {
    const float *from = (const float *)list->descriptors + first * MATCH_LENGTH;
    float *to = (float *)(void *)values;
    for (size_t j = 0; j < count; j++)
      for (size_t k = 0; k < MATCH_LENGTH; k++) to[k * PANEL + j] = from[j * MATCH_LENGTH + k];
    return;
  }
  const uint8_t *from = (const uint8_t *)list->descriptors + first * MATCH_LENGTH;
  uint32_t *to = (uint32_t *)(void *)values;
  for (size_t j = 0; j < count; j++) {
    for (size_t k = 0; k < DOT_STEPS; k++) to[k * PANEL + j] = column_word(from + j * MATCH_LENGTH + k * DOT_VALUES);
    parts[j] = column_part(from + j * MATCH_LENGTH);
  }
  for (size_t j = count; j < PANEL; j++) parts[j] = 0;
}

/* Packs one row of bytes. */
SIMD_INLINE void pack_row(const uint8_t *from, int32_t *words) {
  for (size_t k = 0; k < DOT_STEPS; k++) words[k] = (int32_t)row_word(from + k * DOT_VALUES);
}

#endif
