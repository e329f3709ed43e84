/* The nearest descriptors, in tiles on several threads; built once for each instruction set.
 *
 * The second list is packed into panels first, so that the values of a panel's descriptors are adjacent. A row is a
 * descriptor of the first list, a column a descriptor of the second. A chunk is a run of rows. It is compared with one
 * panel after another; a panel fits into the L1 cache. A chunk finds the nearest neighbours of its rows alone. For
 * columns, each worker collects nearest neighbours among the rows of its chunks; the lists of all workers are merged at
 * the end. The order of candidates is total, so the order of comparisons does not matter. */
#include <string.h>

#include "cpu/schedule/threads.h"
#include "cpu/simd/match_bound_simd.h"
#include "cpu/simd/match_guided_simd.h"
#include "cpu/simd/match_tile_simd.h"
#include "cpu/simd/stages_simd.h"

enum {
  CHUNK_ROWS_MAX = 256, /* row numbers in the keys of columns must be below KEY_NUMBERS */
  CHUNK_ROWS_MIN = 16,
  CHUNKS_A_THREAD = 4,
  PACK_PANELS = 16,     /* number of panels in a chunk of packing */
  MERGE_COLUMNS = 4096, /* number of columns in a chunk of merging */
  ALIGNMENT = 64
};
_Static_assert((int)CHUNK_ROWS_MAX <= (int)KEY_NUMBERS && CHUNK_ROWS_MAX % TILE_ROWS == 0, "places of rows fit keys");

/* Layout of the work memory. */
typedef struct match_layout {
  uint32_t chunk_rows;
  uint64_t panels;
  uint64_t panel_bytes; /* bytes of a panel */
  uint64_t row_bytes;   /* bytes of a packed row */
  /* offsets and sizes, bytes */
  uint64_t constants, workers, rows, row_constants, row_lanes, columns, worker_bytes, bytes;
} match_layout;

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1); }

/* Counts are below 2^32 and there are at most 1024 threads, so no value here reaches 2^48. */
static match_layout layout_of(const match_args *a, int32_t threads) {
  match_layout l = {0};
  const bool bytes = a->type == MATCH_U8;
  const uint64_t wanted = a->first.count / ((uint64_t)threads * CHUNKS_A_THREAD) + 1;
  l.chunk_rows = wanted < CHUNK_ROWS_MIN ? CHUNK_ROWS_MIN : CHUNK_ROWS_MAX;
  if (wanted >= CHUNK_ROWS_MIN && wanted < CHUNK_ROWS_MAX)
    l.chunk_rows = ((uint32_t)wanted + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
  l.panels = ((uint64_t)a->second.count + PANEL - 1) / PANEL;
  l.row_bytes = packed_row_bytes(a->type);
  l.panel_bytes = packed_panel_bytes(a->type);
  const bool guided = a->guide != MATCH_UNGUIDED; /* guided matching packs positions only */
  l.constants = guided ? 0 : aligned(l.panels * l.panel_bytes);
  l.workers = guided ? guided_list_bytes(a->second.count)
                     : l.constants + aligned(bytes ? l.panels * PANEL * sizeof(int32_t) : 0);
  l.row_constants = guided ? 0 : aligned(l.row_bytes * CHUNK_ROWS_MAX);
  l.row_lanes = guided ? 0 : l.row_constants + aligned(CHUNK_ROWS_MAX * sizeof(int32_t));
  l.columns = guided ? 0 : l.row_lanes + CHUNK_ROWS_MAX * (bytes ? sizeof(key_lanes) : sizeof(float_lanes));
  l.worker_bytes = l.columns + aligned(a->backward ? a->second.count * sizeof(match_nearest) : 0);
  l.bytes = l.workers + l.worker_bytes * (uint64_t)threads;
  return l;
}

bool SIMD_NAME(match_work_bytes)(const match_args *a, int32_t threads, size_t *bytes) {
  const uint64_t needed = bound_serves(a) ? bound_work_bytes(a) : layout_of(a, threads).bytes;
  if (needed > SIZE_MAX) return false;
  *bytes = (size_t)needed;
  return true;
}

typedef struct match_job {
  const match_args *args;
  match_layout layout;
  int32_t threads;
} match_job;

static void *worker_part(const match_job *job, int32_t worker, uint64_t offset) {
  return job->args->work + job->layout.workers + job->layout.worker_bytes * (uint64_t)worker + offset;
}

static match_nearest *worker_columns(const match_job *job, int32_t worker) {
  return worker_part(job, worker, job->layout.columns);
}

/* Rows of a chunk. */
typedef struct row_range {
  uint32_t first, count;
} row_range;

static row_range rows_of(const match_job *job, int32_t chunk) {
  const uint32_t first = (uint32_t)chunk * job->layout.chunk_rows, left = job->args->first.count - first;
  return (row_range){first, left < job->layout.chunk_rows ? left : job->layout.chunk_rows};
}

/* ------------------------------------------------------------------ packing */

/* Returns the contribution of a column to its keys. */
static int32_t key_constant(int32_t part) { return (int32_t)(((uint32_t)part << KEY_BITS) ^ 0x80000000u); }

static void pack_task(void *argument, int32_t chunk, int32_t worker) {
  const match_job *job = argument;
  (void)worker;
  const uint64_t first = (uint64_t)chunk * PACK_PANELS;
  for (uint64_t p = first; p < job->layout.panels && p < first + PACK_PANELS; p++) {
    int32_t *constants = (int32_t *)(void *)(job->args->work + job->layout.constants) + p * PANEL;
    pack_panel(job->args->type, &job->args->second, p, job->args->work + p * job->layout.panel_bytes, constants);
    for (size_t j = 0; job->args->type == MATCH_U8 && j < PANEL; j++) constants[j] = key_constant(constants[j]);
  }
}

/* ------------------------------------------------------------------ 8-bit descriptors */

/* A chunk in progress: its rows, and the destination of each tile's results. */
typedef struct byte_chunk {
  row_range range;
  int32_t *rows, *row_constants;
  key_lanes *row_lanes;
  match_nearest *columns; /* list of the worker, or null */
} byte_chunk;

static void keys_clear(key_lanes *lanes, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t l = 0; l < SIMD_WIDTH; l++) lanes[i].nearest[l] = lanes[i].second[l] = KEY_NONE;
}

