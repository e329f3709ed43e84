/*
 * Descriptors with vectors.
 *
 * The samples of a window are gathered row by row into a block: the columns of each row inside the rotated square
 * are known in advance. Direction and magnitude are computed while gathering, because this arithmetic overlaps with
 * loads and stores that cross cache lines. Rows are stored in the block without gaps, so that the shares of the
 * votes are computed on full vectors. One vector addition then adds a sample's eight products, from which its votes
 * follow. There are eight separate sums, one for each product, for every cell corner and direction that a sample
 * may have (5 x 5 x 8). The sums are folded to the 128 bins at the end. Integer sums do not depend on the order, so
 * the bins equal the reference's.
 */
#include <string.h>

#include "cpu/schedule/window_prefetch.h"
#include "cpu/simd/elementary_simd.h"
#include "cpu/simd/stages_simd.h"
#include "cpu/simd/votes_simd.h"
#include "cpu/simd/window_runs_simd.h"

enum {
  BLOCK = 256, /* number of samples gathered before they vote */
  BLOCK_CAPACITY = BLOCK + 2 * SIMD_WIDTH,
  BAND = 64, /* number of rows whose weights and intervals are computed together */
  /* Strides between the sums, bytes: to the next direction, the next corner, and the next row of corners */
  DIRECTION_BYTES = VOTE_PRODUCTS * (int)sizeof(int32_t),
  CORNER_BYTES = SUM_CELL * (int)sizeof(int32_t),
  ROW_BYTES = CORNERS * CORNER_BYTES,
  OFFSET_MASK = 0xffff,
  COLUMNS_MAX = 2 * WINDOW_RADIUS_MAX + 1 + 16
};

/* A side that makes a smaller angle with the rows (radians) does not bound the rows, because it may cut a row
 * anywhere. */
#define CUT_MIN 0.01f

/* A block of samples that vote, and the sums of their votes. */
typedef struct sample_block {
  _Alignas(64) int32_t sums[SUM_COUNT];
  _Alignas(64) vote_block votes[BLOCK_CAPACITY / SIMD_WIDTH];
  float row[BLOCK_CAPACITY], column[BLOCK_CAPACITY]; /* position in cells, from describe_position */
  float direction[BLOCK_CAPACITY]; /* direction of the gradient in bins, relative to the feature's orientation */
  float weight[BLOCK_CAPACITY];    /* weight times magnitude */
  int32_t offset[BLOCK_CAPACITY];  /* byte offset of a sample's first sum, in the bits of OFFSET_MASK */
  int32_t count;
  window_prefetch prefetch; /* window of the next feature, to prefetch */
} sample_block;

/* Values of a sample that depend only on its column, from column x0 on. Reads may extend one vector beyond the last
 * column. */
typedef struct column_values {
  float across[COLUMNS_MAX], along[COLUMNS_MAX], weight[COLUMNS_MAX]; /* 2.5 + dx cos, 2.5 - dx sin, w(dx) */
} column_values;

/* Values of a sample that depend only on its row. */
typedef struct row_values {
  float dy[BAND], weight[BAND];
  int32_t from[BAND], end[BAND]; /* range of columns inside the square: from..end-1 */
} row_values;

/* Work memory that features use one after another. It is not on the stack, because a function touches all pages of
 * so large a stack frame each time it starts. */
typedef struct window_scratch {
  sample_block block;
  column_values columns;
  row_values rows;
  sample_run runs[RUNS_LISTED + COLUMNS_MAX / SIMD_WIDTH + RUNS_AT_ONCE];
} window_scratch;

/* Part of the window inside the level. */
typedef struct window_clip {
  int32_t x0, x1, y0, y1; /* inclusive */
} window_clip;

/* Clips the window to the samples of the level that vote: all but the outermost. */
static window_clip clip_window(const plane_view *level, const describe_window *w) {
  window_clip c = {w->cx - w->radius, w->cx + w->radius, w->cy - w->radius, w->cy + w->radius};
  if (c.x0 < 1) c.x0 = 1;
  if (c.y0 < 1) c.y0 = 1;
  if (c.x1 > level->width - 2) c.x1 = level->width - 2;
  if (c.y1 > level->height - 2) c.y1 = level->height - 2;
  return c;
}

