/*
 * Descriptors with vectors.
 *
 * The samples of a window are gathered row by row into a block: each row's interval of columns is clipped to the turned
 * square beforehand, and rows follow each other without gaps, so that the arithmetic that costs most (direction,
 * magnitude, eight votes) works on full vectors. A sample's eight votes are then added by one vector addition: the
 * sums are kept apart by the sample's cell corner and direction (5 x 5 x 8) and by which of the eight a vote is, and
 * folded to the 128 bins at the end. Integer sums do not depend on the order, so the bins are the reference's.
 */
#include <string.h>

#include "cpu/elementary_simd.h"
#include "cpu/stages_simd.h"
#include "cpu/threads.h"
#include "cpu/votes_simd.h"
#include "cpu/window_prefetch.h"

enum {
  CHUNK = 8,   /* features */
  BLOCK = 256, /* samples gathered before they vote */
  BLOCK_ROOM = BLOCK + 2 * SIMD_WIDTH,
  BAND = 64,                    /* rows whose weights and intervals are computed at a time */
  CORNERS = DESCRIBE_CELLS + 1, /* places of a sample's lower cell along a side: 0..4 */
  SUM_VOTES = 8,
  SUM_START = 1 << 27,                  /* what sums start from that rounding may take down by 2 a sample */
  SUM_CELL = DESCRIBE_BINS * SUM_VOTES, /* sums of one corner */
  SUM_COUNT = CORNERS * CORNERS * SUM_CELL,
  COLUMNS_MAX = 2 * WINDOW_RADIUS_MAX + 1 + 16
};

/* A row's interval is exact but for roundings of its ends, well below this many samples. */
#define INTERVAL_MARGIN 0.25f
/* A side of the turned square closer to a row than this (in radians) does not clip it: its ends would be uncertain. */
#define CLIP_LEAST 0.01f

/* Samples that vote, and the votes' sums. */
typedef struct sample_block {
  _Alignas(64) int32_t sums[SUM_COUNT];
  _Alignas(64) vote_block votes[BLOCK_ROOM / SIMD_WIDTH];
  float row[BLOCK_ROOM], column[BLOCK_ROOM]; /* in cells, as describe_place gives them */
  float gx[BLOCK_ROOM], gy[BLOCK_ROOM],
      weight[BLOCK_ROOM]; /* gy, weight: later direction and their product with magnitude */
  int32_t place[BLOCK_ROOM];
  int32_t count;
  window_ahead ahead; /* of the next feature */
} sample_block;

/* What depends on a column alone, from column x0; a vector more than there are, which lies outside the square. */
typedef struct column_values {
  float across[COLUMNS_MAX], along[COLUMNS_MAX], weight[COLUMNS_MAX]; /* 2.5 + dx cos, 2.5 - dx sin, w(dx) */
} column_values;

/* What depends on a row alone. */
typedef struct row_values {
  float dy[BAND], weight[BAND];
  int32_t from[BAND + 1], to[BAND]; /* columns that may lie in the square: from..to; one more `from` may be read */
} row_values;

/* The part of the window within the level. */
typedef struct window_clip {
  int32_t x0, x1, y0, y1; /* inclusive */
} window_clip;

/* The level's samples that vote: the outermost do not. */
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
  const simd_f32 x = simd_set1(w->x), outside = simd_set1(1.0e9f), middle = simd_set1(2.5f);
  const int32_t n = c->x1 - c->x0 + 1;
  for (int32_t k = 0; k < n; k += SIMD_WIDTH) {
    const simd_f32 dx = simd_sub(simd_add(simd_set1((float)(c->x0 + k)), simd_lane_numbers()), x);
    simd_store(columns->across + k, simd_fma(dx, cosine, middle));
    simd_store(columns->along + k, simd_fma(dx, simd_neg(sine), middle));
    simd_store(columns->weight + k, simd_window_weight(dx, falloff));
  }
  simd_store(columns->across + n, outside);
  simd_store(columns->along + n, outside);
}