/* Inserts a key into the nearest of a feature. The candidate's index is first + number * scale + lane. */
static void key_deliver(match_nearest *n, int32_t key, uint32_t first, uint32_t scale, uint32_t lane) {
  const uint32_t square = key_square(key);
  if (square > KEY_SQUARE_MAX || (float)square > n->second_squared) return;
  match_take(n, first + key_number(key) * scale + lane, (float)square);
}

/* Merges the lanes of each row into its result, and resets them. first: index of the candidate with number 0 in
 * lane 0. */
static void rows_deliver(const match_job *job, const byte_chunk *c, uint32_t first) {
  for (uint32_t r = 0; r < c->range.count; r++) {
    match_nearest *n = &job->args->forward[c->range.first + r];
    for (uint32_t l = 0; l < SIMD_WIDTH; l++) {
      key_deliver(n, c->row_lanes[r].nearest[l], first, SIMD_WIDTH, l);
      key_deliver(n, c->row_lanes[r].second[l], first, SIMD_WIDTH, l);
    }
  }
  keys_clear(c->row_lanes, c->range.count);
}

static void columns_deliver(const byte_chunk *c, const key_lanes *lanes, uint64_t panel, size_t count) {
  for (size_t j = 0; j < count; j++) {
    match_nearest *n = &c->columns[panel * PANEL + j];
    key_deliver(n, lanes[j / SIMD_WIDTH].nearest[j % SIMD_WIDTH], c->range.first, 1, 0);
    key_deliver(n, lanes[j / SIMD_WIDTH].second[j % SIMD_WIDTH], c->range.first, 1, 0);
  }
}

