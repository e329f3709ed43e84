/*
 * A frame on a CUDA device: what a context holds there, and one frame from picture to features.
 *
 * One frame is one graph, recorded for the second frame of a geometry and then replayed. All device memory is one slab
 * laid out by pipeline/device/cuda_plan.c; results are written by the kernels straight into pinned host memory.
 */
#ifndef HARTSIFT_DEVICE_CUDA_FRAME_H
#define HARTSIFT_DEVICE_CUDA_FRAME_H

#include "cuda/runtime/device.h"
#include "pipeline/base/features.h"
#include "pipeline/context/engine.h"

/* engine.devices */
int32_t cuda_frame_devices(char *reason, size_t reason_bytes);

/* Opens device options.device_index for the context: context->engine_state. owner: its variants and results are shared. */
hs_status cuda_frame_open(hs_context *context, const hs_context *owner, const char *variant, char *message,
                          size_t message_bytes);
void cuda_frame_close(hs_context *context);

/* Makes *features the owner of features that *found views in a set of results (hs_features_free gives the pinned memory
   back, see cuda_result_pool.h), or of a copy: of few features, where the caller has an allocator, where too much is lent
   already. Statuses: as features_reserve. */
hs_status cuda_frame_give(hs_context *context, int32_t set, const hs_features *found, hs_features *features);
/* Frames that follow leave their results in this set of pinned memory; those of the other set stay. */
void cuda_frame_use_results(hs_context *context, int32_t set);

/* Whether the context's options and variants have kernels for groups. */
bool cuda_frame_groups(const hs_context *context);

/* Runs a frame, or a group: then requests and results are arrays of place->group. */
hs_status cuda_frame_run(hs_context *context, const frame_request *request, const frame_placement *place,
                         frame_result *result);

/* The same in two halves, with the host's own work between them. cuda_frame_begin starts the frame. With place->octaves,
   cuda_frame_handed_over waits for the level from which the CPU goes on; it stays in pinned memory until the next frame.
   After cuda_frame_begin the frame must be ended, even if something failed in between. *repeat: a list overflowed and has
   been grown, so the frame must be run again from the beginning. */
hs_status cuda_frame_begin(hs_context *context, const frame_request *request, const frame_placement *place);
hs_status cuda_frame_handed_over(hs_context *context, plane_view *level);
hs_status cuda_frame_end(hs_context *context, const frame_placement *place, frame_result *result, bool *repeat);

/* Room in the pinned results beyond the features of a frame's own lists, from the next frame on. */
void cuda_frame_want_room(hs_context *context, uint32_t features);
/* Features that the pinned results of the last frame have room for, and the results themselves to write to. */
uint32_t cuda_frame_room(const hs_context *context, feature_records *records);

/* How many frames of a size may have their memory on the device at once, so that half of it stays free; 1 or more. */
int32_t cuda_frame_lanes(hs_context *context, int32_t width, int32_t height);

/* One "stage: variant" a line. Returns the characters written. */
size_t cuda_frame_report(const hs_context *context, char *text, size_t bytes);

/* Bytes held on the device, and pinned on the host. */
void cuda_frame_memory(const hs_context *context, uint64_t *device_bytes, uint64_t *pinned_bytes);

/* The same for frames of a size, before any memory is taken: 8-bit gray without a mask, results on the host. */
hs_status cuda_frame_query(hs_context *context, int32_t width, int32_t height, uint64_t *device_bytes,
                           uint64_t *pinned_bytes);

#endif
