/*
 * Fuzz target for sequences of calls on a context: extraction in all forms, pictures in flight, cancelling, matching,
 * runs over pairs, in any order. A picture's features must not depend on earlier calls.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"
#include "tests/fuzz/input_bytes.h"

enum { FUZZ_CALLS_MAX = 24, FUZZ_PICTURES = 4, FUZZ_IN_FLIGHT = 3, FUZZ_INTO = 16 };

typedef struct fuzz_picture {
  hs_image image, mask;
  uint8_t *pixels;
  bool is_known;
  uint64_t digest; /* digest of its features */
} fuzz_picture;

typedef struct fuzz_state {
  hs_context *context;
  fuzz_picture pictures[FUZZ_PICTURES];
  size_t in_flight[FUZZ_IN_FLIGHT]; /* indices of the pictures in flight, oldest first */
  int32_t flying;
  hs_features lists[2];
  int32_t calls_left; /* number of calls after which the progress function cancels */
} fuzz_state;

static int32_t count_down(void *user, uint64_t done, uint64_t total) {
  fuzz_state *state = user;
  fuzz_require(done <= total);
  return state->calls_left-- <= 0;
}

static void make_picture(input_bytes *input, fuzz_picture *picture) {
  const int32_t width = 8 + (int32_t)input_below(input, 56), height = 8 + (int32_t)input_below(input, 40);
  const size_t count = (size_t)width * (size_t)height;
  const uint32_t seed = input_u8(input);
  picture->pixels = malloc(2 * count);
  fuzz_require(picture->pixels != NULL);
  for (size_t i = 0; i < count; i++) {
    const size_t x = i % (size_t)width / 5, y = i / (size_t)width / 4;
    picture->pixels[i] = (uint8_t)((x * 53 + y * 97 + x * y * seed) * 40503u >> 5);
    picture->pixels[count + i] = (uint8_t)(i % 7 != 0);
  }
  picture->image = (hs_image){.data = picture->pixels, .width = width, .height = height};
  picture->mask = (hs_image){.data = picture->pixels + count, .width = width, .height = height};
}

