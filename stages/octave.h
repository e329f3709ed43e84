/*
 * An octave in one pass: base or halving, level steps and detection at the same time, so that a level's rows are read
 * while they lie in a cache, and only the levels that a later stage reads are written to memory.
 */
#ifndef HARTSIFT_STAGES_OCTAVE_H
#define HARTSIFT_STAGES_OCTAVE_H

#include "stages/detect.h"

/* The results are those of base or halving, of S+1 level steps and of detection, one after another; these take place where
   a pass has no room for what it finds. OpenCV's candidates may go anywhere: levels 1 to S must be kept for them, and
   of levels 0 and S+1, where they are not kept, what is read is made again in their planes, from the source or `finer`. */
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
