/*
 * Given keypoints on a device: their lists on the way there and back.
 */
#ifndef HARTSIFT_DEVICE_CUDA_GIVEN_H
#define HARTSIFT_DEVICE_CUDA_GIVEN_H

#include "pipeline/device/cuda_frame.h"

/* Pinned lists for given->count keypoints, both empty, for the caller to fill; sets given->capacity. They belong to the
   context until its next call of this. Statuses: HS_ERR_MEMORY, HS_ERR_DEVICE. */
hs_status cuda_given_room(hs_context *context, user_keypoints *given, keypoint_list *keypoints, feature_list *features);

/* The keypoint of each of the last frame's features, whose orientations were computed: [count], the context's until its
   next call. Statuses: HS_ERR_MEMORY, HS_ERR_DEVICE. */
hs_status cuda_given_keypoints_of(hs_context *context, uint32_t count, const uint32_t **keypoint);

#endif
