/*
 * Detection: the keypoints of all octaves, from the extremum search through refinement to their positions (refine.h).
 *
 * It is one stage, because a backend may follow a candidate while the levels around it are still in its caches.
 */
#ifndef HARTSIFT_STAGES_DETECT_H
#define HARTSIFT_STAGES_DETECT_H

#include "stages/pyramid.h"
#include "stages/refine.h"

/* An escaped candidate: its steps lead to a sample without a fit, because the levels around it are not in memory. */
typedef struct escaped_candidate {
  int32_t level, x, y;
  int32_t step; /* refine_judge's number of the next step */
} escaped_candidate;

/* Detection in a part of one octave. Candidates come from `search`. Each is followed while it stays in `reach`, where
 * the levels are in memory far enough around a sample for the fits and the last level's filter. */
typedef struct detect_part {
  plane_region search, reach;
  const escaped_candidate *seed; /* not null: no search; this candidate is followed, from inside `reach` */
  escaped_candidate *escaped;    /* receives escaped candidates, in any order */
  uint32_t escaped_capacity;
  uint32_t *escaped_count; /* counts past the capacity */
} detect_part;

/* Appends the octaves' keypoints in the defined order. Level S+2 is defined by its step from level S+1, but it is read
 * only around samples that its DoG level may still decide, so a backend need not store it (stage_ops.detect_reads_top).
 * If the count exceeds the capacity, the entries in the list are keypoints, but may not be the first ones, and the
 * count may exceed the true number. */
typedef struct detect_args {
  const octave_view *octaves;
  int32_t octave_count;
  border_mode border;
  const gaussian_filter *top_filter; /* of the step from level S+1 to S+2; host memory, read during the call */
  sift_params params;
  place_filter filter;
  void *work; /* stage_ops.detect_work_bytes */
  keypoint_list keypoints;
  uint64_t *candidates; /* not null: receives the number of extrema */
  /* Null: all samples of every octave. Else there is one octave, and `work` is sized for reach. */
  const detect_part *part;
} detect_args;

/* A fused pass over an octave: base or halving, level steps and detection together. A level's rows are read while they
 * are in a cache, and only levels that a later stage reads are written to memory. */

/* The results equal base or halving, S+1 level steps and detection, one after another. These separate stages run
 * instead if a fused pass lacks capacity for its candidates. OpenCV's candidates may move by more than one sample, so
 * levels 1 to S must be kept for them; samples read from levels 0 and S+1, if these are not kept, are recomputed in
 * their planes, from the source or `finer`. */
typedef struct octave_args {
  base_args base; /* out: level 0; work for the level steps too; gray and doubled are not read */
  /* Level S of the previous octave, which is halved instead of making the base: then only the source of `base` is read.
   * Without data: the base is made. */
  plane_view finer;
  const gaussian_filter *step_filter; /* [1..S+2] */
  detect_args detect;                 /* for this octave alone, without a part */
  uint32_t levels_kept; /* bit s: level s is written to its plane; planes of other levels may be overwritten anywhere */
  float *scratch;       /* cpu/schedule/fused_pass.h */
  /* Null, or called on the caller's thread with the number of samples of one level done since the last call: after each
   * strip of that thread and at the end, and with 0 between separate stages that replace the pass. False: the octave
   * ends early, with STAGE_CANCELLED. */
  bool (*tell)(void *owner, uint64_t samples);
  void *owner;
} octave_args;

#endif
