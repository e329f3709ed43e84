/*
 * VLFeat's text: a line x y sigma theta and 128 integers for each feature, in VLFeat's bin order, without a header.
 * Lines of four numbers are its .frame files: keypoints without descriptors. Its binary form (bin://: four big-endian
 * doubles and 128 bytes) is recognised only by the file's name.
 */
#include <math.h>
#include <string.h>

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/common/text_cursor.h"

enum { VLFEAT_FRAME_WORDS = 4, VLFEAT_WORDS = 4 + HS_DESCRIPTOR_LENGTH };

static hs_status vlfeat_write(const feature_target *target) {
  const hs_features *features = target->features;
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_VLFEAT);
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *keypoint = &features->keypoints[i];
    sink_float(&sink, keypoint->x);
    sink_text(&sink, " ");
    sink_float(&sink, keypoint->y);
    sink_text(&sink, " ");
    sink_float(&sink, keypoint->sigma);
    sink_text(&sink, " ");
    sink_float(&sink, angle_wrap((double)keypoint->orientation));
    if (features->descriptor_type != HS_DESCRIPTOR_NONE) {
      uint8_t descriptor[HS_DESCRIPTOR_LENGTH];
      descriptor_to_u8(&codec, i, descriptor);
      for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
        sink_text(&sink, " ");
        sink_int(&sink, descriptor[k]);
      }
    }
    sink_text(&sink, "\n");
  }
  sink_flush(&sink);
  return HS_OK;
}

/* Counts non-blank lines. */
static uint64_t vlfeat_count_lines(const feature_source *source) {
  text_cursor cursor = cursor_make(source);
  uint64_t count = 0;
  while (!cursor_at_end(&cursor)) {
    count++;
    while (cursor.at < cursor.end && *cursor.at != '\n') cursor.at++;
  }
  return count;
}

static hs_status vlfeat_read_line(text_cursor *cursor, hs_features *features, size_t index) {
  static const char *const names[4] = {"x", "y", "sigma", "theta"};
  double values[4];
  cursor_skip_blanks(cursor, true);
  for (size_t k = 0; k < 4; k++) {
    hs_status status = cursor_double(cursor, false, names[k], &values[k]);
    if (status != HS_OK) return status;
  }
  const char *fault = keypoint_fill(&features->keypoints[index], values[0], values[1], values[2], values[3]);
  if (fault) return cursor_fail(cursor, "%s", fault);
  if (features->descriptor_type != HS_DESCRIPTOR_NONE) {
    uint8_t *descriptor = descriptor_u8_at(features, index);
    hs_status status = cursor_descriptor(cursor, false, descriptor);
    if (status != HS_OK) return status;
    descriptor_swap_bins(descriptor);
  }
  return cursor_end_line(cursor);
}

/* ------------------------------------------------------------------ binary */

enum { VLFEAT_POSITION_BYTES = 32, VLFEAT_RECORD_BYTES = VLFEAT_POSITION_BYTES + HS_DESCRIPTOR_LENGTH };

