/*
 * Searches for the k nearest and for all within a radius equal a search that sorts all distances. Covers every backend,
 * lists of awkward lengths, ties, non-finite floats, guides, several threads, calls without a context, and a GPU if
 * available.
 */

#include "tests/support/test.h"

#include "cpu/dispatch.h"
#include "stages/match.h"

typedef enum content { NOISE, FEW, CLUSTERS, EQUAL, EXTREMES, NOT_FINITE, CONTENTS } content;

/* Makes descriptors of the given content, and positions from 0 to 200. */
static hs_features make_list(hs_descriptor_type type, content what, size_t count, uint32_t seed) {
  hs_features f = {0};
  uint32_t random = seed;
  feature_maker_fill(&f, count, type == HS_DESCRIPTOR_U8 ? FEATURES_U8 : FEATURES_SCALED_F32, seed);
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
      const uint32_t noise = feature_maker_random(&random) >> 7;
      uint32_t v = noise & 255u;
      if (what == FEW) v = (uint32_t)(i % 7) * 31u + (uint32_t)k % 3u;
      if (what == CLUSTERS) v = (uint32_t)(i / 16 % 8) * 29u + (noise % 8u == 0);
      if (what == EQUAL) v = 77;
      if (what == EXTREMES) v = noise & 1u ? 255u : 0u;
      float value = (float)v * 0.00371f - 0.2f;
      if (what == NOT_FINITE && noise % 997u < 3u)
        value = noise % 997u == 0 ? NAN : noise % 997u == 1 ? INFINITY : 3e38f;
      if (type == HS_DESCRIPTOR_U8)
        ((uint8_t *)f.descriptors)[i * HS_DESCRIPTOR_LENGTH + k] = (uint8_t)v;
      else
        ((float *)f.descriptors)[i * HS_DESCRIPTOR_LENGTH + k] = value;
    }
    f.keypoints[i].x = (float)(feature_maker_random(&random) % 200u);
    f.keypoints[i].y = (float)(feature_maker_random(&random) % 200u);
  }
  return f;
}

/* ------------------------------------------------------------------ the search that sorts */

typedef struct candidate {
  float squared;
  uint32_t index;
} candidate;

static int by_square(const void *a, const void *b) {
  const candidate *p = a, *q = b;
  if (p->squared != q->squared) return p->squared < q->squared ? -1 : 1;
  return p->index < q->index ? -1 : p->index > q->index;
}

static float square_of(const hs_features *a, size_t i, const hs_features *b, size_t j) {
  const size_t p = i * HS_DESCRIPTOR_LENGTH, q = j * HS_DESCRIPTOR_LENGTH;
  return a->descriptor_type == HS_DESCRIPTOR_U8
             ? (float)match_square_u8((const uint8_t *)a->descriptors + p, (const uint8_t *)b->descriptors + q)
             : match_square_f32((const float *)a->descriptors + p, (const float *)b->descriptors + q);
}

static bool agrees(const hs_match_options *o, const hs_keypoint *a, const hs_keypoint *b) {
  match_guide guide = {.kind = (match_guide_kind)o->guide};
  if (o->guide == HS_GUIDE_NONE) return true;
  memcpy(guide.matrix, o->guide_matrix, sizeof guide.matrix);
  const match_position p = match_position_first(&guide, a->x, a->y), q = match_position_second(&guide, b->x, b->y);
  return match_agrees(guide.kind, o->guide_tolerance * o->guide_tolerance, &p, &q);
}

/* Sorts the candidates of a feature by distance; returns their number. */
static size_t sort_candidates(const hs_features *a, size_t i, const hs_features *b, const hs_match_options *o,
                              candidate *sorted) {
  size_t count = 0;
  for (size_t j = 0; j < b->count; j++) {
    const candidate one = {square_of(a, i, b, j), (uint32_t)j};
    if (agrees(o, &a->keypoints[i], &b->keypoints[j]) && isfinite(one.squared)) sorted[count++] = one;
  }
  qsort(sorted, count, sizeof *sorted, by_square);
  return count;
}

/* ------------------------------------------------------------------ backends */

typedef struct backend {
  const char *name;
  hs_context *context;
} backend;

enum { BACKENDS_MAX = 12 };
static backend backends[BACKENDS_MAX];
static size_t backend_count;
static bool has_gpu;

