/*
 * Squared distances of 8-bit descriptors by matrix instructions, never stored: every block keeps the two nearest of its
 * rows (first's features) and of its columns (second's).
 *
 * Such a kernel is bound less by the products than by the work on each product. So minima are taken over groups of
 * 16 candidates. A row's group are the columns of one lane in a strip of 64. A column's group are the rows of two
 * neighbouring groups of lanes. Only the smallest key of a group is kept, and only these keys compete
 * for nearest and second nearest. This takes half an instruction per product instead of three. The only error is
 * that a second nearest in the group of the nearest is missed. cuda_match_settle_launch computes that group again:
 * 16 squares per feature.
 *
 * A product costs a multiply-add, half a three-way minimum (row) and a sum with minimum (column):
 *   x = (|b|^2 - 2 a.b) << 8 | number of the column       orders a row's candidates; |a|^2 is the same for all
 *   x + (|a|^2 << 8 | number of the row)                  orders a column's
 * |x| < 2^31 because the square is in [0, 2^23). Both numbers together stay below 256.
 */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_keys.cuh"
#include "cuda/prim/shared_copy.cuh"
#include "cuda/runtime/launch.h"

enum {
  WARPS = PRODUCTS_WARPS,
  THREADS = PRODUCTS_THREADS,
  ROW_TILES = PRODUCTS_ROW_TILES,
  WARP_ROWS = PRODUCTS_WARP_ROWS,
  BLOCK_ROWS = PRODUCTS_BLOCK_ROWS,
  HALF_ROWS = PRODUCTS_HALF_ROWS,
  LANE_ROWS = PRODUCTS_LANE_ROWS,
  LANE_WORDS = PRODUCTS_LANE_WORDS,
  STRIP_TILES = PRODUCTS_STRIP_TILES,
  SPAN_STRIPS = PRODUCTS_SPAN_STRIPS,
  BUFFERS = PRODUCTS_BUFFERS,
  COLUMN_PITCH = PRODUCTS_COLUMN_PITCH,
  BLOCKS = PRODUCTS_BLOCKS
};
enum { FORM_WIDE, FORM_NARROW };

/* The number part of an empty key. */
#define NO_SQUARE (MATCH_NO_KEY_32 >> MATCH_KEY_SHIFT)

/* The 64 rows of a warp, distributed over its lanes: lane 4 g + q has bytes 32 q to 32 q + 31 of rows g and g + 8
 * of each tile. Any distribution of the 128 products over lanes is valid if rows and columns use the same. */
typedef struct lane_rows {
  uint32_t words[ROW_TILES][2][LANE_WORDS];
  int32_t term[LANE_ROWS]; /* |a|^2 << 8 | number within the half block */
  uint32_t outside;        /* bit r: row r is beyond the last */
} lane_rows;

/* For each row: the smallest key of this span so far, and the smallest key of another group. */
typedef struct row_minima {
  int32_t best[LANE_ROWS], second[LANE_ROWS];
} row_minima;

#if __CUDA_ARCH__ < 750
/* The narrow matrix instruction by others, for 7.0: lane l has row l / 4 of the rows, column l / 4 of the columns, of
 * each the values 4 (l % 4) to 4 (l % 4) + 3, and the products of its row with columns 2 (l % 4) and the next. */
static __device__ __forceinline__ void multiply_add_narrow(int32_t *d, uint32_t a, uint32_t b) {
  const uint32_t lane = threadIdx.x % WARP_LANES, row = lane & ~3u, column = lane % 4u * 8u;
#  pragma unroll 1
  for (uint32_t q = 0; q < 4u; q++) {
    const uint32_t x = __shfl_sync(WARP_ALL, a, (int)(row + q));
    d[0] = (int32_t)__dp4a(x, __shfl_sync(WARP_ALL, b, (int)(column + q)), (uint32_t)d[0]);
    d[1] = (int32_t)__dp4a(x, __shfl_sync(WARP_ALL, b, (int)(column + 4u + q)), (uint32_t)d[1]);
  }
}
#endif

/* Adds rows x columns to d: 16 x 8 products over 32 values. */
template <int FORM>
static __device__ __forceinline__ void multiply_add(int32_t *d, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                                    uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  if (FORM == FORM_WIDE) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    return;
  }
#endif
  const uint32_t a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
#pragma unroll
  for (int i = 0; i < 4; i++)
#if __CUDA_ARCH__ >= 750
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(d[2 * (i % 2)]), "+r"(d[2 * (i % 2) + 1])
        : "r"(a[i]), "r"(b[i / 2]));
