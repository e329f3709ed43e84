/*
 * Lowe's ASCII keys: "N 128", then for each key "row column scale orientation" and 128 integers, 20 per line. y comes
 * first; the orientation is measured with y upwards, in [-pi, pi]. "N 0" means keys without descriptors, as SiftGPU
 * writes them.
 */
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/common/text_cursor.h"

enum { LOWE_PER_LINE = 20 };
/* Minimum bytes of a key: four numbers and 128 entries of one digit, with separators. */
enum { LOWE_POSITION_MIN_BYTES = 7, LOWE_KEY_MIN_BYTES = LOWE_POSITION_MIN_BYTES + 2 * HS_DESCRIPTOR_LENGTH };

static const double pi = 3.14159265358979323846;

static void lowe_write_key(feature_sink *sink, const descriptor_codec *codec, size_t index) {
  const hs_keypoint *keypoint = &codec->features->keypoints[index];
  uint8_t descriptor[HS_DESCRIPTOR_LENGTH];
  descriptor_to_u8(codec, index, descriptor);
  double upwards = -(double)angle_wrap((double)keypoint->orientation);
  if (upwards < -pi) upwards += 2.0 * pi;
  sink_float(sink, keypoint->y);
  sink_text(sink, " ");
  sink_float(sink, keypoint->x);
  sink_text(sink, " ");
  sink_float(sink, keypoint->sigma);
  sink_text(sink, " ");
  sink_double(sink, upwards);
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    sink_text(sink, k % LOWE_PER_LINE == 0 ? "\n " : " ");
    sink_int(sink, descriptor[k]);
  }
  sink_text(sink, "\n");
}

static hs_status lowe_write(const feature_target *target) {
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  descriptor_codec codec = descriptor_codec_make(target->features, target->layout, HS_LAYOUT_UBC);
  sink_int(&sink, (int64_t)target->features->count);
  sink_text(&sink, " 128\n");
  for (size_t i = 0; i < target->features->count; i++) lowe_write_key(&sink, &codec, i);
  sink_flush(&sink);
  return HS_OK;
}

static hs_status lowe_read_key(text_cursor *cursor, hs_features *features, size_t index) {
  static const char *const names[4] = {"row", "column", "scale", "orientation"};
  double values[4];
  for (size_t k = 0; k < 4; k++) {
    hs_status status = cursor_double(cursor, true, names[k], &values[k]);
    if (status != HS_OK) return status;
  }
  const char *fault = keypoint_fill(&features->keypoints[index], values[1], values[0], values[2], -values[3]);
  if (fault) return cursor_fail(cursor, "%s", fault);
  if (features->descriptor_type == HS_DESCRIPTOR_NONE) return HS_OK;
  return cursor_descriptor(cursor, true, descriptor_u8_at(features, index));
}

/* Reads a file. Line ends count as spaces, as in Lowe's reader. */
static hs_status lowe_read(const feature_source *source, hs_features *features) {
  text_cursor cursor = cursor_make(source);
  int64_t count;
  int64_t length;
  hs_status status = cursor_int(&cursor, true, "the number of keys", &count);
  if (status == HS_OK) status = cursor_int(&cursor, true, "the descriptor length", &length);
  if (status != HS_OK) return status;
  if (count < 0) return cursor_fail(&cursor, "the number of keys is negative");
  if (length != HS_DESCRIPTOR_LENGTH && length != 0)
    return cursor_fail(&cursor, "the descriptor length is %lld, neither 128 nor 0", (long long)length);
  const bool described = length > 0;
  if ((uint64_t)count > source->size / (described ? LOWE_KEY_MIN_BYTES : LOWE_POSITION_MIN_BYTES))
    return cursor_fail(&cursor, "the file is too short for %lld keys", (long long)count);
  status = source_reserve(source, features, (uint64_t)count, described ? HS_DESCRIPTOR_U8 : HS_DESCRIPTOR_NONE);
  for (size_t i = 0; status == HS_OK && i < (size_t)count; i++) status = lowe_read_key(&cursor, features, i);
  if (status != HS_OK) return status;
  if (!cursor_at_end(&cursor))
    return cursor_fail(&cursor, "more values than the %lld keys announced", (long long)count);
  features->count = (size_t)count;
  return HS_OK;
}

static bool lowe_probe(const uint8_t *bytes, size_t size) {
  size_t rest = 0;
  if (!text_begins_with_number(bytes, size) || text_count_words(bytes, size, 3, &rest) != 2) return false;
  size_t second = text_count_words(bytes + rest, size - rest, 6, NULL);
  return second == 0 || second == 4;
}

const feature_format format_lowe = {.id = HS_FORMAT_LOWE,
                                    .name = "lowe",
                                    .summary = "Lowe's ASCII keys",
                                    .endings = {".key"},
                                    .write = lowe_write,
                                    .read = lowe_read,
                                    .probe = lowe_probe};
