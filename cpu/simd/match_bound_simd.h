/*
 * Matching of 8-bit descriptors that computes few distances: candidates are ruled out by the bound of
 * stages/match_bound.h. Included by match_simd.c.
 *
 *   rows (of one list)       panels of the other list         candidates left
 *   24 values each      x    24 values each              ->   distance of 128 values, nearest two
 *
 * Only matches are wanted, and the second nearest from one side at most. Let d be the squared distance of a row's
 * nearest candidate so far and q = ratio^2.
 *
 * Search, for all rows of that side: if the row fails the ratio test so far, only a candidate below q d can make it
 * pass. If it passes so far, only a candidate up to d / q can make it fail. All others are ruled out. The first two
 * candidates are the nearest by the bound in a sixteenth of the list, so that few are compared until the limits are
 * narrow.
 *
 * Completion, for the rows that pass, unless their limits were wide enough: candidates up to the second nearest so far
 * are compared. This also finds those that were ruled out while the row failed. If the second nearest is not wanted,
 * only candidates up to d / q are compared, which decide the ratio test.
 *
 * Confirmation, for the features of the other side that were found: the nearest row that found it is its match unless a
 * candidate up to d / q fails the test.
 */
#ifndef HARTSIFT_CPU_SIMD_MATCH_BOUND_SIMD_H
#define HARTSIFT_CPU_SIMD_MATCH_BOUND_SIMD_H

#include "cpu/simd/match_tile_simd.h"
#include "stages/match_bound.h"

/* Lanes of the products: 32 bits where four bytes are multiplied in one instruction, else 16. */
#if DOT_VALUES == 4
typedef int32_t bound_lane;
#  define BOUND_FINENESS  2
#  define BOUND_VALUES    4 /* values that a lane multiplies in one product */
#  define BOUND_LANE_MIN  INT32_MIN
#  define BOUND_LANE_MAX  INT32_MAX
#  define BOUND_LANE_BITS 1 /* bits of a lane in the results of bound_gt_bits */
#  if SIMD_ISA == SIMD_ISA_neondot
#    define bound_dot(sum, row, column) simd_dot_signed((sum), (row), (column))
#    define BOUND_SHIFT                 0
#  else
#    define bound_dot(sum, row, column) simd_dot_bytes((sum), (row), (column))
#  endif
#  define bound_set1(v)                  simd_i32_set1(v)
#  define bound_gt_bits(a, b)            simd_bits(simd_i32_gt((a), (b)))
#  define bound_max(a, b)                simd_i32_max((a), (b))
#  define bound_select_gt(a, b, yes, no) simd_i32_select(simd_i32_gt((a), (b)), (yes), (no))
#else
typedef int16_t bound_lane;
#  define BOUND_FINENESS                 1
#  define BOUND_VALUES                   SIMD_I16_VALUES
#  define BOUND_LANE_MIN                 INT16_MIN
#  define BOUND_LANE_MAX                 INT16_MAX
#  define BOUND_LANE_BITS                SIMD_I16_BITS
#  define bound_dot(sum, row, column)    simd_i16_dot((sum), (row), (column))
#  define bound_set1(v)                  simd_i16_set1(v)
#  define bound_gt_bits(a, b)            simd_i16_gt_bits((a), (b))
#  define bound_max(a, b)                simd_i16_max((a), (b))
#  define bound_select_gt(a, b, yes, no) simd_i16_select_gt((a), (b), (yes), (no))
#endif
/* Added to the values of rows where the instruction takes them as unsigned bytes. */
#ifndef BOUND_SHIFT
#  define BOUND_SHIFT (64 * BOUND_FINENESS)
#endif

