/*
 * Runs one frame on the CPU. Also contains parts that other kinds of frames share: the hybrid engine, selection over a
 * grid, user keypoints.
 */
#ifndef HARTSIFT_FRAME_RUN_FRAME_H
#define HARTSIFT_FRAME_RUN_FRAME_H

#include "os/os_threads.h"
#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"

/* Runs the frame; *result has its lists until the context's next call. If a list overflows, it is grown and the frame
   is repeated, so the result never depends on a capacity. */
hs_status run_frame(hs_context *context, const frame_request *request, workspace *result);

/* Function engine.run of the CPU. */
hs_status cpu_engine_run(hs_context *context, const frame_request *request, const frame_placement *placement,
                         frame_result *result);

/* Makes the Gaussian levels 0..S of the first `octaves` octaves (1 or more); *result has them until the context's next
   call. Statuses: as run_frame. */
hs_status run_pyramid(hs_context *context, const frame_request *request, int32_t octaves, workspace *result);

/* Runs one frame in tiles, within max_memory_bytes. Its lists equal those of the untiled frame byte for byte
   (TILES.md). */

/* Fills the lists of the workspace, and their order if the features are not in the defined order. The context's plan
   must be a tiled one. If a list is too short, the counts are the capacities that the lists need, and the other
   contents are undefined. *candidates: as in detect_args. */
stage_status tiled_frame_run(hs_context *context, const frame_request *request, workspace *lists, uint64_t *candidates);

/* ------------------------------------------------------------------ hybrid: GPU and CPU together (gpu_cpu_split.c)

   The GPU computes the large octaves and their features. As soon as level 0 of the next octave exists, it is copied to
   the host, and the CPU computes the small octaves in the meantime (HartSift's heterogeneous pyramid, Li, Jia, Zhang,
   ICPADS 2017). The result has the same bytes for every split. */

enum { SPLITS_KEPT = 16, SPLIT_TRIALS = 9 };

/* Returns how many seconds a split saves beyond doubt: the difference of the medians of SPLIT_TRIALS times of the GPU
   alone and of the split, less the larger of their interquartile ranges. Not positive: it is not chosen. */
double split_gain(const double *whole, const double *divided);

/* The split of a frame's octaves that was measured for pictures of one size. */
typedef struct kept_split {
  int32_t width, height, split; /* split 0: the entry is unused */
} kept_split;

/* context->engine_shared: the measured splits of a context. */
typedef struct split_table {
  pthread_mutex_t lock;
  kept_split kept[SPLITS_KEPT];
  int32_t next; /* index of the entry that is replaced next */
} split_table;

/* Functions engine.open and engine.close of the hybrid engine: those of the device, and the measured splits. A worker
   uses its owner's splits. */
hs_status gpu_cpu_split_open(hs_context *context, const hs_context *owner, const char *variant, char *message,
                             size_t message_bytes);
void gpu_cpu_split_close(hs_context *context);

/* Functions engine.run and engine.report of the hybrid engine. Frames with pictures or results in device memory, and
   frames with user keypoints, run on the device alone. Statuses: as engine_split and run_frame. */
hs_status gpu_cpu_split_run(hs_context *context, const frame_request *request, const frame_placement *placement,
                            frame_result *result);
size_t gpu_cpu_split_report(const hs_context *context, char *text, size_t bytes);

/* Selects among finished features, in place, as stages/select.h does within a frame. Keeps the `most` best of `count`
   features in their order and returns the number of features kept. Larger responses or sigmas are better; among equals,
   earlier features are. */
uint32_t select_records(const feature_records *records, uint32_t count, uint32_t most, hs_selection selection);

/* ------------------------------------------------------------------ selection over a grid (select_best.c)

   options.grid_columns and grid_rows spread max_features over the cells of a grid, by the rule of stages/select.h. */

/* Reserves host memory for ranking `features` features. Statuses: HS_ERR_MEMORY, HS_ERR_LIMIT. */
hs_status grid_choice_reserve(hs_context *context, uint32_t features);

/* Selects among the lists of a frame, as stage_ops.select. Memory for *args->features.count features must be
   reserved. */
void grid_choice_lists(hs_context *context, const select_args *args, int32_t width, int32_t height);

/* Selects among finished features, in place; changes *count. Does nothing if options_use_grid is false. Statuses: as
   grid_choice_reserve. */
hs_status grid_choice_records(hs_context *context, const feature_records *records, int32_t width, int32_t height,
                              uint32_t *count);

/* Like grid_choice_records, for the records of a device frame in the context's pinned memory. */
hs_status grid_choice_result(hs_context *context, const frame_request *request, frame_result *result);

/* Selection among the lists of a frame on the CPU. */

/* If max_features is set, drops the other features from the lists. The first `described` features have descriptors. */
stage_status select_features(hs_context *context, const frame_request *request, workspace *lists, uint32_t described);

/* ------------------------------------------------------------------ user keypoints (user_keypoints.c) */

/* Position in the pyramid at which a user keypoint is described. */
typedef struct user_position {
  int32_t octave_index; /* 0..octave_count-1; -1: the keypoint cannot be described */
  int32_t level;        /* 1..S */
  float sigma;          /* size with which it is described, in pixels */
} user_position;

/* Returns octave, level and sigma with which a keypoint is described. Octave and level are the keypoint's if its level
   is 1..S, the pyramid has that level, and the window is neither too small nor too large there; otherwise those nearest
   to its sigma. sigma is the keypoint's, or the nearest sigma with a valid window. A keypoint cannot be described if a
   number is not finite, its sigma is not above 0, its centre is outside the picture, or the picture is too small for an
   octave. A coarse octave may end up to a sample before the picture does; a window whose centre is past that end votes
   with the existing samples. */
user_position user_position_of(const pyramid_geometry *geometry, const sift_params *params, const source_view *picture,
                               const hs_keypoint *keypoint);

/* Maps a finite angle to [0, 2 pi). An angle in that range keeps its bits. */
float user_angle(float radians);

/* Returns how many octaves must be built for the user keypoints, and writes the statuses of the keypoints. */
int32_t user_octaves_needed(const pyramid_geometry *geometry, const hs_context *context, const frame_request *request);

/* Appends the user keypoints of octave o (EVERY_OCTAVE: of all octaves) in the caller's order. oriented true: those
   with an orientation, each with a feature. oriented false: those whose orientation must be computed, keypoints only.
   Uses only the lists and sources of *w. */
enum { EVERY_OCTAVE = -1 };
void user_append(const pyramid_geometry *geometry, const hs_context *context, const frame_request *request, int32_t o,
                 bool oriented, workspace *w);

#endif
