/*
 * The EXIF orientation of a JPEG: read from its APP1 segment, applied while rows are decoded.
 */
#include <string.h>

#include "pipeline/image_io/image_io.h"

enum {
  EXIF_TAG_ORIENTATION = 0x0112,
  EXIF_TYPE_SHORT = 3,
  EXIF_TYPE_LONG = 4, /* not what the standard says for this tag, but written by some */
  EXIF_ENTRY_BYTES = 12
};

/* The TIFF structure inside the segment. */
typedef struct exif_tiff {
  const uint8_t *bytes;
  size_t size;
  bool big_endian;
} exif_tiff;

/* The callers have checked that the bytes are there. */
static uint32_t exif_u16(const exif_tiff *tiff, size_t at) {
  const uint32_t first = tiff->bytes[at], second = tiff->bytes[at + 1];
  return tiff->big_endian ? first << 8 | second : second << 8 | first;
}

static uint32_t exif_u32(const exif_tiff *tiff, size_t at) {
  const uint32_t first = exif_u16(tiff, at), second = exif_u16(tiff, at + 2);
  return tiff->big_endian ? first << 16 | second : second << 16 | first;
}

static int exif_entry_orientation(const exif_tiff *tiff, size_t entry) {
  const uint32_t type = exif_u16(tiff, entry + 2);
  uint32_t value = 0;
  if (exif_u32(tiff, entry + 4) != 1) return 1;
  if (type == EXIF_TYPE_SHORT)
    value = exif_u16(tiff, entry + 8);
  else if (type == EXIF_TYPE_LONG)
    value = exif_u32(tiff, entry + 8);
  return value >= 1 && value <= 8 ? (int)value : 1;
}

int exif_orientation(const uint8_t *app1, size_t size) {
  static const uint8_t signature[6] = {'E', 'x', 'i', 'f', 0, 0};
  if (size < sizeof signature + 8 || memcmp(app1, signature, sizeof signature) != 0) return 1;
  exif_tiff tiff = {.bytes = app1 + sizeof signature, .size = size - sizeof signature};
  if (memcmp(tiff.bytes, "MM\0*", 4) == 0)
    tiff.big_endian = true;
  else if (memcmp(tiff.bytes, "II*\0", 4) != 0)
    return 1;
  const size_t directory = exif_u32(&tiff, 4);
  if (directory > tiff.size - 2) return 1;
  const uint32_t entries = exif_u16(&tiff, directory);
  size_t entry = directory + 2;
  for (uint32_t i = 0; i < entries && tiff.size - entry >= EXIF_ENTRY_BYTES; i++, entry += EXIF_ENTRY_BYTES)
    if (exif_u16(&tiff, entry) == EXIF_TAG_ORIENTATION) return exif_entry_orientation(&tiff, entry);
  return 1;
}

exif_placement exif_place(int orientation, int32_t stored_width, int32_t stored_height) {
  /* For each orientation: whether columns and rows swap, then whether the stored columns and the
     stored rows run backwards in the picture to be seen. */
  static const struct {
    bool swap, reverse_x, reverse_y;
  } table[9] = {{false, false, false}, {false, false, false}, {false, true, false},
                {false, true, true},   {false, false, true},  {true, false, false},
                {true, false, true},   {true, true, true},    {true, true, false}};
  const int known = orientation >= 1 && orientation <= 8 ? orientation : 1;
  const bool swap = table[known].swap;
  exif_placement placement = {.width = swap ? stored_height : stored_width,
                              .height = swap ? stored_width : stored_height};
  placement.step_x = swap ? placement.width : 1;
  placement.step_y = swap ? 1 : placement.width;
  if (table[known].reverse_x) {
    placement.start += placement.step_x * (stored_width - 1);
    placement.step_x = -placement.step_x;
  }
  if (table[known].reverse_y) {
    placement.start += placement.step_y * (stored_height - 1);
    placement.step_y = -placement.step_y;
  }
  return placement;
}

void exif_put_row(const exif_placement *placement, int32_t row, const uint8_t *pixels, size_t count, size_t pixel_bytes,
                  uint8_t *picture) {
  const ptrdiff_t first = placement->start + row * placement->step_y;
  if (placement->step_x == 1) {
    memcpy(picture + (size_t)first * pixel_bytes, pixels, count * pixel_bytes);
    return;
  }
  for (size_t x = 0; x < count; x++) {
    uint8_t *target = picture + (size_t)(first + (ptrdiff_t)x * placement->step_x) * pixel_bytes;
    for (size_t i = 0; i < pixel_bytes; i++) target[i] = pixels[x * pixel_bytes + i];
  }
}
