/*
 * The extremum search of a strip of an octave: extrema, their refinement, and 3 x 3 samples of level S+2 on demand.
 * Included by *_simd.c only.
 *
 * Level S+2 is computed from level S+1 by the operations of the level step in their order. For a patch of 3 x 3
 * samples, three samples of each row that the filter along y needs are filtered along x, four rows at a time; then
 * these are filtered along y. The fourth lane of a vector is unused. A patch that needs 29 rows of 27 taps costs as
 * much as some 130 samples of the level step.
 */
#ifndef HARTSIFT_CPU_SIMD_SEARCH_STRIP_SIMD_H
#define HARTSIFT_CPU_SIMD_SEARCH_STRIP_SIMD_H

#include "cpu/schedule/fused_pass.h"
#include "cpu/simd/simd.h"
#include "stages/pyramid.h"

enum {
  PATCH_SIDE = 3,
  PATCH_SAMPLES = PATCH_SIDE * PATCH_SIDE,
  PATCH_ROWS_MAX = 2 * FILTER_RADIUS_MAX + PATCH_SIDE,
  PATCH_LINE_FLOATS = 2 * FILTER_RADIUS_MAX + QUAD_WIDTH
};

/* The step that makes level S+2 from level S+1. */
typedef struct top_step {
  level_rows below;
  int32_t width, height; /* size of the plane */
  const gaussian_filter *filter;
  border_mode border;
} top_step;

static inline int32_t index_within(int32_t i, int32_t n, border_mode border) {
  return i >= 0 && i < n ? i : border_index(i, n, border);
}

/* Filters samples x - 1, x, x + 1 of four lines along x. at[k]: address of sample x - 1 of line k. */
static inline void filter_four_lines(const gaussian_filter *f, const float *const at[4], float (*out)[QUAD_WIDTH]) {
  simd_quad c = quad_set1(f->taps[0]), sums[4];
  for (int k = 0; k < 4; k++) sums[k] = quad_mul(c, quad_load(at[k]));
  for (int32_t j = 1; j <= f->radius; j++) {
    c = quad_set1(f->taps[j]);
    for (int k = 0; k < 4; k++) sums[k] = quad_fma(c, quad_add(quad_load(at[k] - j), quad_load(at[k] + j)), sums[k]);
  }
  for (int k = 0; k < 4; k++) quad_store(out[k], sums[k]);
}

/* Computes row `row` of the patch from the lines filtered along x. */
static inline void filter_patch_row(const gaussian_filter *f, const float (*lines)[QUAD_WIDTH], float *out) {
  simd_quad sum = quad_mul(quad_set1(f->taps[0]), quad_load(lines[0]));
  for (int32_t j = 1; j <= f->radius; j++)
    sum = quad_fma(quad_set1(f->taps[j]), quad_add(quad_load(lines[-j]), quad_load(lines[j])), sum);
  float samples[QUAD_WIDTH];
  quad_store(samples, sum);
  memcpy(out, samples, sizeof(float) * PATCH_SIDE);
}

/* Returns a pointer to sample x - 1 of a row for the patch. The row is extended beyond the plane's sides. */
static inline const float *patch_line(const top_step *t, int32_t row, int32_t x, float *copy) {
  const int32_t radius = t->filter->radius, first = x - 1 - radius;
  const float *line = level_at(&t->below, t->below.first, row);
  for (int32_t i = 0; i < 2 * radius + PATCH_SIDE; i++)
    copy[i] = line[index_within(first + i, t->width, t->border) - t->below.first];
  copy[2 * radius + PATCH_SIDE] = 0.0f;
  return copy + radius;
}

/* Computes the samples around (x, y), row by row. (x, y) is not on the edge of the plane. */
static inline void top_patch(const top_step *t, int32_t x, int32_t y, float patch[PATCH_SAMPLES]) {
  const int32_t radius = t->filter->radius, rows = 2 * radius + PATCH_SIDE, first = y - 1 - radius;
  const bool inside = x - 1 - radius >= 0 && x + 2 + radius < t->width;
  float lines[PATCH_ROWS_MAX + 3][QUAD_WIDTH], copies[4][PATCH_LINE_FLOATS];
  for (int32_t row = 0; row < rows; row += 4) {
    const float *at[4];
    for (int k = 0; k < 4; k++) {
      const int32_t i = first + (row + k < rows ? row + k : rows - 1);
      const int32_t line = index_within(i, t->height, t->border);
      at[k] = inside ? level_at(&t->below, x - 1, line) : patch_line(t, line, x, copies[k]);
    }
    filter_four_lines(t->filter, at, lines + row);
  }
  for (int32_t row = 0; row < PATCH_SIDE; row++)
    filter_patch_row(t->filter, (const float(*)[QUAD_WIDTH])(lines + radius + row), patch + PATCH_SIDE * row);
}

