/*
 * Fuzz target of the follower of JPEG streams: what it takes for whole goes to a GPU's engine unseen, so libjpeg must take it
 * too, at the sides that the headers say.
 */
#include <stdlib.h>

#include "pipeline/image_io/jpeg_stream.h"
#include "pipeline/include/hartsift.h"
#include "tests/fuzz/input_bytes.h"

enum { FUZZ_MAX_PIXELS = 1 << 18 };

static void check_decodes(const uint8_t *data, size_t size, const jpeg_stream *stream) {
  char message[256] = "";
  const hs_load_options options = {.struct_size = sizeof options,
                                   .max_pixels = FUZZ_MAX_PIXELS,
                                   .ignore_exif = 1,
                                   .message = message,
                                   .message_bytes = sizeof message};
  hs_image image;
  const hs_status status = hs_load_image_memory(data, size, &options, &image);
  fuzz_require(status == HS_OK && image.width == stream->width && image.height == stream->height);
  hs_image_free(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static jpeg_stream stream; /* of some 200 KiB */
  int32_t width = 0, height = 0;
  const bool has_sides = jpeg_stream_sides(data, size, &width, &height);
  fuzz_require(!has_sides || (width > 0 && height > 0));
  if (!jpeg_stream_open(data, size, &stream)) return 0;
  fuzz_require(stream.width > 0 && stream.height > 0 && stream.scan <= size);
  fuzz_require(has_sides && width == stream.width && height == stream.height);
  if (!jpeg_stream_follow(data, size, &stream)) return 0;
  fuzz_require(stream.end > stream.scan && stream.end <= size);
  if ((uint64_t)stream.width * (uint64_t)stream.height <= FUZZ_MAX_PIXELS) check_decodes(data, stream.end, &stream);
  return 0;
}
