/*
 * Gray bytes of 8-bit colour on the device: what is equalised.
 */
#ifndef HARTSIFT_CUDA_PYRAMID_GRAY_CUDA_H
#define HARTSIFT_CUDA_PYRAMID_GRAY_CUDA_H

#include "cuda/pyramid/pyramid_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each pixel's gray (gray_of_rgb_int; without colours the first channel) to out, rows of width bytes out_stride_bytes
   apart. source: u8 of any layout in device memory, apart from out; in a group both lie as far apart as the planes. */
stage_status gray_launch(const source_view *source, uint8_t *out, size_t out_stride_bytes, picture_group group,
                         cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
