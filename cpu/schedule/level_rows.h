/* The rows of a level where they lie: in its plane, or those of a strip that are at hand in a ring. */
#ifndef HARTSIFT_CPU_SCHEDULE_LEVEL_ROWS_H
#define HARTSIFT_CPU_SCHEDULE_LEVEL_ROWS_H

#include "stages/base.h"

/* In a ring row y is row y % rows in memory. */
typedef struct level_rows {
  const float *data; /* sample `first` of row 0 */
  size_t stride;
  int32_t rows, first;
  uint64_t reciprocal; /* 2^40 / rows, rounded up: y below 2^22 is divided by a product. Rows in a plane: 0 */
} level_rows;

enum { ROWS_SHIFT = 40 };

static inline uint64_t rows_reciprocal(int32_t rows) { return (UINT64_C(1) << ROWS_SHIFT) / (uint64_t)rows + 1; }

static inline const float *level_at(const level_rows *l, int32_t x, int32_t y) {
  const uint64_t turns = (uint64_t)y * l->reciprocal >> ROWS_SHIFT;
  return l->data + ((uint64_t)y - turns * (uint64_t)l->rows) * l->stride + (ptrdiff_t)(x - l->first);
}

#endif