static void add_backend(const char *name, const char *variant, int32_t threads, hs_device device) {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  const hs_expert_options expert = extraction_expert(HS_PROFILE_LOWE, variant);
  o.threads = threads;
  o.device = device;
  if (variant) o.expert = &expert;
  backends[backend_count++] = (backend){name, extraction_context(&o)};
}

BEFORE_TESTS() {
  static const char *const names[] = {"ref", "sse2", "avx2", "avx512", "avx512vnni", "neon", "neondot"};
  static const char *const variants[] = {"match=ref",        "match=sse2", "match=avx2",   "match=avx512",
                                         "match=avx512vnni", "match=neon", "match=neondot"};
  backends[backend_count++] = (backend){"no context", NULL};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (cpu_variant_ops(names[i])) add_backend(names[i], variants[i], 1, HS_DEVICE_CPU);
  add_backend("three threads", NULL, 3, HS_DEVICE_CPU);
  has_gpu = extraction_has_gpu();
  if (has_gpu) add_backend("GPU", NULL, 1, HS_DEVICE_CUDA);
}

AFTER_TESTS() {
  for (size_t i = 0; i < backend_count; i++) hs_destroy(backends[i].context);
}

/* ------------------------------------------------------------------ comparisons */

static void check_one(const backend *at, const hs_neighbour *found, const candidate *expected, size_t i, size_t n) {
  const float distance = sqrtf(expected->squared);
  if (found->index != expected->index || memcmp(&found->distance, &distance, sizeof distance) != 0)
    fail_msg("%s, feature %zu, neighbour %zu: %u at %g, expected %u at %g", at->name, i, n, found->index,
             (double)found->distance, expected->index, (double)distance);
}

static void check_nearest(const hs_features *a, const hs_features *b, const hs_match_options *o, int32_t k,
                          candidate *const *sorted, const size_t *counts) {
  hs_neighbour *found = malloc((a->count * (size_t)k + 1) * sizeof *found);
  assert_non_null(found);
  for (size_t n = 0; n < backend_count; n++) {
    memset(found, 0xa5, (a->count * (size_t)k + 1) * sizeof *found);
    assert_int_equal(hs_find_k_nearest(backends[n].context, a, b, o, k, found), HS_OK);
    for (size_t i = 0; i < a->count; i++)
      for (size_t j = 0; j < (size_t)k; j++) {
        const candidate none = {INFINITY, HS_NO_FEATURE};
        check_one(&backends[n], &found[i * (size_t)k + j], j < counts[i] ? &sorted[i][j] : &none, i, j);
      }
    assert_int_equal(found[a->count * (size_t)k].index, 0xa5a5a5a5u);
  }
  free(found);
}

static void check_within(const hs_features *a, const hs_features *b, const hs_match_options *o, double radius,
                         candidate *const *sorted, const size_t *counts) {
  hs_neighbour_lists lists = {0};
  for (size_t n = 0; n < backend_count; n++) {
    if (n > 0 && !backends[n - 1].context) hs_neighbour_lists_free(&lists); /* the lists belong to another allocator */
    assert_int_equal(hs_find_within(backends[n].context, a, b, o, radius, &lists), HS_OK);
    assert_int_equal(lists.feature_count, a->count);
    assert_int_equal(lists.starts[0], 0);
    for (size_t i = 0; i < a->count; i++) {
      size_t expected = 0;
      while (expected < counts[i] && (double)sorted[i][expected].squared <= radius * radius) expected++;
      if (lists.starts[i + 1] - lists.starts[i] != expected)
        fail_msg("%s, feature %zu: %zu within %g, expected %zu", backends[n].name, i,
                 lists.starts[i + 1] - lists.starts[i], radius, expected);
      for (size_t j = 0; j < expected; j++)
        check_one(&backends[n], &lists.neighbours[lists.starts[i] + j], &sorted[i][j], i, j);
    }
  }
  hs_neighbour_lists_free(&lists);
}

/* Checks several radii: copies only, the median of the nearest, exactly one feature's distance, all. */
static void check_radii(const hs_features *a, const hs_features *b, const hs_match_options *o, candidate *const *sorted,
                        const size_t *counts) {
  check_within(a, b, o, 0.0, sorted, counts);
  check_within(a, b, o, (double)INFINITY, sorted, counts);
  if (a->count == 0 || counts[a->count / 2] == 0) return;
  const candidate *middle = &sorted[a->count / 2][counts[a->count / 2] / 2];
  check_within(a, b, o, sqrt((double)middle->squared), sorted, counts);
  check_within(a, b, o, sqrt((double)middle->squared) * 0.999, sorted, counts);
}

