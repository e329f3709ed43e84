/*
 * Orientation with vectors.
 *
 * The samples of a window are gathered row by row into a block without gaps, as for descriptors. Directions,
 * magnitudes and votes are then computed on full vectors. A sample's two votes go to neighbouring bins and are
 * added as one 64-bit number. Each lane of a vector has a separate histogram, so that no two additions of a vector
 * conflict. Smoothing works in double: all its values are integers below 2^53, hence exact.
 */
#include <string.h>

#include "cpu/simd/elementary_simd.h"
#include "cpu/simd/stages_simd.h"
#include "cpu/schedule/window_prefetch.h"
#include "cpu/simd/window_runs_simd.h"

enum {
  BLOCK = 512, /* number of samples gathered before they vote */
  BLOCK_CAPACITY = BLOCK + 2 * SIMD_WIDTH,
  BAND = 64, /* number of rows whose weights and intervals are computed together */
  COPIES = SIMD_WIDTH < 8 ? SIMD_WIDTH : 8,
  BINS_STRIDE = 40,  /* stride between histograms */
  BIN_MIN = -19,     /* separate sums for bins -19..18 */
  SMOOTH_RADIUS = 6, /* number of bins that smoothing reads on either side of a bin */
  COLUMNS_MAX = 2 * WINDOW_RADIUS_MAX + 1 + 16
};

/* A block of samples that vote, and the sums of their votes, from BIN_MIN on. Sum b has bin b in its low half and bin b
   + 1 in its high half. */
typedef struct sample_block {
  _Alignas(64) uint64_t sums[COPIES * BINS_STRIDE];
  float gx[BLOCK_CAPACITY], gy[BLOCK_CAPACITY],
      weight[BLOCK_CAPACITY];      /* first gy and weight; later direction, and weight times magnitude */
  float pairs[2 * BLOCK_CAPACITY]; /* bits of two int32 votes per sample */
  int32_t offset[BLOCK_CAPACITY];
  int32_t count;
  window_prefetch prefetch; /* window of the next keypoint, to prefetch */
} sample_block;

/* Values of a sample that depend only on its column. Reads may extend one vector beyond the last column. */
typedef struct column_values {
  float weight[COLUMNS_MAX];
} column_values;

/* Values of a sample that depend only on its row. */
typedef struct row_values {
  float weight[BAND];
  int32_t from[BAND], end[BAND]; /* range of columns inside the window: from..end-1 */
} row_values;

/* Work memory that keypoints use one after another. It is not on the stack, because a function touches all pages of
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

static window_clip clip_window(const plane_view *level, const orient_window *w) {
  window_clip c = {w->cx - w->radius, w->cx + w->radius, w->cy - w->radius, w->cy + w->radius};
  if (c.x0 < w->margin) c.x0 = w->margin;
  if (c.y0 < w->margin) c.y0 = w->margin;
  if (c.x1 > level->width - 1 - w->margin) c.x1 = level->width - 1 - w->margin;
  if (c.y1 > level->height - 1 - w->margin) c.y1 = level->height - 1 - w->margin;
  return c;
}

static void compute_columns(const orient_window *w, const window_clip *c, column_values *columns) {
  const simd_f32 x = simd_set1(w->x), falloff = simd_set1(w->falloff);
  const int32_t n = c->x1 - c->x0 + 1;
  for (int32_t k = 0; k < n; k += SIMD_WIDTH) {
    const simd_f32 dx = simd_sub(simd_add(simd_set1((float)(c->x0 + k)), simd_lane_numbers()), x);
    simd_store(columns->weight + k, simd_window_weight(dx, falloff));
  }
  simd_store(columns->weight + n, x);
}

/* Returns the column of the bracket at which the window begins (the first column inside) or, with `leaving`, ends (the
 * first column outside). */
static inline simd_f32 settle_column(const orient_window *w, simd_f32 dy, column_bracket b, bool leaving) {
  const simd_f32 dx = simd_sub(b.low, simd_set1(w->x)), limit = simd_set1(w->limit);
  const simd_mask inside = simd_lt(simd_add(simd_mul(dx, dx), simd_mul(dy, dy)), limit);
  return leaving ? simd_select(inside, b.high, b.low) : simd_select(inside, b.low, b.high);
}

