/*
 * Detection with vectors.
 *
 * A chunk is a strip of columns of a band of rows. Going down it, the differences of Gaussians of three rows of all
 * levels are kept (each computed once), and a vector of centres is dropped as early as possible: most have no |D| above
 * the threshold, most others no lane that passes its six nearest neighbours. A centre's sign is applied to its
 * neighbours, so one comparison serves maxima and minima. What passes waits until the search is so many rows further
 * that level S+1 is in a cache as far as level S+2 about it is made from (top_patch_simd.h), then it is followed to its
 * keypoint. So no map of the candidates is kept, and level S+2 nowhere.
 */
#include "cpu/simd.h"
#include "cpu/stages_simd.h"
#include "cpu/top_patch_simd.h"

enum {
  ROWS_AHEAD = 2, /* how far ahead rows are asked for */
  MARGIN = 16,    /* floats beside a row of differences, so that its samples begin on a cache line */
  ROW = DETECT_STRIP + 2 * MARGIN,
  DOG_LEVELS_MAX = SCALES_MAX + 1, /* all but the last */
  WAITING_MAX = 512,
  FOUND_MAX = 32
};

/* Differences of three rows: rows[y % 3][level], from column x0. */
typedef struct dog_rows {
  float values[3][DOG_LEVELS_MAX][ROW];
} dog_rows;

/* A sample that its own level and the one below do not rule out; at levels below S, an extremum. */
typedef detect_stray waiting_sample;

/* A chunk's work. */
typedef struct detect_strip {
  const detect_args *args;
  const octave_view *octave;
  int32_t octave_index;
  keypoint_records *records;
  atomic_uint *strays;
  int32_t x0, x1, y0, y1;
  int32_t from, to; /* columns that may be candidates */
  simd_f32 threshold;
  top_step top;
  int32_t patch_x, patch_y; /* of the patch that was made last; -1: none */
  float patch[PATCH_SAMPLES];
  uint32_t count;                 /* extrema */
  int32_t first_waiting, waiting; /* a ring */
  waiting_sample samples[WAITING_MAX];
  uint32_t found_count;
  keypoint_record found[FOUND_MAX];
} detect_strip;

/* Row y of every level's difference but the last, and one sample beside the strip (0 where there is none: never a candidate's). */
static void take_differences(const detect_strip *s, dog_rows *d, int32_t y) {
  const octave_view *o = s->octave;
  const int32_t n = s->x1 - s->x0, levels = s->args->params.scales + 1;
  const float *row = o->levels + (size_t)y * o->stride + (size_t)s->x0;
  float(*out)[ROW] = d->values[y % 3];
  int32_t x = 0;
  for (; x + SIMD_WIDTH <= n; x += SIMD_WIDTH) {
    const float *at = row + x;
    simd_f32 lower = simd_load(at);
    for (int32_t level = 0; level < levels; level++) {
      at += o->level_floats;
      const simd_f32 upper = simd_load(at);
      simd_store(out[level] + MARGIN + x, simd_sub(upper, lower));
      lower = upper;
    }
  }
  for (int32_t level = 0; level < levels; level++) {
    const float *lower = row + (size_t)level * o->level_floats, *upper = lower + o->level_floats;
    for (int32_t i = x; i < n; i++) out[level][MARGIN + i] = upper[i] - lower[i];
    out[level][MARGIN - 1] = s->x0 > 0 ? upper[-1] - lower[-1] : 0.0f;
    out[level][MARGIN + n] = s->x1 < o->width ? upper[n] - lower[n] : 0.0f;
  }
}

/* The largest of `most` and three neighbours in a row, their signs turned as the centre's. */
static inline simd_f32 largest_of_three(const float *at, simd_f32 sign, simd_f32 most) {
  most = simd_max(most, simd_xor(simd_load(at - 1), sign));
  most = simd_max(most, simd_xor(simd_load(at), sign));
  return simd_max(most, simd_xor(simd_load(at + 1), sign));
}

static inline uint32_t bits_above(simd_f32 centre, simd_f32 most, int ties) {
  return simd_bits(ties ? simd_ge(centre, most) : simd_gt(centre, most));
}

/* Which lanes at column x are extrema; top: as far as the level above is not asked. rows[r][l]: column 0 of row r and
   level l, the centre's being 1. */
