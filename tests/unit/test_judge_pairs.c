/*
 * Judges whether verified pairs show the same scene, on collections with numbered points, so that the truth is known.
 */

#include "tests/support/test.h"

#include "pipeline/base/number_tools.h"
#include "pipeline/include/hartsift_pairs.h"

enum { PAIRS = 32, INLIERS = 200, FEATURES = 1000, IMAGES = 8, MESSAGE_BYTES = 128 };

/* Feature k of an image shows point k, except in pairs of look-alikes. */
typedef struct collection {
  size_t feature_counts[IMAGES];
  size_t image_count, pair_count, calls;
  hs_judged_pair pairs[PAIRS];
  uint32_t inliers[PAIRS][INLIERS][2];
  hs_status failure; /* status of the read that fails */
  size_t fail_at;
  char message[MESSAGE_BYTES];
} collection;

static hs_status read_inliers(void *user, size_t pair, uint32_t *inliers) {
  collection *c = user;
  if (c->calls++ == c->fail_at && c->failure != HS_OK) return c->failure;
  memcpy(inliers, c->inliers[pair], c->pairs[pair].inlier_count * sizeof c->inliers[pair][0]);
  return HS_OK;
}

static int set_up(void **state) {
  collection *c = calloc(1, sizeof *c);
  if (!c) return -1;
  for (size_t i = 0; i < IMAGES; i++) c->feature_counts[i] = FEATURES;
  c->image_count = IMAGES;
  *state = c;
  return 0;
}

static int tear_down(void **state) {
  free(*state);
  return 0;
}

#define TEST_ON_FIXTURE(NAME) TEST_GIVEN(NAME, collection, c, set_up, tear_down)

/* Adds a pair. Its first image shows points from number `from` on; in the second, their numbers are larger by `shift`,
 * which is 0 for a correct pair. `percent` of its matches are inliers. */
static hs_judged_pair *add(collection *c, uint32_t a, uint32_t b, size_t inliers, int percent, uint32_t from,
                           uint32_t shift) {
  hs_judged_pair *const pair = &c->pairs[c->pair_count];
  *pair = (hs_judged_pair){
      .images = {a, b}, .inlier_count = inliers, .match_count = inliers * 100 / (size_t)percent, .verdict = 77};
  for (uint32_t i = 0; i < inliers; i++) {
    c->inliers[c->pair_count][i][0] = from + i;
    c->inliers[c->pair_count][i][1] = from + i + shift;
  }
  c->pair_count++;
  return pair;
}

static hs_judge_options given_options(collection *c) {
  hs_judge_options o;
  assert_int_equal(hs_judge_options_init(&o), HS_OK);
  strcpy(c->message, "an earlier one");
  o.message = c->message;
  o.message_bytes = sizeof c->message;
  return o;
}

static hs_status judge_with(collection *c, const hs_judge_options *options) {
  const hs_pair_inliers source = {
      .feature_counts = c->feature_counts, .image_count = c->image_count, .read = read_inliers, .user = c};
  c->calls = 0;
  return hs_judge_pairs(&source, c->pairs, c->pair_count, options);
}

static void judge(collection *c) {
  const hs_judge_options o = given_options(c);
  assert_int_equal(judge_with(c, &o), HS_OK);
  assert_string_equal(c->message, "");
}

/* Images 0 to 3 show the points up to 400, images 4 to 7 the points from 600 on, each four in a chain of sure pairs. */
static void add_two_places(collection *c) {
  for (uint32_t i = 0; i < 3; i++) {
    add(c, i, i + 1, 200, 80, 0, 0);
    add(c, i, i + 1, 200, 80, 200, 0);
    add(c, i + 4, i + 5, 200, 80, 600, 0);
  }
}

static void assert_verdict(const collection *c, size_t pair, hs_pair_verdict verdict, size_t on_tracks,
                           size_t supported) {
  assert_int_equal(c->pairs[pair].verdict, verdict);
  assert_int_equal(c->pairs[pair].on_tracks, on_tracks);
  assert_int_equal(c->pairs[pair].supported, supported);
}

