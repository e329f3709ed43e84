/* A GPU's JPEG engine; see jpeg_engine.h. */
#include "cuda/jpeg/jpeg_engine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool jpeg_engine_open(jpeg_engine *e, char *reason, size_t bytes) {
  memset(e, 0, sizeof *e);
  if (!nvjpeg_api_open(&e->api, reason, bytes)) return false;
  for (int i = 0; i < 3; i++) (void)e->api.get_property(i, &e->version[i]);
  const int status = e->api.create_ex(NVJPEG_BACKEND_HARDWARE, NULL, NULL, 0, &e->handle);
  if (status == NVJPEG_STATUS_SUCCESS) return true;
  e->handle = NULL;
  snprintf(reason, bytes, "nvJPEG %d.%d.%d finds none (status %d)", (int)e->version[0], (int)e->version[1],
           (int)e->version[2], status);
  return false;
}

void jpeg_engine_close(jpeg_engine *e) {
  if (e->handle) (void)e->api.destroy(e->handle);
  e->handle = NULL;
}

/* A state for batches of so many. */
static int set_up(const jpeg_engine *e, jpeg_decoder *d, int32_t count) {
  int status = NVJPEG_STATUS_SUCCESS;
  if (d->batch == count) return status;
  if (!d->state) status = e->api.jpeg_state_create(e->handle, &d->state);
  if (status != NVJPEG_STATUS_SUCCESS) {
    d->state = NULL;
    return status;
  }
  status = e->api.decode_batched_initialize(e->handle, d->state, count, 1, NVJPEG_OUTPUT_Y);
  d->batch = status == NVJPEG_STATUS_SUCCESS ? count : 0;
  return status;
}

int jpeg_engine_decode(const jpeg_engine *e, jpeg_decoder *d, const jpeg_picture *pictures, int32_t count,
                       cuda_stream stream) {
  const unsigned char *files[JPEG_BATCH_MOST];
  size_t sizes[JPEG_BATCH_MOST];
  nvjpegImage_t images[JPEG_BATCH_MOST] = {{{NULL}, {0}}};
  assert(count >= 1 && count <= JPEG_BATCH_MOST);
  for (int32_t i = 0; i < count; i++) {
    files[i] = pictures[i].bytes;
    sizes[i] = pictures[i].size;
    images[i].channel[0] = pictures[i].luma;
    images[i].pitch[0] = pictures[i].pitch;
  }
  int status = set_up(e, d, count);
  if (status == NVJPEG_STATUS_SUCCESS)
    status = e->api.decode_batched(e->handle, d->state, files, sizes, images, stream);
  if (status != NVJPEG_STATUS_SUCCESS) jpeg_decoder_end(e, d); /* what a refusal leaves in a state is not known */
  return status;
}

void jpeg_decoder_end(const jpeg_engine *e, jpeg_decoder *d) {
  if (d->state) (void)e->api.jpeg_state_destroy(d->state);
  *d = (jpeg_decoder){0};
}
