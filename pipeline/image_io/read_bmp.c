/*
 * Reads BMP: uncompressed pictures of 1, 4, 8, 16, 24 or 32 bits per pixel, with palette or masks, top-down or
 * bottom-up. Headers: Microsoft's BITMAPCOREHEADER, BITMAPINFOHEADER and its later versions. Alpha, gamma and colour
 * profiles are ignored.
 */
#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/image_io/image_io.h"

enum {
  BMP_FILE_HEADER = 14,
  BMP_CORE_HEADER = 12,
  BMP_INFO_HEADER = 40,
  BMP_MASKED_HEADER = 52, /* minimum size of a header that includes the masks */
  BMP_PALETTE_MAX = 256,
  BMP_UNCOMPRESSED = 0,
  BMP_MASKS = 3
};

/* Position of the bits of a channel in a pixel. */
typedef struct bmp_channel {
  uint32_t mask, shift, most;
} bmp_channel;

typedef struct bmp_file {
  const image_request *request;
  uint32_t header, data; /* size of the information header; offset of the pixels */
  uint32_t bits, compression, colours;
  uint64_t width, height;
  bool from_top;
  bmp_channel channels[3];             /* red, green, blue; for 16 and 32 bits per pixel */
  uint8_t palette[BMP_PALETTE_MAX][3]; /* colours of pictures with up to 8 bits per pixel */
} bmp_file;

static uint32_t bmp_u16(const uint8_t *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
static uint32_t bmp_u32(const uint8_t *at) { return bmp_u16(at) | bmp_u16(at + 2) << 16; }

static hs_status bmp_damaged(const bmp_file *file, const char *what) {
  return image_fail(file->request, HS_ERR_FORMAT, "damaged BMP: %s", what);
}

bool bmp_is_header(const uint8_t *bytes, size_t size) {
  static const uint32_t headers[] = {12, 40, 52, 56, 64, 108, 124};
  if (size < BMP_FILE_HEADER + 4 || bytes[0] != 'B' || bytes[1] != 'M') return false;
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
    if (bmp_u32(bytes + BMP_FILE_HEADER) == headers[i]) return true;
  return false;
}

/* ---- headers */

static hs_status bmp_read_header(bmp_file *file) {
  const uint8_t *at = file->request->bytes + BMP_FILE_HEADER;
  file->header = bmp_u32(at);
  file->data = bmp_u32(file->request->bytes + 10);
  if (file->request->size < (size_t)BMP_FILE_HEADER + file->header) return bmp_damaged(file, "the file ends early");
  uint32_t planes;
  if (file->header == BMP_CORE_HEADER) {
    file->width = bmp_u16(at + 4);
    file->height = bmp_u16(at + 6);
    planes = bmp_u16(at + 8);
    file->bits = bmp_u16(at + 10);
  } else {
    const uint32_t height = bmp_u32(at + 8);
    file->from_top = height > INT32_MAX;
    file->width = bmp_u32(at + 4);
    file->height = file->from_top ? 0u - height : height;
    planes = bmp_u16(at + 12);
    file->bits = bmp_u16(at + 14);
    file->compression = bmp_u32(at + 16);
    file->colours = bmp_u32(at + 32);
  }
  return planes == 1 ? HS_OK : bmp_damaged(file, "the number of planes is not 1");
}

static hs_status bmp_check_kind(const bmp_file *file) {
  const uint32_t bits = file->bits;
  const bool masks = file->compression == BMP_MASKS && (bits == 16 || bits == 32);
  if (file->compression != BMP_UNCOMPRESSED && !masks)
    return image_fail(file->request, HS_ERR_UNSUPPORTED,
                      "BMP with compression %lu of %lu bits: only uncompressed is read",
                      (unsigned long)file->compression, (unsigned long)bits);
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
    return image_fail(file->request, HS_ERR_UNSUPPORTED, "BMP with %lu bits a pixel", (unsigned long)bits);
  return HS_OK;
}

/* Sets a channel from its mask. False: the mask is not a single run of ones. */
static bool bmp_set_channel(bmp_channel *channel, uint32_t mask) {
  *channel = (bmp_channel){.mask = mask, .most = mask};
  if (mask == 0) return false;
  while (!(channel->most & 1u)) {
    channel->most >>= 1;
    channel->shift++;
  }
  return ((uint64_t)channel->most & ((uint64_t)channel->most + 1)) == 0;
}

static hs_status bmp_read_masks(bmp_file *file) {
  static const uint32_t usual[2][3] = {{0x7c00u, 0x03e0u, 0x001fu}, {0xff0000u, 0xff00u, 0xffu}};
  const size_t at = BMP_FILE_HEADER + BMP_INFO_HEADER;
  const bool requested = file->compression == BMP_MASKS;
  if (file->bits != 16 && file->bits != 32) return HS_OK;
  if (requested && (file->header < BMP_INFO_HEADER || file->request->size < at + 12))
    return bmp_damaged(file, "the masks are missing");
  for (size_t i = 0; i < 3; i++) {
    const uint32_t mask = requested ? bmp_u32(file->request->bytes + at + 4 * i) : usual[file->bits == 32][i];
    if (!bmp_set_channel(&file->channels[i], mask) || (file->bits == 16 && mask > 0xffff))
      return bmp_damaged(file, "a colour's mask is not a run of bits");
  }
  return HS_OK;
}

static hs_status bmp_read_palette(bmp_file *file) {
  if (file->bits > 8) return HS_OK;
  const size_t entry = file->header == BMP_CORE_HEADER ? 3 : 4, most = (size_t)1 << file->bits;
  const size_t count = file->colours == 0 ? most : file->colours, at = BMP_FILE_HEADER + (size_t)file->header;
  if (count > most) return bmp_damaged(file, "more colours than its pixels can index");
  if (file->request->size < at + count * entry) return bmp_damaged(file, "the palette is cut off");
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < 3; k++) file->palette[i][k] = file->request->bytes[at + i * entry + 2 - k];
  file->colours = (uint32_t)count;
  return HS_OK;
}

