/*
 * Prefetches the samples of the next window while the current one is processed.
 *
 * Windows are scattered over planes much larger than a core's caches, and no hardware predicts the jump from one to the
 * next. A core can have only about a dozen fetches in flight, so rows are prefetched one at a time, between other work.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_WINDOW_PREFETCH_H
#define HARTSIFT_CPU_SCHEDULE_WINDOW_PREFETCH_H

#include "stages/image.h"

enum { WINDOW_LINE_FLOATS = 16 /* floats of a cache line */ };

/* Rows of a window that are not prefetched yet. */
typedef struct window_prefetch {
  const float *row;
  size_t stride;
  int32_t rows, floats;
} window_prefetch;

/* Returns the window of `across` samples to the left and right of (x, y) and `down` samples above and below, plus a
 * margin of one sample for gradients. */
static inline window_prefetch window_prefetch_box(const plane_view *level, int32_t x, int32_t y, int32_t across,
                                                  int32_t down) {
  const int32_t left = x - across - 1, right = x + across + 1, top = y - down - 1, bottom = y + down + 1;
  const int32_t x0 = left > 0 ? left : 0, x1 = right < level->width - 1 ? right : level->width - 1;
  const int32_t y0 = top > 0 ? top : 0, y1 = bottom < level->height - 1 ? bottom : level->height - 1;
  window_prefetch a = {.stride = level->stride};
  if (x0 > x1 || y0 > y1) return a;
  a.row = level->data + (size_t)y0 * level->stride + (size_t)x0;
  a.rows = y1 - y0 + 1;
  a.floats = x1 - x0 + 1;
  return a;
}

static inline window_prefetch window_prefetch_of(const plane_view *level, int32_t x, int32_t y, int32_t radius) {
  return window_prefetch_box(level, x, y, radius, radius);
}

/* Prefetches the next row, if any is left. */
static inline void window_prefetch_row(window_prefetch *a) {
  if (a->rows <= 0) return;
  for (int32_t i = 0; i < a->floats; i += WINDOW_LINE_FLOATS) __builtin_prefetch(a->row + i, 0, 2);
  __builtin_prefetch(a->row + a->floats - 1, 0, 2);
  a->row += a->stride;
  a->rows--;
}

#endif
