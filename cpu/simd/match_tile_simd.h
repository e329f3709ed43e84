/*
 * Tiles of matching: TILE_ROWS descriptors of the first list against a panel of PANEL descriptors of the second, kept
 * in registers over the loop of 128 values. Lanes are descriptors of the second list, so nothing is summed across
 * lanes.
 *
 * 8-bit values: |a - b|^2 = |a|^2 + |b|^2 - 2 ab in 32-bit integers, which wrap, so only the result has to fit. A
 * key is the square (23 bits) shifted left by KEY_BITS, with the candidate's number in the low bits. The smaller
 * key belongs to the nearer candidate; if squares are equal, to the one with the lower number. The top bit is
 * inverted, so that signed comparisons order keys. ab comes from products of 16-bit pairs, which are exact because
 * both values are below 2^8, or from products of bytes. AVX-512's instruction multiplies unsigned by signed bytes, so
 * there ab = (a - 128) b + 128 sum(b), whose last term is part of b's constant.
 *
 * Float values: fma over the differences, as match_square_f32; squares and numbers in separate vectors.
 */
#ifndef HARTSIFT_CPU_SIMD_MATCH_TILE_SIMD_H
#define HARTSIFT_CPU_SIMD_MATCH_TILE_SIMD_H

#include <limits.h>
#include <string.h>

#include "cpu/simd/simd.h"
#include "stages/match.h"

/* DOT_VALUES: values that a lane multiplies in one product. ROW_BIAS: subtracted from the values of rows. */
#if SIMD_ISA == SIMD_ISA_avx512vnni
#  define DOT_VALUES 4
#  define ROW_BIAS   128u
#  define simd_dot   simd_dot_bytes
#elif SIMD_ISA == SIMD_ISA_neondot
#  define DOT_VALUES 4
#  define ROW_BIAS   0u
#  define simd_dot   simd_dot_unsigned
#else
#  define DOT_VALUES 2
#  define ROW_BIAS   0u
#  define simd_dot   simd_dot_i16
#endif

enum {
  TILE_ROWS = 4,
  /* columns of a tile, in vectors: accumulators and operands fill 32 registers, or 16 */
  TILE_VECTORS = SIMD_WIDTH == 16 ? 4 : 2,
  PANEL = TILE_VECTORS * SIMD_WIDTH,
  DOT_STEPS = MATCH_LENGTH / DOT_VALUES,
  KEY_BITS = 32 - MATCH_SQUARE_BITS,
  KEY_NUMBERS = 1 << KEY_BITS,
  KEY_NONE = INT_MAX, /* larger than the key of any pair */
  KEY_SQUARE_MAX = MATCH_LENGTH * 255 * 255
};

/* Return the square and the number in a key. */
SIMD_INLINE uint32_t key_square(int32_t key) { return ((uint32_t)key ^ 0x80000000u) >> KEY_BITS; }
SIMD_INLINE uint32_t key_number(int32_t key) { return (uint32_t)key & (KEY_NUMBERS - 1u); }

/* The two nearest candidates of each lane so far, in ascending order. Stored between tiles. */
typedef struct key_lanes {
  int32_t nearest[SIMD_WIDTH], second[SIMD_WIDTH];
} key_lanes;

typedef struct float_lanes {
  float nearest_squared[SIMD_WIDTH], second_squared[SIMD_WIDTH];
  int32_t nearest[SIMD_WIDTH], second[SIMD_WIDTH]; /* numbers of the candidates: bits of a uint32_t */
} float_lanes;

/* The two smallest keys so far, in registers. */
typedef struct key_pair {
  simd_i32 nearest, second;
} key_pair;

SIMD_INLINE key_pair keys_load(const key_lanes *lanes) {
  return (key_pair){simd_i32_load(lanes->nearest), simd_i32_load(lanes->second)};
}

SIMD_INLINE void keys_store(key_lanes *lanes, key_pair pair) {
  simd_i32_store(lanes->nearest, pair.nearest);
  simd_i32_store(lanes->second, pair.second);
}

SIMD_INLINE key_pair keys_take(key_pair pair, simd_i32 key) {
  return (key_pair){simd_i32_min(pair.nearest, key), simd_i32_min(pair.second, simd_i32_max(pair.nearest, key))};
}