/* The search of a strip of columns and the refinement of its candidates, for levels in planes (detect_simd.c) and in
 * rings (fused_pass_simd.c). Included by these only.
 *
 * The search goes down the strip and keeps the differences of Gaussians of three rows of all levels; each difference is
 * computed once. It skips blocks of columns without any |D| above the threshold. In the other blocks it finds the
 * maximum and minimum of each column's nine differences, then of three columns by joining neighbouring vectors, so that
 * no branch depends on a sample before a candidate is found. A candidate waits until the search has advanced so far
 * that all rows of level S+1 needed for level S+2 around it (see above) are in a cache, then it is followed to its
 * keypoint. So neither a map of the candidates nor level S+2 is stored. */

enum {
  ROWS_AHEAD = 2, /* number of rows between the searched row and the prefetched row */
  MARGIN = 16,    /* number of floats before a row of differences, so that its samples begin on a cache line */
  ROW = PASS_STRIP + 2 * MARGIN,   /* number of floats in a row for the widest strip */
  BLOCK = 64,                      /* number of columns that are skipped together */
  DOG_LEVELS_MAX = SCALES_MAX + 1, /* number of DoG levels without the last */
  WAITING_MAX = 1024,
  FOUND_MAX = 32
};

_Static_assert((int)PASS_STRIP % (int)BLOCK == 0 && (int)MARGIN >= SIMD_WIDTH, "blocks of a strip");

/* Differences of three rows: values[y % 3][level]. Column x0 of the strip is at index MARGIN. */
typedef struct dog_rows {
  _Alignas(64) float values[3][DOG_LEVELS_MAX][ROW];
  /* whether some difference in a block of columns may be above the threshold */
  bool above[3][DOG_LEVELS_MAX][PASS_STRIP / BLOCK];
} dog_rows;

/* A sample that waits for a decision: compared with its own level and the level below, it is an extremum. Below level S
 * it has been compared with the level above too. */
typedef escaped_candidate waiting_sample;

/* State of a strip's search. */
typedef struct detect_strip {
  const detect_args *args;
  const octave_view *octave;
  level_rows levels[SCALES_MAX + 2]; /* Gaussian levels 0..S+1 */
  bool in_rings;                     /* true: levels are in rings, which hold only some rows around the search */
  bool overrun;                      /* whether samples were dropped because too many were waiting; only with rings */
  int32_t octave_index;
  keypoint_records *records;
  const plane_region *follow; /* region in which candidates may be followed; null: everywhere */
  escaped_candidate *escaped; /* receives candidates that leave `follow` */
  uint32_t escaped_capacity;
  atomic_uint *escaped_count;
  /* Null, or a function for the escaped candidates of a fused pass, which recomputes the samples that a fit reads and
     the planes lack. owner: its first argument */
  void (*make_about)(const void *owner, const waiting_sample *at);
  const void *owner;
  int32_t x0, x1, y0, y1;
  int32_t from, to; /* range of columns that may be candidates */
  simd_f32 threshold;
  top_step top;
  int32_t patch_x, patch_y; /* centre of the latest patch; -1: none */
  float patch[PATCH_SAMPLES];
  uint32_t count; /* number of extrema */
  /* index of the first waiting sample in the ring buffer, and number of waiting samples */
  int32_t first_waiting, waiting;
  waiting_sample samples[WAITING_MAX];
  uint32_t found_count;
  keypoint_record found[FOUND_MAX];
} detect_strip;

