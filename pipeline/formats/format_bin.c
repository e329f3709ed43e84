/*
 * hartsift's binary format: a header of 64 bytes, keypoint records of 24 bytes, descriptors, and in version 2 frames.
 * Each part begins at a multiple of 64, so that a mapped file can be used in place. FORMATS.md has the byte layout.
 * Numbers are little-endian; CRC-32C covers header and payload.
 */
#include <math.h>
#include <string.h>

#include "pipeline/base/features.h"
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"

enum { BIN_HEADER_BYTES = 64, BIN_ALIGNMENT = 64, BIN_KEYPOINT_BYTES = 24, BIN_FRAME_BYTES = 16 };
/* Versions without and with frames. */
enum { BIN_VERSION = 1, BIN_VERSION_FRAMED = 2 };

/* Offsets of the header's fields. */
enum {
  BIN_AT_MAGIC = 0,
  BIN_AT_ENDIAN = 8,
  BIN_AT_VERSION = 12,
  BIN_AT_HEADER_SIZE = 14,
  BIN_AT_METHOD = 16,
  BIN_AT_ORIGIN = 18,
  BIN_AT_EXIF = 19,
  BIN_AT_TYPE = 20,
  BIN_AT_COUNT = 24,
  BIN_AT_KEYPOINTS = 32,
  BIN_AT_DESCRIPTORS = 40,
  BIN_AT_WIDTH = 48,
  BIN_AT_HEIGHT = 52,
  BIN_AT_KEYPOINT_SIZE = 56,
  BIN_AT_DESCRIPTOR_SIZE = 58,
  BIN_AT_CHECK = 60
};

/* A signature like PNG's, which reveals transfers that strip the eighth bit or change line ends. */
static const uint8_t bin_magic[8] = {0x89, 'H', 'S', 'F', '\r', '\n', 0x1a, '\n'};
static const uint32_t bin_endian_mark = 0x01020304u;

typedef struct bin_header {
  uint64_t count, keypoints_at, descriptors_at;
  bool framed;
  hs_descriptor_type type;
  uint32_t descriptor_bytes;
  int32_t width, height;
  hs_origin origin;
  uint32_t check;
} bin_header;

/* Packs method version (two bytes), profile and norm (one byte); 0: unknown, as in files of earlier writers. A field
   that does not fit is written as unknown. */
enum { BIN_ORIGIN_KNOWN = 0x80, BIN_ORIGIN_NORM_SHIFT = 4, BIN_ORIGIN_PROFILE = 0xF, BIN_ORIGIN_NORM = 0x7 };

static void bin_pack_origin(const hs_origin *origin, uint8_t out[BIN_HEADER_BYTES]) {
  const bool is_known = origin->method_version > 0;
  bytes_put_u16(out + BIN_AT_METHOD, (uint16_t)origin->method_version);
  if (is_known)
    out[BIN_AT_ORIGIN] = (uint8_t)(BIN_ORIGIN_KNOWN | (unsigned)origin_norm_number(origin) << BIN_ORIGIN_NORM_SHIFT |
                                   (unsigned)origin->profile);
  out[BIN_AT_EXIF] = (uint8_t)origin->exif_orientation;
}

static hs_origin bin_read_origin(const uint8_t *bytes) {
  const unsigned packed = bytes[BIN_AT_ORIGIN];
  const int64_t version = (packed & BIN_ORIGIN_KNOWN) != 0 ? bytes_get_u16(bytes + BIN_AT_METHOD) : 0;
  return origin_of_file(version, packed & BIN_ORIGIN_PROFILE, packed >> BIN_ORIGIN_NORM_SHIFT & BIN_ORIGIN_NORM,
                        bytes[BIN_AT_EXIF]);
}

static uint64_t bin_align(uint64_t offset) { return (offset + BIN_ALIGNMENT - 1) / BIN_ALIGNMENT * BIN_ALIGNMENT; }

static uint32_t bin_descriptor_bytes(hs_descriptor_type type) {
  if (type == HS_DESCRIPTOR_NONE) return 0;
  return type == HS_DESCRIPTOR_F32 ? HS_DESCRIPTOR_LENGTH * 4 : HS_DESCRIPTOR_LENGTH;
}