/* Two parallel sides of the square cut a row at `slope` dy + w->x -+ half. */
typedef struct side_pair {
  float slope, half;
} side_pair;

/* dx a + dy b lies within (-2.5, 2.5). */
static side_pair sides_of(float a, float b) {
  const float turned = hs_fabsf(a);
  if (turned <= CLIP_LEAST * hs_fabsf(b)) return (side_pair){0.0f, 1.0e6f};
  return (side_pair){-b / a, 2.5f / turned};
}

/* Weights and intervals of `rows` rows from y. */
static void compute_rows(const describe_window *w, const window_clip *c, float scale, int32_t y, int32_t rows,
                         row_values *out) {
  const side_pair p = sides_of(w->cosine, w->sine), q = sides_of(-w->sine, w->cosine);
  const simd_f32 x = simd_set1(w->x), falloff = simd_set1(w->falloff);
  const simd_f32 low_limit = simd_set1((float)c->x0), high_limit = simd_set1((float)c->x1);
  const simd_f32 p_half = simd_set1(p.half + INTERVAL_MARGIN), q_half = simd_set1(q.half + INTERVAL_MARGIN);
  for (int32_t k = 0; k < rows; k += SIMD_WIDTH) {
    const simd_f32 dy = simd_sub(simd_add(simd_set1((float)(y + k)), simd_lane_numbers()), simd_set1(w->y));
    const simd_f32 p_mid = simd_fma(dy, simd_set1(p.slope), x), q_mid = simd_fma(dy, simd_set1(q.slope), x);
    simd_f32 low = simd_max(simd_sub(p_mid, p_half), simd_sub(q_mid, q_half));
    simd_f32 high = simd_min(simd_add(p_mid, p_half), simd_add(q_mid, q_half));
    low = simd_min(simd_max(low, low_limit), simd_add(high_limit, simd_set1(1.0f)));
    high = simd_max(simd_min(high, high_limit), simd_sub(low_limit, simd_set1(1.0f)));
    /* The first whole column at or above low; the last at or below high. */
    simd_i32_store(out->from + k, simd_trunc_i32(simd_neg(simd_floor(simd_neg(low)))));
    simd_i32_store(out->to + k, simd_trunc_i32(simd_floor(high)));
    simd_store(out->dy + k, dy);
    simd_store(out->weight + k, simd_mul(simd_window_weight(dy, falloff), simd_set1(scale)));
  }
}

/* The block's gradients become magnitudes times weights, and directions in bins from the feature's orientation. */
static void turn_gradients(sample_block *b, simd_f32 window_direction) {
  window_ahead ahead = b->ahead;
  for (int32_t n = 0; n < b->count; n += SIMD_WIDTH) {
    simd_f32 magnitude, angle;
    window_ahead_fetch(&ahead);
    simd_polar(simd_load(b->gx + n), simd_load(b->gy + n), (float)DESCRIBE_BINS, &magnitude, &angle);
    simd_store(b->gy + n, simd_sub(window_direction, angle));
    simd_store(b->weight + n, simd_mul(magnitude, simd_load(b->weight + n)));
  }
  b->ahead = ahead;
}

/* describe_share: votes in the order column, direction */
static inline void share(simd_f32 v, simd_f32 fc, simd_f32 fd, simd_f32 fcd, simd_i32 votes[4]) {
  const simd_i32 all = simd_biased_round(v), column = simd_biased_product(v, fc);
  const simd_i32 direction = simd_biased_product(v, fd), both = simd_biased_product(v, fcd);
  votes[3] = simd_i32_sub(both, simd_i32_set1(ROUNDED_BIAS));
  votes[2] = simd_i32_sub(column, both);
  votes[1] = simd_i32_sub(direction, both);
  votes[0] = simd_i32_sub(simd_i32_sub(all, column), votes[1]);
}