static void make_context(input_bytes *input, fuzz_state *state) {
  hs_options options;
  fuzz_require(hs_options_init(&options, HS_PROFILE_LOWE) == HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = 1 + (int32_t)input_below(input, 2);
  options.in_flight = 1 + (int32_t)input_below(input, FUZZ_IN_FLIGHT - 1);
  options.max_features = (int32_t)input_below(input, 1) * 20;
  fuzz_require(hs_create(&state->context, &options) == HS_OK);
  for (size_t i = 0; i < FUZZ_PICTURES; i++) state->pictures[i].is_known = false;
  state->flying = 0;
}

static void check_same(fuzz_picture *picture, const hs_features *features) {
  uint64_t digest = 0;
  fuzz_require(hs_digest_features(features, &digest) == HS_OK);
  fuzz_require(!picture->is_known || digest == picture->digest);
  picture->digest = digest;
  picture->is_known = true;
}

/* Returns the mask of a picture; every second picture has one. */
static const hs_image *mask_of(const fuzz_state *state, const fuzz_picture *picture) {
  return (picture - state->pictures) % 2 == 1 ? &picture->mask : NULL;
}

static void submit(fuzz_state *state, size_t at) {
  const hs_status status = hs_submit(state->context, &state->pictures[at].image, mask_of(state, &state->pictures[at]));
  fuzz_require(status == HS_OK || status == HS_ERR_CAPACITY);
  if (status == HS_OK) state->in_flight[state->flying++] = at;
}

static void wait_for_one(fuzz_state *state, hs_features *list, bool view) {
  const hs_features *seen = NULL;
  const hs_status status = view ? hs_wait_view(state->context, &seen) : hs_wait(state->context, list);
  fuzz_require(status == (state->flying > 0 ? HS_OK : HS_ERR_ARGUMENT));
  if (status != HS_OK) return;
  check_same(&state->pictures[state->in_flight[0]], view ? seen : list);
  state->flying--;
  memmove(state->in_flight, state->in_flight + 1, (size_t)state->flying * sizeof state->in_flight[0]);
}

static void extract_into(fuzz_state *state, const fuzz_picture *picture) {
  hs_keypoint keypoints[FUZZ_INTO];
  uint8_t descriptors[FUZZ_INTO * HS_DESCRIPTOR_LENGTH];
  size_t count = 0;
  const hs_status status = hs_extract_into(state->context, &picture->image, mask_of(state, picture), keypoints,
                                           descriptors, FUZZ_INTO, &count);
  fuzz_require(status == (count > FUZZ_INTO ? HS_ERR_CAPACITY : HS_OK));
}

static void cancel(fuzz_state *state, const fuzz_picture *picture, hs_features *list, int32_t calls) {
  state->calls_left = calls;
  fuzz_require(hs_set_progress(state->context, count_down, state) == HS_OK);
  const hs_status status = hs_extract(state->context, &picture->image, mask_of(state, picture), list);
  fuzz_require(status == HS_OK || status == HS_ERR_CANCELLED);
  fuzz_require(hs_set_progress(state->context, NULL, NULL) == HS_OK);
}

static void match_lists(fuzz_state *state, input_bytes *input) {
  hs_matches matches = {0};
  hs_neighbour_lists near = {0};
  hs_status status = hs_match(state->context, &state->lists[0], &state->lists[1], NULL, &matches);
  fuzz_require(status == HS_OK || status == HS_ERR_ARGUMENT);
  status = hs_find_within(state->context, &state->lists[1], &state->lists[0], NULL, input_u8(input), &near);
  fuzz_require(status == HS_OK || status == HS_ERR_ARGUMENT);
  hs_matches_free(&matches);
  hs_neighbour_lists_free(&near);
}

/* Starts a run over pairs of the two lists and ends it after some pairs. */
static void run_pairs(fuzz_state *state, input_bytes *input) {
  const hs_collection_image images[2] = {{.features = &state->lists[0]}, {.features = &state->lists[1]}};
  const hs_collection collection = {.images = images, .image_count = 2};
  hs_image_pair pairs[3];
  hs_pairs *run = NULL;
  hs_pairs_options options;
  hs_verify_options verify;
  fuzz_require(hs_pairs_options_init(&options) == HS_OK && hs_verify_options_init(&verify, HS_HOMOGRAPHY) == HS_OK);
  verify.max_iterations = 200;
  options.verify = &verify;
  options.guided = (int32_t)input_below(input, 1);
  for (size_t i = 0; i < 3; i++) pairs[i] = (hs_image_pair){input_below(input, 2), input_below(input, 1)};
  if (hs_pairs_start(&run, state->context, &collection, pairs, 3, &options) != HS_OK) {
    fuzz_require(!run);
    return;
  }
  const uint32_t wanted = input_below(input, 4);
  for (uint32_t i = 0; i < wanted; i++) {
    const hs_pair_result *result = NULL;
    fuzz_require(hs_pairs_next(run, -1, &result) == HS_OK && (result != NULL) == (i < 3));
    if (result) fuzz_require(result->index == i);
  }
  hs_pairs_end(run);
}

/* Extracts one picture by one of three calls. */
static void extract(const fuzz_state *state, fuzz_picture *picture, hs_features *list, uint8_t way) {
  const hs_features *view = list;
  hs_status status;
  if (way == 0)
    status = hs_extract(state->context, &picture->image, mask_of(state, picture), list);
  else if (way == 1)
    status = hs_extract_view(state->context, &picture->image, mask_of(state, picture), &view);
  else
    status = hs_detect(state->context, &picture->image, mask_of(state, picture), list);
  fuzz_require(status == HS_OK);
  if (way < 2) check_same(picture, view);
}

static void call(fuzz_state *state, input_bytes *input) {
  const uint8_t what = input_u8(input) % 13u;
  const size_t at = input_below(input, FUZZ_PICTURES - 1);
  fuzz_picture *picture = &state->pictures[at];
  hs_features *list = &state->lists[at % 2];
  switch (what) {
  case 0:
  case 1:
  case 2:
    extract(state, picture, list, what);
    break;
  case 3:
  case 4:
    submit(state, at);
    break;
  case 5:
    wait_for_one(state, list, false);
    break;
  case 6:
    wait_for_one(state, list, true);
    break;
  case 7:
    extract_into(state, picture);
    break;
  case 8:
    cancel(state, picture, list, input_u8(input) % 40);
    break;
  case 9:
    match_lists(state, input);
    break;
  case 10:
    hs_features_free(list);
    break;
  case 11:
    run_pairs(state, input);
    break;
  default: /* destroying the context ends the images in flight */
    hs_destroy(state->context);
    make_context(input, state);
    break;
  }
  fuzz_require(hs_count_in_flight(state->context) == state->flying);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input_bytes input = {data, size};
  fuzz_state state = {.context = NULL};
  make_context(&input, &state);
  for (size_t i = 0; i < FUZZ_PICTURES; i++) make_picture(&input, &state.pictures[i]);
  for (int i = 0; i < FUZZ_CALLS_MAX && input.size > 0; i++) call(&state, &input);
  hs_destroy(state.context);
  for (size_t i = 0; i < FUZZ_PICTURES; i++) free(state.pictures[i].pixels);
  for (size_t i = 0; i < 2; i++) hs_features_free(&state.lists[i]);
  return 0;
}
