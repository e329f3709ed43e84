/*
 * Launcher of the fused ("uber") level step: Gaussian level s+1 and DoG level s together; the new sample is still in a
 * register when its difference is stored. Device memory and planes as cuda/pyramid/pyramid_cuda.h says; results are the
 * bytes of the split kernels.
 */
#ifndef HARTSIFT_CUDA_PYRAMID_UBER_LEVEL_H
#define HARTSIFT_CUDA_PYRAMID_UBER_LEVEL_H

#include "cuda/pyramid/pyramid_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raises the shared-memory limits of the kernels on the current device. */
stage_status uber_level_prepare(void);

/* Level step with DoG; radii with a kernel of their own only (!blur_needs_work). */
stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