/* Compares all rows of a chunk with one panel. vector_number: number of the panel's first vector in the keys. */
static void byte_panel(const match_job *job, const byte_chunk *c, uint64_t panel, int32_t vector_number) {
  const match_args *a = job->args;
  const uint64_t left = a->second.count - panel * PANEL;
  const size_t count = left < PANEL ? (size_t)left : PANEL;
  int32_t lowest[PANEL];
  for (size_t j = 0; j < PANEL; j++) lowest[j] = j < count ? INT_MIN : KEY_NONE & -KEY_NUMBERS;
  key_lanes columns[TILE_VECTORS];
  if (c->columns) keys_clear(columns, TILE_VECTORS);
  byte_tile t = {.panel = (const int32_t *)(const void *)(a->work + panel * job->layout.panel_bytes),
                 .constant = (const int32_t *)(const void *)(a->work + job->layout.constants) + panel * PANEL,
                 .lowest = count < PANEL ? lowest : NULL,
                 .vector_number = vector_number,
                 .columns = c->columns ? columns : NULL};
  for (uint32_t r = 0; r < c->range.count; r += TILE_ROWS) {
    const uint32_t rows = c->range.count - r;
    t.rows = c->rows + (size_t)r * DOT_STEPS;
    t.row_constant = c->row_constants + r;
    t.row_count = rows < TILE_ROWS ? (int32_t)rows : TILE_ROWS;
    t.row_number = (int32_t)r;
    t.row_lanes = c->row_lanes + r;
    byte_tile_run(&t);
  }
  if (c->columns) columns_deliver(c, columns, panel, count);
}

static void byte_task(void *argument, int32_t chunk, int32_t worker) {
  const match_job *job = argument;
  const match_args *a = job->args;
  const byte_chunk c = {.range = rows_of(job, chunk),
                        .rows = worker_part(job, worker, 0),
                        .row_constants = worker_part(job, worker, job->layout.row_constants),
                        .row_lanes = worker_part(job, worker, job->layout.row_lanes),
                        .columns = a->backward ? worker_columns(job, worker) : NULL};
  const uint8_t *from = (const uint8_t *)a->first.descriptors + (size_t)c.range.first * MATCH_LENGTH;
  /* the last tile also computes its padding rows */
  memset(c.rows, 0, CHUNK_ROWS_MAX * DOT_STEPS * sizeof(int32_t));
  memset(c.row_constants, 0, CHUNK_ROWS_MAX * sizeof(int32_t));
  for (size_t r = 0; r < c.range.count; r++) {
    a->forward[c.range.first + r] = match_nearest_none();
    c.row_constants[r] = (int32_t)(norm_of(from + r * MATCH_LENGTH) << KEY_BITS);
    pack_row(from + r * MATCH_LENGTH, c.rows + r * DOT_STEPS);
  }
  keys_clear(c.row_lanes, CHUNK_ROWS_MAX);
  const uint64_t run = KEY_NUMBERS / TILE_VECTORS; /* number of panels after which vector numbers restart */
  for (uint64_t p = 0; p < job->layout.panels; p++) {
    byte_panel(job, &c, p, (int32_t)(p % run) * TILE_VECTORS);
    if (p % run == run - 1 || p + 1 == job->layout.panels) rows_deliver(job, &c, (uint32_t)(p / run * run * PANEL));
  }
}

/* ------------------------------------------------------------------ float descriptors */

static void floats_clear(float_lanes *lanes, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t l = 0; l < SIMD_WIDTH; l++) {
      lanes[i].nearest_squared[l] = lanes[i].second_squared[l] = INFINITY;
      lanes[i].nearest[l] = lanes[i].second[l] = 0;
    }
}

/* Inserts both candidates of a lane into the nearest of a feature. A candidate's index is first + number * scale. */
static void lane_deliver(match_nearest *n, const float_lanes *lanes, size_t lane, uint32_t first, uint32_t scale) {
  const uint32_t number[2] = {(uint32_t)lanes->nearest[lane], (uint32_t)lanes->second[lane]};
  if (lanes->nearest_squared[lane] < INFINITY) match_take(n, first + number[0] * scale, lanes->nearest_squared[lane]);
  if (lanes->second_squared[lane] < INFINITY) match_take(n, first + number[1] * scale, lanes->second_squared[lane]);
}

typedef struct float_chunk {
  row_range range;
  const float *rows; /* rows of floats, padded to complete tiles */
  float_lanes *row_lanes;
  match_nearest *columns; /* list of the worker, or null */
} float_chunk;

