/*
 * Fuzz target for sources and batches: the first bytes choose options, the rest is an image file. Its features are the
 * same from memory, as a source that is read ahead, as rows, and from a batch.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"
#include "tests/fuzz/input_bytes.h"

enum { FUZZ_MAX_PIXELS = 1 << 16, FUZZ_IMAGES = 3 };

/* Outcome of one way to the features of the file. */
typedef struct outcome {
  hs_status status;
  uint64_t digest; /* of the features; with HS_OK only */
} outcome;

static outcome outcome_of(hs_status status, const hs_features *features) {
  outcome found = {.status = status};
  fuzz_require(status != HS_OK || hs_digest_features(features, &found.digest) == HS_OK);
  return found;
}

static outcome by_source(hs_context *context, const hs_source *source) {
  hs_features features = {0};
  const outcome found = outcome_of(hs_extract_source(context, source, &features), &features);
  fuzz_require(found.status == HS_OK || hs_last_error(context)[0] != '\0');
  hs_features_free(&features);
  return found;
}

/* Rows of an image, as a reader of a source gives them. */
typedef struct image_rows {
  const hs_image *image;
  int32_t next;
} image_rows;

static hs_status rewind_rows(void *user) {
  ((image_rows *)user)->next = 0;
  return HS_OK;
}

static hs_status read_row(void *user, void *row) {
  image_rows *rows = user;
  const hs_image *image = rows->image;
  const size_t bytes = image->type == HS_U8 ? 1 : image->type == HS_U16 ? 2 : 4;
  fuzz_require(rows->next < image->height);
  memcpy(row, (const char *)image->data + (size_t)rows->next++ * (size_t)image->stride_bytes,
         bytes * (size_t)image->width);
  return HS_OK;
}

/* The file read ahead; then its pixels as rows, if they can be. Reading fails as extraction does. */
static void check_read(hs_context *context, const hs_source *file, outcome expected) {
  hs_source loaded;
  const hs_status status = hs_load_source(file, &loaded);
  fuzz_require(status == HS_OK || status == expected.status);
  if (status != HS_OK) return;
  const outcome pixels = by_source(context, &loaded);
  fuzz_require(pixels.status == expected.status);
  if (loaded.kind == HS_SOURCE_PIXELS && loaded.image.layout == HS_GRAY && pixels.status == HS_OK) {
    image_rows rows = {&loaded.image, 0};
    const hs_row_reader reader = {rewind_rows, read_row, &rows};
    hs_source source = hs_source_rows(loaded.image.width, loaded.image.height, loaded.image.type, &reader);
    source.image.range_low = loaded.image.range_low;
    source.image.range_high = loaded.image.range_high;
    const outcome by_rows = by_source(context, &source);
    fuzz_require(by_rows.status == HS_OK && by_rows.digest == pixels.digest);
  }
  hs_source_free(&loaded);
}

/* Takes all results of a batch. stop_after: number of results after which it is stopped. */
static void check_results(hs_batch *batch, bool in_order, size_t stop_after, outcome expected) {
  const hs_batch_result *result = NULL;
  size_t count = 0;
  while (hs_batch_next(batch, -1, &result) == HS_OK && result) {
    fuzz_require(result->index < FUZZ_IMAGES && (!in_order || result->index == count));
    fuzz_require((result->status == HS_OK) == (result->features != NULL));
    fuzz_require(result->status == HS_OK || result->message[0] != '\0');
    fuzz_require(result->status == expected.status);
    fuzz_require(!result->features || outcome_of(HS_OK, result->features).digest == expected.digest);
    fuzz_require(hs_batch_release(batch, result) == HS_OK);
    if (++count == stop_after) hs_batch_stop(batch);
  }
  fuzz_require(count <= FUZZ_IMAGES && (stop_after < FUZZ_IMAGES || count == FUZZ_IMAGES));
}

static void check_batch(const hs_options *options, input_bytes *choices, const hs_source *file, outcome expected) {
  hs_batch_options o;
  hs_batch *batch = NULL;
  fuzz_require(hs_batch_options_init(&o) == HS_OK);
  o.devices = &options;
  o.device_count = 1;
  o.readers = 1 + (int32_t)input_below(choices, 1);
  o.held = (int32_t)input_below(choices, 1);
  o.in_order = (int32_t)input_below(choices, 1);
  o.load = file->load;
  const size_t stop_after = 1 + input_below(choices, FUZZ_IMAGES);
  if (hs_batch_open(&batch, &o, NULL, 0) != HS_OK) return; /* out of memory or threads */
  const hs_batch_image image = {.source = *file};
  bool added = true;
  for (int i = 0; i < FUZZ_IMAGES && added; i++) added = hs_batch_add(batch, &image) == HS_OK;
  if (added && hs_batch_end(batch) == HS_OK) check_results(batch, o.in_order != 0, stop_after, expected);
  hs_batch_destroy(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int64_t sides[] = {0, 0, 40, 17};
  hs_options options;
  hs_context *context = NULL;
  /* The choices are the file's last bytes, so that the saved image files are inputs as they are. */
  input_bytes choices = {data + (size < 8 ? 0 : size - 8), size < 8 ? size : 8};
  fuzz_require(hs_options_init(&options, HS_PROFILE_LOWE) == HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = 1 + (int32_t)input_below(&choices, 1);
  options.max_features = 50;
  options.first_octave = 0;
  options.max_pixels = FUZZ_MAX_PIXELS;
  const hs_load_options load = {.struct_size = sizeof load,
                                .max_pixels = FUZZ_MAX_PIXELS,
                                .ignore_exif = (int32_t)input_below(&choices, 1),
                                .max_image_size = sides[input_below(&choices, 3)],
                                .strict = (int32_t)input_below(&choices, 1)};
  if (hs_create(&context, &options) != HS_OK) return 0; /* out of memory */
  hs_source file = hs_source_encoded(data, size);
  file.load = &load;
  const outcome expected = by_source(context, &file);
  check_read(context, &file, expected);
  check_batch(&options, &choices, &file, expected);
  hs_destroy(context);
  return 0;
}
