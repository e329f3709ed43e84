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

/* One octave. dog: DoG levels 0..S+1 with the octave's stride and level_floats, as the uber kernel stores them.
   Null: differences are computed from the Gaussian levels when needed. */
typedef struct extrema_octave {
  octave_view octave;
  const float *dog;
  mask_view candidates;
} extrema_octave;

/* Up to OCTAVES_MAX octaves in one launch. Of params, scales, border, candidate_above and extremum_ties are read. */
typedef struct extrema_launch_args {
  const extrema_octave *octaves; /* host memory, read during the call only */
  int32_t octave_count;
  sift_params params;
  /* number of pictures of one size, whose planes and masks are group_stride_bytes (a multiple of 256) apart; 0 or
   * 1: one picture. More are allowed only for S = 3 without stored DoG */
  int32_t group;
  size_t group_stride_bytes;
} extrema_launch_args;

stage_status extrema_launch(const extrema_launch_args *args, cuda_stream stream);

/* Refinement on the device: from candidate masks of all octaves to settled masks, and from these to the keypoint
 * list. */

/* Rebalanced: a block's candidates are first compacted into a dense list, so that every lane of a warp has one to
   follow. Plain: the lane that finds a candidate in its mask word follows it. */
typedef enum cuda_refine_variant { CUDA_REFINE_REBALANCED = 0, CUDA_REFINE_PLAIN = 1 } cuda_refine_variant;

/* Input: candidate_words. Output: settled_words (which the reset has cleared), scratch.settled_tiles and
   scratch.candidate_count. As refine_ref, octave by octave. With view->filtered, samples whose keypoint the filter
   drops stay clear. */
stage_status cuda_refine_launch(const cuda_frame_view *view, cuda_refine_variant variant, cuda_stream stream);

/* Input: settled_words and scratch.settled_tiles. Output: keypoints and their count. As locate_ref, octave by
 * octave. */
stage_status cuda_locate_launch(const cuda_frame_view *view, cuda_stream stream);

/* Launchers for tiles. The first runs between search and refinement: it keeps only the tile's candidates, or the
 * one to follow. The second runs at the end: it copies the lists to memory that the host reads. */

/* Writes every word of candidate_words: clears bits outside view->part.search. With a seed, clears all bits and
 * sets the seed's; candidate_words may then be uninitialised. Requires view->part.tiled. */
stage_status cuda_tile_candidates_launch(const cuda_frame_view *view, cuda_stream stream);

/* Counts of a tile; they continue past the capacities. */
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

/* ATOMIC and WARP_HISTOGRAM: one warp per keypoint adds its votes, by integer atomics on interleaved copies of the
 * histogram in shared memory, or by the warp-level histogram without atomics (Li, Jia, Zhang, ICPADS 2017). THREAD,
 * WARP and BLOCK compare granularities: a thread, a warp or a block per keypoint tests every sample of the window's
 * square and has one copy of the histogram, without tickets; on patches of shapes they run as ATOMIC. */
typedef enum cuda_orient_variant {
  CUDA_ORIENT_ATOMIC = 0,
  CUDA_ORIENT_WARP_HISTOGRAM = 1,
  CUDA_ORIENT_THREAD = 2,
  CUDA_ORIENT_WARP = 3,
  CUDA_ORIENT_BLOCK = 4
} cuda_orient_variant;

/* Input: keypoints. Output: oriented, its count, and scratch.order for describing that list. As orient_ref with
 * first_keypoint 0. */
stage_status cuda_orient_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream);

/* The two steps of orientation: histograms, and the features from their peaks. */

/* Input: keypoints. Output: scratch.histograms. For the variants from CUDA_ORIENT_THREAD on. */
stage_status cuda_orient_plain_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream);

/* Input: scratch.histograms. Output: oriented, its count, and scratch.order. Upright: one feature per keypoint, and
 * histograms are not read. */
stage_status cuda_orient_peaks_launch(const cuda_frame_view *view, cuda_stream stream);

/* Descriptors on the device. */

/* How a warp adds its votes into the 360 bins. */
typedef enum cuda_describe_variant {
  CUDA_DESCRIBE_ATOMIC4 = 0,   /* integer atomics on 4 interleaved copies in shared memory; with patches on 1 copy */
  CUDA_DESCRIBE_ATOMIC2 = 1,   /* integer atomics on 2 copies */
  CUDA_DESCRIBE_MULTI_KEY = 2, /* no atomics: multi-key reduction of each vote (Li, Jia, Zhang, ICPADS 2017) */
  CUDA_DESCRIBE_VARIANTS
} cuda_describe_variant;

/* Input: features (all within the capacity). Output: outputs->descriptors, at the feature's index: 128 uint8_t or
 * float each, as params.descriptor_float says; device memory or mapped host memory. outputs: device memory.
 * scratch.order must hold the order of work of this list, as orientation, selection or cuda_work_order_launch makes
 * it. As describe_ref with first_feature 0. */
stage_status cuda_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                  const cuda_outputs *outputs, cuda_stream stream);

/* Input: features. Output: scratch.order. For a list that neither orientation nor selection made. */
stage_status cuda_work_order_launch(const cuda_frame_view *view, cuda_stream stream);

/* Affine shape on the device: a shape for each keypoint, and descriptors on the patches that shapes warp.
 * (cuda_orient_launch computes orientations on patches, cuda_results_launch the frames.) */

/* Input: keypoints (all within the capacity). Output: shapes. Once per frame, because it uses the frame's tickets.
 * Equals affine_shape_run with affine_moments_ref. */
stage_status cuda_affine_shape_launch(const cuda_frame_view *view, cuda_stream stream);

/* Does what cuda_describe_launch does, for a view with shapes; that function calls it. Equals affine_describe_run
 * with the references. */
stage_status cuda_affine_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                         const cuda_outputs *outputs, cuda_stream stream);

/* Selection on the device by the rules of stages/select.h: the strongest, the largest, or complete levels. */

/* Input: oriented. Output: features (a second list), its count, and scratch.order for describing that list. As
   select_ref without descriptors; over view->grid if it has columns. view->max_features must not be 0. */
stage_status cuda_select_launch(const cuda_frame_view *view, cuda_stream stream);

/* Selection over a grid on the device: computes keys with which plain selection chooses by the grid rule of
 * stages/select.h. */

/* Input: oriented. Output: scratch.select_keys: the largest key for every feature of a rank that is kept
 * completely; in the last rank reached, the feature's key plus 1; otherwise 0. Does nothing if no feature is
 * dropped. view->grid must have columns. */
stage_status cuda_grid_keys_launch(const cuda_frame_view *view, cuda_stream stream);

/* The end of a frame on the device: public keypoint records and counts into memory the host reads. */

/* Counts of a frame; they continue past the capacities. */
typedef struct cuda_frame_counts {
  uint32_t candidates, keypoints, oriented, features;
} cuda_frame_counts;

/* Writes the counts, and the records of all features within the list's capacity, which the outputs must hold.
 * outputs: device memory. outputs->records and counts (both 16-byte aligned): device memory or mapped host memory.
 * In a group each picture has view->features.capacity records and one counts. */
stage_status cuda_results_launch(const cuda_frame_view *view, const cuda_outputs *outputs, cuda_frame_counts *counts,
                                 cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