/* Inserts candidates. Numbers ascend from call to call, so a strict comparison gives ties to the lower number. NaN
 * is never nearer. */
SIMD_INLINE void floats_take(float_lanes *lanes, simd_f32 squared, simd_i32 number) {
  const simd_f32 d1 = simd_load(lanes->nearest_squared), d2 = simd_load(lanes->second_squared);
  const simd_mask first = simd_lt(squared, d1), next = simd_lt(squared, d2);
  if (!simd_any(next)) return; /* if no lane is nearer than the second, none is nearer than the first */
  const simd_i32 p1 = simd_i32_load(lanes->nearest), p2 = simd_i32_load(lanes->second);
  simd_store(lanes->second_squared, simd_select(first, d1, simd_select(next, squared, d2)));
  simd_i32_store(lanes->second, simd_i32_select(first, p1, simd_i32_select(next, number, p2)));
  simd_store(lanes->nearest_squared, simd_select(first, squared, d1));
  simd_i32_store(lanes->nearest, simd_i32_select(first, number, p1));
}

/* One tile of 8-bit descriptors. */
typedef struct byte_tile {
  const int32_t *rows;         /* [TILE_ROWS][DOT_STEPS] words, each packing DOT_VALUES bytes */
  const int32_t *row_constant; /* [TILE_ROWS]: |a|^2, shifted to the bits of the square in a key */
  const int32_t *panel;        /* [DOT_STEPS][PANEL] words, each packing DOT_VALUES bytes */
  const int32_t *constant;     /* [PANEL]: contribution of b to the key, shifted in the same way */
  const int32_t *lowest; /* [PANEL]: lower bound of the keys of a lane, which excludes lanes beyond the list; or null */
  /* number of valid rows, 1..TILE_ROWS; the other rows are padding, but have entries in row_lanes too */
  int32_t row_count;
  int32_t row_number;    /* number of the first row, for the keys of columns */
  int32_t vector_number; /* number of the panel's first vector, for the keys of rows */
  key_lanes *row_lanes;  /* [TILE_ROWS] */
  key_lanes *columns;    /* [TILE_VECTORS], or null */
} byte_tile;

#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)
#if SIMD_WIDTH == 16
#  define EACH_VECTOR(DO, r) DO(r, 0) DO(r, 1) DO(r, 2) DO(r, 3)
#else
#  define EACH_VECTOR(DO, r) DO(r, 0) DO(r, 1)
#endif

/* Computes the products of a tile. Vector v of row r goes to sums[(r * TILE_VECTORS + v) * SIMD_WIDTH]. Sums are
 * stored in memory so that this loop can use all registers. */
SIMD_INLINE void byte_tile_multiply(const byte_tile *t, int32_t *sums) {
#define DECLARE(r, v)  simd_i32 sum##r##v = simd_i32_set1(0);
#define LOAD(r, v)     const simd_i32 b##v = simd_i32_load(b + v * SIMD_WIDTH);
#define MULTIPLY(r, v) sum##r##v = simd_dot(sum##r##v, b##v, a##r);
#define STORE(r, v)    simd_i32_store(sums + (r * TILE_VECTORS + v) * SIMD_WIDTH, sum##r##v);
#define ROW_DECLARE(r) EACH_VECTOR(DECLARE, r)
#define ROW_MULTIPLY(r)                                                                                                \
  {                                                                                                                    \
    const simd_i32 a##r = simd_i32_set1(t->rows[r * DOT_STEPS + k]);                                                   \
    EACH_VECTOR(MULTIPLY, r)                                                                                           \
  }
#define ROW_STORE(r) EACH_VECTOR(STORE, r)
  EACH_ROW(ROW_DECLARE)
  for (int k = 0; k < DOT_STEPS; k++) {
    const int32_t *b = t->panel + k * PANEL;
    EACH_VECTOR(LOAD, 0)
    EACH_ROW(ROW_MULTIPLY)
  }
  EACH_ROW(ROW_STORE)
#undef DECLARE
#undef LOAD
#undef MULTIPLY
#undef STORE
#undef ROW_DECLARE
#undef ROW_MULTIPLY
#undef ROW_STORE
}

