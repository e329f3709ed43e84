/*
 * JPEGs decoded on the device into memory of the context, in front of the frame that takes them. A context and its lanes
 * share what is known of it; it is used only after source/jpeg_on_gpu.c has found its pixels equal to libjpeg's. In
 * a build without CUDA there is none.
 */
#ifndef HARTSIFT_DEVICE_CUDA_JPEG_H
#define HARTSIFT_DEVICE_CUDA_JPEG_H

#include "pipeline/context/engine.h"

/* Whether the device decodes; DECODER_OFF for a context that works on the CPU. */
decoder_state cuda_jpeg_open(hs_context *context);
/* What the comparison came to; reason: against it, null for none. */
void cuda_jpeg_judge(hs_context *context, const char *reason);
/* The state as it is. *reason: why it is off, else what decodes. */
decoder_state cuda_jpeg_ask(const hs_context *context, const char **reason);

/* Pinned memory of the context for packed pictures, until the next call; waits for what was decoded before. Null: so much
   cannot be had, or is more than a device should be given. */
void *cuda_jpeg_room(hs_context *context, size_t bytes);

/* Enqueues the decoding of 1..JPEG_GROUP_MAX packed pictures on the context's stream, without waiting. False: there is no
   memory for it, within max_memory_bytes or at all, or it failed, and the rows are not there. */
bool cuda_jpeg_decode(hs_context *context, const packed_jpeg *pictures, int32_t count, decoded_rows *rows);

/* After the stream has passed: the first picture decoded last that libjpeg is to decide about, -1: none. */
int32_t cuda_jpeg_refused(const hs_context *context);

/* Waits for the stream, and copies rows of `width` bytes to host memory, without gaps. */
hs_status cuda_jpeg_fetch(hs_context *context, const decoded_rows *rows, int32_t width, int32_t height,
                          unsigned char *to);

#endif
