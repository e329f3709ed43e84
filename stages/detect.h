/*
 * Detection: the keypoints of all octaves, from the extremum search (extrema.h) through refinement to their places
 * (refine.h). One stage, because a backend may follow a candidate while the levels about it are still in its caches.
 */
#ifndef HARTSIFT_STAGES_DETECT_H
#define HARTSIFT_STAGES_DETECT_H

#include "stages/pyramid.h"
#include "stages/refine.h"

/* A candidate whose steps lead to a sample at which no fit can be made, because the levels about it are not in memory. */
typedef struct detect_stray {
  int32_t level, x, y;
  int32_t step; /* of refine_judge: the next one */
} detect_stray;

/* Detection in a part of one octave. Candidates are those of `search`; each is followed as long as it stays in `reach`,
   where the levels are in memory as far about a sample as the fits and the last level's filter go. */
typedef struct detect_part {
  plane_region search, reach;
  const detect_stray *seed; /* not null: nothing is searched, this one is followed on; it lies in `reach` */
  detect_stray *strays;     /* gets those that leave, in any order */
  uint32_t stray_capacity;
  uint32_t *stray_count; /* counted past the capacity */
} detect_part;

/* Appends the octaves' keypoints in the defined order. Level S+2 is defined by its step from level S+1, but it is read
   only about samples that its DoG level may still decide: a backend need not have it in memory
   (stage_ops.detect_reads_top). Where the list ends up longer than its capacity, what stands in it are keypoints, but
   maybe not the first ones, and its count may be above their number. */
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
  /* Null: all of every octave. Else there is one octave, and `work` is for one of reach's size. */
  const detect_part *part;
} detect_args;

#endif
