/*
 * The stages of a frame as one graph of jobs: pyramid, detection, orientation and description on a pool of threads,
 * without a barrier of all threads between two steps.
 *
 * A chunk begins when the bands of rows that it reads are made. Two orders are fixed. The later octaves begin only
 * after the search of the first octave, because they reuse the memory of its levels above S. The keypoints of the first
 * octave are listed before all others; they are oriented and described while the later octaves are made and searched.
 * Running the stages one after another gives the same results.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_FRAME_GRAPH_H
#define HARTSIFT_CPU_SCHEDULE_FRAME_GRAPH_H

#include "stages/ops.h"

typedef struct frame_graph_args {
  const stage_ops *ops;
  base_args base;
  const octave_view *octaves;
  int32_t octave_count;               /* 1 or more */
  int32_t scales, levels;             /* scales: S. levels: number of levels above level 0 that are made, at least S */
  const gaussian_filter *step_filter; /* [1..levels] */
  int32_t radius_max;
  float *scratch[2]; /* scratch of the pyramid's steps; [0] for the first octave, [1] for all others */
  /* Null: no detection. Otherwise [0] for the first octave, [1] for all others, if any. */
  const detect_args *detect;
  const orient_args *orient;     /* orientation of all keypoints; null: none */
  const describe_args *describe; /* description of all features; null: none */
  /* Progress function, or null. Called on the caller's thread once for each finished level step, detection and
   * orientation. samples: size of the job; for detection and orientation multiplied by stage_levels. If it returns
   * false, the frame ends early. */
  bool (*report)(void *owner, uint64_t samples);
  void *owner;
  uint64_t stage_levels;
  void *work; /* memory whose size the function from frame_graph_sizes returns */
} frame_graph_args;

/* Returns the bytes of frame_graph_args.work. */
typedef size_t (*frame_graph_size)(int32_t octave_count, int32_t scales);
size_t frame_graph_bytes(int32_t octave_count, int32_t scales);

/* Returns frame_graph_bytes if these stages run as a graph on this many threads; otherwise null. */
frame_graph_size frame_graph_sizes(const stage_ops *ops, int32_t threads);

/* Runs the stages. Can return STAGE_OUT_OF_MEMORY and STAGE_CANCELLED. */
stage_status frame_graph_run(stage_queue *queue, const frame_graph_args *args);

#endif
