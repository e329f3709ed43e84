/*
 * One frame, stage after stage.
 */
#ifndef HS_PIPELINE_RUN_H
#define HS_PIPELINE_RUN_H

#include "pipeline/context/context.h"
#include "pipeline/context/workspace.h"

/* What is asked of a frame. */
typedef struct frame_request {
  source_view source;
  place_filter filter;
  size_t descriptor_bytes;  /* of one; 0: keypoints and orientations only */
  const hs_keypoint *given; /* describe these instead of detecting; null: detect */
  uint32_t given_count;
  hs_status *given_statuses; /* [given_count]; with given only */
  int32_t skipped_octaves;  /* the first ones are made elsewhere, which hands over */
  plane_view handed_over;   /* level 0 of the next; unused when none is skipped */
} frame_request;

/* Runs the frame; its lists stand in *result until the context's next call. A list that overflowed is grown and the
   frame repeated, so the result never depends on a capacity. */
hs_status run_frame(hs_context *context, const frame_request *request, workspace *result);

/* For a backend that counts its own lists: true when one overflowed; capacities are then raised for the next
   attempt. */
bool run_grow_lists(hs_context *context, uint32_t keypoints, uint32_t features, uint32_t keypoint_capacity,
                    uint32_t feature_capacity);

#endif
