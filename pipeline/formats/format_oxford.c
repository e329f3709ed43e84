/*
 * The text of the affine-region detectors of Oxford (VGG) and of hesaff: the descriptor length, the number of regions,
 * and for each region its centre, an ellipse and the descriptor. A feature is written as the circle (with a frame, the
 * ellipse) of its measurement region; a file that has only circles is read without frames.
 */
#include <math.h>

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/formats.h"
#include "pipeline/formats/common/text_cursor.h"

/* Numbers u v a b c of a region, the ellipse a(x-u)^2 + 2b(x-u)(y-v) + c(y-v)^2 = 1. */
enum { OXFORD_ELLIPSE = 5 };
/* Number of values before the descriptor in the second format of compute_descriptors. */
enum { OXFORD_SECOND_FORMAT = 13 };

/* Squared radius of the measurement region in units of sigma^2: hesaff's factor is 3 sqrt(3). */
static const double oxford_region = 27.0;

/* Computes the ellipse (a, b, c) of a keypoint's circle, or of its frame. */
static void oxford_ellipse(const hs_keypoint *keypoint, const hs_frame *frame, double abc[3]) {
  abc[0] = abc[2] = 1.0 / (oxford_region * (double)keypoint->sigma * (double)keypoint->sigma);
  abc[1] = 0.0;
  if (!frame) return;
  const double a11 = (double)frame->a11, a12 = (double)frame->a12, a21 = (double)frame->a21, a22 = (double)frame->a22;
  const double determinant = a11 * a22 - a12 * a21, square = oxford_region * determinant * determinant;
  abc[0] = (a21 * a21 + a22 * a22) / square;
  abc[1] = -(a11 * a21 + a12 * a22) / square;
  abc[2] = (a11 * a11 + a12 * a12) / square;
}

static void oxford_put_ellipse(feature_sink *sink, const hs_keypoint *keypoint, const hs_frame *frame) {
  double abc[3];
  oxford_ellipse(keypoint, frame, abc);
  sink_float(sink, keypoint->x);
  sink_text(sink, " ");
  sink_float(sink, keypoint->y);
  for (int i = 0; i < 3; i++) {
    sink_text(sink, " ");
    sink_double(sink, abc[i]);
  }
}