/* The votes of the SIMD_WIDTH samples of the block from sample n, and each sample's place among the sums. */
static inline void compute_votes(sample_block *b, int32_t n) {
  const simd_f32 row = simd_load(b->row + n), column = simd_load(b->column + n), direction = simd_load(b->gy + n);
  const simd_f32 r = simd_floor(row), c = simd_floor(column), d = simd_floor(direction);
  const simd_f32 fr = simd_sub(row, r), fc = simd_sub(column, c), fd = simd_sub(direction, d), fcd = simd_mul(fc, fd);
  const simd_i32 corner = simd_trunc_i32(simd_add(simd_mul(r, simd_set1((float)CORNERS)), c));
  const simd_i32 bin = simd_i32_and(simd_trunc_i32(d), simd_i32_set1(DESCRIBE_BINS - 1));
  const simd_i32 cell = simd_i32_add(simd_i32_shift_left(corner, 3), bin); /* DESCRIBE_BINS is 2^3 */
  simd_i32_store(b->place + n, simd_i32_shift_left(cell, 3));              /* SUM_VOTES is 2^3 */
  const simd_f32 v = simd_load(b->weight + n);
  const simd_f32 v1 = simd_mul(v, fr), v0 = simd_sub(v, v1);
  simd_i32 votes[4];
  share(v0, fc, fd, fcd, votes);
  votes_turn(&b->votes[n / SIMD_WIDTH], 0, votes);
  share(v1, fc, fd, fcd, votes);
  votes_turn(&b->votes[n / SIMD_WIDTH], 1, votes);
}

/* Adds the votes of the block's samples and empties it. One loop for each part: their chains of dependent operations are
   long, and many turns of a short loop overlap where few of a long one do. */
static void vote(sample_block *b, float window_direction) {
  const simd_f32 zero = simd_zero();
  /* Fills the last vector with samples without weight. */
  simd_store(b->row + b->count, zero);
  simd_store(b->column + b->count, zero);
  simd_store(b->gx + b->count, zero);
  simd_store(b->gy + b->count, zero);
  simd_store(b->weight + b->count, zero);
  turn_gradients(b, simd_set1(window_direction));
  for (int32_t n = 0; n < b->count; n += SIMD_WIDTH) compute_votes(b, n);
  for (int32_t n = 0; n < b->count; n += SIMD_WIDTH) {
    const vote_block *votes = &b->votes[n / SIMD_WIDTH];
    /* Takes the samples lane by lane, because neighbouring samples often add to the same sum and would wait for each other. */
    for (int k = 0; k < 4; k++)
      for (int lane = 0; lane < VOTE_LANES; lane++) votes_add(b->sums + b->place[n + 4 * lane + k], votes, k, lane);
  }
  b->count = 0;
}

/* Appends the samples of `count` rows from y, voting whenever the block is full. One loop over the vectors of all rows: rows
   are short and of different lengths, so the end of a loop for each row would be mispredicted. */
static void gather_rows(sample_block *b, const plane_view *level, const describe_window *w, int32_t x0,
                        const column_values *columns, const row_values *rows, int32_t y, int32_t count) {
  const simd_f32 cosine = simd_set1(w->cosine), sine = simd_set1(w->sine);
  const simd_f32 zero = simd_zero(), five = simd_set1(5.0f);
  const float *line = level->data + (size_t)y * level->stride;
  int32_t x = rows->from[0], n = b->count;
  for (int32_t i = 0; i < count;) {
    const simd_f32 dy = simd_set1(rows->dy[i]);
    const float *at = line + x, *above = at - level->stride, *below = at + level->stride;
    const float *across = columns->across + (x - x0), *along = columns->along + (x - x0),
                *weights = columns->weight + (x - x0);
    const simd_f32 column = simd_fma(dy, sine, simd_load(across));
    const simd_f32 row = simd_fma(dy, cosine, simd_load(along));
    const simd_mask inside = simd_mask_and(simd_mask_and(simd_gt(row, zero), simd_lt(row, five)),
                                           simd_mask_and(simd_gt(column, zero), simd_lt(column, five)));
    const simd_f32 weight = simd_mul(simd_load(weights), simd_set1(rows->weight[i]));
    simd_store(b->row + n, simd_select(inside, row, zero));
    simd_store(b->column + n, simd_select(inside, column, zero));
    simd_store(b->gx + n, simd_sub(simd_load(at + 1), simd_load(at - 1)));
    simd_store(b->gy + n, simd_sub(simd_load(below), simd_load(above)));
    simd_store(b->weight + n, simd_select(inside, weight, zero));
    /* Up to the last lane inside; lanes before the first have no weight. */
    n += 31 - __builtin_clz((simd_bits(inside) << 1) | 1u);
    x += SIMD_WIDTH;
    const bool ended = x > rows->to[i];
    i += ended;
    line += ended ? level->stride : 0;
    x = ended ? rows->from[i] : x;
    if (n <= BLOCK) continue;
    b->count = n;
    vote(b, w->direction);
    n = 0;
  }
  b->count = n;
}