/* Computes weights and intervals of `rows` rows from y on. */
static void compute_rows(const orient_window *w, const window_clip *c, float scale, int32_t y, int32_t rows,
                         row_values *out) {
  const simd_f32 falloff = simd_set1(w->falloff), x = simd_set1(w->x), zero = simd_zero();
  const simd_f32 first = simd_set1((float)c->x0), end = simd_set1((float)(c->x1 + 1));
  for (int32_t k = 0; k < rows; k += SIMD_WIDTH) {
    const simd_f32 dy = simd_sub(simd_add(simd_set1((float)(y + k)), simd_lane_numbers()), simd_set1(w->y));
    const simd_f32 half = simd_sqrt(simd_max(simd_sub(simd_set1(w->limit), simd_mul(dy, dy)), zero));
    const column_bracket begins = bracket_of(simd_sub(x, half), first, end),
                         ends = bracket_of(simd_add(x, half), first, end);
    simd_i32_store(out->from + k, simd_trunc_i32(settle_column(w, dy, begins, false)));
    simd_i32_store(out->end + k, simd_trunc_i32(settle_column(w, dy, ends, true)));
    simd_store(out->weight + k, simd_mul(simd_window_weight(dy, falloff), simd_set1(scale)));
  }
}

/* Converts the block's gradients to magnitudes times weights, and to directions in bins. */
static void polar_gradients(sample_block *b) {
  window_prefetch prefetch = b->prefetch;
  for (int32_t n = 0; n < b->count; n += SIMD_WIDTH) {
    simd_f32 magnitude, position;
    window_prefetch_row(&prefetch);
    simd_polar(simd_load(b->gx + n), simd_load(b->gy + n), (float)ORIENT_BINS, &magnitude, &position);
    simd_store(b->gy + n, position);
    simd_store(b->weight + n, simd_mul(magnitude, simd_load(b->weight + n)));
  }
  while (prefetch.rows > 0)
    window_prefetch_row(&prefetch); /* prefetches the rows that were not prefetched during the loop */
  b->prefetch = prefetch;
}

/* Computes the votes of the block's samples n to n + SIMD_WIDTH - 1, and the lower bin of each sample in the histogram
 * of its lane. */
static inline void compute_votes(sample_block *b, int32_t n, author_rule rule, simd_i32 histogram) {
  const simd_f32 position = simd_load(b->gy + n), v = simd_load(b->weight + n);
  simd_i32 bin, v0, v1 = simd_i32_set1(0);
  if (rule == RULE_OPENCV) {
    bin = simd_round_i32(position);
    v0 = simd_round_i32(v);
  } else {
    const simd_f32 shifted = simd_sub(position, simd_set1(0.5f)), lower = simd_floor(shifted);
    const simd_i32 upper = simd_biased_product(v, simd_sub(shifted, lower));
    bin = simd_trunc_i32(lower);
    v0 = simd_i32_sub(simd_biased_round(v), upper);
    v1 = simd_i32_sub(upper, simd_i32_set1(ROUNDED_BIAS));
  }
  simd_i32_store(b->offset + n, simd_i32_add(bin, histogram));
  simd_store_interleaved(b->pairs + 2 * n, simd_cast_f32(v0), simd_cast_f32(v1));
}

/* Adds the votes of the block's samples and empties the block. Each part has a separate loop: the chains of
 * dependent operations are long, and more iterations of a short loop overlap than of a long one. */
static void vote(sample_block *b, author_rule rule) {
  const simd_f32 zero = simd_zero();
  int32_t histograms[SIMD_WIDTH];
  for (int32_t i = 0; i < SIMD_WIDTH; i++) histograms[i] = i % COPIES * BINS_STRIDE - BIN_MIN;
  /* Fills the last vector with samples of weight 0. */
  simd_store(b->gx + b->count, zero);
  simd_store(b->gy + b->count, zero);
  simd_store(b->weight + b->count, zero);
  polar_gradients(b);
  const simd_i32 histogram = simd_i32_load(histograms);
  for (int32_t n = 0; n < b->count; n += SIMD_WIDTH) compute_votes(b, n, rule, histogram);
  for (int32_t n = 0; n < b->count; n++) {
    uint64_t pair;
    memcpy(&pair, b->pairs + 2 * n, sizeof pair);
    b->sums[b->offset[n]] += pair;
  }
  b->count = 0;
}