#else
    multiply_add_narrow(d + 2 * (i % 2), a[i], b[i / 2]);
#endif
}

static __device__ __forceinline__ int32_t min_of_three(int32_t a, int32_t b, int32_t c) {
#if __CUDA_ARCH__ >= 900
  return __vimin3_s32(a, b, c);
#else
  return min(min(a, b), c);
#endif
}

static __device__ __forceinline__ int32_t min_of_sum(int32_t a, int32_t b, int32_t c) {
#if __CUDA_ARCH__ >= 900
  return __viaddmin_s32(a, b, c);
#else
  return min((int32_t)((uint32_t)a + (uint32_t)b), c); /* wraps for columns beyond the last */
#endif
}

/* Returns the number within the warp of row r of this lane. */
static __device__ __forceinline__ uint32_t lane_row(int r) { return (uint32_t)r * 8u + threadIdx.x % WARP_LANES / 4u; }

static __device__ __forceinline__ void load_rows(const match_lists *p, uint32_t warp_row, lane_rows *rows) {
  const uint32_t q = threadIdx.x % 4u;
  rows->outside = 0;
#pragma unroll
  for (int r = 0; r < LANE_ROWS; r++) {
    const uint32_t row = warp_row + lane_row(r), there = min(row, p->rows - 1u);
    const uint4 *from = (const uint4 *)(p->first + (size_t)there * MATCH_LENGTH) + 2u * q;
    const uint4 low = from[0], high = from[1];
    uint32_t *w = rows->words[r / 2][r % 2];
    w[0] = low.x, w[1] = low.y, w[2] = low.z, w[3] = low.w;
    w[4] = high.x, w[5] = high.y, w[6] = high.z, w[7] = high.w;
    rows->term[r] = (int32_t)((uint32_t)p->norms[there] << MATCH_KEY_SHIFT | row % HALF_ROWS);
    if (row >= p->rows) rows->outside |= 1u << r;
  }
}

/* Starts the copy of a strip: descriptors (zeros beyond the last) and bases (which mark columns beyond the last).
 * The 16-byte pieces that a thread copies are 16 columns apart. */
static __device__ __forceinline__ void load_strip(const match_lists *p, uint32_t strip, products_shared *s) {
  enum { APART = THREADS * 16, PIECES = MATCH_STRIP * MATCH_LENGTH / APART };
  const uint32_t buffer = strip % BUFFERS, column = threadIdx.x / 8u, piece = threadIdx.x % 8u ^ column % 8u;
  const uint32_t left = p->columns - strip * MATCH_STRIP; /* columns from this strip on */
  const uint8_t *from = p->second + (size_t)strip * (MATCH_STRIP * MATCH_LENGTH) + threadIdx.x * 16u;
  uint8_t *to = s->columns[buffer] + column * MATCH_LENGTH + piece * 16u;
#pragma unroll
  for (uint32_t k = 0; k < PIECES; k++) {
    const bool there = column + k * (THREADS / 8u) < left;
    copy_16_async_or_zero(to + k * APART, there ? from + k * APART : p->second, there);
  }
  if (threadIdx.x < MATCH_STRIP / 4u)
    copy_16_async_or_zero(s->base[buffer] + threadIdx.x * 4u, p->base + strip * MATCH_STRIP + threadIdx.x * 4u, true);
}

/* The products of a warp's rows with 8 columns. */
template <int FORM>
static __device__ __forceinline__ void tile_products(const lane_rows *rows, const uint8_t *columns, int32_t (*dot)[4]) {
  const uint32_t g = threadIdx.x % WARP_LANES / 4u, q = threadIdx.x % 4u;
  const uint4 low = *(const uint4 *)(columns + g * MATCH_LENGTH + (2u * q ^ g) * 16u);
  const uint4 high = *(const uint4 *)(columns + g * MATCH_LENGTH + ((2u * q + 1u) ^ g) * 16u);
  const uint32_t b[LANE_WORDS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int m = 0; m < ROW_TILES; m++) dot[m][0] = dot[m][1] = dot[m][2] = dot[m][3] = 0;
#pragma unroll
  for (int k = 0; k < LANE_WORDS; k += 2)
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++)
      multiply_add<FORM>(dot[m], rows->words[m][0][k], rows->words[m][1][k], rows->words[m][0][k + 1],
                         rows->words[m][1][k + 1], b[k], b[k + 1]);
}

