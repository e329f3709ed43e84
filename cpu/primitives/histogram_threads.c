/* Histogram and equalisation of whole pictures.
 *
 * Counting a pixel loads, increments and stores one of 256 counters. A pixel of the same value as a recent one must
 * wait for that store. Sixteen tables in rotation put sixteen pixels between two uses of a counter, so that a constant
 * picture is nearly as fast as any other. The distance of two tables is not a multiple of 4 KiB, because a load waits
 * for an earlier store whose address has the same low 12 bits. */
#include <stdatomic.h>

#include "cpu/primitives/primitive_variants.h"
#include "cpu/primitives/primitives_threads.h"
#include "cpu/schedule/threads.h"

enum { TABLES = 16, TABLE_WORDS = PRIM_LEVELS + 16, AHEAD_BYTES = 1536 };

typedef struct histogram_table {
  uint32_t count[TABLES][TABLE_WORDS];
} histogram_table;

/* Loads alternate between two words, so that splitting them into bytes is not one chain of sixteen steps. The next
 * pixels are prefetched explicitly, because the counting instructions fill the core's look-ahead window. */
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

/* Maximum length of a piece of a row that is counted in one go, so that no 32-bit count overflows. */
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

/* Histogram and equalisation of a whole picture: bands of rows. */

/* Number of pixels of a unit. To clear and sum the tables of a unit takes as long as to count some thousand pixels. */
static const size_t unit_pixels = (size_t)1 << 18;
static const size_t map_unit_pixels = (size_t)1 << 16;

typedef struct histogram_job {
  const prim_ops *ops;
  prim_view picture, mask;
  size_t units_a_row, unit_rows, unit_columns;
  _Atomic uint64_t counts[PRIM_LEVELS];
  const uint8_t *table;
  uint8_t *out;
  size_t out_stride;
} histogram_job;

/* Cuts the picture into bands of rows, or a long row into parts; returns their number. */
static size_t cut(histogram_job *job, size_t pixels) {
  const prim_view *p = &job->picture;
  job->unit_columns = p->width < pixels ? p->width : pixels;
  job->units_a_row = (p->width - 1) / job->unit_columns + 1;
  job->unit_rows = job->units_a_row > 1 ? 1 : pixels / p->width;
  return ((p->height - 1) / job->unit_rows + 1) * job->units_a_row;
}

/* Finds the start and size of a unit. */
static void part_of(const histogram_job *job, size_t unit, size_t *x, size_t *y, prim_view *part) {
  *x = unit % job->units_a_row * job->unit_columns;
  *y = unit / job->units_a_row * job->unit_rows;
  const size_t right = job->picture.width - *x, below = job->picture.height - *y;
  *part = job->picture;
  part->width = right < job->unit_columns ? right : job->unit_columns;
  part->height = below < job->unit_rows ? below : job->unit_rows;
}

static void count_unit(void *argument, int32_t unit, int32_t worker) {
  histogram_job *job = argument;
  uint64_t counts[PRIM_LEVELS] = {0};
  prim_view part, mask = job->mask;
  size_t x, y;
  (void)worker;
  part_of(job, (size_t)unit, &x, &y, &part);
  part.data = (const unsigned char *)part.data + y * part.stride_bytes + x;
  if (mask.data) mask.data = (const unsigned char *)mask.data + y * mask.stride_bytes + x;
  mask.width = part.width;
  mask.height = part.height;
  job->ops->histogram(&part, &mask, counts);
  for (size_t k = 0; k < PRIM_LEVELS; k++)
    if (counts[k] != 0) atomic_fetch_add_explicit(&job->counts[k], counts[k], memory_order_relaxed);
}

/* Unit numbers are int32_t, so units are larger for a picture beyond 2^48 pixels. */
static size_t cut_for_queue(histogram_job *job, size_t pixels) {
  size_t units = cut(job, pixels);
  for (; units > INT32_MAX; units = cut(job, pixels)) pixels *= 2;
  return units;
}

void prim_histogram(prim_backend backend, const prim_view *picture, const prim_view *mask,
                    uint64_t counts[PRIM_LEVELS]) {
  histogram_job job = {.picture = mask->data ? *picture : prim_view_flat(*picture), .mask = *mask};
  const prim_backend here = prim_backend_for(backend, picture->width * picture->height, PRIM_WORK);
  job.ops = here.ops;
  if (!here.queue) {
    memset(counts, 0, PRIM_LEVELS * sizeof *counts);
    here.ops->histogram(&job.picture, &job.mask, counts);
    return;
  }
  for (size_t k = 0; k < PRIM_LEVELS; k++) atomic_init(&job.counts[k], 0);
  queue_run(here.queue, (int32_t)cut_for_queue(&job, unit_pixels), count_unit, &job);
  for (size_t k = 0; k < PRIM_LEVELS; k++) counts[k] = atomic_load_explicit(&job.counts[k], memory_order_relaxed);
}

/* Computes the level table for equalisation. False: the picture has only one level, which stays. */
static bool equalize_table(const uint64_t counts[PRIM_LEVELS], uint64_t pixels, uint8_t table[PRIM_LEVELS]) {
  size_t first = 0;
  while (counts[first] == 0) first++;
  if (counts[first] == pixels) return false;
  const float scale = prim_equalize_scale(pixels - counts[first]);
  uint64_t sum = 0;
  memset(table, 0, PRIM_LEVELS);
  for (size_t k = first + 1; k < PRIM_LEVELS; k++) {
    sum += counts[k];
    table[k] = prim_equalize_level(sum, scale);
  }
  return true;
}

static void map_unit(void *argument, int32_t unit, int32_t worker) {
  const histogram_job *job = argument;
  prim_view part;
  size_t x, y;
  (void)worker;
  part_of(job, (size_t)unit, &x, &y, &part);
  for (size_t row = y; row < y + part.height; row++) {
    const uint8_t *in = (const uint8_t *)part.data + row * part.stride_bytes + x;
    uint8_t *out = job->out + row * job->out_stride + x;
    if (job->table)
      job->ops->map(in, out, part.width, job->table);
    else if (in != out)
      memcpy(out, in, part.width);
  }
}

void prim_equalize(prim_backend backend, const prim_view *picture, uint8_t *out, size_t out_stride) {
  const prim_view none = {0};
  const uint64_t pixels = (uint64_t)picture->width * picture->height;
  const prim_backend here = prim_backend_for(backend, picture->width * picture->height, PRIM_WORK);
  uint64_t counts[PRIM_LEVELS];
  uint8_t table[PRIM_LEVELS];
  prim_histogram(here, picture, &none, counts);
  histogram_job job = {.ops = here.ops, .picture = *picture, .out = out, .out_stride = out_stride};
  job.table = equalize_table(counts, pixels, table) ? table : NULL;
  if (out_stride == picture->width) job.picture = prim_view_flat(job.picture);
  queue_run(here.queue, (int32_t)cut_for_queue(&job, map_unit_pixels), map_unit, &job);
}
