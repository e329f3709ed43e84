/*
 * Launchers of the fused ("uber") kernels, which do several steps of the pyramid in one launch with the device functions
 * of the split kernels. Device memory and planes as cuda/pyramid_cuda.h says; results are the bytes of the split kernels.
 *
 * Level: Gaussian level s+1 and DoG level s together; the new sample is still in a register when its difference is stored.
 * Chain: several level steps of one small octave in one launch; blocks recompute their neighbours' halos.
 * Tail:  every level and every candidate mask of the last, smallest octaves in one block, which never waits for a launch.
 */
#ifndef HS_CUDA_UBER_H
#define HS_CUDA_UBER_H

#include "cuda/extrema_cuda.h"
#include "cuda/pyramid_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raises the shared-memory limits of this file's kernels on the current device. */
stage_status uber_prepare(void);

/* Level step with DoG; radii with a kernel of their own only (!blur_needs_work). */
stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream);

/* Levels 1..S of an octave from its level 0, and the next octave's level 0. */
typedef struct chain_launch_args {
  octave_view octave;
  plane_view halved;              /* null data: not wanted */
  border_mode border;
  const gaussian_filter *filters; /* host memory: filters[s] makes level s, s = 1..scales */
  int32_t scales;
} chain_launch_args;

/* Whether the chain has a kernel for these radii, and pays at this size. */
bool chain_fits(const chain_launch_args *args);
stage_status chain_launch(const chain_launch_args *args, cuda_stream stream);

/* The last octaves from level 0 of the first of them: all levels 1..S+2, all level 0s after the first, all masks. */
typedef struct tail_launch_args {
  const extrema_octave *octaves;  /* host memory, each half of the one before; dog is ignored */
  int32_t octave_count;
  border_mode border;
  const gaussian_filter *filters; /* host memory: filters[s] makes level s, s = 1..scales + 2 */
  sift_params params;
} tail_launch_args;

/* Whether the tail may start with an octave of this size (it then takes all octaves after it too). */
bool tail_fits(int32_t width, int32_t height, const sift_params *params);
stage_status tail_launch(const tail_launch_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
