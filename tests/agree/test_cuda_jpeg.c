/*
 * The GPU's JPEG engine beside libjpeg: thousands of made files, pixel by pixel; damaged ones, which must end as they do without it;
 * and features of files that stayed encoded, in flight and alone. Skipped where there is no engine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#include "pipeline/device/cuda_jpeg.h"
#include "pipeline/encoded/engine_check.h"
#include "pipeline/image_io/jpeg_stream.h"
#include "tests/support/extraction.h"
#include "tests/support/skip.h"

enum { MADE = 4096, IN_FLIGHT = 300, MUTATED = 4000, SIDE_MOST = 900 };

static hs_context *gpu;

static int set_up(void **state) {
  (void)state;
  hs_options o = extraction_options(HS_PROFILE_LOWE);
  o.device = HS_DEVICE_CUDA;
  if (extraction_has_gpu()) gpu = extraction_context(&o);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  hs_destroy(gpu);
  return 0;
}

static void need_engine(void) {
  char message[300] = "";
  if (!gpu) skip_because(NEEDS_GPU);
  const int32_t decodes = hs_decodes_jpeg(gpu, message, sizeof message);
  if (decodes < 0) fail_msg("there is an engine, but %s", message);
  if (decodes == 0) {
    print_message("no JPEG engine: %s\n", message);
    skip_because(NEEDS_GPU);
  }
}

static void test_made_files(void **state) {
  (void)state;
  need_engine();
  char reason[300] = "";
  for (uint32_t first = 0; first < MADE; first += CUDA_JPEG_MOST)
    if (!engine_check_run(gpu, first, CUDA_JPEG_MOST, reason, sizeof reason)) fail_msg("%s", reason);
}

/* A larger made file. */
static unsigned char *make(uint32_t number, int32_t side_most, size_t *size) {
  made_jpeg made = engine_check_made(number);
  unsigned char *bytes = NULL;
  made.width = 20 + (int32_t)(number * 7919 % (uint32_t)side_most);
  made.height = 20 + (int32_t)(number * 104729 % (uint32_t)side_most);
  made.content = MADE_SMOOTH;
  assert_int_equal(made_jpeg_write(&made, &bytes, size), HS_OK);
  return bytes;
}

static hs_image load(const void *bytes, size_t size, int keep_encoded) {
  const hs_load_options options = {.struct_size = sizeof options, .keep_encoded = keep_encoded};
  hs_image image;
  assert_int_equal(hs_load_image_memory(bytes, size, &options, &image), HS_OK);
  return image;
}

static void test_features_in_flight(void **state) {
  (void)state;
  need_engine();
  unsigned char *files[IN_FLIGHT];
  size_t sizes[IN_FLIGHT];
  hs_image kept[IN_FLIGHT];
  hs_features expected = {0}, found = {0};
  int submitted = 0, encoded = 0;
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    files[i] = make(i, i % 3 ? SIDE_MOST : 100, &sizes[i]);
    kept[i] = load(files[i], sizes[i], i % 10 != 9);
    encoded += kept[i].layout == HS_JPEG;
  }
  assert_true(encoded > IN_FLIGHT / 2);
  for (int done = 0; done < IN_FLIGHT; done++) {
    while (submitted < IN_FLIGHT && hs_submit(gpu, &kept[submitted], NULL) == HS_OK) submitted++;
    assert_int_equal(hs_wait(gpu, &found), HS_OK);
    hs_image pixels = load(files[done], sizes[done], 0);
    assert_int_equal(hs_extract(gpu, &pixels, NULL, &expected), HS_OK);
    extraction_check_equal(&expected, &found, "in flight");
    if (done % 16 == 0) {
      assert_int_equal(hs_extract(gpu, &kept[done], NULL, &found), HS_OK);
      extraction_check_equal(&expected, &found, "alone");
    }
    hs_image_free(&pixels);
    hs_image_free(&kept[done]);
    free(files[done]);
  }
  hs_features_free(&expected);
  hs_features_free(&found);
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* A file with a few bits, bytes or ends changed: found whole, it has libjpeg's pixels on the engine too. */
static void test_mutated_files(void **state) {
  (void)state;
  need_engine();
  uint64_t random = 1;
  int whole = 0;
  for (uint32_t i = 0; i < MUTATED; i++) {
    size_t size;
    unsigned char *bytes = make(i, 120, &size);
    for (uint64_t changes = 1 + next_random(&random) % 3; changes > 0; changes--) {
      const size_t at = 2 + next_random(&random) % (size - 4);
      bytes[at] = (unsigned char)(next_random(&random) % 2 ? bytes[at] ^ (1u << next_random(&random) % 8)
                                                           : next_random(&random));
    }
    const hs_load_options keep = {.struct_size = sizeof keep, .keep_encoded = 1, .max_pixels = 1 << 20};
    hs_image image = {0}, pixels = {0};
    if (hs_load_image_memory(bytes, size, &keep, &image) == HS_OK && image.layout == HS_JPEG) {
      const cuda_jpeg_file file = {
          .bytes = image.data, .size = image.stride_bytes, .width = image.width, .height = image.height};
      cuda_jpeg_rows rows;
      whole++;
      pixels = load(bytes, size, 0);
      unsigned char *got = malloc((size_t)image.width * (size_t)image.height);
      assert_true(cuda_jpeg_decode(gpu, 0, &file, 1, &rows));
      assert_int_equal(cuda_jpeg_fetch(gpu, &rows, image.width, image.height, got), HS_OK);
      if (memcmp(got, pixels.data, (size_t)image.width * (size_t)image.height) != 0) fail_msg("file %u differs", i);
      free(got);
    }
    hs_image_free(&pixels);
    hs_image_free(&image);
    free(bytes);
  }
  print_message("%d of %d damaged files were found whole\n", whole, MUTATED);
  assert_true(whole > MUTATED / 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_made_files),
      cmocka_unit_test(test_features_in_flight),
      cmocka_unit_test(test_mutated_files),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
