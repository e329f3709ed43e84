/*
 * Makes and compares feature lists for tests; see feature_maker.h.
 */
#include "tests/support/feature_maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/features.h"

enum { CELL_BINS = 8 };

uint32_t feature_maker_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static float uniform(uint32_t *state, float low, float high) {
  return low + (high - low) * ((float)feature_maker_random(state) / 16777216.0f);
}

static void fill_keypoint(hs_keypoint *keypoint, size_t index, uint32_t *state) {
  keypoint->x = uniform(state, 0.0f, 639.0f);
  keypoint->y = uniform(state, 0.0f, 479.0f);
  keypoint->octave = (int16_t)((int)(feature_maker_random(state) % 6) - 1);
  keypoint->level = (int16_t)(1 + feature_maker_random(state) % 3);
  float offset = uniform(state, -0.5f, 0.5f);
  keypoint->sigma = 1.6f * exp2f((float)keypoint->octave + ((float)keypoint->level + offset) / 3.0f);
  keypoint->orientation = uniform(state, 0.0f, 6.28f);
  if (index == 1) keypoint->orientation = 0.0f;
  if (index == 2) keypoint->orientation = nextafterf(6.2831853071795864f, 0.0f);
  keypoint->response = uniform(state, 0.01f, 0.2f);
}

static void fill_floats(float *values, feature_style style, uint32_t *state) {
  float sum = 0.0f;
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    values[k] = style == FEATURES_SCALED_F32 ? (float)(feature_maker_random(state) % 256) : uniform(state, 0.0f, 1.0f);
    sum += values[k] * values[k];
  }
  for (size_t k = 0; style == FEATURES_UNIT_F32 && k < HS_DESCRIPTOR_LENGTH; k++) values[k] /= sqrtf(sum);
}

void feature_maker_fill(hs_features *features, size_t count, feature_style style, uint32_t seed) {
  hs_descriptor_type type = HS_DESCRIPTOR_F32;
  if (style == FEATURES_U8) type = HS_DESCRIPTOR_U8;
  if (style == FEATURES_NONE) type = HS_DESCRIPTOR_NONE;
  if (features_reserve(features, count, type, NULL) != HS_OK) abort();
  for (size_t i = 0; i < count; i++) {
    fill_keypoint(&features->keypoints[i], i, &seed);
    for (size_t k = 0; type == HS_DESCRIPTOR_U8 && k < HS_DESCRIPTOR_LENGTH; k++)
      ((uint8_t *)features->descriptors)[i * HS_DESCRIPTOR_LENGTH + k] = (uint8_t)feature_maker_random(&seed);
    if (type == HS_DESCRIPTOR_F32) fill_floats((float *)features->descriptors + i * HS_DESCRIPTOR_LENGTH, style, &seed);
  }
  features->count = count;
  features->image_width = 640;
  features->image_height = 480;
}

void feature_maker_swap_bins(hs_features *features) {
  size_t item = features_descriptor_bytes(features->descriptor_type) / HS_DESCRIPTOR_LENGTH;
  unsigned char *cell = features->descriptors;
  for (size_t i = 0; i < features->count * HS_DESCRIPTOR_LENGTH / CELL_BINS && item > 0; i++) {
    unsigned char copy[CELL_BINS * sizeof(float)];
    memcpy(copy, cell, CELL_BINS * item);
    for (size_t bin = 1; bin < CELL_BINS; bin++) memcpy(cell + bin * item, copy + (CELL_BINS - bin) * item, item);
    cell += CELL_BINS * item;
  }
}

bool feature_maker_consistent(const hs_features *features) {
  size_t item = features_descriptor_bytes(features->descriptor_type);
  if (features->count > features->capacity || features->image_width < 0 || features->image_height < 0) return false;
  if (features->count * item > features->descriptor_capacity_bytes) return false;
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *k = &features->keypoints[i];
    if (!isfinite(k->x) || !isfinite(k->y) || !isfinite(k->response) || !isfinite(k->sigma)) return false;
    if (!(k->sigma > 0.0f) || k->level < 0) return false;
    if (!(k->orientation >= 0.0f && (double)k->orientation < 6.283185307179586)) return false;
  }
  const float *values = features->descriptors;
  for (size_t i = 0; features->descriptor_type == HS_DESCRIPTOR_F32 && i < features->count * HS_DESCRIPTOR_LENGTH; i++)
    if (!isfinite(values[i])) return false;
  return features->descriptor_type != HS_DESCRIPTOR_NONE || !features->descriptors;
}