/* Processes a strip: every row's minima and, if COLUMNS, the smallest key of each column within each lane's rows.
 * TAIL: some rows are beyond the last. */
template <int FORM, bool COLUMNS, bool TAIL>
static __device__ __forceinline__ void take_strip(const lane_rows *rows, uint32_t strip, products_shared *s,
                                                  row_minima *minima) {
  const uint32_t lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  const uint8_t *columns = s->columns[strip % BUFFERS];
  const int32_t *bases = s->base[strip % BUFFERS] + 2u * (lane % 4u);
  int32_t *keys = s->column_keys[strip % 2u][warp][lane / 4u] + 2u * (lane % 4u);
  int32_t group[LANE_ROWS];
#pragma unroll
  for (int r = 0; r < LANE_ROWS; r++) group[r] = MATCH_NO_KEY_32;
#pragma unroll(COLUMNS ? 2 : STRIP_TILES) /* limited by registers */
  for (int t = 0; t < STRIP_TILES; t++) {
    int32_t dot[ROW_TILES][4];
    tile_products<FORM>(rows, columns + t * 8 * MATCH_LENGTH, dot);
    const int2 base = *(const int2 *)(bases + 8 * t);
    int2 smallest = make_int2(MATCH_NO_KEY_32, MATCH_NO_KEY_32);
#pragma unroll
    for (int r = 0; r < LANE_ROWS; r++) {
      const int32_t x = (int32_t)((uint32_t)base.x - ((uint32_t)dot[r / 2][r % 2 * 2] << (MATCH_KEY_SHIFT + 1)));
      const int32_t y = (int32_t)((uint32_t)base.y - ((uint32_t)dot[r / 2][r % 2 * 2 + 1] << (MATCH_KEY_SHIFT + 1)));
      group[r] = min_of_three(group[r], x, y);
      if (!COLUMNS || (TAIL && rows->outside >> r & 1u)) continue;
      smallest.x = min_of_sum(x, rows->term[r], smallest.x);
      smallest.y = min_of_sum(y, rows->term[r], smallest.y);
    }
    if (COLUMNS) *(int2 *)(keys + 8 * t) = smallest;
  }
#pragma unroll
  for (int r = 0; r < LANE_ROWS; r++) {
    minima->second[r] = min(minima->second[r], max(minima->best[r], group[r]));
    minima->best[r] = min(minima->best[r], group[r]);
  }
}

/* Returns the column in a row's key of a span. span_column: the lane's first column in the span. */
static __device__ __forceinline__ uint32_t column_of_key(int32_t key, uint32_t span_column) {
  const uint32_t number = (uint32_t)key & (uint32_t)MATCH_KEY_NUMBER;
  return span_column + (number & 126u) * 4u + (number & 1u);
}

/* Ends a span: numbers restart. Later columns have higher indices, so from now on only smaller squares replace a
 * candidate. */
static __device__ __forceinline__ void end_span(uint32_t strip, products_shared *s, row_minima *minima) {
  const uint32_t column = strip / SPAN_STRIPS * MATCH_SPAN + threadIdx.x % 4u * 2u;
#pragma unroll
  for (int r = 0; r < LANE_ROWS; r++) {
    row_two t = s->rows[r][threadIdx.x];
    const int32_t best = minima->best[r] >> MATCH_KEY_SHIFT, second = minima->second[r] >> MATCH_KEY_SHIFT;
    const bool first = best < t.best, also = second < t.best;
    const uint32_t best_column = column_of_key(minima->best[r], column);
    const int32_t loser = !first ? best : also ? second : t.best;
    const uint32_t loser_column = !first ? best_column
                                  : also ? column_of_key(minima->second[r], column)
                                         : t.best_column;
    if (first || loser < t.second) {
      t.second = loser;
      t.second_column = loser_column;
    }
    if (first) {
      t.best = best;
      t.best_column = best_column;
    }
    s->rows[r][threadIdx.x] = t;
    minima->best[r] = minima->second[r] = MATCH_NO_KEY_32;
  }
}

/* Returns the full key of a row's candidate. */
static __device__ __forceinline__ uint64_t row_key(int32_t square, uint32_t column, uint32_t norm) {
  return square == NO_SQUARE ? MATCH_NO_KEY : match_key((uint32_t)square + norm, column);
}

