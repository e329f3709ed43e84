/*
 * Lists of keypoints and features: structures of arrays with a count and a capacity.
 *
 * A stage that appends counts past the capacity without writing there; whoever reads the count at the end of a
 * frame sees how much room was needed. So a result never depends on a capacity.
 */
#ifndef HS_STAGES_KEYPOINT_H
#define HS_STAGES_KEYPOINT_H

#include "stages/base.h"

/* Keypoints in the order octave, level, row, column of the settled sample. */
typedef struct keypoint_list {
  uint32_t *count;
  uint32_t capacity;
  float *x, *y;          /* original pixels */
  float *sigma;          /* original pixels */
  float *response;       /* |D| at the refined extremum */
  int32_t *column, *row; /* the settled sample, in its octave */
  int16_t *octave, *level;
} keypoint_list;

/* Features: a keypoint and one of its orientations; in keypoint order, then by angle. */
typedef struct feature_list {
  uint32_t *count;
  uint32_t capacity;
  uint32_t *keypoint;  /* index into the keypoint list */
  float *orientation;  /* radians in [0, 2 pi) */
} feature_list;

#endif
