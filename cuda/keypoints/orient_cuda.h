/*
 * Orientation on the device: keypoints -> features in the order of the list, then by angle.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_ORIENT_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_ORIENT_CUDA_H

#include "cuda/keypoints/frame_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A warp a keypoint, which adds its votes by integer atomics on interleaved copies of the histogram in shared memory, or by
   the warp-level histogram without atomics (Li, Jia, Zhang, ICPADS 2017); or, to compare with, a thread a keypoint or a
   block a keypoint that test every sample of the window's square (on the patches of shapes: as the first). */
typedef enum cuda_orient_variant {
  CUDA_ORIENT_ATOMIC = 0,
  CUDA_ORIENT_WARP_HISTOGRAM = 1,
  CUDA_ORIENT_THREAD = 2,
  CUDA_ORIENT_BLOCK = 3
} cuda_orient_variant;

/* keypoints -> oriented, count included, and scratch.order for describing that list. As orient_ref with
   first_keypoint 0. */
stage_status cuda_orient_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
