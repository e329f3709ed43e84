/*
 * How planes lie in device memory: what kernels rely on and whoever lays a frame out must keep.
 */
#ifndef HARTSIFT_CUDA_PYRAMID_PLANE_LAYOUT_H
#define HARTSIFT_CUDA_PYRAMID_PLANE_LAYOUT_H

enum {
  PLANE_STRIDE_FLOATS = 32,    /* rows begin on multiples of so many floats, a line of 128 bytes */
  PLANE_SLACK_FLOATS = 64,     /* so many after a plane's last row may be read, never written */
  PLANE_ALIGNMENT_BYTES = 256, /* of a plane's first sample */
  PLANE_ALIGNMENT_FLOATS = PLANE_ALIGNMENT_BYTES / 4
};

/* `floats` as a multiple of `step`, a power of two. */
#define PLANE_ROUND_UP(floats, step) (((floats) + (step)-1) & ~((step) - (size_t)1))

#endif
