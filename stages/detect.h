/*
 * Detection: finds the keypoints of all octaves, by extremum search, refinement and computation of positions
 * (refine.h). It is one stage, because a backend may follow a candidate while the levels around it are still in its
 * caches.
 */
#ifndef HARTSIFT_STAGES_DETECT_H
#define HARTSIFT_STAGES_DETECT_H

#include "stages/pyramid.h"
#include "stages/refine.h"

/* A candidate that escaped from a part of an octave: it moved to a sample that cannot be fitted, because the levels
 * around that sample are not in memory. */
typedef struct escaped_candidate {
  int32_t level, x, y;
  int32_t step; /* number of the next Newton evaluation, for refine_judge */
} escaped_candidate;

/* Detection in a part of one octave. Candidates come from `search`. Each is followed while it stays in `follow`: the
 * region around whose samples the levels are in memory, as far as fits and the last level's filter read them. */
typedef struct detect_part {
  plane_region search, follow;
  /* not null: nothing is searched, and only this candidate is followed; it is inside `follow` */
  const escaped_candidate *seed;
  escaped_candidate *escaped; /* receives escaped candidates, in any order */
  uint32_t escaped_capacity;
  uint32_t *escaped_count; /* number of escaped candidates; continues to count past the capacity */
} detect_part;

/* Appends the keypoints of the octaves in the defined order. Level S+2 is one step from level S+1. It is read only
 * around samples for which its DoG level can decide, so a backend need not store it (stage_ops.detect_reads_top). If
 * the count exceeds the capacity, the entries are keypoints but not necessarily the first ones, and the count may
 * exceed the true number. */
typedef struct detect_args {
  const octave_view *octaves;
  int32_t octave_count;
  border_mode border;
  const gaussian_filter *top_filter; /* filter of the step from level S+1 to S+2; host memory, read during the call */
  sift_params params;
  position_filter filter;
  void *work; /* stage_ops.detect_work_bytes */
  keypoint_list keypoints;
  uint64_t *candidates; /* receives the number of extrema; may be null */
  /* null: all samples of all octaves. Not null: only this part, of exactly one octave, and `work` is sized for
   * `follow` */
  const detect_part *part;
} detect_args;

/* A fused pass over an octave makes all its levels and detects keypoints strip by strip, so that rows are read while
 * they are in a cache. Only levels that a later stage reads are written to memory. */

/* The results equal those of separate stages: base or halving, S+1 level steps, detection. The separate stages run
 * instead if the fused pass lacks capacity for its candidates. OpenCV's candidates may move by more than one sample, so
 * levels 1 to S must be kept for them. If levels 0 and S+1 are not kept, their samples that are read later are
 * recomputed into their planes, from the source or `finer`. */
typedef struct octave_args {
  base_args base; /* out: level 0. work: also used by the level steps. gray and doubled are not read */
  /* Level S of the previous octave. If it has data, level 0 is made by halving it, and only the source of `base` is
   * read. Otherwise level 0 is made by `base`. */
  plane_view finer;
  const gaussian_filter *step_filter; /* [1..S+2] */
  detect_args detect;                 /* detection in this octave only, without a part */
  uint32_t levels_kept; /* bit s: level s is written to its plane; planes of other levels may be overwritten anywhere */
  float *scratch;       /* cpu/schedule/fused_pass.h */
  /* Progress function, or null. Called on the caller's thread, after each of its strips and at the end, with the number
   * of samples of a level that were finished since the last call; between separate stages that replace the pass, with
   * 0. If it returns false, the octave ends early with STAGE_CANCELLED. */
  bool (*report)(void *owner, uint64_t samples);
  void *owner;
} octave_args;

#endif