/* All sums 0, but for SUM_START in those that rounding may leave below 0. */
static void clear_sums(int32_t *sums) {
  static const int32_t start[SUM_VOTES] = {SUM_START, 0, 0, 0, SUM_START, 0, 0, 0};
  for (int32_t i = 0; i < SUM_COUNT; i += SUM_VOTES) memcpy(sums + i, start, sizeof start);
}

/* The 128 bins. Votes of directions d and d + 1 lie beside each other and are added as one 64-bit number: no sum falls
   below 0 or reaches 2^32, so nothing is carried over. */
static void fold_sums(const int32_t *sums, int32_t bins[DESCRIBE_LENGTH]) {
  for (int32_t cell = 0; cell < DESCRIBE_CELLS * DESCRIBE_CELLS; cell++) {
    const int32_t row = cell / DESCRIBE_CELLS, column = cell % DESCRIBE_CELLS;
    uint64_t pairs[DESCRIBE_BINS] = {0};
    for (int32_t corner = 0; corner < 4; corner++) {
      const int32_t r = row + 1 - corner / 2, c = column + 1 - corner % 2;
      const int32_t *from = sums + (r * CORNERS + c) * SUM_CELL + 2 * corner;
      for (int32_t d = 0; d < DESCRIBE_BINS; d++) {
        uint64_t pair;
        memcpy(&pair, from + d * SUM_VOTES, sizeof pair);
        pairs[d] += pair;
      }
    }
    for (int32_t d = 0; d < DESCRIBE_BINS; d++) {
      const uint32_t here = (uint32_t)pairs[d],
                     before = (uint32_t)(pairs[(d + DESCRIBE_BINS - 1) % DESCRIBE_BINS] >> 32);
      const int32_t sum = (int32_t)(here - 2u * SUM_START + before);
      bins[cell * DESCRIBE_BINS + d] = sum > 0 ? sum : 0;
    }
  }
}

/* The bins of one feature. Gradients are taken at twice their length and weights at half: for the polar form scales
   exactly, except below 1e-30, where a vote rounds to nothing. */
static void compute_bins(const plane_view *level, const describe_window *w, float scale, window_ahead ahead,
                         int32_t bins[DESCRIBE_LENGTH]) {
  sample_block block;
  column_values columns;
  row_values rows;
  const window_clip clip = clip_window(level, w);
  clear_sums(block.sums);
  block.count = 0;
  block.ahead = ahead;
  if (clip.x0 <= clip.x1) {
    compute_columns(w, &clip, &columns);
    for (int32_t y = clip.y0; y <= clip.y1; y += BAND) {
      const int32_t n = clip.y1 - y + 1 < BAND ? clip.y1 - y + 1 : BAND;
      compute_rows(w, &clip, 0.5f * scale, y, n, &rows);
      gather_rows(&block, level, w, clip.x0, &columns, &rows, y, n);
    }
  }
  vote(&block, w->direction);
  fold_sums(block.sums, bins);
}

