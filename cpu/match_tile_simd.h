/*
 * Tiles of matching: TILE_ROWS descriptors of the first list against a panel of PANEL descriptors of the second, kept
 * in registers while the 128 values go by. Lanes are descriptors of the second list, so nothing is summed across lanes.
 *
 * 8-bit values: |a - b|^2 = |a|^2 + |b|^2 - 2 ab in 32-bit integers, which wrap, so only the result has to fit. A key
 * is the square (23 bits) shifted left by KEY_BITS, with the place of the candidate below it: the smaller key is the
 * nearer candidate and, of equal squares, the lower place. The top bit is inverted, so that signed comparisons order
 * keys.
 * ab comes from products of 16-bit pairs, exact since both values are below 2^8; or, where the processor multiplies
 * bytes, of b and a - 128: ab = (a - 128) b + 128 sum(b), the last part of which goes into b's constant.
 *
 * Float values: fma over the differences, as match_square_f32; squares and places side by side.
 */
#ifndef HS_CPU_MATCH_TILE_SIMD_H
#define HS_CPU_MATCH_TILE_SIMD_H

#include <limits.h>

#include "cpu/simd.h"
#include "stages/match.h"

#if SIMD_ISA == SIMD_ISA_avx512vnni
#  define DOT_VALUES 4 /* a lane's values that one product takes */
#  define simd_dot   simd_dot_bytes
#else
#  define DOT_VALUES 2
#  define simd_dot   simd_dot_i16
#endif

enum {
  TILE_ROWS = 4,
  TILE_VECTORS = SIMD_WIDTH == 16 ? 4 : 2, /* accumulators and operands fill 32 registers, or 16 */
  PANEL = TILE_VECTORS * SIMD_WIDTH,
  DOT_STEPS = MATCH_LENGTH / DOT_VALUES,
  KEY_BITS = 32 - MATCH_SQUARE_BITS,
  KEY_PLACES = 1 << KEY_BITS,
  KEY_NONE = INT_MAX, /* its square is beyond that of any pair */
  KEY_SQUARE_MAX = MATCH_LENGTH * 255 * 255
};

/* The square and the place in a key. */
SIMD_INLINE uint32_t key_square(int32_t key) { return ((uint32_t)key ^ 0x80000000u) >> KEY_BITS; }
SIMD_INLINE uint32_t key_place(int32_t key) { return (uint32_t)key & (KEY_PLACES - 1u); }

/* The two nearest so far of each lane, ascending; stored between tiles. */
typedef struct key_lanes {
  int32_t nearest[SIMD_WIDTH], second[SIMD_WIDTH];
} key_lanes;

typedef struct float_lanes {
  float nearest_squared[SIMD_WIDTH], second_squared[SIMD_WIDTH];
  int32_t nearest[SIMD_WIDTH], second[SIMD_WIDTH]; /* places: bits of a uint32_t */
} float_lanes;

SIMD_INLINE void keys_take(key_lanes *lanes, simd_i32 key) {
  const simd_i32 nearest = simd_i32_load(lanes->nearest), second = simd_i32_load(lanes->second);
  simd_i32_store(lanes->second, simd_i32_min(second, simd_i32_max(nearest, key)));
  simd_i32_store(lanes->nearest, simd_i32_min(nearest, key));
}

/* Places ascend from call to call, so a strict comparison leaves ties to the lower. NaN is never nearer. */
SIMD_INLINE void floats_take(float_lanes *lanes, simd_f32 squared, simd_i32 place) {
  const simd_f32 d1 = simd_load(lanes->nearest_squared), d2 = simd_load(lanes->second_squared);
  const simd_mask first = simd_lt(squared, d1), next = simd_lt(squared, d2);
  if (!simd_any(next)) return; /* implies first */
  const simd_i32 p1 = simd_i32_load(lanes->nearest), p2 = simd_i32_load(lanes->second);
  simd_store(lanes->second_squared, simd_select(first, d1, simd_select(next, squared, d2)));
  simd_i32_store(lanes->second, simd_i32_select(first, p1, simd_i32_select(next, place, p2)));
  simd_store(lanes->nearest_squared, simd_select(first, squared, d1));
  simd_i32_store(lanes->nearest, simd_i32_select(first, place, p1));
}

/* One tile of 8-bit descriptors. */
typedef struct byte_tile {
  const int32_t *rows;         /* TILE_ROWS x DOT_STEPS: DOT_VALUES values a word */
  const int32_t *row_constant; /* |a|^2, shifted */
  const int32_t *panel;        /* DOT_STEPS x PANEL words */
  const int32_t *constant;     /* [PANEL]: what b contributes to the key, shifted */
  const int32_t *lowest;       /* null, or [PANEL]: the least key a lane may have, for lanes beyond the list */
  int32_t row_count;           /* rows there are, 1..TILE_ROWS; the others are only padding */
  int32_t row_place;           /* place of the first row in keys of columns */
  int32_t vector_place;        /* place of the panel's first vector in keys of rows */
  key_lanes *row_lanes;        /* [TILE_ROWS] */
  key_lanes *columns;          /* null, or [TILE_VECTORS] */
} byte_tile;

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)
#if SIMD_WIDTH == 16
#  define EACH_VECTOR(DO, r) DO(r, 0) DO(r, 1) DO(r, 2) DO(r, 3)
#else
#  define EACH_VECTOR(DO, r) DO(r, 0) DO(r, 1)
#endif