/* Returns the differences along x for the vector of samples from column x on. At the ends of the level's rows, twice
 * the one-sided difference replaces the central difference. */
static simd_f32 mend_ends(const plane_view *level, const float *line, int32_t x, simd_f32 differences) {
  const int32_t w = level->width;
  float gx[SIMD_WIDTH];
  if (x > 0 && w - 1 - x >= SIMD_WIDTH) return differences;
  simd_store(gx, differences);
  if (x == 0) gx[0] = w == 1 ? 0.0f : 2.0f * (line[1] - line[0]);
  if (w > 1 && w - 1 - x < SIMD_WIDTH) gx[w - 1 - x] = 2.0f * (line[w - 1] - line[w - 2]);
  return simd_load(gx);
}

/* Computes twice the gradients of the vector of samples from column x of row y on. mend: the level's outermost
   samples may be among them. */
static inline void twice_gradients(const plane_view *level, int32_t x, int32_t y, bool mend, simd_f32 *gx,
                                   simd_f32 *gy) {
  const float *line = level->data + (size_t)y * level->stride;
  const bool first = mend && y == 0, last = mend && y == level->height - 1;
  const float *above = first ? line : line - level->stride, *below = last ? line : line + level->stride;
  *gx = simd_sub(simd_load(line + x + 1), simd_load(line + x - 1));
  *gy = simd_sub(simd_load(below + x), simd_load(above + x));
  if (mend) *gx = mend_ends(level, line, x, *gx);
  if (first || last) *gy = simd_add(*gy, *gy);
}

/* Appends the samples of `count` runs in a band of rows from y on, and votes whenever the block is full. */
static void gather_runs(sample_block *b, const plane_view *level, const orient_window *w, const window_clip *c,
                        const column_values *columns, const row_values *rows, int32_t y, const sample_run *runs,
                        int32_t count, author_rule rule) {
  int32_t n = b->count;
  for (int32_t k = 0; k < count; k++) {
    const int32_t i = run_row(runs[k]), column = run_column(runs[k]);
    simd_f32 gx, gy;
    twice_gradients(level, c->x0 + column, y + i, w->margin == 0, &gx, &gy);
    simd_store(b->gx + n, gx);
    simd_store(b->gy + n, gy);
    simd_store(b->weight + n, simd_mul(simd_load(columns->weight + column), simd_set1(rows->weight[i])));
    n += run_samples(runs[k]);
    if (n <= BLOCK) continue;
    b->count = n;
    vote(b, rule);
    n = 0;
  }
  b->count = n;
}

/* Appends the samples of `count` rows from y on. */
static void gather_rows(window_scratch *scratch, const plane_view *level, const orient_window *w, const window_clip *c,
                        int32_t y, int32_t count, author_rule rule) {
  const row_values *rows = &scratch->rows;
  sample_run *runs = scratch->runs;
  int32_t n = 0;
  for (int32_t i = 0; i < count; i++) {
    const int32_t samples = rows->end[i] - rows->from[i];
    if (samples <= 0) continue;
    n += list_runs(runs + n, rows->from[i] - c->x0, i, samples);
    if (n < RUNS_LISTED) continue;
    gather_runs(&scratch->block, level, w, c, &scratch->columns, rows, y, runs, n, rule);
    n = 0;
  }
  gather_runs(&scratch->block, level, w, c, &scratch->columns, rows, y, runs, n, rule);
}

/* Computes the bins from the sums: a bin is the low half of its sum plus the high half of the sum below. */
static void fold_sums(const uint64_t sums[BINS_STRIDE], int32_t bins[ORIENT_BINS]) {
  int32_t turned[BINS_STRIDE + 1]; /* bins from BIN_MIN on, before their indices are taken modulo ORIENT_BINS */
  for (int32_t i = 0; i < BINS_STRIDE; i++) turned[i] = (int32_t)(uint32_t)sums[i];
  turned[BINS_STRIDE] = 0;
  for (int32_t i = 0; i < BINS_STRIDE; i++) turned[i + 1] += (int32_t)(sums[i] >> 32);
  for (int32_t b = 0; b < ORIENT_BINS; b++) {
    const int32_t below = b - ORIENT_BINS - BIN_MIN, own = b - BIN_MIN;
    bins[b] = (own < BINS_STRIDE ? turned[own] : 0) + (below >= 0 ? turned[below] : 0);
  }
}