/* Merges the rows into global memory. Each of the four lanes that share rows merges a quarter of them. */
static __device__ __forceinline__ void end_rows(const match_lists *p, uint32_t warp_row, const products_shared *s) {
#pragma unroll
  for (int r = 0; r < LANE_ROWS; r++) {
    const row_two of_lane = s->rows[r][threadIdx.x];
    const uint32_t row = warp_row + lane_row(r), norm = (uint32_t)p->norms[min(row, p->rows - 1u)];
    match_two t = {row_key(of_lane.best, of_lane.best_column, norm),
                   row_key(of_lane.second, of_lane.second_column, norm)};
    match_two_join_lanes(&t, 1, 4);
    if (threadIdx.x % 4u == r % 4 && row < p->rows) match_bests_add(&p->row_bests, row, t);
  }
}

/* Returns the second best square so far of the thread's column in a strip. It may be an old value, which is then
 * too large. */
static __device__ __forceinline__ uint32_t column_second(const match_lists *p, uint32_t strip) {
  const uint32_t column = min(strip * MATCH_STRIP + threadIdx.x % MATCH_STRIP, p->columns - 1u);
  return __ldcg((const uint32_t *)&p->column_bests.second[column] + 1);
}

static __device__ __forceinline__ uint64_t column_key(int32_t key, uint32_t row, uint32_t number) {
  const uint32_t k = (uint32_t)key;
  return key == MATCH_NO_KEY_32 ? MATCH_NO_KEY : match_key(k >> MATCH_KEY_SHIFT, row + (k & MATCH_KEY_NUMBER) - number);
}

/* Merges the columns of a strip into global memory. Each half of the block handles the rows of its warps, with one
 * thread per column. Two neighbouring lane groups form one group of 16 rows. seen: the result of column_second. */
static __device__ __forceinline__ void end_columns(const match_lists *p, uint32_t strip, uint32_t seen,
                                                   const products_shared *s) {
  const uint32_t at = threadIdx.x % MATCH_STRIP, half = threadIdx.x / MATCH_STRIP, column = strip * MATCH_STRIP + at;
  int32_t best = MATCH_NO_KEY_32, second = MATCH_NO_KEY_32;
#pragma unroll
  for (uint32_t i = 0; i < 16u; i += 4u) {
    const int32_t(*keys)[COLUMN_PITCH] = &s->column_keys[strip % 2u][half * 2u + i / 8u][i % 8u];
    const int32_t one = min(keys[0][at], keys[1][at]), other = min(keys[2][at], keys[3][at]);
    second = min_of_three(second, max(one, other), max(best, min(one, other)));
    best = min_of_three(best, one, other);
  }
  if (column >= p->columns || (uint32_t)best >> MATCH_KEY_SHIFT > seen) return;
  const uint32_t number = (uint32_t)match_column_number(column), row = blockIdx.x * BLOCK_ROWS + half * HALF_ROWS;
  const match_two t = {column_key(best, row, number), column_key(second, row, number)};
  match_bests_add(&p->column_bests, column, t);
}

/* Does the work of a block: the blockIdx.x-th rows against the blockIdx.y-th strips of columns. */
template <int FORM, bool COLUMNS>
static __device__ __forceinline__ void take_block(const match_lists *p, products_shared *s) {
  const uint32_t warp_row = blockIdx.x * BLOCK_ROWS + threadIdx.x / WARP_LANES * WARP_ROWS;
  const uint32_t first = blockIdx.y * p->strips_a_block;
  const uint32_t end = min(first + p->strips_a_block, (p->columns + MATCH_STRIP - 1u) / MATCH_STRIP);
  const bool tail = COLUMNS && (blockIdx.x + 1u) * BLOCK_ROWS > p->rows;
  lane_rows rows;
  row_minima minima;
  uint32_t seen = 0;
  const row_two none = {NO_SQUARE, NO_SQUARE, 0, 0};
  load_strip(p, first, s);
  copies_commit();
  if (first + 1u < end) load_strip(p, first + 1u, s);
  copies_commit();
  load_rows(p, warp_row, &rows);
#pragma unroll
  for (int r = 0; r < LANE_ROWS; r++) {
    minima.best[r] = minima.second[r] = MATCH_NO_KEY_32;
    s->rows[r][threadIdx.x] = none;
  }
  for (uint32_t strip = first; strip < end; strip++) {
    copies_wait_but<1>();
    __syncthreads();
    if (strip + 2u < end) load_strip(p, strip + 2u, s);
    copies_commit();
    if (COLUMNS && strip > first) end_columns(p, strip - 1u, seen, s);
    if (COLUMNS) seen = column_second(p, strip);
    if (tail)
      take_strip<FORM, COLUMNS, COLUMNS>(&rows, strip, s, &minima);
    else
      take_strip<FORM, COLUMNS, false>(&rows, strip, s, &minima);
    if (strip % SPAN_STRIPS == SPAN_STRIPS - 1u || strip + 1u == end) end_span(strip, s, &minima);
  }
  __syncthreads();
  if (COLUMNS) end_columns(p, end - 1u, seen, s);
  end_rows(p, warp_row, s);
}

