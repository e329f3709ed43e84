/*
 * Robust search for a model; see search.h.
 */
#include "pipeline/matching/geometry/search.h"

#include <string.h>

#include "pipeline/matching/geometry/scoring.h"

/* A homography that mixes two surfaces may fit more matches than the homography of one surface, so the search starts
   from several candidates: of the first samples, all with more than this share of the best score are refined. */
#define EARLY_SHARE 0.4
enum {
  EARLY_SAMPLES = 64,
  /* number of samples per round; each round compares its candidates with the best one so far, and refines one of
   * them */
  ROUND = 16
};

/* Draws a sample. Each sample has its own random sequence, so samples can be drawn in any order. sample: size + 1
   numbers; the last one is working memory. */
static void draw_sample(uint64_t seed, int32_t index, uint32_t count, int size, uint32_t *sample) {
  random_state own = {splitmix64_mix(seed + (uint64_t)index)};
  if (count > 64) {
    random_sample(&own, count, size, sample);
    return;
  }
  /* The same without comparisons. Of few matches one is often drawn twice, which no branch predictor foresees, so one
     number more than needed is drawn in any case. */
  uint64_t drawn = 0;
  int found = 0;
  for (int i = 0; i <= size || found < size; i++) {
    sample[found] = random_below(&own, count);
    const uint64_t bit = UINT64_C(1) << sample[found];
    found += (drawn & bit) == 0;
    drawn |= bit;
  }
}

/* ---- Samples that repeat a point have no fundamental matrix. The test of all pairs of a sample is needed only if two
   matches of the sample may share a point. */

enum { POINT_BITS = 15, POINTS = 1 << POINT_BITS, TWINS_AFTER = 64 };
_Static_assert(TWINS_AFTER % ROUND == 0, "points are marked when a round begins there");

/* Coordinates below this count as equal: squares of their differences may be 0. Others differ by more than 1e-117. */
#define TINY 1.0e-100

static uint64_t bits_of_coordinate(double v) {
  uint64_t bits;
  if (v > -TINY && v < TINY) v = 0.0;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

/* Hashes the points of one image. A match whose hash another match shares gets one of the 32 bits from `shift` on. */
static void mark_shared(const double *x, const double *y, size_t count, int shift, uint64_t *twins) {
  uint64_t once[POINTS / 64] = {0}, twice[POINTS / 64] = {0};
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < count; i++) {
      const uint64_t hash = splitmix64_mix(bits_of_coordinate(x[i]) + splitmix64_mix(bits_of_coordinate(y[i])));
      const uint64_t at = hash % POINTS / 64, bit = UINT64_C(1) << (hash & 63);
      if (pass == 1 && (twice[at] & bit) != 0) twins[i] |= UINT64_C(1) << (shift + (int)(hash >> 59));
      if (pass == 0) twice[at] |= once[at] & bit;
      if (pass == 0) once[at] |= bit;
    }
  }
}

static void mark_twins(const geometry_matches *m, uint64_t *twins) {
  memset(twins, 0, m->count * sizeof *twins);
  mark_shared(m->ax, m->ay, m->count, 0, twins);
  mark_shared(m->bx, m->by, m->count, 32, twins);
}

static bool sample_may_repeat(const uint64_t *twins, const uint32_t sample[TWO_VIEW_SEVEN]) {
  uint64_t seen = 0, again = 0;
  for (int i = 0; i < (int)TWO_VIEW_SEVEN; i++) {
    again |= seen & twins[sample[i]];
    seen |= twins[sample[i]];
  }
  return again != 0;
}

/* Finds the best candidate of the samples [begin, end) if it is better than the previous best; *best_sample: its
 * sample. */