static void compute_columns(const describe_window *w, const window_clip *c, column_values *columns) {
  const simd_f32 cosine = simd_set1(w->cosine), sine = simd_set1(w->sine), falloff = simd_set1(w->falloff);
  const simd_f32 x = simd_set1(w->x), middle = simd_set1(2.5f);
  const int32_t n = c->x1 - c->x0 + 1;
  for (int32_t k = 0; k < n; k += SIMD_WIDTH) {
    const simd_f32 dx = simd_sub(simd_add(simd_set1((float)(c->x0 + k)), simd_lane_numbers()), x);
    simd_store(columns->across + k, simd_fma(dx, cosine, middle));
    simd_store(columns->along + k, simd_fma(dx, simd_neg(sine), middle));
    simd_store(columns->weight + k, simd_window_weight(dx, falloff));
  }
  simd_store(columns->across + n, middle);
  simd_store(columns->along + n, middle);
  simd_store(columns->weight + n, middle);
}

/* Positions of samples at (x, dy) in the padded histogram (describe_position). */
typedef struct cell_position {
  simd_f32 row, column;
} cell_position;

static inline cell_position position_of(const describe_window *w, simd_f32 x, simd_f32 dy) {
  const simd_f32 dx = simd_sub(x, simd_set1(w->x)), middle = simd_set1(2.5f);
  return (cell_position){simd_fma(dy, simd_set1(w->cosine), simd_fma(dx, simd_set1(-w->sine), middle)),
                         simd_fma(dy, simd_set1(w->sine), simd_fma(dx, simd_set1(w->cosine), middle))};
}

/* Returns for which columns x the position is past both sides where rows enter the square; with `leaving`, past either
 * side where rows leave it. As x rises, the answer changes once, from false to true, because rounding is monotonic. */
static inline simd_mask is_beyond(const describe_window *w, simd_f32 x, simd_f32 dy, bool leaving) {
  const cell_position at = position_of(w, x, dy);
  const simd_f32 zero = simd_zero(), five = simd_set1(5.0f);
  const bool row_rises = w->sine <= 0.0f, column_rises = w->cosine >= 0.0f;
  if (leaving)
    return simd_mask_or(row_rises ? simd_ge(at.row, five) : simd_le(at.row, zero),
                        column_rises ? simd_ge(at.column, five) : simd_le(at.column, zero));
  return simd_mask_and(row_rises ? simd_gt(at.row, zero) : simd_lt(at.row, five),
                       column_rises ? simd_gt(at.column, zero) : simd_lt(at.column, five));
}

/* Returns the first column of the bracket for which is_beyond is true; the bracket's end if it is false before. */
static inline simd_f32 first_beyond(const describe_window *w, simd_f32 dy, column_bracket b, bool leaving) {
  const simd_f32 one = simd_set1(1.0f), half = simd_set1(0.5f);
  while (simd_any(simd_lt(b.low, b.high))) {
    const simd_f32 x = simd_floor(simd_mul(half, simd_add(b.low, b.high)));
    const simd_mask beyond = is_beyond(w, x, dy, leaving);
    b.high = simd_select(beyond, x, b.high);
    b.low = simd_select(beyond, b.low, simd_min(simd_add(x, one), b.high));
  }
  return b.high;
}

/* Two parallel sides of the square. They cut the row at dy in the columns slope * dy + w->x - half and slope * dy +
 * w->x + half. */
typedef struct side_pair {
  float slope, half;
} side_pair;

/* Returns the two sides that bound dx a + dy b to (-2.5, 2.5). */
static side_pair sides_of(float a, float b) { return (side_pair){-b / a, 2.5f / hs_fabsf(a)}; }

static bool is_parallel(float a, float b) { return hs_fabsf(a) <= CUT_MIN * hs_fabsf(b); }

/* Computes weights and intervals of `rows` rows from y on. */
static void compute_rows(const describe_window *w, const window_clip *c, float scale, int32_t y, int32_t rows,
                         row_values *out) {
  const bool parallel = is_parallel(w->cosine, w->sine) || is_parallel(w->sine, w->cosine);
  const side_pair none = {0.0f, 0.0f};
  const side_pair p = parallel ? none : sides_of(w->cosine, w->sine);
  const side_pair q = parallel ? none : sides_of(-w->sine, w->cosine);
  const simd_f32 x = simd_set1(w->x), falloff = simd_set1(w->falloff);
  const simd_f32 first = simd_set1((float)c->x0), end = simd_set1((float)(c->x1 + 1));
  for (int32_t k = 0; k < rows; k += SIMD_WIDTH) {
    const simd_f32 dy = simd_sub(simd_add(simd_set1((float)(y + k)), simd_lane_numbers()), simd_set1(w->y));
    column_bracket begins = {first, end}, ends = {first, end};
    if (!parallel) {
      const simd_f32 p_mid = simd_fma(dy, simd_set1(p.slope), x), q_mid = simd_fma(dy, simd_set1(q.slope), x);
      const simd_f32 p_half = simd_set1(p.half), q_half = simd_set1(q.half);
      begins = bracket_of(simd_max(simd_sub(p_mid, p_half), simd_sub(q_mid, q_half)), first, end);
      ends = bracket_of(simd_min(simd_add(p_mid, p_half), simd_add(q_mid, q_half)), first, end);
    }
    simd_i32_store(out->from + k, simd_trunc_i32(first_beyond(w, dy, begins, false)));
    simd_i32_store(out->end + k, simd_trunc_i32(first_beyond(w, dy, ends, true)));
    simd_store(out->dy + k, dy);
    simd_store(out->weight + k, simd_mul(simd_window_weight(dy, falloff), simd_set1(scale)));
  }
}

