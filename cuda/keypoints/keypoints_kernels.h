/*
 * The kernels of the keypoint stages: their launches, arguments and tables, for the CUDA code and for the launchers in
 * C.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_KEYPOINTS_KERNELS_H
#define HARTSIFT_CUDA_KEYPOINTS_KEYPOINTS_KERNELS_H

#include "cuda/keypoints/keypoints_cuda.h"
#include "cuda/runtime/launch.h"

/* Affine shapes: warps per block, blocks per multiprocessor. */
enum { SHAPE_WARPS = 4, SHAPE_BLOCKS = 8 };

/* Descriptors on patches, and others: warps per block. */
enum { WARPED_WARPS = 4, DESCRIBE_WARPS = 4 };

#define AFFINE_KERNELS(K)                                                                                              \
  K(affine_cuda, affine_shape_kernel, cuda_frame_view)                                                                 \
  K(affine_cuda, affine_shape_group_kernel, cuda_frame_view)                                                           \
  K(affine_cuda, affine_long_shape_kernel, cuda_frame_view)                                                            \
  K(affine_cuda, affine_long_shape_group_kernel, cuda_frame_view)                                                      \
  K(affine_cuda, affine_describe_kernel, cuda_frame_view, const cuda_outputs *)                                        \
  K(affine_cuda, affine_describe_pooled_kernel, cuda_frame_view, const cuda_outputs *)                                 \
  K(affine_cuda, affine_describe_group_kernel, cuda_frame_view, const cuda_outputs *)                                  \
  K(affine_cuda, affine_describe_pooled_group_kernel, cuda_frame_view, const cuda_outputs *)                           \
  K(affine_cuda, affine_describe_multi_key_kernel, cuda_frame_view, const cuda_outputs *)                              \
  K(affine_cuda, affine_describe_multi_key_pooled_kernel, cuda_frame_view, const cuda_outputs *)

#define DESCRIBE_KERNELS(K)                                                                                            \
  K(describe_cuda, describe_atomic4_kernel, cuda_frame_view, const cuda_outputs *)                                     \
  K(describe_cuda, describe_atomic4_pooled_kernel, cuda_frame_view, const cuda_outputs *)                              \
  K(describe_cuda, describe_atomic4_group_kernel, cuda_frame_view, const cuda_outputs *)                               \
  K(describe_cuda, describe_atomic4_pooled_group_kernel, cuda_frame_view, const cuda_outputs *)                        \
  K(describe_cuda, describe_atomic2_kernel, cuda_frame_view, const cuda_outputs *)                                     \
  K(describe_cuda, describe_atomic2_pooled_kernel, cuda_frame_view, const cuda_outputs *)                              \
  K(describe_cuda, describe_multi_key_kernel, cuda_frame_view, const cuda_outputs *)                                   \
  K(describe_cuda, describe_multi_key_pooled_kernel, cuda_frame_view, const cuda_outputs *)                            \
  K(describe_cuda, work_count_kernel, cuda_frame_view)                                                                 \
  K(describe_cuda, work_scatter_kernel, cuda_frame_view)

/* The extremum search. */

enum { MARCH_LEVELS = 3, LANE_COLUMNS = 4, STRIP_COLUMNS = 32 * LANE_COLUMNS };

/* One octave of a launch. */
typedef struct extrema_job {
  const float *planes; /* Gaussian levels 0..S+2, or DoG levels 0..S+1 */
  uint32_t *words;
  size_t plane_floats;
  int32_t stride, width, height, words_per_row;
  int32_t first_block; /* number of the first block of this octave */
  int32_t rows;        /* rows that a warp processes, or a block in the plain kernel */
} extrema_job;

typedef struct extrema_params {
  extrema_job jobs[OCTAVES_MAX];
  int32_t job_count, scales, border;
  float above; /* threshold of a positive difference; not negative */
} extrema_params;

#define EXTREMA_KERNELS(K)                                                                                             \
  K(extrema_cuda, extrema_march_kernel, extrema_params, size_t)                                                        \
  K(extrema_cuda, extrema_march_ties_kernel, extrema_params, size_t)                                                   \
  K(extrema_cuda, extrema_march_stored_kernel, extrema_params, size_t)                                                 \
  K(extrema_cuda, extrema_march_stored_ties_kernel, extrema_params, size_t)                                            \
  K(extrema_cuda, extrema_march_group_kernel, extrema_params, size_t)                                                  \
  K(extrema_cuda, extrema_march_ties_group_kernel, extrema_params, size_t)                                             \
  K(extrema_cuda, extrema_plain_kernel, extrema_params)                                                                \
  K(extrema_cuda, extrema_plain_ties_kernel, extrema_params)                                                           \
  K(extrema_cuda, extrema_plain_stored_kernel, extrema_params)                                                         \
  K(extrema_cuda, extrema_plain_stored_ties_kernel, extrema_params)

/* Tiles and results. */
enum { TILE_THREADS = 256, RESULTS_THREADS = 128 };

#define FRAME_KERNELS(K)                                                                                               \
  K(frame_cuda, tile_candidates_kernel, cuda_frame_view)                                                               \
  K(frame_cuda, tile_lists_kernel, cuda_frame_view, cuda_tile_lists)                                                   \
  K(frame_cuda, results_kernel, cuda_frame_view, const cuda_outputs *, cuda_frame_counts *)                            \
  K(frame_cuda, results_group_kernel, cuda_frame_view, const cuda_outputs *, cuda_frame_counts *)

