/*
 * Launcher of chains: two or three level steps of a small octave in one launch, in which blocks recompute their
 * neighbours' halos. A small level takes the time of a launch whatever its size, so fewer launches are what counts
 * there. Device memory and planes as cuda/pyramid/pyramid_cuda.h says; results are the bytes of single level steps.
 */
#ifndef HARTSIFT_CUDA_PYRAMID_BLUR_CHAIN_H
#define HARTSIFT_CUDA_PYRAMID_BLUR_CHAIN_H

#include "cuda/pyramid/pyramid_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raises the shared-memory limits of the kernels on the current device. */
stage_status blur_chain_prepare(void);

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