static void check_lists(const hs_features *a, const hs_features *b, const hs_match_options *o) {
  static const int32_t wanted[] = {1, 3, 64, HS_NEIGHBOURS_MAX};
  candidate **sorted = calloc(a->count + 1, sizeof *sorted);
  SCOPED_MEMORY size_t *counts = calloc(a->count + 1, sizeof *counts);
  assert_true(sorted && counts);
  for (size_t i = 0; i < a->count; i++) {
    sorted[i] = malloc((b->count + 1) * sizeof **sorted);
    assert_non_null(sorted[i]);
    counts[i] = sort_candidates(a, i, b, o, sorted[i]);
  }
  for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++) check_nearest(a, b, o, wanted[n], sorted, counts);
  check_radii(a, b, o, sorted, counts);
  for (size_t i = 0; i < a->count; i++) free(sorted[i]);
  free(sorted);
}

static void check_content(hs_descriptor_type type, content what, size_t rows, size_t columns,
                          const hs_match_options *o) {
  hs_features a = make_list(type, what, rows, 3), b = make_list(type, what, columns, 4);
  check_lists(&a, &b, o);
  hs_features_free(&a);
  hs_features_free(&b);
}

static hs_match_options defaults(void) {
  hs_match_options o;
  assert_int_equal(hs_match_options_init(&o), HS_OK);
  return o;
}

/* ------------------------------------------------------------------ tests */

TEST(sizes_agree) {
  static const size_t sizes[][2] = {{0, 0},   {0, 5},    {5, 0},   {1, 1},    {3, 127},  {4, 128},
                                    {5, 129}, {33, 257}, {70, 65}, {129, 40}, {2, 1500}, {300, 9}};
  const hs_match_options o = defaults();
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    check_content(HS_DESCRIPTOR_U8, NOISE, sizes[i][0], sizes[i][1], &o);
    check_content(HS_DESCRIPTOR_F32, NOISE, sizes[i][0], sizes[i][1], &o);
  }
}

TEST(contents_agree) {
  const hs_match_options o = defaults();
  for (int what = 0; what < CONTENTS; what++) {
    if (what != NOT_FINITE) check_content(HS_DESCRIPTOR_U8, (content)what, 45, 333, &o);
    check_content(HS_DESCRIPTOR_F32, (content)what, 45, 333, &o);
  }
}

TEST(guides_agree) {
  static const double homography[9] = {1.02, 0.03, -4, -0.02, 0.98, 7, 1e-5, 2e-5, 1};
  static const double fundamental[9] = {0, -1e-6, 3e-4, 2e-6, 0, -0.02, -4e-4, 0.02, 0.1};
  for (int guide = HS_GUIDE_HOMOGRAPHY; guide <= HS_GUIDE_FUNDAMENTAL; guide++) {
    hs_match_options o = defaults();
    o.guide = (hs_guide)guide;
    o.guide_tolerance = 40.0;
    memcpy(o.guide_matrix, guide == HS_GUIDE_HOMOGRAPHY ? homography : fundamental, sizeof homography);
    check_content(HS_DESCRIPTOR_U8, FEW, 60, 200, &o);
    check_content(HS_DESCRIPTOR_F32, CLUSTERS, 60, 200, &o);
  }
}

/* For k = 2 the results equal those of hs_find_nearest. */
TEST(two_are_the_two_nearest) {
  scoped_features a = make_list(HS_DESCRIPTOR_U8, CLUSTERS, 200, 1), b = make_list(HS_DESCRIPTOR_U8, CLUSTERS, 180, 2);
  SCOPED_MEMORY hs_nearest *two = malloc(a.count * sizeof *two);
  SCOPED_MEMORY hs_neighbour *k = malloc(2 * a.count * sizeof *k);
  assert_true(two && k);
  assert_int_equal(hs_find_nearest(NULL, &a, &b, NULL, two), HS_OK);
  assert_int_equal(hs_find_k_nearest(NULL, &a, &b, NULL, 2, k), HS_OK);
  for (size_t i = 0; i < a.count; i++) {
    assert_int_equal(k[2 * i].index, two[i].nearest);
    assert_int_equal(k[2 * i + 1].index, two[i].second);
    assert_true(k[2 * i].distance == sqrtf(two[i].nearest_squared));
  }
}