static void float_panel(const match_job *job, const float_chunk *c, uint64_t panel) {
  const match_args *a = job->args;
  const uint64_t left = a->second.count - panel * PANEL;
  float_lanes columns[TILE_VECTORS];
  if (c->columns) floats_clear(columns, TILE_VECTORS);
  float_tile t = {.panel = (const float *)(const void *)(a->work + panel * job->layout.panel_bytes),
                  .valid = left < PANEL ? (int32_t)left : PANEL,
                  .vector_number = (uint32_t)(panel * TILE_VECTORS),
                  .columns = c->columns ? columns : NULL};
  for (uint32_t r = 0; r < c->range.count; r += TILE_ROWS) {
    const uint32_t rows = c->range.count - r;
    t.rows = c->rows + (size_t)r * MATCH_LENGTH;
    t.row_count = rows < TILE_ROWS ? (int32_t)rows : TILE_ROWS;
    t.row_number = c->range.first + r;
    t.row_lanes = c->row_lanes + r;
    float_tile_run(&t);
  }
  for (int32_t j = 0; c->columns && j < t.valid; j++)
    lane_deliver(&c->columns[panel * PANEL + (uint64_t)j], &columns[j / SIMD_WIDTH], (size_t)(j % SIMD_WIDTH), 0, 1);
}

static void float_task(void *argument, int32_t chunk, int32_t worker) {
  const match_job *job = argument;
  const match_args *a = job->args;
  float *rows = worker_part(job, worker, 0);
  const float_chunk c = {.range = rows_of(job, chunk),
                         .rows = rows,
                         .row_lanes = worker_part(job, worker, job->layout.row_lanes),
                         .columns = a->backward ? worker_columns(job, worker) : NULL};
  memset(rows, 0, CHUNK_ROWS_MAX * MATCH_LENGTH * sizeof(float));
  memcpy(rows, (const float *)a->first.descriptors + (size_t)c.range.first * MATCH_LENGTH,
         c.range.count * MATCH_LENGTH * sizeof(float));
  floats_clear(c.row_lanes, c.range.count);
  for (uint64_t p = 0; p < job->layout.panels; p++) float_panel(job, &c, p);
  for (uint32_t r = 0; r < c.range.count; r++) {
    match_nearest *n = &a->forward[c.range.first + r];
    *n = match_nearest_none();
    for (uint32_t l = 0; l < SIMD_WIDTH; l++) lane_deliver(n, &c.row_lanes[r], l, l, SIMD_WIDTH);
  }
}

/* ------------------------------------------------------------------ guided */

static void guided_task(void *argument, int32_t chunk, int32_t worker) {
  const match_job *job = argument;
  const match_args *a = job->args;
  const row_range range = rows_of(job, chunk);
  const guided_list list = guided_list_at(a->second.count, a->work);
  match_nearest *columns = a->backward ? worker_columns(job, worker) : NULL;
  for (uint32_t i = range.first; i < range.first + range.count; i++) a->forward[i] = guided_row(a, &list, i, columns);
}

/* ------------------------------------------------------------------ driver */

static void clear_task(void *argument, int32_t chunk, int32_t worker) {
  const match_job *job = argument;
  match_nearest *columns = worker_columns(job, chunk); /* each chunk uses one worker's list */
  (void)worker;
  for (uint32_t j = 0; j < job->args->second.count; j++) columns[j] = match_nearest_none();
}

static void merge_task(void *argument, int32_t chunk, int32_t worker) {
  const match_job *job = argument;
  const match_args *a = job->args;
  (void)worker;
  const uint32_t first = (uint32_t)chunk * MERGE_COLUMNS, left = a->second.count - first;
  const uint32_t end = first + (left < MERGE_COLUMNS ? left : MERGE_COLUMNS);
  for (uint32_t j = first; j < end; j++) {
    match_nearest n = match_nearest_none();
    for (int32_t w = 0; w < job->threads; w++) {
      const match_nearest *found = &worker_columns(job, w)[j];
      if (found->nearest != MATCH_NONE) match_take(&n, found->nearest, found->nearest_squared);
      if (found->second != MATCH_NONE) match_take(&n, found->second, found->second_squared);
    }
    a->backward[j] = n;
  }
}

static int32_t chunks_for(uint64_t count, uint64_t of_one) { return (int32_t)((count + of_one - 1) / of_one); }