/* ---- pixels */

/* Returns the bytes of a row: below 2^37, because width and bits are checked. */
static uint64_t bmp_row_bytes(const bmp_file *file) { return (file->width * file->bits + 31) / 32 * 4; }

static hs_status bmp_check_length(const bmp_file *file) {
  const size_t size = file->request->size;
  if (file->data > size || bmp_row_bytes(file) > (size - file->data) / file->height)
    return bmp_damaged(file, "the file ends early");
  return HS_OK;
}

/* Returns a channel of a pixel, scaled to 8 bits with rounding. */
static uint8_t bmp_channel_of(const bmp_channel *channel, uint32_t pixel) {
  const uint64_t value = (pixel & channel->mask) >> channel->shift;
  return (uint8_t)((value * 255 + channel->most / 2) / channel->most);
}

/* Reads a row as RGB. False: the palette lacks a pixel's colour. */
static bool bmp_read_row(const bmp_file *file, const uint8_t *from, uint8_t *row) {
  for (size_t x = 0; x < file->width; x++, row += 3) {
    if (file->bits <= 8) {
      const size_t bit = x * file->bits;
      const uint32_t index = (uint32_t)from[bit / 8] >> (8 - file->bits - bit % 8) & ((1u << file->bits) - 1u);
      if (index >= file->colours) return false;
      memcpy(row, file->palette[index], 3);
    } else if (file->bits == 24) {
      for (size_t k = 0; k < 3; k++) row[k] = from[3 * x + 2 - k];
    } else {
      const uint32_t pixel = file->bits == 16 ? bmp_u16(from + 2 * x) : bmp_u32(from + 4 * x);
      for (size_t k = 0; k < 3; k++) row[k] = bmp_channel_of(&file->channels[k], pixel);
    }
  }
  return true;
}

static hs_status bmp_read_pixels(const bmp_file *file, uint8_t *row, hs_image *image) {
  const uint8_t *data = file->request->bytes + file->data;
  const size_t stride = (size_t)bmp_row_bytes(file);
  uint8_t *target = (uint8_t *)(uintptr_t)image->data;
  for (size_t y = 0; y < file->height; y++) {
    const size_t stored = file->from_top ? y : (size_t)file->height - 1 - y;
    if (!bmp_read_row(file, data + stored * stride, row))
      return bmp_damaged(file, "a pixel's colour is not in the palette");
    gray_convert_row(row, 3, HS_U8, (size_t)file->width, target + y * image->stride_bytes, image->layout);
  }
  return HS_OK;
}

hs_status image_read_bmp(const image_request *request, hs_image *image) {
  bmp_file file = {.request = request};
  hs_status status = bmp_read_header(&file);
  if (status == HS_OK) status = bmp_check_kind(&file);
  if (status == HS_OK) status = image_check_size(request, file.width, file.height);
  if (status == HS_OK) status = bmp_read_masks(&file);
  if (status == HS_OK) status = bmp_read_palette(&file);
  if (status == HS_OK && !request->is_probe) status = bmp_check_length(&file);
  if (status != HS_OK) return status;
  hs_image made;
  status = image_allocate(request, (int32_t)file.width, (int32_t)file.height, HS_U8,
                          request->keep_colour ? HS_RGB : HS_GRAY, 3 * file.width, &made);
  if (status != HS_OK) return status;
  uint8_t *row = hs_memory_alloc(request->allocator, 3 * (size_t)file.width);
  status = row ? bmp_read_pixels(&file, row, &made) : image_fail(request, HS_ERR_MEMORY, "out of memory for a row");
  hs_memory_release(request->allocator, row);
  if (status != HS_OK) {
    hs_image_free(&made);
    return status;
  }
  *image = made;
  return HS_OK;
}
