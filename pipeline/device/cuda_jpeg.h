/*
 * JPEGs decoded on the device into memory of the context, in front of the frame that takes them. A context and its lanes
 * share what is known of it; it is used only after encoded/decoder_check.c has found its pixels equal to libjpeg's. In
 * a build without CUDA there is none.
 */
#ifndef HARTSIFT_DEVICE_CUDA_JPEG_H
#define HARTSIFT_DEVICE_CUDA_JPEG_H

#include "pipeline/context/context.h"
#include "pipeline/device/cuda_frame.h"
#include "stages/jpeg_scan.h"

/* Pictures of a call: of one frame. */
enum { CUDA_JPEG_MOST = CUDA_GROUP_MAX, CUDA_JPEG_REASON_BYTES = 256 };

typedef enum cuda_jpeg_state {
  CUDA_JPEG_UNKNOWN, /* nobody has asked yet */
  CUDA_JPEG_OPEN,    /* it decodes, but has not been compared */
  CUDA_JPEG_READY,
  CUDA_JPEG_WRONG, /* it was compared, and is not to be used */
  CUDA_JPEG_OFF    /* there is none */
} cuda_jpeg_state;

/* A packed picture (image_io/jpeg_pack.h), and where its pixels go: pixel (x, y) as stored to the pixel
   start + x * step_x + y * step_y of the picture as it is to be seen, whose rows have no gaps. */
typedef struct cuda_jpeg_picture {
  jpeg_shape shape;
  const void *packed;    /* within cuda_jpeg_room */
  int32_t width, height; /* to be seen */
  int64_t start, step_x, step_y;
} cuda_jpeg_picture;

/* Rows of a decoded picture, in device memory of the context until it decodes again. */
typedef struct cuda_jpeg_rows {
  const unsigned char *data;
  size_t stride_bytes;
} cuda_jpeg_rows;

/* Whether the device decodes; CUDA_JPEG_OFF for a context that works on the CPU. */
cuda_jpeg_state cuda_jpeg_open(hs_context *context);
/* What the comparison came to; reason: against it, null for none. */
void cuda_jpeg_judge(hs_context *context, const char *reason);
/* The state as it is. *reason: why it is off, else what decodes. */
cuda_jpeg_state cuda_jpeg_ask(const hs_context *context, const char **reason);

/* Pinned memory of the context for packed pictures, until the next call; waits for what was decoded before. Null: so much
   cannot be had, or is more than a device should be given. */
void *cuda_jpeg_room(hs_context *context, size_t bytes);

/* Enqueues the decoding of 1..CUDA_JPEG_MOST packed pictures on the context's stream, without waiting. False: there is no
   memory for it, within max_memory_bytes or at all, or it failed, and the rows are not there. */
bool cuda_jpeg_decode(hs_context *context, const cuda_jpeg_picture *pictures, int32_t count, cuda_jpeg_rows *rows);

/* After the stream has passed: the first picture decoded last that libjpeg is to decide about, -1: none. */
int32_t cuda_jpeg_refused(const hs_context *context);

/* Waits for the stream, and copies rows of `width` bytes to host memory, without gaps. */
hs_status cuda_jpeg_fetch(hs_context *context, const cuda_jpeg_rows *rows, int32_t width, int32_t height,
                          unsigned char *to);

#endif
