/*
 * Luma of baseline JPEGs decoded on the GPU, with libjpeg's pixels: Huffman codes by self-synchronisation (Klein and
 * Wiseman, The Computer Journal 2003; Weissenberger and Schmidt, ICPP 2018 and HiPC 2021), the inverse cosine transform
 * of Loeffler, Ligtenberg and Moschytz (ICASSP 1989) in libjpeg's integers.
 */
#ifndef HARTSIFT_CUDA_JPEG_JPEG_CUDA_H
#define HARTSIFT_CUDA_JPEG_JPEG_CUDA_H

#include "cuda/runtime/device.h"
#include "stages/jpeg_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A packed picture and the destination of its pixels. Pixel (x, y) as stored goes to gray[start + x * step_x + y *
 * step_y]: rows of any pitch, rotated as an EXIF orientation requires. */
typedef struct jpeg_decode_args {
  jpeg_shape shape;
  const void *packed; /* pinned host memory, shape.packed_bytes; must stay until the stream has read it */
  void *scratch; /* device memory, jpeg_scratch_bytes(&shape), a multiple of 256 bytes; used by one picture at a time */
  uint8_t *gray; /* device memory */
  int64_t start, step_x, step_y;
  uint32_t *refused; /* device memory: becomes 0 if the pixels are libjpeg's. Otherwise libjpeg must decode the
                      * picture: its data are damaged, or have values on which decoders differ */
} jpeg_decode_args;

/* Prepares the current device for the decoder's kernels: once per device, before the first picture. */
stage_status jpeg_prepare(void);

/* Returns the bytes of device memory for decoding a picture, in addition to its pixels. */
size_t jpeg_scratch_bytes(const jpeg_shape *shape);

/* Copies a packed picture to the device and decodes it, in stream order. Neither waits nor allocates. */
stage_status jpeg_decode_launch(const jpeg_decode_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
