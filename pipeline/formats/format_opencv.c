/*
 * OpenCV FileStorage YAML: "keypoints" as a sequence of 7-tuples x, y, size, angle, response, octave,
 * class_id, and "descriptors" as an opencv-matrix; size is 2 sigma, angle in degrees, octave packed.
 * The reader lives in yaml_features.c.
 */
#include <math.h>

#include "pipeline/base/origin.h"
#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/yaml_features.h"
#include "stages/table_math.h"

enum { OPENCV_VALUES_A_LINE = 16, OPENCV_CENTRED_PART = 128, OPENCV_PART_MOST = 255 };

static const double degrees_per_radian = 57.29577951308232087680;

/* Sampling that OpenCV itself uses, needed to tell where between two levels a sigma lies. */
static const double opencv_sigma0 = 1.6;
static const double opencv_scales = 3.0;

/* round((xi + 0.5) 255) for the offset xi of the extremum from its level. The list does not hold xi; it
   follows from sigma where sigma0 and S are OpenCV's, and the middle is written where they cannot be. */
static int32_t opencv_level_part(const hs_keypoint *keypoint) {
  double level = opencv_scales * (table_log2((double)keypoint->sigma / opencv_sigma0) - (double)keypoint->octave);
  double offset = level - (double)keypoint->level;
  if (!(offset > -1.0 && offset < 1.0)) return OPENCV_CENTRED_PART;
  double part = floor((offset + 0.5) * OPENCV_PART_MOST + 0.5);
  if (part < 0.0) return 0;
  return part > OPENCV_PART_MOST ? OPENCV_PART_MOST : (int32_t)part;
}

static int32_t opencv_pack_octave(const hs_keypoint *keypoint) {
  int32_t packed = keypoint->octave & 255;
  if (keypoint->level > 0) packed |= (keypoint->level << 8) | (opencv_level_part(keypoint) << 16);
  return packed;
}

static hs_status opencv_check_octaves(const feature_target *target) {
  for (size_t i = 0; i < target->features->count; i++) {
    const hs_keypoint *keypoint = &target->features->keypoints[i];
    if (keypoint->octave < -128 || keypoint->octave > 127 || keypoint->level > 255) {
      return target_fail(target, HS_ERR_UNSUPPORTED, "keypoint %zu: octave or level do not fit OpenCV's packed octave",
                         i);
    }
  }
  return HS_OK;
}

static void opencv_write_keypoints(feature_sink *sink, const hs_features *features) {
  sink_text(sink, features->count == 0 ? "keypoints: [ ]\n" : "keypoints:\n");
  for (size_t i = 0; i < features->count; i++) {
    const hs_keypoint *keypoint = &features->keypoints[i];
    sink_text(sink, "   - [ ");
    sink_float(sink, keypoint->x);
    sink_text(sink, ", ");
    sink_float(sink, keypoint->y);
    sink_text(sink, ", ");
    sink_double(sink, 2.0 * (double)keypoint->sigma);
    sink_text(sink, ", ");
    sink_double(sink, (double)angle_wrap((double)keypoint->orientation) * degrees_per_radian);
    sink_text(sink, ", ");
    sink_float(sink, keypoint->response);
    sink_text(sink, ", ");
    sink_int(sink, opencv_pack_octave(keypoint));
    sink_text(sink, ", -1 ]\n");
  }
}

static void opencv_write_descriptor(feature_sink *sink, const descriptor_codec *codec, size_t index) {
  bool is_float = codec->features->descriptor_type == HS_DESCRIPTOR_F32;
  float values[HS_DESCRIPTOR_LENGTH] = {0};
  uint8_t bytes[HS_DESCRIPTOR_LENGTH] = {0};
  if (is_float)
    descriptor_to_f32(codec, index, values);
  else
    descriptor_to_u8(codec, index, bytes);
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    if (index > 0 || k > 0) sink_text(sink, k % OPENCV_VALUES_A_LINE == 0 ? ",\n       " : ", ");
    if (is_float)
      sink_float(sink, values[k]);
    else
      sink_int(sink, bytes[k]);
  }
}

static void opencv_write_descriptors(feature_sink *sink, const feature_target *target) {
  const hs_features *features = target->features;
  descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_UBC);
  sink_text(sink, "descriptors: !!opencv-matrix\n   rows: ");
  sink_int(sink, (int64_t)features->count);
  sink_text(sink, "\n   cols: 128\n   dt: ");
  sink_text(sink, features->descriptor_type == HS_DESCRIPTOR_F32 ? "f" : "u");
  sink_text(sink, "\n   data: [ ");
  for (size_t i = 0; i < features->count; i++) opencv_write_descriptor(sink, &codec, i);
  sink_text(sink, " ]\n");
}

static void opencv_write_origin(feature_sink *sink, const hs_origin *origin) {
  const int64_t numbers[] = {origin->method_version, origin->profile, origin_norm_number(origin),
                             origin->exif_orientation};
  sink_text(sink, "hartsift_origin: [ ");
  for (size_t i = 0; i < 4; i++) {
    if (i > 0) sink_text(sink, ", ");
    sink_int(sink, numbers[i]);
  }
  sink_text(sink, " ]\n");
}

static hs_status opencv_write(const feature_target *target) {
  hs_status status = opencv_check_octaves(target);
  if (status != HS_OK) return status;
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  sink_text(&sink, "%YAML:1.0\n---\nimage_width: ");
  sink_int(&sink, target->features->image_width);
  sink_text(&sink, "\nimage_height: ");
  sink_int(&sink, target->features->image_height);
  sink_text(&sink, "\n");
  opencv_write_origin(&sink, &target->features->origin);
  opencv_write_keypoints(&sink, target->features);
  if (target->features->descriptor_type != HS_DESCRIPTOR_NONE) opencv_write_descriptors(&sink, target);
  sink_flush(&sink);
  return HS_OK;
}

const feature_format format_opencv = {.id = HS_FORMAT_OPENCV,
                                      .name = "opencv",
                                      .summary = "OpenCV FileStorage YAML",
                                      .endings = {".yml", ".yaml"},
                                      .without_descriptors = true,
                                      .write = opencv_write,
                                      .read = yaml_read_features,
                                      .probe = yaml_probe};