/* Computes the 36 bins of a window. Gradients are twice too long and weights half too small, which saves a
 * multiplication. The polar form scales exactly, except below 1e-30, where a vote rounds to 0. */
static void compute_bins(window_scratch *scratch, const plane_view *level, const orient_window *w, float scale,
                         author_rule rule, window_prefetch prefetch, int32_t bins[ORIENT_BINS]) {
  sample_block *block = &scratch->block;
  const window_clip clip = clip_window(level, w);
  memset(block->sums, 0, sizeof block->sums);
  block->count = 0;
  block->prefetch = prefetch;
  if (clip.x0 <= clip.x1) {
    compute_columns(w, &clip, &scratch->columns);
    for (int32_t y = clip.y0; y <= clip.y1; y += BAND) {
      const int32_t n = clip.y1 - y + 1 < BAND ? clip.y1 - y + 1 : BAND;
      compute_rows(w, &clip, 0.5f * scale, y, n, &scratch->rows);
      gather_rows(scratch, level, w, &clip, y, n, rule);
    }
  }
  vote(block, rule);
  for (int32_t copy = 1; copy < COPIES; copy++)
    for (int32_t b = 0; b < BINS_STRIDE; b++) block->sums[b] += block->sums[copy * BINS_STRIDE + b];
  fold_sums(block->sums, bins);
}

/* Computes orient_smooth_bin for every bin. */
static void smooth(const int32_t bins[ORIENT_BINS], author_rule rule, double smoothed[ORIENT_BINS]) {
  static const double opencv[SMOOTH_RADIUS + 1] = {6, 4, 1}, boxes[SMOOTH_RADIUS + 1] = {141, 126, 90, 50, 21, 6, 1};
  const double *taps = rule == RULE_OPENCV ? opencv : boxes;
  double ring[ORIENT_BINS + 2 * SMOOTH_RADIUS];
  for (int32_t b = 0; b < ORIENT_BINS; b++) ring[SMOOTH_RADIUS + b] = bins[b];
  for (int32_t i = 0; i < SMOOTH_RADIUS; i++) {
    ring[i] = ring[ORIENT_BINS + i];
    ring[SMOOTH_RADIUS + ORIENT_BINS + i] = ring[SMOOTH_RADIUS + i];
  }
  for (int32_t b = 0; b < ORIENT_BINS; b++) smoothed[b] = taps[0] * ring[SMOOTH_RADIUS + b];
  for (int32_t j = 1; j <= SMOOTH_RADIUS; j++)
    for (int32_t b = 0; b < ORIENT_BINS; b++)
      smoothed[b] += taps[j] * (ring[SMOOTH_RADIUS + b - j] + ring[SMOOTH_RADIUS + b + j]);
}

static double largest_of(const double h[ORIENT_BINS]) {
  double most[4] = {0.0, 0.0, 0.0, 0.0};
  for (int32_t b = 0; b < ORIENT_BINS; b += 4)
    for (int32_t i = 0; i < 4; i++) most[i] = h[b + i] > most[i] ? h[b + i] : most[i];
  const double a = most[0] > most[1] ? most[0] : most[1], b = most[2] > most[3] ? most[2] : most[3];
  return a > b ? a : b;
}

/* Evaluates orient_is_peak for every bin; bit b of the result is the answer for bin b. */
static uint64_t peak_bits(const double h[ORIENT_BINS], author_rule rule) {
  const double least = 4.0 * largest_of(h);
  double ring[ORIENT_BINS + 2];
  uint64_t bits = 0;
  memcpy(ring + 1, h, sizeof(double) * ORIENT_BINS);
  ring[0] = h[ORIENT_BINS - 1];
  ring[ORIENT_BINS + 1] = h[0];
  for (int32_t b = 0; b < ORIENT_BINS; b++) {
    const double five = 5.0 * h[b];
    const int high = rule == RULE_VLFEAT ? five > least : five >= least;
    bits |= (uint64_t)((h[b] > ring[b]) & (h[b] > ring[b + 2]) & high) << b;
  }
  return bits;
}

/* Drops the lowest peaks until `most` are left. Among equal peaks the higher bin is dropped. */
static uint64_t keep_highest(uint64_t bits, const double h[ORIENT_BINS], int32_t most) {
  while (most > 0 && __builtin_popcountll(bits) > most) {
    int lowest = __builtin_ctzll(bits);
    for (uint64_t left = bits; left != 0; left &= left - 1) {
      const int b = __builtin_ctzll(left);
      if (h[b] <= h[lowest]) lowest = b;
    }
    bits &= ~(UINT64_C(1) << lowest);
  }
  return bits;
}

