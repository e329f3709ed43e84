/*
 * Affine shape on the device: a shape for each keypoint, and descriptors on the patches that shapes warp. (Orientations
 * on patches are orient_cuda's, frames results_cuda's.)
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_AFFINE_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_AFFINE_CUDA_H

#include "cuda/keypoints/describe_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* keypoints (all within the capacity) -> shapes. Once a frame: it draws the frame's tickets. As affine_shape_run with
   affine_moments_ref. */
stage_status cuda_affine_shape_launch(const cuda_frame_view *view, cuda_stream stream);

/* As cuda_describe_launch, for a view that has shapes; that one calls it. As affine_describe_run with the references. */
stage_status cuda_affine_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                         const cuda_outputs *outputs, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