/* Orientation. PLAIN: threads of a block with one thread per keypoint; BLOCK: of a block for one keypoint, or for one
 * a warp. */
enum {
  ORIENT_WARPS = 4, /* per block */
  ORIENT_PLAIN_THREADS = 64,
  ORIENT_BLOCK_THREADS = 128,
  PEAK_LANES = 4,
  PEAK_THREADS = 128,
  PEAK_KEYPOINTS = PEAK_THREADS / PEAK_LANES
};

#define ORIENT_KERNELS(K)                                                                                              \
  K(orient_cuda, orient_atomic_lowe_kernel, cuda_frame_view)                                                           \
  K(orient_cuda, orient_atomic_lowe_group_kernel, cuda_frame_view)                                                     \
  K(orient_cuda, orient_atomic_lowe_patch_kernel, cuda_frame_view)                                                     \
  K(orient_cuda, orient_atomic_lowe_patch_group_kernel, cuda_frame_view)                                               \
  K(orient_cuda, orient_atomic_opencv_kernel, cuda_frame_view)                                                         \
  K(orient_cuda, orient_atomic_opencv_group_kernel, cuda_frame_view)                                                   \
  K(orient_cuda, orient_atomic_opencv_patch_kernel, cuda_frame_view)                                                   \
  K(orient_cuda, orient_atomic_opencv_patch_group_kernel, cuda_frame_view)                                             \
  K(orient_cuda, orient_atomic_vlfeat_kernel, cuda_frame_view)                                                         \
  K(orient_cuda, orient_atomic_vlfeat_group_kernel, cuda_frame_view)                                                   \
  K(orient_cuda, orient_atomic_vlfeat_patch_kernel, cuda_frame_view)                                                   \
  K(orient_cuda, orient_atomic_vlfeat_patch_group_kernel, cuda_frame_view)                                             \
  K(orient_cuda, orient_warp_histogram_lowe_kernel, cuda_frame_view)                                                   \
  K(orient_cuda, orient_warp_histogram_lowe_patch_kernel, cuda_frame_view)                                             \
  K(orient_cuda, orient_warp_histogram_opencv_kernel, cuda_frame_view)                                                 \
  K(orient_cuda, orient_warp_histogram_opencv_patch_kernel, cuda_frame_view)                                           \
  K(orient_cuda, orient_warp_histogram_vlfeat_kernel, cuda_frame_view)                                                 \
  K(orient_cuda, orient_warp_histogram_vlfeat_patch_kernel, cuda_frame_view)                                           \
  K(orient_cuda, orient_thread_per_keypoint_kernel, cuda_frame_view)                                                   \
  K(orient_cuda, orient_warp_per_keypoint_kernel, cuda_frame_view)                                                     \
  K(orient_cuda, orient_block_per_keypoint_kernel, cuda_frame_view)

#define PEAK_KERNELS(K)                                                                                                \
  K(orient_peaks, orient_peak_kernel, cuda_frame_view)                                                                 \
  K(orient_peaks, orient_peak_group_kernel, cuda_frame_view)                                                           \
  K(orient_peaks, orient_emit_kernel, cuda_frame_view)                                                                 \
  K(orient_peaks, orient_emit_group_kernel, cuda_frame_view)

/* Refinement. */

enum { REFINE_THREADS = 128 };
/* Blocks are small for the same reason as in locating: many are resident. */
enum { FOLLOW_THREADS = 64, FOLLOW_QUADS = 4, FOLLOW_LIST = 1024 };
enum {
  LOCATE_THREADS = 64,
  LOCATE_QUADS = MASK_TILE_WORDS / 4 / LOCATE_THREADS, /* mask words of a thread, in vectors of four words */
  LOCATE_LIST = 1024
};

#define REFINE_KERNELS(K)                                                                                              \
  K(refine_cuda, refine_follow_kernel, cuda_frame_view)                                                                \
  K(refine_cuda, refine_follow_group_kernel, cuda_frame_view)                                                          \
  K(refine_cuda, refine_plain_kernel, cuda_frame_view)                                                                 \
  K(refine_cuda, locate_tile_kernel, cuda_frame_view)                                                                  \
  K(refine_cuda, locate_tile_group_kernel, cuda_frame_view)

/* Selection. */
enum { GRID_THREADS = 256 };

HS_INLINE int32_t select_passes(const cuda_frame_view *v) { return v->selection == SELECT_LEVELS ? 1 : SELECT_PASSES; }

#define SELECT_KERNELS(K)                                                                                              \
  K(select_cuda, grid_cell_kernel, cuda_frame_view)                                                                    \
  K(select_cuda, grid_rounds_kernel, cuda_frame_view)                                                                  \
  K(select_cuda, grid_list_kernel, cuda_frame_view)                                                                    \
  K(select_cuda, grid_rank_kernel, cuda_frame_view)                                                                    \
  K(select_cuda, select_digit_kernel, cuda_frame_view, int32_t)                                                        \
  K(select_cuda, select_count_kernel, cuda_frame_view)                                                                 \
  K(select_cuda, select_emit_kernel, cuda_frame_view)

#endif
