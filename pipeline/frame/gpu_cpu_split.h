/*
 * One frame on a GPU and the CPU together: the GPU makes the large octaves and their features, hands the next octave's
 * level 0 over as soon as it is there, and the CPU makes the small ones meanwhile (HartSift's heterogeneous pyramid, Li,
 * Jia, Zhang, ICPADS 2017). The bytes are the same for every split.
 */
#ifndef HARTSIFT_FRAME_GPU_CPU_SPLIT_H
#define HARTSIFT_FRAME_GPU_CPU_SPLIT_H

#include "pipeline/device/cuda_frame.h"

/* Runs a frame (request->given is null) of a context with both. The features lie in the context's pinned results, as
   after cuda_frame_run. Statuses: those of cuda_frame_run and run_frame. */
hs_status gpu_cpu_split_run(hs_context *context, const frame_request *request, cuda_frame_result *result);

#endif
