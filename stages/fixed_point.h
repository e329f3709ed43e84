/*
 * Fixed-point votes: how many bits a vote keeps, so that no sum of votes overflows.
 *
 * A vote is rounded to an int32 as w * m * 2^q before it is summed; integer sums do not depend on the order, so every
 * thread layout and every reduction tree gives the same histogram. q follows from the window's integer radius R alone:
 * the largest q for which the sum of ALL votes of one keypoint stays below 2^31 and no product that is rounded reaches
 * 2^22. The proof is in fixed_point.c, with the numbers.
 */
#ifndef HARTSIFT_STAGES_FIXED_POINT_H
#define HARTSIFT_STAGES_FIXED_POINT_H

#include "stages/base.h"

/* The largest window radius, in samples, that orientation or descriptor may have. Detected keypoints stay far below
 * (sigma0 = 4, S = 1 gives 240); a user keypoint beyond it gets a smaller window (METHOD.md). */
enum {
  WINDOW_RADIUS_MAX = 2048,
  ORIENT_VOTE_BITS_MAX = 21,  /* magnitudes below 1.42 (VLFeat's at an image's edge) times 2^q stay below 2^22 */
  DESCRIBE_VOTE_BITS_MAX = 22 /* magnitudes below 0.71 */
};

/* 2^q by radius R, for the orientation window and the descriptor window. */
typedef struct vote_scales {
  float orient[WINDOW_RADIUS_MAX + 1];
  float describe[WINDOW_RADIUS_MAX + 1];
} vote_scales;

void vote_scales_init(vote_scales *scales);

/* Return q for a window of radius R (0..WINDOW_RADIUS_MAX). */
int32_t orient_vote_bits(int32_t radius);
int32_t describe_vote_bits(int32_t radius);

/* Return the proof's upper bound on the sum of the weights of a window of radius R. For tests. */
double orient_weight_bound(int32_t radius);
double describe_weight_bound(int32_t radius);

#endif
