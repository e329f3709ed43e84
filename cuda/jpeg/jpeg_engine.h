/*
 * The JPEG engine of a GPU (NVJPG, beside the multiprocessors; A100, H100 and later data-centre GPUs) through nvJPEG's
 * hardware backend: the luma of whole batches into device memory. All calls are made with the engine's device current.
 */
#ifndef HARTSIFT_CUDA_JPEG_JPEG_ENGINE_H
#define HARTSIFT_CUDA_JPEG_JPEG_ENGINE_H

#include "cuda/jpeg/nvjpeg_api.h"
#include "stages/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The library and a device's engine; any number of threads may decode with it at once, each with its own jpeg_decoder. */
typedef struct jpeg_engine {
  nvjpeg_api api;
  nvjpegHandle_t handle; /* null: not open */
  int32_t version[3];    /* of the library */
} jpeg_engine;

/* What one thread decodes with; {0} to begin with. The state takes nvJPEG a tenth of a second to make, another size of batch
   nothing. */
typedef struct jpeg_decoder {
  nvjpegJpegState_t state;
  int32_t batch; /* that the state is set up for */
} jpeg_decoder;

/* A file in host memory, and where its luma goes: device memory, pitch bytes from row to row, at least as large as the
   picture in the file, whose sides the caller knows. */
typedef struct jpeg_picture {
  const unsigned char *bytes;
  size_t size;
  unsigned char *luma;
  size_t pitch;
} jpeg_picture;

enum { JPEG_BATCH_MOST = 32 };

/* False: reason says why there is none. */
bool jpeg_engine_open(jpeg_engine *engine, char *reason, size_t reason_bytes);
void jpeg_engine_close(jpeg_engine *engine);

/* Decodes 1..JPEG_BATCH_MOST pictures in the order of the stream; the files must stay until it has passed. Pictures of one
   size keep all cores of the engine busy; each change of size within a batch costs about 2 ms. The number of nvJPEG's status, 0:
   done. */
int jpeg_engine_decode(const jpeg_engine *engine, jpeg_decoder *decoder, const jpeg_picture *pictures, int32_t count,
                       cuda_stream stream);
void jpeg_decoder_end(const jpeg_engine *engine, jpeg_decoder *decoder);

#ifdef __cplusplus
}
#endif
#endif
