/*
 * Lists of keypoints and features: structures of arrays with a count and a capacity.
 *
 * A stage that appends goes on counting past the capacity without writing there, so the count at the end of a
 * frame tells how much room was needed. So a result never depends on a capacity.
 */
#ifndef HARTSIFT_STAGES_KEYPOINT_H
#define HARTSIFT_STAGES_KEYPOINT_H

#include "stages/portable.h"

/* Places in original pixels and samples of an octave: sample 0 lies at -shift (sift_params.grid_shift), samples are
   2^octave pixels apart. Both round once at most, because products by a power of two are exact. */
HS_INLINE float place_of_sample(float sample, int32_t octave, float shift) {
  return sample * hs_power_of_two(octave) - shift;
}

HS_INLINE float sample_of_place(float place, int32_t octave, float shift) {
  return (place + shift) * hs_power_of_two(-octave);
}

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

/* A keypoint in samples of its octave. */
typedef struct octave_keypoint {
  float x, y, sigma;
} octave_keypoint;

HS_INLINE octave_keypoint keypoint_in_octave(const keypoint_list *k, uint32_t n, float shift) {
  const int32_t octave = k->octave[n];
  octave_keypoint at;
  at.x = sample_of_place(k->x[n], octave, shift);
  at.y = sample_of_place(k->y[n], octave, shift);
  at.sigma = k->sigma[n] * hs_power_of_two(-octave);
  return at;
}

/* Features: a keypoint and one of its orientations; in keypoint order, then by angle. */
typedef struct feature_list {
  uint32_t *count;
  uint32_t capacity;
  uint32_t *keypoint; /* index into the keypoint list */
  float *orientation; /* radians in [0, 2 pi) */
} feature_list;

#endif
