/*
 * Matching of 8-bit descriptors that computes few distances: candidates are ruled out by the bound of
 * stages/match_bound.h. Included by match_simd.c.
 *
 *   rows (of one list)       panels of the other list         candidates left
 *   24 values each      x    24 values each              ->   distance of 128 values, nearest two
 *
 * Only matches are wanted, so a row is searched only as far as the ratio test needs. Let d be the squared distance of
 * the nearest candidate so far and q = ratio^2. If the row fails the test so far, only a candidate below q d can make
 * it pass. If it passes so far, only a candidate up to d / q can make it fail. All other candidates are ruled out. A
 * row that passes in the end is searched once more, because candidates up to d / q may have been ruled out while it
 * failed. The other direction is searched only for the features matched so far, and the second nearest only for the
 * remaining pairs.
 */
#ifndef HARTSIFT_CPU_SIMD_MATCH_BOUND_SIMD_H
#define HARTSIFT_CPU_SIMD_MATCH_BOUND_SIMD_H

#include "cpu/simd/match_tile_simd.h"
#include "stages/match_bound.h"

enum {
  BOUND_STEPS = MATCH_BOUND_VALUES / 2, /* pairs of values */
  BOUND_LANES = 2 * SIMD_WIDTH,         /* 16-bit lanes of a vector */
  BOUND_PANEL = 2 * BOUND_LANES,        /* columns of a tile, which fill two vectors */
  BOUND_ROWS = 64,                      /* rows that are compared with one panel after another */
  BOUND_PACKED = 256,                   /* descriptors that a chunk packs, in whole panels */
  BOUND_WORDS = MATCH_LENGTH / 2,
  BOUND_DIRECTIONS = 32, /* MATCH_BOUND_VALUES rounded up to whole vectors */
  BOUND_COUNT_MIN = 256, /* shortest second list for which the bound saves time */
  BOUND_SHIFT = 64       /* added to the values of rows, because their bytes are unsigned */
};
_Static_assert(BOUND_PACKED % BOUND_PANEL == 0 && BOUND_ROWS % (int)TILE_ROWS == 0, "whole panels and tiles");
_Static_assert(BOUND_SHIFT > (int)MATCH_BOUND_MAX && BOUND_SHIFT + (int)MATCH_BOUND_MAX <= 127,
               "values of rows are 1 to 127");

/* A packed list, padded to whole panels. u is the vector of the bound (stages/match_bound.h). */
typedef struct bound_list {
  const uint8_t *descriptors;
  uint32_t count;
  uint64_t padded;
  int32_t *words;       /* [padded][BOUND_WORDS]: the descriptor, two values in a word */
  int32_t *rows;        /* [padded][BOUND_STEPS]: two values of u + BOUND_SHIFT as bytes, twice */
  int32_t *value_norms; /* [padded]: |u|^2 */
  int32_t *norms;       /* [padded]: |descriptor|^2 */
  float *errors;        /* [padded] */
  int16_t *panels;      /* [padded / BOUND_PANEL][BOUND_STEPS][BOUND_PANEL]: two values of u as bytes */
  int16_t *halves;      /* [padded]: -|u|^2 / 2, rounded up, minus BOUND_SHIFT times the sum of u */
  float error;          /* largest error of the list */
} bound_list;

static uint64_t bound_padded(uint32_t count) { return ((uint64_t)count + BOUND_PANEL - 1) / BOUND_PANEL * BOUND_PANEL; }

enum { BOUND_ENTRY_BYTES = (BOUND_WORDS + BOUND_STEPS + 3) * 4 + (BOUND_STEPS + 1) * 2 };

/* Returns the bytes of a packed list. */
static uint64_t bound_list_bytes(uint32_t count) { return (bound_padded(count) * BOUND_ENTRY_BYTES + 63) / 64 * 64; }

