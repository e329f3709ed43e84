/* Compares features of files read by rows; see rows_check.h. */
#include "tests/support/rows_check.h"

#include <stdlib.h>

#include "tests/support/test.h"

#include "tests/support/counted_allocator.h"
#include "tests/support/extent.h"
#include "tests/support/extraction.h"
#include "tests/support/scratch_folder.h"

/* Returns the device bytes or host bytes, whichever are larger, because the limit applies to each. */
static uint64_t bytes_within(hs_options o, int32_t width, int32_t height, uint64_t limit) {
  uint64_t host, device;
  o.max_memory_bytes = limit;
  assert_int_equal(hs_workspace_query(&o, width, height, &host, &device), HS_OK);
  return host > device ? host : device;
}

uint64_t rows_cap(hs_options o, int32_t width, int32_t height) {
  const uint64_t whole = bytes_within(o, width, height, 0), least = bytes_within(o, width, height, 1);
  assert_true(least < whole);
  /* Small tiles would be slow on a fake GPU, so the limit is larger there. */
  return least + (whole - least) / (o.device == HS_DEVICE_CPU ? 10 : 3);
}

image_file rows_jpeg_of_scene(const jpeg_spec *spec) {
  const size_t channels = jpeg_spec_channels(spec);
  scoped_image scene = extraction_scene((int32_t)channels * spec->width, spec->height, 3, NULL);
  const image_file file = jpeg_spec_make(spec, scene.data);
  return file;
}

/* Returns the features of a file's bytes that is decoded first, without a limit. */
static hs_features expected_of(hs_options options, const image_file *file, const hs_load_options *load) {
  hs_features f = {0};
  options.device = HS_DEVICE_CPU;
  scoped_context *c = extraction_context(&options);
  assert_int_equal(hs_extract_encoded(c, file->bytes, file->size, load, NULL, &f), HS_OK);
  return f;
}

size_t rows_check_file(const hs_options *options, const image_file *file, const hs_load_options *load,
                       const char *what) {
  static size_t calls; /* in the short form every second call also reads the file from memory */
  scoped_folder folder = scratch_folder_new();
  char path[SCRATCH_PATH_BYTES];
  counted_allocator counter = {0};
  const hs_allocator allocator = counted_allocator_make(&counter);
  hs_options within = *options;
  hs_features expected = expected_of(*options, file, load), got = {0};
  within.allocator = &allocator;
  within.max_memory_bytes = rows_cap(*options, expected.image_width, expected.image_height);
  scratch_write_file(scratch_folder_path(&folder, "picture", path), file->bytes, file->size);
  hs_context *c = extraction_context(&within);
  if (hs_extract_file(c, path, load, NULL, &got) != HS_OK) fail_msg("%s: %s", what, hs_last_error(c));
  extraction_check_equal(&expected, &got, what);
  const size_t results = got.capacity * (sizeof *got.keypoints + extraction_descriptor_bytes(&got));
  const size_t most = counter.most_bytes > results ? counter.most_bytes - results : 0;
  if (extent_pairs(calls++, 0, 2)) {
    assert_int_equal(hs_extract_encoded(c, file->bytes, file->size, load, NULL, &got), HS_OK);
    extraction_check_equal(&expected, &got, what);
  }
  if (expected.count < 20) fail_msg("%s: %zu features", what, expected.count);
  hs_features_free(&got);
  hs_features_free(&expected);
  hs_destroy(c);
  assert_int_equal(counter.alive, 0);
  return most;
}

void rows_check_damaged(hs_options o, const image_file *file, size_t size, int32_t width, int32_t height) {
  char message[512];
  hs_load_options load;
  hs_image image;
  scoped_features got = {0};
  hs_load_options_init(&load);
  load.message = message;
  load.message_bytes = sizeof message;
  load.max_memory_bytes = UINT64_MAX;
  const hs_status expected = hs_load_image_memory(file->bytes, size, &load, &image);
  if (expected == HS_OK) hs_image_free(&image);
  o.max_memory_bytes = rows_cap(o, width, height);
  scoped_context *c = extraction_context(&o);
  assert_int_equal(hs_extract_encoded(c, file->bytes, size, &load, NULL, &got), expected);
  if (expected != HS_OK) assert_string_equal(hs_last_error(c), message);
  if (expected != HS_OK) assert_int_equal(got.count, 0);
}
