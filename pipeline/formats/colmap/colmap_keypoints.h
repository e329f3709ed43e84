/*
 * Keypoints and descriptors as the bytes that COLMAP's database holds, and back.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_KEYPOINTS_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_KEYPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

/* Columns that are written: x, y, a11, a12, a21, a22, all float32. */
enum { COLMAP_COLUMNS = 6, COLMAP_KEYPOINT_BYTES = 4 * COLMAP_COLUMNS };

/* Writes the bytes of one keypoint. */
void colmap_keypoint_put(const hs_keypoint *keypoint, uint8_t out[COLMAP_KEYPOINT_BYTES]);

/* The same of one whose frame is known. */
void colmap_frame_put(const hs_keypoint *keypoint, const hs_frame *frame, uint8_t out[COLMAP_KEYPOINT_BYTES]);

/* Reads one of 2, 4 (x, y, scale, orientation) or 6 columns. Null, or why the values cannot be a keypoint. */
const char *colmap_keypoint_get(const uint8_t *bytes, int64_t columns, hs_keypoint *keypoint);

/* Whether rows of 6 columns are to be read with frames: some are not circles, and all have an inverse. */
bool colmap_rows_are_framed(const uint8_t *rows, size_t count);
/* The frame of a row of 6 columns. */
void colmap_frame_get(const uint8_t *row, hs_frame *frame);

#endif
