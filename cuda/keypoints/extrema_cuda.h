/*
 * Launcher of the extremum search: Gaussian levels, or stored DoG levels, to candidate bits. Device memory throughout;
 * planes as cuda/pyramid/pyramid_cuda.h says. Every word of a mask is written. Results are the bits of extrema_ref.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_EXTREMA_CUDA_H
#define HARTSIFT_CUDA_KEYPOINTS_EXTREMA_CUDA_H

#include "cuda/runtime/stream.h"
#include "stages/extrema.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One octave. dog: DoG levels 0..S+1 with the octave's stride and level_floats, as the uber kernel stores them; null:
   differences are taken on the fly from the Gaussian levels. */
typedef struct extrema_octave {
  octave_view octave;
  const float *dog;
  mask_view candidates;
} extrema_octave;

/* Up to OCTAVES_MAX octaves in one launch. params: scales, border, candidate_above and extremum_ties are read. */
typedef struct extrema_launch_args {
  const extrema_octave *octaves; /* host memory, read during the call only */
  int32_t octave_count;
  sift_params params;
  /* pictures of one size, whose planes and masks lie group_stride_bytes (a multiple of 256) apart; 0 or 1: one. More:
     S = 3 only, without stored DoG */
  int32_t group;
  size_t group_stride_bytes;
} extrema_launch_args;

stage_status extrema_launch(const extrema_launch_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
