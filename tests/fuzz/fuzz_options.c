/*
 * Fuzz target for option structs: any values in their fields, and structs of earlier and later headers. A refusal names
 * a field; accepted options extract a small picture within the predicted memory.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"
#include "pipeline/include/hartsift_expert.h"
#include "tests/fuzz/input_bytes.h"

enum { FUZZ_STRUCT_BYTES = 1024, FUZZ_WIDTH = 40, FUZZ_HEIGHT = 31, FUZZ_MEMORY_BYTES = 64 << 20, FUZZ_THREADS = 3 };

/* An option struct of another header: its size may differ, and its new fields may be 0 or not. */
typedef union fuzz_struct {
  hs_options options;
  hs_match_options match;
  hs_verify_options verify;
  hs_load_options load;
  hs_file_options file;
  hs_colmap_options colmap;
  hs_pairs_options pairs;
  hs_retrieval_options retrieval;
  hs_expert_options expert;
  size_t struct_size;
  uint8_t bytes[FUZZ_STRUCT_BYTES];
} fuzz_struct;

/* Changes fields of 4 bytes, chosen by number. Pointers and sizes stay unchanged. */
static void change_fields(input_bytes *input, uint8_t *fields, size_t bytes, const size_t *kept, size_t kept_count) {
  for (uint32_t n = input_below(input, 7); n > 0; n--) {
    const size_t at = 8 + 4 * (size_t)input_below(input, (uint32_t)((bytes - 8) / 4 - 1));
    bool is_kept = false;
    for (size_t i = 0; i < kept_count; i++) is_kept = is_kept || (at >= kept[i] && at < kept[i] + 8);
    const bool is_float = (input_u8(input) & 1u) != 0;
    const float real = is_float ? input_float(input) : 0.0f;
    const int32_t whole = is_float ? 0 : input_i32(input);
    if (!is_kept) memcpy(fields + at, is_float ? (const void *)&real : (const void *)&whole, 4);
  }
}

/* Sometimes sets another struct_size, with bytes after this header's fields that are 0 or not. */
static void change_size(input_bytes *input, fuzz_struct *any, size_t known) {
  const uint8_t kind = input_u8(input);
  if (kind < 200) return;
  any->struct_size = input_below(input, FUZZ_STRUCT_BYTES);
  if (kind > 230 && any->struct_size > known) any->bytes[any->struct_size - 1] = input_u8(input);
}

/* Checks hs_create and all functions that read its options. */
static void check_context(input_bytes *input) {
  static const size_t kept[] = {offsetof(hs_options, allocator), offsetof(hs_options, expert)};
  static const size_t expert_kept[] = {offsetof(hs_expert_options, variant)};
  fuzz_struct any, expert;
  memset(&any, 0, sizeof any);
  memset(&expert, 0, sizeof expert);
  const hs_profile profile = (hs_profile)input_below(input, HS_PROFILE_COLMAP);
  fuzz_require(hs_options_init(&any.options, profile) == HS_OK);
  fuzz_require(hs_expert_options_init(&expert.expert, profile) == HS_OK);
  change_fields(input, any.bytes, sizeof any.options, kept, 2);
  change_fields(input, expert.bytes, sizeof expert.expert, expert_kept, 1);
  if (any.options.threads == 0 || any.options.threads > FUZZ_THREADS) any.options.threads %= 1 + FUZZ_THREADS;
  if (any.options.threads == 0) any.options.threads = 1;
  any.options.max_memory_bytes = FUZZ_MEMORY_BYTES;
  change_size(input, &any, sizeof any.options);
  change_size(input, &expert, sizeof expert.expert);
  char *variant = input_text(input, 64);
  const uint8_t expert_kind = input_u8(input);
  if (any.struct_size >= offsetof(hs_options, expert) + sizeof any.options.expert && expert_kind % 3u != 0) {
    if (expert_kind % 3u == 2 && expert.struct_size == sizeof expert.expert) expert.expert.variant = variant;
    any.options.expert = &expert.expert;
  }
  char message[256] = "";
  hs_context *context = NULL;
  uint64_t host_bytes = 0, device_bytes = 0;
  const hs_status asked = hs_workspace_query(&any.options, FUZZ_WIDTH, FUZZ_HEIGHT, &host_bytes, &device_bytes);
  const hs_status status = hs_create_explained(&context, &any.options, message, sizeof message);
  fuzz_require((status == HS_OK) == (context != NULL) && (status == HS_OK || message[0] != '\0'));
  if (status == HS_ERR_OPTION) fuzz_require(asked == HS_ERR_OPTION);
  if (status == HS_OK) {
    static uint8_t pixels[FUZZ_WIDTH * FUZZ_HEIGHT];
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * i / 17);
    const hs_image image = {.data = pixels, .width = FUZZ_WIDTH, .height = FUZZ_HEIGHT};
    hs_features features = {0};
    const hs_status extracted = hs_extract(context, &image, NULL, &features);
    fuzz_require(extracted == HS_OK || hs_last_error(context)[0] != '\0');
    hs_features_free(&features);
  }
  hs_destroy(context);
  free(variant);
}

