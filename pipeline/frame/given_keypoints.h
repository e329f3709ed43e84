/*
 * Describing keypoints that the caller gives: which octave and level each belongs to, and its way through the frame.
 */
#ifndef HARTSIFT_FRAME_GIVEN_KEYPOINTS_H
#define HARTSIFT_FRAME_GIVEN_KEYPOINTS_H

#include "pipeline/frame/run_frame.h"

/* Where a given keypoint is described. */
typedef struct given_place {
  int32_t octave_index; /* 0..octave_count-1, or -1: it cannot be described */
  int32_t level;        /* 1..S */
  float sigma;          /* what it is described with, in pixels */
} given_place;

/* Octave and level of a keypoint: the ones it has (level 1..S), or the ones nearest to its sigma, for level 0, for a
   level that the pyramid does not have, and for one in which its window would be too small or too large. sigma: the
   keypoint's, or the nearest for which there is a window. Not describable: a number is not finite, sigma not above 0,
   the centre outside the picture, or the picture too small for an octave. A coarse octave may end up to a sample before
   the picture does; a window about a centre beyond its end votes with the samples that there are. */
given_place given_place_of(const pyramid_geometry *geometry, const sift_params *params, const source_view *picture,
                           const hs_keypoint *keypoint);

/* A finite angle in [0, 2 pi); one that is there already keeps its bits. */
float given_angle(float radians);

/* Octaves that must be built for the keypoints given; writes their statuses. */
int32_t given_octaves_needed(const pyramid_geometry *geometry, const hs_context *context, const frame_request *request);

/* Appends octave o's (or GIVEN_EVERY_OCTAVE's) given keypoints, in the order given: those that bring their orientation
   with a feature each, or (oriented false) those whose orientation is to be computed, keypoints only. Of *w only the
   lists and sources are used. */
enum { GIVEN_EVERY_OCTAVE = -1 };
void given_append(const pyramid_geometry *geometry, const hs_context *context, const frame_request *request, int32_t o,
                  bool oriented, workspace *w);

#endif