static bound_list bound_list_at(const match_side *side, unsigned char *memory) {
  bound_list l = {.descriptors = side->descriptors, .count = side->count, .padded = bound_padded(side->count)};
  l.words = (int32_t *)(void *)memory;
  l.rows = l.words + l.padded * BOUND_WORDS;
  l.value_norms = l.rows + l.padded * BOUND_STEPS;
  l.norms = l.value_norms + l.padded;
  l.errors = (float *)(void *)(l.norms + l.padded);
  l.panels = (int16_t *)(void *)(l.errors + l.padded);
  l.halves = l.panels + l.padded * BOUND_STEPS;
  return l;
}

/* Packs the directions into words of two entries. Each lane is a direction. */
static void bound_table(int32_t table[BOUND_WORDS][BOUND_DIRECTIONS]) {
  memset(table, 0, BOUND_WORDS * sizeof *table);
  for (int w = 0; w < BOUND_WORDS; w++)
    for (int k = 0; k < MATCH_BOUND_VALUES; k++) {
      const int32_t low = match_bound_directions[k][2 * w], high = match_bound_directions[k][2 * w + 1];
      table[w][k] = (int32_t)(((uint32_t)low & 0xffffu) | (uint32_t)high << 16);
    }
}

/* Computes the products of the directions and a descriptor. */
static void bound_sums(int32_t table[BOUND_WORDS][BOUND_DIRECTIONS], const int32_t *words, int32_t *sums) {
  simd_i32 sum[BOUND_DIRECTIONS / SIMD_WIDTH];
  for (int v = 0; v < BOUND_DIRECTIONS / SIMD_WIDTH; v++) sum[v] = simd_i32_set1(0);
  for (int w = 0; w < BOUND_WORDS; w++) {
    const simd_i32 word = simd_i32_set1(words[w]);
    for (int v = 0; v * SIMD_WIDTH < MATCH_BOUND_VALUES; v++)
      sum[v] = simd_dot_i16(sum[v], simd_i32_load(&table[w][v * SIMD_WIDTH]), word);
  }
  for (int v = 0; v < BOUND_DIRECTIONS / SIMD_WIDTH; v++) simd_i32_store(sums + v * SIMD_WIDTH, sum[v]);
}

/* Packs one descriptor. Entries beyond the list may pass any limit, but they are never compared. */
static void bound_pack_one(const bound_list *l, uint64_t j, int32_t table[BOUND_WORDS][BOUND_DIRECTIONS]) {
  int32_t *words = l->words + j * BOUND_WORDS, sums[BOUND_DIRECTIONS], sum = 0;
  int16_t *panel = l->panels + j / BOUND_PANEL * BOUND_PANEL * BOUND_STEPS + j % BOUND_PANEL;
  match_bound bound = {{0}, 0, 0.0f};
  if (j < l->count) {
    const uint8_t *from = l->descriptors + j * MATCH_LENGTH;
    for (int w = 0; w < BOUND_WORDS; w++) words[w] = (int32_t)((uint32_t)from[2 * w] | (uint32_t)from[2 * w + 1] << 16);
    bound_sums(table, words, sums);
    bound = match_bound_of(sums);
    l->norms[j] = (int32_t)norm_of(from);
  }
  for (int k = 0; k < BOUND_STEPS; k++) {
    const int low = bound.values[2 * k], high = bound.values[2 * k + 1];
    const uint32_t shifted = (uint32_t)(low + BOUND_SHIFT) | (uint32_t)(high + BOUND_SHIFT) << 8;
    l->rows[j * BOUND_STEPS + (uint64_t)k] = (int32_t)(shifted | shifted << 16);
    panel[k * BOUND_PANEL] = (int16_t)((uint32_t)(uint8_t)low | (uint32_t)(uint8_t)high << 8);
    sum += low + high;
  }
  l->value_norms[j] = bound.norm;
  l->halves[j] = (int16_t)(-(bound.norm / 2) - BOUND_SHIFT * sum);
  l->errors[j] = bound.error;
}