/* There are enough rows for several chunks; a low memory limit makes chunks smaller. */
TEST(chunks_agree) {
  scoped_features a = make_list(HS_DESCRIPTOR_U8, FEW, 1500, 1), b = make_list(HS_DESCRIPTOR_U8, FEW, 40, 2);
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  SCOPED_MEMORY hs_neighbour *expected = malloc(3 * a.count * sizeof *expected),
                             *found = malloc(3 * a.count * sizeof *found);
  assert_true(expected && found);
  scoped_lists all = {0}, lists = {0};
  assert_int_equal(hs_find_k_nearest(NULL, &a, &b, NULL, 3, expected), HS_OK);
  assert_int_equal(hs_find_within(NULL, &a, &b, NULL, 90.0, &all), HS_OK);
  for (int gpu = 0; gpu <= has_gpu; gpu++) {
    o.device = gpu ? HS_DEVICE_CUDA : HS_DEVICE_CPU;
    o.threads = 2;
    /* On a GPU the fixed part of the lists takes 8 MiB for any length; the remaining 768 KiB hold the lists and a few
     * tiles. On the CPU a chunk would need 256 KiB for squares. */
    o.max_memory_bytes = gpu ? (8u << 20) + (768u << 10) : 128u << 10;
    scoped_context *c = extraction_context(&o);
    assert_int_equal(hs_find_k_nearest(c, &a, &b, NULL, 3, found), HS_OK);
    assert_memory_equal(found, expected, 3 * a.count * sizeof *found);
    assert_int_equal(hs_find_within(c, &a, &b, NULL, 90.0, &lists), HS_OK);
    assert_memory_equal(lists.starts, all.starts, (a.count + 1) * sizeof *all.starts);
    assert_memory_equal(lists.neighbours, all.neighbours, all.starts[a.count] * sizeof *all.neighbours);
  }
}

TEST(wrong_arguments_are_named) {
  scoped_features a = make_list(HS_DESCRIPTOR_U8, NOISE, 4, 1), floats = make_list(HS_DESCRIPTOR_F32, NOISE, 4, 1);
  hs_neighbour found[8];
  scoped_lists lists = {0};
  hs_context *c = backends[1].context;
  assert_int_equal(hs_find_k_nearest(c, &a, &a, NULL, 0, found), HS_ERR_ARGUMENT);
  assert_string_equal(hs_last_error(c), "k is 0, expected 1..1024");
  assert_int_equal(hs_find_k_nearest(c, &a, &a, NULL, 1025, found), HS_ERR_ARGUMENT);
  assert_int_equal(hs_find_k_nearest(c, &a, &a, NULL, 2, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_find_k_nearest(c, &a, NULL, NULL, 2, found), HS_ERR_ARGUMENT);
  assert_int_equal(hs_find_k_nearest(c, &a, &floats, NULL, 2, found), HS_ERR_ARGUMENT);
  assert_int_equal(hs_find_within(c, &a, &a, NULL, -1.0, &lists), HS_ERR_ARGUMENT);
  assert_string_equal(hs_last_error(c), "radius is -1, expected 0 or more");
  assert_int_equal(hs_find_within(c, &a, &a, NULL, (double)NAN, &lists), HS_ERR_ARGUMENT);
  assert_int_equal(hs_find_within(c, &a, &a, NULL, 1.0, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_find_within(c, &a, &a, NULL, 1.0, &lists), HS_OK);
  assert_string_equal(hs_last_error(c), "");
  hs_neighbour_lists_free(NULL);
}

/* Each allocation fails once: nothing leaks, and the lists are empty or complete. */
TEST(allocations_may_fail) {
  scoped_features a = make_list(HS_DESCRIPTOR_U8, FEW, 40, 1);
  scoped_counter counted = {0};
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 2;
  const hs_allocator allocator = counted_allocator_make(&counted);
  o.allocator = &allocator;
  scoped_context *c = extraction_context(&o);
  scoped_lists lists = {0};
  hs_status st = HS_ERR_MEMORY;
  int failures = 0;
  for (size_t n = 1; st != HS_OK; n++) {
    counted.fail_at = counted.made + n;
    st = hs_find_within(c, &a, &a, NULL, 50.0, &lists);
    assert_true(st == HS_OK || (st == HS_ERR_MEMORY && !lists.starts && !lists.neighbours));
    failures += st != HS_OK;
  }
  assert_true(failures >= 2);
}
