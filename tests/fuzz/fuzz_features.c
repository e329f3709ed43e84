/*
 * Fuzz target for the feature readers.
 *
 * The first byte chooses the format (0: by content), the next whether a companion file exists, the rest is the content.
 * Features that were read must be consistent, and the format's own writer must keep their count. Binary formats are
 * tried again with corrected checksums, which random changes would never produce.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"
#include "tests/support/feature_maker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_MAX_FEATURES = 1 << 16, FUZZ_HEAD_BYTES = 3 };

static void fuzz_require(bool condition) {
  if (!condition) abort();
}

/* Writes the features to memory and reads them again. */
static void fuzz_write_again(const feature_format *format, const hs_features *features) {
  char *bytes = NULL;
  size_t size = 0;
  FILE *stream = open_memstream(&bytes, &size);
  fuzz_require(stream != NULL);
  feature_target target = {.path = "again", .stream = stream, .features = features, .layout = HS_LAYOUT_UBC};
  hs_status status = format->write(&target);
  fuzz_require(fclose(stream) == 0);
  if (status == HS_OK) {
    hs_features again = {0};
    feature_source source = {
        .path = "again", .bytes = (const uint8_t *)bytes, .size = size, .max_features = FUZZ_MAX_FEATURES};
    fuzz_require(features_read_memory(format, &source, &again) == HS_OK);
    fuzz_require(again.count == features->count);
    hs_features_free(&again);
  }
  free(bytes);
}

static void fuzz_read(const feature_format *format, feature_source *source) {
  char message[256] = "";
  source->message = message;
  source->message_bytes = sizeof message;
  hs_features features = {0};
  hs_status status = features_read_memory(format, source, &features);
  if (status != HS_OK) {
    fuzz_require(!features.keypoints && message[0] != '\0');
    return;
  }
  fuzz_require(feature_maker_consistent(&features));
  bool holds = features.descriptor_type != HS_DESCRIPTOR_NONE || format->without_descriptors;
  if (!format->second_ending && holds) fuzz_write_again(format, &features);
  hs_features_free(&features);
}

/* Repairs the checksum of hartsift's own format: at byte 60 of a header of 64 bytes, computed with these bytes as
 * zero. */
static void fuzz_repair_bin(uint8_t *bytes, size_t size) {
  if (size < 64) return;
  bytes_put_u32(bytes + 60, 0);
  bytes_put_u32(bytes + 60, crc_castagnoli(0, bytes, size));
}

/* Repairs a zip file: sets the CRC-32 of the stored bytes in every directory record. */
static void fuzz_repair_zip(uint8_t *bytes, size_t size) {
  for (size_t at = 0; at + 46 <= size; at++) {
    if (bytes_get_u32(bytes + at) != 0x02014b50u) continue;
    size_t local = bytes_get_u32(bytes + at + 42);
    size_t length = bytes_get_u32(bytes + at + 24);
    if (size < 30 || local > size - 30) continue;
    size_t start = local + 30 + bytes_get_u16(bytes + local + 26) + bytes_get_u16(bytes + local + 28);
    if (start > size || length > size - start) continue;
    bytes_put_u32(bytes + at + 16, crc_zip(0, bytes + start, length));
  }
}

static void fuzz_read_repaired(const feature_format *format, feature_source *source) {
  bool bin = format->id == HS_FORMAT_BIN;
  if (!bin && format->id != HS_FORMAT_NPZ) return;
  uint8_t *bytes = malloc(source->size > 0 ? source->size : 1);
  if (!bytes) return;
  if (source->size > 0) memcpy(bytes, source->bytes, source->size);
  if (bin)
    fuzz_repair_bin(bytes, source->size);
  else
    fuzz_repair_zip(bytes, source->size);
  source->bytes = bytes;
  fuzz_read(format, source);
  free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < FUZZ_HEAD_BYTES) return 0;
  const feature_format *format = format_by_id((hs_format)(data[0] % (FORMAT_COUNT + 1u)));
  size_t second_size = data[1] | (size_t)data[2] << 8;
  data += FUZZ_HEAD_BYTES;
  size -= FUZZ_HEAD_BYTES;
  if (second_size > size) second_size = size;
  feature_source source = {.path = "fuzz",
                           .bytes = data,
                           .size = size - second_size,
                           .second_bytes = data + (size - second_size),
                           .second_size = second_size,
                           .max_features = FUZZ_MAX_FEATURES};
  if (!format) format = format_by_content(source.bytes, source.size, NULL);
  if (!format || !format->read) return 0; /* databases are opened by other functions */
  fuzz_read(format, &source);
  fuzz_read_repaired(format, &source);
  return 0;
}