/*
 * Does      finds the smallest keys of each row over its columns and, if COLUMNS, of each column over its rows.
 *           Each second key is from another group than the best: the result of match_ref without the rest of that
 *           group.
 * Launch    x: 256 rows per block, y: strips_a_block strips of 64 columns per block; 4 warps of 64 rows each.
 * Shared    products_shared, dynamic.
 * Reads     both lists, 16-byte aligned; norms, bases (complete strips). Writes best and second by atomic minima.
 * Barriers  one per strip. After it the strip is loaded for all, the former strip in its buffer is no longer read,
 *           and all column keys of the strip before are in shared memory.
 * Limits    any count of 1 or more; rows beyond the last repeat it and enter no column's minimum, columns beyond the
 *           last have the base MATCH_NO_KEY_32 and products of 0.
 * Order     repeatable: minima of keys that are all different.
 * Cost      a matrix instruction for 4096 products of bytes; about 3.5 other instructions for each of the 32 x 4
 *           squares that it takes four of them to make.
 */
template <int FORM, bool COLUMNS> static __device__ __forceinline__ void take_block_of_one(const match_lists &p) {
  extern __shared__ __align__(16) unsigned char memory[];
  take_block<FORM, COLUMNS>(&p, (products_shared *)memory);
}

#define PRODUCTS_KERNEL(name, FORM, COLUMNS)                                                                           \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) name(const __grid_constant__ match_lists p) {          \
    take_block_of_one<FORM, COLUMNS>(p);                                                                               \
  }
PRODUCTS_KERNEL(match_products_wide_kernel, FORM_WIDE, false)
PRODUCTS_KERNEL(match_products_wide_columns_kernel, FORM_WIDE, true)
PRODUCTS_KERNEL(match_products_narrow_kernel, FORM_NARROW, false)
PRODUCTS_KERNEL(match_products_narrow_columns_kernel, FORM_NARROW, true)

/*
 * Does      the same for many pairs of images.
 * Launch    x: 256 rows per block, y: strips_a_block strips a block, as many as the largest image needs, z: the
 *           pairs; blocks beyond a pair's rows or columns end at once.
 * Shared    products_shared, dynamic, and the pair's arguments.
 * Reads     the tasks. Otherwise as match_products_kernel. Barriers: one more, the arguments are loaded for all.
 * Limits    65535 pairs. Order and cost as match_products_kernel.
 */
template <int FORM, bool COLUMNS>
static __device__ __forceinline__ void take_block_of_many(const cuda_match_task *tasks, uint32_t strips_a_block) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ match_lists p;
  const cuda_match_task *t = &tasks[blockIdx.z];
  const uint32_t rows = t->first.count, columns = t->second.count;
  if (blockIdx.x * BLOCK_ROWS >= rows || blockIdx.y * strips_a_block * MATCH_STRIP >= columns) return;
  if (threadIdx.x == 0) {
    p.first = t->first.descriptors;
    p.second = t->second.descriptors;
    p.rows = rows;
    p.columns = columns;
    p.norms = t->first.norms;
    p.base = t->second.base;
    p.row_bests.best = t->first_best;
    p.row_bests.second = t->first_second;
    p.column_bests.best = t->second_best;
    p.column_bests.second = t->second_second;
    p.strips_a_block = strips_a_block;
  }
  __syncthreads();
  take_block<FORM, COLUMNS>(&p, (products_shared *)memory);
}

/* On a device without the wide form, that form equals the narrow one. */
#define PRODUCTS_MANY_KERNEL(name, COLUMNS)                                                                            \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                        \
      name(const cuda_match_task *tasks, uint32_t strips_a_block) {                                                    \
    take_block_of_many<FORM_WIDE, COLUMNS>(tasks, strips_a_block);                                                     \
  }
PRODUCTS_MANY_KERNEL(match_products_many_kernel, false)
PRODUCTS_MANY_KERNEL(match_products_many_columns_kernel, true)

MATCH_PRODUCTS_KERNELS(LAUNCH_CHECK)
