/*
 * JPEGs decoded by the GPU's engine into device memory, where the frame then takes them. A context and its lanes share one
 * engine; it is used only after encoded/engine_check.c has found its pixels equal to libjpeg's. In a build without CUDA
 * there is none.
 */
#ifndef HARTSIFT_DEVICE_CUDA_JPEG_H
#define HARTSIFT_DEVICE_CUDA_JPEG_H

#include "pipeline/context/context.h"

/* Files of a call: 16 and more keep the engine's cores busy, one at a time has an eighth of that rate. */
enum { CUDA_JPEG_MOST = 32, CUDA_JPEG_SETS = 8, CUDA_JPEG_REASON_BYTES = 256 };

typedef enum cuda_jpeg_state {
  CUDA_JPEG_UNKNOWN, /* nobody has asked yet */
  CUDA_JPEG_OPEN,    /* it decodes, but has not been compared */
  CUDA_JPEG_READY,
  CUDA_JPEG_WRONG, /* it was compared, and is not to be used */
  CUDA_JPEG_OFF    /* there is none */
} cuda_jpeg_state;

/* A file whose headers are known, and where the pixels of its picture go: pixel (x, y) as stored to the pixel
   start + x * step_x + y * step_y of the picture as it is to be seen. */
typedef struct cuda_jpeg_file {
  const unsigned char *bytes;
  size_t size;
  int32_t width, height; /* as stored */
  bool turned;           /* else the picture is as stored and start, step_x and step_y are not read */
  int64_t start, step_x, step_y;
} cuda_jpeg_file;

/* Rows of a decoded picture, in device memory of the context until it decodes into that set again. */
typedef struct cuda_jpeg_rows {
  const unsigned char *data;
  size_t stride_bytes;
} cuda_jpeg_rows;

/* Opens the engine where that has not been tried; CUDA_JPEG_OFF for a context that works on the CPU. */
cuda_jpeg_state cuda_jpeg_open(hs_context *context);
/* Gives what an engine's context decodes with, which takes long to set up, to one of its lanes. */
void cuda_jpeg_hand_over(hs_context *from, hs_context *to);
/* What the comparison came to; reason: against the engine, null for none. */
void cuda_jpeg_judge(hs_context *context, const char *reason);
/* The state as it is. *reason: why it is off, else the name of the library. */
cuda_jpeg_state cuda_jpeg_ask(const hs_context *context, const char **reason);

/* Decodes 1..CUDA_JPEG_MOST files into one of the context's sets of memory, in the order of its stream; they must stay until
   it has passed. False: the engine is not open, refuses one of them, or has no memory for them, and the rows are not there. */
bool cuda_jpeg_decode(hs_context *context, int32_t set, const cuda_jpeg_file *files, int32_t count,
                      cuda_jpeg_rows *rows);
/* Waits until they are decoded. */
bool cuda_jpeg_finish(hs_context *context);

/* Waits for the stream, and copies rows of `width` bytes to host memory, without gaps. */
hs_status cuda_jpeg_fetch(hs_context *context, const cuda_jpeg_rows *rows, int32_t width, int32_t height,
                          unsigned char *to);

/* Ends what the context decodes with; the engine too, unless it is another context's. */
void cuda_jpeg_destroy(hs_context *context);

#endif