/* Begins a strip. Sets the padding beyond its columns to 0: it is loaded but never used. */
static inline void begin_rows(const detect_strip *s, dog_rows *d) {
  const int32_t columns = s->x1 - s->x0;
  for (int32_t i = 0; i < 3 * DOG_LEVELS_MAX; i++) {
    float *row = d->values[i / DOG_LEVELS_MAX][i % DOG_LEVELS_MAX];
    memset(row, 0, sizeof(float) * MARGIN);
    memset(row + MARGIN + columns, 0, sizeof(float) * (size_t)(ROW - MARGIN - columns));
  }
}

/* Computes the differences of columns [x, end) in whole vectors; returns whether one may exceed the threshold. */
static inline bool take_block(const float *lower, const float *upper, int32_t x, int32_t end, simd_f32 threshold,
                              float *out) {
  simd_f32 most = simd_zero();
  for (; x < end; x += SIMD_WIDTH) {
    const simd_f32 d = simd_sub(simd_load(upper + x), simd_load(lower + x));
    simd_store(out + x, d);
    most = simd_max(most, simd_abs(d));
  }
  return simd_any(simd_gt(most, threshold));
}

/* Computes row y of the differences of all levels but the last. One more sample on each side of the strip is computed;
 * outside the plane it is 0, which is never a candidate's value. */
static inline void take_differences(const detect_strip *s, dog_rows *d, int32_t y) {
  const octave_view *o = s->octave;
  const int32_t n = s->x1 - s->x0, levels = s->args->params.scales + 1, whole = n - n % BLOCK;
  const float *row[SCALES_MAX + 2];
  for (int32_t level = 0; level <= levels; level++) row[level] = level_at(&s->levels[level], s->x0, y);
  for (int32_t x = 0; x < whole; x += BLOCK)
    for (int32_t level = 0; level < levels; level++)
      d->above[y % 3][level][x / BLOCK] =
          take_block(row[level], row[level + 1], x, x + BLOCK, s->threshold, d->values[y % 3][level] + MARGIN);
  for (int32_t level = 0; level < levels; level++) {
    const float *lower = row[level], *upper = row[level + 1];
    float *out = d->values[y % 3][level] + MARGIN;
    if (whole < n) d->above[y % 3][level][whole / BLOCK] = true;
    for (int32_t i = whole; i < n; i++) out[i] = upper[i] - lower[i];
    out[-1] = s->x0 > 0 ? upper[-1] - lower[-1] : 0.0f;
    out[n] = s->x1 < o->width ? upper[n] - lower[n] : 0.0f;
  }
}

/* Maximum and minimum of a set of differences, for each lane. */
typedef struct extremes {
  simd_f32 most, least;
} extremes;

static inline extremes and_also(extremes e, simd_f32 v) {
  return (extremes){simd_max(e.most, v), simd_min(e.least, v)};
}

/* Computes the extremes of all neighbours of the centres in the columns from x on. rows[r]: column 0 of row r of the
 * level below; the next level follows after ROW floats. The centre is in row 1 of the middle level. top: the level
 * above is not compared. */
SIMD_FOR_CONSTANTS extremes about_centre(const float *const rows[3], int32_t x, int top) {
  const simd_f32 above = simd_load(rows[0] + ROW + x);
  extremes e = and_also((extremes){above, above}, simd_load(rows[2] + ROW + x));
  for (int level = 0; level < (top ? 1 : 3); level += 2)
    for (int row = 0; row < 3; row++) e = and_also(e, simd_load(rows[row] + level * ROW + x));
  return e;
}

/* Returns a bit for each centre that exceeds the threshold and its 26 neighbours (17 without the level above). */
static inline uint32_t extremum_bits(simd_f32 centre, extremes neighbours, simd_f32 threshold, int ties) {
  const simd_f32 below = simd_neg(threshold);
  if (ties)
    return (simd_bits(simd_ge(centre, neighbours.most)) & simd_bits(simd_gt(centre, threshold))) |
           (simd_bits(simd_le(centre, neighbours.least)) & simd_bits(simd_lt(centre, below)));
  return simd_bits(simd_gt(centre, simd_max(neighbours.most, threshold))) |
         simd_bits(simd_lt(centre, simd_min(neighbours.least, below)));
}

/* Returns the bits of a word that begins at column x whose columns may be candidates. */
static inline uint32_t allowed_bits(const detect_strip *s, int32_t x) {
  uint32_t bits = UINT32_MAX;
  if (s->from > x) bits = s->from - x < 32 ? bits << (s->from - x) : 0;
  if (s->to < x + 32) bits = s->to > x ? bits & (UINT32_MAX >> (32 - (s->to - x))) : 0;
  return bits;
}