enum {
  BOUND_STEPS = MATCH_BOUND_VALUES / BOUND_VALUES,
  BOUND_LANES = 4 * SIMD_WIDTH / (int)sizeof(bound_lane), /* lanes of a vector */
  BOUND_VECTORS = DOT_VALUES,                             /* vectors of a panel: 2, or 4 where registers suffice */
  BOUND_PANEL = BOUND_VECTORS * BOUND_LANES,              /* columns of a tile */
  BOUND_ROWS = 64,                                        /* rows that are compared with one panel after another */
  BOUND_PACKED = 256,                                     /* descriptors that a chunk packs, in whole panels */
  BOUND_SEED_STEP = 16, /* one of so many panels is searched for the first candidates */
  BOUND_WORDS = MATCH_LENGTH / 2,
  BOUND_DIRECTIONS = 32, /* MATCH_BOUND_VALUES rounded up to whole vectors */
  BOUND_COUNT_MIN = 256  /* shortest second list for which the bound saves time */
};
_Static_assert(BOUND_PACKED % BOUND_PANEL == 0 && BOUND_ROWS % (int)TILE_ROWS == 0, "whole panels and tiles");
_Static_assert((BOUND_SHIFT == 0 || BOUND_SHIFT > BOUND_FINENESS * (int)MATCH_BOUND_MAX) &&
                   BOUND_SHIFT + BOUND_FINENESS * (int)MATCH_BOUND_MAX <= (DOT_VALUES == 4 ? 255 : 127) &&
                   BOUND_FINENESS * (int)MATCH_BOUND_MAX <= INT8_MAX,
               "values of rows and columns fit their bytes");
_Static_assert(BOUND_FINENESS <= (int)MATCH_BOUND_FINENESS_MAX, "match_bound_of takes it");
_Static_assert(MATCH_BOUND_NORM_MAX(BOUND_FINENESS) / 2 * 3 <= (int)BOUND_LANE_MAX,
               "u_a u_b - |u_b|^2 / 2 fits a lane");
_Static_assert(BOUND_PANEL *BOUND_LANE_BITS <= 64 && MATCH_BOUND_VALUES % BOUND_VALUES == 0, "masks of 64 bits");

/* A packed list, padded to whole panels. u is the vector of the bound (stages/match_bound.h). */
typedef struct bound_list {
  const uint8_t *descriptors;
  uint32_t count;
  uint64_t padded;
  int32_t *rows;        /* [padded][BOUND_STEPS]: values of u + BOUND_SHIFT, in all lanes of 32 bits */
  int32_t *value_norms; /* [padded]: |u|^2 */
  int32_t *norms;       /* [padded]: |descriptor|^2 */
  float *errors;        /* [padded] */
  bound_lane *panels;   /* [padded / BOUND_PANEL][BOUND_STEPS][BOUND_PANEL]: values of u as bytes */
  bound_lane *halves;   /* [padded]: -|u|^2 / 2, rounded up, minus BOUND_SHIFT times the sum of u */
  float error;          /* largest error of the list */
} bound_list;

static uint64_t bound_padded(uint32_t count) { return ((uint64_t)count + BOUND_PANEL - 1) / BOUND_PANEL * BOUND_PANEL; }

enum { BOUND_ENTRY_BYTES = (BOUND_STEPS + 3) * 4 + (BOUND_STEPS + 1) * (int)sizeof(bound_lane) };

/* Returns the bytes of a packed list. */
static uint64_t bound_list_bytes(uint32_t count) { return (bound_padded(count) * BOUND_ENTRY_BYTES + 63) / 64 * 64; }