static void check_match(input_bytes *input, fuzz_struct *any) {
  hs_matches matches = {0};
  const hs_features none = {0};
  fuzz_require(hs_match_options_init(&any->match) == HS_OK);
  change_fields(input, any->bytes, sizeof any->match, NULL, 0);
  change_size(input, any, sizeof any->match);
  (void)hs_match(NULL, &none, &none, &any->match, &matches);
  hs_matches_free(&matches);
}

static void check_verify(input_bytes *input, fuzz_struct *any) {
  const double places[4] = {1, 2, 3, 4};
  hs_geometry geometry;
  static const size_t kept[] = {offsetof(hs_verify_options, allocator), offsetof(hs_verify_options, message),
                                offsetof(hs_verify_options, message_bytes)};
  fuzz_require(hs_verify_options_init(&any->verify, HS_HOMOGRAPHY) == HS_OK);
  change_fields(input, any->bytes, sizeof any->verify, kept, 3);
  change_size(input, any, sizeof any->verify);
  (void)hs_verify_points(places, places, 2, &any->verify, NULL, &geometry);
}

static void check_load(input_bytes *input, fuzz_struct *any) {
  static const size_t kept[] = {offsetof(hs_load_options, allocator), offsetof(hs_load_options, message),
                                offsetof(hs_load_options, message_bytes), offsetof(hs_load_options, exif),
                                offsetof(hs_load_options, notes)};
  static const uint8_t picture[] = "P5 3 2 255\nabcdef";
  hs_image image = {0};
  fuzz_require(hs_load_options_init(&any->load) == HS_OK);
  change_fields(input, any->bytes, sizeof any->load, kept, sizeof kept / sizeof kept[0]);
  change_size(input, any, sizeof any->load);
  (void)hs_load_image_memory(picture, sizeof picture - 1, &any->load, &image);
  hs_image_free(&image);
}

static void check_retrieval(input_bytes *input, fuzz_struct *any) {
  static const size_t kept[] = {offsetof(hs_retrieval_options, allocator)};
  hs_retrieval *retrieval = NULL;
  fuzz_require(hs_retrieval_options_init(&any->retrieval) == HS_OK);
  change_fields(input, any->bytes, sizeof any->retrieval, kept, 1);
  change_size(input, any, sizeof any->retrieval);
  fuzz_require((hs_retrieval_create(&retrieval, &any->retrieval) == HS_OK) == (retrieval != NULL));
  hs_retrieval_destroy(retrieval);
}

/* Checks the other option structs with the calls that read them. Pointers in structs stay null. */
static void check_others(input_bytes *input) {
  static void (*const checks[])(input_bytes *, fuzz_struct *) = {check_match, check_verify, check_load,
                                                                 check_retrieval};
  fuzz_struct any;
  memset(&any, 0, sizeof any);
  checks[input_below(input, 3)](input, &any);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input_bytes input = {data, size};
  if ((input_u8(&input) & 1u) != 0)
    check_others(&input);
  else
    check_context(&input);
  return 0;
}
