/*
 * Detection: the keypoints of all octaves, from the extremum search through refinement to their places
 * (refine.h). One stage, because a backend may follow a candidate while the levels about it are still in its caches.
 */
#ifndef HARTSIFT_STAGES_DETECT_H
#define HARTSIFT_STAGES_DETECT_H

#include "stages/pyramid.h"
#include "stages/refine.h"

/* A candidate whose steps lead to a sample at which no fit can be made, because the levels about it are not in memory. */
typedef struct escaped_candidate {
  int32_t level, x, y;
  int32_t step; /* of refine_judge: the next one */
} escaped_candidate;

/* Detection in a part of one octave. Candidates are those of `search`; each is followed as long as it stays in `reach`,
   where the levels are in memory as far about a sample as the fits and the last level's filter go. */
typedef struct detect_part {
  plane_region search, reach;
  const escaped_candidate *seed; /* not null: nothing is searched, this one is followed on; it lies in `reach` */
  escaped_candidate *escaped;    /* gets those that leave, in any order */
  uint32_t escaped_capacity;
  uint32_t *escaped_count; /* counted past the capacity */
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

/* A fused pass over an octave: base or halving, level steps and detection at the same time, so that a level's rows are read
   while they lie in a cache, and only the levels that a later stage reads are written to memory. */

/* The results are those of base or halving, of S+1 level steps and of detection, one after another. These run instead where
   a fused pass has no capacity for what it finds. OpenCV's candidates may go anywhere: levels 1 to S must be kept for
   them, and of levels 0 and S+1, where they are not kept, the samples read are made again in their planes, from the
   source or `finer`. */
typedef struct octave_args {
  base_args base; /* out: level 0; work for the level steps too; gray and doubled are not read */
  /* Level S of the octave before, which is halved in place of the base: of `base` then all but the source is read.
     Without data: the base is made. */
  plane_view finer;
  const gaussian_filter *step_filter; /* [1..S+2] */
  detect_args detect;                 /* of this octave alone, without a part */
  uint32_t levels_kept; /* bit s: level s is written to its plane; the others may be written to, anywhere */
  float *scratch;       /* cpu/schedule/fused_pass.h */
  /* Null, or called on the caller's thread with the samples of one level that have been done since: after each strip of
     that thread and after all, and with 0 between stages that take the pass's place. False: the octave ends early, with
     STAGE_CANCELLED. */
  bool (*tell)(void *owner, uint64_t samples);
  void *owner;
} octave_args;

#endif