/* Adds one pair of each kind, with its expected class. */
TEST_ON_FIXTURE(test_verdicts) {
  add_two_places(c);
  const size_t others = c->pair_count;
  add(c, 0, 3, 60, 40, 100, 0);  /* correct: confirmed through two images */
  add(c, 0, 2, 60, 40, 0, 100);  /* a look-alike: tracks join its features to different points */
  add(c, 0, 2, 60, 40, 800, 0);  /* points that no sure pair contains */
  add(c, 1, 6, 60, 40, 0, 600);  /* no other pair links the two groups */
  add(c, 0, 1, 100, 59, 0, 100); /* all tracks contradict it, and it is just below sure */
  add(c, 0, 1, 100, 60, 0, 100); /* sure */
  judge(c);
  for (size_t p = 0; p < others; p++) assert_verdict(c, p, HS_PAIR_SURE, 0, 0);
  assert_verdict(c, others + 5, HS_PAIR_SURE, 0, 0);
  assert_verdict(c, others + 3, HS_PAIR_ONLY_LINK, 60, 0);
  assert_int_equal(c->calls, c->pair_count);
  /* The sure pair of look-alikes has joined tracks of points that are 100 apart. Without that pair the tracks show the
   * truth: */
  c->pair_count--;
  judge(c);
  assert_verdict(c, others, HS_PAIR_SUPPORTED, 60, 60);
  assert_verdict(c, others + 1, HS_PAIR_DOUBTFUL, 60, 0);
  assert_verdict(c, others + 2, HS_PAIR_SUPPORTED, 0, 0);
  assert_verdict(c, others + 4, HS_PAIR_DOUBTFUL, 100, 0);
}

/* Of pair 2, `supported` inliers get one track, `denied` inliers get two, and the others have a feature on no track. */
static void set_support(collection *c, uint32_t supported, uint32_t denied) {
  for (uint32_t i = 0; i < 100; i++) {
    c->inliers[2][i][0] = i < supported + denied ? i : 500 + i;
    c->inliers[2][i][1] = i < supported ? i : i + 1;
  }
}