/* A finished sum of products: into keys, and those into the rows' and the columns' nearest. */
SIMD_INLINE void byte_tile_finish(const byte_tile *t, int32_t row, int32_t vector, simd_i32 products) {
  if (row >= t->row_count) return;
  const simd_i32 b = simd_i32_load(t->constant + vector * SIMD_WIDTH);
  const simd_i32 a = simd_i32_set1(t->row_constant[row]);
  simd_i32 key = simd_i32_add(a, simd_i32_sub(b, simd_i32_shift_left(products, KEY_BITS + 1)));
  if (t->lowest) key = simd_i32_max(key, simd_i32_load(t->lowest + vector * SIMD_WIDTH));
  keys_take(&t->row_lanes[row], simd_i32_or(key, simd_i32_set1(t->vector_place + vector)));
  if (t->columns) keys_take(&t->columns[vector], simd_i32_or(key, simd_i32_set1(t->row_place + row)));
}

SIMD_INLINE void byte_tile_run(const byte_tile *t) {
#define DECLARE(r, v)  simd_i32 sum##r##v = simd_i32_set1(0);
#define LOAD(r, v)     const simd_i32 b##v = simd_i32_load(b + v * SIMD_WIDTH);
#define MULTIPLY(r, v) sum##r##v = simd_dot(sum##r##v, b##v, a##r);
#define ROW_DECLARE(r) EACH_VECTOR(DECLARE, r)
#define ROW_MULTIPLY(r)                                                                                                \
  {                                                                                                                    \
    const simd_i32 a##r = simd_i32_set1(t->rows[r * DOT_STEPS + k]);                                                   \
    EACH_VECTOR(MULTIPLY, r)                                                                                           \
  }
#define FINISH(r, v)  byte_tile_finish(t, r, v, sum##r##v);
#define ROW_FINISH(r) EACH_VECTOR(FINISH, r)
  EACH_ROW(ROW_DECLARE)
  for (int k = 0; k < DOT_STEPS; k++) {
    const int32_t *b = t->panel + k * PANEL;
    EACH_VECTOR(LOAD, 0)
    EACH_ROW(ROW_MULTIPLY)
  }
  EACH_ROW(ROW_FINISH)
#undef DECLARE
#undef LOAD
#undef MULTIPLY
#undef ROW_DECLARE
#undef ROW_MULTIPLY
#undef FINISH
#undef ROW_FINISH
}

/* One tile of float descriptors; fields as above, places without a limit. */
typedef struct float_tile {
  const float *rows;  /* TILE_ROWS x MATCH_LENGTH */
  const float *panel; /* MATCH_LENGTH x PANEL */
  int32_t valid;      /* descriptors there are in the panel */
  int32_t row_count;
  uint32_t row_place, vector_place;
  float_lanes *row_lanes, *columns;
} float_tile;

SIMD_INLINE void float_tile_finish(const float_tile *t, int32_t row, int32_t vector, simd_f32 squared) {
  const int32_t lanes = t->valid - vector * SIMD_WIDTH;
  if (row >= t->row_count || lanes <= 0) return;
  if (lanes < SIMD_WIDTH) {
    float part[SIMD_WIDTH];
    simd_store(part, squared);
    for (int32_t i = lanes; i < SIMD_WIDTH; i++) part[i] = INFINITY;
    squared = simd_load(part);
  }
  floats_take(&t->row_lanes[row], squared, simd_i32_set1((int32_t)(t->vector_place + (uint32_t)vector)));
  if (t->columns) floats_take(&t->columns[vector], squared, simd_i32_set1((int32_t)(t->row_place + (uint32_t)row)));
}

SIMD_INLINE void float_tile_run(const float_tile *t) {
#define DECLARE(r, v) simd_f32 sum##r##v = simd_zero();
#define LOAD(r, v)    const simd_f32 b##v = simd_load(b + v * SIMD_WIDTH);
#define ADD(r, v)                                                                                                      \
  {                                                                                                                    \
    const simd_f32 d = simd_sub(a##r, b##v);                                                                           \
    sum##r##v = simd_fma(d, d, sum##r##v);                                                                             \
  }
#define ROW_DECLARE(r) EACH_VECTOR(DECLARE, r)
#define ROW_ADD(r)                                                                                                     \
  {                                                                                                                    \
    const simd_f32 a##r = simd_set1(t->rows[r * MATCH_LENGTH + k]);                                                    \
    EACH_VECTOR(ADD, r)                                                                                                \
  }
#define FINISH(r, v)  float_tile_finish(t, r, v, sum##r##v);
#define ROW_FINISH(r) EACH_VECTOR(FINISH, r)
  EACH_ROW(ROW_DECLARE)
  for (int k = 0; k < MATCH_LENGTH; k++) {
    const float *b = t->panel + k * PANEL;
    EACH_VECTOR(LOAD, 0)
    EACH_ROW(ROW_ADD)
  }
  EACH_ROW(ROW_FINISH)
#undef DECLARE
#undef LOAD
#undef ADD
#undef ROW_DECLARE
#undef ROW_ADD
#undef FINISH
#undef ROW_FINISH
}

#endif