static void bin_pack_header(const bin_header *header, uint8_t out[BIN_HEADER_BYTES]) {
  memset(out, 0, BIN_HEADER_BYTES);
  memcpy(out + BIN_AT_MAGIC, bin_magic, sizeof bin_magic);
  bytes_put_u32(out + BIN_AT_ENDIAN, bin_endian_mark);
  bytes_put_u16(out + BIN_AT_VERSION, header->framed ? BIN_VERSION_FRAMED : BIN_VERSION);
  bytes_put_u16(out + BIN_AT_HEADER_SIZE, BIN_HEADER_BYTES);
  bin_pack_origin(&header->origin, out);
  bytes_put_u32(out + BIN_AT_TYPE, (uint32_t)header->type);
  bytes_put_u64(out + BIN_AT_COUNT, header->count);
  bytes_put_u64(out + BIN_AT_KEYPOINTS, header->keypoints_at);
  bytes_put_u64(out + BIN_AT_DESCRIPTORS, header->descriptors_at);
  bytes_put_u32(out + BIN_AT_WIDTH, (uint32_t)header->width);
  bytes_put_u32(out + BIN_AT_HEIGHT, (uint32_t)header->height);
  bytes_put_u16(out + BIN_AT_KEYPOINT_SIZE, BIN_KEYPOINT_BYTES);
  bytes_put_u16(out + BIN_AT_DESCRIPTOR_SIZE, (uint16_t)header->descriptor_bytes);
  bytes_put_u32(out + BIN_AT_CHECK, header->check);
}

static void bin_put_keypoint(feature_sink *sink, const hs_keypoint *keypoint) {
  uint8_t *record = sink_reserve(sink, BIN_KEYPOINT_BYTES);
  bytes_put_f32(record, keypoint->x);
  bytes_put_f32(record + 4, keypoint->y);
  bytes_put_f32(record + 8, keypoint->sigma);
  bytes_put_f32(record + 12, angle_wrap((double)keypoint->orientation));
  bytes_put_f32(record + 16, keypoint->response);
  bytes_put_u16(record + 20, (uint16_t)keypoint->octave);
  bytes_put_u16(record + 22, (uint16_t)keypoint->level);
}

static void bin_put_frame(feature_sink *sink, const hs_frame *frame) {
  uint8_t *record = sink_reserve(sink, BIN_FRAME_BYTES);
  bytes_put_f32(record, frame->a11);
  bytes_put_f32(record + 4, frame->a12);
  bytes_put_f32(record + 8, frame->a21);
  bytes_put_f32(record + 12, frame->a22);
}

/* Returns the offset of the frames, which follow the descriptors. The header does not store it, because the count
   determines it. */
static uint64_t bin_frames_at(const bin_header *header) {
  return bin_align(header->descriptors_at + header->count * header->descriptor_bytes);
}

static void bin_put_all(feature_sink *sink, const feature_target *target, const bin_header *header) {
  const hs_features *features = target->features;
  uint8_t packed[BIN_HEADER_BYTES];
  bin_pack_header(header, packed);
  sink_bytes(sink, packed, sizeof packed);
  for (size_t i = 0; i < features->count; i++) bin_put_keypoint(sink, &features->keypoints[i]);
  sink_zeros(sink, (size_t)(header->descriptors_at - sink->total));
  if (header->descriptor_bytes > 0) {
    const descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_UBC);
    descriptors_put_bytes(&codec, sink);
  }
  if (header->framed) sink_zeros(sink, (size_t)(bin_frames_at(header) - sink->total));
  for (size_t i = 0; header->framed && i < features->count; i++) bin_put_frame(sink, &features->frames[i]);
  sink_flush(sink);
}

static hs_status bin_write(const feature_target *target) {
  const hs_features *features = target->features;
  bin_header header = {.count = features->count,
                       .keypoints_at = BIN_HEADER_BYTES,
                       .framed = features->frames != NULL,
                       .type = features->descriptor_type,
                       .descriptor_bytes = bin_descriptor_bytes(features->descriptor_type),
                       .width = features->image_width,
                       .height = features->image_height,
                       .origin = features->origin};
  header.descriptors_at = bin_align(BIN_HEADER_BYTES + header.count * BIN_KEYPOINT_BYTES);
  feature_sink sink;
  sink_begin_measure(&sink, crc_castagnoli);
  bin_put_all(&sink, target, &header);
  header.check = sink.check;
  sink_begin(&sink, target->stream, target->written);
  bin_put_all(&sink, target, &header);
  return HS_OK;
}

