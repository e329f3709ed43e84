/*
 * Launchers of the fused ("uber") kernels, which do several steps of the pyramid in one launch with the device
 * functions of the split kernels. Device memory and planes as cuda/pyramid_cuda.h says; results are the bytes of the
 * split kernels.
 *
 * Level: Gaussian level s+1 and DoG level s together; the new sample is still in a register when its difference is
 *   stored.
 * Chain: two or three level steps of a small octave in one launch; blocks recompute their neighbours' halos. A small
 *   level takes the time of a launch whatever its size, so fewer launches are what counts there.
 */
#ifndef HARTSIFT_CUDA_UBER_H
#define HARTSIFT_CUDA_UBER_H

#include "cuda/extrema_cuda.h"
#include "cuda/pyramid_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raises the shared-memory limits of this file's kernels on the current device. */
stage_status uber_prepare(void);

/* Level step with DoG; radii with a kernel of their own only (!blur_needs_work). */
stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream);

/* Levels first_level .. first_level + count - 1 of an octave, from level first_level - 1. */
typedef struct chain_launch_args {
  octave_view octave;
  int32_t first_level, count; /* count 2 or 3 */
  plane_view halved;          /* every second sample of the last level made; null data: not wanted */
  border_mode border;
  const gaussian_filter *filters; /* host memory: filters[s] makes level s */
  picture_group group;
} chain_launch_args;

/* Whether the chain has a kernel for these radii and pays at this size. */
bool chain_fits(const chain_launch_args *args);
stage_status chain_launch(const chain_launch_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
