/*
 * The stages of a frame as one graph of jobs: pyramid, detection, orientation and description on a pool of threads,
 * without a barrier of all threads between two steps.
 *
 * A chunk begins when the bands of rows that it reads are made. The graph keeps two orders. The later octaves begin
 * when the first octave has been searched, since they share the memory of its levels above S. The keypoints of the
 * first octave are listed before the others, so they are oriented and described while the later octaves are made and
 * searched. The results equal those of the stages run one after another.
 */
#ifndef HARTSIFT_CPU_SCHEDULE_FRAME_GRAPH_H
#define HARTSIFT_CPU_SCHEDULE_FRAME_GRAPH_H

#include "stages/ops.h"

typedef struct frame_graph_args {
  const stage_ops *ops;
  base_args base;
  const octave_view *octaves;
  int32_t octave_count;               /* 1 or more */
  int32_t scales, levels;             /* S; number of levels made above level 0, S or more */
  const gaussian_filter *step_filter; /* [1..levels] */
  int32_t radius_max;
  float *scratch[2]; /* scratch of the pyramid's steps: of the first octave, of the others */
  /* Null: no search; else [0] is of the first octave, [1] of the others, if there are any. */
  const detect_args *detect;
  const orient_args *orient;     /* null: no orientation; else of all keypoints found */
  const describe_args *describe; /* null: no description; else of all features */
  /* Null, or called on the caller's thread once for each finished level step, detection and orientation, with its
   * number of samples, for detection and orientation multiplied by stage_levels. False: the frame ends early. */
  bool (*tell)(void *owner, uint64_t samples);
  void *owner;
  uint64_t stage_levels;
  void *work; /* frame_graph_bytes */
} frame_graph_args;

/* Bytes of frame_graph_args.work. */
typedef size_t (*frame_graph_size)(int32_t octave_count, int32_t scales);
size_t frame_graph_bytes(int32_t octave_count, int32_t scales);

/* frame_graph_bytes if these stages run as a graph on so many threads, else null. */
frame_graph_size frame_graph_sizes(const stage_ops *ops, int32_t threads);

/* Statuses: STAGE_OUT_OF_MEMORY, STAGE_CANCELLED. */
stage_status frame_graph_run(stage_queue *queue, const frame_graph_args *args);

#endif
