/*
 * Selection on the device: as stages/select.h says: the strongest, the largest, or whole levels.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_SELECT_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_SELECT_CUDA_H

#include "cuda/keypoints/frame_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* oriented -> features (two lists), count included, and scratch.order for describing that list. As select_ref without
   descriptors; over view->grid, where it has columns. view->max_features is not 0. */
stage_status cuda_select_launch(const cuda_frame_view *view, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
