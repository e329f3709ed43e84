/*
 * Fuzz target for images in memory, in gray and colour, at the four scales of JPEG decoding.
 *
 * Every byte of a picture is read. Decoded row by row, twice, it has the same bytes, or fails in the same way. A PNG is
 * tried again with corrected checksums, which random changes would never produce.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/image_io/image_io.h"
#include "pipeline/include/hartsift.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The limits are small, for speed and so that a reader that ignores a limit is detected. */
enum { FUZZ_MAX_PIXELS = 1 << 18, FUZZ_MAX_MEMORY_BYTES = 16 << 20 };

static size_t bytes_per_pixel(const hs_image *image) {
  return (image->layout == HS_RGB ? 3u : 1u) * (image->type == HS_F32 ? 4u : image->type == HS_U16 ? 2u : 1u);
}

static void decode(const uint8_t *data, size_t size, int keep_colour, int32_t scale) {
  char message[64];
  hs_load_notes notes;
  const hs_load_options options = {.struct_size = sizeof options,
                                   .max_pixels = FUZZ_MAX_PIXELS,
                                   .max_memory_bytes = FUZZ_MAX_MEMORY_BYTES,
                                   .keep_colour = keep_colour,
                                   .message = message,
                                   .message_bytes = sizeof message,
                                   .jpeg_scale = scale,
                                   .notes = &notes,
                                   .range_low = scale == 2 ? -3.0f : 0.0f,
                                   .range_high = scale == 2 ? 200.0f : 0.0f,
                                   .strict = scale == 4};
  hs_image image;
  const hs_status status = hs_load_image_memory(data, size, &options, &image);
  if (status != HS_OK) {
    if (message[0] == '\0' || image.data) abort(); /* a failure has a message and leaves no pixels */
    if (notes.damages != 0 || notes.damage[0] != '\0') abort();
    return;
  }
  if (image.width < 1 || image.height < 1 || (uint64_t)image.width * (uint64_t)image.height > FUZZ_MAX_PIXELS ||
      image.stride_bytes != (size_t)image.width * bytes_per_pixel(&image))
    abort();
  if ((notes.damages > 0) != (notes.damage[0] != '\0') || (options.strict && notes.damages > 0)) abort();
  /* Control flow depends on the sum, so that reads are not optimised away and uninitialised bytes are detected. */
  uint32_t sum = 0;
  for (size_t i = 0; i < image.stride_bytes * (size_t)image.height; i++)
    sum = sum * 31u + ((const uint8_t *)image.data)[i];
  if (sum == 0x5EED5EEDu) message[0] = '\0';
  hs_image_free(&image);
}

/* Reads rows until one fails. picture: the expected pixels, or null. */
static hs_status read_rows(image_rows *rows, const hs_image *picture, uint8_t *row) {
  hs_status status = HS_OK;
  for (int32_t y = 0; y < rows->height && status == HS_OK; y++) {
    status = image_rows_read(rows, row);
    if (status == HS_OK && picture &&
        memcmp(row, (const uint8_t *)picture->data + (size_t)y * picture->stride_bytes, picture->stride_bytes) != 0)
      abort();
  }
  return status;
}

/* Decodes the picture by rows, once from the beginning and once after a part of them was read, and compares the result
 * with the whole picture. */
static void decode_rows(const uint8_t *data, size_t size, int32_t scale) {
  char message[256], whole_message[256];
  hs_load_options options = {.struct_size = sizeof options,
                             .max_pixels = FUZZ_MAX_PIXELS,
                             .max_memory_bytes = FUZZ_MAX_MEMORY_BYTES,
                             .message = message,
                             .message_bytes = sizeof message,
                             .jpeg_scale = scale};
  image_rows rows;
  hs_image image;
  if (image_rows_open(&rows, NULL, data, size, &options) != HS_OK || !rows.kind) return;
  options.message = whole_message;
  const hs_status whole = hs_load_image_memory(data, size, &options, &image);
  if (whole == HS_OK && (image.width != rows.width || image.height != rows.height || image.type != rows.type)) abort();
  uint8_t *row = malloc((size_t)rows.width * (rows.type == HS_U16 ? 2u : 1u));
  if (!row) abort();
  if (whole != HS_ERR_LIMIT) { /* the picture may exceed the memory limit */
    const hs_status first = read_rows(&rows, whole == HS_OK ? &image : NULL, row);
    if (first != whole || (first != HS_OK && strcmp(message, whole_message) != 0)) abort();
    if (rows.next > 0 && (image_rows_rewind(&rows) != HS_OK || read_rows(&rows, NULL, row) != whole)) abort();
  }
  free(row);
  image_rows_close(&rows);
  if (whole == HS_OK) hs_image_free(&image);
}

/* Computes PNG's CRC-32 bit by bit. */
static uint32_t checksum(const uint8_t *data, size_t size) {
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < size; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1u ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

/* Corrects the checksums of a PNG. A chunk is length, name, data and a checksum over name and data. */
static void repair_checksums(uint8_t *png, size_t size) {
  size_t at = 8;
  while (size - at >= 12) {
    const size_t length = (size_t)png[at] << 24 | (size_t)png[at + 1] << 16 | (size_t)png[at + 2] << 8 | png[at + 3];
    if (length > size - at - 12) return;
    const uint32_t crc = checksum(png + at + 4, length + 4);
    for (size_t i = 0; i < 4; i++) png[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
    at += length + 12;
  }
}

static int is_jpeg(const uint8_t *data, size_t size) { return size >= 2 && data[0] == 0xFF && data[1] == 0xD8; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!data) return 0;
  for (int32_t scale = 1; scale <= (is_jpeg(data, size) ? 8 : 1); scale *= 2) {
    decode(data, size, 0, scale);
    decode(data, size, 1, scale);
    decode_rows(data, size, scale);
  }
  if (size >= 8 && memcmp(data, "\x89PNG", 4) == 0) {
    uint8_t *png = malloc(size);
    if (!png) return 0;
    memcpy(png, data, size);
    repair_checksums(png, size);
    decode(png, size, 0, 1);
    decode(png, size, 1, 1);
    decode_rows(png, size, 1);
    free(png);
  }
  return 0;
}