static void bound_pack_task(void *argument, int32_t chunk, int32_t worker) {
  const bound_list *l = argument;
  const uint64_t first = (uint64_t)chunk * BOUND_PACKED;
  int32_t table[BOUND_WORDS][BOUND_DIRECTIONS];
  (void)worker;
  bound_table(table);
  for (uint64_t j = first; j < l->padded && j < first + BOUND_PACKED; j++) bound_pack_one(l, j, table);
}

static float bound_error(const bound_list *l) {
  float error = 0.0f;
  for (uint32_t j = 0; j < l->count; j++) error = l->errors[j] > error ? l->errors[j] : error;
  return error;
}

/* Rows that are compared at one time. The nearest two of row r are in nearest[number[r]]. */
typedef struct bound_rows {
  const bound_list *rows, *columns;
  const match_limits *limits;
  match_nearest *nearest;
  uint32_t count;
  uint32_t number[BOUND_ROWS];
  int32_t values[BOUND_ROWS * BOUND_STEPS];
  int16_t least[BOUND_ROWS]; /* a candidate is compared if u_a u_b - |u_b|^2 / 2 is larger than this */
} bound_rows;

/* Sets a row's limit. complete: both nearest of the row are wanted. */
static void bound_set_limit(bound_rows *b, uint32_t r, bool complete) {
  const match_nearest *n = &b->nearest[b->number[r]];
  const double q = b->limits->ratio_squared, nearest = (double)n->nearest_squared;
  const double squared = complete                      ? (double)n->second_squared
                         : match_accepts(b->limits, n) ? nearest / q * (1.0 + 1e-9)
                                                       : q * nearest;
  const uint32_t i = b->number[r];
  const double limit = match_bound_limit(squared, b->rows->errors[i] + b->columns->error);
  /* A candidate with |u_a|^2 + |u_b|^2 - 2 u_a u_b > limit is ruled out. Rounding never rules out more. */
  const double least = floor(((double)b->rows->value_norms[i] - limit) * 0.5) - 1.0;
  b->least[r] = least > INT16_MIN ? (int16_t)least : INT16_MIN;
}

/* Returns the squared distance of row r and column j. */
static uint32_t bound_square(const bound_rows *b, uint32_t r, uint64_t j) {
  const int32_t *x = b->rows->words + (size_t)b->number[r] * BOUND_WORDS, *y = b->columns->words + j * BOUND_WORDS;
  simd_i32 sum = simd_i32_set1(0);
  for (int k = 0; k < BOUND_WORDS; k += SIMD_WIDTH) sum = simd_dot_i16(sum, simd_i32_load(x + k), simd_i32_load(y + k));
  int32_t lanes[SIMD_WIDTH], product = 0;
  simd_i32_store(lanes, sum);
  for (int k = 0; k < SIMD_WIDTH; k++) product += lanes[k];
  return (uint32_t)(b->rows->norms[b->number[r]] + b->columns->norms[j] - 2 * product);
}

/* Compares a row with the remaining candidates of a panel. */
static void bound_compare(bound_rows *b, uint32_t r, uint64_t first, uint64_t left, bool complete) {
  match_nearest *n = &b->nearest[b->number[r]];
  bool changed = false;
  for (; left != 0; left &= left - 1) {
    const uint32_t j = (uint32_t)first + (uint32_t)__builtin_ctzll(left) / SIMD_I16_BITS;
    if (j >= b->columns->count || j == n->nearest || j == n->second) continue;
    const float square = (float)bound_square(b, r, j);
    if (square > n->second_squared) continue;
    match_take(n, j, square);
    changed = true;
  }
  if (changed) bound_set_limit(b, r, complete);
}

/* Finds the candidates of a tile. left[r] has SIMD_I16_BITS bits set for each column of the panel with which row r must
 * be compared. Returns false if there is none. */