/* Prefetches columns of the Gaussian levels [first, end) in a later row. The comparisons read only differences,
 * which are in the L1 cache, so the two overlap. */
static inline void ask_for(const float *const *prefetch, int32_t x, int32_t columns, int32_t first, int32_t end) {
  for (int32_t level = first; level < end; level++)
    for (int32_t i = 0; i < columns; i += 16) __builtin_prefetch(prefetch[level] + x + i);
}

/* ------------------------------------------------- from a sample to its keypoint */

/* Returns the samples of level S+2 around (x, y). */
static inline const float *patch_at(detect_strip *s, int32_t x, int32_t y) {
  if (s->patch_x != x || s->patch_y != y) top_patch(&s->top, x, y, s->patch);
  s->patch_x = x;
  s->patch_y = y;
  return s->patch;
}

/* Whether a sample of DoG level S, already an extremum among its 17 other neighbours, also exceeds its nine neighbours
 * in level S+1. */
static inline bool is_beyond_top(detect_strip *s, int32_t x, int32_t y) {
  const level_rows *below = &s->top.below, *lower = &s->levels[s->args->params.scales];
  const float value = *level_at(below, x, y) - *level_at(lower, x, y), centre = hs_fabsf(value);
  const float *patch = patch_at(s, x, y);
  const float *rows[PATCH_SIDE];
  for (int32_t row = 0; row < PATCH_SIDE; row++) rows[row] = level_at(below, x - 1, y - 1 + row);
  for (int32_t i = 0; i < PATCH_SAMPLES; i++) {
    const float d = patch[i] - rows[i / PATCH_SIDE][i % PATCH_SIDE];
    const float neighbour = value > 0.0f ? d : -d;
    if (!(centre > neighbour || (s->args->params.extremum_ties && centre == neighbour))) return false;
  }
  return true;
}

/* Copies of the four levels around a sample, from which D at the 27 samples around it is read. Copies are needed,
 * because the last level may not be stored, and the others may be in rings. */
typedef struct levels_about {
  octave_view view;
  int32_t level, x, y; /* position of the centre sample in the copies */
  float copies[4 * PATCH_SAMPLES];
} levels_about;

static inline void look_at(detect_strip *s, const waiting_sample *at, levels_about *l) {
  const int32_t first = at->level - 1, count = at->level < s->args->params.scales ? 4 : 3;
  for (int32_t i = 0; i < count * PATCH_SIDE; i++)
    memcpy(l->copies + PATCH_SIDE * i,
           level_at(&s->levels[first + i / PATCH_SIDE], at->x - 1, at->y - 1 + i % PATCH_SIDE),
           sizeof(float) * PATCH_SIDE);
  if (count == 3) memcpy(l->copies + 3 * PATCH_SAMPLES, patch_at(s, at->x, at->y), sizeof s->patch);
  l->view = (octave_view){l->copies, PATCH_SAMPLES, PATCH_SIDE, PATCH_SIDE, PATCH_SIDE, s->octave->octave};
  l->level = l->x = l->y = 1;
}

static inline void hand_over(detect_strip *s) {
  keypoint_records_add(s->records, s->found, s->found_count);
  s->found_count = 0;
}

static inline void add_keypoint(detect_strip *s, const waiting_sample *at, const levels_about *l, quadratic *q) {
  const sift_params *p = &s->args->params;
  const float response = refine_response(q);
  if (p->refine_rule == RULE_LOWE) refine_again(&l->view, l->level, l->x, l->y, q);
  const located found = located_at(p, s->octave->octave, q, response, at->level, at->x, at->y);
  if (!position_kept(&s->args->filter, found.x, found.y)) return;
  s->found[s->found_count++] = (keypoint_record){found, s->octave_index, at->level, at->x, at->y};
  if (s->found_count == FOUND_MAX) hand_over(s);
}

static inline void add_escaped(detect_strip *s, const waiting_sample *at) {
  const uint32_t n = atomic_fetch_add_explicit(s->escaped_count, 1, memory_order_relaxed);
  if (n < s->escaped_capacity) s->escaped[n] = *at;
}

