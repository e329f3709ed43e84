/*
 * Fuzz target for the GPU's JPEG decoder, without a GPU. Headers are read, and the coded data is packed and decoded as
 * in the kernels. Pixels of accepted files must be libjpeg's.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/image_io/jpeg/jpeg_stream.h"
#include "pipeline/include/hartsift.h"
#include "tests/fuzz/input_bytes.h"
#include "tests/support/jpeg_on_host.h"

enum { FUZZ_MAX_PIXELS = 1 << 18 };

static void check_pixels(const uint8_t *data, size_t size, const jpeg_shape *shape, const void *packed) {
  char message[256] = "";
  const hs_load_options options = {.struct_size = sizeof options,
                                   .max_pixels = FUZZ_MAX_PIXELS,
                                   .ignore_exif = 1,
                                   .message = message,
                                   .message_bytes = sizeof message};
  const size_t pixels = (size_t)shape->width * (size_t)shape->height;
  uint8_t *gray = malloc(pixels);
  const jpeg_decode_args args = {.shape = *shape, .packed = packed, .gray = gray, .step_x = 1, .step_y = shape->width};
  jpeg_host_effort effort;
  hs_image image;
  if (gray && jpeg_on_host(&args, &effort) == 0) {
    fuzz_require(hs_load_image_memory(data, size, &options, &image) == HS_OK);
    fuzz_require(image.width == shape->width && image.height == shape->height && image.layout == HS_GRAY);
    fuzz_require(memcmp(gray, image.data, pixels) == 0);
    hs_image_free(&image);
  }
  free(gray);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  jpeg_stream stream;
  jpeg_shape shape;
  int32_t width = 0, height = 0;
  const bool has_sides = jpeg_stream_sides(data, size, &width, &height);
  fuzz_require(!has_sides || (width > 0 && height > 0));
  if (!jpeg_stream_open(data, size, &stream)) return 0;
  fuzz_require(stream.width > 0 && stream.height > 0 && stream.scan <= size);
  fuzz_require(has_sides && width == stream.width && height == stream.height);
  const size_t bytes = jpeg_pack_bytes(&stream, size);
  if (bytes == 0 || (uint64_t)width * (uint64_t)height > FUZZ_MAX_PIXELS) return 0;
  void *packed = malloc(bytes);
  if (packed && jpeg_pack(data, size, &stream, packed, bytes, &shape)) {
    fuzz_require(stream.end > stream.scan && stream.end <= size && shape.packed_bytes <= bytes);
    fuzz_require(shape.width == width && shape.height == height);
    check_pixels(data, size, &shape, packed);
  }
  free(packed);
  return 0;
}
