/* Strips, bands and scratch of the pyramid's steps. */
#include "cpu/pyramid_work.h"

enum {
  LINE_FLOATS = 16,      /* of a cache line */
  CHUNKS_PER_THREAD = 3, /* so that a thread that was held up leaves work to the others */
  BANDS_IN_STEP = 8,     /* where steps follow each other by bands */
  LINES_BESIDE_RING = 4  /* what the base needs: see base_simd.c */
};

static int32_t ceil_div(int32_t a, int32_t b) { return a / b + (a % b != 0); }

static size_t whole_lines(size_t floats) { return (floats + LINE_FLOATS - 1) & ~(size_t)(LINE_FLOATS - 1); }

/* Columns of a strip: a multiple of 64. */
static int32_t strip_of(int32_t width, int32_t threads) {
  int32_t strip = WORK_STRIP_MAX;
  if (threads > 1) strip = ceil_div(width, threads < 64 ? CHUNKS_PER_THREAD * threads : CHUNKS_PER_THREAD * 64);
  strip = (strip + 63) & ~63;
  if (strip < WORK_STRIP_MIN) strip = WORK_STRIP_MIN;
  return strip < WORK_STRIP_MAX ? strip : WORK_STRIP_MAX;
}

/* Nine lines more than a multiple of eight: rows of a column begin in different sets of the L1 cache. */
static size_t ring_stride_of(int32_t columns) {
  return (whole_lines((size_t)columns + 7 * LINE_FLOATS) & ~(size_t)(8 * LINE_FLOATS - 1)) + 9 * LINE_FLOATS;
}

static int32_t ring_rows_of(int32_t height, int32_t radius) {
  const int32_t rows = 2 * radius + WORK_BLOCK_ROWS;
  return rows < height ? rows : height;
}

static size_t line_floats_of(int32_t columns, int32_t radius) {
  return whole_lines((size_t)columns + 2 * (size_t)radius + 2 * WORK_OVERREAD);
}

pyramid_work pyramid_work_of(int32_t width, int32_t height, int32_t plane_height, int32_t radius, int32_t threads) {
  pyramid_work w;
  assert(width >= 1 && height >= 1 && radius >= 0 && threads >= 1);
  w.strip = strip_of(width, threads);
  w.strips = ceil_div(width, w.strip);
  w.band = height;
  if (threads > 1) {
    const int32_t bands = ceil_div(CHUNKS_PER_THREAD * (threads < 4096 ? threads : 4096), w.strips);
    w.band = ceil_div(height, bands);
    w.band = ceil_div(w.band, WORK_BLOCK_ROWS) * WORK_BLOCK_ROWS;
    if (w.band < WORK_BAND_MIN) w.band = WORK_BAND_MIN;
  }
  w.bands = ceil_div(height, w.band);
  const int32_t columns = w.strip < width ? w.strip : width;
  w.ring_rows = ring_rows_of(plane_height, radius);
  w.ring_stride = ring_stride_of(columns);
  w.line_floats = line_floats_of(columns, radius);
  w.thread_floats = w.ring_stride * (size_t)w.ring_rows + LINES_BESIDE_RING * w.line_floats;
  return w;
}

pyramid_work pyramid_work_in_bands(int32_t width, int32_t height, int32_t radius, int32_t threads, int32_t bands_most) {
  pyramid_work w = pyramid_work_of(width, height, height, radius, threads);
  int32_t bands = w.bands > BANDS_IN_STEP ? w.bands : BANDS_IN_STEP;
  if (bands > bands_most) bands = bands_most;
  w.band = ceil_div(ceil_div(height, bands), WORK_BLOCK_ROWS) * WORK_BLOCK_ROWS;
  if (w.band < WORK_BAND_MIN) w.band = WORK_BAND_MIN;
  w.bands = ceil_div(height, w.band);
  return w;
}

size_t pyramid_work_floats(int32_t width, int32_t height, int32_t radius_max, int32_t threads) {
  return pyramid_work_of(width, height, height, radius_max, threads).thread_floats * (size_t)threads;
}
