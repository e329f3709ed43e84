/*
 * The reference backend: every stage in plain C, written for reading and comparison, never tuned.
 */
#ifndef HARTSIFT_CPU_REF_STAGES_REF_H
#define HARTSIFT_CPU_REF_STAGES_REF_H

#include "stages/ops.h"
#include "stages/two_view.h"

stage_status base_ref(stage_queue *queue, const base_args *args);
stage_status blur_ref(stage_queue *queue, const blur_args *args);
stage_status halve_ref(stage_queue *queue, const halve_args *args);
stage_status extrema_ref(stage_queue *queue, const extrema_args *args);
stage_status refine_ref(stage_queue *queue, const refine_args *args);
stage_status locate_ref(stage_queue *queue, const locate_args *args);
/* is_extremum_ref: whether |D| of a sample exceeds the threshold, and D is above all neighbours if positive, below all
 * if negative. The other function appends the keypoint of a settled sample if mask and region keep it. */
bool is_extremum_ref(const octave_view *octave, const sift_params *params, int32_t level, int32_t x, int32_t y);
void locate_one_ref(const locate_args *args, int32_t level, int32_t x, int32_t y);
stage_status detect_ref(stage_queue *queue, const detect_args *args);
size_t detect_work_bytes_ref(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity);
stage_status orient_ref(stage_queue *queue, const orient_args *args);
stage_status select_ref(stage_queue *queue, const select_args *args);
stage_status describe_ref(stage_queue *queue, const describe_args *args);
affine_moments affine_moments_ref(const float *patch, size_t stride);
void affine_patch_ref(const plane_view *level, const patch_map *map, const patch_rows *read, int32_t side,
                      size_t stride, float *out, struct window_prefetch *prefetch);
stage_status match_ref(stage_queue *queue, const match_args *args);
bool match_work_bytes_ref(const match_args *args, int32_t threads, size_t *bytes);
size_t squares_work_bytes_ref(const squares_args *args);
stage_status pack_second_ref(stage_queue *queue, const squares_args *args);
stage_status squares_ref(const squares_args *args);

extern const two_view_ops two_view_ops_ref;

#endif
