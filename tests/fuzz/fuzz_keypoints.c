/*
 * Fuzz target for pictures and user keypoints: views of every type and layout with any samples (NaN, infinities),
 * ranges and strides, and keypoints of any values. Results are finite and inside the picture.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/include/hartsift.h"
#include "tests/fuzz/input_bytes.h"
#include "tests/support/feature_maker.h"

enum { FUZZ_SIDE_MAX = 40, FUZZ_KEYPOINTS_MAX = 24, FUZZ_SAMPLE_BYTES_MAX = 4 * 4 };

static size_t sample_bytes(hs_sample_type type) { return type == HS_U8 ? 1 : type == HS_U16 ? 2 : 4; }

static size_t channel_count(hs_pixel_layout layout) {
  static const size_t channels[] = {1, 2, 3, 3, 4, 4};
  return channels[layout];
}

/* Makes samples: a texture computed from the position, and some samples of any value. The memory ends with the view. */
static void *take_samples(input_bytes *input, const hs_image *image) {
  const size_t row = image->stride_bytes, rows = (size_t)image->height;
  const size_t used = (size_t)image->width * channel_count(image->layout) * sample_bytes(image->type);
  const size_t bytes = (rows - 1) * row + used;
  uint8_t *samples = malloc(bytes);
  fuzz_require(samples != NULL);
  const uint32_t seed = input_u32(input);
  const size_t count = bytes / sample_bytes(image->type);
  for (size_t i = 0; i < count; i++) {
    const uint32_t value = (uint32_t)(i * i + i / 7) * (seed | 1u) >> 13;
    const float real = (float)(value % 1024u) / 1023.0f;
    if (image->type == HS_F32)
      memcpy(samples + 4 * i, &real, 4);
    else
      memcpy(samples + sample_bytes(image->type) * i, &value, sample_bytes(image->type));
  }
  for (uint32_t n = input_below(input, 15); image->type == HS_F32 && n > 0; n--) {
    const float any = input_float(input);
    memcpy(samples + 4 * (input_u32(input) % count), &any, 4);
  }
  return samples;
}

static hs_image take_image(input_bytes *input) {
  hs_image image = {.width = 1 + (int32_t)input_below(input, FUZZ_SIDE_MAX - 1),
                    .height = 1 + (int32_t)input_below(input, FUZZ_SIDE_MAX - 1)};
  image.type = (hs_sample_type)input_below(input, 2);
  image.layout = (hs_pixel_layout)input_below(input, 5);
  const size_t sample = sample_bytes(image.type);
  image.stride_bytes = ((size_t)image.width * channel_count(image.layout) + input_below(input, 3)) * sample;
  if ((input_u8(input) & 1u) != 0) {
    image.range_low = input_float(input);
    image.range_high = input_float(input);
  }
  image.data = take_samples(input, &image);
  return image;
}

static hs_options take_options(input_bytes *input) {
  hs_options options;
  fuzz_require(hs_options_init(&options, (hs_profile)input_below(input, HS_PROFILE_COLMAP)) == HS_OK);
  options.device = HS_DEVICE_CPU;
  options.threads = 1;
  options.descriptor = (hs_descriptor_type)input_below(input, 2);
  options.first_octave = (int32_t)input_below(input, 2) - 1;
  options.dsp = input_u8(input) == 1;
  const uint8_t rest = input_u8(input);
  options.upright = rest % 128 == 1;
  options.affine = rest >= 128;
  options.contrast = (float)input_u8(input) / 2048.0f;
  return options;
}

static void check_frames(const hs_features *features) {
  const float *values = (const float *)features->frames;
  for (size_t i = 0; values && i < 4 * features->count; i++) fuzz_require(isfinite(values[i]) != 0);
}

static void check_found(const hs_image *image, const hs_features *features) {
  fuzz_require(feature_maker_consistent(features));
  check_frames(features);
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *k = &features->keypoints[i];
    fuzz_require(k->x > -1.0f && k->y > -1.0f && k->x < (float)image->width && k->y < (float)image->height);
    fuzz_require(isfinite(k->response) != 0);
  }
}

static void describe(hs_context *context, input_bytes *input, const hs_image *image) {
  hs_keypoint keypoints[FUZZ_KEYPOINTS_MAX];
  hs_status statuses[FUZZ_KEYPOINTS_MAX];
  hs_features features = {0};
  const size_t count = input_below(input, FUZZ_KEYPOINTS_MAX);
  for (size_t i = 0; i < count; i++) {
    keypoints[i] = (hs_keypoint){.x = input_float(input), .y = input_float(input)};
    keypoints[i].sigma = input_float(input);
    keypoints[i].orientation = input_float(input);
    keypoints[i].response = input_float(input);
    keypoints[i].octave = (int16_t)input_i32(input);
    keypoints[i].level = (int16_t)input_i32(input);
  }
  if (hs_describe(context, image, keypoints, count, &features, statuses) == HS_OK) {
    for (size_t i = 0; i < count; i++) fuzz_require(statuses[i] == HS_OK || statuses[i] == HS_ERR_KEYPOINT);
    const float *floats = features.descriptors;
    const bool has_floats = features.descriptor_type == HS_DESCRIPTOR_F32;
    for (size_t i = 0; has_floats && i < features.count * HS_DESCRIPTOR_LENGTH; i++)
      fuzz_require(isfinite(floats[i]) != 0);
    for (size_t i = 0; i < count && features.count == count && features.frames; i++)
      fuzz_require(statuses[i] != HS_OK || isfinite(features.frames[i].a11) != 0);
  }
  hs_features_free(&features);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input_bytes input = {data, size};
  const hs_options options = take_options(&input);
  const hs_image image = take_image(&input);
  hs_context *context = NULL;
  hs_features features = {0};
  if (hs_create(&context, &options) == HS_OK) {
    if (hs_extract(context, &image, NULL, &features) == HS_OK) check_found(&image, &features);
    describe(context, &input, &image);
  }
  hs_features_free(&features);
  hs_destroy(context);
  free((void *)(uintptr_t)image.data);
  return 0;
}