static bool best_of_round(const geometry_problem *problem, const search_scratch *scratch, uint64_t seed, int32_t begin,
                          int32_t end, geometry_candidate *best, uint32_t *best_sample) {
  /* short searches do without */
  const uint64_t *const twins = problem->model == HS_FUNDAMENTAL && begin >= TWINS_AFTER ? scratch->twins : NULL;
  const int size = geometry_sample_size(problem->model);
  const uint32_t count = (uint32_t)problem->matches.count;
  const double bar = best->score;
  bool found = false;
  for (; begin < end; begin += GEOMETRY_BATCH) {
    uint32_t samples[GEOMETRY_BATCH * GEOMETRY_SAMPLE_MAX + 1];
    bool may_repeat[GEOMETRY_BATCH];
    for (int l = 0; l < GEOMETRY_BATCH; l++) {
      draw_sample(seed, begin + l, count, size, samples + l * size);
      if (twins) may_repeat[l] = sample_may_repeat(twins, samples + l * size);
    }
    geometry_solve(problem, samples, twins ? may_repeat : NULL, scratch->batch);
    for (int i = 0; i < scratch->batch->count; i++) {
      geometry_candidate *const candidate = &scratch->batch->found[i].candidate;
      const int sample = scratch->batch->found[i].sample;
      if (sample >= end - begin) break;
      candidate->score = geometry_score(problem, candidate->matrix, bar);
      if (!(candidate->score > best->score)) continue;
      *best = *candidate;
      memcpy(best_sample, samples + sample * size, (size_t)size * sizeof *samples);
      found = true;
    }
  }
  return found;
}

/* True if local optimisation, which begins with twice the threshold, may reach min_inliers. */
static bool is_worth_improving(const geometry_problem *problem, const search_limits *limits,
                               const geometry_candidate *candidate) {
  geometry_problem wide = *problem;
  wide.threshold *= 2.0;
  return geometry_count_inliers(&wide, candidate->matrix, NULL, NULL) >= limits->min_inliers;
}

static int32_t iterations_left(const search_limits *limits, size_t inliers, size_t count, int size) {
  const size_t least = inliers > limits->min_inliers ? inliers : limits->min_inliers;
  const int32_t needed = iterations_needed(least, count, size, limits->confidence, limits->max_iterations);
  return needed < limits->min_iterations ? limits->min_iterations : needed;
}

bool search_run(const geometry_problem *problem, const search_limits *limits, random_state *random,
                const search_scratch *scratch, geometry_candidate *best, int32_t *iterations) {
  const int size = geometry_sample_size(problem->model);
  const size_t count = problem->matches.count;
  *iterations = 0;
  best->score = 0.0;
  if (count < (size_t)size || count < limits->min_inliers) return false;
  int32_t needed = iterations_left(limits, 0, count, size), drawn = 0;
  const uint64_t seed = random_next(random);
  /* best candidate before refinement, whose score a sample must exceed */
  geometry_candidate sampled = {{0.0}, {0.0}, 0.0};
  while (drawn < needed) {
    uint32_t sample[GEOMETRY_SAMPLE_MAX];
    const int32_t end = limits->max_iterations - drawn > ROUND ? drawn + ROUND : limits->max_iterations;
    geometry_candidate tried = sampled;
    if (problem->model == HS_HOMOGRAPHY && drawn < EARLY_SAMPLES) tried.score *= EARLY_SHARE;
    if (problem->model == HS_FUNDAMENTAL && drawn == TWINS_AFTER) mark_twins(&problem->matches, scratch->twins);
    const bool is_better = best_of_round(problem, scratch, seed, drawn, end, &tried, sample);
    drawn = end;
    if (is_better && tried.score > sampled.score) sampled = tried;
    if (!is_better || !is_worth_improving(problem, limits, &tried)) continue;
    geometry_candidate improved = tried;
    if (limits->check_plane && problem->model == HS_FUNDAMENTAL)
      plane_complete(problem, sample, random, scratch, &improved);
    (void)geometry_improve(problem, &improved);
    if (!(improved.score > best->score)) continue;
    *best = improved;
    needed = iterations_left(limits, geometry_count_inliers(problem, best->matrix, NULL, NULL), count, size);
  }
  *iterations = drawn;
  if (!(best->score > 0.0)) return false;
  if (!limits->leave_rough) geometry_polish(problem, best);
  return true;
}
