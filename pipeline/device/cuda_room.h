/*
 * Memory for a frame on a device: one slab laid out by a plan, and pinned memory for results and for the level from
 * which the CPU goes on. Graphs that have addresses of memory that moves are dropped.
 */
#ifndef HARTSIFT_DEVICE_CUDA_ROOM_H
#define HARTSIFT_DEVICE_CUDA_ROOM_H

#include "pipeline/device/cuda_state.h"

/* Pictures that share the frame's launches. */
static inline size_t cuda_group_of(const frame_placement *place) { return place->group > 1 ? (size_t)place->group : 1; }

/* Whether any filter of the options needs a work plane. */
bool cuda_wants_blur_work(const hs_context *context);

/* A slab of at least so many bytes. */
hs_status cuda_make_slab(hs_context *context, size_t bytes);
/* The plan of a frame: state->plan, and untiled_bytes, what its slab takes. Statuses: HS_ERR_LIMIT: a size does not fit, and
   untiled_bytes is SIZE_MAX. */
hs_status cuda_plan_room(hs_context *context, const frame_request *request, const frame_placement *place);
/* Plan and slab for a frame. */
hs_status cuda_make_room(hs_context *context, const frame_request *request, const frame_placement *place);
/* Pinned memory for the results of `group` pictures, and for those beyond a frame's own. */
hs_status cuda_make_result_room(hs_context *context, size_t group, size_t descriptor_bytes);
/* Whether a picture of the frame that ended has more features than the results have room for; then the next will have it. */
bool cuda_outgrows_results(hs_context *context, uint32_t features);
/* Pinned memory for level 0 of the octave after the last of the plan. */
hs_status cuda_make_handover_room(hs_context *context);

/* That level, at an address of the host's or the device's. */
plane_view cuda_handover_plane(const cuda_state *state, float *data);

#endif
