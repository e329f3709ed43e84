/*
 * The search for fundamental matrices, with every SIMD variant of this machine, gives the bits of a plain search:
 * samples by random_sample, the scalar solver in the plain order with all its tests, one sample after the other. Lists
 * of 8 to 20000 matches: random, of a scene, planar, collinear, on a grid of equal windows, with shared and nearly
 * shared points, with coordinates that are not finite, huge or tiny.
 */
#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "cpu/ref/stages_ref.h"
#include "pipeline/matching/geometry/scoring.h"
#include "pipeline/matching/geometry/search.h"

enum { MATCHES = 20000, SEVEN = TWO_VIEW_SEVEN, ROUND_OF_PLAIN = 16 };

static const char *const names[] = {"ref", "sse2", "avx2", "avx512", "neon"};

typedef enum list_kind { RANDOM, SCENE, PLANE, LINE, WINDOWS, SHARED, NEARLY_SHARED, AWKWARD, COPY, KINDS } list_kind;

typedef struct search_case {
  double columns[4][MATCHES];
  double squares[MATCHES], scratch[4][MATCHES];
  uint64_t twins[MATCHES];
  geometry_batch batch;
} search_case;

typedef struct search_result {
  geometry_candidate best;
  int32_t iterations;
  bool found;
} search_result;

static double uniform(random_state *random) { return (double)random_next(random) * 0x1p-63 - 1.0; }

static void scene_match(list_kind kind, random_state *random, double m[4]) {
  const double x = 2.0 * uniform(random), y = 2.0 * uniform(random);
  double z = kind == PLANE ? 4.0 + 0.3 * x : 5.0 + 2.0 * uniform(random);
  if (kind == LINE) z = 4.0;
  m[0] = 2.0 * x / z;
  m[1] = kind == LINE ? 0.5 * m[0] : 2.0 * y / z;
  m[2] = 2.0 * (x + 0.6) / (z + 0.1) + 0.002 * uniform(random);
  m[3] = (kind == LINE ? 0.5 * m[2] : 2.0 * y / (z + 0.1)) + 0.002 * uniform(random);
}

static void make_match(list_kind kind, random_state *random, double m[4]) {
  static const double awkward[12] = {0.0,      -0.0,     1.0e-300,  4.9e-324, 1.0e150, -1.0e6,
                                     1.0e-170, HUGE_VAL, -HUGE_VAL, 1.0e60,   NAN,     1.0};
  for (int c = 0; c < 4; c++) m[c] = uniform(random);
  if (kind == SCENE || kind == PLANE || kind == LINE || kind == AWKWARD)
    if (random_below(random, 3) != 0) scene_match(kind, random, m);
  if (kind == WINDOWS)
    for (int c = 0; c < 4; c++) m[c] = 0.1 * (double)random_below(random, 12) + (c % 2 == 0 ? 1.0e-3 * m[c] : 0.0);
  if (kind == SHARED && random_below(random, 2) == 0)
    for (int c = 0; c < 2; c++) m[2 * c] = m[2 * c + 1] = 0.125 * (double)random_below(random, 6);
  if (kind == NEARLY_SHARED && random_below(random, 2) == 0)
    for (int c = 0; c < 2; c++) m[c] = 1.0e-170 * (double)random_below(random, 4);
  if (kind == COPY) memcpy(m + 2, m, 2 * sizeof *m);
  if (kind == AWKWARD && random_below(random, 8) == 0) m[random_below(random, 4)] = awkward[random_below(random, 12)];
}

static geometry_problem make_list(list_kind kind, size_t count, uint64_t seed, search_case *c) {
  random_state random = {seed};
  for (size_t i = 0; i < count; i++) {
    double m[4];
    make_match(kind, &random, m);
    for (int k = 0; k < 4; k++) c->columns[k][i] = m[k];
  }
  return (geometry_problem){.model = HS_FUNDAMENTAL,
                            .matches = {count, c->columns[0], c->columns[1], c->columns[2], c->columns[3]},
                            .threshold = 0.01};
}

/* The best candidate of the samples [begin, end), one sample after the other. */
static bool plain_round(const geometry_problem *problem, uint64_t seed, int32_t begin, int32_t end, search_case *c,
                        geometry_candidate *best, uint32_t *best_sample) {
  const double bar = best->score;
  bool found = false;
  for (int32_t s = begin; s < end; s++) {
    random_state own = {splitmix64_mix(seed + (uint64_t)s)};
    uint32_t sample[SEVEN], samples[GEOMETRY_BATCH * SEVEN];
    random_sample(&own, (uint32_t)problem->matches.count, SEVEN, sample);
    for (int i = 0; i < GEOMETRY_BATCH * SEVEN; i++) samples[i] = sample[i % SEVEN];
    geometry_solve(problem, samples, NULL, &c->batch);
    for (int i = 0; i < c->batch.count && c->batch.found[i].sample == 0; i++) {
      geometry_candidate *const candidate = &c->batch.found[i].candidate;
      candidate->score = geometry_score(problem, candidate->matrix, bar);
      if (!(candidate->score > best->score)) continue;
      memcpy(best->matrix, candidate->matrix, sizeof best->matrix);
      best->score = candidate->score;
      memcpy(best_sample, sample, sizeof sample);
      found = true;
    }
  }
  return found;
}