/* Computes the votes of the block's samples n to n + SIMD_WIDTH - 1, and the positions of their sums. */
static inline void compute_votes(sample_block *b, int32_t n) {
  const simd_f32 row = simd_load(b->row + n), column = simd_load(b->column + n),
                 direction = simd_load(b->direction + n);
  const simd_f32 r = simd_floor(row), c = simd_floor(column), d = simd_floor(direction);
  const simd_f32 fr = simd_sub(row, r), fc = simd_sub(column, c), fd = simd_sub(direction, d), fcd = simd_mul(fc, fd);
  /* Integers are taken from the low bits of a float: the offset of the corner's first sum, combined with d modulo
   * DESCRIBE_BINS in bits that are 0 in that offset. */
  const simd_f32 shift = simd_set1(ROUNDING_SHIFT);
  const simd_f32 corner = simd_fma(r, simd_set1((float)ROW_BYTES), simd_fma(c, simd_set1((float)CORNER_BYTES), shift));
  const simd_i32 bin = simd_cast_i32(simd_fma(d, simd_set1((float)DIRECTION_BYTES), shift));
  const simd_i32 bin_bits = simd_i32_and(bin, simd_i32_set1((DESCRIBE_BINS - 1) * DIRECTION_BYTES));
  simd_i32_store(b->offset + n, simd_i32_or(simd_cast_i32(corner), bin_bits));
  const simd_f32 v = simd_load(b->weight + n);
  const simd_f32 v1 = simd_mul(v, fr);
  votes_transpose(&b->votes[n / SIMD_WIDTH], simd_sub(v, v1), v1, fc, fd, fcd);
}

static inline int32_t *sums_at(sample_block *b, int32_t offset) {
  return (int32_t *)(void *)((unsigned char *)b->sums + (offset & OFFSET_MASK));
}

/* Adds the votes of the block's samples and empties the block. Each part has a separate loop: the chains of
 * dependent operations are long, and more iterations of a short loop overlap than of a long one. */
static void vote(sample_block *b) {
  const simd_f32 zero = simd_zero();
  /* Fills the last vector with samples of weight 0. */
  simd_store(b->row + b->count, zero);
  simd_store(b->column + b->count, zero);
  simd_store(b->direction + b->count, zero);
  simd_store(b->weight + b->count, zero);
  for (int32_t n = 0; n < b->count; n += SIMD_WIDTH) compute_votes(b, n);
  for (int32_t n = 0; n < b->count; n += SIMD_WIDTH) {
    const vote_block *votes = &b->votes[n / SIMD_WIDTH];
    /* Takes the samples lane by lane, because neighbouring samples often add to the same sum, and then would wait for
       each other. */
    for (int k = 0; k < 4; k++)
      for (int lane = 0; lane < VOTE_LANES; lane++) votes_add(sums_at(b, b->offset[n + 4 * lane + k]), votes, k, lane);
  }
  b->count = 0;
}

/* Appends the samples of `count` runs, and votes whenever the block is full. line: first column of the window, in the
   first row of the band. */
static void gather_runs(sample_block *b, const plane_view *level, const describe_window *w, const float *line,
                        const column_values *columns, const row_values *rows, const sample_run *runs, int32_t count) {
  const simd_f32 cosine = simd_set1(w->cosine), sine = simd_set1(w->sine), turn = simd_set1(w->direction);
  window_prefetch prefetch = b->prefetch;
  int32_t n = b->count;
  for (int32_t k = 0; k < count; k++) {
    const int32_t x = run_column(runs[k]), i = run_row(runs[k]);
    const float *at = line + (size_t)i * level->stride + x, *above = at - level->stride, *below = at + level->stride;
    const simd_f32 dy = simd_set1(rows->dy[i]);
    simd_store(b->row + n, simd_fma(dy, cosine, simd_load(columns->along + x)));
    simd_store(b->column + n, simd_fma(dy, sine, simd_load(columns->across + x)));
    const simd_f32 gx = simd_sub(simd_load(at + 1), simd_load(at - 1));
    const simd_f32 gy = simd_sub(simd_load(below), simd_load(above));
    const simd_f32 weight = simd_mul(simd_load(columns->weight + x), simd_set1(rows->weight[i]));
    simd_f32 magnitude, angle;
    window_prefetch_row(&prefetch);
    simd_polar(gx, gy, (float)DESCRIBE_BINS, &magnitude, &angle);
    simd_store(b->direction + n, simd_sub(turn, angle));
    simd_store(b->weight + n, simd_mul(magnitude, weight));
    n += run_samples(runs[k]);
    if (n <= BLOCK) continue;
    b->count = n;
    vote(b);
    n = 0;
  }
  b->prefetch = prefetch;
  b->count = n;
}

