/*
 * One frame on the CPU, stage after stage, and what its other ways share with it: the hybrid engine, selection over a grid,
 * user keypoints.
 */
#ifndef HARTSIFT_FRAME_RUN_FRAME_H
#define HARTSIFT_FRAME_RUN_FRAME_H

#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"

/* Runs the frame; *result holds its lists until the context's next call. A list that overflowed is grown and the
   frame repeated, so the result never depends on a capacity. */
hs_status run_frame(hs_context *context, const frame_request *request, workspace *result);

/* engine.run of the CPU. */
hs_status cpu_engine_run(hs_context *context, const frame_request *request, const frame_placement *placement,
                         frame_result *result);

/* Makes the Gaussian levels 0..S of the first `octaves` octaves, 1 or more; *result holds them until the context's next
   call. Statuses: as run_frame. */
hs_status run_pyramid(hs_context *context, const frame_request *request, int32_t octaves, workspace *result);

/* One frame in tiles, within max_memory_bytes: the lists of the untiled frame, to the byte. TILES.md has the way. */

/* Fills the lists of the workspace, and its order where features stand in another one. The context's plan is a tiled
   one. Where a list has no room the counts say how much there should be, and nothing else in the lists is
   defined. *candidates: as detect_args has them. */
stage_status tiled_frame_run(hs_context *context, const frame_request *request, workspace *lists, uint64_t *candidates);

/* ------------------------------------------------------------------ hybrid: GPU and CPU together (gpu_cpu_split.c)

   The GPU computes the large octaves and their features. As soon as level 0 of the next octave exists it is copied to the
   host, and the CPU computes the small octaves meanwhile (HartSift's heterogeneous pyramid, Li, Jia, Zhang, ICPADS 2017).
   The bytes are the same for every split. */

/* engine.run and engine.report of the hybrid engine. Frames with pictures or results in device
   memory, and user keypoints, run on the device alone. Statuses: as engine_split and run_frame. */
hs_status gpu_cpu_split_run(hs_context *context, const frame_request *request, const frame_placement *placement,
                            frame_result *result);
size_t gpu_cpu_split_report(const hs_context *context, char *text, size_t bytes);

/* Selection among finished features, in place: what stages/select.h does for lists within a frame. Keeps the `most` best
   of count features in their order and returns how many those are: by response or by sigma, the larger first, ties by
   the order. */
uint32_t select_records(const feature_records *records, uint32_t count, uint32_t most, hs_selection selection);

/* ------------------------------------------------------------------ selection over a grid (select_best.c)

   options.grid_columns and grid_rows: max_features spread over the cells of a grid, by the rule of stages/select.h. */

/* Reserves the host memory for ranking so many features. Statuses: HS_ERR_MEMORY, HS_ERR_LIMIT. */
hs_status grid_choice_reserve(hs_context *context, uint32_t features);

/* Selection among the lists of a frame, as stage_ops.select does it; room for *args->features.count was reserved. */
void grid_choice_lists(hs_context *context, const select_args *args, int32_t width, int32_t height);

/* Selection among finished features, in place; *count changes. Does nothing where options_use_grid is false. Statuses: as
   grid_choice_reserve. */
hs_status grid_choice_records(hs_context *context, const feature_records *records, int32_t width, int32_t height,
                              uint32_t *count);

/* The same for what a device frame left in the context's pinned memory. */
hs_status grid_choice_result(hs_context *context, const frame_request *request, frame_result *result);

/* Selection among the lists of a frame on the CPU. */

/* With max_features: keeps those features of the lists that it asks for. The first `described` have their descriptors. */
stage_status select_features(hs_context *context, const frame_request *request, workspace *lists, uint32_t described);

/* ------------------------------------------------------------------ user keypoints (user_keypoints.c) */

/* Where a user keypoint is described. */
typedef struct user_position {
  int32_t octave_index; /* 0..octave_count-1, or -1: it cannot be described */
  int32_t level;        /* 1..S */
  float sigma;          /* what it is described with, in pixels */
} user_position;

/* Octave and level of a keypoint: the ones it has (level 1..S), or the ones nearest to its sigma, for level 0, for a
   level that the pyramid does not have, and for one in which its window would be too small or too large. sigma: the
   keypoint's, or the nearest for which there is a window. Not describable: a number is not finite, sigma not above 0,
   the centre outside the picture, or the picture too small for an octave. A coarse octave may end up to a sample before
   the picture does; a window about a centre beyond its end votes with the samples that there are. */
user_position user_position_of(const pyramid_geometry *geometry, const sift_params *params, const source_view *picture,
                               const hs_keypoint *keypoint);

/* A finite angle in [0, 2 pi); one that is there already keeps its bits. */
float user_angle(float radians);

/* Octaves that must be built for the keypoints given; writes their statuses. */
int32_t user_octaves_needed(const pyramid_geometry *geometry, const hs_context *context, const frame_request *request);

/* Appends octave o's (or EVERY_OCTAVE's) user keypoints, in the order given: those that bring their orientation
   with a feature each, or (oriented false) those whose orientation is to be computed, keypoints only. Of *w only the
   lists and sources are used. */
enum { EVERY_OCTAVE = -1 };
void user_append(const pyramid_geometry *geometry, const hs_context *context, const frame_request *request, int32_t o,
                 bool oriented, workspace *w);

#endif
