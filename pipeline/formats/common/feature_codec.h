/*
 * Conversions between memory and files: little-endian numbers, bin order, descriptor type, angles. Also the checks of
 * keypoint values that all readers make.
 */
#ifndef HARTSIFT_FORMATS_COMMON_FEATURE_CODEC_H
#define HARTSIFT_FORMATS_COMMON_FEATURE_CODEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pipeline/formats/common/feature_sink.h"
#include "pipeline/include/hartsift.h"

/* ---- little-endian numbers in byte buffers, whatever the order of the host */

static inline void bytes_put_u16(uint8_t *to, uint16_t value) {
  to[0] = (uint8_t)(value & 0xffu);
  to[1] = (uint8_t)(value >> 8);
}

static inline void bytes_put_u32(uint8_t *to, uint32_t value) {
  bytes_put_u16(to, (uint16_t)(value & 0xffffu));
  bytes_put_u16(to + 2, (uint16_t)(value >> 16));
}

static inline void bytes_put_u64(uint8_t *to, uint64_t value) {
  bytes_put_u32(to, (uint32_t)(value & 0xffffffffu));
  bytes_put_u32(to + 4, (uint32_t)(value >> 32));
}

static inline void bytes_put_f32(uint8_t *to, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bytes_put_u32(to, bits);
}

static inline uint16_t bytes_get_u16(const uint8_t *from) {
  return (uint16_t)((uint32_t)from[0] | ((uint32_t)from[1] << 8));
}

static inline uint32_t bytes_get_u32(const uint8_t *from) {
  return (uint32_t)bytes_get_u16(from) | ((uint32_t)bytes_get_u16(from + 2) << 16);
}

static inline uint64_t bytes_get_u64(const uint8_t *from) {
  return (uint64_t)bytes_get_u32(from) | ((uint64_t)bytes_get_u32(from + 4) << 32);
}

static inline float bytes_get_f32(const uint8_t *from) {
  uint32_t bits = bytes_get_u32(from);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* ---- conversions between hs_features and files */

/* How the descriptors of a list are written. */
typedef struct descriptor_codec {
  const hs_features *features;
  bool swap_bins; /* the file has the other bin order */
  /* factor from floats to bytes: 512 for unit norm, 1 if a value exceeds 1.5, so that the floats are already scaled */
  float u8_scale;
} descriptor_codec;

descriptor_codec descriptor_codec_make(const hs_features *features, hs_bin_layout memory, hs_bin_layout file);
/* Converts descriptor `index` to bytes. Bytes stay unchanged; floats v become floor(scale v + 0.5), limited to
   0..255. */
void descriptor_to_u8(const descriptor_codec *codec, size_t index, uint8_t out[HS_DESCRIPTOR_LENGTH]);
/* Copies descriptor `index` of a float list. */
void descriptor_to_f32(const descriptor_codec *codec, size_t index, float out[HS_DESCRIPTOR_LENGTH]);
/* Writes all descriptors as little-endian bytes of their type. */
void descriptors_put_bytes(const descriptor_codec *codec, feature_sink *sink);
/* Writes the 128 numbers of a descriptor in its type, with `separator` between them. */
void descriptor_put_text(const descriptor_codec *codec, size_t index, const char *separator, feature_sink *sink);
/* Returns the index of a descriptor entry in the other bin order. The function is its own inverse. */
size_t descriptor_swapped(size_t index);
/* Swaps the bin order of a byte descriptor. The function is its own inverse. */
void descriptor_swap_bins(uint8_t descriptor[HS_DESCRIPTOR_LENGTH]);

/* Return a pointer to the first entry of descriptor `index` of a list. */
uint8_t *descriptor_u8_at(const hs_features *features, size_t index);
float *descriptor_f32_at(const hs_features *features, size_t index);

/* Sets entry number `entry` (0 .. count*128 - 1) of the list's descriptors. Returns null, or the reason why the value
 * is invalid. */
const char *descriptor_store(const hs_features *features, size_t entry, double value);

/* Wraps a finite angle in radians to [0, 2 pi), also after rounding to float. Floats in that range stay unchanged. */
float angle_wrap(double radians);

/* Sets x, y, sigma and orientation, and clears the other fields. Returns null, or the reason why the values are
 * invalid. */
const char *keypoint_fill(hs_keypoint *keypoint, double x, double y, double sigma, double orientation);
/* Sets response, octave and level. Returns null, or the reason why they are invalid. */
const char *keypoint_fill_origin(hs_keypoint *keypoint, double response, double octave, double level);
/* Sets a frame to a11, a12, a21, a22. Returns null, or the reason why they are invalid. */
const char *frame_fill(hs_frame *frame, const double values[4]);
/* True if the frame is finite and invertible. */
bool frame_has_inverse(const hs_frame *frame);
/* True if a double is finite, and stays finite as a float. */
bool fits_float(double value);

#endif