static hs_status oxford_write(const feature_target *target) {
  const hs_features *features = target->features;
  const bool described = features->descriptor_type != HS_DESCRIPTOR_NONE;
  feature_sink sink;
  sink_begin(&sink, target->stream, target->written);
  descriptor_codec codec = descriptor_codec_make(features, target->layout, HS_LAYOUT_UBC);
  sink_text(&sink, described ? "128\n" : "1.0\n");
  sink_int(&sink, (int64_t)features->count);
  sink_text(&sink, "\n");
  for (size_t i = 0; i < features->count; i++) {
    oxford_put_ellipse(&sink, &features->keypoints[i], features->frames ? &features->frames[i] : NULL);
    if (described) {
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

/* Adds frames to the list when the first ellipse is read; earlier features get circles. */
static hs_status oxford_begin_frames(text_cursor *cursor, hs_features *features, size_t index, uint64_t count) {
  const hs_status status = source_reserve_framed(cursor->source, features, count, features->descriptor_type);
  for (size_t i = 0; status == HS_OK && i < index; i++) {
    const float sigma = features->keypoints[i].sigma;
    features->frames[i] = (hs_frame){sigma, 0.0f, 0.0f, sigma};
  }
  return status;
}

/* Computes the frame with orientation 0 that maps the unit circle to the ellipse. */
static hs_status oxford_read_frame(text_cursor *cursor, const double abc[3], hs_features *features, size_t index,
                                   uint64_t count) {
  const double a = abc[0], b = abc[1], c = abc[2], square = oxford_region * (a * c - b * b);
  if (!features->frames) {
    if (a == c && b == 0.0) return HS_OK;
    const hs_status status = oxford_begin_frames(cursor, features, index, count);
    if (status != HS_OK) return status;
  }
  const double down = sqrt(a / square);
  const double values[4] = {sqrt(1.0 / (oxford_region * a)), -b / (square * down), 0.0, down};
  const char *fault = frame_fill(&features->frames[index], values);
  return fault ? cursor_fail(cursor, "%s", fault) : HS_OK;
}

/* Reads a region as an ellipse, and as the circle of equal area; these files have no orientations. */
static hs_status oxford_read_region(text_cursor *cursor, hs_features *features, size_t index, uint64_t count) {
  static const char *const names[OXFORD_ELLIPSE] = {"u", "v", "a", "b", "c"};
  double values[OXFORD_ELLIPSE];
  for (size_t k = 0; k < OXFORD_ELLIPSE; k++) {
    const hs_status status = cursor_double(cursor, true, names[k], &values[k]);
    if (status != HS_OK) return status;
  }
  const double a = values[2], b = values[3], c = values[4], determinant = a * c - b * b;
  if (!(a > 0.0 && c > 0.0 && determinant > 0.0 && isfinite(determinant)))
    return cursor_fail(cursor, "a, b, c are not an ellipse");
  const double sigma = 1.0 / sqrt(oxford_region * sqrt(determinant));
  const char *fault = keypoint_fill(&features->keypoints[index], values[0], values[1], sigma, 0.0);
  if (fault) return cursor_fail(cursor, "%s", fault);
  const hs_status status = oxford_read_frame(cursor, values + 2, features, index, count);
  if (status != HS_OK) return status;
  if (features->descriptor_type == HS_DESCRIPTOR_NONE) return HS_OK;
  return cursor_descriptor(cursor, true, descriptor_u8_at(features, index));
}

/* Reads the length of descriptors: 128, or 1 or 0 for regions without descriptors. */
static hs_status oxford_read_header(text_cursor *cursor, hs_descriptor_type *type, uint64_t *count) {
  double length;
  int64_t claimed;
  hs_status status = cursor_double(cursor, true, "the descriptor length", &length);
  if (status == HS_OK && length != HS_DESCRIPTOR_LENGTH && length != 1.0 && length != 0.0)
    status = cursor_fail(cursor, "the descriptor length is neither 128 nor 1 nor 0");
  if (status == HS_OK) status = cursor_int(cursor, true, "the number of regions", &claimed);
  if (status != HS_OK) return status;
  if (claimed < 0) return cursor_fail(cursor, "the number of regions is negative");
  *type = length == HS_DESCRIPTOR_LENGTH ? HS_DESCRIPTOR_U8 : HS_DESCRIPTOR_NONE;
  *count = (uint64_t)claimed;
  const uint64_t words = OXFORD_ELLIPSE + (*type == HS_DESCRIPTOR_U8 ? HS_DESCRIPTOR_LENGTH : 0);
  if (*count > cursor->source->size / (2 * words - 1))
    return cursor_fail(cursor, "the file is too short for %lld regions", (long long)claimed);
  return HS_OK;
}

/* Distinguishes the two formats of compute_descriptors by the line of the first region. */
static hs_status oxford_check_format(const text_cursor *cursor, hs_descriptor_type type) {
  const size_t second = OXFORD_SECOND_FORMAT + (type == HS_DESCRIPTOR_U8 ? (size_t)HS_DESCRIPTOR_LENGTH : 0);
  const size_t left = (size_t)(cursor->end - cursor->at);
  if (text_count_words((const uint8_t *)cursor->at, left, second + 1, NULL) != second) return HS_OK;
  (void)cursor_fail(cursor, "regions of %d numbers, expected 5: compute_descriptors' first format (-o1)",
                    (int)OXFORD_SECOND_FORMAT);
  return HS_ERR_UNSUPPORTED;
}

static hs_status oxford_read(const feature_source *source, hs_features *features) {
  text_cursor cursor = cursor_make(source);
  hs_descriptor_type type = HS_DESCRIPTOR_NONE;
  uint64_t count = 0;
  hs_status status = oxford_read_header(&cursor, &type, &count);
  if (status == HS_OK && count > 0) status = oxford_check_format(&cursor, type);
  if (status == HS_OK) status = source_reserve(source, features, count, type);
  for (size_t i = 0; status == HS_OK && i < (size_t)count; i++)
    status = oxford_read_region(&cursor, features, i, count);
  if (status != HS_OK) return status;
  if (!cursor_at_end(&cursor))
    return cursor_fail(&cursor, "more values than the %llu regions announced", (unsigned long long)count);
  features->count = (size_t)count;
  return HS_OK;
}

/* True if the file begins with two lines of one number each, followed by the end or a region. */
static bool oxford_probe(const uint8_t *bytes, size_t size) {
  size_t first = 0, second = 0;
  if (!text_begins_with_number(bytes, size) || text_count_words(bytes, size, 2, &first) != 1) return false;
  if (text_count_words(bytes + first, size - first, 2, &second) != 1) return false;
  const size_t words = text_count_words(bytes + first + second, size - first - second, OXFORD_ELLIPSE + 1, NULL);
  return words == 0 || words >= OXFORD_ELLIPSE;
}

const feature_format format_oxford = {
    .id = HS_FORMAT_OXFORD,
    .name = "oxford",
    .summary = "regions of Oxford's detectors and hesaff",
    .endings = {".hesaff", ".haraff", ".oxford", ".hesaff.sift", ".haraff.sift", ".heslap.sift", ".harlap.sift"},
    .without_descriptors = true,
    .write = oxford_write,
    .read = oxford_read,
    .probe = oxford_probe};