/* Follows a candidate to its keypoint, if any, like refine_follow, but keeps the last fit. */
static inline void follow_on(detect_strip *s, waiting_sample at) {
  const sift_params *p = &s->args->params;
  levels_about about;
  quadratic q;
  for (; at.step < REFINE_STEPS; at.step++) {
    if (s->follow && !region_has(s->follow, at.x, at.y)) {
      add_escaped(s, &at);
      return;
    }
    if (s->make_about) s->make_about(s->owner, &at);
    look_at(s, &at, &about);
    if (!quadratic_fit(&about.view, about.level, about.x, about.y, p->refine_rule, &q)) return;
    const refine_step outcome = refine_judge(s->octave, p, &q, at.step, &at.level, &at.x, &at.y);
    if (outcome == REFINE_SETTLED) add_keypoint(s, &at, &about, &q);
    if (outcome != REFINE_MOVED) return;
  }
}

/* Follows a waiting sample, if it is a candidate. */
static inline void follow(detect_strip *s, waiting_sample at) {
  if (at.level == s->args->params.scales && !is_beyond_top(s, at.x, at.y)) return;
  s->count++;
  follow_on(s, at);
}

/* Follows the candidates in rows up to `last`. */
static inline void follow_until(detect_strip *s, int32_t last) {
  while (s->waiting > 0 && s->samples[s->first_waiting].y <= last) {
    const waiting_sample at = s->samples[s->first_waiting];
    s->first_waiting = (s->first_waiting + 1) % WAITING_MAX;
    s->waiting--;
    follow(s, at);
  }
}

/* Prefetches rows of level S+1 that a patch needs and that the chunk has not read yet. */
static inline void ask_for_patch(const detect_strip *s, int32_t x, int32_t y) {
  const top_step *t = &s->top;
  const int32_t halo = t->filter->radius + 1;
  const int32_t left = x - halo > 0 ? x - halo : 0, right = x + halo < t->width ? x + halo : t->width - 1;
  const int32_t top = y - halo > 0 ? y - halo : 0, end = y + halo < t->height ? y + halo : t->height - 1;
  for (int32_t row = top; row <= end; row++) {
    if (row >= s->y0 - 1 && row <= s->y1) row = s->y1 + 1;
    if (row > end) return;
    for (int32_t i = left; i < right; i += 16) __builtin_prefetch(level_at(&t->below, i, row));
    __builtin_prefetch(level_at(&t->below, right, row));
  }
}

static inline void wait_in_line(detect_strip *s, int32_t level, int32_t x, int32_t y) {
  if (s->waiting == WAITING_MAX) {
    if (s->in_rings) {
      s->overrun = true;
      return;
    }
    follow_until(s, s->samples[s->first_waiting].y);
  }
  s->samples[(s->first_waiting + s->waiting) % WAITING_MAX] = (waiting_sample){level, x, y, 0};
  s->waiting++;
  const int32_t halo = s->top.filter->radius + 1;
  if (!s->in_rings && level == s->args->params.scales && (y - halo < s->y0 - 1 || y + halo > s->y1))
    ask_for_patch(s, x, y);
}

/* ------------------------------------------------- the search */

/* Inputs of the search of one row of one level. */
typedef struct search_row {
  const float *rows[3];         /* rows in the form that about_centre expects */
  const float *const *prefetch; /* [level]: a later row, to prefetch */
  int32_t first, end;           /* range of levels that this search prefetches */
  int32_t level, y;
} search_row;

