/*
 * Candidates: local extrema of the difference of Gaussians over space and scale. Lowe, IJCV 2004, section 3.1.
 */
#ifndef HARTSIFT_STAGES_EXTREMA_H
#define HARTSIFT_STAGES_EXTREMA_H

#include "stages/image.h"
#include "stages/params.h"
#include "stages/portable.h"

/* Sets the bit of each sample of DoG levels 1..S, at least params.border from every side, whose |D| is greater than
   params.candidate_above and that is positive and strictly greater, or negative and strictly smaller, than its 26
   neighbours (extremum_ties: or equal to some). Every word of `candidates` is written. *count, when not null, gets the
   number of bits. */
typedef struct extrema_args {
  octave_view octave;
  mask_view candidates;
  sift_params params;
  uint64_t *count;
} extrema_args;

/* D at (level, x, y): the difference is computed wherever it is needed, so no backend has to store it. */
HS_INLINE float dog_at(const octave_view *o, int32_t level, int32_t x, int32_t y) {
  const float *lower = o->levels + (size_t)level * o->level_floats + (size_t)y * o->stride + (size_t)x;
  return lower[o->level_floats] - lower[0];
}

#endif
