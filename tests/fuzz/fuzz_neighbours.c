/*
 * Fuzz target for neighbour searches with descriptors of any values, and for the guide: results equal a search over
 * every pair. Squared distances, their order and invalid candidates: hartsift_match.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"
#include "tests/fuzz/input_bytes.h"

enum { FUZZ_FEATURES_MAX = 40, FUZZ_K_MAX = 48 };

typedef struct fuzz_list {
  hs_features features;
  hs_keypoint keypoints[FUZZ_FEATURES_MAX];
  float floats[FUZZ_FEATURES_MAX * HS_DESCRIPTOR_LENGTH];
  uint8_t bytes[FUZZ_FEATURES_MAX * HS_DESCRIPTOR_LENGTH];
} fuzz_list;

static void take_list(input_bytes *input, hs_descriptor_type type, fuzz_list *list) {
  const size_t count = input_below(input, FUZZ_FEATURES_MAX);
  memset(list, 0, sizeof *list);
  for (size_t i = 0; i < count; i++) {
    list->keypoints[i].x = input_float(input);
    list->keypoints[i].y = input_float(input);
    const uint8_t base = input_u8(input);
    const size_t changed = base % 8u;
    for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
      list->bytes[i * HS_DESCRIPTOR_LENGTH + k] = (uint8_t)(base * (k + 1));
      list->floats[i * HS_DESCRIPTOR_LENGTH + k] = (float)base / 255.0f;
    }
    for (size_t k = 0; k < changed; k++) {
      const size_t at = i * HS_DESCRIPTOR_LENGTH + input_below(input, HS_DESCRIPTOR_LENGTH - 1);
      list->floats[at] = input_float(input);
      list->bytes[at] = input_u8(input);
    }
  }
  list->features = (hs_features){.count = count,
                                 .keypoints = list->keypoints,
                                 .descriptors = type == HS_DESCRIPTOR_U8 ? (void *)list->bytes : (void *)list->floats,
                                 .descriptor_type = type};
}

static float squared_distance(const fuzz_list *a, size_t i, const fuzz_list *b, size_t j) {
  float sum = 0;
  int32_t whole = 0;
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    const size_t one = i * HS_DESCRIPTOR_LENGTH + k, other = j * HS_DESCRIPTOR_LENGTH + k;
    const float t = a->floats[one] - b->floats[other];
    const int32_t d = a->bytes[one] - b->bytes[other];
    sum = fmaf(t, t, sum);
    whole += d * d;
  }
  return a->features.descriptor_type == HS_DESCRIPTOR_U8 ? (float)whole : sum;
}

typedef struct fuzz_candidate {
  float squared;
  uint32_t index;
} fuzz_candidate;

static int compare_candidates(const void *one, const void *other) {
  const fuzz_candidate *a = one, *b = other;
  if (a->squared != b->squared) return a->squared < b->squared ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

/* Sorts all candidates of feature i of a, nearest first; returns their number. */
static size_t rank(const fuzz_list *a, size_t i, const fuzz_list *b, fuzz_candidate ranked[FUZZ_FEATURES_MAX]) {
  size_t count = 0;
  for (size_t j = 0; j < b->features.count; j++) {
    const float squared = squared_distance(a, i, b, j);
    if (isfinite(squared)) ranked[count++] = (fuzz_candidate){squared, (uint32_t)j};
  }
  if (count > 0) qsort(ranked, count, sizeof ranked[0], compare_candidates);
  return count;
}

static void check_k_nearest(hs_context *context, const fuzz_list *a, const fuzz_list *b, int32_t k) {
  static hs_neighbour found[FUZZ_FEATURES_MAX * FUZZ_K_MAX];
  fuzz_candidate ranked[FUZZ_FEATURES_MAX];
  fuzz_require(hs_find_k_nearest(context, &a->features, &b->features, NULL, k, found) == HS_OK);
  for (size_t i = 0; i < a->features.count; i++) {
    const size_t count = rank(a, i, b, ranked);
    for (size_t n = 0; n < (size_t)k; n++) {
      const hs_neighbour *neighbour = &found[i * (size_t)k + n];
      fuzz_require(neighbour->index == (n < count ? ranked[n].index : HS_NO_FEATURE));
      fuzz_require(n < count ? isfinite(neighbour->distance) != 0 : isinf(neighbour->distance) != 0);
    }
  }
}