/* Appends the samples of `count` rows from y on. */
static void gather_rows(window_scratch *scratch, const plane_view *level, const describe_window *w, int32_t x0,
                        int32_t y, int32_t count) {
  const row_values *rows = &scratch->rows;
  sample_run *runs = scratch->runs;
  const float *line = level->data + (size_t)y * level->stride + x0;
  int32_t n = 0;
  for (int32_t i = 0; i < count; i++) {
    const int32_t samples = rows->end[i] - rows->from[i];
    if (samples <= 0) continue;
    n += list_runs(runs + n, rows->from[i] - x0, i, samples);
    if (n < RUNS_LISTED) continue;
    gather_runs(&scratch->block, level, w, line, &scratch->columns, rows, runs, n);
    n = 0;
  }
  gather_runs(&scratch->block, level, w, line, &scratch->columns, rows, runs, n);
}

/* Computes the bins of one feature. Gradients are twice too long and weights half too small, which saves a
 * multiplication. The polar form scales exactly, except below 1e-30, where a vote rounds to 0. */
static void compute_bins(window_scratch *scratch, const plane_view *level, const describe_window *w, float scale,
                         window_prefetch prefetch, int32_t bins[DESCRIBE_LENGTH]) {
  sample_block *b = &scratch->block;
  const window_clip clip = clip_window(level, w);
  memset(b->sums, 0, sizeof b->sums);
  b->count = 0;
  b->prefetch = prefetch;
  if (clip.x0 <= clip.x1) {
    compute_columns(w, &clip, &scratch->columns);
    for (int32_t y = clip.y0; y <= clip.y1; y += BAND) {
      const int32_t n = clip.y1 - y + 1 < BAND ? clip.y1 - y + 1 : BAND;
      compute_rows(w, &clip, 0.5f * scale, y, n, &scratch->rows);
      gather_rows(scratch, level, w, clip.x0, y, n);
    }
  }
  vote(b);
  fold_sums(b->sums, bins);
}

static uint64_t sum_of_squares(const int32_t *bins) {
  uint64_t sum = 0;
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) sum += (uint64_t)(uint32_t)bins[i] * (uint32_t)bins[i];
  return sum;
}

/* describe_byte of every lane */
static inline simd_i32 bytes_of(simd_f32 value, author_rule rule) {
  const simd_f32 scaled = simd_mul(simd_set1(512.0f), value);
  const simd_i32 b = rule == RULE_OPENCV ? simd_round_i32(scaled) : simd_trunc_i32(simd_add(scaled, simd_set1(0.5f)));
  const simd_i32 most = simd_i32_set1(255);
  return simd_i32_select(simd_i32_gt(b, most), most, b);
}

/* Computes the entries of unit norm, or their 8-bit form as floats. */
static void compute_values(const int32_t *bins, const sift_params *p, bool bytes, float *values) {
  uint32_t sum = 0;
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) sum += (uint32_t)bins[i];
  const simd_f32 factor = simd_set1(describe_factor(sum_of_squares(bins), sum, p->root));
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i += SIMD_WIDTH) {
    simd_f32 v = simd_mul(simd_from_i32(simd_i32_load(bins + i)), factor);
    if (p->root) v = simd_sqrt(v);
    if (bytes) v = simd_from_i32(bytes_of(v, p->descriptor_rule));
    simd_store(values + i, v);
  }
}

static void clip_bins(int32_t bins[DESCRIBE_LENGTH]) {
  const int32_t clip = describe_clip(sum_of_squares(bins));
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) bins[i] = bins[i] < clip ? bins[i] : clip;
}

