/*
 * Keypoints of COLMAP's database: a scale and an orientation as a 2 x 2 matrix, the pixel's corner as the origin.
 */
#include "pipeline/formats/colmap/colmap_keypoints.h"

#include <math.h>

#include "pipeline/formats/common/byte_order.h"
#include "pipeline/formats/common/feature_codec.h"
#include "stages/table_math.h"

/* COLMAP's pixel origin is the corner of the first pixel. */
static const double colmap_origin = 0.5;

void colmap_keypoint_put(const hs_keypoint *keypoint, uint8_t out[COLMAP_KEYPOINT_BYTES]) {
  const double sigma = (double)keypoint->sigma;
  double sine, cosine; /* not the C library's, whose last bits differ from machine to machine */
  table_sincos((double)angle_wrap((double)keypoint->orientation), &sine, &cosine);
  const double along = sigma * cosine, across = sigma * sine;
  const double columns[COLMAP_COLUMNS] = {
      (double)keypoint->x + colmap_origin, (double)keypoint->y + colmap_origin, along, -across, across, along};
  for (size_t i = 0; i < COLMAP_COLUMNS; i++) bytes_put_f32(out + 4 * i, (float)columns[i]);
}

void colmap_frame_put(const hs_keypoint *keypoint, const hs_frame *frame, uint8_t out[COLMAP_KEYPOINT_BYTES]) {
  const float columns[COLMAP_COLUMNS] = {(float)((double)keypoint->x + colmap_origin),
                                         (float)((double)keypoint->y + colmap_origin),
                                         frame->a11,
                                         frame->a12,
                                         frame->a21,
                                         frame->a22};
  for (size_t i = 0; i < COLMAP_COLUMNS; i++) bytes_put_f32(out + 4 * i, columns[i]);
}

/* Of floats, whose squares neither overflow nor vanish. */
static double length(double x, double y) { return sqrt(x * x + y * y); }

const char *colmap_keypoint_get(const uint8_t *bytes, int64_t columns, hs_keypoint *keypoint) {
  double value[COLMAP_COLUMNS] = {0};
  for (int64_t i = 0; i < columns; i++) value[i] = (double)bytes_get_f32(bytes + 4 * i);
  double sigma = 1.0;
  double orientation = 0.0;
  if (columns == 4) {
    sigma = value[2];
    orientation = value[3];
  } else if (columns == COLMAP_COLUMNS) {
    /* The mean length of the two columns, and the direction of the first: COLMAP's own way back. */
    sigma = 0.5 * (length(value[2], value[4]) + length(value[3], value[5]));
    orientation = table_atan2(value[4], value[2]);
  }
  return keypoint_fill(keypoint, value[0] - colmap_origin, value[1] - colmap_origin, sigma, orientation);
}

void colmap_frame_get(const uint8_t *row, hs_frame *frame) {
  *frame =
      (hs_frame){bytes_get_f32(row + 8), bytes_get_f32(row + 12), bytes_get_f32(row + 16), bytes_get_f32(row + 20)};
}

bool colmap_rows_are_framed(const uint8_t *rows, size_t count) {
  bool circles = true;
  for (size_t i = 0; i < count; i++) {
    hs_frame frame;
    colmap_frame_get(rows + i * COLMAP_KEYPOINT_BYTES, &frame);
    if (!frame_has_inverse(&frame)) return false;
    circles = circles && frame.a11 == frame.a22 && frame.a12 == -frame.a21;
  }
  return !circles;
}
