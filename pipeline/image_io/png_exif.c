/* The EXIF of a PNG; see png_exif.h. */
#include "pipeline/image_io/png_exif.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/memory.h"

enum {
  PNG_SIGNATURE_BYTES = 8,
  PNG_CHUNK_HEAD_BYTES = 8,      /* length and name */
  PNG_CHECKSUM_BYTES = 4,        /* after the data, over name and data */
  PNG_EXIF_BYTES_MOST = 16 << 20 /* an APP1 segment of a JPEG has 64 KiB; previews make it larger */
};

/* The file, in memory or on disk. */
typedef struct png_file {
  const image_request *request;
  int descriptor; /* -1: the request has the bytes */
} png_file;

static uint32_t big_endian(const uint8_t *b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* False: the file ends before, or cannot be read. */
static bool read_at(const png_file *file, uint64_t at, void *target, size_t bytes) {
  const image_request *request = file->request;
  if (at > request->size || bytes > request->size - at) return false;
  if (file->descriptor < 0) {
    memcpy(target, request->bytes + at, bytes);
    return true;
  }
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = pread(file->descriptor, (uint8_t *)target + done, bytes - done, (off_t)(at + done));
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    done += count > 0 ? (size_t)count : 0;
  }
  return true;
}

/* The checksum of PNG, annex D. Bit by bit, because there is one such chunk. */
static uint32_t checksum(const uint8_t *bytes, size_t count) {
  uint32_t crc = 0xFFFFFFFFu;
  for (size_t i = 0; i < count; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

/* at: of the chunk's name. */
static hs_status read_chunk(const png_file *file, uint64_t at, size_t length, bool *found, exif_tags *tags) {
  const size_t name_bytes = PNG_CHUNK_HEAD_BYTES - 4, checked = name_bytes + length;
  uint8_t *chunk = hs_memory_alloc(file->request->allocator, checked + PNG_CHECKSUM_BYTES);
  if (!chunk) return image_fail(file->request, HS_ERR_MEMORY, "no memory for the EXIF of %zu bytes", length);
  if (read_at(file, at, chunk, checked + PNG_CHECKSUM_BYTES) && checksum(chunk, checked) == big_endian(chunk + checked))
    /* Some writers put the segment's signature of a JPEG before it. */
    *found = exif_parse_tiff(chunk + name_bytes, length, tags) || exif_parse(chunk + name_bytes, length, tags);
  hs_memory_release(file->request->allocator, chunk);
  return HS_OK;
}

hs_status png_exif_read(const image_request *request, FILE *stream, bool *found, exif_tags *tags) {
  const png_file file = {.request = request, .descriptor = stream ? fileno(stream) : -1};
  uint8_t head[PNG_CHUNK_HEAD_BYTES];
  *found = false;
  for (uint64_t at = PNG_SIGNATURE_BYTES; read_at(&file, at, head, sizeof head);) {
    const uint32_t length = big_endian(head);
    if (memcmp(head + 4, "IEND", 4) == 0) break;
    if (memcmp(head + 4, "eXIf", 4) == 0 && length <= PNG_EXIF_BYTES_MOST)
      return read_chunk(&file, at + 4, length, found, tags);
    at += sizeof head + (uint64_t)length + PNG_CHECKSUM_BYTES;
  }
  return HS_OK;
}
