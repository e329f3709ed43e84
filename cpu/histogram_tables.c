/*
 * Counting is a load, an addition and a store to one of 256 places; a pixel that equals one shortly before must wait for
 * that one's store. Eight tables, taken by turns, put eight pixels between two uses of one place, so that a picture of one
 * value is as fast as any other.
 */
#include "cpu/histogram_tables.h"

enum { TABLES = 8 };

typedef struct histogram_table {
  uint32_t count[TABLES][PRIM_LEVELS];
} histogram_table;

static void count_row(histogram_table *t, const uint8_t *row, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t eight;
    memcpy(&eight, row + i, sizeof eight);
    t->count[0][eight & 255]++;
    t->count[1][eight >> 8 & 255]++;
    t->count[2][eight >> 16 & 255]++;
    t->count[3][eight >> 24 & 255]++;
    t->count[4][eight >> 32 & 255]++;
    t->count[5][eight >> 40 & 255]++;
    t->count[6][eight >> 48 & 255]++;
    t->count[7][eight >> 56]++;
  }
  for (; i < n; i++) t->count[0][row[i]]++;
}

static void count_masked_row(histogram_table *t, const uint8_t *row, const uint8_t *mask, size_t n) {
  for (size_t i = 0; i < n; i++) t->count[i % TABLES][row[i]] += mask[i] != 0;
}

static void add_tables(histogram_table *t, uint64_t counts[PRIM_LEVELS]) {
  for (size_t k = 0; k < PRIM_LEVELS; k++) {
    uint64_t sum = 0;
    for (size_t i = 0; i < TABLES; i++) sum += t->count[i][k];
    counts[k] += sum;
  }
  memset(t, 0, sizeof *t);
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