/* Turns sums into keys, and inserts the keys into the nearest of rows and columns. */
SIMD_INLINE void byte_tile_take(const byte_tile *t, const int32_t *sums) {
  key_pair row[TILE_ROWS];
  for (int r = 0; r < TILE_ROWS; r++) row[r] = keys_load(&t->row_lanes[r]);
  for (int v = 0; v < TILE_VECTORS; v++) {
    const simd_i32 b = simd_i32_load(t->constant + v * SIMD_WIDTH);
    const simd_i32 number = simd_i32_set1(t->vector_number + v);
    key_pair column = {simd_i32_set1(KEY_NONE), simd_i32_set1(KEY_NONE)};
    if (t->columns) column = keys_load(&t->columns[v]);
    for (int r = 0; r < TILE_ROWS; r++) {
      const simd_i32 products = simd_i32_load(sums + (r * TILE_VECTORS + v) * SIMD_WIDTH);
      const simd_i32 a = simd_i32_set1(t->row_constant[r]);
      simd_i32 key = simd_i32_add(a, simd_i32_sub(b, simd_i32_shift_left(products, KEY_BITS + 1)));
      if (t->lowest) key = simd_i32_max(key, simd_i32_load(t->lowest + v * SIMD_WIDTH));
      row[r] = keys_take(row[r], simd_i32_or(key, number));
      if (r < t->row_count) column = keys_take(column, simd_i32_or(key, simd_i32_set1(t->row_number + r)));
    }
    if (t->columns) keys_store(&t->columns[v], column);
  }
  for (int r = 0; r < TILE_ROWS; r++) keys_store(&t->row_lanes[r], row[r]);
}

SIMD_INLINE void byte_tile_run(const byte_tile *t) {
  _Alignas(64) int32_t sums[TILE_ROWS * PANEL];
  byte_tile_multiply(t, sums);
  byte_tile_take(t, sums);
}

/* One tile of float descriptors. Fields as in byte_tile, but numbers have no limit. */
typedef struct float_tile {
  const float *rows;  /* [TILE_ROWS][MATCH_LENGTH] */
  const float *panel; /* [MATCH_LENGTH][PANEL] */
  int32_t valid;      /* number of valid descriptors in the panel */
  int32_t row_count;
  uint32_t row_number, vector_number;
  float_lanes *row_lanes, *columns;
} float_tile;

