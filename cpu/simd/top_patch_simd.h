/*
 * Level S+2 of an octave where it is asked for: 3 x 3 samples from level S+1, by the operations of the level step in
 * their order. Included by *_simd.c only.
 *
 * Of the rows that the patch's columns need, three samples each are filtered along x, four rows at a time, then these
 * along y. The fourth lane of a vector is a sample that nobody needs. 29 rows of 27 taps cost as much as the level step
 * spends on some 130 samples.
 */
#ifndef HARTSIFT_CPU_SIMD_TOP_PATCH_SIMD_H
#define HARTSIFT_CPU_SIMD_TOP_PATCH_SIMD_H

#include "cpu/schedule/level_rows.h"
#include "cpu/simd/simd_quad.h"
#include "stages/pyramid.h"

enum {
  PATCH_SIDE = 3,
  PATCH_SAMPLES = PATCH_SIDE * PATCH_SIDE,
  PATCH_ROWS_MAX = 2 * FILTER_RADIUS_MAX + PATCH_SIDE,
  PATCH_LINE_FLOATS = 2 * FILTER_RADIUS_MAX + QUAD_WIDTH
};

/* The step from level S+1. */
typedef struct top_step {
  level_rows below;
  int32_t width, height; /* of the plane */
  const gaussian_filter *filter;
  border_mode border;
} top_step;

static inline int32_t index_within(int32_t i, int32_t n, border_mode border) {
  return i >= 0 && i < n ? i : border_index(i, n, border);
}

/* Samples x - 1.. of four lines: at[k] is sample x - 1 of line k. */
static inline void filter_four_lines(const gaussian_filter *f, const float *const at[4], float (*out)[QUAD_WIDTH]) {
  simd_quad c = quad_set1(f->taps[0]), sums[4];
  for (int k = 0; k < 4; k++) sums[k] = quad_mul(c, quad_load(at[k]));
  for (int32_t j = 1; j <= f->radius; j++) {
    c = quad_set1(f->taps[j]);
    for (int k = 0; k < 4; k++) sums[k] = quad_fma(c, quad_add(quad_load(at[k] - j), quad_load(at[k] + j)), sums[k]);
  }
  for (int k = 0; k < 4; k++) quad_store(out[k], sums[k]);
}

/* Row `row` of the patch from the lines filtered along x. */
static inline void filter_patch_row(const gaussian_filter *f, const float (*lines)[QUAD_WIDTH], float *out) {
  simd_quad sum = quad_mul(quad_set1(f->taps[0]), quad_load(lines[0]));
  for (int32_t j = 1; j <= f->radius; j++)
    sum = quad_fma(quad_set1(f->taps[j]), quad_add(quad_load(lines[-j]), quad_load(lines[j])), sum);
  float samples[QUAD_WIDTH];
  quad_store(samples, sum);
  memcpy(out, samples, sizeof(float) * PATCH_SIDE);
}

/* The samples of a row that the patch needs, continued beyond the plane's sides; a pointer to sample x - 1. */
static inline const float *patch_line(const top_step *t, int32_t row, int32_t x, float *copy) {
  const int32_t radius = t->filter->radius, first = x - 1 - radius;
  const float *line = level_at(&t->below, t->below.first, row);
  for (int32_t i = 0; i < 2 * radius + PATCH_SIDE; i++)
    copy[i] = line[index_within(first + i, t->width, t->border) - t->below.first];
  copy[2 * radius + PATCH_SIDE] = 0.0f;
  return copy + radius;
}

/* The samples about (x, y), row by row; (x, y) is at no side of the plane. */
static inline void top_patch(const top_step *t, int32_t x, int32_t y, float patch[PATCH_SAMPLES]) {
  const int32_t radius = t->filter->radius, rows = 2 * radius + PATCH_SIDE, first = y - 1 - radius;
  const bool inside = x - 1 - radius >= 0 && x + 2 + radius < t->width;
  float lines[PATCH_ROWS_MAX + 3][QUAD_WIDTH], copies[4][PATCH_LINE_FLOATS];
  for (int32_t row = 0; row < rows; row += 4) {
    const float *at[4];
    for (int k = 0; k < 4; k++) {
      const int32_t i = first + (row + k < rows ? row + k : rows - 1);
      const int32_t line = index_within(i, t->height, t->border);
      at[k] = inside ? level_at(&t->below, x - 1, line) : patch_line(t, line, x, copies[k]);
    }
    filter_four_lines(t->filter, at, lines + row);
  }
  for (int32_t row = 0; row < PATCH_SIDE; row++)
    filter_patch_row(t->filter, (const float(*)[QUAD_WIDTH])(lines + radius + row), patch + PATCH_SIDE * row);
}

#endif
