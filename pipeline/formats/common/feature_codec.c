/*
 * Conversions and checks of descriptors and keypoints in files.
 */
#include "pipeline/formats/common/feature_codec.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { CELL_BINS = 8 };

static const double two_pi = 6.283185307179586476925;

/* Descriptors of unit norm have no value above 1; the margin allows for rounding. */
static const float already_scaled_above = 1.5f;
static const float unit_norm_scale = 512.0f;

/* Maps an index to the order of orientation bins 0 7 6 5 4 3 2 1. */
size_t descriptor_swapped(size_t index) {
  size_t bin = index % CELL_BINS;
  return index - bin + (CELL_BINS - bin) % CELL_BINS;
}

uint8_t *descriptor_u8_at(const hs_features *features, size_t index) {
  return (uint8_t *)features->descriptors + index * HS_DESCRIPTOR_LENGTH;
}

float *descriptor_f32_at(const hs_features *features, size_t index) {
  return (float *)features->descriptors + index * HS_DESCRIPTOR_LENGTH;
}

static bool descriptors_are_scaled(const hs_features *features) {
  for (size_t i = 0; i < features->count; i++) {
    const float *values = descriptor_f32_at(features, i);
    for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++)
      if (values[k] > already_scaled_above) return true;
  }
  return false;
}

descriptor_codec descriptor_codec_make(const hs_features *features, hs_bin_layout memory, hs_bin_layout file) {
  descriptor_codec codec = {.features = features, .swap_bins = memory != file, .u8_scale = unit_norm_scale};
  if (features->descriptor_type == HS_DESCRIPTOR_F32 && descriptors_are_scaled(features)) codec.u8_scale = 1.0f;
  return codec;
}

static uint8_t float_to_u8(float value, float scale) {
  float scaled = floorf(value * scale + 0.5f);
  if (!(scaled > 0.0f)) return 0;
  return (uint8_t)(scaled < 255.0f ? scaled : 255.0f);
}

void descriptor_to_u8(const descriptor_codec *codec, size_t index, uint8_t out[HS_DESCRIPTOR_LENGTH]) {
  const hs_features *features = codec->features;
  if (features->descriptor_type == HS_DESCRIPTOR_F32) {
    const float *values = descriptor_f32_at(features, index);
    for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) out[k] = float_to_u8(values[k], codec->u8_scale);
  } else {
    memcpy(out, descriptor_u8_at(features, index), HS_DESCRIPTOR_LENGTH);
  }
  if (codec->swap_bins) descriptor_swap_bins(out);
}

void descriptor_to_f32(const descriptor_codec *codec, size_t index, float out[HS_DESCRIPTOR_LENGTH]) {
  const float *values = descriptor_f32_at(codec->features, index);
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) out[k] = values[codec->swap_bins ? descriptor_swapped(k) : k];
}

void descriptors_put_bytes(const descriptor_codec *codec, feature_sink *sink) {
  const hs_features *features = codec->features;
  if (features->descriptor_type == HS_DESCRIPTOR_U8 && !codec->swap_bins && features->count > 0) {
    sink_bytes(sink, features->descriptors, features->count * HS_DESCRIPTOR_LENGTH); /* unconverted */
    return;
  }
  for (size_t i = 0; i < features->count; i++) {
    if (features->descriptor_type == HS_DESCRIPTOR_U8) {
      descriptor_to_u8(codec, i, sink_reserve(sink, HS_DESCRIPTOR_LENGTH));
      continue;
    }
    float values[HS_DESCRIPTOR_LENGTH];
    uint8_t *out = sink_reserve(sink, HS_DESCRIPTOR_LENGTH * sizeof(float));
    descriptor_to_f32(codec, i, values);
    for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) bytes_put_f32(out + k * sizeof(float), values[k]);
  }
}

void descriptor_put_text(const descriptor_codec *codec, size_t index, const char *separator, feature_sink *sink) {
  bool is_float = codec->features->descriptor_type == HS_DESCRIPTOR_F32;
  uint8_t bytes[HS_DESCRIPTOR_LENGTH] = {0};
  float values[HS_DESCRIPTOR_LENGTH] = {0};
  if (is_float)
    descriptor_to_f32(codec, index, values);
  else
    descriptor_to_u8(codec, index, bytes);
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    if (k > 0) sink_text(sink, separator);
    if (is_float)
      sink_float(sink, values[k]);
    else
      sink_int(sink, bytes[k]);
  }
}

void descriptor_swap_bins(uint8_t descriptor[HS_DESCRIPTOR_LENGTH]) {
  uint8_t copy[HS_DESCRIPTOR_LENGTH];
  memcpy(copy, descriptor, sizeof copy);
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) descriptor[k] = copy[descriptor_swapped(k)];
}

const char *descriptor_store(const hs_features *features, size_t entry, double value) {
  if (features->descriptor_type == HS_DESCRIPTOR_F32) {
    if (!fits_float(value)) return "a descriptor entry is not a finite float";
    descriptor_f32_at(features, 0)[entry] = (float)value;
    return NULL;
  }
  if (!(value >= 0.0 && value <= 255.0) || value != floor(value)) return "a descriptor entry is no integer of 0..255";
  descriptor_u8_at(features, 0)[entry] = (uint8_t)value;
  return NULL;
}

float angle_wrap(double radians) {
  if (!(radians >= 0.0 && radians < two_pi)) {
    radians = fmod(radians, two_pi);
    if (radians < 0.0) radians += two_pi;
  }
  float rounded = (float)radians;
  return (double)rounded < two_pi ? rounded : 0.0f;
}

bool fits_float(double value) { return isfinite(value) && fabs(value) <= (double)FLT_MAX; }

const char *keypoint_fill(hs_keypoint *keypoint, double x, double y, double sigma, double orientation) {
  memset(keypoint, 0, sizeof *keypoint);
  if (!fits_float(x) || !fits_float(y)) return "a coordinate is not a finite number";
  if (!fits_float(sigma) || !((float)sigma > 0.0f)) return "the scale is not a positive finite number";
  if (!fits_float(orientation)) return "the orientation is not a finite number";
  keypoint->x = (float)x;
  keypoint->y = (float)y;
  keypoint->sigma = (float)sigma;
  keypoint->orientation = angle_wrap(orientation);
  return NULL;
}

static bool fits_int16(double value) { return value >= INT16_MIN && value <= INT16_MAX && value == floor(value); }

const char *keypoint_fill_origin(hs_keypoint *keypoint, double response, double octave, double level) {
  if (!fits_float(response)) return "the response is not a finite number";
  if (!fits_int16(octave)) return "the octave is not an integer of 16 bits";
  if (!fits_int16(level) || level < 0) return "the level is not a small integer";
  keypoint->response = (float)response;
  keypoint->octave = (int16_t)octave;
  keypoint->level = (int16_t)level;
  return NULL;
}

/* Computes the area in double, where products of floats neither overflow nor underflow. */
bool frame_has_inverse(const hs_frame *f) {
  const double area = (double)f->a11 * (double)f->a22 - (double)f->a12 * (double)f->a21;
  return isfinite(area) && area != 0.0;
}

const char *frame_fill(hs_frame *frame, const double values[4]) {
  for (int k = 0; k < 4; k++)
    if (!fits_float(values[k])) return "a frame has an entry that is not a finite number";
  *frame = (hs_frame){(float)values[0], (float)values[1], (float)values[2], (float)values[3]};
  return frame_has_inverse(frame) ? NULL : "a frame has no inverse";
}
