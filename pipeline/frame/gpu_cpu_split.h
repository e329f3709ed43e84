/*
 * One frame on a GPU and the CPU together: the GPU computes the large octaves and their features. As soon as
 * level 0 of the next octave exists it is copied to the host, and the CPU computes the small octaves meanwhile
 * (HartSift's heterogeneous pyramid, Li, Jia, Zhang, ICPADS 2017). The bytes are the same for every split.
 */
#ifndef HARTSIFT_FRAME_GPU_CPU_SPLIT_H
#define HARTSIFT_FRAME_GPU_CPU_SPLIT_H

#include "pipeline/context/engine.h"

/* engine.run and engine.report of the hybrid engine. What begins or stays on the device, and user keypoints, are the
   device's alone. Statuses: those of engine_split and run_frame. */
hs_status gpu_cpu_split_run(hs_context *context, const frame_request *request, const frame_placement *placement,
                            frame_result *result);
size_t gpu_cpu_split_report(const hs_context *context, char *text, size_t bytes);

/* Selection among finished features, in place: what stages/select.h does for lists within a frame. Keeps the `most` best
   of count features in their order and returns how many those are: by response or by sigma, the larger first, ties by
   the order. */
uint32_t select_records(const feature_records *records, uint32_t count, uint32_t most, hs_selection selection);

#endif
