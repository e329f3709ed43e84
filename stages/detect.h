/*
 * Detection: the keypoints of all octaves, from the extremum search (extrema.h) through refinement to their places
 * (refine.h). One stage, because a backend may follow a candidate while the levels about it are still in its caches.
 */
#ifndef HARTSIFT_STAGES_DETECT_H
#define HARTSIFT_STAGES_DETECT_H

#include "stages/pyramid.h"
#include "stages/refine.h"

/* Appends the octaves' keypoints in the defined order. Level S+2 is defined by its step from level S+1, but it is read
   only about samples that its DoG level may still decide: a backend need not have it in memory
   (stage_ops.detect_reads_top). Where the list ends up longer than its capacity, what stands in it are keypoints, but maybe not
   the first ones, and its count may be above their number. */
typedef struct detect_args {
  const octave_view *octaves;
  int32_t octave_count;
  border_mode border;
  const gaussian_filter *top_filter; /* of the step from level S+1 to S+2; host memory, read during the call only */
  sift_params params;
  place_filter filter;
  void *work; /* stage_ops.detect_work_bytes */
  keypoint_list keypoints;
  uint64_t *candidates; /* not null: gets the number of extrema */
} detect_args;

#endif
