/*
 * Launchers of the keypoint stages, in the order of a frame. All pointers are device memory unless said otherwise.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_KEYPOINTS_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_KEYPOINTS_CUDA_H

#include "cuda/keypoints/frame_view.h"
#include "cuda/runtime/device.h"
#include "stages/refine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One octave. dog: DoG levels 0..S+1 with the octave's stride and level_floats, as the uber kernel stores them; null:
   differences are taken on the fly from the Gaussian levels. */
typedef struct extrema_octave {
  octave_view octave;
  const float *dog;
  mask_view candidates;
} extrema_octave;

/* Up to OCTAVES_MAX octaves in one launch. params: scales, border, candidate_above and extremum_ties are read. */
typedef struct extrema_launch_args {
  const extrema_octave *octaves; /* host memory, read during the call only */
  int32_t octave_count;
  sift_params params;
  /* pictures of one size, with planes and masks group_stride_bytes (a multiple of 256) apart; 0 or 1: one. More:
   * S = 3 only, without stored DoG */
  int32_t group;
  size_t group_stride_bytes;
} extrema_launch_args;

stage_status extrema_launch(const extrema_launch_args *args, cuda_stream stream);

/* Refinement on the device: candidate masks of all octaves -> settled masks, and these -> the keypoint list. */

/* Rebalanced: a block's candidates are compacted into a dense list first, so that every lane of a warp has one to follow.
   Plain: the lane that finds a candidate in its mask word follows it. */
typedef enum cuda_refine_variant { CUDA_REFINE_REBALANCED = 0, CUDA_REFINE_PLAIN = 1 } cuda_refine_variant;

/* candidate_words -> settled_words, which the reset has cleared, scratch.settled_tiles, scratch.candidate_count. As
   refine_ref, octave by octave; with view->filtered, samples whose keypoint the filter drops stay clear. */
stage_status cuda_refine_launch(const cuda_frame_view *view, cuda_refine_variant variant, cuda_stream stream);

/* settled_words and scratch.settled_tiles -> keypoints, count included. As locate_ref, octave by octave. */
stage_status cuda_locate_launch(const cuda_frame_view *view, cuda_stream stream);

/* Launchers for tiles. Between search and refinement: keeps only candidates of the tile itself, or the one that is
 * followed. At the end: copies the lists to memory that the host reads. */

/* candidate_words, every word of them: bits outside view->part.search are cleared; with a seed all are, and its bit is
 * set. Requires view->part.tiled; with a seed, candidate_words may be uninitialised. */
stage_status cuda_tile_candidates_launch(const cuda_frame_view *view, cuda_stream stream);

/* A tile's counts, beyond any capacity. */
typedef struct cuda_tile_counts {
  uint32_t candidates, keypoints, features, escaped;
} cuda_tile_counts;

/* Destinations of a tile's lists, as device addresses: mapped host memory. Capacities are the view's; counts of the
 * lists are not written. counts: 16-byte aligned. */
typedef struct cuda_tile_lists {
  keypoint_list keypoints;
  feature_list features;
  affine_shape *shapes; /* shapes of the keypoints, if the view has shapes */
  escaped_candidate *escaped;
  cuda_tile_counts *counts;
} cuda_tile_lists;

/* Copies keypoints, their shapes, features and escaped candidates, up to the capacities, and their counts. */
stage_status cuda_tile_lists_launch(const cuda_frame_view *view, const cuda_tile_lists *lists, cuda_stream stream);

/* Orientation on the device: keypoints -> features in the order of the list, then by angle. */

/* One warp per keypoint, which adds its votes by integer atomics on interleaved copies of the histogram in shared
 * memory, or by the warp-level histogram without atomics (Li, Jia, Zhang, ICPADS 2017); or, for comparison, a
 * thread or one block per keypoint, testing every sample of the window's square (on the patches of shapes: as the
 * first). */
typedef enum cuda_orient_variant {
  CUDA_ORIENT_ATOMIC = 0,
  CUDA_ORIENT_WARP_HISTOGRAM = 1,
  CUDA_ORIENT_THREAD = 2,
  CUDA_ORIENT_BLOCK = 3
} cuda_orient_variant;