static double vlfeat_get_double(const uint8_t *bytes) {
  uint64_t bits = 0;
  double value;
  for (int i = 0; i < 8; i++) bits = bits << 8 | bytes[i];
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* True if the bytes can be x, y, sigma and theta. */
static bool vlfeat_is_position(const uint8_t *bytes) {
  const double x = vlfeat_get_double(bytes), y = vlfeat_get_double(bytes + 8);
  const double sigma = vlfeat_get_double(bytes + 16), theta = vlfeat_get_double(bytes + 24);
  return fabs(x) < 1e7 && fabs(y) < 1e7 && sigma > 1e-3 && sigma < 1e7 && fabs(theta) < 1e3;
}

/* Returns the size of a binary record, with or without descriptors; 0: the file is text. */
static size_t vlfeat_record_bytes(const feature_source *source) {
  if (source->size < VLFEAT_POSITION_BYTES || !vlfeat_is_position(source->bytes)) return 0;
  if (!memchr(source->bytes, 0, VLFEAT_POSITION_BYTES) && text_begins_with_number(source->bytes, source->size))
    return 0;
  for (size_t at = 0; at < source->size; at += VLFEAT_POSITION_BYTES)
    if (source->size - at < VLFEAT_POSITION_BYTES || !vlfeat_is_position(source->bytes + at))
      return VLFEAT_RECORD_BYTES;
  return VLFEAT_POSITION_BYTES;
}

static hs_status vlfeat_read_binary(const feature_source *source, size_t record_bytes, hs_features *features) {
  const bool frames = record_bytes == VLFEAT_POSITION_BYTES;
  if (source->size % record_bytes != 0)
    return source_fail(source, HS_ERR_FORMAT, "the size is no multiple of %zu bytes, a binary feature's", record_bytes);
  const size_t count = source->size / record_bytes;
  const hs_status status = source_reserve(source, features, count, frames ? HS_DESCRIPTOR_NONE : HS_DESCRIPTOR_U8);
  if (status != HS_OK) return status;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *record = source->bytes + i * record_bytes;
    const char *fault = keypoint_fill(&features->keypoints[i], vlfeat_get_double(record), vlfeat_get_double(record + 8),
                                      vlfeat_get_double(record + 16), vlfeat_get_double(record + 24));
    if (fault) return source_fail(source, HS_ERR_FORMAT, "feature %zu: %s", i, fault);
    if (frames) continue;
    memcpy(descriptor_u8_at(features, i), record + VLFEAT_POSITION_BYTES, HS_DESCRIPTOR_LENGTH);
    descriptor_swap_bins(descriptor_u8_at(features, i));
  }
  features->count = count;
  return HS_OK;
}

/* ------------------------------------------------------------------ text and binary */

/* Reads a file. The first line decides whether features have descriptors; an empty file gives an empty list with
 * descriptors. */
static hs_status vlfeat_read(const feature_source *source, hs_features *features) {
  const size_t record_bytes = vlfeat_record_bytes(source);
  if (record_bytes > 0) return vlfeat_read_binary(source, record_bytes, features);
  uint64_t count = vlfeat_count_lines(source);
  bool frames = text_count_words(source->bytes, source->size, VLFEAT_FRAME_WORDS + 1, NULL) == VLFEAT_FRAME_WORDS;
  /* reserves at most the number of features that the file's size allows, so that memory is proportional to the size */
  text_cursor cursor = cursor_make(source);
  uint64_t least_bytes = frames ? 2 * VLFEAT_FRAME_WORDS - 1 : 2 * VLFEAT_WORDS - 1;
  if (count > source->size / least_bytes + 1) {
    (void)cursor_at_end(&cursor);
    return cursor_fail(&cursor, "the lines are too short for features");
  }
  hs_status status = source_reserve(source, features, count, frames ? HS_DESCRIPTOR_NONE : HS_DESCRIPTOR_U8);
  for (size_t i = 0; status == HS_OK && i < (size_t)count; i++) status = vlfeat_read_line(&cursor, features, i);
  if (status == HS_OK) features->count = (size_t)count;
  return status;
}

static bool vlfeat_probe(const uint8_t *bytes, size_t size) {
  if (size == 0) return true;
  if (!text_begins_with_number(bytes, size)) return false;
  size_t words = text_count_words(bytes, size, VLFEAT_WORDS + 1, NULL);
  return words == VLFEAT_FRAME_WORDS || words == VLFEAT_WORDS;
}

const feature_format format_vlfeat = {.id = HS_FORMAT_VLFEAT,
                                      .name = "vlfeat",
                                      .summary = "VLFeat's text (.sift, or .frame without descriptors)",
                                      .endings = {".sift", ".frame"},
                                      .without_descriptors = true,
                                      .write = vlfeat_write,
                                      .read = vlfeat_read,
                                      .probe = vlfeat_probe};
