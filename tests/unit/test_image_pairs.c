/*
 * Choice of image pairs: by the order of names, by positions, by vectors. Name order has known results; the others are
 * compared with all pairs tested one by one.
 */

#include "tests/support/test.h"

enum { PLACES = 400, VECTORS = 90, LENGTH = 48 };

static void expect_pairs(const hs_image_pairs *got, const uint32_t (*expected)[2], size_t count) {
  assert_int_equal(got->count, count);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(got->pairs[i].first, expected[i][0]);
    assert_int_equal(got->pairs[i].second, expected[i][1]);
  }
}

/* ------------------------------------------------------------------ names */

TEST(names_follow_each_other_naturally) {
  /* In natural order: a/img1 (3), a/img02 (1), a/img2 (4), a/img10 (0), b (2). */
  static const char *const names[] = {"a/img10", "a/img02", "b", "a/img1", "a/img2"};
  static const uint32_t next[][2] = {{0, 2}, {0, 4}, {1, 3}, {1, 4}};
  static const uint32_t two[][2] = {{0, 1}, {0, 2}, {0, 4}, {1, 3}, {1, 4}, {2, 4}, {3, 4}};
  scoped_pairs pairs = {0};
  (void)state;
  assert_int_equal(hs_pair_sequence(names, 5, 1, 0, &pairs), HS_OK);
  expect_pairs(&pairs, next, 4);
  assert_int_equal(hs_pair_sequence(names, 5, 2, 0, &pairs), HS_OK);
  expect_pairs(&pairs, two, 7);
  /* Images at distances 2^0 and 2^1 in this order are already among the next two. */
  assert_int_equal(hs_pair_sequence(names, 5, 2, 1, &pairs), HS_OK);
  expect_pairs(&pairs, two, 7);
  assert_int_equal(hs_pair_sequence(names, 5, 1000000, 1, &pairs), HS_OK);
  assert_int_equal(pairs.count, 10);
}

TEST(quadratic_adds_powers_of_two) {
  char texts[40][8];
  const char *names[40];
  scoped_pairs pairs = {0};
  (void)state;
  for (int i = 0; i < 40; i++) {
    snprintf(texts[i], sizeof texts[i], "%d", i); /* the numbers have no zeros in front: 2 comes before 10 */
    names[i] = texts[i];
  }
  assert_int_equal(hs_pair_sequence(names, 40, 5, 1, &pairs), HS_OK);
  size_t at = 0;
  for (uint32_t i = 0; i < 40; i++) {
    for (uint32_t k = i + 1; k < 40; k++) {
      if (k - i > 5 && k - i != 8 && k - i != 16) continue;
      assert_int_equal(pairs.pairs[at].first, i);
      assert_int_equal(pairs.pairs[at].second, k);
      at++;
    }
  }
  assert_int_equal(pairs.count, at);
}

