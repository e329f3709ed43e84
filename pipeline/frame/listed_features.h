/*
 * The features in a frame's lists as the caller sees them.
 */
#ifndef HARTSIFT_FRAME_LISTED_FEATURES_H
#define HARTSIFT_FRAME_LISTED_FEATURES_H

#include "pipeline/context/workspace.h"
#include "stages/ops.h"

/* Copies the first `count` features in the defined order; descriptors of descriptor_bytes each (0: none). Threads of the
   queue (null: none) share long lists. */
void listed_features_copy(stage_queue *queue, const workspace *lists, uint32_t count, size_t descriptor_bytes,
                          hs_keypoint *keypoints, void *descriptors);

#endif
