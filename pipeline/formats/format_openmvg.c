/*
 * The pair of files of openMVG and AliceVision: .feat with a line "x y scale orientation" for each feature; and .desc
 * with a 64-bit little-endian count and 128 bytes for each feature, in VLFeat's bin order. Files with 128 floats
 * (AliceVision's sift_float) are read but not written.
 */
#include <string.h>

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/common/text_cursor.h"

enum { OPENMVG_COUNT_BYTES = 8, OPENMVG_WORDS = 4, OPENMVG_FLOATS_BYTES = 4 * HS_DESCRIPTOR_LENGTH };

static void openmvg_write_positions(const feature_target *target) {
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  for (size_t i = 0; i < target->features->count; i++) {
    const hs_keypoint *keypoint = &target->features->keypoints[i];
    sink_float(&sink, keypoint->x);
    sink_text(&sink, " ");
    sink_float(&sink, keypoint->y);
    sink_text(&sink, " ");
    sink_float(&sink, keypoint->sigma);
    sink_text(&sink, " ");
    sink_float(&sink, angle_wrap((double)keypoint->orientation));
    sink_text(&sink, "\n");
  }
  sink_flush(&sink);
}

static hs_status openmvg_write(const feature_target *target) {
  openmvg_write_positions(target);
  feature_sink sink;
  sink_begin(&sink, target->second_stream, target->written);
  uint8_t count[OPENMVG_COUNT_BYTES];
  bytes_put_u64(count, target->features->count);
  sink_bytes(&sink, count, sizeof count);
  descriptor_codec codec = descriptor_codec_make(target->features, target->layout, HS_LAYOUT_VLFEAT);
  for (size_t i = 0; i < target->features->count; i++) {
    uint8_t descriptor[HS_DESCRIPTOR_LENGTH];
    descriptor_to_u8(&codec, i, descriptor);
    sink_bytes(&sink, descriptor, sizeof descriptor);
  }
  sink_flush(&sink);
  return HS_OK;
}

static hs_status openmvg_read_line(text_cursor *cursor, hs_features *features, size_t index) {
  static const char *const names[OPENMVG_WORDS] = {"x", "y", "scale", "orientation"};
  double values[OPENMVG_WORDS];
  cursor_skip_blanks(cursor, true);
  for (size_t k = 0; k < OPENMVG_WORDS; k++) {
    hs_status status = cursor_double(cursor, false, names[k], &values[k]);
    if (status != HS_OK) return status;
  }
  const char *fault = keypoint_fill(&features->keypoints[index], values[0], values[1], values[2], values[3]);
  if (fault) return cursor_fail(cursor, "%s", fault);
  return cursor_end_line(cursor);
}

static hs_status openmvg_read_floats(const feature_source *second, const uint8_t *bytes, hs_features *features,
                                     size_t count) {
  for (size_t i = 0; i < count * HS_DESCRIPTOR_LENGTH; i++) {
    const char *fault =
        descriptor_store(features, descriptor_swapped(i), (double)bytes_get_f32(bytes + i * sizeof(float)));
    if (fault) return source_fail(second, HS_ERR_FORMAT, "descriptor %zu: %s", i / HS_DESCRIPTOR_LENGTH, fault);
  }
  return HS_OK;
}

/* Reads the pair. The size of the .desc file gives the count, which must equal the number of lines in .feat. */
static hs_status openmvg_read(const feature_source *source, hs_features *features) {
  feature_source second = *source;
  if (source->second_path) second.path = source->second_path;
  if (!source->second_bytes || source->second_size < OPENMVG_COUNT_BYTES)
    return source_fail(&second, HS_ERR_FORMAT, "the file is too short for its count");
  uint64_t count = bytes_get_u64(source->second_bytes);
  size_t held = source->second_size - OPENMVG_COUNT_BYTES;
  const bool whole = held % HS_DESCRIPTOR_LENGTH == 0;
  const bool floats = whole && count > 0 && held % OPENMVG_FLOATS_BYTES == 0 && count == held / OPENMVG_FLOATS_BYTES;
  if (!floats && (!whole || count != held / HS_DESCRIPTOR_LENGTH)) {
    return source_fail(&second, HS_ERR_FORMAT,
                       "the count of %llu does not fit the file's size: expected 128 bytes or 128 floats a descriptor",
                       (unsigned long long)count);
  }
  hs_status status = source_reserve(source, features, count, floats ? HS_DESCRIPTOR_F32 : HS_DESCRIPTOR_U8);
  text_cursor cursor = cursor_make(source);
  for (size_t i = 0; status == HS_OK && i < (size_t)count; i++) status = openmvg_read_line(&cursor, features, i);
  if (status != HS_OK) return status;
  if (!cursor_at_end(&cursor))
    return cursor_fail(&cursor, "more lines than the %llu descriptors of the .desc file", (unsigned long long)count);
  for (size_t i = 0; i < (size_t)count && !floats; i++) {
    uint8_t *descriptor = descriptor_u8_at(features, i);
    memcpy(descriptor, source->second_bytes + OPENMVG_COUNT_BYTES + i * HS_DESCRIPTOR_LENGTH, HS_DESCRIPTOR_LENGTH);
    descriptor_swap_bins(descriptor);
  }
  if (floats)
    status = openmvg_read_floats(&second, source->second_bytes + OPENMVG_COUNT_BYTES, features, (size_t)count);
  if (status != HS_OK) return status;
  features->count = (size_t)count;
  return HS_OK;
}

/* Accepts only files with the right ending, because a line of four numbers may also be a frame of VLFeat. */
static bool openmvg_probe(const uint8_t *bytes, size_t size) {
  if (size == 0) return true;
  return text_begins_with_number(bytes, size) &&
         text_count_words(bytes, size, OPENMVG_WORDS + 1, NULL) == OPENMVG_WORDS;
}

const feature_format format_openmvg = {.id = HS_FORMAT_OPENMVG,
                                       .name = "openmvg",
                                       .summary = "openMVG and AliceVision: a .feat and a .desc file",
                                       .endings = {".feat"},
                                       .second_ending = ".desc",
                                       .as_stored = true,
                                       .write = openmvg_write,
                                       .read = openmvg_read,
                                       .probe = openmvg_probe};