static bool bound_tile(const bound_rows *b, uint32_t r0, uint64_t panel, uint64_t left[TILE_ROWS]) {
  const int32_t *rows = b->values + (size_t)r0 * BOUND_STEPS;
  const int16_t *columns = b->columns->panels + panel * BOUND_PANEL * BOUND_STEPS;
  const int16_t *halves = b->columns->halves + panel * BOUND_PANEL;
#define VECTOR(from, v) simd_i32_load((const int32_t *)(const void *)((from) + (v)*BOUND_LANES))
#define ROW_DECLARE(r)  simd_i32 sum##r##0 = VECTOR(halves, 0), sum##r##1 = VECTOR(halves, 1);
#define ROW_MULTIPLY(r)                                                                                                \
  {                                                                                                                    \
    const simd_i32 a = simd_i32_set1(rows[r * BOUND_STEPS + k]);                                                       \
    sum##r##0 = simd_i16_dot(sum##r##0, a, c0);                                                                        \
    sum##r##1 = simd_i16_dot(sum##r##1, a, c1);                                                                        \
  }
#define ROW_BITS(r)                                                                                                    \
  {                                                                                                                    \
    const simd_i32 least = simd_i16_set1(b->least[r0 + r]);                                                            \
    left[r] = simd_i16_gt_bits(sum##r##0, least) | (uint64_t)simd_i16_gt_bits(sum##r##1, least) << 32;                 \
    any |= left[r];                                                                                                    \
  }
  uint64_t any = 0;
  EACH_ROW(ROW_DECLARE)
  for (int k = 0; k < BOUND_STEPS; k++) {
    const simd_i32 c0 = VECTOR(columns + k * BOUND_PANEL, 0), c1 = VECTOR(columns + k * BOUND_PANEL, 1);
    EACH_ROW(ROW_MULTIPLY)
  }
  EACH_ROW(ROW_BITS)
  return any != 0;
#undef VECTOR
#undef ROW_DECLARE
#undef ROW_MULTIPLY
#undef ROW_BITS
}

/* Compares the rows with all columns. */
static void bound_scan(bound_rows *b, bool complete) {
  const uint32_t tiles = (b->count + TILE_ROWS - 1) / TILE_ROWS;
  for (uint32_t r = 0; r < tiles * TILE_ROWS; r++) {
    if (r < b->count) {
      memcpy(b->values + (size_t)r * BOUND_STEPS, b->rows->rows + (size_t)b->number[r] * BOUND_STEPS,
             BOUND_STEPS * sizeof(int32_t));
      bound_set_limit(b, r, complete);
    } else {
      memset(b->values + (size_t)r * BOUND_STEPS, 0, BOUND_STEPS * sizeof(int32_t));
      b->least[r] = INT16_MAX;
    }
  }
  for (uint64_t p = 0; p < b->columns->padded / BOUND_PANEL; p++) {
    for (uint32_t t = 0; t < tiles; t++) {
      uint64_t left[TILE_ROWS];
      if (!bound_tile(b, t * TILE_ROWS, p, left)) continue;
      for (uint32_t r = 0; r < TILE_ROWS; r++)
        if (left[r] != 0) bound_compare(b, t * TILE_ROWS + r, p * BOUND_PANEL, left[r], complete);
    }
  }
}

/* Finds the rows that pass, and the nearest of each. */
static void bound_decide(bound_rows *b) {
  for (uint32_t r = 0; r < b->count; r++) b->nearest[b->number[r]] = match_nearest_none();
  bound_scan(b, false);
  uint32_t kept = 0;
  for (uint32_t r = 0; r < b->count; r++)
    if (match_accepts(b->limits, &b->nearest[b->number[r]])) b->number[kept++] = b->number[r];
  b->count = kept;
  if (kept > 0) bound_scan(b, false);
}

/* Matching in one direction, of all rows or of `count` of them. */
typedef struct bound_job {
  const bound_list *rows, *columns;
  const match_limits *limits;
  match_nearest *nearest;
  const uint32_t *wanted; /* numbers of the rows; null: all rows */
  uint32_t count;
  bool complete; /* whether the rows are known to pass, and their second nearest are wanted */
} bound_job;

static void bound_task(void *argument, int32_t chunk, int32_t worker) {
  const bound_job *job = argument;
  bound_rows b = {.rows = job->rows, .columns = job->columns, .limits = job->limits, .nearest = job->nearest};
  const uint32_t first = (uint32_t)chunk * BOUND_ROWS, left = job->count - first;
  (void)worker;
  b.count = left < BOUND_ROWS ? left : BOUND_ROWS;
  for (uint32_t r = 0; r < b.count; r++) b.number[r] = job->wanted ? job->wanted[first + r] : first + r;
  if (job->complete)
    bound_scan(&b, true);
  else
    bound_decide(&b);
}

static int32_t bound_chunks(uint64_t count, uint64_t of_one) { return (int32_t)((count + of_one - 1) / of_one); }

/* Returns whether the bound is used for these arguments. The answer does not depend on the first list, so that a packed
   second list stays valid from call to call. */
static bool bound_serves(const match_args *a) {
  return a->limits && a->limits->ratio_squared > 0.0 && a->limits->ratio_squared <= 0.9 && a->type == MATCH_U8 &&
         a->guide == MATCH_UNGUIDED && a->backward && a->second.count >= BOUND_COUNT_MIN;
}

static uint64_t bound_work_bytes(const match_args *a) {
  return bound_list_bytes(a->first.count) + bound_list_bytes(a->second.count) +
         (uint64_t)a->second.count * sizeof(uint32_t);
}

static void bound_match(stage_queue *queue, const match_args *a) {
  unsigned char *rest = a->work + bound_list_bytes(a->second.count);
  bound_list second = bound_list_at(&a->second, a->work), first = bound_list_at(&a->first, rest);
  uint32_t *wanted = (uint32_t *)(void *)(rest + bound_list_bytes(a->first.count)), count = 0;
  if (!a->second_is_packed) queue_run(queue, bound_chunks(second.count, BOUND_PACKED), bound_pack_task, &second);
  queue_run(queue, bound_chunks(first.count, BOUND_PACKED), bound_pack_task, &first);
  second.error = bound_error(&second);
  first.error = bound_error(&first);
  bound_job job = {&first, &second, a->limits, a->forward, NULL, first.count, false};
  queue_run(queue, bound_chunks(job.count, BOUND_ROWS), bound_task, &job);
  /* Collect the nearest of the rows that pass, each once. */
  for (uint32_t j = 0; j < second.count; j++) a->backward[j] = match_nearest_none();
  for (uint32_t i = 0; i < first.count; i++) {
    match_nearest *back = match_accepts(a->limits, &a->forward[i]) ? &a->backward[a->forward[i].nearest] : NULL;
    if (back && back->nearest == MATCH_NONE) {
      back->nearest = 0;
      wanted[count++] = a->forward[i].nearest;
    }
  }
  job = (bound_job){&second, &first, a->limits, a->backward, wanted, count, false};
  queue_run(queue, bound_chunks(count, BOUND_ROWS), bound_task, &job);
  /* Collect the remaining pairs, in the order of the list whose second nearest are wanted. */
  uint32_t pairs = 0;
  for (uint32_t n = 0; n < count; n++) {
    const uint32_t j = wanted[n], i = a->backward[j].nearest;
    if (match_accepts(a->limits, &a->backward[j]) && match_accepts(a->limits, &a->forward[i]) &&
        a->forward[i].nearest == j)
      wanted[pairs++] = a->exchanged ? j : i;
  }
  job.complete = true;
  job.count = pairs;
  if (!a->exchanged) {
    job.rows = &first;
    job.columns = &second;
    job.nearest = a->forward;
  }
  queue_run(queue, bound_chunks(pairs, BOUND_ROWS), bound_task, &job);
}

#endif
