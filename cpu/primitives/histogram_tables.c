/*
 * Counting is a load, an addition and a store to one of 256 places; a pixel that equals one shortly before must wait
 * for that one's store. Sixteen tables in rotation put sixteen pixels between two uses of one place, so that a
 * picture of one value is nearly as fast as any other. The tables do not begin at multiples of 4 KiB from each other: a
 * load waits for an earlier store that agrees with it in the low 12 bits of the address.
 */
#include "cpu/primitives/histogram_tables.h"

enum { TABLES = 16, TABLE_WORDS = PRIM_LEVELS + 16, AHEAD_BYTES = 1536 };

typedef struct histogram_table {
  uint32_t count[TABLES][TABLE_WORDS];
} histogram_table;

/* Two words alternate, so that splitting them into bytes is not one chain of sixteen steps. The next pixels are
   prefetched, because counting keeps the core too busy to look far ahead. */
static void count_row(histogram_table *t, const uint8_t *row, size_t n) {
  size_t i = 0;
  for (; i + TABLES <= n; i += TABLES) {
    uint64_t word[2];
    memcpy(word, row + i, sizeof word);
    __builtin_prefetch((const void *)((uintptr_t)(row + i) + AHEAD_BYTES));
    for (int k = 0; k < 8; k++) {
      t->count[k][word[0] >> 8 * k & 255]++;
      t->count[8 + k][word[1] >> 8 * k & 255]++;
    }
  }
  for (; i < n; i++) t->count[0][row[i]]++;
}

static void count_masked_row(histogram_table *t, const uint8_t *row, const uint8_t *mask, size_t n) {
  for (size_t i = 0; i < n; i++) t->count[i % TABLES][row[i]] += mask[i] != 0;
}

static void add_tables(const histogram_table *t, uint64_t counts[PRIM_LEVELS]) {
  for (size_t i = 0; i < TABLES; i++)
    for (size_t k = 0; k < PRIM_LEVELS; k++) counts[k] += t->count[i][k];
}

/* A row in pieces, so that no 32-bit count overflows. */
static const size_t piece_pixels = (size_t)1 << 31;

void histogram_tables(const prim_view *picture, const prim_view *mask, uint64_t counts[PRIM_LEVELS]) {
  histogram_table t;
  memset(&t, 0, sizeof t);
  size_t counted = 0;
  for (size_t y = 0; y < picture->height; y++) {
    const uint8_t *row = (const uint8_t *)picture->data + y * picture->stride_bytes;
    const uint8_t *kept = mask->data ? (const uint8_t *)mask->data + y * mask->stride_bytes : NULL;
    for (size_t x = 0; x < picture->width;) {
      if (counted == piece_pixels) {
        add_tables(&t, counts);
        memset(&t, 0, sizeof t);
        counted = 0;
      }
      size_t n = picture->width - x;
      n = n < piece_pixels - counted ? n : piece_pixels - counted;
      if (kept)
        count_masked_row(&t, row + x, kept + x, n);
      else
        count_row(&t, row + x, n);
      x += n;
      counted += n;
    }
  }
  add_tables(&t, counts);
}