/* Computes the angles of the peaks in ascending order. Returns their number. */
static int32_t peak_angles(const int32_t bins[ORIENT_BINS], const sift_params *p, float angles[ORIENT_PEAKS_MAX]) {
  const author_rule rule = p->orientation_rule;
  double h[ORIENT_BINS];
  int32_t n = 0;
  smooth(bins, rule, h);
  for (uint64_t bits = keep_highest(peak_bits(h, rule), h, p->max_orientations); bits != 0; bits &= bits - 1) {
    const int32_t b = __builtin_ctzll(bits);
    const int64_t left = (int64_t)h[orient_wrap_bin(b - 1)], right = (int64_t)h[orient_wrap_bin(b + 1)];
    const float angle = orient_peak_angle(b, left, (int64_t)h[b], right, rule);
    /* the angle of a peak in the first or last bin may wrap around, so angles are inserted in order; equal angles stay
     * in the order of bins */
    int32_t at = n++;
    for (; at > 0 && angle < angles[at - 1]; at--) angles[at] = angles[at - 1];
    angles[at] = angle;
  }
  return n;
}

/* Returns the window of keypoint n; an empty one if n is `end` or more. */
static window_prefetch next_window(const orient_args *args, uint32_t n, uint32_t end) {
  const keypoint_list *k = &args->keypoints;
  if (n >= end) return (window_prefetch){.rows = 0};
  const octave_view *o = &args->octaves[k->octave[n] - args->first_octave];
  const plane_view level = octave_level(o, k->level[n]);
  const octave_keypoint at = keypoint_in_octave(k, n, args->params.grid_shift);
  const int32_t radius = orient_radius(at.sigma, args->params.orientation_rule);
  return window_prefetch_of(&level, (int32_t)at.x, (int32_t)at.y, radius);
}

static int32_t orient_keypoint(window_scratch *scratch, const orient_args *args, uint32_t n, uint32_t end,
                               float angles[ORIENT_PEAKS_MAX]) {
  const keypoint_list *k = &args->keypoints;
  const octave_view *o = &args->octaves[k->octave[n] - args->first_octave];
  const plane_view level = octave_level(o, k->level[n]);
  const octave_keypoint at = keypoint_in_octave(k, n, args->params.grid_shift);
  const author_rule rule = args->params.orientation_rule;
  const orient_window w = orient_window_of(at.x, at.y, at.sigma, k->column[n], k->row[n], rule);
  int32_t bins[ORIENT_BINS];
  assert(w.radius <= WINDOW_RADIUS_MAX);
  compute_bins(scratch, &level, &w, args->scales->orient[w.radius], rule, next_window(args, n + 1, end), bins);
  return peak_angles(bins, &args->params, angles);
}

static void orient_chunk(void *argument, int32_t chunk, int32_t worker) {
  orient_job *job = argument;
  const orient_args *args = &job->args;
  const uint32_t end = atomic_load_explicit(&job->end, memory_order_acquire);
  window_scratch scratch;
  ordered_chunk c = {.first = args->first_keypoint + (uint32_t)chunk * ORDERED_ITEMS};
  (void)worker;
  for (uint32_t i = 0; i < ORDERED_ITEMS && c.first + i < end; i++) {
    float *angles = c.angle + c.angles;
    int32_t count = 1;
    if (args->params.upright)
      *angles = 0.0f;
    else
      count = orient_keypoint(&scratch, args, c.first + i, end, angles);
    c.count[i] = (uint8_t)count;
    c.angles += count;
    c.items++;
  }
  ordered_append(&job->list, chunk, &c);
}

bool SIMD_NAME(begin_orient)(orient_job *job, const orient_args *args) {
  return orient_job_begin(job, args, orient_chunk);
}

stage_status SIMD_NAME(orient)(stage_queue *queue, const orient_args *args) {
  orient_job job;
  if (!SIMD_NAME(begin_orient)(&job, args)) return STAGE_OUT_OF_MEMORY;
  queue_run(queue, job.run.chunks, job.run.task, &job);
  ordered_end(&job.list);
  return STAGE_OK;
}
