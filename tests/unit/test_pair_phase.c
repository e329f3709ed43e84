/*
 * Phases of runs over many pairs: every pair belongs to a phase. No phase exceeds the memory, except for a single pair
 * that is too large. Images are loaded a bounded number of times; if all pairs are of neighbouring images, once.
 */
#include "tests/support/test.h"

#include "pipeline/matching/pairs/pair_run.h"

enum { IMAGES = 60, PAIRS_MAX = IMAGES * IMAGES };

typedef struct plan_case {
  hs_image_pair pairs[PAIRS_MAX];
  size_t count;
  uint64_t bytes[PAIR_SPACES][IMAGES], budget[PAIR_SPACES];
  bool has_space[PAIR_SPACES], in_order;
} plan_case;

/* Returns the bytes of a phase's images in a memory space. */
static uint64_t taken(const plan_case *c, const pair_phase *phase, int space) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < IMAGES; i++)
    if (phase->marks[i] == phase->number) sum += c->bytes[space][i];
  return sum;
}

static size_t images_of(const pair_phase *phase) {
  size_t count = 0;
  for (uint32_t i = 0; i < IMAGES; i++) count += phase->marks[i] == phase->number;
  return count;
}

static void check_phase(const plan_case *c, const pair_phase *phase, const uint8_t *is_done, size_t first) {
  assert_true(phase->count > 0);
  assert_int_equal(phase->pairs[0], first);
  for (size_t k = 0; k < phase->count; k++) {
    const hs_image_pair *pair = &c->pairs[phase->pairs[k]];
    assert_false(is_done[phase->pairs[k]]);
    if (k > 0) assert_true(phase->pairs[k] > phase->pairs[k - 1]);
    assert_int_equal(phase->marks[pair->first], phase->number);
    assert_int_equal(phase->marks[pair->second], phase->number);
  }
  for (size_t k = 1; c->in_order && k < phase->count; k++)
    for (size_t i = phase->pairs[k - 1] + 1; i < phase->pairs[k]; i++) assert_true(is_done[i]);
  for (int s = 0; s < PAIR_SPACES; s++)
    if (c->has_space[s] && taken(c, phase, s) > c->budget[s]) assert_int_equal(images_of(phase), 2);
}

/* Plans phases until all pairs are done. Returns how many images were loaded, because the previous phase did not have
 * them. */
static size_t work_off(const plan_case *c) {
  static uint8_t is_done[PAIRS_MAX];
  static uint32_t order[PAIRS_MAX];
  uint32_t marks[IMAGES] = {0};
  pair_phase phase = {.marks = marks, .pairs = order};
  size_t head = 0, brought = 0;
  memset(is_done, 0, sizeof is_done);
  while (head < c->count) {
    uint32_t before[IMAGES];
    const uint32_t number = phase.number;
    memcpy(before, marks, sizeof before);
    const pair_phase_request request = {
        .pairs = c->pairs,
        .is_done = is_done,
        .begin = head,
        .end = c->count,
        .horizon = c->count,
        .bytes = {c->has_space[0] ? c->bytes[0] : NULL, c->has_space[1] ? c->bytes[1] : NULL},
        .budget = {c->budget[0], c->budget[1]},
        .in_order = c->in_order};
    pair_phase_plan(&request, &phase);
    check_phase(c, &phase, is_done, head);
    for (uint32_t i = 0; i < IMAGES; i++) brought += marks[i] == phase.number && (number == 0 || before[i] != number);
    for (size_t k = 0; k < phase.count; k++) is_done[phase.pairs[k]] = 1;
    while (head < c->count && is_done[head]) head++;
  }
  return brought;
}

static plan_case *make_case(uint64_t each, uint64_t budget) {
  plan_case *c = calloc(1, sizeof *c);
  assert_non_null(c);
  for (int i = 0; i < IMAGES; i++) c->bytes[0][i] = each;
  c->budget[0] = budget;
  c->has_space[0] = true;
  return c;
}

TEST(all_pairs) {
  for (uint64_t room = 2; room <= IMAGES + 4; room += 3) {
    SCOPED_MEMORY plan_case *c = make_case(100, 100 * room);
    for (uint32_t i = 0; i < IMAGES; i++)
      for (uint32_t k = i + 1; k < IMAGES; k++) c->pairs[c->count++] = (hs_image_pair){i, k};
    const size_t brought = work_off(c);
    if (room >= IMAGES) assert_int_equal(brought, IMAGES);
    /* A phase holds the images of some rows, which fill half of the capacity, for all later columns; and a few more
     * images if memory is tight. */
    if (room >= 8) assert_true(brought <= 2 * IMAGES * IMAGES / room + 2 * IMAGES);
  }
}

TEST(neighbours) {
  SCOPED_MEMORY plan_case *c = make_case(100, 1200);
  for (uint32_t i = 0; i < IMAGES; i++)
    for (uint32_t k = i + 1; k < i + 4 && k < IMAGES; k++) c->pairs[c->count++] = (hs_image_pair){i, k};
  assert_true(work_off(c) <= IMAGES + IMAGES / 2);
}

/* Covers any list, any sizes, two memory spaces, ordered or not. Some pairs are too large for the memory. */
TEST(anything) {
  uint32_t random = 7;
  for (int round = 0; round < 60; round++) {
    SCOPED_MEMORY plan_case *c = make_case(0, 600 + feature_maker_random(&random) % 6000);
    c->budget[1] = 600 + feature_maker_random(&random) % 6000;
    c->has_space[1] = round % 2 == 0;
    c->in_order = round % 3 == 0;
    for (int s = 0; s < PAIR_SPACES; s++)
      for (int i = 0; i < IMAGES; i++) c->bytes[s][i] = feature_maker_random(&random) % 500;
    const size_t count = feature_maker_random(&random) % 800;
    while (c->count < count) {
      const hs_image_pair pair = {feature_maker_random(&random) % IMAGES, feature_maker_random(&random) % IMAGES};
      if (pair.first != pair.second) c->pairs[c->count++] = pair;
    }
    (void)work_off(c);
  }
}