static inline uint32_t extremum_bits(const float *rows[3][3], int32_t x, simd_f32 threshold, int ties, int top) {
  const float *at = rows[1][1] + x;
  const simd_f32 value = simd_load(at), centre = simd_abs(value);
  uint32_t bits = simd_bits(simd_gt(centre, threshold));
  if (bits == 0) return 0;
  const simd_f32 sign = simd_xor(value, centre);
  simd_f32 most = simd_xor(simd_load(at - 1), sign);
  most = simd_max(most, simd_xor(simd_load(at + 1), sign));
  most = simd_max(most, simd_xor(simd_load(rows[0][1] + x), sign));
  most = simd_max(most, simd_xor(simd_load(rows[2][1] + x), sign));
  most = simd_max(most, simd_xor(simd_load(rows[1][0] + x), sign));
  if (!top) most = simd_max(most, simd_xor(simd_load(rows[1][2] + x), sign));
  bits &= bits_above(centre, most, ties);
  if (bits == 0) return 0;
  most = largest_of_three(rows[0][1] + x, sign, most);
  most = largest_of_three(rows[2][1] + x, sign, most);
  bits &= bits_above(centre, most, ties);
  if (bits == 0) return 0;
  for (int32_t level = 0; level < (top ? 1 : 3); level += 2)
    for (int32_t row = 0; row < 3; row++) most = largest_of_three(rows[row][level] + x, sign, most);
  return bits & bits_above(centre, most, ties);
}

/* Bits of a word that starts at column x and may be candidates. */
static uint32_t allowed_bits(const detect_strip *s, int32_t x) {
  uint32_t bits = UINT32_MAX;
  if (s->from > x) bits = s->from - x < 32 ? bits << (s->from - x) : 0;
  if (s->to < x + 32) bits = s->to > x ? bits & (UINT32_MAX >> (32 - (s->to - x))) : 0;
  return bits;
}

/* Prefetches 32 columns of the Gaussian levels first..end of a later row, because comparing reads no memory and so the
   two overlap. */
static inline void ask_for(const octave_view *o, const float *row, int32_t first, int32_t end) {
  for (int32_t level = first; level < end; level++) {
    __builtin_prefetch(row + (size_t)level * o->level_floats);
    __builtin_prefetch(row + (size_t)level * o->level_floats + 16);
  }
}

/* ------------------------------------------------- from a sample to its keypoint */

/* Samples of level S+2 about (x, y). */
static const float *patch_at(detect_strip *s, int32_t x, int32_t y) {
  if (s->patch_x != x || s->patch_y != y) top_patch(&s->top, x, y, s->patch);
  s->patch_x = x;
  s->patch_y = y;
  return s->patch;
}

/* Whether a sample of DoG level S is beyond its nine neighbours in level S+1 too. */
static bool is_beyond_top(detect_strip *s, int32_t x, int32_t y) {
  const plane_view *below = &s->top.below;
  const float value = dog_at(s->octave, s->args->params.scales, x, y), centre = hs_fabsf(value);
  const float *patch = patch_at(s, x, y);
  for (int32_t i = 0; i < PATCH_SAMPLES; i++) {
    const size_t row = (size_t)(y - 1 + i / PATCH_SIDE), column = (size_t)(x - 1 + i % PATCH_SIDE);
    const float d = patch[i] - below->data[row * below->stride + column];
    const float neighbour = value > 0.0f ? d : -d;
    if (!(centre > neighbour || (s->args->params.extremum_ties && centre == neighbour))) return false;
  }
  return true;
}

/* The levels about a sample, for reading D at the 27 samples about it; at level S they are copied, because the last is
   in no plane. */
typedef struct levels_about {
  octave_view view;
  int32_t level, x, y; /* of the sample, in the view */
  float copies[4 * PATCH_SAMPLES];
} levels_about;

static void look_at(detect_strip *s, const waiting_sample *at, levels_about *l) {
  const octave_view *o = s->octave;
  const int32_t scales = s->args->params.scales;
  l->view = *o;
  l->level = at->level;
  l->x = at->x;
  l->y = at->y;
  if (at->level < scales) return;
  for (int32_t i = 0; i < 3 * PATCH_SIDE; i++) {
    const size_t level = (size_t)(scales - 1 + i / PATCH_SIDE), row = (size_t)(at->y - 1 + i % PATCH_SIDE);
    memcpy(l->copies + PATCH_SIDE * i, o->levels + level * o->level_floats + row * o->stride + (size_t)(at->x - 1),
           sizeof(float) * PATCH_SIDE);
  }
  memcpy(l->copies + 3 * PATCH_SAMPLES, patch_at(s, at->x, at->y), sizeof s->patch);
  l->view = (octave_view){l->copies, PATCH_SAMPLES, PATCH_SIDE, PATCH_SIDE, PATCH_SIDE, o->octave};
  l->level = l->x = l->y = 1;
}