/* keypoints -> oriented, count included, and scratch.order for describing that list. As orient_ref with first_keypoint
 * 0. */
stage_status cuda_orient_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream);

/* The two steps of orientation: histograms, and the features from their peaks. */

/* keypoints -> scratch.histograms, by the variants CUDA_ORIENT_THREAD and CUDA_ORIENT_BLOCK. */
stage_status cuda_orient_plain_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream);

/* scratch.histograms -> oriented, its count, and scratch.order. Upright: one feature a keypoint, histograms unread. */
stage_status cuda_orient_peaks_launch(const cuda_frame_view *view, cuda_stream stream);

/* Descriptors on the device. */

/* How a warp adds its votes into the 360 bins. */
typedef enum cuda_describe_variant {
  CUDA_DESCRIBE_ATOMIC4 = 0,   /* integer atomics on 4 interleaved copies in shared memory; with a patch on 1 */
  CUDA_DESCRIBE_ATOMIC2 = 1,   /* on 2 copies */
  CUDA_DESCRIBE_MULTI_KEY = 2, /* no atomics: multi-key reduction of each vote (Li, Jia, Zhang, ICPADS 2017) */
  CUDA_DESCRIBE_VARIANTS
} cuda_describe_variant;

/* features (all within the capacity) -> outputs->descriptors, at the feature's index: 128 uint8_t or float each, as
 * params.descriptor_float says; device memory or mapped host memory. outputs: device memory. scratch.order holds the
 * list's order of work: orientation, selection or cuda_work_order_launch made it. As describe_ref with first_feature
 * 0. */
stage_status cuda_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                  const cuda_outputs *outputs, cuda_stream stream);

/* features -> scratch.order, for a list made by neither orientation nor selection. */
stage_status cuda_work_order_launch(const cuda_frame_view *view, cuda_stream stream);

/* Affine shape on the device: a shape for each keypoint, and descriptors on the patches that shapes warp.
 * (cuda_orient_launch computes orientations on patches, cuda_results_launch the frames.) */

/* keypoints (all within the capacity) -> shapes. Once a frame, because it uses the frame's tickets. Equals
 * affine_shape_run with affine_moments_ref. */
stage_status cuda_affine_shape_launch(const cuda_frame_view *view, cuda_stream stream);

/* Like cuda_describe_launch, which calls it, for a view with shapes. Equals affine_describe_run with the references. */
stage_status cuda_affine_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                         const cuda_outputs *outputs, cuda_stream stream);

/* Selection on the device by the rules of stages/select.h: the strongest, the largest, or whole levels. */

/* oriented -> features (two lists), count included, and scratch.order for describing that list. As select_ref without
   descriptors; over view->grid, where it has columns. view->max_features is not 0. */
stage_status cuda_select_launch(const cuda_frame_view *view, cuda_stream stream);

/* Selection over a grid on the device: computes keys with which plain selection chooses by the grid rule of
 * stages/select.h. */

/* oriented -> scratch.select_keys: the largest key for every feature of a rank kept whole, its own key plus 1 in the
 * last rank reached, 0 for all others. Does nothing if no feature is dropped. view->grid has columns. */
stage_status cuda_grid_keys_launch(const cuda_frame_view *view, cuda_stream stream);

/* The end of a frame on the device: public keypoint records and counts into memory the host reads. */

/* True counts, beyond any capacity. */
typedef struct cuda_frame_counts {
  uint32_t candidates, keypoints, oriented, features;
} cuda_frame_counts;

/* Writes the records of all features within the list's capacity, which the outputs must hold, and the counts. outputs:
 * device memory. outputs->records and counts (both 16-byte aligned): device memory or mapped host memory. In a group
 * each picture has view->features.capacity records and one counts. */
stage_status cuda_results_launch(const cuda_frame_view *view, const cuda_outputs *outputs, cuda_frame_counts *counts,
                                 cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
