/*
 * All squared distances of a few descriptors with a list, in the tiles of matching; built once for each instruction set.
 *
 * The second list is packed once (pack_second), then any thread asks for rows (squares). A panel stays in the L1 cache
 * while a block of rows is compared with it.
 */
#include "cpu/simd/match_pack_simd.h"
#include "cpu/simd/stages_simd.h"
#include "cpu/schedule/threads.h"

enum { PACK_PANELS = 16, ROWS_AT_ONCE = 32 };
_Static_assert(SQUARES_PITCH % PANEL == 0, "whole panels fit the rows of squares");
_Static_assert(ROWS_AT_ONCE % TILE_ROWS == 0, "whole tiles fit the rows that are packed at once");

static uint64_t panels_of(const match_side *list) { return ((uint64_t)list->count + PANEL - 1) / PANEL; }

/* A guide needs nothing packed: it rules out nearly every pair by the places. */
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

static void pack_task(void *argument, int32_t chunk, int32_t worker) {
  const squares_args *a = argument;
  const uint64_t first = (uint64_t)chunk * PACK_PANELS, panels = panels_of(&a->second);
  (void)worker;
  for (uint64_t p = first; p < panels && p < first + PACK_PANELS; p++)
    pack_panel(a->type, &a->second, p, panel_values(a, p), panel_parts(a, p));
}

stage_status SIMD_NAME(pack_second)(stage_queue *queue, const squares_args *a) {
  squares_args copy = *a;
  if (a->guide == MATCH_UNGUIDED)
    queue_run(queue, (int32_t)((panels_of(&a->second) + PACK_PANELS - 1) / PACK_PANELS), pack_task, &copy);
  return STAGE_OK;
}

/* ------------------------------------------------------------------ rows */

/* Rows of the first list at work, as tiles take them; those that fill the last tile are zeros. */
typedef struct packed_rows {
  _Alignas(64) int32_t words[ROWS_AT_ONCE * MATCH_LENGTH]; /* or floats of as many bytes */
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

/* Products of a tile's row into squares: |a|^2 + |b|^2 - 2 ab, exact in integers and in floats. */
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

/* A block of packed rows against one panel. */
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

/* Coordinates first, because they rule out nearly every pair. */
static void guided_squares(const squares_args *a) {
  for (uint32_t r = 0; r < a->rows; r++) {
    const uint32_t i = a->first_row + r;
    for (uint32_t j = 0; j < a->second.count; j++) {
      const bool agrees = match_agrees(a->guide, a->tolerance_squared, &a->first.places[i], &a->second.places[j]);
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
