/*
 * The samples of a window as runs: up to a vector of neighbours of one row. Included by *_simd.c only.
 *
 * A row's samples are an interval whose ends are computed from the window's outline, up to rounding. At each end one
 * sample is uncertain, and the comparison of the reference decides. So no sample of a run needs a test. The runs of all
 * rows are listed before they are processed, because rows are short and of different lengths: the end of a loop for
 * each row would be mispredicted.
 */
#ifndef HARTSIFT_CPU_SIMD_WINDOW_RUNS_SIMD_H
#define HARTSIFT_CPU_SIMD_WINDOW_RUNS_SIMD_H

#include "cpu/simd/simd.h"

enum {
  RUNS_LISTED = 256, /* number of runs that are listed before they are processed, plus the runs of one row */
  /* number of runs of a row that are written together; most rows have no more */
  RUNS_AT_ONCE = SIMD_WIDTH < 8 ? 8 : 64 / SIMD_WIDTH
};

/* Packed fields: bits 0..15 the column, counted from the window's first column; bits 16..31 the row; from bit 32 on the
 * number of samples of the row from this column on. */
typedef uint64_t sample_run;

SIMD_INLINE int32_t run_column(sample_run r) { return (int32_t)(r & 0xffff); }
SIMD_INLINE int32_t run_row(sample_run r) { return (int32_t)(r >> 16 & 0xffff); }
SIMD_INLINE int32_t run_samples(sample_run r) {
  const int32_t left = (int32_t)(r >> 32);
  return left < SIMD_WIDTH ? left : SIMD_WIDTH;
}

/* Lists the runs of `count` samples of a row; returns their number. runs: at least RUNS_AT_ONCE entries. */
SIMD_INLINE int32_t list_runs(sample_run *runs, int32_t column, int32_t row, int32_t count) {
  const sample_run first = (sample_run)count << 32 | (sample_run)row << 16 | (sample_run)column;
  const sample_run step = (sample_run)SIMD_WIDTH - ((sample_run)SIMD_WIDTH << 32);
  const int32_t all = (count + SIMD_WIDTH - 1) / SIMD_WIDTH;
  for (int32_t k = 0; k < RUNS_AT_ONCE; k++) runs[k] = first + (sample_run)k * step;
  for (int32_t k = RUNS_AT_ONCE; k < all; k++) runs[k] = first + (sample_run)k * step;
  return all;
}

/* Two integers, of which one is the wanted column: the first column of a row, or the first column after its last. */
typedef struct column_bracket {
  simd_f32 low, high;
} column_bracket;

SIMD_INLINE simd_f32 whole_not_below(simd_f32 v) { return simd_neg(simd_floor(simd_neg(v))); }

/* Returns the bracket of the first column at or beyond a cut, within [first, end]. Rounding moves a cut by less
   than a quarter of a sample, so that the two ends are equal or neighbours. */
SIMD_INLINE column_bracket bracket_of(simd_f32 cut, simd_f32 first, simd_f32 end) {
  const simd_f32 margin = simd_set1(0.25f), within = simd_max(first, simd_min(end, cut));
  return (column_bracket){whole_not_below(simd_sub(within, margin)),
                          simd_min(end, whole_not_below(simd_add(within, margin)))};
}

#endif