/* Searches columns [x, end) of the strip. The side neighbours of a vector's columns are in the adjacent vectors. */
SIMD_FOR_CONSTANTS void search_columns(detect_strip *s, const search_row *r, int32_t x, int32_t end, int ties,
                                       int top) {
  const float *const rows[3] = {r->rows[0], r->rows[1], r->rows[2]};
  const float *centres = rows[1] + ROW;
  const extremes left = about_centre(rows, x - SIMD_WIDTH, top);
  extremes before = and_also(left, simd_load(centres + x - SIMD_WIDTH)), about = about_centre(rows, x, top);
  simd_f32 centre = simd_load(centres + x);
  extremes here = and_also(about, centre);
  for (; x < end; x += SIMD_WIDTH) {
    const extremes next = about_centre(rows, x + SIMD_WIDTH, top);
    const simd_f32 next_centre = simd_load(centres + x + SIMD_WIDTH);
    const extremes after = and_also(next, next_centre);
    if (x % 16 == 0) ask_for(r->prefetch, x, 16, r->first, r->end);
    about.most = simd_max(about.most, simd_max(simd_before(before.most, here.most), simd_after(here.most, after.most)));
    about.least =
        simd_min(about.least, simd_min(simd_before(before.least, here.least), simd_after(here.least, after.least)));
    uint32_t bits = extremum_bits(centre, about, s->threshold, ties);
    if (bits != 0) bits &= allowed_bits(s, s->x0 + x);
    for (; bits != 0; bits &= bits - 1) wait_in_line(s, r->level, s->x0 + x + __builtin_ctz(bits), r->y);
    before = here;
    here = after;
    about = next;
    centre = next_centre;
  }
}

/* Searches one row of one level; adjacent blocks are searched in one call. */
SIMD_FOR_CONSTANTS void search_blocks(detect_strip *s, const search_row *r, const bool *above, int ties, int top) {
  const int32_t n = s->x1 - s->x0;
  for (int32_t x = 0; x < n;) {
    const int32_t first = x;
    while (x < n && above[x / BLOCK]) x += BLOCK;
    if (x > first) search_columns(s, r, first, x < n ? x : n, ties, top);
    for (; x < n && !above[x / BLOCK]; x += BLOCK) ask_for(r->prefetch, x, BLOCK, r->first, r->end);
  }
}

/* Searches one row of one level. For level S the level above is not compared. */
static inline void search_level(detect_strip *s, const dog_rows *d, const float *const *prefetch, int32_t level,
                                int32_t y) {
  const int32_t scales = s->args->params.scales;
  const bool ties = s->args->params.extremum_ties;
  search_row r = {.prefetch = prefetch,
                  .first = (level - 1) * (scales + 2) / scales,
                  .end = level * (scales + 2) / scales,
                  .level = level,
                  .y = y};
  for (int32_t i = 0; i < 3; i++) r.rows[i] = d->values[(y + i + 2) % 3][level - 1] + MARGIN;
  const bool *above = d->above[y % 3][level];
  if (level < scales)
    ties ? search_blocks(s, &r, above, 1, 0) : search_blocks(s, &r, above, 0, 0);
  else
    ties ? search_blocks(s, &r, above, 1, 1) : search_blocks(s, &r, above, 0, 1);
}

/* Searches one row of all levels. */
static inline void search_levels(detect_strip *s, const dog_rows *d, int32_t y) {
  const int32_t scales = s->args->params.scales, next = y + ROWS_AHEAD < s->octave->height ? y + ROWS_AHEAD : y;
  const float *prefetch[SCALES_MAX + 2];
  for (int32_t level = 0; level <= scales + 1; level++) prefetch[level] = level_at(&s->levels[level], s->x0, next);
  for (int32_t level = 1; level <= scales; level++) search_level(s, d, prefetch, level, y);
}

/* Sets up a strip of an octave, before any search. */
static inline void begin_strip(detect_strip *s, detect_job *job, int32_t octave_index) {
  const detect_args *args = &job->args;
  s->octave_index = octave_index;
  s->args = args;
  s->octave = &args->octaves[octave_index];
  s->records = &job->records;
  s->follow = args->part ? &args->part->follow : NULL;
  s->escaped = args->part ? args->part->escaped : NULL;
  s->escaped_capacity = args->part ? args->part->escaped_capacity : 0;
  s->escaped_count = &job->escaped;
  s->make_about = NULL;
  s->threshold = simd_set1(args->params.candidate_above > 0.0f ? args->params.candidate_above : 0.0f);
  for (int32_t level = 0; level <= args->params.scales + 1; level++)
    s->levels[level] =
        (level_rows){.data = s->octave->levels + (size_t)level * s->octave->level_floats, .stride = s->octave->stride};
  s->in_rings = s->overrun = false;
  s->top = (top_step){s->levels[args->params.scales + 1], s->octave->width, s->octave->height, args->top_filter,
                      args->border};
  s->patch_x = s->patch_y = -1;
  s->count = s->found_count = 0;
  s->first_waiting = s->waiting = 0;
}

#endif
