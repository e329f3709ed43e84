/*
 * A picture of 8-bit gray turned or mirrored on its way from one place in device memory to another, as an EXIF orientation
 * asks for it.
 */
#ifndef HARTSIFT_CUDA_JPEG_TURN_CUDA_H
#define HARTSIFT_CUDA_JPEG_TURN_CUDA_H

#include "cuda/device/stream.h"
#include "stages/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pixel (x, y) of the source goes to to[start + x * step_x + y * step_y]. */
typedef struct turn_args {
  const unsigned char *from;
  size_t from_pitch;
  int32_t width, height; /* of the source */
  unsigned char *to;
  int64_t start, step_x, step_y;
} turn_args;

stage_status turn_launch(const turn_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
