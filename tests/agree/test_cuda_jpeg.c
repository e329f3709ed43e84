/*
 * Features of JPEG files that a GPU decodes equal the features of libjpeg's pixels, in flight and alone. Damaged files
 * give the result that they give without a GPU. Skipped without a GPU.
 */
#include "tests/support/test.h"

#include "pipeline/device/cuda_engine.h"
#include "pipeline/source/source.h"

enum { MADE = 1024, IN_FLIGHT = 300, MUTATED = 1200, SIDE_MAX = 900 };

static hs_context *gpu;

BEFORE_TESTS() {
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  if (extraction_has_gpu()) gpu = extraction_context(&o);
}

AFTER_TESTS() { hs_destroy(gpu); }

static void need_decoder(void) {
  char message[300] = "";
  if (!gpu) skip_because(NEEDS_GPU);
  const int32_t decodes = hs_decodes_jpeg(gpu, message, sizeof message);
  if (decodes < 0) fail_msg("it decodes, but %s", message);
  assert_int_equal(decodes, 1);
}

TEST(test_made_files) {
  need_decoder();
  char reason[300] = "";
  for (uint32_t first = 0; first < MADE; first += JPEG_GROUP_MAX)
    if (!decoder_check_run(gpu, first, JPEG_GROUP_MAX, reason, sizeof reason)) fail_msg("%s", reason);
}

/* Makes a synthetic file with sides of at most `side_most`. */
static unsigned char *make(uint32_t number, int32_t side_most, size_t *size) {
  synthetic_jpeg made = decoder_check_picture(number);
  unsigned char *bytes = NULL;
  made.width = 20 + (int32_t)(number * 7919 % (uint32_t)side_most);
  made.height = 20 + (int32_t)(number * 104729 % (uint32_t)side_most);
  made.content = SYNTHETIC_SMOOTH;
  assert_int_equal(synthetic_jpeg_write(&made, &bytes, size), HS_OK);
  return bytes;
}

static hs_source load(const void *bytes, size_t size, int keep_encoded) {
  const hs_load_options options = {.struct_size = sizeof options, .keep_encoded = keep_encoded};
  hs_source source = hs_source_encoded(bytes, size), loaded;
  source.load = &options;
  assert_int_equal(hs_load_source(&source, &loaded), HS_OK);
  return loaded;
}

TEST(test_features_in_flight) {
  need_decoder();
  unsigned char *files[IN_FLIGHT];
  size_t sizes[IN_FLIGHT];
  hs_source kept[IN_FLIGHT];
  scoped_features expected = {0}, found = {0};
  int submitted = 0, encoded = 0;
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    files[i] = make(i, i % 3 ? SIDE_MAX : 100, &sizes[i]);
    kept[i] = load(files[i], sizes[i], i % 10 != 9);
    encoded += kept[i].kind == HS_SOURCE_JPEG;
  }
  assert_true(encoded > IN_FLIGHT / 2);
  for (int done = 0; done < IN_FLIGHT; done++) {
    while (submitted < IN_FLIGHT && hs_submit_source(gpu, &kept[submitted]) == HS_OK) submitted++;
    assert_int_equal(hs_wait(gpu, &found), HS_OK);
    hs_source pixels = load(files[done], sizes[done], 0);
    assert_int_equal(hs_extract_source(gpu, &pixels, &expected), HS_OK);
    extraction_check_equal(&expected, &found, "in flight");
    if (done % 16 == 0) {
      assert_int_equal(hs_extract_source(gpu, &kept[done], &found), HS_OK);
      extraction_check_equal(&expected, &found, "alone");
    }
    hs_source_free(&pixels);
    hs_source_free(&kept[done]);
    free(files[done]);
  }
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* Files have a few changed bits or bytes, and several are in flight. Features or status equal those of the file decoded
 * by libjpeg. */
TEST(test_mutated_files) {
  need_decoder();
  enum { AT_ONCE = 8 };
  const hs_load_options keep = {.struct_size = sizeof keep, .keep_encoded = 1, .max_pixels = 1 << 20};
  const hs_load_options plain = {.struct_size = sizeof plain, .max_pixels = 1 << 20};
  hs_features found = {0}, expected = {0};
  int whole = 0;
  for (uint32_t first = 0; first < MUTATED; first += AT_ONCE) {
    unsigned char *bytes[AT_ONCE];
    size_t sizes[AT_ONCE];
    uint64_t random = first;
    for (uint32_t i = 0; i < AT_ONCE; i++) {
      bytes[i] = make(first / 64 * 64 + i % 2, 120, &sizes[i]); /* few sizes, so that groups share launches */
      for (uint64_t changes = next_random(&random) % 4; changes > 0; changes--) {
        const size_t at = 2 + next_random(&random) % (sizes[i] - 4);
        bytes[i][at] = (unsigned char)(bytes[i][at] ^ (1u << next_random(&random) % 8));
      }
      assert_int_equal(hs_submit_encoded(gpu, bytes[i], sizes[i], &keep, NULL), HS_OK);
    }
    for (uint32_t i = 0; i < AT_ONCE; i++) {
      hs_image pixels = {0};
      hs_status wanted = hs_load_image_memory(bytes[i], sizes[i], &plain, &pixels);
      if (wanted == HS_OK) wanted = hs_extract(gpu, &pixels, NULL, &expected);
      assert_int_equal(hs_wait(gpu, &found), wanted);
      if (wanted == HS_OK) extraction_check_equal(&expected, &found, "a changed file");
      whole += wanted == HS_OK;
      hs_image_free(&pixels);
      free(bytes[i]);
    }
  }
  hs_features_free(&found);
  hs_features_free(&expected);
  assert_true(whole > MUTATED / 20 && whole < MUTATED);
}