/* Computes the squares of a tile, in the order of byte_tile_multiply's sums. */
SIMD_INLINE void float_tile_square(const float_tile *t, float *squares) {
#define DECLARE(r, v) simd_f32 sum##r##v = simd_zero();
#define LOAD(r, v)    const simd_f32 b##v = simd_load(b + v * SIMD_WIDTH);
#define ADD(r, v)                                                                                                      \
  {                                                                                                                    \
    const simd_f32 d = simd_sub(a##r, b##v);                                                                           \
    sum##r##v = simd_fma(d, d, sum##r##v);                                                                             \
  }
#define STORE(r, v)    simd_store(squares + (r * TILE_VECTORS + v) * SIMD_WIDTH, sum##r##v);
#define ROW_DECLARE(r) EACH_VECTOR(DECLARE, r)
#define ROW_ADD(r)                                                                                                     \
  {                                                                                                                    \
    const simd_f32 a##r = simd_set1(t->rows[r * MATCH_LENGTH + k]);                                                    \
    EACH_VECTOR(ADD, r)                                                                                                \
  }
#define ROW_STORE(r) EACH_VECTOR(STORE, r)
  EACH_ROW(ROW_DECLARE)
  for (int k = 0; k < MATCH_LENGTH; k++) {
    const float *b = t->panel + k * PANEL;
    EACH_VECTOR(LOAD, 0)
    EACH_ROW(ROW_ADD)
  }
  EACH_ROW(ROW_STORE)
#undef DECLARE
#undef LOAD
#undef ADD
#undef STORE
#undef ROW_DECLARE
#undef ROW_ADD
#undef ROW_STORE
}

SIMD_INLINE void float_tile_run(const float_tile *t) {
  _Alignas(64) float squares[TILE_ROWS * PANEL];
  float_tile_square(t, squares);
  for (int r = 0; r < t->row_count; r++) {
    float *row = squares + r * PANEL;
    for (int32_t j = t->valid; j < PANEL; j++) row[j] = INFINITY;
    for (int v = 0; v < TILE_VECTORS; v++) {
      const simd_f32 squared = simd_load(row + v * SIMD_WIDTH);
      floats_take(&t->row_lanes[r], squared, simd_i32_set1((int32_t)(t->vector_number + (uint32_t)v)));
      if (t->columns) floats_take(&t->columns[v], squared, simd_i32_set1((int32_t)(t->row_number + (uint32_t)r)));
    }
  }
}

/* Inputs of the tiles of matching: the second list packed into panels, and rows of the first list packed into
 * words. Included by each file that is built for an instruction set. */

/* Pack DOT_VALUES values into a word; row_word first subtracts ROW_BIAS from each. */
SIMD_INLINE uint32_t column_word(const uint8_t *values) {
#if DOT_VALUES == 4
  uint32_t word;
  memcpy(&word, values, sizeof word);
  return word;
#else
  return (uint32_t)values[0] | (uint32_t)values[1] << 16;
#endif
}

SIMD_INLINE uint32_t row_word(const uint8_t *values) {
  return column_word(values) ^ ROW_BIAS * 0x01010101u; /* inverting the top bit gives v - 128, signed */
}

/* Return |v|^2, and the part of a square that depends on the column alone. */
SIMD_INLINE uint32_t norm_of(const uint8_t *v) {
  uint32_t sum = 0;
  for (int k = 0; k < MATCH_LENGTH; k++) sum += (uint32_t)v[k] * v[k];
  return sum;
}

SIMD_INLINE int32_t column_part(const uint8_t *v) {
  uint32_t sum = 0;
  for (int k = 0; k < MATCH_LENGTH; k++) sum += v[k];
  return (int32_t)(norm_of(v) - 2 * ROW_BIAS * sum);
}

/* Return the bytes of a packed row, and of a packed panel. */
SIMD_INLINE size_t packed_row_bytes(match_type type) {
  return type == MATCH_U8 ? DOT_STEPS * sizeof(int32_t) : MATCH_LENGTH * sizeof(float);
}
SIMD_INLINE size_t packed_panel_bytes(match_type type) { return packed_row_bytes(type) * PANEL; }

/* Packs one panel of a list into values [packed_panel_bytes] and, for bytes, parts [PANEL]. Lanes beyond the list
   become 0. */
SIMD_INLINE void pack_panel(match_type type, const match_side *list, uint64_t panel, unsigned char *values,
                            int32_t *parts) {
  const uint64_t first = panel * PANEL;
  const uint64_t left = list->count - first;
  const size_t count = left < PANEL ? (size_t)left : PANEL;
  if (count < PANEL) memset(values, 0, packed_panel_bytes(type));
  if (type == MATCH_F32) {
    const float *from = (const float *)list->descriptors + first * MATCH_LENGTH;
    float *to = (float *)(void *)values;
    for (size_t j = 0; j < count; j++)
      for (size_t k = 0; k < MATCH_LENGTH; k++) to[k * PANEL + j] = from[j * MATCH_LENGTH + k];
    return;
  }
  const uint8_t *from = (const uint8_t *)list->descriptors + first * MATCH_LENGTH;
  uint32_t *to = (uint32_t *)(void *)values;
  for (size_t j = 0; j < count; j++) {
    for (size_t k = 0; k < DOT_STEPS; k++) to[k * PANEL + j] = column_word(from + j * MATCH_LENGTH + k * DOT_VALUES);
    parts[j] = column_part(from + j * MATCH_LENGTH);
  }
  for (size_t j = count; j < PANEL; j++) parts[j] = 0;
}

/* Packs one row of bytes. */
SIMD_INLINE void pack_row(const uint8_t *from, int32_t *words) {
  for (size_t k = 0; k < DOT_STEPS; k++) words[k] = (int32_t)row_word(from + k * DOT_VALUES);
}

#endif
