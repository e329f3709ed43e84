/*
 * One frame on a GPU and the CPU together: the GPU computes the large octaves and their features. As soon as
 * level 0 of the next octave exists it is copied to the host, and the CPU computes the small octaves meanwhile
 * (HartSift's heterogeneous pyramid, Li, Jia, Zhang, ICPADS 2017). The bytes are the same for every split.
 */
#ifndef HARTSIFT_FRAME_GPU_CPU_SPLIT_H
#define HARTSIFT_FRAME_GPU_CPU_SPLIT_H

#include "pipeline/device/cuda_frame.h"

/* Runs a frame (request->given is null) of a context with both. The features lie in the context's pinned results, as
   after cuda_frame_run. Statuses: those of cuda_frame_run and run_frame. */
hs_status gpu_cpu_split_run(hs_context *context, const frame_request *request, cuda_frame_result *result);

#endif