static void hand_over(detect_strip *s) {
  keypoint_records_add(s->records, s->found, s->found_count);
  s->found_count = 0;
}

static void add_keypoint(detect_strip *s, const waiting_sample *at, const levels_about *l, quadratic *q) {
  const sift_params *p = &s->args->params;
  const float response = refine_response(q);
  if (p->refine_rule == RULE_LOWE) refine_again(&l->view, l->level, l->x, l->y, q);
  const located place = located_at(p, s->octave->octave, q, response, at->level, at->x, at->y);
  if (!place_kept(&s->args->filter, place.x, place.y)) return;
  s->found[s->found_count++] = (keypoint_record){place, s->octave_index, at->level, at->x, at->y};
  if (s->found_count == FOUND_MAX) hand_over(s);
}

static void add_stray(detect_strip *s, const waiting_sample *at) {
  const detect_part *part = s->args->part;
  const uint32_t n = atomic_fetch_add_explicit(s->strays, 1, memory_order_relaxed);
  if (n < part->stray_capacity) part->strays[n] = *at;
}

/* Follows a candidate to its keypoint, if it has one: refine_follow, from which the last fit is kept. */
static void follow_on(detect_strip *s, waiting_sample at) {
  const sift_params *p = &s->args->params;
  const detect_part *part = s->args->part;
  levels_about about;
  quadratic q;
  for (; at.step < REFINE_STEPS; at.step++) {
    if (part && !region_has(&part->reach, at.x, at.y)) {
      add_stray(s, &at);
      return;
    }
    look_at(s, &at, &about);
    if (!quadratic_fit(&about.view, about.level, about.x, about.y, p->refine_rule, &q)) return;
    const refine_step outcome = refine_judge(s->octave, p, &q, at.step, &at.level, &at.x, &at.y);
    if (outcome == REFINE_SETTLED) add_keypoint(s, &at, &about, &q);
    if (outcome != REFINE_MOVED) return;
  }
}

/* Follows one that has waited, if it is a candidate. */
static void follow(detect_strip *s, waiting_sample at) {
  if (at.level == s->args->params.scales && !is_beyond_top(s, at.x, at.y)) return;
  s->count++;
  follow_on(s, at);
}

/* Follows those of rows up to `last`. */
static void follow_until(detect_strip *s, int32_t last) {
  while (s->waiting > 0 && s->samples[s->first_waiting].y <= last) {
    const waiting_sample at = s->samples[s->first_waiting];
    s->first_waiting = (s->first_waiting + 1) % WAITING_MAX;
    s->waiting--;
    follow(s, at);
  }
}

/* Asks for the rows of level S+1 that a patch needs and the chunk does not come by. */
static void ask_for_patch(const detect_strip *s, int32_t x, int32_t y) {
  const plane_view *below = &s->top.below;
  const int32_t reach = s->top.filter->radius + 1;
  const int32_t left = x - reach > 0 ? x - reach : 0, right = x + reach < below->width ? x + reach : below->width - 1;
  const int32_t top = y - reach > 0 ? y - reach : 0, end = y + reach < below->height ? y + reach : below->height - 1;
  for (int32_t row = top; row <= end; row++) {
    if (row >= s->y0 - 1 && row <= s->y1) row = s->y1 + 1;
    if (row > end) return;
    const float *line = below->data + (size_t)row * below->stride;
    for (int32_t i = left; i < right; i += 16) __builtin_prefetch(line + i);
    __builtin_prefetch(line + right);
  }
}

static void wait_in_line(detect_strip *s, int32_t level, int32_t x, int32_t y) {
  if (s->waiting == WAITING_MAX) follow_until(s, s->samples[s->first_waiting].y);
  s->samples[(s->first_waiting + s->waiting) % WAITING_MAX] = (waiting_sample){level, x, y, 0};
  s->waiting++;
  const int32_t reach = s->top.filter->radius + 1;
  if (level == s->args->params.scales && (y - reach < s->y0 - 1 || y + reach > s->y1)) ask_for_patch(s, x, y);
}

/* ------------------------------------------------- the search */

