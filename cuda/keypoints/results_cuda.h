/*
 * The end of a frame on the device: public keypoint records and counts into memory the host reads.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_RESULTS_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_RESULTS_CUDA_H

#include "cuda/keypoints/frame_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True counts, beyond any capacity. */
typedef struct cuda_frame_counts {
  uint32_t candidates, keypoints, oriented, features;
} cuda_frame_counts;

/* Writes the records of all features within the list's capacity, for which there must be room, and the counts. outputs:
   device memory. outputs->records and counts (both 16-byte aligned): device memory or mapped host memory. In a group each
   picture has view->features.capacity records and one counts. */
stage_status cuda_results_launch(const cuda_frame_view *view, const cuda_outputs *outputs, cuda_frame_counts *counts,
                                 cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