/* Checks the limits of each rule from both sides. */
TEST_ON_FIXTURE(test_thresholds) {
  add(c, 0, 1, 200, 80, 0, 0);
  add(c, 1, 2, 200, 80, 0, 0);
  hs_judged_pair *weak = add(c, 0, 2, 100, 40, 0, 0);
  static const struct {
    uint32_t supported, denied;
    size_t matches;
    double least_support, doubtful_share;
    hs_pair_verdict verdict;
  } cases[] = {
      {15, 1, 250, 0.15, 0.5, HS_PAIR_SUPPORTED},  {14, 1, 250, 0.15, 0.5, HS_PAIR_DOUBTFUL},
      {14, 0, 250, 0.15, 0.5, HS_PAIR_SUPPORTED},  {0, 0, 250, 0.15, 0.5, HS_PAIR_SUPPORTED},
      {14, 1, 250, 0.125, 0.5, HS_PAIR_SUPPORTED}, {14, 1, 200, 0.15, 0.5, HS_PAIR_SUPPORTED},
      {14, 1, 200, 0.15, 0.51, HS_PAIR_DOUBTFUL},  {20, 20, 250, 0.15, 0.5, HS_PAIR_SUPPORTED},
      {20, 21, 250, 0.15, 0.5, HS_PAIR_DOUBTFUL},  {8, 9, 250, 0.05, 0.5, HS_PAIR_SUPPORTED},
      {8, 10, 250, 0.05, 0.5, HS_PAIR_DOUBTFUL},   {20, 21, 200, 0.15, 0.5, HS_PAIR_SUPPORTED},
      {0, 3, 180, 0.15, 0.5, HS_PAIR_SUPPORTED},   {0, 4, 180, 0.15, 0.5, HS_PAIR_DOUBTFUL},
      {1, 99, 180, 0.15, 0.5, HS_PAIR_SUPPORTED},  {0, 100, 160, 0.15, 0.5, HS_PAIR_SURE},
      {0, 1, 250, 0.0, 0.5, HS_PAIR_SUPPORTED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    hs_judge_options o = given_options(c);
    o.least_support = cases[i].least_support;
    o.doubtful_share = cases[i].doubtful_share;
    weak->match_count = cases[i].matches;
    set_support(c, cases[i].supported, cases[i].denied);
    assert_int_equal(judge_with(c, &o), HS_OK);
    const bool is_sure = cases[i].verdict == HS_PAIR_SURE;
    assert_verdict(c, 2, cases[i].verdict, is_sure ? 0 : cases[i].supported + cases[i].denied,
                   is_sure ? 0 : cases[i].supported);
  }
  weak->match_count = 0; /* a count below the number of inliers means that all matches are inliers */
  hs_judge_options o = given_options(c);
  judge(c);
  assert_verdict(c, 2, HS_PAIR_SURE, 0, 0);
  o.sure_inliers = 101;
  set_support(c, 0, 4);
  assert_int_equal(judge_with(c, &o), HS_OK);
  assert_verdict(c, 2, HS_PAIR_SUPPORTED, 4, 0);
}

/* If a sequence has few features, no pair is sure, and none is doubtful. */
TEST_ON_FIXTURE(test_weak_collections) {
  for (uint32_t i = 0; i + 1 < IMAGES; i++) add(c, i, i + 1, 99, 95, 0, i == 3 ? 7 : 0);
  add(c, 0, 7, 50, 30, 0, 0);
  judge(c);
  for (size_t p = 0; p < c->pair_count; p++) assert_verdict(c, p, HS_PAIR_ONLY_LINK, 0, 0);
}

/* In a chain of sure pairs no point is seen by more than three images, so a weak pair of the chain's ends may close a
 * loop. Images three steps apart could have shared tracks. */
TEST_ON_FIXTURE(test_loops) {
  for (uint32_t i = 0; i + 1 < IMAGES; i++) {
    add(c, i, i + 1, 100, 80, 100 * i, 0);
    if (i + 2 < IMAGES) add(c, i + 1, i + 2, 100, 80, 100 * i, 0);
  }
  const size_t others = c->pair_count;
  for (uint32_t step = 2; step < IMAGES; step++) { /* features of points that only the second image has */
    add(c, 0, step, 50, 40, 0, 100 * (step - 1));
    add(c, step, 0, 50, 40, 100 * (step - 1), 0);
    for (uint32_t i = 0; i < 50; i++) c->inliers[c->pair_count - 1][i][1] = i;
  }
  judge(c);
  for (size_t p = 0; p < others; p++) assert_verdict(c, p, HS_PAIR_SURE, 0, 0);
  for (uint32_t step = 2; step < IMAGES; step++)
    for (size_t k = 0; k < 2; k++)
      assert_verdict(c, others + 2 * (step - 2) + k, step <= 3 ? HS_PAIR_DOUBTFUL : HS_PAIR_ONLY_LINK, 50, 0);
}

/* The order of pairs, and of the images in each pair, is shuffled. Reading the neighbourhood of one image must not
 * change the result for another. */
TEST_ON_FIXTURE(test_surroundings_in_turn) {
  for (uint32_t k = 0; k < 3; k++) add(c, k, k + 1, 200, 90, 0, 0);
  for (int round = 0; round < 3; round++) {
    add(c, 0, 2, 40, 40, 0, 100);
    add(c, 3, 1, 40, 40, 0, 100);
  }
  judge(c);
  for (size_t p = 3; p < c->pair_count; p++) assert_verdict(c, p, HS_PAIR_DOUBTFUL, 40, 0);
}

TEST_ON_FIXTURE(test_any_order) {
  SCOPED_MEMORY collection *other = calloc(1, sizeof *other);
  uint64_t random = 5;
  assert_non_null(other);
  add_two_places(c);
  for (uint32_t k = 0; k < 8; k++) add(c, k % 4, (k + 1 + k / 4) % 4, 20 + 10 * k, 40, 13 * k, k % 2 == 0 ? 0 : 50);
  for (uint32_t k = 0; k < 4; k++) add(c, k, k + 4, 30, 40, 7 * k, 600);
  judge(c);
  for (int round = 0; round < 20; round++) {
    size_t order[PAIRS];
    for (size_t p = 0; p < c->pair_count; p++) {
      const size_t place = (size_t)(splitmix64_mix(random += SPLITMIX64_STEP) % (p + 1));
      order[p] = order[place];
      order[place] = p;
    }
    *other = *c;
    for (size_t p = 0; p < c->pair_count; p++) {
      const hs_judged_pair *const from = &c->pairs[order[p]];
      other->pairs[p] = *from;
      other->pairs[p].verdict = 9;
      if (round % 2 == 1) other->pairs[p].images = (hs_image_pair){from->images.second, from->images.first};
      for (size_t i = 0; i < from->inlier_count; i++)
        for (size_t side = 0; side < 2; side++)
          other->inliers[p][i][side] = c->inliers[order[p]][i][round % 2 == 1 ? 1 - side : side];
    }
    judge(other);
    for (size_t p = 0; p < c->pair_count; p++) {
      const hs_judged_pair *const expected = &c->pairs[order[p]];
      assert_verdict(other, p, expected->verdict, expected->on_tracks, expected->supported);
    }
  }
}

TEST_ON_FIXTURE(test_empty) {
  judge(c);
  c->image_count = 0;
  judge(c);
  const hs_pair_inliers nothing = {.read = read_inliers, .user = c};
  assert_int_equal(hs_judge_pairs(&nothing, NULL, 0, NULL), HS_OK);
  c->image_count = IMAGES;
  add_two_places(c);
  add(c, 0, 2, 0, 50, 0, 0); /* without inliers there is nothing to doubt */
  add(c, 0, 6, 0, 50, 0, 0);
  c->feature_counts[2] = FEATURES;
  judge(c);
  assert_verdict(c, c->pair_count - 2, HS_PAIR_SUPPORTED, 0, 0);
  assert_verdict(c, c->pair_count - 1, HS_PAIR_ONLY_LINK, 0, 0);
}

static void assert_refused(collection *c, hs_status status, const char *message) {
  const hs_judge_options o = given_options(c);
  assert_int_equal(judge_with(c, &o), status);
  assert_non_null(strstr(c->message, message));
}

TEST_ON_FIXTURE(test_wrong_collections) {
  add_two_places(c);
  add(c, 0, 3, 60, 40, 100, 0);
  c->inliers[0][5][0] = FEATURES;
  assert_refused(c, HS_ERR_ARGUMENT, "beyond");
  c->inliers[0][5][0] = FEATURES - 1;
  c->inliers[c->pair_count - 1][59][1] = UINT32_MAX;
  assert_refused(c, HS_ERR_ARGUMENT, "beyond");
  c->inliers[c->pair_count - 1][59][1] = 159;
  judge(c);
  for (size_t i = 0; i < IMAGES; i++) {
    c->feature_counts[i] = 0; /* an image without features cannot have inliers */
    assert_refused(c, HS_ERR_ARGUMENT, "beyond");
    c->feature_counts[i] = FEATURES;
  }
  const hs_image_pair wrong[] = {{0, IMAGES}, {UINT32_MAX, 1}, {3, 3}};
  for (size_t i = 0; i < 3; i++) {
    c->pairs[2].images = wrong[i];
    assert_refused(c, HS_ERR_ARGUMENT, "two images");
  }
  c->pairs[2].images = (hs_image_pair){4, 5};
  c->pairs[2].reserved[3] = 1;
  assert_refused(c, HS_ERR_ARGUMENT, "reserved");
  c->pairs[2].reserved[3] = 0;
  const hs_pair_inliers mute = {.feature_counts = c->feature_counts, .image_count = IMAGES};
  const hs_pair_inliers blind = {.image_count = IMAGES, .read = read_inliers};
  assert_int_equal(hs_judge_pairs(NULL, c->pairs, 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_judge_pairs(&mute, c->pairs, 1, NULL), HS_ERR_ARGUMENT);
  assert_int_equal(hs_judge_pairs(&blind, c->pairs, 1, NULL), HS_ERR_ARGUMENT);
  c->pair_count = 0;
  const hs_pair_inliers source = {.feature_counts = c->feature_counts, .image_count = IMAGES, .read = read_inliers};
  assert_int_equal(hs_judge_pairs(&source, NULL, 1, NULL), HS_ERR_ARGUMENT);
}

/* Impossible counts are refused before memory is requested. */
TEST_ON_FIXTURE(test_sizes_beyond_limits) {
  scoped_counter counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_judge_options o = given_options(c);
  o.allocator = &allocator;
  const size_t counts[][2] = {{UINT32_MAX, 1}, {SIZE_MAX, 1}, {SIZE_MAX - 1, SIZE_MAX}, {1, SIZE_MAX}};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    c->feature_counts[0] = counts[i][0];
    c->feature_counts[1] = counts[i][1];
    assert_int_equal(judge_with(c, &o), HS_ERR_LIMIT);
    assert_non_null(strstr(c->message, "2^32"));
  }
  c->feature_counts[0] = c->feature_counts[1] = FEATURES;
  add_two_places(c);
  const size_t inliers[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8};
  for (size_t i = 0; i < sizeof inliers / sizeof inliers[0]; i++) {
    c->pairs[4].inlier_count = inliers[i];
    assert_int_equal(judge_with(c, &o), HS_ERR_MEMORY);
    assert_int_equal(c->calls, 0);
  }
  const hs_pair_inliers many = {
      .feature_counts = c->feature_counts, .image_count = UINT32_MAX, .read = read_inliers, .user = c};
  assert_int_equal(hs_judge_pairs(&many, NULL, 0, &o), HS_ERR_LIMIT);
}

TEST_ON_FIXTURE(test_options) {
  add_two_places(c);
  const double wrong[] = {-0.01, 1.01, -(double)INFINITY, (double)NAN};
  for (size_t field = 0; field < 3; field++) {
    static const char *const names[] = {"sure_share", "doubtful_share", "least_support"};
    for (size_t i = 0; i < 4; i++) {
      hs_judge_options o = given_options(c);
      *(field == 0 ? &o.sure_share : field == 1 ? &o.doubtful_share : &o.least_support) = wrong[i];
      assert_int_equal(judge_with(c, &o), HS_ERR_OPTION);
      assert_non_null(strstr(c->message, names[field]));
    }
    for (int end = 0; end < 2; end++) {
      hs_judge_options o = given_options(c);
      *(field == 0 ? &o.sure_share : field == 1 ? &o.doubtful_share : &o.least_support) = end;
      assert_int_equal(judge_with(c, &o), HS_OK);
    }
  }
  hs_judge_options o = given_options(c);
  o.struct_size = 0;
  assert_int_equal(judge_with(c, &o), HS_ERR_OPTION);
  assert_int_equal(hs_judge_options_init(NULL), HS_ERR_ARGUMENT);
}

/* A reader's error is returned wherever it occurs, with all memory released. So is each failing allocation. */
TEST_ON_FIXTURE(test_failures) {
  counted_allocator counter = {.fill = 0xa5};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_judge_options o = given_options(c);
  o.allocator = &allocator;
  add_two_places(c);
  add(c, 0, 3, 60, 40, 100, 0);
  c->failure = HS_ERR_IO;
  for (c->fail_at = 0; c->fail_at < c->pair_count; c->fail_at++) {
    assert_int_equal(judge_with(c, &o), HS_ERR_IO);
    assert_int_equal(c->calls, c->fail_at + 1);
    assert_int_equal(counter.alive, 0);
  }
  c->failure = HS_OK;
  size_t failed = 0;
  for (bool done = false; !done; failed++) {
    counter.made = 0;
    counter.fail_at = failed + 1;
    const hs_status status = judge_with(c, &o);
    done = status == HS_OK;
    if (!done) assert_int_equal(status, HS_ERR_MEMORY);
    assert_int_equal(counter.alive, 0);
  }
  assert_int_equal(failed, 9); /* eight arrays are allocated, so the ninth attempt succeeds */
  assert_verdict(c, c->pair_count - 1, HS_PAIR_SUPPORTED, 60, 60);
  assert_true(counter.most_bytes < 5 * IMAGES * FEATURES + 4096 + INLIERS * 8);
}