/* Searches one row of one level. */
static inline void search_row(detect_strip *s, const dog_rows *d, int32_t level, int32_t y, int ties, int top) {
  const octave_view *o = s->octave;
  const int32_t scales = s->args->params.scales, ahead = y + ROWS_AHEAD < o->height ? y + ROWS_AHEAD : y;
  const float *ahead_row = o->levels + (size_t)ahead * o->stride + (size_t)s->x0;
  const int32_t first = (level - 1) * (scales + 2) / scales, last = level * (scales + 2) / scales;
  const float *rows[3][3];
  for (int32_t r = 0; r < 3; r++)
    for (int32_t l = 0; l < (top ? 2 : 3); l++) rows[r][l] = d->values[(y + r + 2) % 3][level + l - 1] + MARGIN;
  for (int32_t x = 0; x < s->x1 - s->x0; x += 32) {
    uint32_t word = 0;
    ask_for(o, ahead_row + x, first, last);
    for (int32_t i = 0; i < 32; i += SIMD_WIDTH) word |= extremum_bits(rows, x + i, s->threshold, ties, top) << i;
    if (word != 0) word &= allowed_bits(s, s->x0 + x);
    for (; word != 0; word &= word - 1) wait_in_line(s, level, s->x0 + x + __builtin_ctz(word), y);
  }
}

/* Searches one row. */
static void search_levels(detect_strip *s, const dog_rows *d, int32_t y) {
  const int32_t scales = s->args->params.scales;
  if (s->args->params.extremum_ties) {
    for (int32_t level = 1; level < scales; level++) search_row(s, d, level, y, 1, 0);
    search_row(s, d, scales, y, 1, 1);
  } else {
    for (int32_t level = 1; level < scales; level++) search_row(s, d, level, y, 0, 0);
    search_row(s, d, scales, y, 0, 1);
  }
}

/* The strip and the band of a chunk. */
static void place_strip(detect_strip *s, const detect_job *job, int32_t chunk) {
  const plane_region r = detect_region_of(job, s->octave_index, chunk);
  const int32_t border = s->args->params.border, last = s->octave->width - border;
  s->x0 = r.x0;
  s->x1 = r.x1;
  s->y0 = r.y0;
  s->y1 = r.y1;
  s->from = border;
  s->to = last < s->x1 ? last : s->x1;
}

/* A strip of an octave in which nothing has been found. */
static void begin_strip(detect_strip *s, detect_job *job, int32_t octave_index) {
  const detect_args *args = &job->args;
  s->octave_index = octave_index;
  s->args = args;
  s->octave = &args->octaves[octave_index];
  s->records = &job->records;
  s->strays = &job->strays;
  s->threshold = simd_set1(args->params.candidate_above > 0.0f ? args->params.candidate_above : 0.0f);
  s->top = (top_step){octave_level(s->octave, args->params.scales + 1), args->top_filter, args->border};
  s->patch_x = s->patch_y = -1;
  s->count = s->found_count = 0;
  s->first_waiting = s->waiting = 0;
}

static void detect_chunk(void *argument, int32_t chunk, int32_t worker) {
  detect_job *job = argument;
  (void)worker;
  detect_strip s;
  begin_strip(&s, job, detect_octave_of(job, chunk));
  place_strip(&s, job, chunk);
  dog_rows d;
  /* Lanes beyond a narrow strip are read, though never used, so they must hold numbers. */
  if (s.x1 - s.x0 < DETECT_STRIP) memset(&d, 0, sizeof d);
  for (int32_t y = s.y0, next = s.y0 - 1; y < s.y1; y++) {
    for (; next <= y + 1; next++) take_differences(&s, &d, next);
    search_levels(&s, &d, y);
    follow_until(&s, y - s.top.filter->radius);
  }
  follow_until(&s, s.y1);
  hand_over(&s);
  atomic_fetch_add_explicit(&job->count, s.count, memory_order_relaxed);
}

static void follow_seed(detect_job *job) {
  detect_strip s;
  begin_strip(&s, job, 0);
  follow_on(&s, *job->args.part->seed);
  hand_over(&s);
}

void SIMD_NAME(begin_detect)(detect_job *job, const detect_args *args) { detect_job_begin(job, args, detect_chunk); }

stage_status SIMD_NAME(detect)(stage_queue *queue, const detect_args *args) {
  detect_job job;
  SIMD_NAME(begin_detect)(&job, args);
  if (args->part && args->part->seed)
    follow_seed(&job);
  else
    queue_run(queue, job.run.chunks, job.run.task, &job);
  detect_job_end(&job);
  return STAGE_OK;
}
