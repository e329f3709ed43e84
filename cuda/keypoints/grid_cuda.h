/*
 * Selection over a grid on the device: the keys that make plain selection choose as stages/grid_select.h says.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_GRID_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_GRID_CUDA_H

#include "cuda/keypoints/frame_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* oriented -> scratch.select_keys: the largest for every feature of a rank that stays whole, its own key plus 1 for those of
   the last rank that is reached, 0 for all others. Nothing where no feature is dropped. view->grid has columns. */
stage_status cuda_grid_keys_launch(const cuda_frame_view *view, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