static bound_list bound_list_at(const match_side *side, unsigned char *memory) {
  bound_list l = {.descriptors = side->descriptors, .count = side->count, .padded = bound_padded(side->count)};
  l.rows = (int32_t *)(void *)memory;
  l.value_norms = l.rows + l.padded * BOUND_STEPS;
  l.norms = l.value_norms + l.padded;
  l.errors = (float *)(void *)(l.norms + l.padded);
  l.panels = (bound_lane *)(void *)(l.errors + l.padded);
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

/* Computes the products of the directions and a descriptor. The sums of two halves are independent, because a
 * multiply-add needs several cycles. */
static void bound_sums(int32_t table[BOUND_WORDS][BOUND_DIRECTIONS], const uint8_t *descriptor, int32_t *sums) {
  enum { VECTORS = (MATCH_BOUND_VALUES + SIMD_WIDTH - 1) / SIMD_WIDTH, HALF = BOUND_WORDS / 2 };
  int32_t words[BOUND_WORDS];
  simd_i32 sum[2][VECTORS];
  for (int k = 0; k < MATCH_LENGTH; k += 2 * SIMD_WIDTH)
    simd_i32_store(words + k / 2, simd_i16_load_u8(descriptor + k));
  for (int v = 0; v < VECTORS; v++) sum[0][v] = sum[1][v] = simd_i32_set1(0);
  for (int w = 0; w < HALF; w++) {
    const simd_i32 low = simd_i32_set1(words[w]), high = simd_i32_set1(words[HALF + w]);
    for (int v = 0; v < VECTORS; v++) {
      sum[0][v] = simd_dot_i16(sum[0][v], simd_i32_load(&table[w][v * SIMD_WIDTH]), low);
      sum[1][v] = simd_dot_i16(sum[1][v], simd_i32_load(&table[HALF + w][v * SIMD_WIDTH]), high);
    }
  }
  for (int v = 0; v < VECTORS; v++) simd_i32_store(sums + v * SIMD_WIDTH, simd_i32_add(sum[0][v], sum[1][v]));
}

/* Packs one descriptor. Entries beyond the list pass no limit. */
static void bound_pack_one(const bound_list *l, uint64_t j, int32_t table[BOUND_WORDS][BOUND_DIRECTIONS]) {
  int32_t sums[BOUND_DIRECTIONS], sum = 0;
  bound_lane *panel = l->panels + j / BOUND_PANEL * BOUND_PANEL * BOUND_STEPS + j % BOUND_PANEL;
  match_bound bound = {{0}, 0, 0.0f};
  if (j < l->count) {
    const uint8_t *from = l->descriptors + j * MATCH_LENGTH;
    bound_sums(table, from, sums);
    bound = match_bound_of(sums, BOUND_FINENESS);
    l->norms[j] = (int32_t)norm_of(from);
  }
  for (int k = 0; k < BOUND_STEPS; k++) {
    uint32_t bytes = 0, shifted = 0;
    for (int i = 0; i < BOUND_VALUES; i++) {
      const int value = bound.values[BOUND_VALUES * k + i];
      bytes |= (BOUND_VALUES == 1 ? (uint32_t)value : (uint32_t)(uint8_t)value) << 8 * i;
      shifted |= (uint32_t)(uint8_t)(value + BOUND_SHIFT) << 8 * i;
      sum += value;
    }
    l->rows[j * BOUND_STEPS + (uint64_t)k] = (int32_t)(BOUND_VALUES == 4 ? shifted : shifted | shifted << 16);
    panel[k * BOUND_PANEL] = (bound_lane)bytes;
  }
  l->value_norms[j] = bound.norm;
  l->halves[j] = j < l->count ? (bound_lane)(-(bound.norm / 2) - BOUND_SHIFT * sum) : BOUND_LANE_MIN;
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

/* What a scan of all columns is for. */
typedef enum bound_purpose { BOUND_SEARCH, BOUND_COMPLETE, BOUND_CONFIRM } bound_purpose;

/* Rows that are compared at one time. The nearest two of row r are in nearest[number[r]]. */
typedef struct bound_rows {
  const bound_list *rows, *columns;
  const match_limits *limits;
  match_nearest *nearest;
  bound_purpose purpose;
  bool wants_second; /* the second nearest of rows that pass must be right */
  uint32_t count;
  uint32_t number[BOUND_ROWS];
  int32_t values[BOUND_ROWS * BOUND_STEPS];
  int16_t words[BOUND_ROWS * MATCH_LENGTH]; /* the descriptors, widened */
  bound_lane least[BOUND_ROWS];             /* a candidate is compared if u_a u_b - |u_b|^2 / 2 is larger than this */
  bound_lane narrowest[BOUND_ROWS];         /* largest value of `least` so far */
} bound_rows;

/* The first bit of each lane in a tile's mask. */
#define BOUND_FIRST_BITS (BOUND_LANE_BITS == 2 ? UINT64_C(0x5555555555555555) : UINT64_MAX)

/* A candidate that the bound does not rule out. */
typedef struct bound_candidate {
  uint32_t row, column;
} bound_candidate;

/* Returns the value of `least` for a limit of the squared distance. Rounding never rules out more. */
static bound_lane bound_least(const bound_rows *b, uint32_t r, double squared) {
  const uint32_t i = b->number[r];
  const double limit = match_bound_limit(squared, b->rows->errors[i] + b->columns->error, BOUND_FINENESS);
  /* A candidate with |u_a|^2 + |u_b|^2 - 2 u_a u_b > limit is ruled out. */
  const double least = floor(((double)b->rows->value_norms[i] - limit) * 0.5) - 1.0;
  return least > (double)BOUND_LANE_MIN ? (bound_lane)least : BOUND_LANE_MIN;
}

/* Returns the square up to which candidates of a row that passes are compared. complete: its second nearest is wanted.
 */
static double bound_passing(const bound_rows *b, const match_nearest *n, bool complete) {
  return complete ? (double)n->second_squared : (double)n->nearest_squared / b->limits->ratio_squared * (1.0 + 1e-9);
}

/* Sets a row's limit. */
static void bound_set_limit(bound_rows *b, uint32_t r) {
  const match_nearest *n = &b->nearest[b->number[r]];
  const bool passes = match_accepts(b->limits, n);
  if (b->purpose == BOUND_CONFIRM && !passes)
    b->least[r] = BOUND_LANE_MAX;
  else
    b->least[r] = bound_least(b, r,
                              passes ? bound_passing(b, n, b->purpose == BOUND_COMPLETE && b->wants_second)
                                     : b->limits->ratio_squared * (double)n->nearest_squared);
  if (b->least[r] > b->narrowest[r]) b->narrowest[r] = b->least[r];
}

/* Returns the squared distance of row r and column j. */
SIMD_INLINE uint32_t bound_square(const bound_rows *b, uint32_t r, uint64_t j) {
  const int16_t *x = b->words + (size_t)r * MATCH_LENGTH;
  const uint8_t *y = b->columns->descriptors + j * MATCH_LENGTH;
  simd_i32 sum = simd_i32_set1(0);
  for (int k = 0; k < MATCH_LENGTH; k += 2 * SIMD_WIDTH)
    sum = simd_dot_i16(sum, simd_i32_load((const int32_t *)(const void *)(x + k)), simd_i16_load_u8(y + k));
  return (uint32_t)(b->rows->norms[b->number[r]] + b->columns->norms[j] - 2 * simd_i32_sum(sum));
}

/* Compares a candidate. */
static void bound_compare(bound_rows *b, uint32_t r, uint32_t j) {
  match_nearest *n = &b->nearest[b->number[r]];
  const float square = (float)bound_square(b, r, j);
  if (square > n->second_squared || j == n->nearest || j == n->second) return;
  const uint32_t nearest = n->nearest;
  match_take(n, j, square);
  /* a match that is not the nearest is none, whatever the test says about the nearest */
  if (b->purpose == BOUND_CONFIRM && n->nearest != nearest) n->second_squared = n->nearest_squared;
  bound_set_limit(b, r);
}

/* Computes u_a u_b - |u_b|^2 / 2 of TILE_ROWS rows and a panel, less a constant of the row. */
SIMD_INLINE void bound_multiply(const bound_rows *b, uint32_t r0, uint64_t panel,
                                simd_i32 sums[TILE_ROWS * BOUND_VECTORS]) {
  const int32_t *rows = b->values + (size_t)r0 * BOUND_STEPS;
  const bound_lane *columns = b->columns->panels + panel * BOUND_PANEL * BOUND_STEPS;
  const bound_lane *halves = b->columns->halves + panel * BOUND_PANEL;
#if DOT_VALUES == 4
#  define EACH_PART(DO, r) DO(r, 0) DO(r, 1) DO(r, 2) DO(r, 3)
#else
#  define EACH_PART(DO, r) DO(r, 0) DO(r, 1)
#endif
#define PART(from, v)  simd_i32_load((const int32_t *)(const void *)((from) + (v)*BOUND_LANES))
#define DECLARE(r, v)  simd_i32 sum##r##v = PART(halves, v);
#define LOAD(r, v)     const simd_i32 c##v = PART(columns + k * BOUND_PANEL, v);
#define MULTIPLY(r, v) sum##r##v = bound_dot(sum##r##v, a##r, c##v);
#define STORE(r, v)    sums[r * BOUND_VECTORS + v] = sum##r##v;
#define ROW_DECLARE(r) EACH_PART(DECLARE, r)
#define ROW_MULTIPLY(r)                                                                                                \
  {                                                                                                                    \
    const simd_i32 a##r = simd_i32_set1(rows[r * BOUND_STEPS + k]);                                                    \
    EACH_PART(MULTIPLY, r)                                                                                             \
  }
#define ROW_STORE(r) EACH_PART(STORE, r)
  EACH_ROW(ROW_DECLARE)
#pragma GCC unroll 4 /* else every sum is copied in every step */
  for (int k = 0; k < BOUND_STEPS; k++) {
    EACH_PART(LOAD, 0)
    EACH_ROW(ROW_MULTIPLY)
  }
  EACH_ROW(ROW_STORE)
#undef EACH_PART
#undef PART
#undef DECLARE
#undef LOAD
#undef MULTIPLY
#undef STORE
#undef ROW_DECLARE
#undef ROW_MULTIPLY
#undef ROW_STORE
}

/* Finds the candidates of a tile. left[r] has BOUND_LANE_BITS bits set for each column of the panel with which row r
 * must be compared. Returns false if there is none. */
SIMD_INLINE bool bound_tile(const bound_rows *b, uint32_t r0, uint64_t panel, uint64_t left[TILE_ROWS]) {
  simd_i32 sums[TILE_ROWS * BOUND_VECTORS];
  uint64_t any = 0;
  bound_multiply(b, r0, panel, sums);
  for (int r = 0; r < TILE_ROWS; r++) {
    const simd_i32 least = bound_set1(b->least[r0 + (uint32_t)r]);
    left[r] = 0;
    for (int v = 0; v < BOUND_VECTORS; v++)
      left[r] |= (uint64_t)bound_gt_bits(sums[r * BOUND_VECTORS + v], least) << v * (BOUND_LANES * BOUND_LANE_BITS);
    any |= left[r];
  }
  return any != 0;
}

/* Takes the rows' values. Rows beyond the last fill its tile, and have no candidate. */
static void bound_load(bound_rows *b) {
  for (uint32_t r = 0; r < (b->count + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS; r++) {
    int32_t *values = b->values + (size_t)r * BOUND_STEPS;
    b->least[r] = b->narrowest[r] = r < b->count ? BOUND_LANE_MIN : BOUND_LANE_MAX;
    if (r >= b->count) {
      memset(values, 0, BOUND_STEPS * sizeof *values);
      continue;
    }
    memcpy(values, b->rows->rows + (size_t)b->number[r] * BOUND_STEPS, BOUND_STEPS * sizeof *values);
    const uint8_t *from = b->rows->descriptors + (size_t)b->number[r] * MATCH_LENGTH;
    for (int k = 0; k < MATCH_LENGTH; k++) b->words[(size_t)r * MATCH_LENGTH + (size_t)k] = from[k];
  }
}

/* Compares each row of a tile with the nearest by the bound in some panels, and with the nearest in another lane. */
static void bound_seed_tile(bound_rows *b, uint32_t r0) {
  const uint64_t panels = b->columns->padded / BOUND_PANEL;
  simd_i32 best[TILE_ROWS * BOUND_VECTORS], panel_of[TILE_ROWS * BOUND_VECTORS], sums[TILE_ROWS * BOUND_VECTORS];
  for (int v = 0; v < TILE_ROWS * BOUND_VECTORS; v++) {
    best[v] = bound_set1(BOUND_LANE_MIN);
    panel_of[v] = bound_set1(0);
  }
  for (uint64_t p = 0; p < panels && p / BOUND_SEED_STEP < INT16_MAX; p += BOUND_SEED_STEP) {
    const simd_i32 number = bound_set1((bound_lane)(p / BOUND_SEED_STEP));
    bound_multiply(b, r0, p, sums);
    for (int v = 0; v < TILE_ROWS * BOUND_VECTORS; v++) {
      panel_of[v] = bound_select_gt(sums[v], best[v], number, panel_of[v]);
      best[v] = bound_max(best[v], sums[v]);
    }
  }
  for (uint32_t r = 0; r < TILE_ROWS && r0 + r < b->count; r++) {
    bound_lane value[BOUND_PANEL], panel[BOUND_PANEL];
    for (uint32_t v = 0; v < BOUND_VECTORS; v++) {
      simd_i32_store((int32_t *)(void *)(value + v * BOUND_LANES), best[r * BOUND_VECTORS + v]);
      simd_i32_store((int32_t *)(void *)(panel + v * BOUND_LANES), panel_of[r * BOUND_VECTORS + v]);
    }
    int first = 0, second = 1;
    for (int k = 1; k < BOUND_PANEL; k++) {
      if (value[k] > value[first]) {
        second = first;
        first = k;
      } else if (k != second && value[k] > value[second]) {
        second = k;
      }
    }
    const int both[2] = {first, second};
    for (int k = 0; k < 2; k++) {
      const uint64_t j = (uint64_t)panel[both[k]] * BOUND_SEED_STEP * BOUND_PANEL + (uint64_t)both[k];
      if (j < b->columns->count) bound_compare(b, r0 + r, (uint32_t)j);
    }
  }
}

/* Lists the candidates of a row in a panel. Few rows have more than one, so the first needs no branch. */
SIMD_INLINE size_t bound_list_row(const bound_list *columns, uint64_t mask, uint32_t row, uint32_t first,
                                  bound_candidate *found) {
  const uint32_t j = first + (uint32_t)__builtin_ctzll(mask | UINT64_C(1) << 63) / BOUND_LANE_BITS;
  const uint8_t *descriptor = columns->descriptors + (size_t)j * MATCH_LENGTH;
  size_t count = mask != 0;
  __builtin_prefetch(descriptor);
  __builtin_prefetch(descriptor + MATCH_LENGTH / 2);
  found[0] = (bound_candidate){row, j};
  for (mask &= mask - 1; mask != 0 && count > 0; mask &= mask - 1)
    found[count++] = (bound_candidate){row, first + (uint32_t)__builtin_ctzll(mask) / BOUND_LANE_BITS};
  return count;
}

/* Compares the rows with all columns. */
static void bound_scan(bound_rows *b) {
  const uint32_t tiles = (b->count + TILE_ROWS - 1) / TILE_ROWS;
  bound_candidate found[BOUND_ROWS * BOUND_PANEL + 1];
  for (uint64_t p = 0; p < b->columns->padded / BOUND_PANEL; p++) {
    size_t count = 0;
    for (uint32_t t = 0; t < tiles; t++) {
      uint64_t left[TILE_ROWS];
      if (!bound_tile(b, t * TILE_ROWS, p, left)) continue;
      for (uint32_t r = 0; r < TILE_ROWS; r++)
        count += bound_list_row(b->columns, left[r] & BOUND_FIRST_BITS, t * TILE_ROWS + r, (uint32_t)(p * BOUND_PANEL),
                                found + count);
    }
    for (size_t k = 0; k < count; k++) bound_compare(b, found[k].row, found[k].column);
  }
}

/* Finds the rows that pass, and the nearest two of each. */
static void bound_search(bound_rows *b) {
  for (uint32_t r = 0; r < b->count; r++) b->nearest[b->number[r]] = match_nearest_none();
  bound_load(b);
  for (uint32_t r = 0; r < b->count; r += TILE_ROWS) bound_seed_tile(b, r);
  for (uint32_t r = 0; r < b->count; r++) {
    b->narrowest[r] = BOUND_LANE_MIN;
    bound_set_limit(b, r);
  }
  bound_scan(b);
  uint32_t kept = 0;
  for (uint32_t r = 0; r < b->count; r++) {
    const match_nearest *n = &b->nearest[b->number[r]];
    if (match_accepts(b->limits, n) && b->narrowest[r] > bound_least(b, r, bound_passing(b, n, b->wants_second)))
      b->number[kept++] = b->number[r];
  }
  b->count = kept;
  b->purpose = BOUND_COMPLETE;
  if (kept == 0) return;
  bound_load(b);
  for (uint32_t r = 0; r < kept; r++) bound_set_limit(b, r);
  bound_scan(b);
}

/* Matching in one direction, of all rows or of `count` of them. */
typedef struct bound_job {
  const bound_list *rows, *columns;
  const match_limits *limits;
  match_nearest *nearest;
  const uint32_t *wanted; /* numbers of the rows to confirm; null: all rows are searched */
  uint32_t count;
  bool wants_second;
} bound_job;

static void bound_task(void *argument, int32_t chunk, int32_t worker) {
  const bound_job *job = argument;
  bound_rows b;
  const uint32_t first = (uint32_t)chunk * BOUND_ROWS, left = job->count - first;
  (void)worker;
  b.rows = job->rows;
  b.columns = job->columns;
  b.limits = job->limits;
  b.nearest = job->nearest;
  b.purpose = job->wanted ? BOUND_CONFIRM : BOUND_SEARCH;
  b.wants_second = job->wants_second;
  b.count = left < BOUND_ROWS ? left : BOUND_ROWS;
  for (uint32_t r = 0; r < b.count; r++) b.number[r] = job->wanted ? job->wanted[first + r] : first + r;
  if (!job->wanted) {
    bound_search(&b);
    return;
  }
  bound_load(&b);
  for (uint32_t r = 0; r < b.count; r++) bound_set_limit(&b, r);
  bound_scan(&b);
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
         ((uint64_t)a->first.count + a->second.count) * sizeof(uint32_t);
}

static void bound_match(stage_queue *queue, const match_args *a, bool wants_second) {
  unsigned char *rest = a->work + bound_list_bytes(a->second.count);
  bound_list second = bound_list_at(&a->second, a->work), first = bound_list_at(&a->first, rest);
  uint32_t *wanted = (uint32_t *)(void *)(rest + bound_list_bytes(a->first.count)), count = 0;
  if (!a->second_is_packed) queue_run(queue, bound_chunks(second.count, BOUND_PACKED), bound_pack_task, &second);
  queue_run(queue, bound_chunks(first.count, BOUND_PACKED), bound_pack_task, &first);
  second.error = bound_error(&second);
  first.error = bound_error(&first);
  /* the second nearest are wanted of the side that is searched */
  const bound_list *side = a->exchanged ? &second : &first, *other = a->exchanged ? &first : &second;
  match_nearest *search = a->exchanged ? a->backward : a->forward, *found = a->exchanged ? a->forward : a->backward;
  const bound_job job = {side, other, a->limits, search, NULL, side->count, wants_second};
  queue_run(queue, bound_chunks(job.count, BOUND_ROWS), bound_task, (void *)(uintptr_t)&job);
  /* Collect the nearest of the rows that pass, each once, with the nearest of the rows that found it. */
  for (uint32_t j = 0; j < other->count; j++) found[j] = match_nearest_none();
  for (uint32_t i = 0; i < side->count; i++) {
    if (!match_accepts(a->limits, &search[i])) continue;
    match_nearest *back = &found[search[i].nearest];
    if (back->nearest == MATCH_NONE) wanted[count++] = search[i].nearest;
    if (match_before(search[i].nearest_squared, i, back->nearest_squared, back->nearest)) {
      back->nearest = i;
      back->nearest_squared = search[i].nearest_squared;
    }
  }
  const bound_job confirmation = {other, side, a->limits, found, wanted, count, false};
  queue_run(queue, bound_chunks(count, BOUND_ROWS), bound_task, (void *)(uintptr_t)&confirmation);
}

#endif
