/*
 * VisualSFM's binary .sift (version 4, or 5 with colours): a header of five integers, five floats per feature, 128
 * bytes per feature, an end mark; all little-endian. Positions and angles are as in SiftGPU: the corner of the first
 * pixel is (0, 0), and orientations are measured with y upwards.
 */
#include <string.h>

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"

enum {
  VSFM_HEADER_BYTES = 20,
  /* number of floats before the descriptors: x, y, colour (four bytes of RGBA), scale, orientation */
  VSFM_POSITION_FLOATS = 5,
  VSFM_POSITION_BYTES = 4 * VSFM_POSITION_FLOATS,
  VSFM_END_BYTES = 4
};

static const uint8_t vsfm_name[8] = {'S', 'I', 'F', 'T', 'V', '4', '.', '0'};
enum { VSFM_VERSION = 5 }; /* index of the digit of the version in the name */
static const uint8_t vsfm_end[VSFM_END_BYTES] = {0xff, 'E', 'O', 'F'};
static const double vsfm_corner = 0.5;
/* Scale that replaces 0, which the format allows for an unknown scale. */
static const double vsfm_unknown_scale = 1.0;

static void vsfm_put_position(feature_sink *sink, const hs_keypoint *keypoint) {
  uint8_t record[VSFM_POSITION_BYTES] = {0};
  bytes_put_f32(record, (float)((double)keypoint->x + vsfm_corner));
  bytes_put_f32(record + 4, (float)((double)keypoint->y + vsfm_corner));
  bytes_put_f32(record + 12, keypoint->sigma);
  bytes_put_f32(record + 16, angle_wrap(-(double)keypoint->orientation));
  sink_bytes(sink, record, sizeof record);
}

static hs_status vsfm_write(const feature_target *target) {
  const hs_features *features = target->features;
  uint8_t counts[VSFM_HEADER_BYTES - sizeof vsfm_name];
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  bytes_put_u32(counts, (uint32_t)features->count); /* at most 2^27, which was checked before */
  bytes_put_u32(counts + 4, VSFM_POSITION_FLOATS);
  bytes_put_u32(counts + 8, HS_DESCRIPTOR_LENGTH);
  sink_bytes(&sink, vsfm_name, sizeof vsfm_name);
  sink_bytes(&sink, counts, sizeof counts);
  for (size_t i = 0; i < features->count; i++) vsfm_put_position(&sink, &features->keypoints[i]);
  descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_UBC);
  for (size_t i = 0; i < features->count; i++) {
    uint8_t descriptor[HS_DESCRIPTOR_LENGTH];
    descriptor_to_u8(&codec, i, descriptor);
    sink_bytes(&sink, descriptor, sizeof descriptor);
  }
  sink_bytes(&sink, vsfm_end, sizeof vsfm_end);
  sink_flush(&sink);
  return HS_OK;
}

/* Reads the count, which must agree with the file's size. */
static hs_status vsfm_read_header(const feature_source *source, uint64_t *count) {
  const uint8_t *bytes = source->bytes;
  if (source->size < VSFM_HEADER_BYTES + VSFM_END_BYTES)
    return source_fail(source, HS_ERR_FORMAT, "shorter than a header");
  if (memcmp(bytes, vsfm_name, 4) != 0) return source_fail(source, HS_ERR_FORMAT, "not a file of VisualSFM");
  uint8_t name[sizeof vsfm_name];
  memcpy(name, bytes, sizeof name);
  if (name[VSFM_VERSION] == '5') name[VSFM_VERSION] = '4';
  if (memcmp(name, vsfm_name, sizeof vsfm_name) != 0)
    return source_fail(source, HS_ERR_UNSUPPORTED, "only versions V4.0 and V5.0 of the format are read");
  *count = bytes_get_u32(bytes + 8);
  if (*count > INT32_MAX) return source_fail(source, HS_ERR_FORMAT, "the number of features is negative");
  if (bytes_get_u32(bytes + 12) != VSFM_POSITION_FLOATS)
    return source_fail(source, HS_ERR_FORMAT, "a location does not have five numbers");
  if (bytes_get_u32(bytes + 16) != HS_DESCRIPTOR_LENGTH)
    return source_fail(source, HS_ERR_FORMAT, "the descriptor length is not 128");
  const uint64_t body = source->size - VSFM_HEADER_BYTES - VSFM_END_BYTES;
  if (body != *count * (VSFM_POSITION_BYTES + HS_DESCRIPTOR_LENGTH)) {
    return source_fail(source, HS_ERR_FORMAT, "the file's size does not match %llu features",
                       (unsigned long long)*count);
  }
  if (memcmp(bytes + source->size - VSFM_END_BYTES, vsfm_end, VSFM_END_BYTES) != 0)
    return source_fail(source, HS_ERR_FORMAT, "the end mark is missing");
  return HS_OK;
}

static hs_status vsfm_read(const feature_source *source, hs_features *features) {
  uint64_t count = 0;
  hs_status status = vsfm_read_header(source, &count);
  if (status == HS_OK) status = source_reserve(source, features, count, HS_DESCRIPTOR_U8);
  if (status != HS_OK) return status;
  for (size_t i = 0; i < (size_t)count; i++) {
    const uint8_t *record = source->bytes + VSFM_HEADER_BYTES + i * VSFM_POSITION_BYTES;
    const double scale = (double)bytes_get_f32(record + 12);
    const char *fault = keypoint_fill(&features->keypoints[i], (double)bytes_get_f32(record) - vsfm_corner,
                                      (double)bytes_get_f32(record + 4) - vsfm_corner,
                                      scale == 0.0 ? vsfm_unknown_scale : scale, -(double)bytes_get_f32(record + 16));
    if (fault) return source_fail(source, HS_ERR_FORMAT, "feature %zu: %s", i, fault);
  }
  const uint8_t *descriptors = source->bytes + VSFM_HEADER_BYTES + (size_t)count * VSFM_POSITION_BYTES;
  if (count > 0) memcpy(features->descriptors, descriptors, (size_t)count * HS_DESCRIPTOR_LENGTH);
  features->count = (size_t)count;
  return HS_OK;
}

static bool vsfm_probe(const uint8_t *bytes, size_t size) {
  return size >= sizeof vsfm_name && memcmp(bytes, vsfm_name, 4) == 0 && bytes[4] == 'V';
}

const feature_format format_visualsfm = {.id = HS_FORMAT_VISUALSFM,
                                         .name = "visualsfm",
                                         .summary = "VisualSFM's binary (.sift)",
                                         .endings = {".sift"},
                                         .as_stored = true,
                                         .write = vsfm_write,
                                         .read = vsfm_read,
                                         .probe = vsfm_probe};