static void check_within(hs_context *context, const fuzz_list *a, const fuzz_list *b, double radius) {
  fuzz_candidate ranked[FUZZ_FEATURES_MAX];
  hs_neighbour_lists lists = {0};
  const hs_status status = hs_find_within(context, &a->features, &b->features, NULL, radius, &lists);
  fuzz_require((status == HS_OK) == (radius >= 0.0));
  for (size_t i = 0; status == HS_OK && i < a->features.count; i++) {
    const size_t count = rank(a, i, b, ranked), first = lists.starts[i], found = lists.starts[i + 1] - first;
    fuzz_require(found <= count && (!isinf(radius) || found == count));
    for (size_t n = 0; n < found; n++) fuzz_require(lists.neighbours[first + n].index == ranked[n].index);
    /* The radius separates found from other candidates, up to the rounding of the square root. */
    if (found < count) fuzz_require(sqrt((double)ranked[found].squared) * (1 + 1e-6) >= radius);
    if (found > 0) fuzz_require(sqrt((double)ranked[found - 1].squared) * (1 - 1e-6) <= radius);
  }
  hs_neighbour_lists_free(&lists);
}

static void check_matches(hs_context *context, const fuzz_list *a, const fuzz_list *b,
                          const hs_match_options *options) {
  hs_matches alone = {0}, shared = {0};
  const hs_status status = hs_match(NULL, &a->features, &b->features, options, &alone);
  fuzz_require(hs_match(context, &a->features, &b->features, options, &shared) == status);
  fuzz_require(alone.count == shared.count && (status == HS_OK || alone.count == 0));
  for (size_t i = 0; i < alone.count; i++) {
    const hs_match_pair *pair = &alone.pairs[i];
    fuzz_require(memcmp(pair, &shared.pairs[i], sizeof *pair) == 0);
    fuzz_require(pair->first < a->features.count && pair->second < b->features.count && isfinite(pair->distance));
    fuzz_require(i == 0 || alone.pairs[i - 1].first < pair->first);
  }
  hs_matches_free(&alone);
  hs_matches_free(&shared);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static hs_context *context; /* The context is reused, because searches leave no state in it that affects results. */
  static fuzz_list a, b;
  input_bytes input = {data, size};
  if (!context) {
    hs_options options;
    fuzz_require(hs_options_init(&options, HS_PROFILE_LOWE) == HS_OK);
    options.device = HS_DEVICE_CPU;
    options.threads = 2;
    fuzz_require(hs_create(&context, &options) == HS_OK);
  }
  const hs_descriptor_type type = (input_u8(&input) & 1u) != 0 ? HS_DESCRIPTOR_F32 : HS_DESCRIPTOR_U8;
  const int32_t k = 1 + (int32_t)input_below(&input, FUZZ_K_MAX - 1);
  hs_match_options options;
  fuzz_require(hs_match_options_init(&options) == HS_OK);
  const double radius = input_double(&input);
  options.ratio = input_double(&input);
  options.max_distance = input_double(&input);
  options.mutual = (int32_t)input_below(&input, 1);
  options.guide = (hs_guide)input_below(&input, 3);
  for (int i = 0; options.guide != HS_GUIDE_NONE && i < 9; i++) options.guide_matrix[i] = input_double(&input);
  if (options.guide != HS_GUIDE_NONE) options.guide_tolerance = input_double(&input);
  take_list(&input, type, &a);
  take_list(&input, type, &b);
  check_k_nearest((k & 1) != 0 ? context : NULL, &a, &b, k);
  check_within((k & 1) != 0 ? NULL : context, &a, &b, radius);
  check_matches(context, &a, &b, &options);
  return 0;
}
