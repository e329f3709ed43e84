/* nvJPEG's hardware backend and the turning of pictures, played by libjpeg: luma as it is stored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/jpeg/nvjpeg_api.h"
#include "cuda/jpeg/turn_cuda.h"
#include "pipeline/include/hartsift.h"
#include "tests/support/played_device/played_device.h"

enum { REFUSED = 2, EXECUTION_FAILED = 6 };

static int get_property(int which, int *value) {
  *value = which;
  return NVJPEG_STATUS_SUCCESS;
}

static int create_ex(int backend, void *device_allocator, void *pinned_allocator, unsigned int flags,
                     nvjpegHandle_t *handle) {
  if (played.jpeg == PLAYED_JPEG_ABSENT || backend != NVJPEG_BACKEND_HARDWARE || device_allocator || pinned_allocator ||
      flags)
    return REFUSED;
  *handle = malloc(1);
  played_count(1);
  return *handle ? NVJPEG_STATUS_SUCCESS : EXECUTION_FAILED;
}

static int destroy(nvjpegHandle_t handle) {
  free(handle);
  played_count(-1);
  return NVJPEG_STATUS_SUCCESS;
}

/* A state knows the size of its batches. */
struct nvjpegJpegState {
  int batch;
};

static int jpeg_state_create(nvjpegHandle_t handle, nvjpegJpegState_t *state) {
  *state = handle ? calloc(1, sizeof **state) : NULL;
  if (!*state) return EXECUTION_FAILED;
  played_count(1);
  return NVJPEG_STATUS_SUCCESS;
}

static int jpeg_state_destroy(nvjpegJpegState_t state) {
  free(state);
  played_count(-1);
  return NVJPEG_STATUS_SUCCESS;
}

static int decode_batched_initialize(nvjpegHandle_t handle, nvjpegJpegState_t state, int batch, int cpu_threads,
                                     int output_format) {
  if (!handle || cpu_threads < 1 || output_format != NVJPEG_OUTPUT_Y) return REFUSED;
  state->batch = batch;
  return NVJPEG_STATUS_SUCCESS;
}

typedef struct decode_args {
  hs_image image;
  unsigned char *to;
  size_t pitch;
} decode_args;

static stage_status decode_run(const void *args) {
  const decode_args *a = args;
  const size_t row = (size_t)a->image.width;
  for (int32_t y = 0; y < a->image.height; y++)
    memcpy(a->to + (size_t)y * a->pitch, (const unsigned char *)a->image.data + (size_t)y * row, row);
  if (played.jpeg == PLAYED_JPEG_DIFFERS) a->to[0] ^= 1;
  return STAGE_OK;
}

static int decode_batched(nvjpegHandle_t handle, nvjpegJpegState_t state, const unsigned char *const *data,
                          const size_t *bytes, nvjpegImage_t *images, cuda_stream stream) {
  const hs_load_options as_stored = {.struct_size = sizeof as_stored, .ignore_exif = 1};
  int status = handle ? NVJPEG_STATUS_SUCCESS : REFUSED;
  for (int i = 0; i < state->batch && status == NVJPEG_STATUS_SUCCESS; i++) {
    decode_args args = {.to = images[i].channel[0], .pitch = images[i].pitch[0]};
    if (hs_load_image_memory(data[i], bytes[i], &as_stored, &args.image) != HS_OK) return REFUSED;
    if (played_submit(stream, decode_run, &args, sizeof args) != STAGE_OK) status = EXECUTION_FAILED;
    hs_image_free(&args.image);
  }
  played_count_decoded();
  return played.jpeg == PLAYED_JPEG_REFUSES ? REFUSED : status;
}

bool nvjpeg_api_open(nvjpeg_api *api, char *reason, size_t reason_bytes) {
  snprintf(reason, reason_bytes, "no library is played");
  *api =
      (nvjpeg_api){get_property,  create_ex, destroy, jpeg_state_create, jpeg_state_destroy, decode_batched_initialize,
                   decode_batched};
  return played.jpeg != PLAYED_JPEG_NO_LIBRARY;
}

static stage_status turn_run(const void *args) {
  const turn_args *a = args;
  for (int32_t y = 0; y < a->height; y++)
    for (int32_t x = 0; x < a->width; x++)
      a->to[a->start + x * a->step_x + y * a->step_y] = a->from[(size_t)y * a->from_pitch + (size_t)x];
  return STAGE_OK;
}

stage_status turn_launch(const turn_args *args, cuda_stream stream) {
  return played_submit(stream, turn_run, args, sizeof *args);
}
