/*
 * COLMAP text for feature_importer: "N 128", then a line X Y SCALE ORIENTATION D1 ... D128 for each feature; the centre
 * of the top-left pixel is (0.5, 0.5), descriptors are bytes in UBC bin order.
 */
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/common/text_cursor.h"

/* COLMAP's pixel origin is the corner of the first pixel. */
static const double colmap_origin = 0.5;

/* Minimum length of a feature's line: four numbers of "0 ", 128 digits with a space before each. */
enum { COLMAP_LINE_MIN_BYTES = 7 + 2 * HS_DESCRIPTOR_LENGTH };

static void colmap_write_feature(feature_sink *sink, const descriptor_codec *codec, size_t index) {
  const hs_keypoint *keypoint = &codec->features->keypoints[index];
  uint8_t descriptor[HS_DESCRIPTOR_LENGTH];
  descriptor_to_u8(codec, index, descriptor);
  sink_double(sink, (double)keypoint->x + colmap_origin);
  sink_text(sink, " ");
  sink_double(sink, (double)keypoint->y + colmap_origin);
  sink_text(sink, " ");
  sink_float(sink, keypoint->sigma);
  sink_text(sink, " ");
  sink_float(sink, angle_wrap((double)keypoint->orientation));
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    sink_text(sink, " ");
    sink_int(sink, descriptor[k]);
  }
  sink_text(sink, "\n");
}

static hs_status colmap_write(const feature_target *target) {
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  descriptor_codec codec = descriptor_codec_make(target->features, target->layout, HS_LAYOUT_UBC);
  sink_int(&sink, (int64_t)target->features->count);
  sink_text(&sink, " 128\n");
  for (size_t i = 0; i < target->features->count; i++) colmap_write_feature(&sink, &codec, i);
  sink_flush(&sink);
  return HS_OK;
}

/* Reads a descriptor. COLMAP truncates fractions, so values of unit norm would become 0, and are refused. */
static hs_status colmap_read_descriptor(text_cursor *cursor, uint8_t *descriptor) {
  bool has_fractions = false, beyond_one = false;
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    double value;
    const hs_status status = cursor_descriptor_entry(cursor, false, k, &value);
    if (status != HS_OK) return status;
    descriptor[k] = (uint8_t)value;
    has_fractions = has_fractions || value != (double)descriptor[k];
    beyond_one = beyond_one || value > 1.0;
  }
  if (!has_fractions || beyond_one) return HS_OK;
  return cursor_fail(cursor, "a descriptor of unit norm, expected numbers of 0..255");
}

static hs_status colmap_read_feature(text_cursor *cursor, hs_features *features, size_t index) {
  static const char *const names[4] = {"X", "Y", "SCALE", "ORIENTATION"};
  double values[4];
  cursor_skip_blanks(cursor, true);
  for (size_t k = 0; k < 4; k++) {
    hs_status status = cursor_double(cursor, false, names[k], &values[k]);
    if (status != HS_OK) return status;
  }
  const char *fault = keypoint_fill(&features->keypoints[index], values[0] - colmap_origin, values[1] - colmap_origin,
                                    values[2], values[3]);
  if (fault) return cursor_fail(cursor, "%s", fault);
  hs_status status = colmap_read_descriptor(cursor, descriptor_u8_at(features, index));
  return status != HS_OK ? status : cursor_end_line(cursor);
}

static hs_status colmap_read(const feature_source *source, hs_features *features) {
  text_cursor cursor = cursor_make(source);
  int64_t count;
  int64_t length;
  hs_status status = cursor_int(&cursor, true, "the number of features", &count);
  if (status == HS_OK) status = cursor_int(&cursor, false, "the descriptor length", &length);
  if (status == HS_OK) {
    if (count < 0) return cursor_fail(&cursor, "the number of features is negative");
    if (length != HS_DESCRIPTOR_LENGTH) return cursor_fail(&cursor, "the descriptor length is not 128");
    status = cursor_end_line(&cursor);
  }
  if (status != HS_OK) return status;
  if ((uint64_t)count > source->size / COLMAP_LINE_MIN_BYTES)
    return cursor_fail(&cursor, "the file is too short for %lld features", (long long)count);
  status = source_reserve(source, features, (uint64_t)count, HS_DESCRIPTOR_U8);
  for (size_t i = 0; status == HS_OK && i < (size_t)count; i++) status = colmap_read_feature(&cursor, features, i);
  if (status != HS_OK) return status;
  if (!cursor_at_end(&cursor))
    return cursor_fail(&cursor, "more lines than the %lld features announced", (long long)count);
  features->count = (size_t)count;
  return HS_OK;
}

/* True for COLMAP's text. Lowe's files have the same first line, but only four numbers in the second. */
static bool colmap_probe(const uint8_t *bytes, size_t size) {
  size_t rest = 0;
  if (!text_begins_with_number(bytes, size) || text_count_words(bytes, size, 3, &rest) != 2) return false;
  size_t second = text_count_words(bytes + rest, size - rest, 6, NULL);
  return second == 0 || second > 4;
}

const feature_format format_colmap = {.id = HS_FORMAT_COLMAP,
                                      .name = "colmap",
                                      .summary = "COLMAP text for feature_importer",
                                      .endings = {".txt"},
                                      .as_stored = true,
                                      .write = colmap_write,
                                      .read = colmap_read,
                                      .probe = colmap_probe};
