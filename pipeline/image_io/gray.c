/*
 * Rows of decoded pixels to gray or RGB: the one integer formula of the public header, alpha dropped.
 */
#include <string.h>

#include "pipeline/image_io/image_io.h"

/* 2^15 times the Rec. 601 luma weights; they add up to 32768, so white stays white. */
enum { GRAY_RED = 9798, GRAY_GREEN = 19235, GRAY_BLUE = 3735, GRAY_HALF = 16384, GRAY_SHIFT = 15 };

/* 65535 * 32768 + 16384 is below 2^32: 32 bits hold the sum for 16-bit samples too. */
static uint32_t gray_of(uint32_t red, uint32_t green, uint32_t blue) {
  return (GRAY_RED * red + GRAY_GREEN * green + GRAY_BLUE * blue + GRAY_HALF) >> GRAY_SHIFT;
}

static void gray_convert_u8(const uint8_t *source, size_t channels, size_t count, uint8_t *target, bool colour) {
  for (size_t i = 0; i < count; i++, source += channels)
    if (colour)
      memcpy(target + 3 * i, source, 3);
    else if (channels >= 3)
      target[i] = (uint8_t)gray_of(source[0], source[1], source[2]);
    else
      target[i] = source[0];
}

static void gray_convert_u16(const uint16_t *source, size_t channels, size_t count, uint16_t *target, bool colour) {
  for (size_t i = 0; i < count; i++, source += channels)
    if (colour)
      memcpy(target + 3 * i, source, 3 * sizeof *source);
    else if (channels >= 3)
      target[i] = (uint16_t)gray_of(source[0], source[1], source[2]);
    else
      target[i] = source[0];
}

static void gray_convert_f32(const float *source, size_t channels, size_t count, float *target, bool colour) {
  for (size_t i = 0; i < count; i++, source += channels)
    if (colour)
      memcpy(target + 3 * i, source, 3 * sizeof *source);
    else if (channels >= 3)
      target[i] = (GRAY_RED * source[0] + GRAY_GREEN * source[1] + GRAY_BLUE * source[2]) / (1 << GRAY_SHIFT);
    else
      target[i] = source[0];
}

void gray_convert_row(const void *source, size_t source_channels, hs_sample_type type, size_t count, void *target,
                      hs_pixel_layout target_layout) {
  if (image_channels(target_layout) == source_channels)
    memcpy(target, source, count * source_channels * image_sample_bytes(type));
  else if (type == HS_U16)
    gray_convert_u16(source, source_channels, count, target, target_layout == HS_RGB);
  else if (type == HS_F32)
    gray_convert_f32(source, source_channels, count, target, target_layout == HS_RGB);
  else
    gray_convert_u8(source, source_channels, count, target, target_layout == HS_RGB);
}
