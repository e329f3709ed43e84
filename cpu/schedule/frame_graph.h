/*
 * The stages of a frame as one graph of jobs: pyramid, detection, orientation and description on a pool of threads,
 * without a wait of all threads for each other between two steps.
 *
 * A chunk begins when the bands of rows that it reads are there. Two orders are kept by the graph: the octaves behind the
 * first are begun when that one has been searched, since they lie where its levels above S do; and the keypoints of the
 * first octave are listed before the others. So those of the first are oriented and described while the other octaves are
 * made and searched. The results are those of the stages one after another.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_FRAME_GRAPH_H
#define HARTSIFT_CPU_SCHEDULE_FRAME_GRAPH_H

#include "stages/ops.h"

typedef struct frame_graph_args {
  const stage_ops *ops;
  base_args base;
  const octave_view *octaves;
  int32_t octave_count;               /* 1 or more */
  int32_t scales, levels;             /* S; levels above level 0 that are made, S or more */
  const gaussian_filter *step_filter; /* [1..levels] */
  int32_t radius_max;
  float *scratch[2]; /* of the pyramid's steps: of the first octave, of the others */
  /* Null: nothing is searched; else [0] is of the first octave, [1] of the others, if there are any. */
  const detect_args *detect;
  const orient_args *orient;     /* null: not oriented; else all keypoints that are found */
  const describe_args *describe; /* null: not described; else all features */
  /* Null, or called on the caller's thread once for each level step, detection and orientation that is done, with its
     samples, those of the last two stage_levels times. False: the frame ends early. */
  bool (*tell)(void *owner, uint64_t samples);
  void *owner;
  uint64_t stage_levels;
  void *work; /* frame_graph_bytes */
} frame_graph_args;

/* Bytes of frame_graph_args.work. */
typedef size_t (*frame_graph_size)(int32_t octave_count, int32_t scales);
size_t frame_graph_bytes(int32_t octave_count, int32_t scales);

/* frame_graph_bytes where these stages run as a graph on so many threads, else null. */
frame_graph_size frame_graph_sizes(const stage_ops *ops, int32_t threads);

/* Statuses: STAGE_OUT_OF_MEMORY, STAGE_CANCELLED. */
stage_status frame_graph_run(stage_queue *queue, const frame_graph_args *args);

#endif
