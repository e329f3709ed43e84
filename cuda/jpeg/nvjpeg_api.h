/*
 * What is used of NVIDIA's nvJPEG library, declared as its documentation does ("nvJPEG", CUDA Toolkit documentation), and
 * found when it is wanted: nothing links against it, and where it is not there JPEGs are decoded by libjpeg.
 */
#ifndef HARTSIFT_CUDA_JPEG_NVJPEG_API_H
#define HARTSIFT_CUDA_JPEG_NVJPEG_API_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/device/stream.h"

typedef struct nvjpegHandle *nvjpegHandle_t;
typedef struct nvjpegJpegState *nvjpegJpegState_t;

enum { NVJPEG_STATUS_SUCCESS = 0, NVJPEG_BACKEND_HARDWARE = 3, NVJPEG_OUTPUT_Y = 2, NVJPEG_CHANNELS = 4 };

typedef struct nvjpegImage_t {
  unsigned char *channel[NVJPEG_CHANNELS]; /* device memory */
  size_t pitch[NVJPEG_CHANNELS];
} nvjpegImage_t;

/* The functions, by their names there without the prefix. */
typedef struct nvjpeg_api {
  int (*get_property)(int which, int *value); /* 0..2: major, minor, patch */
  int (*create_ex)(int backend, void *device_allocator, void *pinned_allocator, unsigned int flags,
                   nvjpegHandle_t *handle);
  int (*destroy)(nvjpegHandle_t handle);
  int (*jpeg_state_create)(nvjpegHandle_t handle, nvjpegJpegState_t *state);
  int (*jpeg_state_destroy)(nvjpegJpegState_t state);
  int (*decode_batched_initialize)(nvjpegHandle_t handle, nvjpegJpegState_t state, int batch, int cpu_threads,
                                   int output_format);
  int (*decode_batched)(nvjpegHandle_t handle, nvjpegJpegState_t state, const unsigned char *const *data,
                        const size_t *bytes, nvjpegImage_t *images, cuda_stream stream);
} nvjpeg_api;

/* Finds the library that the process has loaded already, or that the loader finds: libnvjpeg.so.13, then .12. False: reason says what
   is missing. It stays loaded until the process ends. */
bool nvjpeg_api_open(nvjpeg_api *api, char *reason, size_t reason_bytes);

#endif