/* Computes the checksum of the complete file, with the checksum field set to 0. */
static uint32_t bin_check_of(const feature_source *source) {
  static const uint8_t zero[4];
  uint32_t check = crc_castagnoli(0, source->bytes, BIN_AT_CHECK);
  check = crc_castagnoli(check, zero, sizeof zero);
  return crc_castagnoli(check, source->bytes + BIN_HEADER_BYTES, source->size - BIN_HEADER_BYTES);
}

static hs_status bin_read_header(const feature_source *source, bin_header *header) {
  const uint8_t *bytes = source->bytes;
  if (source->size < BIN_HEADER_BYTES) return source_fail(source, HS_ERR_FORMAT, "shorter than a header");
  if (memcmp(bytes, bin_magic, sizeof bin_magic) != 0) return source_fail(source, HS_ERR_FORMAT, "not a hartsift file");
  if (bytes_get_u32(bytes + BIN_AT_ENDIAN) != bin_endian_mark)
    return source_fail(source, HS_ERR_FORMAT, "the byte order mark is wrong");
  uint32_t version = bytes_get_u16(bytes + BIN_AT_VERSION);
  if (version != BIN_VERSION && version != BIN_VERSION_FRAMED)
    return source_fail(source, HS_ERR_UNSUPPORTED, "version %u of the format is unknown", (unsigned)version);
  uint32_t type = bytes_get_u32(bytes + BIN_AT_TYPE);
  if (type > HS_DESCRIPTOR_NONE) return source_fail(source, HS_ERR_FORMAT, "the descriptor type is unknown");
  *header = (bin_header){.count = bytes_get_u64(bytes + BIN_AT_COUNT),
                         .keypoints_at = bytes_get_u64(bytes + BIN_AT_KEYPOINTS),
                         .descriptors_at = bytes_get_u64(bytes + BIN_AT_DESCRIPTORS),
                         .framed = version == BIN_VERSION_FRAMED,
                         .type = (hs_descriptor_type)type,
                         .descriptor_bytes = bytes_get_u16(bytes + BIN_AT_DESCRIPTOR_SIZE),
                         .origin = bin_read_origin(bytes),
                         .check = bytes_get_u32(bytes + BIN_AT_CHECK)};
  uint32_t width = bytes_get_u32(bytes + BIN_AT_WIDTH);
  uint32_t height = bytes_get_u32(bytes + BIN_AT_HEIGHT);
  if (width > INT32_MAX || height > INT32_MAX) return source_fail(source, HS_ERR_FORMAT, "the image size is negative");
  header->width = (int32_t)width;
  header->height = (int32_t)height;
  if (bytes_get_u16(bytes + BIN_AT_HEADER_SIZE) != BIN_HEADER_BYTES ||
      bytes_get_u16(bytes + BIN_AT_KEYPOINT_SIZE) != BIN_KEYPOINT_BYTES ||
      header->descriptor_bytes != bin_descriptor_bytes(header->type))
    return source_fail(source, HS_ERR_FORMAT, "a record size is not that of this version");
  return HS_OK;
}

/* Checks offsets and size, which the count determines, because each part has a fixed position. */
static hs_status bin_check_extent(const feature_source *source, const bin_header *header) {
  uint64_t record = BIN_KEYPOINT_BYTES + header->descriptor_bytes + (header->framed ? BIN_FRAME_BYTES : 0);
  if (header->count > (source->size - BIN_HEADER_BYTES) / record) {
    return source_fail(source, HS_ERR_FORMAT, "the file is too short for %llu features",
                       (unsigned long long)header->count);
  }
  uint64_t descriptors_at = bin_align(BIN_HEADER_BYTES + header->count * BIN_KEYPOINT_BYTES);
  if (header->keypoints_at != BIN_HEADER_BYTES || header->descriptors_at != descriptors_at ||
      source->size != (header->framed ? bin_frames_at(header) + header->count * BIN_FRAME_BYTES
                                      : descriptors_at + header->count * header->descriptor_bytes))
    return source_fail(source, HS_ERR_FORMAT, "offsets, count and file size do not agree");
  if (bin_check_of(source) != header->check) return source_fail(source, HS_ERR_FORMAT, "the checksum is wrong");
  return HS_OK;
}

