/*
 * The extremum search with vectors.
 *
 * A chunk is a strip of columns of a band of rows. Going down it, the differences of Gaussians of three rows of all
 * levels are kept (each computed once), and a vector of centres is dropped as early as possible: most have no |D| above
 * the threshold, most others no lane that passes its six nearest neighbours. A centre's sign is applied to its
 * neighbours, so one comparison serves maxima and minima.
 */
#include <stdatomic.h>

#include "cpu/simd.h"
#include "cpu/stages_simd.h"
#include "cpu/threads.h"

enum {
  STRIP = 512,    /* columns; a multiple of 32, so that a word of the mask has one writer */
  BAND = 64,      /* rows */
  ROWS_AHEAD = 2, /* how far ahead rows are asked for */
  MARGIN = 16,    /* floats beside a row of differences, so that its samples begin on a cache line */
  ROW = STRIP + 2 * MARGIN,
  DOG_LEVELS_MAX = SCALES_MAX + 2
};

/* Differences of three rows: rows[y % 3][level], from column x0. */
typedef struct dog_rows {
  float values[3][DOG_LEVELS_MAX][ROW];
} dog_rows;

typedef struct extrema_job {
  const extrema_args *args;
  int32_t strips;
  atomic_uint_fast64_t count;
} extrema_job;

/* The part of a chunk's work that stays the same. */
typedef struct extrema_strip {
  const extrema_args *args;
  int32_t x0, x1;
  int32_t from, to; /* columns that may be candidates */
  simd_f32 threshold;
} extrema_strip;

/* Row y of every level's difference, and one sample beside the strip (0 where there is none: never a candidate's). */
static void take_differences(const extrema_strip *s, dog_rows *d, int32_t y) {
  const octave_view *o = &s->args->octave;
  const int32_t n = s->x1 - s->x0, levels = s->args->params.scales + 2;
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

/* Which lanes at column x are extrema. rows[r][l]: column 0 of row r and level l, the centre's being 1. */
static inline uint32_t extremum_bits(const float *rows[3][3], int32_t x, simd_f32 threshold, int ties) {
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
  most = simd_max(most, simd_xor(simd_load(rows[1][2] + x), sign));
  bits &= bits_above(centre, most, ties);
  if (bits == 0) return 0;
  most = largest_of_three(rows[0][1] + x, sign, most);
  most = largest_of_three(rows[2][1] + x, sign, most);
  bits &= bits_above(centre, most, ties);
  if (bits == 0) return 0;
  for (int32_t level = 0; level < 3; level += 2)
    for (int32_t row = 0; row < 3; row++) most = largest_of_three(rows[row][level] + x, sign, most);
  return bits & bits_above(centre, most, ties);
}

/* Bits of a word that starts at column x and may be candidates. */
static uint32_t allowed_bits(const extrema_strip *s, int32_t x) {
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

/* Writes the words of one row of one level. Returns the number of bits. */
static inline uint32_t search_row(const extrema_strip *s, const dog_rows *d, int32_t level, int32_t y, uint32_t *words,
                                  int ties) {
  const octave_view *o = &s->args->octave;
  const int32_t scales = s->args->params.scales, ahead = y + ROWS_AHEAD < o->height ? y + ROWS_AHEAD : y;
  const float *ahead_row = o->levels + (size_t)ahead * o->stride + (size_t)s->x0;
  const int32_t first = (level - 1) * (scales + 3) / scales, last = level * (scales + 3) / scales;
  const float *rows[3][3];
  uint32_t count = 0;
  for (int32_t r = 0; r < 3; r++)
    for (int32_t l = 0; l < 3; l++) rows[r][l] = d->values[(y + r + 2) % 3][level + l - 1] + MARGIN;
  for (int32_t x = 0; x < s->x1 - s->x0; x += 32) {
    uint32_t word = 0;
    ask_for(o, ahead_row + x, first, last);
    for (int32_t i = 0; i < 32; i += SIMD_WIDTH) word |= extremum_bits(rows, x + i, s->threshold, ties) << i;
    if (word != 0) word &= allowed_bits(s, s->x0 + x);
    words[x >> 5] = word;
    count += (uint32_t)__builtin_popcount(word);
  }
  return count;
}

static uint32_t *words_of(const extrema_strip *s, int32_t level, int32_t y) {
  const mask_view *m = &s->args->candidates;
  return m->words + ((size_t)(level - 1) * (size_t)s->args->octave.height + (size_t)y) * (size_t)m->words_per_row +
         (s->x0 >> 5);
}

static void extrema_chunk(void *argument, int32_t chunk, int32_t worker) {
  extrema_job *job = argument;
  const extrema_args *args = job->args;
  const octave_view *o = &args->octave;
  const int32_t border = args->params.border, scales = args->params.scales;
  (void)worker;
  extrema_strip s = {.args = args, .x0 = chunk % job->strips * STRIP, .from = border, .to = o->width - border};
  s.x1 = o->width - s.x0 < STRIP ? o->width : s.x0 + STRIP;
  s.threshold = simd_set1(args->params.candidate_above > 0.0f ? args->params.candidate_above : 0.0f);
  const int32_t first = chunk / job->strips * BAND, end = o->height - first < BAND ? o->height : first + BAND;
  const size_t row_bytes = sizeof(uint32_t) * (size_t)((s.x1 - s.x0 + 31) / 32);
  dog_rows d;
  /* Lanes beyond a narrow strip are read, though never used, so they must hold numbers. */
  if (s.x1 - s.x0 < STRIP) memset(&d, 0, sizeof d);
  uint32_t count = 0;
  int32_t next = first > 0 ? first - 1 : 0;
  for (int32_t y = first; y < end; y++) {
    const bool searched = y >= border && y < o->height - border;
    if (searched)
      for (next = next < y - 1 ? y - 1 : next; next <= y + 1; next++) take_differences(&s, &d, next);
    for (int32_t level = 1; level <= scales; level++) {
      uint32_t *words = words_of(&s, level, y);
      if (!searched)
        memset(words, 0, row_bytes);
      else
        count += args->params.extremum_ties ? search_row(&s, &d, level, y, words, 1)
                                            : search_row(&s, &d, level, y, words, 0);
    }
  }
  atomic_fetch_add_explicit(&job->count, count, memory_order_relaxed);
}

stage_status SIMD_NAME(extrema)(stage_queue *queue, const extrema_args *args) {
  const octave_view *o = &args->octave;
  extrema_job job = {.args = args, .strips = (o->width + STRIP - 1) / STRIP};
  assert(args->params.border >= 1 && args->candidates.words_per_row == mask_words_per_row(o->width));
  assert(args->params.scales <= SCALES_MAX);
  atomic_init(&job.count, 0);
  queue_run(queue, job.strips * ((o->height + BAND - 1) / BAND), extrema_chunk, &job);
  if (args->count) *args->count = atomic_load(&job.count);
  return STAGE_OK;
}