static stage_status match_lists(stage_queue *queue, const match_args *a, bool wants_second) {
  if (bound_serves(a)) {
    bound_match(queue, a, wants_second);
    return STAGE_OK;
  }
  const int32_t threads = queue_threads(queue);
  match_job job = {.args = a, .layout = layout_of(a, threads), .threads = threads};
  const bool guided = a->guide != MATCH_UNGUIDED;
  if (a->backward) queue_run(queue, threads, clear_task, &job);
  /* Panels and their constants come first in the work memory. Their offsets depend only on the second list, so a
   * later call finds them packed. */
  if (guided) {
    const guided_list list = guided_list_at(a->second.count, a->work);
    guided_pack(&a->second, &list);
  } else if (!a->second_is_packed) {
    queue_run(queue, chunks_for(job.layout.panels, PACK_PANELS), pack_task, &job);
  }
  queue_run(queue, chunks_for(a->first.count, job.layout.chunk_rows),
            guided ? guided_task : (a->type == MATCH_U8 ? byte_task : float_task), &job);
  if (a->backward) queue_run(queue, chunks_for(a->second.count, MERGE_COLUMNS), merge_task, &job);
  return STAGE_OK;
}

stage_status SIMD_NAME(match)(stage_queue *queue, const match_args *a) { return match_lists(queue, a, true); }

stage_status SIMD_NAME(match_without_second)(stage_queue *queue, const match_args *a) {
  return match_lists(queue, a, false);
}

/* All squared distances of a few descriptors to a list, computed in the tiles of matching. Built once for each
 * instruction set.
 *
 * pack_second packs the second list once. Then any thread computes rows with the function squares. A panel stays in the
 * L1 cache while a block of rows is compared with it. */

enum { ROWS_AT_ONCE = 32 };
_Static_assert(SQUARES_PITCH % PANEL == 0, "whole panels fit the rows of squares");
_Static_assert(ROWS_AT_ONCE % TILE_ROWS == 0, "whole tiles fit the rows that are packed at once");

static uint64_t panels_of(const match_side *list) { return ((uint64_t)list->count + PANEL - 1) / PANEL; }

/* Returns 0 for a guide: positions rule out nearly every pair, so the list is not packed. */
size_t SIMD_NAME(squares_work_bytes)(const squares_args *a) {
  const size_t panels = a->guide == MATCH_UNGUIDED ? (size_t)panels_of(&a->second) : 0;
  return panels * packed_panel_bytes(a->type) + panels * PANEL * sizeof(int32_t);
}

static unsigned char *panel_values(const squares_args *a, uint64_t panel) {
  return a->work + (size_t)panel * packed_panel_bytes(a->type);
}

static int32_t *panel_parts(const squares_args *a, uint64_t panel) {
  return (int32_t *)(void *)panel_values(a, panels_of(&a->second)) + panel * PANEL;
}

static void pack_second_task(void *argument, int32_t chunk, int32_t worker) {
  const squares_args *a = argument;
  const uint64_t first = (uint64_t)chunk * PACK_PANELS, panels = panels_of(&a->second);
  (void)worker;
  for (uint64_t p = first; p < panels && p < first + PACK_PANELS; p++)
    pack_panel(a->type, &a->second, p, panel_values(a, p), panel_parts(a, p));
}

stage_status SIMD_NAME(pack_second)(stage_queue *queue, const squares_args *a) {
  squares_args copy = *a;
  if (a->guide == MATCH_UNGUIDED)
    queue_run(queue, (int32_t)((panels_of(&a->second) + PACK_PANELS - 1) / PACK_PANELS), pack_second_task, &copy);
  return STAGE_OK;
}

/* ------------------------------------------------------------------ rows */

/* Rows of the first list, packed for tiles. Padding rows of the last tile are 0. */
typedef struct packed_rows {
  _Alignas(64) int32_t words[ROWS_AT_ONCE * MATCH_LENGTH]; /* words; or floats, which have the same size */
  int32_t norms[ROWS_AT_ONCE];
} packed_rows;

