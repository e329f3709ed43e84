/*
 * Detection: the keypoints of all octaves, from the extremum search through refinement to their positions (refine.h).
 *
 * It is one stage, because a backend may follow a candidate while the levels around it are still in its caches.
 */
#ifndef HARTSIFT_STAGES_DETECT_H
#define HARTSIFT_STAGES_DETECT_H

#include "stages/pyramid.h"
#include "stages/refine.h"

/* An escaped candidate: its next sample cannot be fitted, because the levels around that sample are not in memory. */
typedef struct escaped_candidate {
  int32_t level, x, y;
  int32_t step; /* refine_judge's number of the next step */
} escaped_candidate;

/* Detection in a part of one octave. Candidates come from `search`. Each is followed while it stays in `reach`: the
 * samples around which enough of the levels is in memory for the fits and the last level's filter. */
typedef struct detect_part {
  plane_region search, reach;
  const escaped_candidate *seed; /* not null: nothing is searched; only this candidate is followed, which is inside
                                  * `reach` */
  escaped_candidate *escaped;    /* receives escaped candidates, in any order */
  uint32_t escaped_capacity;
  uint32_t *escaped_count; /* number of escaped candidates; continues to count past the capacity */
} detect_part;

/* Appends the keypoints of the octaves in the defined order. Level S+2 is defined as one step from level S+1. It is
 * read only around samples for which its DoG level can decide, so a backend need not store it
 * (stage_ops.detect_reads_top). If the count exceeds the capacity, the entries are keypoints but not necessarily the
 * first ones, and the count may exceed the true number. */
typedef struct detect_args {
  const octave_view *octaves;
  int32_t octave_count;
  border_mode border;
  const gaussian_filter *top_filter; /* filter of the step from level S+1 to S+2; host memory, read during the call */
  sift_params params;
  place_filter filter;
  void *work; /* stage_ops.detect_work_bytes */
  keypoint_list keypoints;
  uint64_t *candidates; /* not null: receives the number of extrema */
  /* Null: all samples of all octaves. Not null: exactly one octave, and `work` is sized for `reach`. */
  const detect_part *part;
} detect_args;

/* A fused pass over an octave makes level 0 (base or halving), makes the other levels and detects, all in one pass.
 * Rows of a level are read while they are in a cache. Only levels that a later stage reads are written to memory. */

/* The results equal those of separate stages: base or halving, S+1 level steps, detection. The separate stages run
 * instead if the fused pass lacks capacity for its candidates. OpenCV's candidates may move by more than one sample,
 * so levels 1 to S must be kept for them. Samples that are read from levels 0 and S+1 when these are not kept are
 * recomputed into the planes of these levels, from the source or `finer`. */
typedef struct octave_args {
  base_args base; /* out: level 0. work: also for the level steps. gray and doubled are not read. */
  /* Level S of the previous octave. If it has data, level 0 is made by halving it, and only the source of `base` is
   * read. Otherwise level 0 is made by `base`. */
  plane_view finer;
  const gaussian_filter *step_filter; /* [1..S+2] */
  detect_args detect;                 /* detection in this octave only; without a part */
  uint32_t levels_kept; /* bit s: level s is written to its plane; planes of other levels may be overwritten anywhere */
  float *scratch;       /* cpu/schedule/fused_pass.h */
  /* Null, or a function called on the caller's thread with the number of samples of one level finished since the last
   * call. It is called after each strip of that thread and at the end. Between separate stages that replace the pass
   * it is called with 0. If it returns false, the octave ends early with STAGE_CANCELLED. */
  bool (*tell)(void *owner, uint64_t samples);
  void *owner;
} octave_args;

#endif
