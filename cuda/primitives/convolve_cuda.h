/*
 * 1-D convolution of rows on the device, as stages/primitives.h says.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_CONVOLVE_CUDA_H
#define HARTSIFT_CUDA_PRIMITIVES_CONVOLVE_CUDA_H

#include "cuda/runtime/stream.h"
#include "stages/primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As many taps travel with the launch; more are read from device memory. */
enum { CONVOLVE_INLINE_TAPS = 255 };

typedef struct convolve_args {
  prim_view signal;     /* f32 or f64 */
  const double *taps;   /* host, [tap_count], rounded to the signal's type; read during the call */
  const double *d_taps; /* device, the same; may be null with at most CONVOLVE_INLINE_TAPS */
  uint32_t tap_count;   /* odd, 1..PRIM_TAPS_MAX */
  prim_ends ends;
  void *out; /* device, apart from the signal */
  size_t out_stride_bytes;
} convolve_args;

/* Whichever of the kernels is for so many taps. */
stage_status convolve_launch(const convolve_args *args, cuda_stream stream);

/* At most PRIM_TREE_TAPS_MAX taps; more. */
stage_status convolve_tree_launch(const convolve_args *args, cuda_stream stream);
stage_status convolve_long_launch(const convolve_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
