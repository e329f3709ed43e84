/*
 * The end of a frame on the device: public keypoint records and counts into memory the host reads.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_RESULTS_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_RESULTS_CUDA_H

#include "cuda/keypoints/frame_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One feature as the library hands it out; the layout of hs_keypoint, 24 bytes. */
typedef struct cuda_feature_record {
  float x, y, sigma, orientation, response;
  int16_t octave, level;
} cuda_feature_record;

/* True counts, beyond any capacity. */
typedef struct cuda_frame_counts {
  uint32_t candidates, keypoints, oriented, features;
} cuda_frame_counts;

/* Writes the records of all features within both capacities, and the counts. records (16-byte aligned, or null with
   capacity 0) and counts (16-byte aligned): device memory or mapped host memory. In a group each picture has
   view->features.capacity records and one counts. */
stage_status cuda_results_launch(const cuda_frame_view *view, cuda_feature_record *records, uint32_t capacity,
                                 cuda_frame_counts *counts, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
