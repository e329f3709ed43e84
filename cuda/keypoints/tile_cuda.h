/*
 * What only tiles need. Between search and refinement: candidates of the tile itself alone stay, or the one that is followed
 * on. At the end: the lists into memory that the host reads.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_TILE_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_TILE_CUDA_H

#include "cuda/keypoints/frame_view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* candidate_words, every word of them: bits outside view->part.search are cleared; with a seed all are, and its own is set.
   view->part.tiled; candidate_words need not hold anything before where there is a seed. */
stage_status cuda_tile_candidates_launch(const cuda_frame_view *view, cuda_stream stream);

/* What a tile tells besides its features: counts, beyond any capacity. */
typedef struct cuda_tile_counts {
  uint32_t candidates, keypoints, features, strays;
} cuda_tile_counts;

/* Where a tile's lists go, as addresses of the device: mapped host memory. Capacities are those of the view's lists; counts
   of the lists are not written. counts: 16-byte aligned. */
typedef struct cuda_tile_lists {
  keypoint_list keypoints;
  feature_list features;
  affine_shape *shapes; /* of the keypoints, where the view has them */
  detect_stray *strays;
  cuda_tile_counts *counts;
} cuda_tile_lists;

/* Copies keypoints, their shapes, features and strays, as far as the capacities go, and their counts. */
stage_status cuda_tile_lists_launch(const cuda_frame_view *view, const cuda_tile_lists *lists, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
