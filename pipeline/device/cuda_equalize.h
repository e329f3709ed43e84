/*
 * options.equalize on a device: between the upload and the base of a frame.
 */
#ifndef HARTSIFT_DEVICE_CUDA_EQUALIZE_H
#define HARTSIFT_DEVICE_CUDA_EQUALIZE_H

#include "cuda/primitives/primitives_cuda.h"
#include "pipeline/device/cuda_state.h"

/* Bytes from row to row of a picture's equalised gray; 0 where that takes the picture's own place. */
size_t cuda_equalized_pitch(const source_view *source);

/* Device memory that histograms need and find zero: for those that run beside each other. */
enum { CUDA_EQUALIZE_BYTES = SIDE_STREAMS * (int)sizeof(histogram_scratch) };
stage_status cuda_equalize_room(cuda_state *state);

/* Enqueues the equalisation of target->source into target->base on state->stream and, for groups, the side streams, which
   it joins; may be captured. */
stage_status cuda_record_equalize(const hs_context *context, const record_target *target);

#endif