static void pack_rows(const squares_args *a, uint32_t first, uint32_t count, packed_rows *rows) {
  memset(rows, 0, sizeof *rows);
  if (a->type == MATCH_F32) {
    memcpy(rows->words, (const float *)a->first.descriptors + (size_t)first * MATCH_LENGTH,
           count * MATCH_LENGTH * sizeof(float));
    return;
  }
  const uint8_t *from = (const uint8_t *)a->first.descriptors + (size_t)first * MATCH_LENGTH;
  for (uint32_t r = 0; r < count; r++) {
    pack_row(from + (size_t)r * MATCH_LENGTH, rows->words + (size_t)r * DOT_STEPS);
    rows->norms[r] = (int32_t)norm_of(from + (size_t)r * MATCH_LENGTH);
  }
}

/* Converts the products of one row of a tile to squares |a|^2 + |b|^2 - 2 ab, which are exact as integers and as
 * floats. */
static void put_byte_row(const int32_t *products, int32_t norm, const int32_t *parts, float *squares) {
  const simd_i32 a = simd_i32_set1(norm);
  for (int v = 0; v < TILE_VECTORS; v++) {
    const simd_i32 twice = simd_i32_shift_left(simd_i32_load(products + v * SIMD_WIDTH), 1);
    const simd_i32 b = simd_i32_load(parts + v * SIMD_WIDTH);
    simd_store(squares + v * SIMD_WIDTH, simd_from_i32(simd_i32_add(a, simd_i32_sub(b, twice))));
  }
}

static void put_float_row(const float *sums, float *squares) {
  const simd_f32 infinity = simd_set1(INFINITY);
  for (int v = 0; v < TILE_VECTORS; v++) {
    const simd_f32 squared = simd_load(sums + v * SIMD_WIDTH);
    simd_store(squares + v * SIMD_WIDTH, simd_select(simd_lt(squared, infinity), squared, infinity));
  }
}

/* Compares a block of packed rows with one panel. */
static void panel_squares(const squares_args *a, const packed_rows *rows, uint32_t count, uint64_t panel,
                          float *squares) {
  _Alignas(64) int32_t products[TILE_ROWS * PANEL];
  _Alignas(64) float sums[TILE_ROWS * PANEL];
  for (uint32_t r = 0; r < count; r += TILE_ROWS) {
    const uint32_t there = count - r < TILE_ROWS ? count - r : TILE_ROWS;
    if (a->type == MATCH_U8) {
      const byte_tile t = {.rows = rows->words + (size_t)r * DOT_STEPS,
                           .panel = (const int32_t *)(const void *)panel_values(a, panel)};
      byte_tile_multiply(&t, products);
    } else {
      const float_tile t = {.rows = (const float *)(const void *)(rows->words + (size_t)r * MATCH_LENGTH),
                            .panel = (const float *)(const void *)panel_values(a, panel)};
      float_tile_square(&t, sums);
    }
    for (uint32_t i = 0; i < there; i++) {
      float *target = squares + (r + i) * a->pitch + panel * PANEL;
      if (a->type == MATCH_U8)
        put_byte_row(products + i * PANEL, rows->norms[r + i], panel_parts(a, panel), target);
      else
        put_float_row(sums + i * PANEL, target);
    }
  }
}

/* Compares positions first, because they rule out nearly every pair. */
static void guided_squares(const squares_args *a) {
  for (uint32_t r = 0; r < a->rows; r++) {
    const uint32_t i = a->first_row + r;
    for (uint32_t j = 0; j < a->second.count; j++) {
      const bool agrees = match_agrees(a->guide, a->tolerance_squared, &a->first.positions[i], &a->second.positions[j]);
      a->squares[r * a->pitch + j] = agrees ? match_square(a->type, &a->first, i, &a->second, j) : INFINITY;
    }
  }
}

stage_status SIMD_NAME(squares)(const squares_args *a) {
  packed_rows rows;
  if (a->guide != MATCH_UNGUIDED) {
    guided_squares(a);
    return STAGE_OK;
  }
  for (uint32_t r = 0; r < a->rows; r += ROWS_AT_ONCE) {
    const uint32_t count = a->rows - r < ROWS_AT_ONCE ? a->rows - r : ROWS_AT_ONCE;
    pack_rows(a, a->first_row + r, count, &rows);
    for (uint64_t p = 0; p < panels_of(&a->second); p++) panel_squares(a, &rows, count, p, a->squares + r * a->pitch);
  }
  return STAGE_OK;
}