TEST(hard_names) {
  static const char *const names[] = {
      "x", "x", "", "9", "10", "00", "0", "\xc3\xa9", "99999999999999999999999", "99999999999999999999998"};
  static const uint32_t none[1][2] = {{0, 0}};
  /* natural order: "" "0" "00" "9" "10" ...98 ...99 "x" "x" "é" */
  static const uint32_t next[][2] = {{0, 1}, {0, 8}, {1, 7}, {2, 6}, {3, 4}, {3, 5}, {4, 9}, {5, 6}, {8, 9}};
  scoped_pairs pairs = {0};
  (void)state;
  assert_int_equal(hs_pair_sequence(names, 10, 1, 0, &pairs), HS_OK);
  expect_pairs(&pairs, next, 9);
  assert_int_equal(hs_pair_sequence(names, 1, 3, 1, &pairs), HS_OK);
  expect_pairs(&pairs, none, 0);
  assert_int_equal(hs_pair_sequence(NULL, 0, 3, 1, &pairs), HS_OK);
  assert_int_equal(hs_pair_sequence(names, 10, 0, 1, &pairs), HS_OK);
  expect_pairs(&pairs, none, 0);
  assert_int_equal(hs_pair_sequence(NULL, 2, 3, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_sequence(names, 2, 3, 2, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_sequence(names, 2, 3, 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_sequence((const char *const[]){"a", NULL}, 2, 3, 1, &pairs), HS_ERR_ARGUMENT);
  hs_image_pairs_free(NULL);
}

/* ------------------------------------------------------------------ positions */

/* Makes clusters of positions along a road. Some images share a position, some have none. */
static void make_places(double *places) {
  uint32_t state = 9;
  for (int i = 0; i < PLACES; i++) {
    for (int k = 0; k < 3; k++)
      places[3 * i + k] = (double)(feature_maker_random(&state) % 2000) * (k == 1 ? 0.5 : 0.02);
    if (i % 7 == 3) memcpy(places + 3 * i, places + 3 * (i - 1), 3 * sizeof *places);
    if (i % 11 == 5) places[3 * i + (i % 3)] = i % 2 != 0 ? NAN : INFINITY;
  }
}

static double apart(const double *places, size_t a, size_t b) {
  double squares = 0.0;
  for (size_t k = 0; k < 3; k++) {
    const double d = places[3 * a + k] - places[3 * b + k];
    squares += d * d;
  }
  return squares >= 0.0 ? sqrt(squares) : INFINITY;
}

/* Returns the number of images that are nearer to a than b is, or equally near with a smaller index. */
static size_t rank_of(const double *places, size_t a, size_t b) {
  const double distance = apart(places, a, b);
  size_t nearer = 0;
  for (size_t i = 0; i < PLACES; i++) {
    const double other = apart(places, a, i);
    nearer += i != a && (other < distance || (other == distance && i < b));
  }
  return nearer;
}

static void check_nearby(const double *places, double metres, uint32_t at_most) {
  scoped_pairs pairs = {0};
  size_t at = 0;
  assert_int_equal(hs_pair_nearby(places, PLACES, metres, at_most, &pairs), HS_OK);
  for (uint32_t i = 0; i < PLACES; i++) {
    for (uint32_t k = i + 1; k < PLACES; k++) {
      const double distance = apart(places, i, k);
      if (!(distance <= metres) || !isfinite(distance)) continue;
      if (at_most > 0 && rank_of(places, i, k) >= at_most && rank_of(places, k, i) >= at_most) continue;
      assert_true(at < pairs.count);
      assert_int_equal(pairs.pairs[at].first, i);
      assert_int_equal(pairs.pairs[at].second, k);
      at++;
    }
  }
  assert_int_equal(pairs.count, at);
}

TEST(nearby_is_exact) {
  double places[3 * PLACES];
  hs_image_pairs pairs = {0};
  (void)state;
  make_places(places);
  check_nearby(places, 25.0, 0);
  check_nearby(places, 0.0, 0);
  check_nearby(places, 1e9, 0);
  check_nearby(places, 60.0, 3);
  check_nearby(places, 1e9, 1);
  check_nearby(places, 25.0, PLACES);
  assert_int_equal(hs_pair_nearby(places, PLACES, -1.0, 0, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_nearby(places, PLACES, NAN, 0, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_nearby(NULL, 1, 1.0, 0, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_nearby(places, PLACES, 1.0, 0, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_nearby(NULL, 0, 1.0, 0, &pairs), HS_OK);
  assert_int_equal(pairs.count, 0);
}

TEST(places_on_earth) {
  double place[3], other[3];
  (void)state;
  assert_int_equal(hs_earth_place(0.0, 0.0, 0.0, place), HS_OK);
  assert_true(place[0] == 6378137.0 && place[1] == 0.0 && place[2] == 0.0);
  assert_int_equal(hs_earth_place(-90.0, 40.0, 10.0, place), HS_OK);
  assert_true(fabs(place[0]) < 1e-8 && fabs(place[1]) < 1e-8 && fabs(place[2] + 6356762.314245179) < 1e-6);
  /* Quito, Sydney and Reykjavik cover the signs of each hemisphere. */
  assert_int_equal(hs_earth_place(-33.8688, 151.2093, 0.0, place), HS_OK);
  assert_true(place[0] < 0.0 && place[1] > 0.0 && place[2] < 0.0);
  assert_int_equal(hs_earth_place(64.1466, -21.9426, 0.0, place), HS_OK);
  assert_true(place[0] > 0.0 && place[1] < 0.0 && place[2] > 0.0);
  /* At 45 degrees, a thousandth of a degree to the north is 111.132 m, by the meridian's curvature there. */
  assert_int_equal(hs_earth_place(45.0, 11.0, 0.0, place), HS_OK);
  assert_int_equal(hs_earth_place(45.001, 11.0, 0.0, other), HS_OK);
  const double there[6] = {place[0], place[1], place[2], other[0], other[1], other[2]};
  assert_true(fabs(apart(there, 0, 1) - 111.132) < 0.001);
  assert_int_equal(hs_earth_place(90.5, 0.0, 0.0, place), HS_ERR_ARGUMENT);
  assert_int_equal(hs_earth_place(0.0, NAN, 0.0, place), HS_ERR_ARGUMENT);
  assert_int_equal(hs_earth_place(0.0, 0.0, INFINITY, place), HS_ERR_ARGUMENT);
  assert_int_equal(hs_earth_place(0.0, 0.0, 0.0, NULL), HS_ERR_ARGUMENT);
}

/* ------------------------------------------------------------------ vectors */

static void make_vectors(int8_t *vectors) {
  uint32_t state = 4;
  for (int i = 0; i < VECTORS * LENGTH; i++) vectors[i] = (int8_t)(feature_maker_random(&state) % 255 - 127);
  memset(vectors + 10 * LENGTH, 0, LENGTH);                     /* an image without features */
  memcpy(vectors + 20 * LENGTH, vectors + 21 * LENGTH, LENGTH); /* two images with the same vector */
  memset(vectors + 30 * LENGTH, -128, LENGTH);
}

static double cosine(const int8_t *vectors, size_t a, size_t b) {
  double product = 0.0, squares = 0.0;
  for (size_t i = 0; i < LENGTH; i++) {
    product += (double)vectors[a * LENGTH + i] * vectors[b * LENGTH + i];
    squares += (double)vectors[b * LENGTH + i] * vectors[b * LENGTH + i];
  }
  return product * (1.0 / sqrt(squares));
}

static bool proposes(const int8_t *vectors, size_t a, size_t b, size_t neighbors) {
  const double its = cosine(vectors, a, b);
  size_t better = 0;
  for (size_t i = 0; i < VECTORS; i++) {
    if (i == a || i == 10) continue;
    const double other = cosine(vectors, a, i);
    better += other > its || (other == its && i < b);
  }
  return better < neighbors;
}

TEST(similar_is_exact_with_any_threads) {
  static const uint32_t neighbors[] = {1, 7, VECTORS - 1, 5000};
  static const int32_t threads[] = {0, 1, 3};
  SCOPED_MEMORY int8_t *vectors = malloc(VECTORS * LENGTH);
  (void)state;
  assert_non_null(vectors);
  make_vectors(vectors);
  for (int t = 0; t < 3; t++) {
    hs_options o = extraction_options(HS_PROFILE_LOWE);
    o.threads = threads[t];
    scoped_context *context = threads[t] > 0 ? extraction_context(&o) : NULL;
    for (int n = 0; n < 4; n++) {
      scoped_pairs pairs = {0};
      size_t at = 0;
      assert_int_equal(hs_pair_similar(context, vectors, VECTORS, LENGTH, neighbors[n], &pairs), HS_OK);
      for (uint32_t i = 0; i < VECTORS; i++) {
        for (uint32_t k = i + 1; k < VECTORS; k++) {
          if (i == 10 || k == 10) continue;
          if (!proposes(vectors, i, k, neighbors[n]) && !proposes(vectors, k, i, neighbors[n])) continue;
          assert_true(at < pairs.count && pairs.pairs[at].first == i && pairs.pairs[at].second == k);
          at++;
        }
      }
      assert_int_equal(pairs.count, at);
    }
  }
}

/* Checks the vectors of an image and its nearest neighbours, weighted by their cosines. All vectors are scaled to a
 * maximum magnitude of 127. */
static void check_blended(const int8_t *vectors, const int8_t *blended, size_t image, size_t neighbors) {
  double sums[LENGTH], largest = 0.0, own = 0.0;
  for (size_t i = 0; i < LENGTH; i++) own += (double)vectors[image * LENGTH + i] * vectors[image * LENGTH + i];
  for (size_t i = 0; i < LENGTH; i++) sums[i] = vectors[image * LENGTH + i] / sqrt(own);
  for (size_t k = 0; k < VECTORS; k++) {
    if (k == image || k == 10 || !proposes(vectors, image, k, neighbors)) continue;
    const double weight = cosine(vectors, image, k) / sqrt(own);
    double squares = 0.0;
    for (size_t i = 0; i < LENGTH; i++) squares += (double)vectors[k * LENGTH + i] * vectors[k * LENGTH + i];
    for (size_t i = 0; i < LENGTH && weight > 0.0; i++) sums[i] += weight * vectors[k * LENGTH + i] / sqrt(squares);
  }
  for (size_t i = 0; i < LENGTH; i++) largest = fmax(largest, fabs(sums[i]));
  for (size_t i = 0; i < LENGTH; i++)
    assert_true(fabs(blended[image * LENGTH + i] - sums[i] * 127.0 / largest) < 0.5001);
}

TEST(blending_adds_the_nearest) {
  int8_t *vectors = malloc(VECTORS * LENGTH), *blended[3];
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.threads = 3;
  hs_context *context = extraction_context(&o);
  (void)state;
  assert_non_null(vectors);
  make_vectors(vectors);
  for (int i = 0; i < 3; i++) {
    blended[i] = malloc(VECTORS * LENGTH);
    assert_non_null(blended[i]);
    assert_int_equal(hs_blend_similar(i == 1 ? context : NULL, vectors, VECTORS, LENGTH, i < 2 ? 4 : 0, blended[i]),
                     HS_OK);
  }
  assert_memory_equal(blended[0], blended[1], VECTORS * LENGTH);
  assert_memory_equal(blended[2], vectors, VECTORS * LENGTH);
  for (size_t i = 0; i < VECTORS; i++)
    if (i != 10) check_blended(vectors, blended[0], i, 4);
  for (size_t i = 0; i < LENGTH; i++) assert_int_equal(blended[0][10 * LENGTH + i], 0);
  assert_int_equal(hs_blend_similar(NULL, NULL, 0, 1, 3, NULL), HS_OK);
  assert_int_equal(hs_blend_similar(NULL, vectors, 1, LENGTH, 3, blended[0]), HS_OK);
  assert_memory_equal(blended[0], vectors, LENGTH);
  assert_int_equal(hs_blend_similar(NULL, vectors, 2, LENGTH, 3, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_blend_similar(NULL, vectors, 2, 0, 3, blended[0]), HS_ERR_ARGUMENT);
  for (int i = 0; i < 3; i++) free(blended[i]);
  hs_destroy(context);
  free(vectors);
}

TEST(similar_of_few_and_wrong_arguments) {
  const int8_t vectors[2] = {3, 5};
  scoped_pairs pairs = {0};
  (void)state;
  assert_int_equal(hs_pair_similar(NULL, vectors, 2, 1, 9, &pairs), HS_OK);
  assert_int_equal(pairs.count, 1);
  assert_int_equal(hs_pair_similar(NULL, vectors, 1, 1, 9, &pairs), HS_OK);
  assert_int_equal(pairs.count, 0);
  assert_int_equal(hs_pair_similar(NULL, NULL, 0, 1, 9, &pairs), HS_OK);
  assert_int_equal(hs_pair_similar(NULL, vectors, 2, 1, 0, &pairs), HS_OK);
  assert_int_equal(pairs.count, 0);
  assert_int_equal(hs_pair_similar(NULL, vectors, 2, 0, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_similar(NULL, vectors, 2, 65537, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_similar(NULL, NULL, 2, 1, 1, &pairs), HS_ERR_ARGUMENT);
  assert_int_equal(hs_pair_similar(NULL, vectors, 2, 1, 1, NULL), HS_ERR_ARGUMENT);
}

/* ------------------------------------------------------------------ memory */

static hs_status all_three(hs_image_pairs *pairs, const double *places, const int8_t *vectors) {
  static const char *const names[] = {"c", "a", "b"};
  hs_status status = hs_pair_sequence(names, 3, 2, 0, pairs);
  if (status == HS_OK) status = hs_pair_nearby(places, PLACES, 50.0, 2, pairs);
  if (status == HS_OK) status = hs_pair_similar(NULL, vectors, VECTORS, LENGTH, 3, pairs);
  return status;
}

TEST(every_allocation_may_fail) {
  double places[3 * PLACES];
  SCOPED_MEMORY int8_t *vectors = malloc(VECTORS * LENGTH);
  counted_allocator counter = {.fill = 0xa5};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_status status = HS_ERR_MEMORY;
  (void)state;
  assert_non_null(vectors);
  make_places(places);
  make_vectors(vectors);
  for (size_t fail_at = 1; status != HS_OK; fail_at++) {
    hs_image_pairs pairs = {.allocator = &allocator};
    counter = (counted_allocator){.fail_at = fail_at, .fill = 0xa5};
    assert_true(fail_at < 100);
    status = all_three(&pairs, places, vectors);
    assert_true(status == HS_OK || (status == HS_ERR_MEMORY && pairs.count == 0));
    hs_image_pairs_free(&pairs);
    assert_int_equal(counter.alive, 0);
  }
  assert_true(counter.made > 8);
}