static uint64_t sum_of_squares(const int32_t *bins) {
  uint64_t sum = 0;
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) sum += (uint64_t)(uint32_t)bins[i] * (uint32_t)bins[i];
  return sum;
}

/* describe_byte of a vector */
static inline simd_i32 bytes_of(simd_f32 value, author_rule rule) {
  const simd_f32 scaled = simd_mul(simd_set1(512.0f), value);
  const simd_i32 b = rule == RULE_OPENCV ? simd_round_i32(scaled) : simd_trunc_i32(simd_add(scaled, simd_set1(0.5f)));
  const simd_i32 most = simd_i32_set1(255);
  return simd_i32_select(simd_i32_gt(b, most), most, b);
}

/* The values of unit norm, or bytes as floats. */
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

/* Clips at 0.2 of the norm, normalises, and writes feature n of the output. */
static void write_descriptor(int32_t bins[DESCRIBE_LENGTH], const describe_args *args, uint32_t n) {
  const sift_params *p = &args->params;
  const int32_t clip = describe_clip(sum_of_squares(bins));
  const bool bytes = !p->descriptor_float || p->descriptor_rule == RULE_OPENCV;
  float values[DESCRIBE_LENGTH], turned[DESCRIBE_LENGTH];
  const float *from = values;
  for (int32_t i = 0; i < DESCRIBE_LENGTH; i++) bins[i] = bins[i] < clip ? bins[i] : clip;
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

/* The window of the first feature after n of another keypoint. */
static window_ahead next_window(const describe_args *args, uint32_t n, uint32_t end) {
  const keypoint_list *k = &args->keypoints;
  const uint32_t *keypoint = args->features.keypoint;
  uint32_t next = n + 1;
  while (next < end && keypoint[next] == keypoint[n]) next++;
  if (next >= end) return (window_ahead){.rows = 0};
  const uint32_t i = keypoint[next];
  const octave_view *o = &args->octaves[k->octave[i] - args->first_octave];
  const plane_view level = octave_level(o, k->level[i]);
  const octave_keypoint at = keypoint_in_octave(k, i, args->params.grid_shift);
  return window_ahead_of(&level, (int32_t)at.x, (int32_t)at.y, describe_radius(at.sigma));
}

static void describe_feature(const describe_args *args, uint32_t n, uint32_t end) {
  const keypoint_list *k = &args->keypoints;
  const uint32_t i = args->features.keypoint[n];
  const octave_view *o = &args->octaves[k->octave[i] - args->first_octave];
  const plane_view level = octave_level(o, k->level[i]);
  const octave_keypoint at = keypoint_in_octave(k, i, args->params.grid_shift);
  const describe_window w =
      describe_window_of(at.x, at.y, at.sigma, args->features.orientation[n], args->params.descriptor_rule);
  int32_t bins[DESCRIBE_LENGTH];
  assert(w.radius <= WINDOW_RADIUS_MAX);
  compute_bins(&level, &w, args->scales->describe[w.radius], next_window(args, n, end), bins);
  write_descriptor(bins, args, n);
}

typedef struct describe_job {
  const describe_args *args;
  uint32_t end;
} describe_job;

static void describe_chunk(void *argument, int32_t chunk, int32_t worker) {
  const describe_job *job = argument;
  const uint32_t first = job->args->first_feature + (uint32_t)chunk * CHUNK;
  const uint32_t end = job->end - first < CHUNK ? job->end : first + CHUNK;
  (void)worker;
  for (uint32_t n = first; n < end; n++) describe_feature(job->args, n, job->end);
}

stage_status SIMD_NAME(describe)(stage_queue *queue, const describe_args *args) {
  const feature_list *f = &args->features;
  describe_job job = {.args = args, .end = *f->count < f->capacity ? *f->count : f->capacity};
  if (job.end <= args->first_feature) return STAGE_OK;
  queue_run(queue, (int32_t)((job.end - args->first_feature + CHUNK - 1) / CHUNK), describe_chunk, &job);
  return STAGE_OK;
}
