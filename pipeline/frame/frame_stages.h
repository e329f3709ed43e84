/*
 * A frame that is being run on the host, and the arguments of its stages.
 */
#ifndef HARTSIFT_FRAME_FRAME_STAGES_H
#define HARTSIFT_FRAME_FRAME_STAGES_H

#include "pipeline/context/context.h"
#include "pipeline/context/frame_request.h"
#include "pipeline/context/workspace.h"

/* The frame being run. */
typedef struct frame {
  hs_context *context;
  const frame_request *request;
  workspace *work;
  int32_t octaves; /* that are wanted */
  way_choice choice;
  bool levels_only;
  bool is_oriented, is_described; /* where stages run at the same time */
  uint64_t candidates;
  uint64_t done, total; /* samples of levels made, and of all; the stages behind them count as further levels */
} frame;

/* How many levels above level 0 are made: those that a later stage reads from memory. */
int32_t frame_levels_made(const frame *f);

base_args frame_base_args(const frame *f);
/* Detection in the octaves first..end-1: one alone, or all from one on. */
detect_args frame_detect_args(const frame *f, int32_t first, int32_t end, uint64_t *candidates);
/* An octave in one pass; step_filter and detection are read during the call. */
octave_args frame_octave_args(const frame *f, int32_t octave_index, uint64_t *candidates);
orient_args frame_orient_args(const frame *f);
describe_args frame_describe_args(const frame *f);
/* Of the stages on shapes. */
affine_args frame_shape_args(const frame *f);

#endif
