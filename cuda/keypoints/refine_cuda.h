/*
 * Refinement on the device: candidate masks of all octaves -> settled masks, and these -> the keypoint list.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_REFINE_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_REFINE_CUDA_H

#include "cuda/keypoints/frame_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rebalanced: a block's candidates are compacted into a dense list first, so that every lane of a warp has one to follow.
   Plain: the lane that finds a candidate in its mask word follows it. */
typedef enum cuda_refine_variant { CUDA_REFINE_REBALANCED = 0, CUDA_REFINE_PLAIN = 1 } cuda_refine_variant;

/* candidate_words -> settled_words, which the reset has cleared, scratch.settled_tiles, scratch.candidate_count. As
   refine_ref, octave by octave; with view->filtered, samples whose keypoint the filter drops stay clear. */
stage_status cuda_refine_launch(const cuda_frame_view *view, cuda_refine_variant variant, cuda_stream stream);

/* settled_words and scratch.settled_tiles -> keypoints, count included. As locate_ref, octave by octave. */
stage_status cuda_locate_launch(const cuda_frame_view *view, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