/* Clips at 0.2 of the norm, normalises, and writes feature n of the output. */
static void write_descriptor(int32_t bins[DESCRIBE_LENGTH], const describe_args *args, uint32_t n) {
  const sift_params *p = &args->params;
  const bool bytes = !p->descriptor_float || p->descriptor_rule == RULE_OPENCV;
  float values[DESCRIBE_LENGTH], turned[DESCRIBE_LENGTH];
  const float *from = values;
  clip_bins(bins);
  compute_values(bins, p, bytes, values);
  if (p->vlfeat_layout) {
    for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) turned[describe_vlfeat_index(i)] = values[i];
    from = turned;
  }
  if (p->descriptor_float) {
    memcpy((float *)args->descriptors + (size_t)n * DESCRIBE_LENGTH, from, sizeof values);
    return;
  }
  uint8_t *out = (uint8_t *)args->descriptors + (size_t)n * DESCRIBE_LENGTH;
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) out[i] = (uint8_t)(int32_t)from[i];
}

/* Returns the site of feature n's window at one size, and its plane. */
static describe_site site_of(const describe_args *args, uint32_t n, int32_t size, plane_view *level) {
  const uint32_t i = args->features.keypoint[n];
  const describe_site site =
      args->params.domain.count > 0
          ? domain_site_of(&args->keypoints, i, &args->params, args->first_octave, args->octave_count, size)
          : describe_site_of(&args->keypoints, i, &args->params, args->first_octave);
  *level = octave_level(&args->octaves[site.octave_index], site.level);
  return site;
}

/* Returns the window that is processed after feature n at a size: the window of the next size, or the first window of
 * the next feature that belongs to another keypoint. */
static window_prefetch next_window(const describe_args *args, uint32_t n, uint32_t end, int32_t size) {
  const uint32_t *keypoint = args->features.keypoint;
  uint32_t next = n;
  size++;
  if (size >= args->params.domain.count) {
    size = 0;
    for (next++; next < end && keypoint[next] == keypoint[n]; next++) {}
    if (next >= end) return (window_prefetch){.rows = 0};
  }
  plane_view level;
  const describe_site site = site_of(args, next, size, &level);
  return window_prefetch_of(&level, (int32_t)site.x, (int32_t)site.y, describe_radius(site.sigma));
}

static void describe_size(window_scratch *scratch, const describe_args *args, uint32_t n, uint32_t end, int32_t size,
                          int32_t bins[DESCRIBE_LENGTH]) {
  plane_view level;
  const describe_site site = site_of(args, n, size, &level);
  const describe_window w =
      describe_window_of(site.x, site.y, site.sigma, args->features.orientation[n], args->params.descriptor_rule);
  assert(w.radius <= WINDOW_RADIUS_MAX);
  compute_bins(scratch, &level, &w, args->scales->describe[w.radius], next_window(args, n, end, size), bins);
}

/* Adds up the descriptors of all sizes. */
static void pool_sizes(window_scratch *scratch, const describe_args *args, uint32_t n, uint32_t end,
                       int32_t pooled[DESCRIBE_LENGTH]) {
  int32_t bins[DESCRIBE_LENGTH];
  memset(pooled, 0, sizeof bins);
  for (int32_t size = 0; size < args->params.domain.count; size++) {
    describe_size(scratch, args, n, end, size, bins);
    clip_bins(bins);
    const float factor = describe_factor(sum_of_squares(bins), 0, false);
    for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) pooled[i] += domain_share(bins[i], factor);
  }
}

static void describe_feature(window_scratch *scratch, const describe_args *args, uint32_t n, uint32_t end) {
  int32_t bins[DESCRIBE_LENGTH];
  if (args->params.domain.count > 0)
    pool_sizes(scratch, args, n, end, bins);
  else
    describe_size(scratch, args, n, end, 0, bins);
  write_descriptor(bins, args, n);
}

static void describe_chunk(void *argument, int32_t chunk, int32_t worker) {
  const describe_job *job = argument;
  const uint32_t listed = atomic_load_explicit(job->end, memory_order_acquire);
  const uint32_t first = job->args.first_feature + (uint32_t)chunk * DESCRIBE_ITEMS;
  const uint32_t end = listed - first < DESCRIBE_ITEMS ? listed : first + DESCRIBE_ITEMS;
  window_scratch scratch;
  (void)worker;
  for (uint32_t n = first; n < end; n++) describe_feature(&scratch, &job->args, n, listed);
}

void SIMD_NAME(begin_describe)(describe_job *job, const describe_args *args) {
  describe_job_begin(job, args, describe_chunk);
}

stage_status SIMD_NAME(describe)(stage_queue *queue, const describe_args *args) {
  describe_job job;
  SIMD_NAME(begin_describe)(&job, args);
  queue_run(queue, job.run.chunks, job.run.task, &job);
  return STAGE_OK;
}
