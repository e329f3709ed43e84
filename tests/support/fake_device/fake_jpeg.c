/* Decodes JPEGs on a fake device by the host's decoder (tests/support/jpeg_on_host.h). */
#include <string.h>

#include "cuda/jpeg/jpeg_cuda.h"
#include "tests/support/jpeg_on_host.h"
#include "tests/support/fake_device/fake_device.h"

enum { SCRATCH_BYTES = 1024, REFUSED = 1 };

size_t jpeg_scratch_bytes(const jpeg_shape *shape) { return SCRATCH_BYTES + shape->packed_bytes; }

static stage_status decode_run(const void *args) {
  const jpeg_decode_args *a = args;
  jpeg_decode_args own = *a;
  jpeg_host_effort effort;
  memcpy(a->scratch, a->packed, a->shape.packed_bytes);
  own.packed = a->scratch;
  *a->refused = jpeg_on_host(&own, &effort);
  if (fake.jpeg == FAKE_JPEG_DIFFERS) a->gray[a->start] ^= 1;
  if (fake.jpeg == FAKE_JPEG_REFUSES) *a->refused = REFUSED;
  fake_count_decoded();
  return STAGE_OK;
}

stage_status jpeg_decode_launch(const jpeg_decode_args *args, cuda_stream stream) {
  return fake_submit(stream, decode_run, args, sizeof *args);
}