static hs_status bin_read_keypoints(const feature_source *source, const bin_header *header, hs_features *features) {
  for (size_t i = 0; i < (size_t)header->count; i++) {
    const uint8_t *record = source->bytes + header->keypoints_at + i * BIN_KEYPOINT_BYTES;
    hs_keypoint *keypoint = &features->keypoints[i];
    const char *fault = keypoint_fill(keypoint, (double)bytes_get_f32(record), (double)bytes_get_f32(record + 4),
                                      (double)bytes_get_f32(record + 8), (double)bytes_get_f32(record + 12));
    if (!fault) {
      fault = keypoint_fill_origin(keypoint, (double)bytes_get_f32(record + 16), (int16_t)bytes_get_u16(record + 20),
                                   (int16_t)bytes_get_u16(record + 22));
    }
    if (fault) return source_fail(source, HS_ERR_FORMAT, "keypoint %zu: %s", i, fault);
  }
  return HS_OK;
}

static hs_status bin_read_descriptors(const feature_source *source, const bin_header *header, hs_features *features) {
  const uint8_t *from = source->bytes + header->descriptors_at;
  size_t values = (size_t)header->count * HS_DESCRIPTOR_LENGTH;
  if (header->type == HS_DESCRIPTOR_U8 && values > 0) memcpy(features->descriptors, from, values);
  for (size_t i = 0; header->type == HS_DESCRIPTOR_F32 && i < values; i++) {
    float value = bytes_get_f32(from + i * sizeof(float));
    if (!isfinite(value)) {
      return source_fail(source, HS_ERR_FORMAT, "descriptor %zu has an entry that is not finite",
                         i / HS_DESCRIPTOR_LENGTH);
    }
    descriptor_f32_at(features, 0)[i] = value;
  }
  return HS_OK;
}

static hs_status bin_read_frames(const feature_source *source, const bin_header *header, hs_features *features) {
  for (size_t i = 0; header->framed && i < (size_t)header->count; i++) {
    const uint8_t *record = source->bytes + bin_frames_at(header) + i * BIN_FRAME_BYTES;
    double values[4];
    for (size_t k = 0; k < 4; k++) values[k] = (double)bytes_get_f32(record + 4 * k);
    const char *fault = frame_fill(&features->frames[i], values);
    if (fault) return source_fail(source, HS_ERR_FORMAT, "keypoint %zu: %s", i, fault);
  }
  return HS_OK;
}

static hs_status bin_read(const feature_source *source, hs_features *features) {
  bin_header header = {0};
  hs_status status = bin_read_header(source, &header);
  if (status == HS_OK) status = bin_check_extent(source, &header);
  if (status == HS_OK)
    status = (header.framed ? source_reserve_framed : source_reserve)(source, features, header.count, header.type);
  if (status == HS_OK) status = bin_read_keypoints(source, &header, features);
  if (status == HS_OK) status = bin_read_descriptors(source, &header, features);
  if (status == HS_OK) status = bin_read_frames(source, &header, features);
  if (status != HS_OK) return status;
  features->count = (size_t)header.count;
  features->image_width = header.width;
  features->image_height = header.height;
  features->origin = header.origin;
  return HS_OK;
}

static bool bin_probe(const uint8_t *bytes, size_t size) {
  return size >= sizeof bin_magic && memcmp(bytes, bin_magic, sizeof bin_magic) == 0;
}

const feature_format format_bin = {.id = HS_FORMAT_BIN,
                                   .name = "bin",
                                   .summary = "hartsift's binary format, memory-mappable, with checksum",
                                   .endings = {".hsf"},
                                   .without_descriptors = true,
                                   .write = bin_write,
                                   .read = bin_read,
                                   .probe = bin_probe};
