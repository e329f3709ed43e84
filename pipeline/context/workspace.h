/*
 * The frame's buffers as the stages see them: views into the slab, laid out by the plan.
 */
#ifndef HARTSIFT_CONTEXT_WORKSPACE_H
#define HARTSIFT_CONTEXT_WORKSPACE_H

#include "pipeline/context/plan.h"
#include "stages/affine.h"
#include "stages/image.h"
#include "stages/keypoint.h"
#include "stages/ops.h"

typedef struct workspace {
  octave_view octaves[OCTAVES_MAX];
  plane_view blur_work[OCTAVES_MAX]; /* one memory for the first octave, one for the others */
  void *detect_work[2];              /* likewise */
  keypoint_list keypoints;
  feature_list features;
  unsigned char *descriptors; /* null when none are wanted */
  uint32_t *sources;          /* [keypoint]: which given keypoint it is; null when none are given */
  const uint32_t *order;      /* null: features stand in the defined order; else the n-th is item order[n] */
  affine_shape *shapes;       /* [keypoint]; null: they are circles */
  void *graph;                /* of stages that run at the same time; null: they follow one another */
  float *warped;              /* what finding and describing shapes works in */
} workspace;

/* The lists in their memory (room as the plan gives it). */
keypoint_list workspace_keypoints(unsigned char *memory, uint32_t capacity, uint32_t *count);
feature_list workspace_features(unsigned char *memory, uint32_t capacity, uint32_t *count);

/* Sets the views; counts become 0. Of a frame in tiles there are the lists alone. */
void workspace_view(const frame_plan *plan, unsigned char *slab, workspace *w);

/* Keypoint n of the list, with an orientation, as the caller sees it. */
hs_keypoint workspace_keypoint(const keypoint_list *keypoints, uint32_t n, float orientation);

/* The frame of feature n in the order of those handed out; with shapes only. */
hs_frame workspace_frame(const workspace *w, uint32_t n);

/* The features in a frame's lists as the caller sees them. */

/* Copies the first `count` features in the defined order; descriptors of descriptor_bytes each (0: none). Threads of the
   queue (null: none) share long lists. */
void listed_features_copy(stage_queue *queue, const workspace *lists, uint32_t count, size_t descriptor_bytes,
                          hs_keypoint *keypoints, void *descriptors);

#endif