static int32_t plain_limit(const geometry_problem *problem, const search_limits *limits, const double *matrix) {
  size_t inliers = matrix ? geometry_count_inliers(problem, matrix, NULL, NULL) : 0;
  if (inliers < limits->min_inliers) inliers = limits->min_inliers;
  const int32_t needed =
      iterations_needed(inliers, problem->matches.count, SEVEN, limits->confidence, limits->max_iterations);
  return needed < limits->min_iterations ? limits->min_iterations : needed;
}

static void plain_search(const geometry_problem *problem, const search_limits *limits, const search_scratch *scratch,
                         search_case *c, search_result *r) {
  random_state random = {7};
  geometry_problem wide = *problem;
  geometry_candidate sampled = {{0.0}, {0.0}, 0.0};
  wide.threshold *= 2.0;
  memset(r, 0, sizeof *r);
  int32_t needed = plain_limit(problem, limits, NULL), drawn = 0;
  const uint64_t seed = random_next(&random);
  while (drawn < needed) {
    uint32_t sample[SEVEN];
    int32_t end = drawn + ROUND_OF_PLAIN;
    if (end > limits->max_iterations) end = limits->max_iterations;
    const bool better = plain_round(problem, seed, drawn, end, c, &sampled, sample);
    drawn = end;
    if (!better || geometry_count_inliers(&wide, sampled.matrix, NULL, NULL) < limits->min_inliers) continue;
    geometry_candidate improved = sampled;
    plane_complete(problem, sample, &random, scratch, &improved);
    (void)geometry_improve(problem, &improved);
    if (!(improved.score > r->best.score)) continue;
    r->best = improved;
    needed = plain_limit(problem, limits, improved.matrix);
  }
  r->iterations = drawn;
  r->found = r->best.score > 0.0;
  if (r->found) geometry_polish(problem, &r->best);
}

static void compare(list_kind kind, size_t count, uint64_t seed, search_case *c) {
  const search_limits limits = {0.9999, 50, count > 1000 ? 200 : 500, 15, true, false};
  const search_scratch scratch = {
      c->squares, {c->scratch[0], c->scratch[1], c->scratch[2], c->scratch[3]}, c->twins, &c->batch};
  geometry_problem problem = make_list(kind, count, seed, c);
  search_result plain, fast;
  problem.ops = &two_view_ops_ref;
  plain_search(&problem, &limits, &scratch, c, &plain);
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    problem.ops = cpu_two_view_of(names[n]);
    if (!problem.ops) continue;
    random_state random = {7};
    memset(&fast, 0, sizeof fast);
    fast.found = search_run(&problem, &limits, &random, &scratch, &fast.best, &fast.iterations);
    if (fast.iterations != plain.iterations || fast.found != plain.found ||
        (plain.found && (memcmp(fast.best.matrix, plain.best.matrix, sizeof plain.best.matrix) != 0 ||
                         memcmp(&fast.best.score, &plain.best.score, sizeof plain.best.score) != 0)))
      fail_msg("%s, kind %d, %zu matches: %d iterations and score %.17g, not %d and %.17g", names[n], (int)kind, count,
               (int)fast.iterations, fast.best.score, (int)plain.iterations, plain.best.score);
  }
}

TEST(test_lists) {
  static const size_t counts[] = {15, 16, 19, 23, 30, 37, 48, 63, 64, 65, 66, 90, 200, 1000};
  SCOPED_MEMORY search_case *const c = malloc(sizeof *c);
  assert_non_null(c);
  for (int kind = 0; kind < KINDS; kind++)
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
      compare((list_kind)kind, counts[i], 100 * (uint64_t)kind + i, c);
}

TEST(test_long_lists) {
  SCOPED_MEMORY search_case *const c = malloc(sizeof *c);
  assert_non_null(c);
  for (int kind = 0; kind < KINDS; kind++) compare((list_kind)kind, MATCHES, (uint64_t)kind, c);
}

/* A list shorter than a sample, or than min_inliers, is not searched. */
TEST(test_short_lists) {
  SCOPED_MEMORY search_case *const c = malloc(sizeof *c);
  assert_non_null(c);
  const search_scratch scratch = {
      c->squares, {c->scratch[0], c->scratch[1], c->scratch[2], c->scratch[3]}, c->twins, &c->batch};
  for (size_t count = 0; count < 16; count++) {
    geometry_problem problem = make_list(SCENE, count, count, c);
    problem.ops = cpu_choose_two_view();
    const search_limits limits = {0.9999, 50, 500, 8, true, false};
    random_state random = {7};
    geometry_candidate best;
    int32_t iterations;
    const bool found = search_run(&problem, &limits, &random, &scratch, &best, &iterations);
    assert_true(count >= 8 || (!found && iterations == 0));
    assert_true(count < 8 || iterations >= 50);
  }
}
