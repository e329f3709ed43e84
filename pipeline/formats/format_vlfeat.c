/*
 * VLFeat's text: a line for each feature, x y sigma theta and 128 integers in VLFeat's bin order, without
 * a header. Lines of four numbers are its .frame files: keypoints without descriptors.
 */
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

/* Lines that hold anything. */
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

/* The first line decides whether there are descriptors; an empty file is an empty list with them. */
static hs_status vlfeat_read(const feature_source *source, hs_features *features) {
  uint64_t count = vlfeat_count_lines(source);
  bool frames = text_count_words(source->bytes, source->size, VLFEAT_FRAME_WORDS + 1, NULL) == VLFEAT_FRAME_WORDS;
  /* No more than the longest claim that the size supports, so that memory stays in proportion. */
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
