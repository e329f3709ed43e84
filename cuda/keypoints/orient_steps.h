/*
 * The two steps of orientation: histograms, and the features from their peaks.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_ORIENT_STEPS_H
#define HARTSIFT_CUDA_KEYPOINTS_ORIENT_STEPS_H

#include "cuda/keypoints/orient_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* keypoints -> scratch.histograms, by the variants CUDA_ORIENT_THREAD and CUDA_ORIENT_BLOCK. */
stage_status cuda_orient_plain_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream);

/* scratch.histograms -> oriented, its count, and scratch.order. Upright: one feature a keypoint, histograms unread. */
stage_status cuda_orient_peaks_launch(const cuda_frame_view *view, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
