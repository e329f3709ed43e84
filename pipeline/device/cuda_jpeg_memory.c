/* Memory that decoded pictures take, given back; what a frame's room and the decoder both do. */
#include "pipeline/device/cuda_state.h"

void cuda_jpeg_drop_decoded(cuda_state *s) {
  device_free(s->decoded);
  s->decoded = NULL;
  s->decoded_bytes = 0;
}

void cuda_jpeg_drop(cuda_state *s) {
  cuda_jpeg_drop_decoded(s); /* waits for the device */
  device_free_pinned(s->packed);
  s->packed = NULL;
  s->packed_bytes = 0;
}
